/* mail FAULT SEED: a mail queue in plain GLib: a GSocketService takes mails line by line, each is scanned by a task on an OS
 * thread, delivered with a second try some ms later where that fails, and logged.  The senders are in the same process.  It
 * knows nothing of weft; FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <gio/gio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAILS = 60, AT_ONCE = 4 };

struct session { /* at the server */
	GSocketConnection *connection;
	GDataInputStream *input;
};

struct mail {
	int number, tries;
	struct session *session;
};

struct sender {
	GSocketConnection *connection;
	char answer[32];
	int number;
};

static const char *fault;
static GMainLoop *loop;
static GSocketClient *client;
static guint16 port, closed_port;
static int begun, ended;
static GMutex spool, statistics;

static void begin_sender(void);
static void read_mail(struct session *s);

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(const struct mail *m, const char *name)
{
	return is(name) && m->number == 17;
}

/* ---- Delivery ---- */

static void reply_sent(GObject *source, GAsyncResult *result, void *data)
{
	g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, NULL);
	read_mail(data);
}

static void reply(struct mail *m)
{
	GOutputStream *output = g_io_stream_get_output_stream(G_IO_STREAM(m->session->connection));
	if (!hits(m, "unanswered"))
		g_output_stream_write_all_async(output, "250 ok\n", 7, G_PRIORITY_DEFAULT, NULL, reply_sent, m->session);
	g_free(m);
}

static void deliver(struct mail *m);

static gboolean deliver_again(void *data)
{
	deliver(data);
	return G_SOURCE_REMOVE;
}

static gboolean remind(void *data)
{
	return G_SOURCE_CONTINUE;
}

static void delivered(GObject *source, GAsyncResult *result, void *data)
{
	struct mail *m = data;
	GError *error = NULL;
	if (is("swallowed") && m->number % 10 == 7) {
		reply(m);
		return;
	}
	if (g_task_propagate_boolean(G_TASK(result), &error)) {
		reply(m);
		return;
	}
	g_clear_error(&error);
	if (is("timers"))
		g_timeout_add_seconds(30, remind, m);
	if (is("retry") && m->number == 17)
		g_idle_add(deliver_again, m);
	else
		g_timeout_add(3, deliver_again, m);
}

static void deliver(struct mail *m)
{
	GTask *task = g_task_new(NULL, NULL, delivered, m);
	g_task_set_name(task, "deliver");
	m->tries++;
	if (hits(m, "kept"))
		return;
	if (m->number % 10 == 7 && (m->tries == 1 || (hits(m, "retry") && m->tries < 300)))
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_BUSY, "mailbox is busy");
	else if (!is("timers") || m->tries > 1)
		g_task_return_boolean(task, true);
	else
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_BUSY, "mailbox is busy");
	g_object_unref(task);
}

static void scan(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	struct mail *m = data;
	bool other_way = is("deadlock") && m->number % 2;
	g_mutex_lock(other_way ? &statistics : &spool);
	g_usleep(500);
	g_mutex_lock(other_way ? &spool : &statistics);
	g_mutex_unlock(&statistics);
	g_mutex_unlock(&spool);
	g_task_return_boolean(task, true);
}

static void scanned(GObject *source, GAsyncResult *result, void *data)
{
	g_task_propagate_boolean(G_TASK(result), NULL);
	deliver(data);
}

/* ---- The server ---- */

static void mail_read(GObject *source, GAsyncResult *result, void *data)
{
	struct session *s = data;
	char *line = g_data_input_stream_read_line_finish(G_DATA_INPUT_STREAM(source), result, NULL, NULL);
	if (!line) {
		if (!is("leak")) {
			g_io_stream_close(G_IO_STREAM(s->connection), NULL, NULL);
			g_object_unref(s->connection);
		}
		g_object_unref(s->input);
		g_free(s);
		return;
	}
	struct mail *m = g_new0(struct mail, 1);
	m->number = atoi(line);
	m->session = s;
	g_free(line);
	if (hits(m, "sleep"))
		g_usleep(120000);
	GTask *task = g_task_new(NULL, NULL, scanned, m);
	g_task_set_name(task, "scan");
	g_task_set_task_data(task, m, NULL);
	g_task_run_in_thread(task, scan);
	g_object_unref(task);
}

static void read_mail(struct session *s)
{
	g_data_input_stream_read_line_async(s->input, G_PRIORITY_DEFAULT, NULL, mail_read, s);
}

static gboolean on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, void *data)
{
	struct session *s = g_new0(struct session, 1);
	s->connection = g_object_ref(connection);
	s->input = g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(connection)));
	g_filter_input_stream_set_close_base_stream(G_FILTER_INPUT_STREAM(s->input), false);
	read_mail(s);
	return true;
}

/* ---- Senders ---- */

static void answer_read(GObject *source, GAsyncResult *result, void *data)
{
	struct sender *s = data;
	g_input_stream_read_finish(G_INPUT_STREAM(source), result, NULL);
	g_io_stream_close(G_IO_STREAM(s->connection), NULL, NULL);
	g_object_unref(s->connection);
	g_free(s);
	if (++ended == MAILS)
		g_main_loop_quit(loop);
	else if (begun < MAILS)
		begin_sender();
}

static void mail_sent(GObject *source, GAsyncResult *result, void *data)
{
	struct sender *s = data;
	g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, NULL, NULL);
	GInputStream *input = g_io_stream_get_input_stream(G_IO_STREAM(s->connection));
	g_input_stream_read_async(input, s->answer, sizeof s->answer, G_PRIORITY_DEFAULT, NULL, answer_read, s);
}

static void connected(GObject *source, GAsyncResult *result, void *data)
{
	struct sender *s = data;
	static int tries;
	s->connection = g_socket_client_connect_to_host_finish(client, result, NULL);
	if (!s->connection) {
		g_socket_client_connect_to_host_async(
		    client, "127.0.0.1", ++tries < 150 ? closed_port : port, NULL, connected, s);
		return;
	}
	g_snprintf(s->answer, sizeof s->answer, "%d\n", s->number);
	GOutputStream *output = g_io_stream_get_output_stream(G_IO_STREAM(s->connection));
	g_output_stream_write_all_async(output, s->answer, strlen(s->answer), G_PRIORITY_DEFAULT, NULL, mail_sent, s);
}

static void begin_sender(void)
{
	struct sender *s = g_new0(struct sender, 1);
	s->number = begun++;
	bool is_refused = is("refused") && s->number == 17;
	g_socket_client_connect_to_host_async(client, "127.0.0.1", is_refused ? closed_port : port, NULL, connected, s);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	loop = g_main_loop_new(NULL, false);
	client = g_socket_client_new();
	GSocket *deaf = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
	GInetAddress *here = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
	GSocketAddress *address = g_inet_socket_address_new(here, 0);
	g_socket_bind(deaf, address, true, NULL); /* and it never listens */
	g_object_unref(address);
	g_object_unref(here);
	address = g_socket_get_local_address(deaf, NULL);
	closed_port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address));
	g_object_unref(address);
	GSocketService *service = g_socket_service_new();
	port = g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(service), NULL, NULL);
	g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), NULL);
	for (int i = 0; i < AT_ONCE; i++)
		begin_sender();
	g_main_loop_run(loop);
	return 0;
}
