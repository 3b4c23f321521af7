/* image.c: finds the packets of a ring in an image of memory.
 *
 * First, the packet headers of all rings are noted.  After the search, one ring is chosen and its packets are copied.  Packets
 * of events are copied first and definitions last, so that the definitions cover all copied events even while the program
 * records.  SPDX-License-Identifier: ISC */
#include "trace/image.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cursor.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "trace/format.h"
#include "trace/packet.h"
#include "trace/ring_snapshot.h"
#include "wire/standby.h"
#include "wire/wire.h"

enum {
	CHUNK = 1 << 20,             /* bytes read at once */
	MAGIC_TO_MARK_BYTES = 32,    /* number of bytes from the magic to the end of the mark in a packet header */
	MAX_FOUND_PACKETS = 1 << 20, /* most packets that are found: 4 GiB of packets of one page each */
	MAX_OTHERS_NOTED = 4,        /* rings */
	BLOCK = 64,
	PAGE = 4096
};

/* A packet header that was found in the image. */
struct found {
	uint8_t uuid[16];
	uint64_t address, sequence, content_bytes;
	uint64_t wall_ns; /* wall-clock time at the start of the packet; 0 if it is unknown */
	uint64_t begin_ns;
	uint32_t stream_class, instance;
	bool is_odd; /* true if the packet's lock is odd: the packet is being reused, or is an incomplete copy */
};

/* The range of packets[] that has one UUID. */
struct ring {
	size_t first, end;
	uint64_t wall_ns, begin_ns; /* of the newest packet */
	/* true if the ring has definitions or metadata, so that it is not a damaged packet of another ring */
	bool is_defined;
	bool has_content; /* false if there are only headers without content, as on the stack of a recording program */
};

struct search {
	const struct weft_image *image;
	WEFT_VEC(struct found) packets;
	WEFT_VEC(struct ring) rings;
	unsigned char *buffer;
	size_t chunk; /* size of the buffer in bytes: CHUNK, or the size of the image */
	bool is_full;
};

/* ---- Reading by address ---- */

/* Returns the index of the extent that contains the address, or of the first extent behind it, or the number of extents. */
static size_t find_extent(const struct weft_image *image, uint64_t address)
{
	const struct weft_extent *extents = image->extents;
	return WEFT_FIND_FIRST(
	    i, 0, image->extent_count, address < extents[i].address || address - extents[i].address < extents[i].bytes);
}

size_t weft__image_read(const struct weft_image *image, uint64_t address, void *to, size_t bytes)
{
	size_t got = 0;
	for (size_t i = find_extent(image, address); got < bytes && i < image->extent_count; i++) {
		const struct weft_extent *extent = &image->extents[i];
		uint64_t in_it = address + got - extent->address;
		if (in_it >= extent->bytes)
			break;
		uint64_t left = extent->bytes - in_it;
		size_t wanted = left < bytes - got ? (size_t)left : bytes - got;
		size_t n = image->read(image, extent->offset + in_it, (char *)to + got, wanted);
		got += n;
		if (n < wanted)
			break;
	}
	return got;
}

bool weft__image_cut_path(char *path)
{
	char *slash = strrchr(path, '/');
	if (!slash || strncmp(slash, "/stream-", 8) != 0 || slash[8 + strspn(slash + 8, "-0123456789")])
		return false;
	*slash = 0;
	return true;
}

/* ---- Search ---- */

static bool is_magic(const unsigned char *p)
{
	return weft_load_u32(p) == WEFT_PACKET_MAGIC && weft_load_u32(p + WEFT_PACKET_AT(mark)) == WEFT_PACKET_MARK;
}

/* Returns true if a packet may start at one of BLOCK positions.  The loop has no branches, so that compilers vectorize it;
 * memchr() for one byte would stop at every 256th byte of a dense image. */
static inline bool may_have_magic(const unsigned char *p)
{
	unsigned char any = 0;
	for (int i = 0; i < BLOCK; i++)
		any |= (unsigned char)((p[i] == (WEFT_PACKET_MAGIC & 0xff)) & (p[i + 1] == (WEFT_PACKET_MAGIC >> 8 & 0xff)));
	return any;
}

/* Stores the facts about a packet that are needed before it is copied. */
static void fill_found(struct found *out, const struct weft_packet *packet, uint64_t address)
{
	const uint64_t hz = packet->clock_hz, begin = packet->begin;
	*out = (struct found){
	    .address = address,
	    .sequence = packet->sequence,
	    .content_bytes = packet->content_bytes,
	    .wall_ns = packet->pair_wall_ns <= INT64_MAX ? packet->pair_wall_ns : 0,
	    .begin_ns = hz && begin <= INT64_MAX && begin / hz < 1000000000 ? (uint64_t)weft__ticks_ns(begin, hz) : 0,
	    .stream_class = packet->stream_class,
	    .instance = packet->instance,
	    .is_odd = packet->lock & 1,
	};
	memcpy(out->uuid, packet->uuid, sizeof out->uuid);
}

static bool note_packet(struct search *s, uint64_t address)
{
	unsigned char header[WEFT_PACKET_HEADER];
	struct weft_packet packet;
	if (weft__image_read(s->image, address, header, sizeof header) < sizeof header)
		return true;
	const enum weft_packet_fault fault = weft__packet_parse(&packet, header);
	if (fault != WEFT_PACKET_FINE && fault != WEFT_PACKET_REUSED && fault != WEFT_PACKET_TIME)
		return true;
	/* The recorder builds a header on its stack and sets the UUID last. */
	static const uint8_t no_uuid[sizeof packet.uuid];
	if (memcmp(packet.uuid, no_uuid, sizeof no_uuid) == 0)
		return true;
	s->is_full = s->packets.count == MAX_FOUND_PACKETS;
	struct found *slot = s->is_full ? NULL : weft_vec_push(&s->packets);
	if (slot)
		fill_found(slot, &packet, address);
	return slot || s->is_full;
}

/* Searches those positions of the buffer at which magic and mark lie inside the buffer. */
static bool scan_buffer(struct search *s, size_t filled, uint64_t address)
{
	size_t positions = filled < MAGIC_TO_MARK_BYTES ? 0 : filled - MAGIC_TO_MARK_BYTES + 1;
	for (size_t block = 0; block < positions && !s->is_full; block += BLOCK) {
		/* The check reads beyond the block, so it cannot be used at the end of the buffer. */
		if (filled - block > BLOCK && !may_have_magic(s->buffer + block))
			continue;
		size_t end = positions - block < BLOCK ? positions : block + BLOCK;
		for (size_t i = block; i < end && !s->is_full; i++)
			if (is_magic(s->buffer + i) && !note_packet(s, address + i))
				return false;
	}
	return true;
}

/* Searches the extents first to end - 1, which are adjacent. */
static bool search_extents(struct search *s, size_t first, size_t end)
{
	size_t retained = 0; /* number of bytes at the start of the buffer that lie before the address `at` */
	for (size_t i = first; i < end; i++) {
		const struct weft_extent *extent = &s->image->extents[i];
		for (uint64_t at = 0; at < extent->bytes && !s->is_full;) {
			uint64_t data_end = UINT64_MAX;
			if (s->image->next_data) {
				uint64_t next = s->image->next_data(s->image, extent->offset + at, &data_end) - extent->offset;
				retained = next > at ? 0 : retained;
				at = next;
				if (at >= extent->bytes)
					break;
				data_end -= extent->offset;
			}
			uint64_t left = (data_end < extent->bytes ? data_end : extent->bytes) - at;
			size_t wanted = left < s->chunk - retained ? (size_t)left : s->chunk - retained;
			size_t got = s->image->read(s->image, extent->offset + at, s->buffer + retained, wanted);
			if (!scan_buffer(s, retained + got, extent->address + at - retained))
				return false;
			if (got < wanted) {
				/* If a page of the image cannot be read, the next page may be readable. */
				at = (at + got + PAGE) / PAGE * PAGE;
				retained = 0;
				continue;
			}
			size_t overlap = retained + got < MAGIC_TO_MARK_BYTES - 1 ? retained + got : MAGIC_TO_MARK_BYTES - 1;
			memmove(s->buffer, s->buffer + retained + got - overlap, overlap);
			retained = overlap;
			at += got;
		}
	}
	return true;
}

static bool search_all(struct search *s)
{
	s->chunk = s->image->bytes < CHUNK - BLOCK ? (size_t)s->image->bytes + BLOCK : CHUNK;
	s->buffer = malloc(s->chunk);
	if (!s->buffer)
		return false;
	const struct weft_extent *extents = s->image->extents;
	size_t count = s->image->extent_count;
	for (size_t first = 0, end; first < count && !s->is_full; first = end) {
		end = first + 1;
		while (end < count && extents[end - 1].address + extents[end - 1].bytes == extents[end].address)
			end++;
		if (!search_extents(s, first, end))
			return false;
	}
	return true;
}

/* ---- Choice ---- */

/* Compares by ring.  The best of several packets with one number comes first: a complete packet, and then the packet with the
 * most content. */
static int compare_found(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	return memcmp(a->uuid, b->uuid, sizeof a->uuid) ?: WEFT_ORDER(a->stream_class, b->stream_class) ?:
	       WEFT_ORDER(a->instance, b->instance) ?: WEFT_ORDER(a->sequence, b->sequence) ?:
	       WEFT_ORDER(a->is_odd, b->is_odd) ?: WEFT_ORDER(b->content_bytes, a->content_bytes) ?:
	       WEFT_ORDER(a->address, b->address);
}

static int compare_addresses(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	return WEFT_ORDER(a->address, b->address);
}

static bool find_rings(struct search *s)
{
	for (size_t i = 0; i < s->packets.count; i++) {
		const struct found *p = &s->packets.items[i];
		if (i == 0 || memcmp(p->uuid, p[-1].uuid, sizeof p->uuid) != 0) {
			struct ring *fresh = weft_vec_push(&s->rings);
			if (!fresh)
				return false;
			*fresh = (struct ring){.first = i};
		}
		struct ring *ring = &s->rings.items[s->rings.count - 1];
		ring->end = i + 1;
		if (p->is_odd)
			continue;
		ring->has_content = ring->has_content || p->content_bytes > WEFT_PACKET_HEADER;
		ring->is_defined =
		    ring->is_defined || p->stream_class == WEFT_CLASS_DEFINITIONS || p->stream_class == WEFT_CLASS_METADATA;
		ring->wall_ns = p->wall_ns > ring->wall_ns ? p->wall_ns : ring->wall_ns;
		ring->begin_ns = p->begin_ns > ring->begin_ns ? p->begin_ns : ring->begin_ns;
	}
	return true;
}

static void format_uuid(char out[37], const uint8_t uuid[16])
{
	size_t n = 0;
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(out + n, 37 - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static const uint8_t *get_uuid(const struct search *s, const struct ring *ring)
{
	return s->packets.items[ring->first].uuid;
}

static bool is_newer(const struct search *s, const struct ring *a, const struct ring *b)
{
	if (a->is_defined != b->is_defined)
		return a->is_defined;
	if (a->wall_ns != b->wall_ns)
		return a->wall_ns > b->wall_ns;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns > b->begin_ns;
	size_t x = a->end - a->first, y = b->end - b->first;
	return x != y ? x > y : memcmp(get_uuid(s, a), get_uuid(s, b), 16) > 0;
}

__attribute__((format(printf, 4, 5))) static int fail_search(
    const struct search *s, struct weft_error *err, enum weft_status status, const char *what, ...)
{
	if (err) {
		va_list args;
		weft_error_set(err, status, "%s", "");
		va_start(args, what);
		vsnprintf(err->what, sizeof err->what, what, args);
		va_end(args);
		snprintf(err->file, sizeof err->file, "%s", s->image->name);
	}
	return status;
}

/* Chooses the requested ring; sets its index, or an error. */
static int choose_ring(const struct search *s, const char *wanted, size_t *out, struct weft_error *err)
{
	size_t best = SIZE_MAX, matches = 0;
	for (size_t i = 0; i < s->rings.count; i++) {
		char uuid[37];
		const struct ring *ring = &s->rings.items[i];
		format_uuid(uuid, get_uuid(s, ring));
		if (!ring->is_defined && !ring->has_content)
			continue;
		if (wanted && strncasecmp(uuid, wanted, strlen(wanted)) != 0)
			continue;
		matches++;
		if (best == SIZE_MAX || is_newer(s, &s->rings.items[i], &s->rings.items[best]))
			best = i;
	}
	if (!matches) {
		unsigned char first[512];
		size_t got = s->image->read(s->image, 0, first, sizeof first);
		return fail_search(s, err, WEFT_EFORMAT, "%s",
		    wanted && s->rings.count ? "the image contains no ring buffer with that UUID"
					     : weft__trace_unknown_text(first, got));
	}
	if (wanted && matches > 1)
		return fail_search(s, err, WEFT_EINVAL, "the UUID prefix matches several ring buffers; use more digits");
	*out = best;
	return WEFT_OK;
}

/* ---- Copy ---- */

static size_t read_found(const void *ctx, uint64_t address, void *to, size_t bytes)
{
	return weft__image_read(ctx, address, to, bytes);
}

/* Returns the maximum size of the packet with index i of packets[]: it ends at the next packet, whatever its header says. */
static uint64_t get_max_packet_bytes(const struct search *s, const struct ring *ring, size_t i)
{
	return i + 1 < ring->end ? s->packets.items[i + 1].address - s->packets.items[i].address : UINT64_MAX;
}

/* Adds a copy of a packet to the source's blobs; the source owns the copy, on failure too. */
static bool add_blob(const struct search *s, struct weft_source *source, uint64_t address, struct weft_packet_copy *copy)
{
	/* If all content was copied, the unused rest of the packet is not needed. */
	if (copy->size == copy->packet.content_bytes)
		memcpy(copy->bytes + WEFT_PACKET_AT(packet_size), copy->bytes + WEFT_PACKET_AT(content_size), 8);
	source->blobs[source->blob_count++] = (struct weft_blob){
	    .name = strdup(s->image->name),
	    .bytes = copy->bytes,
	    .size = copy->size,
	    .owner = WEFT_BLOB_HEAP,
	    .is_found = true,
	    .address = address,
	};
	copy->bytes = NULL;
	return source->blobs[source->blob_count - 1].name != NULL;
}

/* Copies the packets of a ring that belong to a class without events, in the order of their addresses. */
static bool copy_class(
    const struct search *s, const struct ring *ring, enum weft_stream_class stream_class, struct weft_source *source)
{
	const struct weft_packet_memory memory = {read_found, s->image};
	for (size_t i = ring->first; i < ring->end; i++) {
		const struct found *packet = &s->packets.items[i];
		struct weft_packet_copy copy;
		if (packet->stream_class != stream_class)
			continue;
		int got = weft__packet_copy(&copy, &memory, packet->address, get_max_packet_bytes(s, ring, i));
		if (got < 0)
			return false;
		if (got == 0)
			continue;
		if (memcmp(packet->uuid, copy.packet.uuid, sizeof packet->uuid) != 0 ||
		    copy.packet.stream_class != stream_class) {
			free(copy.bytes);
			continue;
		}
		if (!add_blob(s, source, packet->address, &copy))
			return false;
	}
	return true;
}

/* Copies the packets with events: one contiguous snapshot of each stream, even while a program writes the packets. */
static bool copy_events(const struct search *s, const struct ring *ring, struct weft_source *source)
{
	enum { ROUNDS = 8 };
	const uint8_t *uuid = get_uuid(s, ring);
	struct weft_slot *slots = calloc(ring->end - ring->first, sizeof *slots);
	size_t count = 0;
	uint64_t step = 0;
	bool whole = slots != NULL, is_good = false;
	for (size_t i = ring->first; i < ring->end && whole; i++)
		if (s->packets.items[i].stream_class == WEFT_CLASS_EVENTS)
			slots[count++] = (struct weft_slot){
			    .memory = {read_found, s->image},
			    .at = s->packets.items[i].address,
			    .max_bytes = get_max_packet_bytes(s, ring, i),
			};
	for (int round = 0; round < ROUNDS && whole && !is_good; round++) {
		whole = weft__ring_snapshot_refresh(slots, count, &step) == WEFT_OK;
		is_good = round && weft__ring_snapshot_is_good(slots, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct weft_packet *packet = &slots[i].packet;
		if (whole && slots[i].is_retained && packet->stream_class == WEFT_CLASS_EVENTS &&
		    memcmp(packet->uuid, uuid, sizeof packet->uuid) == 0)
			whole = add_blob(s, source, slots[i].at, &slots[i].copy);
		free(slots[i].copy.bytes);
	}
	free(slots);
	return whole;
}

/* Keeps one packet with each number, and sorts the packets by address. */
static void drop_duplicates(struct search *s, struct ring *ring)
{
	struct found *packets = s->packets.items;
	size_t retained = ring->first;
	for (size_t i = ring->first; i < ring->end; i++) {
		const struct found *last = retained > ring->first ? &packets[retained - 1] : NULL;
		if (last && last->stream_class == packets[i].stream_class && last->instance == packets[i].instance &&
		    last->sequence == packets[i].sequence)
			continue;
		packets[retained++] = packets[i];
	}
	ring->end = retained;
	weft_sort(packets + ring->first, retained - ring->first, sizeof *packets, compare_addresses);
}

static bool copy_ring(const struct search *s, const struct ring *ring, struct weft_source *source)
{
	source->name = strdup(s->image->name);
	source->blobs = malloc((ring->end - ring->first) * sizeof *source->blobs);
	source->is_frozen = true;
	return source->name && source->blobs && copy_class(s, ring, WEFT_CLASS_METADATA, source) &&
	       copy_events(s, ring, source) && copy_class(s, ring, WEFT_CLASS_DEFINITIONS, source);
}

__attribute__((format(printf, 2, 3))) static bool add_note(struct weft_source *source, const char *what, ...)
{
	char(*notes)[WEFT_SOURCE_NOTE] = realloc(source->notes, (source->note_count + 1) * sizeof *notes);
	if (!notes)
		return false;
	va_list args;
	va_start(args, what);
	vsnprintf(notes[source->note_count++], sizeof *notes, what, args);
	va_end(args);
	source->notes = notes;
	return true;
}

/* Adds a note to the source that lists the rings of the image that were not read. */
static bool note_others(const struct search *s, size_t chosen, bool was_wanted, struct weft_source *source)
{
	size_t noted = 0;
	for (size_t i = 0; i < s->rings.count; i++) {
		const struct ring *ring = &s->rings.items[i];
		char uuid[37];
		if (i == chosen || noted++ >= MAX_OTHERS_NOTED)
			continue;
		format_uuid(uuid, get_uuid(s, ring));
		size_t packets = ring->end - ring->first;
		if (!add_note(source,
			"the image also contains %s ring buffer of %zu packet%s; to extract it: weft save --ring=%s",
			was_wanted || !ring->is_defined ? "another" : "an older", packets, packets == 1 ? "" : "s", uuid))
			return false;
	}
	if (noted > MAX_OTHERS_NOTED &&
	    !add_note(source, "the image also contains remains of %zu more ring buffers", noted - MAX_OTHERS_NOTED))
		return false;
	return !s->is_full || add_note(source, "the image has more than %d packets; the rest was not read", MAX_FOUND_PACKETS);
}

static int search_rings(struct search *s, const char *uuid, struct weft_source *out, struct weft_error *err)
{
	struct weft_source source = {0};
	size_t chosen = 0;
	bool whole = search_all(s);
	if (whole)
		weft_sort(s->packets.items, s->packets.count, sizeof *s->packets.items, compare_found);
	whole = whole && find_rings(s);
	if (whole) {
		int status = choose_ring(s, uuid, &chosen, err);
		if (status < 0)
			return status;
		assert(s->rings.items && s->rings.items[chosen].end > s->rings.items[chosen].first);
		drop_duplicates(s, &s->rings.items[chosen]);
		whole = copy_ring(s, &s->rings.items[chosen], &source) && note_others(s, chosen, uuid != NULL, &source);
	}
	if (!whole) {
		weft_source_close(&source);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	if (!source.blob_count) {
		weft_source_close(&source);
		return fail_search(s, err, WEFT_EFORMAT, "the image contains no readable packet");
	}
	*out = source;
	return WEFT_OK;
}

bool weft__image_has_several(const struct weft_image *image)
{
	struct weft_image whole = *image;
	const struct weft_extent all = {.bytes = image->bytes};
	whole.extents = &all;
	whole.extent_count = 1;
	struct search s = {.image = &whole};
	size_t defined = 0;
	if (search_all(&s) && s.packets.count) {
		weft_sort(s.packets.items, s.packets.count, sizeof *s.packets.items, compare_found);
		bool has_rings = find_rings(&s);
		for (size_t i = 0; has_rings && i < s.rings.count; i++)
			defined += s.rings.items[i].is_defined;
	}
	weft_vec_free(&s.packets);
	weft_vec_free(&s.rings);
	free(s.buffer);
	return defined > 1;
}

bool weft__image_stands_by(const struct weft_image *image)
{
	enum { MAX_PAGE_BYTES = 1 << 18 }; /* largest page size: the struct and padding to a page */
	struct weft_standby page;
	for (size_t i = 0; i < image->extent_count; i++) {
		const struct weft_extent *extent = &image->extents[i];
		const size_t head = offsetof(struct weft_standby, gate);
		if (extent->bytes >= sizeof page && extent->bytes <= MAX_PAGE_BYTES &&
		    weft__image_read(image, extent->address, &page, head) == head &&
		    memcmp(page.mark, WEFT_STANDBY_MARK, sizeof page.mark) == 0 && page.self == extent->address &&
		    weft__image_read(image, extent->address, &page, sizeof page) == sizeof page)
			return !page.answer.is_on;
	}
	return false;
}

int weft__image_search(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err)
{
	struct weft_image whole = *image;
	const struct weft_extent all = {.bytes = image->bytes};
	struct weft_core core = {0};
	if (!image->extents) {
		int is_core = weft__elf_read(&core, image, err);
		if (is_core < 0)
			return is_core;
		whole.extents = is_core ? core.extents : &all;
		whole.extent_count = is_core ? core.count : 1;
	}
	struct search s = {.image = &whole};
	const bool stands_by = !uuid && weft__image_stands_by(&whole);
	int status = stands_by ? fail_search(&s, err, WEFT_EFORMAT, "the process stands by, and did not record")
			       : search_rings(&s, uuid, out, err);
	if (stands_by)
		core.directory[0] = 0;
	if (status == WEFT_EFORMAT && !uuid && core.directory[0])
		status = fail_search(&s, err, WEFT_ENOENT,
		    "the core dump contains no ring buffer; its process recorded into %.100s: open that directory",
		    core.directory);
	else if (status == WEFT_EFORMAT && !uuid && core.missing_bytes)
		fail_search(&s, err, WEFT_EFORMAT,
		    "the core dump contains no ring buffer, but does not include all memory: see coredump_filter in core(5)");
	weft_vec_free(&s.packets);
	weft_vec_free(&s.rings);
	free(s.buffer);
	free(core.extents);
	return status;
}
