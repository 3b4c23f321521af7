/* follow.c: detects that a trace has changed, without opening the trace.
 *
 * A recorder writes to mapped files, which does not change the modification times of the files.  Therefore packet headers are
 * compared too: each event changes the content size in the header of its packet, or a number in the ring header of an OCaml
 * file.  SPDX-License-Identifier: ISC */
#include "trace/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#include "base/cursor.h"
#include "base/hash.h"
#include "base/named.h"
#include "trace/ocaml_ring.h"
#include "trace/position.h"
#include "wire/wire.h"

#define PACKETS_MAX 4096
#define OVERLAYFS 0x794c7630u

/* Returns the size of the packet in bytes; 0 if the bytes are no packet header. */
static uint64_t packet_bytes(const unsigned char header[sizeof(struct weft_packet_header)])
{
	if (weft_load_u32(header) == WEFT_PACKET_MAGIC &&
	    weft_load_u32(header + offsetof(struct weft_packet_header, mark)) == WEFT_PACKET_MARK)
		return weft_load_u64(header + offsetof(struct weft_packet_header, packet_size)) / 8;
	/* Packets of mirage-profile have a 32-bit size behind the magic and the UUID. */
	static const unsigned char mirage[] = {0xC1, 0x1F, 0xFC, 0xC1};
	return memcmp(header, mirage, sizeof mirage) == 0 ? weft_load_u32(header + 20) / 8 : 0;
}

static bool is_ocaml(int fd, unsigned char header[WEFT__OCAML_HEADER])
{
	return pread(fd, header, WEFT__OCAML_HEADER, 0) == WEFT__OCAML_HEADER && weft__ocaml_is(header, WEFT__OCAML_HEADER);
}

/* Hashes the headers of the rings in an OCaml file. */
static uint64_t fingerprint_rings(int fd, const unsigned char *header, uint64_t hash)
{
	unsigned char ring[4096];
	uint64_t left = weft__ocaml_rings_bytes(header), at = WEFT__OCAML_HEADER;
	for (ssize_t n; left && (n = pread(fd, ring, left < sizeof ring ? left : sizeof ring, (off_t)at)) > 0;) {
		hash = weft_hash_u64(hash + weft_hash_bytes((const char *)ring, (size_t)n));
		at += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return hash;
}

static uint64_t fingerprint_file(int fd, const struct stat *st)
{
	const uint64_t words[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
	    (uint64_t)st->st_mtim.tv_nsec};
	uint64_t hash = weft_hash_bytes((const char *)words, sizeof words), offset = 0;
	unsigned char rings[WEFT__OCAML_HEADER];
	if (is_ocaml(fd, rings))
		return fingerprint_rings(fd, rings, hash);
	for (int i = 0; i < PACKETS_MAX && offset < (uint64_t)st->st_size; i++) {
		unsigned char header[sizeof(struct weft_packet_header)] = {0};
		if (pread(fd, header, sizeof header, (off_t)offset) <= 0)
			break;
		hash = weft_hash_u64(hash + weft_hash_bytes((const char *)header, sizeof header));
		uint64_t bytes = packet_bytes(header);
		if (!bytes)
			break;
		offset += bytes;
	}
	return hash;
}

/* The hashes of the files are added up, because the entries of a directory have no order. */
static uint64_t fingerprint_directory(int fd, const struct weft_position *from, uint64_t hash)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return hash + 1;
	}
	const struct dirent *entry;
	while ((entry = readdir(dir))) {
		struct stat st;
		if (entry->d_name[0] == '.' || (from && weft_position_is_behind(from, entry->d_name)) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		int file = weft_named_file(dirfd(dir), entry->d_name, &(struct weft_named_rule){.owner = WEFT_ANY_OWNER}, &st);
		uint64_t name = weft_hash_bytes(entry->d_name, strlen(entry->d_name));
		hash += weft_hash_u64(name ^ (file < 0 ? (uint64_t)errno : fingerprint_file(file, &st)));
		if (file >= 0)
			close(file);
	}
	closedir(dir);
	return hash;
}

uint64_t weft_trace_fingerprint(const char *path)
{
	return weft_trace_fingerprint_from(path, NULL);
}

uint64_t weft_trace_fingerprint_from(const char *path, const struct weft_position *from)
{
	struct stat st;
	if (strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &st) < 0)
		return (uint64_t)errno;
	/* Pipes and devices are skipped, because opening them could take bytes away from their reader. */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		uint64_t error = (uint64_t)errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	if (S_ISDIR(st.st_mode))
		return fingerprint_directory(fd, from, weft_hash_u64((uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 48));
	uint64_t hash = fingerprint_file(fd, &st);
	close(fd);
	return hash;
}

#ifdef __linux__
/* Reads the first bytes of a small file of /proc as a string. */
static bool read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = 0;
	return n > 0;
}

/* Returns true if the process that records the trace is alive.  On overlayfs the recorder's lock ends at once, because closing
 * the file descriptor releases it.  For this case the metadata names the process in `recorder`: "BOOT NAMESPACE PID START".  A
 * process in another container cannot be checked; its trace counts as being recorded. */
static bool is_recorder_alive(int metadata)
{
	char text[8192], boot[64], now[64], path[64], stat_line[1024], start[32];
	unsigned long namespace;
	long pid;
	struct stat st;
	ssize_t n = pread(metadata, text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = 0;
	const char *at = strstr(text, "\trecorder = \"");
	if (!at || !strstr(text, "\tstate = \"recording\"") ||
	    sscanf(at, "\trecorder = \"%63s %lu %ld %31[0-9]", boot, &namespace, &pid, start) != 4)
		return false;
	if (!read_line("/proc/sys/kernel/random/boot_id", now, sizeof now) || strncmp(now, boot, strlen(boot)) != 0)
		return false;
	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino != namespace)
		return true;
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!read_line(path, stat_line, sizeof stat_line))
		return false;
	/* the program name, which may contain any character, ends with the last ")" */
	const char *field = strrchr(stat_line, ')');
	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field && strncmp(field + 1, start, strlen(start)) == 0 && field[1 + strlen(start)] == ' ';
}

#endif

/* Returns true if the process that writes this OCaml file is alive, because then it has mapped the file. */
static bool is_mapped(const char *path)
{
	const char *slash = strrchr(path, '/');
	char from[64], line[512];
	struct stat st;
	unsigned char header[WEFT__OCAML_HEADER];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_ocaml(fd, header);
	if (fd >= 0)
		close(fd);
	snprintf(from, sizeof from, "/proc/%ld/maps", strtol(slash ? slash + 1 : path, NULL, 10));
	FILE *maps = is ? fopen(from, "re") : NULL;
	bool found = false;
	while (maps && !found && fgets(line, sizeof line, maps)) {
		unsigned long long inode = 0;
		found = sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1 && inode == st.st_ino;
	}
	if (maps)
		fclose(maps);
	return found;
}

bool weft_trace_is_recorded(const char *path)
{
	int fd = weft_users_folder(path), metadata = -1;
	if (fd >= 0) {
		metadata = weft_named_file(fd, "metadata", &(struct weft_named_rule){.owner = WEFT_ANY_OWNER}, NULL);
		close(fd);
	}
	if (metadata < 0)
		return fd < 0 && is_mapped(path);
	/* A recorder holds a lock on its metadata file until it stops or dies. */
	bool locked = flock(metadata, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
#ifdef __linux__
	struct statfs fs;
	if (!locked && fstatfs(metadata, &fs) == 0 && (unsigned long)fs.f_type == OVERLAYFS)
		locked = is_recorder_alive(metadata);
#endif
	close(metadata);
	return locked;
}
