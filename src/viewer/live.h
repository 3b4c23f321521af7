/* live.h: what is in flight at a moment (analysis/top.h), as tables: for who looks at a running program in a terminal, a window
 * or a page.
 *
 * Rows are worded when they are asked for, so that a table of 100,000 costs what is seen of it.  An application shows columns and
 * cells, and decides nothing itself.  It knows a row by its key when it makes the same table of a later moment.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_H
#define WEFT_VIEWER_LIVE_H

#include "analysis/explain.h"
#include "analysis/names.h"
#include "analysis/top.h"
#include "draw/ruler.h"
#include "view/query.h"
#include "viewer/rows.h"

/* X(NAME, "what it is called", "what it lists") */
#define WEFT_LIVE_TABLES(X)                                                                                                      \
	X(SORTS, "Sorts", "how many of each sort are in flight, have ended, and ran")                                            \
	X(TREE, "In flight", "who is in flight, below who made it")                                                              \
	X(WAITS, "Waits", "who waits longest, for whom, and for whom in the end")                                                \
	X(LATE, "Late", "who was ready and ran late")                                                                            \
	X(THREADS, "Threads", "how long each OS thread was busy, ready, off its processor")                                      \
	X(COUNTERS, "Counters", "counters, and how they went")                                                                   \
	X(FINDINGS, "Findings", "what went wrong")

enum weft_live_table {
#define WEFT_LIVE_ENUM(NAME, name, text) WEFT_LIVE_##NAME,
	WEFT_LIVE_TABLES(WEFT_LIVE_ENUM)
#undef WEFT_LIVE_ENUM
	    WEFT_LIVE_TABLE_COUNT
};
const char *weft_live_name(enum weft_live_table table);
const char *weft_live_text(enum weft_live_table table);

struct weft_live_column {
	const char *title;
	uint8_t width; /* in characters; 0: it has a part of what is left; the first of these says what a row is called */
	bool is_right, sorts;
	const char *before,
	    *after; /* what stands around a cell where there are no columns (live_panel.h); NULL: it is not said */
};

/* The columns of a table; *count is at most WEFT_LIVE_CELLS. */
#define WEFT_LIVE_CELLS 7
const struct weft_live_column *weft_live_columns(enum weft_live_table table, size_t *count);

/* Which rows, in which order. */
struct weft_live_asked {
	enum weft_live_table table;
	unsigned order;   /* the column that it is sorted by, the greatest first, if that one sorts; else as the table has it */
	bool is_reversed; /* the least first */
	const char *only; /* a query (view/query.h): who does not match is left out; NULL: nobody is */
	uint64_t sort;    /* key of a row of SORTS: of promises only that sort; 0: all */
	const int64_t *focus; /* id of a promise: of promises only what belongs to it (layout/focus.h); NULL: all */
};

struct weft_live_row {
	uint64_t key;
	uint32_t promise; /* whom it is about; or WEFT_NONE */
	uint32_t finding; /* number of a finding; or WEFT_NONE */
	enum weft_row_tone tone;
	char cells[WEFT_LIVE_CELLS][WEFT_NAME_BYTES]; /* UTF-8 without control characters */
	uint16_t depth, branch_bytes; /* in a tree: so far down it stands; so many bytes before its name draw that */
};

struct weft_live_line;

/* Fields are read freely, and changed through functions. */
struct weft_live {
	const struct weft_model *model;
	const struct weft_findings *findings; /* NULL: nobody looked for any */
	struct weft_facts *facts;
	struct weft_top *top;
	struct weft_live_asked asked;
	const struct weft_live_line *lines; /* as weft_live_arrange() made them */
	size_t count;
	size_t alarms; /* findings that are one, and certain */
	struct weft_live_private *priv;
};

/* At a moment since the first event, and of the stretch before it.  The model must have kept its binds where they were created;
 * it and the findings must live as long.  No rows yet.  Near-linear; on failure *out is untouched: WEFT_ENOMEM. */
int weft_live_create(struct weft_live **out, const struct weft_model *model, const struct weft_findings *findings, int64_t to_ns,
    int64_t window_ns, struct weft_error *err);

/* The same for who has facts, which live as long.  Of a model that did not keep its binds, one that was woken is as old as it is
 * drawn. */
int weft_live_create_of(struct weft_live **out, struct weft_facts *facts, const struct weft_findings *findings, int64_t to_ns,
    int64_t window_ns, struct weft_error *err);
void weft_live_destroy(struct weft_live *live); /* accepts NULL */

/* Makes the rows of a table.  WEFT_EINVAL: the query is none, and says why; WEFT_ENOMEM; rows then stay as they were.
 * Near-linear, with a focus that of a layout. */
int weft_live_arrange(struct weft_live *live, const struct weft_live_asked *asked, struct weft_error *err);

/* Words row number i of live->count.  Some us. */
void weft_live_row(const struct weft_live *live, size_t i, struct weft_live_row *row);

/* How many are in flight that need not end, as handles and OS threads, which stand in the tables, too. */
size_t weft_live_endless(const struct weft_top *top);

/* "2 in flight, and 28 that need not end"; returns text. */
#define WEFT_LIVE_FLIGHT 100
const char *weft_live_flight(const struct weft_top *top, char text[WEFT_LIVE_FLIGHT]);

/* The row with that key, or SIZE_MAX.  Linear. */
size_t weft_live_find(const struct weft_live *live, uint64_t key);

/* What the row of a finding, by its number, has as its key. */
uint64_t weft_live_finding_key(const struct weft_live *live, uint32_t finding);

/* The next row from number i on, or before it, that a search finds, going round at the end; SIZE_MAX: there is none. */
size_t weft_live_search(const struct weft_live *live, const char *text, size_t from, bool forward);

/* For whom a promise waits, to the end of the chain: rows as a panel has them; none if it waits for nobody.  WEFT_ENOMEM. */
int weft_live_chain(struct weft_rows *rows, const struct weft_live *live, uint32_t promise, struct weft_error *err);

/* How one knows of a finding, and what to look at next.  WEFT_ENOMEM. */
int weft_live_evidence(struct weft_rows *rows, const struct weft_live *live, const struct weft_finding *finding,
    const struct weft_clock *clock, struct weft_error *err);

#endif
