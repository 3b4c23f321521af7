/* shop.c: a program that both tracers record: each of its promises tells LTTng-UST of one event.  SPDX-License-Identifier: ISC */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <stdio.h>
#include <unistd.h>
#include <weft/record.h>

#include "tests/ctf/shop_provider.h"

int main(void)
{
	for (int i = 0; i < 40; i++) {
		char name[16];
		snprintf(name, sizeof name, "sale %d", i);
		weft_id sale = WEFT_CREATE(WEFT_KIND_TASK);
		weft_label(sale, name);
		lttng_ust_tracepoint(weft_shop, sold, i, "tea");
		weft_resolve(WEFT_SYSTEM_ID, sale);
		usleep(3000);
	}
	return 0;
}
