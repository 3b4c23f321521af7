/* kernel.h: when the program's OS threads had no processor, and why, as the kernel said (weft record --kernel).
 *
 * Times are the model's.  Lists are by OS thread and then by time; stretches of one OS thread do not overlap.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_KERNEL_H
#define WEFT_MODEL_KERNEL_H

#include "model/model.h"
#include "trace/kernel.h"

#define WEFT_NO_TID 0u /* nobody, or nobody knows who */

/* An OS thread had no processor. */
struct weft_off {
	int64_t start_ns;
	int64_t ready_ns;  /* from then on it wanted one: since the begin if it was taken away; end_ns if nobody knows */
	int64_t end_ns;    /* of one that got none any more: when the trace ends */
	uint32_t by;       /* who took its processor, or WEFT_NO_TID */
	uint32_t woken_by; /* who woke it, or WEFT_NO_TID */
	uint8_t why;       /* enum weft_kernel_why */
	uint8_t call;      /* enum weft_kernel_call: what it waited in */
	bool by_interrupt; /* an interrupt woke it */
	bool is_sure;      /* .file is what it waited on; else that is what the descriptor was a moment later */
	uint32_t fd;       /* which descriptor the call was about, or WEFT_KERNEL_NO_FD */
	const char *file;  /* the path or peer that the call was about; NULL: nobody knows */
};

/* A processor did something else in between, for which the OS thread that had it is not to blame. */
struct weft_spent {
	int64_t start_ns, end_ns;
	const char *name; /* "virtio0", "net_rx", "gc"; NULL: nobody knows */
	uint32_t tid;
	uint8_t on; /* enum weft_kernel_spent */
};

struct weft_os_thread {
	uint32_t tid;
	uint32_t pid; /* 0: of another program */
	struct weft_str name;
	size_t offs;      /* its stretches are [offs, next one's offs) of weft_kernel.offs */
	size_t spents;    /* likewise what interrupts took, by when they begin; one may be within another */
	size_t faults;    /* likewise of weft_kernel.faults_ns */
	int64_t first_ns; /* what the kernel says of it begins then; INT64_MAX: it says nothing */
};

struct weft_kernel {
	struct weft_kernel_info info;
	int64_t since_ns, until_ns;     /* what is known is known for that time */
	struct weft_os_thread *threads; /* by tid; a sentinel stands behind the last */
	size_t thread_count;
	struct weft_off *offs;
	size_t off_count;
	int64_t *faults_ns; /* when it touched a page that was not there */
	size_t fault_count;
	struct weft_spent *spents; /* interrupts */
	size_t spent_count;
	/* When the program's runtime collected garbage, by when that begins; meanwhile no other OS thread of the program goes on,
	 * as far as it runs that language. */
	struct weft_spent *collections;
	size_t collection_count;
	struct weft_os_tracks *tracks; /* os_tracks.h; NULL: nobody asked for them yet */
};

/* What became of a part of an OS thread's time that it had no processor for. */
struct weft_off_sum {
	int64_t blocked_ns;                                         /* it waited for something */
	int64_t ready_ns;                                           /* what it waited for was there, and no processor */
	int64_t preempted_ns;                                       /* others had its processor */
	uint32_t blocked, preempted;                                /* how often */
	const struct weft_off *longest_blocked, *longest_preempted; /* NULL: there was none */
	int64_t call_ns[256];                                       /* how long in each call, by enum weft_kernel_call */
	int64_t interrupts_ns;                                      /* interrupts had its processor */
	uint32_t interrupts;
	const char *interrupt;      /* that of the most time; NULL: there was none, or nobody knows its name */
	int64_t interrupt_ns;       /* how long that was */
	int64_t first_interrupt_ns; /* when the first one began */
	uint32_t faults;
	int64_t faulting_ns; /* from one to the next, where it did little else in between: at most so much they took */
};

/* The number of an OS thread in .threads, or WEFT_NONE.  Logarithmic. */
uint32_t weft_kernel_thread(const struct weft_kernel *kernel, uint64_t tid);

/* The same of a stream's OS thread. */
uint32_t weft_kernel_of_stream(const struct weft_model *model, size_t stream);

/* What the kernel says of that time of an OS thread, as the model's streams are one; false: nothing, or not all of it: where
 * anything was lost in the trace nothing is concluded.
 * Logarithmic, and then linear in its stretches and page faults there. */
bool weft_kernel_sum(const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns, struct weft_off_sum *out);

/* What was waited for in one sort of call, as far as that is known. */
struct weft_waited {
	const char *file; /* that of the most time; NULL: nobody knows */
	int64_t ns;       /* how long of that time it was that */
	bool is_sure;
};

/* Likewise as weft_kernel_sum(), of one sort of call.  Of many files it may miss the one of the most time, but not by much. */
struct weft_waited weft_kernel_waited(
    const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns, uint8_t call);

/* How long the program's runtime collected garbage in that time; *longest, if there was any.  Those are not told of that
 * began more than a minute before.  Linear in collections of that time. */
int64_t weft_kernel_collected_ns(
    const struct weft_kernel *kernel, uint32_t pid, int64_t from_ns, int64_t to_ns, const struct weft_spent **longest);

/* How long of that time it had no processor; -1: nobody knows. */
int64_t weft_kernel_off_ns(const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* The same for what a promise ran in that time; 0 also where nobody knows.  Linear in its runs. */
int64_t weft_kernel_promise_off_ns(const struct weft_model *model, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* Reads what there is: a trace without it leaves model->kernel NULL.  WEFT_ENOMEM. */
int weft__model_read_kernel(struct weft_model *model, struct weft_trace *trace);
void weft__model_free_kernel(struct weft_kernel *kernel);

#endif
