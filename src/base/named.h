/* named.h: opens files and folders whose names come from a trace, a session or another process.
 *
 * Another user may own these files, and may replace them at any moment.  Therefore a name is looked up below an open folder,
 * symbolic links are not followed, FIFOs and devices are not waited for, and the opened file is checked instead of its name.
 * tools/check-opens allows no other way to open names in src/ and apps/.
 *
 * The functions store nothing and take no lock, so any thread may call them.  Each function makes a few system calls.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_NAMED_H
#define WEFT_BASE_NAMED_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Any owner is allowed: weft only shows the content to its user, who may read the file. */
#define WEFT_ANY_OWNER ((uid_t)-1)

struct weft_named_rule {
	uid_t owner;        /* expected owner, or WEFT_ANY_OWNER */
	uint64_t max_bytes; /* largest allowed size of the file; 0 for any size */
	/* true to open the file for reading and writing; a file with a second name is then refused, because that name may be
	 * anywhere */
	bool is_changed;
};

/* Opens a regular file in a folder.  `st` may be NULL; otherwise it receives the result of fstat().  Returns a file descriptor,
 * which the caller closes, or -1 with errno: ELOOP (a symbolic link), EINVAL (no regular file), EPERM (another owner, or a
 * second name), EFBIG (too large), or an error of open(). */
int weft_named_file(int folder, const char *name, const struct weft_named_rule *rule, struct stat *st);

/* Creates a file in a folder for reading and writing, which only `owner` may open afterwards.  Returns a file descriptor, or -1
 * with errno: EEXIST, EPERM (the owner cannot be changed; then the file is removed), or an error of open(). */
int weft_named_create(int folder, const char *name, uid_t owner, gid_t group);

/* Opens a subfolder of a folder for reading.  `owner` is the expected owner, or WEFT_ANY_OWNER.  Returns a file descriptor, or -1
 * with errno: ELOOP or ENOTDIR (no folder), EPERM, or an error of open(). */
int weft_named_folder(int folder, const char *name, uid_t owner);

/* Opens the folder to which a symbolic link in a folder leads, if weft's own user made the link.  Returns a file descriptor, or
 * -1 with errno: EPERM (the link of another user), or an error of open(). */
int weft_own_link(int folder, const char *name);

/* Opens a folder that the user named; symbolic links are followed.  Returns a file descriptor, or -1 with the errno of
 * open(). */
int weft_users_folder(const char *path);

/* Opens the folder `path`, which must be `root` or below `root`.  Symbolic links are followed in `root`, which the user named,
 * and nowhere below it.  Returns a file descriptor, or -1 with errno: EINVAL (`path` is not below `root`), or an error of
 * weft_named_folder(). */
int weft_named_below(const char *root, const char *path);

/* Opens the folder that contains `path`, which must be below `root`; sets *name to the last part of the path.  Returns as
 * above. */
int weft_named_parent(const char *root, const char *path, const char **name);

/* Returns whether a folder has a regular file with the given name. */
bool weft_named_exists(int folder, const char *name);

/* Lists an open folder with a new file descriptor; `folder` stays open.  Returns NULL with errno on failure. */
DIR *weft_named_list(int folder);

/* Reads up to size - 1 bytes of a regular file in a folder as a string.  Returns the number of bytes read, or -1. */
long weft_named_text(int folder, const char *name, char *out, unsigned long size);

#endif
