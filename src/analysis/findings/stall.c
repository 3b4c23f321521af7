/* stall.c: one that ran, or a pause that lasted, while others were ready.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/words.h"
#include "model/os_tracks.h"

/* A busy machine makes a run, and what a pause waits for, longer. */
enum {
	LATE_KEPT = 8,
	ALARMING = 5,
	ALARMING_OWN = 2,
	ALARMING_BLOCKED = 6, /* nobody knows for how long it had a processor */
	ALARMING_ALONE = 11,  /* likewise, and who was late is not certain */
	LEAST_SLEEPS = 16,
	LEAST_WAITING = 3,
	AT_ONCE_NS = 60000,
	BLOCKS_MORE = 8,    /* who blocks so many times as often as it is preempted loses its time by that */
	TOLD_PART = 8,      /* of a run: what it was without a processor is told from that part on */
	FAULT_NS = 1000,    /* what a page costs that is touched for the first time, about */
	FAULTS_LEAST = 1000 /* fewer are nothing special */
};

static int64_t weight_ns(const struct weft__stall *s)
{
	return weft_max_ns(s->delay_ns, s->end_ns - s->start_ns);
}

/* Those with victims first, then the heaviest. */
static int compare_weights(const void *a, const void *b)
{
	const struct weft__stall *x = *(const struct weft__stall *const *)a, *y = *(const struct weft__stall *const *)b;
	return WEFT_ORDER(y->victims > 0, x->victims > 0) ?: WEFT_ORDER(weight_ns(y), weight_ns(x)) ?: WEFT_ORDER(x, y);
}

static void list_victims(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__delays *d = &f->delays;
	size_t shown = 0;
	for (size_t i = 0; i < d->ready.count && shown < WEFT__LINES_KEPT && (int64_t)shown < s->victims; i++) {
		const struct weft__ready *r = &d->ready.items[i];
		if (r->stream != s->stream ||
		    weft_min_ns(s->end_ns, r->to_ns) - weft_max_ns(s->start_ns, r->from_ns) < d->least_ns)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, r->to_ns, r->promise, "%s runs only now, %s after %s ended",
		    weft__words_name(f, r->promise), weft__words_span(f, r->to_ns - r->from_ns), weft__words_name(f, r->input));
	}
	weft__words_more(f, WEFT_EVIDENCE_VICTIM, (size_t)s->victims - shown, "");
}

/* Of a long stall in a loop of which nobody is known to have waited for it: who runs next. */
struct behind {
	uint32_t count;
	struct weft__late first[LATE_KEPT];
};

static bool is_long(const struct weft__finder *f, const struct weft__stall *s)
{
	int64_t length_ns = s->end_ns - s->start_ns;
	if (s->own_ns >= 0)
		return length_ns >= ALARMING * f->options.stall_ns && s->own_ns >= ALARMING_OWN * f->options.stall_ns;
	int64_t times = !s->is_pause && !f->model->round_count ? ALARMING : s->victims > 0 ? ALARMING_BLOCKED : ALARMING_ALONE;
	return length_ns >= times * f->options.stall_ns;
}

/* Whether p went on with what came to its end since the stall began: then it may not have waited for its end. */
static bool was_fed(const struct weft__finder *f, uint32_t p, int64_t run_ns, const struct weft__stall *s)
{
	for (uint32_t i = f->ties.out_begin[p + 1]; i-- > f->ties.out_begin[p];) {
		const struct weft_link *link = &f->model->links[f->ties.out[i]];
		if (link->time_ns < run_ns)
			break;
		if (link->time_ns == run_ns && link->kind == WEFT_LINK_READ && f->ties.ended_ns[link->to] >= s->start_ns)
			return true;
	}
	return false;
}

static bool ran_behind(const struct weft__finder *f, uint32_t p, const struct weft_run *run, const struct weft__stall *s)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != s->promise && promise->start_ns < s->start_ns && run->start_ns <= weft__delays_after(&f->delays, s) &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD) && !was_fed(f, p, run->start_ns, s);
}

/* By stall: who ran behind it, where that is wanted. */
static struct behind *find_behind(struct weft__finder *f, const bool *is_wanted)
{
	const struct weft_model *m = f->model;
	struct behind *behind = weft__finding_alloc(f, f->delays.stalls.count, sizeof *behind);
	for (uint32_t p = 1; behind && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
			const struct weft__stall *s = weft__delays_stall_before(&f->delays, stream, m->runs[r].start_ns);
			struct behind *of = s ? &behind[s - f->delays.stalls.items] : NULL;
			if (!of || !is_wanted[s - f->delays.stalls.items] || !ran_behind(f, p, &m->runs[r], s))
				continue;
			if (of->count < LATE_KEPT)
				of->first[of->count] = (struct weft__late){p, m->runs[r].start_ns, false};
			of->count++;
			break; /* once is enough */
		}
	return behind;
}

/* By OS thread: whether a loop runs there. */
static bool *find_loops(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	bool *has_loop = weft__finding_alloc(f, m->trace->stream_count, sizeof *has_loop);
	for (uint32_t p = 1; has_loop && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++)
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) && m->promises[p].stream < m->trace->stream_count)
			has_loop[m->promises[p].stream] = true;
	return has_loop;
}

/* How many sleeps right after the stall were over at once: so much had come from outside meanwhile. */
static uint32_t count_waiting(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	const uint16_t kind = m->promises[s->promise].kind;
	uint32_t count = 0, before = 0;
	if (kind == WEFT_KIND_WORK || weft_kind_has(kind, WEFT_TRAIT_THREAD))
		return 0;
	for (size_t i = 0, from = weft_sleep_from(m, s->end_ns); i < from && before < LEAST_SLEEPS; i++)
		before += m->sleeps[i].stream == s->stream;
	for (size_t i = weft_sleep_from(m, s->end_ns); before >= LEAST_SLEEPS && i < m->sleep_count; i++) {
		if (m->sleeps[i].stream != s->stream)
			continue;
		if (m->sleeps[i].end_ns - m->sleeps[i].start_ns > AT_ONCE_NS)
			break;
		count++;
	}
	return count;
}

/* What most of it was, where there was more than one. */
static const char *mostly(struct weft__finder *f, const struct weft__stall *s, const char *called)
{
	const bool is_all = s->parts.kernel_call_ns >= s->parts.blocked_ns - s->parts.blocked_ns / TOLD_PART;
	return is_all ? called : weft__finding_text(f, "%s and elsewhere", called);
}

/* " on "/var/lib/x"", or that it probably is: a descriptor's number may be used again. */
static const char *file_of(struct weft__finder *f, const char *file, bool is_sure)
{
	if (!file)
		return "";
	const bool is_name = strncmp(file, "a pipe", 6) != 0 && strncmp(file, "a socket", 8) != 0;
	const char *text = weft__words_clean(f, (struct weft_str){file, (uint32_t)strlen(file)});
	return weft__finding_text(f, is_name ? "%s on \"%s\"" : "%s on %s", is_sure ? "" : ", probably", text);
}

/* In which call it was blocked; "" if nobody knows. */
static const char *call_of(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_waited *waited = &s->parts.waited;
	const bool is_one = waited->ns >= s->parts.kernel_call_ns - s->parts.kernel_call_ns / TOLD_PART;
	static const char blocked[] = "blocked in ";
	const char *called = weft_kernel_call_name(s->parts.kernel_call);
	if (called && is_one)
		called = weft__finding_text(f, "%s%s", called, file_of(f, waited->file, waited->is_sure));
	if (called)
		return weft__finding_text(
		    f, s->parts.given > 1 ? " in %s, %" PRIu64 " times" : " in %s", mostly(f, s, called), s->parts.given);
	if (s->parts.call == WEFT_NONE)
		return "";
	const char *text = weft__words_text(f, s->parts.call);
	text = strncmp(text, blocked, sizeof blocked - 1) ? text : text + sizeof blocked - 1;
	if (s->parts.called_ns < s->parts.blocked_ns - s->parts.blocked_ns / TOLD_PART)
		return weft__finding_text(f, " in %s and elsewhere", text);
	return weft__finding_text(
	    f, s->parts.calls > 1 ? " in %s and others, %" PRIu32 " times" : " in %s", text, s->parts.calls);
}

/* Whether it did little else than touch memory for the first time. */
static bool is_new_memory(const struct weft__stall *s)
{
	const struct weft__parts *parts = &s->parts;
	const int64_t on_ns = s->end_ns - s->start_ns - weft_max_ns(parts->off_ns, parts->blocked_ns);
	if (parts->minor < FAULTS_LEAST)
		return false;
	return parts->is_exact ? parts->faulting_ns > on_ns / 2
			       : (int64_t)(parts->minor < INT32_MAX ? parts->minor : INT32_MAX) * FAULT_NS > on_ns / 4;
}

/* What others than the program's own code did while it ran, where that was much. */
static const char *within_of(struct weft__finder *f, const struct weft__stall *s, const char *before, const char *behind)
{
	const struct weft__parts *parts = &s->parts;
	const int64_t told_ns = (s->end_ns - s->start_ns) / TOLD_PART;
	if (!s->is_pause && parts->collected_ns > told_ns)
		return weft__finding_text(f, "%s%s%s the collector of garbage%s%s", before,
		    weft__words_span(f, parts->collected_ns), behind, parts->collector ? " of " : "",
		    parts->collector ? parts->collector : "");
	if (parts->interrupts_ns > told_ns)
		return weft__finding_text(
		    f, "%sinterrupts had its processor for %s%s", before, weft__words_span(f, parts->interrupts_ns), behind);
	if (!s->is_pause && parts->is_exact && is_new_memory(s))
		return weft__finding_text(
		    f, "; %" PRIu64 " page faults took up to %s of it", parts->minor, weft__words_span(f, parts->faulting_ns));
	return "";
}

/* ", of which it had a processor for 10 ms, and waited for one for 12 ms"; "" where it had one nearly all the time. */
static const char *parts_of(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__parts *parts = &s->parts;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(parts->off_ns, parts->blocked_ns);
	if (off_ns < length_ns / TOLD_PART || (s->is_pause && parts->waiting_ns < length_ns / TOLD_PART))
		return within_of(f, s, ", of which ", "");
	if (!parts->is_known)
		return weft__finding_text(
		    f, ", of which it was blocked for %s%s", weft__words_span(f, parts->blocked_ns), call_of(f, s));
	const int64_t unknown_ns = off_ns - parts->waiting_ns - parts->blocked_ns;
	const char *least = parts->is_least ? "at least " : "";
	const char *text = weft__finding_text(f, ", of which it had a processor for %s%s", parts->is_least ? "at most " : "",
	    weft__words_span(f, length_ns - off_ns));
	if (parts->waiting_ns > 0)
		text = weft__finding_text(f, "%s, waited for one for %s%s", text, least, weft__words_span(f, parts->waiting_ns));
	if (parts->blocked_ns > 0)
		text = weft__finding_text(
		    f, "%s, was blocked for %s%s%s", text, least, weft__words_span(f, parts->blocked_ns), call_of(f, s));
	if (unknown_ns > length_ns / 100)
		text = weft__finding_text(
		    f, "%s, was blocked or waited for one for %s%s", text, least, weft__words_span(f, unknown_ns));
	return weft__finding_text(f, "%s%s", text, within_of(f, s, "; ", " of it"));
}

/* The promise that whoever woke it was running, or WEFT_NONE. */
static uint32_t waker_of(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_off *slept = s->parts.slept;
	uint32_t waker = WEFT_NONE;
	if (slept && slept->woken_by != WEFT_NO_TID)
		f->no_memory |= weft_os_ran_by(f->model, slept->woken_by, slept->ready_ns, &waker) < 0;
	return waker;
}

/* What may be done about a call that blocks; NULL: nothing that depends on the call. */
static const char *advice_for_call(struct weft__finder *f, const struct weft__stall *s, const char *at)
{
	const uint32_t waker = waker_of(f, s);
	switch ((enum weft_kernel_call)s->parts.kernel_call) {
	case WEFT_CALL_FAULT: return "it waited for pages that were read from a disk: read them before, or on another OS thread";
	case WEFT_CALL_FSYNC:
	case WEFT_CALL_FDATASYNC:
	case WEFT_CALL_SYNC:
	case WEFT_CALL_SYNCFS:
	case WEFT_CALL_MSYNC: return weft__finding_text(f, "let another OS thread wait until the disk has it%s", at);
	case WEFT_CALL_NANOSLEEP:
	case WEFT_CALL_CLOCK_NANOSLEEP:
		return weft__finding_text(f, "wait by a timer of the loop, not in a call that sleeps%s", at);
	case WEFT_CALL_FUTEX:
	case WEFT_CALL_FUTEX_WAIT:
	case WEFT_CALL_FUTEX_WAITV:
		if (waker == WEFT_NONE)
			return weft__finding_text(f, "find out who holds for so long what it waits for%s", at);
		return weft__finding_text(f,
		    "look at %s%s, which held for so long what it waited for: hold it for less, or do not wait for it here",
		    weft__words_name(f, waker), weft__words_at(f, waker));
	case WEFT_CALL_CONNECT:
	case WEFT_CALL_ACCEPT:
	case WEFT_CALL_ACCEPT4:
	case WEFT_CALL_SENDTO:
	case WEFT_CALL_SENDMSG:
	case WEFT_CALL_RECVFROM:
	case WEFT_CALL_RECVMSG: return weft__finding_text(f, "let the socket not block, and the loop say when it is ready%s", at);
	default: return NULL;
	}
}

/* What may be done about the largest part of the run. */
static const char *advice_for(struct weft__finder *f, const struct weft__stall *s, const char *at)
{
	const struct weft__parts *parts = &s->parts;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(parts->off_ns, parts->blocked_ns);
	const int64_t on_ns = length_ns - off_ns, unknown_ns = off_ns - parts->waiting_ns - parts->blocked_ns;
	const bool is_collected = s->is_pause ? weft__is_collector(weft_model_text(f->model, s->pause))
					      : parts->collected_ns > length_ns - parts->collected_ns;
	if (is_collected && parts->waiting_ns <= length_ns - parts->waiting_ns)
		return "make less garbage, or have it collected in smaller pieces, or where nobody waits";
	if (parts->interrupts_ns > on_ns - parts->interrupts_ns && parts->interrupts_ns > off_ns)
		return "interrupts had its processor, which is no fault of this code: let another processor handle them, or give "
		       "the program another one";
	const char *advice = parts->is_exact && parts->blocked_ns > on_ns && parts->blocked_ns >= parts->waiting_ns
				 ? advice_for_call(f, s, at)
				 : NULL;
	if (advice)
		return advice;
	if (s->is_pause && (!parts->is_exact || parts->waiting_ns <= on_ns))
		return "find out what pauses for so long, and whether it can be done in smaller pieces";
	if (parts->waiting_ns > on_ns && parts->waiting_ns >= parts->blocked_ns)
		return "the machine had more to do than it has processors, which is no fault of this code: run less beside it, "
		       "or "
		       "give the program a processor of its own";
	const bool unknown_is_blocked = parts->given / BLOCKS_MORE >= parts->taken;
	if (parts->blocked_ns + (unknown_is_blocked ? unknown_ns : 0) > on_ns)
		return parts->major > 0 && parts->call == WEFT_NONE
			   ? "it waited for pages that were read from a disk: read them before, or on another OS thread"
			   : weft__finding_text(f, "call what blocks on another OS thread, or where it does not block%s", at);
	if (unknown_ns > on_ns)
		return "record it on a machine with less to do: then weft can tell whether it was blocked";
	if (is_new_memory(s))
		return weft__finding_text(f, "keep and use again the memory that it touches for the first time%s", at);
	return weft__finding_text(f, "cut its work into pieces with a pause between them, or give it to another OS thread%s", at);
}

/* Who took the processor, and who ended the longest sleep. */
static void tell_switches(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__parts *p = &s->parts;
	const struct weft_off *slept = p->slept, *preempted = p->preempted;
	const int64_t told_ns = (s->end_ns - s->start_ns) / TOLD_PART;
	if (preempted && p->waiting_ns >= told_ns)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, preempted->start_ns, WEFT_NONE,
		    "its processor was taken away %" PRIu64 " time%s%s%s%s, here for %s", p->taken, weft__words_s(p->taken),
		    preempted->by == WEFT_NO_TID ? "" : ", by ",
		    preempted->by == WEFT_NO_TID ? "" : weft__words_tid(f, preempted->by),
		    preempted->by == WEFT_NO_TID ? "" : ", which may have passed it on",
		    weft__words_span(f, preempted->end_ns - preempted->start_ns));
	if (p->interrupts && p->interrupts_ns >= told_ns)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, p->first_interrupt_ns, WEFT_NONE,
		    p->interrupt ? "interrupts had its processor %" PRIu32 " time%s, from here on: %s for %s"
				 : "interrupts had its processor %" PRIu32 " time%s, from here on",
		    p->interrupts, weft__words_s(p->interrupts), p->interrupt, weft__words_span(f, p->interrupt_ns));
	if (!slept || p->blocked_ns < told_ns)
		return;
	const char *called = weft_kernel_call_name(slept->call);
	const char *in = called ? weft__finding_text(f, " in %s%s", called, file_of(f, slept->file, slept->is_sure)) : "";
	if (slept->woken_by == WEFT_NO_TID) {
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, slept->start_ns, WEFT_NONE, "its OS thread slept%s, here for %s%s",
		    in, weft__words_span(f, slept->ready_ns - slept->start_ns),
		    slept->by_interrupt ? ", until an interrupt" : "");
		return;
	}
	const uint32_t waker = waker_of(f, s);
	const char *ran = waker == WEFT_NONE
			      ? ""
			      : weft__finding_text(f, ", which ran %s%s", weft__words_name(f, waker), weft__words_at(f, waker));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, slept->ready_ns, waker,
	    "its OS thread slept%s for %s, and was woken by %s%s", in, weft__words_span(f, slept->ready_ns - slept->start_ns),
	    weft__words_tid(f, slept->woken_by), ran);
}

/* What the kernel counted meanwhile. */
static void tell_counts(struct weft__finder *f, const struct weft__stall *s, const char *parts)
{
	const struct weft__parts *p = &s->parts;
	if (p->is_exact)
		tell_switches(f, s);
	else if (p->is_known && *parts)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "around that its OS thread was blocked %" PRIu64 " time%s, and its processor was taken away %" PRIu64
		    " time%s",
		    p->given, weft__words_s(p->given), p->taken, weft__words_s(p->taken));
	if (p->minor + p->major >= FAULTS_LEAST || p->major > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "around that its OS thread had %" PRIu64 " page fault%s, of which %" PRIu64 " read from a disk",
		    p->minor + p->major, weft__words_s(p->minor + p->major), p->major);
}

/* What blocks until another OS thread goes on. */
static bool is_lock(const struct weft__finder *f, uint32_t text)
{
	static const char *const calls[] = {"blocked in pthread_", "blocked in syscall", "blocked in futex"};
	const struct weft_str call = weft_model_text(f->model, text);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (call.len >= strlen(calls[i]) && memcmp(call.ptr, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

/* Whether that blocks until another OS thread goes on, as far as is known: a lock, or nobody knows what. */
static bool waits_for_threads(const struct weft__finder *f, const struct weft__stall *s)
{
	const uint32_t text = s->is_pause ? s->pause : s->parts.call;
	if (s->parts.is_exact || text == WEFT_NONE)
		return !s->parts.is_exact && !s->is_pause;
	return is_lock(f, text);
}

/* Whether another OS thread did something meanwhile, for half of that time at least: it may have held what this one waits for. */
static bool is_behind_busy(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	enum { LOOKED_AT = 4096, TIMES_LONGER = 8 };
	const int64_t least_ns = (s->end_ns - s->start_ns) / 2, from_ns = s->start_ns - TIMES_LONGER * 2 * least_ns;
	size_t i = WEFT_FIRST(p, 0, m->pause_count, m->pauses[p].start_ns >= from_ns);
	for (size_t end = i + LOOKED_AT; i < end && i < m->pause_count && m->pauses[i].start_ns < s->end_ns - least_ns; i++)
		if (m->pauses[i].stream != s->stream && !is_lock(f, m->pauses[i].text) &&
		    weft_min_ns(m->pauses[i].end_ns, s->end_ns) - weft_max_ns(m->pauses[i].start_ns, s->start_ns) >= least_ns)
			return true;
	i = WEFT_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > s->start_ns + least_ns);
	for (size_t end = i + LOOKED_AT; i < end && i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		if (r->stream != s->stream && weft_min_ns(r->had_ns, s->end_ns - r->start_ns) >= least_ns)
			return true;
	}
	return false;
}

/* How long the OS thread of a round slept from one time to the other. */
static int64_t slept_ns(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	enum { BEFORE = 64 }; /* one of them may go on */
	const size_t first = weft_sleep_from(m, from_ns);
	int64_t sum_ns = 0;
	for (size_t i = first > BEFORE ? first - BEFORE : 0; i < m->sleep_count && m->sleeps[i].start_ns < to_ns; i++)
		if (m->sleeps[i].stream == stream)
			sum_ns +=
			    weft_max_ns(weft_min_ns(m->sleeps[i].end_ns, to_ns) - weft_max_ns(m->sleeps[i].start_ns, from_ns), 0);
	return sum_ns;
}

/* Another OS thread that was ready to run and had no processor for most of that time: whoever waits for it is not to blame. */
static bool is_behind_starved(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	if (s->parts.blocked_ns < (s->end_ns - s->start_ns) / 2 && !s->is_pause)
		return false;
	for (size_t i = WEFT_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > s->start_ns); i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		const int64_t from_ns = weft_max_ns(r->start_ns, s->start_ns), to_ns = weft_min_ns(r->end_ns, s->end_ns);
		if (r->stream != s->stream && r->taken > 0 && from_ns < to_ns &&
		    to_ns - from_ns - r->had_ns - slept_ns(m, r->stream, from_ns, to_ns) >= (s->end_ns - s->start_ns) / 2)
			return true;
	}
	return false;
}

/* Whether the machine had more to do than it has processors: an OS thread that never gave its own up was without one for long. */
static bool is_machine_busy(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < m->round_count && weft__finding_goes_on(f, i, m->round_count); i++) {
		const struct weft_round *r = &m->rounds[i];
		if (r->given == 0 && r->end_ns - r->start_ns - r->had_ns >= f->delays.least_ns)
			return true;
	}
	return false;
}

/* When something was given to the pool, by OS thread and time. */
struct given {
	int64_t time_ns;
	uint16_t stream;
};

/* What the whole trace tells of its machine and program. */
struct around {
	bool is_busy;
	struct given *given;
	size_t given_count;
};

static bool is_for_pool(const struct weft_promise *p)
{
	return p->kind == WEFT_KIND_WORK || p->kind == WEFT_KIND_FS || p->kind == WEFT_KIND_GETADDRINFO;
}

static int compare_given(const void *a, const void *b)
{
	const struct given *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->time_ns, y->time_ns);
}

static void look_around(struct weft__finder *f, struct around *around)
{
	const struct weft_model *m = f->model;
	size_t count = 0;
	for (uint32_t p = 1; p < m->promise_count; p++)
		count += is_for_pool(&m->promises[p]);
	*around = (struct around){is_machine_busy(f), weft__finding_alloc(f, count, sizeof *around->given), count};
	for (uint32_t p = 1, i = 0; around->given && p < m->promise_count; p++)
		if (is_for_pool(&m->promises[p]))
			around->given[i++] = (struct given){m->promises[p].start_ns, m->promises[p].stream};
	if (around->given)
		weft_sort(around->given, count, sizeof *around->given, compare_given);
}

/* Whether it gave something to the pool, whose lock an OS thread of the pool may have had meanwhile. */
static bool gave_to_pool(const struct around *around, const struct weft__stall *s)
{
	const struct given *given = around->given;
	const size_t i = WEFT_FIRST(g, 0, around->given_count,
	    given[g].stream > s->stream || (given[g].stream == s->stream && given[g].time_ns >= s->start_ns));
	return i < around->given_count && given[i].stream == s->stream && given[i].time_ns <= s->end_ns;
}

/* Whether the time went by without a processor, and the program is not known to have slept: on a busy machine all that blocks
 * takes long. */
static bool may_be_starved(const struct weft__finder *f, const struct weft__stall *s, const struct around *around)
{
	const struct weft__parts *parts = &s->parts;
	const uint32_t text = s->is_pause ? s->pause : parts->call;
	const struct weft_str call = text == WEFT_NONE ? (struct weft_str){0} : weft_model_text(f->model, text);
	if (weft_text_means(call, WEFT_MEANS_SLEEP))
		return false;
	if (parts->is_exact || f->model->round_count == 0)
		return false;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(parts->off_ns, parts->blocked_ns);
	return (!parts->is_known && s->own_ns < 0) ||
	       (parts->is_known && length_ns - off_ns < ALARMING_OWN * f->options.stall_ns &&
		   (around->is_busy || parts->taken > 0 || parts->given == 0 || gave_to_pool(around, s)));
}

/* It ran in a guest whose processor had none of the host's. */
static void blame_host(
    struct weft__finder *f, struct weft_finding *finding, const struct weft__stall *s, const struct weft_steal *steal)
{
	const int64_t length_ns = s->end_ns - s->start_ns;
	weft__words_steal(f, steal);
	if (steal->low_ns > length_ns / 2)
		finding->next = "the host had more to do than it has processors, which is no fault of this code: run less beside "
				"the guest, or give the guest a processor of its own";
	if ((s->own_ns >= 0 ? s->own_ns : length_ns) - steal->low_ns >= f->options.stall_ns)
		return;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	weft__finding_doubt(f, "its machine, a guest, did not have a processor all the time");
}

static void tell_stall(
    struct weft__finder *f, const struct weft__stall *s, const struct behind *behind, const struct around *around)
{
	struct weft__late late[LATE_KEPT];
	uint32_t late_count = weft__delays_late(&f->delays, s, late, LATE_KEPT);
	if (late_count == 0 && behind) {
		late_count = behind->count;
		memcpy(late, behind->first, sizeof late);
	}
	bool pause = s->is_pause, nobody = s->promise == WEFT_SYSTEM;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STALL, s->promise, s->start_ns, s->end_ns);
	if (!finding)
		return;
	const char *name = nobody ? "" : weft__words_name(f, s->promise), *at = nobody ? "" : weft__words_at(f, s->promise);
	const char *length = weft__words_span(f, s->end_ns - s->start_ns);
	if (pause)
		name = weft__finding_text(f, "a pause (%s)%s%s", weft__words_text(f, s->pause), nobody ? "" : " of ", name);
	const char *ran = pause ? "lasted" : "ran for", *parts = parts_of(f, s);
	struct weft_steal steal;
	const bool is_stolen = !nobody && weft__words_steal_of(f, s->promise, s->start_ns, s->end_ns, &steal);
	const char *of_it = is_stolen
				? weft__finding_text(f, "%s; its machine, a guest, had no processor of its host's for %s of that",
				      parts, weft__words_range(f, steal.low_ns, steal.high_ns))
				: parts;
	finding->weight = (uint64_t)weight_ns(s);
	const uint32_t waiting = s->victims == 0 && late_count == 0 ? count_waiting(f, s) : 0;
	if (waiting > 0)
		finding->title = weft__finding_text(f,
		    "%s%s %s %s without a break%s; its OS thread had %" PRIu32
		    " turns of its loop at once after that: so much had come meanwhile",
		    name, at, ran, length, of_it, waiting);
	else if (s->victims > 0)
		finding->title = weft__finding_text(f,
		    "%s%s %s %s%s%s while %" PRId64 " other%s ready to run: together they lost %s", name, at, ran, length, of_it,
		    *of_it ? "," : "", s->victims, s->victims == 1 ? " was" : "s were", weft__words_span(f, s->delay_ns));
	else
		finding->title = weft__finding_text(f,
		    "%s%s %s %s without a break%s; %" PRIu32 " promise%s from outside may have come late because of it", name, at,
		    ran, length, of_it, late_count, weft__words_s(late_count));
	finding->next = advice_for(f, s, at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise, pause ? "%s%s begins" : "%s%s begins to run", name, at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, s->end_ns, s->promise, "%s %s, %s later", name, pause ? "is over" : "stops", length);
	tell_counts(f, s, parts);
	if (is_stolen)
		blame_host(f, finding, s, &steal);
	list_victims(f, s);
	for (uint32_t i = 0; i < late_count && i < LATE_KEPT; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, late[i].time_ns, late[i].promise,
		    "%s %s as soon as that is over: up to %s late", weft__words_name(f, late[i].promise),
		    late[i].ended ? "ends" : "is called back", length);
	if (late_count > LATE_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, late_count - LATE_KEPT, "");
	/* A busy machine took the processor away, or gave it late to what this waited for. */
	if (s->own_ns >= 0 ? s->own_ns < f->options.stall_ns : f->model->round_count && !is_long(f, s)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "the OS thread did not have a processor all the time");
	}
	if (waits_for_threads(f, s) && is_behind_starved(f, s)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "another OS thread, for which this one may have waited, had no processor meanwhile");
	} else if (s->is_pause && waits_for_threads(f, s) && !is_behind_busy(f, s)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(
		    f, "no other OS thread is known to have done anything meanwhile: perhaps none had a processor");
	}
	if (may_be_starved(f, s, around)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, s->parts.is_known ? "the machine was busy, and may have let it wait, or what it waited for"
							 : "nobody knows whether the OS thread had a processor all the time");
	}
	if (s->victims > 0)
		return;
	weft__finding_doubt(
	    f, s->own_ns < 0 && !s->parts.is_known
		   ? "the trace does not tell when these were due, nor whether the OS thread had a processor all the time"
		   : "the trace does not tell when these were due");
	/* A busy machine takes a processor away for as long as that. */
	if (!is_long(f, s))
		finding->severity = WEFT_SEVERITY_INFORMATION;
}

/* What is called again and again is told as that: it ran many times, not once. */
static bool spins(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	enum { LOOKED_AT = 64 }; /* each is told some 20 times */
	size_t first = WEFT_FIRST(i, 0, m->spin_count, m->spins[i].time_ns >= s->start_ns);
	for (size_t i = first; i < m->spin_count && i < first + LOOKED_AT && m->spins[i].time_ns <= s->end_ns; i++)
		if (m->spins[i].promise == s->promise && !s->is_pause)
			return true;
	return false;
}

void weft__find_stall(struct weft__finder *f)
{
	const struct weft__delays *d = &f->delays;
	const struct weft__stall **order = weft__finding_alloc(f, d->stalls.count, sizeof *order);
	bool *is_alone = weft__finding_alloc(f, d->stalls.count, sizeof *is_alone), *has_loop = NULL;
	struct behind *behind = NULL;
	size_t count = 0;
	struct weft__late unused[1];
	for (size_t i = 0; order && is_alone && i < d->stalls.count && weft__finding_goes_on(f, i, d->stalls.count); i++) {
		const struct weft__stall *s = &d->stalls.items[i];
		if (spins(f, s))
			continue;
		if (s->victims > 0 || weft__delays_late(d, s, unused, 1) > 0)
			order[count++] = s;
		else if (is_long(f, s) && count_waiting(f, s) >= LEAST_WAITING)
			order[count++] = s;
		else if (is_long(f, s) && (has_loop || (has_loop = find_loops(f))))
			is_alone[i] = has_loop[s->stream];
	}
	if (has_loop && (behind = find_behind(f, is_alone)))
		for (size_t i = 0; i < d->stalls.count; i++)
			if (behind[i].count > 0)
				order[count++] = &d->stalls.items[i];
	if (order)
		weft_sort(order, count, sizeof *order, compare_weights);
	struct around around = {0};
	if (count > 0)
		look_around(f, &around);
	for (size_t i = 0; !f->no_memory && i < count && weft__finding_goes_on(f, i, count); i++)
		tell_stall(f, order[i], behind ? &behind[order[i] - d->stalls.items] : NULL, &around);
	free(around.given);
	free(order);
	free(is_alone);
	free(has_loop);
	free(behind);
	weft__held_find(f);
}
