/* session.c: a directory that weft record made: a trace for each process.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/ocaml.h"
#include "base/duration.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "cli.h"
#include "ctf/foreign.h"
#include "trace/several.h"

/* Last what OCaml has written: the first is the one on whose clock the others are put, and this clock is known to some us alone.
 */
static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	const int order = WEFT_ORDER(ocaml_is_file(x), ocaml_is_file(y));
	return order ? order : strcmp(x, y);
}

bool cli_is_trace_directory(const char *path)
{
	char metadata[PATH_MAX + 16];
	snprintf(metadata, sizeof metadata, "%s/metadata", path);
	return access(metadata, F_OK) == 0;
}

/* The files of OCaml's runtime in a folder of theirs; false: no memory. */
static bool read_events(struct cli_session *s, const char *path)
{
	DIR *dir = opendir(path);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		if (!ocaml_is_file(entry->d_name) || asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		char **slot = weft_vec_push(&s->traces);
		whole = slot != NULL;
		if (slot)
			*slot = name;
		else
			free(name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

/* What is in the directory, or in that of a user in it; false: no memory. */
static bool read_folder(struct cli_session *s, const char *path, bool is_users)
{
	static const char failed[] = ".failed";
	DIR *dir = opendir(path);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		size_t length = strlen(entry->d_name);
		if (entry->d_name[0] == '.' || asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		bool is_word = length > sizeof failed && !strcmp(entry->d_name + length - (sizeof failed - 1), failed);
		bool is_user = !is_users && !strncmp(entry->d_name, CLI_USER_FOLDER, strlen(CLI_USER_FOLDER));
		cli_paths *list = is_word ? &s->words : cli_is_trace_directory(name) ? &s->traces : is_user ? &s->users : NULL;
		char **slot = list ? weft_vec_push(list) : NULL;
		whole = (!list || slot) && (!ocaml_is_folder(entry->d_name) || read_events(s, name));
		if (slot)
			*slot = name;
		else
			free(name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

bool cli_session_read(struct cli_session *s, const char *path)
{
	*s = (struct cli_session){.path = path};
	bool whole = cli_is_trace_directory(path) || read_folder(s, path, false);
	for (size_t i = 0; i < s->users.count && whole; i++)
		whole = read_folder(s, s->users.items[i], true);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, by_name);
	return whole;
}

void cli_paths_free(cli_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
	weft_vec_free(paths);
}

void cli_session_free(struct cli_session *s)
{
	cli_paths_free(&s->traces);
	cli_paths_free(&s->words);
	cli_paths_free(&s->users);
}

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

int cli_session_choose(const char **path)
{
	static struct cli_session chosen; /* until the end, as what it names */
	struct cli_session s;
	if (!cli_session_read(&s, *path) || s.traces.count == 0) {
		cli_session_free(&s);
		return -1;
	}
	if (s.traces.count == 1) {
		cli_session_free(&chosen);
		chosen = s;
		*path = s.traces.items[0];
		return -1;
	}
	cli_note("%s has %zu traces, and this verb reads one; name one of these:", *path, s.traces.count);
	for (size_t i = 0; i < s.traces.count; i++)
		cli_tell_trace(s.traces.items[i], true);
	cli_session_free(&s);
	return CLI_TROUBLE;
}

bool cli_expand_quietly(cli_paths *out, char *const *operands, int count)
{
	bool whole = true;
	for (int i = 0; i < count && whole; i++) {
		struct cli_session s;
		whole = cli_session_read(&s, operands[i]) && weft_vec_reserve(out, s.traces.count + 1);
		for (size_t j = 0; whole && j < s.traces.count; j++)
			out->items[out->count++] = s.traces.items[j];
		char *own = whole && s.traces.count == 0 ? strdup(operands[i]) : NULL;
		if (own)
			out->items[out->count++] = own;
		whole &= own || s.traces.count > 0;
		s.traces.count = whole ? 0 : s.traces.count; /* they are in `out` now */
		cli_session_free(&s);
	}
	return whole;
}

bool cli_session_expand(struct cli_args *args)
{
	static cli_paths last; /* until the end, or the next call */
	cli_paths all = {0};
	const int named = args->argc;
	if (!cli_expand_quietly(&all, args->argv, args->argc) || !weft_vec_reserve(&all, 1)) {
		cli_paths_free(&all);
		return false;
	}
	all.items[all.count] = NULL;
	args->argv = all.items;
	args->argc = (int)all.count;
	cli_paths_free(&last);
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
		cli_paths all = {0};
		const char *first = cli_base_name(args->argv[i]);
		if (!cli_expand_quietly(&all, args->argv + i, (int)operands)) {
			cli_paths_free(&all);
			return 0;
		}
		if (!strcmp(args->argv[i], "-"))
			first = "standard input";
		pictures[i] = (struct cli_picture){
		    .paths = (const char *const *)all.items, .count = all.count, .is_session = all.count > 1 && operands == 1};
		weft_several_name(pictures[i].name, sizeof pictures[i].name, &first, operands);
	}
	*out = pictures;
	return pictures ? count : 0;
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
