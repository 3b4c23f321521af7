/* threads_test.c: the lanes of OS threads: the area of each state is compared with the times of the kernel events.  Arguments:
 * the generator, and the folder of goldens. SPDX-License-Identifier: ISC */
#include "draw/scene.h"

#include <unistd.h>

#include "model/os_tracks.h"
#include "viewer/actions.h"
#include "viewer/summary.h"
#include "viewer/url_state.h"
#include "viewer/viewer.h"

enum { THREADS = 8, WINDOW = 60 /* columns are 1 to 6 px wide */ };

static const char *generator;

/* Generates a native trace of random programs on `threads` OS threads. */
static struct weft_trace *generate(unsigned threads, const char *events, const char *kernel_events)
{
	char folder[] = "threads-XXXXXX", command[700];
	struct weft_trace *trace;
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof command, "'%s' random --events=%s --streams=%u --format=native --kernel=%s -o %s/trace",
	    generator, events, threads, kernel_events, folder);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "%s/trace", folder);
	assert_int_equal(weft_trace_open(&trace, command, NULL), WEFT_OK);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return trace;
}

static void open_threads(struct scene *s, unsigned threads, const char *events, const char *kernel_events)
{
	*s = (struct scene){.trace = generate(threads, events, kernel_events)};
	assert_int_equal(weft_model_build(&s->model, s->trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create(&s->layout, s->model, NULL), WEFT_OK);
	assert_int_equal(weft_view_create(&s->view, s->model, s->layout, NULL), WEFT_OK);
}

/* ---- Expected times, computed only from kernel events ---- */

enum state { RUNS, WANTS, DISK, BLOCKED, STATES };

struct truth {
	const int64_t *times_ns; /* start times of columns */
	size_t columns;
	int64_t start_ns;
	double *ns; /* by OS thread, column and state */
	struct {
		enum state state;
		bool is_known;
		int64_t since_ns;
		size_t column;
	} now[THREADS];
};

static double *at(const struct truth *t, size_t thread, size_t column, enum state state)
{
	return &t->ns[(thread * t->columns + column) * STATES + state];
}

static void until(struct truth *t, size_t thread, int64_t time_ns)
{
	int64_t from_ns = t->now[thread].since_ns;
	size_t c = t->now[thread].column;
	while (t->now[thread].is_known && from_ns < time_ns && c < t->columns) {
		int64_t to_ns = t->times_ns[c + 1] < time_ns ? t->times_ns[c + 1] : time_ns;
		from_ns = from_ns > t->times_ns[c] ? from_ns : t->times_ns[c];
		if (to_ns > from_ns)
			*at(t, thread, c, t->now[thread].state) += (double)(to_ns - from_ns);
		from_ns = to_ns > from_ns ? to_ns : from_ns;
		if (t->times_ns[c + 1] <= time_ns)
			c++;
		else
			break;
	}
	t->now[thread].since_ns = time_ns;
	t->now[thread].column = c;
}

static int count_events(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	struct truth *t = ctx;
	for (size_t i = 0; i < count; i++) {
		const struct weft_kernel_event *e = &events[i];
		size_t thread = e->tid - 1000;
		assert_true(thread < THREADS);
		until(t, thread, e->time_ns - t->start_ns);
		t->now[thread].is_known = true;
		switch (e->op) {
		case WEFT_KERNEL_TAKEN:
		case WEFT_KERNEL_WAKE: t->now[thread].state = WANTS; break;
		case WEFT_KERNEL_OFF: t->now[thread].state = e->why == WEFT_OFF_DISK ? DISK : BLOCKED; break;
		default: t->now[thread].state = RUNS;
		}
	}
	return 0;
}

static void find_truth(const struct scene *s, struct truth *t, int64_t *times_ns, size_t columns)
{
	struct weft_kernel_info info;
	*t = (struct truth){.times_ns = times_ns, .columns = columns, .start_ns = s->model->start_ns};
	for (size_t x = 0; x <= columns; x++)
		times_ns[x] = weft_view_time(s->view, (double)x);
	t->ns = calloc(THREADS * columns * STATES, sizeof *t->ns);
	assert_non_null(t->ns);
	assert_int_equal(weft_trace_kernel(s->trace, count_events, t, &info), 1);
	for (size_t i = 0; i < THREADS; i++)
		until(t, i, info.until_ns - t->start_ns);
}

/* ---- Drawing ---- */

/* Returns the area of a paint in a lane between two columns, in square pixels. */
static double area_of(const struct weft_draw_list *list, enum weft_paint paint, double y0, double y1, double x0, double x1)
{
	double area = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		if (p->kind != WEFT_PRIM_RECT || p->layer != 3 || p->paint != paint || (double)p->y0 < y0 || (double)p->y1 > y1)
			continue;
		double left = (double)p->x0 > x0 ? (double)p->x0 : x0, right = (double)p->x1 < x1 ? (double)p->x1 : x1;
		area += right > left ? (right - left) * (double)(p->y1 - p->y0) : 0;
	}
	return area;
}

static void check_density(struct scene *s, const struct weft_draw_options *options, bool is_dense)
{
	static int64_t times_ns[4001];
	struct truth truth;
	const size_t columns = (size_t)s->view->width_px;
	assert_int_equal(draw_scene(s, options), WEFT_OK);
	check_primitives(&s->list);
	find_truth(s, &truth, times_ns, columns);
	const double top = s->view->height_px - 4 - s->view->lanes_px, lane = s->view->lanes_px / THREADS;
	const double bar = 16;
	for (size_t i = 0; i < THREADS; i++) {
		double y0 = top + lane * (double)i, y1 = y0 + lane;
		assert_int_equal(weft_draw_thread_at(s->view, options, y0 + 1), i);
		assert_int_equal(weft_draw_thread_at(s->view, options, y1 - 1), i);
		for (size_t c = 0; c + WINDOW <= columns; c += WINDOW) {
			double ns[STATES] = {0}, all_ns = 0, px = WINDOW * bar / 100;
			bool is_whole = true;
			for (size_t x = c; x < c + WINDOW; x++) {
				double column_ns = 0;
				for (int state = 0; state < STATES; state++) {
					column_ns += *at(&truth, i, x, state);
					ns[state] += *at(&truth, i, x, state);
				}
				is_whole &= column_ns > 0.99 * (double)(times_ns[x + 1] - times_ns[x]);
				all_ns += column_ns;
			}
			if (!is_whole) /* the kernel events do not cover the whole column */
				continue;
			/* Columns may be two pixels wide. */
			double share = WINDOW * bar / all_ns, x0 = (double)c, x1 = (double)(c + WINDOW), slack = px + 1;
			double got = area_of(&s->list, WEFT_PAINT_TIME_RUNNING, y0, y1, x0, x1);
			assert_true(got - ns[RUNS] * share < slack && ns[RUNS] * share - got < slack);
			if (!is_dense)
				continue;
			got = area_of(&s->list, WEFT_PAINT_TIME_READY, y0, y1, x0, x1);
			assert_true(got - ns[WANTS] * share < slack && ns[WANTS] * share - got < slack);
		}
	}
	free(truth.ns);
}

static void test_thread_lane_colours_match_kernel_times(void **state)
{
	(void)state;
	struct scene s;
	const struct weft_draw_options options = {.no_axis = true, .no_metrics = true};
	open_threads(&s, THREADS, "40k", "400k");
	weft_view_resize(s.view, 2048, 1200);
	int64_t middle = s.model->end_ns / 2;
	for (int64_t parts = 1; parts <= 100000; parts *= 10) {
		weft_view_show(s.view, middle - middle / parts, middle + middle / parts);
		check_density(&s, &options, parts == 1);
	}
	close_scene(&s);
}

/* A frame of many threads has a bounded number of shapes; a frame without lanes equals one without threads. */
static void test_lanes_of_many_threads_need_few_primitives(void **state)
{
	(void)state;
	struct scene s;
	open_threads(&s, 64, "20k", "1M");
	weft_view_resize(s.view, 3000, 2000);
	for (int64_t parts = 1; parts <= 1000000; parts *= 10) {
		weft_view_show(
		    s.view, s.model->end_ns / 2 - s.model->end_ns / 2 / parts, s.model->end_ns / 2 + s.model->end_ns / 2 / parts);
		assert_int_equal(draw_scene(&s, NULL), WEFT_OK);
		check_primitives(&s.list);
	}
	const double with_px = s.view->lanes_px;
	const struct weft_draw_options options = {.no_threads = true};
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	assert_true(s.view->lanes_px < with_px);
	assert_int_equal(weft_draw_thread_at(s.view, &options, s.view->height_px - 20), WEFT_NONE);
	close_scene(&s);
}

static void test_draw_list_of_thread_lanes_equals_its_golden(void **state)
{
	(void)state;
	struct scene s;
	open_threads(&s, 3, "600", "150");
	weft_view_resize(s.view, 900, 500);
	const struct weft_draw_options options = {.no_metrics = true};
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	check_golden(&s.list, "threads");
	weft_view_show(s.view, s.model->end_ns / 3, s.model->end_ns / 3 + s.model->end_ns / 20);
	assert_int_equal(draw_scene(&s, &options), WEFT_OK);
	check_texts(&s.list);
	check_golden(&s.list, "threads-zoomed");
	close_scene(&s);
}

/* ---- Texts of a viewer ---- */

static struct weft_viewer *open_viewer(const char *kernel_events)
{
	struct weft_viewer *v;
	assert_int_equal(weft_viewer_open(&v, generate(THREADS, "40k", kernel_events), NULL, NULL), WEFT_OK);
	weft_viewer_set_metrics(v, false);
	weft_viewer_set_names(v, false, 0);
	weft_viewer_resize(v, 1280, 1000, 1);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	return v;
}

static double lane_y(const struct weft_viewer *v, size_t thread)
{
	const struct weft_pane *picture = &v->panes[WEFT_PANE_PICTURE];
	return picture->y_px + picture->height_px - 4 - v->view->lanes_px + v->view->lanes_px / THREADS * ((double)thread + 0.5);
}

static double part_of(const char *tip, const char *what)
{
	const char *found = strstr(tip, what);
	return found ? atof(found + strlen(what)) : 0;
}

/* The tip of a pixel with many intervals shows the sum of each state. */
static void test_tip_of_a_pixel_with_many_intervals_shows_the_share_of_each_state(void **state)
{
	(void)state;
	static int64_t times_ns[4001];
	struct weft_viewer *v = open_viewer("400k");
	const struct scene s = {.trace = v->trace, .model = v->model, .view = v->view};
	struct truth truth;
	char tip[WEFT_TIP_BYTES];
	size_t told = 0;
	find_truth(&s, &truth, times_ns, 1280);
	for (size_t x = 40; x < 1240; x += 7) {
		const size_t thread = x % THREADS;
		double all_ns = 0;
		weft_viewer_motion(v, (double)x + 0.5, lane_y(v, thread));
		assert_true(weft_viewer_tip(v, tip));
		if (!strstr(tip, "In this pixel"))
			continue;
		for (int i = 0; i < STATES; i++)
			all_ns += *at(&truth, thread, x, i);
		char name[32];
		snprintf(name, sizeof name, "(tid %zu)", 1000 + thread);
		assert_non_null(strstr(tip, name));
		const double got = part_of(tip, " ran "), want = *at(&truth, thread, x, RUNS) / all_ns * 100;
		assert_true(got - want < 0.06 && want - got < 0.06);
		const double wanted = part_of(tip, "waited for a CPU "), wants = *at(&truth, thread, x, WANTS) / all_ns * 100;
		assert_true(wanted - wants < 0.06 && wants - wanted < 0.06);
		told++;
	}
	assert_true(told > 100);
	free(truth.ns);
	weft_viewer_destroy(v);
}

/* The pointer and keys show a text about an interval; a click selects the interval and the promise that ran in it. */
static void test_pointer_on_a_thread_interval_shows_its_tip(void **state)
{
	(void)state;
	struct weft_viewer *v = open_viewer("2k");
	char tip[WEFT_TIP_BYTES], said[WEFT_SUMMARY_BYTES];
	static const char *const words[] = {"; gcc (tid 99) had the CPU", " was blocked for ", " in fsync", " woke the thread",
	    "an interrupt woke the thread", " ran for ", "page fault"};
	bool heard[sizeof words / sizeof *words] = {false};
	weft_viewer_show(v, v->model->end_ns / 2, v->model->end_ns / 2 + v->model->end_ns / 20);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	for (size_t thread = 0; thread < THREADS; thread++)
		for (int x = 2; x < 1280; x += 3) {
			weft_viewer_motion(v, x, lane_y(v, thread));
			assert_true(weft_viewer_tip(v, tip));
			assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
			assert_string_equal(weft_viewer_describe(v, said), tip);
			for (size_t i = 0; i < sizeof words / sizeof *words; i++)
				heard[i] |= strstr(tip, words[i]) != NULL;
		}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!heard[i])
			fail_msg("nothing is said of%s", words[i]);
	/* A click in a lane selects an interval, and Escape clears the selection; a click above the lanes selects none. */
	weft_viewer_press(v, 640, lane_y(v, 3), WEFT_BUTTON_PRIMARY, 0, 1);
	weft_viewer_release(v, 640, lane_y(v, 3));
	weft_viewer_leave(v);
	weft_viewer_describe(v, said);
	assert_non_null(strstr(said, "worker-3 (tid 1003)"));
	assert_true(weft_viewer_clear(v));
	assert_string_equal(weft_viewer_describe(v, said), "Nothing is selected");
	weft_viewer_motion(
	    v, 640, v->panes[WEFT_PANE_PICTURE].y_px + v->panes[WEFT_PANE_PICTURE].height_px - v->view->lanes_px - 10);
	assert_false(weft_viewer_tip(v, tip) && strstr(tip, "(tid 1"));
	weft_viewer_leave(v);
	/* Keys select the next or the previous interval in which a promise was off CPU. */
	char first[WEFT_SUMMARY_BYTES], second[WEFT_SUMMARY_BYTES];
	assert_int_equal(weft_viewer_act(v, weft_action_of_key(".", 0)), WEFT_OK);
	weft_viewer_describe(v, first);
	assert_non_null(strstr(first, "had to wait"));
	assert_int_not_equal(v->selected, WEFT_NONE);
	assert_int_equal(weft_viewer_act(v, weft_action_of_key(".", 0)), WEFT_OK);
	weft_viewer_describe(v, second);
	assert_string_not_equal(first, second);
	assert_int_equal(weft_viewer_act(v, weft_action_of_key(",", 0)), WEFT_OK);
	assert_string_equal(weft_viewer_describe(v, said), first);
	weft_viewer_destroy(v);
}

static size_t count_wakes(const struct weft_draw_list *list)
{
	size_t count = 0;
	for (size_t i = 0; i < list->count; i++)
		count += list->prims[i].kind == WEFT_PRIM_TRIANGLE && list->prims[i].paint == WEFT_PAINT_TIME_READY;
	return count;
}

/* If there are few wake-ups, each has an arrow; if there are many, only those of the selected promise have one. */
static void test_wakeup_arrows_are_drawn_if_few_or_of_the_selected_promise(void **state)
{
	(void)state;
	struct weft_viewer *v = open_viewer("2k");
	const struct weft_kernel *k = v->model->kernel;
	size_t drawn = 0;
	assert_int_equal(count_wakes(&v->lists[WEFT_PANE_PICTURE]), 0);
	assert_int_equal(count_wakes(&v->lists[WEFT_PANE_MARKS]), 0);
	for (size_t i = 0; i < k->off_count && i < 200; i++) {
		uint32_t by = WEFT_NONE;
		if (k->offs[i].woken_by)
			assert_int_equal(
			    weft_os_promise_of_tid(v->model, k->offs[i].woken_by, k->offs[i].ready_ns, &by), WEFT_OK);
		if (by == WEFT_NONE || k->offs[i].ready_ns >= k->offs[i].end_ns)
			continue;
		weft_viewer_select(v, by);
		assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
		drawn += count_wakes(&v->lists[WEFT_PANE_MARKS]) > 0;
	}
	assert_true(drawn > 10);
	weft_viewer_clear(v);
	weft_viewer_show(v, v->model->end_ns / 2, v->model->end_ns / 2 + v->model->end_ns / 20);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_int_not_equal(count_wakes(&v->lists[WEFT_PANE_PICTURE]), 0);
	weft_viewer_destroy(v);
}

/* One action shows or hides the lanes; links and the history contain the choice. */
static void test_thread_lanes_can_be_hidden(void **state)
{
	(void)state;
	struct weft_viewer *v = open_viewer("2k");
	char place[1000], tip[WEFT_TIP_BYTES];
	const double y = lane_y(v, THREADS - 1);
	weft_viewer_motion(v, 640, y);
	assert_true(weft_viewer_tip(v, tip) && strstr(tip, "(tid 1007)"));
	assert_int_equal(weft_viewer_act(v, weft_action_of_key("T", WEFT_SHIFT)), WEFT_OK);
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_false(weft_viewer_tip(v, tip) && strstr(tip, "(tid 1007)"));
	weft_viewer_motion(v, 641, y);
	assert_false(weft_viewer_tip(v, tip) && strstr(tip, "(tid 1007)"));
	assert_true(weft_viewer_place(v, place, sizeof place) < sizeof place);
	assert_non_null(strstr(place, "threads=0"));
	assert_true(weft_viewer_back(v));
	assert_int_equal(weft_viewer_draw(v, NULL), WEFT_OK);
	assert_true(weft_viewer_tip(v, tip) && strstr(tip, "(tid 1007)"));
	assert_int_equal(weft_viewer_go(v, place, NULL), WEFT_OK);
	assert_int_equal(weft_viewer_action_state(v, WEFT_ACTION_THREADS), WEFT_ACTION_ENABLED | WEFT_ACTION_IS_SWITCH);
	weft_viewer_destroy(v);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	generator = argv[1];
	golden_dir = argv[2];
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_thread_lane_colours_match_kernel_times),
	    cmocka_unit_test(test_lanes_of_many_threads_need_few_primitives),
	    cmocka_unit_test(test_draw_list_of_thread_lanes_equals_its_golden),
	    cmocka_unit_test(test_tip_of_a_pixel_with_many_intervals_shows_the_share_of_each_state),
	    cmocka_unit_test(test_pointer_on_a_thread_interval_shows_its_tip),
	    cmocka_unit_test(test_wakeup_arrows_are_drawn_if_few_or_of_the_selected_promise),
	    cmocka_unit_test(test_thread_lanes_can_be_hidden)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
