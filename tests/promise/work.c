/* work.c: a function on the thread pool, whose trace work.py checks.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <weft/uv.h>

static weft_id request;

static struct weft_value compute(void *ctx)
{
	weft_id step = WEFT_CREATE(WEFT_KIND_PROMISE);
	WEFT_LABEL(step, "step");
	weft_resolve(weft_running(), step);
	weft_resolve(weft_running(), request);
	return (struct weft_value){ctx, NULL};
}

static struct weft_value done(void *ctx, void *value)
{
	return (struct weft_value){value, NULL};
}

int main(void)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	request = WEFT_CREATE(WEFT_KIND_REQUEST);
	WEFT_LABEL(request, "request");
	struct weft_promise *p = weft_promise_map(weft_uv_work(uv, compute, "done", NULL), done, NULL, NULL);
	weft_uv_run(uv, p, 0);
	puts(weft_promise_value(p));
	weft_promise_unref(p);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}
