/* foreign.c: see foreign.h.  SPDX-License-Identifier: ISC */
#include "ctf/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctf/find.h"
#include "xen/domain.h"

#define MODULE "weft-ctf"

extern char **environ;

bool foreign_find_installed(char path[PATH_MAX], const char *name)
{
	static const char *const places[] = {"", "adapters/hook/", "apps/ctf/", "../" WEFT_LIBDIR "/weft/"};
	char self[PATH_MAX], candidate[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = 0;
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	slash[1] = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(candidate, sizeof candidate, "%s%s%s", self, places[i], name);
		if (realpath(candidate, path))
			return true;
	}
	return false;
}

__attribute__((format(printf, 4, 5))) static int fail(
    struct weft_error *err, enum weft_status status, const char *path, const char *what, ...)
{
	va_list args;
	if (!err)
		return status;
	*err = (struct weft_error){.status = status, .packet = WEFT_NO_OFFSET, .offset = WEFT_NO_OFFSET};
	snprintf(err->file, sizeof err->file, "%s", path);
	va_start(args, what);
	vsnprintf(err->what, sizeof err->what, what, args);
	va_end(args);
	return status;
}

/* What it says goes to a file, which cannot fill up as a pipe does. */
static int start(pid_t *child, const char *module, const char *path, int out, int said)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t defaults;
	char *const words[] = {(char *)(uintptr_t)module, (char *)(uintptr_t)path, NULL};
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	error = error ? error : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	error = error ? error : posix_spawn_file_actions_adddup2(&files, said, STDERR_FILENO);
	error = error ? error : posix_spawnattr_setsigdefault(&how, &defaults);
	error = error ? error : posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
	error = error ? error : posix_spawn(child, module, &files, &how, words, environ);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

/* How it ended.  The first line of what it said is why. */
static int ended(pid_t child, const char *path, int said, struct weft_error *err)
{
	char line[160];
	int end = 0;
	while (waitpid(child, &end, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(end) && WEXITSTATUS(end) == 0)
		return WEFT_OK;
	const ssize_t size = pread(said, line, sizeof line - 1, 0);
	line[size < 0 ? 0 : size] = 0;
	line[strcspn(line, "\n")] = 0;
	if (WIFSIGNALED(end))
		return fail(
		    err, WEFT_EFORMAT, path, "libbabeltrace2 crashed while it read this trace (signal %d)", WTERMSIG(end));
	return fail(err, WEFT_EFORMAT, path, "%s", line[0] ? line : MODULE " failed, and did not say why");
}

static int read_foreign(struct weft_trace **out, const char *module, const char *path, struct weft_error *err)
{
	struct weft_trace *trace = NULL;
	int ends[2] = {-1, -1}, said = memfd_create(MODULE, MFD_CLOEXEC), error = 0;
	pid_t child = -1;
	if (said < 0 || pipe2(ends, O_CLOEXEC) < 0)
		error = errno;
	else
		error = start(&child, module, path, ends[1], said);
	if (ends[1] >= 0)
		close(ends[1]);
	int status = error ? fail(err, WEFT_EIO, path, "%s does not start: %s", module, strerror(error)) : WEFT_OK;
	if (status == WEFT_OK) {
		struct weft_error own;
		const int opened = weft_trace_open_fd(&trace, ends[0], path, &own);
		close(ends[0]); /* if there is more, nobody wants it any longer */
		ends[0] = -1;
		status = ended(child, path, said, err);
		/* What it wrote is not believed to be a trace because it says so. */
		if (opened < 0 && (status == WEFT_OK || opened != WEFT_EFORMAT)) {
			status = opened;
			if (err)
				*err = own;
		}
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (said >= 0)
		close(said);
	if (status < 0)
		weft_trace_close(trace);
	else
		*out = trace;
	return status;
}

int foreign_or_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	char module[PATH_MAX];
	ctf_folders found = {0};
	const int status = domain_is(path) ? domain_open(out, path, err) : weft_trace_open(out, path, err);
	if (status != WEFT_EFORMAT || domain_is(path) || !ctf_find(&found, path) || found.count == 0) {
		ctf_folders_free(&found);
		return status;
	}
	ctf_folders_free(&found);
	if (!foreign_find_installed(module, MODULE))
		return fail(err, WEFT_ENOTSUP, path,
		    "another tracer's CTF; " MODULE " reads that, and is not installed (of packages it is weft-ctf)");
	return read_foreign(out, module, path, err);
}
