/* path.c: weft path: the critical path that led to a promise's end.  SPDX-License-Identifier: ISC */
#include "analysis/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "analysis/shares.h"
#include "analysis/steal.h"
#include "analysis/turns.h"
#include "cli.h"
#include "model/kernel.h"

#define WORTH_A_LOOK 100 /* a step that is shorter than that part of the path is not looked into */

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
		fputs(",\"behind\":", stdout);
		put_id(m, s->behind);
		fputs(",\"lock\":", stdout);
		put_id(m, s->lock);
		fputs(",\"holder\":", stdout);
		put_id(m, s->holder);
		fputs(",\"connection\":", stdout);
		put_id(m, s->connection);
		if (m->trace->part_count) {
			const struct weft_share share = weft_step_share(m, s);
			fputs(",\"in\":", stdout);
			cli_put_cstring(m->trace->parts[weft_part_of(m, s->promise)].name);
			fputs(",\"sent_by\":", stdout);
			put_id(m, s->sent_by);
			printf(",\"low_ns\":%" PRId64 ",\"high_ns\":%" PRId64, share.low_ns, share.high_ns);
		}
		puts("}");
	}
}

/* "2.9 ms to 3.1 ms", or one time where that is exact. */
static void put_range(int64_t low_ns, int64_t high_ns)
{
	char low[CLI_DURATION], high[CLI_DURATION];
	cli_format_duration(low, low_ns);
	cli_format_duration(high, high_ns);
	printf(strcmp(low, high) ? "%s to %s" : "%s", low, high);
}

/* Where the time went, by process; false: out of memory. */
static bool put_shares(const struct weft_model *m, const struct weft_path *path)
{
	struct weft_share *shares;
	size_t count;
	if (weft_shares(&shares, &count, m, path) < 0)
		return false;
	for (size_t i = 0; i < count && count > 1; i++) {
		fputs(i ? ", " : "of that ", stdout);
		put_range(shares[i].low_ns, shares[i].high_ns);
		if (shares[i].part == WEFT_ON_THE_WAY)
			fputs(" on the way", stdout);
		else
			printf(" in %s", m->trace->parts[shares[i].part].name);
	}
	if (count > 1)
		putchar('\n');
	free(shares);
	return true;
}

/* Which connection had been asked something meanwhile. */
static void put_turn(const struct weft_model *m, const struct weft_path_step *s)
{
	const struct weft_turn *turn = weft_turn_in(m, s->promise, s->start_ns, s->end_ns);
	char name[WEFT_NAME_BYTES], length[CLI_DURATION];
	if (!turn || s->behind != WEFT_NONE || s->sent_by != WEFT_NONE)
		return;
	printf(turn->by == s->promise ? ", for %s" : ", maybe for %s", weft_name_promise(m, turn->connection, name));
	if (turn->answered_ns == INT64_MAX)
		fputs(", which never answered", stdout);
	else
		printf(", which answered %s later", cli_format_duration(length, turn->answered_ns - turn->asked_ns));
}

/* What the host of a guest that the step is in, or on its way to or from, took of it; what the trace does not tell is the next
 * one's. */
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
	printf(", while %s waited for a processor of the host's for ", weft_name_promise(m, m->threads[steal.stream], name));
	put_range(steal.low_ns, steal.high_ns);
}

static void put_people(const struct weft_model *m, const struct weft_path *path)
{
	uint32_t part = WEFT_NONE;
	char name[WEFT_NAME_BYTES], length[CLI_DURATION];
	int64_t all_ns = 0, off_ns;
	for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
		all_ns += path->total_ns[kind];
	printf("%s in all:", cli_format_duration(length, all_ns));
	for (int kind = WEFT_STEP_KINDS; kind-- > 0;)
		printf("%s %s %s", kind + 1 < WEFT_STEP_KINDS ? "," : "", cli_format_duration(length, path->total_ns[kind]),
		    weft_step_name((enum weft_step_kind)kind));
	putchar('\n');
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
				printf(", without a processor for %s", cli_format_duration(length, off_ns));
			break;
		case WEFT_STEP_READY: printf("%s is ready, and queued", name); break;
		default:
			if (s->connection != WEFT_NONE)
				printf("waiting for %s to %s", weft_name_promise(m, s->connection, name),
				    s->is_asked ? "answer" : "send more");
			else if (s->promise == WEFT_SYSTEM)
				fputs("waiting for what the trace does not tell", stdout);
			else
				printf("waiting for %s", name);
			if (s->connection == WEFT_NONE && s->end_ns - s->start_ns >= all_ns / WORTH_A_LOOK)
				put_turn(m, s);
		}
		if (s->behind != WEFT_NONE)
			printf(" behind %s", weft_name_promise(m, s->behind, name));
		uint32_t where = s->behind != WEFT_NONE ? s->behind : s->promise;
		if (*weft_name_place(m, where, name))
			printf("  at %s", name);
		if (s->holder != WEFT_NONE) {
			printf(", while %s", weft_name_promise(m, s->holder, name));
			printf(" holds %s", weft_name_promise(m, s->lock, name));
		}
		if (s->sent_by != WEFT_NONE) {
			const struct weft_share share = weft_step_share(m, s);
			printf(", on its way from %s for ",
			    m->trace->part_count ? m->trace->parts[weft_part_of(m, s->sent_by)].name : "itself");
			put_range(share.low_ns, share.high_ns);
		}
		if (s->end_ns - s->start_ns >= all_ns / WORTH_A_LOOK)
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
	    {"promise", 'p', CLI_TEXT, &promise, "ID", "the promise whose end is asked about"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!promise)
		return cli_fail("path: to the end of which promise?  --promise=ID, as weft dump tells it");
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
			exit = err.status == WEFT_ENOTFOUND
				   ? cli_fail("%s: promise %s has not come to its end; weft explain --promise=%s "
					      "tells why",
					 input.name, promise, promise)
				   : cli_fail_error(&err);
		} else {
			(json ? put_json : put_people)(input.model, path);
			exit = cli_finish(CLI_FINE);
		}
		weft_path_destroy(path);
	}
	cli_close(&input);
	return exit;
}
