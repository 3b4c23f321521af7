/* bpf.c: implements bpf.h.
 *
 * The kernel describes its own types in BTF, from which this file takes the offsets of the fields that the BPF programs read,
 * and the tracepoints.  The BPF programs are assembled here for the running kernel.  A BPF map contains the ids of the recorded
 * processes; the programs update it at forks and exits.  SPDX-License-Identifier: ISC */
#include "kernel/bpf.h"

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

/* Registers of an OS thread that contain the syscall number and the syscall's first argument. */
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

enum {
	MAX_PROCESSES = 1 << 14,
	SOFTIRQS = 16,
	MIN_SWITCH_ARGUMENTS = 5 /* number of arguments of the tracepoint sched_switch since Linux 5.18 */
};

/* Constants of linux/bpf.h, which may be older than the running kernel. */
enum { TASK_PT_REGS = 175 };

/* Offsets of kernel fields. */
struct fields {
	unsigned pid, tgid, comm, call, argument;
	unsigned found;
};

enum tracepoint { SWITCH, FORK, EXEC, FREE, SOFTIRQ_BEGIN, SOFTIRQ_END, TRACEPOINTS };

static const char *const tracepoint_types[TRACEPOINTS] = {[SWITCH] = "btf_trace_sched_switch",
    [FORK] = "btf_trace_sched_process_fork",
    [EXEC] = "btf_trace_sched_process_exec",
    [FREE] = "btf_trace_sched_process_free",
    [SOFTIRQ_BEGIN] = "btf_trace_softirq_entry",
    [SOFTIRQ_END] = "btf_trace_softirq_exit"};

struct weft_kernel_bpf {
	struct fields fields;
	uint32_t type_ids[TRACEPOINTS]; /* BTF type ids of the tracepoints; 0 if a tracepoint was not found */
	unsigned switch_arguments;
	int processes, softirqs, events; /* maps */
	int programs[TRACEPOINTS], links[TRACEPOINTS];
};

/* ---- Types of the running kernel ---- */

struct type {
	uint32_t name, info, size_or_type;
};

struct member {
	uint32_t name, type, offset;
};

enum { STRUCT = 4, FUNC_PROTO = 13 };

static size_t count_trailing_bytes(const struct type *t)
{
	const size_t count = t->info & 0xffff;
	switch (t->info >> 24 & 0x1f) {
	case 1:  /* int */
	case 14: /* variable */
	case 17: /* declaration tag */ return 4;
	case 3: /* array */ return 12;
	case STRUCT:
	case 5:  /* union */
	case 15: /* section */
	case 19: /* 64-bit enum */ return 12 * count;
	case 6: /* enum */
	case FUNC_PROTO: return 8 * count;
	default: return 0;
	}
}

static void note_field_offset(struct fields *f, const char *of, const char *name, unsigned offset)
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

/* Reads the kernel's types and their names.  Returns false if a type that is needed is missing. */
static bool find_types(struct weft_kernel_bpf *b, const unsigned char *types, size_t size, const char *names, size_t names_size)
{
	WEFT_VEC(const unsigned char *) all = {0};
	bool whole = weft_vec_push(&all) != NULL; /* type 0 is void */
	for (size_t at = 0; whole && at + sizeof(struct type) <= size;) {
		struct type t;
		memcpy(&t, types + at, sizeof t);
		const unsigned char **slot = weft_vec_push(&all);
		whole = slot && t.name < names_size && at + sizeof t + count_trailing_bytes(&t) <= size;
		if (!whole)
			break;
		*slot = types + at;
		const char *name = names + t.name;
		const uint32_t kind = t.info >> 24 & 0x1f;
		for (int i = 0; kind == 8 /* typedef */ && i < TRACEPOINTS; i++)
			if (!strcmp(name, tracepoint_types[i]))
				b->type_ids[i] = (uint32_t)all.count - 1;
		const bool is_wanted = kind == STRUCT && (!strcmp(name, "task_struct") || !strcmp(name, "pt_regs"));
		for (uint32_t i = 0; is_wanted && i < (t.info & 0xffff); i++) {
			struct member m;
			memcpy(&m, types + at + sizeof t + i * sizeof m, sizeof m);
			if (m.name < names_size)
				note_field_offset(&b->fields, name, names + m.name, (m.offset & 0xffffff) / 8);
		}
		at += sizeof t + count_trailing_bytes(&t);
	}
	/* The arguments of the function to which the typedef points are counted; BPF programs do not get the first argument. */
	uint32_t number = b->type_ids[SWITCH];
	for (int depth = 0; whole && depth < 3 && number && number < all.count; depth++) {
		struct type t;
		memcpy(&t, all.items[number], sizeof t);
		number = t.size_or_type;
		if ((t.info >> 24 & 0x1f) == FUNC_PROTO)
			b->switch_arguments = t.info & 0xffff;
	}
	weft_vec_free(&all);
	return whole;
}

static bool read_types(struct weft_kernel_bpf *b)
{
	struct {
		uint16_t magic;
		uint8_t version, flags;
		uint32_t size, types_at, types_size, names_at, names_size;
	} h;
	enum { MAGIC = 0xeb9f, MAX_BTF_BYTES = 64 << 20 };
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "re");
	unsigned char *all = NULL;
	size_t size = 0;
	bool whole = file && fread(&h, sizeof h, 1, file) == 1 && h.magic == MAGIC && h.types_size <= MAX_BTF_BYTES &&
		     h.names_size <= MAX_BTF_BYTES && h.size <= MAX_BTF_BYTES && h.types_at <= MAX_BTF_BYTES &&
		     h.names_at <= MAX_BTF_BYTES && h.names_size;
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
	enum { ALL_FIELDS = 0x1f };
	return whole && b->fields.found == ALL_FIELDS && b->switch_arguments >= MIN_SWITCH_ARGUMENTS && b->type_ids[SWITCH] &&
	       b->type_ids[FORK] && b->type_ids[EXEC] && b->type_ids[FREE];
}

/* ---- Programs ---- */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

struct code {
	struct bpf_insn instructions[160];
	size_t count;
};

static void emit_instruction(struct code *c, unsigned code, unsigned to, unsigned from, int offset, int32_t value)
{
	c->instructions[c->count++] = (struct bpf_insn){
	    .code = (uint8_t)code, .dst_reg = to & 15, .src_reg = from & 15, .off = (int16_t)offset, .imm = value};
}

static void emit_move(struct code *c, unsigned to, unsigned from)
{
	emit_instruction(c, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void emit_set(struct code *c, unsigned to, int32_t value)
{
	emit_instruction(c, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

static void emit_load(struct code *c, unsigned size, unsigned to, unsigned from, unsigned offset)
{
	emit_instruction(c, BPF_LDX | BPF_MEM | size, to, from, (int)offset, 0);
}

static void emit_store(struct code *c, unsigned size, unsigned to, int offset, unsigned from)
{
	emit_instruction(c, BPF_STX | BPF_MEM | size, to, from, offset, 0);
}

static void emit_load_map(struct code *c, unsigned to, int map)
{
	emit_instruction(c, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
	emit_instruction(c, 0, 0, 0, 0, 0);
}

static void emit_call(struct code *c, int function)
{
	emit_instruction(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* Emits a jump instruction, whose target patch_jump() sets later. */
static size_t emit_jump(struct code *c, unsigned condition, unsigned left, int32_t right)
{
	emit_instruction(c, BPF_JMP | condition | BPF_K, left, 0, 0, right);
	return c->count - 1;
}

static void patch_jump(struct code *c, size_t from)
{
	c->instructions[from].off = (int16_t)(c->count - from - 1);
}

static void emit_exit(struct code *c)
{
	emit_set(c, R0, 0);
	emit_instruction(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

enum { KEY_OFFSET = -64, VALUE_OFFSET = -72, RECORD_OFFSET = -56 };

#define RECORD_FIELD(field) (RECORD_OFFSET + (int)offsetof(struct weft_kernel_bpf_record, field))

/* Emits a lookup in a BPF map: R0 becomes a pointer to the value of the key on the stack, or 0. */
static void emit_lookup(struct code *c, int map)
{
	emit_load_map(c, R1, map);
	emit_move(c, R2, FP);
	emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY_OFFSET);
	emit_call(c, BPF_FUNC_map_lookup_elem);
}

/* Emits a test: R0 becomes nonzero if the OS thread in register `task` belongs to a recorded process. */
static void emit_check_process(struct code *c, const struct weft_kernel_bpf *b, unsigned task)
{
	emit_load(c, BPF_W, R1, task, b->fields.tgid);
	emit_store(c, BPF_W, FP, KEY_OFFSET, R1);
	emit_lookup(c, b->processes);
	const size_t none = emit_jump(c, BPF_JEQ, R0, 0);
	emit_load(c, BPF_W, R0, R0, 0);
	patch_jump(c, none);
}

static void emit_clear_record(struct code *c, enum weft_kernel_bpf_type event_type)
{
	for (int at = RECORD_OFFSET; at < 0; at += 8)
		emit_instruction(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, at, 0);
	emit_instruction(c, BPF_ST | BPF_MEM | BPF_W, FP, 0, RECORD_FIELD(event_type), (int32_t)event_type);
}

/* Emits the output of the record; register R6 contains the program's context. */
static void emit_output(struct code *c, const struct weft_kernel_bpf *b)
{
	emit_move(c, R1, R6);
	emit_load_map(c, R2, b->events);
	emit_instruction(c, BPF_ALU | BPF_MOV | BPF_K, R3, 0, 0, -1); /* of the current CPU */
	emit_move(c, R4, FP);
	emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_K, R4, 0, 0, RECORD_OFFSET);
	emit_set(c, R5, WEFT_KERNEL_BPF_BYTES);
	emit_call(c, BPF_FUNC_perf_event_output);
}

/* Emits code for a thread that leaves the CPU: the record gets the syscall if the thread blocks, or the next thread if it is
 * preempted. */
static void emit_off_cpu(struct code *c, const struct weft_kernel_bpf *b)
{
	emit_load(c, BPF_W, R1, R7, b->fields.pid);
	emit_store(c, BPF_W, FP, RECORD_FIELD(off_tid), R1);
	emit_load(c, BPF_W, R1, R7, b->fields.tgid);
	emit_store(c, BPF_W, FP, RECORD_FIELD(off_pid), R1);
	emit_load(c, BPF_DW, R1, R6, 0); /* preempted */
	const size_t is_preempted = emit_jump(c, BPF_JNE, R1, 0);
	emit_load(c, BPF_DW, R1, R6, 24);
	emit_instruction(c, BPF_ALU64 | BPF_AND | BPF_K, R1, 0, 0, 0xff);
	emit_store(c, BPF_W, FP, RECORD_FIELD(state), R1);
	const size_t is_runnable = emit_jump(c, BPF_JEQ, R1, 0);
	emit_move(c, R1, R7);
	emit_call(c, TASK_PT_REGS);
	emit_instruction(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, RECORD_FIELD(call), -2);
#if defined __x86_64__
	/* The code segment register follows the syscall number in pt_regs. */
	enum { CS_BEHIND = 16, CS_OF_32_BITS = 0x23 };
	emit_load(c, BPF_H, R1, R0, b->fields.call + CS_BEHIND);
	const size_t is_32 = emit_jump(c, BPF_JEQ, R1, CS_OF_32_BITS);
	emit_load(c, BPF_DW, R1, R0, b->fields.call);
#else
	emit_load(c, BPF_W, R1, R0, b->fields.call);
	emit_instruction(c, BPF_ALU64 | BPF_LSH | BPF_K, R1, 0, 0, 32);
	emit_instruction(c, BPF_ALU64 | BPF_ARSH | BPF_K, R1, 0, 0, 32);
#endif
	emit_store(c, BPF_DW, FP, RECORD_FIELD(call), R1);
	emit_load(c, BPF_DW, R1, R0, b->fields.argument);
	emit_store(c, BPF_DW, FP, RECORD_FIELD(argument), R1);
#if defined __x86_64__
	patch_jump(c, is_32);
#endif
	const size_t is_recorded = emit_jump(c, BPF_JA, 0, 0);
	patch_jump(c, is_preempted);
	patch_jump(c, is_runnable);
	emit_load(c, BPF_W, R1, R8, b->fields.pid);
	emit_store(c, BPF_W, FP, RECORD_FIELD(next), R1);
	for (unsigned i = 0; i < 16; i += 8) {
		emit_load(c, BPF_DW, R1, R8, b->fields.comm + i);
		emit_store(c, BPF_DW, FP, RECORD_FIELD(name) + (int)i, R1);
	}
	patch_jump(c, is_recorded);
}

/* Emits the BPF program for sched_switch(preempted, R7: previous thread, R8: next thread, state).  The program records only
 * switches away from the recorded threads; kernels also omit other switches. */
static void emit_switch_program(struct code *c, const struct weft_kernel_bpf *b)
{
	emit_move(c, R6, R1);
	emit_load(c, BPF_DW, R7, R6, 8);
	emit_load(c, BPF_DW, R8, R6, 16);
	emit_check_process(c, b, R7);
	const size_t is_traced = emit_jump(c, BPF_JNE, R0, 0);
	emit_exit(c);
	patch_jump(c, is_traced);
	emit_clear_record(c, WEFT_KERNEL_BPF_SWITCH);
	emit_off_cpu(c, b);
	emit_output(c, b);
	emit_exit(c);
}

/* Emits an update of a BPF map, which stores the value on the stack for the key on the stack. */
static void emit_update(struct code *c, const struct weft_kernel_bpf *b)
{
	emit_load_map(c, R1, b->processes);
	emit_move(c, R2, FP);
	emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY_OFFSET);
	emit_move(c, R3, FP);
	emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_K, R3, 0, 0, VALUE_OFFSET);
	emit_set(c, R4, BPF_ANY);
	emit_call(c, BPF_FUNC_map_update_elem);
}

/* Emits the BPF program for sched_process_fork(parent, child), which adds children of recorded processes, or for
 * sched_process_exec(task), which adds the first process. */
static void emit_process_program(struct code *c, const struct weft_kernel_bpf *b, bool is_fork)
{
	emit_load(c, BPF_DW, R7, R1, 0);
	if (is_fork)
		emit_load(c, BPF_DW, R8, R1, 8);
	emit_load(c, BPF_W, R1, R7, b->fields.tgid);
	emit_store(c, BPF_W, FP, KEY_OFFSET, R1);
	emit_lookup(c, b->processes);
	const size_t is_strange = emit_jump(c, BPF_JEQ, R0, 0);
	emit_instruction(c, BPF_ST | BPF_MEM | BPF_W, FP, 0, VALUE_OFFSET, 1);
	if (is_fork) {
		emit_load(c, BPF_W, R1, R0, 0);
		emit_store(c, BPF_W, FP, VALUE_OFFSET, R1);
		emit_load(c, BPF_W, R1, R8, b->fields.tgid);
		emit_store(c, BPF_W, FP, KEY_OFFSET, R1);
	}
	emit_update(c, b);
	patch_jump(c, is_strange);
	emit_exit(c);
}

/* Emits the BPF program for sched_process_free(task), which removes a process; the process's first OS thread is freed last. */
static void emit_free_program(struct code *c, const struct weft_kernel_bpf *b)
{
	emit_load(c, BPF_DW, R7, R1, 0);
	emit_load(c, BPF_W, R1, R7, b->fields.tgid);
	emit_load(c, BPF_W, R2, R7, b->fields.pid);
	emit_instruction(c, BPF_JMP | BPF_JEQ | BPF_X, R1, R2, 2, 0);
	emit_exit(c);
	emit_store(c, BPF_W, FP, KEY_OFFSET, R1);
	emit_load_map(c, R1, b->processes);
	emit_move(c, R2, FP);
	emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_K, R2, 0, 0, KEY_OFFSET);
	emit_call(c, BPF_FUNC_map_delete_elem);
	emit_exit(c);
}

/* State of each softirq on each CPU. */
struct softirq_time {
	uint64_t begin_ns, sum_ns;
	uint64_t owner; /* tid and pid of the thread that the softirq interrupted */
};

/* Emits the BPF programs for softirq_entry(number) and softirq_exit(number), which record while R7 (tid and pid) is on CPU.
 * Register R9 points to the state of the softirq. */
static void emit_softirq_program(struct code *c, const struct weft_kernel_bpf *b, bool is_end)
{
	emit_move(c, R6, R1);
	emit_call(c, BPF_FUNC_get_current_pid_tgid);
	emit_move(c, R7, R0);
	emit_move(c, R1, R7);
	emit_instruction(c, BPF_ALU64 | BPF_RSH | BPF_K, R1, 0, 0, 32);
	emit_store(c, BPF_W, FP, KEY_OFFSET, R1);
	emit_lookup(c, b->processes);
	const size_t is_strange = emit_jump(c, BPF_JEQ, R0, 0);
	emit_load(c, BPF_DW, R8, R6, 0);
	emit_store(c, BPF_W, FP, KEY_OFFSET, R8);
	emit_lookup(c, b->softirqs);
	const size_t is_unknown = emit_jump(c, BPF_JEQ, R0, 0);
	emit_move(c, R9, R0);
	emit_call(c, BPF_FUNC_ktime_get_ns);
	size_t is_new = 0, is_short = 0;
	if (!is_end) {
		emit_store(c, BPF_DW, R9, offsetof(struct softirq_time, begin_ns), R0);
	} else {
		emit_load(c, BPF_DW, R1, R9, offsetof(struct softirq_time, begin_ns));
		is_new = emit_jump(c, BPF_JEQ, R1, 0);
		emit_instruction(c, BPF_ST | BPF_MEM | BPF_DW, R9, 0, offsetof(struct softirq_time, begin_ns), 0);
		emit_instruction(c, BPF_ALU64 | BPF_SUB | BPF_X, R0, R1, 0, 0);
		emit_load(c, BPF_DW, R1, R9, offsetof(struct softirq_time, owner));
		emit_store(c, BPF_DW, R9, offsetof(struct softirq_time, owner), R7);
		emit_load(c, BPF_DW, R2, R9, offsetof(struct softirq_time, sum_ns));
		emit_instruction(c, BPF_JMP | BPF_JNE | BPF_X, R1, R7, 1, 0); /* it interrupted another thread */
		emit_instruction(c, BPF_ALU64 | BPF_ADD | BPF_X, R0, R2, 0, 0);
		emit_store(c, BPF_DW, R9, offsetof(struct softirq_time, sum_ns), R0);
		is_short = emit_jump(c, BPF_JLT, R0, WEFT_KERNEL_BPF_MIN_NS);
		emit_instruction(c, BPF_ST | BPF_MEM | BPF_DW, R9, 0, offsetof(struct softirq_time, sum_ns), 0);
		emit_clear_record(c, WEFT_KERNEL_BPF_SOFTIRQ);
		emit_store(c, BPF_DW, FP, RECORD_FIELD(argument), R0);
		emit_store(c, BPF_W, FP, RECORD_FIELD(off_tid), R7);
		emit_instruction(c, BPF_ALU64 | BPF_RSH | BPF_K, R7, 0, 0, 32);
		emit_store(c, BPF_W, FP, RECORD_FIELD(off_pid), R7);
		emit_store(c, BPF_W, FP, RECORD_FIELD(state), R8);
		emit_output(c, b);
	}
	patch_jump(c, is_strange);
	patch_jump(c, is_unknown);
	if (is_end) {
		patch_jump(c, is_new);
		patch_jump(c, is_short);
	}
	emit_exit(c);
}

/* ---- Loading ---- */

static int call_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int create_map(unsigned type, unsigned value_bytes, unsigned entries, unsigned flags)
{
	union bpf_attr attr = {
	    .map_type = type, .key_size = 4, .value_size = value_bytes, .max_entries = entries, .map_flags = flags};
	return call_bpf(BPF_MAP_CREATE, &attr);
}

static bool update_map(int map, uint32_t key, uint32_t value)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
	return call_bpf(BPF_MAP_UPDATE_ELEM, &attr) == 0;
}

static void assemble_program(struct code *c, const struct weft_kernel_bpf *b, enum tracepoint tracepoint)
{
	c->count = 0;
	switch (tracepoint) {
	case SWITCH: emit_switch_program(c, b); break;
	case FORK: emit_process_program(c, b, true); break;
	case EXEC: emit_process_program(c, b, false); break;
	case FREE: emit_free_program(c, b); break;
	case SOFTIRQ_BEGIN: emit_softirq_program(c, b, false); break;
	case SOFTIRQ_END: emit_softirq_program(c, b, true); break;
	case TRACEPOINTS: break;
	}
}

static bool load_program(struct weft_kernel_bpf *b, enum tracepoint tracepoint)
{
	/* The kernel allows these helper functions only to programs with a GPL-compatible license. */
	static const char license[] = "Dual MIT/GPL";
	struct code code;
	assemble_program(&code, b, tracepoint);
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_TRACING,
	    .prog_name = "weft",
	    .expected_attach_type = BPF_TRACE_RAW_TP,
	    .attach_btf_id = b->type_ids[tracepoint],
	    .insns = (uintptr_t)code.instructions,
	    .insn_cnt = (uint32_t)code.count,
	    .license = (uintptr_t)license};
	b->programs[tracepoint] = call_bpf(BPF_PROG_LOAD, &load);
	if (b->programs[tracepoint] < 0)
		return false;
	union bpf_attr attach = {.raw_tracepoint = {.prog_fd = (uint32_t)b->programs[tracepoint]}};
	b->links[tracepoint] = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &attach);
	return b->links[tracepoint] >= 0;
}

/* Returns whether this is the first PID namespace, whose ids the BPF programs see. */
static bool is_first_namespace(void)
{
	enum { FIRST = 0xeffffffc };
	struct stat st;
	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST;
}

struct weft_kernel_bpf *weft_kernel_bpf_open(pid_t pid)
{
	struct weft_kernel_bpf *b = malloc(sizeof *b);
	if (!b)
		return NULL;
	*b = (struct weft_kernel_bpf){.processes = -1, .softirqs = -1, .events = -1};
	for (int i = 0; i < TRACEPOINTS; i++)
		b->programs[i] = b->links[i] = -1;
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	bool whole = is_first_namespace() && cpus > 0 &&
		     (b->processes = create_map(BPF_MAP_TYPE_HASH, 4, MAX_PROCESSES, BPF_F_NO_PREALLOC)) >= 0 && read_types(b) &&
		     (b->softirqs = create_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct softirq_time), SOFTIRQS, 0)) >= 0 &&
		     (b->events = create_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, (unsigned)cpus, 0)) >= 0 &&
		     update_map(b->processes, (uint32_t)pid, 0);
	for (enum tracepoint i = 0; whole && i < TRACEPOINTS; i++)
		whole = load_program(b, i);
	if (whole)
		return b;
	weft_kernel_bpf_close(b);
	return NULL;
}

bool weft_kernel_bpf_set_output(const struct weft_kernel_bpf *b, uint32_t cpu, int fd)
{
	return update_map(b->events, cpu, (uint32_t)fd);
}

void weft_kernel_bpf_close(struct weft_kernel_bpf *b)
{
	if (!b)
		return;
	const int maps[] = {b->processes, b->softirqs, b->events};
	for (int i = 0; i < TRACEPOINTS; i++) {
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
