/* freestanding.c: a program without a C library.  It records into its own memory, with a clock of its own, while interrupts are
 * blocked.  Its only system call writes this memory to standard output.  SPDX-License-Identifier: ISC */
#include <stddef.h>
#include <stdint.h>
#include <weft/record.h>

enum { REQUESTS = 3000 };

static uint64_t memory[16384 / 8];
static uint64_t ticks;
static int kept_out, times_kept_out;

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
size_t strlen(const char *text);
void begin(void);

/* Keeps the compiler from replacing these functions by calls of themselves. */
#define PLAIN __attribute__((optimize("no-tree-loop-distribute-patterns")))
#ifdef __clang__
#undef PLAIN
#define PLAIN __attribute__((no_builtin))
#endif

PLAIN void *memcpy(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

PLAIN void *memset(void *to, int byte, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((char *)to)[i] = (char)byte;
	return to;
}

PLAIN size_t strlen(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	return n;
}

static uint64_t clock_us(void)
{
	return ++ticks;
}

static uint64_t enter(void)
{
	times_kept_out++;
	return (uint64_t)kept_out++;
}

static void leave(uint64_t state)
{
	kept_out = (int)state;
}

static long ask_kernel(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

#ifdef __x86_64__
enum { SYS_WRITE = 1, SYS_EXIT = 60 };
__asm__(".globl _start\n_start:\n\tandq $-16, %rsp\n\tcall begin\n");
#else
enum { SYS_WRITE = 64, SYS_EXIT = 93 };
__asm__(".globl _start\n_start:\n\tbl begin\n");
#endif

static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	weft_pending(WEFT_SYSTEM_ID, *(const weft_id *)data, WEFT_KIND_TIMER, NULL, 7, "oldest");
	return 0;
}

static int record(void)
{
	struct weft_record_options options = {.buffer = memory,
	    .buffer_bytes = sizeof memory,
	    .clock = clock_us,
	    .clock_hz = 1000000,
	    .enter = enter,
	    .leave = leave};
	weft_id oldest = 1 << 20;
	if (weft_start(&options) < 0)
		return 1;
	weft_list_pending(list, &oldest);
	for (int i = 0; i < REQUESTS; i++) {
		weft_id id = WEFT_CREATE(WEFT_KIND_REQUEST);
		WEFT_LABEL(id, "literal");
		weft_label(id, "copied");
		weft_run(id);
		weft_resolve(WEFT_SYSTEM_ID, id);
	}
	weft_stop();
	return kept_out || !times_kept_out || weft_is_on();
}

void begin(void)
{
	int status = record();
	if (!status)
		status = ask_kernel(SYS_WRITE, 1, (long)memory, sizeof memory) != sizeof memory;
	ask_kernel(SYS_EXIT, status, 0, 0);
}
