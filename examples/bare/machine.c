/* machine.c: serial port, timer, clocks and memory of a PC.  SPDX-License-Identifier: ISC */
#include "machine.h"

/* ---- Functions that a compiler expects of a C library ---- */

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
size_t strlen(const char *text);

void *memcpy(void *to, const void *from, size_t bytes)
{
	void *begin = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return begin;
}

void *memset(void *to, int byte, size_t bytes)
{
	void *begin = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
	return begin;
}

size_t strlen(const char *text)
{
	const char *end = text;
	while (*(const volatile char *)end)
		end++;
	return (size_t)(end - text);
}

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in8(uint16_t port)
{
	uint8_t value;
	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

/* ---- The serial port ---- */

enum { SERIAL = 0x3f8 };

void machine_print(const char *text)
{
	for (; *text; text++) {
		while (!(in8(SERIAL + 5) & 0x20))
			;
		out8(SERIAL, (uint8_t)*text);
	}
}

void machine_print_number(const char *name, uint64_t number)
{
	char digits[24], *at = digits + sizeof digits;
	*--at = 0;
	*--at = '\n';
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	machine_print(name);
	machine_print(" ");
	machine_print(at);
}

bool machine_has_option(const void *loader, const char *word)
{
	const uint32_t *info = loader;
	size_t length = strlen(word);
	if (!(info[0] & 4))
		return false;
	for (const char *at = (const char *)(uintptr_t)info[4]; *at; at++) {
		size_t i = 0;
		while (i < length && at[i] == word[i])
			i++;
		if (i == length)
			return true;
	}
	return false;
}

/* ---- Interrupts and the timer ---- */

enum { TIMER_INPUT_HZ = 1193182, TIMER_VECTOR = 32 };

struct frame;

static struct {
	uint16_t low, selector, type, middle;
	uint32_t high, zero;
} vectors[TIMER_VECTOR + 1];

static void (*tick)(void);

__attribute__((interrupt)) static void timer_interrupt(struct frame *frame)
{
	tick();
	out8(0x20, 0x20);
}

uint64_t machine_disable_interrupts(void)
{
	uint64_t flags;
	__asm__ volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
	return flags;
}

void machine_restore_interrupts(uint64_t state)
{
	if (state & 0x200)
		__asm__ volatile("sti" : : : "memory");
}

void machine_sleep(void)
{
	__asm__ volatile("sti; hlt; cli" : : : "memory");
}

static void start_timer(void)
{
	uintptr_t handler = (uintptr_t)timer_interrupt;
	vectors[TIMER_VECTOR].low = (uint16_t)handler;
	vectors[TIMER_VECTOR].selector = 8;
	vectors[TIMER_VECTOR].type = 0x8e00;
	vectors[TIMER_VECTOR].middle = (uint16_t)(handler >> 16);
	vectors[TIMER_VECTOR].high = (uint32_t)(handler >> 32);
	struct {
		uint16_t size;
		uint64_t at;
	} __attribute__((packed)) table = {sizeof vectors - 1, (uintptr_t)vectors};
	__asm__ volatile("lidt %0" : : "m"(table));
	/* The first interrupt controller has the vectors from 32 on; only the timer is enabled. */
	const uint8_t words[] = {0x11, TIMER_VECTOR, 4, 1};
	for (int i = 0; i < 4; i++)
		out8(i ? 0x21 : 0x20, words[i]);
	out8(0x21, 0xfe);
	out8(0xa1, 0xff);
	out8(0x43, 0x34);
	out8(0x40, TIMER_INPUT_HZ / TIMER_HZ & 0xff);
	out8(0x40, TIMER_INPUT_HZ / TIMER_HZ >> 8);
}

/* ---- Clocks ---- */

static uint64_t clock_hz, start_clock, start_wall_ns;

uint64_t machine_clock(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* Measures the clock while the timer's third channel counts for 50 ms. */
static uint64_t measure_clock(void)
{
	enum { PART = 20 };
	out8(0x61, (in8(0x61) & ~2) | 1);
	out8(0x43, 0xb0);
	out8(0x42, TIMER_INPUT_HZ / PART & 0xff);
	out8(0x42, TIMER_INPUT_HZ / PART >> 8);
	uint64_t begin = machine_clock();
	while (!(in8(0x61) & 0x20))
		;
	return (machine_clock() - begin) * PART;
}

static unsigned read_calendar(uint8_t what)
{
	out8(0x70, what);
	uint8_t digits = in8(0x71);
	return (digits >> 4) * 10u + (digits & 15u);
}

/* Returns the time of the battery-backed clock in seconds since 1970; assumes this century. */
static uint64_t read_day(void)
{
	while (read_calendar(0x0a) >= 80) /* an update is in progress */
		;
	unsigned year = 2000 + read_calendar(9), month = read_calendar(8), day = read_calendar(7);
	/* Days since 1970, by years that begin in March. */
	unsigned y = year - (month < 3), m = (month + 9) % 12;
	uint64_t days = y * 365u + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
	return ((days * 24 + read_calendar(4)) * 60 + read_calendar(2)) * 60 + read_calendar(0);
}

uint64_t machine_clock_hz(void)
{
	return clock_hz;
}

uint64_t machine_wall_ns(void)
{
	uint64_t ticks = machine_clock() - start_clock;
	return start_wall_ns + ticks / clock_hz * 1000000000 + ticks % clock_hz * 1000000000 / clock_hz;
}

/* ---- Memory ---- */

enum { PAGE = 4096, RING_PAGES = MACHINE_RING_BYTES / PAGE, RING_ADDRESS = 1 << 30, SIZES = 64, GRAIN = 32 };

extern uint64_t ring_pages[];
static _Alignas(PAGE) unsigned char pages[RING_PAGES][PAGE];
static _Alignas(16) unsigned char heap[1 << 20];
static size_t heap_used;
static void *released[SIZES]; /* one linked list for each size */

void *machine_ring(void)
{
	/* 37 and the number of pages have no common divisor, so each page is used once. */
	for (unsigned i = 0; i < RING_PAGES; i++)
		ring_pages[i] = (uintptr_t)pages[(i * 37 + 11) % RING_PAGES] | 3;
	return (void *)(uintptr_t)RING_ADDRESS;
}

void *machine_allocate(void *ctx, size_t bytes)
{
	size_t size = (bytes + GRAIN - 1) / GRAIN;
	if (size < SIZES && released[size]) {
		void **memory = released[size];
		released[size] = *memory;
		return memory;
	}
	if (size * GRAIN > sizeof heap - heap_used)
		return NULL;
	heap_used += size * GRAIN;
	return heap + heap_used - size * GRAIN;
}

void machine_release(void *ctx, void *memory, size_t bytes)
{
	size_t size = (bytes + GRAIN - 1) / GRAIN;
	if (size >= SIZES)
		return; /* chunks of promises, which the library seldom frees */
	*(void **)memory = released[size];
	released[size] = memory;
}

void machine_crash(void)
{
	*(volatile int *)(uintptr_t)(3u << 30) = 0;
}

void machine_start(void (*on_tick)(void))
{
	tick = on_tick;
	clock_hz = measure_clock();
	start_clock = machine_clock();
	start_wall_ns = read_day() * 1000000000;
	start_timer();
}
