/* share.c: shares a ring's pages with the host and publishes their references.  This file needs no operating system, so a
 * unikernel can compile it alone.  SPDX-License-Identifier: ISC */
#include <weft/xen.h>

/* Capacity of a node's text in bytes: by default, xenstored allows 2048 bytes for a node with its permissions. */
#define NODE_BYTES 1920u
#define NODES_MAX 4096u
#define PACKET_BYTES 65536u

static int fail_with(struct weft_xen *xen, int status, const char *why)
{
	xen->error = why;
	return status;
}

/* Writes a decimal number at `at`.  Returns the new end. */
static char *append_number(char *at, uint32_t number)
{
	char digits[10];
	int count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	*at = 0;
	return at;
}

/* Writes the name of node `index`. */
static void get_node_name(char out[sizeof WEFT_XEN_NODE + 11], unsigned index)
{
	__builtin_memcpy(out, WEFT_XEN_NODE, sizeof WEFT_XEN_NODE);
	if (index) {
		out[sizeof WEFT_XEN_NODE - 1] = '-';
		append_number(out + sizeof WEFT_XEN_NODE, index);
	}
}

/* Writes references to pages into a node's text, from page `from` on, as many as fit.  Returns the first page that did not
 * fit. */
static size_t fill_node(const struct weft_xen *xen, size_t from, char text[NODE_BYTES])
{
	char *at = text;
	size_t page = from;
	for (; page < xen->pages && at + sizeof ",4294967295" <= text + NODE_BYTES; page++) {
		if (page > from)
			*at++ = ',';
		at = append_number(at, xen->refs[page]);
	}
	return page;
}

int weft_xen_share(struct weft_xen *xen)
{
	if (xen->is_shared)
		return fail_with(xen, WEFT_EBUSY, "the pages are already shared");
	if (!xen->pages || !xen->refs || (uintptr_t)xen->memory % WEFT_XEN_PAGE)
		return fail_with(xen, WEFT_EINVAL, "there are no pages, or they are not aligned to the page size");
	xen->error = "";
	int status = xen->guest->share(xen->data, xen->domain, &xen->memory, xen->pages, xen->refs);
	if (status < 0)
		return fail_with(xen, status, "the pages cannot be granted");
	xen->is_shared = true;
	return WEFT_OK;
}

int weft_xen_publish(struct weft_xen *xen)
{
	char name[sizeof WEFT_XEN_NODE + 11], text[NODE_BYTES];
	size_t first = fill_node(xen, 0, text);
	unsigned node = 0;
	/* Readers ignore the other nodes while the first node is missing, so the first node is removed first and written
	 * last. */
	int status = xen->guest->remove(xen->data, WEFT_XEN_NODE);
	if (status < 0 && status != WEFT_ENOENT)
		return fail_with(xen, status, "XenStore cannot remove " WEFT_XEN_NODE);
	for (size_t page = first; page < xen->pages;) {
		page = fill_node(xen, page, text);
		get_node_name(name, ++node);
		status = xen->guest->write(xen->data, name, text);
		if (status < 0)
			return fail_with(xen, status, "XenStore rejects so many references");
	}
	/* The next nodes may belong to an earlier, longer ring, so they are removed. */
	for (status = WEFT_OK; status == WEFT_OK && node < NODES_MAX;) {
		get_node_name(name, ++node);
		status = xen->guest->remove(xen->data, name);
	}
	fill_node(xen, 0, text);
	status = xen->guest->write(xen->data, WEFT_XEN_NODE, text);
	return status < 0 ? fail_with(xen, status, "XenStore rejects " WEFT_XEN_NODE) : WEFT_OK;
}

void weft_xen_unshare(struct weft_xen *xen)
{
	if (!xen->is_shared)
		return;
	char name[sizeof WEFT_XEN_NODE + 11];
	int status = xen->guest->remove(xen->data, WEFT_XEN_NODE);
	for (unsigned node = 1; status == WEFT_OK && node < NODES_MAX; node++) {
		get_node_name(name, node);
		status = xen->guest->remove(xen->data, name);
	}
	xen->guest->unshare(xen->data, xen->memory, xen->pages, xen->refs);
	xen->is_shared = false;
}

int weft_xen_start(struct weft_xen *xen, const struct weft_record_options *options)
{
	struct weft_record_options mine = {0};
	if (options)
		mine = *options;
	int status = weft_xen_share(xen);
	if (status < 0)
		return status;
	mine.directory = NULL;
	mine.buffer = xen->memory;
	mine.buffer_bytes = xen->pages * WEFT_XEN_PAGE;
	/* Packets are small, so that a reader that has only the first node finds whole packets. */
	if (!mine.packets) {
		size_t packets = mine.buffer_bytes / PACKET_BYTES;
		mine.packets = packets < 16 ? 16 : packets > 65536 ? 65536 : (unsigned)packets;
	}
	status = weft_start(&mine);
	if (status < 0)
		xen->error = weft_start_error();
	else {
		status = weft_xen_publish(xen);
		if (status < 0)
			weft_stop();
	}
	if (status < 0)
		weft_xen_unshare(xen);
	return status;
}
