/* session.c: handles directories that weft record made (src/session/session.h).  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "trace/multi_open.h"

/* Returns whether promises of the kind come from libc, as OS threads and their waits; every program has such promises. */
static bool is_libc_kind(unsigned kind)
{
	return kind == WEFT_KIND_THREAD || kind == WEFT_KIND_LOCK || kind == WEFT_KIND_CONDITION || kind == WEFT_KIND_POOL;
}

bool cli_note_trace(const char *path, bool with_command)
{
	struct weft_trace *trace;
	struct weft_error err;
	/* Number of characters of the command line that are shown; weft info prints the whole command line. */
	enum { COMMAND_BYTES = 120 };
	const struct weft_event *events;
	size_t count;
	uint64_t all = 0;
	int64_t first_ns = 0, last_ns = 0;
	char span[WEFT_DURATION_BYTES];
	if (open_part(&trace, path, &err) < 0) {
		cli_fail_error(&err);
		return false;
	}
	bool has_promises = false;
	while (weft_trace_next(trace, &events, &count) == 1) {
		first_ns = all ? first_ns : events[0].time_ns;
		last_ns = events[count - 1].time_ns;
		all += count;
		for (size_t i = 0; i < count && !has_promises; i++)
			has_promises =
			    (events[i].op == WEFT_OP_CREATE || events[i].op == WEFT_OP_PENDING) && !is_libc_kind(events[i].kind);
	}
	const struct weft_trace_info *info = weft_trace_info(trace);
	if (info->until_ns > last_ns)
		last_ns = info->until_ns;
	uint64_t span_ns = (uint64_t)last_ns - (uint64_t)first_ns;
	weft_duration_text(span, span_ns > INT64_MAX ? INT64_MAX : (int64_t)span_ns);
	char command[COMMAND_BYTES];
	bool whole = info->command.len < sizeof command;
	weft_utf8_copy(command, sizeof command, info->command);
	cli_note("%s: %s, %" PRIu64 " events of %zu OS thread%s, %" PRIu64 " lost%s%s%s%s", path, span, all, info->stream_count,
	    info->stream_count == 1 ? "" : "s", cli_count_lost(info), has_promises ? "" : "; no promises",
	    with_command ? ": " : "", with_command ? command : "", with_command && !whole ? " ..." : "");
	weft_trace_close(trace);
	return has_promises;
}

size_t cli_make_pictures(struct open_plan ***out, const struct cli_args *args, bool compare)
{
	const size_t count = compare ? (size_t)args->argc : 1;
	const int operands = compare ? 1 : args->argc;
	static struct open_plan **pictures;
	pictures = calloc(count, sizeof(struct open_plan *));
	for (size_t i = 0; pictures && i < count; i++) {
		const char *first = strcmp(args->argv[i], "-") == 0 ? "standard input" : cli_base_name(args->argv[i]);
		if (open_classify(&pictures[i], args->argv + i, operands, NULL) < 0)
			return 0;
		pictures[i]->annotate = cli_find_site_names_again;
		weft_multi_name(pictures[i]->name, sizeof pictures[i]->name, &first, (size_t)operands);
	}
	*out = pictures;
	return pictures ? count : 0;
}

int cli_picture_open(struct weft_trace **out, const struct open_plan *picture, struct weft_error *err)
{
	const int status = open_run(out, picture, err);
	if (status == WEFT_EINVAL && picture->paths.count > 1) {
		const size_t length = strlen(err->what);
		snprintf(err->what + length, sizeof err->what - length, "; use --compare to show each separately");
	}
	return status;
}
