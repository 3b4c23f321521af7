/* install.c: finds the functions of Python to wrap when asyncio, threading or a pool of threads is imported.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/python/common.h"

const struct weft_python_services *weft__python_services;
void *weft__python_interpreter;
struct python_types weft__python_types;

static bool is_installed;

static bool find_types(void)
{
	struct python_types *t = &weft__python_types;
	PyObject *types = t->coroutine ? NULL : PyImport_ImportModule("types");
	if (types) {
		t->coroutine = GET_ATTRIBUTE(types, "CoroutineType");
		t->generator = GET_ATTRIBUTE(types, "GeneratorType");
		t->async_generator = GET_ATTRIBUTE(types, "AsyncGeneratorType");
		t->function = GET_ATTRIBUTE(types, "FunctionType");
		t->method = GET_ATTRIBUTE(types, "MethodType");
		t->cell = GET_ATTRIBUTE(types, "CellType");
	}
	release(types);
	return t->coroutine && t->generator && t->async_generator && t->function && t->method && t->cell &&
	       weft__python_init_folders() && weft__python_init_coroutines();
}

static void install_core(void)
{
	struct python_types *t = &weft__python_types;
	PyObject *asyncio = PyImport_ImportModule("_asyncio");
	t->future = asyncio ? GET_ATTRIBUTE(asyncio, "Future") : NULL;
	t->task = asyncio ? GET_ATTRIBUTE(asyncio, "Task") : NULL;
	is_installed = t->future && t->task && find_types() && weft__python_install_tasks(asyncio);
	release(asyncio);
}

__attribute__((visibility("default"))) weft_python_on_import_fn weft_python_on_import;

/* asyncio's classes are complete when the module of its Unix loop is imported, which is the last module of the package; those of
 * trio, when its module `lowlevel` is imported. */
void weft_python_on_import(const struct weft_python_services *services, const char *module)
{
	static bool is_busy, has_core, has_classes, has_trio;
	if (is_busy || (weft__python_interpreter && PyInterpreterState_Get() != weft__python_interpreter))
		return;
	is_busy = true;
	weft__python_services = services;
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	if (!weft__python_interpreter) {
		weft__python_interpreter = PyInterpreterState_Get();
		weft__python_install_threads();
	}
	if (strcmp(module, "concurrent.futures.thread") == 0)
		weft__python_install_jobs();
	if (!has_core && strcmp(module, "_asyncio") == 0) {
		has_core = true;
		install_core();
	} else if (is_installed && !has_classes && strcmp(module, "asyncio.unix_events") == 0) {
		has_classes = true;
		weft__python_install_objects();
		weft__python_install_jobs();
		weft__python_install_callbacks();
		weft__python_install_unawaited();
	} else if (!has_trio && strcmp(module, "trio.lowlevel") == 0) {
		has_trio = true;
		if (find_types())
			weft__python_install_trio();
	}
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
	is_busy = false;
}
