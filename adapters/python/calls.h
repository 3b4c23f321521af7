/* calls.h: declares the parts of Python's C interface that the adapter uses (private to adapters/python).  One adapter library
 * serves all versions of Python, because it uses exported functions only and is not linked with Python.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_PYTHON_CALLS_H
#define WEFT_PYTHON_CALLS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct python_object {
	intptr_t references;
	struct python_object *type;
} PyObject;

typedef int (*visit_fn)(PyObject *, void *);
typedef int (*traverse_fn)(PyObject *, visit_fn, void *);
typedef int (*send_fn)(PyObject *, PyObject *, PyObject **);
typedef PyObject *(*one_fn)(PyObject *, PyObject *);
typedef PyObject *(*fast_fn)(PyObject *, PyObject *const *, intptr_t, PyObject *);
typedef PyObject *(*method_fn)(PyObject *, PyObject *, PyObject *const *, uintptr_t, PyObject *);
typedef int (*init_fn)(PyObject *, PyObject *, PyObject *);
typedef void (*finalize_fn)(PyObject *);
typedef int (*set_attribute_fn)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*getter_fn)(PyObject *, void *);

struct method {
	const char *name;
	one_fn function;
	int flags;
	const char *doc;
};

struct getter {
	const char *name;
	getter_fn get;
	void *set;
	const char *doc;
	void *closure;
};

/* Constants of Python that never change: numbers of slots, results of a step, and flags of methods. */
enum {
	SLOT_INIT = 60,
	SLOT_METHODS = 64,
	SLOT_SET_ATTRIBUTE = 69,
	SLOT_TRAVERSE = 71,
	SLOT_GETTERS = 73,
	SLOT_FINALIZE = 80,
	SLOT_SEND = 81
};
enum { STEP_FAILS = -1, STEP_RETURNS = 0, STEP_WAITS = 1 };
enum { CALL_KEYWORDS = 2, CALL_NOTHING = 4, CALL_ONE = 8, CALL_FAST = 0x80, CALL_METHOD = 0x200 };

#define PYTHON(result, name, parameters) extern result name parameters
PYTHON(void, Py_IncRef, (PyObject *));
PYTHON(void, Py_DecRef, (PyObject *));
PYTHON(void *, PyType_GetSlot, (PyObject *, int));
PYTHON(void, PyType_Modified, (PyObject *));
PYTHON(int, PyType_IsSubtype, (PyObject *, PyObject *));
PYTHON(PyObject *, PyUnicode_InternFromString, (const char *));
PYTHON(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, intptr_t *));
PYTHON(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *));
PYTHON(int, PyObject_SetAttr, (PyObject *, PyObject *, PyObject *));
PYTHON(PyObject *, PyObject_GenericGetAttr, (PyObject *, PyObject *));
PYTHON(int, PyObject_GenericSetAttr, (PyObject *, PyObject *, PyObject *));
PYTHON(int, PyObject_IsTrue, (PyObject *));
PYTHON(PyObject *, PyObject_CallFunctionObjArgs, (PyObject *, ...));
PYTHON(PyObject *, PyObject_GetIter, (PyObject *));
PYTHON(PyObject *, PyIter_Next, (PyObject *));
PYTHON(PyObject *, PyImport_ImportModule, (const char *));
PYTHON(PyObject *, PyImport_GetModule, (PyObject *));
PYTHON(PyObject *, PyCFunction_NewEx, (struct method *, PyObject *, PyObject *));
PYTHON(PyObject *, PyWeakref_NewRef, (PyObject *, PyObject *));
PYTHON(PyObject *, PyTuple_GetItem, (PyObject *, intptr_t));
PYTHON(intptr_t, PyTuple_Size, (PyObject *));
PYTHON(PyObject *, PyDict_GetItemString, (PyObject *, const char *));
PYTHON(void, PyDict_Clear, (PyObject *));
PYTHON(long, PyLong_AsLong, (PyObject *));
PYTHON(double, PyFloat_AsDouble, (PyObject *));
PYTHON(PyObject *, PyEval_GetFrame, (void));
PYTHON(PyObject *, PyFunction_GetCode, (PyObject *));
PYTHON(PyObject *, PyMethod_Function, (PyObject *));
PYTHON(PyObject *, PyFrame_GetBack, (PyObject *));
PYTHON(PyObject *, PyFrame_GetCode, (PyObject *));
PYTHON(PyObject *, PyFrame_GetLocals, (PyObject *));
PYTHON(PyObject *, PyFrame_GetVarString, (PyObject *, const char *)) __attribute__((weak)); /* since 3.12 */
PYTHON(int, PyFrame_GetLasti, (PyObject *));
PYTHON(int, PyFrame_GetLineNumber, (PyObject *));
PYTHON(void, PyErr_Clear, (void));
PYTHON(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **));
PYTHON(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *));
PYTHON(int, PyErr_GivenExceptionMatches, (PyObject *, PyObject *));
PYTHON(void *, PyInterpreterState_Get, (void));
PYTHON(void *, PyGILState_GetThisThreadState, (void));
extern PyObject *PyExc_StopIteration, *PyExc_SystemExit;
extern PyObject PyFloat_Type, PyLong_Type, PySet_Type, PyTuple_Type, _Py_NoneStruct;
#undef PYTHON

static inline void release(PyObject *object)
{
	if (object)
		Py_DecRef(object);
}

/* Returns a new reference to an attribute of the object; NULL if the object has no such attribute.  The attribute's name is
 * interned only once, because new strings would displace entries of the interpreter's cache. */
#define GET_ATTRIBUTE(object, literal)                                                                                           \
	({                                                                                                                       \
		static PyObject *interned;                                                                                       \
		if (!interned)                                                                                                   \
			interned = PyUnicode_InternFromString(literal);                                                          \
		PyObject *attribute_ = PyObject_GetAttr(object, interned);                                                       \
		if (!attribute_)                                                                                                 \
			PyErr_Clear();                                                                                           \
		attribute_;                                                                                                      \
	})

#endif
