/* crowded_trace.h: a mirage trace with thousands of promises at once for a very short time, so that a view draws sums of its rows
 * in few time slices. SPDX-License-Identifier: ISC */
#ifndef TESTS_DRAW_CROWDED_TRACE_H
#define TESTS_DRAW_CROWDED_TRACE_H

#include <stdbool.h>
#include <stdlib.h>

#include "draw/random_trace.h"

/* Appends the packet to the trace; returns false if memory runs out. */
static inline bool take_packet(unsigned char **bytes, size_t *size, struct mirage_writer *w)
{
	unsigned char *more = realloc(*bytes, *size + w->size);
	mw_end(w, 0);
	if (!more)
		return false;
	memcpy(more + *size, w->bytes, w->size);
	*bytes = more;
	*size += w->size;
	w->size = 0;
	return true;
}

/* Returns a trace that the caller frees. */
static inline unsigned char *crowded_trace(size_t *size)
{
	enum { AT_ONCE = 4400, END_NS = 100, LONGEST_NS = 30, PACKET_BYTES = 60000 };
	static struct mirage_writer w;
	static int64_t ids[AT_ONCE], ends[AT_ONCE];
	unsigned char *bytes = NULL;
	uint64_t r = 1;
	uint16_t packets = 1;
	int64_t last = 0;
	w.size = *size = 0;
	memset(ends, 0, sizeof ends);
	memset(ids, 0, sizeof ids);
	mw_packet(&w, packets);
	for (int64_t now = 0; now <= END_NS; now++)
		for (int i = 0; i < AT_ONCE; i++) {
			if (ends[i] > now && now < END_NS)
				continue;
			if (w.size > PACKET_BYTES) {
				assert_true(take_packet(&bytes, size, &w));
				mw_packet(&w, ++packets);
			}
			if (ids[i] > 0 && random_below(&r, 900) == 0)
				mw_text(&w, now, WEFT_OP_FAIL, ids[i], ids[i], "Not_found");
			else if (ids[i] > 0)
				mw_link(&w, now, WEFT_OP_RESOLVE, ids[i], ids[i]);
			/* The middle has few promises. */
			ids[i] = now < END_NS && (now < 30 || now > 70 || i % 5 == 0) ? ++last : 0;
			if (ids[i] > 0)
				mw_create(&w, now, -1, ids[i], WEFT_KIND_BIND);
			/* The rows of the first third are the busiest. */
			ends[i] = now + 1 + random_below(&r, i < AT_ONCE / 3 ? LONGEST_NS / 4 : LONGEST_NS);
		}
	assert_true(take_packet(&bytes, size, &w));
	return bytes;
}

#endif
