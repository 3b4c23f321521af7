/* process.c: reads a ring in the memory of a process.  The process may run, hang or be stopped; it need not cooperate.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/format.h"
#include "trace/image.h"

enum { PATH = 4096 };

struct process {
	long pid;
	WEFT_VEC(struct weft_extent) extents;
	WEFT_VEC(bool) is_shared;  /* by extent */
	bool is_last_extent;       /* true if the line of smaps describes the last extent */
	char directory[PATH + 32]; /* trace directory whose files the process has mapped, or "" */
	int memory, pages;         /* file descriptors of /proc/PID/mem and pagemap, or -1 */
	uint64_t page_bytes;
};

/* ---- Mappings ---- */

/* Returns true for mappings of devices, which are not read because reading can change a device. */
static bool is_device(const char *path)
{
	return (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 && strncmp(path, "/dev/zero", 9) != 0 &&
		   strncmp(path, "/dev/hugepages/", 15) != 0) ||
	       strncmp(path, "anon_inode:", 11) == 0;
}

/* Parses a line of /proc/PID/smaps, which starts a mapping or describes the previous mapping.  Only writable mappings become
 * extents, because rings are writable.  False: out of memory. */
static bool parse_smaps_line(struct process *p, char *line)
{
	uint64_t begin, end, inode;
	char rights[8];
	int path_at = 0;
	if (strncmp(line, "VmFlags:", 8) == 0) {
		/* The flags io and pf mark memory of a device; dd marks memory that is excluded from core dumps, such as the
		 * terabytes of a sanitizer. */
		if (p->is_last_extent && (strstr(line, " io") || strstr(line, " pf") || strstr(line, " dd"))) {
			p->extents.count--;
			p->is_shared.count--;
		}
		return true;
	}
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64 " %n", &begin, &end, rights, &inode, &path_at) < 4)
		return true;
	p->is_last_extent = false;
	char *path = line + path_at;
	path[strcspn(path, "\n")] = 0;
	if (rights[0] != 'r' || rights[1] != 'w' || begin >= end || is_device(path))
		return true;
	struct weft_extent *extent = weft_vec_push(&p->extents);
	if (!extent)
		return false;
	*extent = (struct weft_extent){begin, end - begin, begin};
	bool *shared = weft_vec_push(&p->is_shared);
	if (!shared)
		return false;
	*shared = rights[3] == 's';
	p->is_last_extent = true;
	if (*shared && !p->directory[0] && weft__image_cut_path(path))
		snprintf(p->directory, sizeof p->directory, "/proc/%ld/root%s", p->pid, path);
	return true;
}

static int read_maps(struct process *p, struct weft_error *err)
{
	char path[64], *line = NULL;
	size_t capacity = 0;
	snprintf(path, sizeof path, "/proc/%ld/smaps", p->pid);
	FILE *maps = fopen(path, "re");
	if (!maps && errno == ENOENT) {
		snprintf(path, sizeof path, "/proc/%ld/maps", p->pid);
		maps = fopen(path, "re");
	}
	bool whole = maps != NULL, any = false;
	while (whole && getline(&line, &capacity, maps) > 0) {
		any = true;
		whole = parse_smaps_line(p, line);
	}
	int error = errno;
	if (maps)
		fclose(maps);
	free(line);
	if (!maps && (error == ENOENT || error == ESRCH))
		return weft_error_set(err, WEFT_ENOENT, "no process %ld", p->pid);
	if (!maps && error != ENOMEM)
		return weft_error_set(err, WEFT_EACCES, "process %ld: only its user and root may read its memory", p->pid);
	if (!whole)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (!any)
		return weft_error_set(
		    err, WEFT_EFORMAT, "process %ld has no memory: it has ended, or is a kernel thread", p->pid);
	return WEFT_OK;
}

/* Opens mem and pagemap of the process; if that is forbidden, the error has the reason. */
static int open_memory(struct process *p, struct weft_error *err)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%ld/mem", p->pid);
	p->memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "/proc/%ld/pagemap", p->pid);
	p->pages = open(path, O_RDONLY | O_CLOEXEC);
	if (p->memory >= 0)
		return WEFT_OK;
	if (errno == ENOENT || errno == ESRCH)
		return weft_error_set(err, WEFT_ENOENT, "no process %ld", p->pid);
	int error = errno, scope = '0';
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (file) {
		scope = fgetc(file);
		fclose(file);
	}
	if ((error == EACCES || error == EPERM) && scope > '0')
		return weft_error_set(err, WEFT_EACCES,
		    "process %ld: reading its memory is not permitted: kernel.yama.ptrace_scope is %c; use root", p->pid, scope);
	return weft_error_set(err, WEFT_EACCES, "process %ld: reading its memory is not permitted: %s", p->pid, strerror(error));
}

/* ---- Read ---- */

static struct process *get_process(const struct weft_image *image)
{
	return (struct process *)(void *)(uintptr_t)image->ctx;
}

static size_t read_process(const struct weft_image *image, uint64_t address, void *to, size_t bytes)
{
	size_t got = 0;
	while (got < bytes) {
		ssize_t n = pread(image->file, (char *)to + got, bytes - got, (off_t)(address + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

/* Returns the end of the private mapping that contains an address; the address itself if its mapping is shared or there is
 * none. */
static uint64_t find_private_end(const struct process *p, uint64_t address)
{
	for (size_t i = 0; i < p->extents.count; i++)
		if (address - p->extents.items[i].address < p->extents.items[i].bytes)
			return p->is_shared.items[i] ? address : p->extents.items[i].address + p->extents.items[i].bytes;
	return address;
}

/* Skips pages of private mappings that the process never accessed, because reading such a page would allocate it. */
static uint64_t next_data(const struct weft_image *image, uint64_t address, uint64_t *end)
{
	enum { AT_ONCE = 512 };
	const uint64_t touched = UINT64_C(3) << 62; /* present, or swapped */
	const struct process *p = get_process(image);
	const uint64_t limit = find_private_end(p, address);
	uint64_t entries[AT_ONCE], page = address / p->page_bytes;
	while (page * p->page_bytes < limit) {
		ssize_t bytes = p->pages < 0 ? -1 : pread(p->pages, entries, sizeof entries, (off_t)(page * sizeof *entries));
		ssize_t count = bytes / (ssize_t)sizeof *entries, i = 0, stop;
		if (count <= 0)
			break;
		while (i < count && !(entries[i] & touched))
			i++;
		for (stop = i; stop < count && entries[stop] & touched;)
			stop++;
		page += (uint64_t)i;
		if (i < count) {
			*end = (page + (uint64_t)(stop - i)) * p->page_bytes;
			return page * p->page_bytes > address ? page * p->page_bytes : address;
		}
	}
	return page * p->page_bytes > address ? page * p->page_bytes : address;
}

static struct weft_image make_image(const char *name, struct process *p)
{
	return (struct weft_image){
	    .name = name,
	    .bytes = UINT64_MAX,
	    .read = read_process,
	    .next_data = next_data,
	    .extents = p->extents.items,
	    .extent_count = p->extents.count,
	    .ctx = p,
	    .file = p->memory,
	};
}

static int search_process(struct weft_source *out, const struct weft_image *image, const char *uuid, struct weft_error *err)
{
	const struct process *p = get_process(image);
	int status = p->extents.count ? weft__image_search(out, image, uuid, err) : WEFT_EFORMAT;
	if (status == WEFT_EFORMAT && !uuid)
		return weft_error_set(
		    err, WEFT_EFORMAT, "process %ld is not recording: its memory contains no ring buffer", p->pid);
	return status;
}

int weft__source_open_process(struct weft_source *out, long pid, const char *uuid, struct weft_error *err)
{
	struct process p = {.pid = pid, .memory = -1, .pages = -1, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	char name[32];
	snprintf(name, sizeof name, "process %ld", pid);
	int status = read_maps(&p, err);
	if (status == WEFT_OK) {
		const int opened = open_memory(&p, err);
		const struct weft_image image = make_image(name, &p);
		const bool is_file = !uuid && p.directory[0] && (opened < 0 || !weft__image_stands_by(&image));
		if (!is_file || weft_source_open(out, p.directory, NULL) < 0)
			status = opened < 0 ? opened : search_process(out, &image, uuid, err);
	}
	if (p.memory >= 0)
		close(p.memory);
	if (p.pages >= 0)
		close(p.pages);
	weft_vec_free(&p.extents);
	weft_vec_free(&p.is_shared);
	return status;
}
