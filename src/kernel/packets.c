/* packets.c: writes kernel events into the traces of the processes to which the events belong.
 *
 * The folder of a trace may belong to another user, who may change anything in it, so links are not followed and files are not
 * mapped.  Each packet is a file. pwrite() writes first the events and then the header that counts them, so that readers see
 * complete packets even if this command is killed.  SPDX-License-Identifier: ISC */
#include "kernel/packets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <weft/record_inline.h>

#include "base/idmap.h"
#include "base/named.h"
#include "base/vec.h"
#include "wire/wire.h"

/* RESERVED_BYTES is the space for two names, a text, an event and the clock, each with the long header. */
enum {
	NAME_BYTES = 48,
	PACKET_BYTES = 256 << 10,
	RING_BYTES = 16 << 20,
	MIN_PACKETS = 4,
	RESERVED_BYTES = 512,
	MAX_METADATA_BYTES = 1 << 16
};

struct stream {
	uint32_t cpu;
	int fd; /* -1: no packet */
	struct weft_packet_header header;
	unsigned char *bytes;             /* bytes of the packet */
	size_t used, written;             /* including the header */
	uint64_t packets, earlier_events; /* number of packets so far, and number of events that readers saw in earlier packets */
	uint64_t first;                   /* number of the oldest packet that was not dropped */
	uint64_t events, visible_events;  /* number of events in this packet, and number of those that readers see */
	uint64_t last_ticks, last_raw_ns; /* time of the newest event, on both clocks */
	bool is_fresh;                    /* whether events follow the last clock event */
	bool is_full;                     /* whether a growing trace has reached its size limit */
	/* Maps from a tid, and from a text's number, to the low bits of the number of the last packet that contains the name or
	 * text. */
	struct weft_idmap name_packets, text_packets;
};

struct weft_kernel_packets {
	int folder;
	uid_t user;
	gid_t group;
	struct weft_kernel_packets_options options;
	char why[128];
	uint8_t uuid[16];
	uint64_t clock_hz, start_ticks;
	uint64_t packets, total_bytes; /* packets: number of packets in a ring */
	WEFT_VEC(struct stream) streams;
};

/* ---- Opening ---- */

static ssize_t read_file(int folder, const char *name, void *to, size_t size)
{
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const int fd = weft_named_file(folder, name, &rule, NULL);
	ssize_t n = fd < 0 ? -1 : read(fd, to, size);
	if (fd >= 0)
		close(fd);
	return n;
}

/* Reads the field "recorder" of the metadata: "BOOT NAMESPACE PID START".  Fails if the recorder runs in another PID namespace,
 * whose ids differ from the kernel's ids here. */
static bool read_pid(const char *metadata, uint32_t *pid)
{
	static const char key[] = "\trecorder = \"";
	unsigned long space;
	struct stat st;
	const char *at = strstr(metadata, key);
	return at && sscanf(at + sizeof key - 1, "%*s %lu %u", &space, pid) == 2 && stat("/proc/self/ns/pid", &st) == 0 &&
	       (unsigned long)st.st_ino == space;
}

static bool has_clock(const char *metadata, bool is_counter)
{
	const bool has_counter =
	    strstr(metadata, "\tclock_source = \"tsc\";") || strstr(metadata, "\tclock_source = \"cntvct\";");
	return is_counter ? has_counter : strstr(metadata, "\tclock_source = \"monotonic\";") != NULL;
}

int weft_kernel_packets_open(
    struct weft_kernel_packets **out, const char *path, const struct weft_kernel_packets_options *options, uint32_t *pid)
{
	struct weft_packet_header first;
	struct stat st;
	char *metadata = calloc(1, MAX_METADATA_BYTES + 1);
	struct weft_kernel_packets *file = calloc(1, sizeof *file);
	int folder = weft_named_below(options->session, path), status = -1;
	if (!metadata || !file || folder < 0 || fstat(folder, &st)) {
	} else if (read_file(folder, "metadata", metadata, MAX_METADATA_BYTES) <= 0 ||
		   read_file(folder, "definitions-0", &first, sizeof first) != sizeof first || first.mark != WEFT_PACKET_MARK) {
		status = 0;
	} else if (!has_clock(metadata, options->has_counter)) {
		options->note("--kernel: %s has another clock than the kernel's events", path);
	} else if (read_pid(metadata, pid)) {
		const uint64_t size = options->size_bytes ? options->size_bytes : options->grows ? UINT64_MAX : RING_BYTES;
		const uint64_t packets = size / PACKET_BYTES;
		*file = (struct weft_kernel_packets){.folder = folder,
		    .user = st.st_uid,
		    .group = st.st_gid,
		    .options = *options,
		    .clock_hz = first.clock_hz,
		    .start_ticks = first.timestamp_begin,
		    .packets = packets > MIN_PACKETS ? packets : MIN_PACKETS};
		memcpy(file->uuid, first.uuid, sizeof file->uuid);
		snprintf(file->why, sizeof file->why, "%s", options->why);
		status = 1;
		*out = file;
	}
	free(metadata);
	if (status != 1) {
		free(file);
		if (folder >= 0)
			close(folder);
	}
	return status;
}

uid_t weft_kernel_packets_owner(const struct weft_kernel_packets *file)
{
	return file->user;
}

uint64_t weft_kernel_packets_start(const struct weft_kernel_packets *file)
{
	return file->start_ticks;
}

/* ---- Packets ---- */

static struct stream *get_stream(struct weft_kernel_packets *f, uint32_t cpu)
{
	for (size_t i = 0; i < f->streams.count; i++)
		if (f->streams.items[i].cpu == cpu)
			return &f->streams.items[i];
	unsigned char *bytes = malloc(PACKET_BYTES);
	struct stream *slot = bytes ? weft_vec_push(&f->streams) : NULL;
	if (slot)
		*slot = (struct stream){.cpu = cpu, .fd = -1, .bytes = bytes};
	else
		free(bytes);
	return slot;
}

static bool write_at(int fd, const void *bytes, size_t size, size_t at)
{
	return pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

static void set_clock_pair(struct weft_packet_header *h, bool has_counter)
{
	struct timespec wall, now;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &now);
	h->pair_clock = has_counter ? weft__counter() : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	h->pair_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
}

static void format_packet_name(char name[NAME_BYTES], const struct stream *s, uint64_t slot)
{
	snprintf(name, NAME_BYTES, "kernel-%u-%llu", s->cpu, (unsigned long long)slot);
}

/* Returns whether the file is a packet of this trace.  The check is needed because the folder's owner may have put another file
 * there. */
static bool is_own_packet(const struct weft_kernel_packets *f, int fd, struct weft_packet_header *found)
{
	return pread(fd, found, sizeof *found, 0) == sizeof *found && found->stream_id == WEFT_CLASS_KERNEL &&
	       memcmp(found->uuid, f->uuid, sizeof found->uuid) == 0;
}

/* Opens a packet's file for writing, if it is a packet of this trace. */
static int open_own_packet(const struct weft_kernel_packets *f, const char *name)
{
	return weft_named_file(f->folder, name, &(struct weft_named_rule){.owner = f->user, .is_changed = true}, NULL);
}

/* Opens the file of a new packet.  A new file gets its name when its header is complete; a reused file is first marked as empty.
 */
static int open_packet(const struct weft_kernel_packets *f, struct weft_packet_header *h, bool is_reused, const char *name)
{
	static const char hidden[] = ".weft-kernel";
	if (is_reused) {
		const int fd = open_own_packet(f, name);
		struct weft_packet_header old;
		if (fd < 0 || !is_own_packet(f, fd, &old)) {
			if (fd >= 0)
				close(fd);
			return -1;
		}
		h->lock = (old.lock | 1) + 2;
		if (write_at(fd, h, sizeof *h, 0)) {
			h->lock++;
			if (write_at(fd, h, sizeof *h, 0))
				return fd;
		}
		close(fd);
		return -1;
	}
	unlinkat(f->folder, hidden, 0);
	const int fd = weft_named_create(f->folder, hidden, f->user, f->group);
	if (fd < 0)
		return -1;
	if (write_at(fd, h, sizeof *h, 0) && ftruncate(fd, PACKET_BYTES) == 0 &&
	    renameat(f->folder, hidden, f->folder, name) == 0)
		return fd;
	unlinkat(f->folder, hidden, 0);
	close(fd);
	return -1;
}

/* Makes the packet's events visible to readers; `is_last` says whether to cut off the rest of the file. */
static void publish_packet(struct stream *s, bool is_last)
{
	if (s->fd < 0)
		return;
	s->header.content_size = s->used * 8;
	if (is_last)
		s->header.packet_size = s->header.content_size;
	s->header.events_discarded = s->header.lost_full;
	bool whole = s->used == s->written || write_at(s->fd, s->bytes + s->written, s->used - s->written, s->written);
	if (whole && write_at(s->fd, &s->header, sizeof s->header, 0)) {
		s->written = s->used;
		s->visible_events = s->events;
		if (is_last && ftruncate(s->fd, (off_t)s->used)) {
			/* a file that stays too long is harmless, because the header has the size */
		}
		return;
	}
	/* If the disk is full, the events count as lost. */
	s->header.lost_full += s->events - s->visible_events;
	close(s->fd);
	s->fd = -1;
}

static void append_event(
    const struct weft_kernel_packets *f, struct stream *s, uint64_t ticks, const struct weft_wire_kernel *event)
{
	/* Times may decrease slightly, because a switch gets its time before its place in the ring, and an interrupt may come
	 * between. */
	const uint64_t time = ticks > s->last_ticks ? ticks : s->last_ticks;
	const bool extended = (time - s->last_ticks) >> 32 != 0;
	struct weft_wire_kernel copy = *event;
	if (event->op == WEFT_KERNEL_IN || event->op == WEFT_KERNEL_SPENT) {
		const double ago_ns = time > event->then ? (double)(time - event->then) * 1e9 / (double)f->clock_hz : 0;
		copy.ago_ns = ago_ns < UINT32_MAX ? (uint32_t)ago_ns : UINT32_MAX;
	}
	s->used = (size_t)(weft__kernel_write(s->bytes + s->used, &copy, time, extended) - s->bytes);
	s->last_ticks = time;
	s->events++;
}

static void begin_packet(struct weft_kernel_packets *f, struct stream *s, uint64_t ticks)
{
	struct weft_packet_header *h = &s->header;
	const uint64_t lost = h->lost_full, slot = f->options.grows ? s->packets : s->packets % f->packets;
	if (f->options.grows && f->options.size_bytes && f->total_bytes + PACKET_BYTES > f->options.size_bytes) {
		s->is_full = true; /* the last packet continues to count lost events */
		return;
	}
	publish_packet(s, f->options.grows);
	if (s->fd >= 0)
		close(s->fd);
	s->earlier_events += s->visible_events;
	s->last_ticks = ticks > s->last_ticks ? ticks : s->last_ticks;
	s->events = s->visible_events = 0;
	*h = (struct weft_packet_header){.lock = 0};
	weft__packet_init(h, f->uuid, WEFT_CLASS_KERNEL, s->cpu, PACKET_BYTES);
	h->timestamp_begin = s->last_ticks;
	h->sequence = s->packets;
	h->events_before = s->earlier_events;
	h->lost_full = h->events_discarded = lost;
	h->clock_hz = f->clock_hz;
	snprintf(h->thread_name, sizeof h->thread_name, "CPU %u", s->cpu);
	set_clock_pair(h, f->options.has_counter);
	char name[NAME_BYTES];
	format_packet_name(name, s, slot);
	s->fd = open_packet(f, h, slot != s->packets, name);
	if (s->fd < 0)
		return;
	s->packets++;
	f->total_bytes += PACKET_BYTES;
	s->used = s->written = sizeof *h;
	append_event(f, s, s->last_ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_LEVEL,
		.why = (uint8_t)f->options.level,
		.text = f->why,
		.text_bytes = (uint32_t)strlen(f->why)});
}

void weft_kernel_packets_reserve(struct weft_kernel_packets *f, uint32_t cpu, uint64_t ticks, uint64_t raw_ns)
{
	struct stream *s = get_stream(f, cpu);
	if (!s)
		return;
	/* A packet that could not be started before is tried again. */
	if (!s->is_full && (s->fd < 0 || PACKET_BYTES - s->used < RESERVED_BYTES))
		begin_packet(f, s, ticks);
	s->last_raw_ns = raw_ns > s->last_raw_ns ? raw_ns : s->last_raw_ns;
	s->is_fresh = true;
}

static bool needs_definition(const struct stream *s, struct weft_idmap *name_packets, uint32_t number)
{
	const uint32_t packet = (uint32_t)s->header.sequence & 0xffffff;
	return weft_idmap_get(name_packets, number) != packet && weft_idmap_set(name_packets, number, packet);
}

bool weft_kernel_packets_needs_name(struct weft_kernel_packets *f, uint32_t cpu, uint32_t tid)
{
	struct stream *s = get_stream(f, cpu);
	return s && needs_definition(s, &s->name_packets, tid);
}

bool weft_kernel_packets_needs_text(struct weft_kernel_packets *f, uint32_t cpu, uint32_t number)
{
	struct stream *s = get_stream(f, cpu);
	return s && needs_definition(s, &s->text_packets, number);
}

void weft_kernel_packets_forget_name(struct weft_kernel_packets *f, uint32_t tid)
{
	for (size_t i = 0; i < f->streams.count; i++)
		if (weft_idmap_get(&f->streams.items[i].name_packets, tid) != WEFT_IDMAP_NONE)
			weft_idmap_set(&f->streams.items[i].name_packets, tid, WEFT_IDMAP_NONE - 1);
}

void weft_kernel_packets_write(struct weft_kernel_packets *f, uint32_t cpu, uint64_t ticks, const struct weft_wire_kernel *event)
{
	struct stream *s = get_stream(f, cpu);
	if (s && s->fd >= 0 && !s->is_full)
		append_event(f, s, ticks, event);
	else if (s)
		s->header.lost_full++;
}

void weft_kernel_packets_add_lost(struct weft_kernel_packets *f, uint32_t cpu, uint64_t events)
{
	struct stream *s = get_stream(f, cpu);
	if (s)
		s->header.lost_full += events;
}

void weft_kernel_packets_restart(struct weft_kernel_packets *f, uint32_t cpu, uint64_t ticks, uint64_t raw_ns, uint64_t events)
{
	struct stream *s = get_stream(f, cpu);
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	for (uint64_t slot = s->first; slot < s->packets; slot++) {
		char name[NAME_BYTES];
		struct weft_packet_header old;
		format_packet_name(name, s, slot);
		const int fd = open_own_packet(f, name);
		if (fd >= 0 && is_own_packet(f, fd, &old))
			unlinkat(f->folder, name, 0);
		if (fd >= 0)
			close(fd);
	}
	/* A packet number is skipped, so that readers notice the gap. */
	s->first = ++s->packets;
	s->earlier_events += s->visible_events + events;
	s->events = s->visible_events = 0;
	s->is_fresh = false;
	weft_kernel_packets_reserve(f, cpu, ticks, raw_ns);
}

void weft_kernel_packets_flush(struct weft_kernel_packets *f, uint32_t bound_ns)
{
	for (size_t i = 0; i < f->streams.count; i++) {
		struct stream *s = &f->streams.items[i];
		if (!s->is_fresh || s->fd < 0)
			continue;
		if (!s->is_full)
			append_event(f, s, s->last_ticks,
			    &(struct weft_wire_kernel){.op = WEFT_KERNEL_CLOCK, .raw_ns = s->last_raw_ns, .other = bound_ns});
		s->is_fresh = false;
		publish_packet(s, false);
	}
}

void weft_kernel_packets_close(struct weft_kernel_packets *f)
{
	for (size_t i = 0; i < f->streams.count; i++) {
		struct stream *s = &f->streams.items[i];
		publish_packet(s, true);
		if (s->fd >= 0)
			close(s->fd);
		free(s->bytes);
		weft_idmap_finish(&s->name_packets);
		weft_idmap_finish(&s->text_packets);
	}
	weft_vec_free(&f->streams);
	close(f->folder);
	free(f);
}
