/* record.c: the cost of an event for the program that records it.
 *
 * Thread CPU time, medians of interleaved rounds.  The floor is the minimum of any recorder: reading the time stamp counter and
 * storing 25 bytes into a mapped ring of 1 MB.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/record.h>

#include "bench/bench.h"
#include "wire/wire.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#define TICKS() __rdtsc()
#else
#define TICKS() ((uint64_t)clock_now_ns(CLOCK_MONOTONIC))
#endif

#define RING_BYTES (1u << 20)
#define EVENTS 50000u /* a multiple of 8 */
#define ROUNDS 101u

#ifdef BENCH_LTTNG
int bench_lttng_is_on(void);
void bench_lttng(int64_t first, unsigned count);
#else
static int bench_lttng_is_on(void)
{
	return 0;
}
static void bench_lttng(int64_t first, unsigned count)
{
}
#endif

static char directory[] = "/tmp/weft-bench-XXXXXX";

struct floor_ring {
	unsigned char *ring;
	uint32_t at;
};

static void floor_create(struct floor_ring *r, unsigned index)
{
	char path[64];
	snprintf(path, sizeof path, "%s/floor-%u", directory, index);
	FILE *file = fopen(path, "w+b");
	if (!file || ftruncate(fileno(file), RING_BYTES))
		fatal("%s: cannot create", path);
	r->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (r->ring == MAP_FAILED)
		fatal("%s: cannot map", path);
	fclose(file);
	unlink(path);
	r->at = 0;
}

static inline void floor_event(struct floor_ring *r, uint8_t op, int64_t a, int64_t b)
{
	if (r->at > RING_BYTES - 25)
		r->at = 0;
	unsigned char *at = r->ring + r->at;
	uint64_t time = TICKS();
	memcpy(at, &time, 8);
	at[8] = op;
	memcpy(at + 9, &a, 8);
	memcpy(at + 17, &b, 8);
	__asm__ __volatile__("" ::: "memory");
	r->at += 25;
}

static __thread struct floor_ring floor_ring;
static unsigned off_switch; /* always 0, which the compiler cannot know */
static const char copied[] = "a label of 24 characters";
_Static_assert(sizeof copied == 25, "the text says its length");

__attribute__((noinline, cold)) static void off_never(void)
{
	__asm__ __volatile__("");
}

static void run_floor(int64_t first)
{
	for (unsigned i = 0; i < EVENTS; i++)
		floor_event(&floor_ring, WEFT_OP_AWAIT, first + i, first);
}

static void run_two(int64_t first)
{
	for (unsigned i = 0; i < EVENTS; i++)
		weft_await(first + i, first);
}

static void run_literal(int64_t first)
{
	for (unsigned i = 0; i < EVENTS; i++)
		WEFT_LABEL(first + i, "disk.read");
}

static void run_copied(int64_t first)
{
	const char *text = copied;
	for (unsigned i = 0; i < EVENTS; i++) {
		__asm__ __volatile__("" : "+r"(text)); /* hides the length of the text from the compiler */
		weft_label(first + i, text);
	}
}

static void run_create(int64_t first)
{
	for (unsigned i = 0; i < EVENTS; i++)
		WEFT_CREATE_BY(first, WEFT_KIND_TASK);
}

/* Runs a loop that serves about 30,000 requests a second, and queries its CPU time now and then. */
static void run_rounds(int64_t first)
{
	static unsigned work;
	for (unsigned i = 0; i < EVENTS / 150; i++) {
		weft_resume(first);
		for (unsigned n = 0; n < 15000; n++)
			__asm__ __volatile__("" : "+r"(work) : "r"(n));
		weft_idle(WEFT_IDLE_WAIT);
	}
}

static void run_rounds_unasked(int64_t first)
{
	uint64_t long_ticks = weft__stream->long_ticks, due = weft__stream->sample_due;
	weft__stream->long_ticks = weft__stream->sample_due = UINT64_MAX;
	run_rounds(first);
	weft__stream->long_ticks = long_ticks;
	weft__stream->sample_due = due;
}

static struct weft_record_text counted = WEFT_COUNTER("queue"), noted = WEFT_COUNTER("a note");

/* The other events of the vocabulary, with different ids. */
#define VOCABULARY(X)                                                                                                            \
	X(read, weft_read(id, first))                                                                                            \
	X(read_later, weft_read_later(id, first))                                                                                \
	X(resolve, weft_resolve(first, id))                                                                                      \
	X(fail, weft_fail_text(first, id, &noted))                                                                               \
	X(become, weft_become(id, first))                                                                                        \
	X(signal, weft_signal(first, id))                                                                                        \
	X(signal_only, weft_signal_only(first, id))                                                                              \
	X(run, weft_run(id))                                                                                                     \
	X(idle_or_resume, id % 2 ? weft_resume(id) : weft_idle(WEFT_IDLE_WAIT))                                                  \
	X(should_resolve, weft_should_resolve(id))                                                                               \
	X(awaits_no_more, weft_awaits_no_more(id, first))                                                                        \
	X(hold, weft_hold(first, id))                                                                                            \
	X(release, weft_release(first, id))                                                                                      \
	X(belongs, weft_belongs(id, first))                                                                                      \
	X(counter_set, weft_counter_set(id, &counted, id))                                                                       \
	X(counter_add, weft_counter_add(id, &counted, 1))                                                                        \
	X(pause, weft_pause_text(&noted, 1000))                                                                                  \
	X(note, weft_note_text(id, &noted))                                                                                      \
	X(message_sent, weft_message(id, (uint32_t)id, ":1.42", false))                                                          \
	X(message_handled, weft_message(id, (uint32_t)id, ":1.42", true))                                                        \
	X(sent, weft_sent(id, (uint64_t)id))                                                                                     \
	X(received, weft_received(id, (uint64_t)id))                                                                             \
	X(spins, weft_spins(id, 1000))

#define RUN(name, call)                                                                                                          \
	static void run_##name(int64_t first)                                                                                    \
	{                                                                                                                        \
		for (int64_t id = first; id < first + EVENTS; id++)                                                              \
			call;                                                                                                    \
	}
VOCABULARY(RUN)

static void run_lttng(int64_t first)
{
	bench_lttng(first, EVENTS);
}

/* Eight in a row, so that the cost of the loop around them does not dominate. */
#define EIGHT(call)                                                                                                              \
	do {                                                                                                                     \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
		call;                                                                                                            \
	} while (0)

static void run_off(int64_t first)
{
	for (unsigned i = 0; i < EVENTS / 8; i++)
		EIGHT(weft_await(first, i));
}

static inline void off_floor(void)
{
	if (__builtin_expect(__atomic_load_n(&off_switch, __ATOMIC_RELAXED), 0))
		off_never();
}

static void run_off_floor(int64_t first)
{
	for (unsigned i = 0; i < EVENTS / 8; i++)
		EIGHT(off_floor());
}

static double measure_cost(void (*run)(int64_t first))
{
	double begin = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	run(1000);
	return (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / EVENTS;
}

struct variant {
	const char *name;
	void (*run)(int64_t first);
	double costs[ROUNDS];
};

/* Prints the median of each variant. */
static void measure_variants(struct variant *variants, size_t count)
{
	for (size_t v = 0; v < count; v++)
		measure_cost(variants[v].run);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t v = 0; v < count; v++)
			variants[v].costs[round] = measure_cost(variants[v].run);
	for (size_t v = 0; v < count; v++)
		printf("%s %.3f\n", variants[v].name, median(variants[v].costs, ROUNDS));
}

/* Two OS threads: in even rounds one runs alone, in odd ones both run at once. */
static pthread_barrier_t barrier;
static double alone[2][ROUNDS], together[2][2][ROUNDS];

static void *run_worker(void *arg)
{
	unsigned index = arg != NULL;
	void (*const runs[2])(int64_t first) = {run_floor, run_two};
	floor_create(&floor_ring, index + 1);
	run_two(1);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned r = 0; r < 2; r++) {
			pthread_barrier_wait(&barrier);
			if (index == 0)
				alone[r][round] = measure_cost(runs[r]);
			pthread_barrier_wait(&barrier);
			together[r][index][round] = measure_cost(runs[r]);
		}
	return NULL;
}

static void measure_two_threads(void)
{
	pthread_t other;
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&other, NULL, run_worker, &barrier))
		fatal("no second OS thread");
	struct floor_ring keep = floor_ring;
	run_worker(NULL);
	floor_ring = keep;
	pthread_join(other, NULL);
	const char *const names[2] = {"floor", "two"};
	for (unsigned r = 0; r < 2; r++) {
		printf("%s_alone %.3f\n", names[r], median(alone[r], ROUNDS));
		printf("%s_together %.3f\n", names[r], (median(together[r][0], ROUNDS) + median(together[r][1], ROUNDS)) / 2);
	}
}

/* Prints the bytes per event, packet headers included, from the counts of two packets. */
static void print_bytes_per_event(void)
{
	struct weft_packet_header first = {0}, last = {0};
	for (unsigned i = 0;; i++) {
		char path[64];
		struct weft_packet_header h;
		snprintf(path, sizeof path, "%s/trace/stream-0-%u", directory, i);
		FILE *file = fopen(path, "rb");
		if (!file)
			break;
		if (fread(&h, sizeof h, 1, file) == 1 && h.magic == WEFT_PACKET_MAGIC) {
			if (!first.magic || h.sequence < first.sequence)
				first = h;
			if (!last.magic || h.sequence > last.sequence)
				last = h;
		}
		fclose(file);
	}
	if (last.sequence > first.sequence)
		printf("bytes %.2f\n", (double)(last.sequence - first.sequence) * RING_BYTES / 16 /
					   (double)(last.events_before - first.events_before));
}

static void record_start(void)
{
	char path[64];
	snprintf(path, sizeof path, "%s/trace", directory);
	const struct weft_record_options options = {.directory = path, .overwrite = true, .size_bytes = RING_BYTES};
	if (weft_start(&options) < 0)
		fatal("%s", weft_start_error());
}

int main(void)
{
	static struct variant on[] = {{"floor", run_floor, {0}}, {"two", run_two, {0}}, {"literal", run_literal, {0}},
	    {"copied", run_copied, {0}}, {"create", run_create, {0}}, {"lttng", run_lttng, {0}}};
	static struct variant rounds[] = {{"rounds", run_rounds, {0}}, {"rounds_unasked", run_rounds_unasked, {0}}};
#define VARIANT(name, call) {"event_" #name, run_##name, {0}},
	static struct variant vocabulary[] = {{"event_floor", run_floor, {0}}, VOCABULARY(VARIANT)};
	static struct variant off[] = {{"off_floor", run_off_floor, {0}}, {"off", run_off, {0}}};
	if (!mkdtemp(directory))
		fatal("%s: cannot create", directory);
	floor_create(&floor_ring, 0);
	record_start();
	measure_variants(on, sizeof on / sizeof *on - (bench_lttng_is_on() ? 0 : 1));
	measure_variants(vocabulary, sizeof vocabulary / sizeof *vocabulary);
	for (unsigned i = 0; i < 10; i++)
		run_two(1000);
	weft_stop();
	print_bytes_per_event();
	record_start();
	measure_variants(rounds, 2);
	measure_two_threads();
	weft_stop();
	measure_variants(off, sizeof off / sizeof *off);
	char command[64];
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) != 0;
}
