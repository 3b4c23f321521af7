/* cli.h: what the verbs of the command share.
 *
 * Each verb is one file with one function, int cli_VERB(struct cli_args *), that returns the exit status.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/follower.h"
#include "session/session.h"

/* As grep and diff have it. */
enum cli_exit { CLI_FINE = 0, CLI_FOUND = 1, CLI_TROUBLE = 2 };

/* X(verb, "its operands", "what it does") */
#define CLI_VERBS(X)                                                                                                             \
	X(view, "TRACE...", "opens a window with one picture of the traces")                                                     \
	X(info, "TRACE...", "tells what a trace is: format, host, span, events, promises, streams, what was lost")               \
	X(events, "TRACE...", "prints every event in time order, one a line")                                                    \
	X(dump, "TRACE...", "prints every promise, counter and pause, one a line")                                               \
	X(stats, "TRACE...", "tells for each label and kind how many promises there are, and how long they waited and ran")      \
	X(explain, "TRACE...", "tells what went wrong, with the evidence; exit status 1 if anything did")                        \
	X(waits, "TRACE...", "prints who waits for whom at a moment, as a tree")                                                 \
	X(path, "TRACE... --promise=ID", "prints the critical path that led to a promise's end")                                 \
	X(diff, "TRACE TRACE", "tells where two runs part; exit status 1 if they do")                                            \
	X(check, "TRACE... RULE...", "checks rules for CI, as 'stall<10ms' or 'pending=0'; exit status 1 if one is broken")      \
	X(top, "TRACE...", "tells what is in flight, who waits longest for what, what the last second was spent with")           \
	X(watch, "TRACE... [RULE...]", "follows traces, and saves what led to a broken rule or a finding")                       \
	X(render, "TRACE... -o PICTURE", "draws the promises: SVG, PNG or PDF")                                                  \
	X(html, "TRACE... -o OUT", "writes a page for browsers that shows the traces: one file, or a directory")                 \
	X(serve, "TRACE...", "serves the page of weft html, which then follows the traces while they are recorded")              \
	X(convert, "TRACE... -o OUT --to=FORMAT", "writes the trace in another format")                                          \
	X(record, "-- COMMAND...", "runs a command and records it; the exit status is the command's")                            \
	X(on, "[PID|NAME...]", "tells programs that stand by to record; without one, lists those that do")                       \
	X(off, "PID|NAME...", "tells programs that stand by to record no more")                                                  \
	X(merge, "TRACE... -o DIR", "copies traces into one directory, which every verb then reads as one trace")                \
	X(save, "TRACE -w OUT", "copies a trace, also one that is still being recorded")

#define CLI_DECLARE(verb, operands, summary) int cli_##verb(struct cli_args *args);
struct cli_args;
CLI_VERBS(CLI_DECLARE)
#undef CLI_DECLARE

/* ---- options.c: the command line of one verb ---- */

struct cli_args {
	const char *verb;
	const char *operands; /* "TRACE" */
	const char *summary;
	int argc; /* what follows the verb; after cli_parse() the operands alone */
	char **argv;
	void (*print_more)(void); /* what --help prints below the options, or NULL */
};

enum cli_type {
	CLI_FLAG, /* bool *: no value */
	CLI_TEXT, /* const char **: any value */
	CLI_WORD, /* const char **: a value behind =, or none, which is "" */
	CLI_TIME, /* int64_t *: ns, given as base/duration.h reads them; -1 where absent */
	CLI_SIZE  /* int[2] *: WxH */
};

/* An option is --name, and -letter where it has one; its value follows after '=' or as the next word. */
struct cli_option {
	const char *name;
	char letter;
	enum cli_type type;
	void *value;      /* untouched where the option is absent */
	const char *arg;  /* what --help calls the value; NULL for a flag */
	const char *help; /* one line */
};

/* clang-format off */
#define CLI_OPTION_JSON(flag) {"json", 0, CLI_FLAG, flag, NULL, "prints one JSON object a line"}
#define CLI_OPTION_END {NULL, 0, CLI_FLAG, NULL, NULL, NULL}
/* clang-format on */

/* For cli_parse(): one operand or none. */
#define CLI_AT_MOST_ONE 0
#define CLI_ANY_NUMBER INT_MIN

/* Takes the options out of args, which keeps the operands, of which there must be `operands`, or if that is negative at least
 * -`operands`.
 *
 * Returns -1 to go on; otherwise an exit status: --help or --version was answered, or the usage was wrong and has been
 * told. */
int cli_parse(struct cli_args *args, const struct cli_option *options, int operands);

/* Reads a decimal number; with is_size also one that ends in K, M or G, or these in small letters: bytes.  False: it is none. */
bool cli_parse_number(const char *text, bool is_size, uint64_t *out);

/* ---- input.c: traces ---- */

/* A trace, and what it is called in messages. */
struct cli_input {
	const char *name;
	struct weft_trace *trace;
	struct weft_model *model; /* NULL unless cli_build_model() was called */
};

/* Opens the trace that a path names.  Returns -1 to go on, otherwise an exit status: the error has been told. */
int cli_open(struct cli_input *input, const char *path);

/* The same for one operand or several; several, and the traces of a session, are opened as one (trace/join.h). */
int cli_open_joined(struct cli_input *input, struct cli_args *traces);

/* The ring in an image of memory whose UUID begins so, or of the process whose id a text is, where ring may be NULL.  Returns as
 * cli_open(). */
int cli_open_image(struct cli_input *input, const char *path, const char *ring);
int cli_open_process(struct cli_input *input, const char *pid, const char *ring);

/* The same of operands that may be sessions and numbers of processes, without a word: *err tells what failed.  What cannot be
 * read of several is left out.  A status < 0 where there is nothing. */
int cli_open_quietly(struct cli_input *input, char *const *paths, int count, struct weft_error *err);

/* Whether a text is the number of a process, and no file; and the directory that it records into, or NULL: it has no files.  The
 * path lives until the next call. */
bool cli_is_process(const char *text);
const char *cli_trace_of_process(const char *pid);

/* For who needs no model: fails if the trace has no events, else leaves it at its first.  Returns as cli_open(). */
int cli_check_events(struct cli_input *input);

/* names.c: gives the places in machine code that the trace has their names, in a few seconds at most, or, of servers, whatever it
 * takes.  Done by the two calls around this one. */
void cli_name_places(struct cli_input *input, bool ask_servers);

/* The same for whoever serves others meanwhile: in a fraction of a second, without a word. */
void cli_name_served(struct weft_trace *trace);

/* Likewise for one who reads a trace again and again: what was looked up for an earlier look is not looked up again.  Zeroed at
 * first, to be forgotten in the end. */
struct cli_names {
	struct weft_names *found;
	size_t sites;
};
void cli_names_apply(struct cli_names *names, struct weft_trace *trace);
void cli_names_forget(struct cli_names *names);

/* What a model leaves as it was recorded; see struct weft_model_options. */
enum cli_keep { CLI_KEEP_BINDS = 1, CLI_KEEP_PARTS = 2 };

#define CLI_OPTION_PARTS(flag)                                                                                                   \
	{                                                                                                                        \
		"parts", 0, CLI_FLAG, flag, NULL, "also tells of what libraries do to answer a call"                             \
	}

/* Reads it all; what was skipped, or cannot be, is said on stderr.  `keep` is of enum cli_keep.  Returns as cli_open(). */
int cli_build_model(struct cli_input *input, unsigned keep);

/* cli_open_joined(), and this; on an exit status the input is closed. */
int cli_open_model(struct cli_input *input, struct cli_args *traces, unsigned keep);

/* The promise whose recorded id a text is.  Returns as cli_open(). */
int cli_find_promise(const struct cli_input *input, const char *id, uint32_t *out);

/* Says on stderr what was passed over as damaged, once all events were read without a model. */
void cli_tell_skipped(const struct cli_input *input);

/* Events known to be missing, of all streams and causes. */
uint64_t cli_lost(const struct weft_trace_info *info);

void cli_close(struct cli_input *input);
/* The same, where the path that it was opened by will be opened again. */
void cli_close_for_now(struct cli_input *input, const char *path);

/* Where stderr is a terminal, says after a second, and then every second, that it is still at it. */
void cli_progress_begin(const char *what, const char *name);
void cli_progress_end(void);

/* ---- follow.c: traces that are being recorded ---- */

/* How much findings are looked for in, unless that is said. */
#define CLI_WINDOW_NS INT64_C(10000000000)
#define CLI_WINDOW_EVENTS (UINT64_C(1) << 18)

#define CLI_OPTION_FOLLOW(flag)                                                                                                  \
	{                                                                                                                        \
		"follow", 0, CLI_FLAG, flag, NULL, "goes on while the traces are recorded"                                       \
	}

/* What is known by now of the traces that are followed. */
struct cli_newest {
	const struct weft_model *model; /* until `show` returns */
	int64_t counted_ns;             /* how far back the tallies count; -1: they do not */
};

/* Calls `show` for each newer model of the operands' traces, as one, until the recording of all has ended, somebody sends SIGINT
 * or SIGTERM, or `show` returns an exit status.  Returns that, or -1; where nothing can be followed the error has been told.
 *
 * A look reads what is new (model/followers.h).  Several whose windows cannot be joined are read as a whole, as often as that
 * takes a tenth of a processor. */
int cli_follow(const struct cli_args *args, const struct weft_follower_options *options,
    int (*show)(void *ctx, const struct cli_newest *newest), void *ctx);

/* ---- session.c: directories that weft record made, with a trace for each process ---- */

/* Adds the operands, and in place of a process the directory that it records into, which goes on to be read when it has ended;
 * false: there is no memory.  To be freed in any case. */
bool cli_find_recorded(session_paths *out, char *const *operands, int count);

/* Says on stderr how much is in a trace.  Whether it has promises other than OS threads. */
bool cli_tell_trace(const char *path, bool with_command);

/* Where *path is such a directory with one trace in it, *path becomes that one.  Returns -1 to go on, otherwise an exit status:
 * the several that it has were listed. */
int cli_session_choose(const char **path);

/* Puts the traces of such directories in their place among the operands; whether one had several. */
bool cli_session_expand(struct cli_args *args);

/* A picture that a viewer shows. */
struct cli_picture {
	char name[240];
	const char *const *paths; /* of one trace, or of several that are one */
	size_t count;
	bool is_session; /* nobody named them one by one */
	char *const *operands;
	int operand_count;
};

/* One picture of all operands; with `compare` one of each.  Returns how many, 0 without memory; *out and what it names live until
 * the end. */
size_t cli_pictures(struct cli_picture **out, const struct cli_args *args, bool compare);

/* Finds what its operands name by now, if traces came or went; false: there is no memory, and it is as it was. */
bool cli_picture_renew(struct cli_picture *picture);

/* As weft_several_open(), of which it is one; places in machine code get their names, as by cli_name_served(). */
int cli_picture_open(struct weft_trace **out, const struct cli_picture *picture, struct weft_error *err);

#define CLI_OPTION_COMPARE(flag)                                                                                                 \
	{                                                                                                                        \
		"compare", 0, CLI_FLAG, flag, NULL, "shows the traces one above the other, in place of one picture of all"       \
	}

/* ---- pack.c: traces for pages ---- */

typedef WEFT_VEC(unsigned char) cli_bytes;

/* A weft_export_write_fn. */
int cli_append(void *bytes, const void *more, size_t size);

/* The bytes of an open trace as one piece: its file, as long as it is open, or what `packed`, which is the caller's, then holds:
 * a tar archive of its directory.  WEFT_ENOMEM. */
int cli_pack(const void **bytes, size_t *size, cli_bytes *packed, const struct weft_trace *trace, struct weft_error *err);

/* The same of the window of what is followed (weft_followed_save()). */
int cli_pack_window(cli_bytes *packed, const struct weft_followed *followed, struct weft_error *err);

/* What pages call the trace of that path. */
const char *cli_base_name(const char *path);

/* ---- file.c: files that are written ---- */

struct cli_file {
	const char *name; /* for messages */
	const char *path;
	char *temporary; /* NULL: written in place */
	FILE *stream;
};

/* Opens what `path` names for writing: "-" is standard output; whatever stands there stays until the new file is whole, but
 * devices and pipes, which are written to.  Returns -1 to go on, otherwise an exit status: the error has been told. */
int cli_file_begin(struct cli_file *file, const char *path);

/* A weft_export_write_fn. */
int cli_file_write(void *file, const void *bytes, size_t size);

/* Puts the file in its place; a status < 0 (of what err tells) has it vanish.  Tells errors; returns the exit status. */
int cli_file_end(struct cli_file *file, int status, const struct weft_error *err);

/* ---- directory.c: directories that are written ---- */

struct cli_directory {
	const char *path;
	char *temporary;
	int error; /* errno of what failed */
};

/* A directory that appears when it is whole; it replaces nothing but an empty one.  Returns as cli_file_begin(). */
int cli_directory_begin(struct cli_directory *dir, const char *path);

/* A weft_export_file_fn and weft_trace_file_fn.  A name may be that of a file in a folder, which is made. */
int cli_directory_write(void *dir, const char *name, const void *bytes, size_t size);

/* As cli_file_end(). */
int cli_directory_end(struct cli_directory *dir, int status, const struct weft_error *err);

/* Saves a native trace, or joined ones, as `edit` has it, with stand-ins from a `scrub` that knows no words yet; the caller
 * finishes it.  As weft_trace_save(). */
struct weft_scrub;
int cli_save_scrubbed(const struct weft_trace *trace, struct weft_trace_edit *edit, struct weft_scrub *scrub,
    weft_trace_file_fn *put, void *ctx, struct weft_error *err);

/* ---- view.c: the window, a program of its own ---- */

bool cli_has_display(void);

/* Becomes weft-view; argv[0] is set.  Returns with errno if it cannot. */
void cli_exec_window(char **argv);

/* ---- output.c: what is said, and where ---- */

/* "weft: " and the message as one line on stderr; returns CLI_TROUBLE. */
__attribute__((format(printf, 1, 2))) int cli_fail(const char *format, ...);

/* The same for an error of the library. */
int cli_fail_error(const struct weft_error *err);

/* What is said of how a promise ended, by enum weft_end, and of links, by enum weft_link_kind. */
extern const char *const cli_end_names[], *const cli_link_names[WEFT_LINK_KINDS];

/* A note on stderr that changes nothing about the exit status. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* False once stdout cannot be written to any more: a verb then stops early. */
bool cli_stdout_ok(void);

/* Flushes stdout.  Returns status, or CLI_TROUBLE with a message if not everything could be written; that the reader left
 * early is no trouble. */
int cli_finish(int status);

/* A JSON string with its quotes; what is not UTF-8 is replaced by U+FFFD.  Also the way in which texts are quoted for
 * people: no byte of a trace reaches a terminal as a control character, nor as one that turns what follows around. */
void cli_put_string(struct weft_str text);
void cli_put_cstring(const char *text);
void cli_put_text(struct weft_str text); /* without the quotes */

/* Limits what long texts may add to standard output to a multiple of the input: those beyond it are cut, and cli_finish() says
 * so. cli_open() calls it; of several inputs the limits add up. */
void cli_limit_texts(uint64_t input_bytes);

/* To standard output, without printf()'s cost. */
void cli_put(const char *text);
void cli_put_uint(uint64_t value);
void cli_put_int(int64_t value);
void cli_put_seconds(int64_t ns); /* with 9 digits after the point */

/* "12.3 ms"; returns buf. */
enum { CLI_DURATION = 48 };
char *cli_format_duration(char buf[CLI_DURATION], int64_t ns);

/* The table of sorts for people: its heads, and one row's cells; the last one is the sort. */
enum { CLI_CELLS = 9, CLI_CELL_BYTES = 192 };
extern const char *const cli_cell_heads[CLI_CELLS];
struct weft_table_row;
void cli_table_cells(char cells[CLI_CELLS][CLI_CELL_BYTES], const struct weft_model *model, const struct weft_table_row *row);

/* The OS thread: "stream":N,"thread":NAME; for people "  #N NAME", or nothing if there is but one. */
void cli_put_stream_json(const struct weft_trace_info *info, unsigned stream);
void cli_put_stream(const struct weft_trace_info *info, unsigned stream);

/* {"file":...} or null; for people " at file:line in function", or nothing. */
void cli_put_site_json(const struct weft_trace_info *info, uint32_t site);
void cli_put_site(const struct weft_trace_info *info, uint32_t site);

/* record.c: what a recording is asked to be like, as options have it, and in numbers; 0: nothing was said.  -1, or an exit
 * status. */
struct cli_ring {
	const char *size, *mode, *packets, *stacks;
	uint64_t size_bytes, packet_count, stack_count;
};
int cli_ring_check(struct cli_ring *ring, const char *verb);

/* together.c: of weft info: how several traces are one.  Returns an exit status. */
int cli_together(struct cli_args *traces, bool json);

/* suppress.c: takes the findings out that the lines of a file name, and says so; -1, or the exit status. */
struct weft_findings;
int cli_suppress(const char *path, const struct cli_input *input, struct weft_findings *findings);

#endif
