/* chat FAULT SEED: a chat with rooms in plain libuv: people join a room, say things, which all others there hear, look something
 * up in the room's history (on the thread pool), and leave; what is said is kept in a file.  It knows nothing of weft; FAULT is
 * one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum { ROOMS = 3, PEOPLE = 45, AT_ONCE = 9 };

struct member { /* of a room, at the server */
	uv_tcp_t tcp;
	int room;
	struct member *next;
};

struct person { /* at the other end */
	uv_tcp_t tcp;
	uv_timer_t pause, keep_alive;
	uv_connect_t connect;
	int number, room, left, open, tries;
};

struct message {
	uv_write_t write;
	char text[32];
};

static const char *fault;
static uv_loop_t *loop;
static uv_tcp_t server;
static struct sockaddr_in address, nobody;
static struct member *rooms[ROOMS];
static int people_begun, people_ended, journal, said;
static char journal_path[64];

static void begin_person(void);

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void compute_for(int ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	while (uv_hrtime() < end)
		;
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	*buffer = uv_buf_init(malloc(size), size);
}

static void on_written(uv_write_t *write, int status)
{
	free(write);
}

static void say(uv_stream_t *to, const char *what, int number)
{
	struct message *m = malloc(sizeof *m);
	int size = snprintf(m->text, sizeof m->text, "%s %d\n", what, number);
	uv_buf_t buffer = uv_buf_init(m->text, size);
	if (uv_write(&m->write, to, &buffer, 1, on_written) < 0)
		free(m);
}

/* ---- The server ---- */

static void on_member_gone(uv_handle_t *handle)
{
	free(handle->data);
}

static void leave_room(struct member *m)
{
	for (struct member **at = &rooms[m->room]; *at; at = &(*at)->next)
		if (*at == m) {
			*at = m->next;
			break;
		}
	if (is("leak"))
		uv_read_stop((uv_stream_t *)&m->tcp);
	else
		uv_close((uv_handle_t *)&m->tcp, on_member_gone);
}

struct lookup {
	uv_work_t work;
	struct member *member;
	int number;
};

static void search_history(uv_work_t *work)
{
	compute_for(is("pool") ? 150 : 1);
}

static void history_searched(uv_work_t *work, int status)
{
	struct lookup *l = work->data;
	say((uv_stream_t *)&l->member->tcp, "found", l->number);
	free(l);
}

static void on_kept(uv_fs_t *request)
{
	uv_fs_req_cleanup(request);
	free(request);
}

static void keep_in_journal(void)
{
	uv_fs_t *request = malloc(sizeof *request);
	uv_buf_t line = uv_buf_init("something was said\n", 19);
	if (is("fifo") && ++said == 20) {
		static char path[80];
		snprintf(path, sizeof path, "%s.fifo", journal_path);
		mkfifo(path, 0600);
		uv_fs_open(loop, request, path, O_RDONLY, 0, on_kept);
		return;
	}
	uv_fs_write(loop, request, journal, &line, 1, -1, on_kept);
}

static void handle_line(struct member *m, const char *line)
{
	char what[16];
	int number;
	if (sscanf(line, "%15s %d", what, &number) != 2)
		return;
	if (!strcmp(what, "join")) {
		m->room = number % ROOMS;
		m->next = rooms[m->room];
		rooms[m->room] = m;
		if (!is("forgotten") || number != 17)
			say((uv_stream_t *)&m->tcp, "welcome", number);
	} else if (!strcmp(what, "say")) {
		for (struct member *other = rooms[m->room]; other; other = other->next)
			say((uv_stream_t *)&other->tcp, other == m ? "heard" : "news", number);
		keep_in_journal();
		if (is("history") && number == 17)
			compute_for(120);
		if (is("deaf") && number == 17)
			uv_read_stop((uv_stream_t *)&m->tcp); /* too much to write: until it is written, and that is forgotten */
	} else if (!strcmp(what, "search")) {
		struct lookup *l = malloc(sizeof *l);
		*l = (struct lookup){.work = {.data = l}, .member = m, .number = number};
		uv_queue_work(loop, &l->work, search_history, history_searched);
	}
}

static void on_member_says(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct member *m = stream->data;
	if (size < 0)
		leave_room(m);
	for (ssize_t i = 0, begin = 0; i < size; i++)
		if (buffer->base[i] == '\n') {
			buffer->base[i] = 0;
			handle_line(m, buffer->base + begin);
			begin = i + 1;
		}
	free(buffer->base);
}

static void on_member(uv_stream_t *listener, int status)
{
	struct member *m = calloc(1, sizeof *m);
	m->tcp.data = m;
	uv_tcp_init(loop, &m->tcp);
	if (uv_accept(listener, (uv_stream_t *)&m->tcp) == 0)
		uv_read_start((uv_stream_t *)&m->tcp, allocate, on_member_says);
}

/* ---- People ---- */

static void on_closed(uv_handle_t *handle)
{
	struct person *p = handle->data;
	if (--p->open)
		return;
	if (!is("keepalive"))
		free(p);
	if (++people_ended == PEOPLE)
		uv_close((uv_handle_t *)&server, NULL);
	else if (people_begun < PEOPLE)
		begin_person();
}

static void leave(struct person *p)
{
	p->open = is("keepalive") ? 2 : 3;
	uv_close((uv_handle_t *)&p->tcp, on_closed);
	uv_close((uv_handle_t *)&p->pause, on_closed);
	if (!is("keepalive"))
		uv_close((uv_handle_t *)&p->keep_alive, on_closed);
}

static void say_something(uv_timer_t *timer)
{
	struct person *p = timer->data;
	say((uv_stream_t *)&p->tcp, p->left == 2 ? "search" : "say", p->number);
}

static void on_person_hears(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct person *p = stream->data;
	bool is_answer = false;
	if (size < 0) {
		leave(p);
	} else {
		for (ssize_t i = 0; i < size; i++) /* news are none */
			is_answer |= (i == 0 || buffer->base[i - 1] == '\n') && buffer->base[i] != 'n';
		if (is_answer && p->left-- == 0)
			leave(p);
		else if (is_answer)
			uv_timer_start(&p->pause, say_something, 2 + lrand48() % 5, 0);
	}
	free(buffer->base);
}

static void stay_alive(uv_timer_t *timer)
{
}

static void connect_person(struct person *p);

static void on_refused_closed(uv_handle_t *handle)
{
	struct person *p = handle->data;
	connect_person(p);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct person *p = connect->data;
	if (status < 0) {
		uv_close((uv_handle_t *)&p->tcp, on_refused_closed);
		return;
	}
	uv_read_start((uv_stream_t *)&p->tcp, allocate, on_person_hears);
	say((uv_stream_t *)&p->tcp, "join", p->number);
}

static void connect_person(struct person *p)
{
	uv_tcp_init(loop, &p->tcp);
	p->tcp.data = p->connect.data = p;
	bool is_lost = is("reconnect") && p->number == 17 && p->tries++ < 400;
	uv_tcp_connect(&p->connect, &p->tcp, (struct sockaddr *)(is_lost ? &nobody : &address), on_connected);
}

static void begin_person(void)
{
	struct person *p = calloc(1, sizeof *p);
	p->number = people_begun++;
	p->left = 3 + lrand48() % 4;
	uv_timer_init(loop, &p->pause);
	uv_timer_init(loop, &p->keep_alive);
	p->pause.data = p->keep_alive.data = p;
	uv_timer_start(&p->keep_alive, stay_alive, 20000, 20000);
	connect_person(p);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	signal(SIGPIPE, SIG_IGN);
	loop = uv_default_loop();
	snprintf(journal_path, sizeof journal_path, "/tmp/chat-%d", (int)getpid());
	journal = open(journal_path, O_CREAT | O_WRONLY | O_APPEND, 0600);
	uv_tcp_t closed;
	int size = sizeof address;
	uv_tcp_init(loop, &closed);
	uv_tcp_init(loop, &server);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_bind(&closed, (struct sockaddr *)&address, 0); /* without a listener */
	uv_tcp_getsockname(&closed, (struct sockaddr *)&nobody, &size);
	uv_tcp_bind(&server, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&server, 64, on_member);
	uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
	for (int i = 0; i < AT_ONCE; i++)
		begin_person();
	uv_close((uv_handle_t *)&closed, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	close(journal);
	unlink(journal_path);
	return uv_loop_close(loop) != 0;
}
