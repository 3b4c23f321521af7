/* intern.c: see intern.h.  SPDX-License-Identifier: ISC */
#include "base/intern.h"

static bool grow_slots(struct weft_intern *table)
{
	size_t count = table->slot_count ? table->slot_count * 2 : 64;
	struct weft_intern_slot *slots = calloc(count, sizeof *slots);
	if (!slots)
		return false;
	if (!table->slot_count)
		table->key = weft_hash_key_new();
	for (size_t i = 0; i < table->slot_count; i++)
		if (table->slots[i].number) {
			size_t at = table->slots[i].hash & (count - 1);
			while (slots[at].number)
				at = (at + 1) & (count - 1);
			slots[at] = table->slots[i];
		}
	free(table->slots);
	table->slots = slots;
	table->slot_count = count;
	return true;
}

/* Returns the slot of a string, or the free slot in which it should be stored; the table must have slots. */
static size_t find_slot(const struct weft_intern *table, struct weft_str text, uint32_t hash)
{
	size_t at = hash & (table->slot_count - 1);
	for (; table->slots[at].number; at = (at + 1) & (table->slot_count - 1)) {
		if (table->slots[at].hash != hash)
			continue;
		const struct weft_str *known = &table->texts.items[table->slots[at].number - 1];
		if (known->len == text.len && memcmp(known->ptr, text.ptr, text.len) == 0)
			break;
	}
	return at;
}

uint32_t weft_intern(struct weft_intern *table, struct weft_str text)
{
	if (table->texts.count * 4 >= table->slot_count * 3 && !grow_slots(table))
		return WEFT_INTERN_FAILED;
	const uint32_t hash = (uint32_t)weft_hash_keyed(&table->key, text.ptr, text.len);
	const size_t at = find_slot(table, text, hash);
	if (table->slots[at].number)
		return table->slots[at].number - 1;
	if (table->texts.count >= UINT32_MAX - 2)
		return WEFT_INTERN_FAILED;
	struct weft_str *added = weft_vec_push(&table->texts);
	if (!added)
		return WEFT_INTERN_FAILED;
	*added = text;
	table->slots[at] = (struct weft_intern_slot){(uint32_t)table->texts.count, hash};
	return table->slots[at].number - 1;
}

uint32_t weft_intern_find(const struct weft_intern *table, struct weft_str text)
{
	if (!table->slot_count)
		return WEFT_INTERN_FAILED;
	const uint32_t number =
	    table->slots[find_slot(table, text, (uint32_t)weft_hash_keyed(&table->key, text.ptr, text.len))].number;
	return number ? number - 1 : WEFT_INTERN_FAILED;
}

void weft_intern_finish(struct weft_intern *table)
{
	weft_vec_free(&table->texts);
	free(table->slots);
	table->slots = NULL;
	table->slot_count = 0;
}
