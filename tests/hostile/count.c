/* count.c: counts the steps and the memory of a program, so that tests can measure growth without a clock.
 *
 * The program is compiled with -fprofile-arcs, which adds cheap counters of the branches.  Their sum is the number of steps.  The
 * work of the C library counts by its bytes.  All numbers are the same in each run.  Memory is the maximum that malloc() has lent
 * at one time.  At the end, or soon after a limit is reached, the program writes "STEPS BYTES" to WEFT_COUNT.  The limit
 * WEFT_COUNT_STEPS ends a run that would not finish.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <gcov.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { BYTES_A_STEP = 16, LOOK_EVERY_US = 100000 };

static uint64_t bytes_steps, limit = UINT64_MAX;
static atomic_size_t lent, most;
static const char *out;

/* ---- Counters as libgcov defines them: records of a tag, a length in bytes and 32-bit numbers ---- */

enum { MAGIC_WORDS = 4, TAG_COUNTERS = 0x01a10000 };

/* -fprofile-info-section puts one pointer per file here. */
extern const struct gcov_info *const __start_weft_counted[], *const __stop_weft_counted[];

struct reading {
	uint64_t sum;
	unsigned word;  /* word index in this file */
	unsigned left;  /* words left in this record */
	bool is_length; /* a tag has been read */
	uint32_t tag, low;
};

static void read_words(const void *data, unsigned bytes, void *arg)
{
	struct reading *r = arg;
	for (const uint32_t *w = data, *end = w + bytes / sizeof *w; w < end; w++) {
		if (r->word++ < MAGIC_WORDS)
			continue;
		if (r->left > 0) {
			if (r->tag == TAG_COUNTERS && r->left % 2 == 0)
				r->low = *w;
			else if (r->tag == TAG_COUNTERS)
				r->sum += r->low | (uint64_t)*w << 32;
			r->left--;
		} else if (r->is_length) {
			/* A negative length stands for counters that are all 0. */
			r->left = (int32_t)*w > 0 ? *w / sizeof *w : 0;
			r->is_length = false;
		} else {
			r->tag = *w;
			r->is_length = r->tag != 0;
		}
	}
}

static void begin_file(const char *name, void *arg)
{
	struct reading *r = arg;
	*r = (struct reading){.sum = r->sum};
}

static uint64_t count_steps(void)
{
	struct reading r = {.sum = bytes_steps};
	for (const struct gcov_info *const *info = __start_weft_counted; info < __stop_weft_counted; info++)
		__gcov_info_to_gcda(*info, begin_file, read_words, NULL, &r);
	return r.sum;
}

static void tell(void)
{
	char line[64];
	int file = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	int n = snprintf(line, sizeof line, "%llu %zu\n", (unsigned long long)count_steps(), atomic_load(&most));
	if (file < 0 || write(file, line, (size_t)n) != n)
		return;
	close(file);
}

static void look(int signal_number)
{
	if (count_steps() < limit)
		return;
	tell();
	_exit(99);
}

__attribute__((constructor)) static void begin(void)
{
	const char *most_steps = getenv("WEFT_COUNT_STEPS");
	out = getenv("WEFT_COUNT");
	atexit(tell);
	if (!most_steps)
		return;
	limit = strtoull(most_steps, NULL, 10);
	const struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, LOOK_EVERY_US}, {0, LOOK_EVERY_US}};
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
}

/* ---- C library: --wrap redirects only the calls of the program ---- */

#define COUNTED(result, name, parameters, arguments, bytes)                                                                      \
	result __real_##name parameters;                                                                                         \
	result __wrap_##name parameters;                                                                                         \
	result __wrap_##name parameters                                                                                          \
	{                                                                                                                        \
		bytes_steps += 1 + (bytes) / BYTES_A_STEP;                                                                       \
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
	bytes_steps += 1 + (found ? (size_t)(found - (const char *)from) : n) / BYTES_A_STEP;
	return (void *)(uintptr_t)found;
}

/* ---- Sources of differences between runs ---- */

int __wrap_getentropy(void *key, size_t bytes);
void __wrap_weft_background_work_start(void *meanwhile);

/* The positions of entries in hash tables change some percent of the steps.  Each table has its own key, as in the program
 * itself: two tables with one key would have their entries in the same order. */
int __wrap_getentropy(void *key, size_t bytes)
{
	static uint64_t state;
	for (unsigned char *at = key, *end = at + bytes; at < end; at++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		*at = (unsigned char)(state >> 56);
	}
	return 0;
}

/* Two OS threads would lose steps of each other, and the scheduler would decide when useless work is cancelled: the caller that
 * waits for the result does the work itself. */
void __wrap_weft_background_work_start(void *meanwhile)
{
	(void)meanwhile;
}

/* ---- Memory of the whole process, including its libraries ---- */

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
