/* samples.h: samples the stacks of a command's OS threads at a fixed rate by perf events.  Only on x86-64.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_SAMPLES_H
#define WEFT_KERNEL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/profile.h"

enum {
	WEFT_KERNEL_REGISTERS = 17,       /* in DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip */
	WEFT_KERNEL_STACK_BYTES = 8 << 10 /* maximum size of the copied part of a stack */
};

struct weft_kernel_sample {
	uint32_t pid, tid;
	bool is_mapping;  /* whether this is no sample: the process has mapped code into its memory */
	uint64_t time_ns; /* on CLOCK_MONOTONIC_RAW */
	uint64_t registers[WEFT_KERNEL_REGISTERS];
	const unsigned char *bytes; /* copy of the stack from rsp on, valid during the call */
	size_t size;
};

struct weft_kernel_samples;

/* Samples the process `pid`, which will call exec, and all its descendants, `rate_hz` times in each second of CPU time.  Where
 * the user may, all programs on each CPU are sampled, because an event of one program has to be set and cancelled at each
 * switch.  Writes to `why` what the user may not sample, or why the function returns NULL; an empty text if there is nothing. */
struct weft_kernel_samples *weft_kernel_samples_open(pid_t pid, uint32_t rate_hz, char *why, size_t why_size);

/* Returns whether the samples show the time in the kernel, in WEFT_PROFILE_WAY_ALL, or only the time in the program. */
enum weft_profile_way weft_kernel_samples_way(const struct weft_kernel_samples *samples);

/* Calls `emit` with all samples since the last call, CPU after CPU, in order of time for each CPU.  Returns the number of samples
 * that the kernel could not keep. */
typedef void weft_kernel_samples_fn(void *ctx, const struct weft_kernel_sample *sample);
uint64_t weft_kernel_samples_drain(struct weft_kernel_samples *samples, weft_kernel_samples_fn *emit, void *ctx);

void weft_kernel_samples_close(struct weft_kernel_samples *samples); /* accepts NULL */

#endif
