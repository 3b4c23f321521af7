/* base_test.c: vectors, maps, interned strings, cursors, UTF-8.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cursor.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/utf8.h"
#include "base/vec.h"

static void vec_grows_and_keeps(void **state)
{
	WEFT_VEC(int) v = {0};
	for (int i = 0; i < 1000; i++) {
		int *added = weft_vec_push(&v);
		assert_non_null(added);
		*added = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v.items[i], i);
	assert_true(weft_vec_reserve(&v, 5000));
	assert_true(v.capacity >= 6000);
	weft_vec_free(&v);
	assert_null(v.items);
	assert_int_equal(v.capacity, 0);
}

static void vec_refuses_what_no_memory_has(void **state)
{
	WEFT_VEC(uint64_t) v = {0};
	assert_non_null(weft_vec_push(&v));
	uint64_t *items = v.items;
	size_t capacity = v.capacity;
	assert_false(weft_vec_reserve(&v, SIZE_MAX / 2));
	assert_false(weft_vec_reserve(&v, SIZE_MAX / 8 + 1));
	assert_ptr_equal(v.items, items);
	assert_int_equal(v.capacity, capacity);
	assert_int_equal(v.count, 1);
	weft_vec_free(&v);
}

static void idmap_knows_what_it_was_given(void **state)
{
	static const int64_t ids[] = {0, 1, 2, 5000, -2, INT64_MIN, INT64_MAX, 1LL << 40, (1LL << 40) + 1, 70000, 4000000000};
	struct weft_idmap map = {0};
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), WEFT_IDMAP_NONE);
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_true(weft_idmap_set(&map, ids[i], i));
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), i);
	assert_int_equal(weft_idmap_get(&map, 3), WEFT_IDMAP_NONE);
	assert_int_equal(weft_idmap_get(&map, -1), WEFT_IDMAP_NONE);
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_true(weft_idmap_set(&map, ids[i], i + 100));
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(weft_idmap_get(&map, ids[i]), i + 100);
	weft_idmap_finish(&map);
}

/* Ids in a row, in rows far apart, spread wide, downwards: all are found, and those in a row take little memory. */
static void idmap_holds_any_pattern(void **state)
{
	for (int pattern = 0; pattern < 5; pattern++) {
		struct weft_idmap map = {0};
		uint32_t count = 50000;
#define ID(i)                                                                                                                    \
	(pattern == 0      ? (int64_t)(i) + 7                                                                                    \
	    : pattern == 1 ? (int64_t)((i) < 3 ? (i) : (i) + 4000000000u)                                                        \
	    : pattern == 2 ? (int64_t)((uint64_t)(i)*0x9e3779b97f4a7c15u)                                                        \
	    : pattern == 3 ? 1000000000 - (int64_t)(i)                                                                           \
			   : (int64_t)((i) % 2 ? (i) : (i) + (1LL << 50)))
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(weft_idmap_get(&map, ID(i)), WEFT_IDMAP_NONE);
			assert_true(weft_idmap_set(&map, ID(i), i));
		}
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(weft_idmap_get(&map, ID(i)), i);
		if (pattern < 2)
			assert_true(map.near_used > count / 2);
		assert_true(map.near_capacity <= (size_t)count * 8);
		weft_idmap_finish(&map);
#undef ID
	}
}

static void intern_gives_equal_strings_one_number(void **state)
{
	struct weft_intern table = {0};
	char texts[500][12];
	for (int i = 0; i < 500; i++) {
		int len = snprintf(texts[i], sizeof texts[i], "label %d", i);
		assert_int_equal(weft_intern(&table, (struct weft_str){texts[i], (uint32_t)len}), i);
	}
	char copy[] = "label 77";
	assert_int_equal(weft_intern(&table, (struct weft_str){copy, 8}), 77);
	assert_int_equal(weft_intern(&table, (struct weft_str){copy, 7}), 7);
	assert_int_equal(weft_intern(&table, (struct weft_str){"", 0}), 500);
	assert_int_equal(weft_intern(&table, (struct weft_str){"a\0b", 3}), 501);
	assert_int_equal(weft_intern(&table, (struct weft_str){"a\0c", 3}), 502);
	assert_int_equal(table.texts.count, 503);
	weft_intern_finish(&table);
}

static void cursor_never_passes_the_end(void **state)
{
	const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 0x80, 'h', 'i', 0, 'x'};
	struct weft_cursor c = {bytes, bytes + sizeof bytes};
	struct weft_str text;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;
	assert_true(weft_read_u64(&c, &u64));
	assert_true(u64 == 0x0807060504030201u);
	assert_false(weft_read_u64(&c, &u64));
	assert_true(weft_read_u8(&c, &u8));
	assert_int_equal(u8, 0x80);
	assert_true(weft_read_string(&c, &text));
	assert_int_equal(text.len, 2);
	assert_memory_equal(text.ptr, "hi", 2);
	assert_false(weft_read_string(&c, &text));
	assert_false(weft_read_u16(&c, &u16));
	assert_false(weft_read_u32(&c, &u32));
	assert_int_equal(weft_cursor_left(&c), 1);
	assert_true(weft_read_u8(&c, &u8));
	assert_false(weft_read_u8(&c, &u8));
	c = (struct weft_cursor){bytes, bytes + 6};
	assert_true(weft_read_u16(&c, &u16) && u16 == 0x0201);
	assert_true(weft_read_u32(&c, &u32) && u32 == 0x06050403);
	assert_false(weft_read_string(&c, &text));
}

static void utf8_is_valid_and_cut_at_characters(void **state)
{
	static const struct {
		const char *from;
		uint32_t len;
		const char *to;
	} cases[] = {
	    {"plain", 5, "plain"},
	    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xA9", 9, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x92\xA9"},
	    {"a\xFFz", 3, "a\xEF\xBF\xBDz"},
	    {"a\0z", 3, "a\xEF\xBF\xBDz"},
	    {"\xC3", 1, "\xEF\xBF\xBD"},
	    {"\xC0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xF4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"\xE0\x9F\xBFx", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx"},
	    {"", 0, ""},
	};
	char buf[32];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct weft_str text = {cases[i].from, cases[i].len};
		assert_int_equal(weft_utf8_copy(buf, sizeof buf, text), strlen(cases[i].to));
		assert_string_equal(buf, cases[i].to);
		assert_int_equal(weft_utf8_copy(NULL, 0, text), strlen(cases[i].to));
	}
	assert_int_equal(weft_utf8_copy(buf, 4, (struct weft_str){"ab\xE2\x82\xAC", 5}), 5);
	assert_string_equal(buf, "ab");
	assert_int_equal(weft_utf8_copy(buf, 4, (struct weft_str){"\xE2\x82\xAC\xE2\x82\xAC", 6}), 6);
	assert_string_equal(buf, "\xE2\x82\xAC");
}

static void errors_say_where(void **state)
{
	struct weft_error err;
	char text[200];
	assert_int_equal(weft_error_set(&err, WEFT_EDAMAGED, "%d bytes are missing", 3), WEFT_EDAMAGED);
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "3 bytes are missing");
	strcpy(err.file, "a.ctf");
	err.packet = 3;
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "a.ctf: 3 bytes are missing (packet 3)");
	err.offset = 0x3d41e;
	weft_error_format(&err, text, sizeof text);
	assert_string_equal(text, "a.ctf: 3 bytes are missing (packet 3, offset 0x3d41e)");
	err.packet = WEFT_NO_OFFSET;
	assert_int_equal(weft_error_format(&err, text, 8), strlen("a.ctf: 3 bytes are missing (offset 0x3d41e)"));
	assert_string_equal(text, "a.ctf: ");
	assert_int_equal(weft_error_set(NULL, WEFT_EIO, "nobody listens"), WEFT_EIO);
	assert_string_equal(weft_status_string(WEFT_ENOMEM), "out of memory");
	assert_string_equal(weft_status_string(-1000), "unknown status");
}

static void test_durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
	} times[] = {{"0", 0}, {"1ns", 1}, {"1.5us", 1500}, {"1.5\xc2\xb5s", 1500}, {"30ms", 30000000}, {".5s", 500000000},
	    {"5.s", 5000000000}, {"1.23456789012s", 1234567890}, {"9223372036.854775807s", INT64_MAX}};
	static const char *const wrong[] = {
	    "", "s", ".", ".s", "5", "1.2.3s", "-1s", "1 s", "1h", "9223372036.854775808s", "1e3s"};
	char text[WEFT_DURATION_BYTES];
	int64_t ns = 77;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		assert_true(weft_duration_parse(times[i].text, strlen(times[i].text), &ns));
		assert_true(ns == times[i].ns);
		size_t len = weft_duration_exact(text, sizeof text, times[i].ns);
		assert_true(len == strlen(text) && weft_duration_parse(text, len, &ns) && ns == times[i].ns);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(weft_duration_parse(wrong[i], strlen(wrong[i]), &ns));
	weft_duration_exact(text, sizeof text, -1234500);
	assert_string_equal(text, "-1.2345ms");
	assert_true(weft_duration_exact(text, sizeof text, INT64_MIN) < sizeof text);
	weft_duration_format(text, sizeof text, 1234500);
	assert_string_equal(text, "1.23 ms");
	weft_duration_format(text, sizeof text, -12345);
	assert_string_equal(text, "-12.3 us");
	weft_duration_format(text, sizeof text, 999);
	assert_string_equal(text, "999 ns");
	assert_true(weft_duration_format(text, sizeof text, INT64_MIN) < sizeof text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_durations),
	    cmocka_unit_test(vec_grows_and_keeps),
	    cmocka_unit_test(vec_refuses_what_no_memory_has),
	    cmocka_unit_test(idmap_knows_what_it_was_given),
	    cmocka_unit_test(idmap_holds_any_pattern),
	    cmocka_unit_test(intern_gives_equal_strings_one_number),
	    cmocka_unit_test(cursor_never_passes_the_end),
	    cmocka_unit_test(utf8_is_valid_and_cut_at_characters),
	    cmocka_unit_test(errors_say_where),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
