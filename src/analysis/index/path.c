/* path.c: finds the critical path to the end of a promise by a walk backwards in time to its creation.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/path.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/activation.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/kernel.h"

/* The position of the walk is a time and a promise.  The mode says what the promise does at that time. */
enum mode {
	ENDED,    /* the promise ends */
	ACTING,   /* the promise runs, or acts on another promise */
	STARTING, /* the promise starts to run */
	CREATED,  /* the promise is created */
	DONE      /* the walk is complete */
};

typedef WEFT_VEC(struct weft_path_step) step_vec;

struct walk {
	const struct weft_link_index *link_index;
	int64_t low_ns, time_ns;
	uint32_t promise;
	enum mode mode;
	/* the lock for which the promise `waiter` waited from lock_ns to the current position of the walk; or WEFT_NONE */
	uint32_t lock, waiter;
	int64_t lock_ns;
	uint32_t sent_by, connection; /* values that are copied to each step that the walk adds; or WEFT_NONE */
	bool is_asked;
	/* a worker thread that answered a request, and this request, whose run on the thread the walk follows; or WEFT_NONE */
	uint32_t answerer, answered;
	const struct weft_request *request; /* the request that the walk followed last, or NULL */
	struct weft_accounts *accounts;
	struct weft__activations *activations;
	step_vec steps; /* the steps of the path in reverse order of time */
	bool no_memory;
};

static void fail_walk(struct walk *w)
{
	w->no_memory = true;
	w->mode = DONE;
}

/* Adds a step from start_ns to the walk's current time, and moves the walk to start_ns. */
static void append_step(struct walk *w, enum weft_step_kind kind, uint32_t promise, int64_t start_ns)
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
			fail_walk(w);
			return;
		}
		*added = (struct weft_path_step){.start_ns = start_ns,
		    .end_ns = w->time_ns,
		    .promise = promise,
		    .delayed_by = WEFT_NONE,
		    .lock = w->lock,
		    .holder = WEFT_NONE,
		    .sent_by = w->sent_by,
		    .connection = w->connection,
		    .kind = kind,
		    .is_asked = w->is_asked};
	}
	w->time_ns = start_ns;
}

/* Adds a step from start_ns to the walk's current time, moves the walk to start_ns, and sets its mode.  Steps of the lock's
 * holder before the waiter began to wait did not delay the waiter: when the walk comes to that time, it returns to the
 * waiter. */
static void step_back(struct walk *w, enum weft_step_kind kind, uint32_t promise, int64_t start_ns, enum mode next)
{
	start_ns = weft_max_ns(start_ns, w->low_ns);
	w->mode = next;
	if (w->lock != WEFT_NONE && start_ns <= w->lock_ns) {
		append_step(w, kind, promise, w->lock_ns);
		w->lock = WEFT_NONE;
		w->promise = w->waiter;
		w->mode = w->mode == DONE ? DONE : ACTING;
		return;
	}
	append_step(w, kind, promise, start_ns);
}

/* Adds a step like step_back(), in which a message of another process was in transit. */
static void step_back_in_transit(struct walk *w, uint32_t sent_by, int64_t sent_ns, enum mode next)
{
	w->sent_by = sent_by;
	step_back(w, WEFT_STEP_WAITING, w->promise, sent_ns, next);
	w->sent_by = WEFT_NONE;
}

/* Ends the walk because the earlier causes are unknown or external. */
static void end_walk(struct walk *w)
{
	step_back(w, WEFT_STEP_WAITING, WEFT_SYSTEM, w->low_ns, DONE);
}

static void move_to(struct walk *w, uint32_t promise, enum mode mode)
{
	w->promise = promise;
	w->mode = mode;
	if (promise == WEFT_SYSTEM || promise == WEFT_NONE)
		end_walk(w);
}

/* Moves the walk to the promise that sent the bytes, and to the time at which it did. */
static void follow_transfer(struct walk *w, const struct weft_transfer *got)
{
	step_back_in_transit(w, w->link_index->final[got->by], got->sent_ns, ACTING);
	if (w->mode == ACTING && w->time_ns == got->sent_ns)
		move_to(w, w->link_index->final[got->by], ACTING);
}

/* Returns the datagram from another process for which the promise was created, or NULL. */
static const struct weft_transfer *find_first_transfer(const struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	const struct weft_transfer *all = m->transfers;
	const size_t first = WEFT_FIND_FIRST(i, 0, m->transfer_count, all[i].to >= w->promise);
	const bool is_its = first < m->transfer_count && all[first].to == w->promise && all[first].sent_ns <= w->time_ns;
	return is_its && weft__are_apart(m, all[first].by, w->promise) ? &all[first] : NULL;
}

static void step_creation(struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	uint32_t sent = weft__sender_of(w->activations, w->promise);
	const struct weft_transfer *datagram = sent == WEFT_NONE ? find_first_transfer(w) : NULL;
	if (datagram) {
		follow_transfer(w, datagram);
		return;
	}
	if (sent == WEFT_NONE) {
		move_to(w, m->promises[w->promise].created_by, ACTING);
		return;
	}
	step_back_in_transit(w, sent, m->promises[sent].start_ns, CREATED);
	if (w->mode == CREATED)
		move_to(w, sent, CREATED);
}

static enum mode get_first_mode(const struct walk *w)
{
	return weft__is_simplified(w->link_index->model, w->promise) ? STARTING : CREATED;
}

/* Notes the lock that the promise awaited, if any: the promise had to wait for the holders of that lock. */
static void note_lock(struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	for (uint32_t i = w->link_index->out_begin[w->promise];
	     w->lock == WEFT_NONE && i < w->link_index->out_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->link_index->out[i]];
		if (link->kind != WEFT_LINK_AWAIT || !weft_kind_has(m->promises[link->to].kind, WEFT_TRAIT_LOCK) ||
		    link->time_ns >= w->time_ns)
			continue;
		w->lock = link->to;
		w->waiter = w->promise;
		w->lock_ns = weft_max_ns(link->time_ns, w->low_ns);
	}
}

/* Returns whether the promise only stands for the program's event loop, as in traces of mirage: neither its creation nor the
 * cause of its run is known.  Promises that a placeholder of the loop resolves count as resolved from outside. */
static bool is_loop_placeholder(const struct walk *w, uint32_t promise)
{
	const struct weft_model *m = w->link_index->model;
	uint32_t run = weft_run_before(m, promise, w->time_ns + 1);
	if (m->promises[promise].kind != WEFT_KIND_PREEXISTING || run == WEFT_NONE)
		return false;
	const int64_t start_ns = m->runs[run].start_ns;
	return !weft__first_read(w->link_index, promise, start_ns) &&
	       !weft__link_at(w->link_index, promise, start_ns, WEFT_LINK_SIGNAL, true);
}

/* Moves the walk to the write of the request whose answer came at the current time. */
static void follow_request(struct walk *w, const struct weft_request *request)
{
	const bool is_last = request->last_ns < w->time_ns;
	const int64_t written_ns = is_last ? request->last_ns : request->asked_ns;
	w->connection = request->connection;
	w->is_asked = request->is_question;
	step_back(w, WEFT_STEP_WAITING, w->promise, written_ns, ACTING);
	w->connection = WEFT_NONE;
	w->is_asked = false;
	w->request = request;
	if (w->mode == ACTING && w->time_ns == written_ns)
		move_to(w, w->link_index->final[is_last ? request->last_by : request->by], ACTING);
}

/* Returns whether a third promise ended the awaited read, as when its connection is closed: then the read does not explain why
 * its creator ended. */
static bool was_abandoned(const struct walk *w, uint32_t awaited)
{
	const struct weft_model *m = w->link_index->model;
	if (m->promises[awaited].created_by != w->promise || m->promises[awaited].kind != WEFT_KIND_STREAM_READ)
		return false;
	for (uint32_t i = w->link_index->in_begin[awaited]; i < w->link_index->in_begin[awaited + 1]; i++) {
		const struct weft_link *link = &m->links[w->link_index->in[i]];
		if (link->kind == WEFT_LINK_RESOLVE && link->to == awaited)
			return link->from != WEFT_SYSTEM && link->from != w->promise;
	}
	return false;
}

/* Returns the awaited promise that ended last after the last run of the walk's promise; or WEFT_NONE.  If the walk's promise
 * then resolves itself, it does so because of that awaited promise. */
static uint32_t find_last_awaited(const struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns + 1);
	int64_t since_ns = run == WEFT_NONE ? INT64_MIN : m->runs[run].end_ns;
	uint32_t last = WEFT_NONE;
	for (uint32_t i = w->link_index->out_begin[w->promise]; i < w->link_index->out_begin[w->promise + 1]; i++) {
		const struct weft_link *link = &m->links[w->link_index->out[i]];
		const uint32_t awaited = w->link_index->final[link->to];
		const int64_t ended_ns = w->link_index->ended_ns[awaited];
		if (link->kind != WEFT_LINK_AWAIT || ended_ns == WEFT_NEVER || ended_ns > w->time_ns || ended_ns <= since_ns ||
		    was_abandoned(w, awaited))
			continue;
		since_ns = ended_ns;
		last = awaited;
	}
	return last;
}

/* Returns whether the promise is a socket that has read a message from another process since its creation. */
static bool was_answered(const struct walk *w)
{
	const struct weft_promise *promise = &w->link_index->model->promises[w->promise];
	return weft_kind_has((enum weft_kind)promise->kind, WEFT_TRAIT_CONNECTION) &&
	       weft__last_remote_transfer(w->link_index->model, w->promise, promise->start_ns, w->time_ns);
}

/* Moves the walk to the promise that ended the current one.  The run of a worker thread that answers a request counts as a run
 * of the request, up to the answer: then the walk follows the request's run first. */
static void follow_answerer(struct walk *w, uint32_t by)
{
	const struct weft_model *m = w->link_index->model;
	const uint32_t run = weft_run_before(m, w->promise, w->time_ns), of_thread = weft_run_before(m, by, w->time_ns);
	const bool was_running = weft_kind_has((enum weft_kind)m->promises[by].kind, WEFT_TRAIT_THREAD) && run != WEFT_NONE &&
				 of_thread != WEFT_NONE && m->runs[run].end_ns == m->runs[of_thread].start_ns;
	if (!was_running) {
		move_to(w, by, ACTING);
		return;
	}
	w->answered = w->promise;
	w->answerer = by;
	step_back(w, WEFT_STEP_RUNNING, by, m->runs[run].end_ns, ACTING);
}

static void step_end(struct walk *w)
{
	uint32_t handled = weft__handler_of(w->activations, w->promise);
	if (handled != WEFT_NONE) {
		step_back_in_transit(w, handled, w->link_index->ended_ns[handled], ENDED);
		if (w->mode == ENDED)
			move_to(w, handled, ENDED);
		return;
	}
	const struct weft_link *by = weft__link_at(w->link_index, w->promise, w->time_ns, WEFT_LINK_RESOLVE, true);
	note_lock(w);
	/* A runtime ends an await itself when the awaited promise has ended. */
	const bool is_await = by && by->from == WEFT_SYSTEM && w->link_index->model->promises[w->promise].kind == WEFT_KIND_WAIT;
	const uint32_t last = (by && by->from == w->promise) || is_await ? find_last_awaited(w) : WEFT_NONE;
	if (last != WEFT_NONE) {
		step_back(w, WEFT_STEP_READY, w->promise, w->link_index->ended_ns[last], ENDED);
		if (w->mode == ENDED && w->time_ns == w->link_index->ended_ns[last])
			move_to(w, last, ENDED);
		return;
	}
	if (by && by->from != WEFT_SYSTEM && !is_loop_placeholder(w, by->from)) {
		follow_answerer(w, by->from);
		return;
	}
	const struct weft_transfer *got = weft__awaited_transfer(w->link_index, w->promise, w->time_ns);
	if (got) {
		follow_transfer(w, got);
		return;
	}
	const struct weft_request *request = weft__awaited_request(w->link_index, w->promise, w->time_ns);
	if (request)
		follow_request(w, request);
	else if (was_answered(w))
		w->mode = ACTING;
	else
		step_back(
		    w, WEFT_STEP_WAITING, w->promise, w->link_index->model->promises[w->promise].start_ns, get_first_mode(w));
}

/* Returns the run of the walk's promise that lasts at least until the walk's time; if there is none, the last run that started
 * before this time.  Runs of a request may overlap, because a loop and a worker thread may run it at the same time. */
static uint32_t find_run(const struct walk *w)
{
	enum { MAX_OVERLAPPING = 8 };
	const struct weft_model *m = w->link_index->model;
	const uint32_t last = weft_run_before(m, w->promise, w->time_ns), first = m->promises[w->promise].runs;
	for (uint32_t i = 0; last != WEFT_NONE && i < MAX_OVERLAPPING && i <= last - first; i++)
		if (m->runs[last - i].end_ns >= w->time_ns)
			return last - i;
	return last;
}

static void step_action(struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	uint32_t run = find_run(w);
	if (run != WEFT_NONE && m->runs[run].end_ns >= w->time_ns) {
		step_back(w, WEFT_STEP_RUNNING, w->promise, m->runs[run].start_ns, STARTING);
		return;
	}
	uint32_t next = weft_run_before(m, w->promise, w->time_ns + 1);
	if (next != run) { /* the promise starts to run at this time */
		w->mode = STARTING;
		return;
	}
	/* The promise acted although no run of it is recorded: this program does not record which promise runs. */
	const struct weft_promise *promise = &m->promises[w->promise];
	int64_t since_ns = run != WEFT_NONE ? m->runs[run].end_ns : promise->start_ns;
	step_back(w, WEFT_STEP_WAITING, w->promise, since_ns, run != WEFT_NONE ? ACTING : get_first_mode(w));
}

/* Moves the walk to the promise, and the time, that made the current promise ready. */
static void step_ready(struct walk *w, const struct weft__activation *a, uint32_t by)
{
	step_back(w, WEFT_STEP_READY, w->promise, a->ready_ns, ACTING);
	if (w->mode == ACTING && w->time_ns == a->ready_ns)
		move_to(w, by, ACTING);
}

/* Moves the walk to the input that the run reads if the end of that input made the promise ready, or to the answer that came
 * before a write ended. */
static void step_read(struct walk *w, const struct weft__activation *a)
{
	const int64_t ended_ns = w->link_index->ended_ns[a->link->to];
	const bool was_ready = ended_ns != WEFT_NEVER && ended_ns <= w->time_ns;
	const bool goes_to_input = was_ready && ended_ns >= a->active_ns;
	const uint32_t input = w->link_index->final[a->link->to];
	const struct weft__moment *answer = goes_to_input ? weft__answer_before_end(w->activations, input) : NULL;
	if (answer) {
		step_back(w, WEFT_STEP_READY, w->promise, answer->time_ns, ACTING);
		if (w->mode == ACTING && w->time_ns == answer->time_ns)
			move_to(w, answer->index, ACTING);
		return;
	}
	step_back(w, was_ready ? WEFT_STEP_READY : WEFT_STEP_WAITING, w->promise, was_ready ? a->ready_ns : a->active_ns,
	    goes_to_input ? ENDED
	    : a->has_run  ? ACTING
			  : CREATED);
	if (w->mode == ENDED)
		move_to(w, input, ENDED);
}

/* Moves the walk to the promise whose signal makes the current promise run.  A timer waited since it was started or since its
 * last callback; another promise that is called from outside waited since its start. */
static void step_signal(struct walk *w, const struct weft__activation *a)
{
	const enum weft_kind kind = (enum weft_kind)w->link_index->model->promises[w->promise].kind;
	const bool is_outside = a->link->from == WEFT_SYSTEM, is_timer = kind == WEFT_KIND_TIMER;
	if (is_outside && (is_timer || (!a->has_run && a->active_ns > w->low_ns && weft_kind_has(kind, WEFT_TRAIT_OUTSIDE))))
		step_back(w, WEFT_STEP_WAITING, w->promise, a->active_ns, a->has_run ? ACTING : CREATED);
	else
		move_to(w, a->link->from, ACTING);
}

/* Returns the promise whose own wait delays the walk's promise if no other promise does: an OS thread may sleep by itself.  The
 * wait of another promise is unknown. */
static uint32_t find_sleeper(const struct walk *w)
{
	return weft_kind_has((enum weft_kind)w->link_index->model->promises[w->promise].kind, WEFT_TRAIT_THREAD) ? w->promise
														 : WEFT_SYSTEM;
}

/* Moves the walk from the run of an answered request to the thread that answered it, unless another run of the request ends
 * there. */
static void leave_answered(struct walk *w)
{
	const struct weft_model *m = w->link_index->model;
	const uint32_t run = find_run(w), by = w->answerer;
	if (run != WEFT_NONE && m->runs[run].end_ns >= w->time_ns) {
		w->mode = ACTING;
		return;
	}
	w->answered = w->answerer = WEFT_NONE;
	move_to(w, by, ACTING);
}

static void step_run_start(struct walk *w)
{
	if (w->answered == w->promise && w->answerer != WEFT_NONE) {
		leave_answered(w);
		return;
	}
	const struct weft__activation a = weft__activation_find(w->activations, w->promise, w->time_ns, w->request);
	switch (a.cause) {
	case WEFT__ACTIVATED_BY_READ: step_read(w, &a); break;
	case WEFT__ACTIVATED_BY_CLOSE: step_back(w, WEFT_STEP_READY, w->promise, a.ready_ns, ENDED); break;
	case WEFT__ACTIVATED_BY_MESSAGE: step_back(w, WEFT_STEP_READY, w->promise, a.ready_ns, CREATED); break;
	case WEFT__ACTIVATED_BY_TRANSFER: follow_transfer(w, a.transfer); break;
	case WEFT__ACTIVATED_BY_ANSWER: follow_request(w, a.request); break;
	case WEFT__ACTIVATED_BY_SIGNAL: step_signal(w, &a); break;
	case WEFT__ACTIVATED_BY_CREATION: w->mode = CREATED; break;
	case WEFT__ACTIVATED_BY_EARLY_SIGNAL: step_ready(w, &a, a.link->from); break;
	case WEFT__ACTIVATED_BY_RUN: step_ready(w, &a, a.by); break;
	case WEFT__ACTIVATED_FIRST: step_back(w, WEFT_STEP_WAITING, w->promise, a.active_ns, CREATED); break;
	case WEFT__ACTIVATED_AGAIN:
		step_back(w, WEFT_STEP_READY, w->promise, a.ready_ns, ACTING);
		if (w->mode == ACTING && w->time_ns == a.ready_ns)
			step_back(w, WEFT_STEP_WAITING, find_sleeper(w), a.active_ns, ACTING);
		break;
	}
}

static void run_walk(struct walk *w)
{
	/* With a coarse clock many events have the same time, and the walk could run in a cycle among them. */
	enum { MAX_STEPS_PER_MOMENT = 10000 };
	int64_t last_ns = w->time_ns;
	for (int step_count = 0; w->mode != DONE && w->time_ns > w->low_ns; step_count++) {
		if (w->time_ns != last_ns)
			step_count = 0;
		last_ns = w->time_ns;
		if (step_count == MAX_STEPS_PER_MOMENT) {
			end_walk(w);
			return;
		}
		switch (w->mode) {
		case ENDED: step_end(w); break;
		case ACTING: step_action(w); break;
		case STARTING: step_run_start(w); break;
		case CREATED: step_creation(w); break;
		case DONE: break;
		}
	}
}

static bool is_same_subject(const struct weft_path_step *a, const struct weft_path_step *b)
{
	return a->promise == b->promise && a->lock == b->lock && a->sent_by == b->sent_by && a->connection == b->connection;
}

/* Divides a step into pieces by what its promise did according to its account, and adds them in reverse order of time.  A step
 * in which bytes were in transit, or a peer did something, is not divided. */
static bool settle_step(struct walk *w, const struct weft_path_step *s, step_vec *out)
{
	const bool is_own =
	    s->promise != WEFT_SYSTEM && s->connection == WEFT_NONE && s->sent_by == WEFT_NONE && s->kind != WEFT_STEP_RUNNING;
	for (int64_t at_ns = s->end_ns, since_ns = s->start_ns; at_ns > s->start_ns; at_ns = since_ns) {
		const enum weft_step_kind kind =
		    is_own ? weft_account_state_before(w->accounts, s->promise, at_ns, &since_ns) : s->kind;
		since_ns = weft_max_ns(since_ns, s->start_ns);
		struct weft_path_step *last = out->count ? &out->items[out->count - 1] : NULL;
		if (last && last->kind == kind && is_same_subject(last, s) && last->start_ns == at_ns) {
			last->start_ns = since_ns;
			continue;
		}
		struct weft_path_step *added = weft_vec_push(out);
		if (!added)
			return false;
		*added = *s;
		added->kind = kind;
		added->start_ns = since_ns;
		added->end_ns = at_ns;
	}
	return true;
}

static bool settle_steps(struct walk *w)
{
	step_vec settled = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < w->steps.count; i++)
		ok = settle_step(w, &w->steps.items[i], &settled);
	weft_vec_free(&w->steps);
	w->steps = settled;
	return ok;
}

/* Fills w->steps with the path from low_ns to an action or the end of a promise; returns false when out of memory. */
static bool find_path_to(struct walk *w, uint32_t promise, int64_t low_ns, int64_t time_ns, enum mode mode)
{
	w->steps.count = 0;
	w->low_ns = low_ns;
	w->time_ns = time_ns;
	w->promise = w->link_index->final[promise];
	w->lock = WEFT_NONE;
	w->mode = mode;
	run_walk(w);
	return !w->no_memory && settle_steps(w) && !weft_accounts_failed(w->accounts);
}

/* Fills w->steps with the path of an ended promise; returns false when out of memory. */
static bool find_path(struct walk *w, uint32_t promise)
{
	return find_path_to(
	    w, promise, w->link_index->model->promises[promise].start_ns, w->link_index->ended_ns[promise], ENDED);
}

/* Returns whether the trace records the sleeps of the thread. */
static bool records_sleeps(const struct walk *w, uint16_t stream)
{
	const struct weft__timeline *t = weft__activations_timeline(w->activations);
	return t && t->sleep_begin[stream] < t->sleep_begin[stream + 1];
}

/* Returns since when the thread of a step that waits for the outside was awake, except for at most a hundredth of the time.
 * Returns the end of the step if the thread slept until then, or if the trace does not record its sleeps. */
static int64_t find_awake_start(const struct walk *w, const struct weft_path_step *s)
{
	enum { MAX_SCANNED = 10000 };
	const struct weft_model *m = w->link_index->model;
	const struct weft_promise *p = &m->promises[s->promise];
	if (s->promise == WEFT_SYSTEM || !weft_kind_has(p->kind, WEFT_TRAIT_OUTSIDE) || !records_sleeps(w, p->stream))
		return s->end_ns;
	int64_t since_ns = s->end_ns, slept_ns = 0;
	size_t at = weft_first_sleep_from(m, s->end_ns), left = MAX_SCANNED;
	for (; at > 0 && left > 0; at--, left--) {
		const struct weft_interval *sleep = &m->sleeps[at - 1];
		if (sleep->stream != p->stream)
			continue;
		int64_t from_ns = weft_max_ns(sleep->start_ns, s->start_ns), to_ns = weft_max_ns(sleep->end_ns, s->start_ns);
		to_ns = to_ns < s->end_ns ? to_ns : s->end_ns;
		if (slept_ns <= (s->end_ns - to_ns) / 100)
			since_ns = to_ns;
		slept_ns += to_ns - from_ns;
		if (to_ns == s->start_ns || from_ns == s->start_ns)
			return since_ns;
	}
	const bool was_awake = at == 0 && slept_ns <= (s->end_ns - s->start_ns) / 100;
	return was_awake ? s->start_ns : since_ns;
}

/* Returns whether a loop notices the end of promises of the kind only when it polls. */
static bool needs_poll(enum weft_kind kind)
{
	return kind == WEFT_KIND_STREAM_READ || kind == WEFT_KIND_FS || kind == WEFT_KIND_GETADDRINFO;
}

/* Returns a time after which the thread of the step polled without noticing the end of the step's promise; from_ns if no such
 * poll is known since then.  A read that started and ended within the interval proves that a poll took place between its start
 * and its end.  The last poll may be the poll that ended the step, so the result is the start of a read that ended before
 * another read started. */
static int64_t find_last_poll(const struct weft_model *m, const struct weft_path_step *s, int64_t from_ns)
{
	enum { MAX_SCANNED = 10000 };
	int64_t polled_ns = from_ns, last_start_ns = from_ns;
	size_t at = weft_first_link_from(m, s->end_ns);
	for (unsigned scanned = 0; at > 0 && scanned < MAX_SCANNED && m->links[at - 1].time_ns > polled_ns; at--, scanned++) {
		const struct weft_link *link = &m->links[at - 1];
		const struct weft_promise *to = &m->promises[link->to];
		if (link->kind != WEFT_LINK_RESOLVE || link->from != WEFT_SYSTEM || link->to == s->promise ||
		    link->stream != m->promises[s->promise].stream || !needs_poll(to->kind) ||
		    to->flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		if (link->time_ns <= last_start_ns)
			polled_ns = weft_max_ns(polled_ns, to->start_ns);
		last_start_ns = weft_max_ns(last_start_ns, to->start_ns);
	}
	return polled_ns;
}

/* Returns the promise that held the lock of the step for longest during the step, or WEFT_NONE. */
static uint32_t find_holder(const struct weft_link_index *link_index, const struct weft_path_step *s)
{
	const struct weft_model *m = link_index->model;
	const uint32_t *out = link_index->out;
	size_t begin = link_index->out_begin[s->lock], end = link_index->out_begin[s->lock + 1];
	size_t l = WEFT_FIND_FIRST(i, begin, end, m->links[out[i]].time_ns > s->start_ns);
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

/* Returns the stream of the thread on which the promise of a ready step runs at the end of the step, or else of the thread that
 * created the promise. */
static uint16_t get_stream_at(const struct weft_model *m, const struct weft_path_step *s)
{
	const uint32_t run =
	    s->kind == WEFT_STEP_READY && m->run_streams ? weft_run_before(m, s->promise, s->end_ns + 1) : WEFT_NONE;
	return run != WEFT_NONE && m->runs[run].start_ns == s->end_ns ? m->run_streams[run] : m->promises[s->promise].stream;
}

/* Adds a step, in order of time, together with what delayed it.  A step that waited for the outside is split in two if its
 * thread was awake at the end of the step, did not poll, and ran other promises for most of that time. */
static void add_step(struct weft_path *path, const struct walk *w, struct weft_path_step s)
{
	const struct weft_model *m = w->link_index->model;
	const int64_t from_ns = s.kind == WEFT_STEP_READY     ? s.start_ns
				: s.kind == WEFT_STEP_WAITING ? find_last_poll(m, &s, find_awake_start(w, &s))
							      : s.end_ns;
	const int64_t late_ns = s.end_ns - from_ns;
	struct weft_runner runner = {.promise = WEFT_NONE};
	if (late_ns > 0 && s.promise != WEFT_SYSTEM)
		runner = weft_account_runner(w->accounts, get_stream_at(m, &s), s.promise, from_ns, s.end_ns);
	/* Each turn of a loop reads the clock, so only a single long run makes a timer late. */
	const int64_t busy_ns = m->promises[s.promise].kind == WEFT_KIND_TIMER ? runner.ran_ns : runner.sum_ns;
	const bool is_late = s.kind == WEFT_STEP_WAITING && busy_ns > late_ns / 2 && late_ns > (s.end_ns - s.start_ns) / 20;
	path->total_ns[s.kind] += s.end_ns - s.start_ns;
	if (s.lock != WEFT_NONE)
		s.holder = find_holder(w->link_index, &s);
	if (is_late && from_ns > s.start_ns) {
		path->steps[path->count] = s;
		path->steps[path->count++].end_ns = s.start_ns = from_ns;
		s.sent_by = WEFT_NONE; /* the message had arrived, but had not been read yet */
	}
	if (s.kind == WEFT_STEP_READY)
		s.asleep_ns = weft_account_asleep_ns(w->accounts, s.promise, s.start_ns, s.end_ns);
	/* A run that is short compared with the sleep of the thread did not delay the promise. */
	if (is_late || (s.kind == WEFT_STEP_READY && s.asleep_ns <= late_ns / 2))
		s.delayed_by = runner.promise;
	s.is_behind_more = is_late && runner.ran_ns <= runner.sum_ns / 2;
	path->steps[path->count++] = s;
}

/* Puts the steps of the walk in order of time; returns false when out of memory. */
static bool finish_path(struct weft_path *path, const struct walk *w)
{
	path->steps = malloc((2 * w->steps.count + 1) * sizeof *path->steps);
	for (size_t i = w->steps.count; path->steps && i-- > 0;)
		add_step(path, w, w->steps.items[i]);
	return path->steps && !weft_accounts_failed(w->accounts);
}

/* Returns a walk that has not started yet. */
static struct walk begin_walk(const struct weft_link_index *link_index)
{
	return (struct walk){.link_index = link_index,
	    .accounts = link_index->accounts,
	    .activations = weft__account_activations(link_index->accounts),
	    .sent_by = WEFT_NONE,
	    .connection = WEFT_NONE,
	    .answered = WEFT_NONE,
	    .answerer = WEFT_NONE};
}

int weft_path_create_with_index(
    struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise, struct weft_error *err)
{
	struct walk w = begin_walk(link_index);
	if (promise == WEFT_SYSTEM || promise >= link_index->model->promise_count)
		return weft_error_set(err, WEFT_ENOTFOUND, "no such promise");
	if (link_index->ended_ns[promise] == WEFT_NEVER)
		return weft_error_set(err, WEFT_ENOTFOUND, "the promise has not ended");
	struct weft_path *path = calloc(1, sizeof *path);
	bool ok =
	    path && find_path(&w, promise) && finish_path(path, &w) && weft_account_measure_life(w.accounts, promise, &path->own);
	weft_vec_free(&w.steps);
	if (!ok) {
		weft_path_destroy(path);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = path;
	return WEFT_OK;
}

int weft_path_create_to_action(struct weft_path **out, const struct weft_link_index *link_index, uint32_t promise,
    int64_t from_ns, int64_t to_ns, struct weft_error *err)
{
	struct walk w = begin_walk(link_index);
	struct weft_path *path = calloc(1, sizeof *path);
	bool ok = path && find_path_to(&w, promise, from_ns, to_ns, ACTING) && finish_path(path, &w) &&
		  weft_account_measure_between(w.accounts, promise, from_ns, to_ns, &path->own);
	weft_vec_free(&w.steps);
	if (!ok) {
		weft_path_destroy(path);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = path;
	return WEFT_OK;
}

int weft_path_create(struct weft_path **out, const struct weft_model *model, uint32_t promise, struct weft_error *err)
{
	struct weft_link_index link_index;
	if (weft_link_index_init(&link_index, model, WEFT_LINK_INDEX_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	int status = weft_path_create_with_index(out, &link_index, promise, err);
	weft_link_index_finish(&link_index);
	return status;
}

uint32_t weft_step_cause(const struct weft_path_step *s)
{
	return s->holder != WEFT_NONE       ? s->holder
	       : s->delayed_by != WEFT_NONE ? s->delayed_by
	       : s->connection != WEFT_NONE ? s->connection
					    : s->promise;
}

void weft_path_destroy(struct weft_path *path)
{
	if (path)
		free(path->steps);
	free(path);
}

/* ---- Blame ---- */

struct blame_count {
	struct walk walk;
	struct weft_idmap rows; /* index in `blames` for the key that row_key() returns */
	WEFT_VEC(struct weft_blame) blames;
	size_t promises;
	int64_t sum_ns;
};

/* Returns a key that is equal for steps of one kind and one type of promise: the first label or, without a label, the site or,
 * without a site, the kind of the promise. */
static int64_t row_key(const struct weft_model *m, const struct weft_path_step *s)
{
	uint32_t label = weft_first_label(m, s->promise), site = m->promises[s->promise].site;
	uint64_t of = label != WEFT_NONE  ? (uint64_t)label << 2 | 1
		      : site != WEFT_NONE ? (uint64_t)site << 2 | 2
					  : (uint64_t)m->promises[s->promise].kind << 2;
	return (int64_t)(of << 2 | (uint64_t)s->kind);
}

static bool count_path(struct blame_count *c, uint32_t promise)
{
	const struct weft_model *m = c->walk.link_index->model;
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
	struct weft_link_index link_index;
	if (weft_link_index_init(&link_index, model, WEFT_LINK_INDEX_ALL, NULL) < 0)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	struct blame_count c = {.walk = begin_walk(&link_index)};
	bool ok = true;
	uint32_t last = WEFT_NONE;
	bool is_last_equal = false;
	for (uint32_t p = 1; ok && p < model->promise_count; p++) {
		uint32_t text = weft_first_label(model, p);
		if (text == WEFT_NONE || link_index.ended_ns[p] == WEFT_NEVER)
			continue;
		if (text != last) {
			struct weft_str str = weft_model_text(model, text);
			last = text;
			is_last_equal = str.len == label.len && memcmp(str.ptr, label.ptr, label.len) == 0;
		}
		ok = !is_last_equal || count_path(&c, p);
	}
	struct weft_blames *blames = ok ? malloc(sizeof *blames) : NULL;
	weft_link_index_finish(&link_index);
	weft_idmap_finish(&c.rows);
	weft_vec_free(&c.walk.steps);
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
