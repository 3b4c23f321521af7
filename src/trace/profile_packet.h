/* profile_packet.h: writes the samples of a trace as a packet of class WEFT_CLASS_PROFILE (wire/profile.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PROFILE_PACKET_H
#define WEFT_TRACE_PROFILE_PACKET_H

#include "trace/trace.h"

/* Returns a packet with all samples of `info`, its header included, which the caller frees; of `info` only the samples, sites and
 * modules are read.  A site with a name is written as a position in the source, another one as a place in its module.  Samples of
 * a trace are in the order of time.  NULL: out of memory, or more than a packet can hold.  Linear. */
unsigned char *weft_profile_packet(const struct weft_trace_info *info, const uint8_t uuid[16], uint64_t clock_hz, size_t *size);

#endif
