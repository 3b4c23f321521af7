/* metrics.h: numbers about followed processes that only grow, and their text in OpenMetrics.
 *
 *	weft_metrics_create(&metrics, &err);
 *	options.observer = weft_metrics_observer(metrics); // then weft_follower_open()
 *	// after refreshes: weft_metrics_add_findings()
 *	// for each request: weft_metrics_update(), then weft_metrics_write()
 *
 * Each end of a promise and each run is counted once, whatever window the follower's model has.  Memory is bounded: promises have
 * names of label patterns, a process has at most WEFT_METRICS_NAMES names of requests and as many of other promises, and what
 * has no place counts as "(other)".  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_METRICS_H
#define WEFT_ANALYSIS_QUERIES_METRICS_H

#include "analysis/findings/explain.h"
#include "model/follower.h"

enum { WEFT_METRICS_NAMES = 100 };

/* X(LIMIT_NS, "limit in seconds"): histograms have one bucket up to each limit, and one above. */
#define WEFT_METRICS_BUCKETS(X)                                                                                                  \
	X(10000, "1e-05")                                                                                                        \
	X(25000, "2.5e-05")                                                                                                      \
	X(50000, "5e-05")                                                                                                        \
	X(100000, "0.0001")                                                                                                      \
	X(250000, "0.00025")                                                                                                     \
	X(500000, "0.0005")                                                                                                      \
	X(1000000, "0.001")                                                                                                      \
	X(2500000, "0.0025")                                                                                                     \
	X(5000000, "0.005")                                                                                                      \
	X(10000000, "0.01")                                                                                                      \
	X(25000000, "0.025")                                                                                                     \
	X(50000000, "0.05")                                                                                                      \
	X(100000000, "0.1")                                                                                                      \
	X(250000000, "0.25")                                                                                                     \
	X(500000000, "0.5")                                                                                                      \
	X(1000000000, "1.0")                                                                                                     \
	X(2500000000, "2.5")                                                                                                     \
	X(5000000000, "5.0")                                                                                                     \
	X(10000000000, "10.0")                                                                                                   \
	X(30000000000, "30.0")                                                                                                   \
	X(60000000000, "60.0")

/* The numbers of one process. */
struct weft_metrics;

/* WEFT_ENOMEM. */
int weft_metrics_create(struct weft_metrics **out, struct weft_error *err);
void weft_metrics_destroy(struct weft_metrics *metrics); /* accepts NULL */

/* Returns the observer for weft_follower_options; it belongs to the metrics. */
const struct weft_live_observer *weft_metrics_observer(const struct weft_metrics *metrics);

/* Counts findings that are new since the last call.  A finding that lasts, such as a hang, counts once. */
void weft_metrics_add_findings(
    struct weft_metrics *metrics, const struct weft_findings *findings, const struct weft_model *model, int64_t now_utc_ns);

/* Copies what is in flight now, counters, and what the recorder and the follower lost.  Linear in what is pending. */
void weft_metrics_update(
    struct weft_metrics *metrics, const struct weft_follower *follower, bool is_recorded, int64_t now_utc_ns);

/* Returns whether an update found something: before, nothing is known of the process. */
bool weft_metrics_is_updated(const struct weft_metrics *metrics);

/* A process, for weft_metrics_write(). */
struct weft_metrics_process {
	const char *trace; /* the path, which tells it from the others */
	const struct weft_metrics *metrics;
};

/* The cost of following, and the number of processes that are left out. */
struct weft_metrics_follower {
	int64_t cpu_ns;
	uint64_t memory_bytes;
	uint64_t troubles, saved; /* reported, and copies saved for them; only if watches */
	bool watches;
	uint64_t left_out; /* processes without metrics, because there are too many */
};

/* Writes all in the text format of OpenMetrics 1.0, piece by piece, through `write`. */
void weft_metrics_write(const struct weft_metrics_process *processes, size_t count, const struct weft_metrics_follower *follower,
    void (*write)(void *ctx, const char *bytes, size_t size), void *ctx);

#define WEFT_METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

#endif
