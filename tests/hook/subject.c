/* subject.c: a program that uses libuv and knows nothing of weft.  Its output with recording must equal its output without.
 *
 * subject MOOD.  Each mood uses libuv in another way.  Compiled with -DLATE it loads libuv, or the library that $LIBUV names, by
 * dlopen(RTLD_LOCAL) and finds its functions by dlsym().  SPDX-License-Identifier: ISC */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

#define FUNCTIONS(X)                                                                                                             \
	X(uv_loop_init)                                                                                                          \
	X(uv_loop_close) X(uv_run) X(uv_timer_init) X(uv_timer_start) X(uv_close) X(uv_fs_stat) X(uv_fs_req_cleanup)

#ifdef LATE
#define POINTER(name) static __typeof__(name) *call_##name;
FUNCTIONS(POINTER)
static void *library;

static void load(void)
{
	library = dlopen(getenv("LIBUV") ? getenv("LIBUV") : "libuv.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		puts(dlerror());
#define FIND(name) call_##name = (__typeof__(name) *)dlsym(library, #name);
	FUNCTIONS(FIND)
}
#define CALL(name) call_##name
#else
#define CALL(name) name
static void load(void)
{
}
#endif

static const char *mood;
static char *self;
static jmp_buf out;

static void on_timer(uv_timer_t *timer)
{
	puts("timer");
	fflush(stdout);
	if (!strcmp(mood, "_exit"))
		_exit(7);
	if (!strcmp(mood, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(mood, "abort"))
		abort();
	CALL(uv_close)((uv_handle_t *)timer, NULL);
	if (!strcmp(mood, "longjmp") && timer->data) {
		timer->data = NULL;
		longjmp(out, 1);
	}
}

static void on_stat(uv_fs_t *request)
{
	printf("stat: %d\n", (int)request->result);
	CALL(uv_timer_start)(request->data, on_timer, 1, 0);
	CALL(uv_fs_req_cleanup)(request);
}

/* Runs a loop with a request of the thread pool, followed by a timer. */
static void work(void)
{
	uv_loop_t loop;
	uv_timer_t timer = {.data = &timer};
	uv_fs_t request = {.data = &timer};
	CALL(uv_loop_init)(&loop);
	CALL(uv_timer_init)(&loop, &timer);
	if (!strcmp(mood, "short"))
		CALL(uv_timer_start)(&timer, on_timer, 0, 0);
	else
		CALL(uv_fs_stat)(&loop, &request, "/", on_stat);
	if (setjmp(out) == 0)
		CALL(uv_run)(&loop, UV_RUN_DEFAULT);
	else
		puts("left by longjmp");
	CALL(uv_run)(&loop, UV_RUN_DEFAULT);
	printf("close: %d\n", CALL(uv_loop_close)(&loop));
	fflush(stdout);
}

static void close_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

/* Makes these system calls fail from now on. */
static void forbid(unsigned one, unsigned two)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, two, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	printf("seccomp: %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void run_again(const char *new_mood)
{
	fflush(stdout);
	execl(self, self, new_mood, NULL);
	perror(self);
	exit(1);
}

static void in_child(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		puts("child");
		work();
		exit(3);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child: %d\n", WEXITSTATUS(status));
}

#ifdef LATE
static void load_again(void)
{
	for (int i = 0; i < 3; i++) {
		dlclose(library);
		printf("loaded: %d\n", dlopen("libuv.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL);
		load();
		work();
	}
}
#endif

int main(int argc, char **argv)
{
	self = argv[0];
	mood = argc > 1 ? argv[1] : "plain";
	setvbuf(stdout, NULL, _IOFBF, 4096);
	if (!strcmp(mood, "mdwe")) {
		printf("mdwe: %d\n", prctl(PR_SET_MDWE, 1, 0, 0, 0));
		run_again("plain");
	}
	if (!strcmp(mood, "no-memfd")) {
		forbid(SYS_memfd_create, SYS_memfd_create);
		run_again("plain");
	}
	if (!strcmp(mood, "daemon") && fork() != 0)
		_exit(0);
	if (!strcmp(mood, "daemon"))
		setsid();
	load();
	if (!strcmp(mood, "forked")) {
		in_child();
		return 0;
	}
	if (!strcmp(mood, "jailed"))
		printf("chroot: %d\n", chroot("jail") || chdir("/"));
	work();
	if (!strcmp(mood, "close-all")) {
		close_descriptors();
		work();
	}
	if (!strcmp(mood, "seccomp")) {
		forbid(SYS_openat, SYS_mmap);
		mood = "short";
		work();
	}
	if (!strcmp(mood, "fork"))
		in_child();
	if (!strcmp(mood, "exec"))
		run_again("plain");
	if (!strcmp(mood, "user")) {
		printf("user: %d\n", setuid(65534));
		work();
		run_again("plain");
	}
	if (!strcmp(mood, "sleeps")) {
		puts("sleeps");
		fflush(stdout);
		for (;;)
			pause();
	}
#ifdef LATE
	if (!strcmp(mood, "again"))
		load_again();
#endif
	return 0;
}
