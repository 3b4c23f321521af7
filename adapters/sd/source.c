/* source.c: records sd-event's sources: descriptors, timers, signals, child processes, watched files, and deferred calls.
 *
 * On standby, sources are remembered without promises, because sd-event cannot list its sources, and a daemon adds few.
 *
 * The promise of a source lasts from the call that adds the source to the drop of the last reference.  A floating source belongs
 * to its loop, and the program gets no pointer to it; the adapter adds such a source with a pointer, and then makes it floating.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>

#include "adapters/sd/common.h"

enum { SLOT_COUNT = 256 };

static void *plain_users[SLOT_COUNT], *value_users[SLOT_COUNT], *io_users[SLOT_COUNT];
int weft__sd_called(sd_event_source *source, void *data, unsigned slot);
int weft__sd_called_value(sd_event_source *source, uint64_t what, void *data, unsigned slot);
int weft__sd_called_io(sd_event_source *source, int fd, uint32_t events, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__sd_called, 2, 256);
WEFT_HOOK_CODE(weft__sd_called_value, 3, 256);
WEFT_HOOK_CODE(weft__sd_called_io, 4, 256);
static const struct weft_hook_slots plain_slots = {weft__sd_called_code, plain_users, SLOT_COUNT};
static const struct weft_hook_slots value_slots = {weft__sd_called_value_code, value_users, SLOT_COUNT};
static const struct weft_hook_slots io_slots = {weft__sd_called_io_code, io_users, SLOT_COUNT};

/* A source without a handler makes the loop exit. */
static void *get_slot(const struct weft_hook_slots *slots, void *user)
{
	return user ? weft_hook_slot(slots, user) : NULL;
}

int weft__sd_event_source_set_description(
    struct weft__sd_copy *copy, const void *caller, sd_event_source *source, const char *description)
{
	int status = copy->real.sd_event_source_set_description(source, description);
	if (status >= 0 && description && weft__sd_should_track())
		weft__sd_label_key(source, description);
	return status;
}

/* ---- Adding ---- */

/* State of a call that adds a source. */
struct adding {
	struct weft__sd_copy *copy;
	const void *caller;
	sd_event_source *own_source, **wanted_at,
	    /* Variable of the program for the pointer (NULL for a floating source), and variable in which the call stores the
	     * pointer. */
	    **stored_at;
	bool is_tracked;
	enum weft_kind kind;
	const void *function;
	int fd;
	bool is_enabled, comes_from_outside, spins, has_datagrams;
	struct weft_hook_label label;
};

static void begin_add(struct adding *a)
{
	a->is_tracked = weft__sd_should_record() || weft__sd_should_track();
	a->stored_at = a->is_tracked && !a->wanted_at ? &a->own_source : a->wanted_at;
}

static void create_object(const struct adding *a, sd_event_source *source)
{
	const sd_event *event = a->copy->real.sd_event_source_get_event(source);
	const bool is_on = weft_is_on();
	weft_id loop = is_on ? weft__sd_id(event) : 0;
	weft__sd_lock(source);
	struct weft__sd_object *object = weft__sd_find(source);
	if (object) { /* the old object at this address belongs to a source that was freed */
		if (object->id)
			weft_resolve(WEFT_SYSTEM_ID, object->id);
		weft_hook_object_remove(&weft__sd_objects, &object->object);
	}
	if ((object = weft_hook_object_create(&weft__sd_objects, source))) {
		object->event = event;
		object->function = a->function;
		object->references = 1;
		object->fd = a->fd;
		object->is_enabled = a->is_enabled;
		object->comes_from_outside = a->comes_from_outside;
		object->spins = a->spins;
		object->has_datagrams = a->has_datagrams;
		object->label = a->label;
		object->kind = (uint8_t)a->kind;
		if (is_on) {
			weft_hook_object_begin(&object->object, a->kind, a->caller);
			weft__sd_attach_fd(object);
		}
		if (loop && a->is_enabled)
			weft_await(object->awaited_by = loop, object->id);
	}
	weft__sd_unlock(source);
}

static void make_floating(const struct adding *a, sd_event_source *source)
{
	a->copy->real.sd_event_source_set_floating(source, 1);
	a->copy->real.sd_event_source_unref(source);
	weft__sd_lock(source);
	struct weft__sd_object *object = weft__sd_find(source);
	if (object)
		object->references = 1;
	weft__sd_unlock(source);
}

static int end_add(const struct adding *a, int status)
{
	if (!a->is_tracked || status < 0)
		return status;
	sd_event_source *source = *a->stored_at;
	create_object(a, source);
	if (!a->wanted_at)
		make_floating(a, source);
	if (weft_is_on())
		weft__sd_label_later(source);
	return status;
}

#define BEGIN_ADD(KIND, ...)                                                                                                     \
	struct adding a = {.copy = copy,                                                                                         \
	    .caller = caller,                                                                                                    \
	    .wanted_at = source,                                                                                                 \
	    .kind = KIND,                                                                                                        \
	    .function = (const void *)user,                                                                                      \
	    .fd = -1,                                                                                                            \
	    __VA_ARGS__};                                                                                                        \
	begin_add(&a)

int weft__sd_event_add_io(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, int fd,
    uint32_t events, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	a.fd = fd;
	if (a.is_tracked && fd >= 0)
		a.kind = weft_hook_append_watched_fd(&a.label, fd, events & POLLIN || !(events & POLLOUT), &a.has_datagrams);
	/* The descriptor belongs to an sd-bus connection, whose calls are recorded as promises. */
	if (a.kind == WEFT_KIND_CONNECTION && !a.has_datagrams && weft__sd_copy_of(caller))
		a.kind = WEFT_KIND_POLL;
	return end_add(&a, copy->real.sd_event_add_io(event, a.stored_at, fd, events, get_slot(&io_slots, user), data));
}

/* The current call of sd_event_add_time_relative(), which itself calls sd_event_add_time(). */
static __thread struct {
	const void *caller; /* NULL: none */
	uint64_t in_us;
} relative __attribute__((tls_model("initial-exec")));

static void append_time(struct weft_hook_label *label, clockid_t clock, uint64_t at_us)
{
	struct timespec now;
	int saved_errno = errno;
	uint64_t now_us = clock_gettime(clock, &now) ? UINT64_MAX : (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	uint64_t in_us = relative.caller ? relative.in_us : at_us > now_us && at_us < UINT64_MAX ? at_us - now_us : 0;
	if (in_us)
		weft_hook_append_ms(label, (in_us + 500) / 1000);
	else
		weft_hook_append(label, "timer");
	errno = saved_errno;
}

int weft__sd_event_add_time(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    clockid_t clock, uint64_t at_us, uint64_t accuracy_us, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_TIMER, .is_enabled = true, .spins = true);
	if (relative.caller)
		a.caller = relative.caller;
	if (a.is_tracked)
		append_time(&a.label, clock, at_us);
	return end_add(
	    &a, copy->real.sd_event_add_time(event, a.stored_at, clock, at_us, accuracy_us, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_time_relative(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    clockid_t clock, uint64_t in_us, uint64_t accuracy_us, void *user, void *data)
{
	relative.caller = caller;
	relative.in_us = in_us;
	int status =
	    copy->real.sd_event_add_time_relative(event, source, clock, in_us, accuracy_us, get_slot(&value_slots, user), data);
	relative.caller = NULL;
	return status;
}

int weft__sd_event_add_signal(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, int number, void *user, void *data)
{
	enum { PROCMASK = 1 << 30 };
	BEGIN_ADD(WEFT_KIND_OS_SIGNAL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_append(&a.label, "signal ");
	weft_hook_append_number(&a.label, (unsigned)number & ~(unsigned)PROCMASK);
	return end_add(&a, copy->real.sd_event_add_signal(event, a.stored_at, number, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_child(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    pid_t child, int options, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_PROCESS, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_append(&a.label, "process ");
	weft_hook_append_number(&a.label, (uint64_t)child);
	return end_add(&a, copy->real.sd_event_add_child(event, a.stored_at, child, options, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_child_pidfd(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    int fd, int options, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_PROCESS, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_append(&a.label, "process");
	return end_add(
	    &a, copy->real.sd_event_add_child_pidfd(event, a.stored_at, fd, options, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_inotify(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    const char *path, uint32_t mask, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_append(&a.label, "watch ");
	weft_hook_append_path(&a.label, path ? path : "");
	return end_add(&a, copy->real.sd_event_add_inotify(event, a.stored_at, path, mask, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_inotify_fd(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    int fd, uint32_t mask, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_append(&a.label, "watch ");
	if (a.is_tracked && fd >= 0)
		weft_hook_append_fd(&a.label, fd);
	return end_add(&a, copy->real.sd_event_add_inotify_fd(event, a.stored_at, fd, mask, get_slot(&value_slots, user), data));
}

int weft__sd_event_add_defer(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_CONDITION, .is_enabled = true, .spins = true);
	weft_hook_append(&a.label, "defer");
	return end_add(&a, copy->real.sd_event_add_defer(event, a.stored_at, get_slot(&plain_slots, user), data));
}

/* A post source runs after other sources, and does not keep the thread from sleeping. */
int weft__sd_event_add_post(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_CONDITION, .spins = false);
	weft_hook_append(&a.label, "post");
	return end_add(&a, copy->real.sd_event_add_post(event, a.stored_at, get_slot(&plain_slots, user), data));
}

int weft__sd_event_add_exit(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	BEGIN_ADD(WEFT_KIND_CONDITION, .spins = false);
	weft_hook_append(&a.label, "exit");
	return end_add(&a, copy->real.sd_event_add_exit(event, a.stored_at, get_slot(&plain_slots, user), data));
}

/* ---- Existing sources ---- */

sd_event_source *weft__sd_event_source_ref(struct weft__sd_copy *copy, const void *caller, sd_event_source *source)
{
	weft__sd_add_reference(source);
	return copy->real.sd_event_source_ref(source);
}

sd_event_source *weft__sd_event_source_unref(struct weft__sd_copy *copy, const void *caller, sd_event_source *source)
{
	weft__sd_drop_reference(source, NULL);
	return copy->real.sd_event_source_unref(source);
}

/* The loop awaits enabled sources, except post sources and sources that run at exit. */
static void set_enabled(sd_event_source *source, bool is_on)
{
	weft__sd_lock(source);
	struct weft__sd_object *object = weft__sd_find(source);
	bool changes = object && object->is_enabled != is_on && (object->spins || object->comes_from_outside);
	const sd_event *event = changes ? object->event : NULL;
	if (changes) {
		object->is_enabled = is_on;
		if (!is_on && object->awaited_by) {
			weft_awaits_no_more(object->awaited_by, object->id);
			object->awaited_by = 0;
		}
	}
	weft__sd_unlock(source);
	weft_id loop = changes && is_on ? weft__sd_id(event) : 0;
	if (!loop)
		return;
	weft__sd_lock(source);
	if ((object = weft__sd_find(source)) && object->is_enabled)
		weft_await(object->awaited_by = loop, object->id);
	weft__sd_unlock(source);
}

int weft__sd_event_source_set_enabled(struct weft__sd_copy *copy, const void *caller, sd_event_source *source, int enabled)
{
	int status = copy->real.sd_event_source_set_enabled(source, enabled);
	if (source && status >= 0 && weft__sd_should_track())
		set_enabled(source, enabled != 0);
	return status;
}

/* ---- Handlers ---- */

/* Records that a source is dispatched.  Returns the source's promise; 0: unknown. */
static weft_id record_dispatch(const sd_event_source *source, bool *should_probe)
{
	weft_id id = 0;
	if (!weft_is_on())
		return 0;
	weft__sd_lock(source);
	struct weft__sd_object *object = weft__sd_find(source);
	if (object && object->id) {
		id = object->id;
		weft__sd_label_source(object, NULL);
		object->owner_thread = weft__hook_get_thread();
		bool repeats = !object->comes_from_outside || object->is_untouched;
		if (!repeats)
			weft_hook_count_call(&object->calls);
		*should_probe = object->fd >= 0 && weft_hook_should_probe_fd(&object->calls);
		if (!repeats || weft_hook_count_repeat(&object->calls, id, object->spins))
			weft_hook_record_signal(id);
	}
	weft__sd_unlock(source);
	return id;
}

int weft__sd_called(sd_event_source *source, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, void *) =
	    (int (*)(sd_event_source *, void *))__atomic_load_n(&plain_users[slot], __ATOMIC_ACQUIRE);
	bool should_probe = false;
	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(record_dispatch(source, &should_probe));
	(void)frame;
	weft_hook_set_called((const void *)user);
	return user(source, data);
}

/* The value is a time, or describes the signal, process or file. */
int weft__sd_called_value(sd_event_source *source, uint64_t what, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, uint64_t, void *) =
	    (int (*)(sd_event_source *, uint64_t, void *))__atomic_load_n(&value_users[slot], __ATOMIC_ACQUIRE);
	bool should_probe = false;
	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(record_dispatch(source, &should_probe));
	(void)frame;
	weft_hook_set_called((const void *)user);
	return user(source, what, data);
}

int weft__sd_called_io(sd_event_source *source, int fd, uint32_t events, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, int, uint32_t, void *) =
	    (int (*)(sd_event_source *, int, uint32_t, void *))__atomic_load_n(&io_users[slot], __ATOMIC_ACQUIRE);
	bool should_probe = false;
	weft_id id = record_dispatch(source, &should_probe);
	int before = should_probe ? weft_hook_probe_fd(fd) : 0, result;
	{
		WEFT_HOOK_FRAME frame = weft_hook_enter_callback(id);
		(void)frame;
		weft_hook_set_called((const void *)user);
		result = user(source, fd, events, data);
	}
	if (should_probe) {
		bool untouched = weft_hook_is_fd_untouched(fd, events & POLLIN ? POLLIN : POLLOUT, before);
		weft__sd_lock(source);
		struct weft__sd_object *object = weft__sd_find(source);
		if (object && object->id == id)
			object->is_untouched = untouched;
		weft__sd_unlock(source);
	}
	return result;
}
