/* kernel_perf.c: what the kernel says of a command's OS threads.
 *
 * The spine is one event on each processor that any user may have of his own processes, as long as perf_event_paranoid is 2 or
 * less: it counts page faults and tells of each switch.  Root, and whoever has CAP_PERFMON, also has the tracepoints of the
 * scheduler: who took the processor, in which system call somebody blocked (by the kernel's call chain, since a record for every
 * system call costs more than all others), and who woke whom, which is told only to those who listen to the whole machine.  What
 * happens while a processor idles is not told everywhere, nor each switch from another program, so tracepoints add to the
 * switches and never stand for them.
 *
 * Where the kernel takes programs (kernel_bpf.h), they tell instead who took the processor and in which call, and of deferred
 * interrupts.
 *
 * In a flight nobody reads what comes: the kernel writes each ring backwards and over what is oldest.  Whoever reads it goes from
 * the newest record to the oldest one that is left.  The rings are not stopped for that, which would lose what comes meanwhile:
 * they are copied, and what was overwritten during that is left out.  Names, which are told once, have rings of their own; so do
 * wakes, most of which are other programs', which would push out what this one did.
 * SPDX-License-Identifier: ISC */
#include "apps/cli/kernel_perf.h"

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

#include "apps/cli/kernel_bpf.h"
#include "apps/cli/kernel_probe.h"
#include "apps/cli/kernel_what.h"
#include "base/idmap.h"
#include "base/sort.h"
#include "base/vec.h"

enum {
	LARGEST = 1024 /* of our records, about */,
	MOST_RECORD = 65536,
	MOST_RING = 4 << 20,
	LEAST_RING = 64 << 10,
	MOST_FLIGHT = 64 << 20,
	NAMES_RING = 64 << 10,
	UNFINISHED = 8 << 10, /* what the kernel may be writing just now, at most */
	FRAMES = 48,
	CALL_CACHE = 256,
	MOST_CALLS = 512, /* numbers of system calls that have names here */
	MOST_PROBES = 16,
	MOST_MARKS = 1 << 16
};

/* Where the user's registers have the first argument of a system call, as PERF_SAMPLE_REGS_USER numbers them. */
#if defined __x86_64__
#define FIRST_ARGUMENT 0x20u /* rdi */
#elif defined __aarch64__
#define FIRST_ARGUMENT 0x1u /* x0 */
#else
#define FIRST_ARGUMENT 0u
#endif

enum source {
	SOURCE_OWN,
	SOURCE_NAMES,  /* of a flight */
	SOURCE_SWITCH, /* it could go on */
	SOURCE_SLEEP,  /* with the call that it sleeps in */
	SOURCE_WAKING,
	SOURCE_TOLD, /* by our program in the kernel */
	SOURCE_IRQ,  /* begins and ends, as the next ones */
	SOURCE_IRQ_END,
	SOURCE_TICK,
	SOURCE_TICK_END,
	SOURCE_SOFTIRQ,
	SOURCE_SOFTIRQ_END,
	SOURCE_PROBE, /* a collection of garbage begins */
	SOURCE_PROBE_END
};

/* Tracepoints of interrupts, which this kernel may have. */
static const struct {
	const char *system, *name, *field; /* the field names or numbers it */
	enum source source;
} interrupts[] = {
    {"irq", "irq_handler_entry", "name", SOURCE_IRQ},
    {"irq", "irq_handler_exit", NULL, SOURCE_IRQ_END},
    {"irq_vectors", "local_timer_entry", NULL, SOURCE_TICK},
    {"irq_vectors", "local_timer_exit", NULL, SOURCE_TICK_END},
    {"irq", "softirq_entry", "vec", SOURCE_SOFTIRQ},
    {"irq", "softirq_exit", NULL, SOURCE_SOFTIRQ_END},
};

enum { INTERRUPTS = sizeof interrupts / sizeof *interrupts };

/* Softirqs by their numbers. */
static const char *const deferred[] = {
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"};

/* An interrupt that has begun; one of each sort at most: they stand one within another. */
struct begun {
	uint64_t time_ns; /* 0: none */
	char name[16];
};

struct ring {
	int fd; /* of the event that owns it; others write into it too */
	uint32_t processor;
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t size;
	uint64_t last_ns;      /* of the newest record */
	uint64_t seen;         /* of a flight: where its newest record was when it was read */
	bool has_names;        /* alone, of a flight */
	uint32_t told_off;     /* whose leaving a tracepoint or our program has just told; the record of the switch follows */
	struct perf_seen told; /* by our program, which goes on when an OS thread that ends has no more records */
	struct begun begun[(SOURCE_PROBE - SOURCE_IRQ) / 2];
};

struct event {
	uint64_t id;
	int fd;
	enum source source;
	const char *runtime; /* PROBE */
};

/* What a flight's ring had when it was read. */
struct copy {
	unsigned char *bytes;   /* from its newest record on; NULL: nothing */
	uint64_t head, written; /* where that stood; how much came since it was read before */
	uint64_t left;          /* of that */
	WEFT_VEC(size_t) found; /* where records begin, the newest first */
};

/* A runtime begins or ends to collect garbage; it may do so on another processor than it began on. */
struct mark {
	uint64_t time_ns;
	uint32_t pid, tid, processor;
	bool is_end;
	const char *runtime;
};

/* A file that was loaded, and its probes. */
struct loaded {
	char *path;
	struct kernel_probe probes[MOST_PROBES];
	size_t probe_count;
};

/* A function of the kernel that is a system call's, or that of page faults. */
struct entry {
	uint64_t begin, end;
	uint8_t call;
};

/* The tracepoints, as this kernel numbers them and lays them out. */
struct points {
	int switch_id, waking_id;
	uint16_t prev_pid, prev_state, next_pid, next_comm, waking_pid;
	int interrupt_ids[INTERRUPTS]; /* 0: it is not there */
	uint16_t interrupt_fields[INTERRUPTS];
};

struct perf {
	enum weft_kernel_level level;
	struct perf_options options;
	WEFT_VEC(struct ring) rings, names, wakes; /* names and wakes: of a flight */
	WEFT_VEC(struct event) events;
	struct weft_idmap by_id;     /* index of events */
	WEFT_VEC(struct mark) marks; /* of which the other end is not there yet */
	WEFT_VEC(struct loaded) loaded;
	int probe_type;                 /* of perf's PMU; 0: there is none */
	WEFT_VEC(struct entry) entries; /* by address */
	struct points points;
	struct kernel_bpf *bpf; /* NULL: tracepoints tell why somebody lost his processor */
	uint8_t calls[MOST_CALLS];
	struct {
		uint64_t address;
		uint8_t call;
	} cache[CALL_CACHE];
	unsigned char *whole; /* a record that goes round its ring's end */
	struct copy own_copy, wakes_copy;
};

/* ---- What this kernel calls things ---- */

static int compare_entries(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	return WEFT_ORDER(a->begin, b->begin) ?: WEFT_ORDER(a->call, b->call);
}

static uint8_t call_of(const char *symbol)
{
	static const struct {
		const char *name;
		uint8_t call;
	} calls[] = {
#define CALL(NAME, value, name) {name, value},
	    WEFT_KERNEL_CALLS(CALL)
#undef CALL
	};
	/* Where compilers let the system call's own function end with a jump, only what it jumps to is in the chain. */
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

/* Where system calls begin and end in the kernel.  The addresses are 0 for those who may not know them. */
static void read_symbols(struct perf *p)
{
	char line[512], type, name[256];
	unsigned long long address;
	FILE *file = fopen("/proc/kallsyms", "re");
	WEFT_VEC(struct entry) all = {0};
	bool whole = file != NULL;
	while (whole && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) != 3 || !address || (type != 't' && type != 'T'))
			continue;
		struct entry *slot = weft_vec_push(&all);
		whole = slot != NULL;
		if (slot)
			*slot = (struct entry){.begin = address, .call = call_of(name)};
	}
	if (file)
		fclose(file);
	weft_sort(all.items, all.count, sizeof *all.items, compare_entries);
	for (size_t i = 0; whole && i < all.count; i++) {
		struct entry *slot = all.items[i].call ? weft_vec_push(&p->entries) : NULL;
		size_t next = i + 1;
		while (next < all.count && all.items[next].begin == all.items[i].begin)
			next++;
		if (slot)
			*slot = (struct entry){
			    all.items[i].begin, next < all.count ? all.items[next].begin : UINT64_MAX, all.items[i].call};
	}
	weft_vec_free(&all);
}

static uint8_t call_at(const struct perf *p, uint64_t address)
{
	size_t low = 0, high = p->entries.count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (p->entries.items[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < p->entries.items[low - 1].end ? p->entries.items[low - 1].call : WEFT_CALL_UNKNOWN;
}

/* The number of a tracepoint, and where one of its fields is; 0: there is none such. */
static unsigned read_format(const char *system, const char *point, const char *field)
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

static bool read_points(struct points *p)
{
	*p = (struct points){
	    .switch_id = (int)read_format("sched", "sched_switch", NULL),
	    .waking_id = (int)read_format("sched", "sched_waking", NULL),
	    .prev_pid = (uint16_t)read_format("sched", "sched_switch", "prev_pid"),
	    .prev_state = (uint16_t)read_format("sched", "sched_switch", "prev_state"),
	    .next_pid = (uint16_t)read_format("sched", "sched_switch", "next_pid"),
	    .next_comm = (uint16_t)read_format("sched", "sched_switch", "next_comm"),
	    .waking_pid = (uint16_t)read_format("sched", "sched_waking", "pid"),
	};
	for (int i = 0; i < INTERRUPTS; i++) {
		p->interrupt_ids[i] = (int)read_format(interrupts[i].system, interrupts[i].name, NULL);
		p->interrupt_fields[i] =
		    interrupts[i].field ? (uint16_t)read_format(interrupts[i].system, interrupts[i].name, interrupts[i].field)
					: 0;
	}
	return p->switch_id && p->waking_id && p->prev_pid && p->prev_state && p->next_pid && p->next_comm && p->waking_pid;
}

/* Where tracefs is not mounted a child mounts it, for itself alone. */
static bool find_points(struct points *out)
{
	int told[2], status;
	if (read_points(out))
		return true;
	if (pipe2(told, O_CLOEXEC))
		return false;
	pid_t child = fork();
	if (child == 0) {
		struct points found;
		bool done = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			    mount("weft", "/sys/kernel/tracing", "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
			    read_points(&found) && write(told[1], &found, sizeof found) == sizeof found;
		_exit(done ? 0 : 1);
	}
	close(told[1]);
	bool whole = child > 0 && read(told[0], out, sizeof *out) == sizeof *out;
	close(told[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	return whole;
}

/* ---- Opening ---- */

/* What stands in every record, whatever wrote it: PERF_SAMPLE_IDENTIFIER is first in samples, and last in all others. */
static struct perf_event_attr attributes(uint32_t type, uint64_t config)
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
	    .wakeup_watermark = MOST_RING / 2,
	};
}

static int open_event(struct perf *p, struct perf_event_attr *attr, pid_t pid, int processor, enum source source)
{
	attr->use_clockid = 1;
	attr->clockid = p->options.clock;
	attr->write_backward = p->options.is_flight && source != SOURCE_NAMES;
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);
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

/* As large as this user may have it; one that nobody may write to is overwritten. */
static bool map_ring(struct ring *ring, int fd, uint32_t processor, size_t most, bool is_overwritten)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = MAP_FAILED;
	size_t size = LEAST_RING;
	while (2 * size <= most)
		size *= 2;
	for (; size >= LEAST_RING; size /= 2) {
		at = mmap(NULL, page + size, PROT_READ | (is_overwritten ? 0 : PROT_WRITE), MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			break;
	}
	*ring = (struct ring){.fd = fd, .processor = processor, .page = at, .data = (unsigned char *)at + page, .size = size};
	return at != MAP_FAILED;
}

/* Who is called what, who makes whom, and which files are loaded. */
static bool open_names(struct perf *p, pid_t pid, int processor)
{
	struct perf_event_attr attr = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	attr.exclude_kernel = attr.inherit = attr.enable_on_exec = attr.comm = attr.task = attr.mmap = 1;
	attr.wakeup_watermark = 1;
	const int fd = open_event(p, &attr, pid, processor, SOURCE_NAMES);
	struct ring *ring = fd < 0 ? NULL : weft_vec_push(&p->names);
	if (ring && map_ring(ring, fd, (uint32_t)processor, NAMES_RING, false)) {
		ring->has_names = true;
		return true;
	}
	p->names.count -= ring != NULL;
	errno = ring ? ENOMEM : errno;
	return false;
}

/* Switches and page faults of the process on each processor, with a ring each. */
static bool open_own(struct perf *p, pid_t pid)
{
	struct perf_event_attr attr = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	const long processors = sysconf(_SC_NPROCESSORS_CONF);
	const bool is_flight = p->options.is_flight;
	const size_t asked = is_flight && p->options.ring_bytes ? (size_t)p->options.ring_bytes : MOST_RING;
	attr.sample_type |= PERF_SAMPLE_ADDR;
	attr.exclude_kernel = attr.inherit = attr.enable_on_exec = attr.task = attr.context_switch = 1;
	attr.comm = attr.mmap = !is_flight;
	int error = ENODEV;
	for (int i = 0; i < processors; i++) {
		int fd = open_event(p, &attr, pid, i, SOURCE_OWN);
		if (fd < 0) {
			if (errno == ENODEV)
				continue; /* it is switched off */
			return false;
		}
		if (is_flight && !open_names(p, pid, i))
			return false;
		struct ring *ring = weft_vec_push(&p->rings);
		if (!ring || !map_ring(ring, fd, (uint32_t)i, asked < MOST_FLIGHT ? asked : MOST_FLIGHT, is_flight)) {
			p->rings.count -= ring != NULL;
			errno = ENOMEM; /* whatever mmap() says: the events may be had, and the memory not */
			return false;
		}
		error = 0;
	}
	errno = error;
	return error == 0;
}

static bool open_on_all(struct perf *p, struct perf_event_attr *attr, pid_t pid, enum source source, const char *filter)
{
	for (size_t i = 0; i < p->rings.count; i++) {
		int fd = open_event(p, attr, pid, (int)p->rings.items[i].processor, source);
		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->rings.items[i].fd) ||
		    (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)))
			return false;
		if (pid < 0)
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return true;
}

/* One tracepoint on each processor, into the rings that there are; `pid` -1: of everybody; `filter`: the kernel's, or NULL. */
static bool open_point(struct perf *p, int number, pid_t pid, enum source source, const char *filter)
{
	struct perf_event_attr attr = attributes(PERF_TYPE_TRACEPOINT, (uint64_t)number);
	attr.sample_type |= PERF_SAMPLE_RAW;
	attr.inherit = attr.enable_on_exec = pid >= 0;
	if (source == SOURCE_SLEEP && p->entries.count) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN | (FIRST_ARGUMENT ? PERF_SAMPLE_REGS_USER : 0);
		attr.sample_max_stack = FRAMES;
		attr.sample_regs_user = FIRST_ARGUMENT;
		attr.exclude_callchain_user = 1;
	}
	return open_on_all(p, &attr, pid, source, filter);
}

/* Who wakes whom, on the whole machine. */
static bool open_wakes(struct perf *p)
{
	if (!p->options.is_flight)
		return open_point(p, p->points.waking_id, -1, SOURCE_WAKING, NULL);
	struct perf_event_attr attr = attributes(PERF_TYPE_TRACEPOINT, (uint64_t)p->points.waking_id);
	attr.sample_type |= PERF_SAMPLE_RAW;
	for (size_t i = 0; i < p->rings.count; i++) {
		const struct ring *own = &p->rings.items[i];
		const int fd = open_event(p, &attr, -1, (int)own->processor, SOURCE_WAKING);
		struct ring *ring = fd < 0 ? NULL : weft_vec_push(&p->wakes);
		if (!ring)
			return false;
		if (!map_ring(ring, fd, own->processor, (size_t)own->size, true)) {
			/* This user may have no more memory. */
			p->wakes.count--;
			if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, own->fd))
				return false;
		}
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return true;
}

/* What our program in the kernel tells. */
static bool open_told(struct perf *p)
{
	struct perf_event_attr attr = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT);
	const size_t before = p->events.count;
	attr.sample_type |= PERF_SAMPLE_RAW;
	bool whole = open_on_all(p, &attr, -1, SOURCE_TOLD, NULL);
	for (size_t i = 0; whole && i < p->rings.count; i++)
		whole = kernel_bpf_to(p->bpf, p->rings.items[i].processor, p->events.items[before + i].fd);
	for (int i = 0; i < MOST_CALLS; i++)
		p->calls[i] = kernel_what_call(i);
	return whole;
}

/* The call chain is what costs most, and says nothing of who could go on. */
static bool open_switches(struct perf *p, pid_t pid)
{
	return open_point(p, p->points.switch_id, pid, SOURCE_SWITCH, "!(prev_state & 255)") &&
	       open_point(p, p->points.switch_id, pid, SOURCE_SLEEP, "prev_state & 255");
}

static void unmap(struct ring *rings, size_t *count)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	while (*count) {
		const struct ring *ring = &rings[--*count];
		munmap(ring->page, page + ring->size);
	}
}

static void close_events(struct perf *p, size_t from)
{
	while (p->events.count > from)
		close(p->events.items[--p->events.count].fd);
}

/* Interrupts while the program's OS threads have the processor.  They are not missed much where they cannot be had. */
static void open_interrupts(struct perf *p, pid_t pid)
{
	for (int i = 0; i + 1 < INTERRUPTS; i += 2) {
		const size_t before = p->events.count;
		if (p->bpf && interrupts[i].source == SOURCE_SOFTIRQ)
			continue;
		if (p->points.interrupt_ids[i] && p->points.interrupt_ids[i + 1] &&
		    !(open_point(p, p->points.interrupt_ids[i], pid, interrupts[i].source, NULL) &&
			open_point(p, p->points.interrupt_ids[i + 1], pid, interrupts[i + 1].source, NULL)))
			close_events(p, before);
	}
}

static void say_paranoid(char *why, size_t size, int error)
{
	int level = 0;
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	bool known = file && fscanf(file, "%d", &level) == 1;
	if (file)
		fclose(file);
	if (known && (error == EACCES || error == EPERM))
		snprintf(why, size, "perf_event_paranoid is %d", level);
	else
		snprintf(why, size, "perf_event_open: %s", strerror(error));
}

static bool open_all(struct perf *p, pid_t pid, char *why, size_t why_size)
{
	const size_t before = p->events.count;
	/* Numbers of tracepoints are for root; whether this user may use one is asked first, since that is what can be changed.
	 */
	struct perf_event_attr probe = attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int fd = (int)syscall(SYS_perf_event_open, &probe, -1, (int)p->rings.items[0].processor, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		say_paranoid(why, why_size, errno);
		return false;
	}
	close(fd);
	if (!find_points(&p->points)) {
		snprintf(why, why_size, "tracefs cannot be read");
		return false;
	}
	if (!p->bpf)
		read_symbols(p);
	if ((p->bpf ? open_told(p) : open_switches(p, pid)) && open_wakes(p)) {
		open_interrupts(p, pid);
		FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
		if (file && fscanf(file, "%d", &p->probe_type) != 1)
			p->probe_type = 0;
		if (file)
			fclose(file);
		if (p->bpf)
			snprintf(
			    why, why_size, "what interrupts leave for later is told from %d us on", KERNEL_BPF_LEAST_NS / 1000);
		else if (!p->entries.count)
			snprintf(why, why_size, "system calls are not named: /proc/kallsyms has no addresses");
		return true;
	}
	say_paranoid(why, why_size, errno);
	unmap(p->wakes.items, &p->wakes.count);
	close_events(p, before);
	return false;
}

static void close_rings(struct perf *p)
{
	unmap(p->rings.items, &p->rings.count);
	unmap(p->names.items, &p->names.count);
	unmap(p->wakes.items, &p->wakes.count);
}

static void open_events(struct perf *p, pid_t pid, char *why, size_t why_size)
{
	p->level = WEFT_LEVEL_SELF;
	if (!open_own(p, pid)) {
		say_paranoid(why, why_size, errno);
		close_rings(p);
		close_events(p, 0);
		return;
	}
	p->level = WEFT_LEVEL_OWN;
	if (p->options.most == WEFT_LEVEL_OWN)
		snprintf(why, why_size, "--kernel=own asked for no more");
	else if (open_all(p, pid, why, why_size))
		p->level = WEFT_LEVEL_ALL;
}

struct perf *perf_open(pid_t pid, const struct perf_options *options, char *why, size_t why_size)
{
	struct perf *p = calloc(1, sizeof *p);
	*why = 0;
	if (!p || !(p->whole = malloc(MOST_RECORD))) {
		free(p);
		return NULL;
	}
	p->options = *options;
	p->bpf = options->most == WEFT_LEVEL_OWN ? NULL : kernel_bpf_open(pid);
	open_events(p, pid, why, why_size);
	if (p->bpf && p->level != WEFT_LEVEL_ALL) { /* without the rest of that level nobody would tell of switches */
		kernel_bpf_close(p->bpf);
		p->bpf = NULL;
		close_rings(p);
		close_events(p, 0);
		open_events(p, pid, why, why_size);
	}
	return p;
}

enum weft_kernel_level perf_level(const struct perf *p)
{
	return p->level;
}

void perf_close(struct perf *p)
{
	kernel_bpf_close(p->bpf);
	close_rings(p);
	close_events(p, 0);
	weft_vec_free(&p->rings);
	weft_vec_free(&p->names);
	weft_vec_free(&p->wakes);
	weft_vec_free(&p->own_copy.found);
	weft_vec_free(&p->wakes_copy.found);
	weft_vec_free(&p->events);
	for (size_t i = 0; i < p->loaded.count; i++)
		free(p->loaded.items[i].path);
	weft_vec_free(&p->loaded);
	weft_vec_free(&p->marks);
	weft_vec_free(&p->entries);
	weft_idmap_finish(&p->by_id);
	free(p->whole);
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

/* The outermost frame that is an entry into the kernel. */
static uint8_t find_call(struct perf *p, const unsigned char *frames, uint64_t count)
{
	for (uint64_t i = count; i-- > 0;) {
		const uint64_t address = get64(frames + 8 * i);
		const size_t slot = (size_t)(address * 0x9e3779b97f4a7c15u >> 56) % CALL_CACHE;
		if (address >= PERF_CONTEXT_MAX)
			continue;
		if (p->cache[slot].address != address) {
			p->cache[slot].address = address;
			p->cache[slot].call = call_at(p, address);
		}
		if (p->cache[slot].call)
			return p->cache[slot].call;
	}
	return WEFT_CALL_UNKNOWN;
}

/* prev_state: bit 0 is a sleep that signals end, bit 1 one that they do not; none of the low ones: it wants to go on. */
static void take_switch(struct perf *p, struct ring *ring, struct perf_seen *s, enum source source, const unsigned char *at,
    const unsigned char *end, perf_fn *take, void *ctx)
{
	const struct points *f = &p->points;
	const bool has_call = source == SOURCE_SLEEP && p->entries.count;
	uint8_t call = WEFT_CALL_UNKNOWN;
	if (has_call) {
		const uint64_t count = end - at >= 8 ? get64(at) : UINT64_MAX;
		if (count > (uint64_t)(end - at - 8) / 8)
			return;
		call = find_call(p, at + 8, count);
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
		s->what = PERF_OFF;
		s->why = state & 2 ? WEFT_OFF_DISK : WEFT_OFF_BLOCKED;
		s->call = call;
	} else {
		s->what = PERF_TAKEN;
		s->other = get32(at + f->next_pid);
		memcpy(s->name, at + f->next_comm, sizeof s->name - 1);
	}
	ring->told_off = s->tid;
	take(ctx, s);
}

static void take_interrupt(struct perf *p, struct ring *ring, struct perf_seen *s, enum source source, const unsigned char *at,
    uint32_t size, perf_fn *take, void *ctx)
{
	const unsigned which = (unsigned)source - SOURCE_IRQ;
	const uint16_t field = p->points.interrupt_fields[which];
	struct begun *begun = &ring->begun[which / 2];
	if (which % 2) {
		if (!begun->time_ns)
			return;
		s->what = PERF_SPENT;
		s->why = source == SOURCE_SOFTIRQ_END ? WEFT_SPENT_DEFERRED : WEFT_SPENT_INTERRUPT;
		s->number = s->time_ns - begun->time_ns;
		memcpy(s->name, begun->name, sizeof s->name);
		begun->time_ns = 0;
		take(ctx, s);
		return;
	}
	*begun = (struct begun){.time_ns = s->time_ns};
	const uint32_t value = field && field + 4u <= size ? get32(at + field) : UINT32_MAX;
	if (source == SOURCE_TICK)
		snprintf(begun->name, sizeof begun->name, "timer");
	else if (source == SOURCE_SOFTIRQ && value < sizeof deferred / sizeof *deferred)
		snprintf(begun->name, sizeof begun->name, "%s", deferred[value]);
	else if (source == SOURCE_IRQ && (value & 0xffff) < size) /* where the text is; how long it is stands above */
		snprintf(
		    begun->name, sizeof begun->name, "%.*s", (int)(size - (value & 0xffff)), (const char *)at + (value & 0xffff));
}

/* What our program in the kernel said: of whoever goes. */
static void take_told(struct perf *p, struct ring *ring, const struct perf_seen *seen, const unsigned char *at, uint32_t size,
    perf_fn *take, void *ctx)
{
	struct kernel_bpf_told told;
	struct perf_seen s = *seen;
	if (size < KERNEL_BPF_BYTES)
		return;
	memcpy(&told, at, KERNEL_BPF_BYTES);
	s.tid = told.off_tid;
	s.pid = told.off_pid;
	if (told.what == KERNEL_BPF_DEFERRED) {
		s.what = PERF_SPENT;
		s.why = WEFT_SPENT_DEFERRED;
		s.number = told.argument;
		if (told.state < sizeof deferred / sizeof *deferred)
			snprintf(s.name, sizeof s.name, "%s", deferred[told.state]);
		take(ctx, &s);
		return;
	}
	if (told.state) {
		s.what = PERF_OFF;
		s.why = told.state & 2 ? WEFT_OFF_DISK : WEFT_OFF_BLOCKED;
		s.call = told.call == -1          ? WEFT_CALL_FAULT
			 : told.call < 0          ? WEFT_CALL_UNKNOWN
			 : told.call < MOST_CALLS ? p->calls[told.call]
						  : WEFT_CALL_OTHER;
		s.has_argument = told.call >= 0;
		s.number = told.argument;
	} else {
		s.what = PERF_TAKEN;
		s.other = told.next;
		memcpy(s.name, told.name, sizeof s.name - 1);
	}
	ring->told_off = s.tid;
	ring->told = s;
}

static void take_sample(
    struct perf *p, struct ring *ring, const unsigned char *at, const unsigned char *end, perf_fn *take, void *ctx)
{
	if (end - at < 32)
		return;
	const uint64_t id = get64(at);
	struct perf_seen s = {
	    .pid = get32(at + 8), .tid = get32(at + 12), .time_ns = get64(at + 16), .processor = ring->processor};
	const uint32_t number = weft_idmap_get(&p->by_id, (int64_t)id);
	if (number == WEFT_IDMAP_NONE || number >= p->events.count)
		return;
	const struct event *event = &p->events.items[number];
	ring->last_ns = s.time_ns;
	at += 24;
	if (event->source == SOURCE_OWN) { /* the address stands before the processor */
		s.what = PERF_FAULT;
		s.number = get64(at);
		take(ctx, &s);
		return;
	}
	at += 8;
	if (event->source == SOURCE_SWITCH || event->source == SOURCE_SLEEP) {
		take_switch(p, ring, &s, event->source, at, end, take, ctx);
		return;
	}
	if (event->source >= SOURCE_PROBE) {
		struct mark *mark = p->marks.count < MOST_MARKS ? weft_vec_push(&p->marks) : NULL;
		if (mark)
			*mark = (struct mark){
			    s.time_ns, s.pid, s.tid, s.processor, event->source == SOURCE_PROBE_END, event->runtime};
		return;
	}
	const uint32_t size = end - at >= 4 ? get32(at) : 0;
	at += 4;
	if (size > (size_t)(end - at))
		return;
	if (event->source == SOURCE_TOLD) {
		take_told(p, ring, &s, at, size, take, ctx);
		return;
	}
	if (event->source >= SOURCE_IRQ) {
		take_interrupt(p, ring, &s, event->source, at, size, take, ctx);
		return;
	}
	if (p->points.waking_pid + 4u > size)
		return;
	enum { IN_INTERRUPT = 0x18, FLAGS_AT = 2 };
	s.what = PERF_WAKE;
	s.other = at[FLAGS_AT] & IN_INTERRUPT ? 0 : s.tid;
	s.tid = get32(at + p->points.waking_pid);
	s.pid = 0;
	take(ctx, &s);
}

/* Has whoever executes the file say when it collects garbage: a probe of some OS threads alone would not be their children's, and
 * that the kernel fails to hand it down would be a fork that fails. */
static void open_probes(struct perf *p, const struct loaded *loaded, const char *path)
{
	for (size_t i = 0; i < loaded->probe_count; i++) {
		const struct kernel_probe *probe = &loaded->probes[i];
		/* The kernel counts the semaphore up: some are silent without that. */
		struct perf_event_attr attr = attributes((uint32_t)p->probe_type, probe->semaphore << 32);
		attr.config1 = (uint64_t)(uintptr_t)path;
		attr.config2 = probe->offset;
		const size_t before = p->events.count;
		if (!open_on_all(p, &attr, -1, probe->is_end ? SOURCE_PROBE_END : SOURCE_PROBE, NULL)) {
			close_events(p, before);
			continue;
		}
		for (size_t k = before; k < p->events.count; k++)
			p->events.items[k].runtime = probe->runtime;
	}
}

/* A process has loaded a file to execute from it, as it names it. */
static void note_loaded(struct perf *p, uint32_t pid, const char *path)
{
	enum { MOST_LOADED = 4096 };
	char seen[512];
	size_t i = 0;
	if (*path != '/' || snprintf(seen, sizeof seen, "/proc/%u/root%s", pid, path) >= (int)sizeof seen)
		return;
	while (i < p->loaded.count && strcmp(p->loaded.items[i].path, path) != 0)
		i++;
	if (i == p->loaded.count) {
		struct loaded *slot = i < MOST_LOADED ? weft_vec_push(&p->loaded) : NULL;
		if (!slot)
			return;
		*slot = (struct loaded){.path = strdup(path)};
		if (!slot->path) {
			p->loaded.count--;
			return;
		}
		slot->probe_count = kernel_probes(seen, slot->probes, MOST_PROBES);
		open_probes(p, slot, seen);
	}
}

static int compare_marks(const void *x, const void *y)
{
	const struct mark *a = x, *b = y;
	return WEFT_ORDER(a->tid, b->tid) ?: WEFT_ORDER(a->time_ns, b->time_ns) ?: WEFT_ORDER(a->is_end, b->is_end) ?:
	       WEFT_ORDER(a->processor, b->processor);
}

/* Tells of collections that are over.  One that is told twice, by an event and by one that was inherited, is one.  What is
 * younger than `until_ns` waits: the other end may stand in a ring that was drained a moment too early. */
static void pair_marks(struct perf *p, uint64_t until_ns, perf_fn *take, void *ctx)
{
	enum { TWICE_NS = 100000 };
	size_t kept = 0;
	weft_sort(p->marks.items, p->marks.count, sizeof *p->marks.items, compare_marks);
	for (size_t i = 0, end; i < p->marks.count; i = end) {
		const struct mark *open = NULL;
		const uint32_t tid = p->marks.items[i].tid;
		for (end = i; end < p->marks.count && p->marks.items[end].tid == tid; end++) {
			const struct mark *m = &p->marks.items[end];
			if (m->time_ns > until_ns) {
				break;
			} else if (!m->is_end) {
				open = m;
			} else if (open) {
				struct perf_seen s = {.what = PERF_SPENT,
				    .why = WEFT_SPENT_COLLECTOR,
				    .time_ns = m->time_ns,
				    .pid = m->pid,
				    .tid = m->tid,
				    .processor = m->processor,
				    .number = m->time_ns - open->time_ns};
				snprintf(s.name, sizeof s.name, "%s", m->runtime);
				take(ctx, &s);
				open = NULL;
			}
		}
		if (open)
			p->marks.items[kept++] = *open;
		for (; end < p->marks.count && p->marks.items[end].tid == tid; end++)
			p->marks.items[kept++] = p->marks.items[end];
	}
	p->marks.count = kept;
}

/* Behind what is not a sample stands who and when: pid, tid, time, processor, identifier. */
static void take_record(struct perf *p, struct ring *ring, const unsigned char *at, perf_fn *take, void *ctx)
{
	struct perf_event_header h;
	memcpy(&h, at, sizeof h);
	const unsigned char *end = at + h.size;
	enum { TRAILER = 32, PATH_AT = 32 };
	if (h.type == PERF_RECORD_SAMPLE) {
		take_sample(p, ring, at + sizeof h, end, take, ctx);
		return;
	}
	if (h.size < sizeof h + TRAILER)
		return;
	struct perf_seen s = {
	    .pid = get32(end - 32), .tid = get32(end - 28), .time_ns = get64(end - 24), .processor = ring->processor};
	ring->last_ns = s.time_ns;
	at += sizeof h;
	switch (h.type) {
	case PERF_RECORD_SWITCH:
		if (!(h.misc & PERF_RECORD_MISC_SWITCH_OUT)) {
			s.what = PERF_ON;
		} else if (ring->told_off == s.tid) {
			ring->told_off = 0;
			if (p->bpf)
				take(ctx, &ring->told);
			return;
		} else {
			s.what = PERF_OFF;
			s.why = h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? WEFT_OFF_PREEMPTED : WEFT_OFF_BLOCKED;
		}
		ring->told_off = 0;
		break;
	case PERF_RECORD_COMM:
		s.what = PERF_NAME;
		s.pid = get32(at);
		s.tid = get32(at + 4);
		snprintf(s.name, sizeof s.name, "%.15s", (const char *)at + 8);
		break;
	case PERF_RECORD_FORK: /* it has the name of who made it, until it gets another */
		if (p->options.is_flight && !ring->has_names)
			return;
		s.what = PERF_NAME;
		s.pid = get32(at);
		s.tid = get32(at + 8);
		s.other = get32(at + 12);
		break;
	case PERF_RECORD_EXIT: /* its last switch belongs to nobody's events any more */
		if (ring->has_names)
			return;
		s.what = PERF_OFF;
		s.pid = get32(at);
		s.tid = get32(at + 8);
		s.why = WEFT_OFF_BLOCKED;
		s.call = WEFT_CALL_EXIT;
		break;
	case PERF_RECORD_MMAP:
		if (p->probe_type && end - at > PATH_AT + TRAILER &&
		    memchr(at + PATH_AT, 0, (size_t)(end - at) - PATH_AT - TRAILER))
			note_loaded(p, s.pid, (const char *)at + PATH_AT);
		return;
	case PERF_RECORD_LOST:
		if (ring->has_names)
			return;
		s.what = PERF_LOST;
		s.number = get64(at + 8);
		break;
	default: return;
	}
	take(ctx, &s);
}

static void drain_ring(struct perf *p, struct ring *ring, perf_fn *take, void *ctx)
{
	const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	const bool was_full = head - tail + LARGEST > ring->size;
	while (tail < head) {
		const size_t at = (size_t)(tail & (ring->size - 1));
		const unsigned char *bytes = ring->data + at;
		struct perf_event_header h;
		memcpy(&h, bytes, sizeof h); /* never goes round the end: records are multiples of 8 */
		if (h.size < sizeof h || h.size > head - tail)
			break;
		if (at + h.size > ring->size) {
			const size_t first = ring->size - at;
			memcpy(p->whole, bytes, first);
			memcpy(p->whole + first, ring->data, h.size - first);
			bytes = p->whole;
		}
		take_record(p, ring, bytes, take, ctx);
		tail += h.size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	/* How much was lost the kernel tells with the next record, which may never come: at least one was. */
	if (was_full && !ring->has_names)
		take(ctx,
		    &(struct perf_seen){.what = PERF_LOST, .processor = ring->processor, .number = 1, .time_ns = ring->last_ns});
}

static void find_records(struct copy *c)
{
	enum { SHORTEST = sizeof(struct perf_event_header) + 32 };
	struct perf_event_header h;
	c->found.count = 0;
	for (uint64_t at = 0; at + sizeof h <= c->left; at += h.size) {
		memcpy(&h, c->bytes + at, sizeof h);
		size_t *slot = h.size < SHORTEST || at + h.size > c->left ? NULL : weft_vec_push(&c->found);
		if (!slot)
			return;
		*slot = (size_t)at;
	}
}

/* What the kernel has written since the last time; nothing, if there is no memory. */
static void copy_ring(struct ring *ring, struct copy *c)
{
	c->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	const size_t at = (size_t)(c->head & (ring->size - 1)), first = ring->size - at;
	c->found.count = 0;
	c->written = ring->seen - c->head;
	c->left = 0;
	if (!(c->bytes = malloc(ring->size)))
		return;
	memcpy(c->bytes, ring->data + at, first);
	memcpy(c->bytes + first, ring->data, at);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	const uint64_t meanwhile = c->head - __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) + UNFINISHED;
	const uint64_t whole = meanwhile < ring->size ? ring->size - meanwhile : 0;
	c->left = c->written < whole ? c->written : whole;
	ring->seen = c->head;
	find_records(c);
}

/* When a record was written: that stands in all of them, of samples at another place. */
static uint64_t time_of(const struct copy *c, size_t number)
{
	const unsigned char *at = c->bytes + c->found.items[number];
	struct perf_event_header h;
	memcpy(&h, at, sizeof h);
	return h.type == PERF_RECORD_SAMPLE ? get64(at + sizeof h + 16) : get64(at + h.size - 24);
}

/* How many bytes the records are that were found. */
static uint64_t bytes_of(const struct copy *c)
{
	struct perf_event_header oldest;
	if (!c->found.count)
		return 0;
	const size_t last = c->found.items[c->found.count - 1];
	memcpy(&oldest, c->bytes + last, sizeof oldest);
	return last + oldest.size;
}

static uint64_t now_ns(const struct perf *p)
{
	struct timespec now;
	clock_gettime(p->options.clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of the wakes on a processor, those from `since_ns` to `until_ns`: what follows is read the next time.  The newest of these. */
static size_t copy_wakes(struct perf *p, uint32_t processor, uint64_t since_ns, uint64_t until_ns)
{
	struct copy *c = &p->wakes_copy;
	struct ring *ring = NULL;
	size_t newest = 0;
	c->bytes = NULL;
	c->found.count = 0;
	for (size_t i = 0; i < p->wakes.count; i++)
		if (p->wakes.items[i].processor == processor)
			ring = &p->wakes.items[i];
	if (!ring)
		return 0;
	copy_ring(ring, c);
	while (newest < c->found.count && time_of(c, newest) > until_ns)
		newest++;
	if (newest)
		ring->seen = c->head + (newest < c->found.count ? c->found.items[newest] : bytes_of(c));
	while (c->found.count > newest && time_of(c, c->found.count - 1) < since_ns)
		c->found.count--;
	return newest;
}

static void read_flight(struct perf *p, struct ring *ring, perf_fn *take, void *ctx)
{
	struct copy *own = &p->own_copy, *wakes = &p->wakes_copy;
	uint64_t since_ns = 0, until_ns = now_ns(p);
	copy_ring(ring, own);
	const size_t count = own->found.count;
	const uint64_t read = bytes_of(own);
	if (count && time_of(own, 0) > until_ns)
		until_ns = time_of(own, 0);
	if (count && read < own->written) {
		memset(ring->begun, 0, sizeof ring->begun);
		ring->told_off = 0;
		since_ns = time_of(own, count - 1);
		take(ctx, &(struct perf_seen){.what = PERF_GAP,
			      .processor = ring->processor,
			      .number = (own->written - read) / (read / count),
			      .time_ns = since_ns});
	}
	const size_t newest = copy_wakes(p, ring->processor, since_ns, until_ns);
	/* Both by their times: a packet has no way back. */
	size_t left = wakes->found.count;
	for (size_t i = count; i-- > 0;) {
		for (; left > newest && time_of(wakes, left - 1) <= time_of(own, i); left--)
			take_record(p, ring, wakes->bytes + wakes->found.items[left - 1], take, ctx);
		take_record(p, ring, own->bytes + own->found.items[i], take, ctx);
	}
	for (; left > newest; left--)
		take_record(p, ring, wakes->bytes + wakes->found.items[left - 1], take, ctx);
	free(own->bytes);
	free(wakes->bytes);
}

void perf_drain_names(struct perf *p, perf_fn *take, void *ctx)
{
	for (size_t i = 0; i < p->names.count; i++)
		drain_ring(p, &p->names.items[i], take, ctx);
}

void perf_drain(struct perf *p, perf_fn *take, void *ctx)
{
	enum { LATE_NS = 1000000 };
	const uint64_t until_ns = now_ns(p) - LATE_NS;
	perf_drain_names(p, take, ctx);
	for (size_t i = 0; i < p->rings.count; i++)
		(p->options.is_flight ? read_flight : drain_ring)(p, &p->rings.items[i], take, ctx);
	pair_marks(p, until_ns, take, ctx);
}

void perf_wait(const struct perf *p, int fd, int other_fd, int most_ms)
{
	enum { MOST = 66 };
	struct pollfd polled[MOST] = {{fd, POLLIN, 0}, {other_fd, POLLIN, 0}};
	nfds_t count = 2;
	const bool is_flight = p->options.is_flight;
	for (size_t i = 0; i < (is_flight ? p->names.count : p->rings.count) && count < MOST; i++)
		polled[count++] = (struct pollfd){is_flight ? p->names.items[i].fd : p->rings.items[i].fd, POLLIN, 0};
	poll(polled, count, most_ms);
}
