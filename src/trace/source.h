/* source.h: where a trace's bytes come from: a file, a directory, standard input, memory.
 *
 * Whatever it was, a format sees a list of blobs.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_SOURCE_H
#define WEFT_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct weft_position;

/* Bytes of a blob. */
struct weft_span {
	size_t begin, end;
};

enum weft_blob_owner { WEFT_BLOB_BORROWED, WEFT_BLOB_HEAP };

/* The bytes of one file, as they were when it was opened: a copy.  A mapping would cost less, but ends the process that looks at
 * it when somebody makes the file shorter. */
struct weft_blob {
	char *name; /* in a directory or archive: within it; else as the source's */
	const unsigned char *bytes;
	size_t size;
	enum weft_blob_owner owner;
	size_t mapped; /* bytes of the mapping that holds them; 0: it is malloc()'s memory */
	struct weft_span
	    *data; /* what was not a hole in its file, in order; the rest is zeros.  NULL: nothing is known of holes */
	size_t data_count;
	bool is_found;    /* a packet of a memory's image ... */
	uint64_t address; /* ... and where it stands there */
};

#define WEFT_SOURCE_NOTE 160

/* In an archive of several traces, the name of one that is a single file. */
#define WEFT_PART_FILE "trace"

/* Copies `bytes` of what stands at `offset` now, each aligned word of 8 bytes whole; false: not so many are to be had. */
typedef bool weft_source_read_fn(void *ctx, uint64_t offset, void *to, size_t bytes);

struct weft_source {
	char *name;  /* as given; "standard input" */
	bool is_dir; /* a directory, or a tar archive of one */
	struct weft_blob
	    *blobs; /* of a directory: its regular files, by name in byte order, not hidden ones nor subdirectories */
	size_t blob_count;
	struct weft_blob
	    archive; /* the memory into which blobs point: a tar archive's own bytes, or room for a directory's files */

	bool has_folders; /* an archive of several traces: each has a folder, which the names of its blobs begin with */
	const struct weft_position *from;  /* what came before it is not needed; or NULL */
	const struct weft_position *known; /* behind .from: how far it was read already; or NULL */
	bool is_still;                     /* its packets were copied one by one, each whole: there is nobody who writes them */
	char (*notes)[WEFT_SOURCE_NOTE];   /* what else is to be said of it: clauses without a full stop */
	size_t note_count;

	/* While a format opens the trace: reads from the blob's file again, what stands there now; false: not so many bytes are
	 * to be had.  NULL: there is no file, or no longer. */
	bool (*reread)(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes);
	/* Of a directory, like reread: adds the files that were not there before; the others stay what they are, at other places
	 * in .blobs.  NULL: there is none, or it is no directory. */
	int (*reload)(struct weft_source *source, struct weft_error *err);
	int file; /* for both: the file, or the directory; -1: neither */
	weft_source_read_fn *read;
	void *read_ctx; /* for reread: of memory that somebody writes */
};

/* Opens a file, a directory, or "-".  In a file that no format knows a ring is searched, as in the image of a memory (image.h);
 * with /proc/PID/mem, in the memory of that process.  A tar archive (ustar, or GNU's) stands for the directory in it that has a
 * file `metadata`, for those if there are several, else for its top.  On success *out is to be given to weft_source_close(); on
 * failure it is untouched. WEFT_ENOENT, WEFT_EACCES, WEFT_EIO, WEFT_ENOMEM, WEFT_ETOOBIG (more than weft_source_limit()),
 * WEFT_EFORMAT (a FIFO into which nobody writes; standard input or a directory whose first bytes no format knows: the rest is not
 * read). */
int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err);

/* The same, without the packets that lie before a position; it is to live as long as the source. */
int weft__source_open_from(struct weft_source *out, const char *path, const struct weft_position *from, struct weft_error *err);

/* The packets of a ring in the image of a memory: of the one whose uuid begins so, or with NULL the newest; others are noted.
 * As weft_source_open(); WEFT_EINVAL (several begin so). */
int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err);

/* The same in the memory of a process, which goes on as it likes.  Where it records into a directory, that is opened. */
int weft__source_open_process(struct weft_source *out, long pid, const char *uuid, struct weft_error *err);

/* The same for bytes that stay the caller's.  WEFT_ENOMEM. */
int weft_source_from_memory(struct weft_source *out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* The same for `size` bytes that somebody may be writing; `read` is called until the trace is open.  WEFT_ENOMEM, WEFT_EIO. */
int weft__source_from_reader(
    struct weft_source *out, weft_source_read_fn *read, void *ctx, size_t size, const char *name, struct weft_error *err);

/* The bytes of `blob`, which become the source's also on failure. */
int weft__source_from_blob(struct weft_source *out, struct weft_blob blob, const char *name, struct weft_error *err);

void weft_source_close(struct weft_source *source);

/* From here on there is no .reread; the file is closed. */
void weft__source_settle(struct weft_source *source);

/* The blob with that name, or NULL. */
const struct weft_blob *weft_source_find(const struct weft_source *source, const char *name);

/* Whether these first bytes are those of a tar archive. */
bool weft__source_is_tar(const unsigned char *bytes, size_t size);

/* Sorts the blobs by name. */
void weft__source_sort(struct weft_source *source);

void weft__blob_release(struct weft_blob *blob);

/* The next bytes at or behind `at` that are not in a hole of the file; empty, at the blob's end, if there are none. */
struct weft_span weft__blob_data(const struct weft_blob *blob, size_t at);

/* How much is read at most of what does not tell its size: standard input, pipes, devices.  For the whole process; without a
 * call, half of the machine's memory. */
void weft_source_limit(uint64_t bytes);

#endif
