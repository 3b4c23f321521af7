/* promise.h: promises for C, with the semantics of OCaml's Lwt, that record themselves.
 *
 * A promise is pending until it is resolved with a value or fails with an error; then its waiters run.  While recording
 * (see record.h), the trace contains everything that happens to promises.
 *
 *	static struct weft_promise *greet(void *ctx, void *name) { puts(name); return weft_promise_unit(); }
 *
 *	struct weft_resolver *resolver;
 *	struct weft_promise *done = weft_promise_bind(weft_promise_wait(&resolver), greet, NULL, NULL);
 *	weft_wakeup(resolver, "Bob", NULL);
 *
 * OWNERSHIP, one rule: promises are counted references.  A function takes over each promise that it is given and gives you each
 * one that it returns, so calls nest.  Functions that only read a promise (their parameter is const), and cancel, on_cancel,
 * should_resolve and ref, leave it yours.  To use a promise twice, give away weft_promise_ref(p).
 *
 * A value belongs to its promise, and to the promises that were resolved with the same value because they waited.  When the last
 * of them is freed, the value's destructor (may be NULL) is called once.  A callback may use its value until it returns; to keep
 * the value longer, keep the promise.
 *
 * A callback's `ctx` belongs to the promise that will call it: its destructor (may be NULL) is called once, when that one
 * callback has returned, or when it is certain that the callback will never run.  If several callbacks share a ctx, give the
 * destructor to the last of them only, preferably to a weft_promise_finalize() around all of them.
 *
 * Dropping the last reference to a promise cancels nothing: its waiters still run.  A promise is freed when nothing can resolve
 * it any more (its resolver was dropped), together with all promises that wait for nothing else.
 *
 * ERRORS: calls do not fail, promises do.  Without memory a call drops all of its arguments and returns a promise that has
 * failed with WEFT_PROMISE_ENOMEM, which needs no memory.  A call with NULL in place of a promise does the same.
 *
 * ORDER: callbacks of one promise run in the reverse order of their registration.  When a callback resolves a promise, all
 * waiters of that promise run before the next callback.  Long chains and many callbacks need no stack.
 *
 * Promises, and all other objects here, belong to the OS thread that made them: there are no locks.
 * The macros in lower case record the source location of the call.  SPDX-License-Identifier: ISC */
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

/* Error codes.  Codes of 0 and above are the program's own; small negative codes are the system's (libuv's, -errno). */
enum weft_promise_code {
	WEFT_PROMISE_CANCELLED = -20001,
	WEFT_PROMISE_ENOMEM = -20002,
	WEFT_PROMISE_TIMEOUT = -20003,
	WEFT_PROMISE_CLOSED = -20004, /* the stream was closed */
	WEFT_PROMISE_OFF = -20005     /* the switch was turned off */
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

/* Callbacks.  A callback that returns a promise gives its reference away; NULL stands for a promise that failed with
 * WEFT_PROMISE_ENOMEM. */
typedef struct weft_promise *weft_then_fn(void *ctx, void *value);
typedef struct weft_promise *weft_rescue_fn(void *ctx, const struct weft_failure *failure);
typedef struct weft_promise *weft_start_fn(void *ctx);
typedef struct weft_value weft_map_fn(void *ctx, void *value);
typedef void weft_on_value_fn(void *ctx, void *value);
typedef void weft_on_failure_fn(void *ctx, const struct weft_failure *failure);
typedef void weft_on_end_fn(void *ctx);

/* ---- References ---- */

WEFT__API struct weft_promise *weft_promise_ref(struct weft_promise *p);
WEFT__API void weft_promise_unref(struct weft_promise *p); /* NULL does nothing */

/* ---- State ---- */

/* Returns the state.  If p has failed, the trace has that the program took notice of the error. */
WEFT__API enum weft_promise_state weft_promise_state(const struct weft_promise *p);
/* Returns the state, and records a read in the trace. */
WEFT__API enum weft_promise_state weft_promise_poll(const struct weft_promise *p);
/* Returns the value; NULL unless resolved.  Valid as long as the promise. */
WEFT__API void *weft_promise_value(const struct weft_promise *p);
/* Returns the error; NULL unless failed.  Valid as long as the promise. */
WEFT__API const struct weft_failure *weft_promise_failure(const struct weft_promise *p);
/* Returns the id in the trace; 0 if nothing has recorded since the promise was made. */
WEFT__API weft_id weft_promise_id(const struct weft_promise *p);

/* ---- Creation ---- */

WEFT__API struct weft_promise *weft_promise_return(void *value, weft_destroy_fn *destroy);
/* Returns a promise that is resolved with NULL; needs no memory. */
WEFT__API struct weft_promise *weft_promise_unit(void);
/* Returns a failed promise with a copy of the message; without memory it keeps only the code. */
WEFT__API struct weft_promise *weft_promise_fail(int code, const char *message);

/* Make a pending promise and its resolver.  A wait cannot be cancelled, a task can.  Every resolver ends in one wakeup or drop.
 * Without memory *resolver is NULL, which every call accepts. */
#define weft_promise_wait(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, NULL, true, resolver)
#define weft_promise_task(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_TASK, NULL, true, resolver)
/* Make a pending promise with a label, which is copied unless it is a literal. */
#define weft_promise_named_wait(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, label, __builtin_constant_p(label), resolver)
#define weft_promise_named_task(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_TASK, label, __builtin_constant_p(label), resolver)
/* Makes a task (cancellable) or a wait of any kind, for libraries that add their own operations. */
#define weft_promise_of_kind(kind, cancellable, label, resolver)                                                                 \
	weft__make(WEFT_SITE(), kind, cancellable, label, __builtin_constant_p(label), resolver)

/* Resolve the promise with a value or an error, run its waiters, and free the resolver.  If the promise was cancelled, the value
 * is destroyed. */
WEFT__API void weft_wakeup(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_error(struct weft_resolver *resolver, int code, const char *message);
/* Resolve the promise; inside another wakeup the waiters run after that wakeup. */
WEFT__API void weft_wakeup_later(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_later_error(struct weft_resolver *resolver, int code, const char *message);
/* Declares that no call will resolve the promise, and frees the resolver. */
WEFT__API void weft_resolver_drop(struct weft_resolver *resolver);
/* Calls f when the promise is cancelled, as weft_promise_on_cancel() does, but not after the resolver has ended.  f may use and
 * end the resolver.  For libraries that add their own operations.  WEFT_ENOMEM: nothing was registered. */
WEFT__API int weft_resolver_on_cancel(struct weft_resolver *resolver, weft_on_end_fn *f, void *ctx);

/* Fails the tasks that p waits for, directly or not, with WEFT_PROMISE_CANCELLED.  Does nothing if p waits for no task. */
WEFT__API void weft_promise_cancel(struct weft_promise *p);
/* Calls f when p fails by cancellation, before its waiters run; at once if p was cancelled already.  The last registered f runs
 * first.  WEFT_ENOMEM: nothing was registered, and ctx is destroyed. */
WEFT__API int weft_promise_on_cancel(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy);

/* ---- Sequence ---- */

/* When p is resolved, calls f with its value; the result ends as the promise that f returns.  An error of p passes through. */
#define weft_promise_bind(p, f, ctx, destroy) weft__bind(WEFT_SITE(), p, f, ctx, destroy)
/* When p is resolved, calls f with its value; the result is the value that f returns.  An error of p passes through. */
#define weft_promise_map(p, f, ctx, destroy) weft__map(WEFT_SITE(), p, f, ctx, destroy)
/* When p fails, calls f with the error; the result ends as the promise that f returns.  A value of p passes through. */
#define weft_promise_catch(p, f, ctx, destroy) weft__catch(WEFT_SITE(), p, f, ctx, destroy)
/* Binds and catches in one: `rescue` does not catch errors of `then`. */
#define weft_promise_try_bind(p, then, rescue, ctx, destroy) weft__try_bind(WEFT_SITE(), p, then, rescue, ctx, destroy)
/* Calls f when p ends in any way.  When the promise that f returns is resolved, the result ends as p did; if that promise fails,
 * the result fails with its error. */
#define weft_promise_finalize(p, f, ctx, destroy) weft__finalize(WEFT_SITE(), p, f, ctx, destroy)

/* ---- Callbacks without a result ----
 *
 * A callback runs at once if p has ended.  Returns 0, or WEFT_ENOMEM: nothing was registered, ctx is destroyed and p dropped. */
#define weft_promise_on_success(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_SUCCESS, p, f, NULL, NULL, ctx, destroy)
#define weft_promise_on_failure(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_FAILURE, p, NULL, f, NULL, ctx, destroy)
#define weft_promise_on_termination(p, f, ctx, destroy)                                                                          \
	weft__on(WEFT_SITE(), WEFT_KIND_ON_TERMINATION, p, NULL, NULL, f, ctx, destroy)
#define weft_promise_on_any(p, f, g, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_ANY, p, f, g, NULL, ctx, destroy)
/* Calls f with p's error; drops p's value. */
#define weft_promise_dont_wait(p, f, ctx, destroy) weft__dont_wait(WEFT_SITE(), p, f, ctx, destroy)
/* Drops p's value, and passes its error to the hook below. */
#define weft_promise_ignore_result(p) weft__dont_wait(WEFT_SITE(), p, NULL, NULL, NULL)
/* Runs f as a promise whose result no promise awaits.  Passes its error to the hook below. */
#define weft_promise_async(f, ctx, destroy) weft__async(WEFT_SITE(), f, ctx, destroy)
/* Sets the hook for errors that no promise awaits.  NULL, the default: errors appear only in the trace. */
WEFT__API void weft_promise_set_async_hook(weft_on_failure_fn *hook, void *ctx);

/* ---- Combinations ----
 *
 * The array stays the caller's; the call takes the promises in it. */

/* Ends as the first promise that ends.  If several have ended already, a fixed pseudo-random sequence chooses one of them. */
#define weft_promise_choose(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* Ends as weft_promise_choose() does, and cancels the other promises. */
#define weft_promise_pick(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* When at least one promise has ended, resolves with the values of all resolved promises, as a struct weft_values; or fails with
 * the error of the first failed promise in array order. */
#define weft_promise_nchoose(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* Ends as weft_promise_nchoose() does, and cancels the other promises. */
#define weft_promise_npick(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* When all promises have ended, resolves with NULL, or fails with the error of the promise that failed first. */
#define weft_promise_join(promises, count) weft__join(WEFT_SITE(), promises, count)
/* Ends as weft_promise_join() does; the value is a struct weft_values with all values, in array order. */
#define weft_promise_all(promises, count) weft__all(WEFT_SITE(), promises, count)
#define weft_promise_both(p, q) weft__all(WEFT_SITE(), (struct weft_promise *[]){p, q}, 2)
/* Ends as p does.  Cancelling the result fails it at once and does not cancel p. */
#define weft_promise_protected(p) weft__protected(WEFT_SITE(), p)
/* Ends as p does, and cannot be cancelled. */
#define weft_promise_no_cancel(p) weft__no_cancel(WEFT_SITE(), p)

struct weft_values {
	size_t count;
	void *values[]; /* valid as long as the promise that has this struct as its value */
};

/* ---- Pausing ---- */

/* Resolved at the next weft_promise_wakeup_paused(). */
#define weft_promise_pause() weft__pause(WEFT_SITE())
/* Resolves the promises that pause now, and returns their number.  For main loops. */
WEFT__API size_t weft_promise_wakeup_paused(void);
WEFT__API size_t weft_promise_paused_count(void);

/* ---- Synchronisation ----
 *
 * A create call returns NULL without memory.  After the destroy call, promises that still wait stay pending.  A label is copied;
 * NULL: no label. */

/* A condition; a signal wakes the first waiter, a broadcast wakes all.  A condition is a promise in the trace. */
struct weft_condition;
struct weft_mutex;
WEFT__API struct weft_condition *weft_condition_create(const char *label);
WEFT__API void weft_condition_destroy(struct weft_condition *c);
/* Is resolved with the signalled value.  The mutex (may be NULL) is unlocked during the wait. */
#define weft_condition_wait(c, mutex) weft__condition_wait(WEFT_SITE(), c, mutex)
/* Wake waiters with a value or an error.  Without a waiter the value is destroyed. */
WEFT__API void weft_condition_signal(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast_error(struct weft_condition *c, int code, const char *message);

/* A variable that is full or empty.  With a label, a put or take that must wait is labelled "put LABEL" or "take LABEL". */
struct weft_mvar;
WEFT__API struct weft_mvar *weft_mvar_create_empty(const char *label);
WEFT__API struct weft_mvar *weft_mvar_create(const char *label, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_mvar_destroy(struct weft_mvar *m);
/* Is resolved when the variable holds the value; if cancelled, the value is destroyed. */
#define weft_mvar_put(m, value, destroy) weft__mvar_put(WEFT_SITE(), m, value, destroy)
#define weft_mvar_take(m) weft__mvar_take(WEFT_SITE(), m)

/* A stream of values; at most `capacity` (at least 1) values wait to be read. */
struct weft_bounded;
WEFT__API struct weft_bounded *weft_bounded_create(size_t capacity);
WEFT__API void weft_bounded_destroy(struct weft_bounded *b);
#define weft_bounded_push(b, value, destroy) weft__bounded_push(WEFT_SITE(), b, value, destroy)
#define weft_bounded_next(b) weft__bounded_next(WEFT_SITE(), b)
/* Makes later pushes fail with WEFT_PROMISE_CLOSED; reads fail with it too once all pushed values are read. */
WEFT__API void weft_bounded_close(struct weft_bounded *b);

/* Makes a mutex; NULL when out of memory. */
#define weft_mutex_create() weft__mutex_create(WEFT_SITE(), NULL)
/* Makes a mutex with a label in traces, which is copied. */
#define weft_mutex_create_named(label) weft__mutex_create(WEFT_SITE(), label)
WEFT__API void weft_mutex_destroy(struct weft_mutex *m);
#define weft_mutex_lock(m) weft__mutex_lock(WEFT_SITE(), m)
/* Unlocks the mutex, and gives it to the first waiter.  Does nothing to an unlocked mutex. */
WEFT__API void weft_mutex_unlock(struct weft_mutex *m);
WEFT__API bool weft_mutex_is_locked(const struct weft_mutex *m);
/* Runs f under the lock, until the promise that f returns has ended.  Only this call records the holder of the mutex. */
#define weft_mutex_with_lock(m, f, ctx, destroy) weft__mutex_with_lock(WEFT_SITE(), m, f, ctx, destroy)

/* A semaphore.  A trace shows its waiters but not its holders; a pool shows both. */
struct weft_semaphore;
WEFT__API struct weft_semaphore *weft_semaphore_create(size_t count);
WEFT__API void weft_semaphore_destroy(struct weft_semaphore *s);
#define weft_semaphore_acquire(s) weft__semaphore_acquire(WEFT_SITE(), s)
WEFT__API void weft_semaphore_release(struct weft_semaphore *s);

/* A switch: a list of resources that are released together. */
struct weft_switch;
WEFT__API struct weft_switch *weft_switch_create(void);
/* Destroys the switch; hooks that did not run are dropped. */
WEFT__API void weft_switch_destroy(struct weft_switch *s);
WEFT__API bool weft_switch_is_on(const struct weft_switch *s);
/* Adds a hook; turning the switch off calls f, last added first.  Returns WEFT_ENOMEM, or WEFT_EINVAL if the switch is off; then
 * ctx is destroyed. */
WEFT__API int weft_switch_add_hook(struct weft_switch *s, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Runs all hooks; the result is the join of their promises. */
#define weft_switch_turn_off(s) weft__switch_turn_off(WEFT_SITE(), s)

/* A pool of at most `limit` objects that are expensive to make, such as connections. */
struct weft_pool;
/* Makes a pool.  make returns a promise of an object, which the pool keeps until it is destroyed. */
#define weft_pool_create(limit, make, ctx, destroy) weft__pool_create(WEFT_SITE(), limit, make, ctx, destroy)
WEFT__API void weft_pool_destroy(struct weft_pool *pool);
/* Runs f with an object.  When the promise that f returned is resolved, the object goes back to the pool; when it fails, the
 * object is thrown away.  A trace shows the waiters of the pool and the holders of its objects. */
#define weft_pool_use(pool, f, ctx, destroy) weft__pool_use(WEFT_SITE(), pool, f, ctx, destroy)

/* ---- Trace ---- */

/* Labels the promise whose code runs. */
WEFT__API void weft_promise_label(const char *text);
/* Labels p, which is pending.  The text is copied, and recorded again when a ring has overwritten it. */
WEFT__API void weft_promise_set_label(struct weft_promise *p, const char *text);
/* Declares that p must resolve: if it never does, the trace counts that as a failure. */
WEFT__API void weft_promise_should_resolve(const struct weft_promise *p);

/* A value over time.  Must be static, as struct weft_counter c = WEFT_PROMISE_COUNTER("requests", 0). */
struct weft_counter {
	struct weft_record_text name;
	int64_t value;
};
#define WEFT_PROMISE_COUNTER(literal, initial)                                                                                   \
	{                                                                                                                        \
		WEFT_COUNTER(literal), initial                                                                                   \
	}
WEFT__API int64_t weft_counter_value(const struct weft_counter *counter);
WEFT__API void weft_counter_set_value(struct weft_counter *counter, int64_t value);
WEFT__API void weft_counter_increase(struct weft_counter *counter, int64_t by);

/* For main loops: record that the program sleeps from now on, and that it runs again. */
WEFT__API void weft_promise_idle(enum weft_idle why);
WEFT__API void weft_promise_resume(void);

/* ---- Memory ---- */

/* Sets the source of memory for this OS thread's promises; call it before the first promise.  allocate returns NULL if there is
 * no memory. */
struct weft_promise_memory {
	void *(*allocate)(void *ctx, size_t bytes);
	void (*release)(void *ctx, void *memory, size_t bytes);
	void *ctx;
};
WEFT__API void weft_promise_set_memory(const struct weft_promise_memory *memory);
/* Frees the memory that is kept for future promises; call it before an OS thread ends. */
WEFT__API void weft_promise_trim(void);

/* ---- What the macros call ---- */

struct weft_record_site;
WEFT__API bool weft__is_pending(const struct weft_promise *p); /* records nothing */
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
