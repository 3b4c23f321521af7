/* target.c: reads mappings, modules and copies of memory, for a process and a core dump alike.  SPDX-License-Identifier: ISC */
#include "look/target.h"

#include "look/loops.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/program_name.h"
#include "base/search.h"
#include "base/sort.h"

const struct look_map *weft__look_map(const struct look_target *t, uint64_t address)
{
	const struct look_map *maps = t->maps.items;
	const size_t i = WEFT_FIND_FIRST(k, 0, t->maps.count, maps[k].end > address);
	return i < t->maps.count && maps[i].begin <= address ? &maps[i] : NULL;
}

const struct weft_look_module *weft__look_module(const struct look_target *t, uint64_t address)
{
	const struct weft_look_module *modules = t->modules.items;
	const size_t i = WEFT_FIND_FIRST(k, 0, t->modules.count, modules[k].end > address);
	return i < t->modules.count && modules[i].begin <= address ? &modules[i] : NULL;
}

const struct look_thread *weft__look_thread(const struct look_target *t, int64_t own_tid)
{
	for (size_t i = 0; i < t->threads.count; i++)
		if (t->threads.items[i].own_tid == own_tid)
			return &t->threads.items[i];
	return NULL;
}

bool weft__look_add_map(struct look_target *t, const struct look_map *map)
{
	struct look_map *slot = t->maps.count < LOOK_MAX_MAPS ? weft_vec_push(&t->maps) : NULL;
	if (!slot)
		return false;
	*slot = *map;
	slot->path = strdup(map->path ? map->path : "");
	if (!slot->path)
		t->maps.count--;
	return slot->path != NULL;
}

static int compare_maps(const void *a, const void *b)
{
	const struct look_map *x = a, *y = b;
	return WEFT_ORDER(x->begin, y->begin) ?: WEFT_ORDER(x->end, y->end);
}

/* ---- Modules ---- */

enum { MAX_HEADERS = 64, MAX_NOTES = 4096, MAX_BUILD_ID = 64, NOTE_HEAD = 12 };

/* Finds the build-id in the notes of a module, in the target's memory. */
static void read_build_id(const struct look_target *t, uint64_t at, uint64_t size, char *out)
{
	unsigned char notes[MAX_NOTES];
	const size_t got = t->read(t, at, notes, size < sizeof notes ? (size_t)size : sizeof notes);
	for (size_t i = 0; got - i >= NOTE_HEAD && i < got;) {
		const uint32_t name = weft_load_u32(notes + i), bytes = weft_load_u32(notes + i + 4),
			       type = weft_load_u32(notes + i + 8);
		const uint64_t begin = i + NOTE_HEAD + (((uint64_t)name + 3) & ~UINT64_C(3)),
			       end = begin + (((uint64_t)bytes + 3) & ~UINT64_C(3));
		if (begin > got || bytes > got - begin)
			return;
		if (type == NT_GNU_BUILD_ID && name == 4 && memcmp(notes + i + NOTE_HEAD, "GNU", 4) == 0 && bytes <= MAX_BUILD_ID)
			for (uint32_t k = 0; k < bytes; k++)
				snprintf(out + 2 * (size_t)k, 3, "%02x", notes[begin + k]);
		if (end >= got)
			return;
		i = (size_t)end;
	}
}

/* Reads the ELF headers of a module in the target's memory.  Returns false if there are no ELF headers. */
static bool read_headers(const struct look_target *t, uint64_t begin, uint64_t *bias, char build_id[2 * MAX_BUILD_ID + 1])
{
	Elf64_Ehdr head;
	Elf64_Phdr p;
	bool has_bias = false;
	if (t->read(t, begin, &head, sizeof head) < sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof p)
		return false;
	for (unsigned i = 0; i < head.e_phnum && i < MAX_HEADERS; i++) {
		if (t->read(t, begin + head.e_phoff + (uint64_t)i * sizeof p, &p, sizeof p) < sizeof p)
			break;
		if (p.p_type == PT_LOAD && !has_bias) {
			*bias = begin - (p.p_vaddr - p.p_offset);
			has_bias = true;
		}
		if (p.p_type == PT_NOTE && has_bias && !build_id[0])
			read_build_id(t, *bias + p.p_vaddr, p.p_memsz, build_id);
	}
	return has_bias;
}

static bool add_module(struct look_target *t, size_t first, size_t end)
{
	const struct look_map *map = &t->maps.items[first];
	char build_id[2 * MAX_BUILD_ID + 1] = "";
	uint64_t bias = map->begin - map->offset;
	const bool has_headers = map->offset == 0 && read_headers(t, map->begin, &bias, build_id);
	bool has_code = false;
	for (size_t i = first; i < end; i++)
		has_code |= t->maps.items[i].is_executable;
	if ((!has_code && !(t->is_core && has_headers)) || t->modules.count == LOOK_MAX_MODULES)
		return true;
	struct weft_look_module *slot = weft_vec_push(&t->modules);
	if (!slot)
		return false;
	*slot = (struct weft_look_module){.path = strdup(map->path),
	    .build_id = strdup(build_id),
	    .known_path = strdup(map->path),
	    .bias = bias,
	    .begin = map->begin,
	    .end = t->maps.items[end - 1].end};
	return slot->path && slot->build_id && slot->known_path;
}

bool weft__look_find_modules(struct look_target *t)
{
	bool whole = true;
	weft_sort(t->maps.items, t->maps.count, sizeof *t->maps.items, compare_maps);
	for (size_t i = 0, end; i < t->maps.count && whole; i = end) {
		const struct look_map *maps = t->maps.items;
		end = i + 1;
		if (maps[i].path[0] != '/')
			continue;
		while (end < t->maps.count && strcmp(maps[end].path, maps[i].path) == 0 && maps[end].offset)
			end++;
		/* The zeroed data of a module follow the mapping of its file. */
		const size_t files = end;
		if (end < t->maps.count && !maps[end].path[0] && maps[end].begin == maps[end - 1].end && maps[end].is_writable)
			end++;
		whole = add_module(t, i, end);
		end = files;
	}
	return whole;
}

/* ---- The start of the program ---- */

bool weft__look_read_start(
    const struct look_target *t, const unsigned char *vector, size_t bytes, char *path, size_t size, uint64_t *entry)
{
	enum { PAIR = 16 };
	uint64_t at = 0;
	*entry = 0;
	for (size_t i = 0; i + PAIR <= bytes; i += PAIR) {
		const uint64_t type = weft_load_u64(vector + i), value = weft_load_u64(vector + i + 8);
		at = type == AT_EXECFN ? value : at;
		*entry = type == AT_ENTRY ? value : *entry;
	}
	const size_t got = at ? t->read(t, at, path, size) : 0;
	return memchr(path, 0, got) != NULL;
}

bool weft__look_set_known_path(struct look_target *t, uint64_t entry, const char *started_as)
{
	char path[WEFT_PROGRAM_PATH_BYTES];
	const struct weft_look_module *found = weft__look_module(t, entry);
	if (!found)
		return true;
	struct weft_look_module *module = &t->modules.items[found - t->modules.items];
	snprintf(path, sizeof path, "%s", module->path);
	weft_program_path(path, sizeof path, started_as, module->path);
	free((char *)(uintptr_t)module->known_path);
	module->known_path = strdup(path);
	return module->known_path != NULL;
}

/* ---- Copies ---- */

static bool copy_stack(struct look_target *t, struct look_thread *thread, size_t *left)
{
	const uint64_t sp = thread->stack.registers[7];
	const struct look_map *map = weft__look_map(t, sp);
	uint64_t size = map ? map->end - sp : 0;
	size = size < LOOK_STACK_BYTES ? size : LOOK_STACK_BYTES;
	size = size < *left ? size : *left;
	if (!size || !map->is_writable)
		return true;
	thread->stack_bytes = malloc((size_t)size);
	if (!thread->stack_bytes)
		return false;
	thread->stack.bytes = thread->stack_bytes;
	thread->stack.address = sp;
	thread->stack.size = t->read(t, sp, thread->stack_bytes, (size_t)size);
	*left -= thread->stack.size;
	return true;
}

bool weft__look_copy_memory(struct look_target *t)
{
	size_t left = LOOK_ALL_STACK_BYTES;
	bool whole = true;
	for (size_t i = 0; i < t->threads.count && whole; i++) {
		struct look_thread *thread = &t->threads.items[i];
		whole = copy_stack(t, thread, &left);
		if (thread->call < 0 || thread->args[0] < LOOK_NEAR_BEFORE)
			continue;
		thread->has_near_before =
		    t->read(t, thread->args[0] - LOOK_NEAR_BEFORE, thread->near, LOOK_NEAR_BEFORE) == LOOK_NEAR_BEFORE;
		thread->has_near_behind =
		    t->read(t, thread->args[0], thread->near + LOOK_NEAR_BEFORE, LOOK_NEAR_BEHIND) == LOOK_NEAR_BEHIND;
	}
	return whole;
}

void weft__look_free(struct look_target *t)
{
	for (size_t i = 0; i < t->maps.count; i++)
		free(t->maps.items[i].path);
	for (size_t i = 0; i < t->modules.count; i++) {
		free((char *)(uintptr_t)t->modules.items[i].path);
		free((char *)(uintptr_t)t->modules.items[i].build_id);
		free((char *)(uintptr_t)t->modules.items[i].known_path);
	}
	for (size_t i = 0; i < t->threads.count; i++) {
		struct look_thread *thread = &t->threads.items[i];
		free(thread->stack_bytes);
		for (size_t k = 0; k < thread->sources.count; k++) {
			free(thread->sources.items[k].function);
			free(thread->sources.items[k].file);
		}
		weft_vec_free(&thread->sources);
		for (size_t k = 0; k < thread->stack.frame_count; k++)
			free(thread->stack.frames[k].function);
	}
	weft__look_free_loops(t);
	weft_vec_free(&t->maps);
	weft_vec_free(&t->modules);
	weft_vec_free(&t->threads);
}
