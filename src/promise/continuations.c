/* continuations.c: makes promises that wait for one promise.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

static void end_closure(void *ctx, weft_destroy_fn *destroy)
{
	if (destroy)
		destroy(ctx);
}

static struct weft_promise *make_awaiting(struct weft_record_site *site, struct weft_promise *p, union weft__code code, void *ctx,
    weft_destroy_fn *destroy, enum weft__react react);

/* The rare case, in which memory must grow, is a tail call, so that the frequent case needs no stack frame. */
static __attribute__((noinline)) struct weft_promise *make_awaiting_after_growing(struct weft_record_site *site,
    struct weft_promise *p, union weft__code code, void *ctx, weft_destroy_fn *destroy, enum weft__react react)
{
	if (weft__grow())
		return make_awaiting(site, p, code, ctx, destroy, react);
	end_closure(ctx, destroy);
	weft__unref(p);
	return &weft__no_memory;
}

static __attribute__((noinline)) struct weft_promise *destroy_input(struct weft_promise *p, struct weft_promise *result)
{
	weft__destroy(p);
	return result;
}

static __attribute__((always_inline)) inline struct weft_promise *unref_and_return(
    struct weft_promise *p, struct weft_promise *result)
{
	if (p->refs != WEFT__FOREVER && --p->refs == 0)
		return destroy_input(p, result);
	return result;
}

/* Makes a promise that awaits p (pending; the reference is taken over) and then calls code. */
static struct weft_promise *make_awaiting(struct weft_record_site *site, struct weft_promise *p, union weft__code code, void *ctx,
    weft_destroy_fn *destroy, enum weft__react react)
{
	if (!weft__thread_state.spare)
		return make_awaiting_after_growing(site, p, code, ctx, destroy, react);
	enum weft_kind kind = react == WEFT__REACT_MAP                                       ? WEFT_KIND_MAP
			      : react == WEFT__REACT_BIND || react == WEFT__REACT_BIND_OWNER ? WEFT_KIND_BIND
											     : WEFT_KIND_TRY;
	struct weft_promise *result = weft__make_unrecorded(site, kind, WEFT__CANCEL_ONE), *t = weft__repr(p);
	result->input = weft__weak_ref(t);
	result->react = (uint8_t)react;
	result->has_closure = true;
	result->code = code;
	result->ctx = ctx;
	result->destroy = destroy;
	weft__wait_for(result, t);
	if (WEFT__IS_RECORDING())
		weft__record_created_awaiting(result, t);
	return unref_and_return(p, result);
}

/* Binds a callback to p (whose reference is taken over); p's end t has already ended. */
static __attribute__((noinline)) struct weft_promise *bind_ended(
    struct weft_promise *t, struct weft_promise *p, weft_then_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	weft__note_read(t->id);
	struct weft_promise *result =
	    t->state == WEFT_RESOLVED ? f(ctx, weft__owner(t)->value.pointer) : weft__promise_ended_as(t);
	end_closure(ctx, destroy);
	return unref_and_return(p, weft__arg(result));
}

struct weft_promise *weft__bind(
    struct weft_record_site *site, struct weft_promise *p, weft_then_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p);
	if (t->state == WEFT_PENDING)
		return make_awaiting(site, p, (union weft__code){.then = f}, ctx, destroy, WEFT__REACT_BIND);
	return bind_ended(t, p, f, ctx, destroy);
}

struct weft_promise *weft__map(
    struct weft_record_site *site, struct weft_promise *p, weft_map_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	uint8_t state = t->state;
	if (state == WEFT_PENDING)
		return make_awaiting(site, p, (union weft__code){.map = f}, ctx, destroy, WEFT__REACT_MAP);
	weft__note_read(t->id);
	if (state == WEFT_RESOLVED) {
		struct weft_value value = f(ctx, weft__owner(t)->value.pointer);
		result = weft_promise_return(value.pointer, value.destroy);
	} else {
		result = weft__promise_ended_as(t);
	}
	end_closure(ctx, destroy);
	return unref_and_return(p, weft__arg(result));
}

struct weft_promise *weft__catch(
    struct weft_record_site *site, struct weft_promise *p, weft_rescue_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	uint8_t state = t->state;
	if (state == WEFT_PENDING)
		return make_awaiting(site, p, (union weft__code){.rescue = f}, ctx, destroy, WEFT__REACT_CATCH);
	weft__note_read(t->id);
	result = state == WEFT_FAILED ? f(ctx, &weft__owner(t)->failure) : weft__ref(t);
	end_closure(ctx, destroy);
	return unref_and_return(p, weft__arg(result));
}

struct weft_promise *weft__try_bind(struct weft_record_site *site, struct weft_promise *p, weft_then_fn *then,
    weft_rescue_fn *rescue, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	uint8_t state = t->state;
	if (state == WEFT_PENDING) {
		result = make_awaiting(site, p, (union weft__code){.then = then}, ctx, destroy, WEFT__REACT_TRY_BIND);
		if (result != &weft__no_memory)
			result->rescue = rescue;
		return result;
	}
	weft__note_read(t->id);
	if (state == WEFT_RESOLVED)
		result = then(ctx, weft__owner(t)->value.pointer);
	else
		result = rescue(ctx, &weft__owner(t)->failure);
	end_closure(ctx, destroy);
	return unref_and_return(p, weft__arg(result));
}

static struct weft_promise *end_like(void *ended, void *nothing)
{
	struct weft_promise *p = weft__promise_ended_as(ended);
	if (p != &weft__no_memory)
		p->stamp = ++weft__thread_state.stamp;
	return p;
}

static void unref_promise(void *p)
{
	weft__unref(p);
}

/* Makes a promise that ends as t did when `cleanup` is resolved. */
static struct weft_promise *after_cleanup(struct weft_promise *cleanup, struct weft_promise *t)
{
	return weft__bind(NULL, cleanup, end_like, weft__ref(t), unref_promise);
}

struct weft_promise *weft__finalize(
    struct weft_record_site *site, struct weft_promise *p, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	uint8_t state = t->state;
	if (state == WEFT_PENDING)
		return make_awaiting(site, p, (union weft__code){.start = f}, ctx, destroy, WEFT__REACT_FINALIZE);
	weft__note_read(t->id);
	result = f(ctx);
	end_closure(ctx, destroy);
	return unref_and_return(p, after_cleanup(result, t));
}

struct weft_promise *weft__bind_owner(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *t = weft__repr(p), *result;
	uint8_t state = t->state;
	if (state == WEFT_PENDING)
		return make_awaiting(site, p, (union weft__code){.with = f}, ctx, destroy, WEFT__REACT_BIND_OWNER);
	weft__note_read(t->id);
	result = f(ctx, weft__owner(t));
	end_closure(ctx, destroy);
	return unref_and_return(p, weft__arg(result));
}

struct weft_promise *weft__bind_owner_of_task(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *result = weft__bind_owner(site, weft__ref(p), f, ctx, destroy);
	if (result == &weft__no_memory)
		weft_promise_cancel(p);
	return unref_and_return(p, result);
}

/* ---- Callbacks without a result ---- */

void weft_promise_set_async_hook(weft_on_failure_fn *hook, void *ctx)
{
	weft__thread_state.hook = hook;
	weft__thread_state.hook_ctx = ctx;
}

void weft__report_lost_error(const struct weft_failure *failure)
{
	if (weft__thread_state.hook)
		weft__thread_state.hook(weft__thread_state.hook_ctx, failure);
}

/* Makes a callback for the end of t (pending); the callback is a promise only in the trace. */
static struct weft_promise *make_watcher(struct weft_record_site *site, enum weft_kind kind, enum weft__react react,
    struct weft_promise *t, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *p = weft__make_pending(site, kind, WEFT__CANCEL_NO);
	if (!p) {
		end_closure(ctx, destroy);
		return NULL;
	}
	p->react = (uint8_t)react;
	p->has_closure = true;
	p->ctx = ctx;
	p->destroy = destroy;
	weft__wait_for(p, t);
	return p;
}

/* Callbacks for the end of a promise: `end` is always called; of the others, only the one for the promise's state. */
struct callbacks {
	weft_on_value_fn *value;
	weft_on_failure_fn *failure;
	weft_on_end_fn *end;
};

static void call_callback(struct weft_promise *t, const struct callbacks *on, void *ctx)
{
	struct weft_promise *owner = weft__owner(t);
	if (on->end)
		on->end(ctx);
	else if (t->state == WEFT_RESOLVED && on->value)
		on->value(ctx, owner->value.pointer);
	else if (t->state == WEFT_FAILED && on->failure)
		on->failure(ctx, &owner->failure);
}

/* Registers the callbacks for the end of p, or calls them at once if p has ended.  The function takes over the reference to p,
 * and ctx. */
static int call_when_ended(struct weft_record_site *site, enum weft_kind kind, struct weft_promise *p, const struct callbacks *on,
    void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *t = weft__repr(p);
	int status = WEFT_OK;
	if (t->state == WEFT_PENDING) {
		struct weft_promise *watcher = make_watcher(site, kind, WEFT__REACT_ON, t, ctx, destroy);
		if (watcher) {
			watcher->on_value = on->value;
			watcher->on_failure = on->failure;
			watcher->on_end = on->end;
			weft__unref(watcher);
		} else {
			status = WEFT_ENOMEM;
		}
	} else {
		call_callback(t, on, ctx);
		end_closure(ctx, destroy);
	}
	weft__unref(p);
	return status;
}

int weft__on(struct weft_record_site *site, enum weft_kind kind, struct weft_promise *p, weft_on_value_fn *f,
    weft_on_failure_fn *g, weft_on_end_fn *h, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p);
	if (t->state != WEFT_PENDING)
		weft__note_read(t->id);
	return call_when_ended(site, kind, p, &(struct callbacks){f, g, h}, ctx, destroy);
}

static void report_lost(void *ctx, const struct weft_failure *failure)
{
	weft__report_lost_error(failure);
}

/* Reports an error that the program ignores, in the name of the promise that ignores it.  Without a hook of the program, the
 * error is only recorded in the trace, with a note. */
static void report_lost_later(void *ctx, const struct weft_failure *failure)
{
	if (!weft__thread_state.hook)
		WEFT_NOTE(weft__thread_state.current, WEFT_UNASKED);
	weft__report_lost_error(failure);
}

/* Records an error that had come before it was ignored, as a promise of the call that ignores it, because a promise that has
 * failed from the start has no event of its own. */
static void record_ignored(struct weft_record_site *site, struct weft_promise *t)
{
	if (t->state != WEFT_FAILED || weft__thread_state.hook || !WEFT__IS_RECORDING())
		return;
	struct weft_promise *p = weft__make_pending(site, WEFT_KIND_IGNORE_RESULT, WEFT__CANCEL_NO);
	if (!p)
		return;
	weft__note_end(p, &weft__owner(t)->failure);
	weft__unref(p);
}

int weft__dont_wait(
    struct weft_record_site *site, struct weft_promise *p, weft_on_failure_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	p = weft__arg(p);
	if (!f)
		record_ignored(site, weft__repr(p));
	if (!f)
		f = weft__repr(p)->state == WEFT_PENDING ? report_lost_later : report_lost;
	return call_when_ended(site, WEFT_KIND_IGNORE_RESULT, p, &(struct callbacks){.failure = f}, ctx, destroy);
}

int weft__async(struct weft_record_site *site, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *p = weft__make_pending(site, WEFT_KIND_ASYNC, WEFT__CANCEL_NO);
	if (!p) {
		end_closure(ctx, destroy);
		return WEFT_ENOMEM;
	}
	weft_id before = weft__thread_state.current;
	weft__switch_to(p->id);
	struct weft_promise *started = weft__arg(f(ctx)), *t = weft__repr(started);
	end_closure(ctx, destroy);
	if (t->state == WEFT_PENDING) {
		p->react = WEFT__REACT_ASYNC;
		weft__wait_for(p, t);
	} else {
		const struct weft_failure *failure = t->state == WEFT_FAILED ? &weft__owner(t)->failure : NULL;
		weft__note_end(p, failure);
		if (failure)
			weft__report_lost_error(failure);
	}
	weft__unref(started);
	weft__unref(p);
	weft__switch_to(before);
	return WEFT_OK;
}

/* ---- Protection ---- */

struct weft_promise *weft__no_cancel(struct weft_record_site *site, struct weft_promise *p)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	if (t->state != WEFT_PENDING)
		return p;
	if ((result = weft__make_pending(site, WEFT_KIND_WAIT, WEFT__CANCEL_NO))) {
		result->react = WEFT__REACT_FOLLOW;
		weft__wait_for(result, t);
		weft__note_await(result, t);
	}
	return unref_and_return(p, weft__arg(result));
}

static void stop_following(void *ctx)
{
	struct weft_promise *p = ctx;
	if (p->refs && p->waiter.link.next) {
		weft__unlink(&p->waiter.link);
		weft__unref(p);
	}
}

static void weak_unref_promise(void *p)
{
	weft__weak_unref(p);
}

struct weft_promise *weft__protected(struct weft_record_site *site, struct weft_promise *p)
{
	p = weft__arg(p);
	struct weft_promise *t = weft__repr(p), *result;
	if (t->state != WEFT_PENDING)
		return p;
	if ((result = weft__make_pending(site, WEFT_KIND_TASK, WEFT__CANCEL_ME))) {
		result->react = WEFT__REACT_FOLLOW;
		if (weft__add_handler(result, stop_following, weft__weak_ref(result), weak_unref_promise) == WEFT_OK) {
			weft__wait_for(result, t);
			weft__note_await(result, t);
		} else {
			weft__weak_unref(result);
			weft__unref(result);
			result = NULL;
		}
	}
	return unref_and_return(p, weft__arg(result));
}

/* ---- Reactions to the end of an input ---- */

static void run_then(struct weft_promise *p, struct weft_promise *owner)
{
	struct weft_promise *result = p->code.then(p->ctx, owner->value.pointer);
	weft__drop_closure(p);
	weft__connect(p, result);
}

static void run_rescue(struct weft_promise *p, weft_rescue_fn *f, struct weft_promise *owner)
{
	struct weft_promise *result = f(p->ctx, &owner->failure);
	weft__drop_closure(p);
	weft__connect(p, result);
}

static void pass_end_on(struct weft_promise *p, struct weft_promise *input)
{
	weft__drop_closure(p);
	p = weft__repr(p);
	if (p->state == WEFT_PENDING)
		weft__end_as(p, input);
}

void weft__fire(struct weft__waiter *w, struct weft_promise *input)
{
	struct weft_promise *p = w->to, *owner = weft__owner(input);
	bool resolved = input->state == WEFT_RESOLVED;
	switch ((enum weft__react)p->react) {
	case WEFT__REACT_BIND:
		weft__enter(p, input);
		if (resolved)
			run_then(p, owner);
		else
			pass_end_on(p, input);
		break;
	case WEFT__REACT_MAP:
		weft__enter(p, input);
		if (resolved) {
			struct weft_value value = p->code.map(p->ctx, owner->value.pointer);
			weft__drop_closure(p);
			weft__end_with(weft__repr(p), value.pointer, value.destroy);
		} else {
			pass_end_on(p, input);
		}
		break;
	case WEFT__REACT_CATCH:
		weft__enter(p, input);
		if (resolved)
			pass_end_on(p, input);
		else
			run_rescue(p, p->code.rescue, owner);
		break;
	case WEFT__REACT_TRY_BIND:
		weft__enter(p, input);
		if (resolved)
			run_then(p, owner);
		else
			run_rescue(p, p->rescue, owner);
		break;
	case WEFT__REACT_FINALIZE: {
		weft__enter(p, input);
		struct weft_promise *cleanup = p->code.start(p->ctx);
		weft__drop_closure(p);
		weft__connect(p, after_cleanup(cleanup, input));
		break;
	}
	case WEFT__REACT_BIND_OWNER: {
		weft__enter(p, input);
		struct weft_promise *result = p->code.with(p->ctx, owner);
		weft__drop_closure(p);
		weft__connect(p, result);
		break;
	}
	case WEFT__REACT_ON:
		weft__switch_to(weft__id(p));
		weft__note_read(input->id);
		call_callback(input, &(struct callbacks){p->on_value, p->on_failure, p->on_end}, p->ctx);
		weft__drop_closure(p);
		weft__note_end(p, NULL);
		break;
	case WEFT__REACT_ASYNC: {
		const struct weft_failure *failure = resolved ? NULL : &owner->failure;
		weft__switch_to(weft__id(p));
		weft__note_read(p->waiter.input_id ? p->waiter.input_id : input->id);
		weft__note_end(p, failure);
		if (failure)
			weft__report_lost_error(failure);
		break;
	}
	case WEFT__REACT_FOLLOW: pass_end_on(p, input); break;
	case WEFT__REACT_CHOOSE:
	case WEFT__REACT_PICK:
	case WEFT__REACT_NCHOOSE:
	case WEFT__REACT_NPICK: weft__fire_choose(p, input); break;
	case WEFT__REACT_JOIN: weft__fire_join(p, w, input); break;
	case WEFT__REACT_NONE: break;
	}
	weft__unref(p);
}
