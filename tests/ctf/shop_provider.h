/* shop_provider.h: the event of shop.c, as LTTng-UST wants it told.  SPDX-License-Identifier: ISC */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER weft_shop
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/ctf/shop_provider.h"

#if !defined(SHOP_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHOP_PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(weft_shop, sold, LTTNG_UST_TP_ARGS(int, id, const char *, what),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, id, id) lttng_ust_field_string(what, what)))
#endif

#include <lttng/tracepoint-event.h>
