/* find.c: see find.h.  SPDX-License-Identifier: ISC */
#include "ctf/find.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LTTng's deepest is SESSION/ust/uid/0/64-bit, with the host before it where it was streamed. */
enum { DEPTH = 8, FOLDERS = 1000, HEAD = 4096 };

/* Metadata as text, as text in packets, and of CTF 2. */
static bool is_ctf(const unsigned char *head, size_t size)
{
	static const char text[] = "/* CTF 1", ours[] = "tracer_name = \"weft\"";
	static const unsigned char little[] = {0x57, 0x1d, 0xd1, 0x75}, big[] = {0x75, 0xd1, 0x1d, 0x57}, json[] = {0x1e, '{'};
	const bool is_any = (size >= sizeof text - 1 && !memcmp(head, text, sizeof text - 1)) ||
			    (size >= sizeof little && (!memcmp(head, little, sizeof little) || !memcmp(head, big, sizeof big))) ||
			    (size >= sizeof json && !memcmp(head, json, sizeof json));
	return is_any && !memmem(head, size, ours, sizeof ours - 1);
}

static bool has_ctf(const char *folder)
{
	char name[PATH_MAX + 16];
	unsigned char head[HEAD];
	snprintf(name, sizeof name, "%s/metadata", folder);
	const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	const ssize_t size = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, head, sizeof head) : 0;
	if (fd >= 0)
		close(fd);
	return size > 0 && is_ctf(head, (size_t)size);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool add(ctf_folders *list, const char *path)
{
	char *copy = strdup(path), **slot = copy ? weft_vec_push(list) : NULL;
	if (slot)
		*slot = copy;
	else
		free(copy);
	return slot != NULL;
}

/* The folders that are in one of those that were found to be looked at. */
static bool look_into(ctf_folders *next, const char *folder)
{
	DIR *dir = opendir(folder);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && next->count < FOLDERS && (entry = readdir(dir));) {
		char name[PATH_MAX];
		const int length = snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.' && length < PATH_MAX && is_folder(name))
			whole = add(next, name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

bool ctf_find(ctf_folders *found, const char *path)
{
	ctf_folders now = {0};
	struct stat st;
	bool whole = stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || add(&now, path);
	for (int depth = 0; whole && now.count && depth < DEPTH; depth++) {
		ctf_folders next = {0};
		for (size_t i = 0; i < now.count && whole; i++)
			whole = has_ctf(now.items[i]) ? add(found, now.items[i]) : look_into(&next, now.items[i]);
		ctf_folders_free(&now);
		now = next;
	}
	ctf_folders_free(&now);
	return whole;
}

void ctf_folders_free(ctf_folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->items[i]);
	weft_vec_free(folders);
}
