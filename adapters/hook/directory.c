/* directory.c: names and makes the directories for the traces of this process.
 *
 * A process makes DIR/NAME-PID.  If the directory exists, because another program ran in the same process before, this file
 * makes DIR/NAME-PID.2.  In a session of root, a process of another user makes its trace in DIR/uid-USER/NAME-PID
 * (user_change.c).  SPDX-License-Identifier: ISC */
#include "adapters/hook/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program_name.h"

enum { MAX_TRACES_PER_PROCESS = 10000 };

char weft__hook_directory[PATH_MAX];

/* Reads the program's name, and replaces characters that have a special meaning in names of traces. */
static void get_program_name(char name[16])
{
	name[0] = 0;
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, name, 15);
	if (fd >= 0)
		close(fd);
	name[n < 0 ? 0 : n] = 0;
	name[strcspn(name, "\n")] = 0;
	weft_program_name(name, 16, (const char *)getauxval(AT_EXECFN));
	for (char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || strchr("/,%", *c) || *c == 0x7f)
			*c = '_';
	if (!name[0] || name[0] == '.')
		memcpy(name, "program", 8);
}

/* Makes a directory, and before it `folder` if that folder is missing.  Returns 0 or an error number. */
static int make_directory_at(const char *path, const char *folder)
{
	/* Another `weft record` may remove the folder at its end if the folder is empty, so the creation is tried again. */
	for (int tries = 0; mkdir(path, 0700); tries++) {
		if (errno != ENOENT || tries == 4)
			return errno;
		if (mkdir(folder, 0700) && errno != EEXIST)
			return errno;
	}
	return 0;
}

bool weft__hook_user_folder(char path[PATH_MAX], uid_t user)
{
	return snprintf(path, PATH_MAX, "%s/uid-%lu", weft__hook_directory, (unsigned long)user) < PATH_MAX;
}

/* Makes a directory that no other run of a program uses.  Returns 0 or an error number. */
static int make_unique_directory(const char *folder, const char *what, char path[PATH_MAX])
{
	char name[16];
	get_program_name(name);
	for (int i = 1; i < MAX_TRACES_PER_PROCESS; i++) {
		char again[16] = "";
		if (i > 1)
			snprintf(again, sizeof again, ".%d", i);
		int n = snprintf(path, PATH_MAX, "%s/%s-%ld%s%s", folder, name, (long)getpid(), what, again);
		int status = n < PATH_MAX ? make_directory_at(path, folder) : ENAMETOOLONG;
		if (status != EEXIST)
			return status;
	}
	return EEXIST;
}

bool weft__hook_make_trace_directory(char path[PATH_MAX])
{
	char users[PATH_MAX];
	int status = make_unique_directory(weft__hook_directory, "", path);
	if (status == EACCES && weft__hook_user_folder(users, geteuid()))
		status = make_unique_directory(users, "", path);
	return status == 0;
}

bool weft__hook_make_folder(char path[PATH_MAX], const char *what)
{
	return weft__hook_gate && !weft__hook_is_standby && make_unique_directory(weft__hook_directory, what, path) == 0;
}

/* The lines are written to a file, which `weft record` prints, because this library prints nothing in a recorded program. */
void weft__hook_write_trace_failure(const char *path, const char *reason)
{
	char file[PATH_MAX + 16];
	snprintf(file, sizeof file, "%s.failed", path);
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", reason);
	close(fd);
}

void weft__hook_write_once(const char *name, const char *line, size_t bytes)
{
	char file[PATH_MAX + 16];
	snprintf(file, sizeof file, "%s/%s.failed", weft__hook_directory, name);
	const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	(void)!pwrite(fd, line, bytes, 0);
	close(fd);
}

void weft__hook_write_failure(const char *reason)
{
	char name[16], path[PATH_MAX];
	get_program_name(name);
	if (snprintf(path, sizeof path, "%s/%s-%ld", weft__hook_directory, name, (long)getpid()) < (int)sizeof path)
		weft__hook_write_trace_failure(path, reason);
}
