/* packets.h: writes kernel events into the traces of their processes, with one stream for each CPU.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_PACKETS_H
#define WEFT_KERNEL_PACKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/note.h"
#include "wire/kernel.h"

struct weft_kernel_packets_options {
	const char *session; /* directory of the session, below which the trace's folder is */
	enum weft_kernel_level level;
	const char *why;     /* reason for which the recording level is not higher */
	uint64_t size_bytes; /* size of each CPU's ring, or size limit of a growing trace; 0: no limit */
	bool grows;
	bool has_counter; /* whether times are ticks of the CPU's counter; otherwise they are ns of CLOCK_MONOTONIC */
	kernel_note_fn *note;
};

struct weft_kernel_packets;

/* Opens the trace in a folder of the session's directory; *pid gets the id of the trace's process in the PID namespace of this
 * command.
 *
 * Returns 1; 0 if the trace is not ready yet; or, after a note to the user, a negative status if the program runs in another
 * namespace or has another clock. */
int weft_kernel_packets_open(
    struct weft_kernel_packets **out, const char *folder, const struct weft_kernel_packets_options *options, uint32_t *pid);

/* Returns the owner of the trace's folder. */
uid_t weft_kernel_packets_owner(const struct weft_kernel_packets *file);

/* Returns the start of the trace in ticks. */
uint64_t weft_kernel_packets_start(const struct weft_kernel_packets *file);

/* Reserves space for an event at a time given on both clocks, with a text and the names of two OS threads. */
void weft_kernel_packets_reserve(struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, uint64_t raw_ns);

/* Returns whether the packet still needs the name of the OS thread, and marks the name as written. */
bool weft_kernel_packets_needs_name(struct weft_kernel_packets *file, uint32_t cpu, uint32_t tid);
/* Returns whether the packet still needs the text with this number, and marks the text as written. */
bool weft_kernel_packets_needs_text(struct weft_kernel_packets *file, uint32_t cpu, uint32_t number);
void weft_kernel_packets_forget_name(struct weft_kernel_packets *file, uint32_t tid);

/* Writes an event after weft_kernel_packets_reserve() for that CPU; if that call failed, the event counts as lost. */
void weft_kernel_packets_write(
    struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, const struct weft_wire_kernel *event);

void weft_kernel_packets_add_lost(struct weft_kernel_packets *file, uint32_t cpu, uint64_t events);

/* Starts the CPU's events again after a gap of about `events` unknown events; from this time on, all events are known. */
void weft_kernel_packets_restart(
    struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, uint64_t raw_ns, uint64_t events);

/* Makes the events visible to readers; bound_ns is the error bound of their times on the program's clock. */
void weft_kernel_packets_flush(struct weft_kernel_packets *file, uint32_t bound_ns);
void weft_kernel_packets_close(struct weft_kernel_packets *file);

#endif
