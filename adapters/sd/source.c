/* source.c: sources: descriptors, times, signals, children, files that are watched, and what is to be done later.
 *
 * While a process stands by, its sources are known, too, without promises: sd-event has no list of them, and a daemon adds few.
 *
 * A source's promise begins when it is added, and ends with the last reference to it.  A floating source is its loop's; who adds
 * one gets no pointer to it, so it is added as one of ours, and made floating.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>

#include "adapters/sd/adapter.h"

enum { SLOTS = 256, UNNAMED = 32 };

static void *plain_users[SLOTS], *told_users[SLOTS], *io_users[SLOTS];
int weft__sd_called(sd_event_source *source, void *data, unsigned slot);
int weft__sd_called_told(sd_event_source *source, uint64_t what, void *data, unsigned slot);
int weft__sd_called_io(sd_event_source *source, int fd, uint32_t events, void *data, unsigned slot);
WEFT_HOOK_CODE(weft__sd_called, 2, 256);
WEFT_HOOK_CODE(weft__sd_called_told, 3, 256);
WEFT_HOOK_CODE(weft__sd_called_io, 4, 256);
static const struct weft_hook_slots plain_slots = {weft__sd_called_code, plain_users, SLOTS};
static const struct weft_hook_slots told_slots = {weft__sd_called_told_code, told_users, SLOTS};
static const struct weft_hook_slots io_slots = {weft__sd_called_io_code, io_users, SLOTS};

/* Without a handler the loop ends. */
static void *slot_of(const struct weft_hook_slots *slots, void *user)
{
	return user ? weft_hook_slot(slots, user) : NULL;
}

/* ---- Names ---- */

/* Keys of this OS thread's sources that may yet be given a description. */
static __thread const void *unnamed[UNNAMED];
static __thread unsigned unnamed_count;

void weft__sd_forget_unnamed(void)
{
	unnamed_count = 0;
}

void weft__sd_name(struct weft__sd_thing *thing, const char *description)
{
	if (thing->is_labelled)
		return;
	thing->is_labelled = true;
	if (description) {
		weft_hook_put(&thing->label, " ");
		weft_hook_put(&thing->label, description);
	} else {
		weft_hook_put_function(&thing->label, thing->function);
	}
	weft_hook_say(&thing->label, thing->id);
}

static void name(const void *key, const char *description)
{
	weft__sd_lock(key);
	struct weft__sd_thing *thing = weft__sd_find(key);
	if (thing)
		weft__sd_name(thing, description);
	weft__sd_unlock(key);
}

void weft__sd_name_all(void)
{
	while (unnamed_count > 0)
		name(unnamed[--unnamed_count], NULL);
}

int weft__sd_event_source_set_description(
    struct weft__sd_copy *copy, const void *caller, sd_event_source *source, const char *description)
{
	int status = copy->real.sd_event_source_set_description(source, description);
	if (status >= 0 && description && weft__sd_knows())
		name(source, description);
	return status;
}

/* ---- Adding ---- */

/* What is added, from before the call until after it. */
struct adding {
	struct weft__sd_copy *copy;
	const void *caller;
	sd_event_source *mine, **given, **to; /* where the program wants it, NULL: it is to be floating; where it is put */
	bool is_told;
	enum weft_kind kind;
	const void *function;
	int fd;
	bool is_enabled, comes_from_outside, spins, has_datagrams;
	struct weft_hook_label label;
};

static void begin(struct adding *a)
{
	a->is_told = weft__sd_takes() || weft__sd_knows();
	a->to = a->is_told && !a->given ? &a->mine : a->given;
}

static void make_thing(const struct adding *a, sd_event_source *source)
{
	const sd_event *event = a->copy->real.sd_event_source_get_event(source);
	const bool is_on = weft_is_on();
	weft_id loop = is_on ? weft__sd_id(event) : 0;
	weft__sd_lock(source);
	struct weft__sd_thing *thing = weft__sd_find(source);
	if (thing) { /* its memory is another's by now */
		if (thing->id)
			weft_resolve(WEFT_SYSTEM_ID, thing->id);
		weft_hook_things_drop(&weft__sd_things, &thing->thing);
	}
	if ((thing = weft_hook_things_make(&weft__sd_things, source))) {
		thing->event = event;
		thing->function = a->function;
		thing->references = 1;
		thing->fd = a->fd;
		thing->is_enabled = a->is_enabled;
		thing->comes_from_outside = a->comes_from_outside;
		thing->spins = a->spins;
		thing->has_datagrams = a->has_datagrams;
		thing->label = a->label;
		thing->kind = (uint8_t)a->kind;
		if (is_on) {
			weft_hook_things_begin(&thing->thing, a->kind, a->caller);
			weft__sd_carries(thing);
		}
		if (loop && a->is_enabled)
			weft_await(thing->kept = loop, thing->id);
	}
	weft__sd_unlock(source);
}

static void make_floating(const struct adding *a, sd_event_source *source)
{
	a->copy->real.sd_event_source_set_floating(source, 1);
	a->copy->real.sd_event_source_unref(source);
	weft__sd_lock(source);
	struct weft__sd_thing *thing = weft__sd_find(source);
	if (thing)
		thing->references = 1;
	weft__sd_unlock(source);
}

static int end(const struct adding *a, int status)
{
	if (!a->is_told || status < 0)
		return status;
	sd_event_source *source = *a->to;
	make_thing(a, source);
	if (!a->given)
		make_floating(a, source);
	if (weft_is_on() && unnamed_count == UNNAMED)
		weft__sd_name_all();
	if (weft_is_on())
		unnamed[unnamed_count++] = source;
	return status;
}

#define ADDING(KIND, ...)                                                                                                        \
	struct adding a = {.copy = copy,                                                                                         \
	    .caller = caller,                                                                                                    \
	    .given = source,                                                                                                     \
	    .kind = KIND,                                                                                                        \
	    .function = (const void *)user,                                                                                      \
	    .fd = -1,                                                                                                            \
	    __VA_ARGS__};                                                                                                        \
	begin(&a)

int weft__sd_event_add_io(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, int fd,
    uint32_t events, void *user, void *data)
{
	ADDING(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	a.fd = fd;
	if (a.is_told && fd >= 0)
		a.kind = weft_hook_put_watched(&a.label, fd, events & POLLIN || !(events & POLLOUT), &a.has_datagrams);
	/* A bus, whose calls are told of. */
	if (a.kind == WEFT_KIND_CONNECTION && !a.has_datagrams && weft__sd_copy_of(caller))
		a.kind = WEFT_KIND_POLL;
	return end(&a, copy->real.sd_event_add_io(event, a.to, fd, events, slot_of(&io_slots, user), data));
}

/* The call that goes on in sd_event_add_time(). */
static __thread struct {
	const void *caller; /* NULL: none */
	uint64_t in_us;
} relative __attribute__((tls_model("initial-exec")));

static void put_time(struct weft_hook_label *label, clockid_t clock, uint64_t at_us)
{
	struct timespec now;
	int kept = errno;
	uint64_t now_us = clock_gettime(clock, &now) ? UINT64_MAX : (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	uint64_t in_us = relative.caller ? relative.in_us : at_us > now_us && at_us < UINT64_MAX ? at_us - now_us : 0;
	if (in_us)
		weft_hook_put_ms(label, (in_us + 500) / 1000);
	else
		weft_hook_put(label, "timer");
	errno = kept;
}

int weft__sd_event_add_time(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    clockid_t clock, uint64_t at_us, uint64_t accuracy_us, void *user, void *data)
{
	ADDING(WEFT_KIND_TIMER, .is_enabled = true, .spins = true);
	if (relative.caller)
		a.caller = relative.caller;
	if (a.is_told)
		put_time(&a.label, clock, at_us);
	return end(&a, copy->real.sd_event_add_time(event, a.to, clock, at_us, accuracy_us, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_time_relative(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    clockid_t clock, uint64_t in_us, uint64_t accuracy_us, void *user, void *data)
{
	relative.caller = caller;
	relative.in_us = in_us;
	int status =
	    copy->real.sd_event_add_time_relative(event, source, clock, in_us, accuracy_us, slot_of(&told_slots, user), data);
	relative.caller = NULL;
	return status;
}

int weft__sd_event_add_signal(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, int number, void *user, void *data)
{
	enum { PROCMASK = 1 << 30 };
	ADDING(WEFT_KIND_OS_SIGNAL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_put(&a.label, "signal ");
	weft_hook_put_number(&a.label, (unsigned)number & ~(unsigned)PROCMASK);
	return end(&a, copy->real.sd_event_add_signal(event, a.to, number, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_child(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    pid_t child, int options, void *user, void *data)
{
	ADDING(WEFT_KIND_PROCESS, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_put(&a.label, "process ");
	weft_hook_put_number(&a.label, (uint64_t)child);
	return end(&a, copy->real.sd_event_add_child(event, a.to, child, options, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_child_pidfd(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    int fd, int options, void *user, void *data)
{
	ADDING(WEFT_KIND_PROCESS, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_put(&a.label, "process");
	return end(&a, copy->real.sd_event_add_child_pidfd(event, a.to, fd, options, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_inotify(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    const char *path, uint32_t mask, void *user, void *data)
{
	ADDING(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_put(&a.label, "watch ");
	weft_hook_put_path(&a.label, path ? path : "");
	return end(&a, copy->real.sd_event_add_inotify(event, a.to, path, mask, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_inotify_fd(struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source,
    int fd, uint32_t mask, void *user, void *data)
{
	ADDING(WEFT_KIND_POLL, .is_enabled = true, .comes_from_outside = true, .spins = true);
	weft_hook_put(&a.label, "watch ");
	if (a.is_told && fd >= 0)
		weft_hook_put_fd(&a.label, fd);
	return end(&a, copy->real.sd_event_add_inotify_fd(event, a.to, fd, mask, slot_of(&told_slots, user), data));
}

int weft__sd_event_add_defer(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	ADDING(WEFT_KIND_CONDITION, .is_enabled = true, .spins = true);
	weft_hook_put(&a.label, "defer");
	return end(&a, copy->real.sd_event_add_defer(event, a.to, slot_of(&plain_slots, user), data));
}

/* It is called after others, and keeps nobody from sleeping. */
int weft__sd_event_add_post(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	ADDING(WEFT_KIND_CONDITION, .spins = false);
	weft_hook_put(&a.label, "post");
	return end(&a, copy->real.sd_event_add_post(event, a.to, slot_of(&plain_slots, user), data));
}

int weft__sd_event_add_exit(
    struct weft__sd_copy *copy, const void *caller, sd_event *event, sd_event_source **source, void *user, void *data)
{
	ADDING(WEFT_KIND_CONDITION, .spins = false);
	weft_hook_put(&a.label, "exit");
	return end(&a, copy->real.sd_event_add_exit(event, a.to, slot_of(&plain_slots, user), data));
}

/* ---- Afterwards ---- */

sd_event_source *weft__sd_event_source_ref(struct weft__sd_copy *copy, const void *caller, sd_event_source *source)
{
	weft__sd_hold(source);
	return copy->real.sd_event_source_ref(source);
}

sd_event_source *weft__sd_event_source_unref(struct weft__sd_copy *copy, const void *caller, sd_event_source *source)
{
	weft__sd_release(source, NULL);
	return copy->real.sd_event_source_unref(source);
}

/* The loop waits for what is enabled.  Sources called after others, or at the end, keep nobody waiting. */
static void enable(sd_event_source *source, bool is_on)
{
	weft__sd_lock(source);
	struct weft__sd_thing *thing = weft__sd_find(source);
	bool changes = thing && thing->is_enabled != is_on && (thing->spins || thing->comes_from_outside);
	const sd_event *event = changes ? thing->event : NULL;
	if (changes) {
		thing->is_enabled = is_on;
		if (!is_on && thing->kept) {
			weft_awaits_no_more(thing->kept, thing->id);
			thing->kept = 0;
		}
	}
	weft__sd_unlock(source);
	weft_id loop = changes && is_on ? weft__sd_id(event) : 0;
	if (!loop)
		return;
	weft__sd_lock(source);
	if ((thing = weft__sd_find(source)) && thing->is_enabled)
		weft_await(thing->kept = loop, thing->id);
	weft__sd_unlock(source);
}

int weft__sd_event_source_set_enabled(struct weft__sd_copy *copy, const void *caller, sd_event_source *source, int enabled)
{
	int status = copy->real.sd_event_source_set_enabled(source, enabled);
	if (source && status >= 0 && weft__sd_knows())
		enable(source, enabled != 0);
	return status;
}

/* ---- Handlers ---- */

/* Whose handler is called, which is told; 0: nobody knows it. */
static weft_id is_called(const sd_event_source *source, bool *looks)
{
	weft_id id = 0;
	if (!weft_is_on())
		return 0;
	weft__sd_lock(source);
	struct weft__sd_thing *thing = weft__sd_find(source);
	if (thing && thing->id) {
		id = thing->id;
		weft__sd_name(thing, NULL);
		thing->home = &weft__hook_thread;
		bool repeats = !thing->comes_from_outside || thing->is_untouched;
		if (!repeats)
			weft_hook_count(&thing->calls);
		*looks = thing->fd >= 0 && weft_hook_looks(&thing->calls);
		if (!repeats || weft_hook_called(&thing->calls, id, thing->spins))
			weft_hook_signal(id);
	}
	weft__sd_unlock(source);
	return id;
}

int weft__sd_called(sd_event_source *source, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, void *) =
	    (int (*)(sd_event_source *, void *))__atomic_load_n(&plain_users[slot], __ATOMIC_ACQUIRE);
	bool looks = false;
	WEFT_HOOK_FRAME frame = weft_hook_enter(is_called(source, &looks));
	(void)frame;
	weft_hook_calls((const void *)user);
	return user(source, data);
}

/* With the time, or what the signal, the child or the file tells. */
int weft__sd_called_told(sd_event_source *source, uint64_t what, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, uint64_t, void *) =
	    (int (*)(sd_event_source *, uint64_t, void *))__atomic_load_n(&told_users[slot], __ATOMIC_ACQUIRE);
	bool looks = false;
	WEFT_HOOK_FRAME frame = weft_hook_enter(is_called(source, &looks));
	(void)frame;
	weft_hook_calls((const void *)user);
	return user(source, what, data);
}

int weft__sd_called_io(sd_event_source *source, int fd, uint32_t events, void *data, unsigned slot)
{
	int (*user)(sd_event_source *, int, uint32_t, void *) =
	    (int (*)(sd_event_source *, int, uint32_t, void *))__atomic_load_n(&io_users[slot], __ATOMIC_ACQUIRE);
	bool looks = false;
	weft_id id = is_called(source, &looks);
	int before = looks ? weft_hook_waiting(fd) : 0, result;
	{
		WEFT_HOOK_FRAME frame = weft_hook_enter(id);
		(void)frame;
		weft_hook_calls((const void *)user);
		result = user(source, fd, events, data);
	}
	if (looks) {
		bool untouched = weft_hook_is_untouched(fd, events & POLLIN ? POLLIN : POLLOUT, before);
		weft__sd_lock(source);
		struct weft__sd_thing *thing = weft__sd_find(source);
		if (thing && thing->id == id)
			thing->is_untouched = untouched;
		weft__sd_unlock(source);
	}
	return result;
}
