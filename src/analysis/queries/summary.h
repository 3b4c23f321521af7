/* summary.h: a trace in a few sentences: what the program did, how long it took, and what is wrong with it.
 *
 * Window, page and commands show the same sentences.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_SUMMARY_H
#define WEFT_ANALYSIS_QUERIES_SUMMARY_H

#include "analysis/findings/explain.h"
#include "analysis/queries/promise_info.h"

/* X(NAME, "name"): the topics of lines, in their order. */
#define WEFT_SUMMARY_TOPICS(X)                                                                                                   \
	X(PROGRAM, "program")   /* what ran, when, for how long, and how it ended */                                             \
	X(HANG, "hang")         /* what never ended, since when */                                                               \
	X(REQUESTS, "requests") /* that the program served */                                                                    \
	X(WORK, "work")         /* other promises that ended, in a program that serves no requests */                            \
	X(FINDING, "findings")  /* one of the most severe; or how many others there are, or that there are none */               \
	X(ANSWERS, "answers")   /* that the program waited for */                                                                \
	X(LOOP, "event loop")   /* how busy a loop was, and its longest block */                                                 \
	X(THREAD, "thread")     /* the same of the busiest thread, in a program without a loop */                                \
	X(WAITING, "waiting")   /* in which calls threads were at the end */                                                     \
	X(POOL, "thread pool")  /* its load */                                                                                   \
	X(FAILURES, "failures")                                                                                                  \
	X(MISSING, "missing") /* what the trace does not have */

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
	uint32_t promise; /* its subject, such as the slowest request; or WEFT_NONE */
	uint32_t finding; /* index of the finding, or WEFT_NONE */
	/* the interval of the subject; to_ns < from_ns: there is none */
	int64_t from_ns, to_ns;
	/* Parts of the text for readers that can show more than a sentence: a title; numbers with their names, such as "412/s"
	 * and "requests", the first that is absent has NULL; what they do not say.  The title is "" if there are no parts. */
	const char *title;
	struct {
		const char *value, *name;
	} figures[WEFT_SUMMARY_FIGURES];
	const char *rest;
};

struct weft_summary {
	struct weft_summary_line *lines; /* by topic */
	size_t count;
	struct weft_summary_private *priv;
};

/* Summarizes the model of `facts`, which must outlive the summary.  Lines about findings are absent until
 * weft_summary_set_findings().  Fails with WEFT_ENOMEM, and then leaves *out untouched.  n log n. */
int weft_summary_create(struct weft_summary **out, struct weft_promise_info *facts, struct weft_error *err);
void weft_summary_destroy(struct weft_summary *summary); /* accepts NULL */

/* Adds lines about findings, in place of earlier ones; NULL: they are not known.  The texts are copied.  Returns WEFT_OK or
 * WEFT_ENOMEM; the lines are then without findings. */
int weft_summary_set_findings(struct weft_summary *summary, const struct weft_findings *findings);

/* Returns "event loop": a topic as a word. */
const char *weft_summary_topic_name(enum weft_summary_topic topic);

#endif
