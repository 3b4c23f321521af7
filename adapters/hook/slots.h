/* slots.h: functions of ours that a runtime is given in place of a program's (private to adapters/).
 *
 * Function n of a set goes on in one function in C, with its number as one more parameter.  So the way from it to what the
 * program gave depends on nothing that might not be found: the worst that can happen is that nothing is recorded.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SLOTS_H
#define WEFT_HOOK_SLOTS_H

#define WEFT_HOOK_SLOT_BYTES 16

/* The register of parameter n, counted from 0, and a slot: a landing pad for indirect calls, the number, the jump. */
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

/* name_code: `count` functions (a literal) of WEFT_HOOK_SLOT_BYTES each, which have `parameters` parameters and go on in name().
 */
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

/* Which function of the program has which slot.  Slot 0 is nobody's. */
struct weft_hook_slots {
	const unsigned char *code;
	void **user;
	unsigned count; /* a power of two */
};

/* The slot of a function; of a slot it is that slot.  The function itself if no slot is left. */
void *weft_hook_slot(const struct weft_hook_slots *slots, void *user);

/* The program's function for what the runtime was given: of a slot whose it is, otherwise what was asked for. */
void *weft_hook_user(const struct weft_hook_slots *slots, void *given);

#endif
