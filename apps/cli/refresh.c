/* refresh.c: implements refresh.h.  SPDX-License-Identifier: ISC */
#include "refresh.h"
#include "control/deadline.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "analysis/queries/finding_history.h"
#include "base/duration.h"
#include "base/hash.h"
#include "model/followers.h"
#include "trace/multi_open.h"

/* A pause between refreshes keeps the refresher below a tenth of a CPU; analyses of whole traces use 1/400 of a CPU.
 */
enum {
	CPU_SHARE_DIVISOR = 10,
	WHOLE_SHARE_DIVISOR = 400,
	FIRST_EVENTS = 1 << 19, /* number of events that are shown and explained completely at the start */
	WINDOW_EVENTS = 1 << 13,
	HISTORY_EVENTS = WINDOW_EVENTS,
	MAX_STEPS = 16,
	RETAINED_HEAP_BYTES = 1 << 25
};
#define WHOLE_INTERVAL_NS INT64_C(10000000000)
#define WHOLE_EVENT_NS 1000 /* estimated cost in ns of explaining an event, until the real cost is measured */
#define HISTORY_NS INT64_C(25000000000)
#define MIN_LEAD_NS INT64_C(10000000)

struct cli_refresher {
	struct open_plan *plan; /* plan for the current traces of the operands, which only the refresher's thread uses */
	int64_t every_ns;
	int fd;
	atomic_bool should_stop, is_quiet;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Protected by the mutex. */
	int64_t window_ns;
	bool is_urgent, wants_all;
	struct cli_snapshot *newest, *all;
	struct weft_error err;
	/* Fields that only the refresher's OS thread uses. */
	uint64_t seen_fingerprint;
	bool was_recorded;
	struct weft_followers *followers;
	unsigned generation;   /* of the newest snapshot */
	uint64_t process_hash; /* hash of the list of processes in the newest snapshot */
	struct weft_finding_history *history;
	struct cli_names names;
	int64_t whole_explained_ns; /* time of the last complete analysis */
	double whole_ns_per_event;  /* cost of the last complete analysis per event, and number of events in a full ring */
	uint64_t max_ring_events;
	int64_t snapshot_ns; /* time of the newest snapshot, and number of events until that time */
	uint64_t snapshot_events;
	uint64_t restarts;  /* restarts of the follower */
	unsigned steps;     /* number of reads of the traces between two snapshots */
	int64_t history_ns; /* length of the window that is cheap to read */
	int64_t lead_ns;    /* time before a snapshot from which on new events are not skipped; 0 if no events are skipped */
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void cli_snapshot_free(struct cli_snapshot *snapshot)
{
	if (!snapshot)
		return;
	weft_live_destroy(snapshot->live);
	if (snapshot->findings)
		weft_findings_destroy(snapshot->findings);
	if (snapshot->followed)
		weft_followed_model_destroy(snapshot->followed);
	else
		cli_close(&snapshot->input);
	free(snapshot);
}

/* ---- Reading ---- */

static bool continue_reading(void *refresher, uint64_t events)
{
	(void)events;
	return !atomic_load(&((struct cli_refresher *)refresher)->should_stop);
}

static bool continue_explaining(void *refresher, unsigned percent)
{
	return continue_reading(refresher, percent);
}

/* Removes findings that the promise running during a snapshot has crashed, because it may still run. */
static void drop_crashes(struct weft_findings *findings)
{
	size_t kept = 0;
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == WEFT_FINDING_CRASH)
			free(findings->findings[i].steps);
		else
			findings->findings[kept++] = findings->findings[i];
	findings->count = kept;
}

/* Computes the findings and the tables of a snapshot. */
static int explain_snapshot(struct cli_refresher *l, struct cli_snapshot *snapshot, int64_t window_ns, struct weft_error *err)
{
	const struct weft_explain_options how = {.go_on = continue_explaining, .ctx = l};
	const struct weft_model *m = snapshot->input.model;
	struct weft_findings *all;
	weft_explain(&snapshot->findings, m, &how, NULL);
	if (snapshot->findings && snapshot->is_recorded)
		drop_crashes(snapshot->findings);
	if (snapshot->findings && snapshot->followed &&
	    weft_finding_history_update(l->history, &all, snapshot->findings, m, snapshot->is_whole) == WEFT_OK) {
		weft_findings_destroy(snapshot->findings);
		snapshot->findings = all;
	}
	return weft_live_create(
	    &snapshot->live, m, snapshot->findings, m->end_ns, weft_min_ns(window_ns, m->end_ns - snapshot->from_ns), err);
}

static struct cli_snapshot *create_snapshot(bool is_recorded, struct weft_error *err)
{
	struct cli_snapshot *snapshot = calloc(1, sizeof *snapshot);
	if (snapshot)
		snapshot->is_recorded = is_recorded;
	else
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	return snapshot;
}

static int check_has_events(int status, struct weft_error *err)
{
	return status == WEFT_EFORMAT ? weft_error_set(err, status, "no events yet") : status;
}

static struct cli_snapshot *read_whole(struct cli_refresher *l, bool is_recorded, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model_options options = {.keep_binds = true, .go_on = continue_reading, .ctx = l};
	struct cli_snapshot *snapshot = create_snapshot(is_recorded, err);
	if (!snapshot)
		return NULL;
	snapshot->input.name = l->plan->name;
	int status = open_run(&snapshot->input.trace, l->plan, err);
	if (status < 0) {
		free(snapshot);
		return NULL;
	}
	snapshot->is_whole = true;
	cli_find_site_names_quickly(snapshot->input.trace);
	status = check_has_events(weft_model_build(&snapshot->input.model, snapshot->input.trace, &options, err), err);
	if (status == WEFT_OK) {
		snapshot->events = snapshot->input.model->events;
		status = explain_snapshot(l, snapshot, window_ns, err);
	}
	if (status == WEFT_OK)
		return snapshot;
	cli_snapshot_free(snapshot);
	return NULL;
}

/* ---- Following ---- */

/* Chooses the window of the next snapshot.  For busy programs the window has only the newest events; earlier events are skipped
 * without a model, by the follower of a single trace or here for several traces.  For idle programs the window is longer,
 * because counters then show more. */
static void update_pace(struct cli_refresher *l, uint64_t events)
{
	const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const double each_ns = (double)(now_ns - l->snapshot_ns) / (double)(events - l->snapshot_events + 1);
	const bool is_led = l->plan->paths.count > 1 && each_ns * 2 * WINDOW_EVENTS < (double)l->every_ns;
	l->lead_ns = is_led ? weft_max_ns(MIN_LEAD_NS, (int64_t)(each_ns * WINDOW_EVENTS)) : 0;
	l->history_ns = (int64_t)(each_ns < (double)HISTORY_NS / HISTORY_EVENTS ? each_ns * HISTORY_EVENTS : (double)HISTORY_NS);
	l->snapshot_ns = now_ns;
	l->snapshot_events = events;
}

static void stop_following(struct cli_refresher *l)
{
	weft_followers_close(l->followers);
	weft_finding_history_destroy(l->history);
	cli_names_clear(&l->names);
	l->followers = NULL;
	l->history = NULL;
}

/* Returns false without memory. */
static bool start_following(struct cli_refresher *l)
{
	const struct weft_follower_options options = {.model = {.keep_binds = true, .go_on = continue_reading, .ctx = l},
	    .window_events = WINDOW_EVENTS,
	    .first_events = FIRST_EVENTS};
	if (l->followers)
		return true;
	l->history = weft_finding_history_create();
	l->lead_ns = l->history_ns = 0;
	l->snapshot_ns = l->whole_explained_ns = clock_ns(CLOCK_MONOTONIC);
	l->whole_ns_per_event = WHOLE_EVENT_NS;
	l->max_ring_events = UINT64_MAX;
	l->snapshot_events = l->restarts = l->process_hash = 0;
	l->steps = 1;
	if (l->history && weft_followers_open(&l->followers, &options, NULL) == WEFT_OK)
		return true;
	stop_following(l);
	return false;
}

/* Forgets the history of findings when traces appear or vanish, because ids of promises change then. */
static bool check_generation(struct cli_refresher *l)
{
	const unsigned generation = weft_followers_generation(l->followers);
	if (generation == l->generation)
		return true;
	l->generation = generation;
	weft_finding_history_destroy(l->history);
	l->history = weft_finding_history_create();
	cli_names_clear(&l->names);
	return l->history;
}

/* Returns a hash of the list of processes, which depends on their order. */
static uint64_t hash_processes(const struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	uint64_t all = 0;
	for (size_t i = 0; i < info->part_count; i++)
		all = weft_hash_u64(
		    all + info->parts[i].pid + weft_hash_bytes(info->parts[i].process.ptr, info->parts[i].process.len));
	return all;
}

/* Notes the cost of reading and explaining the whole trace. */
static void note_whole_cost(struct cli_refresher *l, const struct cli_snapshot *snapshot, int64_t took_ns)
{
	const struct weft_trace_info *info = weft_trace_info(snapshot->input.trace);
	uint64_t overwritten = 0;
	for (size_t i = 0; i < info->stream_count; i++)
		overwritten += info->streams[i].lost_overwritten;
	const uint64_t events = snapshot->input.model->events;
	l->whole_ns_per_event = (double)took_ns / (double)(events + 1);
	l->max_ring_events = overwritten ? events : UINT64_MAX;
	l->whole_explained_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Searches for findings that need the whole trace, such as growth, so rarely that it uses little CPU time. */
static void explain_whole(struct cli_refresher *l)
{
	const int64_t now_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t read = weft_followers_events(l->followers), events = read < l->max_ring_events ? read : l->max_ring_events;
	const double rest_ns = l->whole_ns_per_event * (double)events * WHOLE_SHARE_DIVISOR;
	struct weft_error err;
	struct weft_findings *all;
	if (now_ns - l->whole_explained_ns < WHOLE_INTERVAL_NS || (double)(now_ns - l->whole_explained_ns) < rest_ns)
		return;
	struct cli_snapshot *snapshot = read_whole(l, true, 0, &err);
	l->whole_explained_ns = now_ns;
	if (!snapshot)
		return;
	if (snapshot->findings && hash_processes(snapshot->input.trace) == l->process_hash &&
	    weft_finding_history_update(l->history, &all, snapshot->findings, snapshot->input.model, true) == WEFT_OK)
		weft_findings_destroy(all);
	note_whole_cost(l, snapshot, clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
	cli_snapshot_free(snapshot);
}

/* Takes a snapshot of followed traces.  Returns NULL without an error if there are no new events. */
static struct cli_snapshot *read_followed(struct cli_refresher *l, int64_t window_ns, struct weft_error *err)
{
	const int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	weft_followers_set_window(l->followers, weft_max_ns(window_ns, l->history_ns));
	explain_whole(l);
	const struct open_plan *plan = l->plan;
	const int status =
	    weft_followers_refresh(l->followers, plan->paths.items, plan->paths.count, open_has_session(plan), err);
	if (status < 0 && plan->paths.count > 1)
		return read_whole(l, true, window_ns, err);
	if (check_has_events(status, err) <= 0)
		return NULL;
	struct cli_snapshot *snapshot = create_snapshot(true, err);
	if (!snapshot || !(snapshot->followed = weft_followers_detach(l->followers)) || !check_generation(l)) {
		cli_snapshot_free(snapshot);
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return NULL;
	}
	snapshot->input =
	    (struct cli_input){.name = l->plan->name, .trace = snapshot->followed->trace, .model = snapshot->followed->model};
	snapshot->from_ns = weft_followers_window_start_ns(l->followers);
	snapshot->events = weft_followers_events(l->followers);
	snapshot->is_whole = snapshot->from_ns == 0;
	l->process_hash = hash_processes(snapshot->input.trace);
	update_pace(l, snapshot->events);
	cli_names_apply(&l->names, snapshot->input.trace);
	if (explain_snapshot(l, snapshot, window_ns, err) < 0) {
		cli_snapshot_free(snapshot);
		return NULL;
	}
	if (snapshot->is_whole)
		note_whole_cost(l, snapshot, clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
	return snapshot;
}

/* Finds the current traces, and whether they are being recorded and can be followed.  Returns a hash that changes when traces
 * that cannot be followed change. */
static uint64_t scan_paths(struct cli_refresher *l, bool *is_recorded, bool *is_followed)
{
	struct open_plan *plan = l->plan;
	uint64_t hash = 0;
	*is_recorded = *is_followed = false;
	if (!open_reclassify(plan))
		return hash;
	const bool has_memory = open_has_process(plan);
	*is_recorded = has_memory || weft_multi_is_recorded(plan->paths.items, plan->paths.count);
	*is_followed = *is_recorded && !has_memory && start_following(l);
	if (!*is_followed)
		hash = (has_memory ? (uint64_t)clock_ns(CLOCK_MONOTONIC) : 0) +
		       weft_multi_fingerprint(plan->paths.items, plan->paths.count);
	return hash;
}

/* ---- The thread that takes snapshots ---- */

static void publish_snapshot(
    struct cli_refresher *l, struct cli_snapshot *snapshot, struct cli_snapshot **to, const struct weft_error *err)
{
	const uint64_t one = 1;
	pthread_mutex_lock(&l->mutex);
	struct cli_snapshot *before = snapshot ? *to : NULL;
	if (snapshot)
		*to = snapshot;
	l->err = *err;
	pthread_mutex_unlock(&l->mutex);
	cli_snapshot_free(before);
	if (write(l->fd, &one, sizeof one) < 0)
		return; /* it is already readable */
}

/* Sleeps.  Returns false if the thread must stop. */
static bool sleep_unless_stopped(struct cli_refresher *l, int64_t ns)
{
	const struct timespec until = deadline_to_timespec(deadline_after_ns(ns));
	pthread_mutex_lock(&l->mutex);
	while (!atomic_load(&l->should_stop) && !l->is_urgent && pthread_cond_timedwait(&l->wake, &l->mutex, &until) == 0)
		;
	l->is_urgent = false;
	const bool is_running = !atomic_load(&l->should_stop);
	pthread_mutex_unlock(&l->mutex);
	return is_running;
}

/* Makes the thread read more often if the ring was overwritten between two snapshots. */
static void update_steps(struct cli_refresher *l)
{
	const uint64_t restarts = weft_followers_restarts(l->followers);
	if (restarts > l->restarts && l->steps < MAX_STEPS)
		l->steps *= 2;
	l->restarts = restarts;
}

static bool wait_for_next_refresh(struct cli_refresher *l)
{
	struct weft_error err;
	if (!l->followers)
		return sleep_unless_stopped(l, l->every_ns);
	update_steps(l);
	const int64_t step_ns = (l->every_ns - l->lead_ns) / l->steps;
	for (unsigned i = l->lead_ns ? 0 : 1; i < l->steps; i++) {
		if (!sleep_unless_stopped(l, step_ns))
			return false;
		/* An error is ignored here, because the next snapshot reports it. */
		(void)weft_followers_skip(l->followers, &err);
	}
	return sleep_unless_stopped(l, l->lead_ns ? l->lead_ns : step_ns);
}

/* Reads the requests of the other thread: the length of the window, and whether to read all events. */
static bool pop_requests(struct cli_refresher *l, int64_t *window_ns)
{
	pthread_mutex_lock(&l->mutex);
	const bool wants_all = l->wants_all;
	*window_ns = l->window_ns;
	l->wants_all = false;
	pthread_mutex_unlock(&l->mutex);
	return wants_all;
}

static void *run_refresher(void *refresher)
{
	struct cli_refresher *l = refresher;
	int64_t not_before_ns = 0, window_ns = 0;
	do {
		struct weft_error err = {.what = ""};
		bool is_recorded, is_followed = false;
		const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
			      before_ns = window_ns;
		const uint64_t now = scan_paths(l, &is_recorded, &is_followed);
		const bool wants_all = pop_requests(l, &window_ns), is_other = window_ns != before_ns;
		const bool is_new = now != l->seen_fingerprint || is_recorded != l->was_recorded || is_other || is_followed;
		struct cli_snapshot *snapshot = NULL;
		if (is_new && (began_ns >= not_before_ns || is_other)) {
			l->seen_fingerprint = now;
			l->was_recorded = is_recorded;
			if (is_followed && is_other)
				weft_followers_mark_stale(l->followers);
			snapshot = is_followed ? read_followed(l, window_ns, &err) : read_whole(l, is_recorded, window_ns, &err);
			if (snapshot || err.what[0])
				publish_snapshot(l, snapshot, &l->newest, &err);
			not_before_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * CPU_SHARE_DIVISOR;
		} else if (is_followed) {
			/* New events are skipped now, because the ring may be overwritten before the next snapshot. */
			(void)weft_followers_skip(l->followers, &err);
		}
		atomic_store(&l->is_quiet, !snapshot);
		if (wants_all)
			publish_snapshot(l, read_whole(l, is_recorded, window_ns, &err), &l->all, &err);
	} while (wait_for_next_refresh(l));
	stop_following(l);
	return NULL;
}

int cli_refresher_start(struct cli_refresher **out, struct open_plan *plan, int64_t every_ns, int64_t window_ns)
{
	struct cli_refresher *l = calloc(1, sizeof *l);
	if (!l)
		return cli_fail("out of memory");
	*l = (struct cli_refresher){
	    .plan = plan, .every_ns = every_ns, .window_ns = window_ns, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	/* Freed memory is not returned to the kernel, because the next snapshot needs it again. */
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, RETAINED_HEAP_BYTES / 8);
	mallopt(M_TRIM_THRESHOLD, RETAINED_HEAP_BYTES);
#endif
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &monotonic);
	pthread_mutex_init(&l->mutex, NULL);
	/* Signals are blocked here, because the thread that owns the terminal handles them. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = l->fd < 0 ? -1 : pthread_create(&l->thread, NULL, run_refresher, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		if (l->fd >= 0)
			close(l->fd);
		free(l);
		return cli_fail_verb("top", "no OS thread can be started to read the trace");
	}
	*out = l;
	return -1;
}

void cli_refresher_stop(struct cli_refresher *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->mutex);
	atomic_store(&l->should_stop, true);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->mutex);
	cli_snapshot_free(l->newest);
	cli_snapshot_free(l->all);
	close(l->fd);
	free(l);
}

int cli_refresher_fd(const struct cli_refresher *l)
{
	return l->fd;
}

bool cli_refresher_is_quiet(struct cli_refresher *l)
{
	return atomic_load(&l->is_quiet);
}

struct cli_snapshot *cli_refresher_pop(struct cli_refresher *l, struct weft_error *err)
{
	uint64_t count;
	if (read(l->fd, &count, sizeof count) < 0)
		count = 0;
	pthread_mutex_lock(&l->mutex);
	struct cli_snapshot **from = l->all ? &l->all : &l->newest, *snapshot = *from;
	*from = NULL;
	const uint64_t one = 1;
	if (l->newest && write(l->fd, &one, sizeof one) < 0)
		count = 0; /* it is already readable */
	*err = l->err;
	pthread_mutex_unlock(&l->mutex);
	return snapshot;
}

void cli_refresher_request_all(struct cli_refresher *l)
{
	pthread_mutex_lock(&l->mutex);
	l->wants_all = l->is_urgent = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}

void cli_refresher_set_window(struct cli_refresher *l, int64_t window_ns)
{
	pthread_mutex_lock(&l->mutex);
	l->window_ns = window_ns;
	l->is_urgent = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}
