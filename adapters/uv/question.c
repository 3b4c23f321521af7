/* question.c: requests that arrive on connections of libuv, and their answers.
 *
 * The state is that of the connection's descriptor (hook/fd_table.h), which programs with an event loop of their own use, too.
 * SPDX-License-Identifier: ISC */
#include "adapters/uv/question.h"

#include "adapters/hook/callers.h"
#include "adapters/hook/fd_table.h"

/* Returns the taken state of the connection's descriptor; NULL: its requests are not recorded. */
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

static void create_request(
    const struct weft__uv_object *connection, struct weft__loop_fd *c, const struct weft_question *question)
{
	/* The place of a language's runtime says nothing of the program. */
	c->asked_site = weft__hook_language.find_line ? NULL : connection->read_site;
	c->request = connection->line ? weft_create(connection->id, WEFT_KIND_REQUEST, connection->line)
				      : weft_create_at(connection->id, WEFT_KIND_REQUEST, c->asked_site);
	c->asked_since = weft__stream->last;
	c->is_unanswered = true;
	c->must_answer = question->must_answer;
	c->name = (struct weft_hook_label){0};
	weft_hook_append(&c->name, question->name);
	weft_hook_record_label(&c->name, c->request);
	if (c->must_answer)
		weft_should_resolve(c->request);
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
		create_request(connection, c, &question);
	}
	const weft_id id = c->request ? c->request : connection->id;
	const bool continues = c->request && c->request == before;
	c->is_used = c->request != 0;
	weft__loop_release(c);
	if (continues && input) {
		/* A part of the request that came later than its head, such as a body. */
		weft_read(id, input);
		weft__hook_thread.recorded_running = id;
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

void weft__uv_question_answer(const struct weft__uv_object *connection, const uv_buf_t bufs[], unsigned count)
{
	struct weft_answer answer;
	struct weft__loop_fd *c = take_state(connection);
	unsigned first = 0;
	if (!c)
		return;
	while (first < count && bufs[first].len == 0)
		first++;
	if (c->request && c->is_unanswered && first < count) {
		weft_protocol_answer(&c->protocol, bufs[first].base, bufs[first].len, &answer);
		if (answer.result[0])
			weft_note(c->request, answer.result);
		c->is_unanswered = answer.is_interim;
	}
	if (!c->is_unanswered && !c->is_used)
		end_request(c, weft__hook_thread.running, NULL);
	weft__loop_release(c);
}

static struct weft_record_text closed = WEFT_COUNTER("closed without an answer"),
			       gone = WEFT_COUNTER("the other end hung up before the answer");

void weft__uv_question_end(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	const bool is_lost = c->is_unanswered && c->must_answer;
	end_request(c, weft__hook_thread.running, is_lost ? c->is_at_end ? &gone : &closed : NULL);
	weft__loop_release(c);
}

void weft__uv_question_list(const struct weft__uv_object *connection)
{
	struct weft__loop_fd *c = take_state(connection);
	if (!c)
		return;
	if (c->request && connection->line)
		weft_pending(connection->id, c->request, WEFT_KIND_REQUEST, connection->line, c->asked_since, c->name.text);
	else if (c->request)
		weft_pending_at(connection->id, c->request, WEFT_KIND_REQUEST, c->asked_site, c->asked_since, c->name.text);
	if (c->request && c->must_answer)
		weft_should_resolve(c->request);
	weft__loop_release(c);
}
