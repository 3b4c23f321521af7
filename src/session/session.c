/* session.c: implements session.h.  SPDX-License-Identifier: ISC */
#include "session/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named.h"
#include "base/sort.h"

static const char folder_mark[] = SESSION_OCAML_FOLDER, file_mark[] = ".events";

bool session_is_ocaml_folder(const char *name)
{
	const char *mark = strstr(name, folder_mark), *behind = mark ? mark + sizeof folder_mark - 1 : NULL;
	return behind && (!*behind || (*behind == '.' && strspn(behind + 1, "0123456789") == strlen(behind + 1)));
}

bool session_is_ocaml_file(const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	const size_t digits = strspn(base, "0123456789");
	return digits > 0 && strcmp(base + digits, file_mark) == 0;
}

/* OCaml's files are sorted last, because the first trace is the reference clock, and OCaml's clock is known only to a few us.
 */
static int compare_paths(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	const int order = WEFT_ORDER(session_is_ocaml_file(x), session_is_ocaml_file(y));
	return order ? order : strcmp(x, y);
}

static bool is_trace(int folder)
{
	return weft_named_exists(folder, "metadata");
}

bool session_is_trace(const char *path)
{
	const int folder = weft_users_folder(path);
	const bool is = folder >= 0 && is_trace(folder);
	if (folder >= 0)
		close(folder);
	return is;
}

/* Adds a name to the list, and takes over its memory.  Returns false without memory. */
static bool append_path(session_paths *list, char *name)
{
	char **slot = weft_vec_push(list);
	if (slot)
		*slot = name;
	else
		free(name);
	return slot != NULL;
}

/* Adds the event files of OCaml's runtime that are in a folder.  Returns false without memory. */
static bool read_ocaml_folder(struct session *s, int folder, const char *path)
{
	DIR *dir = weft_named_list(folder);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		if (!session_is_ocaml_file(entry->d_name) || !weft_named_exists(folder, entry->d_name) ||
		    asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		whole = append_path(&s->traces, name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

static bool has_user_name(const char *name)
{
	return !strncmp(name, SESSION_USER_FOLDER, strlen(SESSION_USER_FOLDER));
}

/* Opens an entry as a folder: a real folder, or the target of a link that this user made; links in another user's folder are not
 * followed. */
static int open_entry(int folder, const struct dirent *entry, bool is_users)
{
	if (entry->d_type == DT_REG)
		return -1;
	const int fd = weft_named_folder(folder, entry->d_name, WEFT_ANY_OWNER);
	return fd < 0 && !is_users && !has_user_name(entry->d_name) ? weft_own_link(folder, entry->d_name) : fd;
}

/* Returns whether a folder belongs to the user in its name, or to the owner of the directory, who makes the folder if he cannot
 * change its owner.
 */
static bool is_user_folder(const char *name, int fd, int parent)
{
	struct stat st, of_parent;
	if (!has_user_name(name) || fstat(fd, &st) || fstat(parent, &of_parent))
		return false;
	const unsigned long user = strtoul(name + strlen(SESSION_USER_FOLDER), NULL, 10);
	return st.st_uid == user || st.st_uid == of_parent.st_uid || st.st_uid == geteuid();
}

/* Adds an entry of the session's directory, or of a user's folder in it; takes over the entry's name.  Returns false without
 * memory. */
static bool read_entry(struct session *s, int folder, const struct dirent *entry, char *name, bool is_users)
{
	static const char failed[] = ".failed";
	const size_t length = strlen(entry->d_name);
	const bool is_failure = length > sizeof failed && !strcmp(entry->d_name + length - (sizeof failed - 1), failed);
	const int fd = is_failure ? -1 : open_entry(folder, entry, is_users);
	session_paths *list = is_failure && weft_named_exists(folder, entry->d_name)              ? &s->failures
			      : fd >= 0 && is_trace(fd)                                           ? &s->traces
			      : fd >= 0 && !is_users && is_user_folder(entry->d_name, fd, folder) ? &s->user_folders
												  : NULL;
	bool whole = fd < 0 || !session_is_ocaml_folder(entry->d_name) || read_ocaml_folder(s, fd, name);
	if (fd >= 0)
		close(fd);
	if (list)
		whole &= append_path(list, name);
	else
		free(name);
	return whole;
}

/* Adds the entries of the session's directory, or of a user's folder in it.  Returns false without memory. */
static bool read_folder(struct session *s, int folder, const char *path, bool is_users)
{
	DIR *dir = weft_named_list(folder);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		if (entry->d_name[0] != '.' && asprintf(&name, "%s/%s", path, entry->d_name) >= 0)
			whole = read_entry(s, folder, entry, name, is_users);
	}
	if (dir)
		closedir(dir);
	return whole;
}

/* Reads the folder of another user in the session's directory. */
static bool read_user_folder(struct session *s, const char *path)
{
	const int folder = weft_named_below(s->path, path);
	const bool whole = folder < 0 || read_folder(s, folder, path, true);
	if (folder >= 0)
		close(folder);
	return whole;
}

bool session_read(struct session *s, const char *path)
{
	*s = (struct session){.path = path};
	const int folder = weft_users_folder(path);
	bool whole = folder < 0 || is_trace(folder) || read_folder(s, folder, path, false);
	if (folder >= 0)
		close(folder);
	for (size_t i = 0; i < s->user_folders.count && whole; i++)
		whole = read_user_folder(s, s->user_folders.items[i]);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, compare_paths);
	return whole;
}

enum { FRONT_BYTES = 1 << 14 };

/* Reads the start of a trace's metadata as text. */
static void read_front(char front[FRONT_BYTES], const char *trace)
{
	const int folder = weft_users_folder(trace);
	front[0] = 0;
	if (folder < 0)
		return;
	(void)weft_named_text(folder, "metadata", front, FRONT_BYTES);
	close(folder);
}

/* Returns whether a directory is a trace of weft; a trace of another tracer may have more traces below its directory. */
static bool is_weft_trace(const char *trace)
{
	char front[FRONT_BYTES];
	if (session_is_ocaml_file(trace))
		return true;
	read_front(front, trace);
	return strstr(front, "tracer_name = \"weft\"") != NULL;
}

/* Adds the traces of a session that is in a folder of this session.  Returns false without memory. */
static bool read_subsession(struct session *s, const char *path)
{
	struct session inner;
	bool whole = session_read(&inner, path);
	for (size_t i = 0; i < inner.traces.count; i++) {
		char *trace = inner.traces.items[i];
		inner.traces.items[i] = NULL;
		if (whole && is_weft_trace(trace))
			whole = append_path(&s->traces, trace);
		else
			free(trace);
	}
	session_free(&inner);
	return whole;
}

bool session_read_all(struct session *s, const char *path)
{
	bool whole = session_read(s, path);
	const int folder = whole ? weft_users_folder(path) : -1;
	DIR *dir = folder >= 0 && !is_trace(folder) ? weft_named_list(folder) : NULL;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		const bool is_read = has_user_name(entry->d_name);
		const int fd = entry->d_name[0] == '.' || is_read ? -1 : open_entry(folder, entry, false);
		char *name;
		if (fd >= 0 && asprintf(&name, "%s/%s", path, entry->d_name) >= 0) {
			whole = read_subsession(s, name);
			free(name);
		}
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
	if (folder >= 0)
		close(folder);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, compare_paths);
	return whole;
}

/* ---- Copies ---- */

enum { UUID_BYTES = 36 };

struct identity {
	char uuid[UUID_BYTES + 1]; /* empty: unknown */
	/* Whether the trace's name ends in the process id, as recorders name traces; names of copies may not. */
	bool has_process;
	uint64_t bytes; /* number of bytes in the trace's streams; a copy of a part has fewer */
	size_t index;
};

static uint64_t count_stream_bytes(const char *trace)
{
	const int folder = weft_users_folder(trace);
	DIR *dir = folder < 0 ? NULL : weft_named_list(folder);
	uint64_t bytes = 0;
	struct stat st;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (!strncmp(entry->d_name, "stream-", 7) && fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	if (folder >= 0)
		close(folder);
	return bytes;
}

static struct identity read_identity(const char *trace, size_t index)
{
	/* The two marks occur only before the UUID and the process id, because texts in the metadata contain no line breaks. */
	static const char uuid_mark[] = "\n\tuuid = \"", process_mark[] = "\n\tvpid = ";
	struct identity id = {.index = index};
	char front[FRONT_BYTES];
	if (session_is_ocaml_file(trace))
		return id;
	read_front(front, trace);
	const char *uuid = strstr(front, uuid_mark), *process = strstr(front, process_mark), *dash = strrchr(trace, '-');
	if (!uuid || strlen(uuid) < sizeof uuid_mark + UUID_BYTES)
		return id;
	memcpy(id.uuid, uuid + sizeof uuid_mark - 1, UUID_BYTES);
	const char *number = process ? process + sizeof process_mark - 1 : "";
	const size_t digits = strspn(number, "0123456789");
	id.has_process = dash && digits > 0 && strlen(dash + 1) == digits && !memcmp(dash + 1, number, digits);
	id.bytes = count_stream_bytes(trace);
	return id;
}

/* The first one stays. */
static int compare_identities(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	const int order = strcmp(x->uuid, y->uuid);
	return order                              ? order
	       : x->has_process != y->has_process ? WEFT_ORDER(y->has_process, x->has_process)
	       : x->bytes != y->bytes             ? WEFT_ORDER(y->bytes, x->bytes)
						  : WEFT_ORDER(x->index, y->index);
}

size_t session_drop_copies(session_paths *traces)
{
	struct identity *ids = traces->count > 1 ? calloc(traces->count, sizeof *ids) : NULL;
	size_t count = 0;
	for (size_t i = 0; ids && i < traces->count; i++)
		ids[i] = read_identity(traces->items[i], i);
	if (ids)
		weft_sort(ids, traces->count, sizeof *ids, compare_identities);
	for (size_t i = 1; ids && i < traces->count; i++) {
		if (!*ids[i].uuid || strcmp(ids[i].uuid, ids[i - 1].uuid) != 0)
			continue;
		free(traces->items[ids[i].index]);
		traces->items[ids[i].index] = NULL;
	}
	for (size_t i = 0; ids && i < traces->count; i++)
		if (traces->items[i])
			traces->items[count++] = traces->items[i];
	const size_t left_out = ids ? traces->count - count : 0;
	traces->count -= left_out;
	free(ids);
	return left_out;
}

void session_paths_free(session_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
	weft_vec_free(paths);
}

void session_free(struct session *s)
{
	session_paths_free(&s->traces);
	session_paths_free(&s->failures);
	session_paths_free(&s->user_folders);
}
