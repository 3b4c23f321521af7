/* find.c: what is highlighted.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/view.h"

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool contains(struct weft_str text, const char *wanted, size_t wanted_len)
{
	for (size_t i = 0; i + wanted_len <= text.len; i++) {
		size_t k = 0;
		while (k < wanted_len && lower(text.ptr[i + k]) == wanted[k])
			k++;
		if (k == wanted_len)
			return true;
	}
	return false;
}

/* Answers about texts and sites that were asked lately: many promises have the same. */
struct memory {
	uint32_t text[1024], site[256];
	bool found[1024], site_found[256];
};

static bool text_matches(struct memory *memory, const struct weft_model *model, uint32_t text, const char *wanted, size_t len)
{
	uint32_t slot = text % 1024;
	if (memory->text[slot] != text) {
		memory->found[slot] = contains(weft_model_text(model, text), wanted, len);
		memory->text[slot] = text;
	}
	return memory->found[slot];
}

static bool site_matches(struct memory *memory, const struct weft_model *model, uint32_t site, const char *wanted, size_t len)
{
	uint32_t slot = site % 256;
	if (memory->site[slot] != site) {
		const struct weft_site *s = &model->trace->sites[site];
		memory->site_found[slot] = contains(s->function, wanted, len) || contains(s->file, wanted, len);
		memory->site[slot] = site;
	}
	return memory->site_found[slot];
}

static bool matches(struct memory *memory, const struct weft_model *model, uint32_t promise, const char *wanted, size_t len)
{
	const struct weft_promise *p = &model->promises[promise];
	char buf[32];
	const char *kind = weft_model_kind_name(model, p->kind);
	int id_len = snprintf(buf, sizeof buf, "%" PRId64, p->id);
	if (contains((struct weft_str){kind, (uint32_t)strlen(kind)}, wanted, len) ||
	    contains((struct weft_str){buf, (uint32_t)id_len}, wanted, len))
		return true;
	if (p->failure != WEFT_NONE && text_matches(memory, model, p->failure, wanted, len))
		return true;
	if (p->site != WEFT_NONE && site_matches(memory, model, p->site, wanted, len))
		return true;
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		char text[256];
		if (model->labels[l].is_counter) {
			size_t text_len = weft_model_label(model, &model->labels[l], text, sizeof text);
			text_len = text_len < sizeof text ? text_len : sizeof text - 1;
			if (contains((struct weft_str){text, (uint32_t)text_len}, wanted, len))
				return true;
		} else if (text_matches(memory, model, model->labels[l].text, wanted, len)) {
			return true;
		}
	}
	return false;
}

void weft_view_unhighlight(struct weft_view *v)
{
	memset(v->highlight, 0, (v->model->promise_count / 64 + 1) * sizeof *v->highlight);
	v->found = 0;
}

static void highlight(struct weft_view *v, uint32_t promise)
{
	v->found += !weft_view_is_highlighted(v, promise);
	v->highlight[promise / 64] |= 1ull << promise % 64;
}

size_t weft_view_find(struct weft_view *v, const char *text)
{
	struct memory memory;
	char wanted[256];
	size_t len = 0;
	weft_view_unhighlight(v);
	for (; text[len] && len < sizeof wanted; len++)
		wanted[len] = lower(text[len]);
	if (len == 0)
		return 0;
	memset(memory.text, 0xff, sizeof memory.text);
	memset(memory.site, 0xff, sizeof memory.site);
	for (uint32_t p = WEFT_SYSTEM + 1; p < v->model->promise_count; p++)
		if (matches(&memory, v->model, p, wanted, len))
			highlight(v, p);
	return v->found;
}

size_t weft_view_find_related(struct weft_view *v, uint32_t promise)
{
	const struct weft_model *model = v->model;
	weft_view_unhighlight(v);
	if (promise >= model->promise_count)
		return 0;
	for (uint32_t p = promise; p != WEFT_NONE && !weft_view_is_highlighted(v, p); p = model->promises[p].became)
		highlight(v, p);
	/* Backwards: with who became whom turned round, as a list for each promise, the newly found are a stack. */
	size_t n = model->promise_count;
	uint32_t *first = malloc(n * sizeof *first), *next = malloc(n * sizeof *next), *stack = malloc(n * sizeof *stack);
	if (first && next && stack) {
		memset(first, 0xff, n * sizeof *first);
		for (uint32_t p = (uint32_t)n; p-- > 0;) {
			uint32_t into = model->promises[p].became;
			if (into == WEFT_NONE)
				continue;
			next[p] = first[into];
			first[into] = p;
		}
		size_t height = 0;
		uint64_t *walked = calloc(n / 64 + 1, sizeof *walked);
		if (walked)
			stack[height++] = promise;
		while (height > 0) {
			uint32_t at = stack[--height];
			for (uint32_t p = first[at]; p != WEFT_NONE; p = next[p]) {
				if (walked[p / 64] >> p % 64 & 1)
					continue;
				walked[p / 64] |= 1ull << p % 64;
				highlight(v, p);
				stack[height++] = p;
			}
		}
		free(walked);
	}
	free(first);
	free(next);
	free(stack);
	return v->found;
}
