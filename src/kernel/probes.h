/* probes.h: finds static probes (SystemTap notes) in a runtime's machine code, where the runtime starts and ends garbage
 * collections.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_PROBES_H
#define WEFT_KERNEL_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_kernel_probe {
	const char *runtime; /* "Python" */
	/* Offsets of the probe and of its semaphore in the file; the semaphore counts tracers; 0: none. */
	uint64_t offset, semaphore;
	bool is_end;
};

/* Processes that may be probed through a loaded file. */
enum weft_kernel_scope {
	WEFT_SCOPE_NONE,
	WEFT_SCOPE_PROCESS, /* only the process that loaded the file, because its user may change the file */
	WEFT_SCOPE_ALL      /* all processes that load the file, because it belongs to root and only root may write it */
};

/* Opens the file that a process has loaded under a path of its own.  No link is followed, because the path of a loaded file
 * contains no link.  Returns the descriptor, and in *scope the processes that may be probed; or -1.  The caller passes the same
 * descriptor to the kernel, because the path may name another file at any moment. */
int weft_kernel_open_loaded(uint32_t pid, const char *path, enum weft_kernel_scope *scope);

/* Finds the probes for garbage collections in an open ELF file.  Reads at most 5 MB of the file.  Returns the number of probes
 * that were put into `out`; 0 for a malformed file. */
size_t weft_kernel_read_probes(int fd, struct weft_kernel_probe *out, size_t limit);

#endif
