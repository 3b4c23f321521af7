/* svg.c: writes a draw list as SVG, with one path for each sequence of primitives of one style.  SPDX-License-Identifier: ISC */
#include "draw/svg.h"

#include <stdio.h>

#include "base/vec.h"

struct out {
	char buf[16384];
	size_t used;
	weft_write_fn *write;
	void *ctx;
	bool failed;
};

static void flush_buffer(struct out *o)
{
	if (o->used > 0 && !o->failed)
		o->failed = o->write(o->ctx, o->buf, o->used) != 0;
	o->used = 0;
}

static void put_char(struct out *o, char c)
{
	if (o->used == sizeof o->buf)
		flush_buffer(o);
	o->buf[o->used++] = c;
}

static void put_string(struct out *o, const char *text)
{
	while (*text)
		put_char(o, *text++);
}

/* Writes a length in eighths of a px with as few digits as possible. */
static void put_px(struct out *o, float px)
{
	static const char *const fraction[] = {"", ".125", ".25", ".375", ".5", ".625", ".75", ".875"};
	char text[32];
	int e = (int)(px * 8), size = e < 0 ? -e : e;
	snprintf(text, sizeof text, "%s%d%s", e < 0 ? "-" : "", size / 8, fraction[size % 8]);
	put_string(o, text);
}

static void put_escaped(struct out *o, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		switch (text[i]) {
		case '&': put_string(o, "&amp;"); break;
		case '<': put_string(o, "&lt;"); break;
		case '>': put_string(o, "&gt;"); break;
		default: put_char(o, text[i]);
		}
}

static void put_paint(struct out *o, const char *property, enum weft_theme theme, const struct weft_prim *p)
{
	char text[96];
	snprintf(text, sizeof text, " %s=\"#%06x\"", property, (unsigned)weft_theme_rgb(theme, p->paint));
	put_string(o, text);
	if (p->alpha < 255) {
		snprintf(text, sizeof text, " %s-opacity=\".%03d\"", property, p->alpha * 1000 / 255);
		put_string(o, text);
	}
}

static bool has_same_style(const struct weft_prim *a, const struct weft_prim *b)
{
	return a->kind == b->kind && a->paint == b->paint && a->alpha == b->alpha &&
	       (a->kind != WEFT_PRIM_LINE || a->width == b->width);
}

static void put_pair(struct out *o, char command, float x, float y)
{
	put_char(o, command);
	put_px(o, x);
	put_char(o, ' ');
	put_px(o, y);
}

static void put_shape(struct out *o, const struct weft_prim *p)
{
	put_pair(o, 'M', p->x0, p->y0);
	if (p->kind == WEFT_PRIM_RECT) {
		put_char(o, 'H');
		put_px(o, p->x1);
		put_char(o, 'V');
		put_px(o, p->y1);
		put_char(o, 'H');
		put_px(o, p->x0);
		put_char(o, 'z');
	} else if (p->kind == WEFT_PRIM_LINE) {
		put_pair(o, 'L', p->x1, p->y1);
	} else {
		float left_x, left_y, right_x, right_y;
		weft_prim_head(p, &left_x, &left_y, &right_x, &right_y);
		put_pair(o, 'L', left_x, left_y);
		put_pair(o, 'L', right_x, right_y);
		put_char(o, 'z');
	}
}

static void put_text(struct out *o, const struct weft_draw_list *list, const struct weft_prim *p)
{
	char size[32];
	put_string(o, "<text x=\"");
	put_px(o, p->x0);
	put_string(o, "\" y=\"");
	put_px(o, p->y0);
	put_string(o, "\" textLength=\"");
	put_px(o, p->width);
	snprintf(size, sizeof size, "\" class=\"f%d%s\">", p->font, p->halo ? " h" : "");
	put_string(o, size);
	put_escaped(o, list->text + p->first, p->count);
	put_string(o, "</text>\n");
}

int weft_svg_write(
    const struct weft_draw_list *list, enum weft_theme theme, weft_write_fn *write, void *write_ctx, struct weft_error *err)
{
	struct out *o = calloc(1, sizeof *o);
	if (!o)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a picture");
	o->write = write;
	o->ctx = write_ctx;
	char head[640];
	int w = (int)list->width_px, h = (int)list->height_px;
	snprintf(head, sizeof head,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
	    "<style>text{font-family:\"DejaVu Sans\",Verdana,sans-serif;white-space:pre}"
	    ".f0{font-size:%dpx}.f1{font-size:%dpx}.f2{font-size:%dpx;font-weight:bold}"
	    ".h{paint-order:stroke;stroke:#%06x;stroke-width:3px;stroke-linejoin:round}</style>\n",
	    w, h, w, h, (int)weft_font_px(WEFT_FONT_LABEL), (int)weft_font_px(WEFT_FONT_SMALL), (int)weft_font_px(WEFT_FONT_BOLD),
	    (unsigned)weft_theme_rgb(theme, WEFT_PAINT_BACKGROUND));
	put_string(o, head);
	for (size_t i = 0; i < list->count && !o->failed;) {
		const struct weft_prim *p = &list->prims[i];
		if (p->kind == WEFT_PRIM_TEXT) {
			put_string(o, "<g");
			put_paint(o, "fill", theme, p);
			put_string(o, ">\n");
			for (const struct weft_prim *first = p; i < list->count && has_same_style(first, &list->prims[i]); i++)
				put_text(o, list, &list->prims[i]);
			put_string(o, "</g>\n");
			continue;
		}
		put_string(o, "<path");
		if (p->kind == WEFT_PRIM_LINE) {
			put_string(o, " fill=\"none\"");
			put_paint(o, "stroke", theme, p);
			put_string(o, " stroke-width=\"");
			put_px(o, p->width);
			put_string(o, "\"");
		} else {
			put_paint(o, "fill", theme, p);
			if (p->kind == WEFT_PRIM_RECT)
				put_string(o, " shape-rendering=\"crispEdges\"");
		}
		put_string(o, " d=\"");
		for (const struct weft_prim *first = p; i < list->count && has_same_style(first, &list->prims[i]); i++)
			put_shape(o, &list->prims[i]);
		put_string(o, "\"/>\n");
	}
	put_string(o, "</svg>\n");
	flush_buffer(o);
	bool failed = o->failed;
	free(o);
	return failed ? weft_error_set(err, WEFT_EIO, "cannot write the picture") : WEFT_OK;
}
