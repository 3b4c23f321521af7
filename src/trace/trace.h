/* trace.h: opens traces, and returns their events in order of time.
 *
 * Each format is one file (native.c, mirage.c, ocaml.c, sexp.c) behind struct weft_trace_format; the first bytes determine the
 * format, never the file name.
 *
 * Streams and sites are numbered within the trace.  Promise ids and the clock belong to one process; join.h describes joined
 * traces.  SPDX-License-Identifier: ISC */
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
	uint64_t address;         /* load address: the offset between addresses in the file and in memory */
	uint64_t size;
	uint8_t role; /* enum weft_profile_role (wire/profile.h); a library if the role is unknown */
};

/* The place where a promise was created: in the source code, or in machine code if the recorder knew no source. */
struct weft_site {
	struct weft_str file, function; /* empty: unknown */
	uint32_t line;
	const struct weft_module *module; /* one of weft_trace_info.modules, or NULL */
	/* return address of a call: an address in the module, or in memory if there is no module; 0 if it is unknown */
	uint64_t offset;
};

/* Returns true if the site is known only from machine code. */
static inline bool weft_site_is_machine_code(const struct weft_site *site)
{
	return site->offset || !site->line;
}

#define WEFT_NO_STACK UINT32_MAX

/* A frame of a sampled thread's stack; the frame and its callers are the stack. */
struct weft_profile_stack {
	uint32_t site; /* index of the place in the code in the trace's sites */
	/* index of the calling frame in the stacks, which is lower than the index of this frame; or WEFT_NO_STACK */
	uint32_t caller;
};

struct weft_profile_sample {
	int64_t time_ns; /* as weft_event.time_ns */
	uint32_t tid, stack;
	uint32_t part; /* index of the part in a joined trace; otherwise 0 */
};

/* Samples of where threads were while promises ran, taken by another process. */
struct weft_profile {
	const struct weft_profile_stack *stacks;
	size_t stack_count;
	const struct weft_profile_sample *samples; /* samples, in order of time within each part */
	size_t sample_count;
	int64_t period_ns;   /* usual time between two samples of a thread */
	uint64_t lost;       /* number of samples that were not kept */
	uint8_t way;         /* enum weft_profile_way (wire/profile.h): which runs have samples */
	struct weft_str why; /* why no more runs have samples; empty if unknown */
};

/* A sampled allocation of memory. */
struct weft_allocation {
	int64_t time_ns;  /* as weft_event.time_ns */
	int64_t freed_ns; /* INT64_MAX if the memory was not freed before the end of the trace */
	int64_t promise;  /* id of the promise that ran, or WEFT_SYSTEM_ID */
	int64_t bytes;    /* estimated size of all allocations for which the sample stands */
	uint32_t stack;   /* index into the stacks, or WEFT_NO_STACK */
	uint32_t number;  /* in its part */
};

/* Samples of allocations. */
struct weft_memory {
	const struct weft_profile_stack *stacks; /* the site may be WEFT_NO_SITE */
	size_t stack_count;
	const struct weft_allocation *allocations; /* allocations, in order of time within each part */
	size_t allocation_count;
	uint64_t period_bytes; /* mean number of allocated bytes for each sample */
	uint64_t lost;         /* number of samples that were not kept */
	bool misses_ends;      /* true if an allocation without an end may have been freed */
};

/* An op that only the trace defines. */
struct weft_form {
	struct weft_str name;
	unsigned fields;
};

/* A field of an event whose op only the trace defines. */
struct weft_field {
	struct weft_str name;
	struct weft_str text; /* if is_text */
	int64_t value;
	bool is_text, is_unsigned;
};

/* Properties of a stream: the events of one thread. */
struct weft_stream_info {
	struct weft_str name; /* name of the thread; may be empty */
	uint32_t part;        /* index of the part in a joined trace (join.h); otherwise 0 */
	uint16_t host;        /* number of the host in a joined trace; threads of different hosts may have the same tid */
	/* true if a promise without a recorded end was pending until the end of the trace; false if the end of a freed promise
	 * may be unrecorded */
	bool records_all_ends;
	uint32_t instance; /* number of the instance in its trace; successive threads may share it */
	uint64_t tid;
	uint64_t packets;
	uint64_t bytes; /* size of the stream's packets with their headers, without unused space */
	uint64_t lost_full, lost_nested,
	    /* numbers of events that are known to be missing, by cause; overwritten: the ring reused their packet */
	    lost_overwritten;
};

/* An interval in which events of a stream are missing although the trace continues: packets are missing or damaged.  Promises
 * without a recorded end may have ended in the gap.  The missing events before the oldest packet of a ring are not a gap. */
struct weft_gap {
	int64_t from_ns, to_ns; /* interval as in weft_event.time_ns; INT64_MIN and INT64_MAX if it is unbounded */
	uint64_t packets;       /* number of missing packets, as far as it is known */
	uint64_t events;        /* minimum number of missing events; 0 if it is unknown */
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
	const char *name;          /* name of the process, with its pid or host if another part has the same name: "node@b" */
	const unsigned char *uuid; /* as in weft_trace_info */
	uint64_t pid;
	bool unfinished, has_died, is_stopped, wrapped; /* as in weft_trace_info */
	/* true if the part counted ticks of the first part's clock; otherwise its times are aligned by wall clock, or with the
	 * error bound_ns */
	bool is_same_clock;
	int64_t bound_ns; /* average error bound of the part's times if it is on another host; otherwise 0 */
	const struct weft_clock_sync
	    /* conversion of the part's times to the clock of the first part (see weft_part_bounds() in join.h); or NULL */
	    *clock_sync;
	uint32_t clock;
	uint64_t lost_no_stream;
	/* numbers of gaps and of skipped places, complete after weft_trace_next() has returned 0 */
	size_t gap_count, skipped_count, unplaced_count;
};

struct weft_trace_info {
	const char *format;                     /* name of the format: "native", "mirage", "ocaml", "fxt", "sexp", "session" */
	struct weft_str host, process, command; /* empty: unknown */
	/* runtimes that were recorded; empty if there are none, or if the program itself records */
	struct weft_str runtimes;
	/* things that the program did but that the format never records; empty if there are none */
	struct weft_str missing_data;
	/* events of the program whose bytes are no text, by name: "own.state 3, own.map 1"; empty if there are none */
	struct weft_str unread;
	const unsigned char *uuid; /* 16 bytes that identify the recording; NULL if the format has none */
	uint64_t pid;
	/* number that makes UTC ns since 1970 of an event's time when it is added; 0 if has_origin is false */
	int64_t clock_origin_ns;
	bool has_origin;
	bool unfinished; /* true if the program did not end the trace: the program still records, or was killed */
	bool is_stopped; /* true if another process ended the recording, and the program went on */
	bool has_died;   /* true if the trace is unfinished, and weft record saw the process end, at until_ns */
	/* time (as in weft_event.time_ns) until which the process lived at least; 0 for the time of its last event */
	int64_t until_ns;
	/* true if the trace was made from one look at the program's memory, without a recorder: it describes that moment, and
	 * nothing is known of the time before */
	bool is_seen_once;
	int64_t seen_wall_ns;    /* UTC time of that look at the memory; 0 if it is unknown */
	bool wrapped;            /* true if older events were overwritten, so that promises may have started before the trace */
	uint64_t found_packets;  /* number of packets if the trace was found in an image; otherwise 0 */
	uint64_t lost_no_stream; /* number of events of threads that got no stream */
	const struct weft_stream_info *streams;
	size_t stream_count;
	const struct weft_site *sites;
	size_t site_count;
	const uint32_t *site_of_key; /* by key in the trace: index of its site; WEFT_NO_SITE if there is none */
	size_t key_count;
	const struct weft_module *modules;
	size_t module_count;
	struct weft_profile profile;
	struct weft_memory memory;
	const struct weft_form *forms;
	size_t form_count;
	const struct weft_gap *gaps; /* gaps, in order of time within each stream */
	size_t gap_count;
	const struct weft_part *parts; /* parts of a joined trace; otherwise none */
	size_t part_count;
	const struct weft_skipped *skipped; /* skipped data, at most WEFT_MAX_SKIPPED items; skipped_count counts all */
	size_t skipped_count;
	/* Number of skipped places that may have had events of any time.  Other skipped places had no events (names, unused
	 * space), or a gap has the time of their events. */
	size_t unplaced_count;
	bool has_missing_names; /* true if some names of promises or of source locations are missing */
};

/* Opens the trace that `path` names: a directory, a file, or "-" for standard input.
 *
 * On success the caller frees *out with weft_trace_close().  On failure *out is unchanged.  Fails with WEFT_ENOENT,
 * WEFT_EACCES, WEFT_EIO, WEFT_EFORMAT (nothing can be read) or WEFT_ENOMEM.  The whole trace is read at once, so later changes
 * of its files do not affect it. follow.h detects such changes. */
int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* Opens a trace by searching a file for a ring, as in a memory image, whatever the first bytes of the file are.  `uuid` has the
 * first hexadecimal digits of the ring's UUID; NULL for the newest ring.  WEFT_EINVAL: several rings match. */
int weft_trace_open_image(struct weft_trace **out, const char *path, const char *uuid, struct weft_error *err);

/* Opens the trace in the memory of a process; if the process records into a directory, opens that directory.  Fails with
 * WEFT_ENOENT (no such process), WEFT_EACCES or WEFT_EFORMAT (no ring). */
int weft_trace_open_process(struct weft_trace **out, long pid, const char *uuid, struct weft_error *err);

/* Opens a trace in memory, which must stay valid until weft_trace_close(); `name` is used in error messages. */
int weft_trace_open_memory(struct weft_trace **out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* Opens a trace in allocated memory, which the trace owns from then on, on failure too; `name` is used in error messages. */
int weft_trace_open_owned(struct weft_trace **out, void *bytes, size_t size, const char *name, struct weft_error *err);

/* Opens a trace by reading a file descriptor, such as a pipe, to its end; the caller still owns the file descriptor.  `name` is
 * used in error messages.  Also WEFT_ETOOBIG (source.h: weft_source_limit()). */
int weft_trace_open_fd(struct weft_trace **out, int fd, const char *name, struct weft_error *err);

/* Opens a trace in `size` bytes to which a program may be writing and which may be invalid: they are copied before they are
 * checked.  `read` copies `bytes` present bytes at `offset`, each aligned 8-byte word atomically; if it returns false, the
 * function fails with WEFT_EIO.  `read` is not called after this function has returned. */
int weft_trace_open_live(struct weft_trace **out, bool (*read)(void *ctx, uint64_t offset, void *to, size_t bytes), void *ctx,
    size_t size, const char *name, struct weft_error *err);

/* Closes a trace and frees all of its events and texts.  Accepts NULL. */
void weft_trace_close(struct weft_trace *trace);

/* Returns the properties of a trace.  Gaps, and the numbers of skipped and lost data, are complete after weft_trace_next() has
 * returned 0. */
const struct weft_trace_info *weft_trace_info(const struct weft_trace *trace);

/* Returns the next events in order of time; events with equal times are sorted by stream, then in the recorded order. *events
 * is valid until the next call.
 *
 * Returns 1 with *count > 0; 0 at the end; WEFT_ENOMEM or WEFT_EIO on failure.  Damaged data is not an error: it is skipped and
 * noted in weft_trace_info.  Within a stream, time never goes back: an event with an earlier time gets the time of the event
 * before it, and is noted. */
int weft_trace_next(struct weft_trace *trace, const struct weft_event **events, size_t *count);

/* Returns a field of an event with op WEFT_EVENT_OTHER; `index` must be below the number of fields of its form.  Returns false
 * if the event has another op. */
bool weft_trace_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);

/* Sets the name of a site; copies the texts.  During the call, no thread may read the trace or its model.  WEFT_ENOMEM. */
int weft_trace_name_site(struct weft_trace *trace, uint32_t site, struct weft_str file, struct weft_str function, uint32_t line);

/* Returns the file name of a module without suffix and version: "libuv.so.1.0.0" gives "libuv".  A NULL module gives an empty
 * name. */
struct weft_str weft_module_short_name(const struct weft_module *module);

/* Returns the library of a site: the module of its code, or the folder of its source; "the program" for a source without a
 * folder. */
struct weft_str weft_site_library(const struct weft_site *site);

/* Returns true if the site is in libffi, by which Python, JavaScript and other languages call C: the real caller is unknown. */
bool weft_site_is_bridge(const struct weft_site *site);

/* Formats a site in one line: "function (file.c:12)", or the known parts of it. "libuv+0x8a8c0" is a place in machine code
 * without a name, with a short module name; "a call through libffi" is a site in libffi.  The result is valid UTF-8 with a NUL;
 * returns the full length, as snprintf does. */
size_t weft_site_format(const struct weft_site *site, char *buf, size_t size);

/* Returns the factor of promise ids in a joined trace: the id is the id in the part * factor + the number of the part.  The
 * factor of promise ids is a power of ten. */
static inline int64_t weft_part_stride(size_t parts)
{
	int64_t stride = 1;
	while (stride < (int64_t)parts)
		stride *= 10;
	return stride;
}

/* Finds the sites in the text of a stack detail, the innermost first; an unknown site is WEFT_NO_SITE.  Stores at most
 * `capacity` sites, and returns the total number of sites. */
size_t weft_trace_callers(const struct weft_trace_info *info, struct weft_str text, uint32_t *sites, size_t capacity);

/* Returns the files from which the trace was opened (source.h), valid until the trace is closed. */
const struct weft_source *weft_trace_source(const struct weft_trace *trace);

/* Receives a complete file.  Receives a saved file; a non-zero result stops saving with WEFT_EIO. */
typedef int weft_trace_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* Changes to make in a copy of a native trace. */
struct weft_trace_edit {
	bool is_cut;
	/* If is_cut: events before this time (as in weft_event.time_ns) are left out, as if they were overwritten.  In a trace
	 * that was opened from a position: the time of that position. */
	int64_t from_ns;
	/* if is_cut: events that are recorded for each stream at from_ns; their own times are ignored */
	const struct weft_event *checkpoint;
	size_t checkpoint_count;
	const char *reason; /* NULL, or the reason why the copy is made, which is recorded as a snapshot after the last event */
	bool runs_on;       /* with a reason: true if the program runs while the copy is made */
	/* NULL, or a callback that edits a text in place and keeps its length; it is called for each text that a program or its
	 * user may have chosen. */
	void (*text)(void *ctx, char *text, uint32_t bytes);
	void *ctx;
};

/* Passes the files of the trace to a callback, as they were when the trace was opened, even if a program has written to them
 * since.  A native trace has the files of a directory, with `metadata` as the last; a joined trace has a folder for each part;
 * another trace has its single file, with the name "".  Data that is damaged in the trace is left out.  Names that were set by
 * weft_trace_name_site() are included, as plain sites.  `edit` may be NULL.  Fails with WEFT_EIO or WEFT_ENOMEM, or with
 * WEFT_ENOTSUP for an edit of a trace that is not native, or a cut of a joined trace. */
int weft_trace_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx,
    struct weft_error *err);

/* Receives a line with a NUL and without its line end; the callback may change the line.  A non-zero result stops. */
typedef int weft_trace_line_fn(void *ctx, char *line);

/* Passes the raw records of a runtime, before their conversion to events, to write_line: for OCaml 5 the lines that its own
 * reader prints, one ring after another.  Returns 0, the result of write_line, or WEFT_EINVAL if the events of the format are
 * the raw records. */
int weft_trace_lines(const struct weft_trace *trace, weft_trace_line_fn *write_line, void *ctx);

/* Makes weft_trace_next() return the first events of the trace again. */
void weft_trace_rewind(struct weft_trace *trace);

#endif
