/* planted.h: random programs with one fault each (programs.c), and what weft explain says of them (planted.c).
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_PLANTED_H
#define TESTS_PLANTED_H

#include <stddef.h>
#include <stdint.h>

#define MS 1000000u

enum fault { HEALTHY, LOST_WAKEUP, CYCLE, FORGOTTEN, FAILURE, STALL, LEAK, STARVATION, FAULTS };

/* What explain must name. */
struct plan {
	enum fault fault;
	int64_t ids[6];
	size_t count;   /* of ids */
	size_t victims; /* of a stall */
};
extern struct plan plan;

#define PLANTED_BYTES (2u << 20)
extern uint64_t *buffer, *copy; /* so many bytes; NULL until run_program() was called */

/* Runs a program, recorded into the first `bytes` of buffer, and sets plan.  cut_ns: what is recorded by then, as a kill would
 * leave it, is in copy.
 *
 * The program runs in a process of its own: what it leaves behind, hanging as it is, ends with it. */
void run_program(enum fault fault, uint64_t seed, size_t bytes, uint64_t cut_ns);

#endif
