/* kept.c: counts and removes the copies that weft watch has saved (kept.h).  SPDX-License-Identifier: ISC */
#include "kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/named.h"
#include "base/sort.h"
#include "cli.h"

enum { HOUR_S = 3600, KEY_DIGITS = 8 };

struct copy {
	char *name;
	uint64_t bytes;
	time_t time;
};

typedef WEFT_VEC(struct copy) copies;

/* Returns whether the text ends with "-KEY-TIME", like the name of a copy without its suffix. */
static bool ends_with_key(const char *text, size_t length)
{
	static const char form[] = "-xxxxxxxx-ddddddddTddddddZ";
	if (length < sizeof form)
		return false;
	const char *at = text + length - (sizeof form - 1);
	for (size_t i = 0; i < sizeof form - 1; i++) {
		const char *allowed = form[i] == 'x' ? "0123456789abcdef" : form[i] == 'd' ? "0123456789" : NULL;
		if (allowed ? !memchr(allowed, at[i], strlen(allowed)) : at[i] != form[i])
			return false;
	}
	return true;
}

static size_t cut_suffix(const char *name, size_t length, const char *suffix)
{
	const size_t bytes = strlen(suffix);
	return length > bytes && memcmp(name + length - bytes, suffix, bytes) == 0 ? length - bytes : length;
}

static bool is_copy(const char *name)
{
	return ends_with_key(name, cut_suffix(name, strlen(name), CLI_KEPT_SUFFIX));
}

/* Returns whether a file name is that of an incomplete copy: NAME.PID.tmp. */
static bool is_incomplete(const char *name)
{
	size_t length = strlen(name), rest = cut_suffix(name, length, ".tmp");
	if (rest == length)
		return false;
	while (rest > 0 && name[rest - 1] >= '0' && name[rest - 1] <= '9')
		rest--;
	return rest > 1 && name[rest - 1] == '.' && ends_with_key(name, cut_suffix(name, rest - 1, CLI_KEPT_SUFFIX));
}

static uint64_t count_bytes(int folder, const char *name)
{
	uint64_t bytes = 0;
	struct stat st;
	const int fd = weft_named_folder(folder, name, WEFT_ANY_OWNER);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}

static int compare_copies(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	return WEFT_ORDER(x->time, y->time) ?: strcmp(x->name, y->name);
}

static void free_copies(copies *all)
{
	for (size_t i = 0; i < all->count; i++)
		free(all->items[i].name);
	weft_vec_free(all);
}

/* Lists the copies whose names have a certain form, the oldest copy first.  Without memory, some copies are left out. */
static void list_copies(copies *all, int folder, bool (*is_one)(const char *name))
{
	DIR *dir = folder < 0 ? NULL : weft_named_list(folder);
	struct stat st;
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		if (entry->d_name[0] == '.' || !is_one(entry->d_name) ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
			continue;
		char *own = strdup(entry->d_name);
		struct copy *fresh = own ? weft_vec_push(all) : NULL;
		if (!fresh) {
			free(own);
			continue;
		}
		*fresh = (struct copy){.name = own,
		    .bytes = S_ISDIR(st.st_mode) ? count_bytes(folder, own) : (uint64_t)st.st_size,
		    .time = st.st_mtime};
	}
	if (dir)
		closedir(dir);
	weft_sort(all->items, all->count, sizeof *all->items, compare_copies);
}

struct cli_kept_count cli_kept_count(const char *path, const char *prefix)
{
	struct cli_kept_count out = {0};
	copies all = {0};
	const int folder = weft_users_folder(path);
	list_copies(&all, folder, is_copy);
	for (size_t i = 0; i < all.count; i++) {
		out.this_hour += all.items[i].time > time(NULL) - HOUR_S;
		out.has_copy |= strncmp(all.items[i].name, prefix, strlen(prefix)) == 0;
	}
	free_copies(&all);
	if (folder >= 0)
		close(folder);
	return out;
}

static bool remove_copy(int folder, const char *name)
{
	return unlinkat(folder, name, 0) == 0 || (errno == EISDIR && cli_directory_remove(folder, name));
}

/* Removes incomplete copies of a watcher that was killed.  Young files stay, because another watcher may be writing a copy into
 * this folder. */
static void remove_incomplete(int folder)
{
	copies parts = {0};
	list_copies(&parts, folder, is_incomplete);
	for (size_t i = 0; i < parts.count; i++)
		if (parts.items[i].time < time(NULL) - HOUR_S)
			remove_copy(folder, parts.items[i].name);
	free_copies(&parts);
}

uint64_t cli_kept_limit(const char *path, const struct cli_kept_limits *limits)
{
	copies all = {0};
	uint64_t bytes = 0, removed = 0;
	const int folder = weft_users_folder(path);
	if (folder < 0)
		return 0;
	remove_incomplete(folder);
	list_copies(&all, folder, is_copy);
	for (size_t i = 0; i < all.count; i++)
		bytes += all.items[i].bytes;
	for (size_t i = 0; i + 1 < all.count; i++) {
		const bool is_old = limits->max_age_s && all.items[i].time < time(NULL) - limits->max_age_s,
			   are_many = limits->max_count && all.count - i > limits->max_count;
		if (!is_old && !are_many && bytes <= limits->max_bytes)
			break;
		bytes -= all.items[i].bytes;
		removed += remove_copy(folder, all.items[i].name);
	}
	free_copies(&all);
	close(folder);
	return removed;
}

bool cli_kept_parse_age(const char *text, int64_t *age_s)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	char *end;
	errno = 0;
	const long number = strtol(text, &end, 10);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (*text >= '0' && *text <= '9' && errno == 0 && number <= INT32_MAX && strcmp(end, units[i].name) == 0) {
			*age_s = number * units[i].seconds;
			return true;
		}
	return false;
}

int64_t cli_kept_idle_s(const char *root, const char *path)
{
	const int folder = weft_named_below(root, path);
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	time_t newest = 0;
	struct stat st;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_mtime > newest)
			newest = st.st_mtime;
	if (dir)
		closedir(dir);
	return newest ? (int64_t)(time(NULL) - newest) : -1;
}

bool cli_kept_remove_trace(const char *root, const char *path)
{
	const char *name;
	const int parent = weft_named_parent(root, path, &name);
	const bool is_gone = parent >= 0 && cli_directory_remove(parent, name);
	if (parent >= 0)
		close(parent);
	return is_gone;
}
