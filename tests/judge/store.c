/* store FAULT SEED: a key-value store in plain libuv: clients set and get values that expire, each twentieth change is saved and
 * compacted on the thread pool, under two locks, and a replica is told of each change.  It knows nothing of weft; FAULT is one
 * everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { KEYS = 32, CLIENTS = 48, AT_ONCE = 6, TURNS = 6 };

struct client {
	uv_tcp_t tcp;
	uv_connect_t connect;
	int number, left;
};

struct line {
	uv_write_t write;
	char text[32];
};

static const char *fault;
static uv_loop_t *loop;
static uv_tcp_t server, replica;
static uv_timer_t expiry[KEYS];
static uv_idle_t flush;
static uv_connect_t replica_connect;
static uv_mutex_t table, disk;
static struct sockaddr_in address, nobody;
static int begun, ended, changes, replica_tries;
static bool is_replica_open;

static void begin_client(void);
static void connect_replica(void);

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
	struct line *l = malloc(sizeof *l);
	uv_buf_t buffer = uv_buf_init(l->text, snprintf(l->text, sizeof l->text, "%s %d\n", what, number));
	if (uv_write(&l->write, to, &buffer, 1, on_written) < 0)
		free(l);
}

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

/* ---- Saving ---- */

static void take_both(uv_mutex_t *first, uv_mutex_t *second)
{
	uv_mutex_lock(first);
	compute_for(1);
	uv_mutex_lock(second);
	uv_mutex_unlock(second);
	uv_mutex_unlock(first);
}

static void save(uv_work_t *work)
{
	take_both(&table, &disk);
}

static void compact(uv_work_t *work)
{
	take_both(is("deadlock") ? &disk : &table, is("deadlock") ? &table : &disk);
}

static void saved(uv_work_t *work, int status)
{
	free(work);
}

static void queue(uv_work_cb work)
{
	uv_queue_work(loop, malloc(sizeof(uv_work_t)), work, saved);
}

static void begin_to_save(void)
{
	if (is("sorted"))
		compute_for(90);
	queue(save);
	queue(compact);
}

/* ---- The server ---- */

static void on_expired(uv_timer_t *timer)
{
}

static void on_flush(uv_idle_t *idle)
{
	if (!is("busy"))
		uv_idle_stop(idle);
}

static void set_value(int key)
{
	uv_timer_t *timer = &expiry[key % KEYS];
	if (is("timers")) {
		timer = malloc(sizeof *timer);
		uv_timer_init(loop, timer);
	}
	uv_timer_start(timer, on_expired, 30000, 0);
	uv_unref((uv_handle_t *)timer);
	if (is_replica_open)
		say((uv_stream_t *)&replica, "copy", key);
	if (++changes % 20 == 0) {
		begin_to_save();
		uv_idle_start(&flush, on_flush);
	}
}

static void handle_line(uv_stream_t *stream, const char *line)
{
	char what[16];
	int number;
	if (sscanf(line, "%15s %d", what, &number) != 2)
		return;
	if (is("null") && number == 17)
		*(volatile int *)NULL = number;
	if (!strcmp(what, "set"))
		set_value(number);
	if (!is("silent") || number != 17 || strcmp(what, "get") != 0)
		say(stream, "ok", number);
}

static void on_request(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	if (size < 0 && is("open"))
		uv_read_stop(stream);
	else if (size < 0)
		uv_close((uv_handle_t *)stream, free_handle);
	for (ssize_t i = 0, begin = 0; i < size; i++)
		if (buffer->base[i] == '\n') {
			buffer->base[i] = 0;
			handle_line(stream, buffer->base + begin);
			begin = i + 1;
		}
	free(buffer->base);
}

static void on_client(uv_stream_t *listener, int status)
{
	uv_tcp_t *tcp = malloc(sizeof *tcp);
	uv_tcp_init(loop, tcp);
	if (uv_accept(listener, (uv_stream_t *)tcp) == 0)
		uv_read_start((uv_stream_t *)tcp, allocate, on_request);
}

/* ---- The replica, another client of the same kind of server ---- */

static void on_acknowledged(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	free(buffer->base);
}

static void on_replica_refused(uv_handle_t *handle)
{
	if (ended < CLIENTS)
		connect_replica();
}

static void on_replica(uv_connect_t *connect, int status)
{
	if (status < 0 && ended < CLIENTS) {
		uv_close((uv_handle_t *)&replica, on_replica_refused);
		return;
	}
	is_replica_open = status == 0;
	if (is_replica_open)
		uv_read_start((uv_stream_t *)&replica, allocate, on_acknowledged);
}

static void connect_replica(void)
{
	uv_tcp_init(loop, &replica);
	bool is_refused = is("refused") && replica_tries++ < 250;
	uv_tcp_connect(&replica_connect, &replica, (struct sockaddr *)(is_refused ? &nobody : &address), on_replica);
}

/* ---- Clients ---- */

static void close_all(void)
{
	uv_close((uv_handle_t *)&server, NULL);
	if (!uv_is_closing((uv_handle_t *)&replica))
		uv_close((uv_handle_t *)&replica, NULL);
	if (!is("busy"))
		uv_close((uv_handle_t *)&flush, NULL);
	for (int i = 0; i < KEYS; i++)
		uv_close((uv_handle_t *)&expiry[i], NULL);
}

static void on_client_closed(uv_handle_t *handle)
{
	free(handle->data);
	if (++ended == CLIENTS)
		close_all();
	else if (begun < CLIENTS)
		begin_client();
}

static void ask(struct client *c)
{
	say((uv_stream_t *)&c->tcp, c->left-- % 3 ? "set" : "get", c->number);
}

static void on_answer(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct client *c = stream->data;
	free(buffer->base);
	if (size < 0 || c->left == 0)
		uv_close((uv_handle_t *)&c->tcp, on_client_closed);
	else
		ask(c);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct client *c = connect->data;
	uv_read_start((uv_stream_t *)&c->tcp, allocate, on_answer);
	ask(c);
}

static void begin_client(void)
{
	struct client *c = calloc(1, sizeof *c);
	c->number = begun++;
	c->left = TURNS + (int)(lrand48() % 3);
	uv_tcp_init(loop, &c->tcp);
	c->tcp.data = c->connect.data = c;
	uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&address, on_connected);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	signal(SIGPIPE, SIG_IGN);
	loop = uv_default_loop();
	uv_mutex_init(&table);
	uv_mutex_init(&disk);
	uv_tcp_t closed;
	int size = sizeof address;
	uv_tcp_init(loop, &closed);
	uv_tcp_init(loop, &server);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_bind(&closed, (struct sockaddr *)&address, 0); /* without a listener */
	uv_tcp_getsockname(&closed, (struct sockaddr *)&nobody, &size);
	uv_tcp_bind(&server, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&server, 64, on_client);
	uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
	uv_idle_init(loop, &flush);
	for (int i = 0; i < KEYS; i++)
		uv_timer_init(loop, &expiry[i]);
	connect_replica();
	for (int i = 0; i < AT_ONCE; i++)
		begin_client();
	uv_close((uv_handle_t *)&closed, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) != 0;
}
