/* sequence.c: reports answers of the program that took long because it asked others one question after the other meanwhile.
 *
 * From the read of a request to the write of its answer, a thread may ask questions on other connections.  The trace does not
 * tell whether a question needs the answer of the one before, so this is information.  Two requests that a thread serves at the
 * same time may share its questions, so they do not count.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/sort.h"

enum {
	MIN_QUESTIONS = 8,
	MIN_SHARE_DIVISOR = 2 /* the questions must take at least this part of the time */
};

/* A request that the program served, or a question that it asked: from the read of the request, or the write of the question, to
 * the answer. */
struct step {
	int64_t start_ns, end_ns;
	uint32_t connection;
	uint16_t stream;
	bool is_question;
};

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->is_question, y->is_question)
										    ?: WEFT_ORDER(x->connection, y->connection);
}

/* Writes the requests that were served, and the questions that were answered, to `out`, which has the capacity of
 * model->request_count; returns how many. */
static size_t gather_steps(const struct weft_model *m, struct step *out)
{
	size_t count = 0;
	for (size_t i = 0; i < m->request_count; i++) {
		const struct weft_request *r = &m->requests[i];
		if (r->is_question && r->answered_ns != WEFT_NEVER)
			out[count++] = (struct step){r->asked_ns, r->answered_ns, r->connection, r->stream, true};
		else if (!r->is_question && r->heard_ns != INT64_MIN)
			out[count++] = (struct step){r->heard_ns, r->asked_ns, r->connection, r->stream, false};
	}
	weft_sort(out, count, sizeof *out, compare_steps);
	return count;
}

/* The questions of one served request. */
struct questions {
	uint32_t count;
	int64_t waited_ns, until_ns; /* time of all together; the latest answer */
	const struct step *first, *last;
	bool is_mixed; /* two questions, or two served requests, at the same time */
};

/* Follows the steps after served[0] that begin before it ends. */
static struct questions follow_questions(const struct step *served, const struct step *end)
{
	struct questions all = {.until_ns = INT64_MIN};
	for (const struct step *s = served + 1; s < end && s->stream == served->stream && s->start_ns <= served->end_ns; s++) {
		if (!s->is_question || s->start_ns < all.until_ns) {
			all.is_mixed = true;
			break;
		}
		if (s->end_ns > served->end_ns)
			continue; /* the answer does not need it */
		all.first = all.count++ == 0 ? s : all.first;
		all.last = s;
		all.until_ns = s->end_ns;
		all.waited_ns += s->end_ns - s->start_ns;
	}
	return all;
}

static void report_sequence(struct weft__finder *f, const struct step *served, const struct questions *all)
{
	const uint32_t p = served->connection, asked = all->first->connection;
	const int64_t length_ns = served->end_ns - served->start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SEQUENCE, p, served->start_ns, served->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *other = weft__format_promise(f, asked);
	finding->root = asked;
	finding->weight = (uint64_t)all->waited_ns;
	finding->title = weft__finding_text(f, "%s waited %s of %s for %" PRIu32 " answers one after the other%s", name,
	    weft__format_duration(f, all->waited_ns), weft__format_duration(f, length_ns), all->count,
	    weft__format_site_suffix(f, asked));
	finding->next = weft__finding_text(f,
	    "if a question does not need the answer before it, ask them side by side, or ask once for all%s",
	    weft__format_site_suffix(f, asked));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, served->start_ns, p, "%s%s reads a request", name, weft__format_site_suffix(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, all->first->start_ns, asked,
	    "the first question goes to %s%s, and is answered %s later", other, weft__format_site_suffix(f, asked),
	    weft__format_duration(f, all->first->end_ns - all->first->start_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, all->last->end_ns, all->last->connection,
	    "the last of %" PRIu32 " answers comes from %s", all->count, weft__format_promise(f, all->last->connection));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, served->end_ns, p, "%s writes the answer", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not show whether a question needed the answer before it");
}

void weft__find_sequence(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct step *steps = m->request_count <= MIN_QUESTIONS ? NULL : weft__finding_alloc(f, m->request_count, sizeof *steps);
	const size_t count = steps ? gather_steps(m, steps) : 0;
	int64_t busy_ns = INT64_MIN; /* until when the thread serves the requests before */
	for (size_t i = 0; i < count && weft__finding_may_continue(f, i, count); i++) {
		const struct step *served = &steps[i];
		if (i > 0 && served->stream != steps[i - 1].stream)
			busy_ns = INT64_MIN;
		if (served->is_question)
			continue;
		const bool is_alone = served->start_ns >= busy_ns;
		busy_ns = weft_max_ns(busy_ns, served->end_ns);
		if (!is_alone || served->end_ns - served->start_ns < f->options.stall_ns)
			continue;
		const struct questions all = follow_questions(served, steps + count);
		if (!all.is_mixed && all.count >= MIN_QUESTIONS &&
		    all.waited_ns >= (served->end_ns - served->start_ns) / MIN_SHARE_DIVISOR)
			report_sequence(f, served, &all);
	}
	free(steps);
}
