/* slow.c WHAT: a callback of each kind that runs for 60 ms while a timer of 5 ms is due.  SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <gio/gunixinputstream.h>
#include <gio/gunixoutputstream.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_US = 60000, TICK_MS = 5, BEGIN_MS = 30, END_MS = 150 };

static GMainLoop *loop;
static int pipes[2];
static char *path;

static void be_slow(void)
{
	for (gint64 end = g_get_monotonic_time() + SLOW_US; g_get_monotonic_time() < end;)
		;
}

static gboolean on_tick(gpointer data)
{
	return G_SOURCE_CONTINUE;
}

/* Exported, so that they have names. */
gboolean slow_source(gpointer data) __attribute__((visibility("default")));

gboolean slow_source(gpointer data)
{
	be_slow();
	return G_SOURCE_REMOVE;
}

static gboolean on_fd(gint fd, GIOCondition condition, gpointer data)
{
	return slow_source(data);
}

static void on_task(GObject *object, GAsyncResult *result, gpointer data)
{
	be_slow();
}

static void on_read(GObject *stream, GAsyncResult *result, gpointer data)
{
	g_input_stream_read_finish(G_INPUT_STREAM(stream), result, NULL);
	be_slow();
}

/* Runs in the callback of another call, which does not belong to this one. */
static void on_written(GObject *stream, GAsyncResult *result, gpointer data)
{
	static char buffer[8];
	g_input_stream_read_async(
	    g_unix_input_stream_new(pipes[0], FALSE), buffer, sizeof buffer, G_PRIORITY_DEFAULT, NULL, on_read, NULL);
}

static void on_child(GPid pid, gint status, gpointer data)
{
	be_slow();
}

static void on_changed(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event, gpointer data)
{
	if (event == G_FILE_MONITOR_EVENT_CREATED)
		be_slow();
}

/* Attaches the slow source from another OS thread, which has ended before the source runs. */
static gpointer attach(gpointer data)
{
	g_idle_add(slow_source, NULL);
	return NULL;
}

static gboolean begin(gpointer what)
{
	GPid pid;
	char *argv[] = {"/bin/true", NULL};
	if (!strcmp(what, "idle")) {
		g_idle_add(slow_source, NULL);
	} else if (!strcmp(what, "other")) {
		g_thread_join(g_thread_new("other", attach, NULL));
	} else if (!strcmp(what, "task")) {
		GTask *task = g_task_new(NULL, NULL, on_task, NULL);
		g_task_set_name(task, "errand");
		g_task_return_boolean(task, TRUE);
		g_object_unref(task);
	} else if (!strcmp(what, "read")) {
		g_output_stream_write_all_async(
		    g_unix_output_stream_new(pipes[1], FALSE), "x", 1, G_PRIORITY_DEFAULT, NULL, on_written, NULL);
	} else if (!strcmp(what, "fd")) {
		if (write(pipes[1], "x", 1) != 1)
			abort();
	} else if (!strcmp(what, "monitor")) {
		g_file_set_contents(path, "", 0, NULL);
	} else if (!strcmp(what, "child")) {
		g_spawn_async(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL);
		g_child_watch_add(pid, on_child, NULL);
	} else if (!strcmp(what, "timer")) {
		be_slow();
	}
	return G_SOURCE_REMOVE;
}

static void on_activate(GApplication *application, gpointer data)
{
	be_slow();
}

static gboolean end(gpointer data)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
	if (argc != 3 || pipe(pipes))
		return 2;
	path = argv[2];
	loop = g_main_loop_new(NULL, FALSE);
	g_timeout_add(TICK_MS, on_tick, NULL);
	if (!strcmp(argv[1], "activate")) {
		GApplication *application = g_application_new(NULL, G_APPLICATION_NON_UNIQUE);
		g_signal_connect(application, "activate", G_CALLBACK(on_activate), NULL);
		g_application_run(application, 1, argv);
	}
	if (!strcmp(argv[1], "monitor")) {
		GFileMonitor *monitor = g_file_monitor_file(g_file_new_for_path(path), G_FILE_MONITOR_NONE, NULL, NULL);
		g_signal_connect(monitor, "changed", G_CALLBACK(on_changed), NULL);
	}
	if (strcmp(argv[1], "read"))
		g_unix_fd_add(pipes[0], G_IO_IN, on_fd, NULL);
	g_timeout_add(BEGIN_MS, begin, argv[1]);
	g_timeout_add(END_MS, end, NULL);
	g_main_loop_run(loop);
	return 0;
}
