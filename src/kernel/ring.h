/* ring.h: a ring into which the kernel writes the records of perf events.  SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_RING_H
#define WEFT_KERNEL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

struct weft_kernel_ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t size;
};

enum { WEFT_KERNEL_RECORD_BYTES = 1 << 16 }; /* maximum size of a record */

/* Maps the ring of an event, at most max_bytes large and as large as the user's limit allows; returns false if it allows none.
 * The kernel overwrites the oldest records of a ring that is_overwritten. */
bool weft_kernel_ring_map(struct weft_kernel_ring *ring, int fd, size_t max_bytes, bool is_overwritten);
void weft_kernel_ring_unmap(struct weft_kernel_ring *ring);

/* Calls `each` with every record that the kernel has written, in order.  `buffer` has WEFT_KERNEL_RECORD_BYTES.  Returns the
 * number of bytes that were free in the ring. */
typedef void weft_kernel_ring_fn(void *ctx, const unsigned char *record);
uint64_t weft_kernel_ring_drain(struct weft_kernel_ring *ring, unsigned char *buffer, weft_kernel_ring_fn *each, void *ctx);

/* Writes why the kernel refused an event with the error number `error`, such as "perf_event_paranoid is 3". */
void weft_kernel_format_refusal(char *why, size_t size, int error);

#endif
