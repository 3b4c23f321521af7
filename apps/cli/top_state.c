/* top_state.c: what weft top shows, as looks come and the place changes.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "top_ui.h"
#include "viewer/panel.h"

enum { SHARE = 10, AGES_NS = 500000000 };

int64_t top_clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- The moment ---- */

static void forget_live(struct top_ui *ui)
{
	if (ui->owns_live)
		weft_live_destroy(ui->live);
	ui->live = ui->look ? ui->look->live : NULL;
	ui->owns_live = false;
}

/* The look as it was, or will have been, at a moment since its first event. */
static void look_at(struct top_ui *ui, int64_t to_ns)
{
	struct weft_live *live;
	struct weft_error err;
	const int64_t began_ns = top_clock_ns(), known_ns = weft_max_ns(0, to_ns - ui->look->from_ns);
	if (weft_live_create(
		&live, ui->look->input.model, ui->look->findings, to_ns, weft_min_ns(ui->window_ns, known_ns), &err) < 0) {
		snprintf(ui->message, sizeof ui->message, "%s", err.what);
		return;
	}
	forget_live(ui);
	ui->live = live;
	ui->owns_live = true;
	ui->age_took_ns = top_clock_ns() - began_ns;
}

void top_show(struct top_ui *ui, struct cli_look *look)
{
	struct cli_look *before = ui->look;
	weft_rows_finish(&ui->chain);
	weft_rows_finish(&ui->panel);
	if (ui->why)
		weft_findings_destroy(ui->why);
	ui->why = NULL;
	ui->lines.count = 0;
	forget_live(ui);
	ui->look = look;
	forget_live(ui);
	cli_look_free(before);
	ui->came_ns = ui->aged_ns = top_clock_ns();
}

void top_take(struct top_ui *ui)
{
	struct weft_error err;
	struct cli_look *look = cli_looker_take(ui->looker, &err);
	ui->trouble[0] = '\0';
	if (err.what[0])
		weft_error_format(&err, ui->trouble, sizeof ui->trouble);
	if (!look)
		return;
	if (ui->is_held && ui->wants_all && look->is_whole) {
		ui->wants_all = false;
		ui->message[0] = '\0';
		top_show(ui, look);
		top_move_to(ui, ui->at_ns);
		return;
	}
	if (ui->is_held) {
		cli_look_free(ui->next);
		ui->next = look;
		return;
	}
	top_show(ui, look);
	top_make(ui);
}

void top_move_to(struct top_ui *ui, int64_t at_ns)
{
	const struct weft_model *m = ui->look->input.model;
	const int64_t to_ns = weft_max_ns(0, weft_min_ns(at_ns - m->start_ns, m->end_ns));
	ui->is_held = true;
	ui->at_ns = m->start_ns + to_ns;
	/* What is older stands in the ring. */
	if (at_ns != INT64_MAX && to_ns - ui->window_ns < ui->look->from_ns) {
		if (!ui->wants_all)
			cli_looker_ask_for_all(ui->looker);
		ui->wants_all = true;
		snprintf(ui->message, sizeof ui->message, "What the ring still has is read");
		return;
	}
	look_at(ui, to_ns);
	top_make(ui);
}

void top_age(struct top_ui *ui)
{
	const int64_t now_ns = top_clock_ns(), rest_ns = weft_max_ns(AGES_NS, ui->age_took_ns * SHARE);
	if (!ui->look || !ui->look->is_recorded || ui->is_held || now_ns - ui->aged_ns < rest_ns ||
	    !cli_looker_is_quiet(ui->looker))
		return;
	ui->aged_ns = now_ns;
	look_at(ui, ui->look->input.model->end_ns + now_ns - ui->came_ns);
	top_make(ui);
}

/* ---- The place ---- */

static void add_lines(struct top_ui *ui, const struct weft_rows *rows)
{
	const int columns = screen_columns();
	for (size_t i = 0; i < rows->count; i++) {
		const struct weft_row *row = &rows->rows[i];
		const bool has_name = row->kind == WEFT_ROW_FACT;
		const int value = row->value[0] && !has_name ? screen_width(row->value) + 2 : 0;
		/* A value as long as the line is cut, not the name. */
		const int width = has_name ? columns : columns - 2 - (value > columns / 2 ? columns / 2 : value);
		size_t from = 0;
		do {
			size_t length = screen_fits(row->name + from, width > 8 ? width : 8);
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

static const struct weft_finding *finding_of(const struct top_ui *ui)
{
	const struct weft_findings *all = ui->place.detail == TOP_ANSWER ? ui->why : ui->look->findings;
	if (ui->place.detail == TOP_ANSWER)
		return all && all->count ? &all->findings[0] : NULL;
	for (size_t i = 0; all && i < all->count; i++)
		if (weft_live_finding_key(ui->live, (uint32_t)i) == ui->place.finding)
			return &all->findings[i];
	return NULL;
}

static void make_detail(struct top_ui *ui)
{
	const struct weft_model *m = ui->look->input.model;
	const uint32_t promise = weft_model_find(m, ui->place.promise);
	struct weft_error err = {.what = ""};
	ui->chain.count = ui->panel.count = ui->lines.count = 0;
	if (ui->place.detail == TOP_PROMISE) {
		const struct weft_panel_of of = {m, ui->live->facts, &ui->clock, WEFT_NONE};
		weft_live_chain(&ui->chain, ui->live, promise, &err);
		weft_panel_fill_of(&ui->panel, &of, promise == WEFT_NONE ? WEFT_SYSTEM : promise, &err);
		/* Who it is stands first, then for whom it waits. */
		struct weft_rows title = {.rows = ui->panel.rows, .count = ui->panel.count > 0};
		struct weft_rows rest = {.rows = ui->panel.rows + title.count, .count = ui->panel.count - title.count};
		add_lines(ui, &title);
		add_lines(ui, &ui->chain);
		add_lines(ui, &rest);
	} else {
		if (ui->place.detail == TOP_ANSWER && !ui->why && promise != WEFT_NONE)
			weft_explain_promise(&ui->why, m, promise, NULL, &err);
		const struct weft_finding *finding = finding_of(ui);
		if (finding)
			weft_live_evidence(&ui->panel, ui->live, finding, &ui->clock, &err);
		else
			snprintf(ui->message, sizeof ui->message, "What this was found from is no longer in the trace");
		add_lines(ui, &ui->panel);
	}
	if (promise == WEFT_NONE && ui->place.detail != TOP_FINDING)
		snprintf(ui->message, sizeof ui->message, "The ring has no promise %lld any more", (long long)ui->place.promise);
}

size_t top_count(const struct top_ui *ui)
{
	return !ui->live ? 0 : ui->place.detail == TOP_TABLE ? ui->live->count : ui->lines.count;
}

void top_set_cursor(struct top_ui *ui, size_t row)
{
	const size_t count = top_count(ui), body = (size_t)top_body_rows(ui);
	struct top_place *p = &ui->place;
	p->cursor = count == 0 ? 0 : row < count ? row : count - 1;
	if (p->cursor < p->first)
		p->first = p->cursor;
	if (p->cursor >= p->first + body)
		p->first = p->cursor + 1 - body;
	if (p->first + body > count)
		p->first = count > body ? count - body : 0;
}

void top_make(struct top_ui *ui)
{
	struct top_place *p = &ui->place;
	struct weft_error err;
	if (!ui->live)
		return;
	const struct weft_live_asked asked = {.table = p->table,
	    .order = p->orders[p->table],
	    .is_reversed = p->is_reversed,
	    .only = p->filters ? ui->search : NULL,
	    .sort = p->table == WEFT_LIVE_TREE ? p->sort : 0,
	    .focus = p->is_focused ? &p->focus : NULL};
	if (weft_live_arrange(ui->live, &asked, &err) < 0) {
		snprintf(ui->message, sizeof ui->message, "%s", err.what);
		struct weft_live_asked all = asked;
		all.only = NULL;
		if (weft_live_arrange(ui->live, &all, &err) < 0)
			return;
	}
	if (p->detail != TOP_TABLE)
		make_detail(ui);
	const size_t found = p->detail == TOP_TABLE && p->key ? weft_live_find(ui->live, p->key) : SIZE_MAX;
	top_set_cursor(ui, found != SIZE_MAX ? found : p->cursor);
}

void top_go(struct top_ui *ui, const struct top_place *place)
{
	enum { MOST = 64 };
	const struct top_place to = *place; /* may be one of the past */
	if (ui->past.count == MOST)
		memmove(ui->past.items, ui->past.items + 1, --ui->past.count * sizeof *ui->past.items);
	struct top_place *before = weft_vec_push(&ui->past);
	if (before)
		*before = ui->place;
	ui->place = to;
	ui->place.cursor = ui->place.first = 0;
	ui->place.key = 0;
	if (ui->why)
		weft_findings_destroy(ui->why);
	ui->why = NULL;
	top_make(ui);
}

uint32_t top_selected(const struct top_ui *ui)
{
	struct weft_live_row row;
	if (!ui->live || ui->place.cursor >= top_count(ui))
		return WEFT_NONE;
	if (ui->place.detail == TOP_TABLE) {
		weft_live_row(ui->live, ui->place.cursor, &row);
		return row.promise;
	}
	const struct weft_row *line = ui->lines.items[ui->place.cursor].row;
	const struct weft_finding *finding = line->kind == WEFT_ROW_EVIDENCE ? finding_of(ui) : NULL;
	if (finding && line->line < finding->evidence_count)
		return finding->evidence[line->line].promise;
	if (line->kind == WEFT_ROW_LINK)
		return line->promise;
	return ui->place.detail == TOP_FINDING ? WEFT_NONE : weft_model_find(ui->look->input.model, ui->place.promise);
}
