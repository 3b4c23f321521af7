/* wire_test.c: sizes of events, cut texts, and metadata.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire.h"

static void payload_size_follows_from_operation_and_flags(void **state)
{
	assert_int_equal(weft__payload_bytes(WEFT_OP_AWAIT), 1 + 8);
	assert_int_equal(weft__payload_bytes(WEFT_OP_AWAIT | WEFT_ID_WIDE), 1 + 16);
	assert_int_equal(weft__payload_bytes(WEFT_OP_AWAIT | WEFT_ID_INLINE), 0);
	assert_int_equal(weft__payload_bytes(WEFT_OP_CREATE), 1 + 11);
	assert_int_equal(weft__payload_bytes(WEFT_OP_LABEL), 1 + 6);
	assert_int_equal(weft__payload_bytes(WEFT_OP_LABEL | WEFT_ID_CUT), 0);
	assert_int_equal(weft__payload_bytes(WEFT_OP_COUNTER), 1 + 10);
	assert_int_equal(weft__payload_bytes(WEFT_OP_PAUSE_END), 1);
	assert_int_equal(weft__payload_bytes(WEFT_OP_COUNT), 0);
	assert_int_equal(weft__payload_bytes(WEFT_ID_EXTENDED), 0);
}

/* The text that a trace has for an operation of this version equals the operation's form. */
static void test_form_of_each_operation_has_the_size_and_fields_of_the_operation(void **state)
{
	struct weft_wire_form form;
	for (unsigned id = 0; id < 256; id++) {
		unsigned op = id & WEFT_ID_OP;
		if (op >= WEFT_OP_COUNT)
			continue;
		weft__form_of_op(&form, (uint8_t)op);
		assert_int_equal(weft__form_payload_bytes(&form, (uint8_t)id), weft__payload_bytes((uint8_t)id));
		assert_true(weft__form_match(&form, (uint8_t)op));
	}
}

static void valid_form_texts_are_parsed_and_others_refused(void **state)
{
	static const char *const good[] = {"", "a: id", "a: id, b: value, c: u8, d: text, e: string, f: i64"};
	static const char *const bad[] = {"a", "a:id", "a: id,", "a: id, ", "a: id,b: id", ": id", "a: u7", "a: text, b: text",
	    "1a: id", "a-b: id", "a: id ", " a: id", "a: id, b", "a: id,, b: id", "a; } evil { b: id"};
	struct weft_wire_form form;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(weft__form_parse(&form, good[i], strlen(good[i])));
	assert_int_equal(form.count, 6);
	assert_int_equal(form.fields[5].type, WEFT_TYPE_I64);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(weft__form_parse(&form, bad[i], strlen(bad[i])));
	/* This form lacks the field "value" of the operation "level", which this version reads: it does not match. */
	assert_true(weft__form_parse(&form, "promise: id, unit: u8", 21));
	assert_false(weft__form_match(&form, WEFT_OP_LEVEL));
}

/* An event of each form has the number of bytes that its first byte announces. */
static void test_written_event_has_the_size_computed_from_its_id(void **state)
{
	unsigned char bytes[256];
	for (unsigned op = 0; op < WEFT_OP_COUNT; op++)
		for (unsigned form = 0; form < 8; form++) {
			struct weft_wire_event e = {.op = (uint8_t)op,
			    .a = form & 1 ? INT64_MIN : -1,
			    .b = 2,
			    .value = 3,
			    .key = form & 2 ? 0 : 9,
			    .text = "some text",
			    .text_bytes = 9,
			    .cut = form & 4 ? 5 : 0};
			uint8_t id = weft__event_id(&e);
			size_t payload = weft__event_payload(&e, id);
			assert_true(weft__payload_bytes(id) != 0);
			memset(bytes, 0xee, sizeof bytes);
			assert_ptr_equal(weft__event_write(bytes, &e, id, 7, false), bytes + WEFT_COMPACT_HEADER + payload);
			assert_int_equal(bytes[WEFT_COMPACT_HEADER + payload], 0xee);
			assert_ptr_equal(weft__event_write(bytes, &e, id, 7, true), bytes + WEFT_EXTENDED_HEADER + payload);
			assert_int_equal(bytes[WEFT_EXTENDED_HEADER + payload], 0xee);
		}
}

static void test_long_text_in_an_event_is_cut(void **state)
{
	for (size_t room = 13; room < 120; room++) {
		struct weft_wire_event e = {
		    .op = WEFT_OP_LABEL, .text = "0123456789012345678901234567890123456789", .text_bytes = 40};
		weft__event_cut(&e, room);
		assert_true(weft__event_payload(&e, weft__event_id(&e)) <= room);
		assert_int_equal(e.text_bytes + e.cut, 40);
	}
}

static void test_metadata_format_returns_the_whole_size_for_any_buffer(void **state)
{
	static char text[65536];
	struct weft_metadata m = {.clock_hz = 2600000000u, .clock_origin_ns = -5, .command = "a \"b\"\n\\", .mode = "ring"};
	size_t whole = weft__metadata_format(text, sizeof text, &m);
	assert_int_equal(strlen(text), whole);
	assert_non_null(strstr(text, "command = \"a \\\"b\\\"\\012\\\\\";"));
	assert_non_null(strstr(text, "offset_s = -1;"));
	for (size_t size = 0; size < 100; size++) {
		char part[100];
		memset(part, 'z', sizeof part);
		assert_int_equal(weft__metadata_format(part, size, &m), whole);
		if (size)
			assert_int_equal(strlen(part), size - 1);
	}
}

static void test_definition_write_writes_as_many_bytes_as_definition_bytes_returns(void **state)
{
	unsigned char bytes[256];
	struct weft_wire_definition d = {.key = 3, .line = 9, .text = "file", .text_bytes = 4, .second = "f", .second_bytes = 1};
	for (int what = WEFT_DEFINE_STRING; what <= WEFT_DEFINE_FORM; what++) {
		d.what = (enum weft_definition)what;
		assert_ptr_equal(weft__definition_write(bytes, &d, 1), bytes + weft__definition_bytes(&d));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(payload_size_follows_from_operation_and_flags),
	    cmocka_unit_test(test_form_of_each_operation_has_the_size_and_fields_of_the_operation),
	    cmocka_unit_test(valid_form_texts_are_parsed_and_others_refused),
	    cmocka_unit_test(test_written_event_has_the_size_computed_from_its_id),
	    cmocka_unit_test(test_long_text_in_an_event_is_cut),
	    cmocka_unit_test(test_metadata_format_returns_the_whole_size_for_any_buffer),
	    cmocka_unit_test(test_definition_write_writes_as_many_bytes_as_definition_bytes_returns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
