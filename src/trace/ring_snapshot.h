/* ring_snapshot.h: copies a ring's packets consistently while a program writes them (private to src/trace).
 *
 * Packets copied one after another are of different moments: some are reused before they are copied, others grow afterwards, and
 * events are missing in between.  So each packet is read again until the packets of every stream are contiguous, starting with
 * the newest.  Packets that are not part of this contiguous snapshot are left out.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_RING_SNAPSHOT_H
#define WEFT_TRACE_RING_SNAPSHOT_H

#include "trace/packet.h"

/* The location of a packet of events, and its copy. */
struct weft_slot {
	struct weft_packet_memory memory;
	uint64_t at, max_bytes; /* arguments of weft__packet_copy() */

	/* The newest copy; NULL: there is none.  Either the caller's own first copy, with a writable capacity of .max_bytes,
	 * or .copy.bytes. */
	const unsigned char *bytes;
	size_t size;
	struct weft_packet packet;    /* header of .bytes */
	struct weft_packet_copy copy; /* owner of .bytes: the caller frees it, or takes it and sets it to NULL */
	/* steps at which the last check started and at which the packet was copied; 0: never */
	uint64_t checked_step, copied_step;
	bool is_changed;                /* the last check found a change */
	bool is_retained;               /* the packet is part of its stream's snapshot */
	uint64_t until;                 /* ticks; no event is later: start of its successor */
	const struct weft_slot *oldest; /* for the newest packet of a stream: its oldest retained packet; else NULL */
};

/* Checks every slot again.  If a packet has changed or is checked for the first time, it is copied, or new content is added to
 * its copy.  A caller's own first copy is kept if nothing has changed.  Then .is_retained marks the packets of each stream's
 * newest contiguous snapshot, in which each packet except the newest is complete.  A stream without changes is kept with its
 * gaps.  *step counts checks, from 0.  WEFT_ENOMEM.  Reads each header, and makes n log n comparisons. */
int weft__ring_snapshot_refresh(struct weft_slot *slots, size_t count, uint64_t *step);

/* Returns true if the program overwrote little meanwhile: of each stream most packets are retained. */
bool weft__ring_snapshot_is_good(const struct weft_slot *slots, size_t count);

/* Returns true if the packet was created with its ring, and no thread has used it yet. */
bool weft__packet_is_unused(const struct weft_packet *packet);

#endif
