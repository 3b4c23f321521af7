/* table.h: a hash table by address (private to adapters/).  The caller protects the table: each table belongs to one thread, or
 * to the interpreter's lock.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_TABLE_H
#define WEFT_HOOK_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_entry {
	uint64_t key; /* 0: free */
	void *value;
};

struct table {
	struct table_entry *entries;
	size_t size, count;
};

static inline uint64_t table_key(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* Returns the entry of the key; NULL: none. */
void *weft__table_find(const struct table *table, uint64_t key);
/* Returns false without memory. */
int weft__table_set(struct table *table, uint64_t key, void *value);
void weft__table_remove(struct table *table, uint64_t key);

#endif
