/* known.c: makes page faults at known times, each between two readings of the CPU's counter.
 *
 * 	known COUNT FILE [forever]
 *
 * A callback of a libuv loop touches COUNT new pages, one after the other, and writes three 64-bit numbers for each into FILE:
 * the page's number, the counter before the access, and the counter after it.  With "forever" it touches further pages each 10 ms
 * until a signal ends it.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uv.h>
#include <weft/record_inline.h>

static struct known {
	uint64_t page, before, after;
} * all;
static size_t count;
static const char *name;

static void touch(uv_timer_t *timer)
{
	volatile char *bytes = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED || madvise((void *)bytes, count * 4096, MADV_NOHUGEPAGE))
		exit(1);
	for (size_t i = 0; i < count; i++) {
		all[i].page = (uint64_t)(uintptr_t)(bytes + i * 4096) >> 12;
		all[i].before = weft__counter();
		__asm__ __volatile__("" ::: "memory");
		bytes[i * 4096] = 1;
		__asm__ __volatile__("" ::: "memory");
		all[i].after = weft__counter();
	}
	munmap((void *)bytes, count * 4096);
	if (uv_timer_get_repeat(timer))
		return;
	FILE *file = fopen(name, "w");
	if (!file || fwrite(all, sizeof *all, count, file) != count || fclose(file))
		exit(1);
}

int main(int argc, char **argv)
{
	uv_timer_t timer;
	if (argc < 3)
		return 2;
	count = strtoul(argv[1], NULL, 10);
	name = argv[2];
	if (!(all = malloc(count * sizeof *all)))
		return 1;
	memset(all, 0, count * sizeof *all); /* the array's own pages are touched before, so that they cause no fault later */
	uv_timer_init(uv_default_loop(), &timer);
	uv_update_time(uv_default_loop()); /* the start of the recording may have taken long */
	uv_timer_start(&timer, touch, 20, argc > 3 ? 10 : 0);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
