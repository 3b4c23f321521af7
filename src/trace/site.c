/* site.c: names of sites.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "trace/format.h"

/* Texts that sites were given after the trace was opened, one memory block for each site. */
struct weft_site_texts {
	struct weft_site_texts *next;
	char bytes[];
};

void weft__site_texts_free(struct weft_site_texts *texts)
{
	while (texts) {
		struct weft_site_texts *next = texts->next;
		free(texts);
		texts = next;
	}
}

int weft_trace_name_site(struct weft_trace *trace, uint32_t site, struct weft_str file, struct weft_str function, uint32_t line)
{
	struct weft_site_texts *texts = malloc(sizeof *texts + (size_t)file.len + function.len);
	if (!texts)
		return WEFT_ENOMEM;
	memcpy(texts->bytes, file.len ? file.ptr : "", file.len);
	memcpy(texts->bytes + file.len, function.len ? function.ptr : "", function.len);
	texts->next = trace->texts;
	trace->texts = texts;
	/* The array of sites belongs to the format, which allows names to be filled in. */
	struct weft_site *named = (struct weft_site *)(uintptr_t)&trace->info.sites[site];
	named->file = (struct weft_str){texts->bytes, file.len};
	named->function = (struct weft_str){texts->bytes + file.len, function.len};
	named->line = line;
	return WEFT_OK;
}

static struct weft_str get_basename(struct weft_str path)
{
	for (uint32_t i = path.len; i-- > 0;)
		if (path.ptr[i] == '/')
			return (struct weft_str){path.ptr + i + 1, path.len - i - 1};
	return path;
}

static void cut_at(struct weft_str *name, const char *mark)
{
	const char *at = memmem(name->ptr, name->len, mark, strlen(mark));
	if (at && at > name->ptr)
		name->len = (uint32_t)(at - name->ptr);
}

/* Cuts a version number off a name, as in "libisc-9.18.49-Debian"; "x86-64" contains no version. */
static void cut_version(struct weft_str *name)
{
	for (uint32_t i = 1; i + 1 < name->len; i++)
		if (name->ptr[i] == '-' && name->ptr[i + 1] >= '0' && name->ptr[i + 1] <= '9' &&
		    memchr(name->ptr + i, '.', name->len - i)) {
			name->len = i;
			return;
		}
}

/* "loop.cpython-311-x86_64-linux-gnu.so" becomes "loop", "libuv.so.1.0.0" becomes "libuv", and "libisc-9.18.49-Debian.so"
 * becomes "libisc". */
struct weft_str weft_module_short_name(const struct weft_module *module)
{
	if (!module)
		return (struct weft_str){"", 0};
	struct weft_str name = get_basename(module->path);
	const uint32_t whole = name.len;
	cut_at(&name, ".so");
	cut_at(&name, ".cpython-");
	if (name.len < whole)
		cut_version(&name);
	return name;
}

struct weft_str weft_site_library(const struct weft_site *site)
{
	static const char program[] = "the program";
	struct weft_str folder = site->file;
	if (site->module)
		return weft_module_short_name(site->module);
	while (folder.len > 0 && folder.ptr[folder.len - 1] != '/')
		folder.len--;
	return folder.len > 1 ? (struct weft_str){folder.ptr, folder.len - 1} : (struct weft_str){program, sizeof program - 1};
}

static size_t add_text(char *buf, size_t size, size_t at, struct weft_str text)
{
	return at + (at < size ? weft_utf8_copy(buf + at, size - at, text) : text.len);
}

static size_t add_literal(char *buf, size_t size, size_t at, const char *text)
{
	return add_text(buf, size, at, (struct weft_str){text, (uint32_t)strlen(text)});
}

/* Returns true if a function's name already contains its module, such as "ctest+0x2566f0". */
static bool names_module(struct weft_str function, struct weft_str module)
{
	return module.len && function.len > module.len + 3 && !memcmp(function.ptr, module.ptr, module.len) &&
	       !memcmp(function.ptr + module.len, "+0x", 3);
}

bool weft_site_is_bridge(const struct weft_site *site)
{
	static const char bridge[] = "libffi";
	const struct weft_str name = weft_module_short_name(site->module);
	return name.len == sizeof bridge - 1 && memcmp(name.ptr, bridge, name.len) == 0;
}

size_t weft_site_format(const struct weft_site *site, char *buf, size_t size)
{
	const bool has_function = site->function.len != 0, has_file = site->file.len != 0;
	const struct weft_str module = weft_module_short_name(site->module), where = has_file ? get_basename(site->file) : module;
	const bool has_both = has_function && where.len != 0;
	char number[32];
	if (weft_site_is_bridge(site))
		return add_literal(buf, size, 0, "a call through libffi");
	if (names_module(site->function, where))
		return add_text(buf, size, 0, site->function);
	if (!has_function && !has_file) {
		snprintf(number, sizeof number, "%s0x%" PRIx64, module.len ? "+" : "", site->offset);
		return add_literal(buf, size, add_text(buf, size, 0, module), number);
	}
	size_t at = has_function ? add_text(buf, size, 0, site->function) : 0;
	at = add_literal(buf, size, at, has_both ? " (" : "");
	at = add_text(buf, size, at, where);
	snprintf(number, sizeof number, ":%" PRIu32, site->line);
	at = add_literal(buf, size, at, has_file && site->line ? number : "");
	return add_literal(buf, size, at, has_both ? ")" : "");
}
