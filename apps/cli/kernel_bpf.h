/* kernel_bpf.h: why a program's OS threads lose their processors, and deferred interrupts, told by programs of our own in the
 * kernel.
 *
 * Tracepoints take a call chain for that; here it is a short record.  Interrupts too short to matter are not told at all.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_KERNEL_BPF_H
#define WEFT_CLI_KERNEL_BPF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KERNEL_BPF_LEAST_NS = 20000 };

enum kernel_bpf_what { KERNEL_BPF_SWITCH, KERNEL_BPF_DEFERRED };

/* What stands in a record. */
struct kernel_bpf_told {
	uint32_t what; /* enum kernel_bpf_what */
	uint32_t off_tid, off_pid;
	uint32_t state; /* 0: it could go on; else as prev_state of sched_switch */
	int64_t call;   /* the number of the system call that it is in; -1: none, which is a page fault; -2: nobody knows */
	uint64_t argument;
	char name[16]; /* of whoever gets the processor from one that could go on */
	uint32_t next; /* its tid */
	uint32_t padding;
};

/* What of it stands in a record: with the 4 bytes of its size before it, a multiple of 8. */
enum { KERNEL_BPF_BYTES = sizeof(struct kernel_bpf_told) - 4 };

/* DEFERRED: off_tid and off_pid had the processor; .state is which softirq, .argument for how many ns, until the record. */

struct kernel_bpf;

/* Tells of `pid` from its next exec on, and of all that it will make.  NULL: not here: it takes root, a kernel from 5.18 on that
 * describes itself, and numbers of processes as the kernel has them. */
struct kernel_bpf *kernel_bpf_open(pid_t pid);

/* Records go to this event of perf's, PERF_COUNT_SW_BPF_OUTPUT on that processor; false: they cannot. */
bool kernel_bpf_to(const struct kernel_bpf *bpf, uint32_t processor, int fd);

/* Takes NULL, too. */
void kernel_bpf_close(struct kernel_bpf *bpf);

#endif
