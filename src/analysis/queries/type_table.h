/* type_table.h: lists the types of promises: how many promises each has, how long they took, and how they spent their time.
 *
 * Promises have one type if they have the same kind and label pattern (numbers and addresses do not count) or, without a label,
 * the same site.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_TYPE_TABLE_H
#define WEFT_ANALYSIS_QUERIES_TYPE_TABLE_H

#include "analysis/queries/promise_info.h"

struct weft_table_row {
	uint32_t type;  /* number of the type, as in weft_table.type_of */
	uint32_t first; /* the first promise of the type */
	size_t count, failed, pending;
	bool is_namesake; /* true if another type has the same name, apart from its site */
	/* true if promises of the type last by nature, such as a thread, a loop, a listener, a handle or a lock */
	bool is_permanent;
	/* Number of promises that have ended and whose start is known, and their durations by nearest rank. */
	size_t ended;
	int64_t p50_ns, p99_ns, max_ns;
	uint32_t slowest;                         /* the slowest of these promises, or WEFT_NONE */
	int64_t waiting_ns, ready_ns, running_ns; /* total times of all promises of the type; see stats.h */
	/* time in which the promises' threads were off CPU, contained in running_ns; 0 if unknown */
	int64_t off_ns;
};

struct weft_table {
	struct weft_table_row *rows; /* rows in the requested order; equal rows in the order of the trace */
	size_t count;
	uint32_t *type_of; /* by promise: type number; WEFT_NONE if it is not in the table */
	size_t types;
};

/* X(NAME, "name", "sort key of the rows") */
#define WEFT_TABLE_ORDERS(X)                                                                                                     \
	X(TOTAL, "total", "total time; types without an end, such as listeners, come last")                                      \
	X(MAX, "max", "longest time")                                                                                            \
	X(P99, "p99", "the 99th percentile")                                                                                     \
	X(P50, "p50", "the median")                                                                                              \
	X(COUNT, "count", "number of promises")                                                                                  \
	X(RUNNING, "running", "time running")                                                                                    \
	X(READY, "ready", "time ready")                                                                                          \
	X(FAILED, "failed", "number of failures")

enum weft_table_order {
#define WEFT_TABLE_ENUM(NAME, name, text) WEFT_TABLE_##NAME,
	WEFT_TABLE_ORDERS(WEFT_TABLE_ENUM)
#undef WEFT_TABLE_ENUM
	    WEFT_TABLE_ORDER_COUNT
};
const char *weft_table_order_name(enum weft_table_order order);
const char *weft_table_order_text(enum weft_table_order order);

/* Makes the table of the promises that exist at any time within from_ns..to_ns.  Fails with WEFT_ENOMEM; then *out is
 * unchanged.  Near-linear. */
int weft_table_create(
    struct weft_table **out, struct weft_promise_info *facts, int64_t from_ns, int64_t to_ns, struct weft_error *err);
void weft_table_sort(struct weft_table *table, enum weft_table_order order);
void weft_table_destroy(struct weft_table *table); /* accepts NULL */

/* Writes the name of a type: `request "GET *"`, `bind at file.c:12` or, if another type has the same name, `timer "* ms" at
 * file.c:12`.  The name is valid UTF-8 in one line. */
const char *weft_table_name(const struct weft_model *model, const struct weft_table_row *row, char buf[192]);

/* Returns the duration of a promise; -1 if it has not ended or its start is unknown. */
int64_t weft_table_took(const struct weft_promise_info *facts, uint32_t promise);

/* Counts the promises of a row by duration: bucket n of 64 starts at 2^n ns. */
void weft_table_histogram(
    const struct weft_table *table, const struct weft_promise_info *facts, const struct weft_table_row *row, size_t buckets[64]);
static inline int weft_table_bucket(int64_t took_ns)
{
	return took_ns < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)took_ns);
}

#endif
