/* pressing.h: finds rows of a panel, and presses them.  SPDX-License-Identifier: ISC */
#ifndef TESTS_VIEWER_PRESSING_H
#define TESTS_VIEWER_PRESSING_H

#include "scene.h"

#include "viewer/findings.h"

static struct weft_rows rows;

/* Presses the first row of the kind behind the first `after` rows; returns its number. */
static inline size_t press(struct weft_viewer *v, enum weft_row_kind kind, size_t after)
{
	assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
	for (size_t i = after; i < rows.count; i++)
		if (rows.rows[i].kind == kind) {
			weft_viewer_press_row(v, &rows.rows[i]);
			assert_int_equal(weft_findings_fill(&rows, v, NULL), WEFT_OK);
			return i;
		}
	return SIZE_MAX;
}

static inline void explain(struct weft_viewer *v, enum weft_ask ask)
{
	struct weft_findings *findings = NULL;
	assert_int_equal(v->questions[ask].state, WEFT_QUESTION_NEW);
	weft_viewer_asked(v, ask);
	assert_int_equal(ask == WEFT_ASK_TRACE ? weft_explain(&findings, v->model, NULL, NULL)
					       : weft_explain_promise(&findings, v->model, v->questions[ask].promise, NULL, NULL),
	    WEFT_OK);
	weft_viewer_answer(v, ask, findings);
}

/* Presses and releases the pointer on the line of a promise. */
static inline void click(struct weft_viewer *v, uint32_t promise, int clicks)
{
	double x, y;
	spot_of(v, promise, &x, &y);
	weft_viewer_press(v, x, y, WEFT_BUTTON_PRIMARY, 0, clicks);
	weft_viewer_release(v, x, y);
}

#endif
