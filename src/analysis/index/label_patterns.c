/* label_patterns.c: groups types whose labels differ only in numbers, or whose source locations have the same name.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/label_patterns.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/names.h"
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

/* Returns whether c separates the parts of an address, a UUID or a time. */
static bool is_separator(char c)
{
	return c == '.' || c == ':' || c == '-';
}

/* Returns the length of the word at `at`; sets *is_number if it is a number, or a hexadecimal number that contains a digit. */
static size_t scan_word(struct weft_str text, size_t at, bool *is_number)
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

bool weft__label_pattern(char *out, size_t size, struct weft_str text)
{
	size_t used = 0;
	bool any = false;
	for (size_t at = 0; at < text.len && used + 1 < size;) {
		bool is_number, in_number = false;
		size_t length = scan_word(text, at, &is_number);
		if (is_number) {
			/* An address such as 10.0.0.1:5123 counts as one number. */
			size_t separator = used;
			while (separator > 0 && is_separator(out[separator - 1]))
				separator--;
			if (separator > 0 && separator < used && out[separator - 1] == '*')
				used = separator;
			else
				out[used++] = '*';
			any = true;
			at += length;
			continue;
		}
		/* In a word such as eth0, only the digits are replaced. */
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
	struct weft_intern patterns;
	struct weft_intern places;
	uint32_t *pattern_of;     /* by label: index of its pattern + 2; 1 if the label has no number; 0 if not yet computed */
	uint32_t *place_of;       /* by site: index of its name + 1; 0 if not yet computed */
	struct weft_idmap firsts; /* the first type with each pattern, kind and source location */
};

/* Returns the number of a copy of the text; WEFT_INTERN_FAILED when out of memory. */
static uint32_t intern_copy(struct weft_intern *intern, const char *text)
{
	const size_t length = strlen(text), known = intern->texts.count;
	char *copy = malloc(length + 1);
	uint32_t number = WEFT_INTERN_FAILED;
	if (copy)
		number = weft_intern(intern, (struct weft_str){memcpy(copy, text, length + 1), (uint32_t)length});
	if (number == WEFT_INTERN_FAILED || number < known)
		free(copy);
	return number;
}

static void finish_intern(struct weft_intern *intern)
{
	for (size_t i = 0; i < intern->texts.count; i++)
		free((char *)(uintptr_t)intern->texts.items[i].ptr);
	weft_intern_finish(intern);
}

/* Returns the value of pattern_of for a label, which it computes if necessary; 0 when out of memory. */
static uint32_t find_pattern(struct grouping *g, uint32_t label)
{
	char pattern[254];
	if (!weft__label_pattern(pattern, sizeof pattern, weft_model_text(g->m, label)))
		return 1;
	const uint32_t number = intern_copy(&g->patterns, pattern);
	return number == WEFT_INTERN_FAILED ? 0 : number + 2;
}

/* Returns a number that sites with one name share: two calls in a function without line numbers look like one place to a
 * reader.  Returns WEFT_NONE without a site; WEFT_INTERN_FAILED when out of memory. */
static uint32_t find_place(struct grouping *g, uint32_t site)
{
	char name[WEFT_NAME_BYTES];
	if (site == WEFT_NONE)
		return WEFT_NONE;
	if (g->place_of[site] == 0) {
		const uint32_t number = intern_copy(&g->places, weft_name_place(g->m, site, name));
		if (number == WEFT_INTERN_FAILED)
			return number;
		g->place_of[site] = number + 1;
	}
	return g->place_of[site];
}

/* Sets *first to the first type of the group of type s; returns false when out of memory. */
static bool group_type(struct grouping *g, const struct weft__promise_type *type, uint32_t s, uint32_t *first)
{
	const uint32_t label = type->label, site = g->m->promises[type->first].site;
	*first = s;
	if (label == WEFT_NONE && site == WEFT_NONE)
		return true;
	if (label != WEFT_NONE && g->pattern_of[label] == 0 && (g->pattern_of[label] = find_pattern(g, label)) == 0)
		return false;
	if (label != WEFT_NONE && g->pattern_of[label] == 1)
		return true;
	const uint32_t place = find_place(g, site);
	if (site != WEFT_NONE && place == WEFT_INTERN_FAILED)
		return false;
	const uint64_t kind = weft_hash_u64((uint64_t)(label == WEFT_NONE ? 0 : g->pattern_of[label]) << 16 | type->kind);
	const int64_t key = (int64_t)(weft_hash_u64(kind + place) >> 1);
	const uint32_t known = weft_idmap_get(&g->firsts, key);
	if (known != WEFT_IDMAP_NONE)
		*first = known;
	return known != WEFT_IDMAP_NONE || weft_idmap_set(&g->firsts, key, s);
}

int weft__label_patterns_group(
    uint32_t *first, const struct weft_model *m, const struct weft__promise_types *types, struct weft__cancel_token *cancel)
{
	struct grouping g = {.m = m,
	    .pattern_of = calloc(weft_model_text_count(m) + 1, sizeof *g.pattern_of),
	    .place_of = calloc(m->trace->site_count + 1, sizeof *g.place_of)};
	bool ok = g.pattern_of && g.place_of;
	for (uint32_t s = 0;
	     ok && s < types->items.count && (ok = weft__cancel_token_may_continue(cancel, s, types->items.count)); s++)
		ok = group_type(&g, &types->items.items[s], s, &first[s]);
	finish_intern(&g.patterns);
	finish_intern(&g.places);
	weft_idmap_finish(&g.firsts);
	free(g.pattern_of);
	free(g.place_of);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}
