/* refresh.h: takes snapshots of traces while programs record, in an OS thread of its own and without messages on stderr.
 *
 * A snapshot of a trace that is being recorded contains the newest events and the state before them (model/follower.h).  On
 * request, one snapshot contains all events of the ring.  Traces that are not being recorded are read completely.
 *
 * Each snapshot has its own model and belongs to the caller that popped it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_REFRESH_H
#define WEFT_CLI_REFRESH_H

#include "cli.h"
#include "model/follower.h"
#include "viewer/live.h"

struct cli_snapshot {
	struct cli_input input;
	struct weft_followed_model *followed; /* owner of the input's model and trace, or NULL if the input owns them */
	int64_t from_ns; /* start of the window, counted from the first event; only the final state of the time before is known */
	uint64_t events; /* number of events from the start to the end of the snapshot */
	bool is_whole;   /* it has all events */
	struct weft_findings *findings; /* NULL without memory */
	struct weft_live *live;         /* state of the program at the end of the snapshot */
	bool is_recorded;               /* whether a program is still recording the trace */
};

struct cli_refresher;

/* Starts a thread that refreshes traces, directories of traces or process ids; `plan` must live longer than the thread.  The
 * thread takes a snapshot every every_ns, or less often, so that it uses at most a tenth of a CPU.  Returns -1 to continue;
 * otherwise an error was printed, and the result is the exit status. */
int cli_refresher_start(struct cli_refresher **out, struct open_plan *plan, int64_t every_ns, int64_t window_ns);
void cli_refresher_stop(struct cli_refresher *refresher); /* stops the thread after its current read; accepts NULL */

/* Returns a file descriptor that is readable when a snapshot is ready. */
int cli_refresher_fd(const struct cli_refresher *refresher);

/* Returns the newest snapshot, which then belongs to the caller, or NULL; *err gets a read error, or "". */
struct cli_snapshot *cli_refresher_pop(struct cli_refresher *refresher, struct weft_error *err);
void cli_snapshot_free(struct cli_snapshot *snapshot); /* accepts NULL */

/* Requests that one of the next snapshots contains all events. */
void cli_refresher_request_all(struct cli_refresher *refresher);

/* Returns whether there were no events since the newest snapshot. */
bool cli_refresher_is_quiet(struct cli_refresher *refresher);

/* Sets the length of the window of later snapshots. */
void cli_refresher_set_window(struct cli_refresher *refresher, int64_t window_ns);

#endif
