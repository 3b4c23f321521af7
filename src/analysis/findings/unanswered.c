/* unanswered.c: connections on which an answer is due.
 *
 * A reader of a trace does not know the protocol.  But who accepted a connection and always wrote soon after it had read, and who
 * made one and always read soon after it had written, do so by a rule: a silence much longer than any before breaks it.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"
#include "analysis/turns.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/words.h"

enum {
	ENOUGH_ANSWERS = 5,
	TIMES_LONGER = 20,
	LEAST_SILENCE_NS = 1000000000,
	LEAST_AT_REST_NS = 400000000, /* where its OS thread sleeps, and nothing is done any more that could answer */
	/* One that is left over, when all others are long gone. */
	ENOUGH_ENDED = 16,
	ENOUGH_IN_RING = 4,
	OTHERS_IN_RING = 2,
	LEAST_LEFT_NS = 100000000,
	TIMES_GAP = 2
};

/* One connection, seen from the side that it was accepted on, or made on. */
struct talk {
	uint32_t promise, group, maker;
	bool is_accepted;
	int64_t asked_ns;   /* the last question that has no answer yet; WEFT_NO_TIME: there is none */
	int64_t longest_ns; /* from a question to its answer */
	int64_t last_ns;    /* when something was read or written last */
	int64_t gap_ns;     /* for how long nothing was, at most */
	uint32_t answers;
};

/* All that were accepted by, or made at, the same place. */
struct group {
	int64_t longest_ns;
	uint32_t answers, silent;
	bool is_told;
	uint32_t ended;
	int64_t gap_ns;       /* of those that ended */
	uint32_t open;        /* how many did not */
	struct talk open_one; /* the one that is silent for longest */
};

struct search {
	struct weft__finder *finder;
	uint32_t listener;          /* the only one, or WEFT_NONE */
	struct weft_idmap of_place; /* groups, by place and side */
	WEFT_VEC(struct group) groups;
	WEFT_VEC(struct talk) silent; /* connections with a question, in order of creation */
};

static void note_gap(struct talk *t, int64_t until_ns)
{
	if (t->last_ns != WEFT_NO_TIME) /* a ring has forgotten what was before */
		t->gap_ns = weft_max_ns(t->gap_ns, until_ns - t->last_ns);
	t->last_ns = until_ns;
}

static void hear(struct talk *t, bool is_question, int64_t time_ns)
{
	note_gap(t, time_ns);
	if (is_question) {
		t->asked_ns = time_ns;
	} else if (t->asked_ns != WEFT_NO_TIME) {
		int64_t took_ns = time_ns - t->asked_ns;
		t->longest_ns = took_ns > t->longest_ns ? took_ns : t->longest_ns;
		t->answers++;
		t->asked_ns = WEFT_NO_TIME;
	}
}

/* libuv's adapter says so of a read that found that the peer had closed. */
static bool is_end(const struct weft_model *m, uint32_t read)
{
	uint32_t label = weft_first_label(m, read);
	const struct weft_str end = {WEFT_SAYS_END, sizeof WEFT_SAYS_END - 1};
	return label != WEFT_NONE && weft_str_equal(weft_model_text(m, label), end);
}

/* Who made it.  A ring may have forgotten that; adapters call what was accepted "from", and of one listener it is. */
static uint32_t maker_of(const struct search *s, uint32_t p, bool is_old)
{
	const struct weft_model *m = s->finder->model;
	const uint32_t maker = m->promises[p].created_by, label = weft__sorts_label(&s->finder->sorts, p);
	if (!is_old || (maker != WEFT_NONE && maker != WEFT_SYSTEM) || label == WEFT_NONE)
		return maker;
	return weft_text_begins(weft_model_text(m, label), WEFT_SAYS_FROM) ? s->listener : maker;
}

/* Programs write by libc, too, what their runtime need not wait for: all writes until then, as the bytes tell; where no read is a
 * promise, what was read after them as well. */
static void hear_bytes(const struct weft_model *m, struct talk *t, size_t *turn, bool has_reads, int64_t until_ns)
{
	for (; *turn < m->turn_count && m->turns[*turn].connection == t->promise && m->turns[*turn].asked_ns <= until_ns;
	     ++*turn) {
		hear(t, !t->is_accepted, m->turns[*turn].asked_ns);
		hear(t, !t->is_accepted, m->turns[*turn].last_ns);
		if (!has_reads && m->turns[*turn].answered_ns != WEFT_NEVER)
			hear(t, t->is_accepted, m->turns[*turn].answered_ns);
	}
}

/* What was read and written on a connection; false: it was neither accepted nor made. */
static bool listen_to(const struct search *s, uint32_t p, struct talk *t)
{
	const struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	/* A ring may have forgotten how it was made, and what was said on it before. */
	const bool is_old = weft__lacks_only_past_of(f->lacks, m, p);
	const uint32_t maker = maker_of(s, p, is_old);
	bool has_reads = false;
	size_t turn = WEFT_FIRST(i, 0, m->turn_count, m->turns[i].connection >= p);
	int64_t wrote_ns = INT64_MIN; /* a write is awaited, and read when it is done: it counts once */
	*t = (struct talk){.promise = p, .maker = maker, .asked_ns = WEFT_NO_TIME, .last_ns = m->promises[p].start_ns};
	t->is_accepted =
	    maker != WEFT_NONE && f->sorts.kinds[maker] == WEFT_KIND_LISTEN && !(m->promises[p].flags & WEFT_PROMISE_CONNECTED);
	bool is_made = (is_old && !t->is_accepted && !(m->promises[p].flags & WEFT_PROMISE_ORPHAN)) ||
		       (turn < m->turn_count && m->turns[turn].connection == p && m->turns[turn].is_question);
	if (is_old)
		t->last_ns = WEFT_NO_TIME;
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		const struct weft_promise *with = &m->promises[link->to];
		const uint16_t kind = f->sorts.kinds[link->to];
		bool is_read = link->kind == WEFT_LINK_READ && kind == WEFT_KIND_STREAM_READ && with->end == WEFT_END_RESOLVED;
		bool is_write = (link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ) &&
				kind == WEFT_KIND_STREAM_WRITE && with->start_ns > wrote_ns;
		is_made |= kind == WEFT_KIND_CONNECT;
		has_reads |= kind == WEFT_KIND_STREAM_READ;
		/* Whoever waits for data has read what came before. */
		if (is_old && link->kind == WEFT_LINK_AWAIT && kind == WEFT_KIND_STREAM_READ)
			t->last_ns = weft_max_ns(t->last_ns, with->start_ns);
		if (is_write)
			wrote_ns = with->start_ns;
		if (is_read)
			hear_bytes(m, t, &turn, true, link->time_ns);
		if (is_read && !is_end(m, link->to))
			hear(t, t->is_accepted, link->time_ns);
		else if (is_write)
			hear(t, !t->is_accepted, with->start_ns);
	}
	hear_bytes(m, t, &turn, has_reads, INT64_MAX);
	if (t->last_ns == WEFT_NO_TIME)
		t->last_ns = weft_max_ns(m->promises[p].start_ns, 0);
	return t->is_accepted || is_made;
}

static void add(struct search *s, struct talk *t)
{
	struct weft__finder *f = s->finder;
	const struct weft_promise *promise = &f->model->promises[t->promise];
	uint64_t place = t->is_accepted ? t->maker : promise->site;
	int64_t key = (int64_t)(weft_hash_u64(place << 1 | t->is_accepted) >> 1);
	t->group = weft_idmap_get(&s->of_place, key);
	if (t->group == WEFT_IDMAP_NONE) {
		t->group = (uint32_t)s->groups.count;
		struct group *fresh = weft_vec_push(&s->groups);
		f->no_memory |= !fresh || !weft_idmap_set(&s->of_place, key, t->group);
		if (!fresh)
			return;
		*fresh = (struct group){0};
	}
	struct group *group = &s->groups.items[t->group];
	group->answers += t->answers;
	if (f->ties.ended_ns[t->promise] != WEFT_NEVER) {
		note_gap(t, f->ties.ended_ns[t->promise]);
		group->gap_ns = weft_max_ns(group->gap_ns, t->gap_ns);
		group->ended++;
	} else if (group->open++ == 0 || t->last_ns < group->open_one.last_ns) {
		group->open_one = *t;
	}
	group->longest_ns = t->longest_ns > group->longest_ns ? t->longest_ns : group->longest_ns;
	if (t->asked_ns == WEFT_NO_TIME)
		return;
	struct talk *kept = weft_vec_push(&s->silent);
	f->no_memory |= !kept;
	if (kept)
		*kept = *t;
}

/* When the connection was closed, or the trace ended. */
static int64_t over_of(const struct weft__finder *f, const struct talk *t)
{
	int64_t ended_ns = f->ties.ended_ns[t->promise];
	return ended_ns == WEFT_NEVER ? weft_model_until(f->model, t->promise) : ended_ns;
}

static int64_t silence_of(const struct weft__finder *f, const struct talk *t)
{
	return over_of(f, t) - t->asked_ns;
}

static bool is_due(const struct search *s, const struct talk *t)
{
	const struct group *group = &s->groups.items[t->group];
	const struct weft__finder *f = s->finder;
	int64_t silence_ns = silence_of(f, t);
	bool is_at_rest = f->at_rest[f->model->promises[t->promise].stream] && f->ties.ended_ns[t->promise] == WEFT_NEVER;
	return group->answers >= ENOUGH_ANSWERS && silence_ns >= (is_at_rest ? LEAST_AT_REST_NS : LEAST_SILENCE_NS) &&
	       silence_ns / TIMES_LONGER > group->longest_ns;
}

/* What the connection awaits, or has begun, since it was asked: who does not answer may wait for somebody itself. */
static uint32_t waits_for(const struct weft__finder *f, const struct talk *t)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t found = WEFT_NONE;
	for (uint32_t i = f->ties.out_begin[t->promise]; i < f->ties.out_begin[t->promise + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->ties.out[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->time_ns >= t->asked_ns && f->ties.ended_ns[link->to] == WEFT_NEVER &&
		    promises[link->to].kind != WEFT_KIND_STREAM_READ && weft_model_await_end(f->model, link) == WEFT_NEVER)
			found = link->to;
	}
	for (uint32_t p = t->promise + 1; p < f->model->promise_count && found == WEFT_NONE; p++)
		if (promises[p].created_by == t->promise && promises[p].start_ns >= t->asked_ns &&
		    f->ties.ended_ns[p] == WEFT_NEVER && promises[p].kind != WEFT_KIND_STREAM_READ)
			found = p;
	return found;
}

/* What was asked over another connection since then, and is not answered either: by the promise, or else first on its OS thread.
 */
static const struct weft_turn *asks(const struct weft__finder *f, const struct talk *t)
{
	const struct weft_model *m = f->model;
	const struct weft_turn *best = NULL;
	for (size_t i = 0; i < m->turn_count; i++) {
		const struct weft_turn *turn = &m->turns[i];
		const bool is_own = turn->by == t->promise, is_best_own = best && best->by == t->promise;
		if (!turn->is_question || turn->answered_ns != WEFT_NEVER || turn->connection == t->promise ||
		    turn->asked_ns < t->asked_ns || turn->stream != m->promises[t->promise].stream ||
		    weft_min_ns(weft_turn_until(m, turn), over_of(f, t)) - turn->asked_ns < silence_of(f, t) / 2)
			continue;
		if (!best || (is_own == is_best_own ? turn->asked_ns < best->asked_ns : is_own))
			best = turn;
	}
	return best;
}

static void tell_others(struct search *s, const struct talk *first)
{
	size_t shown = 0, others = 0;
	for (const struct talk *t = first + 1; t < s->silent.items + s->silent.count; t++) {
		if (t->group != first->group || !is_due(s, t) || others++ >= WEFT__LINES_KEPT)
			continue;
		shown++;
		weft__finding_evidence(s->finder, WEFT_EVIDENCE_VICTIM, t->asked_ns, t->promise,
		    "%s waits for an answer likewise", weft__words_name(s->finder, t->promise));
	}
	if (others > shown)
		weft__words_more(s->finder, WEFT_EVIDENCE_VICTIM, others - shown, "");
}

/* Of an end whose other end another process recorded: whether the question came there, or the answer left. */
static void tell_peer(struct weft__finder *f, const struct talk *t, uint32_t peer)
{
	const struct weft_model *m = f->model;
	const char *host = weft__words_where(f, peer), *process = m->trace->parts[weft_part_of(m, peer)].name;
	const char *there = weft__finding_text(
	    f, "%s%s%s%s", weft__words_name(f, peer), weft__words_at(f, peer), *host ? "" : " in ", *host ? "" : process);
	const size_t after = WEFT_FIRST(i, 0, m->transfer_count, m->transfers[i].to > (t->is_accepted ? t->promise : peer));
	const struct weft_transfer *last = after > 0 ? &m->transfers[after - 1] : NULL;
	const bool has_come = last && last->to == (t->is_accepted ? t->promise : peer) && last->received_ns >= t->asked_ns;
	if (t->is_accepted)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, peer, "%s is the other end, and waits", there);
	else if (has_come)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last->received_ns, peer, "%s has read it", there);
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, peer, "%s has not read it", there);
}

static const char *next_of(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = weft_peer_of(f->model, connection);
	return peer == WEFT_NONE
		   ? weft__finding_text(f, "look at the other side of %s; a timeout would turn its silence into an error",
			 weft__words_name(f, connection))
		   : weft__finding_text(f, "find out why %s in %s does not answer", weft__words_name(f, peer),
			 f->model->trace->parts[weft_part_of(f->model, peer)].name);
}

/* It is told of with who waits for it. */
static void leave_out(struct search *s, uint32_t connection)
{
	for (size_t i = 0; i < s->silent.count; i++)
		if (s->silent.items[i].promise == connection && s->groups.items[s->silent.items[i].group].silent == 1)
			s->groups.items[s->silent.items[i].group].is_told = true;
}

static void tell(struct search *s, const struct talk *t)
{
	struct weft__finder *f = s->finder;
	struct group *group = &s->groups.items[t->group];
	uint32_t p = t->promise;
	bool is_over = f->ties.ended_ns[p] != WEFT_NEVER;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, t->asked_ns, over_of(f, t));
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *silence = weft__words_span(f, silence_of(f, t));
	const char *others = group->silent > 1 ? weft__finding_text(f, ", and so have %" PRIu32 " more", group->silent - 1) : "";
	finding->weight = group->silent + (t->is_accepted ? (uint64_t)UINT32_MAX : 0); /* who is silent before who waits for it */
	const uint32_t input = waits_for(f, t);
	const struct weft_turn *asked = input == WEFT_NONE && t->is_accepted ? asks(f, t) : NULL;
	const char *waits = is_over ? ", until it was closed" : "";
	if (input != WEFT_NONE)
		waits =
		    weft__finding_text(f, "; since then it waits for %s%s", weft__words_name(f, input), weft__words_at(f, input));
	else if (asked)
		waits = weft__finding_text(f, "; since then it waits%s for %s%s, which was asked and does not answer",
		    asked->by == p ? "" : ", maybe,", weft__words_name(f, asked->connection),
		    weft__words_at(f, asked->connection));
	finding->title = weft__finding_text(f, "%s%s %s%s for %s%s%s", name, at, is_over ? "" : "has ",
	    t->is_accepted ? "owed its peer an answer" : "waited for an answer", silence, others, waits);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, t->asked_ns, p,
	    t->is_accepted ? "%s reads what came, and writes nothing after that" : "%s writes, and nothing comes after that",
	    name);
	const uint32_t peer = weft_peer_of(f->model, p);
	if (peer != WEFT_NONE)
		tell_peer(f, t, peer);
	if (asked) {
		weft__words_turn(f, asked);
		leave_out(s, asked->connection);
	}
	if (input != WEFT_NONE)
		finding->next = weft__finding_text(f, "find out why %s does not end", weft__words_name(f, input));
	else if (t->is_accepted && !asked)
		finding->next =
		    weft__finding_text(f, "find out on which way through the code that reads%s nothing is written", at);
	else
		finding->next = next_of(f, asked ? asked->connection : p);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "%" PRIu32 " answers before, on all connections %s there: the slowest came after %s", group->answers,
	    t->is_accepted ? "that were accepted" : "that were made", weft__words_span(f, group->longest_ns));
	tell_others(s, t);
	weft__finding_doubt(f, "the trace does not tell what was said: perhaps it asks for no answer");
}

/* All others that were accepted there came to their ends, and none of them was silent for so long: who it waits for, if anybody,
 * the trace does not tell. */
static void tell_left(struct weft__finder *f, const struct group *group)
{
	const struct talk *t = &group->open_one;
	const uint32_t p = t->promise;
	const int64_t silent_ns = weft_model_until(f->model, p) - t->last_ns;
	/* Of those that a ring remembers, few suffice. */
	const bool is_ring = weft__lacks_of(f->lacks, f->model, p)->wrapped;
	const uint32_t enough = is_ring ? ENOUGH_IN_RING : ENOUGH_ENDED, others = is_ring ? OTHERS_IN_RING : ENOUGH_ENDED;
	if (!t->is_accepted || group->is_told || group->ended < enough || group->open == 0 ||
	    group->open > group->ended / others || !f->at_rest[f->model->promises[p].stream] || silent_ns < LEAST_LEFT_NS ||
	    silent_ns / TIMES_GAP < group->gap_ns)
		return;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, t->last_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->title = weft__finding_text(f,
	    "%s%s is still open, and has been silent for %s; all %" PRIu32
	    " others that were accepted there are closed, and none was silent for longer than %s",
	    name, at, weft__words_span(f, silent_ns), group->ended, weft__words_span(f, group->gap_ns));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, t->last_ns, p, "something is read from %s, or written to it, for the last time", name);
	finding->next = weft__finding_text(
	    f, "find out what is due there: an answer that was forgotten, or a read that was stopped and not begun again%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not tell what was said: perhaps nobody has more to say");
}

void weft__find_unanswered(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct search s = {.finder = f, .listener = WEFT_NONE};
	struct talk talk;
	if (!weft__sorts_have(&f->sorts, WEFT_KIND_CONNECTION))
		return;
	uint32_t listeners = 0;
	for (uint32_t p = 1; p < m->promise_count && weft__sorts_have(&f->sorts, WEFT_KIND_LISTEN); p++)
		if (f->sorts.kinds[p] == WEFT_KIND_LISTEN)
			s.listener = listeners++ == 0 ? p : WEFT_NONE;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++)
		if (f->sorts.kinds[p] == WEFT_KIND_CONNECTION && listen_to(&s, p, &talk))
			add(&s, &talk);
	for (size_t i = 0; !f->no_memory && i < s.silent.count; i++)
		s.groups.items[s.silent.items[i].group].silent += is_due(&s, &s.silent.items[i]);
	for (int is_accepted = 1; is_accepted >= 0; is_accepted--)
		for (size_t i = 0; !f->no_memory && i < s.silent.count; i++) {
			struct talk *t = &s.silent.items[i];
			if (t->is_accepted != is_accepted || !is_due(&s, t) || s.groups.items[t->group].is_told)
				continue;
			s.groups.items[t->group].is_told = true;
			tell(&s, t);
		}
	for (size_t i = 0; !f->no_memory && i < s.groups.count; i++)
		tell_left(f, &s.groups.items[i]);
	weft_idmap_finish(&s.of_place);
	weft_vec_free(&s.groups);
	weft_vec_free(&s.silent);
}
