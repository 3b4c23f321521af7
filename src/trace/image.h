/* image.h: finds a ring in an image of memory (private to src/trace).
 *
 * A packet's header says all that is needed to recognise it, so the image can be anything that has bytes: the memory file of a
 * virtual machine, a core dump, a process, a raw dump.  Packets that are found are copied; all else passes through one buffer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_IMAGE_H
#define WEFT_TRACE_IMAGE_H

#include "trace/source.h"

/* Where a piece of memory stands in the image. */
struct weft_extent {
	uint64_t address, bytes;
	uint64_t offset; /* what read() is asked for */
};

/* An image, which whoever has it describes like this. */
struct weft_image {
	const char *name;
	uint64_t bytes; /* read() can be asked for offsets below this */

	/* Reads at most `bytes`, and returns how many bytes it could read there. */
	size_t (*read)(const struct weft_image *image, uint64_t offset, void *to, size_t bytes);

	/* Returns the first offset, from `offset` on, whose bytes are not known to be zeros; may set *end to where such bytes
	 * end. NULL: nothing is known of zeros. */
	uint64_t (*next_data)(const struct weft_image *image, uint64_t offset, uint64_t *end);

	const struct weft_extent *extents; /* sorted by address; NULL: those of an ELF core dump, or the image is one extent */
	size_t extent_count;
	const void *ctx; /* the owner's */
	int file;        /* the owner's */
};

/* Makes a source of the packets of one ring in the image, and notes which other rings there are.  `uuid` is the beginning of the
 * ring's UUID, in hexadecimal digits.  NULL takes the newest ring that has definitions: by wall clock, or by the recorder's own
 * clock if that knows no time of day.
 *
 * On failure *out is untouched: WEFT_EFORMAT (there is no such ring), WEFT_EINVAL (several UUIDs begin like this), WEFT_ENOTSUP,
 * WEFT_ENOMEM.  Memory: the packets of that ring, and 80 bytes for each packet of any ring, of which 2^20 at most are taken. */
int weft__image_search(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err);

/* Whether definitions of at least two rings are in the image, which is searched from end to end.  Also false when out of memory.
 */
bool weft__image_has_several(const struct weft_image *image);

/* What a core dump says of itself. */
struct weft_core {
	struct weft_extent *extents; /* to be freed */
	size_t count;
	uint64_t lacks;      /* bytes of memory that the dump leaves out */
	char directory[256]; /* the trace directory of which the process had files mapped, or "" */
};

/* In elf.c.  Returns 1; 0: the image is no core dump; WEFT_ENOMEM. */
int weft__elf_read(struct weft_core *out, const struct weft_image *image, struct weft_error *err);

/* Cuts the path of a file of events to the trace directory that it is in; false: this is another file. */
bool weft__image_cut_path(char *path);

/* Reads at `address`, across extents that adjoin each other, and returns how many bytes could be read. */
size_t weft__image_read(const struct weft_image *image, uint64_t address, void *to, size_t bytes);

#endif
