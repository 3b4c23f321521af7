/* patient.c: patient FAULT...: a server that answers a request each millisecond until its standard input ends.  After the
 * hundredth request it commits each FAULT once and continues: stall, lost, spin (which never ends), snapshot, burst, names.
 * With the word slowly it answers a request each 20 ms.
 * SPDX-License-Identifier: ISC */
#include <poll.h>
#include <string.h>
#include <time.h>
#include <weft/record.h>

enum { BEFORE = 100 };

static void burn(long ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void answer(weft_id loop)
{
	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
	WEFT_LABEL(request, "request");
	weft_run(request);
	weft_resolve(request, request);
	weft_run(loop);
}

/* Request "greedy" computes for 300 ms while request "delayed" is ready. */
static void stall(weft_id loop)
{
	weft_id greedy = WEFT_CREATE(WEFT_KIND_REQUEST), patient = WEFT_CREATE(WEFT_KIND_REQUEST),
		timer = WEFT_CREATE(WEFT_KIND_TIMER);
	WEFT_LABEL(greedy, "greedy");
	WEFT_LABEL(patient, "delayed");
	weft_await(patient, timer);
	weft_run(greedy);
	weft_resolve(WEFT_SYSTEM_ID, timer);
	burn(300);
	weft_resolve(greedy, greedy);
	weft_read(patient, timer);
	weft_resolve(patient, patient);
	weft_run(loop);
}

/* A task waits for a condition that was signalled before the wait. */
static void lose_a_wakeup(weft_id loop)
{
	weft_id condition = WEFT_CREATE(WEFT_KIND_CONDITION), waiter = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(condition, "go");
	WEFT_LABEL(waiter, "sleeper");
	weft_should_resolve(waiter);
	weft_signal_only(loop, condition);
	weft_run(waiter);
	weft_await(waiter, condition);
	weft_run(loop);
}

static void spin(weft_id loop, struct pollfd *input)
{
	weft_id idle = WEFT_CREATE(WEFT_KIND_HANDLE);
	WEFT_LABEL(idle, "busy");
	weft_run(idle);
	for (uint64_t told = 1024; poll(input, 1, 0) == 0; told *= 2) {
		burn(told < UINT64_C(1) << 24 ? (long)(told >> 11) : 1000);
		weft_spins(idle, told);
	}
	weft_run(loop);
}

/* Records more requests than weft watch reads in one go. */
static void burst(weft_id loop)
{
	for (int i = 0; i < 400000; i++)
		answer(loop);
}

static void answer_as(weft_id loop, const char *name)
{
	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_label(request, name);
	weft_run(request);
	weft_resolve(request, request);
	weft_run(loop);
}

/* Answers requests with 300 different names, and a request whose name has characters that need escapes in metrics. */
static void use_names(weft_id loop)
{
	answer_as(loop, "quote \" backslash \\ line");
	for (int i = 0; i < 300; i++) {
		const char name[] = {'n', (char)('g' + i % 20), (char)('g' + i / 20), '\0'};
		answer_as(loop, name);
	}
}

int main(int argc, char **argv)
{
	struct timespec pause = {0, 1000000};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	weft_id loop = WEFT_CREATE(WEFT_KIND_LOOP);
	weft_run(loop);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "slowly"))
			pause.tv_nsec = 20000000;
	for (unsigned turn = 0; poll(&input, 1, 0) == 0; turn++) {
		for (int i = 1; i < argc; i++) {
			if (turn != BEFORE)
				continue;
			if (!strcmp(argv[i], "stall"))
				stall(loop);
			else if (!strcmp(argv[i], "lost"))
				lose_a_wakeup(loop);
			else if (!strcmp(argv[i], "spin"))
				spin(loop, &input);
			else if (!strcmp(argv[i], "snapshot"))
				weft_snapshot("the queue is full");
			else if (!strcmp(argv[i], "burst"))
				burst(loop);
			else if (!strcmp(argv[i], "names"))
				use_names(loop);
		}
		answer(loop);
		weft_idle(WEFT_IDLE_WAIT);
		nanosleep(&pause, NULL);
		weft_resume(loop);
	}
	return 0;
}
