/* loop.h: what the files of weft/uv.h share.
 *
 * A thing is what lives on the loop: a handle, or a request on the thread pool.  weft_uv_destroy() ends those that are left,
 * then runs the loop until the last is gone; meanwhile nothing is woken.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROMISE_LOOP_H
#define WEFT_PROMISE_LOOP_H

#include <stdlib.h>
#include <weft/uv.h>

#define WEFT__HIDDEN __attribute__((visibility("hidden")))

/* The first member of each. */
struct weft__thing {
	struct weft_uv *uv;
	struct weft__thing *next, **back; /* the list of what weft_uv_destroy() can end; back is NULL: not in it */
	void (*end)(struct weft__thing *thing);
};

struct weft_uv {
	uv_loop_t *loop, own;
	uv_prepare_t prepare; /* before the loop sleeps */
	uv_check_t check;     /* after it */
	uv_idle_t idle;       /* active while a promise pauses, or the loop spins, so that it does not sleep */
	unsigned open;        /* how many things of ours are on the loop */
	bool slept, ending;
	struct weft__thing *things;
	weft_word seen;            /* of the recorder's stream when the last turn was told: the same: nothing happened since */
	uint64_t turns, eventful;  /* since the loop slept: all, and those in which something happened */
	struct weft_promise *spin; /* of a loop that does not sleep; NULL: it does */
	struct weft_resolver *spin_end;
};

/* From now on the loop may call back for the thing; `end` makes the loop do that soon, and removes the thing. */
WEFT__HIDDEN void weft__thing_add(struct weft_uv *uv, struct weft__thing *thing, void (*end)(struct weft__thing *thing));
/* The thing ends by itself: weft_uv_destroy() need not end it. */
WEFT__HIDDEN void weft__thing_remove(struct weft__thing *thing);
/* The loop has called back for the thing for the last time. */
WEFT__HIDDEN void weft__thing_gone(struct weft__thing *thing);

/* A promise of a kind; cancelling it calls `cancelled` with ctx.  Without memory: the failed promise to return, and *resolver is
 * NULL. */
WEFT__HIDDEN struct weft_promise *weft__uv_promise(struct weft_record_site *site, enum weft_kind kind, const char *label,
    weft_on_end_fn *cancelled, void *ctx, struct weft_resolver **resolver);
/* Before something is told in a callback: the loop sleeps no more. */
WEFT__HIDDEN void weft__uv_awake(struct weft_uv *uv);
/* A promise that has failed with an error of libuv or of enum weft_promise_code. */
WEFT__HIDDEN struct weft_promise *weft__uv_failed(int status);
/* Resolves with the value unless status is an error; if it is one, fails with it and destroys the value. */
WEFT__HIDDEN void weft__uv_wakeup(
    struct weft_uv *uv, struct weft_resolver *resolver, int status, void *value, weft_destroy_fn *destroy);
/* A promise of a kind that has ended in this way when it is returned. */
WEFT__HIDDEN struct weft_promise *weft__uv_ended(
    struct weft_record_site *site, enum weft_kind kind, int status, void *value, weft_destroy_fn *destroy);

/* ---- Handles that the program holds (uv_handle.c) ---- */

/* Counted by the program and by each operation that is under way; without any it is closed, and when that is done it is freed.
 * The first member of each. */
struct weft__handle {
	struct weft__thing thing;
	uv_handle_t *handle;
	unsigned refs;
	bool closing, closed;
	struct weft_resolver *asker; /* the promise that waits for what comes */
	struct weft_resolver *closer;
	void (*on_closing)(struct weft__handle *h); /* may be NULL */
};

/* The handle is initialised, the rest of the struct is zeroed.  The handle keeps the loop alive only while a promise waits for
 * it. */
WEFT__HIDDEN void weft__handle_add(struct weft__handle *h, struct weft_uv *uv, uv_handle_t *handle);
WEFT__HIDDEN void weft__handle_ref(struct weft__handle *h);
/* NULL is nothing. */
WEFT__HIDDEN void weft__handle_unref(struct weft__handle *h);
/* Closes the handle: operations under way fail.  Takes a void *, so that it can serve as a cancel function. */
WEFT__HIDDEN void weft__handle_close(void *h);
WEFT__HIDDEN struct weft_promise *weft__handle_close_promise(struct weft_record_site *site, struct weft__handle *h);
/* *p becomes the promise that waits for what comes.  False: *p has failed, since h is closed, another promise waits already, or
 * there is no memory. */
WEFT__HIDDEN bool weft__handle_ask(
    struct weft_record_site *site, enum weft_kind kind, const char *label, struct weft__handle *h, struct weft_promise **p);
/* Ends the promise that waits; takes the value. */
WEFT__HIDDEN void weft__handle_answer(struct weft__handle *h, int status, void *value, weft_destroy_fn *destroy);

/* ---- What the trace is told of connections (uv_carried.c) ---- */

enum weft__role { WEFT__ACCEPTED, WEFT__CONNECTED, WEFT__GIVEN, WEFT__LISTENS, WEFT__DATAGRAMS }; /* from LISTENS on: no peer */

/* A connection, socket or listener as a promise of its own, from its beginning until it is closed, whoever waits for it; zeroed,
 * it is not told of.  Nothing here fails. */
struct weft__carried {
	struct weft__handle *h; /* NULL: it is not told of */
	enum weft__role role;
	struct weft_record_site *site;
	weft_id id, by; /* 0: nothing has recorded since it began */
	uint64_t since;
	weft_id read; /* that was asked for last */
	int fd;
	struct weft_positions positions;
	bool is_followed, is_stranger; /* the trace knows which connection it is, or cannot */
	struct weft__carried *next, **back;
};

/* h begins to be one; `by`: the listener, or 0: who runs.  `to`: where it goes; NULL: its descriptor knows. */
WEFT__HIDDEN void weft__carried_begin(struct weft__carried *c, struct weft__handle *h, enum weft__role role,
    struct weft_record_site *site, weft_id by, const struct sockaddr *to);
WEFT__HIDDEN void weft__carried_end(struct weft__carried *c);
/* It is connected, and whatever came was read: tells which connection it is, once.  Returns whether that is known. */
WEFT__HIDDEN bool weft__carried_follow(struct weft__carried *c);
WEFT__HIDDEN void weft__carried_awaits(struct weft__carried *c, const struct weft_promise *read);
/* So many bytes are about to be written; below 0: so many were not. */
WEFT__HIDDEN void weft__carried_goes_out(struct weft__carried *c, int64_t bytes);
/* The same, of what libuv does not write. */
WEFT__HIDDEN void weft__carried_past_libuv(struct weft__carried *c, const uv_handle_t *handle, int64_t bytes);
WEFT__HIDDEN void weft__carried_came_in(struct weft__carried *c, size_t bytes);
/* A datagram is about to be sent; `to` may be NULL. */
WEFT__HIDDEN void weft__carried_sends(struct weft__carried *c, const struct sockaddr *to, const void *bytes, size_t size);
/* One has come. */
WEFT__HIDDEN void weft__carried_got(struct weft__carried *c, const void *bytes, size_t size);

/* ---- The thread pool (uv_job.c) ---- */

/* A request, from its start until libuv calls back, even if it was cancelled meanwhile.  The first member of each. */
struct weft__job {
	struct weft__thing thing;
	struct weft_resolver *resolver;
	uv_req_t *request;
	bool cancelled; /* or uv is going */
};

/* A job of that many bytes, zeroed, whose request (a member, at that offset) points back to it; NULL: *p is to be returned. */
WEFT__HIDDEN void *weft__job_start(struct weft_record_site *site, struct weft_uv *uv, enum weft_kind kind, const char *label,
    size_t bytes, size_t request_offset, struct weft_promise **p);
/* As weft__uv_wakeup; the job is freed first. */
WEFT__HIDDEN void weft__job_end(struct weft__job *job, int status, void *value, weft_destroy_fn *destroy);

/* ---- Streams, for what writes to their descriptor itself (uv_stream.c) ---- */

/* From now on the stream is kept and nobody else may write; `closed` is called when it is closed meanwhile.  Its loop, or NULL
 * and *status says why: WEFT_PROMISE_CLOSED; UV_EBUSY: something is being written. */
WEFT__HIDDEN struct weft_uv *weft__stream_lend(
    struct weft_uv_stream *s, void (*closed)(void *borrower), void *borrower, int *status);
WEFT__HIDDEN bool weft__stream_is_closing(const struct weft_uv_stream *s);
/* So many bytes are about to be written by the borrower; below 0: so many were not. */
WEFT__HIDDEN void weft__stream_goes_out(struct weft_uv_stream *s, int64_t bytes);
WEFT__HIDDEN void weft__stream_give_back(struct weft_uv_stream *s);

/* ---- Files (uv_file.c) ---- */

/* Keeps the file open until it is released.  Returns its descriptor, or -1 if it is closed. */
WEFT__HIDDEN int weft__file_use(struct weft_uv_file *file);
WEFT__HIDDEN void weft__file_release(struct weft_uv_file *file);

#endif
