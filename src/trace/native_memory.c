/* native_memory.c: reads the sampled allocations in packets of class WEFT_CLASS_MEMORY (wire/memory.h).
 * SPDX-License-Identifier: ISC */
#include "base/cursor.h"
#include "base/search.h"
#include "trace/native.h"
#include "wire/memory.h"

/* State of reading a packet: the numbers of stacks count from 1 in each packet. */
struct reading {
	struct native *native;
	struct weft_cursor in;
	uint64_t time; /* ticks */
	size_t stacks; /* number of stacks that the trace had before this packet */
};

/* Returns how many bytes a sample stands for.  An allocation is sampled with the probability 1 - exp(-bytes / period), which is
 * computed without libm, so that all machines compute the same number. */
static int64_t estimate_bytes(uint64_t bytes, uint32_t period_bytes)
{
	enum { CERTAIN_PERIODS = 32, HALVINGS = 10 };
	const int64_t own = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
	if (!bytes || !period_bytes || bytes / period_bytes >= CERTAIN_PERIODS)
		return own;
	const double y = (double)bytes / period_bytes / (1 << HALVINGS);
	double probability = y * (1 - y * (1.0 / 2 - y * (1.0 / 6 - y / 24)));
	for (int i = 0; i < HALVINGS; i++)
		probability *= 2 - probability;
	return (int64_t)((double)bytes / probability + 0.5);
}

/* Each of these functions returns 1, 0 if the event is damaged, or WEFT_ENOMEM. */

static int read_stack(struct reading *r)
{
	struct native *n = r->native;
	uint32_t number, caller;
	uint16_t place;
	if (!weft_read_u32(&r->in, &number) || number != n->memory_stacks.count - r->stacks + 1 ||
	    !weft_read_u32(&r->in, &caller) || caller >= number || !weft_read_u16(&r->in, &place))
		return 0;
	struct weft_profile_stack *slot = weft_vec_push(&n->memory_stacks);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = (struct weft_profile_stack){.site = place < n->key_count ? n->site_index[place] : WEFT_NO_SITE,
	    .caller = caller ? (uint32_t)r->stacks + caller - 1 : WEFT_NO_STACK};
	return 1;
}

static int read_allocated(struct reading *r)
{
	struct native *n = r->native;
	uint32_t number, period_bytes, stack;
	uint64_t promise, bytes;
	const uint32_t last = n->allocations.count ? n->allocations.items[n->allocations.count - 1].number : 0;
	if (!weft_read_u32(&r->in, &number) || number <= last || !weft_read_u64(&r->in, &promise) ||
	    !weft_read_u64(&r->in, &bytes) || !weft_read_u32(&r->in, &period_bytes) || !weft_read_u32(&r->in, &stack) ||
	    stack > n->memory_stacks.count - r->stacks)
		return 0;
	struct weft_allocation *slot = weft_vec_push(&n->allocations);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = (struct weft_allocation){.time_ns = weft__ticks_ns(r->time, n->clock.hz),
	    .freed_ns = INT64_MAX,
	    .promise = (int64_t)promise,
	    .bytes = estimate_bytes(bytes, period_bytes),
	    .stack = stack ? (uint32_t)r->stacks + stack - 1 : WEFT_NO_STACK,
	    .number = number};
	n->memory_period_bytes = period_bytes;
	return 1;
}

static int read_freed(struct reading *r)
{
	struct native *n = r->native;
	uint32_t number;
	if (!weft_read_u32(&r->in, &number))
		return 0;
	const size_t at = WEFT_FIND_FIRST(i, 0, n->allocations.count, n->allocations.items[i].number >= number);
	/* An allocation of an earlier recording is unknown. */
	if (at < n->allocations.count && n->allocations.items[at].number == number)
		n->allocations.items[at].freed_ns = weft__ticks_ns(r->time, n->clock.hz);
	return 1;
}

static int read_event(void *ctx)
{
	struct reading *r = ctx;
	uint8_t id, op;
	if (!weft_read_u8(&r->in, &id) || id != WEFT_ID_EXTENDED || !weft_read_u8(&r->in, &op) ||
	    !weft_read_u64(&r->in, &r->time) || r->time > INT64_MAX)
		return 0;
	switch ((enum weft_memory_op)op) {
	case WEFT_MEMORY_STACK: return read_stack(r);
	case WEFT_MEMORY_ALLOCATED: return read_allocated(r);
	case WEFT_MEMORY_FREED: return read_freed(r);
	}
	return 0;
}

static int read_packet(struct weft_trace *trace, const struct native_packet *p)
{
	struct native *n = trace->state;
	struct reading r = {n, {p->bytes + p->header_bytes, p->bytes + p->content_bytes}, p->begin, n->memory_stacks.count};
	const int status = weft__native_read_events(trace, p, &r.in, read_event, &r, "bytes that are not an allocation");
	n->is_memory_damaged |= status == 0;
	return status < 0 ? status : WEFT_OK;
}

int weft__native_read_memory(struct weft_trace *trace)
{
	struct native *n = trace->state;
	uint64_t lost = 0, lost_ends = 0, expected = 0;
	int status = WEFT_OK;
	for (size_t i = 0; i < n->memory.count && status == WEFT_OK; i++) {
		const struct native_packet *p = &n->memory.items[i];
		status = read_packet(trace, p);
		lost = p->lost_full;
		lost_ends = p->lost_nested;
		n->is_memory_damaged |= p->sequence != expected || p->is_cut;
		expected = p->sequence + 1;
	}
	trace->info.memory = (struct weft_memory){.stacks = n->memory_stacks.items,
	    .stack_count = n->memory_stacks.count,
	    .allocations = n->allocations.items,
	    .allocation_count = n->allocations.count,
	    .period_bytes = n->memory_period_bytes,
	    .lost = lost,
	    .misses_ends = lost_ends || n->is_memory_damaged};
	return status;
}
