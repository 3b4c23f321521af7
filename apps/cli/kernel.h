/* kernel.h: records what the kernel says of a command's processes, beside what these record themselves.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_H
#define WEFT_CLI_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/kernel.h"

struct kernel_options {
	enum weft_kernel_level most; /* SELF: whatever there is */
	const char *folder;          /* of the session */
	/* Of each processor's ring, or of what each grows to; 0: 16 MiB, or no limit.  Of a flight: of the kernel's rings; 0: 4
	 * MiB. */
	uint64_t size_bytes;
	bool grows;
	bool is_flight; /* what was said stays in the kernel's rings until somebody asks for it, or all ends */
};

struct kernel;

/* Begins; `pid` is a child that waits and has not become the command yet.  Tells the user where there is less than could be.
 * NULL: out of memory; the other functions take that. */
struct kernel *kernel_begin(const struct kernel_options *options, pid_t pid);

/* Writes all that was said until now, and ends. */
void kernel_end(struct kernel *kernel);

#endif
