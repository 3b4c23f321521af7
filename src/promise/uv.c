/* uv.c: promises on a libuv loop.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <signal.h>

struct timer {
	struct weft__thing thing;
	uv_timer_t handle;
	struct weft_resolver *resolver;
	bool fails;
};

/* ---- Things ---- */

void weft__thing_add(struct weft_uv *uv, struct weft__thing *thing, void (*end)(struct weft__thing *thing))
{
	thing->uv = uv;
	thing->end = end;
	thing->next = uv->things;
	thing->back = &uv->things;
	if (thing->next)
		thing->next->back = &thing->next;
	uv->things = thing;
	uv->open++;
}

void weft__thing_remove(struct weft__thing *thing)
{
	if (!thing->back)
		return;
	*thing->back = thing->next;
	if (thing->next)
		thing->next->back = thing->back;
	thing->back = NULL;
}

void weft__thing_gone(struct weft__thing *thing)
{
	weft__thing_remove(thing);
	thing->uv->open--;
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

static const char *message_of(int status)
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
	return weft_promise_fail(status, message_of(status));
}

/* Another number whenever something was recorded. */
static weft_word events(void)
{
	return weft_is_on() ? weft__stream->next : 0;
}

void weft__uv_awake(struct weft_uv *uv)
{
	if (!uv->slept)
		return;
	uv->slept = false;
	weft_promise_resume();
	uv->seen = events();
}

void weft__uv_wakeup(struct weft_uv *uv, struct weft_resolver *resolver, int status, void *value, weft_destroy_fn *destroy)
{
	bool wakes = !uv->ending && status >= 0;
	weft__uv_awake(
	    uv); /* libuv calls back for descriptors before it runs the check handle that tells that the sleep is over */
	if (wakes)
		weft_wakeup(resolver, value, destroy);
	else if (uv->ending)
		weft_resolver_drop(resolver);
	else
		weft_wakeup_error(resolver, status, message_of(status));
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
	weft_wakeup_error(resolver, status, message_of(status));
	if (destroy)
		destroy(value);
	return p;
}

/* ---- The loop ---- */

static void stay_awake(uv_idle_t *handle)
{
}

static void spin_ends(struct weft_uv *uv)
{
	uv->turns = uv->eventful = 0;
	if (!uv->spin)
		return;
	if (uv->spin_end)
		weft_wakeup(uv->spin_end, NULL, NULL);
	weft_promise_unref(uv->spin);
	uv->spin = NULL;
}

static void look_for_idle(uv_handle_t *handle, void *found)
{
	*(bool *)found |= handle->type == UV_IDLE && uv_is_active(handle);
}

/* The loop's own idle handle is not active. */
static void tell_spin(struct weft_uv *uv)
{
	if (!uv->spin) {
		bool has_idle = false;
		uv_walk(uv->loop, look_for_idle, &has_idle);
		const char *label = has_idle ? "uv_run beside an idle handle" : "uv_run";
		uv->spin = weft__make(NULL, WEFT_KIND_LOOP, false, label, true, &uv->spin_end);
	}
	if (uv->spin_end)
		weft_spins(weft_promise_id(uv->spin), uv->turns);
	uv->seen = events(); /* what is told here is nothing that happened */
}

/* Whether this turn is one of many in which the loop does not sleep and nothing happens: that is told by their number, as
 * adapters/hook does, so that a ring keeps what led to it. */
static bool spins(struct weft_uv *uv)
{
	enum { TOLD = 64, LEAST = 1024 };
	bool is_empty = uv->seen == events();
	if (!is_empty && uv->turns == 0) /* so it is in most programs, and costs little */
		return false;
	if (!weft_is_on() || uv_backend_timeout(uv->loop) != 0) {
		spin_ends(uv);
		return false;
	}
	uv->turns++;
	uv->eventful += !is_empty;
	if (!is_empty || uv->turns <= TOLD)
		return false;
	if (uv->turns >= LEAST && (uv->turns & (uv->turns - 1)) == 0 && uv->turns / TOLD >= uv->eventful)
		tell_spin(uv);
	return true;
}

static void before_sleep(uv_prepare_t *handle)
{
	struct weft_uv *uv = handle->data;
	weft_promise_wakeup_paused();
	bool pauses = weft_promise_paused_count() > 0;
	if (!pauses)
		uv_idle_stop(&uv->idle);
	/* uv_backend_timeout() is 0 too whenever something new is to be watched, and then the loop sleeps.  So what seems to spin
	 * is kept awake for this turn, after which that is watched. */
	bool spinning = !pauses && spins(uv);
	uv->slept = !pauses && !spinning;
	if (uv->slept) {
		weft_promise_idle(WEFT_IDLE_WAIT);
		return;
	}
	uv_idle_start(&uv->idle, stay_awake);
	weft__round();
	if (spinning)
		uv->seen = events();
}

static void after_sleep(uv_check_t *handle)
{
	struct weft_uv *uv = handle->data;
	if (uv->slept)
		weft__uv_awake(uv);
	else if (weft_promise_paused_count() == 0)
		uv_idle_stop(&uv->idle);
}

/* A write to a peer that has gone would kill the program by SIGPIPE; libuv leaves that to its users. */
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
	/* libuv documents that these never fail. */
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

static void closed(uv_handle_t *handle)
{
	struct weft_uv *uv = handle->data;
	uv->open--;
}

void weft_uv_destroy(struct weft_uv *uv)
{
	if (!uv)
		return;
	uv->ending = true;
	spin_ends(uv);
	uv_close((uv_handle_t *)&uv->prepare, closed);
	uv_close((uv_handle_t *)&uv->check, closed);
	uv_close((uv_handle_t *)&uv->idle, closed);
	/* Waits for what runs on the thread pool. */
	do {
		while (uv->things)
			uv->things->end(uv->things);
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

static void limit_reached(uv_timer_t *handle)
{
	struct limit *limit = handle->data;
	limit->reached = true;
}

static void limit_freed(uv_handle_t *handle)
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
		uv_timer_start(&limit->handle, limit_reached, limit_ms, 0);
		uv_unref((uv_handle_t *)&limit->handle);
	}
	while (status == WEFT_OK && weft_promise_state(p) == WEFT_PENDING) {
		if (weft_promise_paused_count() > 0)
			uv_idle_start(&uv->idle, stay_awake);
		int alive = uv_run(uv->loop, UV_RUN_ONCE);
		if (weft_promise_state(p) != WEFT_PENDING)
			break;
		if (limit && limit->reached)
			status = WEFT_EBUSY;
		else if (!alive && weft_promise_paused_count() == 0)
			status = WEFT_ENOTFOUND;
	}
	if (limit) {
		uv->open++;
		uv_close((uv_handle_t *)&limit->handle, limit_freed);
	}
	return status;
}

/* ---- Timers ---- */

static void timer_freed(uv_handle_t *handle)
{
	struct timer *timer = handle->data;
	weft__thing_gone(&timer->thing);
	free(timer);
}

/* Returns the resolver, which is now the caller's. */
static struct weft_resolver *timer_end(struct timer *timer)
{
	weft__thing_remove(&timer->thing);
	uv_close((uv_handle_t *)&timer->handle, timer_freed);
	return timer->resolver;
}

static void timer_dropped(struct weft__thing *thing)
{
	weft_resolver_drop(timer_end((struct timer *)thing));
}

static void timer_fires(uv_timer_t *handle)
{
	struct timer *timer = handle->data;
	bool fails = timer->fails;
	struct weft_resolver *resolver = timer_end(timer);
	weft__uv_wakeup(timer->thing.uv, resolver, fails ? WEFT_PROMISE_TIMEOUT : 0, NULL, NULL);
}

static void timer_cancelled(void *ctx)
{
	weft_resolver_drop(timer_end(ctx));
}

static struct weft_promise *timer_start(
    struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, const char *label, bool fails)
{
	struct timer *timer = malloc(sizeof *timer);
	if (!timer)
		return weft__uv_failed(WEFT_PROMISE_ENOMEM);
	struct weft_promise *p = weft__uv_promise(site, WEFT_KIND_TIMER, label, timer_cancelled, timer, &timer->resolver);
	if (!timer->resolver) {
		free(timer);
		return p;
	}
	timer->fails = fails;
	weft__thing_add(uv, &timer->thing, timer_dropped);
	uv_timer_init(uv->loop, &timer->handle);
	timer->handle.data = timer;
	uv_update_time(uv->loop);
	uv_timer_start(&timer->handle, timer_fires, ms, 0);
	return p;
}

struct weft_promise *weft__uv_sleep(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return timer_start(site, uv, ms, "sleep", false);
}

struct weft_promise *weft__uv_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return timer_start(site, uv, ms, "timeout", true);
}

struct weft_promise *weft__uv_with_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, struct weft_promise *p)
{
	struct weft_promise *either[2] = {weft__uv_timeout(site, uv, ms), p};
	return weft__choose(site, WEFT_KIND_PICK, either, 2);
}
