/* spin.c idle|fd|child|channel|source|again|later|healthy COUNT: sources that are dispatched COUNT times without a sleep.  All
 * but the last keep an OS thread busy without work. SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <gio/gunixinputstream.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static GMainLoop *loop;
static int left, pipes[2], sockets[2];

static gboolean on_idle(gpointer data)
{
	if (--left == 0)
		g_main_loop_quit(loop);
	return left > 0;
}

static gboolean on_fd(gint fd, GIOCondition condition, gpointer data)
{
	return on_idle(data);
}

static gboolean on_channel(GIOChannel *channel, GIOCondition condition, gpointer data)
{
	return on_idle(data);
}

static gboolean on_stream(GObject *stream, gpointer data)
{
	return on_idle(data);
}

static gboolean prepare(GSource *source, gint *timeout)
{
	*timeout = 0;
	return TRUE;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	return on_idle(data);
}

/* Programs in JavaScript and Python do so with a new closure each time. */
static gboolean on_again(gpointer data)
{
	if (on_idle(data))
		g_idle_add_full(G_PRIORITY_DEFAULT, on_again, g_malloc(1), g_free);
	return FALSE;
}

static gboolean on_later(gpointer data)
{
	if (on_idle(data))
		g_timeout_add_full(G_PRIORITY_DEFAULT, 0, on_later, g_malloc(1), g_free);
	return FALSE;
}

/* Each end answers the other at once. */
static gboolean on_socket(gint fd, GIOCondition condition, gpointer data)
{
	char letter;
	if (read(fd, &letter, 1) == 1 && write(fd, &letter, 1) != 1)
		abort();
	return on_idle(data);
}

static void begin(const char *what)
{
	static GSourceFuncs funcs = {.prepare = prepare, .dispatch = dispatch};
	if (!strcmp(what, "idle")) {
		g_idle_add(on_idle, NULL);
	} else if (!strcmp(what, "fd")) {
		g_unix_fd_add(pipes[0], G_IO_IN, on_fd, NULL);
	} else if (!strcmp(what, "child")) {
		GInputStream *stream = g_unix_input_stream_new(pipes[0], FALSE);
		GSource *source = g_pollable_input_stream_create_source(G_POLLABLE_INPUT_STREAM(stream), NULL);
		g_source_set_callback(source, (GSourceFunc)(void (*)(void))on_stream, NULL, NULL);
		g_source_attach(source, NULL);
	} else if (!strcmp(what, "channel")) {
		g_io_add_watch(g_io_channel_unix_new(pipes[0]), G_IO_IN, on_channel, NULL);
	} else if (!strcmp(what, "again")) {
		on_again(NULL);
	} else if (!strcmp(what, "later")) {
		on_later(NULL);
	} else if (!strcmp(what, "source")) {
		g_source_attach(g_source_new(&funcs, sizeof(GSource)), NULL);
	} else {
		for (int i = 0; i < 2; i++)
			g_unix_fd_add(sockets[i], G_IO_IN, on_socket, NULL);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3 || (left = atoi(argv[2])) <= 0 || pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 2;
	if (write(pipes[1], "x", 1) != 1 || write(sockets[0], "x", 1) != 1)
		return 2;
	loop = g_main_loop_new(NULL, FALSE);
	begin(argv[1]);
	g_main_loop_run(loop);
	printf("%d left\n", left);
	return 0;
}
