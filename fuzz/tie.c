/* tie.c: computes clock bounds from any messages, and converts times with them.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/clock_bounds.h"

/* A message, or a time to convert, is 17 bytes: two times and a direction. */
enum { BYTES = 17, MAX_MESSAGES = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weft_clock_message messages[MAX_MESSAGES];
	struct weft_clock_bounds *tie;
	size_t count = 0;
	for (; size >= BYTES && count < MAX_MESSAGES; data += BYTES, size -= BYTES, count++) {
		memcpy(&messages[count].local_ns, data, 8);
		memcpy(&messages[count].remote_ns, data + 8, 8);
		messages[count].is_sent_locally = data[16] & 1;
	}
	if (weft_clock_bounds_create(&tie, messages, count, size % 2, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		int64_t low, high, low_later, high_later;
		const int64_t ns = messages[i].local_ns, later_ns = ns < INT64_MAX / 2 ? ns + (ns & 0xffff) : ns;
		const int64_t at = weft_clock_bounds_time(tie, ns, &low, &high),
			      later = weft_clock_bounds_time(tie, later_ns, &low_later, &high_later);
		if (at < low || at > high || later < at || (later_ns >= ns && (low_later < low || high_later < high)))
			abort();
	}
	int64_t least_ns, average_ns;
	weft_clock_bounds_width(tie, &least_ns, &average_ns);
	if (least_ns < 0 || average_ns < 0)
		abort();
	weft_clock_bounds_destroy(tie);
	return 0;
}
