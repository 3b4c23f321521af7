/* panel_test.c: the texts of the panel and of the bar.  SPDX-License-Identifier: ISC */
#include "scene.h"

#include <stdio.h>

#include "base/utf8.h"
#include "viewer/panel.h"
#include "viewer/warnings.h"

static struct weft_rows panel;

/* Returns "heading|name: value" of all rows, a line each. */
static const char *written(const struct weft_viewer *v, uint32_t promise)
{
	static char text[20000];
	size_t at = 0;
	assert_int_equal(weft_panel_fill(&panel, v, promise, NULL), WEFT_OK);
	text[0] = '\0';
	for (size_t i = 0; i < panel.count; i++) {
		static const char marks[] = {'=', '#', ' ', '>', '+', 0, 0, 0, 0, 0, 0, 0, '0'};
		const struct weft_row *r = &panel.rows[i];
		at += (size_t)snprintf(text + at, sizeof text - at, "%c%c%s|%s\n", marks[r->kind],
		    r->tone == WEFT_TONE_ALARM ? '!' : ' ', r->name, r->value);
		assert_true(at < sizeof text);
	}
	return text;
}

static void test_panel_describes_promises(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_string_equal(written(v, with_id(v, 4)), "=!GET /never|wait, never resolved\n"
						       "  id|4\n"
						       "  created|200.000 \xc2\xb5s\n"
						       " !error|should resolve, but never did\n"
						       "  age|800.0 \xc2\xb5s\n"
						       "# Time of this promise|\n"
						       "  waiting|800.0 \xc2\xb5s, 100%\n"
						       "  ready|0, 0%\n"
						       "  running|0, 0%\n"
						       "# Created by|\n"
						       "> main loop \xc2\xb7 task|200.000 \xc2\xb5s\n");
	assert_string_equal(written(v, with_id(v, 3)), "= answer|bind, pending\n"
						       "  id|3\n"
						       "  created|102.000 \xc2\xb5s\n"
						       "  last event|501.000 \xc2\xb5s\n"
						       "  age|898.0 \xc2\xb5s\n"
						       "# Time of this promise|\n"
						       "  waiting|699.0 \xc2\xb5s, 78%\n"
						       "  ready|1.000 \xc2\xb5s, below 1%\n"
						       "  running|198.0 \xc2\xb5s, 22%\n"
						       "# Awaited and read|\n"
						       "> GET / \xc2\xb7 wait|302.000 \xc2\xb5s\n"
						       "# Created by|\n"
						       "> main loop \xc2\xb7 task|102.000 \xc2\xb5s\n"
						       "# Resolved|\n"
						       "> 9 \xc2\xb7 task|330.000 \xc2\xb5s\n"
						       "# Created|2\n"
						       "> 8 \xc2\xb7 task|320.000 \xc2\xb5s\n"
						       "> 9 \xc2\xb7 task|321.000 \xc2\xb5s\n");
	/* Each row with a link leads to a promise. */
	size_t links = 0;
	for (size_t i = 0; i < panel.count; i++)
		if (panel.rows[i].kind == WEFT_ROW_LINK) {
			links++;
			weft_viewer_select(v, WEFT_NONE);
			weft_viewer_press_row(v, &panel.rows[i]);
			assert_int_equal(v->selected, panel.rows[i].promise);
			assert_int_not_equal(v->selected, WEFT_NONE);
		}
	assert_int_equal(links, 5);
	const char nobody[] = "0 No promise|Point at a line or select one to see its details\n";
	assert_string_equal(written(v, WEFT_NONE), nobody);
	assert_string_equal(written(v, WEFT_SYSTEM), nobody);
	double x, y;
	weft_viewer_select(v, with_id(v, 4));
	assert_int_equal(weft_panel_subject(v), with_id(v, 4));
	spot_of(v, with_id(v, 6), &x, &y);
	weft_viewer_motion(v, x, y);
	assert_int_equal(weft_panel_subject(v), with_id(v, 6));
	weft_viewer_destroy(v);
	weft_rows_finish(&panel);
}

/* The test has only 1000 waiters, because a million would not fit into this writer. */
static void test_long_list_of_waiters_is_cut(void **state)
{
	(void)state;
	static struct mirage_writer w;
	w.size = 0;
	mw_packet(&w, 0);
	mw_create(&w, 1, -1, 0, WEFT_KIND_CONDITION);
	for (int i = 1; i <= 1000; i++) {
		mw_create(&w, 1000 * i, -1, i, WEFT_KIND_TASK);
		mw_link(&w, 1000 * i + 1, WEFT_OP_AWAIT, i, 0);
	}
	mw_end(&w, 0);
	struct weft_viewer *v = open_bytes(w.bytes, w.size);
	const char *text = written(v, with_id(v, 0));
	assert_non_null(strstr(text, "# Waited for by|1,000\n>!1 \xc2\xb7 task|"));
	assert_non_null(strstr(text, "+ 992 more|\n"));
	assert_true(panel.count < 24);
	weft_viewer_destroy(v);
	weft_rows_finish(&panel);
}

static void test_panels_of_random_traces_have_valid_rows(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 10; seed++) {
		struct weft_viewer *v = open_random(seed);
		for (uint32_t p = 1; p < v->model->promise_count; p++) {
			assert_int_equal(weft_panel_fill(&panel, v, p, NULL), WEFT_OK);
			assert_true(panel.count > 5 && panel.count < 160 && panel.rows[0].kind == WEFT_ROW_TITLE);
			for (size_t i = 0; i < panel.count; i++) {
				const struct weft_row *r = &panel.rows[i];
				assert_true(r->promise == WEFT_NONE || (r->promise > 0 && r->promise < v->model->promise_count));
				for (const char *c = r->name; *c; c++)
					assert_true((unsigned char)*c >= ' ');
				for (const unsigned char *c = (const unsigned char *)r->value; *c;) {
					size_t n = weft_utf8_char_bytes(c, strlen((const char *)c));
					assert_true(n > 0 && *c >= ' ');
					c += n;
				}
			}
		}
		weft_viewer_destroy(v);
	}
	weft_rows_finish(&panel);
}

static void test_notes_list_trace_warnings(void **state)
{
	(void)state;
	struct weft_rows notes = {0};
	struct weft_viewer *v = open_text(SERVER);
	assert_int_equal(weft_notes_fill(&notes, v->model, NULL), WEFT_OK);
	assert_int_equal(notes.count, 0);
	weft_viewer_destroy(v);
	v = open_text("((time 1.0)(op(Creates -1 1 task)))\nnonsense\n((time 1.1)(op(Creates -1 1 task)))");
	assert_int_equal(weft_notes_fill(&notes, v->model, NULL), WEFT_OK);
	assert_int_equal(notes.count, 2);
	assert_true(notes.rows[0].tone == WEFT_TONE_ALARM && notes.rows[1].tone == WEFT_TONE_PLAIN);
	assert_true(strncmp(notes.rows[0].name, "One part could not be read, ", 28) == 0);
	assert_string_equal(notes.rows[1].name, "The trace contradicts itself: 1 ids created twice.");
	/* Details that only a recorder can provide. */
	struct weft_stream_info stream = {.lost_full = 1200, .lost_nested = 34, .lost_overwritten = 5};
	struct weft_trace_info info = *v->model->trace;
	struct weft_model model = *v->model;
	info.streams = &stream;
	info.stream_count = 1;
	info.unfinished = info.wrapped = true;
	info.lost_no_stream = 7;
	info.skipped_count = 0;
	model.trace = &info;
	model.anomalies[WEFT_ANOMALY_CREATED_TWICE] = 0;
	assert_int_equal(weft_notes_fill(&notes, &model, NULL), WEFT_OK);
	assert_int_equal(notes.count, 4);
	assert_string_equal(notes.rows[0].name, "1,234 events were lost while the trace was recorded.");
	assert_true(notes.rows[1].tone == WEFT_TONE_ALARM && notes.rows[2].tone == WEFT_TONE_PLAIN);
	assert_string_equal(notes.rows[2].name, "5 older events were overwritten by newer ones.");
	stream.lost_overwritten = 0;
	assert_int_equal(weft_notes_fill(&notes, &model, NULL), WEFT_OK);
	assert_string_equal(notes.rows[2].name, "Older events were overwritten by newer ones.");
	weft_rows_finish(&notes);
	weft_viewer_destroy(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_panel_describes_promises),
	    cmocka_unit_test(test_long_list_of_waiters_is_cut),
	    cmocka_unit_test(test_panels_of_random_traces_have_valid_rows),
	    cmocka_unit_test(test_notes_list_trace_warnings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
