/* position.h: how far a trace was read that a program still writes, so that the next look reads only what came since.
 *
 *	weft_trace_open(&trace, path, &err); ... weft_trace_next() until it returns 0
 *	weft_trace_reached(trace, &position);
 *	weft_trace_close(trace);
 *	// later:
 *	weft_trace_open_from(&trace, path, &position, NULL, &err); ... the same again
 *
 * A position is a place in each stream, not a time: an event that was written late is read late, never twice and never not.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_POSITION_H
#define WEFT_TRACE_POSITION_H

#include "base/vec.h"
#include "trace/trace.h"

/* How far a stream was read. */
struct weft_reached {
	uint64_t sequence; /* of the last packet that was read of */
	uint64_t events;   /* of the stream, up to there */
	uint64_t last;     /* ticks: no event up to there is later */
	uint32_t bytes;    /* of that packet, its header included */
	uint32_t instance;
};

/* A zeroed one is the beginning. */
struct weft_position {
	WEFT_VEC(struct weft_reached) streams; /* by instance */
	WEFT_VEC(struct weft_reached) kernel;  /* likewise, by processor: of the packet alone, each tells all that it needs */
	uint8_t uuid[16];
	bool is_somewhere, wrapped;
	bool grows; /* the trace does: a stream's packets have a file each, called by its number, and are not used again */
	/* The clock of all times up to there, and how long after its first pair it was measured: times that were read with
	 * another position's clock are to be made those of this one. */
	uint64_t hz, pair_clock, pair_wall_ns, span_ns;
	int64_t origin_ns;
};

/* Opens a trace without the events up to a position, which is to live as long as the trace.  Where that is not of this trace, it
 * is not resumed, and may lack anything.  `known`, or NULL, is a later position up to which it was read already: the events
 * before that are not looked at while it is opened.  As weft_trace_open(). */
int weft_trace_open_from(struct weft_trace **out, const char *path, const struct weft_position *from,
    const struct weft_position *known, struct weft_error *err);

/* As weft_trace_fingerprint() (follow.h), of what a trace has behind a position. */
uint64_t weft_trace_fingerprint_from(const char *path, const struct weft_position *from);

/* Where the trace ended that was read to its end.  *out is a zeroed one, or an earlier position, behind which none of its streams
 * falls; the caller frees it.  WEFT_ENOTSUP: its format cannot be read from a position on; WEFT_ENOMEM: *out is as it was. */
int weft_trace_reached(const struct weft_trace *trace, struct weft_position *out);

/* The same of a trace that was read up to here: behind the events that weft_trace_next() has given.  WEFT_ENOTSUP also: what was
 * read last is damaged. */
int weft_trace_stands(const struct weft_trace *trace, struct weft_position *out);

/* How many bytes of events are still to be read, about. */
uint64_t weft_trace_left(const struct weft_trace *trace);

/* From now on it is as if the trace had been opened from that position, which lies behind the one from which it was, and is to
 * live as long as the trace.  Nobody has asked for what the kernel said yet. */
void weft_trace_begin_at(struct weft_trace *trace, const struct weft_position *position);

/* The same as weft_trace_reached() of where the trace begins. */
int weft_trace_began(const struct weft_trace *trace, struct weft_position *out);

/* The next event is the first behind a position that is not before the one from which the trace was opened. */
void weft_trace_rewind_to(struct weft_trace *trace, const struct weft_position *position);

/* Whether it begins where it was to begin: false also if what came next was overwritten before it was read. */
bool weft_trace_is_resumed(const struct weft_trace *trace);

/* Gives these events before the first one, from the next rewind on; they are to live as long as the trace. */
void weft_trace_tell(struct weft_trace *trace, const struct weft_event *events, size_t count);

/* A position in the same trace has from now on the clock of another one. */
void weft_position_set_clock(struct weft_position *position, const struct weft_position *other);

bool weft_position_copy(struct weft_position *to, const struct weft_position *from);
void weft_position_free(struct weft_position *position);

/* Whether all of a file of that name in the trace's directory lies before the position. */
bool weft_position_is_behind(const struct weft_position *position, const char *name);

/* How far that instance, or what the kernel said on that processor, was read; NULL: not at all.  Logarithmic. */
const struct weft_reached *weft_position_of(const struct weft_position *position, uint32_t instance);
const struct weft_reached *weft_position_of_kernel(const struct weft_position *position, uint32_t processor);

#endif
