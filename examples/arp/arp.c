/* arp.c: a small TCP stack that sometimes hangs when it connects.
 *
 *	arp good	the network card reports that it has sent the ARP request, then the answer to it comes
 *	arp bad		the answer comes before the report
 *
 * To connect, TCP sends a segment; IP needs the hardware address of the other side; ARP asks for that address and waits for the
 * answer.  One line of this stack is wrong, which shows only if things happen in the other order: record both.
 *
 *	WEFT_TRACE=good.weft ./arp good; WEFT_TRACE=bad.weft ./arp bad
 *
 * Exits 0: connected, 1: nothing happened for two seconds.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/uv.h>

enum frame_kind { ARP_REQUEST, ARP_RESPONSE, TCP_SYN, TCP_SYN_ACK };

/* ---- The other side of the wire, which does not use promises ---- */

/* An action of the card, for the driver. */
struct notice {
	struct notice *next;
	struct weft_resolver *sent; /* a frame was sent; NULL: one was received */
	enum frame_kind received;
};

struct card {
	uv_async_t interrupt;
	struct notice *first, **last;
	bool reports_late; /* report a sent frame only when the answer has arrived */
};

struct frame_timer {
	uv_timer_t handle;
	struct card *card;
	struct notice *notice;
	struct frame_timer *then; /* the next timer, started afterwards however slow this machine is; NULL: none */
	uint64_t ms;
};

static void free_handle(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_card_done(uv_timer_t *handle)
{
	struct frame_timer *timer = handle->data;
	struct card *card = timer->card;
	*card->last = timer->notice;
	card->last = &timer->notice->next;
	if (timer->then)
		uv_timer_start(&timer->then->handle, on_card_done, timer->then->ms, 0);
	uv_close((uv_handle_t *)handle, free_handle);
	uv_async_send(&card->interrupt);
}

static struct frame_timer *schedule_notice(struct card *card, struct weft_resolver *sent, enum frame_kind received)
{
	struct frame_timer *timer = calloc(1, sizeof *timer);
	struct notice *notice = calloc(1, sizeof *notice);
	if (!timer || !notice)
		abort();
	*notice = (struct notice){NULL, sent, received};
	timer->card = card;
	timer->notice = notice;
	uv_timer_init(card->interrupt.loop, &timer->handle);
	timer->handle.data = timer;
	return timer;
}

static void card_send(struct card *card, enum frame_kind kind, struct weft_resolver *sent)
{
	struct frame_timer *report = schedule_notice(card, sent, kind);
	struct frame_timer *answer = schedule_notice(card, NULL, kind == ARP_REQUEST ? ARP_RESPONSE : TCP_SYN_ACK);
	struct frame_timer *first = card->reports_late ? answer : report;
	first->then = first == report ? answer : report;
	first->then->ms = 20;
	uv_timer_start(&first->handle, on_card_done, 10, 0);
}

/* ---- The stack ---- */

struct stack {
	struct card card;
	struct weft_resolver *port; /* the driver waits for an interrupt */
	bool knows_address;
	struct weft_condition *arp_response;
	struct weft_resolver *connecting;
};

static struct weft_counter tcp_to_ip = WEFT_PROMISE_COUNTER("tcp-to-ip", 0);

/* Is resolved when the card reports that the frame is on the wire. */
static struct weft_promise *ring_write(struct stack *s, enum frame_kind kind)
{
	struct weft_resolver *sent;
	struct weft_promise *p = weft_promise_named_task("ring.write", &sent);
	card_send(&s->card, kind, sent);
	return p;
}

static struct weft_promise *await_response(void *ctx, void *nothing)
{
	struct stack *s = ctx;
	return weft_condition_wait(s->arp_response, NULL);
}

static struct weft_promise *arp_query(struct stack *s)
{
	if (s->knows_address)
		return weft_promise_unit();
	/* The bug: a broadcast during the wait for the write is lost. */
	return weft_promise_bind(ring_write(s, ARP_REQUEST), await_response, s, NULL);
}

static struct weft_promise *send_syn(void *ctx, void *nothing)
{
	struct stack *s = ctx;
	weft_counter_increase(&tcp_to_ip, -1);
	return ring_write(s, TCP_SYN);
}

static struct weft_promise *ip_write(struct stack *s)
{
	weft_counter_increase(&tcp_to_ip, 1);
	return weft_promise_bind(arp_query(s), send_syn, s, NULL);
}

static struct weft_promise *await_connection(void *ctx, void *nothing)
{
	return weft_promise_ref(ctx);
}

static void unref_promise(void *p)
{
	weft_promise_unref(p);
}

static struct weft_promise *tcp_connect(struct stack *s)
{
	struct weft_promise *connection = weft_promise_named_task("TCP connect", &s->connecting);
	return weft_promise_bind(ip_write(s), await_connection, connection, unref_promise);
}

static void frame_received(struct stack *s, enum frame_kind kind)
{
	if (kind == ARP_RESPONSE) {
		s->knows_address = true;
		weft_condition_broadcast(s->arp_response, NULL, NULL);
	} else if (kind == TCP_SYN_ACK) {
		weft_wakeup_later(s->connecting, NULL, NULL);
		s->connecting = NULL;
	}
}

/* Runs the driver: waits for an interrupt, handles the card's notices, and starts again. */
static struct weft_promise *driver(void *ctx, void *interrupt)
{
	struct stack *s = ctx;
	struct notice *notice;
	while ((notice = s->card.first)) {
		if (!(s->card.first = notice->next))
			s->card.last = &s->card.first;
		if (notice->sent)
			weft_wakeup_later(notice->sent, NULL, NULL);
		else
			frame_received(s, notice->received);
		free(notice);
	}
	return weft_promise_bind(weft_promise_named_task("port-4", &s->port), driver, s, NULL);
}

static struct weft_promise *driver_start(void *ctx)
{
	weft_promise_label("network driver");
	return driver(ctx, NULL);
}

static void on_interrupt(uv_async_t *handle)
{
	struct stack *s = handle->data;
	struct weft_resolver *port = s->port;
	s->port = NULL;
	weft_wakeup(port, NULL, NULL);
}

static void close_timer(uv_handle_t *handle, void *card)
{
	struct frame_timer *timer = handle->data;
	if (handle->type != UV_TIMER || uv_is_closing(handle) || timer->card != card)
		return;
	weft_resolver_drop(timer->notice->sent);
	free(timer->notice);
	uv_close(handle, free_handle);
}

int main(int argc, char **argv)
{
	bool good = argc == 2 && strcmp(argv[1], "good") == 0, bad = argc == 2 && strcmp(argv[1], "bad") == 0;
	if (!good && !bad) {
		fprintf(stderr, "usage: arp good, or arp bad\n");
		return 2;
	}
	struct weft_uv *uv = weft_uv_create(NULL);
	struct stack s = {.card = {.reports_late = bad}};
	s.card.last = &s.card.first;
	s.arp_response = weft_condition_create("ARP response");
	if (!uv || !s.arp_response)
		return 2;
	uv_async_init(weft_uv_loop(uv), &s.card.interrupt, on_interrupt);
	s.card.interrupt.data = &s;
	weft_promise_async(driver_start, &s, NULL);

	struct weft_promise *connected = tcp_connect(&s);
	weft_label(weft_promise_id(connected), "main");
	weft_promise_should_resolve(connected);
	int status = weft_uv_run(uv, connected, 2000);
	if (status == WEFT_OK)
		printf("connected\n");
	else
		fprintf(stderr, "arp: not connected after two seconds\n");

	uv_close((uv_handle_t *)&s.card.interrupt, NULL);
	uv_walk(weft_uv_loop(uv), close_timer, &s.card);
	weft_promise_unref(connected);
	weft_resolver_drop(s.port);
	weft_resolver_drop(s.connecting);
	weft_condition_destroy(s.arp_response);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return status == WEFT_OK ? 0 : 1;
}
