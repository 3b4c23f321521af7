/* slots.h: slots, small functions that a runtime calls instead of the program's callbacks (private to adapters/).
 *
 * Slot n of a set calls one C function of the adapter, with n as an additional parameter.  So a slot always finds the program's
 * callback; in the worst case nothing is recorded.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SLOTS_H
#define WEFT_HOOK_SLOTS_H

#define WEFT_HOOK_SLOT_BYTES 16

/* Register of the parameter with number n, counted from 0.  The code of a slot is a landing pad for indirect calls, a load of
 * the slot's number, and a jump. */
#if defined(__x86_64__)
#define WEFT_HOOK_REGISTER_1 "%esi"
#define WEFT_HOOK_REGISTER_2 "%edx"
#define WEFT_HOOK_REGISTER_3 "%ecx"
#define WEFT_HOOK_REGISTER_4 "%r8d"
#define WEFT_HOOK_REGISTER_5 "%r9d"
#define WEFT_HOOK_SLOT(reg, target) "endbr64\n movl $slot," reg "\n jmp " target "\n"
#elif defined(__aarch64__)
#define WEFT_HOOK_REGISTER_1 "w1"
#define WEFT_HOOK_REGISTER_2 "w2"
#define WEFT_HOOK_REGISTER_3 "w3"
#define WEFT_HOOK_REGISTER_4 "w4"
#define WEFT_HOOK_REGISTER_5 "w5"
#define WEFT_HOOK_SLOT(reg, target) "hint #34\n mov " reg ", #slot\n b " target "\n"
#else
#error "slots are for x86-64 and aarch64"
#endif

/* Defines name_code: `count` slots (a literal) of WEFT_HOOK_SLOT_BYTES each.  The slots have `parameters` parameters and jump to
 * name(). */
#define WEFT_HOOK_CODE(name, parameters, count)                                                                                  \
	__asm__(".pushsection .text\n"                                                                                           \
		".hidden " #name "\n"                                                                                            \
		".hidden " #name "_code\n"                                                                                       \
		".globl " #name "_code\n"                                                                                        \
		".balign 16\n" #name "_code:\n"                                                                                  \
		".set slot, 0\n"                                                                                                 \
		".rept " #count "\n"                                                                                             \
		".balign 16\n" WEFT_HOOK_SLOT(WEFT_HOOK_REGISTER_##parameters, #name) ".set slot, slot + 1\n"                    \
										      ".endr\n"                                  \
										      ".balign 16\n"                             \
										      ".popsection\n");                          \
	extern const unsigned char name##_code[] __attribute__((visibility("hidden")))

/* Slots, and the program's function of each slot.  Slot 0 is unused. */
struct weft_hook_slots {
	const unsigned char *code;
	void **user;
	unsigned count; /* a power of two */
};

/* Returns the slot of the program's function `user`.  The slot of a slot is the slot itself.  Returns `user` itself if no slot
 * is free. */
void *weft_hook_slot(const struct weft_hook_slots *slots, void *user);

/* Returns the program's function of a slot, and any other function unchanged. */
void *weft_hook_user(const struct weft_hook_slots *slots, void *function);

#endif
