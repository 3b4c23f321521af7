/* foreign.c: implements foreign.h.  SPDX-License-Identifier: ISC */
#include "ctf/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctf/find.h"

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

/* Starts weft-ctf; its messages go to a file, which unlike a pipe cannot fill up. */
static int start_module(pid_t *child, const char *module, const char *path, int out, int stderr_fd)
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
	error = error ? error : posix_spawn_file_actions_adddup2(&files, stderr_fd, STDERR_FILENO);
	error = error ? error : posix_spawnattr_setsigdefault(&how, &defaults);
	error = error ? error : posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
	error = error ? error : posix_spawn(child, module, &files, &how, words, environ);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

/* Waits for weft-ctf, and reports a failure with the first line of its messages. */
static int wait_for_module(pid_t child, int stderr_fd, struct weft_error *err)
{
	char line[160];
	int end = 0;
	while (waitpid(child, &end, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(end) && WEXITSTATUS(end) == 0)
		return WEFT_OK;
	const ssize_t size = pread(stderr_fd, line, sizeof line - 1, 0);
	line[size < 0 ? 0 : size] = 0;
	line[strcspn(line, "\n")] = 0;
	if (WIFSIGNALED(end))
		return weft_error_set(
		    err, WEFT_EFORMAT, "libbabeltrace2 crashed while it read this trace (signal %d)", WTERMSIG(end));
	return weft_error_set(err, WEFT_EFORMAT, "%s", line[0] ? line : MODULE " failed without an error message");
}

static int read_foreign(struct weft_trace **out, const char *module, const char *path, struct weft_error *err)
{
	struct weft_trace *trace = NULL;
	int ends[2] = {-1, -1}, stderr_fd = memfd_create(MODULE, MFD_CLOEXEC), error = 0;
	pid_t child = -1;
	if (stderr_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		error = errno;
	else
		error = start_module(&child, module, path, ends[1], stderr_fd);
	if (ends[1] >= 0)
		close(ends[1]);
	int status = error ? weft_error_set(err, WEFT_EIO, "%s cannot start: %s", module, strerror(error)) : WEFT_OK;
	if (status == WEFT_OK) {
		struct weft_error own;
		const int opened = weft_trace_open_fd(&trace, ends[0], path, &own);
		close(ends[0]); /* weft-ctf gets SIGPIPE if it writes more than is needed */
		ends[0] = -1;
		status = wait_for_module(child, stderr_fd, err);
		/* The output is checked even if weft-ctf reports success. */
		if (opened < 0 && (status == WEFT_OK || opened != WEFT_EFORMAT)) {
			status = opened;
			if (err)
				*err = own;
		}
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (stderr_fd >= 0)
		close(stderr_fd);
	if (status < 0)
		weft_trace_close(trace);
	else
		*out = trace;
	return status;
}

int foreign_trace_open(struct weft_trace **out, const char *path, struct weft_error *err)
{
	char module[PATH_MAX];
	ctf_folders found = {0};
	int status;
	if (!ctf_find_folders(&found, path) || found.count == 0)
		status = WEFT_EFORMAT;
	else if (!foreign_find_installed(module, MODULE))
		status =
		    weft_error_set(err, WEFT_ENOTSUP, "CTF of another tracer; install " MODULE " (package weft-ctf) to read it");
	else
		status = read_foreign(out, module, path, err);
	if (status < 0 && found.count > 0)
		weft_error_set_file(err, path);
	ctf_folders_free(&found);
	return status;
}
