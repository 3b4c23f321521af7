/* module.c: a module whose work is done in a function of the name that WORKER is.  SPDX-License-Identifier: ISC */
#include "places.h"

__attribute__((noinline, visibility("default"))) int WORKER(void (*create)(const char *label));
__attribute__((visibility("default"))) places_work places_work_here;

#define TEXT_OF(x) TEXT(x)
#define TEXT(x) #x

int WORKER(void (*create)(const char *label))
{
	create(TEXT_OF(WORKER));
	__asm__ volatile("");
	return 1;
}

int places_work_here(void (*create)(const char *label))
{
	return WORKER(create) + 1;
}
