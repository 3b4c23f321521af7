/* explain.c: finds out what is known, and lets the checks ask it.  SPDX-License-Identifier: ISC */
#include "analysis/explain.h"

#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"

enum {
	WAITING = WEFT__NEED_WAITING,
	CHAINS = WEFT__NEED_WAITING | WEFT__NEED_CHAINS,
	SORTS = WEFT__NEED_SORTS,
	DELAYS = WEFT__NEED_DELAYS,
	ALL = WEFT__NEED_ALL,
	ROOTS = WEFT__NEED_ROOTS,
	QUESTION = WEFT__NEED_QUESTION,
	SEEN = WEFT__NEED_SEEN
};

static const struct {
	const char *name;
	unsigned needs;
	void (*find)(struct weft__finder *f);
} checks[] = {
#define CHECK(UPPER, name, severity, needs, text) {#name, (needs), weft__find_##name},
    WEFT_FINDINGS(CHECK)
#undef CHECK
};

static const struct weft__lacks *lacks_of_all(const struct weft__finder *f)
{
	return &f->lacks[f->model->trace->part_count ? f->model->trace->part_count : 1];
}

/* Whether a check is asked at all. */
static bool applies(const struct weft__finder *f, unsigned needs)
{
	const struct weft__lacks *lacks = lacks_of_all(f);
	return (f->asked != WEFT_NONE) == ((needs & QUESTION) != 0) && !(needs & ALL && lacks->lost) &&
	       !(needs & SEEN && lacks->unplaced);
}

static unsigned needs_of(enum weft_finding_kind kind)
{
	return checks[kind].needs;
}

/* On which OS threads no promise was running at the end: they slept, or their loop had returned. */
static bool find_rest(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	if (!(f->at_rest = weft__finding_alloc(f, m->trace->stream_count, sizeof *f->at_rest)) ||
	    !(f->slept_ns = weft__finding_alloc(f, parts, sizeof *f->slept_ns)))
		return false;
	for (size_t i = 0; i < parts; i++)
		f->slept_ns[i] = INT64_MIN;
	for (size_t s = 0; s < m->trace->stream_count; s++)
		f->at_rest[s] = true;
	for (size_t s = 0; s < m->sleep_count; s++) {
		f->slept_ns[weft_part_of_stream(m, m->sleeps[s].stream)] = m->sleeps[s].start_ns;
		f->at_rest[m->sleeps[s].stream] = m->sleeps[s].end_ns == weft_model_stream_until(m, m->sleeps[s].stream);
	}
	return true;
}

/* A promise that became another one is no longer heard of, but its name is. */
static bool find_heirs(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (!(f->heir_of = weft__finding_alloc(f, m->promise_count, sizeof *f->heir_of)))
		return false;
	memset(f->heir_of, 0xff, m->promise_count * sizeof *f->heir_of); /* WEFT_NONE */
	for (uint32_t p = 1; p < m->promise_count; p++) {
		if (f->ties.now[p] == p)
			continue;
		uint32_t label = weft_first_label(m, p);
		for (uint32_t heir = m->promises[p].became;
		     label != WEFT_NONE && heir != WEFT_NONE && f->heir_of[heir] == WEFT_NONE &&
		     weft_first_label(m, heir) == WEFT_NONE;
		     heir = m->promises[heir].became)
			f->heir_of[heir] = label;
	}
	return true;
}

/* Finds out what those checks need that apply; false when out of memory, or called off.  From `begin` on, that is the greater
 * part of `percent`. */
static bool know(struct weft__finder *f, unsigned begin, unsigned percent)
{
	struct weft__watch *watch = &f->watch;
	unsigned needs = 0;
	if (!(f->lacks = weft__lacks_find(f->model)))
		return false;
	for (int i = 0; i < WEFT_FINDING_KINDS; i++)
		needs |= applies(f, checks[i].needs) ? checks[i].needs : 0;
	weft__watch_stage(watch, begin + percent * 30 / 100);
	bool ok = find_rest(f) && weft_ties_init(&f->ties, f->model, WEFT_TIES_ALL, watch) == WEFT_OK && find_heirs(f);
	weft__watch_stage(watch, begin + percent * 45 / 100);
	if (needs & WAITING)
		ok = ok && weft__waiting_init(&f->waiting, &f->ties, INT64_MAX, watch) == WEFT_OK;
	weft__watch_stage(watch, begin + percent * 60 / 100);
	if (needs & WEFT__NEED_CHAINS)
		ok = ok && weft__chains_init(&f->chains, &f->ties, &f->waiting, f->lacks, watch) == WEFT_OK;
	weft__watch_stage(watch, begin + percent * 75 / 100);
	if (needs & SORTS)
		ok = ok && weft__sorts_init(&f->sorts, &f->ties, watch) == WEFT_OK;
	weft__watch_stage(watch, begin + percent * 90 / 100);
	if (needs & DELAYS)
		ok = ok && weft__delays_init(&f->delays, &f->ties, f->options.stall_ns, watch) == WEFT_OK;
	if (needs & ROOTS)
		ok = ok && (f->told = weft__finding_alloc(f, f->model->promise_count, sizeof *f->told));
	return ok;
}

/* Looks at the model, which is `percent` of the work; `begin` was done before. */
static void look(struct weft__finder *f, const struct weft_model *model, unsigned begin, unsigned percent)
{
	f->model = model;
	if (!know(f, begin, percent))
		f->no_memory = true;
	f->doubt = f->lacks ? weft__lacks_text(lacks_of_all(f)) : NULL;
	weft__watch_stage(&f->watch, begin + percent);
	for (int i = 0; i < WEFT_FINDING_KINDS && f->lacks && weft__finding_goes_on(f, 0, 1); i++)
		/* It died later than what is whole ends. */
		if (applies(f, checks[i].needs) && !(model->is_whole && (i == WEFT_FINDING_CRASH || i == WEFT_FINDING_SAVED)))
			checks[i].find(f);
}

static int explain(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err)
{
	struct weft__finder f = {.model = model, .asked = promise};
	const bool is_clipped = model->whole && promise == WEFT_NONE;
	if (options)
		f.options = *options;
	if (f.options.stall_ns == 0)
		f.options.stall_ns = 10000000;
	if (f.options.leak_count == 0)
		f.options.leak_count = 32;
	f.watch = (struct weft__watch){.go_on = f.options.go_on, .ctx = f.options.ctx};
	weft__watch_ask(&f.watch, 0);
	if (is_clipped)
		look(&f, model->whole, 0, 50);
	const size_t count = f.findings.count;
	if (is_clipped)
		weft__finding_forget(&f);
	look(&f, model, is_clipped ? 50 : 0, is_clipped ? 50 : 100);
	weft__missing_settle(&f, count, needs_of);
	return weft__findings_end(&f, out, err);
}

int weft_explain(struct weft_findings **out, const struct weft_model *model, const struct weft_explain_options *options,
    struct weft_error *err)
{
	return explain(out, model, WEFT_NONE, options, err);
}

int weft_explain_promise(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err)
{
	if (promise >= model->promise_count)
		return weft_error_set(err, WEFT_ENOTFOUND, "no such promise");
	return explain(out, model, promise, options, err);
}

const char *weft_finding_name(enum weft_finding_kind kind)
{
	return (unsigned)kind < WEFT_FINDING_KINDS ? checks[kind].name : "unknown";
}

const char *weft_severity_name(enum weft_severity severity)
{
	return severity == WEFT_SEVERITY_ALARM ? "alarm" : "information";
}

const char *weft_verdict_name(enum weft_verdict verdict)
{
	static const char *const names[] = {WEFT_VERDICTS(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, verdict);
}
