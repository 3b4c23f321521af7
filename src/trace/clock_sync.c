/* clock_sync.c: matches connections of several hosts by addresses, matches messages by byte positions, and finds paths between
 * clocks.
 *
 * The peer of a connection end has the same addresses in reverse order.  The first unmatched candidate is taken that wrote at
 * least as many bytes as this end read.  Therefore connections that reuse addresses are matched in order of time.  A read is
 * matched with the last write that has one of its bytes, because that write gives the tightest bound.
 * SPDX-License-Identifier: ISC */
#include "trace/clock_sync.h"

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
#include "trace/connection_detail.h"
#include "trace/format.h"

enum { NONE = UINT32_MAX };

/* A write or read of the bytes from `begin` to `end`. */
struct step {
	uint64_t begin, end;
	int64_t ns, trace_ns; /* time by the clock that is aligned; original time by the clock of the trace */
};

typedef WEFT_VEC(struct step) steps;

struct end {
	uint32_t part, next; /* number of the part of this end; index of another end with the same addresses, or NONE */
	int64_t other;       /* key of the peer's addresses */
	uint32_t own, peer;  /* address numbers */
	uint64_t sent, received;
	uint64_t sent_before; /* number of bytes written before the first record of this end */
	steps writes, reads;
	bool is_matched, is_contradictory; /* true if this end has a peer; true if its peer contradicts it */
};

struct pair {
	WEFT_VEC(struct weft_clock_message) messages; /* messages between the two clocks; local_ns is by the first clock */
	/* bounds for conversion from the first clock to the second; from the second to the first */
	struct weft_clock_bounds *forward, *backward;
	struct weft_clock_pair report;
};

struct matching {
	struct weft_trace *const *traces;
	const uint32_t *clock_of, *host_of;
	const double *rates;
	WEFT_VEC(struct end) ends;
	WEFT_VEC(struct pair) pairs;
	struct weft_idmap named; /* the first and the last end with each pair of addresses, so that lists keep their order */
	struct weft_idmap last;
	struct weft_idmap pair_of;
	struct weft_intern addresses;
	struct weft_clock_sync *out;
	struct weft_error *err;
};

static int64_t make_key(uint32_t a, uint32_t b)
{
	return (int64_t)((uint64_t)a << 32 | b);
}

static bool starts_with(struct weft_str text, const char *with)
{
	const size_t bytes = strlen(with);
	return text.len >= bytes && !memcmp(text.ptr, with, bytes);
}

/* ---- Connections of each part ---- */

/* Adds an end of a connection; of_part maps the promise ids of the part to its ends. */
static int add_end(struct matching *m, uint32_t part, struct weft_idmap *of_part, const struct weft_event *e)
{
	struct weft_connection_detail parsed;
	if (!weft_connection_detail_parse(e->text, &parsed) || !starts_with(parsed.protocol, "tcp") ||
	    starts_with(parsed.own, "127.") || starts_with(parsed.own, "[::1]"))
		return WEFT_OK;
	uint32_t at = weft_idmap_get(of_part, e->a);
	if (at != WEFT_IDMAP_NONE) { /* repeated record */
		assert(at < m->ends.count && m->ends.items);
		m->ends.items[at].sent = (uint64_t)e->value;
		m->ends.items[at].received = parsed.received;
		return WEFT_OK;
	}
	const uint32_t own = weft_intern(&m->addresses, parsed.own), peer = weft_intern(&m->addresses, parsed.peer);
	at = (uint32_t)m->ends.count;
	struct end *end = weft_vec_push(&m->ends);
	if (own == WEFT_INTERN_FAILED || peer == WEFT_INTERN_FAILED || !end)
		return WEFT_ENOMEM;
	*end = (struct end){.part = part,
	    .next = NONE,
	    .other = make_key(peer, own),
	    .own = own,
	    .peer = peer,
	    .sent = (uint64_t)e->value,
	    .sent_before = (uint64_t)e->value,
	    .received = parsed.received};
	const uint32_t last = weft_idmap_get(&m->last, make_key(own, peer));
	if (last != WEFT_IDMAP_NONE)
		m->ends.items[last].next = at;
	else if (!weft_idmap_set(&m->named, make_key(own, peer), at))
		return WEFT_ENOMEM;
	return weft_idmap_set(&m->last, make_key(own, peer), at) && weft_idmap_set(of_part, e->a, at) ? WEFT_OK : WEFT_ENOMEM;
}

static int add_step(struct matching *m, const struct weft_idmap *of_part, const struct weft_event *e)
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
	*position = weft_connection_position(from, e->value);
	/* Bytes that the kernel did not accept are removed. */
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

/* Shortens the writes after a gap, because a write may have started in the gap.  Only the time of its last byte is certain. */
static int cut_writes(struct matching *m, uint32_t part, size_t first_end)
{
	const struct weft_trace_info *info = &m->traces[part]->info;
	struct weft_gap *gaps = info->gap_count ? malloc(info->gap_count * sizeof *gaps) : NULL;
	if (!gaps)
		return info->gap_count ? WEFT_ENOMEM : WEFT_OK;
	memcpy(gaps, info->gaps, info->gap_count * sizeof *gaps);
	weft_sort(gaps, info->gap_count, sizeof *gaps, compare_gaps);
	for (size_t g = 1; g < info->gap_count; g++) /* maximum end so far */
		gaps[g].to_ns = weft_max_ns(gaps[g - 1].to_ns, gaps[g].to_ns);
	for (size_t i = first_end; i < m->ends.count; i++) {
		int64_t before_ns = INT64_MIN;
		for (size_t w = 0; w < m->ends.items[i].writes.count; w++) {
			struct step *write = &m->ends.items[i].writes.items[w];
			const size_t begun = WEFT_FIND_FIRST(g, 0, info->gap_count, gaps[g].from_ns > write->trace_ns);
			if (begun > 0 && gaps[begun - 1].to_ns >= before_ns && write->end > write->begin)
				write->begin = write->end - 1;
			before_ns = write->trace_ns;
		}
	}
	free(gaps);
	return WEFT_OK;
}

static int read_part(struct matching *m, uint32_t part)
{
	struct weft_idmap of_part = {0};
	const struct weft_event *e;
	size_t count;
	int status = WEFT_OK, more;
	const size_t first_end = m->ends.count;
	m->traces[part]->connections_only = true;
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
	m->traces[part]->connections_only = false;
	weft_trace_rewind(m->traces[part]);
	return status;
}

/* ---- Messages between parts ---- */

static struct pair *get_pair(struct matching *m, const struct end *a, const struct end *b)
{
	const uint32_t first = m->clock_of[a->part], second = m->clock_of[b->part];
	uint32_t at = weft_idmap_get(&m->pair_of, make_key(first, second));
	if (at == WEFT_IDMAP_NONE) {
		at = (uint32_t)m->pairs.count;
		struct pair *pair = weft_idmap_set(&m->pair_of, make_key(first, second), at) ? weft_vec_push(&m->pairs) : NULL;
		if (!pair)
			return NULL;
		*pair = (struct pair){.report = {.parts = {a->part, b->part}, .clocks = {first, second}}};
	}
	return &m->pairs.items[at];
}

static const char *get_trace_name(const struct matching *m, uint32_t part)
{
	return m->traces[part]->source.name;
}

/* Checks two hosts that share a boot id and a counter: containers of one machine, or a machine and its clone.  Fails if bytes
 * arrived before they were sent. */
static int check_clock(
    const struct matching *m, const struct end *from, const struct end *to, int64_t sent_ns, int64_t received_ns)
{
	if (received_ns >= sent_ns)
		return WEFT_OK;
	return weft_error_set(m->err, WEFT_EINVAL,
	    "%.32s and %.32s cannot be joined: one boot id, but bytes arrived %" PRId64
	    " ns before they were sent, so the clocks differ",
	    get_trace_name(m, from->part), get_trace_name(m, to->part), sent_ns - received_ns);
}

/* Matches each read with the last write that has one of its bytes. pair is the pair of their clocks; NULL if they share a
 * clock. */
static int add_messages(struct matching *m, struct pair *pair, const struct end *from, const struct end *to, bool is_sent_locally)
{
	const steps *writes = &from->writes, *reads = &to->reads;
	size_t w = 0;
	int status = WEFT_OK;
	for (size_t r = 0; r < reads->count && status == WEFT_OK; r++) {
		const struct step *read = &reads->items[r];
		while (w + 1 < writes->count && writes->items[w + 1].begin < read->end)
			w++;
		const bool is_known = w < writes->count && writes->items[w].begin < read->end;
		/* A ring has overwritten the events before its oldest event. */
		const bool is_before_trace = read->end <= from->sent_before || m->traces[from->part]->info.wrapped;
		m->out->unwritten += is_known ? writes->items[w].end < read->end : !is_before_trace;
		if (!is_known || writes->items[w].end <= read->begin)
			continue;
		const int64_t sent_ns = writes->items[w].ns, received_ns = read->ns;
		struct weft_clock_message *message = pair ? weft_vec_push(&pair->messages) : NULL;
		if (!pair)
			status = check_clock(m, from, to, sent_ns, received_ns);
		else if (!message)
			status = WEFT_ENOMEM;
		else
			*message = is_sent_locally ? (struct weft_clock_message){sent_ns, received_ns, true}
						   : (struct weft_clock_message){received_ns, sent_ns, false};
		if (message)
			pair->report.messages[!is_sent_locally]++;
	}
	return status;
}

static int connect_ends(struct matching *m, struct end *a, struct end *b)
{
	const bool has_one_clock = m->clock_of[b->part] == m->clock_of[a->part];
	a->is_matched = b->is_matched = true;
	if (has_one_clock && m->host_of[a->part] == m->host_of[b->part])
		return WEFT_OK;
	struct pair *pair = has_one_clock ? NULL : get_pair(m, a, b);
	if (!pair && !has_one_clock)
		return WEFT_ENOMEM;
	if (pair)
		pair->report.connections++;
	const int status = add_messages(m, pair, a, b, true);
	return status == WEFT_OK ? add_messages(m, pair, b, a, false) : status;
}

/* Returns true if two connection ends can be the ends of one connection.  The trace of one end may stop before the trace of the
 * other end, so the last bytes may be unknown. */
static bool may_be_ends(const struct end *a, const struct end *b)
{
	return a->next == NONE && b->next == NONE && (!a->reads.count || a->reads.items[0].end <= b->sent) &&
	       (!b->reads.count || b->reads.items[0].end <= a->sent);
}

static void format_end(const struct matching *m, const struct end *end, char out[120])
{
	const struct weft_str *texts = m->addresses.texts.items, own = texts[end->own], peer = texts[end->peer];
	snprintf(out, 120, "%.*s %.*s", own.len < 56 ? (int)own.len : 56, own.ptr, peer.len < 56 ? (int)peer.len : 56, peer.ptr);
}

static int match_ends(struct matching *m, bool is_strict)
{
	int status = WEFT_OK;
	for (uint32_t i = 0; i < m->ends.count && status == WEFT_OK; i++) {
		struct end *a = &m->ends.items[i];
		for (uint32_t at = weft_idmap_get(&m->named, a->other);
		     at < m->ends.count && !a->is_matched && status == WEFT_OK;) {
			struct end *b = &m->ends.items[at];
			const bool is_whole = b->received <= a->sent && a->received <= b->sent;
			at = b->next;
			if (b->is_matched || m->clock_of[b->part] < m->clock_of[a->part] || b == a)
				continue;
			if (is_whole || (!is_strict && may_be_ends(a, b)))
				status = connect_ends(m, a, b);
			else if (!is_strict) {
				a->is_contradictory = b->is_contradictory = true;
				if (m->out->contradictory++ == 0)
					format_end(m, a, m->out->contradiction);
			}
		}
	}
	return status;
}

/* Counts ends without a peer, and ends whose addresses were changed on the way (NAT). */
static int count_unmatched(struct matching *m)
{
	struct weft_idmap known = {0}; /* own addresses of the connection ends without a peer */
	bool has_memory = true;
	for (size_t i = 0; i < m->ends.count && has_memory; i++)
		has_memory = m->ends.items[i].is_matched || m->ends.items[i].is_contradictory ||
			     weft_idmap_set(&known, m->ends.items[i].own, m->ends.items[i].part);
	for (size_t i = 0; i < m->ends.count && has_memory; i++) {
		const struct end *end = &m->ends.items[i];
		if (end->is_matched || end->is_contradictory)
			continue;
		const uint32_t part = weft_idmap_get(&known, end->peer);
		const bool is_renamed = part != WEFT_IDMAP_NONE && part != end->part;
		m->out->unmatched++;
		m->out->renamed += is_renamed;
		if (!m->out->example[0] || (is_renamed && m->out->renamed == 1))
			format_end(m, end, m->out->example);
	}
	weft_idmap_finish(&known);
	return has_memory ? WEFT_OK : WEFT_ENOMEM;
}

/* ---- Paths ---- */

/* Bounds the drift of the clock `other` between the first and the last message, in ppb. */
static void set_drift(
    struct weft_clock_pair *report, const struct weft_clock_bounds *clock_bounds, int64_t first_ns, int64_t last_ns)
{
	int64_t low[2], high[2];
	const double span = (double)last_ns - (double)first_ns;
	weft_clock_bounds_time(clock_bounds, first_ns, &low[0], &high[0]);
	weft_clock_bounds_time(clock_bounds, last_ns, &low[1], &high[1]);
	const double most = 1e9 / WEFT_INVERSE_MAX_DRIFT, rate_low = ((double)low[1] - (double)high[0] - span) / span * 1e9,
		     rate_high = ((double)high[1] - (double)low[0] - span) / span * 1e9;
	report->rate_low_ppb = (int64_t)(span > 0 && rate_low > -most ? rate_low : -most);
	report->rate_high_ppb = (int64_t)(span > 0 && rate_high < most ? rate_high : most);
}

/* Computes the bounds between two clocks in both directions.  Two clocks with messages in only one direction are not
 * connected. */
static int sync_pair(const struct matching *m, struct pair *pair)
{
	struct weft_error why;
	const bool have_counter_clocks =
	    m->traces[pair->report.parts[0]]->has_counter_clock && m->traces[pair->report.parts[1]]->has_counter_clock;
	int status =
	    weft_clock_bounds_create(&pair->forward, pair->messages.items, pair->messages.count, have_counter_clocks, &why);
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	for (size_t i = 0; i < pair->messages.count; i++) {
		struct weft_clock_message *message = &pair->messages.items[i];
		first_ns = message->local_ns < first_ns ? message->local_ns : first_ns;
		last_ns = message->local_ns > last_ns ? message->local_ns : last_ns;
		*message = (struct weft_clock_message){message->remote_ns, message->local_ns, !message->is_sent_locally};
	}
	if (status == WEFT_OK)
		status = weft_clock_bounds_create(
		    &pair->backward, pair->messages.items, pair->messages.count, have_counter_clocks, &why);
	if (status == WEFT_ENOTFOUND)
		return WEFT_OK;
	if (status == WEFT_EINVAL)
		return weft_error_set(m->err, status, "%.26s and %.26s cannot be joined: %s",
		    get_trace_name(m, pair->report.parts[0]), get_trace_name(m, pair->report.parts[1]), why.what);
	if (status < 0)
		return weft_error_set(m->err, status, "%s", why.what);
	pair->report.has_bounds = true;
	weft_clock_bounds_width(pair->forward, &pair->report.least_ns, &pair->report.average_ns);
	set_drift(&pair->report, pair->forward, first_ns, last_ns);
	return WEFT_OK;
}

/* Finds the path with the narrowest bounds from each clock to the first clock. */
static void find_paths(const struct matching *m, struct weft_clock_sync *out)
{
	for (size_t i = 0; i < out->clock_count; i++)
		out->bounds_ns[i] = i ? INT64_MAX : 0;
	for (bool is_better = true; is_better;) {
		is_better = false;
		for (size_t i = 0; i < m->pairs.count; i++) {
			const struct pair *pair = &m->pairs.items[i];
			for (int turn = 0; turn < 2 && pair->backward; turn++) {
				const uint32_t from = pair->report.clocks[!turn], to = pair->report.clocks[turn];
				int64_t bound_ns;
				if (out->bounds_ns[to] == INT64_MAX ||
				    __builtin_add_overflow(out->bounds_ns[to], pair->report.average_ns / 2 + 1, &bound_ns) ||
				    bound_ns >= out->bounds_ns[from])
					continue;
				out->bounds_ns[from] = bound_ns;
				out->paths[from] = (struct weft_clock_path){turn ? pair->forward : pair->backward, to};
				is_better = true;
			}
		}
	}
}

static int move_results(struct matching *m, struct weft_clock_sync *out)
{
	out->paths = calloc(out->clock_count, sizeof *out->paths);
	out->bounds_ns = calloc(out->clock_count, sizeof *out->bounds_ns);
	out->all_bounds = calloc(2 * m->pairs.count + 1, sizeof(struct weft_clock_bounds *));
	out->pairs = calloc(m->pairs.count + 1, sizeof *out->pairs);
	if (!out->paths || !out->bounds_ns || !out->all_bounds || !out->pairs)
		return WEFT_ENOMEM;
	find_paths(m, out);
	for (size_t i = 0; i < m->pairs.count; i++) {
		out->pairs[out->pair_count++] = m->pairs.items[i].report;
		out->connections += m->pairs.items[i].report.connections;
		out->messages += m->pairs.items[i].messages.count;
		out->all_bounds[out->all_bounds_count++] = m->pairs.items[i].forward;
		out->all_bounds[out->all_bounds_count++] = m->pairs.items[i].backward;
		m->pairs.items[i].forward = m->pairs.items[i].backward = NULL;
	}
	return WEFT_OK;
}

static void free_matching(struct matching *m)
{
	for (size_t i = 0; i < m->ends.count; i++) {
		weft_vec_free(&m->ends.items[i].writes);
		weft_vec_free(&m->ends.items[i].reads);
	}
	for (size_t i = 0; i < m->pairs.count; i++) {
		weft_vec_free(&m->pairs.items[i].messages);
		weft_clock_bounds_destroy(m->pairs.items[i].forward);
		weft_clock_bounds_destroy(m->pairs.items[i].backward);
	}
	weft_vec_free(&m->ends);
	weft_vec_free(&m->pairs);
	weft_idmap_finish(&m->named);
	weft_idmap_finish(&m->last);
	weft_idmap_finish(&m->pair_of);
	weft_intern_finish(&m->addresses);
}

int weft_clock_sync_compute(struct weft_clock_sync *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const uint32_t *host_of, const double *rates, size_t clock_count, struct weft_error *err)
{
	struct weft_clock_sync made = {.clock_count = clock_count};
	struct weft_error report = {0};
	struct matching m = {
	    .traces = traces, .clock_of = clock_of, .host_of = host_of, .rates = rates, .out = &made, .err = &report};
	int status = WEFT_OK;
	for (uint32_t i = 0; i < count && status == WEFT_OK; i++)
		status = read_part(&m, i);
	if (status == WEFT_OK)
		status = match_ends(&m, true);
	if (status == WEFT_OK)
		status = match_ends(&m, false);
	if (status == WEFT_OK)
		status = count_unmatched(&m);
	for (size_t i = 0; i < m.pairs.count && status == WEFT_OK; i++)
		status = sync_pair(&m, &m.pairs.items[i]);
	if (status == WEFT_OK)
		status = move_results(&m, &made);
	free_matching(&m);
	if (status < 0) {
		weft_clock_sync_finish(&made);
		return weft_error_set(
		    err, (enum weft_status)status, "%s", report.what[0] ? report.what : weft_status_string(status));
	}
	*out = made;
	return WEFT_OK;
}

int64_t weft_clock_sync_time_from(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns,
    struct weft_clock_bounds_cursor cursors[WEFT_CLOCK_SYNC_CURSORS], int64_t *left_ns)
{
	for (int i = 0; i < WEFT_CLOCK_SYNC_CURSORS && clock && clock_sync->paths && clock_sync->paths[clock].clock_bounds; i++) {
		ns = weft_clock_bounds_time_from(clock_sync->paths[clock].clock_bounds, ns, &cursors[i], left_ns);
		clock = clock_sync->paths[clock].to;
	}
	if (clock && clock_sync->paths && clock_sync->paths[clock].clock_bounds)
		*left_ns = 1;
	return weft_clock_sync_time(clock_sync, clock, ns, NULL, NULL);
}

int64_t weft_clock_sync_time(const struct weft_clock_sync *clock_sync, uint32_t clock, int64_t ns, int64_t *low, int64_t *high)
{
	int64_t least = ns, most = ns;
	while (clock && clock_sync->paths && clock_sync->paths[clock].clock_bounds) {
		const struct weft_clock_bounds *clock_bounds = clock_sync->paths[clock].clock_bounds;
		ns = weft_clock_bounds_time(clock_bounds, ns, NULL, NULL);
		if (low)
			weft_clock_bounds_time(clock_bounds, least, &least, NULL);
		if (high)
			weft_clock_bounds_time(clock_bounds, most, NULL, &most);
		clock = clock_sync->paths[clock].to;
	}
	if (low)
		*low = least;
	if (high)
		*high = most;
	return ns;
}

void weft_clock_sync_finish(struct weft_clock_sync *clock_sync)
{
	for (size_t i = 0; i < clock_sync->all_bounds_count; i++)
		weft_clock_bounds_destroy(clock_sync->all_bounds[i]);
	free(clock_sync->all_bounds);
	free(clock_sync->pairs);
	free(clock_sync->paths);
	free(clock_sync->bounds_ns);
	*clock_sync = (struct weft_clock_sync){0};
}
