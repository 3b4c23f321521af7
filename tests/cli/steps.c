/* steps.c: steps DIRECTORY: records a ring of 64 MB in DIRECTORY.  Each line of its input is a number of tasks, which two OS
 * threads do in turns; then it prints a line.  From its start on, a client waits for a gate, which steps_begin() created.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/record.h>

static void work(unsigned long tasks)
{
	for (unsigned long i = 0; i < tasks; i++) {
		const weft_id task = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_label_text(task, WEFT_TEXT("task"));
		weft_run(task);
		weft_resolve(task, task);
		weft_idle(WEFT_IDLE_WAIT);
	}
}

static void *work_aside(void *tasks)
{
	work(*(const unsigned long *)tasks);
	return NULL;
}

__attribute__((noinline)) weft_id steps_begin(void);
__attribute__((noinline)) weft_id steps_begin(void)
{
	static struct weft_record_place place;
	place.address = (const char *)(uintptr_t)steps_begin + 1;
	return weft_create_at(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, &place);
}

int main(int argc, char **argv)
{
	const struct weft_record_options options = {.directory = argv[1], .mode = WEFT_RECORD_RING, .size_bytes = 64u << 20};
	char line[32];
	pthread_t aside;
	if (argc != 2 || weft_start(&options) != WEFT_OK)
		return 1;
	const weft_id client = WEFT_CREATE(WEFT_KIND_TASK), gate = steps_begin();
	weft_label(client, "client");
	weft_label(gate, "gate");
	weft_await(client, gate);
	while (puts("done") >= 0 && fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
		unsigned long half = strtoul(line, NULL, 10) / 2;
		work(half);
		if (pthread_create(&aside, NULL, work_aside, &half) != 0)
			return 1;
		pthread_join(aside, NULL);
	}
	weft_stop();
	return 0;
}
