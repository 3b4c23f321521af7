/* kernel.c: see kernel.h.  SPDX-License-Identifier: ISC */
#include "model/kernel.h"

#include <string.h>

#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/os_tracks.h"
#include "model/private.h"

/* ---- Making ---- */

#define FARTHEST_NS (INT64_MAX / 4)

/* What an OS thread does just now. */
struct state {
	uint32_t tid;
	size_t off;    /* the stretch that is open; SIZE_MAX: it has a processor, or nobody knows */
	size_t count;  /* of its stretches */
	size_t faults; /* of its page faults */
	int64_t first_ns;
};

struct making {
	const struct weft_model *model;
	WEFT_VEC(struct weft_off) offs; /* by when they begin */
	WEFT_VEC(uint32_t) owners;      /* index of states */
	WEFT_VEC(int64_t) faults_ns;
	WEFT_VEC(uint32_t) fault_owners;
	WEFT_VEC(struct state) states;
	struct weft_idmap numbers; /* tid to index of states */
	int64_t last_ns;
};

static struct state *state_of(struct making *m, uint32_t tid)
{
	const uint32_t number = weft_idmap_get(&m->numbers, tid);
	if (number != WEFT_IDMAP_NONE)
		return &m->states.items[number];
	struct state *slot = weft_vec_push(&m->states);
	if (!slot || !weft_idmap_set(&m->numbers, tid, (uint32_t)m->states.count - 1)) {
		m->states.count -= slot != NULL;
		return NULL;
	}
	*slot = (struct state){.tid = tid, .off = SIZE_MAX, .first_ns = INT64_MAX};
	return slot;
}

/* It has a processor from now on. */
static void end_off(struct making *m, struct state *s, int64_t now)
{
	if (s->off == SIZE_MAX)
		return;
	struct weft_off *off = &m->offs.items[s->off];
	off->end_ns = now;
	off->ready_ns = off->ready_ns > now ? now : off->ready_ns;
	s->off = SIZE_MAX;
}

static bool begin_off(struct making *m, struct state *s, int64_t now, const struct weft_kernel_event *e)
{
	/* One that began and of which the end was lost ends here. */
	end_off(m, s, now);
	struct weft_off *off = weft_vec_push(&m->offs);
	uint32_t *owner = off ? weft_vec_push(&m->owners) : NULL;
	if (!owner)
		return false;
	const bool is_taken = e->op == WEFT_KERNEL_TAKEN || e->why == WEFT_OFF_PREEMPTED;
	*off = (struct weft_off){.start_ns = now,
	    .ready_ns = is_taken ? now : INT64_MAX,
	    .end_ns = INT64_MAX,
	    .by = e->op == WEFT_KERNEL_TAKEN ? e->other : WEFT_NO_TID,
	    .why = is_taken ? WEFT_OFF_PREEMPTED : e->why,
	    .call = is_taken ? WEFT_CALL_UNKNOWN : e->call};
	*owner = (uint32_t)(s - m->states.items);
	s->off = m->offs.count - 1;
	s->count++;
	return true;
}

/* It runs, though it waits for the page. */
static bool add_fault(struct making *m, struct state *s, int64_t now)
{
	end_off(m, s, now);
	int64_t *fault_ns = weft_vec_push(&m->faults_ns);
	uint32_t *owner = fault_ns ? weft_vec_push(&m->fault_owners) : NULL;
	if (!owner)
		return false;
	*fault_ns = now;
	*owner = (uint32_t)(s - m->states.items);
	s->faults++;
	return true;
}

static int take(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	struct making *m = ctx;
	for (size_t i = 0; i < count; i++) {
		const struct weft_kernel_event *e = &events[i];
		struct state *s = state_of(m, e->tid);
		int64_t now;
		if (!s)
			return 1;
		/* So that lengths of stretches cannot overflow either, whatever a damaged trace says. */
		if (__builtin_sub_overflow(e->time_ns, m->model->start_ns, &now) || now > FARTHEST_NS || now < -FARTHEST_NS)
			continue;
		m->last_ns = now > m->last_ns ? now : m->last_ns;
		s->first_ns = now < s->first_ns ? now : s->first_ns;
		switch (e->op) {
		case WEFT_KERNEL_OFF:
		case WEFT_KERNEL_TAKEN:
			if (!begin_off(m, s, now, e))
				return 1;
			break;
		case WEFT_KERNEL_WAKE:
			if (s->off != SIZE_MAX && m->offs.items[s->off].ready_ns == INT64_MAX) {
				m->offs.items[s->off].ready_ns = now;
				m->offs.items[s->off].woken_by = e->other;
				m->offs.items[s->off].by_interrupt = e->other == WEFT_NO_TID;
			}
			break;
		case WEFT_KERNEL_FAULT:
			if (!add_fault(m, s, now))
				return 1;
			break;
		default: end_off(m, s, now); break;
		}
	}
	return 0;
}

static const struct weft_kernel_thread *told_of(const struct weft_kernel_info *info, uint32_t tid)
{
	size_t first = WEFT_FIRST(i, 0, info->thread_count, info->threads[i].tid >= tid);
	return first < info->thread_count && info->threads[first].tid == tid ? &info->threads[first] : NULL;
}

static int compare_threads(const void *x, const void *y)
{
	const struct weft_os_thread *a = x, *b = y;
	return WEFT_ORDER(a->tid, b->tid);
}

/* All OS threads that are named or that something was said of. */
static bool list_threads(struct weft_kernel *k, const struct making *m)
{
	const struct weft_kernel_info *info = &k->info;
	k->threads = calloc(m->states.count + info->thread_count + 1, sizeof *k->threads);
	if (!k->threads)
		return false;
	for (size_t i = 0; i < m->states.count; i++) {
		const struct state *s = &m->states.items[i];
		const struct weft_kernel_thread *told = told_of(info, s->tid);
		k->threads[k->thread_count++] = (struct weft_os_thread){.tid = s->tid,
		    .pid = told ? told->pid : 0,
		    .name = told ? told->name : (struct weft_str){"", 0},
		    .offs = s->count,
		    .faults = s->faults,
		    .first_ns = s->first_ns};
	}
	for (size_t i = 0; i < info->thread_count; i++)
		if (weft_idmap_get(&m->numbers, info->threads[i].tid) == WEFT_IDMAP_NONE)
			k->threads[k->thread_count++] = (struct weft_os_thread){.tid = info->threads[i].tid,
			    .pid = info->threads[i].pid,
			    .name = info->threads[i].name,
			    .first_ns = INT64_MAX};
	weft_sort(k->threads, k->thread_count, sizeof *k->threads, compare_threads);
	size_t offs = 0, faults = 0;
	for (size_t i = 0; i <= k->thread_count; i++) {
		const size_t own_offs = k->threads[i].offs, own_faults = k->threads[i].faults;
		k->threads[i].offs = offs;
		k->threads[i].faults = faults;
		offs += own_offs;
		faults += own_faults;
	}
	return true;
}

/* Puts each stretch and each page fault to its OS thread's; in time order they are already. */
static bool order_by_thread(struct weft_kernel *k, const struct making *m)
{
	struct {
		size_t off, fault;
	} *next = malloc((m->states.count + 1) * sizeof *next);
	k->offs = malloc((m->offs.count + 1) * sizeof *k->offs);
	k->faults_ns = malloc((m->faults_ns.count + 1) * sizeof *k->faults_ns);
	const bool whole = next && k->offs && k->faults_ns;
	for (size_t i = 0; whole && i < m->states.count; i++) {
		const struct weft_os_thread *thread = &k->threads[weft_kernel_thread(k, m->states.items[i].tid)];
		next[i].off = thread->offs;
		next[i].fault = thread->faults;
	}
	for (size_t i = 0; whole && i < m->faults_ns.count; i++)
		k->faults_ns[next[m->fault_owners.items[i]].fault++] = m->faults_ns.items[i];
	for (size_t i = 0; whole && i < m->offs.count; i++) {
		struct weft_off off = m->offs.items[i];
		off.end_ns = off.end_ns < m->last_ns ? off.end_ns : m->last_ns;
		off.ready_ns = off.ready_ns < off.end_ns ? off.ready_ns : off.end_ns;
		k->offs[next[m->owners.items[i]].off++] = off;
	}
	k->off_count = m->offs.count;
	k->fault_count = m->faults_ns.count;
	free(next);
	return whole;
}

int weft__model_read_kernel(struct weft_model *model, struct weft_trace *trace)
{
	struct making m = {.model = model, .last_ns = -FARTHEST_NS};
	struct weft_kernel *k = calloc(1, sizeof *k);
	int got = k ? weft_trace_kernel(trace, take, &m, &k->info) : WEFT_ENOMEM;
	if (got == WEFT_EIO) /* take() had no memory */
		got = WEFT_ENOMEM;
	if (got > 0 && (!list_threads(k, &m) || !order_by_thread(k, &m)))
		got = WEFT_ENOMEM;
	weft_vec_free(&m.offs);
	weft_vec_free(&m.owners);
	weft_vec_free(&m.faults_ns);
	weft_vec_free(&m.fault_owners);
	weft_vec_free(&m.states);
	weft_idmap_finish(&m.numbers);
	if (got > 0 && (k->info.since_ns == INT64_MIN || __builtin_sub_overflow(k->info.since_ns, model->start_ns, &k->since_ns)))
		k->since_ns = INT64_MIN;
	if (got > 0 && __builtin_sub_overflow(k->info.until_ns, model->start_ns, &k->until_ns))
		k->until_ns = INT64_MIN;
	if (got > 0)
		model->kernel = k;
	else
		weft__model_free_kernel(k);
	return got < 0 ? got : WEFT_OK;
}

void weft__model_free_kernel(struct weft_kernel *kernel)
{
	if (!kernel)
		return;
	free(kernel->threads);
	free(kernel->offs);
	free(kernel->faults_ns);
	weft__os_tracks_free(kernel->tracks);
	free(kernel);
}

/* ---- Asking ---- */

uint32_t weft_kernel_thread(const struct weft_kernel *k, uint64_t tid)
{
	size_t first = WEFT_FIRST(i, 0, k->thread_count, k->threads[i].tid >= tid);
	return first < k->thread_count && k->threads[first].tid == tid ? (uint32_t)first : WEFT_NONE;
}

/* Calls `each` for each stretch that is in that time, with what of it is; false: the kernel does not say all of it. */
static bool walk(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns,
    void (*each)(void *ctx, const struct weft_off *off, int64_t from_ns, int64_t to_ns), void *ctx)
{
	const struct weft_kernel *k = m->kernel;
	if (!k || stream >= m->trace->stream_count || k->info.level == WEFT_LEVEL_SELF || !k->info.is_whole ||
	    from_ns < k->since_ns || to_ns > k->until_ns)
		return false;
	const uint32_t thread = weft_kernel_thread(k, m->trace->streams[stream].tid);
	if (thread == WEFT_NONE || k->threads[thread].first_ns > from_ns)
		return false;
	const size_t end = k->threads[thread + 1].offs;
	size_t i = WEFT_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > from_ns);
	for (; i < end && k->offs[i].start_ns < to_ns; i++) {
		const struct weft_off *off = &k->offs[i];
		const int64_t begin = off->start_ns > from_ns ? off->start_ns : from_ns,
			      stop = off->end_ns < to_ns ? off->end_ns : to_ns;
		each(ctx, off, begin, stop);
	}
	return true;
}

static void add_to_sum(void *ctx, const struct weft_off *off, int64_t from_ns, int64_t to_ns)
{
	struct weft_off_sum *sum = ctx;
	const int64_t ns = to_ns - from_ns;
	if (off->why == WEFT_OFF_PREEMPTED) {
		sum->preempted_ns += ns;
		sum->preempted++;
		if (!sum->longest_preempted ||
		    off->end_ns - off->start_ns > sum->longest_preempted->end_ns - sum->longest_preempted->start_ns)
			sum->longest_preempted = off;
		return;
	}
	const int64_t ready_ns = off->ready_ns < from_ns ? from_ns : off->ready_ns > to_ns ? to_ns : off->ready_ns;
	sum->blocked_ns += ready_ns - from_ns;
	sum->ready_ns += to_ns - ready_ns;
	sum->call_ns[off->call] += ready_ns - from_ns;
	sum->blocked++;
	if (!sum->longest_blocked || off->end_ns - off->start_ns > sum->longest_blocked->end_ns - sum->longest_blocked->start_ns)
		sum->longest_blocked = off;
}

bool weft_kernel_sum(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, struct weft_off_sum *out)
{
	memset(out, 0, sizeof *out);
	return walk(m, stream, from_ns, to_ns, add_to_sum, out);
}

static void add_length(void *ctx, const struct weft_off *off, int64_t from_ns, int64_t to_ns)
{
	int64_t *sum_ns = ctx;
	*sum_ns += to_ns - from_ns;
}

int64_t weft_kernel_off_ns(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	int64_t sum_ns = 0;
	return walk(m, stream, from_ns, to_ns, add_length, &sum_ns) ? sum_ns : -1;
}

int64_t weft_kernel_promise_off_ns(const struct weft_model *m, uint32_t promise, int64_t from_ns, int64_t to_ns)
{
	const struct weft_promise *p = &m->promises[promise];
	int64_t sum_ns = 0;
	for (uint32_t r = p->runs; m->kernel && r < p[1].runs && m->runs[r].start_ns < to_ns; r++) {
		const uint16_t stream = m->run_streams ? m->run_streams[r] : p->stream;
		const int64_t begin = m->runs[r].start_ns > from_ns ? m->runs[r].start_ns : from_ns,
			      end = m->runs[r].end_ns < to_ns ? m->runs[r].end_ns : to_ns,
			      off_ns = begin < end ? weft_kernel_off_ns(m, stream, begin, end) : 0;
		sum_ns += off_ns > 0 ? off_ns : 0;
	}
	return sum_ns;
}

uint32_t weft_kernel_ran(const struct weft_model *m, uint32_t tid, int64_t time_ns)
{
	for (uint32_t p = 1; p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs && m->runs[r].start_ns <= time_ns; r++) {
			const uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
			if (m->runs[r].end_ns >= time_ns && m->trace->streams[stream].tid == tid)
				return p;
		}
	return WEFT_NONE;
}
