/* completeness.h: finds which events are missing in a trace, and which promises are affected.  Private to analysis/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_COMPLETENESS_H
#define WEFT_ANALYSIS_INDEX_COMPLETENESS_H

#include "model/model.h"

struct weft__completeness {
	bool lost;          /* events are missing in the middle of the trace */
	bool unplaced;      /* if `lost`: the times of the missing events are unknown */
	bool clipped;       /* the end of the trace is missing (weft_model.is_whole) */
	bool absent;        /* events of some threads are missing at the end of the trace (weft_model.has_absent) */
	bool end_missing;   /* the trace does not record that the program ended, or the end of the trace is missing */
	bool stopped;       /* if `end_missing`: the recording ended while the program went on */
	bool died;          /* if `end_missing`: the recorder saw the program exit */
	bool still_running; /* if `end_missing`: the trace is a copy that was made while the program was running */
	/* if `end_missing`: the trace was made from one look at the program's memory, so nothing is known of the time before */
	bool seen;
	bool wrapped;       /* a ring was overwritten, so the start of the trace is missing */
	int64_t horizon_ns; /* time from which on an overwritten ring has all events; 0 unless `wrapped` */
};

/* Returns one item for each part of the trace (struct weft_part), and then one for all parts together; the caller frees the
 * array.  A trace of one recorder has two items.  NULL: no memory.  Takes time linear in the number of links if several threads
 * have rings that were overwritten. */
struct weft__completeness *weft__completeness_find(const struct weft_model *m);

/* Returns the item for the part to which the promise belongs. */
const struct weft__completeness *weft__completeness_of(
    const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise);

/* Returns whether the trace has all events of the promise since its creation. */
bool weft__has_complete_history(const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise);

/* Returns whether only early events of the promise are missing, because a ring was overwritten, and its creation time is known.
 */
bool weft__is_only_past_missing(const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise);

/* Returns whether events of a stream are missing within an interval; the stream UINT16_MAX stands for any stream. */
bool weft__are_events_missing(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* Returns a clause that says what is missing; NULL if nothing is. */
const char *weft__completeness_text(const struct weft__completeness *completeness);

#endif
