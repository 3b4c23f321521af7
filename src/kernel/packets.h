/* packets.h: writes kernel events into the trace of their process, one stream for each CPU.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_PACKETS_H
#define WEFT_KERNEL_PACKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/note.h"
#include "wire/kernel.h"

struct weft_kernel_packets_options {
	const char *session; /* its directory; the trace's folder is below it */
	enum weft_kernel_level level;
	const char *why;     /* reason why the level is not higher */
	uint64_t size_bytes; /* size of each CPU's ring, or limit of a growing trace; 0: no limit */
	bool grows;
	bool has_counter; /* times are ticks of the CPU's counter; otherwise ns of CLOCK_MONOTONIC */
	kernel_note_fn *note;
};

struct weft_kernel_packets;

/* Opens the trace in a folder of the session's directory; *pid is its process in the PID namespace of this command.
 *
 * Returns 1; 0 if the trace is not ready yet; a negative status, after a note, if the program runs in another namespace or has
 * another clock. */
int weft_kernel_packets_open(
    struct weft_kernel_packets **out, const char *folder, const struct weft_kernel_packets_options *options, uint32_t *pid);

/* Returns the owner of the trace's folder. */
uid_t weft_kernel_packets_owner(const struct weft_kernel_packets *file);

/* Returns the start of the trace in ticks. */
uint64_t weft_kernel_packets_start(const struct weft_kernel_packets *file);

/* Reserves space for an event at these times of both clocks, with a text and the names of two OS threads. */
void weft_kernel_packets_reserve(struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, uint64_t raw_ns);

/* Returns whether the packet still needs the name of the OS thread, and marks it as written. */
bool weft_kernel_packets_needs_name(struct weft_kernel_packets *file, uint32_t cpu, uint32_t tid);
/* Returns the same for a text, by its number. */
bool weft_kernel_packets_needs_text(struct weft_kernel_packets *file, uint32_t cpu, uint32_t number);
void weft_kernel_packets_forget_name(struct weft_kernel_packets *file, uint32_t tid);

/* Writes an event after the call that reserved space on that CPU; counts it as lost if that failed. */
void weft_kernel_packets_write(
    struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, const struct weft_wire_kernel *event);

void weft_kernel_packets_add_lost(struct weft_kernel_packets *file, uint32_t cpu, uint64_t events);

/* Starts the CPU's events again after a gap of about `events` unknown events; all events after this time are known. */
void weft_kernel_packets_restart(
    struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, uint64_t raw_ns, uint64_t events);

/* Makes the events visible to readers; bound_ns is the maximum distance of their times from the program's clock. */
void weft_kernel_packets_flush(struct weft_kernel_packets *file, uint32_t bound_ns);
void weft_kernel_packets_close(struct weft_kernel_packets *file);

#endif
