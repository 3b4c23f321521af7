/* forms.c FORM: one fault in as few calls as possible, recorded by hand: for the forms of titles in
 * tests/cli/expected/findings.md that no other program of these tests shows.
 *
 *   drained  a queue grows, and is emptied too slowly      itself   a promise waits for itself, and another for that one
 *   creator  the promise that would have ended it failed   unrun    its input ended, and it did not run again
 *   unknown  its wait was not recorded                     few      two of forty sessions end
 *   freed    an id that was never issued                   name     the answer for a host name comes after 150 ms
 *   busy     the resolver of its type is itself blocked    silent   the eleventh response does not come
 *   open     one of twenty connections is left open        crowd    many inputs arrive during a run of 200 ms
 *   tokens   two hold a connection each, and want another  tokens-go  one of the two can return its connection
 *   asked    one of twenty responses comes 300 ms late    dropped  a coroutine ends without a step
 *   killed   the program is killed while it runs           loops    three workers' loops run until the end
 *
 * SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/record.h>

static void sleep_ms(unsigned ms)
{
	weft_idle(WEFT_IDLE_WAIT);
	if (ms > 0)
		usleep(ms * 1000);
	weft_resume(WEFT_SYSTEM_ID);
}

static weft_id named(weft_id id, const char *name)
{
	weft_label(id, name);
	return id;
}

static weft_id request(weft_id id, const char *name)
{
	weft_should_resolve(id);
	return named(id, name);
}

static void drain(void)
{
	enum { LINES = 200, TAKEN_EVERY = 8 };
	static struct weft_record_text lines = WEFT_COUNTER("lines to write");
	for (int i = 0; i < LINES; i++)
		weft_counter_add(WEFT_SYSTEM_ID, &lines, i % TAKEN_EVERY ? 1 : -(i > 0));
	for (int left = LINES - 2 * (LINES / TAKEN_EVERY) + 1; left > 0; left--) {
		sleep_ms(1);
		weft_counter_add(WEFT_SYSTEM_ID, &lines, -1);
	}
}

static void wait_for_itself(void)
{
	weft_id index = request(WEFT_CREATE(WEFT_KIND_REQUEST), "index"),
		search = request(WEFT_CREATE(WEFT_KIND_REQUEST), "search");
	weft_await(index, index);
	weft_await(search, index);
	sleep_ms(20);
}

static void lose_creator(void)
{
	weft_id order = request(WEFT_CREATE(WEFT_KIND_REQUEST), "order"), session = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(session, "session");
	weft_id answer = weft_create(session, WEFT_KIND_TASK, WEFT_SITE());
	WEFT_LABEL(answer, "answer of the shop");
	weft_await(order, answer);
	sleep_ms(5);
	WEFT_FAIL(WEFT_SYSTEM_ID, session, "connection reset by peer");
	weft_read_later(order, session);
	weft_await(order, answer);
	sleep_ms(20);
}

static void forget_to_run(void)
{
	weft_id page = request(WEFT_CREATE(WEFT_KIND_REQUEST), "page"), file = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(file, "file");
	weft_await(page, file);
	sleep_ms(5);
	weft_resolve(WEFT_SYSTEM_ID, file);
	sleep_ms(20);
}

static void wait_for_what_is_not_told(void)
{
	weft_id parcel = WEFT_CREATE(WEFT_KIND_BIND);
	WEFT_LABEL(parcel, "parcel");
	weft_should_resolve(parcel);
	sleep_ms(20);
}

static void leak_sessions(void)
{
	enum { SESSIONS = 40, ONE_THAT_ENDS = 20 };
	for (int i = 0; i < SESSIONS; i++) {
		weft_id session = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(session, "session");
		sleep_ms(1);
		if (i % ONE_THAT_ENDS == 0)
			weft_resolve(WEFT_SYSTEM_ID, session);
	}
}

static void use_what_was_freed(void)
{
	weft_id page = WEFT_CREATE(WEFT_KIND_TASK), freed = page + 500;
	WEFT_LABEL(page, "page");
	weft_await(page, freed);
	sleep_ms(1);
	weft_resolve(WEFT_SYSTEM_ID, page);
}

static void look_up(void)
{
	weft_id name = WEFT_CREATE(WEFT_KIND_GETADDRINFO);
	WEFT_LABEL(name, "shop.example");
	sleep_ms(150);
	weft_resolve(WEFT_SYSTEM_ID, name);
}

static void wait_behind(void)
{
	weft_id writer = WEFT_CREATE(WEFT_KIND_TASK), disk = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(writer, "writer");
	WEFT_LABEL(disk, "room on the disk");
	for (int i = 0; i < 4; i++) {
		weft_id save = request(WEFT_CREATE(WEFT_KIND_REQUEST), "save"), saved = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(saved, "saved");
		weft_await(save, saved);
		sleep_ms(2);
		if (i == 3)
			break;
		weft_resolve(writer, saved);
		weft_read(save, saved);
		weft_resolve(save, save);
		weft_run(WEFT_SYSTEM_ID);
	}
	weft_await(writer, disk);
	sleep_ms(20);
}

static void wait_for_an_answer(void)
{
	enum { QUESTIONS = 11 };
	for (int i = 0; i < QUESTIONS; i++) {
		weft_id page = request(WEFT_CREATE(WEFT_KIND_REQUEST), "GET /"), answer = WEFT_CREATE(WEFT_KIND_STREAM_READ);
		WEFT_LABEL(answer, "answer");
		weft_await(page, answer);
		sleep_ms(i == QUESTIONS - 1 ? 300 : 2);
		if (i == QUESTIONS - 1)
			break;
		weft_resolve(WEFT_SYSTEM_ID, answer);
		weft_read(page, answer);
		weft_resolve(page, page);
		weft_run(WEFT_SYSTEM_ID);
	}
}

static void leave_open(void)
{
	enum { CONNECTIONS = 20, LEFT = 12 };
	weft_id server = named(WEFT_CREATE(WEFT_KIND_LISTEN), "listen 127.0.0.1:80");
	for (int i = 0; i < CONNECTIONS; i++) {
		weft_id connection = weft_create(server, WEFT_KIND_CONNECTION, WEFT_SITE());
		weft_id question = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
		weft_id answer = weft_create(connection, WEFT_KIND_STREAM_WRITE, WEFT_SITE());
		weft_await(connection, question);
		sleep_ms(1);
		weft_resolve(WEFT_SYSTEM_ID, question);
		weft_read(connection, question);
		weft_await(connection, answer);
		weft_run(WEFT_SYSTEM_ID);
		sleep_ms(1);
		weft_resolve(WEFT_SYSTEM_ID, answer);
		weft_read(connection, answer);
		weft_run(WEFT_SYSTEM_ID);
		if (i != LEFT)
			weft_resolve(WEFT_SYSTEM_ID, connection);
	}
	sleep_ms(1200);
}

/* Records iterations of a loop: in each, the loop sleeps and then runs the promise `what`. */
static void turn(weft_id what, int times, unsigned ms)
{
	for (int i = 0; i < times; i++) {
		sleep_ms(ms);
		weft_run(what);
		weft_run(WEFT_SYSTEM_ID);
	}
}

static void let_a_crowd_wait(void)
{
	enum { BEFORE = 40, AFTER = 40, LENGTH_NS = 200000000, SECOND_NS = 1000000000 };
	struct timespec begin, now;
	weft_id report = named(WEFT_CREATE(WEFT_KIND_TASK), "report"), input = named(WEFT_CREATE(WEFT_KIND_TASK), "input");
	turn(input, BEFORE, 1);
	weft_run(report);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * SECOND_NS + now.tv_nsec - begin.tv_nsec < LENGTH_NS);
	weft_run(WEFT_SYSTEM_ID);
	turn(input, AFTER, 0);
	turn(input, 1, 20);
	weft_resolve(WEFT_SYSTEM_ID, report);
	weft_resolve(WEFT_SYSTEM_ID, input);
}

static void leave_loops(void)
{
	enum { WORKERS = 3 };
	for (int i = 0; i < WORKERS; i++) {
		weft_id worker = named(WEFT_CREATE(WEFT_KIND_THREAD), "worker"), loop = WEFT_CREATE(WEFT_KIND_LOOP);
		weft_id timer = named(weft_create(worker, WEFT_KIND_TIMER, WEFT_SITE()), "every 1 s");
		weft_await(worker, named(loop, "loop of a worker"));
		weft_await(loop, timer);
	}
	sleep_ms(20);
}

static void take_second(weft_id pool, bool goes_on)
{
	for (int i = 0; i < 2; i++) {
		weft_id order = request(WEFT_CREATE(WEFT_KIND_REQUEST), "order"), read = WEFT_CREATE(WEFT_KIND_STREAM_READ);
		weft_hold(order, pool);
		weft_await(order, goes_on && i == 1 ? read : pool);
		sleep_ms(1);
	}
	sleep_ms(20);
}

static void share_tokens(void)
{
	take_second(named(WEFT_CREATE(WEFT_KIND_POOL), "connections"), false);
}

static void share_tokens_and_go_on(void)
{
	take_second(named(WEFT_CREATE(WEFT_KIND_POOL), "connections"), true);
}

static void be_killed(void)
{
	weft_id report = named(WEFT_CREATE(WEFT_KIND_TASK), "report");
	sleep_ms(5);
	weft_run(report);
	named(weft_create(report, WEFT_KIND_TASK, WEFT_SITE()), "page");
	kill(getpid(), SIGKILL);
}

/* Records a connection without promises for its reads and writes, like an adapter. */
static void ask_often(void)
{
	enum { QUESTIONS = 20, LATE = 12 };
	weft_id store = named(WEFT_CREATE(WEFT_KIND_CONNECTION), "to 127.0.0.1:6379");
	struct weft_positions at = {0};
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return;
	weft_connection(store, ends[0], true, &at);
	for (int i = 0; i < QUESTIONS; i++) {
		weft_id page = request(WEFT_CREATE(WEFT_KIND_REQUEST), "GET /cart");
		weft_sent(store, at.sent += 20);
		sleep_ms(i == LATE ? 300 : 2);
		weft_received(store, at.received += 100);
		weft_resolve(page, page);
		weft_run(WEFT_SYSTEM_ID);
	}
	weft_resolve(WEFT_SYSTEM_ID, store);
}

static void drop_coroutine(void)
{
	weft_id page = named(WEFT_CREATE(WEFT_KIND_TASK), "page");
	weft_run(page);
	WEFT_FAIL(WEFT_SYSTEM_ID, named(weft_create(page, WEFT_KIND_COROUTINE, WEFT_SITE()), "save"), WEFT_UNRETURNED);
	weft_resolve(page, page);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*show)(void);
	} forms[] = {{"drained", drain}, {"itself", wait_for_itself}, {"creator", lose_creator}, {"unrun", forget_to_run},
	    {"unknown", wait_for_what_is_not_told}, {"few", leak_sessions}, {"freed", use_what_was_freed}, {"name", look_up},
	    {"busy", wait_behind}, {"silent", wait_for_an_answer}, {"open", leave_open}, {"crowd", let_a_crowd_wait},
	    {"killed", be_killed}, {"loops", leave_loops}, {"asked", ask_often}, {"tokens", share_tokens},
	    {"dropped", drop_coroutine}, {"tokens-go", share_tokens_and_go_on}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (argc > 1 && !strcmp(argv[1], forms[i].name)) {
			forms[i].show();
			return 0;
		}
	fprintf(stderr, "forms: no such form\n");
	return 2;
}
