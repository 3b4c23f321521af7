/* program.c: reads the ELF header of the command that weft record runs.  SPDX-License-Identifier: ISC */
#include "apps/control/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program_file.h"
#include "cli/cli.h"

enum {
	MAX_INTERPRETERS = 4, /* maximum number of interpreters, because an interpreter may itself be a script */
};

/* Properties of the program's file. */
struct program {
	char path[PATH_MAX];
	bool found;                     /* the file is readable */
	bool is_elf;                    /* whether the file is a 64-bit ELF file, like the preloaded library */
	bool is_32;                     /* 32-bit */
	bool has_loader;                /* whether the program has a dynamic loader */
	bool is_elevated;               /* setuid or setgid */
	char loader[WEFT_LOADER_BYTES]; /* file name of the dynamic loader, such as "ld-musl-x86_64.so.1"; "" if unknown */
	bool has_msan;                  /* built with MemorySanitizer */
};

void program_set_variable(const char *command)
{
	char path[PATH_MAX];
	struct stat named, self;
	const char *value = getenv("_");
	if (value && stat(value, &named) == 0 && stat("/proc/self/exe", &self) == 0 && named.st_ino == self.st_ino &&
	    named.st_dev == self.st_dev && weft_find_program(path, sizeof path, command))
		setenv("_", path, 1);
}

/* Returns whether the table of names of the file's dynamic symbols contains `name`. */
static bool has_dynamic_name(int fd, const Elf64_Ehdr *e, const char *name)
{
	enum { MAX_SECTIONS = 4096, MAX_NAMES_BYTES = 1 << 24 };
	Elf64_Shdr symbols = {0}, names = {0};
	for (unsigned i = 0; symbols.sh_type != SHT_DYNSYM && i < e->e_shnum && i < MAX_SECTIONS; i++)
		if (pread(fd, &symbols, sizeof symbols, (off_t)(e->e_shoff + i * sizeof symbols)) != sizeof symbols)
			return false;
	if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= e->e_shnum ||
	    pread(fd, &names, sizeof names, (off_t)(e->e_shoff + symbols.sh_link * sizeof names)) != sizeof names ||
	    names.sh_size == 0 || names.sh_size > MAX_NAMES_BYTES)
		return false;
	char *text = malloc(names.sh_size);
	const ssize_t bytes = text ? pread(fd, text, names.sh_size, (off_t)names.sh_offset) : -1;
	const bool found = bytes > 0 && memmem(text, (size_t)bytes, name, strlen(name) + 1);
	free(text);
	return found;
}

static void read_headers(struct program *p, int fd)
{
	Elf64_Ehdr e;
	if (pread(fd, &e, sizeof e, 0) != sizeof e)
		return;
	p->is_32 = weft_is_elf(&e, ELFCLASS32);
	p->is_elf = weft_is_elf(&e, ELFCLASS64) && e.e_phentsize == sizeof(Elf64_Phdr);
	p->has_loader = p->is_elf && weft_read_loader(fd, &e, p->loader);
	p->has_msan = p->has_loader && e.e_shentsize == sizeof(Elf64_Shdr) && has_dynamic_name(fd, &e, "__msan_init");
}

static struct program inspect_program(const char *command)
{
	struct program p = {0};
	char path[WEFT_INTERPRETER_BYTES];
	if (!weft_find_program(p.path, sizeof p.path, command))
		return p;
	for (int i = 0; i < MAX_INTERPRETERS; i++) {
		struct stat st;
		int fd = open(p.path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
		p.found = fstat(fd, &st) == 0;
		p.is_elevated = p.found && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
		bool is_script = weft_read_interpreter(fd, path);
		if (!is_script)
			read_headers(&p, fd);
		close(fd);
		if (!is_script)
			break;
		memcpy(p.path, path, sizeof path);
	}
	return p;
}

/* Copies the name of this command's loader, which is also the library's loader; "" if this command is linked statically. */
static void get_own_loader(char out[WEFT_LOADER_BYTES])
{
	const struct program own = inspect_program("/proc/self/exe");
	memcpy(out, own.loader, WEFT_LOADER_BYTES);
}

/* Returns whether the program uses another C library than this command. */
static bool has_other_loader(const struct program *p)
{
	char own[WEFT_LOADER_BYTES];
	get_own_loader(own);
	return p->loader[0] && own[0] && strcmp(p->loader, own) != 0;
}

bool program_loads_libraries(const char *command)
{
	struct program p = inspect_program(command);
	/* A 32-bit loader would print an error about the library into the program's output, and a library for another C library
	 * would end the program. */
	return !p.is_32 && (!p.is_elf || p.has_loader) && !has_other_loader(&p);
}

#define SUPPORTED_LIBRARIES "libuv, GLib, libevent, sd-event or libweft-record (a stripped program hides a libuv inside it)"

void program_note_why_not(const char *command, bool has_traces)
{
	struct program p = inspect_program(command);
	if (has_traces)
		cli_note("%s: no promises, only the activity of OS threads: none of its processes called " SUPPORTED_LIBRARIES,
		    command);
	else if (p.is_elf && !p.has_loader)
		cli_note(
		    "%s recorded nothing: it is linked statically, so weft cannot preload its library; use a build that links "
		    "its libraries dynamically",
		    command);
	else if (p.has_msan)
		cli_note("%s recorded nothing: it is built with MemorySanitizer, which rejects what other libraries write; use a "
			 "build with another sanitizer",
		    command);
	else if (p.is_elevated)
		cli_note(
		    "%s recorded nothing: it is setuid or setgid, so weft cannot preload its library; use a copy without these "
		    "bits, or a shell of its user",
		    command);
	else if (p.is_32)
		cli_note("%s recorded nothing: it is a 32-bit program, and the library that weft preloads is 64-bit; link the "
			 "program with a 32-bit libweft-record",
		    command);
	else if (has_other_loader(&p)) {
		char own[WEFT_LOADER_BYTES];
		get_own_loader(own);
		cli_note("%s recorded nothing: its loader is %s, and the library that weft preloads is for %s; link the program "
			 "with a libweft-record of its own C library",
		    command, p.loader, own);
	} else if (p.found && !p.is_elf)
		cli_note("%s recorded nothing: %s is not a 64-bit program", command, p.path);
	else
		cli_note("%s recorded nothing: none of its processes ran an event loop or called " SUPPORTED_LIBRARIES, command);
}
