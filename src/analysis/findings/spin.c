/* spin.c: reports code that is called again and again without a sleep, such as an idle callback that is never stopped, or a
 * file descriptor that is always ready and never read.
 *
 * The recorder writes the number of calls each time the number has doubled.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/known_strings.h"
#include "base/search.h"
#include "base/sort.h"

enum {
	MIN_CALLS = 8192,
	MAX_CALL_NS = 50000 /* longest average CPU time of a call of a spin; longer calls do useful work in small pieces */
};

/* Calls of one promise without a sleep between them. */
struct burst {
	const struct weft_spin *first, *last;
};

static int compare_spins(const void *a, const void *b)
{
	const struct weft_spin *x = *(const struct weft_spin *const *)a, *y = *(const struct weft_spin *const *)b;
	if (x->promise != y->promise)
		return x->promise < y->promise ? -1 : 1;
	return (x > y) - (x < y);
}

static int64_t get_call_ns(const struct burst *b)
{
	uint64_t calls = b->last->calls - b->first->calls;
	return calls ? (int64_t)((uint64_t)(b->last->time_ns - b->first->time_ns) / calls) : 0;
}

/* Returns the time between the first and the last recorded call in which the thread had no CPU, as far as it is known. */
static int64_t get_off_cpu_ns(const struct weft_model *m, const struct burst *b)
{
	int64_t off_ns = 0;
	for (size_t i = WEFT_FIND_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > b->first->time_ns); i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		const int64_t start_ns = r->start_ns > b->first->time_ns ? r->start_ns : b->first->time_ns;
		const int64_t end_ns = r->end_ns < b->last->time_ns ? r->end_ns : b->last->time_ns;
		const int64_t lost_ns = r->end_ns - r->start_ns - r->on_cpu_ns;
		if (r->stream == m->promises[b->last->promise].stream && end_ns > start_ns && lost_ns > 0)
			off_ns += lost_ns < end_ns - start_ns ? lost_ns : end_ns - start_ns;
	}
	return off_ns;
}

/* On a busy machine, the thread of a spin often waits for a CPU, so only its time on CPU counts. */
static bool is_spin(const struct weft_model *m, const struct burst *b)
{
	if (!b->first || b->last == b->first || b->last->calls < MIN_CALLS)
		return false;
	const int64_t call_ns = get_call_ns(b);
	if (call_ns <= MAX_CALL_NS)
		return true;
	const uint64_t calls = b->last->calls - b->first->calls;
	return calls && call_ns - get_off_cpu_ns(m, b) / (int64_t)calls <= MAX_CALL_NS;
}

/* Estimates the time of the first call of a spin.  Early calls may have been faster than the measured calls, so the estimate is
 * not before the creation of the promise. */
static int64_t estimate_start(const struct weft_model *m, const struct burst *b)
{
	int64_t start = b->first->time_ns - get_call_ns(b) * (int64_t)b->first->calls,
		since = m->promises[b->last->promise].start_ns;
	since = since > 0 ? since : 0;
	return start > since ? start : since;
}

/* Marks stalls as covered by the newest finding, a spin: the recorder writes few events of a spinning loop, so that its promise
 * seems to run without a break.
 */
static void cover_stalls(struct weft__finder *f, uint32_t p, int64_t start_ns)
{
	for (size_t i = 0; i + 1 < f->findings.count; i++) {
		const struct weft_finding *stall = &f->findings.items[i];
		if (stall->kind == WEFT_FINDING_STALL && stall->end_ns > start_ns &&
		    (stall->promise == p || (weft_kind_has(f->model->promises[stall->promise].kind, WEFT_TRAIT_LOOP) &&
						f->model->promises[stall->promise].stream == f->model->promises[p].stream)))
			weft__finding_cover(f, i, f->findings.count - 1);
	}
}

/* Returns the listener that could accept no connection during the spin, for lack of file descriptors; WEFT_NONE if there was
 * none.  *time_ns is the time of the first failure. */
static uint32_t find_full_listener(const struct weft__finder *f, const struct burst *b, int64_t start_ns, int64_t *time_ns)
{
	static const char text[] = WEFT_STRING_NO_DESCRIPTORS;
	const struct weft_model *m = f->model;
	for (uint32_t p = 1; p < m->promise_count; p++)
		for (uint32_t i = m->promises[p].labels; m->promises[p].kind == WEFT_KIND_LISTEN && i < m->promises[p + 1].labels;
		     i++) {
			const struct weft_label *label = &m->labels[i];
			if (label->is_counter || label->time_ns < start_ns || label->time_ns > b->last->time_ns ||
			    m->promises[p].stream != m->promises[b->last->promise].stream ||
			    !weft_str_equal(weft_model_text(m, label->text), (struct weft_str){text, sizeof text - 1}))
				continue;
			*time_ns = label->time_ns;
			return p;
		}
	return WEFT_NONE;
}

static void report_spin(struct weft__finder *f, const struct burst *b)
{
	const struct weft_model *m = f->model;
	uint32_t p = b->last->promise;
	int64_t start = estimate_start(m, b), end = b->last->time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SPIN, p, start, end);
	if (!finding)
		return;
	cover_stalls(f, p, start);
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *each = weft__format_duration(f, get_call_ns(b));
	finding->weight = b->last->calls;
	const bool is_loop = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP);
	const char *time = weft__format_duration(f, end - start);
	int64_t failed_ns;
	const uint32_t full = is_loop ? find_full_listener(f, b, start, &failed_ns) : WEFT_NONE;
	if (full != WEFT_NONE)
		finding->title =
		    weft__finding_text(f, "%s iterated %" PRIu64 " times in %s without a sleep: accept fails on %s%s", name,
			b->last->calls, time, weft__format_promise_id(f, full), at);
	else if (is_loop)
		finding->title = weft__finding_text(
		    f, "%s iterated %" PRIu64 " times in %s, and its thread never slept%s", name, b->last->calls, time, at);
	else
		finding->title = weft__finding_text(
		    f, "%s was called %" PRIu64 " times in %s, and its thread never slept%s", name, b->last->calls, time, at);
	finding->next =
	    "let the promise wait for an event: stop the idle callback, read or close the descriptor, or give the timer a time";
	if (full != WEFT_NONE)
		finding->next =
		    "close connections, raise the limit of open files, or stop listening until a connection is closed";
	weft__evidence_add_creation(f, p);
	if (full != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, failed_ns, full,
		    "accept fails on %s%s: too many open files; the connection stays ready", weft__format_promise(f, full),
		    weft__format_site_suffix(f, full));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, start, p,
	    is_loop ? "%s begins an iteration, and the next one right after it"
		    : "%s is called, and called again as soon as it returns",
	    name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end, p,
	    is_loop ? "%s has iterated %" PRIu64 " times, once per %s" : "%s has been called %" PRIu64 " times, once per %s",
	    name, b->last->calls, each);
	/* The next event would have recorded twice as many calls. */
	if (weft_model_until(m, p) - end > 2 * (end - start))
		weft__finding_doubt(f, "the calls stopped by themselves, so the code may have done its work in small pieces");
}

/* Reports the spins of loops, or the spins of all other promises; returns the number of findings. */
static size_t report_spins(struct weft__finder *f, const struct weft_spin **order, bool of_loops)
{
	const struct weft_model *m = f->model;
	size_t count = 0, reported = 0;
	for (size_t i = 0; i < m->spin_count; i++)
		if (weft_kind_has(m->promises[m->spins[i].promise].kind, WEFT_TRAIT_LOOP) == of_loops)
			order[count++] = &m->spins[i];
	weft_sort(order, count, sizeof *order, compare_spins);
	struct burst burst = {0}, worst = {0};
	for (size_t i = 0; i <= count && weft__finding_may_continue(f, i, count); i++) {
		const struct weft_spin *s = i < count ? order[i] : NULL;
		bool is_other = !s || !burst.last || s->promise != burst.last->promise;
		if (is_other || s->calls <= burst.last->calls) {
			if (is_spin(f->model, &burst) && (!worst.first || burst.last->calls > worst.last->calls))
				worst = burst;
			burst.first = s;
		}
		if (is_other) {
			if (worst.first) {
				report_spin(f, &worst);
				reported++;
			}
			worst = (struct burst){0};
		}
		burst.last = s;
	}
	return reported;
}

/* A trace of `weft record` also has the handle that keeps a loop awake, which explains more than the loop itself: loops are
 * reported only if no other promise spins. */
void weft__find_spin(struct weft__finder *f)
{
	const struct weft_spin **order = weft__finding_alloc(f, f->model->spin_count, sizeof *order);
	if (order && report_spins(f, order, false) == 0)
		report_spins(f, order, true);
	free(order);
}
