/* bank.c [deadlock|again]: transfers between accounts, in weft's promises; each transfer holds the locks of both accounts.
 *
 * deadlock: each transfer first takes the lock of the account that pays.  again: a transfer takes a lock that it already holds.
 * Without an argument, the program has no fault.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/uv.h>

enum { ACCOUNTS = 3, TRANSFERS = 6 };

static struct weft_uv *uv;
static struct weft_mutex *lock[ACCOUNTS];
static const char *fault = "";

struct transfer {
	int first, second;
	struct weft_resolver *request;
};

static struct weft_promise *move_money(void *ctx)
{
	return weft_uv_sleep(uv, 1);
}

static struct weft_promise *take_second(void *ctx, void *nothing)
{
	struct transfer *t = ctx;
	return weft_mutex_with_lock(lock[t->second], move_money, NULL, NULL);
}

static struct weft_promise *take_first(void *ctx)
{
	return weft_promise_bind(weft_uv_sleep(uv, 2), take_second, ctx, NULL);
}

static void moved(void *ctx, void *nothing)
{
	struct transfer *t = ctx;
	weft_wakeup(t->request, NULL, NULL);
}

static struct weft_promise *transfer(int from, int to)
{
	struct transfer *t = malloc(sizeof *t);
	char name[32];
	bool in_order = strcmp(fault, "deadlock") != 0;
	t->first = in_order && from > to ? to : from;
	t->second = in_order && from > to ? from : to;
	if (!strcmp(fault, "again") && from == 1)
		t->second = t->first;
	snprintf(name, sizeof name, "transfer %c to %c", 'A' + from, 'A' + to);
	struct weft_promise *request = weft_promise_of_kind(WEFT_KIND_REQUEST, true, name, &t->request);
	weft_promise_on_success(weft_mutex_with_lock(lock[t->first], take_first, t, NULL), moved, t, free);
	return request;
}

int main(int argc, char **argv)
{
	static const char *const names[ACCOUNTS] = {"account A", "account B", "account C"};
	struct weft_promise *all[TRANSFERS];
	fault = argc > 1 ? argv[1] : "";
	uv = weft_uv_create(NULL);
	for (int i = 0; i < ACCOUNTS; i++)
		lock[i] = weft_mutex_create_named(names[i]);
	for (int i = 0; i < TRANSFERS; i++)
		all[i] = transfer(i % ACCOUNTS, (i + 1) % ACCOUNTS);
	struct weft_promise *done = weft_promise_join(all, TRANSFERS);
	weft_promise_should_resolve(done);
	int status = weft_uv_run(uv, done, 0);
	weft_uv_destroy(uv);
	return status == WEFT_OK ? 0 : 1;
}
