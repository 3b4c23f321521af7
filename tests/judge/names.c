/* names FAULT SEED: a DNS forwarder over UDP on plain epoll.  It records its queries, look-ups, timers, locks and OS threads as
 * docs/instrument-api.md describes.  A child process plays the clients and the server behind it; it is not recorded.  FAULT is
 * one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

#include "told.h"

struct query {
	int number;
	struct told told;
	struct query *next;
};

struct entry {
	struct told told, upstream, timer;
	struct query *queries;
	struct entry *alias;
	bool is_known, is_pending;
	int tries;
	uint64_t deadline;
};

enum { NAMES = 24 };

static const char *fault;
static struct entry entries[NAMES];
static struct lock cache_lock, log_lock;
static pthread_cond_t log_grew = PTHREAD_COND_INITIALIZER, log_flushed = PTHREAD_COND_INITIALIZER;
static struct told log_grew_told, log_flushed_told, main_told, logger_told;
static struct weft_record_text log_length = WEFT_COUNTER("log lines in the queue");
static int log_lines, server, upstream;
static bool log_ends, log_is_flushed;
static struct sockaddr_in server_at, clients_at, upstream_at;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void send_text(int from, const struct sockaddr_in *to, char what, int number, int name)
{
	char text[64];
	int size = snprintf(text, sizeof text, "%c %d %d", what, number, name);
	if (sendto(from, text, size, 0, (const struct sockaddr *)to, sizeof *to) < 0)
		_exit(3);
}

/* ---- The child: clients, and the server that knows the names ---- */

static void play_the_world(int clients, int names)
{
	struct {
		uint64_t due;
		int slot;
	} answers[64] = {{0}};
	int asked = 0, most = is("backlog") ? 400 : 60 + (int)(lrand48() % 90), answered = 0;
	uint64_t limit = now_us() + (is("slow") ? 1500000 : 900000), next = now_us();
	while (answered < most && now_us() < limit) {
		char text[64], what;
		int number, name;
		if (now_us() >= next && asked < most) {
			send_text(clients, &server_at, 'Q', asked++, (int)(lrand48() % NAMES));
			next = now_us() + (is("backlog") ? 300 : lrand48() % 4000);
		}
		ssize_t size;
		while ((size = recv(clients, text, sizeof text - 1, MSG_DONTWAIT)) > 0)
			answered++;
		while ((size = recv(names, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
			text[size] = 0;
			if (sscanf(text, "%c %d %d", &what, &number, &name) != 3 || (is("lost") && name == 7))
				continue;
			if (is("refused") && name == 7)
				send_text(names, &server_at, 'X', number, name);
			else
				answers[number].due = now_us() + (is("slow") && name == 7 ? 300000 : 500 + lrand48() % 4000),
				answers[number].slot = 1;
		}
		for (int i = 0; i < NAMES; i++)
			if (answers[i].slot && answers[i].due <= now_us()) {
				answers[i].slot = 0;
				send_text(names, &server_at, 'A', i, i);
			}
		usleep(200);
	}
	send_text(clients, &server_at, 'E', 0, 0);
	usleep(600000);
	kill(getppid(), SIGKILL); /* one that hangs */
	_exit(0);
}

/* ---- Lists of pending promises, as in docs/instrument-api.md ---- */

static void tell_entry(struct entry *e)
{
	if (!e->is_pending)
		return;
	tell(&e->told);
	if (e->upstream.id) {
		tell(&e->upstream);
		weft_still_awaits(e->told.id, e->upstream.id);
	}
	if (e->alias)
		weft_still_awaits(e->told.id, e->alias->told.id);
	if (e->deadline) {
		tell(&e->timer);
		weft_still_awaits(e->told.id, e->timer.id);
	}
	for (struct query *q = e->queries; q; q = q->next) {
		tell(&q->told);
		weft_should_resolve(q->told.id);
		weft_still_awaits(q->told.id, e->told.id);
	}
}

static uint64_t list_forwarder(void *nothing, uint64_t cursor, unsigned budget)
{
	struct told *always[] = {&main_told, &cache_lock.told, &log_lock.told, &log_grew_told, &log_flushed_told};
	enum { ALWAYS = sizeof always / sizeof *always };
	if (cursor == 0) {
		tell_held(&cache_lock);
		tell_held(&log_lock);
	}
	for (; cursor < ALWAYS + NAMES; cursor++) {
		if (!budget--)
			return cursor;
		if (cursor < ALWAYS)
			tell(always[cursor]);
		else
			tell_entry(&entries[cursor - ALWAYS]);
	}
	return 0;
}

static uint64_t list_logger(void *nothing, uint64_t cursor, unsigned budget)
{
	tell(&logger_told);
	tell_held(&log_lock);
	tell_held(&cache_lock);
	return 0;
}

/* ---- The log, on an OS thread of its own ---- */

static void *run_logger(void *nothing)
{
	weft_list_pending(list_logger, NULL);
	weft_run(logger_told.id);
	take(logger_told.id, &log_lock);
	while (!log_ends || log_lines > 0) {
		if (log_lines == 0) {
			log_is_flushed = true;
			weft_signal_only(logger_told.id, log_flushed_told.id);
			pthread_cond_signal(&log_flushed);
			wait_for(logger_told.id, &log_grew, log_grew_told.id, &log_lock);
			continue;
		}
		log_lines--;
		weft_counter_add(logger_told.id, &log_length, -1);
		if (is("deadlock")) {
			usleep(2000);
			take(logger_told.id, &cache_lock);
			give(logger_told.id, &cache_lock);
		}
		give(logger_told.id, &log_lock);
		usleep(is("backlog") ? 3000 : 50);
		take(logger_told.id, &log_lock);
	}
	log_is_flushed = true;
	weft_signal_only(logger_told.id, log_flushed_told.id);
	pthread_cond_signal(&log_flushed);
	give(logger_told.id, &log_lock);
	weft_resolve(logger_told.id, logger_told.id);
	return NULL;
}

static void log_line(weft_id by)
{
	take(by, &log_lock);
	log_lines++;
	log_is_flushed = false;
	weft_counter_add(by, &log_length, 1);
	weft_signal_only(by, log_grew_told.id);
	pthread_cond_signal(&log_grew);
	give(by, &log_lock);
}

static void flush_log(void)
{
	weft_run(main_told.id);
	take(main_told.id, &log_lock);
	log_ends = true;
	weft_signal_only(main_told.id, log_grew_told.id);
	pthread_cond_signal(&log_grew);
	if (is("wakeup")) {
		give(main_told.id, &log_lock);
		usleep(30000);
		take(main_told.id, &log_lock);
		wait_for(main_told.id, &log_flushed, log_flushed_told.id, &log_lock);
	}
	while (!log_is_flushed || log_lines > 0)
		wait_for(main_told.id, &log_flushed, log_flushed_told.id, &log_lock);
	give(main_told.id, &log_lock);
}

/* ---- The forwarder ---- */

static void end_query(struct query *q)
{
	send_text(server, &clients_at, 'R', q->number, 0);
	log_line(q->told.id);
	weft_resolve(q->told.id, q->told.id);
	if (is("twice") && q->number % 10 == 3)
		weft_resolve(q->told.id, q->told.id);
	free(q);
}

static void start_timer(struct entry *e)
{
	begin(&e->timer, WEFT_KIND_TIMER, "timeout of name %d", (int)(e - entries));
	weft_await(e->told.id, e->timer.id);
	e->deadline = now_us() + 500000;
}

static void ask_upstream(struct entry *e)
{
	begin(&e->upstream, WEFT_KIND_REQUEST, "ask for name %d", (int)(e - entries));
	weft_await(e->told.id, e->upstream.id);
	send_text(upstream, &upstream_at, 'U', (int)(e - entries), (int)(e - entries));
	if (!is("lost"))
		start_timer(e);
}

static void stop_timer(struct entry *e)
{
	e->deadline = 0;
	weft_awaits_no_more(e->told.id, e->timer.id);
	if (!is("timers"))
		weft_resolve(e->told.id, e->timer.id);
}

static void look_up(struct entry *e)
{
	begin(&e->told, WEFT_KIND_TASK, "look up name %d", (int)(e - entries));
	e->alias = NULL;
	e->is_pending = true;
	e->tries = 0;
	ask_upstream(e);
}

static void end_look_up(struct entry *e)
{
	e->is_pending = false;
	e->is_known = lrand48() % 4; /* some may not be kept */
	weft_resolve(e->told.id, e->told.id);
	struct query *q = e->queries;
	e->queries = NULL;
	for (struct query *next; q; q = next) {
		next = q->next;
		weft_read(q->told.id, e->told.id);
		end_query(q);
	}
}

static void prefetch(void)
{
	weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(id, "prefetch");
	if (is("swallowed"))
		weft_fail(id, id, "no such zone");
	else
		weft_resolve(id, id);
}

static void on_query(int number, int name)
{
	static int queries;
	struct entry *e = &entries[name];
	struct query *q = malloc(sizeof *q);
	q->number = number;
	begin(&q->told, WEFT_KIND_REQUEST, "query %d", number);
	const weft_id id = q->told.id;
	weft_should_resolve(id);
	weft_run(id);
	queries++;
	if (queries == 30 && is("crash"))
		abort();
	if (queries == 30 && is("sleep"))
		usleep(120000);
	if (queries % 20 == 5)
		prefetch();
	take(q->told.id, &cache_lock);
	if (is("deadlock"))
		usleep(500);
	if (queries == 30 && is("unreleased"))
		return;
	if (e->is_known) {
		e->is_known = lrand48() % 4;
		end_query(q);
	} else {
		if (!e->is_pending)
			look_up(e);
		weft_await(q->told.id, e->told.id);
		q->next = e->queries;
		e->queries = q;
	}
	give(id, &cache_lock);
}

static void on_answer(struct entry *e, char what)
{
	if (!e->is_pending || !e->upstream.id)
		return;
	if (what == 'X' && e->tries++ < 600) {
		weft_fail(WEFT_SYSTEM_ID, e->upstream.id, "refused");
		weft_read(e->told.id, e->upstream.id);
		stop_timer(e);
		ask_upstream(e);
		return;
	}
	weft_resolve(WEFT_SYSTEM_ID, e->upstream.id);
	weft_read(e->told.id, e->upstream.id);
	if (e->deadline)
		stop_timer(e);
	e->upstream.id = 0;
	if (is("circle") && (e - entries) / 2 == 3) { /* names 6 and 7 are aliases of each other */
		struct entry *other = &entries[(e - entries) ^ 1];
		if (!other->is_pending)
			look_up(other);
		e->alias = other;
		weft_await(e->told.id, other->told.id);
		return;
	}
	end_look_up(e);
}

static int time_left(void)
{
	int left = -1;
	for (struct entry *e = entries; e < entries + NAMES; e++) {
		if (!e->deadline)
			continue;
		int64_t us = (int64_t)(e->deadline - now_us());
		if (us <= 0) {
			weft_resolve(WEFT_SYSTEM_ID, e->timer.id);
			weft_read(e->told.id, e->timer.id);
			e->deadline = 0;
			e->upstream.id = 0;
			end_look_up(e);
		} else if (left < 0 || us / 1000 + 1 < left) {
			left = (int)(us / 1000 + 1);
		}
	}
	return left;
}

static void forward(void)
{
	int loop = epoll_create1(0);
	epoll_ctl(loop, EPOLL_CTL_ADD, server, &(struct epoll_event){.events = EPOLLIN, .data.fd = server});
	for (;;) {
		struct epoll_event event;
		int left = time_left();
		weft_idle(WEFT_IDLE_WAIT);
		if (epoll_wait(loop, &event, 1, left) < 1)
			continue;
		char text[64], what = 0;
		int number = 0, name = 0;
		ssize_t size = recv(server, text, sizeof text - 1, 0);
		text[size < 0 ? 0 : size] = 0;
		if (sscanf(text, "%c %d %d", &what, &number, &name) != 3 || what == 'E')
			return;
		if (what == 'Q')
			on_query(number, name);
		else
			on_answer(&entries[number], what);
	}
}

static int open_socket(struct sockaddr_in *at)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof *at;
	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(s, (struct sockaddr *)at, sizeof *at) || getsockname(s, (struct sockaddr *)at, &size))
		exit(3);
	return s;
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	server = open_socket(&server_at);
	upstream = server;
	int clients = open_socket(&clients_at), world = open_socket(&upstream_at);
	if (fork() == 0)
		play_the_world(clients, world);
	begin(&main_told, WEFT_KIND_THREAD, "forwarder", 0);
	weft_run(main_told.id);
	begin(&logger_told, WEFT_KIND_THREAD, "logger", 0);
	begin(&cache_lock.told, WEFT_KIND_LOCK, "cache", 0);
	begin(&log_lock.told, WEFT_KIND_LOCK, "log", 0);
	begin(&log_grew_told, WEFT_KIND_CONDITION, "log grew", 0);
	begin(&log_flushed_told, WEFT_KIND_CONDITION, "log is flushed", 0);
	weft_list_pending(list_forwarder, NULL);
	pthread_t logger;
	pthread_create(&logger, NULL, run_logger, NULL);
	forward();
	flush_log();
	pthread_join(logger, NULL);
	weft_resolve(main_told.id, main_told.id);
	return 0;
}
