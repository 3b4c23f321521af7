/* follow.c: what it costs to follow a ring that is written at a million events a second, and what the program notices of it.
 *
 *	weft-bench-follow SECONDS
 *
 * Turns with a follower and without one alternate; each is a process that records, paced by the clock.  A counter tells when an
 * event was recorded, so that who sees it knows how old it is.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/record.h>

#include "bench/bench.h"
#include "model/follower.h"

enum { BATCH = 1000, TURNS = 4, MOST_LOOKS = 1 << 16, PENDING = 1000 };
#define EVERY_NS 50e6

static char directory[] = "/tmp/weft-bench-XXXXXX", path[64];

/* What the processes tell: in memory that they share. */
struct turn {
	double cpu_ns; /* of the program, an event: median of batches */
	double follower_ns, wall_ns;
	double delays[MOST_LOOKS], looks[MOST_LOOKS]; /* delays: of the oldest event that a look showed */
	size_t count;
	uint64_t events, restarts, lost;
	long memory_kb, opening_kb;
};

static void sleep_until(double at_ns)
{
	const struct timespec at = {(time_t)(at_ns / 1e9), (long)(at_ns - 1e9 * (double)(time_t)(at_ns / 1e9))};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* A thousand events: tasks that wait for each other, of which many are pending at once. */
static void record_batch(weft_id pending[PENDING], uint64_t batch)
{
	weft_counter_set(WEFT_SYSTEM_ID, WEFT_TEXT("recorded"), (int64_t)clock_now_ns(CLOCK_MONOTONIC));
	for (unsigned i = 0; i < BATCH / 5; i++) {
		weft_id *slot = &pending[(batch * (BATCH / 5) + i) % PENDING];
		if (*slot)
			weft_resolve(WEFT_SYSTEM_ID, *slot);
		*slot = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_label_text(*slot, WEFT_TEXT("task"));
		weft_await(*slot, pending[(batch * (BATCH / 5) + i + PENDING / 2) % PENDING]);
		weft_run(*slot);
	}
}

/* Records for so long, a batch each ms; who is late makes good for it. */
static void record(struct turn *turn, double seconds)
{
	static weft_id pending[PENDING];
	const size_t batches = (size_t)(seconds * 1000);
	double *costs = calloc(batches + 1, sizeof *costs);
	const struct weft_record_options options = {.directory = path, .mode = WEFT_RECORD_RING, .size_bytes = 64u << 20};
	if (!costs || weft_start(&options) != WEFT_OK)
		fatal("%s: cannot record", path);
	const double began_ns = clock_now_ns(CLOCK_MONOTONIC);
	for (size_t batch = 0; batch < batches; batch++) {
		sleep_until(began_ns + 1e6 * (double)batch);
		const double before_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
		record_batch(pending, batch);
		costs[batch] = (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns) / BATCH;
	}
	weft_stop();
	turn->cpu_ns = median(costs, batches);
	free(costs);
}

static double cpu_ns(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return 1e9 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static long memory_kb(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Looks every 50 ms until the recording has ended. */
static void follow(struct turn *turn, int over)
{
	const struct weft_follower_options options = {.model.keep_binds = true};
	struct weft_follower *follower;
	struct weft_error err;
	double shown_ns = 0, next_ns = clock_now_ns(CLOCK_MONOTONIC);
	char byte;
	if (weft_follower_open(&follower, path, &options, &err) < 0)
		fatal("%s", err.what);
	const double before_ns = cpu_ns(), began_ns = next_ns;
	while (read(over, &byte, 1) < 0 && turn->count < MOST_LOOKS) {
		const double look_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (weft_follower_look(follower, &err) > 0) {
			const struct weft_model *m = weft_follower_model(follower);
			const struct weft_counter *c = m->counter_count ? &m->counters[0] : NULL;
			const double now_ns = clock_now_ns(CLOCK_MONOTONIC);
			turn->delays[turn->count] = shown_ns > 0 ? now_ns - shown_ns : 0;
			turn->looks[turn->count++] = now_ns - look_ns;
			shown_ns = c ? (double)c->samples[c->count - 1].value : shown_ns;
		}
		next_ns += EVERY_NS;
		if (next_ns < clock_now_ns(CLOCK_MONOTONIC))
			next_ns = clock_now_ns(CLOCK_MONOTONIC);
		sleep_until(next_ns);
	}
	turn->follower_ns = cpu_ns() - before_ns;
	turn->wall_ns = clock_now_ns(CLOCK_MONOTONIC) - began_ns;
	turn->events = weft_follower_events(follower);
	turn->restarts = weft_follower_restarts(follower);
	turn->memory_kb = memory_kb();
	weft_follower_close(follower);
}

/* Opens the ring once, as a whole. */
static void open_once(struct turn *turn)
{
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_error err;
	const struct weft_model_options options = {.keep_binds = true};
	if (weft_trace_open(&trace, path, &err) < 0 || weft_model_build(&model, trace, &options, &err) < 0)
		fatal("%s", err.what);
	const struct weft_trace_info *info = weft_trace_info(trace);
	for (size_t i = 0; i < info->stream_count; i++)
		turn->lost += info->streams[i].lost_full + info->streams[i].lost_nested;
	turn->opening_kb = memory_kb();
}

static void wait_for(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
		fatal("a process has failed");
}

/* A process that records, perhaps one that follows, then one that opens all. */
static void take_turn(struct turn *turn, double seconds, bool follows)
{
	int over[2];
	char command[96];
	if (pipe2(over, O_NONBLOCK) < 0)
		fatal("no pipe");
	const pid_t recording = fork();
	if (recording == 0) {
		record(turn, seconds);
		_exit(0);
	}
	const pid_t following = follows ? fork() : 0;
	if (follows && following == 0) {
		close(over[1]);
		follow(turn, over[0]);
		_exit(0);
	}
	wait_for(recording);
	close(over[1]);
	if (follows)
		wait_for(following);
	close(over[0]);
	const pid_t opening = fork();
	if (opening == 0) {
		open_once(turn);
		_exit(0);
	}
	wait_for(opening);
	snprintf(command, sizeof command, "rm -rf %s", path);
	if (system(command) != 0)
		fatal("%s: is in the way", path);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 30;
	struct turn *turns = mmap(NULL, TURNS * sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turns == MAP_FAILED || !mkdtemp(directory))
		fatal("no memory, or no place in /tmp");
	snprintf(path, sizeof path, "%s/trace", directory);
	/* The follower's turns are long, as the others need not be. */
	for (size_t i = 0; i < TURNS; i++)
		take_turn(&turns[i], i == 1 ? seconds : seconds < 10 ? seconds : 10, i % 2);
	rmdir(directory);
	struct turn *t = &turns[1];
	double ratio = (turns[1].cpu_ns + turns[3].cpu_ns) / (turns[0].cpu_ns + turns[2].cpu_ns);
	if (!t->count)
		fatal("the follower saw nothing");
	printf("events_s %.0f\nprocessor %.4f\n", 1e9 * (double)t->events / t->wall_ns, t->follower_ns / t->wall_ns);
	printf("follower_kb %ld\nopening_kb %ld\n", t->memory_kb, t->opening_kb);
	printf("looks %zu\nlook_ms %.2f\n", t->count, median(t->looks, t->count) / 1e6);
	printf("delay_ms %.2f\n", median(t->delays, t->count) / 1e6);
	printf("delay_p99_ms %.2f\n", t->delays[t->count * 99 / 100] / 1e6);
	printf("restarts %.0f\nlost %.0f\nprogram %.4f\n", (double)t->restarts, (double)t->lost, ratio);
	return 0;
}
