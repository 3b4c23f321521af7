/* reader.h: CTF of any tracer as a trace of weft's: an OS thread is a promise that runs while it has a processor, and each event
 * a note of who ran.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_READER_H
#define WEFT_CTF_READER_H

#include "ctf/find.h"
#include "trace/trace.h"

struct ctf_reader;

/* Reads the traces in these directories as one; `name` is how the user called them.  *trace ends with the reader; its names and
 * host are known once weft_trace_next() has returned 0.  WEFT_EFORMAT, WEFT_ENOMEM, WEFT_ENOTSUP: libbabeltrace2 lacks a plugin.
 */
int ctf_reader_create(
    struct ctf_reader **out, struct weft_trace **trace, const ctf_folders *folders, const char *name, struct weft_error *err);

/* Why weft_trace_next() failed, a clause without a full stop. */
const char *ctf_reader_why(const struct ctf_reader *reader);

void ctf_reader_destroy(struct ctf_reader *reader);

#endif
