/* open.c: sources of the file system, and standard input.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/size.h"
#include "base/vec.h"
#include "trace/follow.h"
#include "trace/format.h"
#include "trace/gzip.h"
#include "trace/image.h"
#include "trace/packet.h"

/* `dir` is where `path` is, or NULL. */
static int fail_errno(struct weft_error *err, const char *dir, const char *path, int error)
{
	int status = error == ENOENT || error == ENOTDIR ? WEFT_ENOENT
		     : error == EACCES || error == EPERM ? WEFT_EACCES
		     : error == ENOMEM                   ? WEFT_ENOMEM
							 : WEFT_EIO;
	return weft__trace_fail(err, status, NULL, &(struct weft_blob){.name = (char *)path}, "%s", strerror(error));
}

/* Whether reading on makes sense: by now its first bytes are known. */
static bool is_known(const unsigned char *bytes, size_t size)
{
	struct weft_blob blob = {.name = (char *)"", .bytes = bytes, .size = size};
	struct weft_source source = {.name = (char *)"", .blobs = &blob, .blob_count = 1};
	return weft__source_is_tar(bytes, size) || weft__trace_probe(&source);
}

/* ---- What does not tell its size ---- */

enum { PIECE = 1 << 16, SILENCE_MS = 60000 };

static uint64_t limit; /* 0: half of the machine's memory */

void weft_source_limit(uint64_t bytes)
{
	limit = bytes;
}

static uint64_t most_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : (uint64_t)1 << 30;
	return limit ? limit : half;
}

__attribute__((format(printf, 4, 5))) static int fail_at(
    struct weft_error *err, enum weft_status status, const char *path, const char *what, ...)
{
	char text[sizeof err->what];
	va_list args;
	va_start(args, what);
	vsnprintf(text, sizeof text, what, args);
	va_end(args);
	return weft__trace_fail(err, status, NULL, &(struct weft_blob){.name = (char *)(uintptr_t)path}, "%s", text);
}

/* As read().  A FIFO does not block: its writer is waited for as long as it is there and not silent for too long. */
static ssize_t read_some(int fd, void *to, size_t bytes)
{
	for (;;) {
		ssize_t n = read(fd, to, bytes);
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (errno == EAGAIN && poll(&ready, 1, SILENCE_MS) == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
}

typedef WEFT_VEC(unsigned char) byte_vec;

/* Reads to the end, but only what a format knows, as it may not have an end. */
static int slurp_bytes(byte_vec *bytes, int fd, bool is_fifo, const char *path, struct weft_error *err)
{
	const uint64_t most = most_bytes();
	for (bool looked = false;;) {
		if (!weft_vec_reserve(bytes, PIECE))
			return fail_errno(err, NULL, path, ENOMEM);
		ssize_t n = read_some(fd, bytes->items + bytes->count, bytes->capacity - bytes->count);
		if (n < 0 && errno == ETIMEDOUT)
			return fail_at(
			    err, WEFT_EIO, path, "the program that writes into it has sent nothing for %d s", SILENCE_MS / 1000);
		if (n < 0)
			return fail_errno(err, NULL, path, errno);
		if (n == 0 && bytes->count == 0 && is_fifo)
			return fail_at(err, WEFT_EFORMAT, path, "nobody writes into this FIFO");
		bytes->count += (size_t)n;
		if (!looked && bytes->count && (n == 0 || bytes->count >= 512)) {
			looked = true;
			if (!is_known(bytes->items, bytes->count) && !weft__gzip_is(bytes->items, bytes->count))
				return fail_at(err, WEFT_EFORMAT, path, "%s", weft_status_string(WEFT_EFORMAT));
		}
		if (bytes->count > most)
			return fail_at(err, WEFT_ETOOBIG, path, "more than %" PRIu64 " MB came, and there is more", most >> 20);
		if (n == 0)
			return WEFT_OK;
	}
}

static int slurp(struct weft_blob *out, int fd, const struct stat *st, const char *path, struct weft_error *err)
{
	byte_vec bytes = {0};
	int status = slurp_bytes(&bytes, fd, S_ISFIFO(st->st_mode) && fd != STDIN_FILENO, path, err);
	if (status < 0)
		weft_vec_free(&bytes);
	else
		*out = (struct weft_blob){.bytes = bytes.items, .size = bytes.count, .owner = WEFT_BLOB_HEAP};
	return status;
}

/* ---- Files ---- */

/* Reads at `offset` until `bytes` are there, or the file's end; returns how many, or -1. */
static ssize_t read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	size_t got = 0;
	while (got < bytes) {
		ssize_t n = pread(fd, (char *)to + got, bytes - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static bool reread(const struct weft_source *source, const struct weft_blob *blob, uint64_t offset, void *to, size_t bytes)
{
	int fd = source->is_dir ? openat(source->file, blob->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : source->file;
	ssize_t got = fd < 0 ? -1 : read_at(fd, to, bytes, offset);
	if (source->is_dir && fd >= 0)
		close(fd);
	return got == (ssize_t)bytes;
}

/* Zeros for what is read, to become a blob's.  Much of it is a mapping that nothing is reserved for: of a sparse file only what
 * is data takes memory.  What is read as a whole is in large pages, which the kernel clears in a third of the time; a few new
 * events would cost one each. */
static bool allocate(struct weft_blob *blob, size_t bytes, const struct weft_position *from)
{
	enum { LARGE = 2 << 20 };
	*blob = (struct weft_blob){.name = blob->name, .size = bytes, .owner = WEFT_BLOB_HEAP};
	if (bytes < 2 * LARGE) {
		blob->bytes = calloc(bytes ? bytes : 1, 1);
		return blob->bytes != NULL;
	}
	unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	uintptr_t begin = ((uintptr_t)memory + LARGE - 1) / LARGE * LARGE, end = ((uintptr_t)memory + bytes) / LARGE * LARGE;
	if (!from || !from->is_somewhere)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	blob->bytes = memory;
	blob->mapped = bytes;
	return true;
}

typedef WEFT_VEC(struct weft_span) span_vec;

static bool add_span(span_vec *spans, size_t begin, size_t end)
{
	struct weft_span *last = spans->count ? &spans->items[spans->count - 1] : NULL;
	if (last && begin <= last->end) {
		last->end = end > last->end ? end : last->end;
		return true;
	}
	struct weft_span *fresh = weft_vec_push(spans);
	if (fresh)
		*fresh = (struct weft_span){begin, end};
	return fresh != NULL;
}

/* Reads from `at` in the file what is not a hole in it (most of a ring that is young) to zeros; `size` becomes smaller if the
 * file has become so.  An errno, or 0. */
static int read_data(int fd, unsigned char *to, size_t at, size_t *size, span_vec *spans)
{
	while (at < *size) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (data < 0 && errno == ENXIO)
			break;
		/* Where there are no holes to be asked for, all is data. */
		size_t begin = data < 0 ? at : (size_t)data, end = hole <= data || (uint64_t)hole > *size ? *size : (size_t)hole;
		if (begin >= *size)
			break;
		ssize_t got = read_at(fd, to + begin, end - begin, begin);
		if (got < 0)
			return errno;
		if ((size_t)got < end - begin)
			*size = end = begin + (size_t)got;
		if (!add_span(spans, begin, end))
			return ENOMEM;
		at = end;
	}
	return 0;
}

/* What is wanted of a file of a directory that begins so: of a packet of events, or of the kernel's, what is written of it and
 * was not read before, with a page before that. */
static struct weft_span wanted_span(const struct weft_position *from, const unsigned char *first, size_t there, size_t size)
{
	struct weft_packet packet;
	if (!from || there < WEFT_PACKET_HEADER || weft__packet_probe(first, there) != WEFT_PACKET_FINE ||
	    weft__packet_parse(&packet, first) != WEFT_PACKET_FINE || memcmp(packet.uuid, from->uuid, sizeof packet.uuid) != 0 ||
	    (packet.stream_class != WEFT_CLASS_EVENTS && packet.stream_class != WEFT_CLASS_KERNEL))
		return (struct weft_span){0, size};
	const struct weft_reached *reached = packet.stream_class == WEFT_CLASS_KERNEL
						 ? weft_position_of_kernel(from, packet.instance)
						 : weft_position_of(from, packet.instance);
	if (reached && packet.sequence < reached->sequence)
		return (struct weft_span){0, 0};
	const size_t end = packet.content_bytes < size ? (size_t)packet.content_bytes : size;
	const size_t known = reached && packet.sequence == reached->sequence && reached->bytes <= end ? reached->bytes : 0;
	return (struct weft_span){known > WEFT_PACKET_PAGE ? (known / WEFT_PACKET_PAGE - 1) * WEFT_PACKET_PAGE : 0, end};
}

/* Whether anything of the file is wanted. */
static bool is_wanted(const struct weft_position *from, int fd)
{
	unsigned char first[WEFT_PACKET_HEADER];
	const ssize_t there = from ? read_at(fd, first, sizeof first, 0) : 0;
	return there < (ssize_t)sizeof first || wanted_span(from, first, sizeof first, SIZE_MAX).end > 0;
}

/* Reads what is wanted of a file's first `size` bytes to `to`, where zeros are.  The first page by itself: what the header of a
 * packet that still grows says of its content is there when the rest is read. */
static int read_file(struct weft_blob *out, int fd, unsigned char *to, size_t size, const struct weft_position *from,
    const char *path, struct weft_error *err)
{
	unsigned char first[4096];
	size_t head_size = size < sizeof first ? size : sizeof first;
	ssize_t head = read_at(fd, first, head_size, 0);
	if (head < 0)
		return fail_errno(err, NULL, path, errno);
	span_vec spans = {0};
	bool has_more = (size_t)head == head_size && head_size < size;
	const struct weft_span wanted = wanted_span(from, first, (size_t)head, size);
	int error = add_span(&spans, 0, (size_t)head) ? 0 : ENOMEM;
	if (!error && has_more && wanted.end > head_size) {
		size_t there = wanted.end;
		error = read_data(fd, to, wanted.begin, &there, &spans);
		size = there < wanted.end ? there : size;
	}
	if (error) {
		weft_vec_free(&spans);
		return fail_errno(err, NULL, path, error);
	}
	memcpy(to, first, (size_t)head);
	out->bytes = to;
	out->size = has_more ? size : (size_t)head;
	out->data = spans.items;
	out->data_count = spans.count;
	return WEFT_OK;
}

/* What a regular file has now, others to their end; fd stays open. */
static int load(struct weft_blob *out, int fd, const struct stat *st, const struct weft_position *from, const char *path,
    struct weft_error *err)
{
	if (!S_ISREG(st->st_mode))
		return slurp(out, fd, st, path, err);
	struct weft_blob blob = {.name = out->name};
	if ((uint64_t)st->st_size > SIZE_MAX || !allocate(&blob, (size_t)st->st_size, from))
		return fail_errno(err, NULL, path, ENOMEM);
	int status = read_file(&blob, fd, (unsigned char *)(uintptr_t)blob.bytes, (size_t)st->st_size, from, path, err);
	blob.name = status < 0 ? NULL : blob.name;
	if (status < 0)
		weft__blob_release(&blob);
	else
		*out = blob;
	return status;
}

static int unpack(struct weft_blob *blob, const char *path, struct weft_error *err)
{
	const uint64_t most = most_bytes();
	const int status = weft__gzip_unpack(blob, most, is_known);
	if (status == WEFT_ETOOBIG)
		return fail_at(err, status, path, "unpacked it has more than %" PRIu64 " MB", most >> 20);
	if (status == WEFT_EDAMAGED)
		return fail_at(err, status, path, "packed by gzip, and damaged; zcat FILE | weft ... - reads what there is");
	return status < 0 ? fail_errno(err, NULL, path, ENOMEM) : status;
}

/* ---- Images ---- */

static size_t read_image(const struct weft_image *image, uint64_t offset, void *to, size_t bytes)
{
	ssize_t got = offset < image->bytes ? read_at(image->file, to, bytes, offset) : 0;
	return got < 0 ? 0 : (size_t)got;
}

/* Behind holes. */
static uint64_t next_data(const struct weft_image *image, uint64_t offset, uint64_t *end)
{
	off_t data = lseek(image->file, (off_t)offset, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return UINT64_MAX;
	off_t hole = data < 0 ? -1 : lseek(image->file, data, SEEK_HOLE);
	*end = hole <= data ? UINT64_MAX : (uint64_t)hole;
	return data < 0 ? offset : (uint64_t)data;
}

static int search_file(
    struct weft_source *out, int fd, const struct stat *st, const char *path, const char *uuid, struct weft_error *err)
{
	const struct weft_image image = {
	    .name = path, .bytes = (uint64_t)st->st_size, .read = read_image, .next_data = next_data, .file = fd};
	return weft__image_search(out, &image, uuid, err);
}

/* What no format knows by its first bytes is searched, not read whole: it may be larger than this machine's memory, and be
 * written to meanwhile.  Of small ones the size is not always true. */
static bool is_image(int fd, const struct stat *st)
{
	unsigned char first[512];
	ssize_t got = S_ISREG(st->st_mode) && st->st_size > 4096 ? read_at(fd, first, sizeof first, 0) : 0;
	return got > 0 && !is_known(first, (size_t)got) && !weft__gzip_is(first, (size_t)got);
}

int weft__source_open_image(struct weft_source *out, const char *path, const char *uuid, struct weft_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st = {0};
	int status;
	if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, NULL, path, errno);
	else if (!S_ISREG(st.st_mode))
		status = weft__trace_fail(err, WEFT_EFORMAT, NULL, &(struct weft_blob){.name = (char *)path},
		    "it is not a file, and so not an image of memory");
	else
		status = search_file(out, fd, &st, path, uuid, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- Directories ---- */

/* Adds the regular files that are not among the blobs, which are sorted.  Returns 1 if there were any, 0, or an error. */
static int list_files(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	WEFT_VEC(struct weft_blob) blobs = {source->blobs, source->blob_count, source->blob_count};
	int status = WEFT_OK;
	const struct dirent *entry;
	rewinddir(dir);
	while (status == WEFT_OK && (errno = 0, entry = readdir(dir))) {
		struct stat st;
		/* A hidden file is one that is being made. */
		if (entry->d_name[0] == '.' || weft_source_find(source, entry->d_name) ||
		    (source->from && weft_position_is_behind(source->from, entry->d_name)) ||
		    fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		struct weft_blob *blob = weft_vec_push(&blobs);
		char *name = blob ? strdup(entry->d_name) : NULL;
		if (name)
			*blob = (struct weft_blob){.name = name, .size = (size_t)st.st_size};
		else {
			blobs.count -= blob != NULL;
			status = fail_errno(err, NULL, source->name, ENOMEM);
		}
		source->blobs = blobs.items;
	}
	if (status == WEFT_OK && errno)
		status = fail_errno(err, NULL, source->name, errno);
	bool more = blobs.count > source->blob_count;
	source->blob_count = blobs.count;
	weft__source_sort(source);
	return status < 0 ? status : more;
}

/* Whether one of the files begins as a format wants it: nobody's films are read into memory. */
static bool is_known_directory(const struct weft_source *source, DIR *dir)
{
	for (size_t i = 0; i < source->blob_count; i++) {
		unsigned char head[512];
		struct weft_blob blob = {.name = source->blobs[i].name, .bytes = head};
		int fd = openat(dirfd(dir), blob.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t got = fd < 0 ? 0 : read_at(fd, head, sizeof head, 0);
		if (fd >= 0)
			close(fd);
		blob.size = got < 0 ? 0 : (size_t)got;
		const struct weft_source one = {.name = source->name, .is_dir = true, .blobs = &blob, .blob_count = 1};
		if (weft__trace_probe(&one))
			return true;
	}
	return false;
}

/* Reads one of the directory's files to where blob->bytes are to be, if it still fits there, else into memory of its own. */
static int load_listed(
    struct weft_blob *blob, DIR *dir, const struct weft_position *from, const char *path, struct weft_error *err)
{
	unsigned char *room = (unsigned char *)blob->bytes;
	struct stat st;
	int status = WEFT_OK, fd = openat(dirfd(dir), blob->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		blob->bytes = NULL; /* gone meanwhile */
	else if (fd < 0 || fstat(fd, &st) < 0)
		status = fail_errno(err, path, blob->name, errno);
	else if (!S_ISREG(st.st_mode))
		blob->bytes = NULL; /* another thing has its name now, and reading it might never end */
	else if (!is_wanted(from, fd))
		blob->bytes = NULL;
	else if (room && (uint64_t)st.st_size <= blob->size)
		status = read_file(blob, fd, room, (size_t)st.st_size, from, blob->name, err);
	else
		status = load(blob, fd, &st, from, blob->name, err);
	if (fd >= 0)
		close(fd);
	return status;
}

/* The metadata first, so that what they call finished is; last what says what the other files mean, so that these hold nothing
 * that it does not explain. */
static int turn_of(const char *name)
{
	return strcmp(name, "metadata") == 0 ? 0 : strncmp(name, "definitions", 11) == 0 ? 2 : 1;
}

/* Memory for all of the files in one piece, each from a line of the cache on. */
static bool make_room(struct weft_source *source)
{
	enum { LINE = 64 };
	size_t room = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		const size_t size = source->blobs[i].size;
		if (!weft_size_add(&room, size) || !weft_size_add(&room, (LINE - size % LINE) % LINE))
			return false;
	}
	if (!allocate(&source->archive, room, source->from))
		return false;
	size_t at = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		source->blobs[i].bytes = source->archive.bytes + at;
		at += source->blobs[i].size + (LINE - source->blobs[i].size % LINE) % LINE;
	}
	return true;
}

/* Forgets files that were gone when they were to be read. */
static void drop_absent(struct weft_source *source)
{
	size_t kept = 0;
	for (size_t i = 0; i < source->blob_count; i++) {
		if (source->blobs[i].bytes)
			source->blobs[kept++] = source->blobs[i];
		else
			weft__blob_release(&source->blobs[i]);
	}
	source->blob_count = kept;
}

/* A program may be writing it meanwhile. */
static int load_directory(struct weft_source *source, DIR *dir, struct weft_error *err)
{
	int status = 1;
	source->is_dir = true;
	/* One look may miss a file that is just being given its name, and find one that is younger. */
	for (int looks = 0; looks < 16 && status == 1; looks++)
		status = list_files(source, dir, err);
	if (status >= 0 && !is_known_directory(source, dir))
		status =
		    weft__trace_fail(err, WEFT_EFORMAT, source, NULL, "the directory has no trace in a format that weft reads");
	if (status >= 0 && !make_room(source))
		status = fail_at(err, WEFT_ENOMEM, source->name, "its files need more memory than there is");
	for (int turn = 0; turn < 3; turn++) {
		if (turn == 2 && status >= 0)
			status = list_files(source, dir, err);
		for (size_t i = 0; i < source->blob_count && status >= 0; i++)
			if (turn_of(source->blobs[i].name) == turn)
				status = load_listed(&source->blobs[i], dir, source->from, source->name, err);
	}
	drop_absent(source);
	return status < 0 ? status : WEFT_OK;
}

/* Adds what came since: the directory is the source's own, and read with a stream of its own. */
static int reload(struct weft_source *source, struct weft_error *err)
{
	const int own = openat(source->file, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	if (!dir) {
		if (own >= 0)
			close(own);
		return WEFT_OK; /* it is gone: there is no more to be had */
	}
	int status = list_files(source, dir, err);
	for (size_t i = 0; i < source->blob_count && status >= 0; i++) {
		struct weft_blob *blob = &source->blobs[i];
		if (!blob->bytes)
			status = load_listed(blob, dir, source->from, source->name, err);
	}
	closedir(dir);
	drop_absent(source);
	return status < 0 ? status : WEFT_OK;
}

int weft_source_open(struct weft_source *out, const char *path, struct weft_error *err)
{
	return weft__source_open_from(out, path, NULL, err);
}

int weft__source_open_from(struct weft_source *out, const char *path, const struct weft_position *from, struct weft_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fail_errno(err, NULL, name, errno);
	struct stat st = {0};
	int status = WEFT_OK, named = 0;
	long pid;
	struct weft_blob blob = {0};
	if (fstat(fd, &st) < 0)
		status = fail_errno(err, NULL, name, errno);
	else if (S_ISDIR(st.st_mode)) {
		/* A directory stream owns its descriptor, which standard input's owner still needs. */
		int own = is_stdin ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : fd;
		DIR *dir = own < 0 ? NULL : fdopendir(own);
		if (!dir)
			status = fail_errno(err, NULL, name, errno);
		else {
			struct weft_source source = {.name = strdup(name), .from = from};
			status = source.name ? load_directory(&source, dir, err) : fail_errno(err, NULL, name, ENOMEM);
			source.file = status < 0 ? -1 : fcntl(dirfd(dir), F_DUPFD_CLOEXEC, 0);
			source.reread = source.file < 0 ? NULL : reread;
			source.reload = source.file < 0 ? NULL : reload;
			closedir(dir);
			if (status < 0)
				weft_source_close(&source);
			else
				*out = source;
			return status;
		}
	} else if (sscanf(name, "/proc/%ld/mem%n", &pid, &named) == 1 && named == (int)strlen(name)) {
		status = weft__source_open_process(out, pid, NULL, err);
	} else if (is_image(fd, &st)) {
		status = search_file(out, fd, &st, name, NULL, err);
	} else if ((status = load(&blob, fd, &st, NULL, name, err)) == WEFT_OK) {
		struct weft_source source = {0};
		const bool is_packed = weft__gzip_is(blob.bytes, blob.size);
		if (is_packed && (status = unpack(&blob, name, err)) < 0)
			weft__blob_release(&blob);
		else
			status = weft__source_from_blob(&source, blob, name, err);
		if (status == WEFT_OK && S_ISREG(st.st_mode) && !source.is_dir && !is_packed) {
			source.file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
			source.reread = source.file < 0 ? NULL : reread;
		}
		if (status == WEFT_OK)
			*out = source;
	}
	if (!is_stdin)
		close(fd);
	return status;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* It is being recorded just now, or was at `wall_ns`.  OCaml's own files say nothing of the wall clock, but are of this boot. */
static void is_living(struct weft_trace *trace, int64_t wall_ns)
{
	if (trace->format == &weft__format_ocaml && !trace->pair_wall_ns) {
		trace->pair_ns = clock_ns(CLOCK_MONOTONIC);
		trace->pair_wall_ns = wall_ns;
	}
	weft__trace_lived(trace, wall_ns);
}

int weft_trace_open_image(struct weft_trace **out, const char *path, const char *uuid, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_image(&source, path, uuid, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}

int weft_trace_open_process(struct weft_trace **out, long pid, const char *uuid, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_process(&source, pid, uuid, err);
	if (status == WEFT_OK)
		status = weft__trace_from_source(out, &source, err);
	if (status == WEFT_OK && (*out)->info.unfinished)
		weft__trace_lived(*out, wall_ns());
	return status;
}

int weft_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	return weft_trace_open_from(out, path, NULL, NULL, err);
}

int weft_trace_open_from(struct weft_trace **out, const char *path, const struct weft_position *from,
    const struct weft_position *known, struct weft_error *err)
{
	struct weft_source source;
	int status = weft__source_open_from(&source, path, from, err);
	if (status == WEFT_OK)
		source.known = known;
	if (status == WEFT_OK)
		status = weft__trace_from_source(out, &source, err);
	/* What it reads lies before now; that it is recorded still is asked after. */
	int64_t now_ns = wall_ns();
	if (status == WEFT_OK && (*out)->info.unfinished && !(*out)->info.has_died && weft_trace_is_recorded(path))
		is_living(*out, now_ns);
	return status;
}

int weft_trace_open_fd(struct weft_trace **out, int fd, const char *name, struct weft_error *err)
{
	struct weft_source source = {0};
	struct weft_blob blob = {0};
	struct stat st = {0};
	int status = slurp(&blob, fd, &st, name, err);
	if (status == WEFT_OK)
		status = weft__source_from_blob(&source, blob, name, err);
	return status < 0 ? status : weft__trace_from_source(out, &source, err);
}
