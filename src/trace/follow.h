/* follow.h: tells when a trace should be opened again, because it has changed since.
 *
 * An open trace does not change: it has a copy of every byte, and stays whole when its files grow, shrink, vanish or turn to
 * garbage.  To follow a trace, ask now and then whether weft_trace_open() would find something else:
 *
 *	seen = weft_trace_fingerprint(path);          // before the trace is opened, so that no later change is missed
 *	weft_trace_open(&trace, path, &err); weft_model_build(&model, trace, ...);
 *	// every 100 ms, say:
 *	now = weft_trace_fingerprint(path);
 *	if (now != seen) {
 *		seen = now;
 *		// in a worker: open and build again; if that succeeds, show the new model and destroy the old one
 *	}
 *
 * If that fails because the trace is gone or garbage, the old model can still be shown, together with the message of the error.
 *The fingerprint changes again as soon as another try makes sense.
 *
 * A ring loses its oldest events meanwhile, so a promise has another number and other times in the next model.  Its id stays the
 * same, and so does model->start_ns + promise->start_ns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_FOLLOW_H
#define WEFT_TRACE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A number that changes, but for a chance of one in 2^64, when weft_trace_open() would read something else: files came, went or
 * were written to, also through a mapping; or the trace vanished or cannot be read any more.  For "-", pipes and devices the
 * number never changes.
 *
 * The function cannot fail, takes no lock and keeps nothing open; any OS thread may call it at any moment.  It makes some system
 * calls for each file (2 us a file; a ring has 16 files for each OS thread).  In each file it looks at the headers of the first
 * 4,096 packets. */
uint64_t weft_trace_fingerprint(const char *path);

/* Whether a process records into the directory `path` just now, or, of OCaml's runtime, into the file PID.events.  Also false if
 * that cannot be known, as for other files.  A trace that is .unfinished but not being recorded was left behind by a program that
 * was killed. */
bool weft_trace_is_recorded(const char *path);

#endif
