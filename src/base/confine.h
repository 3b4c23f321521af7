/* confine.h: removes rights from a process that parses files which another user wrote.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_CONFINE_H
#define WEFT_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/* Closes all file descriptors except those in the sorted array `kept`; 0, 1 and 2 become /dev/null.  Only for a new process
 * that has one thread. */
void weft_confine_descriptors(const int *kept, size_t count);

/* Restricts this process to reading and writing open file descriptors, allocating memory, and exiting.  Any other system call
 * fails with EPERM, and the process can allocate at most `bytes` more than it has.  With `may_read` the process may also open
 * files for reading and load libraries. Returns false if the kernel has no system call filters; the other limits are in force
 * even then. */
bool weft_confine(size_t bytes, bool may_read);

#endif
