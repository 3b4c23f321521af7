/* look.c: see look.h.  SPDX-License-Identifier: ISC */
#include "look.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "analysis/kept.h"
#include "base/duration.h"
#include "base/hash.h"
#include "model/followers.h"
#include "trace/several.h"

/* A look waits until it takes a tenth of a processor at most; what takes the whole trace to be found is looked for more rarely.
 */
enum {
	SHARE = 10,
	SHARE_OF_WHOLE = 400,
	FIRST_EVENTS = 1 << 19, /* so many are shown and explained as a whole at once */
	WINDOW_EVENTS = 1 << 13,
	HISTORY_EVENTS = WINDOW_EVENTS,
	MOST_STEPS = 16,
	KEPT_BYTES = 1 << 25
};
#define WHOLE_EVERY_NS INT64_C(10000000000)
#define WHOLE_EACH_NS 1000 /* about what an event takes to be explained, until that is known */
#define HISTORY_NS INT64_C(25000000000)
#define LEAST_LEAD_NS INT64_C(10000000)

struct cli_looker {
	char **paths;
	int count;
	int64_t every_ns;
	int fd;
	atomic_bool stops, is_quiet;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Under the mutex. */
	int64_t window_ns;
	bool hurries, wants_all;
	struct cli_look *newest, *all;
	struct weft_error err;
	/* Of its own OS thread. */
	uint64_t seen;
	bool was_recorded;
	struct weft_followers *followers;
	unsigned generation; /* of the newest look */
	uint64_t who;        /* is in it */
	session_paths now;   /* what the paths name by now, sessions expanded */
	struct weft_kept *kept;
	struct cli_names names;
	int64_t whole_ns;     /* when all of it was explained, */
	double whole_each_ns; /* how long an event took, and how many the ring has at most */
	uint64_t whole_most;
	int64_t looked_ns; /* when the newest look was made, and how many events had come by then */
	uint64_t looked_events;
	uint64_t restarts;  /* of the follower */
	unsigned steps;     /* in which it is read from one look to the next */
	int64_t history_ns; /* how long windows are that cost little */
	int64_t lead_ns;    /* how long before a look what came since the last is skipped; 0: it is not */
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void cli_look_free(struct cli_look *look)
{
	if (!look)
		return;
	weft_live_destroy(look->live);
	if (look->findings)
		weft_findings_destroy(look->findings);
	if (look->followed)
		weft_followed_destroy(look->followed);
	else
		cli_close(&look->input);
	free(look);
}

/* ---- Reading ---- */

static bool go_on_reading(void *looker, uint64_t events)
{
	(void)events;
	return !atomic_load(&((struct cli_looker *)looker)->stops);
}

static bool go_on_explaining(void *looker, unsigned percent)
{
	return go_on_reading(looker, percent);
}

/* What runs while a program is looked at did not run when it died. */
static void leave_out_crashes(struct weft_findings *findings)
{
	size_t kept = 0;
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == WEFT_FINDING_CRASH)
			free(findings->findings[i].steps);
		else
			findings->findings[kept++] = findings->findings[i];
	findings->count = kept;
}

/* Says what went wrong, and makes the tables. */
static int explain(struct cli_looker *l, struct cli_look *look, int64_t window_ns, struct weft_error *err)
{
	const struct weft_explain_options how = {.go_on = go_on_explaining, .ctx = l};
	const struct weft_model *m = look->input.model;
	struct weft_findings *all;
	weft_explain(&look->findings, m, &how, NULL);
	if (look->findings && look->is_recorded)
		leave_out_crashes(look->findings);
	if (look->findings && look->followed && weft_kept_take(l->kept, &all, look->findings, m, look->is_whole) == WEFT_OK) {
		weft_findings_destroy(look->findings);
		look->findings = all;
	}
	return weft_live_create(
	    &look->live, m, look->findings, m->end_ns, weft_min_ns(window_ns, m->end_ns - look->from_ns), err);
}

static struct cli_look *new_look(bool is_recorded, struct weft_error *err)
{
	struct cli_look *look = calloc(1, sizeof *look);
	if (look)
		look->is_recorded = is_recorded;
	else
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	return look;
}

static int no_events(int status, struct weft_error *err)
{
	return status == WEFT_EFORMAT ? weft_error_set(err, status, "no events yet") : status;
}

static struct cli_look *read_again(struct cli_looker *l, bool is_recorded, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model_options options = {.keep_binds = true, .go_on = go_on_reading, .ctx = l};
	struct cli_look *look = new_look(is_recorded, err);
	if (!look)
		return NULL;
	int status = cli_open_quietly(&look->input, l->paths, l->count, err);
	if (status < 0) {
		free(look);
		return NULL;
	}
	look->is_whole = true;
	cli_name_served(look->input.trace);
	status = no_events(weft_model_build(&look->input.model, look->input.trace, &options, err), err);
	if (status == WEFT_OK) {
		look->events = look->input.model->events;
		status = explain(l, look, window_ns, err);
	}
	if (status == WEFT_OK)
		return look;
	cli_look_free(look);
	return NULL;
}

/* ---- Following ---- */

/* A look of busy programs is of a window's events alone: of several what came between two is taken before, without a model; of
 * one the follower sees to that.  Of what does little it goes back further, for counters. */
static void set_pace(struct cli_looker *l, uint64_t events)
{
	const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const double each_ns = (double)(now_ns - l->looked_ns) / (double)(events - l->looked_events + 1);
	const bool is_led = l->now.count > 1 && each_ns * 2 * WINDOW_EVENTS < (double)l->every_ns;
	l->lead_ns = is_led ? weft_max_ns(LEAST_LEAD_NS, (int64_t)(each_ns * WINDOW_EVENTS)) : 0;
	l->history_ns = (int64_t)(each_ns < (double)HISTORY_NS / HISTORY_EVENTS ? each_ns * HISTORY_EVENTS : (double)HISTORY_NS);
	l->looked_ns = now_ns;
	l->looked_events = events;
}

static void stop_following(struct cli_looker *l)
{
	weft_followers_close(l->followers);
	weft_kept_destroy(l->kept);
	cli_names_forget(&l->names);
	l->followers = NULL;
	l->kept = NULL;
}

/* False: there is no memory. */
static bool start_following(struct cli_looker *l)
{
	const struct weft_follower_options options = {.model = {.keep_binds = true, .go_on = go_on_reading, .ctx = l},
	    .window_events = WINDOW_EVENTS,
	    .first_events = FIRST_EVENTS};
	if (l->followers)
		return true;
	l->kept = weft_kept_create();
	l->lead_ns = l->history_ns = 0;
	l->looked_ns = l->whole_ns = clock_ns(CLOCK_MONOTONIC);
	l->whole_each_ns = WHOLE_EACH_NS;
	l->whole_most = UINT64_MAX;
	l->looked_events = l->restarts = l->who = 0;
	l->steps = 1;
	if (l->kept && weft_followers_open(&l->followers, &options, NULL) == WEFT_OK)
		return true;
	stop_following(l);
	return false;
}

/* Ids are others once a trace came or went: what was found before cannot be told of anybody. */
static bool keep_anew(struct cli_looker *l)
{
	const unsigned generation = weft_followers_generation(l->followers);
	if (generation == l->generation)
		return true;
	l->generation = generation;
	weft_kept_destroy(l->kept);
	l->kept = weft_kept_create();
	cli_names_forget(&l->names);
	return l->kept;
}

/* Another number for other processes, or in another order. */
static uint64_t who_is_in(const struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	uint64_t all = 0;
	for (size_t i = 0; i < info->part_count; i++)
		all = weft_hash_u64(
		    all + info->parts[i].pid + weft_hash_bytes(info->parts[i].process.ptr, info->parts[i].process.len));
	return all;
}

/* How long all of it took to be read and explained. */
static void note_whole(struct cli_looker *l, const struct cli_look *look, int64_t took_ns)
{
	const struct weft_trace_info *info = weft_trace_info(look->input.trace);
	uint64_t overwritten = 0;
	for (size_t i = 0; i < info->stream_count; i++)
		overwritten += info->streams[i].lost_overwritten;
	const uint64_t events = look->input.model->events;
	l->whole_each_ns = (double)took_ns / (double)(events + 1);
	l->whole_most = overwritten ? events : UINT64_MAX;
	l->whole_ns = clock_ns(CLOCK_MONOTONIC);
}

/* What only the whole trace tells, as that something grows, is looked for as rarely as that takes little. */
static void explain_all(struct cli_looker *l)
{
	const int64_t now_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t read = weft_followers_events(l->followers), events = read < l->whole_most ? read : l->whole_most;
	const double rest_ns = l->whole_each_ns * (double)events * SHARE_OF_WHOLE;
	struct weft_error err;
	struct weft_findings *all;
	if (now_ns - l->whole_ns < WHOLE_EVERY_NS || (double)(now_ns - l->whole_ns) < rest_ns)
		return;
	struct cli_look *look = read_again(l, true, 0, &err);
	l->whole_ns = now_ns;
	if (!look)
		return;
	if (look->findings && who_is_in(look->input.trace) == l->who &&
	    weft_kept_take(l->kept, &all, look->findings, look->input.model, true) == WEFT_OK)
		weft_findings_destroy(all);
	note_whole(l, look, clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
	cli_look_free(look);
}

/* NULL without an error: nothing has come. */
static struct cli_look *follow(struct cli_looker *l, int64_t window_ns, struct weft_error *err)
{
	const int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	weft_followers_set_window(l->followers, weft_max_ns(window_ns, l->history_ns));
	explain_all(l);
	const int status = weft_followers_look(
	    l->followers, (const char *const *)l->now.items, l->now.count, l->now.count > (size_t)l->count, err);
	if (status < 0 && l->now.count > 1)
		return read_again(l, true, window_ns, err);
	if (no_events(status, err) <= 0)
		return NULL;
	struct cli_look *look = new_look(true, err);
	if (!look || !(look->followed = weft_followers_take(l->followers)) || !keep_anew(l)) {
		cli_look_free(look);
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return NULL;
	}
	look->input = (struct cli_input){l->paths[0], look->followed->trace, look->followed->model};
	look->from_ns = weft_followers_window(l->followers);
	look->events = weft_followers_events(l->followers);
	look->is_whole = look->from_ns == 0;
	l->who = who_is_in(look->input.trace);
	set_pace(l, look->events);
	cli_names_apply(&l->names, look->input.trace);
	if (explain(l, look, window_ns, err) < 0) {
		cli_look_free(look);
		return NULL;
	}
	if (look->is_whole)
		note_whole(l, look, clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
	return look;
}

/* Finds what there is by now, whether somebody records there, and whether that can be followed; a hash that is another one when
 * there is something new of what cannot. */
static uint64_t fingerprint(struct cli_looker *l, bool *is_recorded, bool *is_followed)
{
	session_paths paths = {0};
	uint64_t hash = 0;
	*is_recorded = *is_followed = false;
	if (!session_expand(&paths, l->paths, l->count, NULL)) {
		session_paths_free(&paths);
		return hash;
	}
	session_paths_free(&l->now);
	l->now = paths;
	bool has_memory = false;
	for (size_t i = 0; i < paths.count; i++)
		has_memory |= cli_is_process(paths.items[i]);
	*is_recorded = has_memory || weft_several_are_recorded((const char *const *)paths.items, paths.count);
	*is_followed = *is_recorded && !has_memory && start_following(l);
	if (!*is_followed)
		hash = (has_memory ? (uint64_t)clock_ns(CLOCK_MONOTONIC) : 0) +
		       weft_several_fingerprint((const char *const *)paths.items, paths.count);
	return hash;
}

/* ---- The OS thread ---- */

static void hand_over(struct cli_looker *l, struct cli_look *look, struct cli_look **to, const struct weft_error *err)
{
	const uint64_t one = 1;
	pthread_mutex_lock(&l->mutex);
	struct cli_look *before = look ? *to : NULL;
	if (look)
		*to = look;
	l->err = *err;
	pthread_mutex_unlock(&l->mutex);
	cli_look_free(before);
	if (write(l->fd, &one, sizeof one) < 0)
		return; /* it is readable already */
}

/* False: it is to stop. */
static bool nap(struct cli_looker *l, int64_t ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ns / 1000000000;
	until.tv_nsec += ns % 1000000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&l->mutex);
	while (!atomic_load(&l->stops) && !l->hurries && pthread_cond_timedwait(&l->wake, &l->mutex, &until) == 0)
		;
	l->hurries = false;
	const bool goes_on = !atomic_load(&l->stops);
	pthread_mutex_unlock(&l->mutex);
	return goes_on;
}

/* A ring that was overwritten between two looks is read more often. */
static void set_steps(struct cli_looker *l)
{
	const uint64_t restarts = weft_followers_restarts(l->followers);
	if (restarts > l->restarts && l->steps < MOST_STEPS)
		l->steps *= 2;
	l->restarts = restarts;
}

static bool rest(struct cli_looker *l)
{
	struct weft_error err;
	if (!l->followers)
		return nap(l, l->every_ns);
	set_steps(l);
	const int64_t step_ns = (l->every_ns - l->lead_ns) / l->steps;
	for (unsigned i = l->lead_ns ? 0 : 1; i < l->steps; i++) {
		if (!nap(l, step_ns))
			return false;
		/* What is wrong is told by the look. */
		(void)weft_followers_skip(l->followers, &err);
	}
	return nap(l, l->lead_ns ? l->lead_ns : step_ns);
}

/* What is asked of it: how long a stretch, and whether all is to be read. */
static bool take_wishes(struct cli_looker *l, int64_t *window_ns)
{
	pthread_mutex_lock(&l->mutex);
	const bool wants_all = l->wants_all;
	*window_ns = l->window_ns;
	l->wants_all = false;
	pthread_mutex_unlock(&l->mutex);
	return wants_all;
}

static void *run(void *looker)
{
	struct cli_looker *l = looker;
	int64_t not_before_ns = 0, window_ns = 0;
	do {
		struct weft_error err = {.what = ""};
		bool is_recorded, is_followed = false;
		const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
			      before_ns = window_ns;
		const uint64_t now = fingerprint(l, &is_recorded, &is_followed);
		const bool wants_all = take_wishes(l, &window_ns), is_other = window_ns != before_ns;
		const bool is_new = now != l->seen || is_recorded != l->was_recorded || is_other || is_followed;
		struct cli_look *look = NULL;
		if (is_new && (began_ns >= not_before_ns || is_other)) {
			l->seen = now;
			l->was_recorded = is_recorded;
			if (is_followed && is_other)
				weft_followers_renew(l->followers);
			look = is_followed ? follow(l, window_ns, &err) : read_again(l, is_recorded, window_ns, &err);
			if (look || err.what[0])
				hand_over(l, look, &l->newest, &err);
			not_before_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SHARE;
		} else if (is_followed) {
			/* Who rests for long would find a ring overwritten. */
			(void)weft_followers_skip(l->followers, &err);
		}
		atomic_store(&l->is_quiet, !look);
		if (wants_all)
			hand_over(l, read_again(l, is_recorded, window_ns, &err), &l->all, &err);
	} while (rest(l));
	stop_following(l);
	session_paths_free(&l->now);
	return NULL;
}

int cli_looker_start(struct cli_looker **out, char **paths, int count, int64_t every_ns, int64_t window_ns)
{
	struct cli_looker *l = calloc(1, sizeof *l);
	if (!l)
		return cli_fail("out of memory");
	*l = (struct cli_looker){.paths = paths,
	    .count = count,
	    .every_ns = every_ns,
	    .window_ns = window_ns,
	    .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	/* What one look needed the next one needs, too. */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 8);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &monotonic);
	pthread_mutex_init(&l->mutex, NULL);
	/* Signals are for who has the terminal. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = l->fd < 0 ? -1 : pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		if (l->fd >= 0)
			close(l->fd);
		free(l);
		return cli_fail("top: no OS thread can be started to read the trace");
	}
	*out = l;
	return -1;
}

void cli_looker_stop(struct cli_looker *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->mutex);
	atomic_store(&l->stops, true);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->mutex);
	cli_look_free(l->newest);
	cli_look_free(l->all);
	close(l->fd);
	free(l);
}

int cli_looker_fd(const struct cli_looker *l)
{
	return l->fd;
}

bool cli_looker_is_quiet(struct cli_looker *l)
{
	return atomic_load(&l->is_quiet);
}

struct cli_look *cli_looker_take(struct cli_looker *l, struct weft_error *err)
{
	uint64_t count;
	if (read(l->fd, &count, sizeof count) < 0)
		count = 0;
	pthread_mutex_lock(&l->mutex);
	struct cli_look **from = l->all ? &l->all : &l->newest, *look = *from;
	*from = NULL;
	const uint64_t one = 1;
	if (l->newest && write(l->fd, &one, sizeof one) < 0)
		count = 0; /* it is readable already */
	*err = l->err;
	pthread_mutex_unlock(&l->mutex);
	return look;
}

void cli_looker_ask_for_all(struct cli_looker *l)
{
	pthread_mutex_lock(&l->mutex);
	l->wants_all = l->hurries = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}

void cli_looker_set_window(struct cli_looker *l, int64_t window_ns)
{
	pthread_mutex_lock(&l->mutex);
	l->window_ns = window_ns;
	l->hurries = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}
