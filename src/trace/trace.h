/* trace.h: an open trace, and its events in time order.
 *
 * Each format is one file (native.c, mirage.c, ocaml.c, sexp.c) behind struct weft_trace_format; the first bytes determine the
 * format, never the name.
 *
 * Streams and sites are numbered within the trace.  Promise ids and the clock belong to one process; join.h describes joined
 * traces.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_TRACE_H
#define WEFT_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/event.h"

struct weft_trace;
struct weft_source;
struct weft_clock_sync;

/* A file of machine code that the program had loaded. */
struct weft_module {
	struct weft_str path;
	struct weft_str build_id; /* hexadecimal digits; empty: none */
	uint64_t address;         /* load address: the offset between the file's addresses and memory */
	uint64_t size;
	uint8_t role; /* enum weft_profile_role (wire/profile.h); a library if it is not known */
};

/* The place where a promise was created: in the source, or in machine code if the recorder had no source. */
struct weft_site {
	struct weft_str file, function; /* empty: unknown */
	uint32_t line;
	const struct weft_module *module; /* one of weft_trace_info.modules, or NULL */
	/* return address of a call, in the module's addresses, or in memory if there is no module; 0: unknown */
	uint64_t offset;
};

/* Returns true if the site is known from machine code. */
static inline bool weft_site_is_machine_code(const struct weft_site *site)
{
	return site->offset || !site->line;
}

#define WEFT_NO_STACK UINT32_MAX

/* A frame of a sampled thread's stack, and through its callers the stack. */
struct weft_profile_stack {
	uint32_t site;   /* the place in the code: an index into the trace's sites */
	uint32_t caller; /* an index into the stacks, lower than that of this one; or WEFT_NO_STACK */
};

struct weft_profile_sample {
	int64_t time_ns; /* as weft_event.time_ns */
	uint32_t tid, stack;
	uint32_t part; /* in a joined trace, index of the part; else 0 */
};

/* Where threads were while each ran one promise for long, seen from outside.  Short runs have no samples. */
struct weft_profile {
	const struct weft_profile_stack *stacks;
	size_t stack_count;
	const struct weft_profile_sample *samples; /* in the order of time in each part */
	size_t sample_count;
	int64_t period_ns; /* usual time between two samples of a thread */
	uint64_t lost;     /* samples that were not kept */
};

/* An op that only the trace defines. */
struct weft_form {
	struct weft_str name;
	unsigned fields;
};

/* A field of an event of such an op. */
struct weft_field {
	struct weft_str name;
	struct weft_str text; /* if is_text */
	int64_t value;
	bool is_text, is_unsigned;
};

/* The events of one thread. */
struct weft_stream_info {
	struct weft_str name; /* name of the thread; may be empty */
	uint32_t part;        /* in a joined trace (join.h), index of the part; else 0 */
	uint16_t host;        /* in a joined trace, number of the host; threads of different hosts may have the same tid */
	/* a promise without an end was pending to the end of the trace; else the end of a freed promise may be unrecorded */
	bool records_all_ends;
	uint32_t instance; /* number in its trace; successive threads may share it */
	uint64_t tid;
	uint64_t packets;
	uint64_t bytes; /* of packets, with headers, without unused space */
	uint64_t lost_full, lost_nested,
	    lost_overwritten; /* events known to be missing, by cause; overwritten: the ring reused their packet */
};

/* An interval in which events of a stream are missing although the trace goes on: packets are missing or damaged.  Promises
 * without an end may have ended then.  Events before the oldest packet of a ring are not a gap. */
struct weft_gap {
	int64_t from_ns, to_ns; /* as weft_event.time_ns; INT64_MIN and INT64_MAX: unbounded */
	uint64_t packets;       /* number of missing packets, as far as it is known */
	uint64_t events;        /* minimum number of missing events; 0: unknown */
	uint16_t stream;
};

#define WEFT_MAX_SKIPPED 64

/* Data that could not be read and was skipped. */
struct weft_skipped {
	struct weft_error where;
	uint64_t bytes;
};

/* A part of a joined trace (join.h): the trace of one recorder. */
struct weft_part {
	struct weft_str process, host;
	const char *name; /* name of the process, with its pid or host if another part has the same name: "node@b" */
	uint64_t pid;
	bool unfinished, has_died, wrapped; /* as in weft_trace_info */
	/* it counted ticks of the first part's clock; else both are aligned by wall clock, or by bound_ns */
	bool is_same_clock;
	int64_t bound_ns; /* if it is on another host: average error bound of its times; else 0 */
	const struct weft_clock_sync
	    *clock_sync; /* conversion of its times to the first part's (see weft_part_bounds() in join.h); or NULL */
	uint32_t clock;
	uint64_t lost_no_stream;
	size_t gap_count, skipped_count, unplaced_count; /* complete after weft_trace_next() has returned 0 */
};

struct weft_trace_info {
	const char *format;                     /* "native", "mirage", "ocaml", "fxt", "sexp", "session" */
	struct weft_str host, process, command; /* empty: unknown */
	/* runtimes that were recorded; empty: none, or the program records by itself */
	struct weft_str runtimes;
	/* things that the program did and that the format never records; empty: none */
	struct weft_str missing_data;
	/* "own.state 3, own.map 1": events of the program whose bytes are no text, by name; empty: none */
	struct weft_str unread;
	uint64_t pid;
	int64_t clock_origin_ns; /* add to an event's time to get UTC ns since 1970; 0 if has_origin is false */
	bool has_origin;
	bool unfinished; /* its program did not end it: the program still records, or was killed */
	bool has_died;   /* unfinished, and weft record saw the process end, at until_ns */
	/* time (as weft_event.time_ns) until which the process lived at least; 0: its last event */
	int64_t until_ns;
	/* it was made of memory that was looked at once, without a recorder: what it has is true of that moment, and nothing is
	 * known of the time before */
	bool is_seen_once;
	int64_t seen_wall_ns;    /* UTC time of that moment; 0: unknown */
	bool wrapped;            /* older events were overwritten: promises may have started before the trace */
	uint64_t found_packets;  /* number of packets, if the trace was found in an image; else 0 */
	uint64_t lost_no_stream; /* events of threads that got no stream */
	const struct weft_stream_info *streams;
	size_t stream_count;
	const struct weft_site *sites;
	size_t site_count;
	const uint32_t *site_of_key; /* by key in the trace; WEFT_NO_SITE: none */
	size_t key_count;
	const struct weft_module *modules;
	size_t module_count;
	struct weft_profile profile;
	const struct weft_form *forms;
	size_t form_count;
	const struct weft_gap *gaps; /* in time order within each stream */
	size_t gap_count;
	const struct weft_part *parts; /* parts of a joined trace; else none */
	size_t part_count;
	const struct weft_skipped *skipped; /* at most WEFT_MAX_SKIPPED; skipped_count counts all */
	size_t skipped_count;
	/* Number of skipped places that may have had events of any time.  Other skipped places had no events (names, unused
	 * space), or a gap has their time. */
	size_t unplaced_count;
	bool has_missing_names; /* some names of things or of source locations are missing */
};

/* Opens the trace that `path` names: a directory, a file, or "-" for standard input.
 *
 * On success the caller frees *out with weft_trace_close().  On failure *out is unchanged.  WEFT_ENOENT, WEFT_EACCES, WEFT_EIO,
 * WEFT_EFORMAT (nothing can be read), WEFT_ENOMEM.  The whole trace is read at once, so later changes of its files do not affect
 * it. follow.h detects such changes. */
int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* Opens a trace by searching a file for a ring, as in a memory image, whatever the file starts with.  `uuid`: the first
 * hexadecimal digits of the ring's UUID; NULL: the newest ring.  WEFT_EINVAL: several rings match. */
int weft_trace_open_image(struct weft_trace **out, const char *path, const char *uuid, struct weft_error *err);

/* Opens the trace in the memory of a process; if the process records into a directory, opens that.  WEFT_ENOENT (no such
 * process), WEFT_EACCES, WEFT_EFORMAT (no ring). */
int weft_trace_open_process(struct weft_trace **out, long pid, const char *uuid, struct weft_error *err);

/* Opens a trace in memory, which must stay valid until weft_trace_close(); `name` is for error messages. */
int weft_trace_open_memory(struct weft_trace **out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* Opens a trace in allocated memory, which becomes the trace's, on failure too; `name` is for error messages. */
int weft_trace_open_owned(struct weft_trace **out, void *bytes, size_t size, const char *name, struct weft_error *err);

/* Opens a trace by reading a file descriptor, such as a pipe, to its end; the descriptor stays the caller's.  `name` is for error
 * messages.  Also WEFT_ETOOBIG (source.h: weft_source_limit()). */
int weft_trace_open_fd(struct weft_trace **out, int fd, const char *name, struct weft_error *err);

/* Opens a trace in `size` bytes that may be written concurrently and may be invalid: they are copied before they are checked.
 * `read` copies `bytes` present bytes at `offset`, each aligned 8-byte word atomically; false fails with WEFT_EIO.  It is not
 * called after this function has returned. */
int weft_trace_open_live(struct weft_trace **out, bool (*read)(void *ctx, uint64_t offset, void *to, size_t bytes), void *ctx,
    size_t size, const char *name, struct weft_error *err);

/* Closes a trace and frees all its events and texts.  Accepts NULL. */
void weft_trace_close(struct weft_trace *trace);

/* Returns the properties of a trace.  Gaps, and counts of skipped and lost data, are complete after weft_trace_next() has
 * returned 0. */
const struct weft_trace_info *weft_trace_info(const struct weft_trace *trace);

/* Returns the next events in time order (ties: by stream, then as recorded); *events is valid until the next call.
 *
 * Returns 1 with *count > 0; 0 at the end; WEFT_ENOMEM or WEFT_EIO.  Damage is not an error: it is skipped and noted in
 * weft_trace_info.  Within a stream, time never goes back: an event with an earlier time gets its predecessor's time, and is
 * noted. */
int weft_trace_next(struct weft_trace *trace, const struct weft_event **events, size_t *count);

/* Returns a field of an event with op WEFT_EVENT_OTHER; `index` is below the number of fields of its form.  False: the event has
 * another op. */
bool weft_trace_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);

/* Names a site; copies the texts.  No thread may read the trace or its model meanwhile.  WEFT_ENOMEM. */
int weft_trace_name_site(struct weft_trace *trace, uint32_t site, struct weft_str file, struct weft_str function, uint32_t line);

/* Returns the file name without suffix and version: "libuv.so.1.0.0" gives "libuv".
 * NULL gives an empty name. */
struct weft_str weft_module_short_name(const struct weft_module *module);

/* Returns the library of a site: the module of its code, or the folder of its source; "the program" for a source without a
 * folder. */
struct weft_str weft_site_library(const struct weft_site *site);

/* Returns true if the site is in libffi, by which Python, JavaScript and others call C: the real caller is unknown. */
bool weft_site_is_bridge(const struct weft_site *site);

/* Formats a site in one line: "function (file.c:12)", or the known parts of it. "libuv+0x8a8c0" is a place in machine code
 * without a name, with a short module name; "a call through libffi" is a bridge.  The result is valid UTF-8 with a NUL; returns
 * the full length, as snprintf does. */
size_t weft_site_format(const struct weft_site *site, char *buf, size_t size);

/* Returns the factor of promise ids in a joined trace: id = id in the part * factor + number of the part.  The factor is a power
 * of ten. */
static inline int64_t weft_part_stride(size_t parts)
{
	int64_t stride = 1;
	while (stride < (int64_t)parts)
		stride *= 10;
	return stride;
}

/* Finds the sites in the text of a stack detail, the innermost first, WEFT_NO_SITE for unknown ones.  Stores at most `capacity`
 * sites, and returns the total number. */
size_t weft_trace_callers(const struct weft_trace_info *info, struct weft_str text, uint32_t *sites, size_t capacity);

/* Returns the files from which the trace was opened (source.h), valid until it is closed. */
const struct weft_source *weft_trace_source(const struct weft_trace *trace);

/* Receives a complete file.  A non-zero result stops saving with WEFT_EIO. */
typedef int weft_trace_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* Changes to make in a copy of a native trace. */
struct weft_trace_edit {
	bool is_cut;
	/* If is_cut: events before this time (as weft_event.time_ns) are left out, as if overwritten.  In a trace opened from a
	 * position: the time of that position. */
	int64_t from_ns;
	/* if is_cut: events recorded for each stream at that time; their own times are ignored */
	const struct weft_event *checkpoint;
	size_t checkpoint_count;
	const char *reason; /* unless NULL: why the copy is kept; recorded as a snapshot after the last event */
	bool runs_on;       /* with a reason: the program runs while the copy is made */
	/* Unless NULL: edits a text in place and keeps its length; called for each text that a program or its user may have
	 * chosen. */
	void (*text)(void *ctx, char *text, uint32_t bytes);
	void *ctx;
};

/* Gives the trace's files as they were when it was opened, even if a program wrote it meanwhile.  A native trace gives the files
 * of a directory, `metadata` last; a joined trace a folder for each part; another trace its single file, named "".  Damaged data
 * is left out.  Names given by weft_trace_name_site() are included, as plain sites.  `edit` may be NULL.  WEFT_EIO, WEFT_ENOMEM;
 * WEFT_ENOTSUP: an edit of a trace that is not native, or a cut of a joined trace. */
int weft_trace_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx,
    struct weft_error *err);

/* Receives a line with a NUL and without its line end; the callback may change it.  A non-zero result stops. */
typedef int weft_trace_line_fn(void *ctx, char *line);

/* Gives the raw records of a runtime before conversion to events: for OCaml 5 what its own reader prints, ring after ring.
 * Returns 0, the result of write_line, or WEFT_EINVAL if the format's events are the raw records. */
int weft_trace_lines(const struct weft_trace *trace, weft_trace_line_fn *write_line, void *ctx);

/* Returns to the first event. */
void weft_trace_rewind(struct weft_trace *trace);

#endif
