/* subset.c: shows all promises, or those that belong to one promise, with or without folds.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layout/focus.h"
#include "model/roles.h"
#include "viewer/private.h"

static const struct weft_layout *whole_of(const struct weft_viewer *v)
{
	return v->whole_layout ? v->whole_layout : v->layout;
}

/* Copies highlights, size and end of the time axis from one view to another. */
static void copy_view_state(struct weft_view *view, const struct weft_view *from)
{
	memcpy(view->highlight, from->highlight, (from->model->promise_count / 64 + 1) * sizeof *view->highlight);
	view->found = from->found;
	weft_view_set_end(view, from->end_ns);
	weft_view_resize(view, from->width_px, from->height_px);
	weft_view_hold_rows(view, from->holds_rows);
	weft_view_fold_sleep(view, from->lulls, NULL);
}

static void destroy_subset(struct weft_shown_subset *part)
{
	weft_view_destroy(part->view);
	weft_layout_destroy(part->layout);
	*part = (struct weft_shown_subset){0};
}

void weft__viewer_finish_subsets(struct weft_viewer *v)
{
	if (v->whole_view) {
		v->view = v->whole_view;
		v->layout = v->whole_layout;
		v->whole_view = NULL;
		v->whole_layout = NULL;
	}
	destroy_subset(&v->fine);
	destroy_subset(&v->coarse);
}

/* Creates the layout and view of a subset; both are NULL if the subset is the whole trace. */
static int create_subset(
    const struct weft_viewer *v, uint32_t focused, const struct weft_folding *folding, struct weft_shown_subset *part)
{
	uint64_t *only = NULL;
	uint32_t *leader_of = NULL;
	int status = WEFT_OK;
	*part = (struct weft_shown_subset){0};
	if (focused != WEFT_NONE)
		status = weft_focus_find(&only, NULL, v->model, whole_of(v), focused, NULL);
	if (status == WEFT_OK)
		status = weft_folding_find_shown(&only, folding, v->model, whole_of(v), NULL);
	if (status == WEFT_OK)
		status = weft_folding_find(&leader_of, folding, v->model, whole_of(v), only, NULL);
	if (status == WEFT_OK && folding->rows_by != WEFT_ROWS_BY_THREAD)
		status = weft_layout_create_grouped(&part->layout, v->model, folding->rows_by, only, leader_of, NULL);
	else if (status == WEFT_OK && (only || leader_of))
		status = weft_layout_create_folded(&part->layout, v->model, whole_of(v), only, leader_of, NULL);
	if (status == WEFT_OK && part->layout)
		status = weft_view_create_subset(&part->view, v->whole_view ? v->whole_view : v->view, part->layout, NULL);
	if (status < 0)
		destroy_subset(part);
	free(only);
	free(leader_of);
	return status;
}

static void focus_on(struct weft_viewer *v, uint32_t promise)
{
	if (promise != WEFT_NONE && v->layout->rows[promise] != WEFT_NONE)
		weft_view_focus(v->view, weft_view_slot(v->view, v->layout->rows[promise]));
}

/* Returns a promise in the focus of the view, which is the selected promise if it is visible. */
static uint32_t in_focus(const struct weft_viewer *v)
{
	uint32_t row = weft_view_row_at(v->view, weft_view_y(v->view, v->view->focus));
	if (v->selected != WEFT_NONE && v->layout->rows[v->selected] != WEFT_NONE &&
	    weft_view_is_shown(v->view, v->layout->rows[v->selected]))
		return v->selected;
	return row == WEFT_NONE || v->layout->row_begin[row] == v->layout->row_begin[row + 1]
		   ? WEFT_NONE
		   : v->layout->by_row[v->layout->row_begin[row]];
}

/* Shows a subset, or the whole trace if the subset has no view, over the same interval; the row in focus stays in focus. */
static void switch_to_view(struct weft_viewer *v, const struct weft_shown_subset *part)
{
	struct weft_view *from = v->view, *to = part->view ? part->view : v->whole_view ? v->whole_view : v->view;
	if (from == to)
		return;
	uint32_t middle = in_focus(v);
	copy_view_state(to, from);
	if (part->view) {
		v->whole_layout = v->whole_view ? v->whole_layout : v->layout;
		v->whole_view = v->whole_view ? v->whole_view : v->view;
		v->layout = part->layout;
	} else {
		v->layout = v->whole_layout;
		v->whole_view = NULL;
		v->whole_layout = NULL;
	}
	v->view = to;
	weft_view_restore(to, from->from_ns, from->px_per_ns, 0);
	focus_on(v, middle);
	v->hovered = v->hovered_link = v->hovered_spot.track = WEFT_NONE;
}

bool weft__viewer_choose_subset(struct weft_viewer *v)
{
	const struct weft_draw_options options = weft__viewer_options(v);
	const struct weft_view *before = v->view;
	bool coarse = v->folds_itself && v->fold_depth > 0 && v->focused == WEFT_NONE &&
		      v->folding.rows_by == WEFT_ROWS_BY_THREAD &&
		      weft_thinness_at(&v->thinness, v->view, weft_draw_lanes_px(v->model, &options, v->view->height_px));
	if (coarse && !v->coarse.view) {
		struct weft_folding folding = v->folding;
		folding.depth = v->fold_depth;
		coarse = create_subset(v, WEFT_NONE, &folding, &v->coarse) == WEFT_OK && v->coarse.view;
		v->fold_depth = coarse ? v->fold_depth : 0; /* the depth is 0 without memory, or if there is nothing to fold */
	}
	switch_to_view(v, coarse ? &v->coarse : &v->fine);
	return v->view != before;
}

void weft__viewer_show_everything(struct weft_viewer *v)
{
	if (v->focused != WEFT_NONE)
		weft_viewer_focus(v, WEFT_NONE);
	else
		weft_viewer_unhide_all(v);
}

bool weft__viewer_has_internals(const struct weft_viewer *v)
{
	const struct weft_roles *roles;
	return v->folding.rows_by == WEFT_ROWS_BY_THREAD && weft_model_roles(v->model, &roles) == WEFT_OK &&
	       roles->internal_count > 1;
}

void weft__viewer_fold_internals(struct weft_viewer *v)
{
	create_subset(v, WEFT_NONE, &v->folding, &v->fine); /* without memory, all rows are shown */
}

void weft__viewer_clear_refusal(struct weft_viewer *v)
{
	if (!v->refusal)
		return;
	v->refusal = NULL;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
}

static void refuse(struct weft_viewer *v, const char *why)
{
	v->refusal = why;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
}

/* Creates and shows the subset that belongs to the promise `focused`, with the folds of `folding`. */
static bool show_subset(struct weft_viewer *v, uint32_t focused, const struct weft_folding *folding)
{
	static const struct weft_shown_subset all;
	struct weft_shown_subset fine;
	int status = create_subset(v, focused, folding, &fine);
	if (status == WEFT_ENOTFOUND)
		refuse(v, "Not hidden: no promise would be left");
	if (status < 0)
		return false;
	uint32_t middle = in_focus(v);
	switch_to_view(v, &all);
	destroy_subset(&v->fine);
	destroy_subset(&v->coarse);
	v->fine = fine;
	if (folding != &v->folding)
		v->folding = *folding;
	v->focused = focused;
	weft__viewer_choose_subset(v);
	focus_on(v, v->selected != WEFT_NONE ? v->selected : middle);
	return true;
}

static void mark_changed(struct weft_viewer *v)
{
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_HOVER | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_focus(struct weft_viewer *v, uint32_t promise)
{
	uint32_t before = v->focused;
	struct weft_history_entry now = {
	    .from_ns = v->view->from_ns, .px_per_ns = v->view->px_per_ns, .focus = v->view->focus, .width_px = v->view->width_px};
	if (before == promise || (promise != WEFT_NONE && !weft__viewer_is_selectable(v, promise)) ||
	    !show_subset(v, promise, &v->folding))
		return;
	if (before == WEFT_NONE)
		v->unfocused = now;
	if (promise != WEFT_NONE) {
		weft_view_show_promise(v->view, promise);
		focus_on(v, promise);
	} else {
		weft_view_restore(
		    v->view, v->unfocused.from_ns, v->unfocused.px_per_ns * v->view->width_px / v->unfocused.width_px, 0);
		weft__viewer_choose_subset(v);
		weft_view_focus(v->view, v->unfocused.focus);
	}
	weft__viewer_ask_path(v);
	mark_changed(v);
}

void weft_viewer_fold(struct weft_viewer *v, const char *query)
{
	struct weft_folding folding = v->folding;
	if (weft_folding_toggle(&folding, query) && show_subset(v, v->focused, &folding))
		mark_changed(v);
}

void weft_viewer_unfold_all(struct weft_viewer *v)
{
	struct weft_folding folding = v->folding;
	bool folds_itself = v->folds_itself;
	folding.count = folding.opened_count = 0;
	folding.shows_internals = weft__viewer_has_internals(v);
	/* When the user unfolds, automatic folding is turned off. */
	v->folds_itself &= v->view != v->coarse.view;
	if (show_subset(v, v->focused, &folding))
		mark_changed(v);
	else
		v->folds_itself = folds_itself;
}

void weft_viewer_hide(struct weft_viewer *v, const char *query)
{
	struct weft_folding folding = v->folding;
	if (weft_folding_hide(&folding, query) && show_subset(v, v->focused, &folding))
		mark_changed(v);
}

void weft_viewer_show_only(struct weft_viewer *v, const char *query)
{
	struct weft_folding folding = v->folding;
	snprintf(folding.only, sizeof folding.only, "%s", query);
	if (show_subset(v, v->focused, &folding))
		mark_changed(v);
}

bool weft_viewer_hides(const struct weft_viewer *v)
{
	return v->folding.hidden_count > 0 || v->folding.only[0];
}

void weft_viewer_unhide_all(struct weft_viewer *v)
{
	struct weft_folding folding = v->folding;
	folding.hidden_count = 0;
	folding.only[0] = '\0';
	if (weft_viewer_hides(v) && show_subset(v, v->focused, &folding))
		mark_changed(v);
}

void weft_viewer_show_internals(struct weft_viewer *v, bool shown)
{
	struct weft_folding folding = v->folding;
	folding.shows_internals = shown;
	if (shown != v->folding.shows_internals && show_subset(v, v->focused, &folding))
		mark_changed(v);
}

void weft_viewer_group(struct weft_viewer *v, enum weft_rows_by by)
{
	struct weft_folding folding = v->folding;
	folding.rows_by = by;
	if (by != v->folding.rows_by && show_subset(v, v->focused, &folding))
		mark_changed(v);
}

void weft_viewer_set_folds_itself(struct weft_viewer *v, bool on)
{
	if (v->folds_itself == on)
		return;
	v->folds_itself = on;
	weft__viewer_choose_subset(v);
	mark_changed(v);
}

bool weft_viewer_open_fold(struct weft_viewer *v, uint32_t promise)
{
	const struct weft_layout *whole = whole_of(v);
	if (v->view != v->coarse.view || !weft__viewer_is_selectable(v, promise))
		return false;
	const struct weft_fold *fold = weft_layout_fold(v->layout, promise);
	struct weft_folding folding = v->folding;
	uint32_t actor = fold && fold->is_track ? promise : WEFT_NONE;
	uint32_t t = weft_layout_track(whole, promise) ? (uint32_t)(weft_layout_track(whole, promise) - whole->tracks)
						       : whole->track_of[promise];
	for (; actor == WEFT_NONE && t != WEFT_NONE; t = whole->tracks[t].around)
		for (size_t i = 0; i < folding.opened_count; i++)
			if (folding.opened[i] == v->model->promises[whole->tracks[t].actor].id)
				actor = whole->tracks[t].actor;
	if (actor == WEFT_NONE || !weft_folding_toggle_opened(&folding, v->model->promises[actor].id) ||
	    !show_subset(v, v->focused, &folding))
		return false;
	focus_on(v, actor);
	mark_changed(v);
	return true;
}

bool weft_viewer_fold_query(
    const struct weft_viewer *v, uint32_t promise, enum weft_fold_target what, char text[WEFT_QUERY_BYTES + 1])
{
	static const enum weft_fold_target of_group[] = {[WEFT_ROWS_BY_KIND] = WEFT_FOLD_KIND,
	    [WEFT_ROWS_BY_SITE] = WEFT_FOLD_SITE,
	    [WEFT_ROWS_BY_LIBRARY] = WEFT_FOLD_LIBRARY};
	const struct weft_layout *whole = whole_of(v);
	if (!weft__viewer_is_selectable(v, promise))
		return false;
	if (what == WEFT_FOLD_TRACK && v->folding.rows_by != WEFT_ROWS_BY_THREAD)
		what = of_group[v->folding.rows_by];
	if (what == WEFT_FOLD_SITE || what == WEFT_FOLD_LIBRARY)
		return weft_query_for_site(v->model, promise, what == WEFT_FOLD_LIBRARY, text);
	if (what == WEFT_FOLD_LIKE) {
		weft_query_for_similar(v->model, promise, text);
		return text[0];
	}
	if (what == WEFT_FOLD_KIND) {
		snprintf(text, WEFT_QUERY_BYTES, "kind:=%s", weft_model_kind_name(v->model, v->model->promises[promise].kind));
		return true;
	}
	uint32_t track = weft_layout_track(whole, promise) ? WEFT_NONE : whole->track_of[promise];
	uint32_t actor = weft_layout_track(whole, promise) ? promise
			 : track == WEFT_NONE              ? WEFT_NONE
							   : whole->tracks[track].actor;
	if (actor == WEFT_NONE)
		return false;
	snprintf(text, WEFT_QUERY_BYTES, "id:%" PRId64, v->model->promises[actor].id);
	return true;
}

void weft__viewer_copy_subset(struct weft_viewer *v, const struct weft_viewer *other)
{
	v->folds_itself = other->folds_itself;
	if (!show_subset(v, WEFT_NONE, &other->folding))
		weft__viewer_choose_subset(v);
	if (other->focused != WEFT_NONE)
		weft_viewer_focus(v, weft_model_find(v->model, other->model->promises[other->focused].id));
}

void weft__viewer_set_folding(struct weft_viewer *v, const struct weft_folding *folding)
{
	bool same = v->folding.count == folding->count && v->folding.opened_count == folding->opened_count &&
		    v->folding.rows_by == folding->rows_by && v->folding.shows_internals == folding->shows_internals;
	for (size_t i = 0; same && i < folding->count; i++)
		same = strcmp(v->folding.queries[i], folding->queries[i]) == 0;
	same &= v->folding.hidden_count == folding->hidden_count && strcmp(v->folding.only, folding->only) == 0;
	for (size_t i = 0; same && i < folding->hidden_count; i++)
		same = strcmp(v->folding.hidden[i], folding->hidden[i]) == 0;
	for (size_t i = 0; same && i < folding->opened_count; i++)
		same = v->folding.opened[i] == folding->opened[i];
	if (same || !show_subset(v, v->focused, folding))
		return;
	mark_changed(v);
}
