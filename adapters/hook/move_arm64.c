/* move_arm64.c: moves instructions of AArch64.
 *
 * One AArch64 instruction is long enough for a jump.  Eight forms of instructions depend on their own address, and a bit mask
 * recognises each form (Arm's manual, C4.1), so no decoder is needed. x16 and x17 are free at a function's entry, where the
 * linker's veneers use them too.  This file is built for every CPU, so that tests can compare it with a decoder wherever one is
 * available.  SPDX-License-Identifier: ISC
 */
#include <string.h>

#include "adapters/hook/move.h"

enum { WORD_BYTES = 4, RELAY_BYTES = 16, MAX_SCANNED_BYTES = 4096 };

enum {
	NOP = 0xd503201f,
	BTI_C = 0xd503245f,
	PACIASP = 0xd503233f,
	PACIBSP = 0xd503237f,
	BTI_FIRST = 0xd503241f, /* encodings of bti, bti c, bti j and bti jc */
	BTI_MASK = 0xffffff3f,
	LDR_X17_8 = 0x58000051, /* ldr x17, .+8 */
	BR_X17 = 0xd61f0220,
	B_OPCODE = 0x14000000
};

static uint32_t read_word(const struct weft__entry_code *e, size_t offset)
{
	uint32_t word;
	memcpy(&word, e->code + offset, sizeof word);
	return word;
}

/* Returns the signed bit field of `bits` bits from bit `first`, as a distance in bytes. */
static int64_t get_distance(uint32_t word, unsigned first, unsigned bits)
{
	return ((int64_t)((uint64_t)(word >> first) << (64 - bits)) >> (64 - bits)) * WORD_BYTES;
}

enum form { PLAIN, JUMP, CALL, JUMP_IF, COMPARE_JUMP, TEST_JUMP, ADDRESS, PAGE, LITERAL };

static enum form get_form(uint32_t w)
{
	if ((w & 0xfc000000) == 0x14000000)
		return JUMP;
	if ((w & 0xfc000000) == 0x94000000)
		return CALL;
	if ((w & 0xff000000) == 0x54000000) /* b.cond, bc.cond */
		return JUMP_IF;
	if ((w & 0x7e000000) == 0x34000000)
		return COMPARE_JUMP;
	if ((w & 0x7e000000) == 0x36000000)
		return TEST_JUMP;
	if ((w & 0x9f000000) == 0x10000000)
		return ADDRESS;
	if ((w & 0x9f000000) == 0x90000000)
		return PAGE;
	if ((w & 0x3b000000) == 0x18000000)
		return LITERAL;
	return PLAIN;
}

/* Returns the address that an instruction refers to; 0 if the instruction is PLAIN. */
static uint64_t get_target(uint32_t w, uint64_t at)
{
	switch (get_form(w)) {
	case JUMP:
	case CALL: return at + (uint64_t)get_distance(w, 0, 26);
	case TEST_JUMP: return at + (uint64_t)get_distance(w, 5, 14);
	case ADDRESS:
	case PAGE: {
		/* The immediate of adr and adrp has 19 high bits and 2 low bits. */
		int64_t value = get_distance(w, 5, 19) | (int64_t)(w >> 29 & 3);
		return get_form(w) == PAGE ? (at & ~(uint64_t)4095) + ((uint64_t)value << 12) : at + (uint64_t)value;
	}
	case JUMP_IF:
	case COMPARE_JUMP:
	case LITERAL: return at + (uint64_t)get_distance(w, 5, 19);
	case PLAIN: break;
	}
	return 0;
}

struct move {
	const struct weft__entry_code *e;
	struct weft__moved *out;
	unsigned to;
};

static void append_word(struct move *m, uint32_t word)
{
	memcpy(m->out->slot + m->to, &word, sizeof word);
	m->to += WORD_BYTES;
}

/* Appends a load of a 64-bit value; the value follows, behind a jump that skips it. */
static void append_load(struct move *m, unsigned reg, uint64_t value)
{
	append_word(m, 0x58000040 | reg); /* ldr reg, .+8 */
	append_word(m, B_OPCODE | 3);
	append_word(m, (uint32_t)value);
	append_word(m, (uint32_t)(value >> 32));
}

static void append_jump(struct move *m, uint64_t target)
{
	append_word(m, LDR_X17_8);
	append_word(m, BR_X17);
	append_word(m, (uint32_t)target);
	append_word(m, (uint32_t)(target >> 32));
}

/* Replaces a load from a literal's address by a load from x17, into which the literal's address is loaded first. */
static const char *append_literal(struct move *m, uint32_t w, uint64_t target)
{
	/* Encodings of ldr w, ldr x, ldrsw; prfm becomes a nop. */
	static const uint32_t general[4] = {0xb9400000, 0xf9400000, 0xb9800000, NOP};
	static const uint32_t vector[4] = {0xbd400000, 0xfd400000, 0x3dc00000, 0}; /* ldr s, d, q */
	uint32_t form = (w & 0x04000000 ? vector : general)[w >> 30];
	if (!form)
		return "an unknown instruction";
	append_load(m, 17, target);
	append_word(m, form == NOP ? NOP : form | 17 << 5 | (w & 31));
	return NULL;
}

/* Appends the moved instruction.  Sets *ended if no instruction after the moved instruction can run. */
static const char *move_instruction(struct move *m, uint32_t w, uint64_t at, bool *ended)
{
	uint64_t target = get_target(w, at);
	switch (get_form(w)) {
	case PLAIN: append_word(m, w); return NULL;
	case ADDRESS:
	case PAGE: append_load(m, w & 31, target); return NULL;
	case LITERAL: return append_literal(m, w, target);
	case JUMP:
		*ended = true;
		append_jump(m, target);
		return NULL;
	case CALL:
		*ended = true;
		append_load(m, 30, at + WORD_BYTES);
		append_jump(m, target);
		return NULL;
	case JUMP_IF:
	/* If the condition holds, the code jumps two words on, to the long jump; else it skips the long jump. */
	case COMPARE_JUMP: append_word(m, (w & ~(uint32_t)(0x7ffff << 5)) | 2 << 5); break;
	case TEST_JUMP: append_word(m, (w & ~(uint32_t)(0x3fff << 5)) | 2 << 5); break;
	}
	append_word(m, B_OPCODE | 5);
	append_jump(m, target);
	return NULL;
}

static bool has_jump_back(const struct weft__entry_code *e, unsigned moved)
{
	size_t size = e->bytes ? e->bytes : MAX_SCANNED_BYTES;
	size = size < e->readable_bytes ? size : e->readable_bytes;
	for (size_t i = 0; i + WORD_BYTES <= size; i += WORD_BYTES) {
		enum form form = get_form(read_word(e, i));
		if ((form == JUMP || form == JUMP_IF || form == COMPARE_JUMP || form == TEST_JUMP) &&
		    get_target(read_word(e, i), e->at + i) - e->at < moved)
			return true;
	}
	return false;
}

const char *weft__move_arm64(const struct weft__entry_code *e, struct weft__moved *out)
{
	memset(out, 0, sizeof *out);
	struct move m = {.e = e, .out = out};
	append_jump(&m, e->wrapper);
	out->original = m.to;
	if (e->readable_bytes < 2 * WORD_BYTES || (e->bytes && e->bytes < WORD_BYTES) || e->at % WORD_BYTES)
		return "it is too short";
	uint32_t first = read_word(e, 0);
	bool is_pad = (first & BTI_MASK) == BTI_FIRST, signs = first == PACIASP || first == PACIBSP, ended = false;
	/* Indirect calls may only land on a bti instruction or on a signing instruction.  A bti stays.  A signing instruction is
	 * replaced by a bti, because the wrapper must see the unsigned return address. */
	unsigned words = is_pad || signs ? 2 : 1;
	if (words == 2 && e->bytes && e->bytes < 2 * WORD_BYTES)
		return "it is too short";
	const char *refusal = NULL;
	for (unsigned i = 0; i < words && !refusal && !ended; i++)
		refusal = move_instruction(&m, read_word(e, i * (size_t)WORD_BYTES), e->at + i * (uint64_t)WORD_BYTES, &ended);
	if (!refusal && has_jump_back(e, words * WORD_BYTES))
		refusal = "it jumps back to its first instructions";
	if (refusal)
		return refusal;
	if (!ended)
		append_jump(&m, e->at + words * (uint64_t)WORD_BYTES);
	out->patch_at = is_pad ? WORD_BYTES : 0;
	uint64_t jump_at = e->at + (words - 1) * (uint64_t)WORD_BYTES;
	int64_t distance = (int64_t)(e->slot - jump_at);
	if (distance < -(1 << 27) || distance >= 1 << 27 || distance % WORD_BYTES)
		return "its slot is too far away";
	uint32_t patch[2] = {BTI_C, B_OPCODE | ((uint32_t)(distance >> 2) & 0x3ffffff)};
	out->patch_bytes = signs ? 2 * WORD_BYTES : WORD_BYTES;
	memcpy(out->patch, signs ? patch : patch + 1, out->patch_bytes);
	out->moved_bytes = words * WORD_BYTES - out->patch_at;
	out->slot_bytes = m.to;
	return NULL;
}

#if defined(__aarch64__)
void weft__move_close(void)
{
}
#endif
