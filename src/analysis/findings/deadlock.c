/* deadlock.c: each holds a lock that the next one waits for, in a circle.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/sort.h"

/* A lock of the circle: who holds it, and which lock that one waits for. */
struct held {
	uint32_t lock, holder, wanted;
	int64_t taken_ns, waits_ns;
};

/* When a promise of the circle began to wait for the next one. */
static const struct weft__wait *wait_in_circle(const struct weft__waiting *w, uint32_t p)
{
	for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++)
		if (w->part[w->waits[i].to] == w->part[p])
			return &w->waits[i];
	return NULL;
}

/* From one lock of the circle to the next. */
static struct held look_at(const struct weft__finder *f, uint32_t lock)
{
	const struct weft__waiting *w = &f->waiting;
	const struct weft__wait *wait = wait_in_circle(w, lock);
	struct held held = {.lock = lock, .holder = wait->to, .taken_ns = weft__waiting_since(w, lock, wait)};
	uint32_t p = wait->to;
	while (!weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_LOCK)) {
		wait = wait_in_circle(w, p);
		held.waits_ns = weft__waiting_since(w, p, wait);
		p = wait->to;
	}
	held.wanted = p;
	return held;
}

static const char *describe(struct weft__finder *f, const struct held *held)
{
	return weft__finding_text(f, "%s%s holds %s and waits for %s", weft__words_name(f, held->holder),
	    weft__words_at(f, held->holder), weft__words_name(f, held->lock), weft__words_name(f, held->wanted));
}

static int compare_taken(const void *a, const void *b)
{
	const struct held *x = a, *y = b;
	return (x->taken_ns > y->taken_ns) - (x->taken_ns < y->taken_ns);
}

void weft__deadlock_words(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t length)
{
	struct held held[WEFT__LINES_KEPT], last = {.waits_ns = INT64_MIN};
	uint32_t count = 0, p = lock;
	do {
		struct held one = look_at(f, p);
		if (one.waits_ns > last.waits_ns)
			last = one;
		if (count < WEFT__LINES_KEPT)
			held[count] = one;
		count++;
		p = one.wanted;
	} while (p != lock && count < length);
	uint32_t kept = count < WEFT__LINES_KEPT ? count : WEFT__LINES_KEPT;
	const char *first = describe(f, &held[0]);
	if (count == 1)
		finding->title = weft__finding_text(f, "%s, which it never gets", first);
	else if (count == 2)
		finding->title = weft__finding_text(f, "%s, and %s", first, describe(f, &held[1]));
	else
		finding->title = weft__finding_text(
		    f, "%s, and %s, and so on: %" PRIu32 " locks in a circle", first, describe(f, &held[1]), count);
	finding->promise = finding->root = last.holder;
	finding->start_ns = last.waits_ns;
	weft_sort(held, kept, sizeof *held, compare_taken);
	for (uint32_t i = 0; i < kept; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held[i].taken_ns, held[i].holder, "%s takes %s",
		    weft__words_name(f, held[i].holder), weft__words_name(f, held[i].lock));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last.waits_ns, last.holder,
	    "%s waits for %s: from now on none of them can go on", weft__words_name(f, last.holder),
	    weft__words_name(f, last.wanted));
	finding->next = count == 1
			    ? "release the lock before it is taken again, or pass on that it is held"
			    : "take these locks in the same order everywhere, or release the first before waiting for the second";
}

void weft__find_deadlock(struct weft__finder *f)
{
	weft__cycle_find(f, true);
}
