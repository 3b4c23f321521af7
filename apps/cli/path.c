/* path.c: implements weft path, which prints the critical path that led to a promise's end.  SPDX-License-Identifier: ISC */
#include "analysis/index/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/requests.h"
#include "analysis/index/steal.h"
#include "cli.h"
#include "model/kernel.h"

#define DETAIL_DIVISOR 100 /* steps shorter than the path's length divided by this number are not examined */

static void put_id(const struct weft_model *m, uint32_t promise)
{
	if (promise == WEFT_NONE)
		fputs("null", stdout);
	else
		printf("%" PRId64, m->promises[promise].id);
}

static void put_json(const struct weft_model *m, const struct weft_path *path)
{
	for (size_t i = 0; i < path->count && cli_stdout_ok(); i++) {
		const struct weft_path_step *s = &path->steps[i];
		char name[WEFT_NAME_BYTES];
		printf("{\"step\":\"%s\",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"promise\":%" PRId64 ",\"name\":",
		    weft_step_name(s->kind), s->start_ns, s->end_ns, m->promises[s->promise].id);
		cli_put_cstring(weft_name_promise(m, s->promise, name));
		if (m->kernel && s->kind == WEFT_STEP_RUNNING)
			printf(",\"off_ns\":%" PRId64, weft_kernel_promise_off_ns(m, s->promise, s->start_ns, s->end_ns));
		if (s->kind == WEFT_STEP_READY)
			printf(",\"asleep_ns\":%" PRId64, s->asleep_ns);
		fputs(",\"behind\":", stdout);
		put_id(m, s->delayed_by);
		fputs(",\"lock\":", stdout);
		put_id(m, s->lock);
		fputs(",\"holder\":", stdout);
		put_id(m, s->holder);
		fputs(",\"connection\":", stdout);
		put_id(m, s->connection);
		if (m->trace->part_count) {
			const struct weft_process_share share = weft_step_share(m, s);
			fputs(",\"in\":", stdout);
			cli_put_cstring(m->trace->parts[weft_part_of(m, s->promise)].name);
			fputs(",\"sent_by\":", stdout);
			put_id(m, s->sent_by);
			printf(",\"low_ns\":%" PRId64 ",\"high_ns\":%" PRId64, share.low_ns, share.high_ns);
		}
		puts("}");
	}
}

/* Prints a time with its error, as "2.9 ms to 3.1 ms", or one time if it is exact. */
static void put_range(int64_t low_ns, int64_t high_ns)
{
	char low[CLI_DURATION_BYTES], high[CLI_DURATION_BYTES];
	cli_format_duration(low, low_ns);
	cli_format_duration(high, high_ns);
	printf(strcmp(low, high) ? "%s to %s" : "%s", low, high);
}

/* Prints how much of the path's time each process took.  Returns false without memory. */
static bool put_shares(const struct weft_model *m, const struct weft_path *path)
{
	struct weft_process_share *shares;
	size_t count;
	if (weft_path_by_process(&shares, &count, m, path) < 0)
		return false;
	for (size_t i = 0; i < count && count > 1; i++) {
		fputs(i ? ", " : "of this, ", stdout);
		put_range(shares[i].low_ns, shares[i].high_ns);
		if (shares[i].part == WEFT_IN_TRANSIT)
			fputs(" in transit", stdout);
		else
			printf(" in %s", m->trace->parts[shares[i].part].name);
	}
	if (count > 1)
		putchar('\n');
	free(shares);
	return true;
}

/* Prints the connection whose request was open during the step. */
static void put_request(const struct weft_model *m, const struct weft_path_step *s)
{
	const struct weft_request *request = weft_request_during(m, s->promise, s->start_ns, s->end_ns);
	char name[WEFT_NAME_BYTES], length[CLI_DURATION_BYTES];
	if (!request || s->delayed_by != WEFT_NONE || s->sent_by != WEFT_NONE)
		return;
	printf(request->by == s->promise ? ", for %s" : ", maybe for %s", weft_name_promise(m, request->connection, name));
	if (request->answered_ns == INT64_MAX)
		fputs(", which never answered", stdout);
	else
		printf(", which answered %s later", cli_format_duration(length, request->answered_ns - request->asked_ns));
}

/* Prints the steal time of a guest during a step, or during a transfer from or to the guest.  A step of the system (the event
 * loop) belongs to the process of the next step. */
static void put_steal(const struct weft_model *m, const struct weft_path *path, size_t step)
{
	const struct weft_path_step *s = &path->steps[step];
	uint32_t of = s->promise;
	char name[WEFT_NAME_BYTES];
	struct weft_steal steal;
	for (size_t next = step + 1; of == WEFT_SYSTEM && next < path->count; next++)
		of = path->steps[next].promise;
	if (!weft_steal(m, weft_part_of(m, of), s->start_ns, s->end_ns, &steal) &&
	    (s->sent_by == WEFT_NONE || !weft_steal(m, weft_part_of(m, s->sent_by), s->start_ns, s->end_ns, &steal)))
		return;
	if (steal.low_ns < (s->end_ns - s->start_ns) / 8)
		return;
	printf(", while %s waited for a CPU of the host for ", weft_name_promise(m, m->threads[steal.stream], name));
	put_range(steal.low_ns, steal.high_ns);
}

/* Prints how the promise itself spent its time, and then the sums of its path's steps. */
static void put_totals(const struct weft_path *path, int64_t all_ns)
{
	char length[CLI_DURATION_BYTES], waiting[CLI_DURATION_BYTES], ready[CLI_DURATION_BYTES], running[CLI_DURATION_BYTES];
	const struct weft_state_times *own = &path->own;
	printf("%s in all: %s waiting, %s ready, %s running\n", cli_format_duration(length, all_ns),
	    cli_format_duration(waiting, own->waiting_ns), cli_format_duration(ready, own->ready_ns),
	    cli_format_duration(running, own->running_ns));
	fputs("the path:", stdout);
	for (int kind = WEFT_STEP_KINDS; kind-- > 0;)
		printf("%s %s %s", kind + 1 < WEFT_STEP_KINDS ? "," : "", cli_format_duration(length, path->total_ns[kind]),
		    weft_step_name((enum weft_step_kind)kind));
	putchar('\n');
}

static void put_text(const struct weft_model *m, const struct weft_path *path)
{
	uint32_t part = WEFT_NONE;
	char name[WEFT_NAME_BYTES], length[CLI_DURATION_BYTES];
	int64_t all_ns = 0, off_ns;
	for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
		all_ns += path->total_ns[kind];
	put_totals(path, all_ns);
	if (m->trace->part_count && !put_shares(m, path))
		return;
	for (size_t i = 0; i < path->count && cli_stdout_ok(); i++) {
		const struct weft_path_step *s = &path->steps[i];
		cli_put_seconds(s->start_ns);
		printf("  %8s  ", cli_format_duration(length, s->end_ns - s->start_ns));
		weft_name_promise(m, s->promise, name);
		switch (s->kind) {
		case WEFT_STEP_RUNNING:
			printf("%s runs", name);
			off_ns = weft_kernel_promise_off_ns(m, s->promise, s->start_ns, s->end_ns);
			if (off_ns > 0)
				printf(", off CPU for %s", cli_format_duration(length, off_ns));
			break;
		case WEFT_STEP_READY:
			printf(s->asleep_ns > (s->end_ns - s->start_ns) / 2 ? "%s is ready, while its thread sleeps"
									    : "%s is ready, and queued",
			    name);
			break;
		default:
			if (s->connection != WEFT_NONE) {
				printf("waiting for %s to %s", weft_name_promise(m, s->connection, name),
				    s->is_asked ? "answer" : "send more");
				if (m->promises[s->promise].kind == WEFT_KIND_REQUEST)
					printf(", for %s", weft_name_promise(m, s->promise, name));
			} else if (s->promise == WEFT_SYSTEM)
				fputs("waiting for something that the trace does not record", stdout);
			else
				printf("waiting for %s", name);
			if (s->connection == WEFT_NONE && s->end_ns - s->start_ns >= all_ns / DETAIL_DIVISOR)
				put_request(m, s);
		}
		if (s->delayed_by != WEFT_NONE)
			printf(" behind %s%s", weft_name_promise(m, s->delayed_by, name), s->is_behind_more ? " and others" : "");
		uint32_t where = s->delayed_by != WEFT_NONE ? s->delayed_by : s->promise;
		if (*weft_name_site(m, where, name))
			printf("  at %s", name);
		if (s->holder != WEFT_NONE) {
			printf(", while %s", weft_name_promise(m, s->holder, name));
			printf(" holds %s", weft_name_promise(m, s->lock, name));
		}
		if (s->sent_by != WEFT_NONE) {
			const struct weft_process_share share = weft_step_share(m, s);
			printf(", in transit from %s for ",
			    m->trace->part_count ? m->trace->parts[weft_part_of(m, s->sent_by)].name : "itself");
			put_range(share.low_ns, share.high_ns);
		}
		if (s->end_ns - s->start_ns >= all_ns / DETAIL_DIVISOR)
			put_steal(m, path, i);
		if (m->trace->part_count && part != weft_part_of(m, s->promise) && s->promise != WEFT_SYSTEM) {
			part = weft_part_of(m, s->promise);
			printf("  in %s", m->trace->parts[part].name);
		}
		putchar('\n');
	}
}

int cli_path(struct cli_args *args)
{
	bool json = false;
	const char *promise = NULL;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"promise", 'p', CLI_TEXT, &promise, "ID", "print the path to the end of this promise (required)"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!promise)
		return cli_fail_verb("path", "no promise; use --promise=ID (weft dump lists ids)");
	struct cli_input input;
	exit = cli_open_model(&input, args, CLI_KEEP_BINDS);
	if (exit >= 0)
		return exit;
	uint32_t which = WEFT_NONE;
	exit = cli_find_promise(&input, promise, &which);
	if (exit < 0) {
		struct weft_path *path = NULL;
		struct weft_error err;
		if (weft_path_create(&path, input.model, which, &err) < 0) {
			exit = err.status == WEFT_ENOTFOUND ? cli_fail("%s: promise %s has not ended; weft explain --promise=%s "
								       "reports why",
								  input.name, promise, promise)
							    : cli_fail_error(&err);
		} else {
			(json ? put_json : put_text)(input.model, path);
			exit = cli_finish(CLI_OK);
		}
		weft_path_destroy(path);
	}
	cli_close(&input);
	return exit;
}
