/* text.c: measures texts, and finds space for them among other texts and lines.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/hash.h"
#include "base/search.h"
#include "base/utf8.h"
#include "draw/frame.h"

#define MIN_WIDTHS 256u
#define MIN_LETTERS 6u
#define MAX_WIDTHS 16384u /* capacity of the cache of widths; when half of it is used, all widths are dropped */

/* Widths of the characters of a common sans serif in 1/100 of its size, from the space character on; any other character is as
 * wide as an M. */
static double own_width(enum weft_font font, const char *text, size_t len)
{
	static const uint8_t hundredths[95] = {32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64,
	    64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 30, 30, 66, 56, 86, 75, 79, 60, 79,
	    69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63,
	    61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};
	int sum = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 32 && c < 127)
			sum += hundredths[c - 32];
		else if ((c & 0xc0) != 0x80)
			sum += 86;
	}
	return sum * weft_font_px(font) / 100 * (font == WEFT_FONT_BOLD ? 1.1 : 1);
}

static double measure_text(struct weft__frame *f, enum weft_font font, const char *text, size_t len)
{
	return f->options.measure ? f->options.measure(f->options.measure_ctx, font, text, len) : own_width(font, text, len);
}

/* Makes space for one more width; at the maximum capacity, all widths are dropped. */
static bool reserve_widths(struct weft_draw_scratch *s)
{
	const size_t had = s->widths.count;
	size_t count = had ? had : MIN_WIDTHS;
	if (!had)
		s->width_key = weft_hash_key_new();
	else if (had < MAX_WIDTHS)
		count = 4 * had;
	s->widths.count = 0;
	s->widths.count = weft_vec_reserve(&s->widths, count) ? count : had;
	if (s->widths.count)
		memset(s->widths.items, 0, s->widths.count * sizeof *s->widths.items);
	s->width_count = 0;
	return s->widths.count > 0;
}

static double measure_cached(struct weft__frame *f, enum weft_font font, const char *text, size_t len)
{
	struct weft_draw_scratch *s = f->s;
	if (s->widths.count == 0 && !reserve_widths(s))
		return measure_text(f, font, text, len);
	/* A hash of 0 marks an empty entry, so it is never used. */
	const uint64_t hash = (weft_hash_keyed(&s->width_key, text, len) ^ (uint64_t)font << 32) | 1;
	size_t at = (hash >> 20) % s->widths.count;
	while (s->widths.items[at].hash && s->widths.items[at].hash != hash)
		at = (at + 1) % s->widths.count;
	if (!s->widths.items[at].hash) {
		if (s->width_count == s->widths.count / 2) {
			reserve_widths(s);
			at = (hash >> 20) % s->widths.count;
		}
		s->widths.items[at] = (struct weft__width){hash, (float)measure_text(f, font, text, len)};
		s->width_count++;
	}
	return (double)s->widths.items[at].width;
}

double weft__text_width(struct weft__frame *f, enum weft_font font, const char *text, size_t len)
{
	double width = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 128)
			return measure_cached(f, font, text, len);
		float *known = &f->s->ascii[font][c];
		if (*known == 0)
			*known = (float)measure_text(f, font, text + i, 1);
		width += (double)*known;
	}
	return width;
}

/* Returns whether a character is a control character, or a separator of lines or paragraphs. */
static bool breaks_line(const unsigned char *s, size_t n)
{
	return (n == 1 && (*s < 32 || *s == 127)) || (n == 2 && *s == 0xc2 && s[1] < 0xa0) ||
	       (n == 3 && *s == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9));
}

size_t weft__text_clean(char *out, size_t size, const char *bytes, size_t len)
{
	size_t at = 0;
	for (size_t i = 0; i < len;) {
		const unsigned char *s = (const unsigned char *)bytes + i;
		size_t n = weft_utf8_char_bytes(s, len - i);
		const char *from = bytes + i;
		size_t step = n ? n : 1;
		if (n == 0) {
			from = "\xef\xbf\xbd";
			n = 3;
		} else if (breaks_line(s, n)) {
			from = " ";
			n = 1;
		}
		if (at + n + 1 > size)
			break;
		memcpy(out + at, from, n);
		at += n;
		i += step;
	}
	if (size > 0)
		out[at] = '\0';
	return at;
}

/* Returns the length of at most `cut` bytes of text that splits no character. */
static size_t whole_characters(const char *text, size_t cut, size_t len)
{
	while (cut > 0 && cut < len && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return cut;
}

/* Returns how many of `cut` bytes are kept at the end of a text: two thirds of a C++ or Rust name, because its end identifies
 * the function, and the error bound of a host's clock. */
static size_t end_to_keep(const char *text, size_t len, size_t cut)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (text[i] == ':' && text[i + 1] == ':')
			return cut - cut / 3;
		if (text[i] == '\xc2' && text[i + 1] == '\xb1')
			return len - i < cut ? len - i : 0;
	}
	return 0;
}

size_t weft__text_fit(
    struct weft__frame *f, enum weft_font font, char *text, size_t len, size_t size, double max_width, double *width)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	*width = weft__text_width(f, font, text, len);
	if (*width <= max_width)
		return len;
	double dots = weft__text_width(f, font, ellipsis, 3);
	/* A text that is cut below six letters and below two thirds of its length is not worth reading. */
	size_t cut =
	    WEFT_FIND_FIRST(i, 1, len + 1, weft__text_width(f, font, text, whole_characters(text, i, len)) + dots > max_width) -
	    1;
	cut = whole_characters(text, cut, len);
	while (cut > 0 && text[cut - 1] == ' ')
		cut--;
	if ((cut < MIN_LETTERS && cut * 3 < len * 2) || cut + sizeof ellipsis > size)
		return 0;
	size_t head = cut, tail = end_to_keep(text, len, cut);
	if (tail > 0) {
		head = whole_characters(text, cut - tail, len);
		while (tail > 0 &&
		       (((unsigned char)text[len - tail] & 0xc0) == 0x80 ||
			   weft__text_width(f, font, text, head) + dots + weft__text_width(f, font, text + len - tail, tail) >
			       max_width))
			tail--;
	}
	*width = weft__text_width(f, font, text, head) + dots + weft__text_width(f, font, text + len - tail, tail);
	memmove(text + head + 3, text + len - tail, tail);
	memcpy(text + head, ellipsis, 3);
	text[head + 3 + tail] = '\0';
	return head + 3 + tail;
}

struct text_box {
	int x0, x1, y0, y1; /* x coordinates, in units of 4 px */
	size_t stride;
};

static bool find_text_box(struct weft__frame *f, enum weft_font font, double x, double y, double width, struct text_box *p)
{
	double px = weft_font_px(font);
	p->x0 = weft__floor(x / 4);
	p->x1 = weft__floor((x + width) / 4) + 1;
	p->y0 = weft__floor(y - px * 0.8);
	p->y1 = weft__floor(y + px * 0.22) + 1;
	p->stride = ((size_t)f->width / 4 + 1 + 63) / 64;
	return p->x0 >= 0 && p->y0 >= 0 && p->x1 <= f->width / 4 + 1 && p->y1 <= f->height;
}

/* Returns the bits of a text's box that are in one word of the bit map. */
static uint64_t word_mask(const struct text_box *p, int word)
{
	int from = p->x0 > word * 64 ? p->x0 - word * 64 : 0, to = p->x1 < (word + 1) * 64 ? p->x1 - word * 64 : 64;
	return (to == 64 ? UINT64_MAX : (1ull << to) - 1) & ~((1ull << from) - 1);
}

static bool is_any_set(const uint64_t *bits, const struct text_box *p)
{
	for (int row = p->y0; row < p->y1; row++)
		for (int w = p->x0 / 64; w <= (p->x1 - 1) / 64; w++)
			if (bits[(size_t)row * p->stride + (size_t)w] & word_mask(p, w))
				return true;
	return false;
}

static void set_all(uint64_t *bits, const struct text_box *p)
{
	for (int row = p->y0; row < p->y1; row++)
		for (int w = p->x0 / 64; w <= (p->x1 - 1) / 64; w++)
			bits[(size_t)row * p->stride + (size_t)w] |= word_mask(p, w);
}

/* Marks the pixels of a line; a vertical line may have any width. */
void weft__cross_put(struct weft__frame *f, double x0, double y0, double x1, double y1)
{
	const size_t stride = ((size_t)f->width / 4 + 1 + 63) / 64;
	double dx = (x1 - x0) / 4, dy = y1 - y0, long_x = dx < 0 ? -dx : dx, long_y = dy < 0 ? -dy : dy;
	int steps = weft__floor(long_x > long_y ? long_x : long_y) + 1;
	uint64_t *bits = f->s->cross_bits.items;
	if (dx == 0) { /* most are vertical */
		int x = weft__floor(x0 / 4), top = weft__floor(y0 < y1 ? y0 : y1), bottom = weft__floor(y0 < y1 ? y1 : y0);
		bottom = bottom < f->height ? bottom : f->height - 1;
		for (int y = top > 0 ? top : 0; x >= 0 && x <= f->width / 4 && y <= bottom; y++)
			bits[(size_t)y * stride + (size_t)x / 64] |= 1ull << x % 64;
		return;
	}
	for (int i = 0; i <= steps; i++) {
		int x = weft__floor(x0 / 4 + dx * i / steps), y = weft__floor(y0 + dy * i / steps);
		if (x >= 0 && x <= f->width / 4 && y >= 0 && y < f->height)
			bits[(size_t)y * stride + (size_t)x / 64] |= 1ull << x % 64;
	}
}

void weft__text_add_halos(struct weft__frame *f)
{
	for (size_t i = 0; i < f->list->count; i++) {
		struct weft_prim *t = &f->list->prims[i];
		struct text_box p;
		/* No halo is drawn on a plate, because the halo would have the plate's colour. */
		bool on_plate = t->paint == WEFT_PAINT_BACKGROUND;
		if (t->kind == WEFT_PRIM_TEXT && !on_plate &&
		    find_text_box(f, t->font, (double)t->x0, (double)t->y0, (double)t->width, &p))
			t->halo = is_any_set(f->s->cross_bits.items, &p);
	}
}

bool weft__text_blocked(struct weft__frame *f, enum weft_font font, double x, double y, double width)
{
	struct text_box p;
	return f->failed || !find_text_box(f, font, x, y, width, &p) || is_any_set(f->s->bits.items, &p);
}

bool weft__text_put(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing)
{
	struct text_box p;
	if (f->failed || !find_text_box(f, writing.font, x, y, writing.width, &p) || is_any_set(f->s->bits.items, &p))
		return false;
	set_all(f->s->bits.items, &p);
	weft__list_text(f, paint, x, y, writing);
	return true;
}

void weft__line_put(struct weft__frame *f, int alpha, int x0, int y0, int x1, int y1)
{
	weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, alpha), x0, y0, x1, y1);
	if (alpha > 0)
		weft__line_block(f, x0, y0, x1, y1);
}

void weft__line_block(struct weft__frame *f, int x0, int y0, int x1, int y1)
{
	x0 = x0 > 0 ? x0 : 0;
	x1 = x1 < f->width ? x1 : f->width;
	y0 = y0 > 0 ? y0 : 0;
	y1 = y1 < f->height ? y1 : f->height;
	if (f->failed || x0 >= x1 || y0 >= y1)
		return;
	const struct text_box p = {
	    .x0 = x0 / 4, .x1 = (x1 - 1) / 4 + 1, .y0 = y0, .y1 = y1, .stride = ((size_t)f->width / 4 + 1 + 63) / 64};
	set_all(f->s->line_bits.items, &p);
}

bool weft__line_blocks(struct weft__frame *f, enum weft_font font, double x, double y, double width)
{
	struct text_box p;
	if (f->failed || !find_text_box(f, font, x, y, width, &p))
		return true;
	/* The top of the box is lowered, because tall letters may touch a line without harm. */
	p.y0 = weft__floor(y - weft_font_px(font) * 0.62);
	return is_any_set(f->s->line_bits.items, &p);
}
