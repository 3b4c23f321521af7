/* fetch.c: fetches mail with GIO over several connections, stores it and makes previews in task threads.
 *
 * The server is in the same process: a GThreadedSocketService, with an OS thread for each connection.  "FETCH N" is answered by
 * "OK N TEXT" or "NO", "QUOTA" by "OK", "IDLE" by "OK" when new mail comes.
 *
 * Usage: judge-fetch FAULT [SEED].  Healthy: none, healthy-slow, healthy-timeouts, healthy-polls, healthy-idle.
 * SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 24, CONNECTIONS = 3, LATE_MS = 120, EXPUNGED = 9 };

struct session {
	GSocketConnection *connection;
	GDataInputStream *input;
	char request[32];
	int number, tries; /* the message that an earlier session did not get, or 0 */
};

struct fetch {
	int number, tries;
	guint limit;
	GCancellable *cancellable;
	struct session *session;
};

static const char *fault;
static GMainLoop *loop;
static guint16 port;
static int seed, next_message, fetched, stored, previews, ended_sessions;
static GMutex index_lock, cache_lock, flush_lock;
static GCond flushed;
static bool is_flushed;
static unsigned checksum;
static GCancellable *latest_preview;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

/* ---- The server ---- */

static bool reply(GOutputStream *output, const char *text)
{
	return g_output_stream_write_all(output, text, strlen(text), NULL, NULL, NULL);
}

static void answer_fetch(GOutputStream *output, int number)
{
	char text[256];
	if (number == 7 && is("silent"))
		return;
	if (is("healthy-slow") || is("timeout") || (number == 7 && is("healthy-timeouts")))
		g_usleep(LATE_MS * 1000);
	if (number == EXPUNGED)
		snprintf(text, sizeof text, "NO\n");
	else
		snprintf(text, sizeof text, "OK %d Dear reader, this is message %d.%s", number, number,
		    number == 7 && is("half") ? "" : "\n");
	reply(output, text);
}

static gboolean serve_connection(GThreadedSocketService *service, GSocketConnection *connection, GObject *source, void *data)
{
	(void)service, (void)source, (void)data;
	GDataInputStream *input = g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(connection)));
	GOutputStream *output = g_io_stream_get_output_stream(G_IO_STREAM(connection));
	char *line;
	while ((line = g_data_input_stream_read_line(input, NULL, NULL, NULL))) {
		if (g_str_has_prefix(line, "FETCH "))
			answer_fetch(output, atoi(line + 6));
		else {
			if (is("sync") || is("healthy-polls"))
				g_usleep(is("sync") ? 300000 : 800000);
			reply(output, "OK\n");
		}
		g_free(line);
	}
	g_object_unref(input);
	return TRUE;
}

static void start_server(void)
{
	GSocketService *service = g_threaded_socket_service_new(40);
	port = g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(service), NULL, NULL);
	g_signal_connect(service, "run", G_CALLBACK(serve_connection), NULL);
	g_socket_service_start(service);
}

/* ---- Previews ---- */

static void make_preview(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	(void)source, (void)cancellable;
	g_mutex_lock(&cache_lock);
	if (is("locks"))
		g_usleep(2000); /* reads the cache */
	g_mutex_lock(&index_lock);
	checksum += GPOINTER_TO_UINT(data);
	g_mutex_unlock(&index_lock);
	g_mutex_unlock(&cache_lock);
	if (is("cancel")) {
		gint64 end = g_get_monotonic_time() + 150000; /* scales a large picture */
		while (g_get_monotonic_time() < end)
			checksum = checksum * 31 + 7;
	}
	g_task_return_boolean(task, TRUE);
}

static void finish_if_done(void);

static void preview_made(GObject *source, GAsyncResult *result, void *data)
{
	(void)source, (void)data;
	GError *error = NULL;
	if (!g_task_propagate_boolean(G_TASK(result), &error) && !g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		g_printerr("preview: %s\n", error->message);
	g_clear_error(&error);
	previews++;
	finish_if_done();
}

static void begin_preview(int number)
{
	if (latest_preview && is("cancel"))
		g_cancellable_cancel(latest_preview); /* the user looks at a newer message */
	g_clear_object(&latest_preview);
	latest_preview = g_cancellable_new();
	GTask *task = g_task_new(NULL, latest_preview, preview_made, NULL);
	g_task_set_name(task, "preview");
	g_task_set_task_data(task, GINT_TO_POINTER(number), NULL);
	g_task_run_in_thread(task, make_preview);
	g_object_unref(task);
}

/* ---- The store ---- */

static void store_message(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	(void)source, (void)cancellable;
	int number = GPOINTER_TO_INT(data);
	if (is("locks")) {
		g_mutex_lock(&index_lock);
		g_usleep(2000); /* writes the index */
		g_mutex_lock(&cache_lock);
		checksum += (unsigned)number;
		g_mutex_unlock(&cache_lock);
		g_mutex_unlock(&index_lock);
	} else {
		g_mutex_lock(&index_lock);
		checksum += (unsigned)number;
		g_mutex_unlock(&index_lock);
	}
	if (is("swallowed") && number % 8 == 5)
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "the quota of the mailbox is exceeded");
	else
		g_task_return_boolean(task, TRUE);
}

static void message_stored(GObject *source, GAsyncResult *result, void *data)
{
	(void)source;
	GError *error = NULL;
	if (!is("swallowed") && !g_task_propagate_boolean(G_TASK(result), &error)) {
		g_printerr("store: %s\n", error->message);
		g_clear_error(&error);
	}
	stored++;
	if (is("spawn") && stored % 8 == 0)
		g_spawn_command_line_sync("sh -c 'sleep 0.3'", NULL, NULL, NULL, NULL); /* a filter of the user */
	begin_preview(GPOINTER_TO_INT(data));
	finish_if_done();
}

static gboolean forget_message(void *data)
{
	(void)data;
	return G_SOURCE_CONTINUE;
}

static void begin_store(int number)
{
	GTask *task = g_task_new(NULL, NULL, message_stored, GINT_TO_POINTER(number));
	g_task_set_name(task, "store message");
	g_task_set_task_data(task, GINT_TO_POINTER(number), NULL);
	g_task_run_in_thread(task, store_message);
	g_object_unref(task);
	if (is("sources"))
		g_timeout_add(400, forget_message, NULL);
}

/* ---- Fetching ---- */

static void begin_session(int number, int tries);
static void fetch_next(struct session *session);

static void free_session(struct session *session)
{
	g_object_unref(session->input);
	if (!is("connections"))
		g_object_unref(session->connection);
	g_free(session);
}

static void free_fetch(void *data)
{
	struct fetch *fetch = data;
	if (fetch->limit)
		g_source_remove(fetch->limit);
	g_object_unref(fetch->cancellable);
	g_free(fetch);
}

static gboolean give_up_fetch(void *data)
{
	struct fetch *fetch = data;
	fetch->limit = 0;
	g_cancellable_cancel(fetch->cancellable);
	return G_SOURCE_REMOVE;
}

static void reply_read(GObject *source, GAsyncResult *result, void *data)
{
	GTask *task = data;
	GError *error = NULL;
	char *line = g_data_input_stream_read_line_finish(G_DATA_INPUT_STREAM(source), result, NULL, &error);
	if (error) {
		g_task_return_error(task, error);
		g_object_unref(task);
		return;
	}
	if (!line)
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, "the server closed the connection");
	else if (g_str_has_prefix(line, "OK"))
		g_task_return_boolean(task, TRUE);
	else if (is("unreturned")) {
		g_free(line);
		return; /* nothing to store */
	} else
		g_task_return_boolean(task, FALSE);
	g_free(line);
	g_object_unref(task);
}

static void request_written(GObject *source, GAsyncResult *result, void *data)
{
	GTask *task = data;
	GError *error = NULL;
	struct fetch *fetch = g_task_get_task_data(task);
	if (!g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, &error)) {
		g_task_return_error(task, error);
		g_object_unref(task);
		return;
	}
	g_data_input_stream_read_line_async(fetch->session->input, G_PRIORITY_DEFAULT, fetch->cancellable, reply_read, task);
}

static void message_fetched(GObject *source, GAsyncResult *result, void *data);

static void fetch_message(struct session *session, int number, int tries)
{
	struct fetch *fetch = g_new0(struct fetch, 1);
	fetch->number = number;
	fetch->tries = tries;
	fetch->session = session;
	fetch->cancellable = g_cancellable_new();
	GTask *task = g_task_new(NULL, NULL, message_fetched, fetch);
	g_task_set_name(task, "fetch message");
	g_task_set_task_data(task, fetch, free_fetch);
	fetch->limit = g_timeout_add(is("timeout") ? 40 : is("healthy-timeouts") ? 60 : 20000, give_up_fetch, fetch);
	snprintf(session->request, sizeof session->request, "FETCH %d\n", number);
	GOutputStream *output = g_io_stream_get_output_stream(G_IO_STREAM(session->connection));
	g_output_stream_write_all_async(
	    output, session->request, strlen(session->request), G_PRIORITY_DEFAULT, fetch->cancellable, request_written, task);
}

static void message_fetched(GObject *source, GAsyncResult *result, void *data)
{
	(void)source;
	struct fetch *fetch = data;
	struct session *session = fetch->session;
	GError *error = NULL;
	bool has_text = g_task_propagate_boolean(G_TASK(result), &error);
	bool is_over = error || is("connections");
	if (is_over)
		free_session(session); /* after an error, a late answer must not be taken for the next one */
	if (error) {
		g_printerr("message %d: %s\n", fetch->number, error->message);
		g_clear_error(&error);
		if (is("timeout") && fetch->tries < 3) {
			begin_session(fetch->number, fetch->tries + 1);
			return;
		}
	}
	fetched++;
	if (has_text)
		begin_store(fetch->number);
	else
		stored++, previews++;
	if (is_over)
		begin_session(0, 0);
	else
		fetch_next(session);
	finish_if_done();
}

static void quota_read(GObject *source, GAsyncResult *result, void *data)
{
	g_free(g_data_input_stream_read_line_finish(G_DATA_INPUT_STREAM(source), result, NULL, NULL));
	free_session(data);
	ended_sessions++;
	finish_if_done();
}

static gboolean end_session(void *data)
{
	struct session *session = data;
	bool is_polling = is("healthy-polls");
	GOutputStream *output = g_io_stream_get_output_stream(G_IO_STREAM(session->connection));
	g_output_stream_write_all(output, is_polling ? "IDLE\n" : "QUOTA\n", is_polling ? 5 : 6, NULL, NULL, NULL);
	if (is("sync")) {
		g_free(g_data_input_stream_read_line(session->input, NULL, NULL, NULL));
		free_session(session);
		ended_sessions++;
		finish_if_done();
	} else
		g_data_input_stream_read_line_async(session->input, G_PRIORITY_DEFAULT, NULL, quota_read, session);
	return G_SOURCE_REMOVE;
}

static void fetch_next(struct session *session)
{
	if (next_message < MESSAGES)
		fetch_message(session, 1 + (next_message++ * 5 + seed) % MESSAGES, 0);
	else if (is("healthy-idle"))
		g_timeout_add(700, end_session, session);
	else
		end_session(session);
}

static void session_connected(GObject *source, GAsyncResult *result, void *data)
{
	struct session *session = data;
	GError *error = NULL;
	GSocketConnection *connection = g_socket_client_connect_to_host_finish(G_SOCKET_CLIENT(source), result, &error);
	if (!connection) {
		g_printerr("connect: %s\n", error->message);
		g_clear_error(&error);
		g_free(session);
		return;
	}
	session->connection = connection;
	session->input = g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(connection)));
	g_filter_input_stream_set_close_base_stream(G_FILTER_INPUT_STREAM(session->input), FALSE);
	if (session->number)
		fetch_message(session, session->number, session->tries);
	else
		fetch_next(session);
}

static void begin_session(int number, int tries)
{
	struct session *session = g_new0(struct session, 1);
	session->number = number;
	session->tries = tries;
	GSocketClient *client = g_socket_client_new();
	g_socket_client_connect_to_host_async(client, "127.0.0.1", port, NULL, session_connected, session);
	g_object_unref(client);
}

/* ---- The index is flushed by an OS thread of its own ---- */

static void *flush_index(void *nothing)
{
	g_mutex_lock(&flush_lock);
	is_flushed = true;
	g_cond_signal(&flushed);
	g_mutex_unlock(&flush_lock);
	return nothing;
}

static void wait_for_flush(GThread *flusher)
{
	if (is("wakeup"))
		g_thread_join(flusher);
	g_mutex_lock(&flush_lock);
	if (is("wakeup"))
		g_cond_wait(&flushed, &flush_lock);
	while (!is_flushed)
		g_cond_wait(&flushed, &flush_lock);
	g_mutex_unlock(&flush_lock);
	if (!is("wakeup"))
		g_thread_join(flusher);
}

static void finish_if_done(void)
{
	if (ended_sessions == CONNECTIONS && stored == MESSAGES && previews == MESSAGES) {
		ended_sessions = 0;
		wait_for_flush(g_thread_new("flusher", flush_index, NULL));
		g_main_loop_quit(loop);
	}
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	seed = argc > 2 ? atoi(argv[2]) : 1;
	loop = g_main_loop_new(NULL, FALSE);
	start_server();
	for (int i = 0; i < CONNECTIONS; i++)
		begin_session(0, 0);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%d messages, checksum %u\n", fetched, checksum);
	return 0;
}
