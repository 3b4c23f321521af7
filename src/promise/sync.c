/* sync.c: conditions, mutexes, semaphores, switches and pools.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

/* A queue's task as a resolver. */
static struct weft_resolver *resolver_of(struct weft_promise *task)
{
	return (struct weft_resolver *)task;
}

/* Gives the reference of a queue's task away, as a call's result. */
static struct weft_promise *task_or_error(struct weft_promise *task)
{
	return task ? task : &weft__no_memory;
}

/* ---- Condition ---- */

struct weft_condition {
	struct weft__link waiting;
	struct weft_promise *self; /* pending for ever */
	char *label;
};

struct weft_condition *weft_condition_create(const char *label)
{
	struct weft_condition *c = weft__allocate(sizeof *c);
	if (!c)
		return NULL;
	c->label = label ? weft__copy_text("", label) : NULL;
	c->self = label && !c->label ? NULL : weft__created(NULL, WEFT_KIND_CONDITION, WEFT__CANCEL_NO);
	if (!c->self) {
		if (c->label)
			weft__release(c->label, weft__text_bytes(label));
		weft__release(c, sizeof *c);
		return NULL;
	}
	weft__list_init(&c->waiting);
	if (label)
		weft__label(c->self, c->label);
	return c;
}

void weft_condition_destroy(struct weft_condition *c)
{
	if (!c)
		return;
	weft__queue_drop(&c->waiting, c->label);
	weft__unref(c->self);
	if (c->label)
		weft__release(c->label, weft__text_bytes(c->label));
	weft__release(c, sizeof *c);
}

/* From now on the condition runs; returns the promise that ran before. */
static weft_id signal_to(const struct weft_condition *c)
{
	weft_id before = weft__world.current;
	weft__world.current = weft__id(c->self);
	weft__note_signal(before);
	return before;
}

static struct weft_promise *relock(void *mutex)
{
	return mutex ? weft_mutex_lock(mutex) : &weft__unit;
}

struct weft_promise *weft__condition_wait(struct weft_record_site *site, struct weft_condition *c, struct weft_mutex *mutex)
{
	weft_id before = signal_to(c);
	struct weft_promise *task = weft__queue_task(site, WEFT_KIND_TASK, &c->waiting);
	weft__switch_to(before);
	if (!task)
		return &weft__no_memory;
	if (c->label)
		weft__label(task, c->label);
	if (mutex)
		weft_mutex_unlock(mutex);
	return weft__finalize(site, task, relock, mutex, NULL);
}

void weft_condition_signal(struct weft_condition *c, void *value, weft_destroy_fn *destroy)
{
	weft_id before = signal_to(c);
	weft_wakeup_later(resolver_of(weft__queue_take(&c->waiting)), value, destroy);
	weft__switch_to(before);
}

void weft_condition_broadcast(struct weft_condition *c, void *value, weft_destroy_fn *destroy)
{
	struct weft__link woken;
	struct weft_promise *task, *first = NULL;
	weft__list_init(&woken);
	weft__list_append(&woken, &c->waiting);
	weft_id before = signal_to(c);
	while ((task = weft__queue_take(&woken))) {
		if (first) {
			weft__wakeup_as(task, first, true);
			weft__unref(task);
		} else if (weft__repr(task)->state == WEFT_PENDING) {
			first = weft__ref(weft__repr(task));
			weft_wakeup_later(resolver_of(task), value, destroy);
		} else {
			weft__unref(task);
		}
	}
	weft__switch_to(before);
	if (first)
		weft__unref(first);
	else if (destroy)
		destroy(value);
}

void weft_condition_broadcast_error(struct weft_condition *c, int code, const char *message)
{
	struct weft__link woken;
	struct weft_promise *task;
	weft__list_init(&woken);
	weft__list_append(&woken, &c->waiting);
	weft_id before = signal_to(c);
	while ((task = weft__queue_take(&woken)))
		weft_wakeup_later_error(resolver_of(task), code, message);
	weft__switch_to(before);
}

/* ---- Mutex ---- */

struct weft_mutex {
	struct weft__link waiting;
	bool locked;
	struct weft_promise *self; /* pending for ever */
	char *label;
};

struct weft_mutex *weft__mutex_create(struct weft_record_site *site, const char *label)
{
	struct weft_mutex *m = weft__allocate(sizeof *m);
	if (!m)
		return NULL;
	*m = (struct weft_mutex){.label = label ? weft__copy_text("", label) : NULL};
	m->self = label && !m->label ? NULL : weft__created(site, WEFT_KIND_LOCK, WEFT__CANCEL_NO);
	if (!m->self) {
		if (m->label)
			weft__release(m->label, weft__text_bytes(m->label));
		weft__release(m, sizeof *m);
		return NULL;
	}
	weft__list_init(&m->waiting);
	if (label)
		weft__label(m->self, m->label);
	return m;
}

void weft_mutex_destroy(struct weft_mutex *m)
{
	if (!m)
		return;
	weft__queue_drop(&m->waiting, NULL);
	if (m->self->holder)
		weft__weak_unref(m->self->holder);
	m->self->holder = NULL;
	weft__unref(m->self);
	if (m->label)
		weft__release(m->label, weft__text_bytes(m->label));
	weft__release(m, sizeof *m);
}

struct weft_promise *weft__mutex_lock(struct weft_record_site *site, struct weft_mutex *m)
{
	if (m->locked) {
		struct weft_promise *task = weft__queue_task(site, WEFT_KIND_TASK, &m->waiting);
		if (!task)
			return &weft__no_memory;
		task->lock = m->self;
		task->waits_for_lock = true;
		weft__note_await(task, m->self);
		return task;
	}
	m->locked = true;
	return &weft__unit;
}

static void forget_holder(struct weft_promise *lock)
{
	if (!lock->holder)
		return;
	weft__note_release(lock->holder, lock);
	weft__weak_unref(lock->holder);
	lock->holder = NULL;
}

void weft_mutex_unlock(struct weft_mutex *m)
{
	if (!m->locked)
		return;
	forget_holder(m->self);
	struct weft_promise *task = weft__queue_take(&m->waiting);
	if (task)
		weft_wakeup_later(resolver_of(task), NULL, NULL);
	else
		m->locked = false;
}

bool weft_mutex_is_locked(const struct weft_mutex *m)
{
	return m->locked;
}

struct with_lock {
	struct weft_record_site *site;
	struct weft_mutex *mutex;
	weft_start_fn *f;
	void *ctx;
	weft_destroy_fn *destroy;
};

static void with_lock_destroy(void *pointer)
{
	struct with_lock *with = pointer;
	if (with->destroy)
		with->destroy(with->ctx);
	weft__release(with, sizeof *with);
}

static struct weft_promise *nothing_more(void *ctx)
{
	return &weft__unit;
}

static void unlock(void *mutex)
{
	weft_mutex_unlock(mutex);
}

static struct weft_promise *locked(void *pointer, struct weft_promise *lock)
{
	struct with_lock *with = pointer;
	if (lock->state == WEFT_FAILED)
		return weft__promise_ended_as(lock);
	/* As a destructor it unlocks the mutex, however the promise ends. */
	struct weft_mutex *mutex = with->mutex;
	struct weft_promise *result = weft__finalize(with->site, with->f(with->ctx), nothing_more, mutex, unlock);
	/* If it ended at once, the mutex is unlocked already, and another may have it. */
	if (weft_promise_state(result) == WEFT_PENDING) {
		mutex->self->holder = weft__weak_ref(result);
		weft__note_hold(result, mutex->self);
	}
	return result;
}

struct weft_promise *weft__mutex_with_lock(
    struct weft_record_site *site, struct weft_mutex *m, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct with_lock *with = weft__allocate(sizeof *with);
	if (!with) {
		if (destroy)
			destroy(ctx);
		return &weft__no_memory;
	}
	*with = (struct with_lock){site, m, f, ctx, destroy};
	return weft__bind_owner_of_task(site, weft__mutex_lock(site, m), locked, with, with_lock_destroy);
}

/* ---- Semaphore ---- */

struct weft_semaphore {
	struct weft__link waiting;
	size_t count;
};

struct weft_semaphore *weft_semaphore_create(size_t count)
{
	struct weft_semaphore *s = weft__allocate(sizeof *s);
	if (!s)
		return NULL;
	weft__list_init(&s->waiting);
	s->count = count;
	return s;
}

void weft_semaphore_destroy(struct weft_semaphore *s)
{
	if (!s)
		return;
	weft__queue_drop(&s->waiting, NULL);
	weft__release(s, sizeof *s);
}

struct weft_promise *weft__semaphore_acquire(struct weft_record_site *site, struct weft_semaphore *s)
{
	if (s->count == 0)
		return task_or_error(weft__queue_task(site, WEFT_KIND_SEMAPHORE, &s->waiting));
	s->count--;
	return &weft__unit;
}

void weft_semaphore_release(struct weft_semaphore *s)
{
	struct weft_promise *task = weft__queue_take(&s->waiting);
	if (task)
		weft_wakeup_later(resolver_of(task), NULL, NULL);
	else
		s->count++;
}

/* ---- Switch ---- */

struct hook {
	weft_start_fn *f;
	void *ctx;
	weft_destroy_fn *destroy;
	struct weft_promise *result;
};

struct weft_switch {
	bool off;
	size_t count, room;
	struct hook *hooks;
	struct weft_promise **results; /* as much room as for the hooks, so that turning off needs no memory */
};

struct weft_switch *weft_switch_create(void)
{
	struct weft_switch *s = weft__allocate(sizeof *s);
	if (s)
		*s = (struct weft_switch){.off = false};
	return s;
}

static void drop_hooks(struct weft_switch *s)
{
	weft__release(s->hooks, s->room * sizeof *s->hooks);
	weft__release(s->results, s->room * sizeof *s->results);
	s->hooks = NULL;
	s->results = NULL;
	s->count = s->room = 0;
}

void weft_switch_destroy(struct weft_switch *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		if (s->hooks[i].destroy)
			s->hooks[i].destroy(s->hooks[i].ctx);
	drop_hooks(s);
	weft__release(s, sizeof *s);
}

bool weft_switch_is_on(const struct weft_switch *s)
{
	return !s->off;
}

static bool make_room(struct weft_switch *s)
{
	if (s->count < s->room)
		return true;
	size_t room = s->room ? s->room * 2 : 4;
	struct hook *hooks = weft__allocate(room * sizeof *hooks);
	struct weft_promise **results = weft__allocate(room * sizeof *results);
	if (!hooks || !results) {
		weft__release(hooks, room * sizeof *hooks);
		weft__release(results, room * sizeof *results);
		return false;
	}
	size_t count = s->count;
	for (size_t i = 0; i < count; i++)
		hooks[i] = s->hooks[i];
	drop_hooks(s);
	s->hooks = hooks;
	s->results = results;
	s->count = count;
	s->room = room;
	return true;
}

int weft_switch_add_hook(struct weft_switch *s, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	int status = s->off ? WEFT_EINVAL : make_room(s) ? WEFT_OK : WEFT_ENOMEM;
	if (status == WEFT_OK)
		s->hooks[s->count++] = (struct hook){f, ctx, destroy, NULL};
	else if (destroy)
		destroy(ctx);
	return status;
}

struct weft_promise *weft__switch_turn_off(struct weft_record_site *site, struct weft_switch *s)
{
	if (s->off)
		return &weft__unit;
	s->off = true;
	size_t count = s->count;
	for (size_t i = 0; i < count; i++) {
		struct hook *hook = &s->hooks[count - 1 - i];
		s->results[i] = hook->f(hook->ctx);
		if (hook->destroy)
			hook->destroy(hook->ctx);
	}
	struct weft_promise *all = weft__join(site, s->results, count);
	drop_hooks(s);
	return all;
}

/* ---- Pool ---- */

struct weft_pool {
	struct weft__link waiting;
	weft_start_fn *make;
	void *ctx;
	weft_destroy_fn *destroy;
	size_t limit, count;          /* number of things, those in use included */
	size_t idle;                  /* how many idle things stand in the array below, the longest idle first */
	struct weft_promise *self;    /* pending for ever */
	struct weft__link held;       /* struct weft__held of uses that are known to have a thing */
	struct weft_promise *thing[]; /* resolved with a thing, which it owns */
};

static size_t pool_bytes(size_t limit)
{
	return sizeof(struct weft_pool) + limit * sizeof(struct weft_promise *);
}

struct weft_pool *weft__pool_create(
    struct weft_record_site *site, size_t limit, weft_start_fn *make, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_pool *pool = limit > SIZE_MAX / 64 ? NULL : weft__allocate(pool_bytes(limit));
	struct weft_promise *self = pool ? weft__created(site, WEFT_KIND_POOL, WEFT__CANCEL_NO) : NULL;
	if (!self) {
		if (pool)
			weft__release(pool, pool_bytes(limit));
		if (destroy)
			destroy(ctx);
		return NULL;
	}
	*pool = (struct weft_pool){.make = make, .ctx = ctx, .destroy = destroy, .limit = limit, .self = self};
	weft__list_init(&pool->waiting);
	weft__list_init(&pool->held);
	self->holders = &pool->held;
	return pool;
}

/* What programs call that were built with the first record.h. */
struct weft_pool *(weft_pool_create)(size_t limit, weft_start_fn *make, void *ctx, weft_destroy_fn *destroy)
{
	return weft__pool_create(NULL, limit, make, ctx, destroy);
}

void weft_pool_destroy(struct weft_pool *pool)
{
	if (!pool)
		return;
	weft__queue_drop(&pool->waiting, NULL);
	for (size_t i = 0; i < pool->idle; i++)
		weft__unref(pool->thing[i]);
	if (pool->destroy)
		pool->destroy(pool->ctx);
	pool->self->holders = NULL;
	weft__unref(pool->self);
	weft__release(pool, pool_bytes(pool->limit));
}

/* The first promise that waits gets the thing. */
static void give_back(struct weft_pool *pool, struct weft_promise *thing)
{
	struct weft_promise *task = weft__queue_take(&pool->waiting);
	if (!task) {
		pool->thing[pool->idle++] = thing;
		return;
	}
	weft__wakeup_as(task, thing, true);
	weft__unref(task);
	weft__unref(thing);
}

/* A thing that is being made for someone who waits. */
struct order {
	struct weft_pool *pool;
	struct weft_promise *task; /* counted */
	bool done;
};

static struct weft_promise *made(void *pointer, struct weft_promise *thing)
{
	struct order *order = pointer;
	order->done = true;
	if (thing->state == WEFT_FAILED)
		order->pool->count--;
	weft__wakeup_as(order->task, thing, true);
	return &weft__unit;
}

static void order_destroy(void *pointer)
{
	struct order *order = pointer;
	if (!order->done) {
		order->pool->count--;
		weft__wakeup_as(order->task, &weft__no_memory, true);
	}
	weft__unref(order->task);
	weft__release(order, sizeof *order);
}

/* A thing was thrown away: makes another if someone waits. */
static void replace(struct weft_pool *pool)
{
	struct weft_promise *task = weft__queue_take(&pool->waiting);
	if (!task) {
		pool->count--;
		return;
	}
	struct order *order = weft__allocate(sizeof *order);
	if (!order) {
		pool->count--;
		weft__wakeup_as(task, &weft__no_memory, true);
		weft__unref(task);
		return;
	}
	*order = (struct order){pool, task, false};
	weft__unref(weft__bind_owner(NULL, weft__arg(pool->make(pool->ctx)), made, order, order_destroy));
}

struct use {
	unsigned refs;
	struct weft_pool *pool;
	bool making;                /* the pool counts the thing from now on, before it is made */
	struct weft_promise *thing; /* counted */
	struct weft__held held;     /* .holder: what f returned, if it has the thing for longer than the call */
	weft_then_fn *f;
	void *ctx;
	weft_destroy_fn *destroy;
};

static void forget_use(struct use *use)
{
	if (!use->held.holder)
		return;
	weft__note_release(use->held.holder, use->pool->self);
	weft__weak_unref(use->held.holder);
	weft__unlink(&use->held.link);
	use->held.holder = NULL;
}

static void use_unref(void *pointer)
{
	struct use *use = pointer;
	if (--use->refs)
		return;
	if (use->making)
		use->pool->count--;
	forget_use(use);
	if (use->thing) {
		weft__unref(use->thing);
		replace(use->pool);
	}
	if (use->destroy)
		use->destroy(use->ctx);
	weft__release(use, sizeof *use);
}

static struct weft_promise *used(void *pointer, struct weft_promise *result)
{
	struct use *use = pointer;
	if (result->state == WEFT_RESOLVED) {
		struct weft_promise *thing = use->thing;
		use->thing = NULL;
		forget_use(use);
		give_back(use->pool, thing);
	}
	return weft__promise_ended_as(result);
}

static struct weft_promise *acquired(void *pointer, struct weft_promise *thing)
{
	struct use *use = pointer;
	if (thing->state == WEFT_FAILED)
		return weft__promise_ended_as(thing);
	use->making = false;
	use->thing = weft__ref(thing);
	use->refs++;
	struct weft_promise *result =
	    weft__bind_owner(NULL, weft__arg(use->f(use->ctx, thing->value.pointer)), used, use, use_unref);
	if (use->thing && weft_promise_state(result) == WEFT_PENDING) {
		use->held.holder = weft__weak_ref(result);
		weft__link_after(&use->pool->held, &use->held.link);
		weft__note_hold(result, use->pool->self);
	}
	return result;
}

struct weft_promise *weft__pool_use(
    struct weft_record_site *site, struct weft_pool *pool, weft_then_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct use *use = weft__allocate(sizeof *use);
	if (!use) {
		if (destroy)
			destroy(ctx);
		return &weft__no_memory;
	}
	*use = (struct use){.refs = 1, .pool = pool, .f = f, .ctx = ctx, .destroy = destroy};
	struct weft_promise *thing;
	if (pool->idle > 0) {
		/* Who uses the thing waits for a new promise, not for the one that made the thing long ago. */
		thing = weft__promise_ended_as(pool->thing[0]);
		if (thing != &weft__no_memory) {
			weft__unref(pool->thing[0]);
			pool->idle--;
			for (size_t i = 0; i < pool->idle; i++)
				pool->thing[i] = pool->thing[i + 1];
		}
	} else if (pool->count < pool->limit) {
		pool->count++;
		use->making = true;
		thing = weft__arg(pool->make(pool->ctx));
	} else {
		struct weft_promise *task = weft__queue_task(site, WEFT_KIND_TASK, &pool->waiting);
		if (task) {
			task->lock = pool->self;
			task->waits_for_lock = true;
			weft__note_await(task, pool->self);
		}
		thing = task_or_error(task);
	}
	return weft__bind_owner_of_task(site, thing, acquired, use, use_unref);
}
