/* parts.c: of a long run, how long its OS thread had a processor, waited for one, or was blocked.
 *
 * The recorder asked the kernel at both ends of a stretch that the run is most of.  How long an OS thread waited for a processor
 * the kernel tells only through a descriptor, which a recorder does not have.  It follows from the rest: who did not give the
 * processor up by itself waited for it whenever it had none.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/delays.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/words.h"

/* A shorter sleep may be none: what it waits for was there already. */
#define SWITCH_NS 10000
/* Who else ran in the stretch that the kernel was asked about, as a part of the run, or for so long, does not make much of a
 * difference. */
#define OTHERS_PART 16
#define OTHERS_NS 1200000
/* Less of a run than that is let go. */
#define LITTLE_PART 200
/* Where others made a difference, what is known at least is told from that part of the run on. */
#define TOLD_PART 8
/* Who is preempted so many times as often as it blocks loses its time by that: a sleep may be two. */
#define PREEMPTED_MORE 8

/* A stretch that the kernel was asked about, and what the trace says of it. */
struct asked {
	struct weft_round round;
	int64_t awake_ns, paused_ns;
	uint64_t slept, paused; /* how often */
};

/* Stretches, or what is asked of them, by OS thread and time. */
struct sorted {
	struct weft_stretch *sleeps, *pauses;
	size_t sleep_count, pause_count;
	struct asked *asked;
	size_t asked_count;
};

static int compare_stretches(const void *a, const void *b)
{
	const struct weft_stretch *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?:
	       WEFT_ORDER(x->text, y->text);
}

static int compare_asked(const void *a, const void *b)
{
	const struct weft_round *x = &((const struct asked *)a)->round, *y = &((const struct asked *)b)->round;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?:
	       WEFT_ORDER(x->had_ns, y->had_ns) ?: WEFT_ORDER(x->given, y->given) ?: WEFT_ORDER(x->taken, y->taken) ?:
	       WEFT_ORDER(x->minor, y->minor) ?: WEFT_ORDER(x->major, y->major);
}

static struct weft_stretch *sorted_stretches(const struct weft_stretch *from, size_t count)
{
	struct weft_stretch *out = malloc((count + 1) * sizeof *out);
	if (out && count > 0)
		memcpy(out, from, count * sizeof *out);
	if (out)
		weft_sort(out, count, sizeof *out, compare_stretches);
	return out;
}

/* How long of from_ns to to_ns an OS thread spent in stretches of its own, one behind the other; *at is the first that does not
 * end before.  Counts those that ended there and were no shorter than least_ns. */
static int64_t spent_ns(
    const struct weft_stretch *stretches, size_t count, size_t *at, const struct weft_round *r, int64_t least_ns, uint64_t *times)
{
	int64_t sum_ns = 0;
	*times = 0;
	while (*at < count && (stretches[*at].stream < r->stream ||
				  (stretches[*at].stream == r->stream && stretches[*at].end_ns <= r->start_ns)))
		++*at;
	for (; *at < count && stretches[*at].stream == r->stream && stretches[*at].start_ns < r->end_ns; ++*at) {
		const struct weft_stretch *s = &stretches[*at];
		sum_ns += weft_min_ns(s->end_ns, r->end_ns) - weft_max_ns(s->start_ns, r->start_ns);
		if (s->end_ns > r->end_ns)
			break; /* it goes on in the next */
		*times += s->end_ns - s->start_ns >= least_ns;
	}
	return weft_max_ns(sum_ns, 0);
}

static bool sort_all(struct sorted *all, const struct weft_model *m)
{
	*all = (struct sorted){.sleep_count = m->sleep_count, .pause_count = m->pause_count, .asked_count = m->round_count};
	all->sleeps = sorted_stretches(m->sleeps, m->sleep_count);
	all->pauses = sorted_stretches(m->pauses, m->pause_count);
	all->asked = malloc((m->round_count + 1) * sizeof *all->asked);
	if (!all->sleeps || !all->pauses || !all->asked)
		return false;
	for (size_t i = 0; i < m->round_count; i++)
		all->asked[i] = (struct asked){.round = m->rounds[i]};
	weft_sort(all->asked, all->asked_count, sizeof *all->asked, compare_asked);
	size_t sleep = 0, pause = 0;
	for (size_t i = 0; i < all->asked_count; i++) {
		struct asked *a = &all->asked[i];
		struct weft_round *r = &a->round;
		/* One begins where the one before ends, whatever a damaged trace says. */
		if (i > 0 && r[0].stream == a[-1].round.stream)
			r->start_ns = weft_max_ns(r->start_ns, a[-1].round.end_ns);
		int64_t slept_ns = spent_ns(all->sleeps, all->sleep_count, &sleep, r, SWITCH_NS, &a->slept);
		a->paused_ns = spent_ns(all->pauses, all->pause_count, &pause, r, SWITCH_NS, &a->paused);
		a->awake_ns = weft_max_ns(r->end_ns - r->start_ns - slept_ns, 0);
	}
	return true;
}

/* Whether that is how programs tell of their collector: "gc", "gc, minor", "garbage collection". */
bool weft__is_collector(struct weft_str text)
{
	return weft_text_means(text, WEFT_MEANS_COLLECTOR);
}

/* The call in which the OS thread was blocked for longest during the stall, and how long it was in all. */
static void add_calls(struct weft__stall *s, const struct sorted *all, const struct weft_model *m)
{
	struct weft__parts *parts = &s->parts;
	size_t i = WEFT_FIRST(k, 0, all->pause_count,
	    all->pauses[k].stream > s->stream || (all->pauses[k].stream == s->stream && all->pauses[k].start_ns >= s->start_ns));
	int64_t longest_ns = 0;
	for (; i < all->pause_count && all->pauses[i].stream == s->stream && all->pauses[i].start_ns < s->end_ns; i++) {
		const struct weft_stretch *pause = &all->pauses[i];
		int64_t ns = weft_min_ns(pause->end_ns, s->end_ns) - pause->start_ns;
		if (weft__is_collector(weft_model_text(m, pause->text))) {
			parts->collected_ns += ns;
			continue;
		}
		parts->called_ns += ns;
		parts->calls++;
		if (ns > longest_ns) {
			longest_ns = ns;
			parts->call = pause->text;
		}
	}
	parts->blocked_ns = parts->called_ns = weft_min_ns(parts->called_ns, s->end_ns - s->start_ns);
}

/* What the kernel said of all stretches that the stall is in, and how long it was in them.  Of one that a stall reaches into by a
 * little only, since it was asked about a moment before what runs next is told, nothing is the stall's. */
static int64_t ask_about(struct asked *sum, const struct weft__stall *s, const struct sorted *all)
{
	size_t i = WEFT_FIRST(k, 0, all->asked_count,
	    all->asked[k].round.stream > s->stream ||
		(all->asked[k].round.stream == s->stream && all->asked[k].round.end_ns > s->start_ns));
	int64_t covered_ns = 0;
	*sum = (struct asked){0};
	for (; i < all->asked_count && all->asked[i].round.stream == s->stream && all->asked[i].round.start_ns < s->end_ns; i++) {
		const struct asked *a = &all->asked[i];
		const int64_t ns = weft_min_ns(a->round.end_ns, s->end_ns) - weft_max_ns(a->round.start_ns, s->start_ns);
		if (ns < (s->end_ns - s->start_ns) / LITTLE_PART)
			continue;
		covered_ns += ns;
		sum->awake_ns += a->awake_ns;
		sum->paused_ns += a->paused_ns;
		sum->slept += a->slept;
		sum->paused += a->paused;
		sum->round.had_ns += a->round.had_ns;
		sum->round.given += a->round.given;
		sum->round.taken += a->round.taken;
		sum->round.minor += a->round.minor;
		sum->round.major += a->round.major;
	}
	return covered_ns;
}

/* Splits the run.  What it lost is what the whole stretch lost at most.  Of what is not in the stretch, since it was preempted
 * right before or behind it, nobody knows anything. */
static void split(struct weft__stall *s, const struct asked *sum, int64_t covered_ns)
{
	struct weft__parts *parts = &s->parts;
	const struct weft_round *said = &sum->round;
	const int64_t length_ns = s->end_ns - s->start_ns, lost_ns = weft_max_ns(sum->awake_ns - said->had_ns, 0);
	const int64_t called_ns = parts->called_ns, others_ns = sum->awake_ns - covered_ns, unasked_ns = length_ns - covered_ns;
	int64_t off_ns = weft_max_ns(weft_min_ns(lost_ns, covered_ns), weft_min_ns(called_ns, covered_ns));
	int64_t rest_ns = weft_max_ns(off_ns - called_ns, 0);
	const uint64_t known = sum->slept + sum->paused, blocks = said->given > known ? said->given - known : 0;
	/* The machine's share is taken off where it is nearly sure, or small. */
	if ((said->taken > 0 && blocks <= said->taken / PREEMPTED_MORE) || lost_ns - sum->paused_ns <= sum->awake_ns / 4)
		s->own_ns = weft_max_ns(length_ns - rest_ns - unasked_ns, 0);
	parts->is_least = others_ns > weft_max_ns(length_ns / OTHERS_PART, OTHERS_NS);
	if (parts->is_least) {
		/* All of the processor's time may have been this run's, but not more. */
		off_ns = covered_ns - weft_min_ns(said->had_ns, covered_ns);
		rest_ns = weft_max_ns(off_ns - called_ns, 0);
		if (rest_ns < length_ns / TOLD_PART)
			return;
	}
	parts->is_known = true;
	parts->off_ns = off_ns + (parts->is_least ? 0 : unasked_ns);
	parts->given = blocks + sum->paused;
	parts->taken = said->taken;
	if (!parts->is_least) {
		parts->minor = said->minor;
		parts->major = said->major;
	}
	if (said->taken > 0 && blocks == 0)
		parts->waiting_ns = rest_ns;
	else if (said->taken == 0 && blocks > 0)
		parts->blocked_ns += rest_ns;
}

/* What the kernel said of each switch is exact, and told of pauses, too. */
static void take_exact(struct weft__stall *s, const struct weft_model *m)
{
	struct weft__parts *parts = &s->parts;
	struct weft_off_sum sum;
	if (!weft_kernel_sum(m, s->stream, s->start_ns, s->end_ns, &sum))
		return;
	parts->is_known = parts->is_exact = true;
	parts->is_least = false;
	parts->waiting_ns = sum.ready_ns + sum.preempted_ns;
	parts->blocked_ns = sum.blocked_ns;
	parts->off_ns = parts->waiting_ns + parts->blocked_ns;
	parts->given = sum.blocked;
	parts->taken = sum.preempted;
	parts->slept = sum.longest_blocked;
	parts->preempted = sum.longest_preempted;
	parts->interrupts_ns = sum.interrupts_ns;
	parts->interrupts = sum.interrupts;
	parts->interrupt = sum.interrupt;
	parts->interrupt_ns = sum.interrupt_ns;
	parts->first_interrupt_ns = sum.first_interrupt_ns;
	/* The recorder's own count is of all of a round, and may be missing. */
	parts->minor = sum.faults > parts->major ? sum.faults - parts->major : 0;
	parts->faulting_ns = sum.faulting_ns;
	for (unsigned call = 1; call < 256; call++)
		if (sum.call_ns[call] > parts->kernel_call_ns) {
			parts->kernel_call_ns = sum.call_ns[call];
			parts->kernel_call = (uint8_t)call;
		}
	if (parts->kernel_call)
		parts->waited = weft_kernel_waited(m, s->stream, s->start_ns, s->end_ns, parts->kernel_call);
	const struct weft_kernel *k = m->kernel;
	const uint32_t thread = weft_kernel_of_stream(m, s->stream);
	const struct weft_spent *longest;
	const int64_t collected_ns = weft_kernel_collected_ns(k, k->threads[thread].pid, s->start_ns, s->end_ns, &longest);
	if (collected_ns > parts->collected_ns) {
		parts->collected_ns = collected_ns;
		parts->collector = longest->name;
	}
	s->own_ns = s->end_ns - s->start_ns - parts->waiting_ns;
}

bool weft__delays_split(struct weft__delays *d)
{
	const struct weft_model *m = d->ties->model;
	struct sorted all = {0};
	bool ok = d->stalls.count == 0 || sort_all(&all, m);
	for (size_t i = 0; ok && i < d->stalls.count; i++) {
		struct weft__stall *s = &d->stalls.items[i];
		struct asked sum;
		s->own_ns = -1;
		s->parts = (struct weft__parts){.call = WEFT_NONE};
		if (!s->is_pause) {
			add_calls(s, &all, m);
			int64_t covered_ns = ask_about(&sum, s, &all);
			if (covered_ns >= (s->end_ns - s->start_ns) / 2)
				split(s, &sum, covered_ns);
		}
		take_exact(s, m);
	}
	free(all.sleeps);
	free(all.pauses);
	free(all.asked);
	return ok;
}
