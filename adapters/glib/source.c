/* source.c: what GLib's loop waits for.
 *
 * A source is a promise from its attachment to its end; each dispatch is a message of the system to it.  The loop calls
 * `dispatch` of the source's table of functions: ours stands in the table itself, since programs and GLib compare the addresses
 * of tables.  A table is changed when the first source of it is attached: nobody uses it then.
 *
 * A one-shot source whose callback and data come back again and again is one promise from the third time on: a frame clock is a
 * line, not sixty a second.  So is one with another closure each time, where the OS thread does not sleep.  A source that only
 * brings a task home has none.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/slots.h"

enum { TABLES = 256, TRIED = 32, SEEN = 1024, RECURS = 3 };

typedef gboolean dispatch_fn(GSource *, GSourceFunc, gpointer);
typedef void finalize_fn(GSource *);

/* ---- Tables ---- */

/* Number n of a table's functions: they know the table, wherever they are called from.  Programs copy tables, and call the
 * function of one in that of another. */
static struct table {
	const GSourceFuncs *funcs; /* NULL: free */
	dispatch_fn *dispatch;
	finalize_fn *finalize;
	uint8_t kind;
} tables[TABLES];

WEFT_HOOK_CODE(weft__glib_dispatched, 3, 256);
WEFT_HOOK_CODE(weft__glib_finalized, 1, 256);

gboolean weft__glib_dispatched(GSource *source, GSourceFunc callback, gpointer data, unsigned table);
void weft__glib_finalized(GSource *source, unsigned table);

static dispatch_fn *dispatch_of(const struct table *t)
{
	return (dispatch_fn *)(uintptr_t)(weft__glib_dispatched_code + WEFT_HOOK_SLOT_BYTES * (t - tables));
}

static finalize_fn *finalize_of(const struct table *t)
{
	return (finalize_fn *)(uintptr_t)(weft__glib_finalized_code + WEFT_HOOK_SLOT_BYTES * (t - tables));
}

static struct table *table_of(const GSourceFuncs *funcs)
{
	unsigned first = (unsigned)((uintptr_t)funcs * 0x9e3779b97f4a7c15u >> 40);
	for (unsigned i = 0; i < TRIED; i++) {
		struct table *t = &tables[(first + i) % TABLES];
		const GSourceFuncs *seen = __atomic_load_n(&t->funcs, __ATOMIC_ACQUIRE);
		if (seen == funcs || !seen)
			return t;
	}
	return NULL;
}

static enum weft_kind kind_of(const GSourceFuncs *funcs)
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

/* Puts our functions in the table; an unloaded library's table may have had the same address. */
static struct table *take_table(GSourceFuncs *funcs)
{
	static uint32_t lock;
	struct table *t = table_of(funcs);
	if (!t || !funcs->dispatch || (t->funcs && funcs->dispatch == dispatch_of(t)))
		return funcs->dispatch ? t : NULL;
	if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		return NULL; /* another OS thread takes one just now: of this source nothing is seen */
	dispatch_fn *dispatch = dispatch_of(t);
	finalize_fn *finalize = finalize_of(t);
	bool taken = t->funcs == funcs || !t->funcs;
	if (taken) {
		t->dispatch = funcs->dispatch;
		t->finalize = funcs->finalize;
		t->kind = (uint8_t)kind_of(funcs);
		__atomic_store_n(&t->funcs, funcs, __ATOMIC_RELEASE);
		taken = weft__poke(&funcs->finalize, &finalize, sizeof finalize) &&
			weft__poke(&funcs->dispatch, &dispatch, sizeof dispatch);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	return taken ? t : NULL;
}

/* ---- Names ---- */

/* GTimeoutSource, since 2.0: its interval stands behind the source. */
static void put_period(struct weft_hook_label *label, const GSource *source)
{
	const struct {
		GSource source;
		guint interval;
		gboolean is_seconds;
	} *timeout = (const void *)source;
	if (label->length > 0)
		weft_hook_put(label, ", ");
	weft_hook_put_ms(label, timeout->is_seconds ? (uint64_t)timeout->interval * 1000 : timeout->interval);
}

/* Since 2.70 GLib names its own sources after their tables, which says no more than their kinds. */
static const char *name_of(const GSource *source)
{
	static const char *const plain[] = {"GIdleSource", "GTimeoutSource", "GChildWatchSource", "GUnixSignalSource"};
	for (unsigned i = 0; source->name && i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(source->name, plain[i]))
			return NULL;
	return source->name;
}

/* Its label, unless it has one: a name, or what its callback is called; and the period of a timer. */
static void name(struct weft__glib_thing *thing, const char *text, const GSource *source)
{
	struct weft_hook_label label = {0};
	if (thing->is_labelled || !thing->id || thing->kind == WEFT_KIND_PROCESS)
		return;
	if (text)
		weft_hook_put(&label, text);
	if (thing->kind == WEFT_KIND_TIMER && source)
		put_period(&label, source);
	weft__glib_label(thing, label.text);
}

/* Who attaches a source may name it after that, but does so before it goes back to the loop. */
static void name_later(struct weft__glib_thing *thing)
{
	struct weft__glib_here *here = &weft__glib_here;
	if (here->unlabelled_count == WEFT__GLIB_UNLABELLED)
		weft__glib_name_sources();
	here->unlabelled[here->unlabelled_count++] = weft__glib_tag_of(thing);
}

/* The sources may be gone by now: only what is known of them is looked at. */
void weft__glib_name_sources(void)
{
	struct weft__glib_here *here = &weft__glib_here;
	while (here->unlabelled_count > 0) {
		struct weft__glib_thing *thing = weft__glib_thing_of(here->unlabelled[--here->unlabelled_count]);
		if (thing && !thing->is_labelled)
			weft__glib_label(thing, weft_hook_name((const void *)thing->callback));
	}
}

/* One that is not attached yet has no promise. */
static __attribute__((noinline)) void was_named(GSource *source)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (thing)
		name(thing, name_of(source), source);
}

void weft__g_source_set_name(GSource *source, const char *text)
{
	if (!source || !source->context)
		return weft__glib_real.g_source_set_name(source, text);
	weft__glib_real.g_source_set_name(source, text);
	was_named(source);
}

void weft__g_source_set_static_name(GSource *source, const char *text)
{
	if (!source || !source->context)
		return weft__glib_real.g_source_set_static_name(source, text);
	weft__glib_real.g_source_set_static_name(source, text);
	was_named(source);
}

/* ---- What recurs ---- */

static struct seen {
	uint32_t lock;
	unsigned times;
	GSourceFunc callback;
	const void *data;
	weft__glib_tag stands, last; /* `last`: the last source */
} seen[SEEN];

void weft__glib_sources_forget(void)
{
	memset(seen, 0, sizeof seen);
}

/* Counts a callback with its data; from the third time on, what stands for all of its sources.  One that is attached while
 * another is still to come does not come again: it is one more. */
static weft__glib_tag recurring(const struct weft__glib_thing *thing, GSourceFunc callback, const void *data, bool *is_first)
{
	uint64_t hash = ((uint64_t)(uintptr_t)callback ^ (uint64_t)(uintptr_t)data * 31) * 0x9e3779b97f4a7c15u;
	struct seen *s = &seen[hash >> 40 & (SEEN - 1)];
	weft__glib_tag stands = 0;
	*is_first = false;
	if (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
		return 0;
	if (s->callback != callback || s->data != data) {
		struct weft__glib_thing *old = weft__glib_thing_of(s->stands);
		if (old) {
			weft__glib_end(old, NULL);
			weft__glib_thing_remove(old);
		}
		s->callback = callback;
		s->data = data;
		s->times = 0;
		s->stands = s->last = 0;
	}
	const struct weft__glib_thing *last = weft__glib_thing_of(s->last);
	const bool is_more = last && last->key != weft__glib_here.dispatched;
	s->last = weft__glib_tag_of(thing);
	if (!is_more && ++s->times >= RECURS) {
		if (!weft__glib_thing_of(s->stands)) {
			s->stands = weft__glib_tag_of(weft__glib_thing_add(WEFT__GLIB_RECURRING, s));
			*is_first = true;
		}
		stands = s->stands;
	}
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
	return stands;
}

/* ---- Attachment ---- */

/* What GLib itself watches a descriptor with, which the program gave it: a connection is one.  GIO's sockets have promises of
 * their own once they are connected; others can be for datagrams alone. */
static enum weft_kind kind_of_source(const struct table *table, struct weft__glib_thing *thing)
{
	struct weft_hook_label label = {0};
	const struct weft_hook_module *glib = weft__glib_modules.glib;
	if (table->kind != WEFT_KIND_POLL || thing->fd < 0)
		return (enum weft_kind)table->kind;
	const bool is_plain = glib && weft_hook_is_own(glib, (const void *)table->dispatch);
	if (is_plain)
		return weft_hook_put_watched(&label, thing->fd, true, &thing->has_datagrams) == WEFT_KIND_CONNECTION
			   ? WEFT_KIND_CONNECTION
			   : WEFT_KIND_POLL;
	thing->has_datagrams = !weft_hook_carrier(thing->fd) && weft_hook_has_datagrams(thing->fd);
	return thing->has_datagrams ? WEFT_KIND_CONNECTION : WEFT_KIND_POLL;
}

/* Whether another source with that data is one of the same: data that ends with the source is made anew each time, perhaps at the
 * same address.  GSourceCallback, since 2.0: a count, the callback, its data, what ends the data. */
static bool outlives(const GSource *source, GSourceFunc callback, const void *data)
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

/* What the source will call. */
static void get_callback(GSource *source, GSourceFunc *callback, gpointer *data)
{
	*callback = NULL;
	*data = NULL;
	if (source->callback_funcs)
		source->callback_funcs->get(source->callback_data, source, callback, data);
}

/* What libgio brings to the loop of the program, whose code it then calls: that is no part of whoever attached the source.  NULL:
 * no such thing. */
static const char *brings(const GSource *source)
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

/* Whether it goes on with what the source does that is dispatched: is attached by that at the same place, has another closure
 * each time, and the OS thread does not sleep in between.  Then how often that was is its count, too. */
static bool goes_on(struct weft__glib_thing *thing, enum weft_kind kind, const void *site)
{
	const struct weft__glib_thing *last = weft__glib_thing_find(WEFT__GLIB_SOURCE, weft__glib_here.dispatched);
	const struct weft__glib_thing *story = last && last->stands_for ? weft__glib_thing_of(last->stands_for) : last;
	if (!story || story->kind != kind || story->site != weft_hook_place(site))
		return false;
	thing->calls = story->calls;
	return weft_hook_is_often(&story->calls);
}

/* The promise of a source that has one: its own, or of what it recurs as. */
static void begin(struct weft__glib_thing *thing, GSource *source, enum weft_kind kind, gpointer data, const void *site)
{
	const struct weft__glib_thing *task = weft__glib_thing_find(WEFT__GLIB_TASK, data);
	weft_id owner = task && !task->is_ended ? task->id : weft__glib_who();
	bool is_own = weft__glib_is_own(site);
	const char *brought = is_own ? brings(source) : NULL;
	bool is_part = is_own && !brought && (!thing->callback || weft__glib_is_own((const void *)thing->callback));
	bool once = kind == WEFT_KIND_HANDLE || kind == WEFT_KIND_TIMER, is_first = false;
	struct weft__glib_thing *stands = NULL;
	if (once && thing->callback && !task && outlives(source, thing->callback, data))
		thing->stands_for = recurring(thing, thing->callback, data, &is_first);
	else if (once && thing->callback && !task && goes_on(thing, kind, site))
		thing->stands_for = recurring(thing, (GSourceFunc)(uintptr_t)site, NULL, &is_first);
	stands = weft__glib_thing_of(thing->stands_for);
	if (stands && !is_first)
		return;
	struct weft__glib_thing *new = stands ? stands : thing;
	new->callback = thing->callback;
	new->calls = thing->calls;
	bool is_awaited = task && task->id && !task->is_ended && task->id != weft__glib_who();
	weft__glib_create(new, kind, site, is_part, owner, is_awaited ? task->id : 0);
	if (brought)
		weft__glib_label(new, brought);
	else if (name_of(source))
		name(new, source->name, source);
	else if (kind == WEFT_KIND_TIMER)
		name(new, weft_hook_name((const void *)thing->callback), source);
	else if (!stands)
		name_later(thing);
}

/* A source is given descriptors before it is attached, often by way of a child.  One that waits for several is known by the last.
 */
static void watches(const GSource *source, int fd, GIOCondition events)
{
	struct weft__glib_thing *thing = weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	weft__glib_here.watched.source = source;
	weft__glib_here.watched.fd = fd;
	weft__glib_here.watched.events = (short)events;
	if (thing) {
		thing->fd = fd;
		thing->events = (short)events;
		thing->is_untouched = false;
	}
}

gpointer weft__g_source_add_unix_fd(GSource *source, gint fd, GIOCondition events)
{
	watches(source, fd, events);
	return weft__glib_real.g_source_add_unix_fd(source, fd, events);
}

void weft__g_source_add_child_source(GSource *source, GSource *child)
{
	const struct weft__glib_here *here = &weft__glib_here;
	if (here->watched.source == child)
		watches(source, here->watched.fd, (GIOCondition)here->watched.events);
	weft__glib_real.g_source_add_child_source(source, child);
}

static void find_descriptor(struct weft__glib_thing *thing, const GSource *source)
{
	const struct weft__glib_here *here = &weft__glib_here;
	const GPollFD *first = source->poll_fds ? source->poll_fds->data : NULL;
	thing->fd = here->watched.source == source ? here->watched.fd : first ? first->fd : -1;
	thing->events = here->watched.source == source ? here->watched.events : first ? (short)first->events : 0;
}

static void attached(GSource *source, const GMainContext *context, const void *caller)
{
	struct weft__glib_here *here = &weft__glib_here;
	gpointer data;
	GSourceFunc callback;
	get_callback(source, &callback, &data);
	const struct weft__glib_thing *task = weft__glib_thing_find(WEFT__GLIB_TASK, data);
	struct weft__glib_thing *old = task && task->is_returned ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (old)
		weft__glib_thing_remove(old);
	if (task && task->is_returned) /* its way home */
		return;
	struct table *table = take_table((GSourceFuncs *)source->source_funcs);
	struct weft__glib_thing *thing = table ? weft__glib_thing_add(WEFT__GLIB_SOURCE, source) : NULL;
	if (!thing)
		return;
	thing->callback = callback;
	thing->context = context;
	find_descriptor(thing, source);
	const void *site = here->site ? here->site : caller;
	if (source->name && weft__glib_is_gio(caller) && weft__glib_is_serving(source->name, data))
		weft__glib_serves(thing, data);
	else if (table->kind == WEFT_KIND_PROCESS)
		weft__glib_child_begins(thing, source, data);
	else
		begin(thing, source, kind_of_source(table, thing), data, site);
	if (thing->kind == WEFT_KIND_CONNECTION)
		weft_hook_may_carry(thing->fd, thing->id, thing->has_datagrams);
	weft__glib_is_kept(thing);
}

/* Another OS thread may destroy it just now: what is not a source of ours by all signs is left alone. */
void weft__glib_source_is_older(GSource *source)
{
	gpointer data;
	if (!weft_hook_is_readable(source, sizeof *source) || !source->ref_count || !source->source_funcs ||
	    !(source->flags & G_HOOK_FLAG_ACTIVE) || weft__glib_thing_find(WEFT__GLIB_SOURCE, source))
		return;
	struct table *table = take_table((GSourceFuncs *)source->source_funcs);
	struct weft__glib_thing *thing = table ? weft__glib_thing_add(WEFT__GLIB_SOURCE, source) : NULL;
	if (!thing)
		return;
	get_callback(source, &thing->callback, &data);
	thing->context = source->context;
	weft__glib_here.watched.source = NULL;
	find_descriptor(thing, source);
	weft__glib_create_older(thing, kind_of_source(table, thing), 0);
	if (thing->kind == WEFT_KIND_CONNECTION)
		weft_hook_may_carry(thing->fd, thing->id, thing->has_datagrams);
	const char *brought = brings(source), *function = weft_hook_name((const void *)thing->callback);
	name(thing, brought ? brought : name_of(source) ? name_of(source) : function, source);
	weft__glib_is_kept(thing);
	if (thing->is_labelled || thing->fd < 0)
		return;
	weft_hook_put_fd(&thing->label, thing->fd);
	weft_hook_say(&thing->label, thing->id);
	thing->is_labelled = true;
}

guint weft__g_source_attach(GSource *source, GMainContext *context)
{
	/* Before the call: another OS thread may dispatch it at once. */
	if (weft__glib_begins() && source && !source->context)
		attached(source, context, __builtin_return_address(0));
	return weft__glib_real.g_source_attach(source, context);
}

#define SHORT(result, name, parameters, arguments)                                                                               \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		/* Recording may begin here, which knows of no call before it. */                                                \
		const void *outer = weft__glib_begins() ? weft__glib_here.site : NULL;                                           \
		if (!outer)                                                                                                      \
			weft__glib_here.site = __builtin_return_address(0);                                                      \
		result id = weft__glib_real.name arguments;                                                                      \
		weft__glib_here.site = outer;                                                                                    \
		return id;                                                                                                       \
	}
WEFT__GLIB_SHORT_CALLS(SHORT)

/* ---- Dispatch, and the end ---- */

static void ended(struct weft__glib_thing *thing)
{
	if (!thing->stands_for && thing->id && !thing->is_ended) {
		if (!thing->is_labelled)
			weft__glib_label(thing, weft_hook_name((const void *)thing->callback));
		weft__glib_end(thing, NULL);
	}
	weft__glib_thing_remove(thing);
}

/* Something came to it from outside, or it is ready by itself and may keep the OS thread from sleeping. */
static bool is_told(const struct weft__glib_thing *source, struct weft__glib_thing *story)
{
	bool has_fd = source->fd >= 0 && !source->is_untouched;
	bool is_poll = story->kind == WEFT_KIND_POLL || story->kind == WEFT_KIND_CONNECTION;
	if (is_poll && has_fd)
		weft_hook_count(&story->calls);
	return (is_poll ? has_fd : story->kind != WEFT_KIND_HANDLE && story->kind != WEFT_KIND_TIMER) ||
	       weft_hook_called(&story->calls, story->id, true);
}

/* As `story`, in which something is recorded. */
static gboolean run(struct weft__glib_thing *thing, struct weft__glib_thing *story, GSource *source, GSourceFunc callback,
    gpointer data, dispatch_fn *dispatch)
{
	struct weft__glib_here *here = &weft__glib_here;
	bool tells = is_told(thing, story), looks = thing->fd >= 0 && weft_hook_looks(&story->calls);
	WEFT__GLIB_FRAME frame =
	    weft__glib_enter(story->id, story->type == WEFT__GLIB_SERVED ? thing->stands_for : 0, story->is_part);
	(void)frame;
	if (here->unlabelled_count > 0)
		weft__glib_name_sources();
	story->home = here;
	here->asked = NULL;
	if (tells)
		weft_hook_signal(story->id);
	if (thing->kind == WEFT_KIND_PROCESS)
		return weft__glib_child_ends(thing, source, callback, data, dispatch);
	int fd = thing->fd, waiting = looks ? weft_hook_waiting(fd) : 0;
	short events = thing->events;
	gboolean again = dispatch(source, callback, data);
	thing = looks && again ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (thing)
		thing->is_untouched = weft_hook_is_untouched(fd, events, waiting);
	return again;
}

gboolean weft__glib_dispatched(GSource *source, GSourceFunc callback, gpointer data, unsigned number)
{
	struct weft__glib_here *here = &weft__glib_here;
	const struct table *table = &tables[number];
	/* The function of another table may have called this one: that is one dispatch. */
	bool is_taken = here->dispatched != source && weft__glib_begins();
	struct weft__glib_thing *thing = is_taken ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	struct weft__glib_thing *story = thing && thing->stands_for ? weft__glib_thing_of(thing->stands_for) : thing;
	if (!thing)
		return table->dispatch(source, callback, data);
	const GSource *outer = here->dispatched;
	here->dispatched = source;
	gboolean again = story && story->id ? run(thing, story, source, callback, data, table->dispatch)
					    : table->dispatch(source, callback, data);
	here->dispatched = outer;
	if (!again && (thing = weft__glib_thing_find(WEFT__GLIB_SOURCE, source)))
		ended(thing);
	return again;
}

void weft__g_source_destroy(GSource *source)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (thing)
		ended(thing);
	weft__glib_real.g_source_destroy(source);
}

/* One that its context or a plain unref has ended. */
void weft__glib_finalized(GSource *source, unsigned number)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_SOURCE, source) : NULL;
	if (thing)
		ended(thing);
	if (tables[number].finalize)
		tables[number].finalize(source);
}
