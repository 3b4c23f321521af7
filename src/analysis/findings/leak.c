/* leak.c: reports promises of one type that are created all the time and hardly ever end.
 *
 * Labels that differ only in numbers make one type.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"

enum { QUARTERS = 4, ENOUGH_TO_EACH = 8 };

/* Types with one label pattern, and those of their promises that are pending at the end. */
struct type_group {
	uint32_t types, ended, pending; /* counts of types, ended promises and pending promises, whether they may leak or not */
	int64_t first_ns, last_ns;      /* first and last creation time of a promise that may leak */
	uint32_t alive, first, last;    /* number of promises that may leak; the oldest of them; the youngest of them */
	/* Number of `alive` promises whose creation is in the trace.  A checkpoint in a ring lists the older promises that are
	 * pending, but no older promises that have ended. */
	uint32_t seen;
	uint32_t quarter[QUARTERS]; /* number of promises created in each quarter of the time from first_ns to last_ns */
	/* number of promises created in the first two quarters; number of those that were active in the last quarter */
	uint32_t old, used;
	/* number of times that the creator differs from the creator of the promise before; number of pending timers that have
	 * already fired */
	uint32_t makers, repeated;
	uint32_t last_maker;
	bool may_serve; /* true if a connected client may need some of the promises */
};

/* Returns whether a ring has overwritten the creation of p but a checkpoint still has its time. */
static bool is_old(const struct weft__finder *f, uint32_t p)
{
	return weft__is_only_past_missing(f->completeness, f->model, p);
}

/* Returns whether the creator of a promise is a handle that runs all callbacks of a program, as in uvloop: such a handle never
 * ends, so it does not stop its timers. */
static bool is_pure_server(const struct weft_model *m, uint32_t maker)
{
	return weft_kind_has(m->promises[maker].kind, WEFT_TRAIT_ENDLESS) &&
	       weft_kind_has(m->promises[maker].kind, WEFT_TRAIT_OUTSIDE);
}

/* Returns whether p is a timer that only a loop waits for and whose creator has ended: no code is left that could stop it. */
static bool is_forgotten(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *promise = &m->promises[p];
	uint32_t maker = promise->created_by;
	if (promise->kind != WEFT_KIND_TIMER || promise->end != WEFT_END_PENDING || (promise->start_ns < 0 && !is_old(f, p)) ||
	    promise->flags & WEFT_PROMISE_START_UNKNOWN)
		return false;
	if (!(promise->flags & WEFT_PROMISE_ORPHAN) &&
	    (maker == WEFT_NONE || maker == WEFT_SYSTEM ||
		(f->link_index.ended_ns[maker] == WEFT_NEVER && !is_pure_server(m, maker))))
		return false;
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && f->link_index.ended_ns[link->from] == WEFT_NEVER &&
		    !weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_LOOP))
			return false;
	}
	return true;
}

/* Returns whether p is a connection that waits for nothing.  If the trace also has the other end of the connection, that end
 * does not explain why the program keeps the connection. */
static bool is_unused_connection(const struct weft__finder *f, uint32_t p)
{
	return weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_CONNECTION) && f->root_causes.next[p] == WEFT_NONE;
}

/* Returns whether p is a repeating timer that another timer created: each call of that timer may add a further one. */
static bool is_piled_timer(const struct weft__finder *f, uint32_t p)
{
	enum { REPEATED = 3 }; /* runs */
	const struct weft_promise *promise = &f->model->promises[p];
	const uint32_t maker = promise->created_by;
	return promise->kind == WEFT_KIND_TIMER && promise->end == WEFT_END_PENDING && maker != WEFT_NONE &&
	       f->model->promises[maker].kind == WEFT_KIND_TIMER && promise[1].runs - promise->runs >= REPEATED;
}

static bool may_leak(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	if (is_forgotten(f, p) || is_piled_timer(f, p))
		return true;
	/* A promise that waits for the root of a reported hang is part of that hang's finding.  A connection that the program
	 * made may leak although it waits for the outside, because the program can close it at any time. */
	return !f->reported[f->root_causes.root[p]] && promise->end == WEFT_END_PENDING &&
	       !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && (promise->start_ns >= 0 || is_old(f, p)) &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_OUTSIDE) &&
	       (f->root_causes.verdict[p] != WEFT_VERDICT_OUTSIDE || is_unused_connection(f, p) ||
		   promise->flags & (WEFT_PROMISE_CONNECTED | WEFT_PROMISE_SENT));
}

/* Returns whether a connected client may need p: p is a connection that the program made, or a timer whose creator is
 * pending. */
static bool may_serve(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	const uint32_t maker = promise->created_by;
	return promise->flags & WEFT_PROMISE_CONNECTED || (promise->kind == WEFT_KIND_TIMER && !is_piled_timer(f, p) &&
							      maker != WEFT_NONE && f->link_index.ended_ns[maker] == WEFT_NEVER);
}

/* Returns whether the program itself made the other end of connection p. */
static bool is_own_client(const struct weft_model *m, uint32_t p)
{
	const uint32_t end = weft_other_end_of(m, p);
	return end != WEFT_NONE && weft_part_of(m, end) == weft_part_of(m, p) && m->promises[end].flags & WEFT_PROMISE_CONNECTED;
}

/* Returns the number of open connections that clients made to the program. */
static uint32_t count_clients(const struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t count = 0;
	for (size_t i = 0; i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		count += weft_kind_has(m->promises[p].kind, WEFT_TRAIT_CONNECTION) &&
			 !(m->promises[p].flags & WEFT_PROMISE_CONNECTED) && !is_own_client(m, p);
	}
	return count;
}

/* Returns whether the group consists of repeating timers, each started by a different creator that has ended: nothing will stop
 * these timers, so the time of their creation does not matter.  Connected clients may need timers that were left running. */
static bool is_left_running(const struct type_group *type_group, uint32_t clients)
{
	return type_group->repeated >= type_group->alive / 2 && type_group->makers >= type_group->alive / 2 &&
	       type_group->alive / 2 > clients;
}

/* Returns the smallest number of pending promises with which a type is examined. */
static size_t get_least_count(const struct weft__finder *f)
{
	enum { FEW_DIVISOR = 2 };
	return f->options.leak_count / FEW_DIVISOR;
}

/* Returns whether fewer promises than usual are a leak of this group, which is informational: a repeating timer costs CPU time
 * for ever, and a connection also costs its peer. */
static bool may_be_few(const struct weft__finder *f, const struct type_group *type_group, uint32_t clients)
{
	return is_left_running(type_group, clients) || is_piled_timer(f, type_group->first) ||
	       f->model->promises[type_group->first].flags & WEFT_PROMISE_CONNECTED;
}

/* Returns whether promises of the group are created all the time, but hardly any of them ends or is used. */
static bool is_leak(const struct weft__finder *f, const struct type_group *type_group, uint32_t clients)
{
	if (type_group->alive < get_least_count(f) ||
	    (type_group->alive < f->options.leak_count && !may_be_few(f, type_group, clients)) ||
	    type_group->ended > type_group->seen / 10 ||
	    (type_group->used > type_group->old / 2 && !is_left_running(type_group, clients)))
		return false;
	if (type_group->may_serve && type_group->alive / 2 <= clients)
		return false;
	/* A program that connects to many different peers keeps these connections on purpose. */
	if (f->model->promises[type_group->first].flags & WEFT_PROMISE_CONNECTED &&
	    type_group->types > type_group->alive / ENOUGH_TO_EACH)
		return false;
	if (is_left_running(type_group, clients))
		return true;
	/* On a busy machine, one quarter may have no creations; a burst of creations in one quarter is no leak. */
	int quiet = 0;
	for (int q = 0; q < QUARTERS; q++) {
		quiet += type_group->quarter[q] < type_group->alive / (4 * QUARTERS);
		if (quiet > 1 || type_group->quarter[q] > type_group->alive / QUARTERS * (QUARTERS - 1))
			return false;
	}
	return type_group->last_ns - type_group->first_ns >= f->model->end_ns / 4;
}

static void report_leak(struct weft__finder *f, const struct type_group *type_group)
{
	const struct weft_model *m = f->model;
	uint32_t p = type_group->first, root = f->root_causes.root[p], ended = type_group->ended;
	const uint32_t maker = m->promises[p].created_by;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_LEAK, p, type_group->first_ns, m->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_type_group(f, type_group->first, type_group->types == 1),
		   *at = weft__format_site_suffix(f, p);
	const char *every = weft__format_duration(f, (type_group->last_ns - type_group->first_ns) / (type_group->alive - 1));
	finding->weight = type_group->alive;
	if (type_group->alive < f->options.leak_count)
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->verdict = f->root_causes.verdict[p];
	finding->title =
	    ended == 0 ? weft__finding_text(f, "%" PRIu32 " promises %s are pending: one was created per %s, and none ended%s",
			     type_group->alive, name, every, weft_first_label(m, p) == WEFT_NONE ? "" : at)
		       : weft__finding_text(f,
			     "%" PRIu32 " promises %s are pending: one was created per %s, and only %" PRIu32 " ended%s",
			     type_group->alive, name, every, ended, weft_first_label(m, p) == WEFT_NONE ? "" : at);
	finding->next =
	    weft__finding_text(f, "find the code that should end these promises, starting where they are created%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, type_group->first_ns, p, "%s%s creates the first of these promises, %s%s",
	    weft__format_promise(f, maker), maker == WEFT_NONE || maker == WEFT_SYSTEM ? "" : weft__format_site_suffix(f, maker),
	    weft__format_promise(f, p), at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, type_group->last_ns, type_group->last,
	    "%s creates the last of these promises, %s", weft__format_promise(f, m->promises[type_group->last].created_by),
	    weft__format_promise(f, type_group->last));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "promises created in each quarter of that time: %" PRIu32 ", %" PRIu32 ", %" PRIu32 " and %" PRIu32 "; %" PRIu32
	    " ended in all",
	    type_group->quarter[0], type_group->quarter[1], type_group->quarter[2], type_group->quarter[3], ended);
	if (root != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[root].start_ns, root,
		    "the wait chain of the first promise ends at %s%s", weft__format_promise(f, root),
		    weft__format_site_suffix(f, root));
	if (type_group->seen < type_group->alive && type_group->seen < f->options.leak_count)
		weft__finding_doubt(f, "the ring buffer was overwritten, so promises that ended before are not known");
	if (root != p && weft__completeness_of(f->completeness, m, p)->end_missing)
		weft__finding_doubt(
		    f, "the first of these promises waits for another one, and the program was killed or still runs");
}

static void count_quarter(const struct weft__finder *f, struct type_group *type_group, uint32_t p)
{
	int64_t span_ns = type_group->last_ns - type_group->first_ns,
		at_ns = f->model->promises[p].start_ns - type_group->first_ns;
	if (span_ns <= 0)
		return;
	int64_t quarter = (int64_t)((double)at_ns / (double)span_ns * QUARTERS);
	type_group->quarter[quarter < 0 ? 0 : quarter < QUARTERS ? quarter : QUARTERS - 1]++;
	if (quarter >= QUARTERS / 2)
		return;
	type_group->old++;
	type_group->used +=
	    !is_piled_timer(f, p) &&
	    (weft__finding_last_action_ns(f, p) > f->model->end_ns - (f->model->end_ns - type_group->first_ns) / QUARTERS ||
		/* a timer that the program restarts is in use, although it may never expire */
		weft__timer_is_restarted(f->model, p));
}

static void count_alive(struct weft__finder *f, struct type_group *type_groups, const uint32_t *first)
{
	const struct weft_model *m = f->model;
	for (uint32_t s = 0; s < f->types.items.count; s++) {
		const struct weft__promise_type *type = &f->types.items.items[s];
		struct type_group *type_group = &type_groups[first[s]];
		type_group->types += type->named;
		type_group->pending += type->named ? type->pending : 0;
		type_group->ended += type->count - type->pending;
	}
	for (size_t i = 0; i < f->wait_graph.pending.count && weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		struct type_group *type_group = &type_groups[first[f->types.of[p]]];
		if (type_group->pending < get_least_count(f) || !may_leak(f, p))
			continue;
		const int64_t start_ns = m->promises[p].start_ns;
		if (type_group->alive++ == 0 || start_ns < type_group->first_ns) {
			type_group->first = p;
			type_group->first_ns = start_ns;
		}
		if (type_group->alive == 1 || start_ns >= type_group->last_ns) {
			type_group->last = p;
			type_group->last_ns = start_ns;
		}
		type_group->seen += !is_old(f, p);
		type_group->repeated += is_forgotten(f, p) && m->promises[p + 1].runs > m->promises[p].runs;
		type_group->makers += type_group->alive == 1 || m->promises[p].created_by != type_group->last_maker;
		type_group->last_maker = m->promises[p].created_by;
		type_group->may_serve |= may_serve(f, p);
	}
	for (size_t i = 0; i < f->wait_graph.pending.count && weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		struct type_group *type_group = &type_groups[first[f->types.of[p]]];
		if (type_group->alive >= get_least_count(f) && may_leak(f, p))
			count_quarter(f, type_group, p);
	}
}

void weft__find_leak(struct weft__finder *f)
{
	size_t count = f->types.items.count;
	weft__unwaited_find(f);
	if (f->wait_graph.pending.count < get_least_count(f))
		return;
	struct type_group *type_groups = weft__finding_alloc(f, count, sizeof *type_groups);
	const uint32_t *first = weft__finding_patterns(f);
	if (type_groups && first) {
		const uint32_t clients = count_clients(f);
		count_alive(f, type_groups, first);
		for (uint32_t s = 0; s < count && weft__finding_may_continue(f, s, count); s++) {
			if (first[s] != s || !is_leak(f, &type_groups[s], clients))
				continue;
			/* Promises that wait for another leaking group are part of the finding about that group. */
			uint32_t root = f->root_causes.root[type_groups[s].last], other = first[f->types.of[root]];
			if (other == s || !is_leak(f, &type_groups[other], clients))
				report_leak(f, &type_groups[s]);
		}
	}
	free(type_groups);
}
