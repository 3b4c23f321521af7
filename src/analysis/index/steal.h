/* steal.h: measures steal time: the time in which a QEMU thread that runs a virtual CPU of a guest was runnable, but got no CPU
 * of the host.
 *
 * The measurement needs a trace of the guest, a trace of QEMU with the host kernel's records of its threads, and the offset
 * between both clocks. The traces do not say which QEMU process runs which guest.  A QEMU process counts as the guest's process
 * if it is the only one that fits: the guest did nothing while the virtual CPUs of that process were off CPU.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_STEAL_H
#define WEFT_ANALYSIS_INDEX_STEAL_H

#include "model/kernel.h"

struct weft_steal {
	uint16_t stream;                      /* stream of the QEMU thread with the most steal time */
	int64_t low_ns, high_ns;              /* bounds of the steal time, which follow from the error bounds of both clocks */
	const struct weft_off_cpu *preempted; /* longest preemption of that thread; NULL if there was none */
};

/* Measures the steal time of the machine of a part within the interval; returns false if it is unknown or if there is none.
 * Takes time linear in the number of threads and of events in a window of 10 s around the interval, and logarithmic in the
 * rest. */
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
