/* unanswered.c: reports connections on which an answer is due.
 *
 * weft does not know the protocol of the connections.  But if accepted connections always wrote soon after they read, or
 * outgoing connections always read soon after they wrote, this is taken as the rule of the protocol.  A silence that is much
 * longer than any earlier silence breaks the rule.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/known_strings.h"
#include "base/search.h"

enum {
	ENOUGH_ANSWERS = 5,
	TIMES_LONGER = 20,
	MIN_SILENCE_NS = 1000000000,
	/* shortest silence if the thread of the connection sleeps at the end, so that no code is running that could answer */
	MIN_IDLE_SILENCE_NS = 400000000,
	/* Limits for a connection that is still open although all others are closed. */
	ENOUGH_ENDED = 16,       /* fewest closed connections; also the least ratio of closed to open connections */
	ENOUGH_IN_RING = 4,      /* fewest closed connections if the trace is a ring */
	OTHERS_IN_RING = 2,      /* least ratio of closed to open connections if the trace is a ring */
	MIN_LEFT_NS = 100000000, /* silence */
	TIMES_GAP = 2            /* least ratio of the silence to the longest silence of the other connections */
};

/* The messages of one connection, seen from the end that the program accepted or made. */
struct talk {
	uint32_t promise, group, maker;
	bool is_accepted;
	int64_t asked_ns;   /* time of the last request without an answer; WEFT_NO_TIME if there is none */
	int64_t longest_ns; /* longest time from a request to its answer */
	int64_t last_ns;    /* last read or write */
	int64_t gap_ns;     /* longest silence */
	uint32_t answers;
};

/* The connections that were accepted by one listener, or made at one site. */
struct group {
	int64_t longest_ns;
	uint32_t answers, silent;
	bool is_reported;
	uint32_t ended;       /* closed connections */
	int64_t gap_ns;       /* longest silence of a closed connection */
	uint32_t open;        /* open connections */
	struct talk open_one; /* the open connection with the longest silence */
	uint32_t in_flight;   /* open connections with a request that the program was working on at the end */
	struct talk oldest;   /* the one of them that has waited longest */
	int64_t pause_ns;     /* longest time between two messages */
	uint32_t unfinished;  /* open connections with find_read() */
	struct talk first;    /* the one of them that has waited longest */
};

struct search {
	struct weft__finder *finder;
	uint32_t listener;              /* the only listener of the trace; WEFT_NONE if there is not exactly one */
	struct weft_idmap group_of_key; /* indexes of groups by site and side of the connection */
	WEFT_VEC(struct group) groups;
	uint32_t *last_sleep;         /* by stream: its last sleep + 1, or 0 */
	bool *has_requests;           /* by promise: the recorder names the requests of the connection */
	WEFT_VEC(struct talk) silent; /* connections with an open request, in order of creation */
};

static void note_gap(struct talk *t, int64_t until_ns)
{
	if (t->last_ns != WEFT_NO_TIME) /* unset if a ring has overwritten the earlier events */
		t->gap_ns = weft_max_ns(t->gap_ns, until_ns - t->last_ns);
	t->last_ns = until_ns;
}

static void note_message(struct talk *t, bool is_question, int64_t time_ns)
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

/* Returns whether the read found that the peer had closed the connection: libuv's adapter gives such a read a label. */
static bool is_end_of_stream(const struct weft_model *m, uint32_t read)
{
	uint32_t label = weft_first_label(m, read);
	const struct weft_str end = {WEFT_STRING_END, sizeof WEFT_STRING_END - 1};
	return label != WEFT_NONE && weft_str_equal(weft_model_text(m, label), end);
}

/* Returns the creator of a connection.  If a ring has overwritten the creation, a label "from ..." marks an accepted
 * connection, which belongs to the trace's only listener. */
static uint32_t find_maker(const struct search *s, uint32_t p, bool is_old)
{
	const struct weft_model *m = s->finder->model;
	const uint32_t maker = m->promises[p].created_by, label = weft__promise_types_label(&s->finder->types, p);
	if (!is_old || (maker != WEFT_NONE && maker != WEFT_SYSTEM) || label == WEFT_NONE)
		return maker;
	return weft_text_starts_with(weft_model_text(m, label), WEFT_STRING_FROM) ? s->listener : maker;
}

/* Notes writes of the connection until until_ns that are no promises: a program may write with plain system calls, which the
 * trace records as requests.  Without has_reads the function also notes the answers. */
static void note_requests(const struct weft_model *m, struct talk *t, size_t *request, bool has_reads, int64_t until_ns)
{
	for (; *request < m->request_count && m->requests[*request].connection == t->promise &&
	       m->requests[*request].asked_ns <= until_ns;
	     ++*request) {
		note_message(t, !t->is_accepted, m->requests[*request].asked_ns);
		note_message(t, !t->is_accepted, m->requests[*request].last_ns);
		if (!has_reads && m->requests[*request].answered_ns != WEFT_NEVER)
			note_message(t, t->is_accepted, m->requests[*request].answered_ns);
	}
}

/* Analyzes the reads and writes of a connection; returns false if it was neither accepted nor made by the program. */
static bool analyze_connection(const struct search *s, uint32_t p, struct talk *t)
{
	const struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	/* A ring may have overwritten the creation of the connection and its early messages. */
	const bool is_old = weft__is_only_past_missing(f->completeness, m, p);
	const uint32_t maker = find_maker(s, p, is_old);
	bool has_reads = false;
	size_t request = WEFT_FIND_FIRST(i, 0, m->request_count, m->requests[i].connection >= p);
	/* time of the last write: a write has two links, its wait and the read of its result, but counts once */
	int64_t wrote_ns = INT64_MIN;
	*t = (struct talk){.promise = p, .maker = maker, .asked_ns = WEFT_NO_TIME, .last_ns = m->promises[p].start_ns};
	t->is_accepted =
	    maker != WEFT_NONE && f->types.kinds[maker] == WEFT_KIND_LISTEN && !(m->promises[p].flags & WEFT_PROMISE_CONNECTED);
	bool is_made = (is_old && !t->is_accepted && !(m->promises[p].flags & WEFT_PROMISE_ORPHAN)) ||
		       (request < m->request_count && m->requests[request].connection == p && m->requests[request].is_question);
	if (is_old)
		t->last_ns = WEFT_NO_TIME;
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		const struct weft_promise *with = &m->promises[link->to];
		const uint16_t kind = f->types.kinds[link->to];
		bool is_read = link->kind == WEFT_LINK_READ && kind == WEFT_KIND_STREAM_READ && with->end == WEFT_END_RESOLVED;
		bool is_write = (link->kind == WEFT_LINK_AWAIT || link->kind == WEFT_LINK_READ) &&
				kind == WEFT_KIND_STREAM_WRITE && with->start_ns > wrote_ns;
		is_made |= kind == WEFT_KIND_CONNECT;
		has_reads |= kind == WEFT_KIND_STREAM_READ;
		/* A connection that starts to wait for data has read all earlier data. */
		if (is_old && link->kind == WEFT_LINK_AWAIT && kind == WEFT_KIND_STREAM_READ)
			t->last_ns = weft_max_ns(t->last_ns, with->start_ns);
		if (is_write)
			wrote_ns = with->start_ns;
		if (is_read)
			note_requests(m, t, &request, true, link->time_ns);
		if (is_read && !is_end_of_stream(m, link->to))
			note_message(t, t->is_accepted, link->time_ns);
		else if (is_write)
			note_message(t, !t->is_accepted, with->start_ns);
	}
	note_requests(m, t, &request, has_reads, INT64_MAX);
	if (t->last_ns == WEFT_NO_TIME)
		t->last_ns = weft_max_ns(m->promises[p].start_ns, 0);
	return t->is_accepted || is_made;
}

/* Returns the sleep in which the thread of a connection that the program made waits to read more, right after it read an answer;
 * NULL: there is none. */
static const struct weft_interval *find_read(const struct search *s, const struct talk *t)
{
	const struct weft__finder *f = s->finder;
	static const char *const reads[] = {"recv", "read"};
	const struct weft_model *m = f->model;
	const uint16_t stream = m->promises[t->promise].stream;
	if (t->is_accepted || t->asked_ns != WEFT_NO_TIME || t->answers == 0 || !f->idle_at_end[stream] ||
	    f->link_index.ended_ns[t->promise] != WEFT_NEVER || s->last_sleep[stream] == 0)
		return NULL;
	const struct weft_interval *sleep = &m->sleeps[s->last_sleep[stream] - 1]; /* it is in one */
	const uint32_t call = weft_model_call(m, sleep);
	if (call == WEFT_NONE || sleep->start_ns < t->last_ns || sleep->start_ns - t->last_ns > f->options.stall_ns / 10)
		return NULL;
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
		if (weft_text_starts_with(weft_model_text(m, call), reads[i]))
			return sleep;
	return NULL;
}

static void add_talk(struct search *s, struct talk *t)
{
	struct weft__finder *f = s->finder;
	const struct weft_promise *promise = &f->model->promises[t->promise];
	uint64_t site_key = t->is_accepted ? t->maker : promise->site;
	int64_t key = (int64_t)(weft_hash_u64(site_key << 1 | t->is_accepted) >> 1);
	t->group = weft_idmap_get(&s->group_of_key, key);
	if (t->group == WEFT_IDMAP_NONE) {
		t->group = (uint32_t)s->groups.count;
		struct group *new_group = weft_vec_push(&s->groups);
		f->no_memory |= !new_group || !weft_idmap_set(&s->group_of_key, key, t->group);
		if (!new_group)
			return;
		*new_group = (struct group){0};
	}
	struct group *group = &s->groups.items[t->group];
	group->answers += t->answers;
	group->pause_ns = weft_max_ns(group->pause_ns, t->gap_ns);
	if (find_read(s, t) && (group->unfinished++ == 0 || t->last_ns < group->first.last_ns))
		group->first = *t;
	if (f->link_index.ended_ns[t->promise] != WEFT_NEVER) {
		note_gap(t, f->link_index.ended_ns[t->promise]);
		group->gap_ns = weft_max_ns(group->gap_ns, t->gap_ns);
		group->ended++;
	} else if (group->open++ == 0 || t->last_ns < group->open_one.last_ns) {
		group->open_one = *t;
	}
	group->longest_ns = t->longest_ns > group->longest_ns ? t->longest_ns : group->longest_ns;
	if (t->asked_ns == WEFT_NO_TIME)
		return;
	struct talk *added = weft_vec_push(&s->silent);
	f->no_memory |= !added;
	if (added)
		*added = *t;
}

/* Returns the time at which the connection was closed, or the end of the trace if it was not. */
static int64_t get_end_ns(const struct weft__finder *f, const struct talk *t)
{
	int64_t ended_ns = f->link_index.ended_ns[t->promise];
	return ended_ns == WEFT_NEVER ? weft_model_until(f->model, t->promise) : ended_ns;
}

static int64_t get_silence_ns(const struct weft__finder *f, const struct talk *t)
{
	return get_end_ns(f, t) - t->asked_ns;
}

/* Returns whether the last message of the connection is a request that must be answered.  A recorder that names requests knows
 * whether a request is open; requests that this program must answer are reported by another check. */
static bool is_open_question(const struct search *s, const struct talk *t)
{
	const struct weft__finder *f = s->finder;
	const uint32_t asked = weft__asked_on(f, t->promise, t->asked_ns);
	return !t->is_accepted && asked != WEFT_NONE && f->model->promises[asked].flags & WEFT_PROMISE_SHOULD_RESOLVE &&
	       weft_min_ns(f->link_index.ended_ns[asked], get_end_ns(f, t)) - t->asked_ns >= get_silence_ns(f, t) / 2;
}

static bool is_answer_due(const struct search *s, const struct talk *t)
{
	const struct group *group = &s->groups.items[t->group];
	const struct weft__finder *f = s->finder;
	int64_t silence_ns = get_silence_ns(f, t);
	if (s->has_requests[t->promise])
		return is_open_question(s, t) && silence_ns >= MIN_SILENCE_NS && f->link_index.ended_ns[t->promise] != WEFT_NEVER;
	/* A program is often killed while an answer is on its way. */
	bool is_at_rest = !weft__completeness_of(f->completeness, f->model, t->promise)->end_missing &&
			  f->idle_at_end[f->model->promises[t->promise].stream] &&
			  f->link_index.ended_ns[t->promise] == WEFT_NEVER;
	return group->answers >= ENOUGH_ANSWERS && silence_ns >= (is_at_rest ? MIN_IDLE_SILENCE_NS : MIN_SILENCE_NS) &&
	       silence_ns / TIMES_LONGER > group->longest_ns;
}

/* Returns the pending promise that the connection has awaited or created since the request, or WEFT_NONE: a connection that
 * does not answer may itself be blocked. */
static uint32_t find_awaited(const struct weft__finder *f, const struct talk *t)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t found = WEFT_NONE;
	for (uint32_t i = f->link_index.out_begin[t->promise]; i < f->link_index.out_begin[t->promise + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.out[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->time_ns >= t->asked_ns &&
		    f->link_index.ended_ns[link->to] == WEFT_NEVER && promises[link->to].kind != WEFT_KIND_STREAM_READ &&
		    weft_model_await_end(f->model, link) == WEFT_NEVER)
			found = link->to;
	}
	for (uint32_t p = t->promise + 1; p < f->model->promise_count && found == WEFT_NONE; p++)
		if (promises[p].created_by == t->promise && promises[p].start_ns >= t->asked_ns &&
		    f->link_index.ended_ns[p] == WEFT_NEVER && promises[p].kind != WEFT_KIND_STREAM_READ)
			found = p;
	return found;
}

/* Returns an unanswered request that was made on another connection since then, or NULL: preferably a request by the promise
 * itself, otherwise the first on its thread. */
static const struct weft_request *find_open_request(const struct weft__finder *f, const struct talk *t)
{
	const struct weft_model *m = f->model;
	const struct weft_request *best = NULL;
	for (size_t i = 0; i < m->request_count; i++) {
		const struct weft_request *request = &m->requests[i];
		const bool is_own = request->by == t->promise, is_best_own = best && best->by == t->promise;
		if (!request->is_question || request->answered_ns != WEFT_NEVER || request->connection == t->promise ||
		    request->asked_ns < t->asked_ns || request->stream != m->promises[t->promise].stream ||
		    weft_min_ns(weft_request_until(m, request), get_end_ns(f, t)) - request->asked_ns < get_silence_ns(f, t) / 2)
			continue;
		if (!best || (is_own == is_best_own ? request->asked_ns < best->asked_ns : is_own))
			best = request;
	}
	return best;
}

static void report_others(struct search *s, const struct talk *first)
{
	size_t shown = 0, others = 0;
	for (const struct talk *t = first + 1; t < s->silent.items + s->silent.count; t++) {
		if (t->group != first->group || !is_answer_due(s, t) || others++ >= WEFT__MAX_LINES)
			continue;
		shown++;
		weft__finding_evidence(s->finder, WEFT_EVIDENCE_VICTIM, t->asked_ns, t->promise, "%s is silent, too",
		    weft__format_promise(s->finder, t->promise));
	}
	if (others > shown)
		weft__evidence_add_more(s->finder, WEFT_EVIDENCE_VICTIM, others - shown, "");
}

/* Adds evidence about the other end of the connection, which another process recorded: whether that end has read the
 * message. */
static void report_peer(struct weft__finder *f, const struct talk *t, uint32_t peer)
{
	const struct weft_model *m = f->model;
	const char *host = weft__format_host_suffix(f, peer), *process = m->trace->parts[weft_part_of(m, peer)].name;
	const char *there = weft__finding_text(f, "%s%s%s%s", weft__format_promise(f, peer), weft__format_site_suffix(f, peer),
	    *host ? "" : " in ", *host ? "" : process);
	const size_t after = WEFT_FIND_FIRST(i, 0, m->transfer_count, m->transfers[i].to > (t->is_accepted ? t->promise : peer));
	const struct weft_transfer *last = after > 0 ? &m->transfers[after - 1] : NULL;
	const bool has_come = last && last->to == (t->is_accepted ? t->promise : peer) && last->received_ns >= t->asked_ns;
	if (t->is_accepted)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, peer,
		    "%s is the other end of the connection, and waits for the answer", there);
	else if (has_come)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last->received_ns, peer, "%s has read the message", there);
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, peer, "%s has not read the message", there);
}

static const char *get_advice(struct weft__finder *f, uint32_t connection)
{
	const uint32_t peer = weft_peer_of(f->model, connection);
	return peer == WEFT_NONE ? weft__finding_text(f, "find out why the peer of %s is silent, or set a timeout",
				       weft__format_promise(f, connection))
				 : weft__finding_text(f, "find out why %s in %s does not answer", weft__format_promise(f, peer),
				       f->model->trace->parts[weft_part_of(f->model, peer)].name);
}

/* Marks the group of a connection that is part of another finding, if the group has no other silent connection. */
static void suppress_group(struct search *s, uint32_t connection)
{
	for (size_t i = 0; i < s->silent.count; i++)
		if (s->silent.items[i].promise == connection && s->groups.items[s->silent.items[i].group].silent == 1)
			s->groups.items[s->silent.items[i].group].is_reported = true;
}

static void report_unanswered(struct search *s, const struct talk *t)
{
	struct weft__finder *f = s->finder;
	struct group *group = &s->groups.items[t->group];
	uint32_t p = t->promise;
	bool is_over = f->link_index.ended_ns[p] != WEFT_NEVER;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, t->asked_ns, get_end_ns(f, t));
	if (!finding)
		return;
	const bool is_named = s->has_requests[p];
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *silence = weft__format_duration(f, get_silence_ns(f, t));
	if (is_named)
		name = weft__finding_text(
		    f, "%s on %s", weft__format_promise(f, weft__asked_on(f, p, t->asked_ns)), weft__format_promise_id(f, p));
	finding->weight =
	    /* puts the connection that owes the answer before the peer that waits for it */
	    group->silent + (t->is_accepted ? (uint64_t)UINT32_MAX : 0);
	const uint32_t input = find_awaited(f, t);
	const struct weft_request *asked = input == WEFT_NONE && t->is_accepted ? find_open_request(f, t) : NULL;
	const char *waits = is_over ? " until it was closed" : "";
	if (input != WEFT_NONE)
		waits = weft__finding_text(f, ": it waits for %s", weft__format_promise(f, input));
	else if (asked)
		waits = weft__finding_text(f, ": it waits%s for %s, which does not answer", asked->by == p ? "" : ", maybe,",
		    weft__format_promise(f, asked->connection));
	const char *has = is_over ? "" : "has ";
	finding->title = t->is_accepted
			     ? weft__finding_text(f, "%s %sowed its peer an answer for %s%s%s", name, has, silence, waits, at)
			     : weft__finding_text(f, "%s %swaited for an answer for %s%s%s", name, has, silence, waits, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, t->asked_ns, p,
	    t->is_accepted ? "%s%s reads a message, and writes nothing after it"
			   : "%s%s writes a message, and reads nothing after it",
	    name, at);
	if (input != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[input].start_ns, input, "%s waits for %s%s",
		    name, weft__format_promise(f, input), weft__format_site_suffix(f, input));
	const uint32_t peer = weft_peer_of(f->model, p);
	if (peer != WEFT_NONE)
		report_peer(f, t, peer);
	if (asked) {
		weft__evidence_add_request(f, asked);
		suppress_group(s, asked->connection);
	}
	if (input != WEFT_NONE)
		finding->next = weft__finding_text(f, "find out why %s does not end", weft__format_promise(f, input));
	else if (t->is_accepted && !asked)
		finding->next =
		    weft__finding_text(f, "find the path on which the code reads a message and writes no answer%s", at);
	else
		finding->next = get_advice(f, asked ? asked->connection : p);
	if (group->answers > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " earlier answers on connections %s at the same place: the slowest took %s", group->answers,
		    t->is_accepted ? "accepted" : "made", weft__format_duration(f, group->longest_ns));
	report_others(s, t);
	if (is_named)
		return;
	weft__finding_doubt(f, "the trace does not show the content of messages, so the last one may need no answer");
}

/* Reports a connection that is still open and silent although almost all other connections of its listener are closed and none
 * of them was silent for as long.  Returns false if there is no such connection. */
static bool report_left_open(struct weft__finder *f, const struct group *group, const bool *has_requests)
{
	const struct talk *t = &group->open_one;
	const uint32_t p = t->promise;
	const int64_t silent_ns = weft_model_until(f->model, p) - t->last_ns;
	/* A ring keeps few connections, so fewer of them are enough. */
	const bool is_ring = weft__completeness_of(f->completeness, f->model, p)->wrapped;
	const uint32_t enough = is_ring ? ENOUGH_IN_RING : ENOUGH_ENDED, others = is_ring ? OTHERS_IN_RING : ENOUGH_ENDED;
	if (!t->is_accepted || has_requests[p] || group->is_reported || group->ended < enough || group->open == 0 ||
	    group->open > group->ended / others || !f->idle_at_end[f->model->promises[p].stream] || silent_ns < MIN_LEFT_NS ||
	    silent_ns / TIMES_GAP < group->gap_ns)
		return false;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, t->last_ns, weft_model_until(f->model, p));
	if (!finding)
		return false;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->title = weft__finding_text(f, "%s has been silent for %s: %" PRIu32 " others from this listener are closed%s",
	    name, weft__format_duration(f, silent_ns), group->ended, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, t->last_ns, p, "last read or write on %s%s", name, at);
	finding->next =
	    weft__finding_text(f, "look for a forgotten answer, or a read that was stopped and not started again%s", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "no closed connection was silent for longer than %s", weft__format_duration(f, group->gap_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "the trace does not show the content of messages, so the conversation may be over");
	return true;
}

/* ---- Requests in flight at the end ---- */

/* Returns, by promise, when it last began something other than a read that is pending at the end: a timer, a file operation, a
 * question to another peer.  WEFT_NO_TIME: nothing.  The caller frees the array; NULL on lack of memory, which is noted in the
 * finder. */
static int64_t *find_pending_work(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	int64_t *begun_ns = weft__finding_alloc(f, m->promise_count, sizeof *begun_ns);
	for (uint32_t p = 0; begun_ns && p < m->promise_count; p++)
		begun_ns[p] = WEFT_NO_TIME;
	for (uint32_t p = 1; begun_ns && p < m->promise_count; p++) {
		const uint32_t by = m->promises[p].created_by;
		if (by != WEFT_NONE && f->link_index.ended_ns[p] == WEFT_NEVER && f->types.kinds[p] != WEFT_KIND_STREAM_READ)
			begun_ns[by] = weft_max_ns(begun_ns[by], m->promises[p].start_ns);
	}
	for (size_t i = 0; begun_ns && i < m->request_count; i++)
		if (m->requests[i].is_question && weft_request_until(m, &m->requests[i]) == WEFT_NEVER)
			begun_ns[m->requests[i].by] = weft_max_ns(begun_ns[m->requests[i].by], m->requests[i].asked_ns);
	return begun_ns;
}

/* Counts, by group, the connections with a request for which the program has begun something that is pending at the end. */
static void count_in_flight(struct search *s)
{
	struct weft__finder *f = s->finder;
	int64_t *begun_ns = s->silent.count ? find_pending_work(f) : NULL;
	for (size_t i = 0; begun_ns && i < s->silent.count; i++) {
		const struct talk *t = &s->silent.items[i];
		struct group *group = &s->groups.items[t->group];
		if (!t->is_accepted || s->has_requests[t->promise] || f->link_index.ended_ns[t->promise] != WEFT_NEVER ||
		    begun_ns[t->promise] < t->asked_ns)
			continue;
		if (group->in_flight++ == 0 || t->asked_ns < group->oldest.asked_ns)
			group->oldest = *t;
	}
	free(begun_ns);
}

/* Reports requests that were in flight when the program ended, if the program usually answers the requests of their
 * listener, or if a signal asked the program to end. */
static void report_in_flight(struct weft__finder *f, const struct group *group)
{
	const struct talk *t = &group->oldest;
	const uint32_t p = t->promise;
	const int64_t until_ns = weft_model_until(f->model, p);
	int64_t came_ns;
	if (group->is_reported || group->in_flight == 0 || f->model->is_whole)
		return;
	const uint32_t by = weft__end_signal_find(f, p, until_ns, &came_ns);
	if ((by == WEFT_NONE || came_ns < t->asked_ns) && (group->answers < ENOUGH_ANSWERS || group->answers < group->in_flight))
		return;
	const struct weft__completeness *of = weft__completeness_of(f->completeness, f->model, p);
	struct weft_finding *finding =
	    of->end_missing && !of->died ? NULL : weft__finding_begin(f, WEFT_FINDING_UNDERWAY, p, t->asked_ns, until_ns);
	if (!finding)
		return;
	const char *id = weft__format_promise_id(f, p), *at = weft__format_site_suffix(f, p);
	const uint32_t input = find_awaited(f, t);
	finding->weight = group->in_flight;
	const char *subject =
	    group->in_flight == 1 ? id : weft__finding_text(f, "%s and %" PRIu32 " more", id, group->in_flight - 1);
	finding->title = by == WEFT_NONE
			     ? weft__finding_text(f, "%s had no answer when the program ended, %s after the request%s", subject,
				   weft__format_duration(f, until_ns - t->asked_ns), at)
			     : weft__finding_text(f, "%s had no answer when the program ended, %s after %s%s", subject,
				   weft__format_duration(f, until_ns - came_ns), weft__format_promise(f, by), at);
	finding->next = "accept no more requests, and answer those in flight, before the program exits";
	if (input != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, f->model->promises[input].start_ns, input, "%s waits for %s%s", id,
		    weft__format_promise(f, input), weft__format_site_suffix(f, input));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, t->asked_ns, p, "%s%s reads a message, and writes nothing after it",
	    weft__format_promise(f, p), at);
	if (by != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, came_ns, by, "%s%s comes, which asks the program to end",
		    weft__format_promise(f, by), weft__format_site_suffix(f, by));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, until_ns, WEFT_NONE, "the program ends");
	if (group->answers > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " earlier answer%s on connections accepted at the same place: the slowest took %s", group->answers,
		    weft__format_plural_s(group->answers), weft__format_duration(f, group->longest_ns));
	weft__finding_doubt(f, "the trace does not show the content of messages, so the last one may need no answer");
}

/* ---- A part of an answer ---- */

/* Returns whether the thread of p has another open connection, so that it may wait for that one. */
static bool has_other_connection(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t q = 1; q < m->promise_count; q++)
		if (q != p && m->promises[q].stream == m->promises[p].stream && f->types.kinds[q] == WEFT_KIND_CONNECTION &&
		    f->link_index.ended_ns[q] == WEFT_NEVER)
			return true;
	return false;
}

/* Reports a thread that read an answer and at once waits to read more, far longer than any answer or pause before: perhaps its
 * peer sent a part of a message. */
static void report_unfinished(const struct search *s, const struct group *group)
{
	struct weft__finder *f = s->finder;
	const struct talk *t = &group->first;
	const struct weft_model *m = f->model;
	const uint32_t p = t->promise;
	if (group->unfinished == 0 || group->is_reported || group->answers < ENOUGH_ANSWERS || m->is_whole)
		return;
	const int64_t silent_ns = weft_model_until(m, p) - t->last_ns;
	if (silent_ns < MIN_SILENCE_NS || silent_ns / TIMES_LONGER <= weft_max_ns(group->longest_ns, group->pause_ns) ||
	    has_other_connection(f, p))
		return;
	const struct weft_interval *read = find_read(s, t);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_UNANSWERED, p, t->last_ns, weft_model_until(m, p));
	if (!finding || !read)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p);
	const uint32_t other_end = weft_other_end_of(m, p);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = group->unfinished;
	finding->title = weft__finding_text(
	    f, "%s has waited for the rest of an answer for %s%s", name, weft__format_duration(f, silent_ns), at);
	finding->next = weft__finding_text(
	    f, "find out whether the peer of %s sends the end of each message, and set a timeout", weft__format_promise_id(f, p));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, t->last_ns, p, "%s%s reads a message, and writes nothing after it", name, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, read->start_ns, p,
	    "its thread calls %s%s to read more, which has not returned", weft__format_text(f, weft_model_call(m, read)),
	    weft__format_place(f, weft_model_place(m, read)));
	if (other_end != WEFT_NONE && f->link_index.ended_ns[other_end] == WEFT_NEVER)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, other_end,
		    "%s%s is the other end, and has sent no more", weft__format_promise(f, other_end),
		    weft__format_site_suffix(f, other_end));
	if (group->unfinished > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " more connection%s made there wait%s in the same way", group->unfinished - 1,
		    weft__format_plural_s(group->unfinished - 1), group->unfinished == 2 ? "s" : "");
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "%" PRIu32 " earlier answers on connections made there: the slowest took %s, and the longest pause was %s",
	    group->answers, weft__format_duration(f, group->longest_ns), weft__format_duration(f, group->pause_ns));
	weft__finding_doubt(f, "the trace does not show what was said, so the answer may be whole");
}

/* ---- Both ends in one program ---- */

/* Returns the connection on which, according to a finding, an answer is due; WEFT_NONE if the finding says no such thing.
 * is_asker is set if the program waits for the answer, and unset if the program must give it. */
static uint32_t find_connection(const struct weft__finder *f, const struct weft_finding *finding, bool *is_asker)
{
	const struct weft_model *m = f->model;
	const uint32_t p = finding->promise, root = finding->root;
	const bool is_end = finding->kind == WEFT_FINDING_HANG || finding->kind == WEFT_FINDING_UNANSWERED;
	*is_asker = false;
	if (!is_end || p == WEFT_NONE || p == WEFT_SYSTEM)
		return WEFT_NONE;
	if (weft__is_served(f, p))
		return m->promises[p].created_by;
	const uint32_t at = f->types.kinds[p] == WEFT_KIND_CONNECTION ? p : root;
	if (f->types.kinds[at] != WEFT_KIND_CONNECTION)
		return WEFT_NONE;
	const uint32_t maker = m->promises[at].created_by;
	*is_asker = maker == WEFT_NONE || f->types.kinds[maker] != WEFT_KIND_LISTEN;
	return at;
}

/* If both ends of a connection are in one program, the finding about the server covers the finding about the client: the server
 * has received the request and must answer. */
static void cover_askers(struct weft__finder *f)
{
	for (size_t i = 0; i < f->findings.count; i++) {
		bool is_asker, is_other_asker;
		const uint32_t connection = find_connection(f, &f->findings.items[i], &is_asker);
		for (size_t k = 0; connection != WEFT_NONE && is_asker && k < f->findings.count; k++) {
			const uint32_t other = find_connection(f, &f->findings.items[k], &is_other_asker);
			if (other == WEFT_NONE || is_other_asker || weft_other_end_of(f->model, other) != connection ||
			    weft__finding_is_covered(f, k))
				continue;
			weft__finding_cover(f, i, k);
			break;
		}
	}
}

void weft__find_unanswered(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct search s = {.finder = f, .listener = WEFT_NONE};
	struct talk talk;
	if (!weft__promise_types_have(&f->types, WEFT_KIND_CONNECTION))
		return;
	s.has_requests = weft__finding_alloc(f, m->promise_count, sizeof *s.has_requests);
	s.last_sleep = weft__finding_alloc(f, m->trace->stream_count, sizeof *s.last_sleep);
	if (!s.has_requests || !s.last_sleep) {
		free(s.has_requests);
		free(s.last_sleep);
		return;
	}
	for (size_t i = 0; i < m->sleep_count; i++)
		if (m->sleeps[i].stream < m->trace->stream_count)
			s.last_sleep[m->sleeps[i].stream] = (uint32_t)i + 1;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		const uint32_t on = weft__is_served(f, p) ? m->promises[p].created_by : weft__asked_connection(f, p);
		if (on != WEFT_NONE)
			s.has_requests[on] = true;
	}
	uint32_t listeners = 0;
	for (uint32_t p = 1; p < m->promise_count && weft__promise_types_have(&f->types, WEFT_KIND_LISTEN); p++)
		if (f->types.kinds[p] == WEFT_KIND_LISTEN)
			s.listener = listeners++ == 0 ? p : WEFT_NONE;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++)
		if (f->types.kinds[p] == WEFT_KIND_CONNECTION && analyze_connection(&s, p, &talk))
			add_talk(&s, &talk);
	for (size_t i = 0; !f->no_memory && i < s.silent.count; i++)
		s.groups.items[s.silent.items[i].group].silent += is_answer_due(&s, &s.silent.items[i]);
	for (int is_accepted = 1; is_accepted >= 0; is_accepted--)
		for (size_t i = 0; !f->no_memory && i < s.silent.count; i++) {
			struct talk *t = &s.silent.items[i];
			if (t->is_accepted != is_accepted || !is_answer_due(&s, t) || s.groups.items[t->group].is_reported)
				continue;
			s.groups.items[t->group].is_reported = true;
			report_unanswered(&s, t);
		}
	count_in_flight(&s);
	for (size_t i = 0; !f->no_memory && i < s.groups.count; i++)
		if (!report_left_open(f, &s.groups.items[i], s.has_requests)) {
			report_in_flight(f, &s.groups.items[i]);
			report_unfinished(&s, &s.groups.items[i]);
		}
	weft__unread_find(f);
	cover_askers(f);
	weft_idmap_finish(&s.group_of_key);
	weft_vec_free(&s.groups);
	weft_vec_free(&s.silent);
	free(s.has_requests);
	free(s.last_sleep);
}
