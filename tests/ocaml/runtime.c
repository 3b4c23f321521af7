/* runtime.c FILE [fork|hang]: a program with the functions of the OCaml 5 runtime that create PID.events if the environment asks
 * for it.  OCaml 5 is not in Debian 12.  The content comes from FILE, which tools/runtime-events has written.
 *
 * Like OCaml, it ends if the file cannot be created, also in the child of a fork.  SPDX-License-Identifier: ISC */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *content;
static char *folder;
static int is_enabled, is_preserved;
static char location[4096];

static void create(void)
{
	struct stat st;
	const int from = open(content, O_RDONLY);
	snprintf(location, sizeof location, "%s/%ld.events", folder ? folder : ".", (long)getpid());
	const int to = open(location, O_RDWR | O_CREAT, 0600);
	if (from < 0 || to < 0 || fstat(from, &st) || ftruncate(to, st.st_size)) {
		fprintf(stderr, "Fatal error: Couldn't open ring buffer loc: %s\n", location);
		exit(2);
	}
	unsigned char *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
	close(to);
	for (off_t at = 0, data; (data = lseek(from, at, SEEK_DATA)) >= 0;) {
		const off_t hole = lseek(from, data, SEEK_HOLE);
		if (pread(from, map + data, (size_t)(hole - data), data) != hole - data)
			abort();
		at = hole;
	}
	close(from);
	is_enabled = 1;
}

__attribute__((noipa)) void caml_runtime_events_init(void)
{
	const char *path = getenv("OCAML_RUNTIME_EVENTS_DIR");
	folder = path ? strdup(path) : NULL;
	is_preserved = getenv("OCAML_RUNTIME_EVENTS_PRESERVE") != NULL;
	if (getenv("OCAML_RUNTIME_EVENTS_START"))
		create();
}

__attribute__((noipa)) void caml_runtime_events_post_fork(void)
{
	if (is_enabled)
		create();
}

__attribute__((noipa)) void caml_runtime_events_pause(void)
{
	puts("paused");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"START", "PRESERVE", "DIR"};
	const char *what = argc > 2 ? argv[2] : "";
	content = argv[1];
	caml_runtime_events_init();
	for (int i = 0; i < 3; i++) {
		char name[64];
		snprintf(name, sizeof name, "OCAML_RUNTIME_EVENTS_%s", names[i]);
		if (getenv(name))
			printf("%s=%s\n", name, getenv(name));
	}
	printf("events: %s\n", is_enabled ? "on" : "off");
	fflush(stdout);
	/* What the base adapter begins to record for. */
	struct pollfd none[2] = {{.fd = -1}, {.fd = -1}};
	poll(none, 2, 10);
	if (!strcmp(what, "fork")) {
		char gone[5000];
		snprintf(gone, sizeof gone, "%s.gone", folder);
		if (argc > 3 && rename(folder, gone))
			abort();
		const pid_t child = fork();
		if (child == 0) {
			caml_runtime_events_post_fork();
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		if (argc > 3 && rename(gone, folder))
			abort();
		return WEXITSTATUS(status);
	}
	while (!strcmp(what, "hang"))
		poll(none, 2, 1000);
	if (is_enabled && !is_preserved)
		unlink(location);
	return 0;
}
