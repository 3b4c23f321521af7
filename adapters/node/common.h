/* common.h: declares V8's functions, and what the files of the Node.js adapter share.  V8's classes are opaque here: a handle is
 * one pointer, which V8's C++ functions take and return as C functions would.  SPDX-License-Identifier: ISC */
#ifndef WEFT_NODE_COMMON_H
#define WEFT_NODE_COMMON_H

#include "adapters/hook/thread.h"

typedef struct v8_isolate *isolate;
typedef uintptr_t *handle; /* v8::Local<T>; NULL: empty */

typedef void promise_hook_fn(int type, handle promise, handle parent);

/* Copy of v8::String::Utf8Value, whose length is an int or a size_t, depending on the version. */
struct utf8 {
	char *text;
	size_t length;
};

/* Copy of v8::RegisterState, as far as V8 reads it. */
struct v8_registers {
	const void *pc, *sp, *fp, *lr;
};

enum { V8_SCOPE_WORDS = 8 }; /* at least a v8::HandleScope */

struct v8_maybe {
	bool is_just, value;
};

/* X(result, field, parameters, name) */
#define V8_FUNCTIONS(X)                                                                                                          \
	X(void, set_promise_hook, (isolate, promise_hook_fn *),                                                                  \
	    _ZN2v87Isolate14SetPromiseHookEPFvNS_15PromiseHookTypeENS_5LocalINS_7PromiseEEENS2_INS_5ValueEEEE)                   \
	X(isolate, try_get_current, (void), _ZN2v87Isolate13TryGetCurrentEv)                                                     \
	X(handle, get_current_context, (isolate), _ZN2v87Isolate17GetCurrentContextEv)                                           \
	X(void, end_utf8, (struct utf8 *), _ZN2v86String9Utf8ValueD1Ev)                                                          \
	X(void, dispose_global, (handle), _ZN2v812api_internal13DisposeGlobalEPm)                                                \
	X(handle, new_private, (isolate, handle), _ZN2v87Private3NewEPNS_7IsolateENS_5LocalINS_6StringEEE)                       \
	X(handle, get_private, (handle, handle, handle), _ZN2v86Object10GetPrivateENS_5LocalINS_7ContextEEENS1_INS_7PrivateEEE)  \
	X(struct v8_maybe, set_private, (handle, handle, handle, handle),                                                        \
	    _ZN2v86Object10SetPrivateENS_5LocalINS_7ContextEEENS1_INS_7PrivateEEENS1_INS_5ValueEEE)                              \
	X(handle, new_number, (isolate, double), _ZN2v86Number3NewEPNS_7IsolateEd)                                               \
	X(double, get_number, (handle), _ZNK2v86Number5ValueEv)                                                                  \
	X(bool, is_number, (handle), _ZNK2v85Value8IsNumberEv)                                                                   \
	X(bool, is_promise, (handle), _ZNK2v85Value9IsPromiseEv)                                                                 \
	X(int, get_state, (handle), _ZN2v87Promise5StateEv)                                                                      \
	X(handle, capture_stack, (isolate, int, int),                                                                            \
	    _ZN2v810StackTrace17CurrentStackTraceEPNS_7IsolateEiNS0_17StackTraceOptionsE)                                        \
	X(int, count_frames, (handle), _ZNK2v810StackTrace13GetFrameCountEv)                                                     \
	X(handle, get_frame, (handle, isolate, uint32_t), _ZNK2v810StackTrace8GetFrameEPNS_7IsolateEj)                           \
	X(uint64_t, get_location, (handle), _ZNK2v810StackFrame11GetLocationEv)                                                  \
	X(int, get_script, (handle), _ZNK2v810StackFrame11GetScriptIdEv)                                                         \
	X(handle, get_script_name, (handle), _ZNK2v810StackFrame24GetScriptNameOrSourceURLEv)                                    \
	X(handle, get_function_name, (handle), _ZNK2v810StackFrame15GetFunctionNameEv)                                           \
	X(handle, get_source, (handle), _ZNK2v810StackFrame15GetScriptSourceEv)                                                  \
	X(void, get_code_range, (isolate, void **, size_t *), _ZN2v87Isolate12GetCodeRangeEPPvPm)                                \
	X(int, get_length, (handle), _ZNK2v86String6LengthEv)                                                                    \
	X(void, sample_stack, (isolate, const struct v8_registers *, void **, size_t, void *),                                   \
	    _ZN2v87Isolate14GetStackSampleERKNS_13RegisterStateEPPvmPNS_10SampleInfoE)                                           \
	X(void, on_collection, (isolate, void (*)(isolate, int, int, void *), void *, int),                                      \
	    _ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_)

#define V8__FIELD(RESULT, FIELD, PARAMETERS, NAME) RESULT(*FIELD) PARAMETERS;
extern struct v8_functions {
	V8_FUNCTIONS(V8__FIELD)
	/* Only one function of each pair exists, because V8 13 changed the parameters. */
	void (*begin_utf8)(struct utf8 *, isolate, handle);
	void (*begin_utf8_since_13)(struct utf8 *, isolate, handle, int);
	handle (*globalize)(isolate, handle);
	handle (*globalize_since_13)(isolate, uintptr_t);
	/* Open and close a handle scope; NULL since V8 14.  Then the handles end with the scope that V8 itself opens for each
	 * call of C++ code. */
	void (*begin_scope)(void *, isolate);
	void (*end_scope)(void *);
	/* Returns the address of a field of the isolate, which is not 0 in a fast call from optimized code; NULL: unknown. */
	const uintptr_t *(*get_fast_call)(isolate);
} weft__v8 WEFT_HOOK_SHARED;

static inline void weft__v8_begin_scope(uintptr_t scope[V8_SCOPE_WORDS], isolate of)
{
	if (weft__v8.begin_scope)
		weft__v8.begin_scope(scope, of);
}

static inline void weft__v8_end_scope(uintptr_t scope[V8_SCOPE_WORDS])
{
	if (weft__v8.end_scope)
		weft__v8.end_scope(scope);
}

/* A place (line and column) in JavaScript code, which is never freed. */
struct js_place {
	uint64_t key;
	struct weft_record_site site;
	bool is_of_user; /* whether it is neither in Node.js itself nor in node_modules */
	bool is_entry;   /* whether an async function begins at this place */
	bool is_derived; /* whether then(), catch(), all() or the like is called at this place */
	bool is_join;    /* whether all(), race() or any() is called at this place */
};

/* Returns the innermost place of the user's code, or with --js=all of any code; NULL if there is none, or it is unknown. *depth
 * is the number of frames of other code above it.  The caller must have opened a handle scope of V8. */
struct js_place *weft__node_find_place(isolate isolate, unsigned *depth);
/* Returns the innermost line of the user's code or, if there is none, the line of the promise that runs; NULL: unknown. */
struct weft_record_site *weft__node_find_line(bool may_be_fast);
/* Notes that an isolate has been made.  Before that, V8's current isolate may be any value of the thread. */
void weft__node_note_isolate(void);
/* Returns whether an isolate is entered on the calling thread. */
bool weft__node_has_isolate(void);
/* Returns whether the calling thread's stack contains JavaScript code. */
bool weft__node_runs_code(void);
/* Returns the place of the JavaScript promise that runs; NULL if none runs. */
struct js_place *weft__node_get_running_place(void);
/* Frees the calling thread's tables after its isolate has ended. */
void weft__node_forget_places(void);

promise_hook_fn weft__node_handle_promise;
/* Records the end of the promise that was settled last, because V8 sets the promise's state after the event. */
void weft__node_finish_settled(void);
/* Ends all running promises, because the loop of the calling thread is about to sleep. */
void weft__node_leave_all(void);
/* Handles the end of the calling thread's isolate.  `loop_is_empty` says whether no promise can be settled any more. */
void weft__node_end_isolate(bool loop_is_empty);

/* Returns whether this process records, and starts the recording if the user wants one. */
bool weft__node_begin(void);

#endif
