/* cairo.c: primitives and text.
 *
 * Rectangles go right into the pixels of an image, as small arrows' heads do; elsewhere those that look alike are one path
 * without antialiasing, which Cairo fills quickly.  Slanted lines are one path each, since many of them in one are slow.  Plain
 * ASCII goes as glyphs whose numbers and advances are looked up once; the rest through Pango, whose layouts are kept.
 * SPDX-License-Identifier: ISC */
#include "backends/cairo/cairo.h"

#include <assert.h>
#include <pango/pangocairo.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define LAYOUTS 512u
#define AT_ONCE 32 /* px that are compared and filled together */
#define HEAD_MOST_PX 30
#define HALO_PX 3
#define RECTS_A_PATH 128 /* where many overlap, a path costs the square of their number */

struct glyphs {
	cairo_font_face_t *face; /* NULL: everything through Pango */
	unsigned long index[128];
	double advance[128];
};

struct kept_layout {
	uint64_t hash;
	PangoLayout *layout;
};

struct weft_cairo {
	PangoContext *context;
	PangoFontDescription *description[WEFT_FONT_COUNT];
	cairo_font_options_t *options;
	struct glyphs glyphs[WEFT_FONT_COUNT];
	struct kept_layout layouts[LAYOUTS];
};

/* Finds the glyphs that Pango would take. */
static void find_glyphs(struct weft_cairo *c, PangoFontMap *map, enum weft_font font)
{
	struct glyphs *g = &c->glyphs[font];
	PangoFont *loaded = pango_font_map_load_font(map, c->context, c->description[font]);
	cairo_scaled_font_t *scaled = loaded ? pango_cairo_font_get_scaled_font(PANGO_CAIRO_FONT(loaded)) : NULL;
	for (int ch = 32; scaled && ch < 127; ch++) {
		char text[1] = {(char)ch};
		cairo_glyph_t one, *glyph = &one;
		int count = 1;
		cairo_text_extents_t extents;
		if (cairo_scaled_font_text_to_glyphs(scaled, 0, 0, text, 1, &glyph, &count, NULL, NULL, NULL) !=
			CAIRO_STATUS_SUCCESS ||
		    count != 1) {
			if (glyph != &one)
				cairo_glyph_free(glyph);
			scaled = NULL;
			break;
		}
		g->index[ch] = glyph->index;
		cairo_scaled_font_glyph_extents(scaled, glyph, 1, &extents);
		g->advance[ch] = extents.x_advance;
		if (glyph != &one)
			cairo_glyph_free(glyph);
	}
	if (scaled)
		g->face = cairo_font_face_reference(cairo_scaled_font_get_font_face(scaled));
	if (loaded)
		g_object_unref(loaded);
}

int weft_cairo_create(struct weft_cairo **out)
{
	struct weft_cairo *c = calloc(1, sizeof *c);
	if (!c)
		return WEFT_ENOMEM;
	PangoFontMap *map = pango_cairo_font_map_new();
	pango_cairo_font_map_set_resolution(PANGO_CAIRO_FONT_MAP(map), 96);
	c->context = pango_font_map_create_context(map);
	c->options = cairo_font_options_create();
	cairo_font_options_set_antialias(c->options, CAIRO_ANTIALIAS_GRAY);
	cairo_font_options_set_hint_style(c->options, CAIRO_HINT_STYLE_SLIGHT);
	cairo_font_options_set_hint_metrics(c->options, CAIRO_HINT_METRICS_OFF);
	pango_cairo_context_set_font_options(c->context, c->options);
	pango_context_set_round_glyph_positions(c->context, FALSE);
	for (enum weft_font font = 0; font < WEFT_FONT_COUNT; font++) {
		c->description[font] = pango_font_description_from_string("sans-serif");
		pango_font_description_set_absolute_size(c->description[font], weft_font_px(font) * PANGO_SCALE);
		if (font == WEFT_FONT_BOLD)
			pango_font_description_set_weight(c->description[font], PANGO_WEIGHT_BOLD);
		find_glyphs(c, map, font);
	}
	g_object_unref(map);
	*out = c;
	return WEFT_OK;
}

void weft_cairo_destroy(struct weft_cairo *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < LAYOUTS; i++)
		if (c->layouts[i].layout)
			g_object_unref(c->layouts[i].layout);
	for (enum weft_font font = 0; font < WEFT_FONT_COUNT; font++) {
		pango_font_description_free(c->description[font]);
		if (c->glyphs[font].face)
			cairo_font_face_destroy(c->glyphs[font].face);
	}
	cairo_font_options_destroy(c->options);
	g_object_unref(c->context);
	free(c);
}

static bool is_plain(const struct weft_cairo *c, enum weft_font font, const char *text, size_t len)
{
	if (!c->glyphs[font].face)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 32 || (unsigned char)text[i] > 126)
			return false;
	return true;
}

static PangoLayout *layout_of(struct weft_cairo *c, enum weft_font font, const char *text, size_t len)
{
	uint64_t hash = 14695981039346656037u + (uint64_t)font;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
	struct kept_layout *kept = &c->layouts[(hash >> 32) % LAYOUTS];
	if (kept->layout && kept->hash == hash)
		return kept->layout;
	if (!kept->layout) {
		kept->layout = pango_layout_new(c->context);
		pango_layout_set_single_paragraph_mode(kept->layout, TRUE);
	}
	pango_layout_set_font_description(kept->layout, c->description[font]);
	pango_layout_set_text(kept->layout, text, (int)len);
	kept->hash = hash;
	return kept->layout;
}

double weft_cairo_measure(void *ctx, enum weft_font font, const char *text, size_t len)
{
	struct weft_cairo *c = ctx;
	if (is_plain(c, font, text, len)) {
		double width = 0;
		for (size_t i = 0; i < len; i++)
			width += c->glyphs[font].advance[(unsigned char)text[i]];
		return width;
	}
	int width;
	pango_layout_get_size(layout_of(c, font, text, len), &width, NULL);
	return (double)width / PANGO_SCALE;
}

/* A text, so far from where it stands. */
static void draw_text_at(struct weft_cairo *c, cairo_t *cr, const char *text, const struct weft_prim *p, double dx, double dy,
    int *font_set, bool as_path)
{
	if (!is_plain(c, p->font, text, p->count)) {
		PangoLayout *layout = layout_of(c, p->font, text, p->count);
		cairo_move_to(
		    cr, (double)p->x0 + dx, (double)p->y0 + dy - (double)pango_layout_get_baseline(layout) / PANGO_SCALE);
		(as_path ? pango_cairo_layout_path : pango_cairo_show_layout)(cr, layout);
		*font_set = -1;
		return;
	}
	const struct glyphs *g = &c->glyphs[p->font];
	if (*font_set != p->font) {
		cairo_set_font_face(cr, g->face);
		cairo_set_font_size(cr, weft_font_px(p->font));
		cairo_set_font_options(cr, c->options);
		*font_set = p->font;
	}
	cairo_glyph_t glyphs[128];
	double x = (double)p->x0 + dx;
	for (uint32_t at = 0; at < p->count;) {
		int count = 0;
		for (; at < p->count && count < 128; at++) {
			unsigned char ch = (unsigned char)text[at];
			glyphs[count++] = (cairo_glyph_t){g->index[ch], x, (double)p->y0 + dy};
			x += g->advance[ch];
		}
		(as_path ? cairo_glyph_path : cairo_show_glyphs)(cr, glyphs, count);
	}
}

static void set_colour(cairo_t *cr, uint32_t rgb, uint8_t alpha)
{
	cairo_set_source_rgba(cr, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, alpha / 255.0);
}

/* In pixels a halo is the same text around it: glyphs that are kept are cheaper than outlines.  In a document it is an outline,
 * so that a text is found once. */
static void draw_text(struct weft_cairo *c, cairo_t *cr, const struct weft_draw_list *list, const struct weft_prim *p,
    enum weft_theme theme, int *font_set)
{
	static const double around[][2] = {{-1.5, 0}, {1.5, 0}, {0, -1.5}, {0, 1.5}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
	const char *text = list->text + p->first;
	if (p->halo) {
		bool is_document = cairo_surface_get_type(cairo_get_group_target(cr)) == CAIRO_SURFACE_TYPE_PDF;
		set_colour(cr, weft_theme_rgb(theme, WEFT_PAINT_BACKGROUND), 255);
		for (size_t i = 0; !is_document && i < sizeof around / sizeof *around; i++)
			draw_text_at(c, cr, text, p, around[i][0], around[i][1], font_set, false);
		if (is_document) {
			draw_text_at(c, cr, text, p, 0, 0, font_set, true);
			cairo_set_line_width(cr, HALO_PX);
			cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
			cairo_stroke(cr);
		}
		set_colour(cr, weft_theme_rgb(theme, p->paint), p->alpha);
	}
	draw_text_at(c, cr, text, p, 0, 0, font_set, false);
}

static void draw_shape(cairo_t *cr, const struct weft_prim *p)
{
	if (p->kind == WEFT_PRIM_LINE) {
		cairo_move_to(cr, (double)p->x0, (double)p->y0);
		cairo_line_to(cr, (double)p->x1, (double)p->y1);
		cairo_set_line_width(cr, (double)p->width);
		cairo_stroke(cr);
		return;
	}
	float left_x, left_y, right_x, right_y;
	weft_prim_head(p, &left_x, &left_y, &right_x, &right_y);
	cairo_move_to(cr, (double)p->x0, (double)p->y0);
	cairo_line_to(cr, (double)left_x, (double)left_y);
	cairo_line_to(cr, (double)right_x, (double)right_y);
	cairo_close_path(cr);
	cairo_fill(cr);
}

/* The pixels that a context draws on, if they are at hand: it spares Cairo what costs more than small rectangles themselves. */
struct pixels {
	cairo_surface_t *surface; /* NULL: they are not */
	unsigned char *data;
	int stride, dx, dy; /* from the list's px to the image's */
	int x0, y0, x1, y1; /* what may be drawn on */
	bool are_taken;     /* since Cairo drew last */
};

static void take_pixels(struct pixels *px)
{
	if (!px->are_taken)
		cairo_surface_flush(px->surface);
	px->are_taken = true;
}

static void leave_pixels(struct pixels *px)
{
	if (px->are_taken)
		cairo_surface_mark_dirty(px->surface);
	px->are_taken = false;
}

static struct pixels pixels_of(cairo_t *cr)
{
	struct pixels p = {.surface = cairo_get_group_target(cr)};
	cairo_matrix_t m;
	double scale_x, scale_y, x, y;
	if (cairo_surface_get_type(p.surface) != CAIRO_SURFACE_TYPE_IMAGE)
		return (struct pixels){0};
	cairo_format_t format = cairo_image_surface_get_format(p.surface);
	cairo_get_matrix(cr, &m);
	cairo_surface_get_device_scale(p.surface, &scale_x, &scale_y);
	cairo_surface_get_device_offset(p.surface, &x, &y);
	m.x0 += x;
	m.y0 += y;
	p.dx = (int)m.x0;
	p.dy = (int)m.y0;
	bool plain = m.xx == 1 && m.yy == 1 && m.xy == 0 && m.yx == 0 && m.x0 == p.dx && m.y0 == p.dy && scale_x == 1 &&
		     scale_y == 1 && (format == CAIRO_FORMAT_RGB24 || format == CAIRO_FORMAT_ARGB32) &&
		     cairo_get_operator(cr) == CAIRO_OPERATOR_OVER;
	cairo_rectangle_list_t *clip = cairo_copy_clip_rectangle_list(cr);
	plain = plain && clip->status == CAIRO_STATUS_SUCCESS && clip->num_rectangles == 1;
	if (plain) {
		const cairo_rectangle_t *r = clip->rectangles;
		int width = cairo_image_surface_get_width(p.surface), height = cairo_image_surface_get_height(p.surface);
		p.x0 = (int)r->x + p.dx;
		p.y0 = (int)r->y + p.dy;
		p.x1 = (int)(r->x + r->width) + p.dx;
		p.y1 = (int)(r->y + r->height) + p.dy;
		p.x0 = p.x0 > 0 ? p.x0 : 0;
		p.y0 = p.y0 > 0 ? p.y0 : 0;
		p.x1 = p.x1 < width ? p.x1 : width;
		p.y1 = p.y1 < height ? p.y1 : height;
		plain = r->x == (int)r->x && r->y == (int)r->y && r->width == (int)r->width && r->height == (int)r->height;
		p.data = cairo_image_surface_get_data(p.surface);
		p.stride = cairo_image_surface_get_stride(p.surface);
	}
	cairo_rectangle_list_destroy(clip);
	return plain && p.data ? p : (struct pixels){0};
}

/* Two channels at once, rounded as Cairo rounds. */
static uint32_t scale_pair(uint32_t pair, uint32_t by)
{
	pair = (pair & 0xff00ff) * by + 0x800080;
	return ((pair + (pair >> 8 & 0xff00ff)) >> 8) & 0xff00ff;
}

/* A colour, and what it makes of the last that was under it: most of what is under a rectangle has one colour. */
struct glaze {
	uint32_t rb, ag, rest, under, mixed;
};

static inline uint32_t mix(struct glaze *g, uint32_t under)
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

static void fill(uint32_t *at, int count, uint32_t colour)
{
	static_assert(sizeof(wchar_t) == sizeof *at, "wmemset fills pixels, with the widest instructions that there are");
	wmemset((wchar_t *)(void *)at, (wchar_t)colour, (size_t)count);
}

/* A line of a rectangle that is long. */
static void fill_line(uint32_t *at, int count, struct glaze *g)
{
	if (g->rest == 0) {
		fill(at, count, mix(g, *at));
		return;
	}
	for (; count >= AT_ONCE; at += AT_ONCE, count -= AT_ONCE) {
		if (has_one_colour(at, AT_ONCE))
			fill(at, AT_ONCE, mix(g, *at));
		else
			for (int i = 0; i < AT_ONCE; i++)
				at[i] = mix(g, at[i]);
	}
	for (int i = 0; i < count; i++)
		at[i] = mix(g, at[i]);
}

/* A rectangle as far as it may be drawn on, in the image's px. */
struct box {
	int x0, y0, x1, y1;
};

static struct box box_of(const struct pixels *px, const struct weft_prim *p)
{
	struct box b = {(int)p->x0 + px->dx, (int)p->y0 + px->dy, (int)p->x1 + px->dx, (int)p->y1 + px->dy};
	b.x0 = b.x0 > px->x0 ? b.x0 : px->x0;
	b.y0 = b.y0 > px->y0 ? b.y0 : px->y0;
	b.x1 = b.x1 < px->x1 ? b.x1 : px->x1;
	b.y1 = b.y1 < px->y1 ? b.y1 : px->y1;
	return b;
}

static uint32_t *line_at(const struct pixels *px, int x, int y)
{
	return (uint32_t *)(void *)(px->data + (ptrdiff_t)y * px->stride) + x;
}

static void fill_box(const struct pixels *px, struct box b, struct glaze *g)
{
	const int count = b.x1 - b.x0;
	for (int y = b.y0; y < b.y1; y++) {
		uint32_t *at = line_at(px, b.x0, y);
		if (count >= AT_ONCE)
			fill_line(at, count, g);
		else
			for (int i = 0; i < count; i++)
				at[i] = mix(g, at[i]);
	}
}

/* Rectangles of one colour that begin and end at the same heights, up to place `end`.  Where a line has under it what the line
 * above had, it becomes what that one became: a copy is cheaper than many narrow rectangles. */
static void fill_rects(const struct pixels *px, const struct weft_prim *p, const struct weft_prim *end, struct glaze *g)
{
	enum { COST = 48 /* of a rectangle on a line, in px that are compared and copied */, GLAZED_COST = 4 /* of its px */ };
	struct box all = box_of(px, p);
	int64_t cost = 0;
	for (const struct weft_prim *q = p; q < end; q++) {
		struct box b = box_of(px, q);
		all.x0 = b.x0 < all.x0 ? b.x0 : all.x0;
		all.x1 = b.x1 > all.x1 ? b.x1 : all.x1;
		cost += COST + (g->rest && b.x1 > b.x0 ? GLAZED_COST * (b.x1 - b.x0) : 0);
	}
	if (all.x1 <= all.x0)
		return;
	if (cost <= all.x1 - all.x0 || (end - p == 1 && all.x1 - all.x0 < AT_ONCE)) {
		for (; p < end; p++)
			fill_box(px, box_of(px, p), g);
		return;
	}
	const size_t bytes = (size_t)(all.x1 - all.x0) * sizeof(uint32_t);
	bool is_like_above = false;
	for (int y = all.y0; y < all.y1; y++) {
		uint32_t *line = line_at(px, all.x0, y);
		bool next_is_like_it = y + 1 < all.y1 && !memcmp(line, line_at(px, all.x0, y + 1), bytes);
		if (is_like_above)
			memcpy(line, line_at(px, all.x0, y - 1), bytes);
		for (const struct weft_prim *q = p; !is_like_above && q < end; q++) {
			struct box b = box_of(px, q);
			fill_box(px, (struct box){b.x0, y, b.x1, y + 1}, g);
		}
		is_like_above = next_is_like_it;
	}
}

/* How much of each pixel of a line a triangle covers, in 256ths; from y on. */
static void cover(const double x[3], const double y[3], int line_y, int left, uint32_t covered[HEAD_MOST_PX + 2])
{
	enum { LINES = 4, LINE = 256 / LINES };
	for (int k = 0; k < LINES; k++) {
		double at = line_y + (k + 0.5) / LINES, from = 1e9, to = -1e9;
		for (int i = 0; i < 3; i++) {
			int j = (i + 1) % 3;
			if ((y[i] <= at) == (y[j] <= at))
				continue;
			double crossing = x[i] + (x[j] - x[i]) * (at - y[i]) / (y[j] - y[i]) - left;
			from = crossing < from ? crossing : from;
			to = crossing > to ? crossing : to;
		}
		if (from > to)
			continue;
		int first = (int)from, last = (int)to;
		covered[first] += (uint32_t)(((to < first + 1 ? to : first + 1) - from) * LINE);
		for (int i = first + 1; i < last; i++)
			covered[i] += LINE;
		if (last > first)
			covered[last] += (uint32_t)((to - last) * LINE);
	}
}

/* An arrow's head, right into the pixels; false if it is no small one. */
static bool fill_head(const struct pixels *px, const struct weft_prim *p, uint32_t rgb)
{
	float left_x, left_y, right_x, right_y;
	weft_prim_head(p, &left_x, &left_y, &right_x, &right_y);
	const double x[3] = {(double)p->x0 + px->dx, (double)left_x + px->dx, (double)right_x + px->dx};
	const double y[3] = {(double)p->y0 + px->dy, (double)left_y + px->dy, (double)right_y + px->dy};
	double least_x = x[0], most_x = x[0], least_y = y[0], most_y = y[0];
	for (int i = 1; i < 3; i++) {
		least_x = x[i] < least_x ? x[i] : least_x;
		most_x = x[i] > most_x ? x[i] : most_x;
		least_y = y[i] < least_y ? y[i] : least_y;
		most_y = y[i] > most_y ? y[i] : most_y;
	}
	if (least_x < px->x0 || least_y < px->y0 || most_x > px->x1 || most_y > px->y1 || most_x - least_x > HEAD_MOST_PX)
		return false;
	int left = (int)least_x, right = (int)most_x < px->x1 ? (int)most_x : px->x1 - 1;
	for (int line_y = (int)least_y; line_y < most_y; line_y++) {
		uint32_t covered[HEAD_MOST_PX + 2] = {0};
		uint32_t *line = (uint32_t *)(void *)(px->data + (ptrdiff_t)line_y * px->stride);
		cover(x, y, line_y, left, covered);
		for (int i = left; i <= right; i++) {
			uint32_t alpha = (p->alpha * covered[i - left] + 128) >> 8, under = line[i];
			line[i] = (scale_pair(rgb, alpha) + scale_pair(under, 255 - alpha)) |
				  (scale_pair(rgb >> 8 | 0xff0000, alpha) + scale_pair(under >> 8, 255 - alpha)) << 8;
		}
	}
	return true;
}

/* Primitives of one kind, colour and opacity. */
struct alike {
	const struct weft_prim *first, *end;
	uint32_t rgb;
};

/* For those that Cairo draws. */
static void set_look(cairo_t *cr, struct pixels *px, const struct alike *a)
{
	leave_pixels(px);
	set_colour(cr, a->rgb, a->first->alpha);
	cairo_set_antialias(cr, a->first->kind == WEFT_PRIM_RECT ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
}

/* Arrows' heads. */
static void draw_heads(cairo_t *cr, struct pixels *px, const struct alike *a)
{
	for (const struct weft_prim *p = a->first; p < a->end; p++) {
		if (px->surface)
			take_pixels(px);
		if (px->surface && fill_head(px, p, a->rgb))
			continue;
		set_look(cr, px, a);
		draw_shape(cr, p);
	}
}

static void draw_rects(cairo_t *cr, struct pixels *px, const struct alike *a)
{
	const struct weft_prim *p = a->first;
	const uint32_t alpha = p->alpha, rb = scale_pair(a->rgb, alpha), ag = scale_pair(a->rgb >> 8 | 0xff0000, alpha);
	struct glaze glaze = {.rb = rb, .ag = ag, .rest = 255 - alpha, .mixed = rb | ag << 8};
	int count = 0;
	if (px->surface) {
		take_pixels(px);
		for (const struct weft_prim *next; p < a->end; p = next) {
			for (next = p + 1; next < a->end && next->y0 == p->y0 && next->y1 == p->y1;)
				next++;
			fill_rects(px, p, next, &glaze);
		}
		return;
	}
	set_look(cr, px, a);
	for (; p < a->end; p++) {
		cairo_rectangle(cr, (double)p->x0, (double)p->y0, (double)(p->x1 - p->x0), (double)(p->y1 - p->y0));
		if (++count % RECTS_A_PATH == 0)
			cairo_fill(cr);
	}
	cairo_fill(cr);
}

void weft_cairo_draw(struct weft_cairo *c, cairo_t *cr, const struct weft_draw_list *list, enum weft_theme theme)
{
	struct pixels pixels = pixels_of(cr);
	int font_set = -1;
	cairo_save(cr);
	for (size_t i = 0; i < list->count;) {
		const struct weft_prim *p = &list->prims[i];
		size_t end = i + 1;
		while (end < list->count && list->prims[end].kind == p->kind && list->prims[end].paint == p->paint &&
		       list->prims[end].alpha == p->alpha)
			end++;
		const struct alike alike = {p, list->prims + end, weft_theme_rgb(theme, p->paint)};
		i = end;
		if (p->kind == WEFT_PRIM_RECT) {
			draw_rects(cr, &pixels, &alike);
			continue;
		}
		if (p->kind == WEFT_PRIM_TRIANGLE) {
			draw_heads(cr, &pixels, &alike);
			continue;
		}
		set_look(cr, &pixels, &alike);
		for (; p < alike.end; p++) {
			if (p->kind == WEFT_PRIM_TEXT)
				draw_text(c, cr, list, p, theme, &font_set);
			else
				draw_shape(cr, p);
		}
	}
	leave_pixels(&pixels);
	cairo_restore(cr);
}
