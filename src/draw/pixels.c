/* pixels.c: paints rectangles without antialiasing, and lines and heads of arrows with antialiasing.
 * SPDX-License-Identifier: ISC */
#include "draw/pixels.h"

#include <assert.h>
#include <string.h>
#include <wchar.h>

#define AT_ONCE 32 /* number of px that are compared and filled together */
#define MAX_BOXES 128

/* Scales two colour channels at once, rounded as Cairo rounds. */
static inline uint32_t scale_pair(uint32_t pair, uint32_t by)
{
	pair = (pair & 0xff00ff) * by + 0x800080;
	return ((pair + (pair >> 8 & 0xff00ff)) >> 8) & 0xff00ff;
}

/* A colour, and its result on the pixel value that was painted last, because most pixels below a rectangle have one colour. */
struct glaze {
	uint32_t rb, ag, rest, under, mixed;
};

static struct glaze glaze_of(uint32_t rgb, uint32_t alpha)
{
	uint32_t rb = scale_pair(rgb, alpha), ag = scale_pair(rgb >> 8 | 0xff0000, alpha);
	return (struct glaze){.rb = rb, .ag = ag, .rest = 255 - alpha, .mixed = rb | ag << 8};
}

static inline uint32_t mix_pixel(struct glaze *g, uint32_t under)
{
	if (under != g->under) {
		g->under = under;
		g->mixed = (g->rb + scale_pair(under, g->rest)) | (g->ag + scale_pair(under >> 8, g->rest)) << 8;
	}
	return g->mixed;
}

static bool has_one_colour(const uint32_t *at, int count)
{
	return !memcmp(at, at + 1, (size_t)(count - 1) * sizeof *at);
}

static void fill_line_part(uint32_t *at, int count, uint32_t colour)
{
	static_assert(sizeof(wchar_t) == sizeof *at, "a wchar_t has the size of a pixel, so that wmemset can fill pixels");
	wmemset((wchar_t *)(void *)at, (wchar_t)colour, (size_t)count);
}

/* Fills one line of pixels of a long rectangle. */
static void fill_line(uint32_t *at, int count, struct glaze *g)
{
	if (g->rest == 0) {
		fill_line_part(at, count, mix_pixel(g, *at));
		return;
	}
	for (; count >= AT_ONCE; at += AT_ONCE, count -= AT_ONCE) {
		if (has_one_colour(at, AT_ONCE))
			fill_line_part(at, AT_ONCE, mix_pixel(g, *at));
		else
			for (int i = 0; i < AT_ONCE; i++)
				at[i] = mix_pixel(g, at[i]);
	}
	for (int i = 0; i < count; i++)
		at[i] = mix_pixel(g, at[i]);
}

/* A clipped rectangle, in pixels of the image. */
struct box {
	int x0, y0, x1, y1;
};

static inline int round_to_pixel(double at)
{
	int i = (int)(at + 0.5);
	return i - (at + 0.5 < i);
}

static inline struct box box_of(const struct weft_pixels *px, const struct weft_prim *p)
{
	struct box b = {(int)p->x0 + (int)px->x, (int)p->y0 + (int)px->y, (int)p->x1 + (int)px->x, (int)p->y1 + (int)px->y};
	if (px->scale != 1) {
		b.x0 = round_to_pixel((double)p->x0 * px->scale + px->x);
		b.y0 = round_to_pixel((double)p->y0 * px->scale + px->y);
		b.x1 = round_to_pixel((double)p->x1 * px->scale + px->x);
		b.y1 = round_to_pixel((double)p->y1 * px->scale + px->y);
	}
	b.x0 = b.x0 > px->x0 ? b.x0 : px->x0;
	b.y0 = b.y0 > px->y0 ? b.y0 : px->y0;
	b.x1 = b.x1 < px->x1 ? b.x1 : px->x1;
	b.y1 = b.y1 < px->y1 ? b.y1 : px->y1;
	return b;
}

static uint32_t *line_at(const struct weft_pixels *px, int x, int y)
{
	return (uint32_t *)(void *)((unsigned char *)px->data + (ptrdiff_t)y * px->stride) + x;
}

/* Fills a part of a line of pixels, which may be short. */
static inline void fill_box_part(uint32_t *at, int count, struct glaze *g)
{
	if (count >= AT_ONCE)
		fill_line(at, count, g);
	else
		for (int i = 0; i < count; i++)
			at[i] = mix_pixel(g, at[i]);
}

static void fill_box(const struct weft_pixels *px, struct box b, struct glaze *g)
{
	for (int y = b.y0; y < b.y1; y++)
		fill_box_part(line_at(px, b.x0, y), b.x1 - b.x0, g);
}

/* Fills boxes within `all`.  If a line of pixels was equal to the line above before painting, the function copies the result of
 * that line, because a copy is cheaper than many narrow rectangles. */
static void fill_same_colour(const struct weft_pixels *px, const struct box *boxes, size_t count, struct box all, struct glaze *g)
{
	const size_t bytes = (size_t)(all.x1 - all.x0) * sizeof(uint32_t);
	bool is_like_above = false;
	for (int y = all.y0; y < all.y1; y++) {
		uint32_t *line = line_at(px, all.x0, y);
		bool next_is_like_it = y + 1 < all.y1 && !memcmp(line, line_at(px, all.x0, y + 1), bytes);
		if (is_like_above)
			memcpy(line, line_at(px, all.x0, y - 1), bytes);
		for (size_t i = 0; !is_like_above && i < count; i++)
			fill_box_part(line_at(px, boxes[i].x0, y), boxes[i].x1 - boxes[i].x0, g);
		is_like_above = next_is_like_it;
	}
}

/* Fills rectangles of one colour that have the same top and bottom, at most MAX_BOXES. */
static void fill_rects(const struct weft_pixels *px, const struct weft_prim *p, const struct weft_prim *end, struct glaze *g)
{
	enum {
		/* Cost of a rectangle on a line of pixels, as the number of px that could be compared and copied in that
		 * time. */
		COST = 48,
		GLAZED_COST = 4 /* of its px */
	};
	struct box boxes[MAX_BOXES], all = box_of(px, p);
	size_t count = 0;
	int64_t cost = 0;
	for (; p < end; p++) {
		struct box b = box_of(px, p);
		if (b.x0 >= b.x1)
			continue;
		boxes[count++] = b;
		all.x0 = b.x0 < all.x0 ? b.x0 : all.x0;
		all.x1 = b.x1 > all.x1 ? b.x1 : all.x1;
		cost += COST + (g->rest ? GLAZED_COST * (b.x1 - b.x0) : 0);
	}
	if (count > 0 && cost > all.x1 - all.x0 && (count > 1 || all.x1 - all.x0 >= AT_ONCE))
		fill_same_colour(px, boxes, count, all, g);
	else
		for (size_t i = 0; i < count; i++)
			fill_box(px, boxes[i], g);
}

/* A convex polygon, in pixels of the image. */
struct polygon {
	double x[4], y[4];
	int corners;
};

enum { HEIGHTS = 4 }; /* number of heights that are sampled within each line of pixels */

/* Computes the interval of a polygon at each sampled height; the interval is empty if from[k] > to[k].  All heights are handled
 * at once, because a division is slow. */
static void cut_polygon(const struct polygon *p, int y, double from[HEIGHTS], double to[HEIGHTS])
{
	for (int k = 0; k < HEIGHTS; k++) {
		from[k] = 1e9;
		to[k] = -1e9;
	}
	for (int i = 0; i < p->corners; i++) {
		const int j = i + 1 < p->corners ? i + 1 : 0;
		const double x0 = p->x[i], y0 = p->y[i], dx = p->x[j] - x0, y1 = p->y[j], dy = y1 - y0;
		if ((y0 <= y && y1 <= y) || (y0 > y + 1 && y1 > y + 1))
			continue;
		for (int k = 0; k < HEIGHTS; k++) {
			const double at = y + (k + 0.5) / HEIGHTS, crossing = x0 + dx * (at - y0) / dy;
			const bool crosses = (y0 <= at) != (y1 <= at);
			from[k] = (crosses & (crossing < from[k])) ? crossing : from[k];
			to[k] = (crosses & (crossing > to[k])) ? crossing : to[k];
		}
	}
}

/* Adds the part of each pixel, from x0 on, that an interval covers, in units of 1 / whole. */
static void add_coverage(uint32_t *covered, int x0, double from, double to, double whole)
{
	int first = (int)(from - x0), last = (int)(to - x0);
	from -= x0;
	to -= x0;
	covered[first] += (uint32_t)(((to < first + 1 ? to : first + 1) - from) * whole);
	for (int i = first + 1; i < last; i++)
		covered[i] += (uint32_t)whole;
	if (last > first)
		covered[last] += (uint32_t)((to - last) * whole);
}

/* Fills a polygon.  The covered part of each pixel, in 256ths, is the sum over the sampled heights of its line. */
static void fill_polygon(const struct weft_pixels *px, const struct polygon *p, uint32_t rgb, uint32_t opacity)
{
	enum { WHOLE = 256 / HEIGHTS, PIECE = 256 };
	double top = p->y[0], bottom = p->y[0];
	for (int i = 1; i < p->corners; i++) {
		top = p->y[i] < top ? p->y[i] : top;
		bottom = p->y[i] > bottom ? p->y[i] : bottom;
	}
	top = top > px->y0 ? top : px->y0;
	bottom = bottom < px->y1 ? bottom : px->y1;
	for (int y = (int)top; y < bottom; y++) {
		double from[HEIGHTS], to[HEIGHTS], left = px->x1, right = px->x0;
		cut_polygon(p, y, from, to);
		for (int k = 0; k < HEIGHTS; k++) {
			from[k] = from[k] > px->x0 ? from[k] : px->x0;
			to[k] = to[k] < px->x1 ? to[k] : px->x1;
			left = from[k] < to[k] && from[k] < left ? from[k] : left;
			right = from[k] < to[k] && to[k] > right ? to[k] : right;
		}
		for (int x = (int)left; x < right; x += PIECE) {
			uint32_t covered[PIECE + 1], *line = line_at(px, x, y);
			int count = right - x < PIECE ? (int)(right - x) + 1 : PIECE;
			memset(covered, 0, (size_t)(count + 1) * sizeof *covered);
			for (int k = 0; k < HEIGHTS; k++) {
				double begin = from[k] > x ? from[k] : x, end = to[k] < x + PIECE ? to[k] : x + PIECE;
				if (begin < end)
					add_coverage(covered, x, begin, end, WHOLE);
			}
			for (int i = 0; i < count && x + i < px->x1; i++) {
				uint32_t alpha = (opacity * covered[i] + 128) >> 8, under = line[i];
				if (alpha)
					line[i] = (scale_pair(rgb, alpha) + scale_pair(under, 255 - alpha)) |
						  (scale_pair(rgb >> 8 | 0xff0000, alpha) + scale_pair(under >> 8, 255 - alpha))
						      << 8;
			}
		}
	}
}

static struct polygon head_of(const struct weft_prim *p)
{
	float left_x, left_y, right_x, right_y;
	weft_prim_head(p, &left_x, &left_y, &right_x, &right_y);
	return (struct polygon){
	    {(double)p->x0, (double)left_x, (double)right_x}, {(double)p->y0, (double)left_y, (double)right_y}, 3};
}

static struct polygon line_of(const struct weft_prim *p)
{
	double dx = (double)(p->x1 - p->x0), dy = (double)(p->y1 - p->y0), length = __builtin_sqrt(dx * dx + dy * dy);
	double half = length > 0 ? (double)p->width / 2 / length : 0;
	double x0 = (double)p->x0, y0 = (double)p->y0, x1 = (double)p->x1, y1 = (double)p->y1;
	return (struct polygon){{x0 - dy * half, x1 - dy * half, x1 + dy * half, x0 + dy * half},
	    {y0 + dx * half, y1 + dx * half, y1 - dx * half, y0 - dx * half}, 4};
}

static void draw_polygon(const struct weft_pixels *px, const struct weft_prim *p, uint32_t rgb)
{
	struct polygon polygon = p->kind == WEFT_PRIM_LINE ? line_of(p) : head_of(p);
	for (int i = 0; i < polygon.corners; i++) {
		polygon.x[i] = polygon.x[i] * px->scale + px->x;
		polygon.y[i] = polygon.y[i] * px->scale + px->y;
	}
	fill_polygon(px, &polygon, rgb, p->alpha);
}

static uint32_t colour_of(const struct weft_pixels *px, enum weft_theme theme, enum weft_paint paint)
{
	uint32_t rgb = weft_theme_rgb(theme, paint);
	return px->is_rgba ? (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16 : rgb;
}

void weft_pixels_fill(const struct weft_pixels *px, enum weft_theme theme, enum weft_paint paint)
{
	const uint32_t colour = colour_of(px, theme, paint) | 0xff000000;
	for (int y = px->y0; y < px->y1; y++)
		fill_line_part(line_at(px, px->x0, y), px->x1 - px->x0, colour);
}

size_t weft_pixels_draw(const struct weft_pixels *px, const struct weft_draw_list *list, size_t first, enum weft_theme theme)
{
	const struct weft_prim *p = list->prims + first, *end = list->prims + list->count;
	struct glaze glaze = {0};
	for (const struct weft_prim *before = NULL, *next; p < end && p->kind != WEFT_PRIM_TEXT; before = p, p = next) {
		uint32_t rgb = colour_of(px, theme, p->paint);
		next = p + 1;
		if (p->kind != WEFT_PRIM_RECT) {
			draw_polygon(px, p, rgb);
			continue;
		}
		if (!before || before->kind != WEFT_PRIM_RECT || before->paint != p->paint || before->alpha != p->alpha)
			glaze = glaze_of(rgb, p->alpha);
		while (next < end && next - p < MAX_BOXES && next->kind == WEFT_PRIM_RECT && next->paint == p->paint &&
		       next->alpha == p->alpha && next->y0 == p->y0 && next->y1 == p->y1)
			next++;
		fill_rects(px, p, next, &glaze);
	}
	return (size_t)(p - list->prims);
}
