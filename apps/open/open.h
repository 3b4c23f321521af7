/* open.h: opens what the operands of a verb name as one trace, in four steps: classify, open the parts, join, annotate.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_OPEN_OPEN_H
#define WEFT_OPEN_OPEN_H

#include "base/vec.h"
#include "session/session.h"
#include "trace/trace.h"

/* The kind of thing that an operand or a part names.  Each class of parts has one function that opens it. */
enum open_class {
	OPEN_FILE,      /* a trace, an archive of traces or an image of memory: src/trace/open.c decides by the first bytes */
	OPEN_DIRECTORY, /* the directory of one trace, or another tracer's CTF */
	OPEN_STDIN,     /* "-" */
	OPEN_PROCESS,   /* the memory of a process: its id, where no file has that name */
	OPEN_IMAGE,     /* one ring in an image of memory */
	OPEN_DOMAIN,    /* "xen:NAME" */
};

/* A process that records into a directory is a part of the class OPEN_DIRECTORY.  A session is one part for each of its traces.
 */
struct open_plan {
	char name[300]; /* of all parts together, for messages */
	WEFT_VEC(const char *) paths;
	WEFT_VEC(enum open_class) classes; /* of the paths, one by one */
	size_t copies;                     /* traces of sessions that were left out, because another part has their events */
	bool is_session;                   /* one operand alone names several parts */
	bool is_lenient;                   /* parts that cannot be opened are left out and noted, unless none is left */
	const char *ring;                  /* the first digits of the UUID of a ring in memory, or NULL: the newest ring */
	session_paths operands;            /* with directories in place of processes: these can be read after a process ends */
	void (*annotate)(struct weft_trace *part); /* gives a part names of its places; may be NULL */
};

/* Step 1.  A plan is lenient only for a session.  WEFT_ENOMEM; then *out is untouched. */
int open_classify(struct open_plan **out, char *const *operands, int count, struct weft_error *err);

/* A plan with one part of the given class.  The plan borrows the text of `ring`, which must live longer. */
int open_classify_as(struct open_plan **out, enum open_class class, const char *path, const char *ring, struct weft_error *err);

/* Classifies the operands again: traces may have come or gone.  On failure (no memory) the plan is as before. */
bool open_reclassify(struct open_plan *plan);

/* Accepts NULL. */
void open_plan_destroy(struct open_plan *plan);

/* Steps 2 to 4: opens each part, joins several (trace/join.h), and annotates.  The trace does not need the plan.
 * Fails like the function of a part's class, weft_trace_join(), or with WEFT_EINVAL: a part is a copy of another one, or an
 * archive of several traces. */
int open_run(struct weft_trace **out, const struct open_plan *plan, struct weft_error *err);

/* Opens one part: step 2 alone, for a path that is no session. */
int open_part(struct weft_trace **out, const char *path, struct weft_error *err);

/* The class of a path; that of a session is OPEN_DIRECTORY. */
enum open_class open_class_of(const char *path);

/* Notes for the user: left-out copies, and the clocks of joined traces that are not exact. */
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

/* Takes the trace of standard input, which the next plan that names "-" opens again: a pipe gives its bytes only once. */
void open_keep_stdin(struct weft_trace *trace);

/* The directory into which a process records, in allocated memory; NULL: it has none, or there is no memory. */
char *open_directory_of_process(const char *pid);

#endif
