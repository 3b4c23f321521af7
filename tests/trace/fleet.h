/* fleet.h: hosts with known clocks that send each other bytes, and the traces that they record.
 *
 * All values are chosen by given bytes and, when these are used up, by a seed. SPDX-License-Identifier: ISC */
#ifndef WEFT_TESTS_TRACE_FLEET_H
#define WEFT_TESTS_TRACE_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/record.h>

enum { FLEET_MOST = 20, FLEET_TRUTHS = 20, FLEET_NAME = 16 };

struct fleet_choices {
	const uint8_t *bytes;
	size_t left;
	uint64_t seed;
};

/* The fault that the recording of the last host has. */
enum fleet_fault {
	FLEET_SOUND,
	FLEET_NAT,        /* the peers of the host know it by another address */
	FLEET_LATE,       /* the host records a send 2 ms late */
	FLEET_ONE_WAY,    /* the host sends nothing */
	FLEET_JUMPS,      /* the host records more bytes as read than were written */
	FLEET_SAME_CLOCK, /* no fault, and all clocks show the same time */
	FLEET_COUNTERS,   /* no fault, and all clocks are CPU counters, whose rates change slowly */
	FLEET_ONE_JUMPS   /* on one of its two connections, the host records more bytes as read than were written */
};

struct fleet;

/* Returns hosts, each with `truths` promises "true N" that are created at the true time N, or NULL if memory runs out.  To be
 * freed by fleet_destroy(). */
struct fleet *fleet_create(struct fleet_choices *choices, size_t hosts, size_t rounds, size_t truths, enum fleet_fault fault);
void fleet_destroy(struct fleet *fleet);

/* Records the events of one host into the place that the options name; returns whether the recording could start.  FLEET_TOGETHER
 * records all hosts as one process with the clock of the first host; the fleet cannot be used again after that. */
#define FLEET_TOGETHER SIZE_MAX
bool fleet_record(struct fleet *fleet, size_t host, const struct weft_record_options *place);

/* Clears one packet of events of the trace in the buffer, whose packets have FLEET_PACKET bytes. */
enum { FLEET_PACKET = 4096 };
void fleet_lose(void *buffer, size_t bytes, uint64_t which);

/* Returns the time that a host's clock shows at a true time, in ns. */
int64_t fleet_shows(const struct fleet *fleet, size_t host, int64_t true_ns);

#endif
