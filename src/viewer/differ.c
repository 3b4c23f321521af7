/* differ.c: where two traces part that are shown one above the other, as rows that lead there in both.
 *
 * The upper viewer has what was found.  It is found as soon as the rows are wanted, if the traces are small; else when that is
 * asked for.  SPDX-License-Identifier: ISC */
#include "viewer/private.h"
#include "viewer/rows_private.h"

#define SHOWN 8u
#define AT_ONCE 200000 /* promises of both: so many take a tenth of a second */

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

/* Whether another OS thread reads what is known of a trace. */
static bool is_busy(const struct weft_viewer *v)
{
	for (int ask = 0; ask < WEFT_ASKS; ask++)
		if (v->questions[ask].state == WEFT_QUESTION_NEW || v->questions[ask].state == WEFT_QUESTION_ASKED)
			return true;
	return false;
}

/* Promises have the same numbers in a model that is not simplified as in the one that is shown. */
static int build_whole(struct weft_model **out, const struct weft_viewer *v)
{
	weft_trace_rewind(v->trace);
	return weft_model_build(out, v->trace, &(struct weft_model_options){.keep_binds = true}, NULL);
}

/* Without memory nothing was found. */
static void find(struct weft_viewer *first)
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
	weft__rows_of(rows, WEFT_ROWS_OF_DIFF);
	if (!first || is_busy(first) || is_busy(first->beside))
		return;
	bool at_once = first->model->promise_count + first->beside->model->promise_count <= AT_ONCE;
	if (!first->diff && (at_once || first->wants_diff))
		find(first);
	const struct weft_diff *diff = first->diff;
	if (!diff) {
		row =
		    weft__rows_add(rows, WEFT_ROW_MORE, weft__rows_text(rows, "Find where the two part: takes some seconds"), 0);
		row->leads = true;
		return;
	}
	char number[28];
	size_t count = diff->count + diff->left_out;
	weft__rows_add(rows, WEFT_ROW_SUMMARY,
	    weft__rows_text(rows, "%s %s from %s, the first, to %s, the second", weft_thousands(number, count),
		count == 1 ? "difference" : "differences", first->name, first->beside->name),
	    0);
	for (uint32_t i = 0; i < diff->count && i < SHOWN; i++) {
		row = weft__rows_add(rows, WEFT_ROW_EVIDENCE, weft__rows_text(rows, "%s", diff->differences[i].text),
		    weft__rows_text(rows, "%s", weft_difference_name(diff->differences[i].kind)));
		row->leads = true;
		row->line = i;
	}
}

/* Selects a promise where it stands. */
static void reveal(struct weft_viewer *v, uint32_t promise)
{
	if (weft__viewer_has(v, promise))
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
	weft__viewer_begins(first == v ? first->beside : first, WEFT_MOVE_ACTS);
	reveal(first, d->a);
	reveal(first->beside, d->b);
	if (a_ns < 0)
		return;
	/* Both places are seen in both, since their axes may be one. */
	weft_viewer_times(v, &from, &to);
	int64_t least = a_ns < b_ns ? a_ns : b_ns, most = a_ns < b_ns ? b_ns : a_ns, around = (most - least) / 4 + 1000;
	if (least < from || most > to) {
		weft_viewer_show(first, weft__add_ns(least, -around), weft__add_ns(most, around));
		weft_viewer_show(first->beside, weft__add_ns(least, -around), weft__add_ns(most, around));
	}
	weft__viewer_guide(first, true, a_ns);
	weft__viewer_guide(first->beside, true, b_ns);
}
