/* places.h: what places.c and its modules share.  SPDX-License-Identifier: ISC */
#ifndef TESTS_NAMES_PLACES_H
#define TESTS_NAMES_PLACES_H

#ifdef __cplusplus
extern "C" {
#endif

void places_create(const char *label);

/* The type of places_work_here, which a module exports. */
typedef int places_work(void (*create)(const char *label));

#ifdef __cplusplus
}
#endif
#endif
