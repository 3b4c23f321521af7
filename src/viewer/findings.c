/* findings.c: lists the findings of a viewer as rows.  SPDX-License-Identifier: ISC */
#include "viewer/findings.h"

#include <stdio.h>
#include <string.h>

#include "viewer/private.h"
#include "viewer/rows_private.h"

/* ---- Going to a finding ---- */

static void highlight_promise(struct weft_viewer *v, uint32_t promise)
{
	if (weft__viewer_is_selectable(v, promise))
		weft_view_set_highlight(v->view, promise, true);
}

/* Highlights the promises of a finding, in place of those of a search. */
static void highlight_finding(struct weft_viewer *v, const struct weft_finding *finding)
{
	weft__viewer_end_search(v);
	weft_view_unhighlight(v->view);
	highlight_promise(v, finding->promise);
	highlight_promise(v, finding->root);
	for (size_t i = 0; i < finding->evidence_count; i++)
		highlight_promise(v, finding->evidence[i].promise);
	v->highlighting = v->view->found > 0 ? WEFT_HIGHLIGHT_FINDING : WEFT_HIGHLIGHT_NONE;
	weft__viewer_highlighted(v);
}

/* Shows the interval of a finding with a margin, and selects the root promise of its chain. */
static void go_to_finding(struct weft_viewer *v, const struct weft_finding *finding)
{
	int64_t margin_ns = (finding->end_ns - finding->start_ns) / 10 + 1000;
	highlight_finding(v, finding);
	weft_viewer_show(v, weft__add_ns(finding->start_ns, -margin_ns), weft__add_ns(finding->end_ns, margin_ns));
	uint32_t promise = weft__viewer_is_selectable(v, finding->root) ? finding->root : finding->promise;
	if (weft__viewer_is_selectable(v, promise))
		weft__viewer_select_and_reveal(v, promise);
}

static bool has_destination(const struct weft_model *model, const struct weft_evidence *line)
{
	return (line->promise != WEFT_SYSTEM && line->promise < model->promise_count) || line->time_ns != WEFT_NO_TIME;
}

void weft__viewer_go_to(struct weft_viewer *v, uint32_t promise, int64_t time_ns)
{
	int64_t from, to;
	if (weft__viewer_is_selectable(v, promise))
		weft__viewer_select_and_reveal(v, promise);
	if (time_ns == WEFT_NO_TIME)
		return;
	weft_viewer_times(v, &from, &to);
	if (time_ns < from || time_ns > to)
		weft_viewer_show(v, weft__add_ns(time_ns, -(to - from) / 2), weft__add_ns(time_ns, (to - from) / 2));
	/* The pointer's line stays at this time until the pointer moves. */
	weft__viewer_set_guide(v, true, time_ns);
}

/* ---- Questions and answers ---- */

static void mark_findings_changed(struct weft_viewer *v)
{
	weft__viewer_changed(v, WEFT_CHANGED_FINDINGS);
}

static void open_finding(struct weft_viewer *v, enum weft_ask in, uint32_t finding)
{
	v->open_in = in;
	v->open_finding = finding;
	mark_findings_changed(v);
}

/* Shows or hides the lane above the picture, depending on the answer. */
static void show_lane(struct weft_viewer *v)
{
	v->lane_marked = SIZE_MAX;
	if ((weft__viewer_path(v) != NULL) != (v->panes[WEFT_PANE_LANE].height_px > 0))
		weft__viewer_place_panes(v);
	else
		weft__viewer_changed(v, WEFT_CHANGED_OVERLAY);
}

static void forget_answer(struct weft_viewer *v, enum weft_ask ask)
{
	weft_findings_destroy(v->answers[ask]);
	v->answers[ask] = NULL;
	v->outdated[ask] = false;
	weft__viewer_update_summary(v);
	if (v->open_in == ask)
		v->open_finding = WEFT_NONE;
	show_lane(v);
	mark_findings_changed(v);
}

static void ask_question(struct weft_viewer *v, enum weft_ask ask, uint32_t promise, bool again)
{
	v->questions[ask] = (struct weft_question){.state = WEFT_QUESTION_NEW, .promise = promise, .again = again};
	mark_findings_changed(v);
}

void weft_viewer_ask_why(struct weft_viewer *v)
{
	if (weft__viewer_is_selectable(v, v->selected))
		ask_question(v, WEFT_ASK_WHY, v->selected, false);
}

/* Returns whether the user has asked a question whose answer is still to come, or is about the focused promise. */
static bool has_own_question(const struct weft_viewer *v)
{
	const struct weft_question *q = &v->questions[WEFT_ASK_WHY];
	if (q->quiet)
		return false;
	return q->state == WEFT_QUESTION_NEW || q->state == WEFT_QUESTION_ASKED ||
	       (v->answers[WEFT_ASK_WHY] && !v->outdated[WEFT_ASK_WHY] && q->promise == v->focused);
}

void weft__viewer_ask_path(struct weft_viewer *v)
{
	if (has_own_question(v))
		return; /* the answer to that question must reach the user, and the lane shows it too */
	if (v->focused != WEFT_NONE && weft_promise_info_end_ns(v->facts, v->focused) != INT64_MAX) {
		ask_question(v, WEFT_ASK_WHY, v->focused, true);
		v->questions[WEFT_ASK_WHY].quiet = true;
	} else if (v->questions[WEFT_ASK_WHY].quiet) {
		v->questions[WEFT_ASK_WHY].state = WEFT_QUESTION_NONE;
		forget_answer(v, WEFT_ASK_WHY);
	}
}

void weft_viewer_asked(struct weft_viewer *v, enum weft_ask ask)
{
	v->questions[ask].state = WEFT_QUESTION_ASKED;
}

void weft_viewer_progress(struct weft_viewer *v, enum weft_ask ask, unsigned percent)
{
	if (v->questions[ask].percent == percent)
		return;
	v->questions[ask].percent = percent;
	mark_findings_changed(v);
}

/* Returns the index of the finding with the given title. */
static uint32_t same_finding(const struct weft_findings *findings, const char *title)
{
	for (size_t i = 0; i < findings->count; i++)
		if (strcmp(findings->findings[i].title, title) == 0)
			return (uint32_t)i;
	return WEFT_NONE;
}

void weft_viewer_answer(struct weft_viewer *v, enum weft_ask ask, struct weft_findings *answer)
{
	bool again = v->questions[ask].again, is_open = v->open_in == ask && v->open_finding != WEFT_NONE;
	uint32_t open = WEFT_NONE;
	if (answer && is_open && v->answers[ask] && v->open_finding < v->answers[ask]->count)
		open = same_finding(answer, v->answers[ask]->findings[v->open_finding].title);
	forget_answer(v, ask);
	v->questions[ask].state = WEFT_QUESTION_NONE;
	v->answers[ask] = answer;
	weft__viewer_update_summary(v);
	show_lane(v);
	if (open != WEFT_NONE)
		open_finding(v, ask, open);
	if (ask != WEFT_ASK_WHY || again || !answer || answer->count == 0)
		return;
	open_finding(v, ask, 0);
	highlight_finding(v, &answer->findings[0]);
	weft__viewer_changed(v, WEFT_CHANGED_ANSWER);
}

void weft__viewer_copy_answers(struct weft_viewer *v, struct weft_viewer *other)
{
	for (int a = 0; a < WEFT_ASKS; a++) {
		v->answers[a] = other->answers[a];
		v->outdated[a] = v->answers[a] != NULL;
		other->answers[a] = NULL;
	}
	weft__viewer_update_summary(v);
	v->open_in = other->open_in;
	v->open_finding = other->open_finding;
	v->findings_shown = other->findings_shown;
	uint32_t asked = other->questions[WEFT_ASK_WHY].promise, same = WEFT_NONE;
	if (weft__viewer_is_selectable(other, asked) &&
	    (v->answers[WEFT_ASK_WHY] || other->questions[WEFT_ASK_WHY].state != WEFT_QUESTION_NONE))
		same = weft_model_find(v->model, other->model->promises[asked].id);
	if (weft__viewer_is_selectable(v, same)) {
		ask_question(v, WEFT_ASK_WHY, same, true);
		v->questions[WEFT_ASK_WHY].quiet = other->questions[WEFT_ASK_WHY].quiet;
	} else {
		forget_answer(v, WEFT_ASK_WHY);
	}
	mark_findings_changed(v);
}

size_t weft_findings_count(const struct weft_viewer *v)
{
	const struct weft_findings *findings = v->answers[WEFT_ASK_TRACE];
	return findings ? findings->count + findings->left_out : 0;
}

/* ---- Rows ---- */

struct writer {
	const struct weft_viewer *v;
	struct weft_rows *to;
	enum weft_ask in;
};

#define TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

/* Writes the tag of a finding, as "Hang" or "Stall, uncertain"; for an answer without a problem only the doubt, because a
 * heading names it. */
size_t weft__rows_add_tag(struct weft_rows *rows, const struct weft_finding *f)
{
	const char *name = f->kind == WEFT_FINDING_ANSWER ? "" : weft_finding_name(f->kind), *doubt = f->sure ? "" : "uncertain";
	char first = name[0] >= 'a' && name[0] <= 'z' ? (char)(name[0] - 32) : name[0];
	if (!name[0])
		return weft__rows_text(rows, "%s", doubt);
	return weft__rows_text(rows, "%c%s%s%s", first, name + 1, *doubt ? ", " : "", doubt);
}

enum weft_row_tone weft__finding_tone(const struct weft_finding *f)
{
	return f->severity == WEFT_SEVERITY_INFORMATION ? WEFT_TONE_CALM : f->sure ? WEFT_TONE_ALARM : WEFT_TONE_DOUBT;
}

static void add_evidence(struct weft_rows *rows, const struct weft_finding *f, const struct weft__evidence_source *source,
    enum weft_evidence_role role)
{
	static const char *const headings[] = {[WEFT_EVIDENCE_TIME] = "Where its time went",
	    [WEFT_EVIDENCE_CHAIN] = "Wait chain",
	    [WEFT_EVIDENCE_CAUSE] = "Cause",
	    [WEFT_EVIDENCE_VICTIM] = "Delayed promises",
	    [WEFT_EVIDENCE_LIKE] = "Similar findings",
	    [WEFT_EVIDENCE_NOTE] = "Notes"};
	bool is_first = true;
	for (size_t i = 0; i < f->evidence_count; i++) {
		const struct weft_evidence *line = &f->evidence[i];
		char time[80] = "";
		if (line->role != role)
			continue;
		if (is_first)
			weft__rows_add(rows, WEFT_ROW_HEADING, weft__rows_text(rows, "%s", headings[role]), 0);
		is_first = false;
		if (line->time_ns != WEFT_NO_TIME)
			weft_clock_print(time, sizeof time, source->model, source->clock, line->time_ns, 1);
		struct weft_row *row = weft__rows_add(
		    rows, WEFT_ROW_EVIDENCE, weft__rows_text(rows, "%s", line->text), weft__rows_text(rows, "%s", time));
		row->leads = source->leads && has_destination(source->model, line);
		row->of_answer = source->of_answer;
		row->finding = source->finding;
		row->line = (uint32_t)i;
	}
}

void weft__rows_add_evidence(struct weft_rows *rows, const struct weft_finding *f, const struct weft__evidence_source *source)
{
	for (int role = 0; role <= WEFT_EVIDENCE_NOTE; role++)
		add_evidence(rows, f, source, (enum weft_evidence_role)role);
	if (!f->sure && f->doubt) {
		weft__rows_add(rows, WEFT_ROW_HEADING, weft__rows_text(rows, "Uncertain because"), 0);
		weft__rows_add(rows, WEFT_ROW_TEXT, weft__rows_text(rows, "%s", f->doubt), 0);
	}
	if (f->next && f->next[0]) {
		weft__rows_add(rows, WEFT_ROW_HEADING, weft__rows_text(rows, "Next step"), 0);
		weft__rows_add(rows, WEFT_ROW_TEXT, weft__rows_text(rows, "%s", f->next), 0);
	}
}

static void write_finding(struct writer *w, uint32_t number)
{
	const struct weft_finding *f = &w->v->answers[w->in]->findings[number];
	bool is_open = w->v->open_in == w->in && w->v->open_finding == number;
	struct weft_row *row = weft__rows_add(w->to, WEFT_ROW_FINDING, TEXT("%s", f->title), weft__rows_add_tag(w->to, f));
	row->tone = weft__finding_tone(f);
	row->leads = !w->v->outdated[w->in];
	row->is_open = is_open;
	row->of_answer = w->in == WEFT_ASK_WHY;
	row->finding = number;
	const struct weft__evidence_source source = {
	    w->v->model, &w->v->clock, !w->v->outdated[w->in], w->in == WEFT_ASK_WHY, number};
	if (is_open)
		weft__rows_add_evidence(w->to, f, &source);
}

/* Writes a row that says that the question is being answered.  Returns false if the question is not being answered, or if an old
 * answer is shown meanwhile. */
static bool write_working(struct writer *w, const char *text)
{
	const struct weft_question *q = &w->v->questions[w->in];
	if ((q->state != WEFT_QUESTION_NEW && q->state != WEFT_QUESTION_ASKED) || q->again || w->v->answers[w->in])
		return false;
	struct weft_row *row = weft__rows_add(w->to, WEFT_ROW_WORKING, TEXT("%s", text), TEXT("%u %%", q->percent));
	row->leads = true;
	row->of_answer = w->in == WEFT_ASK_WHY;
	return true;
}

static void write_answer(struct writer *w)
{
	const struct weft_findings *answer = w->v->answers[WEFT_ASK_WHY];
	w->in = WEFT_ASK_WHY;
	if (write_working(w, "Analysing the promise\xe2\x80\xa6") || !answer)
		return;
	weft__rows_add(w->to, WEFT_ROW_ANSWER, TEXT("Why the promise is in this state"), TEXT("Close the answer"))->leads = true;
	for (size_t i = 0; i < answer->count; i++)
		write_finding(w, (uint32_t)i);
}

static void write_nothing(struct writer *w, const struct weft_findings *findings)
{
	if (w->v->questions[WEFT_ASK_TRACE].state == WEFT_QUESTION_CALLED_OFF)
		weft__rows_add(w->to, WEFT_ROW_NOTHING, TEXT("Not analysed"), TEXT("The analysis of the trace was cancelled"))
		    ->leads = true;
	else if (!findings)
		weft__rows_add(
		    w->to, WEFT_ROW_NOTHING, TEXT("Not analysed"), TEXT("There was not enough memory to analyse the trace"));
	else if (findings->doubt)
		weft__rows_add(w->to, WEFT_ROW_NOTHING, TEXT("Nothing found"),
		    TEXT("This trace shows no problem, but it is not complete: %s", findings->doubt));
	else
		weft__rows_add(w->to, WEFT_ROW_NOTHING, TEXT("Nothing found"), TEXT("This trace shows no problem"));
}

static void write_summary(struct writer *w, const struct weft_findings *findings)
{
	size_t count = findings->count + findings->left_out;
	const char *doubt = findings->doubt ? findings->doubt : "";
	char number[28];
	weft__rows_add(w->to, WEFT_ROW_SUMMARY,
	    TEXT("%s %s%s%s%s%s", weft_number_text(number, count), count == 1 ? "finding" : "findings",
		w->v->compared ? " in " : "", w->v->compared ? w->v->name : "", *doubt ? "; " : "", doubt),
	    0);
}

static void write_findings(struct writer *w)
{
	const struct weft_findings *findings = w->v->answers[WEFT_ASK_TRACE];
	uint32_t shown = w->v->findings_shown;
	char number[28];
	w->in = WEFT_ASK_TRACE;
	if (write_working(w, "Analysing the trace\xe2\x80\xa6"))
		return;
	if (!findings || findings->count == 0) {
		write_nothing(w, findings);
		return;
	}
	write_summary(w, findings);
	for (uint32_t i = 0; i < findings->count && i < shown; i++)
		write_finding(w, i);
	if (findings->count > shown)
		weft__rows_add(w->to, WEFT_ROW_MORE, TEXT("Show more: %s", weft_number_text(number, findings->count - shown)), 0)
		    ->leads = true;
	else if (findings->left_out > 0)
		weft__rows_add(w->to, WEFT_ROW_MORE,
		    TEXT("%s more findings of these types are not listed", weft_number_text(number, findings->left_out)), 0);
}

int weft_findings_fill(struct weft_rows *rows, struct weft_viewer *v, struct weft_error *err)
{
	struct writer w = {.v = v, .to = rows};
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	write_answer(&w);
	weft__viewer_write_differences(rows, v);
	weft__rows_set_topic(rows, WEFT_ROWS_OF_FINDINGS);
	write_findings(&w);
	return weft__rows_end(rows, err);
}

/* ---- Presses ---- */

/* Returns the finding of a row, or NULL if the finding no longer exists. */
static const struct weft_finding *finding_of(const struct weft_viewer *v, const struct weft_row *row)
{
	enum weft_ask in = row->of_answer ? WEFT_ASK_WHY : WEFT_ASK_TRACE;
	const struct weft_findings *findings = v->answers[in];
	return findings && !v->outdated[in] && row->finding < findings->count ? &findings->findings[row->finding] : NULL;
}

void weft__viewer_press_finding_row(struct weft_viewer *v, const struct weft_row *row)
{
	enum weft_ask in = row->of_answer ? WEFT_ASK_WHY : WEFT_ASK_TRACE;
	const struct weft_finding *finding = finding_of(v, row);
	switch ((enum weft_row_kind)row->kind) {
	case WEFT_ROW_FINDING:
		if (finding) {
			open_finding(v, in, row->finding);
			go_to_finding(v, finding);
		}
		break;
	case WEFT_ROW_EVIDENCE:
		if (finding && row->line < finding->evidence_count)
			weft__viewer_go_to(v, finding->evidence[row->line].promise, finding->evidence[row->line].time_ns);
		break;
	case WEFT_ROW_MORE: v->findings_shown += WEFT_FINDINGS_SHOWN; break;
	case WEFT_ROW_ANSWER:
		v->questions[WEFT_ASK_WHY].state = WEFT_QUESTION_NONE;
		forget_answer(v, WEFT_ASK_WHY);
		break;
	case WEFT_ROW_WORKING: v->questions[in].state = WEFT_QUESTION_CALLED_OFF; break;
	case WEFT_ROW_NOTHING: ask_question(v, WEFT_ASK_TRACE, WEFT_NONE, false); break;
	default: return;
	}
	mark_findings_changed(v);
}
