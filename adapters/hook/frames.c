/* frames.c: see frames.h.
 *
 * Libraries have no frame pointers, so this file finds frames by the unwind tables that the loader has mapped (.eh_frame_hdr).
 * libgcc's unwinder is not used: it would have to be loaded into the program, or would be a second copy beside the copy that
 * throws exceptions.  The search for callers needs only two registers and the common unwind rules of compilers and hand-written
 * code; any other rule ends the search.  SPDX-License-Identifier: ISC */
#include "adapters/hook/frames.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/session.h"

/* Since glibc 2.35, libc finds the unwind table of an address without a lock. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE

enum {
	MAX_FRAMES = 96,
	MAX_REMEMBERED = 4,
	MAX_STACK_BYTES = 1 << 20, /* maximum size of the searched frames */
	PAGE_BYTES = 4096,
	TIMES_REST = 64 /* minimum ratio of a thread's other time to the time of its searches */
};

#if defined(__x86_64__)
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };
#define ADDRESS_MASK UINT64_MAX
#define READ_REGISTERS(PC, SP, FP) __asm__("lea 0(%%rip), %0\n mov %%rsp, %1\n mov %%rbp, %2" : "=r"(PC), "=r"(SP), "=r"(FP))
#else
enum { FRAME_POINTER = 29, RETURN_ADDRESS = 30, STACK_POINTER = 31 };
#define ADDRESS_MASK (((uint64_t)1 << 48) - 1) /* address bits of a pointer, without the signature of a return address */
#define READ_REGISTERS(PC, SP, FP) __asm__("adr %0, .\n mov %1, sp\n mov %2, x29" : "=r"(PC), "=r"(SP), "=r"(FP))
#endif

typedef int find_object_fn(void *address, struct dl_find_object *out);
static find_object_fn *find_object;

__attribute__((constructor(102))) static void resolve_find_object(void)
{
	find_object = (find_object_fn *)dlsym(RTLD_DEFAULT, "_dl_find_object");
}

/* A stack frame: the registers of the function, and the function's module. */
struct frame {
	uint64_t pc, sp, fp;
	const struct link_map *module;
};

/* Rule that says where a register of the caller is saved. */
struct rule {
	enum { SAME, AT_OFFSET, UNKNOWN } kind;
	int64_t offset; /* distance from the canonical frame address */
};

/* Unwind rules that hold at an instruction. */
struct row {
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct rule fp, ra;
};

/* ---- Bytes of the unwind tables ---- */

struct bytes {
	const unsigned char *at, *end; /* cursor into the bytes; `at` is NULL after a read beyond `end` */
};

static uint64_t read_fixed(struct bytes *b, unsigned size)
{
	uint64_t value = 0;
	if (!b->at || (size_t)(b->end - b->at) < size) {
		b->at = NULL;
		return 0;
	}
	memcpy(&value, b->at, size);
	b->at += size;
	return value;
}

static uint64_t read_uleb(struct bytes *b)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint64_t byte = read_fixed(b, 1);
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static int64_t read_sleb(struct bytes *b)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 63;) {
		const uint64_t byte = read_fixed(b, 1);
		value |= (byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (byte & 0x40)
			value |= UINT64_MAX << shift;
		break;
	}
	return (int64_t)value;
}

static void skip(struct bytes *b, uint64_t size)
{
	b->at = b->at && size <= (uint64_t)(b->end - b->at) ? b->at + size : NULL;
}

/* Returns the content of the record at `at`, which follows its length. */
static struct bytes open_record(const unsigned char *at)
{
	uint32_t length;
	enum { LONG_LENGTH = 0xfffffff0 };
	memcpy(&length, at, sizeof length);
	const bool is_short = length && length < (uint32_t)LONG_LENGTH;
	return (struct bytes){is_short ? at + sizeof length : NULL, is_short ? at + sizeof length + length : NULL};
}

/* ---- Rules ---- */

/* Properties that the functions of one compiled file share (CIE). */
struct common {
	uint64_t code_unit;
	int64_t data_unit;
	bool has_data; /* whether records of functions have augmentation data */
	struct bytes program;
};

enum { PC_RELATIVE_4 = 0x1b, DATA_RELATIVE_4 = 0x3b, UNSIGNED_4 = 0x03 }; /* DW_EH_PE_... */

static bool read_common(const unsigned char *at, struct common *out)
{
	struct bytes b = open_record(at);
	const bool is_common = read_fixed(&b, 4) == 0;
	const uint64_t version = read_fixed(&b, 1);
	const char *augmentation = (const char *)b.at;
	while (b.at && read_fixed(&b, 1))
		;
	if (!b.at || !is_common || (version != 1 && version != 3))
		return false;
	out->code_unit = read_uleb(&b);
	out->data_unit = read_sleb(&b);
	const uint64_t return_register = version == 1 ? read_fixed(&b, 1) : read_uleb(&b);
	out->has_data = *augmentation == 'z';
	if (return_register != RETURN_ADDRESS || !out->has_data)
		return false;
	struct bytes data = b;
	const uint64_t size = read_uleb(&data);
	out->program = data;
	skip(&out->program, size);
	bool is_known = false;
	for (const char *c = augmentation + 1; *c && data.at; c++) {
		if (*c == 'R')
			is_known = read_fixed(&data, 1) == PC_RELATIVE_4;
		else if (*c == 'L')
			skip(&data, 1);
		else if (*c == 'P')
			skip(&data, (read_fixed(&data, 1) & 7) == 3 ? 4 : 8);
		else if (*c == 'S')
			return false; /* the frame belongs to a signal, and the interrupted function is no caller */
	}
	return is_known && data.at && out->program.at;
}

static void set_rule(struct row *row, uint64_t reg, struct rule rule)
{
	if (reg == FRAME_POINTER)
		row->fp = rule;
	else if (reg == RETURN_ADDRESS)
		row->ra = rule;
}

static void restore_rule(struct row *row, const struct row *first, uint64_t reg)
{
	set_rule(row, reg, reg == FRAME_POINTER ? first->fp : first->ra);
}

/* Runs the program of unwind rules until its location is beyond `pc`.  Returns false if the program has an unknown
 * instruction. */
static bool run_rules(
    struct bytes b, const struct common *common, uint64_t at, uint64_t pc, const struct row *first, struct row *row)
{
	struct row remembered[MAX_REMEMBERED];
	unsigned depth = 0;
	uint64_t reg;
	while (b.at && b.at < b.end) {
		const unsigned code = (unsigned)read_fixed(&b, 1), low = code & 0x3f;
		uint64_t step = 0;
		switch (code & 0xc0 ? code & 0xc0 : code) {
		case 0x40: step = low; break;
		case 0x80: set_rule(row, low, (struct rule){AT_OFFSET, (int64_t)read_uleb(&b) * common->data_unit}); break;
		case 0xc0: restore_rule(row, first, low); break;
		case 0x00: break;
		case 0x02: step = read_fixed(&b, 1); break;
		case 0x03: step = read_fixed(&b, 2); break;
		case 0x04: step = read_fixed(&b, 4); break;
		case 0x05: /* DW_CFA_offset_extended */
			reg = read_uleb(&b);
			set_rule(row, reg, (struct rule){AT_OFFSET, (int64_t)read_uleb(&b) * common->data_unit});
			break;
		case 0x06: restore_rule(row, first, read_uleb(&b)); break;
		case 0x07: set_rule(row, read_uleb(&b), (struct rule){UNKNOWN, 0}); break;
		case 0x08: set_rule(row, read_uleb(&b), (struct rule){SAME, 0}); break;
		case 0x09: /* DW_CFA_register */
			set_rule(row, read_uleb(&b), (struct rule){UNKNOWN, 0});
			read_uleb(&b);
			break;
		case 0x0a:
			if (depth == MAX_REMEMBERED)
				return false;
			remembered[depth++] = *row;
			break;
		case 0x0b:
			if (depth == 0)
				return false;
			*row = remembered[--depth];
			break;
		case 0x0c: /* DW_CFA_def_cfa */
			row->cfa_register = read_uleb(&b);
			row->cfa_offset = (int64_t)read_uleb(&b);
			break;
		case 0x0d: row->cfa_register = read_uleb(&b); break;
		case 0x0e: row->cfa_offset = (int64_t)read_uleb(&b); break;
		case 0x10: /* DW_CFA_expression, DW_CFA_val_expression */
		case 0x16:
			set_rule(row, read_uleb(&b), (struct rule){UNKNOWN, 0});
			skip(&b, read_uleb(&b));
			break;
		case 0x11: /* DW_CFA_offset_extended_sf */
			reg = read_uleb(&b);
			set_rule(row, reg, (struct rule){AT_OFFSET, read_sleb(&b) * common->data_unit});
			break;
		case 0x12: /* DW_CFA_def_cfa_sf */
			row->cfa_register = read_uleb(&b);
			row->cfa_offset = read_sleb(&b) * common->data_unit;
			break;
		case 0x13: row->cfa_offset = read_sleb(&b) * common->data_unit; break;
		case 0x2d: break; /* DW_CFA_AARCH64_negate_ra_state */
		case 0x2e: read_uleb(&b); break;
		default: return false;
		}
		at += step * common->code_unit;
		if (at > pc)
			break;
	}
	return b.at;
}

/* Returns the unwind record of the function that contains `pc`, from the sorted table of the function's module; NULL: none. */
static const unsigned char *find_function_record(const unsigned char *table, uint64_t pc)
{
	enum { HEADER_BYTES = 12, ENTRY_BYTES = 8 };
	uint32_t count;
	if (table[0] != 1 || table[1] != PC_RELATIVE_4 || table[2] != UNSIGNED_4 || table[3] != DATA_RELATIVE_4)
		return NULL;
	memcpy(&count, table + 8, sizeof count);
	int32_t entry[2] = {0, 0};
	for (uint32_t low = 0; low < count;) {
		const uint32_t middle = low + (count - low) / 2;
		int32_t seen[2];
		memcpy(seen, table + HEADER_BYTES + (size_t)middle * ENTRY_BYTES, sizeof seen);
		if ((uint64_t)(uintptr_t)table + (uint64_t)(int64_t)seen[0] <= pc) {
			memcpy(entry, seen, sizeof entry);
			low = middle + 1;
		} else {
			count = middle;
		}
	}
	return entry[1] ? table + entry[1] : NULL;
}

/* Sets *row to the unwind rules at address `pc`. */
static bool find_rules(const unsigned char *table, uint64_t pc, struct row *row)
{
	const unsigned char *record = find_function_record(table, pc);
	struct common common;
	if (!record)
		return false;
	struct bytes b = open_record(record);
	const unsigned char *from = b.at;
	const uint64_t distance = read_fixed(&b, 4);
	if (!b.at || !distance || !read_common(from - distance, &common))
		return false;
	const unsigned char *base = b.at;
	const uint64_t begin = (uint64_t)(uintptr_t)base + (uint64_t)(int64_t)(int32_t)read_fixed(&b, 4),
		       size = read_fixed(&b, 4);
	skip(&b, read_uleb(&b));
	if (!b.at || pc - begin >= size)
		return false;
	struct row first = {.cfa_register = UINT64_MAX};
#ifdef __x86_64__
	first.ra.kind = UNKNOWN;
#endif
	if (!run_rules(common.program, &common, 0, UINT64_MAX, &first, &first))
		return false;
	*row = first;
	return run_rules(b, &common, begin, pc, &first, row);
}

/* ---- Frames ---- */

/* Part of the stack that may be read. */
struct stack {
	uint64_t begin, end, readable_page;
};

static bool read_stack(struct stack *stack, uint64_t address, uint64_t *out)
{
	if (address < stack->begin || address >= stack->end || address % sizeof *out)
		return false;
	if (address / PAGE_BYTES != stack->readable_page && !weft_hook_is_readable((const void *)(uintptr_t)address, sizeof *out))
		return false;
	stack->readable_page = address / PAGE_BYTES;
	memcpy(out, (const void *)(uintptr_t)address, sizeof *out);
	return true;
}

static bool read_rule(struct stack *stack, struct rule rule, uint64_t cfa, uint64_t *value)
{
	return rule.kind == SAME || (rule.kind == AT_OFFSET && read_stack(stack, cfa + (uint64_t)rule.offset, value));
}

/* Finds the frame's module, and the frame's unwind rules if the module has an unwind table.  Returns false if the module is
 * unknown. */
static bool find_code(struct frame *frame, struct row *row, bool *has_rules)
{
	struct dl_find_object object;
	/* A call may be the last instruction of its function, so the lookup uses the address before the return address. */
	const uint64_t pc = frame->pc - 1;
	if (find_object((void *)(uintptr_t)pc, &object))
		return false;
	frame->module = object.dlfo_link_map;
	*has_rules = object.dlfo_eh_frame && find_rules(object.dlfo_eh_frame, pc, row);
	return true;
}

/* Replaces the frame by the frame of its caller. */
static bool go_to_caller(struct frame *frame, const struct row *row, struct stack *stack)
{
	const uint64_t base = row->cfa_register == STACK_POINTER   ? frame->sp
			      : row->cfa_register == FRAME_POINTER ? frame->fp
								   : 0,
		       cfa = base + (uint64_t)row->cfa_offset;
	uint64_t pc = 0, fp = frame->fp;
	if (!base || cfa <= frame->sp || row->ra.kind != AT_OFFSET || !read_rule(stack, row->ra, cfa, &pc))
		return false;
	if (!read_rule(stack, row->fp, cfa, &fp))
		fp = 0;
	*frame = (struct frame){.pc = pc & ADDRESS_MASK, .sp = cfa, .fp = fp};
	return frame->pc != 0;
}

static bool is_executable(const struct link_map *module)
{
	return !module->l_name || !module->l_name[0];
}

/* Innermost return address in each library of the program, in the order of the stack. */
struct libraries {
	struct {
		const struct link_map *module;
		const void *line;
	} items[8];
	unsigned count, outermost;
};

static void note_library(struct libraries *libraries, const struct link_map *module, const void *line)
{
	unsigned i = 0;
	while (i < libraries->count && libraries->items[i].module != module)
		i++;
	if (i == sizeof libraries->items / sizeof *libraries->items)
		return;
	if (i == libraries->count) {
		libraries->items[i].module = module;
		libraries->items[i].line = line;
		libraries->count++;
	}
	libraries->outermost = i;
}

static __attribute__((noinline)) const void *walk(uint64_t stack_end)
{
	struct frame frame = {0};
	READ_REGISTERS(frame.pc, frame.sp, frame.fp);
	struct stack stack = {frame.sp, frame.sp + MAX_STACK_BYTES, 0};
	struct libraries libraries = {.count = 0};
	for (unsigned i = 0; i < MAX_FRAMES && (!stack_end || frame.sp < stack_end); i++) {
		struct row row;
		bool has_rules;
		const void *line = (const void *)(uintptr_t)frame.pc;
		if (!find_code(&frame, &row, &has_rules))
			return NULL;
		if (is_executable(frame.module))
			return line;
		if (!weft__hook_is_recorder(line) && !weft__hook_is_runtime(line))
			note_library(&libraries, frame.module, line);
		if (!has_rules || !go_to_caller(&frame, &row, &stack))
			return NULL;
	}
	return stack_end && libraries.count > 0 ? libraries.items[libraries.outermost].line : NULL;
}

__attribute__((noinline)) unsigned weft__hook_list_callers(const void **callers, unsigned most)
{
	struct frame frame = {0};
	READ_REGISTERS(frame.pc, frame.sp, frame.fp);
	struct stack stack = {frame.sp, frame.sp + MAX_STACK_BYTES, 0};
	unsigned count = 0;
	for (unsigned i = 0; i < MAX_FRAMES && count < most && find_object; i++) {
		struct row row;
		bool has_rules;
		const void *line = (const void *)(uintptr_t)frame.pc;
		if (!find_code(&frame, &row, &has_rules))
			break;
		if (!weft__hook_is_recorder(line))
			callers[count++] = line;
		if (!has_rules || !go_to_caller(&frame, &row, &stack))
			break;
	}
	return count;
}

/* Returns whether the return address is in a library other than this one. */
static bool is_in_library(const void *caller)
{
	struct dl_find_object object;
	return find_object && !weft__hook_is_recorder(caller) && !find_object((void *)(uintptr_t)caller, &object) &&
	       !is_executable(object.dlfo_link_map);
}

const void *weft__hook_find_program_line(const void *caller, const void *stack_end)
{
	const void *line = is_in_library(caller) ? walk((uint64_t)(uintptr_t)stack_end) : NULL;
	return line ? line : caller;
}

const void *weft__hook_find_blocking_line(const void *caller, const void *stack_end)
{
	static __thread struct {
		uint64_t since, spent; /* of the trace's clock */
	} walked __attribute__((tls_model("initial-exec")));
	if (!is_in_library(caller))
		return caller;
	const uint64_t begin = weft_now();
	walked.since = walked.since ? walked.since : begin;
	if (begin - walked.since < walked.spent * TIMES_REST)
		return caller;
	const void *line = walk((uint64_t)(uintptr_t)stack_end);
	walked.spent += weft_now() - begin;
	return line ? line : caller;
}

#else

const void *weft__hook_find_program_line(const void *caller, const void *stack_end)
{
	(void)stack_end;
	return caller;
}

const void *weft__hook_find_blocking_line(const void *caller, const void *stack_end)
{
	(void)stack_end;
	return caller;
}

unsigned weft__hook_list_callers(const void **callers, unsigned most)
{
	(void)callers;
	(void)most;
	return 0;
}

#endif
