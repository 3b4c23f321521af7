/* count.c: counts what a program does, so that tests can tell how its work grows without a clock.
 *
 * The program is compiled with -fsanitize-coverage=trace-pc: each of its basic blocks calls __sanitizer_cov_trace_pc(), a step.
 * What the C library does on its behalf counts by its bytes.  Memory is what malloc() has lent at once, at most.  At the end, or
 * where a limit is reached, "STEPS BYTES" is written to WEFT_COUNT.  The limit, WEFT_COUNT_STEPS, ends what would take for ever.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_A_STEP = 16 };

static uint64_t steps, limit = UINT64_MAX;
static atomic_size_t lent, most;
static const char *out;

static void tell(void)
{
	char line[64];
	int file = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	int n = snprintf(line, sizeof line, "%llu %zu\n", (unsigned long long)steps, atomic_load(&most));
	if (file < 0 || write(file, line, (size_t)n) != n)
		return;
	close(file);
}

static void step(uint64_t count)
{
	steps += count;
	if (steps < limit)
		return;
	limit = UINT64_MAX;
	tell();
	_exit(99);
}

__attribute__((constructor)) static void begin(void)
{
	const char *most_steps = getenv("WEFT_COUNT_STEPS");
	out = getenv("WEFT_COUNT");
	if (most_steps)
		limit = strtoull(most_steps, NULL, 10);
	atexit(tell);
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	step(1);
}

/* ---- The C library: --wrap finds the calls of the program alone ---- */

#define COUNTED(result, name, parameters, arguments, bytes)                                                                      \
	result __real_##name parameters;                                                                                         \
	result __wrap_##name parameters;                                                                                         \
	result __wrap_##name parameters                                                                                          \
	{                                                                                                                        \
		step(1 + (bytes) / BYTES_A_STEP);                                                                                \
		return __real_##name arguments;                                                                                  \
	}

COUNTED(void *, memcpy, (void *to, const void *from, size_t n), (to, from, n), n)
COUNTED(void *, memmove, (void *to, const void *from, size_t n), (to, from, n), n)
COUNTED(void *, memset, (void *to, int c, size_t n), (to, c, n), n)
COUNTED(int, memcmp, (const void *a, const void *b, size_t n), (a, b, n), n)
COUNTED(size_t, strlen, (const char *s), (s), __real_strlen(s))
COUNTED(int, strcmp, (const char *a, const char *b), (a, b), strnlen(a, strlen(b)))

void *__real_memchr(const void *from, int c, size_t n);
void *__wrap_memchr(const void *from, int c, size_t n);
void *__wrap_memchr(const void *from, int c, size_t n)
{
	const char *found = __real_memchr(from, c, n);
	step(1 + (found ? (size_t)(found - (const char *)from) : n) / BYTES_A_STEP);
	return (void *)(uintptr_t)found;
}

/* ---- Memory: of the whole process, its libraries included ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static void *lend(void *memory)
{
	size_t now = atomic_fetch_add(&lent, malloc_usable_size(memory)) + malloc_usable_size(memory);
	size_t peak = atomic_load(&most);
	while (now > peak && !atomic_compare_exchange_weak(&most, &peak, now))
		;
	return memory;
}

void *malloc(size_t bytes)
{
	return lend(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
	return lend(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
	size_t had = malloc_usable_size(memory);
	void *now = __libc_realloc(memory, bytes);
	if (!now && bytes > 0)
		return NULL;
	atomic_fetch_sub(&lent, had);
	return lend(now);
}

void *memalign(size_t alignment, size_t bytes)
{
	return lend(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

int posix_memalign(void **out_memory, size_t alignment, size_t bytes)
{
	void *memory = memalign(alignment, bytes);
	if (memory)
		*out_memory = memory;
	return memory ? 0 : ENOMEM;
}

void free(void *memory)
{
	atomic_fetch_sub(&lent, malloc_usable_size(memory));
	__libc_free(memory);
}
