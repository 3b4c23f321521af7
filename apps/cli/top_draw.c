/* top_draw.c: the screen of weft top.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "top_ui.h"

enum { TEXT = 600, LEAST_NAME = 8, KEYS = 11, MISSING = 100 };

/* ---- Where things are ---- */

static bool has_crumb(const struct top_ui *ui)
{
	const struct top_place *p = &ui->place;
	return p->is_focused || (p->filters && ui->search[0]) || p->detail != TOP_TABLE ||
	       (p->sort && p->table == WEFT_LIVE_TREE);
}

int top_body_rows(const struct top_ui *ui)
{
	const int rows = screen_rows() - TOP_BODY_ROW - 1 - has_crumb(ui);
	return rows > 1 ? rows : 1;
}

/* What stands on a tab. */
static const char *tab(const struct top_ui *ui, enum weft_live_table table, char text[64])
{
	if (table == WEFT_LIVE_FINDINGS && ui->look && ui->look->findings && ui->look->findings->count)
		snprintf(text, 64, "%d %s %zu", table + 1, weft_live_name(table), ui->look->findings->count);
	else
		snprintf(text, 64, "%d %s", table + 1, weft_live_name(table));
	return text;
}

enum weft_live_table top_tab_at(const struct top_ui *ui, int column)
{
	char text[64];
	int from = 0;
	for (enum weft_live_table t = 0; t < WEFT_LIVE_TABLE_COUNT; t++) {
		const int width = screen_width(tab(ui, t, text)) + 2;
		if (column >= from && column < from + width)
			return t;
		from += width;
	}
	return WEFT_LIVE_TABLE_COUNT;
}

/* How wide each column is on this screen. */
static size_t widths(const struct top_ui *ui, int width[WEFT_LIVE_CELLS])
{
	size_t count;
	const struct weft_live_column *columns = weft_live_columns(ui->place.table, &count);
	int left = screen_columns(), shared = 0;
	for (size_t i = 0; i < count; i++) {
		left -= columns[i].width + (i > 0);
		shared += columns[i].width == 0;
	}
	for (size_t i = 0; i < count; i++) {
		width[i] = columns[i].width ? columns[i].width : left / shared;
		width[i] = width[i] < LEAST_NAME && !columns[i].width ? LEAST_NAME : width[i];
		if (columns[i].width == 0 && --shared > 0)
			left -= width[i];
	}
	return count;
}

unsigned top_column_at(const struct top_ui *ui, int at)
{
	int width[WEFT_LIVE_CELLS];
	const size_t count = widths(ui, width);
	for (unsigned i = 0; i < count; i++) {
		if (at < width[i] + 1)
			return i;
		at -= width[i] + 1;
	}
	return WEFT_LIVE_CELLS;
}

/* ---- The lines above and below ---- */

/* A ring overwrites what is old, which is no loss. */
static void put_missing(const struct weft_trace_info *info, char out[MISSING])
{
	char number[WEFT_NUMBER_BYTES];
	uint64_t old = 0;
	size_t length = 0;
	out[0] = '\0';
	for (size_t i = 0; i < info->stream_count; i++)
		old += info->streams[i].lost_overwritten;
	const uint64_t lost = cli_lost(info) - old;
	if (old)
		length = (size_t)snprintf(out, MISSING, " · %s overwritten", weft_thousands(number, old));
	if (lost)
		snprintf(out + length, MISSING - length, " · %s lost", weft_thousands(number, lost));
}

static void draw_title(const struct top_ui *ui)
{
	char text[TEXT], time[80], events[WEFT_NUMBER_BYTES], flight[WEFT_LIVE_FLIGHT], process[160], missing[MISSING];
	screen_fill(0, SCREEN_BAR, false);
	if (!ui->look) {
		snprintf(text, sizeof text, "%s: %s", ui->name, ui->trouble[0] ? ui->trouble : "is read");
		screen_put(0, 0, screen_columns(), SCREEN_BAR, false, false, text);
		return;
	}
	const struct weft_trace_info *info = weft_trace_info(ui->look->input.trace);
	const char *state = ui->wants_all ? "reads " : ui->is_held ? "held " : ui->look->is_recorded ? "● live " : "has ended ";
	const int width = screen_width(state);
	if (info->part_count > 1)
		snprintf(process, sizeof process, "%s, %zu traces", ui->name, info->part_count);
	else if (info->process.len)
		snprintf(process, sizeof process, "%.*s %" PRIu64, (int)(info->process.len < 100 ? info->process.len : 100),
		    info->process.ptr, info->pid);
	else
		snprintf(process, sizeof process, "%.150s", ui->name);
	weft_clock_print(time, sizeof time, ui->look->input.model, &ui->clock, ui->live->top->to_ns, 1000000);
	put_missing(info, missing);
	/* Of a narrow screen the end is cut off. */
	snprintf(text, sizeof text, "%s · %s · at %s · %s events%s", process, weft_live_flight(ui->live->top, flight), time,
	    weft_thousands(events, ui->look->events), missing);
	screen_put(0, 0, screen_columns() - width - 1, SCREEN_BAR, false, false, text);
	screen_put(0, screen_columns() - width, width, SCREEN_BAR, false, false, state);
}

/* "node", of several "node 4711". */
static void name_thread(char *name, size_t size, const struct top_ui *ui, size_t number)
{
	char clean[40], tid[24] = "";
	const struct weft_top *top = ui->live->top;
	const struct weft_stream_info *streams = ui->look->input.model->trace->streams;
	const struct weft_stream_info *own = &streams[top->streams[number].stream];
	bool is_one = true;
	for (size_t i = 0; i < top->stream_count; i++)
		is_one &= i == number || !weft_str_equal(streams[top->streams[i].stream].name, own->name);
	weft_name_clean(own->name, clean, sizeof clean);
	if (!is_one && own->tid)
		snprintf(tid, sizeof tid, " %" PRIu64, own->tid);
	snprintf(name, size, "%s%s", clean[0] ? clean : "OS thread", tid);
}

/* The busiest OS threads, as far as they fit. */
static void draw_threads(const struct top_ui *ui)
{
	char text[TEXT] = "", span[WEFT_DURATION_BYTES];
	size_t length = 0;
	const struct weft_top *top = ui->live->top;
	const int64_t all_ns = weft_max_ns(1, top->to_ns - top->from_ns);
	length += (size_t)snprintf(text, sizeof text, "the last %s:", weft_duration_text(span, all_ns));
	for (size_t i = 0; i < top->stream_count && length + 100 < sizeof text; i++) {
		char name[72];
		const int64_t awake_ns = weft_max_ns(0, all_ns - top->streams[i].slept_ns);
		name_thread(name, sizeof name, ui, i);
		length += (size_t)snprintf(text + length, sizeof text - length, "  %s %d%% awake", name,
		    (int)((double)awake_ns * 100 / (double)all_ns + 0.5));
	}
	screen_put(1, 0, screen_columns(), SCREEN_PLAIN, false, false, text);
}

static void draw_alarm(const struct top_ui *ui)
{
	char text[TEXT];
	const struct weft_findings *all = ui->look->findings;
	if (ui->trouble[0]) {
		screen_put(2, 0, screen_columns(), SCREEN_ALARM, false, false, ui->trouble);
		return;
	}
	if (!all || all->count == 0) {
		screen_put(2, 0, screen_columns(), SCREEN_CALM, false, false, "nothing is found that went wrong");
		return;
	}
	const struct weft_finding *f = &all->findings[0];
	const bool is_alarm = f->severity == WEFT_SEVERITY_ALARM;
	snprintf(text, sizeof text, "%s%s: %s", weft_finding_name(f->kind), f->sure ? "" : " (not certain)", f->title);
	screen_put(2, 0, screen_columns(), !is_alarm ? SCREEN_PLAIN : f->sure ? SCREEN_ALARM : SCREEN_DOUBT, false, false, text);
}

static void draw_tabs(const struct top_ui *ui)
{
	char text[64];
	int at = 0;
	for (enum weft_live_table t = 0; t < WEFT_LIVE_TABLE_COUNT; t++) {
		const int width = screen_width(tab(ui, t, text));
		const bool is_shown = t == ui->place.table;
		screen_put(
		    TOP_TABS_ROW, at, screen_columns() - at, is_shown ? SCREEN_STRONG : SCREEN_PLAIN, is_shown, false, text);
		at += width + 2;
	}
}

static void draw_crumb(const struct top_ui *ui)
{
	const struct top_place *p = &ui->place;
	const char *const details[] = {
	    [TOP_TABLE] = "", [TOP_PROMISE] = "a promise", [TOP_FINDING] = "a finding", [TOP_ANSWER] = "why?"};
	char text[TEXT];
	size_t length = (size_t)snprintf(text, sizeof text, "%s", weft_live_name(p->table));
	if (p->sort && p->table == WEFT_LIVE_TREE)
		length += (size_t)snprintf(text + length, sizeof text - length, " › %s", p->sort_name);
	if (p->is_focused)
		length += (size_t)snprintf(text + length, sizeof text - length, " › only what belongs to %" PRId64, p->focus);
	if (p->filters && ui->search[0])
		length += (size_t)snprintf(text + length, sizeof text - length, " › only what matches %s", ui->search);
	if (p->detail != TOP_TABLE)
		snprintf(text + length, sizeof text - length, " › %s", details[p->detail]);
	screen_put(screen_rows() - 2, 0, screen_columns(), SCREEN_KEY, false, false, text);
}

static void draw_last(const struct top_ui *ui)
{
	static const char *const keys[] = {"?", "keys", "Enter", "who waits for whom", "/", "find", "f", "filter", ">", "sort",
	    "i", "focus", "Space", "hold", "←→", "back in time", "q", "end"};
	char text[TEXT];
	const int row = screen_rows() - 1;
	int at = 0;
	if (ui->is_typing)
		snprintf(text, sizeof text, "/%s_  %s", ui->search, ui->message);
	else
		snprintf(text, sizeof text, "%s", ui->message);
	if (text[0]) {
		screen_put(row, 0, screen_columns(), ui->is_typing ? SCREEN_STRONG : SCREEN_DOUBT, false, false, text);
		return;
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i += 2) {
		if (at + screen_width(keys[i]) + 1 + screen_width(keys[i + 1]) >= screen_columns())
			break;
		at += screen_put(row, at, screen_columns() - at, SCREEN_KEY, false, false, keys[i]) + 1;
		at += screen_put(row, at, screen_columns() - at, SCREEN_PLAIN, false, false, keys[i + 1]) + 2;
	}
}

/* ---- The middle ---- */

static enum screen_style style_of(enum weft_row_tone tone)
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
	const size_t columns = widths(ui, width);
	size_t count;
	const struct weft_live_column *column = weft_live_columns(ui->place.table, &count);
	screen_fill(TOP_HEAD_ROW, SCREEN_HEAD, false);
	int at = 0;
	for (size_t c = 0; c < columns; at += width[c++] + 1)
		screen_put(TOP_HEAD_ROW, at, width[c], SCREEN_HEAD, ui->place.orders[ui->place.table] == c && column[c].sorts,
		    column[c].is_right, column[c].title);
	for (int r = 0; r < top_body_rows(ui) && ui->place.first + (size_t)r < ui->live->count; r++) {
		const size_t number = ui->place.first + (size_t)r;
		const bool is_cursor = number == ui->place.cursor;
		weft_live_row(ui->live, number, &row);
		if (is_cursor)
			screen_fill(TOP_BODY_ROW + r, SCREEN_PLAIN, true);
		at = 0;
		for (size_t c = 0; c < columns; at += width[c++] + 1)
			screen_put(
			    TOP_BODY_ROW + r, at, width[c], style_of(row.tone), is_cursor, column[c].is_right, row.cells[c]);
	}
	if (ui->live->count == 0)
		screen_put(TOP_BODY_ROW, 0, screen_columns(), SCREEN_DIM, false, false,
		    has_crumb(ui) ? "nothing matches" : "there is nothing to list");
}

static void draw_detail(const struct top_ui *ui)
{
	for (int r = 0; r <= top_body_rows(ui) && ui->place.first + (size_t)r < ui->lines.count; r++) {
		const size_t number = ui->place.first + (size_t)r;
		const struct top_line *line = &ui->lines.items[number];
		const struct weft_row *row = line->row;
		const bool is_cursor = number == ui->place.cursor, is_fact = row->kind == WEFT_ROW_FACT;
		const int y = TOP_HEAD_ROW + r, columns = screen_columns();
		const int indent = row->kind == WEFT_ROW_TITLE || row->kind == WEFT_ROW_HEADING ? 0 : 2;
		const int value = line->from || is_fact ? 0 : screen_width(row->value);
		const enum screen_style style = row->kind == WEFT_ROW_HEADING ? SCREEN_KEY
						: row->kind == WEFT_ROW_TITLE && row->tone == WEFT_TONE_PLAIN
						    ? SCREEN_STRONG
						    : style_of((enum weft_row_tone)row->tone);
		char text[TEXT + 8];
		snprintf(text, sizeof text, "%.*s", (int)line->length, row->name + line->from);
		if (is_cursor)
			screen_fill(y, SCREEN_PLAIN, true);
		if (is_fact) {
			screen_put(y, indent, 16, SCREEN_PLAIN, is_cursor, false, text);
			screen_put(y, indent + 17, columns - indent - 17, style, is_cursor, false, row->value);
		} else {
			screen_put(y, indent, columns - indent, style, is_cursor, false, text);
			screen_put(y, columns - (value < columns / 2 ? value : columns / 2),
			    value < columns / 2 ? value : columns / 2, style, is_cursor, false, line->from ? "" : row->value);
		}
	}
}

/* The keys of an action, as people write them, as many as there is room for. */
static void put_keys(enum top_action action, char out[KEYS + 1])
{
	const enum weft_action same = top_actions[action].same;
	size_t length = (size_t)snprintf(out, KEYS + 1, "%s", top_actions[action].keys);
	char key[16], text[40];
	unsigned modifiers;
	for (int n = 0; same != WEFT_ACTION_COUNT && weft_action_key(same, n, key, &modifiers); n++) {
		const char *name = !strncmp(key, "Arrow", 5) ? key + 5 : key;
		snprintf(text, sizeof text, "%s%s%s%s%s", length ? " " : "", modifiers & WEFT_CONTROL ? "Ctrl+" : "",
		    modifiers & WEFT_ALT ? "Alt+" : "", modifiers & WEFT_SHIFT ? "Shift+" : "", name);
		if (length + strlen(text) > KEYS)
			continue;
		strcpy(out + length, text);
		length += strlen(text);
	}
}

static void draw_help(void)
{
	/* In two columns where one is too long. */
	const int half = (TOP_ACTION_COUNT + 1) / 2;
	const bool is_long = TOP_ACTION_COUNT > screen_rows() - 2;
	const int width = is_long ? screen_columns() / 2 : screen_columns();
	screen_fill(0, SCREEN_BAR, false);
	screen_put(0, 0, screen_columns(), SCREEN_BAR, false, false,
	    "Keys are those of window and page; the mouse selects, opens, sorts, scrolls");
	for (int i = 0; i < TOP_ACTION_COUNT; i++) {
		char keys[KEYS + 1];
		const int row = 1 + (is_long ? i % half : i), column = is_long && i >= half ? width : 0;
		put_keys((enum top_action)i, keys);
		screen_put(row, column, KEYS, SCREEN_KEY, false, false, keys);
		screen_put(row, column + KEYS + 1, width - KEYS - 2, SCREEN_PLAIN, false, false, top_actions[i].help);
	}
	screen_put(screen_rows() - 1, 0, screen_columns(), SCREEN_PLAIN, false, false, "any key goes back");
}

void top_draw(struct top_ui *ui)
{
	screen_clear();
	if (ui->helps) {
		draw_help();
		screen_show();
		return;
	}
	draw_title(ui);
	if (ui->look) {
		draw_threads(ui);
		draw_alarm(ui);
		draw_tabs(ui);
		if (ui->place.detail == TOP_TABLE)
			draw_table(ui);
		else
			draw_detail(ui);
		if (has_crumb(ui))
			draw_crumb(ui);
	}
	draw_last(ui);
	screen_show();
}
