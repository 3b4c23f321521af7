/* odd.c: does what few programs do, after and before a libuv loop; as_without_test.py compares the output with and without
 * recording.  odd MOOD, or odd alone lists the moods.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

extern char **environ;

static char *self;
static volatile sig_atomic_t signals;

static void on_timer(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

static void run_loop(void)
{
	uv_loop_t loop;
	uv_timer_t timer;
	const int status = uv_loop_init(&loop);
	if (status) {
		printf("no loop: %s\n", uv_err_name(status));
		return;
	}
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_timer, 1, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	printf("loop: %d\n", uv_loop_close(&loop));
	fflush(stdout);
}

static void wait_for_children(void)
{
	int status;
	while (wait(&status) > 0)
		printf("a child ended: %x\n", (unsigned)status);
	printf("no more: %s\n", strerror(errno));
}

/* Starts this program again with a mood, without the C library's own functions. */
static void exec_mood(const char *mood, char **variables)
{
	char *const words[] = {self, (char *)(uintptr_t)mood, NULL};
	execve(self, words, variables);
	_exit(99);
}

static void only_loop(void)
{
	run_loop();
}

static void child_of_vfork(void)
{
	run_loop();
	if (vfork() == 0)
		exec_mood("only_loop", environ);
	wait_for_children();
}

static void double_fork(void)
{
	int ends[2];
	char byte;
	if (pipe(ends))
		exit(2);
	fflush(stdout);
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			run_loop();
			exit(0);
		}
		_exit(5);
	}
	close(ends[1]);
	wait_for_children();
	/* Wait for the grandchild too. */
	if (read(ends[0], &byte, 1) == 0)
		puts("all have ended");
}

static void daemon_closes_all_descriptors(void)
{
	const int kept = dup(1);
	for (int fd = 0; fd < 1024; fd++)
		if (fd != kept)
			close(fd);
	if (dup2(kept, 1) != 1 || open("/dev/null", O_RDONLY) != 0 || open("/dev/null", O_WRONLY) != 2)
		_exit(3);
	run_loop();
	printf("next descriptor: %d\n", open("/dev/null", O_RDONLY));
}

static void root_is_changed_to_a_procfs_folder(void)
{
	if (chroot("/proc/self/fdinfo") && errno == EPERM)
		puts("not permitted");
	run_loop();
}

static void strict_seccomp(void)
{
	run_loop();
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (write(1, "strict\n", 7) != 7)
		syscall(SYS_exit, 1);
	syscall(SYS_exit, 7);
}

static void few_descriptors(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){9, 9});
	run_loop();
	errno = 0;
	printf("open: %d %s\n", open("/dev/null", O_RDONLY), strerror(errno));
}

static void little_memory(void)
{
	setrlimit(RLIMIT_AS, &(struct rlimit){96 << 20, 96 << 20});
	run_loop();
	void *large = malloc(256 << 20);
	printf("256 MB: %s\n", large ? "yes" : "no");
	free(large);
}

static void cpu_limit_kills_without_core_dump(void)
{
	setrlimit(RLIMIT_CPU, &(struct rlimit){1, 2});
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	run_loop();
	for (volatile unsigned i = 0;; i++)
		;
}

static void count_signal(int number)
{
	signals++;
}

static void profiled(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}};
	signal(SIGPROF, count_signal);
	setitimer(ITIMER_PROF, &often, NULL);
	run_loop();
	while (signals < 5)
		;
	puts("five signals");
}

static void interrupted_sleep(void)
{
	struct sigaction action = {.sa_handler = count_signal};
	sigaction(SIGALRM, &action, NULL);
	run_loop();
	alarm(1);
	printf("sleep: %d %s\n", nanosleep(&(struct timespec){600, 0}, NULL), strerror(errno));
}

static void overflow_handler(int number)
{
	static const char text[] = "overflow\n";
	_exit(write(1, text, sizeof text - 1) == sizeof text - 1 ? 9 : 8);
}

static volatile int depth_limit = 1 << 30;

static int recurse(volatile char *before, int depth)
{
	volatile char bytes[4096];
	bytes[0] = before ? before[0] : 1;
	return depth < depth_limit ? recurse(bytes, depth + 1) + bytes[0] : 0;
}

static void stack_overflow_is_handled_on_another_stack(void)
{
	static char stack[65536];
	struct sigaction action = {.sa_handler = overflow_handler, .sa_flags = SA_ONSTACK};
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	sigaction(SIGSEGV, &action, NULL);
	run_loop();
	printf("%d\n", recurse(NULL, 0));
}

static void *exit_here(void *data)
{
	run_loop();
	exit(12);
}

static void exit_in_a_thread_ends_the_process(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, exit_here, NULL);
	pthread_join(thread, NULL);
}

static void *loop_here(void *data)
{
	run_loop();
	return NULL;
}

static void main_thread_exits_before_the_loop(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, loop_here, NULL);
	pthread_exit(NULL);
}

static void aborted(void)
{
	run_loop();
	abort();
}

static void killed(void)
{
	run_loop();
	raise(SIGKILL);
}

static void broken_pipe(void)
{
	int ends[2];
	run_loop();
	if (pipe(ends) || close(ends[0]) || write(ends[1], "x", 1) == 1)
		puts("written");
	puts("not killed");
}

static void child_is_stopped_and_continued(void)
{
	fflush(stdout);
	const pid_t child = fork();
	int status;
	if (child == 0) {
		run_loop();
		raise(SIGSTOP);
		_exit(6);
	}
	waitpid(child, &status, WUNTRACED);
	printf("stopped: %d\n", WIFSTOPPED(status));
	kill(child, SIGCONT);
	wait_for_children();
}

static void traced_child(void)
{
	int status;
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGTRAP);
		run_loop();
		_exit(6);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		printf("stopped by %d\n", WSTOPSIG(status));
		ptrace(PTRACE_CONT, child, NULL, NULL);
	}
	printf("ended: %x\n", (unsigned)status);
}

static void children_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	run_loop();
	fflush(stdout);
	if (fork() == 0)
		_exit(3);
	wait_for_children();
}

static void no_environment(void)
{
	run_loop();
	char *none[] = {NULL};
	exec_mood("print_environment", none);
}

static void print_environment(void)
{
	for (char **at = environ; *at; at++)
		puts(*at);
	run_loop();
}

static void cleared_environment(void)
{
	clearenv();
	run_loop();
	printf("variables: %d\n", environ && *environ);
	if (system("echo $LD_PRELOAD$WEFT_RECORD.") != 0)
		puts("no shell");
}

static void locked_memory(void)
{
	printf("mlockall: %d\n", mlockall(MCL_CURRENT));
	run_loop();
}

static void working_directory_is_removed(void)
{
	char text[4096], path[] = "gone-XXXXXX";
	if (!mkdtemp(path) || chdir(path) || rmdir("../gone-XXXXXX") == 0)
		puts("no folder");
	snprintf(text, sizeof text, "../%s", path);
	rmdir(text);
	run_loop();
	puts(getcwd(text, sizeof text) ? "here" : strerror(errno));
}

static void standard_output_is_closed(void)
{
	run_loop();
	fclose(stdout);
	close(2);
	const int fd = open("/dev/null", O_WRONLY);
	exit(fd == 1 ? 20 : 21);
}

static int raw_thread(void *data)
{
	__atomic_store_n((int *)data, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void process_shares_memory(void)
{
	static char stack[65536];
	static int has_run;
	run_loop();
	const int child = clone(raw_thread, stack + sizeof stack, CLONE_VM | SIGCHLD, &has_run);
	printf("clone: %d\n", child > 0);
	wait_for_children();
	printf("it ran: %d\n", has_run);
}

static void blocked_signal_is_taken_by_sigwaitinfo(void)
{
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run_loop();
	kill(getpid(), SIGUSR1);
	printf("waited: %d\n", sigwaitinfo(&set, &info) == SIGUSR1);
}

static void at_exit_handler(void)
{
	run_loop();
	puts("at the exit");
}

static void loop_at_exit(void)
{
	atexit(at_exit_handler);
	run_loop();
	exit(13);
}

static void quick_exit_calls_no_exit_handlers(void)
{
	at_quick_exit(at_exit_handler);
	run_loop();
	quick_exit(14);
}

static void divided_by_zero(void)
{
	volatile int zero = 0;
	run_loop();
	fflush(stdout);
#ifdef __x86_64__
	printf("%d\n", 1 / zero);
#else
	raise(SIGFPE);
#endif
}

static void bad_address(void)
{
	volatile uintptr_t nowhere = 8;
	run_loop();
	*(volatile int *)nowhere = 1;
}

static void process_group_is_killed(void)
{
	setpgid(0, 0);
	run_loop();
	kill(0, SIGTERM);
	pause();
}

static const struct {
	const char *name;
	void (*run)(void);
} moods[] = {
#define MOOD(name)                                                                                                               \
	{                                                                                                                        \
#name, name                                                                                                      \
	}
    MOOD(only_loop), MOOD(child_of_vfork), MOOD(double_fork), MOOD(daemon_closes_all_descriptors),
    MOOD(root_is_changed_to_a_procfs_folder), MOOD(strict_seccomp), MOOD(few_descriptors), MOOD(little_memory),
    MOOD(cpu_limit_kills_without_core_dump), MOOD(profiled), MOOD(interrupted_sleep),
    MOOD(stack_overflow_is_handled_on_another_stack), MOOD(exit_in_a_thread_ends_the_process),
    MOOD(main_thread_exits_before_the_loop), MOOD(aborted), MOOD(killed), MOOD(broken_pipe), MOOD(child_is_stopped_and_continued),
    MOOD(traced_child), MOOD(children_ignored), MOOD(no_environment), MOOD(print_environment), MOOD(cleared_environment),
    MOOD(locked_memory), MOOD(working_directory_is_removed), MOOD(standard_output_is_closed), MOOD(process_shares_memory),
    MOOD(blocked_signal_is_taken_by_sigwaitinfo), MOOD(loop_at_exit), MOOD(quick_exit_calls_no_exit_handlers),
    MOOD(divided_by_zero), MOOD(bad_address), MOOD(process_group_is_killed)};

int main(int argc, char **argv)
{
	self = argv[0];
	for (size_t i = 0; i < sizeof moods / sizeof *moods; i++)
		if (argc < 2 && moods[i].run != print_environment)
			puts(moods[i].name);
		else if (argc > 1 && !strcmp(argv[1], moods[i].name))
			moods[i].run();
	return 0;
}
