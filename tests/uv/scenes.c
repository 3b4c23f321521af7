/* scenes.c: small programs of libuv, each with one characteristic that its trace must show.
 *
 * 	scenes NAME	the names are in main()
 *
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

static uv_loop_t *loop;

static void nothing(uv_timer_t *timer)
{
}

/* ---- busy: the program closes a loop before its timer is closed; closed: the same, and once more after the timer is closed ----
 */

static int busy(int twice)
{
	uv_loop_t other;
	uv_timer_t timer;
	uv_loop_init(&other);
	uv_timer_init(&other, &timer);
	uv_timer_start(&timer, nothing, 1, 0);
	uv_run(&other, UV_RUN_DEFAULT);
	int status = uv_loop_close(&other);
	if (twice) {
		uv_close((uv_handle_t *)&timer, NULL);
		uv_run(&other, UV_RUN_DEFAULT);
		status = uv_loop_close(&other);
	}
	return twice ? status != 0 : status != UV_EBUSY;
}

/* ---- polled: the program closes a loop before its fs_poll handle is closed, for which libuv has an internal timer ---- */

static void changed(uv_fs_poll_t *poll, int status, const uv_stat_t *before, const uv_stat_t *now)
{
}

static int polled(void)
{
	uv_loop_t other;
	uv_fs_poll_t poll;
	uv_loop_init(&other);
	uv_fs_poll_init(&other, &poll);
	uv_fs_poll_start(&poll, changed, "/", 100000);
	uv_run(&other, UV_RUN_ONCE);
	return uv_loop_close(&other) != UV_EBUSY;
}

/* ---- again: two loops, one after the other, in the same memory, each run by single iterations; the first is never closed ----
 */

static int again(void)
{
	static uv_loop_t place;
	static uv_timer_t timers[2];
	int status = 0;
	for (int i = 0; i < 2; i++) {
		uv_loop_init(&place);
		uv_timer_init(&place, &timers[i]);
		uv_timer_start(&timers[i], nothing, 300, 0);
		while (uv_run(&place, UV_RUN_ONCE))
			;
		if (i == 1) {
			uv_close((uv_handle_t *)&timers[i], NULL);
			uv_run(&place, UV_RUN_ONCE);
		}
		status |= uv_loop_close(&place) != (i ? 0 : UV_EBUSY);
	}
	return status;
}

/* ---- twice: a timer is initialised twice in the same loop, so that it points to itself in libuv's list of handles ---- */

static int twice(void)
{
	static uv_timer_t timer;
	uv_timer_init(loop, &timer);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, nothing, 300, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- moved: a timer of one loop is initialised again in another loop, so that the list of the first leads into that of the
 * other ---- */

static int moved(void)
{
	static uv_loop_t other;
	static uv_timer_t stays, moves;
	uv_loop_init(&other);
	uv_timer_init(loop, &stays);
	uv_timer_start(&stays, nothing, 300, 0);
	uv_timer_init(loop, &moves);
	uv_timer_init(&other, &moves);
	uv_timer_start(&moves, nothing, 400, 0);
	return uv_run(loop, UV_RUN_DEFAULT) || uv_run(&other, UV_RUN_DEFAULT);
}

/* ---- alive: a timer and an async keep the loop running for ever; another timer is unreferenced ---- */

static void woken(uv_async_t *async)
{
}

static void never_ends(void)
{
	static uv_timer_t beat, innocent;
	static uv_async_t async;
	uv_timer_init(loop, &beat);
	uv_timer_start(&beat, nothing, 100000, 100000);
	uv_timer_init(loop, &innocent);
	uv_timer_start(&innocent, nothing, 50000, 50000);
	uv_unref((uv_handle_t *)&innocent);
	uv_async_init(loop, &async, woken);
	puts("sleeps");
	fflush(stdout);
}

static int alive(void)
{
	never_ends();
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- turns: as alive, by single iterations; left: after the first iteration, the program waits in pause() ----
 */

static int turn_by_turn(bool is_left)
{
	static uv_timer_t once;
	never_ends();
	uv_timer_init(loop, &once);
	uv_timer_start(&once, nothing, 300, 0);
	while (uv_run(loop, UV_RUN_ONCE) && !is_left)
		;
	return pause();
}

/* ---- nested: a callback runs another loop to its end, which blocks its own loop; then it runs an iteration of its own loop ----
 */

static void ends_other(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

static void runs_other(uv_timer_t *timer)
{
	static uv_loop_t other;
	static uv_timer_t later, own;
	uv_loop_init(&other);
	uv_timer_init(&other, &later);
	uv_timer_start(&later, ends_other, 150, 0);
	uv_run(&other, UV_RUN_DEFAULT);
	uv_timer_init(loop, &own);
	uv_timer_start(&own, nothing, 100, 0);
	uv_run(loop, UV_RUN_ONCE);
}

static int nested(void)
{
	static uv_timer_t runs, late;
	uv_timer_init(loop, &runs);
	uv_timer_start(&runs, runs_other, 1, 0);
	uv_timer_init(loop, &late);
	uv_timer_start(&late, nothing, 50, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- pool: three jobs for the only thread of the pool, while a timer fires repeatedly ---- */

static uv_timer_t ticks;
static int left = 3;

static void sleeps(uv_work_t *req)
{
	usleep(100000);
}

static void slept(uv_work_t *req, int status)
{
	if (--left == 0)
		uv_close((uv_handle_t *)&ticks, NULL);
}

static int pool(void)
{
	static uv_work_t jobs[3];
	uv_timer_init(loop, &ticks);
	uv_timer_start(&ticks, nothing, 5, 5);
	for (int i = 0; i < 3; i++)
		uv_queue_work(loop, &jobs[i], sleeps, slept);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- datagram: a received datagram starts work in the pool, and its handling ends when the answer is sent ---- */

static uv_udp_t server, client;
static struct sockaddr_in server_address, client_address;
static uv_work_t lookup;
static uv_udp_send_t answer;
static char memory[64];

static void alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	*buf = uv_buf_init(memory, sizeof memory);
}

static void answered(uv_udp_send_t *req, int status)
{
	uv_close((uv_handle_t *)&server, NULL);
}

static void looks_up(uv_work_t *req)
{
	usleep(10000);
}

static void looked_up(uv_work_t *req, int status)
{
	uv_buf_t buf = uv_buf_init(memory, 5);
	uv_udp_send(&answer, &server, &buf, 1, (struct sockaddr *)&client_address, answered);
}

static void asked(uv_udp_t *handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	if (!from)
		return;
	memcpy(&client_address, from, sizeof client_address);
	uv_queue_work(loop, &lookup, looks_up, looked_up);
}

static int datagram(void)
{
	int size = sizeof server_address;
	uv_buf_t buf = uv_buf_init((char *)"name", 4);
	uv_ip4_addr("127.0.0.1", 0, &server_address);
	uv_udp_init(loop, &server);
	uv_udp_bind(&server, (struct sockaddr *)&server_address, 0);
	uv_udp_getsockname(&server, (struct sockaddr *)&server_address, &size);
	uv_udp_recv_start(&server, alloc, asked);
	uv_udp_init(loop, &client);
	uv_udp_try_send(&client, &buf, 1, (struct sockaddr *)&server_address);
	uv_close((uv_handle_t *)&client, NULL);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- blocked: a callback waits for a child process, and writes a file synchronously ---- */

static void blocks(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
	usleep(50000);
}

static int blocked(void)
{
	static uv_timer_t timer;
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, blocks, 1, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- rearmed: a timer that is stopped and started many times, which is one promise ---- */

static int rearmed(void)
{
	static uv_timer_t timer;
	uv_timer_init(loop, &timer);
	for (int i = 0; i < 1000; i++) {
		uv_timer_start(&timer, nothing, 10000, 0);
		uv_timer_stop(&timer);
	}
	uv_close((uv_handle_t *)&timer, NULL);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- reused: one handle is started as one timer after another; some starts are in its callback ---- */

static uv_timer_t reusable;

static void third(uv_timer_t *timer)
{
	uv_timer_stop(timer);
	uv_timer_start(timer, nothing, 40, 0);
}

static void second(uv_timer_t *timer)
{
	uv_timer_start(timer, third, 10, 10);
}

static int reused(void)
{
	uv_timer_init(loop, &reusable);
	uv_timer_start(&reusable, nothing, 300000, 0);
	uv_timer_start(&reusable, second, 1, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- spin: an idle, a prepare and a check handle run in 100,000 iterations without a sleep ---- */

static int turns;

static void turn(uv_idle_t *idle)
{
	if (++turns == 100000)
		uv_stop(loop);
}

static void turn_prepare(uv_prepare_t *prepare)
{
}

static void turn_check(uv_check_t *check)
{
}

static int spin(void)
{
	static uv_idle_t idle;
	static uv_prepare_t prepare;
	static uv_check_t check;
	uv_idle_init(loop, &idle);
	uv_idle_start(&idle, turn);
	uv_prepare_init(loop, &prepare);
	uv_prepare_start(&prepare, turn_prepare);
	uv_check_init(loop, &check);
	uv_check_start(&check, turn_check);
	uv_run(loop, UV_RUN_DEFAULT);
	return turns != 100000;
}

/* ---- floods: after a timer of 5 ms, a loop never sleeps, because of a timer of 0 ms, of input that is never read, of an async
 * that sends to itself, or of two ends of a connection that answer each other at once ---- */

enum { FLOOD = 150000 };

static int called;
static uv_timer_t at_once;
static uv_async_t to_itself;
static uv_poll_t watched[2];

static bool is_over(void)
{
	if (++called == FLOOD)
		uv_stop(loop);
	return called >= FLOOD;
}

static void flood_timer(uv_timer_t *timer)
{
	if (!is_over())
		uv_timer_start(timer, flood_timer, 0, 0);
}

static void is_freed(uv_handle_t *timer)
{
	free(timer);
}

static void flood_timers(uv_timer_t *timer)
{
	uv_timer_t *another = timer && is_over() ? NULL : malloc(sizeof *another);
	if (timer)
		uv_close((uv_handle_t *)timer, is_freed);
	if (another) {
		uv_timer_init(loop, another);
		uv_timer_start(another, flood_timers, 0, 0);
	}
}

static void flood_async(uv_async_t *async)
{
	if (!is_over())
		uv_async_send(async);
}

static void leaves(uv_poll_t *poll, int status, int events)
{
	is_over();
}

static void echoes(uv_poll_t *poll, int status, int events)
{
	char letter;
	uv_os_fd_t fd;
	if (is_over())
		return;
	if (uv_fileno((uv_handle_t *)poll, &fd) || read(fd, &letter, 1) != 1 || write(fd, &letter, 1) != 1)
		abort();
}

/* Writes a byte and reads a byte, so that the sockets are in the same state at each call. */
static void passes_on(uv_poll_t *poll, int status, int events)
{
	char letter;
	uv_os_fd_t from, to;
	if (is_over())
		return;
	if (uv_fileno((uv_handle_t *)&watched[0], &from) || uv_fileno((uv_handle_t *)&watched[1], &to) ||
	    write(to, "x", 1) != 1 || read(from, &letter, 1) != 1)
		abort();
}

static int flood(const char *name)
{
	static uv_timer_t before;
	int fds[2];
	if (socketpair(AF_UNIX, strcmp(name, "flood_datagrams") ? SOCK_STREAM : SOCK_DGRAM, 0, fds) || write(fds[1], "x", 1) != 1)
		return 1;
	uv_timer_init(loop, &before);
	uv_timer_start(&before, nothing, 5, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_timer_init(loop, &at_once);
	uv_async_init(loop, &to_itself, flood_async);
	if (!strcmp(name, "flood_timer"))
		uv_timer_start(&at_once, flood_timer, 0, 0);
	else if (!strcmp(name, "flood_timers"))
		flood_timers(NULL);
	else if (!strcmp(name, "flood_async"))
		uv_async_send(&to_itself);
	for (int i = 0; i < 2; i++)
		uv_poll_init(loop, &watched[i], fds[i]);
	if (!strcmp(name, "flood_poll"))
		uv_poll_start(&watched[0], UV_READABLE, leaves);
	if (!strcmp(name, "flood_datagrams"))
		uv_poll_start(&watched[0], UV_READABLE, passes_on);
	if (!strcmp(name, "flood_writes"))
		uv_poll_start(&watched[1], UV_WRITABLE, passes_on);
	for (int i = 0; i < 2 && !strcmp(name, "flood_load"); i++)
		uv_poll_start(&watched[i], UV_READABLE, echoes);
	uv_run(loop, UV_RUN_DEFAULT);
	return called != FLOOD;
}

/* ---- serve, ask: process `ask` sends a request to process `serve` over TCP, which responds after a timer ---- */

static uv_tcp_t listener, near_end, far_end;
static uv_timer_t thinks;
static uv_write_t question, reply;
static char some[100];

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	*buf = uv_buf_init(some, sizeof some);
}

static void close_all(uv_handle_t *handle, void *data)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void is_answered(uv_write_t *req, int status)
{
	uv_walk(loop, close_all, NULL);
}

static void answers(uv_timer_t *timer)
{
	uv_buf_t buf = uv_buf_init("an answer", 9);
	uv_write(&reply, (uv_stream_t *)&near_end, &buf, 1, is_answered);
}

static void is_asked(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	uv_read_stop(stream);
	uv_timer_init(loop, &thinks);
	uv_timer_start(&thinks, answers, 30, 0);
}

static void comes(uv_stream_t *stream, int status)
{
	uv_tcp_init(loop, &near_end);
	uv_accept(stream, (uv_stream_t *)&near_end);
	uv_read_start((uv_stream_t *)&near_end, give_room, is_asked);
}

static void child_ended(uv_process_t *process, int64_t status, int number)
{
	uv_walk(loop, close_all, NULL);
}

static int serve(const char *program)
{
	static uv_process_t process;
	struct sockaddr_in address;
	int size = sizeof address;
	char port[16], path[4096];
	char *args[] = {path, "ask", NULL};
	uv_process_options_t options = {.file = path, .args = args, .exit_cb = child_ended};
	snprintf(path, sizeof path, "%s", program);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(loop, &listener);
	uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&listener, 1, comes);
	uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &size);
	snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
	uv_os_setenv("SCENES_PORT", port);
	return uv_spawn(loop, &process, &options) || uv_run(loop, UV_RUN_DEFAULT);
}

static void hears(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	uv_close((uv_handle_t *)stream, NULL);
}

static void asks(uv_connect_t *req, int status)
{
	uv_read_start(req->handle, give_room, hears);
}

/* Writes the question before the connection is made, so libuv keeps it until then. */
static int ask(void)
{
	static uv_connect_t request;
	struct sockaddr_in address;
	char port[16];
	size_t size = sizeof port;
	uv_buf_t buf = uv_buf_init("a question", 10);
	if (uv_os_getenv("SCENES_PORT", port, &size))
		return 2;
	uv_ip4_addr("127.0.0.1", atoi(port), &address);
	uv_tcp_init(loop, &far_end);
	uv_tcp_connect(&request, &far_end, (const struct sockaddr *)&address, asks);
	uv_write(&question, (uv_stream_t *)&far_end, &buf, 1, NULL);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- answer, question: an idle handle sends a datagram, as dig of BIND 9.20 does, and waits until the answer has arrived, so
 * that one poll of the loop finds both the answer and the end of the write ---- */

static uv_udp_t socket_end;
static uv_udp_send_t sending;

static void has_sent(uv_udp_send_t *req, int status)
{
	uv_walk(loop, close_all, NULL);
}

static void replies(uv_udp_t *handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	uv_buf_t text = uv_buf_init("an answer", 9);
	if (from)
		uv_udp_send(&sending, handle, &text, 1, from, has_sent);
}

static int answer_one(const char *program)
{
	static uv_process_t process;
	struct sockaddr_in address;
	int size = sizeof address;
	char port[16], path[4096];
	char *args[] = {path, "question", NULL};
	uv_process_options_t options = {.file = path, .args = args};
	snprintf(path, sizeof path, "%s", program);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_udp_init(loop, &socket_end);
	uv_udp_bind(&socket_end, (const struct sockaddr *)&address, 0);
	uv_udp_recv_start(&socket_end, give_room, replies);
	uv_udp_getsockname(&socket_end, (struct sockaddr *)&address, &size);
	snprintf(port, sizeof port, "%d", ntohs(address.sin_port));
	uv_os_setenv("SCENES_PORT", port);
	return uv_spawn(loop, &process, &options) || uv_run(loop, UV_RUN_DEFAULT);
}

static void gets_answer(uv_udp_t *handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	if (from)
		uv_udp_recv_stop(handle);
}

static void asks_by_udp(uv_idle_t *idle)
{
	uv_os_fd_t fd;
	struct sockaddr_in address;
	char port[16] = "";
	size_t size = sizeof port;
	uv_buf_t text = uv_buf_init("a question", 10);
	uv_idle_stop(idle);
	uv_os_getenv("SCENES_PORT", port, &size);
	uv_ip4_addr("127.0.0.1", atoi(port), &address);
	uv_udp_init(loop, &socket_end);
	uv_udp_connect(&socket_end, (const struct sockaddr *)&address);
	uv_udp_recv_start(&socket_end, give_room, gets_answer);
	uv_udp_send(&sending, &socket_end, &text, 1, NULL, has_sent);
	if (!uv_fileno((uv_handle_t *)&socket_end, &fd))
		poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
}

/* The timer is closed when the write has ended. */
static int question_one(void)
{
	static uv_timer_t ends_later;
	static uv_idle_t idle;
	uv_timer_init(loop, &ends_later);
	uv_timer_start(&ends_later, nothing, 1000000, 0);
	uv_idle_init(loop, &idle);
	uv_idle_start(&idle, asks_by_udp);
	return uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- astray: a callback writes to its connection with writev(), in 300 pieces, and from addresses without memory ---- */

static bool is_fault(ssize_t written)
{
	return written == -1 && errno == EFAULT;
}

static void writes_itself(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
	enum { PIECES = 300 };
	static struct iovec pieces[PIECES];
	struct iovec *nowhere = (struct iovec *)mmap(NULL, sizeof pieces, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct msghdr to_nowhere = {.msg_iov = nowhere, .msg_iovlen = 1};
	uv_os_fd_t fd;
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){"xy", 2};
	uv_fileno((const uv_handle_t *)stream, &fd);
	if (!is_fault(writev(fd, nowhere, PIECES)) || !is_fault(sendmsg(fd, (const struct msghdr *)(const void *)nowhere, 0)) ||
	    !is_fault(sendmsg(fd, &to_nowhere, 0)) || writev(fd, pieces, PIECES) != 2 * PIECES)
		abort();
	uv_close((uv_handle_t *)stream, NULL);
}

static int astray(void)
{
	int pair[2];
	uv_buf_t buf = uv_buf_init("a question", 10);
	uv_pipe_t ends[2];
	if (uv_socketpair(SOCK_STREAM, 0, pair, UV_NONBLOCK_PIPE, UV_NONBLOCK_PIPE))
		return 2;
	for (int i = 0; i < 2; i++) {
		uv_pipe_init(loop, &ends[i], 0);
		uv_pipe_open(&ends[i], pair[i]);
	}
	uv_read_start((uv_stream_t *)&ends[0], give_room, writes_itself);
	uv_read_start((uv_stream_t *)&ends[1], give_room, hears);
	uv_write(&question, (uv_stream_t *)&ends[1], &buf, 1, NULL);
	return uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";
	loop = uv_default_loop();
	return !strcmp(name, "busy")        ? busy(0)
	       : !strcmp(name, "closed")    ? busy(1)
	       : !strcmp(name, "polled")    ? polled()
	       : !strcmp(name, "again")     ? again()
	       : !strcmp(name, "twice")     ? twice()
	       : !strcmp(name, "moved")     ? moved()
	       : !strcmp(name, "alive")     ? alive()
	       : !strcmp(name, "turns")     ? turn_by_turn(false)
	       : !strcmp(name, "left")      ? turn_by_turn(true)
	       : !strcmp(name, "nested")    ? nested()
	       : !strcmp(name, "pool")      ? pool()
	       : !strcmp(name, "datagram")  ? datagram()
	       : !strcmp(name, "blocked")   ? blocked()
	       : !strcmp(name, "rearmed")   ? rearmed()
	       : !strcmp(name, "reused")    ? reused()
	       : !strcmp(name, "spin")      ? spin()
	       : !strncmp(name, "flood", 5) ? flood(name)
	       : !strcmp(name, "serve")     ? serve(argv[0])
	       : !strcmp(name, "ask")       ? ask()
	       : !strcmp(name, "answer")    ? answer_one(argv[0])
	       : !strcmp(name, "question")  ? question_one()
	       : !strcmp(name, "astray")    ? astray()
					    : 2;
}
