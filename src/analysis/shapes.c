/* shapes.c: sorts whose labels differ by numbers only.  SPDX-License-Identifier: ISC */
#include "analysis/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
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

struct grouping {
	const struct weft_model *m;
	struct weft_intern shapes;
	uint32_t *shape_of;       /* by label: its shape's number + 2; 1: it has no number in it; 0: nobody has asked yet */
	struct weft_idmap firsts; /* the first sort, by shape, kind and place */
};

/* As shape_of has it; 0 when out of memory. */
static uint32_t find_shape(struct grouping *g, uint32_t label)
{
	char shape[254];
	if (!weft__shape(shape, sizeof shape, weft_model_text(g->m, label)))
		return 1;
	const size_t length = strlen(shape), known = g->shapes.texts.count;
	char *copy = malloc(length + 1);
	uint32_t number = WEFT_INTERN_FAILED;
	if (copy)
		number = weft_intern(&g->shapes, (struct weft_str){memcpy(copy, shape, length), (uint32_t)length});
	if (number == WEFT_INTERN_FAILED || number < known)
		free(copy);
	return number == WEFT_INTERN_FAILED ? 0 : number + 2;
}

/* Finds the first sort of s's group; false when out of memory. */
static bool group_sort(struct grouping *g, const struct weft__sort *sort, uint32_t s, uint32_t *first)
{
	const uint32_t label = sort->label;
	*first = s;
	if (label == WEFT_NONE)
		return true;
	if (g->shape_of[label] == 0 && (g->shape_of[label] = find_shape(g, label)) == 0)
		return false;
	if (g->shape_of[label] == 1)
		return true;
	const uint64_t kind = weft_hash_u64((uint64_t)g->shape_of[label] << 16 | sort->kind);
	const int64_t key = (int64_t)(weft_hash_u64(kind + g->m->promises[sort->first].site) >> 1);
	const uint32_t known = weft_idmap_get(&g->firsts, key);
	if (known != WEFT_IDMAP_NONE)
		*first = known;
	return known != WEFT_IDMAP_NONE || weft_idmap_set(&g->firsts, key, s);
}

int weft__shapes_group(uint32_t *first, const struct weft_model *m, const struct weft__sorts *sorts, struct weft__watch *watch)
{
	struct grouping g = {.m = m, .shape_of = calloc(weft_model_text_count(m) + 1, sizeof *g.shape_of)};
	bool ok = g.shape_of;
	for (uint32_t s = 0; ok && s < sorts->items.count && (ok = weft__watch_goes_on(watch, s, sorts->items.count)); s++)
		ok = group_sort(&g, &sorts->items.items[s], s, &first[s]);
	for (size_t i = 0; i < g.shapes.texts.count; i++)
		free((char *)(uintptr_t)g.shapes.texts.items[i].ptr);
	weft_intern_finish(&g.shapes);
	weft_idmap_finish(&g.firsts);
	free(g.shape_of);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}
