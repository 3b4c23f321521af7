/* native.c: writes events as a native trace, with one packet in each file.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "export/budget.h"
#include "trace/kernel.h"
#include "wire/wire.h"

enum {
	PACKET_BYTES = 1024 * 1024, /* maximum size of a packet in bytes, unless a packet has a single larger event */
	KEYED_TEXTS = 4096,         /* maximum number of texts that are written once and then referred to by a key */
	KEYED_BYTES = 64,           /* maximum length in bytes of a text that is referred to by a key */
	KEYED_SITES = UINT16_MAX - KEYED_TEXTS,
	KEYED_CALLERS = 1024, /* maximum number of callers in a stack; recorders write 16 */
	KEY_BYTES = 6,        /* maximum size in bytes of a caller in a stack's text: a space and a key */
};

struct stream {
	WEFT_VEC(unsigned char) packet; /* bytes of the open packet; empty if no packet is open */
	enum weft_stream_class class;
	uint64_t last; /* time of the stream's last event */
	uint64_t sequence, events, events_before;
};

struct writer {
	weft_export_file_fn *file;
	void *file_ctx;
	const struct weft_trace_info *info;
	struct weft_losses losses;
	struct stream definitions;
	WEFT_VEC(struct stream) streams;
	struct weft_intern texts; /* texts that have keys; the key of a text is its number + 1 */
	uint32_t sites;           /* number of defined call sites; the keys of sites start at KEYED_TEXTS + 1 */
	uint32_t modules;         /* number of defined modules; the keys of modules start at 1 */
	/* trace time that becomes 0: the first event's time if that is negative, else 0; packets cannot store negative times */
	int64_t origin_ns;
	char stack[KEYED_CALLERS * KEY_BYTES + 1]; /* buffer for the text of one stack */
	uint8_t uuid[16];
	uint64_t budget; /* for long texts */
};

static int begin_packet(struct writer *w, struct stream *s, unsigned instance, uint64_t time)
{
	struct weft_packet_header header = {0};
	weft__packet_init(&header, w->uuid, s->class, instance, 0);
	header.timestamp_begin = header.pair_clock = s->last = time;
	header.sequence = s->sequence;
	header.clock_hz = 1000000000;
	if (s->class == WEFT_CLASS_EVENTS && instance < w->info->stream_count) {
		const struct weft_stream_info *info = &w->info->streams[instance];
		size_t length = info->name.len < sizeof header.thread_name ? info->name.len : sizeof header.thread_name - 1;
		if (length > 0)
			memcpy(header.thread_name, info->name.ptr, length);
		header.tid = info->tid;
		header.events_before = info->lost_overwritten + s->events;
		header.lost_full = info->lost_full;
		header.lost_nested = info->lost_nested;
	}
	s->packet.count = 0;
	if (!weft_vec_reserve(&s->packet, sizeof header))
		return WEFT_ENOMEM;
	memcpy(s->packet.items, &header, sizeof header);
	s->packet.count = sizeof header;
	return WEFT_OK;
}

static int end_packet(struct writer *w, struct stream *s, unsigned instance)
{
	char name[64];
	struct weft_packet_header header;
	memcpy(&header, s->packet.items, sizeof header);
	header.content_size = header.packet_size = (uint64_t)s->packet.count * 8;
	memcpy(s->packet.items, &header, sizeof header);
	if (s->class == WEFT_CLASS_DEFINITIONS)
		snprintf(name, sizeof name, "definitions-%" PRIu64, s->sequence);
	else
		snprintf(name, sizeof name, "stream-%u-%" PRIu64, instance, s->sequence);
	s->sequence++;
	return w->file(w->file_ctx, name, s->packet.items, s->packet.count) == 0 ? WEFT_OK : WEFT_EIO;
}

/* Reserves `bytes` bytes in the stream's open packet, or in a new packet. */
static int reserve_bytes(struct writer *w, struct stream *s, unsigned instance, size_t bytes, uint64_t time)
{
	int status = WEFT_OK;
	if (s->packet.count > sizeof(struct weft_packet_header) && s->packet.count + bytes > PACKET_BYTES) {
		if ((status = end_packet(w, s, instance)) == WEFT_OK)
			status = begin_packet(w, s, instance, time);
	} else if (s->packet.count == 0) {
		status = begin_packet(w, s, instance, time);
	}
	if (status == WEFT_OK && !weft_vec_reserve(&s->packet, bytes))
		status = WEFT_ENOMEM;
	return status;
}

static int write_definition(struct writer *w, const struct weft_wire_definition *definition, uint64_t time)
{
	struct stream *s = &w->definitions;
	size_t bytes = weft__definition_bytes(definition);
	int status = reserve_bytes(w, s, 0, bytes, time);
	if (status == WEFT_OK) {
		weft__definition_write(s->packet.items + s->packet.count, definition, time);
		s->packet.count += bytes;
	}
	return status;
}

/* Finds the key of a text, or defines a key; 0 means that the text is written in full. */
static int find_key(struct writer *w, struct weft_str text, uint64_t time, uint16_t *key)
{
	*key = 0;
	size_t known = w->texts.texts.count;
	if (text.len > KEYED_BYTES || known >= KEYED_TEXTS || (text.len > 0 && memchr(text.ptr, 0, text.len)))
		return WEFT_OK;
	uint32_t number = weft_intern(&w->texts, text);
	if (number == WEFT_INTERN_FAILED)
		return WEFT_ENOMEM;
	*key = (uint16_t)(number + 1);
	if (number < known)
		return WEFT_OK;
	return write_definition(w,
	    &(struct weft_wire_definition){.what = WEFT_DEFINE_STRING, .key = *key, .text = text.ptr, .text_bytes = text.len},
	    time);
}

static int define_module(struct writer *w, const struct weft_module *module, uint64_t time)
{
	return write_definition(w,
	    &(struct weft_wire_definition){
		.what = WEFT_DEFINE_MODULE,
		.key = (uint16_t)(module - w->info->modules + 1),
		.address = module->address,
		.size = module->size,
		.text = module->path.ptr,
		.text_bytes = module->path.len,
		.second = module->build_id.ptr,
		.second_bytes = module->build_id.len,
	    },
	    time);
}

static int define_site(struct writer *w, const struct weft_site *site, uint16_t key, uint64_t time)
{
	if (site->file.len == 0 && site->function.len == 0 && site->offset != 0)
		return write_definition(w,
		    &(struct weft_wire_definition){
			.what = WEFT_DEFINE_PLACE,
			.key = key,
			.module = site->module ? (uint16_t)(site->module - w->info->modules + 1) : 0,
			.address = site->offset,
		    },
		    time);
	return write_definition(w,
	    &(struct weft_wire_definition){
		.what = WEFT_DEFINE_SITE,
		.key = key,
		.line = site->line,
		.text = site->file.ptr,
		.text_bytes = site->file.len,
		.second = site->function.ptr,
		.second_bytes = site->function.len,
	    },
	    time);
}

/* Defines the call sites that the trace has named so far, after the modules to which they may belong. */
static int define_sites(struct writer *w, uint64_t time)
{
	int status = WEFT_OK;
	for (; w->modules < w->info->module_count && w->modules < UINT16_MAX && status == WEFT_OK; w->modules++)
		status = define_module(w, &w->info->modules[w->modules], time);
	for (; w->sites < w->info->site_count && w->sites < KEYED_SITES && status == WEFT_OK; w->sites++)
		status = define_site(w, &w->info->sites[w->sites], (uint16_t)(KEYED_TEXTS + 1 + w->sites), time);
	return status;
}

/* Rewrites the text of a stack with new keys, because the keys of sites differ between traces. */
static struct weft_str put_stack(struct writer *w, struct weft_str text)
{
	uint32_t sites[KEYED_CALLERS], length = 0;
	const size_t all = weft_trace_callers(w->info, text, sites, KEYED_CALLERS);
	const size_t count = all < KEYED_CALLERS ? all : KEYED_CALLERS;
	w->losses.counts[WEFT_LOSS_SITE] += all - count;
	for (size_t i = 0; i < count; i++) {
		const bool has_key = sites[i] != WEFT_NO_SITE && sites[i] < w->sites;
		w->losses.counts[WEFT_LOSS_SITE] += sites[i] != WEFT_NO_SITE && !has_key;
		length += (uint32_t)snprintf(
		    w->stack + length, KEY_BYTES + 1, i > 0 ? " %" PRIu32 : "%" PRIu32, has_key ? KEYED_TEXTS + 1 + sites[i] : 0);
	}
	return (struct weft_str){w->stack, length};
}

/* Prepares the text of an event for writing.  The text of a stack is cut between two keys, because a part of a key would be
 * another key. */
static int find_text(struct writer *w, const struct weft_event *e, struct weft_wire_event *event, uint64_t time)
{
	struct weft_str text = weft__export_text(e->text, &w->budget, &w->losses);
	int status = WEFT_OK;
	if (e->op == WEFT_OP_DETAIL && e->kind == WEFT_DETAIL_STACK) {
		while (text.len < e->text.len && text.len > 0 && text.ptr[text.len - 1] != ' ')
			text.len--;
		status = define_sites(w, time);
		text = put_stack(w, text);
	}
	event->text = text.len > 0 ? text.ptr : "";
	event->text_bytes = text.len;
	if (status == WEFT_OK)
		status = find_key(w, text, time, &event->key);
	if (event->key == 0 && text.len > 0 && memchr(text.ptr, 0, text.len))
		w->losses.counts[WEFT_LOSS_TEXT]++;
	return status;
}

/* Returns the event's time in the new trace, limited to the maximum that packets can store. */
static uint64_t time_of(const struct writer *w, const struct weft_event *e)
{
	const uint64_t time = (uint64_t)e->time_ns - (uint64_t)w->origin_ns;
	return time < INT64_MAX ? time : INT64_MAX;
}

static int stream_of(struct writer *w, unsigned instance, struct stream **out)
{
	while (w->streams.count <= instance) {
		struct stream *more = weft_vec_push(&w->streams);
		if (!more)
			return WEFT_ENOMEM;
		*more = (struct stream){.class = WEFT_CLASS_EVENTS};
	}
	*out = &w->streams.items[instance];
	return WEFT_OK;
}

static int put_event(struct writer *w, const struct weft_event *e)
{
	const uint64_t time = time_of(w, e);
	if (e->op >= WEFT_OP_COUNT) {
		w->losses.counts[WEFT_LOSS_OTHER]++;
		return WEFT_OK;
	}
	struct weft_wire_event event = {.op = e->op, .kind = e->kind, .a = e->a, .b = e->b, .value = e->value};
	struct stream *s;
	int status = stream_of(w, e->stream, &s);
	if (status == WEFT_OK && e->site != WEFT_NO_SITE)
		status = define_sites(w, time);
	if (status == WEFT_OK && weft__op_forms[e->op].fields & WEFT_FIELD_TEXT)
		status = find_text(w, e, &event, time);
	if (status < 0)
		return status;
	if (e->site != WEFT_NO_SITE) {
		if (e->site < w->sites)
			event.site = (uint16_t)(KEYED_TEXTS + 1 + e->site);
		else
			w->losses.counts[WEFT_LOSS_SITE]++;
	}
	if (e->op == WEFT_OP_DETAIL && (e->kind == WEFT_DETAIL_PLACE || e->kind == WEFT_DETAIL_CALLBACK))
		event.value = (e->value & ~(int64_t)UINT16_MAX) | event.site;

	uint8_t id = weft__event_id(&event);
	size_t payload = weft__event_payload(&event, id);
	if ((status = reserve_bytes(w, s, e->stream, WEFT_EXTENDED_HEADER + payload, time)) < 0)
		return status;
	/* An event that consists of zero bytes would look like an event that was never written. */
	bool extended = (time - s->last) >> WEFT_COMPACT_GAP_BITS != 0 || (uint32_t)time == 0;
	unsigned char *end = weft__event_write(s->packet.items + s->packet.count, &event, id, time, extended);
	s->packet.count = (size_t)(end - s->packet.items);
	s->last = time;
	s->events++;
	return WEFT_OK;
}

/* Makes a UUID from the trace, so that conversions of one trace get the same UUID, and other traces get other UUIDs. */
static void make_uuid(uint8_t uuid[16], const struct weft_trace_info *info, int64_t first_ns)
{
	uint64_t hash[2] = {0xcbf29ce484222325, 0x9e3779b97f4a7c15};
	uint64_t parts[] = {(uint64_t)first_ns, info->pid, (uint64_t)info->clock_origin_ns, info->stream_count};
	for (int half = 0; half < 2; half++) {
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			hash[half] = (hash[half] ^ parts[i]) * 0x100000001b3, hash[half] ^= hash[half] >> 29;
		for (uint32_t i = 0; i < info->command.len; i++)
			hash[half] = (hash[half] ^ (unsigned char)info->command.ptr[i]) * 0x100000001b3;
	}
	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(hash[i / 8] >> i % 8 * 8);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80); /* version 8: custom content */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static char *copy_text(struct weft_str text)
{
	return text.len > 0 ? strndup(text.ptr, text.len) : NULL;
}

/* Counts the packets of each stream; the caller frees the result. */
static uint64_t *count_packets(const struct writer *w)
{
	uint64_t *packets = calloc(w->streams.count + 1, sizeof *packets);
	for (size_t i = 0; packets && i < w->streams.count; i++)
		packets[i] = w->streams.items[i].sequence;
	return packets;
}

static int put_metadata(struct writer *w)
{
	const struct weft_trace_info *info = w->info;
	char *host = copy_text(info->host), *process = copy_text(info->process), *command = copy_text(info->command);
	uint64_t *packets = count_packets(w);
	struct weft_metadata metadata = {
	    .clock_hz = 1000000000,
	    .clock_origin_ns = info->has_origin ? (int64_t)((uint64_t)info->clock_origin_ns + (uint64_t)w->origin_ns) : 0,
	    .clock_source = "converted",
	    .clock_measured = "exact",
	    .host = host,
	    .process = process,
	    .command = command,
	    .pid = info->pid,
	    .mode = "grow",
	    .state = "finished",
	    .definitions = w->definitions.sequence,
	    .stream_packets = packets,
	    .stream_count = w->streams.count,
	};
	memcpy(metadata.uuid, w->uuid, sizeof metadata.uuid);
	size_t size = weft__metadata_format(NULL, 0, &metadata);
	char *text = malloc(size + 1);
	int status = WEFT_ENOMEM;
	if (text && packets && (!info->host.len || host) && (!info->process.len || process) && (!info->command.len || command)) {
		weft__metadata_format(text, size + 1, &metadata);
		status = w->file(w->file_ctx, "metadata", text, size) == 0 ? WEFT_OK : WEFT_EIO;
	}
	free(text);
	free(packets);
	free(host);
	free(process);
	free(command);
	return status;
}

int weft_export_native(
    struct weft_trace *trace, weft_export_file_fn *file, void *file_ctx, struct weft_losses *losses, struct weft_error *err)
{
	struct writer w = {
	    .file = file, .file_ctx = file_ctx, .info = weft_trace_info(trace), .budget = weft__export_budget(trace)};
	const struct weft_event *events;
	size_t count;
	int status = WEFT_OK, more;
	bool first = true;
	w.definitions.class = WEFT_CLASS_DEFINITIONS;
	while ((more = weft_trace_next(trace, &events, &count)) > 0 && status == WEFT_OK) {
		if (first) {
			make_uuid(w.uuid, w.info, events[0].time_ns);
			w.origin_ns = events[0].time_ns < 0 ? events[0].time_ns : 0;
		}
		first = false;
		for (size_t i = 0; i < count && status == WEFT_OK; i++)
			status = put_event(&w, &events[i]);
	}
	if (status == WEFT_OK)
		status = more;
	/* A trace must have at least one packet, so an empty one is written. */
	if (status == WEFT_OK && w.streams.count == 0)
		status = begin_packet(&w, &w.definitions, 0, 0);
	for (unsigned i = 0; i < w.streams.count && status == WEFT_OK; i++)
		if (w.streams.items[i].packet.count > 0)
			status = end_packet(&w, &w.streams.items[i], i);
	if (status == WEFT_OK && w.definitions.packet.count > 0)
		status = end_packet(&w, &w.definitions, 0);
	if (status == WEFT_OK)
		status = put_metadata(&w);
	for (size_t i = 0; i < w.streams.count; i++)
		weft_vec_free(&w.streams.items[i].packet);
	weft_vec_free(&w.streams);
	weft_vec_free(&w.definitions.packet);
	weft_intern_finish(&w.texts);
	struct weft_kernel_info kernel;
	if (status == WEFT_OK && (status = weft_trace_kernel(trace, NULL, NULL, &kernel)) >= 0) {
		w.losses.counts[WEFT_LOSS_KERNEL] = kernel.events;
		status = WEFT_OK;
	}
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	*losses = w.losses;
	return WEFT_OK;
}
