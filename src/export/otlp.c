/* otlp.c: writes a model as spans of OpenTelemetry (otlp.h).
 *
 * The field numbers are those of opentelemetry/proto/trace/v1/trace.proto
 * (https://github.com/open-telemetry/opentelemetry-proto).
 *
 * A link of a span names the promises that awaited the span's promise, not those that it awaited.  The promises that awaited it
 * are known when it ends, even if they end much later, when a follower has forgotten it.  SPDX-License-Identifier: ISC */
#include "export/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "export/otlp_graph.h"
#include "export/proto.h"

enum { MAX_SPANS = 512, MAX_BYTES = 1 << 20, MAX_LINKS = 32, MAX_LABELS = 32, TEXT_BYTES = 256, VERSION_BYTES = 55 };

enum request_field { REQUEST_RESOURCE_SPANS = 1 };
enum resource_spans_field { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum resource_field { RESOURCE_ATTRIBUTE = 1 };
enum scope_spans_field { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPAN = 2 };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum span_field {
	SPAN_TRACE_ID = 1,
	SPAN_ID = 2,
	SPAN_PARENT = 4,
	SPAN_NAME = 5,
	SPAN_KIND = 6,
	SPAN_START = 7,
	SPAN_END = 8,
	SPAN_ATTRIBUTE = 9,
	SPAN_EVENT = 11,
	SPAN_DROPPED_EVENTS = 12,
	SPAN_LINK = 13,
	SPAN_DROPPED_LINKS = 14,
	SPAN_STATUS = 15,
	SPAN_FLAGS = 16
};
enum event_field { EVENT_TIME = 1, EVENT_NAME = 2, EVENT_ATTRIBUTE = 3 };
enum link_field { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2, LINK_ATTRIBUTE = 4 };
enum status_field { STATUS_MESSAGE = 2, STATUS_CODE = 3 };
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum value_field { VALUE_TEXT = 1, VALUE_BOOL = 2, VALUE_INT = 3 };
enum { KIND_INTERNAL = 1, KIND_SERVER = 2, KIND_CLIENT = 3, STATUS_ERROR = 2 };

struct writer {
	struct weft__otlp_graph graph;
	const struct weft_otlp_options *options;
	weft_otlp_batch_fn *batch;
	void *batch_ctx;
	struct weft__proto request, resource_spans, scope_spans, span, inner, attribute, value;
	bool *was_written;   /* by finding: whether it is an event of a span */
	uint32_t *linked_by; /* by promise: newest span with a link to it */
	size_t spans;        /* in the current batch */
	uint32_t part;       /* of the current batch */
	int64_t origin_ns;   /* added to times of the model */
	struct weft_losses losses;
	struct weft_otlp_stats stats;
	bool has_failed;
};

/* ---- Attributes ---- */

static void put_attribute(struct writer *w, struct weft__proto *to, unsigned field, const char *key)
{
	weft__proto_reset(&w->attribute);
	weft__proto_text(&w->attribute, ATTRIBUTE_KEY, key);
	weft__proto_message(&w->attribute, ATTRIBUTE_VALUE, &w->value);
	weft__proto_message(to, field, &w->attribute);
}

static void put_text(struct writer *w, struct weft__proto *to, unsigned field, const char *key, const char *text)
{
	weft__proto_reset(&w->value);
	weft__proto_text(&w->value, VALUE_TEXT, text);
	put_attribute(w, to, field, key);
}

/* Writes a text of the trace, unless it is empty. */
static void put_str(struct writer *w, struct weft__proto *to, unsigned field, const char *key, struct weft_str text)
{
	char clean[TEXT_BYTES];
	weft_utf8_copy(clean, sizeof clean, text);
	if (text.len)
		put_text(w, to, field, key, clean);
}

static void put_int(struct writer *w, struct weft__proto *to, unsigned field, const char *key, int64_t number)
{
	weft__proto_reset(&w->value);
	weft__proto_uint(&w->value, VALUE_INT, (uint64_t)number);
	put_attribute(w, to, field, key);
}

static void put_bool(struct writer *w, struct weft__proto *to, unsigned field, const char *key, bool is_true)
{
	weft__proto_reset(&w->value);
	weft__proto_uint(&w->value, VALUE_BOOL, is_true);
	put_attribute(w, to, field, key);
}

/* ---- Batches ---- */

static void put_resource(struct writer *w)
{
	const struct weft_trace_info *info = w->graph.model->trace;
	const bool is_part = w->part < info->part_count;
	const struct weft_str process = is_part ? info->parts[w->part].process : info->process,
			      host = is_part && info->parts[w->part].host.len ? info->parts[w->part].host : info->host;
	const uint64_t pid = is_part ? info->parts[w->part].pid : info->pid;
	struct weft__proto *resource = &w->inner;
	weft__proto_reset(resource);
	put_str(
	    w, resource, RESOURCE_ATTRIBUTE, "service.name", process.len ? process : (struct weft_str){"unknown_service", 15});
	put_str(w, resource, RESOURCE_ATTRIBUTE, "host.name", host);
	put_str(w, resource, RESOURCE_ATTRIBUTE, "process.executable.name", process);
	if (pid)
		put_int(w, resource, RESOURCE_ATTRIBUTE, "process.pid", (int64_t)pid);
	if (!is_part)
		put_str(w, resource, RESOURCE_ATTRIBUTE, "process.command_line", info->command);
	put_text(w, resource, RESOURCE_ATTRIBUTE, "telemetry.sdk.name", "weft");
	put_text(w, resource, RESOURCE_ATTRIBUTE, "telemetry.sdk.language", "c");
	put_text(w, resource, RESOURCE_ATTRIBUTE, "telemetry.sdk.version", w->options->version);
	weft__proto_message(&w->resource_spans, RESOURCE_SPANS_RESOURCE, resource);
	weft__proto_reset(&w->inner);
	weft__proto_text(&w->inner, SCOPE_NAME, "weft");
	weft__proto_text(&w->inner, SCOPE_VERSION, w->options->version);
	weft__proto_message(&w->scope_spans, SCOPE_SPANS_SCOPE, &w->inner);
}

static void end_batch(struct writer *w)
{
	if (w->spans == 0)
		return;
	weft__proto_reset(&w->request);
	weft__proto_message(&w->resource_spans, RESOURCE_SPANS_SCOPE_SPANS, &w->scope_spans);
	weft__proto_message(&w->request, REQUEST_RESOURCE_SPANS, &w->resource_spans);
	if (!w->request.no_memory)
		w->has_failed |= w->batch(w->batch_ctx, w->request.bytes.items, w->request.bytes.count, w->spans) != 0;
	weft__proto_reset(&w->resource_spans);
	weft__proto_reset(&w->scope_spans);
	w->spans = 0;
}

static void begin_span(struct writer *w, uint32_t part)
{
	if (w->spans == MAX_SPANS || w->scope_spans.bytes.count > MAX_BYTES || (w->spans > 0 && part != w->part))
		end_batch(w);
	w->part = part;
	if (w->spans == 0)
		put_resource(w);
	weft__proto_reset(&w->span);
}

static void end_span(struct writer *w, int64_t end_utc_ns)
{
	weft__proto_message(&w->scope_spans, SCOPE_SPANS_SPAN, &w->span);
	w->spans++;
	w->stats.spans++;
	if (end_utc_ns > w->stats.last_utc_ns)
		w->stats.last_utc_ns = end_utc_ns;
}

static bool has_trouble(const struct writer *w)
{
	return w->has_failed || w->request.no_memory || w->scope_spans.no_memory || w->resource_spans.no_memory ||
	       w->span.no_memory || w->inner.no_memory;
}

/* ---- Findings ---- */

int weft_otlp_compare_findings(const void *x, const void *y)
{
	const struct weft_otlp_finding *a = x, *b = y;
	return memcmp(a->about.span, b->about.span, sizeof a->about.span) ?: WEFT_ORDER(a->utc_ns, b->utc_ns);
}

static void put_finding(struct writer *w, const struct weft_otlp_finding *f)
{
	struct weft__proto *event = &w->inner;
	weft__proto_reset(event);
	weft__proto_fixed64(event, EVENT_TIME, (uint64_t)f->utc_ns);
	weft__proto_text(event, EVENT_NAME, "weft.finding");
	put_text(w, event, EVENT_ATTRIBUTE, "weft.finding.kind", f->kind);
	put_text(w, event, EVENT_ATTRIBUTE, "weft.finding.title", f->title);
	put_bool(w, event, EVENT_ATTRIBUTE, "weft.finding.certain", f->is_certain);
	if (f->next && f->next[0])
		put_text(w, event, EVENT_ATTRIBUTE, "weft.finding.next", f->next);
	weft__proto_message(&w->span, SPAN_EVENT, event);
}

/* Writes the findings about a span as its events. */
static void put_findings_of(struct writer *w, const struct weft_otlp_ids *ids)
{
	const struct weft_otlp_finding *all = w->options->findings;
	size_t low = 0, high = w->options->finding_count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (memcmp(all[middle].about.span, ids->span, sizeof ids->span) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < w->options->finding_count && !memcmp(all[low].about.span, ids->span, sizeof ids->span); low++) {
		put_finding(w, &all[low]);
		w->was_written[low] = true;
	}
}

/* Writes the findings about other spans as spans without a length. */
static void put_other_findings(struct writer *w)
{
	for (size_t i = 0; i < w->options->finding_count && !has_trouble(w); i++) {
		const struct weft_otlp_finding *f = &w->options->findings[i];
		unsigned char span[WEFT_OTLP_SPAN_BYTES];
		if (w->was_written[i])
			continue;
		memcpy(span, f->about.span, sizeof span);
		/* One span may have several findings, each with a kind of its own. */
		for (size_t k = 0; f->kind[k]; k++)
			span[k % sizeof span] = (unsigned char)(span[k % sizeof span] * 31 + f->kind[k]);
		span[0] |= 1;
		begin_span(w, w->part);
		weft__proto_bytes(&w->span, SPAN_TRACE_ID, f->about.trace, sizeof f->about.trace);
		weft__proto_bytes(&w->span, SPAN_ID, span, sizeof span);
		if (f->about.has_span)
			weft__proto_bytes(&w->span, SPAN_PARENT, f->about.span, sizeof f->about.span);
		weft__proto_text(&w->span, SPAN_NAME, f->kind);
		weft__proto_uint(&w->span, SPAN_KIND, KIND_INTERNAL);
		weft__proto_fixed64(&w->span, SPAN_START, (uint64_t)f->utc_ns);
		weft__proto_fixed64(&w->span, SPAN_END, (uint64_t)f->utc_ns);
		put_finding(w, f);
		end_span(w, INT64_MIN);
	}
}

/* ---- Spans of promises ---- */

static unsigned get_kind(const struct weft_model *m, const struct weft_promise *p)
{
	if (!weft_kind_has(p->kind, WEFT_TRAIT_REQUEST))
		return KIND_INTERNAL;
	const bool is_received =
	    p->created_by != WEFT_NONE && weft_kind_has(m->promises[p->created_by].kind, WEFT_TRAIT_CONNECTION);
	return is_received ? KIND_SERVER : KIND_CLIENT;
}

static bool is_status_code(struct weft_str text)
{
	bool is_code = text.len == 3;
	for (uint32_t i = 0; is_code && i < text.len; i++)
		is_code = text.ptr[i] >= '0' && text.ptr[i] <= '9';
	return is_code;
}

/* Writes the labels behind the first, which is the name of the span.  The label of a request may be the status of its answer. */
static void put_labels(struct writer *w, const struct weft_promise *p)
{
	const struct weft_model *m = w->graph.model;
	const uint32_t name = weft_model_name_text(m, (uint32_t)(p - m->promises));
	uint32_t written = 0, dropped = 0;
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		const struct weft_label *label = &m->labels[l];
		if (label->is_counter || label->text == name || label->text == p->failure)
			continue;
		const struct weft_str text = weft_model_text(m, label->text);
		char clean[TEXT_BYTES];
		if (weft_kind_has(p->kind, WEFT_TRAIT_REQUEST) && is_status_code(text)) {
			put_int(w, &w->span, SPAN_ATTRIBUTE, "http.response.status_code",
			    (text.ptr[0] - '0') * 100 + (text.ptr[1] - '0') * 10 + (text.ptr[2] - '0'));
			continue;
		}
		if (written == MAX_LABELS) {
			dropped++;
			continue;
		}
		written++;
		weft__proto_reset(&w->inner);
		weft__proto_fixed64(&w->inner, EVENT_TIME, (uint64_t)(label->time_ns + w->origin_ns));
		weft_utf8_copy(clean, sizeof clean, text);
		weft__proto_text(&w->inner, EVENT_NAME, clean);
		weft__proto_message(&w->span, SPAN_EVENT, &w->inner);
	}
	if (dropped)
		weft__proto_uint(&w->span, SPAN_DROPPED_EVENTS, dropped);
	w->losses.counts[WEFT_LOSS_CUT_LINK] += dropped;
}

static void put_link(struct writer *w, uint32_t to, const char *how)
{
	const struct weft_otlp_ids ids = weft__otlp_ids(&w->graph, to);
	weft__proto_reset(&w->inner);
	weft__proto_bytes(&w->inner, LINK_TRACE_ID, ids.trace, sizeof ids.trace);
	weft__proto_bytes(&w->inner, LINK_SPAN_ID, ids.span, sizeof ids.span);
	put_text(w, &w->inner, LINK_ATTRIBUTE, "weft.link", how);
	weft__proto_message(&w->span, SPAN_LINK, &w->inner);
}

/* Writes one link for each promise that awaited, read, woke or ended this one, and a link of a request to its connection. */
static void put_links(struct writer *w, uint32_t promise, uint32_t parent)
{
	static const char *const how[WEFT_LINK_KINDS] = {[WEFT_LINK_RESOLVE] = "resolved by",
	    [WEFT_LINK_READ] = "read by",
	    [WEFT_LINK_AWAIT] = "awaited by",
	    [WEFT_LINK_SIGNAL] = "signalled by"};
	const struct weft__otlp_graph *g = &w->graph;
	const uint32_t by = g->model->promises[promise].created_by;
	uint32_t written = 0, dropped = 0;
	w->linked_by[promise] = promise;
	if (by != WEFT_NONE && by != parent && g->is_chosen[by] && w->linked_by[by] != promise) {
		put_link(w, by, "created by");
		w->linked_by[by] = promise;
		written++;
	}
	for (uint32_t i = g->to_begin[promise]; i < g->to_begin[promise + 1]; i++) {
		const struct weft_link *link = &g->model->links[g->by_to[i]];
		if (!g->is_chosen[link->from] || w->linked_by[link->from] == promise)
			continue;
		w->linked_by[link->from] = promise;
		if (written < MAX_LINKS)
			put_link(w, link->from, how[link->kind]);
		dropped += written == MAX_LINKS;
		written += written < MAX_LINKS;
	}
	if (dropped)
		weft__proto_uint(&w->span, SPAN_DROPPED_LINKS, dropped);
	w->losses.counts[WEFT_LOSS_CUT_LINK] += dropped;
}

static void put_status(struct writer *w, const struct weft_promise *p)
{
	const struct weft_model *m = w->graph.model;
	char message[TEXT_BYTES] = "";
	const bool is_cancelled = p->end == WEFT_END_FAILED && weft_model_was_cancelled(m, p);
	put_text(w, &w->span, SPAN_ATTRIBUTE, "weft.end",
	    is_cancelled                  ? "cancelled"
	    : p->end == WEFT_END_FAILED   ? "failed"
	    : p->end == WEFT_END_RESOLVED ? "resolved"
					  : "became another");
	if (p->failure != WEFT_NONE)
		weft_utf8_copy(message, sizeof message, weft_model_text(m, p->failure));
	if (p->failure != WEFT_NONE && !is_cancelled)
		put_text(w, &w->span, SPAN_ATTRIBUTE, "error.type", message);
	if (!weft_promise_went_wrong(p))
		return;
	weft__proto_reset(&w->inner);
	weft__proto_text(&w->inner, STATUS_MESSAGE, message);
	weft__proto_uint(&w->inner, STATUS_CODE, STATUS_ERROR);
	weft__proto_message(&w->span, SPAN_STATUS, &w->inner);
}

static void put_place(struct writer *w, const struct weft_promise *p)
{
	const struct weft_trace_info *info = w->graph.model->trace;
	if (p->stream < info->stream_count) {
		put_str(w, &w->span, SPAN_ATTRIBUTE, "thread.name", info->streams[p->stream].name);
		if (info->streams[p->stream].tid)
			put_int(w, &w->span, SPAN_ATTRIBUTE, "thread.id", (int64_t)info->streams[p->stream].tid);
	}
	if (p->site == WEFT_NONE)
		return;
	const struct weft_site *site = &info->sites[p->site];
	put_str(w, &w->span, SPAN_ATTRIBUTE, "code.file.path", site->file);
	put_str(w, &w->span, SPAN_ATTRIBUTE, "code.function.name", site->function);
	if (site->line)
		put_int(w, &w->span, SPAN_ATTRIBUTE, "code.line.number", site->line);
}

static void put_promise(struct writer *w, uint32_t promise)
{
	enum { CONTEXT_IS_REMOTE = 0x300, SAMPLED = 1 };
	const struct weft__otlp_graph *g = &w->graph;
	const struct weft_promise *p = &g->model->promises[promise];
	const struct weft_otlp_ids ids = weft__otlp_ids(g, promise);
	const uint32_t parent = g->root[promise] == promise ? WEFT_NONE : p->created_by;
	struct weft__otlp_parent outside;
	char name[TEXT_BYTES];
	begin_span(w, weft__otlp_part(g->model, promise));
	weft__proto_bytes(&w->span, SPAN_TRACE_ID, ids.trace, sizeof ids.trace);
	weft__proto_bytes(&w->span, SPAN_ID, ids.span, sizeof ids.span);
	if (parent != WEFT_NONE) {
		const struct weft_otlp_ids above = weft__otlp_ids(g, parent);
		weft__proto_bytes(&w->span, SPAN_PARENT, above.span, sizeof above.span);
	} else if (weft__otlp_kept(g, promise)) {
		weft__proto_bytes(&w->span, SPAN_PARENT, weft__otlp_kept(g, promise)->parent, WEFT_OTLP_SPAN_BYTES);
	} else if (weft__otlp_parse_parent(&outside, g->model, promise)) {
		weft__proto_bytes(&w->span, SPAN_PARENT, outside.span, sizeof outside.span);
		weft__proto_fixed32(&w->span, SPAN_FLAGS, outside.flags | CONTEXT_IS_REMOTE);
	}
	weft_model_name(g->model, promise, name, sizeof name);
	weft__proto_text(&w->span, SPAN_NAME, name);
	weft__proto_uint(&w->span, SPAN_KIND, get_kind(g->model, p));
	weft__proto_fixed64(&w->span, SPAN_START, (uint64_t)(p->start_ns + w->origin_ns));
	weft__proto_fixed64(&w->span, SPAN_END, (uint64_t)(p->end_ns + w->origin_ns));
	put_text(w, &w->span, SPAN_ATTRIBUTE, "weft.kind", weft_model_kind_name(g->model, p->kind));
	put_int(w, &w->span, SPAN_ATTRIBUTE, "weft.promise", p->id);
	put_status(w, p);
	put_place(w, p);
	put_labels(w, p);
	put_findings_of(w, &ids);
	put_links(w, promise, parent);
	end_span(w, p->end_ns + w->origin_ns);
}

/* ---- Whole model ---- */

/* A promise that should have resolved and did not ends with the trace, which may go on. */
static bool has_ended(const struct weft_promise *p)
{
	return p->end != WEFT_END_PENDING && !(p->flags & WEFT_PROMISE_NEVER_RESOLVED);
}

static int compare_kept(const void *x, const void *y)
{
	const struct weft_otlp_kept *a = x, *b = y;
	return WEFT_ORDER(a->id, b->id);
}

/* Keeps what the next piece must know of the promises that are pending and have a parent. */
static void remember_pending(struct writer *w)
{
	const struct weft__otlp_graph *g = &w->graph;
	struct weft_otlp_memory fresh = {0};
	for (uint32_t p = 1; p < g->model->promise_count && !has_trouble(w); p++) {
		const struct weft_otlp_kept *known = weft__otlp_kept(g, p);
		if (!g->is_chosen[p] || has_ended(&g->model->promises[p]) || (g->root[p] == p && !known))
			continue;
		struct weft_otlp_kept *kept = weft_vec_push(&fresh.all);
		if (!kept) {
			w->request.no_memory = true;
		} else if (known) {
			*kept = *known;
		} else {
			const struct weft_otlp_ids own = weft__otlp_ids(g, p),
						   above = weft__otlp_ids(g, g->model->promises[p].created_by);
			*kept = (struct weft_otlp_kept){
			    .id = g->model->promises[p].id, .is_in_request = weft__otlp_is_in_request(g, p)};
			memcpy(kept->trace, own.trace, sizeof kept->trace);
			memcpy(kept->parent, above.span, sizeof kept->parent);
		}
	}
	if (has_trouble(w)) {
		weft_vec_free(&fresh.all);
		return;
	}
	weft_sort(fresh.all.items, fresh.all.count, sizeof *fresh.all.items, compare_kept);
	weft_vec_free(&w->options->memory->all);
	*w->options->memory = fresh;
}

static void put_all(struct writer *w)
{
	const struct weft_model *m = w->graph.model;
	const struct weft_trace_info *info = m->trace;
	w->origin_ns = (int64_t)((info->has_origin ? (uint64_t)info->clock_origin_ns : 0) + (uint64_t)m->start_ns);
	/* Spans of one process follow each other, because each batch has the attributes of one process. */
	const uint32_t parts = info->part_count ? (uint32_t)info->part_count : 1;
	uint32_t *first = calloc(parts + 1, sizeof *first), *order = malloc((m->promise_count + 1) * sizeof *order);
	if (!first || !order) {
		w->request.no_memory = true;
	} else {
		for (uint32_t p = 1; p < m->promise_count; p++)
			first[weft__otlp_part(m, p) + 1]++;
		for (uint32_t i = 0; i + 1 < parts; i++)
			first[i + 1] += first[i];
		for (uint32_t p = 1; p < m->promise_count; p++)
			order[first[weft__otlp_part(m, p)]++] = p;
	}
	for (size_t i = 0; !has_trouble(w) && i + 1 < m->promise_count; i++) {
		const uint32_t p = order[i];
		if (!w->graph.is_chosen[p])
			continue;
		w->losses.counts[WEFT_LOSS_UNENDED] += !has_ended(&m->promises[p]);
		if (has_ended(&m->promises[p]) && m->promises[p].end_ns + w->origin_ns > w->options->after_utc_ns)
			put_promise(w, p);
	}
	put_other_findings(w);
	end_batch(w);
	if (w->options->memory)
		remember_pending(w);
	free(first);
	free(order);
}

int weft_export_otlp(const struct weft_model *model, const struct weft_otlp_options *options, weft_otlp_batch_fn *batch,
    void *batch_ctx, struct weft_losses *losses, struct weft_otlp_stats *stats, struct weft_error *err)
{
	struct writer w = {.options = options, .batch = batch, .batch_ctx = batch_ctx, .stats.last_utc_ns = INT64_MIN};
	w.was_written = calloc(options->finding_count + 1, sizeof *w.was_written);
	w.linked_by = calloc(model->promise_count + 1, sizeof *w.linked_by);
	const bool ok = weft__otlp_graph_create(&w.graph, model, options->memory) && w.was_written && w.linked_by;
	if (ok)
		put_all(&w);
	const int status = w.has_failed ? WEFT_EIO : !ok || has_trouble(&w) ? WEFT_ENOMEM : WEFT_OK;
	weft__otlp_graph_finish(&w.graph);
	struct weft__proto *messages[] = {
	    &w.request, &w.resource_spans, &w.scope_spans, &w.span, &w.inner, &w.attribute, &w.value};
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		weft_vec_free(&messages[i]->bytes);
	free(w.was_written);
	free(w.linked_by);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	*losses = w.losses;
	*stats = w.stats;
	return WEFT_OK;
}

int weft_otlp_find_ids(const struct weft_model *model, const struct weft_otlp_memory *memory, const uint32_t *promises,
    size_t count, struct weft_otlp_ids *out, struct weft_error *err)
{
	struct weft__otlp_graph graph;
	const bool ok = weft__otlp_graph_create(&graph, model, memory);
	for (size_t i = 0; ok && i < count; i++)
		out[i] = weft__otlp_ids(&graph, promises[i]);
	weft__otlp_graph_finish(&graph);
	return ok ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
}

/* ---- Answers ---- */

static bool read_varint(struct weft_cursor *in, uint64_t *out)
{
	uint8_t byte = 0x80;
	*out = 0;
	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		if (shift > 63 || !weft_read_u8(in, &byte))
			return false;
		*out |= (uint64_t)(byte & 0x7f) << shift;
	}
	return true;
}

/* Reads one field: a number, or bytes.  Returns false if there is none; fields of fixed size are not in these messages. */
static bool read_field(struct weft_cursor *in, uint64_t *field, uint64_t *number, struct weft_cursor *bytes)
{
	enum { VARINT = 0, LENGTH = 2 };
	uint64_t key;
	if (!read_varint(in, &key) || !read_varint(in, number) || (key & 7 & ~(uint64_t)LENGTH))
		return false;
	*field = key >> 3;
	*bytes = (struct weft_cursor){in->at, in->at};
	if ((key & 7) == VARINT)
		return true;
	if (*number > weft_cursor_left(in))
		return false;
	bytes->end = in->at += *number;
	return true;
}

bool weft_otlp_parse_answer(const void *bytes, size_t size, uint64_t *rejected_spans)
{
	enum { PARTIAL_SUCCESS = 1, REJECTED_SPANS = 1 };
	struct weft_cursor in = {bytes, (const unsigned char *)bytes + size}, partial, text;
	uint64_t field, number;
	*rejected_spans = 0;
	while (weft_cursor_left(&in) > 0) {
		if (!read_field(&in, &field, &number, &partial))
			return false;
		while (field == PARTIAL_SUCCESS && weft_cursor_left(&partial) > 0) {
			uint64_t inner;
			if (!read_field(&partial, &inner, &number, &text))
				return false;
			*rejected_spans = inner == REJECTED_SPANS ? number : *rejected_spans;
		}
	}
	return true;
}
