/* native_kernel.c: reads kernel records (kernel.h) from packets of class WEFT_CLASS_KERNEL.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "base/idmap.h"
#include "base/sort.h"
#include "trace/kernel.h"
#include "trace/native.h"

enum { BATCH = 1024 };

/* State of reading the packets of one CPU. */
struct cursor {
	size_t packet, end; /* indices into native.kernel */
	struct weft_cursor in;
	uint64_t last, until; /* time of the last event in ticks; start of the next packet in ticks */
	struct weft_kernel_event head;
};

struct reading {
	struct weft_trace *trace;
	struct native *native;
	WEFT_VEC(struct cursor) cursors; /* cursors with an event */
	struct cursor **heap;            /* cursors, the earliest first; if times are equal, the lowest CPU first */
	size_t heap_count;
	WEFT_VEC(struct weft_kernel_thread) threads;
	WEFT_VEC(const char *) texts;
	struct weft_idmap numbers; /* text to its index */
	struct weft_kernel_info *info;
	struct weft_kernel_event out[BATCH];
	size_t count;
	bool no_memory;
};

static bool read_header(struct cursor *c, uint8_t *op)
{
	uint32_t low;
	if (!weft_read_u8(&c->in, op))
		return false;
	if (*op == WEFT_ID_EXTENDED) {
		uint64_t time;
		if (!weft_read_u8(&c->in, op) || !weft_read_u64(&c->in, &time) || time < c->last || time > INT64_MAX)
			return false;
		c->last = time;
		return true;
	}
	if (!weft_read_u32(&c->in, &low))
		return false;
	c->last += (uint32_t)(low - (uint32_t)c->last);
	return c->last <= INT64_MAX;
}

static bool read_thread(struct reading *r, struct weft_cursor *in)
{
	struct weft_kernel_thread thread;
	struct weft_kernel_thread *slot;
	if (!weft_read_u32(in, &thread.tid) || !weft_read_u32(in, &thread.pid) || !weft_read_string(in, &thread.name))
		return false;
	slot = weft_vec_push(&r->threads);
	if (slot)
		*slot = thread;
	r->no_memory |= !slot;
	return true;
}

static bool read_text(struct reading *r, struct weft_cursor *in)
{
	uint32_t number;
	struct weft_str text;
	if (!weft_read_u32(in, &number) || !weft_read_string(in, &text))
		return false;
	const uint32_t at = weft_idmap_get(&r->numbers, number);
	const char **slot = at == WEFT_IDMAP_NONE ? weft_vec_push(&r->texts) : &r->texts.items[at];
	if (slot)
		*slot = text.ptr;
	r->no_memory |= !slot || (at == WEFT_IDMAP_NONE && !weft_idmap_set(&r->numbers, number, (uint32_t)r->texts.count - 1));
	return true;
}

static const char *get_text(const struct reading *r, uint32_t number)
{
	const uint32_t at = weft_idmap_get(&r->numbers, number);
	return at == WEFT_IDMAP_NONE ? NULL : r->texts.items[at];
}

static bool read_level(const struct reading *r, struct weft_cursor *in)
{
	uint8_t level;
	struct weft_str why;
	if (!weft_read_u8(in, &level) || !weft_read_string(in, &why) || level > WEFT_LEVEL_ALL)
		return false;
	r->info->level = (enum weft_kernel_level)level;
	r->info->why = why;
	return true;
}

static bool read_clock(const struct reading *r, struct weft_cursor *in)
{
	uint64_t raw_ns;
	uint32_t bound_ns;
	if (!weft_read_u64(in, &raw_ns) || !weft_read_u32(in, &bound_ns))
		return false;
	r->info->bound_ns = bound_ns > r->info->bound_ns ? bound_ns : r->info->bound_ns;
	return true;
}

/* Reads an event; returns 1 if c->head has it, 0 if the record is about the trace, or a negative number if it is damaged. */
static int read_event(struct reading *r, struct cursor *c)
{
	uint8_t op;
	struct weft_kernel_event *e = &c->head;
	if (!read_header(c, &op) || c->last > c->until)
		return -1;
	switch (op) {
	case WEFT_KERNEL_LEVEL: return read_level(r, &c->in) ? 0 : -1;
	case WEFT_KERNEL_THREAD: return read_thread(r, &c->in) ? 0 : -1;
	case WEFT_KERNEL_CLOCK: return read_clock(r, &c->in) ? 0 : -1;
	case WEFT_KERNEL_TEXT: return read_text(r, &c->in) ? 0 : -1;
	default: break;
	}
	const unsigned bytes = weft__kernel_fixed_bytes(op);
	if (!bytes || weft_cursor_left(&c->in) < bytes)
		return -1;
	*e = (struct weft_kernel_event){.op = op, .tid = weft_load_u32(c->in.at)};
	if (op == WEFT_KERNEL_OFF) {
		e->why = c->in.at[4];
		e->call = c->in.at[5];
	} else if (op == WEFT_KERNEL_IN) {
		e->ago_ns = weft_load_u32(c->in.at + 4);
		e->call = c->in.at[8];
		e->why = c->in.at[9];
		e->other = weft_load_u32(c->in.at + 10);
		e->text = get_text(r, weft_load_u32(c->in.at + 14));
	} else if (op == WEFT_KERNEL_SPENT) {
		const uint64_t ns = weft_load_u64(c->in.at + 13);
		e->ago_ns = weft_load_u32(c->in.at + 4);
		e->why = c->in.at[8];
		e->text = get_text(r, weft_load_u32(c->in.at + 9));
		e->length_ns = ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
	} else if (op != WEFT_KERNEL_ON) {
		e->other = weft_load_u32(c->in.at + 4);
	}
	c->in.at += bytes;
	e->time_ns = weft__ticks_ns(c->last, r->native->clock.hz);
	return 1;
}

/* Notes damage once, even if the trace is read several times. */
static void note_damage(struct reading *r, const struct native_packet *p, const unsigned char *at, size_t left)
{
	r->info->is_whole = false;
	if (r->native->is_kernel_read)
		return;
	/* Even if the end of the program's events was reached before, damaged kernel records are noted. */
	const bool was_whole = r->trace->is_end_reached;
	r->trace->is_end_reached = false;
	weft__trace_skip(r->trace, &r->trace->source.blobs[p->blob], p->index, p->offset + (uint64_t)(at - p->bytes), left,
	    "bytes that are not a kernel record");
	weft__trace_mark_placed(r->trace, 1);
	r->trace->is_end_reached = was_whole;
}

static bool begin_packet(struct reading *r, struct cursor *c)
{
	if (c->packet == c->end)
		return false;
	const struct native_packet *p = &r->native->kernel.items[c->packet];
	c->in = (struct weft_cursor){p->bytes + p->header_bytes, p->bytes + p->content_bytes};
	c->last = p->begin;
	c->until = c->packet + 1 < c->end ? p[1].begin : UINT64_MAX;
	return true;
}

/* Reads the next event into c->head; returns false if there is none. */
static bool advance_cursor(struct reading *r, struct cursor *c)
{
	for (;;) {
		while (c->in.at == c->in.end) {
			c->packet++;
			if (!begin_packet(r, c))
				return false;
		}
		const unsigned char *at = c->in.at;
		const int got = read_event(r, c);
		r->info->events += got > 0;
		if (got > 0)
			return true;
		if (got < 0) {
			note_damage(r, &r->native->kernel.items[c->packet], at, (size_t)(c->in.end - at));
			c->in.at = c->in.end;
		}
	}
}

static int flush_events(struct reading *r, weft_kernel_fn *each, void *ctx)
{
	const int failed = r->count && each ? each(ctx, r->out, r->count) : 0;
	if (r->count)
		r->info->until_ns = r->out[r->count - 1].time_ns;
	r->count = 0;
	return failed ? WEFT_EIO : WEFT_OK;
}

static bool is_earlier(const struct cursor *a, const struct cursor *b)
{
	return a->head.time_ns != b->head.time_ns ? a->head.time_ns < b->head.time_ns : a->packet < b->packet;
}

/* A heap is used because a damaged trace may claim very many CPUs. */
static void sift_down(struct reading *r, size_t at)
{
	struct cursor **heap = r->heap, *moved = heap[at];
	for (size_t child; (child = 2 * at + 1) < r->heap_count; at = child) {
		child += child + 1 < r->heap_count && is_earlier(heap[child + 1], heap[child]);
		if (!is_earlier(heap[child], moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* Calls `each` for the events of all CPUs in order of time. */
static int merge_cursors(struct reading *r, weft_kernel_fn *each, void *ctx)
{
	int status = WEFT_OK;
	r->heap = calloc(r->cursors.count + 1, sizeof *r->heap);
	if (!r->heap)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < r->cursors.count; i++)
		r->heap[r->heap_count++] = &r->cursors.items[i];
	for (size_t i = r->heap_count / 2; i--;)
		sift_down(r, i);
	for (struct cursor *first; status == WEFT_OK && r->heap_count && (first = r->heap[0]);) {
		const struct cursor *second = r->heap_count > 1 ? r->heap[1] : NULL;
		if (r->heap_count > 2 && is_earlier(r->heap[2], second))
			second = r->heap[2];
		bool more = true;
		do {
			r->out[r->count++] = first->head;
			if (r->count == BATCH)
				status = flush_events(r, each, ctx);
			more = advance_cursor(r, first);
		} while (more && status == WEFT_OK && (!second || is_earlier(first, second)));
		if (!more)
			r->heap[0] = r->heap[--r->heap_count];
		if (r->heap_count)
			sift_down(r, 0);
	}
	free(r->heap);
	return status == WEFT_OK ? flush_events(r, each, ctx) : status;
}

static bool open_cursors(struct reading *r)
{
	const struct native *n = r->native;
	for (size_t i = 0, end; i < n->kernel.count; i = end) {
		const struct native_packet *oldest = &n->kernel.items[i], *newest = oldest;
		for (end = i; end < n->kernel.count && n->kernel.items[end].instance == oldest->instance; end++) {
			newest = &n->kernel.items[end];
			r->info->bytes += newest->content_bytes;
			r->info->is_whole &= !newest->is_cut && (end == i || newest->sequence == newest[-1].sequence + 1);
			r->info->packets++;
		}
		r->info->processors++;
		r->info->lost += newest->lost_full;
		r->info->overwritten += oldest->events_before;
		/* If the ring of a CPU was overwritten, nothing is known of the time before its oldest packet. */
		const int64_t since_ns = oldest->sequence ? weft__ticks_ns(oldest->begin, n->clock.hz) : INT64_MIN;
		r->info->since_ns = since_ns > r->info->since_ns ? since_ns : r->info->since_ns;
		struct cursor *c = weft_vec_push(&r->cursors);
		if (!c)
			return false;
		*c = (struct cursor){.packet = i, .end = end};
		if (!begin_packet(r, c) || !advance_cursor(r, c))
			r->cursors.count--;
	}
	return true;
}

/* Sorted with the last name of a thread first, so that the last name is kept. */
struct named {
	struct weft_kernel_thread thread;
	size_t order;
};

static int compare_named(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	return WEFT_ORDER(a->thread.tid, b->thread.tid) ?: WEFT_ORDER(b->order, a->order);
}

static bool store_threads(struct reading *r)
{
	const size_t all = r->threads.count;
	struct named *sorted = malloc((all ? all : 1) * sizeof *sorted);
	struct weft_kernel_thread *retained = weft__native_alloc(r->native, (all ? all : 1) * sizeof *retained);
	size_t count = 0;
	for (size_t i = 0; sorted && i < all; i++)
		sorted[i] = (struct named){r->threads.items[i], i};
	if (sorted && retained) {
		weft_sort(sorted, all, sizeof *sorted, compare_named);
		for (size_t i = 0; i < all; i++)
			if (!count || retained[count - 1].tid != sorted[i].thread.tid)
				retained[count++] = sorted[i].thread;
	}
	free(sorted);
	r->info->threads = retained;
	r->info->thread_count = count;
	return retained != NULL && sorted != NULL;
}

int weft__native_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info)
{
	struct native *n = trace->state;
	*info = (struct weft_kernel_info){.is_whole = true, .since_ns = INT64_MIN, .until_ns = INT64_MIN};
	if (!n->kernel.count)
		return 0;
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		return WEFT_ENOMEM;
	*r = (struct reading){.trace = trace, .native = n, .info = info};
	int status = open_cursors(r) ? merge_cursors(r, each, ctx) : WEFT_ENOMEM;
	if (status == WEFT_OK && (r->no_memory || !store_threads(r)))
		status = WEFT_ENOMEM;
	n->is_kernel_read = true;
	info->is_whole &= info->lost == 0;
	weft_vec_free(&r->cursors);
	weft_vec_free(&r->threads);
	weft_vec_free(&r->texts);
	weft_idmap_finish(&r->numbers);
	free(r);
	return status < 0 ? status : 1;
}
