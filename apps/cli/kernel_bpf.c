/* kernel_bpf.c: see kernel_bpf.h.
 *
 * The kernel describes its own types (BTF): where the fields are that the programs read, and which tracepoints it has.  The
 * programs are assembled here, for that kernel.  One knows the program's processes by a table, as forks and ends change it.
 * SPDX-License-Identifier: ISC */
#include "apps/cli/kernel_bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"

/* Where an OS thread's registers have its system call and the first argument of that. */
#if defined __x86_64__
#define CALL_REGISTER "orig_ax"
#define ARGUMENT_REGISTER "di"
#elif defined __aarch64__
#define CALL_REGISTER "syscallno"
#define ARGUMENT_REGISTER "orig_x0"
#else
#define CALL_REGISTER ""
#define ARGUMENT_REGISTER ""
#endif

enum { MOST_PROCESSES = 1 << 14, SOFTIRQS = 16, HAS_STATE = 5 /* arguments of sched_switch, from 5.18 on */ };

/* Of linux/bpf.h, which may be older than the kernel. */
enum { TASK_PT_REGS = 175 };

/* What the kernel calls its fields: offsets. */
struct fields {
	unsigned pid, tgid, comm, call, argument;
	unsigned found;
};

enum point { SWITCH, FORK, EXEC, FREE, SOFTIRQ_BEGIN, SOFTIRQ_END, POINTS };

static const char *const points[POINTS] = {[SWITCH] = "btf_trace_sched_switch",
    [FORK] = "btf_trace_sched_process_fork",
    [EXEC] = "btf_trace_sched_process_exec",
    [FREE] = "btf_trace_sched_process_free",
    [SOFTIRQ_BEGIN] = "btf_trace_softirq_entry",
    [SOFTIRQ_END] = "btf_trace_softirq_exit"};

struct kernel_bpf {
	struct fields fields;
	uint32_t ids[POINTS]; /* of types; 0: there is none */
	unsigned switch_arguments;
	int processes, softirqs, events; /* maps */
	int programs[POINTS], links[POINTS];
};

/* ---- What the kernel says of its types ---- */

struct type {
	uint32_t name, info, size_or_type;
};

struct member {
	uint32_t name, type, offset;
};

enum { STRUCT = 4, FUNC_PROTO = 13 };

static size_t bytes_behind(const struct type *t)
{
	const size_t count = t->info & 0xffff;
	switch (t->info >> 24 & 0x1f) {
	case 1:  /* int */
	case 14: /* variable */
	case 17: /* tag of a declaration */ return 4;
	case 3: /* array */ return 12;
	case STRUCT:
	case 5:  /* union */
	case 15: /* section */
	case 19: /* enum of 64 bits */ return 12 * count;
	case 6: /* enum */
	case FUNC_PROTO: return 8 * count;
	default: return 0;
	}
}

static void take_member(struct fields *f, const char *of, const char *name, unsigned offset)
{
	const struct {
		const char *of, *name;
		unsigned *to;
	} wanted[] = {{"task_struct", "pid", &f->pid}, {"task_struct", "tgid", &f->tgid}, {"task_struct", "comm", &f->comm},
	    {"pt_regs", CALL_REGISTER, &f->call}, {"pt_regs", ARGUMENT_REGISTER, &f->argument}};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (!strcmp(of, wanted[i].of) && !strcmp(name, wanted[i].name)) {
			*wanted[i].to = offset;
			f->found |= 1u << i;
		}
}

/* Reads types and their names; false: what is needed is not among them. */
static bool find_types(struct kernel_bpf *b, const unsigned char *types, size_t size, const char *names, size_t names_size)
{
	WEFT_VEC(const unsigned char *) all = {0};
	bool whole = weft_vec_push(&all) != NULL; /* number 0 is void */
	for (size_t at = 0; whole && at + sizeof(struct type) <= size;) {
		struct type t;
		memcpy(&t, types + at, sizeof t);
		const unsigned char **slot = weft_vec_push(&all);
		whole = slot && t.name < names_size && at + sizeof t + bytes_behind(&t) <= size;
		if (!whole)
			break;
		*slot = types + at;
		const char *name = names + t.name;
		const uint32_t kind = t.info >> 24 & 0x1f;
		for (int i = 0; kind == 8 /* typedef */ && i < POINTS; i++)
			if (!strcmp(name, points[i]))
				b->ids[i] = (uint32_t)all.count - 1;
		const bool is_wanted = kind == STRUCT && (!strcmp(name, "task_struct") || !strcmp(name, "pt_regs"));
		for (uint32_t i = 0; is_wanted && i < (t.info & 0xffff); i++) {
			struct member m;
			memcpy(&m, types + at + sizeof t + i * sizeof m, sizeof m);
			if (m.name < names_size)
				take_member(&b->fields, name, names + m.name, (m.offset & 0xffffff) / 8);
		}
		at += sizeof t + bytes_behind(&t);
	}
	/* A pointer to a function: how many arguments it has, the first of which is not told to programs. */
	uint32_t number = b->ids[SWITCH];
	for (int step = 0; whole && step < 3 && number && number < all.count; step++) {
		struct type t;
		memcpy(&t, all.items[number], sizeof t);
		number = t.size_or_type;
		if ((t.info >> 24 & 0x1f) == FUNC_PROTO)
			b->switch_arguments = t.info & 0xffff;
	}
	weft_vec_free(&all);
	return whole;
}

static bool read_types(struct kernel_bpf *b)
{
	struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t size, types_at, types_size, names_at, names_size;
	} h;
	enum { MAGIC = 0xeb9f, MOST = 64 << 20 };
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "re");
	unsigned char *all = NULL;
	size_t size = 0;
	bool whole = file && fread(&h, sizeof h, 1, file) == 1 && h.magic == MAGIC && h.types_size <= MOST &&
		     h.names_size <= MOST && h.size <= MOST && h.types_at <= MOST && h.names_at <= MOST && h.names_size;
	if (whole) {
		const size_t types_end = (size_t)h.types_at + h.types_size, names_end = (size_t)h.names_at + h.names_size;
		size = types_end > names_end ? types_end : names_end;
		all = malloc(size);
		whole = all && fseek(file, (long)h.size, SEEK_SET) == 0 && fread(all, 1, size, file) == size &&
			!all[names_end - 1] &&
			find_types(b, all + h.types_at, h.types_size, (const char *)all + h.names_at, h.names_size);
	}
	free(all);
	if (file)
		fclose(file);
	enum { NEEDED = 0x1f };
	return whole && b->fields.found == NEEDED && b->switch_arguments >= HAS_STATE && b->ids[SWITCH] && b->ids[FORK] &&
	       b->ids[EXEC] && b->ids[FREE];
}

/* ---- Programs ---- */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

struct code {
	struct bpf_insn steps[160];
	size_t count;
};

static void put(struct code *c, unsigned code, unsigned to, unsigned from, int offset, int32_t value)
{
	c->steps[c->count++] = (struct bpf_insn){
	    .code = (uint8_t)code, .dst_reg = to & 15, .src_reg = from & 15, .off = (int16_t)offset, .imm = value};
}

static void move(struct code *c, unsigned to, unsigned from)
{
	put(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct code *c, unsigned to, int32_t value)
{
	put(c, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

static void load(struct code *c, unsigned size, unsigned to, unsigned from, unsigned offset)
{
	put(c, BPF_LDX | BPF_MEM | size, to, from, (int)offset, 0);
}

static void store(struct code *c, unsigned size, unsigned to, int offset, unsigned from)
{
	put(c, BPF_STX | BPF_MEM | size, to, from, offset, 0);
}

static void load_map(struct code *c, unsigned to, int map)
{
	put(c, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
	put(c, 0, 0, 0, 0, 0);
}

static void call(struct code *c, int function)
{
	put(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* A jump that goes where land() is told of it. */
static size_t jump(struct code *c, unsigned condition, unsigned left, int32_t right)
{
	put(c, BPF_JMP | condition | BPF_K, left, 0, 0, right);
	return c->count - 1;
}

static void land(struct code *c, size_t from)
{
	c->steps[from].off = (int16_t)(c->count - from - 1);
}

static void leave(struct code *c)
{
	set(c, R0, 0);
	put(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

enum { KEY = -64, VALUE = -72, TOLD = -56 };

#define AT(field) (TOLD + (int)offsetof(struct kernel_bpf_told, field))

/* R0: what the map has for the key on the stack, or 0. */
static void look_up(struct code *c, int map)
{
	load_map(c, R1, map);
	move(c, R2, FP);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY);
	call(c, BPF_FUNC_map_lookup_elem);
}

/* R0: whether the OS thread in that register is the program's: not 0. */
static void is_ours(struct code *c, const struct kernel_bpf *b, unsigned task)
{
	load(c, BPF_W, R1, task, b->fields.tgid);
	store(c, BPF_W, FP, KEY, R1);
	look_up(c, b->processes);
	const size_t none = jump(c, BPF_JEQ, R0, 0);
	load(c, BPF_W, R0, R0, 0);
	land(c, none);
}

static void clear_told(struct code *c, enum kernel_bpf_what what)
{
	for (int at = TOLD; at < 0; at += 8)
		put(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, at, 0);
	put(c, BPF_ST | BPF_MEM | BPF_W, FP, 0, AT(what), (int32_t)what);
}

/* R6 is the program's context. */
static void tell(struct code *c, const struct kernel_bpf *b)
{
	move(c, R1, R6);
	load_map(c, R2, b->events);
	put(c, BPF_ALU | BPF_MOV | BPF_K, R3, 0, 0, -1); /* this processor's */
	move(c, R4, FP);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, R4, 0, 0, TOLD);
	set(c, R5, KERNEL_BPF_BYTES);
	call(c, BPF_FUNC_perf_event_output);
}

/* Of one that goes off: why, or who comes. */
static void put_off(struct code *c, const struct kernel_bpf *b)
{
	load(c, BPF_W, R1, R7, b->fields.pid);
	store(c, BPF_W, FP, AT(off_tid), R1);
	load(c, BPF_W, R1, R7, b->fields.tgid);
	store(c, BPF_W, FP, AT(off_pid), R1);
	load(c, BPF_DW, R1, R6, 0); /* preempted */
	const size_t is_preempted = jump(c, BPF_JNE, R1, 0);
	load(c, BPF_DW, R1, R6, 24);
	put(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, 0xff);
	store(c, BPF_W, FP, AT(state), R1);
	const size_t goes_on = jump(c, BPF_JEQ, R1, 0);
	move(c, R1, R7);
	call(c, TASK_PT_REGS);
	put(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, AT(call), -2);
#if defined __x86_64__
	/* The code segment, where the processor puts it behind the call's number. */
	enum { CS_BEHIND = 16, CS_OF_32_BITS = 0x23 };
	load(c, BPF_H, R1, R0, b->fields.call + CS_BEHIND);
	const size_t is_32 = jump(c, BPF_JEQ, R1, CS_OF_32_BITS);
	load(c, BPF_DW, R1, R0, b->fields.call);
#else
	load(c, BPF_W, R1, R0, b->fields.call);
	put(c, BPF_ALU64 | BPF_LSH | BPF_K, R1, 0, 0, 32);
	put(c, BPF_ALU64 | BPF_ARSH | BPF_K, R1, 0, 0, 32);
#endif
	store(c, BPF_DW, FP, AT(call), R1);
	load(c, BPF_DW, R1, R0, b->fields.argument);
	store(c, BPF_DW, FP, AT(argument), R1);
#if defined __x86_64__
	land(c, is_32);
#endif
	const size_t told = jump(c, BPF_JA, 0, 0);
	land(c, is_preempted);
	land(c, goes_on);
	load(c, BPF_W, R1, R8, b->fields.pid);
	store(c, BPF_W, FP, AT(next), R1);
	for (unsigned i = 0; i < 16; i += 8) {
		load(c, BPF_DW, R1, R8, b->fields.comm + i);
		store(c, BPF_DW, FP, AT(name) + (int)i, R1);
	}
	land(c, told);
}

/* sched_switch(preempted, R7: who goes, R8: who comes, state).  Only of who goes: kernels leave out switches away from others. */
static void put_switch(struct code *c, const struct kernel_bpf *b)
{
	move(c, R6, R1);
	load(c, BPF_DW, R7, R6, 8);
	load(c, BPF_DW, R8, R6, 16);
	is_ours(c, b, R7);
	const size_t goes = jump(c, BPF_JNE, R0, 0);
	leave(c);
	land(c, goes);
	clear_told(c, KERNEL_BPF_SWITCH);
	put_off(c, b);
	tell(c, b);
	leave(c);
}

/* The key on the stack gets the number on the stack. */
static void put_update(struct code *c, const struct kernel_bpf *b)
{
	load_map(c, R1, b->processes);
	move(c, R2, FP);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY);
	move(c, R3, FP);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, R3, 0, 0, VALUE);
	set(c, R4, BPF_ANY);
	call(c, BPF_FUNC_map_update_elem);
}

/* sched_process_fork(parent, child): a process of a process of the program's.  sched_process_exec(task): the first one begins. */
static void put_process(struct code *c, const struct kernel_bpf *b, bool is_fork)
{
	load(c, BPF_DW, R7, R1, 0);
	if (is_fork)
		load(c, BPF_DW, R8, R1, 8);
	load(c, BPF_W, R1, R7, b->fields.tgid);
	store(c, BPF_W, FP, KEY, R1);
	look_up(c, b->processes);
	const size_t is_strange = jump(c, BPF_JEQ, R0, 0);
	put(c, BPF_ST | BPF_MEM | BPF_W, FP, 0, VALUE, 1);
	if (is_fork) {
		load(c, BPF_W, R1, R0, 0);
		store(c, BPF_W, FP, VALUE, R1);
		load(c, BPF_W, R1, R8, b->fields.tgid);
		store(c, BPF_W, FP, KEY, R1);
	}
	put_update(c, b);
	land(c, is_strange);
	leave(c);
}

/* sched_process_free(task): the first OS thread of a process is the last to go. */
static void put_free(struct code *c, const struct kernel_bpf *b)
{
	load(c, BPF_DW, R7, R1, 0);
	load(c, BPF_W, R1, R7, b->fields.tgid);
	load(c, BPF_W, R2, R7, b->fields.pid);
	put(c, BPF_JMP | BPF_JEQ | BPF_X, R1, R2, 2, 0);
	leave(c);
	store(c, BPF_W, FP, KEY, R1);
	load_map(c, R1, b->processes);
	move(c, R2, FP);
	put(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY);
	call(c, BPF_FUNC_map_delete_elem);
	leave(c);
}

/* What a processor has of each softirq. */
struct spent {
	uint64_t begin_ns, sum_ns;
	uint64_t who; /* that is of: tid and pid */
};

/* softirq_entry(number) and softirq_exit(number) while R7, tid and pid, has the processor.  R9: what there is of it. */
static void put_softirq(struct code *c, const struct kernel_bpf *b, bool is_end)
{
	move(c, R6, R1);
	call(c, BPF_FUNC_get_current_pid_tgid);
	move(c, R7, R0);
	move(c, R1, R7);
	put(c, BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 32);
	store(c, BPF_W, FP, KEY, R1);
	look_up(c, b->processes);
	const size_t is_strange = jump(c, BPF_JEQ, R0, 0);
	load(c, BPF_DW, R8, R6, 0);
	store(c, BPF_W, FP, KEY, R8);
	look_up(c, b->softirqs);
	const size_t is_unknown = jump(c, BPF_JEQ, R0, 0);
	move(c, R9, R0);
	call(c, BPF_FUNC_ktime_get_ns);
	size_t is_new = 0, is_short = 0;
	if (!is_end) {
		store(c, BPF_DW, R9, offsetof(struct spent, begin_ns), R0);
	} else {
		load(c, BPF_DW, R1, R9, offsetof(struct spent, begin_ns));
		is_new = jump(c, BPF_JEQ, R1, 0);
		put(c, BPF_ST | BPF_MEM | BPF_DW, R9, 0, offsetof(struct spent, begin_ns), 0);
		put(c, BPF_ALU64 | BPF_SUB | BPF_X, R0, R1, 0, 0);
		load(c, BPF_DW, R1, R9, offsetof(struct spent, who));
		store(c, BPF_DW, R9, offsetof(struct spent, who), R7);
		load(c, BPF_DW, R2, R9, offsetof(struct spent, sum_ns));
		put(c, BPF_JMP | BPF_JNE | BPF_X, R1, R7, 1, 0); /* it was another one's */
		put(c, BPF_ALU64 | BPF_ADD | BPF_X, R0, R2, 0, 0);
		store(c, BPF_DW, R9, offsetof(struct spent, sum_ns), R0);
		is_short = jump(c, BPF_JLT, R0, KERNEL_BPF_LEAST_NS);
		put(c, BPF_ST | BPF_MEM | BPF_DW, R9, 0, offsetof(struct spent, sum_ns), 0);
		clear_told(c, KERNEL_BPF_DEFERRED);
		store(c, BPF_DW, FP, AT(argument), R0);
		store(c, BPF_W, FP, AT(off_tid), R7);
		put(c, BPF_ALU64 | BPF_RSH | BPF_K, R7, 0, 0, 32);
		store(c, BPF_W, FP, AT(off_pid), R7);
		store(c, BPF_W, FP, AT(state), R8);
		tell(c, b);
	}
	land(c, is_strange);
	land(c, is_unknown);
	if (is_end) {
		land(c, is_new);
		land(c, is_short);
	}
	leave(c);
}

/* ---- Loading ---- */

static int ask(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int make_map(unsigned type, unsigned value_bytes, unsigned entries, unsigned flags)
{
	union bpf_attr attr = {
	    .map_type = type, .key_size = 4, .value_size = value_bytes, .max_entries = entries, .map_flags = flags};
	return ask(BPF_MAP_CREATE, &attr);
}

static bool put_map(int map, uint32_t key, uint32_t value)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
	return ask(BPF_MAP_UPDATE_ELEM, &attr) == 0;
}

static void assemble(struct code *c, const struct kernel_bpf *b, enum point point)
{
	c->count = 0;
	switch (point) {
	case SWITCH: put_switch(c, b); break;
	case FORK: put_process(c, b, true); break;
	case EXEC: put_process(c, b, false); break;
	case FREE: put_free(c, b); break;
	case SOFTIRQ_BEGIN: put_softirq(c, b, false); break;
	case SOFTIRQ_END: put_softirq(c, b, true); break;
	case POINTS: break;
	}
}

static bool start(struct kernel_bpf *b, enum point point)
{
	/* Whoever calls these functions of the kernel must have a license that goes with its own. */
	static const char license[] = "Dual MIT/GPL";
	struct code code;
	assemble(&code, b, point);
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_TRACING,
	    .prog_name = "weft",
	    .expected_attach_type = BPF_TRACE_RAW_TP,
	    .attach_btf_id = b->ids[point],
	    .insns = (uintptr_t)code.steps,
	    .insn_cnt = (uint32_t)code.count,
	    .license = (uintptr_t)license};
	b->programs[point] = ask(BPF_PROG_LOAD, &load);
	if (b->programs[point] < 0)
		return false;
	union bpf_attr attach = {.raw_tracepoint = {.prog_fd = (uint32_t)b->programs[point]}};
	b->links[point] = ask(BPF_RAW_TRACEPOINT_OPEN, &attach);
	return b->links[point] >= 0;
}

/* Programs see the numbers of the first namespace alone. */
static bool is_first_namespace(void)
{
	enum { FIRST = 0xeffffffc };
	struct stat st;
	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST;
}

struct kernel_bpf *kernel_bpf_open(pid_t pid)
{
	struct kernel_bpf *b = malloc(sizeof *b);
	if (!b)
		return NULL;
	*b = (struct kernel_bpf){.processes = -1, .softirqs = -1, .events = -1};
	for (int i = 0; i < POINTS; i++)
		b->programs[i] = b->links[i] = -1;
	const long processors = sysconf(_SC_NPROCESSORS_CONF);
	bool whole = is_first_namespace() && processors > 0 &&
		     (b->processes = make_map(BPF_MAP_TYPE_HASH, 4, MOST_PROCESSES, BPF_F_NO_PREALLOC)) >= 0 && read_types(b) &&
		     (b->softirqs = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct spent), SOFTIRQS, 0)) >= 0 &&
		     (b->events = make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, (unsigned)processors, 0)) >= 0 &&
		     put_map(b->processes, (uint32_t)pid, 0);
	for (enum point i = 0; whole && i < POINTS; i++)
		whole = start(b, i);
	if (whole)
		return b;
	kernel_bpf_close(b);
	return NULL;
}

bool kernel_bpf_to(const struct kernel_bpf *b, uint32_t processor, int fd)
{
	return put_map(b->events, processor, (uint32_t)fd);
}

void kernel_bpf_close(struct kernel_bpf *b)
{
	if (!b)
		return;
	const int maps[] = {b->processes, b->softirqs, b->events};
	for (int i = 0; i < POINTS; i++) {
		if (b->links[i] >= 0)
			close(b->links[i]);
		if (b->programs[i] >= 0)
			close(b->programs[i]);
	}
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		if (maps[i] >= 0)
			close(maps[i]);
	free(b);
}
