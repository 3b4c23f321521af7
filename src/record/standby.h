/* standby.h: a program that is told from outside when to record (private to src/record, but for who records programs that do not
 * know weft).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_STANDBY_H
#define WEFT_RECORD_STANDBY_H

#include "record/host.h"
#include "wire/standby.h"

/* From now on the program begins to record with these options when it is asked to; false: there is no memory. */
bool weft__standby_begin(const struct weft_record_options *options);

/* It does no more: it records with a clock that the others do not know of. */
void weft__standby_leave(void);

/* The lock is taken; recording has begun or ended. */
void weft__standby_note(bool is_on);

/* In a child after a fork. */
void weft__standby_child(void);

#endif
