/* native_index.c: finds and sorts the packets of a native trace, and does not decode events.
 *
 * A ring changes if its program runs while the ring is read.  Therefore its packets are copied, each between two reads of its
 * lock (packet.h); a packet that is being reused is left out.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "base/intern.h"
#include "base/sort.h"
#include "trace/native.h"
#include "trace/ring_snapshot.h"

int weft__native_no_memory(struct weft_error *err)
{
	return weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

bool weft__native_adopt(struct native *n, void *memory)
{
	void **slot = memory ? weft_vec_push(&n->owned) : NULL;
	if (slot)
		*slot = memory;
	else
		free(memory);
	return slot != NULL;
}

void *weft__native_alloc(struct native *n, size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);
	return weft__native_adopt(n, memory) ? memory : NULL;
}

/* ---- Search for packets ---- */

/* Finds the next packet at or after `from`; sets *zeros if all skipped bytes are zeros. */
static size_t find_packet(const struct weft_blob *blob, size_t from, bool *zeros)
{
	const unsigned char *bytes = blob->bytes;
	const size_t size = blob->size;
	size_t at = from;
	*zeros = true;
	/* Large rings consist mostly of holes in their files, or of zeros. */
	while (at < size) {
		if (at % WEFT_PACKET_PAGE == 0) {
			at = weft__blob_data(blob, at).begin;
			if (at == size)
				break;
		}
		if (size - at >= 64 && at % 8 == 0) {
			uint64_t any = 0;
			for (int i = 0; i < 8; i++)
				any |= weft_load_u64(bytes + at + 8 * i);
			if (!any) {
				at = (at + 64) / 64 * 64;
				continue;
			}
		}
		if (bytes[at] == 0xC1 && weft__packet_probe(bytes + at, size - at) != WEFT_PACKET_NONE)
			return at;
		*zeros = *zeros && bytes[at] == 0;
		at++;
	}
	return size;
}

/* Returns the end of the packet at `offset`, given its header. */
static size_t find_end(
    const struct weft_blob *blob, size_t offset, const struct weft_packet *packet, enum weft_packet_fault fault)
{
	const size_t left = blob->size - offset;
	const bool is_inside = packet->bytes >= WEFT_PACKET_HEADER && packet->bytes < left;
	const size_t claimed = is_inside ? offset + (size_t)packet->bytes : blob->size;
	if (fault == WEFT_PACKET_SIZES)
		return offset + WEFT_PACKET_HEADER;
	/* If only the version field is damaged, another packet starts at the end that this header gives. */
	if (fault == WEFT_PACKET_VERSION && is_inside && !weft__packet_probe(blob->bytes + claimed, blob->size - claimed))
		return claimed;
	return fault == WEFT_PACKET_VERSION ? blob->size : claimed;
}

/* Takes the UUID and the clock of the trace from its first packet, if there is no metadata. */
static void learn_trace(struct native *n, const struct weft_packet *packet)
{
	if (!n->has_uuid) {
		memcpy(n->uuid, packet->uuid, sizeof n->uuid);
		n->has_uuid = true;
	}
	if (!n->clock.hz && packet->clock_hz) {
		const uint64_t wall = packet->pair_wall_ns, clock = packet->pair_clock;
		n->clock.hz = packet->clock_hz;
		n->clock.has_origin = wall != 0 && wall <= INT64_MAX && clock <= INT64_MAX;
		n->clock.origin_ns = n->clock.has_origin ? (int64_t)wall - weft__ticks_ns(clock, n->clock.hz) : 0;
	}
}

/* Notes the packet at location->offset; *end is the end of the packet. */
static int note_packet(struct weft_trace *trace, const struct native_location *location, size_t *end, struct weft_error *err)
{
	struct native *n = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[location->blob];
	const unsigned char *bytes = blob->bytes + location->offset;
	struct weft_packet packet;
	const enum weft_packet_fault fault = weft__packet_parse(&packet, bytes);
	*end = find_end(blob, location->offset, &packet, fault);
	const uint64_t size = *end - location->offset;
	if (fault == WEFT_PACKET_VERSION) {
		n->unknown_version = packet.version;
		weft__trace_skip(trace, blob, location->index, location->offset, size,
		    "a packet in version %u of the format, which this weft does not know", packet.version);
	} else if (fault == WEFT_PACKET_SIZES)
		weft__trace_skip(trace, blob, location->index, location->offset, size, "a packet header with impossible sizes");
	else if (n->has_uuid && memcmp(packet.uuid, n->uuid, sizeof n->uuid) != 0)
		weft__trace_skip(trace, blob, location->index, location->offset, size, "a packet of another trace");
	else if (fault == WEFT_PACKET_CLASS) {
		/* Later versions of the format may add classes, which never contain the program's own events. */
		weft__trace_skip(trace, blob, location->index, location->offset, size, "a packet of an unknown class");
		weft__trace_mark_placed(trace, 1);
	} else if (fault == WEFT_PACKET_FINE && packet.stream_class == WEFT_CLASS_METADATA) {
		uint64_t left = blob->size - location->offset,
			 content = packet.content_bytes < left ? packet.content_bytes : left;
		learn_trace(n, &packet);
		if (content >= packet.header_bytes)
			return weft__native_metadata(
			    trace, bytes + packet.header_bytes, (size_t)content - packet.header_bytes, err);
	} else {
		struct native_location *slot = weft_vec_push(&n->locations);
		if (!slot)
			return weft__native_no_memory(err);
		*slot = *location;
		slot->is_definitions = packet.stream_class == WEFT_CLASS_DEFINITIONS;
		slot->is_kernel = packet.stream_class == WEFT_CLASS_KERNEL;
		slot->is_profile = packet.stream_class == WEFT_CLASS_PROFILE;
		slot->is_memory = packet.stream_class == WEFT_CLASS_MEMORY;
		if (fault == WEFT_PACKET_FINE)
			learn_trace(n, &packet);
	}
	return WEFT_OK;
}

/* Reads a range without packets again: a header may have been written after the copy, when a packet was used for the first
 * time. */
static bool reread_range(const struct weft_trace *trace, const struct weft_blob *blob, size_t from, size_t end)
{
	const struct native *n = trace->state;
	if (!n->is_live || !trace->source.reread || blob->owner != WEFT_BLOB_HEAP)
		return false;
	return trace->source.reread(&trace->source, blob, from, (unsigned char *)blob->bytes + from, end - from);
}

int weft__native_find_packets(struct weft_trace *trace, uint32_t blob_index, struct weft_error *err)
{
	const struct weft_blob *blob = &trace->source.blobs[blob_index];
	struct native_location location = {.blob = blob_index};
	for (size_t at = 0; at < blob->size; location.index++) {
		bool zeros;
		size_t found = find_packet(blob, at, &zeros);
		for (int tries = 0; found != at && !zeros && tries < 3 && reread_range(trace, blob, at, found); tries++)
			found = find_packet(blob, at, &zeros);
		if (found != at && !zeros) {
			weft__trace_skip(trace, blob, WEFT_NO_OFFSET, at, found - at, "bytes that are not a packet");
			/* The file ends within a packet header.  The recorder noted at the end how many packets there were, so
			 * gaps are known. */
			if (blob->size < sizeof(struct weft_packet_header) && ((struct native *)trace->state)->is_finished)
				weft__trace_mark_placed(trace, 1);
		}
		if (found == blob->size)
			break;
		location.offset = found;
		if (weft__packet_probe(blob->bytes + found, blob->size - found) == WEFT_PACKET_BIG_ENDIAN) {
			weft__trace_fail(
			    err, WEFT_ENOTSUP, &trace->source, blob, "written on a big-endian machine, which weft does not read");
			weft__trace_set_location(err, &trace->source, blob, location.index, found);
			return WEFT_ENOTSUP;
		}
		int status = note_packet(trace, &location, &at, err);
		if (status < 0)
			return status;
	}
	return WEFT_OK;
}

/* ---- Packets ---- */

static size_t reread_blob(const void *ctx, uint64_t at, void *to, size_t bytes)
{
	const struct native_live *live = ctx;
	const struct weft_blob *blob = &live->source->blobs[live->blob];
	return live->source->reread(live->source, blob, at, to, bytes) ? bytes : 0;
}

struct weft_packet_memory weft__native_memory(const struct native_live *live)
{
	if (live->source->reread)
		return (struct weft_packet_memory){reread_blob, live};
	return (struct weft_packet_memory){weft__packet_read_own, live->source->blobs[live->blob].bytes};
}

/* Returns the number of content bytes that can be read from the `there` available bytes; notes that the rest is missing.  The
 * first `known` bytes of the packet were read before.  The time of the gap is found when the stream is decoded. */
static size_t trim_content(struct weft_trace *trace, const struct native_location *location, const struct weft_packet *packet,
    const unsigned char *bytes, size_t there, size_t known)
{
	const struct weft_blob *blob = &trace->source.blobs[location->blob];
	size_t content = packet->content_bytes < there ? (size_t)packet->content_bytes : there;
	const size_t before = trace->info.unplaced_count;
	if (packet->content_bytes > there)
		weft__trace_skip(trace, blob, location->index, location->offset + there, packet->content_bytes - there,
		    "the packet is cut off");
	else if (packet->bytes > blob->size - location->offset)
		weft__trace_skip(
		    trace, blob, location->index, blob->size, 0, "the file is cut off in the unused end of a packet");
	size_t whole = weft__packet_lost_page(bytes, location->offset, known, content);
	if (whole < content)
		weft__trace_skip(trace, blob, location->index, location->offset + whole, content - whole,
		    "zeros in place of events, as if a page had never reached the disk");
	trace->info.has_missing_names |= location->is_definitions && whole < packet->content_bytes;
	/* If a trace has several files, a truncated file loses only its newest data, so the time of the gap is known. */
	if (location->is_definitions || location->is_kernel || location->is_profile || location->is_memory ||
	    (whole >= packet->header_bytes && trace->source.blob_count > 1))
		weft__trace_mark_placed(trace, trace->info.unplaced_count - before);
	return whole;
}

static int store_packet(struct native *n, const struct native_location *location, const struct weft_packet *packet,
    const unsigned char *bytes, bool is_cut)
{
	struct native_packet *slot = location->is_definitions ? weft_vec_push(&n->definitions)
				     : location->is_kernel    ? weft_vec_push(&n->kernel)
				     : location->is_profile   ? weft_vec_push(&n->profile)
				     : location->is_memory    ? weft_vec_push(&n->memory)
							      : weft_vec_push(&n->packets);
	if (!slot)
		return WEFT_ENOMEM;
	*slot = (struct native_packet){
	    .bytes = bytes,
	    .begin = packet->begin,
	    .sequence = packet->sequence,
	    .events_before = packet->events_before,
	    .lost_full = packet->lost_full,
	    .lost_nested = packet->lost_nested,
	    .content_bytes = (uint32_t)packet->content_bytes,
	    .is_cut = is_cut,
	    .header_bytes = packet->header_bytes,
	    .version = packet->version,
	    .instance = packet->instance,
	    .blob = location->blob,
	    .offset = location->offset,
	    .index = location->index,
	};
	return WEFT_OK;
}

/* Adds the packet at a location to the index, as far as it can be read from its `there` available bytes. */
int weft__native_add_packet(
    struct weft_trace *trace, const struct native_location *location, const unsigned char *bytes, size_t there)
{
	struct native *n = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[location->blob];
	struct weft_packet packet;
	const enum weft_packet_fault fault = weft__packet_parse(&packet, bytes);
	const uint64_t left = blob->size - location->offset, size = packet.bytes < left ? packet.bytes : left;
	if (fault == WEFT_PACKET_CONTENT)
		weft__trace_skip(
		    trace, blob, location->index, location->offset, size, "a packet with an impossible content size");
	else if (fault == WEFT_PACKET_TIME)
		weft__trace_skip(trace, blob, location->index, location->offset, size, "a packet with an impossible time");
	/* WEFT_PACKET_REUSED means that the program died between INVALIDATE and VALIDATE. */
	if (fault != WEFT_PACKET_FINE)
		return WEFT_OK;
	const struct weft_stream_position *reached =
	    !n->from || location->is_definitions || location->is_profile || location->is_memory ? NULL
	    : location->is_kernel ? weft_position_of_kernel(n->from, packet.instance)
				  : weft_position_of_stream(n->from, packet.instance);
	if (reached && packet.sequence < reached->sequence)
		return WEFT_OK;
	const size_t known = reached && packet.sequence == reached->sequence ? reached->bytes : 0;
	const size_t content = trim_content(trace, location, &packet, bytes, there, known);
	const bool is_cut = content < packet.content_bytes;
	/* The saved copy of the packet will not have more content than this. */
	packet.content_bytes = content;
	if (content < packet.header_bytes || weft__packet_is_unused(&packet))
		return WEFT_OK;
	return store_packet(n, location, &packet, bytes, is_cut);
}

/* Adds the packets to the index as they were read. */
static int add_packets(struct weft_trace *trace, struct weft_error *err)
{
	const struct native *n = trace->state;
	for (size_t i = 0; i < n->locations.count; i++) {
		const struct native_location *location = &n->locations.items[i];
		const struct weft_blob *blob = &trace->source.blobs[location->blob];
		if (weft__native_add_packet(trace, location, blob->bytes + location->offset, blob->size - location->offset) < 0)
			return weft__native_no_memory(err);
	}
	return WEFT_OK;
}

/* ---- Order ---- */

static int compare_packets(const void *x, const void *y)
{
	const struct native_packet *a = x, *b = y;
	return WEFT_ORDER(a->instance, b->instance) ?: WEFT_ORDER(a->sequence, b->sequence) ?: WEFT_ORDER(a->begin, b->begin) ?:
	       WEFT_ORDER(a->blob, b->blob) ?: WEFT_ORDER(a->offset, b->offset);
}

/* ---- Streams ---- */

static int compare_changes(const void *x, const void *y)
{
	const struct native_change *a = x, *b = y;
	return WEFT_ORDER(a->instance, b->instance) ?: WEFT_ORDER(a->since, b->since) ?: WEFT_ORDER(a->order, b->order);
}

static struct weft_str get_thread_name(const struct native_packet *p)
{
	const char *name = (const char *)p->bytes + WEFT_PACKET_AT(thread_name);
	return (struct weft_str){name, (uint32_t)strnlen(name, WEFT_THREAD_NAME_SIZE)};
}

/* State of creating streams: an instance has one stream for each name that its threads have. */
struct making {
	struct native *native;
	struct weft_intern names;
	WEFT_VEC(uint32_t) newest; /* by number of a name: the newest stream with the name */
	size_t first;              /* first stream of the current instance */
	uint32_t instance;
};

/* Returns the stream with the given name; creates it if the instance has none. */
static int get_stream(struct making *making, struct weft_str name, uint64_t tid, uint16_t *out)
{
	struct native *n = making->native;
	const uint32_t number = weft_intern(&making->names, name);
	if (number == WEFT_INTERN_FAILED)
		return WEFT_ENOMEM;
	if (number == making->newest.count) {
		uint32_t *slot = weft_vec_push(&making->newest);
		if (!slot)
			return WEFT_ENOMEM;
		*slot = UINT32_MAX;
	}
	uint32_t *newest = &making->newest.items[number];
	if (*newest == UINT32_MAX || *newest < making->first) {
		/* weft_event.stream has 16 bits, so all further streams share the last stream. */
		if (n->streams.count <= UINT16_MAX) {
			struct weft_stream_info *fresh = weft_vec_push(&n->streams);
			if (!fresh)
				return WEFT_ENOMEM;
			*fresh = (struct weft_stream_info){.name = name, .instance = making->instance};
		}
		*newest = (uint32_t)n->streams.count - 1;
	}
	n->streams.items[*newest].tid = tid;
	*out = (uint16_t)*newest;
	return WEFT_OK;
}

void weft__native_add_gap(struct weft_trace *trace, struct weft_gap gap)
{
	struct native *n = trace->state;
	struct weft_gap *slot = trace->is_end_reached ? NULL : weft_vec_push(&n->gaps);
	if (slot)
		*slot = gap;
	else if (!trace->is_end_reached)
		trace->info.unplaced_count++; /* when out of memory: the time of the gap is unknown */
	trace->info.gaps = n->gaps.items;
	trace->info.gap_count = n->gaps.count;
}

/* Counts the instances in [next, end) that have no packet although they must have had one.  Recorders number instances from 0;
 * the last numbers may be unused. */
static uint32_t count_missing(const struct native *n, uint32_t next, uint32_t end)
{
	const uint32_t counted = n->packets_made.count < end ? (uint32_t)n->packets_made.count : end;
	uint32_t missing = end - (next > counted ? next : counted);
	for (uint32_t i = next; i < counted; i++)
		missing += n->packets_made.items[i] > 0;
	return missing;
}

/* Notes that the instances in [next, end) have no packet. */
static int note_missing(struct weft_trace *trace, uint32_t next, uint32_t end)
{
	struct native *n = trace->state;
	const uint32_t missing = next < end ? count_missing(n, next, end) : 0;
	if (!missing || n->streams.count > UINT16_MAX)
		return WEFT_OK;
	struct weft_stream_info *fresh = weft_vec_push(&n->streams);
	if (!fresh)
		return WEFT_ENOMEM;
	*fresh = (struct weft_stream_info){.name = {"missing", 7}};
	weft__native_add_gap(
	    trace, (struct weft_gap){.from_ns = INT64_MIN, .to_ns = INT64_MAX, .stream = (uint16_t)(n->streams.count - 1)});
	weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0, "all packets of %u stream%s missing", missing,
	    missing == 1 ? " are" : "s are");
	weft__trace_mark_placed(trace, 1);
	return WEFT_OK;
}

/* Notes packets that are missing after the newest packet of an instance. */
static void note_newest(struct weft_trace *trace, struct native_cursor *c, const struct native_packet *newest)
{
	const struct native *n = trace->state;
	const uint64_t made = newest->instance < n->packets_made.count ? n->packets_made.items[newest->instance] : 0;
	if (made <= newest->sequence + 1)
		return;
	c->missing = made - newest->sequence - 1;
	weft__trace_skip(trace, &trace->source.blobs[newest->blob], newest->index, newest->offset, 0,
	    "the last %" PRIu64 " packets of its stream are missing", c->missing);
	weft__trace_mark_placed(trace, 1);
}

/* Returns true if the oldest packet of an instance continues at the position. */
static bool continues_position(const struct native *n, const struct native_packet *oldest)
{
	const struct weft_stream_position *reached = weft_position_of_stream(n->from, oldest->instance);
	if (!reached)
		return oldest->sequence == 0;
	return oldest->sequence == reached->sequence
		   ? oldest->content_bytes >= reached->bytes
		   : oldest->sequence == reached->sequence + 1 && oldest->events_before == reached->events;
}

/* Returns true if there are events before the position. */
static bool has_events_before(const struct weft_position *position)
{
	for (size_t i = 0; i < position->streams.count; i++)
		if (position->streams.items[i].events > 0)
			return true;
	return false;
}

/* Notes packets that are missing before the oldest packet of an instance. */
static void note_oldest(struct weft_trace *trace, const struct native_packet *oldest)
{
	struct native *n = trace->state;
	if (n->from) {
		trace->info.wrapped |= n->from->wrapped || has_events_before(n->from);
		trace->is_resumed &= continues_position(n, oldest);
		return;
	}
	n->streams.items[oldest->stream].lost_overwritten += oldest->events_before;
	if (!oldest->sequence)
		return;
	trace->info.wrapped = true;
	if (n->is_ring)
		return;
	weft__native_add_gap(trace, (struct weft_gap){INT64_MIN, weft__ticks_ns(oldest->begin, n->clock.hz), oldest->sequence,
					oldest->events_before, oldest->stream});
	weft__trace_skip(trace, &trace->source.blobs[oldest->blob], oldest->index, oldest->offset, 0,
	    "the first %" PRIu64 " packets of its stream are missing", oldest->sequence);
	weft__trace_mark_placed(trace, 1);
}

/* Creates the streams of an instance; its packets start at `first`, its changes at *change. */
static int make_instance(struct weft_trace *trace, struct making *making, size_t first, size_t *change)
{
	struct native *n = trace->state;
	const uint32_t instance = n->packets.items[first].instance;
	struct native_cursor *c = weft_vec_push(&n->cursors);
	if (!c)
		return WEFT_ENOMEM;
	making->first = n->streams.count;
	making->instance = instance;
	*c = (struct native_cursor){.first = first, .packet = first, .end = first};
	while (c->end < n->packets.count && n->packets.items[c->end].instance == instance) {
		struct native_packet *p = &n->packets.items[c->end++];
		if (get_stream(making, get_thread_name(p), weft_load_u64(p->bytes + WEFT_PACKET_AT(tid)), &p->stream) < 0)
			return WEFT_ENOMEM;
		n->streams.items[p->stream].packets++;
		n->streams.items[p->stream].bytes += p->content_bytes;
	}
	const struct native_packet *oldest = &n->packets.items[first], *newest = &n->packets.items[c->end - 1];
	note_oldest(trace, oldest);
	note_newest(trace, c, newest);
	n->streams.items[newest->stream].lost_full = newest->lost_full;
	n->streams.items[newest->stream].lost_nested = newest->lost_nested;
	while (*change < n->changes.count && n->changes.items[*change].instance < instance)
		++*change;
	for (c->change = *change; *change < n->changes.count && n->changes.items[*change].instance == instance; ++*change) {
		struct native_change *at = &n->changes.items[*change];
		if (get_stream(making, at->name, at->tid, &at->stream) < 0)
			return WEFT_ENOMEM;
	}
	c->changes_end = *change;
	return WEFT_OK;
}

/* Returns the end of the numbers of the instances that are known.  While a program records, a thread may be about to get its
 * stream, so definitions do not count. */
static uint32_t find_instances_end(const struct native *n)
{
	uint32_t end = (uint32_t)n->packets_made.count;
	if (n->changes.count && !n->is_live) {
		const uint32_t last = n->changes.items[n->changes.count - 1].instance;
		end = last >= end && last < UINT32_MAX ? last + 1 : end;
	}
	return end;
}

static int make_streams(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	struct making making = {.native = n};
	size_t change = 0;
	int status = WEFT_OK;
	weft_sort(n->changes.items, n->changes.count, sizeof *n->changes.items, compare_changes);
	uint32_t next = 0;
	for (size_t i = 0; i < n->packets.count && status == WEFT_OK;) {
		const uint32_t instance = n->packets.items[i].instance;
		status = note_missing(trace, next, instance);
		if (status == WEFT_OK)
			status = make_instance(trace, &making, i, &change);
		if (status == WEFT_OK)
			i = n->cursors.items[n->cursors.count - 1].end;
		next = instance + 1;
	}
	if (status == WEFT_OK)
		status = note_missing(trace, next, find_instances_end(n));
	if (n->doubtful_since != UINT64_MAX) {
		for (size_t i = 0; i < n->streams.count; i++)
			weft__native_add_gap(trace, (struct weft_gap){.from_ns = weft__ticks_ns(n->doubtful_since, n->clock.hz),
							.to_ns = INT64_MAX,
							.stream = (uint16_t)i});
		weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0,
		    "the program overwrites its ring faster than it can be read: its streams end at different times");
		weft__trace_mark_placed(trace, 1);
	}
	/* The recorder sees every close in a runtime, but a library of promises may drop a promise without an event. */
	for (size_t i = 0; i < n->streams.count; i++)
		n->streams.items[i].records_all_ends = trace->info.runtimes.len > 0;
	n->gaps_at_open = n->gaps.count;
	weft_intern_finish(&making.names);
	weft_vec_free(&making.newest);
	return status < 0 ? weft__native_no_memory(err) : WEFT_OK;
}

/* Improves a clock frequency that was measured in a hurry, by the first and the last pair of clock times; stores the last
 * pair. */
static void correct_clock(struct weft_trace *trace)
{
	struct native *n = trace->state;
	const struct native_packet *first = NULL, *last = NULL;
	for (size_t i = 0; i < n->packets.count; i++) {
		const struct native_packet *p = &n->packets.items[i];
		if (!weft_load_u64(p->bytes + WEFT_PACKET_AT(pair_wall_ns)))
			continue;
		if (!first || p->begin < first->begin)
			first = p;
		if (!last || p->begin > last->begin)
			last = p;
	}
	struct weft_position *p = &n->position;
	memcpy(p->uuid, n->uuid, sizeof p->uuid);
	p->is_somewhere = true;
	if (n->from) {
		*p = *n->from;
		n->clock.hz = p->hz;
		n->clock.origin_ns = p->origin_ns;
	}
	p->hz = n->clock.hz;
	p->origin_ns = n->clock.origin_ns;
	if (!first)
		return;
	const bool has_first = p->pair_wall_ns != 0;
	uint64_t c0 = has_first ? p->pair_clock : weft_load_u64(first->bytes + WEFT_PACKET_AT(pair_clock)),
		 c1 = weft_load_u64(last->bytes + WEFT_PACKET_AT(pair_clock));
	uint64_t w0 = has_first ? p->pair_wall_ns : weft_load_u64(first->bytes + WEFT_PACKET_AT(pair_wall_ns)),
		 w1 = weft_load_u64(last->bytes + WEFT_PACKET_AT(pair_wall_ns));
	p->pair_clock = c0;
	p->pair_wall_ns = w0;
	/* A trace that is opened from a position keeps the clock of the position until the pairs of clock times span twice the
	 * time. */
	const bool is_due = !n->from || (w1 > w0 && (w1 - w0) / 2 >= p->span_ns);
	if (is_due && w1 > w0)
		p->span_ns = w1 - w0;
	if (is_due && n->has_rough_clock && w1 >= w0 + 500000000 && c1 > c0 && w0 <= INT64_MAX) {
		double hz = (double)(c1 - c0) * 1e9 / (double)(w1 - w0), off = hz / (double)n->clock.hz - 1;
		if (off > -1e-3 && off < 1e-3) {
			n->clock.hz = (uint64_t)(hz + 0.5);
			n->clock.origin_ns = (int64_t)w0 - weft__ticks_ns(c0, n->clock.hz);
			p->hz = n->clock.hz;
			p->origin_ns = n->clock.origin_ns;
		}
	}
	if (w1 <= INT64_MAX) {
		trace->pair_ns = weft__ticks_ns(c1, n->clock.hz);
		trace->pair_wall_ns = (int64_t)w1;
	}
}

static int find_all_packets(struct weft_trace *trace, const struct weft_blob *metadata, struct weft_error *err)
{
	int status = WEFT_OK;
	for (int definitions = 0; definitions < 2; definitions++)
		for (size_t i = 0; i < trace->source.blob_count && status == WEFT_OK; i++) {
			const struct weft_blob *blob = &trace->source.blobs[i];
			bool defines = strncmp(blob->name, "definitions", 11) == 0;
			if (blob != metadata && defines == definitions && (!trace->source.is_dir || blob->name[0] != '.'))
				status = weft__native_find_packets(trace, (uint32_t)i, err);
		}
	return status;
}

/* Returns true if a program may be writing the trace. */
static bool is_written(const struct weft_trace *trace)
{
	const struct native *n = trace->state;
	/* Words that are not aligned cannot be read atomically; callers pass such memory only if no process writes to it. */
	bool can_be_read = trace->source.reread || (n->locations.count && (uintptr_t)trace->source.blobs[0].bytes % 8 == 0);
	return n->is_live && can_be_read;
}

int weft__native_index(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	trace->info.host = trace->info.process = trace->info.command = trace->info.runtimes = (struct weft_str){"", 0};
	int status = WEFT_OK;
	const struct weft_blob *metadata = trace->source.is_dir ? weft_source_find(&trace->source, "metadata") : NULL;
	if (metadata)
		status = weft__native_metadata(trace, metadata->bytes, metadata->size, err);
	else if (trace->source.is_dir)
		weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0, "the metadata is missing");
	if (status == WEFT_OK)
		status = find_all_packets(trace, metadata, err);
	const struct weft_position *from = trace->source.from;
	if (from && from->is_somewhere && n->has_uuid && memcmp(from->uuid, n->uuid, sizeof n->uuid) == 0)
		n->from = from;
	n->known = n->from ? trace->source.known : NULL;
	trace->is_resumed = n->from != NULL;
	if (status == WEFT_OK)
		status = is_written(trace) ? weft__native_read_live(trace, err) : add_packets(trace, err);
	n->known = NULL; /* the caller owns it, and it is valid only until the trace is open */
	if (status < 0)
		return status;
	if (!n->packets.count && !n->definitions.count && n->unknown_version)
		return weft__trace_fail(err, WEFT_EFORMAT, &trace->source, NULL,
		    "written in version %u of the format; this weft reads versions 1 and %d", n->unknown_version,
		    WEFT_WIRE_VERSION);
	if (!n->packets.count && !n->definitions.count)
		return weft__trace_fail(err, WEFT_EFORMAT, &trace->source, NULL, "the trace contains no readable packet");
	if (!n->clock.hz)
		n->clock.hz = 1000000000;
	weft_sort(n->packets.items, n->packets.count, sizeof *n->packets.items, compare_packets);
	weft_sort(n->definitions.items, n->definitions.count, sizeof *n->definitions.items, compare_packets);
	weft_sort(n->kernel.items, n->kernel.count, sizeof *n->kernel.items, compare_packets);
	weft_sort(n->profile.items, n->profile.count, sizeof *n->profile.items, compare_packets);
	weft_sort(n->memory.items, n->memory.count, sizeof *n->memory.items, compare_packets);
	correct_clock(trace);
	status = weft__native_definitions(trace, err);
	return status < 0 ? status : make_streams(trace, err);
}
