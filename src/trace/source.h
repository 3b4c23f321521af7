/* source.h: the bytes of a trace, from a file, a directory, standard input or memory.
 *
 * A format always sees a list of blobs.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_SOURCE_H
#define WEFT_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct weft_position;

/* A range of a blob's bytes. */
struct weft_span {
	size_t begin, end;
};

enum weft_blob_owner { WEFT_BLOB_BORROWED, WEFT_BLOB_HEAP };

/* The bytes of one file, copied when it was opened.  A mapping would be cheaper, but would kill the reader when the file is
 * truncated. */
struct weft_blob {
	char *name; /* name in the directory or archive; else the source's name */
	const unsigned char *bytes;
	size_t size;
	enum weft_blob_owner owner;
	size_t mapped;          /* bytes of the mapping that contains them; 0: allocated with malloc() */
	struct weft_span *data; /* ranges that are not holes in the file, in order; the rest is zeros.  NULL: holes are unknown */
	size_t data_count;
	bool is_found;    /* a packet that was found in an image */
	uint64_t address; /* if is_found: its address in the image */
};

#define WEFT_SOURCE_NOTE 160

/* The name of a single-file trace in an archive of several traces. */
#define WEFT_PART_FILE "trace"

/* Copies `bytes` present bytes at `offset`, each aligned 8-byte word atomically; false: fewer bytes are available. */
typedef bool weft_source_read_fn(void *ctx, uint64_t offset, void *to, size_t bytes);

struct weft_source {
	char *name;  /* as given; "standard input" */
	bool is_dir; /* a directory, or a tar archive of one */
	struct weft_blob
	    *blobs; /* of a directory: its regular files in byte order of their names, without hidden files and subdirectories */
	size_t blob_count;
	struct weft_blob archive; /* memory into which blobs point: the bytes of a tar archive, or of a directory's files */

	bool has_folders; /* an archive of several traces; each has a folder, with which the names of its blobs start */
	const struct weft_position *from;  /* position before which nothing is needed; or NULL */
	const struct weft_position *known; /* later position up to which the trace was read before; or NULL */
	bool is_frozen;                    /* packets were copied one by one, each complete: no program writes them */
	char (*notes)[WEFT_SOURCE_NOTE];   /* other notes: clauses without a full stop */
	size_t note_count;

	/* Reads from the blob's file again while a format opens the trace; false: fewer bytes are available.  NULL: there is no
	 * file any more. */
	bool (*reread)(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes);
	/* Reads a directory again while a format opens the trace: adds new files.  Other blobs keep their content but may move in
	 * .blobs.  NULL: the source is not a directory. */
	int (*reload)(struct weft_source *source, struct weft_error *err);
	int file; /* descriptor for both: the file or the directory; -1: none */
	weft_source_read_fn *read;
	void *read_ctx; /* for `read`, of memory that may be written concurrently */
};

/* Opens a file, a directory, or "-".  A file that no format knows is searched for a ring, as a memory image (image.h);
 * /proc/PID/mem is searched as the memory of that process.  A tar archive (ustar or GNU) is read as the directory in it that has
 * a file `metadata`, or as several such directories; without any, as its top directory.  On success the caller closes *out with
 * weft_source_close(); on failure it is unchanged.  WEFT_ENOENT, WEFT_EACCES, WEFT_EIO, WEFT_ENOMEM, WEFT_ETOOBIG (more than
 * weft_source_limit()).  WEFT_EFORMAT: a FIFO without a writer; or standard input or a directory with first bytes that no format
 * knows (the rest is not read). */
int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err);

/* Opens a source without the packets before a position, which must outlive the source. */
int weft__source_open_from(struct weft_source *out, const char *path, const struct weft_position *from, struct weft_error *err);

/* Opens the packets of a ring in a memory image: the ring with a UUID that starts like this, or with NULL the newest; notes
 * others. Fails as weft_source_open(); WEFT_EINVAL: several rings match. */
int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err);

/* Opens the packets of a ring in the memory of a process, which keeps running.  If the process records into a directory, opens
 * that. */
int weft__source_open_process(struct weft_source *out, long pid, const char *uuid, struct weft_error *err);

/* Makes a source of bytes that stay the caller's.  WEFT_ENOMEM. */
int weft_source_from_memory(struct weft_source *out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* Makes a source of `size` bytes that may be written concurrently; `read` is called until the trace is open.  WEFT_ENOMEM,
 * WEFT_EIO. */
int weft__source_from_reader(
    struct weft_source *out, weft_source_read_fn *read, void *ctx, size_t size, const char *name, struct weft_error *err);

/* Makes a source of a blob and takes over its bytes, on failure too. */
int weft__source_from_blob(struct weft_source *out, struct weft_blob blob, const char *name, struct weft_error *err);

void weft_source_close(struct weft_source *source);

/* Closes the file: .reread is not available from here on. */
void weft__source_end_reading(struct weft_source *source);

/* Returns the blob with that name, or NULL. */
const struct weft_blob *weft_source_find(const struct weft_source *source, const char *name);

/* Returns true if the bytes are the start of a tar archive. */
bool weft__source_is_tar(const unsigned char *bytes, size_t size);

/* Sorts the blobs by name. */
void weft__source_sort(struct weft_source *source);

void weft__blob_release(struct weft_blob *blob);

/* Returns the next range at or after `at` that is not a hole of the file; empty, at the blob's end, if there is none. */
struct weft_span weft__blob_data(const struct weft_blob *blob, size_t at);

/* Limits how much is read from inputs without a known size: standard input, pipes, devices.  For the whole process; without a
 * call, half of the machine's memory. */
void weft_source_limit(uint64_t bytes);

#endif
