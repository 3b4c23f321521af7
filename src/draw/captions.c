/* captions.c: names above lines, kinds below.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "base/search.h"
#include "draw/frame.h"

#define GAP_PX 5.0
#define BESIDE_GAP_PX 6.0
#define MOST_NOTES 48
#define MARK_STEP_PX 4.0  /* between marks, at least */
#define NOTE_AWAY_PX 30.0 /* from its mark, at most */
#define ID_SPARE_PX 16.0  /* an id is written only on a line that is clearly longer */
#define TIGHT_STEP_PX 24.0
#define TIGHT_TRIES 12
#define NAMES_LOOKED_AT 32u
#define KIND_ROOM_PX 22  /* height of a row that has room for both */
#define KIND_BELOW_PX 14 /* its line: a ring around that does not touch the kind */
#define TID_BYTES 24
#define CROWD_ROW_PX 18 /* of a row whose promises have one name together */
#define CROWD_SAMPLE 32 /* of which it is asked what they have in common */
#define NAMED_PX 40     /* a promise that is so long has a name of its own */
#define KIND_AWAY_PX 2  /* from what stands below it, or they would be read as one */

/* The ends of the stretch that a label may take: its promise's line, and not beyond the picture. */
struct room {
	double from, to;
};

static void mark(struct weft__frame *f, double x, int y)
{
	int at = weft__floor(x);
	weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255), at, y - 3, at + 1, y);
}

/* Whether of a site nothing is known that a person reads.  A function without a name is called by where it begins. */
static bool is_address(const struct weft_site *site)
{
	return weft_site_is_place(site) && (site->function.len == 0 || weft_site_is_bridge(site) ||
					       memmem(site->function.ptr, site->function.len, "+0x", 3) != NULL);
}

static bool has_only_kind(const struct weft_model *m, uint32_t promise)
{
	const uint32_t site = m->promises[promise].site;
	return site != WEFT_NONE && is_address(&m->trace->sites[site]) && weft_model_name_text(m, promise) == WEFT_NONE;
}

/* What stands for the label of a promise that has none: the function that made it, else the line, else its kind or its id. */
static size_t unlabelled(const struct weft_model *m, uint32_t promise, char *buf, size_t size)
{
	const struct weft_promise *p = &m->promises[promise];
	char raw[160];
	if (p->site == WEFT_NONE)
		return (size_t)snprintf(buf, size, "%" PRId64, p->id);
	const struct weft_site *site = &m->trace->sites[p->site];
	if (is_address(site)) {
		const char *kind = weft_model_kind_name(m, p->kind);
		return weft__text_clean(buf, size, kind, strlen(kind));
	}
	if (site->function.len > 0)
		return weft__text_clean(buf, size, site->function.ptr, site->function.len);
	struct weft_str file = site->file;
	for (uint32_t i = file.len; i-- > 0;) {
		if (file.ptr[i] == '/') {
			file = (struct weft_str){file.ptr + i + 1, file.len - i - 1};
			break;
		}
	}
	int len = snprintf(
	    raw, sizeof raw, "%.*s:%" PRIu32, file.len < 128 ? (int)file.len : 128, file.ptr ? file.ptr : "", site->line);
	return weft__text_clean(buf, size, raw, (size_t)len);
}

size_t weft__fold_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size)
{
	const struct weft_fold *fold = weft_layout_fold(f->layout, promise);
	if (!fold)
		return 0;
	int len;
	char number[WEFT_NUMBER_BYTES];
	if (fold->is_track) {
		char name[130];
		uint32_t text = weft_model_name_text(f->model, promise);
		/* Of one without a label, the first actor in it says more than where it was made. */
		for (uint32_t k = 1; k < fold->count && k < NAMES_LOOKED_AT && text == WEFT_NONE; k++) {
			uint32_t member = f->layout->folded[fold->first + k];
			uint16_t kind = f->model->promises[member].kind;
			if (weft_kind_has(kind, WEFT_TRAIT_ACTOR) && !weft_kind_has(kind, WEFT_TRAIT_REQUEST))
				text = weft_model_name_text(f->model, member);
		}
		struct weft_str label = text != WEFT_NONE ? weft_model_text(f->model, text) : (struct weft_str){"", 0};
		size_t own = text != WEFT_NONE ? weft__text_clean(name, sizeof name, label.ptr, label.len)
					       : unlabelled(f->model, promise, name, sizeof name);
		len = snprintf(buf, size, "%.*s \xc2\xb7 %s folded", (int)own, name, weft_thousands(number, fold->count - 1));
	} else {
		len = snprintf(buf, size, fold->is_group ? "%s \xc3\x97 %s" : "%s %ss", weft_thousands(number, fold->count),
		    weft_model_kind_name(f->model, f->model->promises[promise].kind));
	}
	return len < (int)size ? (size_t)len : size - 1;
}

/* The OS thread that a promise stands for, if others are called alike. */
static const struct weft_stream_info *namesake_of(const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	if (!m->threads || !m->run_streams || !weft_kind_has(p->kind, WEFT_TRAIT_THREAD) || p->runs == p[1].runs)
		return NULL;
	const uint16_t stream = m->run_streams[p->runs];
	return m->namesakes[stream] && m->threads[stream] == promise ? &m->trace->streams[stream] : NULL;
}

/* What a line is called: its first label that is no counter's; its length. */
static size_t name_of(const struct weft__frame *f, uint32_t promise, char *buf, size_t size)
{
	size_t fold_len = weft__fold_name(f, promise, buf, size);
	if (fold_len > 0)
		return fold_len;
	uint32_t text = weft_model_name_text(f->model, promise);
	if (text == WEFT_NONE)
		return unlabelled(f->model, promise, buf, size);
	struct weft_str name = weft_model_text(f->model, text);
	size_t len = weft__text_clean(buf, size, name.ptr, name.len);
	const struct weft_stream_info *shared = namesake_of(f->model, promise);
	if (shared && weft_str_equal(name, shared->name) && len + TID_BYTES < size)
		len += (size_t)snprintf(buf + len, size - len, " %" PRIu64, shared->tid);
	return len;
}

static bool is_labelled(const struct weft__frame *f, uint32_t promise)
{
	return weft_model_name_text(f->model, promise) != WEFT_NONE || weft_layout_fold(f->layout, promise);
}

static enum weft_paint paint_of(const struct weft__frame *f, const struct weft__caption *c)
{
	return c->important ? WEFT_PAINT_FAILED : is_labelled(f, c->promise) ? WEFT_PAINT_LABEL : WEFT_PAINT_LABEL_ID;
}

/* Where the row above is near, or code ran there for long, a name stands as far left as nothing is in its way. */
static void draw_tight(struct weft__frame *f, const struct weft__caption *c, struct room room)
{
	char text[176];
	size_t len = name_of(f, c->promise, text, sizeof text);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), y = c->y - 3;
	for (int tried = 0; len > 0 && tried < TIGHT_TRIES && room.from + width <= room.to; tried++, room.from += TIGHT_STEP_PX)
		if (!weft__line_blocks(f, WEFT_FONT_LABEL, room.from, y, width) &&
		    weft__text_put(f, paint_of(f, c), room.from, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width}))
			return;
}

/* At the beginning of what is seen of its line; returns where it ends, or where it would begin if it has no room. */
static double draw_name(struct weft__frame *f, const struct weft__caption *c, struct room room)
{
	char text[176];
	size_t len = name_of(f, c->promise, text, sizeof text - 4);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), spare = 0;
	/* An id cut short would be another's. */
	if (is_labelled(f, c->promise) || f->model->promises[c->promise].site != WEFT_NONE)
		len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, room.to - room.from, &width);
	else
		spare = ID_SPARE_PX;
	if (len == 0 || (room.from + width + spare > room.to && !c->highlighted && !c->important))
		return room.from;
	if (weft__line_blocks(f, WEFT_FONT_LABEL, room.from, c->y - 4, width)) {
		draw_tight(f, c, room);
		return room.from;
	}
	return weft__text_put(f, paint_of(f, c), room.from, c->y - 4, (struct weft__writing){WEFT_FONT_LABEL, text, len, width})
		   ? room.from + width + GAP_PX
		   : room.from;
}

/* What it was told later, and changes of counters: a mark where that was, and small beside it what, where there is room from `at`
 * on.  The error that it failed with stands at its end. */
static void draw_notes(struct weft__frame *f, const struct weft__caption *c, struct room room, double at)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *p = &m->promises[c->promise];
	uint32_t begin = p->labels, end = p[1].labels, name = weft_model_name_text(m, c->promise);
	uint32_t l = (uint32_t)WEFT_FIRST(i, begin, end, weft_view_x(f->view, m->labels[i].time_ns) >= room.from - 3);
	for (int tried = 0; l < end && tried < MOST_NOTES; tried++) {
		char raw[160], text[176];
		const struct weft_label *label = &m->labels[l];
		bool is_name = !label->is_counter && label->text == name,
		     is_error = !label->is_counter && label->text == p->failure;
		double x = weft_view_x(f->view, label->time_ns), from = x + 3 > at ? x + 3 : at, width;
		if (x > room.to + 3)
			break;
		size_t len = weft_model_label(m, label, raw, sizeof raw);
		len = weft__text_clean(text, sizeof text - 4, raw, len < sizeof raw ? len : sizeof raw - 1);
		name = is_name ? WEFT_NONE : name; /* said again, it is a note */
		if (len > 0 && !is_name) {
			width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
			if (is_error && from + width > room.to && room.to - width >= at)
				from = room.to - width;
			len = weft__text_fit(f, WEFT_FONT_SMALL, text, len, sizeof text, room.to - from, &width);
			if (!is_error)
				mark(f, x, c->y);
			/* Far from its mark it would be another's. */
			if (len > 0 && (is_error || from - x < NOTE_AWAY_PX) &&
			    !weft__line_blocks(f, WEFT_FONT_SMALL, from, c->y - 4, width) &&
			    weft__text_put(f, c->important && is_error ? WEFT_PAINT_FAILED : WEFT_PAINT_KIND, from, c->y - 4,
				(struct weft__writing){WEFT_FONT_SMALL, text, len, width}))
				at = from + width + GAP_PX;
		}
		/* The next that has a mark of its own. */
		int64_t after = weft_view_time(f->view, x + MARK_STEP_PX);
		l = (uint32_t)WEFT_FIRST_NEAR(i, l + 1, end, m->labels[i].time_ns >= after);
	}
}

/* Right of a line that is too short for its name, where nothing is; whether it stands there. */
static bool draw_beside(struct weft__frame *f, const struct weft__caption *c)
{
	char text[176];
	size_t len = name_of(f, c->promise, text, sizeof text);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), x = c->x1 + BESIDE_GAP_PX, y = c->y + 4;
	return len > 0 && width > c->x1 - c->x0 - 5 && x + width <= c->until &&
	       !weft__line_blocks(f, WEFT_FONT_LABEL, x, y, width) &&
	       weft__text_put(f, paint_of(f, c), x, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

static void draw_kind(struct weft__frame *f, const struct weft__caption *c, struct room room)
{
	char text[64];
	const char *kind = weft_model_kind_name(f->model, f->model->promises[c->promise].kind);
	int n = snprintf(text, sizeof text - 4, "%s", kind);
	double width;
	size_t len = n < (int)sizeof text - 4 ? (size_t)n : sizeof text - 5;
	width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
	if (room.from + width <= room.to &&
	    !weft__text_blocked(f, WEFT_FONT_SMALL, room.from, c->y + KIND_BELOW_PX + KIND_AWAY_PX, width))
		weft__text_put(f, WEFT_PAINT_KIND, room.from, c->y + KIND_BELOW_PX,
		    (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
}

static void draw_caption(struct weft__frame *f, const struct weft__caption *c, bool kind)
{
	struct room room = {.from = c->x0 + 3, .to = c->x1 - 2};
	const bool is_fold = weft_layout_fold(f->layout, c->promise) != NULL;
	if (room.from < 4)
		room.from = 4;
	if (kind) {
		if (!is_fold && !has_only_kind(f->model, c->promise)) /* whose name says it */
			draw_kind(f, c, room);
		return;
	}
	if (c->until > c->x1 && is_labelled(f, c->promise) && draw_beside(f, c))
		return;
	if (c->tight) {
		draw_tight(f, c, room);
		return;
	}
	double at = draw_name(f, c, room);
	if (!is_fold)
		draw_notes(f, c, room, at);
}

/* ---- Rows of promises that are all too short for a name ---- */

/* What a sample of them have in common: their name, where they were made, their kind; 0: nothing. */
static size_t common_name(const struct weft__frame *f, size_t first, size_t end, char *buf, size_t size)
{
	const struct weft_model *m = f->model;
	const size_t step = (end - first) / CROWD_SAMPLE | 1; /* odd: what alternates is seen */
	const uint32_t one = f->layout->by_row[first];
	bool is_text = true, is_site = true, is_kind = true;
	for (size_t i = first; i < end; i += step) {
		const uint32_t p = f->layout->by_row[i];
		is_text &= weft_model_name_text(m, p) == weft_model_name_text(m, one);
		is_site &= m->promises[p].site == m->promises[one].site;
		is_kind &= m->promises[p].kind == m->promises[one].kind;
	}
	const char *kind = weft_model_kind_name(m, m->promises[one].kind);
	if (is_text && is_labelled(f, one))
		return name_of(f, one, buf, size);
	if (is_site && m->promises[one].site != WEFT_NONE)
		return unlabelled(m, one, buf, size);
	return is_kind ? weft__text_clean(buf, size, kind, strlen(kind)) : 0;
}

static void name_crowd(struct weft__frame *f, const struct weft__line *line)
{
	const struct weft_intervals t = weft__row_intervals(f->index, f->layout, line->row);
	const size_t before = f->layout->row_begin[line->row], first = weft__intervals_end_after(&t, 0, f->from_ns),
		     end = weft__intervals_start_from(&t, first, f->to_ns);
	char name[130], text[176], number[WEFT_NUMBER_BYTES];
	if (end - first < 2)
		return;
	const size_t own = common_name(f, before + first, before + end, name, sizeof name);
	const int n = snprintf(text, sizeof text - 4, "%s%s%s", weft_thousands(number, end - first),
	    own > 0 ? " \xc3\x97 " : " promises", own > 0 ? name : "");
	const size_t len = n < (int)sizeof text - 4 ? (size_t)n : sizeof text - 5;
	const double width = weft__text_width(f, WEFT_FONT_LABEL, text, len),
		     at = weft_view_x(f->view, t.start[first * t.stride]);
	const double x = at + 3 > 4 ? at + 3 : 4;
	if (x + width < f->width)
		weft__text_put(f, WEFT_PAINT_LABEL_ID, x, line->y - 4, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

/* Without a name one would have to zoom in to learn what a row is about. */
static void draw_crowds(struct weft__frame *f)
{
	size_t c = 0;
	for (size_t i = 0; i < f->s->lines.count; i++) {
		const struct weft__line *line = &f->s->lines.items[i];
		int widest = 0;
		for (; c < f->s->captions.count && f->s->captions.items[c].y <= line->y; c++) {
			const struct weft__caption *one = &f->s->captions.items[c];
			widest = one->y == line->y && one->until - one->x0 > widest ? one->until - one->x0 : widest;
		}
		if (line->pitch >= CROWD_ROW_PX && line->above >= CROWD_ROW_PX && widest < NAMED_PX)
			name_crowd(f, line);
	}
}

void weft__draw_captions(struct weft__frame *f)
{
	/* First those for which somebody looks; kinds where names leave room. */
	enum { HIGHLIGHTED, IMPORTANT, PLAIN, BESIDE, TIGHT, KIND, RANKS };
	for (int rank = 0; rank < RANKS; rank++) {
		for (size_t i = 0; i < f->s->captions.count; i++) {
			const struct weft__caption *c = &f->s->captions.items[i];
			int own = c->highlighted              ? HIGHLIGHTED
				  : c->important && !c->tight ? IMPORTANT
				  : c->until > c->x1          ? BESIDE
				  : c->tight                  ? TIGHT
							      : PLAIN;
			if (rank == KIND ? c->room >= KIND_ROOM_PX && !c->tight : own == rank)
				draw_caption(f, c, rank == KIND);
		}
	}
	draw_crowds(f);
}
