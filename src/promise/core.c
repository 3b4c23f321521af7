/* core.c: references, states, wake-ups and cancelling of promises.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

#if __STDC_HOSTED__
#include <stdlib.h>
#endif

#if __STDC_HOSTED__
static void *libc_allocate(void *ctx, size_t bytes)
{
	return malloc(bytes);
}

static void libc_release(void *ctx, void *memory, size_t bytes)
{
	free(memory);
}
#else
static void *libc_allocate(void *ctx, size_t bytes)
{
	return NULL;
}

static void libc_release(void *ctx, void *memory, size_t bytes)
{
}
#endif

WEFT__PER_THREAD WEFT__PER_THREAD_MODEL struct weft__thread_state weft__thread_state = {
    .current = WEFT_SYSTEM_ID,
    .stamp = 2,
    .random = 0x9e3779b97f4a7c15U,
    .memory = {libc_allocate, libc_release, NULL},
};

#define STATIC_PROMISE(self, end, which)                                                                                         \
	.refs = WEFT__FOREVER, .weak = 1, .state = (end), .id = WEFT_SYSTEM_ID, .stamp = (which),                                \
	.waiters = {&(self).waiters, &(self).waiters}, .handlers = {&(self).handlers, &(self).handlers}

struct weft_promise weft__unit = {STATIC_PROMISE(weft__unit, WEFT_RESOLVED, 1)};
struct weft_promise weft__no_memory = {
    STATIC_PROMISE(weft__no_memory, WEFT_FAILED, 2),
    .failure = {WEFT_PROMISE_ENOMEM, "out of memory"},
};

/* ---- Memory ---- */

void weft_promise_set_memory(const struct weft_promise_memory *memory)
{
	weft_promise_trim();
	weft__thread_state.memory = *memory;
}

void *weft__allocate(size_t bytes)
{
	struct weft_promise_memory *m = &weft__thread_state.memory;
	return m->allocate(m->ctx, bytes);
}

void weft__release(void *memory, size_t bytes)
{
	struct weft_promise_memory *m = &weft__thread_state.memory;
	if (memory)
		m->release(m->ctx, memory, bytes);
}

size_t weft__text_bytes(const char *text)
{
	return __builtin_strlen(text) + 1;
}

char *weft__copy_text(const char *prefix, const char *text)
{
	size_t head = weft__text_bytes(prefix) - 1, tail = weft__text_bytes(text);
	char *copy = weft__allocate(head + tail);
	if (!copy)
		return NULL;
	__builtin_memcpy(copy, prefix, head);
	__builtin_memcpy(copy + head, text, tail);
	return copy;
}

/* ---- Slots ---- */

enum {
	MIN_SWEEP_SLOTS = 2048,
	CHUNK_BYTES = sizeof(struct weft__chunk) + WEFT__CHUNK * sizeof(struct weft_promise) + (WEFT__CHUNK > 1) * 64
};

static void release_chunk(struct weft__chunk *chunk)
{
	struct weft__thread_state *world = &weft__thread_state;
	if (world->list_chunk == &chunk->link) {
		world->list_chunk = chunk->link.next;
		world->list_slot = 0;
	}
	weft__unlink(&chunk->link);
	weft__release(chunk, CHUNK_BYTES);
	if (weft__list_is_empty(&world->chunks))
		weft__set_pending_listing(false);
}

static void free_slot(struct weft_promise *p)
{
	p->next = weft__thread_state.spare;
	weft__thread_state.spare = p;
	weft__thread_state.spare_count++;
}

/* Frees the chunks of promises in which no slot is used. */
static void sweep_chunks(void)
{
	struct weft__thread_state *world = &weft__thread_state;
	size_t total = 0;
	world->spare = NULL;
	world->spare_count = 0;
	for (struct weft__link *link = world->chunks.next, *next; link && link != &world->chunks; link = next) {
		struct weft__chunk *chunk = WEFT__CONTAINER(link, struct weft__chunk, link);
		size_t used = 0;
		next = link->next;
		for (size_t i = 0; i < WEFT__CHUNK; i++)
			used += chunk->slot[i].weak != 0;
		if (used == 0) {
			release_chunk(chunk);
			continue;
		}
		for (size_t i = WEFT__CHUNK; i-- > 0;)
			if (chunk->slot[i].weak == 0)
				free_slot(&chunk->slot[i]);
		total += WEFT__CHUNK;
	}
	/* The next sweep comes when as many promises have been freed as this sweep visited, so that the cost stays
	 * proportional. */
	world->sweep_at = world->spare_count + (total > MIN_SWEEP_SLOTS ? total : MIN_SWEEP_SLOTS);
}

/* ---- Copied labels: a server makes and frees short labels with each request, so some of their memory is kept ---- */

enum { SHORT_LABEL_BYTES = 64, MAX_FREE_LABELS = 256 };

static struct weft__handler *allocate_label(size_t bytes)
{
	struct weft__link *free_label = weft__thread_state.labels;
	if (bytes > SHORT_LABEL_BYTES)
		return weft__allocate(sizeof(struct weft__handler) + bytes);
	if (!free_label)
		return weft__allocate(sizeof(struct weft__handler) + SHORT_LABEL_BYTES);
	weft__thread_state.labels = free_label->next;
	weft__thread_state.label_count--;
	return WEFT__CONTAINER(free_label, struct weft__handler, link);
}

static void release_label(struct weft__handler *h)
{
	size_t bytes = weft__text_bytes((char *)(h + 1));
	if (bytes > SHORT_LABEL_BYTES) {
		weft__release(h, sizeof *h + bytes);
	} else if (WEFT__CHUNK == 1 || weft__thread_state.label_count == MAX_FREE_LABELS) {
		weft__release(h, sizeof *h + SHORT_LABEL_BYTES);
	} else {
		h->link.next = weft__thread_state.labels;
		weft__thread_state.labels = &h->link;
		weft__thread_state.label_count++;
	}
}

void weft_promise_trim(void)
{
	while (weft__thread_state.labels)
		weft__release(allocate_label(1), sizeof(struct weft__handler) + SHORT_LABEL_BYTES);
	sweep_chunks();
}

bool weft__grow(void)
{
	struct weft__thread_state *world = &weft__thread_state;
	struct weft__chunk *chunk = weft__allocate(CHUNK_BYTES);
	if (!chunk)
		return false;
	uintptr_t line = WEFT__CHUNK > 1 ? 64 : 1;
	chunk->slot = (struct weft_promise *)(((uintptr_t)(chunk + 1) + line - 1) / line * line);
	if (!world->chunks.next)
		weft__list_init(&world->chunks);
	if (!world->sweep_at)
		world->sweep_at = MIN_SWEEP_SLOTS;
	if (weft__list_is_empty(&world->chunks))
		weft__set_pending_listing(true);
	weft__link_after(world->chunks.prev, &chunk->link);
	for (size_t i = WEFT__CHUNK; i-- > 0;) {
		chunk->slot[i].refs = chunk->slot[i].weak = 0;
		free_slot(&chunk->slot[i]);
	}
	return true;
}

struct weft_promise *weft__make_blank(void)
{
	if (!weft__thread_state.spare && !weft__grow())
		return NULL;
	return weft__pop_slot(WEFT_RESOLVED, WEFT__CANCEL_NO);
}

void weft__weak_unref_last(struct weft_promise *p)
{
	do {
		struct weft_promise *into = p->state == WEFT__PROXY ? p->into : NULL;
		if (WEFT__CHUNK == 1) /* a chunk that holds one promise is freed at once */
			release_chunk((struct weft__chunk *)(void *)p - 1);
		else
			free_slot(p);
		p = into;
	} while (p && --p->weak == 0);
	if (weft__thread_state.spare_count >= weft__thread_state.sweep_at)
		sweep_chunks();
}

/* ---- References ---- */

void weft__drop_closure(struct weft_promise *p)
{
	if (p->has_closure) {
		p->has_closure = false;
		if (p->destroy)
			p->destroy(p->ctx);
	}
}

/* Drops the list of inputs that a cancel would reach, because an ended promise does not need the list. */
static void drop_cancel_targets(struct weft_promise *p)
{
	if (p->cancel == WEFT__CANCEL_ONE)
		weft__weak_unref(p->input);
	else if (p->cancel == WEFT__CANCEL_MANY)
		weft__drop_inputs(p->inputs);
	p->cancel = WEFT__CANCEL_NO;
}

static void drop_handlers(struct weft_promise *p)
{
	while (!weft__list_is_empty(&p->handlers)) {
		struct weft__handler *h = WEFT__CONTAINER(weft__list_pop(&p->handlers), struct weft__handler, link);
		if (h->type == WEFT__HANDLER_CALL && h->destroy)
			h->destroy(h->ctx);
		if (h->type == WEFT__HANDLER_LABEL)
			release_label(h);
		else if (h->type != WEFT__HANDLER_LEAVE_QUEUE)
			weft__release(h, sizeof *h);
	}
}

static void destroy_one(struct weft_promise *p)
{
	/* Nothing can resolve this promise any more, so its waiters will never wake up. */
	while (!weft__list_is_empty(&p->waiters)) {
		struct weft__waiter *w = WEFT__CONTAINER(weft__list_pop(&p->waiters), struct weft__waiter, link);
		weft__unref(w->to);
	}
	drop_handlers(p);
	switch (p->state) {
	case WEFT_PENDING: drop_cancel_targets(p); break;
	case WEFT__PROXY: /* a static promise is never a proxy, because it never becomes another promise */
		weft__weak_ref(p->into);
		weft__unref(p->into);
		break;
	default:
		if (p->owner)
			weft__unref(p->owner);
		else if (p->state == WEFT_FAILED && p->own_message)
			weft__release((char *)(uintptr_t)p->failure.message, weft__text_bytes(p->failure.message));
		else if (p->state == WEFT_RESOLVED && p->value.destroy)
			p->value.destroy(p->value.pointer);
		p->owner = NULL;
		p->stamp = 0;
	}
	if (p->react == WEFT__REACT_NONE) {
		if (p->leave.link.next)
			weft__unlink(&p->leave.link);
	} else if (p->react >= WEFT__REACT_CHOOSE) {
		weft__drop_inputs(p->waits_for);
	} else {
		weft__drop_closure(p);
	}
	weft__weak_unref(p);
}

void weft__destroy(struct weft_promise *p)
{
	struct weft__thread_state *world = &weft__thread_state;
	p->next = world->to_destroy;
	world->to_destroy = p;
	if (world->is_destroying)
		return;
	world->is_destroying = true;
	while ((p = world->to_destroy)) {
		world->to_destroy = p->next;
		destroy_one(p);
	}
	world->is_destroying = false;
}

struct weft_promise *weft_promise_ref(struct weft_promise *p)
{
	return weft__ref(weft__arg(p));
}

void weft_promise_unref(struct weft_promise *p)
{
	if (p)
		weft__unref(p);
}

/* ---- States ---- */

struct weft_promise *weft__end_of_proxies(struct weft_promise *p)
{
	if (p->into->state != WEFT__PROXY)
		return p->into;
	/* The links are reversed on the way to the end of the chain, and restored on the way back. */
	struct weft_promise *back = NULL, *end = p;
	while (end->state == WEFT__PROXY) {
		struct weft_promise *into = end->into;
		end->into = back;
		back = end;
		end = into;
	}
	for (struct weft_promise *last = end; back;) {
		struct weft_promise *here = back;
		back = here->into;
		here->into = end;
		if (last != end) {
			weft__note_become(here, end);
			if (here->refs) {
				weft__ref(end);
				weft__unref(last);
			} else {
				weft__weak_ref(end);
				weft__weak_unref(last);
			}
		}
		last = here;
	}
	return end;
}

bool weft__is_pending(const struct weft_promise *p)
{
	return weft__repr(weft__arg(p))->state == WEFT_PENDING;
}

/* Returns the error of a promise; NULL if the promise has not failed. */
static const struct weft_failure *get_failure(struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(p);
	return t->state == WEFT_FAILED ? &weft__owner(t)->failure : NULL;
}

/* Records a read of an error that the program asks for, only once for each promise. */
static void notice_failure(struct weft_promise *p)
{
	if (p->state != WEFT_FAILED || p->is_noticed || p->id <= 0)
		return;
	p->is_noticed = true;
	weft__note_read(p->id);
}

enum weft_promise_state weft_promise_state(const struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(weft__arg(p));
	notice_failure(t);
	return (enum weft_promise_state)t->state;
}

enum weft_promise_state weft_promise_poll(const struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(weft__arg(p));
	if (t->state != WEFT_PENDING)
		weft__note_read(t->id);
	return (enum weft_promise_state)t->state;
}

void *weft_promise_value(const struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(weft__arg(p));
	return t->state == WEFT_RESOLVED ? weft__owner(t)->value.pointer : NULL;
}

const struct weft_failure *weft_promise_failure(const struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(weft__arg(p));
	notice_failure(t);
	return get_failure(t);
}

weft_id weft_promise_id(const struct weft_promise *p)
{
	weft__round_flush_if_any();
	return weft__id(weft__repr(weft__arg(p)));
}

static void set_value(struct weft_promise *p, void *value, weft_destroy_fn *destroy)
{
	drop_cancel_targets(p);
	p->owner = NULL;
	p->state = WEFT_RESOLVED;
	p->value = (struct weft_value){value, destroy};
	p->stamp = ++weft__thread_state.stamp;
}

static void set_failure(struct weft_promise *p, int code, const char *message)
{
	drop_cancel_targets(p);
	char *copy = message ? weft__copy_text("", message) : NULL;
	p->owner = NULL;
	p->state = WEFT_FAILED;
	p->own_message = copy != NULL;
	p->failure = (struct weft_failure){code, copy ? copy : ""};
	p->cancelled = code == WEFT_PROMISE_CANCELLED;
	p->stamp = ++weft__thread_state.stamp;
}

static void set_same_end(struct weft_promise *p, struct weft_promise *as)
{
	drop_cancel_targets(p);
	p->state = as->state;
	p->owner = weft__ref(weft__owner(as));
	p->cancelled = as->cancelled;
	p->stamp = as->stamp;
}

void weft__become_value(struct weft_promise *p, struct weft_value value)
{
	p->id = weft__thread_state.current;
	set_value(p, value.pointer, value.destroy);
}

struct weft_promise *weft_promise_return(void *value, weft_destroy_fn *destroy)
{
	struct weft_promise *p = weft__make_blank();
	if (!p) {
		if (destroy)
			destroy(value);
		return &weft__no_memory;
	}
	weft__become_value(p, (struct weft_value){value, destroy});
	return p;
}

struct weft_promise *weft_promise_unit(void)
{
	return &weft__unit;
}

struct weft_promise *weft_promise_fail(int code, const char *message)
{
	struct weft_promise *p = weft__make_blank();
	if (!p)
		return &weft__no_memory;
	p->id = weft__thread_state.current;
	set_failure(p, code, message);
	return p;
}

struct weft_promise *weft__promise_ended_as(struct weft_promise *as)
{
	struct weft_promise *p = weft__make_blank();
	if (!p)
		return &weft__no_memory;
	p->id = weft__thread_state.current;
	set_same_end(p, as);
	return p;
}

struct weft_promise *weft__make_pending(struct weft_record_site *site, enum weft_kind kind, enum weft__cancel cancel)
{
	if (!weft__thread_state.spare && !weft__grow())
		return NULL;
	struct weft_promise *p = weft__make_unrecorded(site, kind, cancel);
	if (WEFT__IS_RECORDING())
		weft__record_created(p);
	return p;
}

#ifndef WEFT_DISABLE
/* Copies a label that is no string literal into a handler of p.  Without memory, p gets no label. */
static void label_by_copy(struct weft_promise *p, const char *label, size_t bytes)
{
	struct weft__handler *h = allocate_label(bytes + 1);
	p->label = NULL;
	if (!h)
		return;
	h->type = WEFT__HANDLER_LABEL;
	__builtin_memcpy(h + 1, label, bytes + 1);
	weft__link_after(p->handlers.prev, &h->link);
	p->label = (char *)(h + 1);
}

static __attribute__((noinline)) struct weft_promise *make_recorded(struct weft_promise *p, bool literal)
{
	const char *label = p->label;
	size_t bytes = label ? __builtin_strlen(label) : 0;
	if (label && !literal)
		label_by_copy(p, label, bytes);
	if (WEFT__IS_RECORDING() && label)
		weft__record_created_labelled(p, label, bytes);
	else if (WEFT__IS_RECORDING())
		weft__record_created(p);
	return p;
}

#endif

/* The rare case, in which memory must grow, is a tail call, so that the frequent case needs no stack frame. */
static __attribute__((noinline)) struct weft_promise *make_after_growing(struct weft_record_site *site, enum weft_kind kind,
    bool cancellable, const char *label, bool literal, struct weft_resolver **resolver)
{
	if (weft__grow())
		return weft__make(site, kind, cancellable, label, literal, resolver);
	*resolver = NULL;
	return &weft__no_memory;
}

struct weft_promise *weft__make(struct weft_record_site *site, enum weft_kind kind, bool cancellable, const char *label,
    bool literal, struct weft_resolver **resolver)
{
	if (!weft__thread_state.spare)
		return make_after_growing(site, kind, cancellable, label, literal, resolver);
	struct weft_promise *p = weft__make_unrecorded(site, kind, cancellable ? WEFT__CANCEL_ME : WEFT__CANCEL_NO);
	p->refs = 2;
	*resolver = (struct weft_resolver *)p;
#ifndef WEFT_DISABLE
	p->label = label;
	if (!literal || WEFT__IS_RECORDING())
		return make_recorded(p, literal);
#endif
	return p;
}

struct weft_promise *weft__wait(
    struct weft_record_site *site, enum weft_kind kind, const char *label, bool literal, struct weft_resolver **resolver)
{
	return weft__make(site, kind, kind == WEFT_KIND_TASK, label, literal, resolver);
}

/* ---- Running waiters ---- */

/* Pushes an ended promise on the stack of promises whose waiters must run.  The waiters of a promise that a waiter ends run
 * before the next waiter.  Each wake-up on the C stack runs only the promises that were pushed after its start. */
static void push_to_run(struct weft_promise *p)
{
	p->next = weft__thread_state.to_run;
	weft__thread_state.to_run = weft__ref(p);
}

static void run_handler(struct weft__handler *h)
{
	if (h->type == WEFT__HANDLER_LABEL) {
		release_label(h);
		return;
	}
	if (h->type == WEFT__HANDLER_LEAVE_QUEUE) {
		struct weft_promise *task = WEFT__CONTAINER(h, struct weft_promise, leave);
		if (task->queued.next) {
			weft__unlink(&task->queued);
			weft__unref(task);
		}
		return;
	}
	weft__switch_to(h->as);
	h->f(h->ctx);
	if (h->type == WEFT__HANDLER_CALL && h->destroy)
		h->destroy(h->ctx);
	weft__release(h, sizeof *h);
}

static void run_until(struct weft_promise *bottom)
{
	struct weft_promise *p;
	while ((p = weft__thread_state.to_run) != bottom) {
		if (p->cancelled && !weft__list_is_empty(&p->handlers)) {
			run_handler(WEFT__CONTAINER(weft__list_pop(&p->handlers), struct weft__handler, link));
		} else if (!weft__list_is_empty(&p->waiters)) {
			struct weft__waiter *w = WEFT__CONTAINER(weft__list_pop(&p->waiters), struct weft__waiter, link);
			weft__fire(w, p);
		} else {
			weft__thread_state.to_run = p->next;
			drop_handlers(p);
			weft__unref(p);
		}
	}
}

struct wakeup {
	weft_id current;
	bool outermost;
};

static struct wakeup enter_wakeup(void)
{
	struct wakeup wakeup = {weft__thread_state.current, !weft__thread_state.waking};
	weft__thread_state.waking = true;
	return wakeup;
}

static void leave_wakeup(struct wakeup wakeup)
{
	if (wakeup.outermost) {
		struct weft_promise *p;
		while ((p = weft__thread_state.later)) {
			struct weft_promise *bottom = weft__thread_state.to_run;
			weft__thread_state.later = p->next;
			push_to_run(p);
			weft__unref(p);
			run_until(bottom);
		}
		weft__thread_state.waking = false;
	}
	weft__switch_to(wakeup.current);
}

static void run_now(struct weft_promise *p)
{
	struct wakeup wakeup = enter_wakeup();
	struct weft_promise *bottom = weft__thread_state.to_run;
	push_to_run(p);
	run_until(bottom);
	leave_wakeup(wakeup);
}

static void run_later(struct weft_promise *p)
{
	if (!weft__thread_state.waking) {
		run_now(p);
		return;
	}
	p->next = NULL;
	if (weft__thread_state.later)
		weft__thread_state.later_last->next = p;
	else
		weft__thread_state.later = p;
	weft__thread_state.later_last = weft__ref(p);
}

static void wake_waiters(struct weft_promise *p, bool later)
{
	if (later)
		run_later(p);
	else
		run_now(p);
}

void weft__end_as(struct weft_promise *p, struct weft_promise *as)
{
	weft__note_end(p, get_failure(as));
	set_same_end(p, as);
	push_to_run(p);
}

void weft__end_with(struct weft_promise *p, void *value, weft_destroy_fn *destroy)
{
	weft__note_end(p, NULL);
	set_value(p, value, destroy);
	push_to_run(p);
}

void weft__connect(struct weft_promise *p, struct weft_promise *with)
{
	with = weft__arg(with);
	struct weft_promise *one = weft__repr(p), *two = weft__repr(with);
	if (two->state != WEFT_PENDING) {
		weft__end_as(one, two);
	} else if (one != two) {
		/* `one` is kept as the recorded promise, because the program may hold it for long, as the result of a loop, and
		 * `two` was never visible to the program. */
		weft__note_become(one, two);
#ifndef WEFT_DISABLE
		if (!one->label)
			one->label = two->label;
#endif
		one->should_resolve |= two->should_resolve;
		drop_cancel_targets(one);
		one->cancel = two->cancel;
		one->input = two->input;
		two->cancel = WEFT__CANCEL_NO;
		weft__list_append(&one->waiters, &two->waiters);
		weft__list_append(&one->handlers, &two->handlers);
		two->state = WEFT__PROXY;
		two->into = weft__ref(one);
	}
	weft__unref(with);
}

static void resolve_and_wake(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy, bool later)
{
	struct weft_promise *task = (struct weft_promise *)resolver, *p = task ? weft__repr(task) : NULL;
	if (p && p->state == WEFT_PENDING) {
		weft__note_end(p, NULL);
		set_value(p, value, destroy);
		wake_waiters(p, later);
	} else if (destroy) {
		destroy(value);
	}
	weft_promise_unref(task);
}

static void fail_and_wake(struct weft_resolver *resolver, int code, const char *message, bool later)
{
	struct weft_promise *task = (struct weft_promise *)resolver, *p = task ? weft__repr(task) : NULL;
	if (p && p->state == WEFT_PENDING) {
		set_failure(p, code, message);
		weft__note_end(p, &p->failure);
		wake_waiters(p, later);
	}
	weft_promise_unref(task);
}

void weft_wakeup(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy)
{
	resolve_and_wake(resolver, value, destroy, false);
}

void weft_wakeup_error(struct weft_resolver *resolver, int code, const char *message)
{
	fail_and_wake(resolver, code, message, false);
}

void weft_wakeup_later(struct weft_resolver *resolver, void *value, weft_destroy_fn *destroy)
{
	resolve_and_wake(resolver, value, destroy, true);
}

void weft_wakeup_later_error(struct weft_resolver *resolver, int code, const char *message)
{
	fail_and_wake(resolver, code, message, true);
}

void weft_resolver_drop(struct weft_resolver *resolver)
{
	struct weft_promise *task = (struct weft_promise *)resolver, *p = task ? weft__repr(task) : NULL;
	if (p && p->state == WEFT_PENDING) {
		for (struct weft__link *link = p->handlers.next, *next; link != &p->handlers; link = next) {
			struct weft__handler *h = WEFT__CONTAINER(link, struct weft__handler, link);
			next = link->next;
			if (h->type != WEFT__HANDLER_OF_RESOLVER || h->task != task)
				continue;
			weft__unlink(link);
			weft__release(h, sizeof *h);
		}
	}
	weft_promise_unref(task);
}

void weft__wakeup_as(struct weft_promise *task, struct weft_promise *as, bool later)
{
	struct weft_promise *p = weft__repr(task);
	as = weft__repr(as);
	if (p->state != WEFT_PENDING)
		return;
	weft__note_end(p, get_failure(as));
	set_same_end(p, as);
	p->stamp = ++weft__thread_state.stamp;
	wake_waiters(p, later);
}

/* ---- Cancelling ---- */

static void end_as_cancelled(struct weft_promise *p, uint64_t stamp)
{
	drop_cancel_targets(p);
	p->owner = NULL;
	p->state = WEFT_FAILED;
	p->failure = (struct weft_failure){WEFT_PROMISE_CANCELLED, "cancelled"};
	p->cancelled = true;
	p->stamp = stamp;
	weft__note_end(p, &p->failure);
}

/* Cancels all tasks on which p depends, in the order in which they are found; several inputs are searched from left to right.
 * Returns the tasks as a list, with the task that was found last at its head.  Visits each promise once. */
static struct weft_promise *collect_tasks(struct weft_promise *p)
{
	struct weft_promise *several = NULL, *found = NULL;
	uint64_t stamp = ++weft__thread_state.stamp;
	uint32_t mark = ++weft__thread_state.mark;
	for (;;) {
		while (p) {
			p = weft__repr(p);
			if (p->state != WEFT_PENDING || p->mark == mark)
				break;
			p->mark = mark;
			if (p->cancel == WEFT__CANCEL_ONE) {
				p = p->input;
				continue;
			}
			if (p->cancel == WEFT__CANCEL_MANY) {
				p->index = 0;
				p->next = several;
				several = p;
			} else if (p->cancel == WEFT__CANCEL_ME) {
				end_as_cancelled(p, stamp);
				p->next = found;
				found = weft__ref(p);
			}
			break;
		}
		if (!several)
			return found;
		p = NULL;
		if (several->index == several->inputs->count)
			several = several->next;
		else
			p = several->inputs->input[several->index++].promise;
	}
}

void weft_promise_cancel(struct weft_promise *p)
{
	struct weft_promise *found = collect_tasks(weft__arg(p)), *bottom = weft__thread_state.to_run;
	struct wakeup wakeup = enter_wakeup();
	while (found) {
		struct weft_promise *task = found;
		found = task->next;
		push_to_run(task);
		weft__unref(task);
		run_until(bottom);
	}
	leave_wakeup(wakeup);
}

/* Returns a new handler for p; NULL without memory. */
static struct weft__handler *new_handler(struct weft_promise *p, enum weft__handler_type type, weft_on_end_fn *f, void *ctx)
{
	struct weft__handler *h = weft__allocate(sizeof *h);
	if (!h)
		return NULL;
	*h = (struct weft__handler){.type = type, .as = weft__thread_state.current, .f = f, .ctx = ctx};
	weft__link_after(&p->handlers, &h->link);
	return h;
}

int weft__add_handler(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct weft__handler *h = new_handler(p, WEFT__HANDLER_CALL, f, ctx);
	if (!h)
		return WEFT_ENOMEM;
	h->destroy = destroy;
	return WEFT_OK;
}

int weft_resolver_on_cancel(struct weft_resolver *resolver, weft_on_end_fn *f, void *ctx)
{
	struct weft_promise *task = (struct weft_promise *)resolver, *p = weft__repr(task);
	if (p->state == WEFT_PENDING) {
		struct weft__handler *h = new_handler(p, WEFT__HANDLER_OF_RESOLVER, f, ctx);
		if (!h)
			return WEFT_ENOMEM;
		h->task = task;
	} else if (p->cancelled) {
		f(ctx);
	}
	return WEFT_OK;
}

int weft_promise_on_cancel(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	int status = WEFT_OK;
	p = weft__repr(weft__arg(p));
	if (p->state == WEFT_PENDING) {
		status = weft__add_handler(p, f, ctx, destroy);
		if (status == WEFT_OK)
			return status;
	} else if (p->cancelled) {
		f(ctx);
	}
	if (destroy)
		destroy(ctx);
	return status;
}

/* ---- Queues ---- */

struct weft_promise *weft__queue_add_task(struct weft_record_site *site, enum weft_kind kind, struct weft__link *queue)
{
	struct weft_promise *p = weft__make_pending(site, kind, WEFT__CANCEL_ME);
	if (!p)
		return NULL;
	weft__link_after(queue->prev, &p->queued);
	p->leave = (struct weft__handler){.type = WEFT__HANDLER_LEAVE_QUEUE};
	weft__link_after(&p->handlers, &p->leave.link);
	return weft__ref(p);
}

struct weft_promise *weft__queue_pop(struct weft__link *queue)
{
	while (!weft__list_is_empty(queue)) {
		struct weft_promise *p = WEFT__CONTAINER(weft__list_pop(queue), struct weft_promise, queued);
		if (weft__repr(p)->state == WEFT_PENDING)
			return p;
		weft__unref(p); /* the promise was cancelled, but its handlers have not run yet */
	}
	return NULL;
}

void weft__queue_drop(struct weft__link *queue, const char *label)
{
	struct weft_promise *p;
	while ((p = weft__queue_pop(queue))) {
		if (label)
			weft__unlabel(p, label);
		weft__unref(p);
	}
}

static struct weft__link *get_paused_list(void)
{
	if (!weft__thread_state.paused.next)
		weft__list_init(&weft__thread_state.paused);
	return &weft__thread_state.paused;
}

struct weft_promise *weft__pause(struct weft_record_site *site)
{
	struct weft_promise *p = weft__queue_add_task(site, WEFT_KIND_TASK, get_paused_list());
	if (!p)
		return &weft__no_memory;
	weft__thread_state.paused_count++;
	return p;
}

size_t weft_promise_paused_count(void)
{
	return weft__thread_state.paused_count;
}

size_t weft_promise_wakeup_paused(void)
{
	struct weft__link now;
	struct weft_promise *task;
	size_t count = weft__thread_state.paused_count;
	weft__list_init(&now);
	weft__list_append(&now, get_paused_list());
	weft__thread_state.paused_count = 0;
#ifndef WEFT_DISABLE
	struct weft__round round;
	bool is_noted = WEFT__IS_RECORDING() && count > 0 && !weft__thread_state.round;
	weft__round_flush_if_any();
	if (is_noted)
		weft__round_begin(&round);
#endif
	while ((task = weft__queue_pop(&now)))
		weft_wakeup((struct weft_resolver *)task, NULL, NULL);
#ifndef WEFT_DISABLE
	if (is_noted)
		weft__round_end(&round);
#endif
	return count;
}

/* ---- Trace ---- */

void weft_promise_label(const char *text)
{
	weft__round_flush_if_any();
	if (weft__thread_state.current)
		weft_label(weft__thread_state.current, text);
}

void weft_promise_set_label(struct weft_promise *p, const char *text)
{
#ifndef WEFT_DISABLE
	p = weft__repr(weft__arg(p));
	if (p->state != WEFT_PENDING)
		return;
	label_by_copy(p, text, __builtin_strlen(text));
	weft__round_flush_if_any();
	if (WEFT__IS_RECORDING())
		weft_label(weft__id(p), text); /* the label is recorded even if there is no memory to keep it */
#endif
}

void weft_promise_should_resolve(const struct weft_promise *p)
{
	struct weft_promise *t = weft__repr(weft__arg(p));
	if (t->state == WEFT_PENDING)
		t->should_resolve = true;
	weft__round_flush_if_any();
	weft_should_resolve(weft__id(t));
}

int64_t weft_counter_value(const struct weft_counter *counter)
{
	return counter->value;
}

void weft_counter_set_value(struct weft_counter *counter, int64_t value)
{
	counter->value = value;
	if (WEFT__IS_RECORDING())
		weft__record_counter(counter);
}

void weft_counter_increase(struct weft_counter *counter, int64_t by)
{
	weft_counter_set_value(counter, counter->value + by);
}

void weft_promise_idle(enum weft_idle why)
{
	weft__round_flush_if_any();
	weft_idle(why);
}

void weft_promise_resume(void)
{
	weft__round_flush_if_any();
	weft_resume(weft__thread_state.current ? weft__thread_state.current : WEFT_SYSTEM_ID);
}
