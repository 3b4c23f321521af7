/* budget.h: what long texts may add to a converted trace.
 *
 * A native trace names one long text in each of many short events; another format writes it out each time: of a file of 300 kB it
 * would make 1 GB.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_BUDGET_H
#define WEFT_EXPORT_BUDGET_H

#include "export/export.h"

/* Bytes that long texts may have: 4 MiB, and 32 times the trace's. */
uint64_t weft__export_budget(const struct weft_trace *trace);

/* The text, or what is left of it: one that the budget does not cover is cut to 256 bytes, and counted. */
struct weft_str weft__export_text(struct weft_str text, uint64_t *budget, struct weft_losses *losses);

#endif
