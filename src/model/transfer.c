/* transfer.c: matches each read of a connection with the write at the other end.
 *
 * Both ends of a connection record its addresses, and the byte positions of writes and reads.  A read may cover parts of
 * several writes.  A read is matched with the last write that has one of its bytes, because the reader needed that write.
 *
 * Both ends of a datagram record its destination and a digest.  A received datagram is matched with the newest equal datagram
 * that was sent before.  A repeated datagram replaces the older copy for later receptions.  If another process may have sent
 * the same datagram, the received datagram is matched with none.  A question and an answer of sockets are matched if both went
 * between the same two processes.
 *
 * The requests of a connection are known even if its other end is not in the trace.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/known_strings.h"
#include "base/sort.h"
#include "model/private.h"
#include "trace/connection_detail.h"

/* A write of the bytes from `begin` to the start of the next write. */
struct write {
	uint64_t begin;
	int64_t time_ns;
	uint32_t by;
};

/* The side of a connection end: the end that writes first is the client, unless the connection was accepted.  A pipe has only
 * one direction, so it has no answers. */
enum side { SIDE_UNKNOWN, SIDE_CLIENT, SIDE_SERVER, SIDE_ONE_WAY };

struct weft__end {
	/* the last of several promises that represent the connection end one after another; index of the end's peer, or
	 * WEFT_NONE */
	uint32_t promise, peer;
	uint32_t older;     /* index of another end with the same addresses, or WEFT_NONE */
	int64_t other_name; /* the key of the end's peer in end_named */
	uint64_t sent, received;
	int64_t sent_ns, received_ns;
	int64_t heard_ns;              /* time of the first read since the last write; INT64_MIN if there was none */
	uint32_t by;                   /* promise that wrote last */
	WEFT_VEC(struct write) writes; /* writes; those from index `first` on have bytes that may not have been read */
	size_t first;
	enum side side;
	uint32_t request;       /* request that has no response yet, or WEFT_NONE */
	uint64_t request_begin; /* byte position at which the request without a response starts */
};

struct weft__datagram {
	uint32_t to; /* index in end_names */
	int64_t time_ns;
	uint32_t from, by;
	uint32_t older;  /* index of another datagram with the same digest, or WEFT_NONE */
	uint32_t reader; /* promise that read the datagram last, or WEFT_NONE */
	/* true if the datagram may have been received; true if others sent the same datagram, so that it is unknown which of
	 * them was received */
	bool may_have_come, is_doubtful;
};

/* A socket that sent datagrams.  The fields first and last are indexes in `datagrams` of the questions to one address since the
 * last reception; WEFT_NONE if there is none. */
struct weft__socket {
	uint32_t promise, first, last;
};

static struct weft__end *find_end(struct weft__build *b, uint32_t promise)
{
	uint32_t at = b->ends.count ? weft_idmap_get(&b->end_of, promise) : WEFT_IDMAP_NONE;
	return at == WEFT_IDMAP_NONE ? NULL : &b->ends.items[at];
}

/* Returns the port of an address; -1 if it has none. */
static long parse_port(struct weft_str address)
{
	long port = 0, ten = 1;
	uint32_t at = address.len;
	for (; at > 0 && address.len - at < 5 && address.ptr[at - 1] >= '0' && address.ptr[at - 1] <= '9'; at--, ten *= 10)
		port += ten * (address.ptr[at - 1] - '0');
	return at > 0 && at < address.len && address.ptr[at - 1] == ':' ? port : -1;
}

/* Returns whether one of the newest labels says that the connection was accepted.  If a ring was overwritten, the creator of
 * the connection is unknown, and its label was repeated recently. */
static bool is_labelled_accepted(const struct weft__build *b, uint32_t promise)
{
	enum { NEWEST = 4 };
	for (size_t i = b->labels.count; i > 0 && b->labels.count - i < NEWEST; i--)
		if (b->label_owners.items[i - 1] == promise && !b->labels.items[i - 1].is_counter &&
		    weft_text_starts_with(b->priv->texts.texts.items[b->labels.items[i - 1].text], WEFT_STRING_FROM))
			return true;
	return false;
}

/* Guesses which end of the connection is the client.  The system assigns high ports to clients; if both ports are high, they do
 * not decide it. */
static enum side guess_side(const struct weft__build *b, uint32_t promise, const struct weft_connection_detail *parsed)
{
	enum { FIRST_EPHEMERAL_PORT = 32768 };
	const uint32_t by = b->promises.items[promise].created_by;
	const unsigned flags = b->promises.items[promise].flags;
	const long own = parse_port(parsed->own), peer = parse_port(parsed->peer);
	if (weft_text_starts_with(parsed->protocol, "pipe"))
		return SIDE_ONE_WAY;
	if (flags & WEFT_PROMISE_CONNECTED)
		return SIDE_CLIENT;
	if (is_labelled_accepted(b, promise) || (by != WEFT_NONE && b->promises.items[by].kind == WEFT_KIND_LISTEN))
		return SIDE_SERVER;
	if (own < 0 || peer < 0 || (own < FIRST_EPHEMERAL_PORT) == (peer < FIRST_EPHEMERAL_PORT))
		return SIDE_UNKNOWN;
	return peer < FIRST_EPHEMERAL_PORT ? SIDE_CLIENT : SIDE_SERVER;
}

/* Returns true if a promise represents the same connection as the previous promise.  A program that polls a file descriptor for
 * each read or write makes one promise after another for it.  A later connection with the same addresses starts at position
 * 0. */
static bool is_continued_by(
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
	struct weft_connection_detail parsed;
	if (promise == WEFT_SYSTEM || !weft_connection_detail_parse(ev->text, &parsed))
		return WEFT_OK;
	struct weft__end *end = find_end(b, promise);
	if (end) { /* a repeated record */
		end->sent = (uint64_t)ev->value;
		end->received = parsed.received;
		return WEFT_OK;
	}
	const uint32_t near = weft_intern(&b->end_names, parsed.own), far = weft_intern(&b->end_names, parsed.peer);
	const int64_t name = (int64_t)((uint64_t)near << 32 | far), other_name = (int64_t)((uint64_t)far << 32 | near);
	const uint32_t at = (uint32_t)b->ends.count, older = weft_idmap_get(&b->end_named, name);
	if (older != WEFT_IDMAP_NONE &&
	    is_continued_by(b, &b->ends.items[older], promise, (uint64_t)ev->value, parsed.received)) {
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
	    .received = parsed.received,
	    .sent_ns = INT64_MIN,
	    .received_ns = INT64_MIN,
	    .heard_ns = INT64_MIN,
	    .by = WEFT_NONE,
	    .side = older == WEFT_IDMAP_NONE || b->ends.items[older].side == SIDE_UNKNOWN ? guess_side(b, promise, &parsed)
											  : b->ends.items[older].side,
	    .request = WEFT_NONE};
	return WEFT_OK;
}

/* Returns the promise that runs on the event's thread, or the given promise if none does. */
static uint32_t get_running_promise(const struct weft__build *b, const struct weft_event *ev, uint32_t promise)
{
	const uint32_t running = b->streams.items[ev->stream].running;
	return running == WEFT_NONE || running == WEFT_SYSTEM ? promise : running;
}

/* Starts or extends a request; must be called before end->sent advances. */
static int note_request_write(
    struct weft__build *b, struct weft__end *end, const struct weft_event *ev, int64_t time_ns, uint32_t by)
{
	end->side = end->side == SIDE_UNKNOWN ? SIDE_CLIENT : end->side;
	if (end->side == SIDE_ONE_WAY)
		return WEFT_OK;
	if (end->request != WEFT_NONE) {
		b->requests.items[end->request].last_ns = time_ns;
		b->requests.items[end->request].last_by = by;
		return WEFT_OK;
	}
	struct weft_request *request = weft_vec_push(&b->requests);
	if (!request)
		return WEFT_ENOMEM;
	*request = (struct weft_request){
	    time_ns, time_ns, INT64_MAX, end->promise, by, by, ev->stream, end->side == SIDE_CLIENT, end->heard_ns};
	end->heard_ns = INT64_MIN;
	end->request = (uint32_t)(b->requests.count - 1);
	end->request_begin = end->sent;
	return WEFT_OK;
}

/* Removes a request because the kernel accepted none of its bytes. */
static void retract_request(struct weft__build *b, struct weft__end *end)
{
	b->requests.items[end->request].connection = WEFT_NONE;
	end->heard_ns = b->requests.items[end->request].heard_ns;
	end->request = WEFT_NONE;
}

int weft__transfer_sent(struct weft__build *b, uint32_t promise, const struct weft_event *ev, int64_t time_ns)
{
	struct weft__end *end = find_end(b, promise);
	if (!end)
		return WEFT_OK;
	const uint64_t position = weft_connection_position(end->sent, ev->value);
	/* Writes that the kernel did not accept are removed. */
	while (end->writes.count > end->first && end->writes.items[end->writes.count - 1].begin >= position)
		end->writes.count--;
	if (position < end->sent && end->request != WEFT_NONE && position <= end->request_begin)
		retract_request(b, end);
	if (position > end->sent) {
		const int status = note_request_write(b, end, ev, time_ns, get_running_promise(b, ev, promise));
		if (status < 0)
			return status;
		struct write *write = weft_vec_push(&end->writes);
		if (!write)
			return WEFT_ENOMEM;
		*write = (struct write){end->sent, time_ns, get_running_promise(b, ev, promise)};
		end->sent_ns = time_ns;
		end->by = write->by;
	}
	end->sent = position;
	return WEFT_OK;
}

/* Finds the peer of a connection end: the newest end with the matching addresses that has no peer yet and has sent enough
 * bytes. */
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

static int add_transfer(struct weft__build *b, int64_t sent_ns, uint32_t by, uint32_t from, uint32_t to, int64_t received_ns)
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
	struct weft__end *end = find_end(b, promise);
	if (!end)
		return WEFT_OK;
	const uint64_t from = end->received;
	end->received = weft_connection_position(from, ev->value);
	if (end->received > from) {
		end->received_ns = time_ns;
		end->heard_ns = end->heard_ns == INT64_MIN ? time_ns : end->heard_ns;
		end->side = end->side == SIDE_UNKNOWN ? SIDE_SERVER : end->side;
		if (end->request != WEFT_NONE)
			b->requests.items[end->request].answered_ns = time_ns;
		end->request = WEFT_NONE;
	}
	if (end->peer == WEFT_NONE)
		find_peer(b, end);
	if (end->peer == WEFT_NONE || end->received <= from)
		return WEFT_OK;
	struct weft__end *peer = &b->ends.items[end->peer];
	const struct write *items = peer->writes.items;
	while (peer->first + 1 < peer->writes.count && items[peer->first + 1].begin < end->received)
		peer->first++;
	/* More bytes were read than written: the two ends do not belong together, or events are missing. */
	if (peer->first == peer->writes.count || items[peer->first].begin >= end->received || peer->sent < end->received)
		return WEFT_OK;
	*by = items[peer->first].by;
	return add_transfer(b, items[peer->first].time_ns, *by, peer->promise, promise, time_ns);
}

/* Returns true if a datagram to one address can arrive at another address; "*:53" stands for every address with that port. */
static bool can_arrive_at(struct weft_str sent_to, struct weft_str came_to)
{
	return came_to.len > 2 && !memcmp(came_to.ptr, "*:", 2) && sent_to.len >= came_to.len &&
	       !memcmp(sent_to.ptr + sent_to.len - (came_to.len - 1), came_to.ptr + 1, came_to.len - 1);
}

/* Finds a socket, or adds it if is_sent.  Returns NULL if the socket has sent nothing or, with is_sent, when out of memory. */
static struct weft__socket *get_socket(struct weft__build *b, uint32_t promise, bool is_sent)
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

/* Notes a question.  If there are questions to several addresses, the last question counts, because an answer does not show its
 * question. */
static bool note_question(struct weft__build *b, uint32_t promise, uint32_t datagram)
{
	struct weft__socket *socket = is_socket(b, promise) ? get_socket(b, promise, true) : NULL;
	if (!socket)
		return !is_socket(b, promise);
	const bool is_continued =
	    socket->first != WEFT_NONE && b->datagrams.items[socket->first].to == b->datagrams.items[datagram].to;
	socket->first = is_continued ? socket->first : datagram;
	socket->last = datagram;
	return true;
}

static bool are_in_other_parts(const struct weft_trace_info *info, const struct weft_promise *p, const struct weft_promise *q)
{
	return p->stream < info->stream_count && q->stream < info->stream_count &&
	       info->streams[p->stream].part != info->streams[q->stream].part;
}

/* Notes a datagram that a socket received after it had sent a question.  The datagram is an answer only if the process that
 * read the question sent it, because others may send to the socket too. */
static int note_answer(
    struct weft__build *b, const struct weft__datagram *answer, const struct weft_event *ev, uint32_t promise, int64_t time_ns)
{
	struct weft__socket *socket = is_socket(b, promise) ? get_socket(b, promise, false) : NULL;
	if (!socket || socket->first == WEFT_NONE)
		return WEFT_OK;
	const struct weft__datagram *first = &b->datagrams.items[socket->first], *last = &b->datagrams.items[socket->last];
	const uint32_t reader = last->reader != WEFT_NONE ? last->reader : first->reader;
	const struct weft_promise *all = b->promises.items;
	socket->first = socket->last = WEFT_NONE;
	if (!answer || reader == WEFT_NONE || are_in_other_parts(b->model->trace, &all[reader], &all[answer->from]) ||
	    !are_in_other_parts(b->model->trace, &all[reader], &all[promise]))
		return WEFT_OK;
	struct weft_request *request = weft_vec_push(&b->requests);
	if (!request)
		return WEFT_ENOMEM;
	*request = (struct weft_request){
	    first->time_ns, last->time_ns, time_ns, promise, first->by, last->by, ev->stream, true, INT64_MIN};
	return WEFT_OK;
}

/* Finds the sent datagram that was received; the search begins with the newest.  NULL: none, or ambiguous.  If several
 * processes sent the same datagram at about the same time, one of the copies may have been lost.  In this case no sender is
 * reported, but one copy is marked as received each time. */
static struct weft__datagram *find_sent(const struct weft__build *b, uint32_t at, uint32_t to, struct weft_str came_to)
{
	enum { MAX_TRIES = 16 };
	const uint64_t at_once_ns = 10000000000;
	const struct weft_promise *all = b->promises.items;
	struct weft__datagram *newest = NULL, *oldest = NULL;
	bool has_others = false;
	for (unsigned tries = 0; at < b->datagrams.count && tries < MAX_TRIES; tries++) {
		struct weft__datagram *sent = &b->datagrams.items[at];
		at = sent->older;
		if (sent->to != to && !can_arrive_at(b->end_names.texts.items[sent->to], came_to))
			continue;
		newest = newest ? newest : sent;
		if ((uint64_t)newest->time_ns - (uint64_t)sent->time_ns > at_once_ns)
			break;
		oldest = sent->may_have_come ? oldest : sent;
		has_others |= !sent->may_have_come && are_in_other_parts(b->model->trace, &all[sent->from], &all[newest->from]);
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
		*sent = (struct weft__datagram){to, time_ns, promise, get_running_promise(b, ev, promise),
		    at == WEFT_IDMAP_NONE ? WEFT_NONE : at, WEFT_NONE, false, false};
		return note_question(b, promise, new) ? WEFT_OK : WEFT_ENOMEM;
	}
	struct weft__datagram *sent = find_sent(b, at, to, ev->text);
	const int status = note_answer(b, sent, ev, promise, time_ns);
	if (!sent || status < 0)
		return status;
	sent->reader = promise;
	*by = sent->by;
	return add_transfer(b, sent->time_ns, sent->by, sent->from, promise, time_ns);
}

/* Sorts transfers by receiver; they are already in order of time. */
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

static int compare_requests(const void *a, const void *b)
{
	const struct weft_request *x = a, *y = b;
	return WEFT_ORDER(x->connection, y->connection) ?: WEFT_ORDER(x->asked_ns, y->asked_ns) ?: WEFT_ORDER(x->answered_ns, y->answered_ns);
}

/* Sorts requests and drops the removed requests, which are last in the order. */
static void sort_requests(struct weft__build *b)
{
	weft_sort(b->requests.items, b->requests.count, sizeof *b->requests.items, compare_requests);
	while (b->requests.count > 0 && b->requests.items[b->requests.count - 1].connection == WEFT_NONE)
		b->requests.count--;
}

/* Finds the first write that has a byte which the peer has not read. */
static void find_unread(struct weft_connection_end *out, const struct weft__end *end, const struct weft__end *peer)
{
	size_t at = end->first;
	out->unread_bytes = end->sent > peer->received ? end->sent - peer->received : 0;
	while (at + 1 < end->writes.count && end->writes.items[at + 1].begin <= peer->received)
		at++;
	out->unread_ns = out->unread_bytes && at < end->writes.count ? end->writes.items[at].time_ns : INT64_MAX;
}

/* Adds sockets that received nothing since their last question was read: they wait for the promise that read it. */
static bool add_waiting_sockets(struct weft__build *b)
{
	const struct weft_promise *all = b->model->promises;
	for (size_t i = 0; i < b->sockets.count; i++) {
		const struct weft__socket *socket = &b->sockets.items[i];
		const struct weft__datagram *question = socket->last == WEFT_NONE ? NULL : &b->datagrams.items[socket->last];
		if (!question || question->reader == WEFT_NONE ||
		    !are_in_other_parts(b->model->trace, &all[question->reader], &all[socket->promise]))
			continue;
		struct weft_connection_end *out = weft_vec_push(&b->connection_ends);
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
	sort_requests(b);
	for (size_t i = 0; i < b->ends.count; i++) /* connection ends from which nothing was ever read */
		if (b->ends.items[i].peer == WEFT_NONE)
			find_peer(b, &b->ends.items[i]);
	for (size_t i = 0; i < b->ends.count; i++) {
		const struct weft__end *end = &b->ends.items[i];
		if (end->peer == WEFT_NONE)
			continue;
		const struct weft__end *peer = &b->ends.items[end->peer];
		struct weft_connection_end *out = weft_vec_push(&b->connection_ends);
		if (!out)
			return false;
		*out = (struct weft_connection_end){.promise = end->promise,
		    .peer = peer->promise,
		    .sent_ns = end->sent_ns,
		    .received_ns = end->received_ns,
		    .by = end->by};
		find_unread(out, end, peer);
	}
	if (!add_waiting_sockets(b))
		return false;
	weft_sort(b->connection_ends.items, b->connection_ends.count, sizeof *b->connection_ends.items, compare_ends);
	return true;
}

void weft__transfer_drop(struct weft__build *b)
{
	for (size_t i = 0; i < b->ends.count; i++)
		weft_vec_free(&b->ends.items[i].writes);
	weft_vec_free(&b->ends);
	weft_vec_free(&b->transfers);
	weft_vec_free(&b->connection_ends);
	weft_vec_free(&b->requests);
	weft_vec_free(&b->datagrams);
	weft_vec_free(&b->sockets);
	weft_idmap_finish(&b->socket_of);
	weft_idmap_finish(&b->datagram_of);
	weft_idmap_finish(&b->end_of);
	weft_idmap_finish(&b->end_named);
	weft_intern_finish(&b->end_names);
}
