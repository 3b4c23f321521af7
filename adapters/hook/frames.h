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

/* Lists the return addresses of this thread, the innermost first, without those in the recorder and in this library.  Returns
 * their number, at most `most`; the list is incomplete if a frame has no unwind table, and empty before glibc 2.35.  The function
 * takes no lock, allocates nothing, keeps errno, and may run in a signal handler. */
unsigned weft__hook_list_callers(const void **callers, unsigned most);

#endif
