/* live_test.c: the panel of promises in flight: its rows, their texts, and the targets of presses. SPDX-License-Identifier: ISC
 */
#include "scene.h"

#include <stdio.h>

#include "viewer/compare.h"
#include "viewer/live_panel.h"

static struct weft_rows rows;

/* Returns the text of the panel, a line per row. */
static const char *said(struct weft_viewer *v)
{
	static char text[16384];
	size_t length = 0;
	assert_int_equal(weft_live_panel_fill(&rows, v, NULL), WEFT_OK);
	text[0] = '\0';
	for (size_t i = 0; i < rows.count && length < sizeof text; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "%*s%s%s %s|%s\n", 2 * rows.rows[i].depth, "",
		    weft_row_kind_name((enum weft_row_kind)rows.rows[i].kind), rows.rows[i].leads ? ">" : ":", rows.rows[i].name,
		    rows.rows[i].value);
	return text;
}

static const struct weft_row *find(struct weft_viewer *v, enum weft_row_kind kind, const char *begin)
{
	said(v);
	for (size_t i = 0; i < rows.count; i++)
		if (rows.rows[i].kind == kind && strncmp(rows.rows[i].name, begin, strlen(begin)) == 0)
			return &rows.rows[i];
	return NULL;
}

static void press(struct weft_viewer *v, enum weft_row_kind kind, const char *begin)
{
	const struct weft_row *row = find(v, kind, begin);
	assert_non_null(row);
	weft_viewer_press_row(v, row);
}

#define DOT " \xc2\xb7 "

static void test_promises_in_flight_are_listed(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	assert_string_equal(said(v), "title: At the end of the trace|1.000 ms: 3 in flight\n"
				     "text: The columns ended, ran and late cover the last 1.00 ms|\n"
				     "summary: Types (6)|\n"
				     "finding> task \"main loop\"|1 in flight" DOT "oldest 1.00 ms" DOT "ran 207 \xc2\xb5s\n"
				     "finding> bind \"answer\"|1 in flight" DOT "oldest 898 \xc2\xb5s" DOT "ran 198 \xc2\xb5s\n"
				     "finding> wait \"GET /never\"|1 in flight" DOT "oldest 800 \xc2\xb5s\n"
				     "finding> wait \"GET /\"|1 ended" DOT "p99 201 \xc2\xb5s\n"
				     "finding> wait \"GET /fails\"|1 ended" DOT "1 failed" DOT "p99 197 \xc2\xb5s\n"
				     "finding> task|2 ended" DOT "p99 10.0 \xc2\xb5s\n"
				     "summary: In flight (3)|\n"
				     "entry> task 1 \"main loop\"|1.00 ms old" DOT "ran 207 \xc2\xb5s\n"
				     "  entry> bind 3 \"answer\"|898 \xc2\xb5s old" DOT "ran 198 \xc2\xb5s\n"
				     "  entry> wait 4 \"GET /never\"|800 \xc2\xb5s old\n"
				     "summary: Threads (1)|\n"
				     "entry> OS thread 0|41% busy" DOT "59% off CPU" DOT "last ran task 1 \"main loop\"\n"
				     "summary: Counters (1)|\n"
				     "fact: requests|3" DOT "min 0" DOT "max 3\n");
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

static void test_press_on_a_row_selects_its_promise(void **state)
{
	(void)state;
	struct weft_viewer *v = open_text(SERVER);
	press(v, WEFT_ROW_ENTRY, "wait 4");
	assert_int_equal(v->selected, with_id(v, 4));
	press(v, WEFT_ROW_ENTRY, "OS thread"); /* selects the promise that ran last on this OS thread */
	assert_int_equal(v->selected, with_id(v, 1));
	/* A type lists its promises, which can be selected, too; another press closes it. */
	const size_t closed = (find(v, WEFT_ROW_TITLE, ""), rows.count);
	press(v, WEFT_ROW_FINDING, "bind");
	const struct weft_row *sort = find(v, WEFT_ROW_FINDING, "bind");
	assert_true(sort->is_open && rows.count == closed + 1 && sort[1].kind == WEFT_ROW_ENTRY);
	weft_viewer_press_row(v, &sort[1]);
	assert_int_equal(v->selected, with_id(v, 3));
	press(v, WEFT_ROW_FINDING, "bind");
	assert_false(find(v, WEFT_ROW_FINDING, "bind")->is_open);
	assert_int_equal(rows.count, closed);
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

/* Main awaits a chain that ends in a response; two other promises wait for each other. */
static struct weft_viewer *open_waits(void)
{
	static struct mirage_writer w;
	static const char *const labels[] = {"", "main", "query", "answer", "one", "two"};
	mw_packet(&w, 1);
	for (int64_t id = 1; id <= 5; id++) {
		mw_create(&w, id, -1, id, WEFT_KIND_TASK);
		mw_label(&w, id, id, labels[id]);
	}
	static const int64_t awaits[][2] = {{1, 2}, {2, 3}, {4, 5}, {5, 4}};
	for (size_t i = 0; i < 4; i++)
		mw_link(&w, 10, WEFT_OP_AWAIT, awaits[i][0], awaits[i][1]);
	mw_create(&w, 500000010, -1, 6, WEFT_KIND_TASK);
	mw_end(&w, 0);
	return open_bytes(w.bytes, w.size);
}

static void test_rows_show_waits_and_root_causes(void **state)
{
	(void)state;
	struct weft_viewer *v = open_waits();
	const char *text = said(v);
	assert_non_null(
	    strstr(text, "entry> task 1 \"main\"|waits 500 ms" DOT "for task 2 \"query\"" DOT "finally for task 3 \"answer\"\n"));
	assert_non_null(
	    strstr(text, "entry> task 4 \"one\"|waits 500 ms" DOT "for task 5 \"two\"" DOT "finally for itself: a cycle\n"));
	size_t alarms = 0;
	for (size_t i = 0; i < rows.count; i++)
		alarms += rows.rows[i].tone == WEFT_TONE_ALARM;
	assert_int_equal(alarms, 4); /* both promises of the cycle have an alarm, as promises in flight and as waiters */
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

static size_t entries(void)
{
	size_t count = 0;
	for (size_t i = 0; i < rows.count; i++)
		count += rows.rows[i].kind == WEFT_ROW_ENTRY;
	return count;
}

static void test_long_list_of_promises_in_flight_shows_the_first_rows(void **state)
{
	(void)state;
	static char text[8192];
	size_t length = 0;
	for (int i = 1; i <= 90; i++)
		length += (size_t)snprintf(
		    text + length, sizeof text - length, "((time 1.0000000%02d)(op(Creates -1 %d wait)))\n", i, i);
	struct weft_viewer *v = open_text(text);
	assert_non_null(strstr(said(v), "summary: In flight (90)|\n"));
	assert_int_equal(entries(), 11); /* ten promises, and the row of the OS thread */
	press(v, WEFT_ROW_MORE, "Show more: 80");
	assert_true(weft_viewer_take_changes(v) & WEFT_CHANGED_LIVE);
	assert_non_null(strstr(said(v), "more> Show more: 30|\n"));
	assert_int_equal(entries(), 61);
	press(v, WEFT_ROW_FINDING, "wait");
	assert_non_null(strstr(said(v), "text: and 80 more in flight|\n"));
	weft_viewer_destroy(v);
	weft_rows_finish(&rows);
}

/* The user presses a row after the trace was read again: in the new model, the promise of the row has another number, or has
 * ended. */
static void test_row_keeps_its_promise_after_a_refresh(void **state)
{
	(void)state;
	static const char newer[] = "((time 99.000000000)(op(Creates -1 77 task)))\n"
				    "((time 99.500000000)(op(Creates -1 78 task)))\n";
	static char text[sizeof newer + sizeof SERVER + 100];
	snprintf(text, sizeof text, "%s%s((time 100.002000000)(op(Resolves 1 3())))\n", newer, SERVER);
	struct weft_compare c = {0};
	struct weft_viewer *v = open_text(SERVER), *now = open_text(text);
	assert_int_equal(weft_compare_add(&c, v, NULL), WEFT_OK);
	const struct weft_row *row = find(v, WEFT_ROW_ENTRY, "wait 4");
	const struct weft_row stays = *row, ends = *find(v, WEFT_ROW_ENTRY, "bind 3");
	assert_true(with_id(v, 4) != with_id(now, 4));
	weft_compare_take_changes(&c);
	weft_viewer_destroy(weft_compare_replace(&c, 0, now));
	assert_true(weft_compare_take_changes(&c) & WEFT_CHANGED_LIVE);
	weft_viewer_press_row(now, &stays);
	assert_int_equal(now->selected, with_id(now, 4));
	weft_viewer_press_row(now, &ends);
	assert_int_equal(now->selected, with_id(now, 4));
	assert_non_null(strstr(said(now), "At the end of the trace|1.00 s: 4 in flight\n"));
	weft_compare_finish(&c);
	weft_rows_finish(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_promises_in_flight_are_listed),
	    cmocka_unit_test(test_press_on_a_row_selects_its_promise),
	    cmocka_unit_test(test_rows_show_waits_and_root_causes),
	    cmocka_unit_test(test_long_list_of_promises_in_flight_shows_the_first_rows),
	    cmocka_unit_test(test_row_keeps_its_promise_after_a_refresh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
