/* job.c: records jobs, functions that concurrent.futures runs in threads of its pools for run_in_executor(), to_thread() and
 * submit().
 *
 * These classes are written in Python; functions of this file replace their tp_setattro (setter of attributes), and so see a
 * job's function and state.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/python/common.h"

struct job {
	uint64_t future; /* key */
	weft_id id;
	unsigned epoch;
};

enum { MAX_WRAPPERS = 4 };

static struct table jobs; /* table of jobs, by the address of the concurrent.futures future */
static PyObject *future_type;
static PyObject *code_of_result; /* of Future.result() */
static PyObject *name_state, *name_function;

static __thread struct {
	weft_id id; /* 0: no job runs */
	struct weft_hook_frame frame;
} here __attribute__((tls_model("initial-exec")));

static bool is_in_trace(const struct job *job)
{
	return job && job->epoch == weft__python_services->get_epoch() && weft_is_on();
}

static void forget_job(struct job *job)
{
	weft__table_remove(&jobs, job->future);
	free(job);
}

/* Copies the function's name without wrappers: to_thread() wraps the function in a call of Context.run, and programs use
 * partial(). */
static void copy_function_name(PyObject *function, unsigned most_wrappers, char *name, size_t size)
{
	PyObject *inner = most_wrappers ? GET_ATTRIBUTE(function, "func") : NULL, *arguments = NULL;
	weft__python_copy_name(inner ? inner : function, name, size);
	if (inner && strcmp(name, "Context.run") == 0 && (arguments = GET_ATTRIBUTE(function, "args")) &&
	    PyTuple_Size(arguments) > 0)
		copy_function_name(PyTuple_GetItem(arguments, 0), most_wrappers - 1, name, size);
	else if (inner)
		copy_function_name(inner, most_wrappers - 1, name, size);
	else if (strcmp(name, "?") == 0) /* the job calls an object that is no function */
		weft__python_copy_name(function->type, name, size);
	release(arguments);
	release(inner);
	PyErr_Clear();
}

static void create_job(PyObject *future, PyObject *function)
{
	struct job *job = calloc(1, sizeof *job);
	char name[64];
	if (!job || !weft__table_set(&jobs, table_key(future), job)) {
		free(job);
		return;
	}
	copy_function_name(function, MAX_WRAPPERS, name, sizeof name);
	*job =
	    (struct job){table_key(future), weft_create(weft__python_acting(), WEFT_KIND_WORK, weft__python_find_running_place()),
		weft__python_services->get_epoch()};
	weft_label(job->id, name);
}

/* The recorded error is only the type's name, because the error's text may contain secret values of the program.  result() may
 * read an error without a call that the recorder sees, so no error counts as unread. */
static void record_end(const struct job *job, PyObject *future, bool is_cancelled)
{
	const weft_id by = weft__python_acting();
	PyObject *error = GET_ATTRIBUTE(future, "_exception");
	char name[128];
	if (is_cancelled)
		WEFT_FAIL(by, job->id, "cancelled");
	else if (error && error != &_Py_NoneStruct) {
		weft__python_copy_name(error->type, name, sizeof name);
		weft_fail(by, job->id, name);
	} else {
		weft_resolve(by, job->id);
	}
	if (is_cancelled || (error && error != &_Py_NoneStruct))
		weft_read_later(weft__python_services->get_root(), job->id);
	release(error);
}

static void end_job(struct job *job, PyObject *future, bool is_cancelled)
{
	if (is_in_trace(job))
		record_end(job, future, is_cancelled);
	if (here.id == job->id) {
		here.id = 0;
		weft__python_services->leave(&here.frame);
	}
	forget_job(job);
}

static void change_state(struct job *job, PyObject *future, const char *state)
{
	if (strcmp(state, "RUNNING") == 0) {
		if (here.id || !is_in_trace(job))
			return;
		here.id = job->id;
		here.frame = weft__python_services->enter_job(job->id);
	} else if (strcmp(state, "PENDING") == 0) {
		forget_job(job); /* the table's entry is of an earlier future at the same address */
	} else {
		end_job(job, future, strcmp(state, "FINISHED") != 0);
	}
}

/* ---- Attributes ---- */

static int set_function(PyObject *item, PyObject *name, PyObject *value)
{
	if (name == name_function && value && is_recording()) {
		PyObject *future = GET_ATTRIBUTE(item, "future");
		if (future)
			create_job(future, value);
		release(future);
	}
	return PyObject_GenericSetAttr(item, name, value);
}

/* The pool's module exists when its first future begins, but its work item, which holds the function, is made later. */
static void wrap_items(void)
{
	static bool is_wrapped;
	if (is_wrapped)
		return;
	PyObject *name = PyUnicode_InternFromString("concurrent.futures.thread"),
		 *module = name ? PyImport_GetModule(name) : NULL, *item = module ? GET_ATTRIBUTE(module, "_WorkItem") : NULL;
	if (item)
		weft__python_wrap_setter(item, set_function);
	is_wrapped = item;
	release(item);
	release(module);
	release(name);
	PyErr_Clear();
}

static int set_state(PyObject *future, PyObject *name, PyObject *value)
{
	if (name == name_state && value && is_recording()) {
		wrap_items();
		struct job *job = weft__table_find(&jobs, table_key(future));
		const char *state = job ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
		if (state)
			change_state(job, future, state);
		else if (job)
			PyErr_Clear();
	}
	return PyObject_GenericSetAttr(future, name, value);
}

/* ---- Waits ---- */

static bool is_future_of_job(PyObject *object)
{
	return PyType_IsSubtype(object->type, future_type) && weft__table_find(&jobs, table_key(object));
}

/* The callback that joins an asyncio future with a concurrent.futures future refers to the other future in its closure. */
weft_id weft__python_job_of_wait(PyObject *future)
{
	PyObject *other = jobs.count ? weft__python_find_in_callbacks(future, is_future_of_job) : NULL;
	const struct job *job = other ? weft__table_find(&jobs, table_key(other)) : NULL;
	return is_in_trace(job) ? job->id : 0;
}

weft_id weft__python_job_of_frame(PyObject *frame)
{
	PyObject *code = jobs.count ? PyFrame_GetCode(frame) : NULL;
	PyObject *future = code && code == code_of_result ? weft__python_get_self(frame) : NULL;
	const struct job *job = future ? weft__table_find(&jobs, table_key(future)) : NULL;
	release(code);
	release(future);
	PyErr_Clear();
	return is_in_trace(job) ? job->id : 0;
}

void weft__python_install_jobs(void)
{
	if (future_type)
		return;
	PyObject *base = PyImport_ImportModule("concurrent.futures._base");
	future_type = base ? GET_ATTRIBUTE(base, "Future") : NULL;
	PyObject *result = future_type ? GET_ATTRIBUTE(future_type, "result") : NULL;
	code_of_result = result ? GET_ATTRIBUTE(result, "__code__") : NULL;
	release(result);
	name_state = PyUnicode_InternFromString("_state");
	name_function = PyUnicode_InternFromString("fn");
	if (future_type && name_state && name_function)
		weft__python_wrap_setter(future_type, set_state);
	release(base);
	PyErr_Clear();
}
