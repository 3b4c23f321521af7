/* explain.h: explains what went wrong in a trace, with evidence.
 *
 * A finding has a title and evidence: a list of lines, each about a promise at a time, that a viewer can show and select.  A
 * finding says which facts the trace does not record, instead of guessing them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_EXPLAIN_H
#define WEFT_ANALYSIS_FINDINGS_EXPLAIN_H

#include "analysis/index/path.h"

/* An alarm reports a fault or a probable fault.  An informational finding reports a fact that may be no fault. */
enum weft_severity { WEFT_SEVERITY_INFORMATION, WEFT_SEVERITY_ALARM };

/* X(NAME, name, severity, needs, "meaning"): the kinds of findings, most serious first.
 *
 * The checks run in the order of this list; the check NAME is the function weft__find_NAME() in src/analysis/findings.  `needs`
 * lists the indexes that the check reads, as names of enum weft__need without the prefix WEFT__NEED_.  If several promises wait
 * for one unresolved promise (the root), only the first check that finds the root reports it. */
#define WEFT_FINDINGS(X)                                                                                                         \
	X(DEADLOCK, deadlock, ALARM, ROOT_CAUSES | UNREPORTED, "lock holders wait for each other's locks in a cycle")            \
	X(CYCLE, cycle, ALARM, ROOT_CAUSES | UNREPORTED, "promises wait for each other in a cycle")                              \
	X(CRASH, crash, ALARM, ROOT_CAUSES | DELAYS | UNREPORTED, "a promise was running when the program died")                 \
	X(BACKLOG, backlog, ALARM, ROOT_CAUSES | TYPES | UNREPORTED | COMPLETE,                                                  \
	    "work arrives faster than it is done, until the end of the trace")                                                   \
	X(HANG, hang, ALARM, ROOT_CAUSES | TYPES | UNREPORTED, "a promise that should resolve never did")                        \
	X(UNCLOSED, unclosed, ALARM, WAIT_GRAPH | UNREPORTED, "a loop was closed while its handles were open")                   \
	X(UNANSWERED, unanswered, ALARM, TYPES | WAIT_GRAPH | COMPLETE,                                                          \
	    "a connection is silent although its peer seems to expect an answer")                                                \
	X(UNRETURNED, unreturned, ALARM, TYPES | UNREPORTED | COMPLETE, "a promise can never resolve: its task was destroyed")   \
	X(TWICE, twice, ALARM, TYPES | OBSERVED, "a promise was resolved again after its end")                                   \
	X(MISUSED, misused, ALARM, TYPES | COMPLETE, "a promise was used after its end, or never created")                       \
	X(FAILURE, failure, ALARM, TYPES | UNREPORTED | COMPLETE, "a promise failed and no code read the error")                 \
	X(RETRIES, retries, ALARM, TYPES | OBSERVED, "an operation failed and was retried many times")                           \
	X(STUCK, stuck, ALARM, ROOT_CAUSES | TYPES | UNREPORTED | COMPLETE,                                                      \
	    "a promise is pending although younger ones of its type ended")                                                      \
	X(STALL, stall, ALARM, DELAYS | OBSERVED, "code blocked an event loop while promises were ready")                        \
	X(EXHAUSTED, exhausted, ALARM, TYPES | OBSERVED,                                                                         \
	    "all threads of a pool or places of a semaphore were taken, and others waited")                                      \
	X(STARVATION, starvation, ALARM, DELAYS | TYPES | OBSERVED, "promises were ready for long while many others ran")        \
	X(SPIN, spin, ALARM, 0, "code was called again and again, and its thread never slept")                                   \
	X(LEAK, leak, ALARM, ROOT_CAUSES | TYPES | UNREPORTED | COMPLETE,                                                        \
	    "promises of one type are created all the time and hardly any ends")                                                 \
	X(UNDERWAY, underway, INFORMATION, ROOT_CAUSES | TYPES | UNREPORTED,                                                     \
	    "a promise that should resolve was in progress at the end")                                                          \
	X(WASTED, wasted, INFORMATION, OBSERVED, "work continued although the promise that waited for it was cancelled")         \
	X(ALIVE, alive, INFORMATION, WAIT_GRAPH | TYPES, "an event loop has not returned")                                       \
	X(SAVED, saved, INFORMATION, 0, "why weft watch saved this copy of a trace")                                             \
	X(SLOW, slow, INFORMATION, TYPES | OBSERVED, "a promise took far longer than others of its type")                        \
	X(SEQUENCE, sequence, INFORMATION, OBSERVED, "an answer waited for many answers, one after the other")                   \
	X(RECONNECTS, reconnects, INFORMATION, TYPES | OBSERVED,                                                                 \
	    "each request had a connection of its own, although an earlier one was free")                                        \
	X(RETAINED, retained, INFORMATION, TYPES | OBSERVED, "memory of ended promises is not freed, and grows")                 \
	X(ANSWER, answer, INFORMATION, ROOT_CAUSES | TYPES | QUESTION, "how a promise ended, or why it is pending")

enum weft_finding_kind {
#define WEFT_FINDING_ENUM(NAME, name, severity, needs, text) WEFT_FINDING_##NAME,
	WEFT_FINDINGS(WEFT_FINDING_ENUM)
#undef WEFT_FINDING_ENUM
	    WEFT_FINDING_KINDS
};

/* X(NAME, "name"): why the last promise of a wait chain, the root, was not resolved. */
#define WEFT_VERDICTS(X)                                                                                                         \
	X(NONE, "none")                                                                                                          \
	X(LOST_WAKEUP, "lost-wakeup")       /* the condition was signalled only before the promise began to wait */              \
	X(CYCLE, "cycle")                   /* the promise waits for itself, perhaps through other promises */                   \
	X(CREATOR_FAILED, "creator-failed") /* the promise's creator failed or was cancelled after it had created the promise */ \
	X(NOT_RUN, "not-run")               /* the promise's input ended, but the promise never ran again */                     \
	X(NOT_RELEASED, "not-released")     /* the last holder of the lock ended without releasing the lock */                   \
	X(NOT_HANDED_ON, "not-handed-on")   /* the lock is free, but no one woke its waiter */                                   \
	X(NEVER_TRIED, "never-tried")       /* no code ever tried to resolve the promise */                                      \
	X(OUTSIDE, "outside") /* the promise is a read, a timer or the like, and no answer came from outside the program */      \
	X(UNKNOWN, "unknown") /* the trace records too little to tell the cause */

enum weft_verdict {
#define WEFT_VERDICT_ENUM(NAME, name) WEFT_VERDICT_##NAME,
	WEFT_VERDICTS(WEFT_VERDICT_ENUM)
#undef WEFT_VERDICT_ENUM
	    WEFT_VERDICTS_COUNT
};

enum weft_evidence_role {
	WEFT_EVIDENCE_TIME,   /* a part of the time of an ended promise, and where it was spent; the longest part first */
	WEFT_EVIDENCE_CHAIN,  /* a promise of the wait chain, from the promise that should resolve down to the root */
	WEFT_EVIDENCE_CAUSE,  /* an event that led to the fault, in time order */
	WEFT_EVIDENCE_VICTIM, /* delayed promises */
	WEFT_EVIDENCE_LIKE,   /* a similar finding that was merged into this one: its promise and its duration */
	WEFT_EVIDENCE_NOTE    /* another fact, or a fact that the trace does not record */
};

struct weft_evidence {
	int64_t time_ns;  /* or WEFT_NO_TIME */
	uint32_t promise; /* or WEFT_NONE */
	enum weft_evidence_role role;
	const char *text; /* text of this line in UTF-8 without control characters, like all texts of findings */
};

#define WEFT_NO_TIME INT64_MIN

struct weft_finding {
	enum weft_finding_kind kind;
	enum weft_verdict verdict;
	enum weft_severity severity;
	bool sure;         /* false if the finding is uncertain */
	const char *doubt; /* reason why the finding is uncertain, as one clause; NULL if the finding is certain */
	/* number of similar findings that are merged into this one, itself included: they have one type, cause and site */
	uint32_t count;
	uint32_t promise;  /* promise that the worst of the merged findings is about; WEFT_SYSTEM for a pause */
	uint32_t root;     /* last promise of the wait chain; the same as `promise` if there is no chain */
	int64_t start_ns;  /* start of the time range that a viewer should show */
	int64_t end_ns;    /* end of the time range that a viewer should show; at most the end of the trace */
	uint64_t weight;   /* lost nanoseconds or another number, by which findings of one kind are sorted */
	const char *title; /* headline of the finding: one sentence without a full stop */
	const char *next;  /* advice to the programmer: one imperative sentence, or an empty string */
	struct weft_evidence *evidence;
	size_t evidence_count;
	struct weft_path_step *steps; /* critical path of the promise, if the finding answers a question about an ended promise */
	size_t step_count;
};

struct weft_findings {
	struct weft_finding *findings; /* array of findings: most serious first, then by weight, then by start */
	size_t count;
	size_t left_out; /* number of findings that were left out because there were too many of their kind */
	/* what is missing in the trace, as one clause such as "events were lost"; NULL if nothing is missing */
	const char *doubt;
	struct weft_findings_private *priv; /* owner of the memory of all texts; NULL if the findings are one block of memory */
};

/* Options of weft_explain(); zero selects the default value. */
struct weft_explain_options {
	int64_t stall_ns;  /* shortest delay that is reported (default: 10 ms) */
	size_t leak_count; /* smallest number of pending promises that is a leak (default: 32) */
	/* NULL, or a callback that gets the progress every few ms on the thread that explains; it returns false to cancel. */
	bool (*go_on)(void *ctx, unsigned percent);
	void *ctx;
};

/* Explains a model.  A model built with the option to keep binds where they were created gives the best findings; promises have
 * the same numbers with and without that option.
 *
 * `options` may be NULL.  The model must outlive the findings.  Time: near-linear.  On failure *out is unchanged and the result
 * is WEFT_ENOMEM or WEFT_ECANCELLED. */
int weft_explain(struct weft_findings **out, const struct weft_model *model, const struct weft_explain_options *options,
    struct weft_error *err);

/* Explains the state of one promise with one finding of any kind: what the promise waits for and why it was not resolved, or
 * how it ended.  Otherwise as weft_explain().  Returns WEFT_ENOTFOUND if the model has no such promise. */
int weft_explain_promise(struct weft_findings **out, const struct weft_model *model, uint32_t promise,
    const struct weft_explain_options *options, struct weft_error *err);

void weft_findings_destroy(struct weft_findings *findings);

const char *weft_finding_name(enum weft_finding_kind kind);
const char *weft_severity_name(enum weft_severity severity); /* "alarm", "information" */
const char *weft_verdict_name(enum weft_verdict verdict);

#endif
