/* file.c: opens the files whose paths a trace contains (see file.h).  SPDX-License-Identifier: ISC */
#include "file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cursor.h"

enum { MAX_BUILD_ID = 64 };

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses a build-id.  A build-id of less than 8 bytes does not identify a file. */
static size_t parse_id(unsigned char out[MAX_BUILD_ID], struct weft_str digits)
{
	size_t n = digits.len / 2;
	if (digits.len % 2 || n < 8 || n > MAX_BUILD_ID)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(digits.ptr[2 * i]), low = hex_digit(digits.ptr[2 * i + 1]);
		if (high < 0 || low < 0)
			return 0;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return n;
}

bool weft__file_debug_path(char *out, size_t size, struct weft_str build_id)
{
	unsigned char id[MAX_BUILD_ID];
	if (!parse_id(id, build_id))
		return false;
	return snprintf(out, size, "/usr/lib/debug/.build-id/%.2s/%.*s.debug", build_id.ptr, (int)build_id.len - 2,
		   build_id.ptr + 2) < (int)size;
}

/* Returns whether a file is on a virtual file system of the kernel, on which reading may have side effects. */
static bool is_kernel_file(int fd)
{
	static const unsigned long kernels[] = {0x9fa0 /* proc */, 0x62656572 /* sysfs */, 0x64626720 /* debugfs */,
	    0x74726163 /* tracefs */, 0x73636673 /* securityfs */, 0x6165676c /* pstore */, 0x27e0eb /* cgroup */,
	    0x63677270 /* cgroup2 */, 0xcafe4a11 /* bpf */, 0xde5e81e4 /* efivarfs */, 0x42494e4d /* binfmt_misc */};
	struct statfs fs;
	if (fstatfs(fd, &fs))
		return true;
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if ((unsigned long)fs.f_type == kernels[i])
			return true;
	return false;
}

/* Opens a path with O_PATH, for an examination of the file.  A link of /proc, such as /proc/self/cwd, would lead out of the
 * recorded path, and no module is there, so such links are not followed. */
static int open_path(const char *path)
{
	static const char *const virtual[] = {"/proc/", "/sys/", "/dev/"};
	for (size_t i = 0; i < sizeof virtual / sizeof *virtual; i++)
		if (!strncmp(path, virtual[i], strlen(virtual[i])))
			return -1;
#ifdef SYS_openat2
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	const long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return (int)fd;
#endif
	return open(path, O_PATH | O_CLOEXEC);
}

/* The file is first opened with O_PATH, which neither wakes a device nor connects a FIFO. */
int weft__file_open(const char *path)
{
	int path_fd = path[0] == '/' && !strstr(path, "//") ? open_path(path) : -1, fd = -1;
	struct stat st;
	char name[32];
	if (path_fd < 0)
		return -1;
	bool sane = fstat(path_fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
		    !(st.st_mode & S_IWOTH) && !is_kernel_file(path_fd);
	if (sane) {
		snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	close(path_fd);
	return fd;
}

enum weft_file_fault weft__file_identify(int fd, struct weft_str build_id)
{
	unsigned char wanted[MAX_BUILD_ID], magic[SELFMAG];
	size_t bytes = parse_id(wanted, build_id);
	if (fd < 0)
		return WEFT_FILE_NONE;
	enum weft_file_fault fault = WEFT_FILE_OTHER;
	elf_version(EV_CURRENT);
	Elf *elf = pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, ELFMAG, SELFMAG)
		       ? elf_begin(fd, ELF_C_READ_MMAP, NULL)
		       : NULL;
	if (elf) {
		const void *id;
		ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
		bool same = bytes && n == (ssize_t)bytes && !memcmp(id, wanted, bytes);
		fault = same ? WEFT_FILE_FINE : WEFT_FILE_BUILD_ID;
		elf_end(elf);
	}
	return fault;
}

/* ---- Functions known from exception tables only ---- */

struct image {
	const unsigned char *bytes;
	size_t size;
	Elf64_Ehdr head;
};

static bool read_at(const struct image *f, uint64_t at, void *to, size_t bytes)
{
	if (at > f->size || bytes > f->size - at)
		return false;
	memcpy(to, f->bytes + at, bytes);
	return true;
}

/* Converts an address to the file's offset. */
static bool find_offset(const struct image *f, uint64_t address, uint64_t *out)
{
	for (unsigned i = 0; i < f->head.e_phnum; i++) {
		Elf64_Phdr h;
		if (!read_at(f, f->head.e_phoff + (uint64_t)i * sizeof h, &h, sizeof h))
			return false;
		if (h.p_type == PT_LOAD && address - h.p_vaddr < h.p_filesz) {
			*out = h.p_offset + (address - h.p_vaddr);
			return true;
		}
	}
	return false;
}

static bool find_table(const struct image *f, Elf64_Phdr *out)
{
	for (unsigned i = 0; i < f->head.e_phnum; i++)
		if (!read_at(f, f->head.e_phoff + (uint64_t)i * sizeof *out, out, sizeof *out))
			return false;
		else if (out->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

bool weft__file_function(const unsigned char *bytes, size_t size, uint64_t address, uint64_t *begin, uint64_t *end)
{
	/* Encoding of the table: the only one that linkers write, with signed 4-byte pointers relative to the table or to
	 * themselves. */
	enum { TABLE = 0x3b, COUNT = 0x03, POINTER = 0x1b, HEAD = 12, ENTRY = 8 };
	struct image f = {.bytes = bytes, .size = size};
	Elf64_Phdr h;
	unsigned char head[HEAD];
	if (!read_at(&f, 0, &f.head, sizeof f.head) || f.head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    f.head.e_ident[EI_DATA] != ELFDATA2LSB || f.head.e_phentsize != sizeof h || !find_table(&f, &h) ||
	    !read_at(&f, h.p_offset, head, HEAD) || head[0] != 1 || head[1] != POINTER || head[2] != COUNT || head[3] != TABLE)
		return false;
	uint64_t low = 0, high = weft_load_u32(head + 8), table = h.p_offset + HEAD, at;
	unsigned char entry[ENTRY], frame[16];
	if (high > size / ENTRY)
		return false;
	/* Finds the table's last entry at or before the address. */
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		if (!read_at(&f, table + mid * ENTRY, entry, ENTRY))
			return false;
		if (h.p_vaddr + (uint64_t)(int64_t)(int32_t)weft_load_u32(entry) <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || !read_at(&f, table + (low - 1) * ENTRY, entry, ENTRY))
		return false;
	*begin = h.p_vaddr + (uint64_t)(int64_t)(int32_t)weft_load_u32(entry);
	/* The entry points to the function's FDE: length, offset of the CIE, start, size. */
	if (!find_offset(&f, h.p_vaddr + (uint64_t)(int64_t)(int32_t)weft_load_u32(entry + 4), &at) ||
	    !read_at(&f, at, frame, sizeof frame))
		return false;
	*end = *begin + weft_load_u32(frame + 12);
	return address < *end;
}
