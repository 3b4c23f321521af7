/* metrics.h: an HTTP server for metrics, and the metrics of several processes, for weft watch and weft serve.
 *
 * A second thread talks to HTTP clients; the thread that follows the traces answers their requests between two refreshes.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_METRICS_H
#define WEFT_CLI_METRICS_H

#include "analysis/queries/metrics.h"
#include "cli.h"

#define CLI_METRICS_PORT "9464"

/* ---- The metrics of several processes ---- */

struct cli_meters;

/* Creates an empty set of metrics; NULL without memory. */
struct cli_meters *cli_meters_create(void);
void cli_meters_destroy(struct cli_meters *meters); /* accepts NULL */

/* Adds a process.  Returns the observer for the process's follower; NULL if too many processes have metrics, which is
 * counted. */
const struct weft_live_observer *cli_meters_add(struct cli_meters *meters, const char *path);

/* Counts the new findings of a process. */
void cli_meters_add_findings(
    struct cli_meters *meters, const char *path, const struct weft_findings *findings, const struct weft_model *model);

/* Copies the current numbers of a process's follower into the metrics.  After has_ended, the metrics of the process stay for
 * some minutes, so that a client can read the last numbers. */
void cli_meters_update(struct cli_meters *meters, const char *path, const struct weft_follower *follower, bool has_ended);

/* Follows a process from now on, if no follower exists yet; for callers that have no followers. */
void cli_meters_follow(struct cli_meters *meters, const char *path);

/* Reads the new events of the processes that cli_meters_follow() follows. */
void cli_meters_refresh(struct cli_meters *meters);

/* Writes all metrics. */
void cli_meters_write(struct cli_meters *meters, const struct weft_metrics_follower *follower, cli_bytes *out);

/* ---- The server of weft watch ---- */

struct cli_metrics_server;

/* Starts an HTTP server at [HOST][:PORT].  Returns -1 to continue; otherwise an error was printed, and the result is the exit
 * status. */
int cli_metrics_server_start(struct cli_metrics_server **out, const char *verb, const char *listen_at);
void cli_metrics_server_stop(struct cli_metrics_server *server); /* accepts NULL */

/* Waits for `ns`, a request or a signal; returns whether there is a request.  `server` may be NULL. */
bool cli_metrics_server_wait(struct cli_metrics_server *server, int64_t ns);

/* Answers all requests with the text, and takes over its bytes. */
void cli_metrics_server_answer(struct cli_metrics_server *server, cli_bytes *text);

#endif
