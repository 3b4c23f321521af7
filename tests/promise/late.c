/* late.c: makes three recordings with promises that were created before the recording.
 *
 *	late DIRECTORY	records DIRECTORY/first, /second and /ring
 *
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/promise.h>

static void start(const char *directory, const char *name, enum weft_record_mode mode, size_t size_bytes)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	struct weft_record_options options = {.directory = path, .overwrite = true, .mode = mode, .size_bytes = size_bytes};
	if (weft_start(&options) != WEFT_OK) {
		fprintf(stderr, "late: %s\n", weft_start_error());
		exit(1);
	}
}

static struct weft_promise *next(void *ctx, void *value)
{
	weft_promise_label("next runs");
	return weft_promise_unit();
}

static struct weft_promise *for_ever(void *ctx)
{
	return ctx;
}

struct locked {
	struct weft_mutex *mutex;
	struct weft_promise *reply;
};

/* Waits for ever under a lock; the promise that owns the lock is merged with the promise of its caller. */
static struct weft_promise *locks(void *ctx, void *nothing)
{
	struct locked *l = ctx;
	return weft_mutex_with_lock(l->mutex, for_ever, l->reply, NULL);
}

static struct weft_promise *make(void *thing)
{
	return weft_promise_return(thing, NULL);
}

static struct weft_promise *use(void *reply, void *thing)
{
	return reply;
}

static struct weft_promise *turn(void *ctx, void *value)
{
	size_t *left = ctx;
	return --*left ? weft_promise_bind(weft_promise_pause(), turn, ctx, NULL) : weft_promise_unit();
}

/* Starts the first recording, in a callback. */
static struct weft_promise *starts(void *ctx, void *directory)
{
	start(directory, "first", WEFT_RECORD_GROW, 0);
	struct weft_resolver *inner;
	struct weft_promise *p = weft_promise_named_wait("made in the callback", &inner);
	weft_wakeup(inner, NULL, NULL);
	return p;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	struct weft_resolver *old, *oldest, *beginning, *other;
	char name[] = "copied x";
	/* These promises are created before any recording. */
	struct weft_promise *bound = weft_promise_bind(weft_promise_named_wait("old", &old), next, NULL, NULL);
	struct weft_promise *awaiting = weft_promise_bind(weft_promise_named_task(name, &oldest), next, NULL, NULL);
	struct weft_promise *both = weft_promise_both(weft_promise_ref(bound), weft_promise_ref(awaiting));
	name[0] = 'X'; /* the change has no effect, because weft has copied the label */
	weft_promise_should_resolve(awaiting);
	struct weft_condition *condition = weft_condition_create("old condition");
	struct weft_promise *heard = weft_condition_wait(condition, NULL);
	struct weft_mvar *mvar = weft_mvar_create_empty("old mvar");
	struct weft_promise *taken = weft_mvar_take(mvar);
	weft_promise_async(for_ever, weft_promise_named_wait("of async", &other), NULL);
	struct weft_promise *first = weft_promise_bind(weft_promise_wait(&beginning), starts, NULL, NULL);

	weft_wakeup(beginning, argv[1], NULL);
	weft_wakeup(old, NULL, NULL);
	weft_condition_broadcast(condition, NULL, NULL);
	weft_wakeup(other, NULL, NULL);
	weft_stop();

	/* "between" is created between two recordings.  The mvar is destroyed, so the second recording must not use its label. */
	struct weft_resolver *between;
	struct weft_promise *middle = weft_promise_named_task("between", &between);
	weft_mvar_destroy(mvar);
	start(argv[1], "second", WEFT_RECORD_GROW, 0);
	weft_wakeup(between, NULL, NULL);
	weft_stop();

	/* The ring of the third recording wraps many times. */
	size_t turns = 200000;
	start(argv[1], "ring", WEFT_RECORD_RING, 1 << 18);
	struct weft_resolver *long_ago;
	struct weft_promise *waited = weft_promise_bind(weft_promise_named_wait("long ago", &long_ago), next, NULL, NULL);
	struct weft_resolver *reply;
	struct locked l = {weft_mutex_create_named("a lock"), weft_promise_named_wait("reply", &reply)};
	struct weft_promise *holder = weft_promise_bind(weft_promise_pause(), locks, &l, NULL);
	struct weft_resolver *answer;
	struct weft_pool *pool = weft_pool_create(1, make, "a thing", NULL);
	struct weft_promise *user = weft_pool_use(pool, use, weft_promise_named_wait("answer", &answer), NULL);
	struct weft_promise *queued = weft_pool_use(pool, use, weft_promise_unit(), NULL);
	weft_promise_set_label(user, "has a thing");
	strcpy(name, "copied y");
	weft_promise_set_label(holder, name);
	name[0] = 'Y';
	struct weft_promise *loop = turn(&turns, NULL);
	while (weft_promise_wakeup_paused() > 0)
		;
	weft_stop();

	weft_wakeup(oldest, NULL, NULL);
	weft_wakeup(long_ago, NULL, NULL);
	weft_wakeup(reply, NULL, NULL);
	weft_wakeup(answer, NULL, NULL);
	struct weft_promise *all[] = {bound, awaiting, both, heard, taken, first, middle, waited, holder, user, queued, loop};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		weft_promise_unref(all[i]);
	weft_condition_destroy(condition);
	weft_mutex_destroy(l.mutex);
	weft_pool_destroy(pool);
	weft_promise_trim();
	return 0;
}
