/* follow.h: when to open a trace again: it is still being written, or changed in another way.
 *
 * An open trace does not change: it has a copy of every byte, and stays whole when its files grow, shrink, vanish or turn to
 * garbage.  Who follows a trace asks now and then whether weft_trace_open() would find something else:
 *
 *	seen = weft_trace_fingerprint(path);          // before the open: nothing is missed that comes in between
 *	weft_trace_open(&trace, path, &err); weft_model_build(&model, trace, ...);
 *	// every 100 ms, say:
 *	now = weft_trace_fingerprint(path);
 *	if (now != seen) {
 *		seen = now;
 *		// in a worker: open and build again.  Where that succeeds, show the new and destroy the old
 *	}
 *
 * Where it fails (the trace is gone, or garbage now), the old one is still good to be shown, with what err says; the fingerprint
 * changes again when there is something new to try.
 *
 * A ring loses its oldest events meanwhile, so that a promise's number and its times change from one model to the next.  What
 * stays is its id, and model->start_ns + promise->start_ns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_FOLLOW_H
#define WEFT_TRACE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* A number that changes, but for a chance of one in 2^64, when weft_trace_open() would read something else: files came, went or
 * were written to, also through a mapping; the trace vanished, or cannot be read any more.  Always the same for "-", pipes and
 * devices.
 *
 * It cannot fail, takes no lock and keeps nothing: any OS thread may ask at any moment.  It costs some system calls for each file
 * (2 us a file; a ring has 16 for each OS thread).  Of a single file the first 4,096 packets are looked at, of others the time of
 * their change. */
uint64_t weft_trace_fingerprint(const char *path);

/* Whether a process records into the directory `path` just now; false too where nobody can know, as of a file.  A trace that is
 * .unfinished, and not recorded, was left by a program that was killed. */
bool weft_trace_is_recorded(const char *path);

#endif
