/* follow.c: what it costs to follow a ring that is written at a million events a second, and what the program notices of it.
 *
 *	weft-bench-follow SECONDS
 *
 * Turns with a follower and without one alternate; each is a process that records, paced by the clock.  A counter tells when an
 * event was recorded, so that who sees it knows how old it is.  Those who follow do what weft waits, the window's loader and weft
 * serve do, at their pace; what a window draws, and what a browser does, is not in it.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/record.h>

#include "bench/bench.h"
#include "model/followers.h"
#include "viewer/viewer.h"

enum { BATCH = 1000, MOST_LOOKS = 1 << 16, PENDING = 1000 };
enum who { NOBODY, WAITS, WINDOW, SERVE };
static const char *const names[] = {"nobody", "waits", "window", "serve"};
static const enum who turns_of[] = {NOBODY, WAITS, NOBODY, WAITS, WINDOW, SERVE};
enum { TURNS = sizeof turns_of / sizeof *turns_of };

static char directory[] = "/tmp/weft-bench-XXXXXX", path[64];

/* What the processes tell: in memory that they share. */
struct turn {
	double cpu_ns; /* of the program, an event: median of batches */
	double follower_ns, wall_ns;
	double delays[MOST_LOOKS], looks[MOST_LOOKS]; /* delays: how old the oldest event is that a look shows first */
	size_t count;
	uint64_t events, restarts, lost;
	long memory_kb, opening_kb;
};

static void sleep_until(double at_ns)
{
	const struct timespec at = {(time_t)(at_ns / 1e9), (long)(at_ns - 1e9 * (double)(time_t)(at_ns / 1e9))};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* When it was recorded; odd where a batch ends. */
static void record_time(bool is_end)
{
	const int64_t now_ns = (int64_t)clock_now_ns(CLOCK_MONOTONIC);
	weft_counter_set(WEFT_SYSTEM_ID, WEFT_TEXT("recorded"), is_end ? now_ns | 1 : now_ns & ~INT64_C(1));
}

/* A thousand events: tasks that wait for each other, of which many are pending at once. */
static void record_batch(weft_id pending[PENDING], uint64_t batch)
{
	record_time(false);
	for (unsigned i = 0; i < BATCH / 5; i++) {
		weft_id *slot = &pending[(batch * (BATCH / 5) + i) % PENDING];
		if (*slot)
			weft_resolve(WEFT_SYSTEM_ID, *slot);
		*slot = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_label_text(*slot, WEFT_TEXT("task"));
		weft_await(*slot, pending[(batch * (BATCH / 5) + i + PENDING / 2) % PENDING]);
		weft_run(*slot);
	}
	record_time(true);
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

static int count_bytes(void *bytes, const char *name, const void *file, size_t size)
{
	(void)name;
	(void)file;
	*(size_t *)bytes += size;
	return 0;
}

/* When events were recorded that were shown: the newest, and the oldest that was not shown before; 0: none. */
struct seen {
	int64_t newest_ns, oldest_ns;
};

/* Behind a batch nothing was recorded until the next began: that the program did not run is not the follower's. */
static void see(struct seen *seen, const struct seen *before, int64_t at_ns)
{
	if (at_ns <= before->newest_ns)
		return;
	if (!seen->oldest_ns)
		seen->oldest_ns = before->newest_ns & 1 ? at_ns : before->newest_ns;
	seen->newest_ns = at_ns;
}

static void see_model(struct seen *seen, const struct seen *before, const struct weft_model *m)
{
	const struct weft_counter *c = m && m->counter_count ? &m->counters[0] : NULL;
	for (size_t i = 0; c && i < c->count; i++)
		see(seen, before, c->samples[i].value);
}

/* As the browser finds it, whose time is its own. */
static void see_trace(struct seen *seen, const struct seen *before, struct weft_trace *trace)
{
	const struct weft_event *events;
	size_t count;
	weft_trace_rewind(trace);
	while (weft_trace_next(trace, &events, &count) > 0)
		for (size_t i = 0; i < count; i++)
			if (events[i].op == WEFT_OP_COUNTER)
				see(seen, before, events[i].value);
}

static void release(void *followed)
{
	weft_followed_destroy(followed);
}

static struct weft_viewer *open_viewer(void)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	struct weft_error err;
	if (weft_trace_open(&trace, path, &err) < 0 || weft_viewer_open(&viewer, trace, NULL, &err) < 0)
		fatal("%s", err.what);
	return viewer;
}

/* Shows what a look found, which the viewer then owns. */
static void show(enum who who, struct weft_followed *taken, struct weft_viewer **viewer)
{
	size_t bytes = 0;
	struct weft_viewer *fresh;
	if (!taken)
		fatal("no memory");
	if (who == SERVE)
		weft_followed_save(taken, count_bytes, &bytes, NULL);
	if (who != WINDOW)
		return;
	if (weft_viewer_open_model(&fresh, taken->model, taken->trace, release, taken, NULL) < 0)
		fatal("no memory for the window");
	weft_viewer_destroy(*viewer);
	*viewer = fresh;
}

/* Looks until the recording has ended. */
static void follow(struct turn *turn, enum who who, int over)
{
	const struct weft_follower_options of_waits = {.model.keep_binds = true};
	const struct weft_follower_options of_viewer = {.window_ns = INT64_MAX,
	    .window_events = WEFT_FOLLOWER_SEEN,
	    .begins_at_window = true,
	    .makes_no_model = who == SERVE};
	struct weft_followers *followers;
	struct weft_viewer *viewer = NULL;
	struct weft_trace *whole = NULL;
	size_t bytes = 0;
	struct weft_error err;
	struct seen seen = {0};
	double others_ns = 0;
	char byte;
	if (who != WAITS) { /* they open all of it first */
		sleep_until(clock_now_ns(CLOCK_MONOTONIC) + 5e9);
		if (who == WINDOW)
			viewer = open_viewer();
		else if (weft_trace_open(&whole, path, &err) < 0 || weft_trace_save(whole, NULL, count_bytes, &bytes, &err) < 0)
			fatal("%s", err.what);
	}
	if (weft_followers_open(&followers, who == WAITS ? &of_waits : &of_viewer, &err) < 0)
		fatal("%s", err.what);
	double before_ns = cpu_ns(), began_ns = clock_now_ns(CLOCK_MONOTONIC);
	bool is_begun = who == WAITS;
	while (read(over, &byte, 1) < 0 && turn->count < MOST_LOOKS) {
		const double look_ns = clock_now_ns(CLOCK_MONOTONIC), used_ns = cpu_ns();
		const char *const followed = path;
		if (weft_followers_look(followers, &followed, 1, false, &err) > 0) {
			struct weft_followed *taken = weft_followers_take(followers);
			show(who, taken, &viewer);
			const double now_ns = clock_now_ns(CLOCK_MONOTONIC), own_ns = cpu_ns();
			struct seen fresh = {0};
			if (who == SERVE)
				see_trace(&fresh, &seen, taken->trace);
			else
				see_model(&fresh, &seen, taken->model);
			if (who != WINDOW)
				weft_followed_destroy(taken);
			others_ns += cpu_ns() - own_ns;
			if (seen.newest_ns && fresh.newest_ns) {
				turn->delays[turn->count] = now_ns - (double)fresh.oldest_ns;
				turn->looks[turn->count++] = now_ns - look_ns;
			}
			seen = fresh.newest_ns ? fresh : seen;
		}
		if (!is_begun && turn->count == 2) { /* what came while all was read is old */
			weft_trace_close(whole);
			is_begun = true;
			turn->count = 0;
			before_ns = cpu_ns();
			began_ns = clock_now_ns(CLOCK_MONOTONIC);
			others_ns = 0;
		}
		sleep_until(clock_now_ns(CLOCK_MONOTONIC) + (double)weft_follower_rest_ns((int64_t)(cpu_ns() - used_ns)));
	}
	turn->follower_ns = cpu_ns() - before_ns - others_ns;
	turn->wall_ns = clock_now_ns(CLOCK_MONOTONIC) - began_ns;
	turn->events = weft_followers_events(followers);
	turn->restarts = weft_followers_restarts(followers);
	turn->memory_kb = memory_kb();
	weft_viewer_destroy(viewer);
	weft_followers_close(followers);
}

/* Opens the ring once, as a whole. */
static void open_once(struct turn *turn, enum who who)
{
	struct weft_viewer *viewer = who == WINDOW ? open_viewer() : NULL;
	struct weft_trace *trace = viewer ? viewer->trace : NULL;
	struct weft_model *model;
	struct weft_error err;
	const struct weft_model_options options = {.keep_binds = true};
	if (!viewer && (weft_trace_open(&trace, path, &err) < 0 || weft_model_build(&model, trace, &options, &err) < 0))
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
static void take_turn(struct turn *turn, double seconds, enum who who)
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
	const pid_t following = who ? fork() : 0;
	if (who && following == 0) {
		close(over[1]);
		follow(turn, who, over[0]);
		_exit(0);
	}
	wait_for(recording);
	close(over[1]);
	if (who)
		wait_for(following);
	close(over[0]);
	const pid_t opening = fork();
	if (opening == 0) {
		open_once(turn, who);
		_exit(0);
	}
	wait_for(opening);
	snprintf(command, sizeof command, "rm -rf %s", path);
	if (system(command) != 0)
		fatal("%s: is in the way", path);
}

static void tell(const char *name, struct turn *t)
{
	if (!t->count)
		fatal("%s saw nothing", name);
	printf("%s_processor %.4f\n", name, t->follower_ns / t->wall_ns);
	printf("%s_kb %ld\n%s_opening_kb %ld\n", name, t->memory_kb, name, t->opening_kb);
	printf("%s_looks %zu\n%s_look_ms %.2f\n", name, t->count, name, median(t->looks, t->count) / 1e6);
	printf("%s_delay_ms %.2f\n", name, median(t->delays, t->count) / 1e6);
	printf("%s_delay_p99_ms %.2f\n", name, t->delays[t->count * 99 / 100] / 1e6);
	printf("%s_delay_most_ms %.2f\n", name, t->delays[t->count - 1] / 1e6);
	printf("%s_restarts %.0f\n%s_lost %.0f\n", name, (double)t->restarts, name, (double)t->lost);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 30;
	struct turn *turns = mmap(NULL, TURNS * sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turns == MAP_FAILED || !mkdtemp(directory))
		fatal("no memory, or no place in /tmp");
	snprintf(path, sizeof path, "%s/trace", directory);
	/* One turn of each follower is long, as the others need not be. */
	for (size_t i = 0; i < TURNS; i++)
		take_turn(&turns[i], i == 1 || turns_of[i] > WAITS ? seconds : seconds < 10 ? seconds : 10, turns_of[i]);
	rmdir(directory);
	for (size_t i = 0; i < TURNS; i++)
		if (i == 1 || turns_of[i] > WAITS)
			tell(names[turns_of[i]], &turns[i]);
	printf("events_s %.0f\n", 1e9 * (double)turns[1].events / turns[1].wall_ns);
	printf("program %.4f\n", (turns[1].cpu_ns + turns[3].cpu_ns) / (turns[0].cpu_ns + turns[2].cpu_ns));
	return 0;
}
