/* perf.c: reads the kernel's perf events of a command's OS threads.
 *
 * The basic level has one event on each CPU, which records page faults and each context switch.  Every user may open it for own
 * processes if perf_event_paranoid is at most 2.  Root and users with CAP_PERFMON also get the scheduler's tracepoints.  These
 * say which thread took the CPU, in which syscall a thread blocked, and which thread woke another one.  The syscall comes from
 * the kernel's call chain, because a record for each syscall would cost most; wake-ups need an event on the whole machine.
 * Tracepoints omit some switches (idle CPUs, switches from other programs), so they add details to the switch records and never
 * replace them.
 *
 * If the kernel accepts BPF programs (bpf.h), the programs record the thread that took the CPU, the syscall and softirqs instead
 * of tracepoints.
 *
 * In flight mode the events are not read continuously: the kernel writes each ring backwards over the ring's oldest records.  A
 * reader of such a ring goes from the newest record to the oldest record that is left.  Stopping the rings would lose events, so
 * the rings are copied, and records that were overwritten during the copy are dropped.  Names of threads are recorded only once
 * and have rings of their own.  Wake-ups also have rings of their own, because most of them belong to other programs and would
 * displace this program's events.  SPDX-License-Identifier: ISC */
#include "kernel/perf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/idmap.h"
#include "base/sort.h"
#include "base/vec.h"
#include "kernel/bpf.h"
#include "kernel/probes.h"
#include "kernel/ring.h"
#include "kernel/syscall_args.h"

enum {
	MAX_EVENT_BYTES = 1024 /* approximate size of a large record of this program */,
	MAX_RING_BYTES = 4 << 20,
	MAX_FLIGHT_BYTES = 64 << 20,
	NAMES_RING_BYTES = 64 << 10,
	UNFINISHED_BYTES = 8 << 10, /* maximum number of bytes that the kernel may be writing at the moment */
	MAX_FRAMES = 48,
	CALL_CACHE_SLOTS = 256,
	MAX_SYSCALLS = 512, /* number of syscall numbers that may have a name here */
	MAX_PROBES = 16,
	MAX_GC_MARKS = 1 << 16
};

/* Mask of PERF_SAMPLE_REGS_USER for the register with a syscall's first argument. */
#if defined __x86_64__
#define FIRST_ARGUMENT 0x20u /* rdi */
#elif defined __aarch64__
#define FIRST_ARGUMENT 0x1u /* x0 */
#else
#define FIRST_ARGUMENT 0u
#endif

enum source {
	SOURCE_OWN,
	SOURCE_NAMES,  /* in flight mode */
	SOURCE_SWITCH, /* preempted: still runnable */
	SOURCE_SLEEP,  /* blocked, with its syscall */
	SOURCE_WAKING,
	SOURCE_BPF, /* from the BPF program */
	SOURCE_IRQ, /* start of an interrupt; this and the next sources come in pairs of start and end */
	SOURCE_IRQ_END,
	SOURCE_TICK,
	SOURCE_TICK_END,
	SOURCE_SOFTIRQ,
	SOURCE_SOFTIRQ_END,
	SOURCE_PROBE, /* start of a garbage collection */
	SOURCE_PROBE_END
};

/* Tracepoints of interrupts; a kernel may lack some of them. */
static const struct {
	const char *system, *name, *field; /* field with the name or number of the interrupt */
	enum source source;
} interrupts[] = {
    {"irq", "irq_handler_entry", "name", SOURCE_IRQ},
    {"irq", "irq_handler_exit", NULL, SOURCE_IRQ_END},
    {"irq_vectors", "local_timer_entry", NULL, SOURCE_TICK},
    {"irq_vectors", "local_timer_exit", NULL, SOURCE_TICK_END},
    {"irq", "softirq_entry", "vec", SOURCE_SOFTIRQ},
    {"irq", "softirq_exit", NULL, SOURCE_SOFTIRQ_END},
};

enum { INTERRUPT_COUNT = sizeof interrupts / sizeof *interrupts };

/* Names of softirqs, indexed by number. */
static const char *const softirq_names[] = {
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"};

/* An interrupt that is being handled; at most one of each type is open, because interrupts nest. */
struct open_interrupt {
	uint64_t time_ns; /* 0: none */
	char name[16];
};

struct ring {
	int fd; /* descriptor of the event that owns the ring; other events write into the ring too */
	uint32_t cpu;
	struct weft_kernel_ring ring;
	uint64_t last_ns;          /* time of the ring's newest record */
	uint64_t read_head;        /* position of the newest record at the last read, in flight mode */
	bool has_names;            /* whether the ring has only names of threads, in flight mode */
	uint32_t switched_off_tid; /* tid of the thread whose switch a tracepoint or BPF record has just described; the switch
				      record follows */
	/* Last BPF record of a thread that has ended, because its last switch has no switch record. */
	struct weft_kernel_perf_event bpf_event;
	struct open_interrupt open_interrupt[(SOURCE_PROBE - SOURCE_IRQ) / 2];
};

struct event {
	uint64_t id;
	int fd;
	enum source source;
	const char *runtime; /* PROBE */
};

/* Copy of a ring in flight mode. */
struct ring_copy {
	unsigned char *bytes;   /* bytes of the ring from the newest record on; NULL: none */
	uint64_t head, written; /* position of the newest record, and number of bytes that were written since the last read */
	uint64_t left;          /* number of the written bytes that were copied */
	WEFT_VEC(size_t) found; /* offsets of the records that were found, the newest first */
};

/* Start or end of a garbage collection, which may end on another CPU. */
struct gc_mark {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	bool is_end;
	const char *runtime;
};

/* A file that a process has loaded, and the probes in it. */
struct loaded {
	char *path;
	uint32_t pid; /* id of the only process that is probed; 0 if all processes that load the file are probed */
	int fd;       /* descriptor of the file, while its process may start more threads; -1: closed */
	struct weft_kernel_probe probes[MAX_PROBES];
	size_t probe_count;
};

/* A kernel function that implements a syscall or handles page faults. */
struct kernel_symbol {
	uint64_t begin, end;
	uint8_t call;
};

/* Ids and field offsets of the tracepoints of this kernel. */
struct tracepoints {
	int switch_id, waking_id;
	uint16_t prev_pid, prev_state, next_pid, next_comm, waking_pid;
	int interrupt_ids[INTERRUPT_COUNT]; /* 0: not available */
	uint16_t interrupt_fields[INTERRUPT_COUNT];
};

struct weft_kernel_perf {
	enum weft_kernel_level level;
	struct weft_kernel_perf_options options;
	WEFT_VEC(struct ring) rings, names, wakes; /* rings of each CPU; `names` and `wakes` exist only in flight mode */
	WEFT_VEC(struct event) events;
	struct weft_idmap by_id;           /* map from a perf id to an index of `events` */
	WEFT_VEC(struct gc_mark) gc_marks; /* unpaired starts and ends */
	WEFT_VEC(struct loaded) loaded;
	/* Number of files that are probed for one process, and number of events of such probes. */
	size_t open_files, thread_events;
	int probe_type;                                /* type number of perf's uprobe PMU; 0 if not available */
	WEFT_VEC(struct kernel_symbol) kernel_symbols; /* sorted by address */
	struct tracepoints tracepoints;
	struct weft_kernel_bpf *bpf; /* BPF programs; NULL if tracepoints record why a thread left the CPU */
	uint8_t calls[MAX_SYSCALLS];
	struct {
		uint64_t address;
		uint8_t call;
	} cache[CALL_CACHE_SLOTS];
	unsigned char *record_buffer; /* buffer for a record that wraps around the end of its ring */
	struct ring_copy own_copy, wakes_copy;
};

/* ---- Symbols and tracepoints of this kernel ---- */

static int compare_symbols(const void *x, const void *y)
{
	const struct kernel_symbol *a = x, *b = y;
	return WEFT_ORDER(a->begin, b->begin) ?: WEFT_ORDER(a->call, b->call);
}

static uint8_t parse_syscall_symbol(const char *symbol)
{
	static const struct {
		const char *name;
		uint8_t call;
	} calls[] = {
#define CALL(NAME, value, name) {name, value},
	    WEFT_KERNEL_CALLS(CALL)
#undef CALL
	};
	/* If a compiler ends the syscall's function with a tail call, only the called function is in the call chain. */
	static const struct {
		const char *name;
		uint8_t call;
	} inner[] = {{"exc_page_fault", WEFT_CALL_FAULT}, {"do_page_fault", WEFT_CALL_FAULT}, {"do_mem_abort", WEFT_CALL_FAULT},
	    {"ksys_read", WEFT_CALL_READ}, {"ksys_write", WEFT_CALL_WRITE}, {"ksys_pread64", WEFT_CALL_PREAD},
	    {"ksys_pwrite64", WEFT_CALL_PWRITE}, {"do_readv", WEFT_CALL_READV}, {"do_writev", WEFT_CALL_WRITEV},
	    {"do_sys_openat2", WEFT_CALL_OPENAT}, {"do_sys_open", WEFT_CALL_OPENAT}, {"do_fsync", WEFT_CALL_FSYNC},
	    {"ksys_sync", WEFT_CALL_SYNC}, {"do_epoll_wait", WEFT_CALL_EPOLL_WAIT}, {"do_epoll_pwait", WEFT_CALL_EPOLL_PWAIT},
	    {"do_sys_poll", WEFT_CALL_POLL}, {"core_sys_select", WEFT_CALL_SELECT}, {"kern_select", WEFT_CALL_SELECT},
	    {"do_futex", WEFT_CALL_FUTEX}, {"kernel_wait4", WEFT_CALL_WAIT4}, {"kernel_waitid", WEFT_CALL_WAITID},
	    {"hrtimer_nanosleep", WEFT_CALL_CLOCK_NANOSLEEP}, {"__sys_sendto", WEFT_CALL_SENDTO},
	    {"__sys_recvfrom", WEFT_CALL_RECVFROM}, {"__sys_sendmsg", WEFT_CALL_SENDMSG}, {"__sys_recvmsg", WEFT_CALL_RECVMSG},
	    {"__sys_connect", WEFT_CALL_CONNECT}, {"__sys_accept4", WEFT_CALL_ACCEPT4}, {"kernel_clone", WEFT_CALL_CLONE},
	    {"do_exit", WEFT_CALL_EXIT}, {"do_group_exit", WEFT_CALL_EXIT_GROUP}, {"do_mmap", WEFT_CALL_MMAP},
	    {"vm_mmap_pgoff", WEFT_CALL_MMAP}, {"__vm_munmap", WEFT_CALL_MUNMAP}, {"ksys_fadvise64_64", WEFT_CALL_FADVISE},
	    {"ksys_fallocate", WEFT_CALL_FALLOCATE}, {"do_unlinkat", WEFT_CALL_UNLINKAT}, {"do_renameat2", WEFT_CALL_RENAMEAT2},
	    {"do_mkdirat", WEFT_CALL_MKDIRAT}, {"vfs_fstatat", WEFT_CALL_FSTATAT}, {"do_statx", WEFT_CALL_STATX}};
	static const char *const prefixes[] = {"__x64_sys_", "__arm64_sys_", "__ia32_sys_"};
	for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
		if (!strcmp(symbol, inner[i].name))
			return inner[i].call;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		const size_t length = strlen(prefixes[i]);
		if (strncmp(symbol, prefixes[i], length) != 0)
			continue;
		for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
			if (!strcmp(symbol + length, calls[k].name))
				return calls[k].call;
		return WEFT_CALL_OTHER;
	}
	return WEFT_CALL_UNKNOWN;
}

/* Reads the address ranges of the kernel functions that implement syscalls.  Users without the right to know these addresses see
 * addresses of 0. */
static void read_symbols(struct weft_kernel_perf *p)
{
	char line[512], type, name[256];
	unsigned long long address;
	FILE *file = fopen("/proc/kallsyms", "re");
	WEFT_VEC(struct kernel_symbol) all = {0};
	bool whole = file != NULL;
	while (whole && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) != 3 || !address || (type != 't' && type != 'T'))
			continue;
		struct kernel_symbol *slot = weft_vec_push(&all);
		whole = slot != NULL;
		if (slot)
			*slot = (struct kernel_symbol){.begin = address, .call = parse_syscall_symbol(name)};
	}
	if (file)
		fclose(file);
	weft_sort(all.items, all.count, sizeof *all.items, compare_symbols);
	for (size_t i = 0; whole && i < all.count; i++) {
		struct kernel_symbol *slot = all.items[i].call ? weft_vec_push(&p->kernel_symbols) : NULL;
		size_t next = i + 1;
		while (next < all.count && all.items[next].begin == all.items[i].begin)
			next++;
		if (slot)
			*slot = (struct kernel_symbol){
			    all.items[i].begin, next < all.count ? all.items[next].begin : UINT64_MAX, all.items[i].call};
	}
	weft_vec_free(&all);
}

static uint8_t find_syscall_at(const struct weft_kernel_perf *p, uint64_t address)
{
	size_t low = 0, high = p->kernel_symbols.count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (p->kernel_symbols.items[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < p->kernel_symbols.items[low - 1].end ? p->kernel_symbols.items[low - 1].call : WEFT_CALL_UNKNOWN;
}

/* Returns the id of a tracepoint, or the offset of one of its fields; 0 if the tracepoint does not exist. */
static unsigned read_tracepoint_format(const char *system, const char *point, const char *field)
{
	char path[160], line[512];
	unsigned found = 0, at;
	snprintf(path, sizeof path, "/sys/kernel/tracing/events/%s/%s/format", system, point);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof line, file)) {
		char *offset = strstr(line, ";\toffset:"), *name;
		if (!field && sscanf(line, "ID: %u", &at) == 1)
			found = at;
		if (!field || !offset)
			continue;
		*offset = 0;
		name = strrchr(line, ' ');
		line[strcspn(line, "[")] = 0;
		if (name && !strcmp(name + 1, field) && sscanf(offset + 1, "\toffset:%u", &at) == 1)
			found = at;
	}
	if (file)
		fclose(file);
	return found;
}

static bool read_tracepoints(struct tracepoints *p)
{
	*p = (struct tracepoints){
	    .switch_id = (int)read_tracepoint_format("sched", "sched_switch", NULL),
	    .waking_id = (int)read_tracepoint_format("sched", "sched_waking", NULL),
	    .prev_pid = (uint16_t)read_tracepoint_format("sched", "sched_switch", "prev_pid"),
	    .prev_state = (uint16_t)read_tracepoint_format("sched", "sched_switch", "prev_state"),
	    .next_pid = (uint16_t)read_tracepoint_format("sched", "sched_switch", "next_pid"),
	    .next_comm = (uint16_t)read_tracepoint_format("sched", "sched_switch", "next_comm"),
	    .waking_pid = (uint16_t)read_tracepoint_format("sched", "sched_waking", "pid"),
	};
	for (int i = 0; i < INTERRUPT_COUNT; i++) {
		p->interrupt_ids[i] = (int)read_tracepoint_format(interrupts[i].system, interrupts[i].name, NULL);
		p->interrupt_fields[i] = interrupts[i].field ? (uint16_t)read_tracepoint_format(
								   interrupts[i].system, interrupts[i].name, interrupts[i].field)
							     : 0;
	}
	return p->switch_id && p->waking_id && p->prev_pid && p->prev_state && p->next_pid && p->next_comm && p->waking_pid;
}

/* Reads the tracepoints.  If tracefs is not mounted, a child process mounts it in a namespace of its own. */
static bool find_tracepoints(struct tracepoints *out)
{
	int result_pipe[2], status;
	if (read_tracepoints(out))
		return true;
	if (pipe2(result_pipe, O_CLOEXEC))
		return false;
	pid_t child = fork();
	if (child == 0) {
		struct tracepoints found;
		bool done = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			    mount("weft", "/sys/kernel/tracing", "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
			    read_tracepoints(&found) && write(result_pipe[1], &found, sizeof found) == sizeof found;
		_exit(done ? 0 : 1);
	}
	close(result_pipe[1]);
	bool whole = child > 0 && read(result_pipe[0], out, sizeof *out) == sizeof *out;
	close(result_pipe[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	return whole;
}

/* ---- Opening ---- */

/* Attributes of all events.  The flag PERF_SAMPLE_IDENTIFIER puts the id first in samples and last in all other records. */
static struct perf_event_attr make_attributes(uint32_t type, uint64_t config)
{
	return (struct perf_event_attr){
	    .size = sizeof(struct perf_event_attr),
	    .type = type,
	    .config = config,
	    .sample_period = 1,
	    .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	    .sample_id_all = 1,
	    .exclude_hv = 1,
	    .disabled = 1,
	    .watermark = 1,
	    .wakeup_watermark = MAX_RING_BYTES / 2,
	};
}

static int open_event(struct weft_kernel_perf *p, struct perf_event_attr *attr, pid_t pid, int cpu, enum source source)
{
	attr->use_clockid = 1;
	attr->clockid = p->options.clock;
	attr->write_backward = p->options.is_flight && source != SOURCE_NAMES;
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	struct event *slot = fd < 0 ? NULL : weft_vec_push(&p->events);
	uint64_t id = 0;
	if (!slot || ioctl(fd, PERF_EVENT_IOC_ID, &id)) {
		int error = fd < 0 ? errno : ENOMEM;
		if (fd >= 0)
			close(fd);
		p->events.count -= slot != NULL;
		errno = error;
		return -1;
	}
	if (!weft_idmap_set(&p->by_id, (int64_t)id, (uint32_t)p->events.count - 1)) {
		close(fd);
		p->events.count--;
		errno = ENOMEM;
		return -1;
	}
	*slot = (struct event){id, fd, source, NULL};
	return fd;
}

static bool map_ring(struct ring *ring, int fd, uint32_t cpu, size_t max_bytes, bool is_overwritten)
{
	*ring = (struct ring){.fd = fd, .cpu = cpu};
	return weft_kernel_ring_map(&ring->ring, fd, max_bytes, is_overwritten);
}

/* Opens an event for names of threads, forks and loaded files. */
static bool open_names(struct weft_kernel_perf *p, pid_t pid, int cpu)
{
	struct perf_event_attr attr = make_attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	attr.exclude_kernel = attr.inherit = attr.enable_on_exec = attr.comm = attr.task = attr.mmap = 1;
	attr.wakeup_watermark = 1;
	const int fd = open_event(p, &attr, pid, cpu, SOURCE_NAMES);
	struct ring *ring = fd < 0 ? NULL : weft_vec_push(&p->names);
	if (ring && map_ring(ring, fd, (uint32_t)cpu, NAMES_RING_BYTES, false)) {
		ring->has_names = true;
		return true;
	}
	p->names.count -= ring != NULL;
	errno = ring ? ENOMEM : errno;
	return false;
}

/* Opens events for switches and page faults of the process on each CPU, each with a ring. */
static bool open_own_events(struct weft_kernel_perf *p, pid_t pid)
{
	struct perf_event_attr attr = make_attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	const bool is_flight = p->options.is_flight;
	const size_t asked = is_flight && p->options.ring_bytes ? (size_t)p->options.ring_bytes : MAX_RING_BYTES;
	attr.sample_type |= PERF_SAMPLE_ADDR;
	attr.exclude_kernel = attr.inherit = attr.enable_on_exec = attr.task = attr.context_switch = 1;
	attr.comm = attr.mmap = !is_flight;
	int error = ENODEV;
	for (int i = 0; i < cpus; i++) {
		int fd = open_event(p, &attr, pid, i, SOURCE_OWN);
		if (fd < 0) {
			if (errno == ENODEV)
				continue; /* the CPU is offline */
			return false;
		}
		if (is_flight && !open_names(p, pid, i))
			return false;
		struct ring *ring = weft_vec_push(&p->rings);
		if (!ring || !map_ring(ring, fd, (uint32_t)i, asked < MAX_FLIGHT_BYTES ? asked : MAX_FLIGHT_BYTES, is_flight)) {
			p->rings.count -= ring != NULL;
			/* Set independently of mmap()'s errno: the event was allowed, but not the memory for it. */
			errno = ENOMEM;
			return false;
		}
		error = 0;
	}
	errno = error;
	return error == 0;
}

static bool open_on_all_cpus(
    struct weft_kernel_perf *p, struct perf_event_attr *attr, pid_t pid, enum source source, const char *filter)
{
	for (size_t i = 0; i < p->rings.count; i++) {
		int fd = open_event(p, attr, pid, (int)p->rings.items[i].cpu, source);
		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->rings.items[i].fd) ||
		    (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)))
			return false;
		if (!attr->enable_on_exec)
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return true;
}

/* Opens a tracepoint on each CPU, whose records go into the existing rings.  `pid` is -1 for all processes; `filter` is a kernel
 * filter, or NULL. */
static bool open_tracepoint(struct weft_kernel_perf *p, int number, pid_t pid, enum source source, const char *filter)
{
	struct perf_event_attr attr = make_attributes(PERF_TYPE_TRACEPOINT, (uint64_t)number);
	attr.sample_type |= PERF_SAMPLE_RAW;
	attr.inherit = attr.enable_on_exec = pid >= 0;
	if (source == SOURCE_SLEEP && p->kernel_symbols.count) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN | (FIRST_ARGUMENT ? PERF_SAMPLE_REGS_USER : 0);
		attr.sample_max_stack = MAX_FRAMES;
		attr.sample_regs_user = FIRST_ARGUMENT;
		attr.exclude_callchain_user = 1;
	}
	return open_on_all_cpus(p, &attr, pid, source, filter);
}

/* Opens events for wake-ups on the whole machine. */
static bool open_wakes(struct weft_kernel_perf *p)
{
	if (!p->options.is_flight)
		return open_tracepoint(p, p->tracepoints.waking_id, -1, SOURCE_WAKING, NULL);
	struct perf_event_attr attr = make_attributes(PERF_TYPE_TRACEPOINT, (uint64_t)p->tracepoints.waking_id);
	attr.sample_type |= PERF_SAMPLE_RAW;
	for (size_t i = 0; i < p->rings.count; i++) {
		const struct ring *own = &p->rings.items[i];
		const int fd = open_event(p, &attr, -1, (int)own->cpu, SOURCE_WAKING);
		struct ring *ring = fd < 0 ? NULL : weft_vec_push(&p->wakes);
		if (!ring)
			return false;
		if (!map_ring(ring, fd, own->cpu, (size_t)own->ring.size, true)) {
			/* The ring is dropped, because the user's memory limit is reached. */
			p->wakes.count--;
			if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, own->fd))
				return false;
		}
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return true;
}

/* Opens the event that receives the BPF programs' records. */
static bool open_bpf_output(struct weft_kernel_perf *p)
{
	struct perf_event_attr attr = make_attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT);
	const size_t before = p->events.count;
	attr.sample_type |= PERF_SAMPLE_RAW;
	bool whole = open_on_all_cpus(p, &attr, -1, SOURCE_BPF, NULL);
	for (size_t i = 0; whole && i < p->rings.count; i++)
		whole = weft_kernel_bpf_set_output(p->bpf, p->rings.items[i].cpu, p->events.items[before + i].fd);
	for (int i = 0; i < MAX_SYSCALLS; i++)
		p->calls[i] = weft_kernel_call_from_number(i);
	return whole;
}

/* Only blocking switches get the expensive call chain, because it is useless for preempted threads. */
static bool open_switches(struct weft_kernel_perf *p, pid_t pid)
{
	return open_tracepoint(p, p->tracepoints.switch_id, pid, SOURCE_SWITCH, "!(prev_state & 255)") &&
	       open_tracepoint(p, p->tracepoints.switch_id, pid, SOURCE_SLEEP, "prev_state & 255");
}

static void unmap_rings(struct ring *rings, size_t *count)
{
	while (*count)
		weft_kernel_ring_unmap(&rings[--*count].ring);
}

static void close_events(struct weft_kernel_perf *p, size_t from)
{
	while (p->events.count > from)
		close(p->events.items[--p->events.count].fd);
}

/* Opens tracepoints of interrupts while the program's OS threads are on CPU; these events are optional. */
static void open_interrupts(struct weft_kernel_perf *p, pid_t pid)
{
	for (int i = 0; i + 1 < INTERRUPT_COUNT; i += 2) {
		const size_t before = p->events.count;
		if (p->bpf && interrupts[i].source == SOURCE_SOFTIRQ)
			continue;
		if (p->tracepoints.interrupt_ids[i] && p->tracepoints.interrupt_ids[i + 1] &&
		    !(open_tracepoint(p, p->tracepoints.interrupt_ids[i], pid, interrupts[i].source, NULL) &&
			open_tracepoint(p, p->tracepoints.interrupt_ids[i + 1], pid, interrupts[i + 1].source, NULL)))
			close_events(p, before);
	}
}

static bool open_machine_events(struct weft_kernel_perf *p, pid_t pid, char *why, size_t why_size)
{
	const size_t before = p->events.count;
	/* Only root can read the ids of tracepoints.  The function first tests whether this user may use one tracepoint, because
	 * that permission is what can be changed.
	 */
	struct perf_event_attr probe = make_attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int fd = (int)syscall(SYS_perf_event_open, &probe, -1, (int)p->rings.items[0].cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		weft_kernel_format_refusal(why, why_size, errno);
		return false;
	}
	close(fd);
	if (!find_tracepoints(&p->tracepoints)) {
		snprintf(why, why_size, "cannot read tracefs");
		return false;
	}
	if (!p->bpf)
		read_symbols(p);
	if ((p->bpf ? open_bpf_output(p) : open_switches(p, pid)) && open_wakes(p)) {
		open_interrupts(p, pid);
		FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
		if (file && fscanf(file, "%d", &p->probe_type) != 1)
			p->probe_type = 0;
		if (file)
			fclose(file);
		if (p->bpf)
			snprintf(why, why_size, "softirqs are recorded from %d us on", WEFT_KERNEL_BPF_MIN_NS / 1000);
		else if (!p->kernel_symbols.count)
			snprintf(why, why_size, "syscalls have no names: /proc/kallsyms has no addresses");
		return true;
	}
	weft_kernel_format_refusal(why, why_size, errno);
	unmap_rings(p->wakes.items, &p->wakes.count);
	close_events(p, before);
	return false;
}

static void close_rings(struct weft_kernel_perf *p)
{
	unmap_rings(p->rings.items, &p->rings.count);
	unmap_rings(p->names.items, &p->names.count);
	unmap_rings(p->wakes.items, &p->wakes.count);
}

static void open_events(struct weft_kernel_perf *p, pid_t pid, char *why, size_t why_size)
{
	p->level = WEFT_LEVEL_SELF;
	if (!open_own_events(p, pid)) {
		weft_kernel_format_refusal(why, why_size, errno);
		close_rings(p);
		close_events(p, 0);
		return;
	}
	p->level = WEFT_LEVEL_OWN;
	if (p->options.max_level == WEFT_LEVEL_OWN)
		snprintf(why, why_size, "--kernel=own was requested");
	else if (open_machine_events(p, pid, why, why_size))
		p->level = WEFT_LEVEL_ALL;
}

struct weft_kernel_perf *weft_kernel_perf_open(
    pid_t pid, const struct weft_kernel_perf_options *options, char *why, size_t why_size)
{
	struct weft_kernel_perf *p = calloc(1, sizeof *p);
	*why = 0;
	if (!p || !(p->record_buffer = malloc(WEFT_KERNEL_RECORD_BYTES))) {
		free(p);
		return NULL;
	}
	p->options = *options;
	p->bpf = options->max_level == WEFT_LEVEL_OWN ? NULL : weft_kernel_bpf_open(pid);
	open_events(p, pid, why, why_size);
	/* Without the other events of this level, switches would have no reason, so the BPF programs are closed. */
	if (p->bpf && p->level != WEFT_LEVEL_ALL) {
		weft_kernel_bpf_close(p->bpf);
		p->bpf = NULL;
		close_rings(p);
		close_events(p, 0);
		open_events(p, pid, why, why_size);
	}
	return p;
}

enum weft_kernel_level weft_kernel_perf_level(const struct weft_kernel_perf *p)
{
	return p->level;
}

void weft_kernel_perf_close(struct weft_kernel_perf *p)
{
	weft_kernel_bpf_close(p->bpf);
	close_rings(p);
	close_events(p, 0);
	weft_vec_free(&p->rings);
	weft_vec_free(&p->names);
	weft_vec_free(&p->wakes);
	weft_vec_free(&p->own_copy.found);
	weft_vec_free(&p->wakes_copy.found);
	weft_vec_free(&p->events);
	for (size_t i = 0; i < p->loaded.count; i++) {
		free(p->loaded.items[i].path);
		if (p->loaded.items[i].fd >= 0)
			close(p->loaded.items[i].fd);
	}
	weft_vec_free(&p->loaded);
	weft_vec_free(&p->gc_marks);
	weft_vec_free(&p->kernel_symbols);
	weft_idmap_finish(&p->by_id);
	free(p->record_buffer);
	free(p);
}

/* ---- Reading ---- */

static uint32_t get32(const unsigned char *at)
{
	uint32_t v;
	memcpy(&v, at, sizeof v);
	return v;
}

static uint64_t get64(const unsigned char *at)
{
	uint64_t v;
	memcpy(&v, at, sizeof v);
	return v;
}

/* Returns the syscall of the outermost frame that enters the kernel. */
static uint8_t find_syscall(struct weft_kernel_perf *p, const unsigned char *frames, uint64_t count)
{
	for (uint64_t i = count; i-- > 0;) {
		const uint64_t address = get64(frames + 8 * i);
		const size_t slot = (size_t)(address * 0x9e3779b97f4a7c15u >> 56) % CALL_CACHE_SLOTS;
		if (address >= PERF_CONTEXT_MAX)
			continue;
		if (p->cache[slot].address != address) {
			p->cache[slot].address = address;
			p->cache[slot].call = find_syscall_at(p, address);
		}
		if (p->cache[slot].call)
			return p->cache[slot].call;
	}
	return WEFT_CALL_UNKNOWN;
}

/* Handles a switch of a thread.  In prev_state, bit 0 is an interruptible sleep, and bit 1 is an uninterruptible sleep; without
 * a low bit the thread is still runnable. */
static void parse_switch(struct weft_kernel_perf *p, struct ring *ring, struct weft_kernel_perf_event *s, enum source source,
    const unsigned char *at, const unsigned char *end, weft_kernel_perf_fn *emit, void *ctx)
{
	const struct tracepoints *f = &p->tracepoints;
	const bool has_call = source == SOURCE_SLEEP && p->kernel_symbols.count;
	uint8_t call = WEFT_CALL_UNKNOWN;
	if (has_call) {
		const uint64_t count = end - at >= 8 ? get64(at) : UINT64_MAX;
		if (count > (uint64_t)(end - at - 8) / 8)
			return;
		call = find_syscall(p, at + 8, count);
		at += 8 + 8 * count;
	}
	const uint32_t size = end - at >= 4 ? get32(at) : 0;
	at += 4;
	if (size > (size_t)(end - at) || f->prev_state + 8u > size || f->next_comm + 16u > size || f->next_pid + 4u > size ||
	    f->prev_pid + 4u > size)
		return;
	const unsigned char *behind = at + size;
	if (has_call && FIRST_ARGUMENT && end - behind >= 16 && get64(behind) == PERF_SAMPLE_REGS_ABI_64) {
		s->has_argument = true;
		s->number = get64(behind + 8);
	}
	const uint64_t state = get64(at + f->prev_state) & 0xff;
	s->tid = get32(at + f->prev_pid);
	if (state) {
		s->event_type = WEFT_PERF_OFF;
		s->why = state & 2 ? WEFT_OFF_DISK : WEFT_OFF_BLOCKED;
		s->call = call;
	} else {
		s->event_type = WEFT_PERF_TAKEN;
		s->other = get32(at + f->next_pid);
		memcpy(s->name, at + f->next_comm, sizeof s->name - 1);
	}
	ring->switched_off_tid = s->tid;
	emit(ctx, s);
}

static void parse_interrupt(struct weft_kernel_perf *p, struct ring *ring, struct weft_kernel_perf_event *s, enum source source,
    const unsigned char *at, uint32_t size, weft_kernel_perf_fn *emit, void *ctx)
{
	const unsigned which = (unsigned)source - SOURCE_IRQ;
	const uint16_t field = p->tracepoints.interrupt_fields[which];
	struct open_interrupt *open_interrupt = &ring->open_interrupt[which / 2];
	if (which % 2) {
		if (!open_interrupt->time_ns)
			return;
		s->event_type = WEFT_PERF_SPENT;
		s->why = source == SOURCE_SOFTIRQ_END ? WEFT_SPENT_DEFERRED : WEFT_SPENT_INTERRUPT;
		s->number = s->time_ns - open_interrupt->time_ns;
		memcpy(s->name, open_interrupt->name, sizeof s->name);
		open_interrupt->time_ns = 0;
		emit(ctx, s);
		return;
	}
	*open_interrupt = (struct open_interrupt){.time_ns = s->time_ns};
	const uint32_t value = field && field + 4u <= size ? get32(at + field) : UINT32_MAX;
	if (source == SOURCE_TICK)
		snprintf(open_interrupt->name, sizeof open_interrupt->name, "timer");
	else if (source == SOURCE_SOFTIRQ && value < sizeof softirq_names / sizeof *softirq_names)
		snprintf(open_interrupt->name, sizeof open_interrupt->name, "%s", softirq_names[value]);
	/* Low half: offset of the text; high half: length of the text. */
	else if (source == SOURCE_IRQ && (value & 0xffff) < size)
		snprintf(open_interrupt->name, sizeof open_interrupt->name, "%.*s", (int)(size - (value & 0xffff)),
		    (const char *)at + (value & 0xffff));
}

/* Handles a BPF record about a thread that leaves the CPU. */
static void parse_bpf_record(struct weft_kernel_perf *p, struct ring *ring, const struct weft_kernel_perf_event *seen,
    const unsigned char *at, uint32_t size, weft_kernel_perf_fn *emit, void *ctx)
{
	struct weft_kernel_bpf_record record;
	struct weft_kernel_perf_event s = *seen;
	if (size < WEFT_KERNEL_BPF_BYTES)
		return;
	memcpy(&record, at, WEFT_KERNEL_BPF_BYTES);
	s.tid = record.off_tid;
	s.pid = record.off_pid;
	if (record.event_type == WEFT_KERNEL_BPF_SOFTIRQ) {
		s.event_type = WEFT_PERF_SPENT;
		s.why = WEFT_SPENT_DEFERRED;
		s.number = record.argument;
		if (record.state < sizeof softirq_names / sizeof *softirq_names)
			snprintf(s.name, sizeof s.name, "%s", softirq_names[record.state]);
		emit(ctx, &s);
		return;
	}
	if (record.state) {
		s.event_type = WEFT_PERF_OFF;
		s.why = record.state & 2 ? WEFT_OFF_DISK : WEFT_OFF_BLOCKED;
		s.call = record.call == -1            ? WEFT_CALL_FAULT
			 : record.call < 0            ? WEFT_CALL_UNKNOWN
			 : record.call < MAX_SYSCALLS ? p->calls[record.call]
						      : WEFT_CALL_OTHER;
		s.has_argument = record.call >= 0;
		s.number = record.argument;
	} else {
		s.event_type = WEFT_PERF_TAKEN;
		s.other = record.next;
		memcpy(s.name, record.name, sizeof s.name - 1);
	}
	ring->switched_off_tid = s.tid;
	ring->bpf_event = s;
}

static void parse_sample(struct weft_kernel_perf *p, struct ring *ring, const unsigned char *at, const unsigned char *end,
    weft_kernel_perf_fn *emit, void *ctx)
{
	if (end - at < 32)
		return;
	const uint64_t id = get64(at);
	struct weft_kernel_perf_event s = {
	    .pid = get32(at + 8), .tid = get32(at + 12), .time_ns = get64(at + 16), .cpu = ring->cpu};
	const uint32_t number = weft_idmap_get(&p->by_id, (int64_t)id);
	if (number == WEFT_IDMAP_NONE || number >= p->events.count)
		return;
	const struct event *event = &p->events.items[number];
	ring->last_ns = s.time_ns;
	at += 24;
	if (event->source == SOURCE_OWN) { /* in samples of page faults, the address precedes the CPU */
		s.event_type = WEFT_PERF_FAULT;
		s.number = get64(at);
		emit(ctx, &s);
		return;
	}
	at += 8;
	if (event->source == SOURCE_SWITCH || event->source == SOURCE_SLEEP) {
		parse_switch(p, ring, &s, event->source, at, end, emit, ctx);
		return;
	}
	if (event->source >= SOURCE_PROBE) {
		struct gc_mark *gc_mark = p->gc_marks.count < MAX_GC_MARKS ? weft_vec_push(&p->gc_marks) : NULL;
		if (gc_mark)
			*gc_mark =
			    (struct gc_mark){s.time_ns, s.pid, s.tid, s.cpu, event->source == SOURCE_PROBE_END, event->runtime};
		return;
	}
	const uint32_t size = end - at >= 4 ? get32(at) : 0;
	at += 4;
	if (size > (size_t)(end - at))
		return;
	if (event->source == SOURCE_BPF) {
		parse_bpf_record(p, ring, &s, at, size, emit, ctx);
		return;
	}
	if (event->source >= SOURCE_IRQ) {
		parse_interrupt(p, ring, &s, event->source, at, size, emit, ctx);
		return;
	}
	if (p->tracepoints.waking_pid + 4u > size)
		return;
	enum { IN_INTERRUPT = 0x18, FLAGS_AT = 2 };
	s.event_type = WEFT_PERF_WAKE;
	s.other = at[FLAGS_AT] & IN_INTERRUPT ? 0 : s.tid;
	s.tid = get32(at + p->tracepoints.waking_pid);
	s.pid = 0;
	emit(ctx, &s);
}

/* Opens the probes of an open file, for a thread or, if tid is -1, for all processes that execute the file.  Inherited probes
 * would reach all threads of a process, but the kernel fails to inherit a probe, and then the program's fork fails too. */
static void open_probes(struct weft_kernel_perf *p, const struct loaded *loaded, pid_t tid)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", loaded->fd);
	for (size_t i = 0; i < loaded->probe_count; i++) {
		const struct weft_kernel_probe *probe = &loaded->probes[i];
		/* The kernel increments the probe's semaphore, because some probes are silent otherwise. */
		struct perf_event_attr attr = make_attributes((uint32_t)p->probe_type, probe->semaphore << 32);
		attr.config1 = (uint64_t)(uintptr_t)path;
		attr.config2 = probe->offset;
		const size_t before = p->events.count;
		if (!open_on_all_cpus(p, &attr, tid, probe->is_end ? SOURCE_PROBE_END : SOURCE_PROBE, NULL)) {
			close_events(p, before);
			continue;
		}
		for (size_t k = before; k < p->events.count; k++)
			p->events.items[k].runtime = probe->runtime;
	}
}

/* Opens the probes of a process's file for one of the process's threads, within a share of the descriptors. */
static void open_thread_probes(struct weft_kernel_perf *p, const struct loaded *loaded, pid_t tid)
{
	enum { MAX_THREAD_EVENTS = 256 };
	const size_t before = p->events.count;
	if (p->thread_events + loaded->probe_count * p->rings.count > MAX_THREAD_EVENTS)
		return;
	open_probes(p, loaded, tid);
	p->thread_events += p->events.count - before;
}

static void open_process_probes(struct weft_kernel_perf *p, const struct loaded *loaded)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%u/task", loaded->pid);
	DIR *dir = opendir(path);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			open_thread_probes(p, loaded, (pid_t)strtol(entry->d_name, NULL, 10));
	if (dir)
		closedir(dir);
}

/* Handles a new thread: if only one process is probed, each of its threads needs probes of its own. */
static void open_new_thread_probes(struct weft_kernel_perf *p, uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < p->loaded.count; i++)
		if (p->loaded.items[i].pid == pid && p->loaded.items[i].fd >= 0)
			open_thread_probes(p, &p->loaded.items[i], (pid_t)tid);
}

/* Adds a loaded file; takes over the path and, if the file is probed for one process only, the descriptor. */
static void add_loaded(struct weft_kernel_perf *p, char *path, uint32_t pid, int fd, enum weft_kernel_scope scope)
{
	enum { MAX_OPEN = 32 }; /* maximum number of files that are probed for one process */
	struct loaded *slot = weft_vec_push(&p->loaded);
	if (!slot) {
		free(path);
		close(fd);
		return;
	}
	*slot = (struct loaded){.path = path, .fd = fd, .pid = scope == WEFT_SCOPE_ALL ? 0 : pid};
	slot->probe_count = weft_kernel_read_probes(fd, slot->probes, MAX_PROBES);
	if (scope == WEFT_SCOPE_ALL)
		open_probes(p, slot, -1);
	else if (slot->probe_count && p->open_files < MAX_OPEN)
		open_process_probes(p, slot);
	if (scope == WEFT_SCOPE_PROCESS && slot->probe_count && p->open_files < MAX_OPEN) {
		p->open_files++;
		return;
	}
	close(fd);
	slot->fd = -1;
}

/* Handles an executable file that a process has loaded, under the process's own path. */
static void open_loaded_probes(struct weft_kernel_perf *p, uint32_t pid, const char *path)
{
	enum { MAX_LOADED = 4096 };
	enum weft_kernel_scope scope;
	for (size_t i = 0; i < p->loaded.count; i++)
		if ((!p->loaded.items[i].pid || p->loaded.items[i].pid == pid) && strcmp(p->loaded.items[i].path, path) == 0)
			return;
	if (p->loaded.count >= MAX_LOADED)
		return;
	const int fd = weft_kernel_open_loaded(pid, path, &scope);
	char *copy = fd < 0 ? NULL : strdup(path);
	if (copy)
		add_loaded(p, copy, pid, fd, scope);
	else if (fd >= 0)
		close(fd);
}

static int compare_gc_marks(const void *x, const void *y)
{
	const struct gc_mark *a = x, *b = y;
	return WEFT_ORDER(a->tid, b->tid) ?: WEFT_ORDER(a->time_ns, b->time_ns) ?: WEFT_ORDER(a->is_end, b->is_end) ?:
	       WEFT_ORDER(a->cpu, b->cpu);
}

/* Reports complete garbage collections.  A garbage collection that two events report counts as one.  Marks that are newer than
 * `until_ns` are kept, because the other end may be in a ring that was drained too early. */
static void pair_gc_marks(struct weft_kernel_perf *p, uint64_t until_ns, weft_kernel_perf_fn *emit, void *ctx)
{
	enum { TWICE_NS = 100000 };
	size_t kept = 0;
	weft_sort(p->gc_marks.items, p->gc_marks.count, sizeof *p->gc_marks.items, compare_gc_marks);
	for (size_t i = 0, end; i < p->gc_marks.count; i = end) {
		const struct gc_mark *open = NULL;
		const uint32_t tid = p->gc_marks.items[i].tid;
		for (end = i; end < p->gc_marks.count && p->gc_marks.items[end].tid == tid; end++) {
			const struct gc_mark *m = &p->gc_marks.items[end];
			if (m->time_ns > until_ns) {
				break;
			} else if (!m->is_end) {
				open = m;
			} else if (open) {
				struct weft_kernel_perf_event s = {.event_type = WEFT_PERF_SPENT,
				    .why = WEFT_SPENT_COLLECTOR,
				    .time_ns = m->time_ns,
				    .pid = m->pid,
				    .tid = m->tid,
				    .cpu = m->cpu,
				    .number = m->time_ns - open->time_ns};
				snprintf(s.name, sizeof s.name, "%s", m->runtime);
				emit(ctx, &s);
				open = NULL;
			}
		}
		if (open)
			p->gc_marks.items[kept++] = *open;
		for (; end < p->gc_marks.count && p->gc_marks.items[end].tid == tid; end++)
			p->gc_marks.items[kept++] = p->gc_marks.items[end];
	}
	p->gc_marks.count = kept;
}

/* Handles a record.  A record that is not a sample ends with pid, tid, time, CPU and id. */
static void parse_record(
    struct weft_kernel_perf *p, struct ring *ring, const unsigned char *at, weft_kernel_perf_fn *emit, void *ctx)
{
	struct perf_event_header h;
	memcpy(&h, at, sizeof h);
	const unsigned char *end = at + h.size;
	enum { TRAILER = 32, PATH_AT = 32 };
	if (h.type == PERF_RECORD_SAMPLE) {
		parse_sample(p, ring, at + sizeof h, end, emit, ctx);
		return;
	}
	if (h.size < sizeof h + TRAILER)
		return;
	struct weft_kernel_perf_event s = {
	    .pid = get32(end - 32), .tid = get32(end - 28), .time_ns = get64(end - 24), .cpu = ring->cpu};
	ring->last_ns = s.time_ns;
	at += sizeof h;
	switch (h.type) {
	case PERF_RECORD_SWITCH:
		if (!(h.misc & PERF_RECORD_MISC_SWITCH_OUT)) {
			s.event_type = WEFT_PERF_ON;
		} else if (ring->switched_off_tid == s.tid) {
			ring->switched_off_tid = 0;
			if (p->bpf)
				emit(ctx, &ring->bpf_event);
			return;
		} else {
			s.event_type = WEFT_PERF_OFF;
			s.why = h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? WEFT_OFF_PREEMPTED : WEFT_OFF_BLOCKED;
		}
		ring->switched_off_tid = 0;
		break;
	case PERF_RECORD_COMM:
		s.event_type = WEFT_PERF_NAME;
		s.pid = get32(at);
		s.tid = get32(at + 4);
		snprintf(s.name, sizeof s.name, "%.15s", (const char *)at + 8);
		break;
	case PERF_RECORD_FORK: /* a new thread has the name of its parent until it gets another name */
		if (p->options.is_flight && !ring->has_names)
			return;
		s.event_type = WEFT_PERF_NAME;
		s.pid = get32(at);
		s.tid = get32(at + 8);
		s.other = get32(at + 12);
		open_new_thread_probes(p, s.pid, s.tid);
		break;
	case PERF_RECORD_EXIT: /* the last switch of a thread is not recorded */
		if (ring->has_names)
			return;
		s.event_type = WEFT_PERF_OFF;
		s.pid = get32(at);
		s.tid = get32(at + 8);
		s.why = WEFT_OFF_BLOCKED;
		s.call = WEFT_CALL_EXIT;
		break;
	case PERF_RECORD_MMAP:
		if (p->probe_type && end - at > PATH_AT + TRAILER &&
		    memchr(at + PATH_AT, 0, (size_t)(end - at) - PATH_AT - TRAILER))
			open_loaded_probes(p, s.pid, (const char *)at + PATH_AT);
		return;
	case PERF_RECORD_LOST:
		if (ring->has_names)
			return;
		s.event_type = WEFT_PERF_LOST;
		s.number = get64(at + 8);
		break;
	default: return;
	}
	emit(ctx, &s);
}

/* A ring that is being drained, and the receiver of its events. */
struct draining {
	struct weft_kernel_perf *perf;
	struct ring *ring;
	weft_kernel_perf_fn *emit;
	void *ctx;
};

static void parse_drained(void *ctx, const unsigned char *record)
{
	const struct draining *d = ctx;
	parse_record(d->perf, d->ring, record, d->emit, d->ctx);
}

static void drain_ring(struct weft_kernel_perf *p, struct ring *ring, weft_kernel_perf_fn *emit, void *ctx)
{
	const uint64_t free_bytes =
	    weft_kernel_ring_drain(&ring->ring, p->record_buffer, parse_drained, &(struct draining){p, ring, emit, ctx});
	/* The kernel reports the number of lost records with the next record, which may never come, so at least one lost record
	 * is counted. */
	if (free_bytes < MAX_EVENT_BYTES && !ring->has_names)
		emit(ctx, &(struct weft_kernel_perf_event){
			      .event_type = WEFT_PERF_LOST, .cpu = ring->cpu, .number = 1, .time_ns = ring->last_ns});
}

static void find_records(struct ring_copy *c)
{
	enum { MIN_RECORD_BYTES = sizeof(struct perf_event_header) + 32 };
	struct perf_event_header h;
	c->found.count = 0;
	for (uint64_t at = 0; at + sizeof h <= c->left; at += h.size) {
		memcpy(&h, c->bytes + at, sizeof h);
		size_t *slot = h.size < MIN_RECORD_BYTES || at + h.size > c->left ? NULL : weft_vec_push(&c->found);
		if (!slot)
			return;
		*slot = (size_t)at;
	}
}

/* Copies the bytes that the kernel has written into the ring since the last read; without memory it copies nothing. */
static void copy_ring(struct ring *ring, struct ring_copy *c)
{
	c->head = __atomic_load_n(&ring->ring.page->data_head, __ATOMIC_ACQUIRE);
	const size_t at = (size_t)(c->head & (ring->ring.size - 1)), first = ring->ring.size - at;
	c->found.count = 0;
	c->written = ring->read_head - c->head;
	c->left = 0;
	if (!(c->bytes = malloc(ring->ring.size)))
		return;
	memcpy(c->bytes, ring->ring.data + at, first);
	memcpy(c->bytes + first, ring->ring.data, at);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	const uint64_t meanwhile = c->head - __atomic_load_n(&ring->ring.page->data_head, __ATOMIC_ACQUIRE) + UNFINISHED_BYTES;
	const uint64_t whole = meanwhile < ring->ring.size ? ring->ring.size - meanwhile : 0;
	c->left = c->written < whole ? c->written : whole;
	ring->read_head = c->head;
	find_records(c);
}

/* Returns the time of a record, which in samples is at another offset than in other records. */
static uint64_t get_record_time(const struct ring_copy *c, size_t number)
{
	const unsigned char *at = c->bytes + c->found.items[number];
	struct perf_event_header h;
	memcpy(&h, at, sizeof h);
	return h.type == PERF_RECORD_SAMPLE ? get64(at + sizeof h + 16) : get64(at + h.size - 24);
}

/* Returns the total size in bytes of the records that were found. */
static uint64_t count_record_bytes(const struct ring_copy *c)
{
	struct perf_event_header oldest;
	if (!c->found.count)
		return 0;
	const size_t last = c->found.items[c->found.count - 1];
	memcpy(&oldest, c->bytes + last, sizeof oldest);
	return last + oldest.size;
}

static uint64_t now_ns(const struct weft_kernel_perf *p)
{
	struct timespec now;
	clock_gettime(p->options.clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Copies the wake-ups on a CPU from `since_ns` to `until_ns`; later wake-ups are read the next time.  Returns the index of the
 * newest wake-up. */
static size_t copy_wakes(struct weft_kernel_perf *p, uint32_t cpu, uint64_t since_ns, uint64_t until_ns)
{
	struct ring_copy *c = &p->wakes_copy;
	struct ring *ring = NULL;
	size_t newest = 0;
	c->bytes = NULL;
	c->found.count = 0;
	for (size_t i = 0; i < p->wakes.count; i++)
		if (p->wakes.items[i].cpu == cpu)
			ring = &p->wakes.items[i];
	if (!ring)
		return 0;
	copy_ring(ring, c);
	while (newest < c->found.count && get_record_time(c, newest) > until_ns)
		newest++;
	if (newest)
		ring->read_head = c->head + (newest < c->found.count ? c->found.items[newest] : count_record_bytes(c));
	while (c->found.count > newest && get_record_time(c, c->found.count - 1) < since_ns)
		c->found.count--;
	return newest;
}

static void read_flight(struct weft_kernel_perf *p, struct ring *ring, weft_kernel_perf_fn *emit, void *ctx)
{
	struct ring_copy *own = &p->own_copy, *wakes = &p->wakes_copy;
	uint64_t since_ns = 0, until_ns = now_ns(p);
	copy_ring(ring, own);
	const size_t count = own->found.count;
	const uint64_t read = count_record_bytes(own);
	if (count && get_record_time(own, 0) > until_ns)
		until_ns = get_record_time(own, 0);
	if (count && read < own->written) {
		memset(ring->open_interrupt, 0, sizeof ring->open_interrupt);
		ring->switched_off_tid = 0;
		since_ns = get_record_time(own, count - 1);
		emit(ctx, &(struct weft_kernel_perf_event){.event_type = WEFT_PERF_GAP,
			      .cpu = ring->cpu,
			      .number = (own->written - read) / (read / count),
			      .time_ns = since_ns});
	}
	const size_t newest = copy_wakes(p, ring->cpu, since_ns, until_ns);
	/* Both lists are merged by time, because a packet must be in order. */
	size_t left = wakes->found.count;
	for (size_t i = count; i-- > 0;) {
		for (; left > newest && get_record_time(wakes, left - 1) <= get_record_time(own, i); left--)
			parse_record(p, ring, wakes->bytes + wakes->found.items[left - 1], emit, ctx);
		parse_record(p, ring, own->bytes + own->found.items[i], emit, ctx);
	}
	for (; left > newest; left--)
		parse_record(p, ring, wakes->bytes + wakes->found.items[left - 1], emit, ctx);
	free(own->bytes);
	free(wakes->bytes);
}

void weft_kernel_perf_drain_names(struct weft_kernel_perf *p, weft_kernel_perf_fn *emit, void *ctx)
{
	for (size_t i = 0; i < p->names.count; i++)
		drain_ring(p, &p->names.items[i], emit, ctx);
}

void weft_kernel_perf_drain(struct weft_kernel_perf *p, weft_kernel_perf_fn *emit, void *ctx)
{
	enum { LATE_NS = 1000000 };
	const uint64_t until_ns = now_ns(p) - LATE_NS;
	weft_kernel_perf_drain_names(p, emit, ctx);
	for (size_t i = 0; i < p->rings.count; i++)
		(p->options.is_flight ? read_flight : drain_ring)(p, &p->rings.items[i], emit, ctx);
	pair_gc_marks(p, until_ns, emit, ctx);
}

void weft_kernel_perf_wait(const struct weft_kernel_perf *p, int fd, int other_fd, int timeout_ms)
{
	enum { MAX_POLLED = 66 };
	struct pollfd polled[MAX_POLLED] = {{fd, POLLIN, 0}, {other_fd, POLLIN, 0}};
	nfds_t count = 2;
	const bool is_flight = p->options.is_flight;
	for (size_t i = 0; i < (is_flight ? p->names.count : p->rings.count) && count < MAX_POLLED; i++)
		polled[count++] = (struct pollfd){is_flight ? p->names.items[i].fd : p->rings.items[i].fd, POLLIN, 0};
	poll(polled, count, timeout_ms);
}
