/* recorder.h: records kernel events of a command's processes into the traces of these processes.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_RECORDER_H
#define WEFT_KERNEL_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/note.h"
#include "wire/kernel.h"

struct weft_kernel_recorder_options {
	enum weft_kernel_level max_level; /* SELF: the highest available */
	const char *folder;               /* folder of the session */
	/* Size of each CPU's ring, or size limit of a growing trace; 0: 16 MiB, or no limit.  In flight mode it is the size of
	 * the kernel's rings; 0: 4 MiB. */
	uint64_t size_bytes;
	bool grows;
	bool is_flight; /* whether events stay in the kernel's rings until a request or the end */
	kernel_note_fn *note;
};

struct weft_kernel_recorder;

/* Starts recording; `pid` is a child process that has not called exec yet.  If the recording level is lower than requested, the
 * user gets a note.  Returns NULL without memory; the other functions accept NULL. */
struct weft_kernel_recorder *weft_kernel_recorder_begin(const struct weft_kernel_recorder_options *options, pid_t pid);

/* Writes all events up to now, and ends the recording. */
void weft_kernel_recorder_end(struct weft_kernel_recorder *kernel);

#endif
