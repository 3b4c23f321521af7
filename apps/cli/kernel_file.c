/* kernel_file.c: what the kernel said of a process, written into that process's trace.
 *
 * The folder may belong to another user, who may do to it what he likes: nothing in it is followed, and no file of it is mapped.
 * A packet is a file, written by pwrite(): first the events, then the header that counts them, so that a reader sees a whole
 * packet whenever this command dies.  SPDX-License-Identifier: ISC */
#include "apps/cli/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <weft/record_inline.h>

#include "apps/cli/cli.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "wire/wire.h"

/* ROOM: two names, a text, an event and the clock, each with the long header. */
enum { NAME = 48, PACKET_BYTES = 256 << 10, RING_BYTES = 16 << 20, LEAST_PACKETS = 4, ROOM = 512, MOST_METADATA = 1 << 16 };

struct stream {
	uint32_t processor;
	int fd; /* -1: no packet */
	struct weft_packet_header header;
	unsigned char *bytes;     /* of the packet */
	size_t used, written;     /* header included */
	uint64_t packets, before; /* begun so far; events that readers saw in those before */
	uint64_t first;           /* the oldest that was not forgotten */
	uint64_t events, shown;   /* of this packet; those that readers see */
	uint64_t last, last_raw;  /* times of the newest event */
	bool is_fresh;            /* there are events behind the last clock */
	bool is_full;             /* what grows has no room for another packet */
	/* tid to the low bits of the packet that told its name last; likewise numbers of texts */
	struct weft_idmap told, told_texts;
};

struct kernel_file {
	int folder;
	uid_t user;
	gid_t group;
	struct kernel_file_options options;
	char why[128];
	uint8_t uuid[16];
	uint64_t clock_hz, begun;
	uint64_t packets, total_bytes; /* packets: of a ring */
	WEFT_VEC(struct stream) streams;
};

/* ---- Opening ---- */

static ssize_t read_file(int folder, const char *name, void *to, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, size);
	if (fd >= 0)
		close(fd);
	return n;
}

/* "recorder" of the metadata: "BOOT NAMESPACE PID START".  Numbers of another namespace are others than the kernel's here. */
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

int kernel_file_open(struct kernel_file **out, const char *path, const struct kernel_file_options *options, uint32_t *pid)
{
	struct weft_packet_header first;
	struct stat st;
	char *metadata = calloc(1, MOST_METADATA + 1);
	struct kernel_file *file = calloc(1, sizeof *file);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), status = -1;
	if (!metadata || !file || folder < 0 || fstat(folder, &st)) {
	} else if (read_file(folder, "metadata", metadata, MOST_METADATA) <= 0 ||
		   read_file(folder, "definitions-0", &first, sizeof first) != sizeof first || first.mark != WEFT_PACKET_MARK) {
		status = 0;
	} else if (!has_clock(metadata, options->has_counter)) {
		cli_note("record: --kernel: %s has another clock than the kernel's events", path);
	} else if (read_pid(metadata, pid)) {
		const uint64_t size = options->size_bytes ? options->size_bytes : options->grows ? UINT64_MAX : RING_BYTES;
		const uint64_t packets = size / PACKET_BYTES;
		*file = (struct kernel_file){.folder = folder,
		    .user = st.st_uid,
		    .group = st.st_gid,
		    .options = *options,
		    .clock_hz = first.clock_hz,
		    .begun = first.timestamp_begin,
		    .packets = packets > LEAST_PACKETS ? packets : LEAST_PACKETS};
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

uint64_t kernel_file_begun(const struct kernel_file *file)
{
	return file->begun;
}

/* ---- Packets ---- */

static struct stream *stream_of(struct kernel_file *f, uint32_t processor)
{
	for (size_t i = 0; i < f->streams.count; i++)
		if (f->streams.items[i].processor == processor)
			return &f->streams.items[i];
	unsigned char *bytes = malloc(PACKET_BYTES);
	struct stream *slot = bytes ? weft_vec_push(&f->streams) : NULL;
	if (slot)
		*slot = (struct stream){.processor = processor, .fd = -1, .bytes = bytes};
	else
		free(bytes);
	return slot;
}

static bool put(int fd, const void *bytes, size_t size, size_t at)
{
	return pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

static void set_pair(struct weft_packet_header *h, bool has_counter)
{
	struct timespec wall, now;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &now);
	h->pair_clock = has_counter ? weft__counter() : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	h->pair_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
}

static void name_packet(char name[NAME], const struct stream *s, uint64_t slot)
{
	snprintf(name, NAME, "kernel-%u-%llu", s->processor, (unsigned long long)slot);
}

/* Whether that is a packet of this trace and not another file of its name, which is whoever's who owns the folder. */
static bool is_ours(const struct kernel_file *f, int fd, struct weft_packet_header *found)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == f->user &&
	       pread(fd, found, sizeof *found, 0) == sizeof *found && found->stream_id == WEFT_CLASS_KERNEL &&
	       memcmp(found->uuid, f->uuid, sizeof found->uuid) == 0;
}

/* The file of the packet that begins: a new one gets its name when its header is whole, one that is used again says first that
 * what it had is gone. */
static int open_packet(const struct kernel_file *f, struct weft_packet_header *h, bool is_again, const char *name)
{
	static const char hidden[] = ".weft-kernel";
	if (is_again) {
		int fd = openat(f->folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		struct weft_packet_header old;
		if (fd < 0 || !is_ours(f, fd, &old)) {
			if (fd >= 0)
				close(fd);
			return -1;
		}
		h->lock = (old.lock | 1) + 2;
		if (put(fd, h, sizeof *h, 0)) {
			h->lock++;
			if (put(fd, h, sizeof *h, 0))
				return fd;
		}
		close(fd);
		return -1;
	}
	unlinkat(f->folder, hidden, 0);
	int fd = openat(f->folder, hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	bool owned = f->user == geteuid() || fchown(fd, f->user, f->group) == 0;
	if (owned && put(fd, h, sizeof *h, 0) && ftruncate(fd, PACKET_BYTES) == 0 &&
	    renameat(f->folder, hidden, f->folder, name) == 0)
		return fd;
	unlinkat(f->folder, hidden, 0);
	close(fd);
	return -1;
}

/* Shows readers what there is; `is_last`: nothing comes any more, and the rest of the file goes. */
static void show(struct stream *s, bool is_last)
{
	if (s->fd < 0)
		return;
	s->header.content_size = s->used * 8;
	if (is_last)
		s->header.packet_size = s->header.content_size;
	s->header.events_discarded = s->header.lost_full;
	bool whole = s->used == s->written || put(s->fd, s->bytes + s->written, s->used - s->written, s->written);
	if (whole && put(s->fd, &s->header, sizeof s->header, 0)) {
		s->written = s->used;
		s->shown = s->events;
		if (is_last && ftruncate(s->fd, (off_t)s->used)) {
			/* the file says how long it is */
		}
		return;
	}
	/* No room on the disk: what is not there is lost. */
	s->header.lost_full += s->events - s->shown;
	close(s->fd);
	s->fd = -1;
}

static void append(const struct kernel_file *f, struct stream *s, uint64_t ticks, const struct weft_wire_kernel *event)
{
	/* A switch is stamped before its place in the ring is taken, and an interrupt may take one in between. */
	const uint64_t time = ticks > s->last ? ticks : s->last;
	const bool extended = (time - s->last) >> 32 != 0;
	struct weft_wire_kernel copy = *event;
	if (event->op == WEFT_KERNEL_IN || event->op == WEFT_KERNEL_SPENT) {
		const double ago_ns = time > event->then ? (double)(time - event->then) * 1e9 / (double)f->clock_hz : 0;
		copy.ago_ns = ago_ns < UINT32_MAX ? (uint32_t)ago_ns : UINT32_MAX;
	}
	s->used = (size_t)(weft__kernel_write(s->bytes + s->used, &copy, time, extended) - s->bytes);
	s->last = time;
	s->events++;
}

static void begin_packet(struct kernel_file *f, struct stream *s, uint64_t ticks)
{
	struct weft_packet_header *h = &s->header;
	const uint64_t lost = h->lost_full, slot = f->options.grows ? s->packets : s->packets % f->packets;
	if (f->options.grows && f->options.size_bytes && f->total_bytes + PACKET_BYTES > f->options.size_bytes) {
		s->is_full = true; /* the last packet goes on to say how much is lost */
		return;
	}
	show(s, f->options.grows);
	if (s->fd >= 0)
		close(s->fd);
	s->before += s->shown;
	s->last = ticks > s->last ? ticks : s->last;
	s->events = s->shown = 0;
	*h = (struct weft_packet_header){.lock = 0};
	weft__packet_init(h, f->uuid, WEFT_CLASS_KERNEL, s->processor, PACKET_BYTES);
	h->timestamp_begin = s->last;
	h->sequence = s->packets;
	h->events_before = s->before;
	h->lost_full = h->events_discarded = lost;
	h->clock_hz = f->clock_hz;
	snprintf(h->thread_name, sizeof h->thread_name, "processor %u", s->processor);
	set_pair(h, f->options.has_counter);
	char name[NAME];
	name_packet(name, s, slot);
	s->fd = open_packet(f, h, slot != s->packets, name);
	if (s->fd < 0)
		return;
	s->packets++;
	f->total_bytes += PACKET_BYTES;
	s->used = s->written = sizeof *h;
	append(f, s, s->last,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_LEVEL,
		.why = (uint8_t)f->options.level,
		.text = f->why,
		.text_bytes = (uint32_t)strlen(f->why)});
}

void kernel_file_begin(struct kernel_file *f, uint32_t processor, uint64_t ticks, uint64_t raw_ns)
{
	struct stream *s = stream_of(f, processor);
	if (!s)
		return;
	/* A packet that could not be made is tried again with the next event. */
	if (!s->is_full && (s->fd < 0 || PACKET_BYTES - s->used < ROOM))
		begin_packet(f, s, ticks);
	s->last_raw = raw_ns > s->last_raw ? raw_ns : s->last_raw;
	s->is_fresh = true;
}

static bool needs(const struct stream *s, struct weft_idmap *told, uint32_t number)
{
	const uint32_t packet = (uint32_t)s->header.sequence & 0xffffff;
	return weft_idmap_get(told, number) != packet && weft_idmap_set(told, number, packet);
}

bool kernel_file_needs_name(struct kernel_file *f, uint32_t processor, uint32_t tid)
{
	struct stream *s = stream_of(f, processor);
	return s && needs(s, &s->told, tid);
}

bool kernel_file_needs_text(struct kernel_file *f, uint32_t processor, uint32_t number)
{
	struct stream *s = stream_of(f, processor);
	return s && needs(s, &s->told_texts, number);
}

void kernel_file_forget_name(struct kernel_file *f, uint32_t tid)
{
	for (size_t i = 0; i < f->streams.count; i++)
		if (weft_idmap_get(&f->streams.items[i].told, tid) != WEFT_IDMAP_NONE)
			weft_idmap_set(&f->streams.items[i].told, tid, WEFT_IDMAP_NONE - 1);
}

void kernel_file_write(struct kernel_file *f, uint32_t processor, uint64_t ticks, const struct weft_wire_kernel *event)
{
	struct stream *s = stream_of(f, processor);
	if (s && s->fd >= 0 && !s->is_full)
		append(f, s, ticks, event);
	else if (s)
		s->header.lost_full++;
}

void kernel_file_lost(struct kernel_file *f, uint32_t processor, uint64_t events)
{
	struct stream *s = stream_of(f, processor);
	if (s)
		s->header.lost_full += events;
}

void kernel_file_restart(struct kernel_file *f, uint32_t processor, uint64_t ticks, uint64_t raw_ns, uint64_t events)
{
	struct stream *s = stream_of(f, processor);
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	for (uint64_t slot = s->first; slot < s->packets; slot++) {
		char name[NAME];
		struct weft_packet_header old;
		name_packet(name, s, slot);
		const int fd = openat(f->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && is_ours(f, fd, &old))
			unlinkat(f->folder, name, 0);
		if (fd >= 0)
			close(fd);
	}
	/* One packet is missing, so that readers know of it. */
	s->first = ++s->packets;
	s->before += s->shown + events;
	s->events = s->shown = 0;
	s->is_fresh = false;
	kernel_file_begin(f, processor, ticks, raw_ns);
}

void kernel_file_flush(struct kernel_file *f, uint32_t bound_ns)
{
	for (size_t i = 0; i < f->streams.count; i++) {
		struct stream *s = &f->streams.items[i];
		if (!s->is_fresh || s->fd < 0)
			continue;
		if (!s->is_full)
			append(f, s, s->last,
			    &(struct weft_wire_kernel){.op = WEFT_KERNEL_CLOCK, .raw_ns = s->last_raw, .other = bound_ns});
		s->is_fresh = false;
		show(s, false);
	}
}

void kernel_file_close(struct kernel_file *f)
{
	for (size_t i = 0; i < f->streams.count; i++) {
		struct stream *s = &f->streams.items[i];
		show(s, true);
		if (s->fd >= 0)
			close(s->fd);
		free(s->bytes);
		weft_idmap_finish(&s->told);
		weft_idmap_finish(&s->told_texts);
	}
	weft_vec_free(&f->streams);
	close(f->folder);
	free(f);
}
