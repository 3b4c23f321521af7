/* path.c: finds the critical path, by a walk from a promise's end back to its creation.  SPDX-License-Identifier: ISC */
#include "analysis/path.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/turns.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/kernel.h"

/* The walk stands at a time, with a promise.  The mode is what the promise does at that time. */
enum mode {
	ENDED,   /* it ends */
	ACTS,    /* it runs, or does something to another promise */
	BEGINS,  /* it begins to run */
	CREATED, /* it is created */
	DONE     /* the walk is over */
};

struct moment {
	int64_t time_ns;
	uint32_t what;
};

struct walk {
	const struct weft_ties *ties;
	int64_t low_ns, time_ns;
	uint32_t promise;
	enum mode mode;
	uint32_t lock, waiter; /* what is walked now was done while `waiter` waited for it, since lock_ns; or WEFT_NONE */
	int64_t lock_ns;
	uint32_t sent_by, connection; /* of the steps that are added now, as theirs; or WEFT_NONE */
	bool is_asked;
	const struct weft_turn *turn; /* that the walk followed last, or NULL */
	uint32_t *handler, *sender;   /* by promise: the other end of its message, or WEFT_NONE; NULL: there are no messages */
	/* In order; none before one is looked for. */
	WEFT_VEC(struct moment) run_ends;      /* promises, by the ends of their runs */
	WEFT_VEC(struct moment) arrivals;      /* transfers */
	WEFT_VEC(struct moment) answers;       /* turns */
	WEFT_VEC(struct weft_path_step) steps; /* backwards: the last step of the path is the first item */
	bool no_memory;
};

static void give_up(struct walk *w)
{
	w->no_memory = true;
	w->mode = DONE;
}

/* Adds a step as step() does, of which nobody has to wait for a lock, or all the time. */
static void step_evenly(struct walk *w, enum weft_step_kind kind, uint32_t promise, int64_t start_ns)
{
	if (start_ns >= w->time_ns)
		return;
	struct weft_path_step *last = w->steps.count ? &w->steps.items[w->steps.count - 1] : NULL;
	if (last && last->kind == kind && last->promise == promise && last->lock == w->lock && last->sent_by == w->sent_by &&
	    last->connection == w->connection) {
		last->start_ns = start_ns;
	} else {
		struct weft_path_step *added = weft_vec_push(&w->steps);
		if (!added) {
			give_up(w);
			return;
		}
		*added = (struct weft_path_step){
		    start_ns, w->time_ns, promise, WEFT_NONE, w->lock, WEFT_NONE, w->sent_by, w->connection, kind, w->is_asked};
	}
	w->time_ns = start_ns;
}

/* Adds the step that ends where the walk stands and begins at start_ns, and moves the walk there; the walk then goes on in that
 * mode.  What was done before a lock was waited for has not made the waiter late: there, the walk goes back to the waiter. */
static void step(struct walk *w, enum weft_step_kind kind, uint32_t promise, int64_t start_ns, enum mode next)
{
	start_ns = weft_max_ns(start_ns, w->low_ns);
	w->mode = next;
	if (w->lock != WEFT_NONE && start_ns <= w->lock_ns) {
		step_evenly(w, kind, promise, w->lock_ns);
		w->lock = WEFT_NONE;
		w->promise = w->waiter;
		w->mode = w->mode == DONE ? DONE : ACTS;
		return;
	}
	step_evenly(w, kind, promise, start_ns);
}

/* As step(), of what another process had sent, and was on its way. */
static void step_on_the_way(struct walk *w, uint32_t sent_by, int64_t sent_ns, enum mode next)
{
	w->sent_by = sent_by;
	step(w, WEFT_STEP_WAITING, w->promise, sent_ns, next);
	w->sent_by = WEFT_NONE;
}

/* Ends the walk: what happened before is unknown, or came from outside. */
static void leave(struct walk *w)
{
	step(w, WEFT_STEP_WAITING, WEFT_SYSTEM, w->low_ns, DONE);
}

static void go(struct walk *w, uint32_t promise, enum mode mode)
{
	w->promise = promise;
	w->mode = mode;
	if (promise == WEFT_SYSTEM || promise == WEFT_NONE)
		leave(w);
}

/* The first link of a kind to or from the promise at that time, or NULL. */
static const struct weft_link *link_at(const struct walk *w, enum weft_link_kind kind, bool to)
{
	const struct weft_model *m = w->ties->model;
	const uint32_t *begin = to ? w->ties->in_begin : w->ties->out_begin, *links = to ? w->ties->in : w->ties->out;
	const size_t end = begin[w->promise + 1];
	size_t l = WEFT_FIRST(i, begin[w->promise], end, m->links[links[i]].time_ns >= w->time_ns);
	for (; l < end && m->links[links[l]].time_ns == w->time_ns; l++)
		if (m->links[links[l]].kind == kind)
			return &m->links[links[l]];
	return NULL;
}

/* Who handles what a promise sent, and who sent what it handles, maybe in another process. */
static bool find_ends_of_messages(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	if (m->message_count == 0)
		return true;
	w->handler = malloc(m->promise_count * sizeof *w->handler);
	w->sender = malloc(m->promise_count * sizeof *w->sender);
	if (!w->handler || !w->sender)
		return false;
	memset(w->handler, 0xff, m->promise_count * sizeof *w->handler); /* WEFT_NONE */
	memset(w->sender, 0xff, m->promise_count * sizeof *w->sender);
	for (size_t i = 0; i < m->message_count; i++) {
		const struct weft_message *message = &m->messages[i];
		if (!message->is_handled || message->other == WEFT_NONE)
			continue;
		uint32_t from = w->ties->now[message->other], to = w->ties->now[message->promise];
		if (m->promises[from].start_ns <= m->promises[to].start_ns)
			w->sender[to] = from;
		/* Of several answers the last one was waited for. */
		uint32_t known = w->handler[from];
		if (w->ties->ended_ns[to] != WEFT_NEVER && w->ties->ended_ns[to] <= w->ties->ended_ns[from] &&
		    (known == WEFT_NONE || w->ties->ended_ns[to] > w->ties->ended_ns[known]))
			w->handler[from] = to;
	}
	return true;
}

static void free_walk(struct walk *w)
{
	weft_vec_free(&w->steps);
	weft_vec_free(&w->run_ends);
	weft_vec_free(&w->arrivals);
	weft_vec_free(&w->answers);
	free(w->handler);
	free(w->sender);
}

static uint32_t handler(const struct walk *w)
{
	return w->handler ? w->handler[w->promise] : WEFT_NONE;
}

static uint32_t sender(const struct walk *w)
{
	return w->sender ? w->sender[w->promise] : WEFT_NONE;
}

/* Of different processes, as far as that is known: neither holds the other up. */
static bool are_apart(const struct weft_model *m, uint32_t p, uint32_t q)
{
	const struct weft_trace_info *info = m->trace;
	uint16_t of_p = m->promises[p].stream, of_q = m->promises[q].stream;
	return of_p < info->stream_count && of_q < info->stream_count && info->streams[of_p].part != info->streams[of_q].part;
}

/* They were on their way, and the walk goes on where they were written. */
static void follow(struct walk *w, const struct weft_transfer *got)
{
	step_on_the_way(w, w->ties->now[got->by], got->sent_ns, ACTS);
	if (w->mode == ACTS && w->time_ns == got->sent_ns)
		go(w, w->ties->now[got->by], ACTS);
}

/* The datagram of another process for which the promise was created, or NULL. */
static const struct weft_transfer *first_transfer(const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	const struct weft_transfer *all = m->transfers;
	const size_t first = WEFT_FIRST(i, 0, m->transfer_count, all[i].to >= w->promise);
	const bool is_its = first < m->transfer_count && all[first].to == w->promise && all[first].sent_ns <= w->time_ns;
	return is_its && are_apart(m, all[first].by, w->promise) ? &all[first] : NULL;
}

static void was_created(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	uint32_t sent = sender(w);
	const struct weft_transfer *datagram = sent == WEFT_NONE ? first_transfer(w) : NULL;
	if (datagram) {
		follow(w, datagram);
		return;
	}
	if (sent == WEFT_NONE) {
		go(w, m->promises[w->promise].created_by, ACTS);
		return;
	}
	step_on_the_way(w, sent, m->promises[sent].start_ns, CREATED);
	if (w->mode == CREATED)
		go(w, sent, CREATED);
}

/* A bind that the model simplified was created before it is drawn, nobody knows when. */
static bool is_simplified(const struct walk *w, uint32_t promise)
{
	return !(w->ties->model->promises[promise].flags & WEFT_PROMISE_CREATION_DRAWN) && promise != WEFT_SYSTEM;
}

static enum mode first_mode(const struct walk *w)
{
	return is_simplified(w, w->promise) ? BEGINS : CREATED;
}

/* If the promise stands for a lock that is waited for: until it has ended, others do what there is to do. */
static void note_lock(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	for (uint32_t i = w->ties->out_begin[w->promise]; w->lock == WEFT_NONE && i < w->ties->out_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->ties->out[i]];
		if (link->kind != WEFT_LINK_AWAIT || !weft_kind_has(m->promises[link->to].kind, WEFT_TRAIT_LOCK) ||
		    link->time_ns >= w->time_ns)
			continue;
		w->lock = link->to;
		w->waiter = w->promise;
		w->lock_ns = weft_max_ns(link->time_ns, w->low_ns);
	}
}

/* The read for which the promise began to run: a read at that moment, or the first link of that run, if it reads a promise that
 * had ended before the run. */
static const struct weft_link *first_read(const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	const struct weft_link *read = link_at(w, WEFT_LINK_READ, false);
	uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	if (read || run == WEFT_NONE || m->runs[run].start_ns != w->time_ns)
		return read;
	const uint32_t *out = w->ties->out;
	const size_t end = w->ties->out_begin[w->promise + 1];
	size_t l = WEFT_FIRST(i, w->ties->out_begin[w->promise], end, m->links[out[i]].time_ns >= w->time_ns);
	if (l == end)
		return NULL;
	const struct weft_link *first = &m->links[out[l]];
	return first->kind == WEFT_LINK_READ && first->time_ns <= m->runs[run].end_ns &&
		       w->ties->ended_ns[first->to] <= w->time_ns
		   ? first
		   : NULL;
}

/* Whether a promise is but a name for whoever runs the program's loop, as in traces of mirage: nobody knows what it is, nor why
 * it runs now.  What it ends then was ended by the outside. */
static bool is_the_loop(const struct walk *w, uint32_t promise)
{
	const struct weft_model *m = w->ties->model;
	uint32_t run = weft_run_before(m, promise, w->time_ns + 1);
	if (m->promises[promise].kind != WEFT_KIND_PREEXISTING || run == WEFT_NONE)
		return false;
	const struct walk begins = {.ties = w->ties, .time_ns = m->runs[run].start_ns, .promise = promise};
	return !first_read(&begins) && !link_at(&begins, WEFT_LINK_SIGNAL, true);
}

/* The last bytes that came from another process to a connection in a stretch of time, or NULL.  One that talks to itself is
 * known by other links. */
static const struct weft_transfer *last_transfer(const struct walk *w, uint32_t connection, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = w->ties->model;
	const struct weft_transfer *all = m->transfers;
	const size_t count = m->transfer_count;
	const size_t after =
	    WEFT_FIRST(i, 0, count, all[i].to > connection || (all[i].to == connection && all[i].received_ns > to_ns));
	const struct weft_transfer *last = after > 0 ? &all[after - 1] : NULL;
	return last && last->to == connection && last->sent_ns > from_ns && are_apart(m, last->by, connection) ? last : NULL;
}

/* The walk goes on where something was written to the connection whose answer came now. */
static void follow_turn(struct walk *w, const struct weft_turn *turn)
{
	const bool is_last = turn->last_ns < w->time_ns;
	const int64_t written_ns = is_last ? turn->last_ns : turn->asked_ns;
	w->connection = turn->connection;
	w->is_asked = turn->is_question;
	step(w, WEFT_STEP_WAITING, w->promise, written_ns, ACTS);
	w->connection = WEFT_NONE;
	w->is_asked = false;
	w->turn = turn;
	if (w->mode == ACTS && w->time_ns == written_ns)
		go(w, w->ties->now[is_last ? turn->last_by : turn->by], ACTS);
}

/* A connection may be read from all the time: its other end makes a read late only since something was written to it.  Where that
 * was not before the read was begun, the walk goes on there. */
static const struct weft_turn *awaited_turn(const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	const int64_t since_ns = m->promises[w->promise].start_ns;
	for (uint32_t i = w->ties->in_begin[w->promise]; m->turn_count && i < w->ties->in_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->ties->in[i]];
		const bool is_read = link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ;
		const struct weft_turn *turn = is_read ? weft_turn_before(m, link->from, w->time_ns) : NULL;
		if (turn && turn->asked_ns > since_ns)
			return turn;
	}
	return NULL;
}

/* What a promise got that waited for bytes of a connection since it began. */
static const struct weft_transfer *awaited_transfer(const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	for (uint32_t i = w->ties->in_begin[w->promise]; m->transfer_count && i < w->ties->in_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->ties->in[i]];
		if (link->kind != WEFT_LINK_AWAIT && link->kind != WEFT_LINK_READ)
			continue;
		const struct weft_transfer *got = last_transfer(w, link->from, m->promises[w->promise].start_ns, w->time_ns);
		if (got)
			return got;
	}
	return NULL;
}

/* Whether who awaited it gave it up, as a read that is ended because its connection is closed: what comes ends it from outside.
 */
static bool was_given_up(const struct walk *w, uint32_t awaited)
{
	const struct weft_model *m = w->ties->model;
	if (m->promises[awaited].created_by != w->promise || m->promises[awaited].kind != WEFT_KIND_STREAM_READ)
		return false;
	for (uint32_t i = w->ties->in_begin[awaited]; i < w->ties->in_begin[awaited + 1]; i++) {
		const struct weft_link *link = &m->links[w->ties->in[i]];
		if (link->kind == WEFT_LINK_RESOLVE && link->to == awaited)
			return link->from != WEFT_SYSTEM && link->from != w->promise;
	}
	return false;
}

/* Of what the promise awaited, and did not run after, the last that ended: what ends itself then was over with that. */
static uint32_t last_awaited(const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	int64_t since_ns = run == WEFT_NONE ? INT64_MIN : m->runs[run].end_ns;
	uint32_t last = WEFT_NONE;
	for (uint32_t i = w->ties->out_begin[w->promise]; i < w->ties->out_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->ties->out[i]];
		const uint32_t awaited = w->ties->now[link->to];
		const int64_t ended_ns = w->ties->ended_ns[awaited];
		if (link->kind != WEFT_LINK_AWAIT || ended_ns == WEFT_NEVER || ended_ns > w->time_ns || ended_ns <= since_ns ||
		    was_given_up(w, awaited))
			continue;
		since_ns = ended_ns;
		last = awaited;
	}
	return last;
}

/* Whether it is a socket that read what another process had sent, for which it was there. */
static bool was_answered(const struct walk *w)
{
	const struct weft_promise *promise = &w->ties->model->promises[w->promise];
	return weft_kind_has((enum weft_kind)promise->kind, WEFT_TRAIT_CONNECTION) &&
	       last_transfer(w, w->promise, promise->start_ns, w->time_ns);
}

static void was_ended(struct walk *w)
{
	uint32_t handled = handler(w);
	if (handled != WEFT_NONE) {
		step_on_the_way(w, handled, w->ties->ended_ns[handled], ENDED);
		if (w->mode == ENDED)
			go(w, handled, ENDED);
		return;
	}
	const struct weft_link *by = link_at(w, WEFT_LINK_RESOLVE, true);
	note_lock(w);
	const uint32_t last = by && by->from == w->promise ? last_awaited(w) : WEFT_NONE;
	if (last != WEFT_NONE) {
		step(w, WEFT_STEP_READY, w->promise, w->ties->ended_ns[last], ENDED);
		if (w->mode == ENDED && w->time_ns == w->ties->ended_ns[last])
			go(w, last, ENDED);
		return;
	}
	if (by && by->from != WEFT_SYSTEM && !is_the_loop(w, by->from)) {
		go(w, by->from, ACTS);
		return;
	}
	const struct weft_transfer *got = awaited_transfer(w);
	if (got) {
		follow(w, got);
		return;
	}
	const struct weft_turn *turn = awaited_turn(w);
	if (turn)
		follow_turn(w, turn);
	else if (was_answered(w))
		w->mode = ACTS;
	else
		step(w, WEFT_STEP_WAITING, w->promise, w->ties->model->promises[w->promise].start_ns, first_mode(w));
}

static void acted(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	uint32_t run = weft_run_before(m, w->promise, w->time_ns);
	if (run != WEFT_NONE && m->runs[run].end_ns >= w->time_ns) {
		step(w, WEFT_STEP_RUNNING, w->promise, m->runs[run].start_ns, BEGINS);
		return;
	}
	uint32_t next = weft_run_before(m, w->promise, w->time_ns + 1);
	if (next != run) { /* the promise begins to run at this very moment */
		w->mode = BEGINS;
		return;
	}
	/* The promise acted while it did not run: this program does not record what runs. */
	const struct weft_promise *promise = &m->promises[w->promise];
	int64_t since_ns = run != WEFT_NONE ? m->runs[run].end_ns : promise->start_ns;
	step(w, WEFT_STEP_WAITING, w->promise, since_ns, run != WEFT_NONE ? ACTS : first_mode(w));
}

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->what, y->what);
}

static bool find_run_ends(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	for (uint32_t p = 1; p < m->promise_count && w->run_ends.count < m->run_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			struct moment *end = weft_vec_push(&w->run_ends);
			if (!end)
				return false;
			*end = (struct moment){m->runs[r].end_ns, p};
		}
	weft_sort(w->run_ends.items, w->run_ends.count, sizeof *w->run_ends.items, compare_moments);
	return true;
}

/* Turns by their answers. */
static bool find_answers(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	for (size_t i = 0; i < m->turn_count; i++) {
		if (m->turns[i].answered_ns == INT64_MAX)
			continue;
		struct moment *answer = weft_vec_push(&w->answers);
		if (!answer)
			return false;
		*answer = (struct moment){m->turns[i].answered_ns, (uint32_t)i};
	}
	weft_sort(w->answers.items, w->answers.count, sizeof *w->answers.items, compare_moments);
	return true;
}

/* Those by arrival. */
static bool find_arrivals(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	for (size_t i = 0; i < m->transfer_count; i++) {
		struct moment *arrival = weft_vec_push(&w->arrivals);
		if (!arrival)
			return false;
		*arrival = (struct moment){m->transfers[i].received_ns, (uint32_t)i};
	}
	weft_sort(w->arrivals.items, w->arrivals.count, sizeof *w->arrivals.items, compare_moments);
	return true;
}

/* What another process had sent, and the promise read in the run that begins now, as GLib's sources do; or NULL. */
static const struct weft_transfer *read_in_run(struct walk *w)
{
	enum { LOOKED_AT = 16 };
	const struct weft_model *m = w->ties->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	if (m->transfer_count && !w->arrivals.count && !find_arrivals(w)) {
		give_up(w);
		return NULL;
	}
	const struct moment *all = w->arrivals.items;
	size_t i = WEFT_FIRST(n, 0, w->arrivals.count, all[n].time_ns >= w->time_ns);
	for (unsigned looks = 0; run != WEFT_NONE && i < w->arrivals.count && looks < LOOKED_AT; i++, looks++) {
		const struct weft_transfer *got = &m->transfers[all[i].what];
		if (got->received_ns > m->runs[run].end_ns)
			break;
		if (m->promises[got->to].stream == m->promises[w->promise].stream && are_apart(m, got->by, w->promise))
			return got->sent_ns <= w->time_ns ? got : NULL;
	}
	return NULL;
}

/* The turn whose answer was read in the run that begins now, or NULL. */
static const struct weft_turn *answered_in_run(struct walk *w)
{
	enum { LOOKED_AT = 16 };
	const struct weft_model *m = w->ties->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	if (m->turn_count && !w->answers.count && !find_answers(w)) {
		give_up(w);
		return NULL;
	}
	const struct moment *all = w->answers.items;
	size_t i = WEFT_FIRST(n, 0, w->answers.count, all[n].time_ns >= w->time_ns);
	for (unsigned looks = 0; run != WEFT_NONE && i < w->answers.count && looks < LOOKED_AT; i++, looks++) {
		const struct weft_turn *turn = &m->turns[all[i].what];
		if (turn->answered_ns > m->runs[run].end_ns)
			break;
		if (m->promises[turn->connection].stream == m->promises[w->promise].stream && turn->asked_ns < w->time_ns)
			return turn;
	}
	return NULL;
}

/* Whether an OS thread slept in between, or many others did. */
static bool slept(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	enum { LOOKED_AT = 64 };
	const size_t first = weft_sleep_from(m, from_ns);
	for (size_t i = first; i < m->sleep_count && m->sleeps[i].start_ns < to_ns; i++)
		if (m->sleeps[i].stream == stream || i - first == LOOKED_AT)
			return true;
	return false;
}

/* How little time lies between what a connection had read by then and what was written to the one that the walk followed last,
 * where one may have led to the other; INT64_MAX: it has not.  What was asked first after a question came belongs to it, and so
 * does what is answered first after that answer. */
static int64_t distance(const struct walk *w, uint32_t connection, int64_t read_ns)
{
	const struct weft_model *m = w->ties->model;
	const struct weft_turn *to = w->turn, *all = m->turns, *end = all + m->turn_count;
	const struct weft_turn *at = weft_turn_before(m, connection, read_ns);
	if (to->is_question) { /* whose answer was then handed on? */
		at = at ? at + 1 : &all[WEFT_FIRST(i, 0, m->turn_count, all[i].connection >= connection)];
		const bool is_next =
		    at < end && at->connection == connection && !at->is_question && at->asked_ns >= to->answered_ns;
		return is_next ? at->asked_ns - to->answered_ns : INT64_MAX;
	}
	const bool has_before = to > all && to[-1].connection == to->connection;
	const int64_t came_ns = has_before ? to[-1].answered_ns : m->promises[to->connection].start_ns;
	return at && at->is_question && at->answered_ns <= read_ns && at->asked_ns >= came_ns ? at->asked_ns - came_ns
											      : INT64_MAX;
}

/* A loop calls its handles of check, prepare and idle in each turn, whatever there is to do: they do what those who ran before in
 * that turn left for them, as Knot Resolver's answers are sent.  The end of the last such run, or of the one that fits best to
 * the turn that the walk followed; or NULL. */
static const struct moment *who_left_it(struct walk *w)
{
	enum { LOOKED_AT = 64 };
	const struct weft_model *m = w->ties->model;
	const struct weft_promise *handle = &m->promises[w->promise];
	if (handle->kind != WEFT_KIND_HANDLE)
		return NULL;
	if (!w->run_ends.count && !find_run_ends(w)) {
		give_up(w);
		return NULL;
	}
	const struct moment *ends = w->run_ends.items, *best = NULL;
	int64_t nearest_ns = INT64_MAX;
	size_t i = WEFT_FIRST(n, 0, w->run_ends.count, ends[n].time_ns > w->time_ns);
	for (unsigned looks = 0; i-- > 0 && looks < LOOKED_AT; looks++) {
		const struct weft_promise *p = &m->promises[ends[i].what];
		if (p->stream != handle->stream || p->kind == WEFT_KIND_HANDLE ||
		    weft_kind_has(p->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD))
			continue;
		if (slept(m, handle->stream, ends[i].time_ns, w->time_ns))
			break;
		const int64_t ns = w->turn ? distance(w, ends[i].what, ends[i].time_ns) : INT64_MAX;
		if (!best || ns < nearest_ns)
			best = &ends[i];
		nearest_ns = weft_min_ns(nearest_ns, ns);
		if (!w->turn)
			break;
	}
	return best;
}

/* Who woke it last since then without running it at once, as an OS thread that sends to libuv's asyncs does; or NULL. */
static const struct weft_link *last_signal(const struct walk *w, int64_t since_ns)
{
	enum { LOOKED_AT = 64 };
	const struct weft_model *m = w->ties->model;
	const uint32_t begin = w->ties->in_begin[w->promise], *in = w->ties->in;
	size_t l = WEFT_FIRST(i, begin, w->ties->in_begin[w->promise + 1], m->links[in[i]].time_ns >= w->time_ns);
	for (unsigned looks = 0; l > begin && looks < LOOKED_AT; l--, looks++) {
		const struct weft_link *link = &m->links[in[l - 1]];
		if (link->time_ns <= since_ns)
			break;
		if (link->kind == WEFT_LINK_SIGNAL && link->from != WEFT_SYSTEM && link->from != w->promise &&
		    !are_apart(m, link->from, w->promise))
			return link;
	}
	return NULL;
}

/* When the OS thread that runs it from now on slept last, but not before then. */
static int64_t awake_from(const struct walk *w, int64_t since_ns)
{
	enum { LOOKED_AT = 1000 };
	const struct weft_model *m = w->ties->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	const uint16_t stream = m->run_streams && run != WEFT_NONE ? m->run_streams[run] : m->promises[w->promise].stream;
	size_t at = weft_sleep_from(m, w->time_ns);
	for (unsigned looks = 0; at > 0 && looks < LOOKED_AT; at--, looks++)
		if (m->sleeps[at - 1].stream == stream)
			return weft_max_ns(weft_min_ns(m->sleeps[at - 1].end_ns, w->time_ns), since_ns);
	return since_ns;
}

static void began(struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	int64_t created_ns = is_simplified(w, w->promise) ? INT64_MIN : m->promises[w->promise].start_ns;
	uint32_t before = weft_run_before(m, w->promise, w->time_ns);
	const struct weft_link *read = first_read(w);
	int64_t active_ns = before != WEFT_NONE ? weft_max_ns(m->runs[before].end_ns, created_ns) : created_ns;
	if (read) {
		int64_t ended_ns = w->ties->ended_ns[read->to];
		bool was_ready = ended_ns != WEFT_NEVER && ended_ns <= w->time_ns;
		uint32_t input = w->ties->now[read->to];
		bool goes_to_input = was_ready && ended_ns >= active_ns;
		step(w, was_ready ? WEFT_STEP_READY : WEFT_STEP_WAITING, w->promise,
		    was_ready ? weft_max_ns(ended_ns, active_ns) : active_ns,
		    goes_to_input         ? ENDED
		    : before != WEFT_NONE ? ACTS
					  : CREATED);
		if (w->mode == ENDED)
			go(w, input, ENDED);
		return;
	}
	const int64_t over_ns = w->ties->ended_ns[w->promise];
	if (over_ns < w->time_ns && over_ns > active_ns) {
		step(w, WEFT_STEP_READY, w->promise, over_ns, ENDED); /* it runs since it has ended: it was closed */
		return;
	}
	const struct weft_link *signal = link_at(w, WEFT_LINK_SIGNAL, true);
	if (signal && signal->from == WEFT_SYSTEM && before == WEFT_NONE && sender(w) != WEFT_NONE) {
		step(w, WEFT_STEP_READY, w->promise, created_ns, CREATED); /* it came as a message */
		return;
	}
	const bool is_local = signal && signal->from != WEFT_SYSTEM && !are_apart(m, signal->from, w->promise);
	const struct weft_transfer *got = is_local ? NULL : last_transfer(w, w->promise, active_ns, w->time_ns);
	if (!got && !is_local)
		got = read_in_run(w);
	if (got && w->mode != DONE) {
		follow(w, got);
		return;
	}
	const struct weft_turn *turn = is_local || w->mode == DONE ? NULL : answered_in_run(w);
	if (turn) {
		follow_turn(w, turn);
		return;
	}
	const enum weft_kind kind = (enum weft_kind)m->promises[w->promise].kind;
	if (signal && signal->from == WEFT_SYSTEM && before == WEFT_NONE &&
	    (kind == WEFT_KIND_TIMER || (created_ns > w->low_ns && weft_kind_has(kind, WEFT_TRAIT_OUTSIDE)))) {
		step(w, WEFT_STEP_WAITING, w->promise, created_ns, CREATED); /* of a timer: since it was set */
		return;
	}
	if (signal) {
		go(w, signal->from, ACTS);
		return;
	}
	if (created_ns >= w->time_ns) {
		w->mode = CREATED;
		return;
	}
	signal = last_signal(w, active_ns);
	if (signal) {
		step(w, WEFT_STEP_READY, w->promise, signal->time_ns, ACTS);
		if (w->mode == ACTS && w->time_ns == signal->time_ns)
			go(w, signal->from, ACTS);
		return;
	}
	const struct moment *left = before != WEFT_NONE ? who_left_it(w) : NULL;
	if (left && left->time_ns >= active_ns) {
		const uint32_t by = left->what;
		step(w, WEFT_STEP_READY, w->promise, left->time_ns, ACTS);
		if (w->mode == ACTS && w->time_ns == left->time_ns)
			go(w, by, ACTS);
		return;
	}
	if (w->mode == DONE)
		return;
	if (before == WEFT_NONE) {
		step(w, WEFT_STEP_WAITING, w->promise, active_ns, CREATED);
		return;
	}
	/* The promise goes on after a call that interrupted it, or the trace does not tell why it runs: who sleeps is not ready.
	 */
	const int64_t awake_ns = awake_from(w, active_ns);
	step(w, WEFT_STEP_READY, w->promise, awake_ns, ACTS);
	if (w->mode == ACTS && w->time_ns == awake_ns)
		step(w, WEFT_STEP_WAITING, WEFT_SYSTEM, active_ns, ACTS);
}

static void walk(struct walk *w)
{
	/* Under a coarse clock, many events have one time, and the walk could go round in a circle among them. */
	enum { AT_ONE_MOMENT = 10000 };
	int64_t last_ns = w->time_ns;
	for (int still = 0; w->mode != DONE && w->time_ns > w->low_ns; still++) {
		if (w->time_ns != last_ns)
			still = 0;
		last_ns = w->time_ns;
		if (still == AT_ONE_MOMENT) {
			leave(w);
			return;
		}
		switch (w->mode) {
		case ENDED: was_ended(w); break;
		case ACTS: acted(w); break;
		case BEGINS: began(w); break;
		case CREATED: was_created(w); break;
		case DONE: break;
		}
	}
}

/* Fills w->steps with the path to what a promise did, or to its end, from low_ns on; false when out of memory. */
static bool find_path_to(struct walk *w, uint32_t promise, int64_t low_ns, int64_t time_ns, enum mode mode)
{
	w->steps.count = 0;
	w->low_ns = low_ns;
	w->time_ns = time_ns;
	w->promise = w->ties->now[promise];
	w->lock = WEFT_NONE;
	w->mode = mode;
	walk(w);
	return !w->no_memory;
}

/* Of a promise that has ended. */
static bool find_path(struct walk *w, uint32_t promise)
{
	return find_path_to(w, promise, w->ties->model->promises[promise].start_ns, w->ties->ended_ns[promise], ENDED);
}

/* A stretch of a step, and who ran longest in it. */
struct window {
	int64_t from_ns, to_ns, longest_ns;
	uint32_t who;
	uint32_t stream; /* the OS thread that was waited for; WEFT_NONE: which is not known */
};

/* Who is ready waits for the OS thread on which he runs then. */
static uint32_t stream_at(const struct weft_model *m, const struct weft_path_step *s)
{
	const uint32_t run = s->kind == WEFT_STEP_READY && s->promise != WEFT_SYSTEM && m->run_streams
				 ? weft_run_before(m, s->promise, s->end_ns + 1)
				 : WEFT_NONE;
	return run != WEFT_NONE && m->runs[run].start_ns == s->end_ns ? m->run_streams[run] : WEFT_NONE;
}

/* Since when the OS thread of a step that waits for the outside slept hardly any more, for a hundredth at most; the step's end if
 * it slept until then, or if this program does not record when it sleeps. */
static int64_t awake_since(const struct weft_model *m, const struct weft_path_step *s)
{
	enum { LOOKED_AT = 10000 };
	const struct weft_promise *p = &m->promises[s->promise];
	if (s->promise == WEFT_SYSTEM || !weft_kind_has(p->kind, WEFT_TRAIT_OUTSIDE))
		return s->end_ns;
	int64_t since_ns = s->end_ns, slept_ns = 0;
	size_t at = weft_sleep_from(m, s->end_ns), left = LOOKED_AT;
	for (; at > 0 && left > 0; at--, left--) {
		const struct weft_stretch *sleep = &m->sleeps[at - 1];
		if (sleep->stream != p->stream)
			continue;
		int64_t from_ns = weft_max_ns(sleep->start_ns, s->start_ns), to_ns = weft_max_ns(sleep->end_ns, s->start_ns);
		to_ns = to_ns < s->end_ns ? to_ns : s->end_ns;
		if (slept_ns <= (s->end_ns - to_ns) / 100)
			since_ns = to_ns;
		slept_ns += to_ns - from_ns;
		if (to_ns == s->start_ns || from_ns == s->start_ns)
			break;
	}
	return since_ns;
}

/* Notes in each window that p ran there, if nobody ran longer. */
static void look_into(
    const struct weft_model *m, uint32_t p, struct window *windows, size_t count, const struct weft_path_step *steps)
{
	for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
		const struct weft_run *run = &m->runs[r];
		if (run->end_ns <= windows[0].from_ns || run->start_ns >= windows[count - 1].to_ns) /* most */
			continue;
		size_t at = WEFT_FIRST(i, 0, count, windows[i].to_ns > run->start_ns);
		for (; at < count && windows[at].from_ns < run->end_ns; at++) {
			struct window *w = &windows[at];
			const struct weft_path_step *s = &steps[at];
			int64_t from_ns = weft_max_ns(run->start_ns, w->from_ns);
			int64_t to_ns = run->end_ns < w->to_ns ? run->end_ns : w->to_ns;
			bool elsewhere = s->kind == WEFT_STEP_WAITING && m->promises[s->promise].stream != m->promises[p].stream;
			elsewhere |= w->stream != WEFT_NONE && w->stream != m->run_streams[r];
			if (s->promise == p || elsewhere || to_ns - from_ns <= w->longest_ns || are_apart(m, s->promise, p))
				continue;
			w->longest_ns = to_ns - from_ns;
			w->who = p;
		}
	}
}

/* Who ran longest in each window, in one pass over all promises.  Windows are in time order and do not overlap. */
static void look_into_all(const struct weft_ties *ties, struct window *windows, size_t count, const struct weft_path_step *steps)
{
	const struct weft_model *m = ties->model;
	for (size_t from = 0; count > 0 && from < m->promise_count; from += WEFT_TIES_BLOCK) {
		const struct weft_run *ran = &ties->ran[from / WEFT_TIES_BLOCK];
		size_t to = from + WEFT_TIES_BLOCK < m->promise_count ? from + WEFT_TIES_BLOCK : m->promise_count;
		if (ran->end_ns > windows[0].from_ns && ran->start_ns < windows[count - 1].to_ns)
			for (size_t p = from > 0 ? from : 1; p < to; p++)
				look_into(m, (uint32_t)p, windows, count, steps);
	}
}

/* Who held a lock for most of a step. */
static uint32_t find_holder(const struct weft_ties *ties, const struct weft_path_step *s)
{
	const struct weft_model *m = ties->model;
	const uint32_t *out = ties->out;
	size_t begin = ties->out_begin[s->lock], end = ties->out_begin[s->lock + 1];
	size_t l = WEFT_FIRST(i, begin, end, m->links[out[i]].time_ns > s->start_ns);
	uint32_t holder = WEFT_NONE;
	int64_t longest_ns = 0;
	for (l = l > begin ? l - 1 : l; l < end && m->links[out[l]].time_ns < s->end_ns; l++) {
		int64_t from_ns = weft_max_ns(m->links[out[l]].time_ns, s->start_ns);
		int64_t to_ns =
		    l + 1 < end && m->links[out[l + 1]].time_ns < s->end_ns ? m->links[out[l + 1]].time_ns : s->end_ns;
		if (to_ns - from_ns <= longest_ns)
			continue;
		longest_ns = to_ns - from_ns;
		holder = m->links[out[l]].to;
	}
	return holder;
}

/* Turns the walk's steps round, and says of each who was in its way.  A step that waited for the outside is cut in two where an
 * OS thread that no longer slept belonged to another promise for most of what was left. */
static bool finish_path(struct weft_path *path, const struct walk *w)
{
	const struct weft_model *m = w->ties->model;
	size_t count = w->steps.count;
	struct weft_path_step *steps = malloc((count + 1) * sizeof *steps);
	struct window *windows = malloc((count + 1) * sizeof *windows);
	path->steps = malloc((2 * count + 1) * sizeof *path->steps);
	if (!steps || !windows || !path->steps) {
		free(steps);
		free(windows);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		struct weft_path_step *s = &steps[i];
		*s = w->steps.items[count - 1 - i];
		int64_t from_ns = s->kind == WEFT_STEP_READY     ? s->start_ns
				  : s->kind == WEFT_STEP_WAITING ? awake_since(m, s)
								 : s->end_ns;
		windows[i] = (struct window){from_ns, s->end_ns, 0, WEFT_NONE, stream_at(m, s)};
		if (s->lock != WEFT_NONE)
			s->holder = find_holder(w->ties, s);
	}
	look_into_all(w->ties, windows, count, steps);
	for (size_t i = 0; i < count; i++) {
		struct weft_path_step s = steps[i];
		int64_t late_ns = s.end_ns - windows[i].from_ns;
		path->total_ns[s.kind] += s.end_ns - s.start_ns;
		bool is_late =
		    s.kind == WEFT_STEP_WAITING && windows[i].longest_ns > late_ns / 2 && late_ns > (s.end_ns - s.start_ns) / 20;
		if (is_late && windows[i].from_ns > s.start_ns) {
			path->steps[path->count] = s;
			path->steps[path->count++].end_ns = s.start_ns = windows[i].from_ns;
			s.sent_by = WEFT_NONE; /* it had come, and nobody looked */
		}
		if (s.kind == WEFT_STEP_READY || is_late)
			s.behind = windows[i].who;
		path->steps[path->count++] = s;
	}
	free(steps);
	free(windows);
	return true;
}

int weft_path_create_with(struct weft_path **out, const struct weft_ties *ties, uint32_t promise, struct weft_error *err)
{
	struct walk w = {.ties = ties, .sent_by = WEFT_NONE, .connection = WEFT_NONE};
	if (promise == WEFT_SYSTEM || promise >= ties->model->promise_count)
		return weft_error_set(err, WEFT_ENOTFOUND, "no such promise");
	if (ties->ended_ns[promise] == WEFT_NEVER)
		return weft_error_set(err, WEFT_ENOTFOUND, "the promise has not ended");
	struct weft_path *path = calloc(1, sizeof *path);
	bool ok = path && find_ends_of_messages(&w) && find_path(&w, promise) && finish_path(path, &w);
	free_walk(&w);
	if (!ok) {
		free(path);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = path;
	return WEFT_OK;
}

int weft_path_create_to_deed(struct weft_path **out, const struct weft_ties *ties, uint32_t promise, int64_t from_ns,
    int64_t to_ns, struct weft_error *err)
{
	struct walk w = {.ties = ties, .sent_by = WEFT_NONE, .connection = WEFT_NONE};
	struct weft_path *path = calloc(1, sizeof *path);
	bool ok = path && find_ends_of_messages(&w) && find_path_to(&w, promise, from_ns, to_ns, ACTS) && finish_path(path, &w);
	free_walk(&w);
	if (!ok) {
		free(path);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = path;
	return WEFT_OK;
}

int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err)
{
	struct weft_ties ties;
	if (weft_ties_init(&ties, model, WEFT_TIES_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	int status = weft_path_create_with(out, &ties, promise, err);
	weft_ties_finish(&ties);
	return status;
}

uint32_t weft_step_cause(const struct weft_path_step *s)
{
	return s->holder != WEFT_NONE       ? s->holder
	       : s->behind != WEFT_NONE     ? s->behind
	       : s->connection != WEFT_NONE ? s->connection
					    : s->promise;
}

void weft_path_destroy(struct weft_path *path)
{
	if (path)
		free(path->steps);
	free(path);
}

const char *weft_step_name(enum weft_step_kind kind)
{
	static const char *const names[] = {WEFT_STEPS(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, kind);
}

/* ---- Blame ---- */

struct counting {
	struct walk walk;
	struct weft_idmap rows; /* from row_key() to an index in blames */
	WEFT_VEC(struct weft_blame) blames;
	size_t promises;
	int64_t sum_ns;
};

/* Promises share a row if they have the same first label, or, without a label, the same place, or, without a place, the same
 * kind. */
static int64_t row_key(const struct weft_model *m, const struct weft_path_step *s)
{
	uint32_t label = weft_first_label(m, s->promise), site = m->promises[s->promise].site;
	uint64_t of = label != WEFT_NONE  ? (uint64_t)label << 2 | 1
		      : site != WEFT_NONE ? (uint64_t)site << 2 | 2
					  : (uint64_t)m->promises[s->promise].kind << 2;
	return (int64_t)(of << 2 | (uint64_t)s->kind);
}

static bool count_path(struct counting *c, uint32_t promise)
{
	const struct weft_model *m = c->walk.ties->model;
	if (!find_path(&c->walk, promise))
		return false;
	c->promises++;
	for (size_t i = 0; i < c->walk.steps.count; i++) {
		const struct weft_path_step *s = &c->walk.steps.items[i];
		int64_t key = row_key(m, s);
		uint32_t row = weft_idmap_get(&c->rows, key);
		if (row == WEFT_IDMAP_NONE) {
			row = (uint32_t)c->blames.count;
			struct weft_blame *added = weft_vec_push(&c->blames);
			if (!added || !weft_idmap_set(&c->rows, key, row))
				return false;
			*added = (struct weft_blame){.kind = s->kind, .promise = s->promise};
		}
		struct weft_blame *blame = &c->blames.items[row];
		blame->sum_ns += s->end_ns - s->start_ns;
		if (s->kind == WEFT_STEP_RUNNING)
			blame->off_ns += weft_kernel_promise_off_ns(m, s->promise, s->start_ns, s->end_ns);
		blame->paths += blame->last != c->promises;
		blame->last = c->promises;
		c->sum_ns += s->end_ns - s->start_ns;
	}
	return true;
}

static int compare_blames(const void *a, const void *b)
{
	const struct weft_blame *x = a, *y = b;
	return WEFT_ORDER(y->sum_ns, x->sum_ns) ?: WEFT_ORDER(x->kind, y->kind) ?: WEFT_ORDER(x->promise, y->promise);
}

int weft_blames_create(struct weft_blames **out, const struct weft_model *model, struct weft_str label, struct weft_error *err)
{
	struct weft_ties ties;
	struct counting c = {.walk = {.ties = &ties, .sent_by = WEFT_NONE, .connection = WEFT_NONE}};
	if (weft_ties_init(&ties, model, WEFT_TIES_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	bool ok = find_ends_of_messages(&c.walk);
	uint32_t last = WEFT_NONE;
	bool last_is = false;
	for (uint32_t p = 1; ok && p < model->promise_count; p++) {
		uint32_t text = weft_first_label(model, p);
		if (text == WEFT_NONE || ties.ended_ns[p] == WEFT_NEVER)
			continue;
		if (text != last) {
			struct weft_str str = weft_model_text(model, text);
			last = text;
			last_is = str.len == label.len && memcmp(str.ptr, label.ptr, label.len) == 0;
		}
		ok = !last_is || count_path(&c, p);
	}
	struct weft_blames *blames = ok ? malloc(sizeof *blames) : NULL;
	weft_ties_finish(&ties);
	weft_idmap_finish(&c.rows);
	free_walk(&c.walk);
	if (!blames || c.promises == 0) {
		weft_vec_free(&c.blames);
		free(blames);
		return blames ? weft_error_set(err, WEFT_ENOTFOUND, "no promise of that label has ended")
			      : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	weft_sort(c.blames.items, c.blames.count, sizeof *c.blames.items, compare_blames);
	*blames = (struct weft_blames){c.blames.items, c.blames.count, c.promises, c.sum_ns};
	*out = blames;
	return WEFT_OK;
}

void weft_blames_destroy(struct weft_blames *blames)
{
	if (blames)
		free(blames->blames);
	free(blames);
}
