/* bpf.h: records why a program's OS threads leave the CPU, and long softirqs, by BPF programs in the kernel.
 *
 * A record is short; tracepoints would need a call chain.  Softirqs shorter than WEFT_KERNEL_BPF_MIN_NS are not recorded.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_KERNEL_BPF_H
#define WEFT_KERNEL_BPF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEFT_KERNEL_BPF_MIN_NS = 20000 };

enum weft_kernel_bpf_type { WEFT_KERNEL_BPF_SWITCH, WEFT_KERNEL_BPF_SOFTIRQ };

/* Content of a record. */
struct weft_kernel_bpf_record {
	uint32_t event_type; /* enum weft_kernel_bpf_type */
	uint32_t off_tid, off_pid;
	uint32_t state; /* 0: runnable (preempted); else prev_state of sched_switch */
	int64_t call;   /* syscall number; -1: none (a page fault); -2: unknown */
	uint64_t argument;
	char name[16]; /* name of the next thread if this one was preempted */
	uint32_t next; /* tid of the next thread */
	uint32_t padding;
};

/* Bytes in a record; with the 4 bytes of their size before them a multiple of 8. */
enum { WEFT_KERNEL_BPF_BYTES = sizeof(struct weft_kernel_bpf_record) - 4 };

/* WEFT_KERNEL_BPF_SOFTIRQ: off_tid and off_pid were interrupted; state is the softirq, argument its ns until the record. */

struct weft_kernel_bpf;

/* Records `pid` from its next exec on, and its descendants.  Returns NULL where that is impossible: it needs root, the first PID
 * namespace, and a kernel of at least 5.18 with BTF. */
struct weft_kernel_bpf *weft_kernel_bpf_open(pid_t pid);

/* Sends records of a CPU to its perf event PERF_COUNT_SW_BPF_OUTPUT.  Returns false on failure. */
bool weft_kernel_bpf_set_output(const struct weft_kernel_bpf *bpf, uint32_t cpu, int fd);

/* Accepts NULL. */
void weft_kernel_bpf_close(struct weft_kernel_bpf *bpf);

#endif
