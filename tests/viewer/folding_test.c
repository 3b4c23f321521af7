/* folding_test.c: rows that fold automatically or by an action of the user, and the keys that select promises in them.
 * SPDX-License-Identifier: ISC */
#include "pressing.h"
#include "scene.h"

#include "draw/frame.h"
#include "viewer/actions.h"
#include "viewer/findings.h"
#include "viewer/matches.h"
#include "viewer/search.h"
#include "viewer/summary.h"
#include "viewer/table.h"
#include "viewer/url_state.h"

#include <inttypes.h>

/* Returns the sum of the times and runs of a fold's promises within from..to, counted one by one. */
static struct weft_fold_sum counted(const struct weft_viewer *v, const struct weft_fold *fold, int64_t from, int64_t to)
{
	struct weft_fold_sum sum = {0};
	for (uint32_t k = 0; k < fold->count; k++) {
		const struct weft_promise *p = &v->model->promises[v->layout->folded[fold->first + k]];
#define WITHIN(start, end) ((end < to ? end : to) - (start > from ? start : from))
		if (!(k == 0 && fold->is_track) && WITHIN(p->start_ns, p->end_ns) > 0)
			sum.alive += (double)WITHIN(p->start_ns, p->end_ns) / (double)(to - from);
		for (uint32_t r = p->runs; r < p[1].runs; r++)
			if (WITHIN(v->model->runs[r].start_ns, v->model->runs[r].end_ns) > 0)
				sum.running +=
				    (double)WITHIN(v->model->runs[r].start_ns, v->model->runs[r].end_ns) / (double)(to - from);
#undef WITHIN
		sum.failed += weft_promise_went_wrong(p) && p->end_ns >= from && p->end_ns < to;
	}
	return sum;
}

/* Checks that folded promises are in the row of their leader, and that promises in one row do not overlap.  Adds the folded ones
 * to *folded. */
static void check_rows(const struct weft_viewer *v, size_t *folded)
{
	const struct weft_layout *l = v->layout;
	for (uint32_t r = 0; r < l->row_count; r++)
		for (uint32_t i = l->row_begin[r] + 1; i < l->row_begin[r + 1]; i++)
			assert_true(weft_layout_end(l, v->model, l->by_row[i - 1]) <= v->model->promises[l->by_row[i]].start_ns);
	for (size_t i = 0; i < l->fold_count; i++)
		for (uint32_t k = 0; k < l->folds[i].count; k++) {
			assert_int_equal(l->rows[l->folded[l->folds[i].first + k]], l->rows[l->folds[i].leader]);
			++*folded;
		}
}

/* Opens a trace of ten promises of this kind, each with six timers at a time, inside `around` other promises that contain each
 * other. */
static struct weft_viewer *open_actors(enum weft_kind kind, int around)
{
	static struct mirage_writer w;
	enum { TASKS = 10, TIMERS = 6, TURNS = 20 };
	int64_t now = 1000000, id = 100;
	w.size = 0;
	mw_packet(&w, 1);
	for (int a = 0; a < around; a++)
		mw_create(&w, now, a == 0 ? -1 : 50 + a - 1, 50 + a, WEFT_KIND_TASK);
	for (int t = 0; t < TASKS; t++)
		mw_create(&w, now, around > 0 ? 50 + around - 1 : -1, 1 + t, kind);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int t = 0; t < TASKS; t++) {
			mw_op(&w, now += 1000, WEFT_OP_RUN, 1 + t);
			for (int i = 0; i < TIMERS; i++)
				mw_create(&w, now += 10, 1 + t, id++, WEFT_KIND_WAIT);
		}
		mw_op(&w, now += 1000, WEFT_OP_RUN, -1);
		now += 1000000;
		for (int i = TASKS * TIMERS; i > 0; i--)
			mw_link(&w, now += 10, WEFT_OP_RESOLVE, 1, id - i);
	}
	mw_op(&w, now + 1000, WEFT_OP_RUN, -1);
	mw_end(&w, 0);
	return open_bytes(w.bytes, w.size);
}

static void check_drawn(struct weft_viewer *v, uint32_t wanted)
{
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_equal(v->layout->row_count, wanted);
}

/* Rows that are too low fold automatically; they unfold by a zoom, when the user opens a fold, or by an option.  All these
 * actions can be undone. */
static void fold_low_rows_automatically(enum weft_kind kind)
{
	struct weft_viewer *v = open_actors(kind, 0);
	char place[512], said[WEFT_SUMMARY_BYTES];
	const uint32_t folded = 10;
	weft_viewer_resize(v, 300, 400, 1);
	check_drawn(v, folded);
	for (uint32_t p = 1; p < v->model->promise_count; p++)
		assert_true(v->layout->rows[p] < folded);
	/* A zoom in unfolds the rows and keeps the shown time; a zoom out folds them again. */
	int64_t from, to, then_from, then_to, middle = v->model->end_ns / 2;
	weft_viewer_show(v, middle, middle + 100000);
	weft_viewer_times(v, &from, &to);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	weft_viewer_times(v, &then_from, &then_to);
	assert_true(v->layout->row_count >= 70 && from == then_from && to == then_to);
	uint32_t all = v->layout->row_count;
	weft_viewer_resize(v, 300, 280, 1);
	check_drawn(v, folded); /* a lower window has less space */
	weft_viewer_resize(v, 300, 800, 1);
	check_drawn(v, all);
	weft_viewer_resize(v, 300, 400, 1);
	weft_viewer_show_all(v);
	check_drawn(v, folded);
	/* The fold action opens a fold, and closes it again. */
	weft_viewer_select(v, with_id(v, 3));
	assert_non_null(strstr(weft_viewer_describe(v, said), "; a folded track with 120 promises"));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD), WEFT_OK);
	check_drawn(v, folded + 6);
	weft_viewer_place(v, place, sizeof place);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD), WEFT_OK);
	check_drawn(v, folded);
	assert_true(weft_viewer_back(v));
	check_drawn(v, folded + 6);
	assert_true(weft_viewer_back(v));
	check_drawn(v, folded);
	assert_int_equal(weft_viewer_go(v, place, NULL), WEFT_OK);
	check_drawn(v, folded + 6);
	/* Focus shows one promise with its rows unfolded; the end of focus shows all rows as before. */
	weft_viewer_focus(v, with_id(v, 5));
	check_drawn(v, 7);
	weft_viewer_focus(v, WEFT_NONE);
	check_drawn(v, folded + 6);
	/* After this action, no row folds automatically. */
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOLD_ALL), WEFT_OK);
	check_drawn(v, all);
	weft_viewer_place(v, place, sizeof place);
	assert_non_null(strstr(place, "thin=1"));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD_THIN), WEFT_OK);
	check_drawn(v, folded);
	assert_int_equal(weft_viewer_go(v, place, NULL), WEFT_OK);
	check_drawn(v, all);
	weft_viewer_destroy(v);
}

/* The connections of a server do not fold into one row, however deep they are inside a listener, a loop and an OS thread. */
static void low_rows_fold_only_below_branches(int around)
{
	struct weft_viewer *v = open_actors(WEFT_KIND_TASK, around);
	weft_viewer_resize(v, 300, 400, 1);
	check_drawn(v, 10 + (uint32_t)around);
	for (int64_t id = 1; id <= 10; id++)
		assert_int_equal(weft_layout_fold(v->layout, with_id(v, id))->count, 121);
	weft_viewer_destroy(v);
}

static void test_rows_too_low_to_read_fold_automatically(void **state)
{
	(void)state;
	for (int around = 1; around < 7; around++)
		low_rows_fold_only_below_branches(around);
	fold_low_rows_automatically(WEFT_KIND_TASK);
	fold_low_rows_automatically(WEFT_KIND_TIMER); /* a repeating timer can have promises of its own, as uvloop's idle handle,
							 whose callback runs the program */
}

/* Compares the sums of a fold over intervals of several lengths; the first starts before the trace, and one is empty. */
static void check_sums(const struct weft_viewer *v, size_t fold)
{
	enum { COUNT = 9 };
	int64_t times[COUNT + 1];
	struct weft_fold_sum sums[COUNT];
	for (int64_t i = 0; i <= COUNT; i++)
		times[i] = i == 0 ? -5 : v->model->end_ns * i * i / COUNT / (COUNT - 1);
	times[4] = times[3];
	weft_view_sum_fold(v->view, fold, times, COUNT, sums);
	for (size_t i = 0; i < COUNT; i++) {
		struct weft_fold_sum wanted = {0};
		if (times[i] < times[i + 1])
			wanted = counted(v, &v->layout->folds[fold], times[i], times[i + 1]);
		assert_true(near(sums[i].alive, wanted.alive, 1e-6) && near(sums[i].running, wanted.running, 1e-6));
		assert_int_equal(sums[i].failed, wanted.failed);
	}
}

static void test_queries_fold_matching_promises(void **state)
{
	(void)state;
	static const char *const queries[] = {"kind:=task", "kind:=wait", "kind:=bind", "failed"};
	char place[4096], again[4096];
	size_t folded = 0;
	for (uint64_t seed = 1; seed < 12; seed++) {
		struct weft_viewer *v = open_random(seed), *other = open_random(seed);
		uint32_t before = v->layout->row_count;
		for (size_t q = 0; q < 4; q++) {
			weft_viewer_fold(v, queries[q]);
			assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_PICTURE);
			check_rows(v, &folded);
			for (size_t i = 0; v->whole_view && i < v->layout->fold_count; i += 3)
				check_sums(v, i);
			assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
		}
		/* A link contains the folds; in focus, the promises stay folded. */
		weft_viewer_place(v, place, sizeof place);
		assert_non_null(strstr(place, "&fold=kind:%3Dtask&fold=kind:%3Dwait"));
		assert_int_equal(weft_viewer_go(other, place, NULL), WEFT_OK);
		weft_viewer_place(other, again, sizeof again);
		assert_string_equal(place, again);
		weft_viewer_focus(v, v->layout->by_row[0]);
		check_rows(v, &folded);
		weft_viewer_focus(v, WEFT_NONE);
		weft_viewer_copy_state(other, v);
		assert_int_equal(other->folding.count, 4);
		/* The same query a second time unfolds its promises; one action unfolds all others. */
		weft_viewer_fold(v, queries[0]);
		assert_int_equal(v->folding.count, 3);
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOLD_ALL), WEFT_OK);
		assert_true(v->layout->row_count == before && !v->whole_view);
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_UNFOLD_ALL), WEFT_EINVAL);
		weft_viewer_fold(v, "longer:soon");
		weft_viewer_fold(v, "");
		assert_int_equal(v->folding.count, 0);
		weft_viewer_destroy(v);
		weft_viewer_destroy(other);
	}
	assert_true(folded > 1000);
}

static void test_promises_are_folded_and_unfolded_by_hand(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	uint32_t loop = with_id(v, 1), request = with_id(v, 2);
	weft_viewer_select(v, request);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD), WEFT_OK);
	assert_true(v->layout->row_count == 1 && v->layout->rows[request] == v->layout->rows[loop]);
	/* A double click on the line unfolds it again. */
	click(v, loop, 1);
	click(v, loop, 2);
	assert_true(v->layout->row_count > 1 && v->folding.count == 0);
	weft_viewer_select(v, request);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD_KIND), WEFT_OK);
	assert_true(v->layout->rows[request] == v->layout->rows[with_id(v, 4)] &&
		    v->layout->rows[request] == v->layout->rows[with_id(v, 6)] &&
		    v->layout->rows[request] != v->layout->rows[loop]);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD_KIND), WEFT_OK);
	assert_int_equal(v->folding.count, 0);
	weft_viewer_destroy(v);
}

/* Keys can select each promise: along its row, and from row to row, in a folded picture, too. */
static void test_keys_can_select_every_promise(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 8; seed++) {
		struct weft_viewer *v = open_random(seed);
		if (seed % 2)
			weft_viewer_fold(v, "kind:=bind");
		const struct weft_layout *l = v->layout;
		uint32_t row = 0, seen = 0;
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_STEP_DOWN),
		    WEFT_OK); /* without a selection, the key selects the first promise */
		assert_int_equal(v->selected, l->by_row[0]);
		for (;;) {
			while (weft_viewer_step(v, -1, 0))
				;
			for (uint32_t i = l->row_begin[row]; i < l->row_begin[row + 1]; i++, seen++) {
				assert_int_equal(v->selected, l->by_row[i]);
				assert_true(weft_view_is_shown(v->view, row));
				assert_int_equal(weft_viewer_step(v, 1, 0), i + 1 < l->row_begin[row + 1]);
			}
			/* Down, up and down again leads to a promise of the next row: the same one, or one that is near in time.
			 */
			if (!weft_viewer_step(v, 0, 1))
				break;
			assert_int_equal(l->rows[v->selected], ++row);
			assert_true(weft_viewer_step(v, 0, -1) && l->rows[v->selected] == row - 1);
			assert_true(weft_viewer_step(v, 0, 1) && l->rows[v->selected] == row);
		}
		assert_int_equal(seen, l->row_begin[l->row_count]);
		weft_viewer_destroy(v);
	}
}

/* The measure key measures the selected promise; after another selection, the time from the one promise to the other. */
static void test_keys_measure_the_span_of_promises(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	const struct weft_promise *two = &v->model->promises[with_id(v, 2)], *six = &v->model->promises[with_id(v, 6)];
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_MEASURE), WEFT_EINVAL);
	weft_viewer_select(v, with_id(v, 6));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_MEASURE), WEFT_OK);
	assert_true(v->has_span && v->span_from_ns == six->start_ns && v->span_to_ns == six->end_ns);
	weft_viewer_select(v, with_id(v, 2));
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_MEASURE), WEFT_OK);
	assert_true(v->span_from_ns == two->start_ns && v->span_to_ns == six->end_ns);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_ZOOM_SPAN), WEFT_OK);
	int64_t from_ns, to_ns;
	weft_viewer_times(v, &from_ns, &to_ns);
	assert_true(from_ns == two->start_ns && to_ns == six->end_ns);
	weft_viewer_destroy(v);
}

/* Returns the fold of each promise, or WEFT_NONE. */
static uint32_t *folds_of(const struct weft_viewer *v)
{
	uint32_t *fold_of = malloc(v->model->promise_count * sizeof *fold_of);
	assert_non_null(fold_of);
	memset(fold_of, 0xff, v->model->promise_count * sizeof *fold_of);
	for (uint32_t f = 0; f < v->layout->fold_count; f++)
		for (uint32_t k = 0; k < v->layout->folds[f].count; k++)
			fold_of[v->layout->folded[v->layout->folds[f].first + k]] = f;
	return fold_of;
}

/* No link is lost in a folded picture: links inside a fold are counted; links between folds, also in one row, are drawn or
 * counted, and have tips. */
static void test_each_arrow_of_a_folded_picture_is_drawn_or_counted(void **state)
{
	(void)state;
	size_t all_inside = 0, on_one_row = 0, told = 0;
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct weft_viewer *v = open_random(seed);
		weft_viewer_fold(v, "kind:=task");
		weft_viewer_fold(v, "kind:=bind");
		assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
		struct weft_draw_list *list = &v->lists[WEFT_PANE_PICTURE];
		uint32_t inside[WEFT_ARROWS] = {0}, between[WEFT_ARROWS] = {0}, counted[WEFT_ARROWS] = {0},
			 drawn[WEFT_ARROWS] = {0};
		uint32_t *fold_of = folds_of(v);
		for (size_t i = 0; i < v->model->link_count; i++) {
			const struct weft_link *link = &v->model->links[i];
			if (!weft__is_arrow(v->layout, link))
				continue;
			enum weft_arrow arrow = weft__arrow_class(v->model, link);
			bool is_inside = fold_of[link->from] != WEFT_NONE && fold_of[link->from] == fold_of[link->to];
			if (is_inside)
				inside[arrow]++;
			else
				between[arrow]++;
			on_one_row += !is_inside && v->layout->rows[link->from] == v->layout->rows[link->to];
		}
		for (int x = 0; x < (int)list->width_px; x++) {
			uint32_t counts[WEFT_ARROWS];
			double y = (list->scratch->band_y0 + list->scratch->band_y1) / 2.0;
			for (int a = 0; weft_draw_density_at(list, x, y, counts) && a < WEFT_ARROWS; a++)
				counted[a] += counts[a];
		}
		for (size_t i = 0; i < list->scratch->bundles.count; i++) {
			const struct weft__bundle *b = &list->scratch->bundles.items[i];
			drawn[b->arrow] += b->count;
			if (b->y0 != b->y1 || b->x1 - b->x0 < 8) /* NOLINT: of one row */
				continue;
			/* The tip is just below the row. */
			weft_viewer_motion(v, (double)(b->x0 + b->x1) / 2, v->panes[WEFT_PANE_PICTURE].y_px + (double)b->y0 + 4);
			assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
			told += v->hovered_link == b->link;
			weft_viewer_leave(v);
		}
		for (int a = 0; a < WEFT_ARROWS; a++) {
			assert_int_equal(counted[a] + drawn[a], inside[a] + between[a]);
			assert_true(drawn[a] == 0 || counted[a] == inside[a]);
			all_inside += inside[a];
		}
		free(fold_of);
		weft_viewer_destroy(v);
	}
	assert_true(all_inside > 100 && on_one_row > 20);
	assert_true(told > 10);
}

/* Each press of a key groups the rows by another property; links and the history contain the property. */
static void test_each_key_press_groups_the_rows_by_another_property(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER), *other = open_text(SERVER);
	uint32_t loop = with_id(v, 1), one = with_id(v, 2), last = with_id(v, 6);
	const char *const by[] = {"kind", "site", "library", "thread"};
	char place[400];
	weft_viewer_select(v, one);
	for (size_t i = 0; i < 4; i++) {
		char wanted[32];
		assert_int_equal(weft_viewer_act(v, WEFT_ACTION_GROUP), WEFT_OK);
		snprintf(wanted, sizeof wanted, "&group=%s", by[i]);
		weft_viewer_place(v, place, sizeof place);
		assert_int_equal(strstr(place, "&group=") != NULL, i < 3);
		assert_true(i == 3 || strstr(place, wanted));
		assert_int_equal(
		    v->layout->band_count, i == 0 ? 3 : 1); /* three kinds: task, wait and bind; all sites are unknown */
		assert_int_equal(weft_viewer_go(other, place, NULL), WEFT_OK);
		assert_memory_equal(other->layout->rows, v->layout->rows, v->model->promise_count * sizeof *v->layout->rows);
	}
	for (size_t i = 3; i-- > 0;) {
		assert_true(weft_viewer_back(v));
		assert_int_equal(v->folding.rows_by, i + 1);
	}
	/* If rows are grouped by kind, the fold action folds the group of the selected promise: all waits are in one row. */
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD), WEFT_OK);
	assert_true(v->layout->rows[one] == v->layout->rows[last] && v->layout->rows[one] != v->layout->rows[loop]);
	assert_int_equal(v->layout->folds[0].count, 3);
	assert_true(v->layout->folds[0].is_group && v->layout->folds[0].leader == one);
	click(v, one, 1);
	click(v, one, 2);
	assert_true(v->folding.count == 0 && v->folding.rows_by == WEFT_ROWS_BY_KIND);
	/* A promise with an unknown site cannot be folded by its site or by its library. */
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD_SITE), WEFT_EINVAL);
	assert_int_equal(weft_viewer_act(v, WEFT_ACTION_FOLD_LIBRARY), WEFT_EINVAL);
	weft_viewer_destroy(v);
	weft_viewer_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows_too_low_to_read_fold_automatically),
	    cmocka_unit_test(test_queries_fold_matching_promises),
	    cmocka_unit_test(test_promises_are_folded_and_unfolded_by_hand),
	    cmocka_unit_test(test_keys_can_select_every_promise),
	    cmocka_unit_test(test_keys_measure_the_span_of_promises),
	    cmocka_unit_test(test_each_arrow_of_a_folded_picture_is_drawn_or_counted),
	    cmocka_unit_test(test_each_key_press_groups_the_rows_by_another_property),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
