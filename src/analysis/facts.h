/* facts.h: what is known of one promise: where its time went, and who did what to whom.
 *
 * Made once for a model; then an answer costs what is asked for, however many waiters there are.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FACTS_H
#define WEFT_ANALYSIS_FACTS_H

#include "model/model.h"

/* X(NAME): the promise ... */
#define WEFT_RELATIONS(X)                                                                                                        \
	X(CREATED_BY) /* who created it; one, but for the system and what is older than the trace */                             \
	X(AWAITS)     /* looked at it, found it unresolved, and did not read it right after */                                   \
	X(READ)       /* read its result, perhaps after it had waited for it */                                                  \
	X(SIGNALLED_BY)                                                                                                          \
	X(RESOLVED_BY)                                                                                                           \
	X(BECAME)     /* one at most */                                                                                          \
	X(CAME_FROM)  /* those that became it */                                                                                 \
	X(AWAITED_BY) /* those that found it unresolved */                                                                       \
	X(READ_BY)    /* those that read its result: it woke them */                                                             \
	X(SIGNALLED)  /* those that it sent a message: it woke them */                                                           \
	X(RESOLVED)   /* those that it resolved */                                                                               \
	X(CREATED)

enum weft_relation {
#define WEFT_RELATION_ENUM(NAME) WEFT_RELATION_##NAME,
	WEFT_RELATIONS(WEFT_RELATION_ENUM)
#undef WEFT_RELATION_ENUM
	    WEFT_RELATION_COUNT
};

struct weft_fact {
	uint32_t promise; /* the other one; WEFT_SYSTEM if the system did it */
	int64_t time_ns;
	bool is_open; /* of AWAITS and AWAITED_BY: what was awaited had not come to its end when the life of who waited ended */
};

/* From its start to its end as they are drawn, without gap or overlap: see stats.h. */
struct weft_times {
	int64_t waiting_ns, ready_ns, running_ns;
	int64_t off_ns; /* of running_ns: without a processor; 0 where nobody knows */
};

struct weft_facts;

/* The model must outlive it.  Near-linear: about 50 ns a promise and 30 ns a link; 30 bytes a promise and 8 a link stay.  On
 * failure *out is untouched: WEFT_ENOMEM. */
int weft_facts_create(struct weft_facts **out, const struct weft_model *model, struct weft_error *err);
void weft_facts_destroy(struct weft_facts *facts); /* accepts NULL */

const struct weft_model *weft_facts_model(const struct weft_facts *facts);

struct weft_times weft_facts_times(const struct weft_facts *facts, uint32_t promise);

/* When it, or what it became, came to its end; INT64_MAX: not in this trace. */
int64_t weft_facts_end(const struct weft_facts *facts, uint32_t promise);

/* How many stand in a relation to a promise, and the `most` from number `first` on, in order of time.  Returns how many were
 * written to out.  Logarithmic in links, then a few ns each. */
size_t weft_facts_count(const struct weft_facts *facts, uint32_t promise, enum weft_relation relation);
size_t weft_facts_list(const struct weft_facts *facts, uint32_t promise, enum weft_relation relation, size_t first,
    struct weft_fact *out, size_t most);

/* The links from a promise, or those to it: *links are their numbers, by kind and then in time order; how many. */
size_t weft_facts_links(const struct weft_facts *facts, uint32_t promise, bool to_it, const uint32_t **links);

/* The sort of each promise, as table.h says what is one, by number: that of a sort that is the same as another is the other's.
 * Found when they are asked for first, about 100 ns a promise; then known.  NULL when out of memory. */
const uint32_t *weft_facts_sorts(struct weft_facts *facts, size_t *count);

#endif
