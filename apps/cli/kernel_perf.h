/* kernel_perf.h: what the kernel says of a command's OS threads: its perf events.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_PERF_H
#define WEFT_CLI_KERNEL_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "wire/kernel.h"

enum perf_what { PERF_ON, PERF_OFF, PERF_TAKEN, PERF_WAKE, PERF_FAULT, PERF_NAME, PERF_LOST, PERF_SPENT };

struct perf_seen {
	uint64_t time_ns; /* of the clock that was asked for */
	uint64_t
	    number; /* FAULT: the address; LOST: how many records; SPENT: ns, until that time; OFF: the call's first argument */
	uint32_t pid, tid; /* whom it is about; WAKE: pid is 0 */
	uint32_t other;    /* TAKEN, WAKE: by whom; 0: an interrupt */
	uint32_t processor;
	uint8_t what;      /* enum perf_what */
	uint8_t why, call; /* OFF; SPENT: on what, enum weft_kernel_spent */
	bool has_argument; /* OFF */
	char name[16];     /* NAME: of tid; TAKEN: of who came, or empty; SPENT: of the interrupt, the runtime */
};

struct perf;

/* Opens events of the process `pid`, which is still this command and will become another by exec, and of all that it will make;
 * at most those of that level.  Says in `why` why it is not the level above: "perf_event_paranoid is 3".  NULL: out of memory. */
struct perf *perf_open(pid_t pid, enum weft_kernel_level most, clockid_t clock, char *why, size_t why_size);
enum weft_kernel_level perf_level(const struct perf *perf);

/* Waits until a ring is half full, something comes from `fd`, or so much time is over. */
void perf_wait(const struct perf *perf, int fd, int most_ms);

/* Calls `take` with all that was said since the last call, one processor after the other, each in time order. */
typedef void perf_fn(void *ctx, const struct perf_seen *seen);
void perf_drain(struct perf *perf, perf_fn *take, void *ctx);
void perf_close(struct perf *perf);

#endif
