/* look.c: see look.h.  A trace is read anew as a whole when it has changed.  SPDX-License-Identifier: ISC */
#include "look.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "trace/several.h"

enum { SHARE = 10 };

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
	bool hurries;
	struct cli_look *newest;
	struct weft_error err;
	/* Of its own OS thread. */
	uint64_t seen;
	bool was_recorded;
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

static int explain(struct cli_looker *l, struct cli_look *look, int64_t window_ns, struct weft_error *err)
{
	const struct weft_model_options options = {.keep_binds = true, .go_on = go_on_reading, .ctx = l};
	const struct weft_explain_options how = {.go_on = go_on_explaining, .ctx = l};
	cli_name_served(look->input.trace);
	int status = weft_model_build(&look->input.model, look->input.trace, &options, err);
	if (status < 0)
		return status == WEFT_EFORMAT ? weft_error_set(err, status, "no events yet") : status;
	weft_explain(&look->findings, look->input.model, &how, NULL);
	if (look->findings && look->is_recorded)
		leave_out_crashes(look->findings);
	return weft_live_create(&look->live, look->input.model, look->findings, look->input.model->end_ns, window_ns, err);
}

/* What it reads of, and whether somebody records there; a hash that is another one when there is something new. */
static uint64_t fingerprint(const struct cli_looker *l, bool *is_recorded)
{
	cli_paths paths = {0};
	uint64_t hash = 0;
	*is_recorded = false;
	if (!cli_expand_quietly(&paths, l->paths, l->count))
		return hash;
	for (size_t i = 0; i < paths.count; i++) {
		const bool is_memory = cli_is_process(paths.items[i]);
		*is_recorded |= is_memory;
		hash = is_memory ? hash + (uint64_t)clock_ns(CLOCK_MONOTONIC) : hash;
	}
	hash += weft_several_fingerprint((const char *const *)paths.items, paths.count);
	*is_recorded |= weft_several_are_recorded((const char *const *)paths.items, paths.count);
	cli_paths_free(&paths);
	return hash;
}

static struct cli_look *read_again(struct cli_looker *l, bool is_recorded, int64_t window_ns, struct weft_error *err)
{
	struct cli_look *look = calloc(1, sizeof *look);
	if (!look) {
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return NULL;
	}
	look->is_recorded = is_recorded;
	int status = cli_open_quietly(&look->input, l->paths, l->count, err);
	if (status < 0) {
		free(look);
		return NULL;
	}
	status = explain(l, look, window_ns, err);
	if (status == WEFT_OK)
		return look;
	cli_look_free(look);
	return NULL;
}

/* ---- The OS thread ---- */

static void hand_over(struct cli_looker *l, struct cli_look *look, const struct weft_error *err)
{
	const uint64_t one = 1;
	pthread_mutex_lock(&l->mutex);
	struct cli_look *before = look ? l->newest : NULL;
	if (look)
		l->newest = look;
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

static void *run(void *looker)
{
	struct cli_looker *l = looker;
	int64_t not_before_ns = 0, window_ns = 0;
	do {
		struct weft_error err = {.what = ""};
		bool is_recorded;
		const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		const uint64_t now = fingerprint(l, &is_recorded);
		pthread_mutex_lock(&l->mutex);
		const bool is_other = window_ns != l->window_ns;
		window_ns = l->window_ns;
		pthread_mutex_unlock(&l->mutex);
		const bool is_new = now != l->seen || is_recorded != l->was_recorded || is_other;
		atomic_store(&l->is_quiet, !is_new);
		if (is_new && (began_ns >= not_before_ns || is_other)) {
			l->seen = now;
			l->was_recorded = is_recorded;
			struct cli_look *look = read_again(l, is_recorded, window_ns, &err);
			hand_over(l, look, &err);
			not_before_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SHARE;
		}
	} while (nap(l, l->every_ns));
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
	struct cli_look *look = l->newest;
	l->newest = NULL;
	*err = l->err;
	pthread_mutex_unlock(&l->mutex);
	return look;
}

void cli_looker_set_window(struct cli_looker *l, int64_t window_ns)
{
	pthread_mutex_lock(&l->mutex);
	l->window_ns = window_ns;
	l->hurries = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}
