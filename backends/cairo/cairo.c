/* cairo.c: primitives and text.
 *
 * Rectangles that look alike are one path without antialiasing, which Cairo fills quickly; slanted lines are one path each, since
 * many of them in one are slow.  Plain ASCII goes as glyphs whose numbers and advances are looked up once; the rest through
 * Pango, whose layouts are kept.  SPDX-License-Identifier: ISC */
#include "backends/cairo/cairo.h"

#include <pango/pangocairo.h>
#include <stdlib.h>
#include <string.h>

#define LAYOUTS 512u
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

static void draw_text(
    struct weft_cairo *c, cairo_t *cr, const struct weft_draw_list *list, const struct weft_prim *p, int *font_set)
{
	const char *text = list->text + p->first;
	if (!is_plain(c, p->font, text, p->count)) {
		PangoLayout *layout = layout_of(c, p->font, text, p->count);
		cairo_move_to(cr, (double)p->x0, (double)p->y0 - (double)pango_layout_get_baseline(layout) / PANGO_SCALE);
		pango_cairo_show_layout(cr, layout);
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
	double x = (double)p->x0;
	for (uint32_t at = 0; at < p->count;) {
		int count = 0;
		for (; at < p->count && count < 128; at++) {
			unsigned char ch = (unsigned char)text[at];
			glyphs[count++] = (cairo_glyph_t){g->index[ch], x, (double)p->y0};
			x += g->advance[ch];
		}
		cairo_show_glyphs(cr, glyphs, count);
	}
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

void weft_cairo_draw(struct weft_cairo *c, cairo_t *cr, const struct weft_draw_list *list, enum weft_theme theme)
{
	int font_set = -1;
	cairo_save(cr);
	for (size_t i = 0; i < list->count;) {
		const struct weft_prim *p = &list->prims[i];
		uint32_t rgb = weft_theme_rgb(theme, p->paint);
		cairo_set_source_rgba(cr, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0, p->alpha / 255.0);
		cairo_set_antialias(cr, p->kind == WEFT_PRIM_RECT ? CAIRO_ANTIALIAS_NONE : CAIRO_ANTIALIAS_DEFAULT);
		int rects = 0;
		uint8_t kind = p->kind, paint = p->paint, alpha = p->alpha;
		for (; i < list->count; i++) {
			p = &list->prims[i];
			if (p->kind != kind || p->paint != paint || p->alpha != alpha)
				break;
			if (kind == WEFT_PRIM_RECT && ++rects % RECTS_A_PATH == 0)
				cairo_fill(cr);
			if (kind == WEFT_PRIM_RECT)
				cairo_rectangle(
				    cr, (double)p->x0, (double)p->y0, (double)(p->x1 - p->x0), (double)(p->y1 - p->y0));
			else if (kind == WEFT_PRIM_TEXT)
				draw_text(c, cr, list, p, &font_set);
			else
				draw_shape(cr, p);
		}
		if (kind == WEFT_PRIM_RECT)
			cairo_fill(cr);
	}
	cairo_restore(cr);
}
