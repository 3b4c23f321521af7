/* process.c: makes a trace of a process that runs or hangs, without stopping it.
 *
 * The kernel counts a thread's context switches, so a thread that did not run between two readings is recognized.  The memory is
 * copied between the two readings, so the waits of all threads that did not run belong to one moment, although nothing is
 * stopped.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/named.h"
#include "base/program_name.h"
#include "look/exported.h"
#include "look/loops.h"
#include "look/python.h"
#include "look/sources.h"
#include "look/v8.h"

enum { BETWEEN_MS = 50, FOLDER_NAME = 64 };

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t read_process(const struct look_target *t, uint64_t address, void *to, size_t bytes)
{
	const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
	const ssize_t n = process_vm_readv((pid_t)t->pid, &local, 1, &remote, 1, 0);
	return n > 0 ? (size_t)n : 0;
}

/* ---- Rights ---- */

static int yama_scope(void)
{
	char text[8] = "0";
	const int folder = open("/proc/sys/kernel/yama", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0) {
		(void)weft_named_text(folder, "ptrace_scope", text, sizeof text);
		close(folder);
	}
	return text[0] - '0';
}

/* Reports which rule forbids access to the process, and what works. */
static int fail_rights(long pid, int folder, struct weft_error *err)
{
	struct stat st;
	const bool has_owner = fstat(folder, &st) == 0;
	const struct passwd *owner = has_owner && st.st_uid != geteuid() ? getpwuid(st.st_uid) : NULL;
	const int scope = yama_scope();
	if (geteuid() == 0)
		return weft_error_set(err, WEFT_EACCES,
		    "process %ld: the kernel denies access to its memory even to root of this container: run the command as root "
		    "outside of the container",
		    pid);
	if (has_owner && st.st_uid != geteuid())
		return weft_error_set(err, WEFT_EACCES, "process %ld belongs to %s%s: run the same command with sudo", pid,
		    owner ? "user " : "another user", owner ? owner->pw_name : "");
	if (scope > 0 && scope < 3)
		return weft_error_set(err, WEFT_EACCES,
		    "process %ld: kernel.yama.ptrace_scope is %d, which lets only root read it: run the same command with sudo",
		    pid, scope);
	if (scope >= 3)
		return weft_error_set(err, WEFT_EACCES,
		    "process %ld: kernel.yama.ptrace_scope is 3, which forbids reading its memory until the next boot", pid);
	return weft_error_set(err, WEFT_EACCES,
	    "process %ld has rights that this user lacks, or forbids to read its memory: run the same command with sudo", pid);
}

/* ---- Mappings ---- */

static bool parse_map(struct look_target *t, char *line)
{
	struct look_map map = {0};
	char rights[8];
	int path_at = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &map.begin, &map.end, rights, &map.offset,
		&path_at) < 4 ||
	    map.begin >= map.end)
		return true;
	map.is_readable = rights[0] == 'r';
	map.is_writable = rights[1] == 'w';
	map.is_executable = rights[2] == 'x';
	map.path = path_at ? line + path_at : "";
	map.path[strcspn(map.path, "\n")] = 0;
	return weft__look_add_map(t, &map);
}

static int read_maps(struct look_target *t, int folder, struct weft_error *err)
{
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const int fd = weft_named_file(folder, "maps", &rule, NULL);
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	char *line = NULL;
	size_t capacity = 0;
	bool whole = true, any = false;
	if (!maps && fd >= 0)
		close(fd);
	if (!maps)
		return errno == EACCES || errno == EPERM ? fail_rights(t->pid, folder, err)
							 : weft_error_set(err, WEFT_ENOENT, "no process %ld", t->pid);
	while (whole && getline(&line, &capacity, maps) > 0) {
		any = true;
		whole = parse_map(t, line);
	}
	const int error = errno;
	fclose(maps);
	free(line);
	if (!whole)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (!any && (error == EACCES || error == EPERM))
		return fail_rights(t->pid, folder, err);
	return any ? WEFT_OK
		   : weft_error_set(err, WEFT_EFORMAT, "process %ld has no memory: it has ended, or is a kernel thread", t->pid);
}

/* ---- Threads ---- */

static void cut_line(char *text)
{
	text[strcspn(text, "\n")] = 0;
}

/* Reads the state of a thread, and the thread's start time. */
static void read_stat(struct look_thread *thread, int folder)
{
	char text[1024];
	uint64_t start = 0;
	const long hz = sysconf(_SC_CLK_TCK);
	thread->state = '?';
	if (weft_named_text(folder, "stat", text, sizeof text) <= 0)
		return;
	/* A name may contain any characters, so the fields begin behind the text's last parenthesis. */
	const char *after = strrchr(text, ')');
	if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
			  &thread->state, &start) != 2)
		return;
	thread->start_ns = start && hz > 0 && start < INT64_MAX / 1000000000 ? (int64_t)(start * (uint64_t)(1000000000 / hz)) : 0;
}

/* Reads the number of a thread's context switches, and the thread's id in the innermost PID namespace, as in a container. */
static void read_status(struct look_thread *thread, int folder)
{
	char text[4096];
	uint64_t voluntary = 0, others = 0;
	thread->own_tid = thread->tid;
	if (weft_named_text(folder, "status", text, sizeof text) <= 0)
		return;
	char *numbers = strstr(text, "\nNSpid:");
	if (numbers) {
		const size_t length = strcspn(numbers + 1, "\n");
		size_t last = length;
		while (last > 0 && numbers[last] >= '0' && numbers[last] <= '9')
			last--;
		thread->own_tid = strtol(numbers + last + 1, NULL, 10);
	}
	const char *at = strstr(text, "\nvoluntary_ctxt_switches:");
	if (at)
		sscanf(at, "\nvoluntary_ctxt_switches: %" SCNu64 " nonvoluntary_ctxt_switches: %" SCNu64, &voluntary, &others);
	thread->switches = voluntary + others;
}

/* Returns the time at which a thread last ran, on the scheduler's clock; 0: unknown. */
static int64_t read_last_run_ns(int folder)
{
	char text[4096];
	uint64_t ms = 0, rest = 0;
	if (weft_named_text(folder, "sched", text, sizeof text) <= 0)
		return 0;
	const char *at = strstr(text, "se.exec_start"), *colon = at ? strchr(at, ':') : NULL;
	if (!colon || sscanf(colon, ": %" SCNu64 ".%" SCNu64, &ms, &rest) < 1 || ms > INT64_MAX / 1000000)
		return 0;
	return (int64_t)(ms * 1000000 + rest % 1000000);
}

/* Returns the offset from the scheduler's clock to the monotonic clock, found by this thread, which runs now. */
static int64_t get_clock_offset_ns(void)
{
	const int folder = open("/proc/thread-self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int64_t last_ns = folder >= 0 ? read_last_run_ns(folder) : 0;
	if (folder >= 0)
		close(folder);
	return now_ns(CLOCK_MONOTONIC) - last_ns;
}

/* Returns false if the kernel refuses access. */
static bool read_thread(struct look_thread *thread, int folder)
{
	char text[256];
	uint64_t *a = thread->args, sp = 0, pc = 0;
	if (weft_named_text(folder, "comm", thread->name, sizeof thread->name) > 0)
		cut_line(thread->name);
	read_stat(thread, folder);
	read_status(thread, folder);
	thread->call = -1;
	errno = 0;
	if (weft_named_text(folder, "syscall", text, sizeof text) <= 0)
		return errno != EPERM && errno != EACCES;
	const int fields =
	    sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		&thread->call, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &sp, &pc);
	if (fields != 9 || thread->call < 0)
		thread->call = -1;
	thread->stack.registers[7] = sp;
	thread->stack.registers[16] = pc;
	return true;
}

static int fail_memory(struct weft_error *err)
{
	return weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static int read_threads(struct look_target *t, int folder, struct weft_error *err)
{
	const int tasks = weft_named_folder(folder, "task", WEFT_ANY_OWNER);
	DIR *list = tasks >= 0 ? weft_named_list(tasks) : NULL;
	int status = list ? WEFT_OK : weft_error_set(err, WEFT_ENOENT, "no process %ld", t->pid);
	for (struct dirent *e; list && status == WEFT_OK && (e = readdir(list));) {
		char *end;
		const long tid = strtol(e->d_name, &end, 10);
		const int task = tid > 0 && !*end ? weft_named_folder(tasks, e->d_name, WEFT_ANY_OWNER) : -1;
		if (task < 0)
			continue;
		t->left_out += t->threads.count == LOOK_MAX_THREADS;
		struct look_thread *thread = t->threads.count < LOOK_MAX_THREADS ? weft_vec_push(&t->threads) : NULL;
		if (thread) {
			*thread = (struct look_thread){.tid = tid};
			if (!read_thread(thread, task))
				status = fail_rights(t->pid, folder, err);
		} else if (!t->left_out) {
			status = fail_memory(err);
		}
		close(task);
	}
	if (list)
		closedir(list);
	if (tasks >= 0)
		close(tasks);
	return status;
}

/* Reads the threads a second time, and marks those that did not run meanwhile. */
static void look_again(struct look_target *t, int folder)
{
	const int tasks = weft_named_folder(folder, "task", WEFT_ANY_OWNER);
	const int64_t offset_ns = get_clock_offset_ns();
	for (size_t i = 0; i < t->threads.count; i++) {
		struct look_thread *thread = &t->threads.items[i], now = {.tid = thread->tid};
		char name[FOLDER_NAME];
		snprintf(name, sizeof name, "%" PRId64, thread->tid);
		const int task = tasks >= 0 ? weft_named_folder(tasks, name, WEFT_ANY_OWNER) : -1;
		if (task < 0 || !read_thread(&now, task)) {
			thread->state = 'X'; /* it has ended */
		} else {
			const int64_t last_ns = read_last_run_ns(task);
			thread->state = now.state;
			thread->is_still = now.call == thread->call && now.call >= 0 && now.switches == thread->switches &&
					   memcmp(now.args, thread->args, sizeof now.args) == 0 &&
					   now.stack.registers[7] == thread->stack.registers[7] &&
					   now.stack.registers[16] == thread->stack.registers[16];
			if (last_ns > 0 && last_ns + offset_ns > 0)
				thread->since_ns = last_ns + offset_ns;
		}
		if (task >= 0)
			close(task);
	}
	if (tasks >= 0)
		close(tasks);
}

/* Reads the name under which the program was started.  Returns false if only the present name is known; otherwise writes the
 * path with which the program was started. */
static bool read_program_name(
    const struct look_target *t, int folder, char *name, size_t size, char path[WEFT_PROGRAM_PATH_BYTES], uint64_t *entry)
{
	enum { VECTOR_BYTES = 1024 };
	char vector[VECTOR_BYTES];
	name[0] = 0;
	if (weft_named_text(folder, "comm", name, size) > 0)
		cut_line(name);
	const long bytes = weft_named_text(folder, "auxv", vector, sizeof vector);
	if (bytes <= 0 ||
	    !weft__look_read_start(t, (const unsigned char *)vector, (size_t)bytes, path, WEFT_PROGRAM_PATH_BYTES, entry))
		return false;
	weft_program_name(name, size, path);
	return true;
}

/* Reads the names of the process, after its modules.  Returns false without memory. */
static bool read_names(struct look_target *t, int folder)
{
	char started_as[WEFT_PROGRAM_PATH_BYTES];
	uint64_t entry;
	const bool is_known = read_program_name(t, folder, t->process, sizeof t->process, started_as, &entry);
	const long n = weft_named_text(folder, "cmdline", t->command, sizeof t->command);
	for (long i = 0; i + 1 < n; i++)
		if (!t->command[i])
			t->command[i] = ' ';
	struct stat st;
	return !is_known || fstat(folder, &st) || st.st_uid != geteuid() || weft__look_set_known_path(t, entry, started_as);
}

void weft_look_program_name(char *out, size_t size, long pid)
{
	char path[FOLDER_NAME], started_as[WEFT_PROGRAM_PATH_BYTES];
	const struct look_target target = {.pid = pid, .read = read_process};
	uint64_t entry;
	snprintf(path, sizeof path, "/proc/%ld", pid);
	const int folder = weft_users_folder(path);
	out[0] = 0;
	if (folder < 0)
		return;
	(void)read_program_name(&target, folder, out, size, started_as, &entry);
	close(folder);
}

/* ---- Descriptors ---- */

/* Writes the addresses of a TCP or UDP socket from the kernel's table.  Returns false if the table lacks the socket. */
static bool name_socket(const struct look_target *t, const char *table, unsigned long inode, char *out, size_t size)
{
	const int *folder = t->ctx;
	const int net = weft_named_folder(*folder, "net", WEFT_ANY_OWNER);
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const int fd = net >= 0 ? weft_named_file(net, table, &rule, NULL) : -1;
	FILE *lines = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[512];
	bool is_found = false;
	while (lines && !is_found && fgets(line, sizeof line, lines)) {
		unsigned local[4] = {0}, remote[4] = {0}, local_port, remote_port, state;
		unsigned long found;
		enum { LISTEN = 10 };
		if (sscanf(line, " %*[^:]: %x:%x %x:%x %x %*s %*s %*s %*s %*s %lu", local, &local_port, remote, &remote_port,
			&state, &found) != 6 ||
		    found != inode)
			continue;
		is_found = true;
		if (state == LISTEN)
			snprintf(out, size, "%s port %u", table, local_port);
		else
			snprintf(out, size, "%s to %u.%u.%u.%u:%u", table, remote[0] & 255, remote[0] >> 8 & 255,
			    remote[0] >> 16 & 255, remote[0] >> 24, remote_port);
	}
	if (lines)
		fclose(lines);
	else if (fd >= 0)
		close(fd);
	if (net >= 0)
		close(net);
	return is_found;
}

static bool name_fd(const struct look_target *t, int64_t fd, char *out, size_t size)
{
	const int *folder = t->ctx;
	char name[FOLDER_NAME], target[192];
	snprintf(name, sizeof name, "fd/%" PRId64, fd);
	const ssize_t n = fd < 0 ? -1 : readlinkat(*folder, name, target, sizeof target - 1);
	unsigned long inode;
	if (n <= 0)
		return false;
	target[n] = 0;
	if (sscanf(target, "socket:[%lu]", &inode) == 1 &&
	    (name_socket(t, "tcp", inode, out, size) || name_socket(t, "udp", inode, out, size)))
		return true;
	snprintf(out, size, "%s",
	    strncmp(target, "socket:", 7) == 0 ? "socket"
	    : strncmp(target, "pipe:", 5) == 0 ? "pipe"
					       : target);
	return true;
}

/* ---- Both readings ---- */

static int look(struct look_target *t, int folder, struct weft_error *err)
{
	const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
	int status = read_maps(t, folder, err);
	if (status == WEFT_OK)
		status = read_threads(t, folder, err);
	if (status < 0)
		return status;
	nanosleep(&pause, NULL);
	t->now_ns = now_ns(CLOCK_MONOTONIC);
	if (!weft__look_find_modules(t) || !read_names(t, folder) || !weft__look_copy_memory(t) || !weft__look_find_loops(t) ||
	    !weft__look_find_contexts(t) || !weft__look_find_python(t) || !weft__look_find_v8(t))
		return fail_memory(err);
	look_again(t, folder);
	t->now_ns = now_ns(CLOCK_MONOTONIC);
	t->wall_ns = now_ns(CLOCK_REALTIME);
	return t->threads.count ? WEFT_OK : weft_error_set(err, WEFT_ENOENT, "no process %ld", t->pid);
}

int weft_look_process(struct weft_trace **out, long pid, weft_look_unwind_fn *unwind, struct weft_error *err)
{
	char path[FOLDER_NAME], name[FOLDER_NAME];
	snprintf(path, sizeof path, "/proc/%ld", pid);
	snprintf(name, sizeof name, "process %ld", pid);
	const int folder = weft_users_folder(path);
	if (folder < 0)
		return weft_error_set(err, WEFT_ENOENT, "no process %ld", pid);
	struct look_target target = {.pid = pid, .read = read_process, .name_fd = name_fd, .ctx = &folder};
	int status = look(&target, folder, err);
	if (status == WEFT_OK)
		status = weft__look_finish(out, &target, unwind, name, err);
	weft__look_free(&target);
	close(folder);
	return status;
}

/* ---- Modules alone ---- */

struct weft_look_modules {
	struct look_target target;
	struct look_v8 *v8; /* layout of V8 in the target; NULL if there is none, or it was not searched yet */
	bool has_searched_v8;
};

int weft_look_modules_open(struct weft_look_modules **out, long pid, struct weft_error *err)
{
	char path[FOLDER_NAME];
	*out = NULL;
	snprintf(path, sizeof path, "/proc/%ld", pid);
	const int folder = weft_users_folder(path);
	if (folder < 0)
		return weft_error_set(err, WEFT_ENOENT, "no process %ld", pid);
	struct weft_look_modules *modules = calloc(1, sizeof *modules);
	if (!modules) {
		close(folder);
		return fail_memory(err);
	}
	modules->target = (struct look_target){.pid = pid, .read = read_process};
	int status = read_maps(&modules->target, folder, err);
	if (status == WEFT_OK && (!weft__look_find_modules(&modules->target) || !read_names(&modules->target, folder)))
		status = fail_memory(err);
	close(folder);
	if (status == WEFT_OK)
		*out = modules;
	else
		weft_look_modules_free(modules);
	return status;
}

struct weft_look_modules *weft_look_modules_read(long pid)
{
	struct weft_look_modules *modules;
	struct weft_error err;
	weft_look_modules_open(&modules, pid, &err);
	return modules;
}

uint64_t weft_look_modules_find(const struct weft_look_modules *modules, size_t index, const char *symbol)
{
	struct look_exports exports;
	return index < modules->target.modules.count &&
		       weft__look_exports_read(&exports, &modules->target, &modules->target.modules.items[index])
		   ? weft__look_exports_find(&exports, &modules->target, symbol)
		   : 0;
}

const struct weft_look_module *weft_look_modules_list(const struct weft_look_modules *modules, size_t *count)
{
	*count = modules ? modules->target.modules.count : 0;
	return modules ? modules->target.modules.items : NULL;
}

static struct look_v8 *find_v8(struct weft_look_modules *modules)
{
	if (!modules->has_searched_v8)
		modules->v8 = weft__look_v8_create(&modules->target);
	modules->has_searched_v8 = true;
	return modules->v8;
}

bool weft_look_has_sources(struct weft_look_modules *modules)
{
	return modules && (weft__look_has_python(&modules->target) || find_v8(modules));
}

size_t weft_look_sources(struct weft_look_modules *modules, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame out[WEFT_LOOK_FRAMES])
{
	if (!modules)
		return 0;
	const size_t count = weft__look_read_python(&modules->target, stack, tid, state, out, WEFT_LOOK_FRAMES);
	return count              ? count
	       : find_v8(modules) ? weft__look_v8_read(modules->v8, &modules->target, stack, out, WEFT_LOOK_FRAMES)
				  : 0;
}

void weft_look_modules_free(struct weft_look_modules *modules)
{
	if (!modules)
		return;
	weft__look_free(&modules->target);
	weft__look_v8_free(modules->v8);
	free(modules);
}
