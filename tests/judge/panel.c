/* panel.c: small programs on GLib, each with one fault; "healthy-FAULT" is the same program without the fault.
 *
 * Usage: judge-panel FAULT [SEED].  SPDX-License-Identifier: ISC */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gboolean is_healthy;
static GMainLoop *loop;

static gboolean end_program(gpointer data)
{
	(void)data;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static gboolean blink(gpointer data)
{
	(void)data;
	return G_SOURCE_CONTINUE;
}

/* ---- nested: a synchronous wrapper that runs the wrong context ---- */

static void load_icon(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	(void)source, (void)data, (void)cancellable;
	g_usleep(50000);
	g_task_return_boolean(task, TRUE);
}

static void icon_loaded(GObject *source, GAsyncResult *result, gpointer nested)
{
	(void)source;
	g_task_propagate_boolean(G_TASK(result), NULL);
	g_main_loop_quit(nested);
}

static void load_icon_sync(void)
{
	GMainContext *context = g_main_context_new();
	GMainLoop *nested = g_main_loop_new(is_healthy ? context : NULL, FALSE);
	g_main_context_push_thread_default(context);
	GTask *task = g_task_new(NULL, NULL, icon_loaded, nested);
	g_task_set_name(task, "load icon");
	g_task_run_in_thread(task, load_icon);
	g_object_unref(task);
	g_main_loop_run(nested);
	g_main_context_pop_thread_default(context);
	g_main_loop_unref(nested);
	g_main_context_unref(context);
}

static gboolean icon_clicked(gpointer data)
{
	(void)data;
	load_icon_sync();
	g_timeout_add(100, end_program, NULL);
	return G_SOURCE_REMOVE;
}

/* ---- cond: the main thread waits for a thread that waits for the main thread ---- */

static GMutex mutex;
static GCond changed;
static gboolean is_shown, is_scanned;

static gboolean show_progress(gpointer data)
{
	(void)data;
	g_mutex_lock(&mutex);
	is_shown = TRUE;
	g_cond_broadcast(&changed);
	g_mutex_unlock(&mutex);
	return G_SOURCE_REMOVE;
}

static gpointer scan_files(gpointer data)
{
	g_usleep(50000);
	g_main_context_invoke(NULL, show_progress, NULL);
	g_mutex_lock(&mutex);
	while (!is_shown)
		g_cond_wait(&changed, &mutex);
	is_scanned = TRUE;
	g_cond_broadcast(&changed);
	g_mutex_unlock(&mutex);
	if (is_healthy)
		g_idle_add(end_program, NULL);
	return data;
}

static gboolean scan_clicked(gpointer data)
{
	g_thread_unref(g_thread_new("scan", scan_files, NULL));
	if (is_healthy)
		return G_SOURCE_REMOVE;
	g_mutex_lock(&mutex);
	while (!is_scanned)
		g_cond_wait(&changed, &mutex);
	g_mutex_unlock(&mutex);
	end_program(data);
	return G_SOURCE_REMOVE;
}

/* ---- bus: a synchronous D-Bus call to a peer that does not answer ---- */

static const char INTERFACE[] = "<node><interface name='org.example.Disk'><method name='Space'/></interface></node>";

static void on_method(GDBusConnection *connection, const gchar *sender, const gchar *path, const gchar *interface,
    const gchar *method, GVariant *parameters, GDBusMethodInvocation *call, gpointer data)
{
	(void)connection, (void)sender, (void)path, (void)interface, (void)method, (void)parameters, (void)data;
	if (is_healthy)
		g_dbus_method_invocation_return_value(call, NULL);
	else
		g_usleep(60 * G_USEC_PER_SEC);
}

static gboolean on_peer(GDBusServer *server, GDBusConnection *connection, gpointer data)
{
	static const GDBusInterfaceVTable calls = {.method_call = on_method};
	GDBusNodeInfo *info = g_dbus_node_info_new_for_xml(INTERFACE, NULL);
	(void)server, (void)data;
	g_dbus_connection_register_object(g_object_ref(connection), "/disk", info->interfaces[0], &calls, NULL, NULL, NULL);
	return TRUE;
}

static void serve_bus(const char *address)
{
	char *guid = g_dbus_generate_guid();
	GDBusServer *server = g_dbus_server_new_sync(address, G_DBUS_SERVER_FLAGS_NONE, guid, NULL, NULL, NULL);
	g_signal_connect(server, "new-connection", G_CALLBACK(on_peer), NULL);
	g_dbus_server_start(server);
	g_timeout_add_seconds(5, end_program, NULL);
	g_main_loop_run(loop);
	exit(0);
}

static void space_known(GObject *source, GAsyncResult *result, gpointer data)
{
	GVariant *answer = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, NULL);
	if (answer)
		g_variant_unref(answer);
	end_program(data);
}

static gboolean space_clicked(gpointer connection)
{
	if (is_healthy)
		g_dbus_connection_call(connection, NULL, "/disk", "org.example.Disk", "Space", NULL, NULL, G_DBUS_CALL_FLAGS_NONE,
		    -1, NULL, space_known, NULL);
	else
		g_dbus_connection_call_sync(
		    connection, NULL, "/disk", "org.example.Disk", "Space", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);
	return G_SOURCE_REMOVE;
}

static void run_bus(void)
{
	char path[64], address[96];
	GDBusConnection *connection = NULL;
	snprintf(path, sizeof path, "/tmp/judge-panel-%d.socket", (int)getpid());
	snprintf(address, sizeof address, "unix:path=%s", path);
	pid_t server = fork();
	loop = g_main_loop_new(NULL, FALSE);
	if (server == 0)
		serve_bus(address);
	for (int i = 0; !connection && i < 100; i++) {
		g_usleep(20000);
		connection = g_dbus_connection_new_for_address_sync(
		    address, G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT, NULL, NULL, NULL);
	}
	unlink(path);
	g_timeout_add(100, space_clicked, connection);
	g_timeout_add(50, blink, NULL);
	g_main_loop_run(loop);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	is_healthy = !strncmp(fault, "healthy-", 8);
	fault += is_healthy ? 8 : 0;
	alarm(4); /* ends a program that hangs */
	if (!strcmp(fault, "bus")) {
		run_bus();
		return 0;
	}
	loop = g_main_loop_new(NULL, FALSE);
	if (!strcmp(fault, "nested"))
		g_timeout_add(50, icon_clicked, NULL);
	else if (!strcmp(fault, "cond"))
		g_timeout_add(50, scan_clicked, NULL);
	else
		return 2;
	g_timeout_add(50, blink, NULL);
	g_main_loop_run(loop);
	return 0;
}
