/* source.c: records the sources of GLib's loops.
 *
 * The promise of a source lasts from its attachment to its end; each dispatch of the source is recorded as a signal of the
 * system to it.  GLib's loop calls `dispatch` in the source's function table.  The adapter writes its own functions into the
 * program's table and does not replace the table, because programs and GLib compare the addresses of tables.  The adapter
 * changes a table when the first source with that table is attached, before GLib uses the table.
 *
 * If a one-shot source with the same callback and data recurs, its third and later attachments share one promise, so that a
 * frame clock is one row.  One-shot sources with new data each time also share a promise, if the thread does not sleep in
 * between.  A source that only delivers a task's result has no promise.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/session.h"
#include "adapters/hook/slots.h"
#include "adapters/hook/socket.h"

enum { MAX_TABLES = 256, MAX_PROBES = 32, MAX_SEEN = 1024, MIN_RECURRENCES = 3 };

typedef gboolean dispatch_fn(GSource *, GSourceFunc, gpointer);
typedef void finalize_fn(GSource *);

/* ---- Function tables ---- */

/* Table n belongs to slot n, so an adapter's function knows its table even if another table's function calls it.  Some programs
 * copy tables, or call functions of one table from another. */
static struct table {
	const GSourceFuncs *funcs; /* NULL: unused */
	dispatch_fn *dispatch;
	finalize_fn *finalize;
	uint8_t kind;
} tables[MAX_TABLES];

WEFT_HOOK_CODE(weft__glib_dispatched, 3, 256);
WEFT_HOOK_CODE(weft__glib_finalized, 1, 256);

gboolean weft__glib_dispatched(GSource *source, GSourceFunc callback, gpointer data, unsigned table);
void weft__glib_finalized(GSource *source, unsigned table);

static dispatch_fn *get_dispatch(const struct table *t)
{
	return (dispatch_fn *)(uintptr_t)(weft__glib_dispatched_code + WEFT_HOOK_SLOT_BYTES * (t - tables));
}

static finalize_fn *get_finalize(const struct table *t)
{
	return (finalize_fn *)(uintptr_t)(weft__glib_finalized_code + WEFT_HOOK_SLOT_BYTES * (t - tables));
}

static struct table *find_table(const GSourceFuncs *funcs)
{
	unsigned first = (unsigned)((uintptr_t)funcs * 0x9e3779b97f4a7c15u >> 40);
	for (unsigned i = 0; i < MAX_PROBES; i++) {
		struct table *t = &tables[(first + i) % MAX_TABLES];
		const GSourceFuncs *seen = __atomic_load_n(&t->funcs, __ATOMIC_ACQUIRE);
		if (seen == funcs || !seen)
			return t;
	}
	return NULL;
}

static enum weft_kind classify_funcs(const GSourceFuncs *funcs)
{
	static const struct {
		const char *name;
		enum weft_kind kind;
	} known[] = {{"g_timeout_funcs", WEFT_KIND_TIMER}, {"g_idle_funcs", WEFT_KIND_HANDLE},
	    {"g_child_watch_funcs", WEFT_KIND_PROCESS}, {"g_unix_signal_funcs", WEFT_KIND_OS_SIGNAL}};
	const char *name = weft_hook_name(funcs);
	for (unsigned i = 0; name && i < sizeof known / sizeof *known; i++)
		if (!strcmp(name, known[i].name))
			return known[i].kind;
	return WEFT_KIND_POLL;
}

/* Writes the adapter's functions into the table.  A library that was unloaded may have had a table at the same address. */
static struct table *hook_table(GSourceFuncs *funcs)
{
	static uint32_t lock;
	struct table *t = find_table(funcs);
	if (!t || !funcs->dispatch || (t->funcs && funcs->dispatch == get_dispatch(t)))
		return funcs->dispatch ? t : NULL;
	if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return NULL; /* another thread is changing the table now, so this source is not recorded */
	dispatch_fn *dispatch = get_dispatch(t);
	finalize_fn *finalize = get_finalize(t);
	bool taken = t->funcs == funcs || !t->funcs;
	if (taken) {
		t->dispatch = funcs->dispatch;
		t->finalize = funcs->finalize;
		t->kind = (uint8_t)classify_funcs(funcs);
		__atomic_store_n(&t->funcs, funcs, __ATOMIC_RELEASE);
		taken = weft__write_protected(&funcs->finalize, &finalize, sizeof finalize) &&
			weft__write_protected(&funcs->dispatch, &dispatch, sizeof dispatch);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	return taken ? t : NULL;
}

/* ---- Labels ---- */

/* In a GTimeoutSource (since GLib 2.0) the interval follows the GSource. */
static void append_period(struct weft_hook_label *label, const GSource *source)
{
	const struct {
		GSource source;
		guint interval;
		gboolean is_seconds;
	} *timeout = (const void *)source;
	if (label->length > 0)
		weft_hook_append(label, ", ");
	weft_hook_append_ms(label, timeout->is_seconds ? (uint64_t)timeout->interval * 1000 : timeout->interval);
}

/* Since GLib 2.70, GLib's own sources have the names of their tables, which only repeat their kind. */
static const char *get_source_name(const GSource *source)
{
	static const char *const plain[] = {"GIdleSource", "GTimeoutSource", "GChildWatchSource", "GUnixSignalSource"};
	for (unsigned i = 0; source->name && i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(source->name, plain[i]))
			return NULL;
	return source->name;
}

/* Labels a source that has no label, by its name or its callback's name, and by a timer's period. */
static void label_source(struct weft__glib_object *tracked, const char *text, const GSource *source)
{
	struct weft_hook_label label = {0};
	if (tracked->is_labelled || !tracked->id || tracked->kind == WEFT_KIND_PROCESS)
		return;
	if (text)
		weft_hook_append(&label, text);
	if (tracked->kind == WEFT_KIND_TIMER && source)
		append_period(&label, source);
	weft__glib_label(tracked, label.text);
}

/* Remembers the source: its creator may still name it before the loop runs again. */
static void label_later(struct weft__glib_object *tracked)
{
	struct weft__glib_here *here = weft__glib_get_here();
	if (here->unlabelled_count == WEFT__GLIB_MAX_UNLABELLED)
		weft__glib_label_sources();
	here->unlabelled[here->unlabelled_count++] = weft__glib_tag_of(tracked);
}

/* The sources may be freed by now, so only the adapter's objects are used. */
void weft__glib_label_sources(void)
{
	struct weft__glib_here *here = weft__glib_get_here();
	while (here->unlabelled_count > 0) {
		struct weft__glib_object *tracked = weft__glib_object_of(here->unlabelled[--here->unlabelled_count]);
		if (tracked && !tracked->is_labelled)
			weft__glib_label(tracked, weft_hook_name((const void *)tracked->callback));
	}
}

/* A source that is not attached to a context has no promise. */
static __attribute__((noinline)) void relabel_source(GSource *source)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (tracked)
		label_source(tracked, get_source_name(source), source);
}

void weft__g_source_set_name(GSource *source, const char *text)
{
	if (!source || !source->context)
		return weft__glib_real.g_source_set_name(source, text);
	weft__glib_real.g_source_set_name(source, text);
	relabel_source(source);
}

void weft__g_source_set_static_name(GSource *source, const char *text)
{
	if (!source || !source->context)
		return weft__glib_real.g_source_set_static_name(source, text);
	weft__glib_real.g_source_set_static_name(source, text);
	relabel_source(source);
}

/* ---- Recurring sources ---- */

static struct seen {
	uint32_t lock;
	unsigned times;
	GSourceFunc callback;
	const void *data;
	weft__glib_tag representative, last; /* `last`: the latest source */
} seen[MAX_SEEN];

void weft__glib_sources_clear(void)
{
	memset(seen, 0, sizeof seen);
}

/* Counts the attachments of one-shot sources with the same callback and data.  From the third attachment on, the function
 * returns the object that represents all sources with the callback and data.  A source that is attached while an equal source is
 * pending does not count as a recurrence. */
static weft__glib_tag count_recurrence(
    const struct weft__glib_object *tracked, GSourceFunc callback, const void *data, bool *is_first)
{
	uint64_t hash = ((uint64_t)(uintptr_t)callback ^ (uint64_t)(uintptr_t)data * 31) * 0x9e3779b97f4a7c15u;
	struct seen *s = &seen[hash >> 40 & (MAX_SEEN - 1)];
	weft__glib_tag representative = 0;
	*is_first = false;
	if (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (s->callback != callback || s->data != data) {
		struct weft__glib_object *old = weft__glib_object_of(s->representative);
		if (old) {
			weft__glib_end(old, NULL);
			weft__glib_object_remove(old);
		}
		s->callback = callback;
		s->data = data;
		s->times = 0;
		s->representative = s->last = 0;
	}
	const struct weft__glib_object *last = weft__glib_object_of(s->last);
	const bool is_additional = last && last->key != weft__glib_get_here()->dispatched_source;
	s->last = weft__glib_tag_of(tracked);
	if (!is_additional && ++s->times >= MIN_RECURRENCES) {
		if (!weft__glib_object_of(s->representative)) {
			s->representative = weft__glib_tag_of(weft__glib_object_add(WEFT__GLIB_RECURRING, s));
			*is_first = true;
		}
		representative = s->representative;
	}
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
	return representative;
}

/* ---- Attachment ---- */

/* Returns the promise kind of a source.  Sources for descriptors that GLib makes for the program may be connections.  GIO's
 * connected sockets have promises of their own (socket.c), so a socket of GIO without a promise can only be a datagram
 * socket. */
static enum weft_kind classify_source(const struct table *table, struct weft__glib_object *tracked)
{
	struct weft_hook_label label = {0};
	const struct weft_hook_module *glib = weft__glib_modules.glib;
	if (table->kind != WEFT_KIND_POLL || tracked->fd < 0)
		return (enum weft_kind)table->kind;
	const bool is_plain = glib && weft_hook_is_own(glib, (const void *)table->dispatch);
	if (is_plain)
		return weft_hook_append_watched_fd(&label, tracked->fd, true, &tracked->has_datagrams) == WEFT_KIND_CONNECTION
			   ? WEFT_KIND_CONNECTION
			   : WEFT_KIND_POLL;
	tracked->has_datagrams = !weft_hook_fd_promise(tracked->fd) && weft_hook_has_datagrams(tracked->fd);
	return tracked->has_datagrams ? WEFT_KIND_CONNECTION : WEFT_KIND_POLL;
}

/* Returns whether the source's data lives on, so that equal data means the same purpose.  Data that is freed with its source is
 * new each time, perhaps at the same address.  The struct copies GSourceCallback (since GLib 2.0): count, callback, data,
 * destroy function. */
static bool has_lasting_data(const GSource *source, GSourceFunc callback, const void *data)
{
	const struct {
		guint count;
		GSourceFunc callback;
		const void *data;
		GDestroyNotify notify;
	} *kept = source->callback_data;
	if (!kept || kept->callback != callback || kept->data != data)
		return false;
	const char *name = kept->notify ? weft_hook_name((const void *)kept->notify) : NULL;
	return !kept->notify || (name && !strcmp(name, "g_object_unref"));
}

/* Gets the callback and data of the source. */
static void get_callback(GSource *source, GSourceFunc *callback, gpointer *data)
{
	*callback = NULL;
	*data = NULL;
	if (source->callback_funcs)
		source->callback_funcs->get(source->callback_data, source, callback, data);
}

/* Returns a label if libgio attaches the source to call code of the program; such a source is no internal promise.  Otherwise it
 * returns NULL. */
static const char *get_library_label(const GSource *source)
{
	static const struct {
		const char *ends, *label;
	} known[] = {
	    {"emit_signal_instance_in_idle_cb", "D-Bus signal"},
	    {"GFileMonitorSource", "file monitor"},
	    {"emit_closed_in_idle", "D-Bus connection closed"},
	    {"emit_new_connection_in_idle", "D-Bus connection"},
	    {"gdbusnamewatching.c] call_in_idle_cb", "D-Bus name watched"},
	    {"gdbusnameowning.c] call_in_idle_cb", "D-Bus name owned"},
	    {"invoke_get_property_in_idle_cb", "D-Bus property read"},
	    {"invoke_set_property_in_idle_cb", "D-Bus property set"},
	    {"invoke_get_all_properties_in_idle_cb", "D-Bus properties read"},
	};
	size_t length = source->name ? strlen(source->name) : 0;
	for (size_t i = 0, n; i < sizeof known / sizeof *known; i++)
		if ((n = strlen(known[i].ends)) <= length && !memcmp(source->name + length - n, known[i].ends, n))
			return known[i].label;
	return NULL;
}

/* Returns whether the source continues the source that is being dispatched: it is attached in that dispatch, at the same site,
 * with new data, and the thread does not sleep in between.  A source that continues another takes over its count. */
static bool is_continued(struct weft__glib_object *tracked, enum weft_kind kind, const void *site)
{
	const struct weft__glib_object *last =
	    weft__glib_object_find(WEFT__GLIB_SOURCE, weft__glib_get_here()->dispatched_source);
	const struct weft__glib_object *story = last && last->stands_for ? weft__glib_object_of(last->stands_for) : last;
	if (!story || story->kind != kind || story->site != weft_hook_site(site))
		return false;
	tracked->calls = story->calls;
	return weft_hook_is_spinning(&story->calls);
}

/* Creates the promise of a source, or of the object that represents recurring sources. */
static void begin_source(struct weft__glib_object *tracked, GSource *source, enum weft_kind kind, gpointer data, const void *site)
{
	const struct weft__glib_object *task = weft__glib_object_find(WEFT__GLIB_TASK, data);
	weft_id owner = task && !task->is_ended ? task->id : weft__glib_current_promise();
	bool is_own = weft__glib_is_own(site);
	const char *library_label = is_own ? get_library_label(source) : NULL;
	bool is_part = is_own && !library_label && (!tracked->callback || weft__glib_is_own((const void *)tracked->callback));
	bool once = kind == WEFT_KIND_HANDLE || kind == WEFT_KIND_TIMER, is_first = false;
	struct weft__glib_object *representative = NULL;
	if (once && tracked->callback && !task && has_lasting_data(source, tracked->callback, data))
		tracked->stands_for = count_recurrence(tracked, tracked->callback, data, &is_first);
	else if (once && tracked->callback && !task && is_continued(tracked, kind, site))
		tracked->stands_for = count_recurrence(tracked, (GSourceFunc)(uintptr_t)site, NULL, &is_first);
	representative = weft__glib_object_of(tracked->stands_for);
	if (representative && !is_first)
		return;
	struct weft__glib_object *new = representative ? representative : tracked;
	new->callback = tracked->callback;
	new->calls = tracked->calls;
	bool is_awaited = task && task->id && !task->is_ended && task->id != weft__glib_current_promise();
	weft__glib_create(new, kind, site, is_part, owner, is_awaited ? task->id : 0);
	if (library_label)
		weft__glib_label(new, library_label);
	else if (get_source_name(source))
		label_source(new, source->name, source);
	else if (kind == WEFT_KIND_TIMER)
		label_source(new, weft_hook_name((const void *)tracked->callback), source);
	else if (!representative)
		label_later(tracked);
}

/* Programs add descriptors before they attach the source, often to a child source.  So the thread remembers only the descriptor
 * that was added last. */
static void set_watched_fd(const GSource *source, int fd, GIOCondition events)
{
	struct weft__glib_object *tracked = weft__glib_should_record() ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	weft__glib_get_here()->watched.source = source;
	weft__glib_get_here()->watched.fd = fd;
	weft__glib_get_here()->watched.events = (short)events;
	if (tracked) {
		tracked->fd = fd;
		tracked->events = (short)events;
		tracked->is_untouched = false;
	}
}

gpointer weft__g_source_add_unix_fd(GSource *source, gint fd, GIOCondition events)
{
	set_watched_fd(source, fd, events);
	return weft__glib_real.g_source_add_unix_fd(source, fd, events);
}

void weft__g_source_add_child_source(GSource *source, GSource *child)
{
	const struct weft__glib_here *here = weft__glib_get_here();
	if (here->watched.source == child)
		set_watched_fd(source, here->watched.fd, (GIOCondition)here->watched.events);
	weft__glib_real.g_source_add_child_source(source, child);
}

/* Assigns the descriptor to the source's promise. */
static void attach_fd(const struct weft__glib_object *tracked)
{
	if (tracked->kind == WEFT_KIND_CONNECTION)
		weft_hook_fd_attach_if_free(tracked->fd, tracked->id, tracked->has_datagrams);
	else if (tracked->kind == WEFT_KIND_LISTEN)
		weft__loop_leave_listener(tracked->fd);
}

static void find_descriptor(struct weft__glib_object *tracked, const GSource *source)
{
	const struct weft__glib_here *here = weft__glib_get_here();
	const GPollFD *first = source->poll_fds ? source->poll_fds->data : NULL;
	tracked->fd = here->watched.source == source ? here->watched.fd : first ? first->fd : -1;
	tracked->events = here->watched.source == source ? here->watched.events : first ? (short)first->events : 0;
}

static void begin_attached(GSource *source, const GMainContext *context, const void *caller)
{
	struct weft__glib_here *here = weft__glib_get_here();
	gpointer data;
	GSourceFunc callback;
	get_callback(source, &callback, &data);
	const struct weft__glib_object *task = weft__glib_object_find(WEFT__GLIB_TASK, data);
	struct weft__glib_object *old = task && task->is_returned ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (old)
		weft__glib_object_remove(old);
	if (task && task->is_returned) /* the source delivers the result of the task */
		return;
	struct table *table = hook_table((GSourceFuncs *)source->source_funcs);
	struct weft__glib_object *tracked = table ? weft__glib_object_add(WEFT__GLIB_SOURCE, source) : NULL;
	if (!tracked)
		return;
	tracked->callback = callback;
	tracked->context = context;
	find_descriptor(tracked, source);
	const void *site = here->site ? here->site : caller;
	if (source->name && weft__glib_is_gio(caller) && weft__glib_is_serving(source->name, data))
		weft__glib_begin_served(tracked, data);
	else if (table->kind == WEFT_KIND_PROCESS)
		weft__glib_begin_child(tracked, source, data);
	else
		begin_source(tracked, source, classify_source(table, tracked), data, site);
	attach_fd(tracked);
	weft__glib_await_source(tracked);
}

/* Another thread may free the source now, so the function checks all signs of a valid source. */
void weft__glib_begin_older_source(GSource *source)
{
	gpointer data;
	if (!weft_hook_is_readable(source, sizeof *source) || !source->ref_count || !source->source_funcs ||
	    !(source->flags & G_HOOK_FLAG_ACTIVE) || weft__glib_object_find(WEFT__GLIB_SOURCE, source))
		return;
	struct table *table = hook_table((GSourceFuncs *)source->source_funcs);
	struct weft__glib_object *tracked = table ? weft__glib_object_add(WEFT__GLIB_SOURCE, source) : NULL;
	if (!tracked)
		return;
	get_callback(source, &tracked->callback, &data);
	tracked->context = source->context;
	weft__glib_get_here()->watched.source = NULL;
	find_descriptor(tracked, source);
	weft__glib_create_older(tracked, classify_source(table, tracked), 0);
	attach_fd(tracked);
	const char *library_label = get_library_label(source), *function = weft_hook_name((const void *)tracked->callback);
	label_source(tracked,
	    library_label             ? library_label
	    : get_source_name(source) ? get_source_name(source)
				      : function,
	    source);
	weft__glib_await_source(tracked);
	if (tracked->is_labelled || tracked->fd < 0)
		return;
	weft_hook_append_fd(&tracked->label, tracked->fd);
	weft_hook_record_label(&tracked->label, tracked->id);
	tracked->is_labelled = true;
}

guint weft__g_source_attach(GSource *source, GMainContext *context)
{
	/* The attachment is recorded before the original call, because another thread may dispatch the source at once. */
	if (weft__glib_should_record() && source && !source->context)
		begin_attached(source, context, __builtin_return_address(0));
	return weft__glib_real.g_source_attach(source, context);
}

#define ADD_SOURCE(result, name, parameters, arguments)                                                                          \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		/* The recording may start here, which clears `site`, so `site` is set afterwards. */                            \
		const void *outer = weft__glib_should_record() ? weft__glib_get_here()->site : NULL;                             \
		if (!outer)                                                                                                      \
			weft__glib_get_here()->site = __builtin_return_address(0);                                               \
		result id = weft__glib_real.name arguments;                                                                      \
		weft__glib_get_here()->site = outer;                                                                             \
		return id;                                                                                                       \
	}
WEFT__GLIB_SHORT_CALLS(ADD_SOURCE)

/* ---- Dispatch and end ---- */

static void end_source(struct weft__glib_object *tracked)
{
	if (!tracked->stands_for && tracked->id && !tracked->is_ended) {
		if (!tracked->is_labelled)
			weft__glib_label(tracked, weft_hook_name((const void *)tracked->callback));
		weft__glib_end(tracked, NULL);
	}
	weft__glib_object_remove(tracked);
}

/* Returns whether the dispatch has an external cause, or is one of the first few without an external cause. */
static bool should_record_dispatch(const struct weft__glib_object *source, struct weft__glib_object *story)
{
	bool has_fd = source->fd >= 0 && !source->is_untouched;
	bool is_poll = story->kind == WEFT_KIND_POLL || story->kind == WEFT_KIND_CONNECTION;
	if (is_poll && has_fd)
		weft_hook_count_call(&story->calls);
	return (is_poll ? has_fd : story->kind != WEFT_KIND_HANDLE && story->kind != WEFT_KIND_TIMER) ||
	       weft_hook_count_repeat(&story->calls, story->id, true);
}

/* Runs the dispatch in the name of the promise of `story`. */
static gboolean run_dispatch(struct weft__glib_object *tracked, struct weft__glib_object *story, GSource *source,
    GSourceFunc callback, gpointer data, dispatch_fn *dispatch)
{
	struct weft__glib_here *here = weft__glib_get_here();
	bool should_record = should_record_dispatch(tracked, story),
	     should_probe = tracked->fd >= 0 && weft_hook_should_probe_fd(&story->calls);
	WEFT__GLIB_FRAME frame =
	    weft__glib_enter_callback(story->id, story->type == WEFT__GLIB_SERVED ? tracked->stands_for : 0, story->is_part);
	(void)frame;
	if (here->unlabelled_count > 0)
		weft__glib_label_sources();
	story->owner_thread = here;
	here->asked = NULL;
	if (should_record)
		weft_hook_record_signal(story->id);
	if (tracked->kind == WEFT_KIND_PROCESS)
		return weft__glib_dispatch_child_end(tracked, source, callback, data, dispatch);
	int fd = tracked->fd, waiting = should_probe ? weft_hook_probe_fd(fd) : 0;
	short events = tracked->events;
	gboolean again = dispatch(source, callback, data);
	tracked = should_probe && again ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (tracked)
		tracked->is_untouched = weft_hook_is_fd_untouched(fd, events, waiting);
	return again;
}

gboolean weft__glib_dispatched(GSource *source, GSourceFunc callback, gpointer data, unsigned number)
{
	struct weft__glib_here *here = weft__glib_get_here();
	const struct table *table = &tables[number];
	/* A call from another table's function belongs to the same dispatch. */
	bool is_taken = here->dispatched_source != source && weft__glib_should_record();
	struct weft__glib_object *tracked = is_taken ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	struct weft__glib_object *story = tracked && tracked->stands_for ? weft__glib_object_of(tracked->stands_for) : tracked;
	if (!tracked)
		return table->dispatch(source, callback, data);
	const GSource *outer = here->dispatched_source;
	here->dispatched_source = source;
	gboolean again = story && story->id ? run_dispatch(tracked, story, source, callback, data, table->dispatch)
					    : table->dispatch(source, callback, data);
	here->dispatched_source = outer;
	if (!again && (tracked = weft__glib_object_find(WEFT__GLIB_SOURCE, source)))
		end_source(tracked);
	return again;
}

void weft__g_source_destroy(GSource *source)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (tracked)
		end_source(tracked);
	weft__glib_real.g_source_destroy(source);
}

/* Records the end of a source that its context or the last g_source_unref() ends. */
void weft__glib_finalized(GSource *source, unsigned number)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (tracked)
		end_source(tracked);
	if (tables[number].finalize)
		tables[number].finalize(source);
}
