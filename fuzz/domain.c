/* domain.c: reads any XenStore nodes and any pages, as a domain may publish them.
 *
 * The input: nodes, each ended by a NUL, the last one empty; then the memory.  Reference r is its page r.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xen/domain.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

struct input {
	const unsigned char *nodes, *memory;
	size_t size;  /* size of nodes and memory */
	size_t pages; /* number of pages of memory, the last one partial */
	size_t mapped;
};

static char *copy_text(const char *text, size_t length, unsigned *out)
{
	char *copy = malloc(length + 1);
	if (copy) {
		memcpy(copy, text, length);
		copy[length] = 0;
		*out = (unsigned)length;
	}
	return copy;
}

static char *read_node(void *data, const char *path, unsigned *length)
{
	const struct input *in = data;
	const unsigned char *node = in->nodes;
	unsigned wanted = 0, domain = 0;
	char name[16] = "";
	if (sscanf(path, "/local/domain/%u/%15s", &domain, name) == 2 && strcmp(name, "name") == 0)
		return copy_text("guest", 5, length);
	sscanf(path, "/local/domain/0/data/mprof/ring-ref-%u", &wanted);
	for (unsigned i = 0; node < in->memory && *node; i++) {
		size_t node_length = strlen((const char *)node);
		if (i == wanted)
			return copy_text((const char *)node, node_length, length);
		node += node_length + 1;
	}
	errno = ENOENT;
	return NULL;
}

static char **list_nodes(void *data, const char *path, unsigned *count)
{
	static char zero[] = "0";
	char **list = malloc(sizeof *list);
	if (list)
		list[0] = zero;
	*count = 1;
	return list;
}

static void *map_pages(void *data, uint32_t domain, const uint32_t *refs, size_t count)
{
	struct input *in = data;
	unsigned char *pages = calloc(count, DOMAIN_PAGE_BYTES);
	for (size_t i = 0; i < count; i++) {
		if (refs[i] >= in->pages) {
			free(pages);
			errno = EINVAL;
			return NULL;
		}
		size_t at = (size_t)refs[i] * DOMAIN_PAGE_BYTES, left = in->size - (size_t)(in->memory - in->nodes) - at;
		memcpy(pages + i * DOMAIN_PAGE_BYTES, in->memory + at, left < DOMAIN_PAGE_BYTES ? left : DOMAIN_PAGE_BYTES);
	}
	in->mapped += count;
	return pages;
}

static void unmap_pages(void *data, void *pages, size_t count)
{
	struct input *in = data;
	in->mapped -= count;
	free(pages);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	size_t end = 0;
	while (end < size && bytes[end]) {
		const unsigned char *nul = memchr(bytes + end, 0, size - end);
		end = nul ? (size_t)(nul - bytes) + 1 : size;
	}
	if (end >= size)
		return -1;
	end++;
	struct input in = {bytes, bytes + end, size, (size - end + DOMAIN_PAGE_BYTES - 1) / DOMAIN_PAGE_BYTES, 0};
	const struct domain_host host = {read_node, list_nodes, map_pages, unmap_pages, &in};
	struct weft_trace *trace;
	struct weft_error err = {0};
	int status = domain_open_on_host(&host, &trace, "xen:guest", &err);
	if (in.mapped || (status < 0 && !err.what[0]))
		abort();
	if (status < 0)
		return 0;
	const struct weft_event *events;
	size_t count;
	while (weft_trace_next(trace, &events, &count) == 1)
		;
	weft_trace_close(trace);
	return 0;
}
