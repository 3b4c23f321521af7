/* core.h: declares the structure of promises for the files of this folder.
 *
 * References (=> counted, -> weak):
 *
 *	resolver => promise            the promise that it will resolve
 *	input's waiter => result       a pending input keeps its waiters
 *	result -> input                only to cancel it, so there are no cycles
 *	proxy => its promise           the promise that it became (weak once the proxy itself is only weakly held)
 *	result => owner                the promise whose value or error it shares
 *
 * A promise without counted references is emptied; its memory stays while weak references exist.  No function of this folder
 * recurses along a chain of promises.  Running, destroying, cancelling and finding the end of a chain of proxies are loops over
 * links inside of the promises, so these operations need no memory either.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROMISE_CORE_H
#define WEFT_PROMISE_CORE_H

#include <weft/promise.h>

struct weft__link {
	struct weft__link *prev, *next; /* NULL: in no list */
};

/* State in addition to the public states: the promise has become another promise. */
enum { WEFT__PROXY = 3 };

/* Effect of cancelling a pending promise. */
enum weft__cancel { WEFT__CANCEL_NO, WEFT__CANCEL_ME, WEFT__CANCEL_ONE, WEFT__CANCEL_MANY };

/* Reaction of a promise to the end of its input. */
enum weft__react {
	WEFT__REACT_NONE,
	WEFT__REACT_BIND,
	WEFT__REACT_MAP,
	WEFT__REACT_CATCH,
	WEFT__REACT_TRY_BIND,
	WEFT__REACT_FINALIZE,
	WEFT__REACT_BIND_OWNER,
	WEFT__REACT_ON,
	WEFT__REACT_ASYNC,
	WEFT__REACT_FOLLOW,
	WEFT__REACT_CHOOSE,
	WEFT__REACT_PICK,
	WEFT__REACT_NCHOOSE,
	WEFT__REACT_NPICK,
	WEFT__REACT_JOIN,
};

/* Callback like weft_then_fn that is called however the input ends, with the promise that owns the value or error. */
typedef struct weft_promise *weft__owner_fn(void *ctx, struct weft_promise *owner);

union weft__code {
	weft_then_fn *then;
	weft_map_fn *map;
	weft_rescue_fn *rescue;
	weft_start_fn *start;
	weft__owner_fn *with;
};

struct weft__waiter {
	struct weft__link link;  /* link in the input's list of waiters */
	struct weft_promise *to; /* counted while linked */
	weft_id input_id;        /* id of the input at the time when this waiter was made */
};

enum weft__handler_type {
	WEFT__HANDLER_CALL,
	WEFT__HANDLER_OF_RESOLVER,
	WEFT__HANDLER_LEAVE_QUEUE,
	WEFT__HANDLER_LABEL /* a handler that does nothing; a copied label follows the handler and is freed with it */
};

/* An action that runs when a promise is cancelled. */
struct weft__handler {
	struct weft__link link;
	enum weft__handler_type type;
	weft_id as; /* promise in whose name the action runs */
	weft_on_end_fn *f;
	void *ctx;
	union {
		weft_destroy_fn *destroy;
		const struct weft_promise *task; /* OF_RESOLVER: the resolver's task */
	};
};

struct weft__input {
	struct weft__waiter waiter;
	struct weft_promise *promise; /* weak */
};

/* The value of weft_promise_nchoose(); a struct weft_values follows, and then `capacity` pointers. */
struct weft__gathered {
	size_t capacity;
	struct weft_promise **owners; /* counted references to the owners of the values; NULL for a value without an owner */
};

static inline size_t weft__gathered_bytes(size_t capacity)
{
	return sizeof(struct weft__gathered) + sizeof(struct weft_values) +
	       capacity * (sizeof(void *) + sizeof(struct weft_promise *));
}

/* Use of an object of a pool by a promise, as a weak reference. */
struct weft__holding {
	struct weft__link link;
	struct weft_promise *holder;
};

/* The inputs of a promise that has several inputs. */
struct weft__inputs {
	uint32_t refs;
	size_t count, missing;
	struct weft_promise *failed;   /* join: counted */
	struct weft__gathered *values; /* memory for the result of weft_promise_nchoose() */
	struct weft__input input[];
};

/* Number of promises in an allocated chunk.  Promises are allocated in chunks, so that all pending promises can be found without
 * a list. */
#ifndef WEFT__CHUNK
#define WEFT__CHUNK 32
#if defined(__SANITIZE_ADDRESS__)
#undef WEFT__CHUNK
#define WEFT__CHUNK 1 /* AddressSanitizer finds uses of freed memory only if each promise is a separate allocation */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef WEFT__CHUNK
#define WEFT__CHUNK 1
#endif
#endif
#endif

struct weft_promise {
	/* Numbers of counted and weak references; all counted references together hold one weak reference, and with 0 weak
	 * references the memory is freed. */
	uint32_t refs, weak;
	uint8_t state, cancel, react, kind;
	bool has_closure, own_message, cancelled, should_resolve;
	weft_id id;                /* recorded id; 0 if nothing has recorded since the promise was made */
	bool is_noticed;           /* whether the promise failed, and the program has asked for its state or error */
	bool waits_for_lock;       /* whether the promise is a task in the queue of a mutex or a pool, so that .lock is valid */
	struct weft__link waiters; /* list of waiters; the handler that was registered last comes first */
	struct weft__link handlers;
	union {
		struct weft_promise *input;  /* pending, CANCEL_ONE */
		struct weft__inputs *inputs; /* pending, CANCEL_MANY */
		struct weft_promise *into;   /* proxy */
		struct weft_value value;
		struct weft_failure failure;
	};
	union {
		struct weft_promise *owner; /* after the end: promise that owns the value or error; NULL if it is this promise */
		uint64_t since;             /* while pending and recorded: time of the promise's creation */
	};
	union {
		uint64_t stamp; /* after the end: number of the end, which is the same for promises that end together */
		struct {
			uint32_t mark, index; /* while pending: used by the search for promises to cancel */
		};
		/* For a mutex, which cannot be cancelled: weak reference to the holder, if it is known. */
		struct weft_promise *holder;
		struct weft__link *holders; /* for a pool: list of struct weft__holding */
	};
	/* Next promise in the only list that contains this promise: to run, run later, destroy, cancel or reuse. */
	struct weft_promise *next;
	union {
		struct { /* react != NONE */
			struct weft__waiter waiter;
			union {
				struct weft__inputs *waits_for; /* counted; for several inputs */
				union weft__code code;
				weft_on_value_fn *on_value;
			};
			union {
				weft_rescue_fn *rescue; /* second callback of try_bind */
				weft_on_failure_fn *on_failure;
			};
			weft_on_end_fn *on_end;
			void *ctx;
			weft_destroy_fn *destroy;
		};
		struct { /* fields of a task in a queue */
			struct weft__link queued;
			struct weft__handler leave;
			struct weft_promise *lock; /* promise of the mutex or pool for which the task waits */
		};
	};
#ifndef WEFT_DISABLE
	/* Facts that are recorded again while the promise is pending, because a recording may start later, and a ring overwrites
	 * old events. */
	struct weft_record_site *site;
	const char *label; /* NULL: none */
	weft_id by;        /* promise that created this one, if it was recorded */
#endif
};

struct weft__chunk {
	struct weft__link link;
	struct weft_promise *slot; /* address after this struct, in the same allocation */
};

/* A round: the events since the paused promises were woken, which are compared with the previous round's events
 * (spin_compress.c).
 */
enum { WEFT__ROUND_STEPS = 32, WEFT__ROUND_MADE = 8 };

struct weft__round {
	weft_word next; /* position in the stream at the start of the round */
	weft_id running;
	uint64_t shape;
	unsigned step_count, made_count;
	bool is_deferring;
	bool has_other_events; /* whether events were recorded that cannot be compared */
	struct weft__step {
		uint8_t op, kind;
		weft_id a, b;
		struct weft_record_site *site;
	} steps[WEFT__ROUND_STEPS];
	weft_id made[WEFT__ROUND_MADE];
	/* Weak references to the promises made in the round, while its events are deferred. */
	struct weft_promise *promises[WEFT__ROUND_MADE];
};

struct weft__rounds {
	uint64_t shape, last, generation;
	uint64_t same_rounds; /* number of consecutive equal rounds that were recorded */
	uint64_t spin_rounds; /* number of equal rounds since the program began to spin */
	unsigned slowness;
	weft_id made[WEFT__ROUND_MADE]; /* ids of the promises made in the last recorded round */
	unsigned made_count;
};

struct weft__thread_state {
	weft_id current; /* the running promise, which the trace learns a little later */
	bool waking, is_destroying;
	struct weft_promise *to_run, *later, *later_last, *to_destroy;
	uint64_t stamp;
	uint32_t mark;
	uint64_t random;
	struct weft__link paused;
	size_t paused_count;
	weft_on_failure_fn *hook;
	void *hook_ctx;
	struct weft_promise_memory memory;
	struct weft__link chunks;
	struct weft_promise *spare; /* free slots */
	size_t spare_count, sweep_at;
	struct weft__link *labels; /* free labels */
	size_t label_count;
#ifndef WEFT_DISABLE
	struct weft__round *round; /* round that is in progress; NULL if no paused promise is being woken */
	struct weft__rounds rounds;
#endif
	struct weft__link *list_chunk; /* position in the listing of pending promises: a chunk, and a slot in it */
	size_t list_slot;
};

#define WEFT__HIDDEN __attribute__((visibility("hidden")))

extern WEFT__HIDDEN WEFT__PER_THREAD WEFT__PER_THREAD_MODEL struct weft__thread_state weft__thread_state;
extern WEFT__HIDDEN struct weft_promise weft__unit, weft__no_memory;

/* ---- Lists ---- */

static inline void weft__list_init(struct weft__link *list)
{
	list->prev = list->next = list;
}

static inline bool weft__list_is_empty(const struct weft__link *list)
{
	return list->next == list;
}

static inline void weft__link_after(struct weft__link *at, struct weft__link *link)
{
	link->prev = at;
	link->next = at->next;
	at->next->prev = link;
	at->next = link;
}

static inline void weft__unlink(struct weft__link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->prev = link->next = NULL;
}

/* Removes the first element of a list that is not empty, and returns the element. */
static inline struct weft__link *weft__list_pop(struct weft__link *list)
{
	struct weft__link *first = list->next;
	list->next = first->next;
	first->next->prev = list;
	first->prev = first->next = NULL;
	return first;
}

/* Moves all elements of the list `from` to the end of `list`. */
static inline void weft__list_append(struct weft__link *list, struct weft__link *from)
{
	if (weft__list_is_empty(from))
		return;
	from->next->prev = list->prev;
	list->prev->next = from->next;
	from->prev->next = list;
	list->prev = from->prev;
	weft__list_init(from);
}

#define WEFT__CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- Memory and references (core.c) ---- */

WEFT__HIDDEN void *weft__allocate(size_t bytes);
WEFT__HIDDEN void weft__release(void *memory, size_t bytes);
/* Returns an allocated copy of the text, or NULL. */
WEFT__HIDDEN char *weft__copy_text(const char *prefix, const char *text);
WEFT__HIDDEN size_t weft__text_bytes(const char *text);
WEFT__HIDDEN void weft__destroy(struct weft_promise *p);
WEFT__HIDDEN void weft__weak_unref_last(struct weft_promise *p);

#define WEFT__FOREVER UINT32_MAX /* reference count of a static promise, which is never freed */

static inline struct weft_promise *weft__ref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER)
		p->refs++;
	return p;
}

static inline void weft__unref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER && --p->refs == 0)
		weft__destroy(p);
}

static inline struct weft_promise *weft__weak_ref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER)
		p->weak++;
	return p;
}

static inline void weft__weak_unref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER && --p->weak == 0)
		weft__weak_unref_last(p);
}

/* ---- States (core.c) ---- */

/* Returns the promise that p has become in the end, and shortens the chain of proxies. */
WEFT__HIDDEN struct weft_promise *weft__end_of_proxies(struct weft_promise *p);

static inline struct weft_promise *weft__repr(struct weft_promise *p)
{
	return p->state == WEFT__PROXY ? weft__end_of_proxies(p) : p;
}

/* Returns the promise that was passed as an argument; NULL stands for a promise for which there was no memory. */
static inline struct weft_promise *weft__arg(const struct weft_promise *p)
{
	return p ? (struct weft_promise *)(uintptr_t)p : &weft__no_memory;
}

static inline struct weft_promise *weft__owner(struct weft_promise *p)
{
	return p->owner ? p->owner : p;
}

/* Makes a promise that is resolved with NULL and is not recorded; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__make_blank(void);
/* Gives a promise of weft__make_blank() a value, as weft_promise_return() does. */
WEFT__HIDDEN void weft__become_value(struct weft_promise *p, struct weft_value value);
/* Makes a pending promise, recorded as created by the running promise; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__make_pending(
    struct weft_record_site *site, enum weft_kind kind, enum weft__cancel cancel);
/* Makes a promise that has ended as p has, and that is not recorded. */
WEFT__HIDDEN struct weft_promise *weft__promise_ended_as(struct weft_promise *p);

/* Makes p react to the end of `input` through p->waiter, its only waiter, which holds a reference to p. */
static inline void weft__wait_for(struct weft_promise *p, struct weft_promise *input)
{
	p->waiter.to = weft__ref(p);
	p->waiter.input_id = input->id;
	weft__link_after(&input->waiters, &p->waiter.link);
}
/* Ends p (pending) as `as` (ended) did, and pushes p's waiters on the stack of waiters to run. */
WEFT__HIDDEN void weft__end_as(struct weft_promise *p, struct weft_promise *as);
/* Ends p (pending) with the given value. */
WEFT__HIDDEN void weft__end_with(struct weft_promise *p, void *value, weft_destroy_fn *destroy);
/* Merges p with `with`, the promise that p's callback returned; takes over the reference to `with`. */
WEFT__HIDDEN void weft__connect(struct weft_promise *p, struct weft_promise *with);
/* Wakes p up as weft_wakeup() does, but p ends as `as` did; the caller keeps its reference to `as`. */
WEFT__HIDDEN void weft__wakeup_as(struct weft_promise *p, struct weft_promise *as, bool later);
/* Registers f for the cancellation of p; when f runs, the promise that runs now is the running promise.  On failure
 * (WEFT_ENOMEM), nothing is registered, and ctx is not destroyed. */
WEFT__HIDDEN int weft__add_handler(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Makes the promise w->to react to the end of its input.  weft__fire() is in continuations.c; w must be unlinked, and the
 * function takes over w's reference to w->to. */
WEFT__HIDDEN void weft__fire(struct weft__waiter *w, struct weft_promise *input);
WEFT__HIDDEN void weft__fire_choose(struct weft_promise *p, struct weft_promise *input);
WEFT__HIDDEN void weft__fire_join(struct weft_promise *p, struct weft__waiter *w, struct weft_promise *input);
WEFT__HIDDEN void weft__drop_inputs(struct weft__inputs *inputs);
WEFT__HIDDEN void weft__drop_closure(struct weft_promise *p);
WEFT__HIDDEN void weft__report_lost_error(const struct weft_failure *failure);

/* Allocates memory for more promises; returns false without memory. */
WEFT__HIDDEN bool weft__grow(void);

/* Takes a free slot for a promise; there must be a free slot. */
static inline struct weft_promise *weft__pop_slot(enum weft_promise_state state, enum weft__cancel cancel)
{
	struct weft_promise *p = weft__thread_state.spare;
	weft__thread_state.spare = p->next;
	weft__thread_state.spare_count--;
	p->refs = p->weak = 1;
	p->state = (uint8_t)state;
	p->cancel = (uint8_t)cancel;
	p->react = WEFT__REACT_NONE;
	p->kind = 0;
	p->has_closure = p->own_message = p->cancelled = p->should_resolve = p->is_noticed = false;
	p->id = 0;
	p->waits_for_lock = false;
	weft__list_init(&p->waiters);
	weft__list_init(&p->handlers);
	p->value = (struct weft_value){NULL, NULL};
	p->owner = NULL;
	p->stamp = 0;
	p->next = NULL;
	p->queued.next = p->leave.link.next = NULL;
	return p;
}

/* Makes a pending promise without recording it; there must be a free slot. */
static inline struct weft_promise *weft__make_unrecorded(
    struct weft_record_site *site, enum weft_kind kind, enum weft__cancel cancel)
{
	struct weft_promise *p = weft__pop_slot(WEFT_PENDING, cancel);
	p->kind = (uint8_t)kind;
#ifndef WEFT_DISABLE
	p->site = site;
	p->label = NULL;
#endif
	return p;
}

/* ---- For the other files of promises (continuations.c) ---- */

/* Binds a callback to p that is called however p ends, and that may keep the promise that owns the value. */
WEFT__HIDDEN struct weft_promise *weft__bind_owner(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Binds such a callback to p, a task in a queue.  Without memory, p leaves the queue. */
WEFT__HIDDEN struct weft_promise *weft__bind_owner_of_task(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy);

/* ---- Queues of tasks that can be cancelled (core.c) ---- */

/* Adds a new task to the end of the queue, which holds the task as a resolver does; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__queue_add_task(
    struct weft_record_site *site, enum weft_kind kind, struct weft__link *queue);
/* Removes the first pending task from the queue, and passes on its reference; NULL if there is none. */
WEFT__HIDDEN struct weft_promise *weft__queue_pop(struct weft__link *queue);
/* Drops the queue.  The tasks of the queue stay pending, and the label that they share is freed. */
WEFT__HIDDEN void weft__queue_drop(struct weft__link *queue, const char *label);

/* ---- Recording, by the rules of the traced Lwt ---- */

/* Returns the same as weft_is_on(), as one comparison with memory and a branch, because compilers would load a register
 * first. */
#if defined(__x86_64__) && !defined(WEFT_DISABLE)
static inline __attribute__((always_inline)) bool weft__is_recording(void)
{
	__asm__ goto("cmpl $0, %0\n\tjne %l1" : : "m"(weft__mode) : "cc" : on);
	return false;
on:
	return true;
}
#else
static inline bool weft__is_recording(void)
{
	return weft_is_on();
}
#endif
#define WEFT__IS_RECORDING() __builtin_expect(weft__is_recording(), false)

/* The check whether something records is inline, and the recording is not: while nothing records, a call costs a load and a
 * branch, and no register.  A promise that was made before the recording gets its id at its first recorded event. */
WEFT__HIDDEN void weft__record_created(struct weft_promise *p);
WEFT__HIDDEN void weft__record_created_labelled(struct weft_promise *p, const char *label, size_t bytes);
WEFT__HIDDEN struct weft_promise *weft__record_created_awaiting(struct weft_promise *p, struct weft_promise *input);
WEFT__HIDDEN void weft__record_enter(struct weft_promise *waiting, const struct weft_promise *ended);
WEFT__HIDDEN void weft__record_switch(void);
WEFT__HIDDEN void weft__record_read(weft_id input);
WEFT__HIDDEN void weft__record_signal(weft_id from);
WEFT__HIDDEN void weft__record_end(struct weft_promise *p, const struct weft_failure *failure);
WEFT__HIDDEN void weft__record_become(struct weft_promise *p, struct weft_promise *into);
WEFT__HIDDEN void weft__record_await(struct weft_promise *p, struct weft_promise *input);
WEFT__HIDDEN void weft__record_label(struct weft_promise *p);
WEFT__HIDDEN void weft__record_hold(struct weft_promise *holder, struct weft_promise *lock);
WEFT__HIDDEN void weft__record_release(struct weft_promise *holder, struct weft_promise *lock);
WEFT__HIDDEN void weft__record_counter(struct weft_counter *counter);
/* Returns the promise's id; if something records and the promise has no id, assigns an id. */
WEFT__HIDDEN weft_id weft__record_id(struct weft_promise *p);
/* Registers or unregisters the function that lists this OS thread's pending promises. */
WEFT__HIDDEN void weft__set_pending_listing(bool on);

#ifndef WEFT_DISABLE
WEFT__HIDDEN void weft__round_begin(struct weft__round *round);
WEFT__HIDDEN void weft__round_end(struct weft__round *round);
/* Records the round's deferred events; call it before an event that cannot be compared. */
WEFT__HIDDEN void weft__round_flush(void);
/* Defers an event of the round; returns false if the caller must record the event. */
WEFT__HIDDEN bool weft__round_step(enum weft_op op, weft_id a, weft_id b);
/* Records or defers the creation of a promise; `input` is 0 if the promise awaits none. */
WEFT__HIDDEN weft_id weft__round_create(struct weft_promise *p, weft_id input);
#endif

static inline void weft__round_flush_if_any(void)
{
#ifndef WEFT_DISABLE
	if (__builtin_expect(weft__thread_state.round != NULL, false))
		weft__round_flush();
#endif
}

static inline bool weft__is_deferred(enum weft_op op, weft_id a, weft_id b)
{
#ifndef WEFT_DISABLE
	return __builtin_expect(weft__thread_state.round != NULL, false) && weft__round_step(op, a, b);
#else
	return false;
#endif
}

static inline void weft__note_switch(void)
{
	if (WEFT__IS_RECORDING())
		weft__record_switch();
}

static inline void weft__note_read(weft_id input)
{
	if (WEFT__IS_RECORDING())
		weft__record_read(input);
}

static inline void weft__note_signal(weft_id from)
{
	if (WEFT__IS_RECORDING())
		weft__record_signal(from);
}

static inline void weft__note_end(struct weft_promise *p, const struct weft_failure *failure)
{
	if (WEFT__IS_RECORDING())
		weft__record_end(p, failure);
}

static inline void weft__note_become(struct weft_promise *p, struct weft_promise *into)
{
	if (WEFT__IS_RECORDING())
		weft__record_become(p, into);
}

static inline void weft__note_hold(struct weft_promise *holder, struct weft_promise *lock)
{
	if (WEFT__IS_RECORDING())
		weft__record_hold(holder, lock);
}

static inline void weft__note_release(struct weft_promise *holder, struct weft_promise *lock)
{
	if (WEFT__IS_RECORDING())
		weft__record_release(holder, lock);
}

static inline void weft__note_await(struct weft_promise *p, struct weft_promise *input)
{
	if (WEFT__IS_RECORDING())
		weft__record_await(p, input);
}

static inline weft_id weft__id(struct weft_promise *p)
{
	return WEFT__IS_RECORDING() && p->id == 0 ? weft__record_id(p) : p->id;
}

/* Sets the label, whose text must stay valid while p is pending, or until weft__unlabel(). */
static inline void weft__label(struct weft_promise *p, const char *label)
{
#ifndef WEFT_DISABLE
	p->label = label;
	if (WEFT__IS_RECORDING())
		weft__record_label(p);
#endif
}

/* Removes a label from each promise that has it, before the label's memory is freed. */
static inline void weft__unlabel(struct weft_promise *p, const char *label)
{
#ifndef WEFT_DISABLE
	p = weft__repr(p);
	if (p->label == label)
		p->label = NULL;
#endif
}

/* Notes that p's wait for the input is over, and that p's code runs now. */
static inline void weft__enter(struct weft_promise *p, const struct weft_promise *input)
{
	weft__thread_state.current = weft__repr(p)->id;
	if (WEFT__IS_RECORDING())
		weft__record_enter(p, input);
}

static inline void weft__switch_to(weft_id id)
{
	weft__thread_state.current = id;
	weft__note_switch();
}

#endif
