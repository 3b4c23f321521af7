/* actions.h: lists all actions of a viewer in one table.  Menus, keys, the window of shortcuts and the help of the web page are
 * made from this table.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ACTIONS_H
#define WEFT_VIEWER_ACTIONS_H

#include "viewer/viewer.h"

/* X(NAME, "name", who, group, "label", "keys", menus)
 *
 * who: CORE: weft_viewer_act() implements it; APP: the application does (a dialog, a file).
 *
 * keys: names as in the DOM's KeyboardEvent.key ("Space" for ' '), prefixed with Ctrl+ Alt+ Shift+, separated by spaces.  Signs
 * and letters have no Shift+, because the character itself depends on Shift.  The help shows the first key.
 *
 * menus: MAIN, BOTH (also in the context menu) or NONE. */
#define WEFT_ACTIONS(X)                                                                                                          \
	X(OPEN, "open", APP, FILE, "Open a trace\xe2\x80\xa6", "Ctrl+o", MAIN)                                                   \
	X(RELOAD, "reload", APP, FILE, "Reload the trace", "F5 Ctrl+r", MAIN)                                                    \
	X(COMPARE, "compare", APP, FILE, "Compare with another trace\xe2\x80\xa6", "Ctrl+Shift+o", MAIN)                         \
	X(EXPORT_SVG, "export-svg", APP, FILE, "Export as SVG\xe2\x80\xa6", "Ctrl+e", MAIN)                                      \
	X(EXPORT_PNG, "export-png", APP, FILE, "Export as PNG\xe2\x80\xa6", "Ctrl+Shift+e", MAIN)                                \
	X(COPY_LINK, "copy-link", APP, FILE, "Copy a link to this view", "Ctrl+l", MAIN)                                         \
	X(SHOW_ALL, "show-all", CORE, VIEW, "Show the whole trace", "Home 0", BOTH)                                              \
	X(ZOOM_IN, "zoom-in", CORE, VIEW, "Zoom in", "+ = Ctrl++ Ctrl+=", MAIN)                                                  \
	X(ZOOM_OUT, "zoom-out", CORE, VIEW, "Zoom out", "- Ctrl+-", MAIN)                                                        \
	X(PAN_LEFT, "pan-left", CORE, VIEW, "Move earlier", "ArrowLeft", NONE)                                                   \
	X(PAN_RIGHT, "pan-right", CORE, VIEW, "Move later", "ArrowRight", NONE)                                                  \
	X(PAGE_LEFT, "page-left", CORE, VIEW, "Move a screen earlier", "PageUp", NONE)                                           \
	X(PAGE_RIGHT, "page-right", CORE, VIEW, "Move a screen later", "PageDown", NONE)                                         \
	X(ROWS_UP, "rows-up", CORE, VIEW, "Show rows further up", "ArrowUp", NONE)                                               \
	X(ROWS_DOWN, "rows-down", CORE, VIEW, "Show rows further down", "ArrowDown", NONE)                                       \
	X(ZOOM_PROMISE, "zoom-promise", CORE, VIEW, "Zoom to the promise", "z", BOTH)                                            \
	X(ZOOM_SPAN, "zoom-span", CORE, VIEW, "Zoom to the measured interval", "m", BOTH)                                        \
	X(GO_TIME, "go-time", APP, VIEW, "Go to a time\xe2\x80\xa6", "@", MAIN)                                                  \
	X(SET_START, "set-start", APP, VIEW, "Set the start\xe2\x80\xa6", "s", MAIN)                                             \
	X(SET_DURATION, "set-duration", APP, VIEW, "Set the duration\xe2\x80\xa6", "d", MAIN)                                    \
	X(METRICS, "metrics", CORE, SHOW, "Metrics", "Space", BOTH)                                                              \
	X(THREADS, "threads", CORE, SHOW, "OS threads: CPU states", "T", BOTH)                                                   \
	X(HOLD_ROWS, "hold-rows", CORE, SHOW, "Show rows without a visible promise", "k", MAIN)                                  \
	X(FOLD_SLEEP, "fold-sleep", CORE, SHOW, "Fold sleep", "S", MAIN)                                                         \
	X(NAMES, "names", CORE, SHOW, "Names of rows at the left", "R", MAIN)                                                    \
	X(INTERNALS, "internals", CORE, SHOW, "Rows for internals of runtimes", "I", MAIN)                                       \
	X(OVERVIEW, "overview", CORE, SHOW, "Overview", "o", MAIN)                                                               \
	X(LEGEND, "legend", CORE, SHOW, "Legend of the signs", "L", MAIN)                                                        \
	X(BLAME, "blame", CORE, SHOW, "Flame graph: where the time went", "W", MAIN)                                             \
	X(CLOCK, "clock", CORE, SHOW, "Time of day", "t", MAIN)                                                                  \
	X(PANEL, "panel", APP, SHOW, "Side panel", "F9 p", MAIN)                                                                 \
	X(FREE_AXES, "free-axes", CORE, SHOW, "Separate time axes", "x", MAIN)                                                   \
	X(FIND, "find", APP, FIND, "Find\xe2\x80\xa6", "/ Ctrl+f", BOTH)                                                         \
	X(NEXT_MATCH, "next-match", CORE, FIND, "Next match", "n F3 Ctrl+g", MAIN)                                               \
	X(PREVIOUS_MATCH, "previous-match", CORE, FIND, "Previous match", "N Shift+F3 Ctrl+Shift+g", MAIN)                       \
	X(SORT_MATCHES, "sort-matches", CORE, FIND, "Sort matches by time, duration, name", "O", MAIN)                           \
	X(FILTER, "filter", CORE, FIND, "Dim promises that do not match", "f", MAIN)                                             \
	X(RELATED, "related", CORE, WALK, "Highlight the promises merged with it", "h", BOTH)                                    \
	X(LIKE, "like", CORE, WALK, "Find similar promises", "l", BOTH)                                                          \
	X(STEP_LATER, "step-later", CORE, WALK, "Select the next promise in the row", "Shift+ArrowRight", NONE)                  \
	X(STEP_EARLIER, "step-earlier", CORE, WALK, "Select the previous promise in the row", "Shift+ArrowLeft", NONE)           \
	X(STEP_DOWN, "step-down", CORE, WALK, "Select the promise below", "Shift+ArrowDown", NONE)                               \
	X(STEP_UP, "step-up", CORE, WALK, "Select the promise above", "Shift+ArrowUp", NONE)                                     \
	X(NEXT_OFF, "next-off", CORE, WALK, "Next time off CPU of a running promise", ".", NONE)                                 \
	X(PREVIOUS_OFF, "previous-off", CORE, WALK, "Previous time off CPU of a running promise", ",", NONE)                     \
	X(MEASURE, "measure", CORE, WALK, "Measure the promise, or extend the interval to it", "M", BOTH)                        \
	X(CLEAR, "clear", CORE, WALK, "Clear interval, highlights, selection", "Escape", MAIN)                                   \
	X(FINDINGS, "findings", APP, WALK, "Findings: detected problems", "e", BOTH)                                             \
	X(TABLE, "table", APP, WALK, "Table: durations by type", "q", BOTH)                                                      \
	X(LIVE, "live", APP, WALK, "Live: promises in flight now or at the end", "F", BOTH)                                      \
	X(MENU, "menu", CORE, WALK, "Open the menu of the promise", "ContextMenu Shift+F10", NONE)                               \
	X(WHY, "why", CORE, WALK, "Why this state?", "y Alt+y", BOTH)                                                            \
	X(FOCUS, "focus", CORE, WALK, "Show only what belongs to the promise", "i", BOTH)                                        \
	X(HIDE_KIND, "hide-kind", CORE, WALK, "Hide this kind", "H", BOTH)                                                       \
	X(HIDE_LIKE, "hide-like", CORE, WALK, "Hide similar promises", "D", BOTH)                                                \
	X(ONLY_KIND, "only-kind", CORE, WALK, "Show only this kind", "E", BOTH)                                                  \
	X(ONLY_LIKE, "only-like", CORE, WALK, "Show only similar promises", "X", BOTH)                                           \
	X(UNFOCUS, "unfocus", CORE, WALK, "Show everything again", "u", BOTH)                                                    \
	X(FOLD, "fold", CORE, WALK, "Fold or unfold the track", "b", BOTH)                                                       \
	X(FOLD_KIND, "fold-kind", CORE, WALK, "Fold or unfold this kind", "B", BOTH)                                             \
	X(FOLD_LIKE, "fold-like", CORE, WALK, "Fold or unfold similar promises", "j", BOTH)                                      \
	X(FOLD_SITE, "fold-site", CORE, WALK, "Fold or unfold this site", "J", BOTH)                                             \
	X(FOLD_LIBRARY, "fold-library", CORE, WALK, "Fold or unfold this library", "K", BOTH)                                    \
	X(GROUP, "group", CORE, SHOW, "Group rows by kind, site, library, OS thread", "G", MAIN)                                 \
	X(FOLD_THIN, "fold-thin", CORE, SHOW, "Fold low tracks automatically", "g", MAIN)                                        \
	X(UNFOLD_ALL, "unfold-all", CORE, WALK, "Unfold everything", "v", BOTH)                                                  \
	X(GO_AWAITED, "go-awaited", CORE, WALK, "Go to what the promise waits for", "a", BOTH)                                   \
	X(GO_RESOLVER, "go-resolver", CORE, WALK, "Go to what resolved the promise", "r", BOTH)                                  \
	X(GO_CREATOR, "go-creator", CORE, WALK, "Go to the creator", "c", BOTH)                                                  \
	X(GO_WOKEN, "go-woken", CORE, WALK, "Go to the promise that it woke", "w", BOTH)                                         \
	X(BACK, "back", CORE, WALK, "Back", "Alt+ArrowLeft Backspace", BOTH)                                                     \
	X(FORWARD, "forward", CORE, WALK, "Forward", "Alt+ArrowRight", MAIN)                                                     \
	X(SHORTCUTS, "shortcuts", APP, HELP, "Keys and gestures", "? F1", MAIN)
/* clang-format on */

enum weft_action {
#define WEFT_ACTION_ENUM(NAME, name, who, group, label, keys, menus) WEFT_ACTION_##NAME,
	WEFT_ACTIONS(WEFT_ACTION_ENUM)
#undef WEFT_ACTION_ENUM
	    WEFT_ACTION_COUNT
};

enum weft_action_who { WEFT_BY_CORE, WEFT_BY_APP };
enum weft_action_group {
	WEFT_GROUP_FILE,
	WEFT_GROUP_VIEW,
	WEFT_GROUP_SHOW,
	WEFT_GROUP_FIND,
	WEFT_GROUP_WALK,
	WEFT_GROUP_HELP,
	WEFT_GROUPS
};
enum weft_menu { WEFT_IN_NONE = 0, WEFT_IN_MAIN = 1, WEFT_IN_CONTEXT = 2, WEFT_IN_BOTH = 3 }; /* bits */

struct weft_action_info {
	const char *name;  /* name of the action for action maps and scripts, such as "zoom-in" */
	const char *label; /* UTF-8 */
	const char *keys;
	uint8_t who, group, menus;
};

/* Returns the table's row for an action, which must not be WEFT_ACTION_COUNT. */
const struct weft_action_info *weft_action_info(enum weft_action action);
const char *weft_action_group_label(enum weft_action_group group);

/* Return the action with a name, or with a key (such as "ArrowLeft" with WEFT_ALT); WEFT_ACTION_COUNT if there is none.  ASCII
 * letters of a key are case-sensitive, as typed. */
enum weft_action weft_action_find(const char *name);
enum weft_action weft_action_of_key(const char *key, unsigned modifiers);

/* Writes the name and the modifiers of an action's key number n, counted from 0.  Returns false if the action has fewer keys. */
bool weft_action_key(enum weft_action action, int n, char key[16], unsigned *modifiers);

/* X("gesture", "effect") lists a gesture for the help; pointer.c implements the gestures. */
#define WEFT_GESTURES(X)                                                                                                         \
	X("Drag", "Move the picture in time and rows")                                                                           \
	X("Wheel, pinch", "Zoom at the pointer")                                                                                 \
	X("Shift + wheel", "Move the picture in time")                                                                           \
	X("Ctrl + wheel", "Move the rows up and down")                                                                           \
	X("Click, tap", "Select a promise")                                                                                      \
	X("Double click", "Unfold a line, or highlight the promises merged with it")                                             \
	X("Right click, long press", "Open the menu of a promise")                                                               \
	X("Shift + drag, drag in the ruler", "Measure an interval")                                                              \
	X("Click on a name, on its triangle", "Select the promise of the row; fold or unfold the row")                           \
	X("Drag in the overview", "Move the visible interval, or its edges")

struct weft_gesture {
	const char *gesture, *effect;
};
const struct weft_gesture *weft_gestures(size_t *count);

enum weft_action_state { WEFT_ACTION_ENABLED = 1, WEFT_ACTION_IS_SWITCH = 2, WEFT_ACTION_ON = 4 };

/* Returns the current bits of enum weft_action_state; APP actions are always enabled. */
unsigned weft_viewer_action_state(const struct weft_viewer *viewer, enum weft_action action);

/* Performs a CORE action if the action is enabled.  Returns WEFT_ENOTSUP for APP actions and for FREE_AXES, which compare.h
 * implements, and WEFT_EINVAL if the action is disabled. */
int weft_viewer_act(struct weft_viewer *viewer, enum weft_action action);

#endif
