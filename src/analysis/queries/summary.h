/* summary.h: summarizes a trace in a few sentences: what the program did, how long it took, and what is wrong with it.
 *
 * The window, the page and the commands show the same sentences.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_SUMMARY_H
#define WEFT_ANALYSIS_QUERIES_SUMMARY_H

#include "analysis/findings/explain.h"
#include "analysis/queries/promise_info.h"

/* X(NAME, "name"): the topics of lines, in their order. */
#define WEFT_SUMMARY_TOPICS(X)                                                                                                   \
	X(PROGRAM, "program")   /* which program ran, when, for how long, and how it ended */                                    \
	X(HANG, "hang")         /* promises that never ended, and since when they are pending */                                 \
	X(REQUESTS, "requests") /* requests that the program served */                                                           \
	X(WORK, "work")         /* promises other than requests that ended, in a program that serves no requests */              \
	/* one of the most severe findings; or how many other findings there are, or that there are none */                      \
	X(FINDING, "findings")                                                                                                   \
	X(ANSWERS, "answers") /* answers for which the program waited */                                                         \
	X(LOOP, "event loop") /* how busy an event loop was, and its longest block */                                            \
	/* how busy the busiest thread was, and its longest block, in a program without an event loop */                         \
	X(THREAD, "thread")                                                                                                      \
	X(WAITING, "waiting")  /* in which calls threads were at the end */                                                      \
	X(POOL, "thread pool") /* the load of the thread pool */                                                                 \
	X(FAILURES, "failures")                                                                                                  \
	X(MISSING, "missing") /* events that the trace does not have */

enum weft_summary_topic {
#define WEFT_SUMMARY_ENUM(NAME, name) WEFT_SUMMARY_##NAME,
	WEFT_SUMMARY_TOPICS(WEFT_SUMMARY_ENUM)
#undef WEFT_SUMMARY_ENUM
	    WEFT_SUMMARY_TOPIC_COUNT
};

#define WEFT_SUMMARY_FIGURES 4
#define WEFT_SUMMARY_MAX_FINDINGS 3

struct weft_summary_line {
	enum weft_summary_topic topic;
	const char *text; /* a sentence without a full stop: valid UTF-8 in one line */
	uint32_t promise; /* promise that the sentence is about, such as the slowest request; or WEFT_NONE */
	uint32_t finding; /* index of the finding that the sentence is about, or WEFT_NONE */
	/* the interval that the sentence is about; to_ns < from_ns if there is none */
	int64_t from_ns, to_ns;
	/* Parts of the text for readers that can show more than a sentence: a title; numbers with their names, such as "412/s"
	 * and "requests", up to the first NULL; and the rest of the facts.  The title is "" if there are no parts. */
	const char *title;
	struct {
		const char *value, *name;
	} figures[WEFT_SUMMARY_FIGURES];
	const char *rest;
};

struct weft_summary {
	struct weft_summary_line *lines; /* by topic */
	size_t count;
	int64_t served_from_ns; /* time of the first request that the program served, or WEFT_NO_TIME */
	struct weft_summary_private *priv;
};

/* Summarizes the model of `facts`, which must live as long as the summary.  Lines about findings are absent until
 * weft_summary_set_findings().  Fails with WEFT_ENOMEM; then *out is unchanged.  Takes n log n time. */
int weft_summary_create(struct weft_summary **out, struct weft_promise_info *facts, struct weft_error *err);
void weft_summary_destroy(struct weft_summary *summary); /* accepts NULL */

/* Adds lines about findings, in place of earlier ones; `findings` is NULL if they are not known.  The texts are copied.
 * Returns WEFT_OK, or WEFT_ENOMEM; then the summary has no lines about findings. */
int weft_summary_set_findings(struct weft_summary *summary, const struct weft_findings *findings);

/* Returns the topic as a word, such as "event loop". */
const char *weft_summary_topic_name(enum weft_summary_topic topic);

#endif
