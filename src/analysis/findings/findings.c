/* findings.c: findings, from the first word to the last free.  SPDX-License-Identifier: ISC */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shapes.h"
#include "base/duration.h"
#include "base/sort.h"
#include "base/utf8.h"

#define LINE_BYTES 1024 /* a text is cut there */

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
	char line[LINE_BYTES], clean[LINE_BYTES];
	int length = vsnprintf(line, sizeof line, format, args);
	uint32_t len = length < 0 ? 0 : length < LINE_BYTES ? (uint32_t)length : LINE_BYTES - 1;
	/* What was cut may end in the middle of a character. */
	weft_utf8_copy(clean, sizeof clean, (struct weft_str){line, len});
	return keep(f, clean, strlen(clean));
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

/* ---- Telling ---- */

struct weft_finding *weft__finding_begin(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns)
{
	if (f->counts[kind]++ >= WEFT__FINDINGS_GATHERED) {
		f->left_out++;
		return NULL;
	}
	struct weft_finding *finding = weft_vec_push(&f->findings);
	if (!finding) {
		f->no_memory = true;
		return NULL;
	}
	f->turn = NULL;
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

bool weft__finding_doubt_part(struct weft__finder *f, uint32_t promise, bool is_open)
{
	const struct weft__lacks *lacks = weft__lacks_of(f->lacks, f->model, promise);
	const bool is_doubtful = lacks->lost || (is_open && lacks->cut);
	if (is_doubtful)
		weft__finding_doubt(f, weft__lacks_text(lacks));
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

int64_t weft__finding_last_deed(const struct weft__finder *f, uint32_t p)
{
	enum { LOOKED_AT = 16 };
	const struct weft_model *m = f->model;
	const bool is_told_again = weft__lacks_only_past_of(f->lacks, m, p);
	const uint32_t run = weft_run_before(m, p, INT64_MAX), begin = f->ties.out_begin[p], end = f->ties.out_begin[p + 1];
	int64_t deed_ns = run == WEFT_NONE ? m->promises[p].start_ns : m->runs[run].end_ns;
	for (uint32_t i = end; i > begin && end - i < LOOKED_AT; i--) {
		const struct weft_link *link = &m->links[f->ties.out[i - 1]];
		/* A state dump says who waits for whom, not since when. */
		const bool is_dumped = is_told_again && link->kind == WEFT_LINK_AWAIT;
		deed_ns = weft_max_ns(deed_ns, is_dumped ? m->promises[link->to].start_ns : link->time_ns);
	}
	return deed_ns;
}

const uint32_t *weft__finding_shapes(struct weft__finder *f)
{
	const size_t count = f->sorts.items.count;
	if (f->shape_of)
		return f->shape_of;
	f->shape_of = weft__finding_alloc(f, count, sizeof *f->shape_of);
	f->shape_longest_ns = weft__finding_alloc(f, count, sizeof *f->shape_longest_ns);
	int status = f->no_memory ? WEFT_ENOMEM : weft__shapes_group(f->shape_of, f->model, &f->sorts, &f->watch);
	f->no_memory |= status == WEFT_ENOMEM;
	if (status < 0) {
		free(f->shape_of);
		f->shape_of = NULL;
	}
	for (size_t s = 0; f->shape_of && s < count; s++)
		if (f->sorts.items.items[s].longest_ns > f->shape_longest_ns[f->shape_of[s]])
			f->shape_longest_ns[f->shape_of[s]] = f->sorts.items.items[s].longest_ns;
	return f->shape_of;
}

/* ---- The end ---- */

/* What made others late: its weight is how long in all, so the worst is told first, whatever its kind. */
static bool is_delay(const struct weft_finding *finding)
{
	return finding->kind == WEFT_FINDING_STALL || finding->kind == WEFT_FINDING_EXHAUSTED ||
	       finding->kind == WEFT_FINDING_STARVATION;
}

/* Of hangs those come first of which something else is known than that nobody ended them: the others may follow from these. */
static bool is_explained(const struct weft_finding *x)
{
	return x->verdict == WEFT_VERDICT_LOST_WAKEUP || x->verdict == WEFT_VERDICT_NOT_RELEASED ||
	       x->verdict == WEFT_VERDICT_NOT_HANDED_ON;
}

/* Why it was kept first, then alarms, what is certain before what is not, then as WEFT_FINDINGS has them. */
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

void weft__finding_forget(struct weft__finder *f)
{
	weft__delays_finish(&f->delays);
	weft__sorts_finish(&f->sorts);
	free(f->shape_of);
	weft__chains_finish(&f->chains);
	weft__waiting_finish(&f->waiting);
	weft_ties_finish(&f->ties);
	free(f->at_rest);
	free(f->sleeps);
	free(f->sleeps_begin);
	free(f->slept_ns);
	free(f->lacks);
	free(f->told);
	free(f->heir_of);
	free(f->shape_longest_ns);
	f->waiting = (struct weft__waiting){0};
	f->chains = (struct weft__chains){0};
	f->sorts = (struct weft__sorts){0};
	f->delays = (struct weft__delays){0};
	f->ties = (struct weft_ties){0};
	f->shape_of = f->heir_of = NULL;
	f->shape_longest_ns = NULL;
	f->at_rest = f->told = NULL;
	f->slept_ns = NULL;
	f->sleeps = f->sleeps_begin = NULL;
	f->lacks = NULL;
}

static void free_steps(struct weft_finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(findings[i].steps);
}

static void place_evidence(struct weft__finder *f)
{
	size_t evidence = 0;
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		finding->evidence = f->evidence.count ? &f->evidence.items[evidence] : NULL;
		evidence += finding->evidence_count;
	}
}

/* Those that turned out not to hold go. */
static void drop_and_sort(struct weft__finder *f)
{
	size_t kept = 0;
	place_evidence(f);
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

int weft__findings_end(struct weft__finder *f, struct weft_findings **out, struct weft_error *err)
{
	struct weft_findings *findings = calloc(1, sizeof *findings);
	struct weft_findings_private *priv = calloc(1, sizeof *priv);
	if (!f->no_memory && !f->watch.called_off) {
		drop_and_sort(f);
		weft__findings_join(f);
		place_evidence(f);
	}
	weft__finding_forget(f);
	if (f->no_memory || f->watch.called_off || !findings || !priv) {
		free(findings);
		free(priv);
		free_steps(f->findings.items, f->findings.count);
		weft_vec_free(&f->findings);
		weft_vec_free(&f->evidence);
		free_texts(f->texts);
		enum weft_status status = f->watch.called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
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
