/* common.h: declarations for the files of the GLib adapter (private to adapters/glib).
 *
 * An "object" is the adapter's record of an object of GLib: a task, source, running loop, served call or child process.  Most
 * have a promise.  A "part" is an internal promise for what libgio does to answer a call of the program.  A part belongs to the
 * promise of that call, and is shown only on request.  A "story" is a task that runs in callbacks of other tasks or sources.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_COMMON_H
#define WEFT_ADAPTERS_GLIB_COMMON_H

#include <weft/record.h>

#include "adapters/glib/calls.h"
#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/thread.h"
#include "adapters/hook/thread_memory.h"

/* Pointers to GLib's original functions; NULL if the library lacks the function. */
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

/* Modules of GLib's three libraries; NULL: not loaded. */
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

/* Returns whether the address is in the code of libglib, libgobject or libgio. */
static inline bool weft__glib_is_own(const void *address)
{
	return weft__glib_is_gio(address) || weft__glib_is_in(weft__glib_modules.glib, address) ||
	       weft__glib_is_in(weft__glib_modules.gobject, address);
}

/* ---- Objects ---- */

/* Reference to an object: its index and its generation.  The tag of a freed object finds nothing, even if the object's memory is
 * reused.  A tag of 0 refers to no object. */
typedef uint64_t weft__glib_tag;

enum weft__glib_type {
	WEFT__GLIB_TASK = 1,
	WEFT__GLIB_SOURCE,
	WEFT__GLIB_LOOP,      /* running loop; key: the GMainLoop or GApplication, for a stepped loop its context */
	WEFT__GLIB_SERVED,    /* key: GDBusMethodInvocation */
	WEFT__GLIB_CHILD,     /* child process; key: the GSubprocess; refers to the source that watches the process */
	WEFT__GLIB_PUSHED,    /* item of a GThreadPool */
	WEFT__GLIB_RECURRING, /* representative of one-shot sources that recur */
	WEFT__GLIB_SOCKET     /* connection or listener */
};

struct weft__glib_object {
	const void *key; /* address of GLib's object; NULL if the entry is unused */
	uint32_t generation;
	uint32_t index; /* own index, from 1 */
	uint32_t next;  /* index of the next object in the hash chain; 0: none */
	uint8_t type, kind;
	bool is_part;
	bool is_labelled;
	bool is_returned;   /* whether a task has a result, or a pool has started a pushed work item */
	bool is_ended;      /* the end is recorded */
	bool is_served;     /* whether the source calls the D-Bus method of object `stands_for` */
	bool is_untouched;  /* whether the source's callback leaves the input of its descriptor unread */
	bool is_ignored;    /* whether the socket is recorded in another way */
	bool has_datagrams; /* whether the source's descriptor is a datagram socket */
	short events;       /* poll() events that a source with a descriptor waits for */
	int fd;             /* descriptor; -1: none */
	weft_id id;         /* promise; 0: none */
	weft_id by, owner, awaited_by;
	uint64_t since;
	struct weft_record_place *site;
	const void *owner_thread;  /* thread that records the object again in checkpoints */
	weft__glib_tag stands_for; /* object whose promise runs in the source; for a connection, its listener */
	weft__glib_tag waiter;     /* task that awaits this task */
	weft__glib_tag child;      /* object of the process that this task awaits */
	union {
		GAsyncReadyCallback ready; /* callback of a task */
		GSourceFunc callback;      /* callback of a source */
		const GThreadPool *pool;   /* pool of an item */
	};
	const GMainContext *context; /* context of a source; NULL for the default context */
	const GCancellable *cancellable;
	uint32_t cancelled_next, cancelled_before; /* indexes of the neighbours in the list of tasks with the same GCancellable */
	struct weft_hook_calls calls;              /* calls without a sleep */
	union {
		weft_id returned_by; /* promise that returned the result of a task whose callback has not run yet; 0: none */
		weft_id input;       /* promise of the current read of a connection; 0: none */
	};
	bool is_failed; /* whether the task failed; its error is in `error` */
	bool is_asked;  /* whether the program has asked for the task's result */
	struct weft_hook_label label;
	struct weft_hook_label error;
};

/* Memory for objects is allocated in chunks that are never freed. */
enum { WEFT__GLIB_CHUNK = 256, WEFT__GLIB_CHUNKS = 16384 };
extern struct weft__glib_object *weft__glib_chunks[WEFT__GLIB_CHUNKS];
extern uint32_t weft__glib_object_count; /* number of objects that have ever been used */

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

/* A running loop, and the thread's state before the loop began. */
struct weft__glib_run {
	const void *object; /* GMainLoop or GApplication of the loop; NULL for a single iteration of a context */
	GMainContext *context;
	const void *stack, *caller;
	const char *label;
	weft_id outer, loop;
	weft_id turns; /* promise of a stepped loop, which `outer` awaits while the current iteration waits long; 0: none */
	bool is_in_loop;
};

/* State of a thread. */
struct weft__glib_here {
	unsigned epoch;
	bool is_in_loop;      /* whether a GLib loop runs on this thread and no callback runs in it */
	bool is_in_library;   /* whether the innermost running callback is libgio's */
	weft__glib_tag story; /* running story; 0: none */
	weft_id loop;         /* promise of the innermost running loop; 0: none */
	struct weft__glib_run runs[WEFT__GLIB_MAX_RUNS];
	unsigned depth;
	struct weft_hook_listed_loops older; /* contexts for which sources older than the recording have been recorded */
	struct {
		GMainContext *context;
		guint next, last; /* range of source ids that must still be checked */
	} unlisted;
	const GSource *dispatched_source; /* source whose dispatch runs */
	/* Source for which a descriptor was set last, and that descriptor. */
	struct {
		const GSource *source;
		int fd;
		short events;
	} watched;
	const void *site;          /* return address of the program's call that will attach a source */
	const void *asked;         /* code of the program that continues after its last call of libgio in the current callback */
	weft__glib_tag accepted;   /* accepted connection that has no promise yet */
	gsize pending_write_bytes; /* number of bytes that the current call writes to a connection; 0: no such call */
	weft_id output;            /* promise of the write that waits for buffer space; 0: none */
	/* State of the current D-Bus call, for which GLib creates a task next. */
	struct {
		bool is_made;
		weft_id id;
		struct weft_hook_label label;
	} call;
	/* Attached sources that may still get a name from the program. */
	weft__glib_tag unlabelled[WEFT__GLIB_MAX_UNLABELLED];
	unsigned unlabelled_count;
	/* Cache of the latest lookups, because a task is looked up four times, mostly in a row. */
	struct weft__glib_object *recent[WEFT__GLIB_MAX_RECENT];
};

extern struct weft__glib_here weft__glib_heres;

/* Returns the state of the current thread. */
static inline struct weft__glib_here *weft__glib_get_here(void)
{
	return &WEFT_HOOK_HERE(weft__glib_heres);
}

static inline struct weft__glib_object **weft__glib_recent(const void *key)
{
	return &weft__glib_get_here()->recent[((uintptr_t)key >> 4 ^ (uintptr_t)key >> 8) % WEFT__GLIB_MAX_RECENT];
}

/* Returns whether recording is on and this thread takes part. */
static inline bool weft__glib_is_recording(void)
{
	return weft_is_on() && weft__glib_get_here()->epoch == weft__hook_epoch;
}

/* Returns the promise in whose name this thread acts: the running promise, or the system (the loop itself). */
static inline weft_id weft__glib_current_promise(void)
{
	return weft__hook_get_thread()->running ? weft__hook_get_thread()->running : WEFT_SYSTEM_ID;
}

/* State of the thread before a callback. */
struct weft__glib_frame {
	struct weft_hook_frame hook;
	weft__glib_tag story;
	bool is_in_loop, is_in_library;
};

#define WEFT__GLIB_FRAME __attribute__((cleanup(weft__glib_leave_callback))) struct weft__glib_frame

/* Makes `id` the running promise of this thread; the caller of this function records the event.  `is_in_library`: whether the
 * callback is libgio's. */
static inline struct weft__glib_frame weft__glib_enter_callback(weft_id id, weft__glib_tag story, bool is_in_library)
{
	struct weft__glib_here *here = weft__glib_get_here();
	struct weft__glib_frame frame = {weft_hook_enter_callback(id), here->story, here->is_in_loop, here->is_in_library};
	here->story = story;
	here->is_in_loop = false;
	here->is_in_library = is_in_library;
	return frame;
}

static inline void weft__glib_leave_callback(struct weft__glib_frame *frame)
{
	struct weft__glib_here *here = weft__glib_get_here();
	weft_hook_leave_callback(&frame->hook);
	here->story = frame->story;
	here->is_in_loop = frame->is_in_loop;
	here->is_in_library = frame->is_in_library;
	if (!frame->is_in_loop && weft_is_on() && weft__hook_get_thread()->running)
		weft_hook_record_running(weft__hook_get_thread()->running);
}

/* Records that the promise has read the result of `input` and now runs. */
static inline void weft__glib_read(weft_id promise, weft_id input)
{
	weft_read(promise, input);
	weft__hook_get_thread()->recorded_running = promise;
}

/* ---- Functions of other files ---- */

/* Records sources of the innermost loop that are older than the recording, some of them in each iteration (loop.c). */
void weft__glib_record_older(void);
/* weft__glib_is_turn() returns whether the program itself called the sleeping iteration and awaits no loop yet;
 * weft__glib_await_sources() records the stepped loop's promise when the wait is long (turn.c). */
bool weft__glib_is_turn(void);
void weft__glib_await_sources(const struct weft_hook_sleep *sleep);
/* Records that the stepped loop of the source's context awaits the source. */
void weft__glib_await_source(struct weft__glib_object *source);
/* Returns the stepped loop of the context; NULL: none. */
struct weft__glib_object *weft__glib_find_turn_loop(const GMainContext *context);

/* Records a source that has no promise and may be older than the recording (source.c). */
void weft__glib_begin_older_source(GSource *source);

/* Labels the sources without a name by the names of their callbacks (source.c). */
void weft__glib_label_sources(void);
void weft__glib_sources_clear(void);

/* Records the child process that the source watches (process.c). */
void weft__glib_begin_child(struct weft__glib_object *source, const GSource *watch, const void *data);
/* Returns the source that watches a GSubprocess's running process; NULL: none. */
struct weft__glib_object *weft__glib_child_of(const void *subprocess);
/* Dispatches a source that watches a child process, and remembers how the child ended. */
gboolean weft__glib_dispatch_child_end(const struct weft__glib_object *tracked, GSource *source, GSourceFunc callback,
    gpointer data, gboolean (*dispatch)(GSource *, GSourceFunc, gpointer));

/* Adds a task to the tasks of its GCancellable (cancel.c). */
void weft__glib_cancel_add(struct weft__glib_object *task, const GCancellable *cancellable);
void weft__glib_cancel_remove(struct weft__glib_object *task);
void weft__glib_cancels_clear(void);

/* Creates the promise of an accepted connection before this thread sleeps (socket.c). */
void weft__glib_begin_accepted(void);

/* Returns whether the libgio source with that name calls the method of an incoming D-Bus call (dbus.c).  `data` may be any
 * pointer that belongs to the source. */
bool weft__glib_is_serving(const char *source_name, const void *data);
void weft__glib_begin_served(struct weft__glib_object *source, GDBusMethodInvocation *call);

#endif
