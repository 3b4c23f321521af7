/* named.c: implements named.h.  SPDX-License-Identifier: ISC */
#include "base/named.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Some systems do not have O_NOCTTY. */
#ifdef O_NOCTTY
#define QUIETLY (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#else
#define QUIETLY (O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#endif

/* A web page has no users. */
static uid_t get_user(void)
{
#ifdef __wasi__
	return 0;
#else
	return geteuid();
#endif
}

/* Closes a file descriptor and sets errno; returns -1. */
static int refuse(int fd, int error)
{
	close(fd);
	errno = error;
	return -1;
}

static bool is_owner(const struct stat *st, uid_t owner)
{
	return owner == WEFT_ANY_OWNER || st->st_uid == owner;
}

int weft_named_file(int folder, const char *name, const struct weft_named_rule *rule, struct stat *st)
{
	struct stat own;
	const int fd = openat(folder, name, (rule->is_changed ? O_RDWR : O_RDONLY) | QUIETLY);
	st = st ? st : &own;
	if (fd < 0)
		return -1;
	if (fstat(fd, st))
		return refuse(fd, errno);
	if (!S_ISREG(st->st_mode))
		return refuse(fd, EINVAL);
	if (!is_owner(st, rule->owner) || (rule->is_changed && st->st_nlink > 1))
		return refuse(fd, EPERM);
	return rule->max_bytes && (uint64_t)st->st_size > rule->max_bytes ? refuse(fd, EFBIG) : fd;
}

#ifndef __wasm__ /* it has no users */
int weft_named_create(int folder, const char *name, uid_t owner, gid_t group)
{
	const int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || owner == geteuid() || fchown(fd, owner, group) == 0)
		return fd;
	const int error = errno;
	unlinkat(folder, name, 0);
	close(fd);
	errno = error;
	return -1;
}
#endif

int weft_named_folder(int folder, const char *name, uid_t owner)
{
	struct stat st;
	const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | QUIETLY);
	if (fd < 0 || owner == WEFT_ANY_OWNER)
		return fd;
	if (fstat(fd, &st))
		return refuse(fd, errno);
	return is_owner(&st, owner) ? fd : refuse(fd, EPERM);
}

int weft_own_link(int folder, const char *name)
{
	struct stat st;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (!S_ISLNK(st.st_mode) || st.st_uid != get_user()) {
		errno = EPERM;
		return -1;
	}
	return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
}

int weft_users_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the folders of `path` up to `end`, one after the other. */
static int walk(const char *root, const char *path, const char *end)
{
	const size_t length = strlen(root);
	char name[NAME_MAX + 1];
	if (strncmp(root, path, length) != 0 || (path[length] && path[length] != '/' && (!length || root[length - 1] != '/'))) {
		errno = EINVAL;
		return -1;
	}
	int fd = weft_users_folder(root);
	for (const char *at = path + length; fd >= 0 && at < end;) {
		at += strspn(at, "/");
		const size_t bytes = strcspn(at, "/");
		if (at >= end || !bytes)
			break;
		if (bytes > NAME_MAX || (bytes == 2 && !strncmp(at, "..", 2)))
			return refuse(fd, EINVAL);
		memcpy(name, at, bytes);
		name[bytes] = 0;
		const int next = weft_named_folder(fd, name, WEFT_ANY_OWNER), error = errno;
		close(fd);
		errno = error;
		fd = next;
		at += bytes;
	}
	return fd;
}

int weft_named_below(const char *root, const char *path)
{
	return walk(root, path, path + strlen(path));
}

int weft_named_parent(const char *root, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	if (!slash || !*root || slash < path + strlen(root) - (root[strlen(root) - 1] == '/')) {
		errno = EINVAL;
		return -1;
	}
	*name = slash + 1;
	return walk(root, path, slash);
}

bool weft_named_exists(int folder, const char *name)
{
	struct stat st;
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

DIR *weft_named_list(int folder)
{
	const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | QUIETLY);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	if (own >= 0 && !dir)
		(void)refuse(own, errno);
	return dir;
}

long weft_named_text(int folder, const char *name, char *out, unsigned long size)
{
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const int fd = weft_named_file(folder, name, &rule, NULL);
	const ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (fd >= 0)
		close(fd);
	out[n < 0 ? 0 : n] = 0;
	return (long)n;
}
