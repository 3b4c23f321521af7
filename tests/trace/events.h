/* events.h: helpers for tests of traces.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TESTS_TRACE_EVENTS_H
#define WEFT_TESTS_TRACE_EVENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/trace.h"

/* Copies the next events of the trace, at most `room`; returns their number. */
static inline size_t read_events(struct weft_trace *trace, struct weft_event *out, size_t room)
{
	const struct weft_event *events;
	size_t count, all = 0;
	int more;
	while ((more = weft_trace_next(trace, &events, &count)) == 1) {
		assert_true(all + count <= room);
		memcpy(out + all, events, count * sizeof *events);
		all += count;
	}
	assert_int_equal(more, 0);
	return all;
}

#endif
