/* services.h: functions of libweft-hook.so for libweft-python.so, which libweft-hook.so loads (private to adapters/python).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_PYTHON_SERVICES_H
#define WEFT_PYTHON_SERVICES_H

#include "adapters/hook/address_cache.h"
#include "adapters/hook/thread.h"

struct weft_python_services {
	/* Starts the recording if the user wants one; returns whether recording is on and this thread is known. */
	bool (*begin)(void);
	unsigned (*get_epoch)(void);
	weft_id (*get_root)(void); /* promise of this thread */
	struct weft_hook_frame (*enter)(weft_id task);
	/* Enters a step of a task that no event caused; if there are many such steps, only some are recorded. */
	struct weft_hook_frame (*enter_again)(weft_id task, struct weft_hook_calls *calls);
	struct weft_hook_frame (*enter_job)(weft_id job); /* enters a job, whose waits delay no loop; leave() also ends a job */
	void (*leave)(struct weft_hook_frame *frame);
	void (*register_list)(weft_list_pending_fn *list, void *data);
	/* Sets the function `find`, which is called for locks and threads, as find_call of struct weft_hook_language. */
	void (*watch_calls)(const struct weft_hook_language_call *(*find)(weft_id *input));
	/* Sets the function `copy`, which is called when a thread starts, as copy_thread_name of struct weft_hook_language. */
	void (*watch_starts)(void (*copy)(char *name, size_t size));
	/* Calls `note` before Python releases its lock for a call that may wait, on the thread that has it. */
	void (*watch_releases)(void (*note)(void));
	bool (*has_interpreter_lock)(void);     /* whether this thread may call any function of Python */
	bool (*records_threads)(void);          /* whether the user wants more than tasks */
	int (*get_minor)(void);                 /* 11 for Python 3.11 */
	void (*fail_thread)(const char *error); /* the promise of this thread fails when it ends */
};

/* Function that runs with the interpreter's lock at each import, before the module exists, and with "threading" when a thread is
 * about to start.  Keeps a pending exception. */
typedef void weft_python_on_import_fn(const struct weft_python_services *services, const char *module);

#endif
