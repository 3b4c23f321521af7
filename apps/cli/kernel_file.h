/* kernel_file.h: what the kernel said of a process, written into that process's trace: a stream for each processor.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_FILE_H
#define WEFT_CLI_KERNEL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/kernel.h"

struct kernel_file_options {
	enum weft_kernel_level level;
	const char *why;     /* it is not more */
	uint64_t size_bytes; /* of each processor's ring; or of all that grows, 0: no limit */
	bool grows;
	bool has_counter; /* times are the processor's counter, else CLOCK_MONOTONIC, in ns */
};

struct kernel_file;

/* Opens the trace in that folder; *pid is whose it is, as this command's namespace numbers processes.
 *
 * Returns 1, 0: it is not ready yet; negative: nothing can be written there, since the program runs elsewhere or its clock is
 * another one, which is told. */
int kernel_file_open(struct kernel_file **out, const char *folder, const struct kernel_file_options *options, uint32_t *pid);

/* When its trace began, in ticks. */
uint64_t kernel_file_begun(const struct kernel_file *file);

/* Makes room for an event, a text and the names of two OS threads, which happened at these times of both clocks. */
void kernel_file_begin(struct kernel_file *file, uint32_t processor, uint64_t ticks, uint64_t raw_ns);

/* Whether this packet has not told yet what the OS thread is called; from then on it has. */
bool kernel_file_needs_name(struct kernel_file *file, uint32_t processor, uint32_t tid);
/* Likewise a text, by its number. */
bool kernel_file_needs_text(struct kernel_file *file, uint32_t processor, uint32_t number);
void kernel_file_forget_name(struct kernel_file *file, uint32_t tid);

/* After kernel_file_begin() of that processor; what finds no room is counted.  */
void kernel_file_write(struct kernel_file *file, uint32_t processor, uint64_t ticks, const struct weft_wire_kernel *event);

void kernel_file_lost(struct kernel_file *file, uint32_t processor, uint64_t events);

/* Forgets what was written of that processor: it is not known what happened between that and this time, about so many events.
 * From this time on all is. */
void kernel_file_restart(struct kernel_file *file, uint32_t processor, uint64_t ticks, uint64_t raw_ns, uint64_t events);

/* Lets readers see what was written, and how far its times may be from the program's clock. */
void kernel_file_flush(struct kernel_file *file, uint32_t bound_ns);
void kernel_file_close(struct kernel_file *file);

#endif
