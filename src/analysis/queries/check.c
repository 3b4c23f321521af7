/* check.c: parses rules for a trace, and measures whether a trace satisfies them.  SPDX-License-Identifier: ISC */
#include "analysis/queries/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "analysis/index/delays.h"
#include "analysis/index/link_index.h"
#include "analysis/index/names.h"
#include "analysis/queries/rule_private.h"
#include "base/duration.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/kernel.h"

static const struct {
	const char *name;
	bool needs_argument, is_time;
} measures[] = {
#define MEASURE(UPPER, name, argument, time, text) {name, argument, time},
    WEFT_MEASURES(MEASURE)
#undef MEASURE
};

/* ---- Parsing a rule ---- */

static bool parse_number(const char *text, int64_t *out)
{
	char *end;
	bool minus = *text == '-';
	if (strspn(text + minus, "0123456789") != strlen(text + minus) || text[minus] == '\0' || strlen(text) > 18)
		return false;
	*out = strtoll(text, &end, 10);
	return *end == '\0';
}

static const char *parse_relation(const char *text, enum weft_comparison *out)
{
	static const struct {
		const char *text;
		enum weft_comparison relation;
	} relations[] = {{"<=", WEFT_LESS_EQUAL}, {">=", WEFT_MORE_EQUAL}, {"!=", WEFT_NOT_EQUAL}, {"==", WEFT_EQUAL},
	    {"<", WEFT_LESS}, {">", WEFT_MORE}, {"=", WEFT_EQUAL}};
	for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
		size_t len = strlen(relations[i].text);
		if (strncmp(text, relations[i].text, len) == 0) {
			*out = relations[i].relation;
			return text + len;
		}
	}
	return NULL;
}

/* Parses "1%" or "0.125%" as thousandths of a percent. */
static bool parse_share(const char *text, size_t len, int64_t *out)
{
	int64_t whole = 0, scale = 1000;
	size_t i = 0;
	if (len < 2 || len > 8 || text[len - 1] != '%' || text[0] == '.')
		return false;
	for (; i < len - 1 && text[i] >= '0' && text[i] <= '9'; i++)
		whole = whole * 10 + (text[i] - '0');
	whole *= scale;
	i += text[i] == '.';
	for (; i < len - 1 && text[i] >= '0' && text[i] <= '9' && scale > 1; i++)
		whole += (text[i] - '0') * (scale /= 10);
	*out = whole;
	return i == len - 1;
}

/* Parses the length of a window, which may have the unit minutes, hours or days. */
static bool parse_window(const char *text, int64_t *out)
{
	static const struct {
		char unit;
		int64_t ns;
	} units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}};
	const size_t len = strlen(text), digits = strspn(text, "0123456789");
	int64_t count = 0;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (digits > 0 && digits < 6 && digits + 1 == len && text[digits] == units[i].unit) {
			*out = strtoll(text, NULL, 10) * units[i].ns * 1000000000;
			return *out > 0;
		}
	if (!weft_duration_parse(text, len, &count) || count < WEFT_RULE_LEAST_WINDOW_NS)
		return false;
	*out = count;
	return true;
}

static int parse_limit(struct weft_rule *rule, const char *text, const char *limit, struct weft_error *err)
{
	const size_t len = strcspn(limit, "/");
	char number[24];
	snprintf(number, sizeof number, "%.*s", (int)len, limit);
	rule->is_share = rule->measure == WEFT_MEASURE_FAILED && len > 0 && limit[len - 1] == '%';
	const bool is_read = rule->is_time    ? weft_duration_parse(limit, len, &rule->limit)
			     : rule->is_share ? parse_share(limit, len, &rule->limit)
					      : len < sizeof number && parse_number(number, &rule->limit);
	if (!is_read)
		return weft_error_set(err, WEFT_EINVAL, "%.80s: the rule must end with %s", text,
		    rule->is_time ? "a time, such as 10ms" : "a number");
	if (!limit[len])
		return WEFT_OK;
	if (!parse_window(limit + len + 1, &rule->window_ns))
		return weft_error_set(
		    err, WEFT_EINVAL, "%.80s: after \"/\" a window of at least 100ms is missing, such as 10s or 1m", text);
	if (rule->measure == WEFT_MEASURE_LOST)
		return weft_error_set(
		    err, WEFT_EINVAL, "%.80s: this measure takes no window, since the time of lost events is unknown", text);
	return WEFT_OK;
}

static bool is_finding_name(struct weft_str text)
{
	for (int kind = 0; kind < WEFT_FINDING_KINDS; kind++) {
		const char *name = weft_finding_name((enum weft_finding_kind)kind);
		if (weft_str_equal((struct weft_str){name, (uint32_t)strlen(name)}, text))
			return true;
	}
	return false;
}

/* Parses "uncertain", the name of a finding, or both, in the parentheses of findings(). */
static int parse_findings(struct weft_rule *rule, const char *text, struct weft_error *err)
{
	static const char word[] = "uncertain";
	struct weft_str *name = &rule->argument;
	const uint32_t len = sizeof word - 1;
	if (name->len >= len && memcmp(name->ptr, word, len) == 0 && (name->len == len || name->ptr[len] == ' ')) {
		rule->is_uncertain = true;
		rule->has_argument = name->len > len;
		*name = (struct weft_str){name->ptr + len + rule->has_argument, name->len - len - rule->has_argument};
	}
	if (rule->has_argument && !is_finding_name(*name))
		return weft_error_set(
		    err, WEFT_EINVAL, "%.80s: no finding has this name; 'weft help findings' lists all names", text);
	return WEFT_OK;
}

/* Parses the label in parentheses, and moves *at behind the closing parenthesis. */
static int parse_argument(struct weft_rule *rule, const char **at, const char *text, struct weft_error *err)
{
	const bool needs_argument = measures[rule->measure].needs_argument;
	if (**at == '(') {
		/* A label may contain parentheses, so the last ")" of the text closes it. */
		const char *close = strrchr(*at, ')');
		if (!close || close == *at + 1)
			return weft_error_set(err, WEFT_EINVAL, "%.80s: after \"(\" a label and \")\" are missing", text);
		rule->has_argument = true;
		rule->argument = (struct weft_str){*at + 1, (uint32_t)(close - *at - 1)};
		*at = close + 1;
	}
	if (rule->has_argument &&
	    (rule->measure == WEFT_MEASURE_LOST || rule->measure == WEFT_MEASURE_STALL || rule->measure == WEFT_MEASURE_OFFCPU))
		return weft_error_set(err, WEFT_EINVAL, "%.80s: this measure covers the whole trace and takes no label", text);
	if (!rule->has_argument && needs_argument)
		return weft_error_set(
		    err, WEFT_EINVAL, "%.80s: this measure needs a label: %s(LABEL)", text, measures[rule->measure].name);
	return rule->measure == WEFT_MEASURE_FINDINGS && rule->has_argument ? parse_findings(rule, text, err) : WEFT_OK;
}

int weft_rule_parse(struct weft_rule *out, const char *text, struct weft_error *err)
{
	struct weft_rule rule = {0};
	size_t len = strcspn(text, "(<>=!"), found = 0;
	while (
	    found < WEFT_MEASURES_END && (strlen(measures[found].name) != len || strncmp(measures[found].name, text, len) != 0))
		found++;
	if (found == WEFT_MEASURES_END)
		return weft_error_set(err, WEFT_EINVAL, "%.80s: unknown measure; 'weft check --help' lists all measures", text);
	rule.measure = (enum weft_measure)found;
	rule.is_time = measures[found].is_time;
	const char *at = text + len;
	int status = parse_argument(&rule, &at, text, err);
	if (status < 0)
		return status;
	const char *limit = parse_relation(at, &rule.relation);
	if (!limit)
		return weft_error_set(err, WEFT_EINVAL, "%.80s: a comparison is missing: <, <=, =, !=, >= or >", text);
	status = parse_limit(&rule, text, limit, err);
	if (status < 0)
		return status;
	*out = rule;
	return WEFT_OK;
}

const char *weft_rule_format_value(char buf[WEFT_DURATION_BYTES], const struct weft_rule *rule, int64_t value)
{
	if (rule->is_time)
		return weft_duration_text(buf, value);
	if (!rule->is_share)
		snprintf(buf, WEFT_DURATION_BYTES, "%" PRId64, value);
	else
		snprintf(buf, WEFT_DURATION_BYTES, "%" PRId64 ".%03" PRId64 " %%", value / 1000, value % 1000);
	return buf;
}

/* ---- Measuring ---- */

bool weft__rule_is_about(const struct weft_model *m, const struct weft_rule *rule, uint32_t p)
{
	uint32_t label = weft_first_label(m, p);
	return !rule->has_argument || (label != WEFT_NONE && weft_str_equal(weft_model_text(m, label), rule->argument));
}

static bool is_counted(
    const struct weft_model *m, const struct weft_rule *rule, const struct weft_link_index *link_index, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	if (!weft__rule_is_about(m, rule, p))
		return false;
	switch (rule->measure) {
	case WEFT_MEASURE_PENDING:
		return rule->has_argument ? link_index->ended_ns[p] == WEFT_NEVER
					  : (promise->flags & WEFT_PROMISE_NEVER_RESOLVED) != 0;
	case WEFT_MEASURE_FAILED: return promise->end == WEFT_END_FAILED && weft_has_ended(promise);
	default: return true;
	}
}

int64_t weft__rule_share(const struct weft_rule *rule, uint64_t failed, uint64_t ended)
{
	/* The value is rounded so that the comparison with the limit is exact. */
	const bool rounds_down = rule->relation == WEFT_LESS || rule->relation == WEFT_MORE_EQUAL;
	return (int64_t)((failed * 100000 + (rounds_down ? 0 : ended - 1)) / ended);
}

/* Replaces the number of failed promises by their share of `ended` promises. */
static void set_share(struct weft_rule_result *out, const struct weft_rule *rule, uint64_t ended)
{
	if (ended > 0)
		out->value = weft__rule_share(rule, (uint64_t)out->value, ended);
	else
		out->outcome = WEFT_RULE_UNKNOWN;
	snprintf(out->why, sizeof out->why, "of %" PRIu64 " promises that ended", ended);
}

static int count_promises(struct weft_rule_result *out, const struct weft_model *m, const struct weft_rule *rule)
{
	struct weft_link_index link_index;
	if (weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_NONE, NULL) < 0)
		return WEFT_ENOMEM;
	uint32_t first = WEFT_NONE;
	uint64_t ended = 0;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		ended += rule->is_share && link_index.ended_ns[p] != WEFT_NEVER && weft__rule_is_about(m, rule, p);
		if (!is_counted(m, rule, &link_index, p))
			continue;
		out->value++;
		first = first == WEFT_NONE ? p : first;
	}
	if (first != WEFT_NONE) {
		char name[WEFT_NAME_BYTES];
		snprintf(out->why, sizeof out->why, "the first: %s", weft_name_promise(m, first, name));
	}
	if (rule->is_share)
		set_share(out, rule, ended);
	weft_link_index_finish(&link_index);
	return WEFT_OK;
}

bool weft__rule_counts_finding(const struct weft_rule *rule, const struct weft_finding *finding)
{
	const char *name = weft_finding_name(finding->kind);
	if (finding->sure == rule->is_uncertain)
		return false;
	/* Without the name of a finding, a rule counts alarms only. */
	return rule->has_argument ? weft_str_equal((struct weft_str){name, (uint32_t)strlen(name)}, rule->argument)
				  : finding->severity == WEFT_SEVERITY_ALARM;
}

static int count_findings(
    struct weft_rule_result *out, const struct weft_model *m, const struct weft_rule *rule, struct weft_error *err)
{
	struct weft_findings *findings;
	int status = weft_explain(&findings, m, NULL, err);
	if (status < 0)
		return status;
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *finding = &findings->findings[i];
		const char *name = weft_finding_name(finding->kind);
		if (!weft__rule_counts_finding(rule, finding))
			continue;
		if (out->value++ == 0)
			snprintf(out->why, sizeof out->why, "%s: %.220s", name, finding->title);
	}
	weft_findings_destroy(findings);
	return WEFT_OK;
}

static int64_t count_lost(const struct weft_trace_info *info)
{
	uint64_t lost = info->lost_no_stream;
	for (size_t i = 0; i < info->stream_count; i++)
		lost += info->streams[i].lost_full + info->streams[i].lost_nested + info->streams[i].lost_overwritten;
	return lost > INT64_MAX ? INT64_MAX : (int64_t)lost;
}

static int measure_stall(struct weft_rule_result *out, const struct weft_model *m)
{
	char name[WEFT_NAME_BYTES], location[WEFT_NAME_BYTES];
	struct weft__stall stall;
	const int found = weft__stalls_find_longest(&stall, m);
	if (found <= 0)
		return found;
	out->value = stall.end_ns - stall.start_ns;
	if (stall.promise == WEFT_SYSTEM) {
		snprintf(out->why, sizeof out->why, "a pause: %s", weft_name_text(m, stall.pause, name, sizeof name));
	} else {
		weft_name_site(m, stall.promise, location);
		snprintf(out->why, sizeof out->why, "%s%s%.60s", weft_name_promise(m, stall.promise, name),
		    *location ? " at " : "", location);
	}
	return WEFT_OK;
}

static void measure_off_cpu(struct weft_rule_result *out, const struct weft_model *m)
{
	char name[WEFT_NAME_BYTES];
	if (!m->kernel || m->kernel->info.level == WEFT_LEVEL_SELF) {
		out->outcome = WEFT_RULE_UNKNOWN;
		snprintf(out->why, sizeof out->why, "the trace has no CPU times; record with weft record --kernel");
		return;
	}
	for (uint32_t p = 1; p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			const uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
			const int64_t off_ns = weft_kernel_off_ns(m, stream, m->runs[r].start_ns, m->runs[r].end_ns);
			if (off_ns <= out->value)
				continue;
			out->value = off_ns;
			snprintf(out->why, sizeof out->why, "%s", weft_name_promise(m, p, name));
		}
}

unsigned weft__rule_percentile(enum weft_measure measure)
{
	return measure == WEFT_MEASURE_P50 ? 50 : measure == WEFT_MEASURE_P90 ? 90 : measure == WEFT_MEASURE_P99 ? 99 : 100;
}

static int measure_lifetimes(struct weft_rule_result *out, const struct weft_model *m, const struct weft_rule *rule)
{
	struct weft_link_index link_index;
	WEFT_VEC(int64_t) lifetimes = {0};
	if (weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_NONE, NULL) < 0)
		return WEFT_ENOMEM;
	bool ok = true;
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		if (link_index.ended_ns[p] == WEFT_NEVER || !weft__rule_is_about(m, rule, p))
			continue;
		int64_t *lifetime = weft_vec_push(&lifetimes);
		if ((ok = lifetime))
			*lifetime = link_index.ended_ns[p] - m->promises[p].start_ns;
	}
	weft_link_index_finish(&link_index);
	if (ok && lifetimes.count > 0) {
		const size_t percent = weft__rule_percentile(rule->measure);
		weft_sort(lifetimes.items, lifetimes.count, sizeof *lifetimes.items, weft_compare_i64);
		out->value = lifetimes.items[(lifetimes.count * percent + 99) / 100 - 1];
		snprintf(out->why, sizeof out->why, "of %zu promises", lifetimes.count);
	} else if (ok) {
		out->outcome = WEFT_RULE_UNKNOWN;
		snprintf(out->why, sizeof out->why, "no promise with that label ended");
	}
	weft_vec_free(&lifetimes);
	return ok ? WEFT_OK : WEFT_ENOMEM;
}

static void measure_counter(struct weft_rule_result *out, const struct weft_model *m, const struct weft_rule *rule)
{
	out->outcome = WEFT_RULE_UNKNOWN;
	snprintf(out->why, sizeof out->why, "there is no such counter");
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct weft_counter *counter = &m->counters[i];
		if (!weft_str_equal(counter->name, rule->argument) || counter->count == 0)
			continue;
		out->outcome = WEFT_RULE_PASSED;
		out->value = counter->samples[counter->count - 1].value;
		out->why[0] = '\0';
	}
}

bool weft__rule_is_satisfied(enum weft_comparison relation, int64_t value, int64_t limit)
{
	switch (relation) {
	case WEFT_LESS: return value < limit;
	case WEFT_LESS_EQUAL: return value <= limit;
	case WEFT_EQUAL: return value == limit;
	case WEFT_NOT_EQUAL: return value != limit;
	case WEFT_MORE_EQUAL: return value >= limit;
	default: return value > limit;
	}
}

static void set_outcome(struct weft_rule_result *checked, const struct weft_rule *rule)
{
	if (checked->outcome == WEFT_RULE_PASSED && !weft__rule_is_satisfied(rule->relation, checked->value, rule->limit))
		checked->outcome = WEFT_RULE_VIOLATED;
}

int weft_rule_check(
    struct weft_rule_result *out, const struct weft_model *model, const struct weft_rule *rule, struct weft_error *err)
{
	struct weft_rule_result checked = {.outcome = WEFT_RULE_PASSED};
	int status = WEFT_OK;
	switch (rule->measure) {
	case WEFT_MEASURE_PENDING:
	case WEFT_MEASURE_FAILED:
	case WEFT_MEASURE_COUNT: status = count_promises(&checked, model, rule); break;
	case WEFT_MEASURE_FINDINGS: status = count_findings(&checked, model, rule, err); break;
	case WEFT_MEASURE_LOST: checked.value = count_lost(model->trace); break;
	case WEFT_MEASURE_STALL: status = measure_stall(&checked, model); break;
	case WEFT_MEASURE_OFFCPU: measure_off_cpu(&checked, model); break;
	case WEFT_MEASURE_COUNTER: measure_counter(&checked, model, rule); break;
	default: status = measure_lifetimes(&checked, model, rule); break;
	}
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	set_outcome(&checked, rule);
	*out = checked;
	return WEFT_OK;
}

/* ---- Rules for a trace that is followed ---- */

bool weft_rule_running_stats(struct weft_running_stats *out, const struct weft_rule *rule)
{
	switch (rule->measure) {
	case WEFT_MEASURE_PENDING:
		if (!rule->has_argument)
			return false;
		break;
	case WEFT_MEASURE_COUNT:
	case WEFT_MEASURE_FAILED:
	case WEFT_MEASURE_P50:
	case WEFT_MEASURE_P90:
	case WEFT_MEASURE_P99:
	case WEFT_MEASURE_MAX: break;
	default: return false;
	}
	*out = (struct weft_running_stats){.label = rule->argument, .has_label = rule->has_argument, .limit_ns = rule->limit};
	return true;
}

static void check_running_stats(
    struct weft_rule_result *out, const struct weft_rule *rule, const struct weft_running_stats *stats, int64_t counted_ns)
{
	char span[WEFT_DURATION_BYTES];
	weft_duration_format(span, sizeof span, counted_ns);
	switch (rule->measure) {
	case WEFT_MEASURE_PENDING: out->value = (int64_t)(stats->count - stats->ended); break;
	case WEFT_MEASURE_FAILED:
		out->value = (int64_t)stats->failed;
		if (!rule->is_share)
			break;
		set_share(out, rule, stats->ended);
		return;
	case WEFT_MEASURE_COUNT: out->value = (int64_t)stats->count; break;
	default:
		out->value = weft_running_stats_lifetime(stats, weft__rule_percentile(rule->measure));
		out->outcome = stats->ended ? WEFT_RULE_PASSED : WEFT_RULE_UNKNOWN;
		if (stats->ended)
			snprintf(out->why, sizeof out->why, "of %" PRIu64 " promises in %s", stats->ended, span);
		else
			snprintf(out->why, sizeof out->why, "no promise with that label ended in %s", span);
		return;
	}
	snprintf(out->why, sizeof out->why, "of %" PRIu64 " promises in %s", stats->count, span);
}

int weft_rule_check_followed(struct weft_rule_result *checked, const struct weft_model *model, const struct weft_rule *rule,
    const struct weft_running_stats *stats, int64_t counted_ns, struct weft_error *err)
{
	struct weft_rule_result now = {.outcome = WEFT_RULE_PASSED};
	if (stats && counted_ns >= 0) {
		check_running_stats(&now, rule, stats, counted_ns);
		set_outcome(&now, rule);
	} else {
		const int status = weft_rule_check(&now, model, rule, err);
		if (status < 0)
			return status;
	}
	/* The worst value may be from events that are older than the model. */
	const bool has_worst_ever = rule->measure == WEFT_MEASURE_STALL || rule->measure == WEFT_MEASURE_OFFCPU ||
				    rule->measure == WEFT_MEASURE_LOST || rule->measure == WEFT_MEASURE_FINDINGS;
	if (!has_worst_ever || now.value >= checked->value)
		*checked = now;
	return WEFT_OK;
}
