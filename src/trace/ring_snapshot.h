/* ring_snapshot.h: copies the packets of a ring consistently while a program writes to them (private to src/trace).
 *
 * Packets that are copied one after another are from different moments: some are reused before they are copied, others grow
 * afterwards, and events between them are missing.  Therefore each packet is read again until the packets of every stream are
 * contiguous, starting with the newest.  Packets that are not part of this contiguous snapshot are left out.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_RING_SNAPSHOT_H
#define WEFT_TRACE_RING_SNAPSHOT_H

#include "trace/packet.h"

/* The location of a packet of events, and its copy. */
struct weft_slot {
	struct weft_packet_memory memory;
	uint64_t at, max_bytes; /* arguments of weft__packet_copy() */

	/* The newest copy of the packet; NULL if there is none.  The newest copy is either the caller's own first copy, with a
	 * writable capacity of .max_bytes, or .copy.bytes. */
	const unsigned char *bytes;
	size_t size;
	struct weft_packet packet;    /* header of .bytes */
	struct weft_packet_copy copy; /* owner of .bytes: the caller frees it, or takes it over and sets it to NULL */
	/* step at which the last check started; step at which the packet was copied; 0 if never */
	uint64_t checked_step, copied_step;
	bool is_changed;  /* true if the last check found a change */
	bool is_retained; /* true if the packet is part of its stream's snapshot */
	/* time in ticks at which the next packet of the stream starts; no event of this packet is later */
	uint64_t until;
	const struct weft_slot *oldest; /* for the newest packet of a stream: the oldest packet of its snapshot; else NULL */
};

/* Checks every slot again.  Copies each packet that has changed or is checked for the first time, or adds new content to its
 * copy.  A first copy that the caller made is kept if nothing has changed.  At last, .is_retained marks the packets of each
 * stream's newest contiguous snapshot, in which each packet except the newest is complete.  A stream without changes is kept
 * with its gaps. *step counts the checks, from 0.  WEFT_ENOMEM.  Reads the header of each packet, and makes n log n
 * comparisons. */
int weft__ring_snapshot_refresh(struct weft_slot *slots, size_t count, uint64_t *step);

/* Returns true if the program overwrote little meanwhile, so that most packets of each stream are in the snapshot. */
bool weft__ring_snapshot_is_good(const struct weft_slot *slots, size_t count);

/* Returns true if the packet was created with its ring, and no thread has used it yet. */
bool weft__packet_is_unused(const struct weft_packet *packet);

#endif
