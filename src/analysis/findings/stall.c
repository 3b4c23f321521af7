/* stall.c: reports runs and pauses that delayed promises which were ready to run.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/hot_function.h"
#include "analysis/index/names.h"
#include "base/duration.h"
#include "base/known_strings.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/os_tracks.h"

/* Limits for alarms are in stall limits (the shortest reported delay).  The limits are high because a busy machine makes runs
 * longer, and also the calls in which a pause is blocked. */
enum {
	MAX_LATE = 8,
	ALARM_STALLS = 5,
	ALARM_OWN_STALLS = 2, /* least length of an alarm in stall limits, without the time in which the thread was runnable */
	ALARM_BLOCKED_STALLS = 6, /* least length of an alarm in stall limits, if the time on CPU is unknown */
	/* least length of an alarm in stall limits, if the time on CPU is unknown and no promise is known to be late */
	ALARM_LONE_STALLS = 11,
	TOLD_STALLS = 10, /* least length, in stall limits, of a reported stall that delayed no known promise */
	/* from this length on, in stall limits, a stall of a loop that had work is an alarm although the code did not mean to
	   sleep */
	ALARM_TOLD_STALLS = 100,
	MIN_SLEEPS = 16,    /* count_waiting() counts only if the thread slept at least this often before the stall */
	MIN_WAITING = 3,    /* least number of loop turns without a sleep that shows a stall */
	AT_ONCE_NS = 60000, /* longest sleep, in ns, that does not count as a sleep */
	/* time off CPU counts as blocked if there are at least this many voluntary context switches per preemption */
	BLOCK_RATIO = 8,
	REPORTED_DIVISOR = 8, /* a part of the time is reported if it is at least one REPORTED_DIVISOR-th of the run */
	FAULT_NS = 1000,      /* approximate time of the page fault at the first access to a page */
	MIN_FAULTS = 1000     /* fewest page faults that are reported */
};

static int64_t get_weight_ns(const struct weft__stall *s)
{
	return weft_max_ns(s->delay_ns, s->end_ns - s->start_ns);
}

/* Orders stalls: stalls with victims first, then by weight, descending. */
static int compare_weights(const void *a, const void *b)
{
	const struct weft__stall *x = *(const struct weft__stall *const *)a, *y = *(const struct weft__stall *const *)b;
	return WEFT_ORDER(y->victims > 0, x->victims > 0) ?: WEFT_ORDER(get_weight_ns(y), get_weight_ns(x)) ?: WEFT_ORDER(x, y);
}

static void list_victims(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__delays *d = &f->delays;
	size_t shown = 0;
	for (size_t i = 0; i < d->ready.count && shown < WEFT__MAX_LINES && (int64_t)shown < s->victims; i++) {
		const struct weft__ready *r = &d->ready.items[i];
		if (r->stream != s->stream ||
		    weft_min_ns(s->end_ns, r->to_ns) - weft_max_ns(s->start_ns, r->from_ns) < d->least_ns)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, r->to_ns, r->promise, "%s runs only now, %s after %s ended",
		    weft__format_promise(f, r->promise), weft__format_duration(f, r->to_ns - r->from_ns),
		    weft__format_promise(f, r->input));
	}
	weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, (size_t)s->victims - shown, "");
}

/* Promises that ran right after a long stall of a loop, if no promise is known to have waited for the end of the stall. */
struct behind {
	uint32_t count;
	struct weft__late_promise first[MAX_LATE];
};

static bool is_long(const struct weft__finder *f, const struct weft__stall *s)
{
	int64_t length_ns = s->end_ns - s->start_ns;
	if (s->own_ns >= 0)
		return length_ns >= ALARM_STALLS * f->options.stall_ns && s->own_ns >= ALARM_OWN_STALLS * f->options.stall_ns;
	int64_t times = !s->is_pause && !f->model->round_count ? ALARM_STALLS
			: s->victims > 0                       ? ALARM_BLOCKED_STALLS
							       : ALARM_LONE_STALLS;
	return length_ns >= times * f->options.stall_ns;
}

/* Returns whether p read a result that ended after the start of the stall, so that the stall may not have delayed p. */
static bool had_new_input(const struct weft__finder *f, uint32_t p, int64_t run_ns, const struct weft__stall *s)
{
	for (uint32_t i = f->link_index.out_begin[p + 1]; i-- > f->link_index.out_begin[p];) {
		const struct weft_link *link = &f->model->links[f->link_index.out[i]];
		if (link->time_ns < run_ns)
			break;
		if (link->time_ns == run_ns && link->kind == WEFT_LINK_READ && f->link_index.ended_ns[link->to] >= s->start_ns)
			return true;
	}
	return false;
}

static bool ran_after_stall(const struct weft__finder *f, uint32_t p, const struct weft_run *run, const struct weft__stall *s)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != s->promise && promise->start_ns < s->start_ns && run->start_ns <= weft__delays_late_until_ns(&f->delays, s) &&
	       !weft_kind_has(promise->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD) && !had_new_input(f, p, run->start_ns, s);
}

/* Returns, by stall, the promises that ran right after it, only for stalls with is_wanted; the caller frees the array. */
static struct behind *find_late_runners(struct weft__finder *f, const bool *is_wanted)
{
	const struct weft_model *m = f->model;
	struct behind *behind = weft__finding_alloc(f, f->delays.stalls.count, sizeof *behind);
	for (uint32_t p = 1; behind && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
			const struct weft__stall *s = weft__delays_stall_before(&f->delays, stream, m->runs[r].start_ns);
			struct behind *of = s ? &behind[s - f->delays.stalls.items] : NULL;
			if (!of || !is_wanted[s - f->delays.stalls.items] || !ran_after_stall(f, p, &m->runs[r], s))
				continue;
			if (of->count < MAX_LATE)
				of->first[of->count] = (struct weft__late_promise){p, m->runs[r].start_ns, WEFT_NO_TIME, false};
			of->count++;
			break; /* a late promise counts for one stall only */
		}
	return behind;
}

/* Returns, by stream, whether its thread runs a loop; the caller frees the array. */
static bool *find_loops(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	bool *has_loop = weft__finding_alloc(f, m->trace->stream_count, sizeof *has_loop);
	for (uint32_t p = 1; has_loop && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++)
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) && m->promises[p].stream < m->trace->stream_count)
			has_loop[m->promises[p].stream] = true;
	return has_loop;
}

/* Returns how many loop turns right after the stall did not really sleep: about so many external events came during the
 * stall. */
static uint32_t count_waiting(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	const uint16_t kind = m->promises[s->promise].kind;
	uint32_t count = 0, before = 0;
	if (kind == WEFT_KIND_WORK || weft_kind_has(kind, WEFT_TRAIT_THREAD))
		return 0;
	for (size_t i = 0, from = weft_first_sleep_from(m, s->end_ns); i < from && before < MIN_SLEEPS; i++)
		before += m->sleeps[i].stream == s->stream;
	for (size_t i = weft_first_sleep_from(m, s->end_ns); before >= MIN_SLEEPS && i < m->sleep_count; i++) {
		if (m->sleeps[i].stream != s->stream)
			continue;
		if (m->sleeps[i].end_ns - m->sleeps[i].start_ns > AT_ONCE_NS)
			break;
		count++;
	}
	return count;
}

/* Returns the name of the call in which the thread was blocked for longest, with " and elsewhere" if it was blocked in other
 * calls too. */
static const char *format_mostly(struct weft__finder *f, const struct weft__stall *s, const char *called)
{
	const bool is_all = s->breakdown.kernel_call_ns >= s->breakdown.blocked_ns - s->breakdown.blocked_ns / REPORTED_DIVISOR;
	return is_all ? called : weft__finding_text(f, "%s and elsewhere", called);
}

/* Returns " on "/var/lib/x"", with ", probably" if !is_sure, because the file descriptor may have been reused since. */
static const char *format_file(struct weft__finder *f, const char *file, bool is_sure)
{
	if (!file)
		return "";
	const bool is_name = strncmp(file, "a pipe", 6) != 0 && strncmp(file, "a socket", 8) != 0;
	const char *text = weft__format_sanitized(f, (struct weft_str){file, (uint32_t)strlen(file)});
	return weft__finding_text(f, is_name ? "%s on \"%s\"" : "%s on %s", is_sure ? "" : ", probably", text);
}

static const char blocked_in[] = "blocked in "; /* start of the text of a pause in which a thread was blocked in a call */

/* Returns " in CALL", the call in which the thread was blocked for longest; "" if it is unknown. */
static const char *format_call(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_wait_target *wait_target = &s->breakdown.wait_target;
	const bool is_one = wait_target->ns >= s->breakdown.kernel_call_ns - s->breakdown.kernel_call_ns / REPORTED_DIVISOR;
	const char *called = weft_kernel_call_name(s->breakdown.kernel_call);
	if (called && is_one)
		called = weft__finding_text(f, "%s%s", called, format_file(f, wait_target->file, wait_target->is_sure));
	if (called)
		return weft__finding_text(f, s->breakdown.voluntary_switches > 1 ? " in %s, %" PRIu64 " times" : " in %s",
		    format_mostly(f, s, called), s->breakdown.voluntary_switches);
	if (s->breakdown.call == WEFT_NONE)
		return "";
	const char *text = weft__format_text(f, s->breakdown.call);
	text = strncmp(text, blocked_in, sizeof blocked_in - 1) ? text : text + sizeof blocked_in - 1;
	if (s->breakdown.calls_ns < s->breakdown.blocked_ns - s->breakdown.blocked_ns / REPORTED_DIVISOR)
		return weft__finding_text(f, " in %s and elsewhere", text);
	return weft__finding_text(
	    f, s->breakdown.calls > 1 ? " in %s and others, %" PRIu32 " times" : " in %s", text, s->breakdown.calls);
}

/* Returns whether first accesses to new memory took a large part of the run. */
static bool is_new_memory(const struct weft__stall *s)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const int64_t on_ns = s->end_ns - s->start_ns - weft_max_ns(breakdown->off_ns, breakdown->blocked_ns);
	if (breakdown->minor_faults < MIN_FAULTS)
		return false;
	return breakdown->is_exact
		   ? breakdown->faulting_ns > on_ns / 2
		   : (int64_t)(breakdown->minor_faults < INT32_MAX ? breakdown->minor_faults : INT32_MAX) * FAULT_NS > on_ns / 4;
}

/* Returns the time of GC, interrupts or page faults during the stall, if it is a large part of the stall; else "". */
static const char *format_other_time(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const int64_t reported_ns = (s->end_ns - s->start_ns) / REPORTED_DIVISOR;
	if (!s->is_pause && breakdown->gc_ns > reported_ns)
		return weft__finding_text(f, "%s%sGC %s", breakdown->gc_name ? breakdown->gc_name : "",
		    breakdown->gc_name ? " " : "", weft__format_duration(f, breakdown->gc_ns));
	if (breakdown->interrupts_ns > reported_ns)
		return weft__finding_text(f, "interrupts %s", weft__format_duration(f, breakdown->interrupts_ns));
	if (!s->is_pause && breakdown->is_exact && is_new_memory(s))
		return weft__finding_text(f, "page faults up to %s", weft__format_duration(f, breakdown->faulting_ns));
	return "";
}

static const char *join_parts(struct weft__finder *f, const char *first, const char *second)
{
	return !*first ? second : !*second ? first : weft__finding_text(f, "%s, %s", first, second);
}

/* Returns "on CPU 10 ms, runnable 12 ms"; "" if the thread was on CPU nearly all the time. */
static const char *format_breakdown(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(breakdown->off_ns, breakdown->blocked_ns);
	if (off_ns < length_ns / REPORTED_DIVISOR || (s->is_pause && breakdown->waiting_ns < length_ns / REPORTED_DIVISOR))
		return format_other_time(f, s);
	if (!breakdown->is_known)
		return weft__finding_text(f, "blocked %s%s", weft__format_duration(f, breakdown->blocked_ns), format_call(f, s));
	const int64_t unknown_ns = off_ns - breakdown->waiting_ns - breakdown->blocked_ns;
	const char *least = breakdown->is_lower_bound ? "at least " : "";
	const char *text = weft__finding_text(
	    f, "on CPU %s%s", breakdown->is_lower_bound ? "at most " : "", weft__format_duration(f, length_ns - off_ns));
	if (breakdown->waiting_ns > 0)
		text = weft__finding_text(f, "%s, runnable %s%s", text, least, weft__format_duration(f, breakdown->waiting_ns));
	if (breakdown->blocked_ns > 0)
		text = weft__finding_text(
		    f, "%s, blocked %s%s%s", text, least, weft__format_duration(f, breakdown->blocked_ns), format_call(f, s));
	if (unknown_ns > length_ns / 100)
		text = weft__finding_text(f, "%s, blocked or runnable %s%s", text, least, weft__format_duration(f, unknown_ns));
	return join_parts(f, text, format_other_time(f, s));
}

/* Returns the promise that the waking thread was running when it ended the stall's longest sleep, or WEFT_NONE. */
static uint32_t find_waker(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_off_cpu *longest_sleep = s->breakdown.longest_sleep;
	uint32_t waker = WEFT_NONE;
	if (longest_sleep && longest_sleep->woken_by != WEFT_NO_TID)
		f->no_memory |= weft_os_promise_of_tid(f->model, longest_sleep->woken_by, longest_sleep->ready_ns, &waker) < 0;
	return waker;
}

static const char read_earlier[] = "read the file earlier, or on another thread: the code waited for pages from a disk";

/* Returns advice that depends on the call in which the thread is blocked; NULL if there is none. */
static const char *get_call_advice(struct weft__finder *f, const struct weft__stall *s, const char *at)
{
	const uint32_t waker = find_waker(f, s);
	switch ((enum weft_kernel_call)s->breakdown.kernel_call) {
	case WEFT_CALL_FAULT: return read_earlier;
	case WEFT_CALL_FSYNC:
	case WEFT_CALL_FDATASYNC:
	case WEFT_CALL_SYNC:
	case WEFT_CALL_SYNCFS:
	case WEFT_CALL_MSYNC: return weft__finding_text(f, "flush the file on another thread%s", at);
	case WEFT_CALL_NANOSLEEP:
	case WEFT_CALL_CLOCK_NANOSLEEP:
		return weft__finding_text(f, "use a timer of the event loop instead of a call that sleeps%s", at);
	case WEFT_CALL_FUTEX:
	case WEFT_CALL_FUTEX_WAIT:
	case WEFT_CALL_FUTEX_WAITV:
		if (waker == WEFT_NONE)
			return weft__finding_text(f, "find the thread for which the stalled thread waited%s", at);
		return weft__finding_text(f, "find out why %s let the stalled thread wait%s", weft__format_promise(f, waker),
		    weft__format_site_suffix(f, waker));
	case WEFT_CALL_CONNECT:
	case WEFT_CALL_ACCEPT:
	case WEFT_CALL_ACCEPT4:
	case WEFT_CALL_SENDTO:
	case WEFT_CALL_SENDMSG:
	case WEFT_CALL_RECVFROM:
	case WEFT_CALL_RECVMSG:
		return weft__finding_text(f, "make the socket non-blocking and wait for readiness in the event loop%s", at);
	default: return NULL;
	}
}

/* Returns the call of a pause without "blocked in "; NULL if the thread was not blocked in a call. */
static const char *format_pause_call(struct weft__finder *f, const struct weft__stall *s)
{
	const char *text = s->is_pause ? weft__format_text(f, s->pause) : "";
	return strncmp(text, blocked_in, sizeof blocked_in - 1) ? NULL : text + sizeof blocked_in - 1;
}

/* Returns advice about the largest part of the stall. */
static const char *get_advice(struct weft__finder *f, const struct weft__stall *s, const char *at)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(breakdown->off_ns, breakdown->blocked_ns);
	const int64_t on_ns = length_ns - off_ns, unknown_ns = off_ns - breakdown->waiting_ns - breakdown->blocked_ns;
	const bool is_collected = s->is_pause ? weft__is_gc_pause(weft_model_text(f->model, s->pause))
					      : breakdown->gc_ns > length_ns - breakdown->gc_ns;
	if (is_collected && breakdown->waiting_ns <= length_ns - breakdown->waiting_ns)
		return "make less garbage, or collect it while no request waits";
	if (breakdown->interrupts_ns > on_ns - breakdown->interrupts_ns && breakdown->interrupts_ns > off_ns)
		return "move the interrupts to another CPU, or pin the program to another CPU";
	const char *advice =
	    breakdown->is_exact && breakdown->blocked_ns > on_ns && breakdown->blocked_ns >= breakdown->waiting_ns
		? get_call_advice(f, s, at)
		: NULL;
	if (advice)
		return advice;
	if (s->is_pause && (!breakdown->is_exact || breakdown->waiting_ns <= on_ns))
		return format_pause_call(f, s)
			   ? weft__finding_text(f, "move the blocking call to another thread, or make it non-blocking%s", at)
			   : "find out what the pause does, and split it into shorter pauses";
	if (s->request != WEFT_NONE)
		return weft__finding_text(f, "make the call asynchronous: %s%s", weft__format_promise(f, s->request), at);
	if (breakdown->waiting_ns > on_ns && breakdown->waiting_ns >= breakdown->blocked_ns)
		return "run fewer other programs on the machine, or give the program a CPU of its own";
	const bool unknown_is_blocked = breakdown->voluntary_switches / BLOCK_RATIO >= breakdown->preemptions;
	if (breakdown->blocked_ns + (unknown_is_blocked ? unknown_ns : 0) > on_ns)
		return breakdown->major_faults > 0 && breakdown->call == WEFT_NONE
			   ? read_earlier
			   : weft__finding_text(f, "move the blocking call to another thread, or make it non-blocking%s", at);
	if (unknown_ns > on_ns)
		return "record the program again on an idle machine, or with weft record --kernel";
	if (is_new_memory(s))
		return weft__finding_text(f, "reuse memory instead of allocating new memory%s", at);
	return weft__finding_text(f, "split the work into pieces with a pause between them, or move it to another thread%s", at);
}

/* Returns " in request 17 "org.x.Player.Ask"": the request for whose answer a synchronous call waits. */
static const char *format_request(struct weft__finder *f, const struct weft__stall *s)
{
	return s->request == WEFT_NONE ? "" : weft__finding_text(f, " in %s", weft__format_promise(f, s->request));
}

/* Adds evidence of preemptions, interrupts and the longest sleep during the stall. */
static void report_switches(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__cpu_breakdown *p = &s->breakdown;
	const struct weft_off_cpu *longest_sleep = p->longest_sleep, *longest_preemption = p->longest_preemption;
	const int64_t reported_ns = (s->end_ns - s->start_ns) / REPORTED_DIVISOR;
	if (longest_preemption && p->waiting_ns >= reported_ns)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, longest_preemption->start_ns, WEFT_NONE,
		    "the thread was preempted %" PRIu64 " time%s, here for %s%s%s%s", p->preemptions,
		    weft__format_plural_s(p->preemptions),
		    weft__format_duration(f, longest_preemption->end_ns - longest_preemption->start_ns),
		    longest_preemption->by == WEFT_NO_TID ? "" : " by ",
		    longest_preemption->by == WEFT_NO_TID ? "" : weft__format_os_thread(f, longest_preemption->by),
		    longest_preemption->by == WEFT_NO_TID ? "" : ", after which other threads may have had the CPU");
	if (p->interrupts && p->interrupts_ns >= reported_ns)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, p->first_interrupt_ns, WEFT_NONE,
		    p->interrupt ? "interrupts used the CPU of the thread %" PRIu32 " time%s from this time on: %s for %s"
				 : "interrupts used the CPU of the thread %" PRIu32 " time%s from this time on",
		    p->interrupts, weft__format_plural_s(p->interrupts), p->interrupt, weft__format_duration(f, p->interrupt_ns));
	if (!longest_sleep || p->blocked_ns < reported_ns)
		return;
	const char *called = weft_kernel_call_name(longest_sleep->call);
	const char *in =
	    called ? weft__finding_text(f, " in %s%s", called, format_file(f, longest_sleep->file, longest_sleep->is_sure)) : "";
	if (longest_sleep->woken_by == WEFT_NO_TID) {
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, longest_sleep->start_ns, WEFT_NONE,
		    "the thread slept%s, this time for %s%s", in,
		    weft__format_duration(f, longest_sleep->ready_ns - longest_sleep->start_ns),
		    longest_sleep->by_interrupt ? ", until an interrupt" : "");
		return;
	}
	const uint32_t waker = find_waker(f, s);
	const char *ran = waker == WEFT_NONE ? ""
					     : weft__finding_text(f, ", which ran %s%s", weft__format_promise(f, waker),
						   weft__format_site_suffix(f, waker));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, longest_sleep->ready_ns, waker,
	    "the thread slept%s for %s, and was woken by %s%s", in,
	    weft__format_duration(f, longest_sleep->ready_ns - longest_sleep->start_ns),
	    weft__format_os_thread(f, longest_sleep->woken_by), ran);
}

/* Adds evidence of the numbers of context switches and page faults during the stall. */
static void report_counts(struct weft__finder *f, const struct weft__stall *s, const char *breakdown)
{
	const struct weft__cpu_breakdown *p = &s->breakdown;
	if (p->is_exact)
		report_switches(f, s);
	else if (p->is_known && *breakdown)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "context switches around the stall: %" PRIu64 " voluntary, %" PRIu64 " involuntary (preempted)",
		    p->voluntary_switches, p->preemptions);
	if (p->minor_faults + p->major_faults >= MIN_FAULTS || p->major_faults > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "page faults around the stall: %" PRIu64 "; %" PRIu64 " read from a disk", p->minor_faults + p->major_faults,
		    p->major_faults);
}

/* Returns whether the text names a call, such as a lock, that blocks until another thread continues. */
static bool is_lock_call(const struct weft__finder *f, uint32_t text)
{
	static const char *const calls[] = {"blocked in pthread_", "blocked in sem_", "blocked in syscall", "blocked in futex"};
	const struct weft_str call = weft_model_text(f->model, text);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (call.len >= strlen(calls[i]) && memcmp(call.ptr, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

/* Returns whether the thread of the stall may wait for another thread, because it is blocked in a lock or in an unknown
 * call. */
static bool is_waiting_for_thread(const struct weft__finder *f, const struct weft__stall *s)
{
	const uint32_t text = s->is_pause ? s->pause : s->breakdown.call;
	if (s->breakdown.is_exact || text == WEFT_NONE)
		return !s->breakdown.is_exact && !s->is_pause;
	return is_lock_call(f, text);
}

/* Returns whether another thread, which may hold what the stalled thread waits for, was active for at least half of the
 * stall. */
static bool is_other_thread_busy(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	enum { MAX_SCANNED = 4096, TIMES_LONGER = 8 };
	const int64_t least_ns = (s->end_ns - s->start_ns) / 2, from_ns = s->start_ns - TIMES_LONGER * 2 * least_ns;
	size_t i = WEFT_FIND_FIRST(p, 0, m->pause_count, m->pauses[p].start_ns >= from_ns);
	for (size_t end = i + MAX_SCANNED; i < end && i < m->pause_count && m->pauses[i].start_ns < s->end_ns - least_ns; i++)
		if (m->pauses[i].stream != s->stream && !is_lock_call(f, m->pauses[i].text) &&
		    weft_min_ns(m->pauses[i].end_ns, s->end_ns) - weft_max_ns(m->pauses[i].start_ns, s->start_ns) >= least_ns)
			return true;
	i = WEFT_FIND_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > s->start_ns + least_ns);
	for (size_t end = i + MAX_SCANNED; i < end && i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		if (r->stream != s->stream && weft_min_ns(r->on_cpu_ns, s->end_ns - r->start_ns) >= least_ns)
			return true;
	}
	return false;
}

/* Returns whether another thread was runnable without a CPU for at least half of the stall, so that a thread that waits for it
 * is not at fault. */
static bool is_other_thread_starved(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	if (s->breakdown.blocked_ns < (s->end_ns - s->start_ns) / 2 && !s->is_pause)
		return false;
	for (size_t i = WEFT_FIND_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > s->start_ns); i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		const int64_t from_ns = weft_max_ns(r->start_ns, s->start_ns), to_ns = weft_min_ns(r->end_ns, s->end_ns);
		if (r->stream != s->stream && r->preemptions > 0 && from_ns < to_ns &&
		    to_ns - from_ns - r->on_cpu_ns - weft_account_slept_ns(f->link_index.accounts, r->stream, from_ns, to_ns) >=
			(s->end_ns - s->start_ns) / 2)
			return true;
	}
	return false;
}

/* Returns whether the machine was overloaded: some thread was off CPU for long without a voluntary switch. */
static bool is_machine_busy(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < m->round_count && weft__finding_may_continue(f, i, m->round_count); i++) {
		const struct weft_round *r = &m->rounds[i];
		if (r->voluntary_switches == 0 && r->end_ns - r->start_ns - r->on_cpu_ns >= f->delays.least_ns)
			return true;
	}
	return false;
}

/* A request that was given to libuv's thread pool, or a child process that was started; an array of these is sorted by stream
 * and time. */
struct handed {
	int64_t time_ns;
	uint16_t stream;
	bool is_process;
};

/* Facts about the whole trace that the check of each stall needs. */
struct context {
	bool is_busy;
	struct handed *handed;
	size_t handed_count;
	uint32_t *threads; /* all OS threads */
	size_t thread_count;
};

static bool is_handed_over(const struct weft_promise *p)
{
	return p->kind == WEFT_KIND_WORK || p->kind == WEFT_KIND_FS || p->kind == WEFT_KIND_GETADDRINFO ||
	       p->kind == WEFT_KIND_PROCESS;
}

static int compare_handed(const void *a, const void *b)
{
	const struct handed *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->is_process, y->is_process);
}

static void gather_context(struct weft__finder *f, struct context *context)
{
	const struct weft_model *m = f->model;
	size_t count = 0, threads = 0;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		count += is_handed_over(&m->promises[p]);
		threads += weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD);
	}
	*context = (struct context){is_machine_busy(f), weft__finding_alloc(f, count, sizeof *context->handed), count,
	    weft__finding_alloc(f, threads, sizeof *context->threads), 0};
	for (uint32_t p = 1, i = 0; context->handed && context->threads && p < m->promise_count; p++) {
		if (is_handed_over(&m->promises[p]))
			context->handed[i++] = (struct handed){
			    m->promises[p].start_ns, m->promises[p].stream, m->promises[p].kind == WEFT_KIND_PROCESS};
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD))
			context->threads[context->thread_count++] = p;
	}
	if (context->handed)
		weft_sort(context->handed, count, sizeof *context->handed, compare_handed);
}

/* Returns whether a thread that this thread made meanwhile, or right before, took at least half of the stall to start, as those
 * of libuv's pool, for which its first request waits: a busy machine gives it no CPU. */
static bool is_thread_starting(const struct weft__finder *f, const struct weft__stall *s, const struct context *context)
{
	const struct weft_model *m = f->model;
	int64_t longest_ns = 0;
	for (size_t i = 0; i < context->thread_count; i++) {
		const struct weft_promise *thread = &m->promises[context->threads[i]];
		if (thread->stream != s->stream || thread->start_ns < s->start_ns - f->options.stall_ns ||
		    thread->start_ns >= s->end_ns)
			continue;
		const int64_t began_ns = thread[1].runs > thread->runs ? m->runs[thread->runs].start_ns : s->end_ns;
		longest_ns =
		    weft_max_ns(longest_ns, weft_min_ns(began_ns, s->end_ns) - weft_max_ns(thread->start_ns, s->start_ns));
	}
	return longest_ns >= (s->end_ns - s->start_ns) / 2;
}

/* Returns whether the stalled thread gave work to other threads or processes and may have waited for them.  For example, a
 * thread of the pool may have held the pool's lock meanwhile.  With `in_unknown_call`, a child process counts too: the thread
 * that starts a child process waits until the child has got a CPU. */
static bool has_handed_over(const struct context *context, const struct weft__stall *s, bool in_unknown_call)
{
	const struct handed *handed = context->handed;
	bool found = false;
	for (size_t i = WEFT_FIND_FIRST(g, 0, context->handed_count,
		 handed[g].stream > s->stream || (handed[g].stream == s->stream && handed[g].time_ns >= s->start_ns));
	     i < context->handed_count && handed[i].stream == s->stream && handed[i].time_ns <= s->end_ns && !found; i++)
		found = !handed[i].is_process || in_unknown_call;
	return found;
}

/* Returns whether the thread was blocked once, in no call that the trace names: a page fault that waits for a disk, or a lock
 * of the kernel, blocks any code like this. */
static bool is_in_unknown_sleep(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	enum { FEW_SWITCHES = 2 };
	return !s->is_pause && breakdown->is_known && !breakdown->is_exact && breakdown->call == WEFT_NONE &&
	       breakdown->voluntary_switches <= FEW_SWITCHES && breakdown->preemptions == 0 &&
	       s->end_ns - s->start_ns < ALARM_TOLD_STALLS * f->options.stall_ns &&
	       breakdown->blocked_ns >= (s->end_ns - s->start_ns) / 2;
}

/* Returns whether a busy machine may have caused the stall: the thread was off CPU, and is not known to have slept on purpose.
 */
static bool may_be_starved(const struct weft__finder *f, const struct weft__stall *s, const struct context *context)
{
	const struct weft__cpu_breakdown *breakdown = &s->breakdown;
	const uint32_t text = s->is_pause ? s->pause : breakdown->call;
	const struct weft_str call = text == WEFT_NONE ? (struct weft_str){0} : weft_model_text(f->model, text);
	if (weft_text_has_meaning(call, WEFT_MEANING_SLEEP) || s->request != WEFT_NONE)
		return false;
	if (breakdown->is_exact || f->model->round_count == 0)
		return false;
	const int64_t length_ns = s->end_ns - s->start_ns, off_ns = weft_max_ns(breakdown->off_ns, breakdown->blocked_ns);
	return (!breakdown->is_known && s->own_ns < 0) ||
	       (breakdown->is_known && length_ns - off_ns < ALARM_OWN_STALLS * f->options.stall_ns &&
		   (context->is_busy || breakdown->preemptions > 0 || breakdown->voluntary_switches == 0 ||
		       has_handed_over(context, s, text == WEFT_NONE)));
}

/* Adds evidence, and perhaps advice and doubt, for a stall in a guest whose virtual CPU did not run. */
static void blame_host(
    struct weft__finder *f, struct weft_finding *finding, const struct weft__stall *s, const struct weft_steal *steal)
{
	const int64_t length_ns = s->end_ns - s->start_ns;
	weft__evidence_add_steal(f, steal);
	if (steal->low_ns > length_ns / 2)
		finding->next = "run fewer other programs on the host, or give the guest a CPU of its own";
	if ((s->own_ns >= 0 ? s->own_ns : length_ns) - steal->low_ns >= f->options.stall_ns)
		return;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	weft__finding_doubt(f, "the host gave the guest no CPU for a part of the stall");
}

/* Returns the text for a pause: " in usleep", or " in a pause (gc)". */
static const char *format_pause(struct weft__finder *f, const struct weft__stall *s)
{
	const char *call = format_pause_call(f, s);
	return call ? weft__finding_text(f, " in %s", call)
		    : weft__finding_text(f, " in a pause (%s)", weft__format_text(f, s->pause));
}

/* Returns " (arp.c:12 in await_response)" for a site, or `other` if the site is unknown. */
static const char *format_suffix(struct weft__finder *f, uint32_t site, const char *other)
{
	char place[WEFT_NAME_BYTES];
	return *weft_name_place(f->model, site, place) ? weft__finding_text(f, " (%s)", place) : other;
}

/* Returns the site of the call in which most of the stall was spent; WEFT_NONE if there is no such call or its site is
 * unknown. */
static uint32_t get_call_site(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_interval pause = {.start_ns = s->start_ns, .stream = s->stream};
	if (s->is_pause)
		return weft_model_place(f->model, &pause);
	return s->breakdown.calls_ns >= (s->end_ns - s->start_ns) / 2 ? s->breakdown.call_site : WEFT_NONE;
}

/* Returns the function that the loop called and that blocked it; WEFT_NONE if it is unknown.  The call of the function is
 * recorded with the time of the event before it. */
static uint32_t get_callback(const struct weft__finder *f, const struct weft__stall *s)
{
	const int64_t slack_ns = f->options.stall_ns / 10;
	return s->promise == WEFT_SYSTEM
		   ? WEFT_NONE
		   : weft_model_callback(f->model, s->promise, s->start_ns - slack_ns, s->is_pause ? s->start_ns : s->end_ns);
}

/* Finds the function in which the thread was during the stall, if the thread was sampled meanwhile and did not sleep in a
 * call. */
static bool find_hot_function(struct weft__finder *f, const struct weft__stall *s, struct weft__hot_function *out)
{
	const int found = s->is_pause ? 0 : weft__hot_function_find(out, f->model, s->stream, s->start_ns, s->end_ns);
	f->no_memory |= found < 0;
	return found > 0;
}

/* Returns whether a stall that delayed no known promise is an alarm.  Such a stall is an alarm if the loop had work, and either
 * the code meant to sleep or the stall is too long to be explained by a busy machine. */
static bool is_alarm_alone(const struct weft__finder *f, const struct weft__stall *s, bool has_work)
{
	const uint32_t text = s->is_pause ? s->pause : s->breakdown.call;
	const struct weft_str call = text == WEFT_NONE ? (struct weft_str){0} : weft_model_text(f->model, text);
	const bool is_known = s->is_pause || s->request != WEFT_NONE || s->own_ns >= 0 || s->breakdown.is_known;
	return has_work && is_known &&
	       (weft_text_has_meaning(call, WEFT_MEANING_SLEEP) ||
		   s->end_ns - s->start_ns >= ALARM_TOLD_STALLS * f->options.stall_ns);
}

/* Adds evidence of how far code that runs only once got during the stall: the place where it waits next. */
static void add_next_waits(struct weft__finder *f, const struct weft__stall *s)
{
	enum { MOST = 4 };
	const struct weft_model *m = f->model;
	const char *places = "";
	if (!(m->promises[s->promise].flags & WEFT_PROMISE_INFERRED))
		return;
	uint32_t first = WEFT_NONE;
	for (uint32_t p = s->promise + 1, count = 0; p < m->promise_count && count < MOST; p++) {
		const char *site = m->promises[p].created_by == s->promise ? weft__format_site(f, p) : "";
		if (!*site || m->promises[p].start_ns < s->start_ns)
			continue;
		first = first == WEFT_NONE ? p : first;
		places = weft__finding_text(f, "%s%s%s", places, count++ ? ", called at " : "", site);
	}
	if (first != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[first].start_ns, first,
		    "the code after this wait runs on to the next wait, at %s", places);
}

/* Returns whether most of the stall was attributed to its promise only later, or may have been the time of another promise. */
static bool is_claimed(const struct weft_model *m, const struct weft__stall *s)
{
	size_t i = WEFT_FIND_FIRST(c, 0, m->claim_count, m->claims[c].end_ns > s->start_ns);
	for (; i < m->claim_count && m->claims[i].start_ns < s->end_ns; i++)
		if (m->claims[i].stream == s->stream &&
		    (weft_min_ns(m->claims[i].end_ns, s->end_ns) - weft_max_ns(m->claims[i].start_ns, s->start_ns)) >
			(s->end_ns - s->start_ns) / 2)
			return true;
	return false;
}

/* Returns whether the trace shows when each late promise was due. */
static bool are_all_due(const struct weft__late_promise *late, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < MAX_LATE; i++)
		if (late[i].due_ns == WEFT_NO_TIME)
			return false;
	return count > 0 && count <= MAX_LATE;
}

static void list_late(struct weft__finder *f, const struct weft__late_promise *late, const char *length)
{
	const char *name = weft__format_promise_at(f, late->promise), *what = late->ended ? "ends" : "is called back";
	if (late->due_ns == WEFT_NO_TIME)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, late->time_ns, late->promise,
		    "%s %s right after the stall: up to %s late", name, what, length);
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, late->time_ns, late->promise,
		    "%s %s right after the stall, %s after it was due", name, what,
		    weft__format_duration(f, late->time_ns - late->due_ns));
}

static void report_stall(struct weft__finder *f, const struct weft__stall *s, const struct behind *behind, bool has_work,
    const struct context *context)
{
	struct weft__late_promise late[MAX_LATE];
	uint32_t late_count = weft__delays_find_late(&f->delays, s, late, MAX_LATE);
	if (late_count == 0 && behind) {
		late_count = behind->count;
		memcpy(late, behind->first, sizeof late);
	}
	const bool are_due = are_all_due(late, late_count);
	bool pause = s->is_pause, nobody = s->promise == WEFT_SYSTEM;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STALL, s->promise, s->start_ns, s->end_ns);
	if (!finding)
		return;
	const char *name = nobody ? "" : weft__format_promise(f, s->promise),
		   *made_at = nobody ? "" : weft__format_site_suffix(f, s->promise);
	const uint32_t callback = get_callback(f, s);
	const uint32_t call_site = nobody ? WEFT_NONE : get_call_site(f, s);
	struct weft__hot_function hot;
	const bool is_sampled = call_site == WEFT_NONE && find_hot_function(f, s, &hot);
	const char *at =
	    format_suffix(f, call_site, format_suffix(f, is_sampled ? hot.site : WEFT_NONE, format_suffix(f, callback, made_at)));
	const char *length = weft__format_duration(f, s->end_ns - s->start_ns), *breakdown = format_breakdown(f, s);
	const char *subject = name, *pause_call = pause && !nobody ? format_pause(f, s) : format_request(f, s);
	if (pause) {
		name = weft__finding_text(f, "a pause (%s)%s%s", weft__format_text(f, s->pause), nobody ? "" : " of ", name);
		subject = nobody ? name : subject;
	}
	struct weft_steal steal;
	const bool is_stolen = !nobody && weft__finding_measure_steal(f, s->promise, s->start_ns, s->end_ns, &steal);
	const char *parts =
	    is_stolen ? join_parts(f, breakdown,
			    weft__finding_text(f, "steal time %s", weft__format_duration_range(f, steal.low_ns, steal.high_ns)))
		      : breakdown;
	if (s->request != WEFT_NONE)
		parts = "";
	if (*parts)
		parts = weft__finding_text(f, " (%s)", parts);
	finding->weight = (uint64_t)get_weight_ns(s);
	const uint32_t waiting = s->victims == 0 && late_count == 0 ? count_waiting(f, s) : 0;
	if (waiting > 0)
		finding->title = weft__finding_text(f, "%s blocked the event loop for %s%s%s: %" PRIu32 " late iteration%s%s",
		    subject, length, pause_call, parts, waiting, weft__format_plural_s(waiting), at);
	else if (s->victims > 0)
		finding->title =
		    weft__finding_text(f, "%s blocked the event loop for %s%s%s: %" PRId64 " ready promise%s lost %s%s%s",
			subject, length, pause_call, parts, s->victims, s->victims == 1 ? "" : "s",
			weft__format_duration(f, s->delay_ns), s->victims == 1 || *parts ? "" : " together", at);
	else if (late_count > 0 && are_due)
		finding->title = weft__finding_text(f, "%s blocked the event loop for %s%s%s: %" PRIu32 " promise%s came late%s",
		    subject, length, pause_call, parts, late_count, weft__format_plural_s(late_count), at);
	else if (late_count > 0)
		finding->title =
		    weft__finding_text(f, "%s blocked the event loop for %s%s%s: %" PRIu32 " promise%s may be late%s", subject,
			length, pause_call, parts, late_count, weft__format_plural_s(late_count), at);
	else
		finding->title = weft__finding_text(f, "%s blocked the event loop for %s%s%s%s%s", subject, length, pause_call,
		    parts, s->is_open ? ", until the end" : ": no promise is known to be late", at);
	finding->next = get_advice(f, s, at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise, pause ? "%s%s starts" : "%s%s starts to run", name, made_at);
	if (callback != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise, "the loop called%s for this promise",
		    weft__format_place(f, callback) + sizeof " at" - 1);
	if (call_site != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise,
		    "the code makes its longest blocking call%s", weft__format_place(f, call_site));
	if (is_sampled)
		weft__evidence_add_hot_function(f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise, &hot);
	if (s->request != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[s->request].start_ns, s->request,
		    "%s makes %s%s, and sleeps until the answer; no other callback runs meanwhile", name,
		    weft__format_promise(f, s->request), weft__format_site_suffix(f, s->request));
	if (!nobody)
		add_next_waits(f, s);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, s->end_ns, s->promise, "%s %s, %s later", s->is_open ? "the trace" : name,
	    pause || s->is_open ? "ends" : "stops", length);
	report_counts(f, s, breakdown);
	if (waiting > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, s->end_ns, WEFT_NONE,
		    "the loop then iterated %" PRIu32 " time%s without a sleep: so many events had arrived during the stall",
		    waiting, weft__format_plural_s(waiting));
	if (is_stolen)
		blame_host(f, finding, s, &steal);
	list_victims(f, s);
	for (uint32_t i = 0; i < late_count && i < MAX_LATE; i++)
		list_late(f, &late[i], length);
	if (late_count > MAX_LATE)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, late_count - MAX_LATE, "");
	if (!nobody && is_claimed(f->model, s))
		weft__finding_doubt(f, "the trace does not record for which request the code worked: weft names the request that "
				       "was answered next, or was read "
				       "first");
	const bool is_alone = s->victims == 0 && late_count == 0 && waiting == 0, is_call = pause || s->request != WEFT_NONE;
	/* A busy machine preempted the thread, or delayed what the thread waited for. */
	if (is_alone && is_call)
		; /* the call is known, and lasted at least as long as a delay that a busy machine causes */
	else if (s->own_ns >= 0 ? s->own_ns < f->options.stall_ns : f->model->round_count && !is_long(f, s)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "the thread was not on CPU during the whole stall");
	}
	if (is_waiting_for_thread(f, s) && (is_other_thread_starved(f, s) || is_thread_starting(f, s, context))) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "another thread, for which the stalled thread may have waited, got no CPU meanwhile");
	} else if (s->is_pause && is_waiting_for_thread(f, s) && !is_other_thread_busy(f, s)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "no other thread is known to have run during the stall, so perhaps none got a CPU");
	}
	if (may_be_starved(f, s, context)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(
		    f, s->breakdown.is_known
			   ? "the machine was busy, and may have delayed the thread or another thread for which it waited"
			   : "the trace does not show whether the thread was on CPU during the whole stall");
	}
	if (is_in_unknown_sleep(f, s) && s->request == WEFT_NONE) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(
		    f, "the thread slept once in no call that the trace names, so it may have waited for a page from a disk");
	}
	if (s->victims > 0)
		return;
	if (is_alone || (is_call && s->is_on_loop && is_alarm_alone(f, s, true))) {
		if (is_alone && !is_alarm_alone(f, s, has_work))
			finding->severity = WEFT_SEVERITY_INFORMATION;
		return;
	}
	const bool is_cpu_unknown = s->own_ns < 0 && !s->breakdown.is_known;
	if (are_due && is_cpu_unknown)
		weft__finding_doubt(f, "the trace does not show whether the thread was on CPU during the whole stall");
	else if (!are_due)
		weft__finding_doubt(f, is_cpu_unknown
					   ? "the trace does not show when the late promises were due, nor whether the "
					     "thread was on CPU during the whole stall"
					   : "the trace does not show when the late promises were due");
	/* A busy machine can preempt a thread for as long as this stall. */
	if (!is_long(f, s))
		finding->severity = WEFT_SEVERITY_INFORMATION;
}

/* Returns whether the run belongs to a spin, which consists of many calls and is reported as a spin. */
static bool is_spinning(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	enum { MAX_SCANNED = 64 }; /* a spin has about 20 records in the trace */
	size_t first = WEFT_FIND_FIRST(i, 0, m->spin_count, m->spins[i].time_ns >= s->start_ns);
	for (size_t i = first; i < m->spin_count && i < first + MAX_SCANNED && m->spins[i].time_ns <= s->end_ns; i++)
		if (m->spins[i].promise == s->promise && !s->is_pause)
			return true;
	return false;
}

/* Returns whether p is the promise of the stall, or the thread or loop that runs that promise. */
static bool is_stalled(const struct weft__finder *f, uint32_t p, const struct weft__stall *s)
{
	if (p == s->promise || p == WEFT_NONE || !weft_kind_has(f->model->promises[p].kind, WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP))
		return p == s->promise;
	const uint32_t run = weft_run_before(f->model, p, INT64_MAX);
	return run != WEFT_NONE && f->model->run_streams && f->model->run_streams[run] == s->stream;
}

/* Returns the number of the finding about the end of the trace whose wait chain contains the promise of the stall: the call
 * that blocks the promise never ends.  SIZE_MAX: there is none. */
static size_t find_end(const struct weft__finder *f, const struct weft__stall *s)
{
	for (size_t i = 0, line = 0; s->is_open && i < f->findings.count; i++) {
		const struct weft_finding *finding = &f->findings.items[i];
		const bool is_crash = finding->kind == WEFT_FINDING_CRASH &&
				      (finding->severity == WEFT_SEVERITY_ALARM || !weft__stall_is_told(f, s)),
			   is_end = is_crash || finding->kind == WEFT_FINDING_DEADLOCK || finding->kind == WEFT_FINDING_CYCLE ||
				    finding->kind == WEFT_FINDING_HANG;
		bool is_in_chain = is_stalled(f, finding->promise, s) || is_stalled(f, finding->root, s);
		for (const size_t end = line + finding->evidence_count; line < end; line++)
			is_in_chain |= f->evidence.items[line].role == WEFT_EVIDENCE_CHAIN &&
				       is_stalled(f, f->evidence.items[line].promise, s);
		if (is_end && is_in_chain)
			return i;
	}
	return SIZE_MAX;
}

/* Marks the newest finding, a stall, as covered if another finding explains it.  A run that lasted so long is a stall without
 * an end, not the place of a crash. */
static void cover_at_end(struct weft__finder *f, const struct weft__stall *s)
{
	const size_t stall = f->findings.count - 1, end = find_end(f, s);
	if (end != SIZE_MAX)
		weft__finding_cover(f, stall, end);
	for (size_t i = 0; i < stall && s->is_open && end == SIZE_MAX; i++)
		if (f->findings.items[i].kind == WEFT_FINDING_CRASH && f->findings.items[i].promise == s->promise)
			weft__finding_cover(f, i, stall);
}

bool weft__stall_is_told(const struct weft__finder *f, const struct weft__stall *s)
{
	return s->is_on_loop && s->promise != WEFT_SYSTEM && !(s->is_open && f->model->is_whole) &&
	       !weft_kind_has(f->model->promises[s->promise].kind, WEFT_TRAIT_THREAD) &&
	       s->end_ns - s->start_ns >= TOLD_STALLS * f->options.stall_ns;
}

static bool is_work(const struct weft_promise *p)
{
	return !weft_kind_has(p->kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | WEFT__TRAITS_HELD | WEFT_TRAIT_CONDITION);
}

static bool spans(const struct weft__finder *f, uint32_t p, const struct weft__stall *s)
{
	return f->model->promises[p].start_ns < s->start_ns && f->link_index.ended_ns[p] >= s->end_ns;
}

/* Returns, by stall, whether the stalled loop had other work: a timer, a connection or a request that was pending all the time.
 * The caller frees the array. */
static bool *find_work(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const struct weft__stall *stalls = f->delays.stalls.items;
	const size_t count = f->delays.stalls.count;
	int32_t *difference = weft__finding_alloc(f, count + 1, sizeof *difference);
	bool *has_work = weft__finding_alloc(f, count, sizeof *has_work);
	for (uint32_t p = 1; difference && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		const struct weft_promise *promise = &m->promises[p];
		if (!is_work(promise))
			continue;
		const size_t first = WEFT_FIND_FIRST(i, 0, count,
		    stalls[i].stream > promise->stream ||
			(stalls[i].stream == promise->stream && stalls[i].start_ns > promise->start_ns));
		const size_t end = WEFT_FIND_FIRST(
		    i, first, count, stalls[i].stream > promise->stream || stalls[i].end_ns > f->link_index.ended_ns[p]);
		difference[first]++;
		difference[end]--;
	}
	int32_t spanning = 0;
	for (size_t i = 0; difference && has_work && i < count; i++) {
		const uint32_t p = stalls[i].promise;
		spanning += difference[i];
		has_work[i] =
		    spanning > (is_work(&m->promises[p]) && m->promises[p].stream == stalls[i].stream && spans(f, p, &stalls[i]));
	}
	free(difference);
	return has_work;
}

/* Returns, by stream, the start of the first sleep of its first loop; INT64_MIN if the trace does not show the start of that
 * loop, or no such sleep.  The caller frees the array. */
static int64_t *find_first_sleeps(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t streams = m->trace->stream_count;
	int64_t *loop_ns = weft__finding_alloc(f, streams, sizeof *loop_ns);
	int64_t *slept_ns = weft__finding_alloc(f, streams, sizeof *slept_ns);
	for (size_t s = 0; loop_ns && slept_ns && s < streams; s++) {
		loop_ns[s] = INT64_MAX;
		slept_ns[s] = INT64_MIN;
	}
	for (uint32_t p = 1; loop_ns && slept_ns && p < m->promise_count; p++)
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) && m->promises[p].stream < streams)
			loop_ns[m->promises[p].stream] = weft_min_ns(loop_ns[m->promises[p].stream], m->promises[p].start_ns);
	for (size_t i = 0; loop_ns && slept_ns && i < m->sleep_count; i++) {
		const uint16_t s = m->sleeps[i].stream;
		if (s < streams && slept_ns[s] == INT64_MIN && loop_ns[s] >= 0 && m->sleeps[i].start_ns >= loop_ns[s])
			slept_ns[s] = m->sleeps[i].start_ns;
	}
	free(loop_ns);
	return slept_ns;
}

/* Returns whether a promise is one that programs create and start to run before anything happens. */
static bool is_starter(const struct weft_promise *p)
{
	return weft_kind_has(p->kind, WEFT_TRAIT_LOOP) || p->kind == WEFT_KIND_LISTEN;
}

/* Returns whether the stall is the start of a program whose loop has not slept yet, and no promise is known to be late. */
static bool is_start(const struct weft__finder *f, const struct weft__stall *s, const int64_t *slept_ns)
{
	struct weft__late_promise late[MAX_LATE];
	if (!slept_ns || !is_starter(&f->model->promises[s->promise]) || s->stream >= f->model->trace->stream_count ||
	    s->end_ns > slept_ns[s->stream] || s->victims > 0 || s->end_ns - s->start_ns >= TOLD_STALLS * f->options.stall_ns)
		return false;
	return !are_all_due(late, weft__delays_find_late(&f->delays, s, late, MAX_LATE));
}

void weft__find_stall(struct weft__finder *f)
{
	const struct weft__delays *d = &f->delays;
	const struct weft__stall **order = weft__finding_alloc(f, d->stalls.count, sizeof *order);
	bool *is_alone = weft__finding_alloc(f, d->stalls.count, sizeof *is_alone), *has_loop = NULL, *has_work = NULL;
	struct behind *behind = NULL;
	size_t count = 0;
	struct weft__late_promise unused[1];
	int64_t *slept_ns = d->stalls.count > 0 ? find_first_sleeps(f) : NULL;
	for (size_t i = 0; order && is_alone && i < d->stalls.count && weft__finding_may_continue(f, i, d->stalls.count); i++) {
		const struct weft__stall *s = &d->stalls.items[i];
		if (is_spinning(f, s) || is_start(f, s, slept_ns))
			continue;
		if (s->victims > 0 || weft__delays_find_late(d, s, unused, 1) > 0)
			order[count++] = s;
		else if (is_long(f, s) && count_waiting(f, s) >= MIN_WAITING)
			order[count++] = s;
		else if ((is_long(f, s) || weft__stall_is_told(f, s)) && (has_loop || (has_loop = find_loops(f))))
			is_alone[i] = has_loop[s->stream];
	}
	if (has_loop && (behind = find_late_runners(f, is_alone)))
		for (size_t i = 0; i < d->stalls.count; i++) {
			const bool is_told = is_alone[i] && weft__stall_is_told(f, &d->stalls.items[i]);
			if (behind[i].count > 0 || is_told)
				order[count++] = &d->stalls.items[i];
			if (is_told && !has_work)
				has_work = find_work(f);
		}
	if (order)
		weft_sort(order, count, sizeof *order, compare_weights);
	struct context context = {0};
	if (count > 0)
		gather_context(f, &context);
	for (size_t i = 0; !f->no_memory && i < count && weft__finding_may_continue(f, i, count); i++) {
		const size_t at = (size_t)(order[i] - d->stalls.items);
		const size_t told = f->findings.count;
		report_stall(f, order[i], behind ? &behind[at] : NULL, has_work && has_work[at], &context);
		if (f->findings.count > told)
			cover_at_end(f, order[i]);
	}
	free(context.handed);
	free(context.threads);
	free(slept_ns);
	free(order);
	free(is_alone);
	free(has_loop);
	free(has_work);
	free(behind);
	weft__lock_held_find(f);
}
