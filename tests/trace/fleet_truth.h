/* fleet_truth.h: compares the times in the joined trace of a fleet with the true times.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TESTS_TRACE_FLEET_TRUTH_H
#define WEFT_TESTS_TRACE_FLEET_TRUTH_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "trace/join.h"

struct fleet_truth {
	size_t times, wrong;
	char first[160]; /* text about the first event with a wrong time */
};

static inline struct fleet_truth fleet_compare(const struct fleet *fleet, struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	const struct weft_event *ev;
	struct fleet_truth truth = {0};
	size_t count;
	while (weft_trace_next(trace, &ev, &count) == 1)
		for (size_t i = 0; i < count; i++) {
			char text[64];
			if (ev[i].op != WEFT_OP_LABEL || ev[i].text.len >= sizeof text)
				continue;
			snprintf(text, sizeof text, "%.*s", (int)ev[i].text.len, ev[i].text.ptr);
			const char *number = strstr(text, "true ");
			if (!number)
				continue;
			const int64_t shown = fleet_shows(fleet, 0, strtoll(number + 5, NULL, 10));
			const uint32_t part = info->streams[ev[i].stream].part;
			int64_t low, high;
			weft_part_bounds(&info->parts[part], ev[i].time_ns, &low, &high);
			/* Both times may be wrong by 1 ns, because they are rounded. */
			const bool is_inside =
			    low - 2 <= shown && shown <= high + 2 && low <= ev[i].time_ns && ev[i].time_ns <= high;
			truth.times++;
			if (!is_inside && truth.wrong++ == 0)
				snprintf(truth.first, sizeof truth.first,
				    "part %" PRIu32 ": %" PRId64 " is not from %" PRId64 " to %" PRId64 ", or %" PRId64, part,
				    shown, low, high, ev[i].time_ns);
		}
	return truth;
}

#endif
