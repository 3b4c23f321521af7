/* kernel_probe.h: where a runtime says that it collects garbage: static probes, which its authors left in its machine code
 * (SystemTap's notes).  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_PROBE_H
#define WEFT_CLI_KERNEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_probe {
	const char *runtime;        /* "Python" */
	uint64_t offset, semaphore; /* in the file; semaphore: a count of those who look, or 0 */
	bool is_end;
};

/* Those of an ELF file; how many of them were put into `out`.  Whatever is wrong with the file, it has none. */
size_t kernel_probes(const char *path, struct kernel_probe *out, size_t most);

#endif
