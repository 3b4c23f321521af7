/* explain.c: gathers findings, and what all of them are written with.  SPDX-License-Identifier: ISC */
#include "analysis/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/finding.h"
#include "base/idmap.h"
#include "base/utf8.h"

static const enum weft_severity weft__severities[] = {
#define SEVERITY(UPPER, name, severity, text) WEFT_SEVERITY_##severity,
    WEFT_FINDINGS(SEVERITY)
#undef SEVERITY
};

struct weft_findings_private {
	struct weft__text_block *texts;
	struct weft_evidence *evidence;
};

/* ---- Texts ---- */

static const char *keep(struct weft__finder *f, const char *line, size_t len)
{
	struct weft__text_block *block = f->texts;
	if (!block || block->size - block->used <= len) {
		size_t size = 16384;
		block = malloc(sizeof *block + size);
		if (!block) {
			f->no_memory = true;
			return "";
		}
		*block = (struct weft__text_block){f->texts, 0, size};
		f->texts = block;
	}
	char *text = &block->bytes[block->used];
	memcpy(text, line, len);
	text[len] = '\0';
	block->used += len + 1;
	return text;
}

__attribute__((format(printf, 2, 0))) static const char *write_text(struct weft__finder *f, const char *format, va_list args)
{
	char line[WEFT__LINE], clean[WEFT__LINE];
	int length = vsnprintf(line, sizeof line, format, args);
	uint32_t len = length < 0 ? 0 : length < WEFT__LINE ? (uint32_t)length : WEFT__LINE - 1;
	/* What was cut may end in the middle of a character. */
	weft_utf8_copy(clean, sizeof clean, (struct weft_str){line, len});
	return keep(f, clean, strlen(clean));
}

const char *weft__text(struct weft__finder *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const char *text = write_text(f, format, args);
	va_end(args);
	return text;
}

/* ---- Findings ---- */

struct weft_finding *weft__find(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns)
{
	struct weft_finding *finding = weft_vec_push(&f->findings);
	if (!finding) {
		f->no_memory = true;
		return NULL;
	}
	*finding = (struct weft_finding){
	    .kind = kind,
	    .severity = weft__severities[kind],
	    .sure = true,
	    .promise = promise,
	    .root = promise,
	    .start_ns = start_ns < 0 ? 0 : start_ns,
	    .end_ns = end_ns > f->model->end_ns ? f->model->end_ns : end_ns,
	    .title = "",
	    .next = "",
	};
	return finding;
}

void weft__show(struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...)
{
	va_list args;
	struct weft_evidence *line = weft_vec_push(&f->evidence);
	if (!line) {
		f->no_memory = true;
		return;
	}
	va_start(args, format);
	*line = (struct weft_evidence){time_ns, promise, role, write_text(f, format, args)};
	va_end(args);
	f->findings.items[f->findings.count - 1].evidence_count++;
}

bool weft__is_whole(const struct weft__finder *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	return !f->lost && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns >= f->horizon_ns;
}

static int compare_findings(const void *a, const void *b)
{
	const struct weft_finding *x = a, *y = b;
	if (x->sure != y->sure)
		return x->sure ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->promise > y->promise) - (x->promise < y->promise);
}

/* What is missing in the trace, and from when on nothing is. */
static void doubt(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const struct weft_trace_info *info = m->trace;
	f->cut = info->unfinished;
	f->lost = info->lost_no_stream > 0 || info->skipped_count > 0;
	bool several = info->stream_count > 1;
	for (size_t s = 0; s < info->stream_count; s++) {
		f->lost |= info->streams[s].lost_full > 0 || info->streams[s].lost_nested > 0;
		if (!several || !(info->wrapped || info->streams[s].lost_overwritten > 0))
			continue;
		/* Each OS thread has a ring of its own, which goes back as far as it goes. */
		int64_t first_ns = m->end_ns;
		for (size_t l = 0; l < m->link_count && m->links[l].time_ns < first_ns; l++)
			if (m->links[l].stream == s)
				first_ns = m->links[l].time_ns;
		if (first_ns > f->horizon_ns)
			f->horizon_ns = first_ns;
	}
	bool wrapped = info->wrapped;
	for (size_t s = 0; s < info->stream_count; s++)
		wrapped |= info->streams[s].lost_overwritten > 0;
	if (wrapped && f->horizon_ns == 0)
		f->horizon_ns = 1; /* what the first event tells of may have begun before it */
	f->doubt = f->lost   ? "events are missing in the trace"
		   : f->cut  ? "its program did not end the trace: it runs still, or was killed"
		   : wrapped ? "the ring was overwritten: the trace begins in the middle"
			     : NULL;
}

/* Whom each promise still waits for at the end: it awaited it, neither that nor it itself has ended, and it has not turned to
 * something else since. */
static bool find_awaits(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	f->awaits_begin = calloc(m->promise_count + 1, sizeof *f->awaits_begin);
	f->awaits = malloc((m->link_count + 1) * sizeof *f->awaits);
	if (!f->awaits_begin || !f->awaits)
		return false;
	uint32_t count = 0;
	for (uint32_t p = 0; p < m->promise_count; p++) {
		f->awaits_begin[p] = count;
		if (p == WEFT_SYSTEM || weft_has_ended(&m->promises[p]) || m->promises[p].end == WEFT_END_BECAME)
			continue;
		bool gathers = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_GATHERS);
		uint32_t begin = f->ties.out_begin[p], end = f->ties.out_begin[p + 1], last_run = WEFT_NONE;
		for (uint32_t i = end; i-- > begin;) {
			const struct weft_link *link = &m->links[f->ties.out[i]];
			if (link->kind != WEFT_LINK_AWAIT)
				continue;
			uint32_t run = weft_run_before(m, p, link->time_ns);
			if (last_run == WEFT_NONE)
				last_run = run == WEFT_NONE ? WEFT_NONE - 1 : run;
			else if (!gathers && last_run != (run == WEFT_NONE ? WEFT_NONE - 1 : run))
				break; /* it ran in between: it waits for something else by now */
			if (f->ties.ended_ns[link->to] == WEFT_NEVER && link->to != WEFT_SYSTEM)
				f->awaits[count++] = f->ties.now[link->to];
		}
		/* They were found the last first. */
		for (uint32_t low = f->awaits_begin[p], high = count; low + 1 < high; low++, high--) {
			uint32_t swap = f->awaits[low];
			f->awaits[low] = f->awaits[high - 1];
			f->awaits[high - 1] = swap;
		}
	}
	f->awaits_begin[m->promise_count] = count;
	return true;
}

/* Equal for promises of one sort. */
static int64_t sort_key(const struct weft_model *m, uint32_t p, bool *named)
{
	uint32_t label = weft_first_label(m, p), site = m->promises[p].site;
	uint64_t of = label != WEFT_NONE ? (uint64_t)label << 1 | 1 : (uint64_t)site << 1;
	*named = label != WEFT_NONE || site != WEFT_NONE;
	return (int64_t)(of << 16 | m->promises[p].kind);
}

static bool find_sorts(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct weft_idmap map = {0};
	bool ok = (f->sort_of = malloc(m->promise_count * sizeof *f->sort_of));
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		bool named;
		int64_t key = sort_key(m, p, &named);
		uint32_t number = weft_idmap_get(&map, key);
		if (number == WEFT_IDMAP_NONE) {
			number = (uint32_t)f->sorts.count;
			struct weft__sort *added = weft_vec_push(&f->sorts);
			if (!(ok = added && weft_idmap_set(&map, key, number)))
				break;
			*added = (struct weft__sort){.first = p, .last_resolved = WEFT_NONE, .named = named};
		}
		f->sort_of[p] = number;
		struct weft__sort *sort = &f->sorts.items[number];
		const struct weft_promise *promise = &m->promises[p];
		f->has_failures |= promise->end == WEFT_END_FAILED;
		f->has_conditions |= weft_kind_has(promise->kind, WEFT_TRAIT_CONDITION);
		sort->count++;
		sort->pending += f->ties.ended_ns[p] == WEFT_NEVER;
		if (promise->end != WEFT_END_RESOLVED)
			continue;
		sort->resolved++;
		if (sort->last_resolved == WEFT_NONE || m->promises[sort->last_resolved].end_ns <= promise->end_ns)
			sort->last_resolved = p;
	}
	weft_idmap_finish(&map);
	return ok;
}

static void finish(struct weft__finder *f)
{
	free(f->root);
	free(f->verdict);
	free(f->told);
	free(f->sort_of);
	weft_vec_free(&f->sorts);
	weft_ties_finish(&f->ties);
	free(f->awaits_begin);
	free(f->awaits);
}

static void drop(struct weft__finder *f)
{
	finish(f);
	weft_vec_free(&f->findings);
	weft_vec_free(&f->evidence);
	while (f->texts) {
		struct weft__text_block *before = f->texts->before;
		free(f->texts);
		f->texts = before;
	}
}

static int hand_over(struct weft__finder *f, struct weft_findings **out, struct weft_error *err)
{
	struct weft_findings *findings = calloc(1, sizeof *findings);
	struct weft_findings_private *priv = calloc(1, sizeof *priv);
	if (f->no_memory || f->called_off || !findings || !priv) {
		bool called_off = f->called_off;
		free(findings);
		free(priv);
		drop(f);
		if (called_off)
			return weft_error_set(err, WEFT_ECANCELLED, "%s", weft_status_string(WEFT_ECANCELLED));
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	finish(f);
	struct weft_evidence *evidence = f->evidence.items;
	for (size_t i = 0; i < f->findings.count; i++) {
		f->findings.items[i].evidence = evidence;
		evidence += f->findings.items[i].evidence_count;
	}
	if (f->findings.count > 1)
		qsort(f->findings.items, f->findings.count, sizeof *f->findings.items, compare_findings);
	*priv = (struct weft_findings_private){f->texts, f->evidence.items};
	*findings = (struct weft_findings){f->findings.items, f->findings.count, f->left_out, f->doubt, priv};
	*out = findings;
	return WEFT_OK;
}

static bool begin(struct weft__finder *f, const struct weft_model *model, const struct weft_explain_options *options)
{
	*f = (struct weft__finder){.model = model};
	if (options)
		f->options = *options;
	if (f->options.stall_ns == 0)
		f->options.stall_ns = 10000000;
	if (f->options.leak_count == 0)
		f->options.leak_count = 32;
	doubt(f);
	return weft_ties_init(&f->ties, model) == WEFT_OK && find_awaits(f) && find_sorts(f);
}

static bool goes_on(struct weft__finder *f, unsigned percent)
{
	if (f->options.go_on && !f->called_off)
		f->called_off = !f->options.go_on(f->options.ctx, percent);
	return !f->called_off;
}

int weft_explain(struct weft_findings **out, const struct weft_model *model, const struct weft_explain_options *options,
    struct weft_error *err)
{
	static bool (*const checks[])(struct weft__finder * f) = {
	    weft__find_hangs, weft__find_failures, weft__find_stuck, weft__find_delays, weft__find_leaks};
	enum { CHECKS = sizeof checks / sizeof *checks };
	struct weft__finder f;
	if (!begin(&f, model, options))
		f.no_memory = true;
	for (unsigned i = 0; i < CHECKS && !f.no_memory && goes_on(&f, 50 + 50 * i / CHECKS); i++)
		if (!checks[i](&f))
			f.no_memory = true;
	return hand_over(&f, out, err);
}

int weft_explain_promise(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err)
{
	struct weft__finder f;
	if (promise >= model->promise_count)
		return weft_error_set(err, WEFT_ENOTFOUND, "no such promise");
	if (!begin(&f, model, options) || (goes_on(&f, 50) && !weft__why(&f, promise)))
		f.no_memory = true;
	return hand_over(&f, out, err);
}

void weft_findings_destroy(struct weft_findings *findings)
{
	if (!findings)
		return;
	while (findings->priv->texts) {
		struct weft__text_block *before = findings->priv->texts->before;
		free(findings->priv->texts);
		findings->priv->texts = before;
	}
	free(findings->priv->evidence);
	free(findings->priv);
	free(findings->findings);
	free(findings);
}

const char *weft_finding_name(enum weft_finding_kind kind)
{
	static const char *const names[] = {
#define NAME(UPPER, name, severity, text) #name,
	    WEFT_FINDINGS(NAME)
#undef NAME
	};
	return (unsigned)kind < WEFT_FINDING_KINDS ? names[kind] : "unknown";
}

const char *weft_severity_name(enum weft_severity severity)
{
	return severity == WEFT_SEVERITY_ALARM ? "alarm" : "information";
}

const char *weft_verdict_name(enum weft_verdict verdict)
{
	static const char *const names[] = {
#define NAME(UPPER, name) name,
	    WEFT_VERDICTS(NAME)
#undef NAME
	};
	return (unsigned)verdict < WEFT_VERDICTS_COUNT ? names[verdict] : "unknown";
}
