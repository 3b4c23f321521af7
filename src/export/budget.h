/* budget.h: limits the number of bytes that long texts add to a converted trace.
 *
 * A native trace stores a long text once, and many short events refer to the text.  Other formats repeat the text in each event,
 * so a file of 300 kB could become 1 GB.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_BUDGET_H
#define WEFT_EXPORT_BUDGET_H

#include "export/export.h"

/* Returns the number of bytes that long texts may have: 4 MiB plus 32 times the size of the trace. */
uint64_t weft__export_budget(const struct weft_trace *trace);

/* Returns the text.  A text that exceeds the budget is cut to 256 bytes and counted as a loss. */
struct weft_str weft__export_text(struct weft_str text, uint64_t *budget, struct weft_losses *losses);

#endif
