/* python.h: reads the Python stacks of OS threads (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_PYTHON_H
#define WEFT_LOOK_PYTHON_H

#include "look/target.h"

/* Finds the Python stack of each thread, for CPython 3.11 to 3.13.  False: no memory. */
bool weft__look_find_python(struct look_target *target);

/* Returns whether the target runs a version of CPython whose layout is known. */
bool weft__look_has_python(const struct look_target *target);

/* Reads the Python stack of one thread whose C stack was copied, innermost frame first. *state is 0, or from an earlier call for
 * that thread, which makes this call faster.  Returns the number of frames, whose texts the caller then owns. */
size_t weft__look_read_python(const struct look_target *target, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame *out, size_t capacity);

#endif
