/* icicle.c: draws icicle graphs, which are flame graphs upside down (see icicle.h).  SPDX-License-Identifier: ISC */
#include "draw/icicle.h"

#include <string.h>

#include "draw/frame.h"

enum { ROW_PX = (int)WEFT_ICICLE_ROW_PX, TOP_PX = 3, NAME_PX = 28, BASELINE_PX = 12, NARROW_ALPHA = 90, MAX_ROWS = 14 };

double weft_icicle_px(const struct weft_icicle *icicle, double available_px)
{
	const uint32_t rows = icicle->deepest < MAX_ROWS ? icicle->deepest + 1 : MAX_ROWS;
	const double whole = TOP_PX + rows * WEFT_ICICLE_ROW_PX, least = TOP_PX + 2 * WEFT_ICICLE_ROW_PX;
	return whole <= available_px ? whole : available_px > least ? available_px : least;
}

/* Returns the depth of the nodes on the first row.  If not all rows fit, the root node is on the second row. */
static uint32_t first_depth(const struct weft_icicle *icicle, double height_px)
{
	const uint32_t rows = (uint32_t)((height_px - TOP_PX) / ROW_PX), depth = icicle->node(icicle->ctx, icicle->root).depth;
	const uint32_t most = icicle->deepest + 1 > rows ? icicle->deepest + 1 - rows : 0;
	return depth <= 1 ? 0 : depth - 1 < most ? depth - 1 : most;
}

static double x_of(const struct weft_icicle_node *root, double width_px, int64_t at_ns)
{
	const double x = (double)(at_ns - root->start_ns) / (double)(root->sum_ns > 0 ? root->sum_ns : 1) * width_px;
	return x < 0 ? 0 : x > width_px ? width_px : x;
}

static void put_name(struct weft__frame *f, enum weft_paint paint, const char *name, int x0, int x1, int y)
{
	char text[208];
	double width;
	if (x1 - x0 < NAME_PX)
		return;
	size_t len = weft__text_clean(text, sizeof text - 4, name, strlen(name));
	len = weft__text_fit(f, WEFT_FONT_SMALL, text, len, sizeof text, x1 - x0 - 8, &width);
	if (len > 0)
		weft__list_text(f, paint, x0 + 4, y + BASELINE_PX, (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
}

struct node_look {
	enum weft_paint paint, text;
	uint8_t alpha;
};

/* Returns the colours of a node: by what its time is or, if graphs are compared, stronger the more its share has changed. */
static struct node_look choose_look(const struct weft_icicle *icicle, const struct weft_icicle_node *node)
{
	enum { WEAKEST = 50, STRONGEST = 230, FULL_CHANGE = 50, LIGHT = 120 };
	const bool is_end = node->own_ns * 2 > node->sum_ns;
	if (!icicle->compares)
		return (struct node_look){!is_end        ? WEFT_PAINT_BAND
					  : icicle->runs ? WEFT_PAINT_TIME_RUNNING
							 : WEFT_PAINT_TIME_WAITING,
		    is_end ? WEFT_PAINT_BACKGROUND : WEFT_PAINT_LABEL, 255};
	const int size = node->change < 0 ? -node->change : node->change;
	if (!size)
		return (struct node_look){WEFT_PAINT_BAND, WEFT_PAINT_LABEL, 255};
	const int alpha = WEAKEST + (size < FULL_CHANGE ? size : FULL_CHANGE) * (STRONGEST - WEAKEST) / FULL_CHANGE;
	return (struct node_look){node->change > 0 ? WEFT_PAINT_FAILED : WEFT_PAINT_RUN,
	    alpha > LIGHT ? WEFT_PAINT_BACKGROUND : WEFT_PAINT_LABEL, (uint8_t)alpha};
}

static void draw_node(struct weft__frame *f, const struct weft_icicle *icicle, const struct weft_icicle_node *root, size_t number,
    int top, uint32_t first)
{
	const struct weft_icicle_node node = icicle->node(icicle->ctx, number);
	const int y = top + TOP_PX + (int)(node.depth - first) * ROW_PX;
	const double from = x_of(root, f->width, node.start_ns), to = x_of(root, f->width, node.start_ns + node.sum_ns);
	const int x0 = weft__floor(from), x1 = weft__floor(to);
	if (node.depth < first || y + ROW_PX > f->height || to <= from)
		return;
	/* Child nodes that are too narrow to be visible form one strip. */
	const int below = weft__floor(x_of(root, f->width, node.start_ns + node.sum_ns - node.own_ns));
	if (below > x0 && y + 2 * ROW_PX <= f->height)
		weft__rect(
		    f, weft__ink(WEFT_LAYER_SHADE, WEFT_PAINT_BAND, NARROW_ALPHA), x0, y + ROW_PX, below, y + 2 * ROW_PX - 1);
	if (x1 - x0 < 2)
		return;
	struct node_look look = choose_look(icicle, &node);
	if (look.alpha < 255) /* the colour below a translucent one must be the same everywhere */
		weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BACKGROUND, 255), x0, y, x1 - 1, y + ROW_PX - 1);
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, look.paint, look.alpha), x0, y, x1 - 1, y + ROW_PX - 1);
	if (icicle->marked == number)
		weft__outline(f, x0 - 1, y - 1, x1, y + ROW_PX);
	put_name(f, look.text, node.depth == 0 ? icicle->title : node.name, x0, x1 - 1, y);
}

static void draw_icicle(struct weft__frame *f, const void *what, int top)
{
	const struct weft_icicle *icicle = what;
	const uint32_t first = first_depth(icicle, f->height - top);
	const struct weft_icicle_node root = icicle->node(icicle->ctx, icicle->root);
	for (size_t i = 0; i < icicle->count; i++)
		draw_node(f, icicle, &root, i, top, first);
}

static struct weft_draw_options options_of(const struct weft_icicle *icicle)
{
	return (struct weft_draw_options){.measure = icicle->measure, .measure_ctx = icicle->measure_ctx};
}

int weft_icicle_draw(
    struct weft_draw_list *list, double width_px, double height_px, const struct weft_icicle *icicle, struct weft_error *err)
{
	struct weft__frame f = {.list = list, .options = options_of(icicle)};
	f.failed = !weft__frame_begin(&f, width_px, height_px);
	if (!f.failed) {
		weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f.width, f.height);
		weft__rect(&f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, 0, f.width, 1);
		draw_icicle(&f, icicle, 0);
	}
	return weft__frame_end(&f, err);
}

int weft_icicle_append(struct weft_draw_list *list, double height_px, const struct weft_icicle *icicle, struct weft_error *err)
{
	const struct weft_draw_options options = options_of(icicle);
	return weft__frame_append(list, height_px, &options, draw_icicle, icicle, err);
}

size_t weft_icicle_hit(const struct weft_icicle *icicle, double width_px, double height_px, double x_px, double y_px)
{
	const struct weft_icicle_node root = icicle->node(icicle->ctx, icicle->root);
	if (y_px < TOP_PX || y_px >= height_px)
		return SIZE_MAX;
	const uint32_t depth = first_depth(icicle, height_px) + (uint32_t)((y_px - TOP_PX) / ROW_PX);
	for (size_t i = 0; i < icicle->count; i++) {
		const struct weft_icicle_node node = icicle->node(icicle->ctx, i);
		if (node.depth == depth && x_of(&root, width_px, node.start_ns) <= x_px &&
		    x_px < x_of(&root, width_px, node.start_ns + node.sum_ns))
			return i;
	}
	return SIZE_MAX;
}
