/* callback.c: records functions of the user that asyncio's loop calls directly, such as those of call_later().
 * SPDX-License-Identifier: ISC */
#include "adapters/python/common.h"

/* Returns the code object of the user's function behind a callback, as a borrowed reference; NULL if the function is a library's
 * or not written in Python. */
static PyObject *find_user_code(PyObject *callback)
{
	PyObject *function = callback->type == weft__python_types.method ? PyMethod_Function(callback) : callback;
	PyObject *code = function && function->type == weft__python_types.function ? PyFunction_GetCode(function) : NULL;
	return code && weft__python_is_of_user(code) ? code : NULL;
}

static fast_fn real_run;

/* asyncio's loop calls each callback by Context.run(); steps of tasks are no Python functions, so they do not count here. */
static PyObject *run_in_context(PyObject *context, PyObject *const *arguments, intptr_t count, PyObject *names)
{
	const weft_id loop = weft__python_calling_loop();
	PyObject *code = loop && count > 0 && is_recording() ? find_user_code(arguments[0]) : NULL;
	if (!code)
		return real_run(context, arguments, count, names);
	const unsigned epoch = weft__python_services->get_epoch();
	char name[64];
	weft__python_copy_name(arguments[0], name, sizeof name);
	const weft_id id = weft_create(loop, WEFT_KIND_HANDLE, weft__python_find_definition(code));
	weft_label(id, name);
	struct weft_hook_frame frame = weft__python_services->enter(id);
	PyObject *result = real_run(context, arguments, count, names);
	if (weft_is_on() && epoch == weft__python_services->get_epoch())
		weft_resolve(id, id);
	weft__python_services->leave(&frame);
	return result;
}

void weft__python_install_callbacks(void)
{
	PyObject *variables = PyImport_ImportModule("contextvars"),
		 *context = variables ? GET_ATTRIBUTE(variables, "Context") : NULL;
	struct method *run = context ? weft__python_find_method(context, "run") : NULL;
	if (run && run->flags == (CALL_FAST | CALL_KEYWORDS)) {
		real_run = (fast_fn)(void *)run->function;
		run->function = (one_fn)(void *)run_in_context;
	}
	release(context);
	release(variables);
	PyErr_Clear();
}
