/* kernel.c: see kernel.h.  SPDX-License-Identifier: ISC */
#include "model/kernel.h"

#include <string.h>

#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/os_tracks.h"
#include "model/private.h"

/* ---- Making ---- */

#define FARTHEST_NS (INT64_MAX / 4)

/* What is kept of each OS thread. */
enum list { LIST_OFFS, LIST_SPENTS, LIST_FAULTS, LISTS };

/* What an OS thread does just now. */
struct state {
	uint32_t tid;
	size_t off; /* the stretch that is open; SIZE_MAX: it has a processor, or nobody knows */
	size_t counts[LISTS];
	int64_t first_ns;
};

struct begun {
	struct weft_off off;
	uint32_t owner; /* index of states */
};

/* What an OS thread was in at a time: told a little later, when somebody had looked. */
struct named {
	struct weft_kernel_event event;
	int64_t then_ns;
};

struct spent {
	struct weft_spent spent;
	uint32_t owner;
};

struct fault {
	int64_t time_ns;
	uint32_t owner;
};

struct making {
	const struct weft_model *model;
	WEFT_VEC(struct begun) offs; /* by when they begin */
	WEFT_VEC(struct named) named;
	WEFT_VEC(struct spent) spents;
	WEFT_VEC(struct fault) faults;
	WEFT_VEC(struct weft_spent) collections;
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
	struct weft_off *off = &m->offs.items[s->off].off;
	off->end_ns = now;
	off->ready_ns = off->ready_ns > now ? now : off->ready_ns;
	s->off = SIZE_MAX;
}

static bool begin_off(struct making *m, struct state *s, int64_t now, const struct weft_kernel_event *e)
{
	/* One that began and of which the end was lost ends here. */
	end_off(m, s, now);
	struct begun *slot = weft_vec_push(&m->offs);
	if (!slot)
		return false;
	const bool is_taken = e->op == WEFT_KERNEL_TAKEN || e->why == WEFT_OFF_PREEMPTED;
	*slot = (struct begun){.owner = (uint32_t)(s - m->states.items)};
	slot->off = (struct weft_off){.start_ns = now,
	    .fd = WEFT_KERNEL_NO_FD,
	    .ready_ns = is_taken ? now : INT64_MAX,
	    .end_ns = INT64_MAX,
	    .by = e->op == WEFT_KERNEL_TAKEN ? e->other : WEFT_NO_TID,
	    .why = is_taken ? WEFT_OFF_PREEMPTED : e->why,
	    .call = is_taken ? WEFT_CALL_UNKNOWN : e->call};
	s->off = m->offs.count - 1;
	s->counts[LIST_OFFS]++;
	return true;
}

static bool add_named(struct making *m, int64_t now, const struct weft_kernel_event *e)
{
	struct named *slot = weft_vec_push(&m->named);
	if (slot)
		*slot = (struct named){*e, now - e->ago_ns};
	return slot != NULL;
}

static bool add_spent(struct making *m, struct state *s, int64_t now, const struct weft_kernel_event *e)
{
	const int64_t end_ns = now - e->ago_ns;
	const struct weft_spent spent = {end_ns - weft_min_ns(e->length_ns, FARTHEST_NS), end_ns, e->text, e->tid, e->why};
	if (e->why == WEFT_SPENT_COLLECTOR) {
		struct weft_spent *slot = weft_vec_push(&m->collections);
		if (slot)
			*slot = spent;
		return slot != NULL;
	}
	struct spent *slot = weft_vec_push(&m->spents);
	if (slot)
		*slot = (struct spent){spent, (uint32_t)(s - m->states.items)};
	s->counts[LIST_SPENTS]++;
	return slot != NULL;
}

/* It runs, though it waits for the page. */
static bool add_fault(struct making *m, struct state *s, int64_t now)
{
	end_off(m, s, now);
	struct fault *slot = weft_vec_push(&m->faults);
	if (slot)
		*slot = (struct fault){now, (uint32_t)(s - m->states.items)};
	s->counts[LIST_FAULTS]++;
	return slot != NULL;
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
			if (s->off != SIZE_MAX && m->offs.items[s->off].off.ready_ns == INT64_MAX) {
				struct weft_off *off = &m->offs.items[s->off].off;
				off->ready_ns = now;
				off->woken_by = e->other;
				off->by_interrupt = e->other == WEFT_NO_TID;
			}
			break;
		case WEFT_KERNEL_IN:
			if (!add_named(m, now, e))
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
		size_t *const of[LISTS] = {&thread->offs, &thread->spents, &thread->faults};
		for (int list = 0; list < LISTS; list++) {
			const size_t own = *of[list];
			*of[list] = before[list];
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
	const struct weft_off *a = x, *b = y;
	return WEFT_ORDER(a->start_ns, b->start_ns) ?: WEFT_ORDER(a->end_ns, b->end_ns);
}

static int compare_times(const void *x, const void *y)
{
	return WEFT_ORDER(*(const int64_t *)x, *(const int64_t *)y);
}

/* Two traces may tell of one OS thread, one behind the other, or both of the same time. */
static void part_offs(struct weft_kernel *k, const struct weft_os_thread *thread)
{
	struct weft_off *offs = k->offs + thread->offs;
	const size_t count = thread[1].offs - thread->offs;
	weft_sort(offs, count, sizeof *offs, compare_offs);
	for (size_t i = 1; i < count; i++) {
		offs[i - 1].end_ns = weft_min_ns(offs[i - 1].end_ns, offs[i].start_ns);
		offs[i - 1].ready_ns = weft_min_ns(offs[i - 1].ready_ns, offs[i - 1].end_ns);
	}
	weft_sort(k->faults_ns + thread->faults, thread[1].faults - thread->faults, sizeof *k->faults_ns, compare_times);
}

/* Puts each thing to its OS thread's; in time order they are already, but for interrupts, which are told when they end. */
static bool order_lists(struct weft_kernel *k, const struct making *m)
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
		struct weft_off off = m->offs.items[i].off;
		off.end_ns = off.end_ns < m->last_ns ? off.end_ns : m->last_ns;
		off.ready_ns = off.ready_ns < off.end_ns ? off.ready_ns : off.end_ns;
		k->offs[next[m->offs.items[i].owner][LIST_OFFS]++] = off;
	}
	for (size_t i = 0; whole && i < m->spents.count; i++)
		k->spents[next[m->spents.items[i].owner][LIST_SPENTS]++] = m->spents.items[i].spent;
	for (size_t i = 0; whole && i < m->faults.count; i++)
		k->faults_ns[next[m->faults.items[i].owner][LIST_FAULTS]++] = m->faults.items[i].time_ns;
	for (size_t i = 0; whole && i < k->thread_count; i++)
		part_offs(k, &k->threads[i]);
	for (size_t i = 0; whole && i < k->thread_count; i++)
		weft_sort(k->spents + k->threads[i].spents, k->threads[i + 1].spents - k->threads[i].spents, sizeof *k->spents,
		    compare_spents);
	k->off_count = m->offs.count;
	k->spent_count = m->spents.count;
	k->fault_count = m->faults.count;
	free(next);
	return whole;
}

/* The later one counts of what is sure, and of what is not. */
static void name_offs(struct weft_kernel *k, const struct making *m)
{
	for (size_t i = 0; i < m->named.count; i++) {
		const struct weft_kernel_event *e = &m->named.items[i].event;
		const int64_t then_ns = m->named.items[i].then_ns;
		const uint32_t thread = weft_kernel_thread(k, e->tid);
		const size_t end = k->threads[thread + 1].offs;
		const size_t at = WEFT_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > then_ns);
		struct weft_off *off = at < end ? &k->offs[at] : NULL;
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
	struct making m = {.model = model, .last_ns = -FARTHEST_NS};
	struct weft_kernel *k = calloc(1, sizeof *k);
	int got = k ? weft_trace_kernel(trace, take, &m, &k->info) : WEFT_ENOMEM;
	if (got == WEFT_EIO) /* take() had no memory */
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
	weft_vec_free(&m.named);
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

/* ---- Asking ---- */

uint32_t weft_kernel_thread(const struct weft_kernel *k, uint64_t tid)
{
	size_t first = WEFT_FIRST(i, 0, k->thread_count, k->threads[i].tid >= tid);
	return first < k->thread_count && k->threads[first].tid == tid ? (uint32_t)first : WEFT_NONE;
}

uint32_t weft_kernel_of_stream(const struct weft_model *m, size_t stream)
{
	const struct weft_stream_info *info = &m->trace->streams[stream];
	return weft_kernel_thread(m->kernel, info->host ? weft_tid_at((uint32_t)info->tid, info->host) : info->tid);
}

/* Calls `each` for each stretch that is in that time, with what of it is; false: the kernel does not say all of it. */
static bool walk(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns,
    void (*each)(void *ctx, const struct weft_off *off, int64_t from_ns, int64_t to_ns), void *ctx)
{
	const struct weft_kernel *k = m->kernel;
	if (!k || stream >= m->trace->stream_count || k->info.level == WEFT_LEVEL_SELF || !k->info.is_whole ||
	    from_ns < k->since_ns || to_ns > k->until_ns)
		return false;
	const uint32_t thread = weft_kernel_of_stream(m, stream);
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

enum { NAMES = 16 };

/* Of what most time went to. */
struct tally {
	size_t count;
	struct {
		const char *name;
		int64_t ns, sure_ns;
	} of[NAMES];
};

static void add_to_tally(struct tally *t, const char *name, int64_t ns, bool is_sure)
{
	size_t i = 0, least = 0;
	for (; i < t->count && strcmp(t->of[i].name, name) != 0; i++)
		least = t->of[i].ns < t->of[least].ns ? i : least;
	if (i == NAMES) { /* whatever comes often enough stays */
		t->of[least].ns -= weft_min_ns(ns, t->of[least].ns);
		if (t->of[least].ns > 0)
			return;
		i = least;
		t->of[i].name = NULL;
	}
	if (i == t->count || !t->of[i].name) {
		t->count += i == t->count;
		t->of[i].name = name;
		t->of[i].ns = t->of[i].sure_ns = 0;
	}
	t->of[i].ns += ns;
	t->of[i].sure_ns += is_sure ? ns : 0;
}

/* What most of it was; a name of NULL: nobody knows. */
static struct weft_waited most_of(const struct tally *t)
{
	struct weft_waited out = {0};
	for (size_t i = 0; i < t->count; i++)
		if (t->of[i].ns > out.ns)
			out = (struct weft_waited){t->of[i].name, t->of[i].ns, t->of[i].sure_ns >= t->of[i].ns - t->of[i].ns / 8};
	return out;
}

struct waiting {
	uint8_t call;
	struct tally files;
};

static void add_file(void *ctx, const struct weft_off *off, int64_t from_ns, int64_t to_ns)
{
	struct waiting *w = ctx;
	if (off->file && off->call == w->call && off->why != WEFT_OFF_PREEMPTED)
		add_to_tally(
		    &w->files, off->file, weft_min_ns(weft_max_ns(off->ready_ns, from_ns), to_ns) - from_ns, off->is_sure);
}

struct weft_waited weft_kernel_waited(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, uint8_t call)
{
	struct waiting w = {.call = call};
	return walk(m, stream, from_ns, to_ns, add_file, &w) ? most_of(&w.files) : (struct weft_waited){0};
}

/* Interrupts that began long before are not looked for: nothing else runs meanwhile. */
#define LONGEST_INTERRUPT_NS 1000000000
#define LONGEST_COLLECTION_NS 60000000000

static void add_interrupts(const struct weft_kernel *k, uint32_t thread, int64_t from_ns, int64_t to_ns, struct weft_off_sum *sum)
{
	const size_t end = k->threads[thread + 1].spents;
	size_t i = WEFT_FIRST(n, k->threads[thread].spents, end, k->spents[n].start_ns > from_ns - LONGEST_INTERRUPT_NS);
	int64_t reached_ns = from_ns; /* one within another counts once */
	struct tally names = {0};
	for (; i < end && k->spents[i].start_ns < to_ns; i++) {
		const struct weft_spent *s = &k->spents[i];
		const int64_t ns = weft_min_ns(s->end_ns, to_ns) - weft_max_ns(s->start_ns, reached_ns);
		if (ns <= 0)
			continue;
		reached_ns = s->end_ns;
		sum->interrupts_ns += ns;
		sum->first_interrupt_ns = sum->interrupts++ ? sum->first_interrupt_ns : s->start_ns;
		if (s->name)
			add_to_tally(&names, s->name, ns, true);
	}
	const struct weft_waited most = most_of(&names);
	sum->interrupt = most.file;
	sum->interrupt_ns = most.ns;
}

bool weft_kernel_sum(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, struct weft_off_sum *out)
{
	const struct weft_kernel *k = m->kernel;
	memset(out, 0, sizeof *out);
	if (!walk(m, stream, from_ns, to_ns, add_to_sum, out))
		return false;
	const uint32_t thread = weft_kernel_of_stream(m, stream);
	const size_t last = k->threads[thread + 1].faults;
	const size_t begin = WEFT_FIRST(n, k->threads[thread].faults, last, k->faults_ns[n] >= from_ns);
	const size_t end = WEFT_FIRST(n, begin, last, k->faults_ns[n] >= to_ns);
	out->faults = (uint32_t)(end - begin);
	/* When a fault is over nobody tells. */
	enum { NEAR_NS = 10000 };
	for (size_t i = begin + 1; i < end; i++)
		if (k->faults_ns[i] - k->faults_ns[i - 1] < NEAR_NS)
			out->faulting_ns += k->faults_ns[i] - k->faults_ns[i - 1];
	add_interrupts(k, thread, from_ns, to_ns, out);
	return true;
}

int64_t weft_kernel_collected_ns(
    const struct weft_kernel *k, uint32_t pid, int64_t from_ns, int64_t to_ns, const struct weft_spent **longest)
{
	int64_t sum_ns = 0, reached_ns = from_ns;
	*longest = NULL;
	for (size_t i = WEFT_FIRST(n, 0, k->collection_count, k->collections[n].start_ns > from_ns - LONGEST_COLLECTION_NS);
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
