/* arp.c: a kernel that only connects, on a machine without an operating system; sometimes it hangs.
 *
 * As in examples/arp, TCP needs IP, IP needs the hardware address that ARP asks for, and one line is wrong.  Here the network
 * card interrupts, a timer interrupts a thousand times a second, and everything is recorded.  Each interrupt is a promise, which
 * begins when the interrupt arrives and runs when it is handled.
 *
 *	good	the card reports that it has sent the ARP request, then the answer comes: "connected"
 *	bad	the answer comes first: a second of silence, then "hung"
 *	crash	as bad, and then it writes to unmapped memory
 *	busy	records for ever
 *
 * examples/bare/build arp.elf builds it; docs/guests.md runs it, and reads its recording.  At its end it prints counts of events.
 * SPDX-License-Identifier: ISC */
#include <weft/promise.h>

#include "machine.h"

enum { QUEUE = 4096, SILENCE = TIMER_HZ };

enum frame { ARP_REQUEST, ARP_RESPONSE, TCP_SYN, TCP_SYN_ACK };

/* ---- Interrupts: their arrival, and the later handling ---- */

struct interrupt {
	weft_id id;
	bool is_card;
};

static struct {
	struct interrupt items[QUEUE];
	unsigned first, end; /* the handler writes end, the main loop first */
} queue;

static uint64_t ticks, arrived, handled, lost;

static void queue_interrupt(bool is_card)
{
	if (queue.end - queue.first == QUEUE) {
		lost++;
		return;
	}
	weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_INTERRUPT, WEFT_SITE());
	if (is_card)
		WEFT_LABEL(id, "card");
	else
		WEFT_LABEL(id, "timer");
	queue.items[queue.end % QUEUE] = (struct interrupt){id, is_card};
	__atomic_store_n(&queue.end, queue.end + 1, __ATOMIC_RELEASE);
	arrived++;
}

/* ---- The card: sends, and receives the answer ---- */

struct notice {
	uint64_t due;               /* in ticks; 0: nothing */
	struct weft_resolver *sent; /* a frame was sent; NULL: one was received */
	enum frame received;
	bool is_there;
};

static struct notice notices[4];
static bool reports_late;

static void schedule_notice(uint64_t in_ticks, struct weft_resolver *sent, enum frame received)
{
	for (unsigned i = 0; i < sizeof notices / sizeof *notices; i++)
		if (!notices[i].due) {
			uint64_t state = machine_disable_interrupts();
			notices[i] = (struct notice){ticks + in_ticks, sent, received, false};
			machine_restore_interrupts(state);
			return;
		}
}

static void card_send(enum frame frame, struct weft_resolver *sent)
{
	schedule_notice(reports_late ? 20 : 10, sent, frame);
	schedule_notice(reports_late ? 10 : 20, NULL, frame == ARP_REQUEST ? ARP_RESPONSE : TCP_SYN_ACK);
}

static void on_tick(void)
{
	ticks++;
	queue_interrupt(false);
	for (unsigned i = 0; i < sizeof notices / sizeof *notices; i++)
		if (notices[i].due == ticks) {
			notices[i].is_there = true;
			queue_interrupt(true);
		}
}

/* ---- The stack ---- */

static struct weft_resolver *port; /* the driver waits for an interrupt */
static struct weft_resolver *connecting;
static struct weft_condition *arp_response;
static bool knows_address;

/* Is resolved when the card reports that the frame is on the wire. */
static struct weft_promise *ring_write(enum frame frame)
{
	struct weft_resolver *sent;
	struct weft_promise *p = weft_promise_named_task("ring.write", &sent);
	card_send(frame, sent);
	return p;
}

static struct weft_promise *await_response(void *ctx, void *nothing)
{
	return weft_condition_wait(arp_response, NULL);
}

static struct weft_promise *arp_query(void)
{
	if (knows_address)
		return weft_promise_unit();
	/* The bug: a broadcast during the wait for the write is lost. */
	return weft_promise_bind(ring_write(ARP_REQUEST), await_response, NULL, NULL);
}

static struct weft_promise *send_syn(void *ctx, void *nothing)
{
	return ring_write(TCP_SYN);
}

static struct weft_promise *await_connection(void *ctx, void *nothing)
{
	return weft_promise_ref(ctx);
}

static void unref_promise(void *p)
{
	weft_promise_unref(p);
}

static struct weft_promise *tcp_connect(void)
{
	struct weft_promise *connection = weft_promise_named_task("TCP connect", &connecting);
	return weft_promise_bind(
	    weft_promise_bind(arp_query(), send_syn, NULL, NULL), await_connection, connection, unref_promise);
}

static void frame_received(enum frame frame)
{
	if (frame == ARP_RESPONSE) {
		knows_address = true;
		weft_condition_broadcast(arp_response, NULL, NULL);
	} else if (frame == TCP_SYN_ACK) {
		weft_wakeup_later(connecting, NULL, NULL);
	}
}

/* Runs the driver: waits for an interrupt, handles the card's notices, and starts again. */
static struct weft_promise *driver(void *ctx, void *interrupt)
{
	for (unsigned i = 0; i < sizeof notices / sizeof *notices; i++) {
		struct notice notice = notices[i];
		if (!notice.is_there)
			continue;
		notices[i] = (struct notice){0};
		if (notice.sent)
			weft_wakeup_later(notice.sent, NULL, NULL);
		else
			frame_received(notice.received);
	}
	return weft_promise_bind(weft_promise_named_task("port-4", &port), driver, NULL, NULL);
}

static struct weft_promise *driver_start(void *ctx)
{
	weft_promise_label("network driver");
	return driver(NULL, NULL);
}

/* ---- The main loop ---- */

static void handle_interrupt(struct interrupt interrupt)
{
	weft_run(interrupt.id);
	handled++;
	if (interrupt.is_card) {
		/* As slow as a driver that copies, so that other interrupts arrive meanwhile. */
		for (uint64_t begin = machine_clock(); machine_clock() - begin < machine_clock_hz() / 200;)
			;
		weft_wakeup(port, NULL, NULL);
	}
	weft_resolve(WEFT_SYSTEM_ID, interrupt.id);
}

/* Handles interrupts until the promise has ended, or nothing has happened for SILENCE ticks. */
static bool run_until_ended(const struct weft_promise *p)
{
	uint64_t state = machine_disable_interrupts();
	while (weft_promise_state(p) == WEFT_PENDING && ticks < SILENCE) {
		if (queue.first == queue.end) {
			weft_promise_idle(WEFT_IDLE_WAIT);
			machine_sleep();
			continue;
		}
		struct interrupt interrupt = queue.items[queue.first++ % QUEUE];
		__asm__ volatile("sti");
		handle_interrupt(interrupt);
		machine_disable_interrupts();
	}
	machine_restore_interrupts(state);
	return weft_promise_state(p) != WEFT_PENDING;
}

static void record_forever(void)
{
	__asm__ volatile("sti");
	machine_print("busy\n");
	for (uint64_t number = 0;; number++) {
		char text[] = "note 000000000000";
		uint64_t rest = number;
		for (size_t i = sizeof text - 2; rest; i--, rest /= 10)
			text[i] = (char)('0' + rest % 10);
		weft_note(WEFT_SYSTEM_ID, text);
		queue.first = queue.end;
	}
}

void kernel_main(const void *loader);

void kernel_main(const void *loader)
{
	machine_start(on_tick);
	const struct weft_record_options options = {
	    .buffer = machine_ring(),
	    .buffer_bytes = MACHINE_RING_BYTES,
	    .packet_bytes = 4096,
	    .clock = machine_clock,
	    .clock_hz = machine_clock_hz(),
	    .wall_ns = machine_wall_ns,
	    .host = "bare",
	    .process = "arp",
	    .enter = machine_disable_interrupts,
	    .leave = machine_restore_interrupts,
	};
	if (weft_start(&options) < 0) {
		machine_print(weft_start_error());
		return;
	}
	weft_promise_set_memory(&(struct weft_promise_memory){machine_allocate, machine_release, NULL});
	reports_late = !machine_has_option(loader, "good");
	if (machine_has_option(loader, "busy"))
		record_forever();
	arp_response = weft_condition_create("ARP response");
	weft_promise_async(driver_start, NULL, NULL);
	struct weft_promise *connected = tcp_connect();
	weft_label(weft_promise_id(connected), "main");
	weft_promise_should_resolve(connected);
	bool ended = run_until_ended(connected);
	machine_print_number("arrived", arrived);
	machine_print_number("handled", handled);
	machine_print_number("lost", lost);
	machine_print(ended ? "connected\n" : "hung\n");
	if (machine_has_option(loader, "crash"))
		machine_crash();
}
