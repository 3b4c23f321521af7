/* place.c: where a trace's files are: the one file of the recorder that opens, makes, renames and removes any.
 *
 * Its rules:
 *
 * 1. No descriptor is in the program's table, not for a moment: every function that has one (static, named *_aside or called by
 *    such) runs by weft__aside().  Between two of them only mappings and the directory's absolute path are kept.
 * 2. The directory is ours: no symbolic link itself, of this user, and nobody else may write in it.  Afterwards it is known by
 * its `metadata`: that file stays mapped while the program records, so that no other file can get its device and inode.  Where
 * the path no longer leads to it (renamed, deleted, another root), nothing is made, changed or removed any more.
 * 3. Whoever begins a trace locks the directory (flock) as long as that takes.  Whoever records holds a lock on `metadata`: it
 *    belongs to the open file, which its mapping keeps open until it is unmapped or the process ends, however it ends.  A child
 *    does not inherit that mapping.  Only on overlayfs a mapping does not keep the file open: there the metadata says which
 *    process records, and whether that one lives is looked up in /proc.
 * 4. `overwrite` removes a trace that nobody records, and nothing else: each file is looked into before the first is removed.
 * 5. A file is made with O_EXCL under a hidden name, its blocks reserved, its header written, and only then gets its name:
 * whoever looks into the directory finds whole packets.  What is opened may be a pipe or a device: O_NONBLOCK, O_NOFOLLOW.
 * 6. Trace files are mapped and shared, so that the kernel keeps them when the process dies.  What is mapped is never touched
 *    here: a file that somebody made shorter is read and written by system calls, which fail.
 *
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "record/host.h"

#define DEFINITIONS_BYTES 65536u
#define DEFINITIONS_FILES 256u
#define RING_DEFAULT (16u << 20)
#define FILE_DEFAULT (1u << 20)
#define METADATA_BYTES 65536u
#define STREAMS_TOLD 1024u /* of more streams the metadata does not say how long they are */
#define NAME_SIZE 48
#define OVERLAYFS 0x794c7630

static struct {
	uint64_t generation; /* of the recording whose place this is; 0: none.  Changes only aside */
	enum weft_record_mode mode;
	uint64_t packet_bytes;
	unsigned packets;
	uint64_t limit, used; /* grow: bytes of files; 0: no limit */
	unsigned definitions;
	bool made;   /* the directory was not there before */
	void *claim; /* one page of `metadata`, mapped: keeps its lock, its inode */
	size_t page;
	dev_t device; /* of `metadata` */
	ino_t inode;
	int seccomp; /* the mode of filters of system calls when the recording began */
	char path[4096];
} place;

static int status_of(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return WEFT_ENOSPC;
	case EACCES:
	case EPERM:
	case ELOOP:
	case EROFS: return WEFT_EACCES;
	case ENOENT:
	case ESTALE:
	case ENOTDIR: return WEFT_ENOENT;
	case ENOMEM: return WEFT_ENOMEM;
	case EEXIST: return WEFT_EEXIST;
	case EBUSY: return WEFT_EBUSY;
	default: return WEFT_EIO;
	}
}

/* ---- What is in a directory ---- */

enum sort { NOT_OURS, METADATA, PACKET };

static enum sort sort_of(const char *name)
{
	if (!strncmp(name, ".weft-", 6))
		name += 6;
	if (!strcmp(name, "metadata"))
		return METADATA;
	size_t word = !strncmp(name, "stream-", 7) ? 7 : !strncmp(name, "definitions", 11) ? 11 : 0;
	return word && name[word + strspn(name + word, "-0123456789")] == 0 ? PACKET : NOT_OURS;
}

/* A regular file of this user's, or -1; it may be anything else at its name. */
static int open_ours(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		close(fd);
		errno = EEXIST;
		return -1;
	}
	return fd;
}

/* Whether the file was written by weft, or has not been written to: then only if its name says so. */
static bool is_of_a_trace(int dir, const char *name)
{
	char text[512] = "";
	enum sort sort = sort_of(name);
	int fd = sort == NOT_OURS ? -1 : open_ours(dir, name, O_RDONLY);
	if (fd < 0)
		return false;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	close(fd);
	if (n == 0)
		return name[0] == '.';
	if (sort == METADATA)
		return n > 0 && strstr(text, "/* CTF 1.8 */") == text && strstr(text, "tracer_name = \"weft\";");
	struct weft_packet_header h;
	if (n < (ssize_t)sizeof h)
		return false;
	memcpy(&h, text, sizeof h);
	static const struct weft_packet_header zeros;
	/* All zeros: the machine ended before the disk had the file's bytes. */
	return (h.magic == WEFT_PACKET_MAGIC && h.mark == WEFT_PACKET_MARK) || !memcmp(&h, &zeros, sizeof h);
}

/* Calls visit for each name; 0, or the first other answer. */
static int for_each_name(int dir, int (*visit)(int dir, const char *name))
{
	struct {
		uint64_t ino;
		int64_t off;
		unsigned short bytes;
		unsigned char type;
		char name[];
	} * entry;
	_Alignas(8) char buffer[8192];
	int answer = 0;
	if (lseek(dir, 0, SEEK_SET) < 0)
		return errno;
	for (long n; answer == 0 && (n = syscall(SYS_getdents64, dir, buffer, sizeof buffer)) != 0;) {
		if (n < 0)
			return errno;
		for (long at = 0; answer == 0 && at < n; at += entry->bytes) {
			entry = (void *)(buffer + at);
			if (strcmp(entry->name, ".") && strcmp(entry->name, ".."))
				answer = visit(dir, entry->name);
		}
	}
	return answer;
}

static int visit_any(int dir, const char *name)
{
	return EEXIST;
}

static int visit_to_check(int dir, const char *name)
{
	return is_of_a_trace(dir, name) ? 0 : EEXIST;
}

static int visit_to_remove(int dir, const char *name)
{
	return sort_of(name) == NOT_OURS || unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

/* ---- Who records ---- */

static size_t read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = 0;
	return n < 0 ? 0 : (size_t)n;
}

/* When process `pid` started, in the words of /proc; false: there is none. */
static bool start_of(long pid, char out[24])
{
	char path[40], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!read_file(path, text, sizeof text))
		return false;
	const char *at = strrchr(text, ')'); /* what is before may be any name */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	snprintf(out, 24, "%.*s", (int)strcspn(at + 1, " "), at + 1);
	return true;
}

/* "BOOT NAMESPACE PID START": a process as no other one is called, also after a boot, also in a container; "": unknown. */
static void name_process(char *out, size_t size, long pid)
{
	char boot[40], start[24];
	struct stat st;
	out[0] = 0;
	if (!read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) || stat("/proc/self/ns/pid", &st) < 0 ||
	    !start_of(pid, start))
		return;
	boot[strcspn(boot, "\n")] = 0;
	snprintf(out, size, "%s %lu %ld %s", boot, (unsigned long)st.st_ino, pid, start);
}

/* The value of a line of the metadata's env. */
static bool find_env(const char *text, const char *name, char *out, size_t size)
{
	char key[32];
	snprintf(key, sizeof key, "\t%s = ", name);
	const char *at = strstr(text, key);
	if (!at)
		return false;
	at += strlen(key) + (at[strlen(key)] == '"');
	size_t n = strcspn(at, "\";\n");
	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), at);
	return true;
}

/* Whether a process records here; *pid is that one, 0: unknown. */
static bool is_recorded(int dir, long *pid)
{
	char text[8192], word[128], now[128];
	*pid = 0;
	int fd = open_ours(dir, "metadata", O_RDONLY);
	if (fd < 0)
		return false;
	bool locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = 0;
	struct statfs fs;
	bool lock_tells = fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type != OVERLAYFS;
	close(fd);
	if (find_env(text, "vpid", word, sizeof word))
		*pid = strtol(word, NULL, 10);
	if (locked || lock_tells || !find_env(text, "state", word, sizeof word) || strcmp(word, "recording") != 0)
		return locked;
	name_process(now, sizeof now, *pid);
	if (!find_env(text, "recorder", word, sizeof word) || !word[0])
		return true; /* there is no knowing */
	size_t boot = strcspn(word, " "), space = boot + 1 + strcspn(word + boot + (word[boot] != 0), " ");
	char me[128];
	name_process(me, sizeof me, (long)getpid());
	if (strncmp(word, me, boot) != 0)
		return false; /* the machine was started anew */
	/* In another container there is no knowing either. */
	return strncmp(word, me, space) != 0 || strcmp(word, now) == 0;
}

/* ---- Files ---- */

static int reserve(int fd, uint64_t bytes)
{
	if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return errno;
	static const char zeros[4096];
	for (uint64_t at = 0; at < bytes;) {
		ssize_t n = pwrite(fd, zeros, bytes - at < sizeof zeros ? (size_t)(bytes - at) : sizeof zeros, (off_t)at);
		if (n < 0 && errno != EINTR)
			return errno;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

static int create(int dir, const char *name)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dir, name, flags, 0600);
	/* One that a recorder left that was killed. */
	if (fd < 0 && errno == EEXIST && name[0] == '.' && unlinkat(dir, name, 0) == 0)
		fd = openat(dir, name, flags, 0600);
	if (fd >= 0)
		fchmod(fd, 0600); /* where the umask is the program's */
	return fd;
}

/* The file of one packet, mapped at `at` (NULL: anywhere), with a header in it; errno, or 0. */
static int make_packet(int dir, const char *name, const struct weft_packet_header *header, void *at, unsigned char **out)
{
	char hidden[NAME_SIZE + 6];
	snprintf(hidden, sizeof hidden, ".weft-%s", name);
	size_t bytes = header->packet_size / 8;
	int fd = create(dir, hidden);
	if (fd < 0)
		return errno;
	int error = reserve(fd, bytes);
	if (!error && pwrite(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header)
		error = errno ? errno : EIO;
	void *map = MAP_FAILED;
	if (!error && renameat(dir, hidden, dir, name))
		error = errno;
	/* Small ones at once: the first lap is then as fast as the later ones. */
	int flags = MAP_SHARED | (bytes <= 1u << 17 ? MAP_POPULATE : 0);
	if (!error && (map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)) == MAP_FAILED)
		error = errno;
	/* Not at once to where the last one is: what fails leaves the last one in its place, for the count of what is lost. */
	if (!error && at && mremap(map, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		error = errno;
	if (error) {
		if (map != MAP_FAILED)
			munmap(map, bytes);
		unlinkat(dir, hidden, 0);
		unlinkat(dir, name, 0);
	} else {
		*out = at ? at : map;
	}
	close(fd);
	return error;
}

static void packet_name(char name[NAME_SIZE], unsigned instance, unsigned file)
{
	snprintf(name, NAME_SIZE, "stream-%u-%u", instance, file);
}

static void definitions_name(char name[NAME_SIZE], unsigned file)
{
	snprintf(name, NAME_SIZE, "definitions-%u", file);
}

/* Writes the metadata under its hidden name; a descriptor, or -1. */
static int write_metadata(int dir, const char *text)
{
	int fd = create(dir, ".weft-metadata");
	size_t length = strlen(text), wrote = 0;
	while (fd >= 0 && wrote < length) {
		ssize_t n = write(fd, text + wrote, length - wrote);
		if (n >= 0) {
			wrote += (size_t)n;
		} else if (errno != EINTR) {
			int error = errno;
			close(fd);
			unlinkat(dir, ".weft-metadata", 0);
			errno = error;
			return -1;
		}
	}
	return fd;
}

/* The directory, if it is still ours; -1, and errno. */
static int open_place(uint64_t generation)
{
	struct stat st;
	if (place.generation != generation || !generation) {
		errno = ESTALE;
		return -1;
	}
	int dir = open(place.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -1;
	if (fstatat(dir, "metadata", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == place.device && st.st_ino == place.inode)
		return dir;
	close(dir);
	errno = ESTALE;
	return -1;
}

/* A filter that was installed since the recording began may kill who opens a file.  prctl() is called at each OS thread's begin
 * anyway. */
static bool is_shut_in(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != place.seccomp;
}

/* ---- Beginning ---- */

struct beginning {
	uint64_t generation;
	const char *metadata;
	const struct weft_packet_header *definitions;
	bool overwrite;
	unsigned char *base; /* of the definitions */
	int error;
	char why[96]; /* more than errno says */
};

static int refuse(struct beginning *b, int error, const char *why)
{
	snprintf(b->why, sizeof b->why, "%s", why);
	errno = error;
	return -1;
}

/* Makes the directory, or opens the one that is there, and locks it; -1: not so. */
static int open_and_lock(struct beginning *b)
{
	struct stat st, again;
	for (int tries = 0; tries < 8; tries++) {
		place.made = mkdir(place.path, 0700) == 0;
		if (!place.made && errno != EEXIST)
			return -1;
		int dir = open(place.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 && errno == ENOENT)
			continue;
		if (dir < 0) {
			int error = errno;
			if (lstat(place.path, &st) == 0 && S_ISLNK(st.st_mode))
				return refuse(b, ELOOP, "is a symbolic link");
			errno = error;
			return -1;
		}
		bool is_busy = flock(dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
		/* Whoever could not begin removes what he made: that one is not to be used. */
		if (fstat(dir, &st) < 0 || lstat(place.path, &again) < 0 || st.st_dev != again.st_dev ||
		    st.st_ino != again.st_ino) {
			close(dir);
			continue;
		}
		const char *why = is_busy                                          ? "another process begins a trace there"
				  : st.st_uid != geteuid()                         ? "belongs to another user"
				  : st.st_mode & S_IWOTH                           ? "others may write there"
				  : st.st_mode & S_IWGRP && st.st_gid != getegid() ? "another group may write there"
										   : NULL;
		if (!why)
			return dir;
		close(dir);
		return refuse(b, is_busy ? EBUSY : EACCES, why);
	}
	return refuse(b, EBUSY, "other programs make and remove it all the time");
}

/* Empties the directory, if that is allowed and right; -1: not so. */
static int make_room(int dir, struct beginning *b)
{
	int error = for_each_name(dir, visit_any);
	/* Also in one that was just made: another process may have been faster to lock it, and may record into it by now. */
	if (error)
		place.made = false;
	if (error == EEXIST && !b->overwrite)
		return refuse(b, EEXIST, "exists already, and overwrite was not asked for");
	if (error == EEXIST) {
		long pid;
		if (is_recorded(dir, &pid)) {
			snprintf(b->why, sizeof b->why, "process %ld records into it", pid);
			errno = EBUSY;
			return -1;
		}
		error = for_each_name(dir, visit_to_check);
		if (error == EEXIST)
			return refuse(b, EEXIST, "exists already and is not a trace");
		/* Names may be left out while others are removed: again, until there are none. */
		for (int tries = 0; tries < 1000 && !error && (error = for_each_name(dir, visit_any)) == EEXIST; tries++)
			error = for_each_name(dir, visit_to_remove);
	}
	errno = error;
	return error ? -1 : 0;
}

/* The metadata, mapped, locked, named. */
static int claim(int dir, const char *text)
{
	struct stat st;
	int fd = write_metadata(dir, text);
	if (fd < 0)
		return -1;
	void *page = fstat(fd, &st) < 0 ? MAP_FAILED : mmap(NULL, place.page, PROT_READ, MAP_SHARED, fd, 0);
	int error = page == MAP_FAILED ? errno : 0;
	if (!error) {
		madvise(page, place.page, MADV_DONTFORK);
		flock(fd, LOCK_EX | LOCK_NB);
		if (renameat(dir, ".weft-metadata", dir, "metadata") == 0) {
			place.claim = page;
			place.device = st.st_dev;
			place.inode = st.st_ino;
		} else {
			error = errno;
			munmap(page, place.page);
		}
	}
	close(fd);
	errno = error;
	return error ? -1 : 0;
}

static void remove_all(int dir)
{
	for_each_name(dir, visit_to_remove);
	if (place.claim)
		munmap(place.claim, place.page);
	place.claim = NULL;
	if (place.made)
		rmdir(place.path);
}

static int begin_aside(void *data)
{
	struct beginning *b = data;
	char name[NAME_SIZE];
	int dir = open_and_lock(b);
	if (dir < 0) {
		b->error = errno;
		return status_of(b->error);
	}
	b->error = 0;
	if (make_room(dir, b) < 0) {
		b->error = errno;
	} else {
		definitions_name(name, 0);
		b->error = make_packet(dir, name, b->definitions, NULL, &b->base);
		if (!b->error && claim(dir, b->metadata) < 0) {
			b->error = errno;
			munmap(b->base, DEFINITIONS_BYTES);
		}
		if (b->error)
			remove_all(dir);
	}
	close(dir);
	if (!b->error)
		place.generation = b->generation;
	return b->error ? status_of(b->error) : WEFT_OK;
}

/* The path, absolute, with %p replaced; false: too long. */
static bool expand(char *out, size_t size, const char *path)
{
	size_t n = 0;
	if (path[0] != '/' && path[0]) {
		if (syscall(SYS_getcwd, out, size) < 0 || out[0] != '/')
			return false;
		n = strlen(out);
		if (n + 1 >= size)
			return false;
		out[n++] = '/';
	}
	size_t begin = n;
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
	/* "DIR/" would follow a symbolic link. */
	while (n > begin + 1 && out[n - 1] == '/')
		out[--n] = 0;
	return n != begin;
}

/* Cuts place as options say. */
static int cut(const struct weft_record_options *o, const char **why)
{
	place.mode = o->mode;
	place.limit = place.used = 0;
	place.packets = 1;
	if (o->mode == WEFT_RECORD_RING) {
		uint64_t ring = o->size_bytes ? o->size_bytes : RING_DEFAULT;
		place.packets = o->packets ? o->packets : 16;
		int status = weft__ring_check(ring, place.packets, place.page, why);
		place.packet_bytes = status < 0 ? 0 : ring / place.packets / place.page * place.page;
		return status;
	}
	uint64_t least = o->size_bytes && o->size_bytes / 4 < FILE_DEFAULT ? o->size_bytes / 4 : FILE_DEFAULT;
	place.limit = o->size_bytes;
	place.packet_bytes = (o->packet_bytes ? o->packet_bytes : least) / place.page * place.page;
	if (place.packet_bytes == 0 || (place.limit && place.limit < place.packet_bytes)) {
		*why = "the size is too small for a file of one packet";
		return WEFT_ETOOBIG;
	}
	if (place.packet_bytes > UINT32_MAX / 2) {
		*why = "a packet would be larger than 2 GiB";
		return WEFT_EINVAL;
	}
	return WEFT_OK;
}

static char *format_metadata(const struct weft_metadata *metadata)
{
	char *text = mmap(NULL, METADATA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		return NULL;
	weft__metadata_format(text, METADATA_BYTES, metadata);
	return text;
}

static bool grow_definitions(struct weft__stream *s);

int weft__place_begin(const struct weft_record_options *o, const struct weft_metadata *metadata, char *why, size_t why_size)
{
	const char *what = NULL;
	place.page = (size_t)sysconf(_SC_PAGESIZE);
	place.definitions = 1;
	place.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	if (!expand(place.path, sizeof place.path, o->directory)) {
		snprintf(why, why_size, "the directory's name is empty or too long");
		return WEFT_EINVAL;
	}
	int status = cut(o, &what);
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", place.path, what);
		return status;
	}
	struct weft__stream *d = &weft__recording.definitions;
	d->stream_class = WEFT_CLASS_DEFINITIONS;
	d->storage = (struct weft__storage){.packet_bytes = DEFINITIONS_BYTES, .count = 1, .most = 1, .grow = grow_definitions};
	struct weft_packet_header header = {0};
	weft__packet_prepare(d, (unsigned char *)&header);
	struct beginning b = {.generation = weft__recording.generation,
	    .metadata = format_metadata(metadata),
	    .definitions = &header,
	    .overwrite = o->overwrite};
	status = b.metadata ? weft__aside(begin_aside, &b) : WEFT_ENOMEM;
	if (b.metadata)
		munmap((void *)(uintptr_t)b.metadata, METADATA_BYTES);
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", place.path,
		    b.why[0]  ? b.why
		    : b.error ? strerror(b.error)
			      : "no OS thread can be made that opens files");
		return status;
	}
	d->storage.base = b.base;
	weft__stream_begin(d);
	return WEFT_OK;
}

static int abandon_aside(void *data)
{
	int dir = open_place(weft__recording.generation);
	place.generation = 0;
	if (dir >= 0) {
		remove_all(dir);
		close(dir);
	}
	return WEFT_OK;
}

const char *weft__place_path(void)
{
	return place.path;
}

void weft__place_abandon(void)
{
	munmap(weft__recording.definitions.storage.base, DEFINITIONS_BYTES);
	weft__recording.definitions.storage.base = NULL;
	weft__aside(abandon_aside, NULL);
	weft__place_release();
}

/* ---- Packets ---- */

struct making {
	uint64_t generation;
	char name[NAME_SIZE];
	unsigned instance, first, count; /* of a stream; 0 of them: the one of that name */
	uint64_t room;                   /* that the disk must have besides, for what is made later */
	const struct weft_packet_header *header;
	unsigned char *base; /* of the first one; NULL: anywhere, and then where */
	unsigned made;
	int error;
	struct making *also; /* what is made in the same stay aside; whether it succeeds is its own affair */
};

/* Only asked: a file takes a millisecond to make where others use the disk, and a ring whose disk is full in its first lap goes
 * round in what it has. */
static bool has_room(int dir, uint64_t bytes)
{
	struct statfs fs;
	return fstatfs(dir, &fs) < 0 || fs.f_blocks == 0 || (uint64_t)fs.f_bavail >= bytes / (uint64_t)fs.f_bsize;
}

static void make_packets(int dir, struct making *m)
{
	m->error = m->room && !has_room(dir, m->room) ? ENOSPC : 0;
	if (m->error)
		return;
	do {
		unsigned char *at = m->base ? m->base + (size_t)m->made * (m->header->packet_size / 8) : NULL;
		if (m->count)
			packet_name(m->name, m->instance, m->first + m->made);
		m->error = make_packet(dir, m->name, m->header, at, &at);
		if (!m->error && !m->base)
			m->base = at;
		m->made += !m->error;
	} while (!m->error && m->made < m->count);
	/* One that begins with fewer than it asked for shall not begin. */
	while (m->error && m->first == 0 && m->count && m->made) {
		packet_name(m->name, m->instance, --m->made);
		unlinkat(dir, m->name, 0);
	}
}

static int make_aside(void *data)
{
	struct making *first = data;
	int dir = open_place(first->generation);
	if (dir < 0) {
		first->error = errno;
		return status_of(first->error);
	}
	for (struct making *m = first; m; m = m->also)
		make_packets(dir, m);
	close(dir);
	return first->error ? status_of(first->error) : WEFT_OK;
}

/* Makes packets as m says, with the header that the stream now has; false, and errno. */
static bool make(struct weft__stream *s, struct making *m)
{
	struct weft_packet_header header = {0};
	if (is_shut_in()) {
		errno = EPERM;
		return false;
	}
	weft__packet_prepare(s, (unsigned char *)&header);
	m->header = &header;
	m->error = EAGAIN;
	int status = weft__aside(make_aside, m);
	errno = m->error;
	return status == WEFT_OK;
}

/* Of a trace that grows: takes a file's bytes off what is left. */
static bool take(void)
{
	if (!place.limit)
		return true;
	if (__atomic_add_fetch(&place.used, place.packet_bytes, __ATOMIC_RELAXED) <= place.limit)
		return true;
	__atomic_sub_fetch(&place.used, place.packet_bytes, __ATOMIC_RELAXED);
	return false;
}

static bool grow(struct weft__stream *s)
{
	struct weft__thread *t = s->host;
	struct making m = {
	    .generation = t->generation, .instance = s->instance, .first = t->files, .count = 1, .base = s->storage.base};
	if (!take() || !make(s, &m))
		return false;
	t->files++;
	return true;
}

/* Of a ring in its first lap. */
static bool extend(struct weft__stream *s)
{
	struct weft__thread *t = s->host;
	struct making m = {.generation = t->generation,
	    .instance = s->instance,
	    .first = s->storage.count,
	    .count = 1,
	    .base = s->storage.base + (size_t)s->storage.count * s->storage.packet_bytes};
	return make(s, &m);
}

static bool grow_definitions(struct weft__stream *s)
{
	struct making m = {.generation = weft__recording.generation, .base = s->storage.base};
	definitions_name(m.name, place.definitions);
	if (place.definitions == DEFINITIONS_FILES || !make(s, &m))
		return false;
	place.definitions++;
	return true;
}

/* Addresses for a stream, and what is to be made there; negative enum weft_status. */
static int reserve_storage(struct weft__thread *t, struct making *m, unsigned instance, unsigned count)
{
	struct weft__stream *s = t->stream;
	bool ring = place.mode == WEFT_RECORD_RING;
	size_t bytes = (size_t)place.packets * place.packet_bytes;
	if (!ring && !take())
		return WEFT_ENOSPC;
	unsigned char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return WEFT_ENOMEM;
	s->instance = instance;
	s->storage = (struct weft__storage){.base = base,
	    .packet_bytes = place.packet_bytes,
	    .count = count,
	    .most = place.packets,
	    .grow = ring ? NULL : grow,
	    .extend = ring ? extend : NULL};
	t->mapped_bytes = bytes;
	t->files = count;
	*m = (struct making){.generation = weft__recording.generation, .instance = instance, .count = count, .base = base};
	return WEFT_OK;
}

int weft__place_storage(struct weft__thread *t, unsigned instance, bool whole)
{
	struct making m;
	int status = reserve_storage(t, &m, instance, 1);
	m.room = whole && status == WEFT_OK ? t->mapped_bytes : 0;
	if (status < 0 || make(t->stream, &m))
		return status;
	int error = errno;
	weft__unmap(t);
	errno = error;
	return status_of(error);
}

unsigned weft__place_spares(struct weft__thread *const threads[], unsigned count, unsigned instance)
{
	struct making all[WEFT__SPARES];
	struct weft_packet_header headers[WEFT__SPARES] = {0};
	unsigned wanted = 0, made = 0;
	/* A trace with a limit has no bytes for what nobody may need. */
	if (place.limit || is_shut_in())
		return 0;
	for (; wanted < count && reserve_storage(threads[wanted], &all[wanted], instance + wanted, 1) == WEFT_OK; wanted++) {
		weft__packet_prepare(threads[wanted]->stream, (unsigned char *)&headers[wanted]);
		all[wanted].header = &headers[wanted];
		all[wanted].error = EAGAIN;
		if (wanted)
			all[wanted - 1].also = &all[wanted];
	}
	if (wanted)
		weft__aside(make_aside, &all[0]);
	while (made < wanted && !all[made].error)
		made++;
	/* Those behind one that failed are not used: their numbers would be missing in between. */
	for (unsigned i = made; i < wanted; i++)
		weft__unmap(threads[i]);
	return made;
}

/* ---- The end ---- */

/* Replaces a packet's file by one as long as what is in it: a reader that has the old one keeps it.  An OS thread that was about
 * to record when everything stopped may still write into the old one, behind what is copied. */
static void shorten(int dir, const char *name)
{
	struct weft_packet_header h;
	struct stat st;
	char hidden[NAME_SIZE + 6];
	snprintf(hidden, sizeof hidden, ".weft-%s", name);
	int from = open_ours(dir, name, O_RDONLY), to = -1;
	if (from < 0)
		return;
	bool is_ours = pread(from, &h, sizeof h, 0) == (ssize_t)sizeof h && fstat(from, &st) == 0 &&
		       !memcmp(h.uuid, weft__recording.origin.uuid, sizeof h.uuid) && h.content_size / 8 >= sizeof h &&
		       h.content_size / 8 <= (uint64_t)st.st_size;
	size_t content = is_ours ? (size_t)(h.content_size / 8) : 0;
	if (is_ours && content + 4096 <= (uint64_t)st.st_size && (to = create(dir, hidden)) >= 0) {
		h.packet_size = h.content_size;
		bool whole = write(to, &h, sizeof h) == (ssize_t)sizeof h;
		off_t at = sizeof h;
		while (whole && at < (off_t)content) {
			ssize_t n = sendfile(to, from, &at, content - (size_t)at);
			whole = n > 0 || (n < 0 && errno == EINTR);
		}
		close(to);
		if (!whole || renameat(dir, hidden, dir, name))
			unlinkat(dir, hidden, 0);
	}
	close(from);
}

/* Gives back what the stream did not use.  An OS thread that did not come out of its stream may use it yet. */
static void trim(int dir, const struct weft__thread *t)
{
	const struct weft__stream *s = t->stream;
	char name[NAME_SIZE];
	if (!t->is_closed)
		return;
	if (t->is_spare) {
		packet_name(name, s->instance, 0);
		unlinkat(dir, name, 0);
		return;
	}
	if (!s->storage.grow)
		for (uint64_t i = s->sequence + 1; i < s->storage.count; i++) {
			packet_name(name, s->instance, (unsigned)i);
			unlinkat(dir, name, 0);
		}
	packet_name(name, s->instance, s->storage.grow ? t->files - 1 : s->slot);
	shorten(dir, name);
}

/* How many packets of each stream there are.  Of an OS thread that did not come out of its stream nobody knows. */
static void count_packets(struct weft_metadata *metadata, const struct weft__thread *threads)
{
	static uint64_t packets[STREAMS_TOLD];
	memset(packets, 0, sizeof packets);
	metadata->definitions = place.definitions;
	metadata->stream_packets = packets;
	for (const struct weft__thread *t = threads; t; t = t->next) {
		const struct weft__stream *s = t->stream;
		if (t->generation != weft__recording.generation || !s->storage.base || t->is_spare || s->instance >= STREAMS_TOLD)
			continue;
		if (t->is_closed && !__atomic_load_n(&s->is_broken, __ATOMIC_RELAXED))
			packets[s->instance] = s->sequence + 1;
		if (s->instance >= metadata->stream_count)
			metadata->stream_count = s->instance + 1;
	}
}

struct ending {
	const char *metadata;
	const struct weft__thread *threads;
};

static int end_aside(void *data)
{
	const struct ending *e = data;
	char name[NAME_SIZE];
	int dir = open_place(weft__recording.generation);
	place.generation = 0;
	if (dir < 0)
		return status_of(errno);
	for (const struct weft__thread *t = e->threads; t; t = t->next)
		if (t->generation == weft__recording.generation && t->stream->storage.base)
			trim(dir, t);
	definitions_name(name, place.definitions - 1);
	shorten(dir, name);
	int fd = e->metadata ? write_metadata(dir, e->metadata) : -1;
	if (fd >= 0) {
		if (renameat(dir, ".weft-metadata", dir, "metadata"))
			unlinkat(dir, ".weft-metadata", 0);
		close(fd);
	}
	close(dir);
	return WEFT_OK;
}

void weft__place_end(const struct weft_metadata *metadata, const struct weft__thread *threads)
{
	struct weft_metadata whole = *metadata;
	count_packets(&whole, threads);
	struct ending e = {.metadata = format_metadata(&whole), .threads = threads};
	if (!is_shut_in())
		weft__aside(end_aside, &e);
	if (e.metadata)
		munmap((void *)(uintptr_t)e.metadata, METADATA_BYTES);
	struct weft__stream *d = &weft__recording.definitions;
	if (d->storage.base)
		munmap(d->storage.base, DEFINITIONS_BYTES);
	d->storage.base = NULL;
	weft__place_release();
}

/* Nothing is made here any more, and the trace is nobody's. */
void weft__place_release(void)
{
	weft__aside_lock();
	place.generation = 0;
	if (place.claim)
		munmap(place.claim, place.page);
	place.claim = NULL;
	weft__aside_unlock();
}

/* In a child after a fork: the mappings are the parent's trace. */
void weft__place_child(void)
{
	struct weft__stream *d = &weft__recording.definitions;
	if (place.generation && d->storage.base)
		munmap(d->storage.base, DEFINITIONS_BYTES);
	place.generation = 0;
	place.claim = NULL;
}

void weft__unmap(struct weft__thread *t)
{
	if (t->mapped_bytes)
		munmap(t->stream->storage.base, t->mapped_bytes);
	t->mapped_bytes = 0;
	t->stream->storage.base = NULL;
}

/* ---- What the system says of this process ---- */

static int tell_aside(void *data)
{
	struct weft__told *told = data;
	size_t n = read_file("/proc/self/comm", told->process, sizeof told->process);
	while (n && told->process[n - 1] == '\n')
		told->process[--n] = 0;
	n = read_file("/proc/self/cmdline", told->command, sizeof told->command);
	while (n && !told->command[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!told->command[i])
			told->command[i] = ' ';
	name_process(told->recorder, sizeof told->recorder, (long)getpid());
	weft__clock_learn();
	return WEFT_OK;
}

void weft__tell(struct weft__told *told)
{
	*told = (struct weft__told){.process = ""};
	weft__aside(tell_aside, told);
}
