/* frames.h: finds the line of the program that led to a call which a library makes (private to adapters/).
 * SPDX-License-Identifier: ISC
 */
#ifndef WEFT_HOOK_FRAMES_H
#define WEFT_HOOK_FRAMES_H

/* Returns the return address in the program's own code that led to a library's call; `caller` is the return address of the call.
 * The program's own code is the executable, or else the module of the outermost caller below `stack_end` that is in no runtime.
 * `stack_end` is an address in the frame that called the callback; NULL means that all callers of the thread count.  Returns
 * `caller` if the line is unknown.  The function takes no lock, allocates nothing, keeps errno, and may run in a signal
 * handler. */
const void *weft__hook_find_program_line(const void *caller, const void *stack_end);

/* Returns the same as weft__hook_find_program_line(), for a call that blocks; such calls may be frequent.  Returns `caller` if
 * such searches have taken too much of the thread's time.
 */
const void *weft__hook_find_blocking_line(const void *caller, const void *stack_end);

#endif
