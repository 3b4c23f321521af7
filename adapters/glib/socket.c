/* socket.c: records connections of GSocket, which GIO's streams, services and clients use.
 *
 * A connection's promise begins at the first read or write, or when the thread that accepted the connection sleeps; by then the
 * code that uses the connection is known.  Reads and writes of a connection are separate promises, as in libuv; a read or write
 * that need not wait begins and ends at once.  Connections to D-Bus buses are not recorded here; dbus.c records their calls.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/address_cache.h"

/* ---- Promises of connections ---- */

/* Returns the site of the program's code that continues after the current call of libgio, or else the site of the listener. */
static struct weft_record_place *get_site(const struct weft__glib_object *tracked)
{
	const struct weft__glib_object *listener = weft__glib_object_of(tracked->stands_for);
	struct weft_record_place *call_site = weft_hook_site(weft__glib_get_here()->asked);
	return call_site ? call_site : listener ? listener->site : NULL;
}

static void set_label(struct weft__glib_object *tracked, GSocket *socket, const char *before)
{
	struct weft_hook_label text = {0};
	weft_hook_append(&text, before);
	weft_hook_append_fd(&text, weft__glib_real.g_socket_get_fd(socket));
	weft__glib_label(tracked, text.text);
}

/* Records the connect that has just ended; the connection's promise reads its result. */
static void record_connect(struct weft__glib_object *tracked)
{
	weft_id connect = tracked->site ? weft_create_at(tracked->id, WEFT_KIND_CONNECT, tracked->site)
					: weft_create(tracked->id, WEFT_KIND_CONNECT, NULL);
	weft__resolve_read_later(WEFT_SYSTEM_ID, connect, tracked->id);
}

static int get_fd(GSocket *socket)
{
	return weft__glib_real.g_socket_get_fd(socket);
}

static void begin_connection(struct weft__glib_object *tracked, GSocket *socket)
{
	const struct weft__glib_object *listener = weft__glib_object_of(tracked->stands_for);
	weft_id by = listener && listener->id ? listener->id : weft__glib_current_promise();
	tracked->by = by;
	tracked->site = get_site(tracked);
	tracked->id =
	    tracked->site ? weft_create_at(by, WEFT_KIND_CONNECTION, tracked->site) : weft_create(by, WEFT_KIND_CONNECTION, NULL);
	tracked->since = weft_is_on() ? weft__stream->last : 0;
	/* The listener that `stands_for` refers to may be closed by now. */
	set_label(tracked, socket, tracked->stands_for ? "from " : "to ");
	weft_hook_fd_attach(tracked->fd = get_fd(socket), tracked->id, NULL);
	if (!tracked->stands_for)
		record_connect(tracked);
}

static struct weft__glib_object *add_socket(GSocket *socket, enum weft_kind kind, weft__glib_tag listener)
{
	struct weft__glib_object *tracked = weft__glib_object_add(WEFT__GLIB_SOCKET, socket);
	if (tracked) {
		tracked->kind = (uint8_t)kind;
		tracked->stands_for = listener;
	}
	return tracked;
}

/* Creates the promise of a connection that was accepted and has not been used yet.  The site `asked` is cleared meanwhile,
 * because it belongs to another callback. */
void weft__glib_begin_accepted(void)
{
	struct weft__glib_object *tracked = weft__glib_object_of(weft__glib_get_here()->accepted);
	const void *const asked = weft__glib_get_here()->asked;
	weft__glib_get_here()->accepted = 0;
	weft__glib_get_here()->asked = NULL;
	if (tracked && !tracked->id)
		begin_connection(tracked, (GSocket *)tracked->key);
	weft__glib_get_here()->asked = asked;
}

/* Returns the object of a recorded connection; NULL: none.  Creates its promise. */
static struct weft__glib_object *find_connection(GSocket *socket)
{
	struct weft__glib_object *tracked = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (!tracked || tracked->kind != WEFT_KIND_CONNECTION || tracked->is_ignored)
		return NULL;
	if (!tracked->id)
		begin_connection(tracked, socket);
	tracked->owner_thread = weft__glib_get_here();
	return tracked->id ? tracked : NULL;
}

/* ---- Listeners and connects ---- */

static struct weft__glib_object *begin_listener(GSocket *socket, const void *caller)
{
	struct weft__glib_object *tracked = add_socket(socket, WEFT_KIND_LISTEN, 0);
	if (tracked) {
		weft__glib_create(tracked, WEFT_KIND_LISTEN, caller, false, 0, 0);
		set_label(tracked, socket, "listen ");
	}
	return tracked;
}

gboolean weft__g_socket_listen(GSocket *socket, GError **error)
{
	const void *caller = weft__glib_get_here()->site ? weft__glib_get_here()->site : __builtin_return_address(0);
	gboolean ok = weft__glib_real.g_socket_listen(socket, error);
	if (ok && weft__glib_should_record())
		begin_listener(socket, caller);
	return ok;
}

/* A listener without an object was inherited, or is older than the recording. */
GSocket *weft__g_socket_accept(GSocket *socket, GCancellable *cancellable, GError **error)
{
	const void *caller = __builtin_return_address(0);
	GSocket *accepted = weft__glib_real.g_socket_accept(socket, cancellable, error);
	if (!accepted || !weft__glib_should_record())
		return accepted;
	weft__glib_begin_accepted();
	const struct weft__glib_object *listener = weft__glib_object_find(WEFT__GLIB_SOCKET, socket);
	if (!listener)
		listener = begin_listener(socket, caller);
	weft__glib_get_here()->asked = NULL;
	weft__glib_get_here()->accepted =
	    weft__glib_tag_of(listener ? add_socket(accepted, WEFT_KIND_CONNECTION, weft__glib_tag_of(listener)) : NULL);
	return accepted;
}

static void add_connection(GSocket *socket)
{
	int saved = errno;
	if (weft__glib_should_record() && !weft__glib_object_find(WEFT__GLIB_SOCKET, socket))
		add_socket(socket, WEFT_KIND_CONNECTION, 0);
	errno = saved;
}

gboolean weft__g_socket_connect(GSocket *socket, GSocketAddress *address, GCancellable *cancellable, GError **error)
{
	gboolean ok = weft__glib_real.g_socket_connect(socket, address, cancellable, error);
	if (ok)
		add_connection(socket);
	return ok;
}

/* Records the end of a connect that was in progress. */
gboolean weft__g_socket_check_connect_result(GSocket *socket, GError **error)
{
	gboolean ok = weft__glib_real.g_socket_check_connect_result(socket, error);
	if (ok)
		add_connection(socket);
	return ok;
}

/* Defines wrappers that set the site of a listener to their caller: the program makes the listener, though libgio creates its
 * socket. */
#define LISTENER(result, name, parameters, arguments)                                                                            \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		const void *outer = weft__glib_should_record() ? weft__glib_get_here()->site : NULL;                             \
		if (!outer)                                                                                                      \
			weft__glib_get_here()->site = __builtin_return_address(0);                                               \
		result ok = weft__glib_real.name arguments;                                                                      \
		weft__glib_get_here()->site = outer;                                                                             \
		return ok;                                                                                                       \
	}
WEFT__GIO_LISTENER_CALLS(LISTENER)

/* ---- Input and output ---- */

static void await_input(struct weft__glib_object *tracked)
{
	if (!tracked->input)
		tracked->input = weft__create_awaited(tracked->id, WEFT_KIND_STREAM_READ, tracked->site, tracked->id, NULL, 0);
}

static void end_input(struct weft__glib_object *tracked, bool is_end)
{
	weft_id input = tracked->input;
	tracked->input = 0;
	if (input && is_end)
		WEFT_LABEL(input, "end of input");
	if (input)
		weft__resolve_read_later(WEFT_SYSTEM_ID, input, tracked->id);
}

gssize weft__g_socket_receive_with_blocking(
    GSocket *socket, gchar *to, gsize size, gboolean blocks, GCancellable *cancellable, GError **error)
{
	struct weft__glib_object *tracked = find_connection(socket);
	weft__glib_tag tag = weft__glib_tag_of(tracked);
	if (tracked) /* a read that finds no data stays pending until data comes */
		await_input(tracked);
	gssize got = weft__glib_real.g_socket_receive_with_blocking(socket, to, size, blocks, cancellable, error);
	int saved = errno;
	tracked = got >= 0 && weft__glib_is_recording() ? weft__glib_object_of(tag) : NULL;
	if (tracked)
		end_input(tracked, got == 0 && size > 0);
	errno = saved;
	return got;
}

/* Returns whether the data starts a connection to a message bus: a NUL byte with credentials, then "AUTH". */
static bool is_bus_greeting(const struct weft__glib_object *tracked, const char *data, gsize size)
{
	return !tracked->id && !tracked->stands_for && ((size == 1 && !*data) || (size >= 4 && !memcmp(data, "AUTH", 4)));
}

static void label_bytes(weft_id output, gsize bytes)
{
	struct weft_hook_label text = {0};
	weft_hook_append_number(&text, bytes);
	weft_hook_append(&text, bytes == 1 ? " byte" : " bytes");
	weft_hook_record_label(&text, output);
}

static void record_write(const struct weft__glib_object *tracked, gssize bytes)
{
	weft_id output = tracked->site ? weft_create_at(tracked->id, WEFT_KIND_STREAM_WRITE, tracked->site)
				       : weft_create(tracked->id, WEFT_KIND_STREAM_WRITE, NULL);
	if (!output)
		return;
	label_bytes(output, (gsize)bytes);
	weft__resolve_read_later(WEFT_SYSTEM_ID, output, tracked->id);
}

gssize weft__g_socket_send_with_blocking(
    GSocket *socket, const gchar *data, gsize size, gboolean blocks, GCancellable *cancellable, GError **error)
{
	struct weft__glib_object *tracked = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (tracked && is_bus_greeting(tracked, data, size))
		tracked->is_ignored = true;
	tracked = tracked ? find_connection(socket) : NULL;
	weft__glib_tag tag = weft__glib_tag_of(tracked);
	weft__glib_get_here()->pending_write_bytes = tracked ? size : 0;
	gssize sent = weft__glib_real.g_socket_send_with_blocking(socket, data, size, blocks, cancellable, error);
	int saved = errno;
	const weft_id output = weft__glib_get_here()->output;
	weft__glib_get_here()->pending_write_bytes = weft__glib_get_here()->output = 0;
	tracked = weft__glib_is_recording() ? weft__glib_object_of(tag) : NULL;
	if (output && tracked && sent >= 0)
		weft__resolve_read_later(WEFT_SYSTEM_ID, output, tracked->id);
	else if (output && weft__glib_is_recording())
		weft_fail(WEFT_SYSTEM_ID, output, error && *error ? (*error)->message : "not sent");
	else if (tracked && sent > 0)
		record_write(tracked, sent);
	errno = saved;
	return sent;
}

/* Wraps the wait of a blocking call that finds no data or no buffer space: the running promise awaits the connection, and a
 * write begins. */
gboolean weft__g_socket_condition_timed_wait(
    GSocket *socket, GIOCondition condition, gint64 timeout_us, GCancellable *cancellable, GError **error)
{
	const struct weft__glib_object *tracked = timeout_us ? find_connection(socket) : NULL;
	const weft_id id = tracked ? tracked->id : 0, waiter = weft__hook_get_thread()->running;
	const bool waits = id && waiter > 0 && waiter != id;
	if (id && (condition & G_IO_OUT) && weft__glib_get_here()->pending_write_bytes && !weft__glib_get_here()->output) {
		weft__glib_get_here()->output = weft__create_awaited(id, WEFT_KIND_STREAM_WRITE, tracked->site, id, NULL, 0);
		label_bytes(weft__glib_get_here()->output, weft__glib_get_here()->pending_write_bytes);
	}
	if (waits)
		weft_await(waiter, id);
	gboolean ok = weft__glib_real.g_socket_condition_timed_wait(socket, condition, timeout_us, cancellable, error);
	int saved = errno;
	if (waits && weft_is_on())
		weft_awaits_no_more(waiter, id);
	errno = saved;
	return ok;
}

/* The last g_object_unref() of a socket calls this function too. */
gboolean weft__g_socket_close(GSocket *socket, GError **error)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (tracked) {
		end_input(tracked, true);
		weft__glib_end(tracked, NULL);
		weft__glib_object_remove(tracked);
	}
	return weft__glib_real.g_socket_close(socket, error);
}
