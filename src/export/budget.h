/* budget.h: limits the bytes that long texts add to a converted trace.
 *
 * A native trace stores a long text once and names it in many short events.  Other formats repeat the text each time: a file of
 * 300 kB could become 1 GB.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_BUDGET_H
#define WEFT_EXPORT_BUDGET_H

#include "export/export.h"

/* Returns the bytes that long texts may have: 4 MiB plus 32 times the size of the trace. */
uint64_t weft__export_budget(const struct weft_trace *trace);

/* Returns the text.  If the budget does not cover it, it is cut to 256 bytes and counted as a loss. */
struct weft_str weft__export_text(struct weft_str text, uint64_t *budget, struct weft_losses *losses);

#endif
