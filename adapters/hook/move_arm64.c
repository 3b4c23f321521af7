/* move_arm64.c: moving instructions of AArch64.
 *
 * One instruction makes room for a jump.  Of those that depend on where they stand there are eight forms, each told by a mask
 * (Arm's manual, C4.1): no decoder is needed for that.  x16 and x17 are free to use at a function's entry, where the linker's
 * own veneers use them.  Built everywhere, so that it is tested where a decoder is at hand.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/hook/move.h"

enum { WORD = 4, RELAY = 16, SCANNED = 4096 };

enum {
	NOP = 0xd503201f,
	BTI_C = 0xd503245f,
	PACIASP = 0xd503233f,
	PACIBSP = 0xd503237f,
	BTI_FIRST = 0xd503241f, /* bti, bti c, bti j, bti jc */
	BTI_MASK = 0xffffff3f,
	LDR_X17_8 = 0x58000051, /* ldr x17, .+8 */
	BR_X17 = 0xd61f0220,
	B = 0x14000000
};

static uint32_t word_at(const struct weft__entry_code *e, size_t offset)
{
	uint32_t word;
	memcpy(&word, e->code + offset, sizeof word);
	return word;
}

/* `bits` of word beginning at `first`, with their sign, as a distance in bytes. */
static int64_t distance_of(uint32_t word, unsigned first, unsigned bits)
{
	return ((int64_t)((uint64_t)(word >> first) << (64 - bits)) >> (64 - bits)) * WORD;
}

enum form { PLAIN, JUMP, CALL, JUMP_IF, COMPARE_JUMP, TEST_JUMP, ADDRESS, PAGE, LITERAL };

static enum form form_of(uint32_t w)
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

/* What the instruction points to, if it is none of PLAIN. */
static uint64_t target_of(uint32_t w, uint64_t at)
{
	switch (form_of(w)) {
	case JUMP:
	case CALL: return at + (uint64_t)distance_of(w, 0, 26);
	case TEST_JUMP: return at + (uint64_t)distance_of(w, 5, 14);
	case ADDRESS:
	case PAGE: {
		/* 19 high bits and 2 low ones. */
		int64_t value = distance_of(w, 5, 19) | (int64_t)(w >> 29 & 3);
		return form_of(w) == PAGE ? (at & ~(uint64_t)4095) + ((uint64_t)value << 12) : at + (uint64_t)value;
	}
	case JUMP_IF:
	case COMPARE_JUMP:
	case LITERAL: return at + (uint64_t)distance_of(w, 5, 19);
	case PLAIN: break;
	}
	return 0;
}

struct move {
	const struct weft__entry_code *e;
	struct weft__moved *out;
	unsigned to;
};

static void put(struct move *m, uint32_t word)
{
	memcpy(m->out->slot + m->to, &word, sizeof word);
	m->to += WORD;
}

/* Loads a value of 64 bits, which stands behind the jump over it. */
static void put_load(struct move *m, unsigned reg, uint64_t value)
{
	put(m, 0x58000040 | reg); /* ldr reg, .+8 */
	put(m, B | 3);
	put(m, (uint32_t)value);
	put(m, (uint32_t)(value >> 32));
}

static void put_jump(struct move *m, uint64_t target)
{
	put(m, LDR_X17_8);
	put(m, BR_X17);
	put(m, (uint32_t)target);
	put(m, (uint32_t)(target >> 32));
}

/* A load from a literal: from x17, which points to it, in the form with an offset of 0. */
static const char *put_literal(struct move *m, uint32_t w, uint64_t target)
{
	static const uint32_t general[4] = {0xb9400000, 0xf9400000, 0xb9800000, NOP}; /* ldr w, ldr x, ldrsw, prfm */
	static const uint32_t vector[4] = {0xbd400000, 0xfd400000, 0x3dc00000, 0};    /* ldr s, d, q */
	uint32_t form = (w & 0x04000000 ? vector : general)[w >> 30];
	if (!form)
		return "an instruction that is not known";
	put_load(m, 17, target);
	put(m, form == NOP ? NOP : form | 17 << 5 | (w & 31));
	return NULL;
}

/* The moved instruction; *ended: nothing behind it in the slot runs. */
static const char *move_one(struct move *m, uint32_t w, uint64_t at, bool *ended)
{
	uint64_t target = target_of(w, at);
	switch (form_of(w)) {
	case PLAIN: put(m, w); return NULL;
	case ADDRESS:
	case PAGE: put_load(m, w & 31, target); return NULL;
	case LITERAL: return put_literal(m, w, target);
	case JUMP:
		*ended = true;
		put_jump(m, target);
		return NULL;
	case CALL:
		*ended = true;
		put_load(m, 30, at + WORD);
		put_jump(m, target);
		return NULL;
	case JUMP_IF:
	case COMPARE_JUMP: /* the same condition over a jump over the jump: two words on, else on */
		put(m, (w & ~(uint32_t)(0x7ffff << 5)) | 2 << 5);
		break;
	case TEST_JUMP: put(m, (w & ~(uint32_t)(0x3fff << 5)) | 2 << 5); break;
	}
	put(m, B | 5);
	put_jump(m, target);
	return NULL;
}

static bool jumps_back(const struct weft__entry_code *e, unsigned moved)
{
	size_t size = e->bytes ? e->bytes : SCANNED;
	size = size < e->room ? size : e->room;
	for (size_t i = 0; i + WORD <= size; i += WORD) {
		enum form form = form_of(word_at(e, i));
		if ((form == JUMP || form == JUMP_IF || form == COMPARE_JUMP || form == TEST_JUMP) &&
		    target_of(word_at(e, i), e->at + i) - e->at < moved)
			return true;
	}
	return false;
}

const char *weft__move_arm64(const struct weft__entry_code *e, struct weft__moved *out)
{
	memset(out, 0, sizeof *out);
	struct move m = {.e = e, .out = out};
	put_jump(&m, e->wrapper);
	out->original = m.to;
	if (e->room < 2 * WORD || (e->bytes && e->bytes < WORD) || e->at % WORD)
		return "it is too short";
	uint32_t first = word_at(e, 0);
	bool is_pad = (first & BTI_MASK) == BTI_FIRST, signs = first == PACIASP || first == PACIBSP, ended = false;
	/* Calls by pointer may land on a bti or a signing instruction only.  The one stays, the other becomes a bti: the wrapper
	 * must find the return address as the caller left it. */
	unsigned words = is_pad || signs ? 2 : 1;
	if (words == 2 && e->bytes && e->bytes < 2 * WORD)
		return "it is too short";
	const char *why = NULL;
	for (unsigned i = 0; i < words && !why && !ended; i++)
		why = move_one(&m, word_at(e, i * (size_t)WORD), e->at + i * (uint64_t)WORD, &ended);
	if (!why && jumps_back(e, words * WORD))
		why = "it jumps back to its first instructions";
	if (why)
		return why;
	if (!ended)
		put_jump(&m, e->at + words * (uint64_t)WORD);
	out->patch_at = is_pad ? WORD : 0;
	uint64_t jump_at = e->at + (words - 1) * (uint64_t)WORD;
	int64_t distance = (int64_t)(e->slot - jump_at);
	if (distance < -(1 << 27) || distance >= 1 << 27 || distance % WORD)
		return "its slot is too far away";
	uint32_t patch[2] = {BTI_C, B | ((uint32_t)(distance >> 2) & 0x3ffffff)};
	out->patch_bytes = signs ? 2 * WORD : WORD;
	memcpy(out->patch, signs ? patch : patch + 1, out->patch_bytes);
	out->moved_bytes = words * WORD - out->patch_at;
	out->slot_bytes = m.to;
	return NULL;
}

#if defined(__aarch64__)
void weft__move_close(void)
{
}
#endif
