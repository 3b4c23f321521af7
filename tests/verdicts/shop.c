/* shop.c [stall]: orders of a shop, recorded by hand.  stall: one price takes 70 ms of CPU time while the other orders wait.
 *
 * It is compiled twice.  The second time, it has more source lines and one more promise.  SPDX-License-Identifier: ISC */
#include <string.h>
#include <time.h>
#include <weft/record.h>

#ifdef EDITED
#line 100
#endif

static void compute(int ms)
{
	struct timespec now, begin;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static weft_id order(weft_id by, weft_id opening)
{
#ifdef EDITED
#line 117
#endif
	weft_id id = WEFT_CREATE_BY(by, WEFT_KIND_TASK);
	weft_await(id, opening);
	return id;
}

static void ship(weft_id by)
{
	weft_id parcel = WEFT_CREATE_BY(by, WEFT_KIND_TASK);
#ifdef EDITED
	weft_resolve(by, WEFT_CREATE_BY(by, WEFT_KIND_WAIT));
#line 150
#endif
	weft_id stamp = WEFT_CREATE_BY(by, WEFT_KIND_TASK);
	weft_id letter = WEFT_CREATE_BY(by, WEFT_KIND_TASK);
	weft_resolve(by, parcel);
	weft_resolve(by, stamp);
	weft_resolve(by, letter);
}

int main(int argc, char **argv)
{
	weft_id orders[4], opening = WEFT_CREATE(WEFT_KIND_WAIT);
	for (int i = 0; i < 4; i++)
		orders[i] = order(WEFT_SYSTEM_ID, opening);
	weft_resolve(WEFT_SYSTEM_ID, opening);
	for (int i = 0; i < 4; i++) {
		weft_read(orders[i], opening);
		compute(i == 0 && argc > 1 && !strcmp(argv[1], "stall") ? 70 : 0);
		weft_resolve(orders[i], orders[i]);
	}
	weft_run(WEFT_SYSTEM_ID);
	ship(WEFT_SYSTEM_ID);
	return 0;
}
