/* rooms FAULT SEED: a service that books rooms, by D-Bus: each call is a task, which looks into the calendar on an OS thread and
 * comes back; a notifier on an OS thread of its own tells the outside of bookings.  Callers and service are in one process, and
 * talk without a bus.  It knows nothing of weft; FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <gio/gio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BOOKINGS = 80, AT_ONCE = 4 };

struct booking {
	int number, tries;
	GDBusMethodInvocation *call;
};

static const char *fault;
static GMainLoop *loop;
static GDBusConnection *server_side, *client_side;
static int begun, ended, booked;
static GMutex calendar, ledger, outbox_lock;
static GCond outbox_filled, outbox_empty;
static GQueue outbox = G_QUEUE_INIT;
static bool is_over;
static GSList *forgotten;

static const char interface[] = "<node><interface name='org.example.Rooms'><method name='Book'><arg type='i' direction='in'/>"
				"<arg type='i' direction='out'/></method></interface></node>";

static void begin_booking(void);

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(const struct booking *b, const char *name)
{
	return is(name) && b->number == 17;
}

/* ---- The notifier ---- */

static void *notify_all(void *data)
{
	for (;;) {
		g_mutex_lock(&outbox_lock);
		if (is("wakeup") && booked > 40 && g_queue_is_empty(&outbox)) {
			g_mutex_unlock(&outbox_lock);
			g_usleep(80000); /* it looks, lets go, and waits only then */
			g_mutex_lock(&outbox_lock);
			g_cond_wait(&outbox_filled, &outbox_lock);
		}
		while (g_queue_is_empty(&outbox) && !is_over)
			g_cond_wait(&outbox_filled, &outbox_lock);
		void *what = g_queue_pop_head(&outbox);
		bool is_empty = g_queue_is_empty(&outbox);
		if (is_empty)
			g_cond_signal(&outbox_empty);
		g_mutex_unlock(&outbox_lock);
		if (!what)
			return NULL;
		g_usleep(200);
	}
}

static void tell_outside(struct booking *b)
{
	g_mutex_lock(&outbox_lock);
	g_queue_push_tail(&outbox, GINT_TO_POINTER(b->number + 1));
	g_cond_signal(&outbox_filled);
	g_mutex_unlock(&outbox_lock);
}

/* ---- The service ---- */

static void look_into_calendar(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	struct booking *b = data;
	bool other_way = is("deadlock") && b->number % 2;
	g_mutex_lock(other_way ? &ledger : &calendar);
	g_usleep(is("deadlock") ? 800 : 300);
	g_mutex_lock(other_way ? &calendar : &ledger);
	g_mutex_unlock(&ledger);
	if (!hits(b, "unreleased"))
		g_mutex_unlock(&calendar);
	if (is("swallowed") && b->number % 10 == 7)
		g_task_return_new_error(task, G_IO_ERROR, G_IO_ERROR_EXISTS, "the room is taken");
	else if (!hits(b, "unreturned"))
		g_task_return_boolean(task, true);
}

static gboolean remind(void *data)
{
	return G_SOURCE_CONTINUE;
}

static void calendar_seen(GObject *source, GAsyncResult *result, void *data)
{
	struct booking *b = data;
	if (!is("swallowed"))
		g_task_propagate_boolean(G_TASK(result), NULL);
	if (hits(b, "sleep"))
		g_usleep(140000);
	if (is("timers"))
		g_timeout_add_seconds(60, remind, NULL);
	booked++;
	tell_outside(b);
	if (hits(b, "busy") && b->tries < 200) {
		g_dbus_method_invocation_return_error(b->call, G_IO_ERROR, G_IO_ERROR_BUSY, "the calendar is busy");
	} else if (hits(b, "unanswered")) {
		forgotten = g_slist_prepend(forgotten, b->call);
	} else {
		g_dbus_method_invocation_return_value(b->call, g_variant_new("(i)", b->number));
	}
	g_free(b);
}

static void on_call(GDBusConnection *connection, const char *sender, const char *path, const char *name, const char *method,
    GVariant *parameters, GDBusMethodInvocation *call, void *data)
{
	static int tries;
	struct booking *b = g_new0(struct booking, 1);
	b->call = call;
	g_variant_get(parameters, "(i)", &b->number);
	b->tries = b->number == 17 ? ++tries : 0;
	GTask *task = g_task_new(NULL, NULL, calendar_seen, b);
	g_task_set_name(task, "look into calendar");
	g_task_set_task_data(task, b, NULL);
	g_task_run_in_thread(task, look_into_calendar);
	g_object_unref(task);
}

/* ---- Callers ---- */

static void call_service(int number);

static void on_booked(GObject *source, GAsyncResult *result, void *data)
{
	GVariant *answer = g_dbus_connection_call_finish(client_side, result, NULL);
	if (!answer) {
		call_service(GPOINTER_TO_INT(data));
		return;
	}
	g_variant_unref(answer);
	if (++ended == BOOKINGS)
		g_main_loop_quit(loop);
	else if (begun < BOOKINGS)
		begin_booking();
}

static void call_service(int number)
{
	g_dbus_connection_call(client_side, NULL, "/rooms", "org.example.Rooms", "Book", g_variant_new("(i)", number), NULL,
	    G_DBUS_CALL_FLAGS_NONE, G_MAXINT, NULL, on_booked, GINT_TO_POINTER(number));
}

static void begin_booking(void)
{
	call_service(begun++);
}

static void on_connected(GObject *source, GAsyncResult *result, void *data)
{
	GDBusConnection **side = data;
	*side = g_dbus_connection_new_finish(result, NULL);
	if (!client_side || !server_side)
		return;
	static const GDBusInterfaceVTable calls = {.method_call = on_call};
	GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(interface, NULL);
	g_dbus_connection_register_object(server_side, "/rooms", node->interfaces[0], &calls, NULL, NULL, NULL);
	for (int i = 0; i < AT_ONCE; i++)
		begin_booking();
}

static void connect_both(void)
{
	int ends[2];
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
	char *id = g_dbus_generate_guid();
	for (int i = 0; i < 2; i++) {
		GSocket *socket = g_socket_new_from_fd(ends[i], NULL);
		GIOStream *stream = G_IO_STREAM(g_socket_connection_factory_create_connection(socket));
		g_dbus_connection_new(stream, i ? id : NULL,
		    i ? G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER | G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_ALLOW_ANONYMOUS
		      : G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT,
		    NULL, NULL, on_connected, i ? &server_side : &client_side);
	}
	g_free(id);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	loop = g_main_loop_new(NULL, false);
	GThread *notifier = g_thread_new("notifier", notify_all, NULL);
	connect_both();
	g_main_loop_run(loop);
	g_mutex_lock(&outbox_lock);
	while (!g_queue_is_empty(&outbox))
		g_cond_wait(&outbox_empty, &outbox_lock);
	is_over = true;
	g_cond_signal(&outbox_filled);
	g_mutex_unlock(&outbox_lock);
	g_thread_join(notifier);
	return 0;
}
