/* runtime_events_live.c: reads a ring of OCaml repeatedly while it is written and wraps: runtime_events_live FILE TIMES.
 *
 * Prints the number of overwritten events; fails at the first torn event.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

struct seen {
	unsigned long long first_ns, count;
	int is_torn;
};

static int look(void *ctx, char *line)
{
	struct seen *seen = ctx;
	unsigned long long ring, time_ns;
	char what[16];
	if (sscanf(line, "%llu - lost", &ring) == 1 && strstr(line, " - lost "))
		return 0;
	const int got = sscanf(line, "%llu %llu %15s", &ring, &time_ns, what);
	/* The generator writes only events with a name, at times that never go back, so an event without a name or with an
	 * earlier time is torn. */
	seen->is_torn = got != 3 || strcmp(what, "unknown") == 0 || time_ns < seen->first_ns;
	if (seen->is_torn)
		fprintf(stderr, "torn: %s\n", line);
	seen->first_ns = time_ns;
	seen->count++;
	return seen->is_torn;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const int times = atoi(argv[2]);
	unsigned long long events = 0, moved = 0, last_ns = 0;
	for (int i = 0; i < times; i++) {
		struct weft_trace *trace;
		struct weft_error err;
		struct seen seen = {0};
		if (weft_trace_open(&trace, argv[1], &err) < 0) {
			fprintf(stderr, "%s\n", err.what);
			return 1;
		}
		const int status = weft_trace_lines(trace, look, &seen);
		if (status != 0 || weft_trace_info(trace)->skipped_count > 0) {
			if (weft_trace_info(trace)->skipped_count > 0)
				fprintf(stderr, "%s\n", weft_trace_info(trace)->skipped[0].where.what);
			weft_trace_close(trace);
			return 1;
		}
		moved += seen.first_ns != last_ns;
		last_ns = seen.first_ns;
		events += seen.count;
		weft_trace_close(trace);
	}
	printf("%d readings, %llu events, %llu readings saw more than the one before\n", times, events, moved);
	return moved > 1 ? 0 : 1;
}
