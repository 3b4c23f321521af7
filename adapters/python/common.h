/* common.h: declarations that the files of libweft-python.so share.  The interpreter's lock protects all data of
 * libweft-python.so.  SPDX-License-Identifier: ISC
 */
#ifndef WEFT_PYTHON_COMMON_H
#define WEFT_PYTHON_COMMON_H

#include "adapters/hook/table.h"
#include "adapters/python/calls.h"
#include "adapters/python/services.h"

extern const struct weft_python_services *weft__python_services;
/* The main interpreter; other interpreters have locks of their own, and are not recorded. */
extern void *weft__python_interpreter;

/* Returns whether this process records, and starts the recording if the user wants one. */
static inline bool is_recording(void)
{
	return PyInterpreterState_Get() == weft__python_interpreter && weft__python_services->begin();
}

/* Types of Python. */
extern struct python_types {
	PyObject *coroutine, *generator, *async_generator, *function, *method, *cell, *future, *task;
} weft__python_types;

/* ---- place.c ---- */

enum code_owner { CODE_OF_USER, CODE_OF_LIBRARY, CODE_OF_ASYNCIO, CODE_OF_TRIO };

/* Facts about a Python code object, which is kept alive. */
struct code {
	PyObject *object;
	enum code_owner owner;
	/* Whether the code runs an event loop; what callbacks create is then not attributed to the code's callers. */
	bool runs_loop;
	char *file, *name;
};

/* Finds the folders of Python's standard library and of the program; returns false if the standard library's folder is not
 * found. */
bool weft__python_init_folders(void);
/* Finds how to read coroutines. */
bool weft__python_init_coroutines(void);

/* Returns the source line of the user's code that runs now; NULL if the event loop itself runs. */
struct weft_record_site *weft__python_find_running_place(void);
/* Returns the line of the user's code that runs, and the function that the line calls; NULL if no code of the user runs.
 * *called is the frame of that function, as a new reference; NULL if no function is called. */
const struct weft_hook_language_call *weft__python_find_running_call(PyObject **called);
/* Does the same for a thread of Python, without objects for its frames, if the call is known already; otherwise returns false. */
bool weft__python_find_known_call(const void *thread, const struct weft_hook_language_call **call);
/* Returns whether the layout of frames is the expected one.  Call it while a function runs. */
bool weft__python_can_read_frames(void);
/* Returns whether the innermost running function is a library's, and has that name. */
bool weft__python_is_running(const char *name);
/* Returns the variable `self` of a running method, as a new reference; NULL: none. */
PyObject *weft__python_get_self(PyObject *frame);

/* Returns the source line at which a code object begins. */
struct weft_record_site *weft__python_find_definition(PyObject *code);
bool weft__python_is_of_user(PyObject *code);

/* Line at which a suspended coroutine waits, and a text that says for what. */
struct wait_place {
	struct weft_record_site site;
	enum weft_kind kind;
	enum wait_input { INPUT_NONE, INPUT_OBJECT, INPUT_SECONDS, INPUT_SET, INPUT_TASK, INPUT_GROUP, INPUT_NURSERY } input;
	unsigned level; /* number of coroutines around the one whose variables have the input */
	struct weft_record_text label;
};

struct wait {
	const struct wait_place *place;
	/* Borrowed references to the coroutine whose variables have the input, and to the coroutine around it, which may be NULL.
	 */
	PyObject *innermost, *outer;
};

/* Finds the wait of a suspended coroutine; returns false if the coroutine cannot be read. */
bool weft__python_find_wait(PyObject *coroutine, struct wait *wait);

/* Copies the qualified name of a coroutine or function, without "<locals>.". */
void weft__python_copy_name(PyObject *object, char *name, size_t size);

/* Returns the first object of the type that `of` refers to, such as a local variable of a suspended coroutine, as a borrowed
 * reference. */
PyObject *weft__python_find_local(PyObject *of, PyObject *type);

/* Returns a wanted object that a callback of the future has in its closure, as a borrowed reference; NULL: none. */
PyObject *weft__python_find_in_callbacks(PyObject *future, bool (*is_wanted)(PyObject *object));

/* ---- object.c: locks, semaphores, events, conditions and queues of asyncio; locks and events of trio ---- */

struct object;
/* Wraps those classes of the package's modules that exist. */
void weft__python_install_objects(void);
void weft__python_install_trio_objects(void);
/* Returns the promise of the lock or queue that the coroutine waits for, and records the promise if it is new; 0: unknown. */
weft_id weft__python_object_of_wait(PyObject *coroutine, struct object **object);
/* Sets tp_setattro (the setter of attributes) of a class and its subclasses; subclasses that are made later inherit it.  A class
 * that defines its own __setattr__ is not changed. */
void weft__python_wrap_setter(PyObject *class, set_attribute_fn setter);
/* Records that promise `to` holds the object if the running function has released a permit of the object to a waiter. */
void weft__python_give_permit(struct object *object, weft_id to);

/* ---- callback.c: functions that a loop calls ---- */

void weft__python_install_callbacks(void);

/* ---- unawaited.c ---- */

void weft__python_install_unawaited(void);

/* ---- job.c: functions that run in pools of threads ---- */

void weft__python_install_jobs(void);
/* Returns the job for whose result the running function, which has this frame, waits; 0: none. */
weft_id weft__python_job_of_frame(PyObject *frame);
/* Returns the job whose result an asyncio future will get; 0: none. */
weft_id weft__python_job_of_wait(PyObject *future);

/* ---- thread.c: threads, and what they wait for ---- */

void weft__python_install_threads(void);

/* ---- trio.c ---- */

/* Wraps trio's classes, as soon as they exist.  Call it when a module of trio is imported. */
void weft__python_install_trio(void);

/* ---- task.c ---- */

bool weft__python_install_tasks(PyObject *asyncio);
/* Wraps the methods by which event loops other than asyncio's run steps of tasks. */
void weft__python_install_methods(void);
/* Records a new task of a loop other than asyncio's. */
void weft__python_create_foreign_task(PyObject *coroutine, PyObject *python);
/* Ends the wait of a task of such a loop. */
void weft__python_end_foreign_wait(PyObject *python, bool is_cancelled);
/* Returns the promise of a task's object; 0: none. */
weft_id weft__python_promise_of_task(PyObject *python);
/* Returns the slot of a type that has the value of slot `number`; NULL: none. */
void **weft__python_find_slot(PyObject *type, int number);
/* Returns a method of a type that is implemented in C; NULL: none. */
struct method *weft__python_find_method(PyObject *type, const char *name);
/* Returns the method of a C function object, which is in the word after the object's head. */
static inline struct method *weft__python_method_of_function(PyObject *function)
{
	return *(struct method **)(void *)(function + 1);
}
/* Returns the promise of this thread's loop while the loop itself runs and no task; 0: none. */
weft_id weft__python_calling_loop(void);
/* Returns whether this thread runs an event loop. */
bool weft__python_has_loop(void);
/* Returns the promise in whose name this thread acts now. */
weft_id weft__python_acting(void);

#endif
