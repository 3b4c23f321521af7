/* core.h: what a promise is made of, for the files of this folder.
 *
 * Who holds whom (=> counted, -> weak):
 *
 *	resolver => promise            who will resolve it
 *	input's waiter => result       what waits is kept by what it waits for
 *	result -> input                only to cancel it, so there are no cycles
 *	proxy => the promise it is now one with (weak once the proxy itself is only weakly held)
 *	result => owner                the promise whose value or error it shares
 *
 * A promise without counted references is emptied; its memory stays while weak ones point there.  Nothing here recurses on the
 * length of any of these: running, burying, cancelling and finding the end of a chain of proxies are loops over links that
 * stand in the promises themselves, so they need no memory either.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROMISE_CORE_H
#define WEFT_PROMISE_CORE_H

#include <weft/promise.h>

struct weft__link {
	struct weft__link *prev, *next; /* NULL: in no list */
};

/* A state beside the public ones: this promise has become another one. */
enum { WEFT__PROXY = 3 };

/* What cancelling a pending promise does. */
enum weft__cancel { WEFT__CANCEL_NO, WEFT__CANCEL_ME, WEFT__CANCEL_ONE, WEFT__CANCEL_MANY };

/* What a promise does when one of its inputs has ended. */
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

/* As weft_then_fn, called however the input has ended, with the promise that has its value or error. */
typedef struct weft_promise *weft__owner_fn(void *ctx, struct weft_promise *owner);

union weft__code {
	weft_then_fn *then;
	weft_map_fn *map;
	weft_rescue_fn *rescue;
	weft_start_fn *start;
	weft__owner_fn *with;
};

struct weft__waiter {
	struct weft__link link;  /* in the input's waiters */
	struct weft_promise *to; /* counted while linked */
	weft_id input_id;        /* the input's id at the time when this waiter was made */
};

enum weft__handler_type {
	WEFT__HANDLER_CALL,
	WEFT__HANDLER_OF_RESOLVER,
	WEFT__HANDLER_LEAVE_QUEUE,
	WEFT__HANDLER_LABEL /* does nothing; a copied label stands behind this handler and is freed with it */
};

/* What is to be done when a promise is cancelled. */
struct weft__handler {
	struct weft__link link;
	enum weft__handler_type type;
	weft_id as; /* who runs meanwhile */
	weft_on_end_fn *f;
	void *ctx;
	union {
		weft_destroy_fn *destroy;
		const struct weft_promise *task; /* OF_RESOLVER: whose resolver */
	};
};

struct weft__input {
	struct weft__waiter waiter;
	struct weft_promise *promise; /* weak */
};

/* The value of nchoose: a struct weft_values follows, then as many pointers as there is room for. */
struct weft__gathered {
	size_t room;
	struct weft_promise **owners; /* counted references; NULL for a value without an owner */
};

static inline size_t weft__gathered_bytes(size_t room)
{
	return sizeof(struct weft__gathered) + sizeof(struct weft_values) +
	       room * (sizeof(void *) + sizeof(struct weft_promise *));
}

/* Who has one of a pool's things: weak. */
struct weft__held {
	struct weft__link link;
	struct weft_promise *holder;
};

/* The inputs of a promise that has several. */
struct weft__inputs {
	uint32_t refs;
	size_t count, missing;
	struct weft_promise *failed;   /* join: counted */
	struct weft__gathered *values; /* nchoose: room for the result */
	struct weft__input input[];
};

/* Promises stand in chunks, so that all that are pending can be found without a list that every promise would have to enter. */
#ifndef WEFT__CHUNK
#define WEFT__CHUNK 32
#if defined(__SANITIZE_ADDRESS__)
#undef WEFT__CHUNK
#define WEFT__CHUNK 1 /* AddressSanitizer finds uses of freed memory only if each promise is an allocation of its own */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef WEFT__CHUNK
#define WEFT__CHUNK 1
#endif
#endif
#endif

struct weft_promise {
	uint32_t refs, weak; /* all counted references together hold one weak one; when weak is 0, the memory is free */
	uint8_t state, cancel, react, kind;
	bool has_closure, own_message, cancelled, should_resolve;
	weft_id id;                /* 0: nothing has recorded since the promise was made */
	bool waits_for_lock;       /* a task in the queue of a mutex or a pool: .lock */
	struct weft__link waiters; /* the handler that was registered last comes first */
	struct weft__link handlers;
	union {
		struct weft_promise *input;  /* pending, CANCEL_ONE */
		struct weft__inputs *inputs; /* pending, CANCEL_MANY */
		struct weft_promise *into;   /* proxy */
		struct weft_value value;
		struct weft_failure failure;
	};
	union {
		struct weft_promise *owner; /* after the end: the promise that has the value or error; NULL: this one */
		uint64_t since;             /* while pending and recorded: the time of creation */
	};
	union {
		uint64_t stamp; /* after the end: the number of this end; all promises that ended by the same end share it */
		struct {
			uint32_t mark, index; /* pending: cancel's walk */
		};
		struct weft_promise *holder; /* a mutex's, which nobody cancels: who has it, weak, if that is known */
		struct weft__link *holders;  /* a pool's: struct weft__held */
	};
	struct weft_promise *next; /* the next one in the only list that a promise is in at a time: to run, to run later, to bury,
				      to cancel, or to reuse */
	union {
		struct { /* react != NONE */
			struct weft__waiter waiter;
			union {
				struct weft__inputs *waits_for; /* several inputs: counted */
				union weft__code code;
				weft_on_value_fn *on_value;
			};
			union {
				weft_rescue_fn *rescue; /* try_bind's second */
				weft_on_failure_fn *on_failure;
			};
			weft_on_end_fn *on_end;
			void *ctx;
			weft_destroy_fn *destroy;
		};
		struct { /* a task in a queue */
			struct weft__link queued;
			struct weft__handler leave;
			struct weft_promise *lock; /* the promise of the mutex or pool, if it waits for one */
		};
	};
#ifndef WEFT_DISABLE
	/* What the trace is told again while the promise is pending: a recording may begin later, and a ring forgets. */
	struct weft_record_site *site;
	const char *label; /* NULL: none */
	weft_id by;        /* if it was recorded */
#endif
};

struct weft__chunk {
	struct weft__link link;
	struct weft_promise *slot; /* stands behind this struct, in the same memory */
};

/* What promises that paused told since they were woken, and how often the same was told before (round.c). */
enum { WEFT__ROUND_STEPS = 32, WEFT__ROUND_MADE = 8 };

struct weft__round {
	weft_word next; /* of the stream, when it began */
	weft_id running;
	uint64_t shape;
	unsigned step_count, made_count;
	bool keeps_back;
	bool is_other; /* more was told than can be compared */
	struct weft__step {
		uint8_t op, kind;
		weft_id a, b;
		struct weft_record_site *site;
	} steps[WEFT__ROUND_STEPS];
	weft_id made[WEFT__ROUND_MADE];
	struct weft_promise *promises[WEFT__ROUND_MADE]; /* weak, while it keeps back */
};

struct weft__rounds {
	uint64_t shape, last, generation;
	uint64_t same;  /* how often it was told, at once */
	uint64_t turns; /* and how often it was so */
	unsigned slow;
	weft_id made[WEFT__ROUND_MADE]; /* by the last one that was told */
	unsigned made_count;
};

struct weft__world {
	weft_id current; /* the promise whose code runs; the trace is told a little later */
	bool waking, burying;
	struct weft_promise *to_run, *later, *later_last, *to_bury;
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
	struct weft__link *labels; /* free ones */
	size_t label_count;
#ifndef WEFT_DISABLE
	struct weft__round *round; /* NULL: no promise that paused is being woken */
	struct weft__rounds rounds;
#endif
	struct weft__link *telling; /* where the state dump goes on: the chunk, and the slot in it */
	size_t telling_slot;
};

#define WEFT__HIDDEN __attribute__((visibility("hidden")))

extern WEFT__HIDDEN WEFT__PER_THREAD WEFT__PER_THREAD_MODEL struct weft__world weft__world;
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

/* Takes the first of a list that is not empty. */
static inline struct weft__link *weft__list_pop(struct weft__link *list)
{
	struct weft__link *first = list->next;
	list->next = first->next;
	first->next->prev = list;
	first->prev = first->next = NULL;
	return first;
}

/* Empties `from` into the end of list. */
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
/* A copy, or NULL. */
WEFT__HIDDEN char *weft__copy_text(const char *prefix, const char *text);
WEFT__HIDDEN size_t weft__text_bytes(const char *text);
WEFT__HIDDEN void weft__bury(struct weft_promise *p);
WEFT__HIDDEN void weft__weak_unref_last(struct weft_promise *p);

#define WEFT__FOREVER UINT32_MAX /* the reference count of a static promise */

static inline struct weft_promise *weft__ref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER)
		p->refs++;
	return p;
}

static inline void weft__unref(struct weft_promise *p)
{
	if (p->refs != WEFT__FOREVER && --p->refs == 0)
		weft__bury(p);
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

/* The promise that p has become; shortens the chain on the way there. */
WEFT__HIDDEN struct weft_promise *weft__end_of_proxies(struct weft_promise *p);

static inline struct weft_promise *weft__repr(struct weft_promise *p)
{
	return p->state == WEFT__PROXY ? weft__end_of_proxies(p) : p;
}

/* A promise given as an argument: NULL means that there was no memory for it. */
static inline struct weft_promise *weft__arg(const struct weft_promise *p)
{
	return p ? (struct weft_promise *)(uintptr_t)p : &weft__no_memory;
}

static inline struct weft_promise *weft__owner(struct weft_promise *p)
{
	return p->owner ? p->owner : p;
}

/* A promise that is resolved with NULL and that the trace does not know; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__blank(void);
/* Makes such a promise what weft_promise_return() returns. */
WEFT__HIDDEN void weft__become_value(struct weft_promise *p, struct weft_value value);
/* A pending promise, created by who runs; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__created(struct weft_record_site *site, enum weft_kind kind, enum weft__cancel cancel);
/* A promise that has ended as p has, and that the trace does not know. */
WEFT__HIDDEN struct weft_promise *weft__promise_ended_as(struct weft_promise *p);

/* Lets p react to input through p->waiter, its only waiter, which holds a reference to p. */
static inline void weft__wait_for(struct weft_promise *p, struct weft_promise *input)
{
	p->waiter.to = weft__ref(p);
	p->waiter.input_id = input->id;
	weft__link_after(&input->waiters, &p->waiter.link);
}
/* p (pending) ends as `as` (which has ended), and what waits for p is put on the stack of what is to run. */
WEFT__HIDDEN void weft__end_as(struct weft_promise *p, struct weft_promise *as);
/* The same, with a value that is given here. */
WEFT__HIDDEN void weft__end_with(struct weft_promise *p, void *value, weft_destroy_fn *destroy);
/* From now on p is `with`, the promise that its callback returned; takes `with`. */
WEFT__HIDDEN void weft__connect(struct weft_promise *p, struct weft_promise *with);
/* As weft_wakeup(), but the promise ends as `as` did; the reference to `as` stays the caller's. */
WEFT__HIDDEN void weft__wakeup_as(struct weft_promise *p, struct weft_promise *as, bool later);
/* Registers f for the moment when p is cancelled; f runs as the promise that runs now.  WEFT_ENOMEM: nothing is registered, and
 * ctx is not destroyed. */
WEFT__HIDDEN int weft__add_handler(struct weft_promise *p, weft_on_end_fn *f, void *ctx, weft_destroy_fn *destroy);
/* Lets w->to react, since its input has ended.  Defined in react.c; w is unlinked, and its reference to w->to becomes the
 * callee's. */
WEFT__HIDDEN void weft__fire(struct weft__waiter *w, struct weft_promise *input);
WEFT__HIDDEN void weft__fire_choose(struct weft_promise *p, struct weft_promise *input);
WEFT__HIDDEN void weft__fire_join(struct weft_promise *p, struct weft__waiter *w, struct weft_promise *input);
WEFT__HIDDEN void weft__drop_inputs(struct weft__inputs *inputs);
WEFT__HIDDEN void weft__drop_closure(struct weft_promise *p);
WEFT__HIDDEN void weft__lost_error(const struct weft_failure *failure);

/* Makes slots spare; false without memory. */
WEFT__HIDDEN bool weft__grow(void);

/* A spare slot, of which there is one. */
static inline struct weft_promise *weft__take_slot(enum weft_promise_state state, enum weft__cancel cancel)
{
	struct weft_promise *p = weft__world.spare;
	weft__world.spare = p->next;
	weft__world.spare_count--;
	p->refs = p->weak = 1;
	p->state = (uint8_t)state;
	p->cancel = (uint8_t)cancel;
	p->react = WEFT__REACT_NONE;
	p->kind = 0;
	p->has_closure = p->own_message = p->cancelled = p->should_resolve = false;
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

/* A pending promise that the trace does not know yet; the caller has made a slot spare. */
static inline struct weft_promise *weft__unheard(struct weft_record_site *site, enum weft_kind kind, enum weft__cancel cancel)
{
	struct weft_promise *p = weft__take_slot(WEFT_PENDING, cancel);
	p->kind = (uint8_t)kind;
#ifndef WEFT_DISABLE
	p->site = site;
	p->label = NULL;
#endif
	return p;
}

/* ---- For what is made of promises (react.c) ---- */

/* A bind by a function that is called however p ends, and may keep the promise that has the value. */
WEFT__HIDDEN struct weft_promise *weft__bind_owner(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy);
/* The same for p, a task in a queue; if there is no memory to wait for p, p leaves the queue. */
WEFT__HIDDEN struct weft_promise *weft__bind_owner_of_task(
    struct weft_record_site *site, struct weft_promise *p, weft__owner_fn *f, void *ctx, weft_destroy_fn *destroy);

/* ---- Queues of tasks that can be cancelled (core.c) ---- */

/* A new task at the end of the queue, which holds it as a resolver does; NULL without memory. */
WEFT__HIDDEN struct weft_promise *weft__queue_task(struct weft_record_site *site, enum weft_kind kind, struct weft__link *queue);
/* Takes the first that is pending: the reference is the caller's; NULL if there is none. */
WEFT__HIDDEN struct weft_promise *weft__queue_take(struct weft__link *queue);
/* The tasks in it stay pending; their label, which they share, is freed. */
WEFT__HIDDEN void weft__queue_drop(struct weft__link *queue, const char *label);

/* ---- What the trace is told, by the rules of the traced Lwt ---- */

/* The same as weft_is_on(), as one comparison with memory and a branch: compilers load a register first. */
#if defined(__x86_64__) && !defined(WEFT_DISABLE)
static inline __attribute__((always_inline)) bool weft__noting(void)
{
	__asm__ goto("cmpl $0, %0\n\tjne %l1" : : "m"(weft__mode) : "cc" : on);
	return false;
on:
	return true;
}
#else
static inline bool weft__noting(void)
{
	return weft_is_on();
}
#endif
#define WEFT__NOTING() __builtin_expect(weft__noting(), false)

/* The gate is inline, what is behind it is not: while nothing records, a call costs a load and a branch and no register.  Behind
 * it, a promise that was made before the recording gets its id when the first event tells of it. */
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
/* The promise's id; it gets one now if something records. */
WEFT__HIDDEN weft_id weft__record_id(struct weft_promise *p);
/* From now on recordings are told what is pending on this OS thread. */
WEFT__HIDDEN void weft__tell_pending(bool on);

#ifndef WEFT_DISABLE
WEFT__HIDDEN void weft__round_begin(struct weft__round *round);
WEFT__HIDDEN void weft__round_end(struct weft__round *round);
/* Something that is not compared is about to be told: tells what was kept back. */
WEFT__HIDDEN void weft__round_other(void);
/* Whether that is kept back; otherwise the caller tells it. */
WEFT__HIDDEN bool weft__round_step(enum weft_op op, weft_id a, weft_id b);
/* Tells it or keeps it back; input 0: it awaits nobody. */
WEFT__HIDDEN weft_id weft__round_create(struct weft_promise *p, weft_id input);
#endif

static inline void weft__before_other(void)
{
#ifndef WEFT_DISABLE
	if (__builtin_expect(weft__world.round != NULL, false))
		weft__round_other();
#endif
}

static inline bool weft__keeps_back(enum weft_op op, weft_id a, weft_id b)
{
#ifndef WEFT_DISABLE
	return __builtin_expect(weft__world.round != NULL, false) && weft__round_step(op, a, b);
#else
	return false;
#endif
}

static inline void weft__note_switch(void)
{
	if (WEFT__NOTING())
		weft__record_switch();
}

static inline void weft__note_read(weft_id input)
{
	if (WEFT__NOTING())
		weft__record_read(input);
}

static inline void weft__note_signal(weft_id from)
{
	if (WEFT__NOTING())
		weft__record_signal(from);
}

static inline void weft__note_end(struct weft_promise *p, const struct weft_failure *failure)
{
	if (WEFT__NOTING())
		weft__record_end(p, failure);
}

static inline void weft__note_become(struct weft_promise *p, struct weft_promise *into)
{
	if (WEFT__NOTING())
		weft__record_become(p, into);
}

static inline void weft__note_hold(struct weft_promise *holder, struct weft_promise *lock)
{
	if (WEFT__NOTING())
		weft__record_hold(holder, lock);
}

static inline void weft__note_release(struct weft_promise *holder, struct weft_promise *lock)
{
	if (WEFT__NOTING())
		weft__record_release(holder, lock);
}

static inline void weft__note_await(struct weft_promise *p, struct weft_promise *input)
{
	if (WEFT__NOTING())
		weft__record_await(p, input);
}

static inline weft_id weft__id(struct weft_promise *p)
{
	return WEFT__NOTING() && p->id == 0 ? weft__record_id(p) : p->id;
}

/* The label stays valid as long as p is pending, or until weft__unlabel. */
static inline void weft__label(struct weft_promise *p, const char *label)
{
#ifndef WEFT_DISABLE
	p->label = label;
	if (WEFT__NOTING())
		weft__record_label(p);
#endif
}

/* The place of a label goes away, and so does the label of each promise that has it. */
static inline void weft__unlabel(struct weft_promise *p, const char *label)
{
#ifndef WEFT_DISABLE
	p = weft__repr(p);
	if (p->label == label)
		p->label = NULL;
#endif
}

/* p waited for the input, and p's code runs from now on. */
static inline void weft__enter(struct weft_promise *p, const struct weft_promise *input)
{
	weft__world.current = weft__repr(p)->id;
	if (WEFT__NOTING())
		weft__record_enter(p, input);
}

static inline void weft__switch_to(weft_id id)
{
	weft__world.current = id;
	weft__note_switch();
}

#endif
