/* select.c: selects, highlights and shows promises.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/duration.h"
#include "base/search.h"

#include "viewer/flame_pane.h"
#include "viewer/private.h"
#include "viewer/search.h"

static void set_selected(struct weft_viewer *v, uint32_t promise)
{
	v->selected = promise;
	v->spot.track = WEFT_NONE;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SELECTION | WEFT_CHANGED_PLACE);
}

void weft__viewer_select(struct weft_viewer *v, uint32_t promise)
{
	if (!weft__viewer_is_selectable(v, promise))
		promise = WEFT_NONE;
	if (promise != v->selected || v->spot.track != WEFT_NONE)
		set_selected(v, promise);
}

void weft_viewer_select(struct weft_viewer *v, uint32_t promise)
{
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	weft__viewer_select(v, promise);
}

/* Reveals a promise that was selected without the pointer, and clears the hovered promise, so that the panel shows the selected
 * promise. */
static void reveal_promise(struct weft_viewer *v, uint32_t promise)
{
	if (v->hovered != WEFT_NONE || v->hovered_spot.track != WEFT_NONE)
		weft__viewer_changed(v, WEFT_CHANGED_HOVER | WEFT_CHANGED_OVERLAY);
	v->hovered = v->hovered_link = v->hovered_spot.track = WEFT_NONE;
	weft_viewer_reveal(v, promise);
}

void weft__viewer_select_and_reveal(struct weft_viewer *v, uint32_t promise)
{
	weft__viewer_select(v, promise);
	reveal_promise(v, promise);
}

void weft_viewer_select_and_reveal(struct weft_viewer *v, uint32_t promise)
{
	weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	weft__viewer_select_and_reveal(v, promise);
}

bool weft_viewer_walk(struct weft_viewer *v, enum weft_walk_step step)
{
	uint32_t to = v->selected == WEFT_NONE ? WEFT_NONE : weft_walk(v->facts, v->selected, step);
	if (to == WEFT_NONE)
		return false;
	weft__viewer_select_and_reveal(v, to);
	return true;
}

/* Returns the line of a row at a time, or the nearest line; WEFT_NONE if the row is empty. */
static uint32_t line_at(const struct weft_viewer *v, uint32_t row, int64_t time_ns)
{
	const struct weft_layout *l = v->layout;
	const size_t begin = l->row_begin[row], end = l->row_begin[row + 1];
	/* Along a row, starts and ends of lines never decrease, so a binary search is possible. */
	size_t at = WEFT_FIND_FIRST(i, begin, end, weft_layout_end(l, v->model, l->by_row[i]) >= time_ns);
	if (at == end)
		at = end - 1;
	if (at > begin) {
		int64_t until_ns = v->model->promises[l->by_row[at]].start_ns,
			since_ns = weft_layout_end(l, v->model, l->by_row[at - 1]);
		if (until_ns > time_ns && until_ns - time_ns > time_ns - since_ns)
			at--;
	}
	return begin < end ? l->by_row[at] : WEFT_NONE;
}

/* Returns the line of a promise: the promise's own line, or that of its fold. */
static size_t line_of(const struct weft_viewer *v, uint32_t promise)
{
	const struct weft_layout *l = v->layout;
	const uint32_t row = l->rows[promise];
	const int64_t start_ns = v->model->promises[promise].start_ns;
	size_t at =
	    WEFT_FIND_FIRST(i, l->row_begin[row], l->row_begin[row + 1], v->model->promises[l->by_row[i]].start_ns >= start_ns);
	for (size_t i = at; i < l->row_begin[row + 1] && v->model->promises[l->by_row[i]].start_ns == start_ns; i++)
		if (l->by_row[i] == promise)
			return i;
	return at > l->row_begin[row] ? at - 1 : at;
}

bool weft_viewer_step(struct weft_viewer *v, int right, int down)
{
	const struct weft_layout *l = v->layout;
	int64_t from_ns, to_ns;
	uint32_t to = WEFT_NONE;
	weft_viewer_times(v, &from_ns, &to_ns);
	if (l->row_count == 0)
		return false;
	if (v->selected == WEFT_NONE || l->rows[v->selected] == WEFT_NONE) {
		uint32_t row = weft_view_next_shown(v->view, 0);
		to = line_at(v, row < l->row_count ? row : 0, from_ns);
	} else if (right != 0) {
		const uint32_t row = l->rows[v->selected];
		int64_t at = (int64_t)line_of(v, v->selected) + right;
		if (at >= (int64_t)l->row_begin[row] && at < (int64_t)l->row_begin[row + 1])
			to = l->by_row[at];
	} else {
		const struct weft_promise *p = &v->model->promises[v->selected];
		int64_t rank = (int64_t)weft_view_rank(v->view, l->rows[v->selected]) + down;
		if (rank >= 0 && rank < (int64_t)weft_view_rank(v->view, l->row_count))
			to = line_at(
			    v, weft_view_row_of_rank(v->view, (uint32_t)rank), p->start_ns > from_ns ? p->start_ns : from_ns);
	}
	if (to == WEFT_NONE)
		return false;
	weft__viewer_select_and_reveal(v, to);
	return true;
}

void weft_viewer_measure_selected(struct weft_viewer *v)
{
	if (v->selected == WEFT_NONE)
		return;
	int64_t from_ns = v->model->promises[v->selected].start_ns, to_ns = weft_layout_end(v->layout, v->model, v->selected);
	v->span_from_ns = v->has_span ? weft_min_ns(v->span_from_ns, from_ns) : from_ns;
	v->span_to_ns = v->has_span ? weft_max_ns(v->span_to_ns, to_ns) : to_ns;
	v->has_span = v->span_from_ns < v->span_to_ns;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SETTING);
	weft__viewer_span_changed(v);
}

void weft__viewer_end_search(struct weft_viewer *v)
{
	v->search_text[0] = '\0';
	v->query->count = 0;
	v->search_at = (uint32_t)v->model->promise_count;
	weft__viewer_changed(v, WEFT_CHANGED_SEARCH | WEFT_CHANGED_PLACE);
}

void weft__viewer_highlight(struct weft_viewer *v, const uint32_t *promises, size_t count)
{
	weft__viewer_end_search(v);
	weft_view_unhighlight(v->view);
	for (size_t i = 0; i < count; i++)
		weft_view_set_highlight(v->view, promises[i], true);
	v->highlighting = WEFT_HIGHLIGHT_FINDING;
	weft__viewer_highlighted(v);
}

void weft_viewer_highlight_related(struct weft_viewer *v, uint32_t promise)
{
	if (!weft__viewer_is_selectable(v, promise))
		return;
	weft__viewer_end_search(v);
	weft_view_find_related(v->view, promise);
	v->highlighting = WEFT_HIGHLIGHT_RELATED;
	v->related = promise;
	weft__viewer_highlighted(v);
}

bool weft_viewer_clear(struct weft_viewer *v)
{
	if (v->has_span) {
		v->has_span = false;
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SETTING);
		weft__viewer_span_changed(v);
	} else if (v->highlighting != WEFT_HIGHLIGHT_NONE || v->search_text[0]) {
		weft__viewer_end_search(v);
		weft_view_unhighlight(v->view);
		v->highlighting = WEFT_HIGHLIGHT_NONE;
		weft__viewer_highlighted(v);
	} else if (v->selected != WEFT_NONE || v->spot.track != WEFT_NONE) {
		weft__viewer_select(v, WEFT_NONE);
	} else {
		return false;
	}
	return true;
}

void weft_viewer_set_filter(struct weft_viewer *v, bool on)
{
	v->filter = on;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_set_overview(struct weft_viewer *v, bool shown)
{
	v->overview_shown = shown;
	weft__viewer_place_panes(v);
	weft__viewer_changed(v, WEFT_CHANGED_SETTING);
}

void weft_viewer_set_names(struct weft_viewer *v, bool shown, double width_px)
{
	v->names_shown = shown;
	v->names_px = width_px > 0 ? weft_gutter_px(width_px, v->width_px / v->scale) : 0;
	weft__viewer_place_panes(v);
	weft__viewer_changed(v, WEFT_CHANGED_SETTING);
}

void weft_viewer_set_clock(struct weft_viewer *v, const struct weft_clock *clock)
{
	v->clock = *clock;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING);
}

void weft_viewer_set_legend(struct weft_viewer *v, bool shown)
{
	if (v->legend == shown)
		return;
	v->legend = shown;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SETTING);
}

void weft_viewer_hold_rows(struct weft_viewer *v, bool hold)
{
	if (v->view->holds_rows == hold)
		return;
	weft_view_hold_rows(v->view, hold);
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_fold_sleep(struct weft_viewer *v, bool fold)
{
	if ((v->view->lulls != NULL) == fold)
		return;
	if (fold && !v->lulls && weft_lulls_find(&v->lulls, v->model, NULL) < 0)
		return;
	weft_view_fold_sleep(v->view, fold ? v->lulls : NULL, NULL);
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_set_metrics(struct weft_viewer *v, bool shown)
{
	v->metrics = shown;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_set_metric(struct weft_viewer *v, size_t counter, bool shown)
{
	if (counter >= v->model->counter_count)
		return;
	v->hidden_metrics[counter] = !shown;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING);
}

/* Both lists of counters are sorted by name. */
static void copy_metrics(struct weft_viewer *v, const struct weft_viewer *other)
{
	weft_viewer_set_metrics(v, other->metrics);
	for (size_t i = 0; i < other->model->counter_count; i++) {
		for (size_t k = 0; other->hidden_metrics[i] && k < v->model->counter_count; k++)
			if (weft_str_equal(other->model->counters[i].name, v->model->counters[k].name))
				v->hidden_metrics[k] = true;
	}
}

/* Copies the highlights of a finding; a search is run again instead of copied. */
static void copy_highlights(struct weft_viewer *v, const struct weft_viewer *other)
{
	for (uint32_t p = 0; p < other->model->promise_count; p++) {
		if (!other->view->highlight[p / 64]) {
			p |= 63;
			continue;
		}
		uint32_t same = weft_view_is_highlighted(other->view, p) ? weft_model_find(v->model, other->model->promises[p].id)
									 : WEFT_NONE;
		if (weft__viewer_is_selectable(v, same))
			weft_view_set_highlight(v->view, same, true);
	}
	v->highlighting = v->view->found > 0 ? WEFT_HIGHLIGHT_FINDING : WEFT_HIGHLIGHT_NONE;
	weft__viewer_highlighted(v);
}

void weft_viewer_copy_state(struct weft_viewer *v, struct weft_viewer *other)
{
	int64_t from, to, end = other->model->end_ns;
	weft__viewer_copy_subset(v, other);
	weft_viewer_hold_rows(v, other->view->holds_rows);
	weft_viewer_fold_sleep(v, other->view->lulls != NULL);
	weft_viewer_set_legend(v, other->legend);
	weft_viewer_set_names(v, other->names_shown, other->names_px);
	weft_viewer_times(other, &from, &to);
	if (from > 0 || to < end) {
		/* Times are relative to the first event, which may be a different event after a reload. */
		int64_t later;
		if (to >= end)
			later = v->model->end_ns - end;
		else if (__builtin_sub_overflow(other->model->start_ns, v->model->start_ns, &later))
			later = 0;
		weft_viewer_show(v, weft__add_ns(from, later), weft__add_ns(to, later));
	}
	weft_view_focus(v->view, other->view->focus);
	copy_metrics(v, other);
	weft_viewer_set_threads(v, other->threads);
	weft_viewer_set_filter(v, other->filter);
	weft_viewer_set_clock(v, &other->clock);
	v->overview_shown = other->overview_shown;
	if (other->selected != WEFT_NONE)
		weft__viewer_select(v, weft_model_find(v->model, other->model->promises[other->selected].id));
	if (other->search_text[0])
		weft__viewer_search(v, other->search_text, NULL);
	else if (other->highlighting == WEFT_HIGHLIGHT_RELATED)
		weft_viewer_highlight_related(v, weft_model_find(v->model, other->model->promises[other->related].id));
	else if (other->highlighting == WEFT_HIGHLIGHT_FINDING)
		copy_highlights(v, other);
	if (other->has_span) {
		v->has_span = true;
		v->span_from_ns = other->span_from_ns;
		v->span_to_ns = other->span_to_ns;
	}
	weft__viewer_move_history(v, other);
	v->table_shown = other->table_shown;
	v->open_group_key = other->open_group_key;
	if (other->blame_shown)
		weft_viewer_show_blame(v, true, other->blame_by, 0);
	v->table_order = other->table_order;
	memcpy(v->table_filter, other->table_filter, sizeof v->table_filter);
	v->table_scope = other->table_scope;
	v->live_open_group = other->live_open_group;
	memcpy(v->live_extra_rows, other->live_extra_rows, sizeof v->live_extra_rows);
	memcpy(v->name, other->name, sizeof v->name);
	weft__viewer_copy_answers(v, other);
}
