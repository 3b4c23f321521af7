/* probes.h: finds the places where a runtime starts and ends garbage collections: static probes (SystemTap notes) in its machine
 * code.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_PROBES_H
#define WEFT_KERNEL_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_kernel_probe {
	const char *runtime;        /* "Python" */
	uint64_t offset, semaphore; /* offsets in the file; the semaphore counts tracers; 0: none */
	bool is_end;
};

/* Which processes may be probed through a file. */
enum weft_kernel_scope {
	WEFT_SCOPE_NONE,
	WEFT_SCOPE_PROCESS, /* the process that loaded it, whose user or root may change it */
	WEFT_SCOPE_ALL      /* all that load it: root's, and writable for root only */
};

/* Opens the file that a process loaded under a path of its own.  No link is followed, since the path of a loaded file has none.
 * Returns the descriptor, and in *scope who may be probed; or -1.  The caller hands the same descriptor to the kernel, since the
 * path may name another file at any moment. */
int weft_kernel_open_loaded(uint32_t pid, const char *path, enum weft_kernel_scope *scope);

/* Finds the probes of an open ELF file.  Reads at most 5 MB of it.  Returns how many were put into `out`; 0 for a malformed
 * file. */
size_t weft_kernel_read_probes(int fd, struct weft_kernel_probe *out, size_t limit);

#endif
