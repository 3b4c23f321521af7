/* profile.c: implements profile.h.
 *
 * While a process uses a CPU, profile.c examines its threads every 10 ms, or less often if it has thousands of threads.  An OS
 * thread counts as running one promise for long if it has used a CPU for 5 ms since it last slept or began to run a promise. Only
 * such a thread is stopped, while its registers and the top of its stack are copied.  Between two samples, no thread is traced.
 * The copies of stacks are unwound when there are many, or after the program has ended.
 *
 * If all runs are sampled, the kernel copies registers and stacks (kernel/samples.h), and no thread is stopped.  The stacks of
 * Python and JavaScript are read from the memory of the process, so a thread must stand still meanwhile: of such processes, only
 * long runs are sampled.  SPDX-License-Identifier: ISC */
#include "apps/control/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
#include <weft/record_inline.h>

#include "apps/control/profile_trace.h"
#include "base/named.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "kernel/samples.h"
#include "look/look.h"
#include "session/session.h"
#include "wire/wire.h"
#ifdef WEFT_HAS_NAMES
#include "backends/dwarf/stacks.h"
#endif

#if defined(__x86_64__) && defined(WEFT_HAS_NAMES)

/* MAX_COPIES limits the memory to 4 MiB for each process, and MAX_SAMPLES and MAX_ALL_SAMPLES limit the size of the samples in
 * the trace. */
enum { RSP = 7 }; /* number of the register in a weft_look_stack */

enum {
	USUAL_MS = 10,
	ALARM_MS = 5,
	LONG_CPU_MS = 5, /* CPU time since the start of a thread's run from which on the run is long */
	NEW_CPU_MS = 1,  /* CPU time since the last examination that a thread must have used to be examined */
	STACK_BYTES = 16 << 10,
	MAX_COPIES = 256,
	MAX_SAMPLES = 16384,
	MAX_ALL_SAMPLES = 1 << 18, /* if all runs are sampled */
	MAX_PROCESSES = 32,
	SAMPLES_AT_ONCE = 16, /* number of samples of one run after which the time between its samples is doubled */
	WATCH_SHARE = 20,     /* the examinations use at most this fraction of one CPU */
	COST_SHARE = 50       /* if a sample costs more than this fraction of the time to the next sample, that time is doubled */
};

/* Position at which the newest recorded event of an OS thread ends. */
struct record_end {
	int stream; /* descriptor of the thread's stream; -1 if the thread records nothing */
	uint64_t sequence, bits;
};

/* Times since a thread's start; -1 if a time is unknown or the thread sleeps. */
struct thread_times {
	int64_t cpu_ns;    /* on a CPU */
	int64_t waited_ns; /* for a CPU */
};

struct watched_thread {
	pid_t tid;
	int64_t cpu_ns;       /* CPU time at the last examination; -1 if there was none */
	int64_t quiet_cpu_ns; /* CPU time at the first examination of the thread's current run */
	struct record_end end;
	/* Number of the thread's run: an interval in which the thread neither sleeps nor begins to run another promise.  A run
	 * also includes the time in which another program has the CPU. */
	uint64_t run, block_run; /* block_run: number of the newest run that was long, or 0 */
	unsigned block_samples;
	unsigned long long sleeps; /* number of voluntary context switches at the last examination of a long run */
	int64_t gap_ns, next_ns;   /* time between two samples of that run, and earliest time of the next sample */
	/* Data of the newest sample until its cost is known: its time, the duration of the stop, and the time that the thread
	 * had waited for a CPU before.
	 */
	int64_t sampled_ns, stopped_ns, waited_ns;
	uint64_t source_state;
};

struct process {
	pid_t pid;
	char *folder;
	clockid_t clock;
	int64_t cpu_ns;
	bool has_ended;
	bool has_new_code;       /* whether it has mapped code since its modules were read */
	bool is_interpreted;     /* whether it runs Python or JavaScript */
	struct timespec changed; /* time at which the folder had changed when its streams were opened */
	WEFT_VEC(int) streams;
	WEFT_VEC(struct watched_thread) threads;
	struct weft_look_modules *modules;
	char program[256]; /* path of the executable */
	WEFT_VEC(struct weft_look_stack) copies;
	WEFT_VEC(struct profile_moment) moments; /* by copy */
	struct profile_trace samples;            /* those of earlier copies */
};

/* A moment, on three clocks. */
struct clock_reading {
	uint64_t raw_ns, counter;
	int64_t monotonic_ns;
};

struct profile {
	const char *folder;
	pid_t command;
	int stop_fd;
	pthread_t thread;
	int round;
	struct weft_kernel_samples *samples; /* samples of all runs; NULL if only long runs are sampled */
	uint32_t rate_hz;
	char why[96];                   /* what is not sampled */
	struct clock_reading clocks[2]; /* at the previous drain of the samples, and at this drain */
	uint64_t lost;                  /* number of samples that the kernel could not keep */
	bool has_searched;              /* whether processes were searched in this drain */
	WEFT_VEC(struct process) processes;
};

static int64_t read_clock_ns(clockid_t clock)
{
	struct timespec now;
	return clock_gettime(clock, &now) ? -1 : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- One sample ---- */

/* Waits until a thread has stopped after PTRACE_INTERRUPT, and reads the thread's registers.  The function does not wait by
 * waitpid(), because another thread of this command may get the stop instead.  Returns false if the thread has ended. */
static bool stop_thread(pid_t tid, pid_t command, struct user_regs_struct *registers)
{
	enum { STOPPED = 0x7f };
	const struct timespec pause = {.tv_nsec = 20000};
	int status = STOPPED;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return false;
	while (ptrace(PTRACE_GETREGS, tid, NULL, registers)) {
		/* The end of the command itself is left for the thread of weft that waits for the command. */
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

/* Returns whether a signal is pending for the thread, so that an interrupted call has to end anyway. */
static bool has_signal(const struct process *p, pid_t tid)
{
	char path[64], text[4096];
	unsigned long long own = 0, shared = 0, blocked = 0;
	snprintf(path, sizeof path, "/proc/%ld/task/%ld", (long)p->pid, (long)tid);
	const int folder = weft_users_folder(path);
	const bool is_read = folder >= 0 && weft_named_text(folder, "status", text, sizeof text) > 0;
	const char *at = is_read ? strstr(text, "\nSigPnd:") : NULL;
	if (folder >= 0)
		close(folder);
	return !at || sscanf(at, " SigPnd: %llx ShdPnd: %llx SigBlk: %llx", &own, &shared, &blocked) != 3 ||
	       ((own | shared) & ~blocked) != 0;
}

/* Lets a stopped thread continue, with the signal that the thread was about to get.  After a stop, the kernel does not repeat
 * epoll_wait() and a few other calls, but ends them as after a signal; the function makes the thread repeat such a call, so that
 * the program sees nothing. */
static void release_thread(const struct process *p, pid_t tid, const struct user_regs_struct *registers)
{
	siginfo_t why = {0};
	long number = 0;
	if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &why) == 0 && why.si_code >> 8 != PTRACE_EVENT_STOP)
		number = why.si_signo;
	else if ((long long)registers->orig_rax >= 0 && (long long)registers->rax == -EINTR && !has_signal(p, tid)) {
		enum { SYSCALL_BYTES = 2 };
		struct user_regs_struct again = *registers;
		again.rax = registers->orig_rax;
		again.rip -= SYSCALL_BYTES;
		(void)ptrace(PTRACE_SETREGS, tid, NULL, &again);
	}
	(void)ptrace(PTRACE_DETACH, tid, NULL, (void *)number);
}

/* ---- Samples of long runs ---- */

/* Unwinds the copied stacks, adds them to the samples of the trace, and frees the copies. */
static void unwind_copies(struct process *p)
{
	struct weft_look_request request = {.stacks = p->copies.items, .stack_count = p->copies.count, .has_no_names = true};
	request.modules = weft_look_modules_list(p->modules, &request.module_count);
	if (p->copies.count)
		weft_stacks_find(&request);
	for (size_t i = 0; i < p->copies.count; i++) {
		profile_trace_add(&p->samples, p->modules, p->program, &p->copies.items[i], &p->moments.items[i]);
		free((void *)(uintptr_t)p->copies.items[i].bytes);
	}
	p->copies.count = p->moments.count = 0;
}

static void copy_registers(uint64_t out[WEFT_LOOK_REGISTERS], const struct user_regs_struct *r)
{
	const uint64_t all[WEFT_LOOK_REGISTERS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
	    r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	memcpy(out, all, sizeof all);
}

/* Takes a sample of a thread that was running a moment ago.  If the thread has entered a call meanwhile, the stop interrupts
 * that call. */
static void sample_thread(struct profile *profile, struct process *p, struct watched_thread *t)
{
	const pid_t tid = t->tid;
	struct user_regs_struct registers;
	if (p->samples.samples.count + p->copies.count >= MAX_SAMPLES) {
		p->samples.lost++;
		return;
	}
	unsigned char *bytes = malloc(STACK_BYTES);
	const int64_t began_ns = read_clock_ns(CLOCK_MONOTONIC);
	t->stopped_ns = 0;
	/* The kernel refuses to trace a thread that a debugger traces. */
	if (!bytes || ptrace(PTRACE_SEIZE, tid, NULL, NULL) || !stop_thread(tid, profile->command, &registers)) {
		free(bytes);
		return;
	}
	const struct profile_moment moment = {
	    .monotonic_ns = read_clock_ns(CLOCK_MONOTONIC), .counter = weft__counter(), .tid = (uint32_t)tid};
	const struct iovec local = {bytes, STACK_BYTES};
	ssize_t size = -1;
	/* The end of the stack may be near, and a read that reaches beyond it gets nothing of the last page, so smaller sizes
	 * are tried. */
	for (size_t wanted = STACK_BYTES; size <= 0 && wanted >= 512; wanted /= 2) {
		const struct iovec remote = {(void *)(uintptr_t)registers.rsp, wanted};
		size = process_vm_readv(p->pid, &local, 1, &remote, 1, 0);
	}
	struct weft_look_stack stack = {
	    .has_registers = true, .bytes = bytes, .address = registers.rsp, .size = size > 0 ? (size_t)size : 0};
	copy_registers(stack.registers, &registers);
	struct weft_look_source_frame frames[WEFT_LOOK_FRAMES];
	const size_t frame_count = weft_look_sources(p->modules, &stack, tid, &t->source_state, frames);
	release_thread(p, tid, &registers);
	t->stopped_ns = read_clock_ns(CLOCK_MONOTONIC) - began_ns;
	if (frame_count)
		profile_trace_add_sources(&p->samples, frames, frame_count, &moment);
	for (size_t i = 0; i < frame_count; i++) {
		free(frames[i].function);
		free(frames[i].file);
	}
	const bool has_memory = size > 0 && !frame_count && weft_vec_reserve(&p->copies, 1) && weft_vec_reserve(&p->moments, 1);
	if (!has_memory) {
		free(bytes);
		return;
	}
	struct weft_look_stack *copy = &p->copies.items[p->copies.count++];
	p->moments.items[p->moments.count++] = moment;
	*copy = stack;
	if (p->copies.count == MAX_COPIES)
		unwind_copies(p);
}

/* ---- Times at which threads are sampled ---- */

/* Opens the files of a trace's streams again if the trace has new streams. */
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

static struct record_end find_record_end(const struct process *p, pid_t tid)
{
	struct record_end end = {.stream = -1};
	struct weft_packet_header h;
	for (size_t i = 0; i < p->streams.count; i++) {
		const int stream = p->streams.items[i];
		if (pread(stream, &h, sizeof h, 0) == sizeof h && h.tid == (uint64_t)tid &&
		    (end.stream < 0 || h.sequence > end.sequence))
			end = (struct record_end){stream, h.sequence, h.content_size};
	}
	return end;
}

/* Returns the size in bytes of an event that begins with an id, 0 if unknown, and in *ends_run whether the event ends a thread's
 * run. */
static size_t read_event(const unsigned char *at, size_t left, bool *ends_run)
{
	const size_t header = *at == WEFT_ID_EXTENDED ? WEFT_EXTENDED_HEADER : WEFT_COMPACT_HEADER;
	if (left < header)
		return 0;
	const uint8_t id = *at == WEFT_ID_EXTENDED ? at[1] : *at, op = id & WEFT_ID_OP;
	const unsigned payload = weft__payload_bytes(id);
	size_t bytes = payload ? header + payload - 1 : 0;
	if (!bytes || bytes > left)
		return 0;
	*ends_run = op == WEFT_OP_RUN || op == WEFT_OP_IDLE || op == WEFT_OP_RESUME;
	if (!(id & WEFT_ID_INLINE))
		return bytes;
	const unsigned char *end = memchr(at + bytes, 0, left - bytes);
	return end ? (size_t)(end - at) + 1 : 0;
}

/* Returns whether a thread's run has or may have ended between two positions in its stream; a garbage collector's events for
 * locks do not end a run. */
static bool has_ended_run(const struct record_end *before, const struct record_end *after)
{
	enum { MOST_BYTES = 4096 };
	unsigned char bytes[MOST_BYTES];
	if (before->stream < 0 || after->stream < 0 || before->sequence != after->sequence || before->bits > after->bits ||
	    after->bits - before->bits > MOST_BYTES * 8)
		return true;
	const size_t count = (after->bits - before->bits) / 8;
	if (pread(after->stream, bytes, count, (off_t)(before->bits / 8)) != (ssize_t)count)
		return true;
	for (size_t at = 0; at < count;) {
		bool ends_run = false;
		const size_t size = read_event(bytes + at, count - at, &ends_run);
		if (!size || ends_run)
			return true;
		at += size;
	}
	return false;
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

/* Reads the times of a runnable thread.  A thread that waits in a call is left alone, because a stop would interrupt the
 * call. */
static struct thread_times read_thread_times(int tasks, const char *name)
{
	const struct thread_times none = {-1, -1};
	struct thread_times times;
	char text[512];
	const int task = weft_named_folder(tasks, name, WEFT_ANY_OWNER);
	if (task < 0)
		return none;
	const char *after = weft_named_text(task, "stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
	if (!after || strncmp(after, ") R", 3) != 0 || weft_named_text(task, "schedstat", text, sizeof text) <= 0 ||
	    sscanf(text, "%" SCNd64 " %" SCNd64, &times.cpu_ns, &times.waited_ns) != 2)
		times = none;
	close(task);
	return times;
}

/* Returns the number of times that a thread has slept in a call, or ULLONG_MAX if it is unknown. */
static unsigned long long read_sleeps(const struct process *p, pid_t tid)
{
	char path[64], text[4096];
	unsigned long long count = ULLONG_MAX;
	snprintf(path, sizeof path, "/proc/%ld/task/%ld", (long)p->pid, (long)tid);
	const int folder = weft_users_folder(path);
	const char *at = folder >= 0 && weft_named_text(folder, "status", text, sizeof text) > 0
			     ? strstr(text, "\nvoluntary_ctxt_switches:")
			     : NULL;
	if (folder >= 0)
		close(folder);
	return at && sscanf(at, " voluntary_ctxt_switches: %llu", &count) == 1 ? count : ULLONG_MAX;
}

/* Reads the list of modules again, because the program may have loaded more.  If the process ends meanwhile, the known modules
 * are kept. */
static void refresh_modules(struct process *p)
{
	struct weft_look_modules *modules = weft_look_modules_read(p->pid);
	if (!modules)
		return;
	weft_look_modules_free(p->modules);
	p->modules = modules;
}

/* Delays the next sample if the newest sample was expensive.  On a busy machine, another program gets the CPU of a stopped
 * thread, and the thread then waits for a CPU; this wait can be a hundred times as long as the stop.  The time between samples
 * is only doubled, because even a long run needs a few samples. */
static void pay_for_sample(struct watched_thread *t, const struct thread_times *now)
{
	if (!t->sampled_ns)
		return;
	const int64_t wanted_ns = (t->stopped_ns + now->waited_ns - t->waited_ns) * COST_SHARE;
	if (wanted_ns > t->gap_ns)
		t->gap_ns = wanted_ns < 2 * t->gap_ns ? wanted_ns : 2 * t->gap_ns;
	if (t->next_ns < t->sampled_ns + t->gap_ns)
		t->next_ns = t->sampled_ns + t->gap_ns;
	t->sampled_ns = 0;
}

/* Samples a thread that has run since the last examination and is running one promise for long.  Returns whether it does. */
static bool watch_thread(struct profile *profile, struct process *p, struct watched_thread *t, struct thread_times now)
{
	const int64_t cpu_ns = now.cpu_ns;
	/* On a busy machine, a computing thread has a CPU only part of the time, so CPU time is measured. */
	const bool is_known = t->cpu_ns >= 0;
	if (cpu_ns < 0 || (is_known && cpu_ns - t->cpu_ns < (int64_t)NEW_CPU_MS * 1000000))
		return false;
	t->cpu_ns = cpu_ns;
	pay_for_sample(t, &now);
	open_streams(p);
	const struct record_end end = find_record_end(p, t->tid);
	if (!is_known || has_ended_run(&t->end, &end)) {
		t->run++;
		t->quiet_cpu_ns = cpu_ns;
	}
	t->end = end;
	if (end.stream < 0 || cpu_ns - t->quiet_cpu_ns < (int64_t)LONG_CPU_MS * 1000000)
		return false;
	const int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
	if (t->block_run != t->run) {
		t->block_run = t->run;
		t->block_samples = 0;
		t->gap_ns = (int64_t)ALARM_MS * 1000000;
		t->next_ns = now_ns;
		refresh_modules(p);
	}
	if (now_ns < t->next_ns)
		return true;
	/* A thread that sleeps now and then may be about to sleep, and is not stopped: a stop makes a write() to a full pipe
	 * return early, which cannot be undone. */
	const unsigned long long sleeps = read_sleeps(p, t->tid);
	const bool has_slept = sleeps != t->sleeps || sleeps == ULLONG_MAX;
	t->sleeps = sleeps;
	if (has_slept)
		return true;
	sample_thread(profile, p, t);
	t->sampled_ns = now_ns;
	t->waited_ns = now.waited_ns;
	/* A run of minutes needs no more samples than a few runs of a second. */
	const int64_t longest_ns = (int64_t)ALARM_MS * 1000000 << 10;
	if (++t->block_samples % SAMPLES_AT_ONCE == 0 && t->gap_ns < longest_ns)
		t->gap_ns *= 2;
	t->next_ns = t->block_samples < SAMPLES_AT_ONCE ? 0 : now_ns + t->gap_ns;
	return true;
}

/* Forgets all threads of a process if most of them have probably ended. */
static void forget_threads(struct process *p)
{
	enum { MAX_KEPT = 256 };
	if (p->threads.count > MAX_KEPT)
		p->threads.count = 0;
}

/* Examines the threads of a process, and returns whether a thread was sampled. */
static bool watch_process(struct profile *profile, struct process *p)
{
	const int64_t cpu_ns = read_clock_ns(p->clock);
	p->has_ended = cpu_ns < 0;
	if (p->has_ended || (profile->samples && !p->is_interpreted) || cpu_ns - p->cpu_ns < (int64_t)NEW_CPU_MS * 1000000)
		return false;
	p->cpu_ns = cpu_ns;
	forget_threads(p);
	char path[48];
	snprintf(path, sizeof path, "/proc/%ld/task", (long)p->pid);
	const int tasks = weft_users_folder(path);
	DIR *list = tasks >= 0 ? weft_named_list(tasks) : NULL;
	bool any = false;
	for (const struct dirent *entry; list && (entry = readdir(list));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct watched_thread *t = tid > 0 ? get_thread(p, tid) : NULL;
		if (t)
			any |= watch_thread(profile, p, t, read_thread_times(tasks, entry->d_name));
	}
	if (list)
		closedir(list);
	if (tasks >= 0)
		close(tasks);
	return any;
}

/* Adds the process of a trace; the name of the trace's folder ends in the process id. */
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

/* ---- Samples of all runs ---- */

/* Reads the clocks, and keeps the tightest of several tries. */
static struct clock_reading read_clocks(void)
{
	enum { TRIES = 5 };
	struct clock_reading best = {0};
	uint64_t best_span = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = weft__counter();
		const int64_t raw_ns = read_clock_ns(CLOCK_MONOTONIC_RAW), monotonic_ns = read_clock_ns(CLOCK_MONOTONIC);
		const uint64_t span = weft__counter() - before;
		if (span >= best_span)
			continue;
		best_span = span;
		best = (struct clock_reading){(uint64_t)raw_ns, before + span / 2, monotonic_ns};
	}
	return best;
}

/* Converts a time between the two clock readings. */
static struct profile_moment find_moment(const struct profile *profile, uint64_t raw_ns, uint32_t tid)
{
	const struct clock_reading *before = &profile->clocks[0], *now = &profile->clocks[1];
	const double share = (double)(int64_t)(raw_ns - before->raw_ns) / (double)(now->raw_ns - before->raw_ns);
	return (struct profile_moment){
	    .monotonic_ns = before->monotonic_ns + (int64_t)(share * (double)(now->monotonic_ns - before->monotonic_ns)),
	    .counter = before->counter + (uint64_t)(int64_t)(share * (double)(now->counter - before->counter)),
	    .tid = tid};
}

static struct process *get_process(struct profile *profile, uint32_t pid)
{
	for (size_t i = 0; i < profile->processes.count; i++)
		if (profile->processes.items[i].pid == (pid_t)pid)
			return &profile->processes.items[i];
	return NULL;
}

static void read_new_code(struct process *p)
{
	if (!p->has_new_code && p->modules)
		return;
	p->has_new_code = false;
	refresh_modules(p);
	if (p->is_interpreted || !weft_look_has_sources(p->modules))
		return;
	p->is_interpreted = true;
	while (p->copies.count)
		free((void *)(uintptr_t)p->copies.items[--p->copies.count].bytes);
	p->moments.count = 0;
}

/* Keeps a sample of a recorded process, which the kernel took. */
static void keep_sample(void *ctx, const struct weft_kernel_sample *sample)
{
	struct profile *profile = ctx;
	struct process *p = get_process(profile, sample->pid);
	if (!p && !sample->is_mapping && !profile->has_searched) {
		profile->has_searched = true;
		find_processes(profile);
		p = get_process(profile, sample->pid);
	}
	if (p && sample->is_mapping)
		p->has_new_code = true;
	if (!p || sample->is_mapping || p->is_interpreted)
		return;
	const bool is_full = p->samples.samples.count + p->copies.count >= MAX_ALL_SAMPLES;
	unsigned char *bytes = is_full ? NULL : malloc(sample->size + 1);
	if (!bytes || !weft_vec_reserve(&p->copies, 1) || !weft_vec_reserve(&p->moments, 1)) {
		free(bytes);
		p->samples.lost++;
		return;
	}
	memcpy(bytes, sample->bytes, sample->size);
	struct weft_look_stack *copy = &p->copies.items[p->copies.count++];
	*copy = (struct weft_look_stack){
	    .has_registers = true, .bytes = bytes, .address = sample->registers[RSP], .size = sample->size};
	memcpy(copy->registers, sample->registers, sizeof copy->registers);
	p->moments.items[p->moments.count++] = find_moment(profile, sample->time_ns, sample->tid);
	if (p->copies.count < MAX_COPIES)
		return;
	read_new_code(p);
	unwind_copies(p);
}

static void drain_samples(struct profile *profile)
{
	if (!profile->samples)
		return;
	profile->has_searched = false;
	profile->clocks[0] = profile->clocks[1];
	profile->clocks[1] = read_clocks();
	profile->lost += weft_kernel_samples_drain(profile->samples, keep_sample, profile);
	/* The process may end before its copies are unwound. */
	for (size_t i = 0; i < profile->processes.count; i++)
		if (profile->processes.items[i].copies.count)
			read_new_code(&profile->processes.items[i]);
}

/* Starts to sample all runs; if the user may not, a note says why. */
static void begin_samples(struct profile *profile, uint32_t rate_hz)
{
	_Static_assert(
	    (int)WEFT_KERNEL_REGISTERS == (int)WEFT_LOOK_REGISTERS, "both are the registers of x86-64 in DWARF's order");
	if (!rate_hz)
		return;
	profile->rate_hz = rate_hz;
	profile->clocks[1] = read_clocks();
	profile->samples = weft_kernel_samples_open(profile->command, rate_hz, profile->why, sizeof profile->why);
	if (!profile->samples)
		cli_note("--profile=all: %s; only runs of 10 ms or longer are sampled", profile->why);
}

/* Says of the samples of a process which runs have samples, and why no more. */
static int64_t describe_samples(const struct profile *profile, struct process *p)
{
	const bool has_all = profile->samples && !p->is_interpreted;
	p->samples.why =
	    profile->samples && p->is_interpreted ? "Python and JavaScript are sampled in long runs only" : profile->why;
	p->samples.way = has_all ? (uint8_t)weft_kernel_samples_way(profile->samples) : WEFT_PROFILE_WAY_LONG;
	return has_all ? 1000000000 / (int64_t)profile->rate_hz : (int64_t)ALARM_MS * 1000000;
}

/* ---- The whole ---- */

/* Returns the time until the next examination, after one that took this CPU time. */
static int get_pause_ms(int64_t cost_ns, bool has_sampled)
{
	const int64_t usual_ms = has_sampled ? ALARM_MS : USUAL_MS, affordable_ms = cost_ns * WATCH_SHARE / 1000000;
	return (int)(affordable_ms > usual_ms ? affordable_ms : usual_ms);
}

static void *run_profile(void *data)
{
	enum { FIND_EACH = 10 }; /* rounds */
	struct profile *profile = data;
	struct pollfd stop = {.fd = profile->stop_fd, .events = POLLIN};
	bool any = false;
	int64_t cost_ns = 0;
	while (poll(&stop, 1, get_pause_ms(cost_ns, any)) == 0) {
		const int64_t before_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (profile->round++ % FIND_EACH == 0 || !profile->processes.count)
			find_processes(profile);
		drain_samples(profile);
		any = false;
		for (size_t i = 0; i < profile->processes.count; i++)
			if (!profile->processes.items[i].has_ended)
				any |= watch_process(profile, &profile->processes.items[i]);
		cost_ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	}
	return NULL;
}

static void free_process(struct process *p)
{
	for (size_t i = 0; i < p->streams.count; i++)
		close(p->streams.items[i]);
	weft_look_modules_free(p->modules);
	weft_vec_free(&p->copies);
	weft_vec_free(&p->moments);
	profile_trace_free(&p->samples);
	weft_vec_free(&p->streams);
	weft_vec_free(&p->threads);
	free(p->folder);
}

bool profile_is_supported(void)
{
	return true;
}

struct profile *profile_begin(const char *folder, pid_t command, uint32_t rate_hz)
{
	struct profile *profile = calloc(1, sizeof *profile);
	if (!profile)
		return NULL;
	*profile = (struct profile){.folder = folder, .command = command, .stop_fd = eventfd(0, EFD_CLOEXEC)};
	begin_samples(profile, rate_hz);
	if (profile->stop_fd >= 0 && pthread_create(&profile->thread, NULL, run_profile, profile) == 0)
		return profile;
	if (profile->stop_fd >= 0)
		close(profile->stop_fd);
	weft_kernel_samples_close(profile->samples);
	free(profile);
	return NULL;
}

void profile_end(struct profile *profile)
{
	const uint64_t word = 1;
	if (!profile)
		return;
	if (write(profile->stop_fd, &word, sizeof word) == sizeof word)
		pthread_join(profile->thread, NULL);
	drain_samples(profile);
	if (profile->processes.count)
		profile->processes.items[0].samples.lost += profile->lost;
	for (size_t i = 0; i < profile->processes.count; i++) {
		struct process *p = &profile->processes.items[i];
		unwind_copies(p);
		const int64_t period_ns = describe_samples(profile, p);
		profile_trace_write(&p->samples, profile->folder, p->folder, period_ns);
		free_process(p);
	}
	weft_vec_free(&profile->processes);
	weft_kernel_samples_close(profile->samples);
	close(profile->stop_fd);
	free(profile);
}

#else

bool profile_is_supported(void)
{
	return false;
}

struct profile *profile_begin(const char *folder, pid_t command, uint32_t rate_hz)
{
	(void)folder;
	(void)command;
	(void)rate_hz;
	return NULL;
}

void profile_end(struct profile *profile)
{
	(void)profile;
}

#endif
