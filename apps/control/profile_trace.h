/* profile_trace.h: the samples of one process, as they become a packet of its trace.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CONTROL_PROFILE_TRACE_H
#define WEFT_CONTROL_PROFILE_TRACE_H

#include <stdint.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "look/look.h"
#include "trace/trace.h"

/* When a thread was sampled, by both clocks that a trace may have. */
struct profile_moment {
	int64_t monotonic_ns;
	uint64_t counter;
	uint32_t tid;
};

struct profile_sample {
	struct profile_moment moment;
	uint32_t stack;
};

/* Zero-initialised, it is empty.  Its texts are its own. */
struct profile_trace {
	WEFT_VEC(struct weft_module) modules;
	WEFT_VEC(struct weft_site) sites;
	WEFT_VEC(size_t) site_modules; /* by site: an index into modules, or SIZE_MAX */
	WEFT_VEC(struct weft_profile_stack) stacks;
	WEFT_VEC(struct profile_sample) samples;
	struct weft_idmap site_of, stack_of; /* by address; by caller and site */
	struct weft_intern source_sites;     /* "file:line function" */
	WEFT_VEC(uint32_t) site_of_source;   /* by number in source_sites */
	uint64_t lost;                       /* samples that were not kept */
};

/* Adds a sample whose stack was unwound.  `program`: path of the process' executable.  Without memory, it is counted as lost. */
void profile_trace_add(struct profile_trace *trace, const struct weft_look_modules *modules, const char *program,
    const struct weft_look_stack *stack, const struct profile_moment *moment);

/* Adds a sample of frames that have names, innermost first. */
void profile_trace_add_sources(
    struct profile_trace *trace, const struct weft_look_source_frame *frames, size_t count, const struct profile_moment *moment);

/* Writes all samples into the folder of the trace, which is below `session` and may belong to another user.  A trace that cannot
 * be written stays as it is. */
void profile_trace_write(struct profile_trace *trace, const char *session, const char *folder, int64_t period_ns);

void profile_trace_free(struct profile_trace *trace);

#endif
