/* arrows.c: what promises did to each other.
 *
 * Where there are many, those that begin close together and end close together are one, stronger and with their number.  Where
 * there are more than can be looked at in a frame, every nth is looked at and stands for n, which the number says by a "~".
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "draw/frame.h"

#define SLICE_PX 32     /* an n is chosen for each slice of the picture and class of arrows */
#define SLICE_ARROWS 32 /* of one class that are looked at in a slice */
#define SLICES 1025
#define SLICE_BUNDLES 6 /* so many ends in a slice are no crowd, in which cells grow until there is room for all */
#define LEAST_CELL_PX 2
#define FEW_ARROWS 2000 /* of one class: all are looked at */
#define MOST_BUNDLES 420
#define MOST_NUMBERS 40
#define LEAST_NUMBER 5 /* fewer can be counted by eye when one zooms in; twice that in a crowd */
#define HEAD_PX 7.0
#define SIGN_PX 16.0 /* shorter ones have no room for more than a head */
#define SHORT_PX 3.0 /* shorter ones are but a head */

/* What kinds differ in besides colour, for eyes that do not tell these apart. */
enum sign { PLAIN, DOT /* where it begins */, TWICE /* two heads */, BAR /* at its tip */ };

static const struct {
	enum weft_paint paint;
	enum sign sign;
	double length, width; /* of the head, against a plain one */
} LOOK[] = {
    [WEFT_ARROW_AWAIT] = {WEFT_PAINT_AWAIT, DOT, 0.85, 0.85},
    [WEFT_ARROW_READ] = {WEFT_PAINT_READ, PLAIN, 1.3, 0.7},
    [WEFT_ARROW_RESOLVE] = {WEFT_PAINT_RESOLVE, PLAIN, 1, 1.1},
    [WEFT_ARROW_SIGNAL] = {WEFT_PAINT_SIGNAL, TWICE, 0.8, 1},
    [WEFT_ARROW_READ_FAILED] = {WEFT_PAINT_READ_FAILED, BAR, 1, 1},
};

/* An arrow that spans much more than the screen says nothing any more. */
static double fade(const struct weft__frame *f, double x0, double x1)
{
	double screens = (x1 > x0 ? x1 - x0 : x0 - x1) / f->width;
	return screens < 0.25 ? 1 : screens >= 2 ? 0 : (2 - screens) / 1.75;
}

/* The slice in which it ends; all that lies beyond the picture shares the last. */
static size_t slice_of(const struct weft__bundle *b)
{
	int slice = weft__floor((double)b->x1 / SLICE_PX);
	return slice >= 0 && slice < SLICES - 1 ? (size_t)slice : SLICES - 1;
}

static uint32_t hash_bundle(const struct weft__bundle *b, int cell)
{
	uint32_t h = b->arrow;
	const int key[] = {weft__floor((double)b->x0 / cell), weft__floor((double)b->y0 / cell),
	    weft__floor((double)b->x1 / cell), weft__floor((double)b->y1 / cell)};
	for (int i = 0; i < 4; i++)
		h = (h ^ (uint32_t)key[i]) * 0x9e3779b1u + (h >> 15);
	return h;
}

static bool same_bundle(const struct weft__bundle *a, const struct weft__bundle *b, int cell)
{
	return a->arrow == b->arrow && a->cell == b->cell &&
	       weft__floor((double)a->x0 / cell) == weft__floor((double)b->x0 / cell) &&
	       weft__floor((double)a->x1 / cell) == weft__floor((double)b->x1 / cell) &&
	       weft__floor((double)a->y0 / cell) == weft__floor((double)b->y0 / cell) &&
	       weft__floor((double)a->y1 / cell) == weft__floor((double)b->y1 / cell);
}

/* Merges those whose ends are in the same cells; each stands where one of them does, so that it
 * ends where a promise is; which one, is by lot, so that the cells do not show. */
static void merge(struct weft__frame *f, int crowd_cell)
{
	enum { BUCKETS = 4096 };
	struct weft_draw_scratch *s = f->s;
	s->buckets.count = 0;
	if (!weft_vec_reserve(&s->buckets, BUCKETS)) {
		f->failed = true;
		return;
	}
	memset(s->buckets.items, 0xff, BUCKETS * sizeof *s->buckets.items);
	uint16_t crowd[SLICES] = {0};
	for (size_t i = 0; i < s->bundles.count; i++) {
		uint16_t *n = &crowd[slice_of(&s->bundles.items[i])];
		*n = (uint16_t)(*n + (*n < UINT16_MAX));
	}
	size_t kept = 0;
	for (size_t i = 0; i < s->bundles.count; i++) {
		struct weft__bundle b = s->bundles.items[i];
		b.cell = (uint16_t)(crowd[slice_of(&b)] > SLICE_BUNDLES ? crowd_cell : LEAST_CELL_PX);
		int cell = b.cell;
		uint32_t *bucket = &s->buckets.items[hash_bundle(&b, cell) >> 20];
		uint32_t at = *bucket;
		while (at != UINT32_MAX && !same_bundle(&s->bundles.items[at], &b, cell))
			at = s->bundles.items[at].next;
		if (at != UINT32_MAX) {
			struct weft__bundle *into = &s->bundles.items[at];
			b.count += into->count;
			b.about |= into->about;
			b.next = into->next;
			if (b.lot > into->lot) {
				into->count = b.count;
				into->about = b.about;
			} else {
				*into = b;
			}
			continue;
		}
		b.next = *bucket;
		*bucket = (uint32_t)kept;
		s->bundles.items[kept++] = b;
	}
	s->bundles.count = kept;
}

static void look_at(struct weft__frame *f, enum weft_arrow arrow, size_t i, uint32_t stands_for)
{
	struct weft_arrow_ends e = weft__arrow_ends(f->model, &f->model->links[f->index->arrows[arrow][i]]);
	if (f->layout->rows[e.from] == WEFT_NONE || f->layout->rows[e.to] == WEFT_NONE)
		return;
	double x0 = weft_view_x(f->view, e.from_ns), x1 = weft_view_x(f->view, e.to_ns);
	if ((x0 < -8 && x1 < -8) || (x0 > f->width + 8 && x1 > f->width + 8) || fade(f, x0, x1) <= 0)
		return;
	int y0 = weft__row_y(f, f->layout->rows[e.from]), y1 = weft__row_y(f, f->layout->rows[e.to]);
	struct weft__bundle *b = weft_vec_push(&f->s->bundles);
	if (!b) {
		f->failed = true;
		return;
	}
	*b = (struct weft__bundle){.x0 = (float)x0,
	    .y0 = (float)y0,
	    .x1 = (float)x1,
	    .y1 = (float)y1,
	    .lot = (uint32_t)i * 0x9e3779b1u,
	    .count = stands_for,
	    .arrow = (uint8_t)arrow,
	    .about = stands_for > 1};
}

/* Those of a class, slice by slice; behind the right edge there may be some that began within. */
static void collect(struct weft__frame *f, enum weft_arrow arrow)
{
	size_t i = weft__arrow_from(f->index, f->model, arrow, f->from_ns);
	size_t all = weft__arrow_from(f->index, f->model, arrow, weft_view_time(f->view, 3.0 * f->width)) - i;
	for (int x = 0; x < 3 * f->width && i < f->index->arrow_count[arrow]; x += SLICE_PX) {
		size_t end = weft__arrow_from(f->index, f->model, arrow, weft_view_time(f->view, x + SLICE_PX));
		size_t step = all <= FEW_ARROWS ? 1 : (end > i ? end - i : 0) / SLICE_ARROWS + 1;
		for (; i < end; i += step)
			look_at(f, arrow, i, (uint32_t)(end - i < step ? end - i : step));
		i = end > i ? end : i;
	}
}

static void draw_number(struct weft__frame *f, const struct weft__bundle *b)
{
	char text[32];
	int len = b->count < 1000 ? snprintf(text, sizeof text, "%s%u", b->about ? "~" : "", b->count)
		  : b->count < 10000
		      ? snprintf(text, sizeof text, "%s%u.%uk", b->about ? "~" : "", b->count / 1000, b->count % 1000 / 100)
		      : snprintf(text, sizeof text, "%s%uk", b->about ? "~" : "", b->count / 1000);
	double width = weft__text_width(f, WEFT_FONT_SMALL, text, (size_t)len);
	double x = (double)(b->x0 + 3 * b->x1) / 4 + 4, y = (double)(b->y0 + 3 * b->y1) / 4 + 3;
	if (x < 2 || x + width > f->width - 2 || weft__text_blocked(f, WEFT_FONT_SMALL, x - 2, y, width + 4))
		return;
	int x0 = weft__floor(x) - 2, x1 = weft__floor(x + width) + 3;
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 208), x0, weft__floor(y) - 8, x1, weft__floor(y) + 2);
	weft__text_put(f, LOOK[b->arrow].paint, x, y, (struct weft__writing){WEFT_FONT_SMALL, text, (size_t)len, width});
}

/* Whether rows there are drawn one by one. */
static bool is_line(const struct weft__frame *f, float y)
{
	size_t count = f->s->lines.count;
	return count > 0 && y >= (float)f->s->lines.items[0].y && y <= (float)f->s->lines.items[count - 1].y;
}

static double square_root(double x)
{
	return __builtin_sqrt(x); /* which IEEE 754 rounds exactly, like + and * */
}

static void draw_bundle(struct weft__frame *f, const struct weft__bundle *b, bool dense)
{
	double x0 = (double)b->x0, y0 = (double)b->y0 + 1, x1 = (double)b->x1, y1 = (double)b->y1 + 1;
	double dx = x1 - x0, dy = y1 - y0, width = 1;
	for (uint32_t n = b->count; n >= 4 && width < 3; n /= 5)
		width += 0.5;
	double far = (dx < 0 ? -dx : dx) < 60    ? 1
		     : (dx < 0 ? -dx : dx) > 300 ? 0.55
						 : 1 - ((dx < 0 ? -dx : dx) - 60) / 240 * 0.45;
	double opacity = fade(f, x0, x1) * far * (dense && b->count < 4 ? 0.6 : 0.9);
	const struct weft__ink ink = weft__ink(WEFT_LAYER_ARROW, LOOK[b->arrow].paint, weft__floor(opacity * 255));
	if (ink.alpha < 12)
		return;
	double length = square_root(dx * dx + dy * dy);
	double head = (HEAD_PX + width - 1) * LOOK[b->arrow].length, half = (3 + (width - 1) * 0.75) * LOOK[b->arrow].width;
	if (length < SHORT_PX && !is_line(f, b->y1) && b->arrow != WEFT_ARROW_READ_FAILED)
		return;          /* it is within the density of its strip */
	if (length < SHORT_PX) { /* within one row and moment: a head alone says that something came */
		weft__triangle(f, ink, x1, y1, x1 - head + 2, y1, 2.5);
		return;
	}
	if (head > length * 0.7)
		head = length * 0.7;
	const double along_x = dx / length, along_y = dy / length;
	double base_x = x1 - along_x * head, base_y = y1 - along_y * head;
	if (dx > -0.75 && dx < 0.75) { /* upright: as a rectangle it is sharp, and cheap to paint */
		int w = weft__floor(width + 0.5), x = weft__floor(x1) - w / 2;
		weft__rect(f, ink, x, weft__floor(y0 < base_y ? y0 : base_y), x + w, weft__floor(y0 < base_y ? base_y : y0));
		weft__cross_put(f, x, y0, x, base_y);
		x1 = base_x = x + w / 2.0;
	} else {
		weft__segment(f, ink, x0, y0, base_x, base_y, width);
	}
	weft__triangle(f, ink, x1, y1, base_x, base_y, half);
	if (length < SIGN_PX)
		return;
	const int at_x = weft__floor(x0), at_y = weft__floor(y0);
	switch (LOOK[b->arrow].sign) {
	case DOT: weft__rect(f, ink, at_x - 1, at_y - 2, at_x + 3, at_y + 2); break;
	case TWICE:
		weft__triangle(
		    f, ink, x1 - along_x * head, y1 - along_y * head, base_x - along_x * head, base_y - along_y * head, half);
		break;
	case BAR:
		weft__segment(f, ink, x1 - along_y * (half + 1), y1 + along_x * (half + 1), x1 + along_y * (half + 1),
		    y1 - along_x * (half + 1), 2);
		break;
	default: break;
	}
}

static bool is_numbered(const struct weft__frame *f, const struct weft__bundle *b)
{
	uint32_t least = f->s->bundles.count > MOST_BUNDLES / 3 ? 2 * LEAST_NUMBER : LEAST_NUMBER;
	float dx = b->x1 - b->x0, dy = b->y1 - b->y0;
	return b->count >= least && (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy) > 12;
}

/* The numbers of those that are most, for there is no room for all. */
static void draw_numbers(struct weft__frame *f)
{
	uint32_t most[MOST_NUMBERS]; /* falling */
	size_t count = 0, left = MOST_NUMBERS;
	const struct weft__bundle *bundles = f->s->bundles.items;
	for (size_t i = 0; i < f->s->bundles.count; i++) {
		if (!is_numbered(f, &bundles[i]) || (count == MOST_NUMBERS && bundles[i].count <= most[count - 1]))
			continue;
		size_t at = count < MOST_NUMBERS ? count++ : count - 1;
		for (; at > 0 && most[at - 1] < bundles[i].count; at--)
			most[at] = most[at - 1];
		most[at] = bundles[i].count;
	}
	for (size_t i = 0; count > 0 && i < f->s->bundles.count && left > 0; i++) {
		if (!is_numbered(f, &bundles[i]) || bundles[i].count < most[count - 1])
			continue;
		draw_number(f, &bundles[i]);
		left--;
	}
}

void weft__draw_arrows(struct weft__frame *f)
{
	f->s->bundles.count = 0;
	for (enum weft_arrow a = 0; a < WEFT_ARROWS; a++)
		collect(f, a);
	merge(f, LEAST_CELL_PX);
	bool dense = f->s->bundles.count > MOST_BUNDLES / 2;
	/* Coarser cells until there are few enough bundles, and by larger steps while there are far too many. */
	int cell = 4;
	while (f->s->bundles.count > MOST_BUNDLES && cell < 2048) {
		merge(f, cell);
		cell *= f->s->bundles.count > 4 * MOST_BUNDLES ? 4 : 2;
	}
	for (size_t i = 0; i < f->s->bundles.count; i++)
		draw_bundle(f, &f->s->bundles.items[i], dense);
	draw_numbers(f);
}
