/* odd.c: does what few programs do, after and before a libuv loop; as_without_test.py compares the output with and without
 * recording.  odd MOOD, or odd alone lists the moods.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
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
#include <ucontext.h>
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

static void raw_clone_call_starts_a_process(void)
{
	run_loop();
	const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		run_loop();
		_exit(4);
	}
	wait_for_children();
}

static void run_loop_on_signal(int number)
{
	run_loop();
}

static void loop_in_signal_handler(void)
{
	signal(SIGUSR1, run_loop_on_signal);
	raise(SIGUSR1);
	run_loop();
	raise(SIGUSR1);
}

static void loop_on_another_stack(void)
{
	static char stack[256 << 10];
	ucontext_t back, other;
	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof stack;
	other.uc_link = &back;
	makecontext(&other, run_loop, 0);
	printf("swap: %d\n", swapcontext(&back, &other));
}

static void file_size_limit(void)
{
	char bytes[2000] = {0}, path[] = "large-XXXXXX";
	signal(SIGXFSZ, count_signal);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000});
	run_loop();
	const int fd = mkstemp(path);
	printf("written: %zd\n", write(fd, bytes, sizeof bytes));
	printf("written: %zd, %s, signals %d\n", write(fd, bytes, sizeof bytes), strerror(errno), signals);
}

static void not_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	run_loop();
	printf("dumpable: %d\n", prctl(PR_GET_DUMPABLE));
}

static void *read_for_ever(void *data)
{
	const int *ends = data;
	char byte = 'x';
	run_loop();
	return write(ends[1], &byte, 1) == 1 && read(ends[2], &byte, 1) == 1 ? data : NULL;
}

static void thread_is_cancelled(void)
{
	int ends[4];
	char byte;
	pthread_t thread;
	void *result = NULL;
	if (pipe(ends) || pipe(ends + 2) || pthread_create(&thread, NULL, read_for_ever, ends) || read(ends[0], &byte, 1) != 1)
		exit(2);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *count_here(void *data)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&mutex);
		++*(int *)data;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void many_threads_with_small_stacks(void)
{
	enum { THREADS = 300 };
	pthread_t threads[THREADS];
	pthread_attr_t attributes;
	int count = 0, failures = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	run_loop();
	for (int i = 0; i < THREADS; i++)
		failures += pthread_create(&threads[i], &attributes, count_here, &count) != 0;
	for (int i = 0; i < THREADS && !failures; i++)
		pthread_join(threads[i], NULL);
	printf("failures %d, count %d\n", failures, count);
}

static void program_of_memory(void)
{
	char bytes[65536];
	char *const words[] = {self, "only_loop", NULL};
	const int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("program", MFD_CLOEXEC);
	run_loop();
	for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;)
		if (write(to, bytes, (size_t)n) != n)
			_exit(98);
	fexecve(to, words, environ);
	_exit(99);
}

static void other_root_and_user(void)
{
	char path[] = "root-XXXXXX";
	run_loop();
	printf("root: %d\n", !mkdtemp(path) || chroot(path) || chdir("/"));
	printf("user: %d %d\n", setgid(65534), setuid(65534));
	run_loop();
	fflush(stdout);
	if (fork() == 0) {
		execl("/bin/true", "true", (char *)NULL);
		printf("exec: %s\n", strerror(errno));
		run_loop();
		exit(3);
	}
	wait_for_children();
}

static void on_value(int number, siginfo_t *info, void *context)
{
	signals = (sig_atomic_t)(info->si_value.sival_int + info->si_code);
}

static void queued_signal_delivers_its_value(void)
{
	struct sigaction action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
	sigaction(SIGRTMIN + 2, &action, NULL);
	run_loop();
	printf("queued: %d", sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 1234}));
	printf(", value %d\n", signals);
}

static void exec_with_wrong_addresses(void)
{
	char **volatile wrong = (char **)8;
	char *const words[] = {self, NULL};
	pid_t child = 0;
	run_loop();
	printf("%d", execve("/bin/true", words, wrong));
	printf(" %s\n", strerror(errno));
	printf("%d", execve((const char *)wrong, words, environ));
	printf(" %s\n", strerror(errno));
	printf("%d", execv("nowhere", words));
	printf(" %s\n", strerror(errno));
	printf("spawn: %s\n", strerror(posix_spawn(&child, "/bin/true", NULL, NULL, words, wrong)));
	printf("spawn: %s\n", strerror(posix_spawn(&child, "nowhere", NULL, NULL, words, environ)));
}

static void no_variables_at_all(void)
{
	environ = NULL;
	run_loop();
	execl(self, self, "print_environment", (char *)NULL);
	_exit(99);
}

static void reads_are_interrupted_or_restarted(void)
{
	int ends[2];
	char byte;
	struct itimerval often = {{0, 20000}, {0, 20000}};
	struct sigaction action = {.sa_handler = count_signal};
	sigaction(SIGALRM, &action, NULL);
	run_loop();
	if (pipe(ends) || setitimer(ITIMER_REAL, &often, NULL))
		exit(2);
	printf("read: %zd %s\n", read(ends[0], &byte, 1), strerror(errno));
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	fflush(stdout);
	const pid_t parent = getpid();
	if (fork() == 0) {
		usleep(20000);
		kill(parent, SIGALRM);
		usleep(20000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	printf("read: %zd\n", read(ends[0], &byte, 1));
	wait_for_children();
}

static void all_descriptors_are_closed_at_once(void)
{
	run_loop();
	printf("close_range: %ld\n", syscall(SYS_close_range, 3, ~0U, 0));
	run_loop();
	printf("next descriptor: %d\n", open("/dev/null", O_RDONLY));
}

static void own_namespaces(void)
{
	printf("unshare: %d\n", unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET));
	run_loop();
	fflush(stdout);
	if (fork() == 0) {
		run_loop();
		_exit(getuid() == 65534 ? 5 : 6);
	}
	wait_for_children();
}

/* Prints the signals that other processes send, until SIGTERM comes. */
static void print_signals(void)
{
	sigset_t set;
	siginfo_t info;
	int number;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	do {
		run_loop();
		number = sigwaitinfo(&set, &info);
		printf("signal %d, code %d, value %d\n", number, info.si_code,
		    info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
	} while (number != SIGTERM);
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
    MOOD(divided_by_zero), MOOD(bad_address), MOOD(process_group_is_killed), MOOD(raw_clone_call_starts_a_process),
    MOOD(loop_in_signal_handler), MOOD(loop_on_another_stack), MOOD(file_size_limit), MOOD(not_dumpable),
    MOOD(thread_is_cancelled), MOOD(many_threads_with_small_stacks), MOOD(program_of_memory), MOOD(other_root_and_user),
    MOOD(queued_signal_delivers_its_value), MOOD(exec_with_wrong_addresses), MOOD(no_variables_at_all),
    MOOD(reads_are_interrupted_or_restarted), MOOD(all_descriptors_are_closed_at_once), MOOD(own_namespaces),
    MOOD(print_signals)};

int main(int argc, char **argv)
{
	self = argv[0];
	for (size_t i = 0; i < sizeof moods / sizeof *moods; i++)
		if (argc < 2 && moods[i].run != print_environment && moods[i].run != print_signals)
			puts(moods[i].name);
		else if (argc > 1 && !strcmp(argv[1], moods[i].name))
			moods[i].run();
	return 0;
}
