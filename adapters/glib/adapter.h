/* adapter.h: what the files of the GLib adapter share (private to adapters/glib).
 *
 * Words.  A *thing* is what is known of one object of GLib: a task, a source, a loop that runs, a served call, a child process;
 * most have a promise.  A *part* is what libgio does to answer a call of the program: its promise belongs to that of the call,
 * and is told of only to who asks for parts.  A *story* is a task whose callbacks go on as that task. SPDX-License-Identifier:
 * ISC */
#ifndef WEFT_ADAPTERS_GLIB_ADAPTER_H
#define WEFT_ADAPTERS_GLIB_ADAPTER_H

#include <weft/record.h>

#include "adapters/glib/calls.h"
#include "adapters/hook/carried.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"

/* GLib's own functions; NULL: not there. */
struct weft__glib_real {
#define WEFT__GLIB_POINTER(result, name, parameters, arguments) result(*name) parameters;
#define WEFT__GLIB_CALLED_POINTER(result, name, parameters) result(*name) parameters;
	WEFT__GLIB_SHORT_CALLS(WEFT__GLIB_POINTER)
	WEFT__GLIB_CALLS(WEFT__GLIB_POINTER)
	WEFT__GLIB_LOCK_CALLS(WEFT__GLIB_POINTER)
	WEFT__GIO_CALLS(WEFT__GLIB_POINTER)
	WEFT__GLIB_ONLY_CALLED(WEFT__GLIB_CALLED_POINTER)
	WEFT__GOBJECT_ONLY_CALLED(WEFT__GLIB_CALLED_POINTER)
	WEFT__GIO_ONLY_CALLED(WEFT__GLIB_CALLED_POINTER)
#undef WEFT__GLIB_POINTER
#undef WEFT__GLIB_CALLED_POINTER
};

extern struct weft__glib_real weft__glib_real;

/* What runs in place of each function. */
#define WEFT__GLIB_HANDLER(result, name, parameters, arguments) result weft__##name parameters;
WEFT__GLIB_SHORT_CALLS(WEFT__GLIB_HANDLER)
WEFT__GLIB_CALLS(WEFT__GLIB_HANDLER)
WEFT__GLIB_LOCK_CALLS(WEFT__GLIB_HANDLER)
WEFT__GIO_CALLS(WEFT__GLIB_HANDLER)
#undef WEFT__GLIB_HANDLER

/* The three libraries; NULL: not loaded. */
struct weft__glib_modules {
	const struct weft_hook_module *glib, *gobject, *gio;
};

extern struct weft__glib_modules weft__glib_modules;

static inline bool weft__glib_is_in(const struct weft_hook_module *module, const void *address)
{
	return module && weft_hook_is_own(module, address);
}

static inline bool weft__glib_is_gio(const void *address)
{
	return weft__glib_is_in(weft__glib_modules.gio, address);
}

/* In any of the three. */
static inline bool weft__glib_is_own(const void *address)
{
	return weft__glib_is_gio(address) || weft__glib_is_in(weft__glib_modules.glib, address) ||
	       weft__glib_is_in(weft__glib_modules.gobject, address);
}

/* ---- Things (thing.c) ---- */

/* Names a thing: its place and its generation.  A thing that is gone is found no more, whoever has its place now.  0: none. */
typedef uint64_t weft__glib_tag;

enum weft__glib_type {
	WEFT__GLIB_TASK = 1,
	WEFT__GLIB_SOURCE,
	WEFT__GLIB_LOOP,      /* by its GMainLoop or GApplication; by its context where it is called turn by turn */
	WEFT__GLIB_SERVED,    /* a GDBusMethodInvocation */
	WEFT__GLIB_CHILD,     /* a GSubprocess: the source that watches it */
	WEFT__GLIB_PUSHED,    /* to a GThreadPool */
	WEFT__GLIB_RECURRING, /* what stands for one-shot sources that come again and again */
	WEFT__GLIB_SOCKET     /* a connection, or what listens for some */
};

struct weft__glib_thing {
	const void *key; /* the object; NULL: nobody's */
	uint32_t generation;
	uint32_t place; /* its own, counted from 1 */
	uint32_t next;  /* in its chain; a place, 0: none */
	uint8_t type, kind;
	bool is_part;
	bool is_labelled;
	bool is_returned;   /* of a task: it was given a result; of what was pushed: its work has begun */
	bool is_ended;      /* the trace says so */
	bool is_served;     /* of a source: it calls the method of `stands_for` */
	bool is_untouched;  /* of a source: its callback leaves the descriptor as it was */
	bool is_untold;     /* of a socket: it is told of otherwise */
	bool has_datagrams; /* of a source: its descriptor is a socket for them */
	short events;       /* of a source with a descriptor: what it waits for there, as poll() calls it */
	int fd;             /* its descriptor; -1: none */
	weft_id id;         /* its promise; 0: none */
	weft_id by, owner, awaited_by;
	uint64_t since;
	struct weft_record_place *site;
	const void *home;          /* whose OS thread tells of it again */
	weft__glib_tag stands_for; /* of a source: whose promise runs in it; of a connection: the listener that it came by */
	weft__glib_tag waiter;     /* of a task: the one that waits for it */
	weft__glib_tag child;      /* of a task: the process that it waits for */
	union {
		GAsyncReadyCallback ready; /* of a task */
		GSourceFunc callback;      /* of a source */
		const GThreadPool *pool;   /* of what was pushed */
	};
	const GMainContext *context; /* of a source: where it is attached; NULL: to the default one */
	const GCancellable *cancellable;
	uint32_t cancelled_next, cancelled_before; /* others that the same cancels; places */
	struct weft_hook_calls calls;              /* of its code, without a sleep */
	union {
		weft_id returned_by; /* of a task whose callback is still to come: who returned it; 0: nobody yet */
		weft_id input;       /* of a connection: the read that is under way; 0: none */
	};
	bool is_failed; /* ... with the error `error` */
	bool is_asked;  /* somebody asked for its result */
	struct weft_hook_label label;
	struct weft_hook_label error;
};

/* A new thing of an object; an old one of the same is void.  NULL: no memory, or no time. */
struct weft__glib_thing *weft__glib_thing_add(enum weft__glib_type type, const void *key);
/* What is known of an object, of which the caller has a reference; NULL: nothing. */
static inline struct weft__glib_thing *weft__glib_thing_find(enum weft__glib_type type, const void *key);
void weft__glib_thing_remove(struct weft__glib_thing *thing);

/* The things in use from place *at on; NULL after the last. */
struct weft__glib_thing *weft__glib_thing_next(uint32_t *at);
void weft__glib_things_forget(void);

/* Things stand in chunks. */
enum { WEFT__GLIB_CHUNK = 256, WEFT__GLIB_CHUNKS = 16384 };
extern struct weft__glib_thing *weft__glib_chunks[WEFT__GLIB_CHUNKS];
extern uint32_t weft__glib_places; /* that are or were in use */

static inline struct weft__glib_thing *weft__glib_thing_at(uint32_t place)
{
	struct weft__glib_thing *chunk = __atomic_load_n(&weft__glib_chunks[(place - 1) / WEFT__GLIB_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[(place - 1) % WEFT__GLIB_CHUNK] : NULL;
}

static inline weft__glib_tag weft__glib_tag_of(const struct weft__glib_thing *thing)
{
	return thing ? (uint64_t)__atomic_load_n(&thing->generation, __ATOMIC_RELAXED) << 32 | thing->place : 0;
}

static inline struct weft__glib_thing *weft__glib_thing_of(weft__glib_tag tag)
{
	const uint32_t place = (uint32_t)tag;
	if (!place || place - 1 >= __atomic_load_n(&weft__glib_places, __ATOMIC_ACQUIRE))
		return NULL;
	struct weft__glib_thing *thing = weft__glib_thing_at(place);
	return thing && __atomic_load_n(&thing->generation, __ATOMIC_RELAXED) == tag >> 32 &&
		       __atomic_load_n(&thing->key, __ATOMIC_RELAXED)
		   ? thing
		   : NULL;
}

/* ---- Who runs (run.c) ---- */

enum { WEFT__GLIB_UNLABELLED = 32, WEFT__GLIB_RECENT = 16, WEFT__GLIB_DEPTH = 8 };

/* A loop that runs, and what was before it. */
struct weft__glib_run {
	const void *object; /* a GMainLoop or a GApplication; NULL: a turn of a context */
	GMainContext *context;
	const void *stack, *caller;
	const char *label;
	weft_id outer, loop;
	weft_id turns; /* the promise of the loop whose turn this is, which outer awaits while the turn waits long */
	bool in_loop;
};

/* An OS thread's own. */
struct weft__glib_here {
	unsigned epoch;
	bool in_loop;         /* GLib's loop runs here, between callbacks */
	bool in_library;      /* the innermost callback is libgio's own */
	weft__glib_tag story; /* the task that runs, if one does */
	weft_id loop;         /* the innermost that runs here; 0: none */
	struct weft__glib_run runs[WEFT__GLIB_DEPTH];
	unsigned depth;
	struct weft_hook_older older; /* contexts whose sources are told */
	struct {
		GMainContext *context;
		guint next, last; /* ids that are to be looked at */
	} rest;
	const GSource *dispatched; /* the source that is being dispatched */
	/* The source that was given a descriptor last. */
	struct {
		const GSource *source;
		int fd;
		short events;
	} watched;
	const void *site;        /* where the call came from that will attach a source */
	const void *asked;       /* the code that goes on after what the program asked libgio for last, in this callback */
	weft__glib_tag accepted; /* a connection that has no promise yet */
	gsize sends;             /* how many bytes a call is about to write to a connection; 0: none is */
	weft_id output;          /* ... the write that waits for room; 0: there is some */
	/* The D-Bus call that is being made, whose task comes next. */
	struct {
		bool is_made;
		weft_id id;
		struct weft_hook_label label;
	} call;
	/* Sources that may yet be given a name by who attached them. */
	weft__glib_tag unlabelled[WEFT__GLIB_UNLABELLED];
	unsigned unlabelled_count;
	/* What was looked for last: a task is asked for four times in its life, mostly with nothing in between. */
	struct weft__glib_thing *recent[WEFT__GLIB_RECENT];
};

extern __thread struct weft__glib_here weft__glib_here __attribute__((tls_model("initial-exec")));

void weft__glib_meet(void);
struct weft__glib_thing *weft__glib_thing_search(enum weft__glib_type type, const void *key);

static inline struct weft__glib_thing **weft__glib_recent(const void *key)
{
	return &weft__glib_here.recent[((uintptr_t)key >> 4 ^ (uintptr_t)key >> 8) % WEFT__GLIB_RECENT];
}

/* A thing that has the object as its key now is what is known of it, whatever it was before. */
static inline struct weft__glib_thing *weft__glib_thing_find(enum weft__glib_type type, const void *key)
{
	struct weft__glib_thing *recent = *weft__glib_recent(key);
	if (key && recent && __atomic_load_n(&recent->key, __ATOMIC_ACQUIRE) == key &&
	    __atomic_load_n(&recent->type, __ATOMIC_RELAXED) == type)
		return recent;
	return weft__glib_thing_search(type, key);
}

/* Whether something records, which begins now if it is wanted. */
static inline bool weft__glib_begins(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_thread();
	if (__builtin_expect(weft__glib_here.epoch != weft__hook_epoch, 0))
		weft__glib_meet();
	return true;
}

/* Whether something records here already. */
static inline bool weft__glib_goes_on(void)
{
	return weft_is_on() && weft__glib_here.epoch == weft__hook_epoch;
}

/* Who acts on this OS thread. */
static inline weft_id weft__glib_who(void)
{
	return weft__hook_thread.running ? weft__hook_thread.running : WEFT_SYSTEM_ID;
}

/* What was before a callback. */
struct weft__glib_frame {
	struct weft_hook_frame hook;
	weft__glib_tag story;
	bool in_loop, in_library;
};

#define WEFT__GLIB_FRAME __attribute__((cleanup(weft__glib_leave))) struct weft__glib_frame

/* A callback runs as `id` from now on; the trace is told by the caller.  `in_library`: one of libgio's own. */
static inline struct weft__glib_frame weft__glib_enter(weft_id id, weft__glib_tag story, bool in_library)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct weft__glib_frame frame = {weft_hook_enter(id), here->story, here->in_loop, here->in_library};
	here->story = story;
	here->in_loop = false;
	here->in_library = in_library;
	return frame;
}

static inline void weft__glib_leave(struct weft__glib_frame *frame)
{
	struct weft__glib_here *here = &weft__glib_here;
	weft_hook_leave(&frame->hook);
	here->story = frame->story;
	here->in_loop = frame->in_loop;
	here->in_library = frame->in_library;
	if (!frame->in_loop && weft_is_on() && weft__hook_thread.running)
		weft_hook_show(weft__hook_thread.running);
}

/* promise has read input, and runs. */
static inline void weft__glib_read(weft_id promise, weft_id input)
{
	weft_read(promise, input);
	weft__hook_thread.shown = promise;
}

/* Creates a thing's promise, by who runs; `owner` if it is a part; `waiter` awaits it, 0: nobody. */
void weft__glib_create(
    struct weft__glib_thing *thing, enum weft_kind kind, const void *site, bool is_part, weft_id owner, weft_id waiter);
/* Tells of one that is older than the recording; `waiter` awaits it, 0: nobody. */
void weft__glib_create_older(struct weft__glib_thing *thing, enum weft_kind kind, weft_id waiter);
/* Its promise ends, by who runs; `error` NULL: with a value. */
void weft__glib_end(struct weft__glib_thing *thing, const char *error);
void weft__glib_end_by(weft_id by, struct weft__glib_thing *thing, const char *error);
/* Its first label names it; NULL or "": nothing is known yet. */
void weft__glib_label(struct weft__glib_thing *thing, const char *text);

bool weft__glib_sleeps(struct weft_hook_sleep *sleep);
void weft__glib_thread_ends(void);

/* ---- By subject ---- */

/* loop.c: loops that run on this OS thread since before the recording are told, and some of the sources of the innermost. */
void weft__glib_adopt_loops(void);
void weft__glib_tell_older(void);
/* Whether the OS thread calls the turn that it sleeps in itself, and awaits nothing yet; and what to do if it sleeps long. */
bool weft__glib_is_turn(void);
void weft__glib_still(const struct weft_hook_sleep *sleep);
/* A source that was attached or found is awaited by its context's loop, if that is called turn by turn. */
void weft__glib_is_kept(struct weft__glib_thing *source);

/* source.c: the source is attached since before the recording, maybe; its promise is told if it has none. */
void weft__glib_source_is_older(GSource *source);

/* source.c: a source of a table was attached, by the call at `site`.  Sources without a name get what else is known. */
void weft__glib_name_sources(void);
void weft__glib_sources_forget(void);

/* process.c */
void weft__glib_child_begins(struct weft__glib_thing *source, const GSource *watch, const void *data);
/* The child that a GSubprocess is; NULL: none is known that has not ended. */
struct weft__glib_thing *weft__glib_child_of(const void *subprocess);
/* Dispatches the source that watches a child, and notes how that ended. */
gboolean weft__glib_child_ends(const struct weft__glib_thing *thing, GSource *source, GSourceFunc callback, gpointer data,
    gboolean (*dispatch)(GSource *, GSourceFunc, gpointer));

/* cancel.c */
void weft__glib_cancel_add(struct weft__glib_thing *task, const GCancellable *cancellable);
void weft__glib_cancel_remove(struct weft__glib_thing *task);
void weft__glib_cancels_forget(void);

/* socket.c: the OS thread is about to sleep: what it has accepted gets its promise. */
void weft__glib_name_accepted(void);

/* dbus.c: whether a source of libgio with that name makes a method call that has arrived; its data points to something. */
bool weft__glib_is_serving(const char *source_name, const void *data);
void weft__glib_serves(struct weft__glib_thing *source, GDBusMethodInvocation *call);

#endif
