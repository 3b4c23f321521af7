/* join.c: merges similar findings into one finding that lists the others.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/label_patterns.h"

#define PATTERN_BYTES 256

/* Returns whether this file merges similar findings of the kind.  The checks of all other kinds group their findings
 * themselves. */
static bool is_merged_here(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_TWICE || kind == WEFT_FINDING_MISUSED || kind == WEFT_FINDING_FAILURE ||
	       kind == WEFT_FINDING_RETRIES || kind == WEFT_FINDING_STALL || kind == WEFT_FINDING_EXHAUSTED ||
	       kind == WEFT_FINDING_WASTED || kind == WEFT_FINDING_SLOW || kind == WEFT_FINDING_UNDERWAY ||
	       kind == WEFT_FINDING_SPIN || kind == WEFT_FINDING_SEQUENCE;
}

static bool has_same_pattern(struct weft_str a, struct weft_str b)
{
	char first[PATTERN_BYTES], second[PATTERN_BYTES];
	weft__label_pattern(first, sizeof first, a);
	weft__label_pattern(second, sizeof second, b);
	return strcmp(first, second) == 0;
}

/* Returns whether two promises have the same kind, source location and error, and labels that differ only in numbers. */
static bool is_alike(const struct weft_model *m, uint32_t p, uint32_t q)
{
	const struct weft_promise *a = &m->promises[p], *b = &m->promises[q];
	const uint32_t label_a = weft_first_label(m, p), label_b = weft_first_label(m, q);
	if (p == q)
		return true;
	if (a->kind != b->kind || a->site != b->site || a->failure != b->failure ||
	    (label_a == WEFT_NONE) != (label_b == WEFT_NONE))
		return false;
	/* Promises without a source location can be told apart only by their labels. */
	return label_a == WEFT_NONE ? a->site != WEFT_NONE
				    : has_same_pattern(weft_model_text(m, label_a), weft_model_text(m, label_b));
}

static bool can_merge(const struct weft__finder *f, const struct weft_finding *a, const struct weft_finding *b)
{
	if (a->kind != b->kind || a->severity != b->severity)
		return false;
	/* A spin that another program interrupts ends without help and continues as the next spin, so its certainty does not
	 * matter. */
	if (a->sure != b->sure && a->kind != WEFT_FINDING_SPIN)
		return false;
	/* A pause belongs to no promise: only its title describes it. */
	if (a->promise == WEFT_SYSTEM || b->promise == WEFT_SYSTEM)
		return a->promise == b->promise && has_same_pattern((struct weft_str){a->title, (uint32_t)strlen(a->title)},
						       (struct weft_str){b->title, (uint32_t)strlen(b->title)});
	return is_alike(f->model, a->promise, b->promise) && is_alike(f->model, a->root, b->root);
}

/* Adds finding i with its evidence, and a line for each finding that was merged into it.  Returns false on lack of memory; then
 * finding i stays where it was. */
static bool append_merged(
    struct weft__finder *f, const struct weft_finding *old, const uint32_t *merged_into, size_t count, size_t i)
{
	const struct weft_finding *from = &old[i];
	struct weft_finding *merged = weft_vec_push(&f->findings);
	if (!merged) {
		f->no_memory = true;
		return false;
	}
	*merged = *from;
	merged->evidence_count = 0;
	for (size_t e = 0; e < from->evidence_count && !f->no_memory; e++) {
		struct weft_evidence *line = weft_vec_push(&f->evidence);
		f->no_memory |= !line;
		if (line)
			*line = from->evidence[e];
		merged->evidence_count++;
	}
	size_t listed = 0, others = 0;
	for (size_t k = i + 1; k < count && !f->no_memory; k++) {
		if (merged_into[k] != i)
			continue;
		others++;
		merged->count += old[k].count;
		if (listed == WEFT__MAX_LINES)
			continue;
		listed++;
		const bool nobody = old[k].promise == WEFT_SYSTEM;
		const bool fails = old[k].kind == WEFT_FINDING_FAILURE;
		weft__finding_evidence(f, WEFT_EVIDENCE_LIKE, fails ? old[k].end_ns : old[k].start_ns, old[k].promise,
		    "%s%s%s %s", nobody ? "a pause" : weft__format_promise(f, old[k].promise),
		    nobody ? "" : weft__format_site_suffix(f, old[k].promise), fails ? " failed after" : ":",
		    weft__format_duration(f, old[k].end_ns - old[k].start_ns));
	}
	weft__evidence_add_more(f, WEFT_EVIDENCE_LIKE, others - listed, "");
	if (merged->kind != WEFT_FINDING_SAVED) /* the title of a `saved` finding quotes a rule or the title of another finding */
		merged->title = weft__format_title(f, merged->title, others);
	return true;
}

void weft__findings_merge(struct weft__finder *f)
{
	const size_t count = f->findings.count;
	struct weft_finding *old = f->findings.items;
	struct weft_evidence *lines = f->evidence.items;
	uint32_t *merged_into = weft__finding_alloc(f, count, sizeof *merged_into);
	f->findings.items = NULL;
	f->findings.count = f->findings.capacity = 0;
	f->evidence.items = NULL;
	f->evidence.count = f->evidence.capacity = 0;
	size_t reported[WEFT_FINDING_KINDS] = {0};
	for (uint32_t i = 0; merged_into && i < count; i++) {
		merged_into[i] = i;
		for (uint32_t k = 0; k < i && merged_into[i] == i && is_merged_here(old[i].kind); k++)
			if (merged_into[k] == k && can_merge(f, &old[k], &old[i]))
				merged_into[i] = k;
	}
	for (size_t i = 0; i < count; i++) {
		const bool is_first = merged_into && !f->no_memory && merged_into[i] == i,
			   is_listed = is_first && reported[old[i].kind]++ < WEFT__MAX_FINDINGS_REPORTED;
		if (!is_listed || !append_merged(f, old, merged_into, count, i))
			free(old[i].steps);
		f->left_out += is_first && !is_listed;
	}
	free(merged_into);
	free(old);
	free(lines);
}
