/* json.c: implements json.h.  SPDX-License-Identifier: ISC */
#include "export/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "export/budget.h"

enum { FLUSH_BYTES = 1 << 16 };

static void put_bytes(void *json, const char *bytes, size_t size)
{
	struct weft__json *j = json;
	if (!weft_vec_reserve(&j->out, size)) {
		j->no_memory = true;
		return;
	}
	memcpy(j->out.items + j->out.count, bytes, size);
	j->out.count += size;
}

void weft__json_format(struct weft__json *j, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	const int length = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	put_bytes(j, text, (size_t)length);
}

void weft__json_string(struct weft__json *j, struct weft_str text)
{
	put_bytes(j, "\"", 1);
	weft_json_text(weft__export_text(text, &j->budget, &j->losses), put_bytes, j);
	put_bytes(j, "\"", 1);
}

void weft__json_fraction(struct weft__json *j, int64_t ns, unsigned decimals)
{
	const uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t unit = 1;
	for (unsigned i = 0; i < decimals; i++)
		unit *= 10;
	weft__json_format(j, "%s%" PRIu64 ".%0*" PRIu64, ns < 0 ? "-" : "", size / unit, (int)decimals, size % unit);
}

void weft__json_flush(struct weft__json *j, bool is_end)
{
	if (!is_end && j->out.count < FLUSH_BYTES)
		return;
	j->has_failed |= j->out.count > 0 && j->write(j->write_ctx, j->out.items, j->out.count) != 0;
	j->out.count = 0;
}

int weft__json_end(struct weft__json *j, struct weft_losses *losses, struct weft_error *err)
{
	weft__json_flush(j, true);
	weft_vec_free(&j->out);
	if (weft__json_has_trouble(j)) {
		const enum weft_status status = j->has_failed ? WEFT_EIO : WEFT_ENOMEM;
		return weft_error_set(err, status, "%s", weft_status_string(status));
	}
	*losses = j->losses;
	return WEFT_OK;
}
