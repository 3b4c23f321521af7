/* perf.h: reads the kernel's perf events of a command's OS threads.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_PERF_H
#define WEFT_KERNEL_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "wire/kernel.h"

enum weft_kernel_perf_type {
	WEFT_PERF_ON,
	WEFT_PERF_OFF,
	WEFT_PERF_TAKEN,
	WEFT_PERF_WAKE,
	WEFT_PERF_FAULT,
	WEFT_PERF_NAME,
	WEFT_PERF_LOST,
	WEFT_PERF_SPENT,
	WEFT_PERF_GAP
};

struct weft_kernel_perf_event {
	uint64_t time_ns; /* time of the event on the requested clock */
	/* Number that depends on the type.  FAULT: address; LOST: number of records; GAP: approximate number of records, all
	 * older than time_ns; SPENT: ns until time_ns; OFF: first argument of the syscall. */
	uint64_t number;
	uint32_t pid, tid; /* thread of the event; for WAKE, pid is 0 */
	uint32_t other;    /* tid for TAKEN and WAKE: the thread that took the CPU, or that woke the other; 0: an interrupt */
	uint32_t cpu;
	uint8_t event_type; /* enum weft_kernel_perf_type */
	uint8_t why, call;  /* for OFF: reason and syscall; for SPENT: enum weft_kernel_spent */
	bool has_argument;  /* OFF */
	/* Name for NAME: of tid; for TAKEN: of the next thread, or empty; for SPENT: of the interrupt or runtime. */
	char name[16];
};

struct weft_kernel_perf;

struct weft_kernel_perf_options {
	enum weft_kernel_level max_level;
	clockid_t clock;
	/* Whether the kernel's rings keep the newest events of each CPU until weft_kernel_perf_drain() is called. */
	bool is_flight;
	uint64_t ring_bytes; /* maximum size of the rings in flight mode; 0: 4 MiB */
};

/* Opens events of the process `pid`, which will call exec, and of its descendants, up to the given level.  Writes to `why` the
 * reason for which the level is not higher, such as "perf_event_paranoid is 3".  Returns NULL without memory. */
struct weft_kernel_perf *weft_kernel_perf_open(
    pid_t pid, const struct weft_kernel_perf_options *options, char *why, size_t why_size);
enum weft_kernel_level weft_kernel_perf_level(const struct weft_kernel_perf *perf);

/* Waits until a ring is half full (in flight mode: until there is a name), a descriptor is readable (each may be -1), or
 * timeout_ms have passed (-1: no limit). */
void weft_kernel_perf_wait(const struct weft_kernel_perf *perf, int fd, int other_fd, int timeout_ms);

/* Calls `emit` with all events since the last call, CPU after CPU, in order of time for each CPU.  In flight mode these are the
 * events that are left, after a GAP event if some events were overwritten. */
typedef void weft_kernel_perf_fn(void *ctx, const struct weft_kernel_perf_event *seen);
void weft_kernel_perf_drain(struct weft_kernel_perf *perf, weft_kernel_perf_fn *emit, void *ctx);

/* Reads only the new names in flight mode, and leaves all other events in the rings. */
void weft_kernel_perf_drain_names(struct weft_kernel_perf *perf, weft_kernel_perf_fn *emit, void *ctx);
void weft_kernel_perf_close(struct weft_kernel_perf *perf);

#endif
