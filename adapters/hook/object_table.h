/* object_table.h: tables of a runtime's objects, by their addresses (private to adapters/).
 *
 * An object is what an adapter knows of one object of the runtime; most objects have a promise.  Each table belongs to one
 * adapter, which may add fields to the objects.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_OBJECT_TABLE_H
#define WEFT_HOOK_OBJECT_TABLE_H

#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"

/* The common first fields.  An adapter's struct starts with WEFT_HOOK_OBJECT, and the adapter's own fields follow. */
#define WEFT_HOOK_OBJECT_FIELDS                                                                                                  \
	struct weft_hook_object *next;                                                                                           \
	const void *key;                                                                                                         \
	weft_id id, by;                                                                                                          \
	weft_id awaited_by; /* promise of the loop that awaits the object; for a loop: the promise that awaits the loop */       \
	uint64_t since;                                                                                                          \
	const struct weft_hook_thread *owner_thread; /* thread that records the object again in checkpoints */                   \
	struct weft_record_place *site;                                                                                          \
	uint8_t kind;                                                                                                            \
	bool has_datagrams; /* whether the object watches a datagram socket */                                                   \
	struct weft_hook_label label

struct weft_hook_object {
	WEFT_HOOK_OBJECT_FIELDS;
};

#define WEFT_HOOK_OBJECT                                                                                                         \
	union {                                                                                                                  \
		struct weft_hook_object object;                                                                                  \
		struct {                                                                                                         \
			WEFT_HOOK_OBJECT_FIELDS;                                                                                 \
		};                                                                                                               \
	}

enum { WEFT_HOOK_SHARDS = 64, WEFT_HOOK_BUCKETS = 256, WEFT_HOOK_SPARES = 16 };

struct weft_hook_object_table {
	size_t bytes; /* size of an object */
	/* Callback that records more facts for a checkpoint; may be NULL. */
	void (*list_more)(const struct weft_hook_object *object);
	struct weft_hook_shard {
		uint32_t lock, spare_count;
		struct weft_hook_object *spares; /* free objects */
		struct weft_hook_object *buckets[WEFT_HOOK_BUCKETS];
	} shards[WEFT_HOOK_SHARDS];
};

/* Initialises a table of objects of that type. */
#define WEFT_HOOK_OBJECT_TABLE(type)                                                                                             \
	{                                                                                                                        \
		.bytes = sizeof(type)                                                                                            \
	}

/* Lock and unlock the shard of a key. The locks are not recursive. */
void weft_hook_object_table_lock(struct weft_hook_object_table *table, const void *key);
void weft_hook_object_table_unlock(struct weft_hook_object_table *table, const void *key);

/* Returns whether this thread holds the lock of any table; if so, a signal handler must not take a lock of a table. */
bool weft_hook_object_table_is_locked(void);

/* Find, create and remove an object; call them with the lock of the key held. create returns a zeroed object, or NULL without
 * memory, and needs a new key; remove also frees the object. */
void *weft_hook_object_find(struct weft_hook_object_table *table, const void *key);
void *weft_hook_object_create(struct weft_hook_object_table *table, const void *key);
void weft_hook_object_remove(struct weft_hook_object_table *table, struct weft_hook_object *object);

/* Calls visit() for each object, with the object's lock held. */
void weft_hook_object_table_each(
    struct weft_hook_object_table *table, void (*visit)(struct weft_hook_object *object, void *data), void *data);

/* Creates the object's promise in the name of the running promise, with the call site `caller`.  Its label may follow.  Call
 * this function with the object's lock held. */
void weft_hook_object_begin(struct weft_hook_object *object, enum weft_kind kind, const void *caller);

/* Records the promise of an object that is older than the recording; this thread records the object again in checkpoints. */
void weft_hook_object_begin_older(struct weft_hook_object *object, enum weft_kind kind);

/* Records this thread's objects again; for weft_hook_register_list(). */
uint64_t weft_hook_object_table_list(struct weft_hook_object_table *table, uint64_t cursor, unsigned budget);

/* Frees all objects. */
void weft_hook_object_table_clear(struct weft_hook_object_table *table);

/* Handles fork() for an adapter's table. */
void weft_hook_object_table_fork(struct weft_hook_object_table *table, enum weft_hook_fork when);

#endif
