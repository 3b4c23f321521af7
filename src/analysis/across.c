/* across.c: who waits for another process.  SPDX-License-Identifier: ISC */
#include "analysis/across.h"

#include "analysis/shares.h"
#include "analysis/waiting.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"

enum { TIMES_LONGER = 20, LEAST_SILENCE_NS = 400000000 };

/* An end that was asked, and has not answered, or not to the end. */
struct asked {
	uint32_t promise;
	int64_t read_ns; /* when it read the question; WEFT_NEVER: it did not */
	/* It began to answer, or what read a datagram is over: then somebody has to be at work there, or that may have been all.
	 */
	bool has_begun, is_over, is_at_work;
	uint32_t reader; /* who waits for it */
	int64_t since_ns;
};

struct search {
	struct weft__across_list *out;
	const struct weft_ties *ties;
	int64_t time_ns;
	WEFT_VEC(struct asked) asked;
	struct weft_idmap of;      /* by promise, its connection: which of `asked` */
	struct weft_idmap read_of; /* by read likewise */
};

const struct weft_transfer *weft__across_last(const struct weft_model *m, uint32_t to, int64_t time_ns)
{
	const struct weft_transfer *all = m->transfers;
	const size_t after =
	    WEFT_FIRST(i, 0, m->transfer_count, all[i].to > to || (all[i].to == to && all[i].received_ns > time_ns));
	return after > 0 && all[after - 1].to == to ? &all[after - 1] : NULL;
}

const struct weft_connection_end *weft__across_end(const struct weft_model *m, uint32_t promise)
{
	const size_t at = WEFT_FIRST(i, 0, m->end_count, m->ends[i].promise >= promise);
	const bool is_end = at < m->end_count && m->ends[at].promise == promise;
	return is_end && weft_part_of(m, promise) != weft_part_of(m, m->ends[at].peer) ? &m->ends[at] : NULL;
}

/* Whether an answer came in pieces, and then none for far longer than between two of them: what is pushed in steps goes on. */
static bool has_stopped(const struct search *s, const struct weft_transfer *question, const struct weft_transfer *answer)
{
	const struct weft_model *m = s->ties->model;
	const int64_t silent_ns = weft_min_ns(s->time_ns, m->end_ns) - answer->received_ns;
	const uint32_t to = answer->to;
	for (; silent_ns >= LEAST_SILENCE_NS; answer--) {
		const bool is_first = answer == m->transfers || answer[-1].to != to || answer[-1].received_ns < question->sent_ns;
		const int64_t before_ns = is_first ? question->sent_ns : answer[-1].received_ns;
		if ((answer->received_ns - before_ns) > silent_ns / TIMES_LONGER)
			return false;
		if (is_first)
			return true;
	}
	return false;
}

/* Whether its peer is asked there, from the first message on. */
static bool is_asking(const struct weft_model *m, uint32_t connection)
{
	const size_t at = WEFT_FIRST(i, 0, m->turn_count, m->turns[i].connection >= connection);
	return at < m->turn_count && m->turns[at].connection == connection && m->turns[at].is_question;
}

/* Likewise of one whose answer began; WEFT_NEVER: it did not, or goes on. */
static int64_t begun_since(const struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->ties->model;
	if (!is_asking(m, end->promise))
		return WEFT_NEVER;
	const struct weft_transfer *question = weft__across_last(m, end->peer, s->time_ns),
				   *answer = weft__across_last(m, end->promise, s->time_ns);
	return question && answer && question->from == end->promise && answer->received_ns >= question->sent_ns &&
		       has_stopped(s, question, answer)
		   ? question->sent_ns
		   : WEFT_NEVER;
}

/* When an end wrote last what had not been answered by then; WEFT_NEVER: it waits for nothing. */
static int64_t asked_since(const struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->ties->model;
	if (s->time_ns >= m->end_ns)
		return end->sent_ns > end->received_ns ? end->sent_ns : WEFT_NEVER;
	const struct weft_transfer *question = weft__across_last(m, end->peer, s->time_ns),
				   *answer = weft__across_last(m, end->promise, s->time_ns);
	return question && (!answer || answer->received_ns < question->sent_ns) ? question->sent_ns : WEFT_NEVER;
}

static bool add(struct search *s, uint32_t from, uint32_t to, int64_t since_ns)
{
	struct weft__across *across = weft_vec_push(&s->out->all);
	if (across)
		*across = (struct weft__across){from, to, since_ns};
	return across;
}

/* The read of a connection that is pending; the connection itself, if there is none. */
static uint32_t reader_of(const struct search *s, uint32_t connection)
{
	const struct weft_model *m = s->ties->model;
	for (uint32_t i = s->ties->out_begin[connection + 1]; i-- > s->ties->out_begin[connection];) {
		const struct weft_link *link = &m->links[s->ties->out[i]];
		if (link->kind == WEFT_LINK_AWAIT && m->promises[link->to].kind == WEFT_KIND_STREAM_READ &&
		    link->time_ns <= s->time_ns && weft__waiting_is_pending(m, link->to, s->time_ns))
			return link->to;
	}
	return connection;
}

static bool is_accepted(const struct weft_model *m, uint32_t connection)
{
	const uint32_t maker = m->promises[connection].created_by;
	return maker != WEFT_NONE && m->promises[maker].kind == WEFT_KIND_LISTEN &&
	       !(m->promises[connection].flags & WEFT_PROMISE_CONNECTED);
}

/* A callback of libuv's that was given one: what it began may go on. */
static bool handled_datagram(const struct weft_model *m, uint32_t promise)
{
	return !weft_kind_has((enum weft_kind)m->promises[promise].kind, WEFT_TRAIT_CONNECTION);
}

static bool add_end(struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->ties->model;
	int64_t since_ns = asked_since(s, end);
	const bool has_begun = since_ns == WEFT_NEVER, is_over = !weft__waiting_is_pending(m, end->peer, s->time_ns);
	since_ns = has_begun ? begun_since(s, end) : since_ns;
	if (since_ns == WEFT_NEVER || is_accepted(m, end->promise) || !weft__across_end(m, end->promise) ||
	    !weft__waiting_is_pending(m, end->promise, s->time_ns) || (is_over && !handled_datagram(m, end->peer)))
		return true;
	const struct weft_transfer *question = weft__across_last(m, end->peer, s->time_ns);
	struct asked *asked = weft_vec_push(&s->asked);
	if (!asked || !weft_idmap_set(&s->of, end->peer, (uint32_t)s->asked.count - 1))
		return false;
	const bool is_read = question && question->sent_ns >= since_ns && question->from == end->promise;
	*asked = (struct asked){.promise = end->peer,
	    .read_ns = is_read ? question->received_ns : WEFT_NEVER,
	    .has_begun = has_begun,
	    .is_over = is_over,
	    .reader = reader_of(s, end->promise),
	    .since_ns = since_ns};
	return true;
}

/* Behind an answer that has begun a timer may be that of a connection that is kept, and another connection one to be used again.
 */
static bool add_at_work(struct search *s, uint32_t asked, uint32_t from, uint32_t to, int64_t since_ns)
{
	const uint16_t kind = s->ties->model->promises[to].kind;
	const bool may_rest = kind == WEFT_KIND_TIMER || weft_kind_has(kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION);
	if (s->asked.items[asked].has_begun && may_rest)
		return true;
	s->asked.items[asked].is_at_work = true;
	return add(s, from, to, since_ns);
}

/* What was begun there since the question came: by the connection, or by its reads. */
static bool add_work(struct search *s)
{
	const struct weft_model *m = s->ties->model;
	bool has_memory = true;
	for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count && has_memory; p++) {
		uint32_t maker = m->promises[p].created_by;
		if (maker == WEFT_NONE || m->promises[p].kind == WEFT_KIND_STREAM_READ)
			continue;
		if (m->promises[maker].kind == WEFT_KIND_STREAM_READ && m->promises[maker].created_by != WEFT_NONE)
			maker = m->promises[maker].created_by;
		const uint32_t at = weft_idmap_get(&s->of, maker);
		if (at != WEFT_IDMAP_NONE && m->promises[p].start_ns >= s->asked.items[at].read_ns &&
		    weft__waiting_is_pending(m, p, s->time_ns))
			has_memory = add_at_work(s, at, maker, p, m->promises[p].start_ns);
	}
	return has_memory;
}

/* What was asked for it on connections that were there before, as a proxy keeps them, and is not answered. */
static bool add_questions(struct search *s)
{
	const struct weft_model *m = s->ties->model;
	bool has_memory = true;
	for (size_t i = 0; i < m->turn_count && has_memory; i++) {
		const struct weft_turn *turn = &m->turns[i];
		const bool is_open = turn->is_question && turn->last_ns <= s->time_ns &&
				     (turn->answered_ns == WEFT_NEVER || turn->answered_ns > s->time_ns);
		uint32_t by = is_open ? s->ties->now[turn->last_by] : WEFT_SYSTEM;
		if (by != WEFT_SYSTEM && m->promises[by].kind == WEFT_KIND_STREAM_READ && m->promises[by].created_by != WEFT_NONE)
			by = m->promises[by].created_by;
		const uint32_t at = by == WEFT_SYSTEM ? WEFT_IDMAP_NONE : weft_idmap_get(&s->of, by);
		if (at == WEFT_IDMAP_NONE || turn->connection == by || turn->last_ns < s->asked.items[at].read_ns ||
		    m->promises[turn->connection].created_by == by || !weft__waiting_is_pending(m, turn->connection, s->time_ns))
			continue;
		s->asked.items[at].is_at_work = true;
		has_memory = add(s, by, turn->connection, turn->last_ns);
	}
	return has_memory;
}

/* The reads of those ends that ended since the question came. */
static bool note_reads(struct search *s)
{
	const struct weft_ties *ties = s->ties;
	for (uint32_t n = 0; n < s->asked.count; n++) {
		const struct asked *asked = &s->asked.items[n];
		for (uint32_t i = ties->out_begin[asked->promise]; i < ties->out_begin[asked->promise + 1]; i++) {
			const struct weft_link *awaits = &ties->model->links[ties->out[i]];
			if (awaits->kind == WEFT_LINK_AWAIT && ties->model->promises[awaits->to].kind == WEFT_KIND_STREAM_READ &&
			    ties->ended_ns[awaits->to] >= asked->read_ns && !weft_idmap_set(&s->read_of, awaits->to, n))
				return false;
		}
	}
	return true;
}

/* Where promises wait for reads, and connections run nothing: who got the question, and what that became. */
static bool add_readers(struct search *s)
{
	const struct weft_model *m = s->ties->model;
	bool has_memory = note_reads(s);
	for (size_t i = 0; i < m->link_count && has_memory; i++) {
		const struct weft_link *link = &m->links[i];
		const uint32_t n = link->kind == WEFT_LINK_READ ? weft_idmap_get(&s->read_of, link->to) : WEFT_IDMAP_NONE;
		const uint32_t reader = n == WEFT_IDMAP_NONE ? WEFT_SYSTEM : s->ties->now[link->from];
		if (reader != WEFT_SYSTEM && link->time_ns <= s->time_ns && link->from != s->asked.items[n].promise &&
		    weft__waiting_is_pending(m, reader, s->time_ns))
			has_memory = add_at_work(s, n, s->asked.items[n].promise, reader, link->time_ns);
	}
	return has_memory;
}

static int compare(const void *a, const void *b)
{
	const struct weft__across *x = a, *y = b;
	return WEFT_ORDER(x->from, y->from) ?: WEFT_ORDER(x->to, y->to) ?: WEFT_ORDER(x->since_ns, y->since_ns);
}

bool weft__across_find(struct weft__across_list *list, const struct weft_ties *ties, int64_t time_ns)
{
	const struct weft_model *m = ties->model;
	struct search s = {.out = list, .ties = ties, .time_ns = time_ns};
	bool has_memory = true;
	*list = (struct weft__across_list){.all = {0}};
	for (size_t i = 0; m->trace && m->trace->part_count > 1 && i < m->end_count && has_memory; i++)
		has_memory = add_end(&s, &m->ends[i]);
	if (s.asked.count && has_memory)
		has_memory = add_work(&s) && add_questions(&s) && add_readers(&s);
	for (size_t i = 0; i < s.asked.count && has_memory; i++) {
		const struct asked *a = &s.asked.items[i];
		if ((!a->has_begun && !a->is_over) || a->is_at_work)
			has_memory = add(&s, a->reader, a->promise, a->since_ns);
	}
	if (has_memory)
		weft_sort(list->all.items, list->all.count, sizeof *list->all.items, compare);
	weft_vec_free(&s.asked);
	weft_idmap_finish(&s.of);
	weft_idmap_finish(&s.read_of);
	return has_memory;
}

void weft__across_finish(struct weft__across_list *list)
{
	weft_vec_free(&list->all);
}
