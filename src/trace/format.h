/* format.h: declares the interface that a trace format implements (private to src/trace).
 *
 * A new format is one file that defines a struct weft_trace_format, and a line in the list in trace.c.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_FORMAT_H
#define WEFT_TRACE_FORMAT_H

#include "trace/kernel.h"
#include "trace/position.h"
#include "trace/source.h"
#include "trace/trace.h"

/* An open trace, as its format uses it. */
struct weft_trace {
	const struct weft_trace_format *format;
	struct weft_source source;
	/* properties of the trace; the format sets all except .skipped and .skipped_count, which weft__trace_skip() sets */
	struct weft_trace_info info;
	void *state; /* owned by the format */

	struct weft_skipped *skipped;
	/* The parts of .skipped_count and .unplaced_count that open() noted, which a rewind restores. */
	size_t skipped_at_open, unplaced_at_open;
	struct weft_site_texts *texts; /* texts of sites that were named after the trace was opened */
	int64_t pair_ns, pair_wall_ns; /* one moment by the trace's clock and by the wall clock; both are 0 if it is unknown */
	/* Identity of the clock: traces with equal `boot` and `counter` count ticks of one clock, with the rate clock_hz; empty
	 * if it is unknown. */
	struct weft_str boot, counter;
	uint64_t clock_hz;
	bool has_counter_clock;              /* true if the trace's clock is a CPU counter (clock_drift.h) */
	bool is_end_reached;                 /* true if the end was reached once, so that notes are not added a second time */
	bool is_resumed;                     /* true if the trace starts at source.from, and no events after that are missing */
	const struct weft_event *checkpoint; /* events that are returned once before the first event */
	size_t checkpoint_count;
	bool has_given_checkpoint;
	bool connections_only; /* true if the reader only needs events of connections, so that next() may omit others */
};

/* Records that the process was alive at the given UTC time. */
void weft__trace_set_lived_until(struct weft_trace *trace, int64_t wall_ns);

/* How well the first bytes of a source match a format.  The format with the best match opens the source. */
enum weft_confidence {
	WEFT_CONFIDENCE_NONE,   /* another format */
	WEFT_CONFIDENCE_LIKELY, /* the bytes have the structure of the format, but no unique mark */
	WEFT_CONFIDENCE_SURE    /* the bytes have a unique mark: a magic number, a UUID or a name */
};

struct weft_trace_format {
	const char *name;

	/* Examines the names of the source's files and their first 512 bytes; further bytes may not be available yet. */
	enum weft_confidence (*probe)(const struct weft_source *source);

	/* Fills trace->state and trace->info.  Opens the trace; on failure it frees everything, and close() is not called. */
	int (*open)(struct weft_trace *trace, struct weft_error *err);

	/* Implements weft_trace_next(). */
	int (*next)(struct weft_trace *trace, const struct weft_event **events, size_t *count);

	/* Makes the next call of next() return the first event again.  Also resets those counts in trace->info that next()
	 * raised. */
	void (*rewind)(struct weft_trace *trace);

	/* Frees trace->state. */
	void (*close)(struct weft_trace *trace);

	/* Implements weft_trace_field(); NULL if the format defines all of its ops. */
	bool (*field)(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);

	/* Implements weft_trace_save() without err; NULL if the trace is a single file that is saved as it is. */
	int (*save)(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx);

	/* Implements weft_trace_kernel(); NULL if the format has no kernel records. */
	int (*kernel)(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

	/* Implements weft_trace_lines(); NULL if the trace has only events. */
	int (*lines)(const struct weft_trace *trace, weft_trace_line_fn *write_line, void *ctx);
};

extern const struct weft_trace_format weft__format_fxt, weft__format_mirage, weft__format_native, weft__format_ocaml,
    weft__format_sexp;

/* The following functions of native.c implement weft_trace_start_position(), weft_trace_end_position() and
 * weft_trace_rewind_to(). */
int weft__native_start_position(const struct weft_trace *trace, struct weft_position *out);
int weft__native_end_position(const struct weft_trace *trace, struct weft_position *out);
int weft__native_current_position(const struct weft_trace *trace, struct weft_position *out);
uint64_t weft__native_bytes_left(const struct weft_trace *trace);
void weft__native_begin_at(struct weft_trace *trace, const struct weft_position *position);
void weft__native_rewind_to(struct weft_trace *trace, const struct weft_position *position);

/* Notes that `bytes` bytes at `offset` of `blob` were skipped; if `bytes` is 0, nothing is skipped, but something is wrong at
 * that place.  `packet` and `offset` may be WEFT_NO_OFFSET; `what` is one clause without a full stop. */
__attribute__((format(printf, 6, 7))) void weft__trace_skip(struct weft_trace *trace, const struct weft_blob *blob,
    uint64_t packet, uint64_t offset, uint64_t bytes, const char *what, ...);

/* Marks the last `count` notes as harmless for times: either no event was lost there, or a gap has the times of the lost
 * events. */
void weft__trace_mark_placed(struct weft_trace *trace, size_t count);

/* Sets in err the problem of a blob, or of the whole source if the blob is NULL; returns status. */
__attribute__((format(printf, 5, 6))) int weft__trace_fail(
    struct weft_error *err, int status, const struct weft_source *source, const struct weft_blob *blob, const char *what, ...);

/* Sets the location of err, unless err is NULL: a packet, and an offset in a blob. */
void weft__trace_set_location(
    struct weft_error *err, const struct weft_source *source, const struct weft_blob *blob, uint64_t packet, uint64_t offset);

/* Returns the reason why bytes with this start are not a trace in one file. */
const char *weft__trace_unknown_text(const unsigned char *bytes, size_t size);

void weft__site_texts_free(struct weft_site_texts *texts);

/* Finds the format and opens the trace; the trace takes over the source, on failure too. */
int weft__trace_from_source(struct weft_trace **out, struct weft_source *source, struct weft_error *err);

/* Opens an archive of several traces and joins them (join.c); takes over the source, on failure too. */
int weft__trace_from_folders(struct weft_trace **out, struct weft_source *source, struct weft_error *err);

/* Returns the format that matches best, or NULL; among equally good matches the first in the list of trace.c. */
const struct weft_trace_format *weft__trace_probe(const struct weft_source *source);

#endif
