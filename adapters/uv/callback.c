/* callback.c: records the running promise of a thread, and what a checkpoint records again.
 *
 * Callbacks nest, because a program may run a loop in a callback. longjmp() or an exception may leave callbacks.  An exception
 * unwinds the adapter's frames, which restore the state.  After a longjmp() the state is wrong only until the next iteration of
 * a loop, which sets the running promise.  SPDX-License-Identifier: ISC */
#include "adapters/uv/callback.h"

#include <string.h>

#include "adapters/uv/object.h"
#include "adapters/uv/question.h"

/* ---- Pending promises ---- */

bool weft__uv_is_loop_pending(const struct weft__uv_here *here, weft_id loop)
{
	bool found = false;
	for (unsigned i = 0; i < here->depth; i++)
		found |= here->runs[i].id == loop;
	for (unsigned i = 0; i < WEFT__UV_MAX_TURN_LOOPS; i++)
		found |= here->turn_loop[i].id == loop;
	return found;
}

static void list_object(struct weft__uv_here *here, struct weft__uv_object *object)
{
	weft__uv_repeat_promise(object);
	if (object->is_expected)
		weft_should_resolve(object->id);
	if (object->is_restarted)
		WEFT_NOTE(object->id, "started again");
	struct weft__uv_object *owner = weft__uv_find(object->owner);
	if (object->is_request && owner && owner->id)
		weft_still_awaits(owner->id, object->id);
	weft_hook_fd_still_connected(object->fd, object->id);
	if (object->input) {
		if (object->line)
			weft_pending(object->id, object->input, WEFT_KIND_STREAM_READ, object->line, object->input_since, NULL);
		else
			weft_pending_at(
			    object->id, object->input, WEFT_KIND_STREAM_READ, object->read_site, object->input_since, NULL);
		weft_still_awaits(object->id, object->input);
	}
	if (object->is_accepted || object->asks)
		weft__uv_question_list(object);
	if (object->awaited_by && weft__uv_is_loop_pending(here, object->awaited_by))
		weft_still_awaits(object->awaited_by, object->id);
}

/* Records the loops again, and then this thread's objects from index `cursor`; for weft_hook_register_list(). */
static uint64_t list_pending(void *data, uint64_t cursor, unsigned budget)
{
	struct weft__uv_here *here = data;
	if (here->epoch != weft__hook_epoch)
		return 0;
	for (unsigned i = 0; cursor == 0 && i < here->depth; i++) {
		struct weft__uv_run *run = &here->runs[i];
		if (run->id) {
			weft_pending_at(run->outer, run->id, WEFT_KIND_LOOP, run->site, run->since, "uv_run");
			weft_still_awaits(run->outer, run->id);
		}
	}
	for (unsigned i = 0; cursor == 0 && i < WEFT__UV_MAX_TURN_LOOPS; i++) {
		const struct weft__uv_turn_loop *turn_loop = &here->turn_loop[i];
		if (turn_loop->id)
			weft_pending_at(turn_loop->by, turn_loop->id, WEFT_KIND_LOOP, turn_loop->site, turn_loop->since,
			    "uv_run, single iterations");
	}
	for (unsigned i = 0; cursor == 0 && i < here->depth; i++)
		if (here->runs[i].turns)
			weft_still_awaits(here->runs[i].outer, here->runs[i].turns);
	uint32_t at = (uint32_t)cursor;
	struct weft__uv_object *object;
	for (unsigned looked = 0; looked < 8 * budget && (object = weft__uv_own_next(&at)); looked++)
		if (object->id) {
			list_object(here, object);
			if (--budget == 0)
				return at;
		}
	return weft__uv_own_next(&(uint32_t){at}) ? at : 0;
}

/* Records a loop that has been running since before the recording. */
static void adopt_run(struct weft__uv_run *run)
{
	struct weft_hook_thread *thread = weft_hook_thread();
	run->outer = thread->running;
	run->outer_actor = 0;
	run->id = run->turns = 0;
	run->since = weft__hook_standby_since;
	run->blocks_since_ns = 0;
	run->callbacks = 0;
	run->is_dirty = true;
	run->is_older = weft_hook_is_loop_unlisted(&weft__uv_get_here()->older, run->loop);
	if (run->mode != UV_RUN_DEFAULT)
		return;
	run->id = weft_pending_at(run->outer, 0, WEFT_KIND_LOOP, run->site, run->since, "uv_run");
	weft_still_awaits(run->outer, run->id);
	thread->running = run->id;
}

void weft__uv_attach_thread(void)
{
	struct weft__uv_here *here = weft__uv_get_here();
	here->epoch = weft__hook_epoch;
	here->actor = here->keeper = 0;
	here->answered = here->asked_by = 0;
	here->encrypted = 0;
	here->read = 0;
	here->line = NULL;
	here->nested_calls = 0;
	memset(here->busy, 0, sizeof here->busy);
	memset(here->turn_loop, 0, sizeof here->turn_loop);
	memset(here->chunks, 0, sizeof here->chunks);
	here->next_busy = here->next_turn_loop = 0;
	here->free_first = here->free_count = 0;
	here->has_refilled = false;
	for (unsigned i = 0; i < here->depth; i++)
		adopt_run(&here->runs[i]);
	weft_hook_register_list(list_pending, here);
}

/* ---- Callbacks ---- */

/* Resolves the promise that a handle had at the start of its callback, if the callback has started the handle for another
 * purpose. */
static void end_replaced_promise(weft__uv_tag handle, weft_id id)
{
	const struct weft__uv_object *object = weft__uv_find(handle);
	if (object && object->id && object->id != id && weft_is_on())
		weft_resolve(id, id);
}

/* Between two callbacks of a loop nothing is recorded, because the next callback or the loop's sleep records what runs. */
void weft__uv_leave_callback(struct weft__uv_frame *frame)
{
	struct weft__uv_here *here = weft__uv_get_here();
	if (__builtin_expect(frame->own != 0, 0))
		end_replaced_promise(frame->handle, frame->own);
	weft__hook_get_thread()->called_function = NULL;
	weft__hook_get_thread()->running = frame->running;
	weft__hook_get_thread()->callback_stack = frame->stack;
	here->actor = frame->actor;
	here->line = frame->line;
	here->nested_calls = frame->nested_calls;
	if (weft__hook_get_thread()->callbacks > 0)
		weft__hook_get_thread()->callbacks--;
	if (weft__hook_get_thread()->callbacks > (here->depth > 0 ? here->runs[here->depth - 1].callbacks : 0) && weft_is_on())
		weft_hook_record_running(frame->running);
	if (frame->datagram)
		weft__uv_datagram_release(frame->datagram);
}

struct weft__uv_frame weft__uv_enter_handle_callback(struct weft__uv_object *object, bool repeats)
{
	if (!object || !object->id)
		return weft__uv_enter_callback(weft__hook_get_thread()->running, weft__uv_get_here()->actor);
	weft__uv_own(object);
	if (!repeats || weft_hook_count_repeat(&object->calls, object->id, true))
		weft_hook_record_signal(object->id);
	struct weft__uv_frame frame = weft__uv_enter_callback(object->id, weft__uv_tag_of(object));
	weft__uv_get_here()->line = object->line;
	frame.own = object->id;
	frame.handle = weft__uv_get_here()->actor;
	return frame;
}

struct weft__uv_frame weft__uv_enter_signalled_handle(const void *handle)
{
	return weft__uv_enter_handle_callback(weft_is_on() ? weft__uv_find_handle(handle) : NULL, false);
}
