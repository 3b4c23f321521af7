/* trace.h: an open trace: what is known of it, and its events in time order.
 *
 * Each format is one file (native.c, mirage.c, ocaml.c, sexp.c) behind struct weft_trace_format; the first bytes tell which one
 * it is, never a name.
 *
 * Streams and sites are numbered in the whole trace.  Promises' ids are those of one process, and so is the clock:
 * ARCHITECTURE.md
 * ("A trace that is made of several") says how a trace of several processes or hosts keeps them apart.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_TRACE_H
#define WEFT_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "trace/event.h"

struct weft_trace;
struct weft_source;
struct weft_meet;

/* A file of machine code that the program had loaded. */
struct weft_module {
	struct weft_str path;
	struct weft_str build_id; /* hexadecimal digits; empty: it has none */
	uint64_t address;         /* where it was: what is to be added to the file's own addresses */
	uint64_t size;
};

/* Where a promise was created: in the source, or, where the program was recorded without its source, in the machine code. */
struct weft_site {
	struct weft_str file, function; /* empty: not known */
	uint32_t line;
	const struct weft_module *module; /* one of weft_trace_info.modules, or NULL */
	uint64_t offset; /* where a call returns to: in the module's own addresses, or, without one, in memory; 0: not known */
};

/* Whether what is known of it stems from machine code. */
static inline bool weft_site_is_place(const struct weft_site *site)
{
	return site->offset || !site->line;
}

/* An op that only the trace knows. */
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

/* The events of one OS thread. */
struct weft_stream_info {
	struct weft_str name; /* of the OS thread; may be empty */
	uint32_t part;        /* which of the traces that were joined (join.h) it is of; else 0 */
	uint16_t host;        /* of a trace that was joined: which of its hosts; their OS threads' numbers may be the same */
	bool tells_ends;      /* who never ended there was pending to the end; else what is freed may go untold */
	uint32_t instance;    /* its number in its trace; OS threads that followed one another may share it */
	uint64_t tid;
	uint64_t packets;
	uint64_t bytes; /* of packets, headers included, unused space not */
	uint64_t lost_full, lost_nested,
	    lost_overwritten; /* events known to be missing, by cause; overwritten: the ring reused their packet */
};

/* Time in which events of a stream are missing though the trace goes on: packets that are not there, or of which not all can be
 * read.  Nothing is known of what happened then: who did not end may have ended.  What a ring overwrote before its oldest packet
 * is no gap. */
struct weft_gap {
	int64_t from_ns, to_ns; /* as weft_event.time_ns; INT64_MIN and INT64_MAX: since ever, for ever */
	uint64_t packets;       /* that are missing whole, as far as that is known */
	uint64_t events;        /* at least; 0: nobody knows */
	uint16_t stream;
};

#define WEFT_SKIPPED_KEPT 64

/* Something that could not be read and was passed over. */
struct weft_skipped {
	struct weft_error where;
	uint64_t bytes;
};

/* One of the traces that were joined (join.h): what one recorder wrote. */
struct weft_part {
	struct weft_str process, host;
	const char *name; /* of the process, with its number or its host where another one has that name: "node@b" */
	uint64_t pid;
	bool unfinished, has_died, wrapped; /* as in weft_trace_info */
	bool is_same_clock; /* as the first part's: they have counted the same ticks; else both tell of a wall clock, or: */
	int64_t bound_ns;   /* it is of another host: so far off its times may be, on average; else 0 */
	const struct weft_meet *meet; /* how its times became those of the first part: weft_part_bounds() of join.h; or NULL */
	uint32_t clock;
	uint64_t lost_no_stream;
	size_t gap_count, skipped_count, unplaced_count; /* complete once weft_trace_next() has returned 0 */
};

struct weft_trace_info {
	const char *format;                     /* "native", "mirage", "ocaml", "fxt", "sexp", "session" */
	struct weft_str host, process, command; /* empty if unknown */
	struct weft_str runtimes;               /* what was taken of them; empty: nothing, or the program tells by itself */
	struct weft_str lacks;                  /* what its format never tells, and the program did; empty: nothing */
	uint64_t pid;
	int64_t clock_origin_ns; /* add to an event's time to get UTC ns since 1970; 0 with has_origin false */
	bool has_origin;
	bool unfinished;         /* its program did not end it: records still, or was killed */
	bool has_died;           /* unfinished, and weft record saw its process end, at until_ns */
	int64_t until_ns;        /* as weft_event.time_ns: it lived at least until then; 0: until its last event */
	bool wrapped;            /* older events were overwritten: promises may have begun before the trace */
	uint64_t found_packets;  /* it was found in the image of a memory, so many packets of it; else 0 */
	uint64_t lost_no_stream; /* events of OS threads for which there was no room */
	const struct weft_stream_info *streams;
	size_t stream_count;
	const struct weft_site *sites;
	size_t site_count;
	const uint32_t *site_of_key; /* by the number that the trace has for it; WEFT_NO_SITE: none */
	size_t key_count;
	const struct weft_module *modules;
	size_t module_count;
	const struct weft_form *forms;
	size_t form_count;
	const struct weft_gap *gaps; /* stream by stream in time; those of different streams in any order */
	size_t gap_count;
	const struct weft_part *parts; /* of a trace that is joined of several; else none */
	size_t part_count;
	const struct weft_skipped *skipped; /* at most WEFT_SKIPPED_KEPT; skipped_count counts all */
	size_t skipped_count;
	/* How many of these may have held events of any time.  The others held none (names, the unused end of a packet), or a gap
	 * tells when they were. */
	size_t unplaced_count;
	bool lacks_names; /* some of what it calls things, and of where things are in the source, is missing */
};

/* Opens what `path` names: a directory, a file, or "-" for standard input.
 *
 * On success *out is the caller's, to be given to weft_trace_close().  On failure *out is untouched.
 * WEFT_ENOENT, WEFT_EACCES, WEFT_EIO, WEFT_EFORMAT (nothing in it can be read), WEFT_ENOMEM.
 * What is there is read whole: the trace does not change any more, whatever becomes of the files.  follow.h tells when to open it
 * again. */
int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err);

/* The same for a file in which a ring is to be searched, as in the image of a memory, whatever it begins with: the ring whose
 * UUID begins with these hexadecimal digits, or with NULL the newest one.  WEFT_EINVAL: several begin so. */
int weft_trace_open_image(struct weft_trace **out, const char *path, const char *uuid, struct weft_error *err);

/* The same for the memory of a process; where it records into a directory, that is opened.  WEFT_ENOENT (no such process),
 * WEFT_EACCES, WEFT_EFORMAT (it has no ring). */
int weft_trace_open_process(struct weft_trace **out, long pid, const char *uuid, struct weft_error *err);

/* The same for bytes in memory, which must stay until weft_trace_close(); `name` is for error messages. */
int weft_trace_open_memory(struct weft_trace **out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* The same for all that comes from a descriptor, as a pipe, which stays the caller's; `name` is for error messages.  Also
 * WEFT_ETOOBIG (source.h: weft_source_limit()). */
int weft_trace_open_fd(struct weft_trace **out, int fd, const char *name, struct weft_error *err);

/* The same for `size` bytes that somebody writes meanwhile, maybe nonsense: they are copied before anything is believed of them.
 * `read` copies `bytes` of what stands at `offset` now, each aligned word of 8 bytes whole; false ends it with WEFT_EIO.  It is
 * not called any more when this has returned. */
int weft_trace_open_live(struct weft_trace **out, bool (*read)(void *ctx, uint64_t offset, void *to, size_t bytes), void *ctx,
    size_t size, const char *name, struct weft_error *err);

/* Accepts NULL.  Every event and string that came from the trace ends with it. */
void weft_trace_close(struct weft_trace *trace);

/* What is known of it.  Gaps, and counts of what was skipped and lost, are complete once weft_trace_next() has returned 0. */
const struct weft_trace_info *weft_trace_info(const struct weft_trace *trace);

/* The next events in time order (ties: by stream, then as recorded); *events stays valid until the next call.
 *
 * Returns 1 with *count > 0, 0 at the end, WEFT_ENOMEM or WEFT_EIO.  Damage is not an error: it is passed over and
 * noted in weft_trace_info.  Within a stream, time never goes back: an event that claims so gets its predecessor's time, and is
 * noted. */
int weft_trace_next(struct weft_trace *trace, const struct weft_event **events, size_t *count);

/* A field of an event whose op is WEFT_EVENT_OTHER; `index` is below its form's number of fields.  false: the event is none such.
 */
bool weft_trace_field(const struct weft_trace *trace, const struct weft_event *event, unsigned index, struct weft_field *out);

/* Gives a site its name; texts are copied.  Nobody may be reading the trace or its model meanwhile.  WEFT_ENOMEM. */
int weft_trace_name_site(struct weft_trace *trace, uint32_t site, struct weft_str file, struct weft_str function, uint32_t line);

/* The name of its file without what all have and without its version: "libuv.so.1.0.0" is "libuv".  NULL: empty. */
struct weft_str weft_module_short_name(const struct weft_module *module);

/* What a site is a part of: the module of its code, or the folder of its source; of a source in no folder "the program". */
struct weft_str weft_site_library(const struct weft_site *site);

/* Whether it is in libffi, by which Python, JavaScript and others call C: who called is not known, and no place there says it. */
bool weft_site_is_bridge(const struct weft_site *site);

/* What a site is called, in one line: "function (file.c:12)", or what is known of that; "libuv+0x8a8c0" for a place in machine
 * code without a name, with the module's name shortened; "a call through libffi" for a bridge.  Valid UTF-8, terminated; returns
 * the whole length, as snprintf does. */
size_t weft_site_format(const struct weft_site *site, char *buf, size_t size);

/* A promise's id of a trace of so many parts is that of its part, times this, and the part's number: a power of ten. */
static inline int64_t weft_part_stride(size_t parts)
{
	int64_t stride = 1;
	while (stride < (int64_t)parts)
		stride *= 10;
	return stride;
}

/* The sites that the text of a detail of a stack names, the innermost first, WEFT_NO_SITE for unknown ones; returns how many
 * there are, of which at most `room` are told. */
size_t weft_trace_callers(const struct weft_trace_info *info, struct weft_str text, uint32_t *sites, size_t room);

/* The files that it was opened from (source.h), as long as it is open. */
const struct weft_source *weft_trace_source(const struct weft_trace *trace);

/* Receives a whole file; a non-zero answer ends the saving with WEFT_EIO. */
typedef int weft_trace_file_fn(void *ctx, const char *name, const void *bytes, size_t size);

/* What is to be other in a copy of a native trace. */
struct weft_trace_edit {
	bool is_cut;
	/* If is_cut: as weft_event.time_ns; what came before is left out, as if overwritten.  Of a trace that was opened from a
	 * position, when that was. */
	int64_t from_ns;
	const struct weft_event *told; /* if is_cut: what each stream tells then, whatever their times are */
	size_t told_count;
	const char *reason; /* unless NULL: why it is kept, told as a snapshot behind the last event */
	bool runs_on;       /* with a reason: the program runs while the copy is made */
	/* Unless NULL: changes a text in place, of as many bytes; called for each that a program or its user may have chosen. */
	void (*text)(void *ctx, char *text, uint32_t bytes);
	void *ctx;
};

/* Gives the trace's files as they were when it was opened, also where a program wrote it meanwhile: of a native trace those of a
 * directory, `metadata` last, of joined ones a folder for each; of another its one file, named "".  What was damaged is not in
 * them.  The names of weft_trace_name_site() are in them, as those of plain sites.  `edit` may be NULL.  WEFT_EIO, WEFT_ENOMEM;
 * WEFT_ENOTSUP: an edit of another trace than a native one, or a cut of joined ones. */
int weft_trace_save(const struct weft_trace *trace, const struct weft_trace_edit *edit, weft_trace_file_fn *file, void *ctx,
    struct weft_error *err);

/* Receives a line without its end, terminated, which it may change; a non-zero answer ends it. */
typedef int weft_trace_line_fn(void *ctx, char *line);

/* Gives what a runtime recorded of itself as it stands in the file, before it is made into events: of OCaml 5 what its own reader
 * hands out, ring after ring.  Returns 0, what `put` answered, or WEFT_EINVAL: the format's events are what was recorded. */
int weft_trace_lines(const struct weft_trace *trace, weft_trace_line_fn *put, void *ctx);

/* Starts again at the first event. */
void weft_trace_rewind(struct weft_trace *trace);

#endif
