/* freestanding.c: replaces thread.c and start.c on systems without an operating system, with one stream in the caller's buffer,
 * and a clock of the caller.  SPDX-License-Identifier: ISC */
#include "record/core.h"

struct weft_stream *weft__stream = &weft__no_stream;

/* Without an operating system, running code always has the CPU, so nothing is recorded. */
void weft__slow_awake(void)
{
}

void weft__slow_round(void)
{
}

static struct weft__stream only_stream;
static bool is_attached;
static const char *failure = "";
static struct weft_metadata metadata;
static struct weft__pending_lists pending_lists;

/* Finds no module, because there is only one file, and its addresses are memory addresses. */
bool weft__find_module(struct weft__module *out, const void *address)
{
	(void)out;
	(void)address;
	return false;
}

struct weft__stream *weft__attach(void)
{
	if (weft__mode == WEFT__OFF || is_attached)
		return NULL;
	weft__stream_reset(&only_stream);
	if (!weft__buffer_storage(&only_stream.storage, 0))
		return NULL;
	only_stream.hot.generation = weft__recording.generation << 16;
	only_stream.pending.inside = false;
	weft__pending_begin(&only_stream.pending, &pending_lists);
	is_attached = true;
	weft__stream = &only_stream.hot;
	weft__stream_begin(&only_stream);
	only_stream.in_slow = 1;
	return &only_stream;
}

int weft__start_as(const struct weft_record_options *o, size_t bytes)
{
	struct weft__recording *r = &weft__recording;
	if (weft__mode != WEFT__OFF) {
		failure = "the recorder is recording already";
		return WEFT_EBUSY;
	}
	if (!o || bytes != sizeof *o || !o->buffer || !o->clock || !o->clock_hz) {
		failure = "a buffer, a clock and its frequency are required";
		return WEFT_EINVAL;
	}
	weft__clock = o->clock;
	r->generation++;
	r->origin.clock_hz = o->clock_hz;
	r->origin.wall_ns = o->wall_ns;
	r->enter = o->enter;
	r->leave = o->leave;
	r->origin.mode = o->mode;
	r->next_key = 1;
	r->lost_no_stream = 0;
	if (o->first_id > r->next_id)
		r->next_id = o->first_id;
	uint64_t ticks = o->clock(), wall = o->wall_ns ? o->wall_ns() : 0;
	uint64_t seeds[2] = {
	    ticks ^ wall * 0x9e3779b97f4a7c15u, (uint64_t)(uintptr_t)o->buffer ^ r->generation << 48 ^ ticks << 17};
	__builtin_memcpy(r->origin.uuid, seeds, sizeof r->origin.uuid);
	r->origin.uuid[6] = (uint8_t)((r->origin.uuid[6] & 0x0f) | 0x40);
	r->origin.uuid[8] = (uint8_t)((r->origin.uuid[8] & 0x3f) | 0x80);
	metadata = (struct weft_metadata){
	    .clock_hz = o->clock_hz,
	    .clock_origin_ns = wall ? (int64_t)wall - weft__ticks_ns(ticks, o->clock_hz) : 0,
	    .clock_source = o->is_counter ? "counter" : "caller",
	    .clock_measured = "exact",
	    .host = o->host,
	    .process = o->process,
	    .command = o->command,
	    .mode = o->mode == WEFT_RECORD_RING ? "ring" : "grow",
	    .state = "recording",
	    .brief = true,
	};
	__builtin_memcpy(metadata.uuid, r->origin.uuid, sizeof r->origin.uuid);
	weft__stream_reset(&r->definitions);
	int status = weft__buffer_start(o, &metadata, false, &failure);
	if (status < 0)
		return status;
	failure = "";
	is_attached = false;
	__atomic_store_n(&weft__mode, (unsigned)WEFT__CALLED_CLOCK, __ATOMIC_SEQ_CST);
	return WEFT_OK;
}

const char *weft__start_error(void)
{
	return failure;
}

void weft__stop(void)
{
	if (weft__mode == WEFT__OFF)
		return;
	__atomic_store_n(&weft__mode, (unsigned)WEFT__OFF, __ATOMIC_SEQ_CST);
	metadata.state = "finished";
	weft__buffer_metadata(&metadata);
	weft__stream = &weft__no_stream;
}

uint64_t weft__now(void)
{
	return weft__clock ? weft__clock() : 0;
}

void weft__list_pending(weft_list_pending_fn *list, void *data)
{
	pending_lists.of[WEFT__PENDING_OF_PROGRAM] = (struct weft__pending_list){list, data};
}
