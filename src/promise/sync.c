/* sync.c: implements conditions, mutexes, semaphores, switches and pools.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

/* Casts a task in a queue to its resolver, because both are one object. */
static struct weft_resolver *as_resolver(struct weft_promise *task)
{
	return (struct weft_resolver *)task;
}

/* Passes on the reference of a task in a queue, as the result of a call. */
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
	c->self = label && !c->label ? NULL : weft__make_pending(NULL, WEFT_KIND_CONDITION, WEFT__CANCEL_NO);
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

/* Makes the condition the running promise, and returns the previous running promise. */
static weft_id enter_condition(const struct weft_condition *c)
{
	weft_id before = weft__thread_state.current;
	weft__thread_state.current = weft__id(c->self);
	weft__note_signal(before);
	return before;
}

static struct weft_promise *lock_again(void *mutex)
{
	return mutex ? weft_mutex_lock(mutex) : &weft__unit;
}

struct weft_promise *weft__condition_wait(struct weft_record_site *site, struct weft_condition *c, struct weft_mutex *mutex)
{
	weft_id before = enter_condition(c);
	struct weft_promise *task = weft__queue_add_task(site, WEFT_KIND_TASK, &c->waiting);
	weft__switch_to(before);
	if (!task)
		return &weft__no_memory;
	if (c->label)
		weft__label(task, c->label);
	if (mutex)
		weft_mutex_unlock(mutex);
	return weft__finalize(site, task, lock_again, mutex, NULL);
}

void weft_condition_signal(struct weft_condition *c, void *value, weft_destroy_fn *destroy)
{
	weft_id before = enter_condition(c);
	weft_wakeup_later(as_resolver(weft__queue_pop(&c->waiting)), value, destroy);
	weft__switch_to(before);
}

void weft_condition_broadcast(struct weft_condition *c, void *value, weft_destroy_fn *destroy)
{
	struct weft__link woken;
	struct weft_promise *task, *first = NULL;
	weft__list_init(&woken);
	weft__list_append(&woken, &c->waiting);
	weft_id before = enter_condition(c);
	while ((task = weft__queue_pop(&woken))) {
		if (first) {
			weft__wakeup_as(task, first, true);
			weft__unref(task);
		} else if (weft__repr(task)->state == WEFT_PENDING) {
			first = weft__ref(weft__repr(task));
			weft_wakeup_later(as_resolver(task), value, destroy);
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
	weft_id before = enter_condition(c);
	while ((task = weft__queue_pop(&woken)))
		weft_wakeup_later_error(as_resolver(task), code, message);
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
	m->self = label && !m->label ? NULL : weft__make_pending(site, WEFT_KIND_LOCK, WEFT__CANCEL_NO);
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
		struct weft_promise *task = weft__queue_add_task(site, WEFT_KIND_TASK, &m->waiting);
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

static void clear_mutex_holder(struct weft_promise *lock)
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
	clear_mutex_holder(m->self);
	struct weft_promise *task = weft__queue_pop(&m->waiting);
	if (task)
		weft_wakeup_later(as_resolver(task), NULL, NULL);
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

static struct weft_promise *return_unit(void *ctx)
{
	return &weft__unit;
}

static void unlock_mutex(void *mutex)
{
	weft_mutex_unlock(mutex);
}

static struct weft_promise *run_with_lock(void *pointer, struct weft_promise *lock)
{
	struct with_lock *with = pointer;
	if (lock->state == WEFT_FAILED)
		return weft__promise_ended_as(lock);
	/* unlock_mutex() is the callback's destructor, so it runs however the promise ends. */
	struct weft_mutex *mutex = with->mutex;
	struct weft_promise *result = weft__finalize(with->site, with->f(with->ctx), return_unit, mutex, unlock_mutex);
	/* If the result ended at once, the mutex is unlocked already, and another promise may hold it. */
	if (weft__is_pending(result)) {
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
	return weft__bind_owner_of_task(site, weft__mutex_lock(site, m), run_with_lock, with, with_lock_destroy);
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
		return task_or_error(weft__queue_add_task(site, WEFT_KIND_SEMAPHORE, &s->waiting));
	s->count--;
	return &weft__unit;
}

void weft_semaphore_release(struct weft_semaphore *s)
{
	struct weft_promise *task = weft__queue_pop(&s->waiting);
	if (task)
		weft_wakeup_later(as_resolver(task), NULL, NULL);
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
	size_t count, capacity;
	struct hook *hooks;
	struct weft_promise **results; /* array with as many elements as hooks, so that turning off needs no memory */
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
	weft__release(s->hooks, s->capacity * sizeof *s->hooks);
	weft__release(s->results, s->capacity * sizeof *s->results);
	s->hooks = NULL;
	s->results = NULL;
	s->count = s->capacity = 0;
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

static bool grow_hooks(struct weft_switch *s)
{
	if (s->count < s->capacity)
		return true;
	size_t capacity = s->capacity ? s->capacity * 2 : 4;
	struct hook *hooks = weft__allocate(capacity * sizeof *hooks);
	struct weft_promise **results = weft__allocate(capacity * sizeof *results);
	if (!hooks || !results) {
		weft__release(hooks, capacity * sizeof *hooks);
		weft__release(results, capacity * sizeof *results);
		return false;
	}
	size_t count = s->count;
	for (size_t i = 0; i < count; i++)
		hooks[i] = s->hooks[i];
	drop_hooks(s);
	s->hooks = hooks;
	s->results = results;
	s->count = count;
	s->capacity = capacity;
	return true;
}

int weft_switch_add_hook(struct weft_switch *s, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	int status = s->off ? WEFT_EINVAL : grow_hooks(s) ? WEFT_OK : WEFT_ENOMEM;
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
	size_t limit, count;           /* limit, and current number, of the pool's objects, including objects in use */
	size_t idle;                   /* number of idle objects in the array below, the longest idle first */
	struct weft_promise *self;     /* pending for ever */
	struct weft__link held;        /* list of struct weft__holding of the uses that are known to have an object */
	struct weft_promise *object[]; /* promises, each of which is resolved with an object and owns it */
};

static size_t pool_bytes(size_t limit)
{
	return sizeof(struct weft_pool) + limit * sizeof(struct weft_promise *);
}

struct weft_pool *weft__pool_create(
    struct weft_record_site *site, size_t limit, weft_start_fn *make, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_pool *pool = limit > SIZE_MAX / 64 ? NULL : weft__allocate(pool_bytes(limit));
	struct weft_promise *self = pool ? weft__make_pending(site, WEFT_KIND_POOL, WEFT__CANCEL_NO) : NULL;
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

/* The function is the entry point for programs that were built with the first record.h. */
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
		weft__unref(pool->object[i]);
	if (pool->destroy)
		pool->destroy(pool->ctx);
	pool->self->holders = NULL;
	weft__unref(pool->self);
	weft__release(pool, pool_bytes(pool->limit));
}

/* Gives the object to the first waiting promise, or makes the object idle. */
static void return_object(struct weft_pool *pool, struct weft_promise *object)
{
	struct weft_promise *task = weft__queue_pop(&pool->waiting);
	if (!task) {
		pool->object[pool->idle++] = object;
		return;
	}
	weft__wakeup_as(task, object, true);
	weft__unref(task);
	weft__unref(object);
}

/* An object that is being made for a waiting promise. */
struct order {
	struct weft_pool *pool;
	struct weft_promise *task; /* counted */
	bool done;
};

static struct weft_promise *on_object_made(void *pointer, struct weft_promise *object)
{
	struct order *order = pointer;
	order->done = true;
	if (object->state == WEFT_FAILED)
		order->pool->count--;
	weft__wakeup_as(order->task, object, true);
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

/* Makes another object for a waiting promise, after an object was thrown away. */
static void make_replacement(struct weft_pool *pool)
{
	struct weft_promise *task = weft__queue_pop(&pool->waiting);
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
	weft__unref(weft__bind_owner(NULL, weft__arg(pool->make(pool->ctx)), on_object_made, order, order_destroy));
}

struct use {
	unsigned refs;
	struct weft_pool *pool;
	bool making;                 /* from now on, the pool counts the object that will be made */
	struct weft_promise *object; /* counted */
	/* Use of the object; .holder is the promise that f returned, if it has the object for longer than the call. */
	struct weft__holding held;
	weft_then_fn *f;
	void *ctx;
	weft_destroy_fn *destroy;
};

static void clear_use_holder(struct use *use)
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
	clear_use_holder(use);
	if (use->object) {
		weft__unref(use->object);
		make_replacement(use->pool);
	}
	if (use->destroy)
		use->destroy(use->ctx);
	weft__release(use, sizeof *use);
}

static struct weft_promise *on_object_used(void *pointer, struct weft_promise *result)
{
	struct use *use = pointer;
	if (result->state == WEFT_RESOLVED) {
		struct weft_promise *object = use->object;
		use->object = NULL;
		clear_use_holder(use);
		return_object(use->pool, object);
	}
	return weft__promise_ended_as(result);
}

static struct weft_promise *on_object_acquired(void *pointer, struct weft_promise *object)
{
	struct use *use = pointer;
	if (object->state == WEFT_FAILED)
		return weft__promise_ended_as(object);
	use->making = false;
	use->object = weft__ref(object);
	use->refs++;
	struct weft_promise *result =
	    weft__bind_owner(NULL, weft__arg(use->f(use->ctx, object->value.pointer)), on_object_used, use, use_unref);
	if (use->object && weft__is_pending(result)) {
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
	struct weft_promise *object;
	if (pool->idle > 0) {
		/* The user of the object gets a new promise, and not the promise that made the object long ago. */
		object = weft__promise_ended_as(pool->object[0]);
		if (object != &weft__no_memory) {
			weft__unref(pool->object[0]);
			pool->idle--;
			for (size_t i = 0; i < pool->idle; i++)
				pool->object[i] = pool->object[i + 1];
		}
	} else if (pool->count < pool->limit) {
		pool->count++;
		use->making = true;
		object = weft__arg(pool->make(pool->ctx));
	} else {
		struct weft_promise *task = weft__queue_add_task(site, WEFT_KIND_TASK, &pool->waiting);
		if (task) {
			task->lock = pool->self;
			task->waits_for_lock = true;
			weft__note_await(task, pool->self);
		}
		object = task_or_error(task);
	}
	return weft__bind_owner_of_task(site, object, on_object_acquired, use, use_unref);
}
