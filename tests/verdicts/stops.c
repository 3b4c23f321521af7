/* stops.c MODE: a libevent loop that a callback blocks while no other event is late.  Modes: sleep (the callback sleeps), lock
 * (it waits for a lock whose holder sleeps), wait (it waits for a lock whose holder waits for this callback), good (the holder
 * releases the lock before it waits), brief (it sleeps shortly).  SIGALRM kills the program in the modes that hang.
 * SPDX-License-Identifier: ISC */
#include <event2/event.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const char *mode;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, called_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int is_called;

static void *hold_lock(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	if (!strcmp(mode, "lock"))
		pause();
	if (!strcmp(mode, "good"))
		pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&called_lock);
	while (!is_called)
		pthread_cond_wait(&called, &called_lock);
	pthread_mutex_unlock(&called_lock);
	if (strcmp(mode, "good") != 0)
		pthread_mutex_unlock(&lock);
	return NULL;
}

static void on_first_timer(evutil_socket_t fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
	if (!strcmp(mode, "sleep") || !strcmp(mode, "brief")) {
		usleep(!strcmp(mode, "sleep") ? 150000 : 20000);
		return;
	}
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&called_lock);
	is_called = 1;
	pthread_cond_signal(&called);
	pthread_mutex_unlock(&called_lock);
}

static void on_second_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "good";
	struct event_base *base = event_base_new();
	struct event *first = event_new(base, -1, 0, on_first_timer, NULL),
		     *second = event_new(base, -1, 0, on_second_timer, base);
	const int has_thread = strcmp(mode, "sleep") != 0 && strcmp(mode, "brief") != 0;
	pthread_t thread;
	event_add(first, &(struct timeval){.tv_usec = 50000});
	event_add(second, &(struct timeval){.tv_sec = 1});
	if (!strcmp(mode, "lock") || !strcmp(mode, "wait"))
		alarm(3);
	if (has_thread)
		pthread_create(&thread, NULL, hold_lock, NULL);
	event_base_dispatch(base);
	if (has_thread)
		pthread_join(thread, NULL);
	event_free(first);
	event_free(second);
	event_base_free(base);
	return 0;
}
