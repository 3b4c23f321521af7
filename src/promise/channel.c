/* channel.c: mvars and bounded streams, in which values wait for readers, and writers wait for free capacity.
 * SPDX-License-Identifier: ISC
 */
#include "promise/core.h"

struct channel {
	struct weft__link readers; /* a queue of tasks */
	struct weft__link writers;
	bool closed;
	char *put_label, *take_label;
	size_t capacity, count, first;
	struct weft_value value[]; /* a ring */
};

/* A writer that waits for space to put its value. */
struct writer {
	struct weft__link link;
	struct weft_promise *task; /* counted */
	struct weft_value value;
};

/* These structs are the public types. */
struct weft_mvar {
	struct channel channel;
};
struct weft_bounded {
	struct channel channel;
};

static void destroy_value(struct weft_value value)
{
	if (value.destroy)
		value.destroy(value.pointer);
}

static struct channel *channel_create(size_t capacity)
{
	struct channel *c = capacity > SIZE_MAX / 64 ? NULL : weft__allocate(sizeof *c + capacity * sizeof c->value[0]);
	if (!c)
		return NULL;
	*c = (struct channel){.capacity = capacity};
	weft__list_init(&c->readers);
	weft__list_init(&c->writers);
	return c;
}

static void channel_destroy(struct channel *c)
{
	if (!c)
		return;
	weft__queue_drop(&c->readers, c->take_label);
	while (!weft__list_is_empty(&c->writers)) {
		struct writer *w = WEFT__CONTAINER(weft__list_pop(&c->writers), struct writer, link);
		destroy_value(w->value);
		w->value = (struct weft_value){NULL, NULL};
		weft__unlabel(w->task, c->put_label);
		weft__unref(w->task); /* its handler frees w */
	}
	for (; c->count > 0; c->count--, c->first = (c->first + 1) % c->capacity)
		destroy_value(c->value[c->first]);
	if (c->put_label)
		weft__release(c->put_label, weft__text_bytes(c->put_label));
	if (c->take_label)
		weft__release(c->take_label, weft__text_bytes(c->take_label));
	weft__release(c, sizeof *c + c->capacity * sizeof c->value[0]);
}

static void channel_add(struct channel *c, struct weft_value value)
{
	c->value[(c->first + c->count++) % c->capacity] = value;
}

/* Removes a writer whose waiting promise was cancelled. */
static void cancel_writer(void *pointer)
{
	struct writer *w = pointer;
	if (w->link.next) {
		weft__unlink(&w->link);
		weft__unref(w->task);
	}
}

static void writer_destroy(void *pointer)
{
	struct writer *w = pointer;
	destroy_value(w->value);
	weft__release(w, sizeof *w);
}

static struct weft_promise *channel_wait_to_put(struct weft_record_site *site, struct channel *c, struct weft_value value)
{
	struct writer *w = weft__allocate(sizeof *w);
	struct weft_resolver *resolver;
	struct weft_promise *task = w ? weft__wait(site, WEFT_KIND_TASK, c->put_label, true, &resolver) : &weft__no_memory;
	if (task != &weft__no_memory && weft__add_handler(task, cancel_writer, w, writer_destroy) != WEFT_OK) {
		weft_resolver_drop(resolver);
		weft__unref(task);
		task = &weft__no_memory;
	}
	if (task == &weft__no_memory) {
		destroy_value(value);
		weft__release(w, sizeof *w);
		return task;
	}
	w->task = (struct weft_promise *)resolver;
	w->value = value;
	weft__link_after(c->writers.prev, &w->link);
	return task;
}

static struct weft_promise *channel_put(struct weft_record_site *site, struct channel *c, struct weft_value value)
{
	if (c->closed) {
		destroy_value(value);
		return weft_promise_fail(WEFT_PROMISE_CLOSED, "closed");
	}
	if (c->count == c->capacity)
		return channel_wait_to_put(site, c, value);
	struct weft_promise *reader = c->count == 0 ? weft__queue_pop(&c->readers) : NULL;
	if (reader)
		weft_wakeup_later((struct weft_resolver *)reader, value.pointer, value.destroy);
	else
		channel_add(c, value);
	return &weft__unit;
}

/* Lets the first waiting writer put its value, after capacity became free. */
static void channel_refill(struct channel *c)
{
	while (!weft__list_is_empty(&c->writers)) {
		struct writer *w = WEFT__CONTAINER(weft__list_pop(&c->writers), struct writer, link);
		struct weft_promise *task = w->task;
		if (weft__repr(task)->state != WEFT_PENDING) {
			weft__unref(task);
			continue;
		}
		channel_add(c, w->value);
		w->value = (struct weft_value){NULL, NULL};
		weft_wakeup_later((struct weft_resolver *)task, NULL, NULL);
		return;
	}
}

static struct weft_promise *channel_take(struct weft_record_site *site, struct channel *c)
{
	if (c->count == 0) {
		if (c->closed)
			return weft_promise_fail(WEFT_PROMISE_CLOSED, "closed");
		struct weft_promise *task = weft__queue_add_task(site, WEFT_KIND_TASK, &c->readers);
		if (task && c->take_label)
			weft__label(task, c->take_label);
		return weft__arg(task);
	}
	/* The promise is allocated before a value is removed, so that lack of memory loses no value. */
	struct weft_promise *result = weft__make_blank();
	if (!result)
		return &weft__no_memory;
	struct weft_value value = c->value[c->first];
	c->first = (c->first + 1) % c->capacity;
	c->count--;
	channel_refill(c);
	weft__become_value(result, value);
	return result;
}

/* ---- Mvars ---- */

struct weft_mvar *weft_mvar_create_empty(const char *label)
{
	struct channel *c = channel_create(1);
	if (c && label) {
		c->put_label = weft__copy_text("put ", label);
		c->take_label = weft__copy_text("take ", label);
		if (!c->put_label || !c->take_label) {
			channel_destroy(c);
			c = NULL;
		}
	}
	return (struct weft_mvar *)c;
}

struct weft_mvar *weft_mvar_create(const char *label, void *value, weft_destroy_fn *destroy)
{
	struct weft_mvar *m = weft_mvar_create_empty(label);
	if (m)
		channel_add(&m->channel, (struct weft_value){value, destroy});
	else
		destroy_value((struct weft_value){value, destroy});
	return m;
}

void weft_mvar_destroy(struct weft_mvar *m)
{
	channel_destroy((struct channel *)m);
}

struct weft_promise *weft__mvar_put(struct weft_record_site *site, struct weft_mvar *m, void *value, weft_destroy_fn *destroy)
{
	return channel_put(site, &m->channel, (struct weft_value){value, destroy});
}

struct weft_promise *weft__mvar_take(struct weft_record_site *site, struct weft_mvar *m)
{
	return channel_take(site, &m->channel);
}

/* ---- Bounded streams ---- */

struct weft_bounded *weft_bounded_create(size_t capacity)
{
	return (struct weft_bounded *)channel_create(capacity ? capacity : 1);
}

void weft_bounded_destroy(struct weft_bounded *b)
{
	channel_destroy((struct channel *)b);
}

struct weft_promise *weft__bounded_push(
    struct weft_record_site *site, struct weft_bounded *b, void *value, weft_destroy_fn *destroy)
{
	return channel_put(site, &b->channel, (struct weft_value){value, destroy});
}

struct weft_promise *weft__bounded_next(struct weft_record_site *site, struct weft_bounded *b)
{
	return channel_take(site, &b->channel);
}

void weft_bounded_close(struct weft_bounded *b)
{
	struct weft__link readers;
	struct weft_promise *task;
	b->channel.closed = true;
	weft__list_init(&readers);
	weft__list_append(&readers, &b->channel.readers);
	while ((task = weft__queue_pop(&readers)))
		weft_wakeup_later_error((struct weft_resolver *)task, WEFT_PROMISE_CLOSED, "closed");
}
