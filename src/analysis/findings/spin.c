/* spin.c: code that is called again and again without a sleep: an idle callback that never says that it is done, a descriptor
 * that is always ready and that nobody reads.
 *
 * Whoever records tells how often, whenever the number has doubled.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/sort.h"

enum {
	LEAST_CALLS = 8192,
	MOST_NS = 50000 /* for one call, on average: what takes longer does its work in small pieces */
};

/* Calls of one promise without a sleep in between. */
struct burst {
	const struct weft_spin *first, *last;
};

static int compare_spins(const void *a, const void *b)
{
	const struct weft_spin *x = *(const struct weft_spin *const *)a, *y = *(const struct weft_spin *const *)b;
	if (x->promise != y->promise)
		return x->promise < y->promise ? -1 : 1;
	return (x > y) - (x < y);
}

static int64_t each_ns(const struct burst *b)
{
	uint64_t calls = b->last->calls - b->first->calls;
	return calls ? (int64_t)((uint64_t)(b->last->time_ns - b->first->time_ns) / calls) : 0;
}

static bool is_spin(const struct burst *b)
{
	return b->first && b->last->calls >= LEAST_CALLS && b->last != b->first && each_ns(b) <= MOST_NS;
}

/* The first calls may have been quicker than those that are measured: it began no sooner than it was there. */
static int64_t start_ns(const struct weft_model *m, const struct burst *b)
{
	int64_t start = b->first->time_ns - each_ns(b) * (int64_t)b->first->calls, since = m->promises[b->last->promise].start_ns;
	since = since > 0 ? since : 0;
	return start > since ? start : since;
}

static void tell_spin(struct weft__finder *f, const struct burst *b)
{
	const struct weft_model *m = f->model;
	uint32_t p = b->last->promise;
	int64_t start = start_ns(m, b), end = b->last->time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SPIN, p, start, end);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *each = weft__words_span(f, each_ns(b));
	finding->weight = b->last->calls;
	finding->title = weft__finding_text(f, "%s%s was called %" PRIu64 " times in %s, every %s, and its OS thread never slept",
	    name, at, b->last->calls, weft__words_span(f, end - start), each);
	finding->next = "find out why it is ready again at once: a callback that does not say that it is done, a descriptor that "
			"nobody reads or closes, a timer without a time, a promise that pauses where it could wait";
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, start, p, "%s is called, and again as soon as it returns", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end, p, "it was called %" PRIu64 " times by now", b->last->calls);
	/* The next event would have told of twice as many. */
	if (weft_model_until(m, p) - end > 2 * (end - start))
		weft__finding_doubt(f, "it came to an end by itself, and may have done its work in small pieces");
}

/* Those of loops, or all others; returns how many are told. */
static size_t tell_spins(struct weft__finder *f, const struct weft_spin **order, bool of_loops)
{
	const struct weft_model *m = f->model;
	size_t count = 0, told = 0;
	for (size_t i = 0; i < m->spin_count; i++)
		if (weft_kind_has(m->promises[m->spins[i].promise].kind, WEFT_TRAIT_LOOP) == of_loops)
			order[count++] = &m->spins[i];
	weft_sort(order, count, sizeof *order, compare_spins);
	struct burst burst = {0}, worst = {0};
	for (size_t i = 0; i <= count && weft__finding_goes_on(f, i, count); i++) {
		const struct weft_spin *s = i < count ? order[i] : NULL;
		bool is_other = !s || !burst.last || s->promise != burst.last->promise;
		if (is_other || s->calls <= burst.last->calls) {
			if (is_spin(&burst) && (!is_spin(&worst) || burst.last->calls > worst.last->calls))
				worst = burst;
			burst.first = s;
		}
		if (is_other) {
			if (is_spin(&worst)) {
				tell_spin(f, &worst);
				told++;
			}
			worst = (struct burst){0};
		}
		burst.last = s;
	}
	return told;
}

/* Under weft record the handle is known that keeps a loop awake, and says more than the loop does. */
void weft__find_spin(struct weft__finder *f)
{
	const struct weft_spin **order = weft__finding_alloc(f, f->model->spin_count, sizeof *order);
	if (order && tell_spins(f, order, false) == 0)
		tell_spins(f, order, true);
	free(order);
}
