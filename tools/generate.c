/* generate.c: writes traces for tests and benchmarks; the same arguments give the same bytes.
 *
 * Each shape is a trace that is expensive for a viewer.  Two shapes are for finding faults: random programs, and programs with
 * legal but unusual behaviour.  SPDX-License-Identifier: ISC */
#include "generate.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct generator {
	struct sink *sink;
	uint64_t left;         /* events that remain to be written */
	uint64_t random_state; /* state of splitmix64 */
	int64_t now_ns;
	int64_t next_id;
	uint16_t stream, streams;
	bool sites; /* creations have a site */
};

static const char usage[] =
    "usage: weft-generate SHAPE [--events=N] [--seed=S] [--format=FORMAT] [--streams=N] [--kernel=N] [-o OUT]\n"
    "  shapes: short   many short-lived promises under a few loops\n"
    "          tail    a tail-recursive loop, each turn becoming the next\n"
    "          alive   4,000 promises alive at any time\n"
    "          chain   each promise creates the next one and ends\n"
    "          deep    each promise created by the one before, all alive until the last is made\n"
    "          waits   each promise waits for the next, and the last never ends\n"
    "          flock   all wait for one promise; when it ends, they run in turn\n"
    "          crowd   2,000 alive at any time that all fail, under 40 counters and a pause for every 20 events\n"
    "          random  random programs: everything that a recorder writes\n"
    "          odd     random programs with legal but unusual behaviour\n"
    "  formats: mirage (OUT is a file), native (OUT is a new directory)\n"
    "  --kernel: number of kernel events, for a native trace (default: none)\n"
    "  N: a number, 10k or 1M; defaults: 1M events, seed 1, mirage, standard output\n";

#define STR(literal)                                                                                                             \
	{                                                                                                                        \
		literal, sizeof literal - 1                                                                                      \
	}
const struct weft_site generate_sites[] = {{.file = STR("src/server.c"), .function = STR("accept_one"), .line = 112},
    {.file = STR("src/server.c"), .function = STR("handle"), .line = 140},
    {.file = STR("lib/disk.c"), .function = STR("disk_read"), .line = 77},
    {.file = STR("lib/cache.c"), .function = STR("lookup"), .line = 31}};
const unsigned generate_site_count = sizeof generate_sites / sizeof *generate_sites;

void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("weft-generate: ", stderr);
	vfprintf(stderr, format, args);
	if (errno)
		fprintf(stderr, ": %s", strerror(errno));
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return (uint32_t)(((z >> 32) * limit) >> 32);
}

static uint32_t below(struct generator *g, uint32_t limit)
{
	return random_below(&g->random_state, limit);
}

static struct weft_str str(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

static void put(struct generator *g, struct weft_event event)
{
	if (!g->left)
		return;
	g->left--;
	g->now_ns += 30 + below(g, 200);
	event.time_ns = g->now_ns;
	event.stream = g->stream;
	event.site = event.op == WEFT_OP_CREATE && g->sites ? below(g, generate_site_count) : WEFT_NO_SITE;
	g->sink->put(g->sink, &event);
}

static void put2(struct generator *g, enum weft_op op, int64_t a, int64_t b)
{
	put(g, (struct weft_event){.op = (uint8_t)op, .a = a, .b = b});
}

static int64_t create(struct generator *g, int64_t parent, enum weft_kind kind)
{
	int64_t id = g->next_id++;
	put(g, (struct weft_event){.op = WEFT_OP_CREATE, .a = parent, .b = id, .kind = (uint8_t)kind});
	return id;
}

static void label(struct generator *g, int64_t id, const char *text)
{
	put(g, (struct weft_event){.op = WEFT_OP_LABEL, .a = id, .text = str(text)});
}

static void counter(struct generator *g, int64_t id, const char *name, int64_t value)
{
	put(g, (struct weft_event){.op = WEFT_OP_COUNTER, .a = id, .value = value, .text = str(name)});
}

static void sleep_for(struct generator *g, uint32_t most_ns)
{
	put2(g, WEFT_OP_RUN, WEFT_SYSTEM_ID, 0);
	g->now_ns += below(g, most_ns);
}

static void generate_short(struct generator *g)
{
	int64_t loops[8];
	for (int i = 0; i < 8; i++)
		label(g, loops[i] = create(g, WEFT_SYSTEM_ID, WEFT_KIND_TASK), "loop");
	while (g->left) {
		int64_t loop = loops[below(g, 8)];
		put2(g, WEFT_OP_RUN, loop, 0);
		int64_t wait = create(g, loop, WEFT_KIND_WAIT);
		if (!below(g, 8))
			label(g, wait, "sleep");
		put2(g, WEFT_OP_AWAIT, loop, wait);
		sleep_for(g, 2000);
		put2(g, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, wait);
		put2(g, WEFT_OP_READ, loop, wait);
	}
}

static void generate_tail(struct generator *g)
{
	int64_t turn = create(g, WEFT_SYSTEM_ID, WEFT_KIND_BIND);
	label(g, turn, "main loop");
	while (g->left) {
		int64_t wait = create(g, turn, WEFT_KIND_WAIT);
		put2(g, WEFT_OP_AWAIT, turn, wait);
		sleep_for(g, 2000);
		put2(g, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, wait);
		put2(g, WEFT_OP_READ, turn, wait);
		int64_t next = create(g, turn, WEFT_KIND_BIND);
		put2(g, WEFT_OP_BECOME, turn, next);
		turn = next;
	}
}

static void generate_alive(struct generator *g)
{
	enum { ALIVE = 4000 };
	static int64_t alive[ALIVE];
	int64_t root = create(g, WEFT_SYSTEM_ID, WEFT_KIND_TASK);
	label(g, root, "accept");
	for (int i = 0; i < ALIVE; i++)
		alive[i] = create(g, root, WEFT_KIND_CONNECTION);
	while (g->left) {
		uint32_t i = below(g, ALIVE);
		if (below(g, 4)) {
			uint32_t j = below(g, ALIVE);
			put2(g, WEFT_OP_RUN, alive[i], 0);
			if (i != j)
				put2(g, WEFT_OP_SIGNAL, alive[i], alive[j]);
			sleep_for(g, 1000);
		} else {
			put2(g, WEFT_OP_RESOLVE, root, alive[i]);
			alive[i] = create(g, root, WEFT_KIND_CONNECTION);
			if (!below(g, 8))
				label(g, alive[i], "connection");
		}
	}
}

static void generate_chain(struct generator *g)
{
	int64_t last = create(g, WEFT_SYSTEM_ID, WEFT_KIND_PROMISE);
	while (g->left) {
		int64_t next = create(g, last, WEFT_KIND_PROMISE);
		put2(g, WEFT_OP_RESOLVE, next, last);
		last = next;
	}
}

static void generate_deep(struct generator *g)
{
	uint64_t depth = g->left / 2;
	int64_t first = g->next_id, last = WEFT_SYSTEM_ID;
	for (uint64_t i = 0; i < depth; i++)
		last = create(g, last, WEFT_KIND_PROMISE);
	for (; last > first; last--)
		put2(g, WEFT_OP_RESOLVE, last, last - 1);
	put2(g, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, first);
}

static void generate_waits(struct generator *g)
{
	int64_t last = create(g, WEFT_SYSTEM_ID, WEFT_KIND_BIND);
	put2(g, WEFT_OP_SHOULD_RESOLVE, last, 0);
	while (g->left) {
		int64_t next = create(g, last, WEFT_KIND_BIND);
		put2(g, WEFT_OP_AWAIT, last, next);
		last = next;
	}
}

static void generate_flock(struct generator *g)
{
	uint64_t size = g->left / 4;
	int64_t one = create(g, WEFT_SYSTEM_ID, WEFT_KIND_WAIT), first = g->next_id;
	for (uint64_t i = 0; i < size; i++) {
		int64_t bind = create(g, WEFT_SYSTEM_ID, WEFT_KIND_BIND);
		put2(g, WEFT_OP_AWAIT, bind, one);
	}
	put2(g, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, one);
	for (int64_t bind = first; g->left; bind++) {
		put2(g, WEFT_OP_READ, bind, one);
		put2(g, WEFT_OP_RESOLVE, bind, bind);
	}
}

/* Generates the parts that a picture never omits, all the time. */
static void generate_crowd(struct generator *g)
{
	enum { ALIVE = 2000, COUNTERS = 40 };
	static int64_t alive[ALIVE];
	char name[32];
	for (int i = 0; i < ALIVE; i++)
		alive[i] = create(g, i > 0 ? alive[below(g, (uint32_t)i)] : WEFT_SYSTEM_ID, WEFT_KIND_TASK);
	while (g->left) {
		uint32_t i = below(g, ALIVE), j = below(g, ALIVE);
		g->stream = (uint16_t)below(g, g->streams);
		switch (below(g, 20)) {
		case 0:
			g->now_ns += 2000;
			put(g, (struct weft_event){.op = WEFT_OP_PAUSE, .value = 500 + below(g, 1500), .text = str("gc")});
			break;
		case 1:
		case 2:
		case 3:
			snprintf(name, sizeof name, "counter %u", below(g, COUNTERS));
			counter(g, alive[i], name, below(g, 1000));
			break;
		case 4:
		case 5:
		case 6: put2(g, WEFT_OP_RUN, alive[i], 0); break;
		case 7:
			if (i != j)
				put2(g, WEFT_OP_SIGNAL, alive[i], alive[j]);
			break;
		case 8: put2(g, WEFT_OP_RUN, WEFT_SYSTEM_ID, 0); break;
		default:
			put(g, (struct weft_event){.op = WEFT_OP_FAIL, .a = alive[j], .b = alive[i], .text = str("Timeout")});
			put2(g, WEFT_OP_READ, alive[j], alive[i]);
			label(g, alive[i] = create(g, alive[j], WEFT_KIND_REQUEST), "request");
		}
	}
}

/* State of a random program.  A promise is `alive` until it ends in one of the legal ways. */
enum { MOST_ALIVE = 500 };
struct program {
	struct generator *g;
	int64_t alive[MOST_ALIVE];
	uint32_t alive_count;
	int64_t done[64]; /* some resolved promises, to be read late */
	uint32_t done_count;
	int64_t running[GENERATE_STREAMS];
	int64_t counts[8];
};

static const char *const names[] = {"Netif.listen", "disk.read", "TCP.write", "main", "accept", "DNS lookup", "handle_request",
    "cache", "naïve café", "ταχύς", "並行", "log rotation, which has a rather long name", "x"};
static const char *const counters[] = {
    "gntref", "requests", "cache#hits", "cache#misses", "queue depth", "bytes in", "net#rx", "net#tx"};
static const char *const errors[] = {"Not_found", "Unix_error(ECONNRESET)", "Timeout", "Canceled"};

#define PICK(g, array) ((array)[below((g), sizeof(array) / sizeof *(array))])

static int64_t pick_alive(struct program *p)
{
	return p->alive_count ? p->alive[below(p->g, p->alive_count)] : WEFT_SYSTEM_ID;
}

static void end_promise(struct program *p, uint32_t index)
{
	int64_t id = p->alive[index];
	p->alive[index] = p->alive[--p->alive_count];
	p->done[p->done_count++ % 64] = id;
	for (uint16_t i = 0; i < p->g->streams; i++)
		if (p->running[i] == id)
			p->running[i] = WEFT_SYSTEM_ID;
}

static int64_t pick_done(struct program *p)
{
	return p->done_count ? p->done[below(p->g, p->done_count < 64 ? p->done_count : 64)] : WEFT_SYSTEM_ID;
}

static int64_t run(struct program *p, int64_t id)
{
	return p->running[p->g->stream] = id;
}

/* Returns an element of `alive` other than `not`; -1 if there is none. */
static int64_t other(struct program *p, int64_t not )
{
	int64_t id = pick_alive(p);
	return id == not ? WEFT_SYSTEM_ID : id;
}

static void random_create(struct program *p, int64_t actor)
{
	static const uint8_t kinds[] = {
	    0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 32, 35, 36, 37, 41, 42, 46, 47, 99};
	struct generator *g = p->g;
	if (p->alive_count == MOST_ALIVE)
		end_promise(p, below(g, MOST_ALIVE));
	int64_t id = p->alive[p->alive_count++] = create(g, actor, PICK(g, kinds));
	if (!below(g, 3))
		label(g, id, PICK(g, names));
	if (!below(g, 12))
		put2(g, WEFT_OP_SHOULD_RESOLVE, id, 0);
}

/* Resolves or fails a promise; mostly another promise reads it. */
static void random_end(struct program *p, int64_t actor)
{
	struct generator *g = p->g;
	if (!p->alive_count)
		return;
	uint32_t index = below(g, p->alive_count);
	int64_t id = p->alive[index];
	if (id == actor)
		actor = WEFT_SYSTEM_ID;
	if (below(g, 8))
		put2(g, WEFT_OP_RESOLVE, actor, id);
	else
		put(g, (struct weft_event){.op = WEFT_OP_FAIL, .a = actor, .b = id, .text = str(PICK(g, errors))});
	end_promise(p, index);
	int64_t reader = pick_alive(p);
	if (reader != WEFT_SYSTEM_ID && below(g, 4))
		put2(g, WEFT_OP_READ, run(p, reader), id);
}

static void random_become(struct program *p)
{
	struct generator *g = p->g;
	if (p->alive_count < 2)
		return;
	uint32_t index = below(g, p->alive_count);
	int64_t id = p->alive[index];
	end_promise(p, index);
	put2(g, WEFT_OP_BECOME, id, pick_alive(p));
}

static void random_step(struct program *p)
{
	struct generator *g = p->g;
	g->stream = (uint16_t)(g->streams > 1 && !below(g, 20) ? below(g, g->streams) : g->stream);
	int64_t actor = p->running[g->stream], b;
	uint32_t dice = below(g, 100), which;

	if (dice < 25) {
		random_create(p, actor);
	} else if (dice < 45) {
		random_end(p, actor);
	} else if (dice < 48) {
		random_become(p);
	} else if (dice < 60) {
		int64_t id = pick_alive(p);
		if ((b = other(p, id)) != WEFT_SYSTEM_ID)
			put2(g, WEFT_OP_AWAIT, id, b);
	} else if (dice < 70) {
		put2(g, WEFT_OP_RUN, run(p, pick_alive(p)), 0);
	} else if (dice < 75) {
		sleep_for(g, 100 * 1000);
		run(p, WEFT_SYSTEM_ID);
	} else if (dice < 80) {
		int64_t id = pick_alive(p);
		if ((b = other(p, id)) != WEFT_SYSTEM_ID)
			put2(g, WEFT_OP_SIGNAL, id, run(p, b));
	} else if (dice < 82) {
		if ((b = other(p, actor)) != WEFT_SYSTEM_ID)
			put2(g, WEFT_OP_SIGNAL_ONLY, actor, b);
	} else if (dice < 85) {
		if (actor != WEFT_SYSTEM_ID && (b = pick_done(p)) != WEFT_SYSTEM_ID)
			put2(g, WEFT_OP_READ_LATER, actor, b);
	} else if (dice < 90) {
		which = below(g, 8);
		counter(g, actor, counters[which], p->counts[which] += (int64_t)below(g, 21) - 10);
	} else if (dice < 92) {
		which = below(g, 8);
		int64_t by = (int64_t)below(g, 5) - 2;
		p->counts[which] += by;
		put(g, (struct weft_event){.op = WEFT_OP_COUNTER_ADD, .a = actor, .value = by, .text = str(counters[which])});
	} else if (dice < 97) {
		char text[64];
		if ((b = pick_alive(p)) != WEFT_SYSTEM_ID) {
			const uint32_t number =
			    below(g, 1000); /* a separate statement: compilers differ in the order of arguments */
			snprintf(text, sizeof text, "%s %u", PICK(g, names), number);
			label(g, b, text);
		}
	} else if (dice < 98) {
		int64_t took = 1000 + below(g, 500 * 1000);
		g->now_ns += took;
		put(g, (struct weft_event){.op = WEFT_OP_PAUSE, .value = took, .text = str("gc")});
	} else if (dice < 99) {
		put(g, (struct weft_event){.op = WEFT_OP_NOTE, .a = actor, .text = str("a note")});
	} else {
		put(g, (struct weft_event){.op = WEFT_OP_IDLE, .value = below(g, 3)});
		g->now_ns += below(g, 1000 * 1000);
		put2(g, WEFT_OP_RESUME, run(p, pick_alive(p)), 0);
	}
}

/* Generates events that are legal, or that real recorders have written. */
static void odd_step(struct program *p)
{
	static const char broken[] = "\xc3(\xff broken\n\t\x1b[31m";
	static char longest[5000];
	struct generator *g = p->g;
	int64_t id = pick_alive(p), a, b;
	switch (below(g, 20)) {
	case 0: /* a cycle of becoming, as path compression writes it */
		a = create(g, id, WEFT_KIND_BIND);
		b = create(g, a, WEFT_KIND_BIND);
		put2(g, WEFT_OP_BECOME, a, b);
		put2(g, WEFT_OP_BECOME, b, a);
		put2(g, WEFT_OP_RESOLVE, id, a);
		break;
	case 1: put2(g, WEFT_OP_BECOME, id, id); break;
	case 2: put2(g, WEFT_OP_BECOME, pick_done(p), id); break;
	case 3: put2(g, WEFT_OP_RESOLVE, id, pick_done(p)); break;
	case 4: put(g, (struct weft_event){.op = WEFT_OP_FAIL, .a = id, .b = pick_done(p), .text = str("")}); break;
	case 5: label(g, id, ""); break;
	case 6: label(g, id, broken); break;
	case 7:
		memset(longest, 'w', sizeof longest - 1);
		label(g, id, longest);
		break;
	case 8: /* used before its creation, then created */
		a = g->next_id + 1;
		put2(g, WEFT_OP_READ, id, a);
		create(g, id, WEFT_KIND_TASK);
		create(g, id, WEFT_KIND_TASK);
		break;
	case 9: /* an id created again */
		put(g, (struct weft_event){.op = WEFT_OP_CREATE, .a = id, .b = pick_done(p), .kind = WEFT_KIND_MAP});
		break;
	case 10: {
		const int64_t input = INT64_MIN + below(g, 4);
		put2(g, WEFT_OP_READ, INT64_MAX - below(g, 4), input);
		break;
	}
	case 11: counter(g, id, "extreme", below(g, 2) ? INT64_MAX : INT64_MIN); break;
	case 12: put(g, (struct weft_event){.op = WEFT_OP_PAUSE, .value = INT64_MAX, .text = str("for ever")}); break;
	case 13: put(g, (struct weft_event){.op = WEFT_OP_CREATE, .a = id, .b = g->next_id++, .kind = 200}); break;
	case 14: put2(g, WEFT_OP_SIGNAL, id, id); break;
	case 15: put2(g, WEFT_OP_AWAIT, id, id); break;
	case 16: put2(g, WEFT_OP_RUN, pick_done(p), 0); break;
	case 17: put2(g, WEFT_OP_RESOLVE, WEFT_SYSTEM_ID, WEFT_SYSTEM_ID); break;
	case 18:
		put(g, (struct weft_event){.op = WEFT_OP_CREATE, .a = g->next_id, .b = g->next_id, .kind = 0}), g->next_id++;
		break;
	default: /* a jump of days: more than a truncated timestamp can hold */ g->now_ns += (int64_t)86400 * 1000000000 / 4;
	}
}

static void generate_program(struct generator *g, bool odd)
{
	static struct program p;
	p = (struct program){.g = g};
	g->sites = true;
	for (int i = 0; i < GENERATE_STREAMS; i++)
		p.running[i] = WEFT_SYSTEM_ID;
	while (g->left) {
		random_step(&p);
		if (odd && !below(g, 5))
			odd_step(&p);
	}
}

static void generate_random(struct generator *g)
{
	generate_program(g, false);
}

static void generate_odd(struct generator *g)
{
	g->now_ns = 1700000000123456789; /* in ns since 1970 */
	generate_program(g, true);
}

static const struct shape {
	const char *name;
	void (*generate)(struct generator *g);
} shapes[] = {{"short", generate_short}, {"tail", generate_tail}, {"alive", generate_alive}, {"chain", generate_chain},
    {"deep", generate_deep}, {"waits", generate_waits}, {"flock", generate_flock}, {"crowd", generate_crowd},
    {"random", generate_random}, {"odd", generate_odd}};

static uint64_t number(const char *text)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	uint64_t unit = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : 1;
	if (unit > 1)
		end++;
	if (errno || end == text || *end || *text == '-' || n > UINT64_MAX / 2 / unit)
		die("not a number: %s", text);
	return n * unit;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"events", required_argument, 0, 'n'}, {"seed", required_argument, 0, 's'},
	    {"format", required_argument, 0, 'f'}, {"streams", required_argument, 0, 't'}, {"kernel", required_argument, 0, 'k'},
	    {"help", no_argument, 0, 'h'}, {0}};
	struct generator g = {.left = 1000000, .random_state = 1, .now_ns = 1000, .next_id = 1, .streams = 1};
	const char *out = "-", *format = "mirage";
	uint64_t kernel_events = 0;
	int c;
	while ((c = getopt_long(argc, argv, "n:s:f:t:k:o:h", options, NULL)) != -1) {
		switch (c) {
		case 'n': g.left = number(optarg); break;
		case 's': g.random_state = number(optarg); break;
		case 'f': format = optarg; break;
		case 'k': kernel_events = number(optarg); break;
		case 't': g.streams = (uint16_t)number(optarg); break;
		case 'o': out = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	errno = 0;
	if (argc - optind != 1 || g.streams < 1 || g.streams > GENERATE_STREAMS ||
	    (kernel_events && strcmp(format, "native") != 0)) {
		fputs(usage, stderr);
		return 2;
	}
	const struct shape *shape = NULL;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (!strcmp(argv[optind], shapes[i].name))
			shape = &shapes[i];
	if (!shape)
		die("no such shape: %s", argv[optind]);
	if (!strcmp(format, "mirage"))
		g.sink = sink_mirage(out);
	else if (!strcmp(format, "native"))
		g.sink = sink_native(strcmp(out, "-") ? out : "", kernel_events);
	else
		die("no such format: %s", format);
	shape->generate(&g);
	g.sink->close(g.sink);
	return 0;
}
