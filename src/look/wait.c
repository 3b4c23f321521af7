/* wait.c: finds out what a blocked syscall waits for.
 *
 * The function that contains the syscall shows what a futex is; without symbols, the syscall's arguments and the words around
 * the futex show it.  The layouts are those of glibc's pthread.h, which are part of the ABI, and of the condition variable since
 * glibc 2.25.
 * SPDX-License-Identifier: ISC */
#include "look/wait.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cursor.h"

/* Meaning of a syscall's first argument. */
enum argument { NOTHING, DESCRIPTOR, POLLED, PATH, SECOND_PATH, CHILD };

struct call {
	long number;
	const char *name;
	enum weft_kind kind;
	enum argument argument;
	/* N: argument n is a timeout in ms, none if it is negative; -n: argument n is a pointer to a timeout, none if it is
	 * NULL; 0: the syscall has no timeout. */
	int limit;
};

#define CALL(name, kind, argument, limit)                                                                                        \
	{                                                                                                                        \
		SYS_##name, #name, WEFT_KIND_##kind, argument, limit                                                             \
	}

static const struct call calls[] = {
    CALL(read, STREAM_READ, DESCRIPTOR, 0),
    CALL(pread64, STREAM_READ, DESCRIPTOR, 0),
    CALL(readv, STREAM_READ, DESCRIPTOR, 0),
    CALL(recvfrom, STREAM_READ, DESCRIPTOR, 0),
    CALL(recvmsg, STREAM_READ, DESCRIPTOR, 0),
    CALL(recvmmsg, STREAM_READ, DESCRIPTOR, 0),
    CALL(write, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(pwrite64, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(writev, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(sendto, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(sendmsg, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(sendfile, STREAM_WRITE, DESCRIPTOR, 0),
    CALL(splice, STREAM_READ, DESCRIPTOR, 0),
    CALL(accept, ACCEPT, DESCRIPTOR, 0),
    CALL(accept4, ACCEPT, DESCRIPTOR, 0),
    CALL(connect, CONNECT, DESCRIPTOR, 0),
    CALL(ppoll, POLL, POLLED, -2),
    CALL(pselect6, POLL, NOTHING, -4),
    CALL(epoll_pwait, POLL, DESCRIPTOR, 3),
    CALL(nanosleep, TIMER, NOTHING, 0),
    CALL(clock_nanosleep, TIMER, NOTHING, 0),
    CALL(wait4, PROCESS, CHILD, 0),
    CALL(waitid, PROCESS, NOTHING, 0),
    CALL(openat, FS, SECOND_PATH, 0),
    CALL(fsync, FS, DESCRIPTOR, 0),
    CALL(fdatasync, FS, DESCRIPTOR, 0),
    CALL(flock, FS, DESCRIPTOR, 0),
    CALL(fcntl, FS, DESCRIPTOR, 0),
    CALL(ioctl, FS, DESCRIPTOR, 0),
    CALL(rt_sigtimedwait, OS_SIGNAL, NOTHING, -2),
    CALL(rt_sigsuspend, OS_SIGNAL, NOTHING, 0),
    CALL(msgrcv, STREAM_READ, NOTHING, 0),
    CALL(semtimedop, CONDITION, NOTHING, 0),
    CALL(io_getevents, POLL, NOTHING, 0),
#ifdef SYS_io_uring_enter
    CALL(io_uring_enter, POLL, DESCRIPTOR, 0),
#endif
#ifdef SYS_poll
    CALL(poll, POLL, POLLED, 2),
    CALL(select, POLL, NOTHING, -4),
    CALL(epoll_wait, POLL, DESCRIPTOR, 3),
    CALL(open, FS, PATH, 0),
    CALL(pause, OS_SIGNAL, NOTHING, 0),
#endif
#ifdef SYS_epoll_pwait2
    CALL(epoll_pwait2, POLL, DESCRIPTOR, -3),
#endif
};

enum sort { OTHER, MUTEX, CONDITION, RWLOCK, SEMAPHORE, JOIN, BARRIER, ONCE, INTERNAL };

/* Starts of names of functions, and the type of the futex in each function.  The first match decides. */
static const struct {
	const char *name;
	enum sort sort;
} functions[] = {
    {"__lll_lock_wait_private", INTERNAL},
    {"pthread_mutex_", MUTEX},
    {"lll_lock_wait", MUTEX},
    {"lll_mutex_lock", MUTEX},
    {"pthread_cond_", CONDITION},
    {"cnd_", CONDITION},
    {"mtx_", MUTEX},
    {"pthread_rwlock_", RWLOCK},
    {"new_sem_", SEMAPHORE},
    {"sem_", SEMAPHORE},
    {"pthread_join", JOIN},
    {"pthread_timedjoin", JOIN},
    {"pthread_clockjoin", JOIN},
    {"thrd_join", JOIN},
    {"pthread_barrier_", BARRIER},
    {"pthread_once", ONCE},
    {"call_once", ONCE},
    {"cxa_guard_acquire", ONCE},
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static const char *function_of(const struct look_thread *thread, size_t frame)
{
	const char *name = frame < thread->stack.frame_count ? thread->stack.frames[frame].function : NULL;
	return name ? name : "";
}

static const char *skip_underscores(const char *name)
{
	return name + strspn(name, "_");
}

/* ---- Places ---- */

bool weft__look_is_libc(const struct look_target *t, const struct look_thread *thread, size_t frame)
{
	static const char *const files[] = {"libc.so", "libc-", "libpthread", "ld-linux", "libstdc++"};
	static const char *const names[] = {"_ZNSt", "_ZSt", "_ZNKSt", "__lll_", "__futex", "futex_", "__pthread_", "___pthread_",
	    "pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_join", "__new_sem_", "sem_", "__GI_", "__syscall",
	    "__libc_", "_IO_", "start_thread", "clone", "__clone", "_start", "__internal_syscall"};
	const struct weft_look_module *module = weft__look_module(t, thread->stack.frames[frame].address);
	const char *slash = module ? strrchr(module->path, '/') : NULL, *file = slash ? slash + 1 : "",
		   *name = function_of(thread, frame);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (starts_with(file, files[i]))
			return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (starts_with(name, names[i]))
			return true;
	return false;
}

static size_t find_place(const struct look_target *t, const struct look_thread *thread)
{
	for (size_t i = 0; i < thread->stack.frame_count; i++)
		if (!weft__look_is_libc(t, thread, i) && weft__look_module(t, thread->stack.frames[i].address))
			return i;
	return SIZE_MAX;
}

const char *weft__look_start_function(const struct look_target *t, const struct look_thread *thread)
{
	for (size_t i = thread->stack.frame_count; i-- > 0;)
		if (!weft__look_is_libc(t, thread, i))
			return thread->stack.frames[i].function;
	return NULL;
}

/* ---- Labels ---- */

__attribute__((format(printf, 2, 3))) static void add_text(char label[LOOK_LABEL], const char *format, ...)
{
	const size_t length = strlen(label);
	va_list args;
	va_start(args, format);
	vsnprintf(label + length, LOOK_LABEL - length, format, args);
	va_end(args);
}

static void add_fd(struct look_wait *out, const struct look_target *t, int64_t fd)
{
	char name[128];
	add_text(out->label, "fd %" PRId64, fd);
	if (t->name_fd && t->name_fd(t, fd, name, sizeof name))
		add_text(out->label, ": %s", name);
}

static void add_path(struct look_wait *out, const struct look_target *t, uint64_t address)
{
	char path[160];
	const size_t got = t->read(t, address, path, sizeof path - 1);
	path[got] = 0;
	for (char *c = path; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	if (got)
		add_text(out->label, " \"%s\"", path);
}

/* Adds the first descriptors that a syscall polls; the array was copied with the memory near the syscall's first argument. */
static void add_polled(struct look_wait *out, const struct look_target *t, const struct look_thread *thread)
{
	enum { ENTRY = 8, MAX_NAMED = 4 };
	const uint64_t count = thread->args[1];
	add_text(out->label, " of");
	for (uint64_t i = 0; i < count && i < MAX_NAMED && thread->has_near_behind; i++) {
		add_text(out->label, i ? ", " : " ");
		add_fd(out, t, (int32_t)weft_load_u32(thread->near + LOOK_NEAR_BEFORE + i * ENTRY));
	}
	if (!thread->has_near_behind)
		add_text(out->label, " %" PRIu64 " descriptors", count);
	else if (count > MAX_NAMED)
		add_text(out->label, " and %" PRIu64 " more", count - MAX_NAMED);
}

static void add_limit(struct look_wait *out, const struct look_thread *thread, const struct call *call)
{
	const uint64_t limit = thread->args[call->limit < 0 ? -call->limit : call->limit];
	if (call->limit < 0 ? !limit : call->limit > 0 && (int32_t)limit < 0)
		add_text(out->label, ", without a limit");
	else if (call->limit > 0)
		add_text(out->label, ", up to %" PRId32 " ms", (int32_t)limit);
}

static void describe_call(struct look_wait *out, const struct look_target *t, const struct look_thread *thread)
{
	const struct call *call = NULL;
	for (size_t i = 0; i < sizeof calls / sizeof *calls && !call; i++)
		call = calls[i].number == thread->call ? &calls[i] : NULL;
	out->is_awaited = true;
	out->kind = call ? call->kind : WEFT_KIND_PROMISE;
	if (!call) {
		snprintf(out->label, LOOK_LABEL, "system call %ld", thread->call);
		return;
	}
	snprintf(out->label, LOOK_LABEL, "%s", call->name);
	switch (call->argument) {
	case NOTHING: break;
	case DESCRIPTOR:
		add_text(out->label, " of ");
		add_fd(out, t, (int32_t)thread->args[0]);
		break;
	case POLLED: add_polled(out, t, thread); break;
	case PATH: add_path(out, t, thread->args[0]); break;
	case SECOND_PATH: add_path(out, t, thread->args[1]); break;
	case CHILD:
		if ((int32_t)thread->args[0] > 0)
			add_text(out->label, " of child %" PRId32, (int32_t)thread->args[0]);
		break;
	}
	add_limit(out, thread, call);
}

/* ---- Futexes ---- */

static uint32_t near_word(const struct look_thread *thread, int offset)
{
	const bool is_there = offset < 0 ? thread->has_near_before : thread->has_near_behind;
	return is_there ? weft_load_u32(thread->near + LOOK_NEAR_BEFORE + offset) : 0;
}

static bool is_thread(const struct look_target *t, uint32_t own_tid)
{
	return own_tid && weft__look_thread(t, own_tid) != NULL;
}

/* Returns whether the words at a futex are those of a taken mutex with waiters; owner, users and kind must be plausible too.  In
 * a container the ids of threads are as small as the values of states and counters. */
static bool is_mutex(const struct look_target *t, const struct look_thread *thread)
{
	enum { OWNER = 8, USERS = 12, KIND = 16, MAX_KIND = 0x7f, TAKEN_WITH_WAITERS = 2 };
	const uint32_t op = (uint32_t)thread->args[1] & (uint32_t)FUTEX_CMD_MASK, users = near_word(thread, USERS);
	return op == FUTEX_WAIT && thread->args[2] == TAKEN_WITH_WAITERS && is_thread(t, near_word(thread, OWNER)) && users > 0 &&
	       users <= 2 * t->threads.count && near_word(thread, KIND) <= MAX_KIND;
}

/* Returns whether a futex is the word of a thread that is being joined: the kernel clears this word and wakes its waiters when
 * the thread ends, so the wake-up is shared.  The word is in the memory of the joined thread's stack.  For the first thread, the
 * thread's descriptor is recognized by its pointers to itself, at the offset that glibc has on x86-64. */
static bool is_join(const struct look_target *t, const struct look_thread *thread)
{
	enum { TID = 720, SELF = 16, WORDS = 3 };
	const uint32_t op = (uint32_t)thread->args[1] & (uint32_t)FUTEX_CMD_MASK, value = (uint32_t)thread->args[2];
	const struct look_thread *joined = value ? weft__look_thread(t, value) : NULL;
	const struct look_map *map = joined ? weft__look_map(t, thread->args[0]) : NULL;
	const uint64_t descriptor = thread->args[0] - TID;
	uint64_t words[WORDS] = {0};
	if (op != FUTEX_WAIT_BITSET || thread->args[1] & FUTEX_PRIVATE_FLAG || !map)
		return false;
	return map == weft__look_map(t, joined->stack.registers[7]) ||
	       (t->read(t, descriptor, words, sizeof words) == sizeof words && words[0] == descriptor &&
		   words[SELF / 8] == descriptor);
}

static enum sort find_sort(const struct look_target *t, const struct look_thread *thread)
{
	enum { INNERMOST = 8 };
	for (size_t i = 0; i < thread->stack.frame_count && i < INNERMOST; i++) {
		const char *name = function_of(thread, i);
		for (size_t k = 0; *name && k < sizeof functions / sizeof *functions; k++) {
			const enum sort sort = functions[k].sort;
			if (starts_with(sort == INTERNAL ? name : skip_underscores(name), functions[k].name))
				/* A woken waiter of a condition takes the condition's mutex again, inside of the same
				 * function. */
				return sort == CONDITION && is_mutex(t, thread) ? MUTEX : sort;
		}
	}
	if (((uint32_t)thread->args[1] & (uint32_t)FUTEX_CMD_MASK) == FUTEX_LOCK_PI || is_mutex(t, thread))
		return MUTEX;
	return is_join(t, thread) ? JOIN : OTHER;
}

static void name_object(struct look_wait *out, const char *what, const char *symbol)
{
	if (symbol)
		snprintf(out->label, LOOK_LABEL, "%s%s%s", what, *what ? " " : "", symbol);
	else
		snprintf(out->label, LOOK_LABEL, "%s%s0x%" PRIx64, what, *what ? " " : "", out->object);
}

static void describe_mutex(
    struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	enum { OWNER = 8, KIND = 16, IS_ROBUST = 0x10, IS_INHERITING = 0x20, TID_BITS = 0x3fffffff };
	/* The futex word of a robust mutex, or of a mutex with priority inheritance, is the owner's id; the word of any other
	 * mutex is a state.
	 */
	const bool has_word = near_word(thread, KIND) & (IS_ROBUST | IS_INHERITING);
	out->kind = WEFT_KIND_LOCK;
	out->object = thread->args[0];
	out->owner = near_word(thread, has_word ? 0 : OWNER) & TID_BITS;
	name_object(out, "mutex", symbol);
}

/* The waiters of one condition use two futex words, one for each of its two groups; the word before them counts references. */
static void describe_condition(
    struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	const uint32_t waiters = near_word(thread, -4) >> 3;
	out->kind = WEFT_KIND_CONDITION;
	out->object = thread->args[0] - (waiters > 0 && waiters <= t->threads.count ? 0 : 4);
	name_object(out, "", symbol);
}

static void describe_rwlock(
    struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	enum { PHASE = 8, WRITERS = 12, CURRENT = 24 };
	const bool is_first = is_thread(t, near_word(thread, CURRENT - PHASE));
	const bool is_second = !is_first && is_thread(t, near_word(thread, CURRENT - WRITERS));
	out->kind = WEFT_KIND_LOCK;
	out->object = thread->args[0] - (is_second ? WRITERS : PHASE);
	out->owner = is_first ? near_word(thread, CURRENT - PHASE) : is_second ? near_word(thread, CURRENT - WRITERS) : 0;
	/* A word that says whether the lock is shared between processes could be mistaken for a thread's id. */
	if (!(thread->args[1] & FUTEX_PRIVATE_FLAG))
		out->owner = 0;
	name_object(out, "rwlock", symbol);
}

static void describe_untimed(
    struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	out->is_awaited = out->is_shared = true;
	out->object = thread->args[0];
	switch (find_sort(t, thread)) {
	case MUTEX: describe_mutex(out, t, thread, symbol); return;
	case CONDITION: describe_condition(out, t, thread, symbol); return;
	case RWLOCK: describe_rwlock(out, t, thread, symbol); return;
	case JOIN:
		out->joined = (int32_t)thread->args[2];
		out->is_awaited = is_thread(t, (uint32_t)thread->args[2]) && out->joined > 0;
		return;
	case SEMAPHORE:
		out->kind = WEFT_KIND_CONDITION;
		name_object(out, "semaphore", symbol);
		return;
	case BARRIER:
		out->kind = WEFT_KIND_CONDITION;
		name_object(out, "barrier", symbol);
		return;
	case ONCE:
		out->kind = WEFT_KIND_CONDITION;
		name_object(out, "first call", symbol);
		return;
	case INTERNAL:
		out->kind = WEFT_KIND_LOCK;
		name_object(out, "lock of the C library", symbol);
		return;
	case OTHER:
		out->kind = WEFT_KIND_CONDITION;
		name_object(out, "futex", symbol);
		return;
	}
}

static void describe_futex(
    struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	enum { LIMIT = 3 };
	describe_untimed(out, t, thread, symbol);
	if (!out->is_awaited || !thread->args[LIMIT])
		return;
	/* A wait with a timeout ends by itself, so it is no link of a deadlock. */
	if (out->joined)
		snprintf(out->label, LOOK_LABEL, "thread %" PRId64, out->joined);
	add_text(out->label, ", or a timeout");
	out->kind = WEFT_KIND_TIMER;
	out->is_shared = false;
	out->owner = out->joined = 0;
}

/* Returns the syscall that a restarted wait resumes after a stop: its arguments are unchanged, but its number is replaced. */
static long find_restarted(const struct look_thread *thread)
{
	enum { INNERMOST = 4 };
	for (size_t i = 0; i < thread->stack.frame_count && i < INNERMOST; i++) {
		const char *name = function_of(thread, i);
#ifdef SYS_poll
		if (strstr(name, "poll"))
			return SYS_poll;
#endif
		if (strstr(name, "nanosleep"))
			return SYS_clock_nanosleep;
		if (strstr(name, "futex") || strstr(name, "cond_") || strstr(name, "lock") || strstr(name, "sem_"))
			return SYS_futex;
	}
	const uint32_t op = (uint32_t)thread->args[1] & (uint32_t)FUTEX_CMD_MASK;
	return (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET) && thread->args[0] % 4 == 0 && thread->args[0] > 4096
		   ? SYS_futex
		   : SYS_clock_nanosleep;
}

void weft__look_wait(struct look_wait *out, const struct look_target *t, const struct look_thread *thread, const char *symbol)
{
	*out = (struct look_wait){.place = find_place(t, thread)};
	struct look_thread restarted;
	if (thread->call == SYS_restart_syscall) {
		restarted = *thread;
		restarted.call = find_restarted(thread);
		thread = &restarted;
	}
	if (thread->call < 0 || thread->state == 'X')
		return;
	if (thread->state == 'T' || thread->state == 't') {
		*out = (struct look_wait){.kind = WEFT_KIND_OS_SIGNAL, .is_awaited = true, .place = out->place};
		snprintf(out->label, LOOK_LABEL, "%s",
		    thread->state == 'T' ? "SIGCONT: a signal has stopped the thread"
					 : "the debugger that has stopped the thread");
		return;
	}
	if (thread->call == SYS_futex)
		describe_futex(out, t, thread, symbol);
	else
		describe_call(out, t, thread);
	const struct look_thread *owner = weft__look_thread(t, out->owner), *joined = weft__look_thread(t, out->joined);
	out->owner = owner ? owner->tid : 0;
	out->joined = joined ? joined->tid : 0;
}
