/* attach.c: starts the recorder in a program that already runs, when `weft record --pid` has loaded this library.
 *
 * weft_hook_attach() runs on an OS thread of its own.  It searches the modules and makes slots for moved instructions, as at the
 * start of a program, but lists each change of existing code and pointers, because the program's OS threads run meanwhile
 * (wire/attach.h).  SPDX-License-Identifier: ISC */
#include "adapters/hook/attach.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/load.h"
#include "adapters/hook/module.h"
#include "adapters/hook/session.h"
#include "wire/attach.h"

bool weft__hook_is_attached;

static bool is_listing;
static struct weft_attach_patch *patches;
/* Exported, so that the other process finds it in the memory of the program. */
__attribute__((visibility("default"))) extern struct weft_attach weft_hook_attachment;
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

/* Only one OS thread lists at a time: the thread that attaches, or a thread that holds the loader's lock. */
static bool list_patch(void *at, const void *bytes, size_t count, bool is_code)
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
	if (weft__hook_is_attached && !list_patch(at, bytes, count, is_code))
		return false;
	return is_listing || (memory >= 0 && pwrite(memory, bytes, count, (off_t)(uintptr_t)at) == (ssize_t)count);
}

void weft__hook_leave_out(const char *promises)
{
	const size_t length = strlen(attachment->left_out);
	snprintf(attachment->left_out + length, sizeof attachment->left_out - length, "%s%s", length ? " and " : "", promises);
}

const char *weft__hook_get_left_out(void)
{
	return attachment->left_out;
}

static void redirect_import(void *ctx, const char *name, void **pointer)
{
	const struct weft__module *from = ctx;
	const uintptr_t now = (uintptr_t)*pointer;
	const bool is_unbound = now >= from->text_begin && now < from->text_end;
	const bool is_of_libc = now >= weft__hook_libc_module.text_begin && now < weft__hook_libc_module.text_end;
	if ((!is_unbound && !is_of_libc) || !strncmp(name, "weft", 4))
		return;
	const ElfW(Sym) *s = weft__module_exports(&weft__hook_own_module, name);
	if (!s)
		return;
	void *wrapper = (void *)(weft__hook_own_module.base + s->st_value);
	if (is_listing)
		list_patch(pointer, &wrapper, sizeof wrapper, false);
	else if (list_patch(pointer, &wrapper, sizeof wrapper, false))
		weft__write_protected(pointer, &wrapper, sizeof wrapper);
}

void weft__hook_redirect_libc(const struct weft__module *from)
{
	if (weft__hook_own_module.symbols && from->base != weft__hook_own_module.base &&
	    from->base != weft__hook_recorder_module.base && from->base != weft__hook_libc_module.base)
		weft__module_each_import(from, redirect_import, (void *)(uintptr_t)from);
}

/* Returns whether the other process has written the patches, so that loads of libraries are noticed. */
static bool is_applied(void)
{
	for (uint32_t i = 0; i < attachment->count; i++)
		if (patches[i].is_code)
			return memcmp((const void *)(uintptr_t)patches[i].at, patches[i].after, patches[i].bytes) == 0;
	return false;
}

/* Loads the recorder at the first attachment; a later attachment searches modules that were loaded meanwhile, and may name
 * another directory. */
static bool attach(const char *session)
{
	static bool is_known;
	if (!patches) {
		void *memory = mmap(NULL, WEFT_ATTACH_MAX_PATCHES * sizeof *patches, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return false;
		patches = memory;
		attachment->patches = (uintptr_t)patches;
	}
	weft__hook_is_attached = is_listing = true;
	is_known = weft__hook_attach_session(session, is_known, !is_applied());
	is_listing = false;
	return is_known;
}

__attribute__((visibility("default"))) void weft_hook_attach(const char *session);
void weft_hook_attach(const char *session)
{
	attachment->is_accepted = attach(session);
}
