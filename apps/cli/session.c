/* session.c: what verbs make of directories that weft record made (session/session.h).  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "ctf/foreign.h"
#include "trace/several.h"

/* Of each program libc tells of its OS threads, and of what these wait for. */
static bool is_of_libc(unsigned kind)
{
	return kind == WEFT_KIND_THREAD || kind == WEFT_KIND_LOCK || kind == WEFT_KIND_CONDITION || kind == WEFT_KIND_POOL;
}

bool cli_tell_trace(const char *path, bool with_command)
{
	struct weft_trace *trace;
	struct weft_error err;
	enum { COMMAND_BYTES = 120 }; /* weft info has all of it */
	const struct weft_event *events;
	size_t count;
	uint64_t all = 0;
	int64_t first_ns = 0, last_ns = 0;
	char span[WEFT_DURATION_BYTES];
	if (foreign_or_trace_open(&trace, path, &err) < 0) {
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
			    (events[i].op == WEFT_OP_CREATE || events[i].op == WEFT_OP_PENDING) && !is_of_libc(events[i].kind);
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
	    info->stream_count == 1 ? "" : "s", cli_lost(info), has_promises ? "" : "; no promises", with_command ? ": " : "",
	    with_command ? command : "", with_command && !whole ? " ..." : "");
	weft_trace_close(trace);
	return has_promises;
}

static void note_copies(size_t count)
{
	if (count)
		cli_note("%zu %s of these traces beside them %s left out", count, count == 1 ? "copy" : "copies",
		    count == 1 ? "is" : "are");
}

int cli_session_choose(const char **path)
{
	static struct session chosen; /* until the end, as what it names */
	struct session s;
	if (!session_read_all(&s, *path) || s.traces.count == 0) {
		session_free(&s);
		return -1;
	}
	note_copies(session_drop_copies(&s.traces));
	if (s.traces.count == 1) {
		session_free(&chosen);
		chosen = s;
		*path = s.traces.items[0];
		return -1;
	}
	cli_note("%s has %zu traces, and this verb reads one; name one of these:", *path, s.traces.count);
	for (size_t i = 0; i < s.traces.count; i++)
		cli_tell_trace(s.traces.items[i], true);
	session_free(&s);
	return CLI_TROUBLE;
}

bool cli_session_expand(struct cli_args *args)
{
	static session_paths last; /* until the end, or the next call */
	session_paths all = {0};
	const int named = args->argc;
	size_t copies;
	if (!session_expand(&all, args->argv, args->argc, &copies) || !weft_vec_reserve(&all, 1)) {
		session_paths_free(&all);
		return false;
	}
	note_copies(copies);
	all.items[all.count] = NULL;
	args->argv = all.items;
	args->argc = (int)all.count;
	session_paths_free(&last);
	last = all;
	return args->argc > named;
}

size_t cli_pictures(struct cli_picture **out, const struct cli_args *args, bool compare)
{
	const size_t count = compare ? (size_t)args->argc : 1;
	const size_t operands = compare ? 1 : (size_t)args->argc;
	static struct cli_picture *pictures; /* until the end */
	pictures = calloc(count, sizeof *pictures);
	for (size_t i = 0; pictures && i < count; i++) {
		session_paths all = {0};
		const char *first = cli_base_name(args->argv[i]);
		if (!session_expand(&all, args->argv + i, (int)operands, NULL)) {
			session_paths_free(&all);
			return 0;
		}
		if (!strcmp(args->argv[i], "-"))
			first = "standard input";
		pictures[i] = (struct cli_picture){.paths = (const char *const *)all.items,
		    .count = all.count,
		    .is_session = all.count > 1 && operands == 1,
		    .operands = args->argv + i,
		    .operand_count = (int)operands};
		weft_several_name(pictures[i].name, sizeof pictures[i].name, &first, operands);
	}
	*out = pictures;
	return pictures ? count : 0;
}

bool cli_picture_renew(struct cli_picture *picture)
{
	session_paths all = {0}, before = {.items = (char **)(uintptr_t)picture->paths, .count = picture->count};
	if (!session_expand(&all, picture->operands, picture->operand_count, NULL)) {
		session_paths_free(&all);
		return false;
	}
	session_paths_free(&before);
	picture->paths = (const char *const *)all.items;
	picture->count = all.count;
	picture->is_session = all.count > 1 && picture->operand_count == 1;
	return true;
}

static int open_named(struct weft_trace **out, const char *path, struct weft_error *err)
{
	const int status = foreign_or_trace_open(out, path, err);
	if (status == WEFT_OK)
		cli_name_served(*out);
	return status;
}

int cli_picture_open(struct weft_trace **out, const struct cli_picture *picture, struct weft_error *err)
{
	const int status =
	    weft_several_open(out, picture->paths, picture->count, picture->name, picture->is_session, open_named, err);
	if (status == WEFT_EINVAL && picture->count > 1) {
		const size_t length = strlen(err->what);
		snprintf(err->what + length, sizeof err->what - length, "; --compare shows each by itself");
	}
	return status;
}
