/* adapter.h: what the files of the libevent adapter share (private to adapters/event).
 *
 * libevent 2.0 and 2.1 have the same functions and the same ABI as far as this adapter goes: it looks into none of their structs,
 * and so needs none of their headers.  A *thing* is what is known of an event, a bufferevent or a request of the program, by its
 * address, for as long as it has a promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_EVENT_ADAPTER_H
#define WEFT_ADAPTERS_EVENT_ADAPTER_H

#include <sys/socket.h>
#include <sys/time.h>
#include <weft/record.h>

#include "adapters/hook/carried.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/slots.h"
#include "adapters/hook/things.h"
#include "adapters/hook/thread.h"

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

/* X(result, name, (parameters)): taken, in libevent's core and in what is beside it. */
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
	X(int, bufferevent_socket_connect, (struct bufferevent * buffer, const struct sockaddr *address, int size))
#define WEFT__EV_EXTRA(X)                                                                                                        \
	X(int, evhttp_set_cb, (struct evhttp * http, const char *path, weft__ev_request_cb *cb, void *data))                     \
	X(void, evhttp_set_gencb, (struct evhttp * http, weft__ev_request_cb * cb, void *data))                                  \
	X(struct evhttp_request *, evhttp_request_new, (weft__ev_request_cb * cb, void *data))                                   \
	X(int, evhttp_make_request,                                                                                              \
	    (struct evhttp_connection * connection, struct evhttp_request * request, int type, const char *uri))                 \
	X(void, evhttp_send_reply, (struct evhttp_request * request, int code, const char *reason, struct evbuffer *body))       \
	X(void, evhttp_send_error, (struct evhttp_request * request, int error, const char *reason))                             \
	X(void, evhttp_send_reply_end, (struct evhttp_request * request))                                                        \
	X(struct evdns_getaddrinfo_request *, evdns_getaddrinfo,                                                                 \
	    (struct evdns_base * base, const char *node, const char *service, const struct addrinfo *hints,                      \
		weft__ev_address_cb *cb, void *data))

/* Only called. */
#define WEFT__EV_CORE_CALLED(X)                                                                                                  \
	X(struct event *, event_base_get_running_event, (struct event_base * base))                                              \
	X(int, event_base_foreach_event,                                                                                         \
	    (struct event_base * base, int (*see)(const struct event_base *, const struct event *, void *), void *data))         \
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

/* What runs in place of each. */
#define WEFT__EV_WRAPPER(result, name, parameters) result weft__##name parameters;
WEFT__EV_CORE(WEFT__EV_WRAPPER)
WEFT__EV_EXTRA(WEFT__EV_WRAPPER)
#undef WEFT__EV_WRAPPER

/* Whether an address is in a libevent. */
bool weft__ev_is_own(const void *caller);

/* ---- Things (thing.c) ---- */

struct weft__ev_thing {
	WEFT_HOOK_THING;
	weft_id connect; /* of a bufferevent: the connect that it waits for */
	const struct event_base *base;
	const void *function; /* the callback */
	int fd;
	bool is_allocated; /* event_free() tells its end */
	bool is_buffer;
	bool is_added;     /* it keeps its loop */
	bool is_untouched; /* its callback leaves what came where it is */
	bool is_turned;    /* of a loop: it is called turn by turn */
	bool is_ending;    /* it ends when its loop sleeps, unless it is added until then */
	struct weft_hook_calls calls;
};

/* The lock of the thing with that key is taken, until weft__ev_unlock(key). */
void weft__ev_lock(const void *key);
void weft__ev_unlock(const void *key);

/* Under the lock.  make: NULL if there is no memory. */
struct weft__ev_thing *weft__ev_find(const void *key);
struct weft__ev_thing *weft__ev_make(const void *key);

/* Its promise ends, and it goes.  Under the lock. */
void weft__ev_end(struct weft__ev_thing *thing, weft_id by);

/* Begins its promise, to be labelled; by who runs.  Under the lock. */
void weft__ev_begin(struct weft__ev_thing *thing, enum weft_kind kind, const void *caller);
void weft__ev_say(struct weft__ev_thing *thing);

/* The promise of a key; of a bufferevent, if the key is one; 0: it has none.  Both take the lock. */
weft_id weft__ev_id(const void *key);
weft_id weft__ev_buffer_id(const void *key);

/* What is added to that base keeps its loop. */
void weft__ev_keep(const struct event_base *base, weft_id loop);

/* What ends at the end of a turn. */
void weft__ev_ends_later(struct weft__ev_thing *thing);
void weft__ev_end_all(void);

/* event.c: the event is added to its base since before the recording: its promise is told. */
void weft__ev_begin_older(const struct event *event);

uint64_t weft__ev_list(void *data, uint64_t cursor, unsigned budget);
void weft__ev_forget(void);
void weft__ev_fork(enum weft_hook_fork when);

/* ---- Who runs (adapter.c) ---- */

enum { WEFT__EV_DEPTH = 16 };

struct weft__ev_run {
	struct event_base *base;
	const void *stack;
	weft_id id, outer; /* id 0: a turn, not a loop that runs until it is told to end */
	weft_id turns;     /* the promise of the loop whose turn this is, which outer awaits while the turn waits long */
	int callbacks;
	bool is_loop;
	bool is_older; /* of its events some may be older than the recording, and are still to be told */
	const void *caller;
};

struct weft__ev_here {
	unsigned epoch, depth;
	struct weft_hook_older older;
	const void *caller; /* the program's call of libevent that is under way */
	struct weft__ev_run runs[WEFT__EV_DEPTH];
};

extern __thread struct weft__ev_here weft__ev_here __attribute__((tls_model("initial-exec")));

/* Whether calls are recorded; begins that if it is wanted. */
bool weft__ev_takes(void);

/* A call of the program's, by whose place things are named that libevent makes in it. */
struct weft__ev_call {
	const void *before;
};
struct weft__ev_call weft__ev_enter_call(const void *caller);
void weft__ev_leave_call(struct weft__ev_call *call);
#define WEFT__EV_CALL                                                                                                            \
	__attribute__((cleanup(weft__ev_leave_call))) struct weft__ev_call call =                                                \
	    weft__ev_enter_call(__builtin_return_address(0));                                                                    \
	(void)call

/* A callback runs as that promise; 0: as who ran. */
#define WEFT__EV_FRAME(id)                                                                                                       \
	WEFT_HOOK_FRAME frame = weft_hook_enter(id);                                                                             \
	(void)frame

#endif
