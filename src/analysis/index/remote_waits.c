/* remote_waits.c: finds promises that wait for another process.  SPDX-License-Identifier: ISC */
#include "analysis/index/remote_waits.h"

#include "analysis/index/path_by_process.h"
#include "analysis/index/wait_graph.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/known_strings.h"
#include "base/search.h"
#include "base/sort.h"

enum { TIMES_LONGER = 20, MIN_SILENCE_NS = 400000000 };

/* One end of a connection that got a request and has not answered it, or not completely. */
struct asked {
	uint32_t promise;
	int64_t read_ns; /* time at which this end read the request; WEFT_NEVER if it has not */
	/* State of the answer: the connection end has begun to answer, or the promise that read a datagram has ended.  A
	 * connection end that has begun to answer owes more only if is_at_work: some promise still works on the answer. */
	bool has_begun, is_over, is_at_work;
	uint32_t reader; /* the promise that waits for the answer */
	int64_t since_ns;
};

struct search {
	struct weft__remote_waits *out;
	const struct weft_link_index *link_index;
	int64_t time_ns;
	WEFT_VEC(struct asked) asked;
	struct weft_idmap of;      /* index into `asked` for each connection end */
	struct weft_idmap read_of; /* index into `asked` for each read of a connection end */
};

const struct weft_transfer *weft__last_transfer_to(const struct weft_model *m, uint32_t to, int64_t time_ns)
{
	const struct weft_transfer *all = m->transfers;
	const size_t after =
	    WEFT_FIND_FIRST(i, 0, m->transfer_count, all[i].to > to || (all[i].to == to && all[i].received_ns > time_ns));
	return after > 0 && all[after - 1].to == to ? &all[after - 1] : NULL;
}

const struct weft_connection_end *weft__remote_connection_end(const struct weft_model *m, uint32_t promise)
{
	const size_t at = WEFT_FIND_FIRST(i, 0, m->end_count, m->ends[i].promise >= promise);
	const bool is_end = at < m->end_count && m->ends[at].promise == promise;
	return is_end && weft_part_of(m, promise) != weft_part_of(m, m->ends[at].peer) ? &m->ends[at] : NULL;
}

/* Returns whether an answer came in pieces and then stopped for far longer than the time between two pieces.  A slow stream of
 * pieces does not count. */
static bool has_stopped(const struct search *s, const struct weft_transfer *question, const struct weft_transfer *answer)
{
	const struct weft_model *m = s->link_index->model;
	const int64_t silent_ns = weft_min_ns(s->time_ns, m->end_ns) - answer->received_ns;
	const uint32_t to = answer->to;
	for (; silent_ns >= MIN_SILENCE_NS; answer--) {
		const bool is_first = answer == m->transfers || answer[-1].to != to || answer[-1].received_ns < question->sent_ns;
		const int64_t before_ns = is_first ? question->sent_ns : answer[-1].received_ns;
		if ((answer->received_ns - before_ns) > silent_ns / TIMES_LONGER)
			return false;
		if (is_first)
			return true;
	}
	return false;
}

/* Returns whether the connection sends requests to its peer, judged by the direction of the first message. */
static bool is_asking(const struct weft_model *m, uint32_t connection)
{
	const size_t at = WEFT_FIND_FIRST(i, 0, m->request_count, m->requests[i].connection >= connection);
	return at < m->request_count && m->requests[at].connection == connection && m->requests[at].is_question;
}

/* Returns when a connection end sent a request whose answer started and then stopped; WEFT_NEVER if there is no such
 * request. */
static int64_t find_partial_answer_since(const struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->link_index->model;
	if (!is_asking(m, end->promise))
		return WEFT_NEVER;
	const struct weft_transfer *question = weft__last_transfer_to(m, end->peer, s->time_ns),
				   *answer = weft__last_transfer_to(m, end->promise, s->time_ns);
	return question && answer && question->from == end->promise && answer->received_ns >= question->sent_ns &&
		       has_stopped(s, question, answer)
		   ? question->sent_ns
		   : WEFT_NEVER;
}

/* Returns when a connection end sent its last request without an answer; WEFT_NEVER if it waits for no answer. */
static int64_t find_asked_since(const struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->link_index->model;
	if (s->time_ns >= m->end_ns)
		return end->sent_ns > end->received_ns ? end->sent_ns : WEFT_NEVER;
	const struct weft_transfer *question = weft__last_transfer_to(m, end->peer, s->time_ns),
				   *answer = weft__last_transfer_to(m, end->promise, s->time_ns);
	return question && (!answer || answer->received_ns < question->sent_ns) ? question->sent_ns : WEFT_NEVER;
}

static bool add_wait(struct search *s, uint32_t from, uint32_t to, int64_t since_ns)
{
	struct weft__remote_wait *wait = weft_vec_push(&s->out->all);
	if (wait)
		*wait = (struct weft__remote_wait){from, to, since_ns};
	return wait;
}

/* Returns the pending read of a connection; the connection itself if there is none. */
static uint32_t find_reader(const struct search *s, uint32_t connection)
{
	const struct weft_model *m = s->link_index->model;
	for (uint32_t i = s->link_index->out_begin[connection + 1]; i-- > s->link_index->out_begin[connection];) {
		const struct weft_link *link = &m->links[s->link_index->out[i]];
		if (link->kind == WEFT_LINK_AWAIT && m->promises[link->to].kind == WEFT_KIND_STREAM_READ &&
		    link->time_ns <= s->time_ns && weft__wait_graph_is_pending(m, link->to, s->time_ns))
			return link->to;
	}
	return connection;
}

static bool has_label_from(const struct weft_model *m, uint32_t connection)
{
	const uint32_t label = weft_first_label(m, connection);
	return label != WEFT_NONE && weft_text_starts_with(weft_model_text(m, label), WEFT_STRING_FROM);
}

/* Returns whether a connection was accepted.  The promise that made it, its label or its other end shows that: a ring may have
 * lost the others. */
static bool is_accepted(const struct weft_model *m, uint32_t connection, uint32_t peer)
{
	const uint32_t maker = m->promises[connection].created_by;
	if (m->promises[connection].flags & WEFT_PROMISE_CONNECTED)
		return false;
	return has_label_from(m, connection) || m->promises[peer].flags & WEFT_PROMISE_CONNECTED ||
	       (maker != WEFT_NONE && m->promises[maker].kind == WEFT_KIND_LISTEN);
}

/* Returns whether the promise is a callback of libuv that got a datagram: work that the callback started may continue after its
 * end. */
static bool has_handled_datagram(const struct weft_model *m, uint32_t promise)
{
	return !weft_kind_has((enum weft_kind)m->promises[promise].kind, WEFT_TRAIT_CONNECTION);
}

static bool add_end(struct search *s, const struct weft_connection_end *end)
{
	const struct weft_model *m = s->link_index->model;
	int64_t since_ns = find_asked_since(s, end);
	const bool has_begun = since_ns == WEFT_NEVER, is_over = !weft__wait_graph_is_pending(m, end->peer, s->time_ns);
	since_ns = has_begun ? find_partial_answer_since(s, end) : since_ns;
	if (since_ns == WEFT_NEVER || is_accepted(m, end->promise, end->peer) || !weft__remote_connection_end(m, end->promise) ||
	    !weft__wait_graph_is_pending(m, end->promise, s->time_ns) || (is_over && !has_handled_datagram(m, end->peer)))
		return true;
	const struct weft_transfer *question = weft__last_transfer_to(m, end->peer, s->time_ns);
	struct asked *asked = weft_vec_push(&s->asked);
	if (!asked || !weft_idmap_set(&s->of, end->peer, (uint32_t)s->asked.count - 1))
		return false;
	const bool is_read = question && question->sent_ns >= since_ns && question->from == end->promise;
	*asked = (struct asked){.promise = end->peer,
	    .read_ns = is_read ? question->received_ns : WEFT_NEVER,
	    .has_begun = has_begun,
	    .is_over = is_over,
	    .reader = find_reader(s, end->promise),
	    .since_ns = since_ns};
	return true;
}

/* Adds work that was started for a request.  After the start of an answer, a timer may belong to a persistent connection, and
 * another connection may be kept for reuse: neither counts as work. */
static bool add_at_work(struct search *s, uint32_t asked, uint32_t from, uint32_t to, int64_t since_ns)
{
	const uint16_t kind = s->link_index->model->promises[to].kind;
	const bool may_rest = kind == WEFT_KIND_TIMER || weft_kind_has(kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION);
	if (s->asked.items[asked].has_begun && may_rest)
		return true;
	s->asked.items[asked].is_at_work = true;
	return add_wait(s, from, to, since_ns);
}

/* Returns the connection end for which a promise works: the promise itself, or the connection of a read or of a request that
 * began on it. */
static uint32_t find_end(const struct search *s, uint32_t promise)
{
	const struct weft_promise *p = &s->link_index->model->promises[promise];
	const bool is_part = p->kind == WEFT_KIND_STREAM_READ || p->kind == WEFT_KIND_REQUEST;
	/* A datagram counts as a request and as its own connection end. */
	return is_part && p->created_by != WEFT_NONE && weft_idmap_get(&s->of, promise) == WEFT_IDMAP_NONE ? p->created_by
													   : promise;
}

/* Returns the promise that waits for a promise which `maker` created: a pending request, or the connection end for which the
 * request works. */
static uint32_t find_waiter(const struct search *s, uint32_t maker)
{
	const struct weft_model *m = s->link_index->model;
	const bool is_open = m->promises[maker].kind == WEFT_KIND_REQUEST && weft__wait_graph_is_pending(m, maker, s->time_ns);
	return is_open ? maker : find_end(s, maker);
}

/* Adds pending promises that the connection, or one of its reads or requests, created since the request came. */
static bool add_work(struct search *s)
{
	const struct weft_model *m = s->link_index->model;
	bool has_memory = true;
	for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count && has_memory; p++) {
		const uint32_t maker = m->promises[p].created_by;
		if (maker == WEFT_NONE || m->promises[p].kind == WEFT_KIND_STREAM_READ)
			continue;
		const uint32_t at = weft_idmap_get(&s->of, find_end(s, maker));
		if (at != WEFT_IDMAP_NONE && m->promises[p].start_ns >= s->asked.items[at].read_ns &&
		    weft__wait_graph_is_pending(m, p, s->time_ns))
			has_memory = add_at_work(s, at, find_waiter(s, maker), p, m->promises[p].start_ns);
	}
	return has_memory;
}

/* Adds open requests that this end sent on older connections, such as those that a proxy keeps open. */
static bool add_questions(struct search *s)
{
	const struct weft_model *m = s->link_index->model;
	bool has_memory = true;
	for (size_t i = 0; i < m->request_count && has_memory; i++) {
		const struct weft_request *request = &m->requests[i];
		const bool is_open = request->is_question && request->last_ns <= s->time_ns &&
				     (request->answered_ns == WEFT_NEVER || request->answered_ns > s->time_ns);
		const uint32_t last_by = is_open ? s->link_index->final[request->last_by] : WEFT_SYSTEM,
			       by = last_by == WEFT_SYSTEM ? last_by : find_end(s, last_by);
		const uint32_t at = by == WEFT_SYSTEM ? WEFT_IDMAP_NONE : weft_idmap_get(&s->of, by);
		if (at == WEFT_IDMAP_NONE || request->connection == by || request->last_ns < s->asked.items[at].read_ns ||
		    find_end(s, m->promises[request->connection].created_by) == by ||
		    !weft__wait_graph_is_pending(m, request->connection, s->time_ns))
			continue;
		s->asked.items[at].is_at_work = true;
		has_memory = add_wait(s, find_waiter(s, last_by), request->connection, request->last_ns);
	}
	return has_memory;
}

/* Notes those reads of the connection ends that have ended since the request came; returns false when out of memory. */
static bool note_reads(struct search *s)
{
	const struct weft_link_index *link_index = s->link_index;
	for (uint32_t n = 0; n < s->asked.count; n++) {
		const struct asked *asked = &s->asked.items[n];
		for (uint32_t i = link_index->out_begin[asked->promise]; i < link_index->out_begin[asked->promise + 1]; i++) {
			const struct weft_link *awaits = &link_index->model->links[link_index->out[i]];
			if (awaits->kind == WEFT_LINK_AWAIT &&
			    link_index->model->promises[awaits->to].kind == WEFT_KIND_STREAM_READ &&
			    link_index->ended_ns[awaits->to] >= asked->read_ns && !weft_idmap_set(&s->read_of, awaits->to, n))
				return false;
		}
	}
	return true;
}

/* Adds promises that read the request, for programs in which promises wait for reads and connections run no code. */
static bool add_readers(struct search *s)
{
	const struct weft_model *m = s->link_index->model;
	bool has_memory = note_reads(s);
	for (size_t i = 0; i < m->link_count && has_memory; i++) {
		const struct weft_link *link = &m->links[i];
		const uint32_t n = link->kind == WEFT_LINK_READ ? weft_idmap_get(&s->read_of, link->to) : WEFT_IDMAP_NONE;
		const uint32_t reader = n == WEFT_IDMAP_NONE ? WEFT_SYSTEM : s->link_index->final[link->from];
		if (reader != WEFT_SYSTEM && link->time_ns <= s->time_ns && link->from != s->asked.items[n].promise &&
		    weft__wait_graph_is_pending(m, reader, s->time_ns))
			has_memory = add_at_work(s, n, s->asked.items[n].promise, reader, link->time_ns);
	}
	return has_memory;
}

static int compare_waits(const void *a, const void *b)
{
	const struct weft__remote_wait *x = a, *y = b;
	return WEFT_ORDER(x->from, y->from) ?: WEFT_ORDER(x->to, y->to) ?: WEFT_ORDER(x->since_ns, y->since_ns);
}

void weft__remote_waits_sort(struct weft__remote_waits *list)
{
	weft_sort(list->all.items, list->all.count, sizeof *list->all.items, compare_waits);
}

bool weft__remote_waits_find(struct weft__remote_waits *list, const struct weft_link_index *link_index, int64_t time_ns)
{
	const struct weft_model *m = link_index->model;
	struct search s = {.out = list, .link_index = link_index, .time_ns = time_ns};
	bool has_memory = true;
	*list = (struct weft__remote_waits){.all = {0}};
	for (size_t i = 0; m->trace && m->trace->part_count > 1 && i < m->end_count && has_memory; i++)
		has_memory = add_end(&s, &m->ends[i]);
	if (s.asked.count && has_memory)
		has_memory = add_work(&s) && add_questions(&s) && add_readers(&s);
	for (size_t i = 0; i < s.asked.count && has_memory; i++) {
		const struct asked *a = &s.asked.items[i];
		if ((!a->has_begun && !a->is_over) || a->is_at_work)
			has_memory = add_wait(&s, a->reader, a->promise, a->since_ns);
	}
	if (has_memory)
		weft__remote_waits_sort(list);
	weft_vec_free(&s.asked);
	weft_idmap_finish(&s.of);
	weft_idmap_finish(&s.read_of);
	return has_memory;
}

void weft__remote_waits_finish(struct weft__remote_waits *list)
{
	weft_vec_free(&list->all);
}
