/* part.c: what is shown of a trace: all, what belongs to one promise, and folded or not.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layout/focus.h"
#include "viewer/private.h"

static const struct weft_layout *whole_of(const struct weft_viewer *v)
{
	return v->whole_layout ? v->whole_layout : v->layout;
}

/* What is highlighted, how large it is and how far time goes is the same in one view as in another. */
static void take_view(struct weft_view *view, const struct weft_view *from)
{
	memcpy(view->highlight, from->highlight, (from->model->promise_count / 64 + 1) * sizeof *view->highlight);
	view->found = from->found;
	weft_view_set_end(view, from->end_ns);
	weft_view_resize(view, from->width_px, from->height_px);
	weft_view_hold_rows(view, from->holds_rows);
}

static void forget_part(struct weft_viewer *v)
{
	if (!v->whole_view)
		return;
	weft_view_destroy(v->view);
	weft_layout_destroy(v->layout);
	v->view = v->whole_view;
	v->layout = v->whole_layout;
	v->whole_view = NULL;
	v->whole_layout = NULL;
}

/* A layout and a view of what is to be shown; both NULL if that is all. */
static int make_part(const struct weft_viewer *v, uint32_t focused, struct weft_layout **layout, struct weft_view **view)
{
	uint64_t *only = NULL;
	uint32_t *leader_of = NULL;
	int status = WEFT_OK;
	if (focused != WEFT_NONE)
		status = weft_focus_find(&only, NULL, v->model, whole_of(v), focused, NULL);
	if (status == WEFT_OK)
		status = weft_folding_find(&leader_of, &v->folding, v->model, whole_of(v), only, NULL);
	if (status == WEFT_OK && (only || leader_of))
		status = weft_layout_create_folded(layout, v->model, only, leader_of, NULL);
	if (status == WEFT_OK && *layout)
		status = weft_view_create(view, v->model, *layout, NULL);
	free(only);
	free(leader_of);
	return status;
}

/* Shows what is to be shown, at the same time; the row under the focus stays there if `promise` is on it. */
static bool show_part(struct weft_viewer *v, uint32_t focused)
{
	struct weft_layout *layout = NULL;
	struct weft_view *view = NULL;
	int64_t from, to;
	if (make_part(v, focused, &layout, &view) < 0) {
		weft_view_destroy(view);
		weft_layout_destroy(layout);
		return false;
	}
	weft_viewer_times(v, &from, &to);
	if (view)
		take_view(view, v->view);
	else if (v->whole_view)
		take_view(v->whole_view, v->view);
	forget_part(v);
	if (view) {
		v->whole_view = v->view;
		v->whole_layout = v->layout;
		v->view = view;
		v->layout = layout;
		weft_view_show(v->view, from, to);
	}
	v->hovered = v->hovered_link = WEFT_NONE;
	return true;
}

static void focus_on(struct weft_viewer *v, uint32_t promise)
{
	if (promise != WEFT_NONE && v->layout->rows[promise] != WEFT_NONE)
		weft_view_focus(v->view, weft_view_slot(v->view, v->layout->rows[promise]));
}

static void changed(struct weft_viewer *v)
{
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_HOVER | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

void weft_viewer_focus(struct weft_viewer *v, uint32_t promise)
{
	uint32_t before = v->focused;
	if (before == promise || (promise != WEFT_NONE && !weft__viewer_has(v, promise)) || !show_part(v, promise))
		return;
	v->focused = promise;
	if (promise != WEFT_NONE) {
		weft_view_show_promise(v->view, promise);
		focus_on(v, promise);
	} else if (v->folding.count > 0) {
		focus_on(v, before);
	}
	weft__viewer_ask_path(v);
	changed(v);
}

void weft_viewer_fold(struct weft_viewer *v, const char *query)
{
	if (!weft_folding_toggle(&v->folding, query))
		return;
	if (!show_part(v, v->focused)) {
		weft_folding_toggle(&v->folding, query);
		return;
	}
	focus_on(v, v->selected);
	changed(v);
}

void weft_viewer_unfold_all(struct weft_viewer *v)
{
	size_t count = v->folding.count;
	v->folding.count = 0;
	if (count == 0)
		return;
	if (!show_part(v, v->focused)) {
		v->folding.count = count;
		return;
	}
	focus_on(v, v->selected);
	changed(v);
}

bool weft_viewer_fold_query(
    const struct weft_viewer *v, uint32_t promise, enum weft_fold_what what, char text[WEFT_QUERY_BYTES + 1])
{
	const struct weft_layout *whole = whole_of(v);
	if (!weft__viewer_has(v, promise))
		return false;
	if (what == WEFT_FOLD_LIKE) {
		weft_query_like(v->model, promise, text);
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

void weft__viewer_take_parts(struct weft_viewer *v, const struct weft_viewer *other)
{
	v->folding = other->folding;
	if (v->folding.count > 0 && !show_part(v, WEFT_NONE))
		v->folding.count = 0;
	if (other->focused != WEFT_NONE)
		weft_viewer_focus(v, weft_model_find(v->model, other->model->promises[other->focused].id));
}

void weft__viewer_set_folding(struct weft_viewer *v, const struct weft_folding *folding)
{
	bool same = v->folding.count == folding->count;
	for (size_t i = 0; same && i < folding->count; i++)
		same = strcmp(v->folding.queries[i], folding->queries[i]) == 0;
	if (same)
		return;
	struct weft_folding before = v->folding;
	v->folding = *folding;
	if (!show_part(v, v->focused))
		v->folding = before;
	changed(v);
}
