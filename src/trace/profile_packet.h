/* profile_packet.h: writes the samples of a trace as a packet of class WEFT_CLASS_PROFILE (wire/profile.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PROFILE_PACKET_H
#define WEFT_TRACE_PROFILE_PACKET_H

#include "trace/trace.h"

/* Returns a packet with all samples of `info` and a header, which the caller frees; the function reads only the samples, sites
 * and modules of `info`.  A site with a name is written as a position in the source code, another site as a place in its
 * module.  The samples of a trace are in order of time.  Returns NULL when out of memory, or if there are more samples than a
 * packet can hold.  Linear. */
unsigned char *weft_profile_packet(const struct weft_trace_info *info, const uint8_t uuid[16], uint64_t clock_hz, size_t *size);

#endif
