/* fake.c: grants and XenStore without Xen.  SPDX-License-Identifier: ISC */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fake_init(struct fake *fake, size_t pages)
{
	*fake = (struct fake){.memory = memfd_create("guest", MFD_CLOEXEC), .pages = pages, .calls = -1};
	fake->granted = calloc(pages ? pages : 1, sizeof *fake->granted);
	if (fake->memory < 0 || !fake->granted || ftruncate(fake->memory, (off_t)(pages * DOMAIN_PAGE_BYTES)) < 0)
		abort();
}

void fake_finish(struct fake *fake)
{
	for (size_t i = 0; i < fake->node_count; i++) {
		free(fake->nodes[i].path);
		free(fake->nodes[i].value);
	}
	free(fake->nodes);
	free(fake->granted);
	close(fake->memory);
}

/* ---- The guest ---- */

static bool may_call(struct fake *fake)
{
	if (fake->calls > 0)
		fake->calls--;
	else if (fake->calls == 0)
		return false;
	return true;
}

static int share(void *data, unsigned domain, void **memory, size_t pages, uint32_t *refs)
{
	struct fake *fake = data;
	if (!may_call(fake) || pages > fake->pages || domain != 0)
		return WEFT_ENOSPC;
	*memory = mmap(NULL, pages * DOMAIN_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fake->memory, 0);
	if (*memory == MAP_FAILED)
		abort();
	for (size_t i = 0; i < pages; i++) {
		refs[i] = FAKE_FIRST_REF + (uint32_t)i;
		fake->granted[i] = true;
	}
	fake->shared = *memory;
	return WEFT_OK;
}

static void unshare(void *data, void *memory, size_t pages, const uint32_t *refs)
{
	struct fake *fake = data;
	for (size_t i = 0; i < pages; i++)
		fake->granted[refs[i] - FAKE_FIRST_REF] = false;
	munmap(memory, pages * DOMAIN_PAGE_BYTES);
	fake->shared = NULL;
}

static struct fake_node *find(const struct fake *fake, const char *path)
{
	for (size_t i = 0; i < fake->node_count; i++)
		if (strcmp(fake->nodes[i].path, path) == 0)
			return &fake->nodes[i];
	return NULL;
}

const char *fake_read(const struct fake *fake, const char *path)
{
	const struct fake_node *node = find(fake, path);
	return node ? node->value : NULL;
}

void fake_write(struct fake *fake, const char *path, const char *value)
{
	struct fake_node *node = find(fake, path);
	if (!node) {
		fake->nodes = realloc(fake->nodes, (fake->node_count + 1) * sizeof *fake->nodes);
		if (!fake->nodes)
			abort();
		node = &fake->nodes[fake->node_count++];
		*node = (struct fake_node){.path = strdup(path)};
	}
	free(node->value);
	node->value = strdup(value);
}

static int guest_write(void *data, const char *path, const char *value)
{
	struct fake *fake = data;
	if (!may_call(fake) || strlen(value) > (fake->node_bytes ? fake->node_bytes : 2048))
		return WEFT_ENOSPC;
	fake_write(fake, path, value);
	return WEFT_OK;
}

static int guest_remove(void *data, const char *path)
{
	struct fake *fake = data;
	struct fake_node *node = find(fake, path);
	if (!may_call(fake))
		return WEFT_EACCES;
	if (!node)
		return WEFT_ENOENT;
	free(node->path);
	free(node->value);
	*node = fake->nodes[--fake->node_count];
	return WEFT_OK;
}

const struct weft_xen_guest fake_guest = {share, unshare, guest_write, guest_remove};

/* ---- The host ---- */

static char *host_read(void *data, const char *path, unsigned *length)
{
	const struct fake *fake = data;
	static const char own[] = "/local/domain/5/";
	const char *value = NULL;
	if (strcmp(path, "/local/domain/0/name") == 0)
		value = "Domain-0";
	else if (strcmp(path, "/local/domain/5/name") == 0)
		value = "guest";
	else if (strcmp(path, "/local/domain/12/name") == 0)
		value = "5";
	else if (strncmp(path, own, sizeof own - 1) == 0)
		value = fake_read(fake, path + sizeof own - 1);
	if (!value) {
		errno = ENOENT;
		return NULL;
	}
	*length = (unsigned)strlen(value);
	return strdup(value);
}

static char **host_list(void *data, const char *path, unsigned *count)
{
	static const char *const ids[] = {"0", "5", "12", "odd"};
	char **list = malloc(sizeof ids);
	if (list)
		memcpy(list, ids, sizeof ids);
	*count = sizeof ids / sizeof *ids;
	return list;
}

static void *host_map(void *data, uint32_t domain, const uint32_t *refs, size_t count)
{
	struct fake *fake = data;
	for (size_t i = 0; i < count; i++)
		if (domain != 5 || refs[i] < FAKE_FIRST_REF || refs[i] - FAKE_FIRST_REF >= fake->pages ||
		    !fake->granted[refs[i] - FAKE_FIRST_REF]) {
			errno = EINVAL;
			return NULL;
		}
	unsigned char *room = mmap(NULL, count * DOMAIN_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	for (size_t i = 0, run; i < count; i += run) {
		for (run = 1; i + run < count && refs[i + run] == refs[i] + run; run++)
			;
		off_t offset = (off_t)(refs[i] - FAKE_FIRST_REF) * DOMAIN_PAGE_BYTES;
		if (mmap(room + i * DOMAIN_PAGE_BYTES, run * DOMAIN_PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fake->memory,
			offset) == MAP_FAILED)
			abort();
	}
	fake->mapped += count;
	return room;
}

static void host_unmap(void *data, void *pages, size_t count)
{
	struct fake *fake = data;
	munmap(pages, count * DOMAIN_PAGE_BYTES);
	fake->mapped -= count;
}

struct domain_host fake_host(struct fake *fake)
{
	return (struct domain_host){host_read, host_list, host_map, host_unmap, fake};
}
