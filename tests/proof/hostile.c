/* hostile.c CONDITION: changes the state of its own process in unexpected ways, and prints the state that it sees.
 * hostile_test.py runs the program with a trace and without one, and compares all output: no line may depend on the recorder.
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/record.h>

#include "trace/follow.h"

extern char **environ;
static char *myself;

static void need(bool it_holds, const char *what)
{
	if (!it_holds) {
		printf("not so: %s\n", what);
		fflush(stdout);
		_exit(9);
	}
}

static void record(int events)
{
	weft_id last = WEFT_SYSTEM_ID;
	for (int i = 0; i < events; i++) {
		weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
		weft_run(id);
		weft_resolve(last, id);
		last = id;
	}
}

static void *record_once(void *arg)
{
	record(100);
	return arg;
}

/* Starts an OS thread that records and ends. */
static void one_thread(void *(*run)(void *))
{
	pthread_t thread;
	need(pthread_create(&thread, NULL, run, NULL) == 0, "an OS thread can be made");
	pthread_join(thread, NULL);
}

/* Prints the open descriptors. */
static void list_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor %d, flags %d\n", fd, fcntl(fd, F_GETFD));
}

static int make_file(const char *name, const char *text)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), name);
	return fd;
}

/* ---- Descriptors ---- */

static void daemon_closes_all_descriptors(void)
{
	record(100);
	syscall(SYS_close_range, 3, ~0u, 0);
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "mine-%d", i);
		make_file(name, "the program's\n");
	}
	one_thread(record_once);
	record(100);
	weft_stop();
	list_descriptors();
	for (int fd = 3; fd < 23; fd++)
		need(write(fd, "more\n", 5) == 5, "the program's files are open");
}

/* Creates files in the directory with the names of trace files. */
static void directory_gets_the_number_of_a_closed_trace_file(void)
{
	record(100);
	syscall(SYS_close_range, 3, ~0u, 0);
	need(mkdir("precious", 0755) == 0, "mkdir");
	for (int i = 0; i < 12; i++)
		need(open("precious", O_RDONLY | O_DIRECTORY) >= 0, "open");
	close(make_file("precious/metadata", "mine\n"));
	close(make_file("precious/definitions-0", "mine too\n"));
	close(make_file("precious/stream-0-1", "and this\n"));
	for (int i = 0; i < 4; i++)
		one_thread(record_once);
	weft_stop();
	list_descriptors();
}

static void sockets_get_the_numbers_of_closed_trace_files(void)
{
	syscall(SYS_close_range, 3, ~0u, 0);
	int pair[8][2];
	for (int i = 0; i < 8; i++)
		need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]) == 0, "socketpair");
	for (int worker = 0; worker < 4; worker++) {
		fflush(stdout);
		if (fork() == 0) {
			record(10);
			weft_stop();
			list_descriptors();
			for (int i = 0; i < 8; i++)
				need(write(pair[i][0], "x", 1) == 1, "the worker's sockets are open");
			exit(0);
		}
		wait(NULL);
	}
	char byte;
	for (int i = 0; i < 32; i++)
		need(read(pair[i % 8][1], &byte, 1) == 1, "the daemon's sockets are open");
}

static int storm_is_over;

static void *make_streams(void *arg)
{
	while (!__atomic_load_n(&storm_is_over, __ATOMIC_RELAXED)) {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			need(pthread_create(&threads[i], NULL, record_once, NULL) == 0, "pthread_create");
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		if (weft_is_on()) {
			struct weft_record_options again = {.directory = "../again", .overwrite = true, .size_bytes = 65536};
			weft_stop();
			weft_start(&again);
		}
	}
	return arg;
}

/* While OS threads create their streams, another thread closes all descriptors that it did not open, and opens files of its own.
 */
static void descriptors_are_closed_while_streams_are_created(void)
{
	pthread_t maker;
	need(pthread_create(&maker, NULL, make_streams, NULL) == 0, "pthread_create");
	for (int round = 0; round < 2000; round++) {
		syscall(SYS_close_range, 3, ~0u, 0);
		int fd = make_file("mine", "one\n");
		need(fd == 3, "the lowest number is free");
		for (int look = 0; look < 20; look++) {
			struct stat st;
			sched_yield();
			need(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 4, "the file is as it was written");
		}
		need(write(fd, "two\n", 4) == 4, "the file is open");
		need(pwrite(fd, "1", 1, 0) == 1 && close(fd) == 0, "the file is still open");
	}
	__atomic_store_n(&storm_is_over, 1, __ATOMIC_RELAXED);
	pthread_join(maker, NULL);
}

static void recording_keeps_descriptor_numbers(void)
{
	list_descriptors();
	one_thread(record_once);
	record(200000);
	printf("the next one is %d\n", open("/dev/null", O_RDONLY));
	weft_stop();
	printf("the next one is %d\n", open("/dev/null", O_RDONLY));
	list_descriptors();
}

/* ---- Files ---- */

static int threads_are_over;

static void *record_on(void *arg)
{
	if (arg) {
		sigset_t every;
		sigfillset(&every);
		pthread_sigmask(SIG_BLOCK, &every, NULL);
	}
	while (!__atomic_load_n(&threads_are_over, __ATOMIC_RELAXED))
		record(100);
	return arg;
}

/* Calls harm() repeatedly for each file of the trace, while four OS threads record at full speed. */
static void harm_files(void (*harm)(const char *name), int rounds)
{
	pthread_t threads[4];
	const char *trace = getenv("HOSTILE_TRACE");
	for (int i = 0; i < 4; i++)
		need(pthread_create(&threads[i], NULL, record_on, i % 2 ? &threads : NULL) == 0, "pthread_create");
	for (int round = 0; trace && round < rounds; round++) {
		usleep(20000);
		DIR *d = opendir(trace);
		const struct dirent *entry;
		while (d && (entry = readdir(d))) {
			char name[4096];
			snprintf(name, sizeof name, "%s/%s", trace, entry->d_name);
			if (entry->d_name[0] != '.')
				harm(name);
		}
		if (d)
			closedir(d);
		one_thread(record_once);
	}
	usleep(100000);
	__atomic_store_n(&threads_are_over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	record(100);
	weft_stop();
	puts("all OS threads came to their end");
}

static void truncate_file_to_zero(const char *name)
{
	need(truncate(name, 0) == 0 || errno == ENOENT, name);
}

static void truncate_file_to_half(const char *name)
{
	need(truncate(name, 6000) == 0 || errno == ENOENT, name);
}

static void replace(const char *name)
{
	char other[4200];
	snprintf(other, sizeof other, "%s.other", name);
	close(make_file(other, "somebody's\n"));
	need(rename(other, name) == 0, name);
}

static void delete (const char *name)
{
	need(unlink(name) == 0 || errno == ENOENT, name);
}

static void truncated_trace_files_do_not_stop_the_program(void)
{
	harm_files(truncate_file_to_zero, 10);
}

static void half_truncated_trace_files_do_not_stop_the_program(void)
{
	harm_files(truncate_file_to_half, 10);
}

static void replaced_trace_files_do_not_stop_the_program(void)
{
	harm_files(replace, 4);
}

static void deleted_trace_files_do_not_stop_the_program(void)
{
	harm_files(delete, 4);
}

static void moved_trace_directory_leaves_new_files_unchanged(void)
{
	const char *trace = getenv("HOSTILE_TRACE");
	char path[4096];
	record(100);
	if (trace) {
		snprintf(path, sizeof path, "%s-moved", trace);
		need(rename(trace, path) == 0 && mkdir(trace, 0700) == 0, "the directory can be moved");
		for (int i = 0; i < 3; i++) {
			static const char *const names[] = {"metadata", "definitions-0", "stream-0-3"};
			snprintf(path, sizeof path, "%s/%s", trace, names[i]);
			close(make_file(path, "the program's\n"));
		}
	}
	one_thread(record_once);
	weft_stop();
	if (trace) {
		struct stat st;
		need(stat(path, &st) == 0 && st.st_size == 14, "what has the directory's name is left alone");
		snprintf(path, sizeof path, "%s/metadata", trace);
		need(stat(path, &st) == 0 && st.st_size == 14, "its metadata too");
	}
}

/* ---- SIGBUS of the program itself ---- */

static volatile sig_atomic_t bus_errors;
static char *bus_page;

static void on_bus(int number, siginfo_t *info, void *context)
{
	sigset_t mask;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	bus_errors++;
	printf("SIGBUS: address is right: %d, code %d, SIGUSR1 blocked: %d, SIGBUS blocked: %d\n", info->si_addr == bus_page + 10,
	    info->si_code, sigismember(&mask, SIGUSR1), sigismember(&mask, SIGBUS));
	mmap(bus_page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void raise_bus_error(void)
{
	int fd = make_file("mapped", "short");
	bus_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(bus_page != MAP_FAILED && ftruncate(fd, 0) == 0, "a mapping");
	fflush(stdout);
	((volatile char *)bus_page)[10] = 1;
	close(fd);
}

static void set_handler(void)
{
	struct sigaction mine = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
	sigemptyset(&mine.sa_mask);
	sigaddset(&mine.sa_mask, SIGUSR1);
	sigaction(SIGBUS, &mine, NULL);
}

static void sigbus_handler_set_before_recording_is_called(void)
{
	weft_stop();
	set_handler();
	const char *trace = getenv("HOSTILE_TRACE");
	struct weft_record_options options = {.directory = trace, .overwrite = true};
	if (trace)
		weft_start(&options);
	record(100);
	raise_bus_error();
	record(100);
	raise_bus_error();
	weft_stop();
	raise_bus_error();
	printf("%d\n", (int)bus_errors);
}

static void sigbus_handler_set_while_recording_is_called(void)
{
	record(100);
	set_handler();
	raise_bus_error();
	weft_stop();
	raise_bus_error();
	printf("%d\n", (int)bus_errors);
}

static void unhandled_bus_error_kills_the_program(void)
{
	record(100);
	raise_bus_error();
}

static void sent_bus_signal_kills_the_program(void)
{
	record(100);
	fflush(stdout);
	kill(getpid(), SIGBUS);
	pause();
}

static void ignored_bus_signal_stays_ignored(void)
{
	weft_stop();
	signal(SIGBUS, SIG_IGN);
	const char *trace = getenv("HOSTILE_TRACE");
	struct weft_record_options options = {.directory = trace, .overwrite = true};
	if (trace)
		weft_start(&options);
	kill(getpid(), SIGBUS);
	record(100);
	puts("it runs on");
	weft_stop();
	kill(getpid(), SIGBUS);
}

/* ---- Processes ---- */

static int child_of_clone(void *arg)
{
	record(10);
	weft_stop();
	fflush(stdout);
	_exit(0);
	(void)arg;
}

static int tell_status(const char *what, pid_t child)
{
	int status = 0;
	need(waitpid(child, &status, 0) == child, what);
	printf("%s: status %d\n", what, status);
	fflush(stdout);
	return status;
}

static void children_of_each_call_have_their_exit_status(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *const arguments[] = {myself, (char[]){"print"}, NULL};
	record(100);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		record(10);
		exit(3);
	}
	tell_status("fork", child);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (child == 0)
		child_of_clone(NULL);
	tell_status("clone without handlers", child);
	child = clone(child_of_clone, stack + sizeof stack, SIGCHLD | CLONE_FILES, NULL);
	tell_status("clone with the same descriptors", child);
	child = vfork();
	if (child == 0) {
		execv(myself, arguments);
		_exit(1);
	}
	tell_status("vfork", child);
	need(posix_spawn(&child, myself, NULL, NULL, arguments, environ) == 0, "posix_spawn");
	tell_status("posix_spawn", child);
	fflush(stdout);
	printf("system: %d\n", system("echo from a shell"));
	need(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, "there are no children that the program did not make");
	record(100);
}

/* Child processes start traces of their own while another OS thread of the parent may be at any place in the recorder. */
static void recording_children_exit_with_status_0(void)
{
	pthread_t maker;
	need(pthread_create(&maker, NULL, record_on, NULL) == 0, "pthread_create");
	for (int i = 0; i < 40; i++) {
		fflush(stdout);
		pid_t child = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
		if (child == 0) {
			struct weft_record_options own = {.directory = "../child-%p", .size_bytes = 65536};
			if (getenv("HOSTILE_TRACE"))
				need(weft_start(&own) == WEFT_OK, weft_start_error());
			record(10);
			weft_stop();
			_exit(0);
		}
		need(tell_status("child", child) == 0, "the child ends well");
	}
	__atomic_store_n(&threads_are_over, 1, __ATOMIC_RELAXED);
	pthread_join(maker, NULL);
}

static void exec_itself(void)
{
	char *const arguments[] = {myself, (char[]){"print"}, NULL};
	record(100);
	fflush(stdout);
	execv(myself, arguments);
}

static void *leave(void *arg)
{
	record(100);
	exit(7);
	return arg;
}

static void exit_in_an_os_thread_ends_the_process(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 2; i++)
		need(pthread_create(&threads[i], NULL, record_on, NULL) == 0, "pthread_create");
	need(pthread_create(&threads[2], NULL, leave, NULL) == 0, "pthread_create");
	pthread_exit(NULL);
}

static void unshare_has_the_same_result_while_recording(void)
{
	/* The call succeeds only in a process with a single OS thread, so it fails if the recorder has made another one. */
	int status = unshare(CLONE_NEWUSER);
	printf("unshare: %d\n", status);
	record(300000);
	one_thread(record_once);
}

static void recording_continues_after_chroot(void)
{
	record(100);
	need(mkdir("jail", 0755) == 0, "mkdir");
	printf("chroot: %d\n", chroot("jail") || chdir("/"));
	one_thread(record_once);
	record(300000);
	weft_stop();
	close(make_file("in-jail", "mine\n"));
}

static void recording_continues_in_new_namespaces(void)
{
	record(100);
	printf("unshare: %d\n", unshare(CLONE_NEWNS | CLONE_FILES | CLONE_FS));
	umask(0777);
	one_thread(record_once);
	record(300000);
	weft_stop();
	close(make_file("mine", "mine\n"));
	printf("umask %o\n", umask(0));
}

/* ---- OS threads ---- */

static void *start_and_stop(void *arg)
{
	const char *trace = getenv("HOSTILE_TRACE");
	struct weft_record_options options = {.directory = trace, .overwrite = true};
	record(100000);
	weft_stop();
	if (trace)
		need(weft_start(&options) == WEFT_OK, weft_start_error());
	record(100000);
	return arg;
}

static void small_stacks(void)
{
	pthread_attr_t small;
	pthread_t thread;
	pthread_attr_init(&small);
	need(pthread_attr_setstacksize(&small, 16384) == 0, "a stack of 16 KB");
	for (int i = 0; i < 4; i++) {
		need(pthread_create(&thread, &small, i % 2 ? start_and_stop : record_once, NULL) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
}

static void *cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	record(100);
	pthread_testcancel();
	return arg;
}

static void cancelled_threads(void)
{
	for (int i = 0; i < 20; i++)
		one_thread(cancelled);
	puts("all were cancelled");
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
	ticks++;
	weft_run(WEFT_CREATE(WEFT_KIND_TIMER));
}

static void signals_interrupt_every_call(void)
{
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval fast = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	const char *trace = getenv("HOSTILE_TRACE");
	struct weft_record_options options = {.directory = trace, .overwrite = true, .size_bytes = 65536};
	sigaction(SIGALRM, &tick, NULL);
	setitimer(ITIMER_REAL, &fast, NULL);
	for (int i = 0; i < 30; i++) {
		weft_stop();
		if (trace)
			need(weft_start(&options) == WEFT_OK, weft_start_error());
		one_thread(record_once);
		record(20000);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	puts("no signal was one too many");
}

/* Work of the program that needs few resources, so that it succeeds within a limit or on a full disk. */
static void ordinary_work(void)
{
	record(200000);
	pthread_t thread;
	if (pthread_create(&thread, NULL, record_once, NULL) == 0)
		pthread_join(thread, NULL);
	weft_stop();
	puts("work is done");
}

/* A file of 2 GiB: with a 32-bit off_t it cannot grow further. */
static void write_at_2_gib_has_the_same_result_while_recording(void)
{
	static const char text[64] = "the program's";
	struct stat st = {0};
	int fd = open("large", O_RDWR | O_CREAT | O_TRUNC, 0600);
	record(1000);
	printf("off_t of %zu bytes, at %lld", sizeof(off_t), (long long)lseek(fd, 0x7ffffff0, SEEK_SET));
	for (int i = 0; i < 2; i++) {
		errno = 0;
		ssize_t n = write(fd, text, sizeof text);
		printf(", wrote %zd, error %d", n, errno);
	}
	record(1000);
	int error = fstat(fd, &st);
	printf(", %d, %lld bytes\n", error, (long long)st.st_size);
	close(fd);
	unlink("large");
}

static void file_size_limit_ends_the_program_only_for_its_own_writes(void)
{
	struct rlimit limit = {100, RLIM_INFINITY};
	record(100);
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 3; i++)
		one_thread(record_once);
	record(400000);
	weft_stop();
	puts("work is done");
	fflush(stdout);
	/* A write of the program beyond the limit still ends it by SIGXFSZ. */
	char much[200] = "";
	int fd = make_file("mine", "");
	if (write(fd, much, 100) == 100 && write(fd, much, 100) < 0)
		puts("nobody was killed");
}

static void print(void)
{
	list_descriptors();
	puts("printed");
	record(10);
}

/* While OS threads record, the shell command in HOSTILE_COMMAND changes the disk. */
static void disk_vanishes(void)
{
	pthread_t threads[4];
	const char *command = getenv("HOSTILE_COMMAND");
	for (int i = 0; i < 4; i++)
		need(pthread_create(&threads[i], NULL, record_on, i % 2 ? &threads : NULL) == 0, "pthread_create");
	usleep(50000);
	if (command)
		need(system(command) == 0, command);
	usleep(50000);
	one_thread(record_once);
	__atomic_store_n(&threads_are_over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	record(400000);
	weft_stop();
	puts("work is done");
}

static void print_whether_recorded(void)
{
	puts(weft_trace_is_recorded(getenv("HOSTILE_TRACE")) ? "it is" : "it is not");
}

static void wait_for_input(void)
{
	record(100);
	puts("it records");
	fflush(stdout);
	getchar();
	record(100);
}

static const struct {
	const char *name;
	void (*run)(void);
} conditions[] = {
#define CONDITION(f)                                                                                                             \
	{                                                                                                                        \
#f, f                                                                                                            \
	}
    CONDITION(daemon_closes_all_descriptors), CONDITION(directory_gets_the_number_of_a_closed_trace_file),
    CONDITION(sockets_get_the_numbers_of_closed_trace_files), CONDITION(descriptors_are_closed_while_streams_are_created),
    CONDITION(recording_keeps_descriptor_numbers), CONDITION(truncated_trace_files_do_not_stop_the_program),
    CONDITION(half_truncated_trace_files_do_not_stop_the_program), CONDITION(replaced_trace_files_do_not_stop_the_program),
    CONDITION(deleted_trace_files_do_not_stop_the_program), CONDITION(moved_trace_directory_leaves_new_files_unchanged),
    CONDITION(sigbus_handler_set_before_recording_is_called), CONDITION(sigbus_handler_set_while_recording_is_called),
    CONDITION(unhandled_bus_error_kills_the_program), CONDITION(sent_bus_signal_kills_the_program),
    CONDITION(ignored_bus_signal_stays_ignored), CONDITION(children_of_each_call_have_their_exit_status),
    CONDITION(recording_children_exit_with_status_0), CONDITION(exec_itself), CONDITION(exit_in_an_os_thread_ends_the_process),
    CONDITION(unshare_has_the_same_result_while_recording), CONDITION(recording_continues_after_chroot),
    CONDITION(recording_continues_in_new_namespaces), CONDITION(small_stacks), CONDITION(cancelled_threads),
    CONDITION(signals_interrupt_every_call), CONDITION(ordinary_work),
    CONDITION(write_at_2_gib_has_the_same_result_while_recording),
    CONDITION(file_size_limit_ends_the_program_only_for_its_own_writes), CONDITION(disk_vanishes), CONDITION(print),
    CONDITION(wait_for_input), CONDITION(print_whether_recorded)};

int main(int argc, char **argv)
{
	myself = argv[0];
	for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
		if (argc > 1 && strcmp(argv[1], conditions[i].name) == 0) {
			conditions[i].run();
			return 0;
		} else if (argc == 1 && conditions[i].run != print && conditions[i].run != wait_for_input &&
			   conditions[i].run != print_whether_recorded) {
			puts(conditions[i].name);
		}
	return argc == 1 ? 0 : 2;
}
