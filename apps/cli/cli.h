/* cli.h: declares the functions that the verbs of the command share.
 *
 * Each verb is in a file of its own, as a function int cli_VERB(struct cli_args *), which returns the exit status.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/queries/waits.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/follower.h"
#include "open/open.h"

/* Exit statuses, as those of grep and diff. */
enum cli_exit { CLI_OK = 0, CLI_FOUND = 1, CLI_ERROR = 2 };

/* X(verb, "operands", "summary") lists a verb; weft --help and the manual print the summary. */
#define CLI_VERBS(X)                                                                                                             \
	X(view, "TRACE...", "open a window with one picture of the traces")                                                      \
	X(info, "TRACE...", "describe traces: format, host, duration, events, promises, lost events")                            \
	X(events, "TRACE...", "print every event in the order of time, one a line")                                              \
	X(dump, "TRACE...", "print every promise, counter and pause, one a line")                                                \
	X(stats, "TRACE...", "print how many promises of each type there are, and how long they waited and ran")                 \
	X(explain, "TRACE...", "report what went wrong, with evidence; exit status 1 if an alarm is certain")                    \
	X(waits, "[TRACE...]", "print which promise waits for which at one moment, as a tree")                                   \
	X(path, "TRACE... --promise=ID", "print the critical path to the end of a promise: what it waited for, step by step")    \
	X(diff, "TRACE TRACE", "report where two runs of a program differ; exit status 1 if they differ")                        \
	X(check, "TRACE... RULE...",                                                                                             \
	    "check rules for CI, such as 'stall<10ms' or 'pending=0'; exit status 1 if a rule is broken")                        \
	X(top, "TRACE...", "show the promises in progress, the longest waits and the work of the last second")                   \
	X(watch, "TRACE... [RULE...]", "follow traces, and save a copy of a trace that breaks a rule or has an alarm")           \
	X(render, "TRACE... -o PICTURE", "draw the promises as SVG, PNG or PDF")                                                 \
	X(html, "TRACE... -o OUT", "write a web page that shows the traces: one file, or a directory")                           \
	X(serve, "TRACE...", "serve the page of weft html, which follows the traces while they are recorded")                    \
	X(convert, "TRACE... -o OUT --to=FORMAT", "write the trace in another format")                                           \
	X(record, "-- COMMAND...", "run a command and record it; exit with the command's status")                                \
	X(on, "[PID|NAME...]",                                                                                                   \
	    "start recording in programs that stand by (record --standby); without a name, list these programs")                 \
	X(off, "PID|NAME...", "stop recording in programs that stand by")                                                        \
	X(merge, "TRACE... -o DIR", "copy traces into one directory, which every verb reads as one trace")                       \
	X(save, "TRACE -w OUT", "copy a trace, also while it is being recorded")

#define CLI_DECLARE(verb, operands, summary) int cli_##verb(struct cli_args *args);
struct cli_args;
CLI_VERBS(CLI_DECLARE)
#undef CLI_DECLARE

/* ---- help.c: guides to findings ---- */

/* Prints the guide to a finding, or the list of all findings if the name is "findings"; returns false if there is no finding of
 * that name. */
bool cli_help_finding(const char *name, bool as_markdown);
/* Completes what cli_help_finding() takes. */
void cli_complete_findings(void);

/* ---- options.c: the command line of one verb ---- */

struct cli_args {
	const char *verb;
	const char *operands; /* "TRACE" */
	const char *summary;
	int argc; /* number of words after the verb; after cli_parse(), number of operands */
	char **argv;
	void (*print_more)(bool as_markdown); /* function that prints the text below the options in --help, or NULL */
	bool as_markdown;                     /* whether --help prints the verb's part of the manual instead (docs/man) */
};

enum cli_type {
	CLI_FLAG, /* bool *: no value */
	CLI_TEXT, /* any value; the destination is a const char ** */
	CLI_WORD, /* a value after =, or "" without a value; the destination is a const char ** */
	CLI_TIME, /* a time in ns, parsed by base/duration.h; the destination is an int64_t *; -1 without the option */
	CLI_SIZE  /* int[2] *: WxH */
};

/* An option is written as --name, or -letter if it has a letter; its value follows after '=' or as the next word. */
struct cli_option {
	const char *name;
	char letter;
	enum cli_type type;
	void *value;      /* pointer to the option's destination; the destination is unchanged without the option */
	const char *arg;  /* name of the option's value in --help; NULL for a flag */
	const char *help; /* one line, imperative */
};

/* clang-format off */
#define CLI_OPTION_JSON(flag) {"json", 0, CLI_FLAG, flag, NULL, "print one JSON object a line"}
#define CLI_OPTION_END {NULL, 0, CLI_FLAG, NULL, NULL, NULL}
/* clang-format on */

/* Special operand counts for cli_parse(): at most one operand, or any number of operands. */
#define CLI_ONE_OR_NONE 0
#define CLI_ANY_NUMBER INT_MIN

/* Parses the options and leaves the operands in args.  There must be `operands` operands or, if that number is negative, at
 * least -`operands`.
 *
 * Returns -1 to continue; otherwise --help, --version or a usage error was printed, and the result is the exit status. */
int cli_parse(struct cli_args *args, const struct cli_option *options, int operands);

/* Reports that the operand with this index is missing, and returns CLI_ERROR. */
int cli_fail_missing(const struct cli_args *args, int operand);

/* Parses a decimal number; with is_size, the number may end in K, M or G of either case.  Returns false if the text is no such
 * number. */
bool cli_parse_number(const char *text, bool is_size, uint64_t *out);

/* ---- input.c: traces ---- */

/* An open trace and its name in messages. */
struct cli_input {
	const char *name;
	struct weft_trace *trace;
	struct weft_model *model; /* model of the trace; NULL unless cli_build_model() was called */
	struct open_plan *plan;   /* plan by which the trace was opened, or NULL */
};

/* Opens the trace at a path.  Returns -1 to continue; otherwise an error was printed, and the result is the exit status. */
int cli_open(struct cli_input *input, const char *path);

/* Opens all operands; several traces, and the traces of a session, are joined into one (trace/join.h). */
int cli_open_joined(struct cli_input *input, const struct cli_args *traces);

/* Opens a ring buffer: with OPEN_IMAGE in a memory image, where the ring's UUID starts with `ring`; with OPEN_PROCESS in the
 * memory of a process, where `ring` may be NULL.  Returns as cli_open(). */
int cli_open_ring(struct cli_input *input, enum open_class class, const char *path, const char *ring);

/* Checks that the trace has events and rewinds the trace, for verbs without a model.  Returns as cli_open(). */
int cli_check_events(struct cli_input *input);

/* Replace machine-code addresses of the trace by names, within a few seconds or, if servers are asked, without a limit
 * (names.c). cli_check_events() and cli_build_model() call cli_find_site_names(). */
void cli_find_site_names(struct cli_input *input, bool ask_servers);

/* Replaces addresses by names within a fraction of a second, without messages, for verbs that serve clients meanwhile. */
void cli_find_site_names_quickly(struct weft_trace *trace);

/* Replaces addresses by names like cli_find_site_names(), but without messages, for traces that pages show.  A growing trace may
 * be passed again and again; only addresses that are new are searched. */
void cli_find_site_names_again(struct weft_trace *trace);

/* Names of addresses for a trace that is read repeatedly, with the results of earlier reads.  The struct starts zeroed, and
 * cli_names_clear() frees it. */
struct cli_names {
	struct weft_names *found;
	size_t sites;
};
void cli_names_apply(struct cli_names *names, struct weft_trace *trace);
void cli_names_clear(struct cli_names *names);

/* Parts of a model that are kept as recorded; see struct weft_model_options. */
enum cli_keep { CLI_KEEP_BINDS = 1, CLI_KEEP_PARTS = 2 };

#define CLI_OPTION_PARTS(flag)                                                                                                   \
	{                                                                                                                        \
		"parts", 0, CLI_FLAG, flag, NULL, "include promises that are internal to libraries"                              \
	}

/* Builds the model of the trace, and prints on stderr what was skipped or unreadable.  `keep` is a combination of the bits of
 * enum cli_keep.  Returns as cli_open().
 */
int cli_build_model(struct cli_input *input, unsigned keep);

struct weft_findings;
struct weft_explain_options;

/* Calls weft_explain() and prints its progress; its callback replaces options->go_on. */
int cli_explain_model(struct weft_findings **out, const struct cli_input *input, const struct weft_explain_options *options,
    struct weft_error *err);

/* Calls cli_open_joined() and cli_build_model(); on failure it closes the input. */
int cli_open_model(struct cli_input *input, const struct cli_args *traces, unsigned keep);

/* Finds the promise that has the given recorded id.  Returns as cli_open(). */
int cli_find_promise(const struct cli_input *input, const char *id, uint32_t *out);

/* Prints on stderr which damaged parts of the trace were skipped; call it after all events were read without a model. */
void cli_note_skipped(const struct cli_input *input);

/* Returns the number of events that are known to be missing, in all streams and from all causes. */
uint64_t cli_count_lost(const struct weft_trace_info *info);

void cli_close(struct cli_input *input);
/* Closes an input that will be opened again; standard input stays open, because it can be read only once. */
void cli_close_for_reopening(struct cli_input *input);

/* Prints the progress every second if stderr is a terminal, for the first time after one second: the duration, and what
 * cli_build_model() and cli_explain_model() have done by then.  The end erases the line. */
void cli_progress_begin(const char *what, const char *name);
void cli_progress_end(void);

/* ---- follow.c: traces that are being recorded ---- */

/* Default length of the window of newest events in which findings are searched. */
#define CLI_WINDOW_NS INT64_C(10000000000)
#define CLI_WINDOW_EVENTS (UINT64_C(1) << 18)

#define CLI_OPTION_FOLLOW(flag)                                                                                                  \
	{                                                                                                                        \
		"follow", 0, CLI_FLAG, flag, NULL, "continue while the traces are recorded"                                      \
	}

/* Current state of the traces that are followed. */
struct cli_update {
	const struct weft_model *model; /* valid until `show` returns */
	int64_t stats_span_ns;          /* span of time that the running statistics cover; -1 without statistics */
};

/* Calls `show` for each new model of the joined traces until all recordings have ended, SIGINT or SIGTERM arrives, or `show`
 * returns an exit status.  Returns the exit status of `show`, -1 at the end of the recordings, or CLI_ERROR after printing an
 * error.
 *
 * A refresh reads only new events (model/followers.h).  If the windows of the traces cannot be joined, the traces are read
 * completely each time, with at most a tenth of a CPU. */
int cli_follow(const struct cli_args *args, const struct weft_follower_options *options,
    int (*show)(void *ctx, const struct cli_update *update), void *ctx);

/* ---- session.c: directories that weft record made, with a trace for each process ---- */

/* Prints the size of a trace on stderr.  Returns whether the trace has promises other than OS threads. */
bool cli_note_trace(const char *path, bool with_command);

/* Makes one plan for all operands or, with `compare`, one plan for each operand.  Each plan replaces machine-code addresses by
 * names like cli_find_site_names_again().  Returns the number of plans, 0 without memory; *out lives until the program ends. */
size_t cli_make_pictures(struct open_plan ***out, const struct cli_args *args, bool compare);

/* Opens the trace of a picture by its plan (open_run()). */
int cli_picture_open(struct weft_trace **out, const struct open_plan *picture, struct weft_error *err);

#define CLI_OPTION_COMPARE(flag)                                                                                                 \
	{                                                                                                                        \
		"compare", 0, CLI_FLAG, flag, NULL, "show the traces one above the other instead of as one picture"              \
	}

/* ---- pack.c: traces for pages ---- */

typedef WEFT_VEC(unsigned char) cli_bytes;

/* Implements weft_export_write_fn. */
int cli_bytes_append(void *bytes, const void *more, size_t size);

/* Returns an open trace as one piece of bytes: its file, which is valid while the trace is open, or a tar archive of its
 * directory in the caller's `packed`.  Fails with WEFT_ENOMEM. */
int cli_pack(const void **bytes, size_t *size, cli_bytes *packed, const struct weft_trace *trace, struct weft_error *err);

/* Packs the window of newest events of a followed trace (weft_followed_model_save()). */
int cli_pack_window(cli_bytes *packed, const struct weft_followed_model *followed, struct weft_error *err);

/* Returns the name under which a page shows a trace. */
const char *cli_base_name(const char *path);

/* ---- file.c: files that a verb writes ---- */

struct cli_file {
	const char *name; /* for messages */
	const char *path;
	char *temporary; /* name of the temporary file; NULL if the file is written in place */
	FILE *stream;
};

/* Opens a file for writing; "-" is standard output.  An existing file is replaced when the new file is complete; devices and
 * pipes are written directly.  Returns -1 to continue; otherwise an error was printed, and the result is the exit status. */
int cli_file_begin(struct cli_file *file, const char *path);
/* Opens a file like cli_file_begin(), for a copy of a trace: only the file's owner may read a new file. */
int cli_file_begin_private(struct cli_file *file, const char *path);
/* Creates a file that only its owner may read.  Returns NULL with errno on failure. */
FILE *cli_create_private(const char *path);

/* Implements weft_export_write_fn. */
int cli_file_write(void *file, const void *bytes, size_t size);

/* Moves the file to its final name or, if status < 0, removes it.  Prints errors, also *err, and returns the exit status. */
int cli_file_end(struct cli_file *file, int status, const struct weft_error *err);

/* ---- directory.c: directories that a verb writes ---- */

struct cli_directory {
	const char *path;
	char *temporary;
	int error; /* errno of the first failure, or 0 */
};

/* Creates a directory that appears under its name only when it is complete; of existing directories, only an empty one is
 * replaced.  Returns as cli_file_begin().
 */
int cli_directory_begin(struct cli_directory *dir, const char *path);

/* Writes one file into the directory; usable as weft_export_file_fn and weft_trace_file_fn.  If `name` contains a folder, the
 * function creates it. */
int cli_directory_write(void *dir, const char *name, const void *bytes, size_t size);

/* Finishes the directory; the result is like that of cli_file_end(). */
int cli_directory_end(struct cli_directory *dir, int status, const struct weft_error *err);

/* Removes a folder inside of an open folder: its files, and the files of its subfolders, but nothing deeper.  No link is
 * followed.  Returns whether the folder is gone. */
bool cli_directory_remove(int parent, const char *name);

/* ---- archive.c: archives ---- */

#define CLI_TAR_BLOCK 512

/* Writes a member of a ustar archive, without owner and time, so that equal traces give equal bytes.  Returns the first nonzero
 * result of `write`, or 0. */
int cli_tar_write(
    int (*write)(void *ctx, const void *bytes, size_t size), void *ctx, const char *name, const void *bytes, size_t size);

/* A tar archive, compressed by zstd. */
struct cli_archive {
	struct cli_file file;
	void *zstd, *piece;
	int error; /* errno of the first failed write; 0 if none failed */
};

/* Returns whether this weft can compress archives, which needs libzstd. */
bool cli_archive_can(void);

/* The archive functions work like cli_file_begin_private(), cli_directory_write() and cli_file_end(). */
int cli_archive_begin(struct cli_archive *archive, const char *path);
int cli_archive_write(void *archive, const char *name, const void *bytes, size_t size);
int cli_archive_end(struct cli_archive *archive, int status, const struct weft_error *err);

/* Saves a native trace or joined traces as `edit` requires.  If `scrub` is given, it must be empty; the function fills it with
 * stand-ins for texts, and the caller finishes it.  Returns as weft_trace_save(). */
struct weft_scrub;
int cli_save_scrubbed(const struct weft_trace *trace, struct weft_trace_edit *edit, struct weft_scrub *scrub,
    weft_trace_file_fn *put, void *ctx, struct weft_error *err);

/* ---- view.c: the window, which is a separate program ---- */

bool cli_has_display(void);

/* Executes weft-view; sets argv[0].  Runs the window's program in this process; returns only on failure, with errno. */
void cli_exec_window(char **argv);

/* Writes the path of the window's program into `path` of `size` bytes; returns false if the program is not installed. */
bool cli_find_window(char *path, size_t size);

/* ---- output.c: messages and output of the verbs ---- */

/* Prints "weft: " and the message as one line on stderr, and returns CLI_ERROR. */
__attribute__((format(printf, 1, 2))) int cli_fail(const char *format, ...);

/* Prints "weft VERB: " and the message, for usage errors. */
__attribute__((format(printf, 2, 3))) int cli_fail_verb(const char *verb, const char *format, ...);

/* Prints an error of the library, and returns CLI_ERROR. */
int cli_fail_error(const struct weft_error *err);

/* Words for the ends of promises, by enum weft_end, and for links, by enum weft_link_kind. */
extern const char *const cli_end_names[], *const cli_link_names[WEFT_LINK_KINDS];

/* Prints a note on stderr; the exit status does not change. */
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);

/* Returns false if stdout cannot be written any more; a verb then stops early. */
bool cli_stdout_ok(void);

/* Flushes stdout.  Returns `status`, or prints an error and returns CLI_ERROR if output was lost.  If the reader of a pipe left
 * early, that is no error. */
int cli_finish(int status);

/* Prints a JSON string with quotes; invalid UTF-8 becomes U+FFFD.  Output for people quotes texts in the same way, so that no
 * byte of a trace reaches a terminal as a control character or changes the direction of text. */
void cli_put_string(struct weft_str text);
void cli_put_cstring(const char *text);
void cli_put_text(struct weft_str text); /* without the quotes */

/* Limits the output of long texts to a multiple of the input's size: longer texts are cut, and cli_finish() prints a note.
 * cli_open() calls this function; limits of several inputs add up. */
void cli_limit_texts(uint64_t input_bytes);

/* Print to standard output without the cost of printf(). */
void cli_put(const char *text);
void cli_put_uint(uint64_t value);
void cli_put_int(int64_t value);
/* Print facts of a program that was seen once, without a recording (seen.c): the time and the process, and the OS threads that
 * wait for nothing.  For other traces, the functions print nothing. */
void cli_put_seen(const struct weft_model *m);
void cli_put_seen_runners(const struct weft_model *m, const struct weft_waits *waits);

/* Prints the sentences of analysis/queries/summary.h, each as a line or as an element of a JSON array (summary.c).  `findings`
 * may be NULL.  Returns -1 or an exit status. */
int cli_put_summary(const struct weft_model *m, const struct weft_findings *findings, bool json);

/* Lists this user's processes that hang, never sleep or are stopped (waits_all.c), and returns the exit status. */
int cli_waits_all(void);

/* Prints waits as a tree (waits.c). */
void cli_put_wait_tree(const struct weft_model *m, const struct weft_waits *waits);

void cli_put_seconds(int64_t ns); /* seconds with 9 digits after the point */

/* Formats a duration as "12.3 ms", and returns buf. */
enum { CLI_DURATION_BYTES = 48 };
char *cli_format_duration(char buf[CLI_DURATION_BYTES], int64_t ns);

/* Headings and cells of the table of promise types, whose last column is the type. */
enum { CLI_CELLS = 9, CLI_CELL_BYTES = 192 };
extern const char *const cli_cell_headings[CLI_CELLS];
struct weft_table_row;
void cli_table_cells(char cells[CLI_CELLS][CLI_CELL_BYTES], const struct weft_model *model, const struct weft_table_row *row);

/* Print an OS thread as "stream":N,"thread":NAME, or for people as " #N NAME" if there are several threads. */
void cli_put_stream_json(const struct weft_trace_info *info, unsigned stream);
void cli_put_stream(const struct weft_trace_info *info, unsigned stream);

/* Print a source location as {"file":...} or null, or for people as " at file:line in function" if it is known. */
void cli_put_site_json(const struct weft_trace_info *info, uint32_t site);
void cli_put_site(const struct weft_trace_info *info, uint32_t site);

/* Options of a recording, as texts and as numbers; 0 if an option is not given (record.c). cli_ring_check() returns -1 or an
 * exit status. */
struct cli_ring {
	const char *size, *mode, *packets, *stacks;
	uint64_t size_bytes, packet_count, stack_count;
};
int cli_ring_check(struct cli_ring *ring, const char *verb);

/* Prints for weft info how several traces are joined (multi_report.c).  Returns an exit status. */
int cli_multi_report(const struct cli_args *traces, bool json);

/* Removes the findings that the lines of a file match, and prints notes (suppress.c).  Returns -1 or an exit status. */
struct weft_findings;
int cli_suppress_findings(const char *path, const struct cli_input *input, struct weft_findings *findings);

#endif
