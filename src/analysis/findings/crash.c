/* crash.c: finds the promise that was running when the program died.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"

/* Loops, threads, locks and conditions are skipped, because they explain no crash. */
void weft__crash_find_last_running(struct weft__finder *f, uint32_t *last, size_t *others)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	bool any = false;
	for (size_t i = 0; i < parts; i++) {
		last[i] = WEFT_NONE;
		any |= f->completeness[i].end_missing;
	}
	for (uint32_t p = 1; any && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		const struct weft_promise *promise = &m->promises[p];
		const struct weft__completeness *of = weft__completeness_of(f->completeness, m, p);
		if (!of->end_missing || of->lost || m->promises[p + 1].runs == promise->runs ||
		    promise->end != WEFT_END_PENDING ||
		    weft_kind_has(promise->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | WEFT__TRAITS_HELD | WEFT_TRAIT_CONDITION))
			continue;
		size_t r = m->promises[p + 1].runs - 1;
		uint16_t stream = m->run_streams ? m->run_streams[r] : promise->stream;
		const struct weft_run *run = &m->runs[r];
		if (run->end_ns < weft_model_stream_until(m, stream) || f->idle_at_end[stream])
			continue;
		uint32_t *of_part = &last[of - f->completeness];
		others[of - f->completeness] += *of_part != WEFT_NONE;
		if (*of_part == WEFT_NONE || m->runs[m->promises[*of_part + 1].runs - 1].start_ns <= run->start_ns)
			*of_part = p;
	}
}

/* The running promise is known, but the cause of the program's end is not: another process may have killed the program. */
static void report_last_running(struct weft__finder *f, uint32_t p, size_t others)
{
	const struct weft_model *m = f->model;
	const struct weft_run *run = &m->runs[m->promises[p + 1].runs - 1];
	f->reported[p] = true; /* it did not hang */
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_CRASH, p, run->start_ns, run->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	bool died = weft__completeness_of(f->completeness, m, p)->died;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->title = weft__finding_text(
	    f, "%s was running when %s%s", name, died ? "the program died" : "the recording stopped abruptly", at);
	finding->next = "open the core dump, unless another process killed the program or it is still running";
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, run->start_ns, p, "%s starts to run, and still runs when the trace ends", name);
	weft__evidence_find_hot_function(f, WEFT_EVIDENCE_CAUSE, p, run->start_ns, run->end_ns);
	if (others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%zu other promise%s ran on other threads at that time", others, others == 1 ? "" : "s");
}

/* The usual cause of each signal, and the advice for it. */
static const struct {
	const char *signal, *meaning, *next;
} reasons[] = {
    {"SIGABRT", "abort or failed assertion",
	"look for abort() or a failed assertion in the code that the promise runs, and read the standard error of the program"},
    {"SIGTRAP", "trap, such as g_error()",
	"look for g_error(), a breakpoint or a trap of a sanitizer in the code that the promise runs"},
    {"SIGSEGV", "access to unmapped memory", "open the core dump, and look for a NULL pointer or a pointer to freed memory"},
    {"SIGBUS", "access to a truncated mapped file", "find the mapped file, and the code that truncates it"},
    {"SIGFPE", "division by zero", "look for an integer division in the code that the promise runs"},
    {"SIGILL", "illegal instruction",
	"look for __builtin_trap() or a damaged function pointer in the code that the promise runs"},
};

static void report_death(struct weft__finder *f, const struct weft_death *death)
{
	const struct weft_model *m = f->model;
	uint32_t p = death->promise;
	int64_t start_ns = death->time_ns;
	uint32_t run = p == WEFT_SYSTEM ? WEFT_NONE : weft_run_before(m, p, death->time_ns + 1);
	if (run != WEFT_NONE)
		start_ns = m->runs[run].start_ns;
	f->reported[p] = true; /* it did not hang */
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_CRASH, p, start_ns, death->time_ns);
	if (!finding)
		return;
	const char *signal = weft__format_text(f, death->text), *meaning = "", *next = NULL;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (strcmp(signal, reasons[i].signal) == 0) {
			meaning = weft__finding_text(f, ": %s", reasons[i].meaning);
			next = reasons[i].next;
		}
	const char *runner = p == WEFT_SYSTEM ? "no promise" : weft__format_promise(f, p),
		   *at = p == WEFT_SYSTEM ? "" : weft__format_site_suffix(f, p);
	finding->title = weft__finding_text(f, "%s was running when the program died of %s%s%s", runner, signal, meaning, at);
	finding->next = next ? next : "open the core dump, which shows the exact line";
	if (p == WEFT_SYSTEM)
		return;
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, start_ns, p, "%s starts to run", runner);
	weft__evidence_find_hot_function(f, WEFT_EVIDENCE_CAUSE, p, start_ns, death->time_ns);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, death->time_ns, p, "%s arrives %s later, and no handler catches it",
	    signal, weft__format_duration(f, death->time_ns - start_ns));
}

/* Reports promise p as blocked if the recording stopped while p was in a system call, so that the code of p did not run. */
static bool report_last_call(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const uint16_t stream = m->run_streams ? m->run_streams[m->promises[p + 1].runs - 1] : m->promises[p].stream;
	return weft__hang_call_report_last(f, p, stream);
}

void weft__find_crash(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	uint32_t *last = weft__finding_alloc(f, parts, sizeof *last);
	size_t *others = weft__finding_alloc(f, parts, sizeof *others);
	if (last && others)
		weft__crash_find_last_running(f, last, others);
	/* A callback that is blocked in a call did not crash, unless a signal is recorded. */
	for (size_t i = 0; i < m->death_count; i++)
		f->reported[m->deaths[i].promise] = true;
	weft__hang_call_find(f);
	for (size_t i = 0; last && others && i < m->death_count; i++) {
		const struct weft_death *death = &m->deaths[i];
		report_death(f, death);
		last[weft_part_of_stream(m, death->stream)] = WEFT_NONE;
	}
	for (size_t i = 0; last && others && i < parts; i++) {
		if (last[i] != WEFT_NONE && f->completeness[i].still_running)
			f->reported[last[i]] = true; /* the promise did not hang; the `saved` finding of the copy reports it */
		else if (last[i] != WEFT_NONE && !f->reported[last[i]] && !report_last_call(f, last[i]) &&
			 !f->completeness[i].stopped)
			report_last_running(f, last[i], others[i]);
		if (last[i] != WEFT_NONE)
			f->reported[last[i]] = true; /* another finding explains why the promise did not continue */
	}
	free(last);
	free(others);
}
