/* slots.c: contains the code of the slots, and assigns slots to callbacks.  SPDX-License-Identifier: ISC */
#include "adapters/uv/slots.h"

#include <weft/record.h>

/* Register of the parameter with number n, counted from 0.  The code of a slot is a landing pad for indirect calls, a load of
 * the slot's number, and a jump. */
#if defined(__x86_64__)
#define REGISTER_1 "%esi"
#define REGISTER_2 "%edx"
#define REGISTER_3 "%ecx"
#define REGISTER_4 "%r8d"
#define REGISTER_5 "%r9d"
#define SLOT(reg, target) "endbr64\n movl $slot," reg "\n jmp " target "\n"
#elif defined(__aarch64__)
#define REGISTER_1 "w1"
#define REGISTER_2 "w2"
#define REGISTER_3 "w3"
#define REGISTER_4 "w4"
#define REGISTER_5 "w5"
#define SLOT(reg, target) "hint #34\n mov " reg ", #slot\n b " target "\n"
#else
#error "slots are for x86-64 and aarch64"
#endif

/* The assembly code repeats WEFT__UV_SLOTS slots of WEFT__UV_SLOT_BYTES each. */
#define DEFINE_POOL(name, count, type, parameters)                                                                               \
	__asm__(".pushsection .text\n"                                                                                           \
		".hidden weft__uv_" #name "_called\n"                                                                            \
		".hidden weft__uv_" #name "_code\n"                                                                              \
		".globl weft__uv_" #name "_code\n"                                                                               \
		".balign 16\n"                                                                                                   \
		"weft__uv_" #name "_code:\n"                                                                                     \
		".set slot, 0\n"                                                                                                 \
		".rept 256\n"                                                                                                    \
		".balign 16\n" SLOT(REGISTER_##count, "weft__uv_" #name "_called") ".set slot, slot + 1\n"                       \
										   ".endr\n"                                     \
										   ".balign 16\n"                                \
										   ".popsection\n");                             \
	extern const unsigned char weft__uv_##name##_code[] __attribute__((visibility("hidden")));                               \
	struct weft__uv_pool weft__uv_##name##_pool = {.code = weft__uv_##name##_code};
WEFT__UV_POOLS(DEFINE_POOL)

static struct weft_record_text missed_callbacks = WEFT_COUNTER("libuv callbacks not seen");

/* An open-addressing hash table.  Entries of the table are never removed, so readers need no lock. */
void *weft__uv_slot_assign(struct weft__uv_pool *pool, void *user)
{
	if (!user)
		return (void *)pool->code;
	if ((uintptr_t)user - (uintptr_t)pool->code < WEFT__UV_SLOTS * WEFT__UV_SLOT_BYTES)
		return user;
	unsigned first = weft__uv_slot_first(user) - 1;
	for (unsigned i = 0; i < WEFT__UV_SLOTS - 1; i++) {
		unsigned slot = 1 + (first + i) % (WEFT__UV_SLOTS - 1);
		void *seen = __atomic_load_n(&pool->user[slot], __ATOMIC_ACQUIRE);
		if (!seen &&
		    __atomic_compare_exchange_n(&pool->user[slot], &seen, user, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			seen = user;
		if (seen == user)
			return (void *)(pool->code + (size_t)slot * WEFT__UV_SLOT_BYTES);
	}
	weft_counter_add(WEFT_SYSTEM_ID, &missed_callbacks, 1);
	return user;
}
