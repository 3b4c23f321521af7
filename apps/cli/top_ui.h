/* top_ui.h: declares the state of weft top in a terminal; top_draw.c draws the state, and top_keys.c changes it.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_TOP_UI_H
#define WEFT_CLI_TOP_UI_H

#include "refresh.h"
#include "screen.h"
#include "viewer/actions.h"

/* X(NAME, equal action of src/viewer or COUNT, additional keys, "help") lists an action */
#define TOP_ACTIONS(X)                                                                                                           \
	X(SHORTCUTS, SHORTCUTS, "", "Show these keys")                                                                           \
	X(QUIT, COUNT, "q", "Quit")                                                                                              \
	X(OPEN, COUNT, "Enter", "Show the details of the row")                                                                   \
	X(BACK, BACK, "Escape", "Go back")                                                                                       \
	X(NEXT_TABLE, COUNT, "Tab", "Next table (or 1 to 7)")                                                                    \
	X(TABLE_BEFORE, COUNT, "BackTab", "Previous table")                                                                      \
	X(UP, ROWS_UP, "", "One row up")                                                                                         \
	X(DOWN, ROWS_DOWN, "", "One row down")                                                                                   \
	X(PAGE_UP, COUNT, "PageUp", "One screen up")                                                                             \
	X(PAGE_DOWN, COUNT, "PageDown", "One screen down")                                                                       \
	X(FIRST, COUNT, "Home", "First row")                                                                                     \
	X(LAST, COUNT, "End", "Last row")                                                                                        \
	X(ORDER, COUNT, ">", "Sort by the next column")                                                                          \
	X(ORDER_BEFORE, COUNT, "<", "Sort by the previous column")                                                               \
	X(REVERSE, COUNT, "R", "Reverse the order")                                                                              \
	X(FIND, FIND, "", "Search for a text or query")                                                                          \
	X(NEXT_MATCH, NEXT_MATCH, "", "Next match")                                                                              \
	X(PREVIOUS_MATCH, PREVIOUS_MATCH, "", "Previous match")                                                                  \
	X(FILTER, FILTER, "", "Show only matches, or all")                                                                       \
	X(LIKE, LIKE, "", "Find rows of the same type")                                                                          \
	X(FOCUS, FOCUS, "", "Show only the row's parts")                                                                         \
	X(UNFOCUS, UNFOCUS, "", "Show everything again")                                                                         \
	X(WHY, WHY, "", "Explain the row's state")                                                                               \
	X(AWAITED, GO_AWAITED, "", "Go to what the row awaits")                                                                  \
	X(RESOLVER, GO_RESOLVER, "", "Go to the row's resolver")                                                                 \
	X(CREATOR, GO_CREATOR, "", "Go to the row's creator")                                                                    \
	X(WOKEN, GO_WOKEN, "", "Go to what the row woke")                                                                        \
	X(HOLD, COUNT, "Space", "Pause or resume")                                                                               \
	X(EARLIER, PAN_LEFT, "", "Go back in time and pause")                                                                    \
	X(LATER, PAN_RIGHT, "", "Go forward in time")                                                                            \
	X(SHORTER, ZOOM_IN, "", "Shorten the interval")                                                                          \
	X(LONGER, ZOOM_OUT, "", "Lengthen the interval")                                                                         \
	X(CLOCK, CLOCK, "", "Show the time of day")                                                                              \
	X(REDRAW, COUNT, "Ctrl+l", "Redraw the screen")

enum top_action {
#define TOP_ENUM(NAME, same, keys, help) TOP_##NAME,
	TOP_ACTIONS(TOP_ENUM)
#undef TOP_ENUM
	    TOP_ACTION_COUNT
};

struct top_action_info {
	enum weft_action same; /* WEFT_ACTION_COUNT: none */
	const char *keys, *help;
};
extern const struct top_action_info top_actions[TOP_ACTION_COUNT];

enum top_detail { TOP_TABLE, TOP_PROMISE, TOP_FINDING, TOP_ANSWER };

/* A view and its cursor, to which the action Back can return. */
struct top_location {
	enum weft_live_table table;
	unsigned orders[WEFT_LIVE_TABLE_COUNT];
	bool is_reversed, filters, is_focused;
	uint64_t sort; /* key of the promise type that the view shows, or 0 */
	char sort_name[WEFT_NAME_BYTES];
	int64_t focus; /* id of a promise */
	enum top_detail detail;
	int64_t promise;      /* id of the promise that the view shows, for TOP_PROMISE and TOP_ANSWER */
	uint64_t finding;     /* key, for TOP_FINDING */
	uint64_t key;         /* key of the row with the cursor; 0 means always the first row */
	size_t cursor, first; /* row number of the cursor, and number of the first visible row */
};

/* A line of the details of a row. */
struct top_line {
	const struct weft_row *row;
	size_t from, length; /* part of the row's name that is in this line; only the first line has a value */
};

struct top_ui {
	const char *name; /* name of the trace */
	struct cli_refresher *refresher;
	struct cli_snapshot *snapshot; /* newest snapshot; NULL until the first snapshot was read */
	struct cli_snapshot *next;     /* arrived while paused */
	bool wants_all;                /* whether the requested moment is older than the snapshot */
	struct weft_live *live;        /* state at the shown moment: the snapshot's own, or a state that ui owns */
	bool owns_live, is_held, shows_help, should_quit;
	/* Shown moment while the display is paused, on the clock of weft_event.time_ns; and length of the window. */
	int64_t at_ns, window_ns;
	int64_t received_ns, aged_ns; /* clock times of the snapshot and of the last update of its age, and cost of that update */
	int64_t age_took_ns;
	struct weft_clock clock;
	struct top_location location;
	WEFT_VEC(struct top_location) history;
	char search[WEFT_QUERY_BYTES];
	bool is_typing;
	char search_before[WEFT_QUERY_BYTES];
	char message[sizeof((struct weft_error *)0)->what];
	char error_text[512];          /* last read error */
	struct weft_rows chain, panel; /* rows of the details */
	struct weft_findings *why;
	WEFT_VEC(struct top_line) lines;
};

/* Runs weft top until the user quits, and returns the exit status (top_run.c).  Requires screen_is_available(). */
int top_run(struct cli_args *args, int64_t window_ns);

/* Functions that compute again what is shown, after a change (top_state.c). */
void top_pop_snapshot(struct top_ui *ui); /* takes the refresher's snapshot */
void top_set_snapshot(struct top_ui *ui, struct cli_snapshot *snapshot);
void top_rebuild(struct top_ui *ui);                     /* computes the rows of the current view */
void top_move_to_time(struct top_ui *ui, int64_t at_ns); /* pauses there */
void top_advance_age(struct top_ui *ui);                 /* updates the shown ages while there are no new events */
void top_go_to(struct top_ui *ui, const struct top_location *location);
size_t top_count_lines(const struct top_ui *ui);        /* returns the number of rows or lines */
uint32_t top_selected_promise(const struct top_ui *ui); /* returns the promise of the cursor's row, or WEFT_NONE */
void top_set_cursor(struct top_ui *ui, size_t row);
int64_t top_clock_ns(void);

/* top_draw.c */
void top_draw(struct top_ui *ui);
int top_count_body_rows(const struct top_ui *ui); /* returns the number of table rows that fit on the screen */

/* top_keys.c */
void top_handle_key(struct top_ui *ui, const struct screen_key *key);
enum { TOP_TABS_ROW = 3, TOP_HEAD_ROW, TOP_BODY_ROW };
/* Return the tab and the table column at a screen column, or WEFT_LIVE_TABLE_COUNT and WEFT_LIVE_CELLS. */
enum weft_live_table top_find_tab(const struct top_ui *ui, int column);
unsigned top_find_column(const struct top_ui *ui, int column);

#endif
