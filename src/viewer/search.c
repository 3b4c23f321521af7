/* search.c: finds promises while the user types a query.  SPDX-License-Identifier: ISC */
#include "viewer/search.h"

#include <string.h>

#include "viewer/private.h"

/* Stores a search text, cut at the end of a character, with control characters replaced by spaces. */
static void set_search_text(struct weft_viewer *v, const char *text, size_t len)
{
	if (len > WEFT_QUERY_BYTES)
		for (len = WEFT_QUERY_BYTES; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	memmove(v->search_text, text, len);
	v->search_text[len] = '\0';
	for (char *c = v->search_text; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

int weft_viewer_search(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	weft__viewer_begin_move(v, WEFT_MOVE_SEARCHES);
	return weft__viewer_search(v, text, err);
}

int weft__viewer_search(struct weft_viewer *v, const char *text, struct weft_error *err)
{
	bool was_whole = v->highlighting == WEFT_HIGHLIGHT_SEARCH && !weft_viewer_is_searching(v);
	size_t len = strlen(text);
	struct weft_query *query = v->query_before;
	weft_query_finish(query);
	set_search_text(v, text, len);
	int status = weft_query_parse(query, len > WEFT_QUERY_BYTES ? text : v->search_text, len, err);
	if (status < 0)
		query->count = 0;
	const bool is_empty = query->count == 0 && !query->is_any;
	v->query_before = v->query;
	v->query = query;
	v->search_narrowing = was_whole && !is_empty && weft_query_is_narrower(query, v->query_before);
	if (!v->search_narrowing)
		weft_view_unhighlight(v->view);
	v->search_at = is_empty ? (uint32_t)v->model->promise_count : WEFT_SYSTEM + 1;
	v->highlighting = is_empty ? WEFT_HIGHLIGHT_NONE : WEFT_HIGHLIGHT_SEARCH;
	if (query->slowest > 0)
		v->match_order = WEFT_MATCHES_BY_DURATION;
	weft__viewer_highlighted(v);
	weft__viewer_changed(v, WEFT_CHANGED_SEARCH | WEFT_CHANGED_PLACE);
	return status;
}

void weft_viewer_search_like(struct weft_viewer *v, uint32_t promise)
{
	char text[WEFT_QUERY_BYTES + 1];
	if (!weft__viewer_is_selectable(v, promise))
		return;
	weft_query_for_similar(v->model, promise, text);
	weft__viewer_search(v, text, NULL);
}

bool weft_viewer_is_searching(const struct weft_viewer *v)
{
	return v->search_at < v->model->promise_count;
}

/* Removes the highlights of earlier matches that no longer match; 64 promises without a match are skipped at once. */
static void narrow_highlights(struct weft_viewer *v, uint32_t end)
{
	for (uint32_t p = v->search_at; p < end;) {
		uint64_t bits = v->view->highlight[p / 64] >> p % 64;
		if (!bits) {
			p = (p / 64 + 1) * 64;
			continue;
		}
		p += (uint32_t)__builtin_ctzll(bits);
		if (p < end && !weft_query_matches(v->query, v->model, p))
			weft_view_set_highlight(v->view, p, false);
		p++;
	}
}

bool weft_viewer_search_step(struct weft_viewer *v, uint32_t promises)
{
	uint32_t count = (uint32_t)v->model->promise_count;
	if (v->search_at >= count)
		return false;
	uint32_t end = count - v->search_at > promises ? v->search_at + promises : count;
	size_t found = v->view->found;
	if (v->search_narrowing)
		narrow_highlights(v, end);
	else
		for (uint32_t p = v->search_at; p < end; p++)
			if (weft_query_matches(v->query, v->model, p))
				weft_view_set_highlight(v->view, p, true);
	v->search_at = end;
	if (end == count)
		v->view->found = weft_query_keep_slowest(v->query, v->model, v->view->highlight, v->view->found);
	weft__viewer_changed(v, WEFT_CHANGED_SEARCH);
	if (found != v->view->found || end == count)
		weft__viewer_highlighted(v);
	return end < count;
}

/* A position in the order of matches: by time, by name from A to Z, or by length with the longest match first. */
struct spot {
	int64_t key;
	uint32_t promise; /* promise at the position; WEFT_SYSTEM means before all other promises with this key */
};

static int64_t key_of(const struct weft_viewer *v, uint32_t promise)
{
	const struct weft_promise *p = &v->model->promises[promise];
	int64_t length;
	if (v->match_order != WEFT_MATCHES_BY_DURATION)
		return p->start_ns;
	return __builtin_sub_overflow(p->start_ns, p->end_ns, &length) ? INT64_MIN : length;
}

static int compare_names(const struct weft_viewer *v, uint32_t a, uint32_t b)
{
	char names[2][256];
	weft_model_name(v->model, a, names[0], sizeof names[0]);
	weft_model_name(v->model, b, names[1], sizeof names[1]);
	return strcmp(names[0], names[1]);
}

static bool is_before(const struct weft_viewer *v, struct spot a, struct spot b)
{
	if (v->match_order == WEFT_MATCHES_BY_NAME && a.promise != WEFT_SYSTEM && b.promise != WEFT_SYSTEM) {
		const int order = compare_names(v, a.promise, b.promise);
		if (order != 0)
			return order < 0;
	}
	return a.key != b.key ? a.key < b.key : a.promise < b.promise;
}

bool weft__match_is_before(const struct weft_viewer *v, uint32_t a, uint32_t b)
{
	return is_before(v, (struct spot){key_of(v, a), a}, (struct spot){key_of(v, b), b});
}

struct neighbours {
	struct spot before, after, first, last;
	size_t number, count; /* number of matches up to the position, and number of all matches */
};

/* Finds the highlighted promises that are nearest to a position. */
static struct neighbours find_neighbours(const struct weft_viewer *v, struct spot at)
{
	struct neighbours n = {.before = {INT64_MIN, WEFT_NONE},
	    .after = {INT64_MAX, WEFT_NONE},
	    .first = {INT64_MAX, WEFT_NONE},
	    .last = {INT64_MIN, WEFT_NONE}};
	size_t words = v->model->promise_count / 64 + 1;
	for (size_t w = 0; w < words; w++) {
		for (uint64_t bits = v->view->highlight[w]; bits; bits &= bits - 1) {
			uint32_t promise = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits));
			struct spot s = {key_of(v, promise), promise};
			n.count++;
			n.number += !is_before(v, at, s);
			if (n.first.promise == WEFT_NONE || is_before(v, s, n.first))
				n.first = s;
			if (n.last.promise == WEFT_NONE || is_before(v, n.last, s))
				n.last = s;
			if (is_before(v, s, at) && (n.before.promise == WEFT_NONE || is_before(v, n.before, s)))
				n.before = s;
			if (is_before(v, at, s) && (n.after.promise == WEFT_NONE || is_before(v, s, n.after)))
				n.after = s;
		}
	}
	return n;
}

static struct spot spot_of(const struct weft_viewer *v)
{
	if (v->selected != WEFT_NONE)
		return (struct spot){key_of(v, v->selected), v->selected};
	return (struct spot){v->match_order == WEFT_MATCHES_BY_TIME ? v->view->from_ns : INT64_MIN, WEFT_SYSTEM};
}

static uint32_t go_to_match(struct weft_viewer *v, uint32_t promise)
{
	if (promise != WEFT_NONE)
		weft__viewer_select_and_reveal(v, promise);
	return promise;
}

uint32_t weft_viewer_next_match(struct weft_viewer *v)
{
	struct neighbours n = find_neighbours(v, spot_of(v));
	return go_to_match(v, n.after.promise != WEFT_NONE ? n.after.promise : n.first.promise);
}

uint32_t weft_viewer_previous_match(struct weft_viewer *v)
{
	struct neighbours n = find_neighbours(v, spot_of(v));
	return go_to_match(v, n.before.promise != WEFT_NONE ? n.before.promise : n.last.promise);
}

void weft_viewer_sort_matches(struct weft_viewer *v, enum weft_match_order order)
{
	v->match_order = order;
	weft__viewer_changed(v, WEFT_CHANGED_SEARCH | WEFT_CHANGED_SETTING);
}

size_t weft_viewer_match_number(const struct weft_viewer *v)
{
	if (v->selected == WEFT_NONE || !weft_view_is_highlighted(v->view, v->selected))
		return 0;
	return find_neighbours(v, spot_of(v)).number;
}
