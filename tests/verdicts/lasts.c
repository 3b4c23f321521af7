/* lasts.c MODE: twelve tasks that end soon, and a last task that gets no result (forgotten), or gets its result just before the
 * program ends (late). SPDX-License-Identifier: ISC */
#include <string.h>
#include <time.h>

#include <weft/record.h>

enum { TASKS = 12, LAST_MS = 600 };

static void sleep_ms(unsigned ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
	weft_idle(WEFT_IDLE_WAIT);
	nanosleep(&pause, NULL);
	weft_resume(WEFT_SYSTEM_ID);
}

int main(int argc, char **argv)
{
	const int is_late = argc > 1 && !strcmp(argv[1], "late");
	for (int i = 0; i <= TASKS; i++) {
		const weft_id task = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		const weft_id read = weft_create(task, WEFT_KIND_STREAM_READ, WEFT_SITE());
		weft_label(task, "fetch a message");
		weft_await(task, read);
		sleep_ms(1);
		weft_resolve(WEFT_SYSTEM_ID, read);
		weft_read(task, read);
		weft_run(task);
		if (i == TASKS) {
			weft_run(WEFT_SYSTEM_ID);
			sleep_ms(LAST_MS);
		}
		if (i < TASKS || is_late)
			weft_resolve(task, task);
		weft_run(WEFT_SYSTEM_ID);
	}
	return 0;
}
