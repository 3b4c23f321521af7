/* export_test.c: an exported trace reads back equal, and every dropped event is counted. SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "export/export.h"
#include "export/otlp.h"
#include "export/scrub.h"
#include "export/tar.h"
#include "model/live_state.h"
#include "trace/format.h"

#define STR(literal)                                                                                                             \
	{                                                                                                                        \
		literal, sizeof(literal) - 1                                                                                     \
	}
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- A trace whose events come from the test, in two batches ---- */

struct given {
	const struct weft_event *events;
	size_t count, at;
	int end; /* return value of next() after the events */
};

static int given_next(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct given *given = trace->state;
	if (given->at == given->count)
		return given->end;
	*events = given->events + given->at;
	*count = given->at == 0 && given->count > 1 ? given->count / 2 : given->count - given->at;
	given->at += *count;
	return 1;
}

static const struct weft_trace_format given_format = {.name = "given", .next = given_next};

static struct weft_trace give(struct given *given, const struct weft_event *events, size_t count)
{
	static const struct weft_site sites[] = {
	    {.file = STR("a.c"), .function = STR("f"), .line = 12}, {.file = STR("b.c"), .function = STR("")}};
	static const struct weft_stream_info streams[] = {{.name = STR("main"), .tid = 7},
	    {.name = STR("a worker with a long name"), .tid = 8, .lost_full = 3, .lost_overwritten = 5}};
	*given = (struct given){events, count, 0, 0};
	return (struct weft_trace){
	    .format = &given_format,
	    .state = given,
	    .info =
		{
		    .format = "given",
		    .host = STR("host"),
		    .process = STR("process"),
		    .command = STR("process --option \"x\""),
		    .pid = 4711,
		    .clock_origin_ns = 1700000000000000000,
		    .has_origin = true,
		    .streams = streams,
		    .stream_count = COUNT(streams),
		    .sites = sites,
		    .site_count = COUNT(sites),
		},
	};
}

#define NO .site = WEFT_NO_SITE

/* Every operation, with ids, values and texts of every length. */
static const struct weft_event all[] = {
    {.time_ns = 1000, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_TASK, .site = 0},
    {.time_ns = 1001, .op = WEFT_OP_RUN, .a = 1, NO},
    {.time_ns = 1002, .op = WEFT_OP_CREATE, .a = 1, .b = INT64_MAX, .kind = 77, .site = 1},
    {.time_ns = 1003, .op = WEFT_OP_LABEL, .a = 1, .text = STR("name"), NO},
    {.time_ns = 1003, .op = WEFT_OP_LABEL, .a = 1, .text = STR(""), NO},
    {.time_ns = 1004,
	.op = WEFT_OP_LABEL,
	.a = 1,
	.text = STR("a text that is longer than those that get a key, which have 64 bytes"),
	NO},
    {.time_ns = 1005, .op = WEFT_OP_SHOULD_RESOLVE, .a = 1, NO},
    {.time_ns = 1006, .op = WEFT_OP_AWAIT, .a = 1, .b = INT64_MAX, NO},
    {.time_ns = 1007, .op = WEFT_OP_COUNTER, .a = 1, .value = INT64_MIN, .text = STR("counter"), NO},
    {.time_ns = 1008, .op = WEFT_OP_COUNTER_ADD, .a = 1, .value = -1, .text = STR("counter"), NO},
    {.time_ns = 1009, .op = WEFT_OP_SIGNAL, .a = 1, .b = 2, NO},
    {.time_ns = 1010, .op = WEFT_OP_SIGNAL_ONLY, .a = 2, .b = 1, NO},
    {.time_ns = 1011, .op = WEFT_OP_RESOLVE, .a = 2, .b = INT64_MAX, NO},
    {.time_ns = 1012, .op = WEFT_OP_READ, .a = 1, .b = INT64_MAX, NO},
    {.time_ns = 1013, .op = WEFT_OP_READ_LATER, .a = 2, .b = INT64_MAX, NO},
    {.time_ns = 5000000000, .op = WEFT_OP_PAUSE, .value = 100, .text = STR("gc"), NO},
    {.time_ns = 5000000001, .op = WEFT_OP_BECOME, .a = 1, .b = 2, NO},
    {.time_ns = INT64_C(5) << 32, .op = WEFT_OP_FAIL, .a = 2, .b = 2, .text = STR("error"), NO},
    /* mirage cannot represent these events */
    {.time_ns = INT64_C(6) << 32, .op = WEFT_OP_IDLE, .value = WEFT_IDLE_SUSPEND, NO},
    {.time_ns = INT64_C(7) << 32, .op = WEFT_OP_RESUME, .a = 1, NO},
    {.time_ns = INT64_C(7) << 32, .op = WEFT_OP_NOTE, .a = 1, .text = STR("note"), NO},
    {.time_ns = INT64_C(8) << 32, .op = WEFT_OP_PAUSE_BEGIN, .text = STR("page fault"), .stream = 1, NO},
    {.time_ns = (INT64_C(8) << 32) + 5, .op = WEFT_OP_PAUSE_END, .stream = 1, NO},
    {.time_ns = (INT64_C(8) << 32) + 6, .op = WEFT_OP_PAUSE_END, .stream = 1, NO},
    {.time_ns = INT64_C(9) << 32,
	.op = WEFT_OP_PENDING,
	.a = 1,
	.b = 3,
	.value = 1002,
	.kind = WEFT_KIND_TIMER,
	.site = 1,
	.text = STR("x")},
    {.time_ns = INT64_C(9) << 32, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 3, NO},
    {.time_ns = INT64_C(9) << 32, .op = WEFT_OP_PAUSE_BEGIN, .text = STR("gc"), NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_BELONGS, .a = 1, .b = 3, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_AWAITS_NO_MORE, .a = 1, .b = 3, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_HOLD, .a = 1, .b = 3, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_RELEASE, .a = 1, .b = INT64_MIN, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_LEVEL, .a = 1, .value = INT64_MIN, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_SENT, .a = 1, .value = UINT32_MAX, NO},
    {.time_ns = INT64_C(10) << 32, .op = WEFT_OP_RECEIVED, .a = 1, .value = 0, NO},
    {.time_ns = INT64_C(10) << 32,
	.op = WEFT_OP_DETAIL,
	.a = 1,
	.value = INT64_MAX,
	.kind = WEFT_DETAIL_BLOCKED,
	.text = STR("poll"),
	NO},
};
enum { MIRAGE_KNOWS = 18 };

/* ---- Output buffer ---- */

struct output {
	char *bytes;
	size_t size, room; /* writing fails beyond `room` */
	const char *dir;   /* directory of a native trace */
	size_t files;
};

static int write_bytes(void *ctx, const void *bytes, size_t size)
{
	struct output *out = ctx;
	if (out->size + size > out->room)
		return -1;
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
	return 0;
}

static int write_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct output *out = ctx;
	char path[512];
	if (out->size + size > out->room)
		return -1;
	out->size += size;
	out->files++;
	if (!out->dir)
		return 0;
	snprintf(path, sizeof path, "%s/%s", out->dir, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	return 0;
}

static void assert_same_event(const struct weft_event *a, const struct weft_event *b)
{
	assert_int_equal(a->op, b->op);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->a, b->a);
	assert_int_equal(a->b, b->b);
	assert_int_equal(a->value, b->value);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->stream, b->stream);
	assert_int_equal(a->site, b->site);
	assert_int_equal(a->text.len, b->text.len);
	if (a->text.len > 0)
		assert_memory_equal(a->text.ptr, b->text.ptr, a->text.len);
}

static void assert_reads_as(struct weft_trace *trace, const struct weft_event *events, size_t count)
{
	const struct weft_event *got;
	size_t got_count, at = 0;
	int status;
	while ((status = weft_trace_next(trace, &got, &got_count)) > 0)
		for (size_t i = 0; i < got_count; i++, at++) {
			assert_true(at < count);
			assert_same_event(&got[i], &events[at]);
		}
	assert_int_equal(status, 0);
	assert_int_equal(at, count);
	assert_int_equal(weft_trace_info(trace)->skipped_count, 0);
}

static char buffer[5 << 20];

static void mirage_keeps_supported_events(void **state)
{
	struct weft_event wanted[MIRAGE_KNOWS];
	struct given given;
	struct weft_trace trace = give(&given, all, MIRAGE_KNOWS), *again;
	struct output out = {.bytes = buffer, .room = sizeof buffer};
	struct weft_losses losses;
	assert_int_equal(weft_export_mirage(&trace, write_bytes, &out, &losses, NULL), WEFT_OK);
	for (int i = 0; i < WEFT_LOSS_COUNT; i++)
		assert_int_equal(losses.counts[i], i == WEFT_LOSS_SITE ? 2 : 0);
	memcpy(wanted, all, sizeof wanted);
	wanted[0].site = wanted[2].site = WEFT_NO_SITE;
	assert_int_equal(weft_trace_open_memory(&again, out.bytes, out.size, "test", NULL), WEFT_OK);
	assert_reads_as(again, wanted, MIRAGE_KNOWS);
	weft_trace_close(again);
}

static void mirage_counts_dropped_events(void **state)
{
	struct given given;
	struct weft_trace trace = give(&given, all + MIRAGE_KNOWS, COUNT(all) - MIRAGE_KNOWS), *again;
	struct output out = {.bytes = buffer, .room = sizeof buffer};
	struct weft_losses losses;
	assert_int_equal(weft_export_mirage(&trace, write_bytes, &out, &losses, NULL), WEFT_OK);
	static const uint64_t wanted[WEFT_LOSS_COUNT] = {
	    [WEFT_LOSS_NOTE] = 1,
	    [WEFT_LOSS_PENDING] = 2,
	    [WEFT_LOSS_SITE] = 1,
	    [WEFT_LOSS_STREAM] = 3,
	    [WEFT_LOSS_SLEEP] = 1,
	    [WEFT_LOSS_PAUSE] = 1,
	    [WEFT_LOSS_OTHER] = 8,
	    [WEFT_LOSS_PAUSE_OPEN] = 2, /* one without a start, one without an end */
	};
	for (int i = 0; i < WEFT_LOSS_COUNT; i++) {
		assert_int_equal(losses.counts[i], wanted[i]);
		assert_non_null(weft_loss_text((enum weft_loss)i));
	}
	static const struct weft_event events[] = {
	    {.time_ns = INT64_C(6) << 32, .op = WEFT_OP_RUN, .a = -1, NO},
	    {.time_ns = INT64_C(7) << 32, .op = WEFT_OP_RUN, .a = 1, NO},
	    {.time_ns = (INT64_C(8) << 32) + 5, .op = WEFT_OP_PAUSE, .value = 5, .text = STR("gc"), NO},
	};
	assert_int_equal(weft_trace_open_memory(&again, out.bytes, out.size, "test", NULL), WEFT_OK);
	assert_reads_as(again, events, COUNT(events));
	weft_trace_close(again);
}

/* Texts that need packets of their own, and many packets. */
static void long_texts_are_kept(void **state)
{
	static char text[300000];
	static struct weft_event events[40];
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i < COUNT(events); i++)
		events[i] = (struct weft_event){.time_ns = (int64_t)i,
		    .op = WEFT_OP_LABEL,
		    .a = 1,
		    .text = {text, i % 2 ? 30000 : (uint32_t)(i * 5000)},
		    .site = WEFT_NO_SITE};
	struct given given;
	struct weft_trace trace = give(&given, events, COUNT(events)), *again;
	struct output out = {.bytes = buffer, .room = sizeof buffer};
	struct weft_losses losses;
	assert_int_equal(weft_export_mirage(&trace, write_bytes, &out, &losses, NULL), WEFT_OK);
	assert_int_equal(weft_trace_open_memory(&again, out.bytes, out.size, "test", NULL), WEFT_OK);
	assert_true(weft_trace_info(again)->streams[0].packets > 10);
	assert_reads_as(again, events, COUNT(events));
	weft_trace_close(again);

	char dir[] = "/tmp/weft-export-test-XXXXXX", command[256];
	assert_non_null(mkdtemp(dir));
	out = (struct output){.room = SIZE_MAX, .dir = dir};
	given.at = 0;
	assert_int_equal(weft_export_native(&trace, write_file, &out, &losses, NULL), WEFT_OK);
	assert_true(out.files > 3);
	assert_int_equal(weft_trace_open(&again, dir, NULL), WEFT_OK);
	assert_reads_as(again, events, COUNT(events));
	weft_trace_close(again);
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void native_export_keeps_every_event(void **state)
{
	struct given given;
	struct weft_trace trace = give(&given, all, COUNT(all)), *again;
	char dir[] = "/tmp/weft-export-test-XXXXXX", command[256];
	assert_non_null(mkdtemp(dir));
	struct output out = {.room = SIZE_MAX, .dir = dir};
	struct weft_losses losses;
	assert_int_equal(weft_export_native(&trace, write_file, &out, &losses, NULL), WEFT_OK);
	for (int i = 0; i < WEFT_LOSS_COUNT; i++)
		assert_int_equal(losses.counts[i], 0);
	assert_int_equal(weft_trace_open(&again, dir, NULL), WEFT_OK);
	assert_reads_as(again, all, COUNT(all));

	const struct weft_trace_info *info = weft_trace_info(again);
	assert_string_equal(info->format, "native");
	assert_int_equal(info->host.len, 4);
	assert_memory_equal(info->command.ptr, trace.info.command.ptr, trace.info.command.len);
	assert_int_equal(info->pid, 4711);
	assert_true(info->has_origin);
	assert_int_equal(info->clock_origin_ns, 1700000000000000000);
	assert_int_equal(info->stream_count, 2);
	assert_int_equal(info->streams[0].tid, 7);
	assert_int_equal(info->streams[1].tid, 8);
	assert_int_equal(info->streams[1].lost_full, 3);
	assert_int_equal(info->streams[1].lost_overwritten, 5);
	assert_memory_equal(info->streams[1].name.ptr, "a worker with a", 15);
	assert_int_equal(info->site_count, 2);
	assert_int_equal(info->sites[0].line, 12);
	assert_memory_equal(info->sites[1].file.ptr, "b.c", 3);
	weft_trace_close(again);
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static int archive_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	return weft_tar_file(write_bytes, ctx, name, bytes, size, NULL);
}

/* Converts the trace to native, and opens the result. */
static struct weft_trace *convert_to_native(struct weft_trace *trace, struct weft_losses *losses)
{
	struct weft_trace *again;
	struct output out = {.bytes = buffer, .room = sizeof buffer};
	assert_int_equal(weft_export_native(trace, archive_file, &out, losses, NULL), WEFT_OK);
	assert_int_equal(weft_tar_end(write_bytes, &out, NULL), WEFT_OK);
	assert_int_equal(weft_trace_open_memory(&again, out.bytes, out.size, "test", NULL), WEFT_OK);
	return again;
}

/* The sites of the given trace have the keys 2 and 22. */
static void assert_callers(const char *stack, uint32_t stack_len, uint64_t before, const uint32_t *wanted, size_t count)
{
	static uint32_t site_of_key[23];
	static char text[5 << 20];
	uint32_t sites[100];
	const struct weft_event events[] = {{.op = WEFT_OP_LABEL, .a = 1, .text = {text, (uint32_t)before}, NO},
	    {.op = WEFT_OP_DETAIL, .a = 1, .kind = WEFT_DETAIL_STACK, .text = {stack, stack_len}, NO}};
	struct given given;
	struct weft_trace trace = give(&given, events, COUNT(events));
	struct weft_losses losses;
	memset(text, 'x', sizeof text);
	for (size_t key = 0; key < COUNT(site_of_key); key++)
		site_of_key[key] = key == 2 ? 1 : key == 22 ? 0 : WEFT_NO_SITE;
	trace.info.site_of_key = site_of_key;
	trace.info.key_count = COUNT(site_of_key);
	struct weft_trace *again = convert_to_native(&trace, &losses);
	const struct weft_event *got;
	size_t got_count;
	assert_int_equal(weft_trace_next(again, &got, &got_count), 1);
	assert_int_equal(got_count, 2);
	assert_int_equal(weft_trace_callers(weft_trace_info(again), got[1].text, sites, COUNT(sites)), count);
	assert_memory_equal(sites, wanted, count * sizeof *sites);
	assert_int_equal(weft_trace_info(again)->sites[0].line, 12);
	weft_trace_close(again);
}

static void exported_callers_keep_their_sites(void **state)
{
	assert_callers("22 2 9 0 2", 10, 0, (const uint32_t[]){0, 1, WEFT_NO_SITE, WEFT_NO_SITE, 1}, 5);
	assert_callers("", 0, 0, NULL, 0);
	/* Longer texts are cut at 256 bytes, in the middle of the 86th key. */
	char many[300];
	uint32_t sites[85] = {0};
	for (size_t i = 0; i < sizeof many; i++)
		many[i] = "22 "[i % 3];
	assert_callers(many, sizeof many, 4 << 20, sites, COUNT(sites));
}

static void trace_without_events_is_readable(void **state)
{
	static const struct weft_event events[] = {{.op = WEFT_EVENT_OTHER, NO}};
	struct given given;
	struct weft_trace trace = give(&given, events, COUNT(events));
	struct weft_losses losses;
	struct weft_trace *again = convert_to_native(&trace, &losses);
	assert_int_equal(losses.counts[WEFT_LOSS_OTHER], 1);
	assert_reads_as(again, NULL, 0);
	weft_trace_close(again);
}

/* Packets have no time before 0, and none that needs 64 bits. */
static void negative_times_move_the_clock_origin(void **state)
{
	static struct weft_event events[] = {{.time_ns = INT64_MIN, .op = WEFT_OP_RUN, .a = 1, NO},
	    {.time_ns = -1, .op = WEFT_OP_RUN, .a = 2, NO}, {.time_ns = 3, .op = WEFT_OP_RUN, .a = 3, NO}};
	for (int i = 0; i < 2; i++) {
		struct given given;
		struct weft_trace trace = give(&given, events + i, COUNT(events) - (size_t)i);
		struct weft_losses losses;
		struct weft_trace *again = convert_to_native(&trace, &losses);
		struct weft_event wanted[COUNT(events)];
		memcpy(wanted, events, sizeof wanted);
		wanted[0].time_ns = 0;
		wanted[1].time_ns = i == 0 ? INT64_MAX : 0;
		wanted[2].time_ns = i == 0 ? INT64_MAX : 4;
		assert_reads_as(again, wanted + i, COUNT(events) - (size_t)i);
		if (i == 1)
			assert_int_equal(weft_trace_info(again)->clock_origin_ns, 1699999999999999999);
		weft_trace_close(again);
	}
}

/* The reader takes zeros for unwritten bytes and skips everything after them. */
static void exported_event_with_all_bytes_0_is_kept(void **state)
{
	static const struct weft_event events[] = {{.op = WEFT_OP_CREATE, NO}, {.time_ns = 1, .op = WEFT_OP_CREATE, NO},
	    {.time_ns = INT64_C(1) << 32, .op = WEFT_OP_CREATE, NO},
	    {.time_ns = INT64_C(1) << 32, .op = WEFT_OP_RUN, .a = 1, NO}};
	struct given given;
	struct weft_trace trace = give(&given, events, COUNT(events));
	struct weft_losses losses;
	struct weft_trace *again = convert_to_native(&trace, &losses);
	assert_reads_as(again, events, COUNT(events));
	weft_trace_close(again);
}

static void exported_text_with_a_nul_counts_as_a_loss(void **state)
{
	static const struct weft_event events[] = {{.op = WEFT_OP_LABEL, .a = 1, .text = STR("a\0b"), NO}};
	struct given given;
	struct weft_trace trace = give(&given, events, 1);
	struct output out = {.bytes = buffer, .room = sizeof buffer};
	struct weft_losses losses;
	assert_int_equal(weft_export_mirage(&trace, write_bytes, &out, &losses, NULL), WEFT_OK);
	assert_int_equal(losses.counts[WEFT_LOSS_TEXT], 1);
	given.at = 0;
	assert_int_equal(weft_export_native(&trace, write_file, &out, &losses, NULL), WEFT_OK);
	assert_int_equal(losses.counts[WEFT_LOSS_TEXT], 1);
}

/* Writing, reading or an allocation fails at every possible place: the call returns an error and leaves *losses unchanged. */
static void export_reports_any_failed_write_read_or_allocation(void **state)
{
	struct weft_losses losses, before;
	struct weft_error err;
	memset(&losses, 0x55, sizeof losses);
	before = losses;
	for (int native = 0; native < 2; native++) {
		struct given given;
		struct weft_trace trace = give(&given, all, COUNT(all));
		for (size_t room = 0;; room++) {
			struct output out = {.bytes = buffer, .room = room * 64};
			given.at = 0;
			int status = native ? weft_export_native(&trace, write_file, &out, &losses, &err)
					    : weft_export_mirage(&trace, write_bytes, &out, &losses, &err);
			if (status == WEFT_OK)
				break;
			assert_int_equal(status, WEFT_EIO);
			assert_int_equal(err.status, WEFT_EIO);
			assert_memory_equal(&losses, &before, sizeof losses);
		}
		losses = before;
		for (long n = 0;; n++) {
			struct output out = {.bytes = buffer, .room = sizeof buffer};
			given.at = 0;
			allocations_left = n;
			int status = native ? weft_export_native(&trace, write_file, &out, &losses, &err)
					    : weft_export_mirage(&trace, write_bytes, &out, &losses, &err);
			allocations_left = -1;
			if (status == WEFT_OK)
				break;
			assert_int_equal(status, WEFT_ENOMEM);
			assert_memory_equal(&losses, &before, sizeof losses);
		}
		losses = before;
		given.at = 0;
		given.end = WEFT_EIO;
		struct output out = {.bytes = buffer, .room = sizeof buffer};
		assert_int_equal(native ? weft_export_native(&trace, write_file, &out, &losses, NULL)
					: weft_export_mirage(&trace, write_bytes, &out, &losses, NULL),
		    WEFT_EIO);
		assert_memory_equal(&losses, &before, sizeof losses);
	}
}

static int count_spans(void *ctx, const void *bytes, size_t size, size_t spans)
{
	(void)bytes, (void)size;
	*(size_t *)ctx += spans;
	return 0;
}

static int refuse_spans(void *ctx, const void *bytes, size_t size, size_t spans)
{
	(void)ctx, (void)bytes, (void)size, (void)spans;
	return 1;
}

static void spans_are_written_or_fail_with_enomem(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 10, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_CONNECTION, NO},
	    {.time_ns = 20, .op = WEFT_OP_CREATE, .a = 1, .b = 2, .kind = WEFT_KIND_REQUEST, NO},
	    {.time_ns = 21, .op = WEFT_OP_LABEL, .a = 2, .text = STR("GET /"), NO},
	    {.time_ns = 22,
		.op = WEFT_OP_DETAIL,
		.kind = WEFT_DETAIL_TRACE_PARENT,
		.a = 2,
		.text = STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
		NO},
	    {.time_ns = 30, .op = WEFT_OP_CREATE, .a = -1, .b = 3, .kind = WEFT_KIND_TIMER, NO},
	    {.time_ns = 40, .op = WEFT_OP_AWAIT, .a = 2, .b = 3, NO},
	    {.time_ns = 50, .op = WEFT_OP_CREATE, .a = -1, .b = 4, .kind = WEFT_KIND_TIMER, NO},
	    {.time_ns = 60, .op = WEFT_OP_RESOLVE, .a = -1, .b = 3, NO},
	    {.time_ns = 70, .op = WEFT_OP_RESOLVE, .a = -1, .b = 4, NO},
	    {.time_ns = 80, .op = WEFT_OP_RESOLVE, .a = 2, .b = 2, NO},
	};
	struct given given;
	struct weft_trace trace = give(&given, events, COUNT(events));
	struct weft_model *model;
	struct weft_losses losses;
	struct weft_otlp_stats stats;
	struct weft_error err;
	assert_int_equal(weft_model_build(&model, &trace, NULL, &err), WEFT_OK);
	struct weft_otlp_finding finding = {.utc_ns = 80, .kind = "stall", .title = "a title", .is_certain = true};
	const struct weft_otlp_options options = {
	    .version = "0", .after_utc_ns = INT64_MIN, .findings = &finding, .finding_count = 1};
	for (long n = 0;; n++) {
		size_t spans = 0;
		allocations_left = n;
		const int status = weft_export_otlp(model, &options, count_spans, &spans, &losses, &stats, &err);
		allocations_left = -1;
		if (status == WEFT_OK) {
			/* the request, the timer for which it waited, and the finding; the connection has not ended */
			assert_int_equal(spans, 3);
			assert_int_equal(stats.spans, 3);
			assert_int_equal(losses.counts[WEFT_LOSS_UNENDED], 1);
			break;
		}
		assert_int_equal(status, WEFT_ENOMEM);
	}
	assert_int_equal(weft_export_otlp(model, &options, refuse_spans, NULL, &losses, &stats, &err), WEFT_EIO);
	weft_model_destroy(model);
}

/* ---- Scrubbing ---- */

static void checkpoint_is_complete_or_fails_with_enomem(void **state)
{
	struct given given;
	struct weft_trace trace = give(&given, all, COUNT(all));
	struct weft_checkpoint told;
	for (long n = 0;; n++) {
		given.at = 0;
		allocations_left = n;
		const int status = weft_checkpoint_before(&told, &trace, INT64_MAX);
		allocations_left = -1;
		const size_t count = told.events.count;
		weft_checkpoint_free(&told);
		if (status == WEFT_OK) {
			assert_true(n > 0 && count > 0);
			break;
		}
		assert_int_equal(status, WEFT_ENOMEM);
	}
}

static void scrub(struct weft_scrub *scrub, const char *const *texts, char out[][64], size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_scrub_learn(scrub, texts[i], (uint32_t)strlen(texts[i]));
	for (size_t i = 0; i < count; i++) {
		strcpy(out[i], texts[i]);
		weft_scrub_replace(scrub, out[i], (uint32_t)strlen(out[i]));
	}
}

static void placeholders_keep_the_length_and_hide_the_text(void **state)
{
	static const char *const texts[] = {"Alice at 10.0.0.1:5123", "alice", "GET /home/alice 3ms", "a to b 1", "request 5123",
	    "Lwt.Canceled by alice", "eth0", "5123", "caf\303\251 \342\200\246", "10.0.0.1:5123", "worker1", "worker123",
	    "asleepfile4 404", "====", "c100", "d204"};
	char out[COUNT(texts)][64];
	struct weft_scrub s = {0};
	scrub(&s, texts, out, COUNT(texts));
	assert_false(s.no_memory);
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(strlen(out[i]), strlen(texts[i]));
		for (size_t k = 0; k < COUNT(texts); k++)
			assert_null(strstr(out[i], texts[k]));
		assert_null(strcasestr(out[i], "alice"));
	}
	assert_memory_equal(out[2] + 10, out[1], 5);                           /* same word */
	assert_string_equal(out[0] + 9, out[9]);                               /* same address */
	assert_memory_equal(out[5] + 4, "\342\212\230", 3);                    /* weft knows this text */
	assert_true(out[6][3] >= '0' && out[6][3] <= '9');                     /* digits stay digits */
	assert_string_equal(out[8] + 5, " \342\200\246");                      /* the mark of a cut text stays */
	assert_memory_equal(out[10], out[11], 6);                              /* same shape */
	assert_string_equal(out[12] + 11, " 404");                             /* short, and known to weft */
	assert_true(out[0][0] >= 'A' && out[0][0] <= 'Z' && out[0][5] == ' '); /* letters and spaces stay letters and spaces */
	weft_scrub_finish(&s);
	for (long n = 0;; n++) {
		s = (struct weft_scrub){0};
		allocations_left = n;
		scrub(&s, texts, out, COUNT(texts));
		allocations_left = -1;
		const bool was_enough = !s.no_memory;
		weft_scrub_finish(&s);
		assert_null(strcasestr(out[0], "alice"));
		if (was_enough)
			break;
	}
}

/* Where the texts use all numbers of one length, placeholders have letters. */
static void scrubbed_numbers_stay_distinct(void **state)
{
	enum { NUMBERS = 10000 };
	struct weft_scrub s = {0};
	char text[16];
	for (int i = 0; i < NUMBERS; i++)
		weft_scrub_learn(&s, text, (uint32_t)snprintf(text, sizeof text, "job %04d", i));
	for (int i = 0; i < NUMBERS; i++) {
		weft_scrub_replace(&s, text, (uint32_t)snprintf(text, sizeof text, "job %04d", i));
		assert_true(strspn(text + 4, "0123456789") < 4 && strspn(text + 4, "0123456789abcdef") == 4);
		assert_true(strcspn(text + 4, "0123456789") < 4);
	}
	weft_scrub_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mirage_keeps_supported_events),
	    cmocka_unit_test(mirage_counts_dropped_events),
	    cmocka_unit_test(long_texts_are_kept),
	    cmocka_unit_test(native_export_keeps_every_event),
	    cmocka_unit_test(exported_callers_keep_their_sites),
	    cmocka_unit_test(trace_without_events_is_readable),
	    cmocka_unit_test(negative_times_move_the_clock_origin),
	    cmocka_unit_test(exported_event_with_all_bytes_0_is_kept),
	    cmocka_unit_test(exported_text_with_a_nul_counts_as_a_loss),
	    cmocka_unit_test(export_reports_any_failed_write_read_or_allocation),
	    cmocka_unit_test(spans_are_written_or_fail_with_enomem),
	    cmocka_unit_test(checkpoint_is_complete_or_fails_with_enomem),
	    cmocka_unit_test(placeholders_keep_the_length_and_hide_the_text),
	    cmocka_unit_test(scrubbed_numbers_stay_distinct),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
