/* played_test.c: random programs of tools/generate.c are written again, event by event: into a trace that keeps everything, and
 * into a ring or a growing trace that is followed.  After each refresh the follower must know what reading the trace from its
 * start says.
 *
 *	played_test WEFT-GENERATE
 *
 * The programs reuse ids, and name ended and unrecorded promises.  Packets are cut short, OS threads end and others take their
 * streams, events are lost, and rings wrap between two refreshes.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "followed.h"
#include "scratch.h"
#include "wire/wire.h"

enum { STREAMS = 4, PACKET = 4096, LONGEST = 200, FIRST_TICK = 1000000000 };

static const char *generator;
static uint64_t state;

static unsigned pick(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

/* ---- Writer ---- */

struct stream {
	unsigned char packet[PACKET];
	uint64_t sequence, last, events, events_before, lost, tid;
	size_t used; /* bytes of the packet that are used, or 0 without a packet */
	uint32_t uses;
};

struct written {
	char path[128];
	unsigned packets; /* number of packets of each stream of a ring, or 0 if the trace grows */
	struct stream streams[STREAMS];
};

static void write_at(const struct written *w, const char *name, const void *bytes, size_t size)
{
	char file[256];
	snprintf(file, sizeof file, "%s/%s", w->path, name);
	const int fd = open(file, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, 0), size);
	close(fd);
}

static void begin_trace(struct written *w, const char *name, unsigned packets)
{
	static char text[65536];
	const struct weft_metadata metadata = {.uuid = {1, 2, 3},
	    .clock_hz = 1000000000,
	    .clock_source = "caller",
	    .clock_measured = "exact",
	    .mode = packets ? "ring" : "grow",
	    .state = "recording"};
	struct weft_packet_header definitions;
	*w = (struct written){.packets = packets};
	snprintf(w->path, sizeof w->path, "%s/%s", scratch, name);
	assert_int_equal(mkdir(w->path, 0700), 0);
	write_at(w, "metadata", text, weft__metadata_format(text, sizeof text, &metadata));
	definitions.lock = 0;
	weft__packet_init(&definitions, metadata.uuid, WEFT_CLASS_DEFINITIONS, 0, sizeof definitions);
	definitions.clock_hz = metadata.clock_hz;
	write_at(w, "definitions-0", &definitions, sizeof definitions);
}

/* Writes the packet to its file, so that the reader sees it. */
static void write_packet(const struct written *w, unsigned number)
{
	const struct stream *s = &w->streams[number];
	char name[64];
	snprintf(name, sizeof name, "stream-%u-%llu", number,
	    (unsigned long long)(w->packets ? s->sequence % w->packets : s->sequence));
	write_at(w, name, s->packet, PACKET);
}

static void begin_packet(struct written *w, unsigned number, uint64_t time)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	struct stream *s = &w->streams[number];
	struct weft_packet_header *h = (void *)s->packet;
	if (s->used) {
		write_packet(w, number);
		s->sequence++;
	}
	memset(s->packet, 0, PACKET);
	weft__packet_init(h, uuid, WEFT_CLASS_EVENTS, number, PACKET);
	h->lock = 2 * ++s->uses;
	h->timestamp_begin = h->pair_clock = time;
	h->sequence = s->sequence;
	h->events_before = s->events_before = s->events;
	h->lost_full = h->events_discarded = s->lost;
	h->clock_hz = 1000000000;
	h->tid = s->tid;
	snprintf(h->thread_name, sizeof h->thread_name, "thread %llu", (unsigned long long)s->tid);
	s->used = sizeof *h;
	s->last = time;
}

static void write_event(struct written *w, const struct weft_event *e, uint64_t time)
{
	struct stream *s = &w->streams[e->stream];
	struct weft_packet_header *h = (void *)s->packet;
	struct weft_wire_event event = {.op = e->op, .kind = e->kind, .a = e->a, .b = e->b, .value = e->value};
	if (weft__op_forms[e->op].fields & WEFT_FIELD_TEXT) {
		event.text = e->text.len ? e->text.ptr : "";
		event.text_bytes = e->text.len < LONGEST ? e->text.len : LONGEST;
	}
	const uint8_t id = weft__event_id(&event);
	if (!s->used || PACKET - s->used < WEFT_EXTENDED_HEADER + weft__event_payload(&event, id))
		begin_packet(w, e->stream, time);
	const bool extended = (time - s->last) >> WEFT_COMPACT_GAP_BITS != 0;
	s->used = (size_t)(weft__event_write(s->packet + s->used, &event, id, time, extended) - s->packet);
	s->last = time;
	s->events++;
	h->content_size = s->used * 8;
}

static void lose(struct written *w, unsigned number)
{
	struct stream *s = &w->streams[number];
	struct weft_packet_header *h = (void *)s->packet;
	s->lost++;
	h->lost_full = h->events_discarded = s->lost;
}

/* Writes all packets to their files. */
static void flush(const struct written *w)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (w->streams[i].used)
			write_packet(w, i);
}

/* ---- Playing ---- */

struct play {
	const char *shape;
	unsigned packets; /* number of packets of each stream of the ring, or 0 if the trace grows */
	unsigned stride;  /* maximum number of events between two refreshes */
	bool loses, skips, cuts, changes;
	bool counts;    /* the creation of every promise is recorded */
	bool is_outrun; /* rings wrap between two refreshes */
	struct weft_follower_options options;
};

/* Generates a trace, with its times in ticks. */
static struct weft_trace *generate(const char *shape, uint64_t seed)
{
	char command[400], source[128];
	struct weft_trace *trace;
	snprintf(source, sizeof source, "%s/source", scratch);
	snprintf(command, sizeof command, "rm -rf %s; %s %s --events=6000 --streams=%u --seed=%llu --format=native -o %s", source,
	    generator, shape, (unsigned)STREAMS, (unsigned long long)seed, source);
	assert_int_equal(system(command), 0);
	assert_int_equal(weft_trace_open(&trace, source, NULL), WEFT_OK);
	return trace;
}

enum { IDS = 1 << 15 };
static bool is_known[IDS], has_become[IDS], is_followed[IDS], has_ended[IDS];

/* Returns whether no known library records such an event: it names a promise of a chain of merged promises by an id in the middle
 * of the chain; it merges an ended promise; or it reuses the id of a pending promise, so that a follower forgets this promise. */
static bool is_unheard_of(const struct weft_event *e)
{
	const bool has[] = {weft__op_forms[e->op].fields & WEFT_FIELD_A && e->a >= 0 && e->a < IDS,
	    weft__op_forms[e->op].fields & WEFT_FIELD_B && e->b >= 0 && e->b < IDS};
	const int64_t ids[] = {e->a, e->b};
	for (int i = 0; i < 2; i++)
		if (has[i] && has_become[ids[i]] && is_followed[ids[i]] && !(e->op == WEFT_OP_CREATE && i == 1))
			return true;
	if (e->op == WEFT_OP_BECOME && has[0] && has_ended[e->a])
		return true;
	if ((e->op == WEFT_OP_RESOLVE || e->op == WEFT_OP_FAIL) && has[1])
		has_ended[e->b] = true;
	if (e->op == WEFT_OP_CREATE && has[1] && is_known[e->b] && !has_ended[e->b] && !has_become[e->b])
		return true;
	if (e->op == WEFT_OP_CREATE && has[1])
		is_known[e->b] = true;
	if (e->op == WEFT_OP_CREATE && has[1])
		has_become[e->b] = is_followed[e->b] = has_ended[e->b] = false;
	if (e->op == WEFT_OP_BECOME && has[0] && has[1] && e->a != e->b)
		has_become[e->a] = is_followed[e->b] = true;
	return false;
}

static const char *const rules[] = {"count>-1", "failed>-1", "count(main)>-1", "failed(disk.read)>-1", "pending(accept)>-1",
    "p50(cache)<20us", "p99(x)<100us", "max(DNS lookup)<1ms", "counter(requests)>0"};
enum { RULES = sizeof rules / sizeof *rules };

static void read_all(struct lines *out, const char *from, struct weft_rule_result *followed, const struct weft_follower *follower,
    const struct weft_running_stats *stats)
{
	const struct weft_model_options options = {.keep_binds = true};
	struct weft_trace *trace;
	struct weft_model *model;
	assert_int_equal(weft_trace_open(&trace, from, NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &options, NULL), WEFT_OK);
	describe(out, model, true);
	if (followed)
		compare_rules(followed, follower, stats, model, rules, RULES);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* Refreshes the follower, and compares it with all events that were written or, if the ring has overwritten unread events, with
 * the events of the ring. */
static void look(struct weft_follower *follower, const struct written *all, const struct written *own,
    struct weft_rule_result *followed, const struct weft_running_stats *stats, uint64_t *restarts)
{
	static struct lines got, wanted;
	const int status = weft_follower_refresh(follower, NULL);
	assert_true(status >= 0);
	if (!status)
		return;
	const bool is_anew = weft_follower_restarts(follower) != *restarts;
	if (*restarts && !is_anew)
		return;
	*restarts = weft_follower_restarts(follower);
	describe(&got, weft_follower_model(follower), true);
	read_all(&wanted, is_anew ? own->path : all->path, is_anew || !followed ? NULL : followed, follower, stats);
	assert_same(&got, &wanted);
}

static void play(struct play p, uint64_t seed)
{
	static struct weft_running_stats stats[RULES];
	static struct written all, own;
	struct weft_rule_result followed[RULES] = {0};
	struct weft_follower *follower;
	struct weft_trace *source = generate(p.shape, seed);
	const struct weft_event *events;
	size_t count;
	uint64_t restarts = 0;
	unsigned left = 1, losing = 0;
	state = seed;
	memset(has_become, 0, sizeof has_become);
	memset(is_followed, 0, sizeof is_followed);
	memset(is_known, 0, sizeof is_known);
	memset(has_ended, 0, sizeof has_ended);
	p.options.model.keep_binds = true;
	p.options.stats = stats;
	for (size_t i = 0; i < RULES; i++) {
		struct weft_rule rule;
		assert_int_equal(weft_rule_parse(&rule, rules[i], NULL), WEFT_OK);
		p.options.stats_count += weft_rule_running_stats(&stats[p.options.stats_count], &rule);
	}
	begin_trace(&all, "all", 0);
	begin_trace(&own, "own", p.packets);
	for (unsigned i = 0; i < STREAMS; i++)
		all.streams[i].tid = own.streams[i].tid = 100 + i;
	assert_int_equal(weft_follower_open(&follower, own.path, &p.options, NULL), WEFT_OK);
	int64_t first_ns = 0;
	for (bool is_begun = false; weft_trace_next(source, &events, &count) > 0;)
		for (size_t i = 0; i < count; i++) {
			const struct weft_event *e = &events[i];
			if (is_unheard_of(e))
				continue;
			first_ns = is_begun ? first_ns : e->time_ns;
			is_begun = true;
			const uint64_t time = FIRST_TICK + (uint64_t)(e->time_ns - first_ns);
			const bool had_packet = own.streams[e->stream].used != 0;
			const bool is_other = p.changes && had_packet && pick(300) == 0;
			if (is_other)
				all.streams[e->stream].tid = own.streams[e->stream].tid += STREAMS;
			if (is_other || (p.cuts && had_packet && pick(60) == 0)) {
				begin_packet(&all, e->stream, time);
				begin_packet(&own, e->stream, time);
			}
			losing = losing ? losing - 1 : p.loses && pick(200) == 0 ? 1 + pick(8) : 0;
			if (losing && had_packet) {
				lose(&all, e->stream);
				lose(&own, e->stream);
				continue;
			}
			write_event(&all, e, time);
			write_event(&own, e, time);
			if (--left)
				continue;
			left = 1 + pick(p.stride);
			flush(&all);
			flush(&own);
			if (p.skips && pick(3))
				assert_true(weft_follower_skip(follower, NULL) >= 0);
			else
				look(follower, &all, &own, p.counts ? followed : NULL, stats, &restarts);
		}
	flush(&all);
	flush(&own);
	look(follower, &all, &own, p.counts ? followed : NULL, stats, &restarts);
	assert_int_equal(restarts > 0, p.is_outrun);
	weft_follower_close(follower);
	weft_trace_close(source);
}

static void play_often(struct play p)
{
	for (uint64_t seed = 1; seed <= 2; seed++) {
		char command[128];
		play(p, seed);
		snprintf(command, sizeof command, "cd %s && rm -rf all own", scratch);
		assert_int_equal(system(command), 0);
	}
}

static void follower_of_a_growing_trace_equals_a_fresh_reading(void **test)
{
	play_often((struct play){"random", .counts = true, .stride = 200, .cuts = true, .changes = true});
}

static void follower_accepts_contradictory_events(void **test)
{
	play_often((struct play){"odd", .stride = 300, .cuts = true, .changes = true});
}

static void follower_of_a_trace_with_lost_events_equals_a_fresh_reading(void **test)
{
	play_often(
	    (struct play){"random", .stride = 200, .loses = true, .options = {.window_ns = INT64_MAX, .window_events = 500}});
}

static void follower_of_a_wrapping_ring_equals_a_fresh_reading(void **test)
{
	play_often((struct play){"random", .counts = true, .packets = 6, .stride = 100, .cuts = true, .changes = true});
}

static void follower_that_skips_events_equals_a_fresh_reading(void **test)
{
	play_often((struct play){"random", .packets = 4, .stride = 150, .skips = true, .counts = true, .changes = true,
	    .options = {.window_ns = INT64_MAX, .window_events = 50}});
}

static void follower_outrun_by_its_ring_equals_a_fresh_reading(void **test)
{
	play_often((struct play){"random", .counts = true, .packets = 2, .stride = 1500, .cuts = true, .is_outrun = true});
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    CASE(follower_of_a_growing_trace_equals_a_fresh_reading),
	    CASE(follower_accepts_contradictory_events),
	    CASE(follower_of_a_trace_with_lost_events_equals_a_fresh_reading),
	    CASE(follower_of_a_wrapping_ring_equals_a_fresh_reading),
	    CASE(follower_that_skips_events_equals_a_fresh_reading),
	    CASE(follower_outrun_by_its_ring_equals_a_fresh_reading),
	};
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	generator = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
