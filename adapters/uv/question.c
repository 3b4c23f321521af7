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

/* The name and place are set. */
static void create_request(struct weft__loop_fd *c, weft_id by, bool must_answer)
{
	c->request = c->asked_line ? weft_create(by, WEFT_KIND_REQUEST, c->asked_line)
				   : weft_create_at(by, WEFT_KIND_REQUEST, c->asked_site);
	c->asked_since = weft__stream->last;
	c->is_unanswered = true;
	c->must_answer = must_answer;
	weft_hook_record_label(&c->name, c->request);
	if (c->must_answer)
		weft_should_resolve(c->request);
}

static void begin_request(const struct weft__uv_object *connection, struct weft__loop_fd *c, const struct weft_question *question)
{
	/* The place of a language's runtime says nothing of the program. */
	c->asked_site = weft__hook_language.find_line ? NULL : connection->read_site;
	c->asked_line = connection->line;
	c->name = (struct weft_hook_label){0};
	weft_hook_append(&c->name, question->name);
	create_request(c, connection->id, question->must_answer);
}

static void end_request(struct weft__loop_fd *c, weft_id by, struct weft_record_text *error)
{
	const weft_id request = c->request;
	c->request = 0;
	if (!request)
		return;
	if (error)
		weft_fail_text(by, request, error);
	else
		weft_resolve(by, request);
	if (c->asker)
		weft_read_later(c->asker, request);
	c->asker = 0;
}

weft_id weft__uv_question_read(const struct weft__uv_object *connection, weft_id input, const uv_buf_t *buf, ssize_t got)
{
	struct weft_question question;
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return connection->id;
	const weft_id before = c->request;
	if (got <= 0) {
		c->is_at_end = true;
	} else if (weft_protocol_question(&c->protocol, buf->base, (size_t)got, false, &question)) {
		end_request(c, connection->id, NULL); /* the next question of a pipeline */
		begin_request(connection, c, &question);
		weft__loop_note_trace_parent(c, buf->base, (size_t)got);
	}
	const weft_id id = c->request ? c->request : connection->id;
	const bool continues = c->request && c->request == before;
	c->is_used = c->request != 0;
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
	if (!c->is_unanswered)
		end_request(c, c->request, NULL);
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
	struct weft_answer answer;
	struct weft__loop_fd *c = take_state(connection);
	const uv_buf_t *first = find_first(bufs, count);
	if (!c)
		return;
	if (c->request && c->is_unanswered && first) {
		weft_protocol_answer(&c->protocol, first->base, first->len, &answer);
		if (answer.result[0])
			weft_note(c->request, answer.result);
		c->is_unanswered = answer.is_interim;
	}
	if (!c->is_unanswered && !c->is_used)
		end_request(c, weft__hook_get_thread()->running, NULL);
	weft__loop_release(c);
}

/* ---- This end asks ---- */

/* Returns the state of the accepted connection that is an actor, if its request is open; else NULL. */
static const struct weft__loop_fd *find_open_request(weft__uv_tag actor)
{
	const struct weft__uv_object *object = weft__uv_find(actor);
	const struct weft__hook_fd_info *info =
	    object && object->is_accepted && object->fd >= 0 ? weft__hook_fd_find(object->fd) : NULL;
	return info && weft__loop_is_nothing(&info->loop) && info->loop.request ? &info->loop : NULL;
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
	stream->asker_request = keeper ? keeper->asker_request : from ? from->request : 0;
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
	c->name = (struct weft_hook_label){0};
	weft_hook_append(&c->name, method);
	weft_hook_append(&c->name, !has_host ? "" : is_encrypted ? " https://" : " http://");
	weft_hook_append(&c->name, has_host ? host : "");
	weft_hook_append(&c->name, question->name + (has_host ? length + 1 : 0));
}

void weft__uv_question_ask(struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count)
{
	struct weft_question question;
	struct weft__loop_fd *c = take_state(connection);
	const uv_buf_t *first = find_first(bufs, count);
	if (!c)
		return;
	const weft_id answered = c->request && !c->is_unanswered ? c->request : 0;
	if ((c->request && !answered) || !first ||
	    !weft_protocol_question(&c->protocol, first->base, first->len, false, &question)) {
		weft__loop_release(c);
		return;
	}
	const bool is_first = connection->asker != 0;
	end_request(c, answered, NULL);
	c->asker = find_asker(connection);
	c->maker = connection->asker_request;
	c->asked_line = is_first ? NULL : weft__uv_find_line(false);
	c->asked_line = c->asked_line ? c->asked_line : connection->line;
	c->asked_site = weft__hook_language.find_line ? NULL : connection->site;
	set_name(c, &question, first, connection->is_encrypted);
	create_request(c, c->asker ? c->asker : connection->id, question.must_answer);
	if (c->asker)
		weft_await(c->asker, c->request);
	weft_await(c->request, connection->id);
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
	struct weft_answer answer;
	const weft_id request = c->request, asker = c->asker;
	weft_protocol_answer(&c->protocol, bytes, count, &answer);
	if (answer.result[0])
		weft_note(request, answer.result);
	if (answer.is_interim)
		return connection->id;
	c->is_unanswered = false;
	const struct weft__loop_fd *from = find_open_request(connection->asker_actor);
	if (!from || from->request != c->maker) { /* the latter: it has been answered */
		weft__uv_question_run_answered(request, asker);
		return request; /* weft__uv_question_leave() ends it */
	}
	*actor = connection->asker_actor;
	c->request = c->asker = 0;
	weft_resolve(WEFT_SYSTEM_ID, request);
	if (asker && asker != c->maker)
		weft_read_later(asker, request);
	weft_read(c->maker, request);
	weft__hook_get_thread()->recorded_running = c->maker;
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
	if (got > 0 && c->request && c->is_unanswered)
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

static struct weft_record_text closed = WEFT_COUNTER("closed without an answer"),
			       gone = WEFT_COUNTER("the other end hung up before the answer"),
			       given_up = WEFT_COUNTER("given up before the answer");

void weft__uv_question_end(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	const bool is_lost = c->is_unanswered && c->must_answer;
	end_request(c, weft__hook_get_thread()->running,
	    !is_lost           ? NULL
	    : c->is_at_end     ? &gone
	    : connection->asks ? &given_up
			       : &closed);
	weft__loop_release(c);
}

static void repeat_request(const struct weft__uv_object *connection, const struct weft__loop_fd *c)
{
	const weft_id by = c->asker ? c->asker : connection->id;
	if (c->asked_line)
		weft_pending(by, c->request, WEFT_KIND_REQUEST, c->asked_line, c->asked_since, c->name.text);
	else
		weft_pending_at(by, c->request, WEFT_KIND_REQUEST, c->asked_site, c->asked_since, c->name.text);
	if (c->must_answer)
		weft_should_resolve(c->request);
	if (c->asker)
		weft_still_awaits(c->asker, c->request);
	if (connection->asks)
		weft_still_awaits(c->request, connection->id);
}

void weft__uv_question_list(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	if (c->request)
		repeat_request(connection, c);
	weft__loop_release(c);
}
