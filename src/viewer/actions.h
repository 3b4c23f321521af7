/* actions.h: all that a user can ask for, in one table: menus, keys, the window of shortcuts and the page's help are made from
 * it. SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_ACTIONS_H
#define WEFT_VIEWER_ACTIONS_H

#include "viewer/viewer.h"

/* X(NAME, "name", who, group, "label", "keys", menus)
 *
 * who:   CORE: weft_viewer_act() does it; APP: the application does, in its own way (a dialog, a file).
 * keys:  as the DOM's KeyboardEvent.key calls them ("Space" for ' '), with Ctrl+ Alt+ Shift+ before, separated by spaces; a sign
 * or letter says itself whether Shift is pressed.  The first is the one to show. menus: where it is found: MAIN, BOTH (in the
 * context menu too), NONE.
 */
#define WEFT_ACTIONS(X)                                                                                                          \
	X(OPEN, "open", APP, FILE, "Open a trace\xe2\x80\xa6", "Ctrl+o", MAIN)                                                   \
	X(RELOAD, "reload", APP, FILE, "Read the trace again", "F5 Ctrl+r", MAIN)                                                \
	X(COMPARE, "compare", APP, FILE, "Compare with another trace\xe2\x80\xa6", "Ctrl+Shift+o", MAIN)                         \
	X(EXPORT_SVG, "export-svg", APP, FILE, "Export as SVG\xe2\x80\xa6", "Ctrl+e", MAIN)                                      \
	X(EXPORT_PNG, "export-png", APP, FILE, "Export as PNG\xe2\x80\xa6", "Ctrl+Shift+e", MAIN)                                \
	X(COPY_LINK, "copy-link", APP, FILE, "Copy a link to this place", "Ctrl+l", MAIN)                                        \
	X(SHOW_ALL, "show-all", CORE, VIEW, "Show the whole trace", "Home 0", BOTH)                                              \
	X(ZOOM_IN, "zoom-in", CORE, VIEW, "Zoom in", "+ = Ctrl++ Ctrl+=", MAIN)                                                  \
	X(ZOOM_OUT, "zoom-out", CORE, VIEW, "Zoom out", "- Ctrl+-", MAIN)                                                        \
	X(PAN_LEFT, "pan-left", CORE, VIEW, "Earlier", "ArrowLeft", NONE)                                                        \
	X(PAN_RIGHT, "pan-right", CORE, VIEW, "Later", "ArrowRight", NONE)                                                       \
	X(PAGE_LEFT, "page-left", CORE, VIEW, "Move a screen earlier", "PageUp", NONE)                                           \
	X(PAGE_RIGHT, "page-right", CORE, VIEW, "Move a screen later", "PageDown", NONE)                                         \
	X(ROWS_UP, "rows-up", CORE, VIEW, "Show rows further up", "ArrowUp", NONE)                                               \
	X(ROWS_DOWN, "rows-down", CORE, VIEW, "Show rows further down", "ArrowDown", NONE)                                       \
	X(ZOOM_PROMISE, "zoom-promise", CORE, VIEW, "Zoom to the promise", "z", BOTH)                                            \
	X(ZOOM_SPAN, "zoom-span", CORE, VIEW, "Zoom to the measured span", "m", BOTH)                                            \
	X(SET_START, "set-start", APP, VIEW, "Set the start\xe2\x80\xa6", "s", MAIN)                                             \
	X(SET_DURATION, "set-duration", APP, VIEW, "Set the duration\xe2\x80\xa6", "d", MAIN)                                    \
	X(METRICS, "metrics", CORE, SHOW, "Metrics", "Space", BOTH)                                                              \
	X(THREADS, "threads", CORE, SHOW, "OS threads: who had a processor", "T", BOTH)                                          \
	X(HOLD_ROWS, "hold-rows", CORE, SHOW, "Hold rows still", "k", MAIN)                                                      \
	X(FOLD_SLEEP, "fold-sleep", CORE, SHOW, "Fold sleep", "S", MAIN)                                                         \
	X(OVERVIEW, "overview", CORE, SHOW, "Overview", "o", MAIN)                                                               \
	X(LEGEND, "legend", CORE, SHOW, "Legend: what the signs mean", "L", MAIN)                                                \
	X(BLAME, "blame", CORE, SHOW, "Blame: where time went", "W", MAIN)                                                       \
	X(CLOCK, "clock", CORE, SHOW, "Time of day", "t", MAIN)                                                                  \
	X(PANEL, "panel", APP, SHOW, "Side panel", "F9 p", MAIN)                                                                 \
	X(FREE_AXES, "free-axes", CORE, SHOW, "Separate time axes", "x", MAIN)                                                   \
	X(FIND, "find", APP, FIND, "Find\xe2\x80\xa6", "/ Ctrl+f", BOTH)                                                         \
	X(NEXT_MATCH, "next-match", CORE, FIND, "Next match", "n F3 Ctrl+g", MAIN)                                               \
	X(PREVIOUS_MATCH, "previous-match", CORE, FIND, "Previous match", "N Shift+F3 Ctrl+Shift+g", MAIN)                       \
	X(FILTER, "filter", CORE, FIND, "Dim what does not match", "f", MAIN)                                                    \
	X(RELATED, "related", CORE, WALK, "Highlight what it became and came from", "h", BOTH)                                   \
	X(LIKE, "like", CORE, WALK, "Find all like it", "l", BOTH)                                                               \
	X(STEP_LATER, "step-later", CORE, WALK, "Select the next one on its row", "Shift+ArrowRight", NONE)                      \
	X(STEP_EARLIER, "step-earlier", CORE, WALK, "Select the one before it on its row", "Shift+ArrowLeft", NONE)              \
	X(STEP_DOWN, "step-down", CORE, WALK, "Select the one below", "Shift+ArrowDown", NONE)                                   \
	X(STEP_UP, "step-up", CORE, WALK, "Select the one above", "Shift+ArrowUp", NONE)                                         \
	X(NEXT_OFF, "next-off", CORE, WALK, "Next time that it ran without a processor", ".", NONE)                              \
	X(PREVIOUS_OFF, "previous-off", CORE, WALK, "The time before that it ran without a processor", ",", NONE)                \
	X(MEASURE, "measure", CORE, WALK, "Measure it, or from what is measured to it", "M", BOTH)                               \
	X(CLEAR, "clear", CORE, WALK, "Clear span, highlights, selection", "Escape", MAIN)                                       \
	X(FINDINGS, "findings", APP, WALK, "Findings: what went wrong", "e", BOTH)                                               \
	X(TABLE, "table", APP, WALK, "Table: what sorts of promises took", "q", BOTH)                                            \
	X(LIVE, "live", APP, WALK, "Live: what is in flight now, or at the end", "F", BOTH)                                      \
	X(MENU, "menu", CORE, WALK, "Open the menu of the promise", "ContextMenu Shift+F10", NONE)                               \
	X(WHY, "why", CORE, WALK, "Why is it as it is?", "y Alt+y", BOTH)                                                        \
	X(FOCUS, "focus", CORE, WALK, "Show only what belongs to it", "i", BOTH)                                                 \
	X(UNFOCUS, "unfocus", CORE, WALK, "Show everything again", "u", BOTH)                                                    \
	X(FOLD, "fold", CORE, WALK, "Fold or unfold what belongs to it", "b", BOTH)                                              \
	X(FOLD_KIND, "fold-kind", CORE, WALK, "Fold or unfold all of its kind", "B", BOTH)                                       \
	X(FOLD_LIKE, "fold-like", CORE, WALK, "Fold or unfold all like it", "j", BOTH)                                           \
	X(FOLD_SITE, "fold-site", CORE, WALK, "Fold or unfold all that was created where it was", "J", BOTH)                     \
	X(FOLD_LIBRARY, "fold-library", CORE, WALK, "Fold or unfold all of its library", "K", BOTH)                              \
	X(GROUP, "group", CORE, SHOW, "Group rows by kind, site, library, OS thread", "G", MAIN)                                 \
	X(FOLD_THIN, "fold-thin", CORE, SHOW, "Fold what would be too thin", "g", MAIN)                                          \
	X(UNFOLD_ALL, "unfold-all", CORE, WALK, "Unfold everything", "v", BOTH)                                                  \
	X(GO_AWAITED, "go-awaited", CORE, WALK, "Go to what it waits for", "a", BOTH)                                            \
	X(GO_RESOLVER, "go-resolver", CORE, WALK, "Go to what resolved it", "r", BOTH)                                           \
	X(GO_CREATOR, "go-creator", CORE, WALK, "Go to what created it", "c", BOTH)                                              \
	X(GO_WOKEN, "go-woken", CORE, WALK, "Go to what it woke", "w", BOTH)                                                     \
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
	const char *name;  /* "zoom-in": for action maps and scripts */
	const char *label; /* UTF-8 */
	const char *keys;
	uint8_t who, group, menus;
};

/* One of WEFT_ACTION_COUNT. */
const struct weft_action_info *weft_action_info(enum weft_action action);
const char *weft_action_group_label(enum weft_action_group group);

/* The action of that name or of a key ("ArrowLeft" with WEFT_ALT); WEFT_ACTION_COUNT if there is none.  ASCII letters of a key go
 * by their case, as typed. */
enum weft_action weft_action_find(const char *name);
enum weft_action weft_action_of_key(const char *key, unsigned modifiers);

/* Key number n of an action from 0: writes its name and modifiers; false if it has no more. */
bool weft_action_key(enum weft_action action, int n, char key[16], unsigned *modifiers);

/* X("what the hand does", "what then happens"): for the same window and help; pointer.c does it. */
#define WEFT_GESTURES(X)                                                                                                         \
	X("Drag", "Moves the picture both ways")                                                                                 \
	X("Wheel, pinch", "Zooms at the pointer")                                                                                \
	X("Shift + wheel", "Moves the picture sideways")                                                                         \
	X("Ctrl + wheel", "Moves the rows up and down")                                                                          \
	X("Click, tap", "Selects a promise")                                                                                     \
	X("Double click", "Unfolds a folded line; or highlights what it became and came from")                                   \
	X("Right click, long press", "The menu of a promise")                                                                    \
	X("Shift + drag, drag in the ruler", "Measures a span of time")                                                          \
	X("Drag in the overview", "Moves what is shown, or its edges")

struct weft_gesture {
	const char *gesture, *effect;
};
const struct weft_gesture *weft_gestures(size_t *count);

enum weft_action_state { WEFT_ACTION_ENABLED = 1, WEFT_ACTION_IS_SWITCH = 2, WEFT_ACTION_ON = 4 };

/* Bits of enum weft_action_state, as things are now; an APP's are enabled. */
unsigned weft_viewer_action_state(const struct weft_viewer *viewer, enum weft_action action);

/* Does one of CORE's, if it is enabled (FREE_AXES is for several: compare.h); WEFT_ENOTSUP if it is the application's,
 * WEFT_EINVAL if it is not enabled now. */
int weft_viewer_act(struct weft_viewer *viewer, enum weft_action action);

#endif
