/* finding.h: declares the state and the functions that all checks share.
 *
 * Each check is one source file of src/analysis/findings.  A check reads the finder's indexes of the model and writes findings.
 * All English text of findings is in src/analysis/findings.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_FINDING_H
#define WEFT_ANALYSIS_FINDINGS_FINDING_H

#include "analysis/findings/explain.h"
#include "analysis/findings/root_causes.h"
#include "analysis/index/completeness.h"
#include "analysis/index/delays.h"
#include "analysis/index/promise_types.h"
#include "analysis/index/steal.h"
#include "analysis/index/wait_graph.h"

/* Largest numbers of findings gathered of each kind, findings reported of each kind after merging, and lines in a list. */
#define WEFT__MAX_FINDINGS_GATHERED 200
#define WEFT__MAX_FINDINGS_REPORTED 50
#define WEFT__MAX_LINES 8

/* Longest title that includes the function of its source location. */
#define WEFT__MAX_TITLE_BYTES 120

/* Traits of promises that last long and do many things one after another. */
#define WEFT__TRAITS_LASTING (WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP)

/* Traits of promises that one promise holds at a time and for which others wait. */
#define WEFT__TRAITS_HELD (WEFT_TRAIT_LOCK | WEFT_TRAIT_POOL)

/* Bits of the `needs` column of WEFT_FINDINGS. */
enum weft__need {
	WEFT__NEED_WAIT_GRAPH = 1,  /* finder.wait_graph */
	WEFT__NEED_ROOT_CAUSES = 2, /* finder.root_causes and finder.wait_graph */
	WEFT__NEED_TYPES = 4,       /* finder.types */
	WEFT__NEED_DELAYS = 8,      /* finder.delays */
	WEFT__NEED_COMPLETE = 16,   /* the check is skipped if an event is missing in the middle of the trace */
	WEFT__NEED_UNREPORTED =
	    /* finder.reported: the check skips promises that earlier checks reported, and marks the promises that it reports */
	32,
	/* finder.asked_promise: the check answers a question about one promise, and is skipped if there is no question */
	WEFT__NEED_QUESTION = 64,
	/* The check reports only intervals that were recorded from start to end, so events that are missing at other times do
	 * not matter.  If the position of missing events is unknown, the check is skipped. */
	WEFT__NEED_OBSERVED = 128
};

/* Finding `covered` is left out if finding `by`, or a finding that covers `by`, is printed; `printed` is the finding that is
 * printed instead, set at the end. */
struct weft__cover {
	size_t covered, by, printed;
};

/* Memory for texts, in blocks that never move. */
struct weft__text_block {
	struct weft__text_block *before;
	size_t used, size;
	char bytes[];
};

struct weft__finder {
	const struct weft_model *model;
	struct weft_explain_options options;
	uint32_t asked_promise; /* the promise that the user asked about, or WEFT_NONE */
	/* Indexes of the model. */
	/* completeness of each part of the trace; the last entry is about all parts together */
	struct weft__completeness *completeness;
	struct weft_link_index link_index;
	struct weft__wait_graph wait_graph;
	struct weft__root_causes root_causes;
	struct weft__promise_types types;
	uint32_t *pattern_of;        /* by type: weft__finding_patterns() */
	int64_t *pattern_longest_ns; /* by label pattern: duration of the slowest promise, set by weft__finding_patterns() */
	struct weft__delays delays;
	bool *idle_at_end; /* by stream: whether no promise ran at the end, because the thread slept or its loop had returned */
	bool *blocked_at_end; /* by stream: whether its thread was in one call that blocks for at least 50 stall limits at the end
			       */
	int64_t *slept_ns;    /* by part: time when one of its threads last fell asleep; INT64_MIN if none ever slept */
	/* for checks of hangs: indexes of model.sleeps grouped by stream; the start of each group */
	uint32_t *sleeps, *sleeps_begin;
	uint32_t *inherited_label; /* by promise: label of a promise that became this promise, or WEFT_NONE */
	/* by promise: whether a finding has reported what waits for it; NULL if the user asked about one promise */
	bool *reported;
	/* Findings so far. */
	WEFT_VEC(struct weft_finding) findings; /* findings so far: .evidence is set only at the end, .evidence_count is valid */
	WEFT_VEC(struct weft_evidence) evidence;
	WEFT_VEC(struct weft__cover) covers;
	struct weft__text_block *texts;
	const char *doubt;
	/* the request that the evidence of the newest finding describes, so that it is added only once */
	const struct weft_request *request;
	size_t counts[WEFT_FINDING_KINDS], left_out;
	bool no_memory;
	struct weft__cancel_token cancel;
};

/* Declares the checks, weft__find_cycle() and so on: one for each line of WEFT_FINDINGS.  A check notes errors in the
 * finder. */
#define WEFT__FIND(NAME, name, severity, needs, text) void weft__find_##name(struct weft__finder *f);
WEFT_FINDINGS(WEFT__FIND)
#undef WEFT__FIND

/* ---- findings.c: writing findings ---- */

/* Begins a finding, to which evidence that is added later belongs.  Returns NULL if there are enough findings of the kind, or
 * on lack of memory; then the caller reports nothing. */
struct weft_finding *weft__finding_begin(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* Marks the newest finding as uncertain.  `why` is one clause; only the first reason is kept. */
void weft__finding_doubt(struct weft__finder *f, const char *why);

/* Marks the newest finding as uncertain if events are missing in the part of the promise.  With `is_open`, also if the trace
 * does not record that the program ended, unless the promise had been silent for long when the process died.  Returns whether
 * it did. */
bool weft__finding_doubt_part(struct weft__finder *f, uint32_t promise, bool is_open);

/* Formats a text that lives as long as the findings; returns "" on lack of memory, which is noted in the finder. */
__attribute__((format(printf, 2, 3))) const char *weft__finding_text(struct weft__finder *f, const char *format, ...);

/* Adds a line of evidence to the newest finding. */
__attribute__((format(printf, 5, 6))) void weft__finding_evidence(
    struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...);

/* Returns zeroed memory for `count` items, which the caller frees; NULL on lack of memory, which is noted in the finder. */
void *weft__finding_alloc(struct weft__finder *f, size_t count, size_t item_bytes);

/* Returns an array that gives for each type the first type whose labels have the same pattern (label_patterns.h); the first
 * call computes it.  Returns NULL if cancelled, or on lack of memory, which is noted in the finder.  Needs types. */
const uint32_t *weft__finding_patterns(struct weft__finder *f);

/* Returns when p last ran or acted on another promise; the time of its creation if it never did. */
int64_t weft__finding_last_action_ns(const struct weft__finder *f, uint32_t p);

/* Returns whether a loop over the model may continue after `done` of `all` iterations: false if the user cancelled. */
static inline bool weft__finding_may_continue(struct weft__finder *f, size_t done, size_t all)
{
	return !f->no_memory && weft__cancel_token_may_continue(&f->cancel, done, all);
}

/* Frees the finder's indexes, so that it can read another model. */
void weft__finder_reset(struct weft__finder *f);

/* Sorts the findings and passes them to *out.  Frees the finder even on failure.  Errors: WEFT_ENOMEM, WEFT_ECANCELLED. */
int weft__findings_finish(struct weft__finder *f, struct weft_findings **out, struct weft_error *err);

/* ---- spans.c: intervals that checks gather, group and count ---- */

struct weft__span {
	uint64_t group;
	int64_t start_ns, end_ns;
	uint32_t promise;
	uint32_t number; /* for the check's use */
};

typedef WEFT_VEC(struct weft__span) weft__spans_vec;

/* Adds a span; notes lack of memory in the finder. */
void weft__spans_add(struct weft__finder *f, weft__spans_vec *spans, struct weft__span span);
/* Sorts the spans by group, then by start. */
void weft__spans_sort(weft__spans_vec *spans);
/* Returns the index behind the last span of the group that starts at `begin`; the spans must be sorted. */
size_t weft__spans_group_end(const weft__spans_vec *spans, size_t begin);
/* Returns the largest number of spans that overlap; the spans must be sorted by start.  A span that ends when another starts
 * does not overlap it.  Returns 0 on lack of memory, which is noted in the finder. */
uint32_t weft__spans_most_at_once(struct weft__finder *f, const struct weft__span *spans, size_t count);

/* ---- cover.c ---- */

/* Leaves out the finding with number `covered` in f->findings if the finding `by`, which explains it, is printed.  The printed
 * finding then names the promise of the covered finding in a line of evidence. */
void weft__finding_cover(struct weft__finder *f, size_t covered, size_t by);
bool weft__finding_is_covered(const struct weft__finder *f, size_t finding);

/* Drops the covered findings.  The findings that stay must have their evidence; the covered findings lose theirs. */
void weft__covers_apply(struct weft__finder *f);

/* ---- join.c ---- */

/* Merges findings of one type, cause and site into the first of them, unless the check of their kind groups its findings
 * itself.  The findings must be sorted, and each must have its evidence.  Also shortens the source locations in titles. */
void weft__findings_merge(struct weft__finder *f);

/* ---- missing_events.c ---- */

/* Drops findings that are wrong if a missing event happened.  The first `count` findings are about weft_model.whole, the others
 * about the model that ends at the first missing event.  `needs` returns the indexes that the check of a kind needs. */
void weft__missing_events_filter(struct weft__finder *f, size_t count, unsigned (*needs)(enum weft_finding_kind kind));

/* ---- end_signal.c ---- */

/* Returns the first signal, such as SIGTERM, that asked the process of promise `of` to end and came at `latest_ns` or earlier;
 * WEFT_NONE if there was none.  *came_ns is its time.  Needs types. */
uint32_t weft__end_signal_find(const struct weft__finder *f, uint32_t of, int64_t latest_ns, int64_t *came_ns);

/* ---- unread.c ---- */

/* Reports a hang whose root is a connection that never read data which another process had sent, while that process waits for
 * the connection.  Returns false if the root of the hang is no such connection. */
bool weft__unread_report(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Finds connections with both ends in one program whose one end has left a request unread for long.  Needs the
 * wait graph. */
void weft__unread_find(struct weft__finder *f);

/* ---- format.c: parts of sentences; texts live as long as the findings ---- */

/* task 14 "ARP response".  A promise without a label gets the label of a promise that became it.  A join of promises gets the
 * labels of its inputs: join 52 of "transfer A to B" and others. */
const char *weft__format_promise(struct weft__finder *f, uint32_t promise);
/* Formats "task 14": kind and number of a promise without its label. */
const char *weft__format_promise_id(struct weft__finder *f, uint32_t promise);
/* Formats "wait 14 (server.ml:6)": a promise with its source location if it has neither a label nor a number that the trace
 * recorded. */
const char *weft__format_promise_at(struct weft__finder *f, uint32_t promise);
/* Formats "arp.c:12 in await_response", the source location of a promise; "" if it is unknown. */
const char *weft__format_site(struct weft__finder *f, uint32_t promise);
/* Formats " (arp.c:12 in await_response)", the source location of a promise; "" if it is unknown. weft__format_title() shortens
 * it at the end of a title. */
const char *weft__format_site_suffix(struct weft__finder *f, uint32_t promise);
/* Formats " at arp.c:12 in await_response" for a site of the trace; "" if `site` is WEFT_NONE. */
const char *weft__format_place(struct weft__finder *f, uint32_t site);
/* Formats the place where `from` began to wait for `to` at a time, or where `to` took lock `from`; "" if the trace does not
 * have it.  Takes time linear in the number of later links from `from`. */
const char *weft__format_wait_place(struct weft__finder *f, uint32_t from, uint32_t to, int64_t since_ns);
/* Formats " (arp.c:12 in await_response)" for the same place; the location of `from` if the trace does not have the place. */
const char *weft__format_wait_suffix(struct weft__finder *f, uint32_t from, uint32_t to, int64_t since_ns);
/* Formats " in node@b", the host of a promise; "" unless the trace has several hosts. */
const char *weft__format_host_suffix(struct weft__finder *f, uint32_t promise);
/* Formats "timer 14 "sleep" (srv.c:12) in node@b": a promise with its process if the trace has several processes, even on one
 * host. */
const char *weft__format_promise_in_process(struct weft__finder *f, uint32_t promise);
/* Formats ", node@b,", the process at the other end of a connection; "" if the trace of that process is missing. */
const char *weft__format_peer_process(struct weft__finder *f, uint32_t connection);
/* Formats the other end of a connection like weft__format_promise_in_process(); "the other end of connection 3" if its trace is
 * missing. */
const char *weft__format_other_end(struct weft__finder *f, uint32_t connection);
/* Formats what the promises of a type have in common: the label "ARP response", or "bind at arp.c:12" if they have none. */
const char *weft__format_type(struct weft__finder *f, uint32_t promise);
/* Formats the common label pattern of a group of types: "client *"; with `is_one_type` like weft__format_type(). */
const char *weft__format_type_group(struct weft__finder *f, uint32_t promise, bool is_one_type);
/* Formats a title for users: adds the number of similar findings, and removes directories from the source location at its end.
 * Also removes the function from the source location if the title would be too long. */
const char *weft__format_title(struct weft__finder *f, const char *title, size_t similar);
/* 20.1 ms */
const char *weft__format_duration(struct weft__finder *f, int64_t ns);
/* Formats "2.9 ms to 3.1 ms", or one duration if both look the same. */
const char *weft__format_duration_range(struct weft__finder *f, int64_t low_ns, int64_t high_ns);
/* Returns the text with a number in the trace. */
const char *weft__format_text(struct weft__finder *f, uint32_t text);
/* Returns a copy of a text without control characters. */
const char *weft__format_sanitized(struct weft__finder *f, struct weft_str text);
/* Returns the plural ending "s" unless count is 1. */
const char *weft__format_plural_s(size_t count);
/* Returns the verb between two promises of a wait chain: " waits for", or " is held by" after a lock. */
const char *weft__format_wait_verb(const struct weft__finder *f, uint32_t promise);

/* Add lines of evidence that several checks use. */
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
/* Returns advice about a connection whose other end answers late. */
const char *weft__format_late_advice(struct weft__finder *f, uint32_t connection);
/* Formats "cc1" (4711): a thread of the OS with its name in the kernel. */
const char *weft__format_os_thread(struct weft__finder *f, uint32_t tid);
/* Measures the steal time of the machine (a guest) on which a promise ran: the time that the host took from its virtual CPUs.
 * Returns false if the steal time is a small part of the interval. */
bool weft__finding_measure_steal(
    struct weft__finder *f, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_steal *out);
void weft__evidence_add_steal(struct weft__finder *f, const struct weft_steal *steal);

/* Adds evidence of the function in which the thread of a promise was from start_ns on. */
struct weft__hot_function;
void weft__evidence_add_hot_function(struct weft__finder *f, enum weft_evidence_role role, int64_t start_ns, uint32_t promise,
    const struct weft__hot_function *hot);
/* Finds the function in which the thread of a promise was during an interval, and adds it as evidence; adds nothing if there
 * are too few samples. */
void weft__evidence_find_hot_function(
    struct weft__finder *f, enum weft_evidence_role role, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* Adds evidence of the memory that a promise allocated, if its allocations were sampled. */
void weft__evidence_add_memory(struct weft__finder *f, uint32_t promise);

/* ---- Reports that several checks share ---- */

/* Reports where the time of an ended promise went: evidence, steps and the end of the title.  `path` is the critical path of
 * the promise, whose steps move to the finding; NULL if it must be computed first.  Needs types. */
struct weft_path;
void weft__slow_report_times(struct weft__finder *f, uint32_t promise, struct weft_path *path);

/* Finds, by part, the promise that still ran at the last event, or WEFT_NONE; if there are several, the one that started to run
 * last.  Adds the number of the other ones to `others`, which the caller has zeroed. */
void weft__crash_find_last_running(struct weft__finder *f, uint32_t *last, size_t *others);
/* Adds the wait chain from a promise to its root, or to the first promise in a cycle.  Leaves out the middle of a long
 * chain. */
void weft__hang_add_chain(struct weft__finder *f, uint32_t promise);
/* Writes title, evidence and doubt of a hang whose wait chain ends at finding->root; `what` is the start of the title, without
 * a source location. */
void weft__hang_report_root(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Finds connections whose peer answered late; sets is_late for each request that it reports.  Needs types. */
void weft__slow_peer_find(struct weft__finder *f, bool *is_late);
/* Finds connections whose requests wait for delayed acknowledgements of TCP. */
void weft__delayed_ack_find(struct weft__finder *f);
/* Finds callbacks that called a function which never returned.  Needs delays and root causes. */
void weft__hang_call_find(struct weft__finder *f);
/* Finds finder.blocked_at_end; returns false on lack of memory. */
bool weft__hang_call_find_blocked(struct weft__finder *f);
/* Reports that p, which ran last on the thread of the stream, is blocked in a call; returns false if the thread is in no known
 * call. */
bool weft__hang_call_report_last(struct weft__finder *f, uint32_t p, uint16_t stream);
/* Returns whether a stall is reported although no promise is known to be late because of it. */
bool weft__stall_is_told(const struct weft__finder *f, const struct weft__stall *s);
/* Finds timers that a sleeping loop does not know. */
void weft__overdue_find(struct weft__finder *f);
/* Finds tasks that ended on a thread of a pool and whose callback no loop runs.  Needs the wait graph. */
void weft__hang_task_find(struct weft__finder *f);
/* Returns the event loop that waits for p at the end; WEFT_NONE if there is none. */
uint32_t weft__find_awaiting_loop(const struct weft__finder *f, uint32_t p);
/* Returns the sleep in which the thread of a stream is at the end of the trace; NULL if it is awake, or if `stream` is
 * UINT16_MAX.  Takes time linear in the number of sleeps. */
const struct weft_interval *weft__hang_thread_sleep_at_end(const struct weft_model *m, uint16_t stream);
/* Finds hangs of threads. */
void weft__hang_thread_find(struct weft__finder *f);
/* Answers a question about a thread that sleeps without being at fault: since when it sleeps, and what it waits for.  Returns
 * false if the promise is no thread.  Takes time linear in the number of sleeps. */
bool weft__hang_thread_report(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Reports a hang whose root is work that is in a call on another thread, which has not returned.  Returns false if it is not. */
bool weft__hang_thread_report_work(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Adds a line for each thread of p's process that has been in one call since after p was created: that thread may be the one
 * that should end p. */
void weft__hang_thread_add_sleepers(struct weft__finder *f, uint32_t p);
/* Finds operations that always end by their timeout.  Needs types. */
void weft__timed_out_find(struct weft__finder *f);
/* Finds child processes that have ended and for which the program did not call wait. */
void weft__unwaited_find(struct weft__finder *f);
/* Finds long queues for semaphores and pools.  Needs types. */
void weft__slot_queue_find(struct weft__finder *f);
/* Finds threads that sleep while they hold a lock. */
void weft__lock_held_find(struct weft__finder *f);
/* A thread that began to wait for a condition at `since_ns`, after the condition's last signal; `signal` is the number of that
 * signal's link. */
struct weft__late_waiter {
	uint32_t thread, condition, signal;
	int64_t since_ns;
};

/* Returns whether the root is work that never ran because all threads that ran work of its type missed its signal.  Each of them
 * sleeps at a condition that was signalled after the work was created, but before the thread began to wait.  Needs types. */
bool weft__hang_pool_find(const struct weft__finder *f, uint32_t root, struct weft__late_waiter *late);
void weft__hang_pool_report(
    struct weft__finder *f, struct weft_finding *finding, const char *what, const struct weft__late_waiter *late);

/* Returns the promise that resolved the last other promise of the root's type, if that resolver is itself waiting for something
 * other than the root; else WEFT_NONE.  Needs types. */
uint32_t weft__hang_pool_find_stuck(const struct weft__finder *f, uint32_t root);
void weft__hang_pool_report_stuck(struct weft__finder *f, struct weft_finding *finding, const char *what, uint32_t by);
/* Adds evidence of the promises that got a semaphore. */
void weft__hang_pool_report_tokens(struct weft__finder *f, uint32_t semaphore);

/* Reports the cycle of waits that starts at `first`, and the promises that should resolve but are blocked by it.  The cycle is
 * a deadlock if it contains locks. */
void weft__cycle_report(struct weft__finder *f, uint32_t first);
/* Reports each wait cycle that contains a lock if `with_lock`, otherwise each cycle without a lock. */
void weft__cycle_find(struct weft__finder *f, bool with_lock);
/* Writes title, evidence and advice of a deadlock: a cycle of `length` promises that contains `lock`. */
void weft__deadlock_report(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t length);

#endif
