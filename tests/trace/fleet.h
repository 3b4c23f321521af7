/* fleet.h: hosts whose clocks are known, since they were made, and that send each other bytes: what each records of it.
 *
 * Everything follows from choices: of a seed, or of given bytes as long as there are any.  SPDX-License-Identifier: ISC */
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

/* What is wrong with what the last host records. */
enum fleet_fault {
	FLEET_SOUND,
	FLEET_NAT,        /* its peers know another address of its */
	FLEET_LATE,       /* it says that it sent 2 ms after it did */
	FLEET_ONE_WAY,    /* it sends nothing */
	FLEET_JUMPS,      /* it says that it read more than was written */
	FLEET_SAME_CLOCK, /* none: all clocks are right */
	FLEET_COUNTERS,   /* none: all clocks are counters, whose rates change slowly */
	FLEET_ONE_JUMPS   /* by one of two connections it says that it read more than was written */
};

struct fleet;

/* Each host tells of `truths` promises "true N", made at N of the true time.  NULL: out of memory.  To be freed by
 * fleet_destroy(). */
struct fleet *fleet_create(struct fleet_choices *choices, size_t hosts, size_t rounds, size_t truths, enum fleet_fault fault);
void fleet_destroy(struct fleet *fleet);

/* Records what a host did, or what all did, as one process by the first one's clock (after which the fleet is of no other use),
 * into the place that the options name; whether that could begin. */
#define FLEET_TOGETHER SIZE_MAX
bool fleet_record(struct fleet *fleet, size_t host, const struct weft_record_options *place);

/* Loses one packet of events of what was recorded into a buffer, by packets of FLEET_PACKET bytes. */
enum { FLEET_PACKET = 4096 };
void fleet_lose(void *buffer, size_t bytes, uint64_t which);

/* What a host's clock shows at a true time, in ns. */
int64_t fleet_shows(const struct fleet *fleet, size_t host, int64_t true_ns);

#endif
