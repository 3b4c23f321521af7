/* history.c: where one was, to go back there.
 *
 * Each thing that a user does begins by remembering where one is, unless it goes on with what was done last, as the next notch of
 * a wheel does.  Where one is, is a link (place.h), and the scale and the focus to the last bit.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "viewer/place.h"
#include "viewer/private.h"

#define MOST 1000 /* places kept; then the older half is forgotten */

static bool look(const struct weft_viewer *v, struct weft_past *past)
{
	size_t size = weft_viewer_place(v, NULL, 0) + 1;
	*past = (struct weft_past){.place = malloc(size),
	    .from_ns = v->view->from_ns,
	    .px_per_ns = v->view->px_per_ns,
	    .focus = v->view->focus,
	    .width_px = v->view->width_px,
	    .height_px = v->view->height_px};
	if (past->place)
		weft_viewer_place(v, past->place, size);
	return past->place;
}

/* Whether that is where one is. */
static bool is_here(const struct weft_viewer *v, const struct weft_past *past)
{
	struct weft_past now;
	bool same = look(v, &now) && strcmp(now.place, past->place) == 0;
	free(now.place);
	return same;
}

static void forget_from(struct weft_viewer *v, size_t at)
{
	while (v->history.count > at)
		free(v->history.items[--v->history.count].place);
}

/* Without memory one cannot go back. */
static void remember(struct weft_viewer *v)
{
	struct weft_past now;
	if (!look(v, &now))
		return;
	if (v->history.count > 0) {
		if (strcmp(now.place, v->history.items[v->history_at].place) == 0) {
			free(now.place);
			return;
		}
		forget_from(v, v->history_at + 1);
	}
	if (v->history.count >= MOST) {
		for (size_t i = 0; i < MOST / 2; i++)
			free(v->history.items[i].place);
		v->history.count -= MOST / 2;
		memmove(v->history.items, v->history.items + MOST / 2, v->history.count * sizeof *v->history.items);
	}
	struct weft_past *added = weft_vec_push(&v->history);
	if (added)
		*added = now;
	else
		free(now.place);
	v->history_at = v->history.count > 0 ? v->history.count - 1 : 0;
}

void weft__viewer_begins(struct weft_viewer *v, enum weft_move move)
{
	bool goes_on = move != WEFT_MOVE_ACTS && v->last_move == move;
	v->last_move = move;
	if (goes_on)
		return;
	remember(v);
	weft__viewer_changed(v, WEFT_CHANGED_MOVED);
}

void weft__viewer_forget_history(struct weft_viewer *v)
{
	forget_from(v, 0);
	weft_vec_free(&v->history);
	v->history_at = 0;
}

void weft__viewer_take_history(struct weft_viewer *v, struct weft_viewer *other)
{
	weft__viewer_forget_history(v);
	memcpy(&v->history, &other->history, sizeof v->history);
	memset(&other->history, 0, sizeof other->history);
	v->history_at = other->history_at;
	other->history_at = 0;
}

static void go_to(struct weft_viewer *v, size_t at)
{
	const struct weft_past *past = &v->history.items[at];
	bool exact = past->width_px == v->view->width_px && past->height_px == v->view->height_px; // NOLINT: the same window
	v->history_at = at;
	v->last_move = WEFT_MOVE_NONE;
	weft_viewer_go(v, past->place, NULL);
	if (exact) {
		weft_view_restore(v->view, past->from_ns, past->px_per_ns, v->view->focus);
		weft__viewer_choose_part(v);
		weft_view_restore(v->view, past->from_ns, past->px_per_ns, past->focus);
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
	remember(v);
	if (v->history_at == 0)
		return false;
	go_to(v, v->history_at - 1);
	return true;
}

bool weft_viewer_forward(struct weft_viewer *v)
{
	if (!weft_viewer_can_go_forward(v))
		return false;
	go_to(v, v->history_at + 1);
	return true;
}
