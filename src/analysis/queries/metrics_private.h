/* metrics_private.h: the numbers of a process, which metrics.c collects and openmetrics.c writes.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_METRICS_PRIVATE_H
#define WEFT_ANALYSIS_QUERIES_METRICS_PRIVATE_H

#include "analysis/queries/metrics.h"
#include "base/intern.h"
#include "base/vec.h"

#define BUCKET_COUNT(limit, text) +1
enum { WEFT__METRICS_BUCKETS = 1 WEFT_METRICS_BUCKETS(BUCKET_COUNT) };
#undef BUCKET_COUNT

struct weft__histogram {
	uint64_t buckets[WEFT__METRICS_BUCKETS]; /* each without those before it; the last one has what exceeds all limits */
	uint64_t count;
	uint64_t sum_ns;
};

enum { WEFT__METRICS_NAME_BYTES = 100, WEFT__METRICS_COUNTERS = 64 };

enum weft__metrics_result { WEFT__METRICS_RESOLVED, WEFT__METRICS_FAILED, WEFT__METRICS_CANCELLED, WEFT__METRICS_RESULTS };

/* Promises of one kind and one name. */
struct weft__metrics_name {
	char *text; /* the label pattern; "": no label; owned */
	const char *kind;
	bool is_permanent; /* its promises last by nature, so that their durations mean nothing */
	uint64_t results[WEFT__METRICS_RESULTS];
	struct weft__histogram durations;
	uint64_t in_flight;      /* at the last update */
	int64_t oldest_start_ns; /* of those; INT64_MAX: none */
};

/* A thread with an event loop. */
struct weft__metrics_thread {
	char name[WEFT__METRICS_NAME_BYTES]; /* "" until the first update */
	bool has_loop;
	uint64_t busy_ns;
	int64_t blocked_ns; /* at the last update: how long it has run the same */
};

/* A queue or pool, or all of one name. */
struct weft__metrics_queue {
	uint32_t name; /* index of weft__metrics_name */
	int64_t level, bound;
};

/* A counter of the program or of an adapter. */
struct weft__metrics_counter {
	char name[WEFT__METRICS_NAME_BYTES];
	int64_t value;
};

/* A finding that was counted, and may be found again. */
struct weft__metrics_finding {
	uint64_t key;
	int64_t newest_utc_ns; /* time of the newest one that was counted */
	int64_t seen_utc_ns;   /* time of the last call that had it */
};

struct weft_metrics {
	struct weft_live_observer observer;
	WEFT_VEC(struct weft__metrics_name) names;
	struct weft_intern keys; /* kind and pattern of each name, by its number; owned by the names of `key_texts` */
	WEFT_VEC(char *) key_texts;
	size_t request_names, other_names; /* number of those that count for WEFT_METRICS_NAMES */
	uint64_t cut;                      /* promises that have no name of their own */
	bool has_loop;
	struct weft__histogram delays;
	WEFT_VEC(struct weft__metrics_thread) threads; /* by stream */
	WEFT_VEC(struct weft__metrics_queue) queues;
	WEFT_VEC(struct weft__metrics_counter) counters;
	uint64_t findings[WEFT_FINDING_KINDS][2]; /* by kind; uncertain ones, then certain ones */
	WEFT_VEC(struct weft__metrics_finding) known_findings;
	/* of the last update */
	bool is_updated, is_recorded;
	char process[WEFT__METRICS_NAME_BYTES], host[WEFT__METRICS_NAME_BYTES];
	uint64_t pid;
	int64_t now_ns; /* by the trace's clock; INT64_MIN: unknown */
	uint64_t lost_full, lost_nested, lost_no_stream;
	uint64_t events;
	int64_t unread_ns;
};

#endif
