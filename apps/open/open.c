/* open.c: opens the parts of a plan (the traces that operands name) and joins them.  SPDX-License-Identifier: ISC */
#include "open/open.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/stacks.h"
#endif
#include "ctf/foreign.h"
#include "look/look.h"
#include "trace/clock_sync.h"
#include "trace/join.h"
#include "trace/multi_open.h"
#include "xen/domain.h"

/* ---- Open: one function for each class ---- */

static struct weft_trace *kept_stdin;

void open_keep_stdin(struct weft_trace *trace)
{
	weft_trace_close(kept_stdin);
	kept_stdin = trace;
}

static int open_stdin(struct weft_trace **out, const char *path, struct weft_error *err)
{
	if (!kept_stdin)
		return weft_trace_open(out, path, err);
	*out = kept_stdin;
	kept_stdin = NULL;
	weft_trace_rewind(*out);
	return WEFT_OK;
}

/* ---- Programs without a recorder ---- */

#ifdef WEFT_HAS_NAMES
static weft_look_unwind_fn *const unwind = weft_stacks_find;
#else
static weft_look_unwind_fn *const unwind = NULL;
#endif

/* Opens a ring in the memory of a process or, if there is none, shows what the process waits for. */
static int open_process(struct weft_trace **out, long pid, const char *ring, struct weft_error *err)
{
	int status = weft_trace_open_process(out, pid, ring, err);
	if (!ring && (status == WEFT_EFORMAT || status == WEFT_EACCES))
		status = weft_look_process(out, pid, unwind, err);
	return status;
}

/* Opens a file: a trace, or a core dump without a ring. */
static int open_file(struct weft_trace **out, const char *path, struct weft_error *err)
{
	int status = weft_trace_open(out, path, err);
	unsigned char head[64];
	const int file = status == WEFT_EFORMAT ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	const ssize_t got = file >= 0 ? pread(file, head, sizeof head, 0) : -1;
	if (got > 0 && weft_look_is_core(head, (size_t)got))
		status = weft_look_core(out, file, path, unwind, err);
	if (file >= 0)
		close(file);
	return status;
}

static int open_as(struct weft_trace **out, enum open_class class, const char *path, const char *ring, struct weft_error *err)
{
	int status = WEFT_EINVAL;
	switch (class) {
	case OPEN_FILE: status = open_file(out, path, err); break;
	case OPEN_DIRECTORY:
		status = weft_trace_open(out, path, err);
		if (status == WEFT_EFORMAT)
			status = foreign_trace_open(out, path, err);
		break;
	case OPEN_STDIN: status = open_stdin(out, path, err); break;
	case OPEN_PROCESS: status = open_process(out, strtol(path, NULL, 10), ring, err); break;
	case OPEN_IMAGE: status = weft_trace_open_image(out, path, ring, err); break;
	case OPEN_DOMAIN: status = domain_open(out, path, err); break;
	}
	return status;
}

int open_part(struct weft_trace **out, const char *path, struct weft_error *err)
{
	return open_as(out, open_class_of(path), path, NULL, err);
}

/* Parts of a plan that are open, and the reasons why other parts are not. */
struct opening {
	struct weft_trace **parts;
	struct weft_error *left_out;
	size_t opened, failed;
};

static int open_parts(struct opening *o, const struct open_plan *plan, struct weft_error *err)
{
	int status = WEFT_OK;
	for (size_t i = 0; i < plan->paths.count && status == WEFT_OK; i++) {
		struct weft_error *why = &o->left_out[o->failed];
		const bool may_fail = plan->is_lenient && o->opened + plan->paths.count - i > 1;
		status = open_as(&o->parts[o->opened], plan->classes.items[i], plan->paths.items[i], plan->ring, why);
		o->opened += status == WEFT_OK;
		if (status < 0 && may_fail) {
			o->failed++;
			status = WEFT_OK;
		} else if (status < 0 && err) {
			*err = *why;
		}
	}
	return status;
}

/* ---- Join ---- */

/* If the join succeeds, the joined trace owns the parts. */
static int join_parts(struct weft_trace **out, struct opening *o, const struct open_plan *plan, struct weft_error *err)
{
	int status = WEFT_OK;
	if (plan->paths.count > 1) {
		status = weft_multi_join(out, o->parts, o->opened, plan->name, err);
		for (size_t i = 0; i < o->failed && status == WEFT_OK; i++)
			weft_multi_note_left_out(*out, &o->left_out[i]);
	} else {
		*out = o->parts[0];
	}
	return status;
}

int open_run(struct weft_trace **out, const struct open_plan *plan, struct weft_error *err)
{
	struct opening o = {
	    .parts = calloc(plan->paths.count, sizeof *o.parts),
	    .left_out = calloc(plan->paths.count, sizeof *o.left_out),
	};
	if (!o.parts || !o.left_out) {
		free(o.parts);
		free(o.left_out);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	int status = open_parts(&o, plan, err);
	for (size_t i = 0; i < o.opened && status == WEFT_OK && plan->annotate; i++)
		plan->annotate(o.parts[i]);
	if (status == WEFT_OK)
		status = join_parts(out, &o, plan, err);
	for (size_t i = 0; i < o.opened && status < 0; i++)
		weft_trace_close(o.parts[i]);
	free(o.parts);
	free(o.left_out);
	return status;
}

/* ---- Annotate: notes for the user ---- */

void open_note_copies(const struct open_plan *plan, open_note_fn *note)
{
	if (plan->copies)
		note("%zu %s of other given traces %s left out", plan->copies, plan->copies == 1 ? "copy" : "copies",
		    plan->copies == 1 ? "is" : "are");
}

void open_note_clocks(const struct open_plan *plan, const struct weft_trace *trace, open_note_fn *note)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	size_t by_wall = 0, by_messages = 0;
	int64_t bound_ns = 0;
	for (size_t i = 0; i < info->part_count; i++) {
		by_messages += info->parts[i].bound_ns > 0;
		by_wall += !info->parts[i].is_same_clock && !info->parts[i].bound_ns;
		bound_ns = info->parts[i].bound_ns > bound_ns ? info->parts[i].bound_ns : bound_ns;
	}
	if (by_wall)
		note("%s: %zu of %zu traces have another clock, aligned by wall time to a few us", plan->name, by_wall,
		    info->part_count);
	char bound[WEFT_DURATION_BYTES];
	if (by_messages)
		note("%s: %zu of %zu traces are of other hosts, with clocks aligned by messages to +-%s on average", plan->name,
		    by_messages, info->part_count, weft_duration_text(bound, bound_ns));
	const struct weft_clock_sync *clock_sync = weft_trace_clock_sync(trace);
	if (clock_sync && clock_sync->contradictory)
		note("%s: in %zu connection%s between hosts, such as %s, one end read bytes that the other never wrote; "
		     "these connections cannot align the clocks",
		    plan->name, clock_sync->contradictory, clock_sync->contradictory == 1 ? "" : "s", clock_sync->contradiction);
}
