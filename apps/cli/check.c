/* check.c: implements weft check, which checks rules in CI.  SPDX-License-Identifier: ISC */
#include "analysis/queries/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "rules.h"
#include "trace/multi_open.h"

struct checked_rule {
	const char *text;
	struct weft_rule rule;
	struct weft_rule_window *window; /* state of a rule over time windows; NULL if the rule is about the whole trace */
	struct weft_rule_result checked;
	char value[WEFT_DURATION_BYTES];
};

static const char *const outcomes[] = {"ok", "broken", "unknown"};

static void put_json(const struct checked_rule *r)
{
	fputs("{\"rule\":", stdout);
	cli_put_cstring(r->text);
	printf(",\"outcome\":\"%s\",\"value%s\":", outcomes[r->checked.outcome],
	    r->rule.is_time    ? "_ns"
	    : r->rule.is_share ? "_percent"
			       : "");
	if (r->checked.outcome == WEFT_RULE_UNKNOWN)
		fputs("null", stdout);
	else if (r->rule.is_share)
		printf("%" PRId64 ".%03" PRId64, r->checked.value / 1000, r->checked.value % 1000);
	else
		printf("%" PRId64, r->checked.value);
	if (r->window)
		printf(",\"times_broken\":%" PRIu64, r->checked.breaches);
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

/* Replaces most control characters, which XML 1.0 cannot express. */
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
	weft_rule_format_value(r->value, &r->rule, r->checked.value);
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

/* Checks a rule on a trace that has ended. */
static int check_rule(struct checked_rule *r, const struct weft_model *model, struct weft_error *err)
{
	if (!r->window)
		return weft_rule_check(&r->checked, model, &r->rule, err);
	const int status = weft_rule_window_update(r->window, model, 0, err);
	if (status == WEFT_OK)
		r->checked = weft_rule_window_result(r->window, true);
	return status;
}

static int check_trace(const struct cli_input *input, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct weft_error err;
	for (int i = 0; i < count; i++) {
		if (check_rule(&rules[i], input->model, &err) < 0)
			return cli_fail_error(&err);
		put_rule(&rules[i], json);
	}
	return finish_check(input->name, rules, count, junit);
}

/* ---- Rules of a trace that is being recorded ---- */

struct following {
	struct checked_rule *rules;
	int count;
	bool json, has_printed;
	struct weft_running_stats *stats;
};

/* Checks a rule on the events so far; `tally`, which may be NULL, counts the outcomes. */
static int check_followed_rule(
    struct checked_rule *r, const struct cli_update *update, const struct weft_running_stats *tally, struct weft_error *err)
{
	if (!r->window)
		return weft_rule_check_followed(&r->checked, update->model, &r->rule, tally, update->stats_span_ns, err);
	const int status = weft_rule_window_update(r->window, update->model, 0, err);
	if (status == WEFT_OK)
		r->checked = weft_rule_window_result(r->window, false);
	return status;
}

/* Prints the rules whose outcome has changed, and the rules that were broken again. */
static int show_rules(void *ctx, const struct cli_update *update)
{
	struct following *f = ctx;
	struct weft_error err;
	for (int i = 0, counted = 0; i < f->count; i++) {
		struct checked_rule *r = &f->rules[i];
		struct weft_running_stats asked;
		const struct weft_rule_result before = r->checked;
		const struct weft_running_stats *tally =
		    !r->window && weft_rule_running_stats(&asked, &r->rule) ? &f->stats[counted++] : NULL;
		if (check_followed_rule(r, update, tally, &err) < 0)
			return cli_fail_error(&err);
		if (!f->has_printed || before.outcome != r->checked.outcome || before.breaches != r->checked.breaches)
			put_rule(r, f->json);
	}
	fflush(stdout);
	f->has_printed = true;
	return -1;
}

/* Without a complete window, the incomplete last window of each trace counts. */
static void end_windows(const struct following *f)
{
	for (int i = 0; i < f->count; i++) {
		struct checked_rule *r = &f->rules[i];
		const enum weft_rule_outcome before = r->checked.outcome;
		if (!r->window)
			continue;
		r->checked = weft_rule_window_result(r->window, true);
		if (before != r->checked.outcome)
			put_rule(r, f->json);
	}
}

static int follow_rules(const struct cli_args *args, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct following f = {.rules = rules, .count = count, .json = json, .stats = calloc((size_t)count + 1, sizeof *f.stats)};
	if (!f.stats)
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_follower_options options = {.model.keep_binds = true, .stats = f.stats};
	for (int i = 0; i < count; i++) {
		options.stats_count += !rules[i].window && weft_rule_running_stats(&f.stats[options.stats_count], &rules[i].rule);
		/* Rules over a window, and rules about findings or time off CPU, need the whole trace: findings and stalls need
		 * more than the new events, and kernel events arrive late. */
		if (rules[i].window || rules[i].rule.measure == WEFT_MEASURE_FINDINGS ||
		    rules[i].rule.measure == WEFT_MEASURE_OFFCPU) {
			options.window_ns = CLI_WINDOW_NS;
			options.window_events = CLI_WINDOW_EVENTS;
		}
	}
	char name[300];
	int exit = cli_follow(args, &options, show_rules, &f);
	if (exit < 0)
		end_windows(&f);
	if (exit < 0)
		exit = finish_check(
		    weft_multi_name(name, sizeof name, (const char *const *)args->argv, (size_t)args->argc), rules, count, junit);
	free(f.stats);
	return exit;
}

/* Counts the traces among the operands: operands after the first that are existing paths, and not rules.  At least one operand
 * must be left as a rule, unless a file has rules. */
static int count_traces(const struct cli_args *args, bool has_file)
{
	int count = 1;
	while (count + !has_file < args->argc && !cli_rules_is_rule(args->argv[count]) && access(args->argv[count], F_OK) == 0)
		count++;
	return count;
}

static int check_traces(const struct cli_args *traces, struct checked_rule *rules, int count, bool json, const char *junit)
{
	struct cli_input input = {0};
	int exit = cli_open_joined(&input, traces);
	if (exit >= 0)
		return exit;
	exit = cli_build_model(&input, CLI_KEEP_BINDS);
	if (exit < 0)
		exit = check_trace(&input, rules, count, json, junit);
	cli_close(&input);
	return exit;
}

int cli_check(struct cli_args *args)
{
	bool json = false, follow = false;
	const char *junit = NULL;
	struct cli_rules rules = {0};
	const struct cli_option options[] = {
	    CLI_OPTIONS_RULES(&rules),
	    CLI_OPTION_JSON(&json),
	    {"junit", 0, CLI_TEXT, &junit, "FILE", "also write the outcomes as JUnit XML"},
	    CLI_OPTION_FOLLOW(&follow),
	    CLI_OPTION_END,
	};
	args->print_more = cli_rules_print_help;
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	struct cli_args traces = *args;
	traces.argc = count_traces(args, rules.file);
	exit = cli_rules_read(&rules, "check", args->argv + traces.argc, args->argc - traces.argc);
	if (exit < 0 && rules.all.count == 0)
		exit = cli_fail_verb("check", "no rule; usage: weft check [OPTIONS] %s", args->operands);
	const int count = (int)rules.all.count;
	struct weft_rule_window **windows = exit < 0 ? cli_rule_windows_create(&rules) : NULL;
	struct checked_rule *checked = calloc((size_t)count + 1, sizeof *checked);
	if (exit < 0 && checked && windows) {
		for (int i = 0; i < count; i++)
			checked[i] = (struct checked_rule){
			    .text = rules.all.items[i].text, .rule = rules.all.items[i].rule, .window = windows[i]};
		exit = follow ? follow_rules(&traces, checked, count, json, junit)
			      : check_traces(&traces, checked, count, json, junit);
	} else if (exit < 0) {
		exit = cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	}
	free(checked);
	cli_rule_windows_free(windows, &rules);
	cli_rules_free(&rules);
	return exit;
}
