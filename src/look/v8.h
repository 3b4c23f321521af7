/* v8.h: the JavaScript code that OS threads run (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_V8_H
#define WEFT_LOOK_V8_H

#include "look/target.h"

/* V8's layout in one target, and the lines that were counted there. */
struct look_v8;

/* Returns NULL if the target has no V8 that exports its layout, as Node.js does, or without memory.  The caller frees it. */
struct look_v8 *weft__look_v8_create(const struct look_target *target);
void weft__look_v8_free(struct look_v8 *v8);

/* Reads the JavaScript stack of a stopped thread, innermost first, whose C stack and registers were copied.  Returns the number
 * of frames, whose texts become the caller's.  A function that the compiler has inlined is not there. */
size_t weft__look_v8_read(struct look_v8 *v8, const struct look_target *target, const struct weft_look_stack *stack,
    struct weft_look_source_frame *out, size_t capacity);

/* Reads the JavaScript stack of each thread that runs no Python.  A process that runs gives no registers: there only a thread
 * that is blocked in a call has its stack.  False: no memory. */
bool weft__look_find_v8(struct look_target *target);

#endif
