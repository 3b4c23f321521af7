/* image.c: the packets of a ring, wherever they lie.
 *
 * First every packet header is noted, whosever it is; then one ring is chosen; then its packets are copied, those with events
 * first, so that the definitions, copied last, define what these refer to, also where the program records meanwhile.
 * SPDX-License-Identifier: ISC */
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
#include "trace/stretch.h"
#include "wire/wire.h"

enum {
	CHUNK = 1 << 20,     /* read at once, searching */
	MARKED = 32,         /* bytes of a header from magic to mark */
	FOUND_MAX = 1 << 20, /* packets: 4 GiB of them where each has a page */
	OTHERS_TOLD = 4,     /* rings */
	BLOCK = 64,
	PAGE = 4096
};

/* A header that was found. */
struct found {
	uint8_t uuid[16];
	uint64_t address, sequence, content_bytes;
	uint64_t wall_ns; /* when it began; 0 if unknown */
	uint64_t begin_ns;
	uint32_t stream_class, instance;
	bool is_odd; /* it is being reused, or is a copy that was never whole */
};

/* A stretch of packets[] with one uuid. */
struct ring {
	size_t first, end;
	uint64_t wall_ns, begin_ns; /* of the newest packet */
	bool is_defined;            /* it has definitions, or metadata: it is not a damaged packet of another one */
	bool has_content;           /* else it is but a header: such stand on the stack of a program that records */
};

struct search {
	const struct weft_image *image;
	WEFT_VEC(struct found) packets;
	WEFT_VEC(struct ring) rings;
	unsigned char *buffer;
	size_t chunk; /* its bytes: CHUNK, or as many as there are */
	bool is_full;
};

/* ---- Reading by address ---- */

/* The extent that has the address, or the first one behind it; the count if there is none. */
static size_t find_extent(const struct weft_image *image, uint64_t address)
{
	const struct weft_extent *extents = image->extents;
	return WEFT_FIRST(
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

/* ---- Finding ---- */

static bool is_magic(const unsigned char *p)
{
	return weft_load_u32(p) == WEFT_PACKET_MAGIC && weft_load_u32(p + WEFT_PACKET_AT(mark)) == WEFT_PACKET_MARK;
}

/* Whether a packet may begin at one of BLOCK places.  Branch-free, so compilers vectorise it; memchr() for a single byte would
 * stop at every 256th of a dense image. */
static inline bool may_have_magic(const unsigned char *p)
{
	unsigned char any = 0;
	for (int i = 0; i < BLOCK; i++)
		any |= (unsigned char)((p[i] == (WEFT_PACKET_MAGIC & 0xff)) & (p[i + 1] == (WEFT_PACKET_MAGIC >> 8 & 0xff)));
	return any;
}

/* What is to be known of a packet that is not copied yet. */
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
	/* The recorder makes a header on its stack, and the uuid last. */
	static const uint8_t no_uuid[sizeof packet.uuid];
	if (memcmp(packet.uuid, no_uuid, sizeof no_uuid) == 0)
		return true;
	s->is_full = s->packets.count == FOUND_MAX;
	struct found *slot = s->is_full ? NULL : weft_vec_push(&s->packets);
	if (slot)
		fill_found(slot, &packet, address);
	return slot || s->is_full;
}

/* Looks at the places of the buffer at which there is room for magic and mark. */
static bool look_at(struct search *s, size_t filled, uint64_t address)
{
	size_t places = filled < MARKED ? 0 : filled - MARKED + 1;
	for (size_t block = 0; block < places && !s->is_full; block += BLOCK) {
		/* The last bytes of the buffer have none behind them. */
		if (filled - block > BLOCK && !may_have_magic(s->buffer + block))
			continue;
		size_t end = places - block < BLOCK ? places : block + BLOCK;
		for (size_t i = block; i < end && !s->is_full; i++)
			if (is_magic(s->buffer + i) && !note_packet(s, address + i))
				return false;
	}
	return true;
}

/* Looks through the extents first to end - 1, each of which begins where the one before it ends. */
static bool search_stretch(struct search *s, size_t first, size_t end)
{
	size_t kept = 0; /* bytes at the buffer's begin that stand before `at` */
	for (size_t i = first; i < end; i++) {
		const struct weft_extent *extent = &s->image->extents[i];
		for (uint64_t at = 0; at < extent->bytes && !s->is_full;) {
			uint64_t data_end = UINT64_MAX;
			if (s->image->next_data) {
				uint64_t next = s->image->next_data(s->image, extent->offset + at, &data_end) - extent->offset;
				kept = next > at ? 0 : kept;
				at = next;
				if (at >= extent->bytes)
					break;
				data_end -= extent->offset;
			}
			uint64_t left = (data_end < extent->bytes ? data_end : extent->bytes) - at;
			size_t wanted = left < s->chunk - kept ? (size_t)left : s->chunk - kept;
			size_t got = s->image->read(s->image, extent->offset + at, s->buffer + kept, wanted);
			if (!look_at(s, kept + got, extent->address + at - kept))
				return false;
			if (got < wanted) {
				/* This page cannot be read, perhaps the next one can. */
				at = (at + got + PAGE) / PAGE * PAGE;
				kept = 0;
				continue;
			}
			size_t keep = kept + got < MARKED - 1 ? kept + got : MARKED - 1;
			memmove(s->buffer, s->buffer + kept + got - keep, keep);
			kept = keep;
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
		if (!search_stretch(s, first, end))
			return false;
	}
	return true;
}

/* ---- Choosing ---- */

/* Rings apart; in each, of packets with the same number the best one first: whole, and with most in it. */
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

static const uint8_t *uuid_of(const struct search *s, const struct ring *ring)
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
	return x != y ? x > y : memcmp(uuid_of(s, a), uuid_of(s, b), 16) > 0;
}

__attribute__((format(printf, 4, 5))) static int fail(
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

/* The ring that is meant: its index, or an error. */
static int choose(const struct search *s, const char *wanted, size_t *out, struct weft_error *err)
{
	size_t best = SIZE_MAX, matches = 0;
	for (size_t i = 0; i < s->rings.count; i++) {
		char uuid[37];
		const struct ring *ring = &s->rings.items[i];
		format_uuid(uuid, uuid_of(s, ring));
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
		return fail(s, err, WEFT_EFORMAT, "%s",
		    wanted && s->rings.count ? "no ring in it has that UUID" : weft__trace_unknown_text(first, got));
	}
	if (wanted && matches > 1)
		return fail(s, err, WEFT_EINVAL, "that UUID prefix matches several rings");
	*out = best;
	return WEFT_OK;
}

/* ---- Copying ---- */

static size_t read_found(const void *ctx, uint64_t address, void *to, size_t bytes)
{
	return weft__image_read(ctx, address, to, bytes);
}

/* Where the packet at index i of packets[] ends, whatever its size says: at the next one. */
static uint64_t room_of(const struct search *s, const struct ring *ring, size_t i)
{
	return i + 1 < ring->end ? s->packets.items[i + 1].address - s->packets.items[i].address : UINT64_MAX;
}

/* Makes a copy of a packet, which becomes the source's also on failure, one of its blobs. */
static bool add_blob(const struct search *s, struct weft_source *source, uint64_t address, struct weft_packet_copy *copy)
{
	/* Room for more is of no interest where all of the content was copied. */
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

/* Copies the packets of a ring that are of a class without events, by address. */
static bool copy_class(
    const struct search *s, const struct ring *ring, enum weft_stream_class stream_class, struct weft_source *source)
{
	const struct weft_packet_memory memory = {read_found, s->image};
	for (size_t i = ring->first; i < ring->end; i++) {
		const struct found *packet = &s->packets.items[i];
		struct weft_packet_copy copy;
		if (packet->stream_class != stream_class)
			continue;
		int got = weft__packet_copy(&copy, &memory, packet->address, room_of(s, ring, i));
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

/* Copies the packets that hold events: of each stream one stretch, where a program writes them meanwhile. */
static bool copy_events(const struct search *s, const struct ring *ring, struct weft_source *source)
{
	enum { ROUNDS = 8 };
	const uint8_t *uuid = uuid_of(s, ring);
	struct weft_slot *slots = calloc(ring->end - ring->first, sizeof *slots);
	size_t count = 0;
	uint64_t step = 0;
	bool whole = slots != NULL, is_good = false;
	for (size_t i = ring->first; i < ring->end && whole; i++)
		if (s->packets.items[i].stream_class == WEFT_CLASS_EVENTS)
			slots[count++] = (struct weft_slot){
			    .memory = {read_found, s->image},
			    .at = s->packets.items[i].address,
			    .room = room_of(s, ring, i),
			};
	for (int round = 0; round < ROUNDS && whole && !is_good; round++) {
		whole = weft__stretch_look(slots, count, &step) == WEFT_OK;
		is_good = round && weft__stretch_is_good(slots, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct weft_packet *packet = &slots[i].packet;
		if (whole && slots[i].is_kept && packet->stream_class == WEFT_CLASS_EVENTS &&
		    memcmp(packet->uuid, uuid, sizeof packet->uuid) == 0)
			whole = add_blob(s, source, slots[i].at, &slots[i].copy);
		free(slots[i].copy.bytes);
	}
	free(slots);
	return whole;
}

/* Leaves one packet of each number, and sorts by address. */
static void drop_doubles(struct search *s, struct ring *ring)
{
	struct found *packets = s->packets.items;
	size_t kept = ring->first;
	for (size_t i = ring->first; i < ring->end; i++) {
		const struct found *last = kept > ring->first ? &packets[kept - 1] : NULL;
		if (last && last->stream_class == packets[i].stream_class && last->instance == packets[i].instance &&
		    last->sequence == packets[i].sequence)
			continue;
		packets[kept++] = packets[i];
	}
	ring->end = kept;
	weft_sort(packets + ring->first, kept - ring->first, sizeof *packets, compare_addresses);
}

static bool copy_ring(const struct search *s, const struct ring *ring, struct weft_source *source)
{
	source->name = strdup(s->image->name);
	source->blobs = malloc((ring->end - ring->first) * sizeof *source->blobs);
	source->is_still = true;
	return source->name && source->blobs && copy_class(s, ring, WEFT_CLASS_METADATA, source) &&
	       copy_events(s, ring, source) && copy_class(s, ring, WEFT_CLASS_DEFINITIONS, source);
}

__attribute__((format(printf, 2, 3))) static bool note(struct weft_source *source, const char *what, ...)
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

/* What was not taken. */
static bool note_others(const struct search *s, size_t chosen, bool was_wanted, struct weft_source *source)
{
	size_t told = 0;
	for (size_t i = 0; i < s->rings.count; i++) {
		const struct ring *ring = &s->rings.items[i];
		char uuid[37];
		if (i == chosen || told++ >= OTHERS_TOLD)
			continue;
		format_uuid(uuid, uuid_of(s, ring));
		size_t packets = ring->end - ring->first;
		if (!note(source, "it also has another%s ring, of %zu packet%s: weft save --ring=%s",
			was_wanted || !ring->is_defined ? "" : ", older", packets, packets == 1 ? "" : "s", uuid))
			return false;
	}
	if (told > OTHERS_TOLD && !note(source, "it also has the remains of %zu more rings", told - OTHERS_TOLD))
		return false;
	return !s->is_full || note(source, "it has more than %d packets; the rest was not read", FOUND_MAX);
}

static int search(struct search *s, const char *uuid, struct weft_source *out, struct weft_error *err)
{
	struct weft_source source = {0};
	size_t chosen = 0;
	bool whole = search_all(s);
	if (whole)
		weft_sort(s->packets.items, s->packets.count, sizeof *s->packets.items, compare_found);
	whole = whole && find_rings(s);
	if (whole) {
		int status = choose(s, uuid, &chosen, err);
		if (status < 0)
			return status;
		assert(s->rings.items && s->rings.items[chosen].end > s->rings.items[chosen].first);
		drop_doubles(s, &s->rings.items[chosen]);
		whole = copy_ring(s, &s->rings.items[chosen], &source) && note_others(s, chosen, uuid != NULL, &source);
	}
	if (!whole) {
		weft_source_close(&source);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	if (!source.blob_count) {
		weft_source_close(&source);
		return fail(s, err, WEFT_EFORMAT, "no packet in it can be read");
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
	int status = search(&s, uuid, out, err);
	if (status == WEFT_EFORMAT && !uuid && core.directory[0])
		fail(&s, err, WEFT_EFORMAT, "this core dump has no ring, but its process recorded into %.100s: open that",
		    core.directory);
	else if (status == WEFT_EFORMAT && !uuid && core.lacks)
		fail(&s, err, WEFT_EFORMAT,
		    "this core dump has no ring; it lacks a part of the memory: see coredump_filter in core(5)");
	weft_vec_free(&s.packets);
	weft_vec_free(&s.rings);
	free(s.buffer);
	free(core.extents);
	return status;
}
