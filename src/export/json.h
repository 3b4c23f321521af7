/* json.h: writes JSON through a buffer.  Private to src/export.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_JSON_H
#define WEFT_EXPORT_JSON_H

#include "base/vec.h"
#include "export/export.h"

struct weft__json {
	weft_export_write_fn *write;
	void *write_ctx;
	WEFT_VEC(char) out;
	uint64_t budget; /* weft__export_budget() */
	struct weft_losses losses;
	bool has_failed, no_memory;
};

static inline bool weft__json_has_trouble(const struct weft__json *j)
{
	return j->has_failed || j->no_memory;
}

/* Writes a piece of text of at most 255 bytes. */
__attribute__((format(printf, 2, 3))) void weft__json_format(struct weft__json *json, const char *format, ...);

/* Writes a text as a string; a long text is cut if the budget is used up. */
void weft__json_string(struct weft__json *json, struct weft_str text);

/* Writes a time in ns with `decimals` more places in front, as a decimal fraction, which a floating-point number would lose. */
void weft__json_fraction(struct weft__json *json, int64_t ns, unsigned decimals);

/* Writes what is in the buffer, if it is much or `is_end`. */
void weft__json_flush(struct weft__json *json, bool is_end);

/* Ends the file: fills *losses, or returns WEFT_EIO or WEFT_ENOMEM. */
int weft__json_end(struct weft__json *json, struct weft_losses *losses, struct weft_error *err);

#endif
