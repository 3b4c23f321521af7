/* finding_history.c: keeps the findings of a followed trace after their events have left the model.
 * SPDX-License-Identifier: ISC */
#include "analysis/queries/finding_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/vec.h"

enum { MAX_RETAINED = 256, SAME_TIME_NS = 10000000 };

/* Returns whether findings of the kind are about the present: each model of the newest events shows whether they are still
 * right. */
static bool is_about_now(enum weft_finding_kind kind)
{
	switch (kind) {
	case WEFT_FINDING_DEADLOCK:
	case WEFT_FINDING_CYCLE:
	case WEFT_FINDING_CRASH:
	case WEFT_FINDING_HANG:
	case WEFT_FINDING_UNANSWERED:
	case WEFT_FINDING_UNDERWAY:
	case WEFT_FINDING_ALIVE:
	case WEFT_FINDING_SAVED:
	case WEFT_FINDING_ANSWER: return true;
	default: return false;
	}
}

/* Returns whether findings of the kind need many events: a later model with as many events may show that they are no longer
 * right. */
static bool is_long_term(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_BACKLOG || kind == WEFT_FINDING_STUCK || kind == WEFT_FINDING_LEAK ||
	       kind == WEFT_FINDING_SLOW || kind == WEFT_FINDING_RECONNECTS;
}

/* A finding whose times count from the start of the trace, and which has ids instead of promise numbers. */
struct entry {
	struct weft_finding finding; /* the finding; its texts and evidence are in `memory` */
	int64_t promise, root, *evidence;
	char *memory;
};

struct weft_finding_history {
	WEFT_VEC(struct entry) all; /* the oldest first */
};

struct weft_finding_history *weft_finding_history_create(void)
{
	return calloc(1, sizeof(struct weft_finding_history));
}

void weft_finding_history_destroy(struct weft_finding_history *history)
{
	if (!history)
		return;
	for (size_t i = 0; i < history->all.count; i++)
		free(history->all.items[i].memory);
	weft_vec_free(&history->all);
	free(history);
}

/* ---- Copies ---- */

static size_t get_text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t get_finding_text_bytes(const struct weft_finding *f)
{
	size_t bytes = get_text_bytes(f->title) + get_text_bytes(f->next) + get_text_bytes(f->doubt);
	for (size_t i = 0; i < f->evidence_count; i++)
		bytes += get_text_bytes(f->evidence[i].text);
	return bytes;
}

static const char *copy_text(char **at, const char *text)
{
	const size_t bytes = get_text_bytes(text);
	char *own = *at;
	if (!text)
		return NULL;
	*at += bytes;
	return memcpy(own, text, bytes);
}

/* Copies a finding into the caller's memory, which must have capacity for its evidence and the bytes of its texts.  Does not
 * copy steps. */
static struct weft_finding copy_finding(const struct weft_finding *f, struct weft_evidence *evidence, char **at)
{
	struct weft_finding own = *f;
	own.title = copy_text(at, f->title);
	own.next = copy_text(at, f->next);
	own.doubt = copy_text(at, f->doubt);
	own.evidence = evidence;
	own.steps = NULL;
	own.step_count = 0;
	for (size_t i = 0; i < f->evidence_count; i++) {
		evidence[i] = f->evidence[i];
		evidence[i].text = copy_text(at, f->evidence[i].text);
	}
	return own;
}

static int64_t get_promise_id(const struct weft_model *m, uint32_t promise)
{
	return promise < m->promise_count ? m->promises[promise].id : WEFT_SYSTEM_ID;
}

static uint32_t find_promise(const struct weft_model *m, int64_t id)
{
	const uint32_t promise = id == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_model_find(m, id);
	return promise == WEFT_NONE ? WEFT_SYSTEM : promise;
}

/* Adds by_ns to all times of the finding. */
static void shift_times(struct weft_finding *f, int64_t by_ns)
{
	f->start_ns += by_ns;
	f->end_ns += by_ns;
	for (size_t i = 0; i < f->evidence_count; i++)
		f->evidence[i].time_ns += f->evidence[i].time_ns == WEFT_NO_TIME ? 0 : by_ns;
}

static bool retain_finding(struct weft_finding_history *history, const struct weft_finding *f, const struct weft_model *m)
{
	const size_t ids = f->evidence_count * sizeof(int64_t), evidence = f->evidence_count * sizeof *f->evidence;
	char *memory = calloc(1, ids + evidence + get_finding_text_bytes(f) + 1), *at = memory + ids + evidence;
	if (!memory || !weft_vec_reserve(&history->all, 1)) {
		free(memory);
		return false;
	}
	if (history->all.count == MAX_RETAINED) {
		free(history->all.items[0].memory);
		memmove(history->all.items, history->all.items + 1, --history->all.count * sizeof *history->all.items);
	}
	struct entry *entry = &history->all.items[history->all.count++];
	*entry = (struct entry){.promise = get_promise_id(m, f->promise),
	    .root = get_promise_id(m, f->root),
	    .evidence = (int64_t *)memory,
	    .memory = memory};
	entry->finding = copy_finding(f, (struct weft_evidence *)(memory + ids), &at);
	for (size_t i = 0; i < f->evidence_count; i++)
		entry->evidence[i] =
		    f->evidence[i].promise == WEFT_NONE ? WEFT_SYSTEM_ID : get_promise_id(m, f->evidence[i].promise);
	shift_times(&entry->finding, m->start_ns);
	return true;
}

/* ---- Kept findings ---- */

/* Returns whether both are the same finding; their times may differ, because a clock offset may have become more exact. */
static bool is_same_finding(const struct entry *entry, const struct weft_finding *f, const struct weft_model *m)
{
	const int64_t by_ns = entry->finding.start_ns - (f->start_ns + m->start_ns);
	return entry->finding.kind == f->kind && entry->promise == get_promise_id(m, f->promise) && by_ns < SAME_TIME_NS &&
	       by_ns > -SAME_TIME_NS;
}

/* Drops the kept findings that the new model has again or that are no longer right. */
static void drop_outdated(
    struct weft_finding_history *history, const struct weft_findings *now, const struct weft_model *m, bool is_whole)
{
	size_t count = 0;
	for (size_t k = 0; k < history->all.count; k++) {
		const struct entry *entry = &history->all.items[k];
		bool stays = !(is_whole && is_long_term(entry->finding.kind));
		for (size_t i = 0; i < now->count && stays; i++)
			stays = !is_same_finding(entry, &now->findings[i], m);
		if (stays)
			history->all.items[count++] = *entry;
		else
			free(entry->memory);
	}
	history->all.count = count;
}

/* Orders findings, the most serious first. */
static int compare_findings(const void *a, const void *b)
{
	const struct weft_finding *x = a, *y = b;
	return WEFT_ORDER(y->severity, x->severity) ?: WEFT_ORDER(y->sure, x->sure) ?: WEFT_ORDER(x->kind, y->kind) ?:
	       WEFT_ORDER(y->weight, x->weight) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise) ?:
	       strcmp(x->title, y->title);
}

/* Returns new and kept findings in one block of memory, like a weft_findings without `priv`; NULL when out of memory. */
static struct weft_findings *merge_findings(
    const struct weft_finding_history *history, const struct weft_findings *now, const struct weft_model *m)
{
	const size_t count = now->count + history->all.count;
	size_t evidence_count = 0, bytes = get_text_bytes(now->doubt);
	for (size_t i = 0; i < count; i++) {
		const struct weft_finding *f = i < now->count ? &now->findings[i] : &history->all.items[i - now->count].finding;
		evidence_count += f->evidence_count;
		bytes += get_finding_text_bytes(f);
	}
	struct weft_findings *all =
	    calloc(1, sizeof *all + count * sizeof *all->findings + evidence_count * sizeof(struct weft_evidence) + bytes);
	if (!all)
		return NULL;
	struct weft_finding *findings = (struct weft_finding *)(all + 1);
	struct weft_evidence *evidence = (struct weft_evidence *)(findings + count);
	char *at = (char *)(evidence + evidence_count);
	*all = (struct weft_findings){
	    .findings = findings, .count = count, .left_out = now->left_out, .doubt = copy_text(&at, now->doubt)};
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = i < now->count ? NULL : &history->all.items[i - now->count];
		findings[i] = copy_finding(entry ? &entry->finding : &now->findings[i], evidence, &at);
		evidence += findings[i].evidence_count;
		if (!entry)
			continue;
		shift_times(&findings[i], -m->start_ns);
		findings[i].promise = find_promise(m, entry->promise);
		findings[i].root = find_promise(m, entry->root);
		for (size_t e = 0; e < findings[i].evidence_count; e++)
			findings[i].evidence[e].promise =
			    entry->evidence[e] == WEFT_SYSTEM_ID ? WEFT_NONE : find_promise(m, entry->evidence[e]);
	}
	weft_sort(findings, count, sizeof *findings, compare_findings);
	return all;
}

int weft_finding_history_update(struct weft_finding_history *history, struct weft_findings **out, const struct weft_findings *now,
    const struct weft_model *model, bool is_whole)
{
	drop_outdated(history, now, model, is_whole);
	struct weft_findings *all = merge_findings(history, now, model);
	if (!all)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < now->count; i++)
		if (!is_about_now(now->findings[i].kind) && (is_whole || !is_long_term(now->findings[i].kind)) &&
		    !retain_finding(history, &now->findings[i], model))
			break; /* when out of memory, the remaining findings are not kept */
	*out = all;
	return WEFT_OK;
}
