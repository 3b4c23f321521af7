/* program_file.h: finds a program as execvp() does, and reads which dynamic loader it needs.  Allocates no memory and needs
 * little stack, so that a child of vfork() may call it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_PROGRAM_FILE_H
#define WEFT_BASE_PROGRAM_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WEFT_LOADER_BYTES = 64,
	WEFT_INTERPRETER_BYTES = 256, /* the kernel reads no more of a script's first line */
};

/* Names, without ".failed", of the files in a session with a note about a program that a recorded process started. */
#define WEFT_NOTE_OF_OTHER_CHILD "children" /* a program of another C library */
#define WEFT_NOTE_OF_STATIC_CHILD "static"

/* Writes the path of the program that execvp(name) would run.  Returns false if there is no such program, or if its path is too
 * long. */
static inline bool weft_find_program(char *out, size_t size, const char *name)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/'))
		return snprintf(out, size, "%s", name) < (int)size && access(out, X_OK) == 0;
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		const int length = (int)strcspn(path, ":");
		const int n = snprintf(out, size, "%.*s%s%s", length, path, length ? "/" : "", name);
		if (n < (int)size && access(out, X_OK) == 0)
			return true;
		path += length;
		if (!*path)
			return false;
	}
}

/* Writes the path of the interpreter in the first line of a script.  Returns false if the file is no script. */
static inline bool weft_read_interpreter(int fd, char path[WEFT_INTERPRETER_BYTES])
{
	char line[WEFT_INTERPRETER_BYTES + 1];
	const ssize_t n = pread(fd, line, sizeof line - 1, 0);
	line[n < 0 ? 0 : n] = 0;
	if (strncmp(line, "#!", 2) != 0)
		return false;
	const char *name = line + 2 + strspn(line + 2, " \t");
	const size_t length = strcspn(name, " \t\n");
	memcpy(path, name, length);
	path[length] = 0;
	return true;
}

static inline bool weft_is_elf(const Elf64_Ehdr *e, unsigned char elf_class)
{
	return memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 && e->e_ident[EI_CLASS] == elf_class;
}

/* Returns whether a 64-bit program has a dynamic loader.  Writes the loader's file name without its folder, such as
 * "ld-musl-x86_64.so.1"; "" if it is unknown.  The loader of a C library has the same file name on every distribution, but in
 * different folders.
 */
static inline bool weft_read_loader(int fd, const Elf64_Ehdr *e, char loader[WEFT_LOADER_BYTES])
{
	enum { MAX_HEADERS = 65536 / sizeof(Elf64_Phdr) }; /* the kernel runs no program with more headers */
	Elf64_Phdr h = {0};
	loader[0] = 0;
	for (unsigned i = 0; h.p_type != PT_INTERP; i++)
		if (i >= e->e_phnum || i >= MAX_HEADERS ||
		    pread(fd, &h, sizeof h, (off_t)(e->e_phoff + i * sizeof h)) != sizeof h)
			return false;
	char end[WEFT_LOADER_BYTES];
	const size_t bytes = h.p_filesz < sizeof end ? (size_t)h.p_filesz : sizeof end;
	const ssize_t n = pread(fd, end, bytes, (off_t)(h.p_offset + h.p_filesz - bytes));
	if (n <= 0 || end[n - 1])
		return true;
	const char *slash = memrchr(end, '/', (size_t)n);
	if (slash || h.p_filesz <= sizeof end)
		memcpy(loader, slash ? slash + 1 : end, (size_t)(end + n - (slash ? slash + 1 : end)));
	return true;
}

#endif
