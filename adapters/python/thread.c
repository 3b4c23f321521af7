/* thread.c: names and lines of threads, and of the calls by which they wait for each other.
 *
 * A lock of Python is a semaphore of libc.  Python tries to take it while it has the interpreter's lock; only then the line of
 * the call can be read.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "adapters/python/common.h"

/* Python's hook for errors that no code of the thread has caught; the arguments begin with the error's type. */
static one_fn real_except_hook;

static PyObject *except_hook(PyObject *module, PyObject *arguments)
{
	PyObject *error = is_recording() ? PyTuple_GetItem(arguments, 0) : NULL;
	if (error && !PyErr_GivenExceptionMatches(error, PyExc_SystemExit)) {
		char name[64];
		weft__python_copy_name(error, name, sizeof name);
		weft__python_services->fail_thread(name);
	}
	PyErr_Clear();
	return real_except_hook(module, arguments);
}

static void wrap_except_hook(void)
{
	PyObject *module = PyImport_ImportModule("_thread"), *function = module ? GET_ATTRIBUTE(module, "_excepthook") : NULL;
	struct method *method = function ? weft__python_method_of_function(function) : NULL;
	if (method && method->flags == CALL_ONE) {
		real_except_hook = method->function;
		method->function = except_hook;
	}
	release(function);
	release(module);
}

/* The call for which this thread released the interpreter's lock last. */
static __thread const struct weft_hook_language_call *released __attribute__((tls_model("initial-exec")));
static __thread bool is_busy __attribute__((tls_model("initial-exec")));

static bool is_wait_for_job(const struct weft_hook_language_call *call)
{
	return call && call->function && strcmp(call->function, "Future.result") == 0;
}

/* A call that is new costs objects for its frames, as does a wait for a job; other calls are found in tables. */
static const struct weft_hook_language_call *find_running_call(weft_id *input)
{
	const struct weft_hook_language_call *known;
	if (weft__python_find_known_call(PyGILState_GetThisThreadState(), &known) && !is_wait_for_job(known))
		return known;
	is_busy = true; /* an object that Python frees now may take a lock */
	PyObject *type, *error, *traceback, *frame;
	PyErr_Fetch(&type, &error, &traceback);
	const struct weft_hook_language_call *call = weft__python_find_running_call(&frame);
	if (is_wait_for_job(call))
		*input = weft__python_job_of_frame(frame);
	release(frame);
	PyErr_Clear();
	PyErr_Restore(type, error, traceback);
	is_busy = false;
	return call;
}

/* Returns whether the user wants lines of this thread, and Python may be asked for them. */
static bool may_find_call(void)
{
	return !is_busy && (weft__python_services->records_threads() || weft__python_has_loop());
}

static const struct weft_hook_language_call *find_call(weft_id *input)
{
	if (!may_find_call())
		return NULL;
	if (!weft__python_services->has_interpreter_lock())
		return released;
	return PyInterpreterState_Get() == weft__python_interpreter ? find_running_call(input) : NULL;
}

static void note_release(void)
{
	weft_id unused = 0;
	if (!may_find_call())
		return;
	released = NULL;
	if (PyInterpreterState_Get() == weft__python_interpreter &&
	    !weft__python_find_known_call(PyGILState_GetThisThreadState(), &released))
		released = find_running_call(&unused);
}

/* The thread that is started cannot name itself, because it may first have to wait for the interpreter's lock. */
static void copy_thread_name(char *name, size_t size)
{
	if (is_busy || !weft__python_services->has_interpreter_lock() || PyInterpreterState_Get() != weft__python_interpreter)
		return;
	is_busy = true;
	PyObject *type, *error, *traceback;
	PyErr_Fetch(&type, &error, &traceback);
	PyObject *thread = weft__python_is_running("Thread.start") ? weft__python_get_self(PyEval_GetFrame()) : NULL,
		 *given = thread ? GET_ATTRIBUTE(thread, "_name") : NULL;
	const char *text = given ? PyUnicode_AsUTF8AndSize(given, NULL) : NULL;
	if (text)
		snprintf(name, size, "%s", text);
	release(given);
	release(thread);
	PyErr_Clear();
	PyErr_Restore(type, error, traceback);
	is_busy = false;
}

void weft__python_install_threads(void)
{
	if (!weft__python_init_folders())
		return;
	if (weft__python_services->records_threads())
		wrap_except_hook();
	weft__python_services->watch_calls(find_call);
	weft__python_services->watch_starts(copy_thread_name);
	if (weft__python_can_read_frames())
		weft__python_services->watch_releases(note_release);
}
