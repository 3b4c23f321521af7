/* crash.c: what ran when the program died.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* By part: who ran until its last event, the one that began last; WEFT_NONE: nobody.  A loop or an OS thread alone tells nothing.
 */
static void find_last(struct weft__finder *f, uint32_t *last, size_t *others)
{
	const struct weft_model *m = f->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		const struct weft_promise *promise = &m->promises[p];
		const struct weft__lacks *of = weft__lacks_of(f->lacks, m, p);
		if (!of->cut || of->lost || m->promises[p + 1].runs == promise->runs || promise->end != WEFT_END_PENDING ||
		    weft_kind_has(promise->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD))
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

static void tell_crash(struct weft__finder *f, uint32_t p, size_t others)
{
	const struct weft_model *m = f->model;
	const struct weft_run *run = &m->runs[m->promises[p + 1].runs - 1];
	f->told[p] = true; /* it did not hang */
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_CRASH, p, run->start_ns, run->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
	bool died = weft__lacks_of(f->lacks, m, p)->died;
	finding->title = weft__finding_text(f, "%s%s was running when %s", name, at,
	    died ? "the program died" : "the trace ended, which its program did not end: it died there, or runs still");
	finding->next = "if nobody killed it, look for an abort, a failed assertion or a bad access in what it calls";
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, run->start_ns, p, "%s begins to run, and never stops", name);
	if (others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%zu other%s ran on other OS threads",
		    others, others == 1 ? "" : "s");
}

void weft__find_crash(struct weft__finder *f)
{
	const size_t parts = f->model->trace->part_count ? f->model->trace->part_count : 1;
	uint32_t *last = weft__finding_alloc(f, parts, sizeof *last);
	size_t *others = weft__finding_alloc(f, parts, sizeof *others);
	bool any = false;
	for (size_t i = 0; last && i < parts; i++) {
		last[i] = WEFT_NONE;
		any |= f->lacks[i].cut;
	}
	if (last && others && any)
		find_last(f, last, others);
	for (size_t i = 0; last && others && i < parts; i++)
		if (last[i] != WEFT_NONE)
			tell_crash(f, last[i], others[i]);
	free(last);
	free(others);
}
