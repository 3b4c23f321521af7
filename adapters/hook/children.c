/* children.c: records child processes that the program starts without a runtime, until the program waits for them.
 *
 * The kernel keeps a child process that has ended until its parent waits for it.  When the program ends or starts another child,
 * this file asks the kernel which earlier children have ended, and leaves their exit status to the program.
 * SPDX-License-Identifier: ISC
 */
#include "adapters/hook/children.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/exec.h"
#include "adapters/hook/label.h"
#include "adapters/hook/libc.h"
#include "adapters/hook/preload.h"
#include "adapters/hook/thread.h"
#include "base/known_strings.h"

enum { MAX_CHILDREN = 256 };

/* A child process that the program has not waited for. pid 0 marks a free entry; pid -1 marks an entry that a thread is
 * filling. */
static struct child {
	pid_t pid; /* atomic */
	unsigned epoch;
	bool is_told; /* its end is recorded */
	weft_id id;
} children[MAX_CHILDREN];

#define CALLS(X)                                                                                                                 \
	X(posix_spawn, int,                                                                                                      \
	    (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,                \
		char *const *),                                                                                                  \
	    NULL)                                                                                                                \
	X(posix_spawnp, int,                                                                                                     \
	    (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,                \
		char *const *),                                                                                                  \
	    NULL)                                                                                                                \
	X(fork, pid_t, (void), NULL)

static struct {
	CALLS(LIBC_POINTER)
} real;

__attribute__((constructor(101))) static void resolve_calls(void)
{
	if (real.fork)
		return;
	int saved = errno;
	CALLS(LIBC_RESOLVE)
	errno = saved;
}

static bool is_of_this_recording(const struct child *child, pid_t pid)
{
	return pid > 0 && child->epoch == weft__hook_epoch;
}

void weft__hook_children_check(void)
{
	const int saved = errno;
	for (unsigned i = 0; i < MAX_CHILDREN; i++) {
		struct child *child = &children[i];
		pid_t pid = __atomic_load_n(&child->pid, __ATOMIC_ACQUIRE);
		siginfo_t info = {.si_pid = 0};
		if (!is_of_this_recording(child, pid) || child->is_told)
			continue;
		const int status = (int)syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, NULL);
		if (status == 0 && info.si_pid == pid) {
			child->is_told = true;
			WEFT_LABEL(child->id, WEFT_STRING_NOT_WAITED_FOR);
		} else if (status < 0 && errno == ECHILD) {
			/* The program has told the kernel to forget its ended children, so no wait will report them. */
			weft__hook_child_ended(pid);
		}
	}
	errno = saved;
}

void weft__hook_child_ended(pid_t pid)
{
	const int saved = errno;
	for (unsigned i = 0; i < MAX_CHILDREN && pid > 0; i++) {
		pid_t found = pid;
		const weft_id id = children[i].id;
		if (__atomic_load_n(&children[i].pid, __ATOMIC_ACQUIRE) == pid && is_of_this_recording(&children[i], pid) &&
		    __atomic_compare_exchange_n(&children[i].pid, &found, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
		    weft_is_on())
			weft_resolve(weft_hook_thread()->running, id);
	}
	errno = saved;
}

/* Records a child process that the program has just started; `name` may be NULL. */
static void begin_child(pid_t pid, const char *name, const void *caller)
{
	const int saved = errno;
	struct weft_hook_label label = {0};
	if (weft__hook_is_instrumented || weft__hook_language.find_line || weft__hook_is_runtime(caller) ||
	    weft__hook_is_recorder(caller))
		return; /* a runtime's adapter records the processes that the runtime starts */
	weft__hook_children_check();
	for (unsigned i = 0; i < MAX_CHILDREN; i++) {
		struct child *child = &children[i];
		pid_t old = __atomic_load_n(&child->pid, __ATOMIC_ACQUIRE);
		if ((old > 0 && child->epoch == weft__hook_epoch) || old < 0 ||
		    !__atomic_compare_exchange_n(&child->pid, &old, -1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		child->epoch = weft__hook_epoch;
		child->is_told = false;
		struct weft_record_place *place;
		child->id = weft_hook_create(weft_hook_thread()->running, WEFT_KIND_PROCESS, caller, &place);
		if (name)
			weft_hook_append(&label, name);
		if (name)
			weft_hook_record_label(&label, child->id);
		__atomic_store_n(&child->pid, pid, __ATOMIC_RELEASE);
		break;
	}
	errno = saved;
}

/* Returns whether a name leads to the same program from any folder: actions may change the folder of the child. */
static bool is_of_any_folder(const char *file, bool searches)
{
	return file && (*file == '/' || (searches && !strchr(file, '/')));
}

#define SPAWN(NAME, SEARCHES)                                                                                                    \
	EXPORTED int NAME(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,                               \
	    const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment)                               \
	{                                                                                                                        \
		ENSURE_RESOLVED(NAME)                                                                                            \
		pid_t started = 0;                                                                                               \
		if (!actions || is_of_any_folder(file, SEARCHES))                                                                \
			weft__hook_note_program(file, SEARCHES);                                                                 \
		const size_t bytes = weft__hook_bytes_without_library(environment);                                              \
		char *const *variables =                                                                                         \
		    bytes ? weft__hook_copy_without_library(__builtin_alloca(bytes), bytes, environment) : environment;          \
		const int result = real.NAME(pid ? pid : &started, file, actions, attributes, arguments, variables);             \
		if (result == 0 && is_recorded())                                                                                \
			begin_child(pid ? *pid : started, file, __builtin_return_address(0));                                    \
		return result;                                                                                                   \
	}
SPAWN(posix_spawn, false)
SPAWN(posix_spawnp, true)

EXPORTED pid_t fork(void)
{
	ENSURE_RESOLVED(fork)
	const pid_t result = real.fork();
	if (result > 0 && is_recorded())
		begin_child(result, NULL, __builtin_return_address(0));
	return result;
}
