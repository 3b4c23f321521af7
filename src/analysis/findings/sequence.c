/* sequence.c: reports answers of the program that took long because it asked other programs many questions, one after the
 * other.
 *
 * A thread that reads an answer and writes the next question before it sleeps asks that question because of the answer.  If the
 * thread also writes its own answer before it sleeps again, its answer waited for all of the questions.  The trace does not
 * tell whether a question needs the answer before it, so the finding is informational.  If a thread serves two requests at the
 * same time, its questions may belong to either, so neither request is reported.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/sort.h"

enum {
	MIN_QUESTIONS = 8,
	MIN_SHARE_DIVISOR = 2 /* the questions must take at least one MIN_SHARE_DIVISOR-th of the time until the answer */
};

/* A request that the program served, from its read to the first write of the answer; or a question that the program asked, from
 * its write to the read of the answer. */
struct step {
	int64_t start_ns, end_ns;
	uint32_t connection;
	uint16_t stream;
	bool is_question;
};

/* Questions that followed one another until the program answered a request. */
struct chain {
	const struct step *first, *last;
	uint32_t count;
	int64_t waited_ns;
};

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->is_question, y->is_question)
										    ?: WEFT_ORDER(x->connection, y->connection);
}

/* Writes the requests that the program answered, and the questions to which it got an answer, to `out`, which must have
 * capacity for model->request_count steps; returns their number. */
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

static bool has_slept(struct weft__finder *f, const struct step *s, int64_t from_ns, int64_t to_ns)
{
	const int64_t slept_ns = weft_account_slept_ns(f->link_index.accounts, s->stream, from_ns, to_ns);
	f->no_memory |= weft_accounts_failed(f->link_index.accounts);
	return slept_ns > 0 || f->no_memory;
}

/* Follows the questions that the thread asked after it had read the request served[0].  Returns false if the thread served
 * another request, or asked two questions, at the same time. */
static bool follow_questions(struct weft__finder *f, const struct step *served, const struct step *steps_end, struct chain *chain)
{
	*chain = (struct chain){.first = NULL};
	for (const struct step *s = served + 1; s < steps_end && s->stream == served->stream && s->start_ns <= served->end_ns;
	     s++) {
		if (!s->is_question || (chain->last && s->start_ns < chain->last->end_ns))
			return false;
		if (s->end_ns > served->end_ns)
			continue; /* the program's answer does not need this question */
		if (!chain->last || has_slept(f, s, chain->last->end_ns, s->start_ns))
			*chain = (struct chain){.first = s};
		chain->last = s;
		chain->count++;
		chain->waited_ns += s->end_ns - s->start_ns;
	}
	return chain->last && !has_slept(f, served, chain->last->end_ns, served->end_ns);
}

static void report_sequence(struct weft__finder *f, const struct step *served, const struct chain *chain)
{
	const uint32_t p = served->connection, asked = chain->first->connection;
	const int64_t length_ns = served->end_ns - served->start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SEQUENCE, p, served->start_ns, served->end_ns);
	if (!finding)
		return;
	const char *id = weft__format_promise_id(f, p), *at = weft__format_site_suffix(f, asked);
	finding->root = asked;
	finding->weight = (uint64_t)chain->waited_ns;
	finding->title = weft__finding_text(f, "%s waited %s of %s for %" PRIu32 " answers one after the other%s", id,
	    weft__format_duration(f, chain->waited_ns), weft__format_duration(f, length_ns), chain->count, at);
	finding->next =
	    weft__finding_text(f, "ask questions that need no earlier answer in parallel, or ask one question for all%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, served->start_ns, p, "%s%s reads a request", weft__format_promise(f, p),
	    weft__format_site_suffix(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, chain->first->start_ns, asked,
	    "the first question goes to %s%s, and is answered %s later", weft__format_promise(f, asked), at,
	    weft__format_duration(f, chain->first->end_ns - chain->first->start_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, chain->last->end_ns, chain->last->connection,
	    "the last of %" PRIu32 " answers comes from %s", chain->count, weft__format_promise(f, chain->last->connection));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, served->end_ns, p, "%s writes its answer", id);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not show whether a question needed an earlier answer");
}

/* Reports the served request if its questions took most of its time. */
static void check_served(struct weft__finder *f, const struct step *served, const struct step *steps_end)
{
	const int64_t length_ns = served->end_ns - served->start_ns;
	struct chain chain;
	if (length_ns >= f->options.stall_ns && follow_questions(f, served, steps_end, &chain) && chain.count >= MIN_QUESTIONS &&
	    chain.waited_ns >= length_ns / MIN_SHARE_DIVISOR)
		report_sequence(f, served, &chain);
}

void weft__find_sequence(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	/* Without recorded sleeps the trace does not tell what a thread did because of an answer. */
	struct step *steps = m->request_count <= MIN_QUESTIONS || m->sleep_count == 0
				 ? NULL
				 : weft__finding_alloc(f, m->request_count, sizeof *steps);
	const size_t count = steps ? gather_steps(m, steps) : 0;
	int64_t busy_ns = INT64_MIN; /* time until which the thread is busy with earlier requests */
	for (size_t i = 0; i < count && weft__finding_may_continue(f, i, count); i++) {
		const struct step *served = &steps[i];
		if (i > 0 && served->stream != steps[i - 1].stream)
			busy_ns = INT64_MIN;
		if (served->is_question)
			continue;
		if (served->start_ns >= busy_ns)
			check_served(f, served, steps + count);
		busy_ns = weft_max_ns(busy_ns, served->end_ns);
	}
	free(steps);
}
