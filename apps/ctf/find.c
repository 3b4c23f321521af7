/* find.c: implements find.h.  SPDX-License-Identifier: ISC */
#include "ctf/find.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named.h"

/* LTTng's deepest path is SESSION/ust/uid/0/64-bit, in the host's folder if the trace was streamed. */
enum { MAX_DEPTH = 8, MAX_FOLDERS = 1000, HEAD_BYTES = 4096 };

/* The metadata file may be text, text in packets, or CTF 2. */
static bool is_ctf(const unsigned char *head, size_t size)
{
	static const char text[] = "/* CTF 1", ours[] = "tracer_name = \"weft\"";
	static const unsigned char little[] = {0x57, 0x1d, 0xd1, 0x75}, big[] = {0x75, 0xd1, 0x1d, 0x57}, json[] = {0x1e, '{'};
	const bool is_any = (size >= sizeof text - 1 && !memcmp(head, text, sizeof text - 1)) ||
			    (size >= sizeof little && (!memcmp(head, little, sizeof little) || !memcmp(head, big, sizeof big))) ||
			    (size >= sizeof json && !memcmp(head, json, sizeof json));
	return is_any && !memmem(head, size, ours, sizeof ours - 1);
}

static bool has_ctf(const char *path)
{
	char head[HEAD_BYTES + 1];
	const int folder = weft_users_folder(path);
	const long size = folder < 0 ? -1 : weft_named_text(folder, "metadata", head, sizeof head);
	if (folder >= 0)
		close(folder);
	return size > 0 && is_ctf((const unsigned char *)head, (size_t)size);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool add_folder(ctf_folders *list, const char *path)
{
	char *copy = strdup(path), **slot = copy ? weft_vec_push(list) : NULL;
	if (slot)
		*slot = copy;
	else
		free(copy);
	return slot != NULL;
}

/* Adds the subfolders of a folder to the list. */
static bool list_subfolders(ctf_folders *next, const char *folder)
{
	DIR *dir = opendir(folder);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && next->count < MAX_FOLDERS && (entry = readdir(dir));) {
		char name[PATH_MAX];
		const int length = snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.' && length < PATH_MAX && is_folder(name))
			whole = add_folder(next, name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

bool ctf_find_folders(ctf_folders *found, const char *path)
{
	ctf_folders now = {0};
	struct stat st;
	bool whole = stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || add_folder(&now, path);
	for (int depth = 0; whole && now.count && depth < MAX_DEPTH; depth++) {
		ctf_folders next = {0};
		for (size_t i = 0; i < now.count && whole; i++)
			whole = has_ctf(now.items[i]) ? add_folder(found, now.items[i]) : list_subfolders(&next, now.items[i]);
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
