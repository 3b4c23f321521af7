/* choices.c [alive|stuck|lost]: promises that wait in a cycle through a choice.
 *
 * The order waits for the first of two promises, the stock or an alternative; the stock waits for the order.  alive: the
 * alternative is a timer that is pending when the program ends.  stuck: the alternative waits for the order, too.  lost: in
 * weft's promises, a choice becomes another promise, and the ring overwrites that event; the program ends in the middle of its
 * work.  Without an argument, the timer fires.  Only stuck is a fault.  SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

static struct weft_uv *uv;

static void circle(bool is_stuck, bool timer_comes)
{
	weft_id order = WEFT_CREATE(WEFT_KIND_TASK), stock = WEFT_CREATE(WEFT_KIND_TASK);
	weft_id choice = weft_create(order, WEFT_KIND_PICK, WEFT_SITE());
	weft_id other = weft_create(order, is_stuck ? WEFT_KIND_TASK : WEFT_KIND_TIMER, WEFT_SITE());
	WEFT_LABEL(order, "order");
	WEFT_LABEL(stock, "stock");
	weft_label(other, is_stuck ? "supplier" : "timeout");
	weft_should_resolve(order);
	weft_await(order, choice);
	weft_await(choice, stock);
	weft_await(choice, other);
	weft_await(stock, order);
	if (is_stuck)
		weft_await(other, order);
	weft_idle(WEFT_IDLE_WAIT);
	usleep(20000);
	weft_resume(WEFT_SYSTEM_ID);
	if (timer_comes) {
		weft_resolve(WEFT_SYSTEM_ID, other);
		weft_read(choice, other);
		weft_resolve(choice, choice);
		weft_read(order, choice);
		weft_resolve(order, order);
		weft_read(stock, order);
		weft_resolve(stock, stock);
	}
}

static struct weft_promise *again(void *ctx, void *value);

static struct weft_promise *turn(void)
{
	return weft_promise_bind(weft_uv_sleep(uv, 0), again, NULL, NULL);
}

static struct weft_promise *again(void *ctx, void *value)
{
	static int turns;
	if (++turns == 4000)
		_exit(0);
	return turn();
}

/* Waits for the first of two promises, which last longer than a lap of the ring. */
static struct weft_promise *choose(void *ctx, void *value)
{
	struct weft_promise *each[] = {turn(), weft_uv_sleep(uv, 100000)};
	return weft_promise_pick(each, 2);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (strcmp(what, "lost") != 0) {
		circle(!strcmp(what, "stuck"), !*what);
		return 0;
	}
	uv = weft_uv_create(NULL);
	struct weft_promise *each[] = {weft_promise_bind(weft_uv_sleep(uv, 1), choose, NULL, NULL), weft_uv_sleep(uv, 100000)};
	struct weft_promise *all = weft_promise_join(each, 2);
	weft_uv_run(uv, all, 0);
	return 0;
}
