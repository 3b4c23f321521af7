/* plugin.c: a library whose timer blocks the loop of the program that loads it.  SPDX-License-Identifier: ISC */
#include <uv.h>

void start_plugin(uv_loop_t *loop);

static volatile int naps; /* changed behind each call: a call at the end of a function may become a jump, without a return address
			     in the function */

static __attribute__((noinline)) void nap_in_plugin(void)
{
	uv_sleep(300);
	naps++;
}

static void on_timer(uv_timer_t *timer)
{
	nap_in_plugin();
	uv_close((uv_handle_t *)timer, NULL);
}

__attribute__((visibility("default"))) void start_plugin(uv_loop_t *loop)
{
	static uv_timer_t timer;
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_timer, 1, 0);
}
