/* image.h: finds a ring in an image of memory (private to src/trace).
 *
 * A packet's header suffices to recognise a packet.  So an image can be anything with bytes: the memory file of a virtual
 * machine, a core dump, a process, a raw dump.  Found packets are copied; everything else passes through one buffer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_IMAGE_H
#define WEFT_TRACE_IMAGE_H

#include "trace/source.h"

/* A piece of memory in the image. */
struct weft_extent {
	uint64_t address, bytes;
	uint64_t offset; /* offset for read() */
};

/* An image, described by its owner. */
struct weft_image {
	const char *name;
	uint64_t bytes; /* offsets for read() are below this */

	/* Reads at most `bytes` bytes; returns the number of bytes read. */
	size_t (*read)(const struct weft_image *image, uint64_t offset, void *to, size_t bytes);

	/* Returns the first offset, from `offset` on, with bytes that are not known to be zeros; may set *end to the end of such
	 * bytes.  NULL: zeros are not known. */
	uint64_t (*next_data)(const struct weft_image *image, uint64_t offset, uint64_t *end);

	/* sorted by address; NULL: use those of an ELF core dump, or one extent for the whole image */
	const struct weft_extent *extents;
	size_t extent_count;
	const void *ctx; /* owned by the owner of the image */
	int file;        /* owned by the owner of the image */
};

/* Makes a source of the packets of one ring in the image, and notes other rings.  `uuid` is the start of the ring's UUID in
 * hexadecimal digits.  NULL chooses the newest ring with definitions: by wall clock, or by the recorder's clock if the time of
 * day is unknown.
 *
 * On failure *out is unchanged: WEFT_EFORMAT (no such ring), WEFT_EINVAL (several UUIDs match), WEFT_ENOTSUP, WEFT_ENOMEM.
 * Memory: the packets of that ring, and 80 bytes for each packet of any ring, at most 2^20 packets. */
int weft__image_search(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err);

/* Returns true if the image has definitions of at least two rings; searches the whole image.  Returns false also when out of
 * memory. */
bool weft__image_has_several(const struct weft_image *image);

/* Contents of the headers of a core dump. */
struct weft_core {
	struct weft_extent *extents; /* freed by the caller */
	size_t count;
	uint64_t missing_bytes; /* memory that the dump omits */
	char directory[256];    /* trace directory of which the process had files mapped, or "" */
};

/* In elf.c.  Returns 1; 0 if the image is not a core dump; WEFT_ENOMEM. */
int weft__elf_read(struct weft_core *out, const struct weft_image *image, struct weft_error *err);

/* Cuts the path of an event file to its trace directory; false: this is another file. */
bool weft__image_cut_path(char *path);

/* Reads at `address`, across adjacent extents; returns the number of bytes read. */
size_t weft__image_read(const struct weft_image *image, uint64_t address, void *to, size_t bytes);

#endif
