/* clients.c [leak|stuck|starved|slowly|chat|exit|pool|hand-over]: a server's connections, recorded by hand as
 * docs/instrument-api.md describes.
 *
 * leak: no connection is ever closed.  stuck: one page of forty never comes.  starved: one request is ready to run, but thirty
 * other requests run before it.  slowly: items are removed one at a time, which is too slow.  chat: no connection is closed, but
 * all of them continue to talk.  exit: the program ends while a short timer is pending.  pool: work of 60 ms on another OS
 * thread, while the loop is idle.  hand-over: another OS thread answers requests.  slowly is informational; chat, exit, pool and
 * hand-over have no fault.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

enum { CLIENTS = 80 };

static weft_id client[CLIENTS];

static void sleep_us(unsigned us)
{
	weft_idle(WEFT_IDLE_WAIT);
	usleep(us);
	weft_resume(WEFT_SYSTEM_ID);
}

static void talk(weft_id connection)
{
	weft_id read = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
	weft_await(connection, read);
	sleep_us(300);
	weft_resolve(WEFT_SYSTEM_ID, read);
	weft_read(connection, read);
	weft_run(WEFT_SYSTEM_ID);
}

static void serve(const char *fault)
{
	bool closes = strcmp(fault, "leak") && strcmp(fault, "chat");
	for (int i = 0; i < CLIENTS; i++) {
		char name[64];
		client[i] = WEFT_CREATE(WEFT_KIND_CONNECTION);
		snprintf(name, sizeof name, "client 127.0.0.1:%d", 40000 + i * 7);
		weft_label(client[i], name);
		talk(client[i]);
		if (closes)
			weft_resolve(WEFT_SYSTEM_ID, client[i]);
		for (int k = 0; k <= i && !strcmp(fault, "chat") && i % 8 == 7; k++)
			talk(client[k]);
	}
}

static void *work(void *request)
{
	weft_run(*(weft_id *)request);
	struct timespec now, end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += 60000000;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000LL + now.tv_nsec - end.tv_nsec < 0);
	weft_resolve(*(weft_id *)request, *(weft_id *)request);
	return NULL;
}

static void use_pool(void)
{
	pthread_t thread;
	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST), job = WEFT_CREATE(WEFT_KIND_WORK);
	WEFT_LABEL(request, "GET /hash");
	weft_should_resolve(request);
	weft_await(request, job);
	pthread_create(&thread, NULL, work, &job);
	weft_idle(WEFT_IDLE_WAIT);
	pthread_join(thread, NULL);
	weft_resume(WEFT_SYSTEM_ID);
	weft_read(request, job);
	weft_resolve(request, request);
}

/* Answers, on another OS thread, the requests whose ids arrive through the pipe. */
static void *answer_all(void *pipe)
{
	weft_id request;
	while (read(*(int *)pipe, &request, sizeof request) == sizeof request) {
		WEFT_NOTE(request, "answered by another OS thread than the one that heard it");
		weft_resolve(request, request);
	}
	weft_run(WEFT_SYSTEM_ID);
	return NULL;
}

static void hand_over(void)
{
	enum { MANY = 1000 };
	int ends[2];
	pthread_t thread;
	if (pipe(ends) || pthread_create(&thread, NULL, answer_all, &ends[0]))
		return;
	for (int i = 0; i < MANY; i++) {
		weft_id request = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(request, "GET /");
		if (write(ends[1], &request, sizeof request) < 0)
			return;
		sleep_us(20);
	}
	close(ends[1]);
	pthread_join(thread, NULL);
}

static void fetch_pages(void)
{
	enum { PAGES = 40, LOST = 7 };
	for (int i = 0; i < PAGES; i++) {
		weft_id page = WEFT_CREATE(WEFT_KIND_REQUEST);
		WEFT_LABEL(page, "fetch a page");
		sleep_us(300);
		if (i != LOST)
			weft_resolve(WEFT_SYSTEM_ID, page);
	}
	sleep_us(50000);
}

static void take_slowly(void)
{
	enum { COME = 160, TAKEN_EVERY = 16 };
	static struct weft_record_text waiting = WEFT_COUNTER("waiting");
	for (int i = 0; i < COME; i++) {
		weft_counter_add(WEFT_SYSTEM_ID, &waiting, 1);
		if (i % TAKEN_EVERY == TAKEN_EVERY - 1)
			weft_counter_add(WEFT_SYSTEM_ID, &waiting, -1);
		sleep_us(300);
	}
}

static void starve(void)
{
	enum { OTHERS = 30 };
	struct timespec begin, now;
	weft_id patient = WEFT_CREATE(WEFT_KIND_REQUEST), answer = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(patient, "the patient one");
	weft_await(patient, answer);
	sleep_us(300);
	weft_resolve(WEFT_SYSTEM_ID, answer);
	for (int i = 0; i < OTHERS; i++) {
		weft_id other = WEFT_CREATE(WEFT_KIND_REQUEST), input = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(other, "one that pushes in");
		weft_await(other, input);
		weft_resolve(WEFT_SYSTEM_ID, input);
		weft_read(other, input);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		do
			clock_gettime(CLOCK_MONOTONIC, &now);
		while ((now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec < 1000000);
		weft_resolve(other, other);
	}
	weft_read(patient, answer);
	weft_resolve(patient, patient);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	serve(fault);
	if (!strcmp(fault, "stuck"))
		fetch_pages();
	if (!strcmp(fault, "starved"))
		starve();
	if (!strcmp(fault, "slowly"))
		take_slowly();
	if (!strcmp(fault, "hand-over"))
		hand_over();
	if (!strcmp(fault, "pool"))
		use_pool();
	if (!strcmp(fault, "exit")) {
		weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST), timer = WEFT_CREATE(WEFT_KIND_TIMER);
		weft_should_resolve(request);
		WEFT_LABEL(timer, "sleep 5 ms");
		weft_await(request, timer);
		sleep_us(1000);
	}
	return 0;
}
