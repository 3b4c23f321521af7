/* deep.c: chains of a million promises, a promise with a million waiters, and a loop of ten million iterations need no recursion,
 *and the memory of the loop does not grow.
 *
 *	deep [TRACE]	with a TRACE, the loop is recorded (and shorter)
 *
 * The C stack is limited to 64 KiB above what main uses.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/promise.h>

static size_t live, most_live; /* bytes */
static int bad;

static void *allocate(void *ctx, size_t bytes)
{
	live += bytes;
	if (live > most_live)
		most_live = live;
	return malloc(bytes);
}

static void release(void *ctx, void *memory, size_t bytes)
{
	live -= bytes;
	free(memory);
}

static void expect(bool truth, const char *what)
{
	if (!truth) {
		fprintf(stderr, "deep: %s\n", what);
		bad = 1;
	}
}

static size_t calls;

static struct weft_promise *pass(void *ctx, void *value)
{
	calls++;
	return weft_promise_return(value, NULL);
}

static void count(void *ctx, void *value)
{
	calls++;
}

static struct weft_promise *rescue(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_fail(failure->code, failure->message);
}

static struct weft_promise *nothing(void *ctx)
{
	return weft_promise_unit();
}

static struct weft_value same(void *ctx, void *value)
{
	calls++;
	return (struct weft_value){value, NULL};
}

enum { MILLION = 1000000 };

/* Each promise of a chain waits for the one before.  end 0: the first is resolved; 1: the last is cancelled; 2: the resolver of
 * the first is dropped. */
static void chain(int end)
{
	struct weft_resolver *first;
	struct weft_promise *p = weft_promise_task(&first);
	calls = 0;
	for (int i = 0; i < MILLION; i++)
		p = i % 2 ? weft_promise_map(p, same, NULL, NULL) : weft_promise_bind(p, pass, NULL, NULL);
	if (end == 0)
		weft_wakeup(first, &calls, NULL);
	else if (end == 1)
		weft_promise_cancel(p);
	if (end != 0)
		weft_resolver_drop(first);
	expect(calls == (end == 0 ? MILLION : 0), "a chain ran another number of callbacks");
	expect(
	    weft_promise_state(p) == (enum weft_promise_state[]){WEFT_RESOLVED, WEFT_FAILED, WEFT_PENDING}[end], "a chain's end");
	expect(end != 0 || weft_promise_value(p) == &calls, "a chain's value");
	weft_promise_unref(p);
}

/* Returns a combinator of one or several promises that waits for p; `i` selects the kind. */
static struct weft_promise *link_of_all_kinds(int i, struct weft_promise *p)
{
	struct weft_promise *two[2] = {p, weft_promise_ref(p)};
	switch (i % 10) {
	case 0: return weft_promise_join(two, 2);
	case 1: return weft_promise_all(two, 2);
	case 2: return weft_promise_choose(two, 2);
	case 3: return weft_promise_pick(two, 2);
	case 4: return weft_promise_npick(two, 2);
	default: weft_promise_unref(p);
	}
	switch (i % 10) {
	case 5: return weft_promise_catch(p, rescue, NULL, NULL);
	case 6: return weft_promise_try_bind(p, pass, rescue, NULL, NULL);
	case 7: return weft_promise_finalize(p, nothing, NULL, NULL);
	case 8: return weft_promise_no_cancel(p);
	default: return weft_promise_protected(p);
	}
}

/* In a chain of all combinators, the first promise is resolved; or the last one is cancelled and the resolver of the first is
 * dropped. */
static void all_kinds(bool resolved)
{
	struct weft_resolver *first;
	struct weft_promise *p = weft_promise_wait(&first);
	for (int i = 0; i < MILLION; i++)
		p = link_of_all_kinds(i, p);
	if (resolved) {
		weft_wakeup(first, &calls, NULL);
	} else {
		weft_promise_cancel(p);
		weft_resolver_drop(first);
	}
	/* The last promise is protected, so a cancel ends it, but not the promises before it. */
	expect(weft_promise_state(p) == (resolved ? WEFT_RESOLVED : WEFT_FAILED), "the end of a chain of all kinds");
	weft_promise_unref(p);
}

/* Cancels the last of a million joins, each of which joins the previous join and a task. */
static void joins(void)
{
	static struct weft_resolver *resolvers[MILLION];
	struct weft_promise *p = weft_promise_unit();
	for (int i = 0; i < MILLION; i++)
		p = weft_promise_both(p, weft_promise_task(&resolvers[i]));
	weft_promise_cancel(p);
	expect(weft_promise_state(p) == WEFT_FAILED, "joins were not cancelled");
	weft_promise_unref(p);
	for (int i = 0; i < MILLION; i++)
		weft_resolver_drop(resolvers[i]);
}

/* Destroys a value that keeps a promise, whose value keeps a promise, and so on, a million levels deep. */
static void unref(void *p)
{
	weft_promise_unref(p);
}

static void nested(void)
{
	struct weft_promise *p = weft_promise_unit();
	for (int i = 0; i < MILLION; i++)
		p = weft_promise_return(p, unref);
	weft_promise_unref(p);
}

static void waiters(void)
{
	struct weft_resolver *resolver;
	struct weft_promise *p = weft_promise_wait(&resolver);
	calls = 0;
	for (int i = 0; i < MILLION; i++)
		weft_promise_on_success(weft_promise_ref(p), count, NULL, NULL);
	weft_promise_unref(p);
	weft_wakeup(resolver, NULL, NULL);
	expect(calls == MILLION, "a million waiters");
}

static struct weft_counter turns_left = WEFT_PROMISE_COUNTER("turns left", 0);

/* A loop whose iterations each return a promise of the next.  The counter makes all iterations different, because equal
 * iterations are only counted. */
static struct weft_promise *turn(void *ctx, void *value)
{
	size_t *left = ctx;
	weft_counter_set_value(&turns_left, (int64_t)-- * left);
	if (*left == 0)
		return weft_promise_unit();
	return weft_promise_bind(weft_promise_pause(), turn, ctx, NULL);
}

static void loop(size_t turns)
{
	size_t left = turns + 1, before = live;
	most_live = live;
	struct weft_promise *p = turn(&left, NULL);
	while (weft_promise_wakeup_paused() > 0)
		;
	expect(weft_promise_state(p) == WEFT_RESOLVED && left == 0, "the loop's end");
	expect(most_live - before < 16384, "the loop's memory grew");
	weft_promise_unref(p);
}

/* A million promises are merged, each with the next one; the first access follows the whole chain once. */
static struct weft_promise *give(void *ctx, void *value)
{
	return weft_promise_ref(ctx);
}

static void proxies(void)
{
	struct weft_resolver *resolver, *last;
	struct weft_promise *inner = weft_promise_task(&last), *first = weft_promise_ref(inner);
	for (int i = 0; i < MILLION; i++) {
		struct weft_promise *outer = weft_promise_bind(weft_promise_wait(&resolver), give, inner, unref);
		weft_wakeup(resolver, NULL, NULL);
		inner = outer;
	}
	expect(weft_promise_state(first) == WEFT_PENDING, "proxies");
	weft_wakeup(last, &calls, NULL);
	expect(weft_promise_value(inner) == &calls && weft_promise_value(first) == &calls, "the value of proxies");
	weft_promise_unref(first);
	weft_promise_unref(inner);
}

static void *all(void *trace)
{
	weft_promise_set_memory(&(struct weft_promise_memory){allocate, release, NULL});
	if (trace) {
		struct weft_record_options options = {.directory = trace, .overwrite = true, .mode = WEFT_RECORD_GROW};
		expect(weft_start(&options) == WEFT_OK, weft_start_error());
		loop(MILLION);
		weft_stop();
	} else {
		for (int end = 0; end < 3; end++)
			chain(end);
		all_kinds(true);
		all_kinds(false);
		joins();
		nested();
		waiters();
		proxies();
		loop((size_t)10 * MILLION);
	}
	weft_promise_trim();
	expect(live == 0, "memory was not released");
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)64 * 1024);
	if (pthread_create(&thread, &attr, all, argc > 1 ? argv[1] : NULL) != 0)
		return 2;
	pthread_join(thread, NULL);
	return bad;
}
