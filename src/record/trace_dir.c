/* trace_dir.c: the only file of the recorder that opens, creates, renames and removes trace files.
 *
 * Its rules:
 *
 * 1. No descriptor is ever in the program's table: every function that has one (static, named *_on_fd_thread, or called by such
 * a function) runs through weft__fd_thread_run().  Between two such runs only mappings and the directory's absolute path are
 * kept.
 *
 * 2. The directory must belong to this user, must not be a symbolic link, and must not be writable by others.  While the program
 * records, the directory is identified by its file `metadata`, which stays mapped, so that no other file can get its device and
 * inode.  If the path no longer leads to this directory (renamed, deleted, another root), nothing is created, changed or removed
 * any more.
 *
 * 3. A process locks the directory (flock) while it starts a trace, and holds a lock on `metadata` while it records.  The lock
 * belongs to the open file, which the mapping keeps open until the mapping is removed or the process ends in any way.  A child
 * process does not inherit that mapping.  Only on overlayfs, a mapping does not keep the file open; there the metadata names the
 * recording process, and /proc shows whether that process is alive.
 *
 * 4. `overwrite` removes only a trace that no process records: all files are checked before the first is removed.
 *
 * 5. A file is created with O_EXCL under a hidden name, gets its blocks and its header, and only then its name: readers of the
 * directory find only whole packets.  An opened file may be a pipe or a device: O_NONBLOCK, O_NOFOLLOW.
 *
 * 6. Trace files are mapped and shared, so that the kernel keeps them when the process dies.  This file never accesses the
 * mappings, because a file may be truncated; it reads and writes files by system calls, which then fail.
 *
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/program_name.h"
#include "record/host.h"

#define DEFINITIONS_BYTES 65536u
#define MAX_DEFINITIONS_FILES 256u
#define MEMORY_BYTES 65536u
#define DEFAULT_RING_BYTES (16u << 20)
#define DEFAULT_FILE_BYTES (1u << 20)
#define METADATA_BYTES 65536u
#define MAX_LISTED_STREAMS 1024u /* maximum number of streams whose lengths are in the metadata */
#define NAME_SIZE 48
#define OVERLAYFS 0x794c7630

static struct {
	/* Number of the recording that uses this directory; 0: none.  Only the fd thread changes the number. */
	uint64_t generation;
	enum weft_record_mode mode;
	uint64_t packet_bytes;
	unsigned packets;
	uint64_t limit, used;         /* for grow mode: maximum and current number of bytes in files; 0: no limit */
	unsigned definitions, memory; /* numbers of files */
	bool made;                    /* whether this recording created the directory */
	void *claim;                  /* mapping of one page of `metadata`, which keeps the file's lock and inode */
	size_t page;
	dev_t device; /* device of `metadata` */
	ino_t inode;
	int seccomp; /* mode of seccomp filters at the start of the recording */
	char path[4096];
} trace_dir;

static int status_from_errno(int error)
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

/* ---- Contents of a directory ---- */

enum file_type { FILE_OTHER, FILE_METADATA, FILE_PACKET };

static enum file_type classify_file(const char *name)
{
	if (!strncmp(name, ".weft-", 6))
		name += 6;
	if (!strcmp(name, "metadata"))
		return FILE_METADATA;
	size_t word = !strncmp(name, "stream-", 7)        ? 7
		      : !strncmp(name, "definitions", 11) ? 11
		      : !strncmp(name, "memory-", 7)      ? 7
							  : 0;
	return word && name[word + strspn(name + word, "-0123456789")] == 0 ? FILE_PACKET : FILE_OTHER;
}

/* Opens a regular file of this user; returns -1 for any other file. */
static int open_own_file(int dir, const char *name, int flags)
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

/* Returns whether weft wrote the file.  A file without contents counts if its name is a name that weft uses. */
static bool is_trace_file(int dir, const char *name)
{
	char text[512] = "";
	enum file_type file_type = classify_file(name);
	int fd = file_type == FILE_OTHER ? -1 : open_own_file(dir, name, O_RDONLY);
	if (fd < 0)
		return false;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	close(fd);
	if (n == 0)
		return name[0] == '.';
	if (file_type == FILE_METADATA)
		return n > 0 && strstr(text, "/* CTF 1.8 */") == text && strstr(text, "tracer_name = \"weft\";");
	struct weft_packet_header h;
	if (n < (ssize_t)sizeof h)
		return false;
	memcpy(&h, text, sizeof h);
	static const struct weft_packet_header zeros;
	/* A header of zeros means that the machine stopped before the disk had the file's bytes. */
	return (h.magic == WEFT_PACKET_MAGIC && h.mark == WEFT_PACKET_MARK) || !memcmp(&h, &zeros, sizeof h);
}

/* Calls `visit` for each name in the directory; returns 0, or the first result other than 0. */
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
	return is_trace_file(dir, name) ? 0 : EEXIST;
}

static int visit_to_remove(int dir, const char *name)
{
	return classify_file(name) == FILE_OTHER || unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

/* ---- The recording process ---- */

static size_t read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = 0;
	return n < 0 ? 0 : (size_t)n;
}

/* Reads the start time of process `pid` as /proc shows it; returns false if there is no such process. */
static bool read_start_time(long pid, char out[24])
{
	char path[40], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!read_file(path, text, sizeof text))
		return false;
	const char *at = strrchr(text, ')'); /* the process name before this position may contain any characters */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	snprintf(out, 24, "%.*s", (int)strcspn(at + 1, " "), at + 1);
	return true;
}

/* Formats "BOOT NAMESPACE PID START", which is unique across boots and containers; "" if unknown. */
static void format_process_name(char *out, size_t size, long pid)
{
	char boot[40], start[24];
	struct stat st;
	out[0] = 0;
	if (!read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) || stat("/proc/self/ns/pid", &st) < 0 ||
	    !read_start_time(pid, start))
		return;
	boot[strcspn(boot, "\n")] = 0;
	snprintf(out, size, "%s %lu %ld %s", boot, (unsigned long)st.st_ino, pid, start);
}

/* Finds the value of a variable in the block `env` of the metadata. */
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

/* Returns whether a process records into the directory; *pid is that process, or 0 if it is unknown. */
static bool is_recorded(int dir, long *pid)
{
	char text[8192], word[128], now[128];
	*pid = 0;
	int fd = open_own_file(dir, "metadata", O_RDONLY);
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
	format_process_name(now, sizeof now, *pid);
	if (!find_env(text, "recorder", word, sizeof word) || !word[0])
		return true; /* it cannot be determined whether the process records, so assume that it does */
	size_t boot = strcspn(word, " "), space = boot + 1 + strcspn(word + boot + (word[boot] != 0), " ");
	char self_name[128];
	format_process_name(self_name, sizeof self_name, (long)getpid());
	if (strncmp(word, self_name, boot) != 0)
		return false; /* the machine was rebooted */
	/* A process of another container cannot be checked, so the function assumes that it records. */
	return strncmp(word, self_name, space) != 0 || strcmp(word, now) == 0;
}

/* ---- Files ---- */

static int reserve_blocks(int fd, uint64_t bytes)
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

static int create_file(int dir, const char *name)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dir, name, flags, 0600);
	/* The existing file was left by a recorder that was killed. */
	if (fd < 0 && errno == EEXIST && name[0] == '.' && unlinkat(dir, name, 0) == 0)
		fd = openat(dir, name, flags, 0600);
	if (fd >= 0)
		fchmod(fd, 0600); /* the mode is set again, because the umask may be the program's */
	return fd;
}

/* Makes and maps the file of one packet, with its header, at address `at` (NULL: at any address); returns errno, or 0. */
static int make_packet(int dir, const char *name, const struct weft_packet_header *header, void *at, unsigned char **out)
{
	char hidden[NAME_SIZE + 6];
	snprintf(hidden, sizeof hidden, ".weft-%s", name);
	size_t bytes = header->packet_size / 8;
	int fd = create_file(dir, hidden);
	if (fd < 0)
		return errno;
	int error = reserve_blocks(fd, bytes);
	if (!error && pwrite(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header)
		error = errno ? errno : EIO;
	void *map = MAP_FAILED;
	if (!error && renameat(dir, hidden, dir, name))
		error = errno;
	/* Small files are populated at once, so that the first lap is as fast as later laps. */
	int flags = MAP_SHARED | (bytes <= 1u << 17 ? MAP_POPULATE : 0);
	if (!error && (map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)) == MAP_FAILED)
		error = errno;
	/* The file is first mapped elsewhere: if that fails, the previous packet stays mapped, for the count of lost events. */
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

static void format_packet_name(char name[NAME_SIZE], unsigned instance, unsigned file)
{
	snprintf(name, NAME_SIZE, "stream-%u-%u", instance, file);
}

static void format_definitions_name(char name[NAME_SIZE], unsigned file)
{
	snprintf(name, NAME_SIZE, "definitions-%u", file);
}

static void format_memory_name(char name[NAME_SIZE], unsigned file)
{
	snprintf(name, NAME_SIZE, "memory-%u", file);
}

/* Writes the metadata under a hidden name; returns a descriptor, or -1. */
static int write_metadata(int dir, const char *text)
{
	int fd = create_file(dir, ".weft-metadata");
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

/* Opens the directory if it is still the recording's directory; otherwise returns -1 and sets errno. */
static int open_trace_dir(uint64_t generation)
{
	struct stat st;
	if (trace_dir.generation != generation || !generation) {
		errno = ESTALE;
		return -1;
	}
	int dir = open(trace_dir.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -1;
	if (fstatat(dir, "metadata", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == trace_dir.device &&
	    st.st_ino == trace_dir.inode)
		return dir;
	close(dir);
	errno = ESTALE;
	return -1;
}

/* Returns whether a seccomp filter was installed after the recording started; such a filter may kill the caller of open().  The
 * check by prctl() is safe, because each new OS thread calls prctl() anyway. */
static bool has_new_seccomp_filter(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != trace_dir.seccomp;
}

/* ---- Starting ---- */

struct begin_request {
	uint64_t generation;
	const char *metadata;
	const struct weft_packet_header *definitions;
	bool overwrite;
	unsigned char *base; /* address of the definitions */
	int error;
	char why[96]; /* description of the problem, if errno does not describe it */
};

static int refuse_directory(struct begin_request *b, int error, const char *why)
{
	snprintf(b->why, sizeof b->why, "%s", why);
	errno = error;
	return -1;
}

/* Creates or opens the directory, and locks it; returns -1 on failure. */
static int open_and_lock_directory(struct begin_request *b)
{
	struct stat st, again;
	for (int tries = 0; tries < 8; tries++) {
		trace_dir.made = mkdir(trace_dir.path, 0700) == 0;
		if (!trace_dir.made && errno != EEXIST)
			return -1;
		int dir = open(trace_dir.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 && errno == ENOENT)
			continue;
		if (dir < 0) {
			int error = errno;
			if (lstat(trace_dir.path, &st) == 0 && S_ISLNK(st.st_mode))
				return refuse_directory(b, ELOOP, "is a symbolic link");
			errno = error;
			return -1;
		}
		bool is_busy = flock(dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
		/* If the path leads to another directory now, this one must not be used: a process that could not start removes
		 * the directory that it made. */
		if (fstat(dir, &st) < 0 || lstat(trace_dir.path, &again) < 0 || st.st_dev != again.st_dev ||
		    st.st_ino != again.st_ino) {
			close(dir);
			continue;
		}
		const char *why = is_busy                                          ? "another process is starting a trace there"
				  : st.st_uid != geteuid()                         ? "belongs to another user"
				  : st.st_mode & S_IWOTH                           ? "is writable by others"
				  : st.st_mode & S_IWGRP && st.st_gid != getegid() ? "is writable by another group"
										   : NULL;
		if (!why)
			return dir;
		close(dir);
		return refuse_directory(b, is_busy ? EBUSY : EACCES, why);
	}
	return refuse_directory(b, EBUSY, "other programs keep creating and removing it");
}

/* Empties the directory if that is allowed and safe; otherwise returns -1. */
static int empty_directory(int dir, struct begin_request *b)
{
	int error = for_each_name(dir, visit_any);
	/* A new directory is checked too, because another process may have locked it first, and may record into it now. */
	if (error)
		trace_dir.made = false;
	if (error == EEXIST && !b->overwrite)
		return refuse_directory(b, EEXIST, "exists already; set overwrite to replace it");
	if (error == EEXIST) {
		long pid;
		if (is_recorded(dir, &pid)) {
			snprintf(b->why, sizeof b->why, "process %ld records into it", pid);
			errno = EBUSY;
			return -1;
		}
		error = for_each_name(dir, visit_to_check);
		if (error == EEXIST)
			return refuse_directory(b, EEXIST, "exists already and is not a trace");
		/* Names may be skipped while others are removed, so the loop repeats until no name is left. */
		for (int tries = 0; tries < 1000 && !error && (error = for_each_name(dir, visit_any)) == EEXIST; tries++)
			error = for_each_name(dir, visit_to_remove);
	}
	errno = error;
	return error ? -1 : 0;
}

/* Writes, maps and locks the metadata, and gives the file its name. */
static int claim_directory(int dir, const char *text)
{
	struct stat st;
	int fd = write_metadata(dir, text);
	if (fd < 0)
		return -1;
	void *page = fstat(fd, &st) < 0 ? MAP_FAILED : mmap(NULL, trace_dir.page, PROT_READ, MAP_SHARED, fd, 0);
	int error = page == MAP_FAILED ? errno : 0;
	if (!error) {
		madvise(page, trace_dir.page, MADV_DONTFORK);
		flock(fd, LOCK_EX | LOCK_NB);
		if (renameat(dir, ".weft-metadata", dir, "metadata") == 0) {
			trace_dir.claim = page;
			trace_dir.device = st.st_dev;
			trace_dir.inode = st.st_ino;
		} else {
			error = errno;
			munmap(page, trace_dir.page);
		}
	}
	close(fd);
	errno = error;
	return error ? -1 : 0;
}

static void remove_trace(int dir)
{
	for_each_name(dir, visit_to_remove);
	if (trace_dir.claim)
		munmap(trace_dir.claim, trace_dir.page);
	trace_dir.claim = NULL;
	if (trace_dir.made)
		rmdir(trace_dir.path);
}

static int begin_on_fd_thread(void *data)
{
	struct begin_request *b = data;
	char name[NAME_SIZE];
	int dir = open_and_lock_directory(b);
	if (dir < 0) {
		b->error = errno;
		return status_from_errno(b->error);
	}
	b->error = 0;
	if (empty_directory(dir, b) < 0) {
		b->error = errno;
	} else {
		format_definitions_name(name, 0);
		b->error = make_packet(dir, name, b->definitions, NULL, &b->base);
		if (!b->error && claim_directory(dir, b->metadata) < 0) {
			b->error = errno;
			munmap(b->base, DEFINITIONS_BYTES);
		}
		if (b->error)
			remove_trace(dir);
	}
	close(dir);
	if (!b->error)
		trace_dir.generation = b->generation;
	return b->error ? status_from_errno(b->error) : WEFT_OK;
}

/* Makes the path absolute, and replaces %p by the process id; returns false if the path is too long. */
static bool expand_path(char *out, size_t size, const char *path)
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
	/* A slash at the end is removed, because "DIR/" would follow a symbolic link. */
	while (n > begin + 1 && out[n - 1] == '/')
		out[--n] = 0;
	return n != begin;
}

/* Plans the sizes of files according to the options. */
static int plan_files(const struct weft_record_options *o, const char **why)
{
	trace_dir.mode = o->mode;
	trace_dir.limit = trace_dir.used = 0;
	trace_dir.packets = 1;
	if (o->mode == WEFT_RECORD_RING) {
		uint64_t ring = o->size_bytes ? o->size_bytes : DEFAULT_RING_BYTES;
		trace_dir.packets = o->packets ? o->packets : 16;
		int status = weft__ring_check(ring, trace_dir.packets, trace_dir.page, why);
		trace_dir.packet_bytes = status < 0 ? 0 : ring / trace_dir.packets / trace_dir.page * trace_dir.page;
		return status;
	}
	uint64_t least = o->size_bytes && o->size_bytes / 4 < DEFAULT_FILE_BYTES ? o->size_bytes / 4 : DEFAULT_FILE_BYTES;
	trace_dir.limit = o->size_bytes;
	trace_dir.packet_bytes = (o->packet_bytes ? o->packet_bytes : least) / trace_dir.page * trace_dir.page;
	if (trace_dir.packet_bytes == 0 || (trace_dir.limit && trace_dir.limit < trace_dir.packet_bytes)) {
		*why = "the size is too small for a file of one packet";
		return WEFT_ETOOBIG;
	}
	if (trace_dir.packet_bytes > UINT32_MAX / 2) {
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

static bool add_definitions_file(struct weft__stream *s);

int weft__trace_dir_begin(const struct weft_record_options *o, const struct weft_metadata *metadata, char *why, size_t why_size)
{
	const char *what = NULL;
	trace_dir.page = (size_t)sysconf(_SC_PAGESIZE);
	trace_dir.definitions = 1;
	trace_dir.memory = 0;
	trace_dir.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	if (!expand_path(trace_dir.path, sizeof trace_dir.path, o->directory)) {
		snprintf(why, why_size, "the directory's name is empty or too long");
		return WEFT_EINVAL;
	}
	int status = plan_files(o, &what);
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", trace_dir.path, what);
		return status;
	}
	struct weft__stream *d = &weft__recording.definitions;
	d->stream_class = WEFT_CLASS_DEFINITIONS;
	d->storage =
	    (struct weft__storage){.packet_bytes = DEFINITIONS_BYTES, .count = 1, .most = 1, .grow = add_definitions_file};
	struct weft_packet_header header = {0};
	weft__packet_prepare(d, (unsigned char *)&header);
	struct begin_request b = {.generation = weft__recording.generation,
	    .metadata = format_metadata(metadata),
	    .definitions = &header,
	    .overwrite = o->overwrite};
	status = b.metadata ? weft__fd_thread_run(begin_on_fd_thread, &b) : WEFT_ENOMEM;
	if (b.metadata)
		munmap((void *)(uintptr_t)b.metadata, METADATA_BYTES);
	if (status < 0) {
		snprintf(why, why_size, "%s: %s", trace_dir.path,
		    b.why[0]  ? b.why
		    : b.error ? strerror(b.error)
			      : "cannot create the OS thread that opens files");
		return status;
	}
	d->storage.base = b.base;
	weft__stream_begin(d);
	return WEFT_OK;
}

static int abandon_on_fd_thread(void *data)
{
	int dir = open_trace_dir(weft__recording.generation);
	trace_dir.generation = 0;
	if (dir >= 0) {
		remove_trace(dir);
		close(dir);
	}
	return WEFT_OK;
}

const char *weft__trace_dir_path(void)
{
	return trace_dir.path;
}

void weft__trace_dir_abandon(void)
{
	munmap(weft__recording.definitions.storage.base, DEFINITIONS_BYTES);
	weft__recording.definitions.storage.base = NULL;
	weft__fd_thread_run(abandon_on_fd_thread, NULL);
	weft__trace_dir_release();
}

/* ---- Packets ---- */

struct packet_request {
	uint64_t generation;
	char name[NAME_SIZE];
	unsigned instance, first, count; /* range of packets in a stream; a count of 0 means the single packet with that name */
	uint64_t extra_bytes;            /* additional space that the disk must have, for packets that are made later */
	const struct weft_packet_header *header;
	unsigned char *base; /* address of the first packet; NULL allows any address, which is then stored here */
	unsigned made;
	int error;
	/* Next request that the same run of the fd thread handles; each request succeeds or fails alone. */
	struct packet_request *next_request;
};

/* Returns whether the disk has enough space.  Space is only checked and not reserved: making a file takes a millisecond on a
 * busy disk, and a ring whose disk is full in its first lap reuses the packets that it has. */
static bool has_disk_space(int dir, uint64_t bytes)
{
	struct statfs fs;
	return fstatfs(dir, &fs) < 0 || fs.f_blocks == 0 || (uint64_t)fs.f_bavail >= bytes / (uint64_t)fs.f_bsize;
}

static void make_packets(int dir, struct packet_request *m)
{
	m->error = m->extra_bytes && !has_disk_space(dir, m->extra_bytes) ? ENOSPC : 0;
	if (m->error)
		return;
	do {
		unsigned char *at = m->base ? m->base + (size_t)m->made * (m->header->packet_size / 8) : NULL;
		if (m->count)
			format_packet_name(m->name, m->instance, m->first + m->made);
		m->error = make_packet(dir, m->name, m->header, at, &at);
		if (!m->error && !m->base)
			m->base = at;
		m->made += !m->error;
	} while (!m->error && m->made < m->count);
	/* A ring that gets fewer packets than its minimum must not start. */
	while (m->error && m->first == 0 && m->count && m->made) {
		format_packet_name(m->name, m->instance, --m->made);
		unlinkat(dir, m->name, 0);
	}
}

static int make_on_fd_thread(void *data)
{
	struct packet_request *first = data;
	int dir = open_trace_dir(first->generation);
	if (dir < 0) {
		first->error = errno;
		return status_from_errno(first->error);
	}
	for (struct packet_request *m = first; m; m = m->next_request)
		make_packets(dir, m);
	close(dir);
	return first->error ? status_from_errno(first->error) : WEFT_OK;
}

/* Makes packets as m says, with the stream's current header; on failure returns false, with errno. */
static bool request_packets(struct weft__stream *s, struct packet_request *m)
{
	struct weft_packet_header header = {0};
	if (has_new_seccomp_filter()) {
		errno = EPERM;
		return false;
	}
	weft__packet_prepare(s, (unsigned char *)&header);
	m->header = &header;
	m->error = EAGAIN;
	int status = weft__fd_thread_run(make_on_fd_thread, m);
	errno = m->error;
	return status == WEFT_OK;
}

/* Subtracts a file's bytes from the limit of a trace in grow mode; returns whether enough was left. */
static bool consume_quota(void)
{
	if (!trace_dir.limit)
		return true;
	if (__atomic_add_fetch(&trace_dir.used, trace_dir.packet_bytes, __ATOMIC_RELAXED) <= trace_dir.limit)
		return true;
	__atomic_sub_fetch(&trace_dir.used, trace_dir.packet_bytes, __ATOMIC_RELAXED);
	return false;
}

static bool add_packet_file(struct weft__stream *s)
{
	struct weft__thread *t = s->host;
	struct packet_request m = {
	    .generation = t->generation, .instance = s->instance, .first = t->files, .count = 1, .base = s->storage.base};
	if (!consume_quota() || !request_packets(s, &m))
		return false;
	t->files++;
	return true;
}

/* Adds a packet to a ring in its first lap. */
static bool add_ring_packet(struct weft__stream *s)
{
	struct weft__thread *t = s->host;
	struct packet_request m = {.generation = t->generation,
	    .instance = s->instance,
	    .first = s->storage.count,
	    .count = 1,
	    .base = s->storage.base + (size_t)s->storage.count * s->storage.packet_bytes};
	return request_packets(s, &m);
}

static bool add_definitions_file(struct weft__stream *s)
{
	struct packet_request m = {.generation = weft__recording.generation, .base = s->storage.base};
	format_definitions_name(m.name, trace_dir.definitions);
	if (trace_dir.definitions == MAX_DEFINITIONS_FILES || !request_packets(s, &m))
		return false;
	trace_dir.definitions++;
	return true;
}

static bool add_memory_file(struct weft__stream *s)
{
	struct packet_request m = {.generation = weft__recording.generation, .base = s->storage.base};
	format_memory_name(m.name, trace_dir.memory);
	if (trace_dir.memory == WEFT__MAX_MEMORY_FILES || !request_packets(s, &m))
		return false;
	s->storage.base = m.base;
	trace_dir.memory++;
	return true;
}

bool weft__trace_dir_make_memory(struct weft__stream *s)
{
	s->stream_class = WEFT_CLASS_MEMORY;
	s->storage = (struct weft__storage){.packet_bytes = MEMORY_BYTES, .count = 1, .most = 1, .grow = add_memory_file};
	return add_memory_file(s);
}

uint64_t weft__trace_dir_memory_left(const struct weft__stream *s)
{
	const uint64_t packet = MEMORY_BYTES - sizeof(struct weft_packet_header);
	return (WEFT__MAX_MEMORY_FILES - trace_dir.memory) * packet + s->soft_end - (uint32_t)s->hot.next;
}

/* Reserves addresses for a stream, and plans its packets; on failure returns a negative enum weft_status. */
static int reserve_storage(struct weft__thread *t, struct packet_request *m, unsigned instance, unsigned count)
{
	struct weft__stream *s = t->stream;
	bool ring = trace_dir.mode == WEFT_RECORD_RING;
	size_t bytes = (size_t)trace_dir.packets * trace_dir.packet_bytes;
	if (!ring && !consume_quota())
		return WEFT_ENOSPC;
	unsigned char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return WEFT_ENOMEM;
	s->instance = instance;
	s->storage = (struct weft__storage){.base = base,
	    .packet_bytes = trace_dir.packet_bytes,
	    .count = count,
	    .most = trace_dir.packets,
	    .grow = ring ? NULL : add_packet_file,
	    .extend = ring ? add_ring_packet : NULL};
	t->mapped_bytes = bytes;
	t->files = count;
	*m =
	    (struct packet_request){.generation = weft__recording.generation, .instance = instance, .count = count, .base = base};
	return WEFT_OK;
}

int weft__trace_dir_make_storage(struct weft__thread *t, unsigned instance, bool whole)
{
	struct packet_request m;
	int status = reserve_storage(t, &m, instance, 1);
	m.extra_bytes = whole && status == WEFT_OK ? t->mapped_bytes : 0;
	if (status < 0 || request_packets(t->stream, &m))
		return status;
	int error = errno;
	weft__storage_unmap(t);
	errno = error;
	return status_from_errno(error);
}

unsigned weft__trace_dir_make_spares(struct weft__thread *const threads[], unsigned count, unsigned instance)
{
	/* The array is not on the stack, because the caller may have little stack space. */
	static struct packet_request all[WEFT__MAX_SPARE_STREAMS];
	static struct weft_packet_header headers[WEFT__MAX_SPARE_STREAMS];
	unsigned wanted = 0, made = 0;
	/* A trace with a limit spends no bytes on streams that may stay unused. */
	if (trace_dir.limit || has_new_seccomp_filter())
		return 0;
	for (; wanted < count && reserve_storage(threads[wanted], &all[wanted], instance + wanted, 1) == WEFT_OK; wanted++) {
		memset(&headers[wanted], 0, sizeof headers[wanted]);
		weft__packet_prepare(threads[wanted]->stream, (unsigned char *)&headers[wanted]);
		all[wanted].header = &headers[wanted];
		all[wanted].error = EAGAIN;
		if (wanted)
			all[wanted - 1].next_request = &all[wanted];
	}
	if (wanted)
		weft__fd_thread_run(make_on_fd_thread, &all[0]);
	while (made < wanted && !all[made].error)
		made++;
	/* Streams after a failed one stay unused, because otherwise stream numbers would be missing. */
	for (unsigned i = made; i < wanted; i++)
		weft__storage_unmap(threads[i]);
	return made;
}

/* ---- Stopping ---- */

/* Replaces a packet's file by a file with the length of its contents; a reader that has the old file open keeps it.  An OS
 * thread that was about to record at the stop may still write into the old file, behind the copied bytes. */
static void shorten_file(int dir, const char *name)
{
	struct weft_packet_header h;
	struct stat st;
	char hidden[NAME_SIZE + 6];
	snprintf(hidden, sizeof hidden, ".weft-%s", name);
	int from = open_own_file(dir, name, O_RDONLY), to = -1;
	if (from < 0)
		return;
	bool is_ours = pread(from, &h, sizeof h, 0) == (ssize_t)sizeof h && fstat(from, &st) == 0 &&
		       !memcmp(h.uuid, weft__recording.origin.uuid, sizeof h.uuid) && h.content_size / 8 >= sizeof h &&
		       h.content_size / 8 <= (uint64_t)st.st_size;
	size_t content = is_ours ? (size_t)(h.content_size / 8) : 0;
	if (is_ours && content + 4096 <= (uint64_t)st.st_size && (to = create_file(dir, hidden)) >= 0) {
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

/* Frees the space that the stream did not use, unless its OS thread did not leave the stream in time and may still use the
 * space. */
static void trim_stream(int dir, const struct weft__thread *t)
{
	const struct weft__stream *s = t->stream;
	char name[NAME_SIZE];
	if (!t->is_closed)
		return;
	if (t->is_spare) {
		format_packet_name(name, s->instance, 0);
		unlinkat(dir, name, 0);
		return;
	}
	if (!s->storage.grow)
		for (uint64_t i = s->sequence + 1; i < s->storage.count; i++) {
			format_packet_name(name, s->instance, (unsigned)i);
			unlinkat(dir, name, 0);
		}
	format_packet_name(name, s->instance, s->storage.grow ? t->files - 1 : s->slot);
	shorten_file(dir, name);
}

/* Counts the packets of each stream; the count is unknown if an OS thread did not leave its stream in time. */
static void count_packets(struct weft_metadata *metadata, const struct weft__thread *threads)
{
	static uint64_t packets[MAX_LISTED_STREAMS];
	memset(packets, 0, sizeof packets);
	metadata->definitions = trace_dir.definitions;
	metadata->stream_packets = packets;
	for (const struct weft__thread *t = threads; t; t = t->next) {
		const struct weft__stream *s = t->stream;
		if (t->generation != weft__recording.generation || !s->storage.base || t->is_spare ||
		    s->instance >= MAX_LISTED_STREAMS)
			continue;
		if (t->is_closed && !__atomic_load_n(&s->is_broken, __ATOMIC_RELAXED))
			packets[s->instance] = s->sequence + 1;
		if (s->instance >= metadata->stream_count)
			metadata->stream_count = s->instance + 1;
	}
}

struct end_request {
	const char *metadata;
	const struct weft__thread *threads;
};

static int end_on_fd_thread(void *data)
{
	const struct end_request *e = data;
	char name[NAME_SIZE];
	int dir = open_trace_dir(weft__recording.generation);
	trace_dir.generation = 0;
	if (dir < 0)
		return status_from_errno(errno);
	for (const struct weft__thread *t = e->threads; t; t = t->next)
		if (t->generation == weft__recording.generation && t->stream->storage.base)
			trim_stream(dir, t);
	format_definitions_name(name, trace_dir.definitions - 1);
	shorten_file(dir, name);
	if (trace_dir.memory) {
		format_memory_name(name, trace_dir.memory - 1);
		shorten_file(dir, name);
	}
	int fd = e->metadata ? write_metadata(dir, e->metadata) : -1;
	if (fd >= 0) {
		if (renameat(dir, ".weft-metadata", dir, "metadata"))
			unlinkat(dir, ".weft-metadata", 0);
		close(fd);
	}
	close(dir);
	return WEFT_OK;
}

void weft__trace_dir_end(const struct weft_metadata *metadata, const struct weft__thread *threads)
{
	struct weft_metadata whole = *metadata;
	count_packets(&whole, threads);
	struct end_request e = {.metadata = format_metadata(&whole), .threads = threads};
	if (!has_new_seccomp_filter())
		weft__fd_thread_run(end_on_fd_thread, &e);
	if (e.metadata)
		munmap((void *)(uintptr_t)e.metadata, METADATA_BYTES);
	struct weft__stream *d = &weft__recording.definitions;
	if (d->storage.base)
		munmap(d->storage.base, DEFINITIONS_BYTES);
	d->storage.base = NULL;
	weft__trace_dir_unmap_memory();
	weft__trace_dir_release();
}

void weft__trace_dir_unmap_memory(void)
{
	struct weft__stream *s = &weft__recording.memory;
	if (s->storage.base)
		munmap(s->storage.base, MEMORY_BYTES);
	s->storage.base = NULL;
}

/* Makes no more files in the directory, and releases the trace. */
void weft__trace_dir_release(void)
{
	weft__fd_thread_lock();
	trace_dir.generation = 0;
	if (trace_dir.claim)
		munmap(trace_dir.claim, trace_dir.page);
	trace_dir.claim = NULL;
	weft__fd_thread_unlock();
}

/* Unmaps the parent's trace in a child after a fork. */
void weft__trace_dir_after_fork(void)
{
	struct weft__stream *d = &weft__recording.definitions;
	if (trace_dir.generation && d->storage.base)
		munmap(d->storage.base, DEFINITIONS_BYTES);
	if (trace_dir.generation)
		weft__trace_dir_unmap_memory();
	trace_dir.generation = 0;
	trace_dir.claim = NULL;
}

void weft__storage_unmap(struct weft__thread *t)
{
	if (t->mapped_bytes)
		munmap(t->stream->storage.base, t->mapped_bytes);
	t->mapped_bytes = 0;
	t->stream->storage.base = NULL;
}

/* ---- Facts about this process ---- */

static int read_info_on_fd_thread(void *data)
{
	struct weft__process_info *info = data;
	size_t n = read_file("/proc/self/comm", info->process, sizeof info->process);
	while (n && info->process[n - 1] == '\n')
		info->process[--n] = 0;
	weft_program_name(info->process, sizeof info->process, (const char *)getauxval(AT_EXECFN));
	n = read_file("/proc/self/cmdline", info->command, sizeof info->command);
	while (n && !info->command[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!info->command[i])
			info->command[i] = ' ';
	format_process_name(info->recorder, sizeof info->recorder, (long)getpid());
	weft__clock_query_hz();
	return WEFT_OK;
}

void weft__process_info_read(struct weft__process_info *info)
{
	*info = (struct weft__process_info){.process = ""};
	weft__fd_thread_run(read_info_on_fd_thread, info);
}
