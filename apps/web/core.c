/* core.c: exports functions of the C core to the page's scripts, which can pass only numbers and terminated texts.
 *
 * Scripts call most functions of the core directly; exports.txt lists them.  A text that a function of this file returns is
 * valid until the next call.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/web/memory.h"
#include "apps/web/parcel.h"
#include "base/duration.h"
#include "draw/pixels.h"
#include "draw/svg.h"
#include "viewer/compare.h"
#include "viewer/findings.h"
#include "viewer/live_panel.h"
#include "viewer/matches.h"
#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/summary.h"
#include "viewer/summary_panel.h"
#include "viewer/table.h"
#include "viewer/warnings.h"

/* A fuzz target that includes this file defines its own EXPORT. */
#ifndef EXPORT
#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("weft"), import_name(#name)))
#endif

_Static_assert(sizeof(struct weft_prim) == 36 && offsetof(struct weft_prim, x0) == 8 && offsetof(struct weft_prim, first) == 28,
    "canvas.js reads the fields of a primitive at these offsets");

/* Reports to the page the number of events read, or the analysed percentage of a trace. */
IMPORT(progress) void page_progress(double done);

IMPORT(measure) double page_measure(enum weft_font font, const char *text, size_t len);

static struct weft_error error;
static char answer[16384];

static double measure_text(void *ctx, enum weft_font font, const char *text, size_t len)
{
	return page_measure(font, text, len);
}

/* Returns the message of the last error. */
EXPORT(last_error) const char *page_last_error(void)
{
	weft_error_format(&error, answer, sizeof answer);
	return answer;
}

EXPORT(paint_count) int page_paint_count(void)
{
	return WEFT_PAINT_COUNT;
}

EXPORT(action_count) int page_action_count(void)
{
	return WEFT_ACTION_COUNT;
}

EXPORT(gesture_count) size_t page_gesture_count(void)
{
	size_t count;
	weft_gestures(&count);
	return count;
}

/* Returns a gesture of the mouse or the keyboard and the gesture's effect, one line each. */
EXPORT(gesture) const char *page_gesture(size_t number)
{
	size_t count;
	const struct weft_gesture *gesture = &weft_gestures(&count)[number];
	snprintf(answer, sizeof answer, "%s\n%s", gesture->gesture, gesture->effect);
	return answer;
}

/* Returns an action's name, label, keys and group, one line each, and then its `who` (enum weft_action_who) and `menus` (enum
 * weft_menu). */
EXPORT(action) const char *page_action(enum weft_action action)
{
	const struct weft_action_info *info = weft_action_info(action);
	snprintf(answer, sizeof answer, "%s\n%s\n%s\n%s\n%d\n%d", info->name, info->label, info->keys,
	    weft_action_group_label(info->group), info->who, info->menus);
	return answer;
}

/* List of all viewers of this instance of the core. */
static struct weft_compare all;
static struct weft_pane panes[WEFT_COMPARE_PANES];

EXPORT(compare) struct weft_compare *page_compare(void)
{
	return &all;
}

static bool report_reading(void *ctx, uint64_t events)
{
	page_progress((double)events);
	return true;
}

static bool report_explaining(void *ctx, unsigned percent)
{
	page_progress(percent);
	return true;
}

/* Reads a trace.  The caller keeps ownership of the trace's bytes, which must outlive the viewer.  Returns NULL on failure;
 * last_error() returns the message. */
EXPORT(load) struct weft_viewer *page_load(const unsigned char *bytes, size_t size, const char *name)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer = NULL;
	struct weft_model_options options = {.go_on = report_reading};
	if (weft_trace_open_memory(&trace, bytes, size, name, &error) < 0)
		return NULL;
	if (weft_viewer_open(&viewer, trace, &options, &error) == WEFT_OK)
		weft_viewer_set_name(viewer, name);
	else
		weft_trace_close(trace);
	return viewer;
}

EXPORT(begin_at) bool page_begin_at(uintptr_t start)
{
	return memory_begin_at(start);
}

EXPORT(adopt) bool page_adopt(uintptr_t from, uintptr_t to)
{
	return memory_adopt(from, to);
}

/* Shows a viewer below the others, or in place of another viewer, which is destroyed.  Returns a negative status on failure;
 * last_error() returns the message. */
EXPORT(show) int page_show(struct weft_viewer *viewer, bool measured, size_t place)
{
	int status = WEFT_OK;
	struct weft_viewer *before = NULL;
	if (place < all.count)
		before = weft_compare_replace(&all, place, viewer);
	else
		status = weft_compare_add(&all, viewer, &error);
	weft_viewer_destroy(status < 0 ? viewer : before);
	memory_give_up(status < 0 ? viewer : before);
	if (status == WEFT_OK)
		weft_compare_set_measure(&all, measured ? measure_text : NULL, NULL);
	return status;
}

EXPORT(viewer) struct weft_viewer *page_viewer(size_t number)
{
	return number < all.count ? all.viewers[number] : NULL;
}

EXPORT(viewers) size_t page_viewers(void)
{
	return all.count;
}

EXPORT(active) size_t page_active(void)
{
	return all.active;
}

EXPORT(top) double page_top(size_t number)
{
	return all.tops_px[number];
}

/* Updates the panes.  Returns the number of panes, or a negative status. */
EXPORT(draw) int page_draw(void)
{
	return weft_compare_draw(&all, panes, WEFT_COMPARE_PANES, &error);
}

static size_t in_image[WEFT_COMPARE_PANES];

static int round_px(double px)
{
	return (int)(px + 0.5);
}

static struct weft_pixels part_of(const struct weft_pixels *image, const struct weft_pane *pane, double ratio)
{
	struct weft_pixels part = *image;
	part.x = part.x0 = round_px(pane->x_px * ratio);
	part.y = part.y0 = round_px(pane->y_px * ratio);
	part.x1 = round_px((pane->x_px + pane->width_px) * ratio);
	part.y1 = round_px((pane->y_px + pane->height_px) * ratio);
	part.x1 = part.x1 < image->x1 ? part.x1 : image->x1;
	part.y1 = part.y1 < image->y1 ? part.y1 : image->y1;
	part.scale = pane->scale * ratio;
	return part;
}

/* Returns an image, for a canvas, of the panes that are pictures, each drawn up to its first text.  The image is valid until the
 * next call.  Returns NULL without memory. */
EXPORT(image) const void *page_image(int width, int height, double ratio, enum weft_theme theme)
{
	static void *data;
	static size_t size;
	const size_t wanted = (size_t)width * (size_t)height * 4;
	if (size != wanted) {
		free(data);
		data = malloc(wanted);
		size = data ? wanted : 0;
	}
	if (!data)
		return NULL;
	const struct weft_pixels image = {
	    .data = data, .stride = width * 4, .x1 = width, .y1 = height, .scale = 1, .is_rgba = true};
	weft_pixels_fill(&image, theme, WEFT_PAINT_BACKGROUND);
	for (size_t i = 0; i < all.count * WEFT_PANES; i++) {
		if (i % WEFT_PANES > WEFT_PANE_GUTTER)
			continue;
		const struct weft_pixels part = part_of(&image, &panes[i], ratio);
		in_image[i] = weft_pixels_draw(&part, panes[i].list, 0, theme);
	}
	return data;
}

/* Returns the x, y, width, height and scale of a pane, the address and number of its primitives, the address of their texts, and
 * the number of primitives that the image already contains. */
EXPORT(pane) const double *page_pane(int number)
{
	static double numbers[9];
	const struct weft_pane *pane = &panes[number];
	numbers[0] = pane->x_px;
	numbers[1] = pane->y_px;
	numbers[2] = pane->width_px;
	numbers[3] = pane->height_px;
	numbers[4] = pane->scale;
	numbers[5] = (double)(uintptr_t)pane->list->prims;
	numbers[6] = (double)pane->list->count;
	numbers[7] = (double)(uintptr_t)pane->list->text;
	numbers[8] = (double)in_image[number];
	return numbers;
}

/* Returns a pane's draw list as text, for tests; the caller frees the text. */
EXPORT(dump) char *page_dump(struct weft_viewer *viewer, int number)
{
	char *text = NULL;
	size_t size;
	if (weft_viewer_draw(viewer, &error) == WEFT_OK)
		weft_draw_dump(viewer->panes[number].list, &text, &size);
	return text;
}

/* Starts a search.  Returns an error message, or "" on success. */
EXPORT(search) const char *page_search(const char *text)
{
	return weft_compare_search(&all, text, &error) < 0 ? error.what : "";
}

EXPORT(end_ns) int64_t page_end_ns(const struct weft_viewer *viewer)
{
	return viewer->model->end_ns;
}

EXPORT(matches_count) const char *page_matches_count(void)
{
	return weft_matches_count(&all, answer);
}

EXPORT(search_text) const char *page_search_text(const struct weft_viewer *viewer)
{
	return viewer->search_text;
}

EXPORT(place) const char *page_place(void)
{
	weft_compare_place(&all, answer, sizeof answer);
	return answer;
}

EXPORT(go) const char *page_go(const char *place)
{
	return weft_compare_go(&all, place, &error) < 0 ? error.what : "";
}

EXPORT(set_start) const char *page_set_start(struct weft_viewer *viewer, const char *text)
{
	return weft_viewer_set_start(viewer, text, &error) < 0 ? error.what : "";
}

EXPORT(go_time) const char *page_go_time(struct weft_viewer *viewer, const char *text)
{
	return weft_viewer_go_to_time(viewer, text, &error) < 0 ? error.what : "";
}

EXPORT(set_duration) const char *page_set_duration(struct weft_viewer *viewer, const char *text)
{
	return weft_viewer_set_duration(viewer, text, &error) < 0 ? error.what : "";
}

/* Returns whether a promise is selected that can be described. */
EXPORT(is_picked) bool page_is_picked(const struct weft_viewer *viewer)
{
	return viewer->selected != WEFT_NONE || viewer->spot.track != WEFT_NONE;
}

EXPORT(selected) uint32_t page_selected(const struct weft_viewer *viewer)
{
	return viewer->selected;
}

EXPORT(hovered) uint32_t page_hovered(const struct weft_viewer *viewer)
{
	return viewer->hovered;
}

EXPORT(menu_x) double page_menu_x(const struct weft_viewer *viewer)
{
	return viewer->menu_x_px;
}

EXPORT(menu_y) double page_menu_y(const struct weft_viewer *viewer)
{
	return viewer->menu_y_px;
}

EXPORT(summary) const char *page_summary(const struct weft_viewer *viewer)
{
	return weft_viewer_summary(viewer, answer);
}

EXPORT(caption_title) const char *page_caption_title(const struct weft_viewer *viewer)
{
	return weft_viewer_caption_title(viewer, answer);
}

EXPORT(caption_facts) const char *page_caption_facts(const struct weft_viewer *viewer)
{
	return weft_viewer_caption_facts(viewer, answer);
}

EXPORT(describe) const char *page_describe(const struct weft_viewer *viewer)
{
	return weft_viewer_describe(viewer, answer);
}

/* ---- Rows of the panel: a first call fills and counts them, further calls return a row each ---- */

static struct weft_rows rows[7];

/* Lists of rows: of the selected promise, of findings, of notes about the trace, of types, of matches, of promises in flight,
 * and of the summary. */
enum { PANEL_ROWS, FINDING_ROWS, NOTE_ROWS, TABLE_ROWS, MATCH_ROWS, LIVE_ROWS, SUMMARY_ROWS };

EXPORT(panel) size_t page_panel(const struct weft_viewer *viewer)
{
	weft_panel_fill(&rows[PANEL_ROWS], viewer, viewer->selected, &error);
	return rows[PANEL_ROWS].count;
}

EXPORT(summarize) size_t page_summarize(const struct weft_viewer *viewer)
{
	weft_summary_fill(&rows[SUMMARY_ROWS], viewer, &error);
	return rows[SUMMARY_ROWS].count;
}

EXPORT(findings) size_t page_findings(struct weft_viewer *viewer)
{
	weft_findings_fill(&rows[FINDING_ROWS], viewer, &error);
	return rows[FINDING_ROWS].count;
}

EXPORT(filter_types) void page_filter_types(struct weft_viewer *viewer, const char *text)
{
	weft_viewer_filter_table(viewer, text);
}

EXPORT(types) size_t page_types(struct weft_viewer *viewer)
{
	weft_table_fill(&rows[TABLE_ROWS], viewer, &error);
	return rows[TABLE_ROWS].count;
}

EXPORT(notes) size_t page_notes(const struct weft_viewer *viewer)
{
	weft_notes_fill(&rows[NOTE_ROWS], viewer->model, &error);
	return rows[NOTE_ROWS].count;
}

EXPORT(matches) size_t page_matches(const struct weft_viewer *viewer)
{
	weft_matches_fill(&rows[MATCH_ROWS], viewer, &error);
	return rows[MATCH_ROWS].count;
}

EXPORT(in_flight) size_t page_in_flight(struct weft_viewer *viewer)
{
	weft_live_panel_fill(&rows[LIVE_ROWS], viewer, &error);
	return rows[LIVE_ROWS].count;
}

/* Returns a row, with one line for each of these: kind, tone, whether a click has an effect, whether the row is open, name,
 * value, indentation, a key that identifies the row in later versions, and the text for screen readers. */
EXPORT(row) const char *page_row(int which, size_t number)
{
	const struct weft_row *row = &rows[which].rows[number];
	const char *then = weft_row_spoken_then(row);
	char spoken[WEFT_SPOKEN_BYTES];
	snprintf(answer, sizeof answer, "%s\n%s\n%d\n%d\n%s\n%s\n%d\n%" PRIx64 "\n%s%s%s",
	    weft_row_kind_name((enum weft_row_kind)row->kind), weft_row_tone_name((enum weft_row_tone)row->tone), row->leads,
	    row->is_open, row->name, row->value, row->depth, row->key ? row->key ^ row->finding ^ row->line << 8 : 0,
	    weft_row_spoken(row, spoken), then[0] ? ", " : "", then);
	return answer;
}

EXPORT(press_row) void page_press_row(struct weft_viewer *viewer, int which, size_t number)
{
	if (number < rows[which].count)
		weft_viewer_press_row(viewer, &rows[which].rows[number]);
}

/* ---- Questions: analyses that the viewer requests and a worker performs ---- */

/* Return the state of a question, and the promise that the question is about. */
EXPORT(question) int page_question(const struct weft_viewer *viewer, enum weft_ask ask)
{
	return viewer->questions[ask].state;
}

EXPORT(question_promise) uint32_t page_question_promise(const struct weft_viewer *viewer, enum weft_ask ask)
{
	return viewer->questions[ask].promise;
}

/* Analyses the whole trace, or one promise, to answer a question of the viewer.  Returns a parcel (findings in one block of
 * memory), which the caller frees; parcel_size() returns its size.  Returns NULL without memory. */
static size_t parcel_bytes;

EXPORT(explain) void *page_explain(const struct weft_viewer *viewer, enum weft_ask ask, uint32_t promise)
{
	struct weft_findings *findings = NULL;
	struct weft_explain_options options = {.go_on = report_explaining};
	void *parcel = NULL;
	if (ask == WEFT_ASK_TRACE)
		weft_explain(&findings, viewer->model, &options, &error);
	else
		weft_explain_promise(&findings, viewer->model, promise, &options, &error);
	if (findings)
		parcel = parcel_pack(findings, &parcel_bytes);
	weft_findings_destroy(findings);
	return parcel;
}

EXPORT(parcel_size) size_t page_parcel_size(void)
{
	return parcel_bytes;
}

/* Passes an answer to the viewer, and takes over the parcel; NULL means that there is no answer. */
EXPORT(answer) void page_answer(struct weft_viewer *viewer, enum weft_ask ask, void *parcel)
{
	weft_viewer_answer(viewer, ask, parcel ? parcel_unpack(parcel) : NULL);
}

EXPORT(counters) size_t page_counters(const struct weft_viewer *viewer)
{
	return viewer->model->counter_count;
}

EXPORT(counter_name) const char *page_counter_name(const struct weft_viewer *viewer, size_t counter)
{
	struct weft_str name = viewer->model->counters[counter].name;
	snprintf(answer, sizeof answer, "%.*s", (int)name.len, name.ptr);
	return answer;
}

EXPORT(counter_shown) bool page_counter_shown(const struct weft_viewer *viewer, size_t counter)
{
	return !viewer->hidden_metrics[counter];
}

typedef WEFT_VEC(char) char_vec;

static int append_bytes(void *ctx, const void *bytes, size_t size)
{
	char_vec *out = ctx;
	if (!weft_vec_reserve(out, size))
		return -1;
	memcpy(out->items + out->count, bytes, size);
	out->count += size;
	return 0;
}

/* Returns the picture as terminated SVG text; the caller frees the text.  Returns NULL on failure; last_error() returns the
 * message. */
EXPORT(svg) char *page_svg(struct weft_viewer *viewer, enum weft_theme theme)
{
	char_vec out = {0};
	struct weft_draw_list list = {0};
	bool done = weft_viewer_draw_file(viewer, &list, viewer->measure, viewer->measure_ctx, &error) == WEFT_OK &&
		    weft_svg_write(&list, theme, append_bytes, &out, &error) == WEFT_OK && append_bytes(&out, "", 1) == 0;
	weft_draw_finish(&list);
	if (done)
		return out.items;
	weft_vec_free(&out);
	return NULL;
}
