/* watch.c: implements weft watch, which follows traces and saves a copy of the trace for each problem.
 *
 * The name of a copy identifies the problem that caused it.  So a watcher that is started again saves no problem twice, and
 * counts earlier copies.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/findings/explain.h"
#include "analysis/queries/check.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli.h"
#include "inherited.h"
#include "kept.h"
#include "kernel/flight.h"
#include "metrics.h"
#include "otlp.h"
#include "rules.h"
#include "trace/follow.h"
#include "trace/position.h"

#define ORDER_NS INT64_C(60000000000)
enum { TEXT_BYTES = 1024, TIMESTAMP_BYTES = 32, HOUR_S = 3600, RETRY_S = 60, CPU_PERCENT = 10 };

/* A broken rule, an alarm or a requested snapshot of a trace, which may be reported and saved. */
struct problem {
	uint64_t key; /* identifies the problem */
	/* UTC time of a snapshot that the program requested, which may later be corrected by a second; 0 for other problems. */
	int64_t request_utc_s;
	bool is_seen;          /* whether the current scan has found the problem */
	bool is_transient;     /* whether the problem is about past events; it is over when these events have left the window */
	int64_t first_seen_ns; /* time at which a scan first found the problem */
	int64_t last_seen_ns;  /* time at which a scan last found the problem */
	bool is_reported;
	bool is_unsaved; /* whether saving a copy was tried and has failed */
	time_t retry_at; /* earliest time of the next attempt to save a copy */
};

/* State for one trace of a rule about the whole trace. */
struct watched_rule {
	struct weft_rule_result checked; /* result of the rule at the last scan */
	bool is_broken;
	uint64_t times_broken; /* after it had held */
	/* UTC time at which the rule was broken again; 0 for the first time, whose copy an earlier watcher may have saved. */
	int64_t broken_utc_s;
};

struct followed_trace {
	char *path;
	struct weft_follower *follower;
	struct weft_running_stats *stats;  /* running statistics of each rule that they can measure, by rule */
	struct watched_rule *rules;        /* by rule */
	struct weft_rule_window **windows; /* window state of each rule, by rule; NULL if the rule is about the whole trace */
	/* Watched folder in which the trace was found; NULL if the trace itself is an operand. */
	const char *folder;
	bool was_recorded, has_ended, is_refused;
	bool is_ring; /* whether the trace is a ring of an ended program, whose oldest events may have been overwritten */
	bool is_tidy; /* whether the trace's directory was removed, or cannot be removed */
	WEFT_VEC(struct problem) problems;
};

struct options {
	const char *save, *exec, *metrics, *otlp;
	bool json;
	int64_t patience_ns, window_ns;
	uint64_t per_hour, cpu_percent;
	struct cli_kept_limits limits;
	bool is_plain;  /* copies are directories */
	int64_t tidy_s; /* age in seconds at which rings of ended processes are removed; -1: never */
	struct cli_rules rules;
	/* Whether a rule is about all certain findings, or about all uncertain findings; each of these findings is then a
	 * separate problem. */
	bool alerts_on_certain, alerts_on_uncertain;
};

struct watch {
	struct options options;
	WEFT_VEC(struct followed_trace) all;
	bool has_scanned;
	struct cli_meters *meters; /* NULL: without --metrics */
	struct cli_metrics_server *server;
	struct cli_otlp *otlp; /* NULL: without --otlp */
	uint64_t found, saved;
	int64_t ordered_ns; /* time at which keep_order() last did something; 0: never */
	int64_t unsaved;    /* problems whose copy failed */
};

/* State of one scan of a trace. */
struct scan {
	struct watch *watch;
	struct followed_trace *followed_trace;
	const struct weft_model *model;
	bool has_ended;
};

static volatile sig_atomic_t stopped;

static void request_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---- Telling ---- */

static void write_piece(void *file, const char *bytes, size_t size)
{
	fwrite(bytes, 1, size, file);
}

static void write_json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":\"", name);
	weft_json_text((struct weft_str){text, (uint32_t)strlen(text)}, write_piece, out);
	fputc('"', out);
}

/* Writes the alert as one line of JSON. */
static void write_alert_json(
    FILE *out, const struct scan *scan, const char *kind, const char *why, const char *saved, const char *next)
{
	fprintf(out, "{\"kind\":\"%s\"", kind);
	write_json_text(out, "trace", scan->followed_trace->path);
	write_json_text(out, "why", why);
	if (next)
		write_json_text(out, "next", next);
	if (saved)
		write_json_text(out, "saved", saved);
	else
		fputs(",\"saved\":null", out);
	fputs("}\n", out);
}

/* Runs the user's command with the alert's JSON on its standard input, and does not wait for its end. */
static void run_command(
    const char *command, const struct scan *scan, const char *kind, const char *why, const char *saved, const char *next)
{
	const int fd = memfd_create("finding", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		cli_note("%s: %s", command, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	write_alert_json(file, scan, kind, why, saved, next);
	fflush(file);
	lseek(fd, 0, SEEK_SET);
	const pid_t child = fork();
	if (child == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		cli_restore_inherited();
		dup2(fd, STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (child < 0)
		cli_note("%s: %s", command, strerror(errno));
	fclose(file);
}

/* Saves a copy of an open trace as a compressed archive or as a directory.  Returns the exit status. */
static int write_copy(
    const struct options *o, const struct weft_trace *trace, const struct weft_trace_edit *edit, const char *path)
{
	struct cli_directory directory;
	struct cli_archive archive;
	struct weft_error err;
	const int exit = o->is_plain ? cli_directory_begin(&directory, path) : cli_archive_begin(&archive, path);
	if (exit >= 0)
		return exit;
	const int status = o->is_plain ? weft_trace_save(trace, edit, cli_directory_write, &directory, &err)
				       : weft_trace_save(trace, edit, cli_archive_write, &archive, &err);
	return o->is_plain ? cli_directory_end(&directory, status, &err) : cli_archive_end(&archive, status, &err);
}

/* Saves a copy of the trace, with the reason for the copy.  Returns -1, or the exit status after printing an error. */
static int save_trace(const struct scan *scan, const char *path, const char *why)
{
	struct weft_trace *trace;
	struct weft_error err;
	struct weft_trace_edit edit = {.reason = why};
	/* A flight recorder writes its kernel events only on request. */
	weft_kernel_flight_request(scan->followed_trace->path, cli_note);
	if (weft_trace_open(&trace, scan->followed_trace->path, &err) < 0)
		return cli_fail_error(&err);
	/* The flag is determined after the last read, so that a program that ends meanwhile counts as running. */
	edit.runs_on = weft_trace_is_recorded(scan->followed_trace->path);
	const int exit = write_copy(&scan->watch->options, trace, &edit, path);
	weft_trace_close(trace);
	if (exit != CLI_OK)
		return exit;
	cli_kept_limit(scan->watch->options.save, &scan->watch->options.limits);
	return -1;
}

/* Maximum length of a trace's name in the name of a copy; 255 - NAME_BYTES characters are left for the rest. */
enum { NAME_BYTES = 200 };

/* Finds the last component of a path, without slashes behind it, and limits its length. */
static const char *find_last_part(const char *path, int *length)
{
	size_t end = strlen(path);
	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t begin = end;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	*length = (int)(end - begin < NAME_BYTES ? end - begin : NAME_BYTES);
	return path + begin;
}

/* Formats the name of a copy of the trace.  Returns the length of the name's first part, which all copies for this problem
 * share. */
static size_t format_copy_name(char out[NAME_MAX + 1], const struct scan *scan, uint64_t key, int64_t request_utc_s)
{
	const struct weft_trace_info *info = scan->model->trace;
	const uint64_t which[] = {key, info->pid, (uint64_t)request_utc_s};
	int length;
	const char *base = find_last_part(scan->followed_trace->path, &length);
	char when[TIMESTAMP_BYTES];
	const time_t now = time(NULL);
	struct tm utc;
	strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	const int begin = snprintf(
	    out, NAME_MAX + 1, "%.*s-%08" PRIx32 "-", length, base, (uint32_t)weft_hash_bytes((const char *)which, sizeof which));
	snprintf(out + begin, NAME_MAX + 1 - (size_t)begin, "%s%s", when, scan->watch->options.is_plain ? "" : CLI_KEPT_SUFFIX);
	return (size_t)begin;
}

/* Notes that a problem has no copy, or has one now; problems without a copy change the exit status. */
static void mark_unsaved(const struct scan *scan, struct problem *problem, bool is_unsaved)
{
	if (problem->is_unsaved != is_unsaved)
		scan->watch->unsaved += is_unsaved ? 1 : -1;
	problem->is_unsaved = is_unsaved;
}

/* Saves and reports the problem, unless that was done before or a limit is reached. */
static void raise_alarm(const struct scan *scan, struct problem *problem, const char *kind, const char *why, const char *next)
{
	const struct options *o = &scan->watch->options;
	char name[NAME_MAX + 1], begin[NAME_MAX + 1], path[PATH_MAX];
	struct cli_kept_count kept = {0};
	const char *saved = NULL;
	if (problem->is_reported || time(NULL) < problem->retry_at)
		return;
	if (o->save) {
		const int around = problem->request_utc_s != 0;
		for (int second = -around; second <= around && !kept.has_copy; second++) {
			const size_t length = format_copy_name(name, scan, problem->key, problem->request_utc_s + second);
			snprintf(begin, sizeof begin, "%.*s", (int)length, name);
			kept = cli_kept_count(o->save, begin);
		}
		format_copy_name(name, scan, problem->key, problem->request_utc_s);
		if (kept.has_copy) {
			problem->is_reported = true;
			return;
		}
		const bool fits = snprintf(path, sizeof path, "%s/%s", o->save, name) < (int)sizeof path;
		if (kept.this_hour >= o->per_hour)
			cli_note("%s: %" PRIu64 " copies were saved in this hour; not saved: %s", o->save, kept.this_hour, why);
		else if (!fits || save_trace(scan, path, why) >= 0) {
			if (!fits)
				cli_note("%s: %s; not saved: %s", o->save, strerror(ENAMETOOLONG), why);
			mark_unsaved(scan, problem, true);
			problem->retry_at = time(NULL) + RETRY_S;
			return;
		} else {
			saved = path;
			scan->watch->saved++;
		}
		mark_unsaved(scan, problem, false);
	}
	problem->is_reported = true;
	scan->watch->found++;
	if (o->json)
		write_alert_json(stdout, scan, kind, why, saved, next);
	else {
		printf("%s: %s", scan->followed_trace->path, why);
		printf(saved ? "; saved as %s\n" : "\n", saved);
	}
	fflush(stdout);
	if (o->exec)
		run_command(o->exec, scan, kind, why, saved, next);
}

/* ---- Looking ---- */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Marks the problem with the key as seen in this scan, and creates the problem if necessary.  Returns NULL without memory. */
static struct problem *note_problem(struct scan *scan, uint64_t key, int64_t request_utc_s)
{
	struct followed_trace *f = scan->followed_trace;
	for (size_t i = 0; i < f->problems.count; i++)
		if (f->problems.items[i].key == key && llabs(f->problems.items[i].request_utc_s - request_utc_s) <= 1) {
			f->problems.items[i].is_seen = true;
			f->problems.items[i].last_seen_ns = now_ns();
			return &f->problems.items[i];
		}
	struct problem *fresh = weft_vec_push(&f->problems);
	if (fresh)
		*fresh = (struct problem){.key = key,
		    .request_utc_s = request_utc_s,
		    .is_seen = true,
		    .first_seen_ns = now_ns(),
		    .last_seen_ns = now_ns()};
	return fresh;
}

static uint64_t hash_without_digits(const char *kind, const char *text)
{
	/* Digits are skipped, because numbers differ each time. */
	char plain[TEXT_BYTES];
	size_t length = (size_t)snprintf(plain, sizeof plain, "%s ", kind);
	for (; *text && length + 1 < sizeof plain; text++)
		if (*text < '0' || *text > '9')
			plain[length++] = *text;
	return weft_hash_bytes(plain, length);
}

/* Returns whether the finding ended before the time --after since the process's start, which does not count. */
static bool is_in_warm_up(const struct scan *scan, const struct weft_finding *f)
{
	const int64_t after_ns = scan->watch->options.rules.after_ns;
	int64_t oldest_ns = 0;
	for (uint32_t p = 1; after_ns > 0 && p < scan->model->promise_count; p++)
		oldest_ns = weft_min_ns(oldest_ns, scan->model->promises[p].start_ns);
	return f->end_ns < oldest_ns + after_ns;
}

/* Returns whether a finding counts as a problem.  An uncertain alarm, or a hang of a running program, counts only after the time
 * of --patience, because its wait may still end. */
static bool is_problem(struct scan *scan, const struct weft_finding *f)
{
	const struct options *o = &scan->watch->options;
	const uint64_t which[] = {f->kind, (uint64_t)scan->model->promises[f->promise].id};
	const bool may_end = !f->sure || f->kind == WEFT_FINDING_HANG,
		   is_asked = f->sure ? o->alerts_on_certain : o->alerts_on_uncertain;
	if (f->severity != WEFT_SEVERITY_ALARM || !is_asked || is_in_warm_up(scan, f))
		return false;
	if (!may_end || scan->has_ended)
		return true;
	const struct problem *t = note_problem(scan, weft_hash_bytes((const char *)which, sizeof which), 0);
	return t && now_ns() - t->first_seen_ns >= o->patience_ns;
}

static void check_findings(struct scan *scan)
{
	struct weft_findings *findings;
	struct weft_error err;
	if (weft_explain(&findings, scan->model, NULL, &err) < 0)
		return;
	cli_meters_add_findings(scan->watch->meters, scan->followed_trace->path, findings, scan->model);
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		char promise_name[TEXT_BYTES / 2], why[TEXT_BYTES];
		/* A wait that may still end is sent when it is a problem. */
		const bool may_end = (!f->sure || f->kind == WEFT_FINDING_HANG) && f->end_ns >= scan->model->end_ns,
			   alarms = is_problem(scan, f);
		if (alarms || (f->severity == WEFT_SEVERITY_ALARM && (!may_end || scan->has_ended)))
			cli_otlp_add_finding(scan->watch->otlp, scan->followed_trace->path, scan->model, f);
		if (!alarms)
			continue;
		weft_model_name(scan->model, f->promise, promise_name, sizeof promise_name);
		struct problem *t = note_problem(scan, hash_without_digits(weft_finding_name(f->kind), promise_name), 0);
		snprintf(why, sizeof why, "%s: %s", weft_finding_name(f->kind), f->title);
		if (!t)
			continue;
		t->is_transient = true;
		raise_alarm(scan, t, "finding", why, f->next);
	}
	weft_findings_destroy(findings);
}

/* Reports that a rule was broken.  Each time that the rule is broken is a separate problem, identified by utc_s; 0 means the
 * first time. */
static void report_rule(struct scan *scan, const struct cli_rule *rule, int64_t utc_s, int64_t value, const char *why)
{
	char number[WEFT_DURATION_BYTES], text[TEXT_BYTES];
	snprintf(text, sizeof text, "%s is broken: %s%s%s%s", rule->text, weft_rule_format_value(number, &rule->rule, value),
	    *why ? " (" : "", why, *why ? ")" : "");
	struct problem *t = note_problem(scan, weft_hash_bytes(rule->text, strlen(rule->text)), utc_s);
	if (t)
		raise_alarm(scan, t, "rule", text, NULL);
}

/* Checks a rule about the whole trace. */
static void check_rule(
    struct scan *scan, const struct cli_rule *rule, struct watched_rule *state, const struct weft_running_stats *tally)
{
	struct weft_error err;
	const int64_t counted_ns = weft_follower_stats_span_ns(scan->followed_trace->follower);
	if (weft_rule_check_followed(&state->checked, scan->model, &rule->rule, tally, counted_ns, &err) < 0)
		return;
	const bool was_broken = state->is_broken;
	state->is_broken = state->checked.outcome == WEFT_RULE_VIOLATED;
	if (!state->is_broken)
		return;
	if (!was_broken)
		state->broken_utc_s = state->times_broken++ ? (int64_t)time(NULL) : 0;
	report_rule(scan, rule, state->broken_utc_s, state->checked.value, state->checked.why);
}

/* Checks a rule over time windows, and reports each time that the rule was broken. */
static void check_windows(struct scan *scan, const struct cli_rule *rule, struct weft_rule_window *window)
{
	struct weft_error err;
	size_t count;
	const int64_t known_from_ns = weft_follower_window_start_ns(scan->followed_trace->follower);
	if (weft_rule_window_update(window, scan->model, known_from_ns, &err) < 0)
		return;
	(void)weft_rule_window_result(window, scan->has_ended);
	const struct weft_rule_breach *breaches = weft_rule_window_breaches(window, &count);
	for (size_t i = 0; i < count; i++) {
		char why[sizeof breaches->why + 64], when[WEFT_DURATION_BYTES];
		snprintf(why, sizeof why, "at %s%s%s", weft_duration_text(when, breaches[i].time_ns),
		    breaches[i].why[0] ? ": " : "", breaches[i].why);
		report_rule(scan, rule, breaches[i].utc_ns / 1000000000, breaches[i].value, why);
	}
}

/* Returns whether each finding that the rule counts is a separate problem. */
static bool is_about_alarms(const struct cli_rule *rule)
{
	return rule->rule.measure == WEFT_MEASURE_FINDINGS && !rule->rule.has_argument && !rule->rule.window_ns;
}

static void check_rules(struct scan *scan)
{
	const struct cli_rules *rules = &scan->watch->options.rules;
	struct followed_trace *f = scan->followed_trace;
	for (size_t i = 0, counted = 0; i < rules->all.count; i++) {
		const struct cli_rule *rule = &rules->all.items[i];
		struct weft_running_stats asked;
		if (is_about_alarms(rule))
			continue;
		if (f->windows[i])
			check_windows(scan, rule, f->windows[i]);
		else
			check_rule(
			    scan, rule, &f->rules[i], weft_rule_running_stats(&asked, &rule->rule) ? &f->stats[counted++] : NULL);
	}
}

static void check_snapshot_request(struct scan *scan, const struct weft_event *e)
{
	char why[TEXT_BYTES];
	if (e->op != WEFT_OP_DETAIL || e->kind != WEFT_DETAIL_SNAPSHOT)
		return;
	weft_utf8_copy(why, sizeof why, e->text);
	const int64_t utc_ns = e->time_ns + weft_trace_info(weft_follower_trace(scan->followed_trace->follower))->clock_origin_ns;
	struct problem *t = note_problem(scan, weft_hash_bytes(why, strlen(why)), utc_ns / 1000000000);
	if (!t)
		return;
	t->is_transient = true;
	raise_alarm(scan, t, "snapshot", why, NULL);
}

/* Handles snapshots that the program itself requested by weft_snapshot(). */
static void check_snapshot_requests(struct scan *scan)
{
	struct weft_trace *trace = weft_follower_trace(scan->followed_trace->follower);
	size_t count;
	const struct weft_event *events = weft_follower_snapshots(scan->followed_trace->follower, &count);
	for (size_t i = 0; i < count; i++)
		check_snapshot_request(scan, &events[i]);
	if (events)
		return;
	weft_trace_rewind(trace);
	while (weft_trace_next(trace, &events, &count) > 0)
		for (size_t i = 0; i < count; i++)
			check_snapshot_request(scan, &events[i]);
}

/* Returns whether a problem is not reported yet; such a problem needs a scan even without new events. */
static bool has_unreported(const struct followed_trace *f)
{
	for (size_t i = 0; i < f->problems.count; i++)
		if (!f->problems.items[i].is_reported)
			return true;
	return false;
}

/* Forgets problems that are over, so that they are reported if they come again. */
static void drop_past_problems(struct followed_trace *f)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->problems.count; i++) {
		const struct problem *t = &f->problems.items[i];
		const bool is_remembered =
		    t->is_transient && t->is_reported && now_ns() - t->last_seen_ns < HOUR_S * INT64_C(1000000000);
		if (t->is_seen || is_remembered)
			f->problems.items[kept++] = *t;
	}
	f->problems.count = kept;
}

/* Returns whether this process may access a path.  Unlike access(2), this takes the capabilities of the process into account. */
static bool may_access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

static bool is_ring(const struct weft_follower *follower)
{
	struct weft_position start = {.is_somewhere = false};
	const struct weft_trace *trace = weft_follower_trace(follower);
	const bool is_ring = trace && weft_trace_start_position(trace, &start) == WEFT_OK && !start.grows;
	weft_position_free(&start);
	return is_ring;
}

/* Scans a trace.  If a trace cannot be read yet, that is no error. */
static void scan_trace(struct watch *w, struct followed_trace *f)
{
	const bool is_recorded = weft_trace_is_recorded(f->path), is_there = may_access(f->path, F_OK);
	struct scan scan = {.watch = w, .followed_trace = f, .has_ended = !is_recorded};
	struct weft_error err;
	if (has_unreported(f) || (f->was_recorded && !is_recorded))
		weft_follower_mark_stale(f->follower);
	f->was_recorded = is_recorded;
	if (is_there && weft_follower_refresh(f->follower, &err) > 0) {
		scan.model = weft_follower_model(f->follower);
		for (size_t i = 0; i < f->problems.count; i++)
			f->problems.items[i].is_seen = false;
		check_rules(&scan);
		if (w->options.alerts_on_certain || w->options.alerts_on_uncertain || w->meters || w->otlp)
			check_findings(&scan);
		check_snapshot_requests(&scan);
		drop_past_problems(f);
	}
	f->has_ended = is_there && !is_recorded && session_is_trace(f->path);
	cli_otlp_update(w->otlp, f->path, f->has_ended);
	if (f->has_ended) {
		cli_meters_update(w->meters, f->path, f->follower, true);
		f->is_ring = is_ring(f->follower);
		weft_follower_close(f->follower);
		f->follower = NULL;
	}
}

/* ---- Metrics ---- */

/* Reads the new events of all traces, and answers requests for metrics. */
static void answer_metrics(struct watch *w)
{
	cli_bytes text = {0};
	struct weft_error err;
	for (size_t i = 0; i < w->all.count && !stopped; i++) {
		struct followed_trace *f = &w->all.items[i];
		if (f->has_ended)
			continue;
		(void)weft_follower_skip(f->follower, &err); /* an error is ignored here, because the next scan reports it */
		cli_meters_update(w->meters, f->path, f->follower, false);
	}
	cli_meters_write(
	    w->meters, &(struct weft_metrics_follower){.watches = true, .problems = w->found, .saved = w->saved}, &text);
	cli_metrics_server_answer(w->server, &text);
}

/* Answers the requests for metrics that came during a scan. */
static void answer_waiting(struct watch *w)
{
	if (w->server && cli_metrics_server_wait(w->server, 0))
		answer_metrics(w);
}

static void free_followed(struct followed_trace *f, const struct cli_rules *rules)
{
	weft_follower_close(f->follower);
	weft_vec_free(&f->problems);
	free(f->stats);
	free(f->rules);
	cli_rule_windows_free(f->windows, rules);
	free(f->path);
}

static struct followed_trace *follow_trace(struct watch *w, const char *path, const char *folder)
{
	const struct options *o = &w->options;
	struct weft_follower_options options = {
	    .model.keep_binds = true, .window_ns = o->window_ns, .window_events = CLI_WINDOW_EVENTS};
	struct weft_error err;
	for (size_t i = 0; i < w->all.count; i++)
		if (strcmp(w->all.items[i].path, path) == 0)
			return &w->all.items[i];
	struct followed_trace f = {.path = strdup(path),
	    .folder = folder,
	    .stats = calloc(o->rules.all.count + 1, sizeof *f.stats),
	    .rules = calloc(o->rules.all.count + 1, sizeof *f.rules),
	    .windows = cli_rule_windows_create(&o->rules)};
	options.stats = f.stats;
	options.observer = w->meters && f.path ? cli_meters_add(w->meters, f.path) : NULL;
	for (size_t i = 0; f.stats && f.windows && i < o->rules.all.count; i++) {
		const struct weft_rule *rule = &o->rules.all.items[i].rule;
		options.stats_count += !f.windows[i] && weft_rule_running_stats(&f.stats[options.stats_count], rule);
		if (rule->measure == WEFT_MEASURE_FINDINGS)
			options.window_ns = weft_max_ns(options.window_ns, rule->window_ns);
	}
	struct followed_trace *fresh =
	    f.path && f.stats && f.rules && f.windows && weft_follower_open(&f.follower, path, &options, &err) == WEFT_OK
		? weft_vec_push(&w->all)
		: NULL;
	if (fresh)
		*fresh = f;
	else
		free_followed(&f, &o->rules);
	return fresh;
}

/* Notes once that this user cannot read a trace; the trace is scanned when it becomes readable. */
static void note_unreadable(struct watch *w, const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || may_access(path, R_OK | X_OK))
		return;
	struct followed_trace *f = errno == EACCES ? follow_trace(w, path, NULL) : NULL;
	if (f && !f->is_refused)
		cli_note("%s: %s", path, strerror(EACCES));
	if (f)
		f->is_refused = true;
}

static void note_unreadable_in(struct watch *w, const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);
	note_unreadable(w, folder);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
			note_unreadable(w, path);
	if (dir)
		closedir(dir);
}

/* Returns whether a trace is a copy that weft watch saved, because the folder for copies may itself be watched. */
static bool is_saved_copy(const struct watch *w, const char *trace)
{
	char path[PATH_MAX];
	struct stat folder, of_trace;
	const char *name = strrchr(trace, '/');
	if (!w->options.save || !name || snprintf(path, sizeof path, "%.*s", (int)(name - trace), trace) >= (int)sizeof path)
		return false;
	return stat(w->options.save, &folder) == 0 && stat(path, &of_trace) == 0 && folder.st_dev == of_trace.st_dev &&
	       folder.st_ino == of_trace.st_ino;
}

static void drop_saved_copies(const struct watch *w, session_paths *traces)
{
	size_t count = 0;
	for (size_t i = 0; i < traces->count; i++)
		if (is_saved_copy(w, traces->items[i]))
			free(traces->items[i]);
		else
			traces->items[count++] = traces->items[i];
	traces->count = count;
}

/* Scans the current traces of all operands.  Returns false if all traces have ended. */
static bool scan_all(struct watch *w, char **paths, int count)
{
	bool is_pending = false;
	for (int i = 0; i < count && !stopped; i++) {
		struct session session = {0};
		const bool is_there = may_access(paths[i], F_OK),
			   is_several = session_read_all(&session, paths[i]) && !session_is_trace(paths[i]) && is_there;
		struct followed_trace *f = is_several ? NULL : follow_trace(w, paths[i], NULL);
		size_t found = !is_several && is_there;
		drop_saved_copies(w, &session.traces);
		session_drop_copies(&session.traces);
		for (size_t k = 0; k < session.traces.count; k++)
			found += follow_trace(w, session.traces.items[k], paths[i]) != NULL;
		if (!found && !w->has_scanned)
			cli_note("%s: no program records here yet", paths[i]);
		is_pending |= is_several || (f && !f->has_ended);
		note_unreadable_in(w, paths[i]);
		session_free(&session);
	}
	for (size_t i = 0; i < w->all.count && !stopped; i++) {
		if (!w->all.items[i].has_ended)
			scan_trace(w, &w->all.items[i]);
		answer_waiting(w);
	}
	w->has_scanned = true;
	return is_pending && !stopped;
}

/* ---- Tidying ---- */

static bool has_unsaved(const struct followed_trace *f)
{
	for (size_t i = 0; i < f->problems.count; i++)
		if (f->problems.items[i].is_unsaved || !f->problems.items[i].is_reported)
			return true;
	return false;
}

/* Removes the rings of ended processes that were found in watched folders and scanned to their end. */
static void remove_ended_rings(struct watch *w)
{
	for (size_t i = 0; w->options.tidy_s >= 0 && i < w->all.count; i++) {
		struct followed_trace *f = &w->all.items[i];
		if (!f->has_ended || !f->is_ring || !f->folder || f->is_tidy || has_unsaved(f) || weft_trace_is_recorded(f->path))
			continue;
		const int64_t idle_s = cli_kept_idle_s(f->folder, f->path);
		if (idle_s >= 0 && idle_s < w->options.tidy_s)
			continue;
		f->is_tidy = true;
		if (idle_s >= 0 && !cli_kept_remove_trace(f->folder, f->path))
			cli_note("%s: cannot be removed: %s", f->path, strerror(errno));
	}
}

/* Keeps the folders of copies within their limits, once a minute. */
static void keep_order(struct watch *w)
{
	if (w->ordered_ns && now_ns() - w->ordered_ns < ORDER_NS)
		return;
	w->ordered_ns = now_ns();
	if (w->options.save)
		cli_kept_limit(w->options.save, &w->options.limits);
	remove_ended_rings(w);
}

/* ---- The verb ---- */

/* Sleeps, answers requests for metrics meanwhile, and collects commands that have ended. */
static void sleep_and_reap(struct watch *w, int64_t ns)
{
	const int64_t until_ns = now_ns() + ns;
	for (int64_t left_ns = ns; left_ns > 0 && !stopped; left_ns = until_ns - now_ns())
		if (cli_metrics_server_wait(w->server, left_ns))
			answer_metrics(w);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Parses the rules at the end of the operands and in the file of --rules. */
static int parse_rules(struct options *o, struct cli_args *args)
{
	int paths = 0;
	for (; paths < args->argc && (paths == 0 || !cli_rules_is_rule(args->argv[paths])); paths++)
		;
	const int exit = cli_rules_read(&o->rules, "watch", args->argv + paths, args->argc - paths);
	o->alerts_on_certain = o->rules.all.count == 0;
	for (size_t i = 0; i < o->rules.all.count; i++) {
		const struct cli_rule *rule = &o->rules.all.items[i];
		o->alerts_on_certain |= is_about_alarms(rule) && !rule->rule.is_uncertain;
		o->alerts_on_uncertain |= is_about_alarms(rule) && rule->rule.is_uncertain;
	}
	args->argc = paths;
	return exit;
}

static bool parse_percent(const char *text, uint64_t *percent)
{
	char number[8];
	const size_t digits = strspn(text, "0123456789");
	snprintf(number, sizeof number, "%.*s", (int)digits, text);
	uint64_t value = 0;
	const bool is_valid = digits > 0 && digits < sizeof number && (!text[digits] || !strcmp(text + digits, "%")) &&
			      cli_parse_number(number, false, &value) && value >= 1 && value <= 100;
	*percent = is_valid ? value : *percent;
	return is_valid;
}

static int parse_age(const char *option, const char *text, int64_t *age_s)
{
	return !text || cli_kept_parse_age(text, age_s)
		   ? -1
		   : cli_fail_verb("watch", "not an age: --%s=%s; use a number with s, m, h or d", option, text);
}

static int prepare_folder(const char *path)
{
	if (path && mkdir(path, 0700) != 0 && errno != EEXIST)
		return cli_fail("%s: %s", path, strerror(errno));
	return path && !may_access(path, W_OK | X_OK) ? cli_fail("%s: %s", path, strerror(errno)) : -1;
}

static int prepare_metrics(struct watch *w)
{
	w->meters = cli_meters_create();
	return w->meters ? cli_metrics_server_start(&w->server, "watch", w->options.metrics)
			 : cli_fail_verb("watch", "%s", weft_status_string(WEFT_ENOMEM));
}

/* Waits for the next scan and skips new events meanwhile, because a ring may be overwritten. */
static void wait_for_next_scan(struct watch *w, int64_t rest_ns, int64_t every_ns)
{
	const int64_t last_seen_ns = now_ns() + rest_ns;
	struct weft_error err;
	for (int64_t left_ns = rest_ns; left_ns > 0 && !stopped; left_ns = last_seen_ns - now_ns()) {
		sleep_and_reap(w, weft_min_ns(left_ns, every_ns));
		for (size_t i = 0; i < w->all.count && left_ns > every_ns && !stopped; i++)
			if (!w->all.items[i].has_ended) {
				/* An error is ignored here, because the next scan reports it. */
				(void)weft_follower_skip(w->all.items[i].follower, &err);
				cli_otlp_update(w->otlp, w->all.items[i].path, false);
			}
	}
}

static void watch_until_end(struct watch *w, struct cli_args *args, int64_t every_ns)
{
	const struct sigaction action = {.sa_handler = request_stop};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (bool more = true; more && cli_stdout_ok();) {
		const int64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		more = scan_all(w, args->argv, args->argc);
		keep_order(w);
		/* Scans use at most a limited share of a CPU, however large the rings are. */
		const int64_t share = (int64_t)w->options.cpu_percent,
			      rest_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns) * (100 - share) / share;
		if (more)
			wait_for_next_scan(w, weft_max_ns(rest_ns, every_ns), every_ns);
	}
	while (!stopped && waitpid(-1, NULL, 0) > 0)
		;
}

int cli_watch(struct cli_args *args)
{
	struct watch w = {.options = {.patience_ns = 10000000000,
			      .window_ns = CLI_WINDOW_NS,
			      .per_hour = 6,
			      .limits.max_bytes = UINT64_C(1) << 30,
			      .cpu_percent = CPU_PERCENT,
			      .tidy_s = -1}};
	const char *per_hour = NULL, *max_size = NULL, *cpu = NULL, *keep = NULL, *keep_for = NULL, *tidy = NULL;
	int64_t every_ns = 500000000;
	const struct cli_option options[] = {
	    {"save", 0, CLI_TEXT, &w.options.save, "DIR", "save a copy in DIR for each broken rule or alarm; DIR is created"},
	    {"plain", 0, CLI_FLAG, &w.options.is_plain, NULL, "save copies as directories, without compression"},
	    {"exec", 0, CLI_TEXT, &w.options.exec, "COMMAND",
		"run this shell command for each broken rule or alarm, with a JSON object on its standard input"},
	    {"per-hour", 0, CLI_TEXT, &per_hour, "N", "save at most N copies an hour (default: 6)"},
	    {"most", 0, CLI_TEXT, &max_size, "SIZE",
		"remove the oldest copies when all together are larger than SIZE, such as 500M (default: 1G)"},
	    {"keep", 0, CLI_TEXT, &keep, "N", "keep the newest N copies, and remove older ones"},
	    {"keep-for", 0, CLI_TEXT, &keep_for, "TIME",
		"remove copies that are older than TIME, such as 36h or 7d, except the newest"},
	    {"tidy", 0, CLI_TEXT, &tidy, "TIME",
		"remove the trace of a process that ended TIME ago, such as 1h, after weft checked it and saved its copies"},
	    {"every", 0, CLI_TIME, &every_ns, "TIME", "refresh this often (default: 500ms), or less often because of --cpu"},
	    {"cpu", 0, CLI_TEXT, &cpu, "PERCENT", "check rules and findings with at most this share of a CPU (default: 10%)"},
	    {"patience", 0, CLI_TIME, &w.options.patience_ns, "TIME",
		"report an uncertain alarm or a hang of a running program after this time (default: 10s)"},
	    {"window", 0, CLI_TIME, &w.options.window_ns, "TIME",
		"look for findings in the last TIME (default: 10s), at most in the last 262,144 events"},
	    {"metrics", 0, CLI_TEXT, &w.options.metrics, "HOST:PORT",
		"serve http://HOST:PORT/metrics: numbers about all traces in the OpenMetrics format (default "
		"port: " CLI_METRICS_PORT ")"},
	    {"otlp", 0, CLI_TEXT, &w.options.otlp, "URL",
		"send requests, connections and findings as spans to a receiver of OpenTelemetry, such as http://HOST:4318"},
	    CLI_OPTIONS_RULES(&w.options.rules),
	    CLI_OPTION_JSON(&w.options.json),
	    CLI_OPTION_END,
	};
	args->print_more = cli_rules_print_help;
	int exit = cli_parse(args, options, -1);
	if (exit < 0 && per_hour && !cli_parse_number(per_hour, false, &w.options.per_hour))
		exit = cli_fail_verb("watch", "not a number: --per-hour=%s", per_hour);
	if (exit < 0 && max_size && !cli_parse_number(max_size, true, &w.options.limits.max_bytes))
		exit =
		    cli_fail_verb("watch", "not a size: --most=%s; use a number of bytes, optionally with K, M or G", max_size);
	if (exit < 0 && keep && (!cli_parse_number(keep, false, &w.options.limits.max_count) || !w.options.limits.max_count))
		exit = cli_fail_verb("watch", "not a number of copies: --keep=%s", keep);
	if (exit < 0)
		exit = parse_age("keep-for", keep_for, &w.options.limits.max_age_s);
	if (exit < 0)
		exit = parse_age("tidy", tidy, &w.options.tidy_s);
	w.options.is_plain |= !cli_archive_can();
	if (exit < 0 && cpu && !parse_percent(cpu, &w.options.cpu_percent))
		exit = cli_fail_verb("watch", "not a share of a CPU: --cpu=%s; use 1%% to 100%%", cpu);
	if (exit < 0)
		exit = parse_rules(&w.options, args);
	if (exit < 0)
		exit = prepare_folder(w.options.save);
	if (exit < 0 && w.options.metrics)
		exit = prepare_metrics(&w);
	if (exit < 0 && w.options.otlp)
		exit = cli_otlp_start(&w.otlp, "watch", w.options.otlp);
	if (exit < 0) {
		watch_until_end(&w, args, every_ns);
		exit = cli_finish(w.unsaved > 0 ? CLI_ERROR : w.found ? CLI_FOUND : CLI_OK);
	}
	for (size_t i = 0; i < w.all.count; i++)
		free_followed(&w.all.items[i], &w.options.rules);
	cli_otlp_stop(w.otlp);
	cli_metrics_server_stop(w.server);
	cli_meters_destroy(w.meters);
	weft_vec_free(&w.all);
	cli_rules_free(&w.options.rules);
	return exit;
}
