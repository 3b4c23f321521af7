/* cpu_breakdown.c: splits a long run into the times in which its thread was on CPU, runnable or blocked.
 *
 * The recorder reads the kernel's counters of the thread at both ends of a round: an interval that consists mostly of the run.
 * The kernel's counters do not include the time in which the thread was runnable: the kernel shows that time only through a
 * file descriptor, which a recorder does not keep open.  The time can be derived: a thread without voluntary context switches
 * was runnable whenever it was off CPU. SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/index/delays.h"
#include "base/duration.h"
#include "base/known_strings.h"
#include "base/search.h"
#include "base/sort.h"
#include "wire/profile.h"

/* Shortest sleep that counts as a context switch: in a shorter sleep the awaited event may have occurred already. */
#define MIN_SWITCH_NS 10000
/* Other promises in a round do not matter if they ran for at most one OTHERS_DIVISOR-th of the run, or for at most
 * OTHERS_NS. */
#define OTHERS_DIVISOR 16
#define OTHERS_NS 1200000
/* A round counts if at least one LITTLE_DIVISOR-th of the run is in it. */
#define LITTLE_DIVISOR 200
/* If other promises matter, a lower bound is reported if it is at least one REPORTED_DIVISOR-th of the run. */
#define REPORTED_DIVISOR 8
/* Number of preemptions per voluntary context switch from which time off CPU counts as runnable; one sleep may count as two
 * switches. */
#define PREEMPTION_RATIO 8

/* The kernel's counters for a round, and what the trace records of the same time. */
struct round_sum {
	struct weft_round round;
	int64_t awake_ns, paused_ns;
	uint64_t slept, paused; /* number of sleeps; number of pauses */
	size_t sampled;         /* number of times that the thread was stopped to take a sample */
};

/* Sleeps, pauses and rounds, each list sorted by stream and time. */
struct sorted_times {
	struct weft_interval *sleeps, *pauses;
	size_t sleep_count, pause_count;
	struct round_sum *round_sum;
	size_t round_sum_count;
};

static int compare_intervals(const void *a, const void *b)
{
	const struct weft_interval *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?:
	       WEFT_ORDER(x->text, y->text);
}

static int compare_round_sums(const void *a, const void *b)
{
	const struct weft_round *x = &((const struct round_sum *)a)->round, *y = &((const struct round_sum *)b)->round;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?:
	       WEFT_ORDER(x->on_cpu_ns, y->on_cpu_ns) ?: WEFT_ORDER(x->voluntary_switches, y->voluntary_switches) ?: WEFT_ORDER(x->preemptions, y->preemptions) ?:
	       WEFT_ORDER(x->minor_faults, y->minor_faults) ?: WEFT_ORDER(x->major_faults, y->major_faults);
}

static struct weft_interval *sort_intervals(const struct weft_interval *from, size_t count)
{
	struct weft_interval *out = malloc((count + 1) * sizeof *out);
	if (out && count > 0)
		memcpy(out, from, count * sizeof *out);
	if (out)
		weft_sort(out, count, sizeof *out, compare_intervals);
	return out;
}

/* Returns for how long the thread of a round was in the given intervals during that round. *at is the current interval and only
 * advances. *times is the number of intervals that ended in the round and lasted at least least_ns. */
static int64_t sum_spent_ns(const struct weft_interval *intervals, size_t count, size_t *at, const struct weft_round *r,
    int64_t least_ns, uint64_t *times)
{
	int64_t sum_ns = 0;
	*times = 0;
	while (*at < count && (intervals[*at].stream < r->stream ||
				  (intervals[*at].stream == r->stream && intervals[*at].end_ns <= r->start_ns)))
		++*at;
	for (; *at < count && intervals[*at].stream == r->stream && intervals[*at].start_ns < r->end_ns; ++*at) {
		const struct weft_interval *s = &intervals[*at];
		sum_ns += weft_min_ns(s->end_ns, r->end_ns) - weft_max_ns(s->start_ns, r->start_ns);
		if (s->end_ns > r->end_ns)
			break; /* a sleep or pause that ends after the round continues in the next round */
		*times += s->end_ns - s->start_ns >= least_ns;
	}
	return weft_max_ns(sum_ns, 0);
}

static bool sort_times(struct sorted_times *all, const struct weft_model *m)
{
	*all = (struct sorted_times){
	    .sleep_count = m->sleep_count, .pause_count = m->pause_count, .round_sum_count = m->round_count};
	all->sleeps = sort_intervals(m->sleeps, m->sleep_count);
	all->pauses = sort_intervals(m->pauses, m->pause_count);
	all->round_sum = malloc((m->round_count + 1) * sizeof *all->round_sum);
	if (!all->sleeps || !all->pauses || !all->round_sum)
		return false;
	for (size_t i = 0; i < m->round_count; i++)
		all->round_sum[i] = (struct round_sum){.round = m->rounds[i]};
	weft_sort(all->round_sum, all->round_sum_count, sizeof *all->round_sum, compare_round_sums);
	size_t sleep = 0, pause = 0;
	for (size_t i = 0; i < all->round_sum_count; i++) {
		struct round_sum *a = &all->round_sum[i];
		struct weft_round *r = &a->round;
		/* A round starts at the end of the previous round; in a damaged trace it may not. */
		if (i > 0 && r[0].stream == a[-1].round.stream)
			r->start_ns = weft_max_ns(r->start_ns, a[-1].round.end_ns);
		int64_t slept_ns = sum_spent_ns(all->sleeps, all->sleep_count, &sleep, r, MIN_SWITCH_NS, &a->slept);
		a->paused_ns = sum_spent_ns(all->pauses, all->pause_count, &pause, r, MIN_SWITCH_NS, &a->paused);
		a->awake_ns = weft_max_ns(r->end_ns - r->start_ns - slept_ns, 0);
	}
	return true;
}

/* Returns whether a pause with the given text is a garbage collection: "gc", "gc, minor", "garbage collection". */
bool weft__is_gc_pause(struct weft_str text)
{
	return weft_text_has_meaning(text, WEFT_MEANING_GC);
}

/* Adds the calls in which the thread was blocked during the stall, and the garbage collections. */
static void add_calls(struct weft__stall *s, const struct sorted_times *all, const struct weft_model *m)
{
	struct weft__cpu_breakdown *breakdown = &s->breakdown;
	size_t i = WEFT_FIND_FIRST(k, 0, all->pause_count,
	    all->pauses[k].stream > s->stream || (all->pauses[k].stream == s->stream && all->pauses[k].start_ns >= s->start_ns));
	int64_t longest_ns = 0;
	for (; i < all->pause_count && all->pauses[i].stream == s->stream && all->pauses[i].start_ns < s->end_ns; i++) {
		const struct weft_interval *pause = &all->pauses[i];
		int64_t ns = weft_min_ns(pause->end_ns, s->end_ns) - pause->start_ns;
		if (weft__is_gc_pause(weft_model_text(m, pause->text))) {
			breakdown->gc_ns += ns;
			continue;
		}
		breakdown->calls_ns += ns;
		breakdown->calls++;
		if (ns > longest_ns) {
			longest_ns = ns;
			breakdown->call = pause->text;
			breakdown->call_site = weft_model_place(m, pause);
		}
	}
	breakdown->blocked_ns = breakdown->calls_ns = weft_min_ns(breakdown->calls_ns, s->end_ns - s->start_ns);
}

/* Sums the counters of the rounds that the stall overlaps, and returns the total overlap.  A round that the stall overlaps only
 * a little does not count: the recorder reads the counters a moment before it records the next run. */
static int64_t sum_rounds(struct round_sum *sum, const struct weft__stall *s, const struct sorted_times *all)
{
	size_t i = WEFT_FIND_FIRST(k, 0, all->round_sum_count,
	    all->round_sum[k].round.stream > s->stream ||
		(all->round_sum[k].round.stream == s->stream && all->round_sum[k].round.end_ns > s->start_ns));
	int64_t covered_ns = 0;
	*sum = (struct round_sum){0};
	for (; i < all->round_sum_count && all->round_sum[i].round.stream == s->stream &&
	       all->round_sum[i].round.start_ns < s->end_ns;
	     i++) {
		const struct round_sum *a = &all->round_sum[i];
		const int64_t ns = weft_min_ns(a->round.end_ns, s->end_ns) - weft_max_ns(a->round.start_ns, s->start_ns);
		if (ns < (s->end_ns - s->start_ns) / LITTLE_DIVISOR)
			continue;
		covered_ns += ns;
		sum->awake_ns += a->awake_ns;
		sum->paused_ns += a->paused_ns;
		sum->slept += a->slept;
		sum->paused += a->paused;
		sum->round.on_cpu_ns += a->round.on_cpu_ns;
		sum->round.voluntary_switches += a->round.voluntary_switches;
		sum->round.preemptions += a->round.preemptions;
		sum->round.minor_faults += a->round.minor_faults;
		sum->round.major_faults += a->round.major_faults;
	}
	return covered_ns;
}

/* Splits the run.  The thread was off CPU in the run for at most as long as in the whole round.  Nothing is known of the time
 * outside the round, in which the thread may have been preempted. */
static void split_stall(struct weft__stall *s, const struct round_sum *sum, int64_t covered_ns)
{
	struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const struct weft_round *counts = &sum->round;
	const int64_t length_ns = s->end_ns - s->start_ns, lost_ns = weft_max_ns(sum->awake_ns - counts->on_cpu_ns, 0);
	const int64_t others_ns = sum->awake_ns - covered_ns, unknown_ns = length_ns - covered_ns;
	breakdown->is_lower_bound = others_ns > weft_max_ns(length_ns / OTHERS_DIVISOR, OTHERS_NS);
	/* A call may use the CPU before it blocks. */
	if (!breakdown->is_lower_bound)
		breakdown->blocked_ns = breakdown->calls_ns =
		    weft_min_ns(breakdown->calls_ns, weft_min_ns(lost_ns, covered_ns) + unknown_ns);
	const int64_t calls_ns = breakdown->calls_ns;
	int64_t off_ns = weft_max_ns(weft_min_ns(lost_ns, covered_ns), weft_min_ns(calls_ns, covered_ns));
	int64_t rest_ns = weft_max_ns(off_ns - calls_ns, 0);
	const uint64_t known = sum->slept + sum->paused + sum->sampled,
		       blocks = counts->voluntary_switches > known ? counts->voluntary_switches - known : 0;
	/* Time off CPU is subtracted from the own time of the stall if it is almost certainly runnable, or small. */
	if ((counts->preemptions > 0 && blocks <= counts->preemptions / PREEMPTION_RATIO) ||
	    lost_ns - sum->paused_ns <= sum->awake_ns / 4)
		s->own_ns = weft_max_ns(length_ns - rest_ns - unknown_ns, 0);
	if (breakdown->is_lower_bound) {
		/* At most the whole time on CPU of the round belongs to this run. */
		off_ns = covered_ns - weft_min_ns(counts->on_cpu_ns, covered_ns);
		rest_ns = weft_max_ns(off_ns - calls_ns, 0);
		if (rest_ns < length_ns / REPORTED_DIVISOR)
			return;
	}
	breakdown->is_known = true;
	breakdown->off_ns = off_ns + (breakdown->is_lower_bound ? 0 : unknown_ns);
	breakdown->voluntary_switches = blocks + sum->paused;
	breakdown->preemptions = counts->preemptions;
	if (!breakdown->is_lower_bound) {
		breakdown->minor_faults = counts->minor_faults;
		breakdown->major_faults = counts->major_faults;
	}
	if (counts->preemptions > 0 && blocks == 0)
		breakdown->waiting_ns = rest_ns;
	else if (counts->preemptions == 0 && blocks > 0)
		breakdown->blocked_ns += rest_ns;
}

/* Replaces the estimate by the kernel's records of each context switch, if the trace has them; the records are exact, also for
 * pauses.
 */
static void apply_exact(struct weft__stall *s, const struct weft_model *m)
{
	struct weft__cpu_breakdown *breakdown = &s->breakdown;
	struct weft_off_cpu_sum sum;
	if (!weft_kernel_sum(m, s->stream, s->start_ns, s->end_ns, &sum))
		return;
	breakdown->is_known = breakdown->is_exact = true;
	breakdown->is_lower_bound = false;
	breakdown->waiting_ns = sum.ready_ns + sum.preempted_ns;
	breakdown->blocked_ns = sum.blocked_ns;
	breakdown->off_ns = breakdown->waiting_ns + breakdown->blocked_ns;
	breakdown->voluntary_switches = sum.blocked;
	breakdown->preemptions = sum.preempted;
	breakdown->longest_sleep = sum.longest_blocked;
	breakdown->longest_preemption = sum.longest_preempted;
	breakdown->interrupts_ns = sum.interrupts_ns;
	breakdown->interrupts = sum.interrupts;
	breakdown->interrupt = sum.interrupt;
	breakdown->interrupt_ns = sum.interrupt_ns;
	breakdown->first_interrupt_ns = sum.first_interrupt_ns;
	/* The recorder's own count of page faults covers the whole round, and may be missing. */
	breakdown->minor_faults = sum.faults > breakdown->major_faults ? sum.faults - breakdown->major_faults : 0;
	breakdown->faulting_ns = sum.faulting_ns;
	for (unsigned call = 1; call < 256; call++)
		if (sum.call_ns[call] > breakdown->kernel_call_ns) {
			breakdown->kernel_call_ns = sum.call_ns[call];
			breakdown->kernel_call = (uint8_t)call;
		}
	if (breakdown->kernel_call)
		breakdown->wait_target = weft_kernel_wait_target(m, s->stream, s->start_ns, s->end_ns, breakdown->kernel_call);
	const struct weft_kernel *k = m->kernel;
	const uint32_t thread = weft_kernel_of_stream(m, s->stream);
	const struct weft_spent *longest;
	const int64_t gc_ns = weft_kernel_collected_ns(k, k->threads[thread].pid, s->start_ns, s->end_ns, &longest);
	if (gc_ns > breakdown->gc_ns) {
		breakdown->gc_ns = gc_ns;
		breakdown->gc_name = longest->name;
	}
	s->own_ns = s->end_ns - s->start_ns - breakdown->waiting_ns;
}

/* Returns the least time for which the thread was on CPU, as shown by its samples; -1 if unknown. weft record takes a sample
 * only if the thread has used a CPU for 1 ms since the sample before, a fifth of the usual time between two samples. */
static int64_t find_sampled_ns(const struct weft_model *m, const struct weft__stall *s)
{
	enum { MIN_SAMPLES = 5, SHARE = 5 };
	size_t count;
	(void)weft_model_samples(m, s->stream, s->start_ns, s->end_ns, &count);
	return count < MIN_SAMPLES ? -1 : (int64_t)count * (m->trace->profile.period_ns / SHARE);
}

bool weft__delays_add_cpu_breakdowns(struct weft__delays *d)
{
	const struct weft_model *m = d->link_index->model;
	struct sorted_times all = {0};
	bool ok = d->stalls.count == 0 || sort_times(&all, m);
	for (size_t i = 0; ok && i < d->stalls.count; i++) {
		struct weft__stall *s = &d->stalls.items[i];
		struct round_sum sum;
		s->own_ns = -1;
		s->breakdown = (struct weft__cpu_breakdown){.call = WEFT_NONE, .call_site = WEFT_NONE};
		if (!s->is_pause) {
			add_calls(s, &all, m);
			int64_t covered_ns = sum_rounds(&sum, s, &all);
			/* To sample a long run, weft record stops the thread, and each stop counts as a context switch. */
			(void)weft_model_samples(m, s->stream, s->start_ns, s->end_ns, &sum.sampled);
			if (m->trace->profile.way != WEFT_PROFILE_WAY_LONG)
				sum.sampled = 0;
			if (covered_ns >= (s->end_ns - s->start_ns) / 2)
				split_stall(s, &sum, covered_ns);
		}
		if (s->own_ns < 0 && !s->is_pause)
			s->own_ns = find_sampled_ns(m, s);
		apply_exact(s, m);
	}
	free(all.sleeps);
	free(all.pauses);
	free(all.round_sum);
	return ok;
}
