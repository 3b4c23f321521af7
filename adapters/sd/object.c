/* object.c: sources, loops and calls of sd-event by address, with their references and labels.  SPDX-License-Identifier: ISC */
#include "adapters/hook/thread_memory.h"
#include "adapters/sd/common.h"

enum { MAX_UNLABELLED = 32 };

struct weft__sd_copy weft__sd_copies[WEFT__SD_MAX_COPIES];

const struct weft__sd_copy *weft__sd_copy_of(const void *address)
{
	for (unsigned i = 0; i < WEFT__SD_MAX_COPIES; i++)
		if (weft__sd_copies[i].module && weft_hook_is_own(weft__sd_copies[i].module, address))
			return &weft__sd_copies[i];
	return NULL;
}

static void list_connection(const struct weft_hook_object *base_object)
{
	weft_hook_fd_still_connected(((const struct weft__sd_object *)(const void *)base_object)->fd, base_object->id);
}

struct weft_hook_object_table weft__sd_objects = {.bytes = sizeof(struct weft__sd_object), .list_more = list_connection};

weft_id weft__sd_id(const void *key)
{
	weft__sd_lock(key);
	const struct weft__sd_object *object = weft__sd_find(key);
	weft_id id = object ? object->id : 0;
	weft__sd_unlock(key);
	return id;
}

void weft__sd_attach_fd(const struct weft__sd_object *object)
{
	if (object->kind == WEFT_KIND_CONNECTION)
		weft_hook_fd_attach_if_free(object->fd, object->id, object->has_datagrams);
	else if (object->kind == WEFT_KIND_LISTEN)
		weft__loop_leave_listener(object->fd);
}

/* ---- Labels ---- */

/* Keys of this thread's sources that may still get a description from the program. */
static const void *unlabelled_of_threads[MAX_UNLABELLED] WEFT_HOOK_PER_THREAD;
#define unlabelled WEFT_HOOK_HERE(unlabelled_of_threads)
static __thread unsigned unlabelled_count __attribute__((tls_model("initial-exec")));

void weft__sd_clear_unlabelled(void)
{
	unlabelled_count = 0;
}

void weft__sd_label_source(struct weft__sd_object *object, const char *description)
{
	if (object->is_labelled)
		return;
	object->is_labelled = true;
	if (description) {
		weft_hook_append(&object->label, " ");
		weft_hook_append(&object->label, description);
	} else {
		weft_hook_append_function(&object->label, object->function);
	}
	weft_hook_record_label(&object->label, object->id);
}

void weft__sd_label_key(const void *key, const char *description)
{
	weft__sd_lock(key);
	struct weft__sd_object *object = weft__sd_find(key);
	if (object)
		weft__sd_label_source(object, description);
	weft__sd_unlock(key);
}

void weft__sd_label_all(void)
{
	while (unlabelled_count > 0)
		weft__sd_label_key(unlabelled[--unlabelled_count], NULL);
}

void weft__sd_label_later(const void *key)
{
	if (unlabelled_count == MAX_UNLABELLED)
		weft__sd_label_all();
	unlabelled[unlabelled_count++] = key;
}

/* ---- References ---- */

void weft__sd_add_reference(const void *key)
{
	if (!key || !weft__sd_should_track())
		return;
	weft__sd_lock(key);
	struct weft__sd_object *object = weft__sd_find(key);
	if (object)
		object->references++;
	weft__sd_unlock(key);
}

void weft__sd_drop_reference(const void *key, const char *error)
{
	if (!key || !weft__sd_should_track())
		return;
	weft__sd_lock(key);
	struct weft__sd_object *object = weft__sd_find(key);
	if (object && --object->references == 0) {
		weft_id by = weft__hook_get_thread()->running ? weft__hook_get_thread()->running : WEFT_SYSTEM_ID;
		const bool is_recorded = object->id && weft_is_on();
		if (is_recorded)
			weft__sd_label_source(object, NULL);
		if (is_recorded && error) {
			weft_fail(by, object->id, error);
			weft_read_later(by, object->id);
		} else if (is_recorded) {
			weft_resolve(by, object->id);
		}
		weft_hook_fd_detach(object->fd, object->id);
		weft_hook_object_remove(&weft__sd_objects, &object->object);
	}
	weft__sd_unlock(key);
}
