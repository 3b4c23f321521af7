/* native.c: reads weft's native format: a directory of packets, or consecutive packets in a file or in memory.
 *
 * native_index.c finds the packets, native_define.c reads definitions, native_decode.c decodes each stream, and this file merges
 * the streams.  SPDX-License-Identifier: ISC */
#include "trace/native.h"

#include <string.h>

#include "base/cursor.h"

static enum weft_confidence probe_source(const struct weft_source *source)
{
	static const char ours[] = "tracer_name = \"weft\"";
	const struct weft_blob *metadata = source->is_dir ? weft_source_find(source, "metadata") : NULL;
	if (metadata && memmem(metadata->bytes, metadata->size < 512 ? metadata->size : 512, ours, sizeof ours - 1))
		return WEFT_CONFIDENCE_SURE;
	for (size_t i = 0; i < source->blob_count; i++)
		if (weft__packet_probe(source->blobs[i].bytes, source->blobs[i].size) != WEFT_PACKET_NONE)
			return WEFT_CONFIDENCE_SURE;
	return WEFT_CONFIDENCE_NONE;
}

static void free_state(struct native *n)
{
	for (size_t i = 0; i < n->owned.count; i++)
		free(n->owned.items[i]);
	for (size_t i = 0; i < n->cursors.count; i++)
		free(n->cursors.items[i].batch);
	weft_vec_free(&n->locations);
	weft_vec_free(&n->packets);
	weft_vec_free(&n->definitions);
	weft_vec_free(&n->kernel);
	weft_vec_free(&n->profile);
	weft_vec_free(&n->profile_stacks);
	weft_vec_free(&n->profile_samples);
	weft_vec_free(&n->memory);
	weft_vec_free(&n->memory_stacks);
	weft_vec_free(&n->allocations);
	weft_vec_free(&n->changes);
	weft_vec_free(&n->streams);
	weft_vec_free(&n->cursors);
	weft_vec_free(&n->heap);
	weft_vec_free(&n->owned);
	weft_vec_free(&n->sites);
	weft_vec_free(&n->modules);
	weft_vec_free(&n->module_index);
	weft_vec_free(&n->site_modules);
	weft_vec_free(&n->extras);
	weft_vec_free(&n->extra_forms);
	weft_vec_free(&n->gaps);
	weft_vec_free(&n->packets_made);
	weft__native_end_keys(n);
	free(n->lost_at_open);
	free(n);
}

static void close_trace(struct weft_trace *trace)
{
	free_state(trace->state);
}

static bool is_earlier(const struct native *n, uint32_t a, uint32_t b)
{
	const struct native_cursor *x = &n->cursors.items[a], *y = &n->cursors.items[b];
	int64_t t = x->batch[x->batch_at].time_ns, u = y->batch[y->batch_at].time_ns;
	return t != u ? t < u : a < b;
}

static void sift_down(struct native *n, size_t at)
{
	uint32_t *heap = n->heap.items, moved = heap[at];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= n->heap.count)
			break;
		if (child + 1 < n->heap.count && is_earlier(n, heap[child + 1], heap[child]))
			child++;
		if (!is_earlier(n, heap[child], moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void rewind_events_at(struct weft_trace *trace, const struct weft_position *from)
{
	struct native *n = trace->state;
	n->heap.count = 0;
	n->gaps.count = trace->is_end_reached ? n->gaps.count : n->gaps_at_open;
	for (size_t i = 0; i < n->streams.count; i++)
		n->streams.items[i].lost_overwritten = n->lost_at_open[i];
	for (size_t i = 0; i < n->cursors.count; i++) {
		struct native_cursor *c = &n->cursors.items[i];
		size_t change = c->changes_end;
		while (change && n->changes.items[change - 1].instance == n->packets.items[c->first].instance)
			change--;
		c->change = change;
		c->packet = c->first;
		c->at = c->stop = NULL;
		c->last = 0;
		c->is_damaged = c->is_ended = false;
		weft__native_resume(trace, c, from);
		weft__native_fill(trace, c);
		if (c->batch_end)
			n->heap.items[n->heap.count++] = (uint32_t)i;
	}
	for (size_t i = n->heap.count / 2; i--;)
		sift_down(n, i);
}

static void rewind_events(struct weft_trace *trace)
{
	const struct native *n = trace->state;
	rewind_events_at(trace, n->from);
}

void weft__native_rewind_to(struct weft_trace *trace, const struct weft_position *position)
{
	rewind_events_at(trace, position);
}

/* The requested position. */
enum where { BEGIN, HERE, END };

/* Finds the position of a cursor: at its start, at its next event, or at its end; returns false if it is unknown. */
static bool find_cursor_position(
    const struct native *n, const struct native_cursor *c, enum where where, struct weft_stream_position *out)
{
	const struct native_packet *p = &n->packets.items[where == BEGIN ? c->first : c->end - 1];
	struct native_mark mark = {.at = p->bytes + (where == BEGIN ? p->header_bytes : p->content_bytes),
	    .last = where == BEGIN ? p->begin : c->last,
	    .decoded = where == BEGIN ? 0 : c->decoded};
	if (where == HERE) {
		if (!weft__native_mark_position(n, c, &mark))
			return false;
		p = &n->packets.items[mark.packet];
	}
	*out = (struct weft_stream_position){.sequence = p->sequence,
	    .events = p->events_before + mark.decoded,
	    .last = mark.last,
	    .bytes = (uint32_t)(mark.at - p->bytes),
	    .instance = p->instance};
	return true;
}

/* Returns the later of two positions in a stream. */
static struct weft_stream_position max_position(const struct weft_stream_position *old, struct weft_stream_position fresh)
{
	const bool is_behind =
	    old && (old->sequence > fresh.sequence || (old->sequence == fresh.sequence && old->bytes > fresh.bytes));
	return is_behind ? *old : fresh;
}

/* Merges positions by instance: those that were found now, and earlier positions of instances that have no packet now, for
 * example because it is being reused. */
static size_t merge_positions(struct weft_stream_position *to, const struct weft_stream_position *found, size_t found_count,
    const struct weft_stream_position *old, size_t old_count)
{
	size_t count = 0;
	for (size_t i = 0, k = 0; i < found_count || k < old_count;) {
		const bool is_old = k < old_count && (i == found_count || old[k].instance <= found[i].instance),
			   is_found = i < found_count && (k == old_count || found[i].instance <= old[k].instance);
		to[count++] = is_found ? max_position(is_old ? &old[k] : NULL, found[i]) : old[k];
		i += is_found;
		k += is_old;
	}
	return count;
}

/* Finds the first packet of each CPU, or the last packet that starts before or at `until`, in ticks. */
static size_t find_kernel_positions(const struct native *n, struct weft_stream_position *out, bool is_begin, uint64_t until)
{
	size_t count = 0;
	for (size_t i = 0; i < n->kernel.count; i++) {
		const struct native_packet *p = &n->kernel.items[i];
		const bool is_first = count == 0 || out[count - 1].instance != p->instance;
		if (is_begin ? !is_first : p->begin > until)
			continue;
		count += is_first;
		out[count - 1] = (struct weft_stream_position){.sequence = p->sequence, .instance = p->instance};
	}
	return count;
}

static int find_position(const struct weft_trace *trace, struct weft_position *out, enum where where)
{
	const struct native *n = trace->state;
	struct weft_position position = n->position;
	if (!trace->source.is_dir || !position.is_somewhere)
		return WEFT_ENOTSUP;
	memset(&position.streams, 0, sizeof position.streams);
	memset(&position.kernel, 0, sizeof position.kernel);
	position.wrapped = trace->info.wrapped;
	position.grows = !n->is_ring;
	const size_t most = n->cursors.count > n->kernel.count ? n->cursors.count : n->kernel.count;
	struct weft_stream_position *found = malloc((most + 1) * sizeof *found);
	if (!found || !weft_vec_reserve(&position.streams, n->cursors.count + out->streams.count + 1) ||
	    !weft_vec_reserve(&position.kernel, n->kernel.count + out->kernel.count + 1)) {
		free(found);
		weft_position_free(&position);
		return WEFT_ENOMEM;
	}
	uint64_t last = 0;
	bool is_known = true;
	for (size_t i = 0; is_known && i < n->cursors.count; i++) {
		is_known = find_cursor_position(n, &n->cursors.items[i], where, &found[i]);
		last = is_known && found[i].last > last ? found[i].last : last;
	}
	if (!is_known) {
		free(found);
		weft_position_free(&position);
		return WEFT_ENOTSUP;
	}
	position.streams.count =
	    merge_positions(position.streams.items, found, n->cursors.count, out->streams.items, out->streams.count);
	const size_t processors = find_kernel_positions(n, found, where == BEGIN, where == HERE ? last : UINT64_MAX);
	position.kernel.count = merge_positions(position.kernel.items, found, processors, out->kernel.items, out->kernel.count);
	free(found);
	weft_position_free(out);
	*out = position;
	return WEFT_OK;
}

int weft__native_start_position(const struct weft_trace *trace, struct weft_position *out)
{
	return find_position(trace, out, BEGIN);
}

int weft__native_end_position(const struct weft_trace *trace, struct weft_position *out)
{
	return find_position(trace, out, END);
}

int weft__native_current_position(const struct weft_trace *trace, struct weft_position *out)
{
	return find_position(trace, out, HERE);
}

/* Estimates the number of bytes of a batch whose events were not returned yet. */
static uint64_t bytes_left_of_batch(const struct native_cursor *c)
{
	enum { USUAL = 16 };
	const uint64_t left = c->batch_end - c->batch_at;
	const bool is_in_packet = c->batch_mark.at && c->batch_mark.packet == c->packet && c->batch_end;
	return is_in_packet ? (uint64_t)(c->at - c->batch_mark.at) * left / c->batch_end : left * USUAL;
}

uint64_t weft__native_bytes_left(const struct weft_trace *trace)
{
	const struct native *n = trace->state;
	uint64_t left = 0;
	for (size_t i = 0; i < n->cursors.count; i++) {
		const struct native_cursor *c = &n->cursors.items[i];
		left += bytes_left_of_batch(c) + (c->at ? (uint64_t)(c->stop - c->at) : 0);
		for (size_t k = c->packet + (c->at != NULL); k < c->end; k++)
			left += n->packets.items[k].content_bytes - n->packets.items[k].header_bytes;
	}
	return left;
}

/* Drops kernel packets that lie before the position. */
static void drop_old_kernel_packets(struct native *n, const struct weft_position *position)
{
	size_t retained = 0;
	for (size_t i = 0; i < n->kernel.count; i++) {
		const struct weft_stream_position *reached = weft_position_of_kernel(position, n->kernel.items[i].instance);
		if (!reached || n->kernel.items[i].sequence >= reached->sequence)
			n->kernel.items[retained++] = n->kernel.items[i];
	}
	n->kernel.count = retained;
}

void weft__native_begin_at(struct weft_trace *trace, const struct weft_position *position)
{
	struct native *n = trace->state;
	size_t retained = 0;
	for (size_t i = 0; i < n->cursors.count; i++) {
		struct native_cursor *c = &n->cursors.items[i];
		const struct weft_stream_position *reached =
		    weft_position_of_stream(position, n->packets.items[c->first].instance);
		const size_t end = c->end;
		size_t first = c->first;
		while (reached && first + 1 < end && n->packets.items[first].sequence < reached->sequence) {
			const struct native_packet *left = &n->packets.items[first++];
			n->streams.items[left->stream].packets--;
			n->streams.items[left->stream].bytes -= left->content_bytes;
		}
		c->first = retained;
		for (size_t k = first; k < end; k++)
			n->packets.items[retained++] = n->packets.items[k];
		c->end = retained;
	}
	n->packets.count = retained;
	drop_old_kernel_packets(n, position);
	n->from = position;
	trace->source.from = position;
	trace->info.wrapped = true;
	rewind_events(trace);
}

static int open_trace(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = calloc(1, sizeof *n);
	if (!n)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	trace->state = n;
	n->doubtful_since = UINT64_MAX;
	weft__native_forms(n);
	int status = weft__native_index(trace, err);
	bool whole = status < 0 || weft_vec_reserve(&n->heap, n->cursors.count);
	if (status == WEFT_OK && whole) {
		n->lost_at_open = malloc((n->streams.count + 1) * sizeof *n->lost_at_open);
		whole = n->lost_at_open != NULL;
		for (size_t i = 0; whole && i < n->streams.count; i++)
			n->lost_at_open[i] = n->streams.items[i].lost_overwritten;
		for (size_t i = 0; whole && i < n->cursors.count; i++) {
			n->cursors.items[i].batch = malloc(NATIVE_BATCH * sizeof *n->cursors.items[i].batch);
			whole = n->cursors.items[i].batch != NULL;
		}
	}
	if (!whole)
		status = weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (status < 0) {
		free_state(n);
		return status;
	}
	struct weft_trace_info *info = &trace->info;
	info->clock_origin_ns = n->clock.origin_ns;
	info->has_origin = n->clock.has_origin;
	trace->clock_hz = n->clock.hz;
	info->uuid = n->has_uuid ? n->uuid : NULL;
	info->streams = n->streams.items;
	info->stream_count = n->streams.count;
	info->sites = n->sites.items;
	info->site_count = n->sites.count;
	info->site_of_key = n->site_index;
	info->key_count = n->key_count;
	info->modules = n->modules.items;
	info->module_count = n->modules.count;
	info->forms = n->extra_forms.items;
	info->form_count = n->extra_forms.count;
	if (n->died_wall_ns) {
		weft__trace_set_lived_until(trace, n->died_wall_ns);
		info->has_died = info->until_ns != 0;
	}
	if (info->is_seen_once)
		weft__trace_set_lived_until(trace, info->seen_wall_ns);
	rewind_events(trace);
	return WEFT_OK;
}

/* When the batch of the top cursor is used up, loads its next batch and restores the heap. */
static void refill_top(struct weft_trace *trace)
{
	struct native *n = trace->state;
	struct native_cursor *c = &n->cursors.items[n->heap.items[0]];
	if (c->batch_at == c->batch_end) {
		weft__native_fill(trace, c);
		if (!c->batch_end)
			n->heap.items[0] = n->heap.items[--n->heap.count];
	}
	if (n->heap.count)
		sift_down(n, 0);
}

/* Counts the events of the top cursor that come before the events of every other cursor. */
static size_t run_length(const struct native *n)
{
	uint32_t top = n->heap.items[0];
	const struct native_cursor *c = &n->cursors.items[top];
	if (n->heap.count == 1)
		return c->batch_end - c->batch_at;
	uint32_t second = n->heap.items[1];
	if (n->heap.count > 2 && is_earlier(n, n->heap.items[2], second))
		second = n->heap.items[2];
	const struct native_cursor *other = &n->cursors.items[second];
	/* If times are equal, the first stream comes first. */
	const int64_t time_ns = other->batch[other->batch_at].time_ns, limit = time_ns + (top < second && time_ns < INT64_MAX);
	size_t i = c->batch_at + 1;
	while (i < c->batch_end && c->batch[i].time_ns < limit)
		i++;
	return i - c->batch_at;
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct native *n = trace->state;
	/* The previous batch that was returned may be that of the top cursor. */
	if (n->heap.count && n->cursors.items[n->heap.items[0]].batch_at == n->cursors.items[n->heap.items[0]].batch_end)
		refill_top(trace);
	size_t filled = 0;
	while (filled < NATIVE_BATCH && n->heap.count) {
		struct native_cursor *c = &n->cursors.items[n->heap.items[0]];
		size_t run = run_length(n);
		if (filled == 0 && run == c->batch_end - c->batch_at) {
			*events = c->batch + c->batch_at;
			*count = run;
			c->batch_at = c->batch_end;
			return 1;
		}
		if (run > NATIVE_BATCH - filled)
			run = NATIVE_BATCH - filled;
		memcpy(n->out + filled, c->batch + c->batch_at, run * sizeof n->out[0]);
		c->batch_at += run;
		filled += run;
		refill_top(trace);
	}
	*events = n->out;
	*count = filled;
	return filled != 0;
}

/* The web viewer cannot save, and every byte of code makes its page larger. */
#ifdef __wasm__
#define SAVE NULL
#else
#define SAVE weft__native_save
#endif

const struct weft_trace_format weft__format_native = {"native", probe_source, open_trace, read_events, rewind_events, close_trace,
    weft__native_field, SAVE, weft__native_kernel, NULL};
