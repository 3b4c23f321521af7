/* crash.c: what ran when the program died.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"

/* A loop or an OS thread alone tells nothing. */
void weft__crash_last(struct weft__finder *f, uint32_t *last, size_t *others)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	bool any = false;
	for (size_t i = 0; i < parts; i++) {
		last[i] = WEFT_NONE;
		any |= f->lacks[i].cut;
	}
	for (uint32_t p = 1; any && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		const struct weft_promise *promise = &m->promises[p];
		const struct weft__lacks *of = weft__lacks_of(f->lacks, m, p);
		if (!of->cut || of->lost || m->promises[p + 1].runs == promise->runs || promise->end != WEFT_END_PENDING ||
		    weft_kind_has(promise->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | WEFT__TRAITS_HELD | WEFT_TRAIT_CONDITION))
			continue;
		size_t r = m->promises[p + 1].runs - 1;
		uint16_t stream = m->run_streams ? m->run_streams[r] : promise->stream;
		const struct weft_run *run = &m->runs[r];
		if (run->end_ns < weft_model_stream_until(m, stream) || f->at_rest[stream])
			continue;
		uint32_t *of_part = &last[of - f->lacks];
		others[of - f->lacks] += *of_part != WEFT_NONE;
		if (*of_part == WEFT_NONE || m->runs[m->promises[*of_part + 1].runs - 1].start_ns <= run->start_ns)
			*of_part = p;
	}
}

/* Who ran is known, but not what ended the program: somebody may have killed it. */
static void tell_last(struct weft__finder *f, uint32_t p, size_t others)
{
	const struct weft_model *m = f->model;
	const struct weft_run *run = &m->runs[m->promises[p + 1].runs - 1];
	f->told[p] = true; /* it did not hang */
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_CRASH, p, run->start_ns, run->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
	bool died = weft__lacks_of(f->lacks, m, p)->died;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->title = weft__finding_text(f, "%s%s was running when %s", name, at,
	    died ? "the program died" : "the trace ended, which its program did not end: it died there, or runs still");
	finding->next =
	    "if nobody killed it, look for what ends the program in the code that it calls: a core dump has the place";
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, run->start_ns, p, "%s begins to run, and never stops", name);
	if (others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%zu other%s ran on other OS threads",
		    others, others == 1 ? "" : "s");
}

/* What raises a signal, and where to look. */
static const struct {
	const char *signal, *meaning, *next;
} reasons[] = {
    {"SIGABRT", "an abort, or a failed assertion",
	"look for abort() or an assertion in the code that it calls; the program may have said on standard error which"},
    {"SIGTRAP", "a trap, as of g_error()", "look for g_error(), a breakpoint or a sanitizer's trap in the code that it calls"},
    {"SIGSEGV", "an access to memory that is not there",
	"look for a pointer that is NULL, or to what was freed, in the code that it calls; a core dump has the place"},
    {"SIGBUS", "an access to a mapped file that was cut short", "look for what is mapped, and who truncates it"},
    {"SIGFPE", "a division by zero", "look for a division in the code that it calls"},
    {"SIGILL", "an illegal instruction",
	"look for __builtin_trap() or a damaged pointer to a function in the code that it calls"},
};

static void tell_death(struct weft__finder *f, const struct weft_death *death)
{
	const struct weft_model *m = f->model;
	uint32_t p = death->promise;
	int64_t start_ns = death->time_ns;
	uint32_t run = p == WEFT_SYSTEM ? WEFT_NONE : weft_run_before(m, p, death->time_ns + 1);
	if (run != WEFT_NONE)
		start_ns = m->runs[run].start_ns;
	f->told[p] = true; /* it did not hang */
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_CRASH, p, start_ns, death->time_ns);
	if (!finding)
		return;
	const char *signal = weft__words_text(f, death->text), *meaning = "", *next = NULL;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (strcmp(signal, reasons[i].signal) == 0) {
			meaning = weft__finding_text(f, " (%s)", reasons[i].meaning);
			next = reasons[i].next;
		}
	const char *who = p == WEFT_SYSTEM ? "no promise" : weft__words_name(f, p),
		   *at = p == WEFT_SYSTEM ? "" : weft__words_at(f, p);
	finding->title = weft__finding_text(f, "%s%s was running when the program died of %s%s", who, at, signal, meaning);
	finding->next = next ? next : "look at what it calls; a core dump has the place";
	if (p == WEFT_SYSTEM)
		return;
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, start_ns, p, "%s begins to run", who);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, death->time_ns, p, "%s comes, %s later, and nobody handles it", signal,
	    weft__words_span(f, death->time_ns - start_ns));
}

void weft__find_crash(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	uint32_t *last = weft__finding_alloc(f, parts, sizeof *last);
	size_t *others = weft__finding_alloc(f, parts, sizeof *others);
	if (last && others)
		weft__crash_last(f, last, others);
	for (size_t i = 0; last && others && i < m->death_count; i++) {
		const struct weft_death *death = &m->deaths[i];
		tell_death(f, death);
		last[weft_part_of_stream(m, death->stream)] = WEFT_NONE;
	}
	for (size_t i = 0; last && others && i < parts; i++) {
		if (last[i] != WEFT_NONE && f->lacks[i].ran_on)
			f->told[last[i]] = true; /* nor did it hang: the copy tells of it as such */
		else if (last[i] != WEFT_NONE)
			tell_last(f, last[i], others[i]);
	}
	free(last);
	free(others);
}
