/* bpf.h: records why a program's OS threads leave the CPU, and long softirqs, by BPF programs in the kernel.
 *
 * A record of a BPF program is short, while tracepoints would need a call chain.  Softirqs shorter than WEFT_KERNEL_BPF_MIN_NS
 * are not recorded.  SPDX-License-Identifier: ISC */
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
	/* State of the thread that left the CPU: 0 if it is runnable (preempted), else prev_state of sched_switch. */
	uint32_t state;
	int64_t call; /* syscall number; -1 without a syscall (a page fault); -2 if unknown */
	uint64_t argument;
	char name[16]; /* name of the next thread, if the thread in off_tid was preempted */
	uint32_t next; /* tid of the next thread on the CPU */
	uint32_t padding;
};

/* Number of bytes in a record; together with the 4 bytes of its size before it, a multiple of 8. */
enum { WEFT_KERNEL_BPF_BYTES = sizeof(struct weft_kernel_bpf_record) - 4 };

/* In a record of type WEFT_KERNEL_BPF_SOFTIRQ, off_tid and off_pid are the interrupted thread, state is the softirq's number,
 * and argument is the softirq's duration in ns until the record. */

struct weft_kernel_bpf;

/* Records the process `pid` from its next exec on, and its descendants.  Returns NULL if recording is impossible: it needs root,
 * the first PID namespace, and Linux 5.18 or later with BTF. */
struct weft_kernel_bpf *weft_kernel_bpf_open(pid_t pid);

/* Makes the records of a CPU go to that CPU's perf event PERF_COUNT_SW_BPF_OUTPUT.  Returns false on failure. */
bool weft_kernel_bpf_set_output(const struct weft_kernel_bpf *bpf, uint32_t cpu, int fd);

/* Accepts NULL. */
void weft_kernel_bpf_close(struct weft_kernel_bpf *bpf);

#endif
