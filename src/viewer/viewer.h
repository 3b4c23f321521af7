/* viewer.h: everything that a viewer of a trace is, but its window: what it shows, what is selected, what pointers and keys do.
 *
 * An application makes one for a trace, tells it of its size and of what its user does, and draws its panes.  All px are the
 * application's, from the top left of the viewer.  Nothing here knows a toolkit, a clock or a file; the same calls lead to the
 * same state everywhere.  A viewer belongs to one thread at a time. SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_VIEWER_H
#define WEFT_VIEWER_VIEWER_H

#include "analysis/diff.h"
#include "analysis/folded.h"
#include "analysis/table.h"
#include "analysis/walk.h"
#include "base/vec.h"
#include "draw/marks.h"
#include "draw/overview.h"
#include "draw/ruler.h"
#include "view/fold.h"
#include "view/query.h"
#include "view/sleep.h"

/* What became different since weft_viewer_take_changes(): bits. */
enum weft_changed {
	WEFT_CHANGED_PICTURE = 1,    /* it is to be drawn again */
	WEFT_CHANGED_SELECTION = 2,  /* viewer->selected, the history */
	WEFT_CHANGED_HOVER = 4,      /* viewer->hovered */
	WEFT_CHANGED_SEARCH = 8,     /* its text, or how many were found */
	WEFT_CHANGED_PLACE = 16,     /* what weft_viewer_place() says, and the scrollbars */
	WEFT_CHANGED_SETTING = 32,   /* something that is switched on and off */
	WEFT_CHANGED_OVERLAY = 128,  /* only what lies over the picture is to be drawn again */
	WEFT_CHANGED_MENU = 64,      /* the context menu is asked for, at viewer->menu_x_px, menu_y_px */
	WEFT_CHANGED_FINDINGS = 256, /* the rows of findings.h, or what is to be asked for them */
	WEFT_CHANGED_ANSWER = 512,   /* why? was answered: findings are to be shown */
	WEFT_CHANGED_TABLE = 2048,   /* the rows of table.h */
	WEFT_CHANGED_LIVE = 4096,    /* the rows of live_panel.h */
	WEFT_CHANGED_MOVED = 1024    /* where one was is remembered, to go back there */
};

/* A part of the viewer that is drawn from a list: translate to x_px, y_px, clip to width_px, height_px, scale by `scale`, draw.
 */
struct weft_pane {
	const struct weft_draw_list *list;
	double x_px, y_px, width_px, height_px, scale;
};

/* From back to front: the picture and what lies over it, below them where all time went, and above them where that of a promise
 * went, the times and the whole trace.  A pane that is not shown has a height of 0 and an empty list. */
enum {
	WEFT_PANE_PICTURE,
	WEFT_PANE_MARKS,
	WEFT_PANE_BLAME,
	WEFT_PANE_GUIDES,
	WEFT_PANE_LANE,
	WEFT_PANE_RULER,
	WEFT_PANE_OVERVIEW,
	WEFT_PANES
};

/* What the user sees of one axis, for a scrollbar: from lower to upper, `page` of it from `value` on. */
struct weft_range {
	double lower, upper, value, page;
};

enum weft_highlighting { WEFT_HIGHLIGHT_NONE, WEFT_HIGHLIGHT_SEARCH, WEFT_HIGHLIGHT_RELATED, WEFT_HIGHLIGHT_FINDING };

/* What a table is about. */
enum weft_scope { WEFT_SCOPE_WHOLE, WEFT_SCOPE_SEEN, WEFT_SCOPE_SPAN };

/* A place in the lane of an OS thread (model/os_tracks.h): a stretch in which it had a processor or had none, or a pixel in which
 * there are many. */
struct weft_spot {
	uint32_t track; /* WEFT_NONE: there is none */
	bool is_mixed;
	int64_t from_ns, to_ns;
};

/* Where one was. */
struct weft_past {
	char *place; /* as weft_viewer_place() tells it */
	int64_t from_ns;
	double px_per_ns, focus, width_px, height_px; /* of the view */
};

/* A layout of a part, or with folds, and its view; or NULL. */
struct weft_shown_part {
	struct weft_layout *layout;
	struct weft_view *view;
};

/* What the user does.  What is done again and again to one end is remembered once. */
enum weft_move { WEFT_MOVE_NONE, WEFT_MOVE_ACTS, WEFT_MOVE_ZOOMS, WEFT_MOVE_SCROLLS, WEFT_MOVE_SEARCHES };

/* What is asked of analysis/explain.h: what went wrong in the trace, and why one promise is as it is. */
enum weft_ask { WEFT_ASK_TRACE, WEFT_ASK_WHY, WEFT_ASKS };

enum weft_question_state {
	WEFT_QUESTION_NONE,
	WEFT_QUESTION_NEW,       /* the application is to ask it: findings.h */
	WEFT_QUESTION_ASKED,     /* it does */
	WEFT_QUESTION_CALLED_OFF /* the application is to let it be */
};

struct weft_question {
	enum weft_question_state state;
	uint32_t promise; /* why? of it */
	unsigned percent; /* so much is done */
	bool again;       /* it was answered for the trace as it was before it was read anew */
	bool quiet;       /* of the focused promise: only the lane is wanted of the answer */
};

/* Fields are read freely, and changed through functions. */
struct weft_viewer {
	void (*release)(void *owner); /* ends trace and model; or NULL: they are the viewer's */
	void *owner;
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_view *view;
	struct weft_layout
	    *whole_layout;            /* while something is folded, or only what belongs to `focused` is shown: the layout and */
	struct weft_view *whole_view; /* the view of all */
	struct weft_shown_part fine,
	    coarse;                 /* what is shown in place of all: as the user says, and what is folded by itself, too */
	uint32_t focused;           /* or WEFT_NONE */
	struct weft_past unfocused; /* what was seen before that; without a place */
	struct weft_folding folding;
	bool folds_itself; /* tracks whose rows would be too low are folded, unless somebody opened them */
	int fold_depth;    /* at this depth; 0: nothing would be gained */
	struct weft_thinness thinness;
	struct weft_lulls *lulls; /* sleep that can be folded; NULL: not looked for yet */
	struct weft_facts *facts;
	struct weft_overview *overview;
	double width_px, height_px, scale;

	uint32_t selected, hovered; /* a promise, or WEFT_NONE; never the system */
	uint32_t hovered_link,
	    hovered_links; /* the arrow under the pointer, and how many are drawn as one with it; or WEFT_NONE */
	struct weft_spot spot, hovered_spot; /* of an OS thread: that was picked, and that the pointer is on */
	bool has_span;                       /* a stretch of time is measured */
	int64_t span_from_ns, span_to_ns;
	enum weft_highlighting highlighting; /* what the highlighted promises are: weft_view_is_highlighted(), view->found */
	uint32_t related;                    /* where that is RELATED: to which promise */
	bool filter;                         /* what is not highlighted is dimmed */
	bool metrics;                        /* counters are shown, but those in hidden_metrics */
	uint8_t *hidden_metrics;             /* by counter */
	bool threads;                        /* OS threads are shown, if the kernel told of them */
	bool overview_shown, legend;
	struct weft_clock clock; /* how times are written */
	double menu_x_px, menu_y_px;

	/* search.h */
	char search_text[WEFT_QUERY_BYTES + 1];
	struct weft_query *query, *query_before;
	uint32_t search_at;    /* promises before it were looked at; model->promise_count when all were */
	bool search_narrowing; /* only those that the search before found are looked at */

	/* findings.h */
	char name[120];             /* of the trace, as weft_viewer_set_name() was told */
	bool compared;              /* there are others beside it */
	struct weft_viewer *beside; /* the other one, if there are two */
	bool is_lower, wants_diff;
	struct weft_diff *diff; /* of the upper of two: where they part; NULL: not known */
	struct weft_question questions[WEFT_ASKS];
	struct weft_findings *answers[WEFT_ASKS]; /* NULL: not known */
	bool outdated[WEFT_ASKS];                 /* the answer is about the trace as it was before it was read anew */
	enum weft_ask open_in; /* in which the finding stands whose evidence is shown: open_finding, or WEFT_NONE */
	uint32_t open_finding, findings_shown;
	size_t lane_marked; /* the step of the answer's path that the pointer is on, or SIZE_MAX */

	/* table.h */
	bool table_shown;         /* somebody has asked for it */
	struct weft_table *table; /* NULL: it is to be made */
	enum weft_table_order table_order;
	enum weft_scope table_scope;
	uint64_t table_open; /* key of the sort that is shown closely; 0: none is */

	/* live_panel.h */
	struct weft_live *live; /* NULL: it is to be made */
	uint64_t live_open;     /* key of the sort of which those in flight are listed; 0: of none */
	uint32_t live_more[6];  /* by table: so many rows are listed beyond the first ones */

	/* blame.h */
	bool blame_shown;
	enum weft_folded_by blame_by;
	struct weft_stacks *stacks; /* of that; NULL: not known */
	uint32_t blame_root;        /* the stack that has all the width */
	size_t blame_marked;        /* the one that the pointer is on, or SIZE_MAX */

	/* What the pointer is doing. */
	enum {
		WEFT_POINTER_IDLE,
		WEFT_POINTER_PRESSED,
		WEFT_POINTER_DRAGS,
		WEFT_POINTER_MEASURES,
		WEFT_POINTER_OVERVIEW
	} pointer;
	enum weft_grip grip;
	bool has_pointer; /* it is over the picture or the ruler, at this time */
	int64_t pointer_ns;
	int pointer_clicks;
	double press_x_px, press_y_px, last_x_px, last_y_px, drag_slot;

	WEFT_VEC(struct weft_past) history; /* places; the one at history_at was remembered or gone to last */
	size_t history_at;
	enum weft_move last_move;

	weft_measure_fn *measure;
	void *measure_ctx;
	struct weft_draw_list lists[WEFT_PANES];
	struct weft_pane panes[WEFT_PANES];
	unsigned changes;
	bool is_drawn, is_overlay_drawn; /* the panes are as the state is */
	bool overview_is_stale;          /* other promises are highlighted than it shows */
};

/* ---- its life: viewer.c ---- */

/* Reads the trace to its end, models it, lays it out and shows it whole, 1280 x 720; sleep is folded where all
 * else is ten times as wide then.  May be called in a thread of its own;
 * options as for weft_model_build(), or NULL.  The viewer then owns the trace.  On failure *out is untouched and the trace still
 * the caller's: as weft_model_build(). */
int weft_viewer_open(
    struct weft_viewer **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err);

/* The same of a model that is there already: when the viewer ends, release(owner) is called, which ends model and trace.  On
 * failure it is not called. */
int weft_viewer_open_model(struct weft_viewer **out, struct weft_model *model, struct weft_trace *trace,
    void (*release)(void *owner), void *owner, struct weft_error *err);
void weft_viewer_destroy(struct weft_viewer *viewer); /* accepts NULL */

/* Shows, selects, searches and hides what another one does, as far as both have it: for a trace that was read anew.  A view at
 * the end of the old trace follows the end of the new one.  A search only begins.  What was found wrong in the other one is
 * shown, and leads nowhere, until it is known of this one. */
void weft_viewer_take_over(struct weft_viewer *viewer, struct weft_viewer *other);

/* What the trace is called where several are shown; cut where it is long. */
void weft_viewer_set_name(struct weft_viewer *viewer, const char *name);

/* The size on the screen; `scale` enlarges texts and lines (1: as they are). */
void weft_viewer_resize(struct weft_viewer *viewer, double width_px, double height_px, double scale);

/* Who measures texts; NULL: weft_draw_options.measure's own. */
void weft_viewer_set_measure(struct weft_viewer *viewer, weft_measure_fn *measure, void *ctx);

/* Brings viewer->panes up to date; the lists live until the next call.  Costs nothing when nothing has changed.  WEFT_ENOMEM, and
 * then the lists are empty. */
int weft_viewer_draw(struct weft_viewer *viewer, struct weft_error *err);

/* The bits of enum weft_changed, and forgets them. */
unsigned weft_viewer_take_changes(struct weft_viewer *viewer);

/* What the pointer looks like where it is. */
enum weft_cursor { WEFT_CURSOR_ARROW, WEFT_CURSOR_LINK, WEFT_CURSOR_GRABBING, WEFT_CURSOR_RESIZE, WEFT_CURSOR_MEASURE };
enum weft_cursor weft_viewer_cursor(const struct weft_viewer *viewer);

/* ---- what is seen: move.c ---- */

void weft_viewer_pan(struct weft_viewer *viewer, double dx_px, double dy_px);  /* the picture follows by so much */
void weft_viewer_zoom(struct weft_viewer *viewer, double factor, double x_px); /* the time at x_px stays there */
void weft_viewer_show(struct weft_viewer *viewer, int64_t from_ns, int64_t to_ns);
void weft_viewer_show_all(struct weft_viewer *viewer);
void weft_viewer_show_promise(struct weft_viewer *viewer, uint32_t promise); /* from its start to its end, a little around */
void weft_viewer_show_span(struct weft_viewer *viewer);                      /* the measured one, if there is one */

/* Moves no more than it must for a promise to be seen, at the scale that there is. */
void weft_viewer_reveal(struct weft_viewer *viewer, uint32_t promise);

/* `text` as in base/duration.h: where the picture begins, the scale as it is unless it would run past the end; how long a time it
 * shows, the start as it is. WEFT_EINVAL with what is wrong. */
int weft_viewer_set_start(struct weft_viewer *viewer, const char *text, struct weft_error *err);
int weft_viewer_set_duration(struct weft_viewer *viewer, const char *text, struct weft_error *err);

/* The times at the left and the right edge. */
void weft_viewer_times(const struct weft_viewer *viewer, int64_t *from_ns, int64_t *to_ns);

/* For scrollbars: x in ns, y in slots (view.h), and what dragging one does. */
struct weft_range weft_viewer_range_x(const struct weft_viewer *viewer);
struct weft_range weft_viewer_range_y(const struct weft_viewer *viewer);
void weft_viewer_scroll_to_x(struct weft_viewer *viewer, double value);
void weft_viewer_scroll_to_y(struct weft_viewer *viewer, double value);

/* ---- pointers: pointer.c ---- */

enum weft_button { WEFT_BUTTON_PRIMARY, WEFT_BUTTON_MIDDLE, WEFT_BUTTON_SECONDARY };
enum weft_modifier { WEFT_SHIFT = 1, WEFT_CONTROL = 2, WEFT_ALT = 4 };

/* `clicks`: 1, or 2 for the second press of a double click.  Drag: pan; with shift, or in the ruler: measure a span; in the
 * overview: move what is shown; click: select, in the lane what took that time; double click: highlight all that it became and
 * that became it; secondary: the context menu. */
void weft_viewer_press(
    struct weft_viewer *viewer, double x_px, double y_px, enum weft_button button, unsigned modifiers, int clicks);
void weft_viewer_motion(struct weft_viewer *viewer, double x_px, double y_px);
void weft_viewer_release(struct weft_viewer *viewer, double x_px, double y_px);
void weft_viewer_leave(struct weft_viewer *viewer); /* the pointer is elsewhere, or its press was called off */

/* Asks for the context menu where the selected promise is seen, or in the middle. */
void weft_viewer_menu(struct weft_viewer *viewer);

/* A wheel, in notches, down and right positive: zooms at the pointer; with shift, or sideways, pans; with control, moves the
 * focus up and down. */
void weft_viewer_wheel(struct weft_viewer *viewer, double x_px, double y_px, double dx, double dy, unsigned modifiers);

/* A step of a pinch, around its middle. */
void weft_viewer_pinch(struct weft_viewer *viewer, double x_px, double y_px, double factor, double dx_px, double dy_px);

/* ---- what is selected: select.c, history.c ---- */

/* WEFT_NONE: nothing. */
void weft_viewer_select(struct weft_viewer *viewer, uint32_t promise);
void weft_viewer_select_and_reveal(struct weft_viewer *viewer, uint32_t promise);

/* To where one was before what one did last, or after it: what was seen, selected, searched for, folded and focused; false if
 * there is none. */
bool weft_viewer_back(struct weft_viewer *viewer);
bool weft_viewer_forward(struct weft_viewer *viewer);
bool weft_viewer_can_go_back(const struct weft_viewer *viewer);
bool weft_viewer_can_go_forward(const struct weft_viewer *viewer);

/* Selects and reveals what a step from the selected promise leads to; false if it leads to none. */
bool weft_viewer_walk(struct weft_viewer *viewer, enum weft_step step);

/* Selects and reveals the line so many further right, or on the row so many further down that is nearest in time; where none is
 * selected, the first that is seen.  false: there is none. */
bool weft_viewer_step(struct weft_viewer *viewer, int right, int down);

/* Measures the time of the selected promise; if a span is measured already, from the earlier of both to the later. */
void weft_viewer_measure_selected(struct weft_viewer *viewer);

/* Highlights all that a promise became and that became it, in place of what a search found. */
void weft_viewer_highlight_related(struct weft_viewer *viewer, uint32_t promise);

/* Nothing is highlighted, measured or selected, nothing searched for: the first of these that is the case, one a call, in this
 * order: span, highlights, selection.  False if there was none. */
bool weft_viewer_clear(struct weft_viewer *viewer);

/* The table of sorts is to be shown from now on: table.h. */
void weft_viewer_show_table(struct weft_viewer *viewer);

void weft_viewer_set_filter(struct weft_viewer *viewer, bool on);
void weft_viewer_set_overview(struct weft_viewer *viewer, bool shown);
void weft_viewer_set_legend(struct weft_viewer *viewer, bool shown);
void weft_viewer_set_clock(struct weft_viewer *viewer, const struct weft_clock *clock);

/* Shows only what belongs to a promise (layout/focus.h), laid out anew, over its time; WEFT_NONE: all again, where one was
 * before. Without memory nothing changes. */
void weft_viewer_focus(struct weft_viewer *viewer, uint32_t promise);

/* Folds what a query says (view/fold.h), or unfolds it again, laid out anew: 0.3 us a promise.  Without memory, or where the
 * query is none, nothing changes. */
void weft_viewer_fold(struct weft_viewer *viewer, const char *query);
void weft_viewer_unfold_all(struct weft_viewer *viewer);

/* Whether what would be too thin is folded by itself. */
void weft_viewer_set_folds_itself(struct weft_viewer *viewer, bool on);

/* Opens what belongs to a promise's actor, if that was folded by itself, or closes it again; false if neither. */
bool weft_viewer_open_fold(struct weft_viewer *viewer, uint32_t promise);

/* What rows stand together by: viewer->folding.rows_by.  Without memory nothing changes. */
void weft_viewer_group(struct weft_viewer *viewer, enum weft_rows_by by);

/* The query by which what belongs to a promise, or to the actor that it belongs to, is folded, or all of its group; all of its
 * kind; all like it; all of its site; all of its library.  False: there is none. */
enum weft_fold_what { WEFT_FOLD_TRACK, WEFT_FOLD_KIND, WEFT_FOLD_LIKE, WEFT_FOLD_SITE, WEFT_FOLD_LIBRARY };
bool weft_viewer_fold_query(
    const struct weft_viewer *viewer, uint32_t promise, enum weft_fold_what what, char text[WEFT_QUERY_BYTES + 1]);
void weft_viewer_hold_rows(struct weft_viewer *viewer, bool hold);

/* Whether sleep is folded (view/sleep.h): view->lulls.  Without memory nothing changes. */
void weft_viewer_fold_sleep(struct weft_viewer *viewer, bool fold);
void weft_viewer_set_metrics(struct weft_viewer *viewer, bool shown);

/* ---- OS threads, where the kernel told of them: threads.c ---- */

bool weft_viewer_has_threads(const struct weft_viewer *viewer);
void weft_viewer_set_threads(struct weft_viewer *viewer, bool shown);

/* Picks the next time that a promise ran without a processor, or the one before, after the one that is picked or in what is seen,
 * and shows it; false: there is none. */
bool weft_viewer_step_off(struct weft_viewer *viewer, bool forward);
void weft_viewer_set_metric(struct weft_viewer *viewer, size_t counter, bool shown);

#endif
