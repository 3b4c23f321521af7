/* request.c: see request.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/request.h"

#include "adapters/hook/address_cache.h"
#include "adapters/hook/thread.h"

void weft__hook_request_set_place(struct weft__hook_request *r, const void *caller)
{
	weft_id input;
	const struct weft_hook_language_call *call = weft_hook_find_call(&input);
	r->line = call ? call->site : NULL;
	r->site = call ? NULL : weft_hook_site(caller);
}

void weft__hook_request_begin(struct weft__hook_request *r, weft_id by, weft_id asker, weft_id connection, bool must_answer)
{
	r->id = r->line ? weft_create(by, WEFT_KIND_REQUEST, r->line) : weft_create_at(by, WEFT_KIND_REQUEST, r->site);
	r->since = weft__stream->last;
	r->by = by;
	r->asker = asker;
	r->is_unanswered = true;
	r->must_answer = must_answer;
	weft_hook_record_label(&r->name, r->id);
	if (must_answer)
		weft_should_resolve(r->id);
	if (asker)
		weft_await(asker, r->id);
	if (connection)
		weft_await(r->id, connection);
}

void weft__hook_request_note_parent(
    const struct weft__hook_request *r, const struct weft_protocol_state *protocol, const void *bytes, size_t count)
{
	char parent[WEFT_TRACE_PARENT_BYTES];
	if (protocol->protocol != WEFT_PROTOCOL_HTTP1)
		return;
	weft_protocol_trace_parent(bytes, count, parent);
	if (parent[0])
		weft__detail(r->id, WEFT_DETAIL_TRACE_PARENT, 0, parent);
}

void weft__hook_request_note_answer(
    struct weft__hook_request *r, const struct weft_protocol_state *protocol, const void *bytes, size_t count)
{
	struct weft_answer answer;
	weft_protocol_answer(protocol, bytes, count, &answer);
	if (answer.result[0])
		weft_note(r->id, answer.result);
	r->is_unanswered = answer.is_interim;
}

void weft__hook_request_end(struct weft__hook_request *r, weft_id by, struct weft_record_text *error)
{
	const weft_id request = r->id, asker = r->asker;
	r->id = r->asker = 0;
	if (!request)
		return;
	if (error)
		weft_fail_text(by, request, error);
	else
		weft_resolve(by, request);
	if (asker)
		weft_read_later(asker, request);
}

void weft__hook_request_deliver(struct weft__hook_request *r, weft_id reader)
{
	const weft_id request = r->id;
	r->asker = r->asker == reader ? 0 : r->asker;
	weft__hook_request_end(r, WEFT_SYSTEM_ID, NULL);
	if (!reader)
		return;
	weft_read(reader, request);
	weft__hook_get_thread()->recorded_running = reader;
}

struct weft_record_text *weft__hook_request_get_loss(const struct weft__hook_request *r, bool asks, bool is_at_end)
{
	static struct weft_record_text closed = WEFT_COUNTER("closed without an answer"),
				       gone = WEFT_COUNTER("the other end hung up before the answer"),
				       given_up = WEFT_COUNTER("given up before the answer");
	return !r->id || !r->is_unanswered || !r->must_answer ? NULL : is_at_end ? &gone : asks ? &given_up : &closed;
}

void weft__hook_request_repeat(const struct weft__hook_request *r, weft_id connection)
{
	if (r->line)
		weft_pending(r->by, r->id, WEFT_KIND_REQUEST, r->line, r->since, r->name.text);
	else
		weft_pending_at(r->by, r->id, WEFT_KIND_REQUEST, r->site, r->since, r->name.text);
	if (r->must_answer)
		weft_should_resolve(r->id);
	if (r->asker)
		weft_still_awaits(r->asker, r->id);
	if (connection)
		weft_still_awaits(r->id, connection);
}
