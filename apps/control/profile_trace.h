/* profile_trace.h: collects the samples of one process, which become a packet of the process's trace.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROFILE_TRACE_H
#define WEFT_CONTROL_PROFILE_TRACE_H

#include <stdint.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "look/look.h"
#include "trace/trace.h"

/* Time of a sample, on both clocks that a trace may use. */
struct profile_moment {
	int64_t monotonic_ns;
	uint64_t counter;
	uint32_t tid;
};

struct profile_sample {
	struct profile_moment moment;
	uint32_t stack;
};

/* Zero-initialised, it is empty.  The struct owns its texts. */
struct profile_trace {
	WEFT_VEC(struct weft_module) modules;
	WEFT_VEC(struct weft_site) sites;
	WEFT_VEC(size_t) site_modules; /* index into modules of each site, or SIZE_MAX */
	WEFT_VEC(struct weft_profile_stack) stacks;
	WEFT_VEC(struct profile_sample) samples;
	struct weft_idmap site_of, stack_of; /* maps from an address to a site, and from a caller and a site to a stack */
	struct weft_intern source_sites;     /* "file:line function" */
	WEFT_VEC(uint32_t) site_of_source;   /* by number in source_sites */
	uint64_t lost;                       /* number of samples that were not kept */
	uint8_t way;                         /* enum weft_profile_way */
	const char *why;                     /* why no more runs have samples; NULL: there is no reason */
};

/* Adds a sample whose stack was unwound.  `program` is the path of the process's executable.  Without memory, the sample is
 * counted as lost. */
void profile_trace_add(struct profile_trace *trace, const struct weft_look_modules *modules, const char *program,
    const struct weft_look_stack *stack, const struct profile_moment *moment);

/* Adds a sample whose frames have names; the innermost frame comes first. */
void profile_trace_add_sources(
    struct profile_trace *trace, const struct weft_look_source_frame *frames, size_t count, const struct profile_moment *moment);

/* Writes all samples into the folder of the trace, which is below `session` and may belong to another user.  If the samples
 * cannot be written, the trace stays as it is. */
void profile_trace_write(struct profile_trace *trace, const char *session, const char *folder, int64_t period_ns);

void profile_trace_free(struct profile_trace *trace);

#endif
