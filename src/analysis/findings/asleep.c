/* asleep.c: OS threads that sleep for ever: one, whom nobody will wake, or all of a process.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"

/* Whether it was recorded of an unmodified program. */
static bool is_place(const struct weft_model *m, uint32_t p)
{
	const uint32_t site = m->promises[p].site;
	return site != WEFT_NONE && weft_site_is_place(&m->trace->sites[site]);
}

/* ---- One of them ---- */

/* The last signal of a condition, if OS threads alone have signalled it and all of these have ended: nobody is left who could;
 * WEFT_NONE: it is not so. */
static uint32_t last_signal(const struct weft__finder *f, uint32_t condition)
{
	const struct weft_model *m = f->model;
	uint32_t last = WEFT_NONE;
	for (uint32_t i = f->ties.in_begin[condition]; i < f->ties.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		if (!weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_THREAD) || f->ties.ended_ns[link->from] == WEFT_NEVER)
			return WEFT_NONE;
		last = f->ties.in[i];
	}
	return last;
}

static void tell_thread(struct weft__finder *f, uint32_t p, uint32_t condition, int64_t since_ns, const struct weft_link *signal)
{
	f->told[p] = f->told[condition] = true;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, p, signal->time_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *what = weft__words_name(f, condition),
		   *by = weft__words_name(f, signal->from);
	const char *early = weft__words_span(f, since_ns - signal->time_ns);
	finding->root = condition;
	finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
	finding->weight = 1;
	finding->title = weft__finding_text(f,
	    "%s%s sleeps for ever: lost wake-up, %s was last signalled %s before it began to wait for it, by %s, which has ended",
	    name, weft__words_at(f, p), what, early, by);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from, "%s%s signals %s for the last time", by,
	    weft__words_at(f, signal->from), what);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[signal->from], signal->from,
	    "%s ends: nobody else ever signalled %s", by, what);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, since_ns, p, "%s begins to wait for it: %s too late", name, early);
	finding->next = "check what the condition tells of before waiting, with the lock held, and again after each wake-up";
	weft__finding_doubt_part(f, p, true);
}

/* An OS thread that works off a queue sleeps at a condition for ever, where its program ends without it: that is a fault only
 * where somebody waits for its end.  What the program tells itself is meant. */
static bool is_missed(const struct weft__finder *f, uint32_t thread, uint32_t condition)
{
	const struct weft_model *m = f->model;
	bool is_missed = !is_place(m, condition);
	for (uint32_t i = f->ties.in_begin[thread]; i < f->ties.in_begin[thread + 1] && !is_missed; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		is_missed = link->kind == WEFT_LINK_AWAIT && f->ties.ended_ns[link->from] == WEFT_NEVER &&
			    weft_model_await_end(m, link) == WEFT_NEVER;
	}
	return is_missed;
}

static void tell_unreleased(struct weft__finder *f, uint32_t p, const struct weft__wait *wait)
{
	f->told[p] = f->told[wait->to] = true;
	const int64_t since_ns = weft__waiting_since(&f->waiting, p, wait);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_HANG, p, since_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	finding->root = wait->to;
	finding->verdict = f->chains.verdict[wait->to];
	finding->weight = 1;
	weft__hang_chain(f, p);
	weft__hang_root(f, finding, weft__finding_text(f, "%s%s sleeps for ever", weft__words_name(f, p), weft__words_at(f, p)));
	weft__finding_doubt_part(f, p, false);
}

static void find_one(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->waiting.pending.count && weft__finding_goes_on(f, i, f->waiting.pending.count); i++) {
		uint32_t p = f->waiting.pending.items[i];
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || f->told[p] ||
		    !weft__lacks_nothing_of(f->lacks, m, p))
			continue;
		for (uint32_t k = f->waiting.begin[p]; k < f->waiting.begin[p + 1]; k++) {
			const struct weft__wait *wait = &f->waiting.waits[k];
			if (f->chains.verdict[wait->to] == WEFT_VERDICT_NOT_RELEASED &&
			    weft_kind_has(m->promises[wait->to].kind, WEFT_TRAIT_LOCK) && !f->told[wait->to]) {
				tell_unreleased(f, p, wait);
				break;
			}
			uint32_t signal = weft_kind_has(m->promises[wait->to].kind, WEFT_TRAIT_CONDITION)
					      ? last_signal(f, wait->to)
					      : WEFT_NONE;
			int64_t since_ns = weft__waiting_since(&f->waiting, p, wait);
			if (signal == WEFT_NONE || m->links[signal].time_ns > since_ns || !is_missed(f, p, wait->to))
				continue;
			tell_thread(f, p, wait->to, since_ns, &m->links[signal]);
			break;
		}
	}
}

/* ---- All of them ---- */

enum { SOON_NS = 100000000 }; /* who was signalled may take so long to run */

/* Signals of a condition, or a semaphore: how many since a time, and the last one. */
struct signals {
	size_t since;
	uint32_t by; /* WEFT_NONE: there was none */
	int64_t last_ns;
};

/* Who signalled it before anybody waited has created it so. */
static uint32_t first_signaller(const struct weft_model *m, uint32_t to)
{
	const uint32_t by = m->promises[to].created_by;
	return by != WEFT_SYSTEM && weft_kind_has(m->promises[to].kind, WEFT_TRAIT_CONDITION) ? by : WEFT_NONE;
}

static struct signals signals_of(const struct weft__finder *f, uint32_t to, int64_t since_ns)
{
	const struct weft_model *m = f->model;
	struct signals signals = {0, first_signaller(m, to), m->promises[to].start_ns};
	for (uint32_t i = f->ties.in_begin[to]; i < f->ties.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		signals.since += link->time_ns >= since_ns;
		signals.by = link->from;
		signals.last_ns = link->time_ns;
	}
	return signals;
}

/* An OS thread of a process, and what it waits for; NULL: it runs, or waits for nothing that another one would end. */
struct sleeper {
	uint32_t thread;
	const struct weft__wait *wait;
};

struct process {
	struct weft__finder *finder;
	struct sleeper *threads; /* those that have not ended */
	size_t count;
	uint32_t *of_stream; /* which of them it is, or WEFT_NONE */
	size_t asleep;       /* how many wait for each other alone */
};

static uint16_t stream_of(const struct weft_model *m, uint32_t thread)
{
	const uint32_t run = weft_run_before(m, thread, INT64_MAX);
	return run == WEFT_NONE || !m->run_streams ? UINT16_MAX : m->run_streams[run];
}

/* How many that waited for it were woken from a time on. */
static size_t count_woken(const struct weft__finder *f, uint32_t to, int64_t since_ns)
{
	const struct weft_model *m = f->model;
	size_t woken = 0;
	for (uint32_t i = f->ties.in_begin[to]; i < f->ties.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		const int64_t over_ns = link->kind == WEFT_LINK_AWAIT ? weft_model_await_end(m, link) : WEFT_NEVER;
		woken += over_ns != WEFT_NEVER && over_ns >= since_ns;
	}
	return woken;
}

static const struct weft__wait *sleeps_at(const struct weft__finder *f, uint32_t thread)
{
	const struct weft_model *m = f->model;
	const uint16_t stream = stream_of(m, thread);
	if (stream == UINT16_MAX || !f->at_rest[stream] || weft__waiting_count(&f->waiting, thread) != 1)
		return NULL;
	const struct weft__wait *wait = &f->waiting.waits[f->waiting.begin[thread]];
	const uint16_t kind = m->promises[wait->to].kind;
	if (weft_kind_has(kind, WEFT_TRAIT_THREAD))
		return wait;
	if (!weft_kind_has(kind, WEFT_TRAIT_CONDITION | WEFT__TRAITS_HELD) || !is_place(m, wait->to))
		return NULL;
	/* A lock that nobody has is about to be taken. */
	if (weft_kind_has(kind, WEFT__TRAITS_HELD) && weft__waiting_count(&f->waiting, wait->to) == 0 &&
	    f->chains.verdict[wait->to] != WEFT_VERDICT_NOT_RELEASED)
		return NULL;
	const int64_t since_ns = weft__waiting_since(&f->waiting, thread, wait);
	const struct signals signals = signals_of(f, wait->to, since_ns);
	/* Who was signalled last may not have run since. */
	return signals.since <= count_woken(f, wait->to, since_ns) || weft_model_until(m, thread) - signals.last_ns >= SOON_NS
		   ? wait
		   : NULL;
}

static bool gather(struct process *process, uint32_t part)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	process->threads = weft__finding_alloc(f, f->waiting.pending.count + 1, sizeof *process->threads);
	process->of_stream = weft__finding_alloc(f, m->trace->stream_count + 1, sizeof *process->of_stream);
	if (f->no_memory)
		return false;
	memset(process->of_stream, 0xff, m->trace->stream_count * sizeof *process->of_stream); /* WEFT_NONE */
	for (size_t i = 0; i < f->waiting.pending.count; i++) {
		const uint32_t p = f->waiting.pending.items[i];
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || weft_part_of(m, p) != part)
			continue;
		const uint16_t stream = stream_of(m, p);
		if (stream < m->trace->stream_count)
			process->of_stream[stream] = (uint32_t)process->count;
		process->threads[process->count++] = (struct sleeper){p, sleeps_at(f, p)};
	}
	return process->count > 0;
}

/* Whether that one is among those that cannot go on. */
static bool is_asleep(const struct process *process, uint32_t thread)
{
	const uint16_t stream = stream_of(process->finder->model, thread);
	const uint32_t i = stream == UINT16_MAX ? WEFT_NONE : process->of_stream[stream];
	return i != WEFT_NONE && process->threads[i].thread == thread && process->threads[i].wait;
}

/* Whether the OS thread that had a stream at a time goes on. */
static bool is_awake(const struct process *process, uint16_t stream, int64_t time_ns)
{
	const struct weft_model *m = process->finder->model;
	const uint32_t i = stream < m->trace->stream_count ? process->of_stream[stream] : WEFT_NONE;
	return i != WEFT_NONE && !process->threads[i].wait && m->promises[process->threads[i].thread].start_ns <= time_ns;
}

/* Whether somebody may wake it: who has what it waits for, or has signalled that before.  `all`: all of the process sleep. */
static bool may_be_woken(const struct process *process, const struct sleeper *s, bool all)
{
	const struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	const uint32_t to = s->wait->to;
	if (weft_kind_has(m->promises[to].kind, WEFT_TRAIT_THREAD))
		return !is_asleep(process, to);
	for (uint32_t k = f->waiting.begin[to]; k < f->waiting.begin[to + 1]; k++)
		if (!is_asleep(process, f->waiting.waits[k].to))
			return true;
	if (!weft_kind_has(m->promises[to].kind, WEFT_TRAIT_CONDITION) || all)
		return false;
	const uint32_t first = first_signaller(m, to);
	bool any = first != WEFT_NONE;
	if (any && is_awake(process, m->promises[first].stream, m->promises[to].start_ns))
		return true;
	for (uint32_t i = f->ties.in_begin[to]; i < f->ties.in_begin[to + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_SIGNAL)
			continue;
		any = true;
		if (is_awake(process, link->stream, link->time_ns))
			return true;
	}
	return !any; /* who might signal it is not known */
}

/* Leaves those that wait for each other alone. */
static void settle(struct process *process)
{
	bool changed = true;
	process->asleep = 0;
	for (size_t i = 0; i < process->count; i++)
		process->asleep += process->threads[i].wait != NULL;
	while (changed && process->asleep > 0 && weft__finding_goes_on(process->finder, 0, 1)) {
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

/* How many wait for the next one, down to the root. */
static uint32_t depth_of(const struct weft__finder *f, uint32_t p)
{
	uint32_t depth = 0;
	for (; f->chains.next[p] != WEFT_NONE; p = f->chains.next[p])
		depth++;
	return depth;
}

/* The OS thread from which the most wait in a row; WEFT_NONE: the program does not need them, or the reason was told of.  Those
 * that work something off may sleep for ever; the first one, which the program ends with, may not. */
static uint32_t first_asleep(const struct process *process)
{
	const struct weft__finder *f = process->finder;
	uint32_t first = WEFT_NONE;
	bool has_main = false;
	for (size_t i = 0; i < process->count; i++) {
		const struct sleeper *s = &process->threads[i];
		const uint32_t p = s->thread, by = f->model->promises[p].created_by;
		if (!s->wait)
			continue;
		if (f->told[p] || f->told[f->chains.root[p]] || f->chains.verdict[p] == WEFT_VERDICT_CYCLE)
			return WEFT_NONE;
		has_main |= by == WEFT_SYSTEM || by == WEFT_NONE;
		if (first == WEFT_NONE || depth_of(f, p) > depth_of(f, first))
			first = p;
	}
	return has_main ? first : WEFT_NONE;
}

static void tell_others(const struct process *process, uint32_t last)
{
	struct weft__finder *f = process->finder;
	size_t shown = 0;
	for (size_t i = 0; i < process->count; i++) {
		const struct sleeper *s = &process->threads[i];
		if (s->thread == last || !s->wait)
			continue;
		f->told[s->thread] = true;
		if (shown++ < WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, weft__waiting_since(&f->waiting, s->thread, s->wait),
			    s->thread, "%s%s waits for %s%s", weft__words_name(f, s->thread), weft__words_at(f, s->thread),
			    weft__words_name(f, s->wait->to), weft__words_at(f, s->wait->to));
	}
	if (shown > WEFT__LINES_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, shown - WEFT__LINES_KEPT, "");
}

static bool is_called(const struct weft_model *m, uint32_t p, const char *name)
{
	const uint32_t label = weft_first_label(m, p);
	const struct weft_str text = label == WEFT_NONE ? (struct weft_str){0} : weft_model_text(m, label);
	return text.len == strlen(name) && !memcmp(text.ptr, name, text.len);
}

/* Who does not come to a barrier is to blame: one whose signal went to another, if there is any. */
static uint32_t who_is_missing(const struct process *process, uint32_t last, uint32_t barrier)
{
	const struct weft__finder *f = process->finder;
	for (size_t i = 0; i < process->count && is_called(f->model, barrier, "barrier"); i++) {
		const struct sleeper *s = &process->threads[i];
		if (s->wait && s->wait->to != barrier &&
		    weft_kind_has(f->model->promises[s->wait->to].kind, WEFT_TRAIT_CONDITION) &&
		    signals_of(f, s->wait->to, weft__waiting_since(&f->waiting, s->thread, s->wait)).since > 0)
			return s->thread;
	}
	return last;
}

static void tell_all(const struct process *process, uint32_t first)
{
	struct weft__finder *f = process->finder;
	const struct weft_model *m = f->model;
	const bool all = process->asleep == process->count;
	uint32_t last = first;
	while (f->chains.next[last] != WEFT_NONE && f->chains.next[f->chains.next[last]] != WEFT_NONE)
		last = f->chains.next[last];
	if (is_asleep(process, last))
		last = who_is_missing(process, last, sleeps_at(f, last)->to);
	const struct weft__wait *wait = is_asleep(process, last) ? sleeps_at(f, last) : NULL;
	struct weft_finding *finding = wait ? weft__finding_begin(f, WEFT_FINDING_HANG, last,
						  weft__waiting_since(&f->waiting, last, wait), weft_model_until(m, last))
					    : NULL;
	if (!finding)
		return;
	const uint32_t root = wait->to;
	const int64_t since_ns = weft__waiting_since(&f->waiting, last, wait);
	const struct signals signals = signals_of(f, root, since_ns);
	const char *name = weft__words_name(f, last), *at = weft__words_at(f, last), *what = weft__words_name(f, root),
		   *what_at = weft__words_at(f, root),
		   *others = process->asleep == 1 ? ""
			     : all                ? "; all other OS threads wait, too"
						  : "; who could wake it waits, too";
	finding->root = root;
	finding->weight = process->asleep;
	finding->verdict = WEFT_VERDICT_NEVER_TRIED;
	weft__hang_chain(f, f->chains.root[first] == root ? first : last);
	if (signals.by != WEFT_NONE && signals.since == 0) {
		const char *early = weft__words_span(f, since_ns - signals.last_ns);
		finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
		finding->title = weft__finding_text(f,
		    "%s%s sleeps for ever: lost wake-up, %s%s was last signalled %s before it began to wait for it%s", name, at,
		    what, what_at, early, others);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signals.last_ns, signals.by, "%s%s signals %s for the last time",
		    weft__words_name(f, signals.by), weft__words_at(f, signals.by), what);
		finding->next =
		    "check what the condition tells of before waiting, with the lock held, and again after each wake-up";
	} else if (signals.since > 0) {
		finding->title =
		    weft__finding_text(f, "%s%s sleeps for ever at %s%s: it was signalled %zu time%s since, which woke others%s",
			name, at, what, what_at, signals.since, weft__words_s(signals.since), others);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signals.last_ns, signals.by, "%s%s signals %s for the last time",
		    weft__words_name(f, signals.by), weft__words_at(f, signals.by), what);
		finding->next = weft__finding_text(f,
		    "where several wait for %s, wake all of them (broadcast), or let each that was woken signal the next", what);
	} else {
		finding->title =
		    weft__finding_text(f, "%s%s sleeps for ever at %s%s: nobody has woken it%s", name, at, what, what_at, others);
		finding->next = weft__finding_text(
		    f, "find out who should signal %s, or come to it, and on which way through its code it does not", what);
	}
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, since_ns, last, "%s begins to wait for %s", name, what);
	tell_others(process, last);
	f->told[last] = f->told[root] = true;
	if (weft__finding_doubt_part(f, last, false))
		return;
	if (!all)
		weft__finding_doubt(f, "an OS thread that has not signalled it so far may do so yet");
	else if (is_called(m, root, "semaphore"))
		weft__finding_doubt(f, "a handler of a signal may post a semaphore");
}

/* Each waits for another one, and none for a time or for what comes from outside. */
static void find_all(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const uint32_t parts = m->trace->part_count ? m->trace->part_count : 1;
	for (uint32_t part = 0; part < parts && !m->is_whole && !f->no_memory; part++) {
		struct process process = {.finder = f};
		if (!f->lacks[part].lost && !f->lacks[part].absent && gather(&process, part)) {
			settle(&process);
			const uint32_t first = first_asleep(&process);
			if (first != WEFT_NONE)
				tell_all(&process, first);
		}
		free(process.threads);
		free(process.of_stream);
	}
}

/* ---- One that somebody asks for ---- */

/* Since when an OS thread has slept at the end; WEFT_NEVER: it had not fallen asleep, or nobody knows. */
static int64_t asleep_since(const struct weft_model *m, uint16_t stream)
{
	int64_t since_ns = WEFT_NEVER;
	for (size_t i = 0; i < m->sleep_count; i++)
		if (m->sleeps[i].stream == stream)
			since_ns = m->sleeps[i].end_ns == weft_model_stream_until(m, stream) ? m->sleeps[i].start_ns : WEFT_NEVER;
	return since_ns;
}

bool weft__asleep_tell(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t p = f->ties.now[finding->promise], root = finding->root, next = f->chains.next[p];
	const uint16_t stream = stream_of(m, p);
	if (finding->kind != WEFT_FINDING_ANSWER || !weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD))
		return false;
	const int64_t since_ns = stream == UINT16_MAX ? WEFT_NEVER : asleep_since(m, stream);
	const char *slept = since_ns == WEFT_NEVER ? "it"
						   : weft__finding_text(f, "it has slept for the last %s, and",
							 weft__words_span(f, weft_model_stream_until(m, stream) - since_ns)),
		   *name = weft__words_name(f, root), *at = weft__words_at(f, root);
	const bool is_awake = since_ns == WEFT_NEVER && stream != UINT16_MAX && !f->at_rest[stream];
	if (is_awake || (root == p && since_ns == WEFT_NEVER)) {
		finding->title = weft__finding_text(
		    f, "%s: %s", what, is_awake ? "it was awake when the trace ended" : "nothing was recorded of what it does");
		finding->next = "weft record --kernel tells what the kernel did with it";
	} else if (root == p) {
		finding->title = weft__finding_text(f, "%s: %s waits for nothing that was recorded", what, slept);
		finding->next =
		    "an OS thread of a pool sleeps so until it is given something to do; weft record --kernel tells in "
		    "which call it sleeps";
	} else {
		const char *in = next == root || !weft_kind_has(m->promises[next].kind, WEFT_TRAIT_LOOP)
				     ? ""
				     : weft__finding_text(f, " in %s", weft__words_name(f, next));
		finding->title = weft__finding_text(f, "%s: %s waits%s for %s%s", what, slept, in, name, at);
		finding->next = weft__finding_text(f,
		    "an OS thread that has nothing to do waits so; if there was something to do, find out who should have ended "
		    "or "
		    "signalled %s",
		    name);
	}
	return true;
}

void weft__asleep_find(struct weft__finder *f)
{
	if (!weft__sorts_have(&f->sorts, WEFT_KIND_THREAD))
		return;
	find_all(f);
	find_one(f);
}
