/* fleet.c: simulated hosts: their clocks are ahead, drift, and change their rates; they make partial writes and reads of other
 * sizes; delays differ in both directions, and positions wrap. SPDX-License-Identifier: ISC */
#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/record.h>

#include "base/sort.h"
#include "base/vec.h"

enum { BENDS = 4, US = 1000, MS = 1000 * US, SECOND = 1000 * MS };

__extension__ typedef __int128 wide;

struct clock {
	int64_t offset, until[BENDS], rate[BENDS]; /* a rate is in 1e-12 */
	int64_t grows;                             /* growth of the rate in each second */
};

/* One event that a host records. */
enum what { TOLD, SENT, RECEIVED, TRUTH };

struct step {
	int64_t true_ns, stamp_ns; /* true time of the event, and true time at which the host reads its clock for it */
	uint32_t host, connection, order;
	bool is_second; /* the event is at the second end of its connection */
	uint8_t what;
	uint64_t position;
};

struct connection {
	uint32_t hosts[2];
	uint64_t begins[2]; /* start positions of the bytes that each end sends */
	int64_t delays[2];  /* the shortest delays of messages in both directions */
	int64_t noise;      /* longest extra delay of most messages */
};

struct fleet {
	size_t hosts;
	enum fleet_fault fault;
	struct clock clocks[FLEET_MOST];
	WEFT_VEC(struct connection) connections;
	WEFT_VEC(struct step) steps;
	bool has_memory;
};

static int64_t between(struct fleet_choices *c, int64_t least, int64_t most)
{
	uint64_t z = c->seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	if (c->left >= 2) {
		z = c->bytes[0] | (uint64_t)c->bytes[1] << 8;
		c->bytes += 2;
		c->left -= 2;
	}
	return least + (int64_t)(z % (uint64_t)(most - least + 1));
}

int64_t fleet_shows(const struct fleet *fleet, size_t host, int64_t true_ns)
{
	const struct clock *clock = &fleet->clocks[host];
	wide gained = (wide)true_ns * true_ns / 2 * clock->grows / SECOND;
	int64_t from = 0;
	for (int i = 0; i < BENDS && from < true_ns; from = clock->until[i++])
		gained += (wide)((true_ns < clock->until[i] ? true_ns : clock->until[i]) - from) * clock->rate[i];
	const wide part = gained / 1000000000000;
	return true_ns + clock->offset + (int64_t)(part - (gained % 1000000000000 < 0));
}

static void make_clock(struct clock *clock, struct fleet_choices *c, bool is_counter)
{
	const int bends = is_counter ? 0 : (int)between(c, 0, BENDS - 1);
	int64_t until = 0;
	clock->offset = between(c, 1, 60000) * SECOND;
	for (int i = 0; i < BENDS; i++) {
		until += i < bends ? between(c, 1, 2000) * MS : INT64_MAX / 16;
		clock->until[i] = until;
		clock->rate[i] = between(c, -249, 249) * 1000000;
	}
	clock->grows = is_counter ? between(c, -15000000, 15000000) : 0;
}

static void add(struct fleet *f, struct step step)
{
	struct step *added = f->has_memory ? weft_vec_push(&f->steps) : NULL;
	f->has_memory = added != NULL;
	if (added) {
		*added = step;
		added->order = (uint32_t)f->steps.count;
	}
}

/* Simulates a message over a connection; returns the time at which its last byte was read. */
static int64_t send(struct fleet *f, struct fleet_choices *c, uint32_t connection, bool is_back, uint64_t *position, int64_t now)
{
	const struct connection *k = &f->connections.items[connection];
	struct step writes = {.host = k->hosts[is_back], .connection = connection, .is_second = is_back, .what = SENT};
	struct step reads = {.host = k->hosts[!is_back], .connection = connection, .is_second = !is_back, .what = RECEIVED};
	const uint64_t begin = *position, end = begin + (uint64_t)between(c, 1, 5000);
	int64_t last_ns = now - 5 * US;
	for (uint64_t at = begin; at < end;) {
		writes.true_ns = now;
		writes.stamp_ns = now - between(c, 0, 1) * between(c, 0, now - last_ns - 1);
		writes.position = end;
		add(f, writes);
		if (between(c, 0, 3) == 0 && end - at > 1) { /* the kernel takes only a part */
			writes.position = at + 1 + (uint64_t)between(c, 0, (int64_t)(end - at) - 2);
			writes.stamp_ns = writes.true_ns += 1;
			add(f, writes);
		}
		at = writes.position;
		last_ns = writes.stamp_ns;
		now += between(c, 500, 20 * US);
	}
	for (uint64_t at = begin; at < end;) {
		const int64_t delay = k->delays[is_back] + (between(c, 0, 3) ? between(c, 0, k->noise) : between(c, 0, 2 * MS));
		at += 1 + (uint64_t)between(c, 0, (int64_t)(end - at) - 1);
		reads.true_ns = now += at == end || delay < 5 * US ? delay : delay / 4;
		reads.stamp_ns = now + between(c, 0, 1) * between(c, 0, 5 * US);
		reads.position = at;
		add(f, reads);
		now = reads.stamp_ns + 1;
	}
	*position = end;
	return now;
}

static void talk(struct fleet *f, struct fleet_choices *c, uint32_t connection, size_t rounds)
{
	struct connection *k = &f->connections.items[connection];
	uint64_t positions[2];
	int64_t now = between(c, 10, 1000) * US;
	k->noise = f->fault == FLEET_COUNTERS && between(c, 0, 2) == 0 ? 4 * MS : 20 * US;
	for (int i = 0; i < 2; i++) {
		/* Some positions exceed 32 bits during the test. */
		k->begins[i] = positions[i] = between(c, 0, 1) ? 0 : (uint64_t)UINT32_MAX - (uint64_t)between(c, 0, 60000);
		k->delays[i] = between(c, 0, 3) ? between(c, 500, 20 * US) : between(c, 500, 2 * MS);
		add(f, (struct step){.true_ns = now,
			   .stamp_ns = now,
			   .host = k->hosts[i],
			   .connection = connection,
			   .is_second = i == 1,
			   .what = TOLD});
	}
	const bool is_silent = f->fault == FLEET_ONE_WAY && k->hosts[1] == f->hosts - 1;
	for (size_t i = 0; i < rounds; i++) {
		now += between(c, 0, 4) ? between(c, 6, 200) * US : between(c, 1, 50) * MS;
		now = send(f, c, connection, false, &positions[0], now);
		if (!is_silent)
			now = send(f, c, connection, true, &positions[1], now + between(c, 6, 100) * US);
	}
}

static int compare(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return WEFT_ORDER(x->host, y->host) ?: WEFT_ORDER(x->stamp_ns, y->stamp_ns) ?: WEFT_ORDER(x->order, y->order);
}

static void connect(struct fleet *f, struct fleet_choices *c, size_t from, size_t to, size_t rounds)
{
	const uint32_t at = (uint32_t)f->connections.count;
	struct connection *added = weft_vec_push(&f->connections);
	f->has_memory &= added != NULL;
	if (!added)
		return;
	*added = (struct connection){.hosts = {(uint32_t)from, (uint32_t)to}};
	talk(f, c, at, rounds);
}

struct fleet *fleet_create(struct fleet_choices *c, size_t hosts, size_t rounds, size_t truths, enum fleet_fault fault)
{
	struct fleet *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	*f = (struct fleet){.hosts = hosts, .fault = fault, .has_memory = true};
	for (size_t i = 0; i < hosts; i++) {
		make_clock(&f->clocks[i], c, fault == FLEET_COUNTERS);
		if (fault == FLEET_SAME_CLOCK)
			f->clocks[i] = (struct clock){.offset = SECOND, .until = {INT64_MAX}};
	}
	/* Each host except the first is connected to a host before it; some hosts have a second connection. */
	for (size_t i = 1; i < hosts; i++) {
		connect(f, c, (size_t)between(c, 0, (int64_t)i - 1), i, rounds);
		if ((i > 1 && fault == FLEET_SOUND && between(c, 0, 2) == 0) || (i == hosts - 1 && fault == FLEET_ONE_JUMPS))
			connect(f, c, 0, i, rounds);
	}
	int64_t last_ns = 0;
	for (size_t i = 0; i < f->steps.count; i++)
		last_ns = f->steps.items[i].true_ns > last_ns ? f->steps.items[i].true_ns : last_ns;
	for (uint32_t i = 0; i < hosts; i++)
		for (size_t t = 0; t < truths; t++) {
			const int64_t at = between(c, 0, 60000) * (last_ns / 60000);
			add(f, (struct step){.true_ns = at, .stamp_ns = at, .host = i, .what = TRUTH});
		}
	weft_sort(f->steps.items, f->steps.count, sizeof *f->steps.items, compare);
	if (f->has_memory)
		return f;
	fleet_destroy(f);
	return NULL;
}

void fleet_destroy(struct fleet *f)
{
	if (!f)
		return;
	weft_vec_free(&f->connections);
	weft_vec_free(&f->steps);
	free(f);
}

/* ---- Recording ---- */

static uint64_t now_ticks;

static uint64_t tick(void)
{
	return now_ticks;
}

/* The wall clocks of the hosts differ, and may show any time. */
static uint64_t wall_ns(void)
{
	return UINT64_C(1700000000000000000) + now_ticks;
}

/* Formats the address of a host's end of a connection; if `is_far` is true, the address that the peer knows. */
static int address(const struct fleet *f, char *to, size_t room, uint32_t connection, bool is_second, bool is_far)
{
	const uint32_t host = f->connections.items[connection].hosts[is_second];
	const bool is_hidden = is_far && f->fault == FLEET_NAT && host == f->hosts - 1;
	return snprintf(to, room, "%s.%" PRIu32 ":%" PRIu32, is_hidden ? "192.168.0" : "10.0.0", host + 1,
	    is_second ? UINT32_C(80) : 4000 + connection);
}

static void tell(const struct fleet *f, weft_id id, const struct step *step, const uint64_t positions[2])
{
	char text[120], own[48], peer[48];
	address(f, own, sizeof own, step->connection, step->is_second, false);
	address(f, peer, sizeof peer, step->connection, !step->is_second, true);
	snprintf(text, sizeof text, "tcp %s %s %" PRIu64, own, peer, positions[1]);
	weft__slow_detail(id, WEFT_DETAIL_CONNECTION, (int64_t)positions[0], text);
}

/* One end of a connection, as its host has recorded it so far. */
struct known {
	weft_id id;
	uint64_t positions[2]; /* bytes sent, bytes received */
	size_t since_told;
};

static int compare_times(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return WEFT_ORDER(x->stamp_ns, y->stamp_ns) ?: WEFT_ORDER(x->order, y->order);
}

bool fleet_record(struct fleet *f, size_t host, const struct weft_record_options *place)
{
	const bool is_alone = host == FLEET_TOGETHER;
	if (is_alone) {
		weft_sort(f->steps.items, f->steps.count, sizeof *f->steps.items, compare_times);
		host = 0;
	}
	struct weft_record_options options = *place;
	char name[FLEET_NAME];
	snprintf(name, sizeof name, "host%u", (unsigned)host);
	now_ticks = (uint64_t)fleet_shows(f, host, 0);
	options.clock = tick;
	options.clock_hz = SECOND;
	options.wall_ns = wall_ns;
	options.is_counter = f->fault == FLEET_COUNTERS;
	options.host = name;
	options.process = "program";
	struct known *known = calloc(2 * f->connections.count + 1, sizeof *known);
	if (!known || weft_start(&options) < 0) {
		free(known);
		return false;
	}
	const bool is_faulty = host == f->hosts - 1;
	for (size_t i = 0; i < f->steps.count; i++) {
		const struct step *s = &f->steps.items[i];
		if (s->host != host && !is_alone)
			continue;
		const int64_t late_ns = is_faulty && f->fault == FLEET_LATE && s->what == SENT ? 2 * MS : 0;
		const int64_t shown = fleet_shows(f, host, s->stamp_ns + late_ns);
		now_ticks = (uint64_t)shown > now_ticks ? (uint64_t)shown : now_ticks;
		struct known *k = s->what == TRUTH ? NULL : &known[2 * s->connection + s->is_second];
		const struct connection *c = k ? &f->connections.items[s->connection] : NULL;
		char text[64];
		weft_id id;
		switch ((enum what)s->what) {
		case TOLD:
			k->id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
			k->positions[0] = c->begins[s->is_second];
			k->positions[1] = c->begins[!s->is_second];
			tell(f, k->id, s, k->positions);
			break;
		case SENT: weft_sent(k->id, k->positions[0] = s->position); break;
		case RECEIVED:
			k->positions[1] = s->position;
			if (is_faulty && (f->fault == FLEET_JUMPS ||
					     (f->fault == FLEET_ONE_JUMPS && s->connection == f->connections.count - 1)))
				k->positions[1] += 100000000;
			weft_received(k->id, k->positions[1]);
			break;
		case TRUTH:
			id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
			snprintf(text, sizeof text, "true %" PRId64, s->true_ns);
			weft_label(id, text);
			weft_resolve(id, id);
		}
		/* The host records the connection again after each 40 events, before the ring overwrites it, as the recorder
		 * does. */
		if (k && s->what != TOLD && k->since_told++ == 40) {
			k->since_told = 0;
			tell(f, k->id, s, k->positions);
		}
	}
	weft_stop();
	free(known);
	return true;
}

void fleet_lose(void *buffer, size_t bytes, uint64_t which)
{
	enum { CLASS_AT = 20, CLASS_BYTES = 4 };
	static const unsigned char magic[] = {0xc1, 0x1f, 0xfc, 0xc1}, events[CLASS_BYTES];
	size_t found[2] = {0};
	for (int turn = 0; turn < 2; turn++)
		for (size_t at = 0; at + FLEET_PACKET <= bytes; at += FLEET_PACKET) {
			unsigned char *packet = (unsigned char *)buffer + at;
			const bool is_one =
			    !memcmp(packet, magic, sizeof magic) && !memcmp(packet + CLASS_AT, events, CLASS_BYTES);
			if (is_one && found[turn]++ == which % (found[0] ? found[0] : 1) && turn == 1)
				memset(packet, 0, FLEET_PACKET);
		}
}
