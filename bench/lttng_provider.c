/* lttng_provider.c: the code that LTTng-UST generates from the provider, and a loop around it.  SPDX-License-Identifier: ISC */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/lttng_provider.h"

int bench_lttng_is_on(void);
void bench_lttng(int64_t first, unsigned count);

int bench_lttng_is_on(void)
{
	return lttng_ust_tracepoint_enabled(weft_bench, await) != 0;
}

void bench_lttng(int64_t first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		lttng_ust_tracepoint(weft_bench, await, first + i, first);
}
