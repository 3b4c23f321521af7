/* names.h: finds functions, files and lines of machine-code addresses that were recorded without source positions.
 *
 * An address is searched in the file that the trace names and in the file's debug file: first in debug information, then among
 * symbols, within their sizes, and then among the function bounds of exception tables (`ctest+0x18cb0`).  A file is used only if
 * it has the recorded build-id; of any other file, only the header is read.
 *
 * Names are not cached on disk: all addresses of a run take 10 ms for Debian's neovim and 50 ms for its Node.js, and a cache
 * would have to be trusted and to notice newly installed debug files.  Callers limit the time.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_H
#define WEFT_DWARF_NAMES_H

#include <stdbool.h>

#include "trace/trace.h"

struct weft_names;

struct weft_names_options {
	/* Whether to ask the servers of DEBUGINFOD_URLS too, which may take long, and which learn what is examined. */
	bool ask_servers;
	/* Callback that runs before each address; false stops the search.  May be NULL. */
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* Copies the addresses without names from a trace; the trace may be closed afterwards.  Returns NULL if all addresses have
 * names, or without memory. */
struct weft_names *weft_names_create(const struct weft_trace_info *info);
void weft_names_destroy(struct weft_names *names);

/* Finds the names.  The search may take seconds if debug information is large.  Any OS thread may call this function. */
void weft_names_find(struct weft_names *names, const struct weft_names_options *options);

/* Gives the found names to the sites of the trace from which `names` was created, or that it fits; the texts are copied.  No
 * other thread may read the trace or its model during the call.  Returns the number of sites that got a name, or WEFT_ENOMEM. */
int weft_names_apply(const struct weft_names *names, struct weft_trace *trace);

/* Returns whether a trace has all addresses from which `names` was created, at the same sites, as the same trace has when it is
 * read again.
 */
bool weft_names_fit(const struct weft_names *names, const struct weft_trace_info *info);

/* Returns whether none of the files exists on this machine, because the trace is from another machine or its files were
 * replaced. */
bool weft_names_are_all_missing(const struct weft_names *names);

/* Return the reasons why addresses have no names: a clause with the module's path for each such module, or a single clause if
 * none of several files exists on this machine. */
size_t weft_names_note_count(const struct weft_names *names);
const char *weft_names_note(const struct weft_names *names, size_t index);

#endif
