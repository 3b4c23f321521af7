/* place.c: finds the lines of the user's code, and names for what the code waits for.
 *
 * A suspended coroutine refers to the coroutine that it awaits, and so on inwards.  The innermost coroutine outside of the
 * standard library and of installed packages is the user's; the coroutine that it awaits gives the wait its name.  Lines are
 * cached by code object and instruction, so only the first wait at a line makes texts.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapters/python/common.h"
#include "base/python_frames.h"

enum { MAX_LEVELS = 24, MAX_PLACES = 1 << 16, FOLDER_BYTES = 512 };

struct level {
	const struct code *code;
	PyObject *coroutine; /* borrowed */
	int instruction, line;
};

static struct table codes, sites, calls, waits;
static char library_folder[FOLDER_BYTES], asyncio_folder[FOLDER_BYTES], working_folder[FOLDER_BYTES];
static struct {
	getter_fn awaited, frame;
} coroutine_getters, generator_getters, async_generator_getters;

static getter_fn find_getter(PyObject *type, const char *name)
{
	const struct getter *g = PyType_GetSlot(type, SLOT_GETTERS);
	while (g && g->name && strcmp(g->name, name) != 0)
		g++;
	return g && g->name ? g->get : NULL;
}

bool weft__python_init_folders(void)
{
	if (library_folder[0])
		return true;
	PyObject *os = PyImport_ImportModule("os"), *file = os ? GET_ATTRIBUTE(os, "__file__") : NULL;
	const char *path = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL, *slash = path ? strrchr(path, '/') : NULL;
	if (slash) {
		snprintf(library_folder, sizeof library_folder, "%.*s/", (int)(slash - path), path);
		snprintf(asyncio_folder, sizeof asyncio_folder, "%.480sasyncio/", library_folder);
	}
	release(file);
	release(os);
	PyErr_Clear();
	if (!getcwd(working_folder, sizeof working_folder - 1))
		working_folder[0] = 0;
	else if (working_folder[1])
		strcat(working_folder, "/");
	return slash;
}

bool weft__python_init_coroutines(void)
{
	const struct python_types *t = &weft__python_types;
	coroutine_getters.awaited = find_getter(t->coroutine, "cr_await");
	coroutine_getters.frame = find_getter(t->coroutine, "cr_frame");
	generator_getters.awaited = find_getter(t->generator, "gi_yieldfrom");
	generator_getters.frame = find_getter(t->generator, "gi_frame");
	async_generator_getters.awaited = find_getter(t->async_generator, "ag_await");
	async_generator_getters.frame = find_getter(t->async_generator, "ag_frame");
	return coroutine_getters.awaited && coroutine_getters.frame && generator_getters.awaited && generator_getters.frame &&
	       async_generator_getters.awaited && async_generator_getters.frame;
}

/* ---- Code ---- */

static void copy_text(PyObject *text, char *to, size_t size)
{
	const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
	snprintf(to, size, "%s", utf8 ? utf8 : "?");
	release(text);
	PyErr_Clear();
}

static void remove_locals(char *name)
{
	for (char *local; (local = strstr(name, "<locals>."));)
		memmove(local, local + 9, strlen(local + 9) + 1);
}

void weft__python_copy_name(PyObject *object, char *name, size_t size)
{
	copy_text(GET_ATTRIBUTE(object, "__qualname__"), name, size);
	remove_locals(name);
}

static bool begins_with(const char *text, const char *prefix)
{
	return prefix[0] && strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum code_owner find_owner(const char *file)
{
	if (begins_with(file, asyncio_folder))
		return CODE_OF_ASYNCIO;
	if (strstr(file, "-packages/trio/"))
		return CODE_OF_TRIO;
	return begins_with(file, library_folder) || strstr(file, "-packages/") || file[0] == '<' ? CODE_OF_LIBRARY : CODE_OF_USER;
}

static const struct code *find_code(PyObject *object)
{
	struct code *code = weft__table_find(&codes, table_key(object));
	if (code || codes.count >= MAX_PLACES)
		return code;
	char file[1024], name[256];
	copy_text(GET_ATTRIBUTE(object, "co_filename"), file, sizeof file);
	copy_text(GET_ATTRIBUTE(object, "co_qualname"), name, sizeof name);
	remove_locals(name);
	if (!(code = calloc(1, sizeof *code)))
		return NULL;
	code->owner = find_owner(file);
	code->runs_loop = (code->owner == CODE_OF_ASYNCIO && (strstr(name, ".run_forever") || strcmp(name, "Runner.run") == 0)) ||
			  (code->owner == CODE_OF_TRIO && strcmp(name, "unrolled_run") == 0);
	code->file = strdup(begins_with(file, working_folder) ? file + strlen(working_folder) : file);
	code->name = strdup(name);
	if (!code->file || !code->name || !weft__table_set(&codes, table_key(object), code)) {
		free(code->file);
		free(code->name);
		free(code);
		return NULL;
	}
	Py_IncRef(code->object = object);
	return code;
}

static const struct code *find_code_of_frame(PyObject *frame)
{
	PyObject *object = PyFrame_GetCode(frame);
	const struct code *code = find_code(object);
	release(object);
	return code;
}

static uint64_t mix_keys(uint64_t key, const struct code *code, int instruction)
{
	return ((key ^ table_key(code)) + (uint64_t)(unsigned)instruction * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u | 1;
}

/* ---- Frames without objects ---- */

enum { MAX_FRAMES = 64 };

static const struct weft_python_frames *layout; /* NULL: unknown */

static uintptr_t load_word(uintptr_t at)
{
	uintptr_t word;
	memcpy(&word, (const void *)at, sizeof word);
	return word;
}

static uintptr_t find_first_frame(const struct weft_python_frames *l, const void *thread, uintptr_t (*load)(uintptr_t))
{
	const uintptr_t holder = l->holder ? load((uintptr_t)thread + l->holder) : (uintptr_t)thread;
	return holder ? load(holder + l->frame) : 0;
}

static bool is_owned_by_c(const struct weft_python_frames *l, uintptr_t frame)
{
	return *(const uint8_t *)(frame + l->owner) == WEFT_PYTHON_FRAME_OF_C;
}

/* The innermost frame of the user's code. */
struct user_frame {
	const struct code *code;  /* NULL: the event loop itself runs */
	const struct code *inner; /* code of the library function that the frame calls; NULL: none */
	int instruction;
};

/* Finds the user's frame of a thread of Python without objects.  Returns false if the layout of frames or a code object is not
 * known. */
static bool find_user_frame(const void *thread, struct user_frame *found)
{
	*found = (struct user_frame){NULL, NULL, 0};
	if (!layout || !thread)
		return false;
	uintptr_t frame = find_first_frame(layout, thread, load_word);
	for (int i = 0; frame && i < MAX_FRAMES; i++, frame = load_word(frame + layout->before)) {
		if (is_owned_by_c(layout, frame))
			continue;
		const uintptr_t object = load_word(frame + layout->code);
		const struct code *code = weft__table_find(&codes, object);
		if (!code)
			return false;
		if (code->runs_loop)
			return true;
		if (code->owner == CODE_OF_USER) {
			found->code = code;
			found->instruction = (int)(load_word(frame + layout->instruction) - object - layout->code_begin);
			return true;
		}
		found->inner = code;
	}
	return !frame;
}

bool weft__python_find_known_call(const void *thread, const struct weft_hook_language_call **call)
{
	struct user_frame frame;
	const bool is_known = find_user_frame(thread, &frame);
	*call = is_known && frame.code ? weft__table_find(&calls, mix_keys(table_key(frame.inner), frame.code, frame.instruction))
				       : NULL;
	return is_known && (!frame.code || *call);
}

/* Returns the code of the innermost function. */
static const struct code *find_running_code(void)
{
	const void *thread = layout ? PyGILState_GetThisThreadState() : NULL;
	uintptr_t at = thread ? find_first_frame(layout, thread, load_word) : 0;
	while (at && is_owned_by_c(layout, at))
		at = load_word(at + layout->before);
	const struct code *code = at ? weft__table_find(&codes, load_word(at + layout->code)) : NULL;
	PyObject *frame = code ? NULL : PyEval_GetFrame();
	return frame ? find_code_of_frame(frame) : code;
}

/* ---- Running code ---- */

static struct weft_record_site *find_site_at(const struct code *code, int instruction, int line)
{
	const uint64_t key = mix_keys(0, code, instruction);
	struct weft_record_site *site = weft__table_find(&sites, key);
	if (site || sites.count >= MAX_PLACES || !(site = calloc(1, sizeof *site)))
		return site;
	site->file = code->file;
	site->function = code->name;
	site->line = (uint32_t)line;
	if (!weft__table_set(&sites, key, site)) {
		free(site);
		return NULL;
	}
	return site;
}

bool weft__python_is_of_user(PyObject *object)
{
	const struct code *code = find_code(object);
	return code && code->owner == CODE_OF_USER;
}

struct weft_record_site *weft__python_find_definition(PyObject *object)
{
	const struct code *code = find_code(object);
	PyObject *line = code ? GET_ATTRIBUTE(object, "co_firstlineno") : NULL;
	struct weft_record_site *site = line ? find_site_at(code, -1, (int)PyLong_AsLong(line)) : NULL;
	release(line);
	return site;
}

struct weft_record_site *weft__python_find_running_place(void)
{
	struct user_frame known;
	struct weft_record_site *site = NULL;
	if (find_user_frame(PyGILState_GetThisThreadState(), &known) &&
	    (!known.code || (site = weft__table_find(&sites, mix_keys(0, known.code, known.instruction)))))
		return site;
	PyObject *frame = PyEval_GetFrame();
	if (frame)
		Py_IncRef(frame);
	while (frame && !site) {
		const struct code *code = find_code_of_frame(frame);
		if (!code || code->runs_loop)
			break;
		if (code->owner == CODE_OF_USER)
			site = find_site_at(code, PyFrame_GetLasti(frame), PyFrame_GetLineNumber(frame));
		PyObject *outer = PyFrame_GetBack(frame);
		release(frame);
		frame = outer;
	}
	release(frame);
	return site;
}

/* Returns the call at a line of the user's code; `called` is the code of a library function that the line calls; NULL: none. */
static const struct weft_hook_language_call *find_call_at(
    const struct code *code, const struct code *called, int instruction, int line)
{
	const uint64_t key = mix_keys(table_key(called), code, instruction);
	struct weft_hook_language_call *call = weft__table_find(&calls, key);
	if (call || calls.count >= MAX_PLACES || !(call = calloc(1, sizeof *call)))
		return call;
	call->site = find_site_at(code, instruction, line);
	call->function = called ? called->name : NULL;
	if (!call->site || !weft__table_set(&calls, key, call)) {
		free(call);
		return NULL;
	}
	return call;
}

const struct weft_hook_language_call *weft__python_find_running_call(PyObject **called)
{
	PyObject *frame = PyEval_GetFrame();
	const struct weft_hook_language_call *call = NULL;
	const struct code *inner = NULL;
	*called = NULL;
	if (frame)
		Py_IncRef(frame);
	while (frame) {
		const struct code *code = find_code_of_frame(frame);
		if (!code || code->runs_loop)
			break;
		if (code->owner == CODE_OF_USER) {
			call = find_call_at(code, inner, PyFrame_GetLasti(frame), PyFrame_GetLineNumber(frame));
			break;
		}
		release(*called);
		*called = frame;
		inner = code;
		frame = PyFrame_GetBack(frame);
	}
	release(frame);
	return call;
}

/* ---- The layout of frames ---- */

/* Returns the word at an address; 0 if no memory is mapped at the address. */
static uintptr_t try_word(uintptr_t at)
{
	uintptr_t word = 0;
	const struct iovec local = {&word, sizeof word}, remote = {(void *)at, sizeof word}; /* NOLINT: an address as a number */
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof word ? word : 0;
}

/* Compares the innermost frame with what Python says of it. */
bool weft__python_can_read_frames(void)
{
	PyObject *frame = PyEval_GetFrame(), *code = frame ? PyFrame_GetCode(frame) : NULL;
	const int instruction = frame ? PyFrame_GetLasti(frame) : -1;
	const void *thread = PyGILState_GetThisThreadState();
	const struct weft_python_frames *l = weft_python_frames_find(weft__python_services->get_minor());
	uintptr_t at = l && code && thread ? find_first_frame(l, thread, try_word) : 0;
	while (at && (try_word(at + l->owner) & 0xff) == WEFT_PYTHON_FRAME_OF_C)
		at = try_word(at + l->before);
	const uintptr_t object = at ? try_word(at + l->code) : 0;
	if (object && object == (uintptr_t)code && (int)(try_word(at + l->instruction) - object - l->code_begin) == instruction)
		layout = l;
	release(code);
	return layout != NULL;
}

/* ---- Names of running functions ---- */

bool weft__python_is_running(const char *name)
{
	const struct code *code = find_running_code();
	return code && code->owner != CODE_OF_USER && strcmp(code->name, name) == 0;
}

/* ---- Variables ---- */

/* Before Python 3.12, all variables of the frame must be copied into the frame's dictionary.  The dictionary is cleared, so that
 * it keeps no object alive. */
PyObject *weft__python_get_self(PyObject *frame)
{
	if (PyFrame_GetVarString)
		return PyFrame_GetVarString(frame, "self");
	PyObject *locals = PyFrame_GetLocals(frame), *self = locals ? PyDict_GetItemString(locals, "self") : NULL;
	if (self)
		Py_IncRef(self);
	if (locals)
		PyDict_Clear(locals);
	release(locals);
	return self;
}

/* ---- Suspended coroutines ---- */

struct search {
	PyObject *types[3], *found;
	bool is_for_variable; /* whether subtypes and contents of cells count */
};

static int visit_local(PyObject *object, void *data)
{
	struct search *search = data;
	for (size_t i = 0; object && !search->found && i < sizeof search->types / sizeof *search->types; i++)
		if (search->types[i] && (object->type == search->types[i] ||
					    (search->is_for_variable && PyType_IsSubtype(object->type, search->types[i]))))
			search->found = object;
	/* A variable that an inner function uses is in a cell. */
	if (object && !search->found && search->is_for_variable && object->type == weft__python_types.cell)
		((traverse_fn)PyType_GetSlot(object->type, SLOT_TRAVERSE))(object, visit_local, search);
	return 0;
}

static PyObject *find_referred(PyObject *of, struct search *search)
{
	const traverse_fn traverse = (traverse_fn)PyType_GetSlot(of->type, SLOT_TRAVERSE);
	if (traverse)
		traverse(of, visit_local, search);
	return search->found;
}

PyObject *weft__python_find_local(PyObject *of, PyObject *type)
{
	struct search search = {.types = {type}, .is_for_variable = true};
	return find_referred(of, &search);
}

struct closure_search {
	unsigned depth, visits;
	bool (*is_wanted)(PyObject *object);
	PyObject *found;
};

static int visit_closure(PyObject *object, void *data)
{
	enum { MAX_DEPTH = 4, MAX_VISITS = 64 };
	const struct python_types *t = &weft__python_types;
	struct closure_search *search = data;
	if (!object || search->found || ++search->visits > MAX_VISITS)
		return search->found || search->visits > MAX_VISITS;
	if (search->is_wanted(object))
		search->found = object;
	else if (search->depth < MAX_DEPTH &&
		 (object->type == t->function || object->type == t->cell || object->type == &PyTuple_Type)) {
		search->depth++;
		((traverse_fn)PyType_GetSlot(object->type, SLOT_TRAVERSE))(object, visit_closure, search);
		search->depth--;
	}
	return search->found != NULL;
}

PyObject *weft__python_find_in_callbacks(PyObject *future, bool (*is_wanted)(PyObject *object))
{
	struct closure_search search = {.is_wanted = is_wanted};
	const traverse_fn traverse = (traverse_fn)PyType_GetSlot(future->type, SLOT_TRAVERSE);
	if (traverse)
		traverse(future, visit_closure, &search);
	return search.found;
}

/* Returns the coroutine inside of the object that __anext__(), __await__() and the like return, as a borrowed reference. */
static PyObject *find_inner_coroutine(PyObject *of)
{
	const struct python_types *t = &weft__python_types;
	struct search search = {.types = {t->coroutine, t->generator, t->async_generator}};
	return find_referred(of, &search);
}

/* Finds the coroutines that await each other, and their lines only if wanted, because a line takes long to compute. */
static unsigned walk_coroutines(PyObject *object, struct level levels[MAX_LEVELS], bool with_lines)
{
	const struct python_types *t = &weft__python_types;
	unsigned count = 0;
	for (unsigned steps = 0; object && count < MAX_LEVELS && steps < 3 * MAX_LEVELS; steps++) {
		const bool is_coroutine = object->type == t->coroutine, is_generator = object->type == t->generator;
		if (!is_coroutine && !is_generator && object->type != t->async_generator) {
			object = find_inner_coroutine(object);
			continue;
		}
		const getter_fn get_frame = is_coroutine   ? coroutine_getters.frame
					    : is_generator ? generator_getters.frame
							   : async_generator_getters.frame,
				get_awaited = is_coroutine   ? coroutine_getters.awaited
					      : is_generator ? generator_getters.awaited
							     : async_generator_getters.awaited;
		PyObject *frame = get_frame(object, NULL), *awaited = get_awaited(object, NULL);
		PyErr_Clear();
		const struct code *code = frame && frame != &_Py_NoneStruct ? find_code_of_frame(frame) : NULL;
		if (code)
			levels[count++] =
			    (struct level){code, object, PyFrame_GetLasti(frame), with_lines ? PyFrame_GetLineNumber(frame) : 0};
		release(frame);
		release(awaited); /* the reference may be dropped, because the suspended coroutine keeps the object */
		object = awaited == &_Py_NoneStruct ? NULL : awaited;
	}
	return count;
}

static const struct recipe {
	const char *function;
	enum weft_kind kind;
	enum wait_input input;
	const char *label; /* name for the wait; NULL if the name is what the user's code calls */
} recipes[] =
    {
	{"Lock.acquire", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"Semaphore.acquire", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"Event.wait", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"Condition.wait", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"Queue.get", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"Queue.put", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
	{"sleep", WEFT_KIND_TIMER, INPUT_SECONDS, NULL},
	{"_wait", WEFT_KIND_JOIN, INPUT_SET, "asyncio.wait"},
	{"wait_for", WEFT_KIND_WAIT, INPUT_TASK, NULL},
	{"TaskGroup.__aexit__", WEFT_KIND_JOIN, INPUT_GROUP, "TaskGroup"},
	{"TaskGroup._aexit", WEFT_KIND_JOIN, INPUT_GROUP, "TaskGroup"},
	{"to_thread", WEFT_KIND_WAIT, INPUT_NONE, NULL},
	{"StreamReader._wait_for_data", WEFT_KIND_STREAM_READ, INPUT_NONE, NULL},
	{"FlowControlMixin._drain_helper", WEFT_KIND_STREAM_WRITE, INPUT_NONE, NULL},
	{"BaseSelectorEventLoop.sock_recv", WEFT_KIND_STREAM_READ, INPUT_NONE, NULL},
	{"BaseSelectorEventLoop.sock_sendall", WEFT_KIND_STREAM_WRITE, INPUT_NONE, NULL},
	{"BaseSelectorEventLoop.sock_accept", WEFT_KIND_ACCEPT, INPUT_NONE, NULL},
	{"BaseSelectorEventLoop.sock_connect", WEFT_KIND_CONNECT, INPUT_NONE, NULL},
	{"Server.serve_forever", WEFT_KIND_LISTEN, INPUT_NONE, NULL},
	{"BaseSubprocessTransport._wait", WEFT_KIND_PROCESS, INPUT_NONE, NULL},
},
  trio_recipes[] = {
      {"_LockImpl.acquire", WEFT_KIND_WAIT, INPUT_OBJECT, "Lock.acquire"},
      {"Event.wait", WEFT_KIND_WAIT, INPUT_OBJECT, NULL},
      {"sleep", WEFT_KIND_TIMER, INPUT_SECONDS, NULL},
      {"Nursery._nested_child_finished", WEFT_KIND_JOIN, INPUT_NURSERY, "nursery"},
      {"MemoryReceiveChannel.receive", WEFT_KIND_WAIT, INPUT_NONE, "MemoryReceiveChannel.receive"},
      {"MemorySendChannel.send", WEFT_KIND_WAIT, INPUT_NONE, "MemorySendChannel.send"},
      {"SocketStream.receive_some", WEFT_KIND_STREAM_READ, INPUT_NONE, NULL},
      {"SocketStream.send_all", WEFT_KIND_STREAM_WRITE, INPUT_NONE, NULL},
      {"SocketListener.accept", WEFT_KIND_ACCEPT, INPUT_NONE, NULL},
      {"open_tcp_stream", WEFT_KIND_CONNECT, INPUT_NONE, NULL},
      {"Process.wait", WEFT_KIND_PROCESS, INPUT_NONE, NULL},
};

static const struct recipe *find_recipe_in(const struct recipe *all, size_t count, const char *function)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(function, all[i].function) == 0)
			return &all[i];
	return NULL;
}

static const struct recipe *find_recipe_of_code(const struct code *code)
{
	return code->owner == CODE_OF_ASYNCIO ? find_recipe_in(recipes, sizeof recipes / sizeof *recipes, code->name)
	       : code->owner == CODE_OF_TRIO
		   ? find_recipe_in(trio_recipes, sizeof trio_recipes / sizeof *trio_recipes, code->name)
		   : NULL;
}

/* Returns the recipe of the wait, and in *level the coroutine to which it applies: one of the two innermost coroutines of
 * asyncio, or the outermost function of trio that the user's code calls. */
static const struct recipe *find_recipe(const struct level *levels, unsigned count, unsigned user, unsigned *level)
{
	const struct recipe *recipe = NULL;
	for (unsigned i = user; i < count && !recipe; i++)
		if (levels[i].code->owner == CODE_OF_TRIO && (recipe = find_recipe_of_code(levels[i].code)))
			*level = i;
	for (unsigned i = count; i > 0 && i + 2 > count && !recipe; i--)
		if (levels[i - 1].code->owner == CODE_OF_ASYNCIO)
			recipe = find_recipe_of_code(levels[i - 1].code);
	return recipe;
}

/* Returns the index of the innermost coroutine that the user wrote; if there is none, of the innermost coroutine outside of
 * asyncio and trio; if there is none, of the innermost of asyncio, or the outermost of trio. */
static unsigned find_user_level(const struct level *levels, unsigned count)
{
	unsigned best = 0;
	enum code_owner owner = CODE_OF_TRIO;
	for (unsigned i = 0; i < count; i++)
		if (levels[i].code->owner <= owner && levels[i].code->owner != CODE_OF_TRIO) {
			owner = levels[i].code->owner;
			best = i;
		}
	return best;
}

static void describe_wait(struct wait_place *place, const struct level *levels, unsigned count)
{
	const unsigned user = find_user_level(levels, count), last = count - 1;
	unsigned called = user + 1;
	if (called < last && strstr(levels[called].code->name, "ContextManagerMixin.__aenter__"))
		called++; /* async with */
	place->site.file = levels[user].code->file;
	place->site.function = levels[user].code->name;
	place->site.line = (uint32_t)levels[user].line;
	place->kind = levels[last].code->owner == CODE_OF_TRIO ? WEFT_KIND_WAIT : WEFT_KIND_PROMISE;
	place->level = last;
	const struct recipe *recipe = find_recipe(levels, count, user, &place->level);
	char label[256] = "await";
	if (called < last && levels[last].code->owner == CODE_OF_TRIO)
		snprintf(label, sizeof label, "%s", levels[called].code->name);
	else if (called < last)
		snprintf(label, sizeof label, "%.120s (%.120s)", levels[called].code->name, levels[last].code->name);
	else if (called == last || levels[last].code->owner == CODE_OF_ASYNCIO)
		snprintf(label, sizeof label, "%s", levels[last].code->name);
	if (recipe) {
		place->kind = recipe->kind;
		place->input = recipe->input;
		if (recipe->label)
			snprintf(label, sizeof label, "%s", recipe->label);
	}
	place->label.text = strdup(label);
}

bool weft__python_find_wait(PyObject *coroutine, struct wait *wait)
{
	struct level levels[MAX_LEVELS];
	const unsigned count = walk_coroutines(coroutine, levels, false);
	if (!count)
		return false;
	uint64_t key = 0;
	for (unsigned i = 0; i < count; i++)
		key = mix_keys(key, levels[i].code, levels[i].instruction);
	struct wait_place *place = weft__table_find(&waits, key);
	if (!place) {
		if (waits.count >= MAX_PLACES || !(place = calloc(1, sizeof *place)))
			return false;
		walk_coroutines(coroutine, levels, true);
		describe_wait(place, levels, count);
		if (!place->label.text || !weft__table_set(&waits, key, place)) {
			free((char *)place->label.text);
			free(place);
			return false;
		}
	}
	*wait =
	    (struct wait){place, levels[place->level].coroutine, place->level > 0 ? levels[place->level - 1].coroutine : NULL};
	return true;
}
