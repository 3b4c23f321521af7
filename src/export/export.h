/* export.h: writes traces in other formats.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_EXPORT_H
#define WEFT_EXPORT_EXPORT_H

#include "model/model.h"
#include "trace/trace.h"

/* X(NAME, "description, printed after its number"): things that a format may be unable to store. */
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
	X(WAIT, "waits for several promises at once")                                                                            \
	X(OVERLAP, "intervals that overlap another interval on their track")                                                     \
	X(LONG_TEXT, "long texts, cut to 256 bytes so that the output is at most 32 times as large as the trace")

enum weft_loss {
#define WEFT_LOSS_ENUM(NAME, text) WEFT_LOSS_##NAME,
	WEFT_LOSSES(WEFT_LOSS_ENUM)
#undef WEFT_LOSS_ENUM
	    WEFT_LOSS_COUNT
};

/* Returns the description of a loss, such as "notes", to be printed after its number. */
const char *weft_loss_text(enum weft_loss loss);

/* Numbers of dropped things. */
struct weft_losses {
	uint64_t counts[WEFT_LOSS_COUNT];
};

/* Receives the bytes of a file in order.  A non-zero result stops the export with WEFT_EIO. */
typedef int weft_export_write_fn(void *ctx, const void *bytes, size_t size);

/* Writes the events from the trace's position to its end as a mirage-profile trace: consecutive packets, all used.  The events of
 * all threads become one stream.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success. */
int weft_export_mirage(
    struct weft_trace *trace, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses, struct weft_error *err);

/* Receives a complete file of the trace's directory.  A non-zero result stops the export with WEFT_EIO. */
typedef int weft_export_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* Writes the events from the trace's position to its end as a native trace with a clock in ns.  The metadata comes last:
 * without it a directory is not a trace.  The output is the same for the same trace.  If the first event's time is negative,
 * times are relative to it.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success. */
int weft_export_native(
    struct weft_trace *trace, weft_export_file_fn *file, void *file_ctx, struct weft_losses *losses, struct weft_error *err);

/* The links that become arrows in Perfetto. */
enum weft_flows {
	WEFT_FLOWS_WAKEUPS, /* reads and signals */
	WEFT_FLOWS_NONE,
	WEFT_FLOWS_ALL /* also resolves */
};

/* The rows of promises in a layout. */
struct weft_perfetto_rows {
	const uint32_t *order; /* promises sorted by row, then by start; promises of one row do not overlap */
	size_t count;
	const uint32_t *row_of; /* by promise */
	uint32_t row_count;
};

struct weft_perfetto_stats {
	uint64_t slices, arrows;
	uint32_t largest; /* maximum number of slices that arrows connect */
};

/* Writes a model for ui.perfetto.dev: a packet for each start and end of a promise, of its runs and of its waits; a track for
 * each thread and each counter. only: a bit for each promise that may have arrows; NULL: all.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses and *stats are filled on success.  Linear, except for sorting the runs of threads. */
int weft_export_perfetto(const struct weft_trace *trace, const struct weft_model *model, const struct weft_perfetto_rows *rows,
    enum weft_flows flows, const uint64_t *only, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses,
    struct weft_perfetto_stats *stats, struct weft_error *err);

/* Writes a model as JSON in the trace event format of Chrome's old tracing page: promises, runs of each thread, pauses and
 * counters.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success.  Linear. */
int weft_export_chrome(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err);

#endif
