/* note.h: declares how the kernel recorder reports to the user.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_NOTE_H
#define WEFT_KERNEL_NOTE_H

/* Function that prints one line for the user, in printf's format.  Any thread may call the function. */
typedef __attribute__((format(printf, 1, 2))) void kernel_note_fn(const char *format, ...);

#endif
