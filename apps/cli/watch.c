/* watch.c: until when the processes lived that record into a session's directory.
 *
 * A program that sleeps when it is killed leaves a trace that ends with its last event, maybe hours before.  Only who sees it die
 * knows better: weft record looks at its directory (inotify) and at each process that makes a trace there (a descriptor of the
 * process), and writes the time of its end into the metadata of a trace that nobody ended.  Where the kernel offers no such
 * descriptors there is no such time.  A file that OCaml's runtime makes there gets a note as soon as it is there.
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/ocaml.h"
#include "cli.h"
#include "trace/follow.h"
#include "watch.h"

enum { MOST_METADATA = 1 << 20, MOST_FOLDERS = 64, MOMENT_MS = 50 };

struct watched {
	char *path;
	long process;
	int fd;          /* of the process; -1: it has ended */
	int64_t died_ns; /* UTC; 0: it lives */
};

struct watch {
	int notes;
	char *folders[MOST_FOLDERS]; /* by number of their watch; NULL: none */
	WEFT_VEC(struct watched) all;
	WEFT_VEC(struct pollfd) polled;
};

static int open_process(long process)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
#else
	errno = ENOSYS;
	return -1;
#endif
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void look_into(struct watch *w, const char *folder, uint32_t for_what)
{
	int number = inotify_add_watch(w->notes, folder, for_what | IN_ONLYDIR);
	if (number <= 0 || number >= MOST_FOLDERS || w->folders[number])
		return;
	w->folders[number] = strdup(folder);
}

struct watch *watch_begin(const char *folder)
{
	struct watch *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->notes >= 0)
		look_into(w, folder, IN_CREATE | IN_MOVED_TO);
	return w;
}

/* NAME-PID, or NAME-PID.2; 0: no such name. */
static long process_of(const char *name)
{
	const char *dash = strrchr(name, '-');
	char *end;
	long process = dash ? strtol(dash + 1, &end, 10) : 0;
	return process > 0 && (*end == 0 || *end == '.') ? process : 0;
}

static void note_file(const char *folder, const char *name, int64_t died_ns)
{
	char *path;
	if (!session_is_ocaml_file(name) || asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	ocaml_note(path, died_ns);
	free(path);
}

/* What is there already may have come before anybody looked. */
static void note_files(const char *folder)
{
	DIR *dir = opendir(folder);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		note_file(folder, entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static void add(struct watch *w, const char *folder, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	long process = process_of(name);
	struct stat st;
	if (lstat(path, &st) || !S_ISDIR(st.st_mode)) {
		free(path);
	} else if (!strncmp(name, SESSION_USER_FOLDER, strlen(SESSION_USER_FOLDER))) {
		look_into(w, path, IN_CREATE | IN_MOVED_TO);
		free(path);
	} else {
		if (session_is_ocaml_folder(name)) {
			look_into(
			    w, path, IN_MODIFY); /* when OCaml gives the file its size; it stays open as long as it is mapped */
			note_files(path);
		}
		int fd = process ? open_process(process) : -1;
		struct watched *slot = fd < 0 ? NULL : weft_vec_push(&w->all);
		if (slot) {
			*slot = (struct watched){path, process, fd, 0};
			return;
		}
		if (fd >= 0)
			close(fd);
		free(path);
	}
}

static void read_notes(struct watch *w)
{
	_Alignas(struct inotify_event) char buffer[8192];
	ssize_t n;
	while ((n = read(w->notes, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (void *)(buffer + at);
			const char *folder = event->wd > 0 && event->wd < MOST_FOLDERS ? w->folders[event->wd] : NULL;
			if (event->len && folder && event->mask & IN_MODIFY)
				note_file(folder, event->name, 0);
			else if (event->len && folder)
				add(w, folder, event->name);
			at += (ssize_t)(sizeof *event + event->len);
		}
}

/* Waits for something, at most so long; notes who died.  False: there was nothing, or waiting is no use. */
static bool step(struct watch *w, int command, int most_ms)
{
	w->polled.count = 0;
	if (!weft_vec_reserve(&w->polled, w->all.count + 2))
		return false;
	w->polled.items[w->polled.count++] = (struct pollfd){command, POLLIN, 0};
	w->polled.items[w->polled.count++] = (struct pollfd){w->notes, POLLIN, 0};
	for (size_t i = 0; i < w->all.count; i++)
		w->polled.items[w->polled.count++] = (struct pollfd){w->all.items[i].fd, POLLIN, 0};
	const size_t count = w->all.count;
	int found = poll(w->polled.items, w->polled.count, most_ms);
	if (found <= 0)
		return found < 0 && errno == EINTR;
	int64_t now = now_ns();
	if (w->polled.items[1].revents)
		read_notes(w);
	for (size_t i = 0; i < count; i++)
		if (w->polled.items[i + 2].revents) {
			close(w->all.items[i].fd);
			w->all.items[i].fd = -1;
			w->all.items[i].died_ns = now;
		}
	return true;
}

static bool has_living(const struct watch *w)
{
	size_t i = 0;
	while (i < w->all.count && w->all.items[i].fd < 0)
		i++;
	return i < w->all.count;
}

pid_t watch_wait(struct watch *w, pid_t child, int *status)
{
	int command = w && w->notes >= 0 ? open_process(child) : -1;
	pid_t ended = 0;
	while (command >= 0 && step(w, command, -1) && (ended = waitpid(child, status, WNOHANG)) == 0)
		;
	if (command >= 0)
		close(command);
	return ended ? ended : waitpid(child, status, 0);
}

/* ---- The end ---- */

/* Whether the process that wrote this metadata has that number here: in a container it has another. */
static bool is_of(const char *text, long process)
{
	static const char key[] = "\trecorder = \"";
	unsigned long space;
	long number;
	struct stat st;
	const char *at = strstr(text, key);
	return at && sscanf(at + sizeof key - 1, "%*s %lu %ld", &space, &number) == 2 && number == process &&
	       stat("/proc/self/ns/pid", &st) == 0 && (unsigned long)st.st_ino == space;
}

/* Replaces the metadata by the same with a line more, behind the state; the owner stays. */
static void replace(int folder, const char *text, const char *behind, int64_t died_ns, const struct stat *st)
{
	static const char hidden[] = ".weft-metadata";
	unlinkat(folder, hidden, 0);
	int fd = openat(folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return;
	}
	bool owned = st->st_uid == geteuid() || fchown(fd, st->st_uid, st->st_gid) == 0;
	fprintf(file, "%.*s\tdied_ns = %lld;\n%s", (int)(behind - text), text, (long long)died_ns, behind);
	if (fclose(file) || !owned || renameat(folder, hidden, folder, "metadata"))
		unlinkat(folder, hidden, 0);
}

static void note_end(const struct watched *w)
{
	static const char state[] = "\tstate = \"recording\";\n";
	struct stat st;
	if (session_is_ocaml_folder(w->path)) {
		char name[32];
		snprintf(name, sizeof name, "%ld.events", w->process);
		note_file(w->path, name, w->died_ns);
		return;
	}
	int folder = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = folder < 0 ? -1 : openat(folder, "metadata", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = NULL;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < MOST_METADATA)
		text = calloc(1, (size_t)st.st_size + 1);
	if (text && read(fd, text, (size_t)st.st_size) == st.st_size && !weft_trace_is_recorded(w->path)) {
		const char *at = strstr(text, state);
		if (at && is_of(text, w->process))
			replace(folder, text, at + sizeof state - 1, w->died_ns, &st);
	}
	free(text);
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
}

/* Of several traces of one process, which ran one program after the other, the last one of each recorder ends with it. */
static bool is_last(const struct watch *w, size_t at)
{
	for (size_t i = at + 1; i < w->all.count; i++)
		if (w->all.items[i].process == w->all.items[at].process &&
		    session_is_ocaml_folder(w->all.items[i].path) == session_is_ocaml_folder(w->all.items[at].path))
			return false;
	return true;
}

void watch_end(struct watch *w)
{
	if (!w)
		return;
	/* Whoever is killed with the command takes a moment to die. */
	while (has_living(w) && step(w, -1, MOMENT_MS))
		;
	for (size_t i = 0; i < w->all.count; i++) {
		if (w->all.items[i].died_ns && is_last(w, i))
			note_end(&w->all.items[i]);
		if (w->all.items[i].fd >= 0)
			close(w->all.items[i].fd);
		free(w->all.items[i].path);
	}
	for (size_t i = 0; i < MOST_FOLDERS; i++)
		free(w->folders[i]);
	if (w->notes >= 0)
		close(w->notes);
	weft_vec_free(&w->all);
	weft_vec_free(&w->polled);
	free(w);
}
