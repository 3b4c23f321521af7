/* rules.h: unwinds copied stacks by rules that are found once for each address (private to backends/dwarf).
 *
 * libdwfl needs almost a ms for a stack, because it interprets the call frame information of each frame again.  A program
 * has few addresses at which it calls, so the rules of these addresses are kept.  Only on x86-64.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_RULES_H
#define WEFT_DWARF_RULES_H

#include <elfutils/libdwfl.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "look/look.h"

/* How to find the caller of a frame. */
enum weft_rule_kind {
	WEFT_RULE_UNKNOWN, /* the file describes no frame at this address, as for code that was compiled at run time */
	WEFT_RULE_RSP,     /* the caller's frame is at rsp + frame */
	WEFT_RULE_RBP,     /* at rbp + frame */
	WEFT_RULE_SAVED,   /* at the address that is stored at rbp + frame */
	WEFT_RULE_OUTERMOST,
	WEFT_RULE_OTHER /* libdwfl has to unwind the stack */
};

struct weft_unwind_rule {
	uint8_t kind; /* enum weft_rule_kind */
	/* Where the caller's rbp is stored, if it is: at rbp or else at the caller's frame, plus `rbp`. */
	bool saves_rbp, is_rbp_relative;
	int32_t frame, rbp;
};

/* Rules of one process.  Zero-initialised, it is empty. */
struct weft_unwind_rules {
	WEFT_VEC(struct weft_unwind_rule) items;
	struct weft_idmap by_address;
};

/* Fills in the frames of a stack whose registers are all known.  Returns false if libdwfl has to unwind the stack; the frames
 * are then undefined. */
bool weft__rules_unwind(struct weft_unwind_rules *rules, Dwfl *dwfl, struct weft_look_stack *stack);

void weft__rules_free(struct weft_unwind_rules *rules);

#endif
