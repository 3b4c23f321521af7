/* jobs.c [storm|backlog|orders|threads|gives-up|protected|hasty|errors]: a client that works through jobs, in weft's promises.
 *
 * storm: the server does not listen, and the client retries every ms.  backlog, orders: jobs arrive three times as fast as they
 * are done.  threads: long computations use all OS threads of the pool, so a request for the size of a file is late.  gives-up: a
 * timeout ends the wait for a job, but the job continues.  hasty: each timeout is shorter than its job.  protected: an answer
 * that is protected from cancellation never comes.  Two runs are healthy.  Without an argument, all jobs succeed, and retries to
 * a server that is down for a moment get slower.  With "errors", many users get the error that an object is missing.
 * SPDX-License-Identifier: ISC */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/uv.h>

enum { REFUSED = 1, NOT_FOUND };

static struct weft_uv *uv;
static const char *fault = "";

static void run(struct weft_promise *p)
{
	weft_uv_run(uv, p, 0);
	weft_promise_unref(p);
}

static struct weft_promise *nothing(void *ctx, void *value)
{
	return weft_promise_unit();
}

static struct weft_promise *give_up(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_unit();
}

/* ---- retries ---- */

struct call {
	int tries, most;
	unsigned wait_ms;
	struct sockaddr_in server;
};

static struct weft_promise *call(void *ctx, void *unused);

static struct weft_promise *wait_and_call(void *ctx, const struct weft_failure *failure)
{
	struct call *c = ctx;
	if (++c->tries == c->most)
		return weft_promise_fail(failure->code, failure->message);
	if (strcmp(fault, "storm"))
		c->wait_ms *= 2;
	return weft_promise_bind(weft_uv_sleep(uv, c->wait_ms), call, c, NULL);
}

static struct weft_promise *connected(void *ctx, void *stream)
{
	return weft_promise_unit();
}

static struct weft_promise *call(void *ctx, void *unused)
{
	struct call *c = ctx;
	struct weft_promise *p = weft_uv_tcp_connect(uv, (struct sockaddr *)&c->server);
	return weft_promise_catch(weft_promise_bind(p, connected, c, NULL), wait_and_call, c, NULL);
}

/* Returns a port on which no program listens. */
static struct sockaddr_in reserve_port(int *socket_of)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	*socket_of = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(*socket_of, (struct sockaddr *)&address, size) < 0 ||
	    getsockname(*socket_of, (struct sockaddr *)&address, &size) < 0)
		exit(2);
	return address;
}

static void start_listening(uv_timer_t *timer)
{
	listen(*(int *)timer->data, 5);
}

static void ask_again(void)
{
	int server;
	struct call c = {.wait_ms = 1, .most = strcmp(fault, "storm") ? 20 : 300, .server = reserve_port(&server)};
	uv_timer_t later = {.data = &server};
	uv_timer_init(weft_uv_loop(uv), &later);
	if (strcmp(fault, "storm"))
		uv_timer_start(&later, start_listening, 40, 0);
	run(weft_promise_catch(call(&c, NULL), give_up, NULL, NULL));
	uv_close((uv_handle_t *)&later, NULL);
	run(weft_uv_sleep(uv, 1));
	close(server);
}

/* ---- a queue without a bound ---- */

static struct weft_counter queue = WEFT_PROMISE_COUNTER("jobs in the queue", 0);
static int queued, brought;

static struct weft_promise *work_off(void *ctx, void *unused)
{
	if (queued > 0) {
		queued--;
		weft_counter_increase(&queue, -1);
	}
	if (queued == 0 && brought == 300)
		return weft_promise_unit();
	if (brought == 300 && !strcmp(fault, "backlog"))
		return weft_promise_unit();
	return weft_promise_bind(weft_uv_sleep(uv, 2), work_off, NULL, NULL);
}

static struct weft_promise *bring(void *ctx, void *unused)
{
	if (brought == 300)
		return weft_promise_unit();
	int burst = strcmp(fault, "backlog") ? 1 : 3;
	for (int i = 0; i < burst && brought < 300; i++, brought++, queued++)
		weft_counter_increase(&queue, 1);
	return weft_promise_bind(weft_uv_sleep(uv, 2), bring, NULL, NULL);
}

static void bring_and_work_off(void)
{
	struct weft_promise *both[2] = {bring(NULL, NULL), work_off(NULL, NULL)};
	run(weft_promise_join(both, 2));
}

/* ---- orders, each a promise ---- */

static struct weft_resolver *orders[300];
static int taken, served;

static struct weft_promise *serve(void *ctx, void *unused)
{
	if (served < taken)
		weft_wakeup(orders[served++], NULL, NULL);
	return served < taken || taken < 300 ? weft_promise_bind(weft_uv_sleep(uv, 2), serve, NULL, NULL) : weft_promise_unit();
}

static struct weft_promise *take_orders(void *ctx, void *unused)
{
	int burst = strcmp(fault, "orders") ? 1 : 3;
	for (int i = 0; i < burst && taken < 300; i++) {
		char name[32];
		snprintf(name, sizeof name, "order %d", 1000 + taken);
		struct weft_promise *order = weft_promise_named_task(name, &orders[taken++]);
		struct weft_promise *answer = weft_promise_bind(order, nothing, NULL, NULL);
		weft_promise_should_resolve(answer);
		weft_promise_ignore_result(answer);
	}
	return taken == 300 ? weft_promise_unit() : weft_promise_bind(weft_uv_sleep(uv, 2), take_orders, NULL, NULL);
}

static void take_and_serve(void)
{
	struct weft_promise *both[2] = {take_orders(NULL, NULL), serve(NULL, NULL)};
	struct weft_promise *all = weft_promise_join(both, 2);
	if (!strcmp(fault, "orders")) { /* the program ends when the last order has arrived, before all are served */
		run(weft_promise_ref(both[0]));
		weft_promise_unref(all);
	} else {
		run(all);
	}
}

/* ---- the pool of OS threads ---- */

static struct weft_value compute(void *ctx)
{
	struct timespec now, end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	int64_t end_ns = end.tv_sec * 1000000000LL + end.tv_nsec + *(int64_t *)ctx;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * 1000000000LL + now.tv_nsec < end_ns);
	return (struct weft_value){NULL, NULL};
}

static void use_threads(void)
{
	int64_t ns = strcmp(fault, "threads") ? 3000000 : 150000000;
	struct weft_promise *all[5];
	for (int i = 0; i < 4; i++)
		all[i] = weft_uv_work(uv, compute, &ns, NULL);
	all[4] = weft_promise_bind(weft_uv_stat(uv, "/"), nothing, NULL, NULL);
	run(weft_promise_join(all, 5));
}

/* ---- a job that takes too long ---- */

static struct weft_promise *step(void *ctx, void *unused)
{
	int *left = ctx;
	int64_t ns = strcmp(fault, "gives-up") ? 200000 : 2000000;
	compute(&ns);
	/* The job awaits a promise that is protected from cancellation, so it is not cancelled and runs on. */
	return --*left == 0 ? weft_promise_unit()
			    : weft_promise_bind(weft_promise_protected(weft_uv_sleep(uv, 4)), step, left, NULL);
}

static void wait_at_most(void)
{
	int left = strcmp(fault, "gives-up") ? 3 : 30;
	struct weft_promise *report = weft_promise_protected(weft_promise_bind(weft_uv_sleep(uv, 1), step, &left, NULL));
	run(weft_promise_catch(weft_uv_with_timeout(uv, 30, report), give_up, NULL, NULL));
	while (left > 0)
		run(weft_uv_sleep(uv, 5));
}

static void wait_too_short(void)
{
	enum { TIMES = 12, LIMIT_MS = 30 };
	const unsigned took_ms = strcmp(fault, "hasty") ? 2 : 4 * LIMIT_MS;
	for (int i = 0; i < TIMES; i++)
		run(weft_promise_catch(weft_uv_with_timeout(uv, LIMIT_MS, weft_uv_sleep(uv, took_ms)), give_up, NULL, NULL));
}

/* ---- answers ---- */

static void wait_for_answer(void)
{
	struct weft_resolver *resolver;
	struct weft_promise *wait = weft_promise_named_wait("answer", &resolver);
	struct weft_promise *p = weft_promise_bind(weft_promise_protected(weft_promise_ref(wait)), nothing, NULL, NULL);
	weft_promise_should_resolve(p);
	run(weft_uv_sleep(uv, 100));
	if (strcmp(fault, "protected"))
		weft_wakeup(resolver, NULL, NULL);
	weft_promise_unref(wait);
	weft_promise_unref(p);
}

static struct weft_promise *not_there(void *ctx, void *unused)
{
	char label[40];
	snprintf(label, sizeof label, "GET /item/%d", *(int *)ctx);
	weft_promise_label(label);
	return weft_promise_fail(NOT_FOUND, "404 not found");
}

static void request_missing_pages(void)
{
	for (int i = 0; i < 200; i++)
		run(weft_promise_catch(weft_promise_bind(weft_uv_sleep(uv, 1), not_there, &i, NULL), give_up, NULL, NULL));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*job)(void);
	} jobs[] = {{"storm", ask_again}, {"backlog", bring_and_work_off}, {"orders", take_and_serve}, {"threads", use_threads},
	    {"gives-up", wait_at_most}, {"protected", wait_for_answer}, {"hasty", wait_too_short},
	    {"errors", request_missing_pages}};
	if (argc > 1)
		fault = argv[1];
	uv = weft_uv_create(NULL);
	for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
		if (*fault ? !strcmp(fault, jobs[i].name) : strcmp(jobs[i].name, "errors"))
			jobs[i].job();
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}
