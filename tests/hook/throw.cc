// throw.cc: a callback of libuv's leaves the loop by an exception; so does one that is thrown below a call in a moved entry.
// SPDX-License-Identifier: ISC
#include <cstdio>
#include <stdexcept>
#include <uv.h>

static void on_timer(uv_timer_t *)
{
	throw std::runtime_error("out of a callback");
}

static void on_walk(uv_handle_t *, void *)
{
	throw std::runtime_error("out of a walk");
}

int main()
{
	uv_loop_t loop;
	uv_timer_t timer;
	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_timer, 0, 0);
	try {
		uv_run(&loop, UV_RUN_DEFAULT);
	} catch (const std::exception &e) {
		std::printf("caught: %s\n", e.what());
	}
	try {
		uv_walk(&loop, on_walk, nullptr);
	} catch (const std::exception &e) {
		std::printf("caught: %s\n", e.what());
	}
	uv_close(reinterpret_cast<uv_handle_t *>(&timer), nullptr);
	uv_run(&loop, UV_RUN_DEFAULT);
	std::printf("close: %d\n", uv_loop_close(&loop));
}
