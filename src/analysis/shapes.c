/* shapes.c: sorts whose labels differ by numbers only.  SPDX-License-Identifier: ISC */
#include "analysis/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

/* What parts of an address, of a UUID or of a time are joined by. */
static bool is_joint(char c)
{
	return c == '.' || c == ':' || c == '-';
}

/* The length of the word at `at`; *is_number: it is one, or hexadecimal with a digit in it. */
static size_t word(struct weft_str text, size_t at, bool *is_number)
{
	size_t end = at;
	bool hex = true, digit = false;
	for (; end < text.len && is_word(text.ptr[end]); end++) {
		hex &= is_hex(text.ptr[end]);
		digit |= is_digit(text.ptr[end]);
	}
	*is_number = hex && digit;
	return end - at;
}

bool weft__shape(char *out, size_t size, struct weft_str text)
{
	size_t used = 0;
	bool any = false;
	for (size_t at = 0; at < text.len && used + 1 < size;) {
		bool is_number, in_number = false;
		size_t length = word(text, at, &is_number);
		if (is_number) {
			/* 10.0.0.1:5123 is one number. */
			size_t joint = used;
			while (joint > 0 && is_joint(out[joint - 1]))
				joint--;
			if (joint > 0 && joint < used && out[joint - 1] == '*')
				used = joint;
			else
				out[used++] = '*';
			any = true;
			at += length;
			continue;
		}
		/* Of a word with digits in it, such as eth0, the digits alone. */
		for (size_t end = at + (length ? length : 1); at < end && used + 1 < size; at++) {
			bool digit = is_digit(text.ptr[at]);
			if (!digit || !in_number)
				out[used++] = digit ? '*' : text.ptr[at];
			in_number = digit;
			any |= digit;
		}
	}
	out[used] = '\0';
	return any;
}

int weft__shapes_group(uint32_t *first, const struct weft_model *m, const struct weft__sorts *sorts, struct weft__watch *watch)
{
	struct weft_intern shapes = {0};
	WEFT_VEC(uint32_t) sort_of = {0}; /* by shape */
	bool ok = true;
	for (uint32_t s = 0; ok && s < sorts->items.count && (ok = weft__watch_goes_on(watch, s, sorts->items.count)); s++) {
		char shape[256]; /* kind and text */
		uint32_t p = sorts->items.items[s].first, label = weft_first_label(m, p);
		first[s] = s;
		const size_t kind = sizeof m->promises[p].kind;
		memcpy(shape, &m->promises[p].kind, kind);
		if (label == WEFT_NONE || !weft__shape(shape + kind, sizeof shape - kind, weft_model_text(m, label)))
			continue;
		size_t known = shapes.texts.count;
		const size_t length = kind + strlen(shape + kind);
		char *copy = malloc(length);
		uint32_t number = WEFT_INTERN_FAILED;
		if (copy)
			number = weft_intern(&shapes, (struct weft_str){memcpy(copy, shape, length), (uint32_t)length});
		bool is_new = number != WEFT_INTERN_FAILED && number == known;
		if (!is_new)
			free(copy);
		uint32_t *added = is_new ? weft_vec_push(&sort_of) : NULL;
		if (added)
			*added = s;
		ok = number < sort_of.count && sort_of.items; /* not so where memory is lacking */
		if (ok)
			first[s] = sort_of.items[number];
	}
	for (size_t i = 0; i < shapes.texts.count; i++)
		free((char *)(uintptr_t)shapes.texts.items[i].ptr);
	weft_intern_finish(&shapes);
	weft_vec_free(&sort_of);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}
