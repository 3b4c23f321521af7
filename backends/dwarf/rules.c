/* rules.c: implements rules.h.  SPDX-License-Identifier: ISC */
#include "rules.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

enum { RBP = 6, RSP = 7, RIP = 16, WORD = 8, MAX_OFFSET = 1 << 30 };

static bool is_small(Dwarf_Word offset)
{
	return (Dwarf_Sword)offset > -MAX_OFFSET && (Dwarf_Sword)offset < MAX_OFFSET;
}

/* Returns whether an operation adds an offset to a register. */
static bool read_register(const Dwarf_Op *op, unsigned *number, int32_t *offset)
{
	const bool is_long = op->atom == DW_OP_bregx, is_short = op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
	const Dwarf_Word value = is_long ? op->number2 : op->number;
	if ((!is_long && !is_short) || !is_small(value))
		return false;
	*number = is_long ? (unsigned)op->number : (unsigned)op->atom - DW_OP_breg0;
	*offset = (int32_t)(Dwarf_Sword)value;
	return true;
}

/* Returns whether operations give an address relative to the caller's frame. */
static bool read_frame_offset(const Dwarf_Op *ops, size_t count, int32_t *offset)
{
	if (!count || count > 2 || ops[0].atom != DW_OP_call_frame_cfa ||
	    (count == 2 && (ops[1].atom != DW_OP_plus_uconst || !is_small(ops[1].number))))
		return false;
	*offset = count == 2 ? (int32_t)(Dwarf_Sword)ops[1].number : 0;
	return true;
}

static uint8_t read_frame(Dwarf_Frame *frame, int32_t *offset)
{
	Dwarf_Op *ops;
	size_t count;
	unsigned number;
	if (dwarf_frame_cfa(frame, &ops, &count) || !count || !read_register(&ops[0], &number, offset))
		return WEFT_RULE_OTHER;
	if (count == 1)
		return number == RSP ? WEFT_RULE_RSP : number == RBP ? WEFT_RULE_RBP : WEFT_RULE_OTHER;
	return count == 2 && ops[1].atom == DW_OP_deref && number == RBP ? WEFT_RULE_SAVED : WEFT_RULE_OTHER;
}

/* Returns what a file's call frame information says about an address. */
static struct weft_unwind_rule make_rule(Dwarf_Frame *frame)
{
	const struct weft_unwind_rule other = {.kind = WEFT_RULE_OTHER};
	struct weft_unwind_rule rule = {.kind = WEFT_RULE_OTHER};
	Dwarf_Op memory[3], *ops;
	size_t count;
	unsigned number;
	int32_t return_at;
	bool is_signal = false;
	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) < 0 || is_signal ||
	    dwarf_frame_register(frame, RIP, memory, &ops, &count))
		return other;
	if (!count && ops == memory)
		return (struct weft_unwind_rule){.kind = WEFT_RULE_OUTERMOST};
	if (!read_frame_offset(ops, count, &return_at) || return_at != -WORD ||
	    dwarf_frame_register(frame, RBP, memory, &ops, &count))
		return other;
	rule.saves_rbp = count > 0;
	if (count && !read_frame_offset(ops, count, &rule.rbp)) {
		rule.is_rbp_relative = true;
		if (count != 1 || !read_register(&ops[0], &number, &rule.rbp) || number != RBP)
			return other;
	}
	rule.kind = read_frame(frame, &rule.frame);
	return rule;
}

static struct weft_unwind_rule find_rule(Dwfl *dwfl, uint64_t address)
{
	/* Compiled code of V8 and other virtual machines keeps frame pointers. */
	struct weft_unwind_rule rule = {.kind = WEFT_RULE_UNKNOWN, .saves_rbp = true, .is_rbp_relative = true, .frame = 2 * WORD};
	Dwarf_Addr bias;
	Dwarf_Frame *frame = NULL;
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame))
		return rule;
	rule = make_rule(frame);
	free(frame);
	return rule;
}

static struct weft_unwind_rule get_rule(struct weft_unwind_rules *rules, Dwfl *dwfl, uint64_t address)
{
	const uint32_t known = weft_idmap_get(&rules->by_address, (int64_t)address);
	if (known != WEFT_IDMAP_NONE)
		return rules->items.items[known];
	const struct weft_unwind_rule rule = find_rule(dwfl, address);
	struct weft_unwind_rule *slot = weft_vec_push(&rules->items);
	if (slot)
		*slot = rule;
	if (slot && !weft_idmap_set(&rules->by_address, (int64_t)address, (uint32_t)rules->items.count - 1))
		rules->items.count--;
	return rule;
}

static bool read_word(const struct weft_look_stack *s, uint64_t address, uint64_t *out)
{
	if (address < s->address || address - s->address > s->size || s->size - (address - s->address) < WORD)
		return false;
	*out = weft_load_u64(s->bytes + (address - s->address));
	return true;
}

bool weft__rules_unwind(struct weft_unwind_rules *rules, Dwfl *dwfl, struct weft_look_stack *s)
{
	uint64_t rbp = s->registers[RBP], rsp = s->registers[RSP], rip = s->registers[RIP];
	s->frame_count = 0;
	while (s->frame_count < WEFT_LOOK_FRAMES && rip) {
		/* A return address may be behind the calling function's last instruction. */
		const uint64_t at = rip - (s->frame_count > 0);
		uint64_t frame = 0, saved = rbp;
		const struct weft_unwind_rule rule = get_rule(rules, dwfl, at);
		s->frames[s->frame_count++] = (struct weft_look_frame){.address = rip};
		switch ((enum weft_rule_kind)rule.kind) {
		case WEFT_RULE_OTHER: return false;
		case WEFT_RULE_OUTERMOST: return true;
		case WEFT_RULE_RSP: frame = rsp + (uint64_t)(int64_t)rule.frame; break;
		case WEFT_RULE_SAVED:
			if (!read_word(s, rbp + (uint64_t)(int64_t)rule.frame, &frame))
				return true;
			break;
		case WEFT_RULE_UNKNOWN:
		case WEFT_RULE_RBP: frame = rbp + (uint64_t)(int64_t)rule.frame; break;
		}
		/* The stack ends where the copy ends, or where the registers make no sense. */
		if (frame <= rsp || !read_word(s, frame - WORD, &rip) ||
		    (rule.saves_rbp && !read_word(s, (rule.is_rbp_relative ? rbp : frame) + (uint64_t)(int64_t)rule.rbp, &saved)))
			return true;
		rsp = frame;
		rbp = saved;
	}
	return true;
}

void weft__rules_free(struct weft_unwind_rules *rules)
{
	weft_vec_free(&rules->items);
	weft_idmap_finish(&rules->by_address);
}
