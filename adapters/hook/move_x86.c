/* move_x86.c: moves instructions of x86-64, with Capstone as the decoder.  SPDX-License-Identifier: ISC */
#include <capstone/capstone.h>
#include <string.h>

#include "adapters/hook/move.h"

enum { JUMP_BYTES = 5, RELAY_BYTES = 16, MAX_INSTRUCTION_BYTES = 15, MAX_SCANNED_BYTES = 4096, RET_OPCODE = 0xc3 };

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

static csh decoder;
static cs_insn *insn;

static bool open_decoder(void)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder) != CS_ERR_OK)
		return false;
	if (cs_option(decoder, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
		insn = cs_malloc(decoder);
	if (!insn)
		cs_close(&decoder);
	return insn != NULL;
}

void weft__move_close(void)
{
	if (!insn)
		return;
	cs_free(insn, 1);
	cs_close(&decoder);
	insn = NULL;
}

/* State of the move of one function. */
struct move {
	const struct weft__entry_code *e;
	struct weft__moved *out;
	unsigned done; /* number of the function's bytes that are moved or stay */
	unsigned to;   /* offset of the next byte in the slot */
	bool ended;    /* whether control never reaches the end of the slot's code */
};

enum flow { FLOW_NEXT, FLOW_RETURN, FLOW_JUMP, FLOW_JUMP_IF, FLOW_CALL, FLOW_JUMP_INDIRECT, FLOW_CALL_INDIRECT, FLOW_REFUSED };

/* Returns the offset of the opcode, which follows the prefixes. */
static unsigned find_opcode(const uint8_t *bytes, unsigned count)
{
	unsigned i = 0;
	while (i + 1 < count && memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", bytes[i], 11))
		i++;
	return i + 1 < count && (bytes[i] & 0xf0) == 0x40 ? i + 1 : i;
}

static enum flow get_flow_by_bytes(void)
{
	const uint8_t *op = insn->bytes + find_opcode(insn->bytes, insn->size), reg = op[1] >> 3 & 7;
	if (op[0] == 0x0f)
		return (op[1] & 0xf0) == 0x80                            ? FLOW_JUMP_IF
		       : op[1] == 0x0b || op[1] == 0xb9 || op[1] == 0xff ? FLOW_REFUSED
									 : FLOW_NEXT;
	if ((op[0] & 0xf0) == 0x70)
		return FLOW_JUMP_IF;
	switch (op[0]) {
	case 0xc2:
	case 0xc3: return FLOW_RETURN;
	case 0xe8: return FLOW_CALL;
	case 0xe9:
	case 0xeb: return FLOW_JUMP;
	case 0xff:
		return reg == 2               ? FLOW_CALL_INDIRECT
		       : reg == 4             ? FLOW_JUMP_INDIRECT
		       : reg == 3 || reg == 5 ? FLOW_REFUSED
					      : FLOW_NEXT;
	case 0xc7: return op[1] == 0xf8 ? FLOW_REFUSED : FLOW_NEXT; /* xbegin */
	case 0xca:                                                  /* far returns, traps, breakpoints */
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
	case 0xe0: /* loop and jrcxz: these instructions have only an 8-bit distance */
	case 0xe1:
	case 0xe2:
	case 0xe3:
	case 0xf1:
	case 0xf4: return FLOW_REFUSED;
	default: return FLOW_NEXT;
	}
}

/* Returns the control flow of the instruction; refuses an instruction that only Capstone takes for a jump, call or return. */
static enum flow get_flow(void)
{
	enum flow flow = get_flow_by_bytes();
	bool leaves = cs_insn_group(decoder, insn, CS_GRP_JUMP) || cs_insn_group(decoder, insn, CS_GRP_CALL) ||
		      cs_insn_group(decoder, insn, CS_GRP_RET) || cs_insn_group(decoder, insn, CS_GRP_IRET);
	return flow == FLOW_NEXT && leaves ? FLOW_REFUSED : flow;
}

/* Decodes the instruction at that offset of the function.  Returns false if the instruction is unknown. */
static bool decode_at(const struct weft__entry_code *e, size_t offset)
{
	if (offset >= e->readable_bytes || (!insn && !open_decoder()))
		return false;
	const uint8_t *code = e->code + offset;
	size_t bytes = e->readable_bytes - offset < MAX_INSTRUCTION_BYTES ? e->readable_bytes - offset : MAX_INSTRUCTION_BYTES;
	uint64_t at = e->at + offset;
	return cs_disasm_iter(decoder, &code, &bytes, &at, insn);
}

static const char *append_code(struct move *m, const void *bytes, size_t count)
{
	if (m->to + count > WEFT__SLOT_BYTES)
		return "its first instructions are too long";
	memcpy(m->out->slot + m->to, bytes, count);
	m->to += (unsigned)count;
	return NULL;
}

/* Appends a jump: an opcode and the 32-bit distance to the target. */
static const char *append_jump(struct move *m, const void *opcode, size_t count, uint64_t target)
{
	const char *refusal = append_code(m, opcode, count);
	int64_t distance = (int64_t)(target - (m->e->slot + m->to + 4));
	if (!refusal && distance != (int32_t)distance)
		return "a target is too far away";
	int32_t d = (int32_t)distance;
	return refusal ? refusal : append_code(m, &d, sizeof d);
}

/* Appends the instruction, with a corrected displacement if its operand is relative to rip. */
static const char *append_copy(struct move *m, const uint8_t *bytes)
{
	const cs_x86 *x = &insn->detail->x86;
	bool relative = false;
	for (unsigned i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM)
			continue;
		if (x->operands[i].mem.base == X86_REG_EIP || x->operands[i].mem.index == X86_REG_EIP)
			return "a 32-bit address";
		relative |= x->operands[i].mem.base == X86_REG_RIP;
	}
	uint8_t copy[MAX_INSTRUCTION_BYTES];
	memcpy(copy, bytes, insn->size);
	/* The encoding must also be checked, because Capstone does not list the operands of every instruction. */
	bool encoded = (x->modrm & 0xc7) == 5 && x->encoding.modrm_offset != 0;
	if (relative != encoded)
		return "an unknown instruction";
	if (relative) {
		unsigned place = x->encoding.disp_offset;
		int32_t d;
		if (x->encoding.disp_size != 4 || place != x->encoding.modrm_offset + 1u || place + 4 > insn->size)
			return "an unknown instruction";
		memcpy(&d, copy + place, sizeof d);
		int64_t moved = (int64_t)(insn->address + (uint64_t)(int64_t)d - (m->e->slot + m->to));
		if (moved != (int32_t)moved)
			return "a target is too far away";
		d = (int32_t)moved;
		memcpy(copy + place, &d, sizeof d);
	}
	return append_code(m, copy, insn->size);
}

/* Appends code that pushes the return address and keeps the CPU's flags. */
static const char *append_return_address(struct move *m)
{
	uint8_t code[] = {0x48, 0x8d, 0x64, 0x24, 0xf8, /* lea rsp, [rsp-8] */
	    0xc7, 0x04, 0x24, 0, 0, 0, 0,               /* mov dword [rsp], low half */
	    0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0};        /* mov dword [rsp+4], high half */
	uint64_t back = m->e->at + m->done + insn->size;
	uint32_t low = (uint32_t)back, high = (uint32_t)(back >> 32);
	memcpy(code + 8, &low, sizeof low);
	memcpy(code + 16, &high, sizeof high);
	return append_code(m, code, sizeof code);
}

/* Appends a call.  The call must be the last moved instruction, so that it returns behind the patch. */
static const char *append_call(struct move *m, enum flow flow)
{
	const cs_x86 *x = &insn->detail->x86;
	if (m->e->shadow_stack)
		return "a call, which must stay a call because of the shadow stack";
	if (m->done + insn->size < m->out->patch_at + JUMP_BYTES)
		return "a call that would return into the jump";
	if (flow == FLOW_CALL) {
		const char *refusal = append_return_address(m);
		return refusal ? refusal : append_jump(m, "\xe9", 1, (uint64_t)x->operands[0].imm);
	}
	for (unsigned i = 0; i < x->op_count; i++)
		if ((x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RSP) ||
		    (x->operands[i].type == X86_OP_REG && x->operands[i].reg == X86_REG_RSP))
			return "a call through the stack pointer";
	uint8_t as_jump[MAX_INSTRUCTION_BYTES];
	memcpy(as_jump, m->e->code + m->done, insn->size);
	as_jump[x->encoding.modrm_offset] ^= 6 << 3; /* opcode extension /2 (call) becomes /4 (jump) */
	const char *refusal = append_return_address(m);
	return refusal ? refusal : append_copy(m, as_jump);
}

static const char *move_instruction(struct move *m)
{
	const cs_x86 *x = &insn->detail->x86;
	enum flow flow = get_flow();
	const uint8_t *code = m->e->code + m->done;
	bool by_distance = flow == FLOW_JUMP || flow == FLOW_JUMP_IF || flow == FLOW_CALL;
	if (flow == FLOW_REFUSED)
		return "an instruction that cannot be moved";
	if (by_distance && (x->op_count != 1 || x->operands[0].type != X86_OP_IMM || x->prefix[2] == 0x66))
		return "an unknown instruction";
	switch (flow) {
	case FLOW_JUMP: m->ended = true; return append_jump(m, "\xe9", 1, (uint64_t)x->operands[0].imm);
	case FLOW_JUMP_IF: {
		const uint8_t *op = insn->bytes + find_opcode(insn->bytes, insn->size);
		uint8_t longer[2] = {0x0f, (uint8_t)(0x80 | ((op[0] == 0x0f ? op[1] : op[0]) & 15))};
		return append_jump(m, longer, sizeof longer, (uint64_t)x->operands[0].imm);
	}
	case FLOW_CALL:
	case FLOW_CALL_INDIRECT: m->ended = true; return append_call(m, flow);
	case FLOW_RETURN:
	case FLOW_JUMP_INDIRECT: m->ended = true; return append_copy(m, code);
	case FLOW_NEXT:
	case FLOW_REFUSED: break;
	}
	return append_copy(m, code);
}

/* Returns whether bytes of the function may be a jump into its first `moved` bytes.  The check is fast; true may be wrong, false
 * is certain. */
static bool may_have_jump_back(const struct weft__entry_code *e, size_t from, size_t size, unsigned moved)
{
	for (size_t i = from; i < size; i++) {
		uint8_t op = e->code[i];
		bool is_short = (op & 0xf0) == 0x70 || op == 0xeb || (op & 0xfc) == 0xe0;
		if (is_short && i + 2 <= size && (size_t)((int64_t)i + 2 + (int8_t)e->code[i + 1]) < moved)
			return true;
		bool is_long = op == 0xe9 || ((op & 0xf0) == 0x80 && i > 0 && e->code[i - 1] == 0x0f);
		int32_t d;
		if (is_long && i + 5 <= size) {
			memcpy(&d, e->code + i + 1, sizeof d);
			if ((size_t)((int64_t)i + 5 + d) < moved)
				return true;
		}
	}
	return false;
}

/* Returns whether the function jumps into its own first instructions, which the patch replaces. */
static bool has_jump_back(const struct weft__entry_code *e, const struct move *m)
{
	size_t size = e->bytes ? e->bytes : MAX_SCANNED_BYTES;
	size = size < e->readable_bytes ? size : e->readable_bytes;
	if (!may_have_jump_back(e, m->out->patch_at, size, m->done))
		return false;
	for (size_t i = m->out->patch_at; i < size; i += insn->size) {
		if (!decode_at(e, i))
			return true;
		enum flow flow = get_flow();
		const cs_x86 *x = &insn->detail->x86;
		bool jumps = flow == FLOW_JUMP || flow == FLOW_JUMP_IF || (flow == FLOW_REFUSED && x->op_count == 1);
		if (jumps && x->operands[0].type == X86_OP_IMM && (uint64_t)x->operands[0].imm - e->at < m->done)
			return true;
	}
	return false;
}

/* Returns the length of a nop or trap that compilers use as padding; 0 if the code is no padding.  The check works without the
 * decoder, which is slow to open: every process patches the loader's function, which is a single ret. */
static unsigned get_padding_bytes(const uint8_t *code, size_t readable_bytes)
{
	/* Number of operand bytes of a nop (0f 1f), by its ModRM byte. */
	static const uint8_t by_mode[256] = {[0x00] = 1, [0x40] = 2, [0x44] = 3, [0x80] = 5, [0x84] = 6};
	unsigned i = 0;
	while (i < readable_bytes && i < MAX_INSTRUCTION_BYTES - 8 && (code[i] == 0x66 || code[i] == 0x2e))
		i++;
	if (i < readable_bytes && (code[i] == 0x90 || (i == 0 && code[i] == 0xcc)))
		return i + 1;
	if (i + 2 < readable_bytes && code[i] == 0x0f && code[i + 1] == 0x1f && by_mode[code[i + 2]])
		return i + 2 + by_mode[code[i + 2]];
	return 0;
}

/* Returns whether the bytes are padding behind a function that is too short for a jump. */
static bool is_padding(const struct weft__entry_code *e, unsigned from, unsigned to)
{
	if (!e->bytes || from < e->bytes || to > e->readable_bytes)
		return false;
	for (unsigned i = from, bytes; i < to; i += bytes)
		if (!(bytes = get_padding_bytes(e->code + i, e->readable_bytes - i)))
			return false;
	return true;
}

const char *weft__move_x86(const struct weft__entry_code *e, struct weft__moved *out)
{
	static const uint8_t by_memory[6] = {0xff, 0x25}; /* jmp [rip+0], which the target's address follows */
	memset(out, 0, sizeof *out);
	memset(out->slot, 0xcc, sizeof out->slot);
	memcpy(out->slot, by_memory, sizeof by_memory);
	memcpy(out->slot + sizeof by_memory, &e->wrapper, sizeof e->wrapper);
	struct move m = {.e = e, .out = out, .to = RELAY_BYTES};
	out->original = RELAY_BYTES;
	const char *refusal = NULL;
	if (e->readable_bytes >= sizeof endbr64 && !memcmp(e->code, endbr64, sizeof endbr64)) {
		refusal = append_code(&m, endbr64, sizeof endbr64);
		m.done = out->patch_at = sizeof endbr64;
	}
	if (e->bytes == m.done + 1 && m.done < e->readable_bytes && e->code[m.done] == RET_OPCODE) {
		refusal = append_code(&m, e->code + m.done, 1);
		m.ended = true;
		m.done++;
	}
	while (!refusal && !m.ended && m.done < out->patch_at + JUMP_BYTES) {
		if (!decode_at(e, m.done))
			return insn ? "an unknown instruction" : "out of memory";
		if (e->bytes && m.done + insn->size > e->bytes)
			return "it is too short";
		refusal = move_instruction(&m);
		m.done += insn->size;
	}
	if (!refusal && m.done < out->patch_at + JUMP_BYTES && !is_padding(e, m.done, out->patch_at + JUMP_BYTES))
		refusal = "it is too short";
	if (!refusal && has_jump_back(e, &m))
		refusal = "it jumps back to its first instructions";
	if (!refusal && !m.ended)
		refusal = append_jump(&m, "\xe9", 1, e->at + m.done);
	int64_t distance = (int64_t)(e->slot - (e->at + out->patch_at + JUMP_BYTES));
	if (!refusal && distance != (int32_t)distance)
		refusal = "its slot is too far away";
	if (refusal)
		return refusal;
	int32_t d = (int32_t)distance;
	out->patch[0] = 0xe9;
	memcpy(out->patch + 1, &d, sizeof d);
	out->patch_bytes = JUMP_BYTES;
	out->moved_bytes = m.done - out->patch_at;
	out->slot_bytes = m.to;
	return NULL;
}
