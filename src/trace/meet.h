/* meet.h: ties the clocks of several traces by what went between them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_MEET_H
#define WEFT_TRACE_MEET_H

#include "trace/tie.h"
#include "trace/trace.h"

/* From a clock to the first one: by way of this tie to that clock, and on. */
struct weft_meet_way {
	const struct weft_tie *tie; /* NULL: it is the first one, or nothing leads there */
	uint32_t to;
};

/* What the traces of two clocks say of each other. */
struct weft_meet_pair {
	uint32_t parts[2], clocks[2];        /* a trace of each clock */
	size_t connections;                  /* both ends of which were found */
	size_t messages[2];                  /* sent by each */
	int64_t least_ns, average_ns;        /* how far apart the bounds are, at their narrowest and on average, if is_tied */
	int64_t rate_low_ppb, rate_high_ppb; /* how much the second clock gains on the first: between these, if is_tied */
	bool is_tied;                        /* else there are no messages one of the two ways */
};

struct weft_meet {
	struct weft_meet_way *ways; /* by clock */
	int64_t *bounds_ns;         /* by clock: half the bound, on average, on the whole way; INT64_MAX: nothing leads there */
	size_t clock_count;
	struct weft_meet_pair *pairs;
	size_t pair_count;
	size_t connections, messages; /* of all pairs */
	size_t alone;                 /* ends of connections whose other ends are in none of the traces */
	size_t renamed;               /* of those: whose peer has ends of its own here, which know another address of theirs */
	char example[120];            /* of the last: "tcp OWN PEER"; empty: there is none */
	size_t contradictory;         /* pairs of ends of one name, of which one read what the other cannot have written */
	char wrong[120];              /* the first of these, as `example` */
	size_t unwritten;             /* reads of bytes that nobody is known to have written: something is missing or wrong */
	struct weft_tie **ties;
	size_t tie_count;
};

/* Reads `count` traces from where they stand to their end, and rewinds them.  Clock clock_of[i], below clock_count, is the one of
 * trace i, whose times become that clock's when `rates[i]` multiplies them.  Connections of TCP whose ends are of two clocks tie
 * these; of several ways to the first clock the one with the narrowest bounds, which add up, is taken.  Connections of a host
 * with itself (127.0.0.1) are left out: every host has these addresses.  host_of[i] is the host of trace i: where two hosts are
 * said to have one clock, as containers have, what they sent each other must not contradict that.
 *
 * WEFT_EINVAL: what two of them say of each other cannot be true (tie.h), or two hosts of one clock got bytes before they were
 * sent; err names them.  What the reading fails of;
 * WEFT_ENOMEM. On failure nothing is to be freed. */
int weft_meet(struct weft_meet *out, struct weft_trace *const *traces, size_t count, const uint32_t *clock_of,
    const uint32_t *host_of, const double *rates, size_t clock_count, struct weft_error *err);
void weft_meet_finish(struct weft_meet *meet);

/* What the first clock shows when another one shows ns: between *low and *high, which may be NULL.  Half way between, by one tie.
 * Logarithmic. */
int64_t weft_meet_time(const struct weft_meet *meet, uint32_t clock, int64_t ns, int64_t *low, int64_t *high);

/* The same half way for times that go on, mostly: with what was found last on the ties that are near, all 0 at first.  *left_ns
 * as weft_tie_time_from() has it. */
enum { WEFT_MEET_NEAR = 4 };
int64_t weft_meet_time_from(
    const struct weft_meet *meet, uint32_t clock, int64_t ns, struct weft_tie_cursor cursors[WEFT_MEET_NEAR], int64_t *left_ns);

#endif
