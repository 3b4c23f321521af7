/* finding.h: what the files that look for findings share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_FINDING_H
#define WEFT_ANALYSIS_FINDING_H

#include "analysis/explain.h"
#include "analysis/names.h"
#include "analysis/ties.h"
#include "base/duration.h"
#include "base/vec.h"

/* Texts stand in blocks that never move. */
struct weft__text_block {
	struct weft__text_block *before;
	size_t used, size;
	char bytes[];
};

#define WEFT__LINE 1024 /* a text is cut there */
#define WEFT__NAME WEFT_NAME_BYTES

/* How many of each kind are told in full, and how many lines of a list. */
#define WEFT__FINDINGS_KEPT 50
#define WEFT__LINES_KEPT 8

/* Promises of one sort: of the same first label and kind, else of the same place of creation and kind, else of the same kind. */
struct weft__sort {
	uint32_t first;         /* of them */
	uint32_t last_resolved; /* of those that were resolved, or WEFT_NONE */
	uint32_t count, resolved, pending;
	bool named; /* by a label or a place: more than a kind */
};

struct weft__finder {
	const struct weft_model *model;
	struct weft_ties ties;
	struct weft_explain_options options;
	WEFT_VEC(struct weft_finding) findings; /* .evidence is unset, .evidence_count counts */
	WEFT_VEC(struct weft_evidence) evidence;
	struct weft__text_block *texts;
	const char *doubt;
	bool lost;          /* events are missing, anywhere */
	bool cut;           /* its program did not end the trace */
	int64_t horizon_ns; /* from there on all is there that was not lost otherwise; 0 unless the ring wrapped */
	size_t left_out;
	bool has_failures, has_conditions; /* at all */
	bool no_memory, called_off;
	uint32_t *sort_of; /* by promise: index into sorts */
	WEFT_VEC(struct weft__sort) sorts;
	uint32_t *root;                  /* by promise that is pending: the end of the chain of those that it waits for */
	uint8_t *verdict;                /* its enum weft_verdict */
	bool *told;                      /* by root: a finding tells of it */
	uint32_t *awaits_begin, *awaits; /* by promise: those whose end it still waits for, at the trace's end */
};

/* Begins a finding; evidence that is added is the last begun one's.  NULL when out of memory, which is noted. */
struct weft_finding *weft__find(
    struct weft__finder *f, enum weft_finding_kind kind, uint32_t promise, int64_t start_ns, int64_t end_ns);

/* A text that lives as long as the findings; "" when out of memory, which is noted. */
__attribute__((format(printf, 2, 3))) const char *weft__text(struct weft__finder *f, const char *format, ...);

/* Adds a line of evidence to the last finding. */
__attribute__((format(printf, 5, 6))) void weft__show(
    struct weft__finder *f, enum weft_evidence_role role, int64_t time_ns, uint32_t promise, const char *format, ...);

static inline const char *weft__name(const struct weft__finder *f, uint32_t promise, char buf[WEFT__NAME])
{
	return weft_name_promise(f->model, promise, buf);
}

static inline const char *weft__place(const struct weft__finder *f, uint32_t promise, char buf[WEFT__NAME])
{
	return weft_name_place(f->model, promise, buf);
}

static inline const char *weft__sort_name(const struct weft__finder *f, uint32_t promise, char buf[WEFT__NAME])
{
	return weft_name_sort(f->model, promise, buf);
}

static inline const char *weft__clean(const struct weft__finder *f, uint32_t text, char *buf, size_t size)
{
	return weft_name_text(f->model, text, buf, size);
}

/* Whether all that happened to the promise since its creation is in the trace. */
bool weft__is_whole(const struct weft__finder *f, uint32_t promise);

/* Each looks for findings of its kinds; false when out of memory. */
bool weft__find_hangs(struct weft__finder *f);      /* hang.c: cycles and hangs */
bool weft__find_failures(struct weft__finder *f);   /* trouble.c */
bool weft__find_stuck(struct weft__finder *f);      /* trouble.c */
bool weft__find_leaks(struct weft__finder *f);      /* trouble.c */
bool weft__find_delays(struct weft__finder *f);     /* delay.c: stalls and starvation */
bool weft__why(struct weft__finder *f, uint32_t p); /* hang.c: one promise */

#endif
