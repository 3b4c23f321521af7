/* foreign.h: every trace that a user names: weft's own, those of domains of Xen, and those of other tracers in CTF.
 *
 * What weft does not read itself, as LTTng's traces, a program of its own reads, weft-ctf, through libbabeltrace2: that brings
 * GLib along, and is not made for files of strangers.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_FOREIGN_H
#define WEFT_CTF_FOREIGN_H

#include <limits.h>

#include "trace/trace.h"

/* As weft_trace_open(), also of "xen:NAME" and of a directory below which another tracer's CTF is.  Also WEFT_ENOTSUP: weft-ctf
 * is not installed. */
int foreign_or_trace_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* The path of a file of weft's own that nobody calls by its name: beside the program that runs, or where it is installed.  false:
 * it is in neither. */
bool foreign_find_installed(char path[PATH_MAX], const char *name);

#endif
