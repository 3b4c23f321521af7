/* session.c: see session.h.  SPDX-License-Identifier: ISC */
#include "session/session.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Not that of another tracer, below whose directory others may stand that belong to it. */
static bool is_own(const char *trace)
{
	char path[PATH_MAX + 16], begin[256] = "";
	if (session_is_ocaml_file(trace))
		return true;
	snprintf(path, sizeof path, "%s/metadata", trace);
	FILE *file = fopen(path, "re");
	const size_t n = file ? fread(begin, 1, sizeof begin - 1, file) : 0;
	if (file)
		fclose(file);
	begin[n] = 0;
	return strstr(begin, "tracer_name = \"weft\"") != NULL;
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
	DIR *dir = whole && s->traces.count == 0 && !session_is_trace(path) ? opendir(path) : NULL;
	for (const struct dirent *entry; whole && dir && (entry = readdir(dir));) {
		char *name;
		if (entry->d_name[0] == '.' || entry->d_type == DT_REG || asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			continue;
		whole = read_inner(s, name);
		free(name);
	}
	if (dir)
		closedir(dir);
	weft_sort(s->traces.items, s->traces.count, sizeof *s->traces.items, by_name);
	return whole;
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

bool session_expand(session_paths *out, char *const *operands, int count)
{
	bool whole = true;
	for (int i = 0; i < count && whole; i++) {
		struct session s;
		whole = session_read_all(&s, operands[i]) && weft_vec_reserve(out, s.traces.count + 1);
		for (size_t j = 0; whole && j < s.traces.count; j++)
			out->items[out->count++] = s.traces.items[j];
		char *own = whole && s.traces.count == 0 ? strdup(operands[i]) : NULL;
		if (own)
			out->items[out->count++] = own;
		whole &= own || s.traces.count > 0;
		s.traces.count = whole ? 0 : s.traces.count; /* they are in `out` now */
		session_free(&s);
	}
	return whole;
}
