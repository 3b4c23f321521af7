/* adapter.c: makes OCaml 5 programs record themselves: OCaml's runtime writes a ring of events if environment variables ask for
 * it.
 *
 * The adapter sets these variables only while OCaml's runtime reads them, so that children of the program do not inherit them.
 * OCaml's ring is the file PID.events in a folder beside this process's traces; `weft record` adds clock values to the folder.
 *
 * OCaml ends a program that cannot make or map the file, so the adapter sets the variables only if both will succeed.  A child
 * of a fork that cannot reach the folder any more, as after chroot(), continues without OCaml's file.  If the user has set one
 * of the variables, the adapter does nothing.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "adapters/hook/directory.h"

enum {
	DEFAULT_LOG_WORDS = 16, /* ring size (as an exponent) unless the program sets one */
	MIN_LOG_WORDS = 10,     /* smallest allowed ring size; with smaller rings OCaml ends the program at a long event */
	MAX_LOG_WORDS = 20,     /* largest allowed ring size; larger sizes overflow OCaml's computation of the file's size */
	/* Free disk space that is required, because a store to a page without disk space ends the program. */
	MIN_FREE_DISK_MB = 256,
	MAX_OCAML_PATH_BYTES = 1000 /* capacity of OCaml's buffer for the file's path */
};

static struct {
	void (*caml_runtime_events_init)(void);
	void (*caml_runtime_events_post_fork)(void);
	void (*caml_runtime_events_pause)(void);
} real;

static char folder[PATH_MAX]; /* folder for OCaml's rings; "" if OCaml was not asked to record */

/* Returns whether OCAMLRUNPARAM=e=N,... sets a ring size that OCaml supports, and does not set the directory. */
static bool has_supported_parameters(void)
{
	const char *text = secure_getenv("OCAMLRUNPARAM");
	for (text = text ? text : secure_getenv("CAMLRUNPARAM"); text && *text; text += *text == ',') {
		const char *value = text + 1 + (text[1] == '=');
		const unsigned long number = strtoul(value, NULL, 0);
		if ((*text == 'e' && (number < MIN_LOG_WORDS || number > MAX_LOG_WORDS)) || *text == 'd')
			return false;
		text += strcspn(text, ",");
	}
	return true;
}

/* Returns whether a sparse file can be made in the folder. */
static bool has_disk_space(const char *path)
{
	struct rlimit file, memory;
	struct statvfs disk;
	return strlen(path) < MAX_OCAML_PATH_BYTES && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 &&
	       getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur == RLIM_INFINITY && getrlimit(RLIMIT_AS, &memory) == 0 &&
	       memory.rlim_cur == RLIM_INFINITY && statvfs(path, &disk) == 0 &&
	       (uint64_t)disk.f_bavail * disk.f_frsize >> 20 >= MIN_FREE_DISK_MB;
}

static const char *const variable_names[] = {
    "OCAML_RUNTIME_EVENTS_START", "OCAML_RUNTIME_EVENTS_PRESERVE", "OCAML_RUNTIME_EVENTS_DIR"};
enum { NAME_COUNT = sizeof variable_names / sizeof *variable_names };

static bool is_requested_by_user(void)
{
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (getenv(variable_names[i]))
			return true;
	return false;
}

/* Starts OCaml's events; runs before the program's first line, while there is one thread. */
static void start_runtime_events(void)
{
	int saved = errno;
	bool should_enable = !is_requested_by_user() && has_supported_parameters() && weft__hook_make_folder(folder, ".ocaml");
	if (should_enable && !has_disk_space(folder)) {
		rmdir(folder);
		should_enable = false;
	}
	for (size_t i = 0; should_enable && i < NAME_COUNT; i++)
		setenv(variable_names[i], i == NAME_COUNT - 1 ? folder : "1", 1);
	errno = saved;
	real.caml_runtime_events_init();
	saved = errno;
	for (size_t i = 0; should_enable && i < NAME_COUNT; i++)
		unsetenv(variable_names[i]);
	if (!should_enable)
		folder[0] = 0;
	errno = saved;
}

static void handle_post_fork(void)
{
	int saved = errno;
	const bool is_unreachable = folder[0] && !has_disk_space(folder);
	if (is_unreachable)
		/* The child must not write to its parent's ring, which stays mapped in the child. */
		real.caml_runtime_events_pause();
	errno = saved;
	if (!is_unreachable)
		real.caml_runtime_events_post_fork();
}

static const struct weft_hook_function functions[] = {
    WEFT_HOOK_TAKEN(caml_runtime_events_init, start_runtime_events, real.caml_runtime_events_init),
    WEFT_HOOK_TAKEN(caml_runtime_events_post_fork, handle_post_fork, real.caml_runtime_events_post_fork),
    WEFT_HOOK_CALLED(caml_runtime_events_pause, real.caml_runtime_events_pause), {0}};
static const struct weft_hook_module *program;

static bool is_supported_version(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "5");
	return true;
}

const struct weft_hook_adapter weft_ocaml_adapter = {
    .name = "OCaml",
    .library = "libasmrun",
    .prefix = "caml_runtime_events_",
    .mark = "caml_runtime_events_init",
    WEFT_HOOK_SETS((functions), (&program)),
    .accepts = is_supported_version,
};
