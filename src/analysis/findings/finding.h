/* finding.h: state and helpers that the checks share.
 *
 * Each check is one file of this folder.  A check reads the indexes of the finder and writes findings.  All English text of
 * findings is in this folder.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_FINDING_H
#define WEFT_ANALYSIS_FINDINGS_FINDING_H

#include "analysis/findings/explain.h"
#include "analysis/findings/root_causes.h"
#include "analysis/index/completeness.h"
#include "analysis/index/delays.h"
#include "analysis/index/promise_types.h"
#include "analysis/index/steal.h"
#include "analysis/index/wait_graph.h"

/* Limits: findings gathered of each kind, findings reported of each kind after merging, lines of a list. */
#define WEFT__MAX_FINDINGS_GATHERED 200
#define WEFT__MAX_FINDINGS_REPORTED 50
#define WEFT__MAX_LINES 8

/* Length up to which a title has the function of its place. */
#define WEFT__MAX_TITLE_BYTES 120

/* Traits of promises that last long and do many things one after the other. */
#define WEFT__TRAITS_LASTING (WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP)

/* Traits of promises that other promises hold, and that waiters need. */
#define WEFT__TRAITS_HELD (WEFT_TRAIT_LOCK | WEFT_TRAIT_POOL)

/* Bits of the `needs` column of WEFT_FINDINGS. */
enum weft__need {
	WEFT__NEED_WAIT_GRAPH = 1,  /* finder.wait_graph */
	WEFT__NEED_ROOT_CAUSES = 2, /* finder.root_causes and finder.wait_graph */
	WEFT__NEED_TYPES = 4,       /* finder.types */
	WEFT__NEED_DELAYS = 8,      /* finder.delays */
	WEFT__NEED_COMPLETE = 16,   /* no event is missing in the middle of the trace; otherwise the check is skipped */
	WEFT__NEED_UNREPORTED =
	    32, /* finder.reported: the check skips promises that earlier checks reported, and marks those that it reports */
	WEFT__NEED_QUESTION = 64, /* finder.asked_promise: the check answers a question; without a question it is skipped */
	/* The check reports intervals that were recorded from start to end, so events missing at other times do not matter.
	 * If the position of missing events is unknown, the check is skipped. */
	WEFT__NEED_OBSERVED = 128
};

/* Finding `covered` is left out if finding `by`, or what covers that one, is printed: `printed`, set at the end. */
struct weft__cover {
	size_t covered, by, printed;
};

/* Memory for texts: blocks that never move. */
struct weft__text_block {
	struct weft__text_block *before;
	size_t used, size;
	char bytes[];
};

struct weft__finder {
	const struct weft_model *model;
	struct weft_explain_options options;
	uint32_t asked_promise; /* the promise that a question is about, or WEFT_NONE */
	/* Indexes of the model. */
	struct weft__completeness *completeness; /* by part; the last entry is for all parts together */
	struct weft_link_index link_index;
	struct weft__wait_graph wait_graph;
	struct weft__root_causes root_causes;
	struct weft__promise_types types;
	uint32_t *pattern_of;        /* by type: weft__finding_patterns() */
	int64_t *pattern_longest_ns; /* by pattern, set by weft__finding_patterns(): duration of the slowest promise */
	struct weft__delays delays;
	bool *idle_at_end; /* by stream: no promise ran at the end, because the thread slept or its loop had returned */
	int64_t *slept_ns; /* by part: when a thread of it last fell asleep; INT64_MIN: never */
	uint32_t *sleeps, *sleeps_begin; /* for hangs: indexes of model.sleeps grouped by stream, and the start of each group */
	uint32_t *inherited_label;       /* by promise: the label of a promise that became it, or WEFT_NONE */
	bool *reported; /* by promise: a finding reports what waits for it; NULL: the question is about one promise */
	/* Findings so far. */
	WEFT_VEC(struct weft_finding) findings; /* .evidence is unset; .evidence_count counts */
	WEFT_VEC(struct weft_evidence) evidence;
	WEFT_VEC(struct weft__cover) covers;
	struct weft__text_block *texts;
	const char *doubt;
	const struct weft_request *request; /* the request in the evidence of the newest finding: it is added only once */
	size_t counts[WEFT_FINDING_KINDS], left_out;
	bool no_memory;
	struct weft__cancel_token cancel;
};

/* Checks: weft__find_cycle() etc., one for each line of WEFT_FINDINGS.  Errors are noted in the finder. */
#define WEFT__FIND(NAME, name, severity, needs, text) void weft__find_##name(struct weft__finder *f);
WEFT_FINDINGS(WEFT__FIND)
#undef WEFT__FIND

/* ---- findings.c: writing findings ---- */

/* Begins a finding; evidence added later belongs to it.  Returns NULL if there are enough findings of the kind, or on lack of
 * memory; the caller then reports nothing. */
struct weft_finding *weft__finding_begin(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* Marks the newest finding as uncertain.  `why` is one clause; the first reason is kept. */
void weft__finding_doubt(struct weft__finder *f, const char *why);

/* Marks the newest finding as uncertain if events are missing in the part of a promise or, with `is_open`, if the program did not
 * end that part, unless the promise was silent long before the process is known to have died.  Returns whether it did. */
bool weft__finding_doubt_part(struct weft__finder *f, uint32_t promise, bool is_open);

/* Formats a text that lives as long as the findings; returns "" on lack of memory, which is noted. */
__attribute__((format(printf, 2, 3))) const char *weft__finding_text(struct weft__finder *f, const char *format, ...);

/* Adds a line of evidence to the newest finding. */
__attribute__((format(printf, 5, 6))) void weft__finding_evidence(
    struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...);

/* Returns zeroed memory for `count` items that the caller frees; NULL on lack of memory, which is noted. */
void *weft__finding_alloc(struct weft__finder *f, size_t count, size_t item_bytes);

/* Returns, by type, the first type whose labels have the same pattern (label_patterns.h); computed at the first call.  NULL: lack
 * of memory, which is noted, or cancelled.  Needs types. */
const uint32_t *weft__finding_patterns(struct weft__finder *f);

/* Returns when p last ran or acted on another promise; its creation if it never did. */
int64_t weft__finding_last_action_ns(const struct weft__finder *f, uint32_t p);

/* Returns whether a loop over the model may continue, at iteration `done` of `all`. */
static inline bool weft__finding_may_continue(struct weft__finder *f, size_t done, size_t all)
{
	return !f->no_memory && weft__cancel_token_may_continue(&f->cancel, done, all);
}

/* Frees the indexes, so that the finder can read another model. */
void weft__finder_reset(struct weft__finder *f);

/* Sorts the findings and passes them to *out.  Frees the finder in any case.  Errors: WEFT_ENOMEM, WEFT_ECANCELLED. */
int weft__findings_finish(struct weft__finder *f, struct weft_findings **out, struct weft_error *err);

/* ---- spans.c: intervals that checks gather, group and count ---- */

struct weft__span {
	uint64_t group;
	int64_t start_ns, end_ns;
	uint32_t promise;
	uint32_t number; /* for the check's use */
};

typedef WEFT_VEC(struct weft__span) weft__spans_vec;

/* Adds a span; lack of memory is noted. */
void weft__spans_add(struct weft__finder *f, weft__spans_vec *spans, struct weft__span span);
/* Sorts by group, then start. */
void weft__spans_sort(weft__spans_vec *spans);
/* Returns the index after the last span of a group; the spans must be sorted. */
size_t weft__spans_group_end(const weft__spans_vec *spans, size_t begin);
/* Returns how many spans, sorted by start, overlap at most; one that ends when another starts does not overlap it.  0: lack of
 * memory, which is noted. */
uint32_t weft__spans_most_at_once(struct weft__finder *f, const struct weft__span *spans, size_t count);

/* ---- cover.c ---- */

/* Leaves a finding out, by its number in f->findings, if another is printed that explains it.  That one then names its promise in
 * a line of evidence. */
void weft__finding_cover(struct weft__finder *f, size_t covered, size_t by);
bool weft__finding_is_covered(const struct weft__finder *f, size_t finding);

/* Drops the covered findings.  The findings must have their evidence, and lose it. */
void weft__covers_apply(struct weft__finder *f);

/* ---- join.c ---- */

/* Merges findings of one type, cause and site into the first of them, unless their check groups them itself.  The findings must
 * be sorted, and each must have its evidence.  Also shortens the places in titles. */
void weft__findings_merge(struct weft__finder *f);

/* ---- missing_events.c ---- */

/* Drops findings that missing events could change.  The first `count` findings are about weft_model.whole, the others about the
 * model from the first missing event on.  `needs` returns the needs of the check of a kind. */
void weft__missing_events_filter(struct weft__finder *f, size_t count, unsigned (*needs)(enum weft_finding_kind kind));

/* ---- unread.c ---- */

/* Reports a hang whose root is a connection that another process waits for and that has not read its data.  Returns false if the
 * hang is no such one. */
bool weft__unread_report(struct weft__finder *f, struct weft_finding *finding, const char *what);

/* ---- format.c: parts of sentences; texts live as long as the findings ---- */

/* task 14 "ARP response".  A promise without a label has the label of a promise that became it.  A join has the labels of its
 * inputs: join 52 of "transfer A to B" and others. */
const char *weft__format_promise(struct weft__finder *f, uint32_t promise);
/* task 14: without its label */
const char *weft__format_promise_id(struct weft__finder *f, uint32_t promise);
/* wait 14 (server.ml:6): with its site if it has no label, and the trace has no number of it either. */
const char *weft__format_promise_at(struct weft__finder *f, uint32_t promise);
/* arp.c:12 in await_response; "" if the site is unknown. */
const char *weft__format_site(struct weft__finder *f, uint32_t promise);
/* " (arp.c:12 in await_response)"; "" if the site is unknown.  weft__format_title() shortens it at the end of a title. */
const char *weft__format_site_suffix(struct weft__finder *f, uint32_t promise);
/* " at arp.c:12 in await_response", for a site of the trace; "" if it is WEFT_NONE. */
const char *weft__format_place(struct weft__finder *f, uint32_t site);
/* The same for the wait of `from` for `to` that began at a time, or for the hold of lock `from` by `to`; "" if the trace does not
 * have its place.  Linear in the later links from `from`. */
const char *weft__format_wait_place(struct weft__finder *f, uint32_t from, uint32_t to, int64_t since_ns);
/* " in node@b" if the trace has several hosts, otherwise "". */
const char *weft__format_host_suffix(struct weft__finder *f, uint32_t promise);
/* timer 14 "sleep" (srv.c:12) in node@b, for traces of several processes, also on one host. */
const char *weft__format_promise_in_process(struct weft__finder *f, uint32_t promise);
/* ", node@b,": the process at the other end of a connection; "" if its trace is missing. */
const char *weft__format_peer_process(struct weft__finder *f, uint32_t connection);
/* The other end, as weft__format_promise_in_process(), or "the other end of connection 3". */
const char *weft__format_other_end(struct weft__finder *f, uint32_t connection);
/* The common part of promises of a type: "ARP response", or bind at arp.c:12. */
const char *weft__format_type(struct weft__finder *f, uint32_t promise);
/* The common pattern of a group of types: "client *"; with `is_one_type`, as weft__format_type(). */
const char *weft__format_type_group(struct weft__finder *f, uint32_t promise, bool is_one_type);
/* A title as users see it: with the number of similar findings, and the place at its end without directories.  The place also
 * loses its function where the title would be too long. */
const char *weft__format_title(struct weft__finder *f, const char *title, size_t similar);
/* 20.1 ms */
const char *weft__format_duration(struct weft__finder *f, int64_t ns);
/* 2.9 ms to 3.1 ms; one duration if both look the same. */
const char *weft__format_duration_range(struct weft__finder *f, int64_t low_ns, int64_t high_ns);
/* A text of the trace. */
const char *weft__format_text(struct weft__finder *f, uint32_t text);
/* Any other text, without control characters. */
const char *weft__format_sanitized(struct weft__finder *f, struct weft_str text);
/* "s" unless count is 1. */
const char *weft__format_plural_s(size_t count);
/* "  waits for"; for a lock "  is held by". */
const char *weft__format_wait_verb(const struct weft__finder *f, uint32_t promise);

/* Lines of evidence that several checks use. */
void weft__evidence_add_chain_link(struct weft__finder *f, uint32_t promise, const char *then);
void weft__evidence_add_more(struct weft__finder *f, enum weft_evidence_role role, size_t count, const char *what);
void weft__evidence_add_creation(struct weft__finder *f, uint32_t promise);
void weft__evidence_add_peers(struct weft__finder *f, uint32_t promise); /* needs types */
/* Requests that the recorder names (asked.c).  asked_on returns the last request that was asked on a connection by a time,
 * asked_connection the connection on which a request was asked, find_last_question the request that p asked and waited for during
 * most of its life; WEFT_NONE: there is none.  is_served: the request came on a connection of the program.  is_given_up: it did,
 * and the other end, in the same trace, is closed, so nothing waits for the answer. */
uint32_t weft__asked_on(const struct weft__finder *f, uint32_t connection, int64_t time_ns);
uint32_t weft__asked_connection(const struct weft__finder *f, uint32_t request);
uint32_t weft__find_last_question(const struct weft__finder *f, uint32_t p);
bool weft__is_served(const struct weft__finder *f, uint32_t p);
bool weft__is_given_up(const struct weft__finder *f, uint32_t p);

void weft__evidence_add_request(struct weft__finder *f, const struct weft_request *request);
/* Advice for a connection whose other end is late. */
const char *weft__format_late_advice(struct weft__finder *f, uint32_t connection);
/* A thread by its name in the kernel: "cc1" (4711). */
const char *weft__format_os_thread(struct weft__finder *f, uint32_t tid);
/* Measures the time that the host took from the CPUs of a promise's machine, a guest.  Returns false if it is a small part of the
 * interval. */
bool weft__finding_measure_steal(
    struct weft__finder *f, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_steal *out);
void weft__evidence_add_steal(struct weft__finder *f, const struct weft_steal *steal);

/* Adds the function in which the thread of a promise was from start_ns on. */
struct weft__hot_function;
void weft__evidence_add_hot_function(struct weft__finder *f, enum weft_evidence_role role, int64_t start_ns, uint32_t promise,
    const struct weft__hot_function *hot);
/* Does the same for the function that is found in a time; nothing without enough samples. */
void weft__evidence_find_hot_function(
    struct weft__finder *f, enum weft_evidence_role role, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* ---- Reports that several checks share ---- */

/* Reports where the time of an ended promise went: evidence, steps and the end of the title.  `path` is its critical path, which
 * loses its steps to the finding; NULL: it is computed.  Needs types. */
struct weft_path;
void weft__slow_report_times(struct weft__finder *f, uint32_t promise, struct weft_path *path);

/* Finds, by part, the promise that ran until the last event and started to run last (or WEFT_NONE), and the number of other such
 * promises; `others` is zeroed. */
void weft__crash_find_last_running(struct weft__finder *f, uint32_t *last, size_t *others);
/* Adds the chain from a promise to its root, or to the first promise in a cycle.  The middle of a long chain is left out. */
void weft__hang_add_chain(struct weft__finder *f, uint32_t promise);
/* Writes title, evidence and doubt of a chain that ends at finding->root; `what` is the start of the title, without a place. */
void weft__hang_report_root(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Finds connections whose peer answered late; sets is_late for each reported request.  Needs types. */
void weft__slow_peer_find(struct weft__finder *f, bool *is_late);
/* Finds callbacks that never returned from a call.  Needs delays and root causes. */
void weft__hang_call_find(struct weft__finder *f);
/* Reports that p, which ran last on the thread of the stream, is blocked in a call; false: the thread is in no known call. */
bool weft__hang_call_report_last(struct weft__finder *f, uint32_t p, uint16_t stream);
/* Returns whether the stall is reported although no promise is known to be late. */
bool weft__stall_is_told(const struct weft__finder *f, const struct weft__stall *s);
/* Finds hangs of threads. */
void weft__hang_thread_find(struct weft__finder *f);
/* Answers a question about a thread that hangs through no fault: since when it sleeps, and what it waits for.  Returns false if
 * the promise is no thread.  Linear in the number of sleeps. */
bool weft__hang_thread_report(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Adds a line for each thread of p's process that is in a call since after p began: it may be the one that should end p. */
void weft__hang_thread_add_sleepers(struct weft__finder *f, uint32_t p);
/* Finds operations that their timeout always ends.  Needs types. */
void weft__timed_out_find(struct weft__finder *f);
/* Finds child processes that the program did not wait for. */
void weft__unwaited_find(struct weft__finder *f);
/* Finds long queues for semaphores and pools.  Needs types. */
void weft__slot_queue_find(struct weft__finder *f);
/* Finds threads that sleep while they hold a lock. */
void weft__lock_held_find(struct weft__finder *f);
/* A thread that has waited for a condition since after the condition's last signal, a link number. */
struct weft__late_waiter {
	uint32_t thread, condition, signal;
	int64_t since_ns;
};

/* Returns whether the root is work that never ran, and all threads that ran others of its type missed its signal: each sleeps at
 * a condition that was signalled when the work existed, before the thread waited.  Needs types. */
bool weft__hang_pool_find(const struct weft__finder *f, uint32_t root, struct weft__late_waiter *late);
void weft__hang_pool_report(
    struct weft__finder *f, struct weft_finding *finding, const char *what, const struct weft__late_waiter *late);

/* Returns the promise that resolved the last other of the root's type, if it waits itself, and not for the root; else WEFT_NONE.
 * Needs types. */
uint32_t weft__hang_pool_find_stuck(const struct weft__finder *f, uint32_t root);
void weft__hang_pool_report_stuck(struct weft__finder *f, struct weft_finding *finding, const char *what, uint32_t by);
/* Adds evidence: the promises that got a semaphore. */
void weft__hang_pool_report_tokens(struct weft__finder *f, uint32_t semaphore);

/* Reports the cycle that starts at a promise, and the blocked promises that should resolve.  It is a deadlock if the cycle has
 * locks. */
void weft__cycle_report(struct weft__finder *f, uint32_t first);
/* Reports each cycle with a lock, or each cycle without one. */
void weft__cycle_find(struct weft__finder *f, bool with_lock);
/* Writes title, evidence and advice of a cycle of that length that contains `lock`. */
void weft__deadlock_report(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t length);

#endif
