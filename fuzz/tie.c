/* tie.c: ties of clocks by any messages, and times asked of them.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/tie.h"

/* Each message and each time asked for is 17 bytes: two times, and its direction. */
enum { BYTES = 17, MOST = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weft_tie_message messages[MOST];
	struct weft_tie *tie;
	size_t count = 0;
	for (; size >= BYTES && count < MOST; data += BYTES, size -= BYTES, count++) {
		memcpy(&messages[count].mine_ns, data, 8);
		memcpy(&messages[count].other_ns, data + 8, 8);
		messages[count].is_mine = data[16] & 1;
	}
	if (weft_tie_create(&tie, messages, count, size % 2, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		int64_t low, high, low_later, high_later;
		const int64_t ns = messages[i].mine_ns, later_ns = ns < INT64_MAX / 2 ? ns + (ns & 0xffff) : ns;
		const int64_t at = weft_tie_time(tie, ns, &low, &high),
			      later = weft_tie_time(tie, later_ns, &low_later, &high_later);
		if (at < low || at > high || later < at || (later_ns >= ns && (low_later < low || high_later < high)))
			abort();
	}
	int64_t least_ns, average_ns;
	weft_tie_width(tie, &least_ns, &average_ns);
	if (least_ns < 0 || average_ns < 0)
		abort();
	weft_tie_destroy(tie);
	return 0;
}
