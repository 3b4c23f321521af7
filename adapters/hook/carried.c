/* carried.c: see carried.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/carried.h"

/* Whether the trace knows which connection it is; if not, it is told, and how far that has come but for the bytes that were read
 * just now. */
static bool is_followed(struct weft_hook_carried *c, weft_id id, int fd, bool did_connect, size_t just_read)
{
	if (c->is_followed || c->is_stranger)
		return c->is_followed;
	c->fd = fd;
	c->is_followed = weft_connection(id, fd, did_connect, &c->positions);
	c->is_stranger = !c->is_followed;
	/* Of TCP the kernel counts all that was read, of others nobody has before now. */
	if (c->is_followed && just_read && c->positions.received >= just_read) {
		c->positions.received -= just_read;
		weft_still_connected(id, fd, &c->positions);
	}
	return c->is_followed;
}

void weft_hook_goes_out(struct weft_hook_carried *c, weft_id id, int fd, bool did_connect, size_t bytes)
{
	if (is_followed(c, id, fd, did_connect, 0))
		weft_sent(id, c->positions.sent += bytes);
}

void weft_hook_fell_short(struct weft_hook_carried *c, weft_id id, size_t bytes)
{
	if (bytes && c->is_followed)
		weft_sent(id, c->positions.sent -= bytes);
}

void weft_hook_came_in(struct weft_hook_carried *c, weft_id id, int fd, bool did_connect, size_t bytes)
{
	if (bytes && is_followed(c, id, fd, did_connect, bytes))
		weft_received(id, c->positions.received += bytes);
}

void weft_hook_still_connected(const struct weft_hook_carried *c, weft_id id)
{
	if (c->is_followed)
		weft_still_connected(id, c->fd, &c->positions);
}
