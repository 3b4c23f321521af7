/* things.h: what is known of a runtime's objects, by their addresses (private to adapters/).
 *
 * A *thing* is what an adapter knows of one object of the program, mostly one that has a promise.  A table belongs to one
 * adapter; its things may have more fields than these.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_THINGS_H
#define WEFT_HOOK_THINGS_H

#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"

/* A struct of an adapter's begins with them: WEFT_HOOK_THING; its further fields follow. */
#define WEFT_HOOK_THING_FIELDS                                                                                                   \
	struct weft_hook_thing *next;                                                                                            \
	const void *key;                                                                                                         \
	weft_id id, by;                                                                                                          \
	weft_id kept; /* a loop that awaits it; of a loop: who awaits it */                                                      \
	uint64_t since;                                                                                                          \
	const struct weft_hook_thread *home; /* whose OS thread tells of it again */                                             \
	struct weft_record_place *site;                                                                                          \
	uint8_t kind;                                                                                                            \
	bool has_datagrams; /* it watches a socket for them */                                                                   \
	struct weft_hook_label label

struct weft_hook_thing {
	WEFT_HOOK_THING_FIELDS;
};

#define WEFT_HOOK_THING                                                                                                          \
	union {                                                                                                                  \
		struct weft_hook_thing thing;                                                                                    \
		struct {                                                                                                         \
			WEFT_HOOK_THING_FIELDS;                                                                                  \
		};                                                                                                               \
	}

enum { WEFT_HOOK_SHARDS = 64, WEFT_HOOK_BUCKETS = 256, WEFT_HOOK_SPARES = 16 };

struct weft_hook_things {
	size_t bytes;                                       /* of a thing */
	void (*still)(const struct weft_hook_thing *thing); /* tells what else is to be told again; NULL: nothing */
	struct weft_hook_shard {
		uint32_t lock, spare_count;
		struct weft_hook_thing *spares; /* to be used again */
		struct weft_hook_thing *buckets[WEFT_HOOK_BUCKETS];
	} shards[WEFT_HOOK_SHARDS];
};

/* To initialize a table with. */
#define WEFT_HOOK_THINGS(type)                                                                                                   \
	{                                                                                                                        \
		.bytes = sizeof(type)                                                                                            \
	}

/* The lock of the thing with that key is taken, until it is unlocked by the same key. */
void weft_hook_things_lock(struct weft_hook_things *table, const void *key);
void weft_hook_things_unlock(struct weft_hook_things *table, const void *key);

/* Whether this OS thread has any such lock: a signal handler that interrupted it is not to take one. */
bool weft_hook_things_is_held(void);

/* Under the lock.  make: one more of that key, zeroed; NULL if there is no memory.  drop: it is known no more, and freed. */
void *weft_hook_things_find(struct weft_hook_things *table, const void *key);
void *weft_hook_things_make(struct weft_hook_things *table, const void *key);
void weft_hook_things_drop(struct weft_hook_things *table, struct weft_hook_thing *thing);

/* Calls see() with each thing, under its lock. */
void weft_hook_things_each(struct weft_hook_things *table, void (*see)(struct weft_hook_thing *thing, void *data), void *data);

/* The thing's promise begins, to be labelled; by who runs, at the place of `caller`.  Under the lock. */
void weft_hook_things_begin(struct weft_hook_thing *thing, enum weft_kind kind, const void *caller);

/* The same of one that is older than the recording, and that this OS thread tells of. */
void weft_hook_things_begin_older(struct weft_hook_thing *thing, enum weft_kind kind);

/* For weft_hook_list(): the things of this OS thread. */
uint64_t weft_hook_things_list(struct weft_hook_things *table, uint64_t cursor, unsigned budget);

/* All of them are dropped. */
void weft_hook_things_forget(struct weft_hook_things *table);

/* For an adapter's fork(). */
void weft_hook_things_fork(struct weft_hook_things *table, enum weft_hook_fork when);

#endif
