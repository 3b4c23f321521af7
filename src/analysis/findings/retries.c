/* retries.c: reports operations that failed many times with the same error and were retried without growing pauses.
 *
 * A try follows another try in three cases:
 * - The earlier try created it, directly or by a callback or a timer.
 * - Its creator read the earlier try's error.
 * - One promise created both, and that promise does one thing only.  Threads, listeners and other long-lived promises do many
 *   independent things: each client of a server fails on its own.  A long-lived promise may have created the creator of the later
 *   try instead: the callback of a request makes the next request, and each request makes a connection.
 *
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"

enum {
	MIN_TRIES = 30,
	MIN_TRIES_IN_RING = 16, /* fewest tries if a ring has overwritten earlier tries */
	/* if the first try came within this number of retry periods after the oldest event, earlier tries were probably
	 * overwritten */
	MAX_PERIODS = 4,
	MAX_PAUSE_NS = 50000000, /* longest average time from a failure to the next try */
	/* Connection attempts need fewer tries and may have longer pauses: a peer that refuses them for a second is not
	 * there. */
	MIN_CONNECTS = 10,
	MIN_CONNECTS_NS = 1000000000,
	MAX_CONNECT_PAUSE_NS = 250000000,
	/* largest ratio of the last pause to the mean of the first and the average pause, above which the pauses grow */
	MAX_GROWTH = 4,
	MAX_STEPS = 6 /* most creators between a try and the try before it */
};

/* Consecutive tries of one type that failed with the same error text. */
struct series {
	uint32_t first, last, count;
	int64_t paused_ns;              /* sum of the pauses between a failure and the next try */
	int64_t first_ns, latest_ns[2]; /* length of the first pause; lengths of the last two pauses */
};

struct search {
	struct weft__finder *finder;
	uint32_t *of_try; /* by promise: index of its series of tries + 1, or 0 if it belongs to none */
	/* by promise: number of the promise from which its error came + 2; 1 if the error is its own; 0 if not yet computed */
	uint32_t *errors;
	struct weft_idmap of_maker; /* series by make_maker_key() */
	WEFT_VEC(struct series) series;
};

static uint32_t get_series(const struct search *s, uint32_t p)
{
	return s->of_try[p] > 0 ? s->of_try[p] - 1 : WEFT_IDMAP_NONE;
}

/* Returns the failed promise whose error p read and passed on; WEFT_NONE if the error first occurred in p.  Only a promise in
 * which an error first occurs is a try. */
static uint32_t find_error_source(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		const struct weft_promise *input = &m->promises[f->link_index.final[link->to]];
		if (link->kind == WEFT_LINK_READ && input->end == WEFT_END_FAILED && input->failure == m->promises[p].failure)
			return f->link_index.final[link->to];
	}
	return WEFT_NONE;
}

static uint32_t get_error_source(const struct search *s, uint32_t p)
{
	if (s->errors[p] == 0)
		s->errors[p] = find_error_source(s->finder, p) + 2; /* WEFT_NONE is -1 */
	return s->errors[p] - 2;
}

/* Returns a key for the tries with p's type and error that `maker` created. */
static int64_t make_maker_key(const struct weft__finder *f, uint32_t maker, uint32_t p)
{
	const uint64_t of = (uint64_t)f->types.of[p] << 32 | f->model->promises[p].failure;
	return (int64_t)((of * 0x9e3779b97f4a7c15u ^ f->link_index.final[maker]) & INT64_MAX);
}

/* Returns whether the creator of a promise does one thing only.  A timer or an idle callback does one thing only; other
 * long-lived promises do many things. */
static bool is_single_purpose(const struct weft__finder *f, uint32_t maker)
{
	if (maker == WEFT_NONE)
		return false;
	const uint16_t kind = f->types.kinds[f->link_index.final[maker]];
	return kind == WEFT_KIND_HANDLE || kind == WEFT_KIND_TIMER ||
	       (maker != WEFT_SYSTEM && !weft_kind_has(kind, WEFT__TRAITS_LASTING));
}

/* Returns the series of the last try of p's type whose error `maker` read before it created p, directly or through promises
 * that passed the error on; WEFT_IDMAP_NONE if there is none.  Searches only the last MAX_LINKS actions of `maker`. */
static uint32_t find_series_read_by(const struct search *s, uint32_t maker, uint32_t p)
{
	const struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	enum { MAX_LINKS = 64, MAX_PASSED = 8 };
	uint32_t begin = f->link_index.out_begin[maker];
	uint32_t end = (uint32_t)WEFT_FIND_FIRST(
	    i, begin, f->link_index.out_begin[maker + 1], m->links[f->link_index.out[i]].time_ns > m->promises[p].start_ns);
	for (uint32_t i = end; i > begin && end - i < MAX_LINKS; i--) {
		const struct weft_link *link = &m->links[f->link_index.out[i - 1]];
		if (link->kind != WEFT_LINK_READ)
			continue;
		uint32_t try = link->to, before;
		for (int passed = 0; passed < MAX_PASSED && m->promises[try].end == WEFT_END_FAILED && try != p &&
				     (before = get_error_source(s, try)) != WEFT_NONE;
		     passed++)
			try = before;
		if (f->types.of[try] == f->types.of[p] && try != p)
			return get_series(s, try);
	}
	return WEFT_IDMAP_NONE;
}

static bool has_read(const struct weft__finder *f, uint32_t maker, uint32_t p)
{
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++)
		if (f->model->links[f->link_index.in[i]].kind == WEFT_LINK_READ &&
		    f->model->links[f->link_index.in[i]].from == maker)
			return true;
	return false;
}

/* Finds a series like find_series_read_by() for a `maker` whose creation a ring has overwritten: it may be a thread that serves
 * many clients, or a thread that retries.  A promise that reads the error of the last try before it makes the next one retries
 * the operation. */
static uint32_t find_series_in_ring(const struct search *s, uint32_t maker, uint32_t p)
{
	const struct weft__finder *f = s->finder;
	if (maker == WEFT_NONE || f->model->promises[maker].kind != WEFT_KIND_PREEXISTING)
		return WEFT_IDMAP_NONE;
	const uint32_t number = weft_idmap_get(&s->of_maker, make_maker_key(f, maker, p));
	return number < s->series.count && has_read(f, maker, s->series.items[number].last) ? number : WEFT_IDMAP_NONE;
}

/* Returns the series of the last try that was made by p's creator or by a creator of that creator; WEFT_IDMAP_NONE if there is
 * none. */
static uint32_t find_series_made_by(const struct search *s, uint32_t p)
{
	const struct weft_promise *promises = s->finder->model->promises;
	uint32_t maker = promises[p].created_by, number = WEFT_IDMAP_NONE;
	for (int steps = 0; steps < MAX_STEPS && number == WEFT_IDMAP_NONE && is_single_purpose(s->finder, maker); steps++) {
		number = weft_idmap_get(&s->of_maker, make_maker_key(s->finder, maker, p));
		maker = promises[maker].created_by;
	}
	return number;
}

/* Returns the series of the try before p; WEFT_IDMAP_NONE if p is the first try. */
static uint32_t find_series_before(const struct search *s, uint32_t p)
{
	const struct weft_model *m = s->finder->model;
	const uint32_t created_by = m->promises[p].created_by;
	uint32_t maker = created_by, number;
	for (int steps = 0; steps < MAX_STEPS && is_single_purpose(s->finder, maker); steps++) {
		number = get_series(s, maker);
		if (number != WEFT_IDMAP_NONE && s->finder->types.of[maker] == s->finder->types.of[p])
			return number;
		if ((number = find_series_read_by(s, maker, p)) != WEFT_IDMAP_NONE)
			return number;
		maker = m->promises[maker].created_by;
	}
	/* The creator is long-lived but read the failure: for example, a timer that a failed connection started tries again. */
	if (maker != WEFT_NONE && maker != WEFT_SYSTEM && (number = find_series_read_by(s, maker, p)) != WEFT_IDMAP_NONE)
		return number;
	return is_single_purpose(s->finder, created_by) ? find_series_made_by(s, p) : find_series_in_ring(s, created_by, p);
}

/* Adds p to the series; returns false if p does not follow the last try of the series, or has another error or type. */
static bool extend_series(struct search *s, struct series *series, uint32_t p)
{
	const struct weft_promise *promises = s->finder->model->promises;
	int64_t pause_ns = promises[p].start_ns - promises[series->last].end_ns;
	/* the last try ends only after its own callback has made the next try */
	if (pause_ns < 0 && promises[p].created_by == series->last)
		pause_ns = 0;
	if (pause_ns < 0 || promises[p].failure != promises[series->last].failure ||
	    s->finder->types.of[p] != s->finder->types.of[series->last])
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
	uint32_t number = find_series_before(s, p);
	if (number >= s->series.count || !s->series.items || !extend_series(s, &s->series.items[number], p)) {
		struct series *added = weft_vec_push(&s->series);
		number = (uint32_t)s->series.count - 1;
		if (!added) {
			s->finder->no_memory = true;
			return;
		}
		*added = (struct series){.first = p, .last = p, .count = 1};
	}
	s->of_try[p] = number + 1;
	s->finder->no_memory |=
	    !weft_idmap_set(&s->of_maker, make_maker_key(s->finder, s->finder->model->promises[p].created_by, p), number);
}

/* Returns whether a ring may have overwritten earlier tries: the creator of the tries is older than the ring, or the first try
 * is at the start of the ring. */
static bool is_truncated(const struct weft__finder *f, const struct series *series)
{
	const struct weft_promise *promises = f->model->promises;
	const uint32_t maker = promises[series->first].created_by;
	const int64_t period_ns = (promises[series->last].start_ns - promises[series->first].start_ns) / series->count,
		      horizon_ns = weft__completeness_of(f->completeness, f->model, series->first)->horizon_ns;
	return (maker != WEFT_NONE && promises[maker].kind == WEFT_KIND_PREEXISTING) ||
	       (horizon_ns > 0 && promises[series->first].start_ns - horizon_ns <= MAX_PERIODS * period_ns);
}

static bool is_storm(const struct weft__finder *f, const struct series *series)
{
	const struct weft_promise *promises = f->model->promises;
	const bool is_refused = f->types.kinds[series->first] == WEFT_KIND_CONNECT &&
				promises[series->last].end_ns - promises[series->first].start_ns >= MIN_CONNECTS_NS;
	const uint32_t least = is_refused ? MIN_CONNECTS : is_truncated(f, series) ? MIN_TRIES_IN_RING : MIN_TRIES;
	/* A busy machine may cause one long pause at the end, so the shorter of the last two pauses counts. */
	int64_t pauses = series->count - 1, latest_ns = weft_min_ns(series->latest_ns[0], series->latest_ns[1]);
	return series->count >= least && series->paused_ns <= pauses * (is_refused ? MAX_CONNECT_PAUSE_NS : MAX_PAUSE_NS) &&
	       latest_ns <= MAX_GROWTH * (series->first_ns + series->paused_ns / pauses);
}

static void report_retries(struct weft__finder *f, const struct series *series)
{
	const struct weft_model *m = f->model;
	uint32_t p = series->first, last = series->last, maker = m->promises[last].created_by;
	int64_t start_ns = m->promises[p].start_ns, end_ns = m->promises[last].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_RETRIES, p, start_ns, end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	const char *text = weft__format_text(f, m->promises[p].failure);
	finding->weight = series->count;
	finding->title = weft__finding_text(f, "%s failed %" PRIu32 " times in %s, without a growing pause: %s%s", name,
	    series->count, weft__format_duration(f, end_ns - start_ns), text, at);
	finding->next = weft__finding_text(f, "wait longer after each failure, and give up after some time%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].end_ns, p, "%s fails: %s", name, text);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[last].start_ns, last, "%s creates the last try, %s",
	    weft__format_promise(f, maker), weft__format_promise(f, last));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "pause between a failure and the next try: first %s, last %s, average %s", weft__format_duration(f, series->first_ns),
	    weft__format_duration(f, series->latest_ns[1]), weft__format_duration(f, series->paused_ns / (series->count - 1)));
}

static bool may_be_try(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != WEFT_SYSTEM && promise->failure != WEFT_NONE && !(promise->flags & WEFT_PROMISE_START_UNKNOWN) &&
	       !weft_model_was_cancelled(f->model, promise);
}

/* Writes to `out` each failed promise if at least MIN_CONNECTS failed promises have its type and error; returns their number.
 * `out` must have capacity for link_index.failed promises.  Promises are counted by a hash of type and error, so collisions may
 * let a few others pass. */
static size_t find_suspects(struct weft__finder *f, uint32_t *out)
{
	enum { BITS = 16 };
	const uint32_t *failed = f->link_index.failed.items;
	const size_t count = f->link_index.failed.count;
	uint16_t *hashes = weft__finding_alloc(f, count, sizeof *hashes);
	uint32_t *hash_counts = weft__finding_alloc(f, (size_t)1 << BITS, sizeof *hash_counts);
	size_t found = 0;
	for (size_t i = 0; hashes && hash_counts && i < count; i++)
		if (may_be_try(f, failed[i])) {
			hashes[i] = (uint16_t)weft_hash_u64(
			    (uint64_t)f->types.of[failed[i]] << 32 | f->model->promises[failed[i]].failure);
			out[found++] = (uint32_t)i;
			hash_counts[hashes[i]]++;
		}
	size_t kept_count = 0;
	for (size_t i = 0; i < found; i++)
		if (hash_counts[hashes[out[i]]] >= MIN_CONNECTS)
			out[kept_count++] = failed[out[i]];
	free(hashes);
	free(hash_counts);
	return kept_count;
}

void weft__find_retries(struct weft__finder *f)
{
	struct search s = {.finder = f};
	weft__timed_out_find(f);
	if (f->link_index.failed.count < MIN_CONNECTS)
		return;
	s.of_try = weft__finding_alloc(f, f->model->promise_count, sizeof *s.of_try);
	s.errors = weft__finding_alloc(f, f->model->promise_count, sizeof *s.errors);
	uint32_t *suspects = weft__finding_alloc(f, f->link_index.failed.count, sizeof *suspects);
	const size_t count = suspects ? find_suspects(f, suspects) : 0;
	for (size_t i = 0; i < count && weft__finding_may_continue(f, i, count); i++)
		if (get_error_source(&s, suspects[i]) == WEFT_NONE)
			add_try(&s, suspects[i]);
	free(suspects);
	for (size_t i = 0; !f->no_memory && i < s.series.count; i++)
		if (is_storm(f, &s.series.items[i]))
			report_retries(f, &s.series.items[i]);
	free(s.of_try);
	free(s.errors);
	weft_idmap_finish(&s.of_maker);
	weft_vec_free(&s.series);
}
