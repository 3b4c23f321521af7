/* top_ui.h: weft top in a terminal: what it shows (top_draw.c) and what keys do to that (top_keys.c).  SPDX-License-Identifier:
 * ISC */
#ifndef WEFT_CLI_TOP_UI_H
#define WEFT_CLI_TOP_UI_H

#include "look.h"
#include "screen.h"
#include "viewer/actions.h"

/* X(NAME, action of src/viewer that it is the same as, or COUNT, its own keys, "what it does") */
#define TOP_ACTIONS(X)                                                                                                           \
	X(SHORTCUTS, SHORTCUTS, "", "These keys")                                                                                \
	X(QUIT, COUNT, "q", "Ends")                                                                                              \
	X(OPEN, COUNT, "Enter", "What stands behind a row")                                                                      \
	X(BACK, BACK, "Escape", "Back")                                                                                          \
	X(NEXT_TABLE, COUNT, "Tab", "The next table; also 1 to 7")                                                               \
	X(TABLE_BEFORE, COUNT, "BackTab", "The table before")                                                                    \
	X(UP, ROWS_UP, "", "A row up")                                                                                           \
	X(DOWN, ROWS_DOWN, "", "A row down")                                                                                     \
	X(PAGE_UP, COUNT, "PageUp", "A screen up")                                                                               \
	X(PAGE_DOWN, COUNT, "PageDown", "A screen down")                                                                         \
	X(FIRST, COUNT, "Home", "The first row")                                                                                 \
	X(LAST, COUNT, "End", "The last row")                                                                                    \
	X(ORDER, COUNT, ">", "Sorts by the next column")                                                                         \
	X(ORDER_BEFORE, COUNT, "<", "Sorts by the column before")                                                                \
	X(REVERSE, COUNT, "R", "The least first, or last")                                                                       \
	X(FIND, FIND, "", "Finds, as in the window")                                                                             \
	X(NEXT_MATCH, NEXT_MATCH, "", "The next match")                                                                          \
	X(PREVIOUS_MATCH, PREVIOUS_MATCH, "", "The match before")                                                                \
	X(FILTER, FILTER, "", "Only what matches, or all")                                                                       \
	X(LIKE, LIKE, "", "Finds all like it")                                                                                   \
	X(FOCUS, FOCUS, "", "Only what belongs to it")                                                                           \
	X(UNFOCUS, UNFOCUS, "", "Everything again")                                                                              \
	X(WHY, WHY, "", "Why is it as it is?")                                                                                   \
	X(AWAITED, GO_AWAITED, "", "Goes to what it waits for")                                                                  \
	X(RESOLVER, GO_RESOLVER, "", "Goes to what resolved it")                                                                 \
	X(CREATOR, GO_CREATOR, "", "Goes to what created it")                                                                    \
	X(WOKEN, GO_WOKEN, "", "Goes to what it woke")                                                                           \
	X(HOLD, COUNT, "Space", "Holds still, or goes on")                                                                       \
	X(EARLIER, PAN_LEFT, "", "Earlier, and holds still")                                                                     \
	X(LATER, PAN_RIGHT, "", "Later")                                                                                         \
	X(SHORTER, ZOOM_IN, "", "Of a shorter stretch")                                                                          \
	X(LONGER, ZOOM_OUT, "", "Of a longer stretch")                                                                           \
	X(CLOCK, CLOCK, "", "Time of day")                                                                                       \
	X(REDRAW, COUNT, "Ctrl+l", "Draws the screen again")

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

/* Where one is: what Back leads back to. */
struct top_place {
	enum weft_live_table table;
	unsigned orders[WEFT_LIVE_TABLE_COUNT];
	bool is_reversed, filters, is_focused;
	uint64_t sort; /* key of a sort, or 0 */
	char sort_name[WEFT_NAME_BYTES];
	int64_t focus; /* id of a promise */
	enum top_detail detail;
	int64_t promise;      /* id, of PROMISE and ANSWER */
	uint64_t finding;     /* key, of FINDING */
	uint64_t key;         /* of the row of the cursor; 0: the first one, whichever it is */
	size_t cursor, first; /* its row, and the first one that is seen */
};

/* A line of what stands behind a row. */
struct top_line {
	const struct weft_row *row;
	size_t from, length; /* of its name; lines after the first have no value */
};

struct top_ui {
	const char *name; /* of what is looked at */
	struct cli_looker *looker;
	struct cli_look *look;  /* NULL: nothing was read yet */
	struct cli_look *next;  /* came while it was held */
	bool wants_all;         /* the moment that is asked for is before what the look has */
	struct weft_live *live; /* of the moment that is shown: look->live, or one of its own */
	bool owns_live, is_held, helps, stops;
	int64_t at_ns, window_ns; /* the moment, as weft_event.time_ns; where it is held */
	int64_t came_ns, aged_ns; /* clock: when the look came, when its age was last shown, and how long that took */
	int64_t age_took_ns;
	struct weft_clock clock;
	struct top_place place;
	WEFT_VEC(struct top_place) past;
	char search[WEFT_QUERY_BYTES];
	bool is_typing;
	char typed_before[WEFT_QUERY_BYTES];
	char message[sizeof((struct weft_error *)0)->what];
	char trouble[512];             /* what could not be read */
	struct weft_rows chain, panel; /* of a detail */
	struct weft_findings *why;
	WEFT_VEC(struct top_line) lines;
};

/* top_run.c: until the user ends it; the exit status.  Where there is no terminal: screen_is_there(). */
int top_run(struct cli_args *args, int64_t window_ns);

/* top_state.c: what is shown is made anew after anything has changed. */
void top_take(struct top_ui *ui); /* what the looker has */
void top_show(struct top_ui *ui, struct cli_look *look);
void top_make(struct top_ui *ui);                   /* rows of the place */
void top_move_to(struct top_ui *ui, int64_t at_ns); /* holds there */
void top_age(struct top_ui *ui);                    /* while nothing new comes */
void top_go(struct top_ui *ui, const struct top_place *place);
size_t top_count(const struct top_ui *ui);      /* rows or lines */
uint32_t top_selected(const struct top_ui *ui); /* the promise of the cursor's row, or WEFT_NONE */
void top_set_cursor(struct top_ui *ui, size_t row);
int64_t top_clock_ns(void);

/* top_draw.c */
void top_draw(struct top_ui *ui);
int top_body_rows(const struct top_ui *ui); /* how many rows of a table have room */

/* top_keys.c */
void top_key(struct top_ui *ui, const struct screen_key *key);
enum { TOP_TABS_ROW = 3, TOP_HEAD_ROW, TOP_BODY_ROW };
/* Where the tab and the column at a place are, as drawn; WEFT_LIVE_TABLE_COUNT, WEFT_LIVE_CELLS: there is none. */
enum weft_live_table top_tab_at(const struct top_ui *ui, int column);
unsigned top_column_at(const struct top_ui *ui, int column);

#endif
