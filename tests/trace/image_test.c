/* image_test.c: rings are found at any place in an image of memory, beside any other content.  SPDX-License-Identifier: ISC */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "scratch.h"
#include "trace/trace.h"
#include "wire/wire.h"

enum { PAGE = 4096, PAGES = 64 };

/* Memory for a ring with packets of one page each. */
static _Alignas(PAGE) unsigned char ring[PAGES * PAGE];

/* Records promises called name-0 to name-(count - 1), and one interned label, into the caller's memory. */
static void record(void *memory, size_t bytes, const char *name, int count, uint64_t packet_bytes)
{
	struct weft_record_options options = {.buffer = memory, .buffer_bytes = bytes, .packet_bytes = packet_bytes};
	assert_int_equal(weft_start(&options), WEFT_OK);
	for (int i = 0; i < count; i++) {
		char label[64];
		weft_id id = WEFT_CREATE(WEFT_KIND_REQUEST);
		snprintf(label, sizeof label, "%s-%d", name, i);
		weft_label(id, label);
		WEFT_LABEL(id, "interned");
		weft_resolve(WEFT_SYSTEM_ID, id);
	}
	weft_stop();
}

/* Fills memory with pseudo-random bytes, as an image of a busy machine may have. */
static void fill(unsigned char *to, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		to[i] = (unsigned char)(seed >> 56);
	}
}

struct seen {
	int events, requests, interned, first, last; /* first, last: numbers in the first and the last name */
	size_t skipped;
	uint64_t lost, packets;
	char note[640];
};

/* Reads a trace completely and closes it; fails unless the labels are name-N with consecutive numbers. */
static struct seen look(struct weft_trace *trace, const char *name)
{
	struct seen seen = {.first = -1, .last = -1};
	const struct weft_event *events;
	size_t count;
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++) {
			char text[64], wanted[64];
			seen.events++;
			seen.requests += events[i].op == WEFT_OP_CREATE && events[i].kind == WEFT_KIND_REQUEST;
			if (events[i].op != WEFT_OP_LABEL)
				continue;
			snprintf(text, sizeof text, "%.*s", (int)events[i].text.len, events[i].text.ptr);
			seen.interned += strcmp(text, "interned") == 0;
			if (strcmp(text, "interned") == 0)
				continue;
			if (seen.first < 0 && strrchr(text, '-'))
				seen.first = seen.last = atoi(strrchr(text, '-') + 1);
			else
				seen.last++;
			snprintf(wanted, sizeof wanted, "%s-%d", name, seen.last);
			assert_string_equal(text, wanted);
		}
	const struct weft_trace_info *info = weft_trace_info(trace);
	seen.skipped = info->skipped_count;
	seen.packets = info->found_packets;
	for (size_t i = 0; i < info->stream_count; i++)
		seen.lost += info->streams[i].lost_overwritten;
	if (seen.skipped)
		weft_error_format(&info->skipped[0].where, seen.note, sizeof seen.note);
	weft_trace_close(trace);
	return seen;
}

static struct seen look_at_memory(const void *bytes, size_t size, const char *name)
{
	struct weft_trace *trace;
	struct weft_error err = {0};
	if (weft_trace_open_memory(&trace, bytes, size, "image", &err) < 0)
		fail_msg("cannot open: %s", err.what);
	return look(trace, name);
}

static struct seen look_at_file(const char *name)
{
	struct weft_trace *trace;
	struct weft_error err = {0};
	if (weft_trace_open(&trace, path, &err) < 0)
		fail_msg("cannot open: %s", err.what);
	return look(trace, name);
}

static void put_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
	assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), size);
}

static int make_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

/* ---- Positions of packets ---- */

static void ring_is_found_at_every_offset(void **state)
{
	enum { ROOM = 40960, SIZE = 3 << 20 };
	static uint64_t memory[ROOM / 8];
	unsigned char *image = malloc(SIZE);
	assert_non_null(image);
	record(memory, sizeof memory, "name", 100, 0);
	fill(image, SIZE, 1);
	/* Offsets of the ring around the borders of a read buffer, and odd offsets, as in a saved image of a machine. */
	const size_t places[] = {64, 4096, 4097, 65537, (1 << 20) - 31, (1 << 20) - 32, (1 << 20) - 1, 1 << 20, (2 << 20) - 65,
	    (2 << 20) - 128, SIZE - ROOM};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		fill(image, SIZE, i);
		memcpy(image + places[i], memory, sizeof memory);
		struct seen seen = look_at_memory(image, SIZE, "name");
		assert_int_equal(seen.first, 0);
		assert_int_equal(seen.last, 99);
		assert_int_equal(seen.interned, 100);
		assert_int_equal(seen.events, 400);
		assert_int_equal(seen.skipped, 0);
		assert_true(seen.packets >= 3);
	}
	free(image);
}

static void ring_in_scattered_pages_is_read(void **state)
{
	enum { ALL = 4 * PAGES };
	unsigned char *image = malloc((ALL + 1) * PAGE);
	assert_non_null(image);
	record(ring, sizeof ring, "scattered", 20000, PAGE);
	struct seen whole = look_at_memory(ring, sizeof ring, "scattered");
	assert_int_equal(whole.last, 19999);
	assert_true(whole.first > 0 && whole.lost > 0);
	for (uint64_t seed = 1; seed < 6; seed++) {
		/* The pages of the ring get the first places of a random permutation of all pages. */
		int page[ALL];
		uint64_t random = seed;
		for (int i = 0; i < ALL; i++) {
			random = random * 6364136223846793005u + 1;
			int k = (int)((random >> 33) % (uint64_t)(i + 1));
			page[i] = page[k];
			page[k] = i;
		}
		fill(image, (ALL + 1) * PAGE, seed);
		for (int i = 0; i < PAGES; i++)
			memcpy(image + PAGE + page[i] * PAGE, ring + i * PAGE, PAGE);
		struct seen seen = look_at_memory(image, (ALL + 1) * PAGE, "scattered");
		assert_int_equal(seen.events, whole.events);
		assert_int_equal(seen.first, whole.first);
		assert_int_equal(seen.last, whole.last);
		assert_int_equal(seen.interned, whole.interned);
		assert_int_equal(seen.lost, whole.lost);
		assert_int_equal(seen.skipped, 0);
	}
	free(image);
}

static void definitions_that_fill_a_page_continue_in_the_next(void **state)
{
	enum { TEXTS = 400 };
	static char names[TEXTS][40];
	static struct weft_record_text texts[TEXTS];
	const struct weft_record_options options = {.buffer = ring, .buffer_bytes = sizeof ring, .packet_bytes = PAGE};
	assert_int_equal(weft_start(&options), WEFT_OK);
	for (int i = 0; i < TEXTS; i++) {
		snprintf(names[i], sizeof names[i], "a text that takes some room-%d", i);
		texts[i] = (struct weft_record_text){0, names[i]};
		weft_label_text(1, &texts[i]);
	}
	weft_stop();
	int packets = 0;
	for (size_t at = 0; at < sizeof ring; at += PAGE) {
		const struct weft_packet_header *h = (const void *)(ring + at);
		packets += h->magic == WEFT_PACKET_MAGIC && h->stream_id == WEFT_CLASS_DEFINITIONS;
	}
	/* The definitions fill all packets that are reserved for them; each further text is in the event that uses it. */
	assert_int_equal(packets, PAGES / 16);
	struct seen seen = look_at_memory(ring, sizeof ring, "a text that takes some room");
	assert_int_equal(seen.last, TEXTS - 1);
	assert_int_equal(seen.skipped, 0);
}

static void start_with_an_invalid_packet_size_is_refused(void **state)
{
	struct weft_record_options options = {.buffer = ring, .buffer_bytes = sizeof ring, .packet_bytes = 100};
	assert_int_equal(weft_start(&options), WEFT_EINVAL);
	assert_string_equal(weft_start_error(), "packets of a buffer need at least 2048 bytes, a multiple of 8");
	options.packet_bytes = 4100;
	assert_int_equal(weft_start(&options), WEFT_EINVAL);
	options.packet_bytes = sizeof ring / 2;
	assert_int_equal(weft_start(&options), WEFT_EINVAL);
	assert_string_equal(weft_start_error(), "a ring has 2 to 65536 packets");
	options.packet_bytes = PAGE;
	options.streams = PAGES;
	assert_int_equal(weft_start(&options), WEFT_EINVAL);
}

static void duplicate_packets_are_read_once(void **state)
{
	unsigned char *image = calloc(4, sizeof ring);
	assert_non_null(image);
	record(ring, sizeof ring, "twice", 300, PAGE);
	/* The image has an older state of each packet of events, and two copies of each packet. */
	memcpy(image + 64, ring, sizeof ring);
	for (size_t at = 64; at < sizeof ring; at += PAGE) {
		struct weft_packet_header *h = (struct weft_packet_header *)(void *)(image + at);
		if (h->magic == WEFT_PACKET_MAGIC && h->stream_id == WEFT_CLASS_EVENTS)
			h->content_size = sizeof *h * 8;
	}
	memcpy(image + sizeof ring + 64, ring, sizeof ring);
	memcpy(image + 2 * sizeof ring + 64, ring, sizeof ring);
	struct seen seen = look_at_memory(image, 4 * sizeof ring, "twice");
	assert_int_equal(seen.events, 1200);
	assert_int_equal(seen.last, 299);
	assert_int_equal(seen.skipped, 0);
	free(image);
}

/* ---- Other contents of an image ---- */

static struct weft_packet_header *header_of(unsigned char *memory, size_t packet)
{
	return (struct weft_packet_header *)(void *)(memory + packet * PAGE);
}

static void newest_of_several_rings_in_memory_is_read(void **state)
{
	enum { SIZE = 4 * sizeof ring };
	unsigned char *image = calloc(1, SIZE);
	struct weft_trace *trace;
	struct weft_error err;
	char uuid[2][9], wanted[200];
	assert_non_null(image);
	for (int newest = 0; newest < 2; newest++) {
		memset(image, 0, SIZE);
		/* The older ring is in front of the newer one, or behind it. */
		size_t places[] = {newest ? sizeof ring + 64 : 4096, newest ? 4096 : 2 * sizeof ring + 8};
		const char *names[] = {"old", "new"};
		for (int i = 0; i < 2; i++) {
			record(ring, sizeof ring, names[i], 100 + i, PAGE);
			const uint8_t *u = header_of(ring, 0)->uuid;
			snprintf(uuid[i], sizeof uuid[i], "%02X%02x%02x%02x", u[0], u[1], u[2], u[3]);
			memcpy(image + places[i], ring, sizeof ring);
			usleep(1000); /* gives the next ring a later start by the wall clock */
		}
		struct seen seen = look_at_memory(image, SIZE, "new");
		assert_int_equal(seen.events, 404);
		assert_int_equal(seen.skipped, 1);
		snprintf(wanted, sizeof wanted, "image: the image also contains an older ring buffer of ");
		assert_memory_equal(seen.note, wanted, strlen(wanted));
		assert_non_null(strcasestr(seen.note, uuid[0]));
		int fd = make_file();
		put_at(fd, image, SIZE, 0);
		close(fd);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(weft_trace_open_image(&trace, path, uuid[i], &err), WEFT_OK);
			assert_int_equal(look(trace, names[i]).events, 400 + 4 * i);
		}
		assert_int_equal(weft_trace_open_image(&trace, path, "", &err), WEFT_EINVAL);
		assert_string_equal(err.what, "the UUID prefix matches several ring buffers; use more digits");
		assert_int_equal(weft_trace_open_image(&trace, path, "00000000-1111-2222", &err), WEFT_EFORMAT);
		assert_string_equal(err.what, "the image contains no ring buffer with that UUID");
	}
	free(image);
}

/* Two buffers in one file, as cat writes them: the file starts with a packet, like the file of a trace. */
static void newest_ring_in_a_file_of_two_buffers_is_read(void **state)
{
	for (int newest = 0; newest < 2; newest++) {
		static unsigned char image[2 * sizeof ring];
		record(ring, sizeof ring, "old", 100, newest ? PAGE : 0);
		memcpy(image + (newest ? sizeof ring : 0), ring, sizeof ring);
		usleep(1000);
		record(ring, sizeof ring, "new", 50, newest ? 0 : PAGE);
		memcpy(image + (newest ? 0 : sizeof ring), ring, sizeof ring);
		struct seen seen = look_at_memory(image, sizeof image, "new");
		assert_int_equal(seen.events, 200);
		assert_int_equal(seen.skipped, 1);
		assert_non_null(strstr(seen.note, "an older ring"));
		int fd = make_file();
		put_at(fd, image, sizeof image, 0);
		close(fd);
		assert_int_equal(look_at_file("new").events, 200);
	}
}

/* Memory may contain a packet header without a UUID, because the recorder builds each header on its stack. */
static void packet_header_without_a_uuid_is_not_reported_as_a_ring(void **state)
{
	static _Alignas(8) unsigned char image[2 * sizeof ring];
	record(ring, sizeof ring, "name", 100, PAGE);
	memcpy(image + PAGE, ring, sizeof ring);
	struct weft_packet_header *made = (void *)(image + PAGE + sizeof ring);
	memcpy(made, ring, sizeof *made);
	memset(made->uuid, 0, sizeof made->uuid);
	struct seen seen = look_at_memory(image, sizeof image, "name");
	assert_string_equal(seen.note, "");
}

/* The UUID of the newest packet is damaged: this packet alone is no ring. */
static void packet_with_another_uuid_is_left_out_and_noted(void **state)
{
	unsigned char *image = calloc(2, sizeof ring);
	assert_non_null(image);
	record(ring, sizeof ring, "name", 300, PAGE);
	for (size_t at = sizeof ring - PAGE;; at -= PAGE) {
		struct weft_packet_header *h = (void *)(ring + at);
		if (h->magic == WEFT_PACKET_MAGIC && h->stream_id == WEFT_CLASS_EVENTS) {
			h->uuid[3] ^= 1;
			break;
		}
	}
	memcpy(image + 64, ring, sizeof ring);
	struct seen seen = look_at_memory(image, 2 * sizeof ring, "name"), alone = look_at_memory(ring, sizeof ring, "name");
	assert_true(seen.events > 1000 && seen.events < 1200);
	assert_int_equal(alone.events, seen.events);
	assert_non_null(strstr(seen.note, "the image also contains another ring buffer of 1 packet; "));
	assert_non_null(strstr(alone.note, "a packet of another trace"));
	free(image);
}

/* After a restart of the machine, a new ring overlaps an old ring, and some pages of the old one remain. */
static void remaining_pages_of_an_overwritten_ring_are_noted_but_not_read(void **state)
{
	enum { SIZE = 2 * PAGES * PAGE, NEW = PAGES / 4 };
	unsigned char *image = calloc(1, SIZE);
	assert_non_null(image);
	record(ring, sizeof ring, "old", 20000, PAGE);
	memcpy(image + PAGE, ring, sizeof ring);
	usleep(1000);
	record(image + 9 * PAGE, NEW * PAGE, "new", 50, PAGE);
	struct seen seen = look_at_memory(image, SIZE, "new");
	assert_int_equal(seen.events, 200);
	assert_int_equal(seen.skipped, 1);
	assert_non_null(
	    strstr(seen.note, "the image also contains an older ring buffer of 45 packets; to extract it: weft save --ring="));
	free(image);
}

static void damaged_packet_of_a_ring_loses_only_its_own_events(void **state)
{
	unsigned char *image = malloc(sizeof ring + 128);
	assert_non_null(image);
	record(ring, sizeof ring, "torn", 300, PAGE);
	const size_t first = 4, damaged = 6; /* page 0 has the metadata, pages 1 to 4 have the definitions */
	for (int kind = 0; kind < 4; kind++) {
		memset(image, 0, 128);
		memcpy(image + 64, ring, sizeof ring);
		struct weft_packet_header *h = (struct weft_packet_header *)(void *)(image + 64 + damaged * PAGE);
		assert_int_equal(h->stream_id, WEFT_CLASS_EVENTS);
		size_t size = sizeof ring + 128;
		switch (kind) {
		case 0: h->lock |= 1; break;
		case 1: h->content_size = h->packet_size + 8; break;
		case 2: memset(image + 64 + damaged * PAGE + 1000, 0xee, 2000); break;
		case 3: size = 64 + damaged * PAGE + 1000; break;
		default: break;
		}
		struct weft_trace *trace;
		const struct weft_event *events;
		size_t count, all = 0;
		assert_int_equal(weft_trace_open_memory(&trace, image, size, "image", NULL), WEFT_OK);
		while (weft_trace_next(trace, &events, &count) == 1)
			all += count;
		const struct weft_trace_info *info = weft_trace_info(trace);
		assert_true(all > 40 * (damaged - first) && all < 1200);
		if (kind == 3) {
			char text[640];
			weft_error_format(&info->skipped[0].where, text, sizeof text);
			assert_string_equal(text, "image: the packet is cut off (offset 0x6428)");
		}
		weft_trace_close(trace);
	}
	free(image);
}

/* The header of a packet may claim any size; the reader copies only existing bytes. */
static void packets_with_huge_claimed_sizes_are_skipped(void **state)
{
	int fd = make_file();
	record(ring, sizeof ring, "much", 100, PAGE);
	assert_int_equal(ftruncate(fd, (off_t)16 << 30), 0);
	struct weft_packet_header *h = header_of(ring, 5);
	assert_int_equal(h->stream_id, WEFT_CLASS_EVENTS);
	h->packet_size = h->content_size = (uint64_t)UINT32_MAX / 8 * 64;
	for (uint64_t i = 0; i < 4096; i++) {
		h->sequence = i;
		put_at(fd, h, PAGE, (i << 22) + PAGE);
	}
	struct weft_trace *trace;
	struct weft_error err;
	assert_int_equal(weft_trace_open(&trace, path, &err), WEFT_OK);
	const struct weft_event *events;
	size_t count;
	while (weft_trace_next(trace, &events, &count) == 1)
		assert_true(count > 0);
	assert_true(weft_trace_info(trace)->skipped_count >= 4096);
	weft_trace_close(trace);
	close(fd);
}

/* ---- Files ---- */

static void ring_in_a_sparse_file_of_64_gib_is_read(void **state)
{
	const uint64_t size = (uint64_t)64 << 30;
	int fd = make_file();
	record(ring, sizeof ring, "sparse", 2000, PAGE);
	struct seen whole = look_at_memory(ring, sizeof ring, "sparse");
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	for (uint64_t i = 0; i < PAGES; i++)
		put_at(fd, ring + i * PAGE, PAGE, size - (i + 1) * (size / PAGES));
	struct timespec begin, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	struct seen seen = look_at_file("sparse");
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	assert_int_equal(seen.events, whole.events);
	assert_int_equal(seen.interned, whole.interned);
	assert_int_equal(seen.skipped, 0);
	printf("64 GiB, %d pages in it: %.3f s of CPU\n", PAGES,
	    (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	close(fd);
}

static void image_without_a_ring_is_refused(void **state)
{
	enum { SIZE = 1 << 20 };
	unsigned char *image = malloc(SIZE);
	struct weft_trace *trace;
	struct weft_error err;
	fill(image, SIZE, 7);
	int fd = make_file();
	put_at(fd, image, SIZE, 0);
	assert_int_equal(weft_trace_open(&trace, path, &err), WEFT_EFORMAT);
	assert_string_equal(err.what, "not a trace in a format that weft reads");
	assert_int_equal(weft_trace_open_memory(&trace, image, SIZE, "image", &err), WEFT_EFORMAT);
	assert_int_equal(weft_trace_open_image(&trace, "/dev/null", NULL, &err), WEFT_EFORMAT);
	assert_int_equal(weft_trace_open_image(&trace, "/nothing/there", NULL, &err), WEFT_ENOENT);
	close(fd);
	free(image);
}

/* ---- Core dumps ---- */

/* The core dump has the ring at address 0x10000000; each page is a segment of its own, at another place of the file. */
static void ring_across_segments_of_a_core_dump_is_read(void **state)
{
	enum { BASE = 0x10000000 };
	for (int bits = 32; bits <= 64; bits += 32) {
		static uint64_t memory[PAGES * PAGE / 8];
		record(memory, sizeof memory, "core", 500, 0);
		int fd = make_file();
		Elf64_Ehdr big = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		    .e_type = ET_CORE,
		    .e_phoff = sizeof big,
		    .e_phentsize = sizeof(Elf64_Phdr),
		    .e_phnum = PAGES};
		Elf32_Ehdr small = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB},
		    .e_type = ET_CORE,
		    .e_phoff = sizeof small,
		    .e_phentsize = sizeof(Elf32_Phdr),
		    .e_phnum = PAGES};
		put_at(fd, bits == 64 ? (void *)&big : &small, bits == 64 ? sizeof big : sizeof small, 0);
		for (uint64_t i = 0; i < PAGES; i++) {
			/* The segments are of pages 0, 37, 74, ..., at odd offsets in the file. */
			uint64_t page = i * 37 % PAGES, offset = 8192 + (PAGES - i) * (PAGE + 3);
			Elf64_Phdr p64 = {.p_type = PT_LOAD,
			    .p_offset = offset,
			    .p_vaddr = BASE + page * PAGE,
			    .p_filesz = PAGE,
			    .p_memsz = PAGE};
			Elf32_Phdr p32 = {.p_type = PT_LOAD,
			    .p_offset = (uint32_t)offset,
			    .p_vaddr = (uint32_t)(BASE + page * PAGE),
			    .p_filesz = PAGE,
			    .p_memsz = PAGE};
			if (bits == 64)
				put_at(fd, &p64, sizeof p64, sizeof big + i * sizeof p64);
			else
				put_at(fd, &p32, sizeof p32, sizeof small + i * sizeof p32);
			put_at(fd, (unsigned char *)memory + page * PAGE, PAGE, offset);
		}
		struct seen seen = look_at_file("core");
		assert_int_equal(seen.events, 2000);
		assert_int_equal(seen.skipped, 0);
		close(fd);
	}
}

/* Opens core dumps whose headers have wrong values. */
static void damaged_core_dump_does_not_crash_the_reader(void **state)
{
	enum { SIZE = 1 << 16 };
	unsigned char *image = malloc(SIZE);
	static uint64_t memory[16384 / 8];
	struct weft_trace *trace;
	assert_non_null(image);
	record(memory, sizeof memory, "core", 10, 0);
	for (uint64_t seed = 0; seed < 400; seed++) {
		fill(image, SIZE, seed);
		memcpy(image + 32768, memory, sizeof memory);
		Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		    .e_type = ET_CORE,
		    .e_phoff = seed % 5 ? sizeof h : UINT64_MAX - seed,
		    .e_shoff = seed % 3 ? 128 : UINT64_MAX - seed,
		    .e_phentsize = seed % 7 ? sizeof(Elf64_Phdr) : 1,
		    .e_phnum = seed % 4 ? 8 : 0xffff};
		memcpy(image, &h, sizeof h);
		for (size_t i = 0; i < 8; i++) {
			Elf64_Phdr p;
			memcpy(&p, image + sizeof h + i * sizeof p, sizeof p);
			p.p_type = (seed >> i) & 1 ? PT_LOAD : PT_NOTE;
			if ((seed + i) % 3)
				p.p_offset %= SIZE;
			if ((seed + i) % 4)
				p.p_filesz %= SIZE;
			if ((seed + i) % 5)
				p.p_vaddr %= SIZE;
			memcpy(image + sizeof h + i * sizeof p, &p, sizeof p);
		}
		if (weft_trace_open_memory(&trace, image, SIZE, "core", NULL) == WEFT_OK)
			weft_trace_close(trace);
	}
	free(image);
}

/* ---- Processes ---- */

/* Forks a child that records into memory like WEFT_TRACE=memory, and then waits. */
static pid_t hang(void *memory, size_t bytes, int count)
{
	int ready[2];
	char c;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		struct weft_record_options options = {.buffer = memory, .buffer_bytes = bytes};
		bool ok = weft_start(&options) == WEFT_OK;
		for (int i = 0; i < count; i++) {
			char label[64];
			snprintf(label, sizeof label, "hung-%d", i);
			weft_label(WEFT_CREATE(WEFT_KIND_REQUEST), label);
		}
		if (write(ready[1], "", ok) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void hung_process_is_read(void **state)
{
	const size_t bytes = (size_t)8 << 30;
	struct weft_trace *trace;
	struct weft_error err;
	for (int shared = 0; shared < 2; shared++) {
		/* The process has reserved 8 GiB of memory that it never touched, beside the ring. */
		void *empty = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		void *memory =
		    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
		assert_true(empty != MAP_FAILED && memory != MAP_FAILED);
		pid_t child = hang(memory, 1 << 20, 1000);
		int status = weft_trace_open_process(&trace, child, NULL, &err);
		if (status == WEFT_EACCES)
			print_message("not allowed here: %s\n", err.what);
		else
			assert_int_equal(status, WEFT_OK);
		end(child);
		if (status == WEFT_OK) {
			assert_int_equal(weft_trace_info(trace)->pid, child);
			struct seen seen = look(trace, "hung");
			assert_int_equal(seen.events, 2000);
			assert_int_equal(seen.last, 999);
			/* The memory of the child also has remains of rings of other tests. */
			assert_true(!seen.skipped || strstr(seen.note, "the image also contains "));
		}
		munmap(empty, bytes);
		munmap(memory, 1 << 20);
	}
}

static void process_without_a_ring_is_refused(void **state)
{
	struct weft_trace *trace;
	struct weft_error err;
	char text[512];
	int until_exec[2];
	assert_int_equal(pipe2(until_exec, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	/* Waits for the exec: before it, the child is a copy of this process, which has rings in its memory. */
	close(until_exec[1]);
	assert_int_equal(read(until_exec[0], text, 1), 0);
	close(until_exec[0]);
	assert_int_equal(weft_trace_open_process(&trace, child, NULL, &err), WEFT_EFORMAT);
	end(child);
	assert_non_null(strstr(err.what, "is not recording: its memory contains no ring buffer"));
	assert_int_equal(weft_trace_open_process(&trace, child, NULL, &err), WEFT_ENOENT);
	weft_error_format(&err, text, sizeof text);
	assert_memory_equal(text, "no process ", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ring_is_found_at_every_offset),
	    cmocka_unit_test(ring_in_scattered_pages_is_read),
	    cmocka_unit_test(definitions_that_fill_a_page_continue_in_the_next),
	    cmocka_unit_test(start_with_an_invalid_packet_size_is_refused),
	    cmocka_unit_test(duplicate_packets_are_read_once),
	    cmocka_unit_test_setup_teardown(newest_of_several_rings_in_memory_is_read, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(newest_ring_in_a_file_of_two_buffers_is_read, set_up, tear_down),
	    cmocka_unit_test(packet_header_without_a_uuid_is_not_reported_as_a_ring),
	    cmocka_unit_test(packet_with_another_uuid_is_left_out_and_noted),
	    cmocka_unit_test(remaining_pages_of_an_overwritten_ring_are_noted_but_not_read),
	    cmocka_unit_test(damaged_packet_of_a_ring_loses_only_its_own_events),
	    cmocka_unit_test_setup_teardown(packets_with_huge_claimed_sizes_are_skipped, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(ring_in_a_sparse_file_of_64_gib_is_read, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(image_without_a_ring_is_refused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(ring_across_segments_of_a_core_dump_is_read, set_up, tear_down),
	    cmocka_unit_test(damaged_core_dump_does_not_crash_the_reader),
	    cmocka_unit_test(hung_process_is_read),
	    cmocka_unit_test(process_without_a_ring_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
