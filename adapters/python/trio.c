/* trio.c: records tasks of trio, which anyio can use too.
 *
 * trio is written in Python.  It runs a step of a task by the method send() of the task's coroutine, and sets attributes of the
 * Task object when the task may run again.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/python/common.h"

static PyObject *name_send, *name_abort;
static init_fn real_init;

/* Tasks that trio itself needs have names such as "<init>" and "trio._core._entry_queue.EntryQueue.task". */
static bool is_own_task(PyObject *task)
{
	PyObject *name = GET_ATTRIBUTE(task, "name");
	const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	const bool is_own = !text || text[0] == '<' || strncmp(text, "trio._core.", strlen("trio._core.")) == 0;
	release(name);
	PyErr_Clear();
	return is_own;
}

static int init_task(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	const int r = real_init(self, arguments, keywords);
	PyObject *coroutine = r == 0 && is_recording() && !is_own_task(self) ? GET_ATTRIBUTE(self, "coro") : NULL;
	if (coroutine && coroutine->type == weft__python_types.coroutine)
		weft__python_create_foreign_task(coroutine, self);
	release(coroutine);
	return r;
}

/* trio sets `_next_send_fn` when the task's wait is over.  Before it cancels a wait, it clears `_abort_func` elsewhere. */
static int set_attribute(PyObject *task, PyObject *name, PyObject *value)
{
	static PyObject *aborted;
	if ((name == name_send || name == name_abort) && value && is_recording()) {
		PyObject *type, *error, *traceback;
		PyErr_Fetch(&type, &error, &traceback);
		if (name == name_abort && value == &_Py_NoneStruct && weft__python_is_running("Task._attempt_abort")) {
			aborted = task;
		} else if (name == name_send && value != &_Py_NoneStruct) {
			weft__python_end_foreign_wait(task, aborted == task);
			aborted = NULL;
		}
		PyErr_Clear();
		PyErr_Restore(type, error, traceback);
	}
	return PyObject_GenericSetAttr(task, name, value);
}

void weft__python_install_trio(void)
{
	PyObject *name = PyUnicode_InternFromString("trio._core._run"), *module = name ? PyImport_GetModule(name) : NULL,
		 *class = module ? GET_ATTRIBUTE(module, "Task") : NULL;
	void **init = class ? weft__python_find_slot(class, SLOT_INIT) : NULL;
	name_send = PyUnicode_InternFromString("_next_send_fn");
	name_abort = PyUnicode_InternFromString("_abort_func");
	if (init && name_send && name_abort) {
		real_init = (init_fn)*init;
		*init = (void *)init_task;
		weft__python_wrap_setter(class, set_attribute);
		weft__python_install_methods();
		weft__python_install_trio_objects();
	}
	release(class);
	release(module);
	release(name);
	PyErr_Clear();
}
