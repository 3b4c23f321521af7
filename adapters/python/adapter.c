/* adapter.c: loads libweft-python.so into programs that contain Python 3.11 or later and import asyncio or start threads.
 *
 * A Python audit hook of this adapter sees each import.  The hook is added when Python is initialised: Python frees a hook that
 * was added earlier with another allocator, and aborts in its development mode.  Other Python programs pay only for the audit
 * hook.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/session.h"
#include "adapters/hook/state.h"
#include "adapters/python/services.h"

/* PyStatus */
struct status {
	int type;
	const char *function, *message;
	int exit_code;
};

static struct {
	struct status (*Py_InitializeFromConfig)(const void *config);
	int (*PySys_AddAuditHook)(int (*)(const char *, void *, void *), void *);
	void *(*PyTuple_GetItem)(void *, intptr_t);
	const char *(*PyUnicode_AsUTF8AndSize)(void *, intptr_t *);
	void (*PyErr_Clear)(void);
	void *(*PyGILState_GetThisThreadState)(void);
	void *(*PyEval_SaveThread)(void);
} real;

static const struct weft_hook_module *module;
static void (*note_release)(void);        /* NULL until the library is there */
static int minor;                         /* of Python 3 */
static void *(*get_running_thread)(void); /* Python's thread that has the interpreter's lock; NULL: no thread has it */
static weft_python_on_import_fn *on_import;

static bool begin_recording(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_list_copy(module);
	weft_hook_thread();
	return true;
}

static unsigned get_epoch(void)
{
	return weft__hook_epoch;
}

static weft_id get_root(void)
{
	return weft_hook_thread()->root;
}

static struct weft_hook_frame enter_task(weft_id task)
{
	weft_hook_thread();
	const struct weft_hook_frame frame = weft_hook_enter_callback(task);
	weft_hook_record_running(task);
	return frame;
}

static struct weft_hook_frame enter_again(weft_id task, struct weft_hook_calls *calls)
{
	weft_hook_thread();
	const bool is_recorded = weft_hook_count_repeat(calls, task, true);
	const struct weft_hook_frame frame = weft_hook_enter_callback(task);
	if (is_recorded)
		weft_hook_record_running(task);
	return frame;
}

/* Makes the job the running promise; a wait of a job delays no loop, so it is recorded as the thread's sleep. */
static struct weft_hook_frame enter_job(weft_id job)
{
	const struct weft_hook_frame frame = enter_task(job);
	weft__hook_get_thread()->callbacks = 0;
	return frame;
}

static void leave_task(struct weft_hook_frame *frame)
{
	weft_hook_leave_callback(frame);
	if (weft_is_on())
		weft_hook_record_running(weft__hook_get_thread()->running);
}

static void watch_calls(const struct weft_hook_language_call *(*find)(weft_id *input))
{
	weft__hook_language.find_call = find;
}

static void watch_starts(void (*copy)(char *name, size_t size))
{
	weft__hook_language.copy_thread_name = copy;
}

static bool has_interpreter_lock(void)
{
	const void *own = get_running_thread ? real.PyGILState_GetThisThreadState() : NULL;
	return own && own == get_running_thread();
}

static bool records_threads(void)
{
	return weft__hook_python == WEFT_HOOK_PYTHON_ALL;
}

static int get_minor(void)
{
	return minor;
}

static void watch_releases(void (*note)(void))
{
	__atomic_store_n(&note_release, note, __ATOMIC_RELEASE);
}

/* Python releases its lock before a call of C that may wait. */
static void *save_thread(void)
{
	void (*note)(void) = __atomic_load_n(&note_release, __ATOMIC_ACQUIRE);
	if (note && weft_is_on())
		note();
	return real.PyEval_SaveThread();
}

static void fail_thread(const char *error)
{
	struct weft_hook_thread *here = weft_hook_thread();
	snprintf(here->failure, sizeof here->failure, "%s", error);
}

static const struct weft_python_services services = {
    .begin = begin_recording,
    .get_epoch = get_epoch,
    .get_root = get_root,
    .enter = enter_task,
    .enter_again = enter_again,
    .enter_job = enter_job,
    .leave = leave_task,
    .register_list = weft_hook_register_list,
    .watch_calls = watch_calls,
    .watch_starts = watch_starts,
    .watch_releases = watch_releases,
    .has_interpreter_lock = has_interpreter_lock,
    .records_threads = records_threads,
    .get_minor = get_minor,
    .fail_thread = fail_thread,
};

/* libweft-python.so is in the same directory as this library.  libweft-python.so cannot be loaded if the program hides Python's
 * functions. */
static void load_library(void)
{
	Dl_info own;
	char path[PATH_MAX];
	const char *slash = dladdr((const void *)&services, &own) ? strrchr(own.dli_fname, '/') : NULL;
	if (!slash ||
	    snprintf(path, sizeof path, "%.*s/libweft-python.so", (int)(slash - own.dli_fname), own.dli_fname) >= PATH_MAX)
		return;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	on_import = library ? (weft_python_on_import_fn *)dlsym(library, "weft_python_on_import") : NULL;
	if (!library)
		dlerror();
}

static void load_library_once(void)
{
	static bool is_tried;
	if (!is_tried)
		load_library();
	is_tried = true;
}

static int audit(const char *event, void *arguments, void *data)
{
	if (strcmp(event, "import") != 0)
		return 0;
	const int saved = errno;
	const char *name = real.PyUnicode_AsUTF8AndSize(real.PyTuple_GetItem(arguments, 0), NULL);
	if (!name)
		real.PyErr_Clear();
	else if (strcmp(name, "_asyncio") == 0 || strcmp(name, "trio") == 0 || strcmp(name, "concurrent.futures.thread") == 0)
		load_library_once();
	if (name && on_import)
		on_import(&services, name);
	errno = saved;
	return 0;
}

/* Loads libweft-python.so when a thread first starts or waits for a lock.  The import of Python's module `threading` may be
 * older than the audit hook, and is then not seen. */
static const struct weft_hook_language_call *find_first_call(weft_id *input)
{
	if (!has_interpreter_lock())
		return NULL;
	const int saved = errno;
	watch_calls(NULL);
	load_library_once();
	if (on_import)
		on_import(&services, "threading");
	errno = saved;
	return weft_hook_find_call(input);
}

static struct status initialize_python(const void *config)
{
	const struct status status = real.Py_InitializeFromConfig(config);
	static bool is_added;
	if (status.type == 0 && weft__hook_gate && !is_added && weft__hook_python != WEFT_HOOK_PYTHON_OFF) {
		is_added = true;
		real.PySys_AddAuditHook(audit, NULL);
		if (records_threads())
			watch_calls(find_first_call);
	}
	return status;
}

static const struct weft_hook_function functions[] = {
    WEFT_HOOK_TAKEN(Py_InitializeFromConfig, initialize_python, real.Py_InitializeFromConfig),
    WEFT_HOOK_CALLED(PySys_AddAuditHook, real.PySys_AddAuditHook), WEFT_HOOK_CALLED(PyTuple_GetItem, real.PyTuple_GetItem),
    WEFT_HOOK_CALLED(PyUnicode_AsUTF8AndSize, real.PyUnicode_AsUTF8AndSize), WEFT_HOOK_CALLED(PyErr_Clear, real.PyErr_Clear),
    WEFT_HOOK_TAKEN(PyEval_SaveThread, save_thread, real.PyEval_SaveThread),
    WEFT_HOOK_CALLED(PyGILState_GetThisThreadState, real.PyGILState_GetThisThreadState), {0}};

/* The Python version is found by functions, because each version has a function that the version before lacks.  The adapter's
 * tables rely on the interpreter's lock, so builds of Python without that lock are not recorded. */
static bool is_supported_version(const struct weft_hook_module *of, char *version, size_t size)
{
	static const char *const newest[][2] = {{"PyConfig_Get", "3.14"}, {"PyList_GetItemRef", "3.13"},
	    {"PyType_GetDict", "3.12"}, {"PyFrame_GetLasti", "3.11"}, {NULL, "before 3.11"}};
	static const int minors[] = {14, 13, 12, 11, 0};
	const bool has_lock = !weft_hook_symbol(of, "PyUnstable_Module_SetGIL");
	size_t i = 0;
	void *getter = weft_hook_symbol(of, "PyThreadState_GetUnchecked"); /* since 3.13 */
	if (!getter)
		getter = weft_hook_symbol(of, "_PyThreadState_UncheckedGet");
	memcpy(&get_running_thread, &getter, sizeof getter);
	while (newest[i][0] && !weft_hook_symbol(of, newest[i][0]))
		i++;
	minor = minors[i];
	snprintf(version, size, "%s%s", newest[i][1], has_lock ? "" : " without the interpreter's lock");
	return newest[i][0] && has_lock;
}

const struct weft_hook_adapter weft_python_adapter = {
    .name = "asyncio of Python",
    .library = "/", /* no library counts as Python's: what Python asks of libc counts as asked by the program */
    .prefix = "Py_",
    .mark = "Py_InitializeFromConfig",
    .needs_start = "tasks of Python",
    .is_listed_when_called = true,
    WEFT_HOOK_SETS((functions), (&module)),
    .accepts = is_supported_version,
};
