/* hang_thread.c: finds threads that sleep forever: a single thread that no other thread will wake, or all threads of a process.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/known_strings.h"

/* Returns whether the wait was recorded in an unmodified program: the place of the wait is recorded, or the place of the
 * awaited promise is in machine code. */
static bool is_unmodified(const struct weft_model *m, const struct weft__wait_edge *wait)
{
	const uint32_t site = m->promises[wait->to].site;
	return (site != WEFT_NONE && weft_site_is_machine_code(&m->trace->sites[site])) ||
	       (wait->link != WEFT_NONE && m->links[wait->link].site != WEFT_NONE);
}

const struct weft_interval *weft__hang_thread_sleep_at_end(const struct weft_model *m, uint16_t stream)
{
	for (size_t i = m->sleep_count; i-- > 0 && stream != UINT16_MAX;)
		if (m->sleeps[i].stream == stream)
			return m->sleeps[i].end_ns == weft_model_stream_until(m, stream) ? &m->sleeps[i] : NULL;
	return NULL;
}

/* ---- Single threads ---- */

/* Returns the last signal of a condition, if only threads have signalled it and all of these threads have ended, so that no
 * thread is left to signal it.  Otherwise WEFT_NONE. */
static uint32_t find_last_signal(const struct weft__finder *f, uint32_t condition)
{
	const struct weft_model *m = f->model;
	uint32_t last = WEFT_NONE;
	for (uint32_t i = f->link_index.in_begin[condition]; i < f->link_index.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		if (!weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_THREAD) ||
		    f->link_index.ended_ns[link->from] == WEFT_NEVER)
			return WEFT_NONE;
		last = f->link_index.in[i];
	}
	return last;
}

static void report_thread(
    struct weft__finder *f, uint32_t p, uint32_t condition, int64_t since_ns, const struct weft_link *signal)
{
	f->reported[p] = f->reported[condition] = true;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, p, signal->time_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *what = weft__format_promise(f, condition),
		   *by = weft__format_promise(f, signal->from);
	const char *early = weft__format_duration(f, since_ns - signal->time_ns);
	finding->root = condition;
	finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
	finding->weight = 1;
	finding->title = weft__finding_text(
	    f, "%s sleeps forever: %s was signalled %s before the wait%s", name, what, early, weft__format_site_suffix(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from, "%s%s signals %s for the last time", by,
	    weft__format_site_suffix(f, signal->from), what);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[signal->from], signal->from,
	    "%s ends; no other thread ever signalled %s", by, what);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, since_ns, p,
	    "%s starts to wait for this condition%s %s too late: lost wake-up", name,
	    weft__format_wait_place(f, p, condition, since_ns), early);
	finding->next = "check the condition before the wait, with the lock held, and again after each wake-up";
	weft__finding_doubt_part(f, p, true);
}

/* Returns whether a thread that sleeps forever at a condition is a fault.  A worker thread that sleeps forever at an empty
 * queue is no fault, because the program can end without its worker threads.  The sleep is a fault if a promise waits for the
 * thread, or if the program's own code records the condition. */
static bool is_missed(const struct weft__finder *f, uint32_t thread, const struct weft__wait_edge *wait)
{
	const struct weft_model *m = f->model;
	bool is_missed = !is_unmodified(m, wait);
	for (uint32_t i = f->link_index.in_begin[thread]; i < f->link_index.in_begin[thread + 1] && !is_missed; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		is_missed = link->kind == WEFT_LINK_AWAIT && f->link_index.ended_ns[link->from] == WEFT_NEVER &&
			    weft_model_await_end(m, link) == WEFT_NEVER;
	}
	return is_missed;
}

static void report_unreleased(struct weft__finder *f, uint32_t p, const struct weft__wait_edge *wait)
{
	f->reported[p] = f->reported[wait->to] = true;
	const int64_t since_ns = weft__wait_graph_since(&f->wait_graph, p, wait);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_HANG, p, since_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	finding->root = wait->to;
	finding->verdict = f->root_causes.verdict[wait->to];
	finding->weight = 1;
	weft__hang_add_chain(f, p);
	weft__hang_report_root(f, finding, weft__finding_text(f, "%s sleeps forever", weft__format_promise(f, p)));
	weft__finding_doubt_part(f, p, false);
}

static void find_single_threads(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->wait_graph.pending.count && weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || f->reported[p] ||
		    !weft__has_complete_history(f->completeness, m, p))
			continue;
		for (uint32_t k = f->wait_graph.begin[p]; k < f->wait_graph.begin[p + 1]; k++) {
			const struct weft__wait_edge *wait = &f->wait_graph.waits[k];
			if (f->root_causes.verdict[wait->to] == WEFT_VERDICT_NOT_RELEASED &&
			    weft_kind_has(m->promises[wait->to].kind, WEFT_TRAIT_LOCK) && !f->reported[wait->to]) {
				report_unreleased(f, p, wait);
				break;
			}
			uint32_t signal = weft_kind_has(m->promises[wait->to].kind, WEFT_TRAIT_CONDITION)
					      ? find_last_signal(f, wait->to)
					      : WEFT_NONE;
			int64_t since_ns = weft__wait_graph_since(&f->wait_graph, p, wait);
			if (signal == WEFT_NONE || m->links[signal].time_ns > since_ns || !is_missed(f, p, wait))
				continue;
			report_thread(f, p, wait->to, since_ns, &m->links[signal]);
			break;
		}
	}
}

/* ---- Whole processes ---- */

enum {
	WAKEUP_NS = 100000000, /* longest time between the signal to a thread and its next run */
	LONG_STALLS = 100      /* shortest sleep, in stall limits, if an awake thread may still signal the condition */
};

/* Signals of a condition or a semaphore: the number of signals since a time, and the last signal. */
struct signals {
	size_t since;
	uint32_t by; /* the promise that signalled last; WEFT_NONE if there was no signal */
	int64_t last_ns;
};

/* Returns the thread that signalled a condition before any thread waited for it: the creator of the condition's promise. */
static uint32_t find_first_signaller(const struct weft_model *m, uint32_t to)
{
	const uint32_t by = m->promises[to].created_by;
	return by != WEFT_SYSTEM && weft_kind_has(m->promises[to].kind, WEFT_TRAIT_CONDITION) ? by : WEFT_NONE;
}

static struct signals count_signals(const struct weft__finder *f, uint32_t to, int64_t since_ns)
{
	const struct weft_model *m = f->model;
	struct signals signals = {0, find_first_signaller(m, to), m->promises[to].start_ns};
	for (uint32_t i = f->link_index.in_begin[to]; i < f->link_index.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		signals.since += link->time_ns >= since_ns;
		signals.by = link->from;
		signals.last_ns = link->time_ns;
	}
	return signals;
}

/* A thread of a process, and its wait; the wait is NULL if the thread runs or if no other thread could end the wait.  The
 * waiter is the thread, or the work that the thread was running. */
struct sleeper {
	uint32_t thread, waiter;
	const struct weft__wait_edge *wait;
};

struct process {
	struct weft__finder *finder;
	struct sleeper *threads; /* threads of the process that have not ended */
	size_t count;
	uint32_t *of_stream; /* by stream: index of its thread in `threads`, or WEFT_NONE */
	size_t asleep;       /* number of threads that only other sleeping threads could wake */
};

static uint16_t get_stream(const struct weft_model *m, uint32_t thread)
{
	const uint32_t run = weft_run_before(m, thread, INT64_MAX);
	return run == WEFT_NONE || !m->run_streams ? UINT16_MAX : m->run_streams[run];
}

static int64_t get_last_run_end(const struct weft_model *m, uint32_t p)
{
	const uint32_t run = weft_run_before(m, p, INT64_MAX);
	return run == WEFT_NONE ? INT64_MIN : m->runs[run].end_ns;
}

/* Returns the number of waiters of `to` that were woken since a time. */
static size_t count_woken(const struct weft__finder *f, uint32_t to, int64_t since_ns)
{
	const struct weft_model *m = f->model;
	size_t woken = 0;
	for (uint32_t i = f->link_index.in_begin[to]; i < f->link_index.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		const int64_t over_ns = link->kind == WEFT_LINK_AWAIT ? weft_model_await_end(m, link) : WEFT_NEVER;
		woken += over_ns != WEFT_NEVER && over_ns >= since_ns;
	}
	return woken;
}

static const struct weft__wait_edge *find_sleep_wait(const struct weft__finder *f, uint32_t waiter)
{
	const struct weft_model *m = f->model;
	const uint16_t stream = get_stream(m, waiter);
	if (stream == UINT16_MAX || !f->idle_at_end[stream] || weft__wait_graph_count(&f->wait_graph, waiter) != 1)
		return NULL;
	const struct weft__wait_edge *wait = &f->wait_graph.waits[f->wait_graph.begin[waiter]];
	const uint16_t kind = m->promises[wait->to].kind;
	if (weft_kind_has(kind, WEFT_TRAIT_THREAD))
		return wait;
	if (!is_unmodified(m, wait))
		return NULL;
	if (kind == WEFT_KIND_WORK)
		return wait;
	if (!weft_kind_has(kind, WEFT_TRAIT_CONDITION | WEFT__TRAITS_HELD))
		return NULL;
	/* A waiter will take a lock that is free, so it is about to wake up. */
	if (weft_kind_has(kind, WEFT__TRAITS_HELD) && weft__wait_graph_count(&f->wait_graph, wait->to) == 0 &&
	    f->root_causes.verdict[wait->to] != WEFT_VERDICT_NOT_RELEASED)
		return NULL;
	const int64_t since_ns = weft__wait_graph_since(&f->wait_graph, waiter, wait);
	const struct signals signals = count_signals(f, wait->to, since_ns);
	/* The thread that was signalled last may not have run since. */
	return signals.since <= count_woken(f, wait->to, since_ns) || weft_model_until(m, waiter) - signals.last_ns >= WAKEUP_NS
		   ? wait
		   : NULL;
}

/* Makes the work that a thread was running the waiter instead of the thread. */
static void find_running_work(struct process *process, uint32_t part)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		if (m->promises[p].kind != WEFT_KIND_WORK || weft_part_of(m, p) != part)
			continue;
		const uint16_t stream = get_stream(m, p);
		const uint32_t index = stream < m->trace->stream_count ? process->of_stream[stream] : WEFT_NONE;
		struct sleeper *s = index == WEFT_NONE ? NULL : &process->threads[index];
		if (s && get_last_run_end(m, p) > get_last_run_end(m, s->waiter)) {
			s->waiter = p;
			s->wait = find_sleep_wait(f, p);
		}
	}
}

static bool gather_threads(struct process *process, uint32_t part)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	process->threads = weft__finding_alloc(f, f->wait_graph.pending.count + 1, sizeof *process->threads);
	process->of_stream = weft__finding_alloc(f, m->trace->stream_count + 1, sizeof *process->of_stream);
	if (f->no_memory)
		return false;
	memset(process->of_stream, 0xff, m->trace->stream_count * sizeof *process->of_stream); /* WEFT_NONE */
	for (size_t i = 0; i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || weft_part_of(m, p) != part)
			continue;
		const uint16_t stream = get_stream(m, p);
		if (stream < m->trace->stream_count)
			process->of_stream[stream] = (uint32_t)process->count;
		process->threads[process->count++] = (struct sleeper){p, p, find_sleep_wait(f, p)};
	}
	find_running_work(process, part);
	return process->count > 0;
}

/* Returns the thread that runs a promise, or that the promise represents, if that thread cannot continue; else NULL. */
static const struct sleeper *find_sleeper(const struct process *process, uint32_t p)
{
	const uint16_t stream = get_stream(process->finder->model, p);
	const uint32_t i = stream == UINT16_MAX ? WEFT_NONE : process->of_stream[stream];
	const struct sleeper *s = i == WEFT_NONE ? NULL : &process->threads[i];
	return s && (s->thread == p || s->waiter == p) && s->wait ? s : NULL;
}

static bool is_asleep(const struct process *process, uint32_t p)
{
	return find_sleeper(process, p) != NULL;
}

/* Returns whether the thread that had a stream at a time can continue. */
static bool is_awake(const struct process *process, uint16_t stream, int64_t time_ns)
{
	const struct weft_model *m = process->finder->model;
	const uint32_t i = stream < m->trace->stream_count ? process->of_stream[stream] : WEFT_NONE;
	return i != WEFT_NONE && !process->threads[i].wait && m->promises[process->threads[i].thread].start_ns <= time_ns;
}

/* Returns whether a thread that can continue may wake the sleeper, because it holds what the sleeper waits for or has signalled
 * it before.  With `all`, all threads of the process sleep. */
static bool may_be_woken(const struct process *process, const struct sleeper *s, bool all)
{
	const struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	const uint32_t to = s->wait->to;
	if (weft_kind_has(m->promises[to].kind, WEFT_TRAIT_THREAD))
		return !is_asleep(process, to);
	if (m->promises[to].kind == WEFT_KIND_WORK)
		return get_stream(m, to) == UINT16_MAX ? !all : !is_asleep(process, to);
	for (uint32_t k = f->wait_graph.begin[to]; k < f->wait_graph.begin[to + 1]; k++)
		if (!is_asleep(process, f->wait_graph.waits[k].to))
			return true;
	if (!weft_kind_has(m->promises[to].kind, WEFT_TRAIT_CONDITION) || all)
		return false;
	const uint32_t first = find_first_signaller(m, to);
	bool any = first != WEFT_NONE;
	if (any && is_awake(process, m->promises[first].stream, m->promises[to].start_ns))
		return true;
	for (uint32_t i = f->link_index.in_begin[to]; i < f->link_index.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		any = true;
		if (is_awake(process, link->stream, link->time_ns))
			return true;
	}
	return !any; /* no thread is known that might signal it */
}

/* Keeps only the threads that can be woken only by each other. */
static void drop_wakeable(struct process *process)
{
	bool changed = true;
	process->asleep = 0;
	for (size_t i = 0; i < process->count; i++)
		process->asleep += process->threads[i].wait != NULL;
	while (changed && process->asleep > 0 && weft__finding_may_continue(process->finder, 0, 1)) {
		const bool all = process->asleep == process->count;
		changed = false;
		for (size_t i = 0; i < process->count; i++) {
			struct sleeper *s = &process->threads[i];
			if (!s->wait || !may_be_woken(process, s, all))
				continue;
			s->wait = NULL;
			process->asleep--;
			changed = true;
		}
	}
}

/* Returns the length of the wait chain from p to its root. */
static uint32_t get_depth(const struct weft__finder *f, uint32_t p)
{
	uint32_t depth = 0;
	for (; f->root_causes.next[p] != WEFT_NONE; p = f->root_causes.next[p])
		depth++;
	return depth;
}

/* Returns the thread with the longest wait chain.  Returns WEFT_NONE if the program does not need these threads, or if their
 * cause is already reported.  Workers may sleep forever, but the first thread may not, because the program ends when it
 * ends. */
static uint32_t find_first_asleep(const struct process *process)
{
	const struct weft__finder *f = process->finder;
	uint32_t first = WEFT_NONE;
	bool has_main = false;
	for (size_t i = 0; i < process->count; i++) {
		const struct sleeper *s = &process->threads[i];
		const uint32_t p = s->waiter, by = f->model->promises[s->thread].created_by;
		if (!s->wait)
			continue;
		if (f->reported[p] || f->reported[f->root_causes.root[p]] || f->root_causes.verdict[p] == WEFT_VERDICT_CYCLE)
			return WEFT_NONE;
		has_main |= by == WEFT_SYSTEM || by == WEFT_NONE;
		if (first == WEFT_NONE || get_depth(f, p) > get_depth(f, first))
			first = p;
	}
	return has_main ? first : WEFT_NONE;
}

static void report_others(const struct process *process, uint32_t last)
{
	struct weft__finder *f = process->finder;
	size_t shown = 0;
	for (size_t i = 0; i < process->count; i++) {
		const struct sleeper *s = &process->threads[i];
		if (s->waiter == last || !s->wait)
			continue;
		const int64_t since_ns = weft__wait_graph_since(&f->wait_graph, s->waiter, s->wait);
		const char *at = weft__format_wait_place(f, s->waiter, s->wait->to, since_ns);
		f->reported[s->thread] = f->reported[s->waiter] = true;
		if (shown++ < WEFT__MAX_LINES)
			weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, since_ns, s->waiter, "%s%s waits for %s%s",
			    weft__format_promise(f, s->waiter), weft__format_site_suffix(f, s->waiter),
			    weft__format_promise(f, s->wait->to), *at ? at : weft__format_site_suffix(f, s->wait->to));
	}
	if (shown > WEFT__MAX_LINES)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, shown - WEFT__MAX_LINES, "");
}

static bool has_label(const struct weft_model *m, uint32_t p, const char *name)
{
	const uint32_t label = weft_first_label(m, p);
	const struct weft_str text = label == WEFT_NONE ? (struct weft_str){0} : weft_model_text(m, label);
	return text.len == strlen(name) && !memcmp(text.ptr, name, text.len);
}

/* Returns the thread to blame for an incomplete barrier: a thread that sleeps at a condition whose later signal woke another
 * thread, or else `last`. */
static uint32_t find_missing_thread(const struct process *process, uint32_t last, uint32_t barrier)
{
	const struct weft__finder *f = process->finder;
	for (size_t i = 0; i < process->count && has_label(f->model, barrier, "barrier"); i++) {
		const struct sleeper *s = &process->threads[i];
		if (s->wait && s->wait->to != barrier &&
		    weft_kind_has(f->model->promises[s->wait->to].kind, WEFT_TRAIT_CONDITION) &&
		    count_signals(f, s->wait->to, weft__wait_graph_since(&f->wait_graph, s->waiter, s->wait)).since > 0)
			return s->waiter;
	}
	return last;
}

/* Returns the number of threads that run work. */
static size_t count_workers(const struct process *process)
{
	size_t count = 0;
	for (size_t i = 0; i < process->count; i++)
		count += process->threads[i].waiter != process->threads[i].thread;
	return count;
}

static void report_process(const struct process *process, uint32_t first)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	const bool all = process->asleep == process->count;
	uint32_t last = first;
	while (f->root_causes.next[last] != WEFT_NONE && f->root_causes.next[f->root_causes.next[last]] != WEFT_NONE)
		last = f->root_causes.next[last];
	const struct sleeper *sleeper = find_sleeper(process, last);
	if (sleeper)
		sleeper = find_sleeper(process, find_missing_thread(process, sleeper->waiter, sleeper->wait->to));
	const struct weft__wait_edge *wait = sleeper ? sleeper->wait : NULL;
	last = sleeper ? sleeper->waiter : last;
	const int64_t since_ns = wait ? weft__wait_graph_since(&f->wait_graph, last, wait) : 0;
	if (!wait || (!all && weft_model_until(m, last) - since_ns < LONG_STALLS * f->options.stall_ns))
		return;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_HANG, last, since_ns, weft_model_until(m, last));
	if (!finding)
		return;
	const uint32_t root = wait->to;
	const struct signals signals = count_signals(f, root, since_ns);
	const char *name = weft__format_promise(f, last), *what = weft__format_promise(f, root),
		   *at = weft__format_site_suffix(f, root);
	finding->root = root;
	finding->weight = process->asleep;
	finding->verdict = WEFT_VERDICT_NEVER_TRIED;
	weft__hang_add_chain(f, f->root_causes.root[first] == root ? first : last);
	if (signals.by != WEFT_NONE && signals.since == 0) {
		const char *early = weft__format_duration(f, since_ns - signals.last_ns);
		finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
		finding->title =
		    weft__finding_text(f, "%s sleeps forever: %s was signalled %s before the wait%s", name, what, early, at);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signals.last_ns, signals.by, "%s%s signals %s for the last time",
		    weft__format_promise(f, signals.by), weft__format_site_suffix(f, signals.by), what);
		finding->next = "check the condition before the wait, with the lock held, and again after each wake-up";
	} else if (signals.since > 0) {
		finding->title = weft__finding_text(f, "%s sleeps forever at %s: %zu signal%s since then woke other threads%s",
		    name, what, signals.since, weft__format_plural_s(signals.since), at);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signals.last_ns, signals.by, "%s%s signals %s for the last time",
		    weft__format_promise(f, signals.by), weft__format_site_suffix(f, signals.by), what);
		finding->next =
		    weft__finding_text(f, "wake all waiters of %s (broadcast), or let each woken thread wake the next", what);
	} else if (m->promises[root].kind == WEFT_KIND_WORK && get_stream(m, root) == UINT16_MAX) {
		finding->title = weft__finding_text(
		    f, "%s never starts: all %zu threads that could run it wait%s", what, count_workers(process), at);
		finding->next =
		    weft__finding_text(f, "let no work wait for other work of its pool, or give %s a pool of its own", what);
	} else {
		finding->title = weft__finding_text(f, "%s sleeps forever at %s: no awake thread can wake it%s", name, what, at);
		finding->next = weft__finding_text(
		    f, "find the thread that should signal or reach %s, and the path through its code that does neither", what);
	}
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, since_ns, last, "%s starts to wait for %s%s%s", name, what,
	    weft__format_wait_place(f, last, root, since_ns),
	    signals.by != WEFT_NONE && signals.since == 0 ? " too late: lost wake-up" : "");
	report_others(process, last);
	if (process->asleep > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    all ? "all other threads of the process wait too" : "each thread that could wake it waits too");
	f->reported[last] = f->reported[root] = true;
	if (weft__finding_doubt_part(f, last, false))
		return;
	if (!all)
		weft__finding_doubt(f, "a thread that never signalled the condition may still signal it");
	else if (has_label(m, root, "semaphore"))
		weft__finding_doubt(f, "a signal handler may post the semaphore");
}

/* ---- Processes whose threads wait in calls without a recorded promise ---- */

/* Returns the sleep of a thread in a call of libc that only another thread of the process can end, such as that for a
 * read-write lock, whose holders are not recorded.  NULL: the thread is elsewhere. */
static const struct weft_interval *find_thread_call(const struct weft__finder *f, const struct sleeper *s)
{
	const struct weft_model *m = f->model;
	const struct weft_interval *sleep = weft__hang_thread_sleep_at_end(m, get_stream(m, s->thread));
	const uint32_t call = sleep ? weft_model_call(m, sleep) : WEFT_NONE;
	if (call == WEFT_NONE)
		return NULL;
	const struct weft_str name = weft_model_text(m, call);
	/* pthread_rwlock_timedrdlock() and the like end by themselves */
	return weft_text_starts_with(name, "pthread_") && !memmem(name.ptr, name.len, "timed", 5) &&
		       !memmem(name.ptr, name.len, "clock", 5)
		   ? sleep
		   : NULL;
}

/* Reports a process all of whose threads wait for each other, at least one of them in a call without a recorded promise. */
static void report_calls(struct process *process)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	const struct weft_interval *last = NULL;
	uint32_t thread = WEFT_NONE;
	int64_t asleep_ns = INT64_MIN; /* since when all threads sleep */
	for (size_t i = 0; i < process->count; i++) {
		const struct sleeper *s = &process->threads[i];
		const struct weft_interval *sleep = find_thread_call(f, s);
		/* A recording that began late may not know all threads. */
		if (!sleep || f->reported[s->thread] || f->reported[s->waiter] ||
		    m->promises[s->thread].flags & WEFT_PROMISE_START_UNKNOWN)
			return;
		asleep_ns = weft_max_ns(asleep_ns, sleep->start_ns);
		if (!s->wait && (!last || sleep->start_ns > last->start_ns)) {
			last = sleep;
			thread = s->thread;
		}
	}
	if (!last || weft_model_until(m, thread) - asleep_ns < WAKEUP_NS)
		return;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, thread, last->start_ns, weft_model_until(m, thread));
	if (!finding)
		return;
	const char *name = weft__format_promise(f, thread), *call = weft__format_text(f, weft_model_call(m, last)),
		   *place = weft__format_place(f, weft_model_place(m, last));
	const char *at = *place ? weft__finding_text(f, " (%s)", place + sizeof " at") : "";
	finding->weight = process->count;
	finding->title = weft__finding_text(f, "%s sleeps forever in %s: %s%s", name, call,
	    process->count == 1 ? "the process has no other thread" : "each other thread of the process waits too", at);
	finding->next = weft__finding_text(f, "find out which thread should end %s, and what it waits for%s", call, at);
	for (size_t i = 0; i < process->count && i < WEFT__MAX_LINES; i++) {
		const struct weft_interval *sleep = find_thread_call(f, &process->threads[i]);
		f->reported[process->threads[i].thread] = true;
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, sleep->start_ns, process->threads[i].thread,
		    "%s calls %s%s, which does not return before the end", weft__format_promise(f, process->threads[i].thread),
		    weft__format_text(f, weft_model_call(m, sleep)), weft__format_place(f, weft_model_place(m, sleep)));
	}
	weft__finding_doubt_part(f, thread, false);
}

/* Finds processes in which each thread waits for another thread, and no thread waits with a timeout or for I/O. */
static void find_whole_processes(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const uint32_t parts = m->trace->part_count ? m->trace->part_count : 1;
	for (uint32_t part = 0; part < parts && !m->is_whole && !f->no_memory; part++) {
		struct process process = {.finder = f};
		if (!f->completeness[part].lost && !f->completeness[part].absent && gather_threads(&process, part)) {
			drop_wakeable(&process);
			const uint32_t first = find_first_asleep(&process);
			if (first != WEFT_NONE)
				report_process(&process, first);
			else
				report_calls(&process);
		}
		free(process.threads);
		free(process.of_stream);
	}
}

/* ---- Answers ---- */

/* Returns the sleep in which a thread is at the end of the trace; NULL if it is awake or waits for a promise. */
static const struct weft_interval *find_last_sleep(const struct weft__finder *f, uint32_t thread, uint16_t stream)
{
	const struct weft_model *m = f->model;
	return weft__wait_graph_count(&f->wait_graph, thread) > 0 ? NULL : weft__hang_thread_sleep_at_end(m, stream);
}

/* Formats "calls waitpid at check_spelling (indexd.c:129)" for a sleep with a known source location. */
static const char *format_call(struct weft__finder *f, const struct weft_interval *sleep)
{
	const uint32_t call = weft_model_call(f->model, sleep);
	return weft__finding_text(f, "%s%s",
	    call == WEFT_NONE ? "starts a call" : weft__finding_text(f, "calls %s", weft__format_text(f, call)),
	    weft__format_place(f, weft_model_place(f->model, sleep)));
}

void weft__hang_thread_add_sleepers(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	size_t shown = 0;
	for (size_t i = 0; i < f->wait_graph.pending.count && shown < WEFT__MAX_LINES; i++) {
		const uint32_t thread = f->wait_graph.pending.items[i];
		if (!weft_kind_has(m->promises[thread].kind, WEFT_TRAIT_THREAD) || weft_part_of(m, thread) != weft_part_of(m, p))
			continue;
		const uint16_t stream = get_stream(m, thread);
		const struct weft_interval *sleep = stream == UINT16_MAX ? NULL : find_last_sleep(f, thread, stream);
		const uint32_t place =
		    sleep && sleep->start_ns >= m->promises[p].start_ns ? weft_model_place(m, sleep) : WEFT_NONE;
		if (place == WEFT_NONE)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, sleep->start_ns, thread, "%s %s, which has not returned",
		    weft__format_promise(f, thread), format_call(f, sleep));
	}
}

bool weft__hang_thread_report_work(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t root = finding->root;
	const uint16_t stream = m->promises[root].kind == WEFT_KIND_WORK ? get_stream(m, root) : UINT16_MAX;
	const struct weft_interval *sleep = weft__hang_thread_sleep_at_end(m, stream);
	if (!sleep || weft_model_call(m, sleep) == WEFT_NONE)
		return false;
	const char *call = weft__format_text(f, weft_model_call(m, sleep)),
		   *place = weft__format_place(f, weft_model_place(m, sleep)), *at = weft__format_site_suffix(f, root);
	at = *place ? weft__finding_text(f, " (%s)", place + sizeof " at") : at;
	finding->title = weft__finding_text(
	    f, "%s: it has been in %s for %s%s", what, call, weft__format_duration(f, sleep->end_ns - sleep->start_ns), at);
	finding->next = weft__finding_text(f, "find out what should end the call, or set a timeout%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, sleep->start_ns, root, "%s %s, which has not returned",
	    weft__format_promise(f, root), format_call(f, sleep));
	return true;
}

bool weft__hang_thread_report(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t p = f->link_index.final[finding->promise], root = finding->root, next = f->root_causes.next[p];
	const uint16_t stream = get_stream(m, p);
	if (finding->kind != WEFT_FINDING_ANSWER || !weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD))
		return false;
	const struct weft_interval *sleep = weft__hang_thread_sleep_at_end(m, stream);
	const int64_t since_ns = sleep ? sleep->start_ns : WEFT_NEVER;
	const char *slept = since_ns == WEFT_NEVER ? "it waits"
						   : weft__finding_text(f, "it has slept for %s",
							 weft__format_duration(f, weft_model_stream_until(m, stream) - since_ns)),
		   *name = weft__format_promise(f, root), *at = weft__format_site_suffix(f, root);
	const bool is_awake = since_ns == WEFT_NEVER && stream != UINT16_MAX && !f->idle_at_end[stream];
	if (is_awake || (root == p && since_ns == WEFT_NEVER)) {
		finding->title = weft__finding_text(
		    f, "%s: %s", what, is_awake ? "it was awake when the trace ended" : "the trace does not record what it does");
		finding->next = "record with weft record --kernel, which shows when the kernel ran the thread";
	} else if (root == p) {
		finding->title = weft__finding_text(f, "%s: %s, and the trace does not record why", what, slept);
		finding->next = "record with weft record --kernel, which shows the system call in which the thread sleeps, "
				"unless it is an idle thread of a pool";
	} else {
		const char *in = next == root || !weft_kind_has(m->promises[next].kind, WEFT_TRAIT_LOOP)
				     ? ""
				     : weft__finding_text(f, " in %s", weft__format_promise_id(f, next));
		finding->title = weft__finding_text(f, "%s: %s%s for %s%s", what, slept, in, name, at);
		finding->next = weft__finding_text(
		    f, "find the code that should have resolved or signalled %s, unless the thread had nothing to do", name);
	}
	return true;
}

void weft__hang_thread_find(struct weft__finder *f)
{
	if (!weft__promise_types_have(&f->types, WEFT_KIND_THREAD))
		return;
	find_whole_processes(f);
	find_single_threads(f);
}
