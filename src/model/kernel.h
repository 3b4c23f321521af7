/* kernel.h: tells when the program's threads were off CPU, and why, from kernel records (weft record --kernel).
 *
 * Times are the model's.  Lists are sorted by thread and then by time; the intervals of one thread do not overlap.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_KERNEL_H
#define WEFT_MODEL_KERNEL_H

#include "model/model.h"
#include "trace/kernel.h"

#define WEFT_NO_TID 0u /* no thread, or unknown */

/* An interval in which a thread was off CPU. */
struct weft_off_cpu {
	int64_t start_ns;
	/* time since which the thread was runnable: start_ns if it was preempted, end_ns if that time is unknown */
	int64_t ready_ns;
	int64_t end_ns;    /* time at which the thread got a CPU again; the end of the trace if it never did */
	uint32_t by;       /* tid of the thread that took its CPU, or WEFT_NO_TID */
	uint32_t woken_by; /* tid of the thread that woke it, or WEFT_NO_TID */
	uint8_t why;       /* enum weft_kernel_why */
	uint8_t call;      /* enum weft_kernel_call: the system call in which the thread waited */
	bool by_interrupt; /* an interrupt woke it */
	/* true if the thread waited for .file; false if .file is what the file descriptor was a moment later */
	bool is_sure;
	uint32_t fd;      /* file descriptor of the call, or WEFT_KERNEL_NO_FD */
	const char *file; /* path or peer of the file descriptor; NULL if it is unknown */
};

/* An interval in which a CPU did something that its thread did not cause. */
struct weft_spent {
	int64_t start_ns, end_ns;
	const char *name; /* name of what the CPU did, such as "virtio0", "net_rx" or "gc"; NULL if it is unknown */
	uint32_t tid;
	uint8_t on; /* enum weft_kernel_spent */
};

struct weft_os_thread {
	uint32_t tid;
	uint32_t pid; /* process of the thread; 0 if the thread belongs to another program */
	struct weft_str name;
	size_t offs; /* index of its first interval in weft_kernel.offs; its intervals end at the next thread's index */
	/* index of its first interrupt in weft_kernel.spents, up to the next thread's index; sorted by start, may be nested */
	size_t spents;
	size_t faults;    /* index of its first page fault in weft_kernel.faults_ns, up to the next thread's index */
	int64_t first_ns; /* time of its first kernel record; INT64_MAX if there is none */
};

struct weft_kernel {
	struct weft_kernel_info info;
	int64_t since_ns, until_ns;     /* time range that kernel records cover */
	struct weft_os_thread *threads; /* threads, sorted by tid; a sentinel follows the last */
	size_t thread_count;
	struct weft_off_cpu *offs;
	size_t off_count;
	int64_t *faults_ns; /* times of page faults */
	size_t fault_count;
	struct weft_spent *spents; /* interrupts */
	size_t spent_count;
	/* Garbage collections of the program's runtime, sorted by start.  During a collection, other threads of the program run
	 * no code of that language. */
	struct weft_spent *collections;
	size_t collection_count;
	struct weft_os_tracks *tracks; /* tracks of threads (os_tracks.h); NULL if not built yet */
};

/* Totals of a thread's off-CPU time in an interval. */
struct weft_off_cpu_sum {
	int64_t blocked_ns; /* waiting for something */
	/* time in which the thread was runnable because its wait had ended */
	int64_t ready_ns;
	int64_t preempted_ns;                                           /* preempted */
	uint32_t blocked, preempted;                                    /* number of intervals */
	const struct weft_off_cpu *longest_blocked, *longest_preempted; /* NULL: there is none */
	/* blocked time in each call, by enum weft_kernel_call */
	int64_t call_ns[256];
	int64_t interrupts_ns; /* time of the interrupts that ran on its CPU */
	uint32_t interrupts;
	const char *interrupt;      /* name of the interrupt with the most time; NULL if there was none or its name is unknown */
	int64_t interrupt_ns;       /* time of that interrupt */
	int64_t first_interrupt_ns; /* start of the first interrupt */
	uint32_t faults;
	/* upper bound of the time in page faults: the sum of the gaps between faults that follow each other closely */
	int64_t faulting_ns;
};

/* Returns the index of a thread in .threads, or WEFT_NONE.  Logarithmic. */
uint32_t weft_kernel_thread(const struct weft_kernel *kernel, uint64_t tid);

/* Returns the index in .threads of the thread of a stream, or WEFT_NONE. */
uint32_t weft_kernel_of_stream(const struct weft_model *model, size_t stream);

/* Sums the off-CPU time of the thread of a stream in a time range.  Returns false if kernel records do not cover the whole
 * range, or if any were lost.  Takes logarithmic time, plus time linear in the number of intervals and page faults of the
 * range. */
bool weft_kernel_sum(
    const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns, struct weft_off_cpu_sum *out);

/* The file for which a thread waited in one type of call. */
struct weft_wait_target {
	const char *file; /* the file that accounts for the most time; NULL if it is unknown */
	int64_t ns;       /* time of that file */
	bool is_sure;
};

/* Finds the file for which a thread waited in one type of call, under the conditions of weft_kernel_sum().  If there are many
 * files, the result may be a file with slightly less time than the maximum. */
struct weft_wait_target weft_kernel_wait_target(
    const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns, uint8_t call);

/* Returns for how long the program's runtime collected garbage; sets *longest if there was a collection.  Collections that
 * started more than a minute before from_ns are not found.  Takes time linear in the number of collections in the range and in
 * the minute before it. */
int64_t weft_kernel_collected_ns(
    const struct weft_kernel *kernel, uint32_t pid, int64_t from_ns, int64_t to_ns, const struct weft_spent **longest);

/* Returns the off-CPU time of the thread of a stream; -1 if it is unknown. */
int64_t weft_kernel_off_ns(const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* Returns the off-CPU time while the promise ran; 0 if it is unknown.  Linear in its runs. */
int64_t weft_kernel_promise_off_ns(const struct weft_model *model, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* Reads the kernel records of a trace; if there are none, model->kernel stays NULL.  WEFT_ENOMEM. */
int weft__model_read_kernel(struct weft_model *model, struct weft_trace *trace);
void weft__model_free_kernel(struct weft_kernel *kernel);

#endif
