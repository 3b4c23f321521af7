/* file.h: opens the files whose paths a trace contains (private to backends/dwarf).  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_FILE_H
#define WEFT_DWARF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum weft_file_fault {
	WEFT_FILE_FINE,
	WEFT_FILE_NONE,  /* fault: the file does not exist, or must not be read */
	WEFT_FILE_OTHER, /* fault: the file is not a regular file, or has no machine code */
	WEFT_FILE_BUILD_ID
};

/* Opens a file that a trace names, without reading it.  The path is untrusted, because anyone may have written the trace.  So
 * only regular files are opened, but no virtual files of the kernel, no files behind links of /proc, and no files that other
 * users may change.  Returns the descriptor, or -1. */
int weft__file_open(const char *path);

/* Returns the fault of an open file (-1: none) that should have this build-id (hexadecimal digits), or WEFT_FILE_FINE.  Parses
 * the file. */
enum weft_file_fault weft__file_identify(int fd, struct weft_str build_id);

/* Writes the path at which debug information with this build-id would be installed.  Returns false if the build-id is
 * invalid. */
bool weft__file_debug_path(char *out, size_t size, struct weft_str build_id);

/* Finds the start and end of the function around an address of the file, from .eh_frame_hdr; `bytes` are the file's contents. */
bool weft__file_function(const unsigned char *bytes, size_t size, uint64_t address, uint64_t *begin, uint64_t *end);

#endif
