/* question.c: requests on connections of libuv, and their answers.
 *
 * The state of a request is that of the connection's descriptor (hook/fd_table.h), which is also used for programs with an event
 * loop of their own.  SPDX-License-Identifier: ISC */
#include "adapters/uv/question.h"

#include <string.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/fd_table.h"
#include "adapters/uv/callback.h"

/* Returns the locked state of the connection's descriptor; NULL if the connection's requests are not recorded. */
static struct weft__loop_fd *take_state(const struct weft__uv_object *connection)
{
	struct weft__hook_fd_info *info = connection->fd >= 0 ? weft__hook_fd_find(connection->fd) : NULL;
	struct weft__loop_fd *c = info ? &info->loop : NULL;
	if (!weft__loop_take(c))
		return NULL;
	if (!weft__loop_is_known(c))
		weft__loop_begin_entry(c, WEFT__LOOP_NOTHING);
	if (weft__loop_is_nothing(c))
		return c;
	weft__loop_release(c);
	return NULL;
}

static void begin_request(const struct weft__uv_object *connection, struct weft__loop_fd *c, const struct weft_question *question)
{
	/* The place of a language's runtime says nothing of the program. */
	c->request.site = weft__hook_language.find_line ? NULL : connection->read_site;
	c->request.line = connection->line;
	c->request.name = (struct weft_hook_label){0};
	weft_hook_append(&c->request.name, question->name);
	weft__hook_request_begin(&c->request, connection->id, 0, 0, question->must_answer);
}

weft_id weft__uv_question_read(const struct weft__uv_object *connection, weft_id input, const uv_buf_t *buf, ssize_t got)
{
	struct weft_question question;
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return connection->id;
	const weft_id before = c->request.id;
	if (got <= 0) {
		c->is_at_end = true;
	} else if (weft_protocol_question(&c->protocol, buf->base, (size_t)got, false, &question)) {
		weft__hook_request_end(&c->request, connection->id, NULL); /* the next question of a pipeline */
		begin_request(connection, c, &question);
		weft__hook_request_note_parent(&c->request, &c->protocol, buf->base, (size_t)got);
	}
	const weft_id id = c->request.id ? c->request.id : connection->id;
	const bool continues = c->request.id && c->request.id == before;
	c->is_used = c->request.id != 0;
	weft__loop_release(c);
	if (continues && input) {
		/* This input is a part of the request that came later than the request's head, such as a body. */
		weft_read(id, input);
		weft__hook_get_thread()->recorded_running = id;
	} else if (id != connection->id) {
		weft_hook_record_running(id);
	}
	return id;
}

void weft__uv_question_leave(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	c->is_used = false;
	if (!c->request.is_unanswered)
		weft__hook_request_end(&c->request, c->request.id, NULL);
	weft__loop_release(c);
}

static const uv_buf_t *find_first(const uv_buf_t bufs[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (bufs[i].len > 0)
			return &bufs[i];
	return NULL;
}

void weft__uv_question_answer(const struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count)
{
	struct weft__loop_fd *c = take_state(connection);
	const uv_buf_t *first = find_first(bufs, count);
	if (!c)
		return;
	if (c->request.id && c->request.is_unanswered && first)
		weft__hook_request_note_answer(&c->request, &c->protocol, first->base, first->len);
	if (!c->request.is_unanswered && !c->is_used)
		weft__hook_request_end(&c->request, weft__hook_get_thread()->running, NULL);
	weft__loop_release(c);
}

/* ---- This end asks ---- */

/* Returns the state of the accepted connection that is an actor, if its request is open; else NULL. */
static const struct weft__loop_fd *find_open_request(weft__uv_tag actor)
{
	const struct weft__uv_object *object = weft__uv_find(actor);
	const struct weft__hook_fd_info *info =
	    object && object->is_accepted && object->fd >= 0 ? weft__hook_fd_find(object->fd) : NULL;
	return info && weft__loop_is_nothing(&info->loop) && info->loop.request.id ? &info->loop : NULL;
}

/* Returns the handle by which a language's runtime keeps the loop for setImmediate(), if code that it keeps the loop for runs;
 * else NULL.  It works for the promise that called setImmediate() first. */
static const struct weft__uv_object *find_running_keeper(void)
{
	const struct weft__uv_object *keeper = weft__uv_find(weft__uv_get_here()->keeper);
	return keeper && keeper->id && keeper->id == weft__hook_get_thread()->running ? keeper : NULL;
}

weft_id weft__uv_question_get_asker(void)
{
	const struct weft__uv_here *here = weft__uv_get_here();
	const weft_id running = weft__hook_get_thread()->running;
	const struct weft__uv_object *keeper = find_running_keeper();
	return keeper ? keeper->asker : here->answered && here->answered == running ? here->asked_by : running;
}

weft_id weft__uv_question_note_asker(struct weft__uv_object *stream)
{
	const struct weft__loop_fd *from = find_open_request(weft__uv_get_here()->actor);
	const struct weft__uv_object *keeper = find_running_keeper();
	stream->asker_actor = keeper ? keeper->asker_actor : weft__uv_get_here()->actor;
	stream->asker_request = keeper ? keeper->asker_request : from ? from->request.id : 0;
	return weft__uv_question_get_asker();
}

/* Finds the promise that asks.  The first question on a connection is asked by the promise for which that was made, and is
 * written when the connect has ended. */
static weft_id find_asker(struct weft__uv_object *connection)
{
	const weft_id made_for = connection->asker;
	connection->asker = 0;
	if (made_for)
		return made_for;
	const weft_id asker = weft__uv_question_note_asker(connection);
	return asker == connection->id ? 0 : asker;
}

/* Sets the name, such as "GET http://host/path". */
static void set_name(struct weft__loop_fd *c, const struct weft_question *question, const uv_buf_t *head, bool is_encrypted)
{
	char host[WEFT_HOST_BYTES] = "";
	char method[WEFT_QUESTION_BYTES] = "";
	size_t length = 0;
	if (c->protocol.protocol == WEFT_PROTOCOL_HTTP1)
		weft_protocol_host(head->base, head->len, host);
	while (host[0] && question->name[length] && question->name[length] != ' ')
		length++;
	const bool has_host = length && question->name[length + 1] == '/';
	memcpy(method, question->name, has_host ? length : 0);
	struct weft_hook_label *name = &c->request.name;
	*name = (struct weft_hook_label){0};
	weft_hook_append(name, method);
	weft_hook_append(name, !has_host ? "" : is_encrypted ? " https://" : " http://");
	weft_hook_append(name, has_host ? host : "");
	weft_hook_append(name, question->name + (has_host ? length + 1 : 0));
}

void weft__uv_question_ask(struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count)
{
	struct weft_question question;
	struct weft__loop_fd *c = take_state(connection);
	const uv_buf_t *first = find_first(bufs, count);
	if (!c)
		return;
	const weft_id answered = c->request.id && !c->request.is_unanswered ? c->request.id : 0;
	if ((c->request.id && !answered) || !first ||
	    !weft_protocol_question(&c->protocol, first->base, first->len, false, &question)) {
		weft__loop_release(c);
		return;
	}
	const bool is_first = connection->asker != 0;
	weft__hook_request_end(&c->request, answered, NULL);
	const weft_id asker = find_asker(connection);
	c->maker = connection->asker_request;
	c->request.line = is_first ? NULL : weft__uv_find_line(false);
	c->request.line = c->request.line ? c->request.line : connection->line;
	c->request.site = weft__hook_language.find_line ? NULL : connection->site;
	set_name(c, &question, first, connection->is_encrypted);
	weft__hook_request_begin(&c->request, asker ? asker : connection->id, asker, connection->id, question.must_answer);
	weft__loop_release(c);
}

void weft__uv_question_run_answered(weft_id request, weft_id asker)
{
	struct weft__uv_here *here = weft__uv_get_here();
	here->answered = request;
	here->asked_by = asker;
	if (!here->read) {
		weft_hook_record_running(request);
		return;
	}
	weft_read(request, here->read);
	weft__hook_get_thread()->recorded_running = request;
}

/* Reads the first bytes of an answer.  Returns the promise whose code is called for them. */
static weft_id take_answer(
    const struct weft__uv_object *connection, struct weft__loop_fd *c, const void *bytes, size_t count, weft__uv_tag *actor)
{
	weft__hook_request_note_answer(&c->request, &c->protocol, bytes, count);
	if (c->request.is_unanswered)
		return connection->id;
	const struct weft__loop_fd *from = find_open_request(connection->asker_actor);
	if (!from || from->request.id != c->maker) { /* the latter: it has been answered */
		weft__uv_question_run_answered(c->request.id, c->request.asker);
		return c->request.id; /* weft__uv_question_leave() ends it */
	}
	*actor = connection->asker_actor;
	weft__hook_request_deliver(&c->request, c->maker);
	return c->maker;
}

weft_id weft__uv_question_get_answer(
    const struct weft__uv_object *connection, const void *bytes, ssize_t got, weft__uv_tag *actor)
{
	struct weft__loop_fd *c = take_state(connection);
	weft_id id = connection->id;
	if (!c)
		return id;
	c->is_at_end |= got <= 0;
	if (got > 0 && c->request.id && c->request.is_unanswered)
		id = take_answer(connection, c, bytes, (size_t)got, actor);
	weft__loop_release(c);
	return id;
}

/* ---- TLS ---- */

/* The bytes of the handshake are of no protocol. */
void weft__uv_question_encrypt(struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	connection->is_encrypted = true;
	c->protocol = (struct weft_protocol_state){0};
	weft__loop_release(c);
}

void weft__uv_question_decrypted(const struct weft__uv_object *connection, const void *bytes, size_t got)
{
	struct weft__uv_here *here = weft__uv_get_here();
	const uv_buf_t buf = {.base = (char *)(uintptr_t)bytes, .len = got};
	weft__uv_tag actor = weft__uv_tag_of(connection);
	const bool is_in_callback = here->actor == actor;
	const weft_id id = connection->asks ? weft__uv_question_get_answer(connection, bytes, (ssize_t)got, &actor)
					    : weft__uv_question_read(connection, 0, &buf, (ssize_t)got);
	if (is_in_callback) {
		weft__hook_get_thread()->running = id;
		here->actor = actor;
	}
}

/* ---- Ends and checkpoints ---- */

void weft__uv_question_end(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	weft__hook_request_end(&c->request, weft__hook_get_thread()->running,
	    weft__hook_request_get_loss(&c->request, connection->asks, c->is_at_end));
	weft__loop_release(c);
}

void weft__uv_question_list(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	if (c->request.id)
		weft__hook_request_repeat(&c->request, connection->asks ? connection->id : 0);
	weft__loop_release(c);
}
