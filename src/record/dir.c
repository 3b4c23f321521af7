/* dir.c: a trace directory: files of one packet each, mapped and shared, so that the kernel keeps them when the process dies.
 *
 * A file is made under a hidden name, with its blocks reserved and its header written, and only then gets its name: whoever looks
 * into the directory finds whole packets.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/host.h"

#define DEFINITIONS_BYTES 65536u
#define DEFINITIONS_FILES 256u
#define RING_DEFAULT (16u << 20)
#define FILE_DEFAULT (1u << 20)
#define NAME_SIZE 48

static struct {
	int fd;      /* of the directory, -1: none */
	int lock_fd; /* locked as long as the process records */
	enum weft_record_mode mode;
	uint64_t ring_bytes, packet_bytes;
	unsigned packets;
	uint64_t limit, used; /* grow: bytes of files; 0: no limit */
	unsigned definitions;
	bool made; /* it was not there before */
	char path[4096];
} dir = {.fd = -1, .lock_fd = -1};

static int status_of(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return WEFT_ENOSPC;
	case EACCES:
	case EPERM:
	case EROFS: return WEFT_EACCES;
	case ENOENT:
	case ENOTDIR: return WEFT_ENOENT;
	case ENOMEM: return WEFT_ENOMEM;
	case EEXIST: return WEFT_EEXIST;
	default: return WEFT_EIO;
	}
}

static bool is_ours(const char *name)
{
	if (!strncmp(name, ".weft-", 6))
		name += 6;
	if (!strcmp(name, "metadata"))
		return true;
	size_t word = !strncmp(name, "stream-", 7) ? 7 : !strncmp(name, "definitions", 11) ? 11 : 0;
	return word && name[word + strspn(name + word, "-0123456789")] == 0;
}

/* Empties a directory that holds nothing but a trace's files; WEFT_EEXIST if there are others. */
static int clear(int fd)
{
	int status = WEFT_OK;
	for (int pass = 0; pass < 2 && status == WEFT_OK; pass++) {
		DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		if (!d)
			return status_of(errno);
		const struct dirent *entry;
		while (status == WEFT_OK && (entry = readdir(d))) {
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
				continue;
			if (!is_ours(entry->d_name))
				status = WEFT_EEXIST;
			else if (pass == 1 && unlinkat(fd, entry->d_name, 0))
				status = status_of(errno);
		}
		closedir(d);
	}
	return status;
}

static bool is_empty(int fd)
{
	DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	bool empty = d != NULL;
	const struct dirent *entry;
	while (d && empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

/* The path with %p replaced; false: too long. */
static bool expand(char *out, size_t size, const char *path)
{
	size_t n = 0;
	for (; *path; path++) {
		int wrote = path[0] == '%' && path[1] == 'p' ? snprintf(out + n, size - n, "%ld", (long)getpid())
							     : snprintf(out + n, size - n, "%c", *path);
		if (path[0] == '%' && path[1] == 'p')
			path++;
		n += (size_t)wrote;
		if (n >= size)
			return false;
	}
	out[n] = 0;
	return n != 0;
}

/* Reserves `bytes` under a hidden name and maps them at `at` (NULL: anywhere); on failure errno says why. */
static int make_file(const char *hidden, size_t bytes, void *at, unsigned char **out)
{
	int fd = openat(dir.fd, hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return status_of(errno);
	int error = posix_fallocate(fd, 0, (off_t)bytes);
	if (!error) {
		/* Small ones at once: the first lap is then as fast as the later ones. */
		int populate = bytes <= 1u << 17 ? MAP_POPULATE : 0;
		void *map = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate | (at ? MAP_FIXED : 0), fd, 0);
		if (map == MAP_FAILED)
			error = errno;
		else
			*out = map;
	}
	close(fd);
	if (error)
		unlinkat(dir.fd, hidden, 0);
	errno = error;
	return error ? status_of(error) : WEFT_OK;
}

static void packet_name(char name[NAME_SIZE], const char *before, unsigned instance, unsigned file)
{
	snprintf(name, NAME_SIZE, "%sstream-%u-%u", before, instance, file);
}

/* Makes the file under its hidden name, with the stream's header in it, gives it its name, and only then puts it where the last
 * one is mapped: what fails leaves the last one in its place, for the count of what is lost. */
static bool next_file(struct weft__stream *s, const char *hidden, const char *name)
{
	size_t bytes = s->storage.packet_bytes;
	unsigned char *fresh = NULL;
	if (make_file(hidden, bytes, NULL, &fresh) < 0)
		return false;
	weft__packet_prepare(s, fresh);
	void *base = s->storage.base;
	if (renameat(dir.fd, hidden, dir.fd, name)) {
		unlinkat(dir.fd, hidden, 0);
	} else if (!base) {
		s->storage.base = fresh;
		return true;
	} else if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base) == base) {
		return true;
	} else {
		unlinkat(dir.fd, name, 0);
	}
	int error = errno;
	munmap(fresh, bytes);
	errno = error;
	return false;
}

/* A trace that grows. */
static bool grow(struct weft__stream *s)
{
	struct weft__thread *t = s->host;
	char hidden[NAME_SIZE], name[NAME_SIZE];
	if (dir.limit) {
		uint64_t used = __atomic_add_fetch(&dir.used, dir.packet_bytes, __ATOMIC_RELAXED);
		if (used > dir.limit) {
			__atomic_sub_fetch(&dir.used, dir.packet_bytes, __ATOMIC_RELAXED);
			return false;
		}
	}
	packet_name(hidden, ".weft-", s->instance, t->files);
	packet_name(name, "", s->instance, t->files);
	if (!next_file(s, hidden, name))
		return false;
	t->files++;
	return true;
}

static bool grow_definitions(struct weft__stream *s)
{
	char hidden[NAME_SIZE], name[NAME_SIZE];
	snprintf(hidden, sizeof hidden, ".weft-definitions-%u", dir.definitions);
	snprintf(name, sizeof name, "definitions-%u", dir.definitions);
	if (dir.definitions == DEFINITIONS_FILES || !next_file(s, hidden, name))
		return false;
	dir.definitions++;
	return true;
}

int weft__dir_storage(struct weft__thread *t, unsigned instance)
{
	struct weft__stream *s = t->stream;
	bool ring = dir.mode == WEFT_RECORD_RING;
	unsigned count = ring ? dir.packets : 1;
	size_t bytes = (size_t)count * dir.packet_bytes;
	if (!ring && dir.limit && __atomic_add_fetch(&dir.used, dir.packet_bytes, __ATOMIC_RELAXED) > dir.limit) {
		__atomic_sub_fetch(&dir.used, dir.packet_bytes, __ATOMIC_RELAXED);
		return WEFT_ENOSPC;
	}
	unsigned char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return WEFT_ENOMEM;
	s->instance = instance;
	s->storage =
	    (struct weft__storage){.base = base, .packet_bytes = dir.packet_bytes, .count = count, .grow = ring ? NULL : grow};
	char hidden[NAME_SIZE], name[NAME_SIZE];
	int status = WEFT_OK;
	unsigned made = 0;
	for (; made < count && status == WEFT_OK; made++) {
		unsigned char *at = base + (size_t)made * dir.packet_bytes;
		packet_name(hidden, ".weft-", instance, made);
		status = make_file(hidden, dir.packet_bytes, at, &at);
		if (status == WEFT_OK)
			weft__packet_prepare(s, at);
	}
	int error = errno;
	for (unsigned i = 0; i < made; i++) {
		packet_name(hidden, ".weft-", instance, i);
		packet_name(name, "", instance, i);
		if (status < 0)
			unlinkat(dir.fd, hidden, 0);
		else if (renameat(dir.fd, hidden, dir.fd, name))
			status = status_of(error = errno);
	}
	if (status < 0) {
		munmap(base, bytes);
		s->storage.base = NULL;
		errno = error;
		return status;
	}
	t->mapped_bytes = bytes;
	t->files = count;
	return WEFT_OK;
}

int weft__dir_metadata(const struct weft_metadata *metadata)
{
	size_t size = 65536;
	char *text = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		return WEFT_ENOMEM;
	int status = WEFT_OK;
	size_t length = weft__metadata_format(text, size, metadata), wrote = 0;
	int fd = openat(dir.fd, ".weft-metadata", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		status = status_of(errno);
	while (status == WEFT_OK && wrote < length) {
		ssize_t n = write(fd, text + wrote, length - wrote);
		if (n >= 0)
			wrote += (size_t)n;
		else if (errno != EINTR)
			status = status_of(errno);
	}
	if (fd >= 0) {
		/* Whoever finds it locked knows that the trace is still being written. */
		if (dir.lock_fd >= 0)
			close(dir.lock_fd);
		dir.lock_fd = fd;
		flock(fd, LOCK_EX | LOCK_NB);
	}
	if (status == WEFT_OK && renameat(dir.fd, ".weft-metadata", dir.fd, "metadata"))
		status = status_of(errno);
	munmap(text, size);
	return status;
}

int weft__dir_start(const struct weft_record_options *o, char *why, size_t why_size)
{
	char *path = dir.path;
	if (!expand(path, sizeof dir.path, o->directory)) {
		snprintf(why, why_size, "the directory's name is empty or too long");
		return WEFT_EINVAL;
	}
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *what = NULL;
	int status = WEFT_OK;
	dir.mode = o->mode;
	dir.limit = dir.used = 0;
	dir.definitions = 0;
	if (o->mode == WEFT_RECORD_RING) {
		dir.ring_bytes = o->size_bytes ? o->size_bytes : RING_DEFAULT;
		dir.packets = o->packets ? o->packets : 16;
		status = weft__ring_check(dir.ring_bytes, dir.packets, page, &what);
		dir.packet_bytes = dir.ring_bytes / dir.packets / page * page;
	} else {
		uint64_t least = o->size_bytes && o->size_bytes / 4 < FILE_DEFAULT ? o->size_bytes / 4 : FILE_DEFAULT;
		dir.limit = o->size_bytes;
		dir.packet_bytes = (o->packet_bytes ? o->packet_bytes : least) / page * page;
		if (dir.packet_bytes == 0 || (dir.limit && dir.limit < dir.packet_bytes)) {
			status = WEFT_ETOOBIG;
			what = "the size is too small for a file of one packet";
		} else if (dir.packet_bytes > UINT32_MAX / 2) {
			status = WEFT_EINVAL;
			what = "a packet would be larger than 2 GiB";
		}
	}
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", path, what);
		return status;
	}
	bool made = dir.made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		status = status_of(errno);
	dir.fd = status < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (status == WEFT_OK && dir.fd < 0)
		status = status_of(errno);
	if (status == WEFT_OK && !made)
		status = o->overwrite ? clear(dir.fd) : is_empty(dir.fd) ? WEFT_OK : WEFT_EEXIST;
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", path,
		    status == WEFT_EEXIST && o->overwrite ? "exists already and is not a trace" : strerror(errno));
		if (status == WEFT_EEXIST && !o->overwrite)
			snprintf(why, why_size, "%s: exists already, and overwrite was not asked for", path);
	} else {
		struct weft__stream *d = &weft__recording.definitions;
		d->stream_class = WEFT_CLASS_DEFINITIONS;
		d->storage = (struct weft__storage){.packet_bytes = DEFINITIONS_BYTES, .count = 1, .grow = grow_definitions};
		if (grow_definitions(d)) {
			weft__stream_begin(d);
		} else {
			status = status_of(errno);
			snprintf(why, why_size, "%s: %s", path, strerror(errno));
		}
	}
	if (status < 0) {
		if (dir.fd >= 0) {
			if (status != WEFT_EEXIST)
				clear(dir.fd);
			close(dir.fd);
		}
		dir.fd = -1;
		if (made)
			rmdir(path);
	}
	return status;
}

/* Replaces a packet's file by one as long as what is in it: a reader that has the old one keeps it.  An OS thread that was about
 * to record when everything stopped may still write into the old one, behind what is copied. */
static void shorten(struct weft_packet_header *packet, const char *name, const char *hidden)
{
	size_t content = (size_t)(__atomic_load_n(&packet->content_size, __ATOMIC_ACQUIRE) / 8);
	if (content + 4096 > __atomic_load_n(&packet->packet_size, __ATOMIC_RELAXED) / 8)
		return;
	int fd = openat(dir.fd, hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	struct weft_packet_header header;
	for (size_t i = 0; i < sizeof header / sizeof(uint64_t); i++)
		((uint64_t *)(void *)&header)[i] = __atomic_load_n((uint64_t *)(void *)packet + i, __ATOMIC_RELAXED);
	header.content_size = header.packet_size = content * 8;
	size_t rest = content - sizeof header;
	bool whole = write(fd, &header, sizeof header) == (ssize_t)sizeof header;
	const unsigned char *from = (const unsigned char *)(packet + 1);
	while (whole && rest) {
		ssize_t n = write(fd, from, rest);
		whole = n > 0 || (n < 0 && errno == EINTR);
		if (n > 0) {
			from += n;
			rest -= (size_t)n;
		}
	}
	close(fd);
	if (!whole || renameat(dir.fd, hidden, dir.fd, name))
		unlinkat(dir.fd, hidden, 0);
}

void weft__dir_trim(struct weft__thread *t)
{
	const struct weft__stream *s = t->stream;
	char name[NAME_SIZE], hidden[NAME_SIZE];
	if (!s->storage.grow)
		for (uint64_t i = __atomic_load_n(&s->sequence, __ATOMIC_RELAXED) + 1; i < s->storage.count; i++) {
			packet_name(name, "", s->instance, (unsigned)i);
			unlinkat(dir.fd, name, 0);
		}
	unsigned file = s->storage.grow ? t->files - 1 : s->slot;
	packet_name(name, "", s->instance, file);
	packet_name(hidden, ".weft-", s->instance, file);
	shorten((struct weft_packet_header *)(void *)s->hot.packet, name, hidden);
}

void weft__dir_end_definitions(void)
{
	struct weft__stream *d = &weft__recording.definitions;
	if (!d->storage.base)
		return;
	char name[NAME_SIZE];
	snprintf(name, sizeof name, "definitions-%u", dir.definitions - 1);
	shorten((struct weft_packet_header *)(void *)d->hot.packet, name, ".weft-definitions");
	munmap(d->storage.base, DEFINITIONS_BYTES);
	d->storage.base = NULL;
}

void weft__dir_abandon(void)
{
	munmap(weft__recording.definitions.storage.base, DEFINITIONS_BYTES);
	clear(dir.fd);
	weft__dir_end();
	if (dir.made)
		rmdir(dir.path);
}

void weft__dir_end(void)
{
	if (dir.lock_fd >= 0)
		close(dir.lock_fd);
	if (dir.fd >= 0)
		close(dir.fd);
	dir.fd = dir.lock_fd = -1;
}

/* In a child after a fork: the descriptors are its own, the mappings are the parent's trace. */
void weft__dir_child(void)
{
	struct weft__stream *d = &weft__recording.definitions;
	if (dir.fd >= 0 && d->storage.base)
		munmap(d->storage.base, DEFINITIONS_BYTES);
	weft__dir_end();
}

void weft__unmap(struct weft__thread *t)
{
	if (t->mapped_bytes)
		munmap(t->stream->storage.base, t->mapped_bytes);
	t->mapped_bytes = 0;
	t->stream->storage.base = NULL;
}
