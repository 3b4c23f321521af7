/* cairo.c: draws the primitives of a draw list with Cairo, and texts with Pango.
 *
 * On an image, everything except texts is written directly into the pixels (draw/pixels.h).  On other surfaces, rectangles of
 * one style form one path without antialiasing, which Cairo fills fast.  Each slanted line is a path of its own, because a path
 * with many slanted lines is slow.  Plain ASCII text is drawn as glyphs, whose numbers and advances are looked up once; other
 * text is drawn by Pango, with cached layouts. SPDX-License-Identifier: ISC */
#include "backends/cairo/cairo.h"

#include <pango/pangocairo.h>
#include <stdlib.h>
#include <string.h>

#include "draw/pixels.h"

#define LAYOUTS 512u
#define HALO_PX 3
/* Maximum number of rectangles in a path, because filling overlapping rectangles takes time quadratic in their number. */
#define RECTS_A_PATH 128

struct glyphs {
	cairo_font_face_t *face; /* font face for ASCII text; NULL if Pango draws all text */
	unsigned long index[128];
	double advance[128];
};

struct cached_layout {
	uint64_t hash;
	PangoLayout *layout;
};

struct weft_cairo {
	PangoContext *context;
	PangoFontDescription *description[WEFT_FONT_COUNT];
	cairo_font_options_t *options;
	struct glyphs glyphs[WEFT_FONT_COUNT];
	struct cached_layout layouts[LAYOUTS];
};

/* Finds the glyphs that Pango would use for ASCII characters. */
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
	struct cached_layout *cached = &c->layouts[(hash >> 32) % LAYOUTS];
	if (cached->layout && cached->hash == hash)
		return cached->layout;
	if (!cached->layout) {
		cached->layout = pango_layout_new(c->context);
		pango_layout_set_single_paragraph_mode(cached->layout, TRUE);
	}
	pango_layout_set_font_description(cached->layout, c->description[font]);
	pango_layout_set_text(cached->layout, text, (int)len);
	cached->hash = hash;
	return cached->layout;
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

/* Draws a text, moved by an offset from its position. */
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

/* Draws a text.  In pixels, a halo is drawn as the same text several times around the text, because cached glyphs are cheaper
 * than outlines.  In a document, the halo is an outline of the text, so that a search finds the text only once. */
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

/* Pixels on which a Cairo context draws, if they are accessible.  The pixels are written directly, because for small rectangles
 * Cairo's overhead exceeds the cost of filling. */
struct pixels {
	cairo_surface_t *surface; /* NULL: not accessible */
	struct weft_pixels image;
	bool is_begun; /* whether pixels were written directly since Cairo's last drawing */
};

static void begin_pixels(struct pixels *px)
{
	if (!px->is_begun)
		cairo_surface_flush(px->surface);
	px->is_begun = true;
}

static void end_pixels(struct pixels *px)
{
	if (px->is_begun)
		cairo_surface_mark_dirty(px->surface);
	px->is_begun = false;
}

static bool is_whole(double x)
{
	return x == (int)x;
}

/* Sets the clip rectangle; returns false if the clip is not one rectangle of whole pixels. */
static bool clip_to(struct weft_pixels *image, const cairo_rectangle_list_t *clip, int width, int height)
{
	if (clip->status != CAIRO_STATUS_SUCCESS || clip->num_rectangles != 1)
		return false;
	const cairo_rectangle_t *r = clip->rectangles;
	double x0 = r->x * image->scale + image->x, y0 = r->y * image->scale + image->y;
	double x1 = x0 + r->width * image->scale, y1 = y0 + r->height * image->scale;
	if (!is_whole(x0) || !is_whole(y0) || !is_whole(x1) || !is_whole(y1))
		return false;
	image->x0 = x0 > 0 ? (int)x0 : 0;
	image->y0 = y0 > 0 ? (int)y0 : 0;
	image->x1 = x1 < width ? (int)x1 : width;
	image->y1 = y1 < height ? (int)y1 : height;
	return true;
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
	p.image = (struct weft_pixels){.data = cairo_image_surface_get_data(p.surface),
	    .stride = cairo_image_surface_get_stride(p.surface),
	    .x = m.x0 + x,
	    .y = m.y0 + y,
	    .scale = m.xx};
	bool plain = m.xx > 0 && m.yy == m.xx && m.xy == 0 && m.yx == 0 && is_whole(p.image.x) && is_whole(p.image.y) &&
		     scale_x == 1 && scale_y == 1 && (format == CAIRO_FORMAT_RGB24 || format == CAIRO_FORMAT_ARGB32) &&
		     cairo_get_operator(cr) == CAIRO_OPERATOR_OVER && p.image.data;
	cairo_rectangle_list_t *clip = cairo_copy_clip_rectangle_list(cr);
	plain =
	    plain && clip_to(&p.image, clip, cairo_image_surface_get_width(p.surface), cairo_image_surface_get_height(p.surface));
	cairo_rectangle_list_destroy(clip);
	return plain ? p : (struct pixels){0};
}

/* Draws rectangles that all have the same style. */
static void draw_rects(cairo_t *cr, const struct weft_prim *p, const struct weft_prim *end)
{
	int count = 0;
	for (; p < end; p++) {
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
		if (pixels.surface && p->kind != WEFT_PRIM_TEXT) {
			begin_pixels(&pixels);
			i = weft_pixels_draw(&pixels.image, list, i, theme);
			continue;
		}
		while (end < list->count && list->prims[end].kind == p->kind && list->prims[end].paint == p->paint &&
		       list->prims[end].alpha == p->alpha)
			end++;
		end_pixels(&pixels);
		set_colour(cr, weft_theme_rgb(theme, p->paint), p->alpha);
		cairo_set_antialias(cr, p->kind == WEFT_PRIM_RECT ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
		if (p->kind == WEFT_PRIM_RECT)
			draw_rects(cr, p, list->prims + end);
		for (; p < list->prims + end && p->kind != WEFT_PRIM_RECT; p++) {
			if (p->kind == WEFT_PRIM_TEXT)
				draw_text(c, cr, list, p, theme, &font_set);
			else
				draw_shape(cr, p);
		}
		i = end;
	}
	end_pixels(&pixels);
	cairo_restore(cr);
}
