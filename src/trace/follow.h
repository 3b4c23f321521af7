/* follow.h: detects that a trace has changed and should be opened again.
 *
 * An open trace does not change: it has a copy of every byte, and stays valid when its files grow, shrink, vanish or are
 * damaged.  To follow a trace, check periodically whether weft_trace_open() would find something else:
 *
 *	seen = weft_trace_fingerprint(path); // before opening, so that no later change is missed
 *	weft_trace_open(&trace, path, &err);
 *	weft_model_build(&model, trace, ...);
 *	// for example every 100 ms:
 *	now = weft_trace_fingerprint(path);
 *	if (now != seen) {
 *		seen = now;
 *		// in a worker: open and build again; on success show the new model and destroy the old one
 *	}
 *
 * If opening fails because the trace is gone or damaged, the old model can still be shown, together with the error message.
 * The fingerprint changes again as soon as another attempt makes sense.
 *
 * Meanwhile a ring loses its oldest events, so the number and the times of a promise differ in the next model.  The id of a
 * promise stays the same, and so does model->start_ns + promise->start_ns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_FOLLOW_H
#define WEFT_TRACE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Returns a number that changes (except with a chance of 1 in 2^64) when weft_trace_open() would read something else.  This is
 * so if files appeared, vanished or were written to, also through a mapping, or if the trace can no longer be read.  For "-",
 * pipes and devices the number never changes.
 *
 * The function cannot fail, takes no lock and keeps nothing open; any thread may call it.  The function makes a few system
 * calls for each file (2 us a file; a ring has 16 files for each thread).  The function reads the headers of the first 4,096
 * packets of each file. */
uint64_t weft_trace_fingerprint(const char *path);

/* Returns true if a process is recording into the directory `path`, or the OCaml runtime into the file PID.events.  Also
 * returns false if it cannot be known whether a process is recording, as for all other files.  If a trace is .unfinished and
 * not being recorded, its program was killed. */
bool weft_trace_is_recorded(const char *path);

#endif
