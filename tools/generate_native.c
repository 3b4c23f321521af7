/* generate_native.c: writes events into a native trace: a directory, files of one packet each that never wrap.
 * SPDX-License-Identifier: ISC */
#include "generate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/kernel.h"
#include "wire/wire.h"

#define PACKET_BYTES (1u << 20)
#define FIRST_TID 1000u
#define STRANGER 99u /* an OS thread of another program */
#define TEXTS 4096u  /* texts with a key; a power of 2 */

struct stream {
	unsigned char *packet;
	size_t used;
	uint64_t last, sequence, events, events_before;
};

struct native {
	struct sink sink;
	const char *path;
	struct stream streams[GENERATE_STREAMS];
	struct stream definitions, kernel;
	uint64_t kernel_events, first_time, last_time;
	char *texts[TEXTS]; /* by hash; the key is in keys[] */
	uint16_t keys[TEXTS], text_count;
};

static const uint8_t uuid[16] = {0x77, 0x65, 0x66, 0x74, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};

static void write_file(const struct native *n, const char *name, const void *bytes, size_t size)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/%s", n->path, name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		die("%s: cannot write", path);
}

static void packet_begin(struct stream *s, enum weft_stream_class class, unsigned instance, uint64_t time)
{
	if (!s->packet && !(s->packet = calloc(1, PACKET_BYTES)))
		die("out of memory");
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)s->packet;
	memset(s->packet, 0, PACKET_BYTES);
	weft__packet_init(h, uuid, class, instance, PACKET_BYTES);
	h->timestamp_begin = h->pair_clock = time;
	h->sequence = s->sequence;
	h->events_before = s->events_before;
	h->clock_hz = 1000000000;
	h->tid = class == WEFT_CLASS_EVENTS ? FIRST_TID + instance : 0;
	if (class == WEFT_CLASS_EVENTS)
		snprintf(h->thread_name, sizeof h->thread_name, instance ? "worker-%u" : "main", instance);
	s->used = sizeof *h;
	s->last = time;
}

static void packet_end(struct native *n, struct stream *s, unsigned instance, bool last)
{
	char name[64];
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)s->packet;
	size_t size = last ? s->used : PACKET_BYTES;
	h->content_size = s->used * 8;
	h->packet_size = size * 8;
	if (h->stream_id == WEFT_CLASS_DEFINITIONS)
		snprintf(name, sizeof name, "definitions-%u", (unsigned)s->sequence);
	else if (h->stream_id == WEFT_CLASS_KERNEL)
		snprintf(name, sizeof name, "kernel-%u-%u", instance, (unsigned)s->sequence);
	else
		snprintf(name, sizeof name, "stream-%u-%u", instance, (unsigned)s->sequence);
	write_file(n, name, s->packet, size);
	s->sequence++;
	s->events_before = s->events;
}

static void define(struct native *n, const struct weft_wire_definition *d, uint64_t time)
{
	struct stream *s = &n->definitions;
	if (!s->packet)
		packet_begin(s, WEFT_CLASS_DEFINITIONS, 0, time);
	if (PACKET_BYTES - s->used < weft__definition_bytes(d))
		die("too many definitions");
	s->used = (size_t)(weft__definition_write(s->packet + s->used, d, s->last) - s->packet);
}

/* Returns the key of a repeated text; 0: write the text inline. */
static uint16_t intern(struct native *n, struct weft_str text, uint64_t time)
{
	uint32_t hash = 2166136261u;
	for (uint32_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.ptr[i]) * 16777619u;
	for (uint32_t i = hash % TEXTS;; i = (i + 1) % TEXTS) {
		if (!n->texts[i]) {
			if (text.len > 64 || memchr(text.ptr, 0, text.len) || n->text_count >= TEXTS / 4)
				return 0;
			n->keys[i] = ++n->text_count;
			n->texts[i] = strndup(text.ptr, text.len);
			define(n,
			    &(struct weft_wire_definition){
				.what = WEFT_DEFINE_STRING, .key = n->keys[i], .text = text.ptr, .text_bytes = text.len},
			    time);
			return n->keys[i];
		}
		if (strlen(n->texts[i]) == text.len && !memcmp(n->texts[i], text.ptr, text.len))
			return n->keys[i];
	}
}

static void define_sites(struct native *n, uint64_t time)
{
	for (unsigned i = 0; i < generate_site_count; i++)
		define(n,
		    &(struct weft_wire_definition){.what = WEFT_DEFINE_SITE,
			.key = (uint16_t)(i + 1),
			.line = generate_sites[i].line,
			.text = generate_sites[i].file.ptr,
			.text_bytes = generate_sites[i].file.len,
			.second = generate_sites[i].function.ptr,
			.second_bytes = generate_sites[i].function.len},
		    time);
}

static void put(struct sink *sink, const struct weft_event *e)
{
	struct native *n = (struct native *)sink;
	struct stream *s = &n->streams[e->stream];
	uint64_t time = (uint64_t)e->time_ns;
	if (!n->definitions.packet)
		define_sites(n, time);
	if (!s->packet)
		packet_begin(s, WEFT_CLASS_EVENTS, e->stream, time);
	struct weft_wire_event event = {.op = e->op, .kind = e->kind, .a = e->a, .b = e->b, .value = e->value};
	event.site = e->site == WEFT_NO_SITE ? 0 : (uint16_t)(e->site + 1);
	if (weft__op_forms[e->op].fields & WEFT_FIELD_TEXT) {
		struct weft_str text = e->text.ptr ? e->text : (struct weft_str){"", 0};
		event.key = intern(n, text, time);
		event.text = text.ptr;
		event.text_bytes = text.len;
	}
	uint8_t id = weft__event_id(&event);
	size_t payload = weft__event_payload(&event, id);
	if (PACKET_BYTES - s->used < WEFT_EXTENDED_HEADER + payload) {
		packet_end(n, s, e->stream, false);
		packet_begin(s, WEFT_CLASS_EVENTS, e->stream, time);
	}
	bool extended = (time - s->last) >> WEFT_COMPACT_GAP_BITS != 0;
	s->used = (size_t)(weft__event_write(s->packet + s->used, &event, id, time, extended) - s->packet);
	s->last = time;
	s->events++;
	n->first_time = n->first_time ? n->first_time : time;
	n->last_time = time > n->last_time ? time : n->last_time;
}

/* ---- Kernel events ---- */

static void put_kernel(struct native *n, uint64_t time, const struct weft_wire_kernel *event);

static void begin_kernel(struct native *n, uint64_t time)
{
	static const char generated[] = "generated", stranger[] = "gcc";
	packet_begin(&n->kernel, WEFT_CLASS_KERNEL, 0, time);
	put_kernel(n, time,
	    &(struct weft_wire_kernel){
		.op = WEFT_KERNEL_LEVEL, .why = WEFT_LEVEL_ALL, .text = generated, .text_bytes = sizeof generated - 1});
	put_kernel(n, time,
	    &(struct weft_wire_kernel){
		.op = WEFT_KERNEL_THREAD, .tid = STRANGER, .text = stranger, .text_bytes = sizeof stranger - 1});
	for (unsigned i = 0; i < GENERATE_STREAMS; i++) {
		char name[24];
		const int len = snprintf(name, sizeof name, i ? "worker-%u" : "main", i);
		if (n->streams[i].packet)
			put_kernel(n, time,
			    &(struct weft_wire_kernel){.op = WEFT_KERNEL_THREAD,
				.tid = FIRST_TID + i,
				.other = FIRST_TID,
				.text = name,
				.text_bytes = (uint32_t)len});
	}
}

static void put_kernel(struct native *n, uint64_t time, const struct weft_wire_kernel *event)
{
	struct stream *s = &n->kernel;
	if (!s->packet)
		begin_kernel(n, time);
	if (PACKET_BYTES - s->used < WEFT_EXTENDED_HEADER + weft__kernel_payload(event)) {
		packet_end(n, s, 0, false);
		begin_kernel(n, time);
	}
	const bool extended = (time - s->last) >> WEFT_COMPACT_GAP_BITS != 0;
	s->used = (size_t)(weft__kernel_write(s->packet + s->used, event, time, extended) - s->packet);
	s->last = time;
	s->events++;
}

/* Makes each OS thread run, block, wake up, be preempted, and touch pages. */
static void generate_kernel(struct native *n)
{
	enum { RUNS, BLOCKED, READY } states[GENERATE_STREAMS] = {RUNS};
	static const uint8_t calls[] = {WEFT_CALL_FSYNC, WEFT_CALL_EPOLL_WAIT, WEFT_CALL_FUTEX, WEFT_CALL_PREAD};
	uint32_t streams[GENERATE_STREAMS], count = 0;
	uint64_t random = 1;
	const double step = (double)(n->last_time - n->first_time) / (double)(n->kernel_events + 1);
	for (uint32_t i = 0; i < GENERATE_STREAMS; i++)
		if (n->streams[i].packet)
			streams[count++] = i;
	for (uint64_t i = 0; count > 0 && i < n->kernel_events; i++) {
		const uint32_t s = streams[random_below(&random, count)], dice = random_below(&random, 10);
		struct weft_wire_kernel e = {.tid = FIRST_TID + s};
		if (states[s] == BLOCKED) {
			e.op = WEFT_KERNEL_WAKE;
			e.other = dice < 3 ? 0 : FIRST_TID + streams[random_below(&random, count)];
			states[s] = READY;
		} else if (states[s] == READY) {
			e.op = WEFT_KERNEL_ON;
			states[s] = RUNS;
		} else if (dice < 2) {
			e.op = WEFT_KERNEL_FAULT;
			e.other = 0x1234 + random_below(&random, 4096);
		} else if (dice < 5) {
			e.op = WEFT_KERNEL_TAKEN;
			e.other = STRANGER;
			states[s] = READY;
		} else {
			e.op = WEFT_KERNEL_OFF;
			e.call = calls[random_below(&random, sizeof calls)];
			e.why = e.call == WEFT_CALL_PREAD ? WEFT_OFF_DISK : WEFT_OFF_BLOCKED;
			states[s] = BLOCKED;
		}
		put_kernel(n, n->first_time + (uint64_t)(step * (double)(i + 1)), &e);
	}
	if (n->kernel.packet)
		packet_end(n, &n->kernel, 0, true);
	free(n->kernel.packet);
}

static void native_close(struct sink *sink)
{
	struct native *n = (struct native *)sink;
	static char text[65536];
	struct weft_metadata metadata = {
	    .clock_hz = 1000000000,
	    .clock_source = "caller",
	    .clock_measured = "exact",
	    .host = "generated",
	    .process = "weft-generate",
	    .command = "weft-generate",
	    .mode = "grow",
	    .state = "finished",
	};
	memcpy(metadata.uuid, uuid, sizeof uuid);
	generate_kernel(n);
	for (unsigned i = 0; i < GENERATE_STREAMS; i++) {
		if (n->streams[i].packet)
			packet_end(n, &n->streams[i], i, true);
		free(n->streams[i].packet);
	}
	if (n->definitions.packet)
		packet_end(n, &n->definitions, 0, true);
	free(n->definitions.packet);
	write_file(n, "metadata", text, weft__metadata_format(text, sizeof text, &metadata));
	for (unsigned i = 0; i < TEXTS; i++)
		free(n->texts[i]);
	free(n);
}

struct sink *sink_native(const char *path, uint64_t kernel_events)
{
	struct native *n = calloc(1, sizeof *n);
	if (!n)
		die("out of memory");
	n->sink = (struct sink){.put = put, .close = native_close};
	n->path = path;
	n->kernel_events = kernel_events;
	if (mkdir(path, 0755))
		die("%s: cannot create", path);
	return &n->sink;
}
