/* reconnects.c: reports connections that were made for one request each, although an earlier one could have carried the request.
 *
 * A connection could have been used again if it had its answer before the next one to the same address was made.  Connections
 * that are made at once for requests side by side are no fault.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/known_strings.h"

enum {
	MIN_CONNECTIONS = 16, /* fewer are no pattern */
	TIMES_REUSED = 8      /* least ratio of connections with one request to those with more */
};

/* Connections that the program made to one address. */
struct address {
	uint32_t single, reused;                /* connections with one request, and with more */
	uint32_t late;                          /* those with one request that were made after an earlier one had its answer */
	uint32_t first, last;                   /* of those with one request */
	int64_t first_answered_ns, answered_ns; /* the first answer of `first`; the earliest answer of all */
	int64_t making_ns, total_ns;            /* until the requests, and until the answers; of all together */
};

/* Returns whether the program made the connection, and the trace has its address. */
static bool is_made(const struct weft__finder *f, uint32_t p)
{
	const uint32_t label = weft__promise_types_label(&f->types, p);
	return f->types.kinds[p] == WEFT_KIND_CONNECTION && label != WEFT_NONE &&
	       weft__has_complete_history(f->completeness, f->model, p) &&
	       weft_text_starts_with(weft_model_text(f->model, label), WEFT_STRING_TO);
}

/* Adds a connection with its requests. */
static void add_connection(const struct weft__finder *f, struct address *of, const struct weft_request *requests, size_t count)
{
	const uint32_t p = requests[0].connection;
	const int64_t start_ns = f->model->promises[p].start_ns;
	if (!requests[0].is_question || requests[0].answered_ns == WEFT_NEVER)
		return;
	if (count > 1) {
		of->reused++;
		return;
	}
	if (of->single++ == 0) {
		of->first = p;
		of->first_answered_ns = of->answered_ns = requests[0].answered_ns;
	}
	of->late += start_ns >= of->answered_ns;
	of->last = p;
	of->answered_ns = weft_min_ns(of->answered_ns, requests[0].answered_ns);
	of->making_ns += requests[0].asked_ns - start_ns;
	of->total_ns += requests[0].answered_ns - start_ns;
}

static void report_address(struct weft__finder *f, const struct address *of)
{
	const struct weft_model *m = f->model;
	const uint32_t p = of->first, last = of->last;
	const int64_t start_ns = m->promises[p].start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_RECONNECTS, p, start_ns, weft_account_end_ns(m, last));
	if (!finding)
		return;
	const char *at = weft__format_site_suffix(f, p), *type = weft__format_type(f, p);
	finding->weight = of->single;
	finding->title = weft__finding_text(f, "%" PRIu32 " connections %s had one request each: making them took %s of %s%s",
	    of->single, type, weft__format_duration(f, of->making_ns), weft__format_duration(f, of->total_ns), at);
	finding->next = weft__finding_text(f, "keep a connection open, and send the next request on it%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, of->first_answered_ns, p, "%s has its only answer", weft__format_promise_id(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[last].start_ns, last, "%s is the last to be made",
	    weft__format_promise_id(f, last));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "%" PRIu32 " of them were made when an earlier one had its answer", of->late);
	if (of->reused > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " other%s to this address had more than one request", of->reused,
		    weft__format_plural_s(of->reused));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not show whether the peer would keep a connection open");
}

void weft__find_reconnects(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct address *by_type =
	    m->request_count < MIN_CONNECTIONS ? NULL : weft__finding_alloc(f, f->types.items.count, sizeof *by_type);
	/* The requests are sorted by connection, and connections are numbered in the order in which they were made. */
	for (size_t i = 0, end; by_type && i < m->request_count && weft__finding_may_continue(f, i, m->request_count); i = end) {
		const uint32_t p = m->requests[i].connection;
		for (end = i; end < m->request_count && m->requests[end].connection == p; end++)
			;
		if (is_made(f, p))
			add_connection(f, &by_type[f->types.of[p]], &m->requests[i], end - i);
	}
	for (size_t t = 0; by_type && !f->no_memory && t < f->types.items.count; t++) {
		const struct address *of = &by_type[t];
		if (of->single >= MIN_CONNECTIONS && of->reused <= of->single / TIMES_REUSED && of->late > of->single / 2)
			report_address(f, of);
	}
	free(by_type);
}
