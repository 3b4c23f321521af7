/* crawl FAULT SEED: a crawler in weft's promises: it fetches pages over a few connections, as many at once as a semaphore lets
 * it, asks for none twice, parses each, and writes what it found into a file that one page at a time may have.  The site is
 * served by the same process.  FAULT is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

enum { PAGES = 80 };

struct page {
	int number, tries;
	struct weft_promise *fetched;
	char request[16];
};

static const char *fault;
static struct weft_uv *uv;
static struct weft_semaphore *at_once;
static struct weft_pool *connections;
static struct weft_mvar *report;
static struct page pages[PAGES];
static struct sockaddr_in address;
static struct weft_resolver *never;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(const struct page *p, const char *name)
{
	return is(name) && p->number % 20 == 17;
}

static void compute_for(int ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	while (uv_hrtime() < end)
		;
}

/* ---- The site ---- */

static struct weft_promise *serve_next(void *ctx, void *nothing);

static struct weft_promise *send_page(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_write(ctx, "<page>", 6), serve_next, ctx, NULL);
}

static struct weft_promise *on_request(void *ctx, void *value)
{
	struct weft_uv_bytes *bytes = value;
	if (!bytes->size)
		return weft_promise_unit();
	int number = atoi(bytes->data);
	int ms = is("late") && number % 20 == 17 ? 300 : 1 + (int)(lrand48() % 4);
	return weft_promise_bind(weft_uv_sleep(uv, ms), send_page, ctx, NULL);
}

static struct weft_promise *serve_next(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_read(ctx, 64), on_request, ctx, NULL);
}

static struct weft_promise *accept_next(void *ctx, void *nothing);

static struct weft_promise *on_accepted(void *ctx, void *stream)
{
	weft_promise_ignore_result(serve_next(weft_uv_stream_ref(stream), NULL));
	return accept_next(ctx, NULL);
}

static struct weft_promise *accept_next(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_accept(ctx), on_accepted, ctx, NULL);
}

/* ---- A page ---- */

static struct weft_promise *on_page(void *ctx, void *bytes)
{
	struct page *p = ctx;
	p->tries++;
	if (p->number % 20 == 7 && (p->tries == 1 || (is("storm") && p->tries < 200)))
		return weft_promise_fail(503, "the site is busy");
	if (hits(p, "token"))
		return weft_promise_fail(404, "no such page");
	return weft_promise_unit();
}

struct exchange {
	struct page *page;
	struct weft_uv_stream *stream;
};

static struct weft_promise *read_answer(void *ctx, void *nothing)
{
	struct exchange *e = ctx;
	return weft_promise_bind(weft_uv_read(e->stream, 64), on_page, e->page, NULL);
}

static struct weft_promise *ask(void *ctx, void *connection)
{
	struct page *p = ctx;
	struct exchange *e = malloc(sizeof *e);
	*e = (struct exchange){p, connection};
	int size = snprintf(p->request, sizeof p->request, "%d\n", p->number);
	weft_promise_label("exchange");
	if (hits(p, "pool"))
		return weft_promise_named_wait("upload", &never);
	return weft_promise_bind(weft_uv_write(connection, p->request, size), read_answer, e, free);
}

static struct weft_promise *connect_to_site(void *ctx)
{
	return weft_uv_tcp_connect(uv, (struct sockaddr *)&address);
}

static struct weft_promise *fetch(struct page *p);

static struct weft_promise *fetch_again(void *ctx, void *nothing)
{
	return fetch(ctx);
}

static struct weft_promise *on_failure(void *ctx, const struct weft_failure *failure)
{
	if (failure->code != 503)
		return weft_promise_fail(failure->code, failure->message);
	return weft_promise_bind(weft_uv_sleep(uv, is("storm") ? 0 : 3), fetch_again, ctx, NULL);
}

static struct weft_promise *fetch(struct page *p)
{
	return weft_promise_catch(weft_pool_use(connections, ask, p, NULL), on_failure, p, NULL);
}

static struct weft_promise *release(void *ctx, void *nothing)
{
	weft_semaphore_release(at_once);
	return weft_promise_unit();
}

static struct weft_promise *fetch_now(void *ctx, void *nothing)
{
	weft_promise_label("fetching");
	return weft_promise_bind(fetch(ctx), release, ctx, NULL);
}

/* ---- What was found ---- */

static struct weft_promise *give_report_back(void *ctx, void *nothing)
{
	struct page *p = ctx;
	if (hits(p, "mvar"))
		return weft_promise_unit();
	return weft_mvar_put(report, "report", NULL);
}

static struct weft_promise *write_down(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_sleep(uv, 1), give_report_back, ctx, NULL);
}

static struct weft_promise *check_links(void *ctx, void *nothing)
{
	return weft_promise_fail(1, "a link is broken");
}

static struct weft_promise *parse(void *ctx, void *nothing)
{
	struct page *p = ctx;
	weft_promise_label("parsing");
	if (hits(p, "stall"))
		compute_for(120);
	if (hits(p, "swallowed"))
		weft_promise_unref(weft_promise_bind(weft_uv_sleep(uv, 1), check_links, NULL, NULL));
	return weft_promise_bind(weft_mvar_take(report), write_down, p, NULL);
}

static struct weft_promise *no_page(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_unit(); /* then without it */
}

static struct weft_promise *after_linked(void *ctx, void *nothing)
{
	return parse(ctx, NULL);
}

static struct weft_promise *with_linked_page(void *ctx, void *nothing)
{
	struct page *p = ctx; /* one that refers to another needs that first */
	int linked = is("circle") && p->number % 20 == 16 ? p->number + 1 : p->number - 1;
	return weft_promise_bind(weft_promise_ref(pages[linked].fetched), after_linked, p, NULL);
}

static struct weft_promise *crawl(struct page *p)
{
	struct weft_promise *fetched = weft_promise_bind(weft_semaphore_acquire(at_once), fetch_now, p, NULL);
	bool needs_another = p->number % 20 == 17 || (is("circle") && p->number % 20 == 16);
	return weft_promise_catch(
	    weft_promise_bind(fetched, needs_another && !is("token") ? with_linked_page : parse, p, NULL), no_page, p, NULL);
}

static struct weft_promise *next_page(void *ctx, void *nothing)
{
	static int begun;
	static struct weft_promise *all[PAGES];
	char label[16];
	if (begun == PAGES)
		return weft_promise_join(all, PAGES);
	struct page *p = &pages[begun];
	p->number = begun;
	p->fetched = crawl(p);
	all[begun] = weft_promise_ref(p->fetched);
	snprintf(label, sizeof label, "page %d", begun++);
	weft_promise_set_label(p->fetched, label);
	weft_promise_should_resolve(p->fetched);
	return weft_promise_bind(weft_uv_sleep(uv, 1 + lrand48() % 4), next_page, NULL, NULL);
}

static struct weft_promise *begin(void *ctx, void *listener)
{
	int size = sizeof address;
	uv_tcp_getsockname((uv_tcp_t *)weft_uv_stream_handle(listener), (struct sockaddr *)&address, &size);
	weft_promise_ignore_result(accept_next(weft_uv_stream_ref(listener), NULL));
	return next_page(NULL, NULL);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	uv = weft_uv_create(NULL);
	at_once = weft_semaphore_create(4);
	connections = weft_pool_create(3, connect_to_site, NULL, NULL);
	report = weft_mvar_create("report", "report", NULL);
	uv_ip4_addr("127.0.0.1", 0, &address);
	struct weft_promise *all = weft_promise_bind(weft_uv_tcp_listen(uv, (struct sockaddr *)&address, 8), begin, NULL, NULL);
	int status = weft_uv_run(uv, all, is("none") ? 0 : 1500);
	_exit(status != WEFT_OK);
}
