/* kernel.c: records what the kernel says of a command's processes, beside what these record themselves.
 *
 * An OS thread of this command drains the kernel's rings.  What is of a process goes into that process's trace, which makes
 * itself when it is ready: until then a little is kept.  Times become ticks of the processor's counter, as the program's own
 * events have them: MONOTONIC_RAW is never slewed, so it is a line over the counter, and every drain looks at both clocks before
 * it and behind it.
 *
 * A flight is read only when somebody asks for it (flight.h), or at the end: until then this OS thread sleeps.
 * SPDX-License-Identifier: ISC */
#include "apps/cli/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

#include "apps/cli/cli.h"
#include "apps/cli/flight.h"
#include "apps/cli/kernel_file.h"
#include "apps/cli/kernel_perf.h"
#include "apps/cli/kernel_what.h"
#include "base/band.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/intern.h"

enum {
	DRAIN_MS = 50,
	PAIRS = 32,
	TRIES = 12,
	QUEUE = 1 << 18,
	LOOK_NS = 1000000000,
	LONG_NS = 5000000, /* who has been blocked for so long is looked at */
	MOST_LOOKS = 32,   /* of OS threads, in a drain */
	MOST_FILES = 64,   /* likewise of descriptors */
	MOST_MAPPINGS = 64,
	MOST_MAPS = 4, /* processes whose mappings are read, in a drain */
	MOST_TEXTS = 1 << 16
};

/* A reading of one clock between two of the other. */
struct pair {
	uint64_t before, raw_ns, after;
};

struct name {
	uint32_t tid, pid;
	char text[16];
	uint64_t named_ns; /* when it got that */
	uint64_t fault;    /* the newest address that was not there */
	/* Of the program's, by the newest switch: */
	uint64_t switch_ns, off_ns; /* off_ns: since when it has been blocked; 0: it is not */
	uint32_t processor;
	uint8_t call;
	bool is_looked_at; /* since off_ns */
};

/* What an OS thread was seen to wait for, if nothing has switched to it from `off_ns` to `seen_ns`. */
struct look {
	struct kernel_what what;
	uint32_t name;                   /* index of names */
	uint64_t off_ns, seen_ns, on_ns; /* on_ns: it had a processor again then; 0: not yet */
};

/* What a descriptor of a process is, as long as this drain takes. */
struct descriptor {
	uint32_t pid, fd, text;
};

/* Likewise what stands in a process's memory. */
struct place {
	uint32_t pid, text;
	uint64_t begin, end;
};

/* What was said, and when by the trace's clock. */
struct said {
	struct perf_seen seen;
	uint64_t ticks;
	struct {
		uint64_t ticks; /* when it was in that; 0: nobody knows in what */
		uint32_t fd, text;
		bool is_sure;
	} in;
};

/* A process, and where what is said of it goes. */
struct process {
	uint32_t pid;
	struct kernel_file *file; /* NULL: it has no trace yet */
	WEFT_VEC(struct said) waiting;
	uint64_t dropped, dropped_until; /* of those that waited, the oldest; in ticks */
};

/* What was said on a processor before that was overwritten. */
struct gap {
	uint32_t processor;
	uint64_t ticks, raw_ns, events;
};

struct kernel {
	struct kernel_options options;
	struct perf *perf;
	char why[128];
	pthread_t thread;
	int stop;  /* an eventfd */
	int asked; /* where one asks for what a flight has kept; -1: nowhere */
	struct pair pairs[PAIRS];
	size_t pair_count;
	struct weft_band band;
	bool has_band, has_counter; /* has_counter: the recorder has the processor's counter as its clock */
	uint32_t bound_ns;
	uint64_t from_raw_ns, from_ticks; /* the line since the drain before */
	double slope;
	WEFT_VEC(struct process) processes;
	WEFT_VEC(struct kernel_file *) files;
	WEFT_VEC(char *) folders;   /* of traces that are known */
	WEFT_VEC(struct said) lost; /* of whom nobody knows: of every process */
	WEFT_VEC(struct gap) gaps;  /* of a flight, the newest of each processor */
	WEFT_VEC(struct name) names;
	struct weft_idmap threads, pids; /* tid to index of names, pid to index of processes */
	struct weft_intern texts;        /* its own copies; their numbers in traces are one more */
	WEFT_VEC(struct look) looks;
	struct descriptor descriptors[MOST_FILES];
	size_t descriptor_count;
	struct place places[MOST_MAPPINGS];
	size_t place_count;
	int maps_read;           /* in this drain */
	uint32_t next_look;      /* index of names */
	struct timespec changed; /* of the session's folder, when it was read */
	uint64_t looked_ns;
};

/* ---- Clocks ---- */

/* As the recorder chooses: a counter whose speed changes is no clock. */
static bool has_counter(void)
{
#if defined __x86_64__ || defined __i386__
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#else
	return true;
#endif
}

static clockid_t clock_of(const struct kernel *k)
{
	return k->has_counter ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC;
}

/* As the kernel's events have it. */
static uint64_t raw_now(const struct kernel *k)
{
	struct timespec t;
	clock_gettime(clock_of(k), &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The tightest of some. */
static void take_pair(struct kernel *k)
{
	struct pair best = {0, 0, UINT64_MAX};
	for (int i = 0; i < TRIES; i++) {
		struct pair p = {.before = weft__counter()};
		p.raw_ns = raw_now(k);
		p.after = weft__counter();
		if (p.after - p.before < best.after - best.before)
			best = p;
	}
	const size_t first = k->options.is_flight; /* whose oldest is kept, since what is read may be as old */
	if (k->pair_count == PAIRS)
		memmove(k->pairs + first, k->pairs + first + 1, (--k->pair_count - first) * sizeof *k->pairs);
	k->pairs[k->pair_count++] = best;
}

/* The line through what is known of both clocks since a while; what was drained stands between two of its points. */
static bool solve(struct kernel *k)
{
	if (!k->has_counter) { /* the trace has the same clock */
		k->bound_ns = 1;
		return true;
	}
	const struct pair *first = &k->pairs[0], *last = &k->pairs[k->pair_count - 1];
	if (k->has_band)
		weft_band_finish(&k->band);
	/* From 10 MHz to 100 GHz. */
	weft_band_init(
	    &k->band, (int64_t)first->raw_ns, (int64_t)first->before, (struct weft_slope){1, 100}, (struct weft_slope){100, 1});
	k->has_band = true;
	for (size_t i = 0; i < k->pair_count; i++) {
		/* A clock of whole ns: it had shown raw_ns at `after`, and had not shown the next one at `before`. */
		const struct pair *p = &k->pairs[i];
		if (weft_band_above(&k->band, (int64_t)p->raw_ns, (int64_t)p->after) < 0 ||
		    weft_band_below(&k->band, (int64_t)p->raw_ns + 1, (int64_t)p->before) < 0)
			return false;
	}
	if (weft_band_solve(&k->band) < 0)
		return false;
	/* What is drained stands between the pair before and this one, where the line is straight: one multiplication for each.
	 */
	const struct pair *before = k->options.is_flight ? first : last - 1;
	int64_t low, high, least, most;
	const int64_t from = weft_band_at(&k->band, (int64_t)before->raw_ns, &least, &most),
		      to = weft_band_at(&k->band, (int64_t)last->raw_ns, &low, &high);
	k->from_raw_ns = before->raw_ns;
	k->from_ticks = (uint64_t)from;
	k->slope = (double)(to - from) / (double)(last->raw_ns - before->raw_ns);
	k->bound_ns = (uint32_t)((double)weft_max_ns(high - low, most - least) / k->slope / 2 + 1);
	return true;
}

static uint64_t ticks_of(const struct kernel *k, uint64_t raw_ns)
{
	return !k->has_counter ? raw_ns
			       : k->from_ticks + (uint64_t)(int64_t)((double)(int64_t)(raw_ns - k->from_raw_ns) * k->slope);
}

/* ---- Names ---- */

static const struct name *name_of(const struct kernel *k, uint32_t tid)
{
	const uint32_t at = weft_idmap_get(&k->threads, tid);
	return at == WEFT_IDMAP_NONE ? NULL : &k->names.items[at];
}

static void set_name(struct kernel *k, uint32_t tid, uint32_t pid, const char *text)
{
	struct name *slot = (struct name *)(uintptr_t)name_of(k, tid);
	if (!slot) {
		if (!(slot = weft_vec_push(&k->names)))
			return;
		*slot = (struct name){.tid = tid};
		if (!weft_idmap_set(&k->threads, tid, (uint32_t)k->names.count - 1)) {
			k->names.count--;
			return;
		}
	}
	slot->pid = pid ? pid : slot->pid;
	if (*text)
		snprintf(slot->text, sizeof slot->text, "%s", text);
}

/* Of an OS thread that nothing was said of: as it is called now, if it is still there. */
static const struct name *stranger(struct kernel *k, uint32_t tid)
{
	const struct name *known = name_of(k, tid);
	if (known && known->text[0])
		return known;
	/* It has the name of its process where that was told on another processor. */
	const struct name *process = known && known->pid ? name_of(k, known->pid) : NULL;
	if (process && process->text[0])
		return process;
	char path[32], text[16] = "";
	snprintf(path, sizeof path, "/proc/%u/comm", tid);
	FILE *file = fopen(path, "re");
	if (file && fgets(text, sizeof text, file))
		text[strcspn(text, "\n")] = 0;
	if (file)
		fclose(file);
	set_name(k, tid, 0, *text ? text : "?");
	return name_of(k, tid);
}

/* ---- Where it goes ---- */

static struct process *process_of(struct kernel *k, uint32_t pid)
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

static void tell_name(struct kernel *k, struct kernel_file *file, const struct said *said, uint32_t tid)
{
	const uint32_t processor = said->seen.processor;
	const struct name *name = tid && kernel_file_needs_name(file, processor, tid) ? stranger(k, tid) : NULL;
	if (name)
		kernel_file_write(file, processor, said->ticks,
		    &(struct weft_wire_kernel){.op = WEFT_KERNEL_THREAD,
			.tid = tid,
			.other = name->pid,
			.text = name->text,
			.text_bytes = (uint32_t)strlen(name->text)});
}

/* The number of a text; 0: there is none. */
static uint32_t number_of(struct kernel *k, const char *text)
{
	if (!*text)
		return 0;
	const uint32_t before = (uint32_t)k->texts.texts.count;
	/* A new one is copied, an old one is found: which it is shows afterwards. */
	char *copy = before < MOST_TEXTS ? strdup(text) : NULL;
	const uint32_t number =
	    copy ? weft_intern(&k->texts, (struct weft_str){copy, (uint32_t)strlen(copy)}) : WEFT_INTERN_FAILED;
	if (number == WEFT_INTERN_FAILED || number < before)
		free(copy);
	return number == WEFT_INTERN_FAILED ? 0 : number + 1;
}

static void tell_text(struct kernel *k, struct kernel_file *file, uint32_t processor, uint64_t ticks, uint32_t number)
{
	if (!number || !kernel_file_needs_text(file, processor, number))
		return;
	const struct weft_str text = k->texts.texts.items[number - 1];
	kernel_file_write(file, processor, ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_TEXT, .number = number, .text = text.ptr, .text_bytes = text.len});
}

static void write_spent(struct kernel *k, struct kernel_file *file, const struct said *said)
{
	const struct perf_seen *s = &said->seen;
	const uint32_t number = number_of(k, s->name);
	tell_text(k, file, s->processor, said->ticks, number);
	kernel_file_write(file, s->processor, said->ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_SPENT,
		.tid = s->tid,
		.why = s->why,
		.number = number,
		.raw_ns = s->number,
		.then = said->ticks});
}

static void write_in(struct kernel *k, struct kernel_file *file, const struct said *said)
{
	const struct perf_seen *s = &said->seen;
	tell_text(k, file, s->processor, said->ticks, said->in.text);
	kernel_file_write(file, s->processor, said->ticks,
	    &(struct weft_wire_kernel){.op = WEFT_KERNEL_IN,
		.tid = s->tid,
		.call = s->call,
		.why = said->in.is_sure,
		.other = said->in.fd,
		.number = said->in.text,
		.then = said->in.ticks});
}

static void write_said(struct kernel *k, struct kernel_file *file, const struct said *said)
{
	const struct perf_seen *s = &said->seen;
	static const uint8_t ops[] = {[PERF_ON] = WEFT_KERNEL_ON,
	    [PERF_OFF] = WEFT_KERNEL_OFF,
	    [PERF_TAKEN] = WEFT_KERNEL_TAKEN,
	    [PERF_WAKE] = WEFT_KERNEL_WAKE,
	    [PERF_FAULT] = WEFT_KERNEL_FAULT};
	kernel_file_begin(file, s->processor, said->ticks, s->time_ns);
	tell_name(k, file, said, s->tid);
	if (s->what == PERF_SPENT) {
		write_spent(k, file, said);
		return;
	}
	if (said->in.is_sure) {
		write_in(k, file, said);
		return;
	}
	if (s->what == PERF_TAKEN || s->what == PERF_WAKE)
		tell_name(k, file, said, s->other);
	kernel_file_write(file, s->processor, said->ticks,
	    &(struct weft_wire_kernel){.op = ops[s->what],
		.tid = s->tid,
		.other = s->what == PERF_FAULT ? (uint32_t)(s->number >> 12) : s->other,
		.why = s->why,
		.call = s->call});
	if (said->in.ticks)
		write_in(k, file, said);
}

static void give(struct kernel *k, uint32_t pid, const struct said *said)
{
	struct process *p = process_of(k, pid);
	if (!p)
		return;
	if (p->file) {
		write_said(k, p->file, said);
		return;
	}
	if (p->waiting.count == QUEUE) {
		p->dropped += QUEUE / 2;
		p->dropped_until = p->waiting.items[QUEUE / 2 - 1].ticks;
		memmove(p->waiting.items, p->waiting.items + QUEUE / 2, QUEUE / 2 * sizeof *p->waiting.items);
		p->waiting.count = QUEUE / 2;
	}
	struct said *slot = weft_vec_push(&p->waiting);
	if (slot)
		*slot = *said;
}

/* ---- What it waits for ---- */

/* What a descriptor is now; each is asked for once in a drain. */
static uint32_t descriptor_of(struct kernel *k, uint32_t pid, uint32_t fd)
{
	char text[KERNEL_WHAT] = "";
	for (size_t i = 0; i < k->descriptor_count; i++)
		if (k->descriptors[i].pid == pid && k->descriptors[i].fd == fd)
			return k->descriptors[i].text;
	if (k->descriptor_count == MOST_FILES)
		return 0;
	kernel_what_fd(pid, fd, false, text);
	const uint32_t number = number_of(k, text);
	k->descriptors[k->descriptor_count++] = (struct descriptor){pid, fd, number};
	return number;
}

/* The file of which it waits for a page. */
static uint32_t place_of(struct kernel *k, uint32_t pid, uint64_t address)
{
	struct kernel_mapping found;
	for (size_t i = 0; i < k->place_count; i++)
		if (k->places[i].pid == pid && k->places[i].begin <= address && address < k->places[i].end)
			return k->places[i].text;
	if (k->maps_read == MOST_MAPS || k->place_count == MOST_MAPPINGS)
		return 0;
	k->maps_read++;
	if (!kernel_what_mapping(pid, address, &found))
		return 0;
	const uint32_t number = number_of(k, found.text);
	k->places[k->place_count++] = (struct place){pid, number, found.begin, found.end};
	return number;
}

/* Keeps in mind who is blocked since when.  Processors are drained one after the other: an older switch may come later. */
static void note_switch(struct kernel *k, const struct perf_seen *s)
{
	const uint32_t at = weft_idmap_get(&k->threads, s->tid);
	struct name *name = at == WEFT_IDMAP_NONE ? NULL : &k->names.items[at];
	if (name && s->what == PERF_FAULT)
		name->fault = s->number;
	if (!name || (s->what != PERF_ON && s->what != PERF_OFF && s->what != PERF_TAKEN))
		return;
	for (size_t i = 0; s->what == PERF_ON && i < k->looks.count; i++) {
		struct look *look = &k->looks.items[i];
		if (look->name == at && s->time_ns > look->off_ns && (!look->on_ns || s->time_ns < look->on_ns))
			look->on_ns = s->time_ns;
	}
	if (s->time_ns < name->switch_ns)
		return;
	name->switch_ns = s->time_ns;
	name->off_ns = s->what == PERF_OFF && s->why != WEFT_OFF_PREEMPTED ? s->time_ns : 0;
	name->processor = s->processor;
	name->call = s->call;
	name->is_looked_at = false;
}

/* Of those that were looked at after the last drain it is known now whether they were blocked all the time. */
static void tell_looks(struct kernel *k)
{
	for (size_t i = 0; i < k->looks.count; i++) {
		const struct look *look = &k->looks.items[i];
		const struct name *name = &k->names.items[look->name];
		if (look->on_ns && look->on_ns <= look->seen_ns)
			continue;
		struct said said = {.ticks = ticks_of(k, look->seen_ns),
		    .in = {.fd = look->what.fd, .text = number_of(k, look->what.text), .is_sure = true}};
		said.in.ticks = said.ticks;
		said.seen = (struct perf_seen){.time_ns = look->seen_ns,
		    .pid = name->pid,
		    .tid = name->tid,
		    .processor = name->processor,
		    .call = look->what.call};
		give(k, name->pid, &said);
	}
	k->looks.count = 0;
}

/* What these wait for has no name, or is told better by the program. */
static bool is_plain(uint8_t call)
{
	return call == WEFT_CALL_EPOLL_WAIT || call == WEFT_CALL_EPOLL_PWAIT || call == WEFT_CALL_EPOLL_PWAIT2 ||
	       call == WEFT_CALL_FUTEX || call == WEFT_CALL_NANOSLEEP || call == WEFT_CALL_CLOCK_NANOSLEEP;
}

/* Looks at those who have been blocked for a while. */
static void look_around(struct kernel *k)
{
	const uint64_t now_ns = raw_now(k);
	const size_t count = k->names.count;
	int left = MOST_LOOKS;
	for (size_t i = 0; i < count && left > 0; i++) {
		const uint32_t at = (uint32_t)((k->next_look + i) % count);
		struct name *name = &k->names.items[at];
		struct look look = {.name = at, .off_ns = name->off_ns};
		if (!name->pid || !name->off_ns || name->is_looked_at || now_ns - name->off_ns < LONG_NS || is_plain(name->call))
			continue;
		name->is_looked_at = true;
		if (--left == 0)
			k->next_look = at;
		if (!kernel_what_now(name->pid, name->tid, &look.what))
			continue;
		look.seen_ns = raw_now(k);
		struct look *slot = weft_vec_push(&k->looks);
		if (slot)
			*slot = look;
	}
}

/* What is older than the trace itself is not missed. */
static void tell_gap(struct kernel_file *file, const struct gap *gap)
{
	if (gap->ticks > kernel_file_begun(file))
		kernel_file_restart(file, gap->processor, gap->ticks, gap->raw_ns, gap->events);
}

static void take_gap(struct kernel *k, const struct perf_seen *s)
{
	const struct gap gap = {s->processor, ticks_of(k, s->time_ns), s->time_ns, s->number};
	size_t i = 0;
	while (i < k->gaps.count && k->gaps.items[i].processor != gap.processor)
		i++;
	struct gap *slot = i < k->gaps.count ? &k->gaps.items[i] : weft_vec_push(&k->gaps);
	if (slot)
		*slot = gap;
	for (i = 0; i < k->files.count; i++)
		tell_gap(k->files.items[i], &gap);
	for (i = 0; i < k->processes.count; i++) {
		struct process *p = &k->processes.items[i];
		size_t kept = 0;
		for (size_t n = 0; n < p->waiting.count; n++)
			if (p->waiting.items[n].seen.processor != gap.processor)
				p->waiting.items[kept++] = p->waiting.items[n];
		p->waiting.count = kept;
	}
}

static void take(void *ctx, const struct perf_seen *s)
{
	struct kernel *k = ctx;
	if (s->what == PERF_LOST) {
		for (size_t i = 0; i < k->files.count; i++)
			kernel_file_lost(k->files.items[i], s->processor, s->number);
		struct said *lost = weft_vec_push(&k->lost);
		if (lost)
			*lost = (struct said){.seen = *s, .ticks = ticks_of(k, s->time_ns)};
		return;
	}
	if (s->what == PERF_GAP) {
		take_gap(k, s);
		return;
	}
	if (s->what == PERF_NAME) {
		/* Processors are drained one after the other: an older name may come later. */
		const struct name *known = name_of(k, s->tid), *parent = s->other ? name_of(k, s->other) : NULL;
		if (known && known->named_ns > s->time_ns)
			return;
		char text[16] = "";
		if (parent)
			memcpy(text, parent->text, sizeof text);
		set_name(k, s->tid, s->pid, s->other ? text : s->name);
		if (name_of(k, s->tid))
			((struct name *)(uintptr_t)name_of(k, s->tid))->named_ns = s->time_ns;
		if (!s->other)
			for (size_t i = 0; i < k->files.count; i++)
				kernel_file_forget_name(k->files.items[i], s->tid);
		return;
	}
	uint32_t pid = s->pid;
	if (s->tid == 0 || s->tid == UINT32_MAX || pid == UINT32_MAX)
		return;                                      /* who ends has no number any more */
	if (s->what == PERF_WAKE || s->what == PERF_SPENT) { /* of everybody: those of others are dropped */
		const struct name *name = name_of(k, s->tid);
		if (!name || !name->pid)
			return;
		pid = name->pid;
	} else {
		const struct name *name = name_of(k, s->tid);
		if (!name || name->pid != pid)
			set_name(k, s->tid, pid, "");
	}
	if (s->what == PERF_TAKEN && s->other && s->name[0] && !name_of(k, s->other))
		set_name(k, s->other, 0, s->name);
	note_switch(k, s);
	struct said said = {.seen = *s, .ticks = ticks_of(k, s->time_ns)};
	if (s->what == PERF_OFF && s->has_argument && kernel_what_has_fd(s->call)) {
		said.in.ticks = said.ticks;
		said.in.fd = (uint32_t)s->number;
		said.in.text = descriptor_of(k, pid, said.in.fd);
	} else if (s->what == PERF_OFF && s->call == WEFT_CALL_FAULT) {
		const struct name *name = name_of(k, s->tid);
		said.in.text = name && name->fault ? place_of(k, pid, name->fault) : 0;
		said.in.ticks = said.in.text ? said.ticks : 0;
		said.in.fd = WEFT_KERNEL_NO_FD;
	}
	give(k, pid, &said);
}

/* A trace that was not there before: what is said of its process goes there from now on. */
static void add_trace(struct kernel *k, const char *path)
{
	for (size_t i = 0; i < k->folders.count; i++)
		if (!strcmp(k->folders.items[i], path))
			return;
	struct kernel_file_options options = {.level = perf_level(k->perf),
	    .why = k->why,
	    .size_bytes = k->options.is_flight ? 0 : k->options.size_bytes,
	    .grows = k->options.is_flight || k->options.grows,
	    .has_counter = k->has_counter};
	struct kernel_file *file;
	uint32_t pid = 0;
	const int opened = kernel_file_open(&file, path, &options, &pid);
	if (!opened) /* not yet */
		return;
	char **folder = weft_vec_push(&k->folders);
	if (folder && !(*folder = strdup(path)))
		k->folders.count--;
	if (opened < 0)
		return;
	struct kernel_file **slot = weft_vec_push(&k->files);
	struct process *p = slot ? process_of(k, pid) : NULL;
	if (slot)
		*slot = file;
	else
		kernel_file_close(file);
	if (!p)
		return;
	p->file = file;
	/* Also where the kernel says nothing, a trace says so. */
	const struct pair *newest = &k->pairs[k->pair_count - 1];
	if (perf_level(k->perf) == WEFT_LEVEL_SELF)
		kernel_file_begin(file, 0, k->has_counter ? newest->before : newest->raw_ns, newest->raw_ns);
	for (size_t i = 0; i < k->gaps.count; i++)
		tell_gap(file, &k->gaps.items[i]);
	for (size_t i = 0; i < p->waiting.count; i++)
		write_said(k, file, &p->waiting.items[i]);
	weft_vec_free(&p->waiting);
	/* What is older than the trace itself is not missed. */
	const uint64_t begun = kernel_file_begun(file);
	if (p->dropped && p->dropped_until >= begun)
		kernel_file_lost(file, 0, p->dropped);
	for (size_t i = 0; i < k->lost.count; i++)
		if (k->lost.items[i].ticks >= begun)
			kernel_file_lost(file, k->lost.items[i].seen.processor, k->lost.items[i].seen.number);
}

static bool is_waiting(const struct kernel *k)
{
	for (size_t i = 0; i < k->processes.count; i++)
		if (!k->processes.items[i].file)
			return true;
	return false;
}

/* Looks for new traces: when the folder has changed, and, since metadata come a little later, each second that somebody waits. */
static void find_traces(struct kernel *k, bool always)
{
	struct stat st;
	struct session s;
	const uint64_t now = raw_now(k);
	if (stat(k->options.folder, &st))
		return;
	const bool is_changed = st.st_mtim.tv_sec != k->changed.tv_sec || st.st_mtim.tv_nsec != k->changed.tv_nsec;
	if (!always && !is_changed && (!is_waiting(k) || now - k->looked_ns < LOOK_NS))
		return;
	k->looked_ns = now;
	if (session_read(&s, k->options.folder)) {
		for (size_t i = 0; i < s.traces.count; i++)
			add_trace(k, s.traces.items[i]);
		/* A trace without its metadata is not seen: the folder stays a changed one for a second. */
		struct timespec wall;
		clock_gettime(CLOCK_REALTIME, &wall);
		if (wall.tv_sec - st.st_mtim.tv_sec > 1)
			k->changed = st.st_mtim;
	}
	session_free(&s);
}

/* The line must be known before what is drained is written: what comes after the last pair waits in the kernel's rings. */
static void work(struct kernel *k, bool is_last)
{
	const bool is_flight = k->options.is_flight;
	take_pair(k);
	if (!solve(k))
		return;
	find_traces(k, is_last || is_flight);
	k->descriptor_count = k->place_count = 0;
	k->maps_read = 0;
	perf_drain(k->perf, take, k);
	tell_looks(k);
	if (!is_last && !is_flight)
		look_around(k);
	for (size_t i = 0; i < k->files.count; i++)
		kernel_file_flush(k->files.items[i], k->bound_ns);
}

static void *run(void *data)
{
	struct kernel *k = data;
	for (;;) {
		uint64_t word;
		perf_wait(k->perf, k->stop, k->asked, k->options.is_flight ? -1 : DRAIN_MS);
		const bool is_last = read(k->stop, &word, sizeof word) == sizeof word;
		const int who = k->asked < 0 ? -1 : flight_asked(k->asked);
		if (k->options.is_flight && !is_last && who < 0)
			perf_drain_names(k->perf, take, k);
		else
			work(k, is_last);
		if (who >= 0)
			close(who);
		if (is_last)
			return NULL;
	}
}

/* What there is, and what would have to be done to have more. */
static void tell_level(const struct kernel *k)
{
	switch (perf_level(k->perf)) {
	case WEFT_LEVEL_SELF:
		cli_note("record: --kernel: the kernel says nothing to this user: %s; as root, or after sysctl "
			 "kernel.perf_event_paranoid=2, it "
			 "does",
		    k->why);
		break;
	case WEFT_LEVEL_OWN:
		if (k->options.most == WEFT_LEVEL_ALL)
			cli_note(
			    "record: --kernel=all: who preempts and who wakes is told to root alone, or with CAP_PERFMON: %s",
			    k->why);
		break;
	case WEFT_LEVEL_ALL: break;
	}
}

struct kernel *kernel_begin(const struct kernel_options *options, pid_t pid)
{
	struct kernel *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	k->options = *options;
	k->has_counter = has_counter();
	k->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const struct perf_options asked = {.most = options->most == WEFT_LEVEL_SELF ? WEFT_LEVEL_ALL : options->most,
	    .clock = clock_of(k),
	    .is_flight = options->is_flight,
	    .ring_bytes = options->size_bytes};
	k->perf = k->stop < 0 ? NULL : perf_open(pid, &asked, k->why, sizeof k->why);
	if (!k->perf) {
		if (k->stop >= 0)
			close(k->stop);
		free(k);
		return NULL;
	}
	tell_level(k);
	/* Each process has a file for each processor; the command has its own limit already. */
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (int i = 0; i < PAIRS / 2; i++)
		take_pair(k);
	k->asked = options->is_flight ? flight_listen(options->folder) : -1;
	/* Signals are for the OS thread that waits for the command. */
	sigset_t every, mask;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &mask);
	const bool runs = pthread_create(&k->thread, NULL, run, k) == 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (runs)
		return k;
	flight_end(k->asked, options->folder);
	perf_close(k->perf);
	close(k->stop);
	free(k);
	return NULL;
}

void kernel_end(struct kernel *k)
{
	if (!k)
		return;
	const uint64_t word = 1;
	if (write(k->stop, &word, sizeof word) == sizeof word)
		pthread_join(k->thread, NULL);
	flight_end(k->asked, k->options.folder);
	for (size_t i = 0; i < k->files.count; i++)
		kernel_file_close(k->files.items[i]);
	for (size_t i = 0; i < k->processes.count; i++)
		weft_vec_free(&k->processes.items[i].waiting);
	for (size_t i = 0; i < k->folders.count; i++)
		free(k->folders.items[i]);
	weft_vec_free(&k->processes);
	weft_vec_free(&k->files);
	weft_vec_free(&k->folders);
	weft_vec_free(&k->lost);
	weft_vec_free(&k->gaps);
	weft_vec_free(&k->names);
	for (size_t i = 0; i < k->texts.texts.count; i++)
		free((char *)(uintptr_t)k->texts.texts.items[i].ptr);
	weft_intern_finish(&k->texts);
	weft_vec_free(&k->looks);
	weft_idmap_finish(&k->threads);
	weft_idmap_finish(&k->pids);
	if (k->has_band)
		weft_band_finish(&k->band);
	perf_close(k->perf);
	close(k->stop);
	free(k);
}
