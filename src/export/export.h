/* export.h: traces in other formats.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_EXPORT_H
#define WEFT_EXPORT_EXPORT_H

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

#endif
