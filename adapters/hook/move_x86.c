/* move_x86.c: moving instructions of x86-64, which Capstone decodes.  SPDX-License-Identifier: ISC */
#include <capstone/capstone.h>
#include <string.h>

#include "adapters/hook/move.h"

enum { JUMP = 5, RELAY = 16, LONGEST = 15, SCANNED = 4096, RET = 0xc3 };

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

/* The state of one entry's move. */
struct move {
	const struct weft__entry_code *e;
	struct weft__moved *out;
	unsigned done; /* bytes of the function that are moved, or stay */
	unsigned to;   /* where the next byte goes in the slot */
	bool ended;    /* what is in the slot does not go on behind its last instruction */
};

enum flow { FLOW_ON, FLOW_RETURN, FLOW_JUMP, FLOW_JUMP_IF, FLOW_CALL, FLOW_JUMP_BY, FLOW_CALL_BY, FLOW_REFUSED };

/* Where the opcode stands, behind prefixes. */
static unsigned opcode_at(const uint8_t *bytes, unsigned count)
{
	unsigned i = 0;
	while (i + 1 < count && memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", bytes[i], 11))
		i++;
	return i + 1 < count && (bytes[i] & 0xf0) == 0x40 ? i + 1 : i;
}

static enum flow flow_by_bytes(void)
{
	const uint8_t *op = insn->bytes + opcode_at(insn->bytes, insn->size), reg = op[1] >> 3 & 7;
	if (op[0] == 0x0f)
		return (op[1] & 0xf0) == 0x80                            ? FLOW_JUMP_IF
		       : op[1] == 0x0b || op[1] == 0xb9 || op[1] == 0xff ? FLOW_REFUSED
									 : FLOW_ON;
	if ((op[0] & 0xf0) == 0x70)
		return FLOW_JUMP_IF;
	switch (op[0]) {
	case 0xc2:
	case 0xc3: return FLOW_RETURN;
	case 0xe8: return FLOW_CALL;
	case 0xe9:
	case 0xeb: return FLOW_JUMP;
	case 0xff: return reg == 2 ? FLOW_CALL_BY : reg == 4 ? FLOW_JUMP_BY : reg == 3 || reg == 5 ? FLOW_REFUSED : FLOW_ON;
	case 0xc7: return op[1] == 0xf8 ? FLOW_REFUSED : FLOW_ON; /* xbegin */
	case 0xca:                                                /* far returns, traps, breakpoints */
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
	case 0xe0: /* loop, jrcxz: eight bits of distance, and no longer form */
	case 0xe1:
	case 0xe2:
	case 0xe3:
	case 0xf1:
	case 0xf4: return FLOW_REFUSED;
	default: return FLOW_ON;
	}
}

/* Capstone has to agree. */
static enum flow flow_of_insn(void)
{
	enum flow flow = flow_by_bytes();
	bool leaves = cs_insn_group(decoder, insn, CS_GRP_JUMP) || cs_insn_group(decoder, insn, CS_GRP_CALL) ||
		      cs_insn_group(decoder, insn, CS_GRP_RET) || cs_insn_group(decoder, insn, CS_GRP_IRET);
	return flow == FLOW_ON && leaves ? FLOW_REFUSED : flow;
}

/* Decodes what stands at that offset; false: nobody knows it. */
static bool decode(const struct weft__entry_code *e, size_t offset)
{
	if (offset >= e->room || (!insn && !open_decoder()))
		return false;
	const uint8_t *code = e->code + offset;
	size_t bytes = e->room - offset < LONGEST ? e->room - offset : LONGEST;
	uint64_t at = e->at + offset;
	return cs_disasm_iter(decoder, &code, &bytes, &at, insn);
}

static const char *put(struct move *m, const void *bytes, size_t count)
{
	if (m->to + count > WEFT__SLOT_BYTES)
		return "its first instructions are too long";
	memcpy(m->out->slot + m->to, bytes, count);
	m->to += (unsigned)count;
	return NULL;
}

/* An opcode and the distance to a target. */
static const char *put_jump(struct move *m, const void *opcode, size_t count, uint64_t target)
{
	const char *why = put(m, opcode, count);
	int64_t distance = (int64_t)(target - (m->e->slot + m->to + 4));
	if (!why && distance != (int32_t)distance)
		return "a target is too far away";
	int32_t d = (int32_t)distance;
	return why ? why : put(m, &d, sizeof d);
}

/* The instruction with its displacement from rip, if it has one, made right for the slot. */
static const char *put_copy(struct move *m, const uint8_t *bytes)
{
	const cs_x86 *x = &insn->detail->x86;
	bool relative = false;
	for (unsigned i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM)
			continue;
		if (x->operands[i].mem.base == X86_REG_EIP || x->operands[i].mem.index == X86_REG_EIP)
			return "an address of 32 bits";
		relative |= x->operands[i].mem.base == X86_REG_RIP;
	}
	uint8_t copy[LONGEST];
	memcpy(copy, bytes, insn->size);
	/* Told by the encoding too: Capstone does not list the operands of every instruction. */
	bool encoded = (x->modrm & 0xc7) == 5 && x->encoding.modrm_offset != 0;
	if (relative != encoded)
		return "an instruction that is not known";
	if (relative) {
		unsigned place = x->encoding.disp_offset;
		int32_t d;
		if (x->encoding.disp_size != 4 || place != x->encoding.modrm_offset + 1u || place + 4 > insn->size)
			return "an instruction that is not known";
		memcpy(&d, copy + place, sizeof d);
		int64_t moved = (int64_t)(insn->address + (uint64_t)(int64_t)d - (m->e->slot + m->to));
		if (moved != (int32_t)moved)
			return "a target is too far away";
		d = (int32_t)moved;
		memcpy(copy + place, &d, sizeof d);
	}
	return put(m, copy, insn->size);
}

/* Pushes where the call would return to, without a change of the flags. */
static const char *put_return(struct move *m)
{
	uint8_t code[] = {0x48, 0x8d, 0x64, 0x24, 0xf8, /* lea rsp, [rsp-8] */
	    0xc7, 0x04, 0x24, 0, 0, 0, 0,               /* mov dword [rsp], low half */
	    0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0};        /* mov dword [rsp+4], high half */
	uint64_t back = m->e->at + m->done + insn->size;
	uint32_t low = (uint32_t)back, high = (uint32_t)(back >> 32);
	memcpy(code + 8, &low, sizeof low);
	memcpy(code + 16, &high, sizeof high);
	return put(m, code, sizeof code);
}

/* A call: it is the last instruction that is moved, so that it returns behind the patch. */
static const char *put_call(struct move *m, enum flow flow)
{
	const cs_x86 *x = &insn->detail->x86;
	if (m->e->shadow_stack)
		return "a call, where calls may not be replaced";
	if (m->done + insn->size < m->out->patch_at + JUMP)
		return "a call that would return into the jump";
	if (flow == FLOW_CALL) {
		const char *why = put_return(m);
		return why ? why : put_jump(m, "\xe9", 1, (uint64_t)x->operands[0].imm);
	}
	for (unsigned i = 0; i < x->op_count; i++)
		if ((x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RSP) ||
		    (x->operands[i].type == X86_OP_REG && x->operands[i].reg == X86_REG_RSP))
			return "a call by way of the stack";
	uint8_t as_jump[LONGEST];
	memcpy(as_jump, m->e->code + m->done, insn->size);
	as_jump[x->encoding.modrm_offset] ^= 6 << 3; /* /2, a call, becomes /4, a jump */
	const char *why = put_return(m);
	return why ? why : put_copy(m, as_jump);
}

static const char *move_one(struct move *m)
{
	const cs_x86 *x = &insn->detail->x86;
	enum flow flow = flow_of_insn();
	const uint8_t *code = m->e->code + m->done;
	bool by_distance = flow == FLOW_JUMP || flow == FLOW_JUMP_IF || flow == FLOW_CALL;
	if (flow == FLOW_REFUSED)
		return "an instruction that cannot be moved";
	if (by_distance && (x->op_count != 1 || x->operands[0].type != X86_OP_IMM || x->prefix[2] == 0x66))
		return "an instruction that is not known";
	switch (flow) {
	case FLOW_JUMP: m->ended = true; return put_jump(m, "\xe9", 1, (uint64_t)x->operands[0].imm);
	case FLOW_JUMP_IF: {
		const uint8_t *op = insn->bytes + opcode_at(insn->bytes, insn->size);
		uint8_t longer[2] = {0x0f, (uint8_t)(0x80 | ((op[0] == 0x0f ? op[1] : op[0]) & 15))};
		return put_jump(m, longer, sizeof longer, (uint64_t)x->operands[0].imm);
	}
	case FLOW_CALL:
	case FLOW_CALL_BY: m->ended = true; return put_call(m, flow);
	case FLOW_RETURN:
	case FLOW_JUMP_BY: m->ended = true; return put_copy(m, code);
	case FLOW_ON:
	case FLOW_REFUSED: break;
	}
	return put_copy(m, code);
}

/* Where in the function an instruction may jump into its first `moved` bytes, by its bytes alone: quick, and never blind. */
static bool may_jump_back(const struct weft__entry_code *e, size_t from, size_t size, unsigned moved)
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

/* A function that jumps back into its first instructions would find the jump there. */
static bool jumps_back(const struct weft__entry_code *e, const struct move *m)
{
	size_t size = e->bytes ? e->bytes : SCANNED;
	size = size < e->room ? size : e->room;
	if (!may_jump_back(e, m->out->patch_at, size, m->done))
		return false;
	for (size_t i = m->out->patch_at; i < size; i += insn->size) {
		if (!decode(e, i))
			return true;
		enum flow flow = flow_of_insn();
		const cs_x86 *x = &insn->detail->x86;
		bool jumps = flow == FLOW_JUMP || flow == FLOW_JUMP_IF || (flow == FLOW_REFUSED && x->op_count == 1);
		if (jumps && x->operands[0].type == X86_OP_IMM && (uint64_t)x->operands[0].imm - e->at < m->done)
			return true;
	}
	return false;
}

/* The length of the nop, or trap, that compilers fill with; 0: something else.  Told without the decoder, which takes a moment to
 * open: every process takes one function that is a single ret, the loader's. */
static unsigned filling_bytes(const uint8_t *code, size_t room)
{
	/* Behind 0f 1f: by the byte of mod and r/m. */
	static const uint8_t by_mode[256] = {[0x00] = 1, [0x40] = 2, [0x44] = 3, [0x80] = 5, [0x84] = 6};
	unsigned i = 0;
	while (i < room && i < LONGEST - 8 && (code[i] == 0x66 || code[i] == 0x2e))
		i++;
	if (i < room && (code[i] == 0x90 || (i == 0 && code[i] == 0xcc)))
		return i + 1;
	if (i + 2 < room && code[i] == 0x0f && code[i + 1] == 0x1f && by_mode[code[i + 2]])
		return i + 2 + by_mode[code[i + 2]];
	return 0;
}

/* What follows a function that is too short for a jump. */
static bool is_filling(const struct weft__entry_code *e, unsigned from, unsigned to)
{
	if (!e->bytes || from < e->bytes || to > e->room)
		return false;
	for (unsigned i = from, bytes; i < to; i += bytes)
		if (!(bytes = filling_bytes(e->code + i, e->room - i)))
			return false;
	return true;
}

const char *weft__move_x86(const struct weft__entry_code *e, struct weft__moved *out)
{
	static const uint8_t by_memory[6] = {0xff, 0x25}; /* jmp [rip+0]: the address follows */
	memset(out, 0, sizeof *out);
	memset(out->slot, 0xcc, sizeof out->slot);
	memcpy(out->slot, by_memory, sizeof by_memory);
	memcpy(out->slot + sizeof by_memory, &e->wrapper, sizeof e->wrapper);
	struct move m = {.e = e, .out = out, .to = RELAY};
	out->original = RELAY;
	const char *why = NULL;
	if (e->room >= sizeof endbr64 && !memcmp(e->code, endbr64, sizeof endbr64)) {
		why = put(&m, endbr64, sizeof endbr64);
		m.done = out->patch_at = sizeof endbr64;
	}
	if (e->bytes == m.done + 1 && m.done < e->room && e->code[m.done] == RET) {
		why = put(&m, e->code + m.done, 1);
		m.ended = true;
		m.done++;
	}
	while (!why && !m.ended && m.done < out->patch_at + JUMP) {
		if (!decode(e, m.done))
			return insn ? "an instruction that is not known" : "there is no memory";
		if (e->bytes && m.done + insn->size > e->bytes)
			return "it is too short";
		why = move_one(&m);
		m.done += insn->size;
	}
	if (!why && m.done < out->patch_at + JUMP && !is_filling(e, m.done, out->patch_at + JUMP))
		why = "it is too short";
	if (!why && jumps_back(e, &m))
		why = "it jumps back to its first instructions";
	if (!why && !m.ended)
		why = put_jump(&m, "\xe9", 1, e->at + m.done);
	int64_t distance = (int64_t)(e->slot - (e->at + out->patch_at + JUMP));
	if (!why && distance != (int32_t)distance)
		why = "its slot is too far away";
	if (why)
		return why;
	int32_t d = (int32_t)distance;
	out->patch[0] = 0xe9;
	memcpy(out->patch + 1, &d, sizeof d);
	out->patch_bytes = JUMP;
	out->moved_bytes = m.done - out->patch_at;
	out->slot_bytes = m.to;
	return NULL;
}
