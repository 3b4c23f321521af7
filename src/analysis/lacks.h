/* lacks.h: what a trace lacks, and what is known all the same.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_LACKS_H
#define WEFT_ANALYSIS_LACKS_H

#include "model/model.h"

struct weft__lacks {
	bool lost;          /* events are missing in the middle */
	bool cut;           /* its program did not end the trace */
	bool died;          /* cut: it was seen to end */
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

/* What that is, a clause; NULL: nothing. */
const char *weft__lacks_text(const struct weft__lacks *lacks);

#endif
