/* socket.c: connections of GSocket, which streams, services and clients of GIO go by.
 *
 * A connection has its promise from the first time that it is read or written, or that the OS thread which accepted it sleeps: by
 * then it is known which code of the program has it.  Its reads and writes are its own, as in libuv; those that wait for nothing
 * begin and end at once.  What goes to a message bus is told of by its calls (dbus.c), and is no connection here.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include "adapters/glib/adapter.h"

/* ---- Their promises ---- */

/* The place of the code that has it: who goes on after the call that it is first used in, else who made the listener. */
static struct weft_record_place *place_of(const struct weft__glib_thing *thing)
{
	const struct weft__glib_thing *listener = weft__glib_thing_of(thing->stands_for);
	struct weft_record_place *place = weft_hook_place(weft__glib_here.asked);
	return place ? place : listener ? listener->site : NULL;
}

static void label(struct weft__glib_thing *thing, GSocket *socket, const char *before)
{
	struct weft_hook_label text = {0};
	weft_hook_put(&text, before);
	weft_hook_put_fd(&text, weft__glib_real.g_socket_get_fd(socket));
	weft__glib_label(thing, text.text);
}

/* Of one that was connected: by a connect that ended just now, and that it read. */
static void make_connect(struct weft__glib_thing *thing)
{
	weft_id connect = thing->site ? weft_create_at(thing->id, WEFT_KIND_CONNECT, thing->site)
				      : weft_create(thing->id, WEFT_KIND_CONNECT, NULL);
	weft__resolve_read_later(WEFT_SYSTEM_ID, connect, thing->id);
}

static int fd_of(GSocket *socket)
{
	return weft__glib_real.g_socket_get_fd(socket);
}

static void make(struct weft__glib_thing *thing, GSocket *socket)
{
	const struct weft__glib_thing *listener = weft__glib_thing_of(thing->stands_for);
	weft_id by = listener && listener->id ? listener->id : weft__glib_who();
	thing->by = by;
	thing->site = place_of(thing);
	thing->id =
	    thing->site ? weft_create_at(by, WEFT_KIND_CONNECTION, thing->site) : weft_create(by, WEFT_KIND_CONNECTION, NULL);
	thing->since = weft_is_on() ? weft__stream->last : 0;
	/* The listener may be closed by now. */
	label(thing, socket, thing->stands_for ? "from " : "to ");
	weft_hook_carries(thing->fd = fd_of(socket), thing->id, NULL);
	if (!thing->stands_for)
		make_connect(thing);
}

static struct weft__glib_thing *add(GSocket *socket, enum weft_kind kind, weft__glib_tag listener)
{
	struct weft__glib_thing *thing = weft__glib_thing_add(WEFT__GLIB_SOCKET, socket);
	if (thing) {
		thing->kind = (uint8_t)kind;
		thing->stands_for = listener;
	}
	return thing;
}

/* What was accepted and not used yet. */
void weft__glib_name_accepted(void)
{
	struct weft__glib_thing *thing = weft__glib_thing_of(weft__glib_here.accepted);
	weft__glib_here.accepted = 0;
	if (thing && !thing->id)
		make(thing, (GSocket *)thing->key);
}

/* The connection that is read or written; NULL: it is none, or of no interest. */
static struct weft__glib_thing *used(GSocket *socket)
{
	struct weft__glib_thing *thing = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (!thing || thing->kind != WEFT_KIND_CONNECTION || thing->is_untold)
		return NULL;
	if (!thing->id)
		make(thing, socket);
	thing->home = &weft__glib_here;
	return thing->id ? thing : NULL;
}

/* ---- Beginning ---- */

static struct weft__glib_thing *listens(GSocket *socket, const void *caller)
{
	struct weft__glib_thing *thing = add(socket, WEFT_KIND_LISTEN, 0);
	if (thing) {
		weft__glib_create(thing, WEFT_KIND_LISTEN, caller, false, 0, 0);
		label(thing, socket, "listen ");
	}
	return thing;
}

gboolean weft__g_socket_listen(GSocket *socket, GError **error)
{
	const void *caller = weft__glib_here.site ? weft__glib_here.site : __builtin_return_address(0);
	gboolean ok = weft__glib_real.g_socket_listen(socket, error);
	if (ok && weft__glib_begins())
		listens(socket, caller);
	return ok;
}

/* Of a listener that was inherited, or is older than the recording, this is the first that is heard. */
GSocket *weft__g_socket_accept(GSocket *socket, GCancellable *cancellable, GError **error)
{
	const void *caller = __builtin_return_address(0);
	GSocket *accepted = weft__glib_real.g_socket_accept(socket, cancellable, error);
	if (!accepted || !weft__glib_begins())
		return accepted;
	weft__glib_name_accepted();
	const struct weft__glib_thing *listener = weft__glib_thing_find(WEFT__GLIB_SOCKET, socket);
	if (!listener)
		listener = listens(socket, caller);
	weft__glib_here.asked = NULL;
	weft__glib_here.accepted =
	    weft__glib_tag_of(listener ? add(accepted, WEFT_KIND_CONNECTION, weft__glib_tag_of(listener)) : NULL);
	return accepted;
}

static void connected(GSocket *socket)
{
	int saved = errno;
	if (weft__glib_begins() && !weft__glib_thing_find(WEFT__GLIB_SOCKET, socket))
		add(socket, WEFT_KIND_CONNECTION, 0);
	errno = saved;
}

gboolean weft__g_socket_connect(GSocket *socket, GSocketAddress *address, GCancellable *cancellable, GError **error)
{
	gboolean ok = weft__glib_real.g_socket_connect(socket, address, cancellable, error);
	if (ok)
		connected(socket);
	return ok;
}

/* Of a connect that did not wait for its end. */
gboolean weft__g_socket_check_connect_result(GSocket *socket, GError **error)
{
	gboolean ok = weft__glib_real.g_socket_check_connect_result(socket, error);
	if (ok)
		connected(socket);
	return ok;
}

/* A listener that the program makes is the program's, though libgio makes its sockets. */
#define LISTENER(result, name, parameters, arguments)                                                                            \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		const void *outer = weft__glib_begins() ? weft__glib_here.site : NULL;                                           \
		if (!outer)                                                                                                      \
			weft__glib_here.site = __builtin_return_address(0);                                                      \
		result ok = weft__glib_real.name arguments;                                                                      \
		weft__glib_here.site = outer;                                                                                    \
		return ok;                                                                                                       \
	}
WEFT__GIO_LISTENER_CALLS(LISTENER)

/* ---- What goes over them ---- */

static void awaits_input(struct weft__glib_thing *thing)
{
	if (!thing->input)
		thing->input = weft__create_awaited(thing->id, WEFT_KIND_STREAM_READ, thing->site, thing->id, NULL, 0);
}

static void input_ends(struct weft__glib_thing *thing, bool is_end)
{
	weft_id input = thing->input;
	thing->input = 0;
	if (input && is_end)
		WEFT_LABEL(input, "end of input");
	if (input)
		weft__resolve_read_later(WEFT_SYSTEM_ID, input, thing->id);
}

gssize weft__g_socket_receive_with_blocking(
    GSocket *socket, gchar *to, gsize size, gboolean blocks, GCancellable *cancellable, GError **error)
{
	struct weft__glib_thing *thing = used(socket);
	weft__glib_tag tag = weft__glib_tag_of(thing);
	if (thing) /* a read that finds nothing goes on until something comes */
		awaits_input(thing);
	gssize got = weft__glib_real.g_socket_receive_with_blocking(socket, to, size, blocks, cancellable, error);
	int saved = errno;
	thing = got >= 0 && weft__glib_goes_on() ? weft__glib_thing_of(tag) : NULL;
	if (thing)
		input_ends(thing, got == 0 && size > 0);
	errno = saved;
	return got;
}

/* What is said to a message bus first: a byte that goes with the credentials, and how to prove who one is. */
static bool greets_bus(const struct weft__glib_thing *thing, const char *data, gsize size)
{
	return !thing->id && !thing->stands_for && ((size == 1 && !*data) || (size >= 4 && !memcmp(data, "AUTH", 4)));
}

static void say_bytes(weft_id output, gsize bytes)
{
	struct weft_hook_label text = {0};
	weft_hook_put_number(&text, bytes);
	weft_hook_put(&text, bytes == 1 ? " byte" : " bytes");
	weft_hook_say(&text, output);
}

static void wrote(const struct weft__glib_thing *thing, gssize bytes)
{
	weft_id output = thing->site ? weft_create_at(thing->id, WEFT_KIND_STREAM_WRITE, thing->site)
				     : weft_create(thing->id, WEFT_KIND_STREAM_WRITE, NULL);
	if (!output)
		return;
	say_bytes(output, (gsize)bytes);
	weft__resolve_read_later(WEFT_SYSTEM_ID, output, thing->id);
}

gssize weft__g_socket_send_with_blocking(
    GSocket *socket, const gchar *data, gsize size, gboolean blocks, GCancellable *cancellable, GError **error)
{
	struct weft__glib_thing *thing = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (thing && greets_bus(thing, data, size))
		thing->is_untold = true;
	thing = thing ? used(socket) : NULL;
	weft__glib_tag tag = weft__glib_tag_of(thing);
	weft__glib_here.sends = thing ? size : 0;
	gssize sent = weft__glib_real.g_socket_send_with_blocking(socket, data, size, blocks, cancellable, error);
	int saved = errno;
	const weft_id output = weft__glib_here.output;
	weft__glib_here.sends = weft__glib_here.output = 0;
	thing = weft__glib_goes_on() ? weft__glib_thing_of(tag) : NULL;
	if (output && thing && sent >= 0)
		weft__resolve_read_later(WEFT_SYSTEM_ID, output, thing->id);
	else if (output && weft__glib_goes_on())
		weft_fail(WEFT_SYSTEM_ID, output, error && *error ? (*error)->message : "not sent");
	else if (thing && sent > 0)
		wrote(thing, sent);
	errno = saved;
	return sent;
}

/* A call that blocks comes here once the socket has nothing, or no room: what runs waits for the connection, and a write begins.
 */
gboolean weft__g_socket_condition_timed_wait(
    GSocket *socket, GIOCondition condition, gint64 timeout_us, GCancellable *cancellable, GError **error)
{
	const struct weft__glib_thing *thing = timeout_us ? used(socket) : NULL;
	const weft_id id = thing ? thing->id : 0, who = weft__hook_thread.running;
	const bool waits = id && who > 0 && who != id;
	if (id && (condition & G_IO_OUT) && weft__glib_here.sends && !weft__glib_here.output) {
		weft__glib_here.output = weft__create_awaited(id, WEFT_KIND_STREAM_WRITE, thing->site, id, NULL, 0);
		say_bytes(weft__glib_here.output, weft__glib_here.sends);
	}
	if (waits)
		weft_await(who, id);
	gboolean ok = weft__glib_real.g_socket_condition_timed_wait(socket, condition, timeout_us, cancellable, error);
	int saved = errno;
	if (waits && weft_is_on())
		weft_awaits_no_more(who, id);
	errno = saved;
	return ok;
}

/* Also by the last unref. */
gboolean weft__g_socket_close(GSocket *socket, GError **error)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SOCKET, socket) : NULL;
	if (thing) {
		input_ends(thing, true);
		weft__glib_end(thing, NULL);
		weft__glib_thing_remove(thing);
	}
	return weft__glib_real.g_socket_close(socket, error);
}
