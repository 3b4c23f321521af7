/* deploy.c: builds and uploads packages with weft's promises on libuv.
 *
 * Each package is fetched from a registry over TCP, compiled by a child process (two at a time), entered into two lists under
 * locks, and uploaded.  A package that does not compile is left out.  The registry is an OS thread with blocking sockets.
 *
 * Usage: judge-deploy FAULT [SEED].  Healthy: none, healthy-slow, healthy-timeouts, healthy-polls, healthy-idle.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/uv.h>

enum { PACKAGES = 16, LINKS = 3, COMPILERS = 2, TRIES = 150, LATE_MS = 120 };

struct package {
	int number, tries;
	struct weft_promise *built;
	struct weft_uv_stream *input;
	char request[32];
};

static const char *fault;
static struct weft_uv *uv;
static struct weft_pool *links;
static struct weft_semaphore *compilers;
static struct weft_mutex *manifest, *ledger;
static struct weft_mvar *signature;
static struct weft_condition *registry_ready;
static struct weft_resolver *approvals[PACKAGES];
static struct package packages[PACKAGES];
static struct sockaddr_in registry;
static int seed, manifest_length, ledger_length, registry_fd;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

/* ---- The registry: an OS thread for each connection ---- */

static void *serve_link(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char line[64];
	ssize_t n;
	while ((n = recv(fd, line, sizeof line - 1, 0)) > 0) {
		line[n] = 0;
		int number = atoi(line + 4);
		if (is("silent") && number == 7)
			continue;
		if (is("healthy-slow") || is("timeout") || (is("healthy-timeouts") && number == 7 && !strncmp(line, "get ", 4)))
			usleep(LATE_MS * 1000);
		if (is("healthy-polls") && number == 3)
			usleep(800000); /* the answer comes when there is a new version */
		if (send(fd, "ok\n", 3, MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static void *be_registry(void *nothing)
{
	for (;;) {
		pthread_t thread;
		int fd = accept4(registry_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return nothing;
		pthread_create(&thread, NULL, serve_link, (void *)(intptr_t)fd);
		pthread_detach(thread);
	}
}

static void start_registry(void)
{
	pthread_t thread;
	socklen_t length = sizeof registry;
	registry = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	registry_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(registry_fd, (struct sockaddr *)&registry, sizeof registry) < 0 || listen(registry_fd, 64) < 0)
		perror("registry");
	getsockname(registry_fd, (struct sockaddr *)&registry, &length);
	pthread_create(&thread, NULL, be_registry, NULL);
	pthread_detach(thread);
}

/* ---- Fetch and upload, over the links of a pool ---- */

static struct weft_promise *connect_link(void *nothing)
{
	(void)nothing;
	return weft_uv_tcp_connect(uv, (struct sockaddr *)&registry);
}

static void drop_link(void *link)
{
	weft_uv_stream_unref(link);
}

static struct weft_promise *read_answer(void *ctx, void *nothing)
{
	(void)nothing;
	return weft_uv_read(ctx, 64);
}

static struct weft_promise *send_request(void *ctx, void *link)
{
	struct package *package = ctx;
	struct weft_promise *written = weft_uv_write(link, package->request, strlen(package->request));
	return weft_promise_bind(written, read_answer, weft_uv_stream_ref(link), drop_link);
}

static struct weft_promise *check_answer(void *ctx, void *link)
{
	struct weft_promise *answered = send_request(ctx, link);
	if (is("nested")) { /* the checksum comes over a link of its own */
		struct weft_promise *both[] = {answered, weft_pool_use(links, send_request, ctx, NULL)};
		return weft_promise_join(both, 2);
	}
	if (is("timeout") || is("healthy-timeouts"))
		return weft_uv_with_timeout(uv, is("timeout") ? 40 : 80, answered);
	return answered;
}

static struct weft_promise *fetch(struct package *package);

static struct weft_promise *fetch_again(void *ctx, void *nothing)
{
	(void)nothing;
	return fetch(ctx);
}

static struct weft_promise *on_fetch_failed(void *ctx, const struct weft_failure *failure)
{
	struct package *package = ctx;
	if (is("retry") && package->tries++ < TRIES)
		return weft_promise_bind(weft_promise_pause(), fetch_again, package, NULL);
	if (is("timeout") && package->tries++ < 4)
		return fetch(package);
	if (is("healthy-timeouts") && package->tries++ < 1)
		return weft_promise_bind(weft_uv_sleep(uv, LATE_MS), fetch_again, package, NULL);
	fprintf(stderr, "package %d: %s\n", package->number, failure->message);
	return weft_promise_unit();
}

static struct weft_promise *fetch(struct package *package)
{
	snprintf(package->request, sizeof package->request, "get %d\n", package->number);
	struct weft_promise *fetched;
	if (is("retry") && package->number == 5)
		fetched = weft_promise_fail(1, "the registry is locked");
	else
		fetched = weft_pool_use(links, check_answer, package, NULL);
	weft_promise_set_label(fetched, "fetch");
	return weft_promise_catch(fetched, on_fetch_failed, package, NULL);
}

static struct weft_promise *upload(void *ctx, void *nothing)
{
	(void)nothing;
	struct package *package = ctx;
	snprintf(package->request, sizeof package->request, "put %d\n", package->number);
	if (is("ignored") && package->number % 5 == 2) {
		weft_promise_ignore_result(weft_promise_fail(28, "the registry has no space"));
		return weft_promise_unit();
	}
	return weft_pool_use(links, send_request, package, NULL);
}

/* ---- Compile ---- */

static struct weft_promise *compiled(void *ctx, void *value)
{
	struct package *package = ctx;
	const struct weft_uv_exit *result = value;
	weft_uv_stream_unref(package->input);
	if (!is("slots") || !result->code)
		weft_semaphore_release(compilers);
	return result->code && package->number % 4 != 3 ? weft_promise_fail(result->code, "the compiler failed")
							: weft_promise_unit();
}

static struct weft_promise *start_compiler(void *ctx, void *nothing)
{
	(void)nothing;
	struct package *package = ctx;
	const char *script = is("child") && package->number == 6 ? "cat >/dev/null"
			     : package->number % 4 == 3          ? "exit 1"
								 : "exit 0";
	const char *arguments[] = {"sh", "-c", script, NULL};
	package->input = weft_uv_pipe_create(uv);
	struct weft_uv_spawn_options options = {.arguments = arguments, .input.stream = package->input};
	if (is("sleep") && package->number % 5 == 1) { /* waits until the disk is quiet; the end of a child cuts a sleep short */
		const uint64_t end_ns = uv_hrtime() + 250000000;
		while (uv_hrtime() < end_ns)
			usleep(10000);
	}
	return weft_promise_bind(weft_uv_spawn(uv, &options, NULL), compiled, package, NULL);
}

static struct weft_promise *compile(void *ctx, void *nothing)
{
	(void)nothing;
	struct package *package = ctx;
	if (is("circle") && (package->number == 4 || package->number == 5)) { /* each needs the other's headers */
		struct package *other = &packages[9 - package->number];
		return weft_promise_bind(weft_promise_ref(other->built), start_compiler, package, NULL);
	}
	return weft_promise_bind(weft_semaphore_acquire(compilers), start_compiler, package, NULL);
}

/* ---- The two lists ---- */

static struct weft_promise *count_in_ledger(void *ctx)
{
	(void)ctx;
	ledger_length++;
	return weft_uv_sleep(uv, 1);
}

static struct weft_promise *count_in_manifest(void *ctx)
{
	(void)ctx;
	manifest_length++;
	return weft_uv_sleep(uv, 1);
}

static struct weft_promise *need_ledger(void *ctx, void *nothing)
{
	(void)nothing;
	return weft_mutex_with_lock(ledger, count_in_ledger, ctx, NULL);
}

static struct weft_promise *need_manifest(void *ctx, void *nothing)
{
	(void)nothing;
	return weft_mutex_with_lock(manifest, count_in_manifest, ctx, NULL);
}

static struct weft_promise *write_manifest(void *ctx)
{
	return weft_promise_bind(count_in_manifest(ctx), need_ledger, ctx, NULL);
}

static struct weft_promise *write_ledger(void *ctx)
{
	return weft_promise_bind(count_in_ledger(ctx), need_manifest, ctx, NULL);
}

static struct weft_promise *enter(void *ctx, void *nothing)
{
	(void)nothing;
	struct package *package = ctx;
	if (is("locks") && package->number % 2)
		return weft_mutex_with_lock(ledger, write_ledger, package, NULL);
	return weft_mutex_with_lock(manifest, write_manifest, package, NULL);
}

/* ---- Signatures and approvals ---- */

static struct weft_promise *give_signature_back(void *ctx, void *nothing)
{
	static int signatures;
	(void)ctx, (void)nothing;
	if (is("mvar") && ++signatures == 5)
		return weft_promise_unit(); /* has signed with a key of its own */
	return weft_mvar_put(signature, "key", NULL);
}

static struct weft_promise *sign(void *ctx, void *nothing)
{
	(void)nothing;
	return weft_promise_bind(weft_mvar_take(signature), give_signature_back, ctx, NULL);
}

static void approve(uv_timer_t *timer)
{
	static int next;
	for (int i = 0; i < PACKAGES; i++)
		if (approvals[i] && !(is("approval") && i == 8)) {
			struct weft_resolver *resolver = approvals[i];
			approvals[i] = NULL;
			next++;
			weft_wakeup(resolver, NULL, NULL);
		}
	if (next == PACKAGES)
		uv_timer_stop(timer);
}

static struct weft_promise *ask_approval(void *ctx, void *nothing)
{
	(void)nothing;
	struct package *package = ctx;
	return weft_promise_named_wait("approval", &approvals[package->number]);
}

/* ---- All of it ---- */

static struct weft_promise *on_build_failed(void *ctx, const struct weft_failure *failure)
{
	fprintf(stderr, "package %d: %s\n", ((struct package *)ctx)->number, failure->message);
	return weft_promise_unit();
}

static struct weft_promise *build(struct package *package)
{
	char label[32];
	snprintf(label, sizeof label, "package %d", package->number);
	struct weft_promise *p = weft_promise_bind(weft_promise_pause(), fetch_again, package, NULL);
	p = weft_promise_bind(p, compile, package, NULL);
	p = weft_promise_bind(p, enter, package, NULL);
	p = weft_promise_bind(p, sign, package, NULL);
	p = weft_promise_bind(p, ask_approval, package, NULL);
	p = weft_promise_bind(p, upload, package, NULL);
	p = weft_promise_catch(p, on_build_failed, package, NULL);
	weft_promise_set_label(p, label);
	return p;
}

static struct weft_promise *begin_builds(void *ctx, void *nothing)
{
	(void)ctx, (void)nothing;
	struct weft_promise *all[PACKAGES];
	for (int i = 0; i < PACKAGES; i++) {
		struct package *package = &packages[(i * 5 + seed) % PACKAGES];
		package->number = (int)(package - packages);
		package->built = build(package);
	}
	for (int i = 0; i < PACKAGES; i++)
		all[i] = weft_promise_ref(packages[i].built);
	return weft_promise_join(all, PACKAGES);
}

static struct weft_promise *announce_registry(void *ctx, void *link)
{
	(void)ctx, (void)link;
	weft_condition_broadcast(registry_ready, NULL, NULL);
	return weft_promise_unit();
}

static struct weft_promise *wait_for_registry(void *ctx, void *nothing)
{
	(void)ctx, (void)nothing;
	return weft_condition_wait(registry_ready, NULL);
}

static struct weft_promise *start(void)
{
	struct weft_promise *connected = weft_promise_bind(connect_link(NULL), announce_registry, NULL, NULL);
	if (is("wakeup")) /* reads its settings first */
		return weft_promise_bind(weft_promise_bind(connected, wait_for_registry, NULL, NULL), begin_builds, NULL, NULL);
	struct weft_promise *ready = weft_condition_wait(registry_ready, NULL);
	weft_promise_ignore_result(connected);
	return weft_promise_bind(ready, begin_builds, NULL, NULL);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	seed = argc > 2 ? atoi(argv[2]) : 1;
	uv_timer_t approver;
	start_registry();
	uv = weft_uv_create(NULL);
	links = weft_pool_create(LINKS, connect_link, NULL, drop_link);
	compilers = weft_semaphore_create(COMPILERS);
	manifest = weft_mutex_create_named("manifest");
	ledger = weft_mutex_create_named("ledger");
	signature = weft_mvar_create("signature", "key", NULL);
	registry_ready = weft_condition_create("registry is ready");
	uv_timer_init(weft_uv_loop(uv), &approver);
	uv_timer_start(&approver, approve, 10, 10);
	struct weft_promise *all = start();
	weft_uv_run(uv, all, 0);
	if (is("healthy-idle")) { /* the links stay open */
		struct weft_promise *quiet = weft_uv_sleep(uv, 700);
		weft_uv_run(uv, quiet, 0);
		weft_promise_unref(quiet);
	}
	weft_promise_unref(all);
	for (int i = 0; i < PACKAGES; i++)
		weft_promise_unref(packages[i].built);
	uv_close((uv_handle_t *)&approver, NULL);
	weft_pool_destroy(links);
	weft_condition_destroy(registry_ready);
	weft_mvar_destroy(signature);
	weft_mutex_destroy(ledger);
	weft_mutex_destroy(manifest);
	weft_semaphore_destroy(compilers);
	weft_uv_destroy(uv);
	weft_promise_trim();
	printf("%d packages in the manifest, %d in the ledger\n", manifest_length, ledger_length);
	return 0;
}
