/* steal.h: steal time: time in which a QEMU thread that runs a virtual CPU of a guest was runnable, but got no CPU of the host.
 *
 * It needs a trace of the guest, a trace of QEMU with the host kernel's records of its threads, and an offset between both
 * clocks. The traces do not say which QEMU process runs which guest.  A process is taken as the guest's if it is the only one
 * that fits: the guest did nothing while its virtual CPUs were off CPU.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_STEAL_H
#define WEFT_ANALYSIS_INDEX_STEAL_H

#include "model/kernel.h"

struct weft_steal {
	uint16_t stream;                      /* the QEMU thread with the most steal time */
	int64_t low_ns, high_ns;              /* bounds of the steal time, from the error bounds of both clocks */
	const struct weft_off_cpu *preempted; /* longest preemption of that thread; NULL: none */
};

/* Measures the steal time of a part's machine in the interval; false: unknown, or none.  Linear in threads and in the events of
 * 10 s around the interval, logarithmic in the rest. */
#ifndef __wasm__
bool weft_steal(const struct weft_model *model, uint32_t part, int64_t from_ns, int64_t to_ns, struct weft_steal *out);
#else /* WebAssembly pages are kept small, and have no kernel records */
static inline bool weft_steal(
    const struct weft_model *model, uint32_t part, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	(void)model, (void)part, (void)from_ns, (void)to_ns, (void)out;
	return false;
}
#endif

#endif
