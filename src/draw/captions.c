/* captions.c: writes names above the lines of promises, and kinds below the lines.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/search.h"
#include "draw/frame.h"
#include "model/roles.h"

#define GAP_PX 5.0
#define BESIDE_GAP_PX 6.0
#define MAX_NOTES 48
#define MARK_STEP_PX 4.0  /* minimum between marks */
#define NOTE_AWAY_PX 30.0 /* maximum from its mark */
#define ID_SPARE_PX 16.0  /* spare length in px that a line needs for an id as its name */
#define TIGHT_STEP_PX 24.0
#define TIGHT_TRIES 12
#define MAX_COMPARED_NAMES 32u
#define NAME_AND_KIND_PX 22 /* minimum height in px of a row with both a name and a kind */
/* Distance in px of the kind below its line, so that a ring around the line does not touch the kind. */
#define KIND_BELOW_PX 14
#define TID_BYTES 24
#define CROWD_ROW_PX 18 /* minimum height in px of a row that gets one name for all its promises */
#define CROWD_SAMPLE 32 /* number of promises that are compared to find a common name */
#define NAMED_PX 40     /* length in px from which on a promise has a name of its own */
#define KIND_AWAY_PX 2  /* distance in px of the kind from the text below, because closer texts would be read as one */

/* Interval in which a promise's label may be written: the promise's line within the picture. */
struct space {
	double from, to;
};

static void draw_note_mark(struct weft__frame *f, double x, int y)
{
	int at = weft__floor(x);
	weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255), at, y - 3, at + 1, y);
}

/* Returns whether nothing readable is known of a call site.  A function without a name is shown by its start address. */
static bool is_address(const struct weft_site *site)
{
	return weft_site_is_machine_code(site) && (site->function.len == 0 || weft_site_is_bridge(site) ||
						      memmem(site->function.ptr, site->function.len, "+0x", 3) != NULL);
}

bool weft__promise_has_only_kind(const struct weft_model *m, uint32_t promise)
{
	const uint32_t site = m->promises[promise].site;
	return site != WEFT_NONE && is_address(&m->trace->sites[site]) && weft_model_name_text(m, promise) == WEFT_NONE;
}

/* Writes a substitute for a missing label: the function that created the promise, else the source line, else the promise's kind
 * or id. */
static size_t name_unlabelled(const struct weft_model *m, uint32_t promise, char *buf, size_t size)
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

/* Writes the name of a track that is drawn as one line. */
static size_t name_track(const struct weft__frame *f, const struct weft_fold *fold, char *buf, size_t size)
{
	uint32_t text = weft_model_name_text(f->model, fold->leader);
	/* If the track has no label, the label of the first actor in it says more than its call site. */
	for (uint32_t k = 1; k < fold->count && k < MAX_COMPARED_NAMES && text == WEFT_NONE; k++) {
		uint32_t member = f->layout->folded[fold->first + k];
		uint16_t kind = f->model->promises[member].kind;
		if (weft_kind_has(kind, WEFT_TRAIT_ACTOR) && !weft_kind_has(kind, WEFT_TRAIT_REQUEST))
			text = weft_model_name_text(f->model, member);
	}
	struct weft_str label = text != WEFT_NONE ? weft_model_text(f->model, text) : (struct weft_str){"", 0};
	return text != WEFT_NONE ? weft__text_clean(buf, size, label.ptr, label.len)
				 : name_unlabelled(f->model, fold->leader, buf, size);
}

bool weft__is_internal_fold(const struct weft__frame *f, const struct weft_fold *fold)
{
	const struct weft_roles *roles;
	bool is_internal = fold->is_group && weft_model_roles(f->model, &roles) == WEFT_OK;
	for (uint32_t k = 0; k < fold->count && k < MAX_COMPARED_NAMES && is_internal; k++)
		is_internal = weft_is_internal(roles, f->layout->folded[fold->first + k]);
	return is_internal;
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
		size_t own = name_track(f, fold, name, sizeof name);
		len = snprintf(buf, size, "%.*s \xc2\xb7 %s folded", (int)own, name, weft_number_text(number, fold->count - 1));
	} else if (weft__is_internal_fold(f, fold)) {
		char name[130];
		weft_process_name(f->model, promise, name, sizeof name);
		len = snprintf(buf, size, name[0] ? "internals of %s" : "internals", name);
	} else {
		len = snprintf(buf, size, fold->is_group ? "%s \xc3\x97 %s" : "%s %ss", weft_number_text(number, fold->count),
		    weft_model_kind_name(f->model, f->model->promises[promise].kind));
	}
	return len < (int)size ? (size_t)len : size - 1;
}

uint16_t weft__pool_number(const struct weft__frame *f, uint16_t stream)
{
	const struct weft_trace_info *info = f->model->trace;
	const struct weft_roles *roles;
	uint16_t first = 0;
	if (!info || stream >= info->stream_count || weft_model_roles(f->model, &roles) < 0)
		return 0;
	while (roles->part_of[first] != roles->part_of[stream])
		first++;
	/* A thread that has a name of its own keeps this name. */
	return weft_str_equal(info->streams[stream].name, info->streams[first].name) ? roles->pool_of[stream] : 0;
}

/* Returns the OS thread of a promise if other threads have the same name; else NULL. */
static const struct weft_stream_info *namesake_of(const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	if (!m->threads || !m->run_streams || !weft_kind_has(p->kind, WEFT_TRAIT_THREAD) || p->runs == p[1].runs)
		return NULL;
	const uint16_t stream = m->run_streams[p->runs];
	return m->namesakes[stream] && m->threads[stream] == promise ? &m->trace->streams[stream] : NULL;
}

size_t weft__promise_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size)
{
	size_t fold_len = weft__fold_name(f, promise, buf, size);
	if (fold_len > 0)
		return fold_len;
	uint32_t text = weft_model_name_text(f->model, promise);
	if (text == WEFT_NONE)
		return name_unlabelled(f->model, promise, buf, size);
	struct weft_str name = weft_model_text(f->model, text);
	size_t len = weft__text_clean(buf, size, name.ptr, name.len);
	const struct weft_stream_info *shared = namesake_of(f->model, promise);
	const uint16_t pool = shared ? weft__pool_number(f, f->model->run_streams[f->model->promises[promise].runs]) : 0;
	if (pool > 0)
		return (size_t)snprintf(buf, size, "pool %u", pool);
	if (shared && weft_str_equal(name, shared->name) && len + TID_BYTES < size)
		len += (size_t)snprintf(buf + len, size - len, " %" PRIu64, shared->tid);
	return len;
}

size_t weft__line_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size)
{
	const struct weft_fold *fold = weft_layout_fold(f->layout, promise);
	return fold && fold->is_track ? name_track(f, fold, buf, size) : weft__promise_name(f, promise, buf, size);
}

bool weft__promise_is_labelled(const struct weft__frame *f, uint32_t promise)
{
	return weft_model_name_text(f->model, promise) != WEFT_NONE || weft_layout_fold(f->layout, promise);
}

static enum weft_paint paint_of(const struct weft__frame *f, const struct weft__caption *c)
{
	return c->important                               ? WEFT_PAINT_FAILED
	       : weft__promise_is_labelled(f, c->promise) ? WEFT_PAINT_LABEL
							  : WEFT_PAINT_LABEL_ID;
}

/* Writes a name as far left as there is space, if the row above is close or a wide run is in the way. */
static void draw_tight(struct weft__frame *f, const struct weft__caption *c, struct space space)
{
	char text[176];
	size_t len = weft__promise_name(f, c->promise, text, sizeof text);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), y = c->y - 3;
	for (int tried = 0; len > 0 && tried < TIGHT_TRIES && space.from + width <= space.to;
	     tried++, space.from += TIGHT_STEP_PX)
		if (!weft__line_blocks(f, WEFT_FONT_LABEL, space.from, y, width) &&
		    weft__text_put(f, paint_of(f, c), space.from, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width}))
			return;
}

/* Writes a name at the visible start of its line.  Returns the end of the name, or its start if there is no space. */
static double draw_name(struct weft__frame *f, const struct weft__caption *c, struct space space)
{
	char text[176];
	size_t len = weft__promise_name(f, c->promise, text, sizeof text - 4);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), spare = 0;
	/* An id must not be shortened, because a shortened id would be a different id. */
	if (weft__promise_is_labelled(f, c->promise) || f->model->promises[c->promise].site != WEFT_NONE)
		len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, space.to - space.from, &width);
	else
		spare = ID_SPARE_PX;
	if (len == 0 || (space.from + width + spare > space.to && !c->highlighted && !c->important))
		return space.from;
	if (weft__line_blocks(f, WEFT_FONT_LABEL, space.from, c->y - 4, width)) {
		draw_tight(f, c, space);
		return space.from;
	}
	return weft__text_put(f, paint_of(f, c), space.from, c->y - 4, (struct weft__writing){WEFT_FONT_LABEL, text, len, width})
		   ? space.from + width + GAP_PX
		   : space.from;
}

/* Draws later labels and changes of counters as marks at their times, with small text beside a mark if there is space right of
 * `at`.  The error with which a promise failed is written at the promise's end. */
static void draw_notes(struct weft__frame *f, const struct weft__caption *c, struct space space, double at)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *p = &m->promises[c->promise];
	uint32_t begin = p->labels, end = p[1].labels, name = weft_model_name_text(m, c->promise);
	uint32_t l = (uint32_t)WEFT_FIND_FIRST(i, begin, end, weft_view_x(f->view, m->labels[i].time_ns) >= space.from - 3);
	for (int tried = 0; l < end && tried < MAX_NOTES; tried++) {
		char raw[160], text[176];
		const struct weft_label *label = &m->labels[l];
		bool is_name = !label->is_counter && label->text == name,
		     is_error = !label->is_counter && label->text == p->failure;
		double x = weft_view_x(f->view, label->time_ns), from = x + 3 > at ? x + 3 : at, width;
		if (x > space.to + 3)
			break;
		size_t len = weft_model_label(m, label, raw, sizeof raw);
		len = weft__text_clean(text, sizeof text - 4, raw, len < sizeof raw ? len : sizeof raw - 1);
		name = is_name ? WEFT_NONE : name; /* a later label that repeats the promise's name is a note */
		if (len > 0 && !is_name) {
			width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
			if (is_error && from + width > space.to && space.to - width >= at)
				from = space.to - width;
			len = weft__text_fit(f, WEFT_FONT_SMALL, text, len, sizeof text, space.to - from, &width);
			if (!is_error)
				draw_note_mark(f, x, c->y);
			/* A note that is farther from its mark would seem to belong to another mark. */
			if (len > 0 && (is_error || from - x < NOTE_AWAY_PX) &&
			    !weft__line_blocks(f, WEFT_FONT_SMALL, from, c->y - 4, width) &&
			    weft__text_put(f, c->important && is_error ? WEFT_PAINT_FAILED : WEFT_PAINT_KIND, from, c->y - 4,
				(struct weft__writing){WEFT_FONT_SMALL, text, len, width}))
				at = from + width + GAP_PX;
		}
		/* Notes whose marks would coincide with this mark are skipped. */
		int64_t after = weft_view_time(f->view, x + MARK_STEP_PX);
		l = (uint32_t)WEFT_FIND_FIRST_NEAR(i, l + 1, end, m->labels[i].time_ns >= after);
	}
}

/* Writes the name of a short line to the right of the line, if that space is free.  Returns whether it did. */
static bool draw_beside(struct weft__frame *f, const struct weft__caption *c)
{
	char text[176];
	size_t len = weft__promise_name(f, c->promise, text, sizeof text);
	double width = weft__text_width(f, WEFT_FONT_LABEL, text, len), x = c->x1 + BESIDE_GAP_PX, y = c->y + 4;
	return len > 0 && width > c->x1 - c->x0 - 5 && x + width <= c->until &&
	       !weft__line_blocks(f, WEFT_FONT_LABEL, x, y, width) &&
	       weft__text_put(f, paint_of(f, c), x, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

static void draw_kind(struct weft__frame *f, const struct weft__caption *c, struct space space)
{
	char text[64];
	const char *kind = weft_model_kind_name(f->model, f->model->promises[c->promise].kind);
	int n = snprintf(text, sizeof text - 4, "%s", kind);
	double width;
	size_t len = n < (int)sizeof text - 4 ? (size_t)n : sizeof text - 5;
	width = weft__text_width(f, WEFT_FONT_SMALL, text, len);
	if (space.from + width <= space.to &&
	    !weft__text_blocked(f, WEFT_FONT_SMALL, space.from, c->y + KIND_BELOW_PX + KIND_AWAY_PX, width))
		weft__text_put(f, WEFT_PAINT_KIND, space.from, c->y + KIND_BELOW_PX,
		    (struct weft__writing){WEFT_FONT_SMALL, text, len, width});
}

static void draw_caption(struct weft__frame *f, const struct weft__caption *c, bool kind)
{
	struct space space = {.from = c->x0 + 3, .to = c->x1 - 2};
	const bool is_fold = weft_layout_fold(f->layout, c->promise) != NULL;
	if (space.from < 4)
		space.from = 4;
	if (f->options.names_beside && (c->alone || c->tight)) {
		if (!kind && !is_fold && !c->tight)
			draw_notes(f, c, space, space.from);
		return;
	}
	if (kind) {
		/* The name would be the kind, which is then not repeated. */
		if (!is_fold && !weft__promise_has_only_kind(f->model, c->promise))
			draw_kind(f, c, space);
		return;
	}
	if (c->until > c->x1 && weft__promise_is_labelled(f, c->promise) && draw_beside(f, c))
		return;
	if (c->tight) {
		draw_tight(f, c, space);
		return;
	}
	double at = draw_name(f, c, space);
	if (!is_fold)
		draw_notes(f, c, space, at);
}

/* ---- Rows of promises that are all too short for names ---- */

/* Returns how many bytes two texts have in common at their starts, up to the end of a word or of a path component. */
static uint32_t find_common_stem(struct weft_str a, struct weft_str b)
{
	uint32_t same = 0;
	while (same < a.len && same < b.len && a.ptr[same] == b.ptr[same])
		same++;
	/* The groups of an IPv6 address do not count as words. */
	const char *bracket = memchr(a.ptr, '[', same);
	if (bracket && !memchr(bracket, ']', same - (size_t)(bracket - a.ptr)))
		same = (uint32_t)(bracket - a.ptr);
	while (same > 0 && !strchr(" /:", a.ptr[same - 1]))
		same--;
	return same;
}

/* Writes the common start of labels and an asterisk, for example for "GET /orders" and "GET /users"; writes nothing if the
 * labels begin with different words. */
static size_t write_common_stem(const struct weft__frame *f, size_t first, size_t end, size_t step, char *buf, size_t size)
{
	enum { MIN_BYTES = 3 };
	const struct weft_model *m = f->model;
	struct weft_str stem = {"", 0};
	for (size_t i = first; i < end; i += step) {
		const uint32_t text = weft_model_name_text(m, f->layout->by_row[i]);
		const struct weft_str label = text != WEFT_NONE ? weft_model_text(m, text) : (struct weft_str){"", 0};
		stem = i == first ? label : stem;
		stem.len = find_common_stem(stem, label);
		if (stem.len < MIN_BYTES)
			return 0;
	}
	size_t len = weft__text_clean(buf, size - 1, stem.ptr, stem.len);
	buf[len++] = '*';
	buf[len] = '\0';
	return len;
}

size_t weft__common_name(const struct weft__frame *f, size_t first, size_t end, char *buf, size_t size)
{
	const struct weft_model *m = f->model;
	/* The step is odd, so that promises that alternate between two names are noticed. */
	const size_t step = (end - first) / CROWD_SAMPLE | 1;
	const uint32_t one = f->layout->by_row[first];
	bool is_text = true, is_site = true, is_kind = true, has_fold = false;
	for (size_t i = first; i < end; i += step) {
		const uint32_t p = f->layout->by_row[i];
		is_text &= weft_model_name_text(m, p) == weft_model_name_text(m, one);
		has_fold |= weft_layout_fold(f->layout, p) != NULL;
		is_site &= m->promises[p].site == m->promises[one].site;
		is_kind &= m->promises[p].kind == m->promises[one].kind;
	}
	const char *kind = weft_model_kind_name(m, m->promises[one].kind);
	if (has_fold)
		return 0;
	if (is_text && weft__promise_is_labelled(f, one))
		return weft__promise_name(f, one, buf, size);
	const size_t stem_len = is_kind ? write_common_stem(f, first, end, step, buf, size) : 0;
	if (stem_len > 0)
		return stem_len;
	if (is_site && m->promises[one].site != WEFT_NONE)
		return name_unlabelled(m, one, buf, size);
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
	const size_t own = weft__common_name(f, before + first, before + end, name, sizeof name);
	const int n = snprintf(text, sizeof text - 4, "%s%s%s", weft_number_text(number, end - first),
	    own > 0 ? " \xc3\x97 " : " promises", own > 0 ? name : "");
	const size_t len = n < (int)sizeof text - 4 ? (size_t)n : sizeof text - 5;
	const double width = weft__text_width(f, WEFT_FONT_LABEL, text, len),
		     at = weft_view_x(f->view, t.start[first * t.stride]);
	const double x = at + 3 > 4 ? at + 3 : 4;
	if (x + width < f->width)
		weft__text_put(f, WEFT_PAINT_LABEL_ID, x, line->y - 4, (struct weft__writing){WEFT_FONT_LABEL, text, len, width});
}

/* Names rows of short promises, so that users need not zoom in to identify a row. */
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
	/* Order in which names get space: highlighted promises come first, and kinds come last, in the space that names
	 * leave. */
	enum { HIGHLIGHTED, IMPORTANT, PLAIN, BESIDE, TIGHT, KIND, RANKS };
	for (int rank = 0; rank < RANKS; rank++) {
		for (size_t i = 0; i < f->s->captions.count; i++) {
			const struct weft__caption *c = &f->s->captions.items[i];
			int own = c->highlighted              ? HIGHLIGHTED
				  : c->important && !c->tight ? IMPORTANT
				  : c->until > c->x1          ? BESIDE
				  : c->tight                  ? TIGHT
							      : PLAIN;
			if (rank == KIND ? c->space >= NAME_AND_KIND_PX && !c->tight : own == rank)
				draw_caption(f, c, rank == KIND);
		}
	}
	if (!f->options.names_beside)
		draw_crowds(f);
}
