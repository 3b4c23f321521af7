/* elf.c: finds the file offsets of memory addresses in core dumps of a process or a machine.
 *
 * The file reads core dumps of Linux, gdb and QEMU (dump-guest-memory, virsh dump --memory-only), 32-bit and 64-bit.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "base/sort.h"
#include "base/vec.h"
#include "trace/image.h"

enum { CORE = 4, LOAD = 1, NOTE = 4, COUNT_IS_ELSEWHERE = 0xffff, FILES = 0x46494c45, NOTES_MAX = 4 << 20, NOTES_READ = 4 };

/* Offsets of header fields in 32-bit and 64-bit files. */
struct layout {
	unsigned word; /* bytes of an address */
	unsigned header, phoff, shoff, phentsize, phnum, sh_info;
	unsigned program, offset, vaddr, paddr, filesz, memsz;
};

static const struct layout layouts[2] = {
    {4, 52, 28, 32, 42, 44, 28, 32, 4, 8, 12, 16, 20},
    {8, 64, 32, 40, 54, 56, 44, 56, 8, 16, 24, 32, 40},
};

typedef WEFT_VEC(struct weft_extent) extent_vec;

static uint64_t load_field(const struct layout *l, const unsigned char *at)
{
	return l->word == 4 ? weft_load_u32(at) : weft_load_u64(at);
}

static int compare_extents(const void *x, const void *y)
{
	const struct weft_extent *a = x, *b = y;
	return WEFT_ORDER(a->address, b->address) ?: WEFT_ORDER(a->offset, b->offset);
}

/* Cuts sorted extents so that they do not overlap; returns the new number of extents. */
static size_t cut_overlaps(struct weft_extent *extents, size_t count)
{
	size_t retained = 0;
	for (size_t i = 0; i < count; i++) {
		struct weft_extent e = extents[i];
		uint64_t end = retained ? extents[retained - 1].address + extents[retained - 1].bytes : 0;
		uint64_t cut = e.address < end ? end - e.address : 0;
		if (cut >= e.bytes)
			continue;
		extents[retained++] = (struct weft_extent){e.address + cut, e.bytes - cut, e.offset + cut};
	}
	return retained;
}

/* Finds the trace directory among the files that the process had mapped.  The note has the number of files and the page size;
 * then for each file its start address, end address and offset in pages; then the file names. */
static void read_files(struct weft_core *out, const struct layout *l, const unsigned char *at, size_t size)
{
	if (size < 2 * l->word)
		return;
	uint64_t count = load_field(l, at), table = 2 * l->word;
	if (count > (size - table) / (3 * l->word))
		return;
	const char *name = (const char *)at + table + count * 3 * l->word, *end = (const char *)at + size;
	for (uint64_t i = 0; i < count && name < end; i++) {
		size_t length = strnlen(name, (size_t)(end - name));
		char path[sizeof out->directory];
		if (length < sizeof path && name + length < end) {
			memcpy(path, name, length + 1);
			if (weft__image_cut_path(path)) {
				memcpy(out->directory, path, sizeof path);
				return;
			}
		}
		name += length + 1;
	}
}

static bool read_notes(
    struct weft_core *out, const struct layout *l, const struct weft_image *image, uint64_t offset, uint64_t size)
{
	size = size < NOTES_MAX ? size : NOTES_MAX;
	unsigned char *notes = malloc(size ? size : 1);
	if (!notes)
		return false;
	struct weft_cursor in = {notes, notes + image->read(image, offset, notes, size)};
	uint32_t name, bytes, type;
	while (weft_read_u32(&in, &name) && weft_read_u32(&in, &bytes) && weft_read_u32(&in, &type)) {
		size_t skip = ((size_t)name + 3) & ~(size_t)3, padded = ((size_t)bytes + 3) & ~(size_t)3;
		if (skip > weft_cursor_left(&in) || bytes > weft_cursor_left(&in) - skip)
			break;
		if (type == FILES)
			read_files(out, l, in.at + skip, bytes);
		in.at += skip;
		in.at += padded < weft_cursor_left(&in) ? padded : weft_cursor_left(&in);
	}
	free(notes);
	return true;
}

/* State of reading the program headers of a core dump. */
struct headers {
	const struct weft_image *image;
	const struct layout *layout;
	uint64_t at, count;
	unsigned size; /* bytes of each header */
	extent_vec extents;
	struct weft_core core;
	uint64_t used_bytes; /* sum of all extents */
	bool has_virtual;    /* true if at least one header has a virtual address */
};

/* Reads the program headers.  With `physical`, physical addresses are used, for the dump of a machine without virtual
 * addresses. */
static bool read_headers(struct headers *h, bool physical)
{
	const struct weft_image *image = h->image;
	const struct layout *l = h->layout;
	int notes = 0;
	h->extents.count = 0;
	h->core.missing_bytes = h->used_bytes = 0;
	for (uint64_t i = 0; i < h->count; i++) {
		unsigned char p[56];
		if (h->at > image->bytes || image->read(image, h->at + i * h->size, p, l->program) < l->program)
			break;
		if (weft_load_u32(p) == NOTE && !physical && notes++ < NOTES_READ &&
		    !read_notes(&h->core, l, image, load_field(l, p + l->offset), load_field(l, p + l->filesz)))
			return false;
		if (weft_load_u32(p) != LOAD)
			continue;
		struct weft_extent e = {load_field(l, p + (physical ? l->paddr : l->vaddr)), load_field(l, p + l->filesz),
		    load_field(l, p + l->offset)};
		h->has_virtual = h->has_virtual || load_field(l, p + l->vaddr);
		uint64_t left = e.offset < image->bytes ? image->bytes - e.offset : 0, memory = load_field(l, p + l->memsz);
		e.bytes = e.bytes < left ? e.bytes : left;
		/* All extents together must be at most as large as the file, so that overlapping extents add no work. */
		left = image->bytes - h->used_bytes;
		e.bytes = e.bytes < left ? e.bytes : left;
		h->core.missing_bytes += memory > e.bytes ? memory - e.bytes : 0;
		if (!e.bytes || e.bytes > UINT64_MAX - e.address)
			continue;
		struct weft_extent *slot = weft_vec_push(&h->extents);
		if (!slot)
			return false;
		*slot = e;
		h->used_bytes += e.bytes;
	}
	return true;
}

int weft__elf_read(struct weft_core *out, const struct weft_image *image, struct weft_error *err)
{
	unsigned char h[64];
	size_t got = image->read(image, 0, h, sizeof h);
	if (got < 52 || memcmp(h, "\177ELF", 4) != 0 || (h[4] != 1 && h[4] != 2) || h[5] != 1 || weft_load_u16(h + 16) != CORE)
		return 0;
	const struct layout *l = &layouts[h[4] - 1];
	if (got < l->header)
		return 0;
	struct headers headers = {.image = image,
	    .layout = l,
	    .at = load_field(l, h + l->phoff),
	    .count = weft_load_u16(h + l->phnum),
	    .size = weft_load_u16(h + l->phentsize)};
	if (headers.count == COUNT_IS_ELSEWHERE) {
		unsigned char first[64] = {0};
		if (image->read(image, load_field(l, h + l->shoff), first, l->sh_info + 4) == l->sh_info + 4)
			headers.count = weft_load_u32(first + l->sh_info);
	}
	if (headers.size < l->program || headers.at > image->bytes)
		return 0;
	/* The file is large enough for at most this many headers. */
	uint64_t max_headers = (image->bytes - headers.at) / headers.size;
	headers.count = headers.count < max_headers ? headers.count : max_headers;
	if (!read_headers(&headers, false) || (!headers.has_virtual && !read_headers(&headers, true))) {
		weft_vec_free(&headers.extents);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	weft_sort(headers.extents.items, headers.extents.count, sizeof *headers.extents.items, compare_extents);
	headers.core.count = cut_overlaps(headers.extents.items, headers.extents.count);
	headers.core.extents = headers.extents.items;
	*out = headers.core;
	return 1;
}
