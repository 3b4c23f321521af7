/* waits.c: who waits for whom at a moment.  SPDX-License-Identifier: ISC */
#include "analysis/waits.h"

#include <stdlib.h>

#include "analysis/waiting.h"
#include "base/vec.h"

struct forest {
	struct weft__waiting waiting;
	struct weft_wait *waits;
	WEFT_VEC(struct weft_wait_node) nodes;
	size_t cycles;
};

static bool list_waits(struct forest *f)
{
	const struct weft__waiting *w = &f->waiting;
	size_t n = w->model->promise_count;
	f->waits = calloc((size_t)w->begin[n] + 1, sizeof *f->waits);
	if (!f->waits)
		return false;
	for (uint32_t p = 0; p < n; p++)
		for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++) {
			uint32_t to = w->waits[i].to;
			f->waits[i] = (struct weft_wait){
			    p, to, weft__waiting_since(w, p, &w->waits[i]), w->stuck[p] && w->part[p] == w->part[to]};
		}
	for (size_t i = 0; i < w->pending.count; i++) {
		bool begins = i == 0 || w->part[w->order[i]] != w->part[w->order[i - 1]];
		f->cycles += begins && weft__waiting_in_circle(w, w->order[i]);
	}
	return true;
}

struct place {
	uint32_t next, promise;
};

/* The tree below a root; what was shown is not shown again. */
static bool add_tree(struct forest *f, uint32_t root, bool *shown, struct place *stack)
{
	size_t depth = 0;
	uint32_t promise = root, wait = WEFT_NONE;
	for (;;) {
		struct weft_wait_node *node = weft_vec_push(&f->nodes);
		if (!node)
			return false;
		bool again = shown[promise] && f->waiting.begin[promise] < f->waiting.begin[promise + 1];
		bool last = wait == WEFT_NONE || wait + 1 == f->waiting.begin[f->waits[wait].from + 1];
		*node = (struct weft_wait_node){promise, wait, (uint32_t)depth, again, last};
		if (!shown[promise]) {
			shown[promise] = true;
			stack[depth++] = (struct place){f->waiting.begin[promise], promise};
		}
		while (depth > 0 && stack[depth - 1].next == f->waiting.begin[stack[depth - 1].promise + 1])
			depth--;
		if (depth == 0)
			return true;
		wait = stack[depth - 1].next++;
		promise = f->waits[wait].to;
	}
}

static bool build_forest(struct forest *f)
{
	size_t n = f->waiting.model->promise_count;
	bool *awaited = calloc(n, sizeof *awaited), *shown = calloc(n, sizeof *shown);
	struct place *stack = malloc((n + 1) * sizeof *stack);
	bool ok = awaited && shown && stack;
	for (size_t i = 0; ok && i < f->waiting.begin[n]; i++)
		awaited[f->waits[i].to] = true;
	/* First those for whom nobody waits, then what is in circles that nobody leads to. */
	for (uint32_t p = 1; ok && p < n; p++)
		if (!awaited[p] && f->waiting.begin[p] < f->waiting.begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	for (uint32_t p = 1; ok && p < n; p++)
		if (!shown[p] && f->waiting.begin[p] < f->waiting.begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	free(awaited);
	free(shown);
	free(stack);
	return ok;
}

int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err)
{
	struct forest f = {.nodes = {0}};
	struct weft_ties ties;
	struct weft_waits *waits = malloc(sizeof *waits);
	bool ok = waits && weft_ties_init(&ties, model, WEFT_TIES_OUT, NULL) == WEFT_OK;
	if (ok) {
		ok = weft__waiting_init(&f.waiting, &ties, time_ns, NULL) == WEFT_OK && list_waits(&f) && build_forest(&f);
		weft_ties_finish(&ties);
	}
	if (!ok) {
		weft__waiting_finish(&f.waiting);
		free(f.waits);
		weft_vec_free(&f.nodes);
		free(waits);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*waits = (struct weft_waits){f.waits, f.waiting.begin[model->promise_count], f.nodes.items, f.nodes.count, f.cycles};
	weft__waiting_finish(&f.waiting);
	*out = waits;
	return WEFT_OK;
}

void weft_waits_destroy(struct weft_waits *waits)
{
	if (!waits)
		return;
	free(waits->waits);
	free(waits->nodes);
	free(waits);
}
