/* exec.c: notes that the program starts another one of another C library, such as musl, into which nothing can be preloaded.
 *
 * That program runs as without weft (apps/control/record.c).  `weft record` prints the note at its end, once for a session.
 * Programs that are started from inside libc (execl(), fexecve(), the command of system()) are not seen here; a shell's are.
 *
 * These functions are exported wrappers that children of vfork() and signal handlers may call: they use little stack, neither
 * locks nor allocated memory, and leave everything but errno, which is restored, as it was.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/hook/directory.h"
#include "base/program_file.h"

#ifdef __GLIBC__
#include <gnu/lib-names.h>

#define EXPORTED __attribute__((visibility("default")))

/* Name, parameters, arguments, the program, whether it is searched on PATH. */
#define CALLS(X)                                                                                                                 \
	X(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), path, false)                   \
	X(execv, (const char *path, char *const argv[]), (path, argv), path, false)                                              \
	X(execvp, (const char *path, char *const argv[]), (path, argv), path, true)                                              \
	X(execvpe, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), path, true)

/* The original functions, looked up early because a child of vfork() may call them. */
static struct {
#define POINTER(NAME, PARAMETERS, ARGUMENTS, PROGRAM, SEARCHES) int(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
} real;

__attribute__((constructor(101))) static void resolve_calls(void)
{
	int saved = errno;
#define RESOLVE(NAME, PARAMETERS, ARGUMENTS, PROGRAM, SEARCHES) real.NAME = (int(*) PARAMETERS)dlsym(RTLD_NEXT, #NAME);
	CALLS(RESOLVE)
#undef RESOLVE
	errno = saved;
}

/* Reads the file name of the program's loader.  Returns false if the file is no 64-bit program with a loader. */
static bool read_loader(const char *path, char loader[WEFT_LOADER_BYTES])
{
	struct stat st;
	Elf64_Ehdr e;
	/* Nothing but a regular file is opened: the start of another one would fail, and to open it could have effects. */
	const int fd =
	    stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	const bool has = fd >= 0 && pread(fd, &e, sizeof e, 0) == sizeof e && weft_is_elf(&e, ELFCLASS64) &&
			 e.e_phentsize == sizeof(Elf64_Phdr) && weft_read_loader(fd, &e, loader);
	if (fd >= 0)
		close(fd);
	return has;
}

/* Not inlined, so that most calls need no path on the stack. */
static __attribute__((noinline)) void write_note(const char *program, const char *loader)
{
	char text[512];
	const int length = snprintf(text, sizeof text,
	    "%s was not recorded: its loader is %s, and the library that weft preloads is for " LD_SO "\n", program, loader);
	weft__hook_write_once("children", text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

static __attribute__((noinline)) bool find_and_read_loader(const char *name, char loader[WEFT_LOADER_BYTES])
{
	char path[1024];
	return weft_find_program(path, sizeof path, name) && read_loader(path, loader);
}

static void note_program(const char *name, bool searches)
{
	static bool is_noted;
	char loader[WEFT_LOADER_BYTES];
	if (!name || !weft__hook_gate || __atomic_load_n(&is_noted, __ATOMIC_RELAXED))
		return;
	const int saved = errno;
	if ((searches && !strchr(name, '/') ? find_and_read_loader(name, loader) : read_loader(name, loader)) && loader[0] &&
	    strcmp(loader, LD_SO) != 0) {
		__atomic_store_n(&is_noted, true, __ATOMIC_RELAXED);
		write_note(name, loader);
	}
	errno = saved;
}

#define CALL(NAME, PARAMETERS, ARGUMENTS, PROGRAM, SEARCHES)                                                                     \
	EXPORTED int NAME PARAMETERS                                                                                             \
	{                                                                                                                        \
		if (!real.NAME)                                                                                                  \
			resolve_calls(); /* another library's constructor ran first */                                           \
		note_program(PROGRAM, SEARCHES);                                                                                 \
		return real.NAME ARGUMENTS;                                                                                      \
	}
CALLS(CALL)
#endif
