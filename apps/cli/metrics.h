/* metrics.h: an HTTP server for metrics, and the metrics of several processes, for weft watch and weft serve.
 *
 * A second thread talks to clients; the thread that follows the traces answers between two refreshes.  SPDX-License-Identifier:
 * ISC */
#ifndef WEFT_CLI_METRICS_H
#define WEFT_CLI_METRICS_H

#include "analysis/queries/metrics.h"
#include "cli.h"

#define CLI_METRICS_PORT "9464"

/* ---- The metrics of several processes ---- */

struct cli_meters;

/* Creates a set, or returns NULL without memory. */
struct cli_meters *cli_meters_create(void);
void cli_meters_destroy(struct cli_meters *meters); /* accepts NULL */

/* Adds a process.  Returns the observer for its follower; NULL: too many processes have metrics, which is counted. */
const struct weft_live_observer *cli_meters_add(struct cli_meters *meters, const char *path);

/* Counts new findings of a process. */
void cli_meters_add_findings(
    struct cli_meters *meters, const char *path, const struct weft_findings *findings, const struct weft_model *model);

/* Copies what the follower knows now.  After has_ended the process stays for some minutes, so that the last numbers are read. */
void cli_meters_update(struct cli_meters *meters, const char *path, const struct weft_follower *follower, bool has_ended);

/* For a caller without followers: follows a process from now on, if that is not done yet. */
void cli_meters_follow(struct cli_meters *meters, const char *path);

/* Reads what is new of these processes. */
void cli_meters_refresh(struct cli_meters *meters);

/* Writes all metrics. */
void cli_meters_write(struct cli_meters *meters, const struct weft_metrics_follower *follower, cli_bytes *out);

/* ---- The server of weft watch ---- */

struct cli_metrics_server;

/* Starts a server at [HOST][:PORT].  Returns -1 to continue, otherwise the exit status after printing the error. */
int cli_metrics_server_start(struct cli_metrics_server **out, const char *verb, const char *listen_at);
void cli_metrics_server_stop(struct cli_metrics_server *server); /* accepts NULL */

/* Waits for a time, a request or a signal; returns whether there is a request.  `server` may be NULL. */
bool cli_metrics_server_wait(struct cli_metrics_server *server, int64_t ns);

/* Answers all requests; takes the bytes. */
void cli_metrics_server_answer(struct cli_metrics_server *server, cli_bytes *text);

#endif
