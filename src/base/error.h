/* error.h: what went wrong, for a person.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_ERROR_H
#define WEFT_BASE_ERROR_H

#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>

#define WEFT_NO_OFFSET UINT64_MAX

/* Filled by a call that fails, untouched by one that does not.  The caller owns it; every function that takes one accepts NULL.
 */
struct weft_error {
	enum weft_status status;
	char file[256];  /* whose bytes; "" if none */
	uint64_t packet; /* index in the file, or WEFT_NO_OFFSET */
	uint64_t offset; /* in bytes from the start of the file, or WEFT_NO_OFFSET */
	char what[192];  /* one clause, no full stop */
};

/* Records an error without a place and returns status, so that `return weft_error_set(...)` reads well. */
__attribute__((format(printf, 3, 4))) int weft_error_set(
    struct weft_error *err, enum weft_status status, const char *format, ...);

/* "FILE: what is wrong (packet 3, offset 0x3d41e)"; returns the length that the whole text has, as snprintf. */
size_t weft_error_format(const struct weft_error *err, char *buf, size_t size);

/* The text of a status; never NULL. */
const char *weft_status_string(int status);

#endif
