/* http2.c: requests of HTTP/2, from what nghttp2 decodes and is asked to send.
 *
 * A connection has many requests at a time, so they are kept by session and stream.  nghttp2 gets the bytes of a session in the
 * callback of a read of libuv, directly or behind OpenSSL: that connection is the session's, unless code of the program runs
 * already.  nghttp2's types are declared here as far as they are read.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/session.h"
#include "adapters/hook/table.h"
#include "adapters/hook/thread_memory.h"
#include "adapters/uv/callback.h"
#include "adapters/uv/question.h"
#include "protocol/protocol.h"

enum { HEADERS = 1, MAX_STREAMS = 1 << 14 };
enum { CATEGORY_REQUEST };

struct frame {
	size_t bytes;
	int32_t stream;
	uint8_t type, flags, reserved;
	size_t padding;
	int32_t depends_on, weight;
	uint8_t is_exclusive;
	void *fields;
	size_t field_count;
	int category;
};

struct field {
	const uint8_t *name, *value;
	size_t name_bytes, value_bytes;
	uint8_t flags;
};

struct bytes {
	const uint8_t *at;
	size_t count;
};

typedef int begin_headers_fn(void *session, const struct frame *frame, void *user);
typedef int header_fn(void *session, const struct frame *frame, void *name, void *value, uint8_t flags, void *user);
typedef int frame_fn(void *session, const struct frame *frame, void *user);
typedef int close_fn(void *session, int32_t stream, uint32_t error, void *user);

/* An open request. */
struct stream {
	const void *session;
	int32_t number;
	bool asks; /* this end asks */
	struct weft__hook_request request;
};

static const struct weft_hook_module *module;
static struct bytes (*get_bytes)(void *);

/* Callbacks of Node.js. */
static header_fn *their_header;
static begin_headers_fn *their_begin_headers;
static frame_fn *their_frame;
static close_fn *their_close;

struct here {
	unsigned epoch;
	struct table streams;         /* by session and number */
	struct table sessions;        /* tags of connections */
	const struct stream *arrived; /* the request whose handler runs */
	/* The head that is being decoded. */
	const void *session;
	int32_t stream;
	struct weft_http2_head head;
	char method[16], path[WEFT_QUESTION_BYTES], status[4];
};

static struct here of_threads WEFT_HOOK_PER_THREAD;

static inline struct here *get_here(void)
{
	return &WEFT_HOOK_HERE(of_threads);
}

static uint64_t get_key(const void *session, int32_t number)
{
	return ((uint64_t)(uintptr_t)session * 0x9e3779b97f4a7c15u ^ (uint32_t)number) | (uint64_t)1 << 63;
}

static struct stream *find_stream(const void *session, int32_t number)
{
	struct stream *s = weft__table_find(&get_here()->streams, get_key(session, number));
	return s && s->session == session && s->number == number ? s : NULL;
}

static const struct weft__uv_object *find_connection(const void *session)
{
	return weft__uv_find((weft__uv_tag)(uintptr_t)weft__table_find(&get_here()->sessions, table_key(session)));
}

static uint64_t list_streams(void *data, uint64_t cursor, unsigned budget)
{
	for (; cursor < get_here()->streams.size && budget > 0; cursor++) {
		const struct stream *s = get_here()->streams.entries[cursor].value;
		if (!get_here()->streams.entries[cursor].key)
			continue;
		const struct weft__uv_object *connection = find_connection(s->session);
		budget--;
		weft__hook_request_repeat(&s->request, s->asks && connection ? connection->id : 0);
	}
	return cursor < get_here()->streams.size ? cursor : 0;
}

static void forget(void)
{
	for (size_t i = 0; i < get_here()->streams.size; i++)
		free(get_here()->streams.entries[i].value);
	free(get_here()->streams.entries);
	free(get_here()->sessions.entries);
	get_here()->streams = get_here()->sessions = (struct table){0};
	get_here()->arrived = NULL;
	get_here()->session = NULL;
}

/* Returns whether this thread records.  The library of Debian's Node.js sets its callbacks before this library begins: then no
 * answer would be seen. */
static bool begin(void)
{
	if (!weft_is_on() || !their_begin_headers || !their_header || !their_frame || !their_close)
		return false;
	if (get_here()->epoch == weft__hook_epoch)
		return true;
	forget();
	get_here()->epoch = weft__hook_epoch;
	weft_hook_register_list(list_streams, get_here());
	return true;
}

/* Creates the stream of a request that has a line and a name, but has not begun. */
static struct stream *create_stream(const void *session, int32_t number, struct weft_record_site *line)
{
	struct stream *s = get_here()->streams.count < MAX_STREAMS ? calloc(1, sizeof *s) : NULL;
	if (!s || find_stream(session, number) || !weft__table_set(&get_here()->streams, get_key(session, number), s)) {
		free(s);
		return NULL;
	}
	char name[WEFT_QUESTION_BYTES];
	weft_protocol_http2_name(&get_here()->head, name);
	s->session = session;
	s->number = number;
	s->request.line = line;
	weft_hook_append(&s->request.name, name);
	return s;
}

static void end_stream(struct stream *s, weft_id by, struct weft_record_text *error)
{
	weft__hook_request_end(&s->request, by, error);
	weft__table_remove(&get_here()->streams, get_key(s->session, s->number));
	if (get_here()->arrived == s)
		get_here()->arrived = NULL;
	free(s);
}

/* ---- What the other end sends ---- */

static int handle_begin_headers(void *session, const struct frame *frame, void *user)
{
	get_here()->session = session;
	get_here()->stream = frame->stream;
	get_here()->method[0] = get_here()->path[0] = get_here()->status[0] = 0;
	return their_begin_headers(session, frame, user);
}

static void copy(char *to, size_t size, struct bytes from)
{
	const size_t count = from.count < size ? from.count : size - 1;
	memcpy(to, from.at, count);
	to[count] = 0;
}

static bool is_field(struct bytes name, const char *wanted)
{
	return name.count == strlen(wanted) && !memcmp(name.at, wanted, name.count);
}

static int handle_header(void *session, const struct frame *frame, void *name, void *value, uint8_t flags, void *user)
{
	const struct bytes of = get_bytes(name);
	if (get_here()->session == session && get_here()->stream == frame->stream && of.count > 1 && of.at[0] == ':') {
		if (is_field(of, ":method"))
			copy(get_here()->method, sizeof get_here()->method, get_bytes(value));
		else if (is_field(of, ":path"))
			copy(get_here()->path, sizeof get_here()->path, get_bytes(value));
		else if (is_field(of, ":status"))
			copy(get_here()->status, sizeof get_here()->status, get_bytes(value));
	}
	return their_header(session, frame, name, value, flags, user);
}

/* Returns the request that begins or is answered with a frame; NULL: none. */
static struct stream *take_head(const void *session, const struct frame *frame)
{
	if (frame->type != HEADERS || get_here()->session != session || get_here()->stream != frame->stream || !begin())
		return NULL;
	get_here()->session = NULL;
	struct stream *s = find_stream(session, frame->stream);
	if (s)
		return s->asks && get_here()->status[0] && get_here()->status[0] != '1' ? s : NULL;
	const struct weft__uv_object *connection = find_connection(session);
	if (frame->category != CATEGORY_REQUEST || !connection || !connection->id || !get_here()->method[0])
		return NULL;
	get_here()->head = (struct weft_http2_head){.method = get_here()->method, .path = get_here()->path};
	s = create_stream(session, frame->stream, connection->line);
	if (s)
		weft__hook_request_begin(&s->request, connection->id, 0, 0, true);
	return s;
}

static int handle_frame(void *session, const struct frame *frame, void *user)
{
	struct weft__uv_here *uv = weft__uv_get_here();
	const int saved = errno;
	struct stream *s = take_head(session, frame);
	const int32_t number = frame->stream;
	errno = saved;
	if (!s)
		return their_frame(session, frame, user);
	const struct stream *outer = get_here()->arrived;
	const weft_id before = weft__hook_get_thread()->running, id = s->request.id, answered = uv->answered,
		      asked_by = uv->asked_by;
	s->request.is_unanswered = !s->asks;
	if (s->asks) {
		weft_note(id, get_here()->status);
		weft__uv_question_run_answered(id, s->request.asker);
	} else
		weft_hook_record_running(id);
	get_here()->arrived = s;
	weft__hook_get_thread()->running = id;
	const int status = their_frame(session, frame, user);
	const int saved_after = errno;
	get_here()->arrived = outer;
	uv->answered = answered;
	uv->asked_by = asked_by;
	s = weft_is_on() ? find_stream(session, number) : NULL;
	if (s && s->request.id == id && !s->request.is_unanswered)
		end_stream(s, id, NULL);
	weft__hook_get_thread()->running = before;
	if (weft_is_on())
		weft_hook_record_running(before);
	errno = saved_after;
	return status;
}

static struct weft_record_text closed = WEFT_COUNTER("the stream was closed before the answer");

static int handle_close(void *session, int32_t number, uint32_t error, void *user)
{
	struct stream *s = begin() ? find_stream(session, number) : NULL;
	if (s && s->request.is_unanswered)
		end_stream(s, weft__hook_get_thread()->running, &closed);
	return their_close(session, number, error, user);
}

/* Programs with several users of nghttp2 have several such functions; those of the first one are wrapped. */
#define DEFINE_SETTER(NAME, TYPE)                                                                                                \
	static void (*set_##NAME)(void *, TYPE *);                                                                               \
	static void wrap_set_##NAME(void *callbacks, TYPE *theirs)                                                               \
	{                                                                                                                        \
		if (theirs && !their_##NAME)                                                                                     \
			their_##NAME = theirs;                                                                                   \
		set_##NAME(callbacks, theirs &&theirs == their_##NAME ? handle_##NAME : theirs);                                 \
	}
DEFINE_SETTER(begin_headers, begin_headers_fn)
DEFINE_SETTER(header, header_fn)
DEFINE_SETTER(frame, frame_fn)
DEFINE_SETTER(close, close_fn)

/* ---- The connection of a session ---- */

static void bind_session(const void *session)
{
	if (!begin() || find_connection(session) || weft__hook_language.runs_code())
		return;
	const struct weft__uv_object *connection = weft__uv_find(weft__uv_get_here()->actor);
	if (!connection || !(connection->is_accepted || connection->asks) ||
	    !weft__table_set(&get_here()->sessions, table_key(session), (void *)(uintptr_t)weft__uv_get_here()->actor))
		return;
	for (size_t i = 0; i < get_here()->streams.size; i++) {
		const struct stream *s = get_here()->streams.entries[i].value;
		if (get_here()->streams.entries[i].key && s->session == session && s->asks)
			weft_await(s->request.id, connection->id);
	}
}

#define DEFINE_RECEIVE(NAME)                                                                                                     \
	static ssize_t (*NAME)(void *, const uint8_t *, size_t);                                                                 \
	static ssize_t wrap_##NAME(void *session, const uint8_t *bytes, size_t count)                                            \
	{                                                                                                                        \
		const int saved = errno;                                                                                         \
		bind_session(session);                                                                                           \
		errno = saved;                                                                                                   \
		return NAME(session, bytes, count);                                                                              \
	}
DEFINE_RECEIVE(receive)
DEFINE_RECEIVE(receive_2)

static void (*delete_session)(void *);

static void wrap_delete(void *session)
{
	const int saved = errno;
	for (size_t i = 0; begin() && i < get_here()->streams.size; i++) {
		struct stream *s = get_here()->streams.entries[i].value;
		if (get_here()->streams.entries[i].key && s->session == session) {
			end_stream(s, weft__hook_get_thread()->running, &closed);
			i = (size_t)-1; /* the entries have moved */
		}
	}
	weft__table_remove(&get_here()->sessions, table_key(session));
	errno = saved;
	delete_session(session);
}

/* ---- What this end sends ---- */

static struct bytes find_value(const struct field fields[], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (is_field((struct bytes){fields[i].name, fields[i].name_bytes}, name))
			return (struct bytes){fields[i].value, fields[i].value_bytes};
	return (struct bytes){(const uint8_t *)"", 0};
}

/* A request that is sent when its connection has connected is asked by the promise for which that was made. */
static weft_id find_asker(void)
{
	const struct weft__uv_object *actor = weft__uv_find(weft__uv_get_here()->actor);
	const weft_id asker = weft__uv_question_get_asker();
	return actor && actor->asks && actor->id == asker ? actor->asker : asker;
}

static void record_question(const void *session, int32_t number, const struct field fields[], size_t count)
{
	char scheme[8], host[WEFT_HOST_BYTES], method[sizeof get_here()->method], path[WEFT_QUESTION_BYTES];
	const struct weft__uv_object *connection = find_connection(session);
	const weft_id asker = find_asker();
	copy(scheme, sizeof scheme, find_value(fields, count, ":scheme"));
	copy(host, sizeof host, find_value(fields, count, ":authority"));
	copy(method, sizeof method, find_value(fields, count, ":method"));
	copy(path, sizeof path, find_value(fields, count, ":path"));
	get_here()->head = (struct weft_http2_head){method, path, scheme, host};
	struct stream *s = create_stream(session, number, weft__uv_find_line(false));
	if (!s)
		return;
	s->asks = true;
	weft__hook_request_begin(
	    &s->request, asker ? asker : weft__hook_get_thread()->running, asker, connection ? connection->id : 0, true);
}

#define DEFINE_REQUEST(NAME)                                                                                                     \
	static int32_t (*NAME)(void *, const void *, const struct field *, size_t, const void *, void *);                        \
	static int32_t wrap_##NAME(                                                                                              \
	    void *session, const void *priority, const struct field *fields, size_t count, const void *body, void *user)         \
	{                                                                                                                        \
		const int32_t number = NAME(session, priority, fields, count, body, user);                                       \
		const int saved = errno;                                                                                         \
		if (number > 0 && begin())                                                                                       \
			record_question(session, number, fields, count);                                                         \
		errno = saved;                                                                                                   \
		return number;                                                                                                   \
	}
DEFINE_REQUEST(submit_request)
DEFINE_REQUEST(submit_request_2)

static void record_answer(const void *session, int32_t number, const struct field fields[], size_t count)
{
	struct stream *s = find_stream(session, number);
	char status[sizeof get_here()->status];
	if (!s || s->asks || !s->request.is_unanswered)
		return;
	copy(status, sizeof status, find_value(fields, count, ":status"));
	if (status[0])
		weft_note(s->request.id, status);
	s->request.is_unanswered = false;
	if (s != get_here()->arrived)
		end_stream(s, weft__hook_get_thread()->running, NULL);
}

#define DEFINE_RESPONSE(NAME)                                                                                                    \
	static int (*NAME)(void *, int32_t, const struct field *, size_t, const void *);                                         \
	static int wrap_##NAME(void *session, int32_t number, const struct field *fields, size_t count, const void *body)        \
	{                                                                                                                        \
		const int status = NAME(session, number, fields, count, body);                                                   \
		const int saved = errno;                                                                                         \
		if (status == 0 && begin())                                                                                      \
			record_answer(session, number, fields, count);                                                           \
		errno = saved;                                                                                                   \
		return status;                                                                                                   \
	}
DEFINE_RESPONSE(submit_response)
DEFINE_RESPONSE(submit_response_2)

static const struct weft_hook_function functions[] = {WEFT_HOOK_CALLED(nghttp2_rcbuf_get_buf, get_bytes),
    WEFT_HOOK_TAKEN(nghttp2_session_callbacks_set_on_begin_headers_callback, wrap_set_begin_headers, set_begin_headers),
    WEFT_HOOK_TAKEN(nghttp2_session_callbacks_set_on_header_callback2, wrap_set_header, set_header),
    WEFT_HOOK_TAKEN(nghttp2_session_callbacks_set_on_frame_recv_callback, wrap_set_frame, set_frame),
    WEFT_HOOK_TAKEN(nghttp2_session_callbacks_set_on_stream_close_callback, wrap_set_close, set_close),
    WEFT_HOOK_TAKEN(nghttp2_session_mem_recv, wrap_receive, receive),
    WEFT_HOOK_TAKEN(nghttp2_session_mem_recv2, wrap_receive_2, receive_2),
    WEFT_HOOK_TAKEN(nghttp2_session_del, wrap_delete, delete_session),
    WEFT_HOOK_TAKEN(nghttp2_submit_request, wrap_submit_request, submit_request),
    WEFT_HOOK_TAKEN(nghttp2_submit_request2, wrap_submit_request_2, submit_request_2),
    WEFT_HOOK_TAKEN(nghttp2_submit_response, wrap_submit_response, submit_response),
    WEFT_HOOK_TAKEN(nghttp2_submit_response2, wrap_submit_response_2, submit_response_2), {0}};

/* Debian's Node.js uses the library of nghttp2; other packages contain it. */
static bool is_of_node(const struct weft_hook_module *of, char *version, size_t size)
{
	version[0] = 0;
	return (weft__hook_language.runs_code || weft_hook_symbol(of, "napi_create_function")) &&
	       weft_hook_symbol(of, "nghttp2_rcbuf_get_buf");
}

const struct weft_hook_adapter weft_uv_http2_adapter = {
    .name = "nghttp2 of Node.js",
    .library = "libnghttp2.so",
    .prefix = "nghttp2_",
    .mark = "nghttp2_session_mem_recv",
    .is_listed_when_called = true,
    .is_silent_when_refused = true,
    WEFT_HOOK_SETS((functions), (&module)),
    .accepts = is_of_node,
    .thread_ends = forget,
};
