/* ring.c: implements ring.h.  SPDX-License-Identifier: ISC */
#include "kernel/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIN_RING_BYTES = 64 << 10 };

bool weft_kernel_ring_map(struct weft_kernel_ring *ring, int fd, size_t max_bytes, bool is_overwritten)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = MAP_FAILED;
	size_t size = MIN_RING_BYTES;
	while (2 * size <= max_bytes)
		size *= 2;
	for (; size >= MIN_RING_BYTES; size /= 2) {
		at = mmap(NULL, page + size, PROT_READ | (is_overwritten ? 0 : PROT_WRITE), MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			break;
	}
	*ring = (struct weft_kernel_ring){.page = at, .data = (unsigned char *)at + page, .size = size};
	return at != MAP_FAILED;
}

void weft_kernel_ring_unmap(struct weft_kernel_ring *ring)
{
	munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + ring->size);
}

uint64_t weft_kernel_ring_drain(struct weft_kernel_ring *ring, unsigned char *buffer, weft_kernel_ring_fn *each, void *ctx)
{
	const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	const uint64_t free_bytes = ring->size - (head - tail);
	while (tail < head) {
		const size_t at = (size_t)(tail & (ring->size - 1));
		const unsigned char *bytes = ring->data + at;
		struct perf_event_header h;
		memcpy(&h, bytes, sizeof h); /* the header never wraps around, because the sizes of records are multiples of 8 */
		if (h.size < sizeof h || h.size > head - tail)
			break;
		if (at + h.size > ring->size) {
			const size_t first = ring->size - at;
			memcpy(buffer, bytes, first);
			memcpy(buffer + first, ring->data, h.size - first);
			bytes = buffer;
		}
		each(ctx, bytes);
		tail += h.size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return free_bytes;
}

void weft_kernel_format_refusal(char *why, size_t size, int error)
{
	int level = 0;
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	bool known = file && fscanf(file, "%d", &level) == 1;
	if (file)
		fclose(file);
	if (known && (error == EACCES || error == EPERM))
		snprintf(why, size, "perf_event_paranoid is %d", level);
	else
		snprintf(why, size, "perf_event_open: %s", strerror(error));
}
