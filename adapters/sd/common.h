/* common.h: declarations for the files of the sd-event adapter (private to adapters/sd).
 *
 * systemd contains sd-event and sd-bus twice: in libsystemd for all programs, and in libsystemd-shared for its own daemons.  A
 * process may contain both libraries; each of them is a copy.  The adapter reads no struct of systemd, and includes no header of
 * systemd.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_SD_COMMON_H
#define WEFT_ADAPTERS_SD_COMMON_H

#include <sys/types.h>
#include <time.h>
#include <weft/record.h>

#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/object_table.h"
#include "adapters/hook/session.h"
#include "adapters/hook/slots.h"
#include "adapters/hook/thread.h"

typedef struct sd_event sd_event;
typedef struct sd_event_source sd_event_source;
typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;

typedef struct {
	const char *name, *message;
	int need_free;
} sd_bus_error;

/* X(result, name, (parameters), (arguments)) lists a function that the adapter wraps.  Handlers have several types. */
#define WEFT__SD_ADDS(X)                                                                                                         \
	X(int, sd_event_add_io, (sd_event * event, sd_event_source * *source, int fd, uint32_t events, void *user, void *data),  \
	    (event, source, fd, events, user, data))                                                                             \
	X(int, sd_event_add_time,                                                                                                \
	    (sd_event * event, sd_event_source * *source, clockid_t clock, uint64_t at_us, uint64_t accuracy_us, void *user,     \
		void *data),                                                                                                     \
	    (event, source, clock, at_us, accuracy_us, user, data))                                                              \
	X(int, sd_event_add_time_relative,                                                                                       \
	    (sd_event * event, sd_event_source * *source, clockid_t clock, uint64_t in_us, uint64_t accuracy_us, void *user,     \
		void *data),                                                                                                     \
	    (event, source, clock, in_us, accuracy_us, user, data))                                                              \
	X(int, sd_event_add_signal, (sd_event * event, sd_event_source * *source, int number, void *user, void *data),           \
	    (event, source, number, user, data))                                                                                 \
	X(int, sd_event_add_child,                                                                                               \
	    (sd_event * event, sd_event_source * *source, pid_t child, int options, void *user, void *data),                     \
	    (event, source, child, options, user, data))                                                                         \
	X(int, sd_event_add_child_pidfd,                                                                                         \
	    (sd_event * event, sd_event_source * *source, int fd, int options, void *user, void *data),                          \
	    (event, source, fd, options, user, data))                                                                            \
	X(int, sd_event_add_inotify,                                                                                             \
	    (sd_event * event, sd_event_source * *source, const char *path, uint32_t mask, void *user, void *data),              \
	    (event, source, path, mask, user, data))                                                                             \
	X(int, sd_event_add_inotify_fd,                                                                                          \
	    (sd_event * event, sd_event_source * *source, int fd, uint32_t mask, void *user, void *data),                        \
	    (event, source, fd, mask, user, data))                                                                               \
	X(int, sd_event_add_defer, (sd_event * event, sd_event_source * *source, void *user, void *data),                        \
	    (event, source, user, data))                                                                                         \
	X(int, sd_event_add_post, (sd_event * event, sd_event_source * *source, void *user, void *data),                         \
	    (event, source, user, data))                                                                                         \
	X(int, sd_event_add_exit, (sd_event * event, sd_event_source * *source, void *user, void *data),                         \
	    (event, source, user, data))
#define WEFT__SD_CALLS(X)                                                                                                        \
	WEFT__SD_ADDS(X)                                                                                                         \
	X(sd_event_source *, sd_event_source_ref, (sd_event_source * source), (source))                                          \
	X(sd_event_source *, sd_event_source_unref, (sd_event_source * source), (source))                                        \
	X(int, sd_event_source_set_enabled, (sd_event_source * source, int enabled), (source, enabled))                          \
	X(int, sd_event_source_set_description, (sd_event_source * source, const char *text), (source, text))                    \
	X(int, sd_event_new, (sd_event * *event), (event))                                                                       \
	X(int, sd_event_loop, (sd_event * event), (event))                                                                       \
	X(int, sd_event_run, (sd_event * event, uint64_t timeout_us), (event, timeout_us))                                       \
	X(int, sd_event_exit, (sd_event * event, int code), (event, code))                                                       \
	X(int, sd_bus_call,                                                                                                      \
	    (sd_bus * bus, sd_bus_message * message, uint64_t timeout_us, sd_bus_error * error, sd_bus_message * *reply),        \
	    (bus, message, timeout_us, error, reply))                                                                            \
	X(int, sd_bus_call_async,                                                                                                \
	    (sd_bus * bus, sd_bus_slot * *slot, sd_bus_message * message, void *user, void *data, uint64_t timeout_us),          \
	    (bus, slot, message, user, data, timeout_us))                                                                        \
	X(sd_bus_slot *, sd_bus_slot_ref, (sd_bus_slot * slot), (slot))                                                          \
	X(sd_bus_slot *, sd_bus_slot_unref, (sd_bus_slot * slot), (slot))                                                        \
	X(int, sd_bus_message_seal, (sd_bus_message * message, uint64_t cookie, uint64_t timeout_us),                            \
	    (message, cookie, timeout_us))

/* Y(result, name, (parameters)) lists a function that the adapter calls and does not wrap. */
#define WEFT__SD_ONLY_CALLED(Y)                                                                                                  \
	Y(int, sd_event_source_set_floating, (sd_event_source * source, int yes))                                                \
	Y(sd_event *, sd_event_source_get_event, (sd_event_source * source))                                                     \
	Y(int, sd_event_default, (sd_event * *event))                                                                            \
	Y(sd_event *, sd_event_unref, (sd_event * event))                                                                        \
	Y(int, sd_bus_slot_set_floating, (sd_bus_slot * slot, int yes))                                                          \
	Y(sd_bus *, sd_bus_message_get_bus, (sd_bus_message * message))                                                          \
	Y(sd_bus_slot *, sd_bus_get_current_slot, (sd_bus * bus))                                                                \
	Y(int, sd_bus_is_ready, (sd_bus * bus))                                                                                  \
	Y(int, sd_bus_get_bus_id, (sd_bus * bus, unsigned char *id))                                                             \
	Y(int, sd_bus_get_unique_name, (sd_bus * bus, const char **name))                                                        \
	Y(const char *, sd_bus_message_get_interface, (sd_bus_message * message))                                                \
	Y(const char *, sd_bus_message_get_member, (sd_bus_message * message))                                                   \
	Y(const char *, sd_bus_message_get_destination, (sd_bus_message * message))                                              \
	Y(const sd_bus_error *, sd_bus_message_get_error, (sd_bus_message * message))

#define WEFT__SD_LIST(...) __VA_ARGS__

struct weft__sd_copy {
	struct weft__sd_calls {
#define WEFT__SD_POINTER(result, name, parameters, arguments) result(*name) parameters;
#define WEFT__SD_CALLED_POINTER(result, name, parameters) result(*name) parameters;
		WEFT__SD_CALLS(WEFT__SD_POINTER)
		WEFT__SD_ONLY_CALLED(WEFT__SD_CALLED_POINTER)
#undef WEFT__SD_POINTER
#undef WEFT__SD_CALLED_POINTER
	} real;
	const struct weft_hook_module *module;
};

enum { WEFT__SD_MAX_COPIES = 2 };

extern WEFT_HOOK_SHARED struct weft__sd_copy weft__sd_copies[WEFT__SD_MAX_COPIES];

/* Wrappers of a copy's functions; `caller` is the return address of the program's call. */
#define WEFT__SD_HANDLER(result, name, parameters, arguments)                                                                    \
	result weft__##name(struct weft__sd_copy *copy, const void *caller, WEFT__SD_LIST parameters);
WEFT__SD_CALLS(WEFT__SD_HANDLER)
#undef WEFT__SD_HANDLER

/* Returns the copy of systemd's library that contains the address; NULL: none. */
const struct weft__sd_copy *weft__sd_copy_of(const void *address);

/* ---- Objects: sources, loops, and calls with a pending reply (by their slots) ---- */

struct weft__sd_object {
	WEFT_HOOK_OBJECT;
	const sd_event *event; /* loop of a source */
	const void *function;  /* handler of the program for a source or call; NULL: none */
	weft_id ended_by;      /* promise that made the loop exit */
	unsigned references;   /* number of references to a source or slot */
	int fd;                /* descriptor that a source watches; -1: none */
	bool is_labelled;
	bool is_enabled;
	bool is_run_by_turns; /* whether the program steps the loop one iteration at a time */
	/* Whether the handler runs for an external cause, and not for a timer or for what the program itself asked. */
	bool comes_from_outside;
	bool spins;        /* whether a call of the handler keeps the thread from sleeping */
	bool is_untouched; /* whether the handler leaves the input of its descriptor unread */
	struct weft_hook_calls calls;
};

extern struct weft_hook_object_table weft__sd_objects;

static inline void weft__sd_lock(const void *key)
{
	weft_hook_object_table_lock(&weft__sd_objects, key);
}

static inline void weft__sd_unlock(const void *key)
{
	weft_hook_object_table_unlock(&weft__sd_objects, key);
}

/* Returns the object of the key; NULL: none.  Call it with the object's lock held. */
static inline struct weft__sd_object *weft__sd_find(const void *key)
{
	return weft_hook_object_find(&weft__sd_objects, key);
}

/* Returns whether recording is on, and starts the recording if the user wants one. */
bool weft__sd_should_record(void);

/* Returns whether sources must be remembered, because recording is on or may start later. */
static inline bool weft__sd_should_track(void)
{
	return weft_is_on() || weft__hook_is_standby;
}

/* Returns whether the waiting call is the wait of an sd-event loop. */
bool weft__sd_is_loop_wait(struct weft_hook_sleep *sleep);

/* Returns the promise of a loop; 0 if the loop does not run.  Takes the lock. */
weft_id weft__sd_id(const void *key);

/* Assigns the source's descriptor to the source's promise, if the descriptor is a connection.  Call it with the source's lock
 * held. */
void weft__sd_attach_fd(const struct weft__sd_object *object);

/* Labels a source that has no label by its description (may be NULL) or its handler.  Call it with the source's lock held. */
void weft__sd_label_source(struct weft__sd_object *object, const char *description);

/* label_later remembers a source of this thread that may get a description; label_all labels all remembered sources;
 * clear_unlabelled forgets them. */
void weft__sd_label_all(void);
void weft__sd_label_key(const void *key, const char *description); /* takes the lock */
void weft__sd_label_later(const void *key);
void weft__sd_clear_unlabelled(void);

/* Count the references to a source or slot.  When the last reference is dropped, the promise ends: it fails with `error`, or
 * succeeds if `error` is NULL.
 */
void weft__sd_add_reference(const void *key);
void weft__sd_drop_reference(const void *key, const char *error);

#endif
