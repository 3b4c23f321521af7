/* night.c: night COUNT: a server that runs overnight.  It answers a request each millisecond until its standard input ends. From
 * its start on, a report waits for a query, which waits for an answer that never comes, and COUNT clients wait for a gate.  One
 * label contains terminal control sequences.  SPDX-License-Identifier: ISC */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/record.h>

static weft_id create(enum weft_kind kind, const char *label)
{
	weft_id promise = WEFT_CREATE(kind);
	weft_label(promise, label);
	return promise;
}

static void wait_for_ever(weft_id loop, unsigned long clients)
{
	char name[32];
	weft_id report = create(WEFT_KIND_TASK, "report"), gate = create(WEFT_KIND_CONDITION, "gate");
	weft_run(report);
	weft_id query = create(WEFT_KIND_TASK, "query");
	weft_run(query);
	weft_id answer = create(WEFT_KIND_WAIT, "answer");
	weft_await(query, answer);
	weft_await(report, query);
	weft_run(loop);
	create(WEFT_KIND_TASK, "\033]0;owned\007\033[2J\033[31mevil\xe2\x80\xae\n%s");
	for (unsigned long i = 0; i < clients; i++) {
		snprintf(name, sizeof name, "client %lu", i);
		weft_await(create(WEFT_KIND_TASK, name), gate);
	}
}

int main(int argc, char **argv)
{
	static struct weft_record_text queue = WEFT_COUNTER("queue");
	const struct timespec pause = {0, 1000000};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	weft_id loop = create(WEFT_KIND_LOOP, "night");
	weft_run(loop);
	wait_for_ever(loop, argc > 1 ? strtoul(argv[1], NULL, 10) : 0);
	for (unsigned turn = 0; poll(&input, 1, 0) == 0; turn++) {
		weft_id request = create(WEFT_KIND_REQUEST, "GET /");
		weft_run(request);
		weft_counter_set(loop, &queue, turn / 100 % 10);
		weft_resolve(request, request);
		weft_run(loop);
		weft_idle(WEFT_IDLE_WAIT);
		nanosleep(&pause, NULL);
		weft_resume(loop);
	}
	return 0;
}
