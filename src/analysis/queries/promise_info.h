/* promise_info.h: finds facts about one promise: how it spent its time, and its relations to other promises.
 *
 * The index is built once for a model; then the cost of an answer depends only on its size.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_PROMISE_INFO_H
#define WEFT_ANALYSIS_QUERIES_PROMISE_INFO_H

#include "analysis/index/state_times.h"
#include "model/model.h"

/* X(NAME): the relations of a promise P to another promise. */
#define WEFT_RELATIONS(X)                                                                                                        \
	X(CREATED_BY) /* the other promise created P; exactly one, except for the system and promises older than the trace */    \
	X(AWAITS)     /* P found the other promise unresolved, and did not read its result right after */                        \
	X(READ)       /* P read the result of the other promise, perhaps after a wait */                                         \
	X(SIGNALLED_BY)                                                                                                          \
	X(RESOLVED_BY)                                                                                                           \
	X(BECAME)     /* P became the other promise; at most one */                                                              \
	X(CAME_FROM)  /* the other promise became P */                                                                           \
	X(AWAITED_BY) /* the other promise found P unresolved */                                                                 \
	X(READ_BY)    /* the other promise read the result of P, and was woken by the read */                                    \
	X(SIGNALLED)  /* P signalled the other promise, and so woke the other promise */                                         \
	X(RESOLVED)   /* P resolved the other promise */                                                                         \
	X(CREATED)

enum weft_relation {
#define WEFT_RELATION_ENUM(NAME) WEFT_RELATION_##NAME,
	WEFT_RELATIONS(WEFT_RELATION_ENUM)
#undef WEFT_RELATION_ENUM
	    WEFT_RELATION_COUNT
};

struct weft_related_promise {
	uint32_t promise; /* index of the other promise in the relation, or WEFT_SYSTEM */
	int64_t time_ns;
	/* for AWAITS and AWAITED_BY: true if the wait was never given up, and the awaited promise was still pending when the
	 * waiter ended */
	bool is_open;
};

struct weft_promise_info;

/* Builds the index; the model must live as long as the index.  Takes nearly linear time: about 50 ns for each promise and 30 ns
 * for each link.  The index has 30 bytes for each promise and 8 bytes for each link.  Fails with WEFT_ENOMEM; then *out is
 * unchanged. */
int weft_promise_info_create(struct weft_promise_info **out, const struct weft_model *model, struct weft_error *err);
void weft_promise_info_destroy(struct weft_promise_info *facts); /* accepts NULL */

const struct weft_model *weft_promise_info_model(const struct weft_promise_info *facts);

/* Returns how the promise spent its time, from its start to its own end (account.h). */
struct weft_state_times weft_promise_info_times(const struct weft_promise_info *facts, uint32_t promise);

/* Returns when the promise, or the promise that it became, ended; INT64_MAX if it did not end in this trace. */
int64_t weft_promise_info_end_ns(const struct weft_promise_info *facts, uint32_t promise);

/* Counts the items of a relation, and writes the items from number `first` on to `out`, in order of time.  Returns the number
 * of items that it wrote.  Takes logarithmic time in the number of links, and a few ns for each item. */
size_t weft_promise_info_count(const struct weft_promise_info *facts, uint32_t promise, enum weft_relation relation);
size_t weft_promise_info_list(const struct weft_promise_info *facts, uint32_t promise, enum weft_relation relation, size_t first,
    struct weft_related_promise *out, size_t most);

/* Sets *links to the numbers of the links from a promise, or to it, sorted by kind and then by time; returns their number. */
size_t weft_promise_info_links(const struct weft_promise_info *facts, uint32_t promise, bool to_it, const uint32_t **links);

/* Returns, by promise, the number of its type as type_table.h defines types.  The first call computes the types in about 100 ns
 * for each promise. Returns NULL when out of memory. */
const uint32_t *weft_promise_info_types(struct weft_promise_info *facts, size_t *count);

#endif
