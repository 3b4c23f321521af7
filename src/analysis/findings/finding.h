/* finding.h: what checks share: what is known of the model, how a finding is told.
 *
 * A check is a file of this folder.  It asks what is known, of which it computes as little as it can itself, and puts what it
 * finds into words; here is all English of findings.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDINGS_FINDING_H
#define WEFT_ANALYSIS_FINDINGS_FINDING_H

#include "analysis/chains.h"
#include "analysis/delays.h"
#include "analysis/explain.h"
#include "analysis/lacks.h"
#include "analysis/sorts.h"
#include "analysis/steal.h"
#include "analysis/waiting.h"

/* How many findings of each kind are looked at, how many are told when those that are alike are one, and how many lines of a
 * list. */
#define WEFT__FINDINGS_GATHERED 200
#define WEFT__FINDINGS_KEPT 50
#define WEFT__LINES_KEPT 8

/* Of what is there for long, and does many things one after the other. */
#define WEFT__TRAITS_LASTING (WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP)

/* Somebody has it, or one of it, and others wait for that. */
#define WEFT__TRAITS_HELD (WEFT_TRAIT_LOCK | WEFT_TRAIT_POOL)

/* What a check needs: a column of WEFT_FINDINGS. */
enum weft__need {
	WEFT__NEED_WAITING = 1,   /* finder.waiting */
	WEFT__NEED_CHAINS = 2,    /* finder.chains, waiting */
	WEFT__NEED_SORTS = 4,     /* finder.sorts */
	WEFT__NEED_DELAYS = 8,    /* finder.delays */
	WEFT__NEED_ALL = 16,      /* no event is missing in the middle of the trace; otherwise the check is left out */
	WEFT__NEED_ROOTS = 32,    /* finder.told: it leaves out what checks above it told of, and says what it tells of itself */
	WEFT__NEED_QUESTION = 64, /* finder.asked: it answers a question, and is left out where there is none */
	/* What it tells of was seen, begin and end: where events are missing at other times, it holds.  If nobody knows when they
	 * are, the check is left out. */
	WEFT__NEED_SEEN = 128
};

/* Where texts stand: blocks that never move. */
struct weft__text_block {
	struct weft__text_block *before;
	size_t used, size;
	char bytes[];
};

struct weft__finder {
	const struct weft_model *model;
	struct weft_explain_options options;
	uint32_t asked; /* the promise that a question is about, or WEFT_NONE */
	/* What is known. */
	struct weft__lacks *lacks; /* by part; behind them what all lack */
	struct weft_ties ties;
	struct weft__waiting waiting;
	struct weft__chains chains;
	struct weft__sorts sorts;
	uint32_t *shape_of;        /* by sort: weft__finding_shapes() */
	int64_t *shape_longest_ns; /* by shape, when these are known: how long the slowest took */
	struct weft__delays delays;
	bool *at_rest;     /* by stream: no promise ran there at the end: its OS thread slept, or its loop had returned */
	int64_t *slept_ns; /* by part: when an OS thread of it last fell asleep; INT64_MIN: never */
	uint32_t *sleeps, *sleeps_begin; /* for hangs: model.sleeps by OS thread, and by stream where its own begin */
	uint32_t *heir_of;               /* by promise: the label of what became it, or WEFT_NONE */
	bool *told; /* by promise: a finding tells of what waits for it; NULL: one promise alone is asked about */
	/* What was found. */
	WEFT_VEC(struct weft_finding) findings; /* .evidence is unset, .evidence_count counts */
	WEFT_VEC(struct weft_evidence) evidence;
	struct weft__text_block *texts;
	const char *doubt;
	const struct weft_turn *turn; /* the last one that begun has told of it: two checks may ask for that */
	size_t counts[WEFT_FINDING_KINDS], left_out;
	bool no_memory;
	struct weft__watch watch;
};

/* Checks: weft__find_cycle() and so on, one for each line of WEFT_FINDINGS; what fails is noted in the finder. */
#define WEFT__FIND(NAME, name, severity, needs, text) void weft__find_##name(struct weft__finder *f);
WEFT_FINDINGS(WEFT__FIND)
#undef WEFT__FIND

/* ---- findings.c: telling ---- */

/* Begins a finding; evidence and texts that come next are its own.  NULL: there are enough of its kind, or no memory; then there
 * is nothing to tell. */
struct weft_finding *weft__finding_begin(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* The last one that began is not certain, for that reason. */
void weft__finding_doubt(struct weft__finder *f, const char *why);

/* Likewise, if events are missing in the part that a promise is of, or, with `is_open`, its program did not end it; whether so.
 */
bool weft__finding_doubt_part(struct weft__finder *f, uint32_t promise, bool is_open);

/* A text that lives as long as the findings; "" when out of memory, which is noted. */
__attribute__((format(printf, 2, 3))) const char *weft__finding_text(struct weft__finder *f, const char *format, ...);

/* Adds a line of evidence to the last one that began. */
__attribute__((format(printf, 5, 6))) void weft__finding_evidence(
    struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...);

/* Zeroed memory for `count` items; NULL when there is none, which is noted. */
void *weft__finding_alloc(struct weft__finder *f, size_t count, size_t item_bytes);

/* By sort: the first of those whose labels have its shape (shapes.h), found when a check first asks.  NULL: no memory, which is
 * noted, or called off.  Needs sorts. */
const uint32_t *weft__finding_shapes(struct weft__finder *f);

/* When p ran, or did something to another, for the last time; its creation if it never did. */
int64_t weft__finding_last_deed(const struct weft__finder *f, uint32_t p);

/* Whether a loop over the model is to go on, in turn `done` of `all`. */
static inline bool weft__finding_goes_on(struct weft__finder *f, size_t done, size_t all)
{
	return !f->no_memory && weft__watch_goes_on(&f->watch, done, all);
}

/* Ends what is known, for a finder that is to look at another model. */
void weft__finding_forget(struct weft__finder *f);

/* Gathers, sorts and hands over what was found, and ends the finder in any case.  WEFT_ENOMEM, WEFT_ECANCELLED. */
int weft__findings_end(struct weft__finder *f, struct weft_findings **out, struct weft_error *err);

/* ---- join.c ---- */

/* Makes one of those that tell of one sort, cause and site, the first of them, if their kind tells of what is over; of those
 * that are sorted already, each with its evidence. */
void weft__findings_join(struct weft__finder *f);

/* ---- missing.c: where events are missing ---- */

/* Leaves out what does not hold of what was found: the first `count` in weft_model.whole, the others in the model, from the first
 * missing event on.  `needs` says what the check of a kind needs. */
void weft__missing_settle(struct weft__finder *f, size_t count, unsigned (*needs)(enum weft_finding_kind kind));

/* ---- unread.c ---- */

/* Tells of a hang whose root is a connection that another process waits for, and that has not read what came; false: it is none.
 */
bool weft__unread_tell(struct weft__finder *f, struct weft_finding *finding, const char *what);

/* ---- words.c: what sentences are made of; texts live as long as the findings ---- */

/* task 14 "ARP response"; without a label of its own, what became it lends its own, and a join of others tells of them:
 * join 52 of "transfer A to B" and others */
const char *weft__words_name(struct weft__finder *f, uint32_t promise);
/* arp.c:12 in await_response; "" if it is not known */
const char *weft__words_place(struct weft__finder *f, uint32_t promise);
/* The same in brackets, after a space: task 14 (arp.c:12 in await_response) */
const char *weft__words_at(struct weft__finder *f, uint32_t promise);
/* " in node@b": of a trace of several hosts; else empty. */
const char *weft__words_where(struct weft__finder *f, uint32_t promise);
/* timer 14 "sleep" (srv.c:12) in node@b: of a trace of several processes, also of one host. */
const char *weft__words_there(struct weft__finder *f, uint32_t promise);
/* ", node@b,": who has the other end of a connection; "" if its trace is not here. */
const char *weft__words_peer(struct weft__finder *f, uint32_t connection);
/* That end, as weft__words_there(), or "the other end of connection 3". */
const char *weft__words_other_end(struct weft__finder *f, uint32_t connection);
/* What promises of a sort have in common: "ARP response", bind at arp.c:12 */
const char *weft__words_sort(struct weft__finder *f, uint32_t promise);
/* The same of several sorts whose labels have one shape: "client *" */
const char *weft__words_group(struct weft__finder *f, uint32_t promise, bool is_one_sort);
/* 20.1 ms */
const char *weft__words_span(struct weft__finder *f, int64_t ns);
/* 2.9 ms to 3.1 ms, or one of them where both are alike. */
const char *weft__words_range(struct weft__finder *f, int64_t low_ns, int64_t high_ns);
/* A text of the trace. */
const char *weft__words_text(struct weft__finder *f, uint32_t text);
/* Any other text, without control characters. */
const char *weft__words_clean(struct weft__finder *f, struct weft_str text);
/* "s", unless it is one. */
const char *weft__words_s(size_t count);
/* "  waits for", or, of a lock, "  is held by". */
const char *weft__words_waits(const struct weft__finder *f, uint32_t promise);

/* Lines of evidence that several findings have. */
void weft__words_chain_link(struct weft__finder *f, uint32_t promise, const char *then);
void weft__words_more(struct weft__finder *f, enum weft_evidence_role role, size_t count, const char *what);
void weft__words_creation(struct weft__finder *f, uint32_t promise);
void weft__words_peers(struct weft__finder *f, uint32_t promise); /* needs sorts */
void weft__words_turn(struct weft__finder *f, const struct weft_turn *turn);
/* What to look at where the other end of a connection is late. */
const char *weft__words_next_late(struct weft__finder *f, uint32_t connection);
/* An OS thread, as the kernel calls it: "cc1" (4711). */
const char *weft__words_tid(struct weft__finder *f, uint32_t tid);
/* What was taken from the processors of a promise's machine, a guest, in that time; false: nothing, or little of it. */
bool weft__words_steal_of(struct weft__finder *f, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_steal *out);
void weft__words_steal(struct weft__finder *f, const struct weft_steal *steal);

/* ---- What more than one check tells ---- */

/* Where the time of a promise that has ended went: evidence, steps and the end of the title.  `path`: its critical path, which
 * loses its steps to the finding; NULL: it is computed.  Needs sorts. */
struct weft_path;
void weft__slow_tell(struct weft__finder *f, uint32_t promise, struct weft_path *path);

/* By part: who ran until its last event, the one that began last, or WEFT_NONE, and how many others did; `others` is zeroed. */
void weft__crash_last(struct weft__finder *f, uint32_t *last, size_t *others);
/* From the promise down to its root, or to the first that is in a circle; the middle of a long chain is left out. */
void weft__hang_chain(struct weft__finder *f, uint32_t promise);
/* Title, evidence and doubt of a chain that ends at finding->root; `what` is how the sentence begins. */
void weft__hang_root(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* Connections whose peer answered late; notes each turn that is told of.  Needs sorts. */
void weft__late_find(struct weft__finder *f, bool *is_late);
/* Hangs of OS threads. */
void weft__asleep_find(struct weft__finder *f);
/* Of an OS thread that somebody asks for, and that nobody is to blame for: since when it sleeps, and what for.  False: it is
 * none. Linear in all sleeps. */
bool weft__asleep_tell(struct weft__finder *f, struct weft_finding *finding, const char *what);
/* OS threads that sleep with a lock. */
void weft__held_find(struct weft__finder *f);
/* An OS thread that waits for a condition since after its last signal, the link of that number. */
struct weft__late_waiter {
	uint32_t thread, condition, signal;
	int64_t since_ns;
};

/* Whether the root is work that never ran, and all OS threads that ran others of its sort sleep at a condition that was signalled
 * when the work was there, and before they waited.  Needs sorts. */
bool weft__worker_find(const struct weft__finder *f, uint32_t root, struct weft__late_waiter *late);
void weft__worker_tell(
    struct weft__finder *f, struct weft_finding *finding, const char *what, const struct weft__late_waiter *late);

/* Who ended the last other of the root's sort, if that waits itself, and not for the root; else WEFT_NONE.  Needs sorts. */
uint32_t weft__worker_stuck(const struct weft__finder *f, uint32_t root);
void weft__worker_tell_stuck(struct weft__finder *f, struct weft_finding *finding, const char *what, uint32_t by);
/* Evidence: who has got that semaphore. */
void weft__worker_tell_tokens(struct weft__finder *f, uint32_t semaphore);

/* The circle whose first member that is, and those that should resolve and are blocked by it: a deadlock where there are locks in
 * it. */
void weft__cycle_tell(struct weft__finder *f, uint32_t first);
/* Tells of each circle in which there is a lock, or of each of the others. */
void weft__cycle_find(struct weft__finder *f, bool with_lock);
/* Title, evidence and advice of a circle of that length in which `lock` is. */
void weft__deadlock_words(struct weft__finder *f, struct weft_finding *finding, uint32_t lock, uint32_t length);

#endif
