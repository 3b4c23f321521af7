/* lttng_provider.h: the compared event, in LTTng-UST's syntax.  SPDX-License-Identifier: ISC */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER weft_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/lttng_provider.h"

#if !defined(WEFT_BENCH_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_BENCH_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(weft_bench, await, LTTNG_UST_TP_ARGS(int64_t, promise, int64_t, input),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, promise, promise) lttng_ust_field_integer(int64_t, input, input)))

#endif

#include <lttng/tracepoint-event.h>
