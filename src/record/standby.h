/* standby.h: lets another process start and stop the recording (private to src/record, and to adapters that record programs
 * without calls of weft).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_STANDBY_H
#define WEFT_RECORD_STANDBY_H

#include "record/host.h"
#include "wire/standby.h"

/* Puts the program on standby; a later request starts a recording with these options.  Returns false without memory. */
bool weft__standby_enable(const struct weft_record_options *options);

/* Ends standby, because the program records with a clock that other processes cannot read. */
void weft__standby_disable(void);

/* Notes that recording has started or ended; the caller holds the lock. */
void weft__standby_set_recording(bool is_on);

/* Resets the standby state in a child after a fork. */
void weft__standby_after_fork(void);

#endif
