/* arrows.c: draws as arrows what promises do to each other.
 *
 * Arrows belong to classes, such as awaits and signals.  If a class has few arrows, all of them are drawn.  Arrows whose starts
 * are within a few px of each other, and whose ends are too, are bundled into one stronger arrow; a tooltip of the bundle tells
 * their number.  If a class has too many arrows, or if they are so close that they would hide everything, none of them is drawn.
 * Instead, a density band below the rows shows the exact number of arrows in each column of pixels.  Arrows are never sampled.
 * Arrows inside of one fold are counted in the density band too; arrows between two folds are drawn, even on one row.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "draw/frame.h"

#define CELL_PX 2       /* distance in px within which ends of arrows are bundled */
#define MAX_ARROWS 3000 /* number of arrows of a class above which the class is counted and not drawn */
#define MAX_BUNDLES 500 /* number of bundles above which the largest class is counted and not drawn */
#define WALL 40         /* number of arrows in a class above which the class may hide everything */
#define WALL_FRACTION 5 /* part (1 / WALL_FRACTION) of the area around a class's arrows that they may cover */
#define WALL_PX 16      /* width in px of the columns in which the covered area is measured */
#define MAX_MARKED 1500 /* number of selected promises' arrows above which arrows are bundled in larger cells */
#define MARKED_PX 8     /* average distance in px below which these arrows are drawn transparent, so that names stay readable */
#define BAND_PX 20      /* height in px of the density band */
#define LOW_BAND_PX 12  /* height in px of the density band above an axis */
#define HEAD_PX 7.0
#define SIGN_PX 16.0 /* length in px from which on an arrow has space for a sign */
#define SHORT_PX 3.0 /* length in px below which an arrow is only a head */
#define ARROW_HIT_PX 4.0

/* Signs by which the classes of arrows differ in shape, for users who cannot distinguish the colours. */
enum sign { PLAIN, DOT /* at its start */, TWICE /* two heads */, BAR /* at its tip */ };

static const struct {
	enum weft_paint paint;
	enum sign sign;
	double length, width; /* length and width of an arrow's head, as factors */
} LOOK[] = {
    [WEFT_ARROW_AWAIT] = {WEFT_PAINT_AWAIT, DOT, 0.85, 0.85},
    [WEFT_ARROW_READ] = {WEFT_PAINT_READ, PLAIN, 1.3, 0.7},
    [WEFT_ARROW_RESOLVE] = {WEFT_PAINT_RESOLVE, PLAIN, 1, 1.1},
    [WEFT_ARROW_SIGNAL] = {WEFT_PAINT_SIGNAL, TWICE, 0.8, 1},
    [WEFT_ARROW_READ_FAILED] = {WEFT_PAINT_READ_FAILED, BAR, 1, 1},
};

/* Returns the opacity of an arrow; an arrow much longer than the screen is useless and therefore invisible. */
static double arrow_opacity(const struct weft__frame *f, double x0, double x1)
{
	double screens = (x1 > x0 ? x1 - x0 : x0 - x1) / f->width;
	return screens < 0.25 ? 1 : screens >= 2 ? 0 : (2 - screens) / 1.75;
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
	return a->arrow == b->arrow && weft__floor((double)a->x0 / cell) == weft__floor((double)b->x0 / cell) &&
	       weft__floor((double)a->x1 / cell) == weft__floor((double)b->x1 / cell) &&
	       weft__floor((double)a->y0 / cell) == weft__floor((double)b->y0 / cell) &&
	       weft__floor((double)a->y1 / cell) == weft__floor((double)b->y1 / cell);
}

/* Merges the bundles from index `first` on whose starts are in the same cell and whose ends are in the same cell.  A merged
 * bundle takes the position of one of its arrows, so that it ends at a promise; the arrow is chosen pseudo-randomly, so that no
 * grid of cells is visible. */
static void merge_bundles(struct weft__frame *f, size_t first, int cell)
{
	enum { BUCKETS = 4096 };
	struct weft_draw_scratch *s = f->s;
	s->buckets.count = 0;
	if (!weft_vec_reserve(&s->buckets, BUCKETS)) {
		f->failed = true;
		return;
	}
	memset(s->buckets.items, 0xff, BUCKETS * sizeof *s->buckets.items);
	size_t kept = first;
	for (size_t i = first; i < s->bundles.count; i++) {
		struct weft__bundle b = s->bundles.items[i];
		uint32_t *bucket = &s->buckets.items[hash_bundle(&b, cell) >> 20];
		uint32_t at = *bucket;
		while (at != UINT32_MAX && !same_bundle(&s->bundles.items[at], &b, cell))
			at = s->bundles.items[at].next;
		if (at != UINT32_MAX) {
			struct weft__bundle *into = &s->bundles.items[at];
			b.count += into->count;
			b.next = into->next;
			if (b.lot > into->lot)
				into->count = b.count;
			else
				*into = b;
			continue;
		}
		b.next = *bucket;
		*bucket = (uint32_t)kept;
		s->bundles.items[kept++] = b;
	}
	s->bundles.count = kept;
}

static void add_bundle(struct weft__frame *f, enum weft_arrow arrow, uint32_t link)
{
	struct weft_arrow_ends e = weft__arrow_ends(f->model, &f->model->links[link]);
	if (f->layout->rows[e.from] == WEFT_NONE || f->layout->rows[e.to] == WEFT_NONE)
		return;
	double x0 = weft_view_x(f->view, e.from_ns), x1 = weft_view_x(f->view, e.to_ns);
	if ((x0 < -8 && x1 < -8) || (x0 > f->width + 8 && x1 > f->width + 8) || arrow_opacity(f, x0, x1) <= 0)
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
	    .lot = link * 0x9e3779b1u,
	    .link = link,
	    .count = 1,
	    .arrow = (uint8_t)arrow};
}

/* Adds the visible arrows of a class; of the arrows that end right of the screen, some start on the screen.  Returns false if
 * the class has too many arrows. */
static bool collect_arrows(struct weft__frame *f, enum weft_arrow arrow)
{
	const struct weft_arrow_list *list = &f->index->arrows[arrow];
	const size_t first = f->s->bundles.count;
	size_t i = weft__arrow_from(f->model, list, f->from_ns);
	size_t end = weft__arrow_from(f->model, list, weft_view_time(f->view, 3.0 * f->width));
	if (end > i + MAX_ARROWS)
		return false;
	for (; i < end; i++)
		add_bundle(f, arrow, list->links[i]);
	merge_bundles(f, first, CELL_PX);
	return true;
}

/* Returns whether the rows at height y are drawn one by one. */
static bool is_line(const struct weft__frame *f, float y)
{
	size_t count = f->s->lines.count;
	return count > 0 && y >= (float)f->s->lines.items[0].y && y <= (float)f->s->lines.items[count - 1].y;
}

static double square_root(double x)
{
	return __builtin_sqrt(x); /* IEEE 754 defines the exact result of a square root, as for + and *, so all platforms agre */
}

static void draw_bundle(struct weft__frame *f, const struct weft__bundle *b, double strength)
{
	double x0 = (double)b->x0, y0 = (double)b->y0 + 1, x1 = (double)b->x1, y1 = (double)b->y1 + 1;
	double dx = x1 - x0, dy = y1 - y0, width = 1;
	for (uint32_t n = b->count; n >= 4 && width < 3; n /= 5)
		width += 0.5;
	double far = (dx < 0 ? -dx : dx) < 60    ? 1
		     : (dx < 0 ? -dx : dx) > 300 ? 0.55
						 : 1 - ((dx < 0 ? -dx : dx) - 60) / 240 * 0.45;
	double opacity = arrow_opacity(f, x0, x1) * far * strength;
	const struct weft__ink ink = weft__ink(WEFT_LAYER_ARROW, LOOK[b->arrow].paint, weft__floor(opacity * 255));
	if (ink.alpha < 12)
		return;
	double length = square_root(dx * dx + dy * dy);
	double head = (HEAD_PX + width - 1) * LOOK[b->arrow].length, half = (3 + (width - 1) * 0.75) * LOOK[b->arrow].width;
	if (length < SHORT_PX && !is_line(f, b->y1) && b->arrow != WEFT_ARROW_READ_FAILED)
		return;          /* the density of the strip already shows this arrow */
	if (length < SHORT_PX) { /* both ends are in one row at one moment, so only the head is drawn */
		weft__triangle(f, ink, x1, y1, x1 - head + 2, y1, 2.5);
		return;
	}
	if (head > length * 0.7)
		head = length * 0.7;
	const double along_x = dx / length, along_y = dy / length;
	double base_x = x1 - along_x * head, base_y = y1 - along_y * head;
	if (dx > -0.75 && dx < 0.75) { /* a vertical line is drawn as a rectangle, which is sharp and cheap to paint */
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

static void drop_arrows(struct weft__frame *f, size_t arrow, bool is_many[WEFT_ARROWS])
{
	struct weft_draw_scratch *s = f->s;
	size_t kept = 0;
	for (size_t i = 0; i < s->bundles.count; i++)
		if (s->bundles.items[i].arrow != arrow)
			s->bundles.items[kept++] = s->bundles.items[i];
	s->bundles.count = kept;
	is_many[arrow] = true;
}

/* Returns whether the arrows of a class would hide everything, because they cover much of the height in the columns in which
 * they end. */
static bool is_wall(const struct weft__frame *f, size_t arrow)
{
	enum { PLACES = 32768 / WALL_PX + 1 };
	struct {
		float y0, y1;
	} places[PLACES] = {{0}};
	size_t count = 0;
	float covered = 0, area = 0;
	for (size_t i = 0; i < f->s->bundles.count; i++) {
		const struct weft__bundle *b = &f->s->bundles.items[i];
		int x = weft__floor((double)b->x1) / WALL_PX;
		size_t at = x > 0 ? x < PLACES ? (size_t)x : PLACES - 1 : 0;
		float y0 = b->y0 < b->y1 ? b->y0 : b->y1, y1 = b->y0 < b->y1 ? b->y1 : b->y0;
		if (b->arrow != arrow)
			continue;
		bool is_first = places[at].y1 <= 0;
		places[at].y0 = is_first || y0 < places[at].y0 ? y0 : places[at].y0;
		places[at].y1 = y1 > places[at].y1 ? y1 : places[at].y1;
		covered += y1 - y0;
		count++;
	}
	for (size_t at = 0; at < PLACES; at++)
		area += (places[at].y1 - places[at].y0) * WALL_PX;
	return count > WALL && covered * WALL_FRACTION > area;
}

/* Drops the classes of arrows that would hide everything, and then the largest class, again and again, until few enough arrows
 * are left. */
static void thin_out(struct weft__frame *f, bool is_many[WEFT_ARROWS])
{
	size_t counts[WEFT_ARROWS] = {0};
	for (size_t a = 0; a < WEFT_ARROWS; a++)
		if (is_wall(f, a))
			drop_arrows(f, a, is_many);
	for (size_t i = 0; i < f->s->bundles.count; i++)
		counts[f->s->bundles.items[i].arrow]++;
	while (f->s->bundles.count > MAX_BUNDLES) {
		size_t most = 0;
		for (size_t a = 1; a < WEFT_ARROWS; a++)
			most = counts[a] > counts[most] ? a : most;
		drop_arrows(f, most, is_many);
		counts[most] = 0;
	}
}

/* Counts the arrows of a list that end in each column. */
static void count_links(struct weft__frame *f, enum weft_arrow arrow, const struct weft_arrow_list *list)
{
	size_t at = weft__arrow_from(f->model, list, weft_view_time(f->view, 0));
	for (int x = 0; x < f->width && at < list->count; x++) {
		size_t end = weft__arrow_from(f->model, list, weft_view_time(f->view, x + 1));
		f->s->columns.items[(size_t)x * WEFT_ARROWS + arrow] += (uint32_t)(end - at);
		at = end;
	}
}

/* Counts the arrows of each class that end in each column, in f->s->columns, with WEFT_ARROWS counts for each column.  Returns
 * the largest number of arrows in one column. */
static uint32_t count_columns(struct weft__frame *f, const bool is_many[WEFT_ARROWS])
{
	struct weft_draw_scratch *s = f->s;
	size_t cells = (size_t)f->width * WEFT_ARROWS;
	uint32_t peak = 0;
	s->columns.count = 0;
	if (!weft_vec_reserve(&s->columns, cells)) {
		f->failed = true;
		return 0;
	}
	memset(s->columns.items, 0, cells * sizeof *s->columns.items);
	s->columns.count = cells;
	for (enum weft_arrow a = 0; a < WEFT_ARROWS; a++) {
		if (is_many[a])
			count_links(f, a, &f->index->arrows[a]);
		count_links(f, a, &f->index->inside[a]);
	}
	for (size_t i = 0; i < cells; i += WEFT_ARROWS) {
		uint32_t sum = 0;
		for (size_t a = 0; a < WEFT_ARROWS; a++)
			sum += s->columns.items[i + a];
		peak = sum > peak ? sum : peak;
	}
	return peak;
}

/* Draws a column of the density band, with the classes above each other; the opacity of the topmost pixel is the part of it that
 * is covered. */
static void draw_column(struct weft__frame *f, const uint32_t *counts, int x, double px_each)
{
	const int bottom = f->s->band_y1;
	uint32_t sum = 0, top = 0;
	int y = bottom;
	for (uint32_t a = 0; a < WEFT_ARROWS; a++) {
		sum += counts[a];
		top = counts[a] > 0 ? a : top;
		int next = bottom - weft__floor(sum * px_each);
		if (next < y)
			weft__rect(f, weft__ink(WEFT_LAYER_METRIC, LOOK[a].paint, 255), x, next, x + 1, y);
		y = next;
	}
	double rest = sum * px_each - (bottom - y);
	weft__rect(f, weft__ink(WEFT_LAYER_METRIC, LOOK[top].paint, weft__floor(rest * 255 + 0.5)), x, y - 1, x + 1, y);
}

/* Returns the number of counted arrows that end between two columns. */
static uint32_t arrows_within(const struct weft__frame *f, int x0, int x1)
{
	uint32_t sum = 0;
	for (int x = x0 > 0 ? x0 : 0; x < x1; x++)
		for (size_t a = 0; a < WEFT_ARROWS; a++)
			sum += f->s->columns.items[(size_t)x * WEFT_ARROWS + a];
	return sum;
}

/* Draws the density band, which shows the numbers of arrows of the classes that are not drawn, above the axis. */
static void draw_density(struct weft__frame *f, const bool is_many[WEFT_ARROWS])
{
	struct weft_draw_scratch *s = f->s;
	uint32_t peak = count_columns(f, is_many), all = 0;
	int high = f->options.no_axis ? BAND_PX : LOW_BAND_PX;
	s->band_y1 = f->height - (f->options.no_axis ? WEFT__BELOW_PX : WEFT__AXIS_PX) - weft__floor(f->view->lanes_px) - 1;
	s->band_y0 = s->band_y1 - high;
	if (peak == 0 || f->failed) {
		s->columns.count = 0;
		return;
	}
	for (int x = 0; x < f->width; x++) {
		const uint32_t *counts = s->columns.items + (size_t)x * WEFT_ARROWS;
		for (size_t a = 0; a < WEFT_ARROWS; a++)
			all += counts[a];
		draw_column(f, counts, x, (double)high / peak);
	}
	s->counted_arrows = all;
	if (f->options.names_beside)
		return;
	char text[80], number[2][WEFT_NUMBER_BYTES];
	int len = snprintf(text, sizeof text, "%s arrows, at most %s per pixel", weft_number_text(number[0], all),
	    weft_number_text(number[1], peak));
	double width = weft__text_width(f, WEFT_FONT_SMALL, text, (size_t)len), y = s->band_y1 - 2, x = 6;
	if (width + 12 > f->width)
		return;
	/* The text is at the side with fewer arrows, so that it does not hide the columns. */
	if (arrows_within(f, 3, weft__floor(width) + 9) > arrows_within(f, f->width - weft__floor(width) - 9, f->width - 3))
		x = f->width - width - 6;
	if (weft__text_blocked(f, WEFT_FONT_SMALL, x, y, width))
		return;
	weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 208), weft__floor(x) - 3, (int)y - 9,
	    weft__floor(x + width) + 3, (int)y + 3);
	weft__text_put(f, WEFT_PAINT_AXIS_TEXT, x, y, (struct weft__writing){WEFT_FONT_SMALL, text, (size_t)len, width});
}

void weft__draw_arrows(struct weft__frame *f)
{
	bool is_many[WEFT_ARROWS];
	f->s->bundles.count = f->s->columns.count = 0;
	for (enum weft_arrow a = 0; a < WEFT_ARROWS; a++)
		is_many[a] = !collect_arrows(f, a);
	thin_out(f, is_many);
	for (size_t i = 0; i < f->s->bundles.count; i++)
		draw_bundle(f, &f->s->bundles.items[i],
		    f->s->bundles.count > MAX_BUNDLES / 2 && f->s->bundles.items[i].count < 4 ? 0.6 : 0.9);
	draw_density(f, is_many);
}

void weft__draw_arrow(struct weft__frame *f, enum weft_arrow arrow, double x0, double x1, double y)
{
	const struct weft__bundle b = {
	    .x0 = (float)x0, .y0 = (float)y, .x1 = (float)x1, .y1 = (float)y, .count = 4, .arrow = (uint8_t)arrow};
	draw_bundle(f, &b, 0.9);
}

void weft__draw_arrows_of(struct weft__frame *f, const uint32_t *links, size_t count)
{
	size_t first = f->s->bundles.count;
	for (size_t i = 0; i < count; i++)
		if (weft__is_arrow(f->layout, &f->model->links[links[i]]) &&
		    !weft__is_inside_fold(f->index, &f->model->links[links[i]]))
			add_bundle(f, weft__arrow_class(f->model, &f->model->links[links[i]]), links[i]);
	for (int cell = CELL_PX; cell < 64 && (cell == CELL_PX || f->s->bundles.count > first + MAX_MARKED); cell *= 2)
		merge_bundles(f, first, cell);
	const bool is_crowd = (f->s->bundles.count - first) * MARKED_PX > (size_t)f->width;
	for (size_t i = first; i < f->s->bundles.count; i++)
		draw_bundle(f, &f->s->bundles.items[i], is_crowd ? 0.35 : 0.9);
}

static double square(double x)
{
	return x * x;
}

bool weft_draw_arrow_at(const struct weft_draw_list *list, double x_px, double y_px, struct weft_arrow_hit *hit)
{
	const struct weft_draw_scratch *s = list->scratch;
	double nearest = square(ARROW_HIT_PX);
	bool found = false;
	for (size_t i = 0; s && i < s->bundles.count; i++) {
		const struct weft__bundle *b = &s->bundles.items[i];
		double dx = (double)(b->x1 - b->x0), dy = (double)(b->y1 - b->y0), length = square(dx) + square(dy);
		double along = length > 0 ? ((x_px - (double)b->x0) * dx + (y_px - (double)b->y0 - 1) * dy) / length : 0;
		along = along < 0 ? 0 : along > 1 ? 1 : along;
		double away = square(x_px - (double)b->x0 - along * dx) + square(y_px - (double)b->y0 - 1 - along * dy);
		if (away > nearest || length < square(SHORT_PX))
			continue;
		nearest = away;
		found = true;
		*hit = (struct weft_arrow_hit){.link = b->link, .count = b->count};
	}
	return found;
}

bool weft_draw_density_at(const struct weft_draw_list *list, double x_px, double y_px, uint32_t counts[WEFT_ARROWS])
{
	const struct weft_draw_scratch *s = list->scratch;
	if (!s || s->columns.count == 0 || y_px < s->band_y0 || y_px >= s->band_y1 || x_px < 0)
		return false;
	size_t at = (size_t)x_px * WEFT_ARROWS;
	if (at + WEFT_ARROWS > s->columns.count)
		return false;
	memcpy(counts, s->columns.items + at, WEFT_ARROWS * sizeof *counts);
	return true;
}
