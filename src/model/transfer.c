/* transfer.c: what went through connections both of whose ends are in the trace.
 *
 * Both ends tell the name of their connection, from their side, and how far what they wrote and read has come.  Writes and reads
 * need not have the same bounds: a read is matched with the last write that has a byte of it, since without that one the reader
 * would not have had all that it acted on.
 *
 * Of datagrams both ends tell where they go and a digest.  The newest that was sent before is the one that came: a copy that
 * is sent again counts for what comes from then on; not one that another process may have sent.  A socket has asked something,
 * and was answered, where both went between the same two processes.
 *
 * The turns of a connection are known even where its other end is not in the trace.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/words.h"
#include "model/private.h"
#include "trace/carry.h"

/* Bytes from there on, up to where the next write begins. */
struct write {
	uint64_t begin;
	int64_t time_ns;
	uint32_t by;
};

/* Who speaks first asks, unless the connection was accepted.  Nobody answers in a pipe. */
enum side { UNKNOWN, ASKS, ANSWERS, ONE_WAY };

struct weft__end {
	uint32_t promise, peer; /* promise: of several that stand for it in turn, the last; peer: an end, or WEFT_NONE */
	uint32_t older;         /* another one of that name, or WEFT_NONE */
	int64_t other_name;     /* of its peer */
	uint64_t sent, received;
	int64_t sent_ns, received_ns;
	uint32_t by;                   /* who wrote last */
	WEFT_VEC(struct write) writes; /* those that may have bytes to be read, from `first` on */
	size_t first;
	enum side side;
	uint32_t turn;    /* that has no answer yet, or WEFT_NONE */
	uint64_t turn_at; /* where it begins */
};

struct weft__datagram {
	uint32_t to; /* in end_names */
	int64_t time_ns;
	uint32_t from, by;
	uint32_t older;                  /* another one of that digest, or WEFT_NONE */
	uint32_t reader;                 /* who read it last, or WEFT_NONE */
	bool may_have_come, is_doubtful; /* is_doubtful: others sent the same, and it is not known which of these came */
};

/* It has asked somebody: in `datagrams` the first of its questions there since anything came, and the last one; WEFT_NONE: none.
 */
struct weft__socket {
	uint32_t promise, first, last;
};

static struct weft__end *end_of(struct weft__build *b, uint32_t promise)
{
	uint32_t at = b->ends.count ? weft_idmap_get(&b->end_of, promise) : WEFT_IDMAP_NONE;
	return at == WEFT_IDMAP_NONE ? NULL : &b->ends.items[at];
}

/* -1: it has none. */
static long port_of(struct weft_str address)
{
	long port = 0, ten = 1;
	uint32_t at = address.len;
	for (; at > 0 && address.len - at < 5 && address.ptr[at - 1] >= '0' && address.ptr[at - 1] <= '9'; at--, ten *= 10)
		port += ten * (address.ptr[at - 1] - '0');
	return at > 0 && at < address.len && address.ptr[at - 1] == ':' ? port : -1;
}

/* Systems give who connects a high port; of two high ones that says nothing. */
static enum side side_of(const struct weft__build *b, uint32_t promise, const struct weft_carry *carry)
{
	enum { FIRST_GIVEN = 32768 };
	const uint32_t by = b->promises.items[promise].created_by;
	const long own = port_of(carry->own), peer = port_of(carry->peer);
	if (weft_text_begins(carry->protocol, "pipe"))
		return ONE_WAY;
	if (by != WEFT_NONE && b->promises.items[by].kind == WEFT_KIND_LISTEN)
		return b->promises.items[promise].flags & WEFT_PROMISE_CONNECTED ? ASKS : ANSWERS;
	if (own < 0 || peer < 0 || (own < FIRST_GIVEN) == (peer < FIRST_GIVEN))
		return UNKNOWN;
	return peer < FIRST_GIVEN ? ASKS : ANSWERS;
}

/* A program that watches a descriptor whenever it wants to read or write makes one promise after the other for a connection.  A
 * later connection of that name begins at 0. */
static bool is_handed_on(
    const struct weft__build *b, const struct weft__end *end, uint32_t promise, uint64_t sent, uint64_t received)
{
	const struct weft_trace_info *info = b->model->trace;
	const struct weft_promise *before = &b->promises.items[end->promise], *after = &b->promises.items[promise];
	return end->sent == sent && end->received == received && (sent > 0 || received > 0) &&
	       before->stream < info->stream_count && after->stream < info->stream_count &&
	       info->streams[before->stream].part == info->streams[after->stream].part;
}

int weft__transfer_connection(struct weft__build *b, uint32_t promise, const struct weft_event *ev)
{
	struct weft_carry carry;
	if (promise == WEFT_SYSTEM || !weft_carry_parse(ev->text, &carry))
		return WEFT_OK;
	struct weft__end *end = end_of(b, promise);
	if (end) { /* told again */
		end->sent = (uint64_t)ev->value;
		end->received = carry.received;
		return WEFT_OK;
	}
	const uint32_t near = weft_intern(&b->end_names, carry.own), far = weft_intern(&b->end_names, carry.peer);
	const int64_t name = (int64_t)((uint64_t)near << 32 | far), other_name = (int64_t)((uint64_t)far << 32 | near);
	const uint32_t at = (uint32_t)b->ends.count, older = weft_idmap_get(&b->end_named, name);
	if (older != WEFT_IDMAP_NONE && is_handed_on(b, &b->ends.items[older], promise, (uint64_t)ev->value, carry.received)) {
		b->ends.items[older].promise = promise;
		return weft_idmap_set(&b->end_of, promise, older) ? WEFT_OK : WEFT_ENOMEM;
	}
	if (near == WEFT_INTERN_FAILED || far == WEFT_INTERN_FAILED || !weft_vec_reserve(&b->ends, 1) ||
	    !weft_idmap_set(&b->end_of, promise, at) || !weft_idmap_set(&b->end_named, name, at))
		return WEFT_ENOMEM;
	b->ends.items[b->ends.count++] = (struct weft__end){.promise = promise,
	    .peer = WEFT_NONE,
	    .other_name = other_name,
	    .older = older == WEFT_IDMAP_NONE ? WEFT_NONE : older,
	    .sent = (uint64_t)ev->value,
	    .received = carry.received,
	    .sent_ns = INT64_MIN,
	    .received_ns = INT64_MIN,
	    .by = WEFT_NONE,
	    .side = older == WEFT_IDMAP_NONE || b->ends.items[older].side == UNKNOWN ? side_of(b, promise, &carry)
										     : b->ends.items[older].side,
	    .turn = WEFT_NONE};
	return WEFT_OK;
}

/* On the OS thread of the event; else the promise itself. */
static uint32_t who_runs(const struct weft__build *b, const struct weft_event *ev, uint32_t promise)
{
	const uint32_t running = b->streams.items[ev->stream].running;
	return running == WEFT_NONE || running == WEFT_SYSTEM ? promise : running;
}

/* Before end->sent goes on. */
static int write_in_turn(struct weft__build *b, struct weft__end *end, const struct weft_event *ev, int64_t time_ns, uint32_t by)
{
	end->side = end->side == UNKNOWN ? ASKS : end->side;
	if (end->side == ONE_WAY)
		return WEFT_OK;
	if (end->turn != WEFT_NONE) {
		b->turns.items[end->turn].last_ns = time_ns;
		b->turns.items[end->turn].last_by = by;
		return WEFT_OK;
	}
	struct weft_turn *turn = weft_vec_push(&b->turns);
	if (!turn)
		return WEFT_ENOMEM;
	*turn = (struct weft_turn){time_ns, time_ns, INT64_MAX, end->promise, by, by, ev->stream, end->side == ASKS};
	end->turn = (uint32_t)(b->turns.count - 1);
	end->turn_at = end->sent;
	return WEFT_OK;
}

/* The kernel took nothing of what the turn began with. */
static void take_turn_back(struct weft__build *b, struct weft__end *end)
{
	b->turns.items[end->turn].connection = WEFT_NONE;
	end->turn = WEFT_NONE;
}

int weft__transfer_sent(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns)
{
	struct weft__end *end = end_of(b, promise);
	if (!end)
		return WEFT_OK;
	const uint64_t position = weft_carry_position(end->sent, ev->value);
	/* What the kernel did not take is taken back. */
	while (end->writes.count > end->first && end->writes.items[end->writes.count - 1].begin >= position)
		end->writes.count--;
	if (position < end->sent && end->turn != WEFT_NONE && position <= end->turn_at)
		take_turn_back(b, end);
	if (position > end->sent) {
		const int status = write_in_turn(b, end, ev, time_ns, who_runs(b, ev, promise));
		if (status < 0)
			return status;
		struct write *write = weft_vec_push(&end->writes);
		if (!write)
			return WEFT_ENOMEM;
		*write = (struct write){end->sent, time_ns, who_runs(b, ev, promise)};
		end->sent_ns = time_ns;
		end->by = write->by;
	}
	end->sent = position;
	return WEFT_OK;
}

/* Of ends of the name that is wanted, the newest that nobody else is known to be the peer of, and that has sent so much. */
static void find_peer(struct weft__build *b, struct weft__end *end)
{
	const uint32_t self = (uint32_t)(end - b->ends.items);
	for (uint32_t at = weft_idmap_get(&b->end_named, end->other_name), tries = 100; at < b->ends.count && tries; tries--) {
		struct weft__end *other = &b->ends.items[at];
		if (at != self && other->peer == WEFT_NONE && other->sent >= end->received) {
			other->peer = self;
			end->peer = at;
			return;
		}
		at = other->older;
	}
}

static int add(struct weft__build *b, int64_t sent_ns, uint32_t by, uint32_t from, uint32_t to, int64_t received_ns)
{
	struct weft_transfer *new = weft_vec_push(&b->transfers);
	if (!new)
		return WEFT_ENOMEM;
	*new = (struct weft_transfer){sent_ns, received_ns, by, from, to};
	return WEFT_OK;
}

int weft__transfer_received(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by)
{
	*by = WEFT_NONE;
	struct weft__end *end = end_of(b, promise);
	if (!end)
		return WEFT_OK;
	const uint64_t from = end->received;
	end->received = weft_carry_position(from, ev->value);
	if (end->received > from) {
		end->received_ns = time_ns;
		end->side = end->side == UNKNOWN ? ANSWERS : end->side;
		if (end->turn != WEFT_NONE)
			b->turns.items[end->turn].answered_ns = time_ns;
		end->turn = WEFT_NONE;
	}
	if (end->peer == WEFT_NONE)
		find_peer(b, end);
	if (end->peer == WEFT_NONE || end->received <= from)
		return WEFT_OK;
	struct weft__end *peer = &b->ends.items[end->peer];
	const struct write *items = peer->writes.items;
	while (peer->first + 1 < peer->writes.count && items[peer->first + 1].begin < end->received)
		peer->first++;
	/* What was read is more than was written: these are not the two ends, or events are missing. */
	if (peer->first == peer->writes.count || items[peer->first].begin >= end->received || peer->sent < end->received)
		return WEFT_OK;
	*by = items[peer->first].by;
	return add(b, items[peer->first].time_ns, *by, peer->promise, promise, time_ns);
}

/* "*:53" is each address with that port. */
static bool may_come_to(struct weft_str sent_to, struct weft_str came_to)
{
	return came_to.len > 2 && !memcmp(came_to.ptr, "*:", 2) && sent_to.len >= came_to.len &&
	       !memcmp(sent_to.ptr + sent_to.len - (came_to.len - 1), came_to.ptr + 1, came_to.len - 1);
}

/* NULL: it has sent nothing; with `is_sent` there is no memory. */
static struct weft__socket *socket_of(struct weft__build *b, uint32_t promise, bool is_sent)
{
	const uint32_t at = b->sockets.count ? weft_idmap_get(&b->socket_of, promise) : WEFT_IDMAP_NONE;
	if (at != WEFT_IDMAP_NONE)
		return &b->sockets.items[at];
	struct weft__socket *new = is_sent ? weft_vec_push(&b->sockets) : NULL;
	if (!new || !weft_idmap_set(&b->socket_of, promise, (uint32_t)b->sockets.count - 1))
		return NULL;
	*new = (struct weft__socket){promise, WEFT_NONE, WEFT_NONE};
	return new;
}

static bool is_socket(const struct weft__build *b, uint32_t promise)
{
	return weft_kind_has((enum weft_kind)b->promises.items[promise].kind, WEFT_TRAIT_CONNECTION);
}

/* Of questions to several addresses nobody can tell which one an answer is to: the last one counts. */
static bool asks(struct weft__build *b, uint32_t promise, uint32_t datagram)
{
	struct weft__socket *socket = is_socket(b, promise) ? socket_of(b, promise, true) : NULL;
	if (!socket)
		return !is_socket(b, promise);
	const bool goes_on =
	    socket->first != WEFT_NONE && b->datagrams.items[socket->first].to == b->datagrams.items[datagram].to;
	socket->first = goes_on ? socket->first : datagram;
	socket->last = datagram;
	return true;
}

static bool are_apart(const struct weft_trace_info *info, const struct weft_promise *p, const struct weft_promise *q)
{
	return p->stream < info->stream_count && q->stream < info->stream_count &&
	       info->streams[p->stream].part != info->streams[q->stream].part;
}

/* Something came to a socket that had asked.  It is an answer where it was sent by a process that had read the question: others
 * may send to that socket, too. */
static int answers(
    struct weft__build *b, const struct weft__datagram *answer, const struct weft_event *ev, uint32_t promise, int64_t time_ns)
{
	struct weft__socket *socket = is_socket(b, promise) ? socket_of(b, promise, false) : NULL;
	if (!socket || socket->first == WEFT_NONE)
		return WEFT_OK;
	const struct weft__datagram *first = &b->datagrams.items[socket->first], *last = &b->datagrams.items[socket->last];
	const uint32_t reader = last->reader != WEFT_NONE ? last->reader : first->reader;
	const struct weft_promise *all = b->promises.items;
	socket->first = socket->last = WEFT_NONE;
	if (!answer || reader == WEFT_NONE || are_apart(b->model->trace, &all[reader], &all[answer->from]) ||
	    !are_apart(b->model->trace, &all[reader], &all[promise]))
		return WEFT_OK;
	struct weft_turn *turn = weft_vec_push(&b->turns);
	if (!turn)
		return WEFT_ENOMEM;
	*turn = (struct weft_turn){first->time_ns, last->time_ns, time_ns, promise, first->by, last->by, ev->stream, true};
	return WEFT_OK;
}

/* From the newest on the one that came; NULL: none, or nobody can tell.  Where several processes sent the same there at about one
 * time, one of these may be lost: then none is told, but for each that comes one is no longer expected. */
static struct weft__datagram *find_sent(const struct weft__build *b, uint32_t at, uint32_t to, struct weft_str came_to)
{
	enum { TRIES = 16 };
	const uint64_t at_once_ns = 10000000000;
	const struct weft_promise *all = b->promises.items;
	struct weft__datagram *newest = NULL, *oldest = NULL;
	bool has_others = false;
	for (unsigned tries = 0; at < b->datagrams.count && tries < TRIES; tries++) {
		struct weft__datagram *sent = &b->datagrams.items[at];
		at = sent->older;
		if (sent->to != to && !may_come_to(b->end_names.texts.items[sent->to], came_to))
			continue;
		newest = newest ? newest : sent;
		if ((uint64_t)newest->time_ns - (uint64_t)sent->time_ns > at_once_ns)
			break;
		oldest = sent->may_have_come ? oldest : sent;
		has_others |= !sent->may_have_come && are_apart(b->model->trace, &all[sent->from], &all[newest->from]);
	}
	if (!newest)
		return NULL;
	newest->is_doubtful |= has_others;
	(newest->is_doubtful && oldest ? oldest : newest)->may_have_come = true;
	return newest->is_doubtful ? NULL : newest;
}

int weft__transfer_datagram(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns, uint32_t *by)
{
	*by = WEFT_NONE;
	if (promise == WEFT_SYSTEM || ev->value == INT64_MIN)
		return WEFT_OK;
	const int64_t digest = ev->value < 0 ? -ev->value : ev->value;
	uint32_t at = b->datagrams.count ? weft_idmap_get(&b->datagram_of, digest) : WEFT_IDMAP_NONE;
	const uint32_t to = weft_intern(&b->end_names, ev->text);
	if (to == WEFT_INTERN_FAILED)
		return WEFT_ENOMEM;
	if (ev->value > 0) {
		const uint32_t new = (uint32_t)b->datagrams.count;
		struct weft__datagram *sent = weft_vec_push(&b->datagrams);
		if (!sent || !weft_idmap_set(&b->datagram_of, digest, new))
			return WEFT_ENOMEM;
		*sent = (struct weft__datagram){to, time_ns, promise, who_runs(b, ev, promise),
		    at == WEFT_IDMAP_NONE ? WEFT_NONE : at, WEFT_NONE, false, false};
		return asks(b, promise, new) ? WEFT_OK : WEFT_ENOMEM;
	}
	struct weft__datagram *sent = find_sent(b, at, to, ev->text);
	const int status = answers(b, sent, ev, promise, time_ns);
	if (!sent || status < 0)
		return status;
	sent->reader = promise;
	*by = sent->by;
	return add(b, sent->time_ns, sent->by, sent->from, promise, time_ns);
}

/* By who received; they are in the order of time. */
static bool sort_transfers(struct weft__build *b)
{
	const size_t count = b->transfers.count;
	uint32_t *first = count ? calloc(b->model->promise_count + 1, sizeof *first) : NULL;
	struct weft_transfer *sorted = count ? malloc(count * sizeof *sorted) : NULL;
	if (first && sorted) {
		for (size_t i = 0; i < count; i++)
			first[b->transfers.items[i].to + 1]++;
		for (size_t p = 1; p <= b->model->promise_count; p++)
			first[p] += first[p - 1];
		for (size_t i = 0; i < count; i++)
			sorted[first[b->transfers.items[i].to]++] = b->transfers.items[i];
		memcpy(b->transfers.items, sorted, count * sizeof *sorted);
	}
	const bool has_memory = !count || (first && sorted);
	free(first);
	free(sorted);
	return has_memory;
}

static int compare_ends(const void *a, const void *b)
{
	const struct weft_connection_end *x = a, *y = b;
	return WEFT_ORDER(x->promise, y->promise);
}

static int compare_turns(const void *a, const void *b)
{
	const struct weft_turn *x = a, *y = b;
	return WEFT_ORDER(x->connection, y->connection) ?: WEFT_ORDER(x->asked_ns, y->asked_ns) ?: WEFT_ORDER(x->answered_ns, y->answered_ns);
}

/* Those that were taken back are the last then. */
static void sort_turns(struct weft__build *b)
{
	weft_sort(b->turns.items, b->turns.count, sizeof *b->turns.items, compare_turns);
	while (b->turns.count > 0 && b->turns.items[b->turns.count - 1].connection == WEFT_NONE)
		b->turns.count--;
}

/* What the peer has not read begins in the first write of which it has not all. */
static void find_unread(struct weft_connection_end *out, const struct weft__end *end, const struct weft__end *peer)
{
	size_t at = end->first;
	out->unread_bytes = end->sent > peer->received ? end->sent - peer->received : 0;
	while (at + 1 < end->writes.count && end->writes.items[at + 1].begin <= peer->received)
		at++;
	out->unread_ns = out->unread_bytes && at < end->writes.count ? end->writes.items[at].time_ns : INT64_MAX;
}

/* Sockets whose last question was read, and nothing came since: they wait for who read it. */
static bool tell_askers(struct weft__build *b)
{
	const struct weft_promise *all = b->model->promises;
	for (size_t i = 0; i < b->sockets.count; i++) {
		const struct weft__socket *socket = &b->sockets.items[i];
		const struct weft__datagram *question = socket->last == WEFT_NONE ? NULL : &b->datagrams.items[socket->last];
		if (!question || question->reader == WEFT_NONE ||
		    !are_apart(b->model->trace, &all[question->reader], &all[socket->promise]))
			continue;
		struct weft_connection_end *out = weft_vec_push(&b->told_ends);
		if (!out)
			return false;
		*out = (struct weft_connection_end){.promise = socket->promise,
		    .peer = question->reader,
		    .sent_ns = question->time_ns,
		    .received_ns = INT64_MIN,
		    .unread_ns = INT64_MAX,
		    .by = question->by};
	}
	return true;
}

bool weft__transfer_finish(struct weft__build *b)
{
	if (!sort_transfers(b))
		return false;
	sort_turns(b);
	for (size_t i = 0; i < b->ends.count; i++) /* of those from which nothing was ever read */
		if (b->ends.items[i].peer == WEFT_NONE)
			find_peer(b, &b->ends.items[i]);
	for (size_t i = 0; i < b->ends.count; i++) {
		const struct weft__end *end = &b->ends.items[i];
		if (end->peer == WEFT_NONE)
			continue;
		const struct weft__end *peer = &b->ends.items[end->peer];
		struct weft_connection_end *out = weft_vec_push(&b->told_ends);
		if (!out)
			return false;
		*out = (struct weft_connection_end){.promise = end->promise,
		    .peer = peer->promise,
		    .sent_ns = end->sent_ns,
		    .received_ns = end->received_ns,
		    .by = end->by};
		find_unread(out, end, peer);
	}
	if (!tell_askers(b))
		return false;
	weft_sort(b->told_ends.items, b->told_ends.count, sizeof *b->told_ends.items, compare_ends);
	return true;
}

void weft__transfer_drop(struct weft__build *b)
{
	for (size_t i = 0; i < b->ends.count; i++)
		weft_vec_free(&b->ends.items[i].writes);
	weft_vec_free(&b->ends);
	weft_vec_free(&b->transfers);
	weft_vec_free(&b->told_ends);
	weft_vec_free(&b->turns);
	weft_vec_free(&b->datagrams);
	weft_vec_free(&b->sockets);
	weft_idmap_finish(&b->socket_of);
	weft_idmap_finish(&b->datagram_of);
	weft_idmap_finish(&b->end_of);
	weft_idmap_finish(&b->end_named);
	weft_intern_finish(&b->end_names);
}
