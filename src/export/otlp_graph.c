/* otlp_graph.c: chooses the promises that become spans, and computes their ids (otlp_graph.h).
 *
 * A backend for traces shows a trace as one tree, so a trace should have the work of one request.  Connections live longer than
 * their requests, and therefore are traces of their own.  SPDX-License-Identifier: ISC */
#include "export/otlp_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

enum { PARENT_BYTES = 55, UUID_BYTES = 16 };

/* Kinds that serve many requests: the work for one request does not include all that they do. */
static bool is_shared(uint16_t kind)
{
	enum {
		SHARED = WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP | WEFT_TRAIT_LOCK | WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL |
			 WEFT_TRAIT_CONDITION
	};
	return kind >= WEFT_KIND_SYSTEM || weft_kind_traits(kind) & SHARED;
}

static bool is_request(const struct weft_model *m, uint32_t promise)
{
	return weft_kind_has(m->promises[promise].kind, WEFT_TRAIT_REQUEST);
}

const struct weft_otlp_kept *weft__otlp_kept(const struct weft__otlp_graph *g, uint32_t promise)
{
	const size_t count = g->memory ? g->memory->all.count : 0;
	const struct weft_otlp_kept *all = count ? g->memory->all.items : NULL;
	const int64_t id = g->model->promises[promise].id;
	const size_t i = WEFT_FIND_FIRST(k, 0, count, all[k].id >= id);
	return i < count && all[i].id == id ? &all[i] : NULL;
}

/* ---- The choice ---- */

/* The promises that a chosen promise created or awaited. */
struct spread {
	const struct weft_model *model;
	bool *is_chosen;
	uint32_t *child, *sibling;      /* by promise: first promise that it created; next promise of the same creator */
	uint32_t *from_begin, *awaited; /* by promise: first of the promises that it awaited */
	uint32_t *queue;
	size_t count;
};

static void choose(struct spread *s, uint32_t promise)
{
	if (s->is_chosen[promise] || is_shared(s->model->promises[promise].kind))
		return;
	s->is_chosen[promise] = true;
	s->queue[s->count++] = promise;
}

static bool is_await(const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT;
}

static void index_spread(struct spread *s)
{
	const struct weft_model *m = s->model;
	memset(s->child, 0xff, m->promise_count * sizeof *s->child); /* all WEFT_NONE */
	for (size_t i = m->promise_count; i-- > 0;) {
		const uint32_t by = m->promises[i].created_by;
		if (by == WEFT_NONE)
			continue;
		s->sibling[i] = s->child[by];
		s->child[by] = (uint32_t)i;
	}
	for (size_t i = 0; i < m->link_count; i++)
		s->from_begin[m->links[i].from + 1] += is_await(&m->links[i]);
	for (size_t i = 0; i < m->promise_count; i++)
		s->from_begin[i + 1] += s->from_begin[i];
	/* The second half of from_begin counts how many places of each promise are used. */
	uint32_t *used = s->from_begin + m->promise_count + 1;
	for (size_t i = 0; i < m->link_count; i++)
		if (is_await(&m->links[i]))
			s->awaited[s->from_begin[m->links[i].from] + used[m->links[i].from]++] = m->links[i].to;
}

static bool choose_promises(struct weft__otlp_graph *g)
{
	const struct weft_model *m = g->model;
	const size_t count = m->promise_count + 1;
	struct spread s = {.model = m,
	    .is_chosen = g->is_chosen,
	    .child = malloc(count * sizeof *s.child),
	    .sibling = malloc(count * sizeof *s.sibling),
	    .from_begin = calloc(2 * count, sizeof *s.from_begin),
	    .awaited = malloc((m->link_count + 1) * sizeof *s.awaited),
	    .queue = malloc(count * sizeof *s.queue)};
	const bool ok = s.child && s.sibling && s.from_begin && s.awaited && s.queue;
	if (ok) {
		index_spread(&s);
		for (uint32_t p = 1; p < m->promise_count; p++)
			if (weft_kind_traits(m->promises[p].kind) & (WEFT_TRAIT_REQUEST | WEFT_TRAIT_CONNECTION) ||
			    weft__otlp_kept(g, p))
				choose(&s, p);
	}
	for (size_t i = 0; ok && i < s.count; i++) {
		const uint32_t p = s.queue[i];
		for (uint32_t child = s.child[p]; child != WEFT_NONE; child = s.sibling[child])
			choose(&s, child);
		for (uint32_t k = s.from_begin[p]; k < s.from_begin[p + 1]; k++)
			choose(&s, s.awaited[k]);
	}
	free(s.child);
	free(s.sibling);
	free(s.from_begin);
	free(s.awaited);
	free(s.queue);
	return ok;
}

/* ---- Roots and links ---- */

bool weft__otlp_is_in_request(const struct weft__otlp_graph *g, uint32_t promise)
{
	const struct weft_otlp_kept *kept = weft__otlp_kept(g, g->root[promise]);
	return kept ? kept->is_in_request : is_request(g->model, g->root[promise]);
}

/* A creator has a smaller number than the promises that it created, so one pass suffices. */
static void find_roots(struct weft__otlp_graph *g)
{
	const struct weft_model *m = g->model;
	for (uint32_t p = 0; p < m->promise_count; p++) {
		const uint32_t by = m->promises[p].created_by;
		const bool has_parent = by != WEFT_NONE && g->is_chosen[by];
		g->root[p] = has_parent && (weft__otlp_is_in_request(g, by) || !is_request(m, p)) ? g->root[by] : p;
	}
}

static void index_links(struct weft__otlp_graph *g)
{
	const struct weft_model *m = g->model;
	for (size_t i = 0; i < m->link_count; i++)
		g->to_begin[m->links[i].to + 1]++;
	for (size_t i = 0; i < m->promise_count; i++)
		g->to_begin[i + 1] += g->to_begin[i];
	/* The second half of to_begin counts how many places of each promise are used. */
	uint32_t *used = g->to_begin + m->promise_count + 1;
	for (size_t i = 0; i < m->link_count; i++)
		g->by_to[g->to_begin[m->links[i].to] + used[m->links[i].to]++] = (uint32_t)i;
}

bool weft__otlp_graph_create(struct weft__otlp_graph *g, const struct weft_model *m, const struct weft_otlp_memory *memory)
{
	const size_t count = m->promise_count + 1;
	*g = (struct weft__otlp_graph){.model = m,
	    .memory = memory,
	    .is_chosen = calloc(count, sizeof *g->is_chosen),
	    .root = calloc(count, sizeof *g->root),
	    .to_begin = calloc(2 * count, sizeof *g->to_begin),
	    .by_to = malloc((m->link_count + 1) * sizeof *g->by_to)};
	if (!g->is_chosen || !g->root || !g->to_begin || !g->by_to || !choose_promises(g))
		return false;
	find_roots(g);
	index_links(g);
	return true;
}

void weft__otlp_graph_finish(struct weft__otlp_graph *g)
{
	free(g->is_chosen);
	free(g->root);
	free(g->to_begin);
	free(g->by_to);
}

/* ---- Ids ---- */

uint32_t weft__otlp_part(const struct weft_model *m, uint32_t promise)
{
	const uint16_t stream = m->promises[promise].stream;
	return stream < m->trace->stream_count ? m->trace->streams[stream].part : 0;
}

/* The identity of a promise in all recordings.  Without a UUID, two runs of a process may have the same numbers. */
struct identity {
	uint64_t recording;
	int64_t promise;
	uint64_t what;
};

static struct identity identify(const struct weft_model *m, uint32_t promise)
{
	const struct weft_trace_info *info = m->trace;
	const uint32_t part = weft__otlp_part(m, promise);
	const bool is_part = part < info->part_count;
	const unsigned char *uuid = is_part ? info->parts[part].uuid : info->uuid;
	const struct weft_str process = is_part ? info->parts[part].process : info->process;
	const uint64_t pid = is_part ? info->parts[part].pid : info->pid;
	return (struct identity){.recording = uuid ? weft_hash_bytes((const char *)uuid, UUID_BYTES)
						   : weft_hash_bytes(process.ptr, process.len) ^ weft_hash_u64(pid),
	    .promise = m->promises[promise].id / (is_part ? weft_part_stride(info->part_count) : 1)};
}

static uint64_t hash_identity(struct identity identity, uint64_t what)
{
	identity.what = what;
	return weft_hash_bytes((const char *)&identity, sizeof identity);
}

/* Writes eight bytes that are not all zero, because an id of zeros is invalid. */
static void put_id(unsigned char *out, uint64_t id)
{
	id += !id;
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(id >> 8 * i);
}

struct weft_otlp_ids weft__otlp_ids(const struct weft__otlp_graph *g, uint32_t promise)
{
	const struct weft_model *m = g->model;
	const uint32_t root = g->root[promise];
	struct weft__otlp_parent parent;
	struct weft_otlp_ids ids;
	enum { SPAN, TRACE, TRACE_END };
	const struct identity first = identify(m, root);
	ids.has_span = g->is_chosen[promise];
	put_id(ids.span, hash_identity(identify(m, promise), SPAN));
	const struct weft_otlp_kept *kept = weft__otlp_kept(g, root);
	if (kept) {
		memcpy(ids.trace, kept->trace, sizeof ids.trace);
		return ids;
	}
	if (weft__otlp_parse_parent(&parent, m, root)) {
		memcpy(ids.trace, parent.trace, sizeof ids.trace);
		return ids;
	}
	put_id(ids.trace, hash_identity(first, TRACE));
	put_id(ids.trace + 8, hash_identity(first, TRACE_END));
	return ids;
}

static int parse_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads hexadecimal digits.  Returns false if the text has others, or if all bytes are zero. */
static bool parse_bytes(unsigned char *out, size_t count, const char *text)
{
	unsigned any = 0;
	for (size_t i = 0; i < count; i++) {
		const int high = parse_digit(text[2 * i]), low = parse_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
		any |= out[i];
	}
	return any;
}

bool weft__otlp_parse_parent(struct weft__otlp_parent *out, const struct weft_model *m, uint32_t promise)
{
	enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53 };
	const struct weft_str text = weft_model_trace_parent(m, promise);
	unsigned char flags = 0;
	if (text.len != PARENT_BYTES || !parse_bytes(out->trace, sizeof out->trace, text.ptr + TRACE_AT) ||
	    !parse_bytes(out->span, sizeof out->span, text.ptr + SPAN_AT))
		return false;
	(void)parse_bytes(&flags, 1, text.ptr + FLAGS_AT); /* zero is valid */
	out->flags = flags;
	return true;
}
