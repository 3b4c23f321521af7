/* os_tracks.c: builds and queries tracks of threads (os_tracks.h).
 * SPDX-License-Identifier: ISC */
#include "model/os_tracks.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"

void weft__os_tracks_free(struct weft_os_tracks *t)
{
	if (!t)
		return;
	free(t->tracks);
	free(t->of_stream);
	free(t->ran);
	free(t->before);
	free(t);
}

static const struct weft_os_thread *get_thread(const struct weft_os_tracks *t, uint32_t track)
{
	return &t->model->kernel->threads[t->tracks[track].thread];
}

/* ---- Building ---- */

static void add_track(struct weft_os_tracks *t, uint32_t thread)
{
	const struct weft_kernel *k = t->model->kernel;
	const struct weft_os_thread *of = &k->threads[thread];
	struct weft_os_track track = {.thread = thread, .since_ns = of->first_ns, .until_ns = k->until_ns};
	track.since_ns = track.since_ns > k->since_ns ? track.since_ns : k->since_ns;
	/* A thread that has called exit is not blocked, although it may be preempted once more before its end. */
	size_t last = of[1].offs;
	while (last > of->offs && k->offs[last - 1].why == WEFT_OFF_PREEMPTED)
		last--;
	if (last > of->offs && (k->offs[last - 1].call == WEFT_CALL_EXIT || k->offs[last - 1].call == WEFT_CALL_EXIT_GROUP))
		track.until_ns = k->offs[last - 1].start_ns;
	track.until_ns = track.until_ns > track.since_ns ? track.until_ns : track.since_ns;
	if (track.until_ns > 0 && track.since_ns < t->model->end_ns)
		t->tracks[t->count++] = track;
}

static bool list_tracks(struct weft_os_tracks *t)
{
	const struct weft_model *m = t->model;
	const struct weft_kernel *k = m->kernel;
	const size_t streams = m->trace->stream_count;
	uint8_t *has_track = calloc(k->thread_count + 1, 1);
	t->tracks = calloc(k->thread_count + 1, sizeof *t->tracks);
	t->of_stream = malloc((streams + 1) * sizeof *t->of_stream);
	const bool whole = has_track && t->tracks && t->of_stream;
	for (size_t s = 0; whole && s < streams; s++) {
		const uint32_t thread = weft_kernel_of_stream(m, s);
		t->of_stream[s] = WEFT_NONE;
		if (thread == WEFT_NONE || k->threads[thread].first_ns == INT64_MAX)
			continue;
		if (!has_track[thread])
			add_track(t, thread);
		has_track[thread] = 1;
		t->of_stream[s] = weft_os_track_of_tid(t, k->threads[thread].tid);
	}
	for (uint32_t i = 0; whole && i < k->thread_count; i++)
		if (!has_track[i] && k->threads[i].pid != 0 && k->threads[i].first_ns != INT64_MAX)
			add_track(t, i);
	free(has_track);
	return whole;
}

static bool sum_offs(struct weft_os_tracks *t)
{
	const struct weft_kernel *k = t->model->kernel;
	t->before = calloc(k->off_count + 1, sizeof *t->before);
	for (size_t i = 0; t->before && i < k->off_count; i++) {
		const struct weft_off_cpu *off = &k->offs[i];
		t->before[i + 1] = t->before[i];
		t->before[i + 1].ns[weft_os_state_of(off, off->start_ns)] += (uint64_t)(off->ready_ns - off->start_ns);
		t->before[i + 1].ns[weft_os_state_of(off, off->ready_ns)] += (uint64_t)(off->end_ns - off->ready_ns);
	}
	return t->before;
}

static int compare_ran(const void *x, const void *y)
{
	const struct weft_os_run *a = x, *b = y;
	return WEFT_ORDER(a->track, b->track) ?: WEFT_ORDER(a->start_ns, b->start_ns) ?: WEFT_ORDER(a->promise, b->promise);
}

static bool list_ran(struct weft_os_tracks *t)
{
	const struct weft_model *m = t->model;
	size_t count = 0;
	t->ran = malloc((m->run_count + 1) * sizeof *t->ran);
	for (uint32_t p = 1; t->ran && p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			const uint32_t track =
			    weft_os_track_of_stream(t, m->run_streams ? m->run_streams[r] : m->promises[p].stream);
			if (track != WEFT_NONE)
				t->ran[count++] = (struct weft_os_run){m->runs[r].start_ns, m->runs[r].end_ns, p, track};
		}
	weft_sort(t->ran, t->ran ? count : 0, sizeof *t->ran, compare_ran);
	for (size_t i = 0, at = 0; t->ran && i <= t->count; i++) {
		at = WEFT_FIND_FIRST_NEAR(n, at, count, t->ran[n].track >= i);
		t->tracks[i].ran = at;
	}
	return t->ran;
}

int weft_model_os_tracks(const struct weft_model *model, const struct weft_os_tracks **out)
{
	struct weft_kernel *k = model->kernel;
	*out = NULL;
	if (!k || k->info.level == WEFT_LEVEL_SELF)
		return WEFT_OK;
	struct weft_os_tracks *tracks = __atomic_load_n(&k->tracks, __ATOMIC_ACQUIRE);
	if (!tracks) {
		struct weft_os_tracks *made = calloc(1, sizeof *made);
		if (made)
			made->model = model;
		if (!made || !list_tracks(made) || !sum_offs(made) || !list_ran(made)) {
			weft__os_tracks_free(made);
			return WEFT_ENOMEM;
		}
		/* Another thread may have built the tracks first; then those are used. */
		if (__atomic_compare_exchange_n(&k->tracks, &tracks, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			tracks = made;
		else
			weft__os_tracks_free(made);
	}
	*out = tracks->count > 0 ? tracks : NULL;
	return WEFT_OK;
}

/* ---- Queries ---- */

enum weft_os_state weft_os_state_of(const struct weft_off_cpu *off, int64_t time_ns)
{
	if (off->why == WEFT_OFF_PREEMPTED)
		return WEFT_OS_PREEMPTED;
	return time_ns >= off->ready_ns && off->ready_ns < off->end_ns ? WEFT_OS_READY
	       : off->why == WEFT_OFF_DISK                             ? WEFT_OS_DISK
								       : WEFT_OS_BLOCKED;
}

void weft_os_times_until(
    const struct weft_os_tracks *t, uint32_t track, int64_t time_ns, size_t *near, int64_t ns[WEFT_OS_STATES])
{
	const struct weft_off_cpu *offs = t->model->kernel->offs;
	const struct weft_os_track *of = &t->tracks[track];
	const struct weft_os_thread *thread = get_thread(t, track);
	const size_t first = thread->offs, end = thread[1].offs;
	time_ns = time_ns < of->since_ns ? of->since_ns : time_ns > of->until_ns ? of->until_ns : time_ns;
	size_t i = *near > first && *near <= end && offs[*near - 1].end_ns <= time_ns ? *near : first;
	i = WEFT_FIND_FIRST_NEAR(n, i, end, offs[n].end_ns > time_ns);
	*near = i;
	int64_t off_ns = 0;
	for (int s = 0; s < WEFT_OS_STATES; s++)
		ns[s] = (int64_t)(t->before[i].ns[s] - t->before[first].ns[s]);
	if (i < end && offs[i].start_ns < time_ns) {
		const int64_t ready_ns = offs[i].ready_ns < time_ns ? offs[i].ready_ns : time_ns;
		ns[weft_os_state_of(&offs[i], offs[i].start_ns)] += ready_ns - offs[i].start_ns;
		ns[weft_os_state_of(&offs[i], offs[i].ready_ns)] += time_ns - ready_ns;
	}
	for (int s = WEFT_OS_RUNS + 1; s < WEFT_OS_STATES; s++)
		off_ns += ns[s];
	ns[WEFT_OS_RUNS] = time_ns - of->since_ns - off_ns;
}

void weft_os_sum_times(const struct weft_os_tracks *t, uint32_t track, int64_t from_ns, int64_t to_ns, int64_t ns[WEFT_OS_STATES])
{
	int64_t before[WEFT_OS_STATES];
	size_t near = 0;
	weft_os_times_until(t, track, from_ns, &near, before);
	weft_os_times_until(t, track, to_ns > from_ns ? to_ns : from_ns, &near, ns);
	for (int s = 0; s < WEFT_OS_STATES; s++)
		ns[s] -= before[s];
}

size_t weft_os_faults(const struct weft_os_tracks *t, uint32_t track, int64_t from_ns, int64_t to_ns)
{
	const int64_t *faults_ns = t->model->kernel->faults_ns;
	const struct weft_os_thread *thread = get_thread(t, track);
	const size_t first = WEFT_FIND_FIRST(i, thread->faults, thread[1].faults, faults_ns[i] >= from_ns);
	return WEFT_FIND_FIRST_NEAR(i, first, thread[1].faults, faults_ns[i] >= to_ns) - first;
}

const struct weft_off_cpu *weft_os_off_at(
    const struct weft_os_tracks *t, uint32_t track, int64_t time_ns, int64_t *from_ns, int64_t *to_ns)
{
	const struct weft_off_cpu *offs = t->model->kernel->offs;
	const struct weft_os_track *of = &t->tracks[track];
	const struct weft_os_thread *thread = get_thread(t, track);
	const size_t i = WEFT_FIND_FIRST(n, thread->offs, thread[1].offs, offs[n].end_ns > time_ns);
	if (time_ns < of->since_ns || time_ns >= of->until_ns) {
		*from_ns = time_ns < of->since_ns ? INT64_MIN / 4 : of->until_ns;
		*to_ns = time_ns < of->since_ns ? of->since_ns : INT64_MAX / 4;
		return NULL;
	}
	if (i < thread[1].offs && offs[i].start_ns <= time_ns) {
		*from_ns = offs[i].start_ns;
		*to_ns = offs[i].end_ns;
		return &offs[i];
	}
	*from_ns = i > thread->offs ? offs[i - 1].end_ns : of->since_ns;
	*to_ns = i < thread[1].offs ? offs[i].start_ns : of->until_ns;
	return NULL;
}

const struct weft_off_cpu *weft_os_next_off(const struct weft_os_tracks *t, uint32_t track, int64_t time_ns, bool forward)
{
	const struct weft_off_cpu *offs = t->model->kernel->offs;
	const struct weft_os_thread *thread = get_thread(t, track);
	size_t i =
	    WEFT_FIND_FIRST(n, thread->offs, thread[1].offs, forward ? offs[n].start_ns > time_ns : offs[n].start_ns >= time_ns);
	for (; forward ? i < thread[1].offs : i > thread->offs; i += forward ? 1 : (size_t)-1) {
		const struct weft_off_cpu *off = &offs[forward ? i : i - 1];
		if (weft_os_promise_at(t, track, off->start_ns / 2 + off->end_ns / 2) != WEFT_NONE)
			return off;
	}
	return NULL;
}

uint32_t weft_os_promise_at(const struct weft_os_tracks *t, uint32_t track, int64_t time_ns)
{
	const size_t first = t->tracks[track].ran, end = t->tracks[track + 1].ran;
	const size_t after = WEFT_FIND_FIRST(i, first, end, t->ran[i].start_ns > time_ns);
	return after > first && t->ran[after - 1].end_ns >= time_ns ? t->ran[after - 1].promise : WEFT_NONE;
}

int weft_os_promise_of_tid(const struct weft_model *model, uint32_t tid, int64_t time_ns, uint32_t *promise)
{
	const struct weft_os_tracks *t;
	const int status = weft_model_os_tracks(model, &t);
	const uint32_t track = t ? weft_os_track_of_tid(t, tid) : WEFT_NONE;
	*promise = track == WEFT_NONE ? WEFT_NONE : weft_os_promise_at(t, track, time_ns);
	return status;
}

uint32_t weft_os_track_of_stream(const struct weft_os_tracks *t, uint16_t stream)
{
	return stream < t->model->trace->stream_count ? t->of_stream[stream] : WEFT_NONE;
}

uint32_t weft_os_track_of_tid(const struct weft_os_tracks *t, uint32_t tid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (get_thread(t, i)->tid == tid)
			return i;
	return WEFT_NONE;
}
