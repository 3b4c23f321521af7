/* stall.c: four clients wait for the same prices; one client computes for 80 ms before the others run.
 *
 * docs/tutorial-diagnosing.md finds it.  SPDX-License-Identifier: ISC */
#include <weft/uv.h>

enum { CLIENTS = 3 };

static struct weft_promise *answer_client(void *ctx, void *prices)
{
	return weft_promise_unit();
}

/* Blocks the event loop: never do this. */
static struct weft_promise *make_report(void *ctx, void *prices)
{
	weft_promise_label("report");
	for (uint64_t end = uv_hrtime() + 80000000; uv_hrtime() < end;)
		;
	return weft_promise_unit();
}

int main(void)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	struct weft_resolver *resolver;
	struct weft_promise *prices = weft_promise_named_task("prices", &resolver), *all[CLIENTS + 2];
	if (!uv)
		return 2;
	for (int i = 0; i < CLIENTS; i++)
		all[i] = weft_promise_bind(weft_promise_ref(prices), answer_client, NULL, NULL);
	all[CLIENTS] = weft_promise_bind(prices, make_report, NULL, NULL);
	all[CLIENTS + 1] = weft_uv_sleep(uv, 60); /* a heartbeat that is due meanwhile */
	struct weft_promise *done = weft_promise_join(all, CLIENTS + 2), *fetched = weft_uv_sleep(uv, 10);
	weft_promise_should_resolve(done);
	int status = weft_uv_run(uv, fetched, 0);
	weft_wakeup(resolver, NULL, NULL);
	if (status == WEFT_OK)
		status = weft_uv_run(uv, done, 0);
	weft_promise_unref(fetched);
	weft_promise_unref(done);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return status == WEFT_OK ? 0 : 1;
}
