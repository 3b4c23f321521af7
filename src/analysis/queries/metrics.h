/* metrics.h: counts events of followed processes in numbers that only grow, and writes the numbers as OpenMetrics text.
 *
 *	weft_metrics_create(&metrics, &err);
 *	options.observer = weft_metrics_observer(metrics); // then weft_follower_open()
 *	// after refreshes: weft_metrics_add_findings()
 *	// for each request: weft_metrics_update(), then weft_metrics_write()
 *
 * Each end of a promise and each run is counted once, whatever window the follower's model has.  Memory is bounded: promises
 * are counted by label pattern, and a process has at most WEFT_METRICS_NAMES names of requests and as many names of other
 * promises.  Promises beyond this limit count under the name "(other)".  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_METRICS_H
#define WEFT_ANALYSIS_QUERIES_METRICS_H

#include "analysis/findings/explain.h"
#include "model/follower.h"

enum { WEFT_METRICS_NAMES = 100 };

/* X(LIMIT_NS, "limit in seconds"): a histogram has one bucket up to each limit, and one bucket above the last. */
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

/* The counted events of one process. */
struct weft_metrics;

/* WEFT_ENOMEM. */
int weft_metrics_create(struct weft_metrics **out, struct weft_error *err);
void weft_metrics_destroy(struct weft_metrics *metrics); /* accepts NULL */

/* Returns the observer for weft_follower_options, which `metrics` owns. */
const struct weft_live_observer *weft_metrics_observer(const struct weft_metrics *metrics);

/* Counts the findings that are new since the last call.  A finding about a lasting state, such as a hang, counts once. */
void weft_metrics_add_findings(
    struct weft_metrics *metrics, const struct weft_findings *findings, const struct weft_model *model, int64_t now_utc_ns);

/* Copies the number of promises in flight, counters, and the numbers of events that the recorder and the follower lost.  Takes
 * time linear in the number of pending promises. */
void weft_metrics_update(
    struct weft_metrics *metrics, const struct weft_follower *follower, bool is_recorded, int64_t now_utc_ns);

/* Returns whether an update has found data: before that, nothing is known of the process. */
bool weft_metrics_is_updated(const struct weft_metrics *metrics);

/* A process, for weft_metrics_write(). */
struct weft_metrics_process {
	const char *trace; /* path of the trace, which distinguishes it from other traces */
	const struct weft_metrics *metrics;
};

/* The cost of following traces, and the number of processes that are left out. */
struct weft_metrics_follower {
	int64_t cpu_ns;
	uint64_t memory_bytes;
	/* number of reported problems; number of copies of traces that were saved for them; valid only if `watches` */
	uint64_t problems, saved;
	bool watches;
	uint64_t left_out; /* number of processes without metrics, because there are too many processes */
};

/* Writes the metrics of all processes in the text format of OpenMetrics 1.0, piece by piece, through `write`. */
void weft_metrics_write(const struct weft_metrics_process *processes, size_t count, const struct weft_metrics_follower *follower,
    void (*write)(void *ctx, const char *bytes, size_t size), void *ctx);

#define WEFT_METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

#endif
