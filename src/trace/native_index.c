/* native_index.c: finds a native trace's packets, and reads its metadata and definitions.
 *
 * A ring whose program still runs changes while it is read.  Its packets are copied, each between two looks at its lock, as the
 * writer's INVALIDATE, REFILL and VALIDATE ask for (src/record/core.c); what was being reused just then is left out.
 * SPDX-License-Identifier: ISC */
#include <sched.h>
#include <string.h>

#include "base/cursor.h"
#include "trace/native.h"

static int out_of_memory(struct weft_error *err)
{
	return weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static void *own(struct native *n, size_t bytes)
{
	void **slot = weft_vec_push(&n->owned);
	if (!slot)
		return NULL;
	*slot = malloc(bytes ? bytes : 1);
	return *slot;
}

/* ---- Metadata ---- */

/* Where the value of `name` = stands behind `from`, or NULL. */
static const char *find_value(const char *text, const char *from, const char *name)
{
	size_t length = strlen(name);
	const char *at = from ? strstr(text, from) : NULL;
	for (; at && (at = strstr(at, name)); at += length) {
		const char *after = at + length + strspn(at + length, " \t\n");
		bool begins = at > text && strchr(" \t\n;{", at[-1]);
		if (begins && *after == '=')
			return after + 1 + strspn(after + 1, " \t\n");
	}
	return NULL;
}

static bool find_number(const char *text, const char *from, const char *name, int64_t *out)
{
	const char *at = find_value(text, from, name);
	char *end;
	if (!at)
		return false;
	long long v = strtoll(at, &end, 10);
	*out = v;
	return end != at;
}

/* A quoted string, its escapes undone in place of the text's own copy. */
static struct weft_str find_string(struct native *n, const char *text, const char *name)
{
	struct weft_str none = {"", 0};
	const char *at = find_value(text, "env {", name);
	if (!at || *at != '"')
		return none;
	char *out = own(n, strlen(at));
	if (!out)
		return none;
	size_t length = 0;
	for (at++; *at && *at != '"'; at++) {
		unsigned c = (unsigned char)*at;
		if (c == '\\' && at[1]) {
			c = (unsigned char)*++at;
			if (c >= '0' && c <= '7') {
				c -= '0';
				for (int i = 0; i < 2 && at[1] >= '0' && at[1] <= '7'; i++)
					c = c << 3 | (unsigned)(*++at - '0');
			}
		}
		out[length++] = (char)c;
	}
	return (struct weft_str){out, (uint32_t)length};
}

static bool is_word(struct weft_str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.ptr, word, s.len) == 0;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_uuid(const char *at, uint8_t uuid[16])
{
	if (!at || *at++ != '"')
		return false;
	for (int i = 0; i < 16; i++) {
		at += *at == '-';
		int high = hex(at[0]), low = high < 0 ? -1 : hex(at[1]);
		if (low < 0)
			return false;
		uuid[i] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	return true;
}

static int read_metadata(struct weft_trace *trace, const unsigned char *bytes, size_t size, struct weft_error *err)
{
	struct native *n = trace->state;
	size_t bounded = size < 1 << 20 ? size : 1 << 20;
	char *text = own(n, bounded + 1);
	if (!text)
		return out_of_memory(err);
	memcpy(text, bytes, bounded);
	text[bounded] = 0;
	int64_t number;
	trace->info.host = find_string(n, text, "hostname");
	trace->info.process = find_string(n, text, "procname");
	trace->info.command = find_string(n, text, "command");
	if (find_number(text, "env {", "vpid", &number))
		trace->info.pid = (uint64_t)number;
	n->is_ring = is_word(find_string(n, text, "mode"), "ring");
	struct weft_str state = find_string(n, text, "state");
	n->is_finished = is_word(state, "finished");
	trace->info.unfinished = is_word(state, "recording");
	n->is_live = n->is_ring && !n->is_finished && !trace->source.is_still;
	n->is_hurried = is_word(find_string(n, text, "clock_measured"), "hurried");
	n->has_uuid = parse_uuid(find_value(text, "trace {", "uuid"), n->uuid);
	int64_t offset_s, offset;
	if (find_number(text, "clock {", "freq", &number) && number > 0 && find_number(text, "clock {", "offset_s", &offset_s) &&
	    find_number(text, "clock {", "offset", &offset) && offset >= 0 && offset_s > -9000000000 && offset_s < 9000000000) {
		n->clock.hz = (uint64_t)number;
		double rest = 1e9 * (double)offset / (double)number;
		n->clock.origin_ns = offset_s * 1000000000 + (rest < 1e18 ? weft__ticks_ns((uint64_t)offset, n->clock.hz) : 0);
		n->clock.has_origin = n->clock.origin_ns != 0;
	}
	return WEFT_OK;
}

/* ---- Packets ---- */

static uint64_t header_u64(const unsigned char *header, size_t at)
{
	return weft_load_u64(header + at);
}

#define AT(field) offsetof(struct weft_packet_header, field)

enum { LITTLE = 1, BIG = 2 };

/* Whether a packet of ours begins there, in which byte order. */
static int looks_like_packet(const unsigned char *p, size_t left)
{
	if (left < sizeof(struct weft_packet_header))
		return 0;
	if (weft_load_u32(p) == WEFT_PACKET_MAGIC && weft_load_u32(p + AT(mark)) == WEFT_PACKET_MARK)
		return LITTLE;
	if (weft_load_u32(p) == __builtin_bswap32(WEFT_PACKET_MAGIC) &&
	    weft_load_u32(p + AT(mark)) == __builtin_bswap32(WEFT_PACKET_MARK))
		return BIG;
	return 0;
}

/* The next packet at or behind `from`; what is passed over is zeros if *zeros. */
static size_t find_packet(const unsigned char *bytes, size_t size, size_t from, bool *zeros)
{
	*zeros = true;
	size_t at = from;
	/* Large rings are mostly holes. */
	while (at < size) {
		if (size - at >= 64 && at % 8 == 0) {
			uint64_t any = 0;
			for (int i = 0; i < 8; i++)
				any |= weft_load_u64(bytes + at + 8 * i);
			if (!any) {
				at += 64;
				continue;
			}
		}
		if (bytes[at] == 0xC1 && looks_like_packet(bytes + at, size - at))
			return at;
		*zeros = *zeros && bytes[at] == 0;
		at++;
	}
	return size;
}

static uint32_t atomic_u32(const unsigned char *p)
{
	return __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

/* The packet at `offset` of a blob, as it is now: in its file, or in the memory where a program writes it. */
struct live_packet {
	const struct weft_source *source;
	const struct weft_blob *blob;
	uint64_t offset;
};

/* The packet's lock, and how many bytes of content it has.  The kernel copies aligned words whole. */
static bool look_live(const struct live_packet *live, uint32_t *lock, uint64_t *content)
{
	if (live->source->reread) {
		_Alignas(64) unsigned char header[sizeof(struct weft_packet_header)];
		if (!live->source->reread(live->source, live->blob, live->offset, header, sizeof header))
			return false;
		*lock = weft_load_u32(header + AT(lock));
		*content = weft_load_u64(header + AT(content_size)) / 8;
	} else {
		const unsigned char *p = live->blob->bytes + live->offset;
		*lock = atomic_u32(p + AT(lock));
		*content = __atomic_load_n((const uint64_t *)(const void *)(p + AT(content_size)), __ATOMIC_ACQUIRE) / 8;
	}
	WEFT__FENCE(__ATOMIC_ACQUIRE);
	return true;
}

static bool copy_content(const struct live_packet *live, unsigned char *to, size_t bytes)
{
	if (live->source->reread)
		return live->source->reread(live->source, live->blob, live->offset, to, bytes);
	memcpy(to, live->blob->bytes + live->offset, bytes);
	return true;
}

/* A copy of a packet that the program may be writing, or NULL: it was being reused, again and again (or there is no memory,
 * *failed). */
static const unsigned char *copy_live(struct native *n, const struct live_packet *live, size_t room, bool *failed)
{
	*failed = false;
	const unsigned char *p = live->blob->bytes + live->offset;
	if (!live->source->reread && (uintptr_t)p % 8)
		return p;
	for (int tries = 0; tries < 100; tries++) {
		uint32_t lock, after;
		uint64_t content, ignored;
		if (!look_live(live, &lock, &content))
			return NULL;
		if (lock & 1 || content < sizeof(struct weft_packet_header) || content > room) {
			sched_yield();
			continue;
		}
		unsigned char *copy = own(n, (size_t)content);
		if (!copy) {
			*failed = true;
			return NULL;
		}
		/* Pairs with the fence after INVALIDATE: had any byte been of the next use, lock would differ after it. */
		bool whole = copy_content(live, copy, (size_t)content);
		WEFT__FENCE(__ATOMIC_ACQUIRE);
		if (whole && look_live(live, &after, &ignored) && after == lock) {
			uint64_t bits = content * 8;
			memcpy(copy + AT(content_size), &bits, sizeof bits);
			return copy;
		}
		free(n->owned.items[--n->owned.count]);
		if (!whole)
			return NULL;
	}
	return NULL;
}

/* Where a power-off left a page that was never written back, or `end`: no events have so many zeros in a row. */
static size_t find_lost_page(const unsigned char *packet, size_t offset, size_t end)
{
	enum { PAGE = 4096, ZEROS = 64 };
	for (size_t at = PAGE - offset % PAGE; at < end && end - at >= ZEROS; at += PAGE) {
		size_t i = 0, stop = end - at < PAGE ? end - at : PAGE;
		while (i < stop && packet[at + i] == 0)
			i++;
		if (i == stop)
			return at;
	}
	return end;
}

/* Takes note of the packet at `offset`; *next is where the one after it begins. */
static int read_packet(
    struct weft_trace *trace, uint32_t blob_index, size_t offset, uint64_t index, size_t *next, struct weft_error *err)
{
	struct native *n = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[blob_index];
	const unsigned char *p = blob->bytes + offset;
	size_t left = blob->size - offset;
	*next = offset + sizeof(struct weft_packet_header);
	uint64_t packet_bits = header_u64(p, AT(packet_size)), packet_bytes = packet_bits / 8;
	unsigned version = weft_load_u16(p + AT(version)), header_bytes = weft_load_u16(p + AT(header_bytes));
	if (version != WEFT_WIRE_VERSION) {
		/* If it is but a damaged field, the next packet stands where this one says that it ends. */
		bool has_next = packet_bytes >= sizeof(struct weft_packet_header) && packet_bytes < left &&
				looks_like_packet(p + packet_bytes, left - (size_t)packet_bytes);
		*next = has_next ? offset + (size_t)packet_bytes : blob->size;
		weft__trace_skip(
		    trace, blob, index, offset, *next - offset, "a packet of version %u, of which nothing is known", version);
		return WEFT_OK;
	}
	if (packet_bits % 8 || header_bytes < sizeof(struct weft_packet_header) || packet_bytes < header_bytes ||
	    packet_bytes > UINT32_MAX) {
		weft__trace_skip(
		    trace, blob, index, offset, sizeof(struct weft_packet_header), "a packet header with impossible sizes");
		return WEFT_OK;
	}
	*next = packet_bytes < left ? offset + (size_t)packet_bytes : blob->size;
	if (n->has_uuid && memcmp(p + AT(uuid), n->uuid, 16) != 0) {
		weft__trace_skip(trace, blob, index, offset, *next - offset, "a packet of another trace");
		return WEFT_OK;
	}
	if (n->is_live) {
		bool failed;
		const struct live_packet live = {&trace->source, blob, offset};
		p = copy_live(n, &live, left < packet_bytes ? left : (size_t)packet_bytes, &failed);
		if (failed)
			return out_of_memory(err);
		/* What stood in it was being overwritten; the gap that it leaves is counted so. */
		if (!p)
			return WEFT_OK;
	} else if (weft_load_u32(p + AT(lock)) & 1) {
		/* The program died between INVALIDATE and VALIDATE. */
		return WEFT_OK;
	}
	uint64_t content_bits = header_u64(p, AT(content_size)), content_bytes = content_bits / 8;
	if (content_bits % 8 || content_bytes < header_bytes || content_bytes > packet_bytes) {
		weft__trace_skip(trace, blob, index, offset, *next - offset, "a packet whose content size is impossible");
		return WEFT_OK;
	}
	if (content_bytes > left) {
		weft__trace_skip(trace, blob, index, blob->size, content_bytes - left, "the packet is cut off");
		content_bytes = left;
		if (content_bytes < header_bytes)
			return WEFT_OK;
	} else if (packet_bytes > left) {
		/* Its events are there, but whoever cut it off there cut off what came after it too. */
		weft__trace_skip(trace, blob, index, blob->size, 0, "the file is cut off in the unused end of a packet");
	}
	size_t lost_page = n->is_finished ? (size_t)content_bytes : find_lost_page(p, offset, (size_t)content_bytes);
	if (lost_page < content_bytes) {
		weft__trace_skip(
		    trace, blob, index, offset + lost_page, content_bytes - lost_page, "a page that never reached the disk");
		content_bytes = lost_page;
		if (content_bytes < header_bytes)
			return WEFT_OK;
	}
	struct native_packet packet = {
	    .bytes = p,
	    .begin = header_u64(p, AT(timestamp_begin)),
	    .sequence = header_u64(p, AT(sequence)),
	    .events_before = header_u64(p, AT(events_before)),
	    .lost_full = header_u64(p, AT(lost_full)),
	    .lost_nested = header_u64(p, AT(lost_nested)),
	    .content_bytes = (uint32_t)content_bytes,
	    .header_bytes = header_bytes,
	    .instance = weft_load_u32(p + AT(stream_instance_id)),
	    .blob = blob_index,
	    .offset = offset,
	    .index = index,
	};
	uint32_t stream_class = weft_load_u32(p + AT(stream_id));
	if (packet.begin > INT64_MAX) {
		weft__trace_skip(trace, blob, index, offset, *next - offset, "a packet whose time is impossible");
		return WEFT_OK;
	}
	if (!n->has_uuid) {
		memcpy(n->uuid, p + AT(uuid), 16);
		n->has_uuid = true;
	}
	uint64_t hz = header_u64(p, AT(clock_hz));
	if (!n->clock.hz && hz) {
		n->clock.hz = hz;
		uint64_t wall = header_u64(p, AT(pair_wall_ns)), clock = header_u64(p, AT(pair_clock));
		n->clock.has_origin = wall != 0 && wall <= INT64_MAX && clock <= INT64_MAX;
		n->clock.origin_ns = n->clock.has_origin ? (int64_t)wall - weft__ticks_ns(clock, hz) : 0;
	}
	if (stream_class == WEFT_CLASS_METADATA)
		return read_metadata(trace, p + header_bytes, packet.content_bytes - header_bytes, err);
	if (stream_class == WEFT_CLASS_EVENTS || stream_class == WEFT_CLASS_DEFINITIONS) {
		struct native_packet *slot =
		    stream_class == WEFT_CLASS_EVENTS ? weft_vec_push(&n->packets) : weft_vec_push(&n->definitions);
		if (!slot)
			return out_of_memory(err);
		*slot = packet;
	} else {
		weft__trace_skip(trace, blob, index, offset, *next - offset, "a packet of no known class");
	}
	return WEFT_OK;
}

/* Reads again what no packet was found in: the header of one that is used for the first time may have come after the copy. */
static bool look_again(const struct weft_trace *trace, const struct weft_blob *blob, size_t from, size_t end)
{
	const struct native *n = trace->state;
	if (!n->is_live || !trace->source.reread || blob->owner != WEFT_BLOB_HEAP)
		return false;
	return trace->source.reread(&trace->source, blob, from, (unsigned char *)blob->bytes + from, end - from);
}

static int read_blob(struct weft_trace *trace, uint32_t blob_index, struct weft_error *err)
{
	const struct weft_blob *blob = &trace->source.blobs[blob_index];
	size_t at = 0;
	uint64_t index = 0;
	while (at < blob->size) {
		bool zeros;
		size_t found = find_packet(blob->bytes, blob->size, at, &zeros);
		for (int tries = 0; found != at && !zeros && tries < 3 && look_again(trace, blob, at, found); tries++)
			found = find_packet(blob->bytes, blob->size, at, &zeros);
		if (found != at && !zeros)
			weft__trace_skip(trace, blob, WEFT_NO_OFFSET, at, found - at, "bytes that are no packet");
		if (found == blob->size)
			break;
		if (looks_like_packet(blob->bytes + found, blob->size - found) == BIG)
			return weft__trace_fail(err, WEFT_ENOTSUP, &trace->source, blob, index, found,
			    "written on a big-endian machine, which weft does not read");
		int status = read_packet(trace, blob_index, found, index++, &at, err);
		if (status < 0)
			return status;
	}
	return WEFT_OK;
}

/* Where they stand in front of the events, as in a buffer, they were copied first: by now they say what the newest events mean.
 */
static int reread_definitions(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	for (size_t i = 0; i < n->definitions.count && n->is_live && !trace->source.is_dir; i++) {
		struct native_packet *p = &n->definitions.items[i];
		const struct weft_blob *blob = &trace->source.blobs[p->blob];
		uint64_t room = header_u64(p->bytes, AT(packet_size)) / 8, left = blob->size - p->offset;
		bool failed;
		const unsigned char *copy =
		    copy_live(n, &(struct live_packet){&trace->source, blob, p->offset}, room < left ? room : left, &failed);
		if (failed)
			return out_of_memory(err);
		uint64_t content = copy ? header_u64(copy, AT(content_size)) / 8 : 0;
		/* Who writes there may write anything. */
		if (copy && content >= p->content_bytes && memcmp(copy, p->bytes, AT(lock)) == 0) {
			p->bytes = copy;
			p->content_bytes = (uint32_t)content;
		}
	}
	return WEFT_OK;
}

/* ---- Order ---- */

static bool comes_before(const struct native_packet *a, const struct native_packet *b)
{
	return a->instance != b->instance   ? a->instance < b->instance
	       : a->sequence != b->sequence ? a->sequence < b->sequence
					    : a->begin < b->begin;
}

/* Merge sort: stable, and linear where the files' order is nearly theirs. */
static bool sort_packets(struct native_packet *items, size_t count)
{
	struct native_packet *other = malloc((count ? count : 1) * sizeof *other), *from = items, *to = other;
	if (!other)
		return false;
	for (size_t width = 1; width < count; width *= 2) {
		for (size_t i = 0; i < count; i += 2 * width) {
			size_t mid = i + width < count ? i + width : count, end = i + 2 * width < count ? i + 2 * width : count;
			size_t left = i, right = mid;
			for (size_t k = i; k < end; k++)
				to[k] = left < mid && (right >= end || !comes_before(&from[right], &from[left])) ? from[left++]
														 : from[right++];
		}
		struct native_packet *swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, count * sizeof *items);
	free(other);
	return true;
}

/* ---- Definitions ---- */

static bool grow_keys(struct native *n, uint32_t key)
{
	if (key < n->key_count)
		return true;
	uint32_t count = key + 1 < 64 ? 64 : key + 1 + key / 2;
	struct weft_str *texts = realloc(n->texts, count * sizeof *texts);
	if (texts)
		n->texts = texts;
	uint32_t *sites = realloc(n->site_index, count * sizeof *sites);
	if (sites)
		n->site_index = sites;
	if (!texts || !sites)
		return false;
	for (uint32_t i = n->key_count; i < count; i++) {
		n->texts[i] = i ? (struct weft_str){"?", 1} : (struct weft_str){"", 0};
		n->site_index[i] = WEFT_NO_SITE;
	}
	n->key_count = count;
	return true;
}

/* 1, 0 (damaged), or WEFT_ENOMEM. */
static int read_definition(struct native *n, struct weft_cursor *in, uint64_t *last)
{
	uint8_t id;
	uint16_t key;
	uint32_t word;
	uint64_t tid;
	struct weft_str text, function;
	if (!weft_read_u8(in, &id))
		return 0;
	if (id == WEFT_ID_EXTENDED ? !weft_read_u8(in, &id) || !weft_read_u64(in, last) : !weft_read_u32(in, &word))
		return 0;
	switch (id) {
	case WEFT_DEFINE_STRING:
		if (!weft_read_u16(in, &key) || !weft_read_string(in, &text))
			return 0;
		if (!grow_keys(n, key))
			return WEFT_ENOMEM;
		n->texts[key] = text;
		return 1;
	case WEFT_DEFINE_SITE:
		if (!weft_read_u16(in, &key) || !weft_read_u32(in, &word) || !weft_read_string(in, &text) ||
		    !weft_read_string(in, &function))
			return 0;
		struct weft_site *site = weft_vec_push(&n->sites);
		if (!site || !grow_keys(n, key))
			return WEFT_ENOMEM;
		*site = (struct weft_site){.file = text, .function = function, .line = word};
		n->site_index[key] = (uint32_t)(n->sites.count - 1);
		return 1;
	case WEFT_DEFINE_THREAD:
		if (!weft_read_u32(in, &word) || !weft_read_u64(in, &tid) || !weft_read_string(in, &text))
			return 0;
		struct native_change *change = weft_vec_push(&n->changes);
		if (!change)
			return WEFT_ENOMEM;
		*change = (struct native_change){.since = *last, .instance = word, .tid = tid, .name = text};
		return 1;
	default: return 0;
	}
}

static int read_definitions(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	if (!grow_keys(n, 0))
		return out_of_memory(err);
	for (size_t i = 0; i < n->definitions.count; i++) {
		const struct native_packet *p = &n->definitions.items[i];
		struct weft_cursor in = {p->bytes + p->header_bytes, p->bytes + p->content_bytes};
		uint64_t last = p->begin;
		trace->info.lost_no_stream = weft_load_u64(p->bytes + AT(lost_no_stream));
		while (in.at < in.end) {
			const unsigned char *at = in.at;
			int got = read_definition(n, &in, &last);
			if (got < 0)
				return out_of_memory(err);
			if (!got) {
				weft__trace_skip(trace, &trace->source.blobs[p->blob], p->index,
				    p->offset + (uint64_t)(at - p->bytes), (uint64_t)(in.end - at), "a definition that is none");
				break;
			}
		}
		if (p->sequence != i && i == 0)
			weft__trace_skip(
			    trace, &trace->source.blobs[p->blob], p->index, p->offset, 0, "earlier definitions are missing");
	}
	return WEFT_OK;
}

/* ---- Streams ---- */

static bool changes_before(const struct native_change *a, const struct native_change *b)
{
	return a->instance != b->instance ? a->instance < b->instance : a->since < b->since;
}

/* Few, and nearly in order. */
static void sort_changes(struct native_change *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct native_change c = items[i];
		size_t k = i;
		for (; k && changes_before(&c, &items[k - 1]); k--)
			items[k] = items[k - 1];
		items[k] = c;
	}
}

static struct weft_str packet_name(const struct native_packet *p)
{
	const char *name = (const char *)p->bytes + AT(thread_name);
	return (struct weft_str){name, (uint32_t)strnlen(name, WEFT_THREAD_NAME_SIZE)};
}

/* The stream of that name among those from `first` on, made if there is none. */
static int stream_of(struct native *n, size_t first, struct weft_str name, uint64_t tid, uint16_t *out)
{
	size_t i = first;
	while (i < n->streams.count &&
	       (n->streams.items[i].name.len != name.len || memcmp(n->streams.items[i].name.ptr, name.ptr, name.len) != 0))
		i++;
	if (i == n->streams.count) {
		if (i > UINT16_MAX)
			i = UINT16_MAX;
		else if (weft_vec_push(&n->streams) == NULL)
			return WEFT_ENOMEM;
		else
			n->streams.items[i] = (struct weft_stream_info){.name = name};
	}
	n->streams.items[i].tid = tid;
	*out = (uint16_t)i;
	return WEFT_OK;
}

static int make_streams(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	sort_changes(n->changes.items, n->changes.count);
	size_t change = 0;
	for (size_t i = 0; i < n->packets.count;) {
		struct native_cursor *c = weft_vec_push(&n->cursors);
		if (!c)
			return out_of_memory(err);
		uint32_t instance = n->packets.items[i].instance;
		size_t first_stream = n->streams.count;
		*c = (struct native_cursor){.first = i, .packet = i};
		while (change < n->changes.count && n->changes.items[change].instance < instance)
			change++;
		c->change = change;
		for (; i < n->packets.count && n->packets.items[i].instance == instance; i++) {
			struct native_packet *p = &n->packets.items[i];
			/* Made when the ring was, not used yet: nobody's. */
			if (p->content_bytes <= sizeof(struct weft_packet_header) && !weft_load_u64(p->bytes + AT(tid)) &&
			    !packet_name(p).len) {
				p->stream = (uint16_t)first_stream;
				continue;
			}
			if (stream_of(n, first_stream, packet_name(p), weft_load_u64(p->bytes + AT(tid)), &p->stream) < 0)
				return out_of_memory(err);
			struct weft_stream_info *info = &n->streams.items[p->stream];
			info->packets++;
			info->bytes += p->content_bytes;
			if (i == c->first)
				info->lost_overwritten += p->events_before;
		}
		c->end = i;
		const struct native_packet *last = &n->packets.items[i - 1];
		if (last->stream < n->streams.count) {
			n->streams.items[last->stream].lost_full = last->lost_full;
			n->streams.items[last->stream].lost_nested = last->lost_nested;
		}
		if (n->packets.items[c->first].sequence)
			trace->info.wrapped = true;
		while (change < n->changes.count && n->changes.items[change].instance == instance) {
			struct native_change *at = &n->changes.items[change++];
			if (stream_of(n, first_stream, at->name, at->tid, &at->stream) < 0)
				return out_of_memory(err);
		}
		c->changes_end = change;
	}
	return WEFT_OK;
}

/* The frequency that was measured in a hurry, by the first and the last pair of clocks. */
static void correct_clock(struct native *n)
{
	const struct native_packet *first = NULL, *last = NULL;
	for (size_t i = 0; i < n->packets.count; i++) {
		const struct native_packet *p = &n->packets.items[i];
		if (!weft_load_u64(p->bytes + AT(pair_wall_ns)))
			continue;
		if (!first || p->begin < first->begin)
			first = p;
		if (!last || p->begin > last->begin)
			last = p;
	}
	if (!n->is_hurried || !first)
		return;
	uint64_t c0 = weft_load_u64(first->bytes + AT(pair_clock)), c1 = weft_load_u64(last->bytes + AT(pair_clock));
	uint64_t w0 = weft_load_u64(first->bytes + AT(pair_wall_ns)), w1 = weft_load_u64(last->bytes + AT(pair_wall_ns));
	if (w1 < w0 + 500000000 || c1 <= c0 || w0 > INT64_MAX)
		return;
	double hz = (double)(c1 - c0) * 1e9 / (double)(w1 - w0), off = hz / (double)n->clock.hz - 1;
	if (off > -1e-3 && off < 1e-3) {
		n->clock.hz = (uint64_t)(hz + 0.5);
		n->clock.origin_ns = (int64_t)w0 - weft__ticks_ns(c0, n->clock.hz);
	}
}

int weft__native_index(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	trace->info.host = trace->info.process = trace->info.command = (struct weft_str){"", 0};
	int status = WEFT_OK;
	const struct weft_blob *metadata = trace->source.is_dir ? weft_source_find(&trace->source, "metadata") : NULL;
	if (metadata)
		status = read_metadata(trace, metadata->bytes, metadata->size, err);
	else if (trace->source.is_dir)
		weft__trace_skip(trace, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, 0, "the metadata is missing");
	/* Events first: what they refer to was defined before them. */
	for (int definitions = 0; definitions < 2; definitions++)
		for (size_t i = 0; i < trace->source.blob_count && status == WEFT_OK; i++) {
			const struct weft_blob *blob = &trace->source.blobs[i];
			bool defines = strncmp(blob->name, "definitions", 11) == 0;
			if (blob != metadata && defines == definitions && (!trace->source.is_dir || blob->name[0] != '.'))
				status = read_blob(trace, (uint32_t)i, err);
		}
	if (status < 0)
		return status;
	if (!n->packets.count && !n->definitions.count)
		return weft__trace_fail(
		    err, WEFT_EFORMAT, &trace->source, NULL, WEFT_NO_OFFSET, WEFT_NO_OFFSET, "no packet in it can be read");
	if (!n->clock.hz)
		n->clock.hz = 1000000000;
	if (!sort_packets(n->packets.items, n->packets.count) || !sort_packets(n->definitions.items, n->definitions.count))
		return out_of_memory(err);
	correct_clock(n);
	status = reread_definitions(trace, err);
	if (status == WEFT_OK)
		status = read_definitions(trace, err);
	return status < 0 ? status : make_streams(trace, err);
}
