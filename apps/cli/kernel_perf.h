/* kernel_perf.h: what the kernel says of a command's OS threads: its perf events.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_PERF_H
#define WEFT_CLI_KERNEL_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "wire/kernel.h"

enum perf_what { PERF_ON, PERF_OFF, PERF_TAKEN, PERF_WAKE, PERF_FAULT, PERF_NAME, PERF_LOST, PERF_SPENT, PERF_GAP };

struct perf_seen {
	uint64_t time_ns; /* of the clock that was asked for */
	uint64_t number;  /* FAULT: the address; LOST: how many records; GAP: likewise, about, and all of them are older than that
			     time;  SPENT: ns, until that time; OFF: the call's first argument */
	uint32_t pid, tid; /* whom it is about; WAKE: pid is 0 */
	uint32_t other;    /* TAKEN, WAKE: by whom; 0: an interrupt */
	uint32_t processor;
	uint8_t what;      /* enum perf_what */
	uint8_t why, call; /* OFF; SPENT: on what, enum weft_kernel_spent */
	bool has_argument; /* OFF */
	char name[16];     /* NAME: of tid; TAKEN: of who came, or empty; SPENT: of the interrupt, the runtime */
};

struct perf;

struct perf_options {
	enum weft_kernel_level most;
	clockid_t clock;
	bool is_flight;      /* the kernel's rings keep the newest of each processor until perf_drain() is called */
	uint64_t ring_bytes; /* of a flight's rings, at most; 0: 4 MiB */
};

/* Opens events of the process `pid`, which is still this command and will become another by exec, and of all that it will make;
 * at most those of that level.  Says in `why` why it is not the level above: "perf_event_paranoid is 3".  NULL: out of memory. */
struct perf *perf_open(pid_t pid, const struct perf_options *options, char *why, size_t why_size);
enum weft_kernel_level perf_level(const struct perf *perf);

/* Waits until a ring is half full, of a flight until there is a name, something comes from one of the descriptors, of which each
 * may be -1, or so much time is over; -1: for ever. */
void perf_wait(const struct perf *perf, int fd, int other_fd, int most_ms);

/* Calls `take` with all that was said since the last call, one processor after the other, each in time order; of a flight with
 * what is left of it, behind a GAP if that is not all. */
typedef void perf_fn(void *ctx, const struct perf_seen *seen);
void perf_drain(struct perf *perf, perf_fn *take, void *ctx);

/* The names that have come since the last call; of a flight alone, of which all else stays where it is. */
void perf_drain_names(struct perf *perf, perf_fn *take, void *ctx);
void perf_close(struct perf *perf);

#endif
