/* confine.h: takes the rights of a process that parses a stranger's files.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_CONFINE_H
#define WEFT_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Closes all descriptors but the sorted ones of `kept`; 0, 1 and 2 become /dev/null.  For a new process with one thread. */
void weft_confine_descriptors(const int *kept, size_t count);

/* Lets this process only read and write open descriptors, allocate memory and exit: any other system call fails with EPERM, and
 * the memory is limited to `bytes` beside what the process has.  With `may_read` it may also open files for reading and load
 * libraries. Returns false where the kernel has no filters; the other limits hold then, too. */
bool weft_confine(size_t bytes, bool may_read);

#endif
