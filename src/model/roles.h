/* roles.h: finds which promises belong to the internal working of a runtime or library, and which OS threads form a pool.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_ROLES_H
#define WEFT_MODEL_ROLES_H

#include "model/model.h"

struct weft_roles {
	/* Bit set by promise: locks, conditions, semaphores, handles and signals that a runtime or library made for itself.  An
	 * internal promise need not end, no code of the program created it or waits for it, and nothing went wrong with it. */
	uint64_t *internals;
	size_t internal_count;
	/* By stream: number of the thread in the pool of its process, counted from 1; 0 if it is in no pool.  A thread of a
	 * pool ran requests that other threads had made. */
	uint16_t *pool_of;
	uint32_t *part_of; /* by stream: number of its process */
};

/* Sets *out to the roles, which the model owns.  The first call finds the roles, on any thread, in time linear in the number of
 * promises, runs and links.  A model that was not built from a trace has no roles: all arrays are NULL.  Fails with
 * WEFT_ENOMEM. */
int weft_model_roles(const struct weft_model *model, const struct weft_roles **out);

static inline bool weft_is_internal(const struct weft_roles *roles, uint32_t promise)
{
	return roles->internals && (roles->internals[promise / 64] >> promise % 64 & 1);
}

/* Writes the name of the process to which a promise belongs. */
size_t weft_process_name(const struct weft_model *model, uint32_t promise, char *buf, size_t size);

void weft__roles_free(struct weft_roles *roles);

#endif
