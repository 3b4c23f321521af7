/* top_keys.c: handles keys and the mouse for weft top.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "analysis/queries/walk.h"
#include "base/duration.h"
#include "top_ui.h"

const struct top_action_info top_actions[TOP_ACTION_COUNT] = {
#define TOP_INFO(NAME, same, keys, help) {WEFT_ACTION_##same, keys, help},
    TOP_ACTIONS(TOP_INFO)
#undef TOP_INFO
};

static enum top_action find_action(const struct screen_key *key)
{
	char name[32];
	const enum weft_action same = weft_action_of_key(key->name, key->modifiers);
	snprintf(name, sizeof name, "%s%s", key->modifiers & WEFT_CONTROL ? "Ctrl+" : "", key->name);
	const size_t length = strlen(name);
	for (int a = 0; a < TOP_ACTION_COUNT; a++)
		for (const char *keys = top_actions[a].keys; *keys; keys += strcspn(keys, " "), keys += *keys == ' ')
			if (strcspn(keys, " ") == length && memcmp(keys, name, length) == 0)
				return (enum top_action)a;
	for (int a = 0; a < TOP_ACTION_COUNT; a++)
		if (same != WEFT_ACTION_COUNT && top_actions[a].same == same)
			return (enum top_action)a;
	return TOP_ACTION_COUNT;
}

/* ---- Going about ---- */

/* Keeps the cursor on its row when rows move. */
static void pin_row(struct top_ui *ui)
{
	struct weft_live_row row;
	if (ui->location.detail != TOP_TABLE || ui->location.cursor >= ui->live->count)
		return;
	weft_live_row(ui->live, ui->location.cursor, &row);
	ui->location.key = ui->location.cursor ? row.key : 0;
}

static void move_cursor(struct top_ui *ui, long by)
{
	const size_t now = ui->location.cursor;
	top_set_cursor(ui, by < 0 && (size_t)-by > now ? 0 : now + (size_t)by);
	pin_row(ui);
}

static void go_to_table(struct top_ui *ui, enum weft_live_table table)
{
	struct top_location to = ui->location;
	if (to.table == table && to.detail == TOP_TABLE)
		return;
	to.table = table;
	to.detail = TOP_TABLE;
	to.sort = 0;
	to.is_reversed = false;
	top_go_to(ui, &to);
}

static void go_to_promise(struct top_ui *ui, uint32_t promise)
{
	struct top_location to = ui->location;
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM) {
		snprintf(ui->message, sizeof ui->message, "There is no promise to go to");
		return;
	}
	to.detail = TOP_PROMISE;
	to.promise = ui->snapshot->input.model->promises[promise].id;
	top_go_to(ui, &to);
}

static void open_row(struct top_ui *ui)
{
	struct weft_live_row row;
	struct top_location to = ui->location;
	if (ui->location.detail != TOP_TABLE) {
		go_to_promise(ui, top_selected_promise(ui));
		return;
	}
	if (ui->location.cursor >= ui->live->count)
		return;
	pin_row(ui);
	weft_live_row(ui->live, ui->location.cursor, &row);
	if (to.table == WEFT_LIVE_GROUPS) {
		to.table = WEFT_LIVE_TREE;
		to.sort = row.key;
		snprintf(to.sort_name, sizeof to.sort_name, "%s", row.cells[6]);
		top_go_to(ui, &to);
	} else if (row.finding != WEFT_NONE) {
		to.detail = TOP_FINDING;
		to.finding = row.key;
		top_go_to(ui, &to);
	} else
		go_to_promise(ui, row.promise);
}

static void go_back(struct top_ui *ui)
{
	if (ui->history.count == 0)
		return;
	ui->location = ui->history.items[--ui->history.count];
	if (ui->why)
		weft_findings_destroy(ui->why);
	ui->why = NULL;
	top_rebuild(ui);
}

static void go_to_related(struct top_ui *ui, enum weft_walk_step step)
{
	const uint32_t promise = top_selected_promise(ui);
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM)
		snprintf(ui->message, sizeof ui->message, "No promise is selected");
	else
		go_to_promise(ui, weft_walk(ui->live->facts, promise, step));
}

static void set_order(struct top_ui *ui, int by)
{
	size_t count;
	const struct weft_live_column *columns = weft_live_columns(ui->location.table, &count);
	unsigned *order = &ui->location.orders[ui->location.table];
	for (size_t i = 0; i < count; i++) {
		*order = (unsigned)((*order + count + (size_t)(by + (int)count)) % count);
		if (columns[*order].sorts)
			break;
	}
	top_rebuild(ui);
}

/* ---- The moment ---- */

static void resume_live(struct top_ui *ui)
{
	ui->is_held = ui->wants_all = false;
	if (ui->next) {
		struct cli_snapshot *next = ui->next;
		ui->next = NULL;
		top_set_snapshot(ui, next);
	} else
		top_move_to_time(ui, INT64_MAX);
	ui->is_held = false;
	top_rebuild(ui);
}

static void toggle_hold(struct top_ui *ui)
{
	if (ui->is_held)
		resume_live(ui);
	else {
		ui->is_held = true;
		ui->at_ns = ui->snapshot->input.model->start_ns + ui->live->top->to_ns;
	}
}

static void change_window(struct top_ui *ui, bool is_longer)
{
	const int64_t window_ns = is_longer ? ui->window_ns * 2 : ui->window_ns / 2;
	if (window_ns < 1000000 || window_ns > INT64_C(3600000000000))
		return;
	ui->window_ns = window_ns;
	cli_refresher_set_window(ui->refresher, window_ns);
	if (ui->is_held)
		top_move_to_time(ui, ui->at_ns);
}

static void move_in_time(struct top_ui *ui, int by)
{
	if (!ui->is_held)
		toggle_hold(ui);
	top_move_to_time(ui, ui->at_ns + by * ui->window_ns);
}

/* ---- Searching ---- */

static void search_rows(struct top_ui *ui, size_t from, bool forward)
{
	if (!ui->search[0] || ui->location.detail != TOP_TABLE || ui->live->count == 0)
		return;
	const size_t found = weft_live_search(ui->live, ui->search, from, forward);
	if (found == SIZE_MAX) {
		snprintf(ui->message, sizeof ui->message, "Nothing matches %.100s", ui->search);
		return;
	}
	top_set_cursor(ui, found);
	pin_row(ui);
}

static void edit_search(struct top_ui *ui, const struct screen_key *key)
{
	const size_t length = strlen(ui->search), more = strlen(key->name);
	const bool is_space = strcmp(key->name, "Space") == 0;
	if (strcmp(key->name, "Enter") == 0)
		ui->is_typing = false;
	else if (strcmp(key->name, "Escape") == 0) {
		ui->is_typing = false;
		memcpy(ui->search, ui->search_before, sizeof ui->search);
	} else if (strcmp(key->name, "Backspace") == 0) {
		size_t end = length ? length - 1 : 0;
		while (end > 0 && ((unsigned char)ui->search[end] & 0xc0) == 0x80)
			end--;
		ui->search[end] = '\0';
	} else if (key->modifiers & WEFT_CONTROL) {
		if (strcmp(key->name, "u") == 0)
			ui->search[0] = '\0';
	} else if ((is_space || more == 1 || (unsigned char)key->name[0] >= 0x80) && length + more + 1 < sizeof ui->search)
		strcpy(ui->search + length, is_space ? " " : key->name);
	else
		return;
	if (ui->location.filters)
		top_rebuild(ui);
	search_rows(ui, ui->location.cursor, true);
}

static void find_similar(struct top_ui *ui)
{
	char text[WEFT_QUERY_BYTES + 1];
	const uint32_t promise = top_selected_promise(ui);
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM)
		return;
	weft_query_for_similar(ui->snapshot->input.model, promise, text);
	snprintf(ui->search, sizeof ui->search, "%.255s", text);
	search_rows(ui, ui->location.cursor, true);
	snprintf(ui->message, sizeof ui->message, "n and N go to the other matches; f hides all other rows");
}

static void begin_search(struct top_ui *ui)
{
	memcpy(ui->search_before, ui->search, sizeof ui->search);
	ui->search[0] = '\0';
	ui->is_typing = true;
}

static void toggle_filter(struct top_ui *ui)
{
	if (!ui->search[0] && !ui->location.filters) {
		snprintf(ui->message, sizeof ui->message, "Search with / first; then f hides the rows that do not match");
		return;
	}
	ui->location.filters = !ui->location.filters;
	top_rebuild(ui);
}

static void focus_promise(struct top_ui *ui)
{
	struct top_location to = ui->location;
	const uint32_t promise = top_selected_promise(ui);
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM) {
		snprintf(ui->message, sizeof ui->message, "No promise is selected");
		return;
	}
	to.detail = TOP_TABLE;
	to.table =
	    to.table == WEFT_LIVE_TREE || to.table == WEFT_LIVE_WAITS || to.table == WEFT_LIVE_LATE ? to.table : WEFT_LIVE_TREE;
	to.sort = 0;
	to.is_focused = true;
	to.focus = ui->snapshot->input.model->promises[promise].id;
	top_go_to(ui, &to);
}

static void clear_focus(struct top_ui *ui)
{
	struct top_location to = ui->location;
	to.is_focused = to.filters = false;
	to.sort = 0;
	top_go_to(ui, &to);
}

static void ask_why(struct top_ui *ui)
{
	struct top_location to = ui->location;
	const uint32_t promise = top_selected_promise(ui);
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM) {
		snprintf(ui->message, sizeof ui->message, "No promise is selected");
		return;
	}
	/* The display pauses, because the answer is about this moment. */
	if (!ui->is_held)
		toggle_hold(ui);
	to.detail = TOP_ANSWER;
	to.promise = ui->snapshot->input.model->promises[promise].id;
	top_go_to(ui, &to);
}

/* ---- Actions and input events ---- */

static void run_action(struct top_ui *ui, enum top_action action)
{
	const int tables = WEFT_LIVE_TABLE_COUNT, body = top_count_body_rows(ui);
	switch (action) {
	case TOP_OPEN: open_row(ui); break;
	case TOP_BACK: go_back(ui); break;
	case TOP_NEXT_TABLE: go_to_table(ui, (enum weft_live_table)((ui->location.table + 1) % tables)); break;
	case TOP_TABLE_BEFORE: go_to_table(ui, (enum weft_live_table)((ui->location.table + tables - 1) % tables)); break;
	case TOP_UP: move_cursor(ui, -1); break;
	case TOP_DOWN: move_cursor(ui, 1); break;
	case TOP_PAGE_UP: move_cursor(ui, -body); break;
	case TOP_PAGE_DOWN: move_cursor(ui, body); break;
	case TOP_FIRST: move_cursor(ui, -(long)ui->location.cursor); break;
	case TOP_LAST: move_cursor(ui, (long)top_count_lines(ui)); break;
	case TOP_ORDER: set_order(ui, 1); break;
	case TOP_ORDER_BEFORE: set_order(ui, -1); break;
	case TOP_REVERSE:
		ui->location.is_reversed = !ui->location.is_reversed;
		top_rebuild(ui);
		break;
	case TOP_FIND: begin_search(ui); break;
	case TOP_NEXT_MATCH: search_rows(ui, ui->location.cursor + 1, true); break;
	case TOP_PREVIOUS_MATCH: search_rows(ui, ui->location.cursor + ui->live->count - 1, false); break;
	case TOP_FILTER: toggle_filter(ui); break;
	case TOP_LIKE: find_similar(ui); break;
	case TOP_FOCUS: focus_promise(ui); break;
	case TOP_UNFOCUS: clear_focus(ui); break;
	case TOP_WHY: ask_why(ui); break;
	case TOP_AWAITED: go_to_related(ui, WEFT_WALK_AWAITED); break;
	case TOP_RESOLVER: go_to_related(ui, WEFT_WALK_RESOLVER); break;
	case TOP_CREATOR: go_to_related(ui, WEFT_WALK_CREATOR); break;
	case TOP_WOKEN: go_to_related(ui, WEFT_WALK_WOKEN); break;
	case TOP_HOLD: toggle_hold(ui); break;
	case TOP_EARLIER: move_in_time(ui, -1); break;
	case TOP_LATER: move_in_time(ui, 1); break;
	case TOP_SHORTER: change_window(ui, false); break;
	case TOP_LONGER: change_window(ui, true); break;
	case TOP_CLOCK:
		ui->clock.wall = !ui->clock.wall;
		top_rebuild(ui);
		break;
	default: break;
	}
}

static void handle_click(struct top_ui *ui, const struct screen_key *key)
{
	const int first = ui->location.detail == TOP_TABLE ? TOP_BODY_ROW : TOP_HEAD_ROW;
	if (key->row == TOP_TABS_ROW) {
		const enum weft_live_table table = top_find_tab(ui, key->column);
		if (table != WEFT_LIVE_TABLE_COUNT)
			go_to_table(ui, table);
	} else if (key->row == 2 && ui->snapshot->findings && ui->snapshot->findings->count) {
		go_to_table(ui, WEFT_LIVE_FINDINGS);
	} else if (key->row == TOP_HEAD_ROW && ui->location.detail == TOP_TABLE) {
		size_t count;
		const unsigned column = top_find_column(ui, key->column);
		const struct weft_live_column *columns = weft_live_columns(ui->location.table, &count);
		if (column >= count || !columns[column].sorts)
			return;
		ui->location.is_reversed = ui->location.orders[ui->location.table] == column && !ui->location.is_reversed;
		ui->location.orders[ui->location.table] = column;
		top_rebuild(ui);
	} else if (key->row >= first && ui->location.first + (size_t)(key->row - first) < top_count_lines(ui)) {
		const size_t row = ui->location.first + (size_t)(key->row - first);
		if (row == ui->location.cursor) {
			open_row(ui);
			return;
		}
		top_set_cursor(ui, row);
		pin_row(ui);
	}
}

void top_handle_key(struct top_ui *ui, const struct screen_key *key)
{
	const enum top_action action = find_action(key);
	if (strcmp(key->name, "Resize") == 0) {
		top_rebuild(ui);
		return;
	}
	ui->message[0] = '\0';
	if (ui->is_typing) {
		edit_search(ui, key);
		return;
	}
	if (action == TOP_REDRAW)
		screen_redraw();
	else if (ui->shows_help || action == TOP_SHORTCUTS)
		ui->shows_help = !ui->shows_help;
	else if (action == TOP_QUIT)
		ui->should_quit = true;
	else if (!ui->live)
		return;
	else if (strcmp(key->name, "Mouse") == 0)
		handle_click(ui, key);
	else if (strncmp(key->name, "Wheel", 5) == 0)
		move_cursor(ui, strcmp(key->name, "WheelUp") == 0 ? -3 : 3);
	else if (key->name[0] >= '1' && key->name[0] < '1' + WEFT_LIVE_TABLE_COUNT && !key->name[1])
		go_to_table(ui, (enum weft_live_table)(key->name[0] - '1'));
	else
		run_action(ui, action);
}
