/* deadlock.c: two parts of a program that start each other.
 *
 * Each part is started at its first use; later uses get the same promise.  The log needs the configuration to know where to
 * write.  The configuration is fetched, and the fetch is written to the log.  docs/tutorial-diagnosing.md finds this deadlock.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <weft/uv.h>

static struct weft_uv *uv;
static struct weft_promise *config, *journal; /* NULL until started */

static struct weft_promise *get_journal(void);

static struct weft_promise *config_logged(void *ctx, void *nothing)
{
	return weft_promise_unit();
}

static struct weft_promise *config_fetched(void *ctx, void *nothing)
{
	return weft_promise_bind(get_journal(), config_logged, NULL, NULL);
}

static struct weft_promise *get_config(void)
{
	if (!config)
		config = weft_promise_bind(weft_uv_sleep(uv, 5), config_fetched, NULL, NULL);
	return weft_promise_ref(config);
}

static struct weft_promise *journal_opened(void *ctx, void *nothing)
{
	return weft_uv_sleep(uv, 5);
}

static struct weft_promise *get_journal(void)
{
	if (!journal)
		journal = weft_promise_bind(get_config(), journal_opened, NULL, NULL);
	return weft_promise_ref(journal);
}

int main(void)
{
	uv = weft_uv_create(NULL);
	if (!uv)
		return 2;
	struct weft_promise *ready = get_journal();
	weft_promise_should_resolve(ready);
	int status = weft_uv_run(uv, ready, 300);
	fprintf(
	    stderr, "deadlock: %s\n", status == WEFT_OK ? "started" : "not started, and no event is left that could start it");
	weft_promise_unref(ready);
	return status == WEFT_OK ? 0 : 1;
}
