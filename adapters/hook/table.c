/* table.c: a hash table by address.  SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdlib.h>

#include "adapters/hook/table.h"

enum { FIRST_SIZE = 256 };

static size_t find_home(const struct table *table, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15u >> 24) & (table->size - 1);
}

/* Returns the index of the key, or else of the free entry where the key belongs.  The table must have a free entry. */
static size_t find_index(const struct table *table, uint64_t key)
{
	size_t i = find_home(table, key);
	while (table->entries[i].key && table->entries[i].key != key)
		i = (i + 1) & (table->size - 1);
	return i;
}

void *weft__table_find(const struct table *table, uint64_t key)
{
	return table->count ? table->entries[find_index(table, key)].value : NULL;
}

static bool grow(struct table *table)
{
	const size_t size = table->size ? 2 * table->size : FIRST_SIZE;
	struct table bigger = {calloc(size, sizeof *bigger.entries), size, table->count};
	if (!bigger.entries)
		return false;
	for (size_t i = 0; i < table->size; i++)
		if (table->entries[i].key)
			bigger.entries[find_index(&bigger, table->entries[i].key)] = table->entries[i];
	free(table->entries);
	*table = bigger;
	return true;
}

int weft__table_set(struct table *table, uint64_t key, void *value)
{
	if (2 * table->count >= table->size && !grow(table))
		return false;
	struct table_entry *entry = &table->entries[find_index(table, key)];
	table->count += !entry->key;
	*entry = (struct table_entry){key, value};
	return true;
}

void weft__table_remove(struct table *table, uint64_t key)
{
	if (!table->count)
		return;
	const size_t mask = table->size - 1;
	size_t hole = find_index(table, key);
	if (!table->entries[hole].key)
		return;
	table->count--;
	for (size_t i = (hole + 1) & mask; table->entries[i].key; i = (i + 1) & mask) {
		const size_t home = find_home(table, table->entries[i].key);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		table->entries[hole] = table->entries[i];
		hole = i;
	}
	table->entries[hole] = (struct table_entry){0, NULL};
}
