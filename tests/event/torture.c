/* torture.c [rounds]: allowed uses of libevent, with or without recording.  The output depends only on the rounds.
 * SPDX-License-Identifier: ISC */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rounds = 4;
static struct event_base *base;
static const struct timeval soon = {.tv_usec = 100};

/* ---- OS threads with loops of their own, whose events free themselves ---- */

struct own {
	struct event *event;
	int left;
};

static void free_itself(int fd, short what, void *data)
{
	struct own *own = data;
	struct event_base *its_base = event_get_base(own->event);
	event_free(own->event);
	if (--own->left == 0)
		return;
	own->event = event_new(its_base, -1, 0, free_itself, own);
	event_add(own->event, &soon);
}

static void *run_own_loop(void *data)
{
	struct event_base *its_base = event_base_new();
	struct own own = {.left = 10};
	own.event = event_new(its_base, -1, 0, free_itself, &own);
	event_add(own.event, &soon);
	event_base_dispatch(its_base);
	event_base_free(its_base);
	return own.left == 0 ? data : NULL;
}

static void loops(void)
{
	enum { AT_ONCE = 25 };
	int done = 0;
	for (int i = 0; i < rounds * 4; i++) {
		pthread_t threads[AT_ONCE];
		void *result;
		for (int j = 0; j < AT_ONCE; j++)
			if (pthread_create(&threads[j], NULL, run_own_loop, &rounds))
				abort();
		for (int j = 0; j < AT_ONCE; j++) {
			pthread_join(threads[j], &result);
			done += result == &rounds;
		}
	}
	printf("loops: %d\n", done);
}

/* ---- Events of a running loop: other OS threads add, activate and free them ---- */

static int calls;

static void count(int fd, short what, void *data)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

static void *meddle(void *data)
{
	for (int i = 0; i < 100; i++) {
		struct event *event = event_new(base, -1, EV_PERSIST, count, NULL);
		event_add(event, i % 2 ? &soon : NULL);
		event_active(event, EV_TIMEOUT, 1);
		event_base_once(base, -1, EV_TIMEOUT, count, NULL, &soon);
		if (i % 3)
			event_del(event);
		event_free(event);
	}
	return NULL;
}

static void *end_loop(void *data)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, meddle, NULL))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	event_base_once(base, -1, EV_TIMEOUT, count, NULL, &soon);
	event_base_loopexit(base, &(struct timeval){.tv_usec = 20000});
	return NULL;
}

static void crossed(void)
{
	for (int i = 0; i < rounds; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, end_loop, NULL))
			abort();
		event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
		pthread_join(thread, NULL);
	}
	printf("crossed: %s\n", calls > 0 ? "some ran" : "none ran");
}

/* ---- Buffers are freed in their own callbacks, and in each other's ---- */

static int freed, heard;

static void free_pair(struct bufferevent *buffer, void *data)
{
	char text[16];
	heard += (int)bufferevent_read(buffer, text, sizeof text);
	struct bufferevent **pair = data;
	bufferevent_free(pair[0]);
	bufferevent_free(pair[1]);
	freed++;
}

static void buffers(void)
{
	for (int i = 0; i < rounds * 25; i++) {
		struct bufferevent *pair[2];
		bufferevent_pair_new(base, i % 2 ? BEV_OPT_DEFER_CALLBACKS : 0, pair);
		bufferevent_setcb(pair[1], free_pair, NULL, NULL, pair);
		bufferevent_enable(pair[1], EV_READ);
		bufferevent_enable(pair[0], EV_WRITE);
		bufferevent_write(pair[0], "some words", 10);
		event_base_dispatch(base);
	}
	printf("buffers: %d, %d bytes\n", freed, heard);
}

/* ---- Memory of an event is reused for another object and for another event ---- */

static void assigned(void)
{
	static struct event events[8];
	calls = 0;
	for (int i = 0; i < rounds * 50; i++) {
		struct event *event = &events[i * 5 % 8];
		event_assign(event, base, -1, 0, count, NULL);
		event_add(event, &soon);
		if (i % 4 == 0)
			event_del(event);
		event_base_dispatch(base);
		memset(event, 0x5a, sizeof *event);
	}
	printf("assigned: %d\n", calls);
}

/* ---- The loop is left from a callback, and a forked child continues ---- */

static void leave(int fd, short what, void *data)
{
	event_base_loopbreak(base);
}

static void children(void)
{
	for (int i = 0; i < rounds; i++) {
		event_base_once(base, -1, EV_TIMEOUT, leave, NULL, NULL);
		event_base_dispatch(base);
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		calls = 0;
		event_reinit(base);
		event_base_once(base, -1, EV_TIMEOUT, count, NULL, &soon);
		event_base_dispatch(base);
		printf("fork: %d\n", calls);
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("fork ended: %d\n", status);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	evthread_use_pthreads();
	base = event_base_new();
	loops();
	crossed();
	buffers();
	assigned();
	children();
	event_base_free(base);
	return 0;
}
