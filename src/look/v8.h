/* v8.h: reads the JavaScript stacks of OS threads (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_V8_H
#define WEFT_LOOK_V8_H

#include "look/target.h"

/* Layout of V8 in one target, and a cache of lines that were counted. */
struct look_v8;

/* Returns NULL if the target has no V8 that exports its layout, as Node.js does, or without memory.  The caller frees it. */
struct look_v8 *weft__look_v8_create(const struct look_target *target);
void weft__look_v8_free(struct look_v8 *v8);

/* Reads the JavaScript stack of a stopped thread whose C stack and registers were copied, innermost frame first.  Returns the
 * number of frames, whose texts the caller then owns.  A function that the compiler has inlined has no frame. */
size_t weft__look_v8_read(struct look_v8 *v8, const struct look_target *target, const struct weft_look_stack *stack,
    struct weft_look_source_frame *out, size_t capacity);

/* Reads the JavaScript stack of each thread that runs no Python.  The registers of a running process cannot be read, so in a
 * process only threads that are blocked in a syscall have a JavaScript stack.  False: no memory. */
bool weft__look_find_v8(struct look_target *target);

#endif
