/* promise.h: promises for C, with the semantics of OCaml's Lwt, that record themselves.
 *
 * A promise is pending until it is resolved with a value or fails with an error; then its waiters run.  While the process records
 * (see record.h), the trace gets each creation, wait and end of a promise.
 *
 *	static struct weft_promise *greet(void *ctx, void *name) { puts(name); return weft_promise_unit(); }
 *
 *	struct weft_resolver *resolver;
 *	struct weft_promise *done = weft_promise_bind(weft_promise_wait(&resolver), greet, NULL, NULL);
 *	weft_wakeup(resolver, "Bob", NULL);
 *
 * OWNERSHIP: promises are counted references.  A call takes over the reference to each promise that is its argument, and you own
 * the reference that it returns; so calls nest.  A promise stays yours if the parameter is const, and in weft_promise_cancel(),
 * _on_cancel(), _set_label() and _ref().  To use a promise twice, give away weft_promise_ref(p).
 *
 * A value belongs to all promises that were resolved with it: to one promise, and to others that waited and got the same value.
 * When the last promise with that value is freed, the value's destructor (may be NULL) is called once.  A callback may use its
 * value until the callback returns; to keep the value longer, keep a reference to the promise.
 *
 * A callback's `ctx` belongs to the promise that will call the callback.  The destructor of a `ctx` (may be NULL) is called once:
 * after the callback has returned, or when it is certain that the callback will never run.  If several callbacks share a ctx,
 * give its destructor only to the last callback, preferably that of a weft_promise_finalize() around all others.
 *
 * Dropping the last reference to a promise cancels nothing: its waiters still run.  A pending promise is freed when nothing can
 * resolve it any more (its resolver was dropped), together with all promises that wait only for it.
 *
 * ERRORS: a call always returns a promise, which may fail.  Without memory a call drops all of its arguments and returns a
 * promise that has failed with WEFT_PROMISE_ENOMEM; this promise needs no memory.  An argument NULL stands for a promise that
 * failed with WEFT_PROMISE_ENOMEM.
 *
 * ORDER: callbacks of one promise run in the reverse order of their registration.  When a callback resolves another promise, all
 * waiters of that other promise run before the next callback.  The depth of the stack does not depend on the length of a chain of
 * promises or on the number of callbacks.
 *
 * Promises and all other objects of this header are used only on the OS thread that made them, since no call takes a lock.  The
 * macros of this header with names in lower case record the source location of the call.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROMISE_H
#define WEFT_PROMISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_promise;
struct weft_resolver;

enum weft_promise_state { WEFT_PENDING = 0, WEFT_RESOLVED = 1, WEFT_FAILED = 2 };

/* Error codes.  A program defines its own codes from 0 on; small negative codes are errors of libuv or -errno. */
enum weft_promise_code {
	WEFT_PROMISE_CANCELLED = -20001,
	WEFT_PROMISE_ENOMEM = -20002,
	WEFT_PROMISE_TIMEOUT = -20003,
	WEFT_PROMISE_CLOSED = -20004, /* the stream or queue of values was closed */
	WEFT_PROMISE_OFF = -20005     /* a program's own operation found its switch off; weft itself never sets this code */
};

struct weft_failure {
	int code;
	const char *message;
};

typedef void weft_destroy_fn(void *pointer);

struct weft_value {
	void *pointer;
	weft_destroy_fn *destroy; /* may be NULL */
};

/* Callbacks.  A callback that returns a promise gives its reference to that promise away; a returned NULL stands for a promise
 * that failed with WEFT_PROMISE_ENOMEM. */
typedef struct weft_promise *weft_then_fn(void *ctx, void *value);
typedef struct weft_promise *weft_rescue_fn(void *ctx, const struct weft_failure *failure);
typedef struct weft_promise *weft_start_fn(void *ctx);
typedef struct weft_value weft_map_fn(void *ctx, void *value);
typedef void weft_on_value_fn(void *ctx, void *value);
typedef void weft_on_failure_fn(void *ctx, const struct weft_failure *failure);
typedef void weft_on_end_fn(void *ctx);

/* ---- References ---- */

/* Returns p with one more reference, which the caller owns. */
WEFT__API struct weft_promise *weft_promise_ref(struct weft_promise *p);
/* Drops a reference to p. */
WEFT__API void weft_promise_unref(struct weft_promise *p); /* p may be NULL */

/* ---- State ---- */

/* Returns the state of p.  If p has failed, the trace records that the program noticed the error. */
WEFT__API enum weft_promise_state weft_promise_state(const struct weft_promise *p);
/* Returns the state of p.  If p has ended, the trace records that the running promise read p. */
WEFT__API enum weft_promise_state weft_promise_poll(const struct weft_promise *p);
/* Returns the value of p, valid as long as p; NULL unless p is resolved. */
WEFT__API void *weft_promise_value(const struct weft_promise *p);
/* Returns the error of p, valid as long as p; NULL unless p has failed. */
WEFT__API const struct weft_failure *weft_promise_failure(const struct weft_promise *p);
/* Returns the id of p in the trace; 0 if the process has not recorded since p was made. */
WEFT__API weft_id weft_promise_id(const struct weft_promise *p);

/* ---- Creation ---- */

/* Returns a promise that is resolved with the value. */
WEFT__API struct weft_promise *weft_promise_return(void *value, weft_destroy_fn *destroy);
/* Returns a promise that is resolved with NULL; needs no memory. */
WEFT__API struct weft_promise *weft_promise_unit(void);
/* Returns a failed promise with a copy of the message; without memory for the copy, the promise has only the code. */
WEFT__API struct weft_promise *weft_promise_fail(int code, const char *message);

/* Make a pending promise, and store in *resolver the object that ends the promise. weft_promise_cancel() ends a task, but not a
 * wait.  Each resolver must be given to exactly one weft_wakeup...() or weft_resolver_drop().  Without memory *resolver is NULL,
 * which every call accepts as a resolver. */
#define weft_promise_wait(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, NULL, true, resolver)
#define weft_promise_task(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_TASK, NULL, true, resolver)
/* Make a pending promise with a label, which is copied unless it is a literal. */
#define weft_promise_named_wait(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, label, __builtin_constant_p(label), resolver)
#define weft_promise_named_task(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_TASK, label, __builtin_constant_p(label), resolver)
/* Makes a pending promise of any kind and its resolver, for libraries that add their own operations.  If `cancellable` is true,
 * weft_promise_cancel() ends the promise. */
#define weft_promise_of_kind(kind, cancellable, label, resolver)                                                                 \
	weft__make(WEFT_SITE(), kind, cancellable, label, __builtin_constant_p(label), resolver)

/* End the resolver's promise with a value or an error, run its waiters, and free the resolver.  If the promise was cancelled
 * before, the value is destroyed. */
WEFT__API void weft_wakeup(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_error(struct weft_resolver *resolver, int code, const char *message);
/* End the resolver's promise with a value or an error.  If another weft_wakeup...() is running, the waiters run after that call.
 */
WEFT__API void weft_wakeup_later(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_later_error(struct weft_resolver *resolver, int code, const char *message);
/* Declares that no call will end the resolver's promise, and frees the resolver. */
WEFT__API void weft_resolver_drop(struct weft_resolver *resolver);
/* Calls f when the resolver's promise is cancelled, unless the resolver was freed before. f may give the resolver to
 * weft_wakeup() or weft_resolver_drop().  Libraries that add their own operations use this function.  Returns 0, or WEFT_ENOMEM
 * if f was not registered. */
WEFT__API int weft_resolver_on_cancel(struct weft_resolver *resolver, weft_on_end_fn *f, void *ctx);

/* Fails p with WEFT_PROMISE_CANCELLED if p is a task, and otherwise each task for which p waits, directly or through other
 * promises.  Does nothing if there is no such task. */
WEFT__API void weft_promise_cancel(struct weft_promise *p);
/* Calls f when p is cancelled, before the waiters of p run; at once if p was cancelled already.  If several functions are
 * registered, the last one runs first.  Returns 0, or WEFT_ENOMEM if f was not registered; then ctx is destroyed. */
WEFT__API int weft_promise_on_cancel(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy);

/* ---- Sequence ---- */

/* Returns a promise that ends as the promise that f makes from the value of p.  If p fails, the returned promise fails with the
 * same error. */
#define weft_promise_bind(p, f, ctx, destroy) weft__bind(WEFT_SITE(), p, f, ctx, destroy)
/* Returns a promise that is resolved with the value that f makes from the value of p.  If p fails, the returned promise fails
 * with the same error. */
#define weft_promise_map(p, f, ctx, destroy) weft__map(WEFT_SITE(), p, f, ctx, destroy)
/* Returns a promise that ends as the promise that f makes from the error of p.  If p is resolved, the returned promise is
 * resolved with the same value. */
#define weft_promise_catch(p, f, ctx, destroy) weft__catch(WEFT_SITE(), p, f, ctx, destroy)
/* Returns a promise that ends as the promise that `then` makes from the value of p, or `rescue` from the error of p.  `rescue`
 * does not get the errors of `then`. */
#define weft_promise_try_bind(p, then, rescue, ctx, destroy) weft__try_bind(WEFT_SITE(), p, then, rescue, ctx, destroy)
/* Calls f when p ends, with a value or an error.  When the promise that f returns is resolved, the promise that this macro
 * returns ends as p did.  If the promise that f returns fails, the promise that this macro returns fails with the same error. */
#define weft_promise_finalize(p, f, ctx, destroy) weft__finalize(WEFT_SITE(), p, f, ctx, destroy)

/* ---- Callbacks without a result ----
 *
 * Each of these macros calls its function when p ends, at once if p has ended already.  The macro returns 0, or WEFT_ENOMEM; then
 * no function is registered, ctx is destroyed and p is dropped. */
/* Calls f with the value when p is resolved. */
#define weft_promise_on_success(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_SUCCESS, p, f, NULL, NULL, ctx, destroy)
/* Calls f with the error when p fails. */
#define weft_promise_on_failure(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_FAILURE, p, NULL, f, NULL, ctx, destroy)
/* Calls f when p is resolved or fails. */
#define weft_promise_on_termination(p, f, ctx, destroy)                                                                          \
	weft__on(WEFT_SITE(), WEFT_KIND_ON_TERMINATION, p, NULL, NULL, f, ctx, destroy)
/* Calls f with the value when p is resolved, or g with the error when p fails. */
#define weft_promise_on_any(p, f, g, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_ANY, p, f, g, NULL, ctx, destroy)
/* Calls f with the error if p fails, and drops the value if p is resolved.  No promise stands for the end of f. */
#define weft_promise_dont_wait(p, f, ctx, destroy) weft__dont_wait(WEFT_SITE(), p, f, ctx, destroy)
/* Drops the value if p is resolved; passes the error to the hook of weft_promise_set_async_hook() if p fails. */
#define weft_promise_ignore_result(p) weft__dont_wait(WEFT_SITE(), p, NULL, NULL, NULL)
/* Calls f in a new promise that no promise awaits.  If the promise that f returns fails, passes its error to the hook of
 * weft_promise_set_async_hook(). */
#define weft_promise_async(f, ctx, destroy) weft__async(WEFT_SITE(), f, ctx, destroy)
/* Sets the function that gets the errors of weft_promise_async() and weft_promise_ignore_result().  With hook NULL, the default,
 * these errors appear only in the trace. */
WEFT__API void weft_promise_set_async_hook(weft_on_failure_fn *hook, void *ctx);

/* ---- Combinations ----
 *
 * A call takes over the promises in its array; the array itself stays the caller's. */

/* Returns a promise that ends as the first of the promises that ends.  If several of the promises have ended before the call, a
 * fixed pseudo-random sequence chooses one of them. */
#define weft_promise_choose(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* Returns a promise that ends as the first of the promises that ends, and then cancels the other promises. */
#define weft_promise_pick(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* Returns a promise that ends when at least one of the promises has ended.  The value of the returned promise is a struct
 * weft_values with the values of all promises that are resolved by then.  If some promises have failed, the returned promise
 * fails with the error of the first failed promise in array order. */
#define weft_promise_nchoose(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* Does weft_promise_nchoose(), and then cancels the promises that are still pending. */
#define weft_promise_npick(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* Returns a promise that ends when all of the promises have ended: with value NULL, or with the error of the promise that failed
 * first. */
#define weft_promise_join(promises, count) weft__join(WEFT_SITE(), promises, count)
/* Does weft_promise_join(), but the value of the returned promise is a struct weft_values with all values, in array order. */
#define weft_promise_all(promises, count) weft__all(WEFT_SITE(), promises, count)
/* Does weft_promise_all() with two promises. */
#define weft_promise_both(p, q) weft__all(WEFT_SITE(), (struct weft_promise *[]){p, q}, 2)
/* Returns a promise that ends as p does.  Cancelling the returned promise fails it at once and does not cancel p. */
#define weft_promise_protected(p) weft__protected(WEFT_SITE(), p)
/* Returns a promise that ends as p does, and that cannot be cancelled. */
#define weft_promise_no_cancel(p) weft__no_cancel(WEFT_SITE(), p)

struct weft_values {
	size_t count;
	void *values[]; /* the values, valid as long as the promise whose value is this struct */
};

/* ---- Pausing ---- */

/* Returns a promise that the next weft_promise_wakeup_paused() resolves. */
#define weft_promise_pause() weft__pause(WEFT_SITE())
/* Resolves all pending promises of weft_promise_pause(), and returns their number.  A main loop calls this function in each
 * iteration. */
WEFT__API size_t weft_promise_wakeup_paused(void);
/* Returns the number of pending promises of weft_promise_pause(). */
WEFT__API size_t weft_promise_paused_count(void);

/* ---- Synchronisation ----
 *
 * A function ..._create() returns NULL without memory.  Promises that still wait when ..._destroy() is called stay pending.  A
 * label is copied; NULL stands for no label. */

/* A condition variable: a signal wakes its first waiter, a broadcast wakes all waiters.  The trace contains each condition as a
 * promise. */
struct weft_condition;
struct weft_mutex;
WEFT__API struct weft_condition *weft_condition_create(const char *label);
WEFT__API void weft_condition_destroy(struct weft_condition *c);
/* Returns a promise that is resolved with the value of a signal or broadcast.  The mutex (may be NULL), which the caller has
 * locked, is unlocked during the wait. */
#define weft_condition_wait(c, mutex) weft__condition_wait(WEFT_SITE(), c, mutex)
/* Wake the first waiter or all waiters of c with a value or an error.  If c has no waiter, the value is destroyed. */
WEFT__API void weft_condition_signal(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast_error(struct weft_condition *c, int code, const char *message);

/* A variable that holds one value or is empty.  If the variable has a label, a put or take that must wait gets the label "put
 * LABEL" or "take LABEL". */
struct weft_mvar;
WEFT__API struct weft_mvar *weft_mvar_create_empty(const char *label);
WEFT__API struct weft_mvar *weft_mvar_create(const char *label, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_mvar_destroy(struct weft_mvar *m);
/* Returns a promise that is resolved when the variable is empty and then takes the value; cancelling the promise destroys the
 * value. */
#define weft_mvar_put(m, value, destroy) weft__mvar_put(WEFT_SITE(), m, value, destroy)
/* Returns a promise that is resolved with the value of the variable, which is then empty. */
#define weft_mvar_take(m) weft__mvar_take(WEFT_SITE(), m)

/* A queue of values with a limit: a push waits while `capacity` values (at least 1) are in the queue. */
struct weft_bounded;
WEFT__API struct weft_bounded *weft_bounded_create(size_t capacity);
WEFT__API void weft_bounded_destroy(struct weft_bounded *b);
/* Returns a promise that is resolved when the queue has the value; cancelling the promise destroys the value. */
#define weft_bounded_push(b, value, destroy) weft__bounded_push(WEFT_SITE(), b, value, destroy)
/* Returns a promise that is resolved with the oldest value, which leaves the queue. */
#define weft_bounded_next(b) weft__bounded_next(WEFT_SITE(), b)
/* Closes the queue.  Later pushes fail with WEFT_PROMISE_CLOSED, and so does each weft_bounded_next() after the last pushed
 * value. */
WEFT__API void weft_bounded_close(struct weft_bounded *b);

/* Makes a mutex without a label; returns NULL without memory. */
#define weft_mutex_create() weft__mutex_create(WEFT_SITE(), NULL)
/* Makes a mutex that has a label in traces; the label is copied.  Returns NULL without memory. */
#define weft_mutex_create_named(label) weft__mutex_create(WEFT_SITE(), label)
WEFT__API void weft_mutex_destroy(struct weft_mutex *m);
/* Returns a promise that is resolved when the mutex is locked for its caller. */
#define weft_mutex_lock(m) weft__mutex_lock(WEFT_SITE(), m)
/* Unlocks the mutex, or passes it to the first waiter.  Does nothing if the mutex is not locked. */
WEFT__API void weft_mutex_unlock(struct weft_mutex *m);
WEFT__API bool weft_mutex_is_locked(const struct weft_mutex *m);
/* Locks the mutex, calls f, and unlocks the mutex when the promise that f returns has ended.  Other calls that lock a mutex do
 * not record its holder. */
#define weft_mutex_with_lock(m, f, ctx, destroy) weft__mutex_with_lock(WEFT_SITE(), m, f, ctx, destroy)

/* A semaphore.  A trace shows the promises that wait for a semaphore, but not its holders; for a struct weft_pool it shows
 * both. */
struct weft_semaphore;
/* Makes a semaphore that `count` promises can acquire before a release; returns NULL without memory. */
WEFT__API struct weft_semaphore *weft_semaphore_create(size_t count);
WEFT__API void weft_semaphore_destroy(struct weft_semaphore *s);
/* Returns a promise that is resolved when the count is above 0 and has been lowered by 1. */
#define weft_semaphore_acquire(s) weft__semaphore_acquire(WEFT_SITE(), s)
/* Raises the count by 1, or resolves the first waiting acquire. */
WEFT__API void weft_semaphore_release(struct weft_semaphore *s);

/* A switch: a list of resources that are released together. */
struct weft_switch;
WEFT__API struct weft_switch *weft_switch_create(void);
/* Destroys the switch and the ctx of each hook that did not run. */
WEFT__API void weft_switch_destroy(struct weft_switch *s);
WEFT__API bool weft_switch_is_on(const struct weft_switch *s);
/* Adds a hook f. weft_switch_turn_off() calls all hooks, the last added hook first.  Returns 0, WEFT_ENOMEM, or WEFT_EINVAL if
 * the switch is off; an error destroys ctx. */
WEFT__API int weft_switch_add_hook(struct weft_switch *s, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Calls all hooks, and returns the weft_promise_join() of the promises that the hooks return. */
#define weft_switch_turn_off(s) weft__switch_turn_off(WEFT_SITE(), s)

/* A pool of objects that are expensive to make, such as connections; `limit` is the largest number of objects. */
struct weft_pool;
/* Makes a pool of objects; returns NULL without memory.  `make` returns a promise of a new object; the pool keeps this promise
 * until weft_pool_destroy(). */
#define weft_pool_create(limit, make, ctx, destroy) weft__pool_create(WEFT_SITE(), limit, make, ctx, destroy)
/* Destroys the pool, and drops the objects that no promise uses. */
WEFT__API void weft_pool_destroy(struct weft_pool *pool);
/* Calls f with an object of the pool as soon as one is free.  When the promise that f returned is resolved, the object goes back
 * to the pool; when that promise fails, the pool drops the object.  A trace shows the promises that wait for the pool, and those
 * that hold its objects. */
#define weft_pool_use(pool, f, ctx, destroy) weft__pool_use(WEFT_SITE(), pool, f, ctx, destroy)

/* ---- Trace ---- */

/* Labels the running promise; the text is copied. */
WEFT__API void weft_promise_label(const char *text);
/* Labels p; does nothing if p has ended.  The text of the label is copied, and recorded again after a ring has overwritten it. */
WEFT__API void weft_promise_set_label(struct weft_promise *p, const char *text);
/* Declares that p must end: if p never ends, readers of the trace report a fault. */
WEFT__API void weft_promise_should_resolve(const struct weft_promise *p);

/* A counter: a number whose changes the trace records.  Each counter must be static: static struct weft_counter c =
 * WEFT_PROMISE_COUNTER("requests", 0); */
struct weft_counter {
	struct weft_record_text name;
	int64_t value;
};
#define WEFT_PROMISE_COUNTER(literal, initial)                                                                                   \
	{                                                                                                                        \
		WEFT_COUNTER(literal), initial                                                                                   \
	}
/* Returns the value of the counter. */
WEFT__API int64_t weft_counter_value(const struct weft_counter *counter);
/* Sets the counter, and records its value. */
WEFT__API void weft_counter_set_value(struct weft_counter *counter, int64_t value);
/* Adds `by` to the counter, and records the change. */
WEFT__API void weft_counter_increase(struct weft_counter *counter, int64_t by);

/* Record that the main loop sleeps from now on, or that it runs again. */
WEFT__API void weft_promise_idle(enum weft_idle why);
WEFT__API void weft_promise_resume(void);

/* ---- Memory ---- */

/* The allocator of the promises of one OS thread. allocate() returns NULL if there is no memory. */
struct weft_promise_memory {
	void *(*allocate)(void *ctx, size_t bytes);
	void (*release)(void *ctx, void *memory, size_t bytes);
	void *ctx;
};
/* Sets the allocator of this OS thread's promises, and copies the struct.  Must be called before the first promise. */
WEFT__API void weft_promise_set_memory(const struct weft_promise_memory *memory);
/* Frees the memory that this OS thread keeps for future promises; call this function before the OS thread ends. */
WEFT__API void weft_promise_trim(void);

/* ---- What the macros call ---- */

struct weft_record_site;
WEFT__API bool weft__is_pending(const struct weft_promise *p); /* does not record that p was read */
WEFT__API struct weft_promise *weft__wait(
    struct weft_record_site *site, enum weft_kind kind, const char *label, bool literal, struct weft_resolver **resolver);
WEFT__API struct weft_promise *weft__make(struct weft_record_site *site, enum weft_kind kind, bool cancellable, const char *label,
    bool literal, struct weft_resolver **resolver);
WEFT__API struct weft_promise *weft__bind(
    struct weft_record_site *site, struct weft_promise *p, weft_then_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__map(
    struct weft_record_site *site, struct weft_promise *p, weft_map_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__catch(
    struct weft_record_site *site, struct weft_promise *p, weft_rescue_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__try_bind(struct weft_record_site *site, struct weft_promise *p, weft_then_fn *then,
    weft_rescue_fn *rescue, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__finalize(
    struct weft_record_site *site, struct weft_promise *p, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API int weft__on(struct weft_record_site *site, enum weft_kind kind, struct weft_promise *p, weft_on_value_fn *f,
    weft_on_failure_fn *g, weft_on_end_fn *h, void *ctx, weft_destroy_fn *destroy);
WEFT__API int weft__dont_wait(
    struct weft_record_site *site, struct weft_promise *p, weft_on_failure_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API int weft__async(struct weft_record_site *site, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__choose(
    struct weft_record_site *site, enum weft_kind kind, struct weft_promise *const *promises, size_t count);
WEFT__API struct weft_promise *weft__nchoose(
    struct weft_record_site *site, enum weft_kind kind, struct weft_promise *const *promises, size_t count);
WEFT__API struct weft_promise *weft__join(struct weft_record_site *site, struct weft_promise *const *promises, size_t count);
WEFT__API struct weft_promise *weft__all(struct weft_record_site *site, struct weft_promise *const *promises, size_t count);
WEFT__API struct weft_promise *weft__protected(struct weft_record_site *site, struct weft_promise *p);
WEFT__API struct weft_promise *weft__no_cancel(struct weft_record_site *site, struct weft_promise *p);
WEFT__API struct weft_promise *weft__pause(struct weft_record_site *site);
WEFT__API struct weft_promise *weft__condition_wait(
    struct weft_record_site *site, struct weft_condition *c, struct weft_mutex *mutex);
WEFT__API struct weft_promise *weft__mvar_put(
    struct weft_record_site *site, struct weft_mvar *m, void *value, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__mvar_take(struct weft_record_site *site, struct weft_mvar *m);
WEFT__API struct weft_promise *weft__bounded_push(
    struct weft_record_site *site, struct weft_bounded *b, void *value, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__bounded_next(struct weft_record_site *site, struct weft_bounded *b);
WEFT__API struct weft_mutex *weft__mutex_create(struct weft_record_site *site, const char *label);
WEFT__API struct weft_promise *weft__mutex_lock(struct weft_record_site *site, struct weft_mutex *m);
WEFT__API struct weft_promise *weft__mutex_with_lock(
    struct weft_record_site *site, struct weft_mutex *m, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__semaphore_acquire(struct weft_record_site *site, struct weft_semaphore *s);
WEFT__API struct weft_promise *weft__switch_turn_off(struct weft_record_site *site, struct weft_switch *s);
WEFT__API struct weft_pool *weft__pool_create(
    struct weft_record_site *site, size_t limit, weft_start_fn *make, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_pool *(weft_pool_create)(size_t limit, weft_start_fn *make, void *ctx, weft_destroy_fn *destroy);
WEFT__API struct weft_promise *weft__pool_use(
    struct weft_record_site *site, struct weft_pool *pool, weft_then_fn *f, void *ctx, weft_destroy_fn *destroy);

#ifdef __cplusplus
}
#endif
#endif
