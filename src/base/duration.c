/* duration.c: see duration.h.  SPDX-License-Identifier: ISC */
#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
	const char *name;
	int64_t ns;
	int digits; /* number of digits after the decimal point with which the value is exact to the ns */
} units[] = {{"s", 1000000000, 9}, {"ms", 1000000, 6}, {"us", 1000, 3}, {"ns", 1, 0}};

enum { UNITS = sizeof units / sizeof *units, MICRO = 2 };

#define MICRO_SIGN "\u00b5s"

static const char *micro = MICRO_SIGN;

void weft_duration_set_ascii(bool ascii)
{
	micro = ascii ? units[MICRO].name : MICRO_SIGN;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool weft_duration_parse(const char *text, size_t len, int64_t *ns)
{
	const char *unit = text, *end = text + len;
	int64_t scale = 0, sum = 0;
	bool digits = false;
	while (unit < end && (is_digit(*unit) || *unit == '.'))
		unit++;
	size_t unit_len = (size_t)(end - unit);
	for (size_t i = 0; i < UNITS; i++)
		if (strlen(units[i].name) == unit_len && memcmp(unit, units[i].name, unit_len) == 0)
			scale = units[i].ns;
	if (unit_len == 3 && memcmp(unit, "\xc2\xb5s", 3) == 0)
		scale = 1000;
	if (len == 1 && *text == '0')
		scale = 1;
	if (scale == 0)
		return false;
	for (; text < unit && *text != '.'; text++) {
		digits = true;
		if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, (*text - '0') * scale, &sum))
			return false;
	}
	if (text < unit) {
		for (text++; text < unit; text++) {
			if (*text == '.')
				return false;
			digits = true;
			scale /= 10;
			if (__builtin_add_overflow(sum, (*text - '0') * scale, &sum))
				return false;
		}
	}
	if (!digits)
		return false;
	*ns = sum;
	return true;
}

size_t weft_duration_format(char *buf, size_t size, int64_t ns)
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	for (size_t i = 0; i + 1 < UNITS; i++) {
		uint64_t unit = (uint64_t)units[i].ns;
		const char *name = i == MICRO ? micro : units[i].name;
		if (magnitude < unit)
			continue;
		uint64_t whole = magnitude / unit, thousandths = magnitude % unit / (unit / 1000);
		if (whole >= 100)
			return (size_t)snprintf(buf, size, "%s%" PRIu64 " %s", sign, whole, name);
		if (whole >= 10)
			return (size_t)snprintf(buf, size, "%s%" PRIu64 ".%" PRIu64 " %s", sign, whole, thousandths / 100, name);
		return (size_t)snprintf(buf, size, "%s%" PRIu64 ".%02" PRIu64 " %s", sign, whole, thousandths / 10, name);
	}
	return (size_t)snprintf(buf, size, "%s%" PRIu64 " ns", sign, magnitude);
}

const char *weft_duration_text(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

size_t weft_duration_format_exact(char *buf, size_t size, int64_t ns)
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	size_t i = 0;
	if (ns == 0)
		return (size_t)snprintf(buf, size, "0");
	while (magnitude < (uint64_t)units[i].ns)
		i++;
	uint64_t rest = magnitude % (uint64_t)units[i].ns;
	int digits = units[i].digits;
	for (; digits > 0 && rest % 10 == 0; digits--)
		rest /= 10;
	magnitude /= (uint64_t)units[i].ns;
	if (digits == 0)
		return (size_t)snprintf(buf, size, "%s%" PRIu64 "%s", sign, magnitude, units[i].name);
	return (size_t)snprintf(buf, size, "%s%" PRIu64 ".%0*" PRIu64 "%s", sign, magnitude, digits, rest, units[i].name);
}
