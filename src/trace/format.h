/* format.h: what a format of traces has to do (private to src/trace).
 *
 * A new format is one file that defines a struct weft_trace_format and one line in trace.c's list.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_FORMAT_H
#define WEFT_TRACE_FORMAT_H

#include "trace/kernel.h"
#include "trace/position.h"
#include "trace/source.h"
#include "trace/trace.h"

/* An open trace as its format sees it. */
struct weft_trace {
	const struct weft_trace_format *format;
	struct weft_source source;
	struct weft_trace_info info; /* the format fills it; .skipped and .skipped_count are kept by weft__trace_skip() */
	void *state;                 /* the format's own */

	struct weft_skipped *skipped;
	/* How much of .skipped_count and .unplaced_count was noted by open(): a rewind goes back there. */
	size_t skipped_at_open, unplaced_at_open;
	struct weft_site_texts *texts; /* of sites that were named later */
	int64_t pair_ns, pair_wall_ns; /* one time by the trace's clock and by the wall's; both 0: not known */
	/* Traces that agree in `boot` and `counter` have the ticks of one clock, which went that fast; empty: not known. */
	struct weft_str boot, counter;
	uint64_t clock_hz;
	bool is_steady;                /* its clock is a counter (steady.h) */
	const unsigned char *uuid;     /* 16 bytes, of whoever recorded it; NULL: it has none */
	bool read_whole;               /* the end was reached once: nothing is noted a second time */
	bool is_resumed;               /* it begins at source.from, and lacks nothing behind that */
	const struct weft_event *told; /* given before the first event, unless that was done */
	size_t told_count;
	bool has_told;
	bool carried_only; /* who reads has no use for events but those that tell of connections: next() may leave them out */
};

/* The process is known to have lived at that moment, in UTC. */
void weft__trace_lived(struct weft_trace *trace, int64_t wall_ns);

/* How much the first bytes of a source look like a format.  The most confident format opens it. */
enum weft_confidence {
	WEFT_CONFIDENCE_NONE,   /* it is not this format */
	WEFT_CONFIDENCE_LIKELY, /* it has the structure of this format, and no mark of its own */
	WEFT_CONFIDENCE_SURE    /* it has a mark that nothing else has: a magic number, a UUID, a name */
};

struct weft_trace_format {
	const char *name;

	/* By the names of the source's files and their first 512 bytes: more may not be there yet. */
	enum weft_confidence (*probe)(const struct weft_source *source);

	/* Fills trace->state and trace->info.  On failure nothing remains; close() is not called. */
	int (*open)(struct weft_trace *trace, struct weft_error *err);

	/* As weft_trace_next(). */
	int (*next)(struct weft_trace *trace, const struct weft_event **events, size_t *count);

	/* The next call of next() is to give the first event again.  Counts that next() raised in trace->info start again too. */
	void (*rewind)(struct weft_trace *trace);

	/* Frees trace->state. */
	void (*close)(struct weft_trace *trace);

	/* As weft_trace_field(); NULL: the format knows all its ops. */
	bool (*field)(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);

	/* As weft_trace_save(), but for err; NULL: the trace is its one file. */
	int (*save)(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx);

	/* As weft_trace_kernel(); NULL: the format has nothing of the kernel's. */
	int (*kernel)(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

	/* As weft_trace_lines(); NULL: nothing but the events was recorded. */
	int (*lines)(const struct weft_trace *trace, weft_trace_line_fn *put, void *ctx);
};

extern const struct weft_trace_format weft__format_fxt, weft__format_mirage, weft__format_native, weft__format_ocaml,
    weft__format_sexp;

/* native.c: as weft_trace_began() and weft_trace_reached(), and the rest of weft_trace_rewind_to(). */
int weft__native_began(const struct weft_trace *trace, struct weft_position *out);
int weft__native_reached(const struct weft_trace *trace, struct weft_position *out);
int weft__native_stands(const struct weft_trace *trace, struct weft_position *out);
uint64_t weft__native_left(const struct weft_trace *trace);
void weft__native_begin_at(struct weft_trace *trace, const struct weft_position *position);
void weft__native_rewind_to(struct weft_trace *trace, const struct weft_position *position);

/* Notes that `bytes` at `offset` of `blob` were passed over (`bytes` may be 0: something is odd there).  `packet` and `offset`
 * may be WEFT_NO_OFFSET; `what` is one clause without a full stop. */
__attribute__((format(printf, 6, 7))) void weft__trace_skip(struct weft_trace *trace, const struct weft_blob *blob,
    uint64_t packet, uint64_t offset, uint64_t bytes, const char *what, ...);

/* Of the last `count` places that were noted so, no event was in them, or a gap tells when these were. */
void weft__trace_place(struct weft_trace *trace, size_t count);

/* Fills err with what is wrong with a blob, or with all of the source; returns status. */
__attribute__((format(printf, 5, 6))) int weft__trace_fail(
    struct weft_error *err, int status, const struct weft_source *source, const struct weft_blob *blob, const char *what, ...);

/* Fills the place of err, if it is not NULL: a packet and an offset in a blob. */
void weft__trace_set_place(
    struct weft_error *err, const struct weft_source *source, const struct weft_blob *blob, uint64_t packet, uint64_t offset);

/* Why bytes that begin so are no trace in one file. */
const char *weft__trace_unknown_text(const unsigned char *bytes, size_t size);

void weft__site_texts_free(struct weft_site_texts *texts);

/* Finds the format and opens it; the source becomes the trace's, also on failure. */
int weft__trace_from_source(struct weft_trace **out, struct weft_source *source, struct weft_error *err);

/* The same of an archive of several traces: they are joined (join.c). */
int weft__trace_from_folders(struct weft_trace **out, struct weft_source *source, struct weft_error *err);

/* The format that the source looks most like, or NULL; of several equally confident ones the first in the list of trace.c. */
const struct weft_trace_format *weft__trace_probe(const struct weft_source *source);

#endif
