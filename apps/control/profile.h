/* profile.h: takes stack samples of OS threads that run one promise for long, from outside of the process.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROFILE_H
#define WEFT_CONTROL_PROFILE_H

#include <stdbool.h>
#include <sys/types.h>

struct profile;

/* Returns whether this build can take stack samples. */
bool profile_is_supported(void);

/* Starts a thread that samples the processes that record below a folder; `command` is the child that runs the program.  Returns
 * NULL without memory; profile_end() accepts NULL. */
struct profile *profile_begin(const char *folder, pid_t command);

/* Stops sampling, and adds the samples to the traces. */
void profile_end(struct profile *profile);

#endif
