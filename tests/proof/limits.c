/* limits.c [ODD]: a trace at the limits of its fields; WEFT_TRACE names the destination.
 *
 * The ids of 2,000 promises cross 2^32.  The clock stands still, goes back, and jumps further than a compact timestamp reaches.
 * Texts are longer than a packet.  With ODD, some texts are not UTF-8.  SPDX-License-Identifier: ISC
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft/record.h>

#define PROMISES 2000
#define FIRST_ID (((weft_id)1 << 32) - 500)

static uint64_t now = 1000000000;

static uint64_t by_hand(void)
{
	return now;
}

int main(int argc, char **argv)
{
	static char long_text[100000];
	static struct weft_record_text counter = WEFT_COUNTER("done");
	char path[4096];
	const char *wanted = getenv("WEFT_TRACE");
	if (!wanted || !weft_is_on() || strlen(wanted) >= sizeof path)
		return 2;
	weft_stop();
	strcpy(path, wanted);
	path[strcspn(path, ",")] = 0;
	struct weft_record_options options = {.directory = path,
	    .overwrite = true,
	    .size_bytes = 1 << 20,
	    .first_id = FIRST_ID,
	    .clock = by_hand,
	    .clock_hz = 1000000000};
	if (weft_start(&options) < 0)
		return 1;
	memset(long_text, 'x', sizeof long_text - 1);
	weft_id last = WEFT_SYSTEM_ID;
	for (int i = 0; i < PROMISES; i++) {
		weft_id id = WEFT_CREATE_BY(last, WEFT_KIND_TASK);
		if (id != FIRST_ID + i)
			return 1;
		now += 1000;
		weft_label(id, "a label");
		weft_counter_set(id, &counter, ((int64_t)1 << 31) - 5 + i % 10);
		weft_await(last, id);
		weft_run(id);
		switch (i) {
		case 100:
			weft_label(id, long_text);
			now += 1000; /* makes the sizes of two packets different, because babeltrace2 treats packets of equal size
					and time as one */
			break;
		case 200: weft_label_bytes(id, "before\0after", 12); break;
		case 300:
			if (argc > 1)
				weft_label(id, "\xff\xc0\x80 \xed\xa0\x80 caf\xe9");
			break;
		case 400: now += ((uint64_t)1 << 29) - 1; break;
		case 410: now += (uint64_t)1 << 29; break;
		case 420: now += ((uint64_t)1 << 32) - 1; break;
		case 430: now += (uint64_t)1 << 32; break;
		case 440: now += ((uint64_t)1 << 32) + 1; break;
		case 600: now += (uint64_t)1 << 50; break;
		case 800: now -= 1500; break;
		default: break;
		}
		if (i % 2)
			weft_resolve(last, id);
		last = id;
	}
	weft_stop();
	return 0;
}
