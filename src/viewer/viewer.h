/* viewer.h: a complete viewer of a trace without a window: what the viewer shows, the selection, and the effects of pointers and
 * keys.
 *
 * An application creates a viewer for a trace, passes the size and user input to the viewer, and draws its panes.  All px are
 * the application's, counted from the top left of the viewer.  A viewer uses no toolkit, clock or file; the same calls give the
 * same state on every platform.  Only one thread at a time may use a viewer.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_VIEWER_H
#define WEFT_VIEWER_VIEWER_H

#include "analysis/queries/diff.h"
#include "analysis/queries/flame_stacks.h"
#include "analysis/queries/type_table.h"
#include "analysis/queries/walk.h"
#include "base/vec.h"
#include "draw/gutter.h"
#include "draw/marks.h"
#include "draw/overview.h"
#include "draw/ruler.h"
#include "view/fold.h"
#include "view/query.h"
#include "view/sleep.h"

/* Bits of changes since the last weft_viewer_take_changes(). */
enum weft_changed {
	WEFT_CHANGED_PICTURE = 1,    /* change: the panes must be drawn again */
	WEFT_CHANGED_SELECTION = 2,  /* viewer->selected, the history */
	WEFT_CHANGED_HOVER = 4,      /* viewer->hovered */
	WEFT_CHANGED_SEARCH = 8,     /* change of the search text, or of the number of matches */
	WEFT_CHANGED_PLACE = 16,     /* change of the result of weft_viewer_place(), and of the scrollbars */
	WEFT_CHANGED_SETTING = 32,   /* change of a setting that can be switched on and off */
	WEFT_CHANGED_OVERLAY = 128,  /* change: only the panes over the picture must be drawn again */
	WEFT_CHANGED_MENU = 64,      /* request for the context menu, at viewer->menu_x_px, menu_y_px */
	WEFT_CHANGED_FINDINGS = 256, /* change of the rows of findings.h, or of the questions for them */
	WEFT_CHANGED_ANSWER = 512,   /* change: "why?" was answered, so the findings should be shown */
	WEFT_CHANGED_TABLE = 2048,   /* the rows of table.h */
	WEFT_CHANGED_LIVE = 4096,    /* the rows of live_panel.h */
	WEFT_CHANGED_SPAN = 8192,    /* change: a span was measured, so its table should be shown */
	WEFT_CHANGED_MOVED = 1024    /* change: a place was added to the history */
};

/* A part of the viewer, with its draw list.  To draw a pane, translate to x_px, y_px, clip to width_px, height_px, and scale by
 * `scale`. */
struct weft_pane {
	const struct weft_draw_list *list;
	double x_px, y_px, width_px, height_px, scale;
};

/* Panes from back to front: the picture, and left of it the gutter with the names of rows; marks over the picture, and the blame
 * pane below it; the guides over it; and above it the lane of a promise's path, the ruler and the overview.  A hidden pane has a
 * height of 0 and an empty draw list. */
enum {
	WEFT_PANE_PICTURE,
	WEFT_PANE_GUTTER,
	WEFT_PANE_MARKS,
	WEFT_PANE_BLAME,
	WEFT_PANE_GUIDES,
	WEFT_PANE_LANE,
	WEFT_PANE_RULER,
	WEFT_PANE_OVERVIEW,
	WEFT_PANES
};

/* State of an axis for a scrollbar: the range lower..upper, of which `page` is visible from `value` on. */
struct weft_range {
	double lower, upper, value, page;
};

enum weft_highlighting { WEFT_HIGHLIGHT_NONE, WEFT_HIGHLIGHT_SEARCH, WEFT_HIGHLIGHT_RELATED, WEFT_HIGHLIGHT_FINDING };

enum weft_match_order { WEFT_MATCHES_BY_TIME, WEFT_MATCHES_BY_DURATION, WEFT_MATCHES_BY_NAME, WEFT_MATCH_ORDERS };

/* The interval that the table of types covers. */
enum weft_scope { WEFT_SCOPE_WHOLE, WEFT_SCOPE_SEEN, WEFT_SCOPE_SPAN };

/* A spot in the lane of an OS thread (model/os_tracks.h): an interval on or off CPU, or a pixel with many intervals. */
struct weft_spot {
	uint32_t track; /* WEFT_NONE: no spot */
	bool is_mixed;
	int64_t from_ns, to_ns;
};

/* A place (state of the viewer) in the history. */
struct weft_history_entry {
	char *place; /* as weft_viewer_place() writes it */
	int64_t from_ns;
	double px_per_ns, focus, width_px, height_px; /* of the view */
};

/* A layout of a subset or with folds, and its view; both may be NULL. */
struct weft_shown_subset {
	struct weft_layout *layout;
	struct weft_view *view;
};

/* Kinds of user actions.  A repeated action of a type other than ACTS is stored once in the history. */
enum weft_move { WEFT_MOVE_NONE, WEFT_MOVE_ACTS, WEFT_MOVE_ZOOMS, WEFT_MOVE_SCROLLS, WEFT_MOVE_SEARCHES };

/* Questions for analysis/findings/explain.h: what the findings of the trace are, and why a promise is in its state. */
enum weft_ask { WEFT_ASK_TRACE, WEFT_ASK_WHY, WEFT_ASKS };

enum weft_question_state {
	WEFT_QUESTION_NONE,
	WEFT_QUESTION_NEW,       /* state of a question that the application should answer (findings.h) */
	WEFT_QUESTION_ASKED,     /* state of a question that the application is answering */
	WEFT_QUESTION_CALLED_OFF /* the application should stop */
};

struct weft_question {
	enum weft_question_state state;
	uint32_t promise; /* the subject of "why?" */
	unsigned percent; /* progress */
	bool again;       /* whether the question was answered before the trace was reloaded */
	bool quiet;       /* whether the question is about the focused promise, so that only the lane uses the answer */
};

/* All fields may be read directly, but only functions change them. */
struct weft_viewer {
	void (*release)(void *owner); /* callback that releases the trace and the model; NULL if the viewer owns them */
	void *owner;
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_layout *whole_layout; /* layout of the whole trace, if a subset or folds are shown, and its view */
	struct weft_view *whole_view;     /* its view */
	struct weft_shown_subset fine,
	    /* Subsets that are shown instead of the whole trace: with only the user's folds, and also with automatic folds. */
	    coarse;
	uint32_t focused;                    /* or WEFT_NONE */
	struct weft_history_entry unfocused; /* state of the view before focusing, without a place */
	struct weft_folding folding;
	const char *refusal; /* reason for which the last action changed nothing; NULL if it had its effect */
	/* Whether tracks whose rows would be too low are folded automatically, except those that the user opened. */
	bool folds_itself;
	int fold_depth; /* depth of automatic folding; 0 if folding would not help */
	struct weft_thinness thinness;
	struct weft_lulls *lulls; /* sleep that can be folded; NULL if it is not computed yet */
	struct weft_promise_info *facts;
	struct weft_summary *summary;
	struct weft_overview *overview;
	double width_px, height_px, scale;

	/* Selected promise, and promise under the pointer; or WEFT_NONE; never the system promise. */
	uint32_t selected, hovered;
	/* Arrow under the pointer, or WEFT_NONE; and number of arrows that are drawn as one with it. */
	uint32_t hovered_link, hovered_links;
	struct weft_spot spot, hovered_spot; /* selected spot of an OS thread, and spot under the pointer */
	bool has_span;                       /* whether the user has measured a time span */
	int64_t span_from_ns, span_to_ns;
	/* Reason of the highlights, which are in weft_view_is_highlighted() and view->found. */
	enum weft_highlighting highlighting;
	uint32_t related;        /* subject of WEFT_HIGHLIGHT_RELATED */
	bool filter;             /* whether promises that are not highlighted are dimmed */
	bool metrics;            /* whether counters are shown, except those in hidden_metrics */
	uint8_t *hidden_metrics; /* by counter */
	bool skips_start_up;     /* whether the first picture begins with the first request, until all is shown */
	bool threads;            /* whether OS threads are shown, if there is kernel data */
	bool overview_shown, legend;
	bool names_shown;        /* whether the gutter is shown, if the picture is wide enough */
	double names_px;         /* width of the gutter as the user dragged it, before `scale`; 0 for the usual width */
	struct weft_clock clock; /* format of times */
	double menu_x_px, menu_y_px;

	/* search.h */
	char search_text[WEFT_QUERY_BYTES + 1];
	struct weft_query *query, *query_before;
	uint32_t search_at; /* number of promises that the search has examined; model->promise_count after the search */
	enum weft_match_order match_order;
	bool search_narrowing; /* whether only matches of the previous search are examined */

	/* findings.h */
	char name[120];             /* name of the trace, from weft_viewer_set_name() */
	bool compared;              /* there are several viewers */
	struct weft_viewer *beside; /* the other viewer, if there are two viewers */
	bool is_lower, wants_diff;
	struct weft_diff *diff; /* differences of two viewers' traces, which the upper viewer owns; NULL if not computed */
	struct weft_question questions[WEFT_ASKS];
	struct weft_findings *answers[WEFT_ASKS]; /* NULL: not known */
	bool outdated[WEFT_ASKS];                 /* whether the answer is about the trace before its reload */
	/* Question to which the finding with listed evidence belongs; the finding is open_finding, or WEFT_NONE. */
	enum weft_ask open_in;
	uint32_t open_finding, findings_shown;
	size_t lane_marked; /* step of the path lane that is under the pointer, or SIZE_MAX */

	/* table.h */
	bool table_shown;         /* whether the user has opened the table of types */
	struct weft_table *table; /* NULL: must be created */
	enum weft_table_order table_order;
	enum weft_scope table_scope;
	uint64_t open_group_key; /* key of the type that is open in the table; 0: none */
	char table_filter[64];   /* filter text in small letters; only types whose names contain it are listed */

	/* live_panel.h */
	struct weft_live *live;      /* NULL: must be created */
	uint64_t live_open_group;    /* key of the type whose promises in flight are listed; 0: none */
	uint32_t live_extra_rows[6]; /* for each live table: number of rows that are listed in addition to the first ones */

	/* flame_pane.h */
	bool blame_shown;
	enum weft_folded_by blame_by;
	struct weft_stacks *stacks; /* stacks of times, grouped by blame_by; NULL if not computed */
	uint32_t blame_root;        /* number of the stack that has the full width */
	size_t blame_marked;        /* stack under the pointer, or SIZE_MAX */

	/* State of the pointer. */
	enum {
		WEFT_POINTER_IDLE,
		WEFT_POINTER_PRESSED,
		WEFT_POINTER_DRAGS,
		WEFT_POINTER_MEASURES,
		WEFT_POINTER_OVERVIEW,
		WEFT_POINTER_GUTTER, /* state in which the pointer drags the edge of the gutter */
	} pointer;
	enum weft_grip grip;
	bool has_pointer; /* whether the pointer is over the picture or the ruler, and at which time */
	int64_t pointer_ns;
	int pointer_clicks;
	double press_x_px, press_y_px, last_x_px, last_y_px, drag_slot;

	/* Places of the history; history_at is the place that was stored or visited last. */
	WEFT_VEC(struct weft_history_entry) history;
	size_t history_at;
	enum weft_move last_move;

	weft_measure_fn *measure;
	void *measure_ctx;
	struct weft_draw_list lists[WEFT_PANES];
	struct weft_pane panes[WEFT_PANES];
	unsigned changes;
	bool is_drawn, is_overlay_drawn; /* whether the panes are up to date */
	bool overview_is_stale;          /* whether highlights have changed since the overview was drawn */
};

/* ---- Life: viewer.c ---- */

/* Reads the trace to its end, builds its model and layout, and shows the whole trace in 1280 x 720 px.  Sleep is folded if it is
 * more than half of the trace and folding makes the rest wider.  The function may run in a thread of its own.  The options are
 * those of weft_model_build(), or NULL.  On success, the viewer owns the trace.  On failure, which is a failure of
 * weft_model_build(), *out is unchanged and the caller keeps the trace. */
int weft_viewer_open(
    struct weft_viewer **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err);

/* Creates a viewer of an existing model. weft_viewer_destroy() calls release(owner), which must release the model and the trace.
 * On failure, `release` is not called. */
int weft_viewer_open_model(struct weft_viewer **out, struct weft_model *model, struct weft_trace *trace,
    void (*release)(void *owner), void *owner, struct weft_error *err);
void weft_viewer_destroy(struct weft_viewer *viewer); /* accepts NULL */

/* Copies the visible interval, selection, search and settings from another viewer, for a reloaded trace.  If the other view is
 * at the end of the old trace, the view follows to the end of the new trace.  A search is only started; its steps must follow.
 * The findings of the old trace are shown until those of the new trace are known; pressing them has no effect. */
void weft_viewer_copy_state(struct weft_viewer *viewer, struct weft_viewer *other);

/* Sets the name of the trace for displays of several traces; long names are cut. */
void weft_viewer_set_name(struct weft_viewer *viewer, const char *name);

/* Sets the size on the screen; `scale` enlarges texts and lines (1 is normal). */
void weft_viewer_resize(struct weft_viewer *viewer, double width_px, double height_px, double scale);

/* Sets the function that measures texts; NULL sets the default of weft_draw_options.measure. */
void weft_viewer_set_measure(struct weft_viewer *viewer, weft_measure_fn *measure, void *ctx);

/* Updates viewer->panes; the draw lists are valid until the next call.  The function does nothing if nothing has changed.  On
 * failure (WEFT_ENOMEM) the draw lists are empty. */
int weft_viewer_draw(struct weft_viewer *viewer, struct weft_error *err);

/* Draws the picture as it is on the screen, with names and with the time axis below, into the caller's draw list, for a file.
 * The legend follows if it is on the screen, and then the program, the trace and the visible interval.
 * If `measure` is not NULL, it measures the texts.  On failure (WEFT_ENOMEM) the draw list is empty. */
int weft_viewer_draw_file(
    struct weft_viewer *viewer, struct weft_draw_list *list, weft_measure_fn *measure, void *measure_ctx, struct weft_error *err);

/* Returns the bits of enum weft_changed, and clears them. */
unsigned weft_viewer_take_changes(struct weft_viewer *viewer);

/* Returns the shape of the cursor at the pointer's position. */
enum weft_cursor { WEFT_CURSOR_ARROW, WEFT_CURSOR_LINK, WEFT_CURSOR_GRABBING, WEFT_CURSOR_RESIZE, WEFT_CURSOR_MEASURE };
enum weft_cursor weft_viewer_cursor(const struct weft_viewer *viewer);

/* ---- Moving: move.c ---- */

void weft_viewer_pan(struct weft_viewer *viewer, double dx_px, double dy_px);  /* moves the picture */
void weft_viewer_zoom(struct weft_viewer *viewer, double factor, double x_px); /* zooms so that the time at x_px stays at x_px */
void weft_viewer_show(struct weft_viewer *viewer, int64_t from_ns, int64_t to_ns);
void weft_viewer_show_all(struct weft_viewer *viewer);
/* Shows a promise from its start to its end, with a margin. */
void weft_viewer_show_promise(struct weft_viewer *viewer, uint32_t promise);
void weft_viewer_show_span(struct weft_viewer *viewer); /* shows the measured span, if there is one */

/* Moves the view as little as needed to make a promise visible, without changing the scale. */
void weft_viewer_reveal(struct weft_viewer *viewer, uint32_t promise);

/* Set the start or the middle of the visible interval, without changing the scale unless the interval would extend beyond the
 * end; and set its duration, without changing the start.  The format of `text` is that of base/duration.h.  Return WEFT_EINVAL
 * with a message if the text is invalid. */
int weft_viewer_set_start(struct weft_viewer *viewer, const char *text, struct weft_error *err);
int weft_viewer_go_to_time(struct weft_viewer *viewer, const char *text, struct weft_error *err); /* to the middle */
int weft_viewer_set_duration(struct weft_viewer *viewer, const char *text, struct weft_error *err);

/* Returns the times at the left and right edge of the picture. */
void weft_viewer_times(const struct weft_viewer *viewer, int64_t *from_ns, int64_t *to_ns);

/* Return ranges for scrollbars, x in ns and y in slots (view.h), and handle scrolling. */
struct weft_range weft_viewer_range_x(const struct weft_viewer *viewer);
struct weft_range weft_viewer_range_y(const struct weft_viewer *viewer);
void weft_viewer_scroll_to_x(struct weft_viewer *viewer, double value);
void weft_viewer_scroll_to_y(struct weft_viewer *viewer, double value);

/* ---- Pointers: pointer.c ---- */

enum weft_button { WEFT_BUTTON_PRIMARY, WEFT_BUTTON_MIDDLE, WEFT_BUTTON_SECONDARY };
enum weft_modifier { WEFT_SHIFT = 1, WEFT_CONTROL = 2, WEFT_ALT = 4 };

/* Handles a press; `clicks` is 1, or 2 for the second press of a double click.  A drag pans; with Shift or in the ruler, a drag
 * measures a span; in the overview, a drag moves the visible interval.  A click selects a promise; in the lane, it selects the
 * promise that took the time; in the gutter, it selects the promise of a row, or folds or unfolds the row at its triangle.  A
 * drag of the gutter's edge changes the gutter's width.  A double click unfolds a line, or highlights the promises that the
 * promise became or came from.  The secondary button requests the context menu. */
void weft_viewer_press(
    struct weft_viewer *viewer, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks);
void weft_viewer_motion(struct weft_viewer *viewer, double x_px, double y_px);
void weft_viewer_release(struct weft_viewer *viewer, double x_px, double y_px);
/* Handles that the pointer has left the viewer, or that its press was cancelled. */
void weft_viewer_leave(struct weft_viewer *viewer);

/* Requests the context menu at the selected promise, or else in the middle. */
void weft_viewer_menu(struct weft_viewer *viewer);

/* Handles a wheel, in notches; down and right are positive.  The wheel zooms at the pointer; with Shift, or sideways, it pans;
 * with Control, it moves the focus up and down. */
void weft_viewer_wheel(struct weft_viewer *viewer, double x_px, double y_px, double dx, double dy, unsigned modifiers);

/* Handles a step of a pinch gesture, around the gesture's middle. */
void weft_viewer_pinch(struct weft_viewer *viewer, double x_px, double y_px, double factor, double dx_px, double dy_px);

/* ---- Selection: select.c, history.c ---- */

/* Selects a promise; WEFT_NONE ends the selection. */
void weft_viewer_select(struct weft_viewer *viewer, uint32_t promise);
void weft_viewer_select_and_reveal(struct weft_viewer *viewer, uint32_t promise);

/* Go back or forward in the history, which contains the visible interval, selection, search, folds and focus.  Return false if
 * there is no further place in that direction. */
bool weft_viewer_back(struct weft_viewer *viewer);
bool weft_viewer_forward(struct weft_viewer *viewer);
bool weft_viewer_can_go_back(const struct weft_viewer *viewer);
bool weft_viewer_can_go_forward(const struct weft_viewer *viewer);

/* Selects and reveals the promise to which a step from the selected promise leads.  Returns false if there is no such
 * promise. */
bool weft_viewer_walk(struct weft_viewer *viewer, enum weft_walk_step step);

/* Selects and reveals the line that is `right` lines further on the row, or the line nearest in time that is `down` rows further
 * down; without a selection, the first visible line.  Returns false if there is no such line. */
bool weft_viewer_step(struct weft_viewer *viewer, int right, int down);

/* Measures the time span of the selected promise; an existing span is extended to contain the promise. */
void weft_viewer_measure_selected(struct weft_viewer *viewer);

/* Highlights the promises that a promise became or came from, in place of matches. */
void weft_viewer_highlight_related(struct weft_viewer *viewer, uint32_t promise);

/* Clears the first of these that exists: the measured span, the highlights and the search, the selection.  Returns false if
 * there was nothing to clear. */
bool weft_viewer_clear(struct weft_viewer *viewer);

/* Opens the table of promise types (table.h). */
void weft_viewer_show_table(struct weft_viewer *viewer);

/* Lists only types whose names contain the text, without regard to the case of ASCII letters; "" lists all types. */
void weft_viewer_filter_table(struct weft_viewer *viewer, const char *text);

void weft_viewer_set_filter(struct weft_viewer *viewer, bool on);
void weft_viewer_set_overview(struct weft_viewer *viewer, bool shown);
void weft_viewer_set_legend(struct weft_viewer *viewer, bool shown);

/* Shows or hides the gutter; width_px is the width before `scale`, or 0 for the usual width. */
void weft_viewer_set_names(struct weft_viewer *viewer, bool shown, double width_px);
void weft_viewer_set_clock(struct weft_viewer *viewer, const struct weft_clock *clock);

/* Shows only the promises that belong to one promise (layout/focus.h), in a new layout, over its lifetime; WEFT_NONE shows all
 * promises again, at the previous interval.  Without memory nothing changes. */
void weft_viewer_focus(struct weft_viewer *viewer, uint32_t promise);

/* Folds the promises that match a query (view/fold.h), or unfolds them, in a new layout, which takes 0.3 us for each promise.
 * Without memory, or if the query is invalid, nothing changes. */
void weft_viewer_fold(struct weft_viewer *viewer, const char *query);
void weft_viewer_unfold_all(struct weft_viewer *viewer);

/* Sets whether tracks whose rows would be too low are folded automatically. */
void weft_viewer_set_folds_itself(struct weft_viewer *viewer, bool on);

/* Opens the automatically folded track of a promise, or closes an opened track again.  Returns false if the promise has no such
 * track. */
bool weft_viewer_open_fold(struct weft_viewer *viewer, uint32_t promise);

/* Hide the promises that match a query, or all other promises, with the tracks of actors among them, until
 * weft_viewer_unhide_all().  Without memory, if the query is invalid, or if no promise would be left, nothing changes. */
void weft_viewer_hide(struct weft_viewer *viewer, const char *query);
void weft_viewer_show_only(struct weft_viewer *viewer, const char *query);
void weft_viewer_unhide_all(struct weft_viewer *viewer);
bool weft_viewer_hides(const struct weft_viewer *viewer); /* whether anything is hidden */

/* Gives rows to the promises that runtimes made for themselves (model/roles.h), or folds these promises into one line for each
 * process. */
void weft_viewer_show_internals(struct weft_viewer *viewer, bool shown);

/* Groups rows: viewer->folding.rows_by.  Without memory nothing changes. */
void weft_viewer_group(struct weft_viewer *viewer, enum weft_rows_by by);

/* Writes the query that folds promises together with a given promise: its track or, if rows are grouped, its group; its kind;
 * similar promises; its call site; its library.  Returns false if there is no such query. */
enum weft_fold_target { WEFT_FOLD_TRACK, WEFT_FOLD_KIND, WEFT_FOLD_LIKE, WEFT_FOLD_SITE, WEFT_FOLD_LIBRARY };
bool weft_viewer_fold_query(
    const struct weft_viewer *viewer, uint32_t promise, enum weft_fold_target what, char text[WEFT_QUERY_BYTES + 1]);
void weft_viewer_hold_rows(struct weft_viewer *viewer, bool hold);

/* Sets whether sleep is folded (view/sleep.h), which sets view->lulls.  Without memory nothing changes. */
void weft_viewer_fold_sleep(struct weft_viewer *viewer, bool fold);
void weft_viewer_set_metrics(struct weft_viewer *viewer, bool shown);

/* ---- OS threads, if there is kernel data: threads.c ---- */

bool weft_viewer_has_threads(const struct weft_viewer *viewer);
void weft_viewer_set_threads(struct weft_viewer *viewer, bool shown);

/* Selects and shows the next or previous interval in which a promise ran but was off CPU, relative to the selected interval or
 * to the visible interval.  Returns false if there is no such interval. */
bool weft_viewer_step_off(struct weft_viewer *viewer, bool forward);
void weft_viewer_set_metric(struct weft_viewer *viewer, size_t counter, bool shown);

#endif
