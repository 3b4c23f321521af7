/* position.h: a position up to which a live trace was read, so that the next refresh reads only new events.
 *
 *	weft_trace_open(&trace, path, &err); ... weft_trace_next() until it returns 0
 *	weft_trace_end_position(trace, &position);
 *	weft_trace_close(trace);
 *	// later:
 *	weft_trace_open_from(&trace, path, &position, NULL, &err); ... the same again
 *
 * A position is a place in each stream, not a time.  So an event that is written late is read late, and every event is read
 * exactly once.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_POSITION_H
#define WEFT_TRACE_POSITION_H

#include "base/vec.h"
#include "trace/trace.h"

/* A position in a stream. */
struct weft_stream_position {
	uint64_t sequence; /* of the last packet that was read */
	uint64_t events;   /* number of events of the stream before the position */
	uint64_t last;     /* ticks; no event before the position is later */
	uint32_t bytes;    /* in that packet, including the header */
	uint32_t instance;
};

/* A zeroed struct is the start of a trace. */
struct weft_position {
	WEFT_VEC(struct weft_stream_position) streams; /* sorted by instance */
	WEFT_VEC(struct weft_stream_position)
	kernel; /* sorted by CPU; a position in packets only, because each kernel packet is self-contained */
	uint8_t uuid[16];
	bool is_somewhere, wrapped;
	bool grows; /* the trace grows: each packet of a stream has a file named by its number, and is not reused */
	/* The clock of all times before the position, and the time between its first clock pair and its measurement.  Times read
	 * with another position's clock must be converted to this one. */
	uint64_t hz, pair_clock, pair_wall_ns, span_ns;
	int64_t origin_ns;
};

/* Opens a trace without the events before a position, which must outlive the trace.  If the position is not of this trace, the
 * trace is not resumed and may miss anything.  `known`, or NULL, is a later position up to which the trace was read before;
 * opening skips the search of these events.  Fails as weft_trace_open(). */
int weft_trace_open_from(struct weft_trace **out, const char *path, const struct weft_position *from,
    const struct weft_position *known, struct weft_error *err);

/* Computes weft_trace_fingerprint() (follow.h) of the part of a trace after a position. */
uint64_t weft_trace_fingerprint_from(const char *path, const struct weft_position *from);

/* Stores the end position of a trace that was read to its end.  *out is zeroed, or an earlier position; no stream goes back
 * behind that.  The caller frees it.  WEFT_ENOTSUP: the format cannot be read from a position; WEFT_ENOMEM: *out is unchanged. */
int weft_trace_end_position(const struct weft_trace *trace, struct weft_position *out);

/* Stores the position after the events that weft_trace_next() has given.  WEFT_ENOTSUP also if the last bytes read are
 * damaged. */
int weft_trace_current_position(const struct weft_trace *trace, struct weft_position *out);

/* Returns the approximate number of event bytes that are still to be read. */
uint64_t weft_trace_bytes_left(const struct weft_trace *trace);

/* Makes the trace behave as if it had been opened from that position, which is after the original one and must outlive the trace.
 * Call it before the first query of kernel records. */
void weft_trace_begin_at(struct weft_trace *trace, const struct weft_position *position);

/* Stores the start position of the trace, as weft_trace_end_position() does its end. */
int weft_trace_start_position(const struct weft_trace *trace, struct weft_position *out);

/* Makes the next event the first one after a position, which is not before the position from which the trace was opened. */
void weft_trace_rewind_to(struct weft_trace *trace, const struct weft_position *position);

/* Returns true if the trace starts at the requested position; false also if the next events were overwritten before they were
 * read. */
bool weft_trace_is_resumed(const struct weft_trace *trace);

/* Gives these events before the first event, from the next rewind on; they must outlive the trace. */
void weft_trace_set_checkpoint(struct weft_trace *trace, const struct weft_event *events, size_t count);

/* Gives a position the clock of another position in the same trace. */
void weft_position_set_clock(struct weft_position *position, const struct weft_position *other);

bool weft_position_copy(struct weft_position *to, const struct weft_position *from);
void weft_position_free(struct weft_position *position);

/* Returns true if the whole file with that name in the trace's directory lies before the position. */
bool weft_position_is_behind(const struct weft_position *position, const char *name);

/* Returns the position of an instance, or of a CPU's kernel records; NULL: nothing was read.  Logarithmic. */
const struct weft_stream_position *weft_position_of_stream(const struct weft_position *position, uint32_t instance);
const struct weft_stream_position *weft_position_of_kernel(const struct weft_position *position, uint32_t processor);

#endif
