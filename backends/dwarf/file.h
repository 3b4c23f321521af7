/* file.h: opening what a trace names (private to backends/dwarf).  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_FILE_H
#define WEFT_DWARF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum weft_file_fault {
	WEFT_FILE_FINE,
	WEFT_FILE_NONE,  /* there is no such file, or it must not be read */
	WEFT_FILE_OTHER, /* no regular file, or none of machine code */
	WEFT_FILE_BUILD_ID
};

/* A descriptor of the file in *fd, of which it is certain that it has that build-id (hexadecimal digits).  Who wrote the trace
 * may have written any path: only regular files are opened, none of the kernel's, none that others may change. */
enum weft_file_fault weft__file_open(int *fd, const char *path, struct weft_str build_id);

/* Where debug information of that build-id stands if it is installed; false: the id is none. */
bool weft__file_debug_path(char *out, size_t size, struct weft_str build_id);

/* The bounds of the function around an address of the file's own, as .eh_frame_hdr tells them; bytes are the file's. */
bool weft__file_function(const unsigned char *bytes, size_t size, uint64_t address, uint64_t *begin, uint64_t *end);

#endif
