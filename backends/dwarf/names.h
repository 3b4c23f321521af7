/* names.h: finds functions, files and lines of machine-code addresses that were recorded without source positions.
 *
 * They are looked up in the files that the trace names, and in their debug files: first in debug information, then among
 * symbols, within their sizes, then among the function bounds in exception tables (`ctest+0x18cb0`).  A file is used only if it
 * has the recorded build-id; otherwise nothing but its header is read.
 *
 * Nothing is cached on disk: all addresses of a run take 10 ms for Debian's neovim and 50 ms for its Node.js, and a cache would
 * have to be trusted and to notice newly installed debug files.  Callers limit the time.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_NAMES_H
#define WEFT_DWARF_NAMES_H

#include <stdbool.h>

#include "trace/trace.h"

struct weft_names;

struct weft_names_options {
	bool ask_servers; /* also ask the servers of DEBUGINFOD_URLS, which may take long, and which learn what is examined */
	/* NULL, or called before each address; false stops the search. */
	bool (*go_on)(void *ctx);
	void *ctx;
};

/* Copies the addresses without names from a trace, which may be closed afterwards.  Returns NULL if there are none, or without
 * memory. */
struct weft_names *weft_names_create(const struct weft_trace_info *info);
void weft_names_destroy(struct weft_names *names);

/* Finds the names.  May take seconds if debug information is large.  May be called in any OS thread. */
void weft_names_find(struct weft_names *names, const struct weft_names_options *options);

/* Gives the found names to the sites of the trace that `names` was created from, or fits; texts are copied.  No other thread may
 * read the trace or its model meanwhile.  Returns the number of named sites, or WEFT_ENOMEM. */
int weft_names_apply(const struct weft_names *names, struct weft_trace *trace);

/* Returns whether a trace has all addresses that `names` was created from, at the same sites, such as the same trace read again.
 */
bool weft_names_fit(const struct weft_names *names, const struct weft_trace_info *info);

/* Returns whether none of the files exists here: the trace is from another machine, or its files were replaced. */
bool weft_names_are_all_missing(const struct weft_names *names);

/* Return the reasons why addresses have no names: a clause with the module's path for each such module; or a single one if none
 * of several files exists here. */
size_t weft_names_note_count(const struct weft_names *names);
const char *weft_names_note(const struct weft_names *names, size_t index);

#endif
