/* jobd.c: a job server on libuv, with four clients as OS threads.
 *
 * A request is a line: "sum FILE" hashes a file on the pool, "run SECONDS CODE" runs a child process, "find HOST" looks a name
 * up, "watch" is answered by the next change, and "quit" ends the server.  Each request is answered by a line.
 *
 * Usage: judge-jobd FAULT [SEED].  Healthy: none, healthy-slow, healthy-timeouts, healthy-polls, healthy-idle.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

enum { CLIENTS = 4, REQUESTS = 6, CHILDREN = 2, MIRROR_TRIES = 150 };

struct connection {
	uv_tcp_t tcp;
	uv_timer_t limit; /* of the request under way */
	int open_handles;
	char line[256];
	size_t length;
	struct job *job;
	struct connection *next_watcher;
};

struct job {
	struct connection *client; /* NULL: it has gone */
	uv_fs_t fs;
	uv_work_t work, parts;
	uv_process_t process;
	uv_getaddrinfo_t find;
	uv_sem_t parts_done;
	char seconds[16], code[16], data[4096];
	unsigned hash, hash_of_parts;
	struct job *next;
};

static const char *fault;
static uv_loop_t *loop;
static uv_tcp_t listener;
static uv_idle_t drain;
static uv_timer_t changes, audit;
static int audit_file = -1, children, seed, port, mirror_port, mirror_tries;
static struct job *waiting_jobs;
static struct connection *watchers;
static char *sample;
static uv_barrier_t all_connected;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

/* ---- Answers ---- */

static void on_written(uv_write_t *write, int status)
{
	if (status < 0 && status != UV_ECANCELED)
		fprintf(stderr, "answer: %s\n", uv_strerror(status));
	free(write->data);
	free(write);
}

static void send_line(struct connection *c, const char *text)
{
	uv_write_t *write = malloc(sizeof *write);
	char *copy = malloc(strlen(text) + 2);
	size_t length = (size_t)sprintf(copy, "%s%s", text, is("half") && c->job && !strcmp(text, "found") ? "" : "\n");
	write->data = copy;
	uv_buf_t buffer = uv_buf_init(copy, (unsigned)length);
	uv_write(write, (uv_stream_t *)&c->tcp, &buffer, 1, on_written);
}

static void free_job(struct job *job)
{
	free(job);
}

static void answer(struct job *job, const char *text)
{
	struct connection *c = job->client;
	if (c) {
		uv_timer_stop(&c->limit);
		send_line(c, text);
		c->job = NULL;
	}
}

/* ---- Files ---- */

static void hash_part(uv_work_t *work)
{
	struct job *job = work->data;
	for (size_t i = sizeof job->data / 2; i < sizeof job->data; i++)
		job->hash_of_parts = job->hash_of_parts * 31 + (unsigned char)job->data[i];
	uv_sem_post(&job->parts_done);
}

static void on_part_hashed(uv_work_t *work, int status)
{
	(void)work, (void)status;
}

static void hash_file(uv_work_t *work)
{
	struct job *job = work->data;
	if (is("pool"))
		usleep(250000); /* a storage that answers late */
	for (size_t i = 0; i < sizeof job->data / 2; i++)
		job->hash = job->hash * 31 + (unsigned char)job->data[i];
	if (is("selfwait"))
		uv_sem_wait(&job->parts_done);
}

static void on_hashed(uv_work_t *work, int status)
{
	struct job *job = work->data;
	char text[64];
	snprintf(text, sizeof text, "sum %08x %d", job->hash ^ job->hash_of_parts, status);
	answer(job, text);
	free_job(job);
}

static void on_read(uv_fs_t *fs)
{
	struct job *job = fs->data;
	uv_file file = fs->file;
	uv_fs_req_cleanup(fs);
	uv_fs_close(loop, fs, file, NULL);
	uv_fs_req_cleanup(fs);
	job->work.data = job->parts.data = job;
	uv_queue_work(loop, &job->work, hash_file, on_hashed);
	if (is("selfwait"))
		uv_queue_work(loop, &job->parts, hash_part, on_part_hashed);
}

static void on_opened(uv_fs_t *fs)
{
	struct job *job = fs->data;
	uv_file file = (uv_file)fs->result;
	uv_fs_req_cleanup(fs);
	if (file < 0) {
		answer(job, "no such file");
		free_job(job);
		return;
	}
	uv_buf_t buffer = uv_buf_init(job->data, sizeof job->data);
	uv_fs_read(loop, fs, file, &buffer, 1, 0, on_read);
}

static void sum_file(struct job *job, const char *path)
{
	uv_sem_init(&job->parts_done, 0);
	job->fs.data = job;
	uv_fs_open(loop, &job->fs, path, O_RDONLY, 0, on_opened);
}

/* ---- Child processes, two at a time ---- */

static void run_child(struct job *job);

static void on_child_closed(uv_handle_t *handle)
{
	free_job(handle->data);
}

static void run_next(void)
{
	struct job *next = waiting_jobs;
	if (next) {
		waiting_jobs = next->next;
		run_child(next);
	}
}

static void on_exit_of_child(uv_process_t *process, int64_t status, int term_signal)
{
	struct job *job = process->data;
	answer(job, term_signal ? "timeout" : status ? "failed" : "done");
	uv_close((uv_handle_t *)process, on_child_closed);
	if (is("slots") && status)
		return; /* the place of a failed child stays taken */
	children--;
	run_next();
}

static void run_child(struct job *job)
{
	if (children == CHILDREN) {
		struct job **last = &waiting_jobs;
		while (*last)
			last = &(*last)->next;
		*last = job;
		job->next = NULL;
		return;
	}
	char script[64];
	snprintf(
	    script, sizeof script, strcmp(job->seconds, "0") ? "sleep %s; exit %s" : ": %s; exit %s", job->seconds, job->code);
	char *arguments[] = {"sh", "-c", script, NULL};
	uv_process_options_t options = {.file = "sh", .args = arguments, .exit_cb = on_exit_of_child};
	children++;
	job->process.data = job;
	int status = uv_spawn(loop, &job->process, &options);
	if (status < 0) {
		answer(job, uv_strerror(status));
		children--;
	}
}

/* ---- Names ---- */

static void on_found(uv_getaddrinfo_t *find, int status, struct addrinfo *found)
{
	struct job *job = find->data;
	if (status < 0) {
		if (!is("unanswered"))
			answer(job, "unknown host");
	} else
		answer(job, "found");
	uv_freeaddrinfo(found);
	free_job(job);
}

static void find_host(struct job *job, const char *host)
{
	job->find.data = job;
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	const struct addrinfo *numeric = strchr(host, '.') ? &hints : NULL;
	uv_getaddrinfo(loop, &job->find, on_found, host, NULL, numeric);
}

/* ---- Connections ---- */

static void on_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	if (--c->open_handles == 0)
		free(c);
}

static void on_limit(uv_timer_t *timer)
{
	struct connection *c = timer->data;
	if (c->job && c->job->process.data)
		uv_process_kill(&c->job->process, SIGKILL);
}

static void close_connection(struct connection *c)
{
	if (c->job)
		c->job->client = NULL;
	uv_close((uv_handle_t *)&c->limit, on_closed);
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void notify_watchers(uv_timer_t *timer)
{
	(void)timer;
	while (watchers) {
		struct connection *c = watchers;
		watchers = c->next_watcher;
		send_line(c, "changed");
	}
}

static void write_audit(uv_timer_t *timer)
{
	(void)timer;
	static int lines;
	uv_fs_t fs;
	for (int i = 0; i < (is("fsync") ? 100 : 1) && lines < 300; i++, lines++) {
		uv_buf_t line = uv_buf_init("job\n", 4);
		uv_fs_write(NULL, &fs, audit_file, &line, 1, -1, NULL);
		uv_fs_req_cleanup(&fs);
		if (is("fsync")) {
			uv_fs_fsync(NULL, &fs, audit_file, NULL);
			uv_fs_req_cleanup(&fs);
		}
	}
}

static void on_drain(uv_idle_t *idle)
{
	(void)idle;
	if (!is("idle"))
		uv_idle_stop(&drain);
}

static void quit(void)
{
	if (is("exit")) {
		uv_stop(loop);
		return;
	}
	uv_close((uv_handle_t *)&listener, NULL);
	uv_close((uv_handle_t *)&changes, NULL);
	uv_close((uv_handle_t *)&audit, NULL);
	uv_close((uv_handle_t *)&drain, NULL);
}

static void on_keepalive(uv_timer_t *timer)
{
	(void)timer;
}

static void begin_job(struct connection *c)
{
	char what[16] = "", first[160] = "", second[16] = "0";
	sscanf(c->line, "%15s %159s %15s", what, first, second);
	if (!strcmp(what, "quit")) {
		send_line(c, "bye");
		quit();
		return;
	}
	if (!strcmp(what, "watch")) {
		c->next_watcher = watchers;
		watchers = c;
		return;
	}
	struct job *job = calloc(1, sizeof *job);
	job->client = c;
	c->job = job;
	uv_timer_start(&c->limit, on_limit, is("healthy-timeouts") ? 100 : 20000, 0);
	if (is("timers")) {
		uv_timer_t *keepalive = malloc(sizeof *keepalive);
		uv_timer_init(loop, keepalive);
		uv_timer_start(keepalive, on_keepalive, 500, 500);
	}
	uv_idle_start(&drain, on_drain);
	if (!strcmp(what, "sum"))
		sum_file(job, first);
	else if (!strcmp(what, "find"))
		find_host(job, first);
	else if (is("child")) {
		char script[256];
		snprintf(script, sizeof script, strcmp(first, "0") ? "sleep %s; exit %s" : ": %s; exit %s", first, second);
		answer(job, system(script) ? "failed" : "done");
		free_job(job);
	} else {
		snprintf(job->seconds, sizeof job->seconds, "%.15s", first);
		snprintf(job->code, sizeof job->code, "%s", second);
		run_child(job);
	}
}

static void make_room(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	(void)size;
	struct connection *c = handle->data;
	*buffer = uv_buf_init(c->line + c->length, (unsigned)(sizeof c->line - c->length - 1));
}

static void on_bytes(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	(void)buffer;
	struct connection *c = stream->data;
	if (size < 0) {
		if (is("connections"))
			uv_read_stop(stream);
		else
			close_connection(c);
		return;
	}
	c->length += (size_t)size;
	c->line[c->length] = 0;
	if (!strchr(c->line, '\n'))
		return;
	c->length = 0;
	begin_job(c);
}

static void on_connection(uv_stream_t *server, int status)
{
	if (status < 0)
		return;
	struct connection *c = calloc(1, sizeof *c);
	c->tcp.data = c->limit.data = c;
	c->open_handles = 2;
	uv_tcp_init(loop, &c->tcp);
	uv_timer_init(loop, &c->limit);
	if (uv_accept(server, (uv_stream_t *)&c->tcp) < 0)
		close_connection(c);
	else
		uv_read_start((uv_stream_t *)&c->tcp, make_room, on_bytes);
}

/* ---- The mirror, a second server to which jobs are copied; in one fault it is down ---- */

static void connect_mirror(void);

static void on_mirror_closed(uv_handle_t *handle)
{
	free(handle);
	if (is("retry") && mirror_tries < MIRROR_TRIES)
		connect_mirror();
}

static void on_mirror(uv_connect_t *connect, int status)
{
	(void)status;
	uv_close((uv_handle_t *)connect->handle, on_mirror_closed);
	free(connect);
}

static void connect_mirror(void)
{
	uv_tcp_t *tcp = malloc(sizeof *tcp);
	uv_connect_t *connect = malloc(sizeof *connect);
	struct sockaddr_in address;
	uv_ip4_addr("127.0.0.1", is("retry") ? mirror_port : port, &address);
	mirror_tries++;
	uv_tcp_init(loop, tcp);
	if (uv_tcp_connect(connect, tcp, (struct sockaddr *)&address, on_mirror) < 0)
		free(connect);
}

/* ---- Clients ---- */

static int connect_client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		perror("connect");
	return fd;
}

static bool ask(int fd, const char *request)
{
	char reply[256];
	size_t length = 0;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return false;
	while (length == 0 || reply[length - 1] != '\n') {
		ssize_t n = recv(fd, reply + length, sizeof reply - length, 0);
		if (n <= 0)
			return false;
		length += (size_t)n;
	}
	return true;
}

static void be_client(void *argument)
{
	int number = (int)(intptr_t)argument, fd = connect_client();
	char sum[200];
	snprintf(sum, sizeof sum, "sum %s\n", sample);
	const char *run = is("healthy-slow") ? "run 0.15 0\n" : is("child") ? "run 0.2 0\n" : "run 0 0\n";
	const char *requests[] = {sum, run, "find localhost\n", "run 0 1\n", "find no.such.name\n", "sum /no/such/file\n"};
	uv_barrier_wait(&all_connected);
	for (int i = 0; i < REQUESTS; i++) {
		if (is("connections") && i) {
			close(fd);
			fd = connect_client();
		}
		if (is("healthy-idle") && i == REQUESTS / 2)
			usleep(700000);
		if (!ask(fd, requests[(i * (1 + seed % 5) + number) % 6]))
			break;
	}
	if (is("healthy-timeouts"))
		ask(fd, "run 9 0\n");
	if (is("healthy-polls"))
		ask(fd, "watch\n");
	if (is("exit") && number)
		ask(fd, "run 1 0\n");
	close(fd);
}

static void be_all_clients(void *nothing)
{
	(void)nothing;
	uv_thread_t clients[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		uv_thread_create(&clients[i], be_client, (void *)(intptr_t)i);
	uv_thread_join(&clients[0]);
	for (int i = 1; i < CLIENTS && !is("exit"); i++)
		uv_thread_join(&clients[i]);
	if (is("exit"))
		usleep(100000);
	int fd = connect_client();
	ask(fd, "quit\n");
	close(fd);
}

static int closed_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		perror("bind");
	getsockname(fd, (struct sockaddr *)&address, &length);
	close(fd);
	return ntohs(address.sin_port);
}

static void listen_for_clients(void)
{
	struct sockaddr_in address;
	int length = sizeof address;
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(loop, &listener);
	uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&listener, 16, on_connection);
	uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length);
	port = ntohs(address.sin_port);
}

static char *make_sample(void)
{
	static char name[] = "jobd-XXXXXX";
	char block[8192];
	memset(block, 'x', sizeof block);
	audit_file = mkstemp(name);
	if (audit_file < 0 || write(audit_file, block, sizeof block) < 0)
		perror(name);
	return name;
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	seed = argc > 2 ? atoi(argv[2]) : 1;
	if (is("selfwait") || is("pool"))
		setenv("UV_THREADPOOL_SIZE", "1", 1); /* a small machine */
	loop = uv_default_loop();
	sample = make_sample();
	mirror_port = closed_port();
	listen_for_clients();
	uv_idle_init(loop, &drain);
	uv_timer_init(loop, &changes);
	uv_timer_start(&changes, notify_watchers, 600, 600);
	uv_timer_init(loop, &audit);
	uv_timer_start(&audit, write_audit, 20, 40);
	uv_barrier_init(&all_connected, CLIENTS);
	if (is("retry"))
		connect_mirror();
	uv_thread_t clients;
	uv_thread_create(&clients, be_all_clients, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	unlink(sample);
	if (is("exit"))
		return 0;
	uv_thread_join(&clients);
	return uv_loop_close(loop) < 0;
}
