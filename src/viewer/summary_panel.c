/* summary_panel.c: lists the summary of the trace as rows.  SPDX-License-Identifier: ISC */
#include "viewer/summary_panel.h"

#include <string.h>

#include "analysis/queries/summary.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

struct writer {
	const struct weft_viewer *v;
	struct weft_rows *to;
};

#define TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

/* Adds the text as a row, beginning with a capital letter. */
static size_t add_sentence(struct writer *w, const char *text)
{
	const char first = text[0] >= 'a' && text[0] <= 'z' ? (char)(text[0] - 32) : text[0];
	return text[0] ? TEXT("%c%s", first, text + 1) : 0;
}

static void write_finding(struct writer *w, const struct weft_summary_line *line)
{
	const struct weft_findings *findings = w->v->answers[WEFT_ASK_TRACE];
	if (!findings || line->finding >= findings->count)
		return;
	const struct weft_finding *f = &findings->findings[line->finding];
	const bool is_hang = line->topic == WEFT_SUMMARY_HANG;
	struct weft_row *row = weft__rows_add(
	    w->to, WEFT_ROW_FINDING, is_hang ? add_sentence(w, line->text) : TEXT("%s", f->title), weft__rows_add_tag(w->to, f));
	row->tone = weft__finding_tone(f);
	row->leads = !w->v->outdated[WEFT_ASK_TRACE];
	row->finding = line->finding;
}

static void write_line(struct writer *w, uint32_t number)
{
	const struct weft_summary_line *line = &w->v->summary->lines[number];
	for (size_t i = 0; i < WEFT_SUMMARY_FIGURES && line->figures[i].value; i++)
		weft__rows_add(w->to, WEFT_ROW_FIGURE, TEXT("%s", line->figures[i].name), TEXT("%s", line->figures[i].value));
	struct weft_row *row =
	    weft__rows_add(w->to, WEFT_ROW_SENTENCE, add_sentence(w, *line->title ? line->rest : line->text), 0);
	row->topic = WEFT_ROWS_OF_SUMMARY;
	row->line = number;
	row->leads = weft__viewer_is_selectable(w->v, line->promise) || line->to_ns >= line->from_ns;
	row->tone = line->topic == WEFT_SUMMARY_MISSING ? WEFT_TONE_DOUBT : WEFT_TONE_PLAIN;
}

static void write_lines(struct writer *w)
{
	const struct weft_summary *summary = w->v->summary;
	const char *before = "";
	for (uint32_t i = 0; i < summary->count; i++) {
		const struct weft_summary_line *line = &summary->lines[i];
		const char *name = weft_summary_topic_name(line->topic);
		if (line->topic == WEFT_SUMMARY_PROGRAM) {
			weft__rows_add(w->to, WEFT_ROW_TITLE, TEXT("%s", line->title), add_sentence(w, line->rest));
			continue;
		}
		if (strcmp(name, before) != 0)
			weft__rows_add(w->to, WEFT_ROW_HEADING, add_sentence(w, name), 0);
		before = name;
		if (line->finding != WEFT_NONE)
			write_finding(w, line);
		else
			write_line(w, i);
	}
}

int weft_summary_fill(struct weft_rows *rows, const struct weft_viewer *v, struct weft_error *err)
{
	struct writer w = {v, rows};
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	write_lines(&w);
	return weft__rows_end(rows, err);
}

void weft__viewer_press_summary_row(struct weft_viewer *v, const struct weft_row *row)
{
	if (row->line >= v->summary->count)
		return;
	const struct weft_summary_line *line = &v->summary->lines[row->line];
	const int64_t margin_ns = line->to_ns >= line->from_ns ? (line->to_ns - line->from_ns) / 10 + 1000 : 0;
	if (margin_ns > 0)
		weft_viewer_show(v, weft__add_ns(line->from_ns, -margin_ns), weft__add_ns(line->to_ns, margin_ns));
	if (weft__viewer_is_selectable(v, line->promise))
		weft__viewer_select_and_reveal(v, line->promise);
}

void weft__viewer_update_summary(struct weft_viewer *v)
{
	/* Without memory the summary has no findings, but the list of findings has them. */
	weft_summary_set_findings(v->summary, v->answers[WEFT_ASK_TRACE]);
}
