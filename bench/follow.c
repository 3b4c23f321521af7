/* follow.c: the cost of following a ring that is written at a million events a second, and its effect on the program.
 *
 *	weft-bench-follow SECONDS
 *
 * Turns with a follower and without one alternate; each is a process that records, paced by the clock.  A counter records the
 * time of an event, so that the follower can compute its age.  The followers work as `weft waits`, the window's loader and `weft
 * serve` do, at their pace.  The work of a window's drawing and of a browser is not included.  SPDX-License-Identifier: ISC */
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

enum { BATCH = 1000, MAX_REFRESHES = 1 << 16, PENDING = 1000 };
enum follower { NO_FOLLOWER, WAITS, WINDOW, SERVE };
static const char *const names[] = {"nobody", "waits", "window", "serve"};
static const enum follower turn_followers[] = {NO_FOLLOWER, WAITS, NO_FOLLOWER, WAITS, WINDOW, SERVE};
enum { TURNS = sizeof turn_followers / sizeof *turn_followers };

static char directory[] = "/tmp/weft-bench-XXXXXX", path[64];

/* Results of the processes, in shared memory. */
struct turn {
	double cpu_ns; /* CPU time of the program for one event: median of batches */
	double follower_ns, wall_ns;
	double delays[MAX_REFRESHES], refresh_ns[MAX_REFRESHES]; /* delays: age of the oldest event that a refresh shows first */
	size_t count;
	uint64_t events, restarts, lost;
	long memory_kb, opening_kb;
};

static void sleep_until(double at_ns)
{
	const struct timespec at = {(time_t)(at_ns / 1e9), (long)(at_ns - 1e9 * (double)(time_t)(at_ns / 1e9))};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Records the current time; the value is odd at the end of a batch. */
static void record_time(bool is_end)
{
	const int64_t now_ns = (int64_t)clock_now_ns(CLOCK_MONOTONIC);
	weft_counter_set(WEFT_SYSTEM_ID, WEFT_TEXT("recorded"), is_end ? now_ns | 1 : now_ns & ~INT64_C(1));
}

/* Records a thousand events: tasks that wait for each other, many of them pending at once. */
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

/* Records for that long, one batch per ms; a late batch is followed by the next one at once. */
static void record_paced(struct turn *turn, double seconds)
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

/* Times of the newest shown event, and of the oldest that was not shown before; 0: none. */
struct sample_times {
	int64_t newest_ns, oldest_ns;
};

/* Notes a sample.  After a batch nothing is recorded until the next one begins: that gap is not a delay of the follower. */
static void note_sample(struct sample_times *sample_times, const struct sample_times *before, int64_t at_ns)
{
	if (at_ns <= before->newest_ns)
		return;
	if (!sample_times->oldest_ns)
		sample_times->oldest_ns = before->newest_ns & 1 ? at_ns : before->newest_ns;
	sample_times->newest_ns = at_ns;
}

static void note_model_samples(struct sample_times *sample_times, const struct sample_times *before, const struct weft_model *m)
{
	const struct weft_counter *c = m && m->counter_count ? &m->counters[0] : NULL;
	for (size_t i = 0; c && i < c->count; i++)
		note_sample(sample_times, before, c->samples[i].value);
}

/* Finds the samples as the browser does, whose own time is not included. */
static void note_trace_samples(struct sample_times *sample_times, const struct sample_times *before, struct weft_trace *trace)
{
	const struct weft_event *events;
	size_t count;
	weft_trace_rewind(trace);
	while (weft_trace_next(trace, &events, &count) > 0)
		for (size_t i = 0; i < count; i++)
			if (events[i].op == WEFT_OP_COUNTER)
				note_sample(sample_times, before, events[i].value);
}

static void destroy_followed(void *followed)
{
	weft_followed_model_destroy(followed);
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

/* Shows a refresh, which the viewer then owns. */
static void show_refresh(enum follower follower, struct weft_followed_model *refreshed, struct weft_viewer **viewer)
{
	size_t bytes = 0;
	struct weft_viewer *fresh;
	if (!refreshed)
		fatal("no memory");
	if (follower == SERVE)
		weft_followed_model_save(refreshed, count_bytes, &bytes, NULL);
	if (follower != WINDOW)
		return;
	if (weft_viewer_open_model(&fresh, refreshed->model, refreshed->trace, destroy_followed, refreshed, NULL) < 0)
		fatal("no memory for the window");
	weft_viewer_destroy(*viewer);
	*viewer = fresh;
}

/* Refreshes until the recording has ended. */
static void follow_ring(struct turn *turn, enum follower follower, int over)
{
	const struct weft_follower_options of_waits = {.model.keep_binds = true};
	const struct weft_follower_options of_viewer = {.window_ns = INT64_MAX,
	    .window_events = WEFT_FOLLOWER_WINDOW_EVENTS,
	    .begins_at_window = true,
	    .makes_no_model = follower == SERVE};
	struct weft_followers *followers;
	struct weft_viewer *viewer = NULL;
	struct weft_trace *whole = NULL;
	size_t bytes = 0;
	struct weft_error err;
	struct sample_times sample_times = {0};
	double others_ns = 0;
	char byte;
	if (follower != WAITS) { /* these followers open the whole trace first */
		sleep_until(clock_now_ns(CLOCK_MONOTONIC) + 5e9);
		if (follower == WINDOW)
			viewer = open_viewer();
		else if (weft_trace_open(&whole, path, &err) < 0 || weft_trace_save(whole, NULL, count_bytes, &bytes, &err) < 0)
			fatal("%s", err.what);
	}
	if (weft_followers_open(&followers, follower == WAITS ? &of_waits : &of_viewer, &err) < 0)
		fatal("%s", err.what);
	double before_ns = cpu_ns(), began_ns = clock_now_ns(CLOCK_MONOTONIC);
	bool is_begun = follower == WAITS;
	while (read(over, &byte, 1) < 0 && turn->count < MAX_REFRESHES) {
		const double refresh_began_ns = clock_now_ns(CLOCK_MONOTONIC), used_ns = cpu_ns();
		const char *const followed = path;
		if (weft_followers_refresh(followers, &followed, 1, false, &err) > 0) {
			struct weft_followed_model *refreshed = weft_followers_detach(followers);
			show_refresh(follower, refreshed, &viewer);
			const double now_ns = clock_now_ns(CLOCK_MONOTONIC), own_ns = cpu_ns();
			struct sample_times fresh = {0};
			if (follower == SERVE)
				note_trace_samples(&fresh, &sample_times, refreshed->trace);
			else
				note_model_samples(&fresh, &sample_times, refreshed->model);
			if (follower != WINDOW)
				weft_followed_model_destroy(refreshed);
			others_ns += cpu_ns() - own_ns;
			if (sample_times.newest_ns && fresh.newest_ns) {
				turn->delays[turn->count] = now_ns - (double)fresh.oldest_ns;
				turn->refresh_ns[turn->count++] = now_ns - refresh_began_ns;
			}
			sample_times = fresh.newest_ns ? fresh : sample_times;
		}
		if (!is_begun && turn->count == 2) { /* events that came during the first read are old */
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

/* Opens the whole ring once. */
static void open_once(struct turn *turn, enum follower follower)
{
	struct weft_viewer *viewer = follower == WINDOW ? open_viewer() : NULL;
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

/* Runs a process that records, one that follows (optional), then one that opens the whole trace. */
static void run_turn(struct turn *turn, double seconds, enum follower follower)
{
	int over[2];
	char command[96];
	if (pipe2(over, O_NONBLOCK) < 0)
		fatal("no pipe");
	const pid_t recording = fork();
	if (recording == 0) {
		record_paced(turn, seconds);
		_exit(0);
	}
	const pid_t following = follower ? fork() : 0;
	if (follower && following == 0) {
		close(over[1]);
		follow_ring(turn, follower, over[0]);
		_exit(0);
	}
	wait_for(recording);
	close(over[1]);
	if (follower)
		wait_for(following);
	close(over[0]);
	const pid_t opening = fork();
	if (opening == 0) {
		open_once(turn, follower);
		_exit(0);
	}
	wait_for(opening);
	snprintf(command, sizeof command, "rm -rf %s", path);
	if (system(command) != 0)
		fatal("%s: cannot be removed", path);
}

static void print_turn(const char *name, struct turn *t)
{
	if (!t->count)
		fatal("%s saw nothing", name);
	printf("%s_processor %.4f\n", name, t->follower_ns / t->wall_ns);
	printf("%s_kb %ld\n%s_opening_kb %ld\n", name, t->memory_kb, name, t->opening_kb);
	printf("%s_looks %zu\n%s_look_ms %.2f\n", name, t->count, name, median(t->refresh_ns, t->count) / 1e6);
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
	/* One turn of each follower is long; the others may be short. */
	for (size_t i = 0; i < TURNS; i++)
		run_turn(&turns[i],
		    i == 1 || turn_followers[i] > WAITS ? seconds
		    : seconds < 10                      ? seconds
							: 10,
		    turn_followers[i]);
	rmdir(directory);
	for (size_t i = 0; i < TURNS; i++)
		if (i == 1 || turn_followers[i] > WAITS)
			print_turn(names[turn_followers[i]], &turns[i]);
	printf("events_s %.0f\n", 1e9 * (double)turns[1].events / turns[1].wall_ns);
	printf("program %.4f\n", (turns[1].cpu_ns + turns[3].cpu_ns) / (turns[0].cpu_ns + turns[2].cpu_ns));
	return 0;
}
