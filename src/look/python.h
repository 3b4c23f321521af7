/* python.h: the Python code that OS threads run (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_PYTHON_H
#define WEFT_LOOK_PYTHON_H

#include "look/target.h"

/* Finds the Python stack of each thread, for CPython 3.11 to 3.13.  False: no memory. */
bool weft__look_find_python(struct look_target *target);

/* Reads the Python stack of one thread, innermost first, whose C stack was copied.  *state: 0, or from an earlier call for that
 * thread, which is then faster.  Returns the number of frames, whose texts become the caller's. */
size_t weft__look_read_python(const struct look_target *target, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame *out, size_t capacity);

#endif
