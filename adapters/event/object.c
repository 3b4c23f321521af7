/* object.c: finds the adapter's objects by address: events, bufferevents and requests.  SPDX-License-Identifier: ISC */
#include <errno.h>

#include "adapters/event/common.h"
#include "adapters/hook/frames.h"
#include "adapters/hook/thread_memory.h"

enum { MAX_ENDING = 64 };

/* Address of an event base, and the promise of its loop. */
struct event_loop {
	const struct event_base *base;
	weft_id id;
};

static void list_connection(const struct weft_hook_object *base_object)
{
	weft_hook_fd_still_connected(((const struct weft__ev_object *)(const void *)base_object)->fd, base_object->id);
}

static struct weft_hook_object_table objects = {.bytes = sizeof(struct weft__ev_object), .list_more = list_connection};

/* Keys of the current thread's objects that end when its loop sleeps. */
static const void *ending_of_threads[MAX_ENDING] WEFT_HOOK_PER_THREAD;
#define ending WEFT_HOOK_HERE(ending_of_threads)
static __thread unsigned ending_count __attribute__((tls_model("initial-exec")));

void weft__ev_lock(const void *key)
{
	weft_hook_object_table_lock(&objects, key);
}

void weft__ev_unlock(const void *key)
{
	weft_hook_object_table_unlock(&objects, key);
}

struct weft__ev_object *weft__ev_find(const void *key)
{
	return weft_hook_object_find(&objects, key);
}

struct weft__ev_object *weft__ev_create(const void *key)
{
	return weft_hook_object_create(&objects, key);
}

/* Returns whether the socket is connected to a peer.  Keeps errno. */
static bool is_connected(int fd)
{
	const int saved_errno = errno;
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;
	const bool result = fd >= 0 && getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
	errno = saved_errno;
	return result;
}

/* A bufferevent without an event callback gets no call when it is connected, so the socket is asked here. */
void weft__ev_end(struct weft__ev_object *object, weft_id by)
{
	if (object->connect) {
		if (is_connected(object->fd))
			weft_resolve(WEFT_SYSTEM_ID, object->connect);
		else
			weft_fail(by, object->connect, "given up");
		weft_read_later(by, object->connect);
	}
	weft_hook_fd_detach(object->fd, object->id);
	if (object->id)
		weft_resolve(by, object->id);
	weft_hook_object_remove(&objects, &object->object);
}

/* Returns the program's line that led to a call which libevent makes inside of an unwrapped function.  Objects that a loop
 * itself creates have no line of the program. */
static const void *find_line(const void *caller)
{
	const struct weft_hook_thread *thread = weft__hook_get_thread();
	const bool is_in_loop = weft__ev_get_here()->epoch == weft__hook_epoch && weft__ev_get_here()->depth > 0;
	if (!weft__ev_is_own(caller) || (is_in_loop && thread->callbacks == 0))
		return caller;
	return weft__hook_find_program_line(caller, thread->callbacks > 0 ? thread->callback_stack : NULL);
}

void weft__ev_begin(struct weft__ev_object *object, enum weft_kind kind, const void *caller)
{
	weft_hook_object_begin(&object->object, kind, find_line(caller));
}

void weft__ev_record_label(struct weft__ev_object *object)
{
	weft_hook_record_label(&object->label, object->id);
}

weft_id weft__ev_id(const void *key)
{
	weft__ev_lock(key);
	const struct weft__ev_object *object = weft__ev_find(key);
	weft_id id = object ? object->id : 0;
	weft__ev_unlock(key);
	return id;
}

weft_id weft__ev_buffer_id(const void *key)
{
	weft__ev_lock(key);
	const struct weft__ev_object *object = weft__ev_find(key);
	weft_id id = object && object->is_buffer ? object->id : 0;
	weft__ev_unlock(key);
	return id;
}

static void await_event(struct weft_hook_object *base_object, void *event_loop)
{
	struct weft__ev_object *object = (struct weft__ev_object *)(void *)base_object;
	const struct event_loop *awaiting_loop = event_loop;
	if (object->base == awaiting_loop->base && object->is_added && object->id)
		weft_await(object->awaited_by = awaiting_loop->id, object->id);
}

void weft__ev_await_events(const struct event_base *base, weft_id event_loop)
{
	weft_hook_object_table_each(&objects, await_event, &(struct event_loop){base, event_loop});
}

void weft__ev_end_later(struct weft__ev_object *object)
{
	if (object->is_ending)
		return;
	/* Outside of a loop no sleep ends the waiting objects, so only one object may wait. */
	if (ending_count < (weft__ev_get_here()->depth > 0 ? MAX_ENDING : 1)) {
		object->is_ending = true;
		ending[ending_count++] = object->key;
	} else {
		weft__ev_end(object, weft__hook_get_thread()->running);
	}
}

void weft__ev_end_delayed(void)
{
	while (ending_count > 0) {
		const void *key = ending[--ending_count];
		weft__ev_lock(key);
		struct weft__ev_object *object = weft__ev_find(key);
		if (object && object->is_ending) {
			object->is_ending = false;
			if (!object->is_added)
				weft__ev_end(object, WEFT_SYSTEM_ID);
		}
		weft__ev_unlock(key);
	}
}

uint64_t weft__ev_list(void *data, uint64_t cursor, unsigned budget)
{
	return weft_hook_object_table_list(&objects, cursor, budget);
}

void weft__ev_clear(void)
{
	weft_hook_object_table_clear(&objects);
}

void weft__ev_fork(enum weft_hook_fork when)
{
	weft_hook_object_table_fork(&objects, when);
	ending_count = when == WEFT_HOOK_IN_CHILD ? 0 : ending_count;
}
