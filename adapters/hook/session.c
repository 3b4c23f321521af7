/* session.c: starts the recording of this process as the environment variable WEFT_RECORD asks.
 *
 *	WEFT_RECORD=DIR[,size=BYTES][,mode=ring|grow][,packets=N][,stacks=N][,memory=BYTES][,standby]
 *
 * `weft record` sets this variable, and all processes of the command inherit it.  A process that calls no wrapped function makes
 * no file. directory.c names the directories of traces.  On standby a process starts to record when `weft on` asks it to
 * (wire/standby.h).  The state then becomes WAITING, and each recording makes a new directory.  SPDX-License-Identifier: ISC */
#include "adapters/hook/session.h"

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

#include "adapters/hook/callers.h"
#include "adapters/hook/directory.h"
#include "adapters/hook/load.h"
#include "adapters/hook/memory.h"
#include "adapters/hook/signals.h"
#include "adapters/hook/thread.h"
#include "wire/standby.h"

static enum { DISABLED, WAITING, RECORDING, FAILED, STANDBY } state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct weft_record_options options;
	unsigned stacks;
	uint32_t memory_period_bytes; /* 0: allocations are not sampled */
} requested;

static pid_t process; /* id of this process, by which the child of a vfork() is recognised */

/* The trace of this process, if one is recorded. */
static struct {
	char path[PATH_MAX];
	pid_t process;
	bool is_current; /* whether this file has started the present recording, if there is one */
} session;

unsigned weft__hook_stack_depth;

void weft__hook_stack(weft_id promise, const void *caller)
{
	enum { WRAPPER_FRAMES = 8 }; /* upper bound of the number of frames between the caller of a wrapper and this function */
	void *frames[WEFT_STACK_MAX + WRAPPER_FRAMES];
	unsigned most = weft__hook_stack_depth < WEFT_STACK_MAX ? weft__hook_stack_depth : WEFT_STACK_MAX;
	int saved = errno, count = backtrace(frames, (int)most + WRAPPER_FRAMES), first = 0;
	while (first < count && frames[first] != caller)
		first++;
	unsigned found = (unsigned)(count - first) < most ? (unsigned)(count - first) : most;
	if (found)
		weft_stack(promise, (const void *const *)frames + first, found);
	errno = saved;
}

static void set_state(int now)
{
	__atomic_store_n(&weft__hook_gate, now == WAITING || now == RECORDING || now == STANDBY, __ATOMIC_RELAXED);
	__atomic_store_n(&state, now, __ATOMIC_RELEASE);
}

enum weft__hook_js weft__hook_js = WEFT_HOOK_JS_PROMISES;
enum weft_hook_python weft__hook_python = WEFT_HOOK_PYTHON_ALL;

static void parse_options(char *text)
{
	char *save = NULL;
	strtok_r(text, ",", &save);
	for (char *word; (word = strtok_r(NULL, ",", &save));) {
		if (!strncmp(word, "size=", 5))
			requested.options.size_bytes = strtoull(word + 5, NULL, 10);
		else if (!strncmp(word, "packets=", 8))
			requested.options.packets = (unsigned)strtoul(word + 8, NULL, 10);
		else if (!strncmp(word, "stacks=", 7))
			requested.stacks = weft__hook_stack_depth = (unsigned)strtoul(word + 7, NULL, 10);
		else if (!strncmp(word, "memory=", 7))
			requested.memory_period_bytes = (uint32_t)strtoul(word + 7, NULL, 10);
		else if (!strcmp(word, "js=off"))
			weft__hook_js = WEFT_HOOK_JS_OFF;
		else if (!strcmp(word, "js=http"))
			weft__hook_js = WEFT_HOOK_JS_LINES;
		else if (!strcmp(word, "js=all"))
			weft__hook_js = WEFT_HOOK_JS_ALL;
		else if (!strcmp(word, "python=tasks"))
			weft__hook_python = WEFT_HOOK_PYTHON_TASKS;
		else if (!strcmp(word, "python=off"))
			weft__hook_python = WEFT_HOOK_PYTHON_OFF;
		else if (!strcmp(word, "standby"))
			weft__hook_is_standby = true;
		else if (!strcmp(word, "mode=grow"))
			requested.options.mode = WEFT_RECORD_GROW;
	}
}

/* Changes the owner of the trace's files NAME0, NAME1, ...  Returns whether there is any such file. */
static bool give_files_to_user(const char *name, uid_t user)
{
	char path[PATH_MAX + 48];
	unsigned i = 0;
	do
		snprintf(path, sizeof path, "%s/%s%u", session.path, name, i);
	while (lchown(path, user, (gid_t)-1) == 0 && ++i);
	return i > 0;
}

void weft__hook_give_to_user(uid_t user)
{
	int saved = errno;
	char path[PATH_MAX];
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	/* mkdir() must succeed, because any user may have made a directory that exists already.  If a daemon has no right to
	 * change owners, all users may create files in the folder, as in /tmp. */
	if (now != DISABLED && weft__hook_user_folder(path, user) && mkdir(path, 0700) == 0 && lchown(path, user, (gid_t)-1) &&
	    chmod(path, 01733))
		rmdir(path);
	if (now == RECORDING && session.process == getpid()) {
		char name[32];
		unsigned stream = 0;
		do
			snprintf(name, sizeof name, "stream-%u-", stream);
		while (give_files_to_user(name, user) && ++stream);
		give_files_to_user("definitions-", user);
		give_files_to_user("memory-", user);
		snprintf(path, sizeof path, "%.*s/metadata", PATH_MAX - 16, session.path);
		(void)!lchown(path, user, (gid_t)-1);
		(void)!lchown(
		    /* The directory's owner is changed last, so that no other user can change the directory before. */
		    session.path, user, (gid_t)-1);
	}
	errno = saved;
}

/* Returns the status of weft_start(), and sets *reason if the start failed. */
static int start_with_options(const struct weft_record_options *options, const char **reason)
{
	char path[PATH_MAX];
	*reason = "its trace directory cannot be created";
	if (!weft__hook_make_trace_directory(path))
		return WEFT_EACCES;
	struct weft_record_options o = *options;
	o.directory = path;
	o.runtimes = weft__hook_report(); /* text that grows when more runtimes are loaded */
	int status = weft_start(&o);
	*reason = weft_start_error();
	if (status < 0) {
		rmdir(path);
		if (!weft__hook_is_standby)
			weft__hook_write_trace_failure(path, *reason);
		return status;
	}
	strcpy(session.path, path);
	session.process = getpid();
	session.is_current = true;
	return status;
}

/* Tries to start the recording.  Returns the new state. */
static int start_recording(void)
{
	const char *reason;
	if (!weft__hook_is_standby)
		return weft_is_on() || start_with_options(&requested.options, &reason) == WEFT_OK ? RECORDING : FAILED;
	struct weft_record_options options = requested.options;
	unsigned stacks = requested.stacks;
	if (!weft__standby_asked(&options, &stacks))
		return STANDBY;
	weft__hook_stack_depth = stacks;
	int status = weft_is_on() ? WEFT_EBUSY : start_with_options(&options, &reason);
	weft__standby_answer(status, status == WEFT_EBUSY ? "the program already records itself" : reason);
	return status == WEFT_OK ? RECORDING : STANDBY;
}

static void handle_stop(bool again)
{
	session.is_current = false;
	set_state(again ? WAITING : STANDBY);
}

/* Returns whether the address is readable: rt_sigprocmask() reads the set of signals before it rejects an invalid operation. */
static bool is_address_readable(uintptr_t address)
{
	enum { NO_OPERATION = -1, SET_BYTES = 8 };
	return syscall(SYS_rt_sigprocmask, NO_OPERATION, address / SET_BYTES * SET_BYTES, NULL, SET_BYTES) == 0 ||
	       errno != EFAULT;
}

bool weft_hook_is_readable(const void *memory, size_t size)
{
	enum { MIN_PAGE_BYTES = 4096 };
	int saved = errno;
	uintptr_t first = (uintptr_t)memory, last = first + size - 1;
	bool is = is_address_readable(first) && (first / MIN_PAGE_BYTES == last / MIN_PAGE_BYTES || is_address_readable(last));
	errno = saved;
	return is;
}

void weft__hook_before_chroot(void)
{
	int saved = errno;
	if (process == getpid() && weft__hook_has_runtime() && weft_hook_begin())
		weft_hook_thread();
	errno = saved;
}

static void forget_earlier_recording(void)
{
	static bool had_recording;
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; had_recording && *a; a++)
		if ((*a)->forget)
			(*a)->forget();
	had_recording = true;
}

bool weft__hook_begin(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != WAITING)
		return false;
	int saved = errno;
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	/* A process that has asked for the recording may store WAITING once more after the start. */
	const bool is_late = state == WAITING && session.is_current && weft_is_on();
	const bool begins = state == WAITING && !is_late;
	if (is_late)
		set_state(RECORDING);
	if (begins) {
		/* The first call of backtrace() loads a library, which must not happen in a wrapper that interrupted other code,
		 * so it is called here.
		 */
		void *frame;
		if (weft__hook_stack_depth || weft__hook_is_standby)
			backtrace(&frame, 1);
		weft__hook_threads_forget();
		forget_earlier_recording();
		set_state(start_recording());
	}
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	if (begins && weft_is_on())
		weft__hook_threads_begin();
	errno = saved;
	return weft_is_on();
}

static void notify_adapters(enum weft_hook_fork when)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->fork)
			(*a)->fork(when);
}

static void before_fork(void)
{
	notify_adapters(WEFT_HOOK_BEFORE_FORK);
	pthread_mutex_lock(&lock);
	weft__hook_lock_around_fork(WEFT_HOOK_BEFORE_FORK);
}

static void in_parent(void)
{
	weft__hook_lock_around_fork(WEFT_HOOK_IN_PARENT);
	pthread_mutex_unlock(&lock);
	notify_adapters(WEFT_HOOK_IN_PARENT);
}

static void in_child(void)
{
	weft__hook_lock_around_fork(WEFT_HOOK_IN_CHILD);
	weft__hook_threads_forget();
	process = getpid();
	session.is_current = false;
	set_state(weft__hook_is_standby ? STANDBY : WAITING);
	pthread_mutex_unlock(&lock);
	notify_adapters(WEFT_HOOK_IN_CHILD);
}

/* A symbol that exists in programs with MemorySanitizer.  MemorySanitizer's versions of libc's functions check memory that this
 * library wrote, take it for uninitialised, and end the program. */
extern void __msan_init(void) __attribute__((weak)); /* NOLINT(bugprone-reserved-identifier) */

/* Prepares this process for a session.  Returns whether it should record. */
static bool enter_session(const char *text)
{
	if (__msan_init)
		return false;
	bool wanted = text && text[0] == '/' && strlen(text) < sizeof weft__hook_directory;
	process = getpid();
	if (wanted) {
		strcpy(weft__hook_directory, text);
		parse_options(weft__hook_directory);
		pthread_atfork(before_fork, in_parent, in_child);
	}
	static const struct weft__standby_host host = {.gate = &state,
	    .gate_on = WAITING,
	    .waits_begin = weft__hook_waits_begin,
	    .waits_end = weft__hook_waits_end,
	    .wakes = &weft__hook_wake_count,
	    .stopped = handle_stop};
	if (wanted && weft__hook_is_standby)
		wanted = weft__standby_as(&host);
	if (weft__hook_is_standby)
		weft__hook_standby_since = weft_now();
	set_state(!wanted ? DISABLED : weft__hook_is_standby ? STANDBY : WAITING);
	return wanted;
}

bool weft__hook_attach_session(const char *text, bool is_known, bool searches)
{
	if (weft_is_on() || strlen(text) >= sizeof weft__hook_directory)
		return is_known;
	if (is_known) {
		strcpy(weft__hook_directory, text);
		parse_options(weft__hook_directory);
	} else if (state == DISABLED && enter_session(text)) {
		weft__hook_threads_init();
	} else {
		return false;
	}
	if (searches)
		weft__hook_load();
	return true;
}

/* Without the environment variable WEFT_RECORD, this library does nothing. */
__attribute__((constructor)) static void begin_session(void)
{
	int saved = errno;
	if (enter_session(secure_getenv("WEFT_RECORD"))) {
		weft__hook_threads_init();
		weft__hook_load();
		if (requested.memory_period_bytes)
			weft__hook_memory_begin(requested.memory_period_bytes, weft__hook_was_single_threaded());
		if (weft__hook_is_instrumented)
			weft_hook_begin();
	}
	errno = saved;
}
