/* page.c: opens any bytes as a trace in the page, with only the calls that the page's scripts make.
 *
 * The first 32 bytes are 8 actions of 4 bytes each: an action and three operands.  The next 24 bytes are a text, as from an
 * address or a user: a place, a search, a time, a name.  The rest is the trace.  In any case scripts must get valid values:
 * texts are UTF-8, rows have their number of lines, primitives are near their pane.  SPDX-License-Identifier: ISC */
#define EXPORT(name) __attribute__((unused)) static
#define IMPORT(name) static
#include "apps/web/core.c"

#include "base/utf8.h"

#define ACTIONS 8
#define ACTION_BYTES 4
#define TEXT_BYTES 24
#define MAX_CHECKED_ROWS 12

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "the page breaks its rule: %s\n", what);
		abort();
	}
}

/* ---- Functions that the page provides otherwise ---- */

static void page_progress(double done)
{
	require(done >= 0, "progress is made");
}

static double page_measure(enum weft_font font, const char *text, size_t len)
{
	(void)font;
	return 6.5 * (double)(text ? len : 0);
}

bool memory_begin_at(uintptr_t start)
{
	return start > 0;
}

bool memory_adopt(uintptr_t from, uintptr_t to)
{
	return from < to;
}

void memory_give_up(const void *address)
{
	(void)address;
}

/* ---- Assumptions of the scripts ---- */

static void check_text(const char *text, size_t lines, const char *what)
{
	require(text != NULL, what);
	size_t left = strlen(text), count = 1;
	for (const unsigned char *p = (const unsigned char *)text; left > 0;) {
		size_t n = weft_utf8_char_bytes(p, left);
		require(n > 0, what);
		count += *p == '\n';
		p += n;
		left -= n;
	}
	require(lines == 0 || count == lines, what);
}

static void check_rows(int which, size_t count)
{
	require(count > 0 || which != FINDING_ROWS, "there are rows about findings");
	for (size_t i = 0; i < count && i < MAX_CHECKED_ROWS; i++)
		check_text(page_row(which, i), 9, "a row has nine lines");
}

static void check_picture(void)
{
	int count = page_draw();
	require(count == (int)page_viewers() * WEFT_PANES, "there is a picture");
	for (int i = 0; i < count; i++) {
		const double *pane = page_pane(i);
		const struct weft_prim *prims = (const struct weft_prim *)(uintptr_t)pane[5];
		for (size_t k = 0; k < (size_t)pane[6]; k++)
			require(prims[k].x0 > -1e5f && prims[k].x0 < 1e5f && prims[k].y0 > -1e5f && prims[k].y0 < 1e5f,
			    "a primitive is near its pane");
	}
}

/* Answers a viewer's questions as surface.js does: a worker computes the answer and returns a parcel. */
static void answer_questions(struct weft_viewer *v)
{
	for (enum weft_ask ask = 0; ask < WEFT_ASKS; ask++) {
		if (page_question(v, ask) != WEFT_QUESTION_NEW)
			continue;
		weft_viewer_asked(v, ask);
		void *parcel = page_explain(v, ask, page_question_promise(v, ask)), *copy = NULL;
		if (parcel) {
			copy = malloc(page_parcel_size());
			require(copy != NULL, "there is memory");
			memcpy(copy, parcel, page_parcel_size());
		}
		free(parcel);
		page_answer(v, ask, copy);
	}
}

static void inspect_viewer(struct weft_viewer *v)
{
	check_rows(PANEL_ROWS, page_panel(v));
	check_rows(FINDING_ROWS, page_findings(v));
	check_rows(NOTE_ROWS, page_notes(v));
	check_text(page_summary(v), 0, "a summary is a text");
	check_text(page_describe(v), 0, "a description is a text");
	check_text(page_search_text(v), 1, "a search text is a line");
	check_rows(MATCH_ROWS, page_matches(v));
	check_rows(LIVE_ROWS, page_in_flight(v));
	check_text(page_matches_count(), 0, "the number of matches is a text");
	for (size_t i = 0; i < page_counters(v) && i < 3; i++)
		page_counter_name(v, i);
}

static void press_row(struct weft_viewer *v, int which, size_t number)
{
	size_t count = which == FINDING_ROWS ? page_findings(v) : which == LIVE_ROWS ? page_in_flight(v) : page_panel(v);
	if (count > 0)
		page_press_row(v, which, number % count);
}

static void run_action(const unsigned char *m, const char *text, const unsigned char *trace, size_t size)
{
	struct weft_viewer *v = page_viewer(page_active()), *again;
	double x = (double)m[1] * all.width_px / 255, y = (double)m[2] * all.height_px / 255;
	switch (m[0] % 20) {
	case 0: weft_compare_press(&all, x, y, (enum weft_button)(m[3] % 3), m[3] / 4u % 8, 1 + m[3] / 128); break;
	case 1: weft_compare_motion(&all, x * 2 - 50, y * 2 - 50); break;
	case 2: weft_compare_release(&all, x, y); break;
	case 3: weft_compare_leave(&all); break;
	case 4: weft_compare_wheel(&all, x, y, m[3] % 5 - 2.0, m[3] / 5 % 9 - 4.0, m[3] / 64); break;
	case 5: weft_compare_pinch(&all, x, y, m[3] / 64.0, m[3] % 7 - 3.0, m[3] % 5 - 2.0); break;
	case 6: weft_compare_act(&all, (enum weft_action)(m[1] % WEFT_ACTION_COUNT)); break;
	case 7:
		if (weft_action_of_key(text, m[1] % 8) < WEFT_ACTION_COUNT)
			weft_compare_act(&all, weft_action_of_key(text, m[1] % 8));
		break;
	case 8: check_text(page_search(text), 1, "an error of a search is a line"); break;
	case 9: weft_compare_search_step(&all, m[1] * 4); break;
	case 10: check_text(page_go(text), 1, "an error of a place is a line"); break;
	case 11: check_text(page_set_start(v, text), 1, "an error of a time is a line"); break;
	case 12: check_text(page_set_duration(v, text), 1, "an error of a duration is a line"); break;
	case 13: weft_viewer_select_and_reveal(v, m[1] * 256u + m[2]); break;
	case 14: weft_viewer_set_metric(v, m[1], m[2] & 1); break;
	case 15: answer_questions(v); break;
	case 16: press_row(v, m[1] & 2 ? LIVE_ROWS : m[1] & 1 ? FINDING_ROWS : PANEL_ROWS, m[2]); break;
	case 17: weft_compare_resize(&all, m[1] * 2, m[2], (m[3] + 1) / 64.0); break;
	case 18: weft_compare_show_findings(&all); break;
	default:
		again = page_load(trace, size, text);
		require(again != NULL, "a trace opens again");
		page_show(again, m[1] & 1, m[2] % 3);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	char text[3 * TEXT_BYTES + 1];
	if (size < ACTIONS * ACTION_BYTES + TEXT_BYTES)
		return 0;
	/* Scripts only pass valid UTF-8. */
	const char *given = (const char *)bytes + ACTIONS * ACTION_BYTES;
	weft_utf8_copy(text, sizeof text, (struct weft_str){given, (uint32_t)strnlen(given, TEXT_BYTES)});
	const unsigned char *trace = bytes + ACTIONS * ACTION_BYTES + TEXT_BYTES;
	size -= ACTIONS * ACTION_BYTES + TEXT_BYTES;
	struct weft_viewer *viewer = page_load(trace, size, text);
	if (!viewer) {
		check_text(page_last_error(), 0, "an error of a trace is a text");
		return 0;
	}
	weft_compare_resize(&all, 320, 240, 1);
	require(page_show(viewer, true, SIZE_MAX) == WEFT_OK, "one viewer fits");
	for (int i = 0; i < ACTIONS; i++)
		run_action(bytes + i * ACTION_BYTES, text, trace, size);
	check_picture();
	struct weft_viewer *v = page_viewer(page_active());
	inspect_viewer(v);
	check_text(page_place(), 1, "a place is a line");
	if (bytes[3] % 8 == 0) {
		char *svg = page_svg(v, WEFT_THEME_LIGHT);
		check_text(svg, 0, "a picture is a text");
		free(svg);
	}
	weft_compare_finish(&all);
	all = (struct weft_compare){0};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		weft_rows_finish(&rows[i]);
	return 0;
}
