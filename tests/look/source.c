/* source.c: a main loop of GLib with a timer and a descriptor that never become ready; prints "ready".  SPDX-License-Identifier:
 * ISC */
#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>

static gboolean on_report(gpointer data)
{
	return data == NULL;
}

static gboolean on_input(gint fd, GIOCondition condition, gpointer data)
{
	return fd >= 0 && condition && !data;
}

int main(void)
{
	int ends[2];
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	if (pipe(ends))
		return 1;
	g_timeout_add_seconds(3600, on_report, NULL);
	g_source_set_name_by_id(g_unix_fd_add(ends[0], G_IO_IN, on_input, NULL), "input");
	puts("ready");
	fflush(stdout);
	g_main_loop_run(loop);
	return 0;
}
