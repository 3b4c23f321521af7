/* meet.c: connections of several hosts, matched by addresses; messages, matched by bytes; ways from clock to clock.
 *
 * A connection's other end is one that has its addresses the other way round, and of those the first that is left of which nobody
 * read more than was written: so addresses that return are matched in the order of time.  A read is matched with the last write
 * that it has a byte of, which tells more than those before.  SPDX-License-Identifier: ISC */
#include "trace/meet.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "trace/carry.h"
#include "trace/format.h"

enum { NONE = UINT32_MAX };

/* Bytes up to there, from where the step before ended. */
struct step {
	uint64_t begin, end;
	int64_t ns, trace_ns; /* by its clock, as the trace of that has it, and as its own has it */
};

typedef WEFT_VEC(struct step) steps;

struct end {
	uint32_t part, next; /* next: of the same addresses, or NONE */
	int64_t other;       /* the addresses of its other end */
	uint32_t own, peer;  /* addresses */
	uint64_t sent, received;
	uint64_t sent_untold; /* so many bytes had been written when it was first told of */
	steps writes, reads;
	bool is_taken, is_wrong; /* has another end; has one that contradicts it */
};

struct pair {
	WEFT_VEC(struct weft_tie_message) messages; /* `mine` is the first one's */
	struct weft_tie *forth, *back;              /* from the first to the second; from the second to the first */
	struct weft_meet_pair told;
};

struct meeting {
	struct weft_trace *const *traces;
	const uint32_t *clock_of, *host_of;
	const double *rates;
	WEFT_VEC(struct end) ends;
	WEFT_VEC(struct pair) pairs;
	struct weft_idmap named; /* by addresses: the first end and the last one, so that they stay in order */
	struct weft_idmap last;
	struct weft_idmap pair_of;
	struct weft_intern addresses;
	struct weft_meet *out;
	struct weft_error *err;
};

static int64_t key(uint32_t a, uint32_t b)
{
	return (int64_t)((uint64_t)a << 32 | b);
}

static bool begins(struct weft_str text, const char *with)
{
	const size_t bytes = strlen(with);
	return text.len >= bytes && !memcmp(text.ptr, with, bytes);
}

/* ---- What each part says ---- */

/* Ends of one part by the ids of their promises. */
static int add_end(struct meeting *m, uint32_t part, struct weft_idmap *of_part, const struct weft_event *e)
{
	struct weft_carry carry;
	if (!weft_carry_parse(e->text, &carry) || !begins(carry.protocol, "tcp") || begins(carry.own, "127.") ||
	    begins(carry.own, "[::1]"))
		return WEFT_OK;
	uint32_t at = weft_idmap_get(of_part, e->a);
	if (at != WEFT_IDMAP_NONE) { /* told again */
		assert(at < m->ends.count && m->ends.items);
		m->ends.items[at].sent = (uint64_t)e->value;
		m->ends.items[at].received = carry.received;
		return WEFT_OK;
	}
	const uint32_t own = weft_intern(&m->addresses, carry.own), peer = weft_intern(&m->addresses, carry.peer);
	at = (uint32_t)m->ends.count;
	struct end *end = weft_vec_push(&m->ends);
	if (own == WEFT_INTERN_FAILED || peer == WEFT_INTERN_FAILED || !end)
		return WEFT_ENOMEM;
	*end = (struct end){.part = part,
	    .next = NONE,
	    .other = key(peer, own),
	    .own = own,
	    .peer = peer,
	    .sent = (uint64_t)e->value,
	    .sent_untold = (uint64_t)e->value,
	    .received = carry.received};
	const uint32_t last = weft_idmap_get(&m->last, key(own, peer));
	if (last != WEFT_IDMAP_NONE)
		m->ends.items[last].next = at;
	else if (!weft_idmap_set(&m->named, key(own, peer), at))
		return WEFT_ENOMEM;
	return weft_idmap_set(&m->last, key(own, peer), at) && weft_idmap_set(of_part, e->a, at) ? WEFT_OK : WEFT_ENOMEM;
}

static int add_step(struct meeting *m, const struct weft_idmap *of_part, const struct weft_event *e)
{
	const uint32_t at = weft_idmap_get(of_part, e->a);
	if (at == WEFT_IDMAP_NONE)
		return WEFT_OK;
	assert(at < m->ends.count && m->ends.items);
	struct end *end = &m->ends.items[at];
	const bool is_sent = e->op == WEFT_OP_SENT;
	uint64_t *position = is_sent ? &end->sent : &end->received;
	steps *all = is_sent ? &end->writes : &end->reads;
	const uint64_t from = *position;
	*position = weft_carry_position(from, e->value);
	/* Taken back. */
	while (all->count && all->items[all->count - 1].begin >= *position)
		all->count--;
	if (all->count && all->items[all->count - 1].end > *position)
		all->items[all->count - 1].end = *position;
	if (*position <= from)
		return WEFT_OK;
	struct step *step = weft_vec_push(all);
	if (!step)
		return WEFT_ENOMEM;
	*step = (struct step){from, *position, (int64_t)((double)e->time_ns * m->rates[end->part]), e->time_ns};
	if (m->rates[end->part] == 1)
		step->ns = e->time_ns;
	return WEFT_OK;
}

static int compare_gaps(const void *a, const void *b)
{
	const struct weft_gap *x = a, *y = b;
	return WEFT_ORDER(x->from_ns, y->from_ns);
}

/* What was written behind a gap may have begun in it: only of its last byte it is known when it was written. */
static int cut_writes(struct meeting *m, uint32_t part, size_t first_end)
{
	const struct weft_trace_info *info = &m->traces[part]->info;
	struct weft_gap *gaps = info->gap_count ? malloc(info->gap_count * sizeof *gaps) : NULL;
	if (!gaps)
		return info->gap_count ? WEFT_ENOMEM : WEFT_OK;
	memcpy(gaps, info->gaps, info->gap_count * sizeof *gaps);
	weft_sort(gaps, info->gap_count, sizeof *gaps, compare_gaps);
	for (size_t g = 1; g < info->gap_count; g++) /* the latest end so far */
		gaps[g].to_ns = weft_max_ns(gaps[g - 1].to_ns, gaps[g].to_ns);
	for (size_t i = first_end; i < m->ends.count; i++) {
		int64_t before_ns = INT64_MIN;
		for (size_t w = 0; w < m->ends.items[i].writes.count; w++) {
			struct step *write = &m->ends.items[i].writes.items[w];
			const size_t begun = WEFT_FIRST(g, 0, info->gap_count, gaps[g].from_ns > write->trace_ns);
			if (begun > 0 && gaps[begun - 1].to_ns >= before_ns && write->end > write->begin)
				write->begin = write->end - 1;
			before_ns = write->trace_ns;
		}
	}
	free(gaps);
	return WEFT_OK;
}

static int read_part(struct meeting *m, uint32_t part)
{
	struct weft_idmap of_part = {0};
	const struct weft_event *e;
	size_t count;
	int status = WEFT_OK, more;
	const size_t first_end = m->ends.count;
	m->traces[part]->carried_only = true;
	while (status == WEFT_OK && (more = weft_trace_next(m->traces[part], &e, &count)) != 0) {
		status = more < 0 ? more : WEFT_OK;
		for (size_t i = 0; i < count && status == WEFT_OK; i++)
			if (e[i].op == WEFT_OP_DETAIL && e[i].kind == WEFT_DETAIL_CONNECTION)
				status = add_end(m, part, &of_part, &e[i]);
			else if (e[i].op == WEFT_OP_SENT || e[i].op == WEFT_OP_RECEIVED)
				status = add_step(m, &of_part, &e[i]);
	}
	weft_idmap_finish(&of_part);
	if (status == WEFT_OK)
		status = cut_writes(m, part, first_end);
	m->traces[part]->carried_only = false;
	weft_trace_rewind(m->traces[part]);
	return status;
}

/* ---- What went between them ---- */

static struct pair *pair_of(struct meeting *m, const struct end *a, const struct end *b)
{
	const uint32_t first = m->clock_of[a->part], second = m->clock_of[b->part];
	uint32_t at = weft_idmap_get(&m->pair_of, key(first, second));
	if (at == WEFT_IDMAP_NONE) {
		at = (uint32_t)m->pairs.count;
		struct pair *pair = weft_idmap_set(&m->pair_of, key(first, second), at) ? weft_vec_push(&m->pairs) : NULL;
		if (!pair)
			return NULL;
		*pair = (struct pair){.told = {.parts = {a->part, b->part}, .clocks = {first, second}}};
	}
	return &m->pairs.items[at];
}

static const char *name_of(const struct meeting *m, uint32_t part)
{
	return m->traces[part]->source.name;
}

/* Two hosts of one boot id and one counter are containers of one machine, or a machine and its copy. */
static int check_clock(
    const struct meeting *m, const struct end *from, const struct end *to, int64_t sent_ns, int64_t received_ns)
{
	if (received_ns >= sent_ns)
		return WEFT_OK;
	return weft_error_set(m->err, WEFT_EINVAL,
	    "%.32s and %.32s cannot be joined: they name one boot, but bytes came %" PRId64
	    " ns before they were sent: they have two clocks",
	    name_of(m, from->part), name_of(m, to->part), sent_ns - received_ns);
}

/* For each read the last write that it has a byte of; pair: of their clocks, NULL: they have one. */
static int add_messages(struct meeting *m, struct pair *pair, const struct end *from, const struct end *to, bool is_mine)
{
	const steps *writes = &from->writes, *reads = &to->reads;
	size_t w = 0;
	int status = WEFT_OK;
	for (size_t r = 0; r < reads->count && status == WEFT_OK; r++) {
		const struct step *read = &reads->items[r];
		while (w + 1 < writes->count && writes->items[w + 1].begin < read->end)
			w++;
		const bool is_known = w < writes->count && writes->items[w].begin < read->end;
		/* What came before a ring's oldest event is forgotten. */
		const bool is_untold = read->end <= from->sent_untold || m->traces[from->part]->info.wrapped;
		m->out->unwritten += is_known ? writes->items[w].end < read->end : !is_untold;
		if (!is_known || writes->items[w].end <= read->begin)
			continue;
		const int64_t sent_ns = writes->items[w].ns, received_ns = read->ns;
		struct weft_tie_message *message = pair ? weft_vec_push(&pair->messages) : NULL;
		if (!pair)
			status = check_clock(m, from, to, sent_ns, received_ns);
		else if (!message)
			status = WEFT_ENOMEM;
		else
			*message = is_mine ? (struct weft_tie_message){sent_ns, received_ns, true}
					   : (struct weft_tie_message){received_ns, sent_ns, false};
		if (message)
			pair->told.messages[!is_mine]++;
	}
	return status;
}

static int join_ends(struct meeting *m, struct end *a, struct end *b)
{
	const bool has_one_clock = m->clock_of[b->part] == m->clock_of[a->part];
	a->is_taken = b->is_taken = true;
	if (has_one_clock && m->host_of[a->part] == m->host_of[b->part])
		return WEFT_OK;
	struct pair *pair = has_one_clock ? NULL : pair_of(m, a, b);
	if (!pair && !has_one_clock)
		return WEFT_ENOMEM;
	if (pair)
		pair->told.connections++;
	const int status = add_messages(m, pair, a, b, true);
	return status == WEFT_OK ? add_messages(m, pair, b, a, false) : status;
}

/* One trace may have ended before the other: then more was read than it knows to be written. */
static bool may_be_ends(const struct end *a, const struct end *b)
{
	return a->next == NONE && b->next == NONE && (!a->reads.count || a->reads.items[0].end <= b->sent) &&
	       (!b->reads.count || b->reads.items[0].end <= a->sent);
}

static void name_end(const struct meeting *m, const struct end *end, char out[120])
{
	const struct weft_str *texts = m->addresses.texts.items, own = texts[end->own], peer = texts[end->peer];
	snprintf(out, 120, "%.*s %.*s", own.len < 56 ? (int)own.len : 56, own.ptr, peer.len < 56 ? (int)peer.len : 56, peer.ptr);
}

static int match(struct meeting *m, bool is_strict)
{
	int status = WEFT_OK;
	for (uint32_t i = 0; i < m->ends.count && status == WEFT_OK; i++) {
		struct end *a = &m->ends.items[i];
		for (uint32_t at = weft_idmap_get(&m->named, a->other);
		     at < m->ends.count && !a->is_taken && status == WEFT_OK;) {
			struct end *b = &m->ends.items[at];
			const bool is_whole = b->received <= a->sent && a->received <= b->sent;
			at = b->next;
			if (b->is_taken || m->clock_of[b->part] < m->clock_of[a->part] || b == a)
				continue;
			if (is_whole || (!is_strict && may_be_ends(a, b)))
				status = join_ends(m, a, b);
			else if (!is_strict) {
				a->is_wrong = b->is_wrong = true;
				if (m->out->contradictory++ == 0)
					name_end(m, a, m->out->wrong);
			}
		}
	}
	return status;
}

/* Ends without another one, and whether somebody changed the addresses on the way. */
static int count_alone(struct meeting *m)
{
	struct weft_idmap known = {0}; /* addresses to which somebody here listens or is connected, without the peer */
	bool has_memory = true;
	for (size_t i = 0; i < m->ends.count && has_memory; i++)
		has_memory = m->ends.items[i].is_taken || m->ends.items[i].is_wrong ||
			     weft_idmap_set(&known, m->ends.items[i].own, m->ends.items[i].part);
	for (size_t i = 0; i < m->ends.count && has_memory; i++) {
		const struct end *end = &m->ends.items[i];
		if (end->is_taken || end->is_wrong)
			continue;
		const uint32_t part = weft_idmap_get(&known, end->peer);
		const bool is_renamed = part != WEFT_IDMAP_NONE && part != end->part;
		m->out->alone++;
		m->out->renamed += is_renamed;
		if (!m->out->example[0] || (is_renamed && m->out->renamed == 1))
			name_end(m, end, m->out->example);
	}
	weft_idmap_finish(&known);
	return has_memory ? WEFT_OK : WEFT_ENOMEM;
}

/* ---- Ways ---- */

/* How much `other` gains, from the first message to the last, in millionths of a thousandth. */
static void tell_rate(struct weft_meet_pair *told, const struct weft_tie *tie, int64_t first_ns, int64_t last_ns)
{
	int64_t low[2], high[2];
	const double span = (double)last_ns - (double)first_ns;
	weft_tie_time(tie, first_ns, &low[0], &high[0]);
	weft_tie_time(tie, last_ns, &low[1], &high[1]);
	const double most = 1e9 / WEFT_TIE_RATE, rate_low = ((double)low[1] - (double)high[0] - span) / span * 1e9,
		     rate_high = ((double)high[1] - (double)low[0] - span) / span * 1e9;
	told->rate_low_ppb = (int64_t)(span > 0 && rate_low > -most ? rate_low : -most);
	told->rate_high_ppb = (int64_t)(span > 0 && rate_high < most ? rate_high : most);
}

/* Both directions of a pair; one that has messages one way only ties nothing. */
static int tie_pair(const struct meeting *m, struct pair *pair)
{
	struct weft_error why;
	const bool are_steady = m->traces[pair->told.parts[0]]->is_steady && m->traces[pair->told.parts[1]]->is_steady;
	int status = weft_tie_create(&pair->forth, pair->messages.items, pair->messages.count, are_steady, &why);
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	for (size_t i = 0; i < pair->messages.count; i++) {
		struct weft_tie_message *message = &pair->messages.items[i];
		first_ns = message->mine_ns < first_ns ? message->mine_ns : first_ns;
		last_ns = message->mine_ns > last_ns ? message->mine_ns : last_ns;
		*message = (struct weft_tie_message){message->other_ns, message->mine_ns, !message->is_mine};
	}
	if (status == WEFT_OK)
		status = weft_tie_create(&pair->back, pair->messages.items, pair->messages.count, are_steady, &why);
	if (status == WEFT_ENOTFOUND)
		return WEFT_OK;
	if (status == WEFT_EINVAL)
		return weft_error_set(m->err, status, "%.26s and %.26s cannot be joined: %s", name_of(m, pair->told.parts[0]),
		    name_of(m, pair->told.parts[1]), why.what);
	if (status < 0)
		return weft_error_set(m->err, status, "%s", why.what);
	pair->told.is_tied = true;
	weft_tie_width(pair->forth, &pair->told.least_ns, &pair->told.average_ns);
	tell_rate(&pair->told, pair->forth, first_ns, last_ns);
	return WEFT_OK;
}

/* From each clock the narrowest way to the first. */
static void find_ways(const struct meeting *m, struct weft_meet *out)
{
	for (size_t i = 0; i < out->clock_count; i++)
		out->bounds_ns[i] = i ? INT64_MAX : 0;
	for (bool is_better = true; is_better;) {
		is_better = false;
		for (size_t i = 0; i < m->pairs.count; i++) {
			const struct pair *pair = &m->pairs.items[i];
			for (int turn = 0; turn < 2 && pair->back; turn++) {
				const uint32_t from = pair->told.clocks[!turn], to = pair->told.clocks[turn];
				int64_t bound_ns;
				if (out->bounds_ns[to] == INT64_MAX ||
				    __builtin_add_overflow(out->bounds_ns[to], pair->told.average_ns / 2 + 1, &bound_ns) ||
				    bound_ns >= out->bounds_ns[from])
					continue;
				out->bounds_ns[from] = bound_ns;
				out->ways[from] = (struct weft_meet_way){turn ? pair->forth : pair->back, to};
				is_better = true;
			}
		}
	}
}

static int hand_over(struct meeting *m, struct weft_meet *out)
{
	out->ways = calloc(out->clock_count, sizeof *out->ways);
	out->bounds_ns = calloc(out->clock_count, sizeof *out->bounds_ns);
	out->ties = calloc(2 * m->pairs.count + 1, sizeof(struct weft_tie *));
	out->pairs = calloc(m->pairs.count + 1, sizeof *out->pairs);
	if (!out->ways || !out->bounds_ns || !out->ties || !out->pairs)
		return WEFT_ENOMEM;
	find_ways(m, out);
	for (size_t i = 0; i < m->pairs.count; i++) {
		out->pairs[out->pair_count++] = m->pairs.items[i].told;
		out->connections += m->pairs.items[i].told.connections;
		out->messages += m->pairs.items[i].messages.count;
		out->ties[out->tie_count++] = m->pairs.items[i].forth;
		out->ties[out->tie_count++] = m->pairs.items[i].back;
		m->pairs.items[i].forth = m->pairs.items[i].back = NULL;
	}
	return WEFT_OK;
}

static void drop(struct meeting *m)
{
	for (size_t i = 0; i < m->ends.count; i++) {
		weft_vec_free(&m->ends.items[i].writes);
		weft_vec_free(&m->ends.items[i].reads);
	}
	for (size_t i = 0; i < m->pairs.count; i++) {
		weft_vec_free(&m->pairs.items[i].messages);
		weft_tie_destroy(m->pairs.items[i].forth);
		weft_tie_destroy(m->pairs.items[i].back);
	}
	weft_vec_free(&m->ends);
	weft_vec_free(&m->pairs);
	weft_idmap_finish(&m->named);
	weft_idmap_finish(&m->last);
	weft_idmap_finish(&m->pair_of);
	weft_intern_finish(&m->addresses);
}

int weft_meet(struct weft_meet *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const uint32_t *host_of, const double *rates, size_t clock_count, struct weft_error *err)
{
	struct weft_meet made = {.clock_count = clock_count};
	struct weft_error told = {0};
	struct meeting m = {
	    .traces = traces, .clock_of = clock_of, .host_of = host_of, .rates = rates, .out = &made, .err = &told};
	int status = WEFT_OK;
	for (uint32_t i = 0; i < count && status == WEFT_OK; i++)
		status = read_part(&m, i);
	if (status == WEFT_OK)
		status = match(&m, true);
	if (status == WEFT_OK)
		status = match(&m, false);
	if (status == WEFT_OK)
		status = count_alone(&m);
	for (size_t i = 0; i < m.pairs.count && status == WEFT_OK; i++)
		status = tie_pair(&m, &m.pairs.items[i]);
	if (status == WEFT_OK)
		status = hand_over(&m, &made);
	drop(&m);
	if (status < 0) {
		weft_meet_finish(&made);
		return weft_error_set(err, (enum weft_status)status, "%s", told.what[0] ? told.what : weft_status_string(status));
	}
	*out = made;
	return WEFT_OK;
}

int64_t weft_meet_time_from(
    const struct weft_meet *meet, uint32_t clock, int64_t ns, struct weft_tie_cursor cursors[WEFT_MEET_NEAR], int64_t *left_ns)
{
	for (int i = 0; i < WEFT_MEET_NEAR && clock && meet->ways && meet->ways[clock].tie; i++) {
		ns = weft_tie_time_from(meet->ways[clock].tie, ns, &cursors[i], left_ns);
		clock = meet->ways[clock].to;
	}
	if (clock && meet->ways && meet->ways[clock].tie)
		*left_ns = 1;
	return weft_meet_time(meet, clock, ns, NULL, NULL);
}

int64_t weft_meet_time(const struct weft_meet *meet, uint32_t clock, int64_t ns, int64_t *low, int64_t *high)
{
	int64_t least = ns, most = ns;
	while (clock && meet->ways && meet->ways[clock].tie) {
		const struct weft_tie *tie = meet->ways[clock].tie;
		ns = weft_tie_time(tie, ns, NULL, NULL);
		if (low)
			weft_tie_time(tie, least, &least, NULL);
		if (high)
			weft_tie_time(tie, most, NULL, &most);
		clock = meet->ways[clock].to;
	}
	if (low)
		*low = least;
	if (high)
		*high = most;
	return ns;
}

void weft_meet_finish(struct weft_meet *meet)
{
	for (size_t i = 0; i < meet->tie_count; i++)
		weft_tie_destroy(meet->ties[i]);
	free(meet->ties);
	free(meet->pairs);
	free(meet->ways);
	free(meet->bounds_ns);
	*meet = (struct weft_meet){0};
}
