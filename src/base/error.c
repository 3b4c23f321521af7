#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int weft_error_set(struct weft_error *err, enum weft_status status, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		err->status = status;
		err->file[0] = '\0';
		err->packet = WEFT_NO_OFFSET;
		err->offset = WEFT_NO_OFFSET;
		vsnprintf(err->what, sizeof err->what, format, args);
		va_end(args);
	}
	return status;
}

void weft_error_set_file(struct weft_error *err, const char *file)
{
	if (err)
		snprintf(err->file, sizeof err->file, "%s", file);
}

size_t weft_error_format(const struct weft_error *err, char *buf, size_t size)
{
	char place[64] = "";
	if (err->packet != WEFT_NO_OFFSET && err->offset != WEFT_NO_OFFSET)
		snprintf(place, sizeof place, " (packet %" PRIu64 ", offset 0x%" PRIx64 ")", err->packet, err->offset);
	else if (err->offset != WEFT_NO_OFFSET)
		snprintf(place, sizeof place, " (offset 0x%" PRIx64 ")", err->offset);
	else if (err->packet != WEFT_NO_OFFSET)
		snprintf(place, sizeof place, " (packet %" PRIu64 ")", err->packet);
	int n = snprintf(buf, size, "%s%s%s%s", err->file, err->file[0] ? ": " : "", err->what, place);
	return n < 0 ? 0 : (size_t)n;
}

const char *weft_status_string(int status)
{
	switch (status) {
#define CASE(NAME, value, text)                                                                                                  \
	case value: return text;
		WEFT_STATUSES(CASE)
#undef CASE
	}
	return "unknown status";
}
