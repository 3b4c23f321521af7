/* otlp.h: spans of OpenTelemetry, for weft convert --to=otlp and weft watch --otlp.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_OTLP_H
#define WEFT_CLI_OTLP_H

#include "analysis/findings/explain.h"
#include "cli.h"
#include "export/export.h"

/* Writes the spans and the findings of an input into a file.  Returns an exit status; *losses is filled on success. */
int cli_otlp_write(const struct cli_input *input, const char *out, struct weft_losses *losses);

/* ---- weft watch --otlp ---- */

struct cli_otlp;

/* Starts to send to a URL.  Returns -1 to continue; otherwise an error was printed, and the result is the exit status. */
int cli_otlp_start(struct cli_otlp **out, const char *verb, const char *url);

/* Sends the rest, prints how many spans arrived, and frees; accepts NULL. */
void cli_otlp_stop(struct cli_otlp *otlp);

/* Reads the new events of a trace, and queues the spans that have ended; `otlp` may be NULL.  After has_ended, the trace is not
 * followed any more. */
void cli_otlp_update(struct cli_otlp *otlp, const char *path, bool has_ended);

/* Adds a finding to the spans of the next update of a trace, unless it was added before.  Without memory, the finding is counted
 * as lost. */
void cli_otlp_add_finding(
    struct cli_otlp *otlp, const char *path, const struct weft_model *model, const struct weft_finding *finding);

#endif
