/* planted.h: random programs with one fault each (programs.c), and the check of their findings (planted.c).
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_PLANTED_H
#define TESTS_PLANTED_H

#include <stddef.h>
#include <stdint.h>

#define MS 1000000u

enum fault { HEALTHY, LOST_WAKEUP, CYCLE, FORGOTTEN, FAILURE, STALL, LEAK, STARVATION, FAULTS };

/* The planted fault, and the promises that weft explain must name for it. */
struct plan {
	enum fault fault;
	int64_t ids[6];
	size_t count;   /* number of ids */
	size_t victims; /* number of promises that a planted stall delays */
};
extern struct plan plan;

#define PLANTED_BYTES (2u << 20)
extern uint64_t *buffer, *copy; /* PLANTED_BYTES each; NULL until run_program() was called */

/* Runs a program, recorded into the first `bytes` of buffer, and sets plan.  If cut_ns is not 0, `copy` gets the content of the
 * buffer at this time, as if the program had been killed then.
 *
 * The program runs in a child process: its pending promises end with the process. */
void run_program(enum fault fault, uint64_t seed, size_t bytes, uint64_t cut_ns);

#endif
