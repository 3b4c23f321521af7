/* metrics_private.h: declares the metrics of a process, which metrics.c collects and openmetrics.c writes.
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
	/* number of values in each bucket, not cumulative; the last bucket has the values above all limits */
	uint64_t buckets[WEFT__METRICS_BUCKETS];
	uint64_t count;
	uint64_t sum_ns;
};

enum { WEFT__METRICS_NAME_BYTES = 100, WEFT__METRICS_COUNTERS = 64 };

enum weft__metrics_result { WEFT__METRICS_RESOLVED, WEFT__METRICS_FAILED, WEFT__METRICS_CANCELLED, WEFT__METRICS_RESULTS };

/* Metrics of the promises with one kind and one name. */
struct weft__metrics_name {
	char *text; /* label pattern of the promises; "" if they have no label; owned */
	const char *kind;
	bool is_permanent; /* true if the promises last for ever by nature, so that their durations mean nothing */
	uint64_t results[WEFT__METRICS_RESULTS];
	struct weft__histogram durations;
	uint64_t in_flight;      /* at the last update */
	int64_t oldest_start_ns; /* of those; INT64_MAX: none */
};

/* Metrics of a thread with an event loop. */
struct weft__metrics_thread {
	char name[WEFT__METRICS_NAME_BYTES]; /* name of the thread; "" until the first update */
	bool has_loop;
	uint64_t busy_ns;
	int64_t blocked_ns; /* for how long the thread had run one promise at the last update */
};

/* Metrics of a queue or pool, or of all queues with one name. */
struct weft__metrics_queue {
	uint32_t name; /* index of weft__metrics_name */
	int64_t level, bound;
};

/* Metrics of a counter that the program or an adapter records. */
struct weft__metrics_counter {
	char name[WEFT__METRICS_NAME_BYTES];
	int64_t value;
};

/* A finding that was counted and may be found again. */
struct weft__metrics_finding {
	uint64_t key;
	int64_t newest_utc_ns; /* time of the newest finding of this key that was counted */
	int64_t seen_utc_ns;   /* time of the last call that passed this finding */
};

struct weft_metrics {
	struct weft_live_observer observer;
	WEFT_VEC(struct weft__metrics_name) names;
	struct weft_intern keys; /* kind and pattern of each name, by its number; owned by the names of `key_texts` */
	WEFT_VEC(char *) key_texts;
	/* numbers of names that count against WEFT_METRICS_NAMES: of requests; of other promises */
	size_t request_names, other_names;
	uint64_t cut; /* number of promises that are counted without their own name */
	bool has_loop;
	struct weft__histogram delays;
	WEFT_VEC(struct weft__metrics_thread) threads; /* by stream */
	WEFT_VEC(struct weft__metrics_queue) queues;
	WEFT_VEC(struct weft__metrics_counter) counters;
	uint64_t findings[WEFT_FINDING_KINDS][2]; /* number of findings by kind: uncertain findings, then certain ones */
	WEFT_VEC(struct weft__metrics_finding) known_findings;
	/* of the last update */
	bool is_updated, is_recorded;
	char process[WEFT__METRICS_NAME_BYTES], host[WEFT__METRICS_NAME_BYTES];
	uint64_t pid;
	int64_t now_ns; /* time of the last update by the trace's clock; INT64_MIN if unknown */
	uint64_t lost_full, lost_nested, lost_no_stream;
	uint64_t events;
	int64_t unread_ns;
};

#endif
