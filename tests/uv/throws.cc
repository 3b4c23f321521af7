// throws.cc: exceptions leave callbacks and pass through libuv to the function that runs the loop.  SPDX-License-Identifier: ISC
#include <cstdio>
#include <stdexcept>
#include <uv.h>

static void throws(uv_timer_t *timer)
{
	throw std::runtime_error("from a callback");
}

static void runs_and_throws(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	uv_timer_t *timer = static_cast<uv_timer_t *>(idle->data);
	uv_timer_start(timer, throws, 0, 0);
	uv_run(idle->loop, UV_RUN_DEFAULT);
}

int main()
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;
	uv_idle_t idle;
	int caught = 0;
	uv_timer_init(loop, &timer);
	uv_idle_init(loop, &idle);
	idle.data = &timer;
	for (int i = 0; i < 100; i++)
		try {
			if (i % 2)
				uv_timer_start(&timer, throws, 0, 0);
			else
				uv_idle_start(&idle, runs_and_throws);
			uv_run(loop, UV_RUN_DEFAULT);
		} catch (const std::runtime_error &) {
			caught++;
		}
	std::printf("%d caught\n", caught);
	return caught != 100;
}
