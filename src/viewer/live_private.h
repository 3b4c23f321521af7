/* live_private.h: declarations that live.c, which builds live tables, and live_rows.c, which formats them, share.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_PRIVATE_H
#define WEFT_VIEWER_LIVE_PRIVATE_H

#include "base/vec.h"
#include "model/os_tracks.h"
#include "viewer/live.h"

struct weft_live_line {
	uint64_t key;
	uint32_t promise, number; /* number: index in a table of struct weft_top, of the model or of the findings */
	uint32_t parent;          /* line number of the row's parent in a tree; or WEFT_NONE */
	uint16_t depth;
	bool is_last; /* of its siblings */
};

typedef WEFT_VEC(struct weft_live_line) weft__live_lines;

struct weft_live_private {
	weft__live_lines lines;
	struct weft_promise_info *own_facts;    /* facts that the tables own; NULL if the caller owns the facts */
	const struct weft_os_tracks *os_tracks; /* NULL: no kernel data */
	/* For each entry of weft_top.streams: promise that ran last in the interval, or WEFT_NONE. */
	uint32_t *ran_last;
};

/* Times of an OS thread in the interval. */
struct weft__live_thread {
	int64_t busy_ns, ready_ns, off_ns, paused_ns; /* ready_ns: time runnable, -1 if unknown */
};
struct weft__live_thread weft__live_thread_of(const struct weft_live *live, uint32_t number);

/* Return the running time of a promise in the interval, and the age of a promise, -1 if unknown. */
int64_t weft__live_ran(const struct weft_live *live, uint32_t promise);
int64_t weft__live_age(const struct weft_live *live, uint32_t promise);

void weft__live_format_row(const struct weft_live *live, const weft__live_lines *lines, size_t i, struct weft_live_row *row);

#endif
