/* promise.c: records promises and async functions of JavaScript, from V8's events.
 *
 * An async function begins with a promise that has no parent, which is its result.  At an `await`, V8 makes another promise,
 * whose parent is the awaited promise, and before the function continues, V8 reports that this other promise runs.  So the
 * running functions are kept on a stack, and an `await` belongs to the innermost function.  A promise that no code of the user
 * makes is not recorded.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapters/hook/table.h"
#include "adapters/node/common.h"

enum { EVENT_INIT, EVENT_SETTLED, EVENT_BEFORE, EVENT_AFTER };
enum { STATE_PENDING, STATE_FULFILLED, STATE_REJECTED };
enum {
	MAX_DEPTH = 256,
	MAX_PENDING = 1 << 16, /* maximum number of waiting promises; further promises are not recorded */
	MEASURED_EVENTS = 64,  /* of so many events, one is measured */
	/* Recording of promises may take the thread's CPU time divided by these numbers.  From the first one on, the promises of
	 * only one in N requests are recorded; if that does not help, the recording of promises ends at the second one. */
	MAX_SHARE = 10,
	END_SHARE = 4,
	MAX_INTERVAL = 1 << 10 /* maximum N */
};

struct promise {
	weft_id id, input, owner; /* owner: promise of the async function to which the await belongs; 0: none */
	enum weft_kind kind;
	bool is_module; /* whether it is an await at the top level of a module */
	struct js_place *place;
	uint64_t since;
};

struct function {
	weft_id id, before; /* the function's promise, and the promise that ran before the function */
};

/* A running callback (reaction) of a promise. */
struct reaction {
	weft_id before;
	unsigned base;    /* number of functions on the stack below the callback */
	bool is_followed; /* whether the promise is recorded */
};

static __thread struct thread {
	isolate of;
	unsigned epoch;
	handle private;
	struct table pending; /* by id */
	struct function functions[MAX_DEPTH];
	struct reaction reactions[MAX_DEPTH];
	unsigned function_count, reaction_count, base;
	/* Promises that were made last: one without a parent, and one by then() or the like.  An await of such a promise has the
	 * same place. */
	struct made {
		weft_id id;
		const struct js_place *place;
	} plain, derived;
	/* The promise that was settled last, and the promise that ran at that time. */
	handle settled;
	weft_id settled_id, settled_by;
	unsigned events;
	/* CPU time of this file's code in the current window, that of measuring it, and the thread's CPU time when the window
	 * began (0: no window). */
	uint64_t spent_ns, clock_ns, window_ns;
	unsigned interval; /* the promises of one in so many requests are recorded; 0: of all requests */
	bool is_given_up;
} * here __attribute__((tls_model("initial-exec")));

static struct promise *find_promise(weft_id id)
{
	return id > 0 ? weft__table_find(&here->pending, (uint64_t)id) : NULL;
}

struct js_place *weft__node_get_running_place(void)
{
	const struct promise *p = here && here->epoch == weft__hook_epoch ? find_promise(weft__hook_get_thread()->running) : NULL;
	return p ? p->place : NULL;
}

static handle globalize(isolate of, handle local)
{
	return weft__v8.globalize ? weft__v8.globalize(of, local) : weft__v8.globalize_since_13(of, *local);
}

static void run(weft_id id)
{
	weft__hook_get_thread()->running = id;
	weft_hook_record_running(id);
}

static const char *get_label(const struct promise *p)
{
	if (p->is_module)
		return "top level";
	if (p->kind == WEFT_KIND_COROUTINE)
		return *p->place->site.function ? p->place->site.function : "anonymous";
	return p->kind == WEFT_KIND_WAIT ? "await" : NULL;
}

static uint64_t list_promises(void *data, uint64_t cursor, unsigned budget)
{
	const struct thread *t = data;
	for (; cursor < t->pending.size && budget > 0; cursor++) {
		const struct promise *p = t->pending.entries[cursor].value;
		if (!t->pending.entries[cursor].key)
			continue;
		budget--;
		weft_pending(WEFT_SYSTEM_ID, p->id, p->kind, &p->place->site, p->since, get_label(p));
		if (p->input)
			weft_still_awaits(p->id, p->input);
	}
	return cursor < t->pending.size ? cursor : 0;
}

static void forget_promises(struct thread *t)
{
	for (size_t i = 0; i < t->pending.size; i++)
		if (t->pending.entries[i].key)
			free(t->pending.entries[i].value);
	free(t->pending.entries);
	t->pending = (struct table){0};
	t->function_count = t->reaction_count = t->base = 0;
	t->plain = t->derived = (struct made){0};
	t->window_ns = 0;
	t->interval = 0;
	t->is_given_up = false;
	if (t->settled)
		weft__v8.dispose_global(t->settled);
	t->settled = NULL;
}

/* A new private symbol for each recording makes the ids of an earlier recording invisible. */
static bool begin_epoch(isolate of)
{
	const unsigned epoch = weft__hook_epoch;
	if (!here && !(here = calloc(1, sizeof *here)))
		return false;
	if (here->epoch == epoch)
		return here->of == of;
	if (here->of && here->of != of)
		return false;
	forget_promises(here);
	here->of = of;
	here->epoch = epoch;
	if (here->private)
		weft__v8.dispose_global(here->private);
	handle created = weft__v8.new_private(of, NULL);
	here->private = created ? globalize(of, created) : NULL;
	weft_hook_register_list(list_promises, here);
	return here->private;
}

static weft_id get_id(handle context, handle promise)
{
	handle number = weft__v8.get_private(promise, context, here->private);
	return number && weft__v8.is_number(number) ? (weft_id)weft__v8.get_number(number) : 0;
}

static struct promise *create_promise(handle context, handle promise, enum weft_kind kind, struct js_place *place)
{
	struct promise *p = here->pending.count < MAX_PENDING ? calloc(1, sizeof *p) : NULL;
	if (!p)
		return NULL;
	*p = (struct promise){.id = weft_create(weft__hook_get_thread()->running, kind, &place->site),
	    .kind = kind,
	    .place = place,
	    .since = weft_now()};
	if (!p->id || !weft__table_set(&here->pending, (uint64_t)p->id, p)) {
		free(p);
		return NULL;
	}
	weft__v8.set_private(promise, context, here->private, weft__v8.new_number(here->of, (double)p->id));
	return p;
}

static void label_promise(const struct promise *p)
{
	if (get_label(p))
		weft_label(p->id, get_label(p));
}

static void record_await(struct promise *p, weft_id input)
{
	if (!find_promise(input))
		return;
	p->input = input;
	weft_await(p->id, input);
}

static void end_promise(weft_id id, weft_id by, bool is_rejected)
{
	free(find_promise(id));
	weft__table_remove(&here->pending, (uint64_t)id);
	if (is_rejected)
		WEFT_FAIL(by, id, "rejected");
	else
		weft_resolve(by, id);
}

void weft__node_finish_settled(void)
{
	if (!here || !here->settled || here->epoch != weft__hook_epoch || !weft_is_on())
		return;
	const int state = weft__v8.get_state(here->settled);
	weft__v8.dispose_global(here->settled);
	here->settled = NULL;
	/* If the promise is pending, it has become another promise. */
	if (state != STATE_PENDING && find_promise(here->settled_id))
		end_promise(here->settled_id, here->settled_by, state == STATE_REJECTED);
}

static void enter_function(weft_id id)
{
	if (here->function_count < MAX_DEPTH)
		here->functions[here->function_count++] = (struct function){id, weft__hook_get_thread()->running};
	run(id);
}

static void leave_function(void)
{
	run(here->functions[--here->function_count].before);
}

/* Records that the running function awaits: the promise that V8 makes is the await at its line. */
static void begin_await(handle context, handle promise, weft_id parent, struct js_place *place)
{
	const weft_id owner = here->functions[here->function_count - 1].id;
	struct promise *function = find_promise(owner);
	if (parent == owner && owner)
		return; /* V8 first makes a promise of an awaited value; the await itself follows */
	struct promise *p = create_promise(context, promise, WEFT_KIND_WAIT, place);
	if (p) {
		p->owner = owner;
		label_promise(p);
		record_await(p, parent);
		if (function)
			record_await(function, p->id);
	}
	leave_function();
}

static void handle_plain(handle context, handle promise, struct js_place *place, unsigned depth)
{
	const bool is_function = place->is_entry && depth == 0;
	struct promise *p = create_promise(context, promise,
	    is_function      ? WEFT_KIND_COROUTINE
	    : place->is_join ? WEFT_KIND_JOIN
			     : WEFT_KIND_PROMISE,
	    place);
	if (p)
		label_promise(p);
	if (is_function)
		enter_function(p ? p->id : 0);
	else
		here->plain = (struct made){p ? p->id : 0, place};
}

static bool was_made_here(const struct made *made, weft_id id, const struct js_place *place)
{
	return id && made->id == id && made->place == place;
}

static void handle_derived(handle context, handle promise, weft_id input, struct js_place *place)
{
	struct promise *p = create_promise(context, promise, WEFT_KIND_PROMISE, place);
	here->derived = (struct made){p ? p->id : 0, place};
	if (!p)
		return;
	record_await(p, input);
	struct promise *join = place->is_join && here->plain.place == place ? find_promise(here->plain.id) : NULL;
	if (join)
		record_await(join, p->id);
}

/* Returns whether promises that the running code makes are recorded.  If not all are, the request or other operation whose
 * callback runs decides for all that follows from it. */
static bool is_followed(void)
{
	if (!here->interval || here->function_count > here->base)
		return true;
	if (here->reaction_count)
		return here->reactions[here->reaction_count - 1].is_followed;
	return ((uint64_t)weft__hook_get_thread()->running * 0x9e3779b97f4a7c15u >> 32) % here->interval == 0;
}

static void handle_init(handle context, handle promise, handle parent)
{
	unsigned depth;
	if (!is_followed())
		return;
	struct js_place *place = weft__node_find_place(here->of, &depth);
	if (!place)
		return;
	if (!weft__v8.is_promise(parent)) {
		handle_plain(context, promise, place, depth);
		return;
	}
	const weft_id input = get_id(context, parent);
	const bool is_await = depth == 0 && (!place->is_derived || was_made_here(&here->plain, input, place) ||
						was_made_here(&here->derived, input, place));
	if (is_await && here->function_count > here->base)
		begin_await(context, promise, input, place);
	else if (is_await && !here->function_count) {
		struct promise *p = create_promise(context, promise, WEFT_KIND_COROUTINE, place);
		if (p) {
			p->is_module = true;
			label_promise(p);
			record_await(p, input);
		}
	} else
		handle_derived(context, promise, input, place);
}

static void handle_before(weft_id id)
{
	if (here->reaction_count == MAX_DEPTH)
		return;
	struct promise *p = find_promise(id);
	here->reactions[here->reaction_count++] = (struct reaction){weft__hook_get_thread()->running, here->base, p != NULL};
	here->base = here->function_count;
	const weft_id owner = p ? p->owner : 0;
	if (owner) {
		struct promise *function = find_promise(owner);
		if (function)
			function->input = 0;
		end_promise(id, WEFT_SYSTEM_ID, false);
		enter_function(owner);
		weft_read_later(owner, id);
	} else if (p && p->is_module)
		end_promise(id, WEFT_SYSTEM_ID, false);
	else if (p) {
		run(id);
		if (p->input)
			weft_read_later(id, p->input);
		p->input = 0;
	}
}

static void handle_after(void)
{
	if (!here->reaction_count)
		return;
	const struct reaction *r = &here->reactions[--here->reaction_count];
	here->function_count = here->base;
	here->base = r->base;
	run(r->before);
}

static void handle_settled(handle promise, weft_id id)
{
	const bool is_function = here->function_count && here->functions[here->function_count - 1].id == id;
	const weft_id by = weft__hook_get_thread()->running;
	if (!find_promise(id) || find_promise(id)->owner)
		return;
	here->settled = globalize(here->of, promise);
	here->settled_id = id;
	here->settled_by = by == id && !is_function ? WEFT_SYSTEM_ID : by;
	if (is_function)
		leave_function();
}

static void handle_event(isolate of, int type, handle promise, handle parent)
{
	uintptr_t scope[V8_SCOPE_WORDS];
	weft__v8_begin_scope(scope, of);
	handle context = weft__v8.get_current_context(of);
	if (context && begin_epoch(of) && !here->is_given_up) {
		weft__node_finish_settled();
		if (type == EVENT_INIT)
			handle_init(context, promise, parent);
		else if (type == EVENT_BEFORE)
			handle_before(get_id(context, promise));
		else if (type == EVENT_AFTER)
			handle_after();
		else
			handle_settled(promise, get_id(context, promise));
	}
	weft__v8_end_scope(scope);
}

static uint64_t read_cpu_time(void)
{
	struct timespec t = {0};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Stops recording promises, because the program comes first; promises that are still pending then wait for nothing that is
 * known. */
static void give_up(void)
{
	if (here->function_count)
		run(here->functions[0].before);
	for (size_t i = 0; i < here->pending.size; i++) {
		const struct promise *p = here->pending.entries[i].value;
		if (here->pending.entries[i].key && p->input)
			weft_awaits_no_more(p->id, p->input);
	}
	forget_promises(here);
	here->is_given_up = true;
	weft__hook_add_to_report("promises only of the beginning");
	WEFT_NOTE(weft__hook_get_thread()->root,
	    "promises of JavaScript are not recorded from now on: this took a quarter of the CPU time");
}

/* Records the promises of fewer requests, so that they take about half of their share of the CPU time.  Promises that are
 * recorded already are followed to their ends. */
static void record_fewer(uint64_t cpu_ns)
{
	char text[96];
	const uint64_t factor = here->spent_ns * 2 * MAX_SHARE / cpu_ns, wanted = factor * (here->interval ? here->interval : 1);
	if (!here->interval)
		weft__hook_add_to_report("promises of some requests only");
	here->interval = wanted < MAX_INTERVAL ? (unsigned)wanted : MAX_INTERVAL;
	snprintf(text, sizeof text, "promises of one in %u requests are recorded from now on: they took %u%% of the CPU time",
	    here->interval, (unsigned)(here->spent_ns * 100 / cpu_ns));
	weft_note(weft__hook_get_thread()->root, text);
}

/* clock_ns: time that one call of the clock takes, which is more than many events take. */
static void check_share(uint64_t begin_ns, uint64_t clock_ns)
{
	enum { WINDOW_NS = 1000000000 };
	const uint64_t now_ns = read_cpu_time();
	here->spent_ns += MEASURED_EVENTS * (now_ns - begin_ns);
	here->clock_ns += MEASURED_EVENTS * clock_ns;
	if (here->window_ns && now_ns - here->window_ns < WINDOW_NS)
		return;
	here->spent_ns -= here->clock_ns < here->spent_ns ? here->clock_ns : here->spent_ns;
	const uint64_t cpu_ns = here->window_ns ? now_ns - here->window_ns : 0;
	if (cpu_ns && here->interval && here->spent_ns > cpu_ns / END_SHARE)
		give_up();
	else if (cpu_ns && here->interval < MAX_INTERVAL && here->spent_ns > cpu_ns / MAX_SHARE)
		record_fewer(cpu_ns);
	here->window_ns = now_ns;
	here->spent_ns = here->clock_ns = 0;
}

void weft__node_handle_promise(int type, handle promise, handle parent)
{
	if ((here && here->is_given_up && here->epoch == weft__hook_epoch) || !weft__node_begin())
		return;
	const bool is_measured = here && here->events++ % MEASURED_EVENTS == 0;
	const uint64_t before_ns = is_measured ? read_cpu_time() : 0, begin_ns = is_measured ? read_cpu_time() : 0;
	handle_event(weft__v8.try_get_current(), type, promise, parent);
	if (is_measured && !here->is_given_up)
		check_share(begin_ns, begin_ns - before_ns);
}

/* No JavaScript runs when the loop sleeps.  So functions that a terminated script or a wrong guess has left on the stack are
 * dropped. */
void weft__node_leave_all(void)
{
	if (here && !weft__hook_get_thread()->callbacks)
		here->function_count = here->reaction_count = here->base = 0;
}

void weft__node_end_isolate(bool loop_is_empty)
{
	if (!here)
		return;
	weft__node_finish_settled();
	if (loop_is_empty && here->epoch == weft__hook_epoch && weft_is_on()) {
		run(weft__hook_get_thread()->root);
		for (size_t i = 0; i < here->pending.size; i++) {
			const struct promise *p = here->pending.entries[i].value;
			if (here->pending.entries[i].key && p->kind == WEFT_KIND_COROUTINE)
				weft_should_resolve(p->id);
		}
	}
	/* The handles of the isolate end together with the isolate. */
	here->settled = here->private = NULL;
	here->of = NULL;
	forget_promises(here);
}
