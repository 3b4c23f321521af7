/* check.c: weft check: rules for CI.  SPDX-License-Identifier: ISC */
#include "analysis/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "trace/several.h"

struct checked_rule {
	const char *text;
	struct weft_rule rule;
	struct weft_checked checked;
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

static void put_people(const struct checked_rule *r)
{
	printf("%-7s  ", outcomes[r->checked.outcome]);
	cli_put_text((struct weft_str){r->text, (uint32_t)strlen(r->text)});
	if (r->checked.outcome != WEFT_RULE_UNKNOWN)
		printf("  %s", r->value);
	if (r->checked.why[0] && r->checked.outcome != WEFT_RULE_KEPT)
		printf("  (%s)", r->checked.why);
	putchar('\n');
}

/* ---- JUnit ---- */

/* Of XML 1.0, in which most control characters cannot be said at all. */
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
		if (rules[i].checked.outcome == WEFT_RULE_KEPT) {
			fputs("\"/>\n", out);
			continue;
		}
		fputs("\">\n    <failure message=\"", out);
		if (rules[i].checked.outcome == WEFT_RULE_BROKEN)
			fprintf(out, "it is %s%s", rules[i].value, rules[i].checked.why[0] ? ": " : "");
		put_xml(out, rules[i].checked.why);
		fputs("\"/>\n  </testcase>\n", out);
	}
	fputs("</testsuite>\n", out);
	bool bad = ferror(out);
	if (fclose(out) != 0 || bad)
		return cli_fail("%s: %s", path, strerror(errno));
	return CLI_FINE;
}

static void put_rule(struct checked_rule *r, bool json)
{
	if (r->rule.is_time)
		weft_duration_format(r->value, sizeof r->value, r->checked.value);
	else
		snprintf(r->value, sizeof r->value, "%" PRId64, r->checked.value);
	(json ? put_json : put_people)(r);
}

static int end_check(const char *name, const struct checked_rule *rules, int count, const char *junit)
{
	int broken = 0;
	for (int i = 0; i < count; i++)
		broken += rules[i].checked.outcome != WEFT_RULE_KEPT;
	int exit = junit ? write_junit(junit, name, rules, count, broken) : CLI_FINE;
	return exit == CLI_FINE ? cli_finish(broken ? CLI_FOUND : CLI_FINE) : exit;
}

static int check_all(const struct cli_input *input, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct weft_error err;
	for (int i = 0; i < count; i++) {
		if (weft_rule_check(&rules[i].checked, input->model, &rules[i].rule, &err) < 0)
			return cli_fail_error(&err);
		put_rule(&rules[i], json);
	}
	return end_check(input->name, rules, count, junit);
}

/* ---- Of a trace that is being recorded ---- */

struct following {
	struct checked_rule *rules;
	int count;
	bool json, has_told;
	struct weft_tally *tallies;
};

/* Tells of the rules whose outcome is another one now. */
static int show_rules(void *ctx, const struct cli_newest *newest)
{
	struct following *f = ctx;
	struct weft_error err;
	for (int i = 0, counted = 0; i < f->count; i++) {
		struct checked_rule *r = &f->rules[i];
		struct weft_tally asked;
		const enum weft_outcome before = r->checked.outcome;
		const struct weft_tally *tally = weft_rule_tally(&asked, &r->rule) ? &f->tallies[counted++] : NULL;
		if (weft_rule_check_on(&r->checked, newest->model, &r->rule, tally, newest->counted_ns, &err) < 0)
			return cli_fail_error(&err);
		if (!f->has_told || before != r->checked.outcome)
			put_rule(r, f->json);
	}
	fflush(stdout);
	f->has_told = true;
	return -1;
}

static int follow_rules(const struct cli_args *args, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct following f = {
	    .rules = rules, .count = count, .json = json, .tallies = calloc((size_t)count + 1, sizeof *f.tallies)};
	if (!f.tallies)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_follower_options options = {.model.keep_binds = true, .tallies = f.tallies};
	for (int i = 0; i < count; i++) {
		options.tally_count += weft_rule_tally(&f.tallies[options.tally_count], &rules[i].rule);
		/* Findings are about more than what is new, and the kernel's word comes late. */
		if (rules[i].rule.measure == WEFT_MEASURE_FINDINGS || rules[i].rule.measure == WEFT_MEASURE_OFFCPU) {
			options.window_ns = CLI_WINDOW_NS;
			options.window_events = CLI_WINDOW_EVENTS;
		}
	}
	char name[300];
	int exit = cli_follow(args, &options, show_rules, &f);
	if (exit < 0)
		exit = end_check(weft_several_name(name, sizeof name, (const char *const *)args->argv, (size_t)args->argc), rules,
		    count, junit);
	free(f.tallies);
	return exit;
}

static void print_measures(void)
{
	static const struct {
		const char *name, *argument, *text;
	} measures[] = {
#define MEASURE(UPPER, name, needs_argument, is_time, text) {name, needs_argument ? "(LABEL)" : "", text},
	    WEFT_MEASURES(MEASURE)
#undef MEASURE
	};
	puts("\nA RULE is a measure, one of < <= = != >= >, and a number or a time.  measures:");
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
		char name[24];
		snprintf(name, sizeof name, "%s%s", measures[i].name, measures[i].argument);
		printf("      %-18s %s\n", name, measures[i].text);
	}
}

/* All behind the first one that are no rules, and are there; at least one rule must be left. */
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
	    {"junit", 0, CLI_TEXT, &junit, "FILE", "writes the outcomes as JUnit's XML, too"},
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
			exit = cli_fail("check: %s", err.what);
	}
	struct cli_input input = {0};
	if (exit < 0 && follow)
		exit = follow_rules(&traces, rules, count, json, junit);
	else if (exit < 0)
		exit = cli_open_joined(&input, &traces);
	if (exit < 0) {
		exit = cli_build_model(&input, CLI_KEEP_BINDS);
		if (exit < 0)
			exit = check_all(&input, rules, count, json, junit);
		cli_close(&input);
	}
	free(rules);
	return exit;
}
