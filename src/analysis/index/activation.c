/* activation.c: finds why a promise started to run, from the links, messages, transfers and requests around that time.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/activation.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

/* ---- Links ---- */

const struct weft_link *weft__link_at(
    const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns, enum weft_link_kind kind, bool to)
{
	const struct weft_model *m = link_index->model;
	const uint32_t *begin = to ? link_index->in_begin : link_index->out_begin, *links = to ? link_index->in : link_index->out;
	const size_t end = begin[promise + 1];
	size_t l = WEFT_FIND_FIRST(i, begin[promise], end, m->links[links[i]].time_ns >= time_ns);
	for (; l < end && m->links[links[l]].time_ns == time_ns; l++)
		if (m->links[links[l]].kind == kind)
			return &m->links[links[l]];
	return NULL;
}

const struct weft_link *weft__first_read(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns)
{
	const struct weft_model *m = link_index->model;
	const struct weft_link *read = weft__link_at(link_index, promise, time_ns, WEFT_LINK_READ, false);
	uint32_t run = weft_run_before(m, promise, time_ns + 1);
	if (read || run == WEFT_NONE || m->runs[run].start_ns != time_ns)
		return read;
	const uint32_t *out = link_index->out;
	const size_t end = link_index->out_begin[promise + 1];
	size_t l = WEFT_FIND_FIRST(i, link_index->out_begin[promise], end, m->links[out[i]].time_ns >= time_ns);
	if (l == end)
		return NULL;
	const struct weft_link *first = &m->links[out[l]];
	return first->kind == WEFT_LINK_READ && first->time_ns <= m->runs[run].end_ns &&
		       link_index->ended_ns[first->to] <= time_ns
		   ? first
		   : NULL;
}

bool weft__are_apart(const struct weft_model *m, uint32_t p, uint32_t q)
{
	const struct weft_trace_info *info = m->trace;
	uint16_t of_p = m->promises[p].stream, of_q = m->promises[q].stream;
	return of_p < info->stream_count && of_q < info->stream_count && info->streams[of_p].part != info->streams[of_q].part;
}

/* Returns the last signal to the promise within an interval that did not run the promise at once, such as uv_async_send() from
 * another thread; or NULL. */
static const struct weft_link *find_last_signal(
    const struct weft_link_index *link_index, uint32_t promise, int64_t since_ns, int64_t time_ns)
{
	enum { MAX_SCANNED = 64 };
	const struct weft_model *m = link_index->model;
	const uint32_t begin = link_index->in_begin[promise], *in = link_index->in;
	size_t l = WEFT_FIND_FIRST(i, begin, link_index->in_begin[promise + 1], m->links[in[i]].time_ns >= time_ns);
	for (unsigned scanned = 0; l > begin && scanned < MAX_SCANNED; l--, scanned++) {
		const struct weft_link *link = &m->links[in[l - 1]];
		if (link->time_ns <= since_ns)
			break;
		if (link->kind == WEFT_LINK_SIGNAL && link->from != WEFT_SYSTEM && link->from != promise &&
		    !weft__are_apart(m, link->from, promise))
			return link;
	}
	return NULL;
}

/* ---- Transfers and requests ---- */

const struct weft_transfer *weft__last_remote_transfer(
    const struct weft_model *m, uint32_t connection, int64_t from_ns, int64_t to_ns)
{
	const struct weft_transfer *all = m->transfers;
	const size_t count = m->transfer_count;
	const size_t after =
	    WEFT_FIND_FIRST(i, 0, count, all[i].to > connection || (all[i].to == connection && all[i].received_ns > to_ns));
	const struct weft_transfer *last = after > 0 ? &all[after - 1] : NULL;
	return last && last->to == connection && last->sent_ns > from_ns && weft__are_apart(m, last->by, connection) ? last
														     : NULL;
}

uint32_t weft__connection_asked_on(const struct weft_link_index *link_index, uint32_t promise)
{
	const struct weft_model *m = link_index->model;
	const uint32_t begin = link_index->out_begin[promise], end = link_index->out_begin[promise + 1];
	for (uint32_t i = begin; weft_kind_has(m->promises[promise].kind, WEFT_TRAIT_REQUEST) && i < end; i++) {
		const struct weft_link *link = &m->links[link_index->out[i]];
		if (link->kind == WEFT_LINK_AWAIT &&
		    weft_kind_has((enum weft_kind)m->promises[link->to].kind, WEFT_TRAIT_CONNECTION))
			return link->to;
	}
	return WEFT_NONE;
}

const struct weft_request *weft__awaited_request(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns)
{
	const struct weft_model *m = link_index->model;
	const int64_t since_ns = m->promises[promise].start_ns;
	const uint32_t connection = m->request_count ? weft__connection_asked_on(link_index, promise) : WEFT_NONE;
	const struct weft_request *asked = connection != WEFT_NONE ? weft_request_before(m, connection, time_ns) : NULL;
	if (asked && asked->asked_ns >= since_ns)
		return asked;
	for (uint32_t i = link_index->in_begin[promise]; m->request_count && i < link_index->in_begin[promise + 1]; i++) {
		const struct weft_link *link = &m->links[link_index->in[i]];
		const bool is_read = link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
		const struct weft_request *request = is_read ? weft_request_before(m, link->from, time_ns) : NULL;
		if (request && request->asked_ns > since_ns)
			return request;
	}
	return NULL;
}

const struct weft_transfer *weft__awaited_transfer(const struct weft_link_index *link_index, uint32_t promise, int64_t time_ns)
{
	const struct weft_model *m = link_index->model;
	const uint32_t connection = m->transfer_count ? weft__connection_asked_on(link_index, promise) : WEFT_NONE;
	const struct weft_transfer *answer =
	    connection != WEFT_NONE ? weft__last_remote_transfer(m, connection, m->promises[promise].start_ns, time_ns) : NULL;
	if (answer)
		return answer;
	for (uint32_t i = link_index->in_begin[promise]; m->transfer_count && i < link_index->in_begin[promise + 1]; i++) {
		const struct weft_link *link = &m->links[link_index->in[i]];
		if (link->kind != WEFT_LINK_AWAIT && link->kind != WEFT_LINK_READ)
			continue;
		const struct weft_transfer *got =
		    weft__last_remote_transfer(m, link->from, m->promises[promise].start_ns, time_ns);
		if (got)
			return got;
	}
	return NULL;
}

/* ---- Lists ---- */

static int compare_moments(const void *a, const void *b)
{
	const struct weft__moment *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->index, y->index);
}

static bool find_run_ends(struct weft__activations *a)
{
	const struct weft_model *m = a->link_index->model;
	for (uint32_t p = 1; p < m->promise_count && a->run_ends.count < m->run_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			struct weft__moment *end = weft_vec_push(&a->run_ends);
			if (!end)
				return false;
			*end = (struct weft__moment){m->runs[r].end_ns, p};
		}
	weft_sort(a->run_ends.items, a->run_ends.count, sizeof *a->run_ends.items, compare_moments);
	return true;
}

static bool find_answers(struct weft__activations *a)
{
	const struct weft_model *m = a->link_index->model;
	for (size_t i = 0; i < m->request_count; i++) {
		if (m->requests[i].answered_ns == INT64_MAX)
			continue;
		struct weft__moment *answer = weft_vec_push(&a->answers);
		if (!answer)
			return false;
		*answer = (struct weft__moment){m->requests[i].answered_ns, (uint32_t)i};
	}
	weft_sort(a->answers.items, a->answers.count, sizeof *a->answers.items, compare_moments);
	return true;
}

static bool find_arrivals(struct weft__activations *a)
{
	const struct weft_model *m = a->link_index->model;
	for (size_t i = 0; i < m->transfer_count; i++) {
		struct weft__moment *arrival = weft_vec_push(&a->arrivals);
		if (!arrival)
			return false;
		*arrival = (struct weft__moment){m->transfers[i].received_ns, (uint32_t)i};
	}
	weft_sort(a->arrivals.items, a->arrivals.count, sizeof *a->arrivals.items, compare_moments);
	return true;
}

/* Finds, by promise, the promise that handled its message and the promise that sent it, perhaps in another process; returns
 * false when out of memory. */
static bool find_message_ends(struct weft__activations *a)
{
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	a->has_message_ends = true;
	if (m->message_count == 0)
		return true;
	a->handler = malloc(m->promise_count * sizeof *a->handler);
	a->sender = malloc(m->promise_count * sizeof *a->sender);
	if (!a->handler || !a->sender)
		return false;
	memset(a->handler, 0xff, m->promise_count * sizeof *a->handler); /* WEFT_NONE */
	memset(a->sender, 0xff, m->promise_count * sizeof *a->sender);
	for (size_t i = 0; i < m->message_count; i++) {
		const struct weft_message *message = &m->messages[i];
		if (!message->is_handled || message->other == WEFT_NONE)
			continue;
		uint32_t from = index->final[message->other], to = index->final[message->promise];
		if (m->promises[from].start_ns <= m->promises[to].start_ns)
			a->sender[to] = from;
		/* If a message got several answers, its sender waited for the last one. */
		uint32_t known = a->handler[from];
		if (index->ended_ns[to] != WEFT_NEVER && index->ended_ns[to] <= index->ended_ns[from] &&
		    (known == WEFT_NONE || index->ended_ns[to] > index->ended_ns[known]))
			a->handler[from] = to;
	}
	return true;
}

/* Returns whether the senders and handlers of messages are known; false when out of memory, which is noted. */
static bool has_message_ends(struct weft__activations *a)
{
	if (!a->has_message_ends && !find_message_ends(a))
		a->no_memory = true;
	return a->handler && a->sender;
}

uint32_t weft__handler_of(struct weft__activations *a, uint32_t promise)
{
	return has_message_ends(a) ? a->handler[promise] : WEFT_NONE;
}

uint32_t weft__sender_of(struct weft__activations *a, uint32_t promise)
{
	return has_message_ends(a) ? a->sender[promise] : WEFT_NONE;
}

const struct weft__timeline *weft__activations_timeline(struct weft__activations *a)
{
	if (a->timeline.model)
		return &a->timeline;
	if (weft__timeline_init(&a->timeline, a->link_index->model))
		return &a->timeline;
	weft__timeline_finish(&a->timeline);
	a->no_memory = true;
	return NULL;
}

void weft__activations_finish(struct weft__activations *a)
{
	weft__timeline_finish(&a->timeline);
	weft_vec_free(&a->run_ends);
	weft_vec_free(&a->arrivals);
	weft_vec_free(&a->answers);
	free(a->handler);
	free(a->sender);
}

/* ---- Causes ---- */

/* A run of a promise, given by its start. */
struct start {
	struct weft__activations *all;
	uint32_t promise;
	int64_t time_ns;
};

/* Returns the transfer from another process that is read in the run that starts now, as by sources of GLib; or NULL. */
static const struct weft_transfer *find_transfer_read_in_run(const struct start *s)
{
	enum { MAX_SCANNED = 16 };
	struct weft__activations *a = s->all;
	const struct weft_model *m = a->link_index->model;
	const uint32_t run = weft_run_before(m, s->promise, s->time_ns + 1);
	if (m->transfer_count && !a->arrivals.count && !find_arrivals(a)) {
		a->no_memory = true;
		return NULL;
	}
	const struct weft__moment *all = a->arrivals.items;
	size_t i = WEFT_FIND_FIRST(n, 0, a->arrivals.count, all[n].time_ns >= s->time_ns);
	for (unsigned scanned = 0; run != WEFT_NONE && i < a->arrivals.count && scanned < MAX_SCANNED; i++, scanned++) {
		const struct weft_transfer *got = &m->transfers[all[i].index];
		if (got->received_ns > m->runs[run].end_ns)
			break;
		if (m->promises[got->to].stream == m->promises[s->promise].stream && weft__are_apart(m, got->by, s->promise))
			return got->sent_ns <= s->time_ns ? got : NULL;
	}
	return NULL;
}

/* Returns the request whose answer is read in the run that starts now, or NULL. */
static const struct weft_request *find_request_answered_in_run(const struct start *s)
{
	enum { MAX_SCANNED = 16 };
	struct weft__activations *a = s->all;
	const struct weft_model *m = a->link_index->model;
	const uint32_t run = weft_run_before(m, s->promise, s->time_ns + 1);
	if (m->request_count && !a->answers.count && !find_answers(a)) {
		a->no_memory = true;
		return NULL;
	}
	const struct weft__moment *all = a->answers.items;
	size_t i = WEFT_FIND_FIRST(n, 0, a->answers.count, all[n].time_ns >= s->time_ns);
	for (unsigned scanned = 0; run != WEFT_NONE && i < a->answers.count && scanned < MAX_SCANNED; i++, scanned++) {
		const struct weft_request *request = &m->requests[all[i].index];
		if (request->answered_ns > m->runs[run].end_ns)
			break;
		if (m->promises[request->connection].stream == m->promises[s->promise].stream && request->asked_ns < s->time_ns)
			return request;
	}
	return NULL;
}

/* Returns whether a thread slept within an interval; also returns true if other threads slept more than MAX_SCANNED times in
 * it. */
static bool has_slept(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	enum { MAX_SCANNED = 64 };
	const size_t first = weft_first_sleep_from(m, from_ns);
	for (size_t i = first; i < m->sleep_count && m->sleeps[i].start_ns < to_ns; i++)
		if (m->sleeps[i].stream == stream || i - first == MAX_SCANNED)
			return true;
	return false;
}

/* Returns the time between a message on the connection and a request, if one of them may have led to the other; else INT64_MAX.
 * After an incoming question, the first request that is sent belongs to that question.  The first answer that is sent after the
 * answer to that request belongs to the question, too. */
static int64_t get_request_distance_ns(
    const struct weft_model *m, const struct weft_request *to, uint32_t connection, int64_t read_ns)
{
	const struct weft_request *all = m->requests, *end = all + m->request_count;
	const struct weft_request *at = weft_request_before(m, connection, read_ns);
	if (to->is_question) { /* find the incoming question whose answer was sent after this request's answer */
		at = at ? at + 1 : &all[WEFT_FIND_FIRST(i, 0, m->request_count, all[i].connection >= connection)];
		const bool is_next =
		    at < end && at->connection == connection && !at->is_question && at->asked_ns >= to->answered_ns;
		return is_next ? at->asked_ns - to->answered_ns : INT64_MAX;
	}
	const bool has_before = to > all && to[-1].connection == to->connection;
	const int64_t came_ns = has_before ? to[-1].answered_ns : m->promises[to->connection].start_ns;
	return at && at->is_question && at->answered_ns <= read_ns && at->asked_ns >= came_ns ? at->asked_ns - came_ns
											      : INT64_MAX;
}

/* Makes the list a->run_ends; returns false when out of memory, which is noted. */
static bool has_run_ends(struct weft__activations *a)
{
	if (!a->run_ends.count && !find_run_ends(a))
		a->no_memory = true;
	return !a->no_memory;
}

/* Returns whether the write may have sent the question whose answer the socket has received: the write is a request that was
 * answered by then, or one promise created both.  For datagrams from a peer that is not in the trace there is no other
 * evidence. */
static bool may_have_asked(const struct weft_model *m, uint32_t write, uint32_t socket, int64_t read_ns)
{
	const struct weft_promise *asking = &m->promises[write];
	const struct weft_request *request = weft_request_before(m, socket, read_ns);
	if (request)
		return request->is_question && request->asked_ns >= asking->start_ns && request->answered_ns <= read_ns;
	return asking->created_by != WEFT_SYSTEM && m->promises[socket].created_by == asking->created_by;
}

const struct weft__moment *weft__answer_before_end(struct weft__activations *a, uint32_t write)
{
	enum { MAX_SCANNED = 64 };
	const struct weft_model *m = a->link_index->model;
	const struct weft_promise *asking = &m->promises[write];
	const int64_t ended_ns = a->link_index->ended_ns[write];
	const struct weft_link *by = weft__link_at(a->link_index, write, ended_ns, WEFT_LINK_RESOLVE, true);
	if (asking->kind != WEFT_KIND_STREAM_WRITE || !by || by->from != WEFT_SYSTEM || !has_run_ends(a))
		return NULL;
	const struct weft__moment *ends = a->run_ends.items;
	size_t i = WEFT_FIND_FIRST(n, 0, a->run_ends.count, ends[n].time_ns > ended_ns);
	for (unsigned scanned = 0; i-- > 0 && scanned < MAX_SCANNED && ends[i].time_ns > asking->start_ns; scanned++) {
		const uint32_t ran = ends[i].index;
		const struct weft_promise *p = &m->promises[ran];
		if (p->stream != asking->stream)
			continue;
		if (has_slept(m, asking->stream, ends[i].time_ns, ended_ns))
			return NULL;
		const uint32_t socket = weft_kind_has(p->kind, WEFT_TRAIT_REQUEST) ? p->created_by : ran;
		const uint32_t run = weft_run_before(m, ran, ends[i].time_ns);
		if (socket == WEFT_SYSTEM || socket == WEFT_NONE || run == WEFT_NONE || m->runs[run].start_ns <= asking->start_ns)
			continue;
		if (weft_kind_has(m->promises[socket].kind, WEFT_TRAIT_CONNECTION) &&
		    may_have_asked(m, write, socket, ends[i].time_ns))
			return &ends[i];
	}
	return NULL;
}

/* Returns the end of the run that left work for a check, prepare or idle handle of libuv, or NULL.  A loop calls these handles
 * in each turn, and they do work that callbacks of the same turn left: Knot Resolver sends its answers in this way.  Returns
 * the last such run or, if the search of a critical path followed a request, the run that fits that request best. */
static const struct weft__moment *find_preceding_run(const struct start *s, const struct weft_request *followed)
{
	enum { MAX_SCANNED = 64 };
	struct weft__activations *a = s->all;
	const struct weft_model *m = a->link_index->model;
	const struct weft_promise *handle = &m->promises[s->promise];
	if (handle->kind != WEFT_KIND_HANDLE || !has_run_ends(a))
		return NULL;
	const struct weft__moment *ends = a->run_ends.items, *best = NULL;
	int64_t nearest_ns = INT64_MAX;
	size_t i = WEFT_FIND_FIRST(n, 0, a->run_ends.count, ends[n].time_ns > s->time_ns);
	for (unsigned scanned = 0; i-- > 0 && scanned < MAX_SCANNED; scanned++) {
		const struct weft_promise *p = &m->promises[ends[i].index];
		if (p->stream != handle->stream || p->kind == WEFT_KIND_HANDLE ||
		    weft_kind_has(p->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD))
			continue;
		if (has_slept(m, handle->stream, ends[i].time_ns, s->time_ns))
			break;
		const int64_t ns = followed ? get_request_distance_ns(m, followed, ends[i].index, ends[i].time_ns) : INT64_MAX;
		if (!best || ns < nearest_ns)
			best = &ends[i];
		nearest_ns = weft_min_ns(nearest_ns, ns);
		if (!followed)
			break;
	}
	return best;
}

/* Returns the end of the last sleep of the thread that runs the promise now; since_ns if it did not sleep since then. */
static int64_t find_wake_time(const struct start *s, int64_t since_ns)
{
	const struct weft_model *m = s->all->link_index->model;
	const uint32_t run = weft_run_before(m, s->promise, s->time_ns + 1);
	const uint16_t stream = m->run_streams && run != WEFT_NONE ? m->run_streams[run] : m->promises[s->promise].stream;
	const struct weft__timeline *timeline = weft__activations_timeline(s->all);
	if (!timeline)
		return since_ns;
	const uint32_t first = timeline->sleep_begin[stream];
	const size_t after =
	    WEFT_FIND_FIRST(i, first, timeline->sleep_begin[stream + 1], m->sleeps[timeline->sleeps[i]].start_ns >= s->time_ns);
	if (after == first)
		return since_ns;
	return weft_max_ns(weft_min_ns(m->sleeps[timeline->sleeps[after - 1]].end_ns, s->time_ns), since_ns);
}

/* Sets the cause of a run that was caused by data from outside the process; returns false if no such data caused it. */
static bool find_outside_cause(const struct start *s, struct weft__activation *out)
{
	const struct weft_model *m = s->all->link_index->model;
	out->transfer = weft__last_remote_transfer(m, s->promise, out->active_ns, s->time_ns);
	if (!out->transfer)
		out->transfer = find_transfer_read_in_run(s);
	if (!out->transfer)
		out->request = find_request_answered_in_run(s);
	if (out->transfer || out->request)
		out->cause = out->transfer ? WEFT__ACTIVATED_BY_TRANSFER : WEFT__ACTIVATED_BY_ANSWER;
	return out->transfer || out->request;
}

/* Sets the cause of a run for which nothing happened at the time of its start. */
static void find_early_cause(
    const struct start *s, uint32_t before, const struct weft_request *followed, struct weft__activation *out)
{
	out->link = find_last_signal(s->all->link_index, s->promise, out->active_ns, s->time_ns);
	if (out->link) {
		out->cause = WEFT__ACTIVATED_BY_EARLY_SIGNAL;
		out->ready_ns = out->link->time_ns;
		return;
	}
	const struct weft__moment *left = before != WEFT_NONE ? find_preceding_run(s, followed) : NULL;
	if (left && left->time_ns >= out->active_ns) {
		out->cause = WEFT__ACTIVATED_BY_RUN;
		out->by = left->index;
		out->ready_ns = left->time_ns;
		return;
	}
	/* The promise continues after a nested call, or the cause of its run is unknown.  The promise was not ready while its
	 * thread slept. */
	out->cause = before == WEFT_NONE ? WEFT__ACTIVATED_FIRST : WEFT__ACTIVATED_AGAIN;
	if (before != WEFT_NONE)
		out->ready_ns = find_wake_time(s, out->active_ns);
}

struct weft__activation weft__activation_find(
    struct weft__activations *a, uint32_t promise, int64_t time_ns, const struct weft_request *followed)
{
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	const struct start s = {a, promise, time_ns};
	const int64_t created_ns = weft__is_simplified(m, promise) ? INT64_MIN : m->promises[promise].start_ns;
	const uint32_t before = weft_run_before(m, promise, time_ns);
	struct weft__activation out = {.ready_ns = time_ns, .by = WEFT_NONE, .has_run = before != WEFT_NONE};
	out.active_ns = before != WEFT_NONE ? weft_max_ns(m->runs[before].end_ns, created_ns) : created_ns;
	out.link = weft__first_read(index, promise, time_ns);
	if (out.link) {
		const int64_t ended_ns = index->ended_ns[out.link->to];
		out.cause = WEFT__ACTIVATED_BY_READ;
		if (ended_ns != WEFT_NEVER && ended_ns <= time_ns)
			out.ready_ns = weft_max_ns(ended_ns, out.active_ns);
		return out;
	}
	const int64_t over_ns = index->ended_ns[promise];
	if (over_ns < time_ns && over_ns > out.active_ns) {
		out.cause = WEFT__ACTIVATED_BY_CLOSE;
		out.ready_ns = over_ns;
		return out;
	}
	out.link = weft__link_at(index, promise, time_ns, WEFT_LINK_SIGNAL, true);
	if (out.link && out.link->from == WEFT_SYSTEM && before == WEFT_NONE && weft__sender_of(a, promise) != WEFT_NONE) {
		out.cause = WEFT__ACTIVATED_BY_MESSAGE;
		out.ready_ns = created_ns;
		return out;
	}
	const bool is_local = out.link && out.link->from != WEFT_SYSTEM && !weft__are_apart(m, out.link->from, promise);
	if (!is_local && find_outside_cause(&s, &out))
		return out;
	if (out.link)
		out.cause = WEFT__ACTIVATED_BY_SIGNAL;
	else if (created_ns >= time_ns)
		out.cause = WEFT__ACTIVATED_BY_CREATION;
	else
		find_early_cause(&s, before, followed, &out);
	return out;
}
