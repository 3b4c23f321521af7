/* preload.c: removes this library from LD_PRELOAD of programs that cannot load it.
 *
 * A program that runs below another root directory (chroot, bwrap), or as a user without access to the library's folder, could
 * not open the library.  The loader would print an error for each such program, which the program's user would see.
 *
 * Children of vfork() and signal handlers may call these functions: they use little stack, and neither locks nor allocated
 * memory.  SPDX-License-Identifier: ISC */
#include "adapters/hook/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="
#define SEPARATORS " :" /* as the loader has them */

/* Path of this library and its last component, as the loader has found it. */
static const char *library, *name;

__attribute__((constructor(101))) static void find_library(void)
{
	Dl_info info;
	/* A lookup takes locks of the loader, so it is made before the program runs. */
	if (dladdr(&library, &info) && info.dli_fname && info.dli_fname[0] == '/') {
		library = info.dli_fname;
		name = strrchr(library, '/');
	}
}

/* Returns whether a program that this process starts can open the library.  The capabilities of another user than root end with
 * the start, and access() ignores them, as open() does not. */
static bool can_open_library(void)
{
	const int saved = errno;
	const bool can_open =
	    access(library, R_OK) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ELOOP);
	errno = saved;
	return can_open;
}

/* Returns whether the next entry of a list is this library, and its length with the separators in front. */
static bool is_library(const char *at, size_t *bytes)
{
	const size_t begin = strspn(at, SEPARATORS), length = strcspn(at + begin, SEPARATORS), last = strlen(name);
	*bytes = begin + length;
	return length >= last && !memcmp(at + begin + length - last, name, last);
}

/* Returns the list of libraries in a variable LD_PRELOAD=LIST that contains this library, otherwise NULL. */
static const char *find_list(const char *variable)
{
	size_t bytes;
	if (strncmp(variable, VARIABLE, sizeof VARIABLE - 1) != 0)
		return NULL;
	for (const char *at = variable + sizeof VARIABLE - 1; *at; at += bytes)
		if (is_library(at, &bytes))
			return variable + sizeof VARIABLE - 1;
	return NULL;
}

size_t weft__hook_bytes_without_library(char *const *environment)
{
	size_t bytes = sizeof *environment;
	bool has_library = false;
	/* Most programs can, and then the kernel alone reads the environment, which may be at a wrong address. */
	if (!name || !environment || can_open_library())
		return 0;
	for (char *const *at = environment; *at; at++) {
		const bool is_list = find_list(*at);
		has_library |= is_list;
		bytes += sizeof *at + (is_list ? strlen(*at) + 1 : 0);
	}
	return has_library ? bytes : 0;
}

char *const *weft__hook_copy_without_library(void *space, size_t bytes, char *const *environment)
{
	size_t count = 0, kept = 0, length;
	while (environment[count])
		count++;
	if (bytes < (count + 1) * sizeof *environment)
		return environment;
	char **copy = space, *text = (char *)(copy + count + 1), *end = (char *)space + bytes;
	for (size_t i = 0; i < count; i++) {
		const char *at = find_list(environment[i]);
		if (!at || strlen(environment[i]) >= (size_t)(end - text)) {
			copy[kept++] = environment[i];
			continue;
		}
		char *const begin = text;
		text = stpcpy(text, VARIABLE);
		const char *const list = text;
		for (; *at; at += length)
			if (!is_library(at, &length))
				text = mempcpy(text, at, length);
		*text++ = 0;
		if (*list)
			copy[kept++] = begin;
	}
	copy[kept] = NULL;
	return copy;
}
