/* promise.h: promises for C, with the semantics of OCaml's Lwt, that record themselves.
 *
 * A promise is pending until it is resolved with a value or fails with an error; then what waits for it runs.  While something
 * records (see record.h), everything that happens to promises is in the trace.
 *
 *	static struct weft_promise *greet(void *ctx, void *name) { puts(name); return weft_promise_unit(); }
 *
 *	struct weft_resolver *resolver;
 *	struct weft_promise *done = weft_promise_bind(weft_promise_wait(&resolver), greet, NULL, NULL);
 *	weft_wakeup(resolver, "Bob", NULL);
 *
 * OWNERSHIP, one rule: promises are counted references.  A function takes over each promise that it is given and gives you each
 * one that it returns, so calls nest.  Those that only look at one (they take it as const) or poke at it (cancel, on_cancel,
 * should_resolve, ref) leave it yours.  To use a promise twice, give away weft_promise_ref(p).
 *
 * A value belongs to the promise that holds it and lives as long as it, and as long as any promise that was resolved with the
 * same value by waiting for it; then its destructor (may be NULL) is called, once.  A callback may use the value it is given
 * until it returns; to keep the value longer, keep the promise.
 *
 * A callback's `ctx` belongs to the promise that will call it: its destructor (may be NULL) is called once, when that one
 * callback has returned, or when it is certain that the callback will never run.  If several callbacks share a ctx, give the
 * destructor to the last of them only, best to a weft_promise_finalize() around the whole.
 *
 * Dropping the last reference to a promise cancels nothing: what waits for it still runs.  A promise goes when nobody can
 * resolve it any more (its resolver was dropped), and with it all promises that wait for nothing else.
 *
 * ERRORS: calls do not fail, promises do.  Without memory a call drops all that it was given and returns a promise that has
 * failed with WEFT_PROMISE_ENOMEM, which needs no memory; a call that is given NULL in place of a promise does the same.
 *
 * ORDER: callbacks of one promise run in the reverse order of their registration.  When a callback resolves a promise, everything
 * that waits for that promise runs before the next callback.  Long chains and many callbacks need no stack.
 *
 * A promise, and everything else here, belongs to the OS thread that made it: nothing is locked.
 * The macros in lower case add the place of the call, which the trace keeps.  SPDX-License-Identifier: ISC */
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

/* Codes of errors.  0 and up are the program's own; small negative ones are the system's (libuv's, -errno). */
enum weft_promise_code {
	WEFT_PROMISE_CANCELLED = -20001,
	WEFT_PROMISE_ENOMEM = -20002,
	WEFT_PROMISE_TIMEOUT = -20003,
	WEFT_PROMISE_CLOSED = -20004, /* the stream has ended */
	WEFT_PROMISE_OFF = -20005     /* the switch is off */
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

/* Callbacks.  Those that return a promise give it away; NULL: a promise that failed with WEFT_PROMISE_ENOMEM. */
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

/* ---- Looking ---- */

WEFT__API enum weft_promise_state weft_promise_state(const struct weft_promise *p);
/* The same, and the trace gets a read. */
WEFT__API enum weft_promise_state weft_promise_poll(const struct weft_promise *p);
/* NULL unless resolved; valid as long as the promise. */
WEFT__API void *weft_promise_value(const struct weft_promise *p);
/* NULL unless failed; valid as long as the promise. */
WEFT__API const struct weft_failure *weft_promise_failure(const struct weft_promise *p);
/* The id in the trace; 0 if nothing has recorded since the promise was made. */
WEFT__API weft_id weft_promise_id(const struct weft_promise *p);

/* ---- Making ---- */

WEFT__API struct weft_promise *weft_promise_return(void *value, weft_destroy_fn *destroy);
/* A promise that is resolved with NULL; needs no memory. */
WEFT__API struct weft_promise *weft_promise_unit(void);
/* Copies the message; without memory for that only the code is kept. */
WEFT__API struct weft_promise *weft_promise_fail(int code, const char *message);

/* A promise and what resolves it.  A wait cannot be cancelled, a task can.  Every resolver ends in one wakeup or drop.  Without
 * memory: *resolver is NULL, which they all accept. */
#define weft_promise_wait(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, NULL, true, resolver)
#define weft_promise_task(resolver) weft__wait(WEFT_SITE(), WEFT_KIND_TASK, NULL, true, resolver)
/* The label is copied, unless it is a literal. */
#define weft_promise_named_wait(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_WAIT, label, __builtin_constant_p(label), resolver)
#define weft_promise_named_task(label, resolver)                                                                                 \
	weft__wait(WEFT_SITE(), WEFT_KIND_TASK, label, __builtin_constant_p(label), resolver)
/* A task (cancellable) or a wait of any kind, for those who bring things of their own to promises. */
#define weft_promise_of_kind(kind, cancellable, label, resolver)                                                                 \
	weft__make(WEFT_SITE(), kind, cancellable, label, __builtin_constant_p(label), resolver)

/* Resolves the promise with a value or an error, and runs its waiters before it returns.  If the promise was cancelled, the value
 * is destroyed.  The resolver is freed. */
WEFT__API void weft_wakeup(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_error(struct weft_resolver *resolver, int code, const char *message);
/* The same, but inside another wakeup the waiters run after that one. */
WEFT__API void weft_wakeup_later(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_wakeup_later_error(struct weft_resolver *resolver, int code, const char *message);
/* Tells that nobody will resolve the promise. */
WEFT__API void weft_resolver_drop(struct weft_resolver *resolver);
/* Calls f when the promise is cancelled, as weft_promise_on_cancel() does, but not after the resolver is gone; f may use and end
 * the resolver.  For those who bring things of their own to promises.  WEFT_ENOMEM: nothing was registered. */
WEFT__API int weft_resolver_on_cancel(struct weft_resolver *resolver, weft_on_end_fn *f, void *ctx);

/* Fails the tasks that p waits for, directly or not, with WEFT_PROMISE_CANCELLED; does nothing to a promise that waits for none.
 */
WEFT__API void weft_promise_cancel(struct weft_promise *p);
/* Calls f when p fails by being cancelled, before its waiters run; at once if that has happened.  The last registered runs first.
 * WEFT_ENOMEM: nothing was registered, and ctx is destroyed. */
WEFT__API int weft_promise_on_cancel(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy);

/* ---- Sequence ---- */

/* When p is resolved, f is called with its value, and the promise that f returns is the result.  Errors pass by. */
#define weft_promise_bind(p, f, ctx, destroy) weft__bind(WEFT_SITE(), p, f, ctx, destroy)
/* The same where f returns a value. */
#define weft_promise_map(p, f, ctx, destroy) weft__map(WEFT_SITE(), p, f, ctx, destroy)
/* When p fails, f is called with the error, and the promise that f returns is the result.  Values pass by. */
#define weft_promise_catch(p, f, ctx, destroy) weft__catch(WEFT_SITE(), p, f, ctx, destroy)
/* Bind and catch in one: errors of `then` are not caught by `rescue`. */
#define weft_promise_try_bind(p, then, rescue, ctx, destroy) weft__try_bind(WEFT_SITE(), p, then, rescue, ctx, destroy)
/* However p ends, f is called; when the promise that f returned is resolved, the result ends as p did; if it fails, so. */
#define weft_promise_finalize(p, f, ctx, destroy) weft__finalize(WEFT_SITE(), p, f, ctx, destroy)

/* ---- Callbacks without a result ----
 *
 * At once if p has ended.  0, or WEFT_ENOMEM: nothing was registered, ctx is destroyed and p dropped. */
#define weft_promise_on_success(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_SUCCESS, p, f, NULL, NULL, ctx, destroy)
#define weft_promise_on_failure(p, f, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_FAILURE, p, NULL, f, NULL, ctx, destroy)
#define weft_promise_on_termination(p, f, ctx, destroy)                                                                          \
	weft__on(WEFT_SITE(), WEFT_KIND_ON_TERMINATION, p, NULL, NULL, f, ctx, destroy)
#define weft_promise_on_any(p, f, g, ctx, destroy) weft__on(WEFT_SITE(), WEFT_KIND_ON_ANY, p, f, g, NULL, ctx, destroy)
/* f handles p's error; p's value is dropped. */
#define weft_promise_dont_wait(p, f, ctx, destroy) weft__dont_wait(WEFT_SITE(), p, f, ctx, destroy)
/* The same, but the hook below gets the error. */
#define weft_promise_ignore_result(p) weft__dont_wait(WEFT_SITE(), p, NULL, NULL, NULL)
/* Runs f as a promise of its own, for which nobody waits.  The hook below gets its error. */
#define weft_promise_async(f, ctx, destroy) weft__async(WEFT_SITE(), f, ctx, destroy)
/* Sets the hook that gets the errors that nobody waits for.  NULL, the default: only the trace has them. */
WEFT__API void weft_promise_set_async_hook(weft_on_failure_fn *hook, void *ctx);

/* ---- Several ----
 *
 * The array is the caller's; the promises in it are taken. */

/* Ends as the first of them that ends; if several have ended, as one of them (a fixed pseudo-random sequence decides). */
#define weft_promise_choose(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* The same, and cancels the others. */
#define weft_promise_pick(promises, count) weft__choose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* When at least one has ended: the values of all that are resolved, as a struct weft_values; or the error of the first of
 * them in order that failed. */
#define weft_promise_nchoose(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_CHOOSE, promises, count)
/* The same, and cancels the others. */
#define weft_promise_npick(promises, count) weft__nchoose(WEFT_SITE(), WEFT_KIND_PICK, promises, count)
/* When all have ended: NULL, or the error of the one that failed first. */
#define weft_promise_join(promises, count) weft__join(WEFT_SITE(), promises, count)
/* The same with their values, in order, as a struct weft_values. */
#define weft_promise_all(promises, count) weft__all(WEFT_SITE(), promises, count)
#define weft_promise_both(p, q) weft__all(WEFT_SITE(), (struct weft_promise *[]){p, q}, 2)
/* Ends as p does; cancelling it fails it at once and leaves p alone. */
#define weft_promise_protected(p) weft__protected(WEFT_SITE(), p)
/* Ends as p does, and cannot be cancelled. */
#define weft_promise_no_cancel(p) weft__no_cancel(WEFT_SITE(), p)

struct weft_values {
	size_t count;
	void *values[]; /* as long as the promise that has this as its value */
};

/* ---- Pausing ---- */

/* Resolved at the next weft_promise_wakeup_paused(). */
#define weft_promise_pause() weft__pause(WEFT_SITE())
/* For main loops: resolves those that pause now.  Returns how many there were. */
WEFT__API size_t weft_promise_wakeup_paused(void);
WEFT__API size_t weft_promise_paused_count(void);

/* ---- Things to wait at ----
 *
 * Made by create (NULL without memory), ended by destroy: what still waits there then stays pending.  A label is copied, NULL: no
 * label. */

/* A condition: those who wait are woken by a signal (the first) or a broadcast (all).  In the trace it is a promise of its own.
 */
struct weft_condition;
struct weft_mutex;
WEFT__API struct weft_condition *weft_condition_create(const char *label);
WEFT__API void weft_condition_destroy(struct weft_condition *c);
/* Resolved with what is signalled.  The mutex (may be NULL) is unlocked meanwhile. */
#define weft_condition_wait(c, mutex) weft__condition_wait(WEFT_SITE(), c, mutex)
/* Nobody waits: the value is destroyed. */
WEFT__API void weft_condition_signal(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast(struct weft_condition *c, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_condition_broadcast_error(struct weft_condition *c, int code, const char *message);

/* A variable that is full or empty.  With a label, puts and takes that must wait are labelled "put LABEL" and "take LABEL". */
struct weft_mvar;
WEFT__API struct weft_mvar *weft_mvar_create_empty(const char *label);
WEFT__API struct weft_mvar *weft_mvar_create(const char *label, void *value, weft_destroy_fn *destroy);
WEFT__API void weft_mvar_destroy(struct weft_mvar *m);
/* Resolved when the value is in it; cancelled, the value is destroyed. */
#define weft_mvar_put(m, value, destroy) weft__mvar_put(WEFT_SITE(), m, value, destroy)
#define weft_mvar_take(m) weft__mvar_take(WEFT_SITE(), m)

/* A stream of values of which at most `capacity` (at least 1) wait to be read. */
struct weft_bounded;
WEFT__API struct weft_bounded *weft_bounded_create(size_t capacity);
WEFT__API void weft_bounded_destroy(struct weft_bounded *b);
#define weft_bounded_push(b, value, destroy) weft__bounded_push(WEFT_SITE(), b, value, destroy)
#define weft_bounded_next(b) weft__bounded_next(WEFT_SITE(), b)
/* From now on pushes fail with WEFT_PROMISE_CLOSED; so do reads, when what was pushed is read. */
WEFT__API void weft_bounded_close(struct weft_bounded *b);

/* NULL when out of memory. */
#define weft_mutex_create() weft__mutex_create(WEFT_SITE(), NULL)
/* One that traces know by that name, which is copied. */
#define weft_mutex_create_named(label) weft__mutex_create(WEFT_SITE(), label)
WEFT__API void weft_mutex_destroy(struct weft_mutex *m);
#define weft_mutex_lock(m) weft__mutex_lock(WEFT_SITE(), m)
/* Gives it to the first who waits.  Does nothing to one that is not locked. */
WEFT__API void weft_mutex_unlock(struct weft_mutex *m);
WEFT__API bool weft_mutex_is_locked(const struct weft_mutex *m);
/* f, under the lock, until the promise that it returned has ended.  Only then a trace tells who holds the mutex. */
#define weft_mutex_with_lock(m, f, ctx, destroy) weft__mutex_with_lock(WEFT_SITE(), m, f, ctx, destroy)

/* A trace tells who waits; who has acquired it is not known: a pool tells that. */
struct weft_semaphore;
WEFT__API struct weft_semaphore *weft_semaphore_create(size_t count);
WEFT__API void weft_semaphore_destroy(struct weft_semaphore *s);
#define weft_semaphore_acquire(s) weft__semaphore_acquire(WEFT_SITE(), s)
WEFT__API void weft_semaphore_release(struct weft_semaphore *s);

/* A list of things that are released together. */
struct weft_switch;
WEFT__API struct weft_switch *weft_switch_create(void);
/* Hooks that did not run are dropped. */
WEFT__API void weft_switch_destroy(struct weft_switch *s);
WEFT__API bool weft_switch_is_on(const struct weft_switch *s);
/* f is called when it is turned off, last added first.  WEFT_ENOMEM; WEFT_EINVAL: it is off.  Then ctx is destroyed. */
WEFT__API int weft_switch_add_hook(struct weft_switch *s, weft_start_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Runs all hooks; the join of what they return. */
#define weft_switch_turn_off(s) weft__switch_turn_off(WEFT_SITE(), s)

/* At most `limit` things that are expensive to make, such as connections. */
struct weft_pool;
/* make returns a promise of a thing, which the pool keeps until it is destroyed. */
#define weft_pool_create(limit, make, ctx, destroy) weft__pool_create(WEFT_SITE(), limit, make, ctx, destroy)
WEFT__API void weft_pool_destroy(struct weft_pool *pool);
/* f with a thing, which goes back when the promise that f returned is resolved, and is thrown away when it fails.  A trace tells
 * who waits for one, and that that promise has one. */
#define weft_pool_use(pool, f, ctx, destroy) weft__pool_use(WEFT_SITE(), pool, f, ctx, destroy)

/* ---- The trace ---- */

/* Labels the promise whose code runs. */
WEFT__API void weft_promise_label(const char *text);
/* Labels p, which is pending; the text is copied, and told again when a ring has forgotten it. */
WEFT__API void weft_promise_set_label(struct weft_promise *p, const char *text);
/* p is expected to resolve: if it never does, the trace counts that as a failure. */
WEFT__API void weft_promise_should_resolve(const struct weft_promise *p);

/* A value over time.  Static, as struct weft_counter c = WEFT_PROMISE_COUNTER("requests", 0). */
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

/* For main loops: the program sleeps from now; it runs again. */
WEFT__API void weft_promise_idle(enum weft_idle why);
WEFT__API void weft_promise_resume(void);

/* ---- Memory ---- */

/* Where this OS thread's promises get their memory; before its first one.  allocate returns NULL where there is none. */
struct weft_promise_memory {
	void *(*allocate)(void *ctx, size_t bytes);
	void (*release)(void *ctx, void *memory, size_t bytes);
	void *ctx;
};
WEFT__API void weft_promise_set_memory(const struct weft_promise_memory *memory);
/* Gives back the memory that is kept for the next promises: before an OS thread ends. */
WEFT__API void weft_promise_trim(void);

/* ---- What the macros call ---- */

struct weft_record_site;
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
