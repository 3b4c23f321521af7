/* memory_test.c: reading and modelling when memory runs out: allocation n fails, for every n.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "allocations.h"
#include "mirage_writer.h"
#include "model/check_model.h"
#include "model/followers.h"
#include "trace/format.h"
#include "trace/source.h"

/* A trace that consists of these events, without a file. */
static struct weft_event made[1000];
static size_t made_count;
static bool is_told;

static int tell(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	if (is_told)
		return 0;
	*events = made;
	*count = made_count;
	is_told = true;
	return 1;
}

static const struct weft_trace_format told = {.name = "test", .next = tell};

static int model_of_events(struct weft_model **model, struct weft_error *err)
{
	static const struct weft_stream_info stream = {.records_all_ends = true};
	struct weft_trace trace = {.format = &told, .info = {.streams = &stream, .stream_count = 1}};
	is_told = false;
	return weft_model_build(model, &trace, NULL, err);
}

static int open_and_model(const char *path, const void *bytes, size_t size, struct weft_trace **trace, struct weft_model **model,
    struct weft_error *err)
{
	if (!path && !bytes)
		return model_of_events(model, err);
	int status = path ? weft_trace_open(trace, path, err) : weft_trace_open_memory(trace, bytes, size, "test", err);
	return status == WEFT_OK ? weft_model_build(model, *trace, NULL, err) : status;
}

static void check_equal(const struct weft_model *m, const struct weft_model *whole)
{
	check_model(m);
	assert_int_equal(m->promise_count, whole->promise_count);
	const uint32_t labels = whole->promises[whole->promise_count].labels;
	assert_int_equal(m->promises[m->promise_count].labels, labels);
	for (uint32_t i = 0; i < labels; i++) {
		char text[100], expected[100];
		weft_model_label(m, &m->labels[i], text, sizeof text);
		weft_model_label(whole, &whole->labels[i], expected, sizeof expected);
		assert_string_equal(text, expected);
	}
	assert_int_equal(m->link_count, whole->link_count);
	assert_int_equal(m->run_count, whole->run_count);
	assert_int_equal(m->pause_count, whole->pause_count);
	assert_int_equal(m->sleep_count, whole->sleep_count);
	assert_int_equal(m->await_end_count, whole->await_end_count);
	assert_int_equal(m->stack_count, whole->stack_count);
	assert_int_equal(m->spin_count, whole->spin_count);
	assert_int_equal(m->death_count, whole->death_count);
	assert_int_equal(m->message_count, whole->message_count);
	assert_int_equal(m->kernel != NULL, whole->kernel != NULL);
	assert_int_equal(m->kernel ? m->kernel->off_count : 0, whole->kernel ? whole->kernel->off_count : 0);
	assert_int_equal(m->kernel ? m->kernel->thread_count : 0, whole->kernel ? whole->kernel->thread_count : 0);
	for (size_t i = 0; i < whole->sleep_count; i++) {
		struct weft_str text = weft_model_text(m, m->sleeps[i].text),
				expected = weft_model_text(whole, whole->sleeps[i].text);
		assert_int_equal(text.len, expected.len);
		assert_memory_equal(text.ptr, expected.ptr, expected.len);
	}
}

/* Opens and models a trace while allocation 0, then 1, and so on fails, until none does.  A failed call reports the reason and
 * leaks nothing (sanitizers check that); a successful call has lost no events. */
static void run_with_failing_allocations(const char *path, const void *bytes, size_t size, bool one)
{
	struct weft_trace *whole_trace = NULL;
	struct weft_model *whole = NULL;
	long n = 0;
	assert_int_equal(open_and_model(path, bytes, size, &whole_trace, &whole, NULL), WEFT_OK);
	only_one_fails = one;
	for (bool failed = true; failed; n++) {
		struct weft_trace *trace = NULL;
		struct weft_model *model = NULL;
		struct weft_error err = {0};
		allocations_left = n;
		int status = open_and_model(path, bytes, size, &trace, &model, &err);
		failed = one ? allocations_left < 0 : status != WEFT_OK;
		allocations_left = -1;
		if (status == WEFT_OK)
			check_equal(model, whole);
		else {
			assert_int_equal(status, WEFT_ENOMEM);
			assert_int_equal(err.status, WEFT_ENOMEM);
			assert_null(model);
		}
		weft_model_destroy(model);
		weft_trace_close(trace);
	}
	weft_model_destroy(whole);
	weft_trace_close(whole_trace);
	assert_true(n > 10);
}

static void run_with_one_more_allocation_each_time(const char *path, const void *bytes, size_t size)
{
	run_with_failing_allocations(path, bytes, size, false);
	run_with_failing_allocations(path, bytes, size, true);
}

static struct mirage_writer w;

static void write_mirage(void)
{
	char name[16];
	w.size = 0;
	mw_packet(&w, 5);
	mw_create(&w, 1000, -1, 1, WEFT_KIND_TASK);
	mw_op(&w, 1001, WEFT_OP_RUN, 1);
	for (int i = 2; i < 400; i++) {
		snprintf(name, sizeof name, "name %d", i);
		mw_create(&w, 1000 + i, i - 1, i % 3 ? i : i * 1000000007LL, WEFT_KIND_BIND);
		mw_label(&w, 1000 + i, i, name);
	}
	mw_end(&w, 0);
	mw_packet(&w, 1);
	mw_create(&w, 1, -1, 2000, WEFT_KIND_BIND);
	mw_create(&w, 2, 2000, 2001, WEFT_KIND_BIND);
	mw_link(&w, 3, WEFT_OP_READ, 2000, 2001);
	mw_label(&w, 4, 2001, "__should_resolve");
	mw_text(&w, 5, WEFT_OP_COUNTER, 2001, 1, "counter");
	mw_text(&w, 6, WEFT_OP_COUNTER, 2001, 2, "counter#1");
	mw_text(&w, 7, WEFT_OP_FAIL, 2001, 2002, "error");
	mw_op(&w, 20, WEFT_OP_PAUSE, 1);
	mw_op(&w, 21, WEFT_OP_PAUSE, 15);
	mw_op(&w, 22, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
}

static void mirage_trace_survives_failed_allocations(void **state)
{
	write_mirage();
	run_with_one_more_allocation_each_time(NULL, w.bytes, w.size);
}

static void sexp_trace_survives_failed_allocations(void **state)
{
	static char text[8192];
	size_t len = 0;
	for (int i = 0; i < 100; i++)
		len +=
		    (size_t)snprintf(text + len, sizeof text - len, "((time %d)(op(Label %d \"a \\\"%d\\\"\")))\n", i, i, i % 50);
	run_with_one_more_allocation_each_time(NULL, text, len);
}

#ifndef __wasi__ /* WASI has no processes, and the core of the page no files */
static void files_survive_failed_allocations(void **state)
{
	char dir[] = "/tmp/weft-memory-test-XXXXXX", path[64], command[512];
	assert_non_null(mkdtemp(dir));
	write_mirage();
	snprintf(path, sizeof path, "%s/t.ctf", dir);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(w.bytes, 1, w.size, file), w.size);
	fclose(file);
	run_with_one_more_allocation_each_time(path, NULL, 0);
	run_with_one_more_allocation_each_time(dir, NULL, 0);
	snprintf(command, sizeof command, "cd %s && tar cf t.tar t.ctf", dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof path, "%s/t.tar", dir);
	run_with_one_more_allocation_each_time(path, NULL, 0);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}
#endif

#ifndef __wasi__
/* Refreshes several times; a refresh may fail, but with memory again, the model is complete. */
static bool look_and_look_again(const char *path, long n, uint32_t promises)
{
	struct weft_running_stats tally = {.has_label = false};
	const struct weft_follower_options options = {.stats = &tally, .stats_count = 1};
	struct weft_follower *follower = NULL;
	struct weft_error err;
	allocations_left = n;
	int status = weft_follower_open(&follower, path, &options, &err);
	for (int look = 0; look < 3 && status >= 0; look++) {
		weft_follower_mark_stale(follower);
		status = weft_follower_refresh(follower, &err);
		struct weft_followed_model *taken = status > 0 ? weft_follower_detach(follower) : NULL;
		if (taken)
			status = weft_follower_skip(follower, &err);
		weft_followed_model_destroy(taken);
	}
	const bool has_failed = only_one_fails ? allocations_left < 0 : status < 0;
	allocations_left = -1;
	assert_true(status >= 0 || (status == WEFT_ENOMEM && err.status == WEFT_ENOMEM));
	if (follower) {
		weft_follower_mark_stale(follower);
		assert_int_equal(weft_follower_refresh(follower, &err), 1);
		const struct weft_model *newest = weft_follower_model(follower);
		assert_non_null(newest);
		check_model(newest);
		assert_int_equal(tally.count, promises);
	}
	weft_follower_close(follower);
	return has_failed;
}

/* Tests failing allocations for a trace beside another trace that cannot be joined with it. */
static bool look_at_both(const char *path, long n, uint32_t promises)
{
	struct weft_running_stats tally = {.has_label = false};
	const struct weft_follower_options options = {.stats = &tally, .stats_count = 1, .begins_at_window = n & 1};
	const char *const paths[] = {path, WEFT_CORPUS "/native/sleeps"};
	struct weft_followers *followers = NULL;
	struct weft_error err;
	allocations_left = n;
	int status = weft_followers_open(&followers, &options, &err);
	for (int look = 0; look < 4 && status >= 0; look++) {
		status = weft_followers_refresh(followers, paths, look & 1 ? 1 : 2, false, &err);
		weft_followed_model_destroy(status > 0 ? weft_followers_detach(followers) : NULL);
		status = status == WEFT_EINVAL && !(look & 1) ? WEFT_OK : status;
	}
	const bool has_failed = only_one_fails ? allocations_left < 0 : status < 0;
	allocations_left = -1;
	assert_true(status >= 0 || (status == WEFT_ENOMEM && err.status == WEFT_ENOMEM));
	if (followers) {
		assert_int_equal(weft_followers_refresh(followers, paths, 2, false, &err), WEFT_EINVAL);
		assert_int_equal(weft_followers_refresh(followers, paths, 1, false, &err), 1);
		struct weft_followed_model *newest = weft_followers_detach(followers);
		assert_non_null(newest);
		check_model(newest->model);
		weft_followed_model_destroy(newest);
		assert_true(weft_followers_stats_span_ns(followers) >= 0);
		assert_int_equal(tally.count, promises);
	}
	weft_followers_close(followers);
	return has_failed;
}

static void follower_survives_failed_allocations(void **state)
{
	char dir[] = "/tmp/weft-memory-test-XXXXXX", command[512];
	struct weft_trace *trace;
	struct weft_model *model;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof command, "tar xf " WEFT_CORPUS "/native/directory -C %s", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(weft_trace_open(&trace, dir, NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
	const uint32_t promises = (uint32_t)model->promise_count - 1;
	weft_model_destroy(model);
	weft_trace_close(trace);
	for (int one = 0; one < 2; one++) {
		long n = 0;
		only_one_fails = one;
		while (look_and_look_again(dir, n, promises))
			n++;
		assert_true(n > 10);
		for (n = 0; look_at_both(dir, n, promises);)
			n++;
		assert_true(n > 100);
	}
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}
#endif

/* The first corpus files of the fuzzers: a whole directory as an archive, and consecutive packets. */
static void native_trace_survives_failed_allocations(void **state)
{
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/native/directory", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/native/packets-random-300", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/native/sleeps", NULL, 0);
}

/* Fibers in two domains, with all recorded details: names, errors, waits at a semaphore. */
static void ocaml_trace_survives_failed_allocations(void **state)
{
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/ocaml/cancelled", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/ocaml/domains", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/ocaml/hang", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/ocaml/lwt-eio", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/ocaml/lwt-server", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/fxt/two-fibers", NULL, 0);
}

static void make(enum weft_op op, int64_t a, int64_t b, uint8_t kind)
{
	struct weft_str text = {"7 8", 3};
	made[made_count] = (struct weft_event){
	    .time_ns = (int64_t)made_count, .op = op, .a = a, .b = b, .kind = kind, .text = text, .site = WEFT_NO_SITE};
	made_count++;
}

/* A trace with repeated awaits and details. */
static void details_survive_failed_allocations(void **state)
{
	static const uint8_t kinds[] = {WEFT_DETAIL_STACK, WEFT_DETAIL_SPIN, WEFT_DETAIL_DIED, WEFT_DETAIL_MESSAGE};
	enum { COUNT = 60 };
	made_count = 0;
	for (int i = 1; i <= COUNT; i++)
		make(WEFT_OP_AWAIT, i, i + 1, 0);
	for (int i = 1; i <= COUNT; i++)
		make(WEFT_OP_STILL_AWAITS, i, i + 1, 0);
	for (int i = 1; i <= COUNT; i++)
		make(WEFT_OP_AWAITS_NO_MORE, i, i + 1, 0);
	for (size_t k = 0; k < sizeof kinds; k++)
		for (int i = 1; i <= COUNT; i++)
			make(WEFT_OP_DETAIL, i, 0, kinds[k]);
	run_with_one_more_allocation_each_time(NULL, NULL, 0);
}

static void images_survive_failed_allocations(void **state)
{
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/native/kernel", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/image/two", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/image/scattered", NULL, 0);
	run_with_one_more_allocation_each_time(WEFT_CORPUS "/image/core", NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mirage_trace_survives_failed_allocations),
	    cmocka_unit_test(native_trace_survives_failed_allocations),
	    cmocka_unit_test(ocaml_trace_survives_failed_allocations),
	    cmocka_unit_test(details_survive_failed_allocations),
	    cmocka_unit_test(images_survive_failed_allocations),
	    cmocka_unit_test(sexp_trace_survives_failed_allocations),
#ifndef __wasi__
	    cmocka_unit_test(files_survive_failed_allocations),
	    cmocka_unit_test(follower_survives_failed_allocations),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
