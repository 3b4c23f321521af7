/* fleet.h: hosts with known clocks that send each other bytes, and the traces that they record.
 *
 * All values come from choices: of a seed, or of given bytes until these are used up. SPDX-License-Identifier: ISC */
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

/* Fault in the recording of the last host. */
enum fleet_fault {
	FLEET_SOUND,
	FLEET_NAT,        /* its peers know it by another address */
	FLEET_LATE,       /* it records a send 2 ms late */
	FLEET_ONE_WAY,    /* it sends nothing */
	FLEET_JUMPS,      /* it records more bytes as read than were written */
	FLEET_SAME_CLOCK, /* no fault: all clocks are right */
	FLEET_COUNTERS,   /* no fault: all clocks are counters, whose rates change slowly */
	FLEET_ONE_JUMPS   /* on one of two connections it records more bytes as read than were written */
};

struct fleet;

/* Creates hosts that each record `truths` promises "true N", created at the true time N.  Returns NULL if memory runs out.  Freed
 * by fleet_destroy(). */
struct fleet *fleet_create(struct fleet_choices *choices, size_t hosts, size_t rounds, size_t truths, enum fleet_fault fault);
void fleet_destroy(struct fleet *fleet);

/* Records the events of a host, or of all hosts as one process by the clock of the first one (the fleet cannot be used again),
 * into the place that the options name.  Returns whether recording could start. */
#define FLEET_TOGETHER SIZE_MAX
bool fleet_record(struct fleet *fleet, size_t host, const struct weft_record_options *place);

/* Clears one packet of events of a trace in a buffer, of packets of FLEET_PACKET bytes. */
enum { FLEET_PACKET = 4096 };
void fleet_lose(void *buffer, size_t bytes, uint64_t which);

/* Returns the time that a host's clock shows at a true time, in ns. */
int64_t fleet_shows(const struct fleet *fleet, size_t host, int64_t true_ns);

#endif
