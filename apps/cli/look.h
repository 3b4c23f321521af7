/* look.h: what operands name, read again and again in an OS thread of its own while programs record, without a word on stderr.
 *
 * Of a trace that a program records just now a look is of the newest events and what holds since before (model/follower.h); of
 * all that a ring still has there is one when somebody asks.  Anything else is read anew as a whole.
 *
 * Each look is a model of its own, and belongs to who took it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_LOOK_H
#define WEFT_CLI_LOOK_H

#include "cli.h"
#include "model/follower.h"
#include "viewer/live.h"

struct cli_look {
	struct cli_input input;
	struct weft_followed *followed; /* owns model and trace of the input; NULL: that does */
	int64_t from_ns;                /* what was before, since the first event, it only knows the end of */
	uint64_t events;                /* that were read up to its end */
	bool is_whole;                  /* it has all that there is */
	struct weft_findings *findings; /* NULL: there was no memory for them */
	struct weft_live *live;         /* of its end */
	bool is_recorded;               /* a program records into it just now */
};

struct cli_looker;

/* Looks at what the operands name: traces, directories of them, numbers of processes; they must live as long.  Every every_ns, or
 * as rarely as it takes for a tenth of a processor.  Returns -1 to go on, else an exit status: the error has been told. */
int cli_looker_start(struct cli_looker **out, char **paths, int count, int64_t every_ns, int64_t window_ns);
void cli_looker_stop(struct cli_looker *looker); /* accepts NULL; waits until it has read to the end */

/* Is readable when there is something to take. */
int cli_looker_fd(const struct cli_looker *looker);

/* The newest look, which is now the caller's, or NULL; and what could not be read, or "". */
struct cli_look *cli_looker_take(struct cli_looker *looker, struct weft_error *err);
void cli_look_free(struct cli_look *look); /* accepts NULL */

/* A later look, once, is of all that there is. */
void cli_looker_ask_for_all(struct cli_looker *looker);

/* Whether nothing has come since the newest look. */
bool cli_looker_is_quiet(struct cli_looker *looker);

/* Later looks are of so long a stretch. */
void cli_looker_set_window(struct cli_looker *looker, int64_t window_ns);

#endif
