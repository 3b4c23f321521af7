/* task.c: records GTask, the result of every asynchronous operation of GIO.
 *
 * A task is awaited by another task if the callback's data is that other task or contains it in its first words, as is usual in
 * GIO.  Otherwise the task is awaited by the running story (a task that runs in callbacks of others), or by the loop.  A waiter
 * that is a task and has not ended reads the result and runs the callback.  Otherwise the callback runs in the name of the task
 * itself, because "main ran for 60 ms" would not help a reader.  Operations that libgio starts to answer a call of the program
 * are parts (internal promises): their callbacks are in libgio, while the callback of the call is in the program.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/session.h"
#include "adapters/hook/slots.h"

enum { READY_SLOTS = 2048, WORK_SLOTS = 256, MAX_DATA_WORDS = 8, MAX_LEARNED = 256, MAX_NAMELESS = 64 };

void weft__glib_task_ready(GObject *object, GAsyncResult *result, gpointer data, unsigned slot);
void weft__glib_task_work(GTask *task, gpointer object, gpointer data, GCancellable *cancellable, unsigned slot);
WEFT_HOOK_CODE(weft__glib_task_ready, 3, 2048);
WEFT_HOOK_CODE(weft__glib_task_work, 4, 256);

static void *ready_user[READY_SLOTS], *work_user[WORK_SLOTS];
static const struct weft_hook_slots ready_slots = {weft__glib_task_ready_code, ready_user, READY_SLOTS},
				    work_slots = {weft__glib_task_work_code, work_user, WORK_SLOTS};

/* ---- Waiters ---- */

/* Returns whether to search a callback's data for a task; callbacks whose data has never had a task are skipped. */
static bool may_have_task(GAsyncReadyCallback callback, bool was_found)
{
	enum { MAX_TRIES = 4, RETRY_INTERVAL = 64 };
	static struct {
		uintptr_t callback;
		unsigned tries, found;
	} learned[MAX_LEARNED];
	unsigned at = (unsigned)((uintptr_t)callback * 0x9e3779b97f4a7c15u >> 56);
	if (learned[at].callback != (uintptr_t)callback) {
		learned[at].callback = (uintptr_t)callback;
		learned[at].tries = learned[at].found = 0;
	}
	learned[at].found |= was_found;
	return learned[at].found || ++learned[at].tries <= MAX_TRIES || learned[at].tries % RETRY_INTERVAL == 0;
}

/* The callback's data need not be a pointer. */
static struct weft__glib_object *find_task_in_data(GAsyncReadyCallback callback, const void *data)
{
	struct weft__glib_object *task = (uintptr_t)data < 4096 ? NULL : weft__glib_object_find(WEFT__GLIB_TASK, data);
	if (task || (uintptr_t)data < 4096 || (uintptr_t)data % sizeof(void *) || !may_have_task(callback, false))
		return task;
	void *const *words = data;
	unsigned count = weft_hook_is_readable(words, MAX_DATA_WORDS * sizeof *words) ? MAX_DATA_WORDS : 0;
	for (unsigned i = 0; i < count; i++)
		if ((task = weft__glib_object_find(WEFT__GLIB_TASK, words[i])) && !task->is_ended) {
			may_have_task(callback, true);
			return task;
		}
	return NULL;
}

static weft_id get_waiter(void)
{
	const struct weft__glib_here *here = weft__glib_get_here();
	const struct weft__glib_object *story = weft__glib_object_of(here->story);
	if (story && !story->is_ended)
		return story->id;
	return weft__hook_get_thread()->callbacks > 0 && here->loop ? here->loop : weft__glib_current_promise();
}

/* ---- Creation and names ---- */

static void (*real_finalize)(GObject *);

/* Ends a task whose callback has run or will never run. */
static void end_late(struct weft__glib_object *task)
{
	if (!task->is_ended && task->returned_by)
		weft__glib_end_by(task->returned_by, task, task->is_failed ? task->error.text : NULL);
}

static void finalize_task(GObject *object)
{
	struct weft__glib_object *task = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_TASK, object) : NULL;
	if (task) {
		if (!task->is_returned)
			weft__glib_end(task, WEFT_UNRETURNED);
		end_late(task);
		if (task->is_failed && task->ready && !task->is_asked && !weft__glib_is_own((const void *)task->ready))
			weft_note(task->id, WEFT_UNASKED);
		weft__glib_object_remove(task);
	}
	real_finalize(object);
}

/* Replaces the finalize function of the class GTask, to notice when a task is freed. */
static void hook_finalize(GTask *task)
{
	GObjectClass *class = (GObjectClass *)((GTypeInstance *)task)->g_class;
	if (class->finalize == finalize_task)
		return;
	static uint32_t lock;
	if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return;
	if (class->finalize != finalize_task) {
		real_finalize = class->finalize;
		__atomic_store_n(&class->finalize, finalize_task, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* Some functions of libgio, as g_input_stream_read_async(), keep the program's callback and give the task a callback of libgio.
 * Such a task is no part (internal promise), because libgio starts parts in its own callbacks or for its own tasks. */
static bool is_wrapped_callback(GAsyncReadyCallback callback, const struct weft__glib_object *waiter)
{
	return callback && !weft__glib_get_here()->is_in_library && (!waiter || waiter->kind == WEFT_KIND_TASK);
}

static void begin_task(struct weft__glib_object *task, gpointer object, GCancellable *cancellable, GAsyncReadyCallback callback,
    gpointer data, const void *caller)
{
	struct weft__glib_here *here = weft__glib_get_here();
	bool is_call = here->call.is_made && !here->call.id;
	struct weft__glib_object *waiter = callback ? find_task_in_data(callback, data) : NULL;
	if (waiter && (waiter->is_ended || waiter == task))
		waiter = NULL;
	bool is_part =
	    !is_call && weft__glib_is_own(callback ? (const void *)callback : caller) && !is_wrapped_callback(callback, waiter);
	enum weft_kind kind = is_call ? WEFT_KIND_REQUEST : weft__glib_is_gio(caller) ? WEFT_KIND_WORK : WEFT_KIND_TASK;
	weft_id waits = waiter ? waiter->id : get_waiter();
	/* The site of a call of libgio is the program's callback, because frames of libgio hide the caller. */
	const void *site = callback && kind == WEFT_KIND_WORK && !weft__glib_is_own((const void *)callback)
			       ? (const char *)callback + 1
			       : caller;
	if (callback && !weft__glib_is_own((const void *)callback))
		here->asked = (const char *)callback + 1;
	task->ready = callback;
	task->waiter = weft__glib_tag_of(waiter);
	weft__glib_create(task, kind, site, is_part, waiter ? waits : weft__glib_current_promise(), callback ? waits : 0);
	if (is_call) {
		here->call.id = task->id;
		weft__glib_label(task, here->call.label.text);
		weft_should_resolve(task->id);
	}
	weft__glib_cancel_add(task, cancellable);
	struct weft__glib_object *child = weft__glib_child_of(object);
	if (child) {
		task->child = weft__glib_tag_of(child);
		weft_await(task->id, child->id);
	}
}

GTask *weft__g_task_new(gpointer object, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	if (!weft__glib_should_record())
		return weft__glib_real.g_task_new(object, cancellable, callback, data);
	GAsyncReadyCallback slot = callback ? (GAsyncReadyCallback)weft_hook_slot(&ready_slots, (void *)callback) : NULL;
	GTask *task = weft__glib_real.g_task_new(object, cancellable, slot, data);
	struct weft__glib_object *tracked = task ? weft__glib_object_add(WEFT__GLIB_TASK, task) : NULL;
	if (tracked) {
		hook_finalize(task);
		begin_task(tracked, object, cancellable, callback, data, __builtin_return_address(0));
	}
	return task;
}

/* Skips the name of the library in "[glib-networking] g_tls_connection_base_handshake_async", because a label is short and must
 * also hold the type of the task's object. */
static const char *skip_library(const char *text)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
	return end && end[1] == ' ' && end[2] ? end + 2 : text;
}

static void label_task(GTask *task, struct weft__glib_object *tracked, const char *text)
{
	if (tracked->is_labelled || !text)
		return;
	struct weft_hook_label label = {0};
	gpointer object = weft__glib_real.g_task_get_source_object(task);
	weft_hook_append(&label, skip_library(text));
	if (object && weft__glib_real.g_type_name_from_instance) {
		weft_hook_append(&label, " (");
		weft_hook_append(&label, weft__glib_real.g_type_name_from_instance(object));
		weft_hook_append(&label, ")");
	}
	weft__glib_label(tracked, label.text);
}

static void label_known_task(GTask *task, const char *text)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (tracked)
		label_task(task, tracked, text);
}

void weft__g_task_set_source_tag(GTask *task, gpointer tag)
{
	label_known_task(task, weft_hook_name(tag));
	weft__glib_real.g_task_set_source_tag(task, tag);
}

void weft__g_task_set_name(GTask *task, const char *text)
{
	label_known_task(task, text);
	weft__glib_real.g_task_set_name(task, text);
}

void weft__g_task_set_static_name(GTask *task, const char *text)
{
	label_known_task(task, text);
	weft__glib_real.g_task_set_static_name(task, text);
}

/* ---- Results ---- */

static bool is_cancelled(const struct weft__glib_object *tracked)
{
	return tracked->cancellable && weft__glib_real.g_cancellable_is_cancelled((GCancellable *)tracked->cancellable);
}

/* Delays the end of a task that runs its own callback until the callback returns, so that code in the callback has a promise. */
static void end_later(struct weft__glib_object *tracked, const char *error)
{
	weft_id by = weft__glib_current_promise();
	tracked->returned_by = by;
	if (error) {
		tracked->error = (struct weft_hook_label){0};
		weft_hook_append(&tracked->error, error);
	}
	if (by != tracked->id)
		weft_signal_only(by, tracked->id);
	else /* the task ran in a thread of GLib's pool, whose function may return much later */
		weft_hook_record_running(weft__hook_get_thread()->root);
}

/* Labels a task that has no name by its callback.  Callbacks without a symbol name are remembered, because most callbacks are
 * static functions. */
static void name_by_callback(GTask *task, struct weft__glib_object *tracked)
{
	static uintptr_t nameless[MAX_NAMELESS];
	const uintptr_t callback = (uintptr_t)tracked->ready;
	uintptr_t *known = &nameless[(callback >> 4 ^ callback >> 10) % MAX_NAMELESS];
	if (__atomic_load_n(known, __ATOMIC_RELAXED) == callback)
		return;
	const char *text = weft_hook_name((const void *)callback);
	if (text)
		label_task(task, tracked, text);
	else
		__atomic_store_n(known, callback, __ATOMIC_RELAXED);
}

/* Records the return of a task; call it before the original function, which may run the callback. */
static void record_return(GTask *task, const char *error)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (!tracked || tracked->is_returned)
		return;
	tracked->is_returned = true;
	if (!tracked->is_labelled && tracked->ready)
		name_by_callback(task, tracked);
	if (!error && is_cancelled(tracked) && weft__glib_real.g_task_get_check_cancellable(task))
		error = "Operation was cancelled";
	tracked->is_failed = error;
	const struct weft__glib_object *waiter = weft__glib_object_of(tracked->waiter);
	if (tracked->ready && !(waiter && !waiter->is_ended)) {
		end_later(tracked, error);
		return;
	}
	weft__glib_end(tracked, error);
	if (error && !tracked->ready) /* a task without a callback has no reader for its error */
		weft_read_later(WEFT_SYSTEM_ID, tracked->id);
}

void weft__g_task_return_pointer(GTask *task, gpointer result, GDestroyNotify notify)
{
	record_return(task, NULL);
	weft__glib_real.g_task_return_pointer(task, result, notify);
}

void weft__g_task_return_int(GTask *task, gssize result)
{
	record_return(task, NULL);
	weft__glib_real.g_task_return_int(task, result);
}

void weft__g_task_return_boolean(GTask *task, gboolean result)
{
	record_return(task, NULL);
	weft__glib_real.g_task_return_boolean(task, result);
}

void weft__g_task_return_value(GTask *task, GValue *result)
{
	record_return(task, NULL);
	weft__glib_real.g_task_return_value(task, result);
}

/* Returns the error's text without the prefix that GDBus puts before another process's error. */
static const char *get_error_text(const GError *error)
{
	static const char unnamed[] = "GDBus.Error:org.gtk.GDBus.UnmappedGError.";
	const char *text = error && error->message ? error->message : "";
	const char *end = strncmp(text, unnamed, sizeof unnamed - 1) ? NULL : strstr(text, ": ");
	return end ? end + 2 : text;
}

void weft__g_task_return_error(GTask *task, GError *error)
{
	record_return(task, get_error_text(error));
	weft__glib_real.g_task_return_error(task, error);
}

gboolean weft__g_task_return_error_if_cancelled(GTask *task)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (tracked && is_cancelled(tracked))
		record_return(task, "Operation was cancelled");
	return weft__glib_real.g_task_return_error_if_cancelled(task);
}

/* Notes that the program has asked for the task's result. */
static void mark_asked(gpointer task)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (tracked)
		tracked->is_asked = true;
}

#define RESULT_CALL(result, name, parameters, arguments)                                                                         \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		mark_asked(task);                                                                                                \
		return weft__glib_real.name arguments;                                                                           \
	}
WEFT__GIO_RESULT_CALLS(RESULT_CALL)

static void call_as_waiter(struct weft__glib_object *waiter, const struct weft__glib_object *task, GAsyncReadyCallback user,
    GObject *object, GAsyncResult *result, gpointer data)
{
	weft_id input = task->id;
	WEFT__GLIB_FRAME frame = weft__glib_enter_callback(waiter->id, weft__glib_tag_of(waiter), task->is_part);
	(void)frame;
	waiter->owner_thread = weft__glib_get_here();
	weft__glib_read(waiter->id, input);
	weft_hook_set_called((const void *)user);
	user(object, result, data);
}

static void call_as_task(
    weft_id id, bool is_in_library, GAsyncReadyCallback user, GObject *object, GAsyncResult *result, gpointer data)
{
	WEFT__GLIB_FRAME frame = weft__glib_enter_callback(id, 0, is_in_library);
	(void)frame;
	weft_hook_record_running(id);
	weft_hook_set_called((const void *)user);
	user(object, result, data);
}

/* The callback may free the task, so the task is found by its tag afterwards. */
void weft__glib_task_ready(GObject *object, GAsyncResult *result, gpointer data, unsigned slot)
{
	GAsyncReadyCallback user = (GAsyncReadyCallback)__atomic_load_n(&ready_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_object *task = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_TASK, result) : NULL;
	if (!task || !task->id) {
		user(object, result, data);
		return;
	}
	if (!task->is_returned && is_cancelled(task)) /* g_task_set_return_on_cancel() */
		record_return((GTask *)result, "Operation was cancelled");
	struct weft__glib_object *waiter = weft__glib_object_of(task->waiter);
	if (waiter && !waiter->is_ended) {
		end_late(task);
		call_as_waiter(waiter, task, user, object, result, data);
		return;
	}
	weft__glib_tag tag = weft__glib_tag_of(task);
	weft_id id = task->id, reader = task->awaited_by;
	call_as_task(id, task->is_part, user, object, result, data);
	task = weft__glib_is_recording() ? weft__glib_object_of(tag) : NULL;
	if (task && reader && task->returned_by && !task->is_ended && !task->is_failed) {
		task->is_ended = true;
		weft__resolve_read_later(task->returned_by, id, reader);
		return;
	}
	if (task)
		end_late(task);
	if (reader && weft_is_on())
		weft_read_later(reader, id);
}

/* ---- Work in threads ---- */

/* Runs a task's work on a thread of GLib's pool, which runs no other promise before and after. */
void weft__glib_task_work(GTask *task, gpointer object, gpointer data, GCancellable *cancellable, unsigned slot)
{
	GTaskThreadFunc user = (GTaskThreadFunc)__atomic_load_n(&work_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_object *tracked = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (!tracked || !tracked->id) {
		user(task, object, data, cancellable);
		return;
	}
	WEFT__GLIB_FRAME frame =
	    weft__glib_enter_callback(tracked->id, weft__glib_tag_of(tracked), weft__glib_is_own((const void *)user));
	(void)frame;
	weft_hook_record_running(tracked->id);
	weft_hook_set_called((const void *)user);
	user(task, object, data, cancellable);
}

static GTaskThreadFunc get_work_slot(GTask *task, GTaskThreadFunc work)
{
	struct weft__glib_object *tracked = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_TASK, task) : NULL;
	if (!tracked || !work)
		return work;
	if (!tracked->is_labelled)
		label_task(task, tracked, weft_hook_name((const void *)work));
	/* In a stripped library the work function has no name, but the task that waits for the work may have one. */
	const struct weft__glib_object *waiter = tracked->is_labelled ? NULL : weft__glib_object_of(tracked->waiter);
	if (waiter && waiter->is_labelled)
		weft__glib_label(tracked, waiter->label.text);
	return (GTaskThreadFunc)weft_hook_slot(&work_slots, (void *)work);
}

void weft__g_task_run_in_thread(GTask *task, GTaskThreadFunc work)
{
	weft__glib_real.g_task_run_in_thread(task, get_work_slot(task, work));
}

/* The calling thread blocks until the task ends. */
void weft__g_task_run_in_thread_sync(GTask *task, GTaskThreadFunc work)
{
	GTaskThreadFunc slot = get_work_slot(task, work);
	struct weft__glib_object *tracked = slot == work ? NULL : weft__glib_object_find(WEFT__GLIB_TASK, task);
	weft_id id = tracked ? tracked->id : 0, by = id ? weft__glib_current_promise() : 0;
	if (id)
		weft_await(by, id);
	weft__glib_real.g_task_run_in_thread_sync(task, slot);
	if (id && weft_is_on())
		weft__glib_read(by, id);
}
