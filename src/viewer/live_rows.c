/* live_rows.c: formats the rows of the live tables (live.h).  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "base/search.h"
#include "base/utf8.h"
#include "viewer/live_private.h"
#include "viewer/rows_private.h"

enum { HISTORY = 24, CHAIN = 32, DRAWN_DEPTH = 12, BAR = 10 };

static const struct weft_live_column types_columns[] = {{"FLIGHT", 7, true, true, "", " in flight"},
    {"ENDED", 7, true, true, "", " ended"}, {"FAILED", 6, true, true, "", " failed"}, {"OLDEST", 8, true, true, "oldest ", ""},
    {"RAN", 8, true, true, "ran ", ""}, {"P99", 8, true, true, "p99 ", ""}, {"TYPE", 0, false, false, NULL, NULL}};
static const struct weft_live_column tree_columns[] = {{"AGE", 8, true, true, "", " old"}, {"RAN", 8, true, true, "ran ", ""},
    {"PROMISE", 0, false, false, NULL, NULL}, {"WAITS FOR", 0, false, false, "waits for ", ""}};
static const struct weft_live_column waits_columns[] = {{"WAITS", 8, true, true, "waits ", ""},
    {"PROMISE", 0, false, false, NULL, NULL}, {"FOR", 0, false, false, "for ", ""},
    {"END OF CHAIN", 0, false, false, "finally for ", ""}};
static const struct weft_live_column late_columns[] = {
    {"LATE BY", 8, true, true, "late by ", ""}, {"AGO", 8, true, true, "", " ago"}, {"PROMISE", 0, false, false, NULL, NULL}};
static const struct weft_live_column threads_columns[] = {{"", BAR, false, false, NULL, NULL},
    {"BUSY", 5, true, true, "", " busy"}, {"READY", 5, true, true, "", " ready"}, {"OFF", 5, true, true, "", " off CPU"},
    {"PAUSED", 8, true, true, "paused ", ""}, {"OS THREAD", 0, false, false, NULL, NULL},
    {"RAN LAST", 0, false, false, "last ran ", ""}};
static const struct weft_live_column counters_columns[] = {{"VALUE", 11, true, false, "", ""},
    {"MIN", 11, true, false, "min ", ""}, {"MAX", 11, true, false, "max ", ""}, {"HISTORY", HISTORY, false, false, NULL, NULL},
    {"COUNTER", 0, false, false, NULL, NULL}};
static const struct weft_live_column findings_columns[] = {
    {"KIND", 11, false, false, NULL, NULL}, {"BEGAN", 8, true, false, NULL, NULL}, {"FINDING", 0, false, false, NULL, NULL}};

const struct weft_live_column *weft_live_columns(enum weft_live_table table, size_t *count)
{
#define COLUMNS(of)                                                                                                              \
	{                                                                                                                        \
		of, sizeof(of) / sizeof *(of)                                                                                    \
	}
	static const struct {
		const struct weft_live_column *columns;
		size_t count;
	} all[WEFT_LIVE_TABLE_COUNT] = {[WEFT_LIVE_GROUPS] = COLUMNS(types_columns),
	    [WEFT_LIVE_TREE] = COLUMNS(tree_columns),
	    [WEFT_LIVE_WAITS] = COLUMNS(waits_columns),
	    [WEFT_LIVE_LATE] = COLUMNS(late_columns),
	    [WEFT_LIVE_THREADS] = COLUMNS(threads_columns),
	    [WEFT_LIVE_COUNTERS] = COLUMNS(counters_columns),
	    [WEFT_LIVE_FINDINGS] = COLUMNS(findings_columns)};
#undef COLUMNS
	*count = all[table].count;
	return all[table].columns;
}

const char *weft_live_name(enum weft_live_table table)
{
#define NAME(NAME, name, text) name,
	static const char *const names[] = {WEFT_LIVE_TABLES(NAME)};
#undef NAME
	return names[table];
}

const char *weft_live_text(enum weft_live_table table)
{
#define TEXT_OF(NAME, name, text) text,
	static const char *const texts[] = {WEFT_LIVE_TABLES(TEXT_OF)};
#undef TEXT_OF
	return texts[table];
}

typedef char cell[WEFT_NAME_BYTES];

static void put_time(cell to, int64_t ns)
{
	if (ns >= 0)
		weft_duration_format(to, sizeof(cell), ns);
}

static void put_number(cell to, int64_t number)
{
	char text[WEFT_NUMBER_BYTES];
	snprintf(to, sizeof(cell), "%s", weft_number_text_signed(text, number));
}

static void put_name(cell to, const struct weft_live *live, uint32_t promise)
{
	weft_name_promise(live->model, promise, to);
}

/* ---- The rows of each table ---- */

static void format_group(const struct weft_live *live, const struct weft_top_type *s, struct weft_live_row *row)
{
	put_number(row->cells[0], (int64_t)s->in_flight);
	put_number(row->cells[1], (int64_t)s->ended);
	if (s->failed)
		put_number(row->cells[2], (int64_t)s->failed);
	put_time(row->cells[3], s->oldest_ns);
	put_time(row->cells[4], s->ran_ns ? s->ran_ns : -1);
	put_time(row->cells[5], s->row.ended ? s->row.p99_ns : -1);
	weft_table_name(live->model, &s->row, row->cells[6]);
	row->tone = s->failed ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

/* Writes the characters that draw the tree's branch before a promise. */
static void put_branch(cell to, const weft__live_lines *lines, const struct weft_live_line *line)
{
	const char *parts[DRAWN_DEPTH + 1];
	size_t count = 0;
	if (line->depth > DRAWN_DEPTH) {
		snprintf(to, sizeof(cell), "(%u) ", line->depth);
		return;
	}
	for (const struct weft_live_line *l = line; l->parent != WEFT_NONE; l = &lines->items[l->parent])
		parts[count++] = l == line ? l->is_last ? "└ " : "├ " : l->is_last ? "  " : "│ ";
	size_t length = 0;
	to[0] = '\0';
	while (count-- > 0)
		length += (size_t)snprintf(to + length, sizeof(cell) - length, "%s", parts[count]);
}

static void format_promise(
    const struct weft_live *live, const weft__live_lines *lines, const struct weft_live_line *line, struct weft_live_row *row)
{
	const struct weft_wait *wait = weft_top_wait_of(live->top, line->promise);
	char time[WEFT_DURATION_BYTES];
	cell name;
	put_time(row->cells[0], weft__live_age(live, line->promise));
	const int64_t ran_ns = weft__live_ran(live, line->promise);
	put_time(row->cells[1], ran_ns ? ran_ns : -1);
	put_branch(row->cells[2], lines, line);
	put_name(name, live, line->promise);
	const size_t length = strlen(row->cells[2]);
	row->depth = line->depth;
	row->branch_bytes = (uint16_t)length;
	snprintf(row->cells[2] + length, sizeof(cell) - length, "%s", name);
	if (wait) {
		put_name(name, live, wait->to);
		snprintf(row->cells[3], sizeof(cell), "%.130s, %s%s", name,
		    weft_duration_text(time, live->top->to_ns - wait->since_ns), wait->in_cycle ? ", in a cycle" : "");
	}
	row->tone = wait && wait->in_cycle ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

static void format_wait(const struct weft_live *live, const struct weft_top_wait *w, struct weft_live_row *row)
{
	put_time(row->cells[0], live->top->to_ns - w->since_ns);
	put_name(row->cells[1], live, w->promise);
	put_name(row->cells[2], live, w->awaits);
	if (w->more) {
		const size_t length = strlen(row->cells[2]);
		snprintf(row->cells[2] + length, sizeof(cell) - length, " and %zu more", w->more);
	}
	if (w->in_cycle)
		snprintf(row->cells[3], sizeof(cell), "itself: a cycle");
	else if (w->root != w->awaits)
		put_name(row->cells[3], live, w->root);
	row->tone = w->in_cycle ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

static void format_late(const struct weft_live *live, const struct weft_top_late *l, struct weft_live_row *row)
{
	put_time(row->cells[0], l->to_ns - l->from_ns);
	put_time(row->cells[1], live->top->to_ns - l->to_ns);
	put_name(row->cells[2], live, l->promise);
}

static void put_percent(cell to, int64_t ns, int64_t all_ns)
{
	if (ns >= 0 && all_ns > 0)
		snprintf(to, sizeof(cell), "%d%%", (int)((double)ns * 100 / (double)all_ns + 0.5));
	else
		snprintf(to, sizeof(cell), "?");
}

static void format_thread(const struct weft_live *live, uint32_t number, struct weft_live_row *row)
{
	const struct weft__live_thread t = weft__live_thread_of(live, number);
	const struct weft_stream_info *stream = &live->model->trace->streams[live->top->streams[number].stream];
	const int64_t all_ns = live->top->to_ns - live->top->from_ns;
	const uint32_t last = live->priv->ran_last[number];
	int full = all_ns > 0 ? (int)((double)t.busy_ns * BAR / (double)all_ns + 0.5) : 0;
	row->cells[0][0] = '\0';
	for (int i = 0; i < BAR; i++)
		strcat(row->cells[0], i < full ? "█" : "░");
	put_percent(row->cells[1], t.busy_ns, all_ns);
	put_percent(row->cells[2], t.ready_ns, all_ns);
	put_percent(row->cells[3], t.off_ns, all_ns);
	put_time(row->cells[4], t.paused_ns ? t.paused_ns : -1);
	cell name;
	weft_name_sanitize(stream->name, name, sizeof name - 32);
	snprintf(row->cells[5], sizeof(cell), "%.150s %" PRIu64, name[0] ? name : "OS thread", stream->tid);
	if (last != WEFT_NONE)
		put_name(row->cells[6], live, last);
}

/* Writes the maximum of the counter in each of the last HISTORY intervals before the moment. */
static void put_history(cell to, const struct weft_live *live, const struct weft_counter *c)
{
	static const char *const signs[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const int64_t step_ns = weft_max_ns(1, live->top->to_ns - live->top->from_ns);
	int64_t values[HISTORY] = {0}, min_value = INT64_MAX, max_value = INT64_MIN;
	bool is_known[HISTORY];
	for (int i = 0; i < HISTORY; i++) {
		const int64_t end_ns = live->top->to_ns - (HISTORY - 1 - i) * step_ns;
		size_t k = WEFT_FIND_FIRST(n, 0, c->count, c->samples[n].time_ns > end_ns);
		is_known[i] = k > 0 && end_ns > 0;
		if (!is_known[i])
			continue;
		values[i] = c->samples[--k].value;
		while (k > 0 && c->samples[k].time_ns > end_ns - step_ns) {
			k--;
			if (c->samples[k].time_ns > end_ns - step_ns && c->samples[k].value > values[i])
				values[i] = c->samples[k].value;
		}
		min_value = values[i] < min_value ? values[i] : min_value;
		max_value = values[i] > max_value ? values[i] : max_value;
	}
	min_value = min_value > 0 ? 0 : min_value;
	to[0] = '\0';
	for (int i = 0; i < HISTORY; i++) {
		const double part =
		    max_value > min_value ? ((double)values[i] - (double)min_value) / ((double)max_value - (double)min_value) : 0;
		strcat(to, is_known[i] ? signs[(int)(part * 7 + 0.5)] : " ");
	}
}

static void format_counter(const struct weft_live *live, const struct weft_counter *c, struct weft_live_row *row)
{
	const size_t until = WEFT_FIND_FIRST(n, 0, c->count, c->samples[n].time_ns > live->top->to_ns);
	if (until > 0)
		put_number(row->cells[0], c->samples[until - 1].value);
	put_number(row->cells[1], c->min);
	put_number(row->cells[2], c->max);
	put_history(row->cells[3], live, c);
	weft_name_sanitize(c->name, row->cells[4], sizeof(cell));
}

static void format_finding(const struct weft_live *live, uint32_t number, struct weft_live_row *row)
{
	const struct weft_finding *f = &live->findings->findings[number];
	snprintf(row->cells[0], sizeof(cell), "%s%s", weft_finding_name(f->kind), f->sure ? "" : "?");
	put_time(row->cells[1], weft_max_ns(0, live->top->to_ns - f->start_ns));
	weft_name_sanitize((struct weft_str){f->title, (uint32_t)strlen(f->title)}, row->cells[2], sizeof(cell));
	row->tone = f->severity == WEFT_SEVERITY_INFORMATION ? WEFT_TONE_CALM : f->sure ? WEFT_TONE_ALARM : WEFT_TONE_DOUBT;
	row->finding = number;
}

void weft__live_format_row(const struct weft_live *live, const weft__live_lines *lines, size_t i, struct weft_live_row *row)
{
	const struct weft_live_line *line = &lines->items[i];
	row->key = line->key;
	row->promise = line->promise;
	row->finding = WEFT_NONE;
	row->tone = WEFT_TONE_PLAIN;
	row->depth = row->branch_bytes = 0;
	for (size_t c = 0; c < WEFT_LIVE_CELLS; c++)
		row->cells[c][0] = '\0';
	switch (live->request.table) {
	case WEFT_LIVE_GROUPS: format_group(live, &live->top->types[line->number], row); break;
	case WEFT_LIVE_TREE: format_promise(live, lines, line, row); break;
	case WEFT_LIVE_WAITS: format_wait(live, &live->top->waits[line->number], row); break;
	case WEFT_LIVE_LATE: format_late(live, &live->top->late[line->number], row); break;
	case WEFT_LIVE_THREADS: format_thread(live, line->number, row); break;
	case WEFT_LIVE_COUNTERS: format_counter(live, &live->model->counters[line->number], row); break;
	default: format_finding(live, line->number, row); break;
	}
	for (size_t c = 0; c < WEFT_LIVE_CELLS; c++)
		weft_utf8_sanitize(row->cells[c]);
}

/* ---- Details of a row ---- */

#define TEXT(...) weft__rows_text(rows, __VA_ARGS__)

static bool is_promise(const struct weft_live *live, uint32_t promise)
{
	return promise != WEFT_SYSTEM && promise < live->model->promise_count;
}

int weft_live_chain(struct weft_rows *rows, const struct weft_live *live, uint32_t promise, struct weft_error *err)
{
	char time[WEFT_DURATION_BYTES];
	cell name;
	const struct weft_wait *wait = is_promise(live, promise) ? weft_top_wait_of(live->top, promise) : NULL;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	if (wait)
		weft__rows_add(rows, WEFT_ROW_HEADING, TEXT("Wait chain"), 0);
	for (int i = 0; wait; i++) {
		const bool is_whole = i < CHAIN && !wait->in_cycle;
		put_name(name, live, wait->to);
		struct weft_row *row = weft__rows_add(rows, WEFT_ROW_LINK, TEXT("%*s%s", i < 20 ? i : 20, "", name),
		    TEXT("for %s%s", weft_duration_text(time, live->top->to_ns - wait->since_ns),
			wait->in_cycle ? ", in a cycle" : ""));
		row->promise = wait->to;
		row->leads = is_promise(live, wait->to);
		row->tone = wait->in_cycle ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
		wait = is_whole ? weft_top_wait_of(live->top, wait->to) : NULL;
	}
	return weft__rows_end(rows, err);
}

int weft_live_evidence(struct weft_rows *rows, const struct weft_live *live, const struct weft_finding *f,
    const struct weft_clock *clock, struct weft_error *err)
{
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	weft__rows_add(rows, WEFT_ROW_TITLE, TEXT("%s", f->title), TEXT("%s", weft_finding_name(f->kind)))->tone =
	    f->severity == WEFT_SEVERITY_INFORMATION ? WEFT_TONE_CALM
	    : f->sure                                ? WEFT_TONE_ALARM
						     : WEFT_TONE_DOUBT;
	const struct weft__evidence_source of = {.model = live->model, .clock = clock, .leads = true, .finding = WEFT_NONE};
	weft__rows_add_evidence(rows, f, &of);
	return weft__rows_end(rows, err);
}
