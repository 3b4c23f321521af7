/* position.h: a position up to which a live trace was read, so that the next refresh reads only new events.
 *
 *	weft_trace_open(&trace, path, &err); ... weft_trace_next() until it returns 0
 *	weft_trace_end_position(trace, &position);
 *	weft_trace_close(trace);
 *	// later:
 *	weft_trace_open_from(&trace, path, &position, NULL, &err); ... the same again
 *
 * A position is a place in each stream, not a time.  Therefore an event that is written late is read late, and every event is
 * read exactly once.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_POSITION_H
#define WEFT_TRACE_POSITION_H

#include "base/vec.h"
#include "trace/trace.h"

/* A position in a stream: the part of its last packet that was read. */
struct weft_stream_position {
	uint64_t sequence; /* sequence number of the last packet that was read */
	uint64_t events;   /* number of events of the stream before the position */
	uint64_t last;     /* time in ticks; no event before the position is later */
	uint32_t bytes;    /* number of bytes of the last packet that were read, including the header */
	uint32_t instance;
};

/* A position in a trace; zeros stand for the start of the trace. */
struct weft_position {
	WEFT_VEC(struct weft_stream_position) streams; /* sorted by instance */
	WEFT_VEC(struct weft_stream_position)
	/* positions in kernel records, sorted by CPU; each is at the start of a packet, because a kernel packet needs no other
	 * packet */
	kernel;
	uint8_t uuid[16];
	bool is_somewhere, wrapped;
	/* true if the trace grows: each packet of a stream has its own file, named by its number, and is not reused */
	bool grows;
	/* The clock of all times before the position, and the time between the first pair of clock times and the measurement of
	 * the clock.  Times that were read with another position's clock must be converted to this clock. */
	uint64_t hz, pair_clock, pair_wall_ns, span_ns;
	int64_t origin_ns;
};

/* Opens a trace without the events before a position, which must live as long as the trace.  If the position does not belong to
 * this trace, the trace is not resumed and may lack any events.  `known`, or NULL, is a later position up to which the trace
 * was read before, so that these events need not be searched.  Fails as weft_trace_open(). */
int weft_trace_open_from(struct weft_trace **out, const char *path, const struct weft_position *from,
    const struct weft_position *known, struct weft_error *err);

/* Computes weft_trace_fingerprint() (follow.h) for the part of a trace after a position. */
uint64_t weft_trace_fingerprint_from(const char *path, const struct weft_position *from);

/* Stores the end position of a trace that was read to its end. *out is zeros or an earlier position; no stream goes back behind
 * that position.  The caller frees it.  Returns WEFT_ENOTSUP if the format cannot be read from a position; WEFT_ENOMEM, with
 * *out unchanged, when out of memory. */
int weft_trace_end_position(const struct weft_trace *trace, struct weft_position *out);

/* Stores the position after the events that weft_trace_next() has returned.  Also returns WEFT_ENOTSUP if the bytes that were
 * read last are damaged. */
int weft_trace_current_position(const struct weft_trace *trace, struct weft_position *out);

/* Returns the approximate number of bytes of events that must still be read. */
uint64_t weft_trace_bytes_left(const struct weft_trace *trace);

/* Makes the trace behave as if it had been opened from the given position, which must be after the original position and must
 * live as long as the trace.  Must be called before the first query of kernel records. */
void weft_trace_begin_at(struct weft_trace *trace, const struct weft_position *position);

/* Stores the start position of the trace, as weft_trace_end_position() stores its end position. */
int weft_trace_start_position(const struct weft_trace *trace, struct weft_position *out);

/* Makes the next event the first event after a position, which must not be before the position from which the trace was
 * opened. */
void weft_trace_rewind_to(struct weft_trace *trace, const struct weft_position *position);

/* Returns true if the trace starts at the requested position; also returns false if the next events were overwritten before
 * they were read. */
bool weft_trace_is_resumed(const struct weft_trace *trace);

/* Returns the given events before the first event, from the next rewind on; the events must live as long as the trace. */
void weft_trace_set_checkpoint(struct weft_trace *trace, const struct weft_event *events, size_t count);

/* Gives a position the clock of another position in the same trace. */
void weft_position_set_clock(struct weft_position *position, const struct weft_position *other);

bool weft_position_copy(struct weft_position *to, const struct weft_position *from);
void weft_position_free(struct weft_position *position);

/* Returns true if the whole file with the given name in the trace's directory lies before the position. */
bool weft_position_is_behind(const struct weft_position *position, const char *name);

/* Returns the position in an instance, or in the kernel records of a CPU; NULL if nothing was read.  Logarithmic. */
const struct weft_stream_position *weft_position_of_stream(const struct weft_position *position, uint32_t instance);
const struct weft_stream_position *weft_position_of_kernel(const struct weft_position *position, uint32_t processor);

#endif
