/* fields.c: implements fields.h.  SPDX-License-Identifier: ISC */
#include "ctf/fields.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The depth of nested structures is limited, because the file decides how deeply structures nest. */
enum { MAX_DEPTH = 4, MAX_ELEMENTS = 16 };

static void append_field(struct ctf_text *text, const bt_field *field, int depth);

void ctf_text_append(struct ctf_text *text, const char *bytes)
{
	static const char more[] = "...";
	const size_t capacity = sizeof text->bytes - sizeof more, length = strlen(bytes);
	if (text->is_cut)
		return;
	const size_t fits = length <= capacity - text->length ? length : capacity - text->length;
	memcpy(text->bytes + text->length, bytes, fits);
	text->length += fits;
	if (fits < length) {
		/* A UTF-8 character must not be cut in the middle. */
		while (text->length > 0 && ((unsigned char)text->bytes[text->length - 1] & 0xc0) == 0x80)
			text->length--;
		if (text->length > 0 && (unsigned char)text->bytes[text->length - 1] >= 0xc0)
			text->length--;
		memcpy(text->bytes + text->length, more, sizeof more);
		text->length += sizeof more - 1;
		text->is_cut = true;
	}
	text->bytes[text->length] = 0;
}

__attribute__((format(printf, 2, 3))) static void append_format(struct ctf_text *text, const char *format, ...)
{
	char piece[64];
	va_list args;
	va_start(args, format);
	vsnprintf(piece, sizeof piece, format, args);
	va_end(args);
	ctf_text_append(text, piece);
}

/* Fields for the OS thread are left out, because the event's location already shows the thread. */
static bool is_thread_field(const char *name)
{
	static const char *const names[] = {
	    "vtid", "vpid", "tid", "pid", "procname", "cpu_id", "perf_tid", "perf_pid", "perf_cpu"};
	bool is = false;
	for (size_t i = 0; i < sizeof names / sizeof *names && !is; i++)
		is = strcmp(name, names[i]) == 0;
	return is;
}

/* Length fields are left out: writers of CTF 1 put one before each sequence. */
static bool is_length_field(const char *name)
{
	static const char end[] = "_length";
	const size_t length = strlen(name);
	return name[0] == '_' && length > sizeof end && !strcmp(name + length - (sizeof end - 1), end);
}

static void append_members(struct ctf_text *text, const bt_field *structure, bool is_outer, int depth)
{
	const bt_field_class *class = bt_field_borrow_class_const(structure);
	const uint64_t count = bt_field_class_structure_get_member_count(class);
	bool has_any = false;
	for (uint64_t i = 0; i < count && !text->is_cut; i++) {
		const char *name =
		    bt_field_class_structure_member_get_name(bt_field_class_structure_borrow_member_by_index_const(class, i));
		if ((is_outer && is_thread_field(name)) || is_length_field(name))
			continue;
		ctf_text_append(text, has_any || (is_outer && text->length) ? is_outer && !has_any ? ": " : ", " : "");
		has_any = true;
		ctf_text_append(text, name);
		ctf_text_append(text, "=");
		append_field(text, bt_field_structure_borrow_member_field_by_index_const(structure, i), depth);
	}
}

static void append_array(struct ctf_text *text, const bt_field *array, int depth)
{
	const uint64_t count = bt_field_array_get_length(array);
	ctf_text_append(text, "[");
	for (uint64_t i = 0; i < count && i < MAX_ELEMENTS && !text->is_cut; i++) {
		ctf_text_append(text, i > 0 ? ", " : "");
		append_field(text, bt_field_array_borrow_element_field_by_index_const(array, i), depth);
	}
	if (count > MAX_ELEMENTS)
		append_format(text, ", %" PRIu64 " more", count - MAX_ELEMENTS);
	ctf_text_append(text, "]");
}

static void append_number(struct ctf_text *text, const bt_field *field, bool is_signed)
{
	const bool is_hex = bt_field_class_integer_get_preferred_display_base(bt_field_borrow_class_const(field)) ==
			    BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;
	if (is_signed)
		append_format(text, "%" PRId64, bt_field_integer_signed_get_value(field));
	else
		append_format(text, is_hex ? "0x%" PRIx64 : "%" PRIu64, bt_field_integer_unsigned_get_value(field));
}

static void append_enumeration(struct ctf_text *text, const bt_field *field, bool is_signed)
{
	bt_field_class_enumeration_mapping_label_array labels;
	uint64_t count = 0;
	if ((is_signed ? bt_field_enumeration_signed_get_mapping_labels(field, &labels, &count)
		       : bt_field_enumeration_unsigned_get_mapping_labels(field, &labels, &count)) ==
		BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_OK &&
	    count > 0)
		ctf_text_append(text, labels[0]);
	else
		append_number(text, field, is_signed);
}

static void append_field(struct ctf_text *text, const bt_field *field, int depth)
{
	const bt_field_class_type type = bt_field_get_class_type(field);
	if (depth > MAX_DEPTH)
		ctf_text_append(text, "...");
	else if (type == BT_FIELD_CLASS_TYPE_BOOL)
		ctf_text_append(text, bt_field_bool_get_value(field) ? "true" : "false");
	else if (type == BT_FIELD_CLASS_TYPE_BIT_ARRAY)
		append_format(text, "0x%" PRIx64, bt_field_bit_array_get_value_as_integer(field));
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ENUMERATION))
		append_enumeration(text, field, type == BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION);
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_INTEGER))
		append_number(text, field, bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER));
	else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)
		append_format(text, "%g", (double)bt_field_real_single_precision_get_value(field));
	else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)
		append_format(text, "%g", bt_field_real_double_precision_get_value(field));
	else if (type == BT_FIELD_CLASS_TYPE_STRING) {
		ctf_text_append(text, "\"");
		ctf_text_append(text, bt_field_string_get_value(field));
		ctf_text_append(text, "\"");
	} else if (type == BT_FIELD_CLASS_TYPE_STRUCTURE) {
		ctf_text_append(text, "{");
		append_members(text, field, false, depth + 1);
		ctf_text_append(text, "}");
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_ARRAY))
		append_array(text, field, depth + 1);
	else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION)) {
		const bt_field *inner = bt_field_option_borrow_field_const(field);
		if (inner)
			append_field(text, inner, depth + 1);
	} else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
		append_field(text, bt_field_variant_borrow_selected_option_field_const(field), depth + 1);
}

void ctf_text_append_members(struct ctf_text *text, const bt_field *structure)
{
	if (structure && bt_field_get_class_type(structure) == BT_FIELD_CLASS_TYPE_STRUCTURE)
		append_members(text, structure, true, 0);
}

static const bt_field *find_member(const bt_field *structure, const char *name)
{
	return structure && bt_field_get_class_type(structure) == BT_FIELD_CLASS_TYPE_STRUCTURE
		   ? bt_field_structure_borrow_member_field_by_name_const(structure, name)
		   : NULL;
}

bool ctf_read_number(const bt_field *structure, const char *name, int64_t *out)
{
	const bt_field *field = find_member(structure, name);
	const bt_field_class_type type = field ? bt_field_get_class_type(field) : BT_FIELD_CLASS_TYPE_STRING;
	if (!bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_INTEGER))
		return false;
	*out = bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)
		   ? bt_field_integer_signed_get_value(field)
		   : (int64_t)bt_field_integer_unsigned_get_value(field);
	return true;
}

/* LTTng writes names as arrays of characters, which are read as strings here. */
const char *ctf_read_string(const bt_field *structure, const char *name)
{
	const bt_field *field = find_member(structure, name);
	return field && bt_field_get_class_type(field) == BT_FIELD_CLASS_TYPE_STRING ? bt_field_string_get_value(field) : NULL;
}
