/* trouble.c: failures of which nobody took notice, promises that others overtook, promises that only become more.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/finding.h"
#include "base/idmap.h"

static const char *span(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

/* ---- Failures ---- */

/* Failures of one sort with one text. */
struct failures {
	uint32_t first, count;
};

static bool is_text(const struct weft_model *m, uint32_t text, const char *what)
{
	struct weft_str str = weft_model_text(m, text);
	return str.len == strlen(what) && memcmp(str.ptr, what, str.len) == 0;
}

/* A promise that only follows another fails right after it, without a word of reading. */
static bool is_passed_on(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++) {
		uint32_t l = f->ties.in[i];
		if (m->links[l].kind != WEFT_LINK_RESOLVE || m->links[l].time_ns != m->promises[p].end_ns)
			continue;
		for (size_t k = l + 1; k < m->link_count && m->links[k].kind == WEFT_LINK_RESOLVE; k++) {
			const struct weft_promise *next = &m->promises[m->links[k].to];
			if (m->links[k].from != m->links[l].from || next->failure != m->promises[p].failure)
				break;
			if (weft_kind_has(next->kind, WEFT_TRAIT_FOLLOWS))
				return true;
		}
	}
	return false;
}

/* Whether the program did anything after that moment: then who wanted to read had the time to. */
static bool went_on_after(const struct weft__finder *f, int64_t time_ns)
{
	const struct weft_model *m = f->model;
	size_t low = 0, high = m->sleep_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->sleeps[middle].start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->sleep_count;
}

/* Where the error came from: back over those that failed because they read one that had. */
static uint32_t origin_of(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t steps = 0; steps < 1000; steps++) {
		uint32_t before = WEFT_NONE;
		for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
			const struct weft_link *link = &m->links[f->ties.out[i]];
			uint32_t q = f->ties.now[link->to];
			if (link->kind == WEFT_LINK_READ && link->time_ns <= m->promises[p].end_ns &&
			    m->promises[q].end == WEFT_END_FAILED && m->promises[q].failure == m->promises[p].failure)
				before = q;
		}
		if (before == WEFT_NONE || before == p)
			break;
		p = before;
	}
	return p;
}

static void say_failure(struct weft__finder *f, const struct failures *failures)
{
	const struct weft_model *m = f->model;
	uint32_t p = failures->first, origin = origin_of(f, p);
	const struct weft_promise *promise = &m->promises[p];
	char name[WEFT__NAME], other[WEFT__NAME], place[WEFT__NAME], text[256];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_FAILURE, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	finding->root = origin;
	finding->weight = failures->count;
	weft__name(f, p, name);
	weft__place(f, p, place);
	weft__clean(f, promise->failure, text, sizeof text);
	if (failures->count == 1)
		finding->title = weft__text(f, "%s failed, and nobody took notice: %s", name, text);
	else
		finding->title = weft__text(
		    f, "%s and %" PRIu32 " more of its sort failed, and nobody took notice: %s", name, failures->count - 1, text);
	finding->next = weft__text(f, "wait for it where it is made, or catch its errors%s%s", *place ? ": " : "", place);
	if (promise->created_by != WEFT_NONE && !(promise->flags & WEFT_PROMISE_START_UNKNOWN))
		weft__show(f, WEFT_EVIDENCE_CAUSE, promise->start_ns, p, "%s was created by %s%s%s", name,
		    weft__name(f, promise->created_by, other), *place ? " at " : "", place);
	if (origin != p)
		weft__show(f, WEFT_EVIDENCE_CAUSE, m->promises[origin].end_ns, origin, "%s%s%s failed first, with that error",
		    weft__name(f, origin, other), *weft__place(f, origin, place) ? " at " : "", place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, promise->end_ns, p, "%s failed; nobody awaited it before, or read it after", name);
}

bool weft__find_failures(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (f->lost || !f->has_failures)
		return true; /* who read it may be what is missing */
	bool *noticed = calloc(m->promise_count, sizeof *noticed);
	struct weft_idmap groups = {0};
	WEFT_VEC(struct failures) found = {0};
	bool ok = noticed;
	for (size_t l = 0; ok && l < m->link_count; l++)
		if (m->links[l].kind == WEFT_LINK_READ || m->links[l].kind == WEFT_LINK_AWAIT)
			noticed[f->ties.now[m->links[l].to]] = true;
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		const struct weft_promise *promise = &m->promises[p];
		if (promise->end != WEFT_END_FAILED || !weft_has_ended(promise) || noticed[p] || !weft__is_whole(f, p) ||
		    is_text(m, promise->failure, "cancelled") || is_passed_on(f, p) ||
		    (f->cut && !went_on_after(f, promise->end_ns)))
			continue;
		int64_t key = (int64_t)((uint64_t)f->sort_of[p] << 32 | promise->failure);
		uint32_t group = weft_idmap_get(&groups, key);
		if (group == WEFT_IDMAP_NONE) {
			struct failures *added = weft_vec_push(&found);
			group = (uint32_t)found.count - 1;
			if (!(ok = added && weft_idmap_set(&groups, key, group)))
				break;
			*added = (struct failures){p, 0};
		}
		found.items[group].count++;
	}
	for (size_t i = 0; ok && i < found.count; i++)
		if (i < WEFT__FINDINGS_KEPT)
			say_failure(f, &found.items[i]);
		else
			f->left_out++;
	weft_vec_free(&found);
	weft_idmap_finish(&groups);
	free(noticed);
	return ok;
}

/* ---- Overtaken ---- */

enum { ENOUGH_OTHERS = 20, OVERTAKEN = 10, TIMES_OLDER = 5 };

/* Of one sort, those that ended: how long the longest took, and when the younger ones were created. */
struct lives {
	int64_t max_ns;
	int64_t late_starts[OVERTAKEN]; /* the latest creations among those that ended, ascending; the first n of them */
	uint32_t ended, late_count;
};

static void add_late(struct lives *lives, int64_t start_ns)
{
	uint32_t at;
	if (lives->late_count < OVERTAKEN) {
		at = lives->late_count++;
	} else {
		if (start_ns <= lives->late_starts[0])
			return;
		at = 0;
		for (; at + 1 < OVERTAKEN && lives->late_starts[at + 1] < start_ns; at++)
			lives->late_starts[at] = lives->late_starts[at + 1];
		lives->late_starts[at] = start_ns;
		return;
	}
	for (; at > 0 && lives->late_starts[at - 1] > start_ns; at--)
		lives->late_starts[at] = lives->late_starts[at - 1];
	lives->late_starts[at] = start_ns;
}

static bool may_be_stuck(const struct weft__finder *f, const struct lives *lives, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	const struct lives *others = &lives[f->sort_of[p]];
	int64_t age_ns = f->model->end_ns - promise->start_ns;
	return promise->end == WEFT_END_PENDING && others->ended >= ENOUGH_OTHERS && others->late_count == OVERTAKEN &&
	       others->late_starts[0] > promise->start_ns && age_ns / TIMES_OLDER > others->max_ns &&
	       age_ns >= f->options.stall_ns && f->sorts.items[f->sort_of[p]].named &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS) && !weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) &&
	       weft__is_whole(f, p) && !f->told[f->root[p]] &&
	       (f->verdict[p] != WEFT_VERDICT_OUTSIDE || weft_kind_has(promise->kind, WEFT_TRAIT_REQUEST));
}

static void say_stuck(struct weft__finder *f, const struct lives *lives, uint32_t p, uint32_t count)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *promise = &m->promises[p];
	char name[WEFT__NAME], place[WEFT__NAME], sort[WEFT__NAME], age[WEFT_DURATION_BYTES], max[WEFT_DURATION_BYTES];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_STUCK, p, promise->start_ns, m->end_ns);
	if (!finding)
		return;
	uint32_t root = f->root[p];
	finding->root = root;
	finding->verdict = f->verdict[p];
	finding->weight = count;
	weft__name(f, p, name);
	weft__place(f, root, place);
	span(age, m->end_ns - promise->start_ns);
	span(max, lives->max_ns);
	if (count == 1)
		finding->title = weft__text(f, "%s is pending for %s; no other of its sort took longer than %s", name, age, max);
	else
		finding->title =
		    weft__text(f, "%s is pending for %s, and so are %" PRIu32 " more; no other of its sort took longer than %s",
			name, age, count - 1, max);
	finding->next = weft__text(f, "weft explain --promise=%" PRId64 " tells what it waits for%s%s", promise->id,
	    *place ? "; at its end stands what was created at " : "", place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, promise->start_ns, p, "%s was created%s%s", name,
	    *weft__place(f, p, place) ? " at " : "", place);
	if (root != p)
		weft__show(f, WEFT_EVIDENCE_CHAIN, m->promises[root].start_ns, root, "it waits, in the end, for %s%s%s",
		    weft__name(f, root, sort), *weft__place(f, root, place) ? " at " : "", place);
	weft__show(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "%" PRIu32 " others (%s) came to their end, the slowest after %s; at least %d of them were created later than it",
	    lives->ended, weft__sort_name(f, p, sort), max, OVERTAKEN);
}

/* Whether promises of that sort may be stuck, or leak, for all that is known of the sort alone. */
static bool is_of_interest(const struct weft__finder *f, uint32_t sort)
{
	return f->sorts.items[sort].named && f->sorts.items[sort].pending > 0;
}

bool weft__find_stuck(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (f->lost)
		return true;
	struct lives *lives = calloc(f->sorts.count, sizeof *lives);
	uint32_t *first = malloc(f->sorts.count * sizeof *first), *count = calloc(f->sorts.count, sizeof *count);
	bool ok = lives && first && count;
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		if (!is_of_interest(f, f->sort_of[p]) || f->ties.ended_ns[p] == WEFT_NEVER ||
		    m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		struct lives *others = &lives[f->sort_of[p]];
		int64_t life_ns = f->ties.ended_ns[p] - m->promises[p].start_ns;
		others->ended++;
		others->max_ns = life_ns > others->max_ns ? life_ns : others->max_ns;
		add_late(others, m->promises[p].start_ns);
	}
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		if (!is_of_interest(f, f->sort_of[p]) || !may_be_stuck(f, lives, p))
			continue;
		uint32_t sort = f->sort_of[p];
		if (count[sort]++ == 0)
			first[sort] = p;
	}
	size_t told = 0;
	for (uint32_t p = 1; ok && p < m->promise_count; p++) {
		uint32_t sort = f->sort_of[p];
		if (count[sort] == 0 || first[sort] != p || f->told[f->root[p]])
			continue;
		f->told[f->root[p]] = true;
		if (told++ < WEFT__FINDINGS_KEPT)
			say_stuck(f, &lives[sort], p, count[sort]);
		else
			f->left_out++;
	}
	free(lives);
	free(first);
	free(count);
	return ok;
}

/* ---- Leaks ---- */

enum { QUARTERS = 4 };

struct heap {
	int64_t first_ns, last_ns; /* creations of those that are alive at the end */
	uint32_t alive, ended, first, last;
	uint32_t quarter[QUARTERS]; /* of the time between the two */
};

static bool may_leak(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return promise->end == WEFT_END_PENDING && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && promise->start_ns >= 0 &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS) && !weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) &&
	       f->verdict[p] != WEFT_VERDICT_OUTSIDE;
}

/* They come all the time and none, or hardly any, goes. */
static bool leaks(const struct weft__finder *f, const struct heap *heap)
{
	if (heap->alive < f->options.leak_count || heap->ended > heap->alive / 10)
		return false;
	for (int q = 0; q < QUARTERS; q++)
		if (heap->quarter[q] < heap->alive / (2 * QUARTERS))
			return false;
	return heap->last_ns - heap->first_ns >= f->model->end_ns / 4;
}

static void say_leak(struct weft__finder *f, const struct heap *heap)
{
	const struct weft_model *m = f->model;
	char sort[WEFT__NAME], place[WEFT__NAME], name[WEFT__NAME], other[WEFT__NAME], every[WEFT_DURATION_BYTES];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_LEAK, heap->first, heap->first_ns, m->end_ns);
	if (!finding)
		return;
	weft__sort_name(f, heap->first, sort);
	weft__place(f, heap->first, place);
	finding->weight = heap->alive;
	finding->verdict = f->verdict[heap->first];
	finding->title =
	    weft__text(f, "%" PRIu32 " promises %s are pending at the end, and become more all the time: one every %s",
		heap->alive, sort, span(every, (heap->last_ns - heap->first_ns) / (heap->alive - 1)));
	finding->next =
	    weft__text(f, "who is to resolve them, and when%s%s%s", *place ? ", is to be found from " : "", place, "");
	weft__show(f, WEFT_EVIDENCE_CAUSE, heap->first_ns, heap->first, "the first, %s, created by %s%s%s",
	    weft__name(f, heap->first, name), weft__name(f, m->promises[heap->first].created_by, other), *place ? " at " : "",
	    place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, heap->last_ns, heap->last, "the last, %s", weft__name(f, heap->last, name));
	weft__show(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "by quarters of that time: %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 " more; %" PRIu32 " came to their end",
	    heap->quarter[0], heap->quarter[1], heap->quarter[2], heap->quarter[3], heap->ended);
	if (f->root[heap->first] != heap->first)
		weft__show(f, WEFT_EVIDENCE_NOTE, m->promises[f->root[heap->first]].start_ns, f->root[heap->first],
		    "the first waits, in the end, for %s", weft__name(f, f->root[heap->first], name));
}

bool weft__find_leaks(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct heap *heaps = calloc(f->sorts.count, sizeof *heaps);
	if (!heaps)
		return false;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		struct heap *heap = &heaps[f->sort_of[p]];
		if (!is_of_interest(f, f->sort_of[p]))
			continue;
		heap->ended += f->ties.ended_ns[p] != WEFT_NEVER;
		if (!may_leak(f, p))
			continue;
		if (heap->alive++ == 0) {
			heap->first = p;
			heap->first_ns = m->promises[p].start_ns;
		}
		heap->last = p;
		heap->last_ns = m->promises[p].start_ns;
	}
	for (uint32_t p = 1; p < m->promise_count; p++) {
		struct heap *heap = &heaps[f->sort_of[p]];
		int64_t span_ns = heap->last_ns - heap->first_ns;
		if (span_ns > 0 && may_leak(f, p)) {
			int64_t quarter =
			    (int64_t)((double)(m->promises[p].start_ns - heap->first_ns) / (double)span_ns * QUARTERS);
			heap->quarter[quarter < 0 ? 0 : quarter < QUARTERS ? quarter : QUARTERS - 1]++;
		}
	}
	size_t told = 0;
	for (size_t s = 0; s < f->sorts.count && !f->lost; s++) {
		if (!f->sorts.items[s].named || !leaks(f, &heaps[s]))
			continue;
		/* What waits for others that leak is told of with them. */
		uint32_t root = f->root[heaps[s].last], root_sort = f->sort_of[root];
		if (f->told[root] || (root_sort != s && f->sorts.items[root_sort].named && leaks(f, &heaps[root_sort])))
			continue;
		if (told++ < WEFT__FINDINGS_KEPT)
			say_leak(f, &heaps[s]);
		else
			f->left_out++;
	}
	free(heaps);
	return true;
}
