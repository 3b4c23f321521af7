/* loop.h: declarations that the files of the library behind weft/uv.h share.
 *
 * An object lives on a libuv loop: a handle, or a request on the thread pool. weft_uv_destroy() ends the remaining objects, and
 * then runs the loop until the last object is gone; meanwhile no promise is woken.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROMISE_LOOP_H
#define WEFT_PROMISE_LOOP_H

#include <stdlib.h>
#include <weft/uv.h>

#define WEFT__HIDDEN __attribute__((visibility("hidden")))

/* First member of each object on the loop. */
struct weft__uv_object {
	struct weft_uv *uv;
	struct weft__uv_object *next,
	    **back; /* list of the objects that weft_uv_destroy() can end; `back` is NULL if the object is not in the list */
	void (*end)(struct weft__uv_object *object);
};

struct weft_uv {
	uv_loop_t *loop, own;
	uv_prepare_t prepare; /* handle whose callback runs before the loop sleeps */
	uv_check_t check;     /* handle whose callback runs after the loop has slept */
	/* Handle that is active while a promise pauses or the loop spins, so that the loop does not sleep. */
	uv_idle_t idle;
	unsigned open; /* number of objects on the loop */
	bool slept, ending;
	struct weft__uv_object *objects;
	/* Position in the recorder's stream after the last iteration; if it is unchanged, no event was recorded since. */
	weft_word recorded_position;
	uint64_t turns, eventful_turns; /* numbers of iterations since the loop slept: all of them, and those with events */
	struct weft_promise *spin;      /* promise of a loop that spins; NULL if the loop sleeps */
	struct weft_resolver *spin_end;
};

/* Adds an object to the loop; the callback `end` makes the loop close the object soon, and removes it from the list. */
WEFT__HIDDEN void weft__uv_object_add(
    struct weft_uv *uv, struct weft__uv_object *object, void (*end)(struct weft__uv_object *object));
/* Removes an object that ends by itself from the list of weft_uv_destroy(). */
WEFT__HIDDEN void weft__uv_object_unlist(struct weft__uv_object *object);
/* Notes that the loop has called the object's callbacks for the last time. */
WEFT__HIDDEN void weft__uv_object_closed(struct weft__uv_object *object);

/* Makes a promise of the given kind; cancelling it calls `cancelled` with ctx.  Without memory, the function returns a failed
 * promise, and *resolver is NULL. */
WEFT__HIDDEN struct weft_promise *weft__uv_promise(struct weft_record_site *site, enum weft_kind kind, const char *label,
    weft_on_end_fn *cancelled, void *ctx, struct weft_resolver **resolver);
/* Notes that the loop is awake; call this function in a callback before recording events. */
WEFT__HIDDEN void weft__uv_note_awake(struct weft_uv *uv);
/* Returns a promise that failed with an error of libuv or of enum weft_promise_code. */
WEFT__HIDDEN struct weft_promise *weft__uv_failed(int status);
/* Resolves the promise with the value; if status is an error, the promise fails with the error, and the value is destroyed. */
WEFT__HIDDEN void weft__uv_wakeup(
    struct weft_uv *uv, struct weft_resolver *resolver, int status, void *value, weft_destroy_fn *destroy);
/* Returns a promise of the given kind that has already ended: resolved if status >= 0, else failed. */
WEFT__HIDDEN struct weft_promise *weft__uv_ended(
    struct weft_record_site *site, enum weft_kind kind, int status, void *value, weft_destroy_fn *destroy);

/* ---- Handles that the program holds (uv_handle.c) ---- */

/* A handle whose references are counted: one for the program, and one for each operation in progress.  A handle without
 * references is closed, and then freed. This struct is the first member of each handle. */
struct weft__handle {
	struct weft__uv_object object;
	uv_handle_t *handle;
	unsigned refs;
	bool closing, closed;
	struct weft_resolver *waiter; /* resolver of the promise that waits for the next item */
	struct weft_resolver *close_resolver;
	void (*on_closing)(struct weft__handle *h); /* may be NULL */
};

/* Adds an initialised libuv handle; the rest of the struct must be zeroed.  The handle keeps the loop alive only while a promise
 * waits for the handle. */
WEFT__HIDDEN void weft__handle_add(struct weft__handle *h, struct weft_uv *uv, uv_handle_t *handle);
WEFT__HIDDEN void weft__handle_ref(struct weft__handle *h);
/* Drops a reference to the handle; does nothing if h is NULL. */
WEFT__HIDDEN void weft__handle_unref(struct weft__handle *h);
/* Closes the handle, so that operations in progress fail.  The parameter is a void *, so that the function can be used as a
 * cancel function. */
WEFT__HIDDEN void weft__handle_close(void *h);
WEFT__HIDDEN struct weft_promise *weft__handle_close_promise(struct weft_record_site *site, struct weft__handle *h);
/* Sets *p to a promise that waits for the handle's next item.  Returns false if *p has failed, because h is closed, another
 * promise waits already, or there is no memory. */
WEFT__HIDDEN bool weft__handle_wait(
    struct weft_record_site *site, enum weft_kind kind, const char *label, struct weft__handle *h, struct weft_promise **p);
/* Ends the promise that waits for the handle, and takes over the value. */
WEFT__HIDDEN void weft__handle_wake(struct weft__handle *h, int status, void *value, weft_destroy_fn *destroy);

/* ---- Recording of connections (uv_connection.c) ---- */

enum weft__role {
	WEFT__ACCEPTED,
	WEFT__CONNECTED,
	WEFT__INHERITED,
	WEFT__LISTENER,
	WEFT__DATAGRAM_SOCKET
}; /* the roles from LISTENER on have no peer */

/* A connection, socket or listener that is recorded as a promise of its own, from its start until it is closed, whether or not a
 * promise waits for it.  A zeroed struct is not recorded.  Its functions cannot fail. */
struct weft__uv_connection {
	struct weft__handle *h; /* NULL: not recorded */
	enum weft__role role;
	struct weft_record_site *site;
	weft_id id, by; /* promise of the connection and its creator; id is 0 if nothing has recorded since the start */
	uint64_t since;
	weft_id read; /* promise of the last read that was requested */
	int fd;
	struct weft_positions positions;
	/* Whether the trace contains the connection's identity, and whether the connection has no identity. */
	bool is_identified, is_unidentifiable;
	struct weft__uv_connection *next, **back;
};

/* Starts to record h; `by` is the listener, or 0 for the running promise.  `to` is the target's name; NULL if the descriptor
 * must be asked. */
WEFT__HIDDEN void weft__uv_connection_begin(struct weft__uv_connection *c, struct weft__handle *h, enum weft__role role,
    struct weft_record_site *site, weft_id by, const struct sockaddr *to);
WEFT__HIDDEN void weft__uv_connection_end(struct weft__uv_connection *c);
/* Records the identity of a connection once, when it is connected and all bytes that arrived are read.  Returns whether the
 * connection's identity is known. */
WEFT__HIDDEN bool weft__uv_connection_identify(struct weft__uv_connection *c);
WEFT__HIDDEN void weft__uv_connection_await_read(struct weft__uv_connection *c, const struct weft_promise *read);
/* Records that bytes are about to be written; a negative number means that so many bytes were not written. */
WEFT__HIDDEN void weft__uv_connection_note_write(struct weft__uv_connection *c, int64_t bytes);
/* Records bytes that are written to the descriptor without libuv. */
WEFT__HIDDEN void weft__uv_connection_note_raw_write(struct weft__uv_connection *c, const uv_handle_t *handle, int64_t bytes);
WEFT__HIDDEN void weft__uv_connection_note_read(struct weft__uv_connection *c, size_t bytes);
/* Records that a datagram is about to be sent to the address `to`, which may be NULL. */
WEFT__HIDDEN void weft__uv_connection_note_send(
    struct weft__uv_connection *c, const struct sockaddr *to, const void *bytes, size_t size);
/* Records that a datagram was received. */
WEFT__HIDDEN void weft__uv_connection_note_receive(struct weft__uv_connection *c, const void *bytes, size_t size);

/* ---- The thread pool (uv_job.c) ---- */

/* A request on the thread pool, from its start until libuv calls back, even if it was cancelled meanwhile.  This struct is the
 * first member of each job. */
struct weft__job {
	struct weft__uv_object object;
	struct weft_resolver *resolver;
	uv_req_t *request;
	bool cancelled; /* or weft_uv_destroy() was called */
};

/* Starts a zeroed job of so many bytes; its libuv request, a member at request_offset, points back to the job.  NULL: return
 * *p. */
WEFT__HIDDEN void *weft__job_start(struct weft_record_site *site, struct weft_uv *uv, enum weft_kind kind, const char *label,
    size_t bytes, size_t request_offset, struct weft_promise **p);
/* Frees the job, and then resolves its promise as weft__uv_wakeup() does. */
WEFT__HIDDEN void weft__job_end(struct weft__job *job, int status, void *value, weft_destroy_fn *destroy);

/* ---- Streams, for code that writes to their descriptor itself (uv_stream.c) ---- */

/* Lends the stream to a borrower: the stream is kept, and only the borrower may write to it; `closed` is called if the stream is
 * closed meanwhile.  Returns the stream's loop, or NULL with *status: WEFT_PROMISE_CLOSED, or UV_EBUSY if a write is in
 * progress. */
WEFT__HIDDEN struct weft_uv *weft__stream_lend(
    struct weft_uv_stream *s, void (*closed)(void *borrower), void *borrower, int *status);
WEFT__HIDDEN bool weft__stream_is_closing(const struct weft_uv_stream *s);
/* Records that the borrower is about to write bytes; a negative number means that so many bytes were not written. */
WEFT__HIDDEN void weft__stream_note_write(struct weft_uv_stream *s, int64_t bytes);
WEFT__HIDDEN void weft__stream_give_back(struct weft_uv_stream *s);

/* ---- Files (uv_file.c) ---- */

/* Keeps the file open until weft__file_release().  Returns the file's descriptor, or -1 if the file is closed. */
WEFT__HIDDEN int weft__file_use(struct weft_uv_file *file);
WEFT__HIDDEN void weft__file_release(struct weft_uv_file *file);

#endif
