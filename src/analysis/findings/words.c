/* words.c: what the sentences of findings are made of.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/across.h"
#include "analysis/findings/finding.h"
#include "analysis/names.h"
#include "analysis/shapes.h"
#include "analysis/shares.h"
#include "analysis/turns.h"
#include "base/duration.h"

/* of "transfer A to B" and others */
static void name_inputs(struct weft__finder *f, uint32_t promise, char buf[WEFT_NAME_BYTES])
{
	char text[100];
	uint32_t first = WEFT_NONE, named = WEFT_NONE;
	bool others = false;
	for (uint32_t i = f->ties.out_begin[promise]; i < f->ties.out_begin[promise + 1] && !(others && named != WEFT_NONE);
	     i++) {
		const struct weft_link *link = &f->model->links[f->ties.out[i]];
		if (link->kind != WEFT_LINK_AWAIT)
			continue;
		first = first == WEFT_NONE ? link->to : first;
		others |= link->to != first;
		named = named == WEFT_NONE ? weft_first_label(f->model, link->to) : named;
	}
	if (named != WEFT_NONE)
		snprintf(buf, WEFT_NAME_BYTES, " of \"%s\"%s", weft_name_text(f->model, named, text, sizeof text),
		    others ? " and others" : "");
}

const char *weft__words_name(struct weft__finder *f, uint32_t promise)
{
	char name[WEFT_NAME_BYTES], inputs[WEFT_NAME_BYTES] = "";
	uint32_t label = weft_first_label(f->model, promise);
	if (label == WEFT_NONE)
		label = f->heir_of[promise];
	if (label == WEFT_NONE && weft_kind_has(f->model->promises[promise].kind, WEFT_TRAIT_GATHERS))
		name_inputs(f, promise, inputs);
	return weft__finding_text(f, "%s%s", weft_name_promise_as(f->model, promise, label, name), inputs);
}

const char *weft__words_place(struct weft__finder *f, uint32_t promise)
{
	char place[WEFT_NAME_BYTES];
	return weft__finding_text(f, "%s", weft_name_place(f->model, promise, place));
}

const char *weft__words_where(struct weft__finder *f, uint32_t promise)
{
	const struct weft_trace_info *info = f->model->trace;
	bool has_hosts = false;
	for (size_t i = 1; i < info->part_count && !has_hosts; i++)
		has_hosts = !weft_str_equal(info->parts[0].host, info->parts[i].host);
	return has_hosts ? weft__finding_text(f, " in %s", info->parts[weft_part_of(f->model, promise)].name) : "";
}

const char *weft__words_at(struct weft__finder *f, uint32_t promise)
{
	char place[WEFT_NAME_BYTES];
	const char *where = weft__words_where(f, promise);
	return *weft_name_place(f->model, promise, place) ? weft__finding_text(f, " (%s)%s", place, where) : where;
}

const char *weft__words_sort(struct weft__finder *f, uint32_t promise)
{
	char name[WEFT_NAME_BYTES];
	return weft__finding_text(f, "%s", weft_name_sort(f->model, promise, name));
}

const char *weft__words_group(struct weft__finder *f, uint32_t promise, bool is_one_sort)
{
	char shape[128];
	uint32_t label = weft_first_label(f->model, promise);
	if (is_one_sort || !weft__shape(shape, sizeof shape, weft_model_text(f->model, label)))
		return weft__words_sort(f, promise);
	return weft__finding_text(f, "\"%s\"", weft__words_clean(f, (struct weft_str){shape, (uint32_t)strlen(shape)}));
}

const char *weft__words_span(struct weft__finder *f, int64_t ns)
{
	char span[WEFT_DURATION_BYTES];
	weft_duration_format(span, sizeof span, ns);
	return weft__finding_text(f, "%s", span);
}

const char *weft__words_range(struct weft__finder *f, int64_t low_ns, int64_t high_ns)
{
	const char *low = weft__words_span(f, low_ns), *high = weft__words_span(f, high_ns);
	return strcmp(low, high) ? weft__finding_text(f, "%s to %s", low, high) : low;
}

const char *weft__words_text(struct weft__finder *f, uint32_t text)
{
	char clean[256];
	return text == WEFT_NONE ? "no reason is told"
				 : weft__finding_text(f, "%s", weft_name_text(f->model, text, clean, sizeof clean));
}

const char *weft__words_clean(struct weft__finder *f, struct weft_str text)
{
	char clean[256];
	return weft__finding_text(f, "%s", weft_name_clean(text, clean, sizeof clean));
}

const char *weft__words_s(size_t count)
{
	return count == 1 ? "" : "s";
}

void weft__words_chain_link(struct weft__finder *f, uint32_t promise, const char *then)
{
	const char *place = weft__words_place(f, promise);
	weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, f->model->promises[promise].start_ns, promise, "%s%s%s%s%s",
	    weft__words_name(f, promise), *place ? "  at " : "", place, weft__words_where(f, promise), then);
}

const char *weft__words_waits(const struct weft__finder *f, uint32_t promise)
{
	return weft_kind_has(f->model->promises[promise].kind, WEFT__TRAITS_HELD) ? "  is held by" : "  waits for";
}

void weft__words_more(struct weft__finder *f, enum weft_evidence_role role, size_t count, const char *what)
{
	if (count > 0)
		weft__finding_evidence(f, role, WEFT_NO_TIME, WEFT_NONE, "and %zu more%s", count, what);
}

void weft__words_creation(struct weft__finder *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	if (p->flags & WEFT_PROMISE_START_UNKNOWN || p->created_by == WEFT_NONE)
		return;
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, p->start_ns, p->created_by, "%s creates %s%s",
	    weft__words_name(f, p->created_by), weft__words_name(f, promise), weft__words_at(f, promise));
}

void weft__words_peers(struct weft__finder *f, uint32_t promise)
{
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[promise]];
	const struct weft_model *m = f->model;
	if (!sort->named || sort->resolved == 0)
		return;
	uint32_t other = sort->last_resolved, by = WEFT_NONE;
	for (uint32_t i = f->ties.in_begin[other]; i < f->ties.in_begin[other + 1]; i++)
		if (m->links[f->ties.in[i]].kind == WEFT_LINK_RESOLVE)
			by = m->links[f->ties.in[i]].from;
	const char *who = by == WEFT_NONE ? ""
			  : by == WEFT_SYSTEM
			      ? ", the last one by a callback from outside"
			      : weft__finding_text(f, ", the last one by %s%s", weft__words_name(f, by), weft__words_at(f, by));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[other].end_ns, other,
	    "%" PRIu32 " other promise%s %s %s resolved%s", sort->resolved, weft__words_s(sort->resolved),
	    weft__words_sort(f, promise), sort->resolved == 1 ? "was" : "were", who);
}

const char *weft__words_there(struct weft__finder *f, uint32_t promise)
{
	const struct weft_trace_info *info = f->model->trace;
	char place[WEFT_NAME_BYTES];
	const char *at = *weft_name_place(f->model, promise, place) ? weft__finding_text(f, " (%s)", place) : "";
	return weft__finding_text(f, "%s%s in %s", weft__words_name(f, promise), at,
	    info->part_count ? info->parts[weft_part_of(f->model, promise)].name : "itself");
}

/* The other end of a connection, if another process has it and its trace is here; else WEFT_NONE. */
static uint32_t peer_of(const struct weft_model *m, uint32_t connection)
{
	const struct weft_connection_end *end = weft__across_end(m, connection);
	return end ? end->peer : weft_peer_of(m, connection);
}

const char *weft__words_peer(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = peer_of(f->model, connection);
	return peer == WEFT_NONE ? "" : weft__finding_text(f, ", %s,", f->model->trace->parts[weft_part_of(f->model, peer)].name);
}

const char *weft__words_other_end(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = peer_of(f->model, connection);
	return peer == WEFT_NONE ? weft__finding_text(f, "the other end of %s", weft__words_name(f, connection))
				 : weft__words_there(f, peer);
}

/* What took longest there, and most of the time in which the answer was made, as the path to its writer has it; false: nobody
 * knows.
 */
static bool find_longest(struct weft__finder *f, uint32_t writer, int64_t from_ns, int64_t to_ns, struct weft_path_step *out)
{
	struct weft_path *path = NULL;
	int64_t longest_ns = (to_ns - from_ns) / 2;
	f->no_memory |= weft_path_create_to_deed(&path, &f->ties, writer, from_ns, to_ns, NULL) == WEFT_ENOMEM;
	bool found = false;
	for (size_t i = 0; path && i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		const int64_t ns = weft_min_ns(s->end_ns, to_ns) - weft_max_ns(s->start_ns, from_ns);
		if (ns <= longest_ns || weft_step_cause(s) == WEFT_SYSTEM || s->sent_by != WEFT_NONE)
			continue;
		*out = *s;
		longest_ns = ns;
		found = true;
	}
	weft_path_destroy(path);
	return found;
}

/* What the other end did between question and answer, if its trace is here. */
static void tell_work(struct weft__finder *f, const struct weft_turn *turn)
{
	const struct weft_model *m = f->model;
	const uint32_t peer = peer_of(m, turn->connection);
	const struct weft_transfer *answer = peer != WEFT_NONE && turn->answered_ns != WEFT_NEVER
						 ? weft__across_last(m, turn->connection, turn->answered_ns)
						 : NULL;
	const struct weft_transfer *question = answer ? weft__across_last(m, peer, answer->sent_ns) : NULL;
	if (!question || answer->from != peer || answer->sent_ns < turn->asked_ns || question->sent_ns < turn->asked_ns)
		return;
	const uint32_t writer = f->ties.now[answer->by];
	struct weft_path_step longest;
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, question->received_ns, peer, "%s has read that, %s later",
	    weft__words_there(f, peer), weft__words_span(f, question->received_ns - turn->asked_ns));
	if (find_longest(f, writer, question->received_ns, answer->sent_ns, &longest)) {
		const uint32_t cause = weft_step_cause(&longest);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest.start_ns, cause,
		    longest.kind == WEFT_STEP_WAITING && longest.lock == WEFT_NONE && longest.behind == WEFT_NONE
			? "%s is waited for, for %s"
			: "%s keeps it waiting for %s",
		    weft__words_there(f, cause), weft__words_span(f, longest.end_ns - longest.start_ns));
	}
	if (writer != WEFT_SYSTEM)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, answer->sent_ns, writer,
		    "%s writes the answer, %s after it was read", weft__words_there(f, writer),
		    weft__words_span(f, answer->sent_ns - question->received_ns));
}

void weft__words_turn(struct weft__finder *f, const struct weft_turn *turn)
{
	const char *name = weft__words_name(f, turn->connection);
	const uint32_t peer = weft_peer_of(f->model, turn->connection);
	const int64_t until_ns = weft_turn_until(f->model, turn);
	struct weft_steal steal;
	if (f->turn == turn)
		return;
	f->turn = turn;
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, turn->asked_ns, turn->connection, "%s is written: it is asked", name);
	tell_work(f, turn);
	if (turn->answered_ns != WEFT_NEVER)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, turn->answered_ns, turn->connection, "its answer comes, %s later",
		    weft__words_span(f, turn->answered_ns - turn->asked_ns));
	if ((peer != WEFT_NONE && weft__words_steal_of(f, peer, turn->asked_ns, until_ns, &steal)) ||
	    weft__words_steal_of(f, turn->connection, turn->asked_ns, until_ns, &steal))
		weft__words_steal(f, &steal);
}

const char *weft__words_tid(struct weft__finder *f, uint32_t tid)
{
	const struct weft_kernel *k = f->model->kernel;
	const uint32_t thread = weft_kernel_thread(k, tid);
	if (thread == WEFT_NONE || !k->threads[thread].name.len)
		return weft__finding_text(f, "OS thread %" PRIu32, weft_tid_shown(tid));
	return weft__finding_text(f, "%s\"%s\" (%" PRIu32 ")", k->threads[thread].pid ? "its OS thread " : "",
	    weft__words_clean(f, k->threads[thread].name), weft_tid_shown(tid));
}

bool weft__words_steal_of(struct weft__finder *f, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	enum { TOLD_PART = 8 };
	const struct weft_model *m = f->model;
	to_ns = weft_min_ns(to_ns, m->end_ns);
	return to_ns > from_ns && weft_steal(m, weft_part_of(m, promise), from_ns, to_ns, out) &&
	       out->low_ns >= (to_ns - from_ns) / TOLD_PART;
}

void weft__words_steal(struct weft__finder *f, const struct weft_steal *steal)
{
	const uint32_t thread = f->model->threads[steal->stream], by = steal->preempted ? steal->preempted->by : WEFT_NO_TID;
	const char *who = by == WEFT_NO_TID
			      ? ""
			      : weft__finding_text(f, "; here %s took that, and may have passed it on", weft__words_tid(f, by));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, steal->preempted ? steal->preempted->start_ns : WEFT_NO_TIME, thread,
	    "%s, a processor of that guest, waited for one of the host's for %s meanwhile%s", weft__words_name(f, thread),
	    weft__words_range(f, steal->low_ns, steal->high_ns), who);
}

const char *weft__words_next_late(struct weft__finder *f, uint32_t connection)
{
	return weft__finding_text(f, "find out what %s did that time; a timeout would turn its silence into an error",
	    weft__words_other_end(f, connection));
}
