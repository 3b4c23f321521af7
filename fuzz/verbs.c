/* verbs.c: runs verbs on any bytes as one trace or two.  WEFT_FUZZ_FORMAT chooses the verb:
 *
 *	convert	to each format, which must read back as the same events
 *	explain	findings, waits, paths, statistics
 *	diff	the first half of the bytes against the second
 *
 * The first byte is an operand.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/check_account.h"
#include "analysis/findings/explain.h"
#include "analysis/index/path.h"
#include "analysis/queries/diff.h"
#include "analysis/queries/flame_stacks.h"
#include "analysis/queries/stats.h"
#include "analysis/queries/waits.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/otlp.h"
#include "export/tar.h"
#include "layout/layout.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s: %s\n", WEFT_FUZZ_FORMAT, what);
		abort();
	}
}

static struct weft_trace *open_trace(const unsigned char *bytes, size_t size)
{
	struct weft_trace *trace;
	return weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0 ? NULL : trace;
}

/* Builds the model; NULL if there are no events. */
static struct weft_model *build_model(struct weft_trace *trace, bool keep_binds)
{
	struct weft_model *model;
	struct weft_model_options options = {.keep_binds = keep_binds};
	return weft_model_build(&model, trace, &options, NULL) < 0 ? NULL : model;
}

struct counts {
	uint64_t events, pause_bounds;
};

static struct counts count_events(struct weft_trace *trace)
{
	const struct weft_event *events;
	struct counts counts = {0};
	for (size_t count; weft_trace_next(trace, &events, &count) == 1; counts.events += count)
		for (size_t i = 0; i < count; i++)
			counts.pause_bounds += events[i].op == WEFT_OP_PAUSE_BEGIN || events[i].op == WEFT_OP_PAUSE_END;
	weft_trace_rewind(trace);
	return counts;
}

/* Returns the number of events in mirage's format: start and end of a pause become one, and other events are lost. */
static uint64_t count_for_mirage(struct counts of, const struct weft_losses *losses)
{
	const uint64_t *lost = losses->counts;
	return of.events - lost[WEFT_LOSS_NOTE] - lost[WEFT_LOSS_PENDING] - lost[WEFT_LOSS_OTHER] - lost[WEFT_LOSS_PAUSE_OPEN] -
	       (of.pause_bounds - lost[WEFT_LOSS_PAUSE_OPEN]) / 2;
}

typedef WEFT_VEC(unsigned char) bytes_vec;

static int append_bytes(void *ctx, const void *more, size_t size)
{
	bytes_vec *to = ctx;
	require(weft_vec_reserve(to, size), "there is memory");
	memcpy(to->items + to->count, more, size);
	to->count += size;
	return 0;
}

static int append_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	return weft_tar_file(append_bytes, ctx, name, bytes, size, NULL);
}

static void require_events(const bytes_vec *of, uint64_t events, const char *what)
{
	struct weft_trace *again = open_trace(of->items, of->count);
	require(again && count_events(again).events == events, what);
	weft_trace_close(again);
}

static int discard_output(void *ctx, const void *bytes, size_t size)
{
	return 0;
}

static int check_stack(void *ctx, const char *const *frames, size_t count, int64_t sum_ns)
{
	require(count > 0 && sum_ns > 0, "a stack has frames and a time");
	for (size_t i = 0; i < count; i++)
		require(!strpbrk(frames[i], ";\n"), "a frame is one");
	return 0;
}

static int discard_batch(void *ctx, const void *bytes, size_t size, size_t spans)
{
	(void)ctx, (void)bytes;
	require(size > 0 && spans > 0, "a message has spans");
	return 0;
}

/* Converts to the formats that need a model. */
static void convert_model(const struct weft_trace *trace, const struct weft_model *model)
{
	struct weft_layout *layout;
	struct weft_losses losses;
	struct weft_perfetto_stats told;
	require(weft_layout_create(&layout, model, NULL) == WEFT_OK, "there is a layout");
	const struct weft_perfetto_rows rows = {
	    layout->by_row, layout->row_begin[layout->row_count], layout->rows, layout->row_count};
	require(weft_export_perfetto(trace, model, &rows, WEFT_FLOWS_ALL, NULL, discard_output, NULL, &losses, &told, NULL) ==
		    WEFT_OK,
	    "perfetto can be written");
	require(weft_export_chrome(trace, model, discard_output, NULL, &losses, NULL) == WEFT_OK, "chrome's JSON can be written");
	const struct weft_otlp_options otlp = {.version = "0", .after_utc_ns = INT64_MIN};
	struct weft_otlp_stats written;
	require(weft_export_otlp(model, &otlp, discard_batch, NULL, &losses, &written, NULL) == WEFT_OK, "spans can be written");
	weft_layout_destroy(layout);
	for (int by = 0; by < 2; by++)
		require(weft_folded(model, (enum weft_folded_by)by, check_stack, NULL, NULL) == WEFT_OK, "stacks can be written");
}

static void convert_trace(struct weft_trace *trace)
{
	bytes_vec mirage = {0}, native = {0};
	struct weft_losses losses;
	const struct counts counts = count_events(trace);
	require(weft_export_mirage(trace, append_bytes, &mirage, &losses, NULL) == WEFT_OK, "mirage can be written");
	require_events(&mirage, count_for_mirage(counts, &losses), "mirage reads again");
	weft_trace_rewind(trace);
	require(weft_export_native(trace, append_file, &native, &losses, NULL) == WEFT_OK, "native can be written");
	require(weft_tar_end(append_bytes, &native, NULL) == WEFT_OK, "an archive has an end");
	require_events(&native, counts.events - losses.counts[WEFT_LOSS_OTHER], "native reads again");
	weft_vec_free(&mirage);
	weft_vec_free(&native);
	weft_trace_rewind(trace);
	struct weft_model *model = build_model(trace, true);
	if (model)
		convert_model(trace, model);
	weft_model_destroy(model);
}

static void explain_model(const struct weft_model *model, unsigned operand)
{
	const uint32_t promise = operand % (uint32_t)model->promise_count;
	struct weft_findings *findings;
	struct weft_waits *waits;
	struct weft_path *path;
	struct weft_stats *stats;
	require(weft_explain(&findings, model, NULL, NULL) == WEFT_OK, "a trace can be explained");
	for (size_t i = 0; i < findings->count; i++)
		require(findings->findings[i].title && strlen(findings->findings[i].title) > 0, "a finding has a title");
	weft_findings_destroy(findings);
	if (promise != WEFT_SYSTEM && weft_explain_promise(&findings, model, promise, NULL, NULL) == WEFT_OK)
		weft_findings_destroy(findings);
	if (weft_waits_create(&waits, model, model->end_ns / 256 * (int64_t)operand, NULL) == WEFT_OK)
		weft_waits_destroy(waits);
	if (promise != WEFT_SYSTEM && weft_path_create(&path, model, promise, NULL) == WEFT_OK)
		weft_path_destroy(path);
	check_account(model);
	require(weft_stats_create(&stats, model, NULL) == WEFT_OK, "there are statistics");
	weft_stats_destroy(stats);
}

static void diff_models(const struct weft_model *a, const struct weft_model *b)
{
	struct weft_diff *diff;
	require(weft_diff_create(&diff, a, a, NULL) == WEFT_OK && diff->count == 0, "a trace does not differ from itself");
	weft_diff_destroy(diff);
	require(weft_diff_create(&diff, a, b, NULL) == WEFT_OK, "two traces can be compared");
	weft_diff_destroy(diff);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	if (size < 2)
		return 0;
	const unsigned operand = bytes[0];
	const bool is_one = strcmp(WEFT_FUZZ_FORMAT, "convert") == 0 || strcmp(WEFT_FUZZ_FORMAT, "explain") == 0;
	const size_t first = is_one ? size - 1 : (size - 1) / 2;
	const unsigned char *const halves[2] = {bytes + 1, bytes + 1 + first};
	const size_t sizes[2] = {first, size - 1 - first};
	struct weft_trace *trace = open_trace(halves[0], sizes[0]);
	if (!trace)
		return 0;
	if (strcmp(WEFT_FUZZ_FORMAT, "convert") == 0) {
		convert_trace(trace);
	} else {
		const bool is_diff = strcmp(WEFT_FUZZ_FORMAT, "diff") == 0;
		struct weft_model *model = build_model(trace, is_diff);
		struct weft_trace *other = model && is_diff ? open_trace(halves[1], sizes[1]) : NULL;
		struct weft_model *second = other ? build_model(other, true) : NULL;
		if (model && !is_diff)
			explain_model(model, operand);
		else if (model)
			diff_models(model, second ? second : model);
		weft_model_destroy(second);
		weft_trace_close(other);
		weft_model_destroy(model);
	}
	weft_trace_close(trace);
	return 0;
}
