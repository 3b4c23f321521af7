/* sources.h: finds the main contexts of GLib that OS threads run (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_SOURCES_H
#define WEFT_LOOK_SOURCES_H

#include "look/target.h"

/* Finds GLib's contexts by pointers on the copied stacks, and the sources of each context.  False: no memory. */
bool weft__look_find_contexts(struct look_target *target);

#endif
