/* recorder.c: records kernel events of a command's processes into the traces of these processes.
 *
 * An OS thread of this command reads the kernel's rings.  The events of a process go into the trace that this process makes;
 * until that trace is ready, a few events are kept.  The events' times are converted to ticks of the CPU's counter, which the
 * program's own events use.  CLOCK_MONOTONIC_RAW is never slewed, so it is linear in the counter; each read of the rings reads
 * both clocks before and after.
 *
 * In flight mode the rings are read only on request (flight.h) or at the end; until then the thread sleeps.
 * SPDX-License-Identifier: ISC */
#include "kernel/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <weft/record_inline.h>

#if defined __x86_64__ || defined __i386__
#include <cpuid.h>
#endif

#include "base/duration.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/line_fit.h"
#include "kernel/flight.h"
#include "kernel/packets.h"
#include "kernel/perf.h"
#include "kernel/syscall_args.h"
#include "session/session.h"

enum {
	DRAIN_MS = 50,
	MAX_CLOCK_PAIRS = 32,
	CLOCK_TRIES = 12,
	MAX_QUEUED = 1 << 18,
	RESCAN_NS = 1000000000,
	LONG_BLOCK_NS = 5000000, /* time after which a blocked thread is inspected */
	MAX_INSPECTIONS = 32,    /* maximum number of OS threads that are inspected in one read of the rings */
	MAX_DESCRIPTORS = 64,    /* maximum number of descriptors that are inspected in one read of the rings */
	MAX_MAPPINGS = 64,
	MAX_MAPS_READ = 4, /* maximum number of processes whose mappings are read in one read of the rings */
	MAX_TEXTS = 1 << 16
};

/* Value of one clock that was read between two readings of the other clock. */
struct clock_pair {
	uint64_t before, raw_ns, after;
};

struct os_thread {
	uint32_t tid, pid;
	char text[16];
	uint64_t named_ns; /* time of that name */
	uint64_t fault;    /* address of the newest page fault */
	/* Times of the newest switch of a thread of the program: */
	uint64_t switch_ns, off_ns; /* off_ns: time at which the thread was blocked; 0 if it is not blocked */
	uint32_t cpu;
	uint8_t call;
	bool is_inspected; /* inspected since off_ns */
};

/* The observed wait of an OS thread, which is valid if the thread was not switched in between `off_ns` and `seen_ns`. */
struct inspection {
	struct weft_kernel_blocked_call target;
	uint32_t thread_index;           /* index of names */
	uint64_t off_ns, seen_ns, on_ns; /* on_ns: time at which the thread was on CPU again; 0 if it was not yet */
};

/* Meaning of a process's descriptor, cached during one read of the rings. */
struct descriptor {
	uint32_t pid, fd, text;
};

/* File of a process's mapping, cached during one read of the rings. */
struct mapping {
	uint32_t pid, text;
	uint64_t begin, end;
};

/* An event, and its time on the trace's clock. */
struct timed_event {
	struct weft_kernel_perf_event event;
	uint64_t ticks;
	struct {
		uint64_t ticks; /* time of the inspection; 0 if the call is unknown */
		uint32_t fd, text;
		bool is_sure;
	} blocked_in;
};

/* A process, and the destination of its events. */
struct process {
	uint32_t pid;
	struct weft_kernel_packets *file; /* trace that gets the events; NULL while the process has no trace */
	WEFT_VEC(struct timed_event) queued;
	/* Number of queued events that were dropped, and time of the newest dropped event in ticks. */
	uint64_t dropped, dropped_until;
};

/* Events of a CPU that were overwritten. */
struct gap {
	uint32_t cpu;
	uint64_t ticks, raw_ns, events;
};

struct weft_kernel_recorder {
	struct weft_kernel_recorder_options options;
	struct weft_kernel_perf *perf;
	char why[128];
	pthread_t thread;
	int stop_fd;       /* an eventfd */
	int flight_socket; /* socket for requests in flight mode; -1: none */
	struct clock_pair clock_pairs[MAX_CLOCK_PAIRS];
	size_t clock_pair_count;
	struct weft_line_fit line_fit;
	bool has_line_fit, has_counter; /* has_counter: whether the recorder's clock is the CPU's counter */
	uint32_t bound_ns;
	uint64_t from_raw_ns, from_ticks; /* start of the line from the previous clock pair to this one */
	double slope;
	WEFT_VEC(struct process) processes;
	WEFT_VEC(struct weft_kernel_packets *) files;
	WEFT_VEC(char *) folders;          /* folders of known traces */
	size_t users_traces;               /* traces of other users */
	WEFT_VEC(struct timed_event) lost; /* lost events of unknown processes, which count for every process */
	WEFT_VEC(struct gap) gaps;         /* newest gap of each CPU, in flight mode */
	WEFT_VEC(struct os_thread) os_threads;
	struct weft_idmap threads, pids; /* maps from a tid to an index of names, and from a pid to an index of processes */
	struct weft_intern texts;        /* copies of texts; the number of a text in traces is its index + 1 */
	WEFT_VEC(struct inspection) inspections;
	struct descriptor descriptors[MAX_DESCRIPTORS];
	size_t descriptor_count;
	struct mapping mappings[MAX_MAPPINGS];
	size_t mapping_count;
	int maps_read;                  /* number of maps files that were read in this read of the rings */
	uint32_t next_inspected;        /* index of names */
	struct timespec folder_changed; /* modification time of the session's folder when the folder was read */
	uint64_t scanned_ns;
};

/* ---- Clocks ---- */

/* Returns whether the CPU's counter may be used as a clock, by the same rule as the recorder: a counter with variable speed may
 * not. */
static bool has_invariant_counter(void)
{
#if defined __x86_64__ || defined __i386__
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#else
	return true;
#endif
}

static clockid_t get_clock_id(const struct weft_kernel_recorder *k)
{
	return k->has_counter ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC;
}

/* Returns the current time on the clock of kernel events. */
static uint64_t get_raw_ns(const struct weft_kernel_recorder *k)
{
	struct timespec t;
	clock_gettime(get_clock_id(k), &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Measures a clock pair, and keeps the tightest of several tries. */
static void measure_clock_pair(struct weft_kernel_recorder *k)
{
	struct clock_pair best = {0, 0, UINT64_MAX};
	for (int i = 0; i < CLOCK_TRIES; i++) {
		struct clock_pair p = {.before = weft__counter()};
		p.raw_ns = get_raw_ns(k);
		p.after = weft__counter();
		if (p.after - p.before < best.after - best.before)
			best = p;
	}
	/* In flight mode the oldest pair is kept, because events may be as old as it is. */
	const size_t first = k->options.is_flight;
	if (k->clock_pair_count == MAX_CLOCK_PAIRS)
		memmove(
		    k->clock_pairs + first, k->clock_pairs + first + 1, (--k->clock_pair_count - first) * sizeof *k->clock_pairs);
	k->clock_pairs[k->clock_pair_count++] = best;
}

/* Fits a line through the recent clock pairs; the events that are read lie between two of these pairs. */
static bool fit_clock_line(struct weft_kernel_recorder *k)
{
	if (!k->has_counter) { /* the trace has the same clock as the kernel events */
		k->bound_ns = 1;
		return true;
	}
	const struct clock_pair *first = &k->clock_pairs[0], *last = &k->clock_pairs[k->clock_pair_count - 1];
	if (k->has_line_fit)
		weft_line_fit_finish(&k->line_fit);
	/* The speed of the counter is between 10 MHz and 100 GHz. */
	weft_line_fit_init(&k->line_fit, (int64_t)first->raw_ns, (int64_t)first->before, (struct weft_slope){1, 100},
	    (struct weft_slope){100, 1});
	k->has_line_fit = true;
	for (size_t i = 0; i < k->clock_pair_count; i++) {
		/* The clock has whole ns: it showed raw_ns at `after`, and did not yet show the next value at `before`. */
		const struct clock_pair *p = &k->clock_pairs[i];
		if (weft_line_fit_add_above(&k->line_fit, (int64_t)p->raw_ns, (int64_t)p->after) < 0 ||
		    weft_line_fit_add_below(&k->line_fit, (int64_t)p->raw_ns + 1, (int64_t)p->before) < 0)
			return false;
	}
	if (weft_line_fit_solve(&k->line_fit) < 0)
		return false;
	/* The events that are read lie between the previous pair and this pair, where the line is straight, so each event needs
	 * one multiplication.
	 */
	const struct clock_pair *before = k->options.is_flight ? first : last - 1;
	int64_t low, high, least, most;
	const int64_t from = weft_line_fit_at(&k->line_fit, (int64_t)before->raw_ns, &least, &most),
		      to = weft_line_fit_at(&k->line_fit, (int64_t)last->raw_ns, &low, &high);
	k->from_raw_ns = before->raw_ns;
	k->from_ticks = (uint64_t)from;
	k->slope = (double)(to - from) / (double)(last->raw_ns - before->raw_ns);
	k->bound_ns = (uint32_t)((double)weft_max_ns(high - low, most - least) / k->slope / 2 + 1);
	return true;
}

static uint64_t to_ticks(const struct weft_kernel_recorder *k, uint64_t raw_ns)
{
	return !k->has_counter ? raw_ns
			       : k->from_ticks + (uint64_t)(int64_t)((double)(int64_t)(raw_ns - k->from_raw_ns) * k->slope);
}

/* ---- Names ---- */

static const struct os_thread *find_thread(const struct weft_kernel_recorder *k, uint32_t tid)
{
	const uint32_t at = weft_idmap_get(&k->threads, tid);
	return at == WEFT_IDMAP_NONE ? NULL : &k->os_threads.items[at];
}

static void set_thread_name(struct weft_kernel_recorder *k, uint32_t tid, uint32_t pid, const char *text)
{
	struct os_thread *slot = (struct os_thread *)(uintptr_t)find_thread(k, tid);
	if (!slot) {
		if (!(slot = weft_vec_push(&k->os_threads)))
			return;
		*slot = (struct os_thread){.tid = tid};
		if (!weft_idmap_set(&k->threads, tid, (uint32_t)k->os_threads.count - 1)) {
			k->os_threads.count--;
			return;
		}
	}
	slot->pid = pid ? pid : slot->pid;
	if (*text)
		snprintf(slot->text, sizeof slot->text, "%s", text);
}

/* Finds the name of an OS thread; a thread without a recorded name gets its current name, if the thread still exists. */
static const struct os_thread *find_or_name_thread(struct weft_kernel_recorder *k, uint32_t tid)
{
	const struct os_thread *known = find_thread(k, tid);
	if (known && known->text[0])
		return known;
	/* The thread has the name of its process, if that name was recorded on another CPU. */
	const struct os_thread *process = known && known->pid ? find_thread(k, known->pid) : NULL;
	if (process && process->text[0])
		return process;
	char path[32], text[16] = "";
	snprintf(path, sizeof path, "/proc/%u/comm", tid);
	FILE *file = fopen(path, "re");
	if (file && fgets(text, sizeof text, file))
		text[strcspn(text, "\n")] = 0;
	if (file)
		fclose(file);
	set_thread_name(k, tid, 0, *text ? text : "?");
	return find_thread(k, tid);
}

/* ---- Destinations of the events ---- */

static struct process *get_process(struct weft_kernel_recorder *k, uint32_t pid)
{
	const uint32_t at = weft_idmap_get(&k->pids, pid);
	if (at != WEFT_IDMAP_NONE)
		return &k->processes.items[at];
	struct process *slot = weft_vec_push(&k->processes);
	if (!slot || !weft_idmap_set(&k->pids, pid, (uint32_t)k->processes.count - 1)) {
		k->processes.count -= slot != NULL;
		return NULL;
	}
	*slot = (struct process){.pid = pid};
	return slot;
}

static void write_thread_name(
    struct weft_kernel_recorder *k, struct weft_kernel_packets *file, const struct timed_event *timed_event, uint32_t tid)
{
	const uint32_t cpu = timed_event->event.cpu;
	const struct os_thread *name = tid && weft_kernel_packets_needs_name(file, cpu, tid) ? find_or_name_thread(k, tid) : NULL;
	if (name)
		weft_kernel_packets_write(file, cpu, timed_event->ticks,
		    &(struct weft_wire_kernel){.op = WEFT_KERNEL_THREAD,
			.tid = tid,
			.other = name->pid,
			.text = name->text,
			.text_bytes = (uint32_t)strlen(name->text)});
}

/* Returns the number of a text; 0 for NULL or an empty text. */
static uint32_t intern_text(struct weft_kernel_recorder *k, const char *text)
{
	if (!*text)
		return 0;
	const uint32_t before = (uint32_t)k->texts.texts.count;
	/* weft_intern() keeps the copy only if the text is new. */
	char *copy = before < MAX_TEXTS ? strdup(text) : NULL;
	const uint32_t number =
	    copy ? weft_intern(&k->texts, (struct weft_str){copy, (uint32_t)strlen(copy)}) : WEFT_INTERN_FAILED;
	if (number == WEFT_INTERN_FAILED || number < before)
		free(copy);
	return number == WEFT_INTERN_FAILED ? 0 : number + 1;
}

static void write_text(
    struct weft_kernel_recorder *k, struct weft_kernel_packets *file, uint32_t cpu, uint64_t ticks, uint32_t number)
{
	if (!number || !weft_kernel_packets_needs_text(file, cpu, number))
		return;
	const struct weft_str text = k->texts.texts.items[number - 1];
	weft_kernel_packets_write(file, cpu, ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_TEXT, .number = number, .text = text.ptr, .text_bytes = text.len});
}

static void write_spent(struct weft_kernel_recorder *k, struct weft_kernel_packets *file, const struct timed_event *timed_event)
{
	const struct weft_kernel_perf_event *s = &timed_event->event;
	const uint32_t number = intern_text(k, s->name);
	write_text(k, file, s->cpu, timed_event->ticks, number);
	weft_kernel_packets_write(file, s->cpu, timed_event->ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_SPENT,
		.tid = s->tid,
		.why = s->why,
		.number = number,
		.raw_ns = s->number,
		.then = timed_event->ticks});
}

static void write_blocked_call(
    struct weft_kernel_recorder *k, struct weft_kernel_packets *file, const struct timed_event *timed_event)
{
	const struct weft_kernel_perf_event *s = &timed_event->event;
	write_text(k, file, s->cpu, timed_event->ticks, timed_event->blocked_in.text);
	weft_kernel_packets_write(file, s->cpu, timed_event->ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_IN,
		.tid = s->tid,
		.call = s->call,
		.why = timed_event->blocked_in.is_sure,
		.other = timed_event->blocked_in.fd,
		.number = timed_event->blocked_in.text,
		.then = timed_event->blocked_in.ticks});
}

static void write_event(struct weft_kernel_recorder *k, struct weft_kernel_packets *file, const struct timed_event *timed_event)
{
	const struct weft_kernel_perf_event *s = &timed_event->event;
	static const uint8_t ops[] = {[WEFT_PERF_ON] = WEFT_KERNEL_ON,
	    [WEFT_PERF_OFF] = WEFT_KERNEL_OFF,
	    [WEFT_PERF_TAKEN] = WEFT_KERNEL_TAKEN,
	    [WEFT_PERF_WAKE] = WEFT_KERNEL_WAKE,
	    [WEFT_PERF_FAULT] = WEFT_KERNEL_FAULT};
	weft_kernel_packets_reserve(file, s->cpu, timed_event->ticks, s->time_ns);
	write_thread_name(k, file, timed_event, s->tid);
	if (s->event_type == WEFT_PERF_SPENT) {
		write_spent(k, file, timed_event);
		return;
	}
	if (timed_event->blocked_in.is_sure) {
		write_blocked_call(k, file, timed_event);
		return;
	}
	if (s->event_type == WEFT_PERF_TAKEN || s->event_type == WEFT_PERF_WAKE)
		write_thread_name(k, file, timed_event, s->other);
	weft_kernel_packets_write(file, s->cpu, timed_event->ticks,
	    &(struct weft_wire_kernel){.op = ops[s->event_type],
		.tid = s->tid,
		.other = s->event_type == WEFT_PERF_FAULT ? (uint32_t)(s->number >> 12) : s->other,
		.why = s->why,
		.call = s->call});
	if (timed_event->blocked_in.ticks)
		write_blocked_call(k, file, timed_event);
}

static void deliver_event(struct weft_kernel_recorder *k, uint32_t pid, const struct timed_event *timed_event)
{
	struct process *p = get_process(k, pid);
	if (!p)
		return;
	if (p->file) {
		write_event(k, p->file, timed_event);
		return;
	}
	if (p->queued.count == MAX_QUEUED) {
		p->dropped += MAX_QUEUED / 2;
		p->dropped_until = p->queued.items[MAX_QUEUED / 2 - 1].ticks;
		memmove(p->queued.items, p->queued.items + MAX_QUEUED / 2, MAX_QUEUED / 2 * sizeof *p->queued.items);
		p->queued.count = MAX_QUEUED / 2;
	}
	struct timed_event *slot = weft_vec_push(&p->queued);
	if (slot)
		*slot = *timed_event;
}

/* ---- Waits of blocked threads ---- */

/* Returns the meaning of a descriptor as a text's number, which is looked up once in each read of the rings. */
static uint32_t get_descriptor_text(struct weft_kernel_recorder *k, uint32_t pid, uint32_t fd)
{
	char text[WEFT_KERNEL_TARGET_BYTES] = "";
	for (size_t i = 0; i < k->descriptor_count; i++)
		if (k->descriptors[i].pid == pid && k->descriptors[i].fd == fd)
			return k->descriptors[i].text;
	if (k->descriptor_count == MAX_DESCRIPTORS)
		return 0;
	weft_kernel_describe_fd(pid, fd, false, text);
	const uint32_t number = intern_text(k, text);
	k->descriptors[k->descriptor_count++] = (struct descriptor){pid, fd, number};
	return number;
}

/* Returns the file that is mapped at the address of a page fault, as a text's number. */
static uint32_t get_mapping_text(struct weft_kernel_recorder *k, uint32_t pid, uint64_t address)
{
	struct weft_kernel_mapping found;
	for (size_t i = 0; i < k->mapping_count; i++)
		if (k->mappings[i].pid == pid && k->mappings[i].begin <= address && address < k->mappings[i].end)
			return k->mappings[i].text;
	if (k->maps_read == MAX_MAPS_READ || k->mapping_count == MAX_MAPPINGS)
		return 0;
	k->maps_read++;
	if (!weft_kernel_find_mapping(pid, address, &found))
		return 0;
	const uint32_t number = intern_text(k, found.text);
	k->mappings[k->mapping_count++] = (struct mapping){pid, number, found.begin, found.end};
	return number;
}

/* Notes the time since which a thread is blocked.  The CPUs are read one after the other, so a switch that is older may come
 * later. */
static void note_switch(struct weft_kernel_recorder *k, const struct weft_kernel_perf_event *s)
{
	const uint32_t at = weft_idmap_get(&k->threads, s->tid);
	struct os_thread *name = at == WEFT_IDMAP_NONE ? NULL : &k->os_threads.items[at];
	if (name && s->event_type == WEFT_PERF_FAULT)
		name->fault = s->number;
	if (!name || (s->event_type != WEFT_PERF_ON && s->event_type != WEFT_PERF_OFF && s->event_type != WEFT_PERF_TAKEN))
		return;
	for (size_t i = 0; s->event_type == WEFT_PERF_ON && i < k->inspections.count; i++) {
		struct inspection *inspection = &k->inspections.items[i];
		if (inspection->thread_index == at && s->time_ns > inspection->off_ns &&
		    (!inspection->on_ns || s->time_ns < inspection->on_ns))
			inspection->on_ns = s->time_ns;
	}
	if (s->time_ns < name->switch_ns)
		return;
	name->switch_ns = s->time_ns;
	name->off_ns = s->event_type == WEFT_PERF_OFF && s->why != WEFT_OFF_PREEMPTED ? s->time_ns : 0;
	name->cpu = s->cpu;
	name->call = s->call;
	name->is_inspected = false;
}

/* Reports the inspected threads that were blocked all the time, which is known only after the next read of the rings. */
static void write_inspections(struct weft_kernel_recorder *k)
{
	for (size_t i = 0; i < k->inspections.count; i++) {
		const struct inspection *inspection = &k->inspections.items[i];
		const struct os_thread *name = &k->os_threads.items[inspection->thread_index];
		if (inspection->on_ns && inspection->on_ns <= inspection->seen_ns)
			continue;
		struct timed_event timed_event = {.ticks = to_ticks(k, inspection->seen_ns),
		    .blocked_in = {
			.fd = inspection->target.fd, .text = intern_text(k, inspection->target.text), .is_sure = true}};
		timed_event.blocked_in.ticks = timed_event.ticks;
		timed_event.event = (struct weft_kernel_perf_event){.time_ns = inspection->seen_ns,
		    .pid = name->pid,
		    .tid = name->tid,
		    .cpu = name->cpu,
		    .call = inspection->target.call};
		deliver_event(k, name->pid, &timed_event);
	}
	k->inspections.count = 0;
}

/* Returns whether the syscall waits for nothing that has a name, or for something that the program's own events describe
 * better. */
static bool is_generic_wait(uint8_t call)
{
	return call == WEFT_CALL_EPOLL_WAIT || call == WEFT_CALL_EPOLL_PWAIT || call == WEFT_CALL_EPOLL_PWAIT2 ||
	       call == WEFT_CALL_FUTEX || call == WEFT_CALL_NANOSLEEP || call == WEFT_CALL_CLOCK_NANOSLEEP;
}

/* Inspects threads that have been blocked for a while, to find out what they wait for. */
static void inspect_blocked(struct weft_kernel_recorder *k)
{
	const uint64_t now_ns = get_raw_ns(k);
	const size_t count = k->os_threads.count;
	int left = MAX_INSPECTIONS;
	for (size_t i = 0; i < count && left > 0; i++) {
		const uint32_t at = (uint32_t)((k->next_inspected + i) % count);
		struct os_thread *name = &k->os_threads.items[at];
		struct inspection inspection = {.thread_index = at, .off_ns = name->off_ns};
		if (!name->pid || !name->off_ns || name->is_inspected || now_ns - name->off_ns < LONG_BLOCK_NS ||
		    is_generic_wait(name->call))
			continue;
		name->is_inspected = true;
		if (--left == 0)
			k->next_inspected = at;
		if (!weft_kernel_read_blocked_call(name->pid, name->tid, &inspection.target))
			continue;
		inspection.seen_ns = get_raw_ns(k);
		struct inspection *slot = weft_vec_push(&k->inspections);
		if (slot)
			*slot = inspection;
	}
}

/* Events before the start of the trace do not count as missing. */
static void write_gap(struct weft_kernel_packets *file, const struct gap *gap)
{
	if (gap->ticks > weft_kernel_packets_start(file))
		weft_kernel_packets_restart(file, gap->cpu, gap->ticks, gap->raw_ns, gap->events);
}

static void apply_gap(struct weft_kernel_recorder *k, const struct weft_kernel_perf_event *s)
{
	const struct gap gap = {s->cpu, to_ticks(k, s->time_ns), s->time_ns, s->number};
	size_t i = 0;
	while (i < k->gaps.count && k->gaps.items[i].cpu != gap.cpu)
		i++;
	struct gap *slot = i < k->gaps.count ? &k->gaps.items[i] : weft_vec_push(&k->gaps);
	if (slot)
		*slot = gap;
	for (i = 0; i < k->files.count; i++)
		write_gap(k->files.items[i], &gap);
	for (i = 0; i < k->processes.count; i++) {
		struct process *p = &k->processes.items[i];
		size_t kept = 0;
		for (size_t n = 0; n < p->queued.count; n++)
			if (p->queued.items[n].event.cpu != gap.cpu)
				p->queued.items[kept++] = p->queued.items[n];
		p->queued.count = kept;
	}
}

static void apply_event(void *ctx, const struct weft_kernel_perf_event *s)
{
	struct weft_kernel_recorder *k = ctx;
	if (s->event_type == WEFT_PERF_LOST) {
		for (size_t i = 0; i < k->files.count; i++)
			weft_kernel_packets_add_lost(k->files.items[i], s->cpu, s->number);
		struct timed_event *lost = weft_vec_push(&k->lost);
		if (lost)
			*lost = (struct timed_event){.event = *s, .ticks = to_ticks(k, s->time_ns)};
		return;
	}
	if (s->event_type == WEFT_PERF_GAP) {
		apply_gap(k, s);
		return;
	}
	if (s->event_type == WEFT_PERF_NAME) {
		/* The CPUs are read one after the other, so a name that is older may come later. */
		const struct os_thread *known = find_thread(k, s->tid), *parent = s->other ? find_thread(k, s->other) : NULL;
		if (known && known->named_ns > s->time_ns)
			return;
		char text[16] = "";
		if (parent)
			memcpy(text, parent->text, sizeof text);
		set_thread_name(k, s->tid, s->pid, s->other ? text : s->name);
		if (find_thread(k, s->tid))
			((struct os_thread *)(uintptr_t)find_thread(k, s->tid))->named_ns = s->time_ns;
		if (!s->other)
			for (size_t i = 0; i < k->files.count; i++)
				weft_kernel_packets_forget_name(k->files.items[i], s->tid);
		return;
	}
	uint32_t pid = s->pid;
	if (s->tid == 0 || s->tid == UINT32_MAX || pid == UINT32_MAX)
		return; /* the thread has ended and has no id any more */
	if (s->event_type == WEFT_PERF_WAKE ||
	    s->event_type == WEFT_PERF_SPENT) { /* recorded for all programs; the events of other programs are dropped */
		const struct os_thread *name = find_thread(k, s->tid);
		if (!name || !name->pid)
			return;
		pid = name->pid;
	} else {
		const struct os_thread *name = find_thread(k, s->tid);
		if (!name || name->pid != pid)
			set_thread_name(k, s->tid, pid, "");
	}
	if (s->event_type == WEFT_PERF_TAKEN && s->other && s->name[0] && !find_thread(k, s->other))
		set_thread_name(k, s->other, 0, s->name);
	note_switch(k, s);
	struct timed_event timed_event = {.event = *s, .ticks = to_ticks(k, s->time_ns)};
	if (s->event_type == WEFT_PERF_OFF && s->has_argument && weft_kernel_call_has_fd(s->call)) {
		timed_event.blocked_in.ticks = timed_event.ticks;
		timed_event.blocked_in.fd = (uint32_t)s->number;
		timed_event.blocked_in.text = get_descriptor_text(k, pid, timed_event.blocked_in.fd);
	} else if (s->event_type == WEFT_PERF_OFF && s->call == WEFT_CALL_FAULT) {
		const struct os_thread *name = find_thread(k, s->tid);
		timed_event.blocked_in.text = name && name->fault ? get_mapping_text(k, pid, name->fault) : 0;
		timed_event.blocked_in.ticks = timed_event.blocked_in.text ? timed_event.ticks : 0;
		timed_event.blocked_in.fd = WEFT_KERNEL_NO_FD;
	}
	deliver_event(k, pid, &timed_event);
}

/* Returns whether a trace may use descriptors of this process; the number is limited, because any user may make folders in that
 * user's folder. */
static bool may_add(struct weft_kernel_recorder *k, const struct weft_kernel_packets *file)
{
	enum { USERS_TRACES = 128 };
	if (weft_kernel_packets_owner(file) == geteuid())
		return true;
	if (k->users_traces == USERS_TRACES)
		k->options.note("--kernel: only %d traces of other users have kernel events", USERS_TRACES);
	return k->users_traces++ < USERS_TRACES;
}

/* Adds a new trace, which from now on gets the events of its process. */
static void add_trace(struct weft_kernel_recorder *k, const char *path)
{
	for (size_t i = 0; i < k->folders.count; i++)
		if (!strcmp(k->folders.items[i], path))
			return;
	struct weft_kernel_packets_options options = {.session = k->options.folder,
	    .level = weft_kernel_perf_level(k->perf),
	    .why = k->why,
	    .size_bytes = k->options.is_flight ? 0 : k->options.size_bytes,
	    .grows = k->options.is_flight || k->options.grows,
	    .has_counter = k->has_counter,
	    .note = k->options.note};
	struct weft_kernel_packets *file;
	uint32_t pid = 0;
	int opened = weft_kernel_packets_open(&file, path, &options, &pid);
	if (opened > 0 && !may_add(k, file)) {
		weft_kernel_packets_close(file);
		opened = -1;
	}
	if (!opened) /* not ready yet */
		return;
	char **folder = weft_vec_push(&k->folders);
	if (folder && !(*folder = strdup(path)))
		k->folders.count--;
	if (opened < 0)
		return;
	struct weft_kernel_packets **slot = weft_vec_push(&k->files);
	struct process *p = slot ? get_process(k, pid) : NULL;
	if (slot)
		*slot = file;
	else
		weft_kernel_packets_close(file);
	if (!p)
		return;
	p->file = file;
	/* The trace gets the recording level even if it has no kernel events. */
	const struct clock_pair *newest = &k->clock_pairs[k->clock_pair_count - 1];
	if (weft_kernel_perf_level(k->perf) == WEFT_LEVEL_SELF)
		weft_kernel_packets_reserve(file, 0, k->has_counter ? newest->before : newest->raw_ns, newest->raw_ns);
	for (size_t i = 0; i < k->gaps.count; i++)
		write_gap(file, &k->gaps.items[i]);
	for (size_t i = 0; i < p->queued.count; i++)
		write_event(k, file, &p->queued.items[i]);
	weft_vec_free(&p->queued);
	/* Events before the start of the trace do not count as missing. */
	const uint64_t begun = weft_kernel_packets_start(file);
	if (p->dropped && p->dropped_until >= begun)
		weft_kernel_packets_add_lost(file, 0, p->dropped);
	for (size_t i = 0; i < k->lost.count; i++)
		if (k->lost.items[i].ticks >= begun)
			weft_kernel_packets_add_lost(file, k->lost.items[i].event.cpu, k->lost.items[i].event.number);
}

static bool has_untraced_process(const struct weft_kernel_recorder *k)
{
	for (size_t i = 0; i < k->processes.count; i++)
		if (!k->processes.items[i].file)
			return true;
	return false;
}

/* Finds new traces, after a change of the folder and, because metadata come a little later, every second while a process has no
 * trace.
 */
static void find_traces(struct weft_kernel_recorder *k, bool always)
{
	struct stat st;
	struct session s;
	const uint64_t now = get_raw_ns(k);
	if (stat(k->options.folder, &st))
		return;
	const bool is_changed = st.st_mtim.tv_sec != k->folder_changed.tv_sec || st.st_mtim.tv_nsec != k->folder_changed.tv_nsec;
	if (!always && !is_changed && (!has_untraced_process(k) || now - k->scanned_ns < RESCAN_NS))
		return;
	k->scanned_ns = now;
	if (session_read(&s, k->options.folder)) {
		for (size_t i = 0; i < s.traces.count; i++)
			add_trace(k, s.traces.items[i]);
		/* weft does not list a trace before it has metadata, so the folder counts as changed for one more second. */
		struct timespec wall;
		clock_gettime(CLOCK_REALTIME, &wall);
		if (wall.tv_sec - st.st_mtim.tv_sec > 1)
			k->folder_changed = st.st_mtim;
	}
	session_free(&s);
}

/* The line is fitted before the events are written; events after the last clock pair stay in the kernel's rings. */
static void drain_events(struct weft_kernel_recorder *k, bool is_last)
{
	const bool is_flight = k->options.is_flight;
	measure_clock_pair(k);
	if (!fit_clock_line(k))
		return;
	find_traces(k, is_last || is_flight);
	k->descriptor_count = k->mapping_count = 0;
	k->maps_read = 0;
	weft_kernel_perf_drain(k->perf, apply_event, k);
	write_inspections(k);
	if (!is_last && !is_flight)
		inspect_blocked(k);
	for (size_t i = 0; i < k->files.count; i++)
		weft_kernel_packets_flush(k->files.items[i], k->bound_ns);
}

static void *run_recorder(void *data)
{
	struct weft_kernel_recorder *k = data;
	for (;;) {
		uint64_t word;
		weft_kernel_perf_wait(k->perf, k->stop_fd, k->flight_socket, k->options.is_flight ? -1 : DRAIN_MS);
		const bool is_last = read(k->stop_fd, &word, sizeof word) == sizeof word;
		const int requester = k->flight_socket < 0 ? -1 : weft_kernel_flight_accept(k->flight_socket);
		if (k->options.is_flight && !is_last && requester < 0)
			weft_kernel_perf_drain_names(k->perf, apply_event, k);
		else
			drain_events(k, is_last);
		if (requester >= 0)
			close(requester);
		if (is_last)
			return NULL;
	}
}

/* Notes the recording level for the user, and what a higher level needs. */
static void note_level(const struct weft_kernel_recorder *k)
{
	switch (weft_kernel_perf_level(k->perf)) {
	case WEFT_LEVEL_SELF:
		k->options.note("--kernel: this user gets no kernel events: %s; use root, or sysctl "
				"kernel.perf_event_paranoid=2",
		    k->why);
		break;
	case WEFT_LEVEL_OWN:
		if (k->options.max_level == WEFT_LEVEL_ALL)
			k->options.note("--kernel=all: preemptions and wake-ups need root or CAP_PERFMON: %s", k->why);
		break;
	case WEFT_LEVEL_ALL: break;
	}
}

struct weft_kernel_recorder *weft_kernel_recorder_begin(const struct weft_kernel_recorder_options *options, pid_t pid)
{
	struct weft_kernel_recorder *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->options = *options;
	k->has_counter = has_invariant_counter();
	k->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const struct weft_kernel_perf_options asked = {
	    .max_level = options->max_level == WEFT_LEVEL_SELF ? WEFT_LEVEL_ALL : options->max_level,
	    .clock = get_clock_id(k),
	    .is_flight = options->is_flight,
	    .ring_bytes = options->size_bytes};
	k->perf = k->stop_fd < 0 ? NULL : weft_kernel_perf_open(pid, &asked, k->why, sizeof k->why);
	if (!k->perf) {
		if (k->stop_fd >= 0)
			close(k->stop_fd);
		free(k);
		return NULL;
	}
	note_level(k);
	/* Each process needs an open file for each CPU; the command already has its own limit. */
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (int i = 0; i < MAX_CLOCK_PAIRS / 2; i++)
		measure_clock_pair(k);
	k->flight_socket = options->is_flight ? weft_kernel_flight_listen(options->folder) : -1;
	/* Signals are blocked in this thread, because the OS thread that waits for the command handles them. */
	sigset_t every, mask;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &mask);
	const bool runs = pthread_create(&k->thread, NULL, run_recorder, k) == 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (runs)
		return k;
	weft_kernel_flight_close(k->flight_socket, options->folder);
	weft_kernel_perf_close(k->perf);
	close(k->stop_fd);
	free(k);
	return NULL;
}

void weft_kernel_recorder_end(struct weft_kernel_recorder *k)
{
	if (!k)
		return;
	const uint64_t word = 1;
	if (write(k->stop_fd, &word, sizeof word) == sizeof word)
		pthread_join(k->thread, NULL);
	weft_kernel_flight_close(k->flight_socket, k->options.folder);
	for (size_t i = 0; i < k->files.count; i++)
		weft_kernel_packets_close(k->files.items[i]);
	for (size_t i = 0; i < k->processes.count; i++)
		weft_vec_free(&k->processes.items[i].queued);
	for (size_t i = 0; i < k->folders.count; i++)
		free(k->folders.items[i]);
	weft_vec_free(&k->processes);
	weft_vec_free(&k->files);
	weft_vec_free(&k->folders);
	weft_vec_free(&k->lost);
	weft_vec_free(&k->gaps);
	weft_vec_free(&k->os_threads);
	for (size_t i = 0; i < k->texts.texts.count; i++)
		free((char *)(uintptr_t)k->texts.texts.items[i].ptr);
	weft_intern_finish(&k->texts);
	weft_vec_free(&k->inspections);
	weft_idmap_finish(&k->threads);
	weft_idmap_finish(&k->pids);
	if (k->has_line_fit)
		weft_line_fit_finish(&k->line_fit);
	weft_kernel_perf_close(k->perf);
	close(k->stop_fd);
	free(k);
}
