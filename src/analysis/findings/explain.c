/* explain.c: computes the indexes that the checks need, and runs the checks.  SPDX-License-Identifier: ISC */
#include "analysis/findings/explain.h"

#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"

enum {
	WAIT_GRAPH = WEFT__NEED_WAIT_GRAPH,
	ROOT_CAUSES = WEFT__NEED_WAIT_GRAPH | WEFT__NEED_ROOT_CAUSES,
	TYPES = WEFT__NEED_TYPES,
	DELAYS = WEFT__NEED_DELAYS,
	COMPLETE = WEFT__NEED_COMPLETE,
	UNREPORTED = WEFT__NEED_UNREPORTED,
	QUESTION = WEFT__NEED_QUESTION,
	OBSERVED = WEFT__NEED_OBSERVED
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

static const struct weft__completeness *get_total_completeness(const struct weft__finder *f)
{
	return &f->completeness[f->model->trace->part_count ? f->model->trace->part_count : 1];
}

/* Returns whether a check runs on this trace. */
static bool is_check_applicable(const struct weft__finder *f, unsigned needs)
{
	const struct weft__completeness *completeness = get_total_completeness(f);
	return (f->asked_promise != WEFT_NONE) == ((needs & QUESTION) != 0) && !(needs & COMPLETE && completeness->lost) &&
	       !(needs & OBSERVED && completeness->unplaced);
}

static unsigned get_needs(enum weft_finding_kind kind)
{
	return checks[kind].needs;
}

/* Finds the streams on which no promise was running at the end, because the thread slept or its loop had returned. */
static bool find_idle_streams(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	if (!(f->idle_at_end = weft__finding_alloc(f, m->trace->stream_count, sizeof *f->idle_at_end)) ||
	    !(f->slept_ns = weft__finding_alloc(f, parts, sizeof *f->slept_ns)))
		return false;
	for (size_t i = 0; i < parts; i++)
		f->slept_ns[i] = INT64_MIN;
	for (size_t s = 0; s < m->trace->stream_count; s++)
		f->idle_at_end[s] = true;
	for (size_t s = 0; s < m->sleep_count; s++) {
		f->slept_ns[weft_part_of_stream(m, m->sleeps[s].stream)] = m->sleeps[s].start_ns;
		f->idle_at_end[m->sleeps[s].stream] = m->sleeps[s].end_ns == weft_model_stream_until(m, m->sleeps[s].stream);
	}
	return true;
}

/* Finds labels for promises without a label: a promise that became another one passes its label to it. */
static bool find_inherited_labels(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (!(f->inherited_label = weft__finding_alloc(f, m->promise_count, sizeof *f->inherited_label)))
		return false;
	memset(f->inherited_label, 0xff, m->promise_count * sizeof *f->inherited_label); /* WEFT_NONE */
	for (uint32_t p = 1; p < m->promise_count; p++) {
		if (f->link_index.final[p] == p)
			continue;
		uint32_t label = weft_first_label(m, p);
		for (uint32_t successor = m->promises[p].became;
		     label != WEFT_NONE && successor != WEFT_NONE && f->inherited_label[successor] == WEFT_NONE &&
		     weft_first_label(m, successor) == WEFT_NONE;
		     successor = m->promises[successor].became)
			f->inherited_label[successor] = label;
	}
	return true;
}

/* Computes the indexes that the applicable checks need; reports progress from `begin` on, most of `percent`.  Returns false on
 * lack of memory or when cancelled. */
static bool compute_needed(struct weft__finder *f, unsigned begin, unsigned percent)
{
	struct weft__cancel_token *cancel = &f->cancel;
	unsigned needs = 0;
	if (!(f->completeness = weft__completeness_find(f->model)))
		return false;
	for (int i = 0; i < WEFT_FINDING_KINDS; i++)
		needs |= is_check_applicable(f, checks[i].needs) ? checks[i].needs : 0;
	weft__cancel_token_begin_stage(cancel, begin + percent * 30 / 100);
	bool ok = find_idle_streams(f) && weft__hang_call_find_blocked(f) &&
		  weft_link_index_init(&f->link_index, f->model, WEFT_LINK_INDEX_ALL, cancel) == WEFT_OK &&
		  find_inherited_labels(f);
	weft__cancel_token_begin_stage(cancel, begin + percent * 45 / 100);
	if (needs & WAIT_GRAPH)
		ok = ok && weft__wait_graph_init(&f->wait_graph, &f->link_index, INT64_MAX, cancel) == WEFT_OK;
	weft__cancel_token_begin_stage(cancel, begin + percent * 60 / 100);
	if (needs & WEFT__NEED_ROOT_CAUSES)
		ok = ok &&
		     weft__root_causes_init(&f->root_causes, &f->link_index, &f->wait_graph, f->completeness, cancel) == WEFT_OK;
	weft__cancel_token_begin_stage(cancel, begin + percent * 75 / 100);
	if (needs & TYPES)
		ok = ok && weft__promise_types_init(&f->types, &f->link_index, cancel) == WEFT_OK;
	weft__cancel_token_begin_stage(cancel, begin + percent * 90 / 100);
	if (needs & DELAYS)
		ok = ok && weft__delays_init(&f->delays, &f->link_index, f->options.stall_ns, cancel) == WEFT_OK;
	if (needs & UNREPORTED)
		ok = ok && (f->reported = weft__finding_alloc(f, f->model->promise_count, sizeof *f->reported));
	return ok;
}

/* Runs the checks on a model; reports progress from `begin` on, `percent` of the whole work. */
static void run_checks(struct weft__finder *f, const struct weft_model *model, unsigned begin, unsigned percent)
{
	f->model = model;
	if (!compute_needed(f, begin, percent))
		f->no_memory = true;
	f->doubt = f->completeness ? weft__completeness_text(get_total_completeness(f)) : NULL;
	weft__cancel_token_begin_stage(&f->cancel, begin + percent);
	for (int i = 0; i < WEFT_FINDING_KINDS && f->completeness && weft__finding_may_continue(f, 0, 1); i++)
		/* The complete prefix of the trace ends before the program died or the copy was saved, so these checks do not
		 * run on it. */
		if (is_check_applicable(f, checks[i].needs) &&
		    !(model->is_whole && (i == WEFT_FINDING_CRASH || i == WEFT_FINDING_SAVED)))
			checks[i].find(f);
}

static int explain_model(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err)
{
	struct weft__finder f = {.model = model, .asked_promise = promise};
	const bool is_clipped = model->whole && promise == WEFT_NONE;
	if (options)
		f.options = *options;
	if (f.options.stall_ns == 0)
		f.options.stall_ns = 10000000;
	if (f.options.leak_count == 0)
		f.options.leak_count = 32;
	f.cancel = (struct weft__cancel_token){.go_on = f.options.go_on, .ctx = f.options.ctx};
	weft__cancel_token_check(&f.cancel, 0);
	if (is_clipped)
		run_checks(&f, model->whole, 0, 50);
	const size_t count = f.findings.count;
	if (is_clipped)
		weft__finder_reset(&f);
	run_checks(&f, model, is_clipped ? 50 : 0, is_clipped ? 50 : 100);
	weft__missing_events_filter(&f, count, get_needs);
	return weft__findings_finish(&f, out, err);
}

int weft_explain(struct weft_findings **out, const struct weft_model *model, const struct weft_explain_options *options,
    struct weft_error *err)
{
	return explain_model(out, model, WEFT_NONE, options, err);
}

int weft_explain_promise(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err)
{
	if (promise >= model->promise_count)
		return weft_error_set(err, WEFT_ENOTFOUND, "no such promise");
	return explain_model(out, model, promise, options, err);
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
