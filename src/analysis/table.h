/* table.h: sorts of promises: how many there are of each, how long they took, what they spent their time with.
 *
 * Promises are of one sort if they have the same kind and labels of one shape (numbers and addresses apart), or, without a label,
 * the same place of creation.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_TABLE_H
#define WEFT_ANALYSIS_TABLE_H

#include "analysis/facts.h"

struct weft_table_row {
	uint32_t sort;  /* its number: weft_table.sort_of */
	uint32_t first; /* a promise of it */
	size_t count, failed, pending;
	bool is_namesake; /* another sort is called the same but for its site */
	bool stands;      /* it is there all the time by nature, as an OS thread, a loop, a listener, a handle, a lock */
	/* Of those that have ended and whose beginning is known: how many, and how long they took, by nearest rank. */
	size_t ended;
	int64_t p50_ns, p99_ns, max_ns;
	uint32_t slowest;                         /* or WEFT_NONE */
	int64_t waiting_ns, ready_ns, running_ns; /* of all, in all: see stats.h */
	int64_t off_ns;                           /* of running_ns: without a processor; 0 where nobody knows */
};

struct weft_table {
	struct weft_table_row *rows; /* in the order that was asked for; equals: as the trace has them */
	size_t count;
	uint32_t *sort_of; /* by promise; WEFT_NONE: it is not in the table */
	size_t sorts;
};

/* X(NAME, "name", "what the rows are sorted by") */
#define WEFT_TABLE_ORDERS(X)                                                                                                     \
	X(TOTAL, "total", "all the time that they took; last, what is there all the time")                                       \
	X(MAX, "max", "the longest")                                                                                             \
	X(P99, "p99", "the 99th percentile")                                                                                     \
	X(P50, "p50", "the median")                                                                                              \
	X(COUNT, "count", "how many")                                                                                            \
	X(RUNNING, "running", "how much they ran")                                                                               \
	X(READY, "ready", "how long they were ready")                                                                            \
	X(FAILED, "failed", "how many failed")

enum weft_table_order {
#define WEFT_TABLE_ENUM(NAME, name, text) WEFT_TABLE_##NAME,
	WEFT_TABLE_ORDERS(WEFT_TABLE_ENUM)
#undef WEFT_TABLE_ENUM
	    WEFT_TABLE_ORDER_COUNT
};
const char *weft_table_order_name(enum weft_table_order order);
const char *weft_table_order_text(enum weft_table_order order);

/* Of the promises that are alive at any time from..to.  Near-linear.  On failure *out is untouched: WEFT_ENOMEM. */
int weft_table_create(struct weft_table **out, struct weft_facts *facts, int64_t from_ns, int64_t to_ns, struct weft_error *err);
void weft_table_sort(struct weft_table *table, enum weft_table_order order);
void weft_table_destroy(struct weft_table *table); /* accepts NULL */

/* `request "GET *"`, `bind at file.c:12`, and of namesakes `timer "* ms" at file.c:12`: valid UTF-8 of one line. */
const char *weft_table_name(const struct weft_model *model, const struct weft_table_row *row, char buf[192]);

/* How long a promise took; -1: it has not ended, or nobody knows when it began. */
int64_t weft_table_took(const struct weft_facts *facts, uint32_t promise);

/* Those of a row by how long they took, from 2^n ns on: bucket n of 64. */
void weft_table_histogram(
    const struct weft_table *table, const struct weft_facts *facts, const struct weft_table_row *row, size_t buckets[64]);
static inline int weft_table_bucket(int64_t took_ns)
{
	return took_ns < 1 ? 0 : 63 - __builtin_clzll((unsigned long long)took_ns);
}

#endif
