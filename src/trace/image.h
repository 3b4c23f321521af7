/* image.h: finds a ring in an image of memory (private to src/trace).
 *
 * The header of a packet suffices to recognize the packet.  Therefore anything that consists of bytes can be an image: the
 * memory file of a virtual machine, a core dump, a process, a raw dump.  Packets that are found are copied; all other bytes
 * only pass through one buffer.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_IMAGE_H
#define WEFT_TRACE_IMAGE_H

#include "trace/source.h"

/* A range of memory that the image contains. */
struct weft_extent {
	uint64_t address, bytes;
	uint64_t offset; /* offset for read() */
};

/* An image, which its owner describes. */
struct weft_image {
	const char *name;
	uint64_t bytes; /* size of the image: offsets for read() are below it */

	/* Reads at most `bytes` bytes; returns the number of bytes read. */
	size_t (*read)(const struct weft_image *image, uint64_t offset, void *to, size_t bytes);

	/* Returns the first offset, from `offset` on, whose bytes are not known to be zeros; may set *end to the end of such
	 * bytes.  `next_data` is NULL if ranges of zeros are not known. */
	uint64_t (*next_data)(const struct weft_image *image, uint64_t offset, uint64_t *end);

	/* extents sorted by address; NULL to use the extents of an ELF core dump, or one extent for the whole image */
	const struct weft_extent *extents;
	size_t extent_count;
	const void *ctx; /* data for the functions, which the owner of the image frees */
	int file;        /* file descriptor, which the owner of the image closes */
};

/* Makes a source of the packets of one ring in the image, and notes other rings.  `uuid` is the start of the ring's UUID in
 * hexadecimal digits.  If `uuid` is NULL, the newest ring with definitions is chosen: by wall clock, or by the recorder's clock
 * if the time of day is unknown; a process that stands by has none.
 *
 * On failure *out is unchanged, and the result is WEFT_EFORMAT (no such ring), WEFT_EINVAL (several UUIDs match), WEFT_ENOTSUP
 * or WEFT_ENOMEM.  Needs memory for the packets of that ring, and 80 bytes for each packet of any ring, for at most 2^20
 * packets. */
int weft__image_search(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err);

/* Returns whether the image, whose extents are known, is of a process that stands by and does not record (wire/standby.h).  Its
 * memory may still contain packets of recordings that have ended. */
bool weft__image_stands_by(const struct weft_image *image);

/* Returns true if the image has definitions of at least two rings; searches the whole image.  Also returns false when out of
 * memory. */
bool weft__image_has_several(const struct weft_image *image);

/* Facts from the headers of a core dump. */
struct weft_core {
	struct weft_extent *extents; /* freed by the caller */
	size_t count;
	uint64_t missing_bytes; /* number of bytes of memory that the dump omits */
	char directory[256];    /* trace directory whose files the process had mapped, or "" */
};

/* In elf.c.  Reads the headers of a core dump; returns 1, 0 if the image is not a core dump, or WEFT_ENOMEM. */
int weft__elf_read(struct weft_core *out, const struct weft_image *image, struct weft_error *err);

/* Cuts the path of an event file to the path of its trace directory; returns false if the file is no event file. */
bool weft__image_cut_path(char *path);

/* Reads bytes at `address`, across adjacent extents; returns the number of bytes read. */
size_t weft__image_read(const struct weft_image *image, uint64_t address, void *to, size_t bytes);

#endif
