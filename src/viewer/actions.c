/* actions.c: implements the table of actions (actions.h).  SPDX-License-Identifier: ISC */
#include "viewer/actions.h"

#include <string.h>

#include "viewer/findings.h"
#include "viewer/flame_pane.h"
#include "viewer/private.h"
#include "viewer/search.h"

#define STEP_PX 80.0 /* of an arrow key */
#define ZOOM 1.5

static const struct weft_action_info table[] = {
#define ROW(NAME, name, who, group, label, keys, menus) {name, label, keys, WEFT_BY_##who, WEFT_GROUP_##group, WEFT_IN_##menus},
    WEFT_ACTIONS(ROW)
#undef ROW
};

const struct weft_action_info *weft_action_info(enum weft_action action)
{
	return &table[action];
}

const char *weft_action_group_label(enum weft_action_group group)
{
	static const char *const labels[] = {[WEFT_GROUP_FILE] = "Trace",
	    [WEFT_GROUP_VIEW] = "Navigation",
	    [WEFT_GROUP_SHOW] = "Display",
	    [WEFT_GROUP_FIND] = "Search",
	    [WEFT_GROUP_WALK] = "Promises",
	    [WEFT_GROUP_HELP] = "Help"};
	return labels[group];
}

const struct weft_gesture *weft_gestures(size_t *count)
{
	static const struct weft_gesture gestures[] = {
#define GESTURE(gesture, effect) {gesture, effect},
	    WEFT_GESTURES(GESTURE)
#undef GESTURE
	};
	*count = sizeof gestures / sizeof *gestures;
	return gestures;
}

enum weft_action weft_action_find(const char *name)
{
	int action = 0;
	while (action < WEFT_ACTION_COUNT && strcmp(table[action].name, name) != 0)
		action++;
	return (enum weft_action)action;
}

bool weft_action_key(enum weft_action action, int n, char key[16], unsigned *modifiers)
{
	static const struct {
		char prefix[8];
		unsigned modifier;
	} prefixes[] = {{"Ctrl+", WEFT_CONTROL}, {"Alt+", WEFT_ALT}, {"Shift+", WEFT_SHIFT}};
	const char *at = table[action].keys;
	for (; n > 0 && *at; n--) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	size_t len = strcspn(at, " ");
	unsigned found = 0;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t prefix = strlen(prefixes[i].prefix);
		if (len > prefix && memcmp(at, prefixes[i].prefix, prefix) == 0) {
			found |= prefixes[i].modifier;
			at += prefix;
			len -= prefix;
		}
	}
	if (n < 0 || len == 0 || len > 15)
		return false;
	memcpy(key, at, len);
	key[len] = '\0';
	*modifiers = found;
	return true;
}

/* Removes modifiers that a key does not need, because the character of a sign or letter already depends on Shift. */
static unsigned relevant_modifiers(const char *key, unsigned modifiers)
{
	bool is_sign = key[0] != '\0' && key[1] == '\0' && key[0] != ' ';
	bool is_plain_letter = is_sign && ((key[0] >= 'a' && key[0] <= 'z') || (key[0] >= 'A' && key[0] <= 'Z'));
	if (is_sign && (!is_plain_letter || !(modifiers & (WEFT_CONTROL | WEFT_ALT))))
		modifiers &= ~(unsigned)WEFT_SHIFT;
	return modifiers;
}

static bool same_key(const char *a, const char *b, bool any_case)
{
	for (; *a && *b; a++, b++) {
		char x = *a, y = *b;
		if (any_case && x >= 'A' && x <= 'Z')
			x = (char)(x + 32);
		if (any_case && y >= 'A' && y <= 'Z')
			y = (char)(y + 32);
		if (x != y)
			return false;
	}
	return *a == *b;
}

enum weft_action weft_action_of_key(const char *key, unsigned modifiers)
{
	modifiers = relevant_modifiers(key, modifiers & (WEFT_SHIFT | WEFT_CONTROL | WEFT_ALT));
	if (strcmp(key, " ") == 0)
		key = "Space";
	for (int a = 0; a < WEFT_ACTION_COUNT; a++) {
		char own[16];
		unsigned wanted;
		for (int n = 0; weft_action_key((enum weft_action)a, n, own, &wanted); n++)
			if (wanted == modifiers && same_key(own, key, (wanted & (WEFT_CONTROL | WEFT_ALT)) != 0))
				return (enum weft_action)a;
	}
	return WEFT_ACTION_COUNT;
}

static unsigned enabled_if(bool is)
{
	return is ? WEFT_ACTION_ENABLED : 0;
}

static unsigned switch_state(bool is_on)
{
	return WEFT_ACTION_ENABLED | WEFT_ACTION_IS_SWITCH | (is_on ? WEFT_ACTION_ON : 0u);
}

static bool can_walk(const struct weft_viewer *v, enum weft_walk_step step)
{
	return v->selected != WEFT_NONE && weft_walk(v->facts, v->selected, step) != WEFT_NONE;
}

unsigned weft_viewer_action_state(const struct weft_viewer *v, enum weft_action action)
{
	char text[WEFT_QUERY_BYTES + 1];
	switch (action) {
	case WEFT_ACTION_METRICS: return switch_state(v->metrics);
	case WEFT_ACTION_THREADS: return weft_viewer_has_threads(v) ? switch_state(v->threads) : (unsigned)WEFT_ACTION_IS_SWITCH;
	case WEFT_ACTION_NEXT_OFF:
	case WEFT_ACTION_PREVIOUS_OFF: return enabled_if(v->threads && weft_viewer_has_threads(v));
	case WEFT_ACTION_HOLD_ROWS: return switch_state(v->view->holds_rows);
	case WEFT_ACTION_FOLD_SLEEP: return switch_state(v->view->lulls != NULL);
	case WEFT_ACTION_FILTER: return switch_state(v->filter);
	case WEFT_ACTION_NAMES: return switch_state(v->names_shown);
	case WEFT_ACTION_INTERNALS:
		return weft__viewer_has_internals(v) ? switch_state(v->folding.shows_internals) : (unsigned)WEFT_ACTION_IS_SWITCH;
	case WEFT_ACTION_OVERVIEW: return switch_state(v->overview_shown);
	case WEFT_ACTION_BLAME: return switch_state(v->blame_shown);
	case WEFT_ACTION_LEGEND: return switch_state(v->legend);
	case WEFT_ACTION_CLOCK:
		return weft_clock_is_known(v->model) ? switch_state(v->clock.wall) : (unsigned)WEFT_ACTION_IS_SWITCH;
	case WEFT_ACTION_GO_AWAITED: return enabled_if(can_walk(v, WEFT_WALK_AWAITED));
	case WEFT_ACTION_GO_RESOLVER: return enabled_if(can_walk(v, WEFT_WALK_RESOLVER));
	case WEFT_ACTION_GO_CREATOR: return enabled_if(can_walk(v, WEFT_WALK_CREATOR));
	case WEFT_ACTION_GO_WOKEN: return enabled_if(can_walk(v, WEFT_WALK_WOKEN));
	case WEFT_ACTION_FREE_AXES: return WEFT_ACTION_IS_SWITCH;
	case WEFT_ACTION_ZOOM_PROMISE:
	case WEFT_ACTION_MEASURE:
	case WEFT_ACTION_WHY:
	case WEFT_ACTION_LIKE:
	case WEFT_ACTION_RELATED: return enabled_if(v->selected != WEFT_NONE);
	case WEFT_ACTION_FOCUS: return enabled_if(v->selected != WEFT_NONE && v->selected != v->focused);
	case WEFT_ACTION_FOLD: return enabled_if(weft_viewer_fold_query(v, v->selected, WEFT_FOLD_TRACK, text));
	case WEFT_ACTION_FOLD_SITE: return enabled_if(weft_viewer_fold_query(v, v->selected, WEFT_FOLD_SITE, text));
	case WEFT_ACTION_FOLD_LIBRARY: return enabled_if(weft_viewer_fold_query(v, v->selected, WEFT_FOLD_LIBRARY, text));
	case WEFT_ACTION_HIDE_KIND:
	case WEFT_ACTION_HIDE_LIKE:
	case WEFT_ACTION_ONLY_KIND:
	case WEFT_ACTION_ONLY_LIKE:
	case WEFT_ACTION_FOLD_KIND:
	case WEFT_ACTION_FOLD_LIKE: return enabled_if(v->selected != WEFT_NONE);
	case WEFT_ACTION_UNFOLD_ALL:
		return enabled_if(v->folding.count > 0 || v->view == v->coarse.view ||
				  (weft__viewer_has_internals(v) && !v->folding.shows_internals));
	case WEFT_ACTION_FOLD_THIN: return switch_state(v->folds_itself);
	case WEFT_ACTION_UNFOCUS: return enabled_if(v->focused != WEFT_NONE || weft_viewer_hides(v));
	case WEFT_ACTION_ZOOM_SPAN: return enabled_if(v->has_span);
	case WEFT_ACTION_NEXT_MATCH:
	case WEFT_ACTION_SORT_MATCHES:
	case WEFT_ACTION_PREVIOUS_MATCH: return enabled_if(v->view->found > 0);
	case WEFT_ACTION_BACK: return enabled_if(weft_viewer_can_go_back(v));
	case WEFT_ACTION_FORWARD: return enabled_if(weft_viewer_can_go_forward(v));
	case WEFT_ACTION_CLEAR:
		return enabled_if(v->has_span || v->highlighting != WEFT_HIGHLIGHT_NONE || v->search_text[0] ||
				  v->selected != WEFT_NONE || v->spot.track != WEFT_NONE);
	default: return WEFT_ACTION_ENABLED;
	}
}

static void toggle_fold(struct weft_viewer *v, enum weft_fold_target what)
{
	char text[WEFT_QUERY_BYTES + 1];
	if (what == WEFT_FOLD_TRACK && weft_viewer_open_fold(v, v->selected))
		return;
	if (weft_viewer_fold_query(v, v->selected, what, text))
		weft_viewer_fold(v, text);
}

static void act_on_alike(
    struct weft_viewer *v, enum weft_fold_target what, void act(struct weft_viewer *viewer, const char *query))
{
	char text[WEFT_QUERY_BYTES + 1];
	if (weft_viewer_fold_query(v, v->selected, what, text))
		act(v, text);
}

int weft_viewer_act(struct weft_viewer *v, enum weft_action action)
{
	if (table[action].who != WEFT_BY_CORE)
		return WEFT_ENOTSUP;
	weft__viewer_clear_refusal(v);
	if (!(weft_viewer_action_state(v, action) & WEFT_ACTION_ENABLED))
		return WEFT_EINVAL;
	if (action != WEFT_ACTION_BACK && action != WEFT_ACTION_FORWARD)
		weft__viewer_begin_move(v, WEFT_MOVE_ACTS);
	switch (action) {
	case WEFT_ACTION_SHOW_ALL: weft_viewer_show_all(v); break;
	case WEFT_ACTION_ZOOM_IN: weft_viewer_zoom(v, ZOOM, weft__viewer_middle(v)); break;
	case WEFT_ACTION_ZOOM_OUT: weft_viewer_zoom(v, 1 / ZOOM, weft__viewer_middle(v)); break;
	case WEFT_ACTION_PAN_LEFT: weft_viewer_pan(v, STEP_PX, 0); break;
	case WEFT_ACTION_PAN_RIGHT: weft_viewer_pan(v, -STEP_PX, 0); break;
	case WEFT_ACTION_PAGE_LEFT: weft_viewer_pan(v, v->panes[WEFT_PANE_PICTURE].width_px * 0.9, 0); break;
	case WEFT_ACTION_PAGE_RIGHT: weft_viewer_pan(v, -v->panes[WEFT_PANE_PICTURE].width_px * 0.9, 0); break;
	case WEFT_ACTION_ROWS_UP: weft_viewer_pan(v, 0, STEP_PX); break;
	case WEFT_ACTION_ROWS_DOWN: weft_viewer_pan(v, 0, -STEP_PX); break;
	case WEFT_ACTION_ZOOM_PROMISE: weft_viewer_show_promise(v, v->selected); break;
	case WEFT_ACTION_ZOOM_SPAN: weft_viewer_show_span(v); break;
	case WEFT_ACTION_METRICS: weft_viewer_set_metrics(v, !v->metrics); break;
	case WEFT_ACTION_THREADS: weft_viewer_set_threads(v, !v->threads); break;
	case WEFT_ACTION_NEXT_OFF: weft_viewer_step_off(v, true); break;
	case WEFT_ACTION_PREVIOUS_OFF: weft_viewer_step_off(v, false); break;
	case WEFT_ACTION_HOLD_ROWS: weft_viewer_hold_rows(v, !v->view->holds_rows); break;
	case WEFT_ACTION_FOLD_SLEEP: weft_viewer_fold_sleep(v, !v->view->lulls); break;
	case WEFT_ACTION_BLAME: weft_viewer_show_blame(v, !v->blame_shown, v->blame_by, v->blame_root); break;
	case WEFT_ACTION_LEGEND: weft_viewer_set_legend(v, !v->legend); break;
	case WEFT_ACTION_INTERNALS: weft_viewer_show_internals(v, !v->folding.shows_internals); break;
	case WEFT_ACTION_NAMES: weft_viewer_set_names(v, !v->names_shown, v->names_px); break;
	case WEFT_ACTION_OVERVIEW: weft_viewer_set_overview(v, !v->overview_shown); break;
	case WEFT_ACTION_CLOCK: weft_viewer_set_clock(v, &(struct weft_clock){!v->clock.wall, v->clock.utc_offset_s}); break;
	case WEFT_ACTION_FOCUS: weft_viewer_focus(v, v->selected); break;
	case WEFT_ACTION_UNFOCUS: weft__viewer_show_everything(v); break;
	case WEFT_ACTION_HIDE_KIND: act_on_alike(v, WEFT_FOLD_KIND, weft_viewer_hide); break;
	case WEFT_ACTION_HIDE_LIKE: act_on_alike(v, WEFT_FOLD_LIKE, weft_viewer_hide); break;
	case WEFT_ACTION_ONLY_KIND: act_on_alike(v, WEFT_FOLD_KIND, weft_viewer_show_only); break;
	case WEFT_ACTION_ONLY_LIKE: act_on_alike(v, WEFT_FOLD_LIKE, weft_viewer_show_only); break;
	case WEFT_ACTION_GO_AWAITED: weft_viewer_walk(v, WEFT_WALK_AWAITED); break;
	case WEFT_ACTION_GO_RESOLVER: weft_viewer_walk(v, WEFT_WALK_RESOLVER); break;
	case WEFT_ACTION_GO_CREATOR: weft_viewer_walk(v, WEFT_WALK_CREATOR); break;
	case WEFT_ACTION_GO_WOKEN: weft_viewer_walk(v, WEFT_WALK_WOKEN); break;
	case WEFT_ACTION_STEP_LATER: weft_viewer_step(v, 1, 0); break;
	case WEFT_ACTION_STEP_EARLIER: weft_viewer_step(v, -1, 0); break;
	case WEFT_ACTION_STEP_DOWN: weft_viewer_step(v, 0, 1); break;
	case WEFT_ACTION_STEP_UP: weft_viewer_step(v, 0, -1); break;
	case WEFT_ACTION_MEASURE: weft_viewer_measure_selected(v); break;
	case WEFT_ACTION_FOLD: toggle_fold(v, WEFT_FOLD_TRACK); break;
	case WEFT_ACTION_FOLD_KIND: toggle_fold(v, WEFT_FOLD_KIND); break;
	case WEFT_ACTION_FOLD_LIKE: toggle_fold(v, WEFT_FOLD_LIKE); break;
	case WEFT_ACTION_FOLD_SITE: toggle_fold(v, WEFT_FOLD_SITE); break;
	case WEFT_ACTION_FOLD_LIBRARY: toggle_fold(v, WEFT_FOLD_LIBRARY); break;
	case WEFT_ACTION_GROUP: weft_viewer_group(v, (v->folding.rows_by + 1) % WEFT_ROWS_BYS); break;
	case WEFT_ACTION_UNFOLD_ALL: weft_viewer_unfold_all(v); break;
	case WEFT_ACTION_FOLD_THIN: weft_viewer_set_folds_itself(v, !v->folds_itself); break;
	case WEFT_ACTION_SORT_MATCHES: weft_viewer_sort_matches(v, (v->match_order + 1) % WEFT_MATCH_ORDERS); break;
	case WEFT_ACTION_FILTER: weft_viewer_set_filter(v, !v->filter); break;
	case WEFT_ACTION_NEXT_MATCH: weft_viewer_next_match(v); break;
	case WEFT_ACTION_PREVIOUS_MATCH: weft_viewer_previous_match(v); break;
	case WEFT_ACTION_MENU: weft_viewer_menu(v); break;
	case WEFT_ACTION_RELATED: weft_viewer_highlight_related(v, v->selected); break;
	case WEFT_ACTION_WHY: weft_viewer_ask_why(v); break;
	case WEFT_ACTION_LIKE: weft_viewer_search_like(v, v->selected); break;
	case WEFT_ACTION_CLEAR: weft_viewer_clear(v); break;
	case WEFT_ACTION_BACK: weft_viewer_back(v); break;
	case WEFT_ACTION_FORWARD: weft_viewer_forward(v); break;
	default: return WEFT_ENOTSUP;
	}
	return WEFT_OK;
}
