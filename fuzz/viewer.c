/* viewer.c: performs any user actions on one or two viewers of any trace.
 *
 * The first 64 bytes are 16 actions of 4 bytes each: an action and three operands.  The rest is the trace.  After each action the
 * selection must be a promise, a picture must exist, and the link to a place must lead to the same place.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "viewer/compare.h"
#include "viewer/findings.h"
#include "viewer/live_panel.h"
#include "viewer/panel.h"
#include "viewer/search.h"
#include "viewer/url_state.h"
#include "viewer/warnings.h"

#define ACTIONS 16
#define ACTION_BYTES 4

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "the viewer breaks its rule: %s\n", what);
		abort();
	}
}

/* Opens a viewer; NULL if the bytes are no trace. */
static struct weft_viewer *open_viewer(const unsigned char *bytes, size_t size)
{
	struct weft_trace *trace;
	struct weft_viewer *viewer;
	if (weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0)
		return NULL;
	if (weft_viewer_open(&viewer, trace, NULL, NULL) == WEFT_OK)
		return viewer;
	weft_trace_close(trace);
	return NULL;
}

static void run_search(struct weft_compare *c, const unsigned char *m)
{
	static const char *const queries[] = {"", "r", "re", "read", "kind:task", "pending", "failed", "longer:1us", "id:", "1",
	    "12", "\"a b", "label:=x", "kind:=wait pending", "site:a", "shorter:5ms 1"};
	char text[8] = {(char)m[2], (char)m[3], '\0'};
	weft_compare_search(c, m[1] & 16 ? text : queries[m[1] % 16], NULL);
}

static void press_finding_rows(struct weft_viewer *v, const unsigned char *m)
{
	struct weft_findings *findings = NULL;
	if ((m[3] & 1 ? weft_explain_promise(&findings, v->model, m[2], NULL, NULL)
		      : weft_explain(&findings, v->model, NULL, NULL)) < 0)
		return;
	weft_viewer_answer(v, m[3] & 1 ? WEFT_ASK_WHY : WEFT_ASK_TRACE, findings);
	/* Press any row, then another row. */
	for (int i = 1; i < 3; i++) {
		static struct weft_rows rows;
		require(weft_findings_fill(&rows, v, NULL) == WEFT_OK && rows.count > 0, "there are rows");
		struct weft_row row = rows.rows[m[i] % rows.count];
		weft_viewer_press_row(v, &row);
		weft_rows_finish(&rows);
	}
}

/* Fills the panel of pending promises, and presses any row of it. */
static void press_live_row(struct weft_viewer *v, const unsigned char *m)
{
	static struct weft_rows rows;
	require(weft_live_panel_fill(&rows, v, NULL) == WEFT_OK && rows.count > 0, "there is a number of pending promises");
	weft_viewer_press_row(v, &rows.rows[m[3] % rows.count]);
	require(weft_live_panel_fill(&rows, v, NULL) == WEFT_OK && rows.count > 0, "there are rows after a press");
	weft_rows_finish(&rows);
}

/* Follows a link that a user wrote: it leads to a place, or returns an error and changes nothing. */
static void follow_link(struct weft_compare *c, const unsigned char *m)
{
	static const char *const parts[] = {"blame=run:%u", "blame=wait:%u", "blame=run&blame=wait:%u", "blame=wait:%c%c",
	    "blame=%c%c", "blame=run:%u00000000&focus=%u", "blame=run&t=%uus..%ums", "y=%u.%u", "focus=%u",
	    "fold=kind:task&open=%u", "mark=%u,%u", "related=%u&sel=%u", "find=%c%c", "group=kind&blame=run:%u",
	    "thin=1&hold=1&sel=@%u", "t=%uns..%uns&sleep=0"};
	char link[128], place[2048], again[2048];
	const char *part = parts[m[1] % 16];
	size_t at = 0;
	for (int operand = 2; *part && at + 12 < sizeof link; part++) {
		if (part[0] == '%' && (part[1] == 'u' || part[1] == 'c')) {
			const unsigned char value = m[operand];
			operand = 3;
			at += (size_t)snprintf(link + at, sizeof link - at, *++part == 'u' ? "%u" : "%c", value ? value : '0');
		} else {
			link[at++] = *part;
		}
	}
	link[at] = '\0';
	weft_compare_place(c, place, sizeof place);
	if (weft_compare_go(c, link, NULL) < 0) {
		weft_compare_place(c, again, sizeof again);
		require(strcmp(place, again) == 0, "a link that leads nowhere changes nothing");
	}
}

static void run_action(struct weft_compare *c, const unsigned char *m, const unsigned char *trace, size_t size)
{
	double x = (double)m[1] * c->width_px / 255, y = (double)m[2] * c->height_px / 255;
	struct weft_viewer *v = weft_compare_active(c);
	switch (m[0] >= 250 ? 20 : m[0] >= 240 ? 21 : m[0] % 20) {
	case 0: weft_compare_press(c, x, y, (enum weft_button)(m[3] % 3), m[3] / 4u % 8, 1 + m[3] / 128); break;
	case 1:
	case 2: weft_compare_motion(c, x * 2 - 50, y * 2 - 50); break;
	case 3: weft_compare_release(c, x, y); break;
	case 4: weft_compare_leave(c); break;
	case 5: weft_compare_wheel(c, x, y, m[3] % 5 - 2.0, m[3] / 5 % 9 - 4.0, m[3] / 64); break;
	case 6: weft_compare_pinch(c, x, y, m[3] / 64.0, m[3] % 7 - 3.0, m[3] % 5 - 2.0); break;
	case 7:
	case 8: weft_compare_act(c, (enum weft_action)(m[1] % WEFT_ACTION_COUNT)); break;
	case 9: run_search(c, m); break;
	case 10: weft_compare_search_step(c, m[1]); break;
	case 11: weft_compare_resize(c, m[1] * 2, m[2], (m[3] + 1) / 64.0); break; /* small sizes draw faster */
	case 12: weft_compare_set_free(c, m[1] & 1); break;
	case 13: weft_viewer_select(v, m[1] * 256u + m[2]); break;
	case 14: weft_viewer_show(v, (int64_t)((uint64_t)m[1] << m[3] % 64), (int64_t)((uint64_t)m[2] << m[3] / 4)); break;
	case 15: weft_viewer_scroll_to_x(v, (double)v->model->end_ns * (m[1] - 20.0) / 200); break;
	case 16: weft_viewer_scroll_to_y(v, v->view->slots * (m[1] - 20.0) / 200); break;
	case 20:
		press_finding_rows(v, m);
		press_live_row(v, m);
		break;
	case 21: follow_link(c, m); break;
	case 17: weft_viewer_set_metric(v, m[1], m[2] & 1); break;
	case 18: weft_viewer_set_duration(v, m[1] & 1 ? "5us" : "9000000000s", NULL); break;
	default: {
		struct weft_viewer *again = open_viewer(trace, size);
		require(again, "a trace opens again");
		weft_viewer_destroy(weft_compare_replace(c, m[1] % c->count, again));
	}
	}
}

static void check_lists(struct weft_compare *c)
{
	struct weft_pane panes[WEFT_COMPARE_PANES];
	int count = weft_compare_draw(c, panes, WEFT_COMPARE_PANES, NULL);
	require(count == (int)c->count * WEFT_PANES, "there is a picture");
	for (int i = 0; i < count; i++)
		for (size_t k = 0; k < panes[i].list->count; k++) {
			const struct weft_prim *p = &panes[i].list->prims[k];
			require(
			    p->x0 > -1e5f && p->x0 < 1e5f && p->y0 > -1e5f && p->y0 < 1e5f, "a primitive is near the picture");
		}
}

static void check_state(const struct weft_viewer *v)
{
	size_t found = 0;
	require(v->selected == WEFT_NONE || (v->selected != WEFT_SYSTEM && v->selected < v->model->promise_count),
	    "the selection is a promise");
	require(v->hovered == WEFT_NONE || (v->hovered != WEFT_SYSTEM && v->hovered < v->model->promise_count),
	    "the hovered object is a promise");
	require(v->history_at < v->history.count || v->history_at == 0, "the history has a place");
	for (size_t i = 0; i < v->history.count; i++)
		require(v->history.items[i].place != NULL, "the history has places");
	for (size_t w = 0; w <= v->model->promise_count / 64; w++)
		found += (size_t)__builtin_popcountll(v->view->highlight[w]);
	require(found == v->view->found, "those that are highlighted are counted");
	require(v->search_text[0] == '\0' || v->highlighting != WEFT_HIGHLIGHT_RELATED, "one thing is highlighted at a time");
	require(weft_viewer_match_number(v) <= v->view->found, "a match has a number");
	for (int a = 0; a < WEFT_ACTION_COUNT; a++)
		require(weft_viewer_action_state(v, (enum weft_action)a) < 8, "an action has a state");
}

static void check_place(struct weft_compare *c)
{
	char place[2048], again[2048];
	size_t len = weft_compare_place(c, place, sizeof place);
	struct weft_error err;
	require(len < sizeof place && len == strlen(place), "a place is not long");
	int status = weft_compare_go(c, place, &err);
	/* The search text may be invalid, which finds nothing. */
	struct weft_query query;
	const struct weft_viewer *v = weft_compare_active(c);
	bool sense = weft_query_parse(&query, v->search_text, strlen(v->search_text), NULL) == WEFT_OK;
	if (!sense) {
		require(status == WEFT_EINVAL, "a place does not make sense of nonsense");
		return;
	}
	require(status == WEFT_OK, "a place can be shown");
	weft_compare_place(c, again, sizeof again);
	if (strcmp(place, again) != 0) {
		fprintf(stderr, "%s\n%s\n", place, again);
		require(false, "a link leads to the same place");
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	static struct weft_rows panel;
	static struct weft_rows notes;
	struct weft_compare c = {0};
	if (size < ACTIONS * ACTION_BYTES)
		return 0;
	const unsigned char *trace = bytes + ACTIONS * ACTION_BYTES;
	size -= ACTIONS * ACTION_BYTES;
	for (int i = 0; i <= bytes[0] / 128; i++) {
		struct weft_viewer *v = open_viewer(trace, size);
		if (!v)
			return 0;
		require(weft_compare_add(&c, v, NULL) == WEFT_OK, "two viewers fit");
	}
	weft_compare_resize(&c, 320, 180, 1); /* small pictures run the same code as large ones, and are faster */
	for (int i = 0; i < ACTIONS; i++) {
		run_action(&c, bytes + ACTION_BYTES * i, trace, size);
		for (size_t k = 0; k < c.count; k++)
			check_state(c.viewers[k]);
		if (i % 4 != 3)
			continue;
		struct weft_viewer *v = weft_compare_active(&c);
		require(weft_panel_fill(&panel, v, weft_panel_subject(v), NULL) == WEFT_OK, "the panel has rows");
		require(
		    (panel.rows[0].kind == WEFT_ROW_TITLE) == (weft_panel_subject(v) != WEFT_NONE), "a title is about a promise");
		check_lists(&c);
		check_place(&c);
	}
	require(weft_notes_fill(&notes, c.viewers[0]->model, NULL) == WEFT_OK, "there are notes");
	weft_rows_finish(&panel);
	weft_rows_finish(&notes);
	weft_compare_finish(&c);
	return 0;
}
