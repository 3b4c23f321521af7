/* leak.c: each visitor gets a session that ends when the visitor logs out, but no visitor ever logs out.
 *
 * docs/tutorial-diagnosing.md finds the leak.  SPDX-License-Identifier: ISC */
#include <weft/uv.h>

enum { VISITORS = 60 };

static struct weft_uv *uv;
static struct weft_resolver *sessions[VISITORS];
static int visitors;

static struct weft_promise *visitor(void *ctx, void *nothing)
{
	if (visitors == VISITORS)
		return weft_promise_unit();
	weft_promise_unref(weft_promise_named_task("session", &sessions[visitors++]));
	return weft_promise_bind(weft_uv_sleep(uv, 5), visitor, NULL, NULL);
}

int main(void)
{
	uv = weft_uv_create(NULL);
	if (!uv)
		return 2;
	struct weft_promise *served = weft_promise_bind(weft_uv_sleep(uv, 5), visitor, NULL, NULL);
	weft_promise_should_resolve(served);
	int status = weft_uv_run(uv, served, 0);
	for (int i = 0; i < visitors; i++)
		weft_resolver_drop(sessions[i]);
	weft_promise_unref(served);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return status == WEFT_OK ? 0 : 1;
}
