/* kept.c: see kept.h.  SPDX-License-Identifier: ISC */
#include "analysis/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/vec.h"

enum { MOST = 256, SAME_NS = 10000000 };

/* Whether it is true of the moment alone, so that each model of the newest events says whether it still is. */
static bool is_of_now(enum weft_finding_kind kind)
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

/* Whether only many events tell it, and a later model of as many may say that it is over. */
static bool is_of_long(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_BACKLOG || kind == WEFT_FINDING_STUCK || kind == WEFT_FINDING_LEAK ||
	       kind == WEFT_FINDING_SLOW;
}

/* A finding with the times of the trace, and ids for promises. */
struct one {
	struct weft_finding finding; /* texts and evidence are in `memory` */
	int64_t promise, root, *evidence;
	char *memory;
};

struct weft_kept {
	WEFT_VEC(struct one) all; /* the oldest first */
};

struct weft_kept *weft_kept_create(void)
{
	return calloc(1, sizeof(struct weft_kept));
}

void weft_kept_destroy(struct weft_kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < kept->all.count; i++)
		free(kept->all.items[i].memory);
	weft_vec_free(&kept->all);
	free(kept);
}

/* ---- Copies ---- */

static size_t bytes_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t texts_of(const struct weft_finding *f)
{
	size_t bytes = bytes_of(f->title) + bytes_of(f->next) + bytes_of(f->doubt);
	for (size_t i = 0; i < f->evidence_count; i++)
		bytes += bytes_of(f->evidence[i].text);
	return bytes;
}

static const char *copy_text(char **at, const char *text)
{
	const size_t bytes = bytes_of(text);
	char *own = *at;
	if (!text)
		return NULL;
	*at += bytes;
	return memcpy(own, text, bytes);
}

/* Into memory of the caller's: so many pieces of evidence, and the bytes of its texts.  Steps are not copied. */
static struct weft_finding copy(const struct weft_finding *f, struct weft_evidence *evidence, char **at)
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

static int64_t id_of(const struct weft_model *m, uint32_t promise)
{
	return promise < m->promise_count ? m->promises[promise].id : WEFT_SYSTEM_ID;
}

static uint32_t promise_of(const struct weft_model *m, int64_t id)
{
	const uint32_t promise = id == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_model_find(m, id);
	return promise == WEFT_NONE ? WEFT_SYSTEM : promise;
}

/* Later, or earlier, by so much. */
static void move(struct weft_finding *f, int64_t by_ns)
{
	f->start_ns += by_ns;
	f->end_ns += by_ns;
	for (size_t i = 0; i < f->evidence_count; i++)
		f->evidence[i].time_ns += f->evidence[i].time_ns == WEFT_NO_TIME ? 0 : by_ns;
}

static bool keep(struct weft_kept *kept, const struct weft_finding *f, const struct weft_model *m)
{
	const size_t ids = f->evidence_count * sizeof(int64_t), evidence = f->evidence_count * sizeof *f->evidence;
	char *memory = calloc(1, ids + evidence + texts_of(f) + 1), *at = memory + ids + evidence;
	if (!memory || !weft_vec_reserve(&kept->all, 1)) {
		free(memory);
		return false;
	}
	if (kept->all.count == MOST) {
		free(kept->all.items[0].memory);
		memmove(kept->all.items, kept->all.items + 1, --kept->all.count * sizeof *kept->all.items);
	}
	struct one *one = &kept->all.items[kept->all.count++];
	*one = (struct one){
	    .promise = id_of(m, f->promise), .root = id_of(m, f->root), .evidence = (int64_t *)memory, .memory = memory};
	one->finding = copy(f, (struct weft_evidence *)(memory + ids), &at);
	for (size_t i = 0; i < f->evidence_count; i++)
		one->evidence[i] = f->evidence[i].promise == WEFT_NONE ? WEFT_SYSTEM_ID : id_of(m, f->evidence[i].promise);
	move(&one->finding, m->start_ns);
	return true;
}

/* ---- What stays ---- */

/* The same, seen once more: by a clock that is known better by now. */
static bool is_same(const struct one *one, const struct weft_finding *f, const struct weft_model *m)
{
	const int64_t by_ns = one->finding.start_ns - (f->start_ns + m->start_ns);
	return one->finding.kind == f->kind && one->promise == id_of(m, f->promise) && by_ns < SAME_NS && by_ns > -SAME_NS;
}

/* Leaves out what is found again, and what is over. */
static void forget(struct weft_kept *kept, const struct weft_findings *now, const struct weft_model *m, bool is_whole)
{
	size_t count = 0;
	for (size_t k = 0; k < kept->all.count; k++) {
		const struct one *one = &kept->all.items[k];
		bool stays = !(is_whole && is_of_long(one->finding.kind));
		for (size_t i = 0; i < now->count && stays; i++)
			stays = !is_same(one, &now->findings[i], m);
		if (stays)
			kept->all.items[count++] = *one;
		else
			free(one->memory);
	}
	kept->all.count = count;
}

/* The most serious first. */
static int compare(const void *a, const void *b)
{
	const struct weft_finding *x = a, *y = b;
	return WEFT_ORDER(y->severity, x->severity) ?: WEFT_ORDER(y->sure, x->sure) ?: WEFT_ORDER(x->kind, y->kind) ?:
	       WEFT_ORDER(y->weight, x->weight) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise) ?:
	       strcmp(x->title, y->title);
}

/* One block of memory, as weft_findings without `priv` are. */
static struct weft_findings *join(const struct weft_kept *kept, const struct weft_findings *now, const struct weft_model *m)
{
	const size_t count = now->count + kept->all.count;
	size_t evidence_count = 0, bytes = bytes_of(now->doubt);
	for (size_t i = 0; i < count; i++) {
		const struct weft_finding *f = i < now->count ? &now->findings[i] : &kept->all.items[i - now->count].finding;
		evidence_count += f->evidence_count;
		bytes += texts_of(f);
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
		const struct one *one = i < now->count ? NULL : &kept->all.items[i - now->count];
		findings[i] = copy(one ? &one->finding : &now->findings[i], evidence, &at);
		evidence += findings[i].evidence_count;
		if (!one)
			continue;
		move(&findings[i], -m->start_ns);
		findings[i].promise = promise_of(m, one->promise);
		findings[i].root = promise_of(m, one->root);
		for (size_t e = 0; e < findings[i].evidence_count; e++)
			findings[i].evidence[e].promise =
			    one->evidence[e] == WEFT_SYSTEM_ID ? WEFT_NONE : promise_of(m, one->evidence[e]);
	}
	weft_sort(findings, count, sizeof *findings, compare);
	return all;
}

int weft_kept_take(struct weft_kept *kept, struct weft_findings **out, const struct weft_findings *now,
    const struct weft_model *model, bool is_whole)
{
	forget(kept, now, model, is_whole);
	struct weft_findings *all = join(kept, now, model);
	if (!all)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < now->count; i++)
		if (!is_of_now(now->findings[i].kind) && (is_whole || !is_of_long(now->findings[i].kind)) &&
		    !keep(kept, &now->findings[i], model))
			break; /* what there is no memory for is not kept */
	*out = all;
	return WEFT_OK;
}
