/* top_draw.c: draws the screen of weft top.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "top_ui.h"

enum { TEXT_BYTES = 600, MIN_NAME_COLUMNS = 8, KEY_COLUMNS = 11, MISSING_BYTES = 100 };

/* ---- Positions on the screen ---- */

static bool has_breadcrumb(const struct top_ui *ui)
{
	const struct top_location *p = &ui->location;
	return p->is_focused || (p->filters && ui->search[0]) || p->detail != TOP_TABLE ||
	       (p->sort && p->table == WEFT_LIVE_TREE);
}

int top_count_body_rows(const struct top_ui *ui)
{
	const int rows = screen_rows() - TOP_BODY_ROW - 1 - has_breadcrumb(ui);
	return rows > 1 ? rows : 1;
}

/* Formats the text of a tab. */
static const char *format_tab(const struct top_ui *ui, enum weft_live_table table, char text[64])
{
	if (table == WEFT_LIVE_FINDINGS && ui->snapshot && ui->snapshot->findings && ui->snapshot->findings->count)
		snprintf(text, 64, "%d %s %zu", table + 1, weft_live_name(table), ui->snapshot->findings->count);
	else
		snprintf(text, 64, "%d %s", table + 1, weft_live_name(table));
	return text;
}

enum weft_live_table top_find_tab(const struct top_ui *ui, int column)
{
	char text[64];
	int from = 0;
	for (enum weft_live_table t = 0; t < WEFT_LIVE_TABLE_COUNT; t++) {
		const int width = screen_width(format_tab(ui, t, text)) + 2;
		if (column >= from && column < from + width)
			return t;
		from += width;
	}
	return WEFT_LIVE_TABLE_COUNT;
}

/* Computes the width of each table column on this screen. */
static size_t compute_widths(const struct top_ui *ui, int width[WEFT_LIVE_CELLS])
{
	size_t count;
	const struct weft_live_column *columns = weft_live_columns(ui->location.table, &count);
	int left = screen_columns(), shared = 0;
	for (size_t i = 0; i < count; i++) {
		left -= columns[i].width + (i > 0);
		shared += columns[i].width == 0;
	}
	for (size_t i = 0; i < count; i++) {
		width[i] = columns[i].width ? columns[i].width : left / shared;
		width[i] = width[i] < MIN_NAME_COLUMNS && !columns[i].width ? MIN_NAME_COLUMNS : width[i];
		if (columns[i].width == 0 && --shared > 0)
			left -= width[i];
	}
	return count;
}

unsigned top_find_column(const struct top_ui *ui, int at)
{
	int width[WEFT_LIVE_CELLS];
	const size_t count = compute_widths(ui, width);
	for (unsigned i = 0; i < count; i++) {
		if (at < width[i] + 1)
			return i;
		at -= width[i] + 1;
	}
	return WEFT_LIVE_CELLS;
}

/* ---- Lines above and below the table ---- */

/* Formats the number of missing events.  Events that a ring overwrote are not counted as lost. */
static void format_missing(const struct weft_trace_info *info, char out[MISSING_BYTES])
{
	char number[WEFT_NUMBER_BYTES];
	uint64_t old = 0;
	size_t length = 0;
	out[0] = '\0';
	for (size_t i = 0; i < info->stream_count; i++)
		old += info->streams[i].lost_overwritten;
	const uint64_t lost = cli_count_lost(info) - old;
	if (old)
		length = (size_t)snprintf(out, MISSING_BYTES, " · %s overwritten", weft_number_text(number, old));
	if (lost)
		snprintf(out + length, MISSING_BYTES - length, " · %s lost", weft_number_text(number, lost));
}

static void draw_title(const struct top_ui *ui)
{
	char text[TEXT_BYTES], time[80], events[WEFT_NUMBER_BYTES], flight[WEFT_LIVE_FLIGHT], process[160],
	    missing[MISSING_BYTES];
	screen_fill(0, SCREEN_BAR, false);
	if (!ui->snapshot) {
		snprintf(text, sizeof text, "%s: %s", ui->name, ui->error_text[0] ? ui->error_text : "reading");
		screen_put_text(0, 0, screen_columns(), SCREEN_BAR, false, false, text);
		return;
	}
	const struct weft_trace_info *info = weft_trace_info(ui->snapshot->input.trace);
	const char *state = ui->wants_all               ? "reading "
			    : ui->is_held               ? "paused "
			    : ui->snapshot->is_recorded ? "● live "
							: "ended ";
	const int width = screen_width(state);
	if (info->part_count > 1)
		snprintf(process, sizeof process, "%s, %zu traces", ui->name, info->part_count);
	else if (info->process.len)
		snprintf(process, sizeof process, "%.*s %" PRIu64, (int)(info->process.len < 100 ? info->process.len : 100),
		    info->process.ptr, info->pid);
	else
		snprintf(process, sizeof process, "%.150s", ui->name);
	weft_clock_print(time, sizeof time, ui->snapshot->input.model, &ui->clock, ui->live->top->to_ns, 1000000);
	format_missing(info, missing);
	/* The least important part of the line is last, because a narrow screen cuts the end. */
	snprintf(text, sizeof text, "%s · %s · at %s · %s events%s", process, weft_live_format_flight(ui->live->top, flight),
	    time, weft_number_text(events, ui->snapshot->events), missing);
	screen_put_text(0, 0, screen_columns() - width - 1, SCREEN_BAR, false, false, text);
	screen_put_text(0, screen_columns() - width, width, SCREEN_BAR, false, false, state);
}

/* Formats a thread's name as "node", or as "node 4711" if several threads have the name. */
static void format_thread_name(char *name, size_t size, const struct top_ui *ui, size_t number)
{
	char clean[40], tid[24] = "";
	const struct weft_top *top = ui->live->top;
	const struct weft_stream_info *streams = ui->snapshot->input.model->trace->streams;
	const struct weft_stream_info *own = &streams[top->streams[number].stream];
	bool is_one = true;
	for (size_t i = 0; i < top->stream_count; i++)
		is_one &= i == number || !weft_str_equal(streams[top->streams[i].stream].name, own->name);
	weft_name_sanitize(own->name, clean, sizeof clean);
	if (!is_one && own->tid)
		snprintf(tid, sizeof tid, " %" PRIu64, own->tid);
	snprintf(name, size, "%s%s", clean[0] ? clean : "OS thread", tid);
}

/* Draws the busiest OS threads, as many as fit. */
static void draw_threads(const struct top_ui *ui)
{
	char text[TEXT_BYTES] = "", span[WEFT_DURATION_BYTES];
	size_t length = 0;
	const struct weft_top *top = ui->live->top;
	const int64_t all_ns = weft_max_ns(1, top->to_ns - top->from_ns);
	length += (size_t)snprintf(text, sizeof text, "the last %s:", weft_duration_text(span, all_ns));
	for (size_t i = 0; i < top->stream_count && length + 100 < sizeof text; i++) {
		char name[72];
		const int64_t awake_ns = weft_max_ns(0, all_ns - top->streams[i].slept_ns);
		format_thread_name(name, sizeof name, ui, i);
		length += (size_t)snprintf(text + length, sizeof text - length, "  %s %d%% awake", name,
		    (int)((double)awake_ns * 100 / (double)all_ns + 0.5));
	}
	screen_put_text(1, 0, screen_columns(), SCREEN_PLAIN, false, false, text);
}

static void draw_alarm(const struct top_ui *ui)
{
	char text[TEXT_BYTES];
	const struct weft_findings *all = ui->snapshot->findings;
	if (ui->error_text[0]) {
		screen_put_text(2, 0, screen_columns(), SCREEN_ALARM, false, false, ui->error_text);
		return;
	}
	if (!all || all->count == 0) {
		screen_put_text(2, 0, screen_columns(), SCREEN_CALM, false, false, "no findings");
		return;
	}
	const struct weft_finding *f = &all->findings[0];
	const bool is_alarm = f->severity == WEFT_SEVERITY_ALARM;
	snprintf(text, sizeof text, "%s%s: %s", weft_finding_name(f->kind), f->sure ? "" : " (uncertain)", f->title);
	screen_put_text(2, 0, screen_columns(),
	    !is_alarm ? SCREEN_PLAIN
	    : f->sure ? SCREEN_ALARM
		      : SCREEN_DOUBT,
	    false, false, text);
}

static void draw_tabs(const struct top_ui *ui)
{
	char text[64];
	int at = 0;
	for (enum weft_live_table t = 0; t < WEFT_LIVE_TABLE_COUNT; t++) {
		const int width = screen_width(format_tab(ui, t, text));
		const bool is_shown = t == ui->location.table;
		screen_put_text(
		    TOP_TABS_ROW, at, screen_columns() - at, is_shown ? SCREEN_STRONG : SCREEN_PLAIN, is_shown, false, text);
		at += width + 2;
	}
}

static void draw_breadcrumb(const struct top_ui *ui)
{
	const struct top_location *p = &ui->location;
	const char *const details[] = {
	    [TOP_TABLE] = "", [TOP_PROMISE] = "a promise", [TOP_FINDING] = "a finding", [TOP_ANSWER] = "why?"};
	char text[TEXT_BYTES];
	size_t length = (size_t)snprintf(text, sizeof text, "%s", weft_live_name(p->table));
	if (p->sort && p->table == WEFT_LIVE_TREE)
		length += (size_t)snprintf(text + length, sizeof text - length, " › %s", p->sort_name);
	if (p->is_focused)
		length += (size_t)snprintf(text + length, sizeof text - length, " › only what belongs to %" PRId64, p->focus);
	if (p->filters && ui->search[0])
		length += (size_t)snprintf(text + length, sizeof text - length, " › only what matches %s", ui->search);
	if (p->detail != TOP_TABLE)
		snprintf(text + length, sizeof text - length, " › %s", details[p->detail]);
	screen_put_text(screen_rows() - 2, 0, screen_columns(), SCREEN_KEY, false, false, text);
}

static void draw_bottom_line(const struct top_ui *ui)
{
	static const char *const keys[] = {"?", "keys", "Enter", "wait chain", "/", "find", "f", "filter", ">", "sort", "i",
	    "focus", "Space", "pause", "←→", "move in time", "q", "quit"};
	char text[TEXT_BYTES];
	const int row = screen_rows() - 1;
	int at = 0;
	if (ui->is_typing)
		snprintf(text, sizeof text, "/%s_  %s", ui->search, ui->message);
	else
		snprintf(text, sizeof text, "%s", ui->message);
	if (text[0]) {
		screen_put_text(row, 0, screen_columns(), ui->is_typing ? SCREEN_STRONG : SCREEN_DOUBT, false, false, text);
		return;
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i += 2) {
		if (at + screen_width(keys[i]) + 1 + screen_width(keys[i + 1]) >= screen_columns())
			break;
		at += screen_put_text(row, at, screen_columns() - at, SCREEN_KEY, false, false, keys[i]) + 1;
		at += screen_put_text(row, at, screen_columns() - at, SCREEN_PLAIN, false, false, keys[i + 1]) + 2;
	}
}

/* ---- The middle ---- */

static enum screen_style get_tone_style(enum weft_row_tone tone)
{
	static const enum screen_style styles[] = {[WEFT_TONE_PLAIN] = SCREEN_PLAIN,
	    [WEFT_TONE_ALARM] = SCREEN_ALARM,
	    [WEFT_TONE_DOUBT] = SCREEN_DOUBT,
	    [WEFT_TONE_CALM] = SCREEN_PLAIN};
	return styles[tone];
}

static void draw_table(const struct top_ui *ui)
{
	struct weft_live_row row;
	int width[WEFT_LIVE_CELLS];
	const size_t columns = compute_widths(ui, width);
	size_t count;
	const struct weft_live_column *column = weft_live_columns(ui->location.table, &count);
	screen_fill(TOP_HEAD_ROW, SCREEN_HEAD, false);
	int at = 0;
	for (size_t c = 0; c < columns; at += width[c++] + 1)
		screen_put_text(TOP_HEAD_ROW, at, width[c], SCREEN_HEAD,
		    ui->location.orders[ui->location.table] == c && column[c].sorts, column[c].is_right, column[c].title);
	for (int r = 0; r < top_count_body_rows(ui) && ui->location.first + (size_t)r < ui->live->count; r++) {
		const size_t number = ui->location.first + (size_t)r;
		const bool is_cursor = number == ui->location.cursor;
		weft_live_row(ui->live, number, &row);
		if (is_cursor)
			screen_fill(TOP_BODY_ROW + r, SCREEN_PLAIN, true);
		at = 0;
		for (size_t c = 0; c < columns; at += width[c++] + 1)
			screen_put_text(TOP_BODY_ROW + r, at, width[c], get_tone_style(row.tone), is_cursor, column[c].is_right,
			    row.cells[c]);
	}
	if (ui->live->count == 0)
		screen_put_text(TOP_BODY_ROW, 0, screen_columns(), SCREEN_DIM, false, false,
		    has_breadcrumb(ui) ? "no matches" : "nothing to list");
}

static void draw_detail(const struct top_ui *ui)
{
	for (int r = 0; r <= top_count_body_rows(ui) && ui->location.first + (size_t)r < ui->lines.count; r++) {
		const size_t number = ui->location.first + (size_t)r;
		const struct top_line *line = &ui->lines.items[number];
		const struct weft_row *row = line->row;
		const bool is_cursor = number == ui->location.cursor, is_fact = row->kind == WEFT_ROW_FACT;
		const int y = TOP_HEAD_ROW + r, columns = screen_columns();
		const int indent = row->kind == WEFT_ROW_TITLE || row->kind == WEFT_ROW_HEADING ? 0 : 2;
		const int value = line->from || is_fact ? 0 : screen_width(row->value);
		const enum screen_style style = row->kind == WEFT_ROW_HEADING ? SCREEN_KEY
						: row->kind == WEFT_ROW_TITLE && row->tone == WEFT_TONE_PLAIN
						    ? SCREEN_STRONG
						    : get_tone_style((enum weft_row_tone)row->tone);
		char text[TEXT_BYTES + 8];
		snprintf(text, sizeof text, "%.*s", (int)line->length, row->name + line->from);
		if (is_cursor)
			screen_fill(y, SCREEN_PLAIN, true);
		if (is_fact) {
			screen_put_text(y, indent, 16, SCREEN_PLAIN, is_cursor, false, text);
			screen_put_text(y, indent + 17, columns - indent - 17, style, is_cursor, false, row->value);
		} else {
			screen_put_text(y, indent, columns - indent, style, is_cursor, false, text);
			screen_put_text(y, columns - (value < columns / 2 ? value : columns / 2),
			    value < columns / 2 ? value : columns / 2, style, is_cursor, false, line->from ? "" : row->value);
		}
	}
}

/* Formats the keys of an action as text for people, as many keys as fit. */
static void format_keys(enum top_action action, char out[KEY_COLUMNS + 1])
{
	const enum weft_action same = top_actions[action].same;
	size_t length = (size_t)snprintf(out, KEY_COLUMNS + 1, "%s", top_actions[action].keys);
	char key[16], text[40];
	unsigned modifiers;
	for (int n = 0; same != WEFT_ACTION_COUNT && weft_action_key(same, n, key, &modifiers); n++) {
		const char *name = !strncmp(key, "Arrow", 5) ? key + 5 : key;
		snprintf(text, sizeof text, "%s%s%s%s%s", length ? " " : "", modifiers & WEFT_CONTROL ? "Ctrl+" : "",
		    modifiers & WEFT_ALT ? "Alt+" : "", modifiers & WEFT_SHIFT ? "Shift+" : "", name);
		if (length + strlen(text) > KEY_COLUMNS)
			continue;
		strcpy(out + length, text);
		length += strlen(text);
	}
}

static void draw_help(void)
{
	/* The help uses two columns if one column would be too long. */
	const int half = (TOP_ACTION_COUNT + 1) / 2;
	const bool is_long = TOP_ACTION_COUNT > screen_rows() - 2;
	const int width = is_long ? screen_columns() / 2 : screen_columns();
	screen_fill(0, SCREEN_BAR, false);
	screen_put_text(0, 0, screen_columns(), SCREEN_BAR, false, false,
	    "The keys are those of weft view and weft serve; the mouse selects, opens, sorts and scrolls");
	for (int i = 0; i < TOP_ACTION_COUNT; i++) {
		char keys[KEY_COLUMNS + 1];
		const int row = 1 + (is_long ? i % half : i), column = is_long && i >= half ? width : 0;
		format_keys((enum top_action)i, keys);
		screen_put_text(row, column, KEY_COLUMNS, SCREEN_KEY, false, false, keys);
		screen_put_text(
		    row, column + KEY_COLUMNS + 1, width - KEY_COLUMNS - 2, SCREEN_PLAIN, false, false, top_actions[i].help);
	}
	screen_put_text(screen_rows() - 1, 0, screen_columns(), SCREEN_PLAIN, false, false, "press any key to go back");
}

void top_draw(struct top_ui *ui)
{
	screen_clear();
	if (ui->shows_help) {
		draw_help();
		screen_show();
		return;
	}
	draw_title(ui);
	if (ui->snapshot) {
		draw_threads(ui);
		draw_alarm(ui);
		draw_tabs(ui);
		if (ui->location.detail == TOP_TABLE)
			draw_table(ui);
		else
			draw_detail(ui);
		if (has_breadcrumb(ui))
			draw_breadcrumb(ui);
	}
	draw_bottom_line(ui);
	screen_show();
}
