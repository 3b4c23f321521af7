/* torture.c [rounds]: allowed uses of sd-event, with or without recording.  The output depends only on the rounds.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

enum { AT_ONCE = 16, SOURCES = 40 };

static int rounds = 4, total;

static void check(int status)
{
	if (status < 0)
		abort();
}

/* The loop of an OS thread; its sources are in no particular order. */
struct own {
	sd_event *event;
	sd_event_source *sources[SOURCES];
	int ends[2], calls, left;
};

static int on_time(sd_event_source *source, uint64_t us, void *data);

static int on_defer(sd_event_source *source, void *data)
{
	struct own *own = data;
	own->calls++;
	return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *data)
{
	char byte;
	return read(fd, &byte, 1) == 1 ? on_defer(source, data) : -1;
}

/* A handler takes and drops references, and adds, changes and drops sources, also the running one. */
static int on_time(sd_event_source *source, uint64_t us, void *data)
{
	struct own *own = data;
	int place = own->left % (SOURCES - 1);
	on_defer(source, data);
	if (--own->left == 0)
		return sd_event_exit(own->event, 0);
	check(write(own->ends[1], "x", 1) == 1 ? 0 : -1);
	own->sources[place] = sd_event_source_disable_unref(own->sources[place]);
	switch (own->left % 4) {
	case 0:
		check(sd_event_add_time_relative(
		    own->event, &own->sources[place], CLOCK_MONOTONIC, 1000000000000, 0, on_time, own));
		break;
	case 1:
		check(sd_event_add_defer(own->event, &own->sources[place], on_defer, own));
		check(sd_event_source_set_description(own->sources[place], "now and then"));
		break;
	case 2:
		check(sd_event_add_post(own->event, &own->sources[place], on_defer, own));
		sd_event_source_ref(own->sources[place]);
		sd_event_source_unref(own->sources[place]);
		check(sd_event_source_set_enabled(own->sources[place], SD_EVENT_OFF));
		break;
	default:
		check(sd_event_add_exit(own->event, &own->sources[place], on_defer, own));
		check(sd_event_source_set_floating(own->sources[place], 1));
		check(sd_event_source_set_floating(own->sources[place], 0));
	}
	check(sd_event_add_defer(own->event, NULL, on_defer, own));
	sd_event_source_unref(source); /* the running source */
	return sd_event_add_time(own->event, &own->sources[SOURCES - 1], CLOCK_MONOTONIC, 0, 0, on_time, own);
}

static void *run_own_loop(void *data)
{
	struct own own = {.left = 200};
	check(pipe(own.ends));
	check(sd_event_new(&own.event));
	check(sd_event_add_io(own.event, NULL, own.ends[0], EPOLLIN, on_io, &own));
	check(sd_event_add_time(own.event, &own.sources[SOURCES - 1], CLOCK_MONOTONIC, 0, 0, on_time, &own));
	for (int status = 1; status > 0 && own.left > 100;)
		check(status = sd_event_run(own.event, 1000000));
	check(sd_event_loop(own.event));
	for (int i = 0; i < SOURCES; i++)
		sd_event_source_unref(own.sources[i]);
	sd_event_unref(own.event);
	close(own.ends[0]);
	close(own.ends[1]);
	__atomic_fetch_add(&total, own.calls > 400, __ATOMIC_RELAXED);
	return NULL;
}

static void loops(void)
{
	for (int i = 0; i < rounds; i++) {
		pthread_t threads[AT_ONCE];
		for (int j = 0; j < AT_ONCE; j++)
			check(-pthread_create(&threads[j], NULL, run_own_loop, NULL));
		for (int j = 0; j < AT_ONCE; j++)
			pthread_join(threads[j], NULL);
	}
	printf("loops: %d\n", total);
}

/* A forked child must not use the loop of its parent, and can have a loop of its own. */
static int on_fork(sd_event_source *source, void *data)
{
	sd_event *event = sd_event_source_get_event(source);
	pid_t child = fork();
	if (child == 0) {
		int refused = sd_event_add_defer(event, NULL, on_defer, NULL) < 0;
		run_own_loop(NULL);
		_exit(refused ? total - 1 : 100);
	}
	int status = -1;
	waitpid(child, &status, 0);
	*(int *)data += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return sd_event_exit(event, 0);
}

static void forks(void)
{
	int done = 0;
	total = 0;
	for (int i = 0; i < rounds; i++) {
		sd_event *event;
		check(sd_event_new(&event));
		check(sd_event_add_defer(event, NULL, on_fork, &done));
		check(sd_event_loop(event));
		sd_event_unref(event);
	}
	printf("forks: %d\n", done);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	loops();
	fflush(stdout);
	forks();
	return 0;
}
