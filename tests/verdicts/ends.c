/* ends.c FAULT: promises on a libuv loop whose result the program uses or ignores.
 *
 *   waits      the program runs the loop for a promise that no code resolves
 *   ignored    a page fails, and the program does not read its error
 *   looked-at  a page fails, and the program asks for the state of its promise
 *   dropped    the program ignores the result of a page that has failed already
 *
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include <weft/promise.h>
#include <weft/uv.h>

static struct weft_promise *fail_page(void *unused, void *value)
{
	(void)unused;
	(void)value;
	return weft_promise_fail(WEFT_EINVAL, "no such page");
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	struct weft_uv *uv = weft_uv_create(NULL);
	struct weft_resolver *resolver = NULL;
	struct weft_promise *page = !strcmp(fault, "waits") ? weft_promise_wait(&resolver)
							    : weft_promise_bind(weft_uv_sleep(uv, 5), fail_page, NULL, NULL);
	struct weft_promise *end = weft_uv_sleep(uv, 20);
	weft_promise_set_label(page, "page");
	if (!strcmp(fault, "dropped"))
		weft_promise_ignore_result(weft_promise_fail(WEFT_EINVAL, "no space for the page"));
	weft_uv_run(uv, !strcmp(fault, "waits") ? page : end, 0);
	const int is_failed = !strcmp(fault, "looked-at") && weft_promise_state(page) == WEFT_FAILED;
	weft_promise_unref(end);
	weft_promise_unref(page);
	weft_uv_destroy(uv);
	return is_failed;
}
