/* export.h: writes traces in other formats.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_EXPORT_H
#define WEFT_EXPORT_EXPORT_H

#include "model/model.h"
#include "trace/trace.h"

/* X(NAME, "description, printed after its number") lists a loss: something that a format may be unable to store. */
#define WEFT_LOSSES(X)                                                                                                           \
	X(NOTE, "notes")                                                                                                         \
	X(PENDING, "entries of state dumps")                                                                                     \
	X(SITE, "source locations")                                                                                              \
	X(STREAM, "threads of events")                                                                                           \
	X(SLEEP, "reasons of sleeps")                                                                                            \
	X(PAUSE, "reasons of pauses")                                                                                            \
	X(PAUSE_OPEN, "pauses without a start or an end")                                                                        \
	X(OTHER, "events that the format cannot store")                                                                          \
	X(KERNEL, "kernel records")                                                                                              \
	X(TEXT, "texts with a NUL, or too long")                                                                                 \
	X(ARROW, "arrows that have no length or would connect more than 200 slices")                                             \
	X(LINK, "links between promises")                                                                                        \
	X(UNENDED, "promises that have not ended")                                                                               \
	X(CUT_LINK, "links and labels beyond 32 of a promise")                                                                   \
	X(WAIT, "waits for several promises at once")                                                                            \
	X(OVERLAP, "intervals that overlap another interval on their track")                                                     \
	X(LONG_TEXT, "long texts, cut to 256 bytes so that the output is at most 32 times as large as the trace")

enum weft_loss {
#define WEFT_LOSS_ENUM(NAME, text) WEFT_LOSS_##NAME,
	WEFT_LOSSES(WEFT_LOSS_ENUM)
#undef WEFT_LOSS_ENUM
	    WEFT_LOSS_COUNT
};

/* Returns the description of a loss, such as "notes", which is printed after the number of losses. */
const char *weft_loss_text(enum weft_loss loss);

/* Numbers of dropped things. */
struct weft_losses {
	uint64_t counts[WEFT_LOSS_COUNT];
};

/* Function that receives the bytes of a file in order.  A nonzero result stops the export with WEFT_EIO. */
typedef int weft_export_write_fn(void *ctx, const void *bytes, size_t size);

/* Writes the events from the trace's position to its end as a mirage-profile trace of consecutive packets, all of which are
 * used.  The events of all threads become one stream.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM. *losses is filled on success. */
int weft_export_mirage(
    struct weft_trace *trace, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses, struct weft_error *err);

/* Function that receives a complete file of the trace's directory.  A nonzero result stops the export with WEFT_EIO. */
typedef int weft_export_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* Writes the events from the trace's position to its end as a native trace whose clock counts ns.  The metadata are written
 * last, because a directory without metadata is no trace.  Equal traces give equal output.  If the time of the first event is
 * negative, all times become relative to this event.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM. *losses is filled on success. */
int weft_export_native(
    struct weft_trace *trace, weft_export_file_fn *file, void *file_ctx, struct weft_losses *losses, struct weft_error *err);

/* Types of links that become arrows in Perfetto. */
enum weft_flows {
	WEFT_FLOWS_WAKEUPS, /* reads and signals */
	WEFT_FLOWS_NONE,
	WEFT_FLOWS_ALL /* also resolves */
};

/* Rows of promises in a layout, for Perfetto. */
struct weft_perfetto_rows {
	const uint32_t *order; /* promises sorted by row, then by start; promises of one row do not overlap in time */
	size_t count;
	const uint32_t *row_of; /* by promise */
	uint32_t row_count;
};

struct weft_perfetto_stats {
	uint64_t slices, arrows;
	uint32_t largest; /* maximum number of slices that arrows connect with each other */
};

/* Writes a model for ui.perfetto.dev, with a packet for each start and end of a promise, of its runs and of its waits, and with
 * a track for each thread and each counter.  `only` has a bit for each promise that may have arrows; NULL means all promises.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM. *losses and *stats are filled on success.  The time is linear, except for sorting the runs
 * of threads. */
int weft_export_perfetto(const struct weft_trace *trace, const struct weft_model *model, const struct weft_perfetto_rows *rows,
    enum weft_flows flows, const uint64_t *only, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses,
    struct weft_perfetto_stats *stats, struct weft_error *err);

/* Writes a model as JSON in the trace event format of Chrome's old tracing page: promises, runs of each thread, pauses and
 * counters.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM. *losses is filled on success.  Linear. */
int weft_export_chrome(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err);

/* Writes the stack samples of a model, with the runs of promises as markers, as JSON for profiler.firefox.com.
 *
 * Fails with WEFT_EIO or WEFT_ENOMEM. *losses is filled on success.  Linear in the number of threads with samples times the
 * number of stacks and runs. */
int weft_export_firefox(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err);

#endif
