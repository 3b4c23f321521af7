/* orders FAULT SEED: a shop's orders in weft's promises: they come from outside, wait for a token of the rate limit, are paid
 * (tried again on failure), booked under the locks of two accounts, and packed by a few workers.  FAULT is one everyday mistake,
 * or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

struct order {
	int number, tries;
};

static const char *fault;
static struct weft_uv *uv;
static struct weft_semaphore *tokens;
static struct weft_mutex *stock, *ledger;
static struct weft_bounded *to_pack;
static struct weft_condition *prices_came;
static struct weft_mvar *printer;
static struct weft_counter in_warehouse = WEFT_PROMISE_COUNTER("parcels in the warehouse", 0);
static struct weft_resolver *forgotten;
static bool prices_known;
static int orders;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool hits(const struct order *o, const char *name)
{
	return is(name) && o->number % 10 == 7;
}

static int between(int least, int most)
{
	return least + (int)(lrand48() % (most - least + 1));
}

static void compute_for(int ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000;
	while (uv_hrtime() < end)
		;
}

/* ---- The prices, which all orders need ---- */

static struct weft_promise *tell_prices(void *ctx, void *nothing)
{
	prices_known = true;
	weft_condition_broadcast(prices_came, NULL, NULL);
	return weft_promise_unit();
}

static struct weft_promise *await_prices(void *ctx, void *nothing)
{
	if (prices_known && !is("wakeup"))
		return weft_promise_unit();
	return weft_condition_wait(prices_came, NULL);
}

/* ---- Payment ---- */

static struct weft_promise *pay(void *ctx, void *nothing);

static struct weft_value compute_tax(void *ctx)
{
	compute_for(is("pool") ? 120 : 1);
	return (struct weft_value){NULL, NULL};
}

static struct weft_promise *bank_answered(void *ctx, void *nothing)
{
	struct order *o = ctx;
	o->tries++;
	if (is("retries") && o->number == 7 ? o->tries < 300 : lrand48() % 12 == 0)
		return weft_promise_fail(5, "the bank is busy");
	return weft_promise_unit();
}

static struct weft_promise *pay_again(void *ctx, const struct weft_failure *failure)
{
	struct order *o = ctx;
	if (!is("retries") && !is("deadline") && o->tries > 3)
		return weft_promise_unit(); /* on account */
	return weft_promise_bind(weft_uv_sleep(uv, is("retries") || is("deadline") ? 0 : 5), pay, o, NULL);
}

static struct weft_promise *ask_bank(struct order *o)
{
	if (hits(o, "lost"))
		return weft_promise_named_wait("answer of the bank", &forgotten);
	struct weft_promise *p = weft_uv_sleep(uv, hits(o, "slow") ? 300 : is("deadline") ? 6 : between(1, 4));
	return weft_promise_bind(p, bank_answered, o, NULL);
}

static struct weft_promise *pay(void *ctx, void *nothing)
{
	struct order *o = ctx;
	weft_promise_label("payment");
	if (is("deadline") && o->tries++ > 60)
		return weft_promise_unit();
	struct weft_promise *p = is("lost") ? ask_bank(o) : weft_uv_with_timeout(uv, is("deadline") ? 3 : 2000, ask_bank(o));
	return weft_promise_catch(p, pay_again, o, NULL);
}

/* ---- Booking, under two locks ---- */

static struct weft_promise *book(void *ctx)
{
	return weft_uv_sleep(uv, 1);
}

static struct weft_promise *then_ledger(void *ctx, void *nothing)
{
	return weft_mutex_with_lock(ledger, book, ctx, NULL);
}

static struct weft_promise *then_stock(void *ctx, void *nothing)
{
	return weft_mutex_with_lock(stock, book, ctx, NULL);
}

static struct weft_promise *stock_first(void *ctx)
{
	return weft_promise_bind(weft_uv_sleep(uv, 1), then_ledger, ctx, NULL);
}

static struct weft_promise *ledger_first(void *ctx)
{
	return weft_promise_bind(weft_uv_sleep(uv, 1), then_stock, ctx, NULL);
}

static struct weft_promise *counted(void *ctx, void *nothing)
{
	if (is("unlocked"))
		return weft_promise_fail(9, "out of stock");
	weft_mutex_unlock(stock);
	return weft_promise_unit();
}

static struct weft_promise *out_of_stock(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_unit(); /* and the lock stays locked */
}

static struct weft_promise *count_stock(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_sleep(uv, 1), counted, ctx, NULL);
}

static struct weft_promise *book_order(void *ctx, void *nothing)
{
	struct order *o = ctx;
	weft_promise_label("booking");
	if (o->number % 10 == 7) /* count again */
		return weft_promise_catch(weft_promise_bind(weft_mutex_lock(stock), count_stock, o, NULL), out_of_stock, o, NULL);
	if (is("deadlock") && o->number % 2)
		return weft_mutex_with_lock(ledger, ledger_first, o, NULL);
	return weft_mutex_with_lock(stock, stock_first, o, NULL);
}

/* ---- Packing ---- */

static struct weft_promise *next_parcel(void *ctx, void *nothing);

static struct weft_promise *parcel_packed(void *ctx, void *nothing)
{
	weft_counter_increase(&in_warehouse, -1);
	return next_parcel(ctx, NULL);
}

static struct weft_promise *give_printer_back(void *ctx, void *nothing)
{
	return hits(ctx, "mvar") ? weft_promise_unit() : weft_mvar_put(printer, "printer", NULL);
}

static struct weft_promise *print_label(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_uv_sleep(uv, is("backlog") ? 12 : 1), give_printer_back, ctx, NULL);
}

static struct weft_promise *pack(void *ctx, void *parcel)
{
	struct order *o = parcel;
	weft_promise_label("packing");
	if (hits(o, "sleep"))
		usleep(60000);
	if (hits(o, "crash"))
		abort();
	return weft_promise_bind(weft_promise_bind(weft_mvar_take(printer), print_label, o, NULL), parcel_packed, ctx, NULL);
}

static struct weft_promise *next_parcel(void *ctx, void *nothing)
{
	return weft_promise_bind(weft_bounded_next(to_pack), pack, ctx, NULL);
}

static struct weft_promise *no_more(void *ctx, const struct weft_failure *failure)
{
	return weft_promise_unit();
}

static struct weft_promise *hand_over(void *ctx, void *nothing)
{
	weft_counter_increase(&in_warehouse, 1);
	return weft_bounded_push(to_pack, ctx, NULL);
}

/* ---- An order ---- */

static struct weft_promise *print_report(void *ctx, void *nothing)
{
	return weft_promise_fail(7, "no paper");
}

static struct weft_promise *recommend(void *ctx, void *nothing)
{
	int *left = ctx;
	if (--*left == 0)
		return weft_promise_unit();
	compute_for(4);
	return weft_promise_bind(weft_uv_sleep(uv, 4), recommend, ctx, NULL);
}

static struct weft_promise *begin_to_recommend(void)
{
	static int left = 30;
	return weft_promise_bind(weft_promise_pause(), recommend, &left, NULL);
}

static struct weft_promise *has_token(void *ctx, void *nothing)
{
	struct order *o = ctx;
	if (hits(o, "swallowed"))
		weft_promise_ignore_result(weft_promise_bind(weft_uv_sleep(uv, 1), print_report, NULL, NULL));
	if (is("wasted") && o->number == 7)
		weft_promise_ignore_result(weft_promise_catch(
		    weft_uv_with_timeout(uv, 10, weft_promise_no_cancel(begin_to_recommend())), no_more, NULL, NULL));
	return weft_promise_bind(await_prices(NULL, NULL), pay, o, NULL);
}

static struct weft_promise *give_token_back(void *ctx)
{
	if (!hits(ctx, "token"))
		weft_semaphore_release(tokens);
	return weft_promise_unit();
}

static struct weft_promise *tax(void *ctx, void *nothing)
{
	return weft_uv_work(uv, compute_tax, NULL, NULL);
}

static struct weft_promise *look_at_files(void *ctx, void *nothing)
{
	return is("pool") ? weft_uv_stat(uv, "/") : weft_promise_return(NULL, NULL);
}

static struct weft_promise *process(struct order *o)
{
	struct weft_promise *p = weft_promise_bind(weft_semaphore_acquire(tokens), has_token, o, NULL);
	p = weft_promise_finalize(p, give_token_back, o, NULL);
	p = weft_promise_bind(p, book_order, o, NULL);
	if (o->number % 4 == 0)
		p = weft_promise_bind(p, tax, o, NULL);
	p = weft_promise_bind(p, look_at_files, o, NULL);
	return weft_promise_bind(p, hand_over, o, NULL);
}

static struct weft_promise *all_done(void *ctx, void *nothing)
{
	weft_bounded_close(to_pack);
	return weft_promise_unit();
}

static struct weft_promise *take_order(void *ctx, void *nothing)
{
	static struct order all[200];
	static struct weft_promise *done[200];
	static int count;
	if (count == orders)
		return weft_promise_bind(weft_promise_join(done, count), all_done, NULL, NULL);
	all[count].number = count;
	done[count] = process(&all[count]);
	char label[32];
	snprintf(label, sizeof label, "order %d", count);
	weft_promise_set_label(done[count], label);
	weft_promise_should_resolve(done[count]);
	count++;
	return weft_promise_bind(weft_uv_sleep(uv, between(2, 6)), take_order, NULL, NULL);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	setenv("UV_THREADPOOL_SIZE", "2", 1);
	uv = weft_uv_create(NULL);
	tokens = weft_semaphore_create(5);
	stock = weft_mutex_create_named("stock");
	ledger = weft_mutex_create_named("ledger");
	to_pack = weft_bounded_create(4);
	prices_came = weft_condition_create("prices");
	printer = weft_mvar_create("printer", "printer", NULL);
	orders = is("backlog") ? 150 : is("token") ? 70 : between(30, 80);
	struct weft_promise *all[4];
	for (int i = 0; i < 3; i++)
		all[i] = weft_promise_catch(next_parcel(NULL, NULL), no_more, NULL, NULL);
	weft_promise_ignore_result(weft_promise_bind(weft_uv_sleep(uv, 15), tell_prices, NULL, NULL));
	all[3] = take_order(NULL, NULL);
	struct weft_promise *end = weft_promise_join(all, 4);
	if (weft_uv_run(uv, end, is("none") ? 0 : is("backlog") ? 900 : 1500) != WEFT_OK)
		return 1;
	weft_promise_unref(end);
	weft_mvar_destroy(printer);
	weft_condition_destroy(prices_came);
	weft_bounded_destroy(to_pack);
	weft_mutex_destroy(ledger);
	weft_mutex_destroy(stock);
	weft_semaphore_destroy(tokens);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}
