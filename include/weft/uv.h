/* uv.h: promises on a libuv loop.
 *
 *	struct weft_uv *uv = weft_uv_create(NULL);
 *	struct weft_promise *p = weft_promise_bind(weft_uv_sleep(uv, 100), next, NULL, NULL);
 *	weft_uv_run(uv, p, 0);
 *	weft_promise_unref(p);
 *	weft_uv_destroy(uv);
 *
 * While the loop is run, by weft_uv_run() or by uv_run() itself, what pauses goes on once per iteration, and the trace has when
 * the program slept.  Ownership is as in promise.h.  SPDX-License-Identifier: ISC */
#ifndef WEFT_UV_H
#define WEFT_UV_H

#include <uv.h>
#include <weft/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_uv;

/* Brings promises to a loop, which stays the caller's and must outlive the result; NULL: makes a loop.  One loop for an OS
 * thread.  NULL without memory, or if libuv has none. */
WEFT__API struct weft_uv *weft_uv_create(uv_loop_t *loop);

/* What still waits here stays pending.  Not from a callback of the loop.  Runs the loop until what was closed here is gone. */
WEFT__API void weft_uv_destroy(struct weft_uv *uv);

WEFT__API uv_loop_t *weft_uv_loop(struct weft_uv *uv);

/* Runs the loop until p, which stays the caller's, has ended.  WEFT_OK; WEFT_EBUSY: it has not after limit_ms (0: no limit);
 * WEFT_ENOTFOUND: nothing is left on the loop that could end it; WEFT_ENOMEM: it did not run. */
WEFT__API int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms);

/* Resolved after that many ms.  Can be cancelled. */
#define weft_uv_sleep(uv, ms) weft__uv_sleep(WEFT_SITE(), uv, ms)
/* Fails after that many ms, with WEFT_PROMISE_TIMEOUT.  Can be cancelled. */
#define weft_uv_timeout(uv, ms) weft__uv_timeout(WEFT_SITE(), uv, ms)
/* Ends as p, or fails with WEFT_PROMISE_TIMEOUT after that many ms; then p is cancelled.  A pick of both. */
#define weft_uv_with_timeout(uv, ms, p) weft__uv_with_timeout(WEFT_SITE(), uv, ms, p)

WEFT__API struct weft_promise *weft__uv_sleep(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms);
WEFT__API struct weft_promise *weft__uv_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms);
WEFT__API struct weft_promise *weft__uv_with_timeout(
    struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, struct weft_promise *p);

#ifdef __cplusplus
}
#endif
#endif
