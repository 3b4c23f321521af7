/* profile.c: implements profile.h.
 *
 * A process that uses a CPU for most of 10 ms is examined: an OS thread that ran and recorded no event meanwhile has run one
 * promise for that long.  Only such a thread is stopped, for the time of copying its registers and the top of its stack.  Between
 * two samples nothing traces it.  The copies are unwound after the program has ended.  SPDX-License-Identifier: ISC */
#include "apps/control/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/named.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "look/look.h"
#include "session/session.h"
#include "wire/wire.h"
#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/stacks.h"
#endif

#if defined(__x86_64__) && defined(WEFT_HAS_NAMES)

/* MAX_SAMPLES bounds the memory to 8 MiB for each process. */
enum {
	USUAL_MS = 10,
	ALARM_MS = 5,
	BUSY_PERCENT = 20, /* on a busy machine, a computing thread has its CPU only part of the time */
	STACK_BYTES = 16 << 10,
	MAX_SAMPLES = 512,
	MAX_PROCESSES = 32,
	MIN_SAMPLES = 5,
	MAX_LINES = 8,
	MOST_PERCENT = 60,
	MAX_BLOCKS = 4096
};

struct watched_thread {
	pid_t tid;
	int64_t cpu_ns;
	uint64_t progress; /* grows with each recorded event */
	bool is_busy;
	/* The newest block; it lasts while the progress is the same, also if another program had the CPU meanwhile. */
	size_t block;
	uint64_t block_progress; /* 0: there is none */
};

/* A stretch in which a thread ran one promise.  Threads may have blocks at the same time. */
struct block {
	int64_t begin_ns; /* of its first sample */
	uint64_t samples;
};

struct process {
	pid_t pid;
	char *folder;
	clockid_t clock;
	int64_t cpu_ns;
	bool has_ended;
	struct timespec changed; /* of the folder, when its streams were opened */
	WEFT_VEC(int) streams;
	WEFT_VEC(struct watched_thread) threads;
	struct weft_look_modules *modules;
	char program[256]; /* path of the executable */
	WEFT_VEC(struct weft_look_stack) samples;
	WEFT_VEC(size_t) sample_blocks; /* by sample: an index into blocks */
	WEFT_VEC(struct block) blocks;
	uint64_t left_out; /* samples beyond MAX_SAMPLES */
};

struct profile {
	const char *folder;
	pid_t command;
	int stop_fd;
	pthread_t thread;
	int64_t begin_ns, seen_ns; /* seen_ns: time of the last round */
	int round;
	WEFT_VEC(struct process) processes;
};

static int64_t read_clock_ns(clockid_t clock)
{
	struct timespec now;
	return clock_gettime(clock, &now) ? -1 : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- One sample ---- */

/* Waits until a thread has stopped, and reads its registers.  The stop is not waited for by waitpid(), since another thread of
 * this command may get it instead.  Returns false if the thread has ended. */
static bool stop_thread(pid_t tid, pid_t command, struct user_regs_struct *registers)
{
	enum { STOPPED = 0x7f };
	const struct timespec pause = {.tv_nsec = 20000};
	int status = STOPPED;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return false;
	while (ptrace(PTRACE_GETREGS, tid, NULL, registers)) {
		/* The command's end is for the thread of weft that waits for it. */
		siginfo_t end = {0};
		const bool is_command = tid == command;
		if (is_command ? waitid(P_PID, (id_t)tid, &end, WEXITED | WNOHANG | WNOWAIT) < 0 || end.si_code == CLD_EXITED ||
				     end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED
			       : waitpid(tid, &status, __WALL | WNOHANG) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Lets a stopped thread go on, with the signal that it was about to get. */
static void release_thread(pid_t tid)
{
	siginfo_t why = {0};
	long number = 0;
	if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &why) == 0 && why.si_code >> 8 != PTRACE_EVENT_STOP)
		number = why.si_signo;
	(void)ptrace(PTRACE_DETACH, tid, NULL, (void *)number);
}

static void copy_registers(uint64_t out[WEFT_LOOK_REGISTERS], const struct user_regs_struct *r)
{
	const uint64_t all[WEFT_LOOK_REGISTERS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
	    r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	memcpy(out, all, sizeof all);
}

static void sample_thread(struct profile *profile, struct process *p, const struct watched_thread *t)
{
	const pid_t tid = t->tid;
	struct user_regs_struct registers;
	if (p->samples.count == MAX_SAMPLES) {
		p->left_out++;
		return;
	}
	unsigned char *bytes = malloc(STACK_BYTES);
	/* A thread that a debugger traces is refused. */
	if (!bytes || ptrace(PTRACE_SEIZE, tid, NULL, NULL) || !stop_thread(tid, profile->command, &registers)) {
		free(bytes);
		return;
	}
	const struct iovec local = {bytes, STACK_BYTES};
	ssize_t size = -1;
	/* The end of a stack may be near: a read that reaches beyond it gets nothing of the last page. */
	for (size_t wanted = STACK_BYTES; size <= 0 && wanted >= 512; wanted /= 2) {
		const struct iovec remote = {(void *)(uintptr_t)registers.rsp, wanted};
		size = process_vm_readv(p->pid, &local, 1, &remote, 1, 0);
	}
	release_thread(tid);
	size_t *block = size > 0 && weft_vec_reserve(&p->samples, p->samples.count + 1) ? weft_vec_push(&p->sample_blocks) : NULL;
	struct weft_look_stack *sample = block ? weft_vec_push(&p->samples) : NULL;
	if (!sample) {
		free(bytes);
		return;
	}
	*block = t->block;
	p->blocks.items[t->block].samples++;
	*sample = (struct weft_look_stack){.has_registers = true, .bytes = bytes, .address = registers.rsp, .size = (size_t)size};
	copy_registers(sample->registers, &registers);
}

/* ---- When to sample ---- */

/* Opens the files of a trace's streams again if there are new ones. */
static void open_streams(struct process *p)
{
	struct stat st;
	if (stat(p->folder, &st) || (st.st_mtim.tv_sec == p->changed.tv_sec && st.st_mtim.tv_nsec == p->changed.tv_nsec))
		return;
	const int folder = weft_users_folder(p->folder);
	DIR *list = folder >= 0 ? weft_named_list(folder) : NULL;
	p->changed = st.st_mtim;
	for (size_t i = 0; i < p->streams.count; i++)
		close(p->streams.items[i]);
	p->streams.count = 0;
	for (const struct dirent *entry; list && (entry = readdir(list));) {
		const struct weft_named_rule rule = {.owner = st.st_uid};
		const int fd = strncmp(entry->d_name, "stream-", 7) ? -1 : weft_named_file(folder, entry->d_name, &rule, NULL);
		int *slot = fd >= 0 ? weft_vec_push(&p->streams) : NULL;
		if (slot)
			*slot = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (list)
		closedir(list);
	if (folder >= 0)
		close(folder);
}

/* Returns a number that changes with each event of a thread; 0: it records nothing. */
static uint64_t get_progress(const struct process *p, pid_t tid)
{
	uint64_t progress = 0;
	struct weft_packet_header h;
	for (size_t i = 0; i < p->streams.count; i++)
		if (pread(p->streams.items[i], &h, sizeof h, 0) == sizeof h && h.tid == (uint64_t)tid)
			progress += (h.sequence << 40) + h.content_size;
	return progress;
}

static struct watched_thread *get_thread(struct process *p, pid_t tid)
{
	for (size_t i = 0; i < p->threads.count; i++)
		if (p->threads.items[i].tid == tid)
			return &p->threads.items[i];
	struct watched_thread *added = weft_vec_push(&p->threads);
	if (added)
		*added = (struct watched_thread){.tid = tid, .cpu_ns = -1};
	return added;
}

/* Returns the CPU time of a thread that is runnable, or -1.  The stop would interrupt the call of one that waits. */
static int64_t read_thread_cpu_ns(int tasks, const char *name)
{
	char text[512];
	int64_t cpu_ns = -1;
	const int task = weft_named_folder(tasks, name, WEFT_ANY_OWNER);
	if (task < 0)
		return -1;
	const char *after = weft_named_text(task, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
	if (!after || strncmp(after, ") R", 3) != 0 || weft_named_text(task, "schedstat", text, sizeof text) <= 0 ||
	    sscanf(text, "%" SCNd64, &cpu_ns) != 1)
		cpu_ns = -1;
	close(task);
	return cpu_ns;
}

static bool is_busy(int64_t cpu_ns, int64_t elapsed_ns)
{
	return cpu_ns * 100 >= elapsed_ns * BUSY_PERCENT;
}

/* Reads the modules again, since the program may have loaded more.  A process that ends meanwhile keeps the known ones. */
static void refresh_modules(struct process *p)
{
	struct weft_look_modules *modules = weft_look_modules_read(p->pid);
	if (!modules)
		return;
	weft_look_modules_free(p->modules);
	p->modules = modules;
}

/* Samples a thread that ran since the last round and recorded nothing.  Returns whether it did. */
static bool watch_thread(struct profile *profile, struct process *p, struct watched_thread *t, int64_t cpu_ns, int64_t elapsed_ns)
{
	const bool was_busy = t->is_busy;
	t->is_busy = cpu_ns >= 0 && t->cpu_ns >= 0 && is_busy(cpu_ns - t->cpu_ns, elapsed_ns);
	t->cpu_ns = cpu_ns;
	if (!t->is_busy)
		return false;
	open_streams(p);
	const uint64_t progress = get_progress(p, t->tid);
	const bool is_long = was_busy && progress && progress == t->progress;
	t->progress = progress;
	if (!is_long)
		return false;
	if (t->block_progress != progress) {
		const struct block block = {.begin_ns = read_clock_ns(CLOCK_MONOTONIC)};
		struct block *added = p->blocks.count < MAX_BLOCKS ? weft_vec_push(&p->blocks) : NULL;
		if (!added)
			return false;
		*added = block;
		t->block = p->blocks.count - 1;
		t->block_progress = progress;
		refresh_modules(p);
	}
	sample_thread(profile, p, t);
	return true;
}

/* Forgets the CPU times of the threads, which are of an earlier round; and all threads if most of them have probably ended. */
static void pause_threads(struct process *p)
{
	enum { MAX_KEPT = 256 };
	if (p->threads.count > MAX_KEPT)
		p->threads.count = 0;
	for (size_t i = 0; i < p->threads.count; i++) {
		p->threads.items[i].cpu_ns = -1;
		p->threads.items[i].is_busy = false;
	}
}

/* Returns whether a thread of the process was sampled. */
static bool watch_process(struct profile *profile, struct process *p, int64_t elapsed_ns)
{
	const int64_t before_ns = p->cpu_ns;
	p->cpu_ns = read_clock_ns(p->clock);
	p->has_ended = p->cpu_ns < 0;
	if (p->has_ended || !is_busy(p->cpu_ns - before_ns, elapsed_ns)) {
		pause_threads(p);
		return false;
	}
	char path[48];
	snprintf(path, sizeof path, "/proc/%ld/task", (long)p->pid);
	const int tasks = weft_users_folder(path);
	DIR *list = tasks >= 0 ? weft_named_list(tasks) : NULL;
	bool any = false;
	for (const struct dirent *entry; list && (entry = readdir(list));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct watched_thread *t = tid > 0 ? get_thread(p, tid) : NULL;
		if (t)
			any |= watch_thread(profile, p, t, read_thread_cpu_ns(tasks, entry->d_name), elapsed_ns);
	}
	if (list)
		closedir(list);
	if (tasks >= 0)
		close(tasks);
	return any;
}

/* Adds the process of a trace, whose folder ends in its id. */
static void add_process(struct profile *profile, const char *folder)
{
	const char *dash = strrchr(folder, '-');
	const long pid = dash ? strtol(dash + 1, NULL, 10) : 0;
	char path[48];
	struct process added = {.pid = (pid_t)pid};
	for (size_t i = 0; i < profile->processes.count; i++)
		if (profile->processes.items[i].pid == pid)
			return;
	if (pid <= 0 || profile->processes.count == MAX_PROCESSES || clock_getcpuclockid((pid_t)pid, &added.clock))
		return;
	snprintf(path, sizeof path, "/proc/%ld/exe", pid);
	if (readlink(path, added.program, sizeof added.program - 1) <= 0)
		return;
	added.cpu_ns = read_clock_ns(added.clock);
	added.folder = strdup(folder);
	struct process *slot = added.folder ? weft_vec_push(&profile->processes) : NULL;
	if (slot)
		*slot = added;
	else
		free(added.folder);
}

static void find_processes(struct profile *profile)
{
	struct session s;
	if (session_read(&s, profile->folder))
		for (size_t i = 0; i < s.traces.count; i++)
			add_process(profile, s.traces.items[i]);
	session_free(&s);
}

static void *run_profile(void *data)
{
	enum { FIND_EACH = 10 }; /* rounds */
	struct profile *profile = data;
	struct pollfd stop = {.fd = profile->stop_fd, .events = POLLIN};
	bool any = false;
	while (poll(&stop, 1, any ? ALARM_MS : USUAL_MS) == 0) {
		const int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC), elapsed_ns = now_ns - profile->seen_ns;
		if (profile->round++ % FIND_EACH == 0 || !profile->processes.count)
			find_processes(profile);
		any = false;
		for (size_t i = 0; i < profile->processes.count; i++)
			if (!profile->processes.items[i].has_ended)
				any |= watch_process(profile, &profile->processes.items[i], elapsed_ns);
		profile->seen_ns = now_ns;
	}
	return NULL;
}

/* ---- Words ---- */

/* The functions of the program in a stack, the outermost first; a function that calls itself is there once. */
struct chain {
	const char *functions[WEFT_LOOK_FRAMES];
	bool is_called_by_library[WEFT_LOOK_FRAMES];
	size_t count;
};

static bool is_program(const struct process *p, const struct weft_look_frame *frame)
{
	const char *path = weft_look_modules_path(p->modules, frame->address);
	return frame->function && path && strcmp(path, p->program) == 0;
}

static void read_chain(struct chain *out, const struct process *p, const struct weft_look_stack *sample)
{
	bool is_after_library = true;
	out->count = 0;
	for (size_t i = sample->frame_count; i-- > 0;) {
		const struct weft_look_frame *frame = &sample->frames[i];
		const char *last = out->count ? out->functions[out->count - 1] : "";
		if (!is_program(p, frame)) {
			is_after_library = true;
			continue;
		}
		if (strcmp(last, frame->function) != 0) {
			out->is_called_by_library[out->count] = is_after_library;
			out->functions[out->count++] = frame->function;
		}
		is_after_library = false;
	}
}

/* Returns the function that most chains have at a level, if a majority has one. */
static const char *find_majority(const struct chain *chains, size_t count, size_t level)
{
	const char *found = NULL;
	size_t lead = 0;
	for (size_t i = 0; i < count; i++) {
		const char *function = level < chains[i].count ? chains[i].functions[level] : "";
		const bool is_same = lead && strcmp(found, function) == 0;
		if (!lead)
			found = function;
		lead = lead && !is_same ? lead - 1 : lead + 1;
	}
	return found && *found ? found : NULL;
}

/* Moves the chains that have a function at a level to the front.  Returns their number. */
static size_t keep_chains(struct chain *chains, size_t count, size_t level, const char *function)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (level < chains[i].count && strcmp(chains[i].functions[level], function) == 0)
			chains[kept++] = chains[i];
	return kept;
}

/* Prints the deepest function in which MOST_PERCENT of the samples of a block are. */
static void print_block(const struct process *p, size_t block, struct chain *chains, int64_t origin_ns)
{
	const char *inner = NULL, *outer = "";
	const size_t all = p->blocks.items[block].samples;
	size_t count = 0, inside = 0;
	for (size_t i = 0; i < p->samples.count; i++)
		if (p->sample_blocks.items[i] == block)
			read_chain(&chains[count++], p, &p->samples.items[i]);
	for (size_t level = 0; level < WEFT_LOOK_FRAMES; level++) {
		const char *function = find_majority(chains, count, level);
		const size_t kept = function ? keep_chains(chains, count, level, function) : 0;
		if (kept * 100 < all * MOST_PERCENT || !kept)
			break;
		inner = function;
		outer = chains[0].is_called_by_library[level] ? function : outer;
		inside = count = kept;
	}
	const int64_t ms = (p->blocks.items[block].begin_ns - origin_ns) / 1000000;
	const bool is_called = inner && strcmp(inner, outer) != 0;
	if (inner)
		cli_note("  at %" PRId64 ".%03" PRId64 " s: %zu of %zu samples in %s()%s%s%s", ms / 1000, ms % 1000, inside, all,
		    inner, is_called ? ", called by " : "", is_called ? outer : "", is_called ? "()" : "");
}

/* Prints the longest blocks in the order of time. */
static void print_blocks(const struct process *p, int64_t origin_ns)
{
	struct chain *chains = calloc(p->samples.count, sizeof *chains);
	size_t shown = 0;
	cli_note("process %ld ran one promise for 10 ms or longer: %zu samples in %zu block%s; times are since the start",
	    (long)p->pid, p->samples.count, p->blocks.count, p->blocks.count == 1 ? "" : "s");
	for (size_t i = 0; chains && i < p->blocks.count; i++) {
		size_t longer = 0;
		for (size_t k = 0; k < p->blocks.count; k++)
			longer += p->blocks.items[k].samples > p->blocks.items[i].samples ||
				  (p->blocks.items[k].samples == p->blocks.items[i].samples && k < i);
		if (longer < MAX_LINES && p->blocks.items[i].samples >= MIN_SAMPLES) {
			print_block(p, i, chains, origin_ns);
			shown++;
		}
	}
	if (shown < p->blocks.count)
		cli_note("  and %zu shorter blocks", p->blocks.count - shown);
	if (p->left_out)
		cli_note("  %" PRIu64 " later samples were not kept", p->left_out);
	free(chains);
}

static void unwind_samples(struct process *p)
{
	struct weft_look_request request = {.stacks = p->samples.items, .stack_count = p->samples.count};
	request.modules = weft_look_modules_list(p->modules, &request.module_count);
	weft_stacks_find(&request);
}

static void free_process(struct process *p)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		struct weft_look_stack *s = &p->samples.items[i];
		for (size_t k = 0; k < s->frame_count; k++)
			free(s->frames[k].function);
		free((void *)(uintptr_t)s->bytes);
	}
	for (size_t i = 0; i < p->streams.count; i++)
		close(p->streams.items[i]);
	weft_look_modules_free(p->modules);
	weft_vec_free(&p->samples);
	weft_vec_free(&p->sample_blocks);
	weft_vec_free(&p->blocks);
	weft_vec_free(&p->streams);
	weft_vec_free(&p->threads);
	free(p->folder);
}

/* ---- The whole ---- */

bool profile_is_supported(void)
{
	return true;
}

struct profile *profile_begin(const char *folder, pid_t command)
{
	struct profile *profile = calloc(1, sizeof *profile);
	if (!profile)
		return NULL;
	*profile = (struct profile){
	    .folder = folder, .command = command, .stop_fd = eventfd(0, EFD_CLOEXEC), .seen_ns = read_clock_ns(CLOCK_MONOTONIC)};
	profile->begin_ns = profile->seen_ns;
	if (profile->stop_fd >= 0 && pthread_create(&profile->thread, NULL, run_profile, profile) == 0)
		return profile;
	if (profile->stop_fd >= 0)
		close(profile->stop_fd);
	free(profile);
	return NULL;
}

void profile_end(struct profile *profile)
{
	const uint64_t word = 1;
	size_t sampled = 0;
	if (!profile)
		return;
	if (write(profile->stop_fd, &word, sizeof word) == sizeof word)
		pthread_join(profile->thread, NULL);
	for (size_t i = 0; i < profile->processes.count; i++) {
		struct process *p = &profile->processes.items[i];
		if (p->samples.count) {
			sampled++;
			unwind_samples(p);
			print_blocks(p, profile->begin_ns);
		}
		free_process(p);
	}
	if (!sampled)
		cli_note("--profile: no promise was seen to run for 10 ms");
	weft_vec_free(&profile->processes);
	close(profile->stop_fd);
	free(profile);
}

#else

bool profile_is_supported(void)
{
	return false;
}

struct profile *profile_begin(const char *folder, pid_t command)
{
	(void)folder;
	(void)command;
	return NULL;
}

void profile_end(struct profile *profile)
{
	(void)profile;
}

#endif
