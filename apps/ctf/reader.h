/* reader.h: reads CTF of any tracer as a weft trace, in which each OS thread is a promise that runs while the thread is on CPU,
 * and each event is a note of the running thread.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CTF_READER_H
#define WEFT_CTF_READER_H

#include "ctf/find.h"
#include "trace/trace.h"

struct ctf_reader;

/* Reads the traces in these directories as one trace; `name` is the user's name for them. *trace lives as long as the reader;
 * its names and host are known when weft_trace_next() has returned 0.  Fails with WEFT_EFORMAT, WEFT_ENOMEM or WEFT_ENOTSUP
 * (libbabeltrace2 lacks a plugin).
 */
int ctf_reader_create(
    struct ctf_reader **out, struct weft_trace **trace, const ctf_folders *folders, const char *name, struct weft_error *err);

/* Returns the reason for which weft_trace_next() failed, as a clause without a full stop. */
const char *ctf_reader_why(const struct ctf_reader *reader);

void ctf_reader_destroy(struct ctf_reader *reader);

#endif
