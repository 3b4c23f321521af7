/* live_private.h: what live.c, which makes tables, and live_rows.c, which words them, share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_PRIVATE_H
#define WEFT_VIEWER_LIVE_PRIVATE_H

#include "base/vec.h"
#include "model/os_tracks.h"
#include "viewer/live.h"

struct weft_live_line {
	uint64_t key;
	uint32_t promise, number; /* number: in the table of struct weft_top, of the model or of the findings */
	uint32_t parent;          /* of a tree: the line above which it stands below; or WEFT_NONE */
	uint16_t depth;
	bool is_last; /* of those below its parent */
};

typedef WEFT_VEC(struct weft_live_line) weft__live_lines;

struct weft_live_private {
	weft__live_lines lines;
	struct weft_facts *own_facts;           /* NULL: they are somebody else's */
	const struct weft_os_tracks *os_tracks; /* NULL: the kernel was not asked */
	uint32_t *ran_last;                     /* by weft_top.streams: who ran last in the stretch, or WEFT_NONE */
};

/* What an OS thread did in the stretch: the number of weft_top.streams. */
struct weft__live_thread {
	int64_t busy_ns, ready_ns, off_ns, paused_ns; /* ready: -1: nobody knows */
};
struct weft__live_thread weft__live_thread_of(const struct weft_live *live, uint32_t number);

/* How long a promise ran in the stretch, and its age, -1 if nobody knows. */
int64_t weft__live_ran(const struct weft_live *live, uint32_t promise);
int64_t weft__live_age(const struct weft_live *live, uint32_t promise);

void weft__live_word(const struct weft_live *live, const weft__live_lines *lines, size_t i, struct weft_live_row *row);

#endif
