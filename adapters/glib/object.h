/* object.h: finds objects by the address of GLib's object (private to adapters/glib).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_GLIB_OBJECT_H
#define WEFT_ADAPTERS_GLIB_OBJECT_H

#include "adapters/glib/common.h"

/* Adds an object for the key, and frees an older object of the same key and type.  Returns NULL without memory, or if the lock
 * is not free in time. */
struct weft__glib_object *weft__glib_object_add(enum weft__glib_type type, const void *key);
struct weft__glib_object *weft__glib_object_search(enum weft__glib_type type, const void *key);
void weft__glib_object_remove(struct weft__glib_object *tracked);

/* Returns the next used object after index *at; NULL after the last object. */
struct weft__glib_object *weft__glib_object_next(uint32_t *at);
void weft__glib_objects_clear(void);

/* Returns the object of the key; NULL: none.  The caller must have a reference to GLib's object.  A cached object is valid if it
 * has the wanted key and type now, whatever it was when it was cached. */
static inline struct weft__glib_object *weft__glib_object_find(enum weft__glib_type type, const void *key)
{
	struct weft__glib_object *recent = *weft__glib_recent(key);
	if (key && recent && __atomic_load_n(&recent->key, __ATOMIC_ACQUIRE) == key &&
	    __atomic_load_n(&recent->type, __ATOMIC_RELAXED) == type)
		return recent;
	return weft__glib_object_search(type, key);
}

#endif
