/* history.c: remembers the places (states of the viewer) to which the user can go back.
 *
 * Before each action of the user, the current place is stored, unless the action continues the last action, such as the next
 * notch of a wheel.  A place is stored as a link (url_state.h), with exact values of the scale and the focus.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "viewer/private.h"
#include "viewer/url_state.h"

#define MAX_HISTORY 1000 /* maximum number of places; when it is reached, the older half is dropped */

static bool describe_now(const struct weft_viewer *v, struct weft_history_entry *entry)
{
	size_t size = weft_viewer_place(v, NULL, 0) + 1;
	*entry = (struct weft_history_entry){.place = malloc(size),
	    .from_ns = v->view->from_ns,
	    .px_per_ns = v->view->px_per_ns,
	    .focus = v->view->focus,
	    .width_px = v->view->width_px,
	    .height_px = v->view->height_px};
	if (entry->place)
		weft_viewer_place(v, entry->place, size);
	return entry->place;
}

/* Returns whether the viewer is at the place of a history entry. */
static bool is_here(const struct weft_viewer *v, const struct weft_history_entry *entry)
{
	struct weft_history_entry now;
	bool same = describe_now(v, &now) && strcmp(now.place, entry->place) == 0;
	free(now.place);
	return same;
}

static void forget_from(struct weft_viewer *v, size_t at)
{
	while (v->history.count > at)
		free(v->history.items[--v->history.count].place);
}

/* Stores the current place.  Without memory, the place is not stored. */
static void remember_now(struct weft_viewer *v)
{
	struct weft_history_entry now;
	if (!describe_now(v, &now))
		return;
	if (v->history.count > 0) {
		if (strcmp(now.place, v->history.items[v->history_at].place) == 0) {
			free(now.place);
			return;
		}
		forget_from(v, v->history_at + 1);
	}
	if (v->history.count >= MAX_HISTORY) {
		for (size_t i = 0; i < MAX_HISTORY / 2; i++)
			free(v->history.items[i].place);
		v->history.count -= MAX_HISTORY / 2;
		memmove(v->history.items, v->history.items + MAX_HISTORY / 2, v->history.count * sizeof *v->history.items);
	}
	struct weft_history_entry *added = weft_vec_push(&v->history);
	if (added)
		*added = now;
	else
		free(now.place);
	v->history_at = v->history.count > 0 ? v->history.count - 1 : 0;
}

void weft__viewer_begin_move(struct weft_viewer *v, enum weft_move move)
{
	weft__viewer_clear_refusal(v);
	bool continues = move != WEFT_MOVE_ACTS && v->last_move == move;
	v->last_move = move;
	if (continues)
		return;
	remember_now(v);
	weft__viewer_changed(v, WEFT_CHANGED_MOVED);
}

void weft__viewer_forget_history(struct weft_viewer *v)
{
	forget_from(v, 0);
	weft_vec_free(&v->history);
	v->history_at = 0;
}

void weft__viewer_move_history(struct weft_viewer *v, struct weft_viewer *other)
{
	weft__viewer_forget_history(v);
	memcpy(&v->history, &other->history, sizeof v->history);
	memset(&other->history, 0, sizeof other->history);
	v->history_at = other->history_at;
	other->history_at = 0;
}

static void go_to_entry(struct weft_viewer *v, size_t at)
{
	const struct weft_history_entry *entry = &v->history.items[at];
	bool exact = entry->width_px == v->view->width_px && entry->height_px == v->view->height_px; /* NOLINT: the same window */
	v->history_at = at;
	v->last_move = WEFT_MOVE_NONE;
	weft_viewer_go(v, entry->place, NULL);
	if (exact) {
		weft_view_restore(v->view, entry->from_ns, entry->px_per_ns, v->view->focus);
		weft__viewer_choose_subset(v);
		weft_view_restore(v->view, entry->from_ns, entry->px_per_ns, entry->focus);
	}
	v->last_move = WEFT_MOVE_NONE;
	v->hovered = v->hovered_link = v->hovered_spot.track = WEFT_NONE;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_HOVER | WEFT_CHANGED_PLACE);
}

bool weft_viewer_can_go_back(const struct weft_viewer *v)
{
	return v->history.count > 0 && (v->history_at > 0 || !is_here(v, &v->history.items[v->history_at]));
}

bool weft_viewer_can_go_forward(const struct weft_viewer *v)
{
	return v->history_at + 1 < v->history.count && is_here(v, &v->history.items[v->history_at]);
}

bool weft_viewer_back(struct weft_viewer *v)
{
	if (!weft_viewer_can_go_back(v))
		return false;
	remember_now(v);
	if (v->history_at == 0)
		return false;
	go_to_entry(v, v->history_at - 1);
	return true;
}

bool weft_viewer_forward(struct weft_viewer *v)
{
	if (!weft_viewer_can_go_forward(v))
		return false;
	go_to_entry(v, v->history_at + 1);
	return true;
}
