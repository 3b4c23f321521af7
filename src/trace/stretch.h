/* stretch.h: copies of a ring's packets while a program writes it, such that they are one stretch (private to src/trace).
 *
 * Copied one after the other, packets are of different moments: some are reused before they are looked at, others grow after they
 * were, and events are missing in the middle.  So each is looked at again until the packets of every stream follow one another
 * without a gap, the newest ones first; what does not belong to that stretch any more is left out.  SPDX-License-Identifier: ISC
 */
#ifndef WEFT_TRACE_STRETCH_H
#define WEFT_TRACE_STRETCH_H

#include "trace/packet.h"

/* A place where a packet of events stands, and its copy. */
struct weft_slot {
	struct weft_packet_memory memory;
	uint64_t at, room; /* as for weft__packet_copy() */

	const unsigned char *bytes; /* as it was last; NULL: nothing was to be had.  The caller's own first copy, with room for
				     * .room bytes that may be written to, or .copy.bytes */
	size_t size;
	struct weft_packet packet;      /* what the header of .bytes says */
	struct weft_packet_copy copy;   /* .bytes: to be freed, or taken by the caller, who sets it to NULL */
	uint64_t looked, seen;          /* steps at which the last look began, and the packet had been copied; 0: never */
	bool is_changed;                /* a look found something else than the copy before it */
	bool is_kept;                   /* it is of the newest stretch of its stream */
	uint64_t until;                 /* ticks: no event is later; when its successor begins */
	const struct weft_slot *oldest; /* of a stream's newest packet: the oldest that is kept of it; else NULL */
};

/* Looks at every slot once more.  Where a packet changed since the last copy, or is being looked at for the first time, a new
 * copy is made, or what came since is added to the last one; a caller's own first copy is good if nothing changed since.  Then
 * .is_kept says which packets are of the newest stretch, in which each packet but the newest one is whole.  A stream of which
 * nothing changed is kept with whatever gaps it has.  *step counts looks, from 0.  WEFT_ENOMEM.  Cost: a read of each header, and
 * n log n comparisons. */
int weft__stretch_look(struct weft_slot *slots, size_t count, uint64_t *step);

/* Whether little was lost to the program that went on writing: of each stream most of the packets are kept. */
bool weft__stretch_is_good(const struct weft_slot *slots, size_t count);

/* Whether the packet was made with its ring, and no OS thread has come to it yet. */
bool weft__packet_is_unused(const struct weft_packet *packet);

#endif
