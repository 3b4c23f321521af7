/* event.h: declares an event, independent of the format of the trace.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_EVENT_H
#define WEFT_TRACE_EVENT_H

#include <stdint.h>
#include <weft/vocabulary.h>

#include "base/str.h"

#define WEFT_NO_SITE UINT32_MAX

/* Op of an event whose real op only the trace defines.  `value` is the index of the op's form in weft_trace_info.forms;
 * weft_trace_field() returns the fields of the event. */
#define WEFT_EVENT_OTHER 255

/* Op of an event at the end of a stream's part; only in joined traces (join.h). */
#define WEFT_EVENT_END 254

/* An event.  The op decides which fields have a meaning (weft/vocabulary.h); the other fields are 0, and site is
 * WEFT_NO_SITE. */
struct weft_event {
	int64_t time_ns; /* time as recorded, by the trace's clock; weft_trace_info has the origin of the clock */
	int64_t a;       /* id of the acting promise; -1 is the system */
	int64_t b;       /* the other promise */
	/* for counters: value or change; for pauses: ns; for idle: enum weft_idle; for pending: creation time; for other ops
	 * see weft/vocabulary.h */
	int64_t value;
	struct weft_str text; /* label, error, counter name, pause or note; valid until the trace is closed */
	uint32_t site;        /* index into weft_trace_info.sites */
	uint16_t stream;      /* index into weft_trace_info.streams */
	uint8_t op;           /* enum weft_op, or WEFT_EVENT_OTHER */
	uint8_t kind;         /* enum weft_kind for create and pending; enum weft_detail for detail */
};

#endif
