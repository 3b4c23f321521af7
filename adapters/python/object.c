/* object.c: records locks, semaphores, events, conditions and queues of asyncio, and locks and events of trio.
 *
 * These classes are written in Python; a function of this file replaces tp_setattro (the setter of attributes) of each class,
 * and sees changes of the attribute that says whether the object is free.  Reading attributes stays as fast as before.  An
 * object is recorded when a task first waits for it; until then the adapter knows only its holders.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/python/common.h"

enum { MAX_HOLDERS = 32 };

struct object {
	uint64_t key;
	PyObject *reference;
	enum weft_kind kind;
	struct weft_record_site *site;
	weft_id id; /* promise of the object; 0 while the object is not in the trace */
	unsigned epoch, holder_count;
	weft_id holders[MAX_HOLDERS];
	char label[64];
};

/* Tables of the objects, one by the object's address and one by its weak reference's address. */
static struct table objects, references;
/* Base class of asyncio's objects that are bound to a loop, and classes of trio. */
static PyObject *mixin, *trio_lock, *trio_event;
static struct object *given; /* object whose permit goes to the waiter that is woken next */

static bool is_in_trace(const struct object *o)
{
	return o->id && o->epoch == weft__python_services->get_epoch();
}

static void forget_object(struct object *o)
{
	if (is_in_trace(o) && weft_is_on())
		weft_resolve(WEFT_SYSTEM_ID, o->id);
	weft__table_remove(&objects, o->key);
	weft__table_remove(&references, table_key(o->reference));
	release(o->reference);
	given = given == o ? NULL : given;
	free(o);
}

static PyObject *handle_end(PyObject *self, PyObject *reference)
{
	struct object *o = weft__table_find(&references, table_key(reference));
	if (o)
		forget_object(o);
	Py_IncRef(&_Py_NoneStruct);
	return &_Py_NoneStruct;
}

/* A weak reference reports the object's end, and does not change the object's dictionary, which a program may copy or print. */
static struct object *add_object(PyObject *python, enum weft_kind kind)
{
	static struct method method = {"handle_end", handle_end, CALL_ONE, NULL};
	static PyObject *function;
	if (!function)
		function = PyCFunction_NewEx(&method, NULL, NULL);
	PyObject *reference = function ? PyWeakref_NewRef(python, function) : NULL;
	struct object *o = reference ? calloc(1, sizeof *o) : NULL;
	PyErr_Clear();
	if (!o) {
		release(reference);
		return NULL;
	}
	o->key = table_key(python);
	o->reference = reference;
	o->kind = kind;
	o->site = weft__python_find_running_place();
	weft__python_copy_name(python->type, o->label, sizeof o->label);
	if (!weft__table_set(&objects, o->key, o) || !weft__table_set(&references, table_key(reference), o)) {
		forget_object(o);
		return NULL;
	}
	return o;
}

static weft_id record_object(struct object *o)
{
	if (is_in_trace(o))
		return o->id;
	const unsigned epoch = weft__python_services->get_epoch();
	if (o->epoch != epoch && o->id)
		o->holder_count = 0; /* ids of another recording */
	o->epoch = epoch;
	o->id = weft_create(WEFT_SYSTEM_ID, o->kind, o->site);
	weft_label(o->id, o->label);
	for (unsigned i = 0; i < o->holder_count; i++)
		weft_hold(o->holders[i], o->id);
	return o->id;
}

static void hold_object(struct object *o, weft_id by)
{
	if (o->holder_count < MAX_HOLDERS)
		o->holders[o->holder_count++] = by;
	if (is_in_trace(o))
		weft_hold(by, o->id);
}

/* A task that is not the holder may release the object; then the oldest holder is removed. */
static void release_object(struct object *o, weft_id by)
{
	unsigned i = 0;
	while (i < o->holder_count && o->holders[i] != by)
		i++;
	i = i < o->holder_count ? i : 0;
	if (!o->holder_count)
		return;
	if (is_in_trace(o))
		weft_release(o->holders[i], o->id);
	memmove(o->holders + i, o->holders + i + 1, (--o->holder_count - i) * sizeof *o->holders);
}

weft_id weft__python_object_of_wait(PyObject *coroutine, struct object **object)
{
	PyObject *classes[] = {mixin, trio_lock, trio_event}, *python = NULL;
	for (size_t i = 0; i < sizeof classes / sizeof *classes && !python; i++)
		python = classes[i] ? weft__python_find_local(coroutine, classes[i]) : NULL;
	*object = python ? weft__table_find(&objects, table_key(python)) : NULL;
	return *object ? record_object(*object) : 0;
}

void weft__python_give_permit(struct object *object, weft_id to)
{
	if (object && given == object)
		hold_object(object, to);
	given = NULL;
}

/* ---- Attributes ---- */

enum attribute { LOCKED, PERMITS, EVENT_VALUE, TRIO_EVENT, WAITERS, UNFINISHED, TRIO_OWNER, ATTRIBUTE_COUNT };

static const struct {
	const char *module, *class, *name;
	enum weft_kind kind;
} attributes[ATTRIBUTE_COUNT] = {
    [LOCKED] = {"asyncio.locks", "Lock", "_locked", WEFT_KIND_LOCK},
    [PERMITS] = {"asyncio.locks", "Semaphore", "_value", WEFT_KIND_POOL},
    [EVENT_VALUE] = {"asyncio.locks", "Event", "_value", WEFT_KIND_CONDITION},
    [TRIO_EVENT] = {"trio._sync", "Event", "_flag", WEFT_KIND_CONDITION},
    [TRIO_OWNER] = {"trio._sync", "_LockImpl", "_owner", WEFT_KIND_LOCK},
    [WAITERS] = {"asyncio.locks", "Condition", "_waiters", WEFT_KIND_CONDITION},
    [UNFINISHED] = {"asyncio.queues", "Queue", "_unfinished_tasks", WEFT_KIND_QUEUE},
};
static PyObject *names[ATTRIBUTE_COUNT];

static void change_object(struct object *o, enum attribute attribute, long old, long value)
{
	const weft_id by = weft__python_acting();
	if (attribute == LOCKED && value && !old)
		hold_object(o, by);
	else if (attribute == LOCKED && !value && old)
		release_object(o, by);
	else if (attribute == PERMITS && value > old)
		release_object(o, by);
	else if (attribute == PERMITS && value < old && weft__python_is_running("Semaphore._wake_up_next"))
		given = o;
	else if (attribute == PERMITS && value < old)
		hold_object(o, by);
	else if ((attribute == EVENT_VALUE || attribute == TRIO_EVENT) && value && !old && is_in_trace(o))
		weft_signal_only(by, o->id);
}

/* The owner of a lock of trio is a task, which gives the lock to the next owner. */
static void change_owner(struct object *o, PyObject *owner)
{
	const weft_id to = owner == &_Py_NoneStruct ? 0 : weft__python_promise_of_task(owner);
	if (o->holder_count)
		release_object(o, o->holders[0]);
	if (to)
		hold_object(o, to);
}

/* Handles a new value of an object's attribute; the first value makes the object known. */
static void set_attribute(enum attribute attribute, PyObject *python, PyObject *value)
{
	PyObject *type, *error, *traceback;
	PyErr_Fetch(&type, &error, &traceback);
	struct object *o = weft__table_find(&objects, table_key(python));
	PyObject *old = o && attribute < WAITERS ? PyObject_GenericGetAttr(python, names[attribute]) : NULL;
	if (!o && (o = add_object(python, attributes[attribute].kind)) && attribute == PERMITS)
		snprintf(o->label + strlen(o->label), sizeof o->label - strlen(o->label), " of %ld", PyLong_AsLong(value));
	else if (o && attribute == TRIO_OWNER)
		change_owner(o, value);
	else if (o && old)
		change_object(o, attribute, PyLong_AsLong(old), PyLong_AsLong(value));
	PyErr_Clear();
	release(old);
	PyErr_Restore(type, error, traceback);
}

#define DEFINE_SETTER(ATTRIBUTE)                                                                                                 \
	static int set_##ATTRIBUTE(PyObject *python, PyObject *name, PyObject *value)                                            \
	{                                                                                                                        \
		if (name == names[ATTRIBUTE] && value && is_recording())                                                         \
			set_attribute(ATTRIBUTE, python, value);                                                                 \
		return PyObject_GenericSetAttr(python, name, value);                                                             \
	}
DEFINE_SETTER(LOCKED)
DEFINE_SETTER(PERMITS)
DEFINE_SETTER(EVENT_VALUE)
DEFINE_SETTER(TRIO_EVENT)
DEFINE_SETTER(WAITERS)
DEFINE_SETTER(UNFINISHED)
DEFINE_SETTER(TRIO_OWNER)
static const set_attribute_fn setters[ATTRIBUTE_COUNT] = {
    set_LOCKED, set_PERMITS, set_EVENT_VALUE, set_TRIO_EVENT, set_WAITERS, set_UNFINISHED, set_TRIO_OWNER};

void weft__python_wrap_setter(PyObject *class, set_attribute_fn setter)
{
	enum { FIRST_WORD = 4, END_WORD = 51 };
	set_attribute_fn *word = (set_attribute_fn *)(void *)class;
	if (PyType_GetSlot(class, SLOT_SET_ATTRIBUTE) != (void *)PyObject_GenericSetAttr)
		return;
	for (int i = FIRST_WORD; i < END_WORD; i++)
		if (word[i] == PyObject_GenericSetAttr) {
			word[i] = setter;
			break;
		}
	PyType_Modified(class);
	PyObject *method = GET_ATTRIBUTE(class, "__subclasses__"),
		 *list = method ? PyObject_CallFunctionObjArgs(method, NULL) : NULL, *all = list ? PyObject_GetIter(list) : NULL;
	for (PyObject *next; all && (next = PyIter_Next(all)); release(next))
		weft__python_wrap_setter(next, setter);
	release(all);
	release(list);
	release(method);
	PyErr_Clear();
}

/* Returns the class, which stays alive; NULL if it does not exist. */
static PyObject *wrap_attribute(enum attribute i)
{
	PyObject *module = PyImport_ImportModule(attributes[i].module), *name = PyUnicode_InternFromString(attributes[i].class),
		 *class = module && name ? PyObject_GetAttr(module, name) : NULL;
	names[i] = PyUnicode_InternFromString(attributes[i].name);
	if (class && names[i])
		weft__python_wrap_setter(class, setters[i]);
	release(name);
	release(module);
	PyErr_Clear();
	return class;
}

void weft__python_install_objects(void)
{
	static const enum attribute all[] = {LOCKED, PERMITS, EVENT_VALUE, WAITERS, UNFINISHED};
	PyObject *mixins = PyImport_ImportModule("asyncio.mixins");
	mixin = mixins ? GET_ATTRIBUTE(mixins, "_LoopBoundMixin") : NULL;
	release(mixins);
	for (size_t i = 0; mixin && i < sizeof all / sizeof *all; i++)
		release(wrap_attribute(all[i]));
	PyErr_Clear();
}

void weft__python_install_trio_objects(void)
{
	trio_lock = wrap_attribute(TRIO_OWNER);
	trio_event = wrap_attribute(TRIO_EVENT);
}
