/* explain.h: what went wrong in a trace, and how one knows.
 *
 * A finding is said in a title; its evidence is a list of lines, each about a promise at a time, that a viewer can show and
 * lead to.  What the trace cannot know is said, never guessed.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_EXPLAIN_H
#define WEFT_ANALYSIS_EXPLAIN_H

#include "analysis/path.h"

/* An alarm is a fault, or looks like one; information is worth knowing where nothing is wrong. */
enum weft_severity { WEFT_SEVERITY_INFORMATION, WEFT_SEVERITY_ALARM };

/* X(NAME, name, severity, needs, "what it is"): most serious first.
 *
 * In this order they are looked for, each by weft__find_NAME() of src/analysis/findings; `needs` is what must be known before
 * (enum weft__need, without its WEFT__NEED_).  ROOTS: what waits for one and the same promise in the end is told of once, by the
 * first of them that finds it. */
#define WEFT_FINDINGS(X)                                                                                                         \
	X(DEADLOCK, deadlock, ALARM, CHAINS | ROOTS, "each holds a lock that the next one waits for, in a circle")               \
	X(CYCLE, cycle, ALARM, CHAINS | ROOTS, "promises wait for each other in a circle")                                       \
	X(CRASH, crash, ALARM, ROOTS, "what ran when the program died")                                                          \
	X(BACKLOG, backlog, ALARM, CHAINS | SORTS | ROOTS | ALL, "more came than was done, until the end")                       \
	X(HANG, hang, ALARM, CHAINS | SORTS | ROOTS, "a promise should resolve and never did")                                   \
	X(UNCLOSED, unclosed, ALARM, WAITING | ROOTS, "a loop was closed before its handles were")                               \
	X(UNANSWERED, unanswered, ALARM, SORTS | ALL, "a connection is silent though an answer is due")                          \
	X(UNRETURNED, unreturned, ALARM, SORTS | ROOTS | ALL, "a promise can never be resolved: what it stands for is gone")     \
	X(TWICE, twice, ALARM, SORTS | SEEN, "a promise was ended again after its end")                                          \
	X(MISUSED, misused, ALARM, SORTS | ALL, "a promise went on after its end, or was never created")                         \
	X(FAILURE, failure, ALARM, SORTS | ROOTS | ALL, "a promise failed and nobody took notice")                               \
	X(RETRIES, retries, ALARM, SORTS | SEEN, "one thing was tried again and again and failed each time")                     \
	X(STUCK, stuck, ALARM, CHAINS | SORTS | ROOTS | ALL,                                                                     \
	    "a promise is pending that younger ones of its sort have overtaken")                                                 \
	X(STALL, stall, ALARM, DELAYS | SEEN, "one promise ran, or a pause lasted, while others were ready")                     \
	X(EXHAUSTED, exhausted, ALARM, SORTS | SEEN, "computations held all OS threads of a pool, and others had to wait")       \
	X(STARVATION, starvation, ALARM, DELAYS | SORTS | SEEN, "promises were ready for long while many others ran")            \
	X(SPIN, spin, ALARM, 0, "code was called again and again, and its OS thread never slept")                                \
	X(LEAK, leak, ALARM, CHAINS | SORTS | ROOTS | ALL, "promises of one sort only ever become more")                         \
	X(UNDERWAY, underway, INFORMATION, CHAINS | SORTS | ROOTS, "a promise should resolve, and was on its way at the end")    \
	X(WASTED, wasted, INFORMATION, SEEN, "work went on though whoever waited for it was cancelled")                          \
	X(ALIVE, alive, INFORMATION, WAITING | SORTS, "what keeps a loop from returning")                                        \
	X(SAVED, saved, INFORMATION, 0, "why this copy was kept")                                                                \
	X(SLOW, slow, INFORMATION, SORTS | SEEN, "one took far longer than others of its sort")                                  \
	X(ANSWER, answer, INFORMATION, CHAINS | SORTS | QUESTION, "how a promise came to its end, or why it did not")

enum weft_finding_kind {
#define WEFT_FINDING_ENUM(NAME, name, severity, needs, text) WEFT_FINDING_##NAME,
	WEFT_FINDINGS(WEFT_FINDING_ENUM)
#undef WEFT_FINDING_ENUM
	    WEFT_FINDING_KINDS
};

/* X(NAME, "name"): of a hang and of a stuck promise, what is at the end of the chain of those that it waits for. */
#define WEFT_VERDICTS(X)                                                                                                         \
	X(NONE, "none")                                                                                                          \
	X(LOST_WAKEUP, "lost-wakeup")       /* its condition was signalled before it waited, and not since */                    \
	X(CYCLE, "cycle")                   /* it waits for itself */                                                            \
	X(CREATOR_FAILED, "creator-failed") /* who created it failed, or was cancelled, after that */                            \
	X(NOT_RUN, "not-run")               /* what it waits for has ended; it never ran again */                                \
	X(NOT_RELEASED, "not-released")     /* a lock; who held it last ended and never released it */                           \
	X(NOT_HANDED_ON, "not-handed-on")   /* a lock that nobody holds; who waits for it was not told */                        \
	X(NEVER_TRIED, "never-tried")       /* nobody ever tried to resolve it */                                                \
	X(OUTSIDE, "outside")               /* a read, a timer, ...: no answer came from outside */                              \
	X(UNKNOWN, "unknown")               /* the trace does not hold enough */

enum weft_verdict {
#define WEFT_VERDICT_ENUM(NAME, name) WEFT_VERDICT_##NAME,
	WEFT_VERDICTS(WEFT_VERDICT_ENUM)
#undef WEFT_VERDICT_ENUM
	    WEFT_VERDICTS_COUNT
};

enum weft_evidence_role {
	WEFT_EVIDENCE_TIME,   /* where the time of one that has ended went, the longest part first */
	WEFT_EVIDENCE_CHAIN,  /* who waits for whom, from what should resolve down to the root */
	WEFT_EVIDENCE_CAUSE,  /* what happened, in order of time */
	WEFT_EVIDENCE_VICTIM, /* who was delayed */
	WEFT_EVIDENCE_LIKE,   /* another of the findings that are one with this, by its promise and how long it lasted */
	WEFT_EVIDENCE_NOTE    /* what else is known, or is not */
};

struct weft_evidence {
	int64_t time_ns;  /* or WEFT_NO_TIME */
	uint32_t promise; /* or WEFT_NONE */
	enum weft_evidence_role role;
	const char *text; /* UTF-8 without control characters, as all texts here */
};

#define WEFT_NO_TIME INT64_MIN

struct weft_finding {
	enum weft_finding_kind kind;
	enum weft_verdict verdict;
	enum weft_severity severity;
	bool sure;         /* false: what the trace lacks could say otherwise */
	const char *doubt; /* unless sure: what it lacks, one clause; else NULL */
	uint32_t count;    /* how many findings of one sort, cause and site this is */
	uint32_t promise;  /* whom it is about, of the worst of them; WEFT_SYSTEM of a pause */
	uint32_t root;     /* of a chain: its end; otherwise `promise` */
	int64_t start_ns;  /* where to look */
	int64_t end_ns;    /* 0 and up to the trace's end */
	uint64_t weight;   /* ns lost, or how many: what findings of a kind are sorted by */
	const char *title; /* one sentence without a full stop */
	const char *next;  /* what to look at next: one sentence */
	struct weft_evidence *evidence;
	size_t evidence_count;
	struct weft_path_step *steps; /* of an answer about one that has ended: its critical path */
	size_t step_count;
};

struct weft_findings {
	struct weft_finding *findings; /* most serious first; then the heaviest, then the earliest */
	size_t count;
	size_t left_out;                    /* how many more there are, of kinds that have plenty */
	const char *doubt;                  /* what the trace lacks, one clause: "events were lost"; NULL: nothing */
	struct weft_findings_private *priv; /* where the texts are; NULL: all is one block of memory */
};

/* Zeroes stand for the values given here. */
struct weft_explain_options {
	int64_t stall_ns;  /* 10 ms: a delay from which on it is one */
	size_t leak_count; /* 32: that many alive at the end, at least */
	/* Unless NULL: called every few ms, in the OS thread that explains, with how much is done; false calls it off. */
	bool (*go_on)(void *ctx, unsigned percent);
	void *ctx;
};

/* Explains a model, best one that kept its binds where they were created: promises have the same numbers in both.
 *
 * `options` may be NULL.  It must not outlive the model.  Near-linear.  On failure *out is untouched: WEFT_ENOMEM,
 * WEFT_ECANCELLED. */
int weft_explain(struct weft_findings **out, const struct weft_model *model, const struct weft_explain_options *options,
    struct weft_error *err);

/* Why one promise is as it is: one finding, whatever its kind: what it waits for and why that does not come, or how it ended.
 * As weft_explain(); a `promise` that is not in the model is WEFT_ENOTFOUND. */
int weft_explain_promise(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err);

void weft_findings_destroy(struct weft_findings *findings);

const char *weft_finding_name(enum weft_finding_kind kind);
const char *weft_severity_name(enum weft_severity severity); /* "alarm", "information" */
const char *weft_verdict_name(enum weft_verdict verdict);

#endif
