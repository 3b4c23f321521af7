/* diff_pane.c: lists the differences between two traces that are shown one above the other; a press on a row leads to the
 * difference in both traces.
 *
 * The upper viewer owns the result of the comparison.  Small traces are compared as soon as the rows are needed, and large
 * traces on request.  SPDX-License-Identifier: ISC */
#include "viewer/private.h"
#include "viewer/rows_private.h"

#define SHOWN 8u
#define AT_ONCE 200000 /* number of promises in both traces up to which they are compared at once, which takes 0.1 s */

static struct weft_viewer *first_of(struct weft_viewer *v)
{
	return v->is_lower ? v->beside : v;
}

void weft__viewer_set_beside(struct weft_viewer *v, struct weft_viewer *beside, bool is_lower)
{
	if (v->beside == beside && v->is_lower == is_lower)
		return;
	v->beside = beside;
	v->is_lower = is_lower;
	v->wants_diff = false;
	weft_diff_destroy(v->diff);
	v->diff = NULL;
	weft__viewer_changed(v, WEFT_CHANGED_FINDINGS);
}

/* Returns whether another thread is reading data of a viewer's trace. */
static bool is_busy(const struct weft_viewer *v)
{
	for (int ask = 0; ask < WEFT_ASKS; ask++)
		if (v->questions[ask].state == WEFT_QUESTION_NEW || v->questions[ask].state == WEFT_QUESTION_ASKED)
			return true;
	return false;
}

/* Builds a model that is not simplified.  The promises of this model have the same numbers as in the model that is shown. */
static int build_whole(struct weft_model **out, const struct weft_viewer *v)
{
	weft_trace_rewind(v->trace);
	return weft_model_build(out, v->trace, &(struct weft_model_options){.keep_binds = true}, NULL);
}

/* Compares the traces.  Without memory the comparison has no result. */
static void find_differences(struct weft_viewer *first)
{
	struct weft_model *a = NULL, *b = NULL;
	first->wants_diff = false;
	if (build_whole(&a, first) == WEFT_OK && build_whole(&b, first->beside) == WEFT_OK)
		weft_diff_create(&first->diff, a, b, NULL);
	weft_model_destroy(a);
	weft_model_destroy(b);
}

void weft__viewer_write_differences(struct weft_rows *rows, struct weft_viewer *v)
{
	struct weft_viewer *first = v->beside ? first_of(v) : NULL;
	struct weft_row *row;
	weft__rows_set_topic(rows, WEFT_ROWS_OF_DIFF);
	if (!first || is_busy(first) || is_busy(first->beside))
		return;
	bool at_once = first->model->promise_count + first->beside->model->promise_count <= AT_ONCE;
	if (!first->diff && (at_once || first->wants_diff))
		find_differences(first);
	const struct weft_diff *diff = first->diff;
	if (!diff) {
		row =
		    weft__rows_add(rows, WEFT_ROW_MORE, weft__rows_text(rows, "Compare the two traces: takes a few seconds"), 0);
		row->leads = true;
		return;
	}
	char number[28];
	size_t count = diff->count + diff->left_out;
	weft__rows_add(rows, WEFT_ROW_SUMMARY,
	    weft__rows_text(rows, "%s %s between %s (first) and %s (second)", weft_number_text(number, count),
		count == 1 ? "difference" : "differences", first->name, first->beside->name),
	    0);
	for (uint32_t i = 0; i < diff->count && i < SHOWN; i++) {
		row = weft__rows_add(rows, WEFT_ROW_EVIDENCE, weft__rows_text(rows, "%s", diff->differences[i].text),
		    weft__rows_text(rows, "%s", weft_difference_name(diff->differences[i].kind)));
		row->leads = true;
		row->line = i;
	}
}

/* Selects a promise if the promise exists. */
static void select_if_shown(struct weft_viewer *v, uint32_t promise)
{
	if (weft__viewer_is_selectable(v, promise))
		weft__viewer_select_and_reveal(v, promise);
}

void weft__viewer_press_difference(struct weft_viewer *v, const struct weft_row *row)
{
	struct weft_viewer *first = v->beside ? first_of(v) : NULL;
	if (!first)
		return;
	if (row->kind == WEFT_ROW_MORE) {
		first->wants_diff = true;
		weft__viewer_changed(v, WEFT_CHANGED_FINDINGS);
		return;
	}
	if (!first->diff || row->line >= first->diff->count)
		return;
	const struct weft_difference *d = &first->diff->differences[row->line];
	int64_t a_ns = d->a_time_ns >= 0 ? d->a_time_ns : d->b_time_ns, b_ns = d->b_time_ns >= 0 ? d->b_time_ns : a_ns, from, to;
	weft__viewer_begin_move(first == v ? first->beside : first, WEFT_MOVE_ACTS);
	select_if_shown(first, d->a);
	select_if_shown(first->beside, d->b);
	if (a_ns < 0)
		return;
	/* Both places must be visible in both viewers, because their axes may be locked. */
	weft_viewer_times(v, &from, &to);
	int64_t least = a_ns < b_ns ? a_ns : b_ns, most = a_ns < b_ns ? b_ns : a_ns, around = (most - least) / 4 + 1000;
	if (least < from || most > to) {
		weft_viewer_show(first, weft__add_ns(least, -around), weft__add_ns(most, around));
		weft_viewer_show(first->beside, weft__add_ns(least, -around), weft__add_ns(most, around));
	}
	weft__viewer_set_guide(first, true, a_ns);
	weft__viewer_set_guide(first->beside, true, b_ns);
}
