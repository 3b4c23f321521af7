/* vec.h: growable arrays.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_VEC_H
#define WEFT_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* A growing array of T, which is empty and owns no memory when zero-initialized.  The owner of the array frees .items. */
#define WEFT_VEC(T)                                                                                                              \
	struct {                                                                                                                 \
		T *items;                                                                                                        \
		size_t count, capacity;                                                                                          \
	}

/* Makes *capacity at least `needed`, and at least twice as large as before.  Returns false, with nothing changed, when out of
 * memory. */
bool weft__vec_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes);

/* Makes space for n more elements; false when out of memory. */
#define weft_vec_reserve(v, n)                                                                                                   \
	((v)->capacity - (v)->count >= (size_t)(n) ||                                                                            \
	    weft__vec_grow((void **)&(v)->items, &(v)->capacity, (v)->count + (size_t)(n), sizeof *(v)->items))

/* Adds an uninitialized element and returns its address; NULL when out of memory. */
#define weft_vec_push(v) (weft_vec_reserve(v, 1) ? &(v)->items[(v)->count++] : NULL)

#define weft_vec_free(v)                                                                                                         \
	do {                                                                                                                     \
		free((v)->items);                                                                                                \
		(v)->items = NULL;                                                                                               \
		(v)->count = (v)->capacity = 0;                                                                                  \
	} while (0)

#endif
