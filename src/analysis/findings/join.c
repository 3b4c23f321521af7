/* join.c: findings of one sort, cause and site become one, which says where the others are.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shapes.h"

#define SHAPE_BYTES 256

/* What did not come, unless it was on its way, and who starved, is told of together by its own check. */
static bool is_told_one_by_one(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_TWICE || kind == WEFT_FINDING_MISUSED || kind == WEFT_FINDING_FAILURE ||
	       kind == WEFT_FINDING_RETRIES || kind == WEFT_FINDING_STALL || kind == WEFT_FINDING_EXHAUSTED ||
	       kind == WEFT_FINDING_WASTED || kind == WEFT_FINDING_SLOW || kind == WEFT_FINDING_UNDERWAY;
}

static bool has_same_shape(struct weft_str a, struct weft_str b)
{
	char first[SHAPE_BYTES], second[SHAPE_BYTES];
	weft__shape(first, sizeof first, a);
	weft__shape(second, sizeof second, b);
	return strcmp(first, second) == 0;
}

/* Of one kind and place, failed alike, and called alike but for numbers. */
static bool is_alike(const struct weft_model *m, uint32_t p, uint32_t q)
{
	const struct weft_promise *a = &m->promises[p], *b = &m->promises[q];
	const uint32_t label_a = weft_first_label(m, p), label_b = weft_first_label(m, q);
	if (p == q)
		return true;
	if (a->kind != b->kind || a->site != b->site || a->failure != b->failure ||
	    (label_a == WEFT_NONE) != (label_b == WEFT_NONE))
		return false;
	/* Without a site, a label is all that tells sorts apart. */
	return label_a == WEFT_NONE ? a->site != WEFT_NONE
				    : has_same_shape(weft_model_text(m, label_a), weft_model_text(m, label_b));
}

static bool is_same(const struct weft__finder *f, const struct weft_finding *a, const struct weft_finding *b)
{
	if (a->kind != b->kind || a->severity != b->severity || a->sure != b->sure)
		return false;
	/* Of a pause the title alone says what it was. */
	if (a->promise == WEFT_SYSTEM || b->promise == WEFT_SYSTEM)
		return a->promise == b->promise && has_same_shape((struct weft_str){a->title, (uint32_t)strlen(a->title)},
						       (struct weft_str){b->title, (uint32_t)strlen(b->title)});
	return is_alike(f->model, a->promise, b->promise) && is_alike(f->model, a->root, b->root);
}

/* Adds finding i with its evidence, and a line for each of those that became part of it; false: it stays where it was. */
static bool keep(struct weft__finder *f, const struct weft_finding *old, const uint32_t *into, size_t count, size_t i)
{
	const struct weft_finding *from = &old[i];
	struct weft_finding *kept = weft_vec_push(&f->findings);
	if (!kept) {
		f->no_memory = true;
		return false;
	}
	*kept = *from;
	kept->evidence_count = 0;
	for (size_t e = 0; e < from->evidence_count && !f->no_memory; e++) {
		struct weft_evidence *line = weft_vec_push(&f->evidence);
		f->no_memory |= !line;
		if (line)
			*line = from->evidence[e];
		kept->evidence_count++;
	}
	size_t listed = 0, others = 0;
	for (size_t k = i + 1; k < count && !f->no_memory; k++) {
		if (into[k] != i)
			continue;
		others++;
		kept->count += old[k].count;
		if (listed == WEFT__LINES_KEPT)
			continue;
		listed++;
		const bool nobody = old[k].promise == WEFT_SYSTEM;
		const bool fails = old[k].kind == WEFT_FINDING_FAILURE;
		weft__finding_evidence(f, WEFT_EVIDENCE_LIKE, fails ? old[k].end_ns : old[k].start_ns, old[k].promise,
		    "%s%s%s %s", nobody ? "a pause" : weft__words_name(f, old[k].promise),
		    nobody ? "" : weft__words_at(f, old[k].promise), fails ? " fails after" : ":",
		    weft__words_span(f, old[k].end_ns - old[k].start_ns));
	}
	weft__words_more(f, WEFT_EVIDENCE_LIKE, others - listed, "");
	if (others > 0)
		kept->title = weft__finding_text(f, "%s; %zu more finding%s like it", kept->title, others, weft__words_s(others));
	return true;
}

void weft__findings_join(struct weft__finder *f)
{
	const size_t count = f->findings.count;
	struct weft_finding *old = f->findings.items;
	struct weft_evidence *lines = f->evidence.items;
	uint32_t *into = weft__finding_alloc(f, count, sizeof *into);
	f->findings.items = NULL;
	f->findings.count = f->findings.capacity = 0;
	f->evidence.items = NULL;
	f->evidence.count = f->evidence.capacity = 0;
	size_t told[WEFT_FINDING_KINDS] = {0};
	for (uint32_t i = 0; into && i < count; i++) {
		into[i] = i;
		for (uint32_t k = 0; k < i && into[i] == i && is_told_one_by_one(old[i].kind); k++)
			if (into[k] == k && is_same(f, &old[k], &old[i]))
				into[i] = k;
	}
	for (size_t i = 0; i < count; i++) {
		const bool is_first = into && !f->no_memory && into[i] == i,
			   has_room = is_first && told[old[i].kind]++ < WEFT__FINDINGS_KEPT;
		if (!has_room || !keep(f, old, into, count, i))
			free(old[i].steps);
		f->left_out += is_first && !has_room;
	}
	free(into);
	free(old);
	free(lines);
}
