/* compare.c: shows several viewers, one above the other.  SPDX-License-Identifier: ISC */
#include "viewer/compare.h"

#include <stdio.h>
#include <string.h>

#include "viewer/findings.h"
#include "viewer/private.h"
#include "viewer/search.h"
#include "viewer/url_state.h"

struct weft_viewer *weft_compare_active(const struct weft_compare *c)
{
	return c->count > 0 ? c->viewers[c->active] : NULL;
}

/* Sets the sizes of the viewers, and the ends of their time axes. */
static void place_viewers(struct weft_compare *c)
{
	double gaps = c->count > 1 ? WEFT_COMPARE_GAP_PX * (double)(c->count - 1) : 0;
	double height = c->count > 0 ? (c->height_px - gaps) / (double)c->count : 0;
	int64_t end_ns = 0;
	for (size_t i = 0; i < c->count; i++)
		end_ns = c->viewers[i]->model->end_ns > end_ns ? c->viewers[i]->model->end_ns : end_ns;
	for (size_t i = 0; i < c->count; i++) {
		struct weft_viewer *v = c->viewers[i];
		v->compared = c->count > 1;
		weft__viewer_set_beside(v, c->count == 2 ? c->viewers[1 - i] : NULL, i == 1);
		c->tops_px[i] = (double)i * (height + WEFT_COMPARE_GAP_PX);
		weft_view_set_end(v->view, c->free ? v->model->end_ns : end_ns);
		if (c->width_px > 0)
			weft_viewer_resize(v, c->width_px, height, c->scale);
	}
	c->changes |= WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE | WEFT_CHANGED_SETTING;
}

void weft_compare_follow(struct weft_compare *c)
{
	int64_t from, to;
	if (c->free || c->count < 2)
		return;
	weft_viewer_times(c->viewers[c->active], &from, &to);
	for (size_t i = 0; i < c->count; i++) {
		int64_t own_from, own_to;
		weft_viewer_times(c->viewers[i], &own_from, &own_to);
		if (i != c->active && (own_from != from || own_to != to))
			weft_viewer_show(c->viewers[i], from, to);
	}
}

int weft_compare_add(struct weft_compare *c, struct weft_viewer *viewer, struct weft_error *err)
{
	if (c->count == WEFT_MAX_COMPARED)
		return weft_error_set(err, WEFT_ETOOBIG, "at most %d traces can be compared", WEFT_MAX_COMPARED);
	struct weft_viewer *active = weft_compare_active(c);
	c->viewers[c->count++] = viewer;
	weft_viewer_set_measure(viewer, c->measure, c->measure_ctx);
	if (active) {
		weft__viewer_search(viewer, active->search_text, NULL);
		weft_viewer_set_filter(viewer, active->filter);
		weft_viewer_set_metrics(viewer, active->metrics);
		weft_viewer_set_threads(viewer, active->threads);
		weft_viewer_hold_rows(viewer, active->view->holds_rows);
		weft_viewer_fold_sleep(viewer, active->view->lulls != NULL);
	}
	place_viewers(c);
	weft_compare_follow(c);
	return WEFT_OK;
}

struct weft_viewer *weft_compare_replace(struct weft_compare *c, size_t index, struct weft_viewer *viewer)
{
	struct weft_viewer *other = c->viewers[index];
	weft_viewer_copy_state(viewer, other);
	c->viewers[index] = viewer;
	place_viewers(c);
	weft_compare_follow(c);
	c->changes |= WEFT_CHANGED_SELECTION | WEFT_CHANGED_HOVER | WEFT_CHANGED_SEARCH | WEFT_CHANGED_FINDINGS |
		      WEFT_CHANGED_TABLE | WEFT_CHANGED_LIVE;
	return other;
}

void weft_compare_remove(struct weft_compare *c, size_t index)
{
	weft_viewer_destroy(c->viewers[index]);
	c->count--;
	memmove(&c->viewers[index], &c->viewers[index + 1], (c->count - index) * sizeof(struct weft_viewer *));
	if (c->active > index || c->active == c->count)
		c->active -= c->active > 0;
	place_viewers(c);
	c->changes |= WEFT_CHANGED_SELECTION | WEFT_CHANGED_HOVER | WEFT_CHANGED_SEARCH | WEFT_CHANGED_FINDINGS;
}

void weft_compare_finish(struct weft_compare *c)
{
	for (size_t i = 0; i < c->count; i++)
		weft_viewer_destroy(c->viewers[i]);
	c->count = c->active = 0;
}

void weft_compare_resize(struct weft_compare *c, double width_px, double height_px, double scale)
{
	c->width_px = width_px > 1 ? width_px : 1;
	c->height_px = height_px > 1 ? height_px : 1;
	c->scale = scale;
	place_viewers(c);
}

void weft_compare_set_measure(struct weft_compare *c, weft_measure_fn *measure, void *ctx)
{
	c->measure = measure;
	c->measure_ctx = ctx;
	for (size_t i = 0; i < c->count; i++)
		weft_viewer_set_measure(c->viewers[i], measure, ctx);
}

int weft_compare_draw(struct weft_compare *c, struct weft_pane *out, int max_panes, struct weft_error *err)
{
	int count = 0;
	for (size_t i = 0; i < c->count; i++) {
		int status = weft_viewer_draw(c->viewers[i], err);
		if (status < 0)
			return status;
		for (int pane = 0; pane < WEFT_PANES && count < max_panes; pane++) {
			out[count] = c->viewers[i]->panes[pane];
			out[count++].y_px += c->tops_px[i];
		}
	}
	return count;
}

unsigned weft_compare_take_changes(struct weft_compare *c)
{
	unsigned changes = c->changes;
	c->changes = 0;
	for (size_t i = 0; i < c->count; i++)
		changes |= weft_viewer_take_changes(c->viewers[i]);
	return changes;
}

void weft_compare_set_free(struct weft_compare *c, bool free)
{
	c->free = free;
	place_viewers(c);
	weft_compare_follow(c);
}

/* Returns the viewer at a height, and converts *y_px to px from that viewer's top. */
static size_t viewer_at(const struct weft_compare *c, double *y_px)
{
	size_t i = c->count - 1;
	while (i > 0 && *y_px < c->tops_px[i])
		i--;
	*y_px -= c->tops_px[i];
	return i;
}

void weft_compare_activate(struct weft_compare *c, size_t index)
{
	if (c->active == index || index >= c->count)
		return;
	c->active = index;
	c->changes |= WEFT_CHANGED_SELECTION | WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE | WEFT_CHANGED_FINDINGS |
		      WEFT_CHANGED_TABLE | WEFT_CHANGED_LIVE;
}

void weft_compare_press(struct weft_compare *c, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks)
{
	if (c->count == 0)
		return;
	weft_compare_activate(c, viewer_at(c, &y_px));
	struct weft_viewer *v = c->viewers[c->active];
	weft_viewer_press(v, x_px, y_px, button, modifiers, clicks);
	v->menu_y_px += v->changes & WEFT_CHANGED_MENU ? c->tops_px[c->active] : 0;
	weft_compare_follow(c);
}

void weft_compare_motion(struct weft_compare *c, double x_px, double y_px)
{
	if (c->count == 0)
		return;
	/* A viewer that was pressed keeps the pointer until the button is released. */
	if (c->viewers[c->active]->pointer != WEFT_POINTER_IDLE) {
		weft_viewer_motion(c->viewers[c->active], x_px, y_px - c->tops_px[c->active]);
		weft_compare_follow(c);
		return;
	}
	size_t under = viewer_at(c, &y_px);
	for (size_t i = 0; i < c->count; i++)
		if (i != under)
			weft_viewer_leave(c->viewers[i]);
	weft_viewer_motion(c->viewers[under], x_px, y_px);
	for (size_t i = 0; !c->free && i < c->count; i++)
		if (i != under)
			weft__viewer_set_guide(c->viewers[i], c->viewers[under]->has_pointer, c->viewers[under]->pointer_ns);
}

void weft_compare_release(struct weft_compare *c, double x_px, double y_px)
{
	if (c->count == 0)
		return;
	weft_viewer_release(c->viewers[c->active], x_px, y_px - c->tops_px[c->active]);
	weft_compare_follow(c);
}

void weft_compare_leave(struct weft_compare *c)
{
	for (size_t i = 0; i < c->count; i++)
		weft_viewer_leave(c->viewers[i]);
}

/* Makes the other viewers follow the viewer that moved, without making it the active viewer; only a press does that. */
static void follow_another(struct weft_compare *c, size_t index)
{
	size_t active = c->active;
	c->active = index;
	weft_compare_follow(c);
	c->active = active;
}

void weft_compare_wheel(struct weft_compare *c, double x_px, double y_px, double dx, double dy, unsigned modifiers)
{
	if (c->count == 0)
		return;
	size_t under = viewer_at(c, &y_px);
	weft_viewer_wheel(c->viewers[under], x_px, y_px, dx, dy, modifiers);
	follow_another(c, under);
}

void weft_compare_pinch(struct weft_compare *c, double x_px, double y_px, double factor, double dx_px, double dy_px)
{
	if (c->count == 0)
		return;
	size_t under = viewer_at(c, &y_px);
	weft_viewer_pinch(c->viewers[under], x_px, y_px, factor, dx_px, dy_px);
	follow_another(c, under);
}

int weft_compare_search(struct weft_compare *c, const char *text, struct weft_error *err)
{
	int status = WEFT_OK;
	for (size_t i = 0; i < c->count; i++)
		status = weft_viewer_search(c->viewers[i], text, err);
	return status;
}

bool weft_compare_search_step(struct weft_compare *c, uint32_t promises)
{
	bool more = false;
	for (size_t i = 0; i < c->count && promises > 0; i++) {
		uint32_t at = c->viewers[i]->search_at;
		more |= weft_viewer_search_step(c->viewers[i], promises);
		promises -= c->viewers[i]->search_at - at;
	}
	for (size_t i = 0; i < c->count; i++)
		more |= weft_viewer_is_searching(c->viewers[i]);
	return more;
}

size_t weft_compare_found(const struct weft_compare *c)
{
	size_t found = 0;
	for (size_t i = 0; i < c->count; i++)
		found += c->viewers[i]->view->found;
	return found;
}

size_t weft_compare_findings(const struct weft_compare *c)
{
	size_t count = 0;
	for (size_t i = 0; i < c->count; i++)
		count += weft_findings_count(c->viewers[i]);
	return count;
}

void weft_compare_show_findings(struct weft_compare *c)
{
	for (size_t i = 0; i < c->count && weft_findings_count(c->viewers[c->active]) == 0; i++)
		if (weft_findings_count(c->viewers[i]) > 0)
			weft_compare_activate(c, i);
}

static bool is_for_matches(enum weft_action action)
{
	return action == WEFT_ACTION_NEXT_MATCH || action == WEFT_ACTION_PREVIOUS_MATCH;
}

/* Returns the viewer that provides the matches: the active viewer or, if it has none, another viewer that has some. */
static size_t with_match(const struct weft_compare *c)
{
	for (size_t i = 0; i < c->count; i++) {
		size_t index = (c->active + i) % c->count;
		if (c->viewers[index]->view->found > 0)
			return index;
	}
	return c->active;
}

unsigned weft_compare_action_state(const struct weft_compare *c, enum weft_action action)
{
	const struct weft_viewer *active = weft_compare_active(c);
	if (action == WEFT_ACTION_FREE_AXES)
		return WEFT_ACTION_IS_SWITCH | (c->count > 1 ? WEFT_ACTION_ENABLED : 0u) | (c->free ? WEFT_ACTION_ON : 0u);
	if (!active)
		return weft_action_info(action)->who == WEFT_BY_CORE ? 0 : WEFT_ACTION_ENABLED;
	return weft_viewer_action_state(is_for_matches(action) ? c->viewers[with_match(c)] : active, action);
}

int weft_compare_act(struct weft_compare *c, enum weft_action action)
{
	if (weft_action_info(action)->who != WEFT_BY_CORE)
		return WEFT_ENOTSUP;
	if (!(weft_compare_action_state(c, action) & WEFT_ACTION_ENABLED))
		return WEFT_EINVAL;
	if (action == WEFT_ACTION_FREE_AXES) {
		weft_compare_set_free(c, !c->free);
		return WEFT_OK;
	}
	if (is_for_matches(action))
		weft_compare_activate(c, with_match(c));
	struct weft_viewer *active = weft_compare_active(c);
	int status = weft_viewer_act(active, action);
	if (status < 0)
		return status;
	if (action == WEFT_ACTION_MENU)
		active->menu_y_px += c->tops_px[c->active];
	for (size_t i = 0; i < c->count; i++) {
		struct weft_viewer *v = c->viewers[i];
		if (v == active)
			continue;
		if (action == WEFT_ACTION_METRICS)
			weft_viewer_set_metrics(v, active->metrics);
		if (action == WEFT_ACTION_THREADS)
			weft_viewer_set_threads(v, active->threads);
		if (action == WEFT_ACTION_HOLD_ROWS)
			weft_viewer_hold_rows(v, active->view->holds_rows);
		if (action == WEFT_ACTION_FOLD_SLEEP)
			weft_viewer_fold_sleep(v, active->view->lulls != NULL);
		if (action == WEFT_ACTION_NAMES)
			weft_viewer_set_names(v, active->names_shown, active->names_px);
		if (action == WEFT_ACTION_OVERVIEW)
			weft_viewer_set_overview(v, active->overview_shown);
		if (action == WEFT_ACTION_CLOCK)
			weft_viewer_set_clock(v, &active->clock);
		if (action == WEFT_ACTION_FILTER)
			weft_viewer_set_filter(v, active->filter);
		if (strcmp(v->search_text, active->search_text) != 0)
			weft__viewer_search(v, active->search_text, NULL);
	}
	weft_compare_follow(c);
	return WEFT_OK;
}

size_t weft_compare_place(const struct weft_compare *c, char *buf, size_t size)
{
	struct weft_viewer *active = weft_compare_active(c);
	if (!active) {
		if (size > 0)
			buf[0] = '\0';
		return 0;
	}
	size_t len = weft_viewer_place(active, buf, size);
	if (c->count > 1)
		len += (size_t)snprintf(len < size ? buf + len : NULL, len < size ? size - len : 0, "&on=%d%s", (int)c->active,
		    c->free ? "&free=1" : "");
	return len;
}

/* Returns the value of a parameter of a place, which is one digit; -1 if the place lacks the parameter. */
static int digit_of(const char *place, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = place; at; at = strchr(at, '&')) {
		at += *at == '&' || *at == '#';
		if (strncmp(at, name, len) == 0 && at[len] >= '0' && at[len] <= '9' &&
		    (at[len + 1] == '\0' || at[len + 1] == '&'))
			return at[len] - '0';
	}
	return -1;
}

int weft_compare_go(struct weft_compare *c, const char *place, struct weft_error *err)
{
	int on = digit_of(place, "on="), free = digit_of(place, "free=");
	if (c->count == 0)
		return WEFT_OK;
	size_t index = on >= 0 && (size_t)on < c->count ? (size_t)on : 0;
	int status = weft_viewer_go(c->viewers[index], place, err);
	if (status < 0)
		return status;
	weft_compare_activate(c, index);
	if (c->count > 1 && c->free != (free == 1))
		weft_compare_set_free(c, free == 1);
	for (size_t i = 0; i < c->count; i++) {
		struct weft_viewer *v = c->viewers[i], *active = c->viewers[index];
		if (i == index)
			continue;
		weft_viewer_set_metrics(v, active->metrics);
		weft_viewer_set_threads(v, active->threads);
		weft_viewer_hold_rows(v, active->view->holds_rows);
		weft_viewer_fold_sleep(v, active->view->lulls != NULL);
		weft_viewer_set_filter(v, active->filter);
		if (strcmp(v->search_text, active->search_text) != 0)
			weft__viewer_search(v, active->search_text, NULL);
	}
	weft_compare_follow(c);
	return WEFT_OK;
}
