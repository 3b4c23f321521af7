/* position.c: stores and compares positions in a trace (position.h).  SPDX-License-Identifier: ISC */
#include "trace/position.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "trace/format.h"

bool weft_position_copy(struct weft_position *to, const struct weft_position *from)
{
	struct weft_position copy = *from;
	memset(&copy.streams, 0, sizeof copy.streams);
	memset(&copy.kernel, 0, sizeof copy.kernel);
	if (!weft_vec_reserve(&copy.streams, from->streams.count + 1) ||
	    !weft_vec_reserve(&copy.kernel, from->kernel.count + 1)) {
		weft_position_free(&copy);
		return false;
	}
	for (size_t i = 0; i < from->streams.count; i++)
		copy.streams.items[copy.streams.count++] = from->streams.items[i];
	for (size_t i = 0; i < from->kernel.count; i++)
		copy.kernel.items[copy.kernel.count++] = from->kernel.items[i];
	weft_position_free(to);
	*to = copy;
	return true;
}

void weft_position_set_clock(struct weft_position *position, const struct weft_position *other)
{
	position->hz = other->hz;
	position->origin_ns = other->origin_ns;
	position->pair_clock = other->pair_clock;
	position->pair_wall_ns = other->pair_wall_ns;
	position->span_ns = other->span_ns;
}

void weft_position_free(struct weft_position *position)
{
	weft_vec_free(&position->streams);
	weft_vec_free(&position->kernel);
	*position = (struct weft_position){0};
}

static const struct weft_stream_position *find_stream_position(
    const struct weft_stream_position *items, size_t count, uint32_t instance)
{
	const size_t at = WEFT_FIND_FIRST(i, 0, count, items[i].instance >= instance);
	return at < count && items[at].instance == instance ? &items[at] : NULL;
}

const struct weft_stream_position *weft_position_of_stream(const struct weft_position *position, uint32_t instance)
{
	return find_stream_position(position->streams.items, position->streams.count, instance);
}

const struct weft_stream_position *weft_position_of_kernel(const struct weft_position *position, uint32_t processor)
{
	return find_stream_position(position->kernel.items, position->kernel.count, processor);
}

bool weft_position_is_behind(const struct weft_position *position, const char *name)
{
	static const char stream[] = "stream-";
	char *end;
	if (!position->grows || strncmp(name, stream, sizeof stream - 1) != 0)
		return false;
	const unsigned long long instance = strtoull(name + sizeof stream - 1, &end, 10);
	if (*end != '-' || instance > UINT32_MAX)
		return false;
	const unsigned long long packet = strtoull(end + 1, &end, 10);
	const struct weft_stream_position *reached = *end ? NULL : weft_position_of_stream(position, (uint32_t)instance);
	return reached && packet < reached->sequence;
}

int weft_trace_end_position(const struct weft_trace *trace, struct weft_position *out)
{
	return trace->format == &weft__format_native ? weft__native_end_position(trace, out) : WEFT_ENOTSUP;
}

int weft_trace_start_position(const struct weft_trace *trace, struct weft_position *out)
{
	return trace->format == &weft__format_native ? weft__native_start_position(trace, out) : WEFT_ENOTSUP;
}

int weft_trace_current_position(const struct weft_trace *trace, struct weft_position *out)
{
	return trace->format == &weft__format_native ? weft__native_current_position(trace, out) : WEFT_ENOTSUP;
}

uint64_t weft_trace_bytes_left(const struct weft_trace *trace)
{
	return trace->format == &weft__format_native ? weft__native_bytes_left(trace) : 0;
}

void weft_trace_begin_at(struct weft_trace *trace, const struct weft_position *position)
{
	if (trace->format == &weft__format_native)
		weft__native_begin_at(trace, position);
}

void weft_trace_rewind_to(struct weft_trace *trace, const struct weft_position *position)
{
	if (trace->format == &weft__format_native)
		weft__native_rewind_to(trace, position);
	trace->has_given_checkpoint = true;
}

bool weft_trace_is_resumed(const struct weft_trace *trace)
{
	return trace->source.from && trace->is_resumed;
}

void weft_trace_set_checkpoint(struct weft_trace *trace, const struct weft_event *events, size_t count)
{
	trace->checkpoint = events;
	trace->checkpoint_count = count;
}
