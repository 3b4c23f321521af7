/* named.h: opens files and folders whose names come from a trace, a session or another process.
 *
 * Another user may own them, and may replace them at any moment.  So a name is looked up below
 * an open folder, no symbolic link is followed, a FIFO or device is not waited for, and what was opened is examined, not its
 * name. tools/check-opens keeps other openings of names out of src/ and apps/.
 *
 * The functions keep nothing and take no lock; any thread may call them.  Each costs a few system calls.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_NAMED_H
#define WEFT_BASE_NAMED_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The owner does not matter: weft only shows the content to its user, who may read the file. */
#define WEFT_ANY_OWNER ((uid_t)-1)

struct weft_named_rule {
	uid_t owner;        /* expected owner, or WEFT_ANY_OWNER */
	uint64_t max_bytes; /* size limit; 0: any size */
	bool is_changed;    /* open for reading and writing; a file with a second name is refused, since that may be anywhere */
};

/* Opens a regular file in a folder.  `st` may be NULL; otherwise it gets the file's state.  Returns the descriptor, which the
 * caller closes, or -1 with errno: ELOOP (a symbolic link), EINVAL (no regular file), EPERM (another owner, or a second name),
 * EFBIG (too large), or that of open(). */
int weft_named_file(int folder, const char *name, const struct weft_named_rule *rule, struct stat *st);

/* Creates a file in a folder for reading and writing, which only `owner` may open then.  Returns the descriptor, or -1 with
 * errno: EEXIST, EPERM (the owner cannot be changed; the file does not stay), or that of open(). */
int weft_named_create(int folder, const char *name, uid_t owner, gid_t group);

/* Opens a folder in a folder, for reading.  `owner` as above.  Returns the descriptor, or -1 with errno: ELOOP or ENOTDIR (no
 * folder), EPERM, or that of open(). */
int weft_named_folder(int folder, const char *name, uid_t owner);

/* Opens the folder to which a link in a folder leads, if weft's own user made the link.  Returns the descriptor, or -1
 * with errno: EPERM (another user's link), or that of open(). */
int weft_own_link(int folder, const char *name);

/* Opens the folder that a user named; symbolic links are followed.  Returns the descriptor, or -1 with errno of open(). */
int weft_users_folder(const char *path);

/* Opens the folder `path`, which is `root` or below it.  Links are followed in `root`, which a user named, and nowhere behind it.
 * Returns the descriptor, or -1 with errno: EINVAL (not below root), or as weft_named_folder(). */
int weft_named_below(const char *root, const char *path);

/* Opens the folder that contains `path`, which is below `root`; *name is set to the last part of path.  Returns as above. */
int weft_named_parent(const char *root, const char *path, const char **name);

/* Returns whether a folder has a regular file of this name. */
bool weft_named_exists(int folder, const char *name);

/* Lists an open folder with a descriptor of its own; `folder` stays open.  Returns NULL with errno on failure. */
DIR *weft_named_list(int folder);

/* Reads up to size - 1 bytes of a regular file in a folder as a string.  Returns the number of bytes, or -1. */
long weft_named_text(int folder, const char *name, char *out, unsigned long size);

#endif
