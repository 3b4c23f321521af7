/* kernel.h: what the kernel said of a program's OS threads, of a trace that weft record --kernel made.
 *
 * It stands beside the program's events and is read by itself: who asks only what promises did does not pay for it.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_KERNEL_H
#define WEFT_TRACE_KERNEL_H

#include "trace/trace.h"
#include "wire/kernel.h"

/* OS threads have no higher numbers on Linux.  Where several hosts are joined, the host's number is above these bits in each tid
 * and pid of what their kernels said, and 0 that of the first host. */
#define WEFT_TID_BITS 22

static inline uint32_t weft_tid_at(uint32_t tid, uint32_t host)
{
	return tid && host ? (tid & ((1u << WEFT_TID_BITS) - 1)) | host << WEFT_TID_BITS : tid;
}

/* As its host has it. */
static inline uint32_t weft_tid_shown(uint32_t tid)
{
	return tid & ((1u << WEFT_TID_BITS) - 1);
}

/* One event; threads, levels and clocks are in weft_kernel_info instead. */
struct weft_kernel_event {
	int64_t time_ns; /* as weft_event.time_ns */
	uint32_t tid;
	uint32_t other;    /* TAKEN, WAKE: by whom; FAULT: the page; IN: the descriptor */
	uint8_t op;        /* enum weft_kernel_op */
	uint8_t why;       /* OFF: enum weft_kernel_why; IN: whether it is sure; SPENT: enum weft_kernel_spent */
	uint8_t call;      /* OFF, IN: enum weft_kernel_call */
	int64_t length_ns; /* SPENT: how long that was */
	uint32_t ago_ns;   /* IN, SPENT: how long ago that was, or ended */
	const char *text;  /* IN, SPENT: lives as long as the trace; NULL: nobody knows */
};

/* An OS thread that events name: of the program, or who took the place of one of these or woke it. */
struct weft_kernel_thread {
	uint32_t tid;
	uint32_t pid; /* 0: of another program */
	struct weft_str name;
};

struct weft_kernel_info {
	enum weft_kernel_level level;
	struct weft_str why; /* it was not more; may be empty */
	uint64_t packets, bytes, events;
	uint64_t lost, overwritten; /* events: the kernel had no room for them, or the disk; the ring reused their packet */
	uint32_t processors;
	/* All that the kernel said from then until then is there, if anything is: nothing was lost, cut or damaged in between.
	 * INT64_MIN: since the begin. */
	bool is_whole;
	int64_t since_ns, until_ns;
	uint32_t bound_ns;                        /* how far events may be from the program's clock, at most; 0: not told */
	const struct weft_kernel_thread *threads; /* by tid, within a part; of several names the last */
	size_t thread_count;
};

/* Receives events in time order (ties: by processor, then as recorded); of a trace that is joined of several those of one part
 * after the other, whose OS threads are others; a non-zero answer ends the reading with WEFT_EIO. */
typedef int weft_kernel_fn(void *ctx, const struct weft_kernel_event *events, size_t count);

/* Reads all of it; `each` may be NULL.  *info ends with the trace.
 *
 * Returns 1, 0: the trace has nothing of the kernel's, WEFT_ENOMEM, WEFT_EIO. */
int weft_trace_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

#endif
