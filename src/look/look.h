/* look.h: makes a trace of the present state of a process, or of a core dump, without a recorder.
 *
 * The process is not stopped, written or injected into: it is read twice, through process_vm_readv and /proc.  The trace has
 * weft's native format, and contains a single moment.  The trace's OS threads have names, the syscall in which each thread is
 * blocked, and the code addresses of its stack; glibc's mutexes have their owners. weft_trace_info.is_seen_once is set.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_LOOK_H
#define WEFT_LOOK_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

enum {
	WEFT_LOOK_FRAMES = 64, /* maximum number of frames of a stack */
	/* Number of registers of x86-64, in DWARF's order: rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip. */
	WEFT_LOOK_REGISTERS = 17
};

/* A file of machine code that the target has mapped.  The struct's texts live as long as the request. */
struct weft_look_module {
	const char *path, *build_id; /* hexadecimal digits; "": unknown */
	const char *known_path;      /* path of the same file by which the user knows it (base/program_name.h); often `path` */
	uint64_t bias;               /* difference between addresses in memory and addresses in the file */
	uint64_t begin, end;         /* addresses in memory */
};

struct weft_look_frame {
	uint64_t address; /* return address: the instruction to which the call returns */
	char *function;   /* a symbol; NULL: unknown */
};

/* A frame of code in an interpreted language. */
struct weft_look_source_frame {
	char *function, *file; /* owned */
	uint32_t line;         /* 0: unknown */
};

/* An OS thread as input; its unwound stack as output. */
struct weft_look_stack {
	uint64_t registers[WEFT_LOOK_REGISTERS];
	bool has_registers; /* whether all registers are known; otherwise only rsp and rip */
	const unsigned char *bytes;
	uint64_t address; /* of the bytes */
	size_t size;
	struct weft_look_frame frames[WEFT_LOOK_FRAMES];
	size_t frame_count;
};

/* An address of data as input; the symbol that contains the address as output. */
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
	bool has_no_names; /* whether the names of the frames' functions are not wanted */
};

/* Callback that fills in frames and symbols, as far as they are found in a limited time; the request owns the allocated
 * memory. */
typedef void weft_look_unwind_fn(struct weft_look_request *request);

/* Looks at a process.  If `unwind` is NULL, the trace has no stacks.  The caller closes *out with weft_trace_close().  Fails
 * with WEFT_ENOENT (no such process), WEFT_EACCES (the error says which rule refuses access, and what works), WEFT_ENOTSUP
 * (another architecture) or WEFT_ENOMEM.  The function takes 50 ms, and the time of `unwind`. */
int weft_look_process(struct weft_trace **out, long pid, weft_look_unwind_fn *unwind, struct weft_error *err);

/* Makes a trace of an ELF core dump of a process, which the kernel or gcore wrote.  Fails like weft_look_process(), or with
 * WEFT_EFORMAT (no core dump, or without any thread) or WEFT_EIO.  The caller keeps the descriptor. */
int weft_look_core(struct weft_trace **out, int file, const char *name, weft_look_unwind_fn *unwind, struct weft_error *err);

/* Writes the name under which the program of a process was started; its present name, if the kernel refuses access; or "". */
void weft_look_program_name(char *out, size_t size, long pid);

/* Files of machine code that a process has mapped. */
struct weft_look_modules;

/* Reads the modules of a process.  Returns NULL without memory, or if the kernel refuses access; the other functions accept
 * NULL. */
struct weft_look_modules *weft_look_modules_read(long pid);

/* Reads the modules of a process, and fails as weft_look_process() does. */
int weft_look_modules_open(struct weft_look_modules **out, long pid, struct weft_error *err);

/* Returns the address of a symbol that the module with this index exports; 0: none. */
uint64_t weft_look_modules_find(const struct weft_look_modules *modules, size_t index, const char *symbol);

const struct weft_look_module *weft_look_modules_list(const struct weft_look_modules *modules, size_t *count);

/* Reads the Python or JavaScript stack of a stopped thread whose C stack and registers were copied, innermost frame first:
 * CPython 3.11 to 3.13, and V8 if it exports its layout, as in Node.js. *state is 0, or the value that an earlier call for that
 * thread left, which makes this call faster.  Returns the number of frames, at most WEFT_LOOK_FRAMES, whose texts the caller
 * then owns; 0 if the thread runs neither language.  The function costs 10 to 20 system calls for each frame. */
size_t weft_look_sources(struct weft_look_modules *modules, const struct weft_look_stack *stack, int64_t tid, uint64_t *state,
    struct weft_look_source_frame out[WEFT_LOOK_FRAMES]);
/* Returns whether weft_look_sources() may return frames for a thread of the process. */
bool weft_look_has_sources(struct weft_look_modules *modules);
void weft_look_modules_free(struct weft_look_modules *modules);

/* Returns whether the bytes are the start of an ELF core dump. */
bool weft_look_is_core(const unsigned char *bytes, size_t size);

#endif
