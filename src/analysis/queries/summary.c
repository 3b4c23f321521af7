/* summary.c: writes the sentences of a summary.  SPDX-License-Identifier: ISC */
#include "analysis/queries/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/account.h"
#include "analysis/index/delays.h"
#include "analysis/index/hot_function.h"
#include "analysis/index/names.h"
#include "analysis/queries/type_table.h"
#include "analysis/queries/workload.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/utf8.h"

enum {
	MAX_TEXT_BYTES = 700,
	LEAST_RATE_NS = 1000000000, /* requests over this time have a rate in any trace */
	MAX_SERVERS = 2,            /* most lines about servers, peers, types of work, and event loops */
	MAX_PEERS = 3,
	MAX_TYPES = 3,
	MAX_LOOPS = 3,
	MAX_WAITS = 3,
	MAX_POOLS = 2
};

typedef WEFT_VEC(struct weft_summary_line) lines_vec;

struct weft_summary_private {
	struct weft_promise_info *facts;
	const struct weft_model *m;
	/* lines about the model and lines about findings in the order in which they were written; all lines in the order of
	 * topics */
	lines_vec of_model, of_findings, all;
	lines_vec *to; /* where new lines go */
	WEFT_VEC(char *) texts;
	size_t model_texts; /* number of texts about the model; later texts belong to the findings */
	bool failed;        /* out of memory */
};

typedef struct weft_summary_private writer;

/* ---- Texts ---- */

/* Keeps a copy of a text, as one line of valid UTF-8.  Returns "" when out of memory. */
static const char *keep_text(writer *w, const char *text)
{
	char **slot = weft_vec_push(&w->texts);
	char *copy = slot ? malloc(strlen(text) + 1) : NULL;
	if (slot)
		*slot = copy;
	if (!copy) {
		w->failed = true;
		return "";
	}
	strcpy(copy, text);
	weft_utf8_sanitize(copy);
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = ' ';
	return copy;
}

struct text {
	char bytes[MAX_TEXT_BYTES];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *to, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(to->bytes + to->length, sizeof to->bytes - to->length, format, args);
	va_end(args);
	if (n > 0)
		to->length = to->length + (size_t)n < sizeof to->bytes ? to->length + (size_t)n : sizeof to->bytes - 1;
}

static void append_duration(struct text *to, int64_t ns)
{
	char buf[WEFT_DURATION_BYTES];
	append(to, "%s", weft_duration_text(buf, ns));
}

static void append_number(struct text *to, uint64_t number)
{
	char buf[WEFT_NUMBER_BYTES];
	append(to, "%s", weft_number_text(buf, number));
}

static const char *plural_s(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* Adds a line, which the caller may complete before it adds the next line.  Never returns NULL. */
static struct weft_summary_line *add_line(writer *w, enum weft_summary_topic topic, const struct text *text)
{
	static struct weft_summary_line lost;
	struct weft_summary_line *line = weft_vec_push(w->to);
	if (!line) {
		w->failed = true;
		line = &lost;
	}
	*line = (struct weft_summary_line){.topic = topic,
	    .text = keep_text(w, text->bytes),
	    .promise = WEFT_NONE,
	    .finding = WEFT_NONE,
	    .from_ns = 0,
	    .to_ns = -1,
	    .title = "",
	    .rest = ""};
	return line;
}

static void set_figure(writer *w, struct weft_summary_line *line, size_t number, const struct text *value, const char *name)
{
	line->figures[number].value = keep_text(w, value->bytes);
	line->figures[number].name = name;
}

static void set_duration_figure(writer *w, struct weft_summary_line *line, size_t number, int64_t ns, const char *name)
{
	struct text text = {0};
	append_duration(&text, ns);
	set_figure(w, line, number, &text, name);
}

static int get_percent(int64_t part, int64_t whole)
{
	return whole > 0 ? (int)((double)part * 100 / (double)whole + 0.5) : 0;
}

/* ---- The program ---- */

/* Appends a UTC time as date and time of day. */
static void append_utc(struct text *to, int64_t utc_ns)
{
	enum { DAYS_OF_ERA = 146097, DAYS_TO_EPOCH = 719468, SECONDS_OF_DAY = 86400 };
	const int64_t seconds = utc_ns / 1000000000, days = seconds / SECONDS_OF_DAY + DAYS_TO_EPOCH, era = days / DAYS_OF_ERA;
	const int64_t day = days % DAYS_OF_ERA, year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	/* Years begin in March, so that a leap day is the last day of a year. */
	const int64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
	const int64_t number = month < 10 ? month + 3 : month - 9, of_day = seconds % SECONDS_OF_DAY;
	append(to, "%" PRId64 "-%02d-%02d at %02d:%02d:%02d UTC", year + era * 400 + (number <= 2), (int)number,
	    (int)(of_year - (153 * month + 2) / 5 + 1), (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
}

static void append_processes(struct text *to, const struct weft_trace_info *info)
{
	enum { MAX_NAMED = 4 };
	append(to, "%zu processes (", info->part_count);
	for (size_t i = 0; i < info->part_count && i < MAX_NAMED; i++)
		append(to, "%s%s", i ? ", " : "", info->parts[i].name);
	append(to, "%s)", info->part_count > MAX_NAMED ? ", ..." : "");
}

static void append_program(struct text *to, const struct weft_trace_info *info)
{
	enum { MAX_COMMAND_BYTES = 100 };
	char command[MAX_COMMAND_BYTES];
	const struct weft_str name = info->command.len ? info->command : info->process;
	if (info->part_count > 1) {
		append_processes(to, info);
		return;
	}
	weft_utf8_copy(command, sizeof command, name);
	append(to, "%s%s", name.len ? command : "a program", name.len >= sizeof command ? "..." : "");
}

static const char *describe_end(const struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	const size_t reasons = m->snapshot_reason_count;
	if (info->has_died)
		return "the program was killed, or exited without ending the trace";
	if (info->is_stopped)
		return "the program went on";
	if (reasons > 0 && m->snapshot_reasons[reasons - 1].runs_on)
		return "the program still ran when this copy was made";
	return info->unfinished ? "the program still runs, or was killed" : "";
}

static void write_program(writer *w)
{
	const struct weft_trace_info *info = w->m->trace;
	const char *end = info->is_seen_once ? "" : describe_end(w->m);
	struct text program = {0}, rest = {0}, text = {0};
	int64_t utc_ns;
	append_program(&program, info);
	if (info->is_seen_once) {
		append(&rest, "seen once, without a recording");
	} else {
		append(&rest, "recorded for ");
		append_duration(&rest, w->m->end_ns);
	}
	if (info->has_origin && !__builtin_add_overflow(w->m->start_ns, info->clock_origin_ns, &utc_ns) && utc_ns >= 0) {
		append(&rest, " on ");
		append_utc(&rest, utc_ns);
	}
	append(&rest, "%s%s", *end ? "; " : "", end);
	append(&text, "%s, %s", program.bytes, rest.bytes);
	struct weft_summary_line *line = add_line(w, WEFT_SUMMARY_PROGRAM, &text);
	line->title = keep_text(w, program.bytes);
	line->rest = keep_text(w, rest.bytes);
}

/* ---- Requests, and other work ---- */

/* Returns the address in a label such as "listen 127.0.0.1:80" or "to 10.0.0.1:5432". */
static const char *find_address(const struct weft_model *m, uint32_t label, char name[WEFT_NAME_BYTES])
{
	static const char *const prefixes[] = {"listen ", "to ", "from "};
	if (label == WEFT_NONE)
		return "";
	weft_name_text(m, label, name, WEFT_NAME_BYTES);
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return name + strlen(prefixes[i]);
	return name;
}

static void append_address(struct text *to, const struct weft_model *m, const struct weft_workload_group *group)
{
	char name[WEFT_NAME_BYTES];
	const char *address = find_address(m, group->label, name);
	append(to, "%s", *address ? address : group->is_served ? "the program" : "a peer");
}

/* Appends ": GET /report", the name of the slowest request; if it has no name, its client and its time. */
static void append_slowest(struct text *to, const struct weft_model *m, const struct weft_workload_group *g)
{
	char name[WEFT_NAME_BYTES];
	const uint32_t label = weft_first_label(m, g->slowest);
	const bool is_request = weft_kind_has(m->promises[g->slowest].kind, WEFT_TRAIT_REQUEST);
	if (is_request && label != WEFT_NONE) {
		append(to, ": %s", weft_name_text(m, label, name, sizeof name));
		return;
	}
	if (g->is_served && label != WEFT_NONE)
		append(to, " for %s", find_address(m, label, name));
	append(to, " at ");
	append_duration(to, g->slowest_from_ns);
}

/* Appends a number below 10^15 with one decimal, because the page's printf() has no floating point. */
static void append_tenths(struct text *to, double number)
{
	const uint64_t tenths = (uint64_t)(number * 10 + 0.5);
	append(to, "%" PRIu64 ".%u", tenths / 10, (unsigned)(tenths % 10));
}

/* Appends "412/s"; returns false if the rate is unknown.  A short burst in a longer trace has no rate that a reader expects: 3
 * requests in 16 ms are not 184 in each second. */
static bool append_rate(struct text *to, const struct weft_model *m, size_t count, int64_t from_ns, int64_t to_ns)
{
	const double seconds = ((double)to_ns - (double)from_ns) / 1e9;
	if (count < 2 || seconds <= 0 || (to_ns - from_ns < LEAST_RATE_NS && to_ns - from_ns < m->end_ns / 2))
		return false;
	const double exact = (double)count / seconds, rate = exact < 1e15 ? exact : 1e15;
	if (rate >= 10)
		append_number(to, (uint64_t)(rate + 0.5));
	else
		append_tenths(to, rate);
	append(to, "/s");
	return true;
}

static void append_spread(struct text *to, size_t count, int64_t p50_ns, int64_t p99_ns, int64_t max_ns)
{
	if (count > 1) {
		append(to, "p50 ");
		append_duration(to, p50_ns);
		append(to, ", p99 ");
		append_duration(to, p99_ns);
		append(to, ", slowest ");
	} else {
		append(to, "took ");
	}
	append_duration(to, max_ns);
}

static void append_promise_name(struct text *to, const struct weft_model *m, uint32_t promise)
{
	char name[WEFT_NAME_BYTES];
	const uint32_t label = weft_first_label(m, promise);
	if (label != WEFT_NONE && weft_kind_has(m->promises[promise].kind, WEFT_TRAIT_REQUEST))
		append(to, "%s", weft_name_text(m, label, name, sizeof name));
	else
		append(to, "%s", weft_name_promise(m, promise, name));
}

static void set_subject(struct weft_summary_line *line, uint32_t promise, int64_t from_ns, int64_t length_ns)
{
	line->promise = promise;
	line->from_ns = from_ns;
	if (__builtin_add_overflow(from_ns, length_ns, &line->to_ns))
		line->to_ns = INT64_MAX;
}

/* Appends the number of requests and of connections. */
static void append_volume(struct text *to, const struct weft_model *m, const struct weft_workload_group *g)
{
	append_number(to, g->count);
	append(to, " request%s", plural_s(g->count));
	struct text rate = {0};
	if (append_rate(&rate, m, g->count, g->from_ns, g->to_ns))
		append(to, " (%s)", rate.bytes);
	append(to, " on ");
	append_number(to, g->connections);
	append(to, " connection%s", plural_s(g->connections));
}

/* Writes a line about a group of requests; the first line also gets the group's figures. */
static void write_group(writer *w, const struct weft_workload_group *g, bool is_first)
{
	struct text text = {0}, rest = {0}, rate = {0};
	append_address(&text, w->m, g);
	append(&text, g->is_served ? " served " : " answered ");
	append_volume(&text, w->m, g);
	append_address(&rest, w->m, g);
	append(&rest, g->is_served ? " served " : " answered ");
	append_number(&rest, g->count);
	append(&rest, " request%s on ", plural_s(g->count));
	append_number(&rest, g->connections);
	append(&rest, " connection%s", plural_s(g->connections));
	if (g->count > 0) {
		append(&text, g->count > 1 ? ": " : "; it ");
		append_spread(&text, g->count, g->p50_ns, g->p99_ns, g->max_ns);
		append_slowest(&text, w->m, g);
		append(&rest, "; slowest");
		append_slowest(&rest, w->m, g);
	}
	if (g->open > 0) {
		append(&text, "; %zu had no answer at the end of the trace", g->open);
		append(&rest, "; %zu had no answer at the end of the trace", g->open);
	}
	struct weft_summary_line *line = add_line(w, g->is_served ? WEFT_SUMMARY_REQUESTS : WEFT_SUMMARY_ANSWERS, &text);
	if (g->count > 0)
		set_subject(line, g->slowest, g->slowest_from_ns, g->max_ns);
	if (!is_first || g->count < 2)
		return;
	if (!append_rate(&rate, w->m, g->count, g->from_ns, g->to_ns))
		append_number(&rate, g->count);
	line->title = line->text;
	set_figure(w, line, 0, &rate, "requests");
	set_duration_figure(w, line, 1, g->p50_ns, "p50");
	set_duration_figure(w, line, 2, g->p99_ns, "p99");
	set_duration_figure(w, line, 3, g->max_ns, "slowest");
	line->rest = keep_text(w, rest.bytes);
}

/* Returns whether users can recognize the peer: pipes and socket pairs inside a program have no address. */
static bool is_worth_telling(const struct weft_model *m, const struct weft_workload_group *g)
{
	char name[WEFT_NAME_BYTES];
	return g->is_served || strpbrk(find_address(m, g->label, name), ":/");
}

/* Writes the first groups of requests, served or sent, and the number of the other groups. */
static void write_groups(writer *w, const struct weft_workload *load, bool is_served, size_t most)
{
	size_t count = 0;
	struct text text = {0};
	for (size_t i = 0; i < load->count; i++) {
		const struct weft_workload_group *group = &load->groups[i];
		if (group->is_served != is_served || !is_worth_telling(w->m, group))
			continue;
		if (count < most)
			write_group(w, group, is_served && count == 0);
		count++;
	}
	if (count <= most)
		return;
	append(&text, "and %zu other %s", count - most, is_served ? "addresses" : "peers");
	add_line(w, is_served ? WEFT_SUMMARY_REQUESTS : WEFT_SUMMARY_ANSWERS, &text);
}

/* Returns how interesting a type of promises is: the program's code before operations of the system, then by total time; -1 if
 * the type is no work. */
static double weigh_type(const struct weft_model *m, const struct weft_table_row *row)
{
	const uint16_t kind = m->promises[row->first].kind;
	const double total_ns = (double)row->waiting_ns + (double)row->ready_ns + (double)row->running_ns;
	if (row->ended == 0 || row->is_permanent ||
	    weft_kind_has(kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP))
		return -1;
	return weft_kind_has(kind, WEFT_TRAIT_ACTOR) ? total_ns * 1e6 : total_ns;
}

static void write_type(writer *w, const struct weft_table_row *row)
{
	char name[192];
	struct text text = {0};
	if (row->ended > 1) {
		append_number(&text, row->ended);
		append(&text, " x ");
	}
	append(&text, "%s%s", weft_table_name(w->m, row, name), row->ended > 1 ? ": " : " ");
	append_spread(&text, row->ended, row->p50_ns, row->p99_ns, row->max_ns);
	if (row->pending > 0)
		append(&text, "; %zu pending at the end of the trace", row->pending);
	set_subject(add_line(w, WEFT_SUMMARY_WORK, &text), row->slowest, w->m->promises[row->slowest].start_ns, row->max_ns);
}

/* Returns the type with the highest weight that is not among the chosen ones, or NULL. */
static const struct weft_table_row *find_heaviest(
    const struct weft_model *m, const struct weft_table *table, const struct weft_table_row *const *chosen, size_t count)
{
	const struct weft_table_row *best = NULL;
	double most = -1;
	for (size_t i = 0; i < table->count; i++) {
		const double weight = weigh_type(m, &table->rows[i]);
		bool is_chosen = weight <= most;
		for (size_t k = 0; k < count && !is_chosen; k++)
			is_chosen = chosen[k] == &table->rows[i];
		if (is_chosen)
			continue;
		best = &table->rows[i];
		most = weight;
	}
	return best;
}

static void write_work(writer *w)
{
	enum { LEAST_SHARE = 100 }; /* types with less than one LEAST_SHARE-th of the heaviest type's weight are left out */
	struct weft_table *table;
	const struct weft_table_row *chosen[MAX_TYPES];
	if (weft_table_create(&table, w->facts, INT64_MIN, INT64_MAX, NULL) < 0) {
		w->failed = true;
		return;
	}
	for (size_t n = 0; n < MAX_TYPES; n++) {
		chosen[n] = find_heaviest(w->m, table, chosen, n);
		if (!chosen[n] || weigh_type(w->m, chosen[n]) < weigh_type(w->m, chosen[0]) / LEAST_SHARE)
			break;
		write_type(w, chosen[n]);
	}
	weft_table_destroy(table);
}

static void write_workload(writer *w, int64_t *served_from_ns)
{
	struct weft_workload load;
	if (weft_workload_init(&load, w->m) < 0)
		w->failed = true;
	*served_from_ns = WEFT_NO_TIME;
	for (size_t i = 0; i < load.count && load.groups[i].is_served; i++)
		if (*served_from_ns == WEFT_NO_TIME || load.groups[i].from_ns < *served_from_ns)
			*served_from_ns = load.groups[i].from_ns;
	write_groups(w, &load, true, MAX_SERVERS);
	write_groups(w, &load, false, MAX_PEERS);
	if (load.count == 0 || !load.groups[0].is_served)
		write_work(w);
	weft_workload_finish(&load);
}

/* ---- Event loops and threads ---- */

/* How a thread spent its time while its loops existed, or its promises if it has no loop. */
struct load {
	uint16_t stream;
	bool has_loop;
	int64_t from_ns, until_ns, whole_ns, awake_ns;
	struct weft__stall block; /* the longest block of the thread; end_ns is 0 if there is none */
};

typedef WEFT_VEC(struct load) loads_vec;

static struct load *find_load(loads_vec *loads, uint16_t stream)
{
	for (size_t i = 0; i < loads->count; i++)
		if (loads->items[i].stream == stream)
			return &loads->items[i];
	struct load *added = weft_vec_push(loads);
	if (added)
		*added = (struct load){.stream = stream, .from_ns = INT64_MAX, .until_ns = INT64_MIN};
	return added;
}

/* Adds the lifetime of a loop to the load of its thread; a time that several loops cover counts once. */
static bool add_life(writer *w, loads_vec *loads, struct weft_accounts *accounts, uint32_t p)
{
	const struct weft_promise *loop = &w->m->promises[p];
	struct load *load = find_load(loads, loop->stream);
	if (!load)
		return false;
	const int64_t from_ns = weft_max_ns(weft_max_ns(loop->start_ns, 0), load->until_ns), to_ns = weft_account_end_ns(w->m, p);
	load->has_loop |= weft_kind_has(loop->kind, WEFT_TRAIT_LOOP);
	if (to_ns <= from_ns)
		return true;
	load->from_ns = weft_min_ns(load->from_ns, from_ns);
	load->until_ns = to_ns;
	load->whole_ns += to_ns - from_ns;
	load->awake_ns += to_ns - from_ns - weft_account_slept_ns(accounts, loop->stream, from_ns, to_ns);
	return true;
}

static bool add_lives(writer *w, loads_vec *loads, enum weft_trait trait)
{
	enum { MAX_MEASURED = 4096 }; /* most loops that are measured, because some programs run loops again and again */
	struct weft_link_index index;
	size_t measured = 0;
	if (weft_link_index_init(&index, w->m, WEFT_LINK_INDEX_ALL, NULL) < 0)
		return false;
	bool ok = true;
	for (uint32_t p = 1; ok && p < w->m->promise_count && measured < MAX_MEASURED; p++) {
		if (!weft_kind_has(w->m->promises[p].kind, trait))
			continue;
		measured++;
		ok = add_life(w, loads, index.accounts, p);
	}
	ok = ok && !weft_accounts_failed(index.accounts);
	weft_link_index_finish(&index);
	return ok;
}

static bool add_blocks(writer *w, loads_vec *loads)
{
	const int64_t least_ns = 1000000;
	weft__stalls_vec stalls = {0};
	const bool ok = weft__stalls_find(&stalls, w->m, least_ns, NULL) >= 0;
	for (size_t i = 0; ok && i < stalls.count; i++) {
		const struct weft__stall *stall = &stalls.items[i];
		for (size_t k = 0; k < loads->count; k++) {
			struct load *load = &loads->items[k];
			if (load->stream == stall->stream && (stall->is_on_loop || !load->has_loop) &&
			    stall->end_ns - stall->start_ns > load->block.end_ns - load->block.start_ns)
				load->block = *stall;
		}
	}
	weft_vec_free(&stalls);
	return ok;
}

static int compare_loads(const void *a, const void *b)
{
	const struct load *x = a, *y = b;
	const double busy_x = x->whole_ns ? (double)x->awake_ns / (double)x->whole_ns : 0;
	const double busy_y = y->whole_ns ? (double)y->awake_ns / (double)y->whole_ns : 0;
	return WEFT_ORDER(busy_y, busy_x) ?: WEFT_ORDER(y->whole_ns, x->whole_ns) ?: WEFT_ORDER(x->stream, y->stream);
}

/* Appends the promise that blocked the thread, and its function: the function in most samples, or else the callback. */
static void append_block_name(struct text *to, const struct weft_model *m, const struct weft__stall *block)
{
	char name[WEFT_NAME_BYTES], place[WEFT_NAME_BYTES];
	const uint32_t promise = block->promise;
	if (block->is_pause) {
		append(to, "%s", weft_name_text(m, block->pause, name, sizeof name));
		return;
	}
	append_promise_name(to, m, promise);
	struct weft__hot_function hot;
	const bool is_sampled = weft__hot_function_find(&hot, m, m->promises[promise].stream, block->start_ns, block->end_ns) > 0;
	const uint32_t site = is_sampled ? hot.site : weft_model_callback(m, promise, block->start_ns, block->end_ns);
	if (*weft_name_place(m, site, place))
		append(to, ", in %s", place);
}

static void write_load(writer *w, const struct load *load)
{
	const struct weft_trace_info *info = w->m->trace;
	const int64_t block_ns = load->block.end_ns - load->block.start_ns;
	struct text text = {0};
	char name[64];
	append(&text, load->has_loop ? "the loop of thread " : "thread ");
	if (load->stream < info->stream_count && info->streams[load->stream].name.len) {
		weft_name_sanitize(info->streams[load->stream].name, name, sizeof name);
		append(&text, "\"%s\"", name);
	} else {
		append(&text, "%u", load->stream);
	}
	const int percent = get_percent(load->awake_ns, load->whole_ns);
	if (percent < 1)
		append(&text, " was busy for less than 1%% of ");
	else
		append(&text, " was busy for %d%% of ", percent);
	append_duration(&text, load->whole_ns);
	if (block_ns > 0) {
		append(&text, load->has_loop ? "; it was blocked for at most " : "; its longest run took ");
		append_duration(&text, block_ns);
		append(&text, ": ");
		append_block_name(&text, w->m, &load->block);
	}
	struct weft_summary_line *line = add_line(w, load->has_loop ? WEFT_SUMMARY_LOOP : WEFT_SUMMARY_THREAD, &text);
	if (block_ns > 0)
		set_subject(line, load->block.is_pause ? WEFT_NONE : load->block.promise, load->block.start_ns, block_ns);
}

/* Writes lines about the busiest loops; if there is no loop, about the busiest thread. */
static void write_loads(writer *w)
{
	loads_vec loads = {0};
	bool ok = add_lives(w, &loads, WEFT_TRAIT_LOOP);
	const bool has_loop = loads.count > 0;
	if (ok && !has_loop && w->m->sleep_count > 0)
		ok = add_lives(w, &loads, WEFT_TRAIT_THREAD);
	ok = ok && add_blocks(w, &loads);
	weft_sort(loads.items, loads.count, sizeof *loads.items, compare_loads);
	size_t shown = 0;
	for (; ok && shown < loads.count && shown < (has_loop ? MAX_LOOPS : 1u); shown++) {
		if (shown > 0 && get_percent(loads.items[shown].awake_ns, loads.items[shown].whole_ns) < 1)
			break;
		write_load(w, &loads.items[shown]);
	}
	if (ok && has_loop && loads.count > shown) {
		struct text text = {0};
		append(&text, "and %zu more event loop%s, busy for less than 1%%", loads.count - shown,
		    plural_s(loads.count - shown));
		add_line(w, WEFT_SUMMARY_LOOP, &text);
	}
	weft_vec_free(&loads);
	w->failed |= !ok;
}

/* ---- Threads that wait at the end ---- */

struct last_wait {
	uint32_t thread;
	const struct weft_interval *sleep;
};

static int compare_waits(const void *a, const void *b)
{
	const struct last_wait *x = a, *y = b;
	return WEFT_ORDER(x->sleep->start_ns, y->sleep->start_ns) ?: WEFT_ORDER(x->thread, y->thread);
}

/* Returns, by stream, the sleep that lasts until the end of the stream, or NULL. */
static const struct weft_interval **find_last_sleeps(const struct weft_model *m)
{
	const struct weft_interval **last = calloc(m->trace->stream_count + 1, sizeof *last);
	for (size_t i = 0; last && i < m->sleep_count; i++)
		if (m->sleeps[i].end_ns == weft_model_stream_until(m, m->sleeps[i].stream))
			last[m->sleeps[i].stream] = &m->sleeps[i];
	return last;
}

static void write_wait(writer *w, const struct last_wait *wait)
{
	const uint32_t call = weft_model_call(w->m, wait->sleep);
	const int64_t length_ns = wait->sleep->end_ns - wait->sleep->start_ns;
	struct text text = {0};
	char name[WEFT_NAME_BYTES];
	append_promise_name(&text, w->m, wait->thread);
	append(&text, " was in %s", weft_name_text(w->m, call, name, sizeof name));
	if (*weft_name_place(w->m, weft_model_place(w->m, wait->sleep), name))
		append(&text, " at %s", name);
	append(&text, " for the last ");
	append_duration(&text, length_ns);
	set_subject(add_line(w, WEFT_SUMMARY_WAITING, &text), wait->thread, wait->sleep->start_ns, length_ns);
}

/* Writes the calls in which threads had been for long at the end, the longest first. */
static void write_waits(writer *w)
{
	enum { LONG_NS = 1000000000 };
	const struct weft_model *m = w->m;
	const struct weft_interval **last = m->run_streams && m->sleep_count ? find_last_sleeps(m) : NULL;
	WEFT_VEC(struct last_wait) waits = {0};
	for (uint32_t p = 1; last && p < m->promise_count; p++) {
		const bool is_pending =
		    m->promises[p].end == WEFT_END_PENDING && weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD);
		const uint32_t run = is_pending ? weft_run_before(m, p, INT64_MAX) : WEFT_NONE;
		const struct weft_interval *sleep = run == WEFT_NONE ? NULL : last[m->run_streams[run]];
		if (!sleep || sleep->end_ns - sleep->start_ns < LONG_NS || weft_model_call(m, sleep) == WEFT_NONE)
			continue;
		struct last_wait *added = weft_vec_push(&waits);
		w->failed |= !added;
		if (added)
			*added = (struct last_wait){p, sleep};
	}
	weft_sort(waits.items, waits.count, sizeof *waits.items, compare_waits);
	for (size_t i = 0; i < waits.count && i < MAX_WAITS; i++)
		write_wait(w, &waits.items[i]);
	if (waits.count > MAX_WAITS) {
		struct text text = {0};
		append(&text, "and %zu more thread%s", waits.count - MAX_WAITS, plural_s(waits.count - MAX_WAITS));
		add_line(w, WEFT_SUMMARY_WAITING, &text);
	}
	weft_vec_free(&waits);
	free(last);
}

/* ---- The thread pool ---- */

static const char working_name[] = "thread pool: at work", waiting_name[] = "thread pool: requests";

static bool has_suffix(struct weft_str text, const char *suffix)
{
	const size_t length = strlen(suffix);
	return text.len >= length && memcmp(text.ptr + text.len - length, suffix, length) == 0;
}

/* Returns the counter with the same prefix and another suffix, or NULL. */
static const struct weft_counter *find_twin(const struct weft_model *m, const struct weft_counter *counter)
{
	const size_t prefix = counter->name.len - strlen(working_name);
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct weft_counter *other = &m->counters[i];
		if (has_suffix(other->name, waiting_name) && other->name.len == prefix + strlen(waiting_name) &&
		    memcmp(other->name.ptr, counter->name.ptr, prefix) == 0)
			return other;
	}
	return NULL;
}

/* Returns the average of a counter from its first sample to the end. */
static double average_counter(const struct weft_model *m, const struct weft_counter *c)
{
	double sum = 0;
	for (size_t i = 0; i < c->count; i++) {
		const int64_t until_ns = i + 1 < c->count ? c->samples[i + 1].time_ns : m->end_ns;
		sum += (double)c->samples[i].value * ((double)until_ns - (double)c->samples[i].time_ns);
	}
	const double whole_ns = c->count ? (double)m->end_ns - (double)c->samples[0].time_ns : 0;
	const double average = whole_ns > 0 ? sum / whole_ns : 0;
	return average < 0 ? 0 : average > 1e15 ? 1e15 : average;
}

/* Returns the largest number of requests that waited for a thread of the pool: all requests minus those that a thread runs. */
static int64_t find_longest_queue(const struct weft_counter *all, const struct weft_counter *working)
{
	int64_t longest = 0, at_work = 0;
	for (size_t i = 0, k = 0; i < all->count; i++) {
		for (; k < working->count && working->samples[k].time_ns <= all->samples[i].time_ns; k++)
			at_work = working->samples[k].value;
		longest = weft_max_ns(longest, all->samples[i].value - at_work);
	}
	return longest;
}

static void write_pools(writer *w)
{
	size_t written = 0;
	for (size_t i = 0; i < w->m->counter_count && written < MAX_POOLS; i++) {
		const struct weft_counter *working = &w->m->counters[i], *all;
		struct text text = {0};
		if (!has_suffix(working->name, working_name) || working->count == 0 || !(all = find_twin(w->m, working)))
			continue;
		append_tenths(&text, average_counter(w->m, working));
		append(&text, " threads worked on average, at most %" PRId64 "; ", working->max);
		const int64_t queue = find_longest_queue(all, working);
		if (queue > 0)
			append(&text, "up to %" PRId64 " request%s waited for a thread", queue, plural_s((uint64_t)queue));
		else
			append(&text, "no request waited for a thread");
		add_line(w, WEFT_SUMMARY_POOL, &text);
		written++;
	}
}

/* ---- Failures ---- */

/* The most frequent error text is found with Boyer and Moore's majority vote, which needs no table. */
static void write_failures(writer *w)
{
	const struct weft_model *m = w->m;
	size_t count = 0, votes = 0, same = 0;
	uint32_t most = WEFT_NONE, first = WEFT_NONE;
	struct text text = {0};
	char error[WEFT_NAME_BYTES];
	for (uint32_t p = 1; p < m->promise_count; p++) {
		if (!weft_promise_went_wrong(&m->promises[p]) || m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED)
			continue;
		count++;
		most = votes == 0 ? m->promises[p].failure : most;
		votes += m->promises[p].failure == most ? 1 : (size_t)-1;
	}
	for (uint32_t p = 1; p < m->promise_count; p++) {
		if (!weft_promise_went_wrong(&m->promises[p]) || m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED ||
		    m->promises[p].failure != most)
			continue;
		same++;
		first = first == WEFT_NONE ? p : first;
	}
	if (count == 0) {
		append(&text, "nothing failed");
		add_line(w, WEFT_SUMMARY_FAILURES, &text);
		return;
	}
	append_number(&text, count);
	append(&text, " promise%s failed", plural_s(count));
	if (same > 0 && same < count)
		append(&text, ", %zu of them", same);
	if (most != WEFT_NONE)
		append(&text, " with \"%s\"", weft_name_text(m, most, error, sizeof error));
	append(&text, "; the first was ");
	append_promise_name(&text, m, first);
	set_subject(add_line(w, WEFT_SUMMARY_FAILURES, &text), first, m->promises[first].start_ns,
	    weft_max_ns(m->promises[first].end_ns - m->promises[first].start_ns, 0));
}

/* ---- Findings, and what is missing ---- */

/* Returns whether the finding says that something never ends. */
static bool is_hang(const struct weft_finding *f)
{
	static const uint32_t hangs = 1u << WEFT_FINDING_DEADLOCK | 1u << WEFT_FINDING_CYCLE | 1u << WEFT_FINDING_HANG |
				      1u << WEFT_FINDING_UNANSWERED | 1u << WEFT_FINDING_UNRETURNED | 1u << WEFT_FINDING_STUCK;
	return f->severity == WEFT_SEVERITY_ALARM && hangs >> f->kind & 1;
}

static void append_finding(struct text *to, const struct weft_finding *f)
{
	append(to, "%s%s: %s", weft_finding_name(f->kind), f->sure ? "" : " (uncertain)", f->title);
}

static void write_findings(writer *w, const struct weft_findings *findings)
{
	const size_t all = findings->count + findings->left_out;
	size_t shown = 0;
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		const bool is_first_hang = is_hang(f) && shown == 0;
		struct text text = {0};
		if (shown++ >= WEFT_SUMMARY_MAX_FINDINGS)
			break;
		if (is_first_hang) {
			append(&text, "since ");
			append_duration(&text, f->start_ns);
			append(&text, ", for ");
			append_duration(&text, weft_max_ns(f->end_ns - f->start_ns, 0));
			append(&text, "%s: %s", f->sure ? "" : " (uncertain)", f->title);
		} else {
			append_finding(&text, f);
		}
		struct weft_summary_line *line = add_line(w, is_first_hang ? WEFT_SUMMARY_HANG : WEFT_SUMMARY_FINDING, &text);
		line->finding = i;
		line->promise = f->promise;
		line->from_ns = f->start_ns;
		line->to_ns = f->end_ns;
	}
	struct text text = {0};
	if (all == 0)
		append(&text, "weft found no fault");
	else if (all > WEFT_SUMMARY_MAX_FINDINGS)
		append(
		    &text, "and %zu more finding%s", all - WEFT_SUMMARY_MAX_FINDINGS, plural_s(all - WEFT_SUMMARY_MAX_FINDINGS));
	else
		return;
	add_line(w, WEFT_SUMMARY_FINDING, &text);
}

static void write_missing(writer *w, const struct weft_findings *findings)
{
	const struct weft_trace_info *info = w->m->trace;
	struct text text = {0};
	char missing[WEFT_NAME_BYTES];
	if (findings && findings->doubt)
		append(&text, "%s", findings->doubt);
	if (info->missing_data.len > 0)
		append(&text, "%s%s", text.length ? "; " : "", weft_name_sanitize(info->missing_data, missing, sizeof missing));
	if (text.length > 0)
		add_line(w, WEFT_SUMMARY_MISSING, &text);
}

/* ---- Life ---- */

/* Puts the lines in the order of their topics; lines about the model come before lines about findings. */
static bool arrange_lines(struct weft_summary *summary)
{
	writer *w = summary->priv;
	w->all.count = 0;
	if (!weft_vec_reserve(&w->all, w->of_model.count + w->of_findings.count))
		return false;
	for (int topic = 0; topic < WEFT_SUMMARY_TOPIC_COUNT; topic++)
		for (int pass = 0; pass < 2; pass++) {
			const lines_vec *from = pass ? &w->of_findings : &w->of_model;
			for (size_t i = 0; i < from->count; i++)
				if ((int)from->items[i].topic == topic)
					w->all.items[w->all.count++] = from->items[i];
		}
	summary->lines = w->all.items;
	summary->count = w->all.count;
	return true;
}

static void forget_findings(writer *w)
{
	w->of_findings.count = 0;
	while (w->texts.count > w->model_texts)
		free(w->texts.items[--w->texts.count]);
}

int weft_summary_set_findings(struct weft_summary *summary, const struct weft_findings *findings)
{
	writer *w = summary->priv;
	forget_findings(w);
	w->failed = false;
	w->to = &w->of_findings;
	if (findings)
		write_findings(w, findings);
	write_missing(w, findings);
	const bool failed = w->failed;
	if (failed)
		forget_findings(w);
	return arrange_lines(summary) && !failed ? WEFT_OK : WEFT_ENOMEM;
}

int weft_summary_create(struct weft_summary **out, struct weft_promise_info *facts, struct weft_error *err)
{
	struct weft_summary *summary = calloc(1, sizeof *summary);
	writer *w = summary ? calloc(1, sizeof *w) : NULL;
	if (w) {
		*w = (writer){.facts = facts, .m = weft_promise_info_model(facts)};
		w->to = &w->of_model;
		summary->priv = w;
		write_program(w);
		write_workload(w, &summary->served_from_ns);
		write_loads(w);
		write_waits(w);
		write_pools(w);
		write_failures(w);
		w->model_texts = w->texts.count;
	}
	if (!w || w->failed || weft_summary_set_findings(summary, NULL) < 0) {
		weft_summary_destroy(summary);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory for a summary");
	}
	*out = summary;
	return WEFT_OK;
}

void weft_summary_destroy(struct weft_summary *summary)
{
	writer *w = summary ? summary->priv : NULL;
	if (w) {
		for (size_t i = 0; i < w->texts.count; i++)
			free(w->texts.items[i]);
		weft_vec_free(&w->texts);
		weft_vec_free(&w->of_model);
		weft_vec_free(&w->of_findings);
		weft_vec_free(&w->all);
	}
	free(w);
	free(summary);
}

const char *weft_summary_topic_name(enum weft_summary_topic topic)
{
	static const char *const names[] = {
#define TOPIC_NAME(NAME, name) name,
	    WEFT_SUMMARY_TOPICS(TOPIC_NAME)
#undef TOPIC_NAME
	};
	return names[topic];
}
