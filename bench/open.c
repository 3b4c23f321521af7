/* open.c TRACE...: opens a trace, or several as one, up to its layout, once; measures time, peak memory, and the time of explain.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/explain.h"
#include "bench/bench.h"
#include "layout/layout.h"
#include "model/kernel.h"
#include "open/open.h"

/* Returns the peak memory of this process in bytes. */
static double peak_memory(void)
{
	char line[256];
	double kib = 0;
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "VmHWM:", 6))
			kib = strtod(line + 6, NULL);
	if (file)
		fclose(file);
	return kib * 1024;
}

/* Prints the cost of the kernel's events alone, read a second time. */
static void print_kernel_cost(struct weft_trace *trace, const struct weft_model *model)
{
	struct weft_model bare = {.start_ns = model->start_ns};
	if (!model->kernel)
		return;
	double t0 = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (weft__model_read_kernel(&bare, trace) < 0)
		fatal("out of memory");
	double events = (double)bare.kernel->info.events, ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
	printf("kernel_events %.0f\nkernel_ns %.3f\n", events, ns / events);
	weft__model_free_kernel(bare.kernel);
}

int main(int argc, char **argv)
{
	struct open_plan *plan;
	struct weft_trace *trace;
	struct weft_model *model;
	struct weft_layout *layout;
	struct weft_findings *findings;
	struct weft_error err;
	if (argc < 2)
		fatal("usage: weft-bench-open TRACE...");
	double before = peak_memory(), t0 = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (open_classify(&plan, argv + 1, argc - 1, &err) < 0 || open_run(&trace, plan, &err) < 0 ||
	    weft_model_build(&model, trace, NULL, &err) < 0)
		fatal("%s", err.what);
	double t1 = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (weft_layout_create(&layout, model, &err) < 0)
		fatal("%s", err.what);
	double t2 = clock_now_ns(CLOCK_THREAD_CPUTIME_ID), events = (double)model->events, memory = peak_memory() - before;
	if (weft_explain(&findings, model, NULL, &err) < 0)
		fatal("%s", err.what);
	double t3 = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	printf("events %.0f\nmodel_ns %.3f\nlayout_ns %.3f\nexplain_ns %.3f\nmemory %.1f\npromises %zu\nrows %u\n", events,
	    (t1 - t0) / events, (t2 - t1) / events, (t3 - t2) / events, memory / events, model->promise_count, layout->row_count);
	print_kernel_cost(trace, model);
	weft_findings_destroy(findings);
	weft_layout_destroy(layout);
	weft_model_destroy(model);
	weft_trace_close(trace);
	open_plan_destroy(plan);
	return 0;
}
