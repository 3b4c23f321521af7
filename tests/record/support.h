/* support.h: records into a directory of the test, and reads the trace.  SPDX-License-Identifier: ISC */
#ifndef TESTS_RECORD_SUPPORT_H
#define TESTS_RECORD_SUPPORT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "base/vec.h"
#include "trace/trace.h"

/* Each test has a folder, and records into `directory` in it. */
static char scratch[64];
static char directory[128];

static int set_up(void **state)
{
	strcpy(scratch, "/tmp/weft-record-XXXXXX");
	if (!mkdtemp(scratch))
		return -1;
	snprintf(directory, sizeof directory, "%s/trace", scratch);
	return 0;
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
			char name[512];
			snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
			if (unlink(name))
				remove_tree(name);
		}
	if (d)
		closedir(d);
	rmdir(path);
}

static int tear_down(void **state)
{
	weft_stop();
	remove_tree(scratch);
	return 0;
}

static void start(struct weft_record_options options)
{
	if (!options.buffer)
		options.directory = directory;
	int status = weft_start(&options);
	if (status < 0)
		fail_msg("%d: %s", status, weft_start_error());
}

/* A completely read trace. */
struct read_back {
	struct weft_trace *trace;
	const struct weft_trace_info *info;
	WEFT_VEC(struct weft_event) events; /* the events without those whose number depends on the load of the machine */
	WEFT_VEC(struct weft_event) rounds;
};

static void read_all(struct read_back *out)
{
	const struct weft_event *events;
	size_t count;
	int more;
	while ((more = weft_trace_next(out->trace, &events, &count)) == 1)
		for (size_t i = 0; i < count; i++) {
			bool is_load = events[i].op == WEFT_OP_DETAIL && events[i].kind == WEFT_DETAIL_ROUND;
			struct weft_event *kept = is_load ? weft_vec_push(&out->rounds) : weft_vec_push(&out->events);
			assert_non_null(kept);
			*kept = events[i];
		}
	assert_int_equal(more, 0);
	out->info = weft_trace_info(out->trace);
}

static inline struct read_back read_directory(const char *path)
{
	struct read_back out = {0};
	struct weft_error err = {0};
	if (weft_trace_open(&out.trace, path, &err) < 0)
		fail_msg("%s: %s", err.file, err.what);
	read_all(&out);
	return out;
}

static inline struct read_back read_memory(const void *bytes, size_t size)
{
	struct read_back out = {0};
	struct weft_error err = {0};
	if (weft_trace_open_memory(&out.trace, bytes, size, "memory", &err) < 0)
		fail_msg("%s: %s", err.file, err.what);
	read_all(&out);
	return out;
}

static inline void forget(struct read_back *r)
{
	weft_vec_free(&r->events);
	weft_vec_free(&r->rounds);
	weft_trace_close(r->trace);
}

static inline bool text_is(struct weft_str s, const char *expected)
{
	return s.len == strlen(expected) && memcmp(s.ptr, expected, s.len) == 0;
}

#endif
