/* top_state.c: updates the state of weft top when a new snapshot arrives or another view is shown.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "top_ui.h"
#include "viewer/panel.h"

enum { CPU_SHARE_DIVISOR = 10, AGE_INTERVAL_NS = 500000000 };

int64_t top_clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- The moment ---- */

static void drop_live(struct top_ui *ui)
{
	if (ui->owns_live)
		weft_live_destroy(ui->live);
	ui->live = ui->snapshot ? ui->snapshot->live : NULL;
	ui->owns_live = false;
}

/* Shows the snapshot's state at the time to_ns since its first event. */
static void show_moment(struct top_ui *ui, int64_t to_ns)
{
	struct weft_live *live;
	struct weft_error err;
	const int64_t began_ns = top_clock_ns(), known_ns = weft_max_ns(0, to_ns - ui->snapshot->from_ns);
	if (weft_live_create(&live, ui->snapshot->input.model, ui->snapshot->findings, to_ns,
		weft_min_ns(ui->window_ns, known_ns), &err) < 0) {
		snprintf(ui->message, sizeof ui->message, "%s", err.what);
		return;
	}
	drop_live(ui);
	ui->live = live;
	ui->owns_live = true;
	ui->age_took_ns = top_clock_ns() - began_ns;
}

void top_set_snapshot(struct top_ui *ui, struct cli_snapshot *snapshot)
{
	struct cli_snapshot *before = ui->snapshot;
	weft_rows_finish(&ui->chain);
	weft_rows_finish(&ui->panel);
	if (ui->why)
		weft_findings_destroy(ui->why);
	ui->why = NULL;
	ui->lines.count = 0;
	drop_live(ui);
	ui->snapshot = snapshot;
	drop_live(ui);
	cli_snapshot_free(before);
	ui->received_ns = ui->aged_ns = top_clock_ns();
}

void top_pop_snapshot(struct top_ui *ui)
{
	struct weft_error err;
	struct cli_snapshot *snapshot = cli_refresher_pop(ui->refresher, &err);
	ui->error_text[0] = '\0';
	if (err.what[0])
		weft_error_format(&err, ui->error_text, sizeof ui->error_text);
	if (!snapshot)
		return;
	if (ui->is_held && ui->wants_all && snapshot->is_whole) {
		ui->wants_all = false;
		ui->message[0] = '\0';
		top_set_snapshot(ui, snapshot);
		top_move_to_time(ui, ui->at_ns);
		return;
	}
	if (ui->is_held) {
		cli_snapshot_free(ui->next);
		ui->next = snapshot;
		return;
	}
	top_set_snapshot(ui, snapshot);
	top_rebuild(ui);
}

void top_move_to_time(struct top_ui *ui, int64_t at_ns)
{
	const struct weft_model *m = ui->snapshot->input.model;
	const int64_t to_ns = weft_max_ns(0, weft_min_ns(at_ns - m->start_ns, m->end_ns));
	ui->is_held = true;
	ui->at_ns = m->start_ns + to_ns;
	/* Events that are older than the snapshot may still be in the ring. */
	if (at_ns != INT64_MAX && to_ns - ui->window_ns < ui->snapshot->from_ns) {
		if (!ui->wants_all)
			cli_refresher_request_all(ui->refresher);
		ui->wants_all = true;
		snprintf(ui->message, sizeof ui->message, "Reading the older events in the ring buffer");
		return;
	}
	show_moment(ui, to_ns);
	top_rebuild(ui);
}

void top_advance_age(struct top_ui *ui)
{
	const int64_t now_ns = top_clock_ns(), rest_ns = weft_max_ns(AGE_INTERVAL_NS, ui->age_took_ns * CPU_SHARE_DIVISOR);
	if (!ui->snapshot || !ui->snapshot->is_recorded || ui->is_held || now_ns - ui->aged_ns < rest_ns ||
	    !cli_refresher_is_quiet(ui->refresher))
		return;
	ui->aged_ns = now_ns;
	show_moment(ui, ui->snapshot->input.model->end_ns + now_ns - ui->received_ns);
	top_rebuild(ui);
}

/* ---- The place ---- */

static void add_lines(struct top_ui *ui, const struct weft_rows *rows)
{
	const int columns = screen_columns();
	for (size_t i = 0; i < rows->count; i++) {
		const struct weft_row *row = &rows->rows[i];
		const bool has_name = row->kind == WEFT_ROW_FACT;
		const int value = row->value[0] && !has_name ? screen_width(row->value) + 2 : 0;
		/* A long value is cut, so that the name stays complete. */
		const int width = has_name ? columns : columns - 2 - (value > columns / 2 ? columns / 2 : value);
		size_t from = 0;
		do {
			size_t length = screen_fitting_bytes(row->name + from, width > 8 ? width : 8);
			if (row->name[from + length]) {
				size_t space = length;
				while (space > 0 && row->name[from + space] != ' ')
					space--;
				length = space > 0 ? space : length;
			}
			struct top_line *line = weft_vec_push(&ui->lines);
			if (!line)
				return;
			*line = (struct top_line){row, from, length};
			from += length;
			while (length > 0 && row->name[from] == ' ')
				from++;
			if (length == 0)
				break;
		} while (row->name[from]);
	}
}

static const struct weft_finding *find_shown_finding(const struct top_ui *ui)
{
	const struct weft_findings *all = ui->location.detail == TOP_ANSWER ? ui->why : ui->snapshot->findings;
	if (ui->location.detail == TOP_ANSWER)
		return all && all->count ? &all->findings[0] : NULL;
	for (size_t i = 0; all && i < all->count; i++)
		if (weft_live_finding_key(ui->live, (uint32_t)i) == ui->location.finding)
			return &all->findings[i];
	return NULL;
}

static void build_detail(struct top_ui *ui)
{
	const struct weft_model *m = ui->snapshot->input.model;
	const uint32_t promise = weft_model_find(m, ui->location.promise);
	struct weft_error err = {.what = ""};
	ui->chain.count = ui->panel.count = ui->lines.count = 0;
	if (ui->location.detail == TOP_PROMISE) {
		const struct weft_panel_source of = {m, ui->live->facts, &ui->clock, WEFT_NONE};
		weft_live_chain(&ui->chain, ui->live, promise, &err);
		weft_panel_fill_from(&ui->panel, &of, promise == WEFT_NONE ? WEFT_SYSTEM : promise, &err);
		/* The title is the first line, and the wait chain follows. */
		struct weft_rows title = {.rows = ui->panel.rows, .count = ui->panel.count > 0};
		struct weft_rows rest = {.rows = ui->panel.rows + title.count, .count = ui->panel.count - title.count};
		add_lines(ui, &title);
		add_lines(ui, &ui->chain);
		add_lines(ui, &rest);
	} else {
		if (ui->location.detail == TOP_ANSWER && !ui->why && promise != WEFT_NONE)
			weft_explain_promise(&ui->why, m, promise, NULL, &err);
		const struct weft_finding *finding = find_shown_finding(ui);
		if (finding)
			weft_live_evidence(&ui->panel, ui->live, finding, &ui->clock, &err);
		else
			snprintf(ui->message, sizeof ui->message, "The events of this finding are no longer in the trace");
		add_lines(ui, &ui->panel);
	}
	if (promise == WEFT_NONE && ui->location.detail != TOP_FINDING)
		snprintf(ui->message, sizeof ui->message, "Promise %lld is no longer in the ring buffer",
		    (long long)ui->location.promise);
}

size_t top_count_lines(const struct top_ui *ui)
{
	return !ui->live ? 0 : ui->location.detail == TOP_TABLE ? ui->live->count : ui->lines.count;
}

void top_set_cursor(struct top_ui *ui, size_t row)
{
	const size_t count = top_count_lines(ui), body = (size_t)top_count_body_rows(ui);
	struct top_location *p = &ui->location;
	p->cursor = count == 0 ? 0 : row < count ? row : count - 1;
	if (p->cursor < p->first)
		p->first = p->cursor;
	if (p->cursor >= p->first + body)
		p->first = p->cursor + 1 - body;
	if (p->first + body > count)
		p->first = count > body ? count - body : 0;
}

void top_rebuild(struct top_ui *ui)
{
	struct top_location *p = &ui->location;
	struct weft_error err;
	if (!ui->live)
		return;
	const struct weft_live_request asked = {.table = p->table,
	    .order = p->orders[p->table],
	    .is_reversed = p->is_reversed,
	    .only = p->filters ? ui->search : NULL,
	    .sort = p->table == WEFT_LIVE_TREE ? p->sort : 0,
	    .focus = p->is_focused ? &p->focus : NULL};
	if (weft_live_build_rows(ui->live, &asked, &err) < 0) {
		snprintf(ui->message, sizeof ui->message, "%s", err.what);
		struct weft_live_request all = asked;
		all.only = NULL;
		if (weft_live_build_rows(ui->live, &all, &err) < 0)
			return;
	}
	if (p->detail != TOP_TABLE)
		build_detail(ui);
	const size_t found = p->detail == TOP_TABLE && p->key ? weft_live_find(ui->live, p->key) : SIZE_MAX;
	top_set_cursor(ui, found != SIZE_MAX ? found : p->cursor);
}

void top_go_to(struct top_ui *ui, const struct top_location *location)
{
	enum { MAX_HISTORY = 64 };
	const struct top_location to = *location; /* a copy of the location, because the original may be in ui->past */
	if (ui->history.count == MAX_HISTORY)
		memmove(ui->history.items, ui->history.items + 1, --ui->history.count * sizeof *ui->history.items);
	struct top_location *before = weft_vec_push(&ui->history);
	if (before)
		*before = ui->location;
	ui->location = to;
	ui->location.cursor = ui->location.first = 0;
	ui->location.key = 0;
	if (ui->why)
		weft_findings_destroy(ui->why);
	ui->why = NULL;
	top_rebuild(ui);
}

uint32_t top_selected_promise(const struct top_ui *ui)
{
	struct weft_live_row row;
	if (!ui->live || ui->location.cursor >= top_count_lines(ui))
		return WEFT_NONE;
	if (ui->location.detail == TOP_TABLE) {
		weft_live_row(ui->live, ui->location.cursor, &row);
		return row.promise;
	}
	const struct weft_row *line = ui->lines.items[ui->location.cursor].row;
	const struct weft_finding *finding = line->kind == WEFT_ROW_EVIDENCE ? find_shown_finding(ui) : NULL;
	if (finding && line->line < finding->evidence_count)
		return finding->evidence[line->line].promise;
	if (line->kind == WEFT_ROW_LINK)
		return line->promise;
	return ui->location.detail == TOP_FINDING ? WEFT_NONE : weft_model_find(ui->snapshot->input.model, ui->location.promise);
}
