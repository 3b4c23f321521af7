/* native_profile.c: reads the samples in packets of class WEFT_CLASS_PROFILE (wire/profile.h).
 *
 * The places of samples become sites of the trace, so that names are found for them as for all other sites.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "trace/native.h"
#include "wire/profile.h"

/* State of reading a packet: numbers count from 1 in each packet. */
struct reading {
	struct native *native;
	struct weft_cursor in;
	uint64_t last;                 /* ticks */
	size_t modules, sites, stacks; /* number of modules, sites and stacks that the trace had before this packet */
};

static bool read_header(struct reading *r, uint8_t *op)
{
	uint32_t low;
	if (!weft_read_u8(&r->in, op))
		return false;
	if (*op == WEFT_ID_EXTENDED) {
		uint64_t time;
		if (!weft_read_u8(&r->in, op) || !weft_read_u64(&r->in, &time) || time > INT64_MAX)
			return false;
		r->last = time;
		return true;
	}
	if (!weft_read_u32(&r->in, &low))
		return false;
	r->last += (uint32_t)(low - (uint32_t)r->last);
	return r->last <= INT64_MAX;
}

/* Each of these functions returns 1, 0 if the event is damaged, or WEFT_ENOMEM. */

static int read_period(struct reading *r)
{
	uint64_t period_ns, lost;
	if (!weft_read_u64(&r->in, &period_ns) || !weft_read_u64(&r->in, &lost) || period_ns > INT64_MAX)
		return 0;
	r->native->profile_period_ns = (int64_t)period_ns;
	r->native->profile_lost += lost;
	return 1;
}

static int read_module(struct reading *r)
{
	uint32_t number;
	struct weft_module module = {0};
	if (!weft_read_u32(&r->in, &number) || number != r->native->modules.count - r->modules + 1 ||
	    !weft_read_u8(&r->in, &module.role) || !weft_read_u64(&r->in, &module.address) ||
	    !weft_read_u64(&r->in, &module.size) || !weft_read_string(&r->in, &module.path) ||
	    !weft_read_string(&r->in, &module.build_id))
		return 0;
	struct weft_module *slot = weft_vec_push(&r->native->modules);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = module;
	return 1;
}

static int read_place(struct reading *r)
{
	struct native *n = r->native;
	struct weft_site site = {.file = {"", 0}, .function = {"", 0}};
	uint32_t number, module;
	if (!weft_read_u32(&r->in, &number) || number != n->sites.count - r->sites + 1 || !weft_read_u32(&r->in, &module) ||
	    module > n->modules.count - r->modules || !weft_read_u64(&r->in, &site.offset))
		return 0;
	if (!weft_vec_reserve(&n->sites, 1) || !weft_vec_reserve(&n->site_modules, 1))
		return WEFT_ENOMEM;
	n->sites.items[n->sites.count++] = site;
	n->site_modules.items[n->site_modules.count++] = module ? (uint32_t)r->modules + module - 1 : WEFT_NO_SITE;
	return 1;
}

/* Reads the name of a place that was found before the trace was saved. */
static int read_site(struct reading *r)
{
	struct native *n = r->native;
	struct weft_site named;
	uint32_t place;
	if (!weft_read_u32(&r->in, &place) || place == 0 || place > n->sites.count - r->sites ||
	    !weft_read_u32(&r->in, &named.line) || !weft_read_string(&r->in, &named.file) ||
	    !weft_read_string(&r->in, &named.function))
		return 0;
	struct weft_site *site = &n->sites.items[r->sites + place - 1];
	site->line = named.line;
	site->file = named.file;
	site->function = named.function;
	return 1;
}

static int read_stack(struct reading *r)
{
	struct native *n = r->native;
	uint32_t number, caller, place;
	if (!weft_read_u32(&r->in, &number) || number != n->profile_stacks.count - r->stacks + 1 ||
	    !weft_read_u32(&r->in, &caller) || caller >= number || !weft_read_u32(&r->in, &place) || place == 0 ||
	    place > n->sites.count - r->sites)
		return 0;
	struct weft_profile_stack *slot = weft_vec_push(&n->profile_stacks);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = (struct weft_profile_stack){
	    .site = (uint32_t)r->sites + place - 1, .caller = caller ? (uint32_t)r->stacks + caller - 1 : WEFT_NO_STACK};
	return 1;
}

static int read_sample(struct reading *r)
{
	struct native *n = r->native;
	uint32_t tid, stack;
	if (!weft_read_u32(&r->in, &tid) || !weft_read_u32(&r->in, &stack) || stack == 0 ||
	    stack > n->profile_stacks.count - r->stacks)
		return 0;
	struct weft_profile_sample *slot = weft_vec_push(&n->profile_samples);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = (struct weft_profile_sample){
	    .time_ns = weft__ticks_ns(r->last, n->clock.hz), .tid = tid, .stack = (uint32_t)r->stacks + stack - 1};
	return 1;
}

static int read_way(struct reading *r)
{
	uint8_t way;
	struct weft_str why;
	if (!weft_read_u8(&r->in, &way) || !weft_read_string(&r->in, &why))
		return 0;
	r->native->profile_way = way;
	r->native->profile_why = why;
	return 1;
}

static int read_event(void *ctx)
{
	struct reading *r = ctx;
	uint8_t op;
	if (!read_header(r, &op))
		return 0;
	switch ((enum weft_profile_op)op) {
	case WEFT_PROFILE_PERIOD: return read_period(r);
	case WEFT_PROFILE_MODULE: return read_module(r);
	case WEFT_PROFILE_PLACE: return read_place(r);
	case WEFT_PROFILE_STACK: return read_stack(r);
	case WEFT_PROFILE_SAMPLE: return read_sample(r);
	case WEFT_PROFILE_SITE: return read_site(r);
	case WEFT_PROFILE_WAY: return read_way(r);
	}
	return 0;
}

int weft__native_read_events(struct weft_trace *trace, const struct native_packet *packet, const struct weft_cursor *in,
    int (*read)(void *ctx), void *ctx, const char *what)
{
	while (in->at < in->end) {
		const unsigned char *at = in->at;
		const int got = read(ctx);
		if (got < 0)
			return got;
		if (got)
			continue;
		weft__trace_skip(trace, &trace->source.blobs[packet->blob], packet->index,
		    packet->offset + (uint64_t)(at - packet->bytes), (uint64_t)(in->end - at), "%s", what);
		weft__trace_mark_placed(trace, 1);
		return 0;
	}
	return 1;
}

static int read_packet(struct weft_trace *trace, const struct native_packet *p)
{
	struct native *n = trace->state;
	struct reading r = {n, {p->bytes + p->header_bytes, p->bytes + p->content_bytes}, p->begin, n->modules.count,
	    n->sites.count, n->profile_stacks.count};
	const int status = weft__native_read_events(trace, p, &r.in, read_event, &r, "bytes that are not a sample");
	return status < 0 ? status : WEFT_OK;
}

int weft__native_read_profile(struct weft_trace *trace)
{
	struct native *n = trace->state;
	int status = WEFT_OK;
	for (size_t i = 0; i < n->profile.count && status == WEFT_OK; i++)
		status = read_packet(trace, &n->profile.items[i]);
	trace->info.profile = (struct weft_profile){.stacks = n->profile_stacks.items,
	    .stack_count = n->profile_stacks.count,
	    .samples = n->profile_samples.items,
	    .sample_count = n->profile_samples.count,
	    .period_ns = n->profile_period_ns,
	    .lost = n->profile_lost,
	    .way = n->profile_way,
	    .why = n->profile_why};
	return status;
}
