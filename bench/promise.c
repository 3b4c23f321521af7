/* promise.c: the cost of promises, compiled without recording, and with recording off and on.
 *
 *	weft-bench-promise OUT ON DIRECTORY	the two modules of promise_loop.c, and the directory of the trace
 *
 * Thread CPU time, medians of interleaved rounds.  SPDX-License-Identifier: ISC */
#include "bench/promise.h"

#include <dlfcn.h>

enum { ITERATIONS = 20000, ROUNDS = 101, CASES = 6 };

typedef void loop_fn(unsigned count);

static void *load_symbol(void *module, const char *name)
{
	void *s = dlsym(module, name);
	if (!s)
		fatal("%s", dlerror());
	return s;
}

static void *open_module(const char *path)
{
	void *m = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m)
		fatal("%s", dlerror());
	return m;
}

static double time_loop(loop_fn *loop)
{
	double begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	loop(ITERATIONS);
	return (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / ITERATIONS;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		fatal("usage: weft-bench-promise OUT ON DIRECTORY");
	void *modules[2] = {open_module(argv[1]), open_module(argv[2])};
	void (*start)(const char *) = (void (*)(const char *))load_symbol(modules[1], "bench_start");
	void (*stop)(void) = (void (*)(void))load_symbol(modules[1], "bench_stop");
	uint32_t (*events)(void) = (uint32_t(*)(void))load_symbol(modules[1], "bench_events");
	static const char *const names[] = {"plain", "named"}, *const symbols[] = {"bench_plain", "bench_named"};
	static double took[CASES][ROUNDS], off_to_out[2][ROUNDS];
	loop_fn *loops[CASES];
	uint32_t count[2] = {0, 0};
	for (int i = 0; i < CASES; i++)
		loops[i] = (loop_fn *)load_symbol(modules[i % 3 != 0], symbols[i / 3]);
	for (int round = -3; round < ROUNDS; round++) { /* the first few rounds warm up */
		int at = round < 0 ? 0 : round;
		/* Out and off alternate in being first. */
		for (int n = 0; n < 2; n++) {
			for (int half = 0; half < 2; half++) {
				int i = 3 * n + (half ^ (round & 1));
				took[i][at] = time_loop(loops[i]);
			}
			off_to_out[n][at] = took[3 * n + 1][at] / took[3 * n][at];
		}
		start(argv[3]);
		for (int n = 0; n < 2; n++) {
			uint32_t before = events();
			took[3 * n + 2][at] = time_loop(loops[3 * n + 2]);
			count[n] = events() - before;
		}
		stop();
	}
	for (int n = 0; n < 2; n++) {
		double out = median(took[3 * n], ROUNDS), off = median(took[3 * n + 1], ROUNDS),
		       on = median(took[3 * n + 2], ROUNDS);
		printf("%s_out %f\n%s_off %f\n%s_on %f\n", names[n], out, names[n], off, names[n], on);
		printf("%s_ratio %f\n", names[n], median(off_to_out[n], ROUNDS));
		printf("%s_events %f\n", names[n], (double)count[n] / ITERATIONS);
	}
	return 0;
}
