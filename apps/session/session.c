/* session.c: see session.h.  SPDX-License-Identifier: ISC */
#include "session/session.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Last what OCaml has written: the first is the one on whose clock the others are put, and this clock is known to some us alone.
 */
static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	const int order = WEFT_ORDER(session_is_ocaml_file(x), session_is_ocaml_file(y));
	return order ? order : strcmp(x, y);
}

bool session_is_trace(const char *path)
{
	char metadata[PATH_MAX + 16];
	snprintf(metadata, sizeof metadata, "%s/metadata", path);
	return access(metadata, F_OK) == 0;
}

/* The name is the list's, or freed; false: no memory. */
static bool put(session_paths *list, char *name)
{
	char **slot = weft_vec_push(list);
	if (slot)
		*slot = name;
	else
		free(name);
	return slot != NULL;
}

/* The files of OCaml's runtime in a folder of theirs; false: no memory. */
static bool read_events(struct session *s, const char *path)
{
	DIR *dir = opendir(path);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		if (!session_is_ocaml_file(entry->d_name) || asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		whole = put(&s->traces, name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

/* What is in the directory, or in that of a user in it; false: no memory. */
static bool read_folder(struct session *s, const char *path, bool is_users)
{
	static const char failed[] = ".failed";
	DIR *dir = opendir(path);
	bool whole = true;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		size_t length = strlen(entry->d_name);
		if (entry->d_name[0] == '.' || asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		bool is_word = length > sizeof failed && !strcmp(entry->d_name + length - (sizeof failed - 1), failed);
		bool is_user = !is_users && !strncmp(entry->d_name, SESSION_USER_FOLDER, strlen(SESSION_USER_FOLDER));
		session_paths *list = is_word ? &s->words : session_is_trace(name) ? &s->traces : is_user ? &s->users : NULL;
		whole = !session_is_ocaml_folder(entry->d_name) || read_events(s, name);
		if (list)
			whole &= put(list, name);
		else
			free(name);
	}
	if (dir)
		closedir(dir);
	return whole;
}

bool session_read(struct session *s, const char *path)
{
	*s = (struct session){.path = path};
	bool whole = session_is_trace(path) || read_folder(s, path, false);
	for (size_t i = 0; i < s->users.count && whole; i++)
		whole = read_folder(s, s->users.items[i], true);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, by_name);
	return whole;
}

enum { FRONT_BYTES = 1 << 14 };

/* The front of a trace's metadata, as a text. */
static void read_front(char front[FRONT_BYTES], const char *trace)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/metadata", trace);
	FILE *file = fopen(path, "re");
	front[file ? fread(front, 1, FRONT_BYTES - 1, file) : 0] = 0;
	if (file)
		fclose(file);
}

/* Not that of another tracer, below whose directory others may stand that belong to it. */
static bool is_own(const char *trace)
{
	char front[FRONT_BYTES];
	if (session_is_ocaml_file(trace))
		return true;
	read_front(front, trace);
	return strstr(front, "tracer_name = \"weft\"") != NULL;
}

/* The traces of a session in this folder; false: no memory. */
static bool read_inner(struct session *s, const char *path)
{
	struct session inner;
	bool whole = session_read(&inner, path);
	for (size_t i = 0; i < inner.traces.count; i++) {
		char *trace = inner.traces.items[i];
		inner.traces.items[i] = NULL;
		if (whole && is_own(trace))
			whole = put(&s->traces, trace);
		else
			free(trace);
	}
	session_free(&inner);
	return whole;
}

bool session_read_all(struct session *s, const char *path)
{
	bool whole = session_read(s, path);
	DIR *dir = whole && !session_is_trace(path) ? opendir(path) : NULL;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		const bool is_read = !strncmp(entry->d_name, SESSION_USER_FOLDER, strlen(SESSION_USER_FOLDER));
		char *name;
		if (entry->d_name[0] == '.' || entry->d_type == DT_REG || is_read ||
		    asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		whole = read_inner(s, name);
		free(name);
	}
	if (dir)
		closedir(dir);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, by_name);
	return whole;
}

/* ---- Copies ---- */

enum { UUID_BYTES = 36 };

struct identity {
	char uuid[UUID_BYTES + 1]; /* empty: not known */
	bool has_process;          /* its name ends in that of its process, as a recorder calls it, and a copy need not */
	uint64_t bytes;            /* of its streams: a copy of the end, or of before, has less */
	size_t index;
};

static uint64_t bytes_in(const char *trace)
{
	DIR *dir = opendir(trace);
	uint64_t bytes = 0;
	struct stat st;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (!strncmp(entry->d_name, "stream-", 7) && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			bytes += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}

static struct identity identity_of(const char *trace, size_t index)
{
	/* No text in the metadata has a line break. */
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
	id.bytes = bytes_in(trace);
	return id;
}

/* The one that stays is the first. */
static int by_identity(const void *a, const void *b)
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
		ids[i] = identity_of(traces->items[i], i);
	if (ids)
		weft_sort(ids, traces->count, sizeof *ids, by_identity);
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
	session_paths_free(&s->words);
	session_paths_free(&s->users);
}

bool session_expand(session_paths *out, char *const *operands, int count, size_t *copies)
{
	bool whole = true;
	size_t left_out = 0;
	for (int i = 0; i < count && whole; i++) {
		struct session s;
		whole = session_read_all(&s, operands[i]) && weft_vec_reserve(out, s.traces.count + 1);
		left_out += session_drop_copies(&s.traces);
		for (size_t j = 0; whole && j < s.traces.count; j++)
			out->items[out->count++] = s.traces.items[j];
		char *own = whole && s.traces.count == 0 ? strdup(operands[i]) : NULL;
		if (own)
			out->items[out->count++] = own;
		whole &= own || s.traces.count > 0;
		s.traces.count = whole ? 0 : s.traces.count; /* they are in `out` now */
		session_free(&s);
	}
	if (copies)
		*copies = left_out;
	return whole;
}
