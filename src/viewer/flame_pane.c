/* flame_pane.c: shows sums of time as stacks, like a flame graph (see flame_pane.h).  SPDX-License-Identifier: ISC */
#include "viewer/flame_pane.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

enum { ROWS = 20 };

static double get_percent(int64_t part_ns, int64_t all_ns)
{
	return all_ns > 0 ? 100.0 * (double)part_ns / (double)all_ns : 0;
}

static struct weft_icicle_node node_of(void *ctx, size_t node)
{
	const struct weft_blame_source *blamed = ctx;
	const struct weft_stacks *stacks = blamed->stacks;
	const struct weft_stack_sum *s = &stacks->stacks[node];
	const int64_t all_ns = stacks->stacks[0].sum_ns;
	const int change = blamed->other_ns
			       ? (int)(get_percent(s->sum_ns, all_ns) - get_percent(blamed->other_ns[node], blamed->other_all_ns))
			       : 0;
	return (struct weft_icicle_node){
	    s->depth, s->start_ns, s->sum_ns, s->own_ns, weft_stack_name(stacks, (uint32_t)node), change};
}

void weft_blame_compare(struct weft_icicle *icicle, struct weft_blame_source *blamed, const int64_t *other_ns,
    int64_t other_all_ns, const char *other_name)
{
	const size_t length = strlen(blamed->title);
	blamed->other_ns = other_ns;
	blamed->other_all_ns = other_all_ns;
	snprintf(blamed->title + length, sizeof blamed->title - length,
	    "; red: a larger share than in %.60s, blue: a smaller one", other_name);
	icicle->compares = true;
}

struct weft_icicle weft_blame_icicle(struct weft_blame_source *blamed, const struct weft_stacks *stacks, enum weft_folded_by by)
{
	char sum[WEFT_DURATION_BYTES], number[28];
	static const char *const titles[] = {[WEFT_FOLDED_BY_RUN] = "Running time: %s in total, of %s promises",
	    [WEFT_FOLDED_BY_WAIT] = "Waiting time: %s in total, of %s promises",
	    [WEFT_FOLDED_BY_FUNCTION] = "Sampled functions: %s in total, in %s promises",
	    [WEFT_FOLDED_BY_ALLOCATED] = "Allocated memory: about %s in total, by %s promises",
	    [WEFT_FOLDED_BY_HELD] = "Memory that was not freed: about %s in total, allocated by %s promises"};
	const bool runs = by != WEFT_FOLDED_BY_WAIT;
	blamed->stacks = stacks;
	blamed->other_ns = NULL;
	snprintf(blamed->title, sizeof blamed->title, titles[by], weft_folded_text(by, sum, stacks->stacks[0].sum_ns),
	    weft_number_text(number, stacks->stacks[0].promises));
	return (struct weft_icicle){.count = stacks->count,
	    .node = node_of,
	    .ctx = blamed,
	    .deepest = stacks->deepest,
	    .marked = SIZE_MAX,
	    .runs = runs,
	    .title = blamed->title};
}

static struct weft_icicle icicle_of(const struct weft_viewer *v, struct weft_blame_source *blamed)
{
	struct weft_icicle icicle = weft_blame_icicle(blamed, v->stacks, v->blame_by);
	icicle.measure = v->measure;
	icicle.measure_ctx = v->measure_ctx;
	icicle.root = v->blame_root;
	icicle.marked = v->blame_marked;
	return icicle;
}

double weft__viewer_blame_px(const struct weft_viewer *v, double available_px)
{
	struct weft_blame_source blamed;
	if (!v->blame_shown || available_px <= 0)
		return 0;
	const struct weft_icicle icicle = icicle_of(v, &blamed);
	return weft_icicle_px(&icicle, available_px);
}

int weft__viewer_draw_blame(struct weft_viewer *v, struct weft_error *err)
{
	const struct weft_pane *pane = &v->panes[WEFT_PANE_BLAME];
	struct weft_blame_source blamed;
	if (pane->height_px <= 0) {
		v->lists[WEFT_PANE_BLAME].count = v->lists[WEFT_PANE_BLAME].text_bytes = 0;
		return WEFT_OK;
	}
	const struct weft_icicle icicle = icicle_of(v, &blamed);
	return weft_icicle_draw(&v->lists[WEFT_PANE_BLAME], v->width_px / v->scale, pane->height_px / v->scale, &icicle, err);
}

void weft__viewer_mark_blame(struct weft_viewer *v, double x_px, double y_px)
{
	const struct weft_pane *pane = &v->panes[WEFT_PANE_BLAME];
	struct weft_blame_source blamed;
	size_t node = SIZE_MAX;
	if (pane->height_px > 0 && y_px >= pane->y_px) {
		const struct weft_icicle icicle = icicle_of(v, &blamed);
		node = weft_icicle_hit(
		    &icicle, v->width_px / v->scale, pane->height_px / v->scale, x_px / v->scale, (y_px - pane->y_px) / v->scale);
	}
	if (node == v->blame_marked)
		return;
	v->blame_marked = node;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_HOVER);
}

static int describe_share(const struct weft_viewer *v, uint32_t stack, char *buf, size_t size)
{
	char sum[WEFT_DURATION_BYTES], number[28];
	const struct weft_stack_sum *s = &v->stacks->stacks[stack], *all = &v->stacks->stacks[0];
	const int tenths = all->sum_ns ? (int)((double)s->sum_ns / (double)all->sum_ns * 1000 + 0.5) : 1000;
	return snprintf(buf, size, "%d.%d %%, %s, of %s promise%s", tenths / 10, tenths % 10,
	    weft_folded_text(v->blame_by, sum, s->sum_ns), weft_number_text(number, s->promises), s->promises == 1 ? "" : "s");
}

bool weft__viewer_describe_blame(const struct weft_viewer *v, char *buf, size_t size)
{
	char share[120];
	if (!v->blame_shown || v->blame_marked == SIZE_MAX)
		return false;
	describe_share(v, (uint32_t)v->blame_marked, share, sizeof share);
	snprintf(buf, size, "%.100s: %s", weft_stack_name(v->stacks, (uint32_t)v->blame_marked), share);
	return true;
}

void weft_viewer_show_blame(struct weft_viewer *v, bool shown, enum weft_folded_by by, uint32_t root)
{
	if (shown && (!v->stacks || v->blame_by != by)) {
		struct weft_stacks *stacks;
		if (weft_stacks_create(&stacks, v->model, by, false, NULL) < 0)
			return;
		weft_stacks_destroy(v->stacks);
		v->stacks = stacks;
		v->blame_by = by;
	}
	root = shown && root < v->stacks->count ? root : 0;
	v->blame_shown = shown;
	v->blame_root = root;
	v->blame_marked = SIZE_MAX;
	weft__viewer_place_panes(v);
	weft__viewer_changed(v, WEFT_CHANGED_TABLE | WEFT_CHANGED_SETTING);
}

static int64_t time_below(void *ctx, uint32_t promise)
{
	const struct weft_viewer *v = ctx;
	return weft_stack_contains(v->stacks, v->blame_root, promise) ? weft_stack_time(v->stacks, promise) : -1;
}

/* Shows a stack over the full width or, if it already has the full width, the stack above it.  Highlights the promises of the
 * stack, and goes to the promise with the longest time. */
static void press_stack(struct weft_viewer *v, uint32_t stack)
{
	const bool is_root = stack == v->blame_root && stack != 0;
	weft_viewer_show_blame(v, true, v->blame_by, is_root ? v->stacks->stacks[stack].above : stack);
	if (!is_root && stack != 0)
		weft__viewer_go_to_weighted(v, time_below, v);
}

void weft__viewer_press_blame(struct weft_viewer *v)
{
	if (v->blame_marked != SIZE_MAX)
		press_stack(v, (uint32_t)v->blame_marked);
}

#define TEXT(...) weft__rows_text(rows, __VA_ARGS__)

static void add_row(struct weft_rows *rows, enum weft_row_kind kind, size_t name, size_t value, uint32_t stack)
{
	struct weft_row *row = weft__rows_add(rows, kind, name, value);
	row->leads = kind != WEFT_ROW_HEADING;
	row->line = stack;
}

static void add_below(struct weft_rows *rows, const struct weft_viewer *v, uint32_t above)
{
	const struct weft_stacks *s = v->stacks;
	uint32_t below[ROWS];
	size_t count = 0;
	for (uint32_t i = above + 1; i < s->count; i++) {
		size_t at = count;
		if (s->stacks[i].above != above)
			continue;
		while (at > 0 && s->stacks[below[at - 1]].start_ns > s->stacks[i].start_ns)
			at--;
		if (at == ROWS)
			continue;
		count += count < ROWS;
		for (size_t k = count - 1; k > at; k--)
			below[k] = below[k - 1];
		below[at] = i;
	}
	for (size_t i = 0; i < count; i++) {
		char share[120];
		describe_share(v, below[i], share, sizeof share);
		add_row(rows, WEFT_ROW_EVIDENCE, TEXT("%s", weft_stack_name(s, below[i])), TEXT("%s", share), below[i]);
	}
}

void weft__viewer_write_blame(struct weft_rows *rows, const struct weft_viewer *v)
{
	static const char *const measures[] = {[WEFT_FOLDED_BY_RUN] = "By running time",
	    [WEFT_FOLDED_BY_WAIT] = "By waiting time",
	    [WEFT_FOLDED_BY_FUNCTION] = "By function, in long runs",
	    [WEFT_FOLDED_BY_ALLOCATED] = "By allocated memory",
	    [WEFT_FOLDED_BY_HELD] = "By memory that was not freed"};
	if (!v->blame_shown)
		return;
	weft__rows_set_topic(rows, WEFT_ROWS_OF_BLAME);
	add_row(rows, WEFT_ROW_HEADING,
	    TEXT("%s", weft_folded_is_bytes(v->blame_by) ? "Where the memory went" : "Where the time went"), 0, 0);
	add_row(rows, WEFT_ROW_MORE, TEXT("%s", measures[v->blame_by]), 0, WEFT_NONE);
	if (v->blame_root != 0)
		add_row(rows, WEFT_ROW_MORE, TEXT("Below %s", weft_stack_name(v->stacks, v->blame_root)), 0, v->blame_root);
	add_below(rows, v, v->blame_root);
}

/* Returns the measure that follows the shown one; measures without data are left out. */
static enum weft_folded_by find_next_measure(const struct weft_viewer *v)
{
	static const enum weft_folded_by order[] = {
	    WEFT_FOLDED_BY_WAIT, WEFT_FOLDED_BY_RUN, WEFT_FOLDED_BY_FUNCTION, WEFT_FOLDED_BY_ALLOCATED, WEFT_FOLDED_BY_HELD};
	enum { COUNT = sizeof order / sizeof *order };
	size_t at = 0;
	while (order[at] != v->blame_by)
		at++;
	for (size_t i = 1; i < COUNT; i++) {
		const enum weft_folded_by next = order[(at + i) % COUNT];
		const bool has_data = weft_folded_is_bytes(next)        ? v->model && v->model->allocation_count > 0
				      : next == WEFT_FOLDED_BY_FUNCTION ? v->model && v->model->sample_count > 0
									: true;
		if (has_data)
			return next;
	}
	return v->blame_by;
}

void weft__viewer_press_blame_row(struct weft_viewer *v, const struct weft_row *row)
{
	const enum weft_folded_by other = find_next_measure(v);
	if (!v->blame_shown)
		return;
	if (row->line == WEFT_NONE)
		weft_viewer_show_blame(v, true, other, 0);
	else if (row->line < v->stacks->count)
		press_stack(v, row->line);
}
