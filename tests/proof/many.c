/* many.c EVENTS: records about EVENTS events of all kinds in three OS threads at once; WEFT_TRACE names the destination.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/record.h>

#define THREADS 3

static unsigned rounds;

static void *work(void *arg)
{
	static struct weft_record_text requests = WEFT_COUNTER("requests");
	/* No text is empty, because babeltrace2 2.0.4 shows an earlier text in place of an empty one. */
	static const char *const texts[] = {"a", "naïve café", "{ x = 1 }", "\"quoted\" and \\ escaped", "ends in a tab\t"};
	char name[16];
	snprintf(name, sizeof name, "worker-%u", *(const unsigned *)arg % 10);
	pthread_setname_np(pthread_self(), name);
	weft_id far = (weft_id)1 << 40, last = WEFT_SYSTEM_ID;
	char text[64];
	for (unsigned i = 0; i < rounds; i++) {
		weft_id id = WEFT_CREATE_BY(last, (enum weft_kind)(i % 18));
		WEFT_LABEL(id, "a literal");
		snprintf(text, sizeof text, "%s %u", texts[i % 5], i);
		weft_label(id, text);
		weft_await(last, id);
		weft_run(id);
		weft_counter_set(id, &requests, i);
		weft_counter_add(id, &requests, i % 16 ? -1 : INT64_MIN / 3);
		weft_signal(id, last);
		weft_signal_only(id, i % 32 ? last : far + i);
		if (i % 8)
			weft_resolve(last, id);
		else
			weft_fail(last, id, texts[i / 8 % 5]);
		weft_read(last, id);
		weft_read_later(id, last);
		weft_become(id, last);
		weft_should_resolve(id);
		WEFT_PAUSE("gc", i);
		WEFT_NOTE(id, "a note");
		weft_idle((enum weft_idle)(i % 3));
		weft_resume(id);
		WEFT_PAUSE_BEGIN("page fault");
		weft_pause_end();
		last = id;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];
	rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) / 20 / THREADS : 1;
	if (!weft_is_on())
		return 2;
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, work, &numbers[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
