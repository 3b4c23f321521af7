/* move_all [--limit=N] FILE|FOLDER...: moves the entry of every function of every library there, and verifies the result.
 *
 * A function is moved as in a process, but its slot is only a place in memory.  A separate decoder then compares the slot with
 * the function, instruction by instruction, and checks the jump in the function, the jump back, and the targets of other jumps.
 * Prints the numbers of moved and of refused functions, by reason; exits with 1 if a moved function is wrong.
 * SPDX-License-Identifier: ISC */
#include <capstone/capstone.h>
#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/hook/move.h"

enum { REASONS = 32, FAR = 0x123450, WRONG_SHOWN = 20 };

static struct {
	size_t files, functions, moved, wrong, shared;
	struct {
		const char *why;
		size_t count;
		char example[160];
	} refused[REASONS];
} sum;

static size_t limit = SIZE_MAX;
static csh x86, arm64;
static const char *file_name;

/* ---- Reading what came out ---- */

struct check {
	const struct weft__entry_code *e;
	const struct weft__moved *m;
	cs_insn *from, *to; /* of the function, of the slot */
	uint64_t from_at, to_at;
	const uint8_t *from_code, *to_code;
	size_t from_room, to_room;
};

static bool next_from(struct check *c, csh decoder)
{
	return cs_disasm_iter(decoder, &c->from_code, &c->from_room, &c->from_at, c->from);
}

static bool next_to(struct check *c, csh decoder)
{
	return cs_disasm_iter(decoder, &c->to_code, &c->to_room, &c->to_at, c->to);
}

static bool goes_to(const cs_insn *insn, const char *mnemonic, uint64_t target)
{
	const cs_x86 *x = &insn->detail->x86;
	return !strcmp(insn->mnemonic, mnemonic) && x->op_count == 1 && x->operands[0].type == X86_OP_IMM &&
	       (uint64_t)x->operands[0].imm == target;
}

/* What an operand relative to rip points to; 0: there is none. */
static uint64_t points_to(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;
	for (unsigned i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RIP)
			return insn->address + insn->size + (uint64_t)x->operands[i].mem.disp;
	return 0;
}

/* The same instruction but for where rip-relative operands count from. */
static bool is_same(const cs_insn *from, const cs_insn *to)
{
	const cs_x86 *f = &from->detail->x86, *t = &to->detail->x86;
	if (from->id != to->id || from->size != to->size || f->op_count != t->op_count || points_to(from) != points_to(to))
		return false;
	unsigned different = 0;
	for (unsigned i = 0; i < from->size; i++)
		different += from->bytes[i] != to->bytes[i];
	return different == 0 || (points_to(from) != 0 && different <= 4);
}

/* lea rsp, [rsp-8]; mov dword [rsp], low; mov dword [rsp+4], high */
static bool pushes(struct check *c, uint64_t value)
{
	if (strcmp(c->to->mnemonic, "lea") != 0 || strcmp(c->to->op_str, "rsp, [rsp - 8]") != 0)
		return false;
	uint64_t pushed = 0;
	for (int half = 0; half < 2; half++) {
		if (!next_to(c, x86) || strcmp(c->to->mnemonic, "mov") != 0 ||
		    strncmp(c->to->op_str, half ? "dword ptr [rsp + 4]" : "dword ptr [rsp]", half ? 19 : 15) != 0)
			return false;
		pushed |= (uint64_t)(uint32_t)c->to->detail->x86.operands[1].imm << 32 * half;
	}
	return pushed == value && next_to(c, x86);
}

static const char *read_one_x86(struct check *c, bool *ended)
{
	if (!next_from(c, x86) || !next_to(c, x86))
		return "it cannot be decoded";
	bool jumps = cs_insn_group(x86, c->from, CS_GRP_JUMP), calls = cs_insn_group(x86, c->from, CS_GRP_CALL);
	const cs_x86 *x = &c->from->detail->x86;
	bool direct = (jumps || calls) && x->operands[0].type == X86_OP_IMM;
	if (calls) {
		*ended = true;
		if (!pushes(c, c->from->address + c->from->size))
			return "the return address is another";
		if (direct)
			return goes_to(c->to, "jmp", (uint64_t)x->operands[0].imm) ? NULL : "a call goes elsewhere";
		return !strcmp(c->to->mnemonic, "jmp") && points_to(c->from) == points_to(c->to) &&
			       (points_to(c->from) || !strcmp(c->from->op_str, c->to->op_str))
			   ? NULL
			   : "a call goes elsewhere";
	}
	*ended = cs_insn_group(x86, c->from, CS_GRP_RET) || c->from->id == X86_INS_JMP;
	if (direct)
		return goes_to(c->to, c->from->mnemonic, (uint64_t)x->operands[0].imm) ? NULL : "a jump goes elsewhere";
	return is_same(c->from, c->to) ? NULL : "an instruction is another";
}

/* What a file's functions jump to outside of themselves, and what was moved of each. */
struct range {
	uint64_t begin, end;
	const char *name;
};

static struct {
	uint64_t *targets;
	struct range *moved;
	size_t target_count, target_room, moved_count, moved_room;
} jumps;

static void *one_more(void *items, size_t count, size_t *readable_bytes, size_t bytes)
{
	if (count < *readable_bytes)
		return items;
	*readable_bytes = *readable_bytes ? 2 * *readable_bytes : 1024;
	void *more = realloc(items, *readable_bytes * bytes);
	if (!more)
		exit(2);
	return more;
}

static void add_target(uint64_t target)
{
	jumps.targets = one_more(jumps.targets, jumps.target_count, &jumps.target_room, sizeof *jumps.targets);
	jumps.targets[jumps.target_count++] = target;
}

static void add_moved(uint64_t begin, uint64_t end, const char *name)
{
	jumps.moved = one_more(jumps.moved, jumps.moved_count, &jumps.moved_room, sizeof *jumps.moved);
	jumps.moved[jumps.moved_count++] = (struct range){begin, end, name};
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void wrong(const char *name, uint64_t at, const char *why)
{
	if (sum.wrong++ < WRONG_SHOWN)
		printf("WRONG: %s in %s (%#" PRIx64 "): %s\n", name, file_name, at, why);
}

/* Where one function jumps into the middle of what was moved of another.  In a process that entry is refused; here a function is
 * looked at without the others. */
static void check_jumps(void)
{
	if (jumps.target_count)
		qsort(jumps.targets, jumps.target_count, sizeof *jumps.targets, by_value);
	for (size_t i = 0; i < jumps.moved_count; i++) {
		size_t low = 0, high = jumps.target_count;
		while (low < high) {
			size_t middle = (low + high) / 2;
			if (jumps.targets[middle] <= jumps.moved[i].begin)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < jumps.target_count && jumps.targets[low] < jumps.moved[i].end)
			if (sum.shared++ < WRONG_SHOWN)
				printf("shared: %s in %s\n", jumps.moved[i].name, file_name);
	}
	jumps.target_count = jumps.moved_count = 0;
}

/* No other instruction of the function may jump to one that is moved. */
static const char *read_jumps_x86(const struct check *c)
{
	uint64_t at = c->e->at, end = at + c->m->patch_at + c->m->moved_bytes;
	const uint8_t *code = c->e->code;
	size_t readable_bytes = c->e->bytes;
	while (cs_disasm_iter(x86, &code, &readable_bytes, &at, c->from)) {
		const cs_x86 *x = &c->from->detail->x86;
		bool jumps_out = cs_insn_group(x86, c->from, CS_GRP_JUMP) && x->operands[0].type == X86_OP_IMM &&
				 (uint64_t)x->operands[0].imm - c->e->at >= c->e->bytes;
		if (jumps_out)
			add_target((uint64_t)x->operands[0].imm);
		bool inside = cs_insn_group(x86, c->from, CS_GRP_JUMP) && x->operands[0].type == X86_OP_IMM &&
			      (uint64_t)x->operands[0].imm >= c->e->at && (uint64_t)x->operands[0].imm < end;
		if (inside)
			return "a jump leads into what was moved";
	}
	return NULL;
}

static const char *read_x86(struct check *c)
{
	uint64_t end = c->e->at + c->m->patch_at + c->m->moved_bytes;
	bool ended = false;
	const char *why = NULL;
	while (!why && c->from_at < end)
		why = read_one_x86(c, &ended);
	if (!why && !ended && (!next_to(c, x86) || !goes_to(c->to, "jmp", end)))
		why = "it does not go back";
	const uint8_t *patch = c->m->patch;
	size_t readable_bytes = c->m->patch_bytes;
	uint64_t at = c->e->at + c->m->patch_at;
	if (!why && (!cs_disasm_iter(x86, &patch, &readable_bytes, &at, c->to) || !goes_to(c->to, "jmp", c->e->slot)))
		why = "the function does not go to its slot";
	return why ? why : read_jumps_x86(c);
}

/* The address that `ldr reg, .+8` loads, in the slot. */
static uint64_t literal(const struct check *c, const cs_insn *ldr)
{
	uint64_t value, at = (uint64_t)ldr->detail->arm64.operands[1].imm - c->e->slot;
	if (at + sizeof value > WEFT__SLOT_BYTES)
		return 0;
	memcpy(&value, c->m->slot + at, sizeof value);
	return value;
}

/* ldr x17, .+8; br x17; the address. */
static bool leads_to(struct check *c, uint64_t target)
{
	bool right = next_to(c, arm64) && c->to->id == ARM64_INS_LDR && literal(c, c->to) == target && next_to(c, arm64) &&
		     !strcmp(c->to->mnemonic, "br");
	c->to_code += 8;
	c->to_at += 8;
	c->to_room -= 8;
	return right;
}

/* ldr reg, .+8; b over it; the value. */
static bool loads(struct check *c, unsigned reg, uint64_t value)
{
	bool right = next_to(c, arm64) && c->to->id == ARM64_INS_LDR && c->to->detail->arm64.operands[0].reg == reg &&
		     literal(c, c->to) == value && next_to(c, arm64) && c->to->id == ARM64_INS_B &&
		     (uint64_t)c->to->detail->arm64.operands[0].imm == c->to->address + 12;
	c->to_code += 8;
	c->to_at += 8;
	c->to_room -= 8;
	return right;
}

static const char *read_one_arm64(struct check *c, bool *ended)
{
	if (!next_from(c, arm64))
		return next_to(c, arm64)
			   ? "it can be decoded, and could not before"
			   : (c->to_code += 4, c->to_at += 4, c->to_room -= 4, c->from_code += 4, c->from_at += 4, NULL);
	const cs_arm64 *a = &c->from->detail->arm64;
	const cs_arm64_op *last = &a->operands[a->op_count ? a->op_count - 1 : 0];
	uint64_t target = a->op_count ? (uint64_t)last->imm : 0;
	bool relative = a->op_count == 2 && last->type == ARM64_OP_IMM;
	switch (c->from->id) {
	case ARM64_INS_BL:
		*ended = true;
		return loads(c, ARM64_REG_LR, c->from->address + 4) && leads_to(c, target) ? NULL : "a call goes elsewhere";
	case ARM64_INS_ADR:
	case ARM64_INS_ADRP: return loads(c, a->operands[0].reg, target) ? NULL : "an address is another";
	case ARM64_INS_B:
		if (a->cc == ARM64_CC_INVALID) {
			*ended = true;
			return leads_to(c, target) ? NULL : "a jump goes elsewhere";
		} /* fall through */
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ: {
		if (!next_to(c, arm64) || c->to->id != c->from->id || c->to->detail->arm64.cc != a->cc ||
		    (uint64_t)c->to->detail->arm64.operands[a->op_count - 1].imm != c->to->address + 8)
			return "a condition is another";
		uint64_t over = c->to->address + 24;
		if (!next_to(c, arm64) || c->to->id != ARM64_INS_B || (uint64_t)c->to->detail->arm64.operands[0].imm != over)
			return "a jump goes elsewhere";
		return leads_to(c, target) ? NULL : "a jump goes elsewhere";
	}
	case ARM64_INS_LDR:
	case ARM64_INS_LDRSW:
		if (relative) {
			if (!loads(c, ARM64_REG_X17, target) || !next_to(c, arm64))
				return "a literal is another";
			const cs_arm64 *t = &c->to->detail->arm64;
			return c->to->id == c->from->id && t->operands[0].reg == a->operands[0].reg &&
				       t->operands[1].mem.base == ARM64_REG_X17 && t->operands[1].mem.disp == 0
				   ? NULL
				   : "a literal is another";
		} /* fall through */
	default:
		*ended = cs_insn_group(arm64, c->from, CS_GRP_RET);
		return next_to(c, arm64) && c->to->size == 4 && !memcmp(c->to->bytes, c->from->bytes, 4)
			   ? NULL
			   : "an instruction is another";
	}
}

static const char *read_arm64(struct check *c)
{
	uint64_t end = c->e->at + c->m->patch_at + c->m->moved_bytes;
	bool ended = false;
	const char *why = NULL;
	while (!why && c->from_at < end)
		why = read_one_arm64(c, &ended);
	/* A return is followed by a jump back that nothing reaches. */
	if (!why && !ended && !leads_to(c, end))
		why = "it does not go back";
	const uint8_t *patch = c->m->patch + c->m->patch_bytes - 4;
	size_t readable_bytes = 4;
	uint64_t at = c->e->at + c->m->patch_at + c->m->patch_bytes - 4;
	if (!why && (!cs_disasm_iter(arm64, &patch, &readable_bytes, &at, c->to) || c->to->id != ARM64_INS_B ||
			(uint64_t)c->to->detail->arm64.operands[0].imm != c->e->slot))
		why = "the function does not go to its slot";
	return why;
}

static void refuse(const char *why, const char *function)
{
	size_t i = 0;
	while (i < REASONS - 1 && sum.refused[i].why && strcmp(sum.refused[i].why, why) != 0)
		i++;
	sum.refused[i].why = why;
	if (sum.refused[i].count++ == 0)
		snprintf(sum.refused[i].example, sizeof sum.refused[i].example, "%s in %s", function, file_name);
}

/* ---- Functions ---- */

static void try_function(const struct weft__entry_code *e, bool is_arm, const char *name)
{
	static cs_insn *one, *two;
	if (!one) {
		one = cs_malloc(x86);
		two = cs_malloc(x86);
	}
	struct weft__moved m;
	sum.functions++;
	const char *why = is_arm ? weft__move_arm64(e, &m) : weft__move_x86(e, &m);
	if (why) {
		refuse(why, name);
		return;
	}
	struct check c = {
	    .e = e, .m = &m, .from = one, .to = two, .from_at = e->at, .from_code = e->code, .from_room = e->readable_bytes};
	/* What stays at the function's place, endbr64 or a bti, is in the slot too, where the original begins. */
	c.to_code = m.slot + m.original;
	c.to_at = e->slot + m.original;
	c.to_room = m.slot_bytes - m.original;
	why = is_arm ? read_arm64(&c) : read_x86(&c);
	sum.moved++;
	if (why)
		wrong(name, e->at, why);
	add_moved(e->at + m.patch_at, e->at + m.patch_at + m.moved_bytes, name);
}

/* The segment that an address is in. */
static const Elf64_Phdr *segment_of(const Elf64_Ehdr *e, const unsigned char *file, uint64_t at)
{
	const Elf64_Phdr *p = (const void *)(file + e->e_phoff);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && (p[i].p_flags & PF_X) && at >= p[i].p_vaddr && at < p[i].p_vaddr + p[i].p_filesz)
			return &p[i];
	return NULL;
}

static void try_table(const unsigned char *file, size_t size, const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Shdr *names = &sections[table->sh_link];
	if (table->sh_offset > size || table->sh_size > size - table->sh_offset)
		return;
	const Elf64_Sym *symbols = (const void *)(file + table->sh_offset);
	for (size_t i = 0; i < table->sh_size / sizeof *symbols && sum.functions < limit; i++) {
		const Elf64_Sym *s = &symbols[i];
		const Elf64_Phdr *p = segment_of(e, file, s->st_value);
		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF || !p || p->p_offset + p->p_filesz > size)
			continue;
		struct weft__entry_code code = {.code = file + p->p_offset + (s->st_value - p->p_vaddr),
		    .bytes = s->st_size,
		    .readable_bytes = p->p_filesz - (s->st_value - p->p_vaddr),
		    .at = s->st_value + 0x10000000,
		    .slot = ((s->st_value + 0x10000000) & -64ull) - FAR * 64,
		    .wrapper = 0x123456789abc};
		try_function(&code, e->e_machine == EM_AARCH64, (const char *)file + names->sh_offset + s->st_name);
	}
}

static void try_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	size_t size = (size_t)st.st_size;
	unsigned char *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	const Elf64_Ehdr *e = (const void *)file;
	bool right = !memcmp(e->e_ident, ELFMAG, SELFMAG) && e->e_ident[EI_CLASS] == ELFCLASS64 &&
		     (e->e_type == ET_DYN || e->e_type == ET_EXEC) && (e->e_machine == EM_X86_64 || e->e_machine == EM_AARCH64) &&
		     e->e_shoff && e->e_shoff + e->e_shnum * sizeof(Elf64_Shdr) <= size;
	if (right) {
		const Elf64_Shdr *sections = (const void *)(file + e->e_shoff);
		size_t table = 0;
		for (size_t i = 0; i < e->e_shnum; i++)
			if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && !table))
				table = i;
		file_name = path;
		sum.files++;
		if (table)
			try_table(file, size, sections, &sections[table]);
		check_jumps();
	}
	munmap(file, size);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)walk;
	if (type == FTW_F && S_ISREG(st->st_mode) && sum.functions < limit)
		try_file(path);
	return 0;
}

int main(int argc, char **argv)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &x86) || cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &arm64) ||
	    cs_option(x86, CS_OPT_DETAIL, CS_OPT_ON) || cs_option(arm64, CS_OPT_DETAIL, CS_OPT_ON))
		return 2;
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--limit=", 8))
			limit = strtoul(argv[i] + 8, NULL, 10);
		else if (nftw(argv[i], visit, 16, FTW_PHYS) != 0)
			try_file(argv[i]);
	printf("%zu files, %zu functions: %zu moved, %zu of them wrong\n", sum.files, sum.functions, sum.moved, sum.wrong);
	if (sum.shared)
		printf("%8zu of the moved are jumped into by other functions: refused in a process\n", sum.shared);
	for (size_t i = 0; i < REASONS && sum.refused[i].why; i++)
		printf("%8zu refused: %s (%s)\n", sum.refused[i].count, sum.refused[i].why, sum.refused[i].example);
	return sum.wrong || !sum.moved;
}
