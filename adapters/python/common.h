/* common.h: shared by the files of libweft-python.so.  The interpreter's lock protects all of it.  SPDX-License-Identifier: ISC
 */
#ifndef WEFT_PYTHON_COMMON_H
#define WEFT_PYTHON_COMMON_H

#include "adapters/python/calls.h"
#include "adapters/python/services.h"
#include "adapters/python/table.h"

extern const struct weft_python_services *weft__python_services;
extern void *weft__python_interpreter; /* others have locks of their own, and are left alone */

/* Returns whether this process records, and starts that if it is wanted. */
static inline bool is_recording(void)
{
	return PyInterpreterState_Get() == weft__python_interpreter && weft__python_services->begin();
}

/* Types of Python. */
extern struct python_types {
	PyObject *coroutine, *generator, *async_generator, *function, *method, *cell, *future, *task;
} weft__python_types;

/* ---- place.c ---- */

enum code_owner { CODE_OF_USER, CODE_OF_LIBRARY, CODE_OF_ASYNCIO };

/* A code object, which is kept. */
struct code {
	PyObject *object;
	enum code_owner owner;
	bool runs_loop; /* its callers create nothing that its callbacks create */
	char *file, *name;
};

/* Finds the folders of the standard library and of the program; returns false without the former. */
bool weft__python_init_folders(void);
/* Finds how to read coroutines. */
bool weft__python_init_coroutines(void);

/* Returns where the running code of the user is; NULL: the loop runs. */
struct weft_record_site *weft__python_find_running_place(void);
/* Returns the running line of the user's code, and what it calls there; NULL: none of its code runs.  *called: the frame of
 * the function that it calls, a new reference; NULL: there is none. */
const struct weft_hook_language_call *weft__python_find_running_call(PyObject **called);
/* Does the same for a thread of Python, without objects for its frames, if the call is known already; otherwise returns false. */
bool weft__python_find_known_call(const void *thread, const struct weft_hook_language_call **call);
/* Returns whether the layout of frames is the expected one.  Call it while a function runs. */
bool weft__python_can_read_frames(void);
/* Returns whether the innermost running function has that name. */
bool weft__python_is_running(const char *name);

/* Returns where a code object begins. */
struct weft_record_site *weft__python_find_definition(PyObject *code);
bool weft__python_is_of_user(PyObject *code);

/* Where a suspended coroutine waits, and for what. */
struct wait_place {
	struct weft_record_site site;
	enum weft_kind kind;
	enum wait_input { INPUT_NONE, INPUT_OBJECT, INPUT_SECONDS, INPUT_SET, INPUT_TASK, INPUT_GROUP } input;
	struct weft_record_text label;
};

struct wait {
	const struct wait_place *place;
	PyObject *innermost, *outer; /* borrowed: the two innermost coroutines; outer may be NULL */
};

/* Returns false if the coroutine cannot be read. */
bool weft__python_find_wait(PyObject *coroutine, struct wait *wait);

/* Copies the qualified name of a coroutine or function, without "<locals>.". */
void weft__python_copy_name(PyObject *object, char *name, size_t size);

/* Returns the first object of the type that `of` refers to, borrowed: a local of a suspended coroutine. */
PyObject *weft__python_find_local(PyObject *of, PyObject *type);

/* Returns an object that a callback of the future has in its closure, borrowed; NULL: none is wanted. */
PyObject *weft__python_find_in_callbacks(PyObject *future, bool (*is_wanted)(PyObject *object));

/* ---- object.c: asyncio's locks, semaphores, events, conditions, queues ---- */

struct object;
/* Wraps the classes of asyncio's modules that exist. */
void weft__python_install_objects(void);
/* Returns the promise of the lock or queue that the coroutine uses, which enters the trace now; 0: unknown. */
weft_id weft__python_object_of_wait(PyObject *coroutine, struct object **object);
/* Puts a function into tp_setattro of a class and its subclasses; later ones inherit it.  A class with a __setattr__ of its own
 * is left alone. */
void weft__python_wrap_setter(PyObject *class, set_attribute_fn setter);
/* Records that the promise holds the object if the running function has given a permit of it to a waiter. */
void weft__python_give_permit(struct object *object, weft_id to);

/* ---- callback.c: functions that a loop calls ---- */

void weft__python_install_callbacks(void);

/* ---- unawaited.c ---- */

void weft__python_install_unawaited(void);

/* ---- job.c: functions that run in pools of threads ---- */

void weft__python_install_jobs(void);
/* Returns the job whose result the running function, with this frame, waits for; 0: none. */
weft_id weft__python_job_of_frame(PyObject *frame);
/* Returns the job whose result a future of asyncio gets; 0: none. */
weft_id weft__python_job_of_wait(PyObject *future);

/* ---- thread.c: threads, and what they wait for ---- */

void weft__python_install_threads(void);

/* ---- task.c ---- */

bool weft__python_install_tasks(PyObject *asyncio);
/* Returns a method of a type of C; NULL: there is none. */
struct method *weft__python_find_method(PyObject *type, const char *name);
/* Returns the method of a function of C: it is in the word after the function's head. */
static inline struct method *weft__python_method_of_function(PyObject *function)
{
	return *(struct method **)(void *)(function + 1);
}
/* Returns the loop of this thread while it calls no task; 0: there is none. */
weft_id weft__python_calling_loop(void);
/* Returns the promise that acts now. */
weft_id weft__python_acting(void);

#endif
