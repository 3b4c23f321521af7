/* task.c: records steps of tasks, what tasks wait for, and how tasks end.
 *
 * asyncio runs each step of a task by the type slot am_send of the task's coroutine; an `await` inside of a coroutine does not
 * use this slot. A function of this file replaces am_send.  After the step the coroutine is suspended, and shows its line and
 * what it waits for.  SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapters/python/common.h"

struct task {
	PyObject *coroutine, *python; /* borrowed references; `coroutine` is NULL after the coroutine has ended */
	PyObject *future;             /* future that the task waits for, as a borrowed reference; NULL: none */
	weft_id id, wait, shown_input, parent;
	struct object *object;                 /* lock or queue that the task waits for */
	const struct weft_record_site *thread; /* address of a variable of the thread that runs the task */
	struct weft_record_site *site;
	unsigned epoch;
	bool is_wait_over, is_used;
	bool is_kept_by_loop;         /* whether the loop runs until this task ends */
	bool is_foreign;              /* whether another loop than asyncio's runs the task */
	struct weft_hook_calls steps; /* that no event caused */
	uint64_t since;
	struct task *next_free;
	char label[80];
};

enum { CHUNK_TASKS = 256, MAX_CHUNKS = 4096 };

/* Tasks are never freed, because a thread without the interpreter's lock may read them. */
static struct task *chunks[MAX_CHUNKS];
static unsigned chunk_count; /* atomic */
static struct task *free_tasks;

static struct table tasks, waiters; /* tables of tasks by coroutine and by Task object, and of waiting tasks by future */

static __thread struct {
	unsigned epoch;
	struct task *running;
	weft_id root, loop;
	PyObject *python_loop;        /* Python's object of the running loop, as a borrowed reference; NULL if no loop runs */
	struct weft_hook_frame outer; /* of uvloop's loop */
	bool is_uvloop;
	struct weft_record_site mark; /* variable whose address identifies the thread */
} here __attribute__((tls_model("initial-exec")));

weft_id weft__python_acting(void)
{
	return here.running ? here.running->id : weft_running();
}

weft_id weft__python_calling_loop(void)
{
	return here.running || here.epoch != weft__python_services->get_epoch() ? 0 : here.loop;
}

bool weft__python_has_loop(void)
{
	return here.loop && here.epoch == weft__python_services->get_epoch();
}

/* ---- Tasks ---- */

static struct task *allocate_task(void)
{
	if (!free_tasks && chunk_count < MAX_CHUNKS) {
		struct task *chunk = calloc(CHUNK_TASKS, sizeof *chunk);
		for (int i = 0; chunk && i < CHUNK_TASKS; i++) {
			chunk[i].next_free = free_tasks;
			free_tasks = &chunk[i];
		}
		if (chunk) {
			chunks[chunk_count] = chunk;
			__atomic_store_n(&chunk_count, chunk_count + 1, __ATOMIC_RELEASE);
		}
	}
	struct task *task = free_tasks;
	if (task)
		free_tasks = task->next_free;
	return task;
}

static void forget_future(struct task *t)
{
	if (t->future && weft__table_find(&waiters, table_key(t->future)) == t)
		weft__table_remove(&waiters, table_key(t->future));
	t->future = NULL;
}

static void free_task(struct task *t)
{
	__atomic_store_n(&t->is_used, false, __ATOMIC_RELEASE);
	forget_future(t);
	if (t->coroutine)
		weft__table_remove(&tasks, table_key(t->coroutine));
	weft__table_remove(&tasks, table_key(t->python));
	t->next_free = free_tasks;
	free_tasks = t;
}

/* Lists the tasks of this thread for a checkpoint of the ring. */
static uint64_t list_tasks(void *data, uint64_t cursor, unsigned budget)
{
	const uint64_t count = (uint64_t)__atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE) * CHUNK_TASKS;
	for (; cursor < count && budget > 0; cursor++) {
		const struct task *t = &chunks[cursor / CHUNK_TASKS][cursor % CHUNK_TASKS];
		if (!__atomic_load_n(&t->is_used, __ATOMIC_ACQUIRE) || t->thread != data || !t->id || !t->coroutine ||
		    t->epoch != weft__python_services->get_epoch())
			continue;
		budget--;
		weft_pending(WEFT_SYSTEM_ID, t->id, WEFT_KIND_TASK, t->site, t->since, t->label);
		if (t->wait && t->shown_input)
			weft_still_awaits(t->id, t->shown_input);
	}
	return cursor < count ? cursor : 0;
}

static void begin_thread(void)
{
	here.epoch = weft__python_services->get_epoch();
	here.root = weft__python_services->get_root();
	here.loop = 0;
	weft__python_services->register_list(list_tasks, &here.mark);
}

/* Gives the task an id in this recording, if it has none, as in the child of a fork. */
static void ensure_task(struct task *t)
{
	const unsigned epoch = weft__python_services->get_epoch();
	if (here.epoch != epoch)
		begin_thread();
	if (t->epoch == epoch && t->id)
		return;
	t->id = weft_pending(WEFT_SYSTEM_ID, 0, WEFT_KIND_TASK, t->site, t->since, t->label);
	t->epoch = epoch;
	t->wait = t->shown_input = 0;
}

static void write_label(struct task *t, PyObject *name)
{
	const char *given = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	char own[64];
	weft__python_copy_name(t->coroutine, own, sizeof own);
	if (given && strncmp(given, "Task-", 5) != 0)
		snprintf(t->label, sizeof t->label, "%.40s: %.36s", given, own);
	else
		snprintf(t->label, sizeof t->label, "%s", own);
	PyErr_Clear();
}

/* Returns where the task was created.  If a library creates tasks of the user's functions, the site is the function's
 * definition, which tells the tasks apart. */
static struct weft_record_site *find_origin(PyObject *coroutine)
{
	struct weft_record_site *site = weft__python_find_running_place();
	if (site)
		return site;
	PyObject *code = coroutine->type == weft__python_types.coroutine ? GET_ATTRIBUTE(coroutine, "cr_code")
									 : GET_ATTRIBUTE(coroutine, "gi_code");
	site = code ? weft__python_find_definition(code) : NULL;
	release(code);
	return site;
}

static struct task *create_task(PyObject *coroutine, PyObject *python, PyObject *name)
{
	struct task *t = allocate_task();
	if (!t)
		return NULL;
	*t = (struct task){.coroutine = coroutine, .python = python, .thread = &here.mark};
	write_label(t, name);
	t->site = find_origin(coroutine);
	if (here.epoch != weft__python_services->get_epoch())
		begin_thread();
	t->id = weft_create(weft__python_acting(), WEFT_KIND_TASK, t->site);
	t->since = weft_now();
	t->epoch = here.epoch;
	weft_label(t->id, t->label);
	if (!weft__table_set(&tasks, table_key(coroutine), t) || !weft__table_set(&tasks, table_key(python), t)) {
		free_task(t);
		return NULL;
	}
	__atomic_store_n(&t->is_used, true, __ATOMIC_RELEASE);
	return t;
}

/* ---- Waits ---- */

static struct task *find_pending_task(PyObject *python)
{
	struct task *t = python ? weft__table_find(&tasks, table_key(python)) : NULL;
	if (!t || !t->coroutine)
		return NULL;
	ensure_task(t);
	return t;
}

static bool is_pending_task(PyObject *python)
{
	const struct task *t = weft__table_find(&tasks, table_key(python));
	return t && t->coroutine && t->python == python;
}

/* Returns the promise of a task, or of the task or job whose result the object gets; 0 if there is none, or it has ended. */
static weft_id find_input(PyObject *python)
{
	const struct task *t = find_pending_task(python);
	const weft_id job = t || !python ? 0 : weft__python_job_of_wait(python);
	if (!t && !job && python) /* shield() */
		t = find_pending_task(weft__python_find_in_callbacks(python, is_pending_task));
	return t ? t->id : job;
}

static void await_each(weft_id wait, PyObject *group)
{
	PyObject *all = group ? PyObject_GetIter(group) : NULL;
	for (PyObject *next; all && (next = PyIter_Next(all)); release(next)) {
		const weft_id input = find_input(next);
		if (input)
			weft_await(wait, input);
	}
	release(all);
	PyErr_Clear();
}

static void label_sleep(weft_id wait, PyObject *coroutine, const struct wait_place *place)
{
	PyObject *delay = weft__python_find_local(coroutine, &PyFloat_Type);
	delay = delay ? delay : weft__python_find_local(coroutine, &PyLong_Type);
	const double seconds = delay ? PyFloat_AsDouble(delay) : -1;
	char text[48];
	PyErr_Clear();
	if (seconds < 0) {
		weft_label(wait, place->label.text);
		return;
	}
	snprintf(text, sizeof text, seconds < 1 ? "sleep %.4g ms" : "sleep %.4g s", seconds < 1 ? seconds * 1e3 : seconds);
	weft_label(wait, text);
}

/* The limit is part of the label, because the waits of different tasks have different limits. */
static void label_timed_wait(weft_id wait, const struct wait_place *place, const struct task *timed)
{
	char text[160];
	snprintf(text, sizeof text, "%.60s(%s)", place->label.text, timed->label);
	weft_label(wait, text);
}

static PyObject *find_group(const struct wait *w)
{
	const bool is_nursery = w->place->input == INPUT_NURSERY;
	PyObject *coroutines[] = {w->innermost, w->outer}, *found = NULL,
		 *module = PyImport_ImportModule(is_nursery ? "trio._core._run" : "asyncio.taskgroups"),
		 *type = !module      ? NULL
			 : is_nursery ? GET_ATTRIBUTE(module, "Nursery")
				      : GET_ATTRIBUTE(module, "TaskGroup");
	for (size_t i = 0; type && !found && i < 2; i++) {
		PyObject *group = coroutines[i] ? weft__python_find_local(coroutines[i], type) : NULL;
		found = !group ? NULL : is_nursery ? GET_ATTRIBUTE(group, "_children") : GET_ATTRIBUTE(group, "_tasks");
	}
	release(type);
	release(module);
	PyErr_Clear();
	return found;
}

/* Records what the task waits for.  `future` is NULL for another loop than asyncio's. */
static void record_input(struct task *t, const struct wait *w, PyObject *future)
{
	weft_id input = find_input(future);
	const struct task *timed = NULL;
	PyObject *group = NULL;
	switch (w->place->input) {
	case INPUT_OBJECT: input = weft__python_object_of_wait(w->innermost, &t->object); break;
	case INPUT_TASK:
		timed = find_pending_task(weft__python_find_local(w->innermost, weft__python_types.task));
		input = input ? input : timed ? timed->id : 0;
		break;
	case INPUT_SET:
		if ((group = weft__python_find_local(w->innermost, &PySet_Type)))
			Py_IncRef(group);
		break;
	case INPUT_GROUP:
	case INPUT_NURSERY: group = find_group(w); break;
	case INPUT_NONE:
		if (w->place->kind == WEFT_KIND_PROMISE && !input && future && future->type != weft__python_types.future)
			group = GET_ATTRIBUTE(future, "_children"); /* gather() */
		break;
	case INPUT_SECONDS: break;
	}
	const bool is_gather = group && w->place->input == INPUT_NONE;
	const bool has_own_timer = here.is_uvloop && w->place->input == INPUT_SECONDS;
	const enum weft_kind kind = has_own_timer                                  ? WEFT_KIND_WAIT
				    : is_gather                                    ? WEFT_KIND_JOIN
				    : input && w->place->kind == WEFT_KIND_PROMISE ? WEFT_KIND_WAIT
										   : w->place->kind;
	t->wait = weft_create(t->id, kind, (struct weft_record_site *)&w->place->site);
	if (w->place->input == INPUT_SECONDS)
		label_sleep(t->wait, w->innermost, w->place);
	else if (is_gather)
		WEFT_LABEL(t->wait, "gather");
	else if (timed)
		label_timed_wait(t->wait, w->place, timed);
	else
		weft_label_text(t->wait, (struct weft_record_text *)&w->place->label);
	if (input)
		weft_await(t->wait, input);
	await_each(t->wait, group);
	release(group);
}

static void suspend_task(struct task *t, PyObject *future)
{
	struct wait wait;
	/* A task of trio yields a class to run again in the loop's next iteration, and an object of trio to wait. */
	const bool is_class = future && future->type == future->type->type;
	if (!future || future == &_Py_NoneStruct || is_class || !weft__python_find_wait(t->coroutine, &wait))
		return; /* the task yielded without a future, so it runs again in the loop's next iteration */
	t->future = future = t->is_foreign ? NULL : future;
	t->is_wait_over = false;
	t->object = NULL;
	record_input(t, &wait, future);
	if (future && !weft__table_find(&tasks, table_key(future)))
		weft__table_set(&waiters, table_key(future), t);
	weft_await(t->id, t->wait);
	t->shown_input = t->wait;
}

static void end_wait(struct task *t)
{
	if (!t->wait)
		return;
	if (!t->is_wait_over)
		weft_resolve(WEFT_SYSTEM_ID, t->wait);
	weft_read_later(t->id, t->wait);
	t->wait = t->shown_input = 0;
	forget_future(t);
}

/* Returns whether the task's wait ends now by a timeout.  Until Python 3.11, the same function ends a wait_for() if the task has
 * ended and if its time is up. */
static bool is_timed_out(const struct task *t)
{
	struct wait w;
	if (weft__python_is_running("Timeout._on_timeout"))
		return true;
	return weft__python_is_running("_release_waiter") && weft__python_find_wait(t->coroutine, &w) &&
	       w.place->input == INPUT_TASK && find_pending_task(weft__python_find_local(w.innermost, weft__python_types.task));
}

/* Records that a timer ends the wait before the awaited promise ends. */
static void time_out(weft_id wait)
{
	const weft_id timer = weft_create(weft__python_acting(), WEFT_KIND_TIMER, NULL);
	WEFT_LABEL(timer, "timeout");
	weft_signal_only(timer, wait);
	WEFT_LABEL(wait, "cancelled");
	WEFT_FAIL(timer, wait, "cancelled");
	weft_resolve(timer, timer);
}

/* Records which promise ends the future that a task waits for. */
static void end_future(PyObject *future, const char *error)
{
	struct task *t = weft__table_find(&waiters, table_key(future));
	if (!t || t->is_wait_over || !t->wait || t->epoch != weft__python_services->get_epoch())
		return;
	t->is_wait_over = true;
	weft__python_give_permit(t->object, t->id);
	if (is_timed_out(t))
		time_out(t->wait);
	else if (error)
		weft_fail(weft__python_acting(), t->wait, error);
	else
		weft_resolve(weft__python_acting(), t->wait);
}

/* ---- Steps ---- */

struct step {
	struct task *task, *outer;
	struct weft_hook_frame frame;
	weft_id id;
	unsigned epoch;
};

/* Returns false if the coroutine is no task, or if its step runs already. */
static bool begin_step(struct step *step, PyObject *coroutine)
{
	if (PyInterpreterState_Get() != weft__python_interpreter)
		return false;
	struct task *t = weft__table_find(&tasks, table_key(coroutine));
	if (!t || t == here.running || !is_recording())
		return false;
	ensure_task(t);
	t->thread = &here.mark;
	*step = (struct step){t, here.running,
	    t->wait ? weft__python_services->enter(t->id) : weft__python_services->enter_again(t->id, &t->steps), t->id,
	    t->epoch};
	end_wait(t);
	here.running = t;
	return true;
}

/* The recorded error is only the type's name, because the error's text may contain secret values of the program. */
static bool fail_task(struct task *t)
{
	static PyObject *cancelled;
	PyObject *type, *value, *traceback;
	PyErr_Fetch(&type, &value, &traceback);
	char name[128] = "?";
	if (!cancelled && !t->is_foreign) {
		PyObject *exceptions = PyImport_ImportModule("asyncio.exceptions");
		cancelled = exceptions ? GET_ATTRIBUTE(exceptions, "CancelledError") : NULL;
		release(exceptions);
	}
	const bool is_return = type && PyErr_GivenExceptionMatches(type, PyExc_StopIteration),
		   is_cancelled = type && !t->is_foreign && cancelled && PyErr_GivenExceptionMatches(type, cancelled);
	if (type && !is_return)
		weft__python_copy_name(type, name, sizeof name);
	if (is_return)
		weft_resolve(t->id, t->id);
	else if (is_cancelled || (t->is_foreign && strcmp(name, "Cancelled") == 0))
		WEFT_FAIL(t->id, t->id, "cancelled");
	else
		weft_fail(t->id, t->id, name);
	if (t->is_foreign && !is_return) /* a nursery passes the error on to the task that has opened the nursery */
		weft_read_later(t->parent, t->id);
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
	return !is_return && !is_cancelled && !t->is_foreign;
}

/* A task that failed stays known until its Task object is freed, because code may still ask for the error. */
static void end_task(struct task *t, int result)
{
	bool has_failed = false;
	if (result == STEP_RETURNS)
		weft_resolve(t->id, t->id);
	else
		has_failed = fail_task(t);
	if (!has_failed) {
		free_task(t);
		return;
	}
	weft__table_remove(&tasks, table_key(t->coroutine));
	t->coroutine = NULL;
}

static void end_step(struct step *step, PyObject *coroutine, int result, PyObject *awaited)
{
	struct task *t = weft__table_find(&tasks, table_key(coroutine));
	if (t == step->task && t->id == step->id && weft_is_on()) {
		ensure_task(t);
		if (result == STEP_WAITS)
			suspend_task(t, awaited);
		else
			end_task(t, result);
	}
	here.running = step->outer;
	if (weft_is_on() && step->epoch != weft__python_services->get_epoch()) /* the step forked, and this is the child */
		step->frame.running = weft__python_services->get_root();
	weft__python_services->leave(&step->frame);
}

static send_fn real_coroutine_send, real_generator_send;

static int run_step(send_fn send, PyObject *coroutine, PyObject *value, PyObject **result)
{
	struct step step;
	if (!begin_step(&step, coroutine))
		return send(coroutine, value, result);
	const int r = send(coroutine, value, result);
	end_step(&step, coroutine, r, *result);
	return r;
}

static int send_coroutine(PyObject *coroutine, PyObject *value, PyObject **result)
{
	return run_step(real_coroutine_send, coroutine, value, result);
}

static int send_generator(PyObject *coroutine, PyObject *value, PyObject **result)
{
	return run_step(real_generator_send, coroutine, value, result);
}

/* Wrapper of send(), by which trio runs its tasks. */
static one_fn real_send_method;

static PyObject *send_into_coroutine(PyObject *coroutine, PyObject *value)
{
	struct step step;
	if (!begin_step(&step, coroutine))
		return real_send_method(coroutine, value);
	PyObject *r = real_send_method(coroutine, value);
	end_step(&step, coroutine, r ? STEP_WAITS : STEP_FAILS, r);
	return r;
}

/* Wrapper of throw(): asyncio continues a cancelled task with an exception. */
static fast_fn real_throw;

static PyObject *throw_into_coroutine(PyObject *coroutine, PyObject *const *arguments, intptr_t count, PyObject *unused)
{
	struct step step;
	if (!begin_step(&step, coroutine))
		return real_throw(coroutine, arguments, count, unused);
	PyObject *r = real_throw(coroutine, arguments, count, unused);
	end_step(&step, coroutine, r ? STEP_WAITS : STEP_FAILS, r);
	return r;
}

/* ---- Tasks of other loops ---- */

void weft__python_create_foreign_task(PyObject *coroutine, PyObject *python)
{
	struct task *t = create_task(coroutine, python, NULL);
	if (!t)
		return;
	t->is_foreign = true;
	t->parent = weft__python_acting();
	if ((t->is_kept_by_loop = !here.running))
		weft_await(here.root, t->id);
}

/* If no task runs, the loop ends the wait because its time is up. */
void weft__python_end_foreign_wait(PyObject *python, bool is_cancelled)
{
	struct task *t = find_pending_task(python);
	if (!t || !t->wait || t->is_wait_over)
		return;
	t->is_wait_over = true;
	if (is_cancelled && !here.running)
		time_out(t->wait);
	else if (is_cancelled)
		WEFT_FAIL(weft__python_acting(), t->wait, "cancelled");
	else
		weft_resolve(weft__python_acting(), t->wait);
}

weft_id weft__python_promise_of_task(PyObject *python)
{
	const struct task *t = find_pending_task(python);
	return t ? t->id : 0;
}

/* ---- Tasks and futures of Python ---- */

static init_fn real_init;
static finalize_fn real_finalize;

static int init_task(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct task *t = NULL;
	PyObject *coroutine = PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0)
			      : keywords                  ? PyDict_GetItemString(keywords, "coro")
							  : NULL;
	if (coroutine && (coroutine->type == weft__python_types.coroutine || coroutine->type == weft__python_types.generator) &&
	    is_recording())
		t = create_task(coroutine, self, keywords ? PyDict_GetItemString(keywords, "name") : NULL);
	const int r = real_init(self, arguments, keywords);
	if (r < 0 && t && weft__table_find(&tasks, table_key(self)) == t)
		free_task(t);
	return r;
}

static void finalize_task(PyObject *self)
{
	struct task *t = PyInterpreterState_Get() == weft__python_interpreter ? weft__table_find(&tasks, table_key(self)) : NULL;
	if (t) {
		PyObject *type, *value, *traceback;
		PyErr_Fetch(&type, &value, &traceback);
		const bool is_here = weft_is_on() && t->id && t->epoch == weft__python_services->get_epoch();
		PyObject *unasked = t->coroutine ? NULL : GET_ATTRIBUTE(self, "_log_traceback");
		if (is_here && t->coroutine)
			WEFT_FAIL(WEFT_SYSTEM_ID, t->id, WEFT_UNRETURNED);
		else if (is_here && unasked && PyObject_IsTrue(unasked) == 1)
			WEFT_NOTE(t->id, WEFT_UNASKED);
		release(unasked);
		free_task(t);
		PyErr_Clear();
		PyErr_Restore(type, value, traceback);
	}
	real_finalize(self);
}

static void note_result(PyObject *future, PyObject *value)
{
	end_future(future, NULL);
}

static void note_exception(PyObject *future, PyObject *value)
{
	char name[128] = "?";
	if (value && weft__table_find(&waiters, table_key(future)))
		weft__python_copy_name(PyType_IsSubtype(value->type, value->type->type) ? value : value->type, name, sizeof name);
	end_future(future, name);
}

static void note_cancel(PyObject *future, PyObject *value)
{
	end_future(future, "cancelled");
}

static void note_task_cancel(PyObject *python, PyObject *value)
{
	const struct task *t = find_pending_task(python);
	if (!t)
		return;
	weft_signal_only(weft__python_acting(), t->id);
	if (weft__python_is_running("Timeout._on_timeout"))
		WEFT_NOTE(t->id, "cancelled: its time is up");
	else
		WEFT_NOTE(t->id, "cancelled");
}

static void end_loop(void)
{
	if (here.loop)
		weft_resolve(WEFT_SYSTEM_ID, here.loop);
	if (here.loop && here.is_uvloop)
		weft__python_services->leave(&here.outer);
	here.loop = 0;
}

/* Returns whether the loop is uvloop's; such a loop runs a loop of libuv, which has a promise of its own below this loop's
 * promise. */
static bool is_uvloop(PyObject *loop)
{
	PyObject *module = GET_ATTRIBUTE(loop->type, "__module__");
	const char *name = module ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
	const bool is = name && strncmp(name, "uvloop", strlen("uvloop")) == 0;
	release(module);
	PyErr_Clear();
	return is;
}

/* Notes that this thread's loop begins, and awaits the tasks that were made for it; or, if `loop` is None, that the loop
 * ends. */
static void note_loop(PyObject *module, PyObject *loop)
{
	if (here.epoch != weft__python_services->get_epoch())
		begin_thread();
	end_loop();
	if (!loop || loop == &_Py_NoneStruct)
		return;
	char name[64];
	weft__python_copy_name(loop->type, name, sizeof name);
	here.python_loop = loop;
	here.loop = weft_create(here.root, WEFT_KIND_LOOP, weft__python_find_running_place());
	weft_label(here.loop, name);
	weft_await(here.root, here.loop);
	if ((here.is_uvloop = is_uvloop(loop)))
		here.outer = weft__python_services->enter_job(here.loop);
	for (unsigned i = 0; i < chunk_count * CHUNK_TASKS; i++) {
		struct task *t = &chunks[i / CHUNK_TASKS][i % CHUNK_TASKS];
		if (!t->is_used || !t->coroutine || t->thread != &here.mark)
			continue;
		ensure_task(t);
		t->is_kept_by_loop = true;
		weft_await(here.loop, t->id);
	}
}

/* ---- Sleeps without a timeout ---- */

/* Returns whether the program handles a signal, which may wake the loop; the keyboard interrupt does not count. */
static bool has_signal_handler(void)
{
	static const int signals[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGIO, SIGWINCH, SIGQUIT};
	struct sigaction action;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    (action.sa_flags & SA_SIGINFO || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)))
			return true;
	return false;
}

static bool has_other_thread(void)
{
	/* Number of links of /proc/self/task with one thread: one for the thread's folder, and two of its own. */
	enum { LINKS_OF_ONE_THREAD = 3 };
	struct stat threads;
	return stat("/proc/self/task", &threads) != 0 || threads.st_nlink != LINKS_OF_ONE_THREAD;
}

static bool is_selector_of_loop(PyObject *epoll)
{
	PyObject *selector = GET_ATTRIBUTE(here.python_loop, "_selector"),
		 *inner = selector ? GET_ATTRIBUTE(selector, "_selector") : NULL;
	const bool is_own = inner == epoll;
	release(inner);
	release(selector);
	return is_own;
}

/* Notes that the tasks for which this thread's loop runs never end. */
static void note_hang(void)
{
	for (unsigned i = 0; i < chunk_count * CHUNK_TASKS; i++) {
		struct task *t = &chunks[i / CHUNK_TASKS][i % CHUNK_TASKS];
		if (t->is_used && t->coroutine && t->thread == &here.mark && t->is_kept_by_loop && t->epoch == here.epoch)
			weft_should_resolve(t->id);
	}
}

/* trio sleeps for a day if no task has a deadline, and always watches the descriptor by which other threads wake it. */
static void note_trio_sleep(PyObject *limit, PyObject *descriptors)
{
	enum { SECONDS_OF_DAY = 24 * 60 * 60 };
	if (!here.loop && !here.running && (limit->type == &PyFloat_Type || limit->type == &PyLong_Type) &&
	    descriptors->type == &PyLong_Type && PyFloat_AsDouble(limit) >= SECONDS_OF_DAY && PyLong_AsLong(descriptors) == 1 &&
	    here.epoch == weft__python_services->get_epoch() && !has_other_thread() && !has_signal_handler())
		note_hang();
}

/* The loop sleeps.  If the sleep has no timeout, nothing else acts, and the loop watches only the descriptor that wakes the loop
 * itself, the task that the loop runs for hangs for certain. */
static void note_sleep(PyObject *epoll, PyObject *limit, PyObject *descriptors)
{
	if (!here.loop || limit->type != &PyLong_Type || descriptors->type != &PyLong_Type || PyLong_AsLong(limit) >= 0 ||
	    PyLong_AsLong(descriptors) != 1 || here.epoch != weft__python_services->get_epoch() || has_other_thread() ||
	    has_signal_handler() || !is_selector_of_loop(epoll))
		return;
	note_hang();
}

static bool has_trio;
static fast_fn real_poll;

static PyObject *poll_epoll(PyObject *self, PyObject *const *arguments, intptr_t count, PyObject *names)
{
	if (count == 2 && !names && is_recording()) {
		note_sleep(self, arguments[0], arguments[1]);
		if (has_trio)
			note_trio_sleep(arguments[0], arguments[1]);
	}
	return real_poll(self, arguments, count, names);
}

/* Defines a wrapper for each of the three ways in which versions of Python call these methods. */
#define DEFINE_METHOD(NAME, NOTE)                                                                                                \
	static one_fn real_##NAME;                                                                                               \
	static PyObject *one_##NAME(PyObject *self, PyObject *argument)                                                          \
	{                                                                                                                        \
		if (is_recording())                                                                                              \
			NOTE(self, argument);                                                                                    \
		return real_##NAME(self, argument);                                                                              \
	}                                                                                                                        \
	static PyObject *fast_##NAME(PyObject *self, PyObject *const *arguments, intptr_t count, PyObject *names)                \
	{                                                                                                                        \
		if (is_recording())                                                                                              \
			NOTE(self, count ? arguments[0] : NULL);                                                                 \
		return ((fast_fn)(void *)real_##NAME)(self, arguments, count, names);                                            \
	}                                                                                                                        \
	static PyObject *method_##NAME(                                                                                          \
	    PyObject *self, PyObject *class, PyObject *const *arguments, uintptr_t count, PyObject *names)                       \
	{                                                                                                                        \
		if (is_recording())                                                                                              \
			NOTE(self, count ? arguments[0] : NULL);                                                                 \
		return ((method_fn)(void *)real_##NAME)(self, class, arguments, count, names);                                   \
	}
DEFINE_METHOD(result, note_result)
DEFINE_METHOD(exception, note_exception)
DEFINE_METHOD(cancel, note_cancel)
DEFINE_METHOD(task_cancel, note_task_cancel)
DEFINE_METHOD(loop, note_loop)

static void wrap_method(struct method *m, one_fn *real, one_fn one, fast_fn fast, method_fn method)
{
	if (!m || *real)
		return;
	const bool is_one = m->flags == CALL_ONE || m->flags == CALL_NOTHING, is_fast = m->flags == (CALL_FAST | CALL_KEYWORDS),
		   is_method = m->flags == (CALL_METHOD | CALL_FAST | CALL_KEYWORDS);
	if (!is_one && !is_fast && !is_method)
		return;
	*real = m->function;
	m->function = is_one ? one : is_fast ? (one_fn)(void *)fast : (one_fn)(void *)method;
}
#define WRAP_METHOD(METHOD, NAME) wrap_method(METHOD, &real_##NAME, one_##NAME, fast_##NAME, method_##NAME)

/* ---- Slots ---- */

enum { ASYNC_WORD = 10, SEND_WORD = 3, FIRST_WORD = 4, END_WORD = 51 };

static send_fn *find_send(PyObject *type)
{
	send_fn *methods = ((send_fn **)(void *)type)[ASYNC_WORD];
	const send_fn send = (send_fn)PyType_GetSlot(type, SLOT_SEND);
	return send && methods && methods[SEND_WORD] == send ? &methods[SEND_WORD] : NULL;
}

void **weft__python_find_slot(PyObject *type, int number)
{
	void *value = PyType_GetSlot(type, number), **word = (void **)type;
	for (int i = FIRST_WORD; value && i < END_WORD; i++)
		if (word[i] == value)
			return &word[i];
	return NULL;
}

struct method *weft__python_find_method(PyObject *type, const char *name)
{
	struct method *m = PyType_GetSlot(type, SLOT_METHODS);
	while (m && m->name && strcmp(m->name, name) != 0)
		m++;
	return m && m->name ? m : NULL;
}

/* Changes the slot's copy in a wrapper object, because super().__init__() of a subclass uses that copy. */
static void change_wrapper(PyObject *wrapper, void *real, void *ours)
{
	enum { FIRST = 2, END = 8 };
	for (int i = FIRST; wrapper && i < END; i++)
		if (((void **)wrapper)[i] == real)
			((void **)wrapper)[i] = ours;
	release(wrapper);
}

static void install_poll(void)
{
	PyObject *module = PyImport_ImportModule("select"), *epoll = module ? GET_ATTRIBUTE(module, "epoll") : NULL;
	struct method *poll = epoll ? weft__python_find_method(epoll, "poll") : NULL;
	if (poll && !real_poll && poll->flags == (CALL_FAST | CALL_KEYWORDS)) {
		real_poll = (fast_fn)(void *)poll->function;
		poll->function = (one_fn)(void *)poll_epoll;
	}
	release(epoll);
	release(module);
	PyErr_Clear();
}

static void wrap_throw(void)
{
	struct method *thrower = weft__python_find_method(weft__python_types.coroutine, "throw");
	if (real_throw || !thrower || thrower->flags != CALL_FAST)
		return;
	real_throw = (fast_fn)(void *)thrower->function;
	thrower->function = (one_fn)(void *)throw_into_coroutine;
}

void weft__python_install_methods(void)
{
	struct method *sender = weft__python_find_method(weft__python_types.coroutine, "send");
	wrap_throw();
	if (!sender || sender->flags != CALL_ONE)
		return;
	real_send_method = sender->function;
	sender->function = send_into_coroutine;
	has_trio = true;
	install_poll();
}

bool weft__python_install_tasks(PyObject *asyncio)
{
	const struct python_types *t = &weft__python_types;
	send_fn *coroutine = find_send(t->coroutine), *generator = find_send(t->generator);
	void **init = weft__python_find_slot(t->task, SLOT_INIT), **finalize = weft__python_find_slot(t->task, SLOT_FINALIZE);
	if (!coroutine || !generator || !init || !finalize)
		return false;
	real_coroutine_send = *coroutine;
	real_generator_send = *generator;
	real_init = (init_fn)*init;
	real_finalize = (finalize_fn)*finalize;
	*coroutine = send_coroutine;
	*generator = send_generator;
	*init = (void *)init_task;
	*finalize = (void *)finalize_task;
	change_wrapper(GET_ATTRIBUTE(t->task, "__init__"), (void *)real_init, (void *)init_task);
	change_wrapper(GET_ATTRIBUTE(t->task, "__del__"), (void *)real_finalize, (void *)finalize_task);
	wrap_throw();
	WRAP_METHOD(weft__python_find_method(t->future, "set_result"), result);
	WRAP_METHOD(weft__python_find_method(t->future, "set_exception"), exception);
	WRAP_METHOD(weft__python_find_method(t->future, "cancel"), cancel);
	WRAP_METHOD(weft__python_find_method(t->task, "cancel"), task_cancel);
	PyObject *function = GET_ATTRIBUTE(asyncio, "_set_running_loop");
	if (function)
		WRAP_METHOD(weft__python_method_of_function(function), loop);
	release(function);
	install_poll();
	return true;
}
