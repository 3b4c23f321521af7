/* joined.c: joins two or three traces from any bytes, and runs verbs on the result.
 *
 * The first byte chooses the number of traces, and is an operand; the rest are the traces, of equal size.  Each event must belong
 * to one trace, in that trace's order, and a second read must be equal.  SPDX-License-Identifier: ISC */
#include "analysis/check_account.h"
#include "analysis/findings/explain.h"
#include "analysis/index/path.h"
#include "model/check_model.h"
#include "trace/join.h"

enum { MAX_PARTS = 3 };

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

struct trace_digest {
	uint64_t events, sum, skipped;
};

/* Returns whether an id names its part. */
static bool is_of_part(int64_t id, uint32_t part)
{
	return id == WEFT_SYSTEM_ID || (uint64_t)(id < 0 ? -id : id) % 10 == part;
}

static struct trace_digest read_all(struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	const struct weft_event *events;
	struct trace_digest trace_digest = {0};
	size_t count;
	int more;
	while ((more = weft_trace_next(trace, &events, &count)) == 1) {
		CHECK_MODEL(count > 0);
		for (size_t i = 0; i < count; i++) {
			const struct weft_event *ev = &events[i];
			CHECK_MODEL(ev->site == WEFT_NO_SITE || ev->site < info->site_count);
			if (ev->stream < info->stream_count) {
				uint32_t part = info->streams[ev->stream].part;
				CHECK_MODEL(part < info->part_count && is_of_part(ev->a, part) && is_of_part(ev->b, part));
			}
			trace_digest.sum = trace_digest.sum * 31 + (uint64_t)ev->time_ns + (uint64_t)ev->a * 3 +
					   (uint64_t)ev->b * 5 + (uint64_t)ev->value * 7 + ev->op + ev->stream;
			for (uint32_t k = 0; k < ev->text.len; k++)
				trace_digest.sum = trace_digest.sum * 31 + (unsigned char)ev->text.ptr[k];
		}
		trace_digest.events += count;
	}
	CHECK_MODEL(more == 0);
	trace_digest.skipped = info->skipped_count;
	return trace_digest;
}

static void explain_trace(struct weft_trace *trace, unsigned operand)
{
	struct weft_model *model;
	struct weft_findings *findings;
	struct weft_path *path;
	if (weft_model_build(&model, trace, NULL, NULL) < 0)
		return;
	check_model(model);
	check_account(model);
	CHECK_MODEL(weft_explain(&findings, model, NULL, NULL) == WEFT_OK);
	weft_findings_destroy(findings);
	const uint32_t promise = (uint32_t)(operand % model->promise_count);
	if (promise != WEFT_SYSTEM && weft_path_create(&path, model, promise, NULL) == WEFT_OK)
		weft_path_destroy(path);
	weft_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	struct weft_trace *parts[MAX_PARTS], *trace;
	if (size < 1 + MAX_PARTS)
		return 0;
	const unsigned operand = bytes[0];
	const size_t wanted = operand % 2 ? 3 : 2, each = (size - 1) / wanted;
	size_t count = 0;
	while (count < wanted && weft_trace_open_memory(&parts[count], bytes + 1 + count * each, each, "fuzz", NULL) == WEFT_OK)
		count++;
	if (count < wanted || weft_trace_join(&trace, parts, count, "joined", NULL) < 0) {
		for (size_t i = 0; i < count; i++)
			weft_trace_close(parts[i]);
		return 0;
	}
	struct trace_digest first = read_all(trace);
	weft_trace_rewind(trace);
	struct trace_digest again = read_all(trace);
	CHECK_MODEL(first.events == again.events && first.sum == again.sum && first.skipped == again.skipped);
	weft_trace_rewind(trace);
	explain_trace(trace, operand / 2);
	weft_trace_close(trace);
	return 0;
}
