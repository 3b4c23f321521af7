/* services.h: what libweft-hook.so offers to libweft-python.so, which it loads (private to adapters/python).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_PYTHON_SERVICES_H
#define WEFT_PYTHON_SERVICES_H

#include "adapters/hook/address_cache.h"
#include "adapters/hook/thread.h"

struct weft_python_services {
	bool (*begin)(void); /* starts the recording if it is wanted; returns whether it is on and this thread is known */
	unsigned (*get_epoch)(void);
	weft_id (*get_root)(void); /* promise of this thread */
	struct weft_hook_frame (*enter)(weft_id task);
	/* Enters a step that no event caused; only some are recorded if there are many. */
	struct weft_hook_frame (*enter_again)(weft_id task, struct weft_hook_calls *calls);
	struct weft_hook_frame (*enter_job)(weft_id job); /* its waits delay no loop; leave() ends it, too */
	void (*leave)(struct weft_hook_frame *frame);
	void (*register_list)(weft_list_pending_fn *list, void *data);
	/* Calls `note` after each long call that blocked a promise, on its thread, without the interpreter's lock. */
	void (*watch_blocks)(void (*note)(const char *function, uint64_t since));
	/* Calls `find` for locks and threads: struct weft_hook_language, find_call. */
	void (*watch_calls)(const struct weft_hook_language_call *(*find)(weft_id *input));
	/* Calls `note` before Python releases its lock for a call that may wait, on the thread that has it. */
	void (*watch_releases)(void (*note)(void));
	int (*get_minor)(void);                 /* 11 for Python 3.11 */
	void (*name_thread)(const char *name);  /* labels the promise of this thread, once */
	void (*fail_thread)(const char *error); /* the promise of this thread fails when it ends */
};

/* Called with the interpreter's lock at each import, before the module is there, and with "threading" when a thread is about to
 * start.  Keeps a pending exception. */
typedef void weft_python_on_import_fn(const struct weft_python_services *services, const char *module);

#endif
