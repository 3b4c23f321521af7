/* read_trace.h: reads any bytes twice as a trace of one format, and builds its model, for fuzz targets.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_FUZZ_READ_TRACE_H
#define WEFT_FUZZ_READ_TRACE_H

#include <string.h>

#include "model/check_model.h"
#include "trace/kernel.h"
#include "trace/trace.h"

/* Kernel events: must be in time order, and equal in each read. */
struct kernel_digest {
	int64_t last_ns;
	uint64_t count, sum;
};

static int add_kernel_events(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	struct kernel_digest *kernel_digest = ctx;
	for (size_t i = 0; i < count; i++) {
		CHECK_MODEL(kernel_digest->count == 0 || events[i].time_ns >= kernel_digest->last_ns);
		kernel_digest->last_ns = events[i].time_ns;
		CHECK_MODEL(events[i].length_ns >= 0);
		kernel_digest->sum = kernel_digest->sum * 31 + (uint64_t)kernel_digest->last_ns + events[i].tid * 3 +
				     events[i].other * 5 + events[i].op + (uint64_t)events[i].length_ns + events[i].ago_ns +
				     (events[i].text ? strlen(events[i].text) : 0);
		kernel_digest->count++;
	}
	return 0;
}

static void read_kernel(struct weft_trace *trace)
{
	struct kernel_digest first = {0}, again = {0};
	struct weft_kernel_info info;
	int got = weft_trace_kernel(trace, add_kernel_events, &first, &info);
	const size_t skipped = weft_trace_info(trace)->skipped_count;
	CHECK_MODEL(got >= 0 && info.events == first.count);
	for (size_t i = 0; i < info.thread_count; i++) {
		CHECK_MODEL(i == 0 || info.threads[i].tid > info.threads[i - 1].tid);
		for (uint32_t k = 0; k < info.threads[i].name.len; k++)
			first.sum += (unsigned char)info.threads[i].name.ptr[k];
	}
	CHECK_MODEL(weft_trace_kernel(trace, add_kernel_events, &again, &info) == got && again.count == first.count);
	CHECK_MODEL(weft_trace_info(trace)->skipped_count == skipped);
}

/* Returns the number of events, and a sum over their contents. */
static size_t read_all(struct weft_trace *trace, uint64_t *sum)
{
	const struct weft_event *events;
	size_t count, all = 0;
	int more;
	*sum = 0;
	while ((more = weft_trace_next(trace, &events, &count)) == 1) {
		CHECK_MODEL(count > 0);
		for (size_t i = 0; i < count; i++) {
			const struct weft_event *ev = &events[i];
			*sum = *sum * 31 + (uint64_t)ev->time_ns + (uint64_t)ev->a * 3 + (uint64_t)ev->b * 5 +
			       (uint64_t)ev->value * 7 + ev->op;
			for (uint32_t k = 0; k < ev->text.len; k++)
				*sum = *sum * 31 + (unsigned char)ev->text.ptr[k];
			struct weft_field field;
			for (unsigned k = 0; weft_trace_field(trace, ev, k, &field); k++)
				*sum = *sum * 31 + (uint64_t)field.value + field.text.len;
			uint32_t callers[4] = {0};
			*sum += weft_trace_callers(weft_trace_info(trace), ev->text, callers, 4) + callers[0];
		}
		all += count;
	}
	CHECK_MODEL(more == 0);
	return all;
}

/* Returns -1 if the bytes are a trace of another format. */
static int read_trace(const unsigned char *bytes, size_t size, const char *format)
{
	struct weft_trace *trace;
	if (weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0)
		return 0;
	if (strcmp(weft_trace_info(trace)->format, format) != 0) {
		weft_trace_close(trace);
		return -1;
	}
	const struct weft_trace_info *info = weft_trace_info(trace);
	char place[64];
	for (size_t i = 0; i < info->site_count; i++)
		(void)weft_site_format(&info->sites[i], place, sizeof place);
	uint64_t sum, sum_again;
	size_t count = read_all(trace, &sum);
	size_t skipped = weft_trace_info(trace)->skipped_count;
	weft_trace_rewind(trace);
	CHECK_MODEL(read_all(trace, &sum_again) == count && sum == sum_again);
	CHECK_MODEL(weft_trace_info(trace)->skipped_count == skipped);
	read_kernel(trace);
	for (int keep_binds = 0; keep_binds < 2; keep_binds++) {
		struct weft_model *model;
		struct weft_model_options options = {.keep_binds = keep_binds != 0};
		weft_trace_rewind(trace);
		int status = weft_model_build(&model, trace, &options, NULL);
		CHECK_MODEL(status == (count ? WEFT_OK : WEFT_EFORMAT));
		if (status == WEFT_OK) {
			CHECK_MODEL(model->events == count);
			check_model(model);
			weft_model_destroy(model);
		}
	}
	weft_trace_close(trace);
	return 0;
}

#endif
