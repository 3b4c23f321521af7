/* slow.h: limits and functions that the checks of slow promises share (private to src/analysis/findings).
 *
 * slow_outlier.c compares a promise with others of its type and site, slow_route.c compares served requests with all requests of
 * their process.  SPDX-License-Identifier: ISC */
#ifndef WEFT_FINDINGS_SLOW_H
#define WEFT_FINDINGS_SLOW_H

#include "analysis/findings/finding.h"

enum {
	MIN_PEERS = 16,      /* fewest promises that have a usual duration */
	TIMES_MEDIAN = 10,   /* shortest duration of a slow promise, in multiples of the median */
	TIMES_STALL = 10,    /* shortest duration of a slow promise, in stall limits */
	OUTLIER_DIVISOR = 5, /* if more than one in OUTLIER_DIVISOR promises is slow, slowness is usual */
	MAX_REPORTED = 8
};

/* Slow promises and late answers that have their own findings: promises that waited for them are not reported. */
struct weft__slow_reported {
	bool *is_slow; /* by promise */
	bool *is_late; /* by request */
};

/* The slowest promise of a group. */
struct weft__slowest {
	uint32_t promise, count, peers; /* count: number of slow promises; peers: number of promises that it is compared with */
	int64_t took_ns, median_ns;     /* median_ns: median of the peers */
	bool is_among_all;              /* the peers are all requests of the process, not only those of the promise's type */
	bool is_reported;
};

/* Returns whether p has ended in the ordinary way, and has a known duration. */
bool weft__slow_has_duration(const struct weft__finder *f, uint32_t p);

/* Adds a finding for the slowest promise; returns whether no other finding covers the added finding. */
bool weft__slow_report(struct weft__finder *f, const struct weft__slowest *s, const struct weft__slow_reported *reported);

/* Returns whether p has a finding as a slow promise. */
bool weft__slow_has_finding(const struct weft__finder *f, uint32_t p);

/* Reports requests that took far longer than most requests that their process served.  `group` has the type group of each
 * type. */
void weft__slow_route_find(struct weft__finder *f, const uint32_t *group, const struct weft__slow_reported *reported);

#endif
