/* explain.c: implements weft explain: reports with evidence what went wrong in a program.  SPDX-License-Identifier: ISC */
#include "analysis/findings/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/index/names.h"
#include "analysis/queries/waits.h"
#include "base/duration.h"
#include "cli.h"

static const char *const role_names[] = {"time", "chain", "cause", "victim", "like", "note"};

/* ---- For programs ---- */

static void put_id_json(const struct weft_model *model, const char *name, uint32_t promise)
{
	if (promise == WEFT_NONE)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%" PRId64, name, model->promises[promise].id);
}

/* Prints the fragment of a viewer's URL that selects the finding's root promise and shows the time of the finding, with a tenth
 * more on each side. */
static void put_link(const struct weft_model *model, const struct weft_finding *finding)
{
	char from[WEFT_DURATION_BYTES], to[WEFT_DURATION_BYTES];
	int64_t margin_ns = (finding->end_ns - finding->start_ns) / 10 + 1000;
	weft_duration_format_exact(from, sizeof from, finding->start_ns > margin_ns ? finding->start_ns - margin_ns : 0);
	weft_duration_format_exact(to, sizeof to, finding->end_ns + margin_ns);
	printf(",\"link\":\"#t=%s..%s", from, to);
	if (finding->root != WEFT_SYSTEM)
		printf("&sel=%" PRId64, model->promises[finding->root].id);
	putchar('"');
}

static void put_json(const struct weft_model *model, const struct weft_finding *finding)
{
	printf("{\"finding\":\"%s\",\"severity\":\"%s\",\"verdict\":", weft_finding_name(finding->kind),
	    weft_severity_name(finding->severity));
	if (finding->verdict == WEFT_VERDICT_NONE)
		fputs("null", stdout);
	else
		cli_put_cstring(weft_verdict_name(finding->verdict));
	printf(",\"sure\":%s,\"doubt\":", finding->sure ? "true" : "false");
	if (finding->doubt)
		cli_put_cstring(finding->doubt);
	else
		fputs("null", stdout);
	put_id_json(model, "promise", finding->promise);
	put_id_json(model, "root", finding->root);
	printf(",\"count\":%" PRIu32 ",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"weight\":%" PRIu64 ",\"title\":",
	    finding->count, finding->start_ns, finding->end_ns, finding->weight);
	cli_put_cstring(finding->title);
	fputs(",\"next\":", stdout);
	cli_put_cstring(finding->next);
	put_link(model, finding);
	fputs(",\"evidence\":[", stdout);
	for (size_t i = 0; i < finding->evidence_count; i++) {
		const struct weft_evidence *line = &finding->evidence[i];
		printf("%s{\"role\":\"%s\",\"time_ns\":", i ? "," : "", role_names[line->role]);
		if (line->time_ns == WEFT_NO_TIME)
			fputs("null", stdout);
		else
			printf("%" PRId64, line->time_ns);
		put_id_json(model, "promise", line->promise);
		fputs(",\"text\":", stdout);
		cli_put_cstring(line->text);
		putchar('}');
	}
	puts("]}");
}

/* ---- For people ---- */

struct colours {
	const char *bad, *unsure, *faint, *off;
};

static struct colours choose_colours(void)
{
	const char *no = getenv("NO_COLOR");
	if (!isatty(STDOUT_FILENO) || (no && *no))
		return (struct colours){"", "", "", ""};
	return (struct colours){"\033[1;31m", "\033[1;33m", "\033[2m", "\033[0m"};
}

static void put_text(const struct weft_finding *finding, const struct colours *c)
{
	static const char *const headings[] = {
	    [WEFT_EVIDENCE_TIME] = "where its time went",
	    [WEFT_EVIDENCE_CHAIN] = "wait chain",
	    [WEFT_EVIDENCE_CAUSE] = "what happened",
	    [WEFT_EVIDENCE_VICTIM] = "delayed promises",
	    [WEFT_EVIDENCE_LIKE] = "similar findings",
	    [WEFT_EVIDENCE_NOTE] = "other facts",
	};
	bool answer = finding->kind == WEFT_FINDING_ANSWER;
	printf("%s%s%s%s: %s\n",
	    answer          ? ""
	    : finding->sure ? c->bad
			    : c->unsure,
	    weft_finding_name(finding->kind), c->off, finding->sure ? "" : " (uncertain)", finding->title);
	for (int role = 0; role <= WEFT_EVIDENCE_NOTE; role++) {
		bool first = true;
		for (size_t i = 0; i < finding->evidence_count; i++) {
			const struct weft_evidence *line = &finding->evidence[i];
			if ((int)line->role != role)
				continue;
			if (first)
				printf("  %s%s%s\n", c->faint, headings[role], c->off);
			first = false;
			fputs("    ", stdout);
			if (line->time_ns == WEFT_NO_TIME)
				printf("%-12s", "");
			else
				cli_put_seconds(line->time_ns);
			printf("  %s\n", line->text);
		}
	}
	if (finding->doubt)
		printf("  %suncertain because%s\n    %s\n", c->faint, c->off, finding->doubt);
	if (finding->next[0])
		printf("  %snext step%s\n    %s\n", c->faint, c->off, finding->next);
}

/* Prints for each OS thread of a program that was seen once what the thread waits for. */
static int put_threads(const struct cli_input *input)
{
	struct weft_waits *waits;
	struct weft_error err;
	if (weft_waits_create(&waits, input->model, input->model->end_ns, &err) < 0)
		return cli_fail_error(&err);
	puts("no certain fault; the OS threads of the process do this:");
	cli_put_wait_tree(input->model, waits);
	weft_waits_destroy(waits);
	return CLI_OK;
}

/* Returns whether the trace shows an event loop or a callback that ran. */
static bool has_callbacks(const struct weft_model *m)
{
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) ||
		    (m->promises[p].runs < m->promises[p + 1].runs && !weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD)))
			return true;
	return false;
}

/* Prints what was examined if there is no finding, because an empty answer would leave open whether weft understood the
 * program. */
static int put_nothing(const struct cli_input *input, const struct weft_findings *findings)
{
	const struct weft_model *m = input->model;
	if (m->trace->is_seen_once)
		return put_threads(input);
	char span[WEFT_DURATION_BYTES];
	weft_duration_format(span, sizeof span, m->end_ns);
	printf("nothing found: %" PRIu64 " events in %s, %zu promise%s\n", m->events, span, m->promise_count - 1,
	    m->promise_count == 2 ? "" : "s");
	printf("  %-12s%d checks (weft help findings); delays from 10 ms on\n", "looked for", WEFT_FINDING_KINDS);
	if (!has_callbacks(m))
		printf("  %-12sno event loop that weft knows: weft does not see which callback runs\n", "lacks");
	const int exit = cli_put_summary(m, findings, false);
	return exit < 0 ? CLI_OK : exit;
}

static int put_findings(const struct cli_input *input, const struct weft_findings *findings, bool json, bool one)
{
	struct colours colours = choose_colours();
	bool found = false;
	if (!json && !one)
		cli_put_seen(input->model);
	for (size_t i = 0; i < findings->count && cli_stdout_ok(); i++) {
		const struct weft_finding *finding = &findings->findings[i];
		found |= finding->sure && finding->severity == WEFT_SEVERITY_ALARM;
		if (json) {
			put_json(input->model, finding);
			continue;
		}
		if (i > 0)
			putchar('\n');
		put_text(finding, &colours);
	}
	if (findings->count == 0 && !json && !one && put_nothing(input, findings) == CLI_ERROR)
		return CLI_ERROR;
	if (findings->left_out)
		cli_note("%s: %zu more findings of these types are not shown", input->name, findings->left_out);
	if (findings->doubt && !one)
		cli_note(
		    "%s: %s; findings that this could refute are left out or marked as uncertain", input->name, findings->doubt);
	return cli_finish(found ? CLI_FOUND : CLI_OK);
}

int cli_explain(struct cli_args *args)
{
	bool json = false, parts = false;
	const char *promise = NULL, *suppress = NULL;
	struct weft_explain_options explain = {0};
	explain.stall_ns = -1;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"promise", 'p', CLI_TEXT, &promise, "ID", "explain only the state of this promise"},
	    {"stall", 0, CLI_TIME, &explain.stall_ns, "T", "report delays of at least T (default: 10ms)"},
	    {"suppress", 0, CLI_TEXT, &suppress, "FILE",
		"leave out findings that a line of FILE matches: FINDING:PATTERN # REASON"},
	    CLI_OPTION_PARTS(&parts),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (explain.stall_ns < 0)
		explain.stall_ns = 0;
	struct cli_input input;
	/* Binds are kept as recorded: a bind waits from its creation on, even if pictures draw it elsewhere. */
	exit = cli_open_model(&input, args, CLI_KEEP_BINDS | (parts ? CLI_KEEP_PARTS : 0));
	if (exit >= 0)
		return exit;
	uint32_t which = WEFT_NONE;
	if (promise)
		exit = cli_find_promise(&input, promise, &which);
	if (exit < 0) {
		struct weft_findings *findings = NULL;
		struct weft_error err;
		int status = promise ? weft_explain_promise(&findings, input.model, which, NULL, &err)
				     : cli_explain_model(&findings, &input, &explain, &err);
		if (status < 0)
			exit = cli_fail_error(&err);
		else if (!suppress || (exit = cli_suppress_findings(suppress, &input, findings)) < 0)
			exit = put_findings(&input, findings, json, promise);
		weft_findings_destroy(findings);
	}
	cli_close(&input);
	return exit;
}
