/* adapter.c: OCaml 5 records itself: its runtime writes a ring of events, if the environment says so when it begins.
 *
 * Here it finds that there, and when it has read it, the environment is the program's again: what the program starts is asked by
 * itself.  The file, PID.events, comes into a folder beside this process's trace; weft record says there which clock it has.
 *
 * OCaml ends a program that cannot have the file, or the memory for it.  So where that might be, nothing is asked for; and a
 * child of a fork that can no longer reach the folder, as in a chroot(), goes on without a file.  A program whose user has set
 * one of OCaml's variables is left to that user.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "adapters/hook/load.h"

enum {
	LOG_WORDS = 16,        /* of a ring, if the program does not say otherwise */
	LOG_WORDS_LEAST = 10,  /* in smaller ones a long event stops the program */
	LOG_WORDS_MOST = 20,   /* above that OCaml's size of the file overflows */
	ROOM_MB = 256,         /* the disk that is to be left: a page that it does not have would end the program */
	OCAML_PATH_MOST = 1000 /* of what OCaml has room for */
};

static struct {
	void (*caml_runtime_events_init)(void);
	void (*caml_runtime_events_post_fork)(void);
	void (*caml_runtime_events_pause)(void);
} real;

static char folder[PATH_MAX]; /* ""; nothing was asked for */

/* OCAMLRUNPARAM=e=N,...: a file of the size that the program asks for may be more than OCaml can make. */
static bool has_fine_parameters(void)
{
	const char *text = secure_getenv("OCAMLRUNPARAM");
	for (text = text ? text : secure_getenv("CAMLRUNPARAM"); text && *text; text += *text == ',') {
		const char *value = text + 1 + (text[1] == '=');
		const unsigned long number = strtoul(value, NULL, 0);
		if ((*text == 'e' && (number < LOG_WORDS_LEAST || number > LOG_WORDS_MOST)) || *text == 'd')
			return false;
		text += strcspn(text, ",");
	}
	return true;
}

/* Whether a file there, of which much is a hole, is to be had. */
static bool has_room(const char *path)
{
	struct rlimit file, memory;
	struct statvfs disk;
	return strlen(path) < OCAML_PATH_MOST && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 &&
	       getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur == RLIM_INFINITY && getrlimit(RLIMIT_AS, &memory) == 0 &&
	       memory.rlim_cur == RLIM_INFINITY && statvfs(path, &disk) == 0 &&
	       (uint64_t)disk.f_bavail * disk.f_frsize >> 20 >= ROOM_MB;
}

static const char *const names[] = {"OCAML_RUNTIME_EVENTS_START", "OCAML_RUNTIME_EVENTS_PRESERVE", "OCAML_RUNTIME_EVENTS_DIR"};
enum { NAMES = sizeof names / sizeof *names };

static bool is_asked_for(void)
{
	for (size_t i = 0; i < NAMES; i++)
		if (getenv(names[i]))
			return true;
	return false;
}

/* Before the program's first line; no other OS thread runs. */
static void init(void)
{
	int saved = errno;
	bool asks = !is_asked_for() && has_fine_parameters() && weft__hook_make_folder(folder, ".ocaml");
	if (asks && !has_room(folder)) {
		rmdir(folder);
		asks = false;
	}
	for (size_t i = 0; asks && i < NAMES; i++)
		setenv(names[i], i == NAMES - 1 ? folder : "1", 1);
	errno = saved;
	real.caml_runtime_events_init();
	saved = errno;
	for (size_t i = 0; asks && i < NAMES; i++)
		unsetenv(names[i]);
	if (!asks)
		folder[0] = 0;
	errno = saved;
}

static void post_fork(void)
{
	int saved = errno;
	const bool is_lost = folder[0] && !has_room(folder);
	if (is_lost)
		real.caml_runtime_events_pause(); /* what it had of its parent's ring it keeps, and writes nothing there */
	errno = saved;
	if (!is_lost)
		real.caml_runtime_events_post_fork();
}

static const struct weft_hook_function functions[] = {
    {"caml_runtime_events_init", (void *)init, (void **)(void *)&real.caml_runtime_events_init},
    {"caml_runtime_events_post_fork", (void *)post_fork, (void **)(void *)&real.caml_runtime_events_post_fork},
    {"caml_runtime_events_pause", NULL, (void **)(void *)&real.caml_runtime_events_pause}, {0}};
static const struct weft_hook_function *const sets[] = {functions};
static const struct weft_hook_module *program;
static const struct weft_hook_module **const modules[] = {&program};

static bool accepts(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "5");
	return true;
}

const struct weft_hook_adapter weft_ocaml_adapter = {
    .name = "OCaml",
    .library = "libasmrun",
    .prefix = "caml_runtime_events_",
    .mark = "caml_runtime_events_init",
    .sets = 1,
    .functions = sets,
    .modules = modules,
    .accepts = accepts,
};
