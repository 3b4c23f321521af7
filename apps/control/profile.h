/* profile.h: takes stack samples of OS threads that run promises, from outside of the process.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROFILE_H
#define WEFT_CONTROL_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct profile;

/* Returns whether this build can take stack samples. */
bool profile_is_supported(void);

/* Starts a thread that samples the processes that record below a folder; `command` is the child that will run the program.
 * `rate_hz` is the number of samples in each second of CPU time, or 0 to sample long runs only, as where the user may not sample
 * all runs; a note then says so.  Returns NULL without memory; profile_end() accepts NULL. */
struct profile *profile_begin(const char *folder, pid_t command, uint32_t rate_hz);

/* Stops sampling, and adds the samples to the traces. */
void profile_end(struct profile *profile);

#endif
