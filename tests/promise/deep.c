/* deep.c: chains a million deep, a million waiters, ten million turns of a loop: no recursion, no memory that grows.
 *
 *	deep [TRACE]	with a TRACE, the loop is recorded (and shorter)
 *
 * The C stack is limited to 64 KiB above what main uses.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/promise.h>

static size_t live, most_live;
static int bad;

static void *allocate(void *ctx, size_t bytes)
{
	if (++live > most_live)
		most_live = live;
	return malloc(bytes);
}

static void release(void *ctx, void *memory, size_t bytes)
{
	live--;
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

static struct weft_value same(void *ctx, void *value)
{
	calls++;
	return (struct weft_value){value, NULL};
}

enum { MILLION = 1000000 };

/* Each waits for the one before; the first is resolved, cancelled, or nobody can resolve it any more. */
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

/* A loop whose every turn returns a promise of the next. */
static struct weft_promise *turn(void *ctx, void *value)
{
	size_t *left = ctx;
	if (--*left == 0)
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
	expect(most_live - before < 16, "the loop's memory grew");
	weft_promise_unref(p);
}

/* Each promise became one with the next: looking at the first goes a long way once. */
static struct weft_promise *give(void *ctx, void *value)
{
	return weft_promise_ref(ctx);
}

static void unref(void *p)
{
	weft_promise_unref(p);
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
