/* profile.h: samples OS threads that run one promise for long, from outside.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROFILE_H
#define WEFT_CONTROL_PROFILE_H

#include <stdbool.h>
#include <sys/types.h>

struct profile;

/* Returns whether this build can sample. */
bool profile_is_supported(void);

/* Starts a thread that watches the processes that record below a folder; `command` is the child that runs the program.  Returns
 * NULL without memory, which profile_end() accepts. */
struct profile *profile_begin(const char *folder, pid_t command);

/* Ends, and adds the samples to the traces. */
void profile_end(struct profile *profile);

#endif
