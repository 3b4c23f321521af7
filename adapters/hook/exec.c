/* exec.c: notes that the program starts another one into which nothing can be preloaded: of another C library, such as musl, or
 * linked statically.  A program that cannot open this library gets an environment without it.
 *
 * That program runs as without weft (apps/control/record.c).  `weft record` prints the note at its end, once for a session; the
 * note of a static program only if the session has no trace, because many sessions start a static tool.
 * The shell that system() and popen() start has these wrappers too.
 *
 * These functions are exported wrappers that children of vfork() and signal handlers may call: they use little stack, neither
 * locks nor allocated memory, and leave everything but errno, which is restored, as it was.  SPDX-License-Identifier: ISC */
#include "adapters/hook/exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/hook/directory.h"
#include "adapters/hook/preload.h"
#include "base/program_file.h"

#ifdef __GLIBC__
#include <gnu/lib-names.h>

#define EXPORTED __attribute__((visibility("default")))

/* Lists the calls: name, parameters, arguments, the call with an environment, the environment, whether the program is searched on
 * PATH. */
#define CALLS(X)                                                                                                                 \
	X(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), execve, envp, false)           \
	X(execv, (const char *path, char *const argv[]), (path, argv), execve, environ, false)                                   \
	X(execvp, (const char *path, char *const argv[]), (path, argv), execvpe, environ, true)                                  \
	X(execvpe, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), execvpe, envp, true)

/* Pointers to the original functions, looked up early because a child of vfork() may call them. */
static struct {
#define POINTER(NAME, PARAMETERS, ARGUMENTS, CALLED, ENVIRONMENT, SEARCHES) int(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
	int (*fexecve)(int fd, char *const argv[], char *const envp[]);
} real;

__attribute__((constructor(101))) static void resolve_calls(void)
{
	int saved = errno;
#define RESOLVE(NAME, PARAMETERS, ARGUMENTS, CALLED, ENVIRONMENT, SEARCHES)                                                      \
	real.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	CALLS(RESOLVE)
#undef RESOLVE
	real.fexecve = (int (*)(int, char *const *, char *const *))dlsym(RTLD_NEXT, "fexecve");
	errno = saved;
}

/* Returns whether a file without a loader is a program.  A loader, which can be started as a program and preloads libraries, has
 * the type of a library. */
static bool is_program(int fd, const Elf64_Ehdr *e)
{
	enum { MAX_HEADERS = 64, MAX_ENTRIES = 256 };
	Elf64_Phdr h = {0};
	Elf64_Dyn d = {.d_tag = DT_DEBUG};
	if (e->e_type != ET_DYN)
		return e->e_type == ET_EXEC;
	for (unsigned i = 0; h.p_type != PT_DYNAMIC; i++)
		if (i >= e->e_phnum || i >= MAX_HEADERS ||
		    pread(fd, &h, sizeof h, (off_t)(e->e_phoff + i * sizeof h)) != sizeof h)
			return false;
	for (unsigned i = 0; d.d_tag != DT_NULL && i < MAX_ENTRIES; i++) {
		if (pread(fd, &d, sizeof d, (off_t)(h.p_offset + i * sizeof d)) != sizeof d)
			return false;
		if (d.d_tag == DT_FLAGS_1)
			return (d.d_un.d_val & DF_1_PIE) != 0;
	}
	return false;
}

enum program_type { UNKNOWN, LOADS_LIBRARIES, OF_OTHER_LIBRARY, STATIC };

/* Opens a program.  Nothing but a regular file is opened: the start of another one would fail, and to open it could have effects.
 */
static int open_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
}

/* Reads the file name of the loader of a program of 64 bits.  Takes over the descriptor. */
static enum program_type read_elf(int fd, char loader[WEFT_LOADER_BYTES])
{
	Elf64_Ehdr e;
	enum program_type type = UNKNOWN;
	if (fd < 0)
		return UNKNOWN;
	if (pread(fd, &e, sizeof e, 0) == sizeof e && weft_is_elf(&e, ELFCLASS64) && e.e_phentsize == sizeof(Elf64_Phdr)) {
		if (weft_read_loader(fd, &e, loader))
			type = loader[0] && strcmp(loader, LD_SO) != 0 ? OF_OTHER_LIBRARY : LOADS_LIBRARIES;
		else if (is_program(fd, &e))
			type = STATIC;
	}
	close(fd);
	return type;
}

/* Reads a program, or the interpreter of a script. */
static enum program_type read_program(const char *path, char loader[WEFT_LOADER_BYTES])
{
	char interpreter[WEFT_INTERPRETER_BYTES];
	const int fd = open_program(path);
	if (fd < 0 || !weft_read_interpreter(fd, interpreter))
		return read_elf(fd, loader);
	close(fd);
	return read_elf(open_program(interpreter), loader);
}

/* Not inlined, so that most calls need no path on the stack. */
static __attribute__((noinline)) void write_note(const char *program, enum program_type type, const char *loader)
{
	char text[512], reason[WEFT_LOADER_BYTES + 96];
	if (type == STATIC)
		snprintf(reason, sizeof reason, "it is linked statically, so weft cannot preload its library");
	else
		snprintf(reason, sizeof reason, "its loader is %s, and the library that weft preloads is for " LD_SO, loader);
	const int length = snprintf(text, sizeof text, "%s was not recorded: %s\n", program, reason);
	weft__hook_write_once(type == STATIC ? WEFT_NOTE_OF_STATIC_CHILD : WEFT_NOTE_OF_OTHER_CHILD, text,
	    length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

static __attribute__((noinline)) enum program_type find_and_read_program(const char *name, char loader[WEFT_LOADER_BYTES])
{
	char path[1024];
	return weft_find_program(path, sizeof path, name) ? read_program(path, loader) : UNKNOWN;
}

/* Writes the note of a type once in a process. */
static void note_type(const char *name, enum program_type type, const char *loader)
{
	static bool is_noted[STATIC + 1];
	if (type >= OF_OTHER_LIBRARY && !__atomic_exchange_n(&is_noted[type], true, __ATOMIC_RELAXED))
		write_note(name, type, loader);
}

void weft__hook_note_program(const char *name, bool searches)
{
	char loader[WEFT_LOADER_BYTES];
	if (!name || !weft__hook_gate)
		return;
	const int saved = errno;
	note_type(
	    name, searches && !strchr(name, '/') ? find_and_read_program(name, loader) : read_program(name, loader), loader);
	errno = saved;
}

/* Not inlined, so that the caller has no paths on its stack when it starts the program. */
static __attribute__((noinline)) void note_open_program(int fd)
{
	char loader[WEFT_LOADER_BYTES], path[32], name[256];
	if (!weft__hook_gate)
		return;
	const int saved = errno;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	const ssize_t length = readlink(path, name, sizeof name - 1);
	if (length > 0) {
		name[length] = 0;
		note_type(name, read_program(path, loader), loader);
	}
	errno = saved;
}

/* A program that cannot load this library starts by `CALLED`, which takes an environment. */
#define CALL(NAME, PARAMETERS, ARGUMENTS, CALLED, ENVIRONMENT, SEARCHES)                                                         \
	static int start_by_##NAME PARAMETERS                                                                                    \
	{                                                                                                                        \
		if (!real.NAME)                                                                                                  \
			resolve_calls(); /* another library's constructor ran first */                                           \
		weft__hook_note_program(path, SEARCHES);                                                                         \
		const size_t bytes = weft__hook_bytes_without_library(ENVIRONMENT);                                              \
		return bytes ? real.CALLED(                                                                                      \
				   path, argv, weft__hook_copy_without_library(__builtin_alloca(bytes), bytes, ENVIRONMENT))     \
			     : real.NAME ARGUMENTS;                                                                              \
	}                                                                                                                        \
	EXPORTED int NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		return start_by_##NAME ARGUMENTS;                                                                                \
	}
CALLS(CALL)

EXPORTED int fexecve(int fd, char *const argv[], char *const envp[])
{
	if (!real.fexecve)
		resolve_calls();
	note_open_program(fd);
	const size_t bytes = weft__hook_bytes_without_library(envp);
	return real.fexecve(fd, argv, bytes ? weft__hook_copy_without_library(__builtin_alloca(bytes), bytes, envp) : envp);
}

/* These calls list their arguments, which end with NULL.  As in libc, an array of them is on the stack. */
#define LISTED(NAME, CALLED, ARGUMENTS, ...)                                                                                     \
	EXPORTED int NAME(const char *path, const char *first, ...)                                                              \
	{                                                                                                                        \
		va_list list;                                                                                                    \
		size_t count = 0;                                                                                                \
		va_start(list, first);                                                                                           \
		for (const char *word = first; word; word = va_arg(list, const char *))                                          \
			count++;                                                                                                 \
		va_end(list);                                                                                                    \
		char **argv = __builtin_alloca((count + 1) * sizeof *argv);                                                      \
		va_start(list, first);                                                                                           \
		argv[0] = (char *)first;                                                                                         \
		for (size_t i = 1; i <= count; i++)                                                                              \
			argv[i] = va_arg(list, char *);                                                                          \
		__VA_ARGS__                                                                                                      \
		va_end(list);                                                                                                    \
		return start_by_##CALLED ARGUMENTS;                                                                              \
	}
LISTED(execl, execv, (path, argv), )
LISTED(execlp, execvp, (path, argv), )
LISTED(execle, execve, (path, argv, envp), char *const *envp = va_arg(list, char *const *);)
#else
void weft__hook_note_program(const char *name, bool searches)
{
	(void)name;
	(void)searches;
}
#endif
