/* live.h: shows the state of a program at a moment (analysis/queries/top.h) as tables, for users who watch a running program in
 * a terminal, a window or a page.
 *
 * Rows are formatted on demand, so that a table of 100,000 rows costs time only for the visible rows.  An application only shows
 * columns and cells, and needs no logic of its own.  The key of a row identifies the same row of the table at a later moment.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEWER_LIVE_H
#define WEFT_VIEWER_LIVE_H

#include "analysis/findings/explain.h"
#include "analysis/index/names.h"
#include "analysis/queries/top.h"
#include "draw/ruler.h"
#include "view/query.h"
#include "viewer/rows.h"

/* X(NAME, "name", "description") */
#define WEFT_LIVE_TABLES(X)                                                                                                      \
	X(GROUPS, "Types", "promises of each type: in flight, ended, running time")                                              \
	X(TREE, "In flight", "promises in flight, each below its creator")                                                       \
	X(WAITS, "Waits", "longest waits, with the end of each wait chain")                                                      \
	X(LATE, "Late", "promises that were ready but ran late")                                                                 \
	X(THREADS, "Threads", "time that each OS thread was busy, ready, off CPU")                                               \
	X(COUNTERS, "Counters", "counters and their history")                                                                    \
	X(FINDINGS, "Findings", "detected problems")

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
	/* Width of the column in characters; 0 means a share of the remaining width; the first such column has the row's
	 * name. */
	uint8_t width;
	bool is_right, sorts;
	/* Texts before and after a cell in displays without columns (live_panel.h); NULL if the cell is not shown there. */
	const char *before, *after;
};

/* Returns the columns of a table; *count is at most WEFT_LIVE_CELLS. */
#define WEFT_LIVE_CELLS 7
const struct weft_live_column *weft_live_columns(enum weft_live_table table, size_t *count);

/* The rows to build, and their order. */
struct weft_live_request {
	enum weft_live_table table;
	/* Column by which the rows are sorted, largest value first, if it is sortable; otherwise the table's own order
	 * applies. */
	unsigned order;
	bool is_reversed;     /* smallest first */
	const char *only;     /* query (view/query.h) that rows must match; NULL: all rows */
	uint64_t sort;        /* key of a row of the table GROUPS, to show only promises of that type; 0: all promises */
	const int64_t *focus; /* id of a promise, to show only promises that belong to it (layout/focus.h); NULL: all promises */
};

struct weft_live_row {
	uint64_t key;
	uint32_t promise; /* its subject; or WEFT_NONE */
	uint32_t finding; /* number of the row's finding; or WEFT_NONE */
	enum weft_row_tone tone;
	char cells[WEFT_LIVE_CELLS][WEFT_NAME_BYTES]; /* UTF-8 without control characters */
	uint16_t depth, branch_bytes; /* depth in a tree, and number of bytes before the name that draw the tree's branch */
};

struct weft_live_line;

/* All fields may be read directly, but only functions change them. */
struct weft_live {
	const struct weft_model *model;
	const struct weft_findings *findings; /* findings of the program; NULL if there was no analysis */
	struct weft_promise_info *facts;
	struct weft_top *top;
	struct weft_live_request request;
	const struct weft_live_line *lines; /* set by weft_live_build_rows() */
	size_t count;
	size_t alarms; /* number of the findings that are certain alarms */
	struct weft_live_private *priv;
};

/* Creates tables without rows for a moment, in ns since the first event, and for the interval before the moment.  The model must
 * have kept its binds where they were created.  The model and the findings must outlive the tables.  Near-linear.  On failure
 * (WEFT_ENOMEM) *out is unchanged. */
int weft_live_create(struct weft_live **out, const struct weft_model *model, const struct weft_findings *findings, int64_t to_ns,
    int64_t window_ns, struct weft_error *err);

/* Creates tables from existing `facts`, which must outlive the tables.  If the model did not keep its binds, the age of a woken
 * bind counts from its wake-up. */
int weft_live_create_from_facts(struct weft_live **out, struct weft_promise_info *facts, const struct weft_findings *findings,
    int64_t to_ns, int64_t window_ns, struct weft_error *err);
void weft_live_destroy(struct weft_live *live); /* accepts NULL */

/* Builds the rows of a table.  Returns WEFT_EINVAL for an invalid query, or WEFT_ENOMEM; the rows are then unchanged.  The time
 * is near-linear; with a focus, it includes the time of a layout. */
int weft_live_build_rows(struct weft_live *live, const struct weft_live_request *request, struct weft_error *err);

/* Formats row i, which is below live->count.  Takes a few us. */
void weft_live_row(const struct weft_live *live, size_t i, struct weft_live_row *row);

/* Returns the number of promises in flight that need not end, such as handles and OS threads.  The tables include them. */
size_t weft_live_count_endless(const struct weft_top *top);

/* Writes a text such as "2 in flight, and 28 that need not end".  Returns `text`. */
#define WEFT_LIVE_FLIGHT 100
const char *weft_live_format_flight(const struct weft_top *top, char text[WEFT_LIVE_FLIGHT]);

/* Returns the number of the row with the given key, or SIZE_MAX.  Linear. */
size_t weft_live_find(const struct weft_live *live, uint64_t key);

/* Returns the key of the row of a finding. */
uint64_t weft_live_finding_key(const struct weft_live *live, uint32_t finding);

/* Returns the next row from row `from` on, or the previous row, that matches a search; wraps around; SIZE_MAX if no row
 * matches. */
size_t weft_live_search(const struct weft_live *live, const char *text, size_t from, bool forward);

/* Fills rows with the chain of waits of a promise, as for a panel; no rows if the promise waits for nothing.  Returns
 * WEFT_ENOMEM on failure. */
int weft_live_chain(struct weft_rows *rows, const struct weft_live *live, uint32_t promise, struct weft_error *err);

/* Fills rows with the evidence and the advice of a finding.  Returns WEFT_ENOMEM on failure. */
int weft_live_evidence(struct weft_rows *rows, const struct weft_live *live, const struct weft_finding *finding,
    const struct weft_clock *clock, struct weft_error *err);

#endif
