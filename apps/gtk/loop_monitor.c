/* loop_monitor.c: measures the duration of each iteration of the main loop.  SPDX-License-Identifier: ISC */
#include "loop_monitor.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <unistd.h>

#define MIN_RECORDED_MS 10.0

static FILE *file;
static int schedstat = -1;
static struct moment {
	double wall_ms, ran_ms, queued_ms;
} back; /* time at which the last poll returned */

/* Reads the wall clock and, from Linux, the times that this OS thread was on CPU and was runnable but off CPU. */
static struct moment read_moment(void)
{
	char text[64];
	ssize_t len = schedstat < 0 ? 0 : pread(schedstat, text, sizeof text - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	char *after = text;
	double ran_ns = (double)g_ascii_strtoull(text, &after, 10), queued_ns = (double)g_ascii_strtoull(after, NULL, 10);
	return (struct moment){(double)g_get_monotonic_time() / 1e3, ran_ns / 1e6, queued_ns / 1e6};
}

/* Between two polls the loop is working, and input waits. */
static gint wait_for_events(GPollFD *fds, guint count, gint timeout_ms)
{
	struct moment away = read_moment();
	if (back.wall_ms > 0 && away.wall_ms - back.wall_ms >= MIN_RECORDED_MS)
		fprintf(file, "turn %.0f %.3f %.3f %.3f\n", away.wall_ms * 1e3, away.wall_ms - back.wall_ms,
		    away.ran_ms - back.ran_ms, away.queued_ms - back.queued_ms);
	gint ready = g_poll(fds, count, timeout_ms);
	back = read_moment();
	return ready;
}

void watch_start(void)
{
	const char *path = g_getenv("WEFT_VIEW_TIMES");
	file = path ? fopen(path, "a") : NULL;
	if (!file)
		return;
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	setvbuf(file, NULL, _IOLBF, 0);
	g_main_context_set_poll_func(NULL, wait_for_events);
}
