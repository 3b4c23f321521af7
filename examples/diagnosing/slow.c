/* slow.c: ten concurrent requests; each queries the database for 10 ms over the only connection.
 *
 * docs/tutorial-diagnosing.md finds the time that they lose.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <weft/uv.h>

enum { REQUESTS = 10 };

static struct weft_uv *uv;
static struct weft_mutex *database;

static void on_rows(void *request, void *rows)
{
	weft_wakeup(request, NULL, NULL);
}

/* A query of the database, which does not use promises. */
struct query {
	uv_timer_t timer;
	struct weft_resolver *resolver;
};

static void free_query(uv_handle_t *timer)
{
	free(timer->data);
}

static void rows_came(uv_timer_t *timer)
{
	struct query *query = timer->data;
	uv_close((uv_handle_t *)timer, free_query);
	weft_wakeup(query->resolver, NULL, NULL);
}

static struct weft_promise *ask(void *ctx)
{
	struct query *query = calloc(1, sizeof *query);
	if (!query)
		return NULL;
	query->timer.data = query;
	uv_timer_init(weft_uv_loop(uv), &query->timer);
	uv_timer_start(&query->timer, rows_came, 10, 0);
	return weft_promise_named_task("query", &query->resolver);
}

int main(void)
{
	struct weft_promise *requests[REQUESTS];
	uv = weft_uv_create(NULL);
	database = weft_mutex_create();
	if (!uv || !database)
		return 2;
	for (int i = 0; i < REQUESTS; i++) {
		struct weft_resolver *request;
		requests[i] = weft_promise_of_kind(WEFT_KIND_REQUEST, true, "GET /cart", &request);
		weft_promise_on_success(weft_mutex_with_lock(database, ask, NULL, NULL), on_rows, request, NULL);
	}
	struct weft_promise *done = weft_promise_join(requests, REQUESTS);
	weft_promise_should_resolve(done);
	int status = weft_uv_run(uv, done, 0);
	weft_promise_unref(done);
	weft_mutex_destroy(database);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return status == WEFT_OK ? 0 : 1;
}
