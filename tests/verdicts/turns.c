/* turns.c: a libevent loop with three timers, each started again in its callback.  Once, the callback of the third timer sleeps
 * for 150 ms, so the other timers are late.  libevent sleeps once more before it calls them, because it computes this sleep from
 * the time before the callbacks. SPDX-License-Identifier: ISC */
#include <event2/event.h>
#include <unistd.h>

enum { TIMERS = 3, SLOW = 21, ALL = 60 };

static struct event *timers[TIMERS];

static void on_timer(evutil_socket_t fd, short what, void *data)
{
	static const struct timeval later = {.tv_usec = 3000};
	static int count;
	(void)fd, (void)what;
	if (++count <= ALL)
		event_add(*(struct event **)data, &later);
	if (count == SLOW)
		usleep(150000);
}

int main(void)
{
	const struct timeval soon = {.tv_usec = 3000};
	struct event_base *base = event_base_new();
	for (int i = 0; i < TIMERS; i++) {
		timers[i] = event_new(base, -1, 0, on_timer, &timers[i]);
		event_add(timers[i], &soon);
	}
	event_base_dispatch(base);
	for (int i = 0; i < TIMERS; i++)
		event_free(timers[i]);
	event_base_free(base);
	return 0;
}
