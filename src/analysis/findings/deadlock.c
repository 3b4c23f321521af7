/* deadlock.c: each holds a lock, or has one of a pool, that the next one waits for, in a circle.  SPDX-License-Identifier: ISC */
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
	while (!weft_kind_has(f->model->promises[p].kind, WEFT__TRAITS_HELD)) {
		wait = wait_in_circle(w, p);
		held.waits_ns = weft__waiting_since(w, p, wait);
		p = wait->to;
	}
	held.wanted = p;
	return held;
}

static bool is_pool(const struct weft__finder *f, uint32_t held)
{
	return weft_kind_has(f->model->promises[held].kind, WEFT_TRAIT_POOL);
}

/* How many have one of a pool. */
static uint32_t count_holders(const struct weft__finder *f, uint32_t pool)
{
	return (uint32_t)weft__waiting_count(&f->waiting, pool);
}

static const char *describe(struct weft__finder *f, const struct held *held)
{
	return weft__finding_text(f, "%s%s %s %s and waits for %s%s", weft__words_name(f, held->holder),
	    weft__words_at(f, held->holder), is_pool(f, held->lock) ? "has one of" : "holds", weft__words_name(f, held->lock),
	    held->wanted == held->lock && is_pool(f, held->lock) ? "another of " : "", weft__words_name(f, held->wanted));
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
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held[i].taken_ns, held[i].holder, "%s takes %s%s",
		    weft__words_name(f, held[i].holder), is_pool(f, held[i].lock) ? "one of " : "",
		    weft__words_name(f, held[i].lock));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last.waits_ns, last.holder,
	    "%s waits for %s: from now on none of them can go on", weft__words_name(f, last.holder),
	    weft__words_name(f, last.wanted));
	bool any_pool = false;
	for (uint32_t i = 0; i < kept; i++)
		any_pool |= is_pool(f, held[i].lock);
	for (uint32_t i = 0; i < kept; i++)
		if (is_pool(f, held[i].lock) && count_holders(f, held[i].lock) > 1)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, held[i].lock,
			    "%" PRIu32 " have one of %s, and none of them can give it back", count_holders(f, held[i].lock),
			    weft__words_name(f, held[i].lock));
	if (any_pool)
		finding->next =
		    count == 1 ? "take at once all that one needs of it, or give one back before waiting for the next"
			       : "take these in the same order everywhere, or give back the first before waiting for the second";
	else
		finding->next =
		    count == 1
			? "release the lock before it is taken again, or pass on that it is held"
			: "take these locks in the same order everywhere, or release the first before waiting for the second";
}

void weft__find_deadlock(struct weft__finder *f)
{
	weft__cycle_find(f, true);
}
