/* private.h: shared by the files of src/attach.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ATTACH_PRIVATE_H
#define WEFT_ATTACH_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "attach/attach.h"
#include "look/look.h"
#include "wire/attach.h"

enum {
	ATTACH_MAX_THREADS = 8192,
	SYSCALL_BYTES = 2, /* length of the instruction `syscall` */
};

struct attach_thread {
	pid_t tid;
	bool is_seized, is_stopped;
	int signal; /* signal that arrived during the stop, and that the thread gets when it is released; 0: none */
};

struct attach_target {
	pid_t pid;
	int memory_fd; /* descriptor of /proc/PID/mem */
	struct weft_look_modules *looked;
	const struct weft_look_module *modules;
	size_t module_count;
	size_t libc;       /* index of the module */
	bool *waits_again; /* for each module: whether its loop takes EINTR as an iteration without events; owned */
	struct attach_thread threads[ATTACH_MAX_THREADS];
	size_t thread_count;
};

int64_t weft__attach_now_ns(void);

static inline bool weft__attach_is_over(int64_t deadline_ns)
{
	return weft__attach_now_ns() >= deadline_ns;
}

bool weft__attach_read(const struct attach_target *t, uint64_t at, void *to, size_t bytes);
bool weft__attach_write(const struct attach_target *t, uint64_t at, const void *from, size_t bytes);

/* Returns the module that contains the address, or NULL. */
const struct weft_look_module *weft__attach_module(const struct attach_target *t, uint64_t address);

/* Returns the address of a symbol of libc; 0: none. */
uint64_t weft__attach_libc_symbol(const struct attach_target *t, const char *name);

/* ---- threads.c ---- */

/* Lists the OS threads of the process that are not listed yet.  Returns how many were added. */
size_t weft__attach_list_threads(struct attach_target *t);

/* Stops an OS thread, and passes signals on that arrive before.  Returns false if the thread has ended or does not stop in
 * time. */
bool weft__attach_stop(struct attach_thread *thread, int64_t deadline_ns);
void weft__attach_release(struct attach_thread *thread);

/* Stops all OS threads of the process, also those that start meanwhile.  Returns false if one does not stop in time; then all
 * run. */
bool weft__attach_stop_all(struct attach_target *t, int64_t deadline_ns);

/* Lets all OS threads run.  If `wakes`, the waits of runtimes that expect it end with EINTR, so that the next wait is
 * recorded. */
void weft__attach_release_all(struct attach_target *t, bool wakes);

/* Makes an interrupted wait, which would return EINTR, go on when the thread runs again: no signal handler has run. */
void weft__attach_hide_interruption(
    const struct attach_target *t, const struct attach_thread *thread, struct user_regs_struct *r);

/* Returns whether the system call waits for descriptors: poll(), epoll_wait() and the like. */
bool weft__attach_is_wait(long number);

/* ---- borrow.c ---- */

/* Runs weft_hook_attach(session) on a new OS thread of the program, and waits for its end.  If the library is not loaded yet,
 * the thread loads it; otherwise `function` is the address of weft_hook_attach().  *borrowed_ns is the time for which an OS
 * thread of the program was borrowed to start the new thread.  `kept` are parts of the program's memory that stay mapped for the
 * next attachment; 0: none. */
int weft__attach_run(struct attach_target *t, const char *library, uint64_t function, const char *session, uint64_t kept[2],
    int64_t *borrowed_ns, struct weft_error *err);

#endif
