/* stats.c: implements weft stats, which counts the promises of each label and kind, and sums up their time in each state.
 * SPDX-License-Identifier: ISC */
#include "analysis/queries/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/memory.h"
#include "analysis/index/names.h"
#include "analysis/index/path.h"
#include "analysis/queries/functions.h"
#include "analysis/queries/type_table.h"
#include "base/duration.h"
#include "cli.h"

static void put_spread_json(const char *name, const struct weft_spread *s)
{
	printf(",\"%s\":{\"p50_ns\":%" PRId64 ",\"p90_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "}", name,
	    s->p50_ns, s->p90_ns, s->p99_ns, s->max_ns);
}

static void put_json(const struct weft_model *model, const struct weft_stat *s)
{
	fputs("{\"label\":", stdout);
	if (s->label == WEFT_NONE)
		fputs("null", stdout);
	else
		cli_put_string(weft_model_text(model, s->label));
	fputs(",\"site\":", stdout);
	cli_put_site_json(model->trace, s->site);
	fputs(",\"kind\":", stdout);
	cli_put_cstring(weft_model_kind_name(model, s->kind));
	printf(",\"count\":%zu,\"failures\":%zu,\"pending\":%zu", s->count, s->failures, s->pending);
	put_spread_json("waiting", &s->waiting);
	put_spread_json("ready", &s->ready);
	put_spread_json("running", &s->running);
	if (s->has_off)
		put_spread_json("off", &s->off);
	puts("}");
}

static void put_spread(const char *state, const struct weft_spread *s)
{
	char p50[CLI_DURATION_BYTES], p90[CLI_DURATION_BYTES], p99[CLI_DURATION_BYTES], max[CLI_DURATION_BYTES];
	printf("  %-8s p50 %8s  p90 %8s  p99 %8s  max %8s\n", state, cli_format_duration(p50, s->p50_ns),
	    cli_format_duration(p90, s->p90_ns), cli_format_duration(p99, s->p99_ns), cli_format_duration(max, s->max_ns));
}

static void put_text(const struct weft_model *model, const struct weft_stat *s)
{
	printf("%zu %s", s->count, weft_model_kind_name(model, s->kind));
	if (s->label != WEFT_NONE) {
		putchar(' ');
		cli_put_string(weft_model_text(model, s->label));
	}
	cli_put_site(model->trace, s->site);
	if (s->failures > 0)
		printf("  %zu failed", s->failures);
	if (s->pending > 0)
		printf("  %zu pending", s->pending);
	putchar('\n');
	put_spread("waiting", &s->waiting);
	put_spread("ready", &s->ready);
	put_spread("running", &s->running);
	if (s->has_off)
		put_spread("  off", &s->off);
}

/* ---- Blame ---- */

/* Prints how long a running promise was off CPU, and ends the line. */
static void put_off(int64_t off_ns)
{
	char text[CLI_DURATION_BYTES];
	if (off_ns > 0)
		printf(", %s of it off CPU", cli_format_duration(text, off_ns));
	putchar('\n');
}

static void put_blame_json(const struct weft_model *model, const struct weft_blame *blame)
{
	char name[WEFT_NAME_BYTES];
	printf("{\"blame\":\"%s\",\"on\":", weft_step_name(blame->kind));
	if (blame->promise == WEFT_SYSTEM)
		fputs("null", stdout);
	else
		cli_put_cstring(weft_name_type(model, blame->promise, name));
	printf(",\"example\":%" PRId64 ",\"sum_ns\":%" PRId64 ",\"promises\":%zu", model->promises[blame->promise].id,
	    blame->sum_ns, blame->paths);
	if (blame->off_ns > 0)
		printf(",\"off_ns\":%" PRId64, blame->off_ns);
	puts("}");
}

static void put_blames(const struct weft_model *model, const struct weft_blames *blames, bool json)
{
	char sum[CLI_DURATION_BYTES], each[CLI_DURATION_BYTES], name[WEFT_NAME_BYTES];
	if (!json)
		printf("%zu promises, %s in all, %s each\n", blames->promises, cli_format_duration(sum, blames->sum_ns),
		    cli_format_duration(each, blames->sum_ns / (int64_t)blames->promises));
	for (size_t i = 0; i < blames->count && cli_stdout_ok(); i++) {
		const struct weft_blame *blame = &blames->blames[i];
		if (json) {
			put_blame_json(model, blame);
			continue;
		}
		double share = blames->sum_ns ? 100.0 * (double)blame->sum_ns / (double)blames->sum_ns : 0;
		printf("%5.1f %%  %8s  ", share, cli_format_duration(sum, blame->sum_ns));
		if (blame->promise == WEFT_SYSTEM)
			fputs("waiting for something that the trace does not record", stdout);
		else
			printf("%s%s",
			    blame->kind == WEFT_STEP_RUNNING ? "running "
			    : blame->kind == WEFT_STEP_READY ? "queued behind others: "
							     : "waiting for ",
			    weft_name_type(model, blame->promise, name));
		printf("  (%zu promises)", blame->paths);
		put_off(blame->off_ns);
	}
}

static int print_blame(const struct cli_input *input, const char *label, bool json)
{
	struct weft_blames *blames = NULL;
	struct weft_error err;
	if (weft_blames_create(&blames, input->model, (struct weft_str){label, (uint32_t)strlen(label)}, &err) < 0)
		return err.status == WEFT_ENOTFOUND ? cli_fail("%s: no promise with label \"%s\" ended", input->name, label)
						    : cli_fail_error(&err);
	put_blames(input->model, blames, json);
	weft_blames_destroy(blames);
	return cli_finish(CLI_OK);
}

/* ---- The table ---- */

static void put_table_json(const struct weft_model *model, const struct weft_table_row *row)
{
	char name[192];
	fputs("{\"sort\":", stdout);
	cli_put_cstring(weft_table_name(model, row, name));
	printf(",\"count\":%zu,\"failed\":%zu,\"pending\":%zu,\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64
	       ",\"waiting_ns\":%" PRId64 ",\"ready_ns\":%" PRId64 ",\"running_ns\":%" PRId64 ",",
	    row->count, row->failed, row->pending, row->p50_ns, row->p99_ns, row->max_ns, row->waiting_ns, row->ready_ns,
	    row->running_ns);
	if (row->off_ns > 0)
		printf("\"off_ns\":%" PRId64 ",", row->off_ns);
	fputs("\"slowest\":", stdout);
	if (row->slowest == WEFT_NONE)
		puts("null}");
	else
		printf("%" PRId64 "}\n", model->promises[row->slowest].id);
}

const char *const cli_cell_headings[CLI_CELLS] = {"count", "failed", "p50", "p99", "max", "waiting", "ready", "running", "sort"};

void cli_table_cells(char cells[CLI_CELLS][CLI_CELL_BYTES], const struct weft_model *model, const struct weft_table_row *row)
{
	const int64_t times[] = {row->p50_ns, row->p99_ns, row->max_ns, row->waiting_ns, row->ready_ns, row->running_ns};
	snprintf(cells[0], CLI_CELL_BYTES, "%zu", row->count);
	snprintf(cells[1], CLI_CELL_BYTES, "%zu", row->failed);
	for (int i = 0; i < 6; i++)
		if (i < 3 && row->ended == 0)
			snprintf(cells[2 + i], CLI_CELL_BYTES, "-");
		else
			cli_format_duration(cells[2 + i], times[i]);
	weft_table_name(model, row, cells[CLI_CELLS - 1]);
}

static void put_table_line(const char *const cells[CLI_CELLS])
{
	printf("%8s %7s", cells[0], cells[1]);
	for (int i = 2; i < CLI_CELLS - 1; i++)
		printf(" %8s", cells[i]);
	printf("  %s", cells[CLI_CELLS - 1]);
}

static void put_table_row(const struct weft_model *model, const struct weft_table_row *row)
{
	char texts[CLI_CELLS][CLI_CELL_BYTES];
	const char *cells[CLI_CELLS];
	cli_table_cells(texts, model, row);
	for (int i = 0; i < CLI_CELLS; i++)
		cells[i] = texts[i];
	put_table_line(cells);
	put_off(row->off_ns);
}

/* Returns the table order with that name, or WEFT_TABLE_ORDER_COUNT. */
static enum weft_table_order find_order(const char *name)
{
	int order = 0;
	while (order < WEFT_TABLE_ORDER_COUNT && strcmp(weft_table_order_name((enum weft_table_order)order), name) != 0)
		order++;
	return (enum weft_table_order)order;
}

static void put_rows(const struct weft_model *model, const struct weft_table *table, bool json)
{
	if (!json) {
		put_table_line(cli_cell_headings);
		putchar('\n');
	}
	for (size_t i = 0; i < table->count && cli_stdout_ok(); i++)
		(json ? put_table_json : put_table_row)(model, &table->rows[i]);
}

/* ---- The table of requests ---- */

static bool is_request_row(const struct weft_model *model, const struct weft_table_row *row)
{
	return model->promises[row->first].kind == WEFT_KIND_REQUEST;
}

/* Returns the time from the first start to the last end of a request within from_ns..to_ns, in seconds; 0 if it is too short for
 * a rate. */
static double measure_request_seconds(const struct weft_model *model, int64_t from_ns, int64_t to_ns)
{
	enum { LEAST_SECONDS = 1 };
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	for (uint32_t p = 1; p < model->promise_count; p++) {
		const struct weft_promise *promise = &model->promises[p];
		const int64_t end_ns = weft_model_until(model, p);
		if (promise->kind != WEFT_KIND_REQUEST || promise->start_ns > to_ns || end_ns < from_ns)
			continue;
		first_ns = weft_min_ns(first_ns, weft_max_ns(promise->start_ns, from_ns));
		last_ns = weft_max_ns(last_ns, weft_min_ns(end_ns, to_ns));
	}
	const double seconds = first_ns < last_ns ? (double)(last_ns - first_ns) / 1e9 : 0;
	return seconds >= LEAST_SECONDS ? seconds : 0;
}

static void put_request_row(const struct weft_model *model, const struct weft_table_row *row, double seconds)
{
	char cells[CLI_CELLS][CLI_CELL_BYTES], rate[32] = "-";
	cli_table_cells(cells, model, row);
	if (seconds > 0)
		snprintf(rate, sizeof rate, "%.1f", (double)row->count / seconds);
	printf("%8s %9s %7s %8s %8s %8s  %s\n", cells[0], rate, cells[1], cells[2], cells[3], cells[4], cells[CLI_CELLS - 1]);
}

static void put_requests(
    const struct weft_model *model, const struct weft_table *table, int64_t from_ns, int64_t to_ns, bool json)
{
	const double seconds = measure_request_seconds(model, from_ns, to_ns);
	if (!json)
		printf("%8s %9s %7s %8s %8s %8s  %s\n", "count", "a second", "failed", "p50", "p99", "slowest", "request");
	for (size_t i = 0; i < table->count && cli_stdout_ok(); i++) {
		if (!is_request_row(model, &table->rows[i]))
			continue;
		if (json)
			put_table_json(model, &table->rows[i]);
		else
			put_request_row(model, &table->rows[i], seconds);
	}
}

static int put_table(
    const struct cli_input *input, enum weft_table_order order, int64_t from_ns, int64_t to_ns, bool only_requests, bool json)
{
	struct weft_promise_info *facts = NULL;
	struct weft_table *table = NULL;
	struct weft_error err;
	int status = weft_promise_info_create(&facts, input->model, &err);
	if (status == WEFT_OK)
		status = weft_table_create(&table, facts, from_ns, to_ns, &err);
	if (status == WEFT_OK) {
		weft_table_sort(table, order);
		if (only_requests)
			put_requests(input->model, table, from_ns, to_ns, json);
		else
			put_rows(input->model, table, json);
	}
	weft_table_destroy(table);
	weft_promise_info_destroy(facts);
	return status < 0 ? cli_fail_error(&err) : cli_finish(CLI_OK);
}

/* ---- Functions ---- */

static double get_percent(int64_t part_ns, int64_t all_ns)
{
	return all_ns ? 100.0 * (double)part_ns / (double)all_ns : 0;
}

static void put_function(const struct weft_stacks *stacks, const struct weft_function_sum *sum, bool json)
{
	const int64_t all_ns = stacks->stacks[0].sum_ns;
	const char *name = weft_stack_name(stacks, sum->stack), *type = weft_stack_name(stacks, sum->type);
	char own[CLI_DURATION_BYTES], total[CLI_DURATION_BYTES];
	if (!json) {
		printf("%5.1f %%  %8s  %5.1f %%  %8s  ", get_percent(sum->own_ns, all_ns), cli_format_duration(own, sum->own_ns),
		    get_percent(sum->total_ns, all_ns), cli_format_duration(total, sum->total_ns));
		cli_put_text((struct weft_str){name, (uint32_t)strlen(name)});
		fputs(", in ", stdout);
		cli_put_text((struct weft_str){type, (uint32_t)strlen(type)});
		putchar('\n');
		return;
	}
	fputs("{\"function\":", stdout);
	cli_put_cstring(name);
	printf(",\"own_ns\":%" PRId64 ",\"total_ns\":%" PRId64 ",\"type\":", sum->own_ns, sum->total_ns);
	cli_put_cstring(type);
	puts("}");
}

static int print_functions(const struct cli_input *input, bool json)
{
	struct weft_stacks *stacks = NULL;
	struct weft_function_sum *sums = NULL;
	struct weft_error err;
	size_t count = 0;
	int status = weft_stacks_create(&stacks, input->model, WEFT_FOLDED_BY_FUNCTION, true, &err);
	if (status == WEFT_OK)
		status = weft_functions_create(&sums, &count, stacks, &err);
	if (status == WEFT_OK && !count)
		cli_note("%s: no stack samples; use weft record --profile=all", input->name);
	else if (status == WEFT_OK && !json)
		printf(
		    "%7s  %8s  %7s  %8s  function, and the promises in whose runs it was for longest\n", "", "own", "", "total");
	for (size_t i = 0; i < count && cli_stdout_ok(); i++)
		put_function(stacks, &sums[i], json);
	free(sums);
	weft_stacks_destroy(stacks);
	return status < 0 ? cli_fail_error(&err) : cli_finish(CLI_OK);
}

/* ---- Memory ---- */

static void put_memory_json(const struct cli_input *input, const struct weft_memory_sums *sums, const struct weft_memory_sum *sum)
{
	fputs("{\"type\":", stdout);
	cli_put_cstring(weft_memory_type(sums, sum));
	if (sum >= sums->places && sum < sums->places + sums->place_count) {
		fputs(",\"site\":", stdout);
		cli_put_site_json(input->model->trace, sum->site);
	}
	printf(",\"allocated_bytes\":%" PRId64 ",\"held_bytes\":%" PRId64 ",\"samples\":%zu,\"held_samples\":%zu}\n",
	    sum->allocated, sum->held, sum->samples, sum->kept);
}

static void put_memory_text(const struct cli_input *input, const struct weft_memory_sums *sums, const struct weft_memory_sum *sum)
{
	char allocated[WEFT_BYTES_BYTES], held[WEFT_BYTES_BYTES], place[WEFT_NAME_BYTES];
	printf("%9s  %9s  ", weft_bytes_text(allocated, sum->allocated), weft_bytes_text(held, sum->held));
	if (sum >= sums->places && sum < sums->places + sums->place_count)
		printf("%s, in ", *weft_name_place(input->model, sum->site, place) ? place : "unknown");
	puts(weft_memory_type(sums, sum));
}

static void put_memory_rows(const struct cli_input *input, const struct weft_memory_sums *sums,
    const struct weft_memory_sum *rows, size_t count, const char *heading, bool json)
{
	if (!json)
		printf("%9s  %9s  %s\n", "allocated", "held", heading);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++)
		(json ? put_memory_json : put_memory_text)(input, sums, &rows[i]);
}

static int print_memory(const struct cli_input *input, bool json)
{
	const struct weft_memory *memory = &input->model->trace->memory;
	struct weft_memory_sums *sums = NULL;
	struct weft_error err;
	char period[WEFT_BYTES_BYTES];
	if (!memory->allocation_count) {
		cli_note("%s: no sampled allocations; use weft record --memory", input->name);
		return cli_finish(CLI_OK);
	}
	if (weft_memory_sums_create(&sums, input->model, &err) < 0)
		return cli_fail_error(&err);
	if (!json)
		printf("estimated from %zu samples, one in %s; %" PRIu64 " samples were lost%s\n", memory->allocation_count,
		    weft_bytes_text(period, (int64_t)memory->period_bytes), memory->lost,
		    memory->misses_ends ? "; some held memory may be free" : "");
	put_memory_rows(input, sums, sums->types, sums->type_count, "promises", json);
	if (!json)
		putchar('\n');
	put_memory_rows(input, sums, sums->places, sums->place_count, "line of the program, and the promises that ran", json);
	weft_memory_sums_destroy(sums);
	return cli_finish(CLI_OK);
}

int cli_stats(struct cli_args *args)
{
	bool json = false, table = false, requests = false, functions = false, memory = false;
	const char *label = NULL, *sort = NULL;
	int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"blame", 0, CLI_TEXT, &label, "LABEL", "print where the time of the promises with this label went"},
	    {"functions", 0, CLI_FLAG, &functions, NULL, "print in which functions threads were sampled while promises ran"},
	    {"memory", 0, CLI_FLAG, &memory, NULL,
		"print which promises allocated memory, in which lines, and what was not freed"},
	    {"table", 0, CLI_FLAG, &table, NULL, "print one line for each type; labels that differ only in numbers are one type"},
	    {"requests", 0, CLI_FLAG, &requests, NULL,
		"print one line for each type of request: number, rate, failures, durations"},
	    {"sort", 0, CLI_TEXT, &sort, "total|max|p99|p50|count|running|ready|failed",
		"sort the table by this column (default: total)"},
	    {"from", 0, CLI_TIME, &from_ns, "T",
		"with --table or --requests: count only promises that are alive after this time"},
	    {"to", 0, CLI_TIME, &to_ns, "T", "with --table or --requests: count only promises that are alive before this time"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;

	enum weft_table_order order = sort ? find_order(sort) : WEFT_TABLE_TOTAL;
	if (order == WEFT_TABLE_ORDER_COUNT)
		return cli_fail_verb(
		    "stats", "unknown column: --sort=%s; use total, max, p99, p50, count, running, ready or failed", sort);
	if (!table && !requests && (sort || from_ns != INT64_MIN || to_ns != INT64_MAX))
		return cli_fail_verb("stats", "--sort, --from and --to need --table or --requests");
	if (functions + memory + table + requests + (label != NULL) > 1)
		return cli_fail_verb("stats", "--functions, --memory, --table, --requests and --blame cannot be combined");
	struct cli_input input;
	/* Binds are kept as recorded: a bind waits from its creation on, even if pictures draw it elsewhere. */
	exit = cli_open_model(&input, args, CLI_KEEP_BINDS);
	if (exit >= 0)
		return exit;
	if (functions) {
		exit = print_functions(&input, json);
	} else if (memory) {
		exit = print_memory(&input, json);
	} else if (table || requests) {
		exit = put_table(&input, order, from_ns, to_ns, requests, json);
	} else if (label) {
		exit = print_blame(&input, label, json);
	} else {
		struct weft_stats *stats = NULL;
		struct weft_error err;
		if (weft_stats_create(&stats, input.model, &err) < 0) {
			exit = cli_fail_error(&err);
		} else {
			for (size_t i = 0; i < stats->count && cli_stdout_ok(); i++)
				(json ? put_json : put_text)(input.model, &stats->stats[i]);
			exit = cli_finish(CLI_OK);
		}
		weft_stats_destroy(stats);
	}
	cli_close(&input);
	return exit;
}
