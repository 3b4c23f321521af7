/* export.h: traces in other formats.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_EXPORT_H
#define WEFT_EXPORT_EXPORT_H

#include "model/model.h"
#include "trace/trace.h"

/* X(NAME, "what, with its number before it"): what a format may be unable to say. */
#define WEFT_LOSSES(X)                                                                                                           \
	X(NOTE, "notes")                                                                                                         \
	X(PENDING, "entries of state dumps")                                                                                     \
	X(SITE, "places in the source")                                                                                          \
	X(STREAM, "events' OS threads")                                                                                          \
	X(SLEEP, "reasons of sleeps")                                                                                            \
	X(PAUSE, "reasons of pauses")                                                                                            \
	X(PAUSE_OPEN, "pauses whose begin or end is missing")                                                                    \
	X(OTHER, "events that the format does not have")                                                                         \
	X(KERNEL, "events of the kernel")                                                                                        \
	X(TEXT, "texts with a NUL in them, or too long")                                                                         \
	X(ARROW, "arrows, which have no length, or would have tied more than 200 slices together")                               \
	X(LINK, "links between promises")                                                                                        \
	X(WAIT, "waits for several promises at once")                                                                            \
	X(OVERLAP, "stretches that overlap another one on their line")                                                           \
	X(LONG_TEXT, "long texts, which were cut to 256 bytes so that the output is at most 32 times as big as the trace")

enum weft_loss {
#define WEFT_LOSS_ENUM(NAME, text) WEFT_LOSS_##NAME,
	WEFT_LOSSES(WEFT_LOSS_ENUM)
#undef WEFT_LOSS_ENUM
	    WEFT_LOSS_COUNT
};

/* "notes", to stand behind its number. */
const char *weft_loss_text(enum weft_loss loss);

/* How much of each was dropped. */
struct weft_losses {
	uint64_t counts[WEFT_LOSS_COUNT];
};

/* Receives the bytes of a file in order; a non-zero answer ends the writing with WEFT_EIO. */
typedef int weft_export_write_fn(void *ctx, const void *bytes, size_t size);

/* Writes the trace's events, from where it stands to its end, as a mirage-profile trace: packets that follow one another, none
 * unused.  The events of all OS threads become one stream.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success. */
int weft_export_mirage(
    struct weft_trace *trace, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses, struct weft_error *err);

/* Receives a whole file of the trace's directory; a non-zero answer ends the writing with WEFT_EIO. */
typedef int weft_export_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* Writes the trace's events, from where it stands to its end, as a native trace whose clock counts ns.  Its metadata comes last:
 * without it a directory is no trace.  The same bytes for the same trace.  Where the first event's time is below 0, times count
 * from it.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success. */
int weft_export_native(
    struct weft_trace *trace, weft_export_file_fn *file, void *file_ctx, struct weft_losses *losses, struct weft_error *err);

/* Which links become arrows in Perfetto. */
enum weft_flows {
	WEFT_FLOWS_WAKEUPS, /* who read, and who signalled */
	WEFT_FLOWS_NONE,
	WEFT_FLOWS_ALL /* also who resolved */
};

/* Where promises stand, as a layout has it. */
struct weft_perfetto_rows {
	const uint32_t *order; /* promises by row, then by start; of one row none overlap */
	size_t count;
	const uint32_t *row_of; /* by promise */
	uint32_t row_count;
};

struct weft_perfetto_told {
	uint64_t slices, arrows;
	uint32_t largest; /* how many slices one click reaches at most */
};

/* Writes a model for ui.perfetto.dev: a packet for each begin and end of a promise, of its running and of its waiting; a track
 * for each OS thread, and for each counter.  only: the bits of promises between which arrows are wanted, or NULL.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses and *told are filled on success.  Linear, but for the runs of OS threads, which are sorted. */
int weft_export_perfetto(const struct weft_trace *trace, const struct weft_model *model, const struct weft_perfetto_rows *rows,
    enum weft_flows flows, const uint64_t *only, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses,
    struct weft_perfetto_told *told, struct weft_error *err);

/* Writes a model in the trace event format of Chrome's old tracing page, JSON: promises, what ran on each OS thread, pauses and
 * counters.
 *
 * WEFT_EIO, WEFT_ENOMEM.  *losses is filled on success.  Linear. */
int weft_export_chrome(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err);

#endif
