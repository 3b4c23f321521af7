/* program.c: ELF headers of the command that weft record is to run.  SPDX-License-Identifier: ISC */
#include "apps/cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { SCRIPTS = 4 }; /* an interpreter may be a script too */

/* What its file says. */
struct program {
	char path[PATH_MAX];
	bool found;       /* the file can be read */
	bool is_elf;      /* as the library's: of 64 bits */
	bool is_32;       /* of 32 bits */
	bool has_loader;  /* a loader starts it */
	bool is_elevated; /* it gets rights that its user has not */
};

/* As execvp() does. */
static bool find_in_path(char out[PATH_MAX], const char *name)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/'))
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX && access(out, X_OK) == 0;
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		int length = (int)strcspn(path, ":");
		int n = snprintf(out, PATH_MAX, "%.*s%s%s", length, path, length ? "/" : "", name);
		if (n < PATH_MAX && access(out, X_OK) == 0)
			return true;
		path += length;
		if (!*path)
			return false;
	}
}

static void read_headers(struct program *p, int fd)
{
	Elf64_Ehdr e;
	if (pread(fd, &e, sizeof e, 0) != sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	p->is_32 = e.e_ident[EI_CLASS] == ELFCLASS32;
	p->is_elf = e.e_ident[EI_CLASS] == ELFCLASS64 && e.e_phentsize == sizeof(Elf64_Phdr);
	for (unsigned i = 0; p->is_elf && i < e.e_phnum; i++) {
		Elf64_Phdr h;
		if (pread(fd, &h, sizeof h, (off_t)(e.e_phoff + i * sizeof h)) == sizeof h)
			p->has_loader |= h.p_type == PT_INTERP;
	}
}

/* The interpreter that a script's first line names; false: it is no script. */
static bool read_interpreter(char out[PATH_MAX], int fd)
{
	char line[PATH_MAX + 2];
	ssize_t n = pread(fd, line, sizeof line - 1, 0);
	line[n < 0 ? 0 : n] = 0;
	if (strncmp(line, "#!", 2) != 0)
		return false;
	char *name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = 0;
	return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX;
}

static struct program look_at(const char *command)
{
	struct program p = {0};
	char path[PATH_MAX];
	if (!find_in_path(p.path, command))
		return p;
	for (int i = 0; i < SCRIPTS; i++) {
		struct stat st;
		int fd = open(p.path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
		p.found = fstat(fd, &st) == 0;
		p.is_elevated = p.found && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
		bool is_script = read_interpreter(path, fd);
		if (!is_script)
			read_headers(&p, fd);
		close(fd);
		if (!is_script)
			break;
		memcpy(p.path, path, sizeof path);
	}
	return p;
}

bool program_loads_libraries(const char *command)
{
	struct program p = look_at(command);
	/* A loader of 32 bits would complain of the library in the program's own output. */
	return !p.is_32 && (!p.is_elf || p.has_loader);
}

#define KNOWN                                                                                                                    \
	"libuv, GLib, libevent, sd-event or libweft-record.  (A libuv inside of a program is found by its symbols: strip "       \
	"removes them.)"

void program_tell_why_not(const char *command, bool has_traces)
{
	struct program p = look_at(command);
	if (has_traces)
		cli_note("%s: no promises were seen, only when OS threads work and sleep: none of its processes called " KNOWN,
		    command);
	else if (p.is_elf && !p.has_loader)
		cli_note(
		    "%s recorded nothing: it is linked statically, so that nothing can be loaded before it; a build that links "
		    "its libraries dynamically can be recorded",
		    command);
	else if (p.is_elevated)
		cli_note("%s recorded nothing: it is setuid or setgid, so that nothing is loaded before it; a copy without these "
			 "bits, or its user's own shell, can be recorded",
		    command);
	else if (p.is_32)
		cli_note("%s recorded nothing: it is a program of 32 bits, and what is loaded before programs is of 64; one that "
			 "calls a libweft-record of 32 bits can be recorded",
		    command);
	else if (p.found && !p.is_elf)
		cli_note("%s recorded nothing: %s is no program for 64 bits", command, p.path);
	else
		cli_note(
		    "%s recorded nothing: none of its processes waited for several things at once, or called " KNOWN, command);
}
