/* waits.c: implements weft waits: prints which promises wait for each other, as a tree.  SPDX-License-Identifier: ISC */
#include "analysis/queries/waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/hash.h"
#include "cli.h"

/* Returns whether the trace does not contain the wait, and its reader infers the wait. */
static bool is_inferred(const struct weft_model *m, const struct weft_wait *wait)
{
	return m->promises[wait->from].flags & WEFT_PROMISE_INFERRED;
}

static void put_json(const struct weft_model *m, const struct weft_waits *waits)
{
	for (size_t i = 0; i < waits->count && cli_stdout_ok(); i++) {
		const struct weft_wait *wait = &waits->waits[i];
		char name[WEFT_NAME_BYTES];
		printf("{\"promise\":%" PRId64 ",\"name\":", m->promises[wait->from].id);
		cli_put_cstring(weft_name_promise(m, wait->from, name));
		printf(",\"awaits\":%" PRId64 ",\"awaited\":", m->promises[wait->to].id);
		cli_put_cstring(weft_name_promise(m, wait->to, name));
		const uint32_t peer = weft_peer_of(m, wait->to);
		if (peer != WEFT_NONE)
			printf(",\"peer\":%" PRId64, m->promises[peer].id);
		printf(",\"since_ns\":%" PRId64 ",\"cycle\":%s%s}\n", wait->since_ns, wait->in_cycle ? "true" : "false",
		    is_inferred(m, wait) ? ",\"inferred\":true" : "");
	}
}

/* Prints the waits as a graph for Graphviz, which reads names quoted as in C. */
static void put_dot(const struct weft_model *m, const struct weft_waits *waits)
{
	char name[WEFT_NAME_BYTES];
	puts("digraph waits {\n\trankdir=LR;\n\tnode [shape=box, fontname=\"sans-serif\"];");
	for (size_t i = 0; i < waits->node_count && cli_stdout_ok(); i++) {
		if (waits->nodes[i].is_repeated)
			continue;
		uint32_t p = waits->nodes[i].promise;
		printf("\tp%" PRIu32 " [label=", p);
		cli_put_cstring(weft_name_promise(m, p, name));
		puts("];");
	}
	for (size_t i = 0; i < waits->count && cli_stdout_ok(); i++)
		printf("\tp%" PRIu32 " -> p%" PRIu32 "%s;\n", waits->waits[i].from, waits->waits[i].to,
		    waits->waits[i].in_cycle ? " [color=red]" : "");
	puts("}");
}

/* Depth to which lines are drawn before the children of a node; a deeper node shows its depth as a number. */
enum { MAX_DRAWN_DEPTH = 32 };

/* Prints since when a wait lasts; for a program that was seen once, how long the wait has lasted. */
static void put_since(const struct weft_model *m, int64_t since_ns)
{
	char lasts[WEFT_DURATION_BYTES];
	if (!m->trace->is_seen_once) {
		fputs("  since ", stdout);
		cli_put_seconds(since_ns);
	} else if (since_ns < m->end_ns) {
		printf("  for %s", weft_duration_text(lasts, m->end_ns - since_ns));
	}
}

/* Prints the callers of the code that an OS thread executes, in a program that was seen once. */
static void put_callers(const struct weft_model *m, uint32_t p)
{
	enum { MAX_CALLERS = 5 };
	uint32_t sites[MAX_CALLERS];
	const size_t count = weft_trace_callers(m->trace, weft_model_callers(m, p), sites, MAX_CALLERS);
	const char *before = "  called by ";
	for (size_t i = 0; i < count && i < MAX_CALLERS && m->trace->is_seen_once; i++) {
		char place[WEFT_NAME_BYTES];
		if (sites[i] == WEFT_NO_SITE)
			continue;
		weft_site_format(&m->trace->sites[sites[i]], place, sizeof place);
		fputs(before, stdout);
		cli_put_text((struct weft_str){place, (uint32_t)strlen(place)});
		before = ", ";
	}
	if (count > MAX_CALLERS && m->trace->is_seen_once)
		printf(", %zu more", count - MAX_CALLERS);
}

void cli_put_wait_tree(const struct weft_model *m, const struct weft_waits *waits)
{
	bool more[MAX_DRAWN_DEPTH + 1] = {0};
	for (size_t i = 0; i < waits->node_count && cli_stdout_ok(); i++) {
		const struct weft_wait_node *node = &waits->nodes[i];
		char name[WEFT_NAME_BYTES];
		for (uint32_t d = 1; d < node->depth && d < MAX_DRAWN_DEPTH; d++)
			fputs(more[d] ? "│  " : "   ", stdout);
		if (node->depth > MAX_DRAWN_DEPTH)
			printf("(%" PRIu32 ") ", node->depth);
		if (node->depth > 0)
			fputs(node->last ? "└─ " : "├─ ", stdout);
		if (node->depth <= MAX_DRAWN_DEPTH)
			more[node->depth] = !node->last;
		fputs(weft_name_promise(m, node->promise, name), stdout);
		if (*weft_name_site(m, node->promise, name))
			printf("  at %s", name);
		const uint32_t peer = weft_peer_of(m, node->promise);
		if (peer != WEFT_NONE)
			printf("  to %s in %s", weft_name_promise(m, peer, name), m->trace->parts[weft_part_of(m, peer)].name);
		if (node->wait != WEFT_NONE)
			put_since(m, waits->waits[node->wait].since_ns);
		if (node->wait != WEFT_NONE && is_inferred(m, &waits->waits[node->wait]))
			fputs("  (inferred)", stdout);
		if (node->wait != WEFT_NONE && waits->waits[node->wait].in_cycle)
			fputs("  in a cycle", stdout);
		if (!node->is_repeated)
			put_callers(m, node->promise);
		puts(node->is_repeated ? "  (see above)" : "");
	}
	if (waits->cycles)
		printf("%zu cycle%s of promises that wait for each other\n", waits->cycles, waits->cycles == 1 ? "" : "s");
	cli_put_seen_runners(m, waits);
}

/* The last printed state. */
struct following {
	bool json;
	uint64_t printed_hash; /* hash of the waits that were printed last; 0 if none were printed */
};

/* Prints the waits if they have changed. */
static int show_waits(void *ctx, const struct cli_update *update)
{
	struct following *f = ctx;
	const struct weft_model *m = update->model;
	struct weft_waits *waits = NULL;
	struct weft_error err;
	uint64_t hash = 1;
	if (weft_waits_create(&waits, m, m->end_ns, &err) < 0)
		return cli_fail_error(&err);
	for (size_t i = 0; i < waits->count; i++) {
		const int64_t pair[] = {m->promises[waits->waits[i].from].id, m->promises[waits->waits[i].to].id, (int64_t)hash};
		hash = weft_hash_bytes((const char *)pair, sizeof pair);
	}
	if (hash != f->printed_hash) {
		f->printed_hash = hash;
		if (f->json)
			printf("{\"at_ns\":%" PRId64 ",\"waits\":%zu}\n", m->end_ns, waits->count);
		else {
			fputs("at ", stdout);
			cli_put_seconds(m->end_ns);
			puts(waits->count ? ":" : ": no promise waits");
		}
		(f->json ? put_json : cli_put_wait_tree)(m, waits);
		fflush(stdout);
	}
	weft_waits_destroy(waits);
	return -1;
}

static int follow_waits(const struct cli_args *args, bool json, bool parts)
{
	struct following following = {.json = json};
	const struct weft_follower_options options = {.model = {.keep_binds = true, .keep_parts = parts}};
	const int exit = cli_follow(args, &options, show_waits, &following);
	return exit < 0 ? cli_finish(CLI_OK) : exit;
}

int cli_waits(struct cli_args *args)
{
	bool json = false, dot = false, parts = false, follow = false;
	int64_t at_ns = -1;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"at", 0, CLI_TIME, &at_ns, "T", "print the waits at this time since the first event (default: the end)"},
	    {"dot", 0, CLI_FLAG, &dot, NULL, "print a graph for Graphviz"},
	    CLI_OPTION_FOLLOW(&follow),
	    CLI_OPTION_PARTS(&parts),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ANY_NUMBER);
	if (exit >= 0)
		return exit;
	if (args->argc == 0)
		return follow || dot || json || at_ns >= 0 || parts
			   ? cli_fail_verb("waits", "no trace; --follow, --dot, --json, --parts and --at need a TRACE")
			   : cli_waits_all();
	if (follow && (dot || at_ns >= 0))
		return cli_fail_verb("waits", "--follow cannot be combined with --at or --dot");
	if (follow)
		return follow_waits(args, json, parts);
	struct cli_input input;
	exit = cli_open_model(&input, args, CLI_KEEP_BINDS | (parts ? CLI_KEEP_PARTS : 0));
	if (exit >= 0)
		return exit;
	struct weft_waits *waits = NULL;
	struct weft_error err;
	if (weft_waits_create(&waits, input.model, at_ns < 0 ? input.model->end_ns : at_ns, &err) < 0) {
		exit = cli_fail_error(&err);
	} else {
		if (!json && !dot)
			cli_put_seen(input.model);
		(json ? put_json : dot ? put_dot : cli_put_wait_tree)(input.model, waits);
		exit = cli_finish(CLI_OK);
	}
	weft_waits_destroy(waits);
	cli_close(&input);
	return exit;
}
