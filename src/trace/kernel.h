/* kernel.h: declares kernel records of a program's threads, which weft record --kernel makes.
 *
 * Kernel records are stored beside the program's events and read separately, so that readers of promises need not read them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_KERNEL_H
#define WEFT_TRACE_KERNEL_H

#include "trace/trace.h"
#include "wire/kernel.h"

/* Number of bits of a tid, because Linux has no higher tids.  If several hosts are joined, each tid and pid in kernel records
 * has the number of its host above these bits; 0 is the first host. */
#define WEFT_TID_BITS 22

static inline uint32_t weft_tid_at(uint32_t tid, uint32_t host)
{
	return tid && host ? (tid & ((1u << WEFT_TID_BITS) - 1)) | host << WEFT_TID_BITS : tid;
}

/* Returns the tid that the thread has on its host. */
static inline uint32_t weft_tid_shown(uint32_t tid)
{
	return tid & ((1u << WEFT_TID_BITS) - 1);
}

/* A kernel record about a thread.  Records about names of threads, levels and clocks are in weft_kernel_info instead. */
struct weft_kernel_event {
	int64_t time_ns; /* as weft_event.time_ns */
	uint32_t tid;
	/* for TAKEN: thread that took the CPU; for WAKE: thread that woke it; for FAULT: the page; for IN: the file
	 * descriptor */
	uint32_t other;
	uint8_t op;        /* enum weft_kernel_op */
	uint8_t why;       /* for OFF: enum weft_kernel_why; for IN: 1 if certain; for SPENT: enum weft_kernel_spent */
	uint8_t call;      /* OFF, IN: enum weft_kernel_call */
	int64_t length_ns; /* SPENT: duration */
	uint32_t ago_ns;   /* for IN: time since the moment that the record describes; for SPENT: time since the end of the use */
	const char *text;  /* for IN and SPENT: name, valid until the trace is closed; NULL if it is unknown */
};

/* A thread that records name: a thread of the program, or a thread that preempted or woke one. */
struct weft_kernel_thread {
	uint32_t tid;
	uint32_t pid; /* process of the thread; 0 if it belongs to another program */
	struct weft_str name;
};

struct weft_kernel_info {
	enum weft_kernel_level level;
	struct weft_str why; /* reason why the level of recording is not higher; may be empty */
	uint64_t packets, bytes, events;
	/* number of events lost because a kernel buffer or the disk was full; number of events in packets that the ring
	 * reused */
	uint64_t lost, overwritten;
	uint32_t processors;
	/* is_whole is true if no records between since_ns and until_ns were lost, cut or damaged. since_ns is INT64_MIN if the
	 * records are complete from the start. */
	bool is_whole;
	int64_t since_ns, until_ns;
	/* maximum difference between record times and the program's clock; 0 if it is unknown */
	uint32_t bound_ns;
	/* threads, sorted by tid within a part; if a thread had several names, the last one */
	const struct weft_kernel_thread *threads;
	size_t thread_count;
};

/* Receives records in order of time; records with equal times are sorted by CPU, then in the recorded order.  In a joined
 * trace, the records of one part follow those of another part.  A non-zero result stops reading with WEFT_EIO. */
typedef int weft_kernel_fn(void *ctx, const struct weft_kernel_event *events, size_t count);

/* Reads all kernel records; `each` may be NULL.  *info is valid until the trace is closed.
 *
 * Returns 1; 0 if the trace has no kernel records; WEFT_ENOMEM or WEFT_EIO on failure. */
int weft_trace_kernel(struct weft_trace *trace, weft_kernel_fn *each, void *ctx, struct weft_kernel_info *info);

#endif
