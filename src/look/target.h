/* target.h: declares the facts of a process or a core dump before they are interpreted (private to src/look).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_TARGET_H
#define WEFT_LOOK_TARGET_H

#include "base/vec.h"
#include "look/look.h"

enum {
	LOOK_LABEL = 256,
	LOOK_NAME = 64,          /* capacity in bytes of a thread's name, with NUL */
	LOOK_MAX_THREADS = 8192, /* maximum number of threads, which is also the recorder's maximum */
	LOOK_MAX_MAPS = 262144,
	LOOK_MAX_MODULES = 4096,
	LOOK_STACK_BYTES = 256 << 10, /* maximum number of copied bytes of a stack */
	LOOK_ALL_STACK_BYTES = 64 << 20,
	/* Number of bytes before and behind a futex that are copied, because they belong to the object that contains the
	 * futex. */
	LOOK_NEAR_BEFORE = 48,
	LOOK_NEAR_BEHIND = 48
};

struct look_map {
	uint64_t begin, end, offset;
	bool is_readable, is_writable, is_executable;
	char *path; /* "": no file; owned */
};

struct look_thread {
	int64_t tid;
	int64_t own_tid; /* thread's id in its own PID namespace, which the words in the process's memory contain */
	char name[LOOK_NAME];
	char state;    /* of /proc/PID/stat; '?': unknown */
	long call;     /* number of the system call in which the thread is blocked; -1: none */
	bool is_still; /* whether both readings found the thread at the same instruction, and it did not run between them */
	uint64_t args[6];
	int64_t start_ns; /* monotonic; 0: unknown */
	int64_t since_ns; /* approximate monotonic time since which the thread has been blocked; 0: unknown */
	uint64_t switches;
	struct weft_look_stack stack;
	unsigned char *stack_bytes;                      /* owned */
	WEFT_VEC(struct weft_look_source_frame) sources; /* frames of Python or JavaScript, innermost first */
	unsigned char near[LOOK_NEAR_BEFORE + LOOK_NEAR_BEHIND];
	bool has_near_before, has_near_behind;
};

/* A handle or a request that keeps an event loop alive. */
struct look_keeper {
	enum weft_kind kind;
	char label[LOOK_LABEL / 2];
	uint64_t callback; /* 0: none */
	uint64_t work;     /* address of the struct uv__work of a request of the thread pool; else 0 */
	/* Tid of the pool thread that runs the request; 0 if the request waits for a thread, or no pool runs it. */
	int64_t runner;
};

/* An event loop that an OS thread runs. */
struct look_loop {
	uint64_t address;
	int64_t tid;
	uint64_t awaited; /* first argument of the syscall in which the thread waits for the loop: a descriptor, or an array */
	const char *runtime;
	bool has_counts;                          /* whether the runtime counts the objects that keep the loop alive */
	uint32_t active_handles, active_requests; /* numbers of active handles and requests, as the loop counts them */
	uint32_t found_handles, found_requests;
	WEFT_VEC(struct look_keeper) keepers;
};

typedef WEFT_VEC(struct look_loop) look_loops;

struct look_target {
	long pid;
	bool is_core;
	char process[LOOK_NAME]; /* name under which the program was started (base/program_name.h) */
	char command[256];
	int64_t now_ns;  /* monotonic time at which the target was read; 1 s for a core dump */
	int64_t wall_ns; /* the same moment */
	WEFT_VEC(struct look_map) maps;
	WEFT_VEC(struct look_thread) threads;
	WEFT_VEC(struct weft_look_module) modules; /* modules, whose texts the target owns */
	look_loops loops;
	size_t left_out; /* threads beyond LOOK_MAX_THREADS */
	size_t (*read)(const struct look_target *target, uint64_t address, void *to, size_t bytes);
	/* Callback that writes to what a descriptor refers; NULL if that is unknown. */
	bool (*name_fd)(const struct look_target *target, int64_t fd, char *out, size_t size);
	const void *ctx;
};

/* Returns the word at an address in the target's memory; 0 if the word cannot be read. */
static inline uint64_t weft__look_word(const struct look_target *target, uint64_t address)
{
	uint64_t word = 0;
	return target->read(target, address, &word, sizeof word) == sizeof word ? word : 0;
}

/* Returns the mapping that contains an address, or NULL. */
const struct look_map *weft__look_map(const struct look_target *target, uint64_t address);
const struct weft_look_module *weft__look_module(const struct look_target *target, uint64_t address);

/* Returns the thread that has this id in its own PID namespace, or NULL. */
const struct look_thread *weft__look_thread(const struct look_target *target, int64_t own_tid);

/* Adds a mapping, and copies its path.  Returns false without memory, or if there are too many mappings. */
bool weft__look_add_map(struct look_target *target, const struct look_map *map);

/* Sorts the mappings, and finds the modules in them.  False: no memory. */
bool weft__look_find_modules(struct look_target *target);

/* Reads the path with which the program was started, as an auxiliary vector tells it.  *entry is the address of the program's
 * first instruction; 0: unknown.  Returns false if the path is unknown. */
bool weft__look_read_start(
    const struct look_target *target, const unsigned char *vector, size_t bytes, char *path, size_t size, uint64_t *entry);

/* Sets the path by which the user knows the executable, after the modules were found.  Only a process of this user, who may as
 * well name any path on the command line, may choose a path that is looked up.  Returns false without memory. */
bool weft__look_set_known_path(struct look_target *target, uint64_t entry, const char *started_as);

/* Copies for each thread the stack, and the words near its futex.  False: no memory. */
bool weft__look_copy_memory(struct look_target *target);

void weft__look_free(struct look_target *target);

/* Makes the trace of a complete target: calls `unwind`, and finds out what each thread waits for. */
int weft__look_finish(
    struct weft_trace **out, struct look_target *target, weft_look_unwind_fn *unwind, const char *name, struct weft_error *err);

#endif
