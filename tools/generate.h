/* generate.h: writers for generated events, one for each format.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TOOLS_GENERATE_H
#define WEFT_TOOLS_GENERATE_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/event.h"
#include "trace/trace.h"

#define GENERATE_STREAMS 64

/* Sites of generated promises, for formats that have sites. */
extern const struct weft_site generate_sites[];
extern const unsigned generate_site_count;

/* The output of a generator.  Writers report errors on stderr and exit with 2, since only tests and benchmarks run them. */
struct sink {
	void (*put)(struct sink *sink, const struct weft_event *event);
	void (*close)(struct sink *sink);
};

/* Writes to a file, which is overwritten; "-": standard output. */
struct sink *sink_mirage(const char *path);

/* Writes into a directory, which must not exist yet.  Adds about `kernel_events` random kernel events about the OS threads of the
 * events. */
struct sink *sink_native(const char *path, uint64_t kernel_events);

/* Returns a number from 0 up to below `limit`, by splitmix64. */
uint32_t random_below(uint64_t *state, uint32_t limit);

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#endif
