/* kernel.c: reads kernel records into the model (kernel.h).
 * SPDX-License-Identifier: ISC */
#include "model/kernel.h"

#include <string.h>

#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/os_tracks.h"
#include "model/private.h"

/* ---- Building ---- */

#define MAX_TIME_NS (INT64_MAX / 4)

/* The lists of records that each thread has. */
enum list { LIST_OFFS, LIST_SPENTS, LIST_FAULTS, LISTS };

/* The state of a thread at the present record. */
struct state {
	uint32_t tid;
	size_t off; /* index of the off-CPU interval that has not ended; SIZE_MAX if the thread is on CPU or unknown */
	size_t counts[LISTS];
	int64_t first_ns;
};

struct owned_off {
	struct weft_off_cpu off;
	uint32_t owner; /* index into states */
};

/* The file for which a thread waited at then_ns; it is recorded a little later, when the recorder resolves the file
 * descriptor. */
struct observation {
	struct weft_kernel_event event;
	int64_t then_ns;
};

struct owned_spent {
	struct weft_spent spent;
	uint32_t owner;
};

struct owned_fault {
	int64_t time_ns;
	uint32_t owner;
};

struct kernel_builder {
	const struct weft_model *model;
	WEFT_VEC(struct owned_off) offs; /* by start time */
	WEFT_VEC(struct observation) observation;
	WEFT_VEC(struct owned_spent) spents;
	WEFT_VEC(struct owned_fault) faults;
	WEFT_VEC(struct weft_spent) collections;
	WEFT_VEC(struct state) states;
	struct weft_idmap numbers; /* index into states for each tid */
	int64_t last_ns;
};

static struct state *get_thread_state(struct kernel_builder *m, uint32_t tid)
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

/* Ends the open off-CPU interval, because the thread is on CPU from now on. */
static void end_off(struct kernel_builder *m, struct state *s, int64_t now)
{
	if (s->off == SIZE_MAX)
		return;
	struct weft_off_cpu *off = &m->offs.items[s->off].off;
	off->end_ns = now;
	off->ready_ns = off->ready_ns > now ? now : off->ready_ns;
	s->off = SIZE_MAX;
}

static bool begin_off(struct kernel_builder *m, struct state *s, int64_t now, const struct weft_kernel_event *e)
{
	/* If the end of an earlier interval was lost, the interval ends at this record. */
	end_off(m, s, now);
	struct owned_off *slot = weft_vec_push(&m->offs);
	if (!slot)
		return false;
	const bool is_preempted = e->op == WEFT_KERNEL_TAKEN || e->why == WEFT_OFF_PREEMPTED;
	*slot = (struct owned_off){.owner = (uint32_t)(s - m->states.items)};
	slot->off = (struct weft_off_cpu){.start_ns = now,
	    .fd = WEFT_KERNEL_NO_FD,
	    .ready_ns = is_preempted ? now : INT64_MAX,
	    .end_ns = INT64_MAX,
	    .by = e->op == WEFT_KERNEL_TAKEN ? e->other : WEFT_NO_TID,
	    .why = is_preempted ? WEFT_OFF_PREEMPTED : e->why,
	    .call = is_preempted ? WEFT_CALL_UNKNOWN : e->call};
	s->off = m->offs.count - 1;
	s->counts[LIST_OFFS]++;
	return true;
}

static bool add_observation(struct kernel_builder *m, int64_t now, const struct weft_kernel_event *e)
{
	struct observation *slot = weft_vec_push(&m->observation);
	if (slot)
		*slot = (struct observation){*e, now - e->ago_ns};
	return slot != NULL;
}

static bool add_spent(struct kernel_builder *m, struct state *s, int64_t now, const struct weft_kernel_event *e)
{
	const int64_t end_ns = now - e->ago_ns;
	const struct weft_spent spent = {end_ns - weft_min_ns(e->length_ns, MAX_TIME_NS), end_ns, e->text, e->tid, e->why};
	if (e->why == WEFT_SPENT_COLLECTOR) {
		struct weft_spent *slot = weft_vec_push(&m->collections);
		if (slot)
			*slot = spent;
		return slot != NULL;
	}
	struct owned_spent *slot = weft_vec_push(&m->spents);
	if (slot)
		*slot = (struct owned_spent){spent, (uint32_t)(s - m->states.items)};
	s->counts[LIST_SPENTS]++;
	return slot != NULL;
}

/* Adds a page fault.  The thread counts as on CPU, although it waits for the page. */
static bool add_fault(struct kernel_builder *m, struct state *s, int64_t now)
{
	end_off(m, s, now);
	struct owned_fault *slot = weft_vec_push(&m->faults);
	if (slot)
		*slot = (struct owned_fault){now, (uint32_t)(s - m->states.items)};
	s->counts[LIST_FAULTS]++;
	return slot != NULL;
}

static int apply_kernel_events(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	struct kernel_builder *m = ctx;
	for (size_t i = 0; i < count; i++) {
		const struct weft_kernel_event *e = &events[i];
		struct state *s = get_thread_state(m, e->tid);
		int64_t now;
		if (!s)
			return 1;
		/* Times are limited, so that the lengths of intervals cannot overflow even in a damaged trace. */
		if (__builtin_sub_overflow(e->time_ns, m->model->start_ns, &now) || now > MAX_TIME_NS || now < -MAX_TIME_NS)
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
			if (s->off != SIZE_MAX && m->offs.items[s->off].off.ready_ns == INT64_MAX) {
				struct weft_off_cpu *off = &m->offs.items[s->off].off;
				off->ready_ns = now;
				off->woken_by = e->other;
				off->by_interrupt = e->other == WEFT_NO_TID;
			}
			break;
		case WEFT_KERNEL_IN:
			if (!add_observation(m, now, e))
				return 1;
			break;
		case WEFT_KERNEL_SPENT:
			if (!add_spent(m, s, now, e))
				return 1;
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

static const struct weft_kernel_thread *find_thread_info(const struct weft_kernel_info *info, uint32_t tid)
{
	size_t first = WEFT_FIND_FIRST(i, 0, info->thread_count, info->threads[i].tid >= tid);
	return first < info->thread_count && info->threads[first].tid == tid ? &info->threads[first] : NULL;
}

static int compare_threads(const void *x, const void *y)
{
	const struct weft_os_thread *a = x, *b = y;
	return WEFT_ORDER(a->tid, b->tid);
}

/* Lists all threads that have a name or records. */
static bool list_threads(struct weft_kernel *k, const struct kernel_builder *m)
{
	const struct weft_kernel_info *info = &k->info;
	k->threads = calloc(m->states.count + info->thread_count + 1, sizeof *k->threads);
	if (!k->threads)
		return false;
	for (size_t i = 0; i < m->states.count; i++) {
		const struct state *s = &m->states.items[i];
		const struct weft_kernel_thread *info_thread = find_thread_info(info, s->tid);
		k->threads[k->thread_count++] = (struct weft_os_thread){.tid = s->tid,
		    .pid = info_thread ? info_thread->pid : 0,
		    .name = info_thread ? info_thread->name : (struct weft_str){"", 0},
		    .offs = s->counts[LIST_OFFS],
		    .spents = s->counts[LIST_SPENTS],
		    .faults = s->counts[LIST_FAULTS],
		    .first_ns = s->first_ns};
	}
	for (size_t i = 0; i < info->thread_count; i++)
		if (weft_idmap_get(&m->numbers, info->threads[i].tid) == WEFT_IDMAP_NONE)
			k->threads[k->thread_count++] = (struct weft_os_thread){.tid = info->threads[i].tid,
			    .pid = info->threads[i].pid,
			    .name = info->threads[i].name,
			    .first_ns = INT64_MAX};
	weft_sort(k->threads, k->thread_count, sizeof *k->threads, compare_threads);
	size_t before[LISTS] = {0};
	for (size_t i = 0; i <= k->thread_count; i++) {
		struct weft_os_thread *thread = &k->threads[i];
		size_t *const entries[LISTS] = {&thread->offs, &thread->spents, &thread->faults};
		for (int list = 0; list < LISTS; list++) {
			const size_t own = *entries[list];
			*entries[list] = before[list];
			before[list] += own;
		}
	}
	return true;
}

static int compare_spents(const void *x, const void *y)
{
	const struct weft_spent *a = x, *b = y;
	return WEFT_ORDER(a->start_ns, b->start_ns) ?: WEFT_ORDER(b->end_ns, a->end_ns) ?: WEFT_ORDER(a->tid, b->tid) ?:
	       WEFT_ORDER(a->on, b->on);
}

static int compare_offs(const void *x, const void *y)
{
	const struct weft_off_cpu *a = x, *b = y;
	return WEFT_ORDER(a->start_ns, b->start_ns) ?: WEFT_ORDER(a->end_ns, b->end_ns);
}

static int compare_times(const void *x, const void *y)
{
	return WEFT_ORDER(*(const int64_t *)x, *(const int64_t *)y);
}

/* Makes the intervals of one thread disjoint: two traces may have records of the same thread, one after the other or at the
 * same time. */
static void separate_offs(struct weft_kernel *k, const struct weft_os_thread *thread)
{
	struct weft_off_cpu *offs = k->offs + thread->offs;
	const size_t count = thread[1].offs - thread->offs;
	weft_sort(offs, count, sizeof *offs, compare_offs);
	for (size_t i = 1; i < count; i++) {
		offs[i - 1].end_ns = weft_min_ns(offs[i - 1].end_ns, offs[i].start_ns);
		offs[i - 1].ready_ns = weft_min_ns(offs[i - 1].ready_ns, offs[i - 1].end_ns);
	}
	weft_sort(k->faults_ns + thread->faults, thread[1].faults - thread->faults, sizeof *k->faults_ns, compare_times);
}

/* Groups intervals, interrupts and faults by thread.  The records are in order of time, except interrupts, which are recorded
 * when they end. */
static bool order_lists(struct weft_kernel *k, const struct kernel_builder *m)
{
	size_t(*next)[LISTS] = malloc((m->states.count + 1) * sizeof *next);
	k->offs = malloc((m->offs.count + 1) * sizeof *k->offs);
	k->spents = malloc((m->spents.count + 1) * sizeof *k->spents);
	k->faults_ns = malloc((m->faults.count + 1) * sizeof *k->faults_ns);
	const bool whole = next && k->offs && k->spents && k->faults_ns;
	for (size_t i = 0; whole && i < m->states.count; i++) {
		const struct weft_os_thread *thread = &k->threads[weft_kernel_thread(k, m->states.items[i].tid)];
		next[i][LIST_OFFS] = thread->offs;
		next[i][LIST_SPENTS] = thread->spents;
		next[i][LIST_FAULTS] = thread->faults;
	}
	for (size_t i = 0; whole && i < m->offs.count; i++) {
		struct weft_off_cpu off = m->offs.items[i].off;
		off.end_ns = off.end_ns < m->last_ns ? off.end_ns : m->last_ns;
		off.ready_ns = off.ready_ns < off.end_ns ? off.ready_ns : off.end_ns;
		k->offs[next[m->offs.items[i].owner][LIST_OFFS]++] = off;
	}
	for (size_t i = 0; whole && i < m->spents.count; i++)
		k->spents[next[m->spents.items[i].owner][LIST_SPENTS]++] = m->spents.items[i].spent;
	for (size_t i = 0; whole && i < m->faults.count; i++)
		k->faults_ns[next[m->faults.items[i].owner][LIST_FAULTS]++] = m->faults.items[i].time_ns;
	for (size_t i = 0; whole && i < k->thread_count; i++)
		separate_offs(k, &k->threads[i]);
	for (size_t i = 0; whole && i < k->thread_count; i++)
		weft_sort(k->spents + k->threads[i].spents, k->threads[i + 1].spents - k->threads[i].spents, sizeof *k->spents,
		    compare_spents);
	k->off_count = m->offs.count;
	k->spent_count = m->spents.count;
	k->fault_count = m->faults.count;
	free(next);
	return whole;
}

/* Sets the file names of off-CPU intervals; a later observation replaces an earlier one, unless only the earlier one is
 * sure. */
static void name_offs(struct weft_kernel *k, const struct kernel_builder *m)
{
	for (size_t i = 0; i < m->observation.count; i++) {
		const struct weft_kernel_event *e = &m->observation.items[i].event;
		const int64_t then_ns = m->observation.items[i].then_ns;
		const uint32_t thread = weft_kernel_thread(k, e->tid);
		const size_t end = k->threads[thread + 1].offs;
		const size_t at = WEFT_FIND_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > then_ns);
		struct weft_off_cpu *off = at < end ? &k->offs[at] : NULL;
		if (!off || off->start_ns > then_ns || off->why == WEFT_OFF_PREEMPTED || (off->is_sure && !e->why))
			continue;
		if (e->why || off->call == WEFT_CALL_UNKNOWN)
			off->call = e->call;
		off->fd = e->other;
		off->file = e->text;
		off->is_sure = e->why;
	}
}

int weft__model_read_kernel(struct weft_model *model, struct weft_trace *trace)
{
	struct kernel_builder m = {.model = model, .last_ns = -MAX_TIME_NS};
	struct weft_kernel *k = calloc(1, sizeof *k);
	int got = k ? weft_trace_kernel(trace, apply_kernel_events, &m, &k->info) : WEFT_ENOMEM;
	if (got == WEFT_EIO) /* apply_kernel_events() ran out of memory */
		got = WEFT_ENOMEM;
	if (got > 0 && (!list_threads(k, &m) || !order_lists(k, &m)))
		got = WEFT_ENOMEM;
	if (got > 0) {
		name_offs(k, &m);
		weft_sort(m.collections.items, m.collections.count, sizeof *m.collections.items, compare_spents);
		k->collections = m.collections.items;
		k->collection_count = m.collections.count;
	} else {
		weft_vec_free(&m.collections);
	}
	weft_vec_free(&m.offs);
	weft_vec_free(&m.observation);
	weft_vec_free(&m.spents);
	weft_vec_free(&m.faults);
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
	free(kernel->spents);
	free(kernel->collections);
	weft__os_tracks_free(kernel->tracks);
	free(kernel);
}

/* ---- Queries ---- */

uint32_t weft_kernel_thread(const struct weft_kernel *k, uint64_t tid)
{
	size_t first = WEFT_FIND_FIRST(i, 0, k->thread_count, k->threads[i].tid >= tid);
	return first < k->thread_count && k->threads[first].tid == tid ? (uint32_t)first : WEFT_NONE;
}

uint32_t weft_kernel_of_stream(const struct weft_model *m, size_t stream)
{
	const struct weft_stream_info *info = &m->trace->streams[stream];
	return weft_kernel_thread(m->kernel, info->host ? weft_tid_at((uint32_t)info->tid, info->host) : info->tid);
}

/* Calls `each` for each off-CPU interval within a time range, clipped to the range; returns false if kernel records do not
 * cover the whole range. */
static bool visit_offs(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns,
    void (*each)(void *ctx, const struct weft_off_cpu *off, int64_t from_ns, int64_t to_ns), void *ctx)
{
	const struct weft_kernel *k = m->kernel;
	if (!k || stream >= m->trace->stream_count || k->info.level == WEFT_LEVEL_SELF || !k->info.is_whole ||
	    from_ns < k->since_ns || to_ns > k->until_ns)
		return false;
	const uint32_t thread = weft_kernel_of_stream(m, stream);
	if (thread == WEFT_NONE || k->threads[thread].first_ns > from_ns)
		return false;
	const size_t end = k->threads[thread + 1].offs;
	size_t i = WEFT_FIND_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > from_ns);
	for (; i < end && k->offs[i].start_ns < to_ns; i++) {
		const struct weft_off_cpu *off = &k->offs[i];
		const int64_t begin = off->start_ns > from_ns ? off->start_ns : from_ns,
			      stop = off->end_ns < to_ns ? off->end_ns : to_ns;
		each(ctx, off, begin, stop);
	}
	return true;
}

static void add_to_sum(void *ctx, const struct weft_off_cpu *off, int64_t from_ns, int64_t to_ns)
{
	struct weft_off_cpu_sum *sum = ctx;
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

enum { MAX_NAMES = 16 };

/* The names that account for the most time, in a table of fixed size. */
struct name_times {
	size_t count;
	struct {
		const char *name;
		int64_t ns, sure_ns;
	} entries[MAX_NAMES];
};

static void add_name_time(struct name_times *t, const char *name, int64_t ns, bool is_sure)
{
	size_t i = 0, least = 0;
	for (; i < t->count && strcmp(t->entries[i].name, name) != 0; i++)
		least = t->entries[i].ns < t->entries[least].ns ? i : least;
	if (i == MAX_NAMES) { /* the entry with the least time loses ns; a name with much time stays in the table */
		t->entries[least].ns -= weft_min_ns(ns, t->entries[least].ns);
		if (t->entries[least].ns > 0)
			return;
		i = least;
		t->entries[i].name = NULL;
	}
	if (i == t->count || !t->entries[i].name) {
		t->count += i == t->count;
		t->entries[i].name = name;
		t->entries[i].ns = t->entries[i].sure_ns = 0;
	}
	t->entries[i].ns += ns;
	t->entries[i].sure_ns += is_sure ? ns : 0;
}

/* Returns the name with the most time; the name is NULL if it is unknown. */
static struct weft_wait_target find_longest_name(const struct name_times *t)
{
	struct weft_wait_target out = {0};
	for (size_t i = 0; i < t->count; i++)
		if (t->entries[i].ns > out.ns)
			out = (struct weft_wait_target){t->entries[i].name, t->entries[i].ns,
			    t->entries[i].sure_ns >= t->entries[i].ns - t->entries[i].ns / 8};
	return out;
}

struct waiting {
	uint8_t call;
	struct name_times files;
};

static void add_file(void *ctx, const struct weft_off_cpu *off, int64_t from_ns, int64_t to_ns)
{
	struct waiting *w = ctx;
	if (off->file && off->call == w->call && off->why != WEFT_OFF_PREEMPTED)
		add_name_time(
		    &w->files, off->file, weft_min_ns(weft_max_ns(off->ready_ns, from_ns), to_ns) - from_ns, off->is_sure);
}

struct weft_wait_target weft_kernel_wait_target(
    const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, uint8_t call)
{
	struct waiting w = {.call = call};
	return visit_offs(m, stream, from_ns, to_ns, add_file, &w) ? find_longest_name(&w.files) : (struct weft_wait_target){0};
}

/* Interrupts that started longer ago are not searched: nothing else runs during an interrupt, so it is short. */
#define MAX_INTERRUPT_NS 1000000000
#define MAX_COLLECTION_NS 60000000000

static void add_interrupts(
    const struct weft_kernel *k, uint32_t thread, int64_t from_ns, int64_t to_ns, struct weft_off_cpu_sum *sum)
{
	const size_t end = k->threads[thread + 1].spents;
	size_t i = WEFT_FIND_FIRST(n, k->threads[thread].spents, end, k->spents[n].start_ns > from_ns - MAX_INTERRUPT_NS);
	int64_t reached_ns = from_ns; /* end of the time that was counted so far, so that nested interrupts count once */
	struct name_times names = {0};
	for (; i < end && k->spents[i].start_ns < to_ns; i++) {
		const struct weft_spent *s = &k->spents[i];
		const int64_t ns = weft_min_ns(s->end_ns, to_ns) - weft_max_ns(s->start_ns, reached_ns);
		if (ns <= 0)
			continue;
		reached_ns = s->end_ns;
		sum->interrupts_ns += ns;
		sum->first_interrupt_ns = sum->interrupts++ ? sum->first_interrupt_ns : s->start_ns;
		if (s->name)
			add_name_time(&names, s->name, ns, true);
	}
	const struct weft_wait_target most = find_longest_name(&names);
	sum->interrupt = most.file;
	sum->interrupt_ns = most.ns;
}

bool weft_kernel_sum(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, struct weft_off_cpu_sum *out)
{
	const struct weft_kernel *k = m->kernel;
	memset(out, 0, sizeof *out);
	if (!visit_offs(m, stream, from_ns, to_ns, add_to_sum, out))
		return false;
	const uint32_t thread = weft_kernel_of_stream(m, stream);
	const size_t last = k->threads[thread + 1].faults;
	const size_t begin = WEFT_FIND_FIRST(n, k->threads[thread].faults, last, k->faults_ns[n] >= from_ns);
	const size_t end = WEFT_FIND_FIRST(n, begin, last, k->faults_ns[n] >= to_ns);
	out->faults = (uint32_t)(end - begin);
	/* The end of a page fault is not recorded. */
	enum { MAX_FAULT_GAP_NS = 10000 };
	for (size_t i = begin + 1; i < end; i++)
		if (k->faults_ns[i] - k->faults_ns[i - 1] < MAX_FAULT_GAP_NS)
			out->faulting_ns += k->faults_ns[i] - k->faults_ns[i - 1];
	add_interrupts(k, thread, from_ns, to_ns, out);
	return true;
}

int64_t weft_kernel_collected_ns(
    const struct weft_kernel *k, uint32_t pid, int64_t from_ns, int64_t to_ns, const struct weft_spent **longest)
{
	int64_t sum_ns = 0, reached_ns = from_ns;
	*longest = NULL;
	for (size_t i = WEFT_FIND_FIRST(n, 0, k->collection_count, k->collections[n].start_ns > from_ns - MAX_COLLECTION_NS);
	     i < k->collection_count && k->collections[i].start_ns < to_ns; i++) {
		const struct weft_spent *s = &k->collections[i];
		const uint32_t thread = weft_kernel_thread(k, s->tid);
		const int64_t ns = weft_min_ns(s->end_ns, to_ns) - weft_max_ns(s->start_ns, reached_ns);
		if (ns <= 0 || thread == WEFT_NONE || k->threads[thread].pid != pid)
			continue;
		reached_ns = s->end_ns;
		sum_ns += ns;
		if (!*longest || s->end_ns - s->start_ns > (*longest)->end_ns - (*longest)->start_ns)
			*longest = s;
	}
	return sum_ns;
}

static void add_off_time(void *ctx, const struct weft_off_cpu *off, int64_t from_ns, int64_t to_ns)
{
	int64_t *sum_ns = ctx;
	*sum_ns += to_ns - from_ns;
}

int64_t weft_kernel_off_ns(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	int64_t sum_ns = 0;
	return visit_offs(m, stream, from_ns, to_ns, add_off_time, &sum_ns) ? sum_ns : -1;
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
