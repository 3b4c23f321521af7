/* slow.c: weft explain --promise names the reason of a slow request.  Each case is a server with many requests, one of which is
 * slow for a known reason.
 *
 *	slow			judges all cases
 *	slow CASE OUT		writes the trace of a case, for tests of the viewers
 *	slow connections OUT	writes the trace of a server with three connections that read, of ten requests each
 *
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/record.h>

#include "analysis/findings/explain.h"

#define MS 1000000u
#define SLOW_NS (30 * MS)

/* X(NAME, "name", the text of the longest part, its end) */
#define CASES(X)                                                                                                                 \
	X(DEPENDENCY, "dependency", ": waiting for timer %" PRId64 " \"db query\" (", "), an external event; usually 1.00 ms")   \
	X(LOCK, "lock", ": waiting for lock %" PRId64 " \"cache\", which request %" PRId64 " \"GET /export\" held",              \
	    "; usually nothing")                                                                                                 \
	X(STALL, "stall",                                                                                                        \
	    ": waiting for timer %" PRId64 " \"db query\", which may have been due while request %" PRId64                       \
	    " \"GET /report\" ran",                                                                                              \
	    "; usually nothing")                                                                                                 \
	X(QUEUE, "queue", ": ready while request %" PRId64 " \"GET /report\" ran", "; usually 100 ns")                           \
	X(ASLEEP, "asleep", ": ready while its thread slept", "; usually 100 ns")                                                \
	X(DATA, "data", ": waiting for read %" PRId64 " \"body\" (", "), an external event; usually nothing")

enum which {
#define ENUM(NAME, name, says, end) NAME,
	CASES(ENUM)
#undef ENUM
	    CASE_COUNT
};

static const char *const names[] = {
#define NAMED(NAME, name, says, end) name,
    CASES(NAMED)
#undef NAMED
};

static uint64_t buffer[(1u << 20) / 8];
static uint64_t now_ns;
static weft_id cache, asked, waited_for, culprit;

static uint64_t read_clock(void)
{
	return now_ns += 100;
}

static void work(uint64_t ns)
{
	now_ns += ns;
}

static void sleep_for(uint64_t ns)
{
	weft_run(WEFT_SYSTEM_ID);
	weft_idle(WEFT_IDLE_WAIT);
	now_ns += ns;
	weft_resume(WEFT_SYSTEM_ID);
}

static weft_id begin(const char *label)
{
	weft_id request = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_label(request, label);
	weft_run(request);
	work(MS / 10);
	return request;
}

static weft_id wait_for(weft_id request, enum weft_kind kind, const char *label)
{
	weft_id input = weft_create(request, kind, WEFT_SITE());
	weft_label(input, label);
	weft_await(request, input);
	return input;
}

/* The request reads its input, runs on, and ends. */
static void go_on(weft_id request, weft_id input)
{
	weft_read(request, input);
	work(MS / 10);
	weft_resolve(request, request);
	weft_run(WEFT_SYSTEM_ID);
}

static void come(weft_id input)
{
	weft_resolve(WEFT_SYSTEM_ID, input);
}

static void healthy(int number)
{
	char label[32];
	snprintf(label, sizeof label, "GET /item/%d", number);
	weft_id request = begin(label), query = wait_for(request, WEFT_KIND_TIMER, "db query");
	sleep_for(MS);
	come(query);
	go_on(request, query);
	sleep_for(2 * MS);
}

/* Another request runs for a long time. */
static void report(void)
{
	culprit = begin("GET /report");
	work(SLOW_NS);
	weft_resolve(culprit, culprit);
	weft_run(WEFT_SYSTEM_ID);
}

static void wait_behind_a_lock(void)
{
	culprit = begin("GET /export");
	weft_hold(culprit, cache);
	weft_id disk = wait_for(culprit, WEFT_KIND_TIMER, "disk");
	asked = begin("GET /item/1000");
	weft_id turn = weft_create(asked, WEFT_KIND_TASK, WEFT_SITE());
	weft_await(turn, cache);
	weft_await(asked, turn);
	sleep_for(SLOW_NS);
	come(disk);
	weft_read(culprit, disk);
	weft_release(culprit, cache);
	weft_resolve(culprit, turn);
	weft_hold(asked, cache);
	weft_resolve(culprit, culprit);
	go_on(asked, turn);
	weft_release(asked, cache);
	waited_for = cache;
}

static void start(void)
{
	memset(buffer, 0, sizeof buffer);
	now_ns = 1000000000;
	const struct weft_record_options options = {.buffer = buffer,
	    .buffer_bytes = sizeof buffer,
	    .packets = 64,
	    .streams = 2,
	    .clock = read_clock,
	    .clock_hz = 1000000000};
	if (weft_start(&options) < 0)
		exit(2);
	weft_run(WEFT_SYSTEM_ID);
}

static void run_case(enum which which)
{
	start();
	cache = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_label(cache, "cache");
	for (int i = 0; i < 30; i++)
		healthy(i);
	if (which == LOCK) {
		wait_behind_a_lock();
	} else {
		asked = begin("GET /item/1000");
		waited_for =
		    which == DATA ? wait_for(asked, WEFT_KIND_STREAM_READ, "body") : wait_for(asked, WEFT_KIND_TIMER, "db query");
		sleep_for(which == DEPENDENCY || which == DATA ? SLOW_NS : MS);
		if (which == STALL)
			report();
		come(waited_for);
		if (which == QUEUE)
			report();
		if (which == ASLEEP)
			sleep_for(SLOW_NS);
		go_on(asked, waited_for);
		waited_for = which == QUEUE ? asked : waited_for;
		culprit = which == ASLEEP ? asked : culprit;
	}
	for (int i = 30; i < 60; i++)
		healthy(i);
	weft_stop();
}

static void run_connections(void)
{
	enum { CONNECTIONS = 3, REQUESTS = 10 };
	weft_id connections[CONNECTIONS];
	char label[32];
	start();
	for (int c = 0; c < CONNECTIONS; c++) {
		connections[c] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
		snprintf(label, sizeof label, "client %d", c + 1);
		weft_label(connections[c], label);
	}
	for (int i = 0; i < REQUESTS * CONNECTIONS; i++) {
		weft_id request = weft_create(connections[i % CONNECTIONS], WEFT_KIND_REQUEST, WEFT_SITE());
		snprintf(label, sizeof label, "GET /%d", i);
		weft_label(request, label);
		weft_run(request);
		weft_id head = wait_for(request, WEFT_KIND_STREAM_READ, "head");
		sleep_for(MS);
		come(head);
		weft_read(request, head);
		weft_id body = wait_for(request, WEFT_KIND_STREAM_READ, "body");
		sleep_for(MS);
		come(body);
		go_on(request, body);
		sleep_for(MS);
	}
	for (int c = 0; c < CONNECTIONS; c++)
		weft_resolve(WEFT_SYSTEM_ID, connections[c]);
	weft_stop();
}

/* Returns whether weft explain reports the request as slow. */
static bool is_told(const struct weft_model *model)
{
	struct weft_findings *all = NULL;
	bool is_told = false;
	if (weft_explain(&all, model, &(struct weft_explain_options){.stall_ns = 3 * MS}, NULL) < 0)
		exit(2);
	for (size_t i = 0; i < all->count; i++)
		is_told |= all->findings[i].kind == WEFT_FINDING_SLOW && model->promises[all->findings[i].promise].id == asked;
	weft_findings_destroy(all);
	return is_told;
}

/* Returns whether weft explain --promise names the planted reason first, with the right promise. */
static bool is_right(enum which which, bool keep_binds)
{
	static const char *const says[] = {
#define SAYS(NAME, name, says, end) says,
	    CASES(SAYS)
#undef SAYS
	};
	static const char *const ends[] = {
#define ENDS(NAME, name, says, end) end,
	    CASES(ENDS)
#undef ENDS
	};
	struct weft_trace *trace = NULL;
	struct weft_model *model = NULL;
	struct weft_findings *findings = NULL;
	struct weft_error err;
	char wanted[300];
	if (weft_trace_open_memory(&trace, buffer, sizeof buffer, "slow", &err) < 0 ||
	    weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = keep_binds}, &err) < 0 ||
	    weft_explain_promise(&findings, model, weft_model_find(model, asked), NULL, &err) < 0)
		exit(2);
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wformat-nonliteral\"");
	snprintf(wanted, sizeof wanted, says[which], which == QUEUE ? culprit : waited_for, culprit);
	_Pragma("GCC diagnostic pop");
	const struct weft_finding *f = &findings->findings[0];
	const struct weft_evidence *usual = &f->evidence[0], *first = &f->evidence[1];
	int64_t all_ns = 0, at_ns = model->promises[f->promise].start_ns;
	bool joined = true;
	for (size_t i = 0; i < f->step_count; i++) {
		joined &= f->steps[i].start_ns == at_ns;
		at_ns = f->steps[i].end_ns;
		all_ns += f->steps[i].end_ns - f->steps[i].start_ns;
	}
	weft_id leads_to = which == DEPENDENCY || which == DATA ? waited_for : culprit;
	bool right = (which != ASLEEP || is_told(model)) && first->role == WEFT_EVIDENCE_TIME && strstr(first->text, wanted) &&
		     strstr(first->text, ends[which]) && strncmp(first->text, "30.", 3) == 0 && strstr(first->text, " ms, 9") &&
		     model->promises[first->promise].id == leads_to && joined &&
		     all_ns == model->promises[f->promise].end_ns - model->promises[f->promise].start_ns &&
		     strstr(usual->text,
			 " times as long as usual: the median of 61 promises \"GET /item/*\" is 1.20 ms; none took longer");
	printf("%s: %s\n", names[which], f->title);
	for (size_t i = 0; i < f->evidence_count && (!right || i < 2); i++)
		printf("  %s\n", f->evidence[i].text);
	if (!right)
		printf("  wanted: %s\n", wanted);
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	weft_trace_close(trace);
	return right;
}

static int write_trace(const char *out)
{
	FILE *file = fopen(out, "wb");
	if (!file || fwrite(buffer, 1, sizeof buffer, file) != sizeof buffer || fclose(file) != 0) {
		perror(out);
		return 2;
	}
	return 0;
}

static int write_case(const char *name, const char *out)
{
	if (strcmp(name, "connections") == 0) {
		run_connections();
		return write_trace(out);
	}
	for (int which = 0; which < CASE_COUNT; which++) {
		if (strcmp(name, names[which]) != 0)
			continue;
		run_case((enum which)which);
		return write_trace(out);
	}
	return 2;
}

int main(int argc, char **argv)
{
	bool right = true;
	if (argc == 3)
		return write_case(argv[1], argv[2]);
	for (int which = 0; which < CASE_COUNT; which++) {
		run_case((enum which)which);
		right &= is_right((enum which)which, true);
		right &= is_right((enum which)which, false);
	}
	return right ? 0 : 1;
}
