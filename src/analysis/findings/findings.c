/* findings.c: collects, sorts and frees findings.  SPDX-License-Identifier: ISC */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/label_patterns.h"
#include "base/duration.h"
#include "base/sort.h"
#include "base/utf8.h"

#define MAX_TEXT_BYTES 1024 /* longer texts are cut */

struct weft_findings_private {
	struct weft__text_block *texts;
	struct weft_evidence *evidence;
};

static const enum weft_severity severities[] = {
#define SEVERITY(UPPER, name, severity, needs, text) WEFT_SEVERITY_##severity,
    WEFT_FINDINGS(SEVERITY)
#undef SEVERITY
};

/* ---- Texts ---- */

static const char *store_text(struct weft__finder *f, const char *line, size_t len)
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
	char line[MAX_TEXT_BYTES], clean[MAX_TEXT_BYTES];
	int length = vsnprintf(line, sizeof line, format, args);
	uint32_t len = length < 0 ? 0 : length < MAX_TEXT_BYTES ? (uint32_t)length : MAX_TEXT_BYTES - 1;
	/* A line that was cut may end in the middle of a UTF-8 character. */
	weft_utf8_copy(clean, sizeof clean, (struct weft_str){line, len});
	return store_text(f, clean, strlen(clean));
}

const char *weft__finding_text(struct weft__finder *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const char *text = write_text(f, format, args);
	va_end(args);
	return text;
}

static void free_texts(struct weft__text_block *block)
{
	while (block) {
		struct weft__text_block *before = block->before;
		free(block);
		block = before;
	}
}

/* ---- Writing findings ---- */

struct weft_finding *weft__finding_begin(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns)
{
	if (f->counts[kind]++ >= WEFT__MAX_FINDINGS_GATHERED) {
		f->left_out++;
		return NULL;
	}
	struct weft_finding *finding = weft_vec_push(&f->findings);
	if (!finding) {
		f->no_memory = true;
		return NULL;
	}
	f->request = NULL;
	*finding = (struct weft_finding){
	    .kind = kind,
	    .severity = severities[kind],
	    .sure = true,
	    .count = 1,
	    .promise = promise,
	    .root = promise,
	    .start_ns = start_ns < 0 ? 0 : start_ns,
	    .end_ns = end_ns > f->model->end_ns ? f->model->end_ns : end_ns,
	    .title = "",
	    .next = "",
	};
	return finding;
}

void weft__finding_doubt(struct weft__finder *f, const char *why)
{
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	finding->sure = false;
	if (!finding->doubt)
		finding->doubt = why;
}

/* Returns whether the process lived on for long after promise p last did anything, so that a missing end of the program leaves
 * no doubt. */
static bool was_silent(const struct weft__finder *f, uint32_t p, bool has_died)
{
	enum { SILENT_STALLS = 100 };
	const struct weft_trace_info *info = f->model->trace;
	const bool is_end_known = has_died || (!info->part_count && info->until_ns > 0);
	return is_end_known && !f->model->is_whole &&
	       weft_model_until(f->model, p) - weft__finding_last_action_ns(f, p) >= SILENT_STALLS * f->options.stall_ns;
}

bool weft__finding_doubt_part(struct weft__finder *f, uint32_t promise, bool is_open)
{
	const struct weft__completeness *completeness = weft__completeness_of(f->completeness, f->model, promise);
	const bool is_doubtful =
	    completeness->lost || (is_open && completeness->end_missing && !was_silent(f, promise, completeness->died));
	if (is_doubtful)
		weft__finding_doubt(f, weft__completeness_text(completeness));
	return is_doubtful;
}

void weft__finding_evidence(
    struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...)
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

void *weft__finding_alloc(struct weft__finder *f, size_t count, size_t item_bytes)
{
	void *memory = calloc(count + 1, item_bytes);
	f->no_memory |= !memory;
	return memory;
}

int64_t weft__finding_last_action_ns(const struct weft__finder *f, uint32_t p)
{
	enum { MAX_SCANNED = 16 };
	const struct weft_model *m = f->model;
	const bool is_restated = weft__is_only_past_missing(f->completeness, m, p);
	const uint32_t run = weft_run_before(m, p, INT64_MAX), begin = f->link_index.out_begin[p],
		       end = f->link_index.out_begin[p + 1];
	int64_t action_ns = run == WEFT_NONE ? m->promises[p].start_ns : m->runs[run].end_ns;
	for (uint32_t i = end; i > begin && end - i < MAX_SCANNED; i--) {
		const struct weft_link *link = &m->links[f->link_index.out[i - 1]];
		/* A state dump (checkpoint) records which promise waits for which, but not since when. */
		const bool is_dumped = is_restated && link->kind == WEFT_LINK_AWAIT;
		action_ns = weft_max_ns(action_ns, is_dumped ? m->promises[link->to].start_ns : link->time_ns);
	}
	return action_ns;
}

const uint32_t *weft__finding_patterns(struct weft__finder *f)
{
	const size_t count = f->types.items.count;
	if (f->pattern_of)
		return f->pattern_of;
	f->pattern_of = weft__finding_alloc(f, count, sizeof *f->pattern_of);
	f->pattern_longest_ns = weft__finding_alloc(f, count, sizeof *f->pattern_longest_ns);
	int status = f->no_memory ? WEFT_ENOMEM : weft__label_patterns_group(f->pattern_of, f->model, &f->types, &f->cancel);
	f->no_memory |= status == WEFT_ENOMEM;
	if (status < 0) {
		free(f->pattern_of);
		f->pattern_of = NULL;
	}
	for (size_t s = 0; f->pattern_of && s < count; s++)
		if (f->types.items.items[s].longest_ns > f->pattern_longest_ns[f->pattern_of[s]])
			f->pattern_longest_ns[f->pattern_of[s]] = f->types.items.items[s].longest_ns;
	return f->pattern_of;
}

/* ---- Results ---- */

/* Returns whether a finding is about delays.  The weight of such findings is the total delay, so they are sorted by it across
 * their kinds. */
static bool is_delay(const struct weft_finding *finding)
{
	return finding->kind == WEFT_FINDING_STALL || finding->kind == WEFT_FINDING_EXHAUSTED ||
	       finding->kind == WEFT_FINDING_STARVATION;
}

/* Returns whether a finding is a hang with a more precise cause than "nothing resolved it".  Hangs with a precise cause come
 * first, because the other hangs may follow from them. */
static bool is_explained(const struct weft_finding *x)
{
	return x->verdict == WEFT_VERDICT_LOST_WAKEUP || x->verdict == WEFT_VERDICT_NOT_RELEASED ||
	       x->verdict == WEFT_VERDICT_NOT_HANDED_ON;
}

/* Puts the reason why a copy was saved first, then alarms before informational findings, then certain before uncertain
 * findings, then uses the order of WEFT_FINDINGS. */
static int compare_findings(const void *a, const void *b)
{
	const struct weft_finding *x = a, *y = b;
	int kind = is_delay(x) && is_delay(y) ? 0 : WEFT_ORDER(x->kind, y->kind);
	return WEFT_ORDER(y->kind == WEFT_FINDING_SAVED, x->kind == WEFT_FINDING_SAVED) ?:
	       WEFT_ORDER(y->severity, x->severity) ?: WEFT_ORDER(y->sure, x->sure) ?: kind ?:
	       WEFT_ORDER(is_explained(y), is_explained(x)) ?: WEFT_ORDER(y->weight, x->weight) ?:
	       WEFT_ORDER(x->kind, y->kind) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise) ?:
	       strcmp(x->title, y->title);
}

void weft__finder_reset(struct weft__finder *f)
{
	weft__delays_finish(&f->delays);
	weft__promise_types_finish(&f->types);
	free(f->pattern_of);
	weft__root_causes_finish(&f->root_causes);
	weft__wait_graph_finish(&f->wait_graph);
	weft_link_index_finish(&f->link_index);
	free(f->idle_at_end);
	free(f->blocked_at_end);
	free(f->sleeps);
	free(f->sleeps_begin);
	free(f->slept_ns);
	free(f->completeness);
	free(f->reported);
	free(f->inherited_label);
	free(f->pattern_longest_ns);
	f->wait_graph = (struct weft__wait_graph){0};
	f->root_causes = (struct weft__root_causes){0};
	f->types = (struct weft__promise_types){0};
	f->delays = (struct weft__delays){0};
	f->link_index = (struct weft_link_index){0};
	f->pattern_of = f->inherited_label = NULL;
	f->pattern_longest_ns = NULL;
	f->idle_at_end = f->blocked_at_end = f->reported = NULL;
	f->slept_ns = NULL;
	f->sleeps = f->sleeps_begin = NULL;
	f->completeness = NULL;
}

static void free_steps(struct weft_finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(findings[i].steps);
}

static void assign_evidence(struct weft__finder *f)
{
	size_t evidence = 0;
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		finding->evidence = f->evidence.count ? &f->evidence.items[evidence] : NULL;
		evidence += finding->evidence_count;
	}
}

/* Drops the findings that a filter rejected or that other findings cover, and sorts the rest. */
static void drop_and_sort(struct weft__finder *f)
{
	size_t kept = 0;
	assign_evidence(f);
	weft__covers_apply(f);
	assign_evidence(f);
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		if (finding->kind == WEFT_FINDING_KINDS)
			free(finding->steps);
		else
			f->findings.items[kept++] = *finding;
	}
	f->findings.count = kept;
	weft_sort(f->findings.items, f->findings.count, sizeof *f->findings.items, compare_findings);
}

static bool is_inferred(const struct weft__finder *f, uint32_t promise)
{
	return promise != WEFT_NONE && promise < f->model->promise_count &&
	       f->model->promises[promise].flags & WEFT_PROMISE_INFERRED;
}

/* Marks findings as uncertain if they depend on facts that the reader of the trace only infers.  The evidence must already be
 * assigned to the findings. */
static void doubt_inferences(struct weft__finder *f)
{
	static const char inferred[] = "the trace does not record these waits: weft infers them from the order of events";
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		bool doubts = is_inferred(f, finding->promise) || is_inferred(f, finding->root);
		for (size_t e = 0; finding->evidence && e < finding->evidence_count && !doubts; e++)
			doubts = is_inferred(f, finding->evidence[e].promise);
		if (!doubts)
			continue;
		finding->sure = false;
		finding->doubt = finding->doubt ? weft__finding_text(f, "%s; %s", inferred, finding->doubt) : inferred;
	}
}

int weft__findings_finish(struct weft__finder *f, struct weft_findings **out, struct weft_error *err)
{
	struct weft_findings *findings = calloc(1, sizeof *findings);
	struct weft_findings_private *priv = calloc(1, sizeof *priv);
	if (!f->no_memory && !f->cancel.was_cancelled) {
		assign_evidence(f);
		doubt_inferences(f);
		drop_and_sort(f);
		weft__findings_merge(f);
		assign_evidence(f);
	}
	weft__finder_reset(f);
	weft_vec_free(&f->covers);
	if (f->no_memory || f->cancel.was_cancelled || !findings || !priv) {
		free(findings);
		free(priv);
		free_steps(f->findings.items, f->findings.count);
		weft_vec_free(&f->findings);
		weft_vec_free(&f->evidence);
		free_texts(f->texts);
		enum weft_status status = f->cancel.was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
		return weft_error_set(err, status, "%s", weft_status_string(status));
	}
	*priv = (struct weft_findings_private){f->texts, f->evidence.items};
	*findings = (struct weft_findings){f->findings.items, f->findings.count, f->left_out, f->doubt, priv};
	*out = findings;
	return WEFT_OK;
}

void weft_findings_destroy(struct weft_findings *findings)
{
	if (findings && findings->priv) {
		free_texts(findings->priv->texts);
		free(findings->priv->evidence);
		free(findings->priv);
		free_steps(findings->findings, findings->count);
		free(findings->findings);
	}
	free(findings);
}
