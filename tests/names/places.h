/* places.h: what places.c and its modules share.  SPDX-License-Identifier: ISC */
#ifndef TESTS_NAMES_PLACES_H
#define TESTS_NAMES_PLACES_H

#ifdef __cplusplus
extern "C" {
#endif

void places_create(const char *label);

/* What a module exports as places_work_here. */
typedef int places_work(void (*create)(const char *label));

#ifdef __cplusplus
}
#endif
#endif
