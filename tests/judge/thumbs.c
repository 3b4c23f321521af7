/* thumbs FAULT SEED: small pictures of many, in weft's promises: each is looked up, scaled on the thread pool, sent to a store
 * that lets three in at once, and entered in an album and a list under their locks, once the disk has room.  FAULT is one
 * everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

enum { PICTURES = 60 };

struct picture {
	int number, tries;
	struct weft_promise *thumbnail;
};

static const char *fault;
static struct weft_uv *uv;
static struct weft_semaphore *doors;
static struct weft_mutex *album, *list;
static struct weft_condition *room;
static struct weft_resolver *forgotten;
static struct weft_counter to_show = WEFT_PROMISE_COUNTER("previews to show", 0);
static struct picture pictures[PICTURES];
static int shown;
static bool has_room;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(const struct picture *p, const char *name)
{
	return is(name) && p->number % 20 == 17;
}

static void compute_for(int ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	while (uv_hrtime() < end)
		;
}

static struct weft_promise *sleep_for(int ms)
{
	return weft_uv_sleep(uv, ms);
}

/* ---- Entering ---- */

static struct weft_promise *write_entry(void *ctx)
{
	return sleep_for(1);
}

static struct weft_promise *then_list(void *ctx, void *nothing)
{
	return weft_mutex_with_lock(list, write_entry, ctx, NULL);
}

static struct weft_promise *then_album(void *ctx, void *nothing)
{
	return weft_mutex_with_lock(album, write_entry, ctx, NULL);
}

static struct weft_promise *album_first(void *ctx)
{
	return weft_promise_bind(sleep_for(1), then_list, ctx, NULL);
}

static struct weft_promise *list_first(void *ctx)
{
	return weft_promise_bind(sleep_for(1), then_album, ctx, NULL);
}

static struct weft_promise *enter(void *ctx, void *nothing)
{
	struct picture *p = ctx;
	weft_promise_label("entering");
	if (is("locks") && p->number % 2)
		return weft_mutex_with_lock(list, list_first, p, NULL);
	return weft_mutex_with_lock(album, album_first, p, NULL);
}

static struct weft_promise *await_room(void *ctx, void *nothing)
{
	struct picture *p = ctx;
	if (has_room && !hits(p, "gate"))
		return weft_promise_bind(weft_promise_unit(), enter, p, NULL);
	return weft_promise_bind(weft_condition_wait(room, NULL), enter, p, NULL);
}

static struct weft_promise *make_room(void *ctx, void *nothing)
{
	has_room = true;
	weft_condition_broadcast(room, NULL, NULL);
	return weft_promise_unit();
}

/* ---- Sending ---- */

static struct weft_promise *upload(void *ctx);

static struct weft_promise *answered(void *ctx, void *nothing)
{
	struct picture *p = ctx;
	if (p->tries++ < (hits(p, "storm") ? 200 : p->number % 9 == 4 ? 1 : 0))
		return weft_promise_fail(3, "the store is full");
	return weft_promise_unit();
}

static struct weft_promise *upload_now(void *ctx, void *nothing)
{
	return upload(ctx);
}

static struct weft_promise *upload_again(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_bind(sleep_for(is("storm") ? 0 : 10), upload_now, ctx, NULL);
}

static struct weft_promise *upload(void *ctx)
{
	struct picture *p = ctx;
	if (hits(p, "forgotten"))
		return weft_promise_named_wait("answer of the store", &forgotten);
	return weft_promise_catch(
	    weft_promise_bind(sleep_for(1 + (int)(lrand48() % 3)), answered, p, NULL), upload_again, p, NULL);
}

static struct weft_promise *leave(void *ctx)
{
	weft_semaphore_release(doors);
	return weft_promise_unit();
}

static struct weft_promise *scaled(void *ctx, void *nothing);

/* ---- Scaling ---- */

static struct weft_value scale(void *ctx)
{
	compute_for(1);
	return (struct weft_value){NULL, NULL};
}

/* All that are there, or, by mistake, one at a time, and slowly. */
static struct weft_promise *show(void *ctx, void *nothing)
{
	const int there = (int)weft_counter_value(&to_show), some = is("flood") && there > 1 ? 1 : there;
	if (some > 0)
		weft_counter_increase(&to_show, -some);
	shown += some;
	if (shown == PICTURES * 4)
		return weft_promise_unit();
	return weft_promise_bind(sleep_for(is("flood") ? 15 : 2), show, NULL, NULL);
}

static struct weft_promise *no_data(void *ctx, void *nothing)
{
	return weft_promise_fail(8, "no date in the picture");
}

static struct weft_promise *inside(void *ctx, void *nothing)
{
	return weft_promise_finalize(upload(ctx), leave, ctx, NULL);
}

static struct weft_promise *scaled(void *ctx, void *nothing)
{
	struct picture *p = ctx;
	weft_promise_label("scaled");
	if (hits(p, "block"))
		usleep(70000);
	if (hits(p, "ignored"))
		weft_promise_ignore_result(weft_promise_bind(sleep_for(1), no_data, NULL, NULL));
	weft_counter_increase(&to_show, 4);
	return weft_promise_bind(weft_promise_bind(weft_semaphore_acquire(doors), inside, p, NULL), await_room, p, NULL);
}

static struct weft_promise *make_thumbnail(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_work(uv, scale, NULL, NULL), scaled, ctx, NULL);
}

/* A series of two has one frame: the first waits for the second; by mistake also the other way round. */
static struct weft_promise *with_series(void *ctx, void *nothing)
{
	struct picture *p = ctx;
	int other = p->number == 17 ? 18 : p->number == 18 ? 17 : -1;
	if (is("circle") && other >= 0)
		return weft_promise_bind(weft_promise_ref(pictures[other].thumbnail), make_thumbnail, p, NULL);
	return make_thumbnail(p, NULL);
}

static struct weft_promise *next_picture(void *ctx, void *nothing)
{
	static struct weft_promise *all[PICTURES];
	static int count;
	if (count == PICTURES)
		return weft_promise_join(all, count);
	struct picture *p = &pictures[count];
	char label[32];
	p->number = count;
	p->thumbnail = weft_promise_bind(sleep_for(4), with_series, p, NULL);
	snprintf(label, sizeof label, "picture %d", count);
	weft_promise_set_label(p->thumbnail, label);
	weft_promise_should_resolve(p->thumbnail);
	all[count++] = weft_promise_ref(p->thumbnail);
	return weft_promise_bind(sleep_for((int)(lrand48() % 4)), next_picture, NULL, NULL);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	uv = weft_uv_create(NULL);
	doors = weft_semaphore_create(3);
	album = weft_mutex_create_named("album");
	list = weft_mutex_create_named("list");
	room = weft_condition_create("room on the disk");
	weft_promise_ignore_result(weft_promise_bind(sleep_for(25), make_room, NULL, NULL));
	weft_promise_ignore_result(weft_promise_bind(sleep_for(10), show, NULL, NULL));
	struct weft_promise *end = next_picture(NULL, NULL);
	if (weft_uv_run(uv, end, is("none") ? 0 : 1500) != WEFT_OK)
		return 1;
	weft_promise_unref(end);
	for (int i = 0; i < PICTURES; i++)
		weft_promise_unref(pictures[i].thumbnail);
	return 0;
}
