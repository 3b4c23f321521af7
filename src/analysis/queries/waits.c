/* waits.c: builds the forest of the waits between promises at a moment.  SPDX-License-Identifier: ISC */
#include "analysis/queries/waits.h"

#include <stdlib.h>

#include "analysis/index/wait_graph.h"
#include "base/vec.h"

struct forest {
	struct weft__wait_graph wait_graph;
	struct weft_wait *waits;
	WEFT_VEC(struct weft_wait_node) nodes;
	size_t cycles;
};

static bool list_waits(struct forest *f)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	size_t n = w->model->promise_count;
	f->waits = calloc((size_t)w->begin[n] + 1, sizeof *f->waits);
	if (!f->waits)
		return false;
	for (uint32_t p = 0; p < n; p++)
		for (uint32_t i = w->begin[p]; i < w->begin[p + 1]; i++) {
			uint32_t to = w->waits[i].to;
			f->waits[i] = (struct weft_wait){p, to, weft__wait_graph_since(w, p, &w->waits[i]),
			    w->deadlocked[p] && w->component[p] == w->component[to]};
		}
	for (size_t i = 0; i < w->pending.count; i++) {
		bool begins = i == 0 || w->component[w->order[i]] != w->component[w->order[i - 1]];
		f->cycles += begins && weft__wait_graph_in_cycle(w, w->order[i]);
	}
	return true;
}

struct tree_position {
	uint32_t next, promise;
};

/* Adds the tree below a root; a promise that is already in the forest is not expanded again. */
static bool add_tree(struct forest *f, uint32_t root, bool *shown, struct tree_position *stack)
{
	size_t depth = 0;
	uint32_t promise = root, wait = WEFT_NONE;
	for (;;) {
		struct weft_wait_node *node = weft_vec_push(&f->nodes);
		if (!node)
			return false;
		bool is_repeated = shown[promise] && f->wait_graph.begin[promise] < f->wait_graph.begin[promise + 1];
		bool last = wait == WEFT_NONE || wait + 1 == f->wait_graph.begin[f->waits[wait].from + 1];
		*node = (struct weft_wait_node){promise, wait, (uint32_t)depth, is_repeated, last};
		if (!shown[promise]) {
			shown[promise] = true;
			stack[depth++] = (struct tree_position){f->wait_graph.begin[promise], promise};
		}
		while (depth > 0 && stack[depth - 1].next == f->wait_graph.begin[stack[depth - 1].promise + 1])
			depth--;
		if (depth == 0)
			return true;
		wait = stack[depth - 1].next++;
		promise = f->waits[wait].to;
	}
}

static bool build_forest(struct forest *f)
{
	size_t n = f->wait_graph.model->promise_count;
	bool *awaited = calloc(n, sizeof *awaited), *shown = calloc(n, sizeof *shown);
	struct tree_position *stack = malloc((n + 1) * sizeof *stack);
	bool ok = awaited && shown && stack;
	for (size_t i = 0; ok && i < f->wait_graph.begin[n]; i++)
		awaited[f->waits[i].to] = true;
	/* Roots are the promises for which no promise waits, and then cycles to which no other promise leads. */
	for (uint32_t p = 1; ok && p < n; p++)
		if (!awaited[p] && f->wait_graph.begin[p] < f->wait_graph.begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	for (uint32_t p = 1; ok && p < n; p++)
		if (!shown[p] && f->wait_graph.begin[p] < f->wait_graph.begin[p + 1])
			ok = add_tree(f, p, shown, stack);
	free(awaited);
	free(shown);
	free(stack);
	return ok;
}

int weft_waits_create(struct weft_waits **out, const struct weft_model *model, int64_t time_ns, struct weft_error *err)
{
	struct forest f = {.nodes = {0}};
	struct weft_link_index link_index;
	struct weft_waits *waits = malloc(sizeof *waits);
	bool ok = waits && weft_link_index_init(&link_index, model, WEFT_LINK_INDEX_OUT, NULL) == WEFT_OK;
	if (ok) {
		ok = weft__wait_graph_init(&f.wait_graph, &link_index, time_ns, NULL) == WEFT_OK && list_waits(&f) &&
		     build_forest(&f);
		weft_link_index_finish(&link_index);
	}
	if (!ok) {
		weft__wait_graph_finish(&f.wait_graph);
		free(f.waits);
		weft_vec_free(&f.nodes);
		free(waits);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*waits = (struct weft_waits){f.waits, f.wait_graph.begin[model->promise_count], f.nodes.items, f.nodes.count, f.cycles};
	weft__wait_graph_finish(&f.wait_graph);
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
