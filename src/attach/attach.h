/* attach.h: loads the recorder into a program that already runs, and takes it out of use again.
 *
 * The functions use ptrace on x86-64 with glibc 2.34 or newer.  A child process does the work, so that the kernel releases every
 * OS thread of the program even if the work is cut short.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ATTACH_ATTACH_H
#define WEFT_ATTACH_ATTACH_H

#include <stdint.h>

#include "base/error.h"

struct weft_attach_result {
	uint32_t threads;    /* number of OS threads that were stopped */
	uint32_t patches;    /* number of listed changes */
	uint32_t written;    /* number of changes that were written */
	uint32_t tries;      /* number of moments at which an OS thread was about to run bytes that change */
	int64_t borrowed_ns; /* time for which one OS thread was borrowed to start another one; 0: none was borrowed */
	int64_t stopped_ns;  /* time for which all OS threads stood still together */
	int64_t whole_ns;
	char left_out[96]; /* promises that are not recorded, because the program started without the recorder; "": none */
};

/* State of a process, as far as attaching is concerned. */
enum weft_attach_state {
	WEFT_ATTACH_NONE,    /* the recorder is not loaded, or was loaded when the program started */
	WEFT_ATTACH_UNDONE,  /* the recorder was loaded later, and the program is as before */
	WEFT_ATTACH_APPLIED, /* the recorder was loaded later, and the program calls it */
};
enum weft_attach_state weft_attach_state(long pid);

/* Loads the library at this path into the process, and lets the program's calls run its wrappers; the recorder then stands by
 * (wire/standby.h).  `session` is a value of WEFT_RECORD.  Fails with WEFT_ENOENT (no such process), WEFT_EACCES (the error
 * says which rule refuses access, and what works), WEFT_ENOTSUP (the program cannot be attached to), WEFT_EBUSY (no OS thread
 * came to a safe moment) or WEFT_ENOMEM; the program then runs as before. */
int weft_attach_load(struct weft_attach_result *out, long pid, const char *library, const char *session, struct weft_error *err);

/* Restores the bytes that weft_attach_load() changed.  The library stays loaded, because an OS thread may be in a wrapper.
 * Fails like weft_attach_load(). */
int weft_attach_undo(struct weft_attach_result *out, long pid, struct weft_error *err);

#endif
