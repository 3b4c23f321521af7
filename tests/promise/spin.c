/* spin.c: a callback sets up an idle handle that never says that it is done; a second later the program
 * is gone without an end of its trace.  With an argument the handle ends first, and the loop sleeps again.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <weft/uv.h>

static uv_idle_t idle;

static void look_again(uv_idle_t *handle)
{
	(void)handle;
}

static struct weft_promise *set_up(void *uv, void *nothing)
{
	(void)nothing;
	uv_idle_init(weft_uv_loop(uv), &idle);
	uv_idle_start(&idle, look_again);
	return weft_promise_unit();
}

static void sleep_for(struct weft_uv *uv, uint64_t ms, const char *label)
{
	struct weft_promise *p = weft_uv_sleep(uv, ms);
	weft_promise_set_label(p, label);
	weft_uv_run(uv, p, 0);
	weft_promise_unref(p);
}

int main(int argc, char **argv)
{
	(void)argv;
	struct weft_uv *uv = weft_uv_create(NULL);
	sleep_for(uv, 1, "configuration");
	struct weft_promise *done = weft_promise_bind(weft_uv_sleep(uv, 1), set_up, uv, NULL);
	weft_uv_run(uv, done, 0);
	weft_promise_unref(done);
	sleep_for(uv, 500, "request");
	sleep_for(uv, 500, "answer");
	if (argc > 1) {
		uv_close((uv_handle_t *)&idle, NULL);
		sleep_for(uv, 20, "rest");
		weft_uv_destroy(uv);
		return 0;
	}
	_Exit(0);
}
