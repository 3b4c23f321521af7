/* naps.c: a program that records its own promises, one of which sleeps.  SPDX-License-Identifier: ISC */
#include <unistd.h>

#include <weft/record.h>

static volatile int calls; /* changed behind each call: a call at the end of a function may become a jump, without a return
			      address in the function */

static __attribute__((noinline)) void nap(void)
{
	usleep(300000);
	calls++;
}

int main(void)
{
	weft_id loop = WEFT_CREATE(WEFT_KIND_LOOP), request = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_run(request);
	nap();
	weft_resolve(request, request);
	weft_run(loop);
	weft_resolve(WEFT_SYSTEM_ID, loop);
	return 0;
}
