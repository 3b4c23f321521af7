/* metrics.c: metrics of several processes, and the HTTP server that sends them (metrics.h).  SPDX-License-Identifier: ISC */
#include "metrics.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "trace/follow.h"

enum { MAX_PROCESSES = 64, KEPT_S = 300 };

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- The metrics of several processes ---- */

/* A process. */
struct cli_metered {
	char *path;
	struct weft_metrics *metrics;
	struct weft_follower *follower; /* of cli_meters_follow(), or NULL */
	int64_t ended_ns;               /* time of the process's end on the monotonic clock; 0 while the process records */
};

struct cli_meters {
	WEFT_VEC(struct cli_metered) all;
	uint64_t left_out;
};

static void free_metered(const struct cli_metered *one)
{
	weft_follower_close(one->follower);
	free(one->path);
	weft_metrics_destroy(one->metrics);
}

struct cli_meters *cli_meters_create(void)
{
	return calloc(1, sizeof(struct cli_meters));
}

void cli_meters_destroy(struct cli_meters *meters)
{
	if (!meters)
		return;
	for (size_t i = 0; i < meters->all.count; i++)
		free_metered(&meters->all.items[i]);
	weft_vec_free(&meters->all);
	free(meters);
}

/* Forgets the metrics of processes that ended some minutes ago. */
static void drop_ended(struct cli_meters *meters)
{
	const int64_t oldest_ns = clock_ns(CLOCK_MONOTONIC) - KEPT_S * INT64_C(1000000000);
	size_t kept = 0;
	for (size_t i = 0; i < meters->all.count; i++) {
		const struct cli_metered *one = &meters->all.items[i];
		if (one->ended_ns && one->ended_ns < oldest_ns)
			free_metered(one);
		else
			meters->all.items[kept++] = *one;
	}
	meters->all.count = kept;
}

static struct cli_metered *find_metered(struct cli_meters *meters, const char *path)
{
	for (size_t i = 0; meters && i < meters->all.count; i++)
		if (strcmp(meters->all.items[i].path, path) == 0)
			return &meters->all.items[i];
	return NULL;
}

const struct weft_live_observer *cli_meters_add(struct cli_meters *meters, const char *path)
{
	struct weft_error err;
	struct weft_metrics *metrics = NULL;
	drop_ended(meters);
	if (meters->all.count >= MAX_PROCESSES) {
		meters->left_out++;
		return NULL;
	}
	char *own = strdup(path);
	struct cli_metered *fresh = own && weft_metrics_create(&metrics, &err) == WEFT_OK ? weft_vec_push(&meters->all) : NULL;
	if (!fresh) {
		free(own);
		weft_metrics_destroy(metrics);
		return NULL;
	}
	*fresh = (struct cli_metered){.path = own, .metrics = metrics};
	return weft_metrics_observer(metrics);
}

void cli_meters_add_findings(
    struct cli_meters *meters, const char *path, const struct weft_findings *findings, const struct weft_model *model)
{
	const struct cli_metered *one = find_metered(meters, path);
	if (one)
		weft_metrics_add_findings(one->metrics, findings, model, clock_ns(CLOCK_REALTIME));
}

void cli_meters_update(struct cli_meters *meters, const char *path, const struct weft_follower *follower, bool has_ended)
{
	struct cli_metered *one = find_metered(meters, path);
	if (!one || one->ended_ns)
		return;
	weft_metrics_update(one->metrics, follower, !has_ended, clock_ns(CLOCK_REALTIME));
	one->ended_ns = has_ended ? clock_ns(CLOCK_MONOTONIC) : 0;
}

void cli_meters_follow(struct cli_meters *meters, const char *path)
{
	struct weft_follower_options options = {.makes_no_model = true};
	struct weft_error err;
	if (find_metered(meters, path) || !(options.observer = cli_meters_add(meters, path)))
		return;
	(void)weft_follower_open(&find_metered(meters, path)->follower, path, &options, &err);
}

void cli_meters_refresh(struct cli_meters *meters)
{
	struct weft_error err;
	for (size_t i = 0; i < meters->all.count; i++) {
		struct cli_metered *one = &meters->all.items[i];
		if (!one->follower)
			continue;
		const bool is_recorded = weft_trace_is_recorded(one->path);
		if (weft_follower_refresh(one->follower, &err) >= 0)
			weft_metrics_update(one->metrics, one->follower, is_recorded, clock_ns(CLOCK_REALTIME));
	}
}

/* Returns the memory size of this process; 0: unknown. */
static uint64_t read_memory_bytes(void)
{
	unsigned long long size, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file && fscanf(file, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_text(void *out, const char *bytes, size_t size)
{
	/* If memory is missing, the text lacks its final "# EOF", so that a reader notices the loss. */
	(void)cli_bytes_append(out, bytes, size);
}

void cli_meters_write(struct cli_meters *meters, const struct weft_metrics_follower *follower, cli_bytes *out)
{
	struct weft_metrics_process processes[MAX_PROCESSES];
	struct weft_metrics_follower own = *follower;
	size_t count = 0;
	drop_ended(meters);
	for (size_t i = 0; i < meters->all.count; i++)
		if (weft_metrics_is_updated(meters->all.items[i].metrics))
			processes[count++] =
			    (struct weft_metrics_process){meters->all.items[i].path, meters->all.items[i].metrics};
	own.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	own.memory_bytes = read_memory_bytes();
	own.left_out = meters->left_out;
	weft_metrics_write(processes, count, &own, write_text, out);
}

/* ---- The server ---- */

#ifdef WEFT_HAS_SERVER

enum { MAX_CONNECTIONS = 64, IDLE_S = 30, ANSWER_S = 8 };

struct cli_metrics_server {
	struct cli_http_address address;
	struct MHD_Daemon *daemon;
	int wakes; /* eventfd that becomes readable when a request comes */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	/* with the lock: */
	uint64_t asked, answers; /* number of the newest request, and number of the newest request that was answered */
	cli_bytes text;
};

/* Waits at most ANSWER_S for the answer to a new request, because a scan of large rings may take long.  After ANSWER_S, an older
 * text is sent.
 */
static struct MHD_Response *wait_for_answer(struct cli_metrics_server *s)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ANSWER_S;
	pthread_mutex_lock(&s->lock);
	const uint64_t number = ++s->asked;
	const ssize_t woken = write(s->wakes, &(uint64_t){1}, sizeof(uint64_t));
	while (woken > 0 && s->answers < number)
		if (pthread_cond_timedwait(&s->answered, &s->lock, &until) != 0)
			break;
	struct MHD_Response *response =
	    s->text.count ? MHD_create_response_from_buffer(s->text.count, s->text.items, MHD_RESPMEM_MUST_COPY) : NULL;
	pthread_mutex_unlock(&s->lock);
	return response;
}

static enum MHD_Result answer_request(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_size, void **request)
{
	struct cli_metrics_server *s = ctx;
	(void)version, (void)upload, (void)upload_size;
	const bool only_reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	/* libmicrohttpd calls twice for each request; an answer to the first call would close the connection. */
	if (only_reads && !*request) {
		*request = s;
		return MHD_YES;
	}
	if (!cli_http_is_for_us(&s->address, connection))
		return cli_http_send_text(connection, MHD_HTTP_FORBIDDEN, "The Host header does not name this server.\n");
	if (!only_reads)
		return cli_http_send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "This server only answers GET and HEAD.\n");
	if (strcmp(url, "/metrics") != 0)
		return cli_http_send_text(connection, MHD_HTTP_NOT_FOUND, "Not found: the metrics are at /metrics.\n");
	struct MHD_Response *response = wait_for_answer(s);
	return response ? cli_http_send(connection, MHD_HTTP_OK, WEFT_METRICS_CONTENT_TYPE, response)
			: cli_http_send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "The server is still reading the traces; try again later.\n");
}

static bool start_daemon(struct cli_metrics_server *s)
{
	sigset_t all, before;
	sigfillset(&all);
	/* Signals are blocked in the server's thread, because the thread that follows the traces handles them. */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	s->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer_request, s,
	    MHD_OPTION_LISTEN_SOCKET, s->address.socket, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return s->daemon;
}

int cli_metrics_server_start(struct cli_metrics_server **out, const char *verb, const char *listen_at)
{
	char url[CLI_HTTP_URL_BYTES];
	struct cli_metrics_server *s = calloc(1, sizeof *s);
	if (!s)
		return cli_fail_verb(verb, "%s", weft_status_string(WEFT_ENOMEM));
	const int exit = cli_http_listen(&s->address, verb, "metrics", listen_at, CLI_METRICS_PORT);
	if (exit >= 0) {
		free(s);
		return exit;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->answered, NULL);
	s->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wakes < 0 || !start_daemon(s)) {
		const int error = errno;
		close(s->address.socket);
		cli_metrics_server_stop(s);
		return cli_fail_verb(verb, "cannot start the server: %s", strerror(error));
	}
	cli_note("metrics are at %s/metrics", cli_http_format_url(&s->address, url));
	if (!s->address.is_loopback)
		cli_note("everyone who reaches this address can read the metrics, with the names of requests");
	*out = s;
	return -1;
}

void cli_metrics_server_stop(struct cli_metrics_server *s)
{
	if (!s)
		return;
	/* Requests that still wait end now. */
	pthread_mutex_lock(&s->lock);
	s->answers = UINT64_MAX;
	pthread_cond_broadcast(&s->answered);
	pthread_mutex_unlock(&s->lock);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->wakes >= 0)
		close(s->wakes);
	pthread_cond_destroy(&s->answered);
	pthread_mutex_destroy(&s->lock);
	weft_vec_free(&s->text);
	free(s);
}

bool cli_metrics_server_wait(struct cli_metrics_server *s, int64_t ns)
{
	const struct timespec time = {ns / 1000000000, ns % 1000000000};
	struct pollfd wakes = {.fd = s ? s->wakes : -1, .events = POLLIN};
	uint64_t requests;
	return ppoll(&wakes, 1, &time, NULL) > 0 && read(wakes.fd, &requests, sizeof requests) > 0;
}

void cli_metrics_server_answer(struct cli_metrics_server *s, cli_bytes *text)
{
	pthread_mutex_lock(&s->lock);
	weft_vec_free(&s->text);
	s->text.items = text->items;
	s->text.count = text->count;
	s->text.capacity = text->capacity;
	s->answers = s->asked;
	pthread_cond_broadcast(&s->answered);
	pthread_mutex_unlock(&s->lock);
	*text = (cli_bytes){0};
}

#else
#include "feature_list.h"

int cli_metrics_server_start(struct cli_metrics_server **out, const char *verb, const char *listen_at)
{
	(void)out, (void)listen_at;
	return cli_fail_without(verb, CLI_FEATURE_SERVER);
}

void cli_metrics_server_stop(struct cli_metrics_server *server)
{
	(void)server;
}

bool cli_metrics_server_wait(struct cli_metrics_server *server, int64_t ns)
{
	const struct timespec time = {ns / 1000000000, ns % 1000000000};
	(void)server;
	nanosleep(&time, NULL);
	return false;
}

void cli_metrics_server_answer(struct cli_metrics_server *server, cli_bytes *text)
{
	(void)server, (void)text;
}

#endif
