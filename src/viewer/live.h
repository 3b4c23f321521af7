/* live.h: the state at a moment (analysis/queries/top.h), as tables for users that watch a running program in a terminal, a
 * window or a page.
 *
 * Rows are formatted on demand, so that a table of 100,000 rows costs time for the visible ones only.  An application shows
 * columns and cells and needs no logic of its own.  The key of a row identifies it in the same table at a later moment.
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
	uint8_t width; /* in characters; 0: a share of the remaining width; the first such column has the row's name */
	bool is_right, sorts;
	const char *before, *after; /* text before and after a cell where there are no columns (live_panel.h); NULL: the cell is
				       not shown there */
};

/* Returns the columns of a table; *count is at most WEFT_LIVE_CELLS. */
#define WEFT_LIVE_CELLS 7
const struct weft_live_column *weft_live_columns(enum weft_live_table table, size_t *count);

/* The rows to build, and their order. */
struct weft_live_request {
	enum weft_live_table table;
	unsigned order;       /* column to sort by, largest first, if it is sortable; else the table's own order applies */
	bool is_reversed;     /* smallest first */
	const char *only;     /* a query (view/query.h) that rows must match; NULL: all */
	uint64_t sort;        /* key of a row of GROUPS: only promises of this type; 0: all */
	const int64_t *focus; /* id: only promises that belong to it (layout/focus.h); NULL: all */
};

struct weft_live_row {
	uint64_t key;
	uint32_t promise; /* its subject; or WEFT_NONE */
	uint32_t finding; /* number of a finding; or WEFT_NONE */
	enum weft_row_tone tone;
	char cells[WEFT_LIVE_CELLS][WEFT_NAME_BYTES]; /* UTF-8 without control characters */
	uint16_t depth, branch_bytes; /* depth in a tree, and number of bytes before the name that draw its branch */
};

struct weft_live_line;

/* Fields may be read directly; only functions change them. */
struct weft_live {
	const struct weft_model *model;
	const struct weft_findings *findings; /* NULL: there was no analysis */
	struct weft_promise_info *facts;
	struct weft_top *top;
	struct weft_live_request request;
	const struct weft_live_line *lines; /* set by weft_live_build_rows() */
	size_t count;
	size_t alarms; /* number of certain alarms among the findings */
	struct weft_live_private *priv;
};

/* Creates tables without rows for a moment, in ns since the first event, and the interval before it.  The model must have kept
 * its binds where they were created.  The model and findings must outlive the tables.  Near-linear.  On failure (WEFT_ENOMEM)
 * *out is unchanged. */
int weft_live_create(struct weft_live **out, const struct weft_model *model, const struct weft_findings *findings, int64_t to_ns,
    int64_t window_ns, struct weft_error *err);

/* Creates tables from existing `facts`, which must outlive them.  If the model did not keep its binds, the age of a woken bind
 * counts from the wake-up. */
int weft_live_create_from_facts(struct weft_live **out, struct weft_promise_info *facts, const struct weft_findings *findings,
    int64_t to_ns, int64_t window_ns, struct weft_error *err);
void weft_live_destroy(struct weft_live *live); /* accepts NULL */

/* Builds the rows of a table.  Returns WEFT_EINVAL for an invalid query, or WEFT_ENOMEM; the rows are then unchanged.
 * Near-linear; with a focus, the time of a layout. */
int weft_live_build_rows(struct weft_live *live, const struct weft_live_request *request, struct weft_error *err);

/* Formats row i of live->count.  Takes a few us. */
void weft_live_row(const struct weft_live *live, size_t i, struct weft_live_row *row);

/* Returns the number of promises in flight that need not end, such as handles and OS threads.  The tables include them. */
size_t weft_live_count_endless(const struct weft_top *top);

/* Writes "2 in flight, and 28 that need not end".  Returns `text`. */
#define WEFT_LIVE_FLIGHT 100
const char *weft_live_format_flight(const struct weft_top *top, char text[WEFT_LIVE_FLIGHT]);

/* Returns the row with a key, or SIZE_MAX.  Linear. */
size_t weft_live_find(const struct weft_live *live, uint64_t key);

/* Returns the key of the row of a finding. */
uint64_t weft_live_finding_key(const struct weft_live *live, uint32_t finding);

/* Returns the next row from row `from` on, or the previous row, that matches a search; wraps around; SIZE_MAX if there is
 * none. */
size_t weft_live_search(const struct weft_live *live, const char *text, size_t from, bool forward);

/* Fills rows with the chain of waits of a promise, as for a panel; none if it waits for nothing.  Returns WEFT_ENOMEM on
 * failure. */
int weft_live_chain(struct weft_rows *rows, const struct weft_live *live, uint32_t promise, struct weft_error *err);

/* Fills rows with the evidence and the advice of a finding.  Returns WEFT_ENOMEM on failure. */
int weft_live_evidence(struct weft_rows *rows, const struct weft_live *live, const struct weft_finding *finding,
    const struct weft_clock *clock, struct weft_error *err);

#endif
