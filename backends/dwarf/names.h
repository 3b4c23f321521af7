/* names.h: functions, files and lines of the places in machine code that a program without source was recorded with.
 *
 * Looked up in the files that the trace names, and in their debug files: debug information first, then symbols, as far as they
 * reach, then the bounds of functions that exceptions need (`ctest+0x18cb0`).  Nothing of a file is believed, nor is more than
 * its head read, unless its build-id is the one that was recorded.
 *
 * Nothing is kept on disk: all places of a run take 10 ms in Debian's neovim and 50 ms in its Node.js, and what was kept would
 * have to know when a debug file is installed, and be believed.  Callers limit the time.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_H
#define WEFT_DWARF_NAMES_H

#include <stdbool.h>

#include "trace/trace.h"

struct weft_names;

struct weft_names_options {
	bool ask_servers; /* those of DEBUGINFOD_URLS, too; they may take long, and learn what is looked at */
	/* Unless NULL: called before each place; false leaves the rest as it is. */
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* Copies what is to be looked up: all places that have no name yet.  NULL: there are none, or no memory.  The trace may be closed
 * afterwards. */
struct weft_names *weft_names_create(const struct weft_trace_info *info);
void weft_names_destroy(struct weft_names *names);

/* Looks them up.  May take seconds where debug information is large.  Any OS thread. */
void weft_names_find(struct weft_names *names, const struct weft_names_options *options);

/* Gives the sites of the trace that names was made from the names that were found; texts are copied.  Nobody may be reading the
 * trace or its model meanwhile.  How many, or WEFT_ENOMEM. */
int weft_names_apply(const struct weft_names *names, struct weft_trace *trace);

/* Whether none of the files is here: the trace is of another machine, or what it calls them was replaced. */
bool weft_names_lacks_all(const struct weft_names *names);

/* Why a module's places have no names: a clause for each such module, the path of the module in it; one for several that are not
 * here, if none is. */
size_t weft_names_note_count(const struct weft_names *names);
const char *weft_names_note(const struct weft_names *names, size_t index);

#endif
