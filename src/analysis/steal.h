/* steal.h: what the host of a guest took from it: the OS thread of QEMU that is the guest's processor wanted one of the host's,
 * and had none (steal time).
 *
 * It takes a trace of the guest, one of QEMU with what the host's kernel said of its OS threads, and a tie of both clocks.  The
 * traces do not say whose guest a machine is: QEMU is it where it is the only one whose guest did nothing while its processors
 * had none.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_STEAL_H
#define WEFT_ANALYSIS_STEAL_H

#include "model/kernel.h"

struct weft_steal {
	uint16_t stream;                  /* the OS thread of QEMU from which most was taken */
	int64_t low_ns, high_ns;          /* for how long, at least and at most: by what is known of both clocks */
	const struct weft_off *preempted; /* when others had its processor for longest; NULL: never */
};

/* What was taken in that time from the machine of a part; false: nobody knows, or nothing.  Linear in OS threads, logarithmic in
 * the rest, and then linear in what is told of the ten seconds around. */
#ifndef __wasm__
bool weft_steal(const struct weft_model *model, uint32_t part, int64_t from_ns, int64_t to_ns, struct weft_steal *out);
#else /* a page is to be small, and hosts of guests are looked at where there is a kernel */
static inline bool weft_steal(
    const struct weft_model *model, uint32_t part, int64_t from_ns, int64_t to_ns, struct weft_steal *out)
{
	(void)model, (void)part, (void)from_ns, (void)to_ns, (void)out;
	return false;
}
#endif

#endif
