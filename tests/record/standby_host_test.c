/* standby_host_test.c: another process requests a recording while a host (adapters/hook) starts it.  The test writes the request
 * into the shared page as another process would.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <weft/record.h>

#include "wire/standby.h"

static _Alignas(8) unsigned char buffer[1 << 17];
static unsigned gate, stops;
static const uint32_t *wakes;
static struct weft_standby *page;

static void count_stop(bool again)
{
	stops++;
}

static void request(uint64_t number, enum weft_standby_verb verb)
{
	struct weft_standby_request r = {.number = number, .verb = verb};
	r.check = weft__standby_check(&r);
	page->request = r;
}

static uint64_t read_pointer(uint64_t at)
{
	return *(const uint64_t *)(uintptr_t)at;
}

/* Records an event by the slow path, where requests are noticed. */
static void record_slowly(void)
{
	for (uint64_t thread = read_pointer(page->threads); thread; thread = read_pointer(thread + page->next_at)) {
		const uint64_t stream = read_pointer(thread + page->stream_at);
		if (stream)
			*(uint32_t *)(uintptr_t)(stream + page->limit_at) = 0;
	}
	WEFT_CREATE(WEFT_KIND_TIMER);
}

static int start(void)
{
	const struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer};
	return weft_start(&options);
}

static int stand_by(void **state)
{
	static const struct weft__standby_host host = {.gate = &gate, .gate_on = 1, .wakes = &wakes, .stopped = count_stop};
	if (sizeof(void *) != sizeof(uint64_t) || !weft__standby_as(&host))
		return -1;
	page = (struct weft_standby *)((uintptr_t)wakes - offsetof(struct weft_standby, wakes));
	return 0;
}

static void event_before_the_host_answers_does_not_stop_the_recording(void **state)
{
	struct weft_record_options options = {0};
	unsigned stacks = 0;
	request(7, WEFT_STANDBY_ON);
	assert_true(weft__standby_asked(&options, &stacks));
	assert_int_equal(start(), WEFT_OK);
	/* Another OS thread may record an event before the host answers. */
	record_slowly();
	assert_int_equal(stops, 0);
	weft__standby_answer(WEFT_OK, "");
	assert_int_equal(page->answer.number, 7);
	assert_true(page->answer.is_on);
	record_slowly();
	assert_true(weft_is_on());

	request(8, WEFT_STANDBY_OFF);
	record_slowly();
	assert_int_equal(page->answer.number, 8);
	assert_int_equal(stops, 1);
	assert_false(page->answer.is_on);
	assert_false(weft_is_on());
}

static void stop_request_during_the_start_is_answered_after_the_start(void **state)
{
	struct weft_record_options options = {0};
	unsigned stacks = 0;
	request(17, WEFT_STANDBY_ON);
	assert_true(weft__standby_asked(&options, &stacks));
	request(18, WEFT_STANDBY_OFF);
	assert_int_equal(start(), WEFT_OK);
	weft__standby_answer(WEFT_OK, "");
	assert_int_equal(page->answer.number, 17);
	assert_true(weft_is_on());
	record_slowly();
	assert_int_equal(page->answer.number, 18);
	assert_false(weft_is_on());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(event_before_the_host_answers_does_not_stop_the_recording),
	    cmocka_unit_test(stop_request_during_the_start_is_answered_after_the_start),
	};
	return cmocka_run_group_tests(tests, stand_by, NULL);
}
