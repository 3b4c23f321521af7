/* common.h: declarations for the files of the libevent adapter (private to adapters/event).
 *
 * libevent 2.0 and 2.1 have the same functions and ABI as far as the adapter needs them.  The adapter reads no struct of
 * libevent, and includes no header of libevent.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_EVENT_COMMON_H
#define WEFT_ADAPTERS_EVENT_COMMON_H

#include <sys/socket.h>
#include <sys/time.h>
#include <weft/record.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/object_table.h"
#include "adapters/hook/session.h"
#include "adapters/hook/slots.h"
#include "adapters/hook/thread.h"
#include "adapters/hook/thread_memory.h"

struct event;
struct event_base;
struct bufferevent;
struct evdns_base;
struct evdns_getaddrinfo_request;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct addrinfo;
struct evbuffer;

typedef void weft__ev_event_cb(int fd, short what, void *data);
typedef void weft__ev_finalize_cb(struct event *event, void *data);
typedef void weft__ev_data_cb(struct bufferevent *buffer, void *data);
typedef void weft__ev_state_cb(struct bufferevent *buffer, short what, void *data);
typedef void weft__ev_request_cb(struct evhttp_request *request, void *data);
typedef void weft__ev_address_cb(int error, struct addrinfo *found, void *data);

enum { EV_IS_TIMEOUT = 1, EV_IS_READ = 2, EV_IS_WRITE = 4, EV_IS_SIGNAL = 8, EV_IS_PERSISTENT = 16 };

/* Lists the wrapped functions of libevent's core, and then of the rest, as X(result, name, (parameters)). */
#define WEFT__EV_CORE(X)                                                                                                         \
	X(int, event_base_loop, (struct event_base * base, int flags))                                                           \
	X(void, event_base_free, (struct event_base * base))                                                                     \
	X(void, event_base_free_nofinalize, (struct event_base * base))                                                          \
	X(int, event_assign,                                                                                                     \
	    (struct event * event, struct event_base * base, int fd, short events, weft__ev_event_cb *cb, void *data))           \
	X(struct event *, event_new, (struct event_base * base, int fd, short events, weft__ev_event_cb *cb, void *data))        \
	X(void, event_free, (struct event * event))                                                                              \
	X(int, event_finalize, (unsigned flags, struct event *event, weft__ev_finalize_cb *cb))                                  \
	X(int, event_free_finalize, (unsigned flags, struct event *event, weft__ev_finalize_cb *cb))                             \
	X(int, event_add, (struct event * event, const struct timeval *timeout))                                                 \
	X(int, event_del, (struct event * event))                                                                                \
	X(int, event_base_once,                                                                                                  \
	    (struct event_base * base, int fd, short events, weft__ev_event_cb *cb, void *data, const struct timeval *timeout))  \
	X(void, event_active, (struct event * event, int what, short calls))                                                     \
	X(weft__ev_event_cb *, event_get_callback, (const struct event *event))                                                  \
	X(void, event_get_assignment,                                                                                            \
	    (const struct event *event, struct event_base **base, int *fd, short *events, weft__ev_event_cb **cb, void **data))  \
	X(struct bufferevent *, bufferevent_socket_new, (struct event_base * base, int fd, int options))                         \
	X(void, bufferevent_setcb,                                                                                               \
	    (struct bufferevent * buffer, weft__ev_data_cb * read, weft__ev_data_cb * write, weft__ev_state_cb * state,          \
		void *data))                                                                                                     \
	X(void, bufferevent_getcb,                                                                                               \
	    (struct bufferevent * buffer, weft__ev_data_cb * *read, weft__ev_data_cb * *write, weft__ev_state_cb * *state,       \
		void **data))                                                                                                    \
	X(void, bufferevent_free, (struct bufferevent * buffer))                                                                 \
	X(int, bufferevent_setfd, (struct bufferevent * buffer, int fd))                                                         \
	X(int, bufferevent_socket_connect, (struct bufferevent * buffer, const struct sockaddr *address, int size))
#define WEFT__EV_EXTRA(X)                                                                                                        \
	X(int, evhttp_set_cb, (struct evhttp * http, const char *path, weft__ev_request_cb *cb, void *data))                     \
	X(void, evhttp_set_gencb, (struct evhttp * http, weft__ev_request_cb * cb, void *data))                                  \
	X(struct evhttp_request *, evhttp_request_new, (weft__ev_request_cb * cb, void *data))                                   \
	X(int, evhttp_make_request,                                                                                              \
	    (struct evhttp_connection * connection, struct evhttp_request * request, int type, const char *uri))                 \
	X(void, evhttp_request_free, (struct evhttp_request * request))                                                          \
	X(void, evhttp_cancel_request, (struct evhttp_request * request))                                                        \
	X(void, evhttp_send_reply, (struct evhttp_request * request, int code, const char *reason, struct evbuffer *body))       \
	X(void, evhttp_send_error, (struct evhttp_request * request, int error, const char *reason))                             \
	X(void, evhttp_send_reply_end, (struct evhttp_request * request))                                                        \
	X(struct evdns_getaddrinfo_request *, evdns_getaddrinfo,                                                                 \
	    (struct evdns_base * base, const char *node, const char *service, const struct addrinfo *hints,                      \
		weft__ev_address_cb *cb, void *data))

/* Functions of libevent that the adapter calls and does not wrap. */
#define WEFT__EV_CORE_CALLED(X)                                                                                                  \
	X(struct event *, event_base_get_running_event, (struct event_base * base))                                              \
	X(int, event_base_foreach_event,                                                                                         \
	    (struct event_base * base, int (*visit)(const struct event_base *, const struct event *, void *), void *data))       \
	X(int, event_get_fd, (const struct event *event))                                                                        \
	X(short, event_get_events, (const struct event *event))                                                                  \
	X(struct event_base *, event_get_base, (const struct event *event))                                                      \
	X(void *, event_get_callback_arg, (const struct event *event))                                                           \
	X(int, bufferevent_getfd, (struct bufferevent * buffer))
#define WEFT__EV_EXTRA_CALLED(X)                                                                                                 \
	X(const char *, evhttp_request_get_uri, (const struct evhttp_request *request))                                          \
	X(int, evhttp_request_get_command, (const struct evhttp_request *request))

struct weft__ev_calls {
#define WEFT__EV_POINTER(result, name, parameters) result(*name) parameters;
	WEFT__EV_CORE(WEFT__EV_POINTER)
	WEFT__EV_EXTRA(WEFT__EV_POINTER)
	WEFT__EV_CORE_CALLED(WEFT__EV_POINTER)
	WEFT__EV_EXTRA_CALLED(WEFT__EV_POINTER)
#undef WEFT__EV_POINTER
};

extern struct weft__ev_calls weft__ev_real;

/* Modules of libevent's core and of the rest; NULL: not loaded. */
extern const struct weft_hook_module *weft__ev_core, *weft__ev_extra;

/* Wrappers. */
#define WEFT__EV_WRAPPER(result, name, parameters) result weft__##name parameters;
WEFT__EV_CORE(WEFT__EV_WRAPPER)
WEFT__EV_EXTRA(WEFT__EV_WRAPPER)
#undef WEFT__EV_WRAPPER

/* Returns whether the address is in libevent's code. */
bool weft__ev_is_own(const void *caller);

/* ---- Objects (object.c) ---- */

struct weft__ev_object {
	WEFT_HOOK_OBJECT;
	weft_id connect; /* promise of the connect that a bufferevent awaits */
	const struct event_base *base;
	const void *function; /* callback */
	int fd;
	bool is_allocated; /* whether event_new() made the event, so that event_free() ends it */
	bool is_buffer;
	bool is_asked;        /* whether an HTTP request is the program's own, and not one that the program serves */
	bool is_added;        /* whether the event is added to its base; added events keep the loop from ending */
	bool is_untouched;    /* whether the event's callback leaves the input of its descriptor unread */
	bool is_run_by_turns; /* whether the program steps the loop one iteration at a time */
	bool is_ending;       /* whether the object ends when its loop sleeps next; adding the event again prevents the end */
	struct weft_hook_calls calls;
};

/* Lock and unlock the stripe that contains the object with the given key. */
void weft__ev_lock(const void *key);
void weft__ev_unlock(const void *key);

/* Find or create the object of a key; call them with the lock of the key held. weft__ev_create() returns NULL without memory. */
struct weft__ev_object *weft__ev_find(const void *key);
struct weft__ev_object *weft__ev_create(const void *key);

/* Ends the object's promise and frees the object.  Call it with the object's lock held. */
void weft__ev_end(struct weft__ev_object *object, weft_id by);

/* Creates the object's promise in the name of the running promise; weft__ev_record_label() records the label.  Call both with
 * the object's lock held. */
void weft__ev_begin(struct weft__ev_object *object, enum weft_kind kind, const void *caller);
void weft__ev_record_label(struct weft__ev_object *object);

/* Return the promise of the key's object, the second function only if the object is a bufferevent; 0: none.  Both take the
 * lock. */
weft_id weft__ev_id(const void *key);
weft_id weft__ev_buffer_id(const void *key);

/* Records that promise `loop` awaits all events that are added to the base. */
void weft__ev_await_events(const struct event_base *base, weft_id loop);

/* weft__ev_end_later() marks an object to end when its loop sleeps next, and weft__ev_end_delayed() ends the marked objects. */
void weft__ev_end_later(struct weft__ev_object *object);
void weft__ev_end_delayed(void);

/* Records an event that the program added before the recording began (event.c). */
void weft__ev_begin_older(const struct event *event);

uint64_t weft__ev_list(void *data, uint64_t cursor, unsigned budget);
void weft__ev_clear(void);
void weft__ev_fork(enum weft_hook_fork when);

/* ---- Running loops (loop.c, state.c) ---- */

enum { WEFT__EV_MAX_RUNS = 16 };

struct weft__ev_run {
	struct event_base *base;
	const void *stack;
	weft_id id, outer; /* promise of the loop (0 for a single iteration), and the promise that called the loop */
	weft_id turns;     /* promise of a stepped loop, which `outer` awaits while the current iteration waits long; 0: none */
	int callbacks;
	bool is_loop;
	bool is_older; /* whether events that are older than the recording must still be recorded */
	const void *caller;
};

/* A call of event_base_once() by the program; libevent makes and frees the event itself. */
struct weft__ev_once {
	weft__ev_event_cb *cb;
	const struct timeval *timeout;
	struct event *event; /* NULL until libevent has made the event */
};

struct weft__ev_here {
	unsigned epoch, depth;
	struct weft__ev_once *once; /* the current call of event_base_once() until its event is made; else NULL */
	struct weft_hook_listed_loops older;
	const void *caller; /* return address of the program's current call of libevent; NULL: no such call */
	struct weft__ev_run runs[WEFT__EV_MAX_RUNS];
};

extern struct weft__ev_here weft__ev_heres;

/* Returns the state of the current thread. */
static inline struct weft__ev_here *weft__ev_get_here(void)
{
	return &WEFT_HOOK_HERE(weft__ev_heres);
}

/* Returns whether recording is on, and starts the recording if the user wants one. */
bool weft__ev_should_record(void);

/* Attaches the current thread at its first call of libevent in this recording.  Loops may already run. */
void weft__ev_attach_thread(void);

/* Creates the loop's promise, which awaits the events that are added to the base; the base is the key of the loop's object.  All
 * iterations of a stepped loop share one promise, from the first long wait until the base is freed or run as a whole. */
weft_id weft__ev_begin_loop_promise(const struct weft__ev_run *run, bool is_older);

/* State of a call of libevent by the program; objects that libevent creates inside of the call get the call's site. */
struct weft__ev_call {
	const void *before;
};
struct weft__ev_call weft__ev_enter_call(const void *caller);
void weft__ev_leave_call(struct weft__ev_call *call);
#define WEFT__EV_CALL                                                                                                            \
	__attribute__((cleanup(weft__ev_leave_call))) struct weft__ev_call call =                                                \
	    weft__ev_enter_call(__builtin_return_address(0));                                                                    \
	(void)call

/* Makes promise `id` the running promise for the rest of the block; 0 keeps the running promise. */
#define WEFT__EV_FRAME(id)                                                                                                       \
	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(id);                                                                    \
	(void)frame

#endif
