/* look.h: makes a trace of what stands in the memory of a process, or in a core dump, without a recorder.
 *
 * Nothing is stopped, written or injected: a process is read through process_vm_readv and /proc, twice.  The trace is native and
 * has one moment.  Its OS threads have names, the call in which each one is blocked, and the places of its stack; glibc's
 * mutexes have their owners.  weft_trace_info.is_seen_once is set.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_LOOK_H
#define WEFT_LOOK_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

enum {
	WEFT_LOOK_FRAMES = 64,   /* most frames of a stack */
	WEFT_LOOK_REGISTERS = 17 /* of x86-64, in DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip */
};

/* A file of machine code in the target.  The texts live as long as the request. */
struct weft_look_module {
	const char *path, *build_id; /* hexadecimal digits; "": unknown */
	uint64_t bias;               /* offset between the file's addresses and memory */
	uint64_t begin, end;         /* addresses in memory */
};

struct weft_look_frame {
	uint64_t address; /* where the call returns to */
	char *function;   /* a symbol; NULL: unknown */
};

/* A frame of a language that is interpreted. */
struct weft_look_source_frame {
	char *function, *file; /* owned */
	uint32_t line;         /* 0: unknown */
};

/* An OS thread, and then its stack. */
struct weft_look_stack {
	uint64_t registers[WEFT_LOOK_REGISTERS];
	bool has_registers; /* all of them; else only rsp and rip */
	const unsigned char *bytes;
	uint64_t address; /* of the bytes */
	size_t size;
	struct weft_look_frame frames[WEFT_LOOK_FRAMES];
	size_t frame_count;
};

/* An address of data, and then the symbol that contains it. */
struct weft_look_datum {
	uint64_t address;
	char *symbol; /* NULL: unknown */
};

struct weft_look_request {
	const struct weft_look_module *modules;
	size_t module_count;
	struct weft_look_stack *stacks;
	size_t stack_count;
	struct weft_look_datum *data;
	size_t datum_count;
	bool has_no_names; /* the functions of frames are not wanted */
};

/* Fills frames and symbols, which are allocated and become the request's, as far as they are found in a bounded time. */
typedef void weft_look_unwind_fn(struct weft_look_request *request);

/* Looks at a process.  `unwind` may be NULL: then there are no stacks.  The caller closes *out with weft_trace_close().
 * WEFT_ENOENT (no such process), WEFT_EACCES (the error says which rule refuses, and what works), WEFT_ENOTSUP (another
 * architecture), WEFT_ENOMEM.  Takes 50 ms, and the time of `unwind`. */
int weft_look_process(struct weft_trace **out, long pid, weft_look_unwind_fn *unwind, struct weft_error *err);

/* Looks at an ELF core dump of a process, of the kernel or of gcore.  As above; WEFT_EFORMAT (no core dump, or without any
 * thread), WEFT_EIO.  The descriptor stays the caller's. */
int weft_look_core(struct weft_trace **out, int file, const char *name, weft_look_unwind_fn *unwind, struct weft_error *err);

/* The files of machine code that a process has mapped. */
struct weft_look_modules;

/* Returns NULL without memory, or if the kernel refuses; the other functions accept that. */
struct weft_look_modules *weft_look_modules_read(long pid);
const struct weft_look_module *weft_look_modules_list(const struct weft_look_modules *modules, size_t *count);

/* Reads the Python or JavaScript stack of a thread that is stopped, innermost first, whose C stack and registers were copied:
 * CPython 3.11 to 3.13, and V8 where it exports its layout, as Node.js does.  *state: 0, or what an earlier call for that thread
 * left, which makes this one faster.  Returns the number of frames, at most WEFT_LOOK_FRAMES, whose texts become the caller's; 0:
 * the thread runs neither.  Costs 10 to 20 system calls a frame. */
size_t weft_look_sources(struct weft_look_modules *modules, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame out[WEFT_LOOK_FRAMES]);
void weft_look_modules_free(struct weft_look_modules *modules);

/* Returns whether bytes start an ELF core dump. */
bool weft_look_is_core(const unsigned char *bytes, size_t size);

#endif
