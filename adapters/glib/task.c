/* task.c: GTask, in which all that GIO does asynchronously comes to its end.
 *
 * A task is awaited by the task that its callback's data is, or has among its first words, as is the custom in GIO; else by the
 * story that runs, else by the loop.  Its callback is read by who waits, and goes on as that, if it is a task that has not ended;
 * else as the task itself: "main ran for 60 ms" would help nobody.  What libgio begins to answer a call of the program is a part:
 * its callback is in libgio, that of the call itself is the program's.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "adapters/glib/adapter.h"
#include "adapters/hook/slots.h"

enum { READY = 2048, WORK = 256, WORDS = 8, LEARNED = 256, NAMELESS = 64 };

void weft__glib_ready(GObject *object, GAsyncResult *result, gpointer data, unsigned slot);
void weft__glib_work(GTask *task, gpointer object, gpointer data, GCancellable *cancellable, unsigned slot);
WEFT_HOOK_CODE(weft__glib_ready, 3, 2048);
WEFT_HOOK_CODE(weft__glib_work, 4, 256);

static void *ready_user[READY], *work_user[WORK];
static const struct weft_hook_slots ready_slots = {weft__glib_ready_code, ready_user, READY},
				    work_slots = {weft__glib_work_code, work_user, WORK};

/* ---- Who waits ---- */

/* Whether it is worth while to look for a task behind the data of a callback: a callback that never had one will have none. */
static bool may_have_task(GAsyncReadyCallback callback, bool was_found)
{
	enum { TRIES = 4, EACH = 64 };
	static struct {
		uintptr_t callback;
		unsigned tries, found;
	} learned[LEARNED];
	unsigned at = (unsigned)((uintptr_t)callback * 0x9e3779b97f4a7c15u >> 56);
	if (learned[at].callback != (uintptr_t)callback) {
		learned[at].callback = (uintptr_t)callback;
		learned[at].tries = learned[at].found = 0;
	}
	learned[at].found |= was_found;
	return learned[at].found || ++learned[at].tries <= TRIES || learned[at].tries % EACH == 0;
}

/* It may be no pointer. */
static struct weft__glib_thing *task_behind(GAsyncReadyCallback callback, const void *data)
{
	struct weft__glib_thing *task = (uintptr_t)data < 4096 ? NULL : weft__glib_thing_find(WEFT__GLIB_TASK, data);
	if (task || (uintptr_t)data < 4096 || (uintptr_t)data % sizeof(void *) || !may_have_task(callback, false))
		return task;
	void *const *words = data;
	unsigned count = weft_hook_is_readable(words, WORDS * sizeof *words) ? WORDS : 0;
	for (unsigned i = 0; i < count; i++)
		if ((task = weft__glib_thing_find(WEFT__GLIB_TASK, words[i])) && !task->is_ended) {
			may_have_task(callback, true);
			return task;
		}
	return NULL;
}

static weft_id waiter_here(void)
{
	const struct weft__glib_here *here = &weft__glib_here;
	const struct weft__glib_thing *story = weft__glib_thing_of(here->story);
	if (story && !story->is_ended)
		return story->id;
	return weft__hook_thread.callbacks > 0 && here->loop ? here->loop : weft__glib_who();
}

/* ---- Birth, and names ---- */

static void (*finalize)(GObject *);

/* The end of a task whose callback has come, or never will. */
static void end_late(struct weft__glib_thing *task)
{
	if (!task->is_ended && task->returned_by)
		weft__glib_end_by(task->returned_by, task, task->is_failed ? task->error.text : NULL);
}

static void finalized(GObject *object)
{
	struct weft__glib_thing *task = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_TASK, object) : NULL;
	if (task) {
		if (!task->is_returned)
			weft__glib_end(task, WEFT_UNRETURNED);
		end_late(task);
		if (task->is_failed && task->ready && !task->is_asked && !weft__glib_is_own((const void *)task->ready))
			weft_note(task->id, WEFT_UNASKED);
		weft__glib_thing_remove(task);
	}
	finalize(object);
}

/* The class of tasks has our function for the end of each. */
static void take_class(GTask *task)
{
	GObjectClass *class = (GObjectClass *)((GTypeInstance *)task)->g_class;
	if (class->finalize == finalized)
		return;
	static uint32_t lock;
	if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return;
	if (class->finalize != finalized) {
		finalize = class->finalize;
		__atomic_store_n(&class->finalize, finalized, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* Some calls of libgio, as g_input_stream_read_async(), keep the program's callback aside and give their task one of their own:
 * that is no part of anything.  What libgio begins by itself it does in a callback of its own, or for a task of its own. */
static bool is_wrapped(GAsyncReadyCallback callback, const struct weft__glib_thing *waiter)
{
	return callback && !weft__glib_here.in_library && (!waiter || waiter->kind == WEFT_KIND_TASK);
}

static void begin(struct weft__glib_thing *task, gpointer object, GCancellable *cancellable, GAsyncReadyCallback callback,
    gpointer data, const void *caller)
{
	struct weft__glib_here *here = &weft__glib_here;
	bool is_call = here->call.is_made && !here->call.id;
	struct weft__glib_thing *waiter = callback ? task_behind(callback, data) : NULL;
	if (waiter && (waiter->is_ended || waiter == task))
		waiter = NULL;
	bool is_part = !is_call && weft__glib_is_own(callback ? (const void *)callback : caller) && !is_wrapped(callback, waiter);
	enum weft_kind kind = is_call ? WEFT_KIND_REQUEST : weft__glib_is_gio(caller) ? WEFT_KIND_WORK : WEFT_KIND_TASK;
	weft_id waits = waiter ? waiter->id : waiter_here();
	/* A call that libgio answers is known by the code that goes on: who made the call is behind libgio's own frames. */
	const void *site = callback && kind == WEFT_KIND_WORK && !weft__glib_is_own((const void *)callback)
			       ? (const char *)callback + 1
			       : caller;
	if (callback && !weft__glib_is_own((const void *)callback))
		here->asked = (const char *)callback + 1;
	task->ready = callback;
	task->waiter = weft__glib_tag_of(waiter);
	weft__glib_create(task, kind, site, is_part, waiter ? waits : weft__glib_who(), callback ? waits : 0);
	if (is_call) {
		here->call.id = task->id;
		weft__glib_label(task, here->call.label.text);
		weft_should_resolve(task->id);
	}
	weft__glib_cancel_add(task, cancellable);
	struct weft__glib_thing *child = weft__glib_child_of(object);
	if (child) {
		task->child = weft__glib_tag_of(child);
		weft_await(task->id, child->id);
	}
}

GTask *weft__g_task_new(gpointer object, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data)
{
	if (!weft__glib_begins())
		return weft__glib_real.g_task_new(object, cancellable, callback, data);
	GAsyncReadyCallback slot = callback ? (GAsyncReadyCallback)weft_hook_slot(&ready_slots, (void *)callback) : NULL;
	GTask *task = weft__glib_real.g_task_new(object, cancellable, slot, data);
	struct weft__glib_thing *thing = task ? weft__glib_thing_add(WEFT__GLIB_TASK, task) : NULL;
	if (thing) {
		take_class(task);
		begin(thing, object, cancellable, callback, data, __builtin_return_address(0));
	}
	return task;
}

static void name(GTask *task, struct weft__glib_thing *thing, const char *text)
{
	if (thing->is_labelled || !text)
		return;
	struct weft_hook_label label = {0};
	gpointer object = weft__glib_real.g_task_get_source_object(task);
	weft_hook_put(&label, text);
	if (object && weft__glib_real.g_type_name_from_instance) {
		weft_hook_put(&label, " (");
		weft_hook_put(&label, weft__glib_real.g_type_name_from_instance(object));
		weft_hook_put(&label, ")");
	}
	weft__glib_label(thing, label.text);
}

static void named(GTask *task, const char *text)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (thing)
		name(task, thing, text);
}

void weft__g_task_set_source_tag(GTask *task, gpointer tag)
{
	named(task, weft_hook_name(tag));
	weft__glib_real.g_task_set_source_tag(task, tag);
}

void weft__g_task_set_name(GTask *task, const char *text)
{
	named(task, text);
	weft__glib_real.g_task_set_name(task, text);
}

void weft__g_task_set_static_name(GTask *task, const char *text)
{
	named(task, text);
	weft__glib_real.g_task_set_static_name(task, text);
}

/* ---- Its result ---- */

static bool is_cancelled(const struct weft__glib_thing *thing)
{
	return thing->cancellable && weft__glib_real.g_cancellable_is_cancelled((GCancellable *)thing->cancellable);
}

/* A task whose callback goes on as itself ends with that callback: what runs after its end would be nobody's. */
static void ends_later(struct weft__glib_thing *thing, const char *error)
{
	weft_id by = weft__glib_who();
	thing->returned_by = by;
	if (error) {
		thing->error = (struct weft_hook_label){0};
		weft_hook_put(&thing->error, error);
	}
	if (by != thing->id)
		weft_signal_only(by, thing->id);
	else /* in an OS thread of the pool, which may be late with its return */
		weft_hook_show(weft__hook_thread.root);
}

/* A task without a name is called after its callback.  Most callbacks are static functions, which nobody can name: those are
 * known by their place here. */
static void name_by_callback(GTask *task, struct weft__glib_thing *thing)
{
	static uintptr_t nameless[NAMELESS];
	const uintptr_t callback = (uintptr_t)thing->ready;
	uintptr_t *known = &nameless[(callback >> 4 ^ callback >> 10) % NAMELESS];
	if (__atomic_load_n(known, __ATOMIC_RELAXED) == callback)
		return;
	const char *text = weft_hook_name((const void *)callback);
	if (text)
		name(task, thing, text);
	else
		__atomic_store_n(known, callback, __ATOMIC_RELAXED);
}

/* Before the call: the callback may come within. */
static void returned(GTask *task, const char *error)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (!thing || thing->is_returned)
		return;
	thing->is_returned = true;
	if (!thing->is_labelled && thing->ready)
		name_by_callback(task, thing);
	if (!error && is_cancelled(thing) && weft__glib_real.g_task_get_check_cancellable(task))
		error = "Operation was cancelled";
	thing->is_failed = error;
	const struct weft__glib_thing *waiter = weft__glib_thing_of(thing->waiter);
	if (thing->ready && !(waiter && !waiter->is_ended)) {
		ends_later(thing, error);
		return;
	}
	weft__glib_end(thing, error);
	if (error && !thing->ready) /* nobody asked how it ends */
		weft_read_later(WEFT_SYSTEM_ID, thing->id);
}

void weft__g_task_return_pointer(GTask *task, gpointer result, GDestroyNotify notify)
{
	returned(task, NULL);
	weft__glib_real.g_task_return_pointer(task, result, notify);
}

void weft__g_task_return_int(GTask *task, gssize result)
{
	returned(task, NULL);
	weft__glib_real.g_task_return_int(task, result);
}

void weft__g_task_return_boolean(GTask *task, gboolean result)
{
	returned(task, NULL);
	weft__glib_real.g_task_return_boolean(task, result);
}

void weft__g_task_return_value(GTask *task, GValue *result)
{
	returned(task, NULL);
	weft__glib_real.g_task_return_value(task, result);
}

/* An error of the other process's own comes with a name that says nothing before its words. */
static const char *words_of(const GError *error)
{
	static const char unnamed[] = "GDBus.Error:org.gtk.GDBus.UnmappedGError.";
	const char *text = error && error->message ? error->message : "";
	const char *end = strncmp(text, unnamed, sizeof unnamed - 1) ? NULL : strstr(text, ": ");
	return end ? end + 2 : text;
}

void weft__g_task_return_error(GTask *task, GError *error)
{
	returned(task, words_of(error));
	weft__glib_real.g_task_return_error(task, error);
}

gboolean weft__g_task_return_error_if_cancelled(GTask *task)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (thing && is_cancelled(thing))
		returned(task, "Operation was cancelled");
	return weft__glib_real.g_task_return_error_if_cancelled(task);
}

/* Somebody wants to know how it ended. */
static void asked(gpointer task)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (thing)
		thing->is_asked = true;
}

#define ASKED(result, name, parameters, arguments)                                                                               \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		asked(task);                                                                                                     \
		return weft__glib_real.name arguments;                                                                           \
	}
WEFT__GIO_RESULT_CALLS(ASKED)

static void go_on(struct weft__glib_thing *waiter, const struct weft__glib_thing *task, GAsyncReadyCallback user, GObject *object,
    GAsyncResult *result, gpointer data)
{
	weft_id input = task->id;
	WEFT__GLIB_FRAME frame = weft__glib_enter(waiter->id, weft__glib_tag_of(waiter), task->is_part);
	(void)frame;
	waiter->home = &weft__glib_here;
	weft__glib_read(waiter->id, input);
	weft_hook_calls((const void *)user);
	user(object, result, data);
}

static void call(weft_id id, bool in_library, GAsyncReadyCallback user, GObject *object, GAsyncResult *result, gpointer data)
{
	WEFT__GLIB_FRAME frame = weft__glib_enter(id, 0, in_library);
	(void)frame;
	weft_hook_show(id);
	weft_hook_calls((const void *)user);
	user(object, result, data);
}

/* The task may be gone when its callback has returned. */
void weft__glib_ready(GObject *object, GAsyncResult *result, gpointer data, unsigned slot)
{
	GAsyncReadyCallback user = (GAsyncReadyCallback)__atomic_load_n(&ready_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_thing *task = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_TASK, result) : NULL;
	if (!task || !task->id) {
		user(object, result, data);
		return;
	}
	if (!task->is_returned && is_cancelled(task)) /* g_task_set_return_on_cancel() */
		returned((GTask *)result, "Operation was cancelled");
	struct weft__glib_thing *waiter = weft__glib_thing_of(task->waiter);
	if (waiter && !waiter->is_ended) {
		end_late(task);
		go_on(waiter, task, user, object, result, data);
		return;
	}
	weft__glib_tag tag = weft__glib_tag_of(task);
	weft_id id = task->id, reader = task->awaited_by;
	call(id, task->is_part, user, object, result, data);
	task = weft__glib_goes_on() ? weft__glib_thing_of(tag) : NULL;
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

/* ---- In a thread ---- */

/* In an OS thread of GLib's pool, which is nobody's before and after. */
void weft__glib_work(GTask *task, gpointer object, gpointer data, GCancellable *cancellable, unsigned slot)
{
	GTaskThreadFunc user = (GTaskThreadFunc)__atomic_load_n(&work_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_thing *thing = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (!thing || !thing->id) {
		user(task, object, data, cancellable);
		return;
	}
	WEFT__GLIB_FRAME frame = weft__glib_enter(thing->id, weft__glib_tag_of(thing), weft__glib_is_own((const void *)user));
	(void)frame;
	weft_hook_show(thing->id);
	weft_hook_calls((const void *)user);
	user(task, object, data, cancellable);
}

static GTaskThreadFunc work_of(GTask *task, GTaskThreadFunc work)
{
	struct weft__glib_thing *thing = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_TASK, task) : NULL;
	if (!thing || !work)
		return work;
	if (!thing->is_labelled)
		name(task, thing, weft_hook_name((const void *)work));
	return (GTaskThreadFunc)weft_hook_slot(&work_slots, (void *)work);
}

void weft__g_task_run_in_thread(GTask *task, GTaskThreadFunc work)
{
	weft__glib_real.g_task_run_in_thread(task, work_of(task, work));
}

/* The calling OS thread waits. */
void weft__g_task_run_in_thread_sync(GTask *task, GTaskThreadFunc work)
{
	GTaskThreadFunc slot = work_of(task, work);
	struct weft__glib_thing *thing = slot == work ? NULL : weft__glib_thing_find(WEFT__GLIB_TASK, task);
	weft_id id = thing ? thing->id : 0, by = id ? weft__glib_who() : 0;
	if (id)
		weft_await(by, id);
	weft__glib_real.g_task_run_in_thread_sync(task, slot);
	if (id && weft_is_on())
		weft__glib_read(by, id);
}
