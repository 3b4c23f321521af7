/* list.c: builds, sorts and prints the draw list.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "draw/frame.h"

uint32_t weft_theme_rgb(enum weft_theme theme, enum weft_paint paint)
{
	static const uint32_t rgb[][2] = {
#define RGB(NAME, light, dark) {light, dark},
	    WEFT_PAINTS(RGB)
#undef RGB
	};
	return rgb[paint][theme == WEFT_THEME_DARK];
}

double weft_font_px(enum weft_font font)
{
	static const double px[] = {[WEFT_FONT_LABEL] = 11, [WEFT_FONT_SMALL] = 9, [WEFT_FONT_BOLD] = 11};
	return px[font];
}

static bool reserve_prims(struct weft__frame *f, size_t more)
{
	struct weft_draw_list *list = f->list;
	if (!f->failed && f->s->prim_capacity - list->count < more &&
	    !weft__vec_grow((void **)&list->prims, &f->s->prim_capacity, list->count + more, sizeof *list->prims))
		f->failed = true;
	return !f->failed;
}

void weft__list_add(struct weft__frame *f, const struct weft_draw_list *list)
{
	if (!reserve_prims(f, list->count))
		return;
	memcpy(f->list->prims + f->list->count, list->prims, list->count * sizeof *list->prims);
	f->list->count += list->count;
}

void weft__list_append(struct weft__frame *f, const struct weft_draw_list *list)
{
	const size_t first = f->list->count;
	const uint32_t texts = (uint32_t)f->list->text_bytes;
	weft__list_add(f, list);
	if (!f->failed && f->s->text_capacity - f->list->text_bytes < list->text_bytes &&
	    !weft__vec_grow((void **)&f->list->text, &f->s->text_capacity, f->list->text_bytes + list->text_bytes, 1))
		f->failed = true;
	if (f->failed)
		return;
	for (size_t i = first; i < f->list->count; i++)
		f->list->prims[i].first += f->list->prims[i].kind == WEFT_PRIM_TEXT ? texts : 0;
	if (list->text_bytes > 0)
		memcpy(f->list->text + texts, list->text, list->text_bytes);
	f->list->text_bytes += list->text_bytes;
}

static struct weft_prim *add_prim(struct weft__frame *f, int kind, struct weft__ink ink)
{
	struct weft_draw_list *list = f->list;
	if (!reserve_prims(f, 1))
		return NULL;
	struct weft_prim *p = &list->prims[list->count++];
	*p = (struct weft_prim){
	    .kind = (uint8_t)kind, .layer = (uint8_t)ink.layer, .paint = (uint8_t)ink.paint, .alpha = (uint8_t)ink.alpha};
	return p;
}

static float round_to_eighth(double x)
{
	return (float)weft__floor(x * 8 + 0.5) / 8;
}

void weft__rect(struct weft__frame *f, struct weft__ink ink, int x0, int y0, int x1, int y1)
{
	x0 = x0 > 0 ? x0 : 0;
	y0 = y0 > 0 ? y0 : 0;
	x1 = x1 < f->width ? x1 : f->width;
	y1 = y1 < f->height ? y1 : f->height;
	if (x0 >= x1 || y0 >= y1 || ink.alpha <= 0)
		return;
	struct weft_prim *p = add_prim(f, WEFT_PRIM_RECT, ink);
	if (p) {
		p->x0 = (float)x0;
		p->y0 = (float)y0;
		p->x1 = (float)x1;
		p->y1 = (float)y1;
	}
}

/* Narrows the part t0..t1 of a line to the part in which `at + t * step` is not negative. */
static bool clip_parameter(double at, double step, double *t0, double *t1)
{
	if (step == 0)
		return at >= 0;
	double t = -at / step;
	if (step > 0)
		*t0 = t > *t0 ? t : *t0;
	else
		*t1 = t < *t1 ? t : *t1;
	return *t0 < *t1;
}

void weft__outline(struct weft__frame *f, int x0, int y0, int x1, int y1)
{
	const struct weft__ink ink = weft__ink(WEFT_LAYER_MARK, WEFT_PAINT_LABEL, 255);
	weft__rect(f, ink, x0, y0, x1, y0 + 2);
	weft__rect(f, ink, x0, y1 - 2, x1, y1);
	weft__rect(f, ink, x0, y0 + 2, x0 + 2, y1 - 2);
	weft__rect(f, ink, x1 - 2, y0 + 2, x1, y1 - 2);
}

void weft__segment(struct weft__frame *f, struct weft__ink ink, double x0, double y0, double x1, double y1, double width)
{
	double t0 = 0, t1 = 1, dx = x1 - x0, dy = y1 - y0;
	const double beyond = 16;
	if (!clip_parameter(x0 + beyond, dx, &t0, &t1) || !clip_parameter(f->width + beyond - x0, -dx, &t0, &t1) ||
	    !clip_parameter(y0 + beyond, dy, &t0, &t1) || !clip_parameter(f->height + beyond - y0, -dy, &t0, &t1))
		return;
	struct weft_prim *p = add_prim(f, WEFT_PRIM_LINE, ink);
	if (p) {
		p->x0 = round_to_eighth(x0 + t0 * dx);
		p->y0 = round_to_eighth(y0 + t0 * dy);
		p->x1 = round_to_eighth(x0 + t1 * dx);
		p->y1 = round_to_eighth(y0 + t1 * dy);
		p->width = round_to_eighth(width);
		weft__cross_put(f, (double)p->x0, (double)p->y0, (double)p->x1, (double)p->y1);
	}
}

void weft__triangle(
    struct weft__frame *f, struct weft__ink ink, double tip_x, double tip_y, double base_x, double base_y, double half_width)
{
	if (tip_x < -16 || tip_x > f->width + 16 || tip_y < -16 || tip_y > f->height + 16)
		return;
	struct weft_prim *p = add_prim(f, WEFT_PRIM_TRIANGLE, ink);
	if (p) {
		p->x0 = round_to_eighth(tip_x);
		p->y0 = round_to_eighth(tip_y);
		p->x1 = round_to_eighth(base_x);
		p->y1 = round_to_eighth(base_y);
		p->width = round_to_eighth(half_width);
	}
}

void weft__list_text(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing)
{
	struct weft_draw_list *list = f->list;
	if (!f->failed && f->s->text_capacity - list->text_bytes < writing.len &&
	    !weft__vec_grow((void **)&list->text, &f->s->text_capacity, list->text_bytes + writing.len, 1))
		f->failed = true;
	struct weft_prim *p = add_prim(f, WEFT_PRIM_TEXT, weft__ink(WEFT_LAYER_TEXT, paint, 255));
	if (!p)
		return;
	p->font = (uint8_t)writing.font;
	p->x0 = round_to_eighth(x);
	p->y0 = round_to_eighth(y);
	p->width = round_to_eighth(writing.width);
	p->first = (uint32_t)list->text_bytes;
	p->count = (uint32_t)writing.len;
	memcpy(list->text + list->text_bytes, writing.text, writing.len);
	list->text_bytes += writing.len;
}

void weft_prim_head(const struct weft_prim *p, float *left_x, float *left_y, float *right_x, float *right_y)
{
	double dx = (double)(p->x1 - p->x0), dy = (double)(p->y1 - p->y0), length = __builtin_sqrt(dx * dx + dy * dy);
	double side = length > 0 ? (double)p->width / length : 0;
	*left_x = round_to_eighth((double)p->x1 - dy * side);
	*left_y = round_to_eighth((double)p->y1 + dx * side);
	*right_x = round_to_eighth((double)p->x1 + dy * side);
	*right_y = round_to_eighth((double)p->y1 - dx * side);
}

/* Sorts the draw list in two passes of a stable radix sort. */
void weft__list_sort(struct weft__frame *f)
{
	struct weft_draw_list *list = f->list;
	struct weft_draw_scratch *s = f->s;
	s->sorted.count = 0;
	if (f->failed || !weft_vec_reserve(&s->sorted, list->count)) {
		f->failed = true;
		return;
	}
	struct weft_prim *from = list->prims, *to = s->sorted.items;
	for (int pass = 0; pass < 2; pass++) {
		uint32_t next[512] = {0};
#define KEY(p) (pass ? (uint32_t)(p).layer << 5 | (p).paint : (uint32_t)(p).alpha >> 4 << 3 | (p).kind)
		_Static_assert(
		    WEFT_PAINT_COUNT <= 32 && WEFT_LAYER_COUNT <= 16, "paints and layers fit into the bits of the key");
		for (size_t i = 0; i < list->count; i++)
			next[KEY(from[i])]++;
		for (uint32_t k = 0, sum = 0; k < 512; k++) {
			uint32_t n = next[k];
			next[k] = sum;
			sum += n;
		}
		for (size_t i = 0; i < list->count; i++)
			to[next[KEY(from[i])]++] = from[i];
#undef KEY
		struct weft_prim *swap = from;
		from = to;
		to = swap;
	}
}

void weft_draw_finish(struct weft_draw_list *list)
{
	struct weft_draw_scratch *s = list->scratch;
	free(list->prims);
	free(list->text);
	if (s) {
		weft_vec_free(&s->sorted);
		weft_vec_free(&s->highlighted);
		weft_vec_free(&s->lines);
		weft_vec_free(&s->captions);
		weft_vec_free(&s->verticals);
		weft_vec_free(&s->bundles);
		weft_vec_free(&s->buckets);
		weft_vec_free(&s->columns);
		weft_vec_free(&s->fold_times);
		weft_vec_free(&s->fold_sums);
		weft_vec_free(&s->thread_times);
		weft_vec_free(&s->planes);
		weft_vec_free(&s->strip_rows);
		weft_vec_free(&s->strip_begin);
		weft_vec_free(&s->strip_marks);
		weft_vec_free(&s->edges);
		weft_vec_free(&s->strip_sums);
		weft_vec_free(&s->alphas);
		weft_vec_free(&s->bits);
		weft_vec_free(&s->line_bits);
		weft_vec_free(&s->cross_bits);
		weft_vec_free(&s->widths);
	}
	free(s);
	*list = (struct weft_draw_list){0};
}

/* Prints a length in eighths of a px without printf("%f"), which rounds differently on some platforms. */
static int print_eighths(char *buf, size_t size, float px)
{
	int e = (int)(px * 8);
	const char *sign = e < 0 ? "-" : "";
	e = e < 0 ? -e : e;
	if (e % 8 == 0)
		return snprintf(buf, size, " %s%d", sign, e / 8);
	return snprintf(buf, size, " %s%d.%d", sign, e / 8, e % 8 * 125);
}

int weft_draw_dump(const struct weft_draw_list *list, char **out, size_t *out_bytes)
{
	static const char *const kinds[] = {"rect", "line", "triangle", "text"};
	static const char *const paints[] = {
#define NAME(name, light, dark) #name,
	    WEFT_PAINTS(NAME)
#undef NAME
	};
	WEFT_VEC(char) text = {0};
	bool done = weft_vec_reserve(&text, 1);
	for (size_t i = 0; done && i < list->count; i++) {
		const struct weft_prim *p = &list->prims[i];
		size_t max_bytes = 256 + (p->kind == WEFT_PRIM_TEXT ? p->count : 0);
		done = weft_vec_reserve(&text, max_bytes + 1);
		if (!done)
			break;
		char *at = text.items + text.count, *end = at + max_bytes;
		at += snprintf(at, (size_t)(end - at), "%d %s", p->layer, kinds[p->kind]);
		for (const char *c = paints[p->paint], *sep = " "; *c; c++, sep = "") {
			if (*sep)
				*at++ = ' ';
			*at++ = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		}
		if (p->alpha < 255)
			at += snprintf(at, (size_t)(end - at), "/%d", p->alpha);
		at += print_eighths(at, (size_t)(end - at), p->x0);
		at += print_eighths(at, (size_t)(end - at), p->y0);
		if (p->kind != WEFT_PRIM_TEXT) {
			at += print_eighths(at, (size_t)(end - at), p->x1);
			at += print_eighths(at, (size_t)(end - at), p->y1);
		}
		if (p->width > 0) {
			*at++ = ' ';
			*at++ = 'w';
			at += print_eighths(at, (size_t)(end - at), p->width);
		}
		if (p->halo)
			at += snprintf(at, (size_t)(end - at), " halo");
		if (p->kind == WEFT_PRIM_TEXT)
			at += snprintf(at, (size_t)(end - at), " %d \"%.*s\"", p->font, (int)p->count, list->text + p->first);
		*at++ = '\n';
		text.count = (size_t)(at - text.items);
	}
	if (!done) {
		weft_vec_free(&text);
		return WEFT_ENOMEM;
	}
	text.items[text.count] = '\0';
	*out = text.items;
	*out_bytes = text.count;
	return WEFT_OK;
}
