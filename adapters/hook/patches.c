/* patches.c: changes bytes of the program, or lists the changes for the process that attaches.  SPDX-License-Identifier: ISC */
#include "adapters/hook/patches.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool weft__hook_is_attached;

static bool is_listing;
static struct weft_attach_patch *patches;
struct weft_attach weft_hook_attachment = {.mark = WEFT_ATTACH_MARK};
static struct weft_attach *const attachment = &weft_hook_attachment;

bool weft__hook_is_listing(void)
{
	return is_listing;
}

static bool is_listed(void *at)
{
	for (uint32_t i = 0; i < attachment->count; i++)
		if (patches[i].at == (uintptr_t)at)
			return true;
	return false;
}

bool weft__patches_list(void *at, const void *bytes, size_t count, bool is_code)
{
	if (is_listed(at))
		return true;
	if (count > sizeof patches->before || attachment->count == WEFT_ATTACH_MAX_PATCHES) {
		attachment->is_full = true;
		return false;
	}
	struct weft_attach_patch *p = &patches[attachment->count];
	*p = (struct weft_attach_patch){.at = (uintptr_t)at, .bytes = (uint32_t)count, .is_code = is_code};
	memcpy(p->before, at, count);
	memcpy(p->after, bytes, count);
	__atomic_store_n(&attachment->count, attachment->count + 1, __ATOMIC_RELEASE);
	return true;
}

bool weft__hook_patch(int memory, void *at, const void *bytes, size_t count, bool is_code)
{
	if (weft__hook_is_attached && !weft__patches_list(at, bytes, count, is_code))
		return false;
	return is_listing || (memory >= 0 && pwrite(memory, bytes, count, (off_t)(uintptr_t)at) == (ssize_t)count);
}

bool weft__patches_begin_list(void)
{
	if (!patches) {
		void *memory = mmap(NULL, WEFT_ATTACH_MAX_PATCHES * sizeof *patches, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return false;
		patches = memory;
		attachment->patches = (uintptr_t)patches;
	}
	weft__hook_is_attached = is_listing = true;
	return true;
}

void weft__patches_end_list(void)
{
	is_listing = false;
}

bool weft__patches_are_applied(void)
{
	for (uint32_t i = 0; i < attachment->count; i++)
		if (patches[i].is_code)
			return memcmp((const void *)(uintptr_t)patches[i].at, patches[i].after, patches[i].bytes) == 0;
	return false;
}
