/* uv_support.h: helpers for the tests of weft/uv.h, to be included in one file of a program.  SPDX-License-Identifier: ISC */
#ifndef TESTS_PROMISE_UV_SUPPORT_H
#define TESTS_PROMISE_UV_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

#include "tests/allocations.h"

#define LIMIT_MS 60000

static struct weft_uv *uv;

static inline int begin(void **state)
{
	uv = weft_uv_create(NULL);
	return uv ? 0 : -1;
}

static inline int end(void **state)
{
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}

/* Runs the loop until p ends, and checks its status; the caller keeps its reference to p. */
static inline struct weft_promise *ended(struct weft_promise *p, int code)
{
	assert_int_equal(weft_uv_run(uv, p, LIMIT_MS), WEFT_OK);
	if (code == 0 && weft_promise_state(p) == WEFT_FAILED)
		fail_msg("%s", weft_promise_failure(p)->message);
	assert_int_equal(weft_promise_state(p), code == 0 ? WEFT_RESOLVED : WEFT_FAILED);
	if (code != 0)
		assert_int_equal(weft_promise_failure(p)->code, code);
	return p;
}

static inline void ends(struct weft_promise *p, int code)
{
	weft_promise_unref(ended(p, code));
}

/* Cancels p in any state, and checks that p ends as cancelled. */
static inline void cancelled(struct weft_promise *p)
{
	weft_promise_cancel(p);
	ends(p, WEFT_PROMISE_CANCELLED);
}

static inline void reads(struct weft_promise *p, const char *want)
{
	struct weft_uv_bytes *bytes = weft_promise_value(ended(p, 0));
	assert_int_equal(bytes->size, strlen(want));
	assert_memory_equal(bytes->data, want, bytes->size);
	weft_promise_unref(p);
}

/* Runs the loop until it is empty. */
static inline void run_dry(void)
{
	while (uv_run(weft_uv_loop(uv), UV_RUN_ONCE))
		;
}

#endif
