/* error.h: describes an error for users.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_ERROR_H
#define WEFT_BASE_ERROR_H

#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>

#define WEFT_NO_OFFSET UINT64_MAX

/* A description of an error.  A function that fails fills the description; a function that succeeds leaves it unchanged.  The
 * caller owns it.  Every function that takes a struct weft_error accepts NULL. */
struct weft_error {
	enum weft_status status;
	char file[256];  /* file in which the error was found; "" if there is none */
	uint64_t packet; /* index of the packet in the file, or WEFT_NO_OFFSET */
	uint64_t offset; /* byte offset from the start of the file, or WEFT_NO_OFFSET */
	char what[192];  /* the problem as one clause, without a full stop */
};

/* Sets the text of an error without a position in a file.  Returns status, so that callers can write `return
 * weft_error_set(...)`. */
__attribute__((format(printf, 3, 4))) int weft_error_set(
    struct weft_error *err, enum weft_status status, const char *format, ...);

/* Sets the file of an error; accepts NULL. */
void weft_error_set_file(struct weft_error *err, const char *file);

/* Formats "FILE: PROBLEM (packet 3, offset 0x3d41e)"; returns the length of the whole text, as snprintf does. */
size_t weft_error_format(const struct weft_error *err, char *buf, size_t size);

/* Returns the text of a status code; never NULL. */
const char *weft_status_string(int status);

#endif
