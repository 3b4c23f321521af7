/* web FAULT SEED: an HTTP/1.1 server and its clients on one loop of plain libuv.  It knows nothing of weft; FAULT is one everyday
 * mistake, or "none".  Clients keep their connections, and ask for what is answered at once, from a file, after a computation on
 * the pool, after a timer, by the name service, or by an OS thread with a queue of its own.
 *
 * SPDX-License-Identifier: ISC */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

struct connection {
	uv_tcp_t tcp;
	uv_timer_t later;
	uv_fs_t fs;
	uv_work_t work;
	uv_getaddrinfo_t lookup;
	struct connection *next; /* in the queue of the archive */
	char request[512], content[128];
	size_t used;
	int file, handles;
};

struct client {
	uv_tcp_t tcp;
	uv_timer_t think;
	uv_connect_t connect;
	int number, left, tries;
};

static const char *fault, *program;
static uv_loop_t *loop;
static uv_tcp_t listener;
static uv_timer_t statistics;
static uv_idle_t idle;
static uv_async_t archive_done;
static uv_thread_t archive;
static uv_mutex_t archive_mutex;
static uv_cond_t archive_condition;
static struct connection *archive_queue, *archive_answers;
static bool archive_ends;
static struct sockaddr_in address;
static int clients_left, to_start, served;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static int between(int least, int most)
{
	return least + (int)(lrand48() % (most - least + 1));
}

static void compute_for(int ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	while (uv_hrtime() < end)
		;
}

/* ---- The server ---- */

static void written(uv_write_t *write, int status)
{
	free(write->data);
	free(write);
}

static void respond(struct connection *c, const char *text)
{
	uv_write_t *write = malloc(sizeof *write);
	char *answer = write->data = malloc(256);
	int size = snprintf(answer, 256, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
	uv_buf_t buffer = uv_buf_init(answer, size);
	served++;
	uv_write(write, (uv_stream_t *)&c->tcp, &buffer, 1, written);
}

static void on_later(uv_timer_t *timer)
{
	respond(timer->data, "later");
}

static void compute_page(uv_work_t *work)
{
	compute_for(is("pool") ? 150 : 2);
}

static void page_computed(uv_work_t *work, int status)
{
	respond(work->data, "computed");
}

static void file_closed(uv_fs_t *fs)
{
	struct connection *c = fs->data;
	uv_fs_req_cleanup(fs);
	respond(c, "file");
}

static void file_read(uv_fs_t *fs)
{
	struct connection *c = fs->data;
	uv_fs_req_cleanup(fs);
	uv_fs_close(loop, fs, c->file, file_closed);
}

static void file_opened(uv_fs_t *fs)
{
	struct connection *c = fs->data;
	c->file = (int)fs->result;
	uv_fs_req_cleanup(fs);
	uv_buf_t buffer = uv_buf_init(c->content, sizeof c->content);
	uv_fs_read(loop, fs, c->file, &buffer, 1, 0, file_read);
}

static void looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
	uv_freeaddrinfo(found);
	respond(lookup->data, "127.0.0.1");
}

static void run_archive(void *nothing)
{
	uv_mutex_lock(&archive_mutex);
	for (;;) {
		while (!archive_queue && !archive_ends)
			uv_cond_wait(&archive_condition, &archive_mutex);
		struct connection *c = archive_queue;
		if (!c)
			break;
		archive_queue = c->next;
		uv_mutex_unlock(&archive_mutex);
		compute_for(1);
		uv_mutex_lock(&archive_mutex);
		c->next = archive_answers;
		archive_answers = c;
		if (!is("unsent") || served < 12)
			uv_async_send(&archive_done);
	}
	uv_mutex_unlock(&archive_mutex);
}

static void on_archive_done(uv_async_t *async)
{
	uv_mutex_lock(&archive_mutex);
	struct connection *c = archive_answers;
	archive_answers = NULL;
	uv_mutex_unlock(&archive_mutex);
	for (struct connection *next; c; c = next) {
		next = c->next;
		respond(c, "archived");
	}
}

static void archive_page(struct connection *c)
{
	uv_mutex_lock(&archive_mutex);
	c->next = archive_queue;
	archive_queue = c;
	uv_cond_signal(&archive_condition);
	uv_mutex_unlock(&archive_mutex);
}

static void report_exited(uv_process_t *process, int64_t status, int signal)
{
	respond(process->data, "report");
	uv_close((uv_handle_t *)process, (uv_close_cb)free);
}

static void start_report(struct connection *c)
{
	uv_process_t *process = malloc(sizeof *process);
	uv_pipe_t *input = malloc(sizeof *input);
	uv_pipe_init(loop, input, 0);
	uv_stdio_container_t streams[1] = {{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)input}};
	char *arguments[] = {"cat", NULL};
	uv_process_options_t options = {
	    .file = "cat", .args = arguments, .exit_cb = report_exited, .stdio = streams, .stdio_count = 1};
	process->data = c;
	uv_spawn(loop, process, &options);
	if (!is("stdin"))
		uv_close((uv_handle_t *)input, (uv_close_cb)free);
}

static void answer_later(struct connection *c)
{
	static int later;
	if (is("unanswered") && served > 12)
		return;
	uv_timer_start(&c->later, on_later, is("slow") && ++later % 12 == 8 ? 300 : between(1, 4), 0);
}

static void handle_request(struct connection *c)
{
	static int handled;
	const char *path = c->request + strlen("GET ");
	bool is_it = ++handled == 15;
	if (is_it && is("sleep"))
		usleep(120000);
	if (is_it && is("compute"))
		compute_for(120);
	if (is_it && is("crash"))
		abort();
	if (!strncmp(path, "/file", 5))
		uv_fs_open(loop, &c->fs, program, 0, 0, file_opened);
	else if (!strncmp(path, "/compute", 8))
		uv_queue_work(loop, &c->work, compute_page, page_computed);
	else if (!strncmp(path, "/later", 6))
		answer_later(c);
	else if (!strncmp(path, "/lookup", 7))
		uv_getaddrinfo(loop, &c->lookup, looked_up, "127.0.0.1", NULL, NULL);
	else if (!strncmp(path, "/archive", 8))
		archive_page(c);
	else if (!strncmp(path, "/report", 7))
		start_report(c);
	else
		respond(c, "hello");
}

static void half_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	if (!--c->handles)
		free(c);
}

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	struct connection *c = handle->data;
	*buffer = uv_buf_init(c->request + c->used, sizeof c->request - 1 - c->used);
}

static void on_server_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct connection *c = stream->data;
	if (size < 0) {
		uv_read_stop(stream);
		if (is("leak"))
			return;
		uv_close((uv_handle_t *)&c->tcp, half_closed);
		uv_close((uv_handle_t *)&c->later, half_closed);
		return;
	}
	c->used += size;
	c->request[c->used] = 0;
	if (!strstr(c->request, "\r\n\r\n"))
		return;
	c->used = 0;
	handle_request(c);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct connection *c = calloc(1, sizeof *c);
	uv_tcp_init(loop, &c->tcp);
	uv_timer_init(loop, &c->later);
	c->tcp.data = c->later.data = c->fs.data = c->work.data = c->lookup.data = c;
	c->handles = 2;
	uv_accept(server, (uv_stream_t *)&c->tcp);
	uv_read_start((uv_stream_t *)&c->tcp, give_buffer, on_server_read);
}

/* ---- The clients ---- */

static void start_client(void);

static void print_statistics(uv_timer_t *timer)
{
	printf("%d requests\n", served);
}

static void stop_serving(void)
{
	uv_close((uv_handle_t *)&listener, NULL);
	if (!is("timer"))
		uv_close((uv_handle_t *)&statistics, NULL);
	if (!is("unclosed"))
		uv_close((uv_handle_t *)&idle, NULL);
	uv_close((uv_handle_t *)&archive_done, NULL);
	uv_mutex_lock(&archive_mutex);
	archive_ends = true;
	uv_cond_signal(&archive_condition);
	uv_mutex_unlock(&archive_mutex);
}

static void client_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;
	if (handle == (uv_handle_t *)&client->tcp) {
		uv_close((uv_handle_t *)&client->think, client_closed);
		return;
	}
	free(client);
	if (to_start > 0)
		start_client();
	else if (--clients_left == 0)
		stop_serving();
}

static void ask(uv_timer_t *timer)
{
	static const char *const paths[] = {"/hello", "/file", "/compute", "/later", "/lookup", "/archive"};
	struct client *client = timer->data;
	const char *path = paths[lrand48() % 6];
	if (is("pool"))
		path = client->number % 4 == 0 ? "/file" : "/compute";
	if (client->number == 1 && client->left == 2)
		path = "/report";
	uv_write_t *write = malloc(sizeof *write);
	char *text = write->data = malloc(128);
	uv_buf_t buffer = uv_buf_init(text, snprintf(text, 128, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
	uv_write(write, (uv_stream_t *)&client->tcp, &buffer, 1, written);
}

static void give_client_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	static char text[1024];
	*buffer = uv_buf_init(text, sizeof text);
}

static void on_answer(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct client *client = stream->data;
	if (size < 0 || --client->left == 0)
		uv_close((uv_handle_t *)&client->tcp, client_closed);
	else
		uv_timer_start(&client->think, ask, between(0, 5), 0);
}

static void connect_client(struct client *client);

static void reconnect(uv_handle_t *handle)
{
	connect_client(handle->data);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct client *client = connect->data;
	if (status < 0) {
		uv_close((uv_handle_t *)&client->tcp, client->tries++ < 400 ? reconnect : client_closed);
		return;
	}
	uv_read_start((uv_stream_t *)&client->tcp, give_client_buffer, on_answer);
	ask(&client->think);
}

static void connect_client(struct client *client)
{
	struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr = address.sin_addr};
	uv_tcp_init(loop, &client->tcp);
	client->tcp.data = client;
	bool wrong = is("retries") && client->number == 1;
	uv_tcp_connect(&client->connect, &client->tcp, (struct sockaddr *)(wrong ? &nobody : &address), on_connected);
}

static void start_client(void)
{
	static int number;
	struct client *client = calloc(1, sizeof *client);
	to_start--;
	client->number = number++;
	client->left = is("leak") ? between(1, 3) : between(8, 20);
	uv_timer_init(loop, &client->think);
	client->think.data = client->connect.data = client;
	connect_client(client);
}

static void do_nothing(uv_idle_t *handle)
{
}

int main(int argc, char **argv)
{
	program = argv[0];
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	setenv("UV_THREADPOOL_SIZE", "2", 1);
	loop = uv_default_loop();
	uv_mutex_init(&archive_mutex);
	uv_cond_init(&archive_condition);
	uv_async_init(loop, &archive_done, on_archive_done);
	uv_thread_create(&archive, run_archive, NULL);
	uv_timer_init(loop, &statistics);
	uv_timer_start(&statistics, print_statistics, 200, 200);
	uv_idle_init(loop, &idle);
	if (is("spin"))
		uv_idle_start(&idle, do_nothing);
	uv_tcp_init(loop, &listener);
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&listener, 64, on_connection);
	int size = sizeof address;
	uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &size);
	clients_left = between(4, 7);
	to_start = is("leak") ? 80 : is("spin") ? 40 : between(10, 20);
	for (int i = 0; i < clients_left; i++)
		start_client();
	uv_run(loop, UV_RUN_DEFAULT);
	uv_thread_join(&archive);
	printf("%d requests\n", served);
	return uv_loop_close(loop) == 0 ? 0 : 1;
}
