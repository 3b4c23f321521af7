/* dbus.c: records D-Bus calls of the program, and incoming D-Bus calls that the program serves.
 *
 * The promise of a D-Bus call is the first task that the program or libgio creates for the call.  A served call begins when
 * libgio attaches the source that will call the method.  Caller and server record bus, sender and serial number of the message,
 * so that a reader of both traces can join the two ends.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/object.h"
#include "adapters/glib/run.h"

/* ---- Calls ---- */

static void append_method(struct weft_hook_label *label, const char *interface, const char *method)
{
	if (interface) {
		weft_hook_append(label, interface);
		weft_hook_append(label, ".");
	}
	weft_hook_append(label, method ? method : "?");
}

/* Notes the start of a D-Bus call; returns false if it is nested in another D-Bus call. */
static bool begin_call(const char *interface, const char *method, const char *destination)
{
	struct weft__glib_here *here = weft__glib_get_here();
	if (!weft__glib_should_record() || here->call.is_made)
		return false;
	here->call.is_made = true;
	here->call.id = 0;
	here->call.label = (struct weft_hook_label){0};
	append_method(&here->call.label, interface, method);
	if (destination) {
		weft_hook_append(&here->call.label, " @ ");
		weft_hook_append(&here->call.label, destination);
	}
	return true;
}

/* The recorded text is "GUID :1.42"; between two peers without a bus it is "GUID client" or "GUID server". */
static void record_message(weft_id id, GDBusConnection *connection, GDBusMessage *message, const char *sender, bool is_handled)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft_hook_label text = {0};
	const char *guid = real->g_dbus_connection_get_guid(connection);
	weft_hook_append(&text, guid ? guid : "?");
	weft_hook_append(&text, " ");
	weft_hook_append(&text, sender);
	weft_message(id, real->g_dbus_message_get_serial(message), text.text, is_handled);
}

static const char *get_peer_role(GDBusConnection *connection, bool of_peer)
{
	bool is_server = weft__glib_real.g_dbus_connection_get_flags(connection) & G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER;
	return is_server != of_peer ? "server" : "client";
}

/* Skips Hello, the first message to a bus: the connection has no name before the reply to Hello, and GLib would warn. */
static void record_sent(weft_id id, GDBusConnection *connection, GDBusMessage *message)
{
	const char *member = weft__glib_real.g_dbus_message_get_member(message);
	if (!id || !member || !strcmp(member, "Hello"))
		return;
	const char *name = weft__glib_real.g_dbus_connection_get_unique_name(connection);
	record_message(id, connection, message, name ? name : get_peer_role(connection, false), false);
}

void weft__g_dbus_connection_call(
    WEFT__GIO_DBUS_CALL_PARAMETERS, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	bool is_outermost = begin_call(interface, method, destination);
	weft__glib_real.g_dbus_connection_call(WEFT__GIO_DBUS_CALL_ARGUMENTS, cancellable, callback, data);
	if (is_outermost)
		weft__glib_get_here()->call.is_made = false;
}

void weft__g_dbus_connection_call_with_unix_fd_list(
    WEFT__GIO_DBUS_CALL_PARAMETERS, GUnixFDList *fds, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	bool is_outermost = begin_call(interface, method, destination);
	weft__glib_real.g_dbus_connection_call_with_unix_fd_list(WEFT__GIO_DBUS_CALL_ARGUMENTS, fds, cancellable, callback, data);
	if (is_outermost)
		weft__glib_get_here()->call.is_made = false;
}

/* Synchronous D-Bus calls use this function too. */
void weft__g_dbus_connection_send_message_with_reply(GDBusConnection *connection, GDBusMessage *message,
    GDBusSendMessageFlags flags, gint timeout_ms, volatile guint32 *serial, GCancellable *cancellable,
    GAsyncReadyCallback callback, gpointer data)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft__glib_here *here = weft__glib_get_here();
	bool is_outermost = begin_call(real->g_dbus_message_get_interface(message), real->g_dbus_message_get_member(message),
	    real->g_dbus_message_get_destination(message));
	real->g_dbus_connection_send_message_with_reply(
	    connection, message, flags, timeout_ms, serial, cancellable, callback, data);
	if (here->call.is_made)
		record_sent(here->call.id, connection, message);
	if (is_outermost)
		here->call.is_made = false;
}

/* ---- Served calls ---- */

/* The name of the source is not enough: sources that watch or own bus names have the same name, but other data. */
bool weft__glib_is_serving(const char *source_name, const void *data)
{
	static const char wanted[] = "] call_in_idle_cb";
	const struct weft__glib_real *real = &weft__glib_real;
	size_t length = strlen(source_name);
	if (length < sizeof wanted - 1 || memcmp(source_name + length - (sizeof wanted - 1), wanted, sizeof wanted - 1) != 0)
		return false;
	const void *class =
	    data && real->g_type_class_peek ? real->g_type_class_peek(real->g_dbus_method_invocation_get_type()) : NULL;
	return class && ((const GTypeInstance *)data)->g_class == class;
}

static void (*real_finalize)(GObject *);

/* Ends a served call; a call for which no reply is expected succeeds without a reply. */
static void finalize_invocation(GObject *object)
{
	struct weft__glib_object *call = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SERVED, object) : NULL;
	if (call) {
		weft__glib_end(call, call->is_returned ? NULL : WEFT_UNRETURNED);
		weft__glib_object_remove(call);
	}
	real_finalize(object);
}

static void hook_finalize(GDBusMethodInvocation *call)
{
	GObjectClass *class = (GObjectClass *)((GTypeInstance *)call)->g_class;
	static uint32_t lock;
	if (class->finalize == finalize_invocation || __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return;
	if (class->finalize != finalize_invocation) {
		real_finalize = class->finalize;
		__atomic_store_n(&class->finalize, finalize_invocation, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void weft__glib_begin_served(struct weft__glib_object *source, GDBusMethodInvocation *call)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft__glib_object *tracked = weft__glib_object_add(WEFT__GLIB_SERVED, call);
	GDBusMessage *message = real->g_dbus_method_invocation_get_message(call);
	if (!tracked || !message)
		return;
	GDBusConnection *connection = real->g_dbus_method_invocation_get_connection(call);
	const char *sender = real->g_dbus_message_get_sender(message);
	struct weft_hook_label label = {0};
	hook_finalize(call);
	weft__glib_create(tracked, WEFT_KIND_REQUEST, (const void *)source->callback, false, 0, 0);
	weft_hook_append(&label, "serve ");
	append_method(&label, real->g_dbus_message_get_interface(message), real->g_dbus_message_get_member(message));
	if (sender) {
		weft_hook_append(&label, " from ");
		weft_hook_append(&label, sender);
	}
	weft__glib_label(tracked, label.text);
	record_message(tracked->id, connection, message, sender ? sender : get_peer_role(connection, true), true);
	if (real->g_dbus_message_get_flags(message) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED)
		tracked->is_returned = true;
	else
		weft_should_resolve(tracked->id);
	source->stands_for = weft__glib_tag_of(tracked);
}

/* If GLib's functions for replies call each other, the inner call finds that the promise has ended. */
static void end_served(GDBusMethodInvocation *call, const char *error)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SERVED, call) : NULL;
	if (!tracked || tracked->is_ended)
		return;
	weft__glib_end(tracked, error);
	if (error)
		weft_read_later(WEFT_SYSTEM_ID, tracked->id); /* the error goes to the peer, so it counts as handled */
}

void weft__g_dbus_method_invocation_return_value(GDBusMethodInvocation *call, GVariant *value)
{
	end_served(call, NULL);
	weft__glib_real.g_dbus_method_invocation_return_value(call, value);
}

void weft__g_dbus_method_invocation_return_value_with_unix_fd_list(GDBusMethodInvocation *call, GVariant *value, GUnixFDList *fds)
{
	end_served(call, NULL);
	weft__glib_real.g_dbus_method_invocation_return_value_with_unix_fd_list(call, value, fds);
}

void weft__g_dbus_method_invocation_return_error_literal(
    GDBusMethodInvocation *call, GQuark domain, gint code, const gchar *message)
{
	end_served(call, message);
	weft__glib_real.g_dbus_method_invocation_return_error_literal(call, domain, code, message);
}

void weft__g_dbus_method_invocation_return_dbus_error(GDBusMethodInvocation *call, const gchar *name, const gchar *message)
{
	end_served(call, message);
	weft__glib_real.g_dbus_method_invocation_return_dbus_error(call, name, message);
}
