/* meet.c: connections of several hosts, matched by addresses; messages, matched by bytes; ways from clock to clock.
 *
 * A connection's other end is one that has its addresses the other way round, and of those the first that is left of which nobody
 * read more than was written: so addresses that return are matched in the order of time.  A read is matched with the last write
 * that it has a byte of, which tells more than those before.  SPDX-License-Identifier: ISC */
#include "trace/meet.h"

#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "trace/carry.h"
#include "trace/format.h"

enum { NONE = UINT32_MAX };

/* Bytes up to there, from where the step before ended. */
struct step {
	uint64_t begin, end;
	int64_t ns;
};

typedef WEFT_VEC(struct step) steps;

struct end {
	uint32_t part, next; /* next: of the same addresses, or NONE */
	int64_t other;       /* the addresses of its other end */
	uint64_t sent, received;
	steps writes, reads;
	bool is_taken;
};

struct pair {
	uint32_t first, second;                     /* clocks */
	uint32_t part[2];                           /* one of each, for messages */
	WEFT_VEC(struct weft_tie_message) messages; /* `mine` is the first one's */
	struct weft_tie *forth, *back;              /* from the first to the second; from the second to the first */
	int64_t width_ns;
};

struct meeting {
	struct weft_trace *const *traces;
	const uint32_t *clock_of;
	const double *rates;
	WEFT_VEC(struct end) ends;
	WEFT_VEC(struct pair) pairs;
	struct weft_idmap named; /* by addresses: the first end and the last one, so that they stay in order */
	struct weft_idmap last;
	struct weft_idmap pair_of;
	struct weft_intern addresses;
	size_t connections, messages;
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
		m->ends.items[at].sent = (uint64_t)e->value;
		m->ends.items[at].received = carry.received;
		return WEFT_OK;
	}
	const uint32_t own = weft_intern(&m->addresses, carry.own), peer = weft_intern(&m->addresses, carry.peer);
	at = (uint32_t)m->ends.count;
	struct end *end = weft_vec_push(&m->ends);
	if (own == WEFT_INTERN_FAILED || peer == WEFT_INTERN_FAILED || !end)
		return WEFT_ENOMEM;
	*end = (struct end){
	    .part = part, .next = NONE, .other = key(peer, own), .sent = (uint64_t)e->value, .received = carry.received};
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
	*step = (struct step){from, *position, (int64_t)((double)e->time_ns * m->rates[end->part])};
	if (m->rates[end->part] == 1)
		step->ns = e->time_ns;
	return WEFT_OK;
}

static int read_part(struct meeting *m, uint32_t part)
{
	struct weft_idmap of_part = {0};
	const struct weft_event *e;
	size_t count;
	int status = WEFT_OK, more;
	while (status == WEFT_OK && (more = weft_trace_next(m->traces[part], &e, &count)) != 0) {
		status = more < 0 ? more : WEFT_OK;
		for (size_t i = 0; i < count && status == WEFT_OK; i++)
			if (e[i].op == WEFT_OP_DETAIL && e[i].kind == WEFT_DETAIL_CONNECTION)
				status = add_end(m, part, &of_part, &e[i]);
			else if (e[i].op == WEFT_OP_SENT || e[i].op == WEFT_OP_RECEIVED)
				status = add_step(m, &of_part, &e[i]);
	}
	weft_idmap_finish(&of_part);
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
		*pair = (struct pair){.first = first, .second = second, .part = {a->part, b->part}};
	}
	return &m->pairs.items[at];
}

static bool add_messages(struct meeting *m, struct pair *pair, const steps *writes, const steps *reads, bool is_mine)
{
	size_t w = 0;
	for (size_t r = 0; r < reads->count; r++) {
		const struct step *read = &reads->items[r];
		while (w + 1 < writes->count && writes->items[w + 1].begin < read->end)
			w++;
		if (w >= writes->count || writes->items[w].begin >= read->end || writes->items[w].end <= read->begin)
			continue;
		struct weft_tie_message *message = weft_vec_push(&pair->messages);
		if (!message)
			return false;
		const int64_t sent_ns = writes->items[w].ns, received_ns = read->ns;
		*message = is_mine ? (struct weft_tie_message){sent_ns, received_ns, true}
				   : (struct weft_tie_message){received_ns, sent_ns, false};
		m->messages++;
	}
	return true;
}

static int match(struct meeting *m)
{
	for (uint32_t i = 0; i < m->ends.count; i++) {
		struct end *a = &m->ends.items[i];
		for (uint32_t at = weft_idmap_get(&m->named, a->other); at < m->ends.count && !a->is_taken;) {
			struct end *b = &m->ends.items[at];
			at = b->next;
			if (b->is_taken || m->clock_of[b->part] <= m->clock_of[a->part] || b->received > a->sent ||
			    a->received > b->sent)
				continue;
			a->is_taken = b->is_taken = true;
			m->connections++;
			struct pair *pair = pair_of(m, a, b);
			if (!pair || !add_messages(m, pair, &a->writes, &b->reads, true) ||
			    !add_messages(m, pair, &b->writes, &a->reads, false))
				return WEFT_ENOMEM;
		}
	}
	return WEFT_OK;
}

/* ---- Ways ---- */

/* Both directions of a pair; one that has messages one way only ties nothing. */
static int tie_pair(struct meeting *m, struct pair *pair, struct weft_error *err)
{
	struct weft_error why;
	int status = weft_tie_create(&pair->forth, pair->messages.items, pair->messages.count, &why);
	for (size_t i = 0; i < pair->messages.count; i++) {
		struct weft_tie_message *message = &pair->messages.items[i];
		*message = (struct weft_tie_message){message->other_ns, message->mine_ns, !message->is_mine};
	}
	if (status == WEFT_OK)
		status = weft_tie_create(&pair->back, pair->messages.items, pair->messages.count, &why);
	if (status == WEFT_ENOTFOUND)
		return WEFT_OK;
	if (status == WEFT_EINVAL)
		return weft_error_set(err, status, "%s and %s: %s: they cannot be joined", m->traces[pair->part[0]]->source.name,
		    m->traces[pair->part[1]]->source.name, why.what);
	if (status < 0)
		return weft_error_set(err, status, "%s", why.what);
	int64_t least_ns;
	weft_tie_width(pair->forth, &least_ns, &pair->width_ns);
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
				const uint32_t from = turn ? pair->first : pair->second, to = turn ? pair->second : pair->first;
				int64_t bound_ns;
				if (out->bounds_ns[to] == INT64_MAX ||
				    __builtin_add_overflow(out->bounds_ns[to], pair->width_ns / 2 + 1, &bound_ns) ||
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
	if (!out->ways || !out->bounds_ns || !out->ties)
		return WEFT_ENOMEM;
	find_ways(m, out);
	for (size_t i = 0; i < m->pairs.count; i++) {
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
    const double *rates, size_t clock_count, struct weft_error *err)
{
	struct meeting m = {.traces = traces, .clock_of = clock_of, .rates = rates};
	struct weft_meet made = {.clock_count = clock_count};
	int status = WEFT_OK;
	bool is_told = false;
	for (uint32_t i = 0; i < count && status == WEFT_OK; i++)
		status = read_part(&m, i);
	if (status == WEFT_OK)
		status = match(&m);
	for (size_t i = 0; i < m.pairs.count && status == WEFT_OK; i++)
		is_told = (status = tie_pair(&m, &m.pairs.items[i], err)) < 0;
	made.connections = m.connections;
	made.messages = m.messages;
	if (status == WEFT_OK)
		status = hand_over(&m, &made);
	drop(&m);
	if (status < 0) {
		weft_meet_finish(&made);
		return is_told ? status : weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	*out = made;
	return WEFT_OK;
}

void weft_meet_finish(struct weft_meet *meet)
{
	for (size_t i = 0; i < meet->tie_count; i++)
		weft_tie_destroy(meet->ties[i]);
	free(meet->ties);
	free(meet->ways);
	free(meet->bounds_ns);
	*meet = (struct weft_meet){0};
}
