/* reconnects.c: reports connections that carried one request each although an earlier connection could have carried the
 * request.
 *
 * An earlier connection could have carried the request if its own answer had come to the same thread, and if the program closed
 * it soon after that answer.  A pool that drops a connection after a long idle time is no fault.  A connection that the peer
 * closed cannot be used again.  Connections are needed if their requests are in progress at the same time.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/known_strings.h"

enum {
	MIN_CONNECTIONS = 16, /* fewer are no pattern */
	TIMES_OTHERS = 8,     /* least ratio of connections with one request to requests on reused connections */
	MIN_IDLE_STALLS = 10  /* shortest idle time after the answer, in stall limits, of a connection that may be in a pool */
};

/* The connections that one thread made to one address. */
struct address {
	struct weft__span *single; /* connections with one request each, in the order of creation */
	uint32_t count;
	uint32_t others; /* requests on other connections */
	uint32_t late;   /* number of connections that were unnecessary because of an earlier connection */
};

/* Returns whether the program made the connection of a request, and the trace has its address and its first request. */
static bool is_made(const struct weft__finder *f, const struct weft_request *first)
{
	const uint32_t p = first->connection, label = weft__promise_types_label(&f->types, p);
	return first->is_question && f->types.kinds[p] == WEFT_KIND_CONNECTION && label != WEFT_NONE &&
	       weft__has_complete_history(f->completeness, f->model, p) &&
	       weft_text_starts_with(weft_model_text(f->model, label), WEFT_STRING_TO);
}

/* Returns whether the program read that the peer had closed the connection. */
static bool has_read_end(const struct weft__finder *f, uint32_t p)
{
	const struct weft_str end = {WEFT_STRING_END, sizeof WEFT_STRING_END - 1};
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.out[i]];
		const uint32_t label = link->kind == WEFT_LINK_READ ? weft_first_label(f->model, link->to) : WEFT_NONE;
		if (label != WEFT_NONE && weft_str_equal(weft_model_text(f->model, label), end))
			return true;
	}
	return false;
}

/* Returns whether the program gave up a connection that it could have used again: it never closed the connection, or closed it
 * soon after the answer and before the peer did. */
static bool is_given_up(const struct weft__finder *f, const struct weft_request *only)
{
	const struct weft_model *m = f->model;
	const uint32_t p = only->connection;
	const int64_t start_ns = m->promises[p].start_ns, ended_ns = f->link_index.ended_ns[p];
	if (only->answered_ns == WEFT_NEVER || has_read_end(f, p))
		return false;
	return ended_ns == WEFT_NEVER ||
	       ended_ns - only->answered_ns <= weft_max_ns(only->answered_ns - start_ns, MIN_IDLE_STALLS * f->options.stall_ns);
}

/* Gathers the connections by address and thread as spans from the creation to the first answer.  The number of a span is the
 * number of requests on its connection, or 0 if the program gave up the connection after its only request. */
static void gather_connections(struct weft__finder *f, weft__spans_vec *made)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0, end; i < m->request_count && weft__finding_may_continue(f, i, m->request_count); i = end) {
		const uint32_t p = m->requests[i].connection;
		for (end = i; end < m->request_count && m->requests[end].connection == p; end++)
			;
		if (!is_made(f, &m->requests[i]))
			continue;
		const uint64_t group = (uint64_t)f->types.of[p] << 16 | m->promises[p].stream;
		const bool is_single = end - i == 1 && is_given_up(f, &m->requests[i]);
		weft__spans_add(f, made,
		    (struct weft__span){
			group, m->promises[p].start_ns, m->requests[i].answered_ns, p, is_single ? 0 : (uint32_t)(end - i)});
	}
	weft__spans_sort(made);
}

/* Moves the connections with one request to the front of the group of connections. */
static struct address measure_address(struct weft__finder *f, struct weft__span *group, size_t count)
{
	struct address of = {.single = group};
	for (size_t i = 0; i < count; i++) {
		of.others += group[i].number;
		if (group[i].number == 0)
			group[of.count++] = group[i];
	}
	of.late = of.count - weft__spans_most_at_once(f, group, of.count);
	return of;
}

static void report_address(struct weft__finder *f, const struct address *of)
{
	const struct weft__span *first = &of->single[0], *last = &of->single[of->count - 1];
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_RECONNECTS, first->promise, first->start_ns, last->end_ns);
	if (!finding)
		return;
	const char *at = weft__format_site_suffix(f, first->promise);
	finding->weight = of->late;
	finding->title = weft__finding_text(f,
	    "%" PRIu32 " connections %s had one request each: %" PRIu32 " were made after the answer on an earlier one%s",
	    of->count, weft__format_type(f, first->promise), of->late, at);
	finding->next = weft__finding_text(f, "keep a connection open, and send the next request on it%s", at);
	weft__evidence_add_creation(f, first->promise);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, first->end_ns, first->promise, "%s receives its only answer",
	    weft__format_promise_id(f, first->promise));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, last->start_ns, last->promise, "%s is made last", weft__format_promise_id(f, last->promise));
	if (of->others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " request%s to this address went over other connections", of->others,
		    weft__format_plural_s(of->others));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not show whether the peer would keep a connection open");
}

void weft__find_reconnects(struct weft__finder *f)
{
	weft__spans_vec made = {0};
	if (f->model->request_count >= MIN_CONNECTIONS)
		gather_connections(f, &made);
	for (size_t i = 0, end; !f->no_memory && i < made.count; i = end) {
		end = weft__spans_group_end(&made, i);
		if (end - i < MIN_CONNECTIONS)
			continue;
		const struct address of = measure_address(f, &made.items[i], end - i);
		if (!f->no_memory && of.count >= MIN_CONNECTIONS && of.others <= of.count / TIMES_OTHERS &&
		    of.late > of.count / 2)
			report_address(f, &of);
	}
	weft_vec_free(&made);
}
