/* unawaited.c: records coroutines that end without a first step.  Python itself reports each such coroutine to the module
 * `warnings`.  SPDX-License-Identifier: ISC */
#include "adapters/python/common.h"

static PyObject *real_warn;

/* If the coroutine ends where it was made, the running line is the call that lacks an `await`. */
static void record_coroutine(PyObject *coroutine)
{
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	char name[64];
	weft__python_copy_name(coroutine, name, sizeof name);
	const weft_id id = weft_create(weft__python_acting(), WEFT_KIND_COROUTINE, weft__python_find_running_place());
	weft_label(id, name);
	WEFT_FAIL(WEFT_SYSTEM_ID, id, WEFT_UNRETURNED);
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
}

static PyObject *warn_of_coroutine(PyObject *self, PyObject *coroutine)
{
	if (is_recording())
		record_coroutine(coroutine);
	return PyObject_CallFunctionObjArgs(real_warn, coroutine, NULL);
}

void weft__python_install_unawaited(void)
{
	static struct method method = {"_warn_unawaited_coroutine", warn_of_coroutine, CALL_ONE, NULL};
	PyObject *warnings = PyImport_ImportModule("warnings"), *name = PyUnicode_InternFromString(method.name),
		 *function = warnings && name && (real_warn = PyObject_GetAttr(warnings, name))
				 ? PyCFunction_NewEx(&method, NULL, NULL)
				 : NULL;
	if (function)
		PyObject_SetAttr(warnings, name, function);
	release(function);
	release(name);
	release(warnings);
	PyErr_Clear();
}
