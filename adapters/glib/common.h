/* common.h: declarations for the files of the GLib adapter (private to adapters/glib).
 *
 * An object describes one object of GLib: a task, source, running loop, served call or child process.  Most have a promise.  A
 * part is what libgio does to answer a call of the program: an internal promise, which belongs to the promise of the call and is
 * shown only on request.  A story is a task that runs in callbacks of other tasks or sources.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_COMMON_H
#define WEFT_ADAPTERS_GLIB_COMMON_H

#include <weft/record.h>

#include "adapters/glib/calls.h"
#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/thread.h"

/* GLib's original functions; NULL: the library lacks it. */
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

/* Wrappers. */
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

/* Returns whether the address is in one of the three libraries. */
static inline bool weft__glib_is_own(const void *address)
{
	return weft__glib_is_gio(address) || weft__glib_is_in(weft__glib_modules.glib, address) ||
	       weft__glib_is_in(weft__glib_modules.gobject, address);
}

/* ---- Objects ---- */

/* Index and generation of an object.  A tag of a freed object finds nothing, even if its memory is reused.  0: none. */
typedef uint64_t weft__glib_tag;

enum weft__glib_type {
	WEFT__GLIB_TASK = 1,
	WEFT__GLIB_SOURCE,
	WEFT__GLIB_LOOP,      /* key: GMainLoop or GApplication; for a stepped loop its context */
	WEFT__GLIB_SERVED,    /* key: GDBusMethodInvocation */
	WEFT__GLIB_CHILD,     /* key: GSubprocess; refers to the source that watches it */
	WEFT__GLIB_PUSHED,    /* item of a GThreadPool */
	WEFT__GLIB_RECURRING, /* represents one-shot sources that recur */
	WEFT__GLIB_SOCKET     /* connection or listener */
};

struct weft__glib_object {
	const void *key; /* address of GLib's object; NULL: unused */
	uint32_t generation;
	uint32_t index; /* own index, from 1 */
	uint32_t next;  /* index of the next object in the chain; 0: none */
	uint8_t type, kind;
	bool is_part;
	bool is_labelled;
	bool is_returned;   /* a task has a result; work of a pool has started */
	bool is_ended;      /* the end is recorded */
	bool is_served;     /* a source that calls the method of `stands_for` */
	bool is_untouched;  /* a source whose callback leaves its descriptor as it was */
	bool is_ignored;    /* a socket that is recorded otherwise */
	bool has_datagrams; /* a source whose descriptor is a datagram socket */
	short events;       /* events that a source with a descriptor waits for, as in poll() */
	int fd;             /* descriptor; -1: none */
	weft_id id;         /* promise; 0: none */
	weft_id by, owner, awaited_by;
	uint64_t since;
	struct weft_record_place *site;
	const void *owner_thread;  /* thread that repeats it for checkpoints */
	weft__glib_tag stands_for; /* for a source: the object whose promise runs in it; for a connection: its listener */
	weft__glib_tag waiter;     /* for a task: the task that awaits it */
	weft__glib_tag child;      /* for a task: the process that it awaits */
	union {
		GAsyncReadyCallback ready; /* callback of a task */
		GSourceFunc callback;      /* callback of a source */
		const GThreadPool *pool;   /* pool of an item */
	};
	const GMainContext *context; /* context of a source; NULL: the default context */
	const GCancellable *cancellable;
	uint32_t cancelled_next, cancelled_before; /* neighbours with the same GCancellable; indexes */
	struct weft_hook_calls calls;              /* calls without a sleep */
	union {
		weft_id returned_by; /* promise that returned a task whose callback has not run yet; 0: none */
		weft_id input;       /* current read of a connection; 0: none */
	};
	bool is_failed; /* the task failed with `error` */
	bool is_asked;  /* the task's result was asked for */
	struct weft_hook_label label;
	struct weft_hook_label error;
};

/* Objects are in chunks that are never freed. */
enum { WEFT__GLIB_CHUNK = 256, WEFT__GLIB_CHUNKS = 16384 };
extern struct weft__glib_object *weft__glib_chunks[WEFT__GLIB_CHUNKS];
extern uint32_t weft__glib_object_count; /* objects that have ever been used */

static inline struct weft__glib_object *weft__glib_object_at(uint32_t index)
{
	struct weft__glib_object *chunk = __atomic_load_n(&weft__glib_chunks[(index - 1) / WEFT__GLIB_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[(index - 1) % WEFT__GLIB_CHUNK] : NULL;
}

static inline weft__glib_tag weft__glib_tag_of(const struct weft__glib_object *tracked)
{
	return tracked ? (uint64_t)__atomic_load_n(&tracked->generation, __ATOMIC_RELAXED) << 32 | tracked->index : 0;
}

static inline struct weft__glib_object *weft__glib_object_of(weft__glib_tag tag)
{
	const uint32_t index = (uint32_t)tag;
	if (!index || index - 1 >= __atomic_load_n(&weft__glib_object_count, __ATOMIC_ACQUIRE))
		return NULL;
	struct weft__glib_object *tracked = weft__glib_object_at(index);
	return tracked && __atomic_load_n(&tracked->generation, __ATOMIC_RELAXED) == tag >> 32 &&
		       __atomic_load_n(&tracked->key, __ATOMIC_RELAXED)
		   ? tracked
		   : NULL;
}

/* ---- State of a thread ---- */

enum { WEFT__GLIB_MAX_UNLABELLED = 32, WEFT__GLIB_MAX_RECENT = 16, WEFT__GLIB_MAX_RUNS = 8 };

/* A running loop, and the state before it. */
struct weft__glib_run {
	const void *object; /* GMainLoop or GApplication; NULL: a single iteration of a context */
	GMainContext *context;
	const void *stack, *caller;
	const char *label;
	weft_id outer, loop;
	weft_id turns; /* promise of a stepped loop, which `outer` awaits while this iteration waits long; 0: none */
	bool is_in_loop;
};

/* State of a thread. */
struct weft__glib_here {
	unsigned epoch;
	bool is_in_loop;      /* a loop of GLib runs here, between callbacks */
	bool is_in_library;   /* the innermost callback is libgio's */
	weft__glib_tag story; /* running story; 0: none */
	weft_id loop;         /* innermost running loop; 0: none */
	struct weft__glib_run runs[WEFT__GLIB_MAX_RUNS];
	unsigned depth;
	struct weft_hook_listed_loops older; /* contexts whose older sources are recorded */
	struct {
		GMainContext *context;
		guint next, last; /* source ids that must still be checked */
	} unlisted;
	const GSource *dispatched_source; /* source whose dispatch runs */
	/* The source that got a descriptor last, and that descriptor. */
	struct {
		const GSource *source;
		int fd;
		short events;
	} watched;
	const void *site;          /* return address of the call that will attach a source */
	const void *asked;         /* code of the program that continues after its last call of libgio in this callback */
	weft__glib_tag accepted;   /* accepted connection that has no promise yet */
	gsize pending_write_bytes; /* bytes that the current call writes to a connection; 0: no such call */
	weft_id output;            /* write that waits for buffer space; 0: none */
	/* The current D-Bus call, whose task is created next. */
	struct {
		bool is_made;
		weft_id id;
		struct weft_hook_label label;
	} call;
	/* Attached sources that may still get a name. */
	weft__glib_tag unlabelled[WEFT__GLIB_MAX_UNLABELLED];
	unsigned unlabelled_count;
	/* Cache of the latest lookups: a task is looked up four times, mostly in a row. */
	struct weft__glib_object *recent[WEFT__GLIB_MAX_RECENT];
};

extern __thread struct weft__glib_here weft__glib_here __attribute__((tls_model("initial-exec")));

static inline struct weft__glib_object **weft__glib_recent(const void *key)
{
	return &weft__glib_here.recent[((uintptr_t)key >> 4 ^ (uintptr_t)key >> 8) % WEFT__GLIB_MAX_RECENT];
}

/* Returns whether this thread already records. */
static inline bool weft__glib_is_recording(void)
{
	return weft_is_on() && weft__glib_here.epoch == weft__hook_epoch;
}

/* Returns the promise that acts on this thread. */
static inline weft_id weft__glib_current_promise(void)
{
	return weft__hook_thread.running ? weft__hook_thread.running : WEFT_SYSTEM_ID;
}

/* The state before a callback. */
struct weft__glib_frame {
	struct weft_hook_frame hook;
	weft__glib_tag story;
	bool is_in_loop, is_in_library;
};

#define WEFT__GLIB_FRAME __attribute__((cleanup(weft__glib_leave_callback))) struct weft__glib_frame

/* Makes `id` the running promise; the caller records that.  `is_in_library`: the callback is libgio's. */
static inline struct weft__glib_frame weft__glib_enter_callback(weft_id id, weft__glib_tag story, bool is_in_library)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct weft__glib_frame frame = {weft_hook_enter_callback(id), here->story, here->is_in_loop, here->is_in_library};
	here->story = story;
	here->is_in_loop = false;
	here->is_in_library = is_in_library;
	return frame;
}

static inline void weft__glib_leave_callback(struct weft__glib_frame *frame)
{
	struct weft__glib_here *here = &weft__glib_here;
	weft_hook_leave_callback(&frame->hook);
	here->story = frame->story;
	here->is_in_loop = frame->is_in_loop;
	here->is_in_library = frame->is_in_library;
	if (!frame->is_in_loop && weft_is_on() && weft__hook_thread.running)
		weft_hook_record_running(weft__hook_thread.running);
}

/* Records that the promise has read the input and runs. */
static inline void weft__glib_read(weft_id promise, weft_id input)
{
	weft_read(promise, input);
	weft__hook_thread.recorded_running = promise;
}

/* ---- Functions of other files ---- */

/* loop.c: records sources of the innermost loop that are older than the recording, some in each iteration. */
void weft__glib_record_older(void);
/* turn.c: is_turn returns whether the program itself called the iteration that sleeps, and awaits nothing yet.  await_sources
 * records the stepped loop's promise; it runs when the wait is long. */
bool weft__glib_is_turn(void);
void weft__glib_await_sources(const struct weft_hook_sleep *sleep);
/* Makes the stepped loop of the source's context await the source. */
void weft__glib_await_source(struct weft__glib_object *source);
/* Returns the stepped loop of the context; NULL: none. */
struct weft__glib_object *weft__glib_find_turn_loop(const GMainContext *context);

/* source.c: records a source that may be older than the recording and has no promise. */
void weft__glib_begin_older_source(GSource *source);

/* source.c: labels sources without a name by their callbacks. */
void weft__glib_label_sources(void);
void weft__glib_sources_clear(void);

/* process.c: records the process of a source that watches a child. */
void weft__glib_begin_child(struct weft__glib_object *source, const GSource *watch, const void *data);
/* Returns the source of a GSubprocess's process that has not ended; NULL: none. */
struct weft__glib_object *weft__glib_child_of(const void *subprocess);
/* Dispatches a source that watches a child, and notes how the child ended. */
gboolean weft__glib_dispatch_child_end(const struct weft__glib_object *tracked, GSource *source, GSourceFunc callback,
    gpointer data, gboolean (*dispatch)(GSource *, GSourceFunc, gpointer));

/* cancel.c: assigns a task to its GCancellable. */
void weft__glib_cancel_add(struct weft__glib_object *task, const GCancellable *cancellable);
void weft__glib_cancel_remove(struct weft__glib_object *task);
void weft__glib_cancels_clear(void);

/* socket.c: creates the promise of the accepted connection; this thread is about to sleep. */
void weft__glib_begin_accepted(void);

/* dbus.c: returns whether a source of libgio with that name calls the method of an incoming call.  `data` may be any pointer of
 * that source. */
bool weft__glib_is_serving(const char *source_name, const void *data);
void weft__glib_begin_served(struct weft__glib_object *source, GDBusMethodInvocation *call);

#endif
