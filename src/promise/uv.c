/* uv.c: runs promises on a libuv loop.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <signal.h>

struct timer {
	struct weft__uv_object object;
	uv_timer_t handle;
	struct weft_resolver *resolver;
	bool fails;
};

/* ---- Objects ---- */

void weft__uv_object_add(struct weft_uv *uv, struct weft__uv_object *object, void (*end)(struct weft__uv_object *object))
{
	object->uv = uv;
	object->end = end;
	object->next = uv->objects;
	object->back = &uv->objects;
	if (object->next)
		object->next->back = &object->next;
	uv->objects = object;
	uv->open++;
}

void weft__uv_object_unlist(struct weft__uv_object *object)
{
	if (!object->back)
		return;
	*object->back = object->next;
	if (object->next)
		object->next->back = object->back;
	object->back = NULL;
}

void weft__uv_object_closed(struct weft__uv_object *object)
{
	weft__uv_object_unlist(object);
	object->uv->open--;
}

struct weft_promise *weft__uv_promise(struct weft_record_site *site, enum weft_kind kind, const char *label,
    weft_on_end_fn *cancelled, void *ctx, struct weft_resolver **resolver)
{
	struct weft_promise *p = weft__make(site, kind, true, label, false, resolver);
	if (!*resolver || weft_resolver_on_cancel(*resolver, cancelled, ctx) == WEFT_OK)
		return p;
	weft_wakeup_error(*resolver, WEFT_PROMISE_ENOMEM, "out of memory");
	*resolver = NULL;
	return p;
}

static const char *error_message(int status)
{
	switch (status) {
	case WEFT_PROMISE_ENOMEM: return "out of memory";
	case WEFT_PROMISE_TIMEOUT: return "timeout";
	case WEFT_PROMISE_CLOSED: return "closed";
	default: return uv_strerror(status);
	}
}

struct weft_promise *weft__uv_failed(int status)
{
	return weft_promise_fail(status, error_message(status));
}

/* Returns a number that changes whenever an event is recorded. */
static weft_word get_recorded_position(void)
{
	return weft_is_on() ? weft__stream->next : 0;
}

void weft__uv_note_awake(struct weft_uv *uv)
{
	if (!uv->slept)
		return;
	uv->slept = false;
	weft_promise_resume();
	uv->recorded_position = get_recorded_position();
}

void weft__uv_wakeup(struct weft_uv *uv, struct weft_resolver *resolver, int status, void *value, weft_destroy_fn *destroy)
{
	bool wakes = !uv->ending && status >= 0;
	weft__uv_note_awake(
	    uv); /* libuv calls back for descriptors before the check handle, which records the end of the sleep */
	if (wakes)
		weft_wakeup(resolver, value, destroy);
	else if (uv->ending)
		weft_resolver_drop(resolver);
	else
		weft_wakeup_error(resolver, status, error_message(status));
	if (!wakes && destroy)
		destroy(value);
}

struct weft_promise *weft__uv_ended(
    struct weft_record_site *site, enum weft_kind kind, int status, void *value, weft_destroy_fn *destroy)
{
	struct weft_resolver *resolver;
	struct weft_promise *p = weft__make(site, kind, false, NULL, true, &resolver);
	if (status >= 0) {
		weft_wakeup(resolver, value, destroy);
		return p;
	}
	weft_wakeup_error(resolver, status, error_message(status));
	if (destroy)
		destroy(value);
	return p;
}

/* ---- The loop ---- */

static void stay_awake(uv_idle_t *handle)
{
}

static void end_spin(struct weft_uv *uv)
{
	uv->turns = uv->eventful_turns = 0;
	if (!uv->spin)
		return;
	if (uv->spin_end)
		weft_wakeup(uv->spin_end, NULL, NULL);
	weft_promise_unref(uv->spin);
	uv->spin = NULL;
}

static void find_active_idle(uv_handle_t *handle, void *found)
{
	*(bool *)found |= handle->type == UV_IDLE && uv_is_active(handle);
}

/* Records that the loop spins, if a handle of the program keeps it awake; the idle handle of this file is then not active. */
static void record_spin(struct weft_uv *uv)
{
	if (!uv->spin) {
		bool has_idle = false;
		uv_walk(uv->loop, find_active_idle, &has_idle);
		const char *label = has_idle ? "uv_run beside an idle handle" : "uv_run";
		uv->spin = weft__make(NULL, WEFT_KIND_LOOP, false, label, true, &uv->spin_end);
	}
	if (uv->spin_end)
		weft_spins(weft_promise_id(uv->spin), uv->turns);
	uv->recorded_position = get_recorded_position(); /* the events recorded in this function do not count as activity */
}

/* Returns whether this iteration is one of many without sleep and without events.  Such iterations are recorded as a count, as
 * in adapters/hook, so that a ring keeps earlier events. */
static bool is_spinning(struct weft_uv *uv)
{
	enum { RECORDED_TURNS = 64, MIN_COUNTED_TURNS = 1024 };
	bool is_empty = uv->recorded_position == get_recorded_position();
	if (!is_empty && uv->turns == 0) /* this case is the usual one, which must be cheap */
		return false;
	if (!weft_is_on() || uv_backend_timeout(uv->loop) != 0) {
		end_spin(uv);
		return false;
	}
	uv->turns++;
	uv->eventful_turns += !is_empty;
	if (!is_empty || uv->turns <= RECORDED_TURNS)
		return false;
	if (uv->turns >= MIN_COUNTED_TURNS && (uv->turns & (uv->turns - 1)) == 0 &&
	    uv->turns / RECORDED_TURNS >= uv->eventful_turns)
		record_spin(uv);
	return true;
}

static void before_sleep(uv_prepare_t *handle)
{
	struct weft_uv *uv = handle->data;
	weft_promise_wakeup_paused();
	bool pauses = weft_promise_paused_count() > 0;
	if (!pauses)
		uv_idle_stop(&uv->idle);
	/* uv_backend_timeout() also returns 0 if a new handle must be watched, and then the loop sleeps.  So a loop that seems
	 * to spin is kept awake for this iteration, after which the handle is watched. */
	bool spinning = !pauses && is_spinning(uv);
	uv->slept = !pauses && !spinning;
	if (uv->slept) {
		weft_promise_idle(WEFT_IDLE_WAIT);
		return;
	}
	uv_idle_start(&uv->idle, stay_awake);
	weft__round();
	if (spinning)
		uv->recorded_position = get_recorded_position();
}

static void after_sleep(uv_check_t *handle)
{
	struct weft_uv *uv = handle->data;
	if (uv->slept)
		weft__uv_note_awake(uv);
	else if (weft_promise_paused_count() == 0)
		uv_idle_stop(&uv->idle);
}

/* Ignores SIGPIPE, because a write to a closed connection would kill the program, which libuv does not prevent. */
static void ignore_sigpipe(void)
{
	struct sigaction now;
	if (sigaction(SIGPIPE, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

struct weft_uv *weft_uv_create(uv_loop_t *loop)
{
	struct weft_uv *uv = calloc(1, sizeof *uv);
	if (!uv)
		return NULL;
	if (!loop && uv_loop_init(&uv->own) != 0) {
		free(uv);
		return NULL;
	}
	ignore_sigpipe();
	uv->loop = loop ? loop : &uv->own;
	/* libuv documents that these functions never fail. */
	uv_prepare_init(uv->loop, &uv->prepare);
	uv_check_init(uv->loop, &uv->check);
	uv_idle_init(uv->loop, &uv->idle);
	uv->prepare.data = uv->check.data = uv->idle.data = uv;
	uv->open = 3;
	uv_prepare_start(&uv->prepare, before_sleep);
	uv_check_start(&uv->check, after_sleep);
	uv_unref((uv_handle_t *)&uv->prepare);
	uv_unref((uv_handle_t *)&uv->check);
	return uv;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct weft_uv *uv = handle->data;
	uv->open--;
}

void weft_uv_destroy(struct weft_uv *uv)
{
	if (!uv)
		return;
	uv->ending = true;
	end_spin(uv);
	uv_close((uv_handle_t *)&uv->prepare, on_handle_closed);
	uv_close((uv_handle_t *)&uv->check, on_handle_closed);
	uv_close((uv_handle_t *)&uv->idle, on_handle_closed);
	/* The loop runs until the jobs on the thread pool have ended. */
	do {
		while (uv->objects)
			uv->objects->end(uv->objects);
		uv_run(uv->loop, UV_RUN_ONCE);
	} while (uv->open > 0);
	if (uv->loop == &uv->own)
		uv_loop_close(&uv->own);
	free(uv);
}

uv_loop_t *weft_uv_loop(struct weft_uv *uv)
{
	return uv->loop;
}

struct limit {
	uv_timer_t handle;
	struct weft_uv *uv;
	bool reached;
};

static void on_limit_reached(uv_timer_t *handle)
{
	struct limit *limit = handle->data;
	limit->reached = true;
}

static void free_limit(uv_handle_t *handle)
{
	struct limit *limit = handle->data;
	limit->uv->open--;
	free(limit);
}

int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms)
{
	int status = WEFT_OK;
	struct limit *limit = NULL;
	if (limit_ms > 0 && !(limit = calloc(1, sizeof *limit)))
		return WEFT_ENOMEM;
	if (limit) {
		limit->uv = uv;
		uv_timer_init(uv->loop, &limit->handle);
		limit->handle.data = limit;
		uv_update_time(uv->loop);
		uv_timer_start(&limit->handle, on_limit_reached, limit_ms, 0);
		uv_unref((uv_handle_t *)&limit->handle);
	}
	if (limit_ms == 0 && weft__is_pending(p))
		weft_promise_should_resolve(p);
	while (status == WEFT_OK && weft__is_pending(p)) {
		if (weft_promise_paused_count() > 0)
			uv_idle_start(&uv->idle, stay_awake);
		int alive = uv_run(uv->loop, UV_RUN_ONCE);
		if (!weft__is_pending(p))
			break;
		if (limit && limit->reached)
			status = WEFT_EBUSY;
		else if (!alive && weft_promise_paused_count() == 0)
			status = WEFT_ENOTFOUND;
	}
	if (limit) {
		uv->open++;
		uv_close((uv_handle_t *)&limit->handle, free_limit);
	}
	return status;
}

/* ---- Timers ---- */

static void free_timer(uv_handle_t *handle)
{
	struct timer *timer = handle->data;
	weft__uv_object_closed(&timer->object);
	free(timer);
}

/* Closes the timer, and returns its resolver, which the caller then owns. */
static struct weft_resolver *close_timer(struct timer *timer)
{
	weft__uv_object_unlist(&timer->object);
	uv_close((uv_handle_t *)&timer->handle, free_timer);
	return timer->resolver;
}

static void drop_timer(struct weft__uv_object *object)
{
	weft_resolver_drop(close_timer((struct timer *)object));
}

static void on_timer(uv_timer_t *handle)
{
	struct timer *timer = handle->data;
	bool fails = timer->fails;
	struct weft_resolver *resolver = close_timer(timer);
	weft__uv_wakeup(timer->object.uv, resolver, fails ? WEFT_PROMISE_TIMEOUT : 0, NULL, NULL);
}

static void cancel_timer(void *ctx)
{
	weft_resolver_drop(close_timer(ctx));
}

static struct weft_promise *start_timer(
    struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, const char *label, bool fails)
{
	struct timer *timer = malloc(sizeof *timer);
	if (!timer)
		return weft__uv_failed(WEFT_PROMISE_ENOMEM);
	struct weft_promise *p = weft__uv_promise(site, WEFT_KIND_TIMER, label, cancel_timer, timer, &timer->resolver);
	if (!timer->resolver) {
		free(timer);
		return p;
	}
	timer->fails = fails;
	weft__uv_object_add(uv, &timer->object, drop_timer);
	uv_timer_init(uv->loop, &timer->handle);
	timer->handle.data = timer;
	uv_update_time(uv->loop);
	uv_timer_start(&timer->handle, on_timer, ms, 0);
	return p;
}

struct weft_promise *weft__uv_sleep(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return start_timer(site, uv, ms, "sleep", false);
}

struct weft_promise *weft__uv_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return start_timer(site, uv, ms, "timeout", true);
}

struct weft_promise *weft__uv_with_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, struct weft_promise *p)
{
	struct weft_promise *either[2] = {weft__uv_timeout(site, uv, ms), p};
	return weft__choose(site, WEFT_KIND_PICK, either, 2);
}
