/* lacks.h: what a trace lacks, and what is known all the same.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_LACKS_H
#define WEFT_ANALYSIS_LACKS_H

#include "model/model.h"

struct weft__lacks {
	bool lost;          /* events are missing in the middle */
	bool unplaced;      /* lost: nobody knows when */
	bool clipped;       /* the end is missing (weft_model.is_whole) */
	bool absent;        /* at the end, what some OS threads did is missing (weft_model.has_absent) */
	bool cut;           /* its program did not end the trace, or the end is missing */
	bool died;          /* cut: it was seen to end */
	bool ran_on;        /* cut: it is a copy, and the program ran on when that was made */
	bool wrapped;       /* the beginning was overwritten */
	int64_t horizon_ns; /* from there on all is there that was not lost otherwise; 0 unless the ring wrapped */
};

/* By part (struct weft_part) what it lacks, and behind these what all lack together, which the caller frees; of a trace of one
 * recorder both are one item each.  NULL: no memory.  Linear in links, if the rings of several OS threads were overwritten. */
struct weft__lacks *weft__lacks_find(const struct weft_model *m);

/* What the part lacks that the promise is of. */
const struct weft__lacks *weft__lacks_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise);

/* Whether all that happened to the promise since its creation is in the trace. */
bool weft__lacks_nothing_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise);

/* Whether a ring has forgotten its beginning, and nothing else, and tells since when it is pending. */
bool weft__lacks_only_past_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise);

/* Whether some are missing of a stream, or with UINT16_MAX of any, from one time to the other. */
bool weft__lacks_between(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* What that is, a clause; NULL: nothing. */
const char *weft__lacks_text(const struct weft__lacks *lacks);

#endif
