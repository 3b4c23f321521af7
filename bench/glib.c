/* glib.c: the cost of weft record for an unmodified GLib program.  Not linked with weft.
 *
 * weft-bench-glib dispatch|task COUNT: CPU time of a dispatch of a permanent idle source, or of a task that is made, returned and
 * delivered by an idle source of GLib.  SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 500 };

static GMainLoop *loop;
static int left;

static gboolean on_idle(gpointer data)
{
	if (--left > 0)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void begin_task(void);

static void on_task(GObject *object, GAsyncResult *result, gpointer data)
{
	left -= (int)g_task_propagate_int(G_TASK(result), NULL);
	if (left > 0)
		begin_task();
	else
		g_main_loop_quit(loop);
}

static void begin_task(void)
{
	GTask *task = g_task_new(NULL, NULL, on_task, NULL);
	g_task_return_int(task, 1);
	g_object_unref(task);
}

static double run_ns(bool is_task, int count)
{
	struct timespec begin, end;
	left = count;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	if (is_task)
		begin_task();
	else
		g_idle_add(on_idle, NULL);
	g_main_loop_run(loop);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / count;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	if (count <= 0 || (strcmp(argv[1], "dispatch") && strcmp(argv[1], "task"))) {
		fprintf(stderr, "usage: weft-bench-glib dispatch|task COUNT\n");
		return 2;
	}
	loop = g_main_loop_new(NULL, FALSE);
	run_ns(!strcmp(argv[1], "task"), WARM);
	printf("turn_ns %.1f\n", run_ns(!strcmp(argv[1], "task"), count));
	g_main_loop_unref(loop);
	return 0;
}
