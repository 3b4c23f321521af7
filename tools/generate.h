/* generate.h: where generated events go: one writer for each format.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TOOLS_GENERATE_H
#define WEFT_TOOLS_GENERATE_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/event.h"
#include "trace/trace.h"

#define GENERATE_STREAMS 64

/* Where generated promises are created, as far as a format can say it. */
extern const struct weft_site generate_sites[];
extern const unsigned generate_site_count;

/* A generator's way out.  Writers say what went wrong on stderr and exit with 2: nobody but tests and benchmarks runs them. */
struct sink {
	void (*put)(struct sink *sink, const struct weft_event *event);
	void (*close)(struct sink *sink);
};

/* `path` is a file that is overwritten, or "-" for standard output. */
struct sink *sink_mirage(const char *path);

/* `path` is a directory, which must not exist yet.  `kernel_events`: about so many events of the kernel's, at random, about the
 * OS threads that the events came from. */
struct sink *sink_native(const char *path, uint64_t kernel_events);

/* From 0 up to below `limit`; splitmix64. */
uint32_t random_below(uint64_t *state, uint32_t limit);

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#endif
