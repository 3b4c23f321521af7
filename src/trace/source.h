/* source.h: provides the bytes of a trace from a file, a directory, standard input or memory.
 *
 * A format always sees a list of blobs.  SPDX-License-Identifier: ISC */
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

/* The bytes of one file, copied when it was opened.  Mapping the file would be cheaper, but would kill the reader when the file
 * is truncated. */
struct weft_blob {
	char *name; /* name of the file in the directory or archive; otherwise the name of the source */
	const unsigned char *bytes;
	size_t size;
	enum weft_blob_owner owner;
	size_t mapped; /* size of the mapping that contains the bytes; 0 if they were allocated with malloc() */
	/* ranges that are not holes in the file, in order; all other bytes are zeros.  NULL: holes are unknown */
	struct weft_span *data;
	size_t data_count;
	bool is_found;    /* true for a packet that was found in an image */
	uint64_t address; /* address of the packet in the image, if is_found */
};

#define WEFT_SOURCE_NOTE 160

/* The name of a single-file trace in an archive of several traces. */
#define WEFT_PART_FILE "trace"

/* Copies `bytes` present bytes at `offset`, each aligned 8-byte word atomically; returns false if fewer bytes are available. */
typedef bool weft_source_read_fn(void *ctx, uint64_t offset, void *to, size_t bytes);

struct weft_source {
	char *name;  /* as given; "standard input" */
	bool is_dir; /* true for a directory, or for a tar archive of one */
	struct weft_blob
	    *blobs; /* for a directory: its regular files in byte order of their names, without hidden files and subdirectories */
	size_t blob_count;
	struct weft_blob archive; /* memory into which blobs point: the bytes of a tar archive, or of a directory's files */

	bool has_folders; /* true for an archive of several traces; each has a folder, with which the names of its blobs start */
	const struct weft_position *from;  /* position before which no events are needed; or NULL */
	const struct weft_position *known; /* later position up to which the trace was read before; or NULL */
	/* true if packets were copied one by one, each complete, so that no program writes to them */
	bool is_frozen;
	char (*notes)[WEFT_SOURCE_NOTE]; /* other notes, each a clause without a full stop */
	size_t note_count;

	/* Reads from the blob's file again while a format opens the trace; returns false if fewer bytes are available.
	 * `reread` is NULL if the source no longer has a file. */
	bool (*reread)(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes);
	/* Reads a directory again while a format opens the trace, and adds new files.  Other blobs keep their content but may
	 * move in .blobs.  `reload` is NULL if the source is not a directory. */
	int (*reload)(struct weft_source *source, struct weft_error *err);
	int file; /* file descriptor for reread and reload: the file or the directory; -1 if there is none */
	weft_source_read_fn *read;
	void *read_ctx; /* argument of `read`, for memory to which a program may be writing */
};

/* Opens a file, a directory, or "-" for standard input.  A file that no format knows is searched for a ring, as a memory image
 * (image.h); /proc/PID/mem is searched as the memory of that process.  A tar archive (ustar or GNU) is read as the directory in
 * it that has a file `metadata`, or as several such directories; if it has none, as its top directory.  On success the caller
 * closes *out with weft_source_close(); on failure *out is unchanged.  Fails with WEFT_ENOENT, WEFT_EACCES, WEFT_EIO,
 * WEFT_ENOMEM or WEFT_ETOOBIG (more than weft_source_limit()).  Fails with WEFT_EFORMAT for a FIFO without a writer, or for
 * standard input or a directory with first bytes that no format knows (the rest is not read). */
int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err);

/* Opens a source without the packets before a position, which must live as long as the source. */
int weft__source_open_from(struct weft_source *out, const char *path, const struct weft_position *from, struct weft_error *err);

/* Opens the packets of a ring in a memory image, and notes other rings.  `uuid` is the start of the ring's UUID; NULL for the
 * newest ring. Fails like weft_source_open(), or with WEFT_EINVAL if several rings match. */
int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err);

/* Opens the packets of a ring in the memory of a process, which keeps running.  If the process records into a directory, opens
 * that directory. */
int weft__source_open_process(struct weft_source *out, long pid, const char *uuid, struct weft_error *err);

/* Makes a source of bytes that the caller still owns.  WEFT_ENOMEM. */
int weft_source_from_memory(struct weft_source *out, const void *bytes, size_t size, const char *name, struct weft_error *err);

/* Makes a source of `size` bytes to which a program may be writing; `read` is called until the trace is open.  WEFT_ENOMEM,
 * WEFT_EIO. */
int weft__source_from_reader(
    struct weft_source *out, weft_source_read_fn *read, void *ctx, size_t size, const char *name, struct weft_error *err);

/* Makes a source of a blob and takes over its bytes, on failure too. */
int weft__source_from_blob(struct weft_source *out, struct weft_blob blob, const char *name, struct weft_error *err);

void weft_source_close(struct weft_source *source);

/* Closes the file, so that .reread is no longer available. */
void weft__source_end_reading(struct weft_source *source);

/* Returns the blob with the given name, or NULL. */
const struct weft_blob *weft_source_find(const struct weft_source *source, const char *name);

/* Returns true if the bytes are the start of a tar archive. */
bool weft__source_is_tar(const unsigned char *bytes, size_t size);

/* Sorts the blobs of the source by name. */
void weft__source_sort(struct weft_source *source);

void weft__blob_release(struct weft_blob *blob);

/* Returns the next range at or after `at` that is not a hole of the file; an empty range at the end of the blob if there is
 * none. */
struct weft_span weft__blob_data(const struct weft_blob *blob, size_t at);

/* Limits how many bytes are read from inputs without a known size: standard input, pipes, devices.  The limit holds for the
 * whole process; without a call, it is half of the machine's memory. */
void weft_source_limit(uint64_t bytes);

#endif
