/* process_exit.c: records when the processes of a session ended.
 *
 * If a sleeping program is killed, its trace ends with its last event, perhaps hours earlier.  So weft record watches its
 * directory (inotify) and each process that makes a trace there (pidfd), and writes the time of death into the metadata of a
 * trace that was not ended.  On systems without pidfds, the time of death is missing.  If an OCaml runtime creates an events
 * file in the directory, the file gets its note at once.
 *
 * A process of its own watches, in a session of its own: a user who kills a hanging program often kills its whole process group,
 * and weft record with it.  The watching process ends with weft record, and is no child of weft record, whose only child is the
 * command.
 *
 * Each watched process costs a file descriptor, and any user may make directories in the folder for that user.  So in a user's
 * folder only processes of that user are watched, with only a share of the descriptors.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/control/ocaml_rings.h"
#include "base/named.h"
#include "cli/cli.h"
#include "process_exit.h"
#include "trace/follow.h"

enum {
	MAX_METADATA_BYTES = 1 << 20,
	MAX_FOLDERS = 64,
	MAX_USERS_TRACES = 4096, /* maximum number of traces in the folders of other users */
	USERS_SHARE_DIVISOR = 8, /* processes of other users may use all descriptors divided by this number */
	GRACE_MS = 50
};

/* A process that writes traces into the session. */
struct process {
	long id;
	int fd;          /* pidfd of the process; -1 after the process has ended */
	int64_t died_ns; /* UTC time of the process's death; 0 while it runs */
};

struct watched {
	char *path;
	size_t process; /* index */
};

struct exit_watch {
	int end_fd;   /* pipe to the watcher; the watcher ends when the pipe is closed */
	int ended_fd; /* pipe from the watcher; the pipe is closed when the watcher ends */
};

/* State of the watcher. */
struct watch {
	const char *session;
	int inotify_fd;
	char *folders[MAX_FOLDERS]; /* watched folders, indexed by watch descriptor; NULL: none */
	WEFT_VEC(struct process) processes;
	WEFT_VEC(struct watched) all;
	WEFT_VEC(struct pollfd) polled;
	size_t users_processes, users_traces; /* of other users, ever */
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

static void watch_folder(struct watch *w, const char *folder, uint32_t event_mask)
{
	char by_descriptor[32];
	const int fd = weft_named_below(w->session, folder);
	snprintf(by_descriptor, sizeof by_descriptor, "/proc/self/fd/%d", fd);
	const int number = fd < 0 ? -1 : inotify_add_watch(w->inotify_fd, by_descriptor, event_mask | IN_ONLYDIR);
	if (fd >= 0)
		close(fd);
	if (number <= 0 || number >= MAX_FOLDERS || w->folders[number])
		return;
	w->folders[number] = strdup(folder);
}

/* Parses the process id in a name like NAME-PID or NAME-PID.2; returns 0 for other names. */
static long parse_process_id(const char *name)
{
	const char *dash = strrchr(name, '-');
	char *end;
	long process = dash ? strtol(dash + 1, &end, 10) : 0;
	return process > 0 && (*end == 0 || *end == '.') ? process : 0;
}

static void note_ocaml_file(const struct watch *w, const char *folder, const char *name, int64_t died_ns)
{
	char *path;
	if (!session_is_ocaml_file(name) || asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	ocaml_write_note(w->session, path, died_ns);
	free(path);
}

/* Existing entries of the folder are read too, because they may be older than the watch. */
static void note_ocaml_files(const struct watch *w, const char *path, int folder)
{
	DIR *dir = weft_named_list(folder);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		note_ocaml_file(w, path, entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* Returns whether one of the process's user ids is `user`. */
static bool is_process_of(long process, uid_t user)
{
	char path[64], line[128];
	unsigned long ids[4] = {0};
	bool is = false;
	snprintf(path, sizeof path, "/proc/%ld/status", process);
	FILE *status = fopen(path, "re");
	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "Uid: %lu %lu %lu %lu", &ids[0], &ids[1], &ids[2], &ids[3]) == 4) {
			is = ids[0] == user || ids[1] == user || ids[2] == user || ids[3] == user;
			break;
		}
	if (status)
		fclose(status);
	return is;
}

/* Returns whether the folder of a user may have one more trace, and one more watched process. */
static bool may_add(struct watch *w, long process, uid_t user, bool is_known)
{
	struct rlimit files = {.rlim_cur = 1024};
	getrlimit(RLIMIT_NOFILE, &files);
	if (w->users_traces >= MAX_USERS_TRACES || (!is_known && w->users_processes >= files.rlim_cur / USERS_SHARE_DIVISOR) ||
	    !is_process_of(process, user))
		return false;
	w->users_traces++;
	w->users_processes += !is_known;
	return true;
}

/* Returns the index of the running process with that id, or SIZE_MAX. */
static size_t find_process(const struct watch *w, long id)
{
	for (size_t i = w->processes.count; i-- > 0;)
		if (w->processes.items[i].id == id && w->processes.items[i].fd >= 0)
			return i;
	return SIZE_MAX;
}

/* Watches the process of a trace, which is in a folder of `user`, or in the session's own folder (WEFT_ANY_OWNER).  Takes over
 * the path.
 */
static void watch_process(struct watch *w, char *path, long id, uid_t user)
{
	size_t process = find_process(w, id);
	if (!id || (user != WEFT_ANY_OWNER && !may_add(w, id, user, process != SIZE_MAX))) {
		free(path);
		return;
	}
	const int fd = process == SIZE_MAX ? open_process(id) : -1;
	struct process *fresh = fd < 0 ? NULL : weft_vec_push(&w->processes);
	if (fresh) {
		*fresh = (struct process){id, fd, 0};
		process = w->processes.count - 1;
	} else if (fd >= 0) {
		close(fd);
	}
	struct watched *slot = process == SIZE_MAX ? NULL : weft_vec_push(&w->all);
	if (slot)
		*slot = (struct watched){path, process};
	else
		free(path);
}

static bool is_user_folder(const char *name)
{
	return !strncmp(name, SESSION_USER_FOLDER, strlen(SESSION_USER_FOLDER));
}

static void add_trace(struct watch *w, const char *folder, const char *name)
{
	struct stat st;
	char *path;
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return;
	const int fd = weft_named_below(w->session, path);
	const bool is_folder = fd >= 0 && fstat(fd, &st) == 0, is_in_own = strcmp(folder, w->session) == 0;
	if (is_folder && session_is_ocaml_folder(name)) {
		/* The watch reports when the file's size is set, because the file stays open as long as it is mapped. */
		watch_folder(w, path, IN_MODIFY);
		note_ocaml_files(w, path, fd);
	}
	if (fd >= 0)
		close(fd);
	if (is_folder && is_in_own && is_user_folder(name)) {
		watch_folder(w, path, IN_CREATE | IN_MOVED_TO);
		free(path);
	} else if (is_folder) {
		watch_process(w, path, parse_process_id(name), is_in_own ? WEFT_ANY_OWNER : st.st_uid);
	} else {
		free(path);
	}
}

static void read_inotify_events(struct watch *w)
{
	_Alignas(struct inotify_event) char buffer[8192];
	ssize_t n;
	while ((n = read(w->inotify_fd, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (void *)(buffer + at);
			const char *folder = event->wd > 0 && event->wd < MAX_FOLDERS ? w->folders[event->wd] : NULL;
			if (event->len && folder && event->mask & IN_MODIFY)
				note_ocaml_file(w, folder, event->name, 0);
			else if (event->len && folder)
				add_trace(w, folder, event->name);
			at += (ssize_t)(sizeof *event + event->len);
		}
}

/* Waits at most timeout_ms for an event, and notes the deaths of processes.  Returns false if there was no event, or if waiting
 * failed. */
static bool wait_for_exits(struct watch *w, int parent, int timeout_ms)
{
	w->polled.count = 0;
	if (!weft_vec_reserve(&w->polled, w->processes.count + 2))
		return false;
	w->polled.items[w->polled.count++] = (struct pollfd){parent, POLLIN, 0};
	w->polled.items[w->polled.count++] = (struct pollfd){w->inotify_fd, POLLIN, 0};
	for (size_t i = 0; i < w->processes.count; i++)
		w->polled.items[w->polled.count++] = (struct pollfd){w->processes.items[i].fd, POLLIN, 0};
	const size_t count = w->processes.count;
	int found = poll(w->polled.items, w->polled.count, timeout_ms);
	if (found <= 0)
		return found < 0 && errno == EINTR;
	int64_t now = now_ns();
	if (w->polled.items[1].revents)
		read_inotify_events(w);
	for (size_t i = 0; i < count; i++)
		if (w->polled.items[i + 2].revents) {
			close(w->processes.items[i].fd);
			w->processes.items[i].fd = -1;
			w->processes.items[i].died_ns = now;
		}
	return true;
}

static bool has_running_process(const struct watch *w)
{
	size_t i = 0;
	while (i < w->processes.count && w->processes.items[i].fd < 0)
		i++;
	return i < w->processes.count;
}

pid_t exit_wait_child(pid_t child, int *status, int flags)
{
	pid_t ended;
	while ((ended = waitpid(child, status, flags)) > 0 && WIFSTOPPED(*status))
		;
	return ended;
}

/* ---- The end ---- */

/* Returns whether the metadata were written in this PID namespace, so that their process id is valid here. */
static bool is_written_by(const char *text, long process)
{
	static const char key[] = "\trecorder = \"";
	unsigned long space;
	long number;
	struct stat st;
	const char *at = strstr(text, key);
	return at && sscanf(at + sizeof key - 1, "%*s %lu %ld", &space, &number) == 2 && number == process &&
	       stat("/proc/self/ns/pid", &st) == 0 && (unsigned long)st.st_ino == space;
}

/* Inserts a line behind the state line of the metadata, and keeps the file's owner. */
static void replace_metadata(int folder, const char *text, const char *behind, int64_t died_ns, const struct stat *st)
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

/* Replaces the metadata in the folder if they belong to this process and say that it is recording. */
static void end_metadata(int folder, const char *path, const struct process *p)
{
	static const char state[] = "\tstate = \"recording\";\n";
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER, .max_bytes = MAX_METADATA_BYTES};
	struct stat st;
	const int fd = weft_named_file(folder, "metadata", &rule, &st);
	char *text = fd < 0 ? NULL : calloc(1, (size_t)st.st_size + 1);
	if (text && read(fd, text, (size_t)st.st_size) == st.st_size && !weft_trace_is_recorded(path)) {
		const char *at = strstr(text, state);
		if (at && is_written_by(text, p->id))
			replace_metadata(folder, text, at + sizeof state - 1, p->died_ns, &st);
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

static void record_exit(const struct watch *e, const struct watched *w)
{
	const struct process *p = &e->processes.items[w->process];
	if (session_is_ocaml_folder(w->path)) {
		char name[32];
		snprintf(name, sizeof name, "%ld.events", p->id);
		note_ocaml_file(e, w->path, name, p->died_ns);
		return;
	}
	const int folder = weft_named_below(e->session, w->path);
	if (folder < 0)
		return;
	end_metadata(folder, w->path, p);
	close(folder);
}

/* If one process ran several programs, its death ends the last trace of each recorder. */
static bool is_last_trace(const struct watch *w, size_t at)
{
	for (size_t i = at + 1; i < w->all.count; i++)
		if (w->processes.items[w->all.items[i].process].id == w->processes.items[w->all.items[at].process].id &&
		    session_is_ocaml_folder(w->all.items[i].path) == session_is_ocaml_folder(w->all.items[at].path))
			return false;
	return true;
}

/* Watches until weft record ends or is killed, and then writes the times of death. */
_Noreturn static void run_watcher(struct watch *w, int parent)
{
	const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && none >= 0; fd++)
		dup2(none, fd); /* a reader of the output of weft record waits for the end of weft record alone */
	setsid();
	while (wait_for_exits(w, parent, -1) && !w->polled.items[0].revents)
		;
	/* Processes that are killed together with the command need a moment to die. */
	while (has_running_process(w) && wait_for_exits(w, -1, GRACE_MS))
		;
	for (size_t i = 0; i < w->all.count; i++)
		if (w->processes.items[w->all.items[i].process].died_ns && is_last_trace(w, i))
			record_exit(w, &w->all.items[i]);
	_exit(CLI_OK);
}

/* Starts the watcher as a child of a process that ends at once.  Returns whether it runs. */
static bool start_watcher(struct watch *w, const int end[2], const int ended[2])
{
	int status;
	const pid_t starter = fork();
	if (starter == 0) {
		const pid_t watcher = fork();
		if (watcher != 0)
			_exit(watcher < 0 ? CLI_ERROR : CLI_OK);
		close(end[1]);
		close(ended[0]);
		run_watcher(w, end[0]);
	}
	return starter > 0 && waitpid(starter, &status, 0) == starter && status == 0;
}

static void close_both(int a, int b)
{
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
}

struct exit_watch *exit_watch_begin(const char *folder)
{
	struct watch w = {.session = folder, .inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
	struct exit_watch *exit_watch = malloc(sizeof *exit_watch);
	int end[2] = {-1, -1}, ended[2] = {-1, -1};
	bool is_started = false;
	if (exit_watch && w.inotify_fd >= 0 && pipe2(end, O_CLOEXEC) == 0 && pipe2(ended, O_CLOEXEC) == 0) {
		watch_folder(&w, folder, IN_CREATE | IN_MOVED_TO);
		is_started = start_watcher(&w, end, ended);
	}
	if (w.inotify_fd >= 0)
		close(w.inotify_fd);
	for (size_t i = 0; i < MAX_FOLDERS; i++)
		free(w.folders[i]);
	close_both(end[0], ended[1]);
	if (!is_started) {
		close_both(end[1], ended[0]);
		free(exit_watch);
		return NULL;
	}
	*exit_watch = (struct exit_watch){.end_fd = end[1], .ended_fd = ended[0]};
	return exit_watch;
}

void exit_watch_end(struct exit_watch *exit_watch)
{
	char byte;
	if (!exit_watch)
		return;
	close(exit_watch->end_fd);
	while (read(exit_watch->ended_fd, &byte, 1) < 0 && errno == EINTR)
		;
	close(exit_watch->ended_fd);
	free(exit_watch);
}
