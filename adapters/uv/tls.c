/* tls.c: requests on encrypted connections, from what OpenSSL encrypts and decrypts.
 *
 * Node.js gives OpenSSL the bytes that libuv has read, and libuv those that OpenSSL has written, so no descriptor tells which
 * connection an SSL object belongs to.  When a read begins a record of the handshake, the first call of OpenSSL in its callback
 * is for that connection, unless code of the program runs already.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/session.h"
#include "adapters/hook/table.h"
#include "adapters/uv/question.h"

static const struct weft_hook_module *module;
static int (*read_plain)(void *, void *, int);
static int (*write_plain)(void *, const void *, int);
static void (*free_session)(void *);

/* Tags of connections, by SSL object.  A tag of an earlier recording finds nothing. */
static __thread struct table sessions __attribute__((tls_model("initial-exec")));

/* Returns the connection of an SSL object; NULL: unknown. */
static struct weft__uv_object *find_connection(const void *session)
{
	const weft__uv_tag tag = (weft__uv_tag)(uintptr_t)weft__table_find(&sessions, table_key(session));
	const weft__uv_tag next = weft__uv_get_here()->encrypted;
	struct weft__uv_object *connection = tag ? weft__uv_find(tag) : NULL;
	weft__uv_get_here()->encrypted = 0;
	if (connection || !next || !weft__hook_language.runs_code || weft__hook_language.runs_code())
		return connection;
	connection = weft__uv_find(next);
	if (!connection || !weft__table_set(&sessions, table_key(session), (void *)(uintptr_t)next))
		return NULL;
	weft__uv_question_encrypt(connection);
	return connection;
}

static int wrap_read(void *session, void *bytes, int size)
{
	struct weft__uv_object *connection = weft_is_on() ? find_connection(session) : NULL;
	const int got = read_plain(session, bytes, size), saved = errno;
	if (connection && got > 0)
		weft__uv_question_decrypted(connection, bytes, (size_t)got);
	errno = saved;
	return got;
}

static int wrap_write(void *session, const void *bytes, int size)
{
	struct weft__uv_object *connection = weft_is_on() ? find_connection(session) : NULL;
	const int put = write_plain(session, bytes, size), saved = errno;
	const uv_buf_t written = {.base = (char *)(uintptr_t)bytes, .len = put > 0 ? (size_t)put : 0};
	if (connection && put > 0 && connection->asks)
		weft__uv_question_ask(connection, &written, 1);
	else if (connection && put > 0)
		weft__uv_question_answer(connection, &written, 1);
	errno = saved;
	return put;
}

static void wrap_free(void *session)
{
	const int saved = errno;
	weft__table_remove(&sessions, table_key(session));
	errno = saved;
	free_session(session);
}

static const struct weft_hook_function functions[] = {WEFT_HOOK_TAKEN(SSL_read, wrap_read, read_plain),
    WEFT_HOOK_TAKEN(SSL_write, wrap_write, write_plain), WEFT_HOOK_TAKEN(SSL_free, wrap_free, free_session), {0}};

/* Debian's Node.js uses the library of OpenSSL; other packages contain it. */
static bool is_of_node(const struct weft_hook_module *of, char *version, size_t size)
{
	version[0] = 0;
	return weft__hook_language.runs_code || weft_hook_symbol(of, "napi_create_function");
}

static void end_thread(void)
{
	free(sessions.entries);
	sessions = (struct table){0};
}

const struct weft_hook_adapter weft_uv_tls_adapter = {
    .name = "OpenSSL of Node.js",
    .library = "libssl.so",
    .prefix = "SSL_",
    .mark = "SSL_read",
    .is_listed_when_called = true,
    .is_silent_when_refused = true,
    WEFT_HOOK_SETS((functions), (&module)),
    .accepts = is_of_node,
    .thread_ends = end_thread,
};
