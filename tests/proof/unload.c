/* unload.c PLUGIN TIMES: dlclose() unloads the recorder, and OS threads that have recorded run on and end later.
 * SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

#define THREADS 4
#define EVENTS 1000

static void (*work)(int first, int count);
static pthread_barrier_t barrier;

static void *thread(void *arg)
{
	work((int)(intptr_t)arg, EVENTS);
	pthread_barrier_wait(&barrier); /* waits until all threads have recorded */
	pthread_barrier_wait(&barrier); /* waits until the library has been unloaded */
	return NULL;
}

static size_t count_events(const char *path)
{
	struct weft_trace *trace;
	struct weft_error err = {0};
	const struct weft_event *events;
	size_t count, total = 0;
	if (weft_trace_open(&trace, path, &err) < 0) {
		printf("%s: %s\n", err.file, err.what);
		return 0;
	}
	while (weft_trace_next(trace, &events, &count) == 1)
		total += count;
	weft_trace_close(trace);
	return total;
}

int main(int argc, char **argv)
{
	char place[64] = "/tmp/weft-proof-XXXXXX", path[96];
	unsigned times = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100;
	if (argc < 2 || !mkdtemp(place))
		return 2;
	snprintf(path, sizeof path, "%s/trace", place);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < times; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!plugin) {
			puts(dlerror());
			return 1;
		}
		int (*start)(const char *directory) = (int (*)(const char *))(uintptr_t)dlsym(plugin, "plugin_start");
		work = (void (*)(int, int))(uintptr_t)dlsym(plugin, "plugin_work");
		if (start(path)) {
			puts("cannot start");
			return 1;
		}
		pthread_t threads[THREADS];
		for (int k = 0; k < THREADS; k++)
			pthread_create(&threads[k], NULL, thread, (void *)(intptr_t)(1 + k * EVENTS));
		work(100000, EVENTS);
		pthread_barrier_wait(&barrier);
		dlclose(plugin);
		pthread_barrier_wait(&barrier);
		for (int k = 0; k < THREADS; k++)
			pthread_join(threads[k], NULL);
		size_t events = count_events(path);
		if (events != (THREADS + 1) * EVENTS) {
			printf("%zu events of %d\n", events, (THREADS + 1) * EVENTS);
			return 1;
		}
		/* If the library stays loaded in spite of dlclose(), it still records, so the recording is stopped before the
		 * next one starts. */
		plugin = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
		if (plugin)
			dlclose(plugin);
		void *library = dlopen("libweft-record.so.0", RTLD_NOW | RTLD_NOLOAD);
		if (library) {
			void (*stop)(void) = (void (*)(void))(uintptr_t)dlsym(library, "weft__stop");
			stop();
			dlclose(library);
		}
	}
	char command[96];
	snprintf(command, sizeof command, "rm -rf %s", place);
	printf("dlclose %u times under %d OS threads that had recorded: every event is there\n", times, THREADS);
	return system(command) != 0;
}
