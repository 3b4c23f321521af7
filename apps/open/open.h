/* open.h: opens the traces that the operands of a verb name as one trace, in four steps: classify, open the parts, join,
 * annotate.  SPDX-License-Identifier: ISC */
#ifndef WEFT_OPEN_OPEN_H
#define WEFT_OPEN_OPEN_H

#include "base/vec.h"
#include "session/session.h"
#include "trace/trace.h"

/* Type of thing that an operand or a part of a plan names.  For each class of parts, one function opens such a part. */
enum open_class {
	OPEN_FILE,      /* a trace, an archive of traces or an image of memory; src/trace/open.c decides by the first bytes */
	OPEN_DIRECTORY, /* directory of one trace, or of CTF by another tracer */
	OPEN_STDIN,     /* "-" */
	OPEN_PROCESS,   /* memory of a process, named by its id if no file has that name */
	OPEN_IMAGE,     /* one ring in an image of memory */
	OPEN_DOMAIN,    /* "xen:NAME" */
};

/* Plan for opening operands.  If a process records into a directory, the directory is a part of class OPEN_DIRECTORY.  Each
 * trace of a session is a part of its own.
 */
struct open_plan {
	char name[300]; /* name of all parts together, for messages */
	WEFT_VEC(const char *) paths;
	WEFT_VEC(enum open_class) classes; /* class of each path, in the order of the paths */
	/* Number of traces of sessions that were left out, because another part contains their events. */
	size_t copies;
	bool is_session; /* whether a single operand names several parts */
	/* Whether parts that cannot be opened are noted and left out, unless no part is left. */
	bool is_lenient;
	const char *ring; /* first digits of the UUID of a ring in memory; NULL for the newest ring */
	/* Operands, with directories in place of processes, because a directory can still be read after the process ends. */
	session_paths operands;
	void (*annotate)(struct weft_trace *part); /* callback that adds names of call sites to a part; may be NULL */
};

/* Step 1.  Makes the plan.  A plan is lenient only for a session.  Fails with WEFT_ENOMEM and leaves *out unchanged. */
int open_classify(struct open_plan **out, char *const *operands, int count, struct weft_error *err);

/* Makes a plan with one part of the given class.  The plan borrows the text of `ring`, which must live longer than the plan. */
int open_classify_as(struct open_plan **out, enum open_class class, const char *path, const char *ring, struct weft_error *err);

/* Classifies the operands again, because traces may have come or gone.  On failure (no memory) the plan is unchanged. */
bool open_reclassify(struct open_plan *plan);

/* Accepts NULL. */
void open_plan_destroy(struct open_plan *plan);

/* Opens each part, joins several parts (trace/join.h), and annotates them (steps 2 to 4).  The opened trace does not need the
 * plan.
 * Fails like the function that opens a part, like weft_trace_join(), or with WEFT_EINVAL if a part is a copy of another part or
 * an archive of several traces. */
int open_run(struct weft_trace **out, const struct open_plan *plan, struct weft_error *err);

/* Opens one part (step 2 alone), for a path that is no session. */
int open_part(struct weft_trace **out, const char *path, struct weft_error *err);

/* Returns the class of a path; the class of a session is OPEN_DIRECTORY. */
enum open_class open_class_of(const char *path);

/* Prints notes for the user about traces that were left out as copies, and about inexact clocks of joined traces. */
typedef __attribute__((format(printf, 1, 2))) void open_note_fn(const char *format, ...);
void open_note_copies(const struct open_plan *plan, open_note_fn *note);
void open_note_clocks(const struct open_plan *plan, const struct weft_trace *trace, open_note_fn *note);

/* Returns whether an operand is a session with several traces. */
static inline bool open_has_session(const struct open_plan *plan)
{
	return plan->paths.count > plan->operands.count;
}

/* Returns whether a part is the memory of a process. */
bool open_has_process(const struct open_plan *plan);

/* Takes over the trace of standard input, for the next plan that names "-": a pipe gives its bytes only once. */
void open_keep_stdin(struct weft_trace *trace);

/* Returns the directory into which a process records, in allocated memory; NULL if it has none, or without memory. */
char *open_directory_of_process(const char *pid);

#endif
