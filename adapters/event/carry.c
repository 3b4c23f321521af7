/* carry.c: what is read and written on connections, by libevent or by the program itself: by calls of libc either way.
 * SPDX-License-Identifier: ISC */
#include "adapters/event/adapter.h"

/* By descriptor: its event or bufferevent, which may be gone since, or have another one. */
static const void *carrier_of[WEFT__HOOK_WATCHED];

static const void *key_of(int fd)
{
	const bool is_known = fd >= 0 && fd < WEFT__HOOK_WATCHED && weft_is_on();
	return is_known ? __atomic_load_n(&carrier_of[fd], __ATOMIC_RELAXED) : NULL;
}

/* Under the lock. */
static struct weft__ev_thing *carried_by(const void *key, int fd)
{
	struct weft__ev_thing *thing = weft__ev_find(key);
	return thing && thing->id && thing->fd == fd ? thing : NULL;
}

bool weft__ev_carries(const struct weft__ev_thing *thing)
{
	return thing->fd >= 0 && key_of(thing->fd) == thing->key;
}

void weft__ev_has_fd(struct weft__ev_thing *thing, int fd)
{
	if (fd < 0 || fd >= WEFT__HOOK_WATCHED)
		return;
	thing->fd = fd;
	thing->carried = (struct weft_hook_carried){.fd = fd};
	__atomic_store_n(&carrier_of[fd], thing->key, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__hook_watched[fd], true, __ATOMIC_RELAXED);
}

/* A signal handler that came while this OS thread tells something does without. */
static const void *locked(int fd)
{
	const void *key = weft_hook_things_is_held() ? NULL : key_of(fd);
	if (key)
		weft__ev_lock(key);
	return key;
}

bool weft__ev_is_carried_beside(int fd, const void *key)
{
	const void *other = key_of(fd);
	if (!other || other == key || !(other = locked(fd)))
		return false;
	const struct weft__ev_thing *thing = carried_by(other, fd);
	const bool is_carried = thing && (thing->is_buffer || thing->is_added);
	weft__ev_unlock(other);
	return is_carried && other != key;
}

enum weft_hook_written weft__ev_is_written(int fd)
{
	const void *key = locked(fd);
	if (!key)
		return WEFT_HOOK_NOT_WRITTEN;
	const bool is_carried = carried_by(key, fd);
	weft__ev_unlock(key);
	return is_carried ? WEFT_HOOK_BYTES : WEFT_HOOK_NOT_WRITTEN;
}

void weft__ev_writes(int fd, size_t bytes)
{
	const void *key = locked(fd);
	struct weft__ev_thing *thing = key ? carried_by(key, fd) : NULL;
	if (thing)
		weft_hook_goes_out(&thing->carried, thing->id, fd, weft_hook_did_connect(fd), bytes);
	if (key)
		weft__ev_unlock(key);
}

void weft__ev_wrote_less(int fd, size_t missing)
{
	const void *key = locked(fd);
	struct weft__ev_thing *thing = key ? carried_by(key, fd) : NULL;
	if (thing)
		weft_hook_fell_short(&thing->carried, thing->id, missing);
	if (key)
		weft__ev_unlock(key);
}

void weft__ev_reads(int fd, size_t bytes)
{
	const void *key = locked(fd);
	struct weft__ev_thing *thing = key ? carried_by(key, fd) : NULL;
	if (thing)
		weft_hook_came_in(&thing->carried, thing->id, fd, weft_hook_did_connect(fd), bytes);
	if (key)
		weft__ev_unlock(key);
}
