/* promise_info.h: facts about one promise: how it spent its time, and its relations to other promises.
 *
 * The index is built once for a model; then the cost of an answer depends only on its size.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_PROMISE_INFO_H
#define WEFT_ANALYSIS_QUERIES_PROMISE_INFO_H

#include "analysis/index/state_times.h"
#include "model/model.h"

/* X(NAME): the promise ... */
#define WEFT_RELATIONS(X)                                                                                                        \
	X(CREATED_BY) /* was created by it; always one, except for the system and promises older than the trace */               \
	X(AWAITS)     /* found it unresolved, and did not read it right after */                                                 \
	X(READ)       /* read its result, perhaps after a wait */                                                                \
	X(SIGNALLED_BY)                                                                                                          \
	X(RESOLVED_BY)                                                                                                           \
	X(BECAME)     /* became it; at most one */                                                                               \
	X(CAME_FROM)  /* is what it became */                                                                                    \
	X(AWAITED_BY) /* was found unresolved by it */                                                                           \
	X(READ_BY)    /* was read by it, and so woke it */                                                                       \
	X(SIGNALLED)  /* signalled it, and so woke it */                                                                         \
	X(RESOLVED)   /* resolved it */                                                                                          \
	X(CREATED)

enum weft_relation {
#define WEFT_RELATION_ENUM(NAME) WEFT_RELATION_##NAME,
	WEFT_RELATIONS(WEFT_RELATION_ENUM)
#undef WEFT_RELATION_ENUM
	    WEFT_RELATION_COUNT
};

struct weft_related_promise {
	uint32_t promise; /* the other promise, or WEFT_SYSTEM */
	int64_t time_ns;
	bool is_open; /* for AWAITS and AWAITED_BY: the awaited promise was pending when the waiter ended, and the wait was never
			 given up */
};

struct weft_promise_info;

/* Builds the index; the model must outlive it.  Near-linear: about 50 ns for each promise and 30 ns for each link; it keeps 30
 * bytes for each promise and 8 for each link.  Fails with WEFT_ENOMEM, and then leaves *out untouched. */
int weft_promise_info_create(struct weft_promise_info **out, const struct weft_model *model, struct weft_error *err);
void weft_promise_info_destroy(struct weft_promise_info *facts); /* accepts NULL */

const struct weft_model *weft_promise_info_model(const struct weft_promise_info *facts);

/* Returns how the promise spent its time, from its start to its own end (account.h). */
struct weft_state_times weft_promise_info_times(const struct weft_promise_info *facts, uint32_t promise);

/* Returns when it, or the promise that it became, ended; INT64_MAX: not in this trace. */
int64_t weft_promise_info_end_ns(const struct weft_promise_info *facts, uint32_t promise);

/* Counts the items of a relation, and writes those from number `first` on to `out`, in order of time.  Returns how many it wrote.
 * Logarithmic in links, then a few ns for each item. */
size_t weft_promise_info_count(const struct weft_promise_info *facts, uint32_t promise, enum weft_relation relation);
size_t weft_promise_info_list(const struct weft_promise_info *facts, uint32_t promise, enum weft_relation relation, size_t first,
    struct weft_related_promise *out, size_t most);

/* Sets *links to the numbers of the links from a promise, or to it, by kind and then by time; returns how many. */
size_t weft_promise_info_links(const struct weft_promise_info *facts, uint32_t promise, bool to_it, const uint32_t **links);

/* Returns, by promise, the number of its type as type_table.h defines types.  Computed at the first call, about 100 ns for each
 * promise. NULL when out of memory. */
const uint32_t *weft_promise_info_types(struct weft_promise_info *facts, size_t *count);

#endif
