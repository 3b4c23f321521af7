/* density_test.c: a constant load looks constant: the drawn density is right in each pixel column.  Compares each pixel column of
 * frame and overview with counts of links and promises. Arguments: the generator, the number of events, and shapes.
 * SPDX-License-Identifier: ISC */
#include "draw/scene.h"

#include <unistd.h>

#include "draw/overview.h"
#include "view/sleep.h"

static const char *generator, *events;
static char **shapes;

static void open_shape(struct scene *s, const char *shape)
{
	char path[] = "density-XXXXXX", command[600];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof command, "'%s' %s --events=%s -o %s", generator, shape, events, path);
	assert_int_equal(system(command), 0);
	*s = (struct scene){0};
	assert_int_equal(weft_trace_open(&s->trace, path, NULL), WEFT_OK);
	unlink(path);
	assert_int_equal(weft_model_build(&s->model, s->trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_layout_create(&s->layout, s->model, NULL), WEFT_OK);
	assert_int_equal(weft_view_create(&s->view, s->model, s->layout, NULL), WEFT_OK);
}

/* Counts the links of each class in each pixel column of the frame. */
static uint32_t *count_links(const struct scene *s)
{
	size_t width = (size_t)s->view->width_px;
	uint32_t *counts = calloc(width * WEFT_ARROWS, sizeof *counts);
	int64_t *from = malloc((width + 1) * sizeof *from);
	assert_true(counts && from);
	for (size_t x = 0; x <= width; x++)
		from[x] = weft_view_time(s->view, (double)x);
	for (size_t i = 0, x = 0; i < s->model->link_count; i++) {
		const struct weft_link *link = &s->model->links[i];
		while (x < width && link->time_ns >= from[x + 1])
			x++;
		if (x == width || link->time_ns < from[x] || !weft__is_arrow(s->layout, link))
			continue;
		counts[x * WEFT_ARROWS + weft__arrow_class(s->model, link)]++;
	}
	free(from);
	return counts;
}

/* Returns the number of pixel columns in which the frame shows a number instead of arrows. */
static size_t check_band(const struct scene *s)
{
	const int width = (int)s->view->width_px;
	const double bottom = s->view->height_px - s->view->lanes_px;
	uint32_t *truth = count_links(s), got[WEFT_ARROWS];
	bool is_many[WEFT_ARROWS] = {0};
	double y = bottom - 22, most = 0, high = 0;
	size_t columns = 0;
	if (!weft_draw_density_at(&s->list, 0, y, got)) {
		free(truth);
		return 0;
	}
	for (int x = 0; x < width; x++) {
		assert_true(weft_draw_density_at(&s->list, x, y, got));
		double sum = 0;
		for (int a = 0; a < WEFT_ARROWS; a++) {
			is_many[a] |= got[a] > 0;
			sum += got[a];
		}
		most = sum > most ? sum : most;
	}
	double *px = calloc((size_t)width, sizeof *px);
	assert_non_null(px);
	for (size_t i = 0; i < s->list.count; i++) {
		const struct weft_prim *p = &s->list.prims[i];
		if (p->kind != WEFT_PRIM_RECT || p->paint < WEFT_PAINT_AWAIT || p->paint > WEFT_PAINT_SIGNAL ||
		    (double)p->y0 < bottom - 34)
			continue;
		px[(int)p->x0] += (double)(p->y1 - p->y0) * p->alpha / 255;
		high = px[(int)p->x0] > high ? px[(int)p->x0] : high;
	}
	for (int x = 0; x < width; x++) {
		double sum = 0;
		assert_true(weft_draw_density_at(&s->list, x, y, got));
		for (int a = 0; a < WEFT_ARROWS; a++)
			if (is_many[a]) {
				assert_int_equal(got[a], truth[x * WEFT_ARROWS + a]);
				sum += truth[x * WEFT_ARROWS + a];
			}
		double said = px[x] * most / high;
		assert_true(said - sum <= 0.01 * sum + 0.001 * most && sum - said <= 0.01 * sum + 0.001 * most);
		columns += sum > 0;
	}
	free(px);
	free(truth);
	return columns;
}

/* Compares the occupied rows in each cell of the strip with the covered area: within 1 % of its height. */
static void check_overview(const struct scene *s)
{
	enum { WIDTH = 1280, CELLS = WIDTH / 2 };
	struct weft_overview *o;
	struct weft_draw_list list = {0};
	static double truth[CELLS + 2], said[CELLS];
	memset(truth, 0, sizeof truth);
	memset(said, 0, sizeof said);
	weft_view_show_all(s->view);
	assert_int_equal(weft_overview_create(&o, s->view, NULL), WEFT_OK);
	assert_int_equal(weft_overview_draw(&list, o, s->view, WIDTH, WEFT_OVERVIEW_PX, NULL), WEFT_OK);
	/* The number of areas equals the number of occupied heights. */
	double rows = s->layout->row_count, areas = rows < 14 ? rows : 14;
	for (size_t i = 0; i < list.count; i++) {
		const struct weft_prim *p = &list.prims[i];
		if (p->paint != WEFT_PAINT_PROMISE || p->alpha < 20 || (double)p->y1 > WEFT_OVERVIEW_PX - 14)
			continue;
		for (int c = (int)p->x0 / 2; c < (int)p->x1 / 2; c++)
			said[c] += (p->alpha - 20) / 200.0 * rows / areas;
	}
	/* truth[] has the differences between neighbouring cells.  Each end of a promise changes two cells, by the part of the
	 * cell that the promise covers. */
	double scale = weft_overview_x(o, WIDTH, s->model->end_ns) - weft_overview_x(o, WIDTH, 0);
	double left = weft_overview_x(o, WIDTH, 0);
	for (uint32_t p = 1; p < s->model->promise_count; p++) {
		const struct weft_promise *promise = &s->model->promises[p];
		int64_t ends[2] = {promise->start_ns, promise->end_ns > promise->start_ns ? promise->end_ns : promise->start_ns};
		for (int e = 0; e < 2 && s->layout->rows[p] != WEFT_NONE; e++) {
			double x = (left + (double)ends[e] / (double)s->model->end_ns * scale) / 2, sign = e ? -1 : 1;
			int cell = (int)x;
			assert_true(cell >= 0 && cell < CELLS);
			truth[cell] += sign * (cell + 1 - x);
			truth[cell + 1] += sign * (x - cell);
		}
	}
	double sum = 0;
	for (int c = 0; c < CELLS; c++) {
		sum += truth[c];
		bool is_edge = c * 2 < left + 2 || c * 2 > left + scale - 4; /* a cell that is partly in the strip */
		if (!is_edge && !(said[c] - sum <= 0.01 * rows + 1 && sum - said[c] <= 0.01 * rows + 1))
			fail_msg("cell %d: %f rows are taken, the overview says %f of %f", c, sum, said[c], rows);
	}
	weft_draw_finish(&list);
	weft_overview_destroy(o);
}

enum {
	STRIP = 3,
	CELL = 2,
	CROWDED = 100 /* rows in a strip */,
	AT_EDGE = 8 /* rows that the frame may count for the next strip */,
	NEAR = 8 /* neighbouring cells that the frame may draw as one cell */,
	STRIPS = 240,
	CELLS = 640
};

/* For each cell of each strip: the occupied rows, as differences, and the ends with failures. */
static double taken[STRIPS][CELLS + 2], wrong[STRIPS][CELLS + 2], rows_of[STRIPS];
static uint8_t alive_alpha[STRIPS][CELLS], wrong_alpha[STRIPS][CELLS];

static int strip_of(const struct scene *s, uint32_t row)
{
	return (int)weft_view_y(s->view, weft_view_slot(s->view, row)) / STRIP;
}

static void take(const struct scene *s, const struct weft_promise *p, int strip)
{
	int64_t ends[2] = {p->start_ns, p->end_ns > p->start_ns ? p->end_ns : p->start_ns};
	for (int e = 0; e < 2; e++) {
		double x = weft_view_x(s->view, ends[e]) / CELL, sign = e ? -1 : 1;
		x = x > 0 ? x < CELLS ? x : CELLS : 0;
		taken[strip][(int)x] += sign * ((int)x + 1 - x);
		taken[strip][(int)x + 1] += sign * (x - (int)x);
	}
	double end = weft_view_x(s->view, ends[1]) / CELL;
	if (weft_promise_went_wrong(p) && end >= 0 && end < CELLS)
		wrong[strip][(int)end]++;
}

static void compare_strips(const struct scene *s)
{
	memset(alive_alpha, 0, sizeof alive_alpha);
	memset(wrong_alpha, 0, sizeof wrong_alpha);
	for (size_t i = 0; i < s->list.count; i++) {
		const struct weft_prim *p = &s->list.prims[i];
		int strip = (int)p->y0 / STRIP, high = (int)(p->y1 - p->y0);
		bool alive = p->paint == WEFT_PAINT_PROMISE && high == 2, ends = p->paint == WEFT_PAINT_FAILED && high == STRIP;
		if (p->kind == WEFT_PRIM_RECT && (int)p->y0 % STRIP == 0 && strip < STRIPS && (alive || ends))
			for (int c = (int)p->x0 / CELL; c < ((int)p->x1 + 1) / CELL; c++)
				(alive ? alive_alpha : wrong_alpha)[strip][c] = p->alpha;
	}
}

/* Returns whether a value is between the nearby minimum and maximum of the truth: rows at an edge may be in the next strip. */
static bool is_near(double truth[STRIPS][CELLS + 2], int strip, int cell, double said_least, double said_most)
{
	double least = 1e9, most = 0;
	for (int i = strip - 1; i <= strip + 1; i++)
		for (int c = cell - NEAR; c <= cell + NEAR; c++) {
			least = truth[i][c] < least ? truth[i][c] : least;
			most = truth[i][c] > most ? truth[i][c] : most;
		}
	return said_most > least && said_least < most;
}

/* Returns whether the frame has red near a cell if promises failed in it. */
static bool is_wrong_near(int strip, int cell)
{
	for (int i = strip - 1; i <= strip + 1; i++)
		if (wrong_alpha[i][cell - 1] || wrong_alpha[i][cell] || wrong_alpha[i][cell + 1])
			return true;
	return false;
}

/* Compares each cell of strips of very low rows with counts.  Returns the number of occupied cells. */
static size_t check_strips(const struct scene *s)
{
	size_t cells = 0;
	memset(taken, 0, sizeof taken);
	memset(wrong, 0, sizeof wrong);
	memset(rows_of, 0, sizeof rows_of);
	compare_strips(s);
	for (uint32_t r = 0; r < s->layout->row_count; r++) {
		int strip = strip_of(s, r);
		rows_of[strip] += weft_view_is_shown(s->view, r);
		for (uint32_t i = s->layout->row_begin[r]; i < s->layout->row_begin[r + 1]; i++)
			take(s, &s->model->promises[s->layout->by_row[i]], strip);
	}
	for (int strip = 0; strip < STRIPS; strip++) {
		double sum = 0, rows = rows_of[strip], none = 0.01 * rows + AT_EDGE;
		for (int c = 0; c < CELLS; c++)
			taken[strip][c] = sum += taken[strip][c];
		/* At an edge a strip contains some rows of the next strip. */
		bool edge = strip == 0 || strip == STRIPS - 1 || rows_of[strip - 1] < CROWDED || rows_of[strip + 1] < CROWDED;
		for (int c = NEAR; c < CELLS - NEAR && rows >= CROWDED && !edge; c++) {
			const uint8_t alive = alive_alpha[strip][c], end = wrong_alpha[strip][c];
			const double least = alive > 140 ? rows * 2 / 3 : alive > 104 ? rows / 8 : 0;
			const double most = alive > 140 ? 2 * rows : alive > 104 ? rows * 2 / 3 : alive ? rows / 8 : 0;
			if (!is_near(taken, strip, c, least - none, most + none))
				fail_msg("strip %d, cell %d: %f of %f rows are taken, the strip says %d", strip, c,
				    taken[strip][c], rows, alive);
			const double parts = end > 88 ? (end + 1) / 32 : 0;
			if (end && !is_near(wrong, strip, c, (parts - 1) / 8 * rows, 1e9))
				fail_msg("strip %d, cell %d: %f failed, the strip says %d", strip, c, wrong[strip][c], end);
			if (wrong[strip][c] > 0 && !is_wrong_near(strip, c))
				fail_msg("strip %d, cell %d: %f failed, and are not there", strip, c, wrong[strip][c]);
			cells += alive > 0;
		}
	}
	return cells;
}

static void test_column_density_matches_promise_counts(void **state)
{
	(void)state;
	size_t columns = 0, cells = 0;
	for (char **shape = shapes; *shape; shape++) {
		struct scene s;
		open_shape(&s, *shape);
		const struct weft_draw_options options = {.no_axis = true};
		for (int64_t parts = 1; parts <= 64; parts *= 8) {
			int64_t middle = s.model->end_ns / 2, half = middle / parts;
			weft_view_show(s.view, middle - half, middle + half);
			assert_int_equal(draw_scene(&s, &options), WEFT_OK);
			columns += check_band(&s);
		}
		weft_view_show_all(s.view);
		weft_view_resize(s.view, CELLS * CELL, 200);
		assert_int_equal(draw_scene(&s, &options), WEFT_OK);
		cells += check_strips(&s);
		weft_view_resize(s.view, CELLS * CELL, STRIPS * STRIP);
		check_overview(&s);
		/* The densities are also right beside a folded sleep. */
		struct weft_lulls *lulls;
		assert_int_equal(weft_lulls_find(&lulls, s.model, NULL), WEFT_OK);
		assert_int_equal(weft_view_fold_sleep(s.view, lulls, NULL), WEFT_OK);
		assert_int_equal(draw_scene(&s, &options), WEFT_OK);
		check_band(&s);
		weft_view_fold_sleep(s.view, NULL, NULL);
		weft_lulls_destroy(lulls);
		close_scene(&s);
	}
	assert_true(columns > 0 && cells > 0);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 1;
	generator = argv[1];
	events = argv[2];
	shapes = argv + 3;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_column_density_matches_promise_counts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
