/* entry.c: maps memory for moved instructions, and writes jumps into the text of functions.
 *
 * Slots (pieces of code with the moved instructions) are written to a memfd, which is then mapped as executable text.  The jump
 * in a function is written through /proc/self/mem: the kernel makes a private copy of the page and does not change the page's
 * protection.  So functions can also be patched in processes that may not map writable and executable memory (PR_SET_MDWE,
 * systemd's MemoryDenyWriteExecute).  SPDX-License-Identifier: ISC */
#include "adapters/hook/entry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/hook/move.h"
#include "adapters/hook/patches.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

static bool has_shadow_stack(void)
{
#if defined(__x86_64__)
	uint64_t pointer = 0;
	__asm__ volatile("rdsspq %0" : "+r"(pointer)); /* without a shadow stack, rdsspq does nothing */
	return pointer != 0;
#else
	return false;
#endif
}

/* Reserves address space that every function from begin to end can reach by a jump, as far from the heap as possible. */
static void *reserve_address_space(uintptr_t begin, uintptr_t end, size_t bytes, size_t page)
{
	const uintptr_t step = 1 << 20, reach = WEFT__MOVE_REACH;
	if (end - begin > reach - step)
		return NULL;
	/* The search tries addresses below the module first, from the nearest to the farthest, and then addresses above it, from
	 * the farthest. */
	for (uintptr_t below = page; below < reach - (end - begin) && begin > below + bytes; below += step) {
		void *there = (void *)((begin - below - bytes) & -page);
		void *got = mmap(there, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (got == there)
			return got;
		if (got != MAP_FAILED)
			munmap(got, bytes);
	}
	for (uintptr_t above = reach - (end - begin) - bytes; above > step; above -= step) {
		void *there = (void *)((end + above) & -page);
		void *got = mmap(there, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (got == there)
			return got;
		if (got != MAP_FAILED)
			munmap(got, bytes);
	}
	return NULL;
}

/* Maps the bytes at address `base` as executable text. */
static bool map_text(void *base, const void *text, size_t bytes)
{
	int fd = memfd_create("weft", MFD_CLOEXEC | MFD_EXEC);
	if (fd < 0)
		fd = memfd_create("weft", MFD_CLOEXEC); /* kernels before 6.3 */
	if (fd < 0)
		return false;
	bool done = write(fd, text, bytes) == (ssize_t)bytes &&
		    mmap(base, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == base;
	close(fd);
	return done;
}

static int open_self_memory(void)
{
	return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static bool write_memory(int memory, void *at, const void *bytes, size_t count)
{
	return memory >= 0 && pwrite(memory, bytes, count, (off_t)(uintptr_t)at) == (ssize_t)count;
}

bool weft__write_protected(void *at, const void *bytes, size_t count)
{
	int memory = open_self_memory();
	bool done = write_memory(memory, at, bytes, count);
	if (memory >= 0)
		close(memory);
	return done;
}

/* Refuses to patch a function if another function jumps into its first instructions, as in hand-written assembly.  The function
 * searches the text's bytes for jumps with a 32-bit distance.  A false match, which is rare, only leaves a function
 * unpatched. */
static size_t refuse_shared(struct weft__entry *entries, size_t count, const struct weft__moved *moved)
{
	enum { MAX_SCANNED_BYTES = 4 << 20 };
	uintptr_t begin = UINTPTR_MAX, end = 0;
	size_t refused = 0;
	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)entries[i].function;
		begin = at < begin ? at : begin;
		end = at + entries[i].bytes > end ? at + entries[i].bytes : end;
	}
#if defined(__x86_64__)
	const uint8_t *code = (const uint8_t *)begin;
	for (size_t i = 1; end > begin && end - begin <= MAX_SCANNED_BYTES && i + 5 <= end - begin; i++) {
		int32_t distance;
		if (code[i] != 0xe9 && !((code[i] & 0xf0) == 0x80 && code[i - 1] == 0x0f))
			continue;
		memcpy(&distance, code + i + 1, sizeof distance);
		uintptr_t target = begin + i + 5 + (uintptr_t)(intptr_t)distance;
		for (size_t j = 0; target - begin < end - begin && j < count; j++) {
			uintptr_t inside = target - (uintptr_t)entries[j].function;
			if (entries[j].refusal || inside == 0 || inside >= moved[j].patch_at + moved[j].moved_bytes)
				continue;
			entries[j].refusal = "another function jumps into its first instructions";
			refused++;
		}
	}
#endif
	return refused;
}

/* Makes the slots of all functions that can be moved, and returns how many there are. */
static size_t move_all(
    struct weft__entry *entries, size_t count, uintptr_t text_end, struct weft__moved *moved, unsigned char *text, uintptr_t base)
{
	bool shadow_stack = has_shadow_stack();
	size_t moved_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct weft__entry *e = &entries[i];
		struct weft__entry_code code = {.code = e->function,
		    .bytes = e->bytes,
		    .readable_bytes = text_end - (uintptr_t)e->function,
		    .at = (uintptr_t)e->function,
		    .slot = base + i * WEFT__SLOT_BYTES,
		    .wrapper = (uintptr_t)e->wrapper,
		    .shadow_stack = shadow_stack};
		e->refusal = weft__move(&code, &moved[i]);
		memcpy(text + i * WEFT__SLOT_BYTES, moved[i].slot, WEFT__SLOT_BYTES);
		moved_count += e->refusal == NULL;
	}
	return moved_count - refuse_shared(entries, count, moved);
}

/* Writes the jumps.  Returns the number of patched functions. */
static size_t patch_all(struct weft__entry *entries, size_t count, const struct weft__moved *moved, uintptr_t base)
{
	size_t taken = 0;
	int memory = open_self_memory();
	for (size_t i = 0; i < count; i++) {
		struct weft__entry *e = &entries[i];
		if (e->refusal)
			continue;
		void *before = *e->original;
		*e->original = (void *)(base + i * WEFT__SLOT_BYTES + moved[i].original);
		unsigned char *at = (unsigned char *)e->function + moved[i].patch_at;
		if (weft__hook_patch(memory, at, moved[i].patch, moved[i].patch_bytes, true)) {
			__builtin___clear_cache((char *)at, (char *)at + moved[i].patch_bytes);
			taken++;
		} else {
			*e->original = before;
			e->refusal = "its text cannot be written";
		}
	}
	if (memory >= 0)
		close(memory);
	return taken;
}

static void refuse_all(struct weft__entry *entries, size_t count, const char *refusal)
{
	for (size_t i = 0; i < count; i++)
		entries[i].refusal = refusal;
}

size_t weft__entries_patch(
    struct weft__entry *entries, size_t count, uintptr_t text_begin, uintptr_t text_end, struct weft__slots *slots)
{
	*slots = (struct weft__slots){0};
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t bytes = (count * WEFT__SLOT_BYTES + page - 1) & -page;
	struct weft__moved *moved = calloc(count, sizeof *moved);
	unsigned char *text = calloc(1, bytes);
	void *base = NULL;
	size_t taken = 0;
	if (!moved || !text) {
		refuse_all(entries, count, "out of memory");
	} else {
		base = reserve_address_space(text_begin, text_end, bytes, page);
		if (!base)
			refuse_all(entries, count, "no free address space within reach of a jump");
		else if (move_all(entries, count, text_end, moved, text, (uintptr_t)base) > 0 && !map_text(base, text, bytes))
			refuse_all(entries, count, "new executable memory cannot be mapped");
		else
			taken = patch_all(entries, count, moved, (uintptr_t)base);
		weft__move_close();
	}
	free(text);
	free(moved);
	if (taken)
		*slots = (struct weft__slots){base, bytes};
	else if (base)
		munmap(base, bytes);
	return taken;
}

void weft__slots_free(struct weft__slots *slots)
{
	if (slots->base)
		munmap(slots->base, slots->bytes);
	slots->base = NULL;
}
