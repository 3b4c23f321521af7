/* dbus.c: calls of methods, and calls that are served.
 *
 * A call that expects an answer is the first task that is made for it: of what the program calls, or of what libgio makes of
 * that.  A served call begins when the source is attached that will call the method.  Both ends tell the bus, the sender and the
 * serial, by which readers of both traces see that they are one.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"

/* ---- Calls ---- */

static void put_method(struct weft_hook_label *label, const char *interface, const char *method)
{
	if (interface) {
		weft_hook_put(label, interface);
		weft_hook_put(label, ".");
	}
	weft_hook_put(label, method ? method : "?");
}

/* Whether a call begins here, and not in what another one does. */
static bool begins(const char *interface, const char *method, const char *destination)
{
	struct weft__glib_here *here = &weft__glib_here;
	if (!weft__glib_begins() || here->call.is_made)
		return false;
	here->call.is_made = true;
	here->call.id = 0;
	here->call.label = (struct weft_hook_label){0};
	put_method(&here->call.label, interface, method);
	if (destination) {
		weft_hook_put(&here->call.label, " @ ");
		weft_hook_put(&here->call.label, destination);
	}
	return true;
}

/* "GUID :1.42"; between two peers without a bus "GUID client" or "GUID server". */
static void tell_message(weft_id id, GDBusConnection *connection, GDBusMessage *message, const char *sender, bool is_handled)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft_hook_label text = {0};
	const char *guid = real->g_dbus_connection_get_guid(connection);
	weft_hook_put(&text, guid ? guid : "?");
	weft_hook_put(&text, " ");
	weft_hook_put(&text, sender);
	weft_message(id, real->g_dbus_message_get_serial(message), text.text, is_handled);
}

static const char *role(GDBusConnection *connection, bool of_peer)
{
	bool is_server = weft__glib_real.g_dbus_connection_get_flags(connection) & G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER;
	return is_server != of_peer ? "server" : "client";
}

/* The first message of a connection to a bus asks for its name; before that GLib would complain that it has none. */
static void tell_sent(weft_id id, GDBusConnection *connection, GDBusMessage *message)
{
	const char *member = weft__glib_real.g_dbus_message_get_member(message);
	if (!id || !member || !strcmp(member, "Hello"))
		return;
	const char *name = weft__glib_real.g_dbus_connection_get_unique_name(connection);
	tell_message(id, connection, message, name ? name : role(connection, false), false);
}

void weft__g_dbus_connection_call(
    WEFT__GIO_DBUS_CALL_PARAMETERS, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	bool mine = begins(interface, method, destination);
	weft__glib_real.g_dbus_connection_call(WEFT__GIO_DBUS_CALL_ARGUMENTS, cancellable, callback, data);
	if (mine)
		weft__glib_here.call.is_made = false;
}

void weft__g_dbus_connection_call_with_unix_fd_list(
    WEFT__GIO_DBUS_CALL_PARAMETERS, GUnixFDList *fds, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	bool mine = begins(interface, method, destination);
	weft__glib_real.g_dbus_connection_call_with_unix_fd_list(WEFT__GIO_DBUS_CALL_ARGUMENTS, fds, cancellable, callback, data);
	if (mine)
		weft__glib_here.call.is_made = false;
}

/* Synchronous calls come here too. */
void weft__g_dbus_connection_send_message_with_reply(GDBusConnection *connection, GDBusMessage *message,
    GDBusSendMessageFlags flags, gint timeout_ms, volatile guint32 *serial, GCancellable *cancellable,
    GAsyncReadyCallback callback, gpointer data)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft__glib_here *here = &weft__glib_here;
	bool mine = begins(real->g_dbus_message_get_interface(message), real->g_dbus_message_get_member(message),
	    real->g_dbus_message_get_destination(message));
	real->g_dbus_connection_send_message_with_reply(
	    connection, message, flags, timeout_ms, serial, cancellable, callback, data);
	if (here->call.is_made)
		tell_sent(here->call.id, connection, message);
	if (mine)
		here->call.is_made = false;
}

/* ---- Served calls ---- */

/* Sources that watch and own names are called so too, and have other data. */
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

static void (*finalize)(GObject *);

/* A call that needs no answer ends well without one. */
static void finalized(GObject *object)
{
	struct weft__glib_thing *call = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SERVED, object) : NULL;
	if (call) {
		weft__glib_end(call, call->is_returned ? NULL : WEFT_UNRETURNED);
		weft__glib_thing_remove(call);
	}
	finalize(object);
}

static void take_class(GDBusMethodInvocation *call)
{
	GObjectClass *class = (GObjectClass *)((GTypeInstance *)call)->g_class;
	static uint32_t lock;
	if (class->finalize == finalized || __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return;
	if (class->finalize != finalized) {
		finalize = class->finalize;
		__atomic_store_n(&class->finalize, finalized, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void weft__glib_serves(struct weft__glib_thing *source, GDBusMethodInvocation *call)
{
	const struct weft__glib_real *real = &weft__glib_real;
	struct weft__glib_thing *thing = weft__glib_thing_add(WEFT__GLIB_SERVED, call);
	GDBusMessage *message = real->g_dbus_method_invocation_get_message(call);
	if (!thing || !message)
		return;
	GDBusConnection *connection = real->g_dbus_method_invocation_get_connection(call);
	const char *sender = real->g_dbus_message_get_sender(message);
	struct weft_hook_label label = {0};
	take_class(call);
	weft__glib_create(thing, WEFT_KIND_REQUEST, (const void *)source->callback, false, 0, 0);
	weft_hook_put(&label, "serve ");
	put_method(&label, real->g_dbus_message_get_interface(message), real->g_dbus_message_get_member(message));
	if (sender) {
		weft_hook_put(&label, " from ");
		weft_hook_put(&label, sender);
	}
	weft__glib_label(thing, label.text);
	tell_message(thing->id, connection, message, sender ? sender : role(connection, true), true);
	if (real->g_dbus_message_get_flags(message) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED)
		thing->is_returned = true;
	else
		weft_should_resolve(thing->id);
	source->stands_for = weft__glib_tag_of(thing);
}

/* GLib's own call, inside the first one, changes nothing. */
static void answered(GDBusMethodInvocation *call, const char *error)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SERVED, call) : NULL;
	if (!thing || thing->is_ended)
		return;
	weft__glib_end(thing, error);
	if (error)
		weft_read_later(WEFT_SYSTEM_ID, thing->id); /* the peer takes notice */
}

void weft__g_dbus_method_invocation_return_value(GDBusMethodInvocation *call, GVariant *value)
{
	answered(call, NULL);
	weft__glib_real.g_dbus_method_invocation_return_value(call, value);
}

void weft__g_dbus_method_invocation_return_value_with_unix_fd_list(GDBusMethodInvocation *call, GVariant *value, GUnixFDList *fds)
{
	answered(call, NULL);
	weft__glib_real.g_dbus_method_invocation_return_value_with_unix_fd_list(call, value, fds);
}

void weft__g_dbus_method_invocation_return_error_literal(
    GDBusMethodInvocation *call, GQuark domain, gint code, const gchar *message)
{
	answered(call, message);
	weft__glib_real.g_dbus_method_invocation_return_error_literal(call, domain, code, message);
}

void weft__g_dbus_method_invocation_return_dbus_error(GDBusMethodInvocation *call, const gchar *name, const gchar *message)
{
	answered(call, message);
	weft__glib_real.g_dbus_method_invocation_return_dbus_error(call, name, message);
}
