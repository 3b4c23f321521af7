/* adapter.c: records promises of JavaScript in Node.js.
 *
 * V8 calls a C function at each event of a promise, if the isolate has such a hook.  The adapter sets a hook in each isolate
 * when the isolate is made. No JavaScript code, add-on or environment variable is needed, so the program sees nothing of the
 * recording.  A hook written in JavaScript would change the result of a stack overflow.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/session.h"
#include "adapters/hook/state.h"
#include "adapters/node/common.h"

struct v8_functions weft__v8;

static const struct weft_hook_module *module;
static void (*initialize)(isolate, const void *);
static void (*dispose)(isolate), (*deinitialize)(isolate);

bool weft__node_begin(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_list_copy(module);
	weft_hook_thread();
	return true;
}

/* A program that calls process.exit() disposes of no isolate, so the isolate is ended at exit. */
static void finish_at_exit(void)
{
	weft__node_finish_settled();
}

static void initialize_isolate(isolate created, const void *parameters)
{
	static bool is_registered;
	initialize(created, parameters);
	const int saved = errno;
	if (weft__hook_js != WEFT_HOOK_JS_OFF)
		weft__node_note_isolate();
	/* V8 calls the hook for each promise, also where nothing is recorded. */
	if (weft__hook_js >= WEFT_HOOK_JS_PROMISES && weft_hook_begin()) {
		weft__v8.set_promise_hook(created, weft__node_handle_promise);
		if (!__atomic_exchange_n(&is_registered, true, __ATOMIC_RELAXED))
			atexit(finish_at_exit);
	}
	errno = saved;
}

static void end_isolate(void)
{
	const int saved = errno;
	/* The thread of a worker may be terminated, so its promises may still be pending. */
	weft__node_end_isolate(gettid() == getpid());
	errno = saved;
}

static void dispose_isolate(isolate disposed)
{
	end_isolate();
	dispose(disposed);
	weft__node_forget_places();
}

/* Node.js calls it instead of v8::Isolate::Dispose() since version 24. */
static void deinitialize_isolate(isolate ended)
{
	end_isolate();
	deinitialize(ended);
	weft__node_forget_places();
}

/* Progress of a thread that runs JavaScript, which is the main thread or a worker. */
static __thread enum { THREAD_NEW, THREAD_STARTS, THREAD_HAS_STARTED } progress __attribute__((tls_model("initial-exec")));

/* Returns whether Node.js or libuv waits for its own threads before the first wait of this thread's loop.  Such a wait is
 * recorded as no sleep, because nothing can be late before the loop runs.  A wait that the program asks for is a sleep:
 * Atomics.wait(), or the loop of a synchronous call. */
static bool is_starting(const struct weft_hook_sleep *sleep)
{
	if (progress == THREAD_NEW)
		progress = gettid() == getpid() || weft__node_has_isolate() ? THREAD_STARTS : THREAD_HAS_STARTED;
	if (progress == THREAD_HAS_STARTED)
		return false;
	const bool is_asked_for = weft__node_runs_code();
	if (sleep->kind != WEFT_HOOK_SLEEP_FDS)
		return !is_asked_for || weft__hook_is_runtime(weft__hook_outermost(sleep->caller));
	if (sleep->epoll >= 0 && !is_asked_for)
		progress = THREAD_HAS_STARTED;
	return false;
}

static bool handle_sleep(struct weft_hook_sleep *sleep)
{
	weft__node_finish_settled();
	if (sleep->kind == WEFT_HOOK_SLEEP_FDS && sleep->epoll >= 0)
		weft__node_leave_all();
	if (module && weft__hook_js != WEFT_HOOK_JS_OFF && is_starting(sleep))
		sleep->may_sleep = false;
	return false;
}

/* Functions of Node.js that call the program's timers and its setImmediate() callbacks; NULL: unknown. */
static const void *run_timers, *check_immediate;

/* Address range of the code of Node.js, V8 and their libraries. */
static struct {
	uintptr_t base, begin, end;
} own_text;

static int find_own_text(struct dl_phdr_info *info, size_t size, void *data)
{
	if (info->dlpi_addr != own_text.base)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		own_text.begin = own_text.end ? own_text.begin : begin;
		own_text.end = begin + header->p_memsz;
	}
	return own_text.end != 0;
}

static bool is_runtime(const void *caller)
{
	return (uintptr_t)caller - own_text.begin < own_text.end - own_text.begin;
}

/* Node.js has one libuv timer for all timers of the program, and an idle handle that keeps the loop alive while setImmediate()
 * is pending. */
static const char *name_callback(const char *handle_kind, const void *function)
{
	if (function == run_timers)
		return "timer";
	if (function == check_immediate)
		return "setImmediate";
	return strcmp(handle_kind, "idle") == 0 && is_runtime(function) ? "setImmediate" : NULL;
}

#define V8__ENTRY(RESULT, FIELD, PARAMETERS, NAME) WEFT_HOOK_CALLED(NAME, weft__v8.FIELD),
static const struct weft_hook_function functions[] = {
    WEFT_HOOK_TAKEN(_ZN2v87Isolate10InitializeEPS0_RKNS0_12CreateParamsE, initialize_isolate, initialize),
    WEFT_HOOK_TAKEN(_ZN2v87Isolate7DisposeEv, dispose_isolate, dispose),
    WEFT_HOOK_TAKEN(_ZN2v87Isolate12DeinitializeEv, deinitialize_isolate, deinitialize), V8_FUNCTIONS(V8__ENTRY){0}};

/* Other programs that contain V8 are not supported, because they have other event loops. */
static bool is_node(const struct weft_hook_module *of, char *version, size_t size)
{
	const struct {
		const char *name;
		void *field;
	} changed[] = {{"_ZN2v86String9Utf8ValueC1EPNS_7IsolateENS_5LocalINS_5ValueEEE", &weft__v8.begin_utf8},
	    {"_ZN2v86String9Utf8ValueC1EPNS_7IsolateENS_5LocalINS_5ValueEEENS0_12WriteOptionsE", &weft__v8.begin_utf8_since_13},
	    {"_ZN2v812api_internal18GlobalizeReferenceEPNS_8internal7IsolateEPm", &weft__v8.globalize},
	    {"_ZN2v812api_internal18GlobalizeReferenceEPNS_8internal7IsolateEm", &weft__v8.globalize_since_13},
	    {"_ZN2v811HandleScopeC1EPNS_7IsolateE", &weft__v8.begin_scope}, {"_ZN2v811HandleScopeD1Ev", &weft__v8.end_scope},
	    {"_ZN2v88internal17ExternalReference29fast_c_call_caller_fp_addressEPNS0_7IsolateE", &weft__v8.get_fast_call}};
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		*(void **)changed[i].field = weft_hook_symbol(of, changed[i].name);
	run_timers = weft_hook_symbol(of, "_ZN4node11Environment9RunTimersEP10uv_timer_s");
	check_immediate = weft_hook_symbol(of, "_ZN4node11Environment14CheckImmediateEP10uv_check_s");
	snprintf(version, size, "18 or later");
	const bool is_it = weft_hook_symbol(of, "napi_create_function") &&
			   (weft__v8.begin_utf8 || weft__v8.begin_utf8_since_13) &&
			   (weft__v8.globalize || weft__v8.globalize_since_13);
	if (!is_it || weft__hook_js == WEFT_HOOK_JS_OFF)
		return is_it;
	own_text.base = of->base;
	own_text.begin = own_text.end = 0;
	dl_iterate_phdr(find_own_text, NULL);
	weft__hook_language = (struct weft_hook_language){.find_line = weft__node_find_line,
	    .runs_code = weft__node_runs_code,
	    .is_runtime = is_runtime,
	    .name_callback = name_callback,
	    .find_call = weft__hook_language.find_call};
	return true;
}

const struct weft_hook_adapter weft_node_adapter = {
    .name = "promises of Node.js",
    .library = "/", /* no library counts as Node.js's: what JavaScript asks of libc counts as asked by the program */
    .prefix = "_ZN2v87Isolate10Initialize",
    .mark = "_ZN2v87Isolate10InitializeEPS0_RKNS0_12CreateParamsE",
    .needs_start = "async functions of Node.js",
    .is_listed_when_called = true,
    WEFT_HOOK_SETS((functions), (&module)),
    .accepts = is_node,
    .sleeps = handle_sleep,
};
