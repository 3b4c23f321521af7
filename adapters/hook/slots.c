/* slots.c: assigns slots (small functions) to callbacks of the program.  SPDX-License-Identifier: ISC */
#include "adapters/hook/slots.h"

#include <stdint.h>
#include <weft/record.h>

static struct weft_record_text missed_callbacks = WEFT_COUNTER("callbacks not seen");

/* An open-addressing hash table.  Entries of the table are never removed, so readers need no lock. */
void *weft_hook_slot(const struct weft_hook_slots *slots, void *user)
{
	if ((uintptr_t)user - (uintptr_t)slots->code < (uintptr_t)slots->count * WEFT_HOOK_SLOT_BYTES)
		return user;
	/* The hash uses no division, because this function runs whenever the program passes a callback. */
	const uint64_t hash = (uint64_t)((uintptr_t)user >> 4) * 0x9e3779b97f4a7c15u >> 32;
	unsigned slot = (unsigned)(hash * (slots->count - 1) >> 32);
	for (unsigned i = 0; i < slots->count - 1; i++) {
		slot = slot + 1 < slots->count ? slot + 1 : 1;
		void *seen = __atomic_load_n(&slots->user[slot], __ATOMIC_ACQUIRE);
		if (!seen &&
		    __atomic_compare_exchange_n(&slots->user[slot], &seen, user, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			seen = user;
		if (seen == user)
			return (void *)(slots->code + (uintptr_t)slot * WEFT_HOOK_SLOT_BYTES);
	}
	weft_counter_add(WEFT_SYSTEM_ID, &missed_callbacks, 1);
	return user;
}

void *weft_hook_user(const struct weft_hook_slots *slots, void *function)
{
	uintptr_t at = (uintptr_t)function - (uintptr_t)slots->code;
	return at < (uintptr_t)slots->count * WEFT_HOOK_SLOT_BYTES
		   ? __atomic_load_n(&slots->user[at / WEFT_HOOK_SLOT_BYTES], __ATOMIC_ACQUIRE)
		   : function;
}
