/* abi.h: reports programs that were built with another record_inline.h (private to src/record).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_ABI_H
#define WEFT_RECORD_ABI_H

#include "record/host.h"

/* Start or end a recording; while it lasts, programs with an older ABI report that they are not recorded. */
#if WEFT__ABI > 0
void weft__abi_begin(void);
void weft__abi_end(void);
#else
static inline void weft__abi_begin(void)
{
}
static inline void weft__abi_end(void)
{
}
#endif

#endif
