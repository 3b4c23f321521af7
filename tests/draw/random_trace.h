/* random_trace.h: writes a random program as a mirage trace, with all objects that a picture shows.  SPDX-License-Identifier: ISC
 */
#ifndef TESTS_DRAW_RANDOM_TRACE_H
#define TESTS_DRAW_RANDOM_TRACE_H

#include <stdio.h>

#include "mirage_writer.h"

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* Writes at most 60,000 bytes. */
static inline void write_random_trace(struct mirage_writer *w, uint64_t seed)
{
	static const char *const labels[] = {"read", "a rather long label for a short line", "\xff\xfe not UTF-8",
	    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d", "\xf0\x9f\x90\xab", "tcp-to-ip", "", "line\nbreak"};
	uint64_t r = seed;
	int64_t now = 1000000, last = 0;
	uint32_t step = 1 + random_below(&r, 20000), steps = 50 + random_below(&r, 1400);
	w->size = 0;
	mw_packet(w, 1);
	mw_create(w, now, -1, 0, WEFT_KIND_TASK);
	for (uint32_t i = 0; i < steps && w->size < 60000; i++) {
		now += random_below(&r, 20) ? random_below(&r, step) : random_below(&r, 20 * step);
		int64_t a = last > 0 ? random_below(&r, (uint32_t)last + 1) : 0;
		int64_t b = last > 0 ? random_below(&r, (uint32_t)last + 1) : 0;
		uint32_t pick = random_below(&r, 720720);
		switch (random_below(&r, 14)) {
		case 0:
		case 1:
		case 2:
		case 3:
			mw_create(w, now, last < 20 || pick % 3 ? a : last, last + 1, (unsigned char)(pick / 3 % 18)), last++;
			break;
		case 4: mw_label(w, now, a, labels[pick % 8]); break;
		case 5: mw_link(w, now, WEFT_OP_RESOLVE, a, b); break;
		case 6: mw_link(w, now, WEFT_OP_READ, a, b); break;
		case 7: mw_op(w, now, WEFT_OP_RUN, pick % 3 ? a : -1); break;
		case 8: mw_text(w, now, WEFT_OP_FAIL, a, b, "Not_found"); break;
		case 9: mw_link(w, now, WEFT_OP_BECOME, a, b); break;
		case 10: mw_link(w, now, WEFT_OP_AWAIT, a, b); break;
		case 11: mw_link(w, now, WEFT_OP_SIGNAL, a, b); break;
		case 12:
			mw_text(w, now, WEFT_OP_COUNTER_ADD, a, (int64_t)(pick / 2 % 40) - 20, pick % 2 ? "bytes" : "hits#1");
			break;
		default:
			if (pick % 2)
				mw_label(w, now, a, "__should_resolve");
			else
				mw_op(w, now, WEFT_OP_PAUSE, pick / 2 % step);
		}
	}
	mw_end(w, 0);
}

#endif
