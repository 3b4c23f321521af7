/* check.c: implements weft check: rules for CI.  SPDX-License-Identifier: ISC */
#include "analysis/queries/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "trace/multi_open.h"

struct checked_rule {
	const char *text;
	struct weft_rule rule;
	struct weft_rule_result checked;
	char value[WEFT_DURATION_BYTES];
};

static const char *const outcomes[] = {"ok", "broken", "unknown"};

static void put_json(const struct checked_rule *r)
{
	fputs("{\"rule\":", stdout);
	cli_put_cstring(r->text);
	printf(",\"outcome\":\"%s\",\"value%s\":", outcomes[r->checked.outcome], r->rule.is_time ? "_ns" : "");
	if (r->checked.outcome == WEFT_RULE_UNKNOWN)
		fputs("null", stdout);
	else
		printf("%" PRId64, r->checked.value);
	fputs(",\"why\":", stdout);
	cli_put_cstring(r->checked.why);
	puts("}");
}

static void put_text(const struct checked_rule *r)
{
	printf("%-7s  ", outcomes[r->checked.outcome]);
	cli_put_text((struct weft_str){r->text, (uint32_t)strlen(r->text)});
	if (r->checked.outcome != WEFT_RULE_UNKNOWN)
		printf("  %s", r->value);
	if (r->checked.why[0] && r->checked.outcome != WEFT_RULE_PASSED)
		printf("  (%s)", r->checked.why);
	putchar('\n');
}

/* ---- JUnit ---- */

/* XML 1.0 cannot express most control characters. */
static void put_xml(FILE *out, const char *text)
{
	char clean[1024];
	weft_utf8_copy(clean, sizeof clean, (struct weft_str){text, (uint32_t)strlen(text)});
	for (const char *c = clean; *c; c++)
		switch (*c) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		default: fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
		}
}

static int write_junit(const char *path, const char *trace, const struct checked_rule *rules, int count, int broken)
{
	FILE *out = fopen(path, "w");
	if (!out)
		return cli_fail("%s: %s", path, strerror(errno));
	fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"weft check\" tests=\"%d\" failures=\"%d\">\n",
	    count, broken);
	for (int i = 0; i < count; i++) {
		fputs("  <testcase classname=\"", out);
		put_xml(out, trace);
		fputs("\" name=\"", out);
		put_xml(out, rules[i].text);
		if (rules[i].checked.outcome == WEFT_RULE_PASSED) {
			fputs("\"/>\n", out);
			continue;
		}
		fputs("\">\n    <failure message=\"", out);
		if (rules[i].checked.outcome == WEFT_RULE_VIOLATED)
			fprintf(out, "the value is %s%s", rules[i].value, rules[i].checked.why[0] ? ": " : "");
		put_xml(out, rules[i].checked.why);
		fputs("\"/>\n  </testcase>\n", out);
	}
	fputs("</testsuite>\n", out);
	bool bad = ferror(out);
	if (fclose(out) != 0 || bad)
		return cli_fail("%s: %s", path, strerror(errno));
	return CLI_OK;
}

static void put_rule(struct checked_rule *r, bool json)
{
	if (r->rule.is_time)
		weft_duration_format(r->value, sizeof r->value, r->checked.value);
	else
		snprintf(r->value, sizeof r->value, "%" PRId64, r->checked.value);
	(json ? put_json : put_text)(r);
}

static int finish_check(const char *name, const struct checked_rule *rules, int count, const char *junit)
{
	int broken = 0;
	for (int i = 0; i < count; i++)
		broken += rules[i].checked.outcome != WEFT_RULE_PASSED;
	int exit = junit ? write_junit(junit, name, rules, count, broken) : CLI_OK;
	return exit == CLI_OK ? cli_finish(broken ? CLI_FOUND : CLI_OK) : exit;
}

static int check_trace(const struct cli_input *input, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct weft_error err;
	for (int i = 0; i < count; i++) {
		if (weft_rule_check(&rules[i].checked, input->model, &rules[i].rule, &err) < 0)
			return cli_fail_error(&err);
		put_rule(&rules[i], json);
	}
	return finish_check(input->name, rules, count, junit);
}

/* ---- Of a trace that is being recorded ---- */

struct following {
	struct checked_rule *rules;
	int count;
	bool json, has_printed;
	struct weft_running_stats *stats;
};

/* Prints the rules whose outcome has changed. */
static int show_rules(void *ctx, const struct cli_update *update)
{
	struct following *f = ctx;
	struct weft_error err;
	for (int i = 0, counted = 0; i < f->count; i++) {
		struct checked_rule *r = &f->rules[i];
		struct weft_running_stats asked;
		const enum weft_rule_outcome before = r->checked.outcome;
		const struct weft_running_stats *tally = weft_rule_running_stats(&asked, &r->rule) ? &f->stats[counted++] : NULL;
		if (weft_rule_check_followed(&r->checked, update->model, &r->rule, tally, update->stats_span_ns, &err) < 0)
			return cli_fail_error(&err);
		if (!f->has_printed || before != r->checked.outcome)
			put_rule(r, f->json);
	}
	fflush(stdout);
	f->has_printed = true;
	return -1;
}

static int follow_rules(const struct cli_args *args, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct following f = {.rules = rules, .count = count, .json = json, .stats = calloc((size_t)count + 1, sizeof *f.stats)};
	if (!f.stats)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_follower_options options = {.model.keep_binds = true, .stats = f.stats};
	for (int i = 0; i < count; i++) {
		options.stats_count += weft_rule_running_stats(&f.stats[options.stats_count], &rules[i].rule);
		/* Findings need more than the new events, and kernel events arrive late. */
		if (rules[i].rule.measure == WEFT_MEASURE_FINDINGS || rules[i].rule.measure == WEFT_MEASURE_OFFCPU) {
			options.window_ns = CLI_WINDOW_NS;
			options.window_events = CLI_WINDOW_EVENTS;
		}
	}
	char name[300];
	int exit = cli_follow(args, &options, show_rules, &f);
	if (exit < 0)
		exit = finish_check(
		    weft_multi_name(name, sizeof name, (const char *const *)args->argv, (size_t)args->argc), rules, count, junit);
	free(f.stats);
	return exit;
}

static void print_measures(bool as_markdown)
{
	static const char head[] = "A RULE is a measure, one of < <= = != >= >, and a number or a time.";
	static const struct {
		const char *name, *argument, *text;
	} measures[] = {
#define MEASURE(UPPER, name, needs_argument, is_time, text) {name, needs_argument ? "(LABEL)" : "", text},
	    WEFT_MEASURES(MEASURE)
#undef MEASURE
	};
	printf(as_markdown ? "## Rules\n%s\nMeasures are:\n" : "\n%s  measures:\n", head);
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
		char name[24];
		snprintf(name, sizeof name, "%s%s", measures[i].name, measures[i].argument);
		printf(as_markdown ? "`%s`\n: %s\n" : "      %-18s %s\n", name, measures[i].text);
	}
}

/* Counts the traces: operands after the first that are existing paths, not rules.  At least one rule must be left. */
static int count_traces(const struct cli_args *args)
{
	int count = 1;
	while (count + 1 < args->argc && !strpbrk(args->argv[count], "<>=") && access(args->argv[count], F_OK) == 0)
		count++;
	return count;
}

int cli_check(struct cli_args *args)
{
	bool json = false, follow = false;
	const char *junit = NULL;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"junit", 0, CLI_TEXT, &junit, "FILE", "also write the outcomes as JUnit XML"},
	    CLI_OPTION_FOLLOW(&follow),
	    CLI_OPTION_END,
	};
	args->print_more = print_measures;
	int exit = cli_parse(args, options, -2);
	if (exit >= 0)
		return exit;
	struct cli_args traces = *args;
	traces.argc = count_traces(args);
	int count = args->argc - traces.argc;
	struct checked_rule *rules = calloc((size_t)count, sizeof *rules);
	if (!rules)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_error err;
	for (int i = 0; i < count && exit < 0; i++) {
		rules[i].text = args->argv[traces.argc + i];
		if (weft_rule_parse(&rules[i].rule, rules[i].text, &err) < 0)
			exit = cli_fail_verb("check", "%s", err.what);
	}
	struct cli_input input = {0};
	if (exit < 0 && follow)
		exit = follow_rules(&traces, rules, count, json, junit);
	else if (exit < 0)
		exit = cli_open_joined(&input, &traces);
	if (exit < 0) {
		exit = cli_build_model(&input, CLI_KEEP_BINDS);
		if (exit < 0)
			exit = check_trace(&input, rules, count, json, junit);
		cli_close(&input);
	}
	free(rules);
	return exit;
}
