/* refresh.h: takes snapshots of traces in an OS thread of its own while programs record, without messages on stderr.
 *
 * A snapshot of a trace that is being recorded has the newest events and the state before them (model/follower.h).  On request,
 * one snapshot has everything in the ring.  Other traces are read completely.
 *
 * Each snapshot has a model of its own and belongs to the caller that popped it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_REFRESH_H
#define WEFT_CLI_REFRESH_H

#include "cli.h"
#include "model/follower.h"
#include "viewer/live.h"

struct cli_snapshot {
	struct cli_input input;
	struct weft_followed_model *followed; /* owner of the input's model and trace, or NULL if the input owns them */
	int64_t from_ns; /* start of the window, since the first event; of the time before, only the final state is known */
	uint64_t events; /* events read until the end of the snapshot */
	bool is_whole;   /* it has all events */
	struct weft_findings *findings; /* NULL without memory */
	struct weft_live *live;         /* state at the end of the snapshot */
	bool is_recorded;               /* a program is recording into it */
};

struct cli_refresher;

/* Starts a thread that refreshes traces, directories of traces or process ids; `plan` must outlive it.  It refreshes every
 * every_ns, or less often to use at most a tenth of a CPU.  Returns -1 to continue, otherwise the exit status after printing the
 * error. */
int cli_refresher_start(struct cli_refresher **out, struct open_plan *plan, int64_t every_ns, int64_t window_ns);
void cli_refresher_stop(struct cli_refresher *refresher); /* accepts NULL; waits for the current read */

/* Returns a descriptor that is readable when a snapshot is ready. */
int cli_refresher_fd(const struct cli_refresher *refresher);

/* Returns the newest snapshot, which the caller then owns, or NULL; *err has a read error, or "". */
struct cli_snapshot *cli_refresher_pop(struct cli_refresher *refresher, struct weft_error *err);
void cli_snapshot_free(struct cli_snapshot *snapshot); /* accepts NULL */

/* Requests that one of the next snapshots has all events. */
void cli_refresher_request_all(struct cli_refresher *refresher);

/* Returns whether there are no events since the newest snapshot. */
bool cli_refresher_is_quiet(struct cli_refresher *refresher);

/* Sets the window of later snapshots. */
void cli_refresher_set_window(struct cli_refresher *refresher, int64_t window_ns);

#endif
