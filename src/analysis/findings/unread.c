/* unread.c: reports data that another process had sent and that this process never read, and data that a program sent to itself.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/remote_waits.h"
#include "analysis/index/requests.h"
#include "base/search.h"

bool weft__unread_report(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	const uint32_t root = finding->root;
	const struct weft_connection_end *own = weft__remote_connection_end(m, root),
					 *peer = own ? weft__remote_connection_end(m, own->peer) : NULL;
	if (!peer || peer->unread_ns == INT64_MAX)
		return false;
	const char *name = weft__format_promise(f, root), *at = weft__format_site_suffix(f, root);
	const char *writer = weft__format_promise(f, peer->promise);
	const int64_t age_ns = weft_model_until(m, peer->promise) - peer->unread_ns;
	finding->title =
	    weft__finding_text(f, "%s: %s%s never read what %s%s had sent", what, name, weft__format_host_suffix(f, root),
		weft__format_promise_id(f, peer->promise), weft__format_host_suffix(f, peer->promise));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, peer->unread_ns, peer->by == WEFT_NONE ? peer->promise : peer->by,
	    "%" PRIu64 " bytes are written to %s, and not read at the other end for %s, until the end of the trace",
	    peer->unread_bytes, writer, weft__format_duration(f, age_ns));
	if (own->received_ns > INT64_MIN)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, own->received_ns, root, "%s reads for the last time", name);
	weft__evidence_add_creation(f, root);
	finding->next = weft__finding_text(f, "find out why no read was started on %s%s, or why it was stopped", name, at);
	return true;
}

/* ---- Both ends in one program ---- */

/* Returns whether the connection's thread is awake, or sleeps in a call of the program and not in its loop. */
static bool is_away(const struct weft__finder *f, uint16_t stream)
{
	const struct weft_interval *sleep = weft__hang_thread_sleep_at_end(f->model, stream);
	return !sleep || f->blocked_at_end[stream] || weft_model_call(f->model, sleep) != WEFT_NONE;
}

/* Returns whether the reader may read later: its thread is not in its loop, has begun something since its last read that is
 * pending, or waits for an answer of another program. */
static bool has_work(const struct weft__finder *f, const struct weft_connection_end *reader)
{
	const struct weft_model *m = f->model;
	const uint16_t stream = m->promises[reader->promise].stream;
	bool has_work = is_away(f, stream);
	for (size_t i = 0; i < f->wait_graph.pending.count && !has_work; i++) {
		const struct weft_promise *p = &m->promises[f->wait_graph.pending.items[i]];
		has_work = p->stream == stream && p->start_ns >= reader->received_ns && p->kind != WEFT_KIND_STREAM_READ &&
			   !weft_kind_has(p->kind, WEFT__TRAITS_LASTING);
	}
	for (size_t i = 0; i < m->request_count && !has_work; i++)
		has_work = m->requests[i].stream == stream && m->requests[i].is_question &&
			   weft_request_until(m, &m->requests[i]) == WEFT_NEVER &&
			   weft_other_end_of(m, m->requests[i].connection) == WEFT_NONE;
	return has_work;
}

/* Returns whether an end of a connection has waited long for an answer to data that the other end, in the same program, has not
 * read.  It has got all earlier answers. */
static bool is_left_unread(const struct weft__finder *f, const struct weft_connection_end *writer)
{
	enum { LONG_STALLS = 100 };
	const struct weft_model *m = f->model;
	const uint32_t p = writer->promise;
	return writer->unread_ns != INT64_MAX && writer->received_ns != INT64_MIN && writer->received_ns < writer->unread_ns &&
	       weft_part_of(m, p) == weft_part_of(m, writer->peer) && f->link_index.ended_ns[p] == WEFT_NEVER &&
	       f->link_index.ended_ns[writer->peer] == WEFT_NEVER && f->idle_at_end[m->promises[p].stream] &&
	       weft_model_until(m, p) - writer->unread_ns >= LONG_STALLS * f->options.stall_ns;
}

static void report_left(
    struct weft__finder *f, const struct weft_connection_end *reader, const struct weft_connection_end *writer)
{
	const struct weft_model *m = f->model;
	const uint32_t p = reader->promise;
	const size_t at_finding = f->findings.count;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, writer->unread_ns, weft_model_until(m, p));
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	finding->title = weft__finding_text(f, "%s has left %" PRIu64 " bytes of its peer unread for %s%s", name,
	    writer->unread_bytes, weft__format_duration(f, weft_model_until(m, p) - writer->unread_ns), at);
	finding->next = weft__finding_text(f, "read until the call would wait, and keep watching the descriptor for more%s", at);
	finding->weight = 1;
	/* A part of the unread write may have been read. */
	const bool is_part = reader->received_ns > writer->unread_ns;
	if (reader->received_ns != INT64_MIN && !is_part)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, reader->received_ns, p, "%s reads for the last time", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, writer->unread_ns, writer->promise,
	    "%s%s writes bytes that are not read before the end", weft__format_promise(f, writer->promise),
	    weft__format_site_suffix(f, writer->promise));
	if (is_part)
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, reader->received_ns, p, "%s reads for the last time, a part of them", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, writer->unread_ns, writer->promise, "%s waits for an answer",
	    weft__format_promise(f, writer->promise));
	weft__finding_doubt_part(f, p, true);
	for (size_t i = 0; i < at_finding; i++)
		if (f->findings.items[i].kind == WEFT_FINDING_UNANSWERED && f->findings.items[i].promise == p)
			weft__finding_cover(f, i, at_finding);
}

void weft__unread_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < m->end_count && !m->is_whole && weft__finding_may_continue(f, i, m->end_count); i++) {
		const struct weft_connection_end *writer = &m->ends[i];
		const size_t at = WEFT_FIND_FIRST(k, 0, m->end_count, m->ends[k].promise >= writer->peer);
		if (is_left_unread(f, writer) && at < m->end_count && m->ends[at].promise == writer->peer &&
		    !has_work(f, &m->ends[at]))
			report_left(f, &m->ends[at], writer);
	}
}
