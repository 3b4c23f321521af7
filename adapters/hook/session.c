/* session.c: where this process records to, and when that begins.
 *
 *	WEFT_RECORD=DIR[,size=BYTES][,mode=ring|grow][,packets=N][,stacks=N][,standby]
 *
 * is what `weft record` leaves in the environment, which every process inherits that the command starts.  A process that calls
 * nothing of any adapter makes no file.  One that does makes DIR/NAME-PID, and where that is there already, since another program
 * ran in the same process before, DIR/NAME-PID.2.  In a session of root's a process of another user makes DIR/uid-USER/NAME-PID
 * (user.c).  With `standby` it makes one when it is told to (wire/standby.h), by state, which becomes WAITING; each time anew.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/hook/load.h"
#include "adapters/hook/sleep.h"
#include "adapters/hook/thread.h"
#include "wire/standby.h"

enum { MOST_IN_PROCESS = 10000 };

static enum { UNWANTED, WAITING, BEGUN, FAILED, STANDING_BY } state;
unsigned weft__hook_gate = 1; /* until all that the calls of libc go on by has been looked up */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	char directory[PATH_MAX];
	struct weft_record_options options;
	unsigned stacks;
} wanted;

bool weft__hook_stands_by;
uint64_t weft__hook_since;

static pid_t process; /* this one; a child of vfork() is another */

/* The trace that this process records, and who that is. */
static struct {
	char path[PATH_MAX];
	pid_t process;
} own;

unsigned weft__hook_stacks;

void weft__hook_stack(weft_id promise, const void *caller)
{
	enum { INNER = 8 }; /* frames of wrappers */
	void *frames[WEFT_STACK_MAX + INNER];
	unsigned most = weft__hook_stacks < WEFT_STACK_MAX ? weft__hook_stacks : WEFT_STACK_MAX;
	int saved = errno, count = backtrace(frames, (int)most + INNER), first = 0;
	while (first < count && frames[first] != caller)
		first++;
	unsigned found = (unsigned)(count - first) < most ? (unsigned)(count - first) : most;
	if (found)
		weft_stack(promise, (const void *const *)frames + first, found);
	errno = saved;
}

static void set_state(int now)
{
	__atomic_store_n(&weft__hook_gate, now == WAITING || now == BEGUN || now == STANDING_BY, __ATOMIC_RELAXED);
	__atomic_store_n(&state, now, __ATOMIC_RELEASE);
}

static void parse(char *text)
{
	char *save = NULL;
	strtok_r(text, ",", &save);
	for (char *word; (word = strtok_r(NULL, ",", &save));) {
		if (!strncmp(word, "size=", 5))
			wanted.options.size_bytes = strtoull(word + 5, NULL, 10);
		else if (!strncmp(word, "packets=", 8))
			wanted.options.packets = (unsigned)strtoul(word + 8, NULL, 10);
		else if (!strncmp(word, "stacks=", 7))
			wanted.stacks = weft__hook_stacks = (unsigned)strtoul(word + 7, NULL, 10);
		else if (!strcmp(word, "standby"))
			weft__hook_stands_by = true;
		else if (!strcmp(word, "mode=grow"))
			wanted.options.mode = WEFT_RECORD_GROW;
	}
}

/* The program's name, with nothing in it that means something in the name of a trace. */
static void get_name(char name[16])
{
	name[0] = 0;
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, name, 15);
	if (fd >= 0)
		close(fd);
	name[n < 0 ? 0 : n] = 0;
	name[strcspn(name, "\n")] = 0;
	for (char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || strchr("/,%", *c) || *c == 0x7f)
			*c = '_';
	if (!name[0] || name[0] == '.')
		memcpy(name, "program", 8);
}

/* 0, or an error number. */
static int make_once(const char *path, const char *folder)
{
	/* A command that ends meanwhile removes the folder if it finds it empty. */
	for (int tries = 0; mkdir(path, 0700); tries++) {
		if (errno != ENOENT || tries == 4)
			return errno;
		if (mkdir(folder, 0700) && errno != EEXIST)
			return errno;
	}
	return 0;
}

/* DIR/uid-USER; false: too long. */
static bool folder_of(char path[PATH_MAX], uid_t user)
{
	return snprintf(path, PATH_MAX, "%s/uid-%lu", wanted.directory, (unsigned long)user) < PATH_MAX;
}

/* Makes a directory of this program's own; 0, or an error number. */
static int make_in(const char *folder, const char *what, char path[PATH_MAX])
{
	char name[16];
	get_name(name);
	for (int i = 1; i < MOST_IN_PROCESS; i++) {
		char again[16] = "";
		if (i > 1)
			snprintf(again, sizeof again, ".%d", i);
		int n = snprintf(path, PATH_MAX, "%s/%s-%ld%s%s", folder, name, (long)getpid(), what, again);
		int status = n < PATH_MAX ? make_once(path, folder) : ENAMETOOLONG;
		if (status != EEXIST)
			return status;
	}
	return EEXIST;
}

static bool make_directory(char path[PATH_MAX])
{
	char users[PATH_MAX];
	int status = make_in(wanted.directory, "", path);
	if (status == EACCES && folder_of(users, geteuid()))
		status = make_in(users, "", path);
	return status == 0;
}

bool weft__hook_make_folder(char path[PATH_MAX], const char *what)
{
	return weft__hook_gate && !weft__hook_stands_by && make_in(wanted.directory, what, path) == 0;
}

/* Files that are called like that from 0 on. */
static bool give_files(const char *name, uid_t user)
{
	char path[PATH_MAX + 48];
	unsigned i = 0;
	do
		snprintf(path, sizeof path, "%s/%s%u", own.path, name, i);
	while (lchown(path, user, (gid_t)-1) == 0 && ++i);
	return i > 0;
}

void weft__hook_give(uid_t user)
{
	int saved = errno;
	char path[PATH_MAX];
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	/* Made anew: what was there under that name before may be anybody's.  A daemon that has given up the right to give files
	 * away lets all users put theirs there, as in /tmp. */
	if (now != UNWANTED && folder_of(path, user) && mkdir(path, 0700) == 0 && lchown(path, user, (gid_t)-1) &&
	    chmod(path, 01733))
		rmdir(path);
	if (now == BEGUN && own.process == getpid()) {
		char name[32];
		unsigned stream = 0;
		do
			snprintf(name, sizeof name, "stream-%u-", stream);
		while (give_files(name, user) && ++stream);
		give_files("definitions-", user);
		snprintf(path, sizeof path, "%.*s/metadata", PATH_MAX - 16, own.path);
		(void)!lchown(path, user, (gid_t)-1);
		(void)!lchown(own.path, user, (gid_t)-1); /* last: until now nobody else could have changed what is in it */
	}
	errno = saved;
}

/* `weft record` reads it to its user: nothing is printed in somebody else's program. */
static void leave_word(const char *path, const char *why)
{
	char file[PATH_MAX + 16];
	snprintf(file, sizeof file, "%s.failed", path);
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", why);
	close(fd);
}

void weft__hook_leave_word(const char *why)
{
	char name[16], path[PATH_MAX];
	get_name(name);
	if (snprintf(path, sizeof path, "%s/%s-%ld", wanted.directory, name, (long)getpid()) < (int)sizeof path)
		leave_word(path, why);
}

/* A status of weft_start(), and why it is none of success. */
static int start_as(const struct weft_record_options *options, const char **why)
{
	char path[PATH_MAX];
	*why = "its directory cannot be made";
	if (!make_directory(path))
		return WEFT_EACCES;
	struct weft_record_options o = *options;
	o.directory = path;
	o.runtimes = weft__hook_report(); /* runtimes may come later */
	int status = weft_start(&o);
	*why = weft_start_error();
	if (status < 0) {
		rmdir(path);
		if (!weft__hook_stands_by)
			leave_word(path, *why);
		return status;
	}
	strcpy(own.path, path);
	own.process = getpid();
	return status;
}

/* Returns what becomes of the state. */
static int start(void)
{
	const char *why;
	if (!weft__hook_stands_by)
		return weft_is_on() || start_as(&wanted.options, &why) == WEFT_OK ? BEGUN : FAILED;
	struct weft_record_options options = wanted.options;
	unsigned stacks = wanted.stacks;
	if (!weft__standby_asked(&options, &stacks))
		return STANDING_BY;
	weft__hook_stacks = stacks;
	int status = weft_is_on() ? WEFT_EBUSY : start_as(&options, &why);
	weft__standby_answer(status, status == WEFT_EBUSY ? "the program records by itself" : why);
	return status == WEFT_OK ? BEGUN : STANDING_BY;
}

static void stopped(bool again)
{
	set_state(again ? WAITING : STANDING_BY);
}

void weft__hook_block_signals(sigset_t *before)
{
	sigset_t every;
	sigfillset(&every);
	sigdelset(&every, SIGBUS); /* the recorder's own, of a file that was truncated */
	pthread_sigmask(SIG_SETMASK, &every, before);
}

void weft__hook_restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* The kernel reads the set of signals, and only then sees that there is nothing that it could do with it. */
static bool is_readable(uintptr_t address)
{
	enum { NOTHING = -1, SET_BYTES = 8 };
	return syscall(SYS_rt_sigprocmask, NOTHING, address / SET_BYTES * SET_BYTES, NULL, SET_BYTES) == 0 || errno != EFAULT;
}

bool weft_hook_is_readable(const void *memory, size_t size)
{
	enum { LEAST_PAGE = 4096 };
	int saved = errno;
	uintptr_t first = (uintptr_t)memory, last = first + size - 1;
	bool is = is_readable(first) && (first / LEAST_PAGE == last / LEAST_PAGE || is_readable(last));
	errno = saved;
	return is;
}

void weft__hook_leaves_root(void)
{
	int saved = errno;
	if (process == getpid() && weft__hook_has_runtime() && weft_hook_begin())
		weft_hook_thread();
	errno = saved;
}

static void forget_earlier(void)
{
	static bool is_another;
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; is_another && *a; a++)
		if ((*a)->forget)
			(*a)->forget();
	is_another = true;
}

bool weft__hook_begin(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != WAITING)
		return false;
	int saved = errno;
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	bool begins = state == WAITING;
	if (begins) {
		/* The first call of backtrace() loads a library: not in a wrapper that a signal handler may have interrupted. */
		void *frame;
		if (weft__hook_stacks || weft__hook_stands_by)
			backtrace(&frame, 1);
		weft__hook_threads_forget();
		forget_earlier();
		set_state(start());
	}
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	if (begins && weft_is_on())
		weft__hook_threads_begin();
	errno = saved;
	return weft_is_on();
}

static void tell_adapters(enum weft_hook_fork when)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->fork)
			(*a)->fork(when);
}

static void before_fork(void)
{
	tell_adapters(WEFT_HOOK_BEFORE_FORK);
	pthread_mutex_lock(&lock);
	weft__hook_around_fork(WEFT_HOOK_BEFORE_FORK);
}

static void in_parent(void)
{
	weft__hook_around_fork(WEFT_HOOK_IN_PARENT);
	pthread_mutex_unlock(&lock);
	tell_adapters(WEFT_HOOK_IN_PARENT);
}

static void in_child(void)
{
	weft__hook_around_fork(WEFT_HOOK_IN_CHILD);
	weft__hook_threads_forget();
	process = getpid();
	set_state(weft__hook_stands_by ? STANDING_BY : WAITING);
	pthread_mutex_unlock(&lock);
	tell_adapters(WEFT_HOOK_IN_CHILD);
}

bool weft__hook_is_wanted(void)
{
	const char *text = secure_getenv("WEFT_RECORD");
	bool is_wanted = text && text[0] == '/' && strlen(text) < sizeof wanted.directory;
	process = getpid();
	if (is_wanted) {
		strcpy(wanted.directory, text);
		parse(wanted.directory);
		pthread_atfork(before_fork, in_parent, in_child);
	}
	static const struct weft__standby_host host = {.gate = &state,
	    .gate_on = WAITING,
	    .waits_begin = weft__hook_waits_begin,
	    .waits_end = weft__hook_waits_end,
	    .wakes = &weft__hook_wake_count,
	    .stopped = stopped};
	if (is_wanted && weft__hook_stands_by)
		is_wanted = weft__standby_as(&host);
	if (weft__hook_stands_by)
		weft__hook_since = weft_now();
	set_state(!is_wanted ? UNWANTED : weft__hook_stands_by ? STANDING_BY : WAITING);
	return is_wanted;
}
