/* foreign.h: opens CTF traces of other tracers, such as LTTng.
 *
 * A separate program, weft-ctf, reads these traces with libbabeltrace2, which depends on GLib and is not made for untrusted
 * files.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FOREIGN_H
#define WEFT_CTF_FOREIGN_H

#include <limits.h>

#include "trace/trace.h"

/* Opens a CTF trace of another tracer in or below a directory, like weft_trace_open().  Returns WEFT_EFORMAT and leaves *err
 * unchanged if there is no such trace.  Returns WEFT_ENOTSUP if weft-ctf is not installed. */
int foreign_trace_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* Finds an auxiliary file of weft, beside the running program or in the installation's folder.  Returns false if the file is in
 * neither folder. */
bool foreign_find_installed(char path[PATH_MAX], const char *name);

#endif
