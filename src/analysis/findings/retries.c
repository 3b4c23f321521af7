/* retries.c: one thing that was tried again and again, without a pause that grows, and failed each time in the same way.
 *
 * A try comes from the one before if it was made by it (by what it called back, by a timer that this started), by who read it, or
 * if both were made by one promise that is neither an OS thread nor anything else without an end: a server's clients fail each
 * for itself. SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"

enum {
	LEAST_TRIES = 30,
	LEAST_LEFT = 16,          /* where those before were overwritten */
	PERIODS = 4,              /* from the first try back to where what is left begins: the same went on before */
	MOST_PAUSE_NS = 50000000, /* on average, from a failure to the next try */
	/* Who is refused for a second, however seldom it asks, waits for something that is not there. */
	LEAST_CONNECTS = 10,
	LEAST_CONNECTS_NS = 1000000000,
	MOST_CONNECT_PAUSE_NS = 250000000,
	GROWTH = 4,    /* that many times as long in the end: each pause is longer than the one before */
	MOST_STEPS = 6 /* from a try back to the one before it, by creators */
};

/* Tries of one sort, one after the other, that failed with one text. */
struct series {
	uint32_t first, last, count;
	int64_t paused_ns;              /* from each failure to the next try, in all */
	int64_t first_ns, latest_ns[2]; /* the first pause, and the last two */
};

struct search {
	struct weft__finder *finder;
	uint32_t *of_try; /* by promise: the number of its series and 1, or 0 */
	uint32_t *errors; /* by promise, once it was asked for: whose error it passes on and 2; 1: its own; 0: not yet */
	struct weft_idmap of_maker; /* numbers of series by who made the tries, their sort and error */
	WEFT_VEC(struct series) series;
};

static uint32_t series_of(const struct search *s, uint32_t p)
{
	return s->of_try[p] > 0 ? s->of_try[p] - 1 : WEFT_IDMAP_NONE;
}

/* Who read an error fails with it as well: only the first one is a try.  Whose error it is; WEFT_NONE: its own. */
static uint32_t find_error(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		const struct weft_promise *input = &m->promises[f->ties.now[link->to]];
		if (link->kind == WEFT_LINK_READ && input->end == WEFT_END_FAILED && input->failure == m->promises[p].failure)
			return f->ties.now[link->to];
	}
	return WEFT_NONE;
}

static uint32_t passes_on(const struct search *s, uint32_t p)
{
	if (s->errors[p] == 0)
		s->errors[p] = find_error(s->finder, p) + 2; /* WEFT_NONE is -1 */
	return s->errors[p] - 2;
}

/* The same number for tries of one promise, one sort and one error. */
static int64_t maker_key(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	uint64_t maker = f->ties.now[promise->created_by], of = (uint64_t)f->sorts.of[p] << 32 | promise->failure;
	return (int64_t)((of * 0x9e3779b97f4a7c15u ^ maker) & INT64_MAX);
}

/* A timer, or an idle callback, does one thing; what else has no end does many. */
static bool makes_for_itself(const struct weft__finder *f, uint32_t maker)
{
	if (maker == WEFT_NONE)
		return false;
	const uint16_t kind = f->sorts.kinds[f->ties.now[maker]];
	return kind == WEFT_KIND_HANDLE || kind == WEFT_KIND_TIMER ||
	       (maker != WEFT_SYSTEM && !weft_kind_has(kind, WEFT__TRAITS_LASTING));
}

/* The series of the last try of p's sort that `maker` has read before p was created: it saw the failure, perhaps by way of others
 * that passed it on, and tries again.  Of what it did only the latest is searched. */
static uint32_t series_read_by(const struct search *s, uint32_t maker, uint32_t p)
{
	const struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	enum { MOST_LINKS = 64, MOST_PASSED = 8 };
	uint32_t begin = f->ties.out_begin[maker];
	uint32_t end = (uint32_t)WEFT_FIRST(
	    i, begin, f->ties.out_begin[maker + 1], m->links[f->ties.out[i]].time_ns > m->promises[p].start_ns);
	for (uint32_t i = end; i > begin && end - i < MOST_LINKS; i--) {
		const struct weft_link *link = &m->links[f->ties.out[i - 1]];
		if (link->kind != WEFT_LINK_READ)
			continue;
		uint32_t try = link->to, before;
		for (int passed = 0; passed < MOST_PASSED && m->promises[try].end == WEFT_END_FAILED && try != p &&
				     (before = passes_on(s, try)) != WEFT_NONE;
		     passed++)
			try = before;
		if (f->sorts.of[try] == f->sorts.of[p] && try != p)
			return series_of(s, try);
	}
	return WEFT_IDMAP_NONE;
}

static bool has_read(const struct weft__finder *f, uint32_t maker, uint32_t p)
{
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++)
		if (f->model->links[f->ties.in[i]].kind == WEFT_LINK_READ && f->model->links[f->ties.in[i]].from == maker)
			return true;
	return false;
}

/* The same where the beginning of `maker` was overwritten, as in a ring: an OS thread that serves many, or one that tries again.
 * Whoever reads the error of each try before the next one does so. */
static uint32_t series_of_unknown(const struct search *s, uint32_t maker, uint32_t p)
{
	const struct weft__finder *f = s->finder;
	if (maker == WEFT_NONE || f->model->promises[maker].kind != WEFT_KIND_PREEXISTING)
		return WEFT_IDMAP_NONE;
	const uint32_t number = weft_idmap_get(&s->of_maker, maker_key(f, p));
	return number < s->series.count && has_read(f, maker, s->series.items[number].last) ? number : WEFT_IDMAP_NONE;
}

/* The series of the try before p, or WEFT_IDMAP_NONE. */
static uint32_t series_before(const struct search *s, uint32_t p)
{
	const struct weft_model *m = s->finder->model;
	const uint32_t created_by = m->promises[p].created_by;
	uint32_t maker = created_by, number;
	for (int steps = 0; steps < MOST_STEPS && makes_for_itself(s->finder, maker); steps++) {
		number = series_of(s, maker);
		if (number != WEFT_IDMAP_NONE && s->finder->sorts.of[maker] == s->finder->sorts.of[p])
			return number;
		if ((number = series_read_by(s, maker, p)) != WEFT_IDMAP_NONE)
			return number;
		maker = m->promises[maker].created_by;
	}
	/* What has no end, but saw the failure: a connection that fails starts a timer, which tries again. */
	if (maker != WEFT_NONE && maker != WEFT_SYSTEM && (number = series_read_by(s, maker, p)) != WEFT_IDMAP_NONE)
		return number;
	return makes_for_itself(s->finder, created_by) ? weft_idmap_get(&s->of_maker, maker_key(s->finder, p))
						       : series_of_unknown(s, created_by, p);
}

/* False: p does not come after the series' last try, or has another error. */
static bool extend(struct search *s, struct series *series, uint32_t p)
{
	const struct weft_promise *promises = s->finder->model->promises;
	int64_t pause_ns = promises[p].start_ns - promises[series->last].end_ns;
	if (pause_ns < 0 && promises[p].created_by == series->last) /* which ends with the callback that tries again */
		pause_ns = 0;
	if (pause_ns < 0 || promises[p].failure != promises[series->last].failure ||
	    s->finder->sorts.of[p] != s->finder->sorts.of[series->last])
		return false;
	series->paused_ns += pause_ns;
	if (series->count == 1)
		series->first_ns = pause_ns;
	series->latest_ns[0] = series->latest_ns[1];
	series->latest_ns[1] = pause_ns;
	series->last = p;
	series->count++;
	return true;
}

static void add_try(struct search *s, uint32_t p)
{
	uint32_t number = series_before(s, p);
	if (number >= s->series.count || !s->series.items || !extend(s, &s->series.items[number], p)) {
		struct series *added = weft_vec_push(&s->series);
		number = (uint32_t)s->series.count - 1;
		if (!added) {
			s->finder->no_memory = true;
			return;
		}
		*added = (struct series){.first = p, .last = p, .count = 1};
	}
	s->of_try[p] = number + 1;
	s->finder->no_memory |= !weft_idmap_set(&s->of_maker, maker_key(s->finder, p), number);
}

/* Whether those before were overwritten: who makes them is older than what is left, or what is left begins with them. */
static bool is_left(const struct weft__finder *f, const struct series *series)
{
	const struct weft_promise *promises = f->model->promises;
	const uint32_t maker = promises[series->first].created_by;
	const int64_t period_ns = (promises[series->last].start_ns - promises[series->first].start_ns) / series->count,
		      horizon_ns = weft__lacks_of(f->lacks, f->model, series->first)->horizon_ns;
	return (maker != WEFT_NONE && promises[maker].kind == WEFT_KIND_PREEXISTING) ||
	       (horizon_ns > 0 && promises[series->first].start_ns - horizon_ns <= PERIODS * period_ns);
}

static bool is_storm(const struct weft__finder *f, const struct series *series)
{
	const struct weft_promise *promises = f->model->promises;
	const bool is_refused = f->sorts.kinds[series->first] == WEFT_KIND_CONNECT &&
				promises[series->last].end_ns - promises[series->first].start_ns >= LEAST_CONNECTS_NS;
	const uint32_t least = is_refused ? LEAST_CONNECTS : is_left(f, series) ? LEAST_LEFT : LEAST_TRIES;
	/* One long pause in the end may be a busy machine's. */
	int64_t pauses = series->count - 1, latest_ns = weft_min_ns(series->latest_ns[0], series->latest_ns[1]);
	return series->count >= least && series->paused_ns <= pauses * (is_refused ? MOST_CONNECT_PAUSE_NS : MOST_PAUSE_NS) &&
	       latest_ns <= GROWTH * (series->first_ns + series->paused_ns / pauses);
}

static void tell_retries(struct weft__finder *f, const struct series *series)
{
	const struct weft_model *m = f->model;
	uint32_t p = series->first, last = series->last, maker = m->promises[last].created_by;
	int64_t start_ns = m->promises[p].start_ns, end_ns = m->promises[last].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_RETRIES, p, start_ns, end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
	const char *text = weft__words_text(f, m->promises[p].failure);
	finding->weight = series->count;
	finding->title =
	    weft__finding_text(f, "%s%s failed and was tried again %" PRIu32 " times in %s, each time with the same error: %s",
		name, at, series->count - 1, weft__words_span(f, end_ns - start_ns), text);
	finding->next = weft__finding_text(f, "wait longer after each failure, up to a limit, and give up at some time%s", at);
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].end_ns, p, "%s fails: %s", name, text);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[last].start_ns, last, "%s creates the last try, %s",
	    weft__words_name(f, maker), weft__words_name(f, last));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "from a failure to the next try: %s at first, %s in the end, %s on average", weft__words_span(f, series->first_ns),
	    weft__words_span(f, series->latest_ns[1]), weft__words_span(f, series->paused_ns / (series->count - 1)));
}

static bool may_be_try(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != WEFT_SYSTEM && promise->failure != WEFT_NONE && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
	       !weft_model_was_cancelled(f->model, promise);
}

/* Puts those into `out`, which has room for all that failed, of whose sort enough failed with the same error for a storm; returns
 * how many.  They are counted by a hash of sort and error: a few too many get through. */
static size_t find_suspects(struct weft__finder *f, uint32_t *out)
{
	enum { BITS = 16 };
	const uint32_t *failed = f->ties.failed.items;
	const size_t count = f->ties.failed.count;
	uint16_t *hashes = weft__finding_alloc(f, count, sizeof *hashes);
	uint32_t *tallies = weft__finding_alloc(f, (size_t)1 << BITS, sizeof *tallies);
	size_t found = 0;
	for (size_t i = 0; hashes && tallies && i < count; i++)
		if (may_be_try(f, failed[i])) {
			hashes[i] = (uint16_t)weft_hash_u64(
			    (uint64_t)f->sorts.of[failed[i]] << 32 | f->model->promises[failed[i]].failure);
			out[found++] = (uint32_t)i;
			tallies[hashes[i]]++;
		}
	size_t kept = 0;
	for (size_t i = 0; i < found; i++)
		if (tallies[hashes[out[i]]] >= LEAST_CONNECTS)
			out[kept++] = failed[out[i]];
	free(hashes);
	free(tallies);
	return kept;
}

void weft__find_retries(struct weft__finder *f)
{
	struct search s = {.finder = f};
	if (f->ties.failed.count < LEAST_CONNECTS)
		return;
	s.of_try = weft__finding_alloc(f, f->model->promise_count, sizeof *s.of_try);
	s.errors = weft__finding_alloc(f, f->model->promise_count, sizeof *s.errors);
	uint32_t *suspects = weft__finding_alloc(f, f->ties.failed.count, sizeof *suspects);
	const size_t count = suspects ? find_suspects(f, suspects) : 0;
	for (size_t i = 0; i < count && weft__finding_goes_on(f, i, count); i++)
		if (passes_on(&s, suspects[i]) == WEFT_NONE)
			add_try(&s, suspects[i]);
	free(suspects);
	for (size_t i = 0; !f->no_memory && i < s.series.count; i++)
		if (is_storm(f, &s.series.items[i]))
			tell_retries(f, &s.series.items[i]);
	free(s.of_try);
	free(s.errors);
	weft_idmap_finish(&s.of_maker);
	weft_vec_free(&s.series);
}
