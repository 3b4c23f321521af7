/* event.h: one event, whatever format it came from.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_EVENT_H
#define WEFT_TRACE_EVENT_H

#include <stdint.h>
#include <weft/vocabulary.h>

#include "base/str.h"

#define WEFT_NO_SITE UINT32_MAX

/* In place of an op: one that only the trace knows.  `value` is the index of its form in weft_trace_info.forms; its fields are
 * what weft_trace_field() says. */
#define WEFT_EVENT_OTHER 255

/* In place of an op: the part that the stream is of ends; only a trace that is joined of several says so (join.h). */
#define WEFT_EVENT_END 254

/* Which fields mean something depends on op (weft/vocabulary.h); the others are 0, site is WEFT_NO_SITE. */
struct weft_event {
	int64_t time_ns; /* as recorded: of the trace's clock, whose origin weft_trace_info tells */
	int64_t a;       /* who acts; -1 is the system */
	int64_t b;       /* upon whom */
	int64_t value; /* counter: its value or change; pause: ns; idle: enum weft_idle; pending: when it was created; others: see
			  there */
	struct weft_str text; /* label, error, counter, pause or note; lives until the trace is closed */
	uint32_t site;        /* index into weft_trace_info.sites */
	uint16_t stream;      /* index into weft_trace_info.streams */
	uint8_t op;           /* enum weft_op, or WEFT_EVENT_OTHER */
	uint8_t kind;         /* enum weft_kind, for create and pending; enum weft_detail, for detail */
};

#endif
