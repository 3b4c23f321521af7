/* loops.h: finds the event loops of libuv that OS threads run (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_LOOPS_H
#define WEFT_LOOK_LOOPS_H

#include "look/target.h"

/* Finds libuv's loops by pointers on the copied stacks, and what keeps each loop alive.  False: no memory. */
bool weft__look_find_loops(struct look_target *target);

void weft__look_free_loops(struct look_target *target);

#endif
