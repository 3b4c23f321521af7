/* carried.h: which connection a thing of an adapter is, and how far it has come, so that the traces of both ends can be put
 * together.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_HOOK_CARRIED_H
#define WEFT_ADAPTERS_HOOK_CARRIED_H

#include <weft/record.h>

/* A zeroed one is not known yet.  Who uses it has the thing to himself. */
struct weft_hook_carried {
	struct weft_positions positions;
	int fd;
	bool is_followed; /* the trace knows which connection it is ... */
	bool is_stranger; /* ... or cannot */
};

/* The descriptor `fd` of the connection `id` is about to be written: so many bytes.  did_connect: this end asked for it. */
void weft_hook_goes_out(struct weft_hook_carried *carried, weft_id id, int fd, bool did_connect, size_t bytes);

/* So many of them were not taken. */
void weft_hook_fell_short(struct weft_hook_carried *carried, weft_id id, size_t bytes);

/* So many bytes were read just now. */
void weft_hook_came_in(struct weft_hook_carried *carried, weft_id id, int fd, bool did_connect, size_t bytes);

/* Behind weft_pending(), for a ring that forgets. */
void weft_hook_still_connected(const struct weft_hook_carried *carried, weft_id id);

#endif
