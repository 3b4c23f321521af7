/* image.h: finding a ring in the image of a memory (private to src/trace).
 *
 * A packet says all that is needed to find it anywhere, so nothing is to be known of the image but its bytes: a virtual
 * machine's memory file, a core dump, a process, a raw dump.  What is found is copied; the rest passes through one buffer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_IMAGE_H
#define WEFT_TRACE_IMAGE_H

#include "trace/source.h"

/* Where a piece of memory stands in the image. */
struct weft_extent {
	uint64_t address, bytes;
	uint64_t offset; /* what read() is asked for */
};

/* An image, as whoever has it gives it. */
struct weft_image {
	const char *name;
	uint64_t bytes; /* of all that read() can be asked for */

	/* Reads at most `bytes`; returns how many could be read, 0: none can there. */
	size_t (*read)(const struct weft_image *image, uint64_t offset, void *to, size_t bytes);

	/* Where the next bytes stand, at or behind `offset`, that are not known to be zeros, and where they end, perhaps; NULL:
	 * nothing is known. */
	uint64_t (*next_data)(const struct weft_image *image, uint64_t offset, uint64_t *end);

	const struct weft_extent *extents; /* by address; NULL: those of an ELF core, else the image as it is */
	size_t extent_count;
	const void *ctx; /* the owner's */
	int file;        /* the owner's */
};

/* Makes a source of the packets of one ring in the image: of the one with that uuid, or one that begins so (hexadecimal
 * digits), or with NULL the newest that has definitions (by wall clock; by their own, where they have none), and notes what
 * others there are.
 *
 * On failure *out is untouched.  WEFT_EFORMAT (there is none), WEFT_EINVAL (several uuids begin so), WEFT_ENOTSUP, WEFT_ENOMEM.
 * Memory: the packets of that ring, and 80 bytes for each one that is found, of at most 2^20. */
int weft__image_search(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err);

/* Whether two rings or more have left definitions in the image, whatever its extents; false too where memory is lacking. */
bool weft__image_has_several(const struct weft_image *image);

/* What a core dump says of itself. */
struct weft_core {
	struct weft_extent *extents; /* to be freed */
	size_t count;
	uint64_t lacks;      /* bytes of memory that were not dumped */
	char directory[256]; /* of a trace of which the process had files mapped; "" if none is told of */
};

/* elf.c.  Returns 1; 0: it is no core dump; WEFT_ENOMEM. */
int weft__elf_read(struct weft_core *out, const struct weft_image *image, struct weft_error *err);

/* Cuts the path of a file with a trace's events to its directory; false: it is another file's. */
bool weft__image_cut_path(char *path);

/* Reads at `address` across extents that adjoin; returns how many bytes there are. */
size_t weft__image_read(const struct weft_image *image, uint64_t address, void *to, size_t bytes);

#endif
