/* slow.c: where the time of a promise went that has ended, compared with one of its sort that took the median of the time.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"
#include "analysis/turns.h"
#include "base/duration.h"
#include "base/sort.h"

#define OFF_PART 8     /* of a run: what it was without a processor is told from that part on */
#define PEERS_LEAST 5u /* so many of a sort, or their median says nothing */

/* Steps that are told of together: those in which the same is done by, or waited for from, promises of one sort. */
struct part {
	enum weft_step_kind kind;
	uint32_t sort;                 /* of the promise, of the lock, or of the connection */
	bool is_lock, is_late, is_own; /* is_own: of the promise that is asked about */
	int64_t sum_ns, off_ns;        /* off_ns: of what ran, without a processor */
	size_t count;
	struct weft_path_step longest;
};

typedef WEFT_VEC(struct part) parts_vec;

struct slow {
	struct weft__finder *f;
	const uint32_t *group; /* by sort: the first sort whose labels have the same shape */
	uint32_t promise;      /* that is asked about */
};

static int64_t length_of(const struct weft_path_step *s)
{
	return s->end_ns - s->start_ns;
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return WEFT_ORDER(y->sum_ns, x->sum_ns) ?: WEFT_ORDER(x->longest.start_ns, y->longest.start_ns);
}

/* Whether the other end of a connection was waited for, since something was written to it. */
static bool is_turn(const struct weft_path_step *s)
{
	return s->connection != WEFT_NONE && s->behind == WEFT_NONE;
}

static bool same_part(const struct part *a, const struct part *b)
{
	return a->sort == b->sort && a->is_lock == b->is_lock && is_turn(&a->longest) == is_turn(&b->longest) &&
	       (a->is_lock || (a->kind == b->kind && a->is_late == b->is_late));
}

/* While a lock is waited for, it is one part, whatever its holders do. */
static struct part part_of(const struct slow *slow, const struct weft_path_step *s)
{
	return (struct part){.kind = s->kind,
	    .sort = slow->group[slow->f->sorts.of[s->lock != WEFT_NONE ? s->lock
						  : is_turn(s)         ? s->connection
								       : s->promise]],
	    .is_lock = s->lock != WEFT_NONE,
	    .is_late = s->kind == WEFT_STEP_WAITING && s->behind != WEFT_NONE,
	    .is_own = s->promise == slow->promise || s->promise == slow->f->ties.now[slow->promise],
	    .sum_ns = length_of(s),
	    .off_ns =
		s->kind == WEFT_STEP_RUNNING ? weft_kernel_promise_off_ns(slow->f->model, s->promise, s->start_ns, s->end_ns) : 0,
	    .count = 1,
	    .longest = *s};
}

/* Steps are many where a path is long, parts are few.  While one holder has the lock, all is one step. */
static void gather(struct slow *slow, parts_vec *parts, const struct weft_path *path)
{
	enum { MOST = 500 };
	for (size_t i = 0; i < path->count; i++) {
		struct weft_path_step step = path->steps[i];
		for (; step.lock != WEFT_NONE && i + 1 < path->count && path->steps[i + 1].lock == step.lock &&
		       path->steps[i + 1].holder == step.holder;
		     i++)
			step.end_ns = path->steps[i + 1].end_ns;
		struct part new = part_of(slow, &step);
		size_t at = 0;
		while (at < parts->count && !same_part(&parts->items[at], &new))
			at++;
		if (at < parts->count) {
			struct part *p = &parts->items[at];
			p->sum_ns += new.sum_ns;
			p->off_ns += new.off_ns;
			p->count++;
			if (new.sum_ns > length_of(&p->longest))
				p->longest = new.longest;
			continue;
		}
		struct part *added = parts->count < MOST ? weft_vec_push(parts) : NULL;
		if (added)
			*added = new;
		else if (parts->count < MOST)
			slow->f->no_memory = true;
	}
	weft_sort(parts->items, parts->count, sizeof *parts->items, compare_parts);
}

/* Whether the trace does not tell by itself what was waited for. */
static bool is_at_rest(const struct weft__finder *f, const struct part *part)
{
	const struct weft_path_step *s = &part->longest;
	const bool is_outside = weft_kind_has(f->model->promises[s->promise].kind, WEFT_TRAIT_OUTSIDE);
	return s->kind == WEFT_STEP_WAITING && !part->is_lock && !is_turn(s) &&
	       (s->promise == WEFT_SYSTEM || (part->is_own && !is_outside && !part->is_late));
}

static const struct weft_turn *asked_in(const struct weft__finder *f, const struct part *part)
{
	const struct weft_path_step *s = &part->longest;
	return is_at_rest(f, part) ? weft_turn_in(f->model, s->promise, s->start_ns, s->end_ns) : NULL;
}

/* What the trace tells of a stretch in which the promise did nothing: which connection it or its OS thread had asked something.
 */
static const char *words_of_rest(struct weft__finder *f, const struct part *part)
{
	const uint32_t promise = part->longest.promise;
	const struct weft_turn *turn = asked_in(f, part);
	if (!turn)
		return "waiting for what the trace does not tell";
	const char *name = weft__words_name(f, turn->connection);
	const char *came = turn->answered_ns == WEFT_NEVER ? "never answered"
							   : weft__finding_text(f, "answered %s later",
								 weft__words_span(f, turn->answered_ns - turn->asked_ns));
	return weft__finding_text(
	    f, turn->by == promise ? "waiting for %s, which %s" : "waiting, maybe for %s, which %s", name, came);
}

/* " of connection 3 "to 127.0.0.1:80"" behind a read that has no name of its own. */
static const char *words_of_connection(struct weft__finder *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const bool is_read = p->kind == WEFT_KIND_STREAM_READ && weft_first_label(f->model, promise) == WEFT_NONE;
	return is_read && p->created_by != WEFT_NONE &&
		       weft_kind_has(f->model->promises[p->created_by].kind, WEFT_TRAIT_CONNECTION)
		   ? weft__finding_text(f, " of %s", weft__words_name(f, p->created_by))
		   : "";
}

/* Of another process than the promise that is told of. */
static bool is_elsewhere(const struct weft__finder *f, uint32_t promise)
{
	return promise != WEFT_SYSTEM &&
	       weft_part_of(f->model, promise) != weft_part_of(f->model, f->findings.items[f->findings.count - 1].promise);
}

/* Whose it is, where that is another process; then with its place, if that is wanted. */
static const char *name_of(struct weft__finder *f, uint32_t promise, bool with_place)
{
	const char *name = weft__words_name(f, promise);
	if (!is_elsewhere(f, promise))
		return name;
	return with_place ? weft__words_there(f, promise)
			  : weft__finding_text(f, "%s in %s", name, f->model->trace->parts[weft_part_of(f->model, promise)].name);
}

/* ", at whose other end is node@b,", if the trace of that is here. */
static const char *words_of_peer(struct weft__finder *f, uint32_t connection)
{
	const char *peer = weft__words_peer(f, connection);
	return *peer ? weft__finding_text(f, ", at whose other end is%s", peer + 1) : "";
}

/* The connection whose write that is, which created it, or waits for it; or WEFT_NONE. */
static uint32_t connection_of(const struct weft__finder *f, uint32_t write)
{
	const struct weft_model *m = f->model;
	const uint32_t by = m->promises[write].created_by;
	if (by != WEFT_NONE && weft_kind_has(m->promises[by].kind, WEFT_TRAIT_CONNECTION))
		return by;
	for (uint32_t i = f->ties.in_begin[write]; i < f->ties.in_begin[write + 1]; i++)
		if (weft_kind_has(m->promises[m->links[f->ties.in[i]].from].kind, WEFT_TRAIT_CONNECTION))
			return m->links[f->ties.in[i]].from;
	return WEFT_NONE;
}

/* A write that takes long ends when the other end has made room for it. */
static const char *words_of_outside(struct weft__finder *f, const struct weft_path_step *s)
{
	const bool is_write = f->model->promises[s->promise].kind == WEFT_KIND_STREAM_WRITE;
	if (!is_write || length_of(s) < f->options.stall_ns)
		return ", which comes from outside";
	const uint32_t connection = connection_of(f, s->promise);
	return connection == WEFT_NONE ? ", for which there is no room: the other end does not read"
				       : weft__finding_text(f, ", for which there is no room: %s does not read",
					     weft__words_other_end(f, connection));
}

/* "waiting for timer 9 "db" (bank.c:12 in ask), which comes from outside"; the place only where that is wanted. */
static const char *words_of(struct weft__finder *f, const struct part *part, bool with_place)
{
	const struct weft_path_step *s = &part->longest;
	const bool is_there = is_elsewhere(f, s->promise);
	const char *who = name_of(f, s->promise, with_place);
	bool outside = weft_kind_has(f->model->promises[s->promise].kind, WEFT_TRAIT_OUTSIDE);
	if (part->is_lock && s->holder != WEFT_NONE)
		return weft__finding_text(
		    f, "waiting for %s, which %s held", weft__words_name(f, s->lock), weft__words_name(f, s->holder));
	if (part->is_lock)
		return weft__finding_text(f, "waiting for %s", weft__words_name(f, s->lock));
	switch (s->kind) {
	case WEFT_STEP_RUNNING:
		if (part->off_ns < part->sum_ns / OFF_PART || part->off_ns == 0)
			return weft__finding_text(f, "%s ran", who);
		return weft__finding_text(f, "%s ran, %s of that without a processor", who, weft__words_span(f, part->off_ns));
	case WEFT_STEP_READY:
		return s->behind == WEFT_NONE
			   ? weft__finding_text(f, "%s was ready, and was not run", who)
			   : weft__finding_text(f, "%s was ready, but %s ran", who, weft__words_name(f, s->behind));
	default: break;
	}
	if (is_turn(s))
		return weft__finding_text(f, "waiting for %s%s to %s", weft__words_name(f, s->connection),
		    words_of_peer(f, s->connection), s->is_asked ? "answer" : "send more");
	if (is_at_rest(f, part))
		return words_of_rest(f, part);
	if (part->is_late)
		return weft__finding_text(
		    f, "%s may have come, but %s ran: nobody could hear of it sooner", who, weft__words_name(f, s->behind));
	return weft__finding_text(f, "waiting for %s%s%s%s", who, words_of_connection(f, s->promise),
	    with_place && !is_there ? weft__words_at(f, s->promise) : "", outside ? words_of_outside(f, s) : "");
}

static int percent(int64_t part_ns, int64_t all_ns)
{
	return (int)((double)part_ns * 100 / (double)all_ns + 0.5);
}

static void tell_part(struct weft__finder *f, const struct part *part, int64_t all_ns, const struct part *usual, bool has_usual)
{
	const char *times = part->count > 1 ? weft__finding_text(f, ", %zu times, longest %s", part->count,
						  weft__words_span(f, length_of(&part->longest)))
					    : "";
	const char *other = "";
	if (has_usual)
		other = usual ? weft__finding_text(f, "; usually %s", weft__words_span(f, usual->sum_ns)) : "; usually nothing";
	weft__finding_evidence(f, WEFT_EVIDENCE_TIME, part->longest.start_ns, weft_step_cause(&part->longest), "%s, %d%%: %s%s%s",
	    weft__words_span(f, part->sum_ns), percent(part->sum_ns, all_ns), words_of(f, part, false), times, other);
}

/* Those of the promise's sort, or of sorts with labels of one shape, that have ended and whose beginning is known, by how long
 * they took.  Returns how many; 0 where these are too few to compare with. */
struct peer {
	int64_t took_ns;
	uint32_t promise;
};

static int compare_peers(const void *a, const void *b)
{
	const struct peer *x = a, *y = b;
	return WEFT_ORDER(x->took_ns, y->took_ns) ?: WEFT_ORDER(x->promise, y->promise);
}

static size_t find_peers(const struct slow *slow, uint32_t promise, struct peer **out)
{
	struct weft__finder *f = slow->f;
	const struct weft_model *m = f->model;
	size_t count = 0;
	uint32_t own = slow->group[f->sorts.of[promise]];
	bool named = f->sorts.items.items[f->sorts.of[promise]].named;
	for (size_t s = 0; named && s < f->sorts.items.count; s++)
		count += slow->group[s] == own ? f->sorts.items.items[s].ended : 0;
	if (count < PEERS_LEAST || !(*out = weft__finding_alloc(f, count, sizeof **out)))
		return 0;
	count = 0;
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (slow->group[f->sorts.of[p]] == own && f->ties.ended_ns[p] != WEFT_NEVER &&
		    !(m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN))
			(*out)[count++] = (struct peer){f->ties.ended_ns[p] - m->promises[p].start_ns, p};
	weft_sort(*out, count, sizeof **out, compare_peers);
	return count;
}

/* How long those of its sort take, and which of them takes the median; WEFT_NONE if they are too few. */
static uint32_t tell_peers(const struct slow *slow, uint32_t promise, int64_t all_ns)
{
	struct weft__finder *f = slow->f;
	struct peer *peers = NULL;
	size_t count = find_peers(slow, promise, &peers), faster = 0;
	uint32_t median = WEFT_NONE;
	if (count > 0) {
		const struct peer *middle = &peers[(count - 1) / 2];
		while (faster < count && peers[faster].took_ns < all_ns)
			faster++;
		median = middle->promise;
		const char *rank = faster == 0           ? "none took less"
				   : faster + 1 == count ? "none took longer"
							 : weft__finding_text(f, "%zu took less", faster);
		double ratio = middle->took_ns > 0 ? (double)all_ns / (double)middle->took_ns : 1;
		long long tenths = ratio < 1e6 ? (long long)(ratio * 10 + 0.5) : 10000000;
		const char *times = tenths < 11 ? ""
				    : tenths < 100
					? weft__finding_text(f, ", %lld.%lld times as long as usual", tenths / 10, tenths % 10)
					: weft__finding_text(f, ", %lld times as long as usual", (tenths + 5) / 10);
		weft__finding_evidence(f, WEFT_EVIDENCE_TIME, f->model->promises[median].start_ns, median,
		    "%s in all%s: the median of %zu %s is %s, %s", weft__words_span(f, all_ns), times, count,
		    weft__words_group(f, promise, weft_first_label(f->model, promise) == WEFT_NONE),
		    weft__words_span(f, middle->took_ns), rank);
	}
	free(peers);
	return median;
}

static const struct part *same_in(const parts_vec *parts, const struct part *part)
{
	for (size_t i = 0; i < parts->count; i++)
		if (same_part(&parts->items[i], part))
			return &parts->items[i];
	return NULL;
}

/* Parts, the longest first; those below half a percent are only counted. */
static void tell_parts(struct slow *slow, uint32_t promise, const parts_vec *parts, const parts_vec *usual)
{
	struct weft__finder *f = slow->f;
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	int64_t all_ns = f->ties.ended_ns[promise] - f->model->promises[promise].start_ns;
	size_t told = 0;
	for (; told < parts->count && told < WEFT__LINES_KEPT && (told == 0 || parts->items[told].sum_ns > all_ns / 200); told++)
		tell_part(f, &parts->items[told], all_ns, same_in(usual, &parts->items[told]), usual->count > 0);
	weft__words_more(f, WEFT_EVIDENCE_TIME, parts->count - told, ", which took less");
	if (parts->count == 0)
		return;
	const struct part *most = &parts->items[0];
	uint32_t cause = weft_step_cause(&most->longest);
	finding->title = weft__finding_text(
	    f, "%s, %d%% of that: %s", finding->title, percent(most->sum_ns, all_ns), words_of(f, most, cause != promise));
	const struct weft_turn *turn = asked_in(f, most);
	if (turn)
		weft__words_turn(f, turn);
	if (is_turn(&most->longest))
		finding->next = most->longest.is_asked ? weft__words_next_late(f, cause) : "";
	else if (cause != promise && cause != WEFT_SYSTEM)
		finding->next = weft__finding_text(f, "weft explain --promise=%" PRId64 " tells why %s took so long",
		    f->model->promises[cause].id, name_of(f, cause, true));
}

/* How its time is told of, given its path. */
static void tell_times(struct weft__finder *f, uint32_t promise, struct weft_path *path)
{
	struct slow slow = {f, weft__finding_shapes(f), promise};
	struct weft_path *usual = NULL;
	parts_vec parts = {0}, of_usual = {0};
	int64_t all_ns = f->ties.ended_ns[promise] - f->model->promises[promise].start_ns;
	if (!slow.group || all_ns <= 0)
		return;
	uint32_t median = tell_peers(&slow, promise, all_ns);
	if (median != WEFT_NONE && median != promise && weft_path_create_with(&usual, &f->ties, median, NULL) == WEFT_ENOMEM)
		f->no_memory = true;
	gather(&slow, &parts, path);
	if (usual)
		gather(&slow, &of_usual, usual);
	tell_parts(&slow, promise, &parts, &of_usual);
	struct weft_finding *finding = &f->findings.items[f->findings.count - 1];
	finding->steps = path->steps;
	finding->step_count = path->count;
	path->steps = NULL;
	weft_path_destroy(usual);
	weft_vec_free(&parts);
	weft_vec_free(&of_usual);
}

void weft__slow_tell(struct weft__finder *f, uint32_t promise, struct weft_path *path)
{
	struct weft_path *made = NULL;
	if (!path)
		f->no_memory |= weft_path_create_with(&made, &f->ties, promise, NULL) == WEFT_ENOMEM;
	if (path || made)
		tell_times(f, promise, path ? path : made);
	weft_path_destroy(made);
}
