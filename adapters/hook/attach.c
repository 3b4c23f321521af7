/* attach.c: starts the recorder in a program that already runs, when `weft record --pid` has loaded this library.
 *
 * weft_hook_attach() runs on an OS thread of its own.  It searches the modules and makes slots for moved instructions, as at the
 * start of a program, but lists each change of existing code and pointers, because the program's OS threads run meanwhile
 * (wire/attach.h).  SPDX-License-Identifier: ISC */
#include "adapters/hook/attach.h"

#include <stdio.h>
#include <string.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/load.h"
#include "adapters/hook/module.h"
#include "adapters/hook/patches.h"
#include "adapters/hook/session.h"

void weft__hook_leave_out(const char *promises)
{
	const size_t length = strlen(weft_hook_attachment.left_out);
	snprintf(weft_hook_attachment.left_out + length, sizeof weft_hook_attachment.left_out - length, "%s%s",
	    length ? " and " : "", promises);
}

const char *weft__hook_get_left_out(void)
{
	return weft_hook_attachment.left_out;
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
	if (weft__patches_list(pointer, &wrapper, sizeof wrapper, false) && !weft__hook_is_listing())
		weft__write_protected(pointer, &wrapper, sizeof wrapper);
}

void weft__hook_redirect_libc(const struct weft__module *from)
{
	if (weft__hook_own_module.symbols && from->base != weft__hook_own_module.base &&
	    from->base != weft__hook_recorder_module.base && from->base != weft__hook_libc_module.base)
		weft__module_each_import(from, redirect_import, (void *)(uintptr_t)from);
}

/* Loads the recorder at the first attachment; a later attachment searches modules that were loaded meanwhile, and may name
 * another directory. */
static bool attach(const char *session)
{
	static bool is_known;
	if (!weft__patches_begin_list())
		return false;
	is_known = weft__hook_attach_session(session, is_known, !weft__patches_are_applied());
	weft__patches_end_list();
	return is_known;
}

__attribute__((visibility("default"))) void weft_hook_attach(const char *session);
void weft_hook_attach(const char *session)
{
	weft_hook_attachment.is_accepted = attach(session);
}
