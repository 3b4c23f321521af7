/* adapter.h: what the files of the sd-event adapter share (private to adapters/sd).
 *
 * systemd has sd-event and sd-bus twice: in libsystemd, for everybody, and in libsystemd-shared, for its own daemons.  Both may
 * be in one process: each is a copy.  This adapter looks into none of their structs, and so needs none of their headers.  A
 * *thing* is what is known of a source, of a loop or of a call that waits for its reply (by its slot), for as long as it has a
 * promise. SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_SD_ADAPTER_H
#define WEFT_ADAPTERS_SD_ADAPTER_H

#include <sys/types.h>
#include <time.h>
#include <weft/record.h>

#include "adapters/hook/carried.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/slots.h"
#include "adapters/hook/things.h"
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

/* X(result, name, (parameters), (arguments)): taken.  Handlers are functions of several types. */
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

/* Y(result, name, (parameters)): only called. */
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

/* What runs in place of each, in that copy, for a call that returns to `caller`. */
#define WEFT__SD_HANDLER(result, name, parameters, arguments)                                                                    \
	result weft__##name(struct weft__sd_copy *copy, const void *caller, WEFT__SD_LIST parameters);
WEFT__SD_CALLS(WEFT__SD_HANDLER)
#undef WEFT__SD_HANDLER

/* The copy whose code that address is in; NULL: none. */
const struct weft__sd_copy *weft__sd_copy_of(const void *address);

/* ---- Things ---- */

struct weft__sd_thing {
	WEFT_HOOK_THING;
	const sd_event *event; /* of a source: its loop's key */
	const void *function;  /* the program's handler; NULL: none */
	weft_id ended_by;      /* of a loop: who told it to end */
	unsigned references;   /* that are held of a source or a slot */
	int fd;                /* of a source of a descriptor; -1: none */
	bool is_labelled;
	bool is_enabled;
	bool is_turned;          /* of a loop: it is called turn by turn */
	bool comes_from_outside; /* what its handler is called for: of a source that is no timer, and has not asked for it itself
				  */
	bool spins;              /* that it is called keeps its OS thread from sleeping */
	bool is_untouched;       /* its handler leaves what came where it is */
	struct weft_hook_calls calls;
};

extern struct weft_hook_things weft__sd_things;

static inline void weft__sd_lock(const void *key)
{
	weft_hook_things_lock(&weft__sd_things, key);
}

static inline void weft__sd_unlock(const void *key)
{
	weft_hook_things_unlock(&weft__sd_things, key);
}

/* Under the lock; NULL: none. */
static inline struct weft__sd_thing *weft__sd_find(const void *key)
{
	return weft_hook_things_find(&weft__sd_things, key);
}

/* Whether calls are recorded; begins that if it is wanted. */
bool weft__sd_takes(void);

/* Whether sources are to be known: recording is on, or may be told to begin. */
static inline bool weft__sd_knows(void)
{
	return weft_is_on() || weft__hook_stands_by;
}

/* The promise of a loop, 0: it does not run; takes the lock. */
weft_id weft__sd_id(const void *key);

/* If its descriptor is a connection, it stands for that.  Under the lock. */
void weft__sd_carries(const struct weft__sd_thing *thing);

/* At the latest now the source is labelled: by its description, if it has got one.  Under the lock. */
void weft__sd_name(struct weft__sd_thing *thing, const char *description);

/* Sources that were added here and have no label yet get it. */
void weft__sd_name_all(void);
void weft__sd_forget_unnamed(void);

/* One reference more or less of a source or slot; without any left its promise ends: it fails with `error`, or with NULL is
 * resolved.
 */
void weft__sd_hold(const void *key);
void weft__sd_release(const void *key, const char *error);

#endif
