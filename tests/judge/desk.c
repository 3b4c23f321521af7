/* desk FAULT SEED: an editor's documents in plain GLib: each is read by a task on an OS thread, parsed piece by piece in an idle
 * callback, checked by a child process, indexed by a worker with a GAsyncQueue, and saved by GIO.  It knows nothing of weft;
 * FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <gio/gio.h>
#include <glib-unix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct document {
	int number, pieces;
	char *path;
	GBytes *text;
	GTask *index;
	GCancellable *cancellable;
};

static const char *fault;
static char *folder;
static GMainLoop *loop;
static GAsyncQueue *to_index;
static int documents, documents_left, kept_busy;

static void open_document(int number);

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(struct document *d, const char *name)
{
	return is(name) && d->number == 5;
}

static void compute_for(int ms)
{
	gint64 end = g_get_monotonic_time() + ms * 1000;
	while (g_get_monotonic_time() < end)
		;
}

static void close_document(struct document *d)
{
	unlink(d->path);
	g_free(d->path);
	g_bytes_unref(d->text);
	g_object_unref(d->cancellable);
	g_free(d);
	if (--documents_left == 0)
		g_main_loop_quit(loop);
	else if (documents > 0)
		open_document(documents--);
}

/* ---- Saving ---- */

static void document_saved(GObject *source, GAsyncResult *result, void *data)
{
	g_file_replace_contents_finish(G_FILE(source), result, NULL, NULL);
	close_document(data);
}

static void save_document(struct document *d)
{
	GFile *file = g_file_new_for_path(d->path);
	g_file_replace_contents_bytes_async(file, d->text, NULL, false, G_FILE_CREATE_NONE, NULL, document_saved, d);
	g_object_unref(file);
}

/* ---- The index: a worker takes tasks from a queue ---- */

static gboolean return_index(void *data)
{
	g_task_return_boolean(data, true);
	g_object_unref(data);
	return G_SOURCE_REMOVE;
}

static void *run_indexer(void *nothing)
{
	GTask *task;
	while ((task = g_async_queue_pop(to_index)) != (void *)to_index) {
		struct document *d = g_task_get_task_data(task);
		compute_for(1);
		if (!hits(d, "worker"))
			g_idle_add(return_index, task);
	}
	return NULL;
}

static void document_indexed(GObject *source, GAsyncResult *result, void *data)
{
	g_task_propagate_boolean(G_TASK(result), NULL);
	save_document(data);
}

static void index_document(struct document *d)
{
	GTask *task = g_task_new(NULL, NULL, document_indexed, d);
	g_task_set_name(task, "index");
	g_task_set_task_data(task, d, NULL);
	g_async_queue_push(to_index, task);
}

/* ---- The check, by a child process ---- */

static void document_checked(GObject *source, GAsyncResult *result, void *data)
{
	g_subprocess_wait_finish(G_SUBPROCESS(source), result, NULL);
	index_document(data);
}

static void check_document(struct document *d)
{
	if (d->number % 6 != 5) {
		index_document(d);
		return;
	}
	GSubprocess *child = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE, NULL, "cat", NULL);
	if (!is("stdin"))
		g_output_stream_close(g_subprocess_get_stdin_pipe(child), NULL, NULL);
	g_subprocess_wait_async(child, NULL, document_checked, d);
	if (!is("stdin"))
		g_object_unref(child);
}

/* ---- Fonts, which a document asks for and may do without ---- */

static void font_loaded(GObject *source, GAsyncResult *result, void *data)
{
	GError *error = NULL;
	if (is("swallowed"))
		return;
	if (!g_task_propagate_boolean(G_TASK(result), &error))
		g_clear_error(&error);
}

static void load_font(struct document *d)
{
	GTask *task = g_task_new(NULL, NULL, font_loaded, NULL);
	g_task_set_name(task, "load font");
	if (d->number % 3 == 0)
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "no such font");
	else if (hits(d, "kept"))
		return;
	else if (!hits(d, "unreturned"))
		g_task_return_boolean(task, true);
	g_object_unref(task);
}

/* ---- Spelling: a long computation that the user may cancel ---- */

static void spell(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	for (int i = 0; i < 60; i++) {
		if (!is("cancel") && g_cancellable_is_cancelled(cancellable))
			break;
		compute_for(4);
	}
	g_task_return_boolean(task, true);
}

static gboolean cancel_spelling(void *data)
{
	struct document *d = data;
	g_cancellable_cancel(d->cancellable);
	return G_SOURCE_REMOVE;
}

static void spelled(GObject *source, GAsyncResult *result, void *data)
{
	g_task_propagate_boolean(G_TASK(result), NULL);
	check_document(data);
}

static void spell_document(struct document *d)
{
	if (d->number != 4) {
		check_document(d);
		return;
	}
	GTask *task = g_task_new(NULL, d->cancellable, spelled, d);
	g_task_set_name(task, "spell");
	g_task_run_in_thread(task, spell);
	g_object_unref(task);
	g_timeout_add(20, cancel_spelling, d);
}

/* ---- Parsing ---- */

static gboolean parse_piece(void *data)
{
	struct document *d = data;
	if (hits(d, "sleep") && d->pieces == 1)
		g_usleep(120000);
	if (hits(d, "compute") && d->pieces == 1)
		compute_for(120);
	if (hits(d, "crash"))
		g_error("%s: not a document", d->path);
	if (d->pieces-- > 0)
		return G_SOURCE_CONTINUE;
	load_font(d);
	spell_document(d);
	return G_SOURCE_REMOVE;
}

static gboolean keep_backup(void *data)
{
	return G_SOURCE_CONTINUE;
}

static void document_read(GObject *source, GAsyncResult *result, void *data)
{
	struct document *d = data;
	d->text = g_task_propagate_pointer(G_TASK(result), NULL);
	if (is("timers"))
		g_timeout_add_seconds(5, keep_backup, d);
	g_idle_add(parse_piece, d);
}

static void read_document(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	struct document *d = data;
	compute_for(1 + d->number % 3);
	g_task_return_pointer(task, g_bytes_new(d->path, strlen(d->path)), (GDestroyNotify)g_bytes_unref);
}

static void open_document(int number)
{
	struct document *d = g_new0(struct document, 1);
	d->number = number;
	d->pieces = 1 + lrand48() % 4;
	d->path = g_strdup_printf("%s/%d", folder, number);
	d->cancellable = g_cancellable_new();
	GTask *task = g_task_new(NULL, NULL, document_read, d);
	g_task_set_name(task, "read");
	g_task_set_task_data(task, d, NULL);
	g_task_run_in_thread(task, read_document);
	g_object_unref(task);
}

static gboolean redraw(void *data)
{
	if (is("priority") && documents_left > 0) {
		compute_for(2);
		return kept_busy++ < 200;
	}
	return is("spin") || kept_busy++ < 20;
}

static gboolean on_wakeup(int descriptor, GIOCondition condition, void *data)
{
	char byte;
	return is("unread") || read(descriptor, &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	folder = g_dir_make_tmp("desk-XXXXXX", NULL);
	loop = g_main_loop_new(NULL, false);
	to_index = g_async_queue_new();
	GThread *indexer = g_thread_new("indexer", run_indexer, NULL);
	int wakeup[2];
	g_unix_open_pipe(wakeup, FD_CLOEXEC, NULL);
	g_unix_fd_add(wakeup[0], G_IO_IN, on_wakeup, NULL);
	if (write(wakeup[1], "x", 1) != 1)
		return 1;
	g_idle_add_full(is("priority") ? G_PRIORITY_HIGH : G_PRIORITY_LOW, redraw, NULL, NULL);
	documents = documents_left = (is("timers") ? 110 : 12) + (int)(lrand48() % 20);
	for (int i = 0, at_once = 2 + (int)(lrand48() % 3); i < at_once; i++)
		open_document(documents--);
	g_main_loop_run(loop);
	g_async_queue_push(to_index, to_index);
	g_thread_join(indexer);
	rmdir(folder);
	return 0;
}
