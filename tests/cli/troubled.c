/* troubled.c: the example http-server, in which a request for one of these files causes a fault: stall computes for 300 ms before
 * the response, lost waits for a condition that was signalled before the wait, leak creates a promise that never ends, spin calls
 * an idle callback for ever.  SPDX-License-Identifier: ISC */
#include <string.h>
#include <time.h>
#include <weft/uv.h>

static void compute(int ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static struct weft_promise *wait_for_lost(void)
{
	static struct weft_condition *filled;
	if (!filled) {
		filled = weft_condition_create("cache is filled");
		weft_condition_signal(filled, NULL, NULL);
	}
	return weft_condition_wait(filled, NULL);
}

static void leave_behind(void)
{
	struct weft_resolver *nobody;
	weft_promise_unref(weft_promise_of_kind(WEFT_KIND_TASK, false, "cleanup", &nobody));
}

static void look_again(uv_idle_t *idle)
{
	(void)idle;
}

static void spin(struct weft_uv *uv)
{
	static uv_idle_t idle;
	uv_idle_init(weft_uv_loop(uv), &idle);
	uv_idle_start(&idle, look_again);
	uv_unref((uv_handle_t *)&idle);
}

static struct weft_promise *open_troubled(struct weft_uv *uv, const char *path, int flags, int mode)
{
	if (strcmp(path, "./lost") == 0)
		return wait_for_lost();
	if (strcmp(path, "./stall") == 0)
		compute(300);
	else if (strcmp(path, "./leak") == 0)
		leave_behind();
	else if (strcmp(path, "./spin") == 0)
		spin(uv);
	return weft_uv_open(uv, path, flags, mode);
}

#undef weft_uv_open
#define weft_uv_open open_troubled
#include "../../examples/http/http.c"
