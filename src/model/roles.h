/* roles.h: which promises belong to the own working of a runtime or library, and which OS threads are a pool.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_ROLES_H
#define WEFT_MODEL_ROLES_H

#include "model/model.h"

struct weft_roles {
	/* Bits by promise: a lock, condition, semaphore, handle or signal that a runtime or library made for itself.  It need not
	 * end, no code of the program created it or waits for it, and nothing went wrong with it. */
	uint64_t *internals;
	size_t internal_count;
	/* By stream: number of the thread in the pool of its process, from 1; 0: it is in none.  A thread of a pool ran requests
	 * that other threads had made. */
	uint16_t *pool_of;
	uint32_t *part_of; /* by stream: number of its process */
};

/* Sets *out to the roles, which the model owns.  They are found at the first call, which may come from any thread; linear in
 * promises, runs and links.  A model that was not built from a trace has none: all arrays are NULL.  Fails with WEFT_ENOMEM. */
int weft_model_roles(const struct weft_model *model, const struct weft_roles **out);

static inline bool weft_is_internal(const struct weft_roles *roles, uint32_t promise)
{
	return roles->internals && (roles->internals[promise / 64] >> promise % 64 & 1);
}

/* Writes the name of the process of a promise. */
size_t weft_process_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size);

void weft__roles_free(struct weft_roles *roles);

#endif
