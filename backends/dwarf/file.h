/* file.h: opens files that a trace names (private to backends/dwarf).  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_FILE_H
#define WEFT_DWARF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum weft_file_fault {
	WEFT_FILE_FINE,
	WEFT_FILE_NONE,  /* there is no such file, or it must not be read */
	WEFT_FILE_OTHER, /* not a regular file, or without machine code */
	WEFT_FILE_BUILD_ID
};

/* Opens a file without reading it.  The path is not trusted, because anyone may have written the trace: only regular files are
 * opened, no virtual files of the kernel, nothing behind links of /proc, and no files that other users may change.  Returns the
 * descriptor, or -1. */
int weft__file_open(const char *path);

/* Returns whether an open file (-1: none) has this build-id (hexadecimal digits).  Parses the file. */
enum weft_file_fault weft__file_identify(int fd, struct weft_str build_id);

/* Writes the path of installed debug information with this build-id.  Returns false if the id is invalid. */
bool weft__file_debug_path(char *out, size_t size, struct weft_str build_id);

/* Finds the bounds of the function around an address of the file, from .eh_frame_hdr; `bytes` are the file's contents. */
bool weft__file_function(const unsigned char *bytes, size_t size, uint64_t address, uint64_t *begin, uint64_t *end);

#endif
