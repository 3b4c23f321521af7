/* torture.c [rounds]: allowed uses of GLib, with or without recording.  The output depends only on the rounds.
 * SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <gio/gunixinputstream.h>
#include <glib-unix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rounds = 20;
static GMainLoop *loop;

/* ---- Tasks that end in their own callbacks, each of which starts the next task ---- */

static int left, sum;

static void next(GObject *object, GAsyncResult *result, gpointer data)
{
	sum += (int)g_task_propagate_int(G_TASK(result), NULL);
	g_object_unref(result); /* the last reference but GLib's own */
	if (--left == 0) {
		g_main_loop_quit(loop);
		return;
	}
	GTask *task = g_task_new(NULL, NULL, next, data);
	g_task_return_int(task, left);
}

static void tasks(void)
{
	left = rounds * 50;
	g_task_return_int(g_task_new(NULL, NULL, next, NULL), left);
	g_main_loop_run(loop);
	printf("tasks: %d\n", sum);
}

/* ---- A nested task in threads ---- */

static void add_up(GTask *task, gpointer object, gpointer data, GCancellable *cancellable)
{
	g_task_return_int(task, GPOINTER_TO_INT(data) * 2);
}

static void inner_done(GObject *object, GAsyncResult *result, gpointer data)
{
	GTask *outer = data;
	g_task_return_int(outer, g_task_propagate_int(G_TASK(result), NULL) + 1);
	g_object_unref(outer);
}

static void outer_done(GObject *object, GAsyncResult *result, gpointer data)
{
	sum += (int)g_task_propagate_int(G_TASK(result), NULL);
	if (--left == 0)
		g_main_loop_quit(loop);
}

static void threads(void)
{
	sum = 0;
	left = rounds * 5;
	for (int i = 0; i < rounds * 5; i++) {
		GTask *outer = g_task_new(NULL, NULL, outer_done, NULL), *inner = g_task_new(NULL, NULL, inner_done, outer);
		g_task_set_name(outer, "outer");
		g_task_set_name(inner, "inner");
		g_task_set_task_data(inner, GINT_TO_POINTER(i), NULL);
		g_task_run_in_thread(inner, add_up);
		g_object_unref(inner);
	}
	g_main_loop_run(loop);
	printf("threads: %d\n", sum);
	GTask *task = g_task_new(NULL, NULL, NULL, NULL);
	g_task_set_task_data(task, GINT_TO_POINTER(21), NULL);
	g_task_run_in_thread_sync(task, add_up);
	printf("at once: %d\n", (int)g_task_propagate_int(task, NULL));
	g_object_unref(task);
}

/* ---- Sources that other OS threads destroy ---- */

static gint dispatched;

static gboolean count(gpointer data)
{
	g_atomic_int_inc(&dispatched);
	return G_SOURCE_CONTINUE;
}

static gpointer destroy(gpointer data)
{
	GSource **sources = data;
	for (int i = 0; i < 100; i++) {
		g_usleep(20);
		g_source_destroy(sources[i]);
		g_source_unref(sources[i]);
	}
	g_main_context_wakeup(NULL);
	return NULL;
}

static void destroyed(void)
{
	for (int round = 0; round < rounds; round++) {
		GSource *sources[100];
		for (int i = 0; i < 100; i++) {
			sources[i] = i % 3 ? g_idle_source_new() : g_timeout_source_new(0);
			g_source_set_callback(sources[i], count, NULL, NULL);
			g_source_attach(sources[i], NULL);
		}
		GThread *thread = g_thread_new("destroyer", destroy, sources);
		for (int i = 0; i < 200; i++)
			g_main_context_iteration(NULL, FALSE);
		g_thread_join(thread);
		while (g_main_context_iteration(NULL, FALSE))
			;
	}
	printf("destroyed: %s\n", g_atomic_int_get(&dispatched) > 0 ? "some ran" : "none ran");
}

/* ---- 1,000 OS threads with loops of their own ---- */

static gboolean quit(gpointer data)
{
	g_main_loop_quit(data);
	return G_SOURCE_REMOVE;
}

static gpointer run_loop(gpointer data)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *own = g_main_loop_new(context, FALSE);
	GSource *source = g_timeout_source_new(GPOINTER_TO_INT(data) % 7);
	g_main_context_push_thread_default(context);
	g_source_set_callback(source, quit, own, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
	g_main_loop_run(own);
	g_main_context_pop_thread_default(context);
	g_main_loop_unref(own);
	g_main_context_unref(context);
	return GINT_TO_POINTER(1);
}

static void loops(void)
{
	enum { AT_ONCE = 50 };
	int done = 0;
	for (int i = 0; i < rounds * 50; i += AT_ONCE) {
		GThread *threads[AT_ONCE];
		for (int j = 0; j < AT_ONCE; j++)
			threads[j] = g_thread_new("looper", run_loop, GINT_TO_POINTER(i + j));
		for (int j = 0; j < AT_ONCE; j++)
			done += GPOINTER_TO_INT(g_thread_join(threads[j]));
	}
	printf("loops: %d\n", done);
}

/* ---- Tables of functions that are copied, derived and freed ---- */

static GSourceFuncs copied;
static int derived;

static gboolean dispatch_derived(GSource *source, GSourceFunc callback, gpointer data)
{
	derived++;
	return g_idle_funcs.dispatch(source, callback, data);
}

static gboolean again(gpointer data)
{
	int *times = data;
	if (--*times > 0)
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void tables(void)
{
	int times = rounds;
	copied = g_idle_funcs;
	GSource *source = g_source_new(&copied, sizeof(GSource));
	g_source_set_callback(source, again, &times, NULL);
	g_source_attach(source, NULL);
	g_source_unref(source);
	g_main_loop_run(loop);
	for (int i = 0; i < rounds; i++) {
		GSourceFuncs *own = g_new(GSourceFuncs, 1);
		*own = g_idle_funcs;
		own->dispatch = dispatch_derived;
		times = 2;
		source = g_source_new(own, sizeof(GSource) + 8 * (gsize)(i % 3));
		g_source_set_callback(source, again, &times, NULL);
		g_source_attach(source, NULL);
		g_main_loop_run(loop);
		g_source_unref(source);
		g_free(own);
	}
	printf("tables: %d\n", derived);
}

/* ---- Cancellation from another OS thread ---- */

static int cancelled;

static void read_done(GObject *object, GAsyncResult *result, gpointer data)
{
	GError *error = NULL;
	if (g_input_stream_read_finish(G_INPUT_STREAM(object), result, &error) < 0 &&
	    g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		cancelled++;
	g_clear_error(&error);
	if (--left == 0)
		g_main_loop_quit(loop);
}

static gpointer cancel(gpointer data)
{
	g_usleep(100);
	g_cancellable_cancel(data);
	return NULL;
}

static void cancellations(void)
{
	static char buffer[8];
	for (int i = 0; i < rounds; i++) {
		int fds[2];
		if (!g_unix_open_pipe(fds, FD_CLOEXEC, NULL))
			abort();
		GInputStream *stream = g_unix_input_stream_new(fds[0], TRUE);
		GCancellable *cancellable = g_cancellable_new();
		left = 1;
		g_input_stream_read_async(stream, buffer, sizeof buffer, 0, cancellable, read_done, NULL);
		GThread *thread = g_thread_new("canceller", cancel, cancellable);
		g_main_loop_run(loop);
		g_thread_join(thread);
		g_object_unref(cancellable);
		g_object_unref(stream);
		close(fds[1]);
	}
	printf("cancelled: %d\n", cancelled);
}

/* ---- Nested loops, a child process, a forked child that continues ---- */

static gboolean nest(gpointer data)
{
	int depth = GPOINTER_TO_INT(data);
	GMainLoop *inner = g_main_loop_new(NULL, FALSE);
	if (depth > 0)
		g_idle_add(nest, GINT_TO_POINTER(depth - 1));
	g_timeout_add(depth, quit, inner);
	g_main_loop_run(inner);
	g_main_loop_unref(inner);
	if (depth == 5)
		g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void exited(GObject *object, GAsyncResult *result, gpointer data)
{
	g_subprocess_wait_finish(G_SUBPROCESS(object), result, NULL);
	printf("child: %d\n", g_subprocess_get_exit_status(G_SUBPROCESS(object)));
	g_main_loop_quit(loop);
}

/* Waits until all other OS threads sleep: a thread of GLib may hold a lock of the loop, which would stay locked in a child. */
static void wait_for_others(void)
{
	bool all_sleep = false;
	while (!all_sleep) {
		GDir *tasks = g_dir_open("/proc/self/task", 0, NULL);
		all_sleep = true;
		for (const char *name; (name = g_dir_read_name(tasks));) {
			char *path = g_strdup_printf("/proc/self/task/%s/stat", name), *stat = NULL;
			if (atoi(name) != getpid() && g_file_get_contents(path, &stat, NULL, NULL))
				all_sleep &= strstr(strrchr(stat, ')'), ") S") != NULL;
			g_free(stat);
			g_free(path);
		}
		g_dir_close(tasks);
		g_usleep(1000);
	}
}

static void children(void)
{
	g_idle_add(nest, GINT_TO_POINTER(5));
	g_main_loop_run(loop);
	GSubprocess *child = g_subprocess_new(G_SUBPROCESS_FLAGS_NONE, NULL, "sh", "-c", "sleep 0.05; exit 7", NULL);
	g_subprocess_wait_async(child, NULL, exited, NULL);
	g_main_loop_run(loop);
	g_object_unref(child);
	fflush(stdout);
	g_timeout_add(20, quit, loop);
	wait_for_others();
	pid_t pid = fork();
	g_main_loop_run(loop);
	if (pid == 0) {
		left = 3;
		sum = 0;
		g_task_return_int(g_task_new(NULL, NULL, next, NULL), left);
		g_main_loop_run(loop);
		printf("fork: %d\n", sum);
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("fork ended: %d\n", status);
}

/* ---- Tasks that never return ---- */

static void never(GObject *object, GAsyncResult *result, gpointer data)
{
	abort();
}

static void unreturned(void)
{
	GTask *task = g_task_new(NULL, NULL, never, NULL);
	g_task_set_name(task, "forgotten");
	g_object_unref(task);
	printf("unreturned\n");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	loop = g_main_loop_new(NULL, FALSE);
	tasks();
	threads();
	destroyed();
	loops();
	tables();
	cancellations();
	children();
	unreturned();
	g_main_loop_unref(loop);
	return 0;
}
